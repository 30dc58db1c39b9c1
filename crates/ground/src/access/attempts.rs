//! How often a password may be tried: by the address that tries, and by the name that is tried. Both are refilled with
//! time. An address from which a name has signed in before is not kept out by what others try under that name.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

/// Attempts that an address has at once, and the time after which it has one more.
const OF_ADDRESS: (u32, Duration) = (5, Duration::from_secs(10));
/// The same for a name.
const OF_NAME: (u32, Duration) = (10, Duration::from_secs(6));
/// Addresses, and names, that are counted at the same time. The one that tried longest ago gives way.
const COUNTED_MAX: usize = 1024;
/// Pairs of address and name that are known.
const KNOWN_MAX: usize = 1024;

#[derive(Debug)]
struct Bucket {
    /// Attempts that it has.
    left: u32,
    /// When it had one more, last.
    filled: Instant,
}

/// What is left of the attempts of each address and each name.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    addresses: BTreeMap<IpAddr, Bucket>,
    names: BTreeMap<String, Bucket>,
    known: BTreeSet<(IpAddr, String)>,
}

impl Attempts {
    /// Takes one attempt, or states how long there is none.
    pub(crate) fn take(&mut self, address: IpAddr, name: &str, now: Instant) -> Result<(), Duration> {
        let is_known = self.known.contains(&(address, name.to_owned()));
        take(&mut self.addresses, address, OF_ADDRESS, now)?;
        if is_known { Ok(()) } else { take(&mut self.names, name.to_owned(), OF_NAME, now) }
    }

    /// What succeeded was no attempt to guess.
    pub(crate) fn succeeded(&mut self, address: IpAddr, name: &str) {
        self.addresses.remove(&address);
        if self.known.len() < KNOWN_MAX {
            self.known.insert((address, name.to_owned()));
        }
    }
}

fn take<K: Ord + Clone>(
    buckets: &mut BTreeMap<K, Bucket>,
    key: K,
    (most, every): (u32, Duration),
    now: Instant,
) -> Result<(), Duration> {
    if !buckets.contains_key(&key) && buckets.len() >= COUNTED_MAX {
        let oldest = buckets.iter().min_by_key(|(_, bucket)| bucket.filled).map(|(key, _)| key.clone());
        oldest.and_then(|oldest| buckets.remove(&oldest));
    }
    let bucket = buckets.entry(key).or_insert(Bucket { left: most, filled: now });
    let more = now.saturating_duration_since(bucket.filled).as_millis() / every.as_millis();
    let more = u32::try_from(more).unwrap_or(u32::MAX).min(most - bucket.left);
    bucket.left += more;
    bucket.filled = if bucket.left == most { now } else { bucket.filled + every * more };
    if bucket.left == 0 {
        return Err(every.saturating_sub(now.saturating_duration_since(bucket.filled)));
    }
    bucket.left -= 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn an_address_and_a_name_have_a_number_of_attempts_that_comes_back_with_time() {
        let (mut attempts, start) = (Attempts::default(), Instant::now());
        let mut at = |address: IpAddr, name: &str, seconds| {
            attempts.take(address, name, start + Duration::from_secs(seconds)).map_err(|wait| wait.as_secs())
        };
        for number in 0..5 {
            assert_eq!(at(address(1), &format!("guess{number}"), 0), Ok(()));
        }
        assert_eq!(at(address(1), "another", 0), Err(10), "by address, whatever the name");
        assert_eq!(at(address(1), "another", 9), Err(1));
        assert_eq!(at(address(1), "another", 10), Ok(()));
        assert_eq!(at(address(1), "another", 10), Err(10));
        for number in 0..10 {
            assert_eq!(at(address(10 + number), "anna", 20), Ok(()));
        }
        assert_eq!(at(address(30), "anna", 20), Err(6), "by name, whatever the address");
        assert_eq!(at(address(31), "anna", 26), Ok(()));
    }

    #[test]
    fn others_guesses_keep_a_user_out_nowhere_from_where_the_user_signed_in() {
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        attempts.take(address(1), "anna", now).unwrap();
        attempts.succeeded(address(1), "anna");
        for number in 0..200 {
            let _ = attempts.take(address(number % 100 + 10), "anna", now);
        }
        assert!(attempts.take(address(2), "anna", now).is_err());
        assert!(attempts.take(address(1), "anna", now).is_ok());
    }

    #[test]
    fn what_is_counted_is_bounded() {
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        for number in 0..10_000_u32 {
            let _ = attempts.take(IpAddr::from(number.to_be_bytes()), &format!("n{number}"), now);
        }
        assert!(attempts.addresses.len() <= COUNTED_MAX && attempts.names.len() <= COUNTED_MAX);
    }
}
