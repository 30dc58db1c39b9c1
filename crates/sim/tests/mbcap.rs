//! MBCAP through all layers: agents, MAVLink bytes, simulated flight controllers, beacons over the channel.

use wingbeat_agent::{Agent, Command, CompanionLoss, Config, Phase, Reply, Severity, StateId};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec2, Duration, Frame, Instant, Position};
use wingbeat_protocol::mbcap;
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::faults::{Direction, Fault};
use wingbeat_sim::flight_controller::{Boot, Config as ControllerConfig, FlightController, Parameter};
use wingbeat_sim::world::World;
use wingbeat_wire::{Point, VehicleId};

const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };
const HEIGHT_M: f64 = 30.0;
const SPEED_M_S: f64 = 10.0;

/// Aircraft on missions of their own, metres east and north of the origin; the last has the right of way.
fn world(missions: &[&[DVec2]], variant: fn() -> mbcap::Config, seed: u64) -> World {
    noisy_world(missions, variant, seed, 0.0)
}

fn noisy_world(missions: &[&[DVec2]], variant: fn() -> mbcap::Config, seed: u64, gps_noise_m: f64) -> World {
    world_of(missions, variant, seed, |controller| controller.gps_noise_m = gps_noise_m)
}

fn world_of(
    missions: &[&[DVec2]],
    variant: fn() -> mbcap::Config,
    seed: u64,
    change: impl Fn(&mut ControllerConfig),
) -> World {
    let frame = Frame::new(ORIGIN);
    let vehicles = missions.iter().enumerate().map(|(i, legs)| {
        let mut mbcap = variant();
        (mbcap.me, mbcap.planned_speed_m_s) = (VehicleId(i as u64 + 1), SPEED_M_S);
        let mut config = Config::new(mbcap);
        config.companion_loss = CompanionLoss::EndsWithIt;
        let agent = Agent::new(config, seed + i as u64, Instant::ZERO).unwrap();
        let mut controller = ControllerConfig::new(i as u8 + 1, frame.to_position(legs[0].extend(0.0)));
        controller.boot = Boot::Warm;
        change(&mut controller);
        (
            agent,
            FlightController::new(controller, seed * 100 + i as u64, Instant::from_millis(i as u64 * 140)),
        )
    });
    let vehicles = vehicles.collect();
    let channel = Channel::new(Model::Ieee80211a, Draw::PerPacket, seed, missions.len());
    let mut world = World::new(ORIGIN, vehicles, channel, 5.0);
    for (i, legs) in missions.iter().enumerate() {
        let route: Vec<Point> = legs
            .iter()
            .map(|leg| {
                let place = frame.to_position(leg.extend(0.0));
                let height_mm = (HEIGHT_M * 1e3) as i32;
                Point { latitude_e7: place.latitude_e7, longitude_e7: place.longitude_e7, height_mm }
            })
            .collect();
        assert_eq!(world.mission(i, &route), Reply::Accepted);
    }
    world
}

/// MBCAP-e that sees no risk: they fly through each other.
fn blind() -> mbcap::Config {
    let mut config = mbcap::Config::mbcap_e();
    config.risk.distance_m = 0.001;
    config
}

/// Sets up and starts all, and flies until all are down. Returns the states that each went through.
fn fly(world: &mut World) -> Vec<Vec<StateId>> {
    fly_until(world, |_| false)
}

fn fly_until(world: &mut World, is_enough: impl Fn(&World) -> bool) -> Vec<Vec<StateId>> {
    let mut states = vec![vec![]; world.count()];
    let (mut pressed, mut started) = (vec![false; world.count()], false);
    while world.now() < Instant::from_secs(900) {
        world.run_until(world.now() + Duration::from_millis(200));
        if is_enough(world) {
            break;
        }
        for i in 0..world.count() {
            let status = world.status(i);
            if states[i].last() != Some(&status.state) {
                states[i].push(status.state);
            }
            let id = format!("{}", world.now().as_millis());
            if !pressed[i] {
                pressed[i] = world.command(i, &id, Command::Setup) == Reply::Accepted;
            }
        }
        if !started && (0..world.count()).all(|i| world.phase(i) == Phase::Ready) {
            started = true;
            for i in 0..world.count() {
                assert_eq!(world.command(i, "start", Command::Start), Reply::Accepted);
            }
        }
        if (0..world.count()).all(|i| matches!(world.phase(i), Phase::Finished | Phase::Aborted)) {
            break;
        }
    }
    states
}

