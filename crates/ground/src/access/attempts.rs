//! How often a password may be tried: by the address that tries, of IPv6 by its network too, and by the name that is tried. All
//! are refilled with time. A name at an address from which it has signed in before has attempts of its own. Others who try under
//! that name, from its network, or from the same address under other names do not keep it out.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

/// Attempts that an address has at once, and the time after which it has one more.
const OF_ADDRESS: (u32, Duration) = (5, Duration::from_secs(10));
/// The same for a name.
const OF_NAME: (u32, Duration) = (10, Duration::from_secs(6));
/// The same for all addresses of an IPv6 network together: a LAN is one.
const OF_NETWORK: (u32, Duration) = (40, Duration::from_millis(1_250));
/// The same for a name that signs in with its password: no user needs more sessions, and each costs a comparison.
const OF_SUCCESS: (u32, Duration) = (10, Duration::from_secs(6));
/// Addresses, and names, that are counted at the same time. The one that tried longest ago gives way.
const COUNTED_MAX: usize = 1024;
/// Addresses from which a name has signed in that are known; the first makes room.
const KNOWN_MAX: usize = 16;

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
    networks: BTreeMap<IpAddr, Bucket>,
    names: BTreeMap<String, Bucket>,
    successes: BTreeMap<String, Bucket>,
    /// Of a name at an address from which it has signed in: a router, or a laptop that users share, is one address.
    own: BTreeMap<(String, IpAddr), Bucket>,
    /// By name, of users alone.
    known: BTreeMap<String, VecDeque<IpAddr>>,
}

impl Attempts {
    /// Takes one attempt, or states how long there is none.
    pub(crate) fn take(&mut self, address: IpAddr, name: &str, now: Instant) -> Result<(), Duration> {
        let is_known = self.known.get(name).is_some_and(|known| known.contains(&address));
        if is_known {
            return take(&mut self.own, (name.to_owned(), address), OF_ADDRESS, now);
        }
        take(&mut self.addresses, address, OF_ADDRESS, now)?;
        if let Some(network) = wingbeat_server::network(address) {
            take(&mut self.networks, network, OF_NETWORK, now)?;
        }
        take(&mut self.names, name.to_owned(), OF_NAME, now)
    }

    /// A success was no attempt to guess, and gives its address all attempts back: but for a name that signs in again and again.
    pub(crate) fn succeeded(&mut self, address: IpAddr, name: &str, now: Instant) {
        if take(&mut self.successes, name.to_owned(), OF_SUCCESS, now).is_ok() {
            self.addresses.remove(&address);
            self.own.remove(&(name.to_owned(), address));
        }
        let known = self.known.entry(name.to_owned()).or_default();
        if !known.contains(&address) {
            if known.len() >= KNOWN_MAX {
                known.pop_front();
            }
            known.push_back(address);
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
        attempts.succeeded(address(1), "anna", now);
        for number in 0..200 {
            let _ = attempts.take(address(number % 100 + 10), "anna", now);
        }
        assert!(attempts.take(address(2), "anna", now).is_err());
        assert!(attempts.take(address(1), "anna", now).is_ok());
    }

    #[test]
    fn another_user_of_the_same_address_keeps_no_user_out() {
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        attempts.take(address(1), "anna", now).unwrap();
        attempts.succeeded(address(1), "anna", now);
        for _ in 0..256 {
            if attempts.take(address(1), "observer", now).is_ok() {
                attempts.succeeded(address(1), "observer", now);
            }
            let _ = attempts.take(address(1), "stranger", now);
        }
        assert!(attempts.take(address(1), "berta", now).is_err(), "a name that has never signed in there");
        assert!(attempts.take(address(1), "anna", now).is_ok());
        // Guesses of her password from there have an end too.
        let taken = (0..100).filter(|_| attempts.take(address(1), "anna", now).is_ok());
        assert_eq!(taken.count(), 4);
    }

    #[test]
    fn on_an_ipv6_network_a_strangers_guesses_keep_no_operator_out() {
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        let on_lan = |last: u16| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last]);
        attempts.take(on_lan(1), "anna", now).unwrap();
        attempts.succeeded(on_lan(1), "anna", now);
        // From one address, and then from all of the network.
        for _ in 0..100 {
            let _ = attempts.take(on_lan(2), "root", now);
        }
        assert!(attempts.take(on_lan(3), "berta", now).is_ok(), "one address is not the network");
        let taken = (10..1_000).filter(|last| attempts.take(on_lan(*last), &format!("n{last}"), now).is_ok());
        assert_eq!(taken.count(), 40 - 1 - 5 - 1, "all together");
        assert!(attempts.take(on_lan(4), "berta", now).is_err());
        assert!(attempts.take(on_lan(1), "anna", now).is_ok());
    }

    #[test]
    fn a_name_that_signs_in_again_and_again_runs_out() {
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        let mut signed_in = 0;
        while attempts.take(address(1), "eve", now).is_ok() {
            attempts.succeeded(address(1), "eve", now);
            signed_in += 1;
        }
        assert_eq!(signed_in, 10 + 5);
        assert!(attempts.take(address(1), "eve", now + Duration::from_secs(10)).is_ok());
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
