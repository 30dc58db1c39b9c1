//! The transition table: every state under every input, as the leader and as a slave.

use std::string::String;

use super::*;
use crate::EndFlight;
use crate::swarm::Manner;
use crate::swarm::table::{FlightOf, PARTS, Table, data_of, first_of, others_of};

const ROLES: [&str; 2] = ["follow_10_leader", "follow_10_slave"];

const OF_LEADER: [&str; 11] = [
    "Start",
    "Setup",
    "ReadyToFly",
    "TakingOff(InSlot)",
    "TakingOff(Confirming)",
    "SetupFinished",
    "Ready",
    "FollowMe",
    "Descending",
    "Finished",
    "Aborted(Ground)",
];

/// Returns have no layers under FollowMe, so none is held.
const OF_SLAVE: [&str; 24] = [
    "Start",
    "Setup",
    "ReadyToFly",
    "TakingOff(Waiting)",
    "TakingOff(Climbing)",
    "TakingOff(MovingToSlot)",
    "TakingOff(InSlot)",
    "TakingOff(Confirming)",
    "SetupFinished",
    "WaitMaster",
    "Following",
    "LeaderLost",
    "MovingToLand",
    "Landing",
    "Finished",
    "Aborted(Hold)",
    "Aborted(Return)",
    "Aborted(Land)",
    "Aborted(LandAside)",
    "Aborted(Failure)",
    "Aborted(TakenOver(Hold))",
    "Aborted(TakenOver(Return))",
    "Aborted(TakenOver(Land))",
    "Aborted(Ground)",
];

fn name(follow: &FollowMe) -> String {
    follow.swarm.state().label(|flight| match flight {
        // For people it lands.
        GuidanceState::Descending { .. } => "Descending".into(),
        GuidanceState::Ready
        | GuidanceState::FollowMe
        | GuidanceState::Following
        | GuidanceState::LeaderLost { .. } => follow.view().state.to_string(),
    })
}

/// Flies until `is_over`, and keeps a machine of each role in each state.
fn fly(rig: &mut Rig, table: &mut Table<FollowMe>, seconds: usize, is_over: impl Fn(&Rig) -> bool) {
    for _ in 0..20 * seconds {
        for (role, craft) in rig.craft[..2].iter().enumerate() {
            let telemetry = craft.telemetry(&rig.frame);
            table.keep(role, name(&craft.follow), rig.now, telemetry, &craft.follow);
        }
        if is_over(rig) {
            return;
        }
        rig.step();
    }
    assert!(!is_over(rig));
}

#[test]
fn follow_10_the_transition_table() {
    let mut table = Table::new();
    // The whole flight, and a landing in formation.
    for change in [USUAL, |c: &mut Config| c.landing = Landing::Formation] {
        let mut rig = Rig::new(3, Layout::Linear, change);
        rig.until("calls", 30, |r| r.craft[0].follow.swarm.setup().count() == 3);
        fly(&mut rig, &mut table, 1, |_| false);
        rig.command_all(Command::Setup);
        fly(&mut rig, &mut table, 600, |r| {
            r.slaves_in(StateId::SetupFinished) && r.state(0) == StateId::SetupFinished
        });
        rig.command_all(Command::Start);
        rig.craft[0].armed = true;
        rig.leader_m_s = DVec3::Z * 2.0;
        fly(&mut rig, &mut table, 60, |r| r.slaves_in(StateId::Following));
        rig.leader_m_s = DVec3::Z * -2.0;
        fly(&mut rig, &mut table, 200, |r| (0..3).all(|i| r.state(i) == StateId::Finished));
    }
    // A lost leader, and what the operator does.
    let mut rig = Rig::new(3, Layout::Linear, USUAL);
    rig.lead();
    let swarm = &rig.craft[0].follow.swarm;
    let at = rig.craft[0].telemetry(&rig.frame).point();
    let id = |i: usize| VehicleId(10 + i as u64);
    let flight = FlightOf {
        number: swarm.assignment().flight(),
        own: std::vec![id(0), id(1)],
        master: id(0),
        leader: (id(0), swarm.assignment().slot() as u8),
        members: (0..3).map(id).collect(),
        site: at,
        messages: std::vec![
            ("Data", data_of(swarm.assignment().plan())),
            ("DataFirst", first_of(swarm.assignment().plan())),
            ("DataWaypoints", others_of(swarm.assignment().plan())),
            (
                "Coordinates far away",
                Message::Coordinates(Coordinates {
                    at: Point { latitude_e7: at.latitude_e7 + 1_000_000, ..at },
                    heading_urad: 0,
                    leads: true,
                }),
            ),
        ],
    };
    rig.receives = |_, from, _| from != 0;
    fly(&mut rig, &mut table, 100, |r| r.slaves_in(StateId::Aborted));
    for command in [Command::Hold, Command::Return, Command::Land] {
        for is_up in [false, true] {
            let mut rig = Rig::new(3, Layout::Linear, USUAL);
            if is_up {
                rig.lead();
            } else {
                rig.until("calls", 30, |r| r.craft[0].follow.swarm.setup().count() == 3);
                rig.command_all(Command::Setup);
            }
            (0..2).for_each(|i| rig.feed(i, Input::Operator(command)));
            fly(&mut rig, &mut table, 2, |_| false);
        }
    }
    // The other slave takes off first; all together.
    for change in [USUAL, |c: &mut Config| c.swarm.take_off = Manner::Simultaneous] {
        let mut rig = Rig::new(3, Layout::Linear, change);
        (rig.craft[1].at, rig.craft[2].at) = (rig.craft[2].at, rig.craft[1].at);
        rig.until("calls", 30, |r| r.craft[0].follow.swarm.setup().count() == 3);
        rig.command_all(Command::Setup);
        fly(&mut rig, &mut table, 600, |r| r.slaves_in(StateId::SetupFinished));
    }
    // An order fails; another stands below.
    let mut rig = Rig::new(3, Layout::Linear, USUAL);
    rig.lead();
    rig.feed(1, Input::Failed(Order::Hold));
    fly(&mut rig, &mut table, 2, |_| false);
    let mut rig = Rig::new(3, Layout::Linear, USUAL);
    rig.lead();
    rig.feed(2, Input::Operator(Command::Land));
    rig.until("down", 300, |r| !r.craft[2].armed);
    rig.craft[1].at = rig.craft[2].at + DVec3::new(1.0, 0.0, 20.0);
    rig.step();
    rig.feed(1, Input::Operator(Command::Land));
    fly(&mut rig, &mut table, 2, |_| false);
    for ending in EndFlight::ALL {
        let mut rig = Rig::new(3, Layout::Linear, USUAL);
        rig.lead();
        rig.feed(1, Input::TakenOver(ending));
        fly(&mut rig, &mut table, 2, |_| false);
    }
    table.assert_whole(0, &OF_LEADER);
    table.assert_whole(1, &OF_SLAVE);
    for (role, name_of_role) in ROLES.into_iter().enumerate() {
        for part in PARTS {
            let rows = table.rows(role, part, &flight, name);
            insta::assert_snapshot!(std::format!("{name_of_role}_{part}"), rows);
        }
    }
}
