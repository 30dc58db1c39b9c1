//! The shares by which peers are bounded: an address, of IPv6 within its network of 64 bits, and
//! addresses that proved who they are.
//!
//! A peer that has one address of an IPv6 network may have all, and a LAN is one such network. So
//! each address has a share, all of a network together have a larger one, and an address that holds
//! a session draws on its own share alone: a stranger on the same LAN does not take the operator's.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// An address keeps its trust for so long after its last request with a session.
const TRUSTED_FOR: Duration = Duration::from_secs(3_600);
/// Addresses that are trusted at the same time; the one that asked longest ago makes room.
const TRUSTED_MAX: usize = 128;

/// The network of an IPv6 address, of 64 bits; an IPv4 address is alone.
#[must_use]
pub fn network(peer: IpAddr) -> Option<IpAddr> {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Some(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into())
        }
        IpAddr::V4(_) => None,
    }
}

/// The addresses that hold a session.
#[derive(Debug, Default)]
pub(crate) struct Trusted(Mutex<Vec<(IpAddr, Instant)>>);

impl Trusted {
    pub(crate) fn add(&self, peer: IpAddr, now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, at)) = known.iter_mut().find(|(address, _)| *address == peer) {
            *at = now;
            return;
        }
        if known.len() >= TRUSTED_MAX
            && let Some((oldest, _)) = known.iter().enumerate().min_by_key(|(_, (_, at))| *at)
        {
            known.swap_remove(oldest);
        }
        known.push((peer, now));
    }

    pub(crate) fn holds(&self, peer: IpAddr, now: Instant) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = |at: Instant| now.saturating_duration_since(at) < TRUSTED_FOR;
        known.iter().any(|&(address, at)| address == peer && is_fresh(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_64_bits_and_a_mapped_address_none() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!((of("::ffff:10.0.0.1"), of("10.0.0.1")), (None, None));
    }

    #[test]
    fn trust_ends_and_is_bounded() {
        let (trusted, start) = (Trusted::default(), Instant::now());
        let peer = |n: u32| IpAddr::from(n.to_be_bytes());
        trusted.add(peer(1), start);
        assert!(trusted.holds(peer(1), start) && !trusted.holds(peer(2), start));
        assert!(!trusted.holds(peer(1), start + TRUSTED_FOR));
        for n in 0..10_000 {
            trusted.add(peer(n), start + Duration::from_millis(u64::from(n)));
        }
        assert_eq!(trusted.0.lock().unwrap().len(), TRUSTED_MAX);
    }
}
