extern crate std;
use std::string::ToString as _;

mod table;

use super::*;
use wingbeat_geo::{DVec3, Frame, Position};

use crate::{EndFlight, MissionExtras, Telemetry};

const HOME: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };

fn there(east_m: f64) -> Position {
    Frame::new(HOME).to_position(DVec3::new(east_m, 0.0, 0.0))
}
fn waypoint(east_m: f64) -> Point {
    let p = there(east_m);
    Point { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, height_mm: 10_000 }
}
fn at(east_m: f64, speed_m_s: f64, armed: bool) -> Telemetry {
    Telemetry {
        position: there(east_m),
        height_m: 10.0,
        heading_rad: 0.0,
        velocity_m_s: DVec3::new(speed_m_s, 0.0, 0.0),
        armed,
        landing: false,
        is_located: true,
    }
}
const CLIMB: Order = Order::FlyRoute { height_mm: 10_000 };

fn second(s: u64) -> Instant {
    Instant::from_secs(s)
}

/// Hands one input over; returns what was ordered.
fn step(m: &mut Mission, s: u64, input: Input<'_>) -> Option<Order> {
    let mut out = Actions::new();
    m.handle(second(s), input, &mut out);
    out.iter().find_map(|a| if let Action::Order(order) = a { Some(*order) } else { None })
}

/// A mission of 200 m, in each of its states.
fn in_state(name: StateId) -> Mission {
    let mut m = Mission::new(Config::new(VehicleId(1)));
    m.set_mission(&[waypoint(0.0), waypoint(100.0), waypoint(200.0)], MissionExtras::NONE).unwrap();
    step(&mut m, 0, Input::Telemetry(at(0.0, 0.0, false)));
    // Each leads from one state to the next.
    let way: [fn(&mut Mission); 8] = [
        |m| {
            m.permits(Command::Setup).unwrap();
            assert_eq!(step(m, 1, Input::Operator(Command::Setup)), Some(Order::LoadRoute));
        },
        |m| assert_eq!(step(m, 2, Input::Done(Order::LoadRoute)), None),
        |m| {
            m.permits(Command::Start).unwrap();
            assert_eq!(step(m, 3, Input::Operator(Command::Start)), Some(CLIMB));
            step(m, 3, Input::Telemetry(at(1.0, 5.0, true)));
        },
        |m| assert_eq!(step(m, 4, Input::Done(CLIMB)), None),
        |m| {
            for w in 0..3 {
                assert_eq!(step(m, 5, Input::Reached(w)), None);
            }
            assert_eq!(step(m, 6, Input::Telemetry(at(197.0, 3.0, true))), None, "not yet there");
            assert_eq!(step(m, 7, Input::Telemetry(at(199.0, 1.0, true))), Some(Order::Land));
        },
        |m| assert_eq!(step(m, 20, Input::Telemetry(at(200.0, 0.0, false))), None),
        |m| {
            *m = in_state(StateId::Flying);
            assert_eq!(step(m, 8, Input::Failed(Order::Resume)), Some(Order::Hold));
        },
        |m| {
            *m = in_state(StateId::Flying);
            assert_eq!(step(m, 8, Input::Operator(Command::Hold)), Some(Order::Hold));
        },
    ];
    for walk in way {
        if m.state_id() == name {
            break;
        }
        walk(&mut m);
    }
    assert_eq!(m.state_id(), name);
    m
}

const STATES: [StateId; 9] = [
    StateId::Start,
    StateId::Setup,
    StateId::SetupFinished,
    StateId::TakingOff,
    StateId::Flying,
    StateId::Landing,
    StateId::Finished,
    StateId::Holding,
    StateId::Aborted,
];

#[test]
fn a_mission_is_flown_from_start_to_finished() {
    let phases = STATES.map(|state| in_state(state).view().phase);
    use Phase::{Aborted, Ending, Finished, Moving, Preparing, Ready, Start};
    let expected = [Start, Preparing, Ready, Preparing, Moving, Ending, Finished, Aborted, Aborted];
    assert_eq!(phases, expected);
    let m = in_state(StateId::Finished);
    assert_eq!((m.view().reached, m.view().target, m.route().len()), (Some(2), None, 3));
    assert_eq!(m.poll_timeout().0, Instant::NEVER);
}

#[test]
fn the_operator_is_obeyed_in_every_state() {
    for state in STATES {
        for (command, order) in
            [(Command::Hold, Order::Hold), (Command::Return, Order::Return), (Command::Land, Order::Land)]
        {
            let mut m = in_state(state);
            if [StateId::Start, StateId::Finished].contains(&state) {
                let why = m.permits(command).unwrap_err().to_string();
                assert!(why.contains("on the ground"), "{why}");
                // Somebody armed it by hand: then it is the operator's to bring down.
                step(&mut m, 21, Input::Telemetry(at(0.0, 0.0, true)));
            }
            m.permits(command).unwrap_or_else(|why| panic!("{state}, {command:?}: {why}"));
            assert_eq!(step(&mut m, 21, Input::Operator(command)), Some(order), "{state}");
            assert_eq!((m.state_id(), m.view().phase), (StateId::Aborted, Phase::Aborted), "{state}");
            // No order that was under way continues.
            for late in [Input::Done(Order::LoadRoute), Input::Reached(2), Input::Done(Order::Resume)] {
                assert_eq!(step(&mut m, 22, late), None);
            }
            assert_eq!(m.state_id(), StateId::Aborted);
        }
        if state == StateId::Aborted {
            let mut m = in_state(state);
            step(&mut m, 21, Input::Telemetry(at(0.0, 0.0, false)));
            let denied = m.permits(Command::Land);
            assert_eq!(denied, Err(Denied::OnGround { found: StateId::Aborted }), "it is down");
        }
        let may = |command| in_state(state).permits(command).is_ok();
        assert_eq!(
            (may(Command::Setup), may(Command::Start)),
            (state == StateId::Start, state == StateId::SetupFinished)
        );
    }
}

