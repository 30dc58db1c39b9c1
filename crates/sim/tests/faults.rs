//! Faults of a world, through all layers: what dies stays dead, what was told to a flight controller goes on,
//! and the same faults give the same bytes.

use wingbeat_agent::{Agent, Command, CompanionLoss, Config, Phase};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::formation::Layout;
use wingbeat_geo::{DVec3, Duration, Frame, Instant, Position};
use wingbeat_protocol::muscop;
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::faults::Fault;
use wingbeat_sim::flight_controller::{Config as ControllerConfig, FlightController};
use wingbeat_sim::world::World;
use wingbeat_wire::{Point, VehicleId};

const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };
const COUNT: usize = 3;

/// Three in line over two waypoints 100 m apart, at 15 m.
fn world() -> World {
    let frame = Frame::new(ORIGIN);
    let at = |east_m: f64, north_m: f64| frame.to_position(DVec3::new(east_m, north_m, 0.0));
    let vehicles = (0..COUNT).map(|i| {
        let mut muscop = muscop::Config::new(VehicleId(i as u64 + 1), VehicleId(1), COUNT);
        (muscop.swarm.layout, muscop.swarm.distance_m) = (Layout::Linear, 20.0);
        let mut config = Config::new(muscop);
        config.companion_loss = CompanionLoss::EndsWithIt;
        let agent = Agent::new(config, i as u64, Instant::ZERO).unwrap();
        let home = at(i as f64 * 10.0 - 10.0, 0.0);
        (agent, FlightController::new(ControllerConfig::new(i as u8 + 1, home), i as u64, Instant::ZERO))
    });
    let channel = Channel::new(Model::Unrestricted, Draw::PerPacket, 1, COUNT);
    let mut world = World::new(ORIGIN, vehicles.collect(), channel, 5.0);
    let mission = [0.0, 100.0].map(|north_m| {
        let place = at(0.0, north_m);
        Point { latitude_e7: place.latitude_e7, longitude_e7: place.longitude_e7, height_mm: 15_000 }
    });
    world.mission(0, &mission);
    world
}

/// Sets up, starts, and flies until the first is on its way.
fn under_way() -> World {
    let mut world = world();
    let mut set_up = [false; COUNT];
    while world.phase(0) != Phase::Moving {
        world.run_until(world.now() + Duration::from_millis(200));
        assert!(world.now() < Instant::from_secs(120), "never under way");
        for (i, set_up) in set_up.iter_mut().enumerate() {
            let id = format!("{}", world.now().as_millis());
            if !*set_up {
                *set_up = world.command(i, &id, Command::Setup) == wingbeat_agent::Reply::Accepted;
            } else if (0..COUNT).all(|j| world.phase(j) == Phase::Ready) {
                (0..COUNT).for_each(|j| drop(world.command(j, "start", Command::Start)));
            }
        }
    }
    world.run_until(world.now() + Duration::from_secs(2));
    world
}

#[test]
fn a_companion_that_dies_says_nothing_and_its_autopilot_flies_on_to_its_target() {
    let mut world = under_way();
    world.take_sent();
    world.inflict(world.now(), Fault::CompanionDies { vehicle: 2, guarded: false });
    world.run_until(world.now() + Duration::from_secs(60));
    assert!(world.is_dead(2) && world.is_left_alone(2) && !world.is_dead(1));
    let sent = world.take_sent();
    assert!(sent.iter().any(|s| s.vehicle == 1) && sent.iter().all(|s| s.vehicle != 2));
    let truth = world.truth(2);
    assert_eq!((truth.mode, truth.armed, truth.landed), (Mode::Guided, true, false));
    assert!((truth.local.y - 100.0).abs() < 2.0 && truth.velocity.length() < 0.5, "{truth:?}");
    assert!(matches!(world.command(2, "x", Command::Land), wingbeat_agent::Reply::Refused(_)));
}

#[test]
fn a_guardian_brakes_and_lands_the_aircraft_of_a_companion_that_dies() {
    let mut world = under_way();
    let before = world.truth(2).local;
    world.inflict(world.now(), Fault::CompanionDies { vehicle: 2, guarded: true });
    world.run_until(world.now() + Duration::from_secs(5));
    assert_eq!(world.truth(2).mode, Mode::Brake);
    world.run_until(world.now() + Duration::from_secs(60));
    let truth = world.truth(2);
    assert!(!truth.armed && truth.landed && truth.touchdown_m_s < 1.0, "{truth:?}");
    assert!((truth.local - before).truncate().length() < 35.0, "{truth:?}");
    assert!(!world.is_left_alone(2));
}

#[test]
fn who_falls_is_on_the_ground_at_once_and_the_others_are_not() {
    let mut world = under_way();
    world.inflict(world.now(), Fault::Falls { vehicle: 0 });
    world.run_until(world.now() + Duration::from_secs(5));
    assert!(world.truth(0).landed && world.truth(0).touchdown_m_s > 5.0, "{:?}", world.truth(0));
    assert!(world.is_dead(0) && !world.truth(1).landed);
}

#[test]
fn the_same_faults_give_the_same_bytes() {
    let fly = |share| {
        let mut world = under_way();
        let until = world.now() + Duration::from_secs(20);
        world.inflict(world.now() + Duration::from_millis(1_234), Fault::Loss { share, until });
        world.inflict(world.now() + Duration::from_secs(3), Fault::RadioSilent { vehicle: 1, until });
        world.run_until(world.now() + Duration::from_secs(40));
        (world.trace_hash(), world.channel_counters().lost)
    };
    let (hash, lost) = fly(0.5);
    assert_eq!((hash, lost), fly(0.5));
    assert!(lost > 0 && fly(0.9).1 > lost);
}
