//! A daemon that is started again while its aircraft is on a mission of its own, through all layers: the guardian brakes the
//! aircraft and gives it back, the new agent reads the mission, receives the others, and goes on.

use wingbeat_agent::{Agent, Command, CompanionLoss, Config, Coordination, Phase, Reply, StateId};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec2, Duration, Frame, Instant, Position};
use wingbeat_protocol::{mbcap, mission};
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::faults::Fault;
use wingbeat_sim::flight_controller::{Boot, Config as ControllerConfig, FlightController};
use wingbeat_sim::world::World;
use wingbeat_wire::{Point, VehicleId};

const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };

fn own(id: u64) -> Coordination {
    mission::Config { planned_speed_m_s: 5.0, ..mission::Config::new(VehicleId(id)) }.into()
}

fn avoiding(id: u64) -> Coordination {
    mbcap::Config { me: VehicleId(id), planned_speed_m_s: 10.0, ..mbcap::Config::mbcap_e() }.into()
}

/// Aircraft on missions of their own, metres east and north.
fn world(missions: &[&[DVec2]], of: fn(u64) -> Coordination) -> World {
    let frame = Frame::new(ORIGIN);
    let vehicles = missions.iter().enumerate().map(|(i, legs)| {
        let mut config = Config::new(of(i as u64 + 1));
        config.companion_loss = CompanionLoss::EndsWithIt;
        let agent = Agent::new(config, 1 + i as u64, Instant::ZERO).unwrap();
        let mut controller = ControllerConfig::new(i as u8 + 1, frame.to_position(legs[0].extend(0.0)));
        controller.boot = Boot::Warm;
        (agent, FlightController::new(controller, i as u64, Instant::from_millis(i as u64 * 140)))
    });
    let vehicles = vehicles.collect();
    let channel = Channel::new(Model::Ieee80211a, Draw::PerPacket, 1, missions.len());
    let mut world = World::new(ORIGIN, vehicles, channel, 5.0);
    for (i, legs) in missions.iter().enumerate() {
        let point = |leg: &DVec2| {
            let place = frame.to_position(leg.extend(0.0));
            Point { latitude_e7: place.latitude_e7, longitude_e7: place.longitude_e7, height_mm: 15_000 }
        };
        let route: Vec<Point> = legs.iter().map(point).collect();
        assert_eq!(world.mission(i, &route), Reply::Accepted);
    }
    world
}

/// Presses *Setup* and *Start*, until `enough` or half an hour.
fn fly_until(world: &mut World, enough: impl Fn(&World) -> bool) {
    while world.now() < Instant::from_secs(1_800) && !enough(world) {
        world.run_until(world.now() + Duration::from_millis(100));
        for i in 0..world.count() {
            let id = format!("{}", world.now().as_millis());
            let armed = world.truth(i).armed;
            match world.phase(i) {
                Phase::Start if !armed && world.status(i).route_len > 0 => {
                    drop(world.command(i, &id, Command::Setup));
                }
                Phase::Ready => drop(world.command(i, &id, Command::Start)),
                _ => {}
            }
        }
    }
    assert!(enough(world), "not within half an hour");
}

fn all_down(world: &World) -> bool {
    (0..world.count())
        .all(|i| !world.truth(i).armed && matches!(world.phase(i), Phase::Finished | Phase::Aborted))
}

fn restart(world: &mut World, vehicle: usize, for_s: f64) {
    let until = world.now() + Duration::from_millis((for_s * 1e3) as u64);
    world.inflict(world.now(), Fault::DaemonRestarts { vehicle, guarded: true, until });
}

/// Until it is in AUTO again; how long that takes.
fn until_auto(world: &mut World, vehicle: usize) -> Duration {
    let since = world.now();
    while world.truth(vehicle).mode != Mode::Brake {
        world.run_until(world.now() + Duration::from_millis(100));
        assert!(world.now().since(since) < Duration::from_secs(5), "it is braked");
    }
    while world.truth(vehicle).mode != Mode::Auto {
        world.run_until(world.now() + Duration::from_millis(100));
        let status = world.status(vehicle);
        assert!(world.now().since(since) < Duration::from_secs(60), "{}", status.detail);
    }
    world.now().since(since)
}

#[test]
fn a_mission_goes_on_on_each_of_its_legs_and_is_completed() {
    for (leg, reached) in [(1, 0), (2, 1)] {
        let legs = [DVec2::ZERO, DVec2::new(0.0, 120.0), DVec2::new(120.0, 120.0)];
        let mut world = world(&[&legs], own);
        fly_until(&mut world, |w| w.status(0).reached == Some(reached) && w.truth(0).velocity.length() > 3.0);
        world.run_until(world.now() + Duration::from_secs(3));
        restart(&mut world, 0, 1.0);
        let again = until_auto(&mut world, 0);
        assert!((5..30).contains(&again.as_secs()), "leg {leg}: {again:?}");
        assert_eq!((world.status(0).phase, world.status(0).reached), (Phase::Moving, Some(reached)));
        fly_until(&mut world, all_down);
        assert_eq!((world.status(0).state, world.status(0).reached), (StateId::Finished, Some(2)));
        let at = world.truth(0).local.truncate();
        assert!(at.distance(legs[2]) < 3.0, "leg {leg}: {at:?}");
    }
}

/// The second daemon that dies in a flight is not followed by a third that goes on.
#[test]
fn a_daemon_that_dies_again_leaves_an_aircraft_that_lands() {
    let mut world = world(&[&[DVec2::ZERO, DVec2::new(0.0, 400.0)]], own);
    fly_until(&mut world, |w| w.truth(0).velocity.length() > 3.0 && w.phase(0) == Phase::Moving);
    restart(&mut world, 0, 1.0);
    until_auto(&mut world, 0);
    world.run_until(world.now() + Duration::from_secs(5));
    restart(&mut world, 0, 1.0);
    let died_at = world.now();
    while world.truth(0).armed {
        world.run_until(world.now() + Duration::from_millis(100));
        assert!(world.now().since(died_at) < Duration::from_secs(120));
        assert!(world.now().since(died_at) < Duration::from_secs(3) || world.truth(0).mode != Mode::Auto);
    }
    assert_eq!(world.truth(0).mode, Mode::Land);
}

/// Wherever on their way the daemon of either ends: the two never come nearer than 5 m, and both complete their missions.
#[test]
fn two_whose_missions_cross_stay_apart_when_either_daemon_is_started_again() {
    let south_north = [DVec2::new(0.0, -120.0), DVec2::new(0.0, 120.0)];
    let west_east = [DVec2::new(-120.0, 0.0), DVec2::new(120.0, 0.0)];
    for vehicle in [0, 1] {
        for after_s in [0, 4, 8, 12, 16] {
            let mut world = world(&[&south_north, &west_east], avoiding);
            fly_until(&mut world, |w| (0..2).all(|i| w.phase(i) == Phase::Moving));
            world.run_until(world.now() + Duration::from_secs(after_s));
            restart(&mut world, vehicle, 1.5);
            fly_until(&mut world, all_down);
            let states = [0, 1].map(|i| world.status(i).state);
            let nearest_m = world.observer().swarm().separation_min_m;
            println!("{vehicle} after {after_s} s: {states:?}, {nearest_m:.1} m");
            assert!(nearest_m >= 5.0, "{vehicle} after {after_s} s: {nearest_m} m");
            assert_eq!(states, [StateId::Finished; 2], "{vehicle} after {after_s} s");
        }
    }
}
