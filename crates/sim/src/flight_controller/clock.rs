//! The flight controller's own clock: when it ticks, by the world's clock, and what time it then has.
//!
//! ArduCopter in SITL runs on a time of its own, which it keeps near that on the wall by sleeping. What it loses while
//! the machine has other work it does not catch up, so that several on one machine walk away from each other.

use wingbeat_geo::{Duration, Instant};

use super::TICK;
use crate::rng::{Pcg64Mcg, normal};

/// Ticks in a second; for so many of them the clock keeps its rate.
const TICKS_PER_S: u32 = 50;

#[derive(Debug)]
pub(super) struct Clock {
    walk_s: f64,
    generator: Pcg64Mcg,
    /// By the world's clock.
    next_tick: Instant,
    /// The same by its own.
    own: Instant,
    /// Ticks until the rate changes, and from one to the next by the world's clock.
    left: u32,
    period: Duration,
}

impl Clock {
    /// One that shows the world's time at `now`, and ticks then.
    pub(super) fn new(walk_s: f64, generator: Pcg64Mcg, now: Instant) -> Self {
        Self { walk_s, generator, next_tick: now, own: now, left: 0, period: TICK }
    }

    /// The next tick if it is due at `now`: its time by the own clock.
    pub(super) fn tick(&mut self, now: Instant) -> Option<Instant> {
        if self.next_tick > now {
            return None;
        }
        if self.walk_s > 0.0 {
            if self.left == 0 {
                self.left = TICKS_PER_S;
                // A draw is at most 6, the walk at most 0.1 s: time never stands still.
                let second_s = 1.0 + self.walk_s * normal(&mut self.generator);
                let period_us = libm::round(second_s * 1e6 / f64::from(TICKS_PER_S));
                self.period = Duration::from_micros(period_us as u64);
            }
            self.left -= 1;
        }
        let own = self.own;
        self.own = own + TICK;
        self.next_tick = self.next_tick + self.period;
        Some(own)
    }

    /// When the next tick is due, by the world's clock.
    pub(super) fn next_tick(&self) -> Instant {
        self.next_tick
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::child;

    /// How far a clock is behind after so many seconds of its own.
    fn behind_s(walk_s: f64, index: u64, seconds: u32) -> f64 {
        let mut clock = Clock::new(walk_s, child(1, "clock", index), Instant::ZERO);
        let (mut own, end) = (Instant::ZERO, Instant::from_secs(2 * u64::from(seconds)));
        for _ in 0..seconds * TICKS_PER_S {
            own = clock.tick(end).unwrap();
        }
        clock.next_tick().as_secs_f64() - (own + TICK).as_secs_f64()
    }

    #[test]
    fn a_clock_that_does_not_walk_has_the_time_of_the_world() {
        assert_eq!(behind_s(0.0, 0, 1_000), 0.0);
    }

    #[test]
    fn clocks_walk_apart_with_the_root_of_time() {
        for (seconds, expected_s) in [(1, 0.02), (100, 0.2)] {
            let squares = (0..400).map(|i| behind_s(0.02, i, seconds).powi(2));
            let found_s = (squares.sum::<f64>() / 400.0).sqrt();
            assert!((found_s / expected_s - 1.0).abs() < 0.1, "{seconds} s: {found_s}");
        }
        assert_eq!(behind_s(0.02, 3, 50), behind_s(0.02, 3, 50), "the same seed, the same clock");
    }
}