#[test]
fn two_that_meet_face_to_face_pass_each_other_and_both_arrive() {
    let (a, b) = (DVec2::new(0.0, 0.0), DVec2::new(600.0, 0.0));
    for (variant, seed) in [(mbcap::Config::mbcap_e as fn() -> _, 1), (mbcap::Config::mbcap, 2)] {
        let mut world = world(&[&[a, b], &[b, a]], variant, seed);
        let states = fly(&mut world);
        let figures = world.observer().swarm();
        assert!(world.observer().aircraft().iter().all(|a| a.completed), "{states:?}");
        assert!(figures.collisions.is_empty() && figures.separation_min_m > 5.0, "{figures:?}");
        assert!(
            states[0].contains(&StateId::GoOnPlease) && states[1].contains(&StateId::Overtaking),
            "{states:?}"
        );
        // What each measured of the other is what was.
        for i in 0..2 {
            let measured = world.separation_figures(i);
            let least = measured.least.unwrap();
            assert_eq!((measured.alarms, measured.rule_collisions), (0, 0), "{measured:?}");
            assert!((least.distance_m - figures.separation_min_m).abs() < 0.1, "{least:?} {figures:?}");
            let line = format!("closest to {}: {:.1} m", least.id, least.distance_m);
            let logged = world.log().iter().filter(|l| l.vehicle == i && l.entry.text.starts_with(&line));
            assert_eq!(logged.count(), 1, "{line}");
        }
    }
}

#[test]
fn a_collision_is_warned_of_in_time_and_reported() {
    let (a, b) = (DVec2::new(0.0, 0.0), DVec2::new(600.0, 0.0));
    let mut world = world(&[&[a, b], &[b, a]], blind, 3);
    fly(&mut world);
    let figures = world.observer().swarm();
    assert!(figures.collisions.len() == 1 && figures.separation_min_m < 3.0, "{figures:?}");
    for i in 0..2 {
        let measured = world.separation_figures(i);
        let least = measured.least.unwrap();
        assert!((least.distance_m - figures.separation_min_m).abs() < 1.0, "{least:?} {figures:?}");
        assert_eq!((measured.alarms, measured.collisions, measured.rule_collisions), (1, 1, 1));
        let logged = |severity| {
            let lines = world.log().iter().filter(|l| l.vehicle == i && l.entry.severity == severity);
            let lines: Vec<_> = lines.filter(|l| l.entry.text.contains(&format!("{}", least.id))).collect();
            assert_eq!(lines.len(), 1, "{lines:?}");
            lines[0].at
        };
        let (warned, alarmed) = (logged(Severity::Warning), logged(Severity::Error));
        let ahead = alarmed.since(warned);
        // 3 s before they come nearer than 7 m; the alarm is at 5 m. At 20 m/s between them.
        assert!((Duration::from_millis(2_700)..Duration::from_millis(3_400)).contains(&ahead), "{ahead:?}");
        assert!(figures.collisions[0].at.since(warned) > Duration::from_millis(2_500));
    }
}

