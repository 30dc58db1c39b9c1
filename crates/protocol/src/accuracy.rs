//! The accuracy of positions that margins count with: larger values count at once, smaller ones only after a while, and a receiver
//! that reports nothing has not become accurate.

use wingbeat_geo::{Duration, Instant};

use crate::Measured;

/// A smaller error counts after it was reported for this time.
const SHRINKS_AFTER: Duration = Duration::from_secs(10);
/// The least standard deviation per axis of an aircraft that has lost its fix, in metres: its flight controller reckons on by its
/// inertial sensors for some seconds.
const WITHOUT_FIX_M: f64 = 2.5;

/// The error that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Accuracy {
    counts_m: Option<f64>,
    /// When so large an error was reported last.
    reported_at: Instant,
    /// The largest error since then.
    since_m: f64,
}

impl Accuracy {
    /// Takes a measurement. Returns the error that counts from now on, in metres; `None` where none was ever known.
    pub(crate) fn take(&mut self, now: Instant, measured: &Measured) -> Option<f64> {
        let reported_m = measured.gnss_error_m.filter(|error_m| error_m.is_finite());
        // Before the first fix nothing is known, and nothing flies.
        let without_fix_m = self.counts_m.filter(|_| measured.is_blind).map(|m| m.max(WITHOUT_FIX_M));
        let error_m = reported_m.or(without_fix_m).or(self.counts_m)?;
        match self.counts_m {
            Some(counts_m) if error_m < counts_m => {
                self.since_m = self.since_m.max(error_m);
                if now.since(self.reported_at) >= SHRINKS_AFTER {
                    *self = Self { counts_m: Some(self.since_m), reported_at: now, since_m: 0.0 };
                }
            }
            Some(_) | None => *self = Self { counts_m: Some(error_m), reported_at: now, since_m: 0.0 },
        }
        self.counts_m
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_fix_shrinks_no_margin_and_a_smaller_error_counts_after_10_s() {
        let mut accuracy = Accuracy::default();
        let mut take = |at_s, gnss_error_m, is_blind| {
            let measured = Measured { gnss_error_m, is_blind, ..Measured::default() };
            accuracy.take(Instant::from_secs(at_s), &measured)
        };
        assert_eq!(take(0, None, true), None, "none was ever known");
        assert_eq!([take(1, Some(0.4), false), take(2, Some(3.0), false)], [Some(0.4), Some(3.0)]);
        assert_eq!([take(3, None, false), take(400, None, true)], [Some(3.0); 2]);
        assert_eq!([take(401, Some(1.0), false), take(409, Some(0.4), false)], [Some(3.0); 2]);
        assert_eq!(take(410, Some(0.4), false), Some(1.0), "the largest of that time");
        assert_eq!(take(420, Some(0.4), false), Some(0.4));
        assert_eq!(take(421, Some(0.4), true), Some(0.4), "it has a fix, and its filter no position yet");
        assert_eq!(take(421, None, true), Some(2.5), "dead reckoning");
        assert_eq!(take(422, Some(f64::NAN), false), Some(2.5));
    }
}
