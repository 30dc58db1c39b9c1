//! Whether a flight in real time kept its pace: one that fell behind is no result, whatever its
//! table says.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use wingbeat_geo::Instant;

use crate::sitl::RATE_LEAST;

/// A sample that is later than this is late: after 1 s an aircraft takes its flight controller for
/// silent.
const LATE: Duration = Duration::from_millis(500);

/// The samples of a flight, and those that were late.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    samples: AtomicU32,
    late: AtomicU32,
}

impl Pace {
    /// Counts a sample that was due at `at` and taken `now`.
    pub(crate) fn sample(&self, at: Instant, now: Instant) {
        self.samples.fetch_add(1, Ordering::Relaxed);
        self.late.fetch_add(u32::from(now.since(at) > LATE), Ordering::Relaxed);
    }

    /// The share of the samples that were in time. Without a sample nothing is known.
    fn share(&self) -> Option<f64> {
        let samples = self.samples.load(Ordering::Relaxed);
        let in_time = samples.saturating_sub(self.late.load(Ordering::Relaxed));
        (samples > 0).then(|| f64::from(in_time) / f64::from(samples))
    }

    /// Returns why the figures of the flight are no result; nothing where it kept pace.
    pub(crate) fn refusal(&self) -> Option<String> {
        let cure = "this machine was too slow, and the figures above are no result. Fly fewer aircraft, or a smaller --speed.";
        match self.share() {
            None => Some(format!("REFUSED: found no sample of the flight, expected some: {cure}")),
            Some(share) if share < RATE_LEAST => Some(format!(
                "REFUSED: found {share:.3} of the samples in time, expected {RATE_LEAST} or more: {cure}"
            )),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flight_that_fell_behind_is_no_result() {
        let pace = Pace::default();
        assert!(pace.refusal().is_some_and(|why| why.contains("found no sample")));
        for i in 0..95 {
            pace.sample(Instant::from_secs(i), Instant::from_secs(i) + LATE);
        }
        for i in 0..5 {
            pace.sample(Instant::from_secs(i), Instant::from_secs(i + 1));
        }
        assert_eq!(pace.refusal(), None);
        pace.sample(Instant::from_secs(1), Instant::from_secs(3));
        assert!(pace.refusal().is_some_and(|why| why.contains("found 0.941 of the samples in time")));
    }
}
