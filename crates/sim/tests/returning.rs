//! A swarm's returns through all layers: each flight controller has a height of its own in its parameters, and the
//! pilot's values are restored after the flight.

use crate::common::row;

use wingbeat_agent::{Command, Phase, Reply};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{Duration, Instant};
use wingbeat_sim::faults::Fault;
use wingbeat_sim::flight_controller::Parameter;
use wingbeat_sim::world::World;

use self::row::Row;

const COUNT: usize = 3;
/// What the pilots have set: 15.5 m, a cone of 2, at least 1 m up.
const PILOTS: [(Parameter, f64); 3] =
    [(Parameter::RTL_ALT, 1_550.0), (Parameter::RTL_CONE_SLOPE, 2.0), (Parameter::RTL_CLIMB_MIN, 100.0)];

/// The pilots' parameters, and more.
fn parameters_with(more: &[(Parameter, f32)]) -> Vec<(Parameter, f32)> {
    let mut parameters = PILOTS.map(|(parameter, value)| (parameter, value as f32)).to_vec();
    parameters.extend(more);
    parameters
}

/// Three in line with the pilots' parameters, some seconds after the first set off.
fn under_way(seconds: u64) -> World {
    let row = Row { parameters: &parameters_with(&[]), ..Row::default() };
    row.fly(|world| row::all_move(world, 1), Duration::from_secs(seconds))
}

/// Flies until all motors are off; how high each was.
fn until_down(world: &mut World) -> [f64; COUNT] {
    let mut highest_m = [0.0f64; COUNT];
    let end = world.now() + Duration::from_secs(400);
    while (0..COUNT).any(|i| world.truth(i).armed) {
        world.run_until(world.now() + Duration::from_millis(200));
        assert!(world.now() < end, "not down");
        for (i, highest_m) in highest_m.iter_mut().enumerate() {
            *highest_m = highest_m.max(world.truth(i).local.z);
        }
    }
    world.run_until(world.now() + Duration::from_secs(10));
    highest_m
}

/// What a flight controller has now of the parameters that [`PILOTS`] names.
fn parameters(world: &mut World, vehicle: usize) -> [f64; 3] {
    PILOTS.map(|(parameter, _)| world.controller(vehicle).parameter(parameter).unwrap())
}

#[test]
fn each_flight_controller_returns_at_its_own_height_and_the_pilots_values_are_restored() {
    let mut world = under_way(6);
    let mut heights_m: Vec<f64> = vec![];
    for i in 0..COUNT {
        let [height_cm, cone, climb_cm] = parameters(&mut world, i);
        assert_eq!((cone, climb_cm), (0.0, 0.0));
        heights_m.push(height_cm / 100.0);
    }
    let mut sorted = heights_m.clone();
    sorted.sort_by(f64::total_cmp);
    assert_eq!(sorted, [25.5, 33.5, 41.5], "15 m, 10.5 m above, and 8 m from one to the next");
    for i in 0..COUNT {
        assert_eq!(world.command(i, "return", Command::Return), Reply::Accepted);
    }
    let highest_m = until_down(&mut world);
    for (i, (highest_m, height_m)) in highest_m.into_iter().zip(heights_m).enumerate() {
        assert!((highest_m - height_m).abs() < 1.5, "aircraft {i}: {highest_m} m, expected {height_m} m");
        assert_eq!(parameters(&mut world, i), PILOTS.map(|(_, value)| value), "aircraft {i}");
    }
    let least_m = world.observer().swarm().separation_min_m;
    assert!(least_m > 5.0, "{least_m} m");
}

/// A return that the pilot or the autopilot begins is in the same layer; an agent that was taken over writes nothing
/// before it is engaged again.
#[test]
fn a_return_without_the_companion_is_in_the_same_layer() {
    let mut world = under_way(6);
    let overridden = parameters(&mut world, 1);
    assert!(world.controller(1).set_mode_by_pilot(Mode::Rtl));
    let highest_m = until_down(&mut world);
    assert!((highest_m[1] - overridden[0] / 100.0).abs() < 1.5, "{} m, {overridden:?}", highest_m[1]);
    let pilots = PILOTS.map(|(_, value)| value);
    assert_eq!(parameters(&mut world, 1), overridden, "silent after the takeover");
    assert_eq!(world.command(1, "engage", Command::Engage), Reply::Accepted);
    world.run_until(world.now() + Duration::from_secs(10));
    for i in 0..COUNT {
        assert_eq!(parameters(&mut world, i), pilots, "aircraft {i}");
    }
    let is_logged = |words: &str| world.log().iter().any(|l| l.vehicle == 1 && l.entry.text.contains(words));
    assert!(is_logged("the pilot's RTL_ALT 1550, RTL_CONE_SLOPE 2, RTL_CLIMB_MIN 100"));
    assert!(is_logged("the pilot's RTL_ALT 1550, RTL_CONE_SLOPE 2, RTL_CLIMB_MIN 100 restored"));
}

/// The autopilot stops every climb short of its fence, so that all layers above it would be one.
#[test]
fn a_layer_above_the_autopilots_fence_is_refused_with_the_heights() {
    let fenced = parameters_with(&[(Parameter::FENCE_ENABLE, 1.0), (Parameter::FENCE_ALT_MAX, 40.0)]);
    let row = Row { parameters: &fenced, ..Row::default() };
    let world = row.fly(|world| world.now() >= Instant::from_secs(60), Duration::ZERO);
    let refused: Vec<_> = world
        .log()
        .iter()
        .filter(|l| l.entry.text.contains("return at 41.5 m, expected at most 38 m"))
        .collect();
    assert_eq!(refused.len(), 1, "{:?}", world.log().iter().map(|l| &l.entry.text).collect::<Vec<_>>());
    assert!((0..COUNT).all(|i| !world.truth(i).armed), "no aircraft arms");
}

/// The battery of one ends the flight of all, in their layers, before it must.
#[test]
fn all_return_when_the_battery_of_one_carries_it_home_and_no_farther() {
    for vehicle in 0..COUNT {
        let mut world = under_way(6);
        world.inflict(world.now(), Fault::BatteryAt { vehicle, percent: 21.0 });
        world.run_until(world.now() + Duration::from_secs(30));
        for i in 0..COUNT {
            assert_eq!(world.phase(i), Phase::Aborted, "aircraft {i} of {vehicle}");
        }
        let is_logged =
            |i, words: &str| world.log().iter().any(|l| l.vehicle == i && l.entry.text.contains(words));
        for i in 0..COUNT {
            let words = if i == vehicle {
                "or the battery ends the flight"
            } else {
                "another waited too long or its battery is low"
            };
            assert!(is_logged(i, words), "aircraft {i} of {vehicle}: {:?}", world.log());
        }
        until_down(&mut world);
        for i in 0..COUNT {
            assert!(world.truth(i).landed, "aircraft {i}");
        }
        let least_m = world.observer().swarm().separation_min_m;
        assert!(least_m > 5.0, "{least_m} m");
    }
}
