//! The lease: one console at a time holds the aircraft, for as long as it renews the lease in time.
//!
//! What renews it is a token that only the console received that took it, sent by the key that took it where there are keys.
//! Its name is for people: the status shows it, so that it proves nothing. A console that was started anew, or never received the answer, waits until its lease has ended.

use std::time::Duration;

use tokio::time::Instant;
use wingbeat_wire::VehicleId;

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
    /// Who proved to be it; none without keys.
    id: Option<VehicleId>,
    until: Instant,
    token: Token,
}

impl Held {
    fn is_of(&self, token: Option<&str>, id: Option<VehicleId>) -> bool {
        self.id == id && token.is_some_and(|token| self.token.is(token))
    }
}

/// The lease with the console that holds it.
#[derive(Default)]
pub(crate) struct Lease {
    held: Option<Held>,
}

/// How a console came by the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Granted {
    /// It was free, and the new token counts.
    Taken,
    /// It was the console's, and its token still counts.
    Renewed,
    /// It was that of this other console, and the new token counts.
    TakenOver(String),
}

impl Lease {
    /// Renews it for the console with this `id` that has the `token`, or gives it where it is free, with the token `new`. With `take_over`
    /// it is given also where another console holds it. `Err` names the holder and how long it still has.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        (console, id): (&str, Option<VehicleId>),
        ttl: Duration,
        (token, take_over): (Option<&str>, bool),
        new: &Token,
    ) -> Result<Granted, (String, Duration)> {
        let until = now + ttl;
        let taken = Held { console: console.into(), id, until, token: new.clone() };
        match &mut self.held {
            Some(held) if held.until > now && held.is_of(token, id) => {
                (held.console, held.until) = (console.into(), until);
                Ok(Granted::Renewed)
            }
            Some(held) if held.until > now && take_over => {
                Ok(Granted::TakenOver(std::mem::replace(held, taken).console))
            }
            Some(held) if held.until > now => {
                Err((held.console.clone(), held.until.saturating_duration_since(now)))
            }
            Some(_) | None => {
                self.held = Some(taken);
                Ok(Granted::Taken)
            }
        }
    }

    /// Whether the console with this token and this id holds it.
    pub(crate) fn is_held_with(&self, now: Instant, token: Option<&str>, id: Option<VehicleId>) -> bool {
        let held = self.held.as_ref().filter(|held| held.until > now);
        held.is_some_and(|held| held.is_of(token, id))
    }

    /// Who holds it, and how long still.
    pub(crate) fn holder(&self, now: Instant) -> Option<(&str, Duration)> {
        let held = self.held.as_ref()?;
        let left = held.until.saturating_duration_since(now);
        (!left.is_zero()).then_some((held.console.as_str(), left))
    }

    /// The id of the console that holds it, where it proved one.
    pub(crate) fn holder_id(&self) -> Option<VehicleId> {
        self.held.as_ref()?.id
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
        assert_eq!(lease.take(at(0), ("one", None), ttl, (None, false), &first), Ok(Granted::Taken));
        assert!(
            lease.is_held_with(at(0), Some(first.as_str()), None)
                && !lease.is_held_with(at(3_000), Some(first.as_str()), None)
        );
        assert!(!lease.is_held_with(at(0), Some("one"), None) && !lease.is_held_with(at(0), None, None));
        assert_eq!(lease.take(at(1_000), ("two", None), ttl, (None, false), &second), held_by("one", 2_000));
        assert_eq!(
            lease.take(at(1_500), ("one", None), ttl, (None, false), &second),
            held_by("one", 1_500),
            "the name is known to all, and renews nothing"
        );
        for wrong in ["", "1", second.as_str(), &format!("{}0", first.as_str())] {
            assert_eq!(
                lease.take(at(1_500), ("one", None), ttl, (Some(wrong), false), &second),
                held_by("one", 1_500),
                "{wrong}"
            );
        }
        assert_eq!(
            lease.take(at(2_000), ("one", None), ttl, (Some(first.as_str()), false), &second),
            Ok(Granted::Renewed)
        );
        assert_eq!(lease.ends_at(), Some(at(5_000)));
        assert_eq!(lease.expire(at(4_999)), None);
        assert_eq!(lease.holder(at(5_000)), None, "it ends where it is not renewed");
        assert_eq!(
            lease.take(at(5_000), ("two", None), ttl, (Some(first.as_str()), false), &second),
            Ok(Granted::Taken)
        );
        assert_eq!(
            lease.take(at(5_001), ("two", None), ttl, (Some(first.as_str()), false), &first),
            held_by("two", 2_999),
            "an old one"
        );
        assert_eq!(lease.expire(at(8_000)).as_deref(), Some("two"));
        assert_eq!((lease.expire(at(8_001)), lease.ends_at()), (None, None));
    }

    #[tokio::test]
    async fn with_keys_the_token_is_worth_nothing_in_the_hands_of_another() {
        let now = Instant::now();
        let ttl = Duration::from_secs(3);
        let [token, new] = [1, 2].map(Token::new);
        let [one, two] = [1, 2].map(|id| Some(VehicleId(id)));
        let mut lease = Lease::default();
        assert_eq!(lease.take(now, ("one", one), ttl, (None, false), &token), Ok(Granted::Taken));
        assert_eq!(lease.holder_id(), one);
        let token = Some(token.as_str());
        for id in [two, None] {
            assert!(
                lease.take(now, ("one", id), ttl, (token, false), &new).is_err()
                    && !lease.is_held_with(now, token, id)
            );
        }
        assert!(lease.is_held_with(now, token, one));
        assert_eq!(lease.take(now, ("one", one), ttl, (token, false), &new), Ok(Granted::Renewed));
    }

    #[tokio::test]
    async fn an_operator_takes_it_over_and_the_token_of_before_is_worth_nothing() {
        let now = Instant::now();
        let ttl = Duration::from_secs(3);
        let [first, second, third] = [1, 2, 3].map(Token::new);
        let mut lease = Lease::default();
        assert_eq!(lease.take(now, ("one", None), ttl, (None, true), &first), Ok(Granted::Taken));
        let own = (Some(first.as_str()), true);
        assert_eq!(lease.take(now, ("one", None), ttl, own, &second), Ok(Granted::Renewed));
        let id = Some(VehicleId(2));
        let granted = lease.take(now, ("two", id), ttl, (None, true), &second);
        assert_eq!(granted, Ok(Granted::TakenOver("one".to_owned())));
        assert_eq!((lease.holder(now), lease.holder_id()), (Some(("two", ttl)), id));
        assert!(!lease.is_held_with(now, Some(first.as_str()), None));
        assert!(lease.is_held_with(now, Some(second.as_str()), id));
        let old = (Some(first.as_str()), false);
        assert_eq!(lease.take(now, ("one", None), ttl, old, &third), Err(("two".to_owned(), ttl)));
    }
}