/// Where the protocol keeps aircraft apart, the monitor cries no wolf; where nothing does, it finds each collision.
#[test]
fn mbcap_12_the_monitor_agrees_with_the_truth_under_noise() {
    let at = DVec2::new;
    let straight = vec![at(-300.0, 0.0), at(300.0, 0.0)];
    let pairs = [
        ("crossing", straight.clone(), vec![at(0.0, -300.0), at(0.0, 300.0)]),
        ("face to face", straight.clone(), vec![at(300.0, 0.0), at(-300.0, 0.0)]),
        ("sharp angle", straight, vec![at(-300.0, -100.0), at(300.0, 100.0)]),
        (
            "corners",
            vec![at(-300.0, 0.0), at(0.0, 0.0), at(0.0, 300.0)],
            vec![at(0.0, -300.0), at(0.0, 0.0), at(300.0, 0.0)],
        ),
    ];
    for seed in [10, 11] {
        for (name, low, high) in &pairs {
            for variant in [mbcap::Config::mbcap_e as fn() -> _, mbcap::Config::mbcap, blind] {
                let mut world = noisy_world(&[low, high], variant, seed, 0.3);
                fly(&mut world);
                let truth_m = world.observer().swarm().separation_min_m;
                for i in 0..2 {
                    let measured = world.separation_figures(i);
                    let least_m = measured.least.unwrap().distance_m;
                    let what = format!("{name}, seed {seed}, aircraft {i}: {truth_m:.1} m, {measured:?}");
                    if variant().risk.distance_m > 1.0 {
                        assert_eq!((measured.alarms, measured.rule_collisions), (0, 0), "{what}");
                        assert!((least_m - truth_m).abs() < 4.0, "{what}");
                    } else if truth_m < 5.0 {
                        assert_eq!((measured.alarms, measured.collisions), (1, 1), "{what}");
                        assert!((least_m - truth_m).abs() < 2.0, "{what}");
                    }
                }
                let collides = variant().risk.distance_m < 1.0 && ["crossing", "face to face"].contains(name);
                assert_eq!(truth_m < 5.0, collides, "{name}, seed {seed}: {truth_m:.1} m");
            }
        }
    }
}

/// Neither the operator nor a pilot makes an aircraft invisible to the others.
#[test]
fn mbcap_13_one_that_is_held_or_taken_over_in_the_path_of_another_is_not_flown_through() {
    let (a, b) = (DVec2::new(0.0, 0.0), DVec2::new(600.0, 0.0));
    for seed in 1..=4 {
        for by_pilot in [false, true] {
            // The one that is held has the right of way, and has not.
            for held in [0, 1] {
                let mut world = noisy_world(&[&[a, b], &[b, a]], mbcap::Config::mbcap_e, seed, 0.3);
                let is_out = |world: &World| {
                    let status = world.status(held);
                    status.state == StateId::Normal && status.navigation.is_some_and(|n| n.height_m > 29.0)
                };
                fly_until(&mut world, is_out);
                if by_pilot {
                    assert!(world.controller(held).set_mode_by_pilot(Mode::Brake));
                } else {
                    assert_eq!(world.command(held, "hold", Command::Hold), Reply::Accepted);
                }
                world.run_until(world.now() + Duration::from_secs(300));
                let nearest_m = world.observer().swarm().separation_min_m;
                let what = format!("seed {seed}, {held} held, by a pilot: {by_pilot}: {nearest_m:.1} m");
                assert!(nearest_m > 5.0, "{what}");
                assert!(world.status(held).flight_controller.armed, "{what}: it hovers");
            }
        }
    }
}

