//! MBCAP through all layers: agents, MAVLink bytes, simulated flight controllers, beacons over the channel.

use wingbeat_agent::{Agent, Command, CompanionLoss, Config, Phase, Reply, Severity};
use wingbeat_geo::{DVec2, Duration, Frame, Instant, Position};
use wingbeat_protocol::mbcap;
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::flight_controller::{Boot, Config as ControllerConfig, FlightController};
use wingbeat_sim::world::World;
use wingbeat_wire::{Point, VehicleId};

const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };
const HEIGHT_M: f64 = 30.0;
const SPEED_M_S: f64 = 10.0;

/// Aircraft on missions of their own, metres east and north of the origin; the last has the right of way.
fn world(missions: &[&[DVec2]], variant: fn() -> mbcap::Config, seed: u64) -> World {
    let frame = Frame::new(ORIGIN);
    let vehicles = missions.iter().enumerate().map(|(i, legs)| {
        let mut mbcap = variant();
        (mbcap.me, mbcap.planned_speed_m_s) = (VehicleId(i as u64 + 1), SPEED_M_S);
        let mut config = Config::new(mbcap);
        config.companion_loss = CompanionLoss::EndsWithIt;
        let agent = Agent::new(config, seed + i as u64, Instant::ZERO).unwrap();
        let mut controller = ControllerConfig::new(i as u8 + 1, frame.to_position(legs[0].extend(0.0)));
        controller.boot = Boot::Warm;
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

/// Sets up and starts all, and flies until all are down. Returns the states that each went through.
fn fly(world: &mut World) -> Vec<Vec<&'static str>> {
    let mut states = vec![vec![]; world.count()];
    let (mut pressed, mut started) = (vec![false; world.count()], false);
    while world.now() < Instant::from_secs(900) {
        world.run_until(world.now() + Duration::from_millis(200));
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
        assert!(states[0].contains(&"GoOnPlease") && states[1].contains(&"Overtaking"), "{states:?}");
        // What each believes of the other is what was, but for what a second of dead reckoning misses.
        for i in 0..2 {
            let believed = world.separation_figures(i);
            eprintln!("{:?} {:?} {:?}", variant().name, figures.separation_min_m, believed);
            eprintln!(
                "{:?}",
                world
                    .log_from(Severity::Info)
                    .filter(|l| l.vehicle == i)
                    .map(|l| (l.at.as_secs_f64(), l.event.text.clone()))
                    .collect::<Vec<_>>()
            );
        }
    }
}
