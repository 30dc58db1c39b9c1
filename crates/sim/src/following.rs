//! How well a formation follows a leader that turns: the errors of thesis section 7.2.2, over the truth.
//!
//! The formation error of a slave (equations 7.2 to 7.4) is its distance from where it should be around the
//! mean place of all slaves; the global error its distance from where it should be around the leader. Both turn
//! the formation by the leader's heading of that moment. The thesis prints mean, maximum and deviation without
//! saying of what; three readings are kept: of every sample, of the mean over slaves at each time, and of the
//! mean over time of each slave.
//!
//! Where the slots' mean is not the leader's slot, equation 7.3 would count that as an error of every aircraft; here
//! offsets are taken from the slots' mean in that equation. For the published formations it is the same.

use serde::{Deserialize, Serialize};
use wingbeat_geo::DVec2;

use crate::observer::Spread;

/// One kind of error, in its three readings, metres.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    samples: Spread,
    times: Spread,
    slaves: Vec<Spread>,
}

impl Errors {
    /// Of every slave at every time.
    pub fn of_samples(&self) -> &Spread {
        &self.samples
    }
    /// Of the mean over slaves at every time.
    pub fn of_times(&self) -> &Spread {
        &self.times
    }
    /// Of the mean over time of every slave.
    pub fn of_slaves(&self) -> Spread {
        let mut all = Spread::default();
        self.slaves.iter().filter(|s| s.count() > 0).for_each(|s| all.add(s.mean()));
        all
    }
    fn add(&mut self, errors: impl ExactSizeIterator<Item = f64>) {
        let (count, mut sum) = (errors.len(), 0.0);
        self.slaves.resize(count.max(self.slaves.len()), Spread::default());
        for (slave, error_m) in errors.enumerate() {
            self.samples.add(error_m);
            self.slaves[slave].add(error_m);
            sum += error_m;
        }
        if count > 0 {
            self.times.add(sum / count as f64);
        }
    }
}

/// Both errors of a flight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Following {
    /// Against the slaves' own mean.
    pub formation: Errors,
    /// Against the leader.
    pub global: Errors,
    /// The closest that two came to each other over the ground while both flew and followed, metres: a slave and the
    /// leader, and two slaves. Nothing before the first sample.
    pub nearest_m: Option<Nearest>,
}

/// How close they came over the ground, metres.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nearest {
    /// A slave and the leader.
    #[serde(with = "wingbeat_geo::unbounded")]
    pub to_leader: f64,
    /// Two slaves; infinite where there is one.
    #[serde(with = "wingbeat_geo::unbounded")]
    pub between_slaves: f64,
}

/// One slave at one time, metres east and north.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slave {
    /// Position, east and north, metres.
    pub place: DVec2,
    /// Where its slot lies from the leader's: right of the leader's nose, and ahead.
    pub slot: DVec2,
    /// Whether it is in the air: what stands on the ground is near nothing in flight.
    pub flies: bool,
}

impl Following {
    /// Adds one sample.
    pub fn sample(&mut self, leader: DVec2, heading_rad: f64, slaves: &[Slave]) {
        if slaves.is_empty() {
            return;
        }
        let (sin, cos) = libm::sincos(heading_rad);
        let turned = |o: DVec2| DVec2::new(o.x * cos + o.y * sin, o.y * cos - o.x * sin);
        let count = slaves.len() as f64;
        let mean_place = slaves.iter().map(|s| s.place).sum::<DVec2>() / count;
        let mean_slot = slaves.iter().map(|s| s.slot).sum::<DVec2>() / count;
        let from = |origin: DVec2, middle: DVec2| {
            slaves.iter().map(move |s| (origin + turned(s.slot - middle)).distance(s.place))
        };
        self.formation.add(from(mean_place, mean_slot));
        self.global.add(from(leader, DVec2::ZERO));
        let far = Nearest { to_leader: f64::INFINITY, between_slaves: f64::INFINITY };
        let nearest = self.nearest_m.get_or_insert(far);
        for (i, slave) in slaves.iter().enumerate() {
            if !slave.flies {
                continue;
            }
            nearest.to_leader = nearest.to_leader.min(slave.place.distance(leader));
            for other in slaves[..i].iter().filter(|other| other.flies) {
                nearest.between_slaves = nearest.between_slaves.min(slave.place.distance(other.place));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slave(place: [f64; 2], slot: [f64; 2]) -> Slave {
        Slave { place: place.into(), slot: slot.into(), flies: true }
    }

    #[test]
    fn a_lag_is_global_and_a_turn_is_of_the_formation() {
        let mut following = Following::default();
        // The leader flies east at (20, 0), nose to the north; the slaves are right and left of it, 20 m behind.
        let slaves = [slave([50.0, 0.0], [50.0, 0.0]), slave([-50.0, 0.0], [-50.0, 0.0])];
        following.sample(DVec2::new(20.0, 0.0), 0.0, &slaves);
        assert_eq!(following.global.of_samples().mean(), 20.0);
        assert_eq!(following.formation.of_samples().mean(), 0.0);
        // Its nose turns to the east: right is south now, and both are 50·√2 from there.
        following.sample(DVec2::ZERO, core::f64::consts::FRAC_PI_2, &slaves);
        let off_m = 50.0 * core::f64::consts::SQRT_2;
        assert!((following.formation.of_samples().max() - off_m).abs() < 1e-9);
        assert_eq!(following.formation.of_times().count(), 2);
        assert!((following.formation.of_slaves().mean() - off_m / 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_lopsided_formation_is_no_error() {
        let mut following = Following::default();
        let slaves = [slave([60.0, 7.0], [50.0, 0.0]), slave([110.0, 7.0], [100.0, 0.0])];
        following.sample(DVec2::new(10.0, 7.0), 0.0, &slaves);
        assert!(following.formation.of_samples().max() < 1e-9);
        assert!(following.global.of_samples().max() < 1e-9);
        assert_eq!(following.global.of_slaves().count(), 2);
        assert_eq!(following.nearest_m, Some(Nearest { to_leader: 50.0, between_slaves: 50.0 }));
    }
}
