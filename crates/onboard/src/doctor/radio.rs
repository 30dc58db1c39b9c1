//! The radio: the interface that is configured, its mode and frequency, and whether another sender on it uses
//! to be this aircraft.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    net::{IpAddr, Ipv4Addr, SocketAddrV4},
    path::Path,
};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    net::UdpSocket,
    time::{Instant, timeout_at},
};
use wingbeat_keys::Validity;
use wingbeat_radio::{Destination, UdpConfig};
use wingbeat_wire::{DATAGRAM_LEN_MAX, VehicleId};

use super::{Finding, Options, System};
use crate::config::Settings;

/// `IFF_UP` in `/sys/class/net/IF/flags` (linux/if.h).
const INTERFACE_UP: u32 = 1;
/// The channels of 802.11a, megahertz.
const BAND_5_GHZ: std::ops::RangeInclusive<u32> = 5_150..=5_895;
/// The configuration of `wingbeat-network`, below the root; where it is, that program made the network.
const NETWORK_CONFIG: &str = "etc/wingbeat/network.conf";
/// How it begins each complaint.
const COMPLAINT: &str = "wingbeat-network: ";
/// Aircraft that are remembered: a flood of made-up ids takes no memory.
const AIRCRAFT_MAX: usize = 512;

pub(super) async fn examine(
    options: &Options,
    settings: &Settings,
    system: &dyn System,
    daemon_runs: bool,
    findings: &mut Vec<Finding>,
) {
    match &settings.radio.interface {
        None => findings.push(Finding::warning(
            "radio interface",
            "none configured: datagrams leave by whatever interface the kernel chooses",
            "the interface to the other aircraft",
            "radio.interface, for example wlan0",
        )),
        Some(name) => {
            let findings_before = findings.len();
            findings.push(interface(&options.root, name));
            if findings[findings_before].verdict == super::Verdict::Ok {
                if options.root.join(NETWORK_CONFIG).exists() {
                    findings.extend(cell(name, settings.frequency_mhz, system));
                } else {
                    findings.push(mode(&options.root, name, settings.frequency_mhz, system));
                }
            }
        }
    }
    findings.push(keys(settings, system));
    findings.push(identity(options, settings, system, daemon_runs).await);
}

/// Their files were read with the configuration.
fn keys(settings: &Settings, system: &dyn System) -> Finding {
    let check = "keys";
    let Some(enrolled) = &settings.daemon.enrolled else {
        return Finding::warning(
            check,
            "none (security.insecure): any transmitter in reach flies this aircraft",
            "datagrams that are signed",
            "wingbeatd enrol, and no security.insecure (docs/operating.md)",
        );
    };
    let (terms, members) = (enrolled.terms, settings.daemon.keys.roster.len());
    let found = format!("those of {members} aircraft and consoles, {terms}");
    match terms.validity(system.unix_time_s() as i64) {
        Validity::Valid => Finding::ok(check, found),
        Validity::Expired => {
            let cure = "on the operator's computer: wingbeat fleet renew, wingbeat fleet push";
            Finding::fault(check, found, "keys that hold: no setup begins", cure)
        }
        Validity::ClockNotSet => Finding::warning(
            check,
            format!(
                "{found}, issued {} by the operator's clock, which is later than this one's",
                terms.issued
            ),
            "a clock that shows whether they have expired",
            "set the clock: GNSS or NTP (timedatectl)",
        ),
    }
}

fn interface(root: &Path, name: &str) -> Finding {
    let folder = root.join("sys/class/net").join(name);
    if !folder.exists() {
        let mut others: Vec<String> = fs::read_dir(root.join("sys/class/net"))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|other| other != "lo")
            .collect();
        others.sort();
        let there = if others.is_empty() { "no other".to_owned() } else { others.join(", ") };
        return Finding::fault(
            "radio interface",
            format!("no {name} (there is {there})"),
            name,
            "plug the radio in, load its driver, or correct radio.interface",
        );
    }
    let flags = fs::read_to_string(folder.join("flags")).unwrap_or_default();
    let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).unwrap_or(0);
    if flags & INTERFACE_UP == 0 {
        let cure =
            format!("ip link set {name} up; rfkill unblock wifi; the unit that joins the ad-hoc network");
        return Finding::fault("radio interface", format!("{name} down"), format!("{name} up"), cure);
    }
    Finding::ok("radio interface", format!("{name} up"))
}

fn mode(root: &Path, name: &str, frequency_mhz: Option<u32>, system: &dyn System) -> Finding {
    let check = "radio mode";
    let folder = root.join("sys/class/net").join(name);
    if !folder.join("phy80211").exists() && !folder.join("wireless").exists() {
        let cure = "radio.interface, if the aircraft use another interface";
        return Finding::warning(check, format!("{name} not wireless"), "an 802.11 interface", cure);
    }
    let text = match system.output("iw", &["dev", name, "info"]) {
        Ok(text) => text,
        Err(problem) => {
            let cure = "apt install iw";
            return Finding::warning(check, format!("it unknown ({problem})"), "IBSS (ad-hoc)", cure);
        }
    };
    let field = |key: &str| text.lines().find_map(|line| line.trim().strip_prefix(key)).map(str::trim);
    let wanted = frequency_mhz.map_or("5180".to_owned(), |mhz| mhz.to_string());
    let join =
        format!("iw dev {name} set type ibss (interface down), up, iw dev {name} ibss join SSID {wanted}");
    let kind = field("type ").unwrap_or("of no type");
    if kind != "IBSS" {
        return Finding::fault(check, format!("{name} {kind}"), "IBSS (ad-hoc)", join);
    }
    // channel 36 (5180 MHz), width: 20 MHz (no HT), center1: 5180 MHz
    let found_mhz: Option<u32> =
        field("channel ").and_then(|text| text.split_once('(')?.1.split_once(" MHz")?.0.trim().parse().ok());
    let Some(found_mhz) = found_mhz else {
        return Finding::fault(check, format!("{name} IBSS, joined to no network"), "a joined network", join);
    };
    match frequency_mhz {
        Some(expected) if expected != found_mhz => Finding::fault(
            check,
            format!("{name} IBSS at {found_mhz} MHz"),
            format!("{expected} MHz (radio.frequency_mhz)"),
            format!("iw dev {name} ibss leave; iw dev {name} ibss join SSID {expected}"),
        ),
        None if !BAND_5_GHZ.contains(&found_mhz) => Finding::warning(
            check,
            format!("{name} IBSS at {found_mhz} MHz"),
            "5 GHz (802.11a)",
            "a channel of 5 GHz, the same on every aircraft, and radio.frequency_mhz to have it checked",
        ),
        Some(_) | None => Finding::ok(check, format!("{name} IBSS at {found_mhz} MHz")),
    }
}

