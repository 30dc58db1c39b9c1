//! What the kernel says of the radio's interface: by `getifaddrs`, which sees the network namespace of its caller (the
//! files under `/sys/class/net` are those of whichever namespace they were mounted in).

use std::net::{Ipv4Addr, Ipv6Addr};

#[cfg(target_os = "linux")]
use nix::ifaddrs::getifaddrs;
#[cfg(target_os = "linux")]
use nix::net::if_::{InterfaceFlags, if_nametoindex};

/// An interface at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    /// The kernel's number: another one after the interface was gone.
    pub(crate) index: u32,
    pub(crate) is_up: bool,
    /// The broadcast address of its first IPv4 network.
    pub(crate) broadcast: Option<Ipv4Addr>,
    /// Its own IPv6 address of link-local scope.
    pub(crate) link_local: Option<Ipv6Addr>,
}

impl Interface {
    /// The interface of this name; none where there is none.
    ///
    /// # Errors
    /// The kernel does not answer.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn find(name: &str) -> std::io::Result<Option<Self>> {
        Err(not_here(name))
    }

    /// The interface of this name; none where there is none.
    ///
    /// # Errors
    /// The kernel does not answer.
    #[cfg(target_os = "linux")]
    pub(crate) fn find(name: &str) -> std::io::Result<Option<Self>> {
        let Ok(index) = if_nametoindex(name) else { return Ok(None) };
        let mut found = Self { index, is_up: false, broadcast: None, link_local: None };
        for entry in getifaddrs()?.filter(|entry| entry.interface_name == name) {
            found.is_up |= entry.flags.contains(InterfaceFlags::IFF_UP);
            let broadcast = entry.broadcast.as_ref().and_then(|b| b.as_sockaddr_in()).map(|b| b.ip());
            if entry.flags.contains(InterfaceFlags::IFF_BROADCAST) {
                found.broadcast = found.broadcast.or(broadcast);
            }
            let own = entry.address.as_ref().and_then(|a| a.as_sockaddr_in6()).map(|a| a.ip());
            found.link_local = found.link_local.or(own.filter(Ipv6Addr::is_unicast_link_local));
        }
        Ok(Some(found))
    }
}

/// On Linux alone a socket is bound to an interface.
#[cfg(not(target_os = "linux"))]
pub(crate) fn not_here(name: &str) -> std::io::Error {
    let message = format!(
        "found the interface {name} on a system where a radio is bound to none, expected Linux, or no interface"
    );
    std::io::Error::new(std::io::ErrorKind::Unsupported, message)
}
