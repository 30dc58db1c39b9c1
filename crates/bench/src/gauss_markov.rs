//! Random missions over a square (thesis section 5.3.2.3): where aircraft start (algorithm 4) and the
//! Gauss-Markov walks that they fly (algorithm 5).
//!
//! Each aircraft's walk has a generator of its own, so a crowd of 25 flies the same walks for every
//! protocol. Heights are the same for all: nothing but the protocol keeps them apart.

use wingbeat_geo::{DVec2, Frame};
use wingbeat_sim::rng::{self, Pcg64Mcg};
use wingbeat_wire::Point;

use crate::scenario::ORIGIN;

/// What a crowd's missions are made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Walk {
    /// Side of the square around [`ORIGIN`], metres.
    pub side_m: f64,
    /// Starts are at least so far apart, metres.
    pub start_distance_m: f64,
    /// Waypoints of each mission.
    pub waypoints: usize,
    /// Shortest and longest leg, metres.
    pub leg_m: (f64, f64),
    /// 0: any heading at each waypoint; 1: always straight on.
    pub linearity: f64,
    /// Height above home, metres.
    pub height_m: f64,
}

impl Walk {
    /// What cannot be walked, with what was found and what was expected.
    ///
    /// # Errors
    /// The first number that is out of its range.
    pub fn check(&self, aircraft: usize) -> anyhow::Result<()> {
        let Self { side_m, start_distance_m, waypoints, leg_m, linearity, height_m: _ } = *self;
        anyhow::ensure!((100.0..=7_000.0).contains(&side_m), "side_m: found {side_m}, expected 100 to 7000");
        // Thesis: else they may not fit the area.
        let most = side_m / (aircraft.max(1) as f64).sqrt();
        anyhow::ensure!(
            (0.0..most).contains(&start_distance_m),
            "start_distance_m: found {start_distance_m}, expected less than {most:.0} for {aircraft} aircraft"
        );
        // No more are drawn than an aircraft takes; too few are the protocol's to refuse.
        let room = wingbeat_protocol::ROUTE_MAX;
        anyhow::ensure!(waypoints <= room, "waypoints: found {waypoints}, expected {room} at most");
        // Thesis: a leg of at most half a side always finds a heading that stays inside.
        anyhow::ensure!(
            1.0 <= leg_m.0 && leg_m.0 <= leg_m.1 && leg_m.1 < side_m / 2.0,
            "leg_m: found {} to {}, expected 1 or more, and less than half of side_m",
            leg_m.0,
            leg_m.1
        );
        anyhow::ensure!((0.0..=1.0).contains(&linearity), "linearity: found {linearity}, expected 0 to 1");
        Ok(())
    }

    /// One mission per aircraft.
    pub fn missions(&self, aircraft: usize, seed: u64) -> Vec<Vec<Point>> {
        let frame = Frame::new(ORIGIN);
        let point = |at: DVec2| {
            let p = frame.to_position(at.extend(0.0));
            Point {
                latitude_e7: p.latitude_e7,
                longitude_e7: p.longitude_e7,
                height_mm: (self.height_m * 1e3) as i32,
            }
        };
        let starts = self.starts(aircraft, seed);
        let walk = |(i, start): (usize, &DVec2)| {
            let mut rng = rng::child(seed, "mission", i as u64);
            self.walk(*start, &mut rng).into_iter().map(point).collect()
        };
        starts.iter().enumerate().map(walk).collect()
    }

    fn starts(&self, aircraft: usize, seed: u64) -> Vec<DVec2> {
        let mut rng = rng::child(seed, "start", aircraft as u64);
        let mut anywhere = || {
            let mut coordinate = || (rng::uniform(&mut rng) - 0.5) * self.side_m;
            DVec2::new(coordinate(), coordinate())
        };
        let mut starts: Vec<DVec2> = (0..aircraft).map(|_| anywhere()).collect();
        loop {
            let near = |i: usize, starts: &[DVec2]| {
                (i + 1..aircraft).any(|j| starts[i].distance(starts[j]) < self.start_distance_m)
            };
            let Some(i) = (0..aircraft).find(|&i| near(i, &starts)) else { return starts };
            starts[i] = anywhere();
        }
    }

