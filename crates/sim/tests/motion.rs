//! Properties of `motion` besides its likeness to the traces: it holds its place in wind, stops where
//! nothing commands it, survives nonsense, and repeats bit for bit.

use proptest::prelude::*;
use wingbeat_geo::DVec3;
use wingbeat_sim::motion::{Multicopter, NavParameters, Profile, Sticks, Task, Wind, WindParameters};

const DT_S: f64 = 0.02;
const CALM: DVec3 = DVec3::ZERO;
const PROFILES: [Profile; 2] = [Profile::Copter357, Profile::Copter462];

fn run(aircraft: &mut Multicopter, parameters: &NavParameters, wind: DVec3, seconds: f64) {
    for _ in 0..(seconds / DT_S).round() as usize {
        aircraft.step(DT_S, parameters, wind);
    }
}

fn hovering(profile: Profile, wind: DVec3) -> (Multicopter, NavParameters) {
    let parameters = NavParameters::new(profile);
    let mut aircraft = Multicopter::new(profile, DVec3::ZERO, 0.0);
    aircraft.set_task(Task::TakeOff { altitude_m: 20.0 }, &parameters);
    run(&mut aircraft, &parameters, wind, 30.0);
    (aircraft, parameters)
}

fn centred(throttle: f64) -> Sticks {
    Sticks { roll: 0.0, pitch: 0.0, throttle, yaw: 0.0 }
}

#[test]
fn a_hover_in_steady_wind_holds_its_place_and_leans_into_it() {
    for profile in PROFILES {
        let wind = DVec3::new(-6.0, 0.0, 0.0);
        let (mut aircraft, parameters) = hovering(profile, wind);
        run(&mut aircraft, &parameters, wind, 60.0);
        let state = aircraft.state();
        assert!(state.position.x.abs() < 0.1 && state.position.y.abs() < 0.1, "{profile:?} {state:?}");
        assert!(state.velocity.length() < 0.05, "{profile:?} {state:?}");
        // Facing north, wind from the east: right side down.
        let (roll_rad, pitch_rad) = state.roll_pitch_rad();
        assert!(roll_rad > 0.2 && pitch_rad.abs() < 0.02, "{profile:?} {state:?}");
    }
}

#[test]
fn a_gusty_flight_repeats_bit_for_bit() {
    let fly = || {
        let parameters = NavParameters::new(Profile::Copter357);
        let weather = WindParameters {
            speed_m_s: 5.0,
            direction_rad: 1.0,
            gust_deviation_m_s: 1.5,
            gust_time_constant_s: 3.0,
            gust_length_m: 100.0,
        };
        let wind = Wind::new(weather, 9);
        let mut aircraft = Multicopter::new(Profile::Copter357, DVec3::ZERO, 0.0);
        aircraft.set_task(Task::TakeOff { altitude_m: 20.0 }, &parameters);
        let mut sum = 0u64;
        for i in 0..5000 {
            if i == 1000 {
                let destination = DVec3::new(80.0, 40.0, 25.0);
                aircraft.set_task(
                    Task::Waypoint { destination, fast: false, next: None, yaw: None },
                    &parameters,
                );
            }
            let place_m = aircraft.state().position.truncate();
            aircraft.step(DT_S, &parameters, wind.at(f64::from(i) * DT_S, place_m));
            let p = aircraft.state().position;
            sum = sum.rotate_left(7) ^ p.x.to_bits() ^ p.y.to_bits() ^ p.z.to_bits();
        }
        let left_m = (aircraft.state().position - DVec3::new(80.0, 40.0, 25.0)).length();
        assert!(left_m < 3.0, "arrives within the gusts: {left_m} m left");
        sum
    };
    assert_eq!(fly(), fly());
}

