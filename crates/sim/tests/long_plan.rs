//! A plan in several datagrams through all layers: it is distributed over a radio that loses many of them, loaded into
//! every flight controller, and flown to its end.

use crate::common::row;

use wingbeat_agent::StateId;
use wingbeat_geo::{Duration, Instant};
use wingbeat_sim::faults::Fault;

use self::row::Row;

const COUNT: usize = 5;
const WAYPOINTS: usize = 150;

/// To and fro in lanes of ten waypoints, 3 m from one to the next.
fn lanes_m() -> Vec<(f64, f64)> {
    let place = |n: usize| {
        let (lane, along) = (n / 10, n % 10);
        let along = if lane % 2 == 0 { along } else { 9 - along };
        (3.0 * lane as f64, 3.0 * along as f64)
    };
    (0..WAYPOINTS).map(place).collect()
}

#[test]
fn a_swarm_flies_more_waypoints_than_one_datagram_carries_while_the_radio_loses_many() {
    for (seed, fault) in [
        (1, Fault::Loss { share: 0.5, until: Instant::NEVER }),
        (2, Fault::Bursts { share: 0.3, stretch: Duration::from_secs(1), until: Instant::NEVER }),
    ] {
        let row = Row { count: COUNT, mission_m: &lanes_m(), seed, fault: Some(fault), ..Row::default() };
        let mut world = row.fly(|world| row::all_move(world, COUNT), Duration::ZERO);
        let plan = world.status(0).plan_hash;
        assert!(plan.is_some(), "{seed}");
        for i in 0..COUNT {
            let status = world.status(i);
            assert_eq!(
                (status.plan_hash, status.route_len),
                (plan, WAYPOINTS as u16),
                "{seed}: aircraft {i}"
            );
        }
        world.run_until(Instant::from_secs(900));
        for i in 0..COUNT {
            let status = world.status(i);
            assert_eq!(
                (status.state, world.truth(i).armed),
                (StateId::Finished, false),
                "{seed}: aircraft {i}"
            );
        }
        let nearest_m = world.observer().swarm().separation_min_m;
        assert!(nearest_m > 5.0, "{seed}: {nearest_m} m");
    }
}
