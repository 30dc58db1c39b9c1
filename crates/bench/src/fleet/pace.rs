//! Whether a fleet kept the pace that was asked of it. Daemons that wake late miss heartbeats and datagrams, and the figures of such
//! a flight are those of the machine.

use wingbeat_geo::Duration;

/// A sample later than this, in simulated time, is late: an agent's deadlines are longer.
const LATE: Duration = Duration::from_millis(500);
/// The least share of samples that are on time.
const SHARE_LEAST: f64 = 0.95;

/// How late the samples of a flight were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pace {
    samples: u32,
    late: u32,
    latest: Duration,
}

impl Pace {
    /// Takes one sample that came so late, in simulated time.
    pub(super) fn sample(&mut self, late: Duration) {
        self.samples += 1;
        self.late += u32::from(late > LATE);
        self.latest = self.latest.max(late);
    }

    /// Returns why the flight is no result, at a speed in times real time; `None` where the pace was kept.
    pub(super) fn refusal(&self, speed: f64) -> Option<String> {
        let on_time = 1.0 - f64::from(self.late) / f64::from(self.samples.max(1));
        (on_time < SHARE_LEAST).then(|| {
            format!(
                "REFUSED: this machine did not keep {speed} times real time: {:.0} % of the time daemons were more than {:.1} s of \
                 simulated time late, at most {:.1} s; the figures above are no result. Fly with a smaller --speed, or fewer aircraft",
                (1.0 - on_time) * 100.0,
                LATE.as_secs_f64(),
                self.latest.as_secs_f64()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_that_is_late_too_often_is_no_result() {
        let mut pace = Pace::default();
        assert_eq!(pace.refusal(10.0), None, "nothing was flown");
        (0..96).for_each(|_| pace.sample(Duration::from_millis(40)));
        (0..4).for_each(|_| pace.sample(Duration::from_secs(3)));
        assert_eq!(pace.refusal(10.0), None, "a machine may stumble");
        (0..4).for_each(|_| pace.sample(Duration::from_secs(3)));
        let why = pace.refusal(10.0).unwrap();
        assert!(why.contains("10 times real time: 8 %") && why.contains("at most 3.0 s"), "{why}");
    }
}