/// What `wingbeat-network check` finds: a fault for each complaint, or the cell that the radio is in.
fn cell(name: &str, frequency_mhz: Option<u32>, system: &dyn System) -> Vec<Finding> {
    let check = "radio cell";
    let status = match system.output("wingbeat-network", &["check", name]) {
        Ok(status) => status,
        // One complaint after the other: `FILE: KEY: found F, expected E; cure: C` of a fault, without a file where it
        // could not be checked.
        Err(problem) => {
            let complaints =
                problem.split(COMPLAINT).map(str::trim).filter(|complaint| !complaint.is_empty());
            let finding = |complaint: &str| {
                let (text, cure) = complaint.split_once("; cure: ").unwrap_or((complaint, ""));
                let (found, expected) = text.split_once(", expected ").unwrap_or((text, "one cell"));
                let found = found.replacen(": found ", ": ", 1);
                let cure = if cure.is_empty() { "install it, and run wingbeat-network check" } else { cure };
                match complaint.starts_with('/') {
                    true => Finding::fault(check, found, expected, cure),
                    false => Finding::warning(check, found, expected, cure),
                }
            };
            return complaints.map(finding).collect();
        }
    };
    let status = status.trim();
    if let Some(expected) = frequency_mhz.filter(|mhz| !status.contains(&format!(" {mhz} MHz,"))) {
        return vec![Finding::fault(
            check,
            status,
            format!("{expected} MHz (radio.frequency_mhz)"),
            format!("radio.frequency_mhz, or FREQUENCY_MHZ in /{NETWORK_CONFIG}, alike on every aircraft"),
        )];
    }
    if status.ends_with(" 0 stations received") {
        return vec![Finding::warning(
            check,
            status,
            "another aircraft in the cell",
            format!("switch another on; compare /{NETWORK_CONFIG} of both"),
        )];
    }
    vec![Finding::ok(check, status)]
}

async fn identity(options: &Options, settings: &Settings, system: &dyn System, daemon_runs: bool) -> Finding {
    let check = "identity";
    let (me, port) = (settings.daemon.agent.coordination.me(), settings.radio.port);
    let socket = match listener(&settings.radio) {
        Ok(socket) => socket,
        Err(error) => {
            let found = format!("UDP port {port} refused ({error})");
            let cure = "end the program that has the port for itself: ss -ulpn";
            return Finding::fault(check, found, "a port that is shared", cure);
        }
    };
    let mut addresses_of: BTreeMap<VehicleId, BTreeSet<IpAddr>> = BTreeMap::new();
    let until = Instant::now() + options.listen_radio;
    let mut buffer = [0; DATAGRAM_LEN_MAX + 1];
    while let Ok(received) = timeout_at(until, socket.recv_from(&mut buffer)).await {
        let Ok((length, from)) = received else { continue };
        let bytes = buffer.get(..length).unwrap_or_default();
        let Ok(opened) = settings.daemon.keys.roster.open(bytes) else { continue };
        if addresses_of.len() < AIRCRAFT_MAX || addresses_of.contains_key(&opened.from()) {
            addresses_of.entry(opened.from()).or_default().insert(from.ip());
        }
    }
    let other = "another id (key id, or another radio) for one of the two";
    // Our own daemon's broadcasts come back to us.
    let mut mine = addresses_of.remove(&me).unwrap_or_default();
    if daemon_runs {
        mine.retain(|address| !system.is_own_address(*address));
    }
    if let Some(address) = mine.first() {
        return Finding::fault(
            check,
            format!("our id {me} used by {address} too"),
            "an id of our own",
            other,
        );
    }
    // One aircraft has one address.
    if let Some((id, addresses)) = addresses_of.iter().find(|(_, addresses)| addresses.len() > 1) {
        let addresses: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
        let found = format!("id {id} used by {}", addresses.join(" and "));
        return Finding::fault(check, found, "an id for each aircraft", other);
    }
    let others = addresses_of.len();
    Finding::ok(check, format!("{me}, ours alone; received from {others} other aircraft"))
}

fn listener(radio: &UdpConfig) -> io::Result<UdpSocket> {
    if let Destination::Group(_) = radio.destination {
        // A group is received on the interface that it was joined on.
        return UdpSocket::from_std(wingbeat_radio::listener(radio).map_err(io::Error::other)?);
    }
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    // As the daemon's, so that both receive.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, radio.port).into())?;
    UdpSocket::from_std(socket.into())
}
