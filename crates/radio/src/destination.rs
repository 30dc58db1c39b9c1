//! Where datagrams go: every other aircraft on the link.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Where datagrams go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// An IPv4 broadcast address: 255.255.255.255, or that of a network.
    Broadcast(Ipv4Addr),
    /// The IPv4 broadcast address that the interface has, whatever it becomes.
    Interface,
    /// An IPv6 group of link-local scope.
    Group(Ipv6Addr),
}

/// Transient or permanent, link-local scope (RFC 4291, section 2.7).
fn is_link_local_group(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 0xff && second & 0x0f == 2
}

/// Groups that every IPv6 node or router is in (RFC 4291, section 2.7.1): theirs, not ours.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

impl FromStr for Destination {
    type Err = &'static str;

    /// `interface`, an IPv4 broadcast address or an IPv6 group of link-local scope. The error is what is expected.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "interface, an IPv4 broadcast address (255.255.255.255), or an IPv6 group of link-local scope (ff12::5742)";
        match text.parse() {
            Ok(IpAddr::V4(v4)) if !v4.is_multicast() && !v4.is_unspecified() => Ok(Self::Broadcast(v4)),
            Ok(IpAddr::V6(v6)) if is_link_local_group(v6) && v6 != ALL_NODES && v6 != ALL_ROUTERS => {
                Ok(Self::Group(v6))
            }
            Err(_) if text == "interface" => Ok(Self::Interface),
            Ok(_) | Err(_) => Err(expected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_parsed_or_what_is_expected_is_said() {
        assert_eq!("255.255.255.255".parse(), Ok(Destination::Broadcast(Ipv4Addr::BROADCAST)));
        assert_eq!("interface".parse(), Ok(Destination::Interface));
        for group in ["ff02::5742", "ff12::5742"] {
            assert_eq!(group.parse(), Ok(Destination::Group(group.parse().unwrap())));
        }
        for bad in
            ["", "everybody", "ff02::1", "ff02::2", "ff05::5742", "fe80::1", "::", "224.0.0.1", "0.0.0.0"]
        {
            assert!(bad.parse::<Destination>().unwrap_err().contains("ff12::5742"), "{bad}");
        }
    }
}
