//! Aircraft that are found by multicast DNS: `_wingbeat._tcp`, which each announces. What is announced is asked who it is, with the
//! console's keys where it has some, and only an aircraft that answers is followed: a name on the network alone changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use mdns_sd::{ServiceDaemon, ServiceEvent};
use reqwest::Client;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::client;
use crate::owner::Found;
use crate::service::Service;

/// What aircraft announce.
pub const SERVICE: &str = "_wingbeat._tcp.local.";
/// Announced addresses that are kept; more are not looked at.
const CANDIDATES_MAX: usize = 256;
/// How often those are asked that did not answer as an aircraft.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// Asks and adds until the service ends.
pub(crate) async fn find(
    daemon: ServiceDaemon,
    client: Client,
    keys: Option<wingbeat_tls::Identity>,
    service: Service,
) {
    let browsing = match daemon.browse(SERVICE) {
        Ok(browsing) => browsing,
        Err(error) => return tracing::error!("no aircraft is found by mDNS: {error}"),
    };
    // It ends with this task.
    let _ending = Ending(daemon);
    let scheme = if keys.is_some() { "https" } else { "http" };
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
                    let addresses = found.addresses.iter().map(mdns_sd::ScopedIp::to_ip_addr);
                    let addresses: BTreeSet<String> =
                        addresses.filter_map(|address| base(scheme, address, found.port)).take(8).collect();
                    ask(&client, keys.as_ref(), &service, &addresses, &mut logged).await;
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
                    ask(&client, keys.as_ref(), &service, addresses, &mut logged).await;
                }
            }
        }
    }
}

/// The first of the addresses that answers as an aircraft is followed, unless the aircraft is already.
async fn ask(
    client: &Client,
    keys: Option<&wingbeat_tls::Identity>,
    service: &Service,
    addresses: &BTreeSet<String>,
    logged: &mut BTreeSet<String>,
) {
    if service.follows(addresses.iter().cloned().collect()).await {
        return;
    }
    for address in addresses {
        match client::identity(client, keys, address).await {
            Ok(identity) => {
                let found = Found { address: address.clone(), id: identity.id };
                return service.found(found).await;
            }
            // Once each, and not without end.
            Err(why) => {
                let line = format!("{address} is announced as an aircraft: {why}");
                if logged.len() < CANDIDATES_MAX && logged.insert(line.clone()) {
                    tracing::warn!("{line}");
                }
            }
        }
    }
}

/// A link-local address of IPv6 has no meaning without its interface, which an address of HTTP cannot name.
pub(crate) fn base(scheme: &str, address: IpAddr, port: u16) -> Option<String> {
    match address {
        IpAddr::V4(address) => Some(format!("{scheme}://{address}:{port}")),
        IpAddr::V6(address) if address.is_unicast_link_local() => None,
        IpAddr::V6(address) => Some(format!("{scheme}://[{address}]:{port}")),
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
    fn an_address_that_needs_its_interface_is_none() {
        let of = |address: &str| base("https", address.parse().expect("an address"), 8080);
        assert_eq!(of("10.0.0.7").as_deref(), Some("https://10.0.0.7:8080"));
        assert_eq!(of("fd00::7").as_deref(), Some("https://[fd00::7]:8080"));
        assert_eq!(of("fe80::7"), None);
    }
}