#[test]
fn loiter_of_3_5_7_flies_by_stick_and_stops_as_measured() {
    // README of the reference, note 13: speed after 10 s, then distance and time to a stop.
    for (stick, speed, distance_m) in [(0.5, 2.37, 4.9), (1.0, 5.0, 10.8)] {
        let (mut aircraft, parameters) = hovering(Profile::Copter357, CALM);
        let forward = Sticks { pitch: -stick, ..centred(0.5) };
        aircraft.set_task(Task::Loiter(forward), &parameters);
        run(&mut aircraft, &parameters, CALM, 10.0);
        let state = *aircraft.state();
        assert!((state.velocity.y / speed - 1.0).abs() < 0.15, "{stick}: {state:?}");
        aircraft.set_task(Task::Loiter(centred(0.5)), &parameters);
        let mut furthest_m = 0.0f64;
        for _ in 0..1000 {
            aircraft.step(DT_S, &parameters, CALM);
            furthest_m = furthest_m.max(aircraft.state().position.y - state.position.y);
        }
        assert!((furthest_m / distance_m - 1.0).abs() < 0.15, "{stick}: stops in {furthest_m} m");
        assert!(aircraft.state().velocity.length() < 0.15);
    }
}

#[test]
fn sticks_take_off_turn_and_land() {
    for task in [Task::AltHold as fn(Sticks) -> Task, Task::Loiter, Task::PosHold] {
        let parameters = NavParameters::new(Profile::Copter357);
        let mut aircraft = Multicopter::new(Profile::Copter357, DVec3::ZERO, 0.0);
        aircraft.set_task(task(centred(0.5)), &parameters);
        run(&mut aircraft, &parameters, CALM, 5.0);
        assert_eq!(aircraft.state().position, DVec3::ZERO, "a middle throttle does not lift off");
        aircraft.set_task(task(centred(0.8)), &parameters);
        run(&mut aircraft, &parameters, CALM, 12.0);
        assert!(!aircraft.state().landed && aircraft.state().position.z > 5.0, "{:?}", aircraft.state());
        aircraft.set_task(task(Sticks { yaw: 0.2, ..centred(0.5) }), &parameters);
        run(&mut aircraft, &parameters, CALM, 2.0);
        let turned = aircraft.state().yaw_rad;
        assert!((0.9..1.5).contains(&turned), "right turn: {turned}");
        aircraft.set_task(task(centred(0.0)), &parameters);
        run(&mut aircraft, &parameters, CALM, 25.0);
        assert!(aircraft.state().landed, "{:?}", aircraft.state());
    }
}

#[test]
fn poshold_brakes_and_holds_where_the_sticks_are_let_go() {
    let (mut aircraft, parameters) = hovering(Profile::Copter357, CALM);
    aircraft.set_task(Task::PosHold(Sticks { roll: 0.5, ..centred(0.5) }), &parameters);
    run(&mut aircraft, &parameters, CALM, 6.0);
    assert!(aircraft.state().velocity.x > 3.0, "{:?}", aircraft.state());
    let from = aircraft.state().position.x;
    aircraft.set_task(Task::PosHold(centred(0.5)), &parameters);
    run(&mut aircraft, &parameters, CALM, 15.0);
    let state = *aircraft.state();
    assert!(state.velocity.length() < 0.1 && state.position.x - from < 15.0, "{state:?}");
    run(&mut aircraft, &parameters, CALM, 20.0);
    assert!((aircraft.state().position - state.position).length() < 0.5);
}

#[test]
fn guided_targets_leave_a_landed_aircraft_on_the_ground() {
    for profile in PROFILES {
        let parameters = NavParameters::new(profile);
        let mut aircraft = Multicopter::new(profile, DVec3::new(3.0, 4.0, 0.0), 1.0);
        let target = DVec3::new(50.0, 0.0, 20.0);
        for task in [
            Task::Waypoint { destination: target, fast: false, next: None, yaw: None },
            Task::Position { position: target, yaw: None },
            Task::PositionVelocity {
                position: target,
                velocity: DVec3::new(1.0, 0.0, 1.0),
                acceleration: DVec3::ZERO,
            },
            Task::Velocity { velocity: DVec3::new(0.0, 0.0, 2.0) },
            Task::Brake,
            Task::Land,
            Task::Idle,
            Task::Stopped,
        ] {
            aircraft.set_task(task, &parameters);
            run(&mut aircraft, &parameters, DVec3::new(8.0, 0.0, 0.0), 5.0);
            let state = aircraft.state();
            assert!(state.landed && state.position == DVec3::new(3.0, 4.0, 0.0), "{task:?} {state:?}");
        }
    }
}

