//! The transition table: every state under every input, as the leader and as a slave.

use std::string::String;

use super::*;
use crate::swarm::table::{FlightOf, PARTS, Table, data_of, first_of, others_of};

const ROLES: [&str; 2] = ["follow_10_leader", "follow_10_slave"];

const STATES: [&str; 20] = [
    "Start",
    "Setup",
    "ReadyToFly",
    "TakingOff(Climbing)",
    "TakingOff(MovingToSlot)",
    "TakingOff(InSlot)",
    "TakingOff(Confirming)",
    "SetupFinished",
    "Ready",
    "FollowMe",
    "Following",
    "LeaderLost",
    "Descending",
    "MovingToLand",
    "Landing",
    "Finished",
    "Aborted(Hold)",
    "Aborted(Return)",
    "Aborted(Land)",
    "Aborted(Ground)",
];

fn name(follow: &FollowMe) -> String {
    follow.swarm.state().label(|flight| match flight {
        GuidanceState::Ready => "Ready".into(),
        GuidanceState::FollowMe => "FollowMe".into(),
        GuidanceState::Following => "Following".into(),
        GuidanceState::LeaderLost { .. } => "LeaderLost".into(),
        GuidanceState::Descending { .. } => "Descending".into(),
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
        leader: (id(0), swarm.assignment().slot() as u8),
        members: (0..3).map(id).collect(),
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
    for state in STATES {
        assert!(table.has(state), "{state} was never reached");
    }
    for (role, name_of_role) in ROLES.into_iter().enumerate() {
        for part in PARTS {
            let rows = table.rows(role, part, &flight, name);
            insta::assert_snapshot!(std::format!("{name_of_role}_{part}"), rows);
        }
    }
}
