//! How many TLS handshakes an address may begin. Each costs this side a signature before the peer's key is seen, so that a
//! stranger who only begins them would have the processor of an aircraft. A peer whose key is in the roster pays nothing.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// So often an address may begin one in the long run that proves no key.
const PERIOD: Duration = Duration::from_millis(100);
/// As many at once: a browser opens six connections, a page that is loaded anew as many again, and several may share an address.
const BURST: u32 = 64;
/// Addresses that are kept; above that the one that may begin its next first is forgotten.
const ADDRESSES_MAX: usize = 256;

/// The addresses that began handshakes lately.
#[derive(Debug, Default)]
pub(crate) struct Handshakes(Mutex<Vec<(IpAddr, Instant)>>);

impl Handshakes {
    /// Whether one more may begin. By the instant at which all that began would have come at [`PERIOD`] each (GCRA).
    pub(crate) fn begin(&self, share: IpAddr, now: Instant) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|&(_, due)| due > now);
        let Some((_, due)) = known.iter_mut().find(|(address, _)| *address == share) else {
            if known.len() >= ADDRESSES_MAX
                && let Some((first, _)) = known.iter().enumerate().min_by_key(|(_, (_, due))| *due)
            {
                known.swap_remove(first);
            }
            known.push((share, now + PERIOD));
            return true;
        };
        let next = *due + PERIOD;
        let may = next <= now + PERIOD * BURST;
        if may {
            *due = next;
        }
        may
    }

    /// The peer proved a key of the roster: that one does not count.
    pub(crate) fn proved(&self, share: IpAddr) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, due)) = known.iter_mut().find(|(address, _)| *address == share) {
            // One that is due in the past is dropped at the next begin.
            *due = due.checked_sub(PERIOD).unwrap_or(*due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn address(n: u32) -> IpAddr {
        Ipv4Addr::from(0x0a00_0000 + n).into()
    }

    fn begun(handshakes: &Handshakes, of: IpAddr, at: Instant, asked: usize) -> usize {
        (0..asked).filter(|_| handshakes.begin(of, at)).count()
    }

    #[test]
    fn an_address_begins_64_at_once_and_ten_a_second_after_that() {
        let (handshakes, start) = (Handshakes::default(), Instant::now());
        assert_eq!(begun(&handshakes, address(1), start, 1_000), 64);
        assert_eq!(begun(&handshakes, address(1), start + Duration::from_millis(99), 10), 0);
        assert_eq!(begun(&handshakes, address(1), start + Duration::from_secs(1), 1_000), 10);
        assert_eq!(begun(&handshakes, address(2), start, 1_000), 64, "another address has its own");
        assert_eq!(begun(&handshakes, address(1), start + Duration::from_secs(60), 1_000), 64, "forgotten");
    }

    #[test]
    fn one_that_proves_its_key_is_never_refused() {
        let (handshakes, start) = (Handshakes::default(), Instant::now());
        for _ in 0..1_000 {
            assert!(handshakes.begin(address(1), start));
            handshakes.proved(address(1));
        }
    }

    #[test]
    fn ten_thousand_addresses_take_the_room_of_256() {
        let (handshakes, start) = (Handshakes::default(), Instant::now());
        assert_eq!(begun(&handshakes, address(0), start, 1_000), 64);
        for n in 1..10_000 {
            assert!(handshakes.begin(address(n), start));
        }
        assert_eq!(handshakes.0.lock().unwrap().len(), ADDRESSES_MAX);
        assert!(!handshakes.begin(address(0), start), "the one that began most is kept");
    }
}
