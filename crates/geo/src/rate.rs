//! How much comes in a second.

use crate::{Duration, Instant};

/// A sum is divided by the time that it took once it took this long.
const WINDOW: Duration = Duration::from_secs(5);

/// How much came in a second of late, for people: over the last whole window of 5 s, and before there is one over what has passed
/// of the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// When the present window began, and what came in it.
    window: Option<(Instant, u32)>,
    last: Option<u32>,
}

impl Rate {
    /// So much came.
    pub fn add(&mut self, now: Instant, amount: u32) {
        let (since, sum) = self.window.unwrap_or((now, 0));
        let passed = now.since(since);
        self.window = if passed < WINDOW {
            Some((since, sum.saturating_add(amount)))
        } else {
            self.last = (passed < WINDOW * 2).then(|| per_second(sum, passed));
            Some((now, amount))
        };
    }

    /// How much comes in a second; 0 after two windows without any.
    pub fn per_second(&self, now: Instant) -> u32 {
        match self.window {
            Some((since, sum)) if now.since(since) < WINDOW * 2 => {
                self.last.unwrap_or_else(|| per_second(sum, now.since(since)))
            }
            Some(_) | None => 0,
        }
    }
}

/// What came in less than a second came in one.
fn per_second(sum: u32, passed: Duration) -> u32 {
    let us = passed.max(Duration::from_secs(1)).as_micros();
    u32::try_from(u128::from(sum) * 1_000_000 / us).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_last_five_seconds_and_ends_when_nothing_comes() {
        let mut rate = Rate::default();
        assert_eq!(rate.per_second(Instant::from_secs(9)), 0);
        let mut at = |ms: u64, amount: u32| {
            rate.add(Instant::from_millis(ms), amount);
            rate.per_second(Instant::from_millis(ms))
        };
        assert_eq!(at(100_000, 600), 600);
        for second in 101..105 {
            assert!((600..=1_200).contains(&at(second * 1_000, 600)));
        }
        assert_eq!(at(105_000, 600), 600);
        for second in 106..111 {
            at(second * 1_000, 100);
        }
        // The window that began with 600.
        assert_eq!(at(111_000, 100), 200);
        for second in 112..116 {
            at(second * 1_000, 100);
        }
        assert_eq!(at(116_000, 100), 100);
        assert_eq!(rate.per_second(Instant::from_secs(126)), 0, "nothing comes any more");
        rate.add(Instant::from_secs(500), 50);
        assert_eq!(rate.per_second(Instant::from_secs(500)), 50, "what was before the gap is forgotten");
        rate.add(Instant::ZERO, u32::MAX);
        assert_eq!(rate.per_second(Instant::ZERO), u32::MAX, "a clock that goes back, and a sum at its end");
    }
}
