//! How fast the simulation really ran: the autopilot's time against the wall clock.

use std::collections::VecDeque;
use std::time::Duration;

/// Length of the window in which the slowest section is found.
const WINDOW: Duration = Duration::from_secs(10);
/// Samples closer together than this are skipped.
const SPACING: Duration = Duration::from_millis(500);

/// The rate of one autopilot's time.
#[derive(Clone, Debug, Default)]
pub struct Rate {
    first: Option<(Duration, u32)>,
    last: Option<(Duration, u32)>,
    recent: VecDeque<(Duration, u32)>,
    slowest: Option<f64>,
}

impl Rate {
    /// At `wall` the autopilot reported that it had run for `boot_ms`.
    pub fn add(&mut self, wall: Duration, boot_ms: u32) {
        // An autopilot that restarted has not flown faster than time.
        if self.last.is_some_and(|(_, before)| boot_ms < before) {
            self.recent.clear();
            (self.first, self.last) = (None, None);
        }
        self.first.get_or_insert((wall, boot_ms));
        self.last = Some((wall, boot_ms));
        if self.recent.back().is_none_or(|(at, _)| wall.saturating_sub(*at) >= SPACING) {
            self.recent.push_back((wall, boot_ms));
        }
        while self.recent.get(1).is_some_and(|(at, _)| wall.saturating_sub(*at) >= WINDOW) {
            self.recent.pop_front();
        }
        let oldest = self.recent.front().copied();
        if let Some(rate) = oldest
            .filter(|(at, _)| wall.saturating_sub(*at) >= WINDOW)
            .and_then(|oldest| between(oldest, (wall, boot_ms)))
        {
            self.slowest = Some(self.slowest.map_or(rate, |s| s.min(rate)));
        }
    }

    /// From the first sample to the last: simulated seconds per second. `None` of less than a second.
    pub fn overall(&self) -> Option<f64> {
        between(self.first?, self.last?)
    }

    /// The slowest ten seconds by the wall clock; `None` of a shorter flight.
    pub fn slowest(&self) -> Option<f64> {
        self.slowest
    }
}

fn between(from: (Duration, u32), to: (Duration, u32)) -> Option<f64> {
    let wall_s = to.0.saturating_sub(from.0).as_secs_f64();
    (wall_s >= 1.0).then(|| f64::from(to.1.saturating_sub(from.1)) * 1e-3 / wall_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(samples: impl Iterator<Item = (f64, f64)>) -> Rate {
        let mut rate = Rate::default();
        for (wall_s, boot_s) in samples {
            rate.add(Duration::from_secs_f64(wall_s), (boot_s * 1e3) as u32);
        }
        rate
    }

    #[test]
    fn a_steady_simulation_has_its_speed_and_a_pause_is_found() {
        let steady = fed((0..600).map(|i| (f64::from(i) * 0.1, 41.0 + f64::from(i) * 0.5)));
        assert!((steady.overall().unwrap() - 5.0).abs() < 0.01);
        assert!((steady.slowest().unwrap() - 5.0).abs() < 0.1);
        // Five seconds of standing still in the middle of a minute.
        let paused = fed((0..600).map(|i| {
            let wall_s = f64::from(i) * 0.1;
            (wall_s, wall_s - (wall_s - 30.0).clamp(0.0, 5.0))
        }));
        assert!((paused.overall().unwrap() - 55.0 / 60.0).abs() < 0.01);
        assert!((paused.slowest().unwrap() - 0.5).abs() < 0.06, "{:?}", paused.slowest());
    }

    #[test]
    fn too_few_samples_give_no_rate_and_a_reboot_restarts_it() {
        assert_eq!(fed([(0.0, 5.0), (0.5, 5.5)].into_iter()).overall(), None);
        let rebooted = fed([(0.0, 100.0), (10.0, 110.0), (11.0, 1.0), (21.0, 11.0)].into_iter());
        assert!((rebooted.overall().unwrap() - 1.0).abs() < 0.01);
    }
}