#[test]
fn what_fails_in_the_air_holds_and_then_lands() {
    for (state, order) in
        [(StateId::TakingOff, Order::FlyRoute { height_mm: 10_000 }), (StateId::Flying, Order::Resume)]
    {
        let mut m = in_state(state);
        assert_eq!(step(&mut m, 10, Input::Failed(order)), Some(Order::Hold), "{state}");
        assert_eq!(m.poll_timeout().0, second(70));
        assert_eq!(step(&mut m, 69, Input::Telemetry(at(60.0, 0.0, true))), None);
        assert_eq!(step(&mut m, 70, Input::Wake), Some(Order::Land), "no operator decided");
        assert_eq!(step(&mut m, 80, Input::Telemetry(at(60.0, 0.0, false))), None);
        assert_eq!((m.state_id(), m.detail().as_str()), (StateId::Aborted, "on the ground"));
    }
    let mut m = in_state(StateId::Holding);
    assert_eq!(step(&mut m, 9, Input::Failed(Order::Hold)), Some(Order::Land), "it cannot even hold");
    let mut m = in_state(StateId::Holding);
    assert_eq!(
        step(&mut m, 9, Input::Operator(Command::Return)),
        Some(Order::Return),
        "the operator decided"
    );
    assert_eq!(step(&mut m, 200, Input::Wake), None);
}

#[test]
fn what_fails_on_the_ground_can_be_tried_again() {
    let mut m = in_state(StateId::Setup);
    step(&mut m, 5, Input::Failed(Order::LoadRoute));
    assert_eq!(m.state_id(), StateId::Start);
    let mut m = in_state(StateId::TakingOff);
    step(&mut m, 5, Input::Telemetry(at(0.0, 0.0, false)));
    assert_eq!(step(&mut m, 6, Input::Failed(Order::FlyRoute { height_mm: 10_000 })), None);
    assert_eq!(m.state_id(), StateId::SetupFinished);
}

#[test]
fn a_descent_that_was_not_ordered_is_no_success() {
    let mut m = in_state(StateId::Flying);
    assert_eq!(step(&mut m, 30, Input::Telemetry(at(80.0, 0.0, false))), None);
    assert_eq!(m.state_id(), StateId::Aborted);
}

#[test]
fn the_end_is_seen_though_the_word_of_it_was_lost() {
    let mut m = in_state(StateId::Flying);
    step(&mut m, 5, Input::Reached(0));
    step(&mut m, 6, Input::Reached(1));
    assert_eq!(step(&mut m, 13, Input::Telemetry(at(199.0, 5.0, true))), None, "it flies over it");
    assert_eq!(step(&mut m, 16, Input::Telemetry(at(199.5, 0.1, true))), Some(Order::Land));
}

#[test]
fn what_cannot_be_flown_is_refused_with_a_reason() {
    let mut m = Mission::new(Config::new(VehicleId(1)));
    assert!(m.permits(Command::Setup).unwrap_err().to_string().contains("no mission"));
    assert!(
        m.set_mission(&[waypoint(0.0)], MissionExtras::NONE)
            .unwrap_err()
            .to_string()
            .contains("found 1 waypoints, expected 2 to 600")
    );
    m.set_mission(&[waypoint(0.0), waypoint(6_000.0)], MissionExtras::NONE).unwrap();
    assert!(m.permits(Command::Setup).unwrap_err().to_string().contains("no position"));
    step(&mut m, 0, Input::Telemetry(at(0.0, 0.0, false)));
    let why = m.permits(Command::Setup).unwrap_err().to_string();
    assert!(why.contains("waypoint 1: found 6000 m away, expected at most 5000 m"), "{why}");
    let high = Point { height_mm: 121_000, ..waypoint(100.0) };
    m.set_mission(&[waypoint(0.0), high], MissionExtras::NONE).unwrap();
    assert!(
        m.permits(Command::Setup).unwrap_err().to_string().contains("waypoint 1: found 121 m above home")
    );
    let mut flying = in_state(StateId::Flying);
    assert!(
        flying
            .set_mission(&[waypoint(0.0), waypoint(9.0)], MissionExtras::NONE)
            .unwrap_err()
            .to_string()
            .contains("found Flying")
    );
    let bad = Config { planned_speed_m_s: f64::NAN, ..Config::new(VehicleId(1)) };
    let message = text!("{}", bad.check().unwrap_err());
    assert_eq!(message, "planned_speed_m_s: found NaN, expected 0.5 to 20 m/s");
}
