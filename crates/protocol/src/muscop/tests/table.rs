//! The transition table: every state under every input, as the master, which follows, and as the leader.

use std::string::String;

use super::landing::progress_of;
use super::*;
use crate::EndFlight;
use crate::swarm::table::{FlightOf, PARTS, Table, data_of, first_of, others_of};

const ROLES: [&str; 2] = ["muscop_10_master_and_follower", "muscop_10_leader"];

const STATES: [&str; 27] = [
    "Start",
    "Setup",
    "ReadyToFly",
    "TakingOff(Waiting)",
    "TakingOff(Climbing)",
    "TakingOff(MovingToSlot)",
    "TakingOff(InSlot)",
    "TakingOff(Confirming)",
    "SetupFinished",
    "WaypointReached 0",
    "WaypointReached 1",
    "WaypointReached 2",
    "MovingToWaypoint 1",
    "MovingToWaypoint 2",
    "MovingToLand",
    "Landing",
    "Finished",
    "Aborted(Hold)",
    "Aborted(Return)",
    "Aborted(ReturnHeld)",
    "Aborted(Land)",
    "Aborted(LandAside)",
    "Aborted(Failure)",
    "Aborted(TakenOver(Hold))",
    "Aborted(TakenOver(Return))",
    "Aborted(TakenOver(Land))",
    "Aborted(Ground)",
];

fn name(muscop: &Muscop) -> String {
    muscop.swarm.state().label(|flight| {
        let (BarrierState::WaypointReached { waypoint } | BarrierState::MovingToWaypoint { waypoint, .. }) =
            flight;
        std::format!("{} {waypoint}", muscop.view().state)
    })
}

/// Flies until `is_over`, and keeps a machine of each role in each state.
fn fly(rig: &mut Rig, table: &mut Table<Muscop>, seconds: usize, is_over: impl Fn(&Rig) -> bool) {
    // The middle one leads.
    for _ in 0..20 * seconds {
        for (role, craft) in rig.craft[..2].iter().enumerate() {
            let telemetry = craft.telemetry(DVec3::ZERO);
            table.keep(role, name(&craft.muscop), rig.now, telemetry, &craft.muscop);
        }
        if is_over(rig) {
            return;
        }
        rig.step();
    }
    assert!(!is_over(rig));
}

fn is_set_up(rig: &Rig) -> bool {
    rig.all_in(StateId::SetupFinished)
}

#[test]
fn muscop_10_the_transition_table() {
    let mut table = Table::new();
    // The whole flight.
    let mut rig = Rig::new(3, Layout::Linear, 4);
    rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 3);
    fly(&mut rig, &mut table, 1, |_| false);
    rig.command_all(Command::Setup);
    fly(&mut rig, &mut table, 300, is_set_up);
    let swarm = &rig.craft[1].muscop.swarm;
    let (id, slot) = (|i: usize| VehicleId(10 + i as u64), swarm.assignment().slot() as u8);
    let at = rig.craft[1].telemetry(DVec3::ZERO).point();
    let flight = FlightOf {
        number: swarm.assignment().flight(),
        own: std::vec![id(0), id(1)],
        master: id(0),
        leader: (id(1), slot),
        members: (0..3).map(id).collect(),
        site: swarm
            .assignment()
            .slot_position(usize::from(slot), swarm.assignment().last_waypoint())
            .unwrap(),
        messages: std::vec![
            ("Data", data_of(swarm.assignment().plan())),
            ("DataFirst", first_of(swarm.assignment().plan())),
            ("DataWaypoints", others_of(swarm.assignment().plan())),
            ("ReachedWaypointAck 1", Message::ReachedWaypointAck { waypoint: 1 }),
            ("ReachedWaypointAck 2", Message::ReachedWaypointAck { waypoint: 2 }),
            ("MoveToWaypoint 1", Message::MoveToWaypoint { waypoint: 1 }),
            ("MoveToWaypoint 2", Message::MoveToWaypoint { waypoint: 2 }),
            ("Release 1", Message::Release { waypoint: 1 }),
            ("Release 2", Message::Release { waypoint: 2 }),
            ("Gather 1", Message::Gather { waypoint: 1 }),
            ("Following at 1", Message::Following { waypoint: 1, reached: true, leader: slot, at }),
            ("Following to 1", Message::Following { waypoint: 1, reached: false, leader: slot, at }),
        ],
    };
    rig.command_all(Command::Start);
    fly(&mut rig, &mut table, 300, |r| r.all_in(StateId::Finished));
    // A leader does not land on one that stands where it would.
    let mut rig = Rig::new(3, Layout::Linear, 4);
    rig.set_up();
    rig.command_all(Command::Start);
    rig.until("last leg", 90, |r| progress_of(r, 1) == (Some(1), true));
    let end = rig.craft[1].frame.to_local(plan::position(*rig.craft[1].muscop.route().last().unwrap()));
    rig.feed(2, Input::Operator(Command::Land));
    (rig.craft[2].at, rig.craft[2].armed) = (end.truncate().extend(0.0) + DVec3::X * 2.0, false);
    fly(&mut rig, &mut table, 60, |r| r.craft[1].muscop.state_id() == StateId::Landing);
    // Everything that ends a flight early.
    type End = fn(&mut Rig, usize);
    let ends: [End; 9] = [
        |r, i| r.feed(i, Input::Operator(Command::Hold)),
        |r, i| {
            r.command_all(Command::Start);
            r.until("first waypoint", 60, |r| r.craft[i].muscop.reached() == Some(1));
            r.feed(i, Input::Operator(Command::Return));
        },
        |r, i| r.feed(i, Input::Operator(Command::Land)),
        |r, i| r.feed(i, Input::Failed(Order::Hold)),
        |r, i| r.feed(i, Input::TakenOver(EndFlight::Hold)),
        |r, i| r.feed(i, Input::TakenOver(EndFlight::Return)),
        |r, i| r.feed(i, Input::TakenOver(EndFlight::Land)),
        // Another has landed below.
        |r, i| {
            r.feed(2, Input::Operator(Command::Land));
            r.until("down", 120, |r| !r.craft[2].armed);
            r.craft[i].at = r.craft[2].at + DVec3::new(1.0, 0.0, 15.0);
            r.step();
            r.feed(i, Input::Operator(Command::Land));
        },
        // Another returns below, and passes.
        |r, i| {
            r.craft[i].at = r.craft[2].at - DVec3::new(3.0, 0.0, 12.0);
            r.step();
            r.feed(2, Input::Operator(Command::Return));
            r.step();
            r.feed(i, Input::Operator(Command::Return));
        },
    ];
    for i in 0..2 {
        for end in ends {
            let mut rig = Rig::new(3, Layout::Linear, 4);
            rig.set_up();
            end(&mut rig, i);
            fly(&mut rig, &mut table, 2, |_| false);
        }
        let mut rig = Rig::new(3, Layout::Linear, 4);
        rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 3);
        rig.command_all(Command::Setup);
        rig.feed(i, Input::Operator(Command::Hold));
        fly(&mut rig, &mut table, 1, |_| false);
    }
    // The master takes off first: it waits for none.
    let of_master: std::vec::Vec<_> = STATES.into_iter().filter(|s| *s != "TakingOff(Waiting)").collect();
    table.assert_whole(0, &of_master);
    table.assert_whole(1, &STATES);
    for (role, name_of_role) in ROLES.into_iter().enumerate() {
        for part in PARTS {
            let rows = table.rows(role, part, &flight, name);
            insta::assert_snapshot!(std::format!("{name_of_role}_{part}"), rows);
        }
    }
}
