//! The lease: one console at a time holds the aircraft, for as long as it renews the lease in time.
//!
//! What renews it is a token that only the console received that took it. Its name is for people: the status shows it, so
//! that it proves nothing. A console that was started anew, or never received the answer, waits until its lease has ended.

use std::time::Duration;

use tokio::time::Instant;

/// The shortest and the longest time that a console may ask for: a console renews each second, and one
/// that is gone must be gone soon.
pub(crate) const TTL_MS: std::ops::RangeInclusive<u64> = 1_000..=60_000;

/// What renews a lease: random, 32 hexadecimal digits.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    pub(crate) fn new(random: u128) -> Self {
        Self(format!("{random:032x}"))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// In a time that does not depend on where they differ.
    fn is(&self, other: &str) -> bool {
        let differ = |(a, b): (u8, u8)| a ^ b;
        self.0.len() == other.len()
            && self.0.bytes().zip(other.bytes()).map(differ).fold(0, |all, one| all | one) == 0
    }
}

struct Held {
    console: String,
    until: Instant,
    token: Token,
}

/// The lease with the console that holds it.
#[derive(Default)]
pub(crate) struct Lease {
    held: Option<Held>,
}

/// How a console came by the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Granted {
    /// It was free, and the new token counts.
    Taken,
    /// It was the console's, and its token still counts.
    Renewed,
}

impl Lease {
    /// Renews it for the console that has the `token`, or gives it where it is free, with the token `new`. `Err` names the
    /// holder and how long it still has.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        console: &str,
        ttl: Duration,
        token: Option<&str>,
        new: &Token,
    ) -> Result<Granted, (String, Duration)> {
        let until = now + ttl;
        match &mut self.held {
            Some(held) if held.until > now => {
                if !token.is_some_and(|token| held.token.is(token)) {
                    return Err((held.console.clone(), held.until.saturating_duration_since(now)));
                }
                (held.console, held.until) = (console.into(), until);
                Ok(Granted::Renewed)
            }
            _ => {
                self.held = Some(Held { console: console.into(), until, token: new.clone() });
                Ok(Granted::Taken)
            }
        }
    }

    /// Whether a console with this token holds it.
    pub(crate) fn is_held_with(&self, now: Instant, token: Option<&str>) -> bool {
        let held = self.held.as_ref().filter(|held| held.until > now);
        held.is_some_and(|held| token.is_some_and(|token| held.token.is(token)))
    }

    /// Who holds it, and how long still.
    pub(crate) fn holder(&self, now: Instant) -> Option<(&str, Duration)> {
        let held = self.held.as_ref()?;
        let left = held.until.saturating_duration_since(now);
        (!left.is_zero()).then_some((held.console.as_str(), left))
    }

    /// When it ends unless it is renewed.
    pub(crate) fn ends_at(&self) -> Option<Instant> {
        self.held.as_ref().map(|held| held.until)
    }

    /// Forgets a holder whose time is over, and returns its name.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<String> {
        if self.held.is_some() && self.holder(now).is_none() {
            return self.held.take().map(|held| held.console);
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
        let [first, second] = [1, 2].map(Token::new);
        let held_by = |console: &str, ms| Err((console.to_owned(), Duration::from_millis(ms)));
        let mut lease = Lease::default();
        assert_eq!(lease.holder(start), None);
        assert_eq!(lease.take(at(0), "one", ttl, None, &first), Ok(Granted::Taken));
        assert!(
            lease.is_held_with(at(0), Some(first.as_str()))
                && !lease.is_held_with(at(3_000), Some(first.as_str()))
        );
        assert!(!lease.is_held_with(at(0), Some("one")) && !lease.is_held_with(at(0), None));
        assert_eq!(lease.take(at(1_000), "two", ttl, None, &second), held_by("one", 2_000));
        assert_eq!(
            lease.take(at(1_500), "one", ttl, None, &second),
            held_by("one", 1_500),
            "the name is known to all, and renews nothing"
        );
        for wrong in ["", "1", second.as_str(), &format!("{}0", first.as_str())] {
            assert_eq!(
                lease.take(at(1_500), "one", ttl, Some(wrong), &second),
                held_by("one", 1_500),
                "{wrong}"
            );
        }
        assert_eq!(lease.take(at(2_000), "one", ttl, Some(first.as_str()), &second), Ok(Granted::Renewed));
        assert_eq!(lease.ends_at(), Some(at(5_000)));
        assert_eq!(lease.expire(at(4_999)), None);
        assert_eq!(lease.holder(at(5_000)), None, "it ends where it is not renewed");
        assert_eq!(lease.take(at(5_000), "two", ttl, Some(first.as_str()), &second), Ok(Granted::Taken));
        assert_eq!(
            lease.take(at(5_001), "two", ttl, Some(first.as_str()), &first),
            held_by("two", 2_999),
            "an old one"
        );
        assert_eq!(lease.expire(at(8_000)).as_deref(), Some("two"));
        assert_eq!((lease.expire(at(8_001)), lease.ends_at()), (None, None));
    }
}
