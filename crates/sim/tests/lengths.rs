//! How long sealed datagrams of real flights are, against the bounds that air time is planned with: ids are MAC addresses,
//! and clocks are set.

use std::collections::BTreeMap;

use wingbeat_agent::{Agent, Command, CompanionLoss, Config, Coordination, Phase, Reply};
use wingbeat_geo::{DVec2, Duration, Frame, Instant, Position};
use wingbeat_protocol::{mbcap, muscop};
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::flight_controller::{Boot, Config as ControllerConfig, FlightController, Parameter};
use wingbeat_sim::keys::Signatures;
use wingbeat_sim::world::World;
use wingbeat_wire::{Message, Point, VehicleId, read_unverified};

const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };
const HEIGHT_MM: i32 = 30_000;
/// Of a maker of radios.
const MAC: u64 = 0xfcb8_27eb_0100;
/// Microseconds from 1970 to November 2026.
const BASE_US: u64 = 1_795_435_200_000_000;

fn id(index: usize) -> VehicleId {
    VehicleId(MAC + index as u64 + 1)
}

/// Aircraft 20 m apart on the ground, and the routes of those that have one.
fn world(configs: Vec<Coordination>, routes: &[Vec<DVec2>], speed_m_s: f64) -> World {
    let (frame, count) = (Frame::new(ORIGIN), configs.len());
    let vehicle = |(i, coordination): (usize, Coordination)| {
        let mut config = Config::new(coordination);
        config.companion_loss = CompanionLoss::EndsWithIt;
        let agent = Agent::new(config, i as u64, Instant::ZERO).unwrap().counting_from(BASE_US);
        let at = routes.get(i).map_or(DVec2::new(20.0 * i as f64, 0.0), |route| route[0]);
        let mut controller = ControllerConfig::new(i as u8 + 1, frame.to_position(at.extend(0.0)));
        (controller.boot, controller.gps_noise_m) = (Boot::Warm, 0.5);
        controller.parameters.push((Parameter::WPNAV_SPEED, (speed_m_s * 100.0) as f32));
        (agent, FlightController::new(controller, i as u64, Instant::ZERO))
    };
    let vehicles = configs.into_iter().enumerate().map(vehicle).collect();
    let channel = Channel::new(Model::Unrestricted, Draw::PerPacket, 1, count);
    let mut world = World::new(ORIGIN, vehicles, channel, 5.0).signing(Signatures::Ed25519, 1).unwrap();
    for (i, route) in routes.iter().enumerate() {
        let point = |leg: &DVec2| {
            let place = frame.to_position(leg.extend(0.0));
            Point { latitude_e7: place.latitude_e7, longitude_e7: place.longitude_e7, height_mm: HEIGHT_MM }
        };
        let route: Vec<Point> = route.iter().map(point).collect();
        assert_eq!(world.mission(i, &route), Reply::Accepted);
    }
    world
}

/// Flies until all are down; lengths by kind.
fn fly(world: &mut World) -> BTreeMap<&'static str, Vec<usize>> {
    let mut lengths: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    let mut set_up = vec![false; world.count()];
    world.take_sent();
    while !(0..world.count()).all(|i| world.phase(i) == Phase::Finished) {
        assert!(world.now() < Instant::from_secs(900), "not down: {:?}", world.log());
        world.run_until(world.now() + Duration::from_millis(500));
        let is_ready = (0..world.count()).all(|i| world.phase(i) == Phase::Ready);
        for (i, set_up) in set_up.iter_mut().enumerate() {
            let id = format!("{}", world.now().as_millis());
            if !*set_up {
                *set_up = world.command(i, &id, Command::Setup) == Reply::Accepted;
            } else if is_ready {
                assert_eq!(world.command(i, "start", Command::Start), Reply::Accepted);
            }
        }
        for sent in world.take_sent() {
            let kind = match read_unverified(&sent.bytes).unwrap().message {
                Message::Beacon(_) => "beacon",
                Message::Course(_) => "course",
                Message::MoveToWaypoint { .. } | Message::Release { .. } => "move",
                Message::ReachedWaypointAck { .. } | Message::DataAck { .. } => "acknowledgement",
                Message::ReadyToFlyAck | Message::TakeOffEndAck => "acknowledgement",
                _ => "other",
            };
            lengths.entry(kind).or_default().push(sent.bytes.len());
        }
    }
    assert!((0..world.count()).all(|i| world.status(i).refused.iter().sum::<u64>() == 0), "one was refused");
    lengths
}

/// The longest, once the mean is printed.
fn most(what: &str, lengths: &[usize]) -> usize {
    let most = lengths.iter().copied().max().unwrap_or(0);
    let mean = lengths.iter().sum::<usize>() / lengths.len().max(1);
    println!("{what}: mean {mean} bytes, most {most}, of {}", lengths.len());
    most
}

/// Two whose paths cross, with turns of 90 degrees: beacons of every state and number of locations.
#[test]
fn a_beacon_at_10_m_s_is_at_most_190_bytes_long() {
    for speed_m_s in [5.0, 10.0, 15.0] {
        let config = |i| {
            let mut mbcap = mbcap::Config::mbcap_e();
            (mbcap.me, mbcap.planned_speed_m_s) = (id(i), speed_m_s);
            mbcap.into()
        };
        let there = [(0.0, 0.0), (0.0, 200.0), (200.0, 200.0), (200.0, 0.0)];
        let across = [(-100.0, 100.0), (100.0, 100.0), (100.0, 300.0)];
        let route = |legs: &[(f64, f64)]| legs.iter().map(|&(x, y)| DVec2::new(x, y)).collect();
        let mut world = world((0..2).map(config).collect(), &[route(&there), route(&across)], speed_m_s);
        let lengths = fly(&mut world);
        let beacon = most(&format!("beacon at {speed_m_s} m/s"), &lengths["beacon"]);
        most(&format!("course at {speed_m_s} m/s"), &lengths["course"]);
        assert!(speed_m_s > 10.0 || beacon <= 190, "{speed_m_s} m/s: {beacon} bytes");
    }
}

#[test]
fn moves_and_acknowledgements_of_muscop_are_at_most_110_bytes_long() {
    let config = |i| muscop::Config::new(id(i), id(0), 3).into();
    let legs = [(0.0, 0.0), (0.0, 100.0), (100.0, 100.0)].map(|(x, y)| DVec2::new(x, y)).to_vec();
    let mut world = world((0..3).map(config).collect(), &[legs], 5.0);
    let lengths = fly(&mut world);
    for kind in ["move", "acknowledgement"] {
        assert!(most(kind, &lengths[kind]) <= 110);
    }
    most("other messages of muscop", &lengths["other"]);
}
