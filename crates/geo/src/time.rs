//! Integer time. Pure code has no clock: the owner of an agent passes the time in.

use core::num::NonZeroU64;
use core::ops::{Add, Sub};
pub use core::time::Duration;

use serde::{Deserialize, Serialize};

/// Microseconds since the owner of the clock started it (an aircraft's agent, a simulated world).
///
/// One more than that is stored, so that an optional instant takes no more room: tables have many of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub struct Instant(NonZeroU64);

impl From<u64> for Instant {
    fn from(micros: u64) -> Self {
        Self::from_micros(micros)
    }
}

impl From<Instant> for u64 {
    fn from(instant: Instant) -> Self {
        instant.as_micros()
    }
}

impl Default for Instant {
    fn default() -> Self {
        Self::ZERO
    }
}

impl Instant {
    /// The start of time.
    pub const ZERO: Self = Self(NonZeroU64::MIN);
    /// Later than any instant that a run reaches: the deadline of a timer that is off.
    pub const NEVER: Self = Self(NonZeroU64::MAX);

    /// An instant from microseconds since the start.
    pub const fn from_micros(micros: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(micros))
    }
    /// An instant from milliseconds since the start.
    pub const fn from_millis(millis: u64) -> Self {
        Self::from_micros(millis * 1_000)
    }
    /// An instant from seconds since the start.
    pub const fn from_secs(secs: u64) -> Self {
        Self::from_micros(secs * 1_000_000)
    }
    /// Microseconds since the start.
    pub const fn as_micros(self) -> u64 {
        self.0.get() - 1
    }
    /// Milliseconds since the start, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.as_micros() / 1_000
    }
    /// Seconds since the start.
    pub fn as_secs_f64(self) -> f64 {
        self.as_micros() as f64 / 1e6
    }
    /// Time from `earlier` to here; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.get().saturating_sub(earlier.0.get()))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    /// Saturates at [`Instant::NEVER`].
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    /// Saturates at [`Instant::ZERO`].
    fn sub(self, duration: Duration) -> Self {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self::from_micros(self.as_micros().saturating_sub(micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Instant::NEVER + Duration::from_secs(1), Instant::NEVER);
        assert_eq!(Instant::ZERO - Duration::from_secs(1), Instant::ZERO);
        assert_eq!(Instant::from_millis(1).since(Instant::from_secs(1)), Duration::ZERO);
        assert_eq!(Instant::from_micros(u64::MAX), Instant::NEVER);
        assert_eq!(Instant::from_micros(7).as_micros(), 7);
        assert_eq!(Instant::default().as_micros(), 0);
        assert_eq!(Instant::from_secs(2).since(Instant::from_millis(500)), Duration::from_millis(1500));
    }

    #[test]
    fn an_optional_instant_takes_no_more_room() {
        assert_eq!(size_of::<Option<Instant>>(), size_of::<Instant>());
    }
}
