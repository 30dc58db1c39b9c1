//! How many TLS handshakes an address may begin. Each costs this side a signature before the peer's key is seen, so that a
//! stranger who only begins them would have the processor of an aircraft. A peer whose key is in the roster pays nothing.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::peers::{Trusted, network};

/// So often an address may begin one in the long run that proves no key.
const PERIOD: Duration = Duration::from_millis(100);
/// As many at once: a browser opens six connections, a page that is loaded anew as many again, and several may share an address.
const BURST: u32 = 64;
/// All addresses of an IPv6 network together may begin so many times as many.
const OF_NETWORK: u32 = 8;
/// Addresses, and networks, that are kept; above that the one that may begin its next first is forgotten.
const ADDRESSES_MAX: usize = 256;

/// The instants at which all handshakes that began would have come, one a period (GCRA), by address.
#[derive(Debug, Default)]
struct Due(Vec<(IpAddr, Instant)>);

impl Due {
    /// Whether one more may begin.
    fn may(&mut self, of: IpAddr, period: Duration, now: Instant) -> bool {
        self.0.retain(|&(_, due)| due > now);
        let due = self.0.iter().find(|(address, _)| *address == of);
        // A network's burst takes as long as an address's.
        due.is_none_or(|(_, due)| *due + period <= now + PERIOD * BURST)
    }

    fn take(&mut self, of: IpAddr, period: Duration, now: Instant) {
        if let Some((_, due)) = self.0.iter_mut().find(|(address, _)| *address == of) {
            *due += period;
            return;
        }
        if self.0.len() >= ADDRESSES_MAX
            && let Some((first, _)) = self.0.iter().enumerate().min_by_key(|(_, (_, due))| *due)
        {
            self.0.swap_remove(first);
        }
        self.0.push((of, now + period));
    }

    fn give_back(&mut self, of: IpAddr, period: Duration) {
        if let Some((_, due)) = self.0.iter_mut().find(|(address, _)| *address == of) {
            // One that is due in the past is dropped at the next begin.
            *due = due.checked_sub(period).unwrap_or(*due);
        }
    }
}

#[derive(Debug, Default)]
struct Began {
    addresses: Due,
    networks: Due,
}

/// The addresses that began handshakes lately.
#[derive(Debug, Default)]
pub(crate) struct Handshakes {
    began: Mutex<Began>,
    /// Addresses that hold a session draw on their own share alone.
    trusted: Arc<Trusted>,
}

impl Handshakes {
    pub(crate) fn new(trusted: Arc<Trusted>) -> Self {
        Self { began: Mutex::default(), trusted }
    }

    /// The network whose share an address draws on too.
    fn network(&self, peer: IpAddr, now: Instant) -> Option<IpAddr> {
        network(peer).filter(|_| !self.trusted.holds(peer, now))
    }

    /// Whether one more may begin.
    pub(crate) fn begin(&self, peer: IpAddr, now: Instant) -> bool {
        let network = self.network(peer, now);
        let mut began = self.began.lock().unwrap_or_else(PoisonError::into_inner);
        let may = began.addresses.may(peer, PERIOD, now)
            && network.is_none_or(|network| began.networks.may(network, PERIOD / OF_NETWORK, now));
        if may {
            began.addresses.take(peer, PERIOD, now);
            if let Some(network) = network {
                began.networks.take(network, PERIOD / OF_NETWORK, now);
            }
        }
        may
    }

    /// The peer proved a key of the roster: that one does not count, and the address draws on its own share alone from now on.
    /// `wingbeatd` has no sessions that would show whom it may trust.
    pub(crate) fn proved(&self, peer: IpAddr) {
        let now = Instant::now();
        let network = self.network(peer, now);
        self.trusted.add(peer.to_canonical(), now);
        let mut began = self.began.lock().unwrap_or_else(PoisonError::into_inner);
        began.addresses.give_back(peer, PERIOD);
        if let Some(network) = network {
            began.networks.give_back(network, PERIOD / OF_NETWORK);
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
    fn an_ipv6_network_has_a_bounded_share_and_an_address_with_a_session_its_own() {
        let handshakes = Handshakes::default();
        let on_lan = |last: u16| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last]);
        let start = Instant::now();
        assert_eq!(begun(&handshakes, on_lan(1), start, 1_000), 64, "one stranger");
        assert_eq!(begun(&handshakes, on_lan(2), start, 10), 10, "is not the whole network");
        let others: usize = (3..1_000).map(|last| begun(&handshakes, on_lan(last), start, 1)).sum();
        assert_eq!(others, 8 * 64 - 74, "all of a network together");
        assert!(!handshakes.begin(on_lan(2_000), start));
        handshakes.trusted.add(on_lan(2), start);
        assert_eq!(begun(&handshakes, on_lan(2), start, 1_000), 54, "the operator has what an address has");
    }

    #[test]
    fn a_stranger_with_600_addresses_does_not_take_the_share_of_one_that_proved_its_key() {
        let handshakes = Handshakes::default();
        let on_lan = |last: u16| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last]);
        let start = Instant::now();
        assert!(handshakes.begin(on_lan(1), start));
        handshakes.proved(on_lan(1));
        for last in 2..602 {
            let _ = handshakes.begin(on_lan(last), start);
        }
        assert!(!handshakes.begin(on_lan(602), start), "the network has no share left");
        assert!(handshakes.begin(on_lan(1), start), "the console lands its aircraft");
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
        assert_eq!(handshakes.began.lock().unwrap().addresses.0.len(), ADDRESSES_MAX);
        assert!(!handshakes.begin(address(0), start), "the one that began most is kept");
    }
}