/// Two on the way home whose ways cross: the first is at (300, 0) and flies west, the second, by so much later, at (200, 100) and flies
/// south.
fn returning(later: Duration) -> World {
    let (west, south) = (DVec2::new(0.0, 0.0), DVec2::new(200.0, -200.0));
    let missions: [&[DVec2]; 2] = [&[west, DVec2::new(600.0, 0.0)], &[south, DVec2::new(200.0, 400.0)]];
    let mut world = world_of(&missions, mbcap::Config::mbcap_e, 1, |controller| {
        // By RTL, below 2000 mAh.
        controller.parameters.extend([(Parameter::FS_BATT_ENABLE, 2.0), (Parameter::FS_BATT_MAH, 2_000.0)]);
    });
    // On its mission the second passes the first.
    for (i, place) in [(1, DVec2::new(200.0, 100.0)), (0, DVec2::new(300.0, 0.0))] {
        let is_there = |world: &World| {
            let at = world.truth(i).local.truncate() + missions[i][0];
            world.phase(i) == Phase::Moving && at.distance(place) < 12.0
        };
        fly_until(&mut world, is_there);
        assert!(is_there(&world), "aircraft {i}: {:?}", world.truth(i));
        assert_eq!(world.command(i, "hold", Command::Hold), Reply::Accepted);
    }
    assert_eq!(world.command(0, "return", Command::Return), Reply::Accepted);
    world.run_until(world.now() + later);
    assert_eq!(world.command(1, "return", Command::Return), Reply::Accepted);
    world
}

fn run_until(world: &mut World, what: &str, is_enough: impl Fn(&World) -> bool) {
    let end = world.now() + Duration::from_secs(300);
    while !is_enough(world) {
        assert!(world.now() < end, "not within 300 s: {what}");
        world.run_until(world.now() + Duration::from_millis(100));
    }
}

#[test]
fn mbcap_20_two_on_their_way_home_avoid_each_other_and_land_at_home() {
    let mut stops = 0;
    for later_s in 8..16 {
        let mut world = returning(Duration::from_secs(later_s));
        let stopped = |world: &World| [0, 1].map(|i| world.avoidance_tally(i).map_or(0, |tally| tally.stops));
        let before = stopped(&world);
        run_until(&mut world, "both are down", |world| (0..2).all(|i| !world.truth(i).armed));
        for i in 0..2 {
            let (status, at) = (world.status(i), world.truth(i).local.truncate());
            assert!(at.length() < 2.0, "aircraft {i} came down {at:?} from its home: {}", status.detail);
            assert_eq!((status.state, status.phase), (StateId::Aborted, Phase::Aborted));
        }
        let nearest_m = world.observer().swarm().separation_min_m;
        assert!(nearest_m > 6.0, "{later_s} s later: {nearest_m}");
        stops += stopped(&world).into_iter().sum::<u32>() - before.into_iter().sum::<u32>();
    }
    assert!(stops >= 2, "their ways cross at no time: {stops} stops");
}

/// One is held on the other's way home, and answers nothing: that one goes on when it is gone, and lands before it after 120 s.
#[test]
fn mbcap_20_one_that_is_held_on_the_way_home_is_waited_for_but_not_for_ever() {
    for is_gone in [false, true] {
        let missions: [&[DVec2]; 2] = [
            // Round the other, and straight home past it.
            &[[0.0, 0.0], [150.0, -150.0], [400.0, 0.0], [600.0, 0.0]].map(DVec2::from),
            &[DVec2::new(150.0, 0.0), DVec2::new(150.0, 300.0)],
        ];
        let mut world = world(&missions, mbcap::Config::mbcap_e, 1);
        // As it sets out.
        fly_until(&mut world, |world| world.phase(1) == Phase::Moving && world.truth(1).local.z > 29.0);
        assert_eq!(world.command(1, "hold", Command::Hold), Reply::Accepted);
        run_until(&mut world, "the first is behind it", |world| world.truth(0).local.x > 450.0);
        assert_eq!(world.command(0, "return", Command::Return), Reply::Accepted);
        run_until(&mut world, "it stands", |world| {
            world.agent_of(0).view().is_returning && world.truth(0).mode == Mode::Brake
        });
        let stopped_at = world.now();
        if is_gone {
            world.run_until(stopped_at + Duration::from_secs(20));
            assert_eq!(world.command(1, "return", Command::Return), Reply::Accepted);
        }
        run_until(&mut world, "it is down", |world| !world.truth(0).armed);
        let (x_m, y_m) = (world.truth(0).local.x, world.truth(0).local.y);
        let down_s = world.now().since(stopped_at).as_secs();
        let what = format!("gone: {is_gone}, down after {down_s} s, {x_m:.1} m east, {y_m:.1} m north");
        let is_right = match is_gone {
            true => x_m.hypot(y_m) < 2.0 && world.status(0).state == StateId::Aborted,
            false => (155.0..240.0).contains(&x_m) && (120..200).contains(&down_s),
        };
        assert!(is_right, "{what}");
        assert!(world.observer().swarm().separation_min_m > 5.0, "{what}");
    }
}

