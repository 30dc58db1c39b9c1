//! Aircraft that are found by multicast DNS: `_wingbeat._tcp`, which each announces. What is announced is asked who it is, with the
//! console's keys where it has some, and only an aircraft that answers is followed: a name on the network alone changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use mdns_sd::{ScopedIp, ServiceDaemon, ServiceEvent};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::client::{self, Clients};
use crate::owner::Found;
use crate::service::Service;

/// What aircraft announce.
pub const SERVICE: &str = "_wingbeat._tcp.local.";
/// Announced addresses that are kept; more are not looked at.
const CANDIDATES_MAX: usize = 256;
/// Addresses of one of them; more are not asked.
const ADDRESSES_MAX: usize = 8;
/// How often those are asked that did not answer as an aircraft.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// Asks and adds until the service ends.
pub(crate) async fn find(daemon: ServiceDaemon, clients: Clients, service: Service) {
    let browsing = match daemon.browse(SERVICE) {
        Ok(browsing) => browsing,
        Err(error) => return tracing::error!("no aircraft is found by mDNS: {error}"),
    };
    // It ends with this task.
    let _ending = Ending(daemon);
    let scheme = if clients.keys().is_some() { "https" } else { "http" };
    // By the name that was announced.
    let mut candidates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut logged = BTreeSet::new();
    let mut tick = interval(ASK_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            event = browsing.recv_async() => match event {
                Ok(ServiceEvent::ServiceResolved(found)) => {
                    if candidates.len() >= CANDIDATES_MAX && !candidates.contains_key(&found.fullname) {
                        continue;
                    }
                    let addresses = bases(scheme, &found.fullname, found.addresses.iter(), found.port);
                    let addresses = addresses.unwrap_or_else(|line| {
                        warn(&mut logged, line);
                        BTreeSet::new()
                    });
                    ask(&clients, &service, &addresses, &mut logged).await;
                    candidates.insert(found.fullname.clone(), addresses);
                }
                Ok(ServiceEvent::ServiceRemoved(_, name)) => drop(candidates.remove(&name)),
                Ok(_) => {}
                Err(_) => return tracing::error!("no aircraft is found by mDNS any more: its task has ended"),
            },
            _ = tick.tick() => {
                let end = Instant::now() + ASK_EVERY;
                for addresses in candidates.values() {
                    if Instant::now() > end {
                        break;
                    }
                    ask(&clients, &service, addresses, &mut logged).await;
                }
            }
        }
    }
}

/// The first of the addresses that answers as an aircraft is followed, unless the aircraft is already.
async fn ask(
    clients: &Clients,
    service: &Service,
    addresses: &BTreeSet<String>,
    logged: &mut BTreeSet<String>,
) {
    if service.follows(addresses.iter().cloned().collect()).await {
        return;
    }
    for address in addresses {
        match client::identity(clients, address).await {
            Ok(identity) => {
                let found = Found { address: address.clone(), id: identity.id };
                return service.found(found).await;
            }
            Err(why) => warn(logged, format!("{address} is announced as an aircraft: {why}")),
        }
    }
}

/// Logs a line once, and not without end.
fn warn(logged: &mut BTreeSet<String>, line: String) {
    if logged.len() < CANDIDATES_MAX && logged.insert(line.clone()) {
        tracing::warn!("{line}");
    }
}

/// A link-local address of IPv6 has no meaning without its interface, which an address of HTTP cannot name
/// (<https://www.rfc-editor.org/rfc/rfc9844>).
pub(crate) const LINK_LOCAL: &str = "found a link-local address of IPv6, whose interface HTTP cannot name, expected one of IPv4, or another of IPv6";

/// Where the API at an address is.
///
/// # Errors
/// The address is link-local.
pub(crate) fn base(scheme: &str, address: IpAddr, port: u16) -> Result<String, &'static str> {
    match address {
        IpAddr::V4(address) => Ok(format!("{scheme}://{address}:{port}")),
        IpAddr::V6(address) if address.is_unicast_link_local() => Err(LINK_LOCAL),
        IpAddr::V6(address) => Ok(format!("{scheme}://[{address}]:{port}")),
    }
}

/// Where one that is announced is asked; link-local addresses beside another are left out.
///
/// # Errors
/// It has no other, as a line for the log: its name is of another's making.
fn bases<'a>(
    scheme: &str,
    name: &str,
    addresses: impl Iterator<Item = &'a ScopedIp>,
    port: u16,
) -> Result<BTreeSet<String>, String> {
    let (mut usable, mut left_out) = (BTreeSet::new(), None);
    for address in addresses {
        match base(scheme, address.to_ip_addr(), port) {
            Ok(url) if usable.len() < ADDRESSES_MAX => drop(usable.insert(url)),
            Ok(_) => {}
            Err(why) => left_out = Some((address, why)),
        }
    }
    match left_out {
        Some((address, why)) if usable.is_empty() => {
            let name: String = name.chars().take(64).collect();
            Err(format!("{name:?} is announced as an aircraft at {address} alone: {why}"))
        }
        Some(_) | None => Ok(usable),
    }
}

struct Ending(ServiceDaemon);

impl Drop for Ending {
    fn drop(&mut self) {
        // It has a thread of its own.
        let _ = self.0.shutdown();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_needs_its_interface_is_refused() {
        let of = |address: &str| base("https", address.parse().expect("an address"), 8080);
        assert_eq!(of("10.0.0.7").as_deref(), Ok("https://10.0.0.7:8080"));
        assert_eq!(of("fd00::7").as_deref(), Ok("https://[fd00::7]:8080"));
        for link_local in ["fe80::7", "febf::1"] {
            assert_eq!(of(link_local), Err(LINK_LOCAL));
        }
    }

    #[test]
    fn one_that_is_announced_at_a_link_local_address_alone_is_named_once() {
        let of = |addresses: &[&str]| {
            let addresses: Vec<ScopedIp> =
                addresses.iter().map(|one| one.parse::<IpAddr>().expect("an address").into()).collect();
            bases("http", "UAV\u{1b}[2J 7._wingbeat._tcp.local.", addresses.iter(), 8080)
        };
        let both = of(&["fe80::7", "10.0.0.7", "fd00::7"]).expect("two of them");
        assert_eq!(both.into_iter().collect::<Vec<_>>(), ["http://10.0.0.7:8080", "http://[fd00::7]:8080"]);
        let line = of(&["fe80::7"]).expect_err("none");
        let name = "\"UAV\\u{1b}[2J 7._wingbeat._tcp.local.\"";
        assert_eq!(line, format!("{name} is announced as an aircraft at fe80::7 alone: {LINK_LOCAL}"));
        assert_eq!(of(&[]), Ok(BTreeSet::new()));
        let many: Vec<String> = (1..=20).map(|last| format!("10.0.0.{last}")).collect();
        assert_eq!(
            of(&many.iter().map(String::as_str).collect::<Vec<_>>()).expect("some").len(),
            ADDRESSES_MAX
        );
        let mut logged = BTreeSet::new();
        for _ in 0..3 {
            warn(&mut logged, line.clone());
        }
        assert_eq!(logged.len(), 1);
    }
}