    fn walk(&self, start: DVec2, rng: &mut Pcg64Mcg) -> Vec<DVec2> {
        let full = std::f64::consts::TAU;
        let half_m = self.side_m / 2.0;
        let inside = |at: DVec2| at.x.abs() <= half_m && at.y.abs() <= half_m;
        let mut heading = rng::uniform(rng) * full;
        let mut at = start;
        let mut all = vec![start];
        while all.len() < self.waypoints {
            let leg_m = self.leg_m.0 + rng::uniform(rng) * (self.leg_m.1 - self.leg_m.0);
            let mut spread = full * (1.0 - self.linearity);
            loop {
                let turned = heading + (rng::uniform(rng) - 0.5) * spread;
                let next = at + DVec2::new(libm::sin(turned), libm::cos(turned)) * leg_m;
                if inside(next) {
                    (at, heading) = (next, turned);
                    break;
                }
                // Too near the edge: any heading that leads inward.
                spread = full;
            }
            all.push(at);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CROWD: Walk = Walk {
        side_m: 5_000.0,
        start_distance_m: 100.0,
        waypoints: 100,
        leg_m: (250.0, 500.0),
        linearity: 0.75,
        height_m: 10.0,
    };

    #[test]
    fn starts_are_apart_and_walks_stay_inside() {
        CROWD.check(100).unwrap();
        let starts = CROWD.starts(100, 1);
        for (i, a) in starts.iter().enumerate() {
            assert!(starts[..i].iter().all(|b| a.distance(*b) >= 100.0));
            let walk = CROWD.walk(*a, &mut rng::child(1, "mission", i as u64));
            assert_eq!(walk.len(), 100);
            assert!(walk.iter().all(|p| p.x.abs() <= 2_500.0 && p.y.abs() <= 2_500.0));
            assert!(walk.windows(2).all(|w| (250.0..=500.0).contains(&w[0].distance(w[1]))));
        }
    }

    #[test]
    fn the_published_lengths_and_turns_come_out() {
        let (mut length_m, mut sharp, mut turns) = (0.0, 0, 0);
        for i in 0..200 {
            let walk = CROWD.walk(DVec2::ZERO, &mut rng::child(2, "mission", i));
            length_m += walk.windows(2).map(|w| w[0].distance(w[1])).sum::<f64>() / 200.0;
            for w in walk.windows(3) {
                turns += 1;
                sharp += i32::from((w[1] - w[0]).angle_to(w[2] - w[1]).abs() > 0.79);
            }
        }
        // Thesis: 36.9 km flown, corners cut; 99 legs of 375 m on average.
        assert!((length_m - 37_125.0).abs() < 150.0, "{length_m}");
        // More than 45 degrees only at the edge.
        assert!((2..20).contains(&(sharp * 100 / turns)), "{sharp} of {turns}");
    }

    #[test]
    fn the_same_seed_walks_the_same_and_bad_numbers_are_named() {
        assert_eq!(CROWD.missions(5, 3), CROWD.missions(5, 3));
        assert_ne!(CROWD.missions(5, 3), CROWD.missions(5, 4));
        for (bad, parts) in [
            (Walk { side_m: f64::NAN, ..CROWD }, "side_m: found NaN"),
            (Walk { start_distance_m: 600.0, ..CROWD }, "start_distance_m: found 600"),
            (Walk { waypoints: 601, ..CROWD }, "waypoints: found 601, expected 600 at most"),
            (Walk { leg_m: (250.0, 2_500.0), ..CROWD }, "leg_m: found 250 to 2500"),
            (Walk { linearity: 1.5, ..CROWD }, "linearity: found 1.5"),
        ] {
            let message = bad.check(100).unwrap_err().to_string();
            assert!(message.contains(parts), "{message}");
        }
    }
}
