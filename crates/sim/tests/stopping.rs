//! Aircraft that fly behind others, through all layers: flight controllers that report four times a second, orders that
//! wait for a report, brakes that take their time. Whichever aircraft stops, the row behind it stops clear of it.

use crate::common::row;

use wingbeat_agent::{Command, Phase, Reply};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::Duration;
use wingbeat_sim::faults::Fault;
use wingbeat_sim::flight_controller::Parameter;
use wingbeat_sim::world::World;

use self::row::Row;

const COUNT: usize = 5;
/// Between neighbours in the formation of 81 aircraft of thesis Figure 6.13.
const DISTANCE_M: f64 = 18.74;

/// Five, for 300 m along their row at 10 m/s: flies until all are on that leg, and so long.
fn along_the_row(seed: u64, after: Duration) -> World {
    let row = Row {
        count: COUNT,
        distance_m: DISTANCE_M,
        ground_m: DISTANCE_M,
        accepts_close: true,
        parameters: &[(Parameter::WPNAV_SPEED, 1000.0)],
        // The first leg is across the row, the second along it.
        mission_m: &[(0.0, 0.0), (0.0, 40.0), (300.0, 40.0)],
        seed,
        orders_wait: true,
        ..Row::default()
    };
    let is_along =
        |world: &World| row::all_move(world, COUNT) && (0..COUNT).all(|i| world.truth(i).local.x >= 2.0);
    row.fly(is_along, after)
}

#[test]
fn the_row_behind_stops_clear_of_an_aircraft_that_stops() {
    for (seed, share, stretch_ms) in
        [(0, 0.0, 1), (1, 0.3, 1), (2, 0.3, 1_000), (3, 0.5, 2_000), (14, 0.75, 1_500)]
    {
        for after_s in [0, 4, 8, 16] {
            for stops in 0..COUNT {
                for unannounced in [false, true] {
                    let mut world = along_the_row(seed, Duration::from_secs(after_s));
                    let now = world.now();
                    let until = now + Duration::from_secs(20);
                    let stretch = Duration::from_millis(stretch_ms);
                    world.inflict(now, Fault::Bursts { share, stretch, until });
                    if unannounced {
                        // Its guardian brakes, and no datagram reports it.
                        world.inflict(now, Fault::CompanionDies { vehicle: stops, guarded: true });
                    } else {
                        assert_eq!(world.command(stops, "hold", Command::Hold), Reply::Accepted);
                    }
                    world.run_until(until);
                    let nearest_m = world.observer().swarm().separation_min_m;
                    let case = format!(
                        "seed {seed}, {share} of {stretch_ms} ms lost, {stops} after {after_s} s, unannounced {unannounced}"
                    );
                    assert!(nearest_m > 5.0, "{case}: {nearest_m:.2} m");
                }
            }
        }
    }
}

/// No aircraft of such a row holds while all fly as they should: they arrive as soon as the first alone would.
#[test]
fn a_row_without_a_stop_flies_through() {
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