#[test]
fn the_same_take_off_again_changes_nothing() {
    let parameters = NavParameters::new(Profile::Copter357);
    let climb = |again: bool| {
        let mut aircraft = Multicopter::new(Profile::Copter357, DVec3::ZERO, 0.0);
        for i in 0..500 {
            if i == 0 || again {
                aircraft.set_task(Task::TakeOff { altitude_m: 10.0 }, &parameters);
            }
            aircraft.step(DT_S, &parameters, CALM);
        }
        assert!(aircraft.destination_reached());
        *aircraft.state()
    };
    assert_eq!(climb(false), climb(true));
}

#[test]
fn stopped_motors_in_the_air_fall() {
    let (mut aircraft, parameters) = hovering(Profile::Copter357, CALM);
    aircraft.set_task(Task::Stopped, &parameters);
    run(&mut aircraft, &parameters, CALM, 6.0);
    let state = aircraft.state();
    assert_eq!(state.position.z, 0.0);
    assert!(state.landed && state.throttle == 0.0);
}

#[test]
fn yaw_follows_wp_yaw_behavior() {
    for (behavior, yaw, expected) in
        [(2, None, 90.0), (1, None, 90.0), (3, None, 90.0), (0, None, 0.0), (2, Some(3.0), 171.887)]
    {
        let (mut aircraft, mut parameters) = hovering(Profile::Copter357, CALM);
        parameters.yaw_behavior = behavior;
        let destination = DVec3::new(200.0, 0.0, 20.0);
        aircraft.set_task(Task::Waypoint { destination, fast: false, next: None, yaw }, &parameters);
        run(&mut aircraft, &parameters, CALM, 15.0);
        let yaw_deg = aircraft.state().yaw_rad.to_degrees();
        let off = (yaw_deg - expected + 540.0).rem_euclid(360.0) - 180.0;
        assert!(off.abs() < 3.0, "behaviour {behavior}: {yaw_deg} degrees, expected {expected}");
    }
}

#[test]
fn copter_4_6_2_takes_off_exactly_cruises_corners_and_stops() {
    let (mut aircraft, parameters) = hovering(Profile::Copter462, CALM);
    assert!((aircraft.state().position.z - 20.0).abs() < 0.05, "{:?}", aircraft.state());
    let corner = DVec3::new(0.0, 300.0, 20.0);
    let end = DVec3::new(300.0, 300.0, 20.0);
    let leg = Task::Waypoint { destination: corner, fast: true, next: Some(end), yaw: None };
    aircraft.set_task(leg, &parameters);
    let mut top = 0.0f64;
    while !aircraft.destination_reached() {
        aircraft.step(DT_S, &parameters, CALM);
        top = top.max(aircraft.state().velocity.length());
    }
    let state = *aircraft.state();
    assert!((9.0..=10.2).contains(&top), "cruise {top}");
    assert!((state.position - corner).length() < 3.0, "reached at the corner: {state:?}");
    aircraft.set_task(Task::Waypoint { destination: end, fast: false, next: None, yaw: None }, &parameters);
    run(&mut aircraft, &parameters, CALM, 60.0);
    assert!(aircraft.destination_reached());
    assert!((aircraft.state().position - end).length() < 0.3, "{:?}", aircraft.state());
    aircraft.set_task(Task::Land, &parameters);
    run(&mut aircraft, &parameters, CALM, 60.0);
    assert!(aircraft.state().landed);
}

/// Numbers as they come from a hostile ground station: ordinary, huge, zero, and no numbers at all.
fn wild() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -100.0..100.0f64,
        1 => Just(0.0),
        1 => Just(1e7),
        1 => Just(-1e12),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(1e-300),
    ]
}

