//! Who flies behind another through all layers: flight controllers that report four times a second, orders that
//! wait for a report, brakes that take their time. Whoever stops ahead, the row behind it comes to stand clear.

use wingbeat_agent::{Agent, Command, CompanionLoss, Config, Phase, Reply};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::formation::Layout;
use wingbeat_geo::{DVec3, Duration, Frame, Instant, Position};
use wingbeat_protocol::muscop;
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::faults::Fault;
use wingbeat_sim::flight_controller::{Config as ControllerConfig, FlightController, Parameter};
use wingbeat_sim::world::World;
use wingbeat_wire::{Point, VehicleId};

const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };
const COUNT: usize = 5;
/// Between neighbours in the formation of 81 aircraft of thesis Figure 6.13.
const DISTANCE_M: f64 = 18.74;

/// Five in line, 300 m along their row at 10 m/s.
fn world(seed: u64) -> World {
    let frame = Frame::new(ORIGIN);
    let at = |east_m: f64, north_m: f64| frame.to_position(DVec3::new(east_m, north_m, 0.0));
    let vehicles = (0..COUNT).map(|i| {
        let mut muscop = muscop::Config::new(VehicleId(i as u64 + 1), VehicleId(1), COUNT);
        (muscop.swarm.layout, muscop.swarm.distance_m) = (Layout::Linear, DISTANCE_M);
        let mut config = Config::new(muscop);
        config.companion_loss = CompanionLoss::EndsWithIt;
        let agent = Agent::new(config, 100 * seed + i as u64, Instant::ZERO).unwrap();
        let home = at((i as f64 - 2.0) * DISTANCE_M, 0.0);
        let mut controller = ControllerConfig::new(i as u8 + 1, home);
        controller.parameters.push((Parameter::WPNAV_SPEED, 1000.0));
        (agent, FlightController::new(controller, 100 * seed + i as u64, Instant::ZERO))
    });
    let channel = Channel::new(Model::Unrestricted, Draw::PerPacket, seed, COUNT);
    let mut world = World::new(ORIGIN, vehicles.collect(), channel, 5.0);
    world.speak_when_spoken_to();
    // The first leg is across the row, the second along it.
    let mission = [(0.0, 0.0), (0.0, 40.0), (300.0, 40.0)].map(|(east_m, north_m)| {
        let place = at(east_m, north_m);
        Point { latitude_e7: place.latitude_e7, longitude_e7: place.longitude_e7, height_mm: 15_000 }
    });
    world.mission(0, &mission);
    world
}

/// Sets up, starts, and flies until all are on the leg along the row, and so long.
fn along_the_row(seed: u64, after: Duration) -> World {
    let mut world = world(seed);
    let mut set_up = [false; COUNT];
    while (0..COUNT).any(|i| world.phase(i) != Phase::Moving || world.truth(i).local.x < 2.0) {
        world.run_until(world.now() + Duration::from_millis(100));
        assert!(world.now() < Instant::from_secs(200), "never along the row");
        for (i, set_up) in set_up.iter_mut().enumerate() {
            let id = format!("{}", world.now().as_millis());
            if !*set_up {
                *set_up = world.command(i, &id, Command::Setup) == Reply::Accepted;
            } else if (0..COUNT).all(|j| world.phase(j) == Phase::Ready) {
                (0..COUNT).for_each(|j| drop(world.command(j, "start", Command::Start)));
            }
        }
    }
    world.run_until(world.now() + after);
    world
}

#[test]
fn the_row_behind_comes_to_stand_clear_of_one_that_stops() {
    for (seed, share, stretch_ms) in
        [(0, 0.0, 1), (1, 0.3, 1), (2, 0.3, 1_000), (3, 0.5, 2_000), (14, 0.75, 1_500)]
    {
        for after_s in [0, 4, 8, 16] {
            for stops in 0..COUNT {
                for unsaid in [false, true] {
                    let mut world = along_the_row(seed, Duration::from_secs(after_s));
                    let now = world.now();
                    let until = now + Duration::from_secs(20);
                    let stretch = Duration::from_millis(stretch_ms);
                    world.inflict(now, Fault::Bursts { share, stretch, until });
                    if unsaid {
                        // Its guardian brakes: nobody is told.
                        world.inflict(now, Fault::CompanionDies { vehicle: stops, guarded: true });
                    } else {
                        assert_eq!(world.command(stops, "hold", Command::Hold), Reply::Accepted);
                    }
                    world.run_until(until);
                    let nearest_m = world.observer().swarm().separation_min_m;
                    let case = format!(
                        "seed {seed}, {share} of {stretch_ms} ms lost, {stops} after {after_s} s, unsaid {unsaid}"
                    );
                    assert!(nearest_m > 5.0, "{case}: {nearest_m:.2} m");
                }
            }
        }
    }
}

/// Nobody needs to hold in such a row while all fly as they should: they arrive as soon as the first alone would.
#[test]
fn a_row_that_nobody_stops_flies_through() {
    for seed in 0..6 {
        let mut world = along_the_row(seed, Duration::ZERO);
        let begun = world.now();
        while (0..COUNT).any(|i| world.phase(i) == Phase::Moving) {
            let modes: Vec<_> = (0..COUNT).map(|i| world.truth(i).mode).collect();
            assert!(modes.iter().all(|mode| *mode == Mode::Guided), "seed {seed}: {modes:?}");
            world.run_until(world.now() + Duration::from_millis(200));
        }
        assert!(world.now().since(begun) > Duration::from_secs(30), "seed {seed}");
    }
}
