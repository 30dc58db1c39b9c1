//! Settings of the flight controller that a flight would come to grief by are refused on the ground.

use crate::common::row;

use wingbeat_agent::{Command, Phase, Rejection, Reply};
use wingbeat_autopilot::dialect::{MavMessage, PARAM_SET_DATA};
use wingbeat_geo::{Duration, Instant};
use wingbeat_sim::flight_controller::Parameter;
use wingbeat_sim::world::World;

use self::row::Row;

/// What the master's *Setup* is refused with when all parameters have been read.
fn refusal(
    parameters: &[(Parameter, f32)],
    disturb: impl FnOnce(&mut World),
) -> Option<(&'static str, String)> {
    let mut world = Row { parameters, ..Row::default() }.world();
    world.run_until(Instant::from_secs(10));
    disturb(&mut world);
    world.run_until(Instant::from_secs(13));
    match world.command(0, "setup", Command::Setup) {
        Reply::Refused(Rejection::Check { name, detail }) => Some((name, detail.as_str().to_owned())),
        Reply::Accepted => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_setting_refuses_setup_with_its_cure() {
    let none = |_: &mut World| {};
    assert_eq!(refusal(&[], none), None);
    let fence = [(Parameter::FENCE_ENABLE, 1.0), (Parameter::FENCE_RADIUS, 60.0)];
    let (name, detail) = refusal(&fence, none).unwrap();
    assert_eq!(
        (name, detail.as_str()),
        ("fence", "FENCE_RADIUS 60 m: the farthest waypoint is 100 m from home; set at least 103")
    );
    let polygon = [(Parameter::FENCE_ENABLE, 1.0), (Parameter::FENCE_TOTAL, 5.0)];
    assert_eq!(refusal(&polygon, none).unwrap().0, "fence");
    let (name, detail) = refusal(&[(Parameter::RALLY_TOTAL, 1.0)], none).unwrap();
    assert_eq!((name, &detail[..13]), ("return", "RALLY_TOTAL 1"));
    // MUSCOP does not fly in AUTO.
    assert_eq!(refusal(&[(Parameter::MIS_RESTART, 1.0)], none), None);
    let hovers = refusal(&[(Parameter::RTL_ALT_FINAL, 1_000.0)], none).unwrap();
    assert_eq!(hovers.0, "landing after return");
    // Changed by a ground station after it was read.
    let set = |world: &mut World| world.controller(0).receive(&set("RALLY_TOTAL", 2.0));
    assert_eq!(refusal(&[], set).unwrap().0, "return");
}

/// Of a ground station on another line.
fn set(name: &str, value: f32) -> Vec<u8> {
    let mut bytes = heapless::Vec::<u8, 300>::new();
    let header = wingbeat_autopilot::codec::MavHeader { system_id: 255, component_id: 190, sequence: 0 };
    let message = MavMessage::PARAM_SET(PARAM_SET_DATA {
        target_system: 1,
        target_component: 1,
        param_id: name.into(),
        param_value: value,
        ..PARAM_SET_DATA::default()
    });
    wingbeat_autopilot::codec::encode_v2(header, &message, &mut bytes).unwrap();
    bytes.to_vec()
}

#[test]
fn a_lost_transmitter_is_refused_where_its_failsafe_is_on() {
    let lose = |world: &mut World| world.controller(0).set_rc(None);
    assert_eq!(refusal(&[], lose).unwrap().0, "radio control");
    assert_eq!(refusal(&[(Parameter::FS_THR_ENABLE, 0.0)], lose), None);
}

/// The master knows the mission; the slots of others come with the plan, and each holds its own against its fence.
#[test]
fn a_fence_below_a_members_slot_ends_the_setup_on_the_ground() {
    let fence = [(Parameter::FENCE_ENABLE, 1.0), (Parameter::FENCE_RADIUS, 108.0)];
    let row = Row { parameters: &fence, distance_m: 60.0, ..Row::default() };
    let world = row.fly(|world| world.now() >= Instant::from_secs(60), Duration::ZERO);
    let is_named = world.log().iter().any(|l| l.entry.text.contains("fence: FENCE_RADIUS 108 m"));
    assert!(is_named, "{:?}", world.log().iter().map(|l| &l.entry.text).collect::<Vec<_>>());
    assert!((0..3).all(|i| !world.truth(i).armed && world.phase(i) != Phase::Ready), "no aircraft arms");
}

/// In the slots too: *Start* is refused until the cause is gone.
#[test]
fn a_setting_that_changes_in_the_slots_refuses_the_start() {
    let all_ready = |world: &World| (0..3).all(|i| world.phase(i) == Phase::Ready);
    let mut world = Row::default().world();
    for i in 0..3 {
        let mut accepted = false;
        while !accepted {
            world.run_until(world.now() + Duration::from_millis(200));
            let id = format!("{i} at {}", world.now().as_millis());
            accepted = world.command(i, &id, Command::Setup) == Reply::Accepted;
        }
    }
    while !all_ready(&world) {
        world.run_until(world.now() + Duration::from_millis(200));
        assert!(world.now() < Instant::from_secs(200), "{:?}", world.log());
    }
    let own_cm = world.controller(0).parameter(Parameter::RTL_ALT).unwrap() as f32;
    for (name, wrong, right) in [("RALLY_TOTAL", 1.0, 0.0), ("RTL_ALT", 1_500.0, own_cm)] {
        world.controller(0).receive(&set(name, wrong));
        world.run_until(world.now() + Duration::from_secs(1));
        let refused = world.command(0, name, Command::Start);
        assert!(matches!(refused, Reply::Refused(Rejection::Check { name: "return", .. })), "{refused:?}");
        world.controller(0).receive(&set(name, right));
        world.run_until(world.now() + Duration::from_secs(1));
    }
    for i in 0..3 {
        assert_eq!(world.command(i, "start", Command::Start), Reply::Accepted);
    }
    world.run_until(world.now() + Duration::from_secs(3));
    assert!(row::all_move(&world, 3), "{:?}", world.log());
}

/// In one step, on request; and the pilot's values are back after the flight.
#[test]
fn parameters_with_one_cure_are_set_for_the_flight_and_given_back() {
    let pilots = [(Parameter::RTL_ALT_FINAL, 1_000.0), (Parameter::FS_EKF_ACTION, 2.0)];
    let mut world = Row { parameters: &pilots, ..Row::default() }.world();
    let values =
        |world: &mut World, i| pilots.map(|(which, _)| world.controller(i).parameter(which).unwrap());
    world.run_until(Instant::from_secs(13));
    assert_eq!(world.status(0).cures.len(), 2, "{:?}", world.status(0).cures);
    for i in 0..3 {
        assert_eq!(world.command(i, "set", Command::SetParameters), Reply::Accepted);
    }
    world.run_until(Instant::from_secs(15));
    assert_eq!(values(&mut world, 0), [0.0, 1.0]);
    let progress = world.status(0).commands.pop().unwrap();
    assert_eq!(
        (progress.command, progress.stage),
        (Command::SetParameters, wingbeat_agent::Stage::EffectSeen)
    );
    let refused = world.command(0, "again", Command::SetParameters);
    assert_eq!(refused, Reply::Refused(Rejection::NothingToSet));
    row::operate(&mut world, 3, |world| row::all_move(world, 3));
    let refused = world.command(0, "in flight", Command::SetParameters);
    assert!(matches!(refused, Reply::Refused(Rejection::Underway(_))), "{refused:?}");
    while (0..3).any(|i| world.truth(i).armed) {
        world.run_until(world.now() + Duration::from_secs(1));
        assert!(world.now() < Instant::from_secs(300), "{:?}", world.log());
    }
    world.run_until(world.now() + Duration::from_secs(10));
    for i in 0..3 {
        assert_eq!(values(&mut world, i), pilots.map(|(_, value)| f64::from(value)), "aircraft {i}");
    }
}