fn wild_vector() -> impl Strategy<Value = DVec3> {
    (wild(), wild(), wild()).prop_map(|(x, y, z)| DVec3::new(x, y, z))
}

fn wild_task() -> impl Strategy<Value = Task> {
    let sticks = || {
        (wild(), wild(), wild(), wild()).prop_map(|(roll, pitch, throttle, yaw)| Sticks {
            roll,
            pitch,
            throttle,
            yaw,
        })
    };
    prop_oneof![
        wild().prop_map(|altitude_m| Task::TakeOff { altitude_m }),
        (wild_vector(), any::<bool>(), prop::option::of(wild_vector()), prop::option::of(wild()))
            .prop_map(|(destination, fast, next, yaw)| Task::Waypoint { destination, fast, next, yaw }),
        (wild_vector(), prop::option::of(wild()))
            .prop_map(|(position, yaw)| Task::Position { position, yaw }),
        (wild_vector(), wild_vector(), wild_vector()).prop_map(|(position, velocity, acceleration)| {
            Task::PositionVelocity { position, velocity, acceleration }
        }),
        wild_vector().prop_map(|velocity| Task::Velocity { velocity }),
        Just(Task::Brake),
        Just(Task::Land),
        Just(Task::Idle),
        Just(Task::Stopped),
        sticks().prop_map(Task::Stabilize),
        sticks().prop_map(Task::AltHold),
        sticks().prop_map(Task::Loiter),
        sticks().prop_map(Task::PosHold),
    ]
}

fn wild_parameters() -> impl Strategy<Value = NavParameters> {
    (prop::array::uniform12(wild()), any::<u8>(), any::<bool>()).prop_map(|(v, yaw_behavior, sane)| {
        if sane {
            return NavParameters::new(Profile::Copter357);
        }
        NavParameters {
            wpnav_speed_m_s: v[0],
            wpnav_accel_m_s2: v[1],
            wpnav_radius_m: v[2],
            wpnav_speed_up_m_s: v[3],
            wpnav_speed_down_m_s: v[4],
            wpnav_accel_z_m_s2: v[5],
            land_speed_m_s: v[6],
            land_speed_high_m_s: v[7],
            loiter_speed_m_s: v[8],
            angle_max_rad: v[9],
            pilot_velocity_z_m_s: v[10],
            guided_timeout_s: v[11],
            yaw_behavior,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn wild_inputs_give_finite_states(
        profile in prop_oneof![Just(Profile::Copter357), Just(Profile::Copter462)],
        take_off in any::<bool>(),
        script in prop::collection::vec((wild_task(), wild_parameters(), wild_vector(), 1usize..120, prop_oneof![9 => Just(DT_S), 1 => wild()]), 1..8),
    ) {
        let mut aircraft = Multicopter::new(profile, DVec3::ZERO, 0.0);
        if take_off {
            let parameters = NavParameters::new(profile);
            aircraft.set_task(Task::TakeOff { altitude_m: 10.0 }, &parameters);
            run(&mut aircraft, &parameters, CALM, 8.0);
        }
        for (task, parameters, wind, steps, dt_s) in script {
            aircraft.set_task(task, &parameters);
            for _ in 0..steps {
                aircraft.step(dt_s, &parameters, wind);
                let s = aircraft.state();
                let (roll_rad, pitch_rad) = s.roll_pitch_rad();
                let finite = s.position.is_finite() && s.velocity.is_finite() && s.acceleration.is_finite()
                    && roll_rad.is_finite() && pitch_rad.is_finite() && s.yaw_rad.is_finite()
                    && s.yaw_rate_rad_s.is_finite() && s.throttle.is_finite();
                prop_assert!(finite, "{task:?} {parameters:?} wind {wind} dt {dt_s}: {s:?}");
                prop_assert!((0.0..core::f64::consts::TAU).contains(&s.yaw_rad), "{}", s.yaw_rad);
                prop_assert!(s.position.z >= 0.0, "under the ground: {s:?}");
            }
        }
    }
}