#[test]
fn mbcap_20_one_that_its_autopilot_announces_a_failsafe_of_is_not_stopped_on_its_way_home() {
    let mut world = returning(Duration::ZERO);
    run_until(&mut world, "the first returns", |world| world.agent_of(0).view().is_returning);
    world.inflict(world.now(), Fault::BatteryAt { vehicle: 0, percent: 12.0 });
    run_until(&mut world, "its failsafe has it", |world| world.status(0).failsafe);
    while world.truth(0).armed {
        world.run_until(world.now() + Duration::from_millis(100));
        assert!(world.truth(0).mode != Mode::Brake, "{}", world.status(0).detail);
    }
    let at = world.truth(0).local.truncate();
    assert!(at.length() < 2.0, "it came down {at:?} from its home: {:?}", world.log());
    // The other kept clear of it.
    assert!(world.observer().swarm().separation_min_m > 5.0);
}

/// The table of transitions begins where the pilot has not taken over.
#[test]
fn mbcap_10_in_every_state_a_pilot_has_the_aircraft_and_its_beacons_and_the_monitor_continue() {
    let (a, b) = (DVec2::new(0.0, 0.0), DVec2::new(600.0, 0.0));
    let cases = [
        (0, StateId::TakingOff),
        (0, StateId::Normal),
        (0, StateId::StandStill),
        (1, StateId::StandStill),
        (0, StateId::MovingAside),
        (0, StateId::GoOnPlease),
        (1, StateId::Overtaking),
        (1, StateId::Landing),
    ];
    for (i, state) in cases {
        let mut world = world(&[&[a, b], &[b, a]], mbcap::Config::mbcap_e, 4);
        fly_until(&mut world, |world| world.status(i).state == state);
        assert_eq!(world.status(i).state, state);
        assert!(world.controller(i).set_mode_by_pilot(Mode::Loiter), "{state}");
        // A heartbeat shows it within a second, or the switch before.
        world.run_until(world.now() + Duration::from_millis(1_100));
        let taken = world.status(i);
        let says = |what| taken.detail.contains(what);
        assert!(!taken.engaged && (says("LOITER") || says("mode switch")), "{state}: {}", taken.detail);
        let (mut before, mut down_s) = (taken.clone(), 0);
        for _ in 0..20 {
            world.run_until(world.now() + Duration::from_secs(1));
            let status = world.status(i);
            assert_eq!(status.state, StateId::Aborted, "{state}");
            // With the motors off it is no obstacle: a simulated pilot without sticks descends.
            match (before.flight_controller.armed, status.flight_controller.armed) {
                // Five beacons, and its course now and then.
                (true, true) => {
                    assert!((5..=6).contains(&(status.sent - before.sent)), "{state}: it says where it is");
                }
                // It says that it is down for 3 s.
                (false, false) => {
                    down_s += 1;
                    let most = if down_s <= 4 { 2 } else { 0 };
                    assert!(status.sent - before.sent <= most, "{state}: it stands for {down_s} s");
                }
                (_, _) => {}
            }
            assert_eq!(status.flight_controller.mode(), Some(Mode::Loiter), "{state}: it stays the pilot's");
            before = status;
        }
        let (before, after) = (taken.received, world.status(i).received);
        let other = world.status(1 - i);
        if other.flight_controller.armed && other.sent > 0 {
            assert!(
                after > before && world.status(i).separation.nearest.is_some(),
                "{state}: it still receives"
            );
        }
    }
}

