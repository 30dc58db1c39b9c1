//! How much of the radio channel each class of datagrams may take.
//!
//! Every class has a bucket of its own: a class that is over its budget drops its own datagrams, and no other is
//! held up by it. Sums and bursts are chosen so that no aircraft of this project comes near them in a flight; what
//! they bound is a fault, a test of the link, and settings that are made for something else.

use wingbeat_geo::Instant;
use wingbeat_wire::Class;

use crate::SendError;

/// Bytes of a frame around the payload, in time on the air: 20 µs of preamble and header are 15 bytes at 6 Mbit/s; MAC
/// header, LLC, IP and UDP header and FCS are 59 or 79 (IEEE 802.11-2020, 17.4.3 and 9.3.2.1).
const AROUND: u64 = 100;
/// What a datagram of so many bytes takes of the radio channel, in bytes at 6 Mbit/s.
pub const fn on_air_bytes(length: usize) -> u64 {
    (length as u64).saturating_add(AROUND)
}

/// A bucket holds what comes in so long, seconds: a swarm's plan is sent at once.
const BURST_S: u64 = 2;
/// Time is counted in these, so that a byte is a whole number of them at every rate.
const MICROS: u64 = 1_000_000;

/// What a class may send, bytes a second with what stands around them. 802.11 broadcasts carry 750 000 (6 Mbit/s) for
/// all aircraft together.
pub const fn rate_bytes_s(class: Class) -> u64 {
    match class {
        // A plan of 1472 bytes every 20 ms, the shortest period that can be configured, is 79 000; a test of the link
        // has up to 100 datagrams a second.
        Class::Coordination | Class::Test => 160_000,
        Class::Emergency | Class::Beacon => 80_000,
        // A base station with four systems sends 2000 bytes a second, in six frames.
        Class::Corrections => 10_000,
    }
}

/// Token buckets, one for each class.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Millionths of a byte, and when that was so.
    buckets: [(u64, Instant); Class::ALL.len()],
}

impl Default for Budget {
    /// Nothing was sent yet.
    fn default() -> Self {
        Self { buckets: Class::ALL.map(|class| (full(class), Instant::ZERO)) }
    }
}

/// What a full bucket holds, millionths of a byte.
const fn full(class: Class) -> u64 {
    rate_bytes_s(class) * BURST_S * MICROS
}

impl Budget {
    /// Takes a datagram of so many bytes from its class's bucket.
    ///
    /// # Errors
    /// [`SendError::OverBudget`]: the bucket does not hold so much. Nothing was taken.
    pub fn take(&mut self, now: Instant, class: Class, length: usize) -> Result<(), SendError> {
        let Some((held, at)) = self.buckets.get_mut(class as usize) else { return Ok(()) };
        let passed_us = now.as_micros().saturating_sub(at.as_micros());
        *held = held.saturating_add(passed_us.saturating_mul(rate_bytes_s(class))).min(full(class));
        *at = now.max(*at);
        let needed = on_air_bytes(length).saturating_mul(MICROS);
        *held = held.checked_sub(needed).ok_or(SendError::OverBudget(class))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wingbeat_wire::DATAGRAM_LEN_MAX;

    use super::*;

    const LEN: usize = 900;

    /// How many leave of those that are tried every millisecond.
    fn sent(budget: &mut Budget, class: Class, from_ms: u64, until_ms: u64) -> u64 {
        let take = |ms: &u64| budget.take(Instant::from_millis(*ms), class, LEN).is_ok();
        (from_ms..until_ms).filter(take).count() as u64
    }

    #[test]
    fn a_class_sends_its_rate_and_a_burst() {
        for class in Class::ALL {
            let mut budget = Budget::default();
            let each = LEN as u64 + AROUND;
            let burst = rate_bytes_s(class) * BURST_S / each;
            // Corrections are a base station's of two seconds, of up to six frames each.
            let least = if class == Class::Corrections { 12 } else { 100 };
            assert!(sent(&mut budget, class, 0, 1) == 1 && burst > least);
            let all = 1 + sent(&mut budget, class, 1, 100_000);
            let expected = burst + rate_bytes_s(class) * 100 / each;
            assert!(all.abs_diff(expected) <= 1, "{class:?}: {all}, expected {expected}");
        }
    }

    #[test]
    fn no_class_holds_up_another() {
        let mut budget = Budget::default();
        let others = [Class::Coordination, Class::Beacon, Class::Test, Class::Corrections];
        for ms in 0..20_000 {
            let now = Instant::from_millis(ms);
            for class in others {
                let _ = budget.take(now, class, LEN);
            }
            // Fifty a second, the most that a protocol repeats itself.
            if ms % 20 == 0 {
                assert_eq!(budget.take(now, Class::Emergency, 150), Ok(()), "at {ms} ms");
            }
        }
        for class in others {
            let over = budget.take(Instant::from_secs(20), class, DATAGRAM_LEN_MAX);
            assert_eq!(over, Err(SendError::OverBudget(class)));
        }
    }

    #[test]
    fn a_refused_datagram_takes_nothing_and_time_fills_the_bucket_to_its_brim() {
        let (mut budget, class) = (Budget::default(), Class::Beacon);
        let start = Instant::from_secs(1);
        while budget.take(start, class, LEN).is_ok() {}
        // What is left is less than this datagram and enough for a shorter one, or for none.
        assert!(budget.take(start, class, DATAGRAM_LEN_MAX).is_err());
        let needed_us = (LEN as u64 + AROUND) * MICROS / rate_bytes_s(class) + 1;
        let later = Instant::from_micros(start.as_micros() + needed_us);
        assert_eq!(budget.take(later, class, LEN), Ok(()));
        // A clock that goes back gives nothing, and takes nothing away.
        assert!(budget.take(Instant::ZERO, class, LEN).is_err());
        let brim = sent(&mut budget, class, 3_600_000, 3_600_001);
        assert_eq!(brim, 1);
        let rest = (0..1_000_000).take_while(|_| budget.take(Instant::from_secs(3_600), class, LEN).is_ok());
        assert_eq!(rest.count() as u64 + brim, rate_bytes_s(class) * BURST_S / (LEN as u64 + AROUND));
    }
}
