//! Whether two aircraft are about to be at one place at one time (thesis sections 5.1.4 and 5.3.1.2).

use wingbeat_geo::DVec3;

use super::config::{Horizon, Prediction, Risk};

/// Where one aircraft is and will be, by its beacon.
#[derive(Clone, Copy, Debug)]
pub struct Trajectory<'a> {
    /// The current location and the predicted ones.
    pub locations: &'a [DVec3],
    /// Age of the current location now, seconds.
    pub age_s: f64,
    /// Speed over ground, metres per second.
    pub speed_m_s: f64,
    /// Whether it flies its mission (state Normal).
    pub is_normal: bool,
    /// Whether only its current location counts: it stands, and the others are its mission's line.
    pub stands: bool,
}

impl Trajectory<'_> {
    /// Whether its locations are tied to times.
    fn is_timed(&self, moving_m_s: f64) -> bool {
        self.is_normal && self.speed_m_s >= moving_m_s && self.locations.len() > 1
    }
}

/// Where we would be when the risk is there: the first of our locations that the other comes too near.
pub fn between(
    ours: &Trajectory<'_>,
    other: &Trajectory<'_>,
    risk: &Risk,
    prediction: &Prediction,
) -> Option<DVec3> {
    let timed = if risk.standing_at_any_time {
        [ours, other].iter().all(|t| t.is_timed(prediction.moving_m_s))
    } else {
        other.is_normal
    };
    let theirs =
        if other.stands { &other.locations[..other.locations.len().min(1)] } else { other.locations };
    let reach_m = match prediction.horizon {
        Horizon::Fixed { distance_m, .. } => distance_m,
        // The locations reach no farther than it matters.
        Horizon::BySpeed { .. } => f64::INFINITY,
    };
    let here = ours.locations.first()?.truncate();
    for (i, our) in ours.locations.iter().enumerate() {
        if our.truncate().distance(here) > reach_m {
            break;
        }
        for (j, their) in theirs.iter().enumerate() {
            if timed {
                // Ages count backwards: an older location is of an earlier time.
                let between_s = (i as f64 - j as f64) * prediction.hop_s - ours.age_s + other.age_s;
                if libm::fabs(between_s) >= risk.time_s {
                    continue;
                }
            }
            if libm::fabs(our.z - their.z) < risk.height_m
                && our.truncate().distance_squared(their.truncate()) < risk.distance_m * risk.distance_m
            {
                return Some(*our);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::config::Config;
    use super::*;
    use std::vec::Vec;

    fn line(from: (f64, f64), step: (f64, f64), n: usize) -> Vec<DVec3> {
        (0..n).map(|i| DVec3::new(from.0 + step.0 * i as f64, from.1 + step.1 * i as f64, 20.0)).collect()
    }

    fn trajectory(locations: &[DVec3]) -> Trajectory<'_> {
        Trajectory { locations, age_s: 0.0, speed_m_s: 10.0, is_normal: true, stands: false }
    }

    fn find(a: &Trajectory<'_>, b: &Trajectory<'_>) -> Option<DVec3> {
        let c = Config::mbcap_e();
        between(a, b, &c.risk, &c.prediction)
    }

    #[test]
    fn mbcap_04_crossing_at_one_time_is_a_risk_and_at_another_is_none() {
        let east = line((0.0, 0.0), (5.0, 0.0), 11);
        let north = line((40.0, -40.0), (0.0, 5.0), 11);
        let at = find(&trajectory(&east), &trajectory(&north)).unwrap();
        assert_eq!(at.truncate().x, 30.0, "30 east and 10 south of the crossing at 3 s: 14 m apart");
        // The other was there 3 s earlier.
        let late = Trajectory { age_s: 3.0, ..trajectory(&north) };
        assert_eq!(find(&trajectory(&east), &late), None);
        // Height separates from 50 m on.
        let high: Vec<_> = north.iter().map(|p| *p + DVec3::new(0.0, 0.0, 50.0)).collect();
        assert_eq!(find(&trajectory(&east), &trajectory(&high)), None);
    }

    #[test]
    fn mbcap_04_a_standing_aircraft_is_an_obstacle_at_any_time_in_mbcap_e_only() {
        let east = line((0.0, 0.0), (5.0, 0.0), 11);
        let stands = line((45.0, 5.0), (0.0, 0.0), 1);
        let standing = Trajectory { speed_m_s: 0.0, ..trajectory(&stands) };
        assert!(find(&trajectory(&east), &standing).is_some());
        let original = Config::mbcap();
        let found = between(&trajectory(&east), &standing, &original.risk, &original.prediction);
        assert_eq!(found, None, "both are Normal: half a second must match");
        let still = Trajectory { is_normal: false, stands: true, ..standing };
        assert!(between(&trajectory(&east), &still, &original.risk, &original.prediction).is_some());
    }

    #[test]
    fn mbcap_04_below_which_speed_locations_have_no_times_is_configured() {
        let east = line((0.0, 0.0), (5.0, 0.0), 11);
        let north = line((40.0, -40.0), (0.0, 5.0), 11);
        // It was at the crossing 3 s earlier: no risk while its locations have times.
        let late = Trajectory { age_s: 3.0, speed_m_s: 2.0, ..trajectory(&north) };
        let mut config = Config::mbcap_e();
        assert_eq!(between(&trajectory(&east), &late, &config.risk, &config.prediction), None);
        config.prediction.moving_m_s = 2.5;
        assert!(between(&trajectory(&east), &late, &config.risk, &config.prediction).is_some());
    }

    #[test]
    fn of_one_that_stands_only_the_place_counts() {
        let east = line((0.0, 0.0), (5.0, 0.0), 11);
        let mission = line((45.0, 100.0), (0.0, -50.0), 3);
        assert_eq!(
            find(
                &trajectory(&east),
                &Trajectory { is_normal: false, stands: true, speed_m_s: 0.0, ..trajectory(&mission) }
            ),
            None
        );
        assert!(
            find(
                &trajectory(&east),
                &Trajectory { is_normal: false, speed_m_s: 0.0, ..trajectory(&mission) }
            )
            .is_some()
        );
    }

    #[test]
    fn the_original_reacts_within_90_m_only() {
        let c = Config::mbcap();
        let east = line((0.0, 0.0), (5.0, 0.0), 51);
        let found = |x| {
            let west = line((x, 0.0), (-5.0, 0.0), 51);
            between(&trajectory(&east), &trajectory(&west), &c.risk, &c.prediction)
        };
        assert!(found(190.0).is_some(), "meets at 95 m, too near from 85 m on");
        assert!(found(230.0).is_none(), "meets at 115 m, too near from 105 m on");
    }
}