/// Flies two that meet, with a fault of the radio of one at that time, and returns their least distance and whether both landed.
fn with_radio(missions: &[&[DVec2]], seed: u64, vehicle: usize, lost: Direction, at_s: u64) -> (f64, bool) {
    let mut world = noisy_world(missions, mbcap::Config::mbcap_e, seed, 0.3);
    world.inflict(Instant::from_secs(at_s), Fault::RadioSilent { vehicle, lost, until: Instant::NEVER });
    fly(&mut world);
    let are_down = (0..missions.len()).all(|i| !world.truth(i).armed);
    (world.observer().swarm().separation_min_m, are_down)
}

/// Dead, mute and deaf; at right angles, head-on and obliquely; the lower or the higher of the two. Both stop, and only one of
/// them continues.
#[test]
fn mbcap_21_two_of_which_one_has_a_dead_mute_or_deaf_radio_keep_apart_and_land() {
    let at = DVec2::new;
    let east: &[DVec2] = &[at(-240.0, 0.0), at(240.0, 0.0)];
    let others: [&[DVec2]; 3] = [
        &[at(0.0, -240.0), at(0.0, 240.0)],
        &[at(240.0, 0.0), at(-240.0, 0.0)],
        &[at(170.0, -170.0), at(-170.0, 170.0)],
    ];
    for (k, other) in others.into_iter().enumerate() {
        for lost in [Direction::Both, Direction::Sent, Direction::Received] {
            for vehicle in [0, 1] {
                for at_s in [20, 26, 31] {
                    let seed = 7_340 + at_s;
                    let (least_m, are_down) = with_radio(&[east, other], seed, vehicle, lost, at_s);
                    let what = format!(
                        "geometry {k}, {lost:?} of {vehicle} at {at_s} s, seed {seed}: {least_m:.2} m"
                    );
                    assert!(least_m >= 5.0 && are_down, "{what}, down: {are_down}");
                }
            }
        }
    }
}

/// The radios of all are bad in every other way: late, doubled, lost in bursts.
#[test]
fn mbcap_11_late_doubled_and_lost_datagrams_collide_no_pair() {
    let at = DVec2::new;
    let missions: [&[DVec2]; 3] = [
        &[at(-240.0, 0.0), at(240.0, 0.0)],
        &[at(240.0, 0.0), at(-240.0, 0.0)],
        &[at(0.0, -240.0), at(0.0, 240.0)],
    ];
    let until = Instant::NEVER;
    let most = Duration::from_millis(1_500);
    for seed in 7_340..7_344 {
        let mut world = noisy_world(&missions, mbcap::Config::mbcap_e, seed, 0.3);
        world.inflict(Instant::from_secs(15), Fault::Doubled { share: 0.5, most, until });
        world.inflict(Instant::from_secs(15), Fault::Late { share: 0.5, most, until });
        fly(&mut world);
        let least_m = world.observer().swarm().separation_min_m;
        assert!(least_m >= 5.0 && (0..3).all(|i| !world.truth(i).armed), "seed {seed}: {least_m:.2} m");
    }
}

/// With the noise of a poor sky, which the receiver reports: one that gives way stands further away.
#[test]
fn mbcap_22_two_that_meet_face_to_face_under_a_poor_sky_keep_apart() {
    let (a, b) = (DVec2::new(-250.0, 0.0), DVec2::new(250.0, 0.0));
    for noise_m in [1.0, 1.5, 2.0] {
        for seed in 7_340..7_346 {
            let mut world = noisy_world(&[&[a, b], &[b, a]], mbcap::Config::mbcap_e, seed, noise_m);
            fly(&mut world);
            let least_m = world.observer().swarm().separation_min_m;
            let are_down = (0..2).all(|i| !world.truth(i).armed);
            assert!(least_m >= 5.0 && are_down, "{noise_m} m, seed {seed}: {least_m:.2} m");
        }
    }
}
