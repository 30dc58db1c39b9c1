//! The lease: one console at a time holds the aircraft, for as long as it renews the lease in time.

use std::time::Duration;

use tokio::time::Instant;

/// The shortest and the longest time that a console may ask for: a console renews each second, and one
/// that is gone must be gone soon.
pub(crate) const TTL_MS: std::ops::RangeInclusive<u64> = 1_000..=60_000;

/// The lease with the console that holds it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lease {
    held: Option<(String, Instant)>,
}

impl Lease {
    /// Gives or renews it. `Err` names the holder and how long it still has.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        console: &str,
        ttl: Duration,
    ) -> Result<(), (String, Duration)> {
        match self.holder(now) {
            Some((holder, left)) if holder != console => Err((holder.into(), left)),
            _ => {
                self.held = Some((console.into(), now + ttl));
                Ok(())
            }
        }
    }

    /// Who holds it, and how long still.
    pub(crate) fn holder(&self, now: Instant) -> Option<(&str, Duration)> {
        let (console, until) = self.held.as_ref()?;
        let left = until.saturating_duration_since(now);
        (!left.is_zero()).then_some((console, left))
    }

    /// When it ends unless it is renewed.
    pub(crate) fn ends_at(&self) -> Option<Instant> {
        self.held.as_ref().map(|(_, until)| *until)
    }

    /// Forgets a holder whose time is over, and returns its name.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<String> {
        if self.held.is_some() && self.holder(now).is_none() {
            return self.held.take().map(|(console, _)| console);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_console_at_a_time_until_its_time_is_over() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let ttl = Duration::from_millis(3_000);
        let mut lease = Lease::default();
        assert_eq!(lease.holder(start), None);
        assert_eq!(lease.take(at(0), "one", ttl), Ok(()));
        assert_eq!(lease.take(at(1_000), "two", ttl), Err(("one".into(), Duration::from_millis(2_000))));
        assert_eq!(lease.take(at(2_000), "one", ttl), Ok(()), "renewed");
        assert_eq!(lease.ends_at(), Some(at(5_000)));
        assert_eq!(lease.expire(at(4_999)), None);
        assert_eq!(lease.holder(at(5_000)), None, "it ends where it is not renewed");
        assert_eq!(lease.take(at(5_000), "two", ttl), Ok(()));
        assert_eq!(lease.expire(at(8_000)).as_deref(), Some("two"));
        assert_eq!((lease.expire(at(8_001)), lease.ends_at()), (None, None));
    }
}
