//! Encounters: how near two aircraft came, each time that they came near each other.
//!
//! An encounter begins when two flying aircraft are nearer than 30 m and ends when they are 60 m apart, so
//! two that circle each other count once. There are two measures: the closest approach in
//! space within each interval between two samples (nothing slips between samples), and what the thesis'
//! simulator would have seen, which samples the distance over ground and the heights twice a second.

use serde::{Deserialize, Serialize};
use wingbeat_agent::Phase;
use wingbeat_geo::approach::{horizontal_and_vertical_m, nearest_between};
use wingbeat_geo::{Duration, Instant};

use crate::observer::Sample;

/// Nearer than this is an encounter, metres.
pub const NEAR_M: f64 = 30.0;
/// Farther apart than this it is over, metres.
pub const APART_M: f64 = 60.0;
/// How often the thesis' simulator samples.
const SAMPLED_PERIOD: Duration = Duration::from_millis(500);
/// And how far apart in height it takes two to be clear of each other, metres.
const SAMPLED_HEIGHT_M: f64 = 20.0;

/// Two aircraft that came within the distance that counts as an encounter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encounter {
    /// The pair, the lower index first.
    pub pair: (usize, usize),
    /// When they were closest.
    pub at: Instant,
    /// How close, in space, within the intervals between samples, metres.
    pub closest_m: f64,
    /// How close over ground at the thesis' samples; infinite if it never saw them at similar heights.
    #[serde(with = "wingbeat_geo::unbounded")]
    pub sampled_m: f64,
    /// Whether one of them was landing at the end of its mission when they were closest.
    pub landing: bool,
}

/// All encounters of a flight.
#[derive(Default)]
pub struct Encounters {
    all: Vec<Encounter>,
    /// For each pair, lower index times count plus higher, its encounter if one is under way.
    open: Vec<Option<u32>>,
    sampled_at: Option<Instant>,
}

impl Encounters {
    /// Those that were, and those under way, in the order in which they began.
    pub fn all(&self) -> &[Encounter] {
        &self.all
    }

    /// Compares the positions before and now.
    pub(crate) fn sample(&mut self, now: Instant, last: &[Sample], samples: &[Sample]) {
        let count = samples.len();
        self.open.resize(count * count, None);
        let sampled = self.sampled_at.is_none_or(|at| now.since(at) >= SAMPLED_PERIOD);
        if sampled {
            self.sampled_at = Some(now);
        }
        let flies = |s: &Sample| s.armed && !s.landed;
        for a in (0..count).filter(|&a| flies(&samples[a])) {
            for b in (a + 1..count).filter(|&b| flies(&samples[b])) {
                let (before, after) = (last[a].local - last[b].local, samples[a].local - samples[b].local);
                let place = a * count + b;
                // Most pairs are far apart; what they can have flown since the last sample is less than this.
                if after.x.abs().max(after.y.abs()) > APART_M {
                    self.open[place] = None;
                    continue;
                }
                let closest_m = nearest_between(before, after).length();
                if self.open[place].is_none() && closest_m < NEAR_M {
                    self.open[place] = Some(self.all.len() as u32);
                    let (closest_m, sampled_m) = (f64::INFINITY, f64::INFINITY);
                    self.all.push(Encounter { pair: (a, b), at: now, closest_m, sampled_m, landing: false });
                }
                let Some(index) = self.open[place] else { continue };
                let encounter = &mut self.all[index as usize];
                if closest_m < encounter.closest_m {
                    (encounter.closest_m, encounter.at) = (closest_m, now);
                    encounter.landing = [a, b].iter().any(|&i| samples[i].phase == Phase::Ending);
                }
                let (horizontal_m, vertical_m) = horizontal_and_vertical_m(after);
                if sampled && vertical_m < SAMPLED_HEIGHT_M {
                    encounter.sampled_m = encounter.sampled_m.min(horizontal_m);
                }
                if after.length() > APART_M {
                    self.open[place] = None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_geo::DVec3;

    fn at(x: f64, y: f64) -> Sample {
        Sample {
            local: DVec3::new(x, y, 20.0),
            velocity: DVec3::ZERO,
            armed: true,
            landed: false,
            phase: Phase::Moving,
            leader: false,
            slot_offset: None,
            heading_rad: 0.0,
            slot_in_heading: None,
        }
    }

    /// Two on parallel lines `y` metres apart, towards each other at 20 m/s, and back.
    fn fly(y: f64, turn_at_m: f64) -> Vec<Encounter> {
        let mut encounters = Encounters::default();
        let mut last = [at(0.0, 0.0), at(-100.0, y)];
        let there = (0..).map(|k| -100.0 + 2.0 * f64::from(k)).take_while(|x| *x <= turn_at_m);
        let there: Vec<f64> = there.collect();
        for (k, x) in there.iter().chain(there.iter().rev()).enumerate() {
            let now = [at(0.0, 0.0), at(*x, y)];
            encounters.sample(Instant::from_millis(k as u64 * 100), &last, &now);
            last = now;
        }
        encounters.all().to_vec()
    }

    #[test]
    fn two_that_stay_near_meet_once_and_two_that_part_meet_again() {
        let once = fly(4.5, 50.0);
        assert_eq!((once.len(), once[0].pair), (1, (0, 1)));
        assert_eq!(once[0].closest_m, 4.5);
        let twice = fly(4.5, 100.0);
        assert_eq!(twice.iter().map(|e| e.closest_m).collect::<Vec<_>>(), [4.5, 4.5]);
        assert!(fly(31.0, 100.0).is_empty());
    }

    #[test]
    fn the_thesis_rule_misses_what_happens_between_its_samples() {
        // Its samples fall on -100, -90, … -10, 0: seen; shifted by 5 m it sees 5 m at best.
        assert_eq!(fly(3.0, 50.0)[0].sampled_m, 3.0);
        let mut encounters = Encounters::default();
        let mut last = [at(0.0, 0.0), at(-95.0, 3.0)];
        for k in 0..90u32 {
            let now = [at(0.0, 0.0), at(-95.0 + 2.0 * f64::from(k), 3.0)];
            encounters.sample(Instant::from_millis(u64::from(k) * 100), &last, &now);
            last = now;
        }
        let [e] = encounters.all() else { panic!("one encounter") };
        assert_eq!(e.closest_m, 3.0);
        assert!((e.sampled_m - DVec3::new(5.0, 3.0, 0.0).length()).abs() < 1e-9, "{}", e.sampled_m);
    }

    #[test]
    fn an_aircraft_on_the_ground_has_no_encounter() {
        let mut encounters = Encounters::default();
        let landed = Sample { landed: true, ..at(3.0, 0.0) };
        encounters.sample(Instant::ZERO, &[at(0.0, 0.0), landed], &[at(0.0, 0.0), landed]);
        assert!(encounters.all().is_empty());
    }
}
