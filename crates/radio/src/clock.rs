//! From the kernel's time to an agent's and back: the only place where a machine's clock is read.
#![allow(clippy::disallowed_methods, reason = "the one place where kernel time becomes agent time")]

use tokio::time::Instant as KernelInstant;
use wingbeat_geo::{Duration, Instant};

/// A deadline farther away than this is cut to it. Waking early is harmless, and the sum of a kernel
/// instant and [`Instant::NEVER`] would overflow.
const HORIZON: Duration = Duration::from_secs(3_600);
/// Slower is a stopped clock, faster is a timer that never sleeps.
const SPEED: std::ops::RangeInclusive<f64> = 0.01..=1_000.0;

/// Maps the kernel's monotonic time to agent time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: KernelInstant,
    speed: f64,
}

/// A clock cannot run at that speed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("speed: found {0}, expected {low} to {high} times real time", low = SPEED.start(), high = SPEED.end())]
pub struct ClockError(pub f64);

impl Clock {
    /// A clock that shows zero now and runs `speed` times as fast as the kernel's: 1 on an aircraft.
    ///
    /// # Errors
    /// The speed is not within 0.01..=1000.
    pub fn start(speed: f64) -> Result<Self, ClockError> {
        if SPEED.contains(&speed) {
            Ok(Self { started: KernelInstant::now(), speed })
        } else {
            Err(ClockError(speed))
        }
    }

    /// A clock that shows zero now and runs as fast as the kernel's.
    pub fn real_time() -> Self {
        Self { started: KernelInstant::now(), speed: 1.0 }
    }

    /// Agent time now.
    pub fn now(&self) -> Instant {
        // 53 bits of microseconds are 285 years.
        Instant::from_micros((self.started.elapsed().as_secs_f64() * self.speed * 1e6) as u64)
    }

    /// The kernel instant at which [`Clock::now`] shows `instant` or a little more, and at most an hour ahead.
    pub fn kernel(&self, instant: Instant) -> KernelInstant {
        let now = KernelInstant::now();
        // One microsecond more than the quotient: rounding must not wake the agent before its deadline repeatedly.
        let offset_s = (instant.as_micros() as f64 / 1e6 / self.speed + 1e-6).min(1e12);
        let ahead = Duration::from_secs_f64(offset_s).saturating_sub(now - self.started);
        now + ahead.min(HORIZON)
    }

    /// How many times faster than the kernel's it runs.
    pub fn speed(&self) -> f64 {
        self.speed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_is_scaled_both_ways() {
        for speed in [0.01, 0.3, 1.0, 7.0, 10.0, 1_000.0] {
            let clock = Clock::start(speed).unwrap();
            assert_eq!(clock.now(), Instant::ZERO);
            let mut deadline = Instant::ZERO;
            for step_us in [1, 999, 1_000, 33_333, 2_000_001] {
                deadline = clock.now() + Duration::from_micros(step_us);
                tokio::time::sleep_until(clock.kernel(deadline)).await;
                let late = clock.now().since(deadline).as_secs_f64();
                assert!(clock.now() >= deadline, "woken early at speed {speed}");
                // The kernel's timers tick in milliseconds.
                assert!(late <= 0.002 * speed + 1e-6, "{late} s late at speed {speed}");
            }
            assert!(deadline > Instant::from_secs(2));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_is_an_hour_ahead_at_most() {
        let clock = Clock::real_time();
        assert_eq!(clock.kernel(Instant::NEVER) - KernelInstant::now(), HORIZON);
    }

    #[test]
    fn a_speed_out_of_range_is_refused() {
        for speed in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            let message = Clock::start(speed).unwrap_err().to_string();
            assert!(message.contains(&format!("found {speed}")) && message.contains("expected"), "{message}");
        }
    }
}
