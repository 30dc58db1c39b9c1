//! The radio among five hosts: a network namespace for each aircraft, joined by a bridge that loses, delays, duplicates
//! and reorders ([`bridge`]). Each test runs itself again in namespaces of its own (`unshare`), which end with it:
//! nothing leaves them. Where they are not permitted it is skipped, with a line that says why.

#![allow(clippy::disallowed_methods, reason = "frames cross a bridge in the kernel's time")]

mod bridge;
mod hosts;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use bridge::{Bridge, Impairment, MARK, Passed};
use hosts::{command, enter, new_host, plug_in};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use wingbeat_radio::{Destination, Radio, RadioEvent, SendError, UdpBroadcast, UdpConfig};
use wingbeat_wire::Class;

const AIRCRAFT: u8 = 5;
const PORT: u16 = 14_600;
/// However slow the machine is just now.
const PATIENCE: Duration = Duration::from_secs(60);

const CLEAR: Impairment = Impairment { loss: 0.0, duplicate: 0.0, delay: Duration::ZERO, everything: false };
const ROUGH: Impairment =
    Impairment { loss: 0.2, duplicate: 0.05, delay: Duration::from_millis(15), everything: false };

struct Host {
    index: u8,
    /// Its threads are in the aircraft's namespace.
    runtime: Runtime,
    radio: UdpBroadcast,
}

fn swarm(destination: Destination) -> Vec<Host> {
    command("mount -t tmpfs tmpfs /run");
    let start = |index| {
        new_host(index);
        plug_in(index);
        let enter = move || {
            let namespace = std::fs::File::open(format!("/run/netns/air{index}")).unwrap();
            use std::os::fd::AsFd as _;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .on_thread_start(enter)
            .enable_all()
            .build()
            .unwrap();
        let config = UdpConfig { interface: Some("wlan0".into()), port: PORT, destination };
        let radio = {
            let _guard = runtime.enter();
            UdpBroadcast::spawn(config)
        };
        Host { index, runtime, radio }
    };
    let mut hosts: Vec<Host> = (0..AIRCRAFT).map(start).collect();
    hosts.iter_mut().for_each(Host::wait_up);
    hosts
}

/// The bridge, once everything passes it.
fn bridge(hosts: &mut [Host], impairment: Impairment) -> Bridge {
    let ports: Vec<String> = (0..AIRCRAFT).map(|index| format!("port{index}")).collect();
    let bridge = Bridge::over(&ports, 7, CLEAR);
    settle(hosts);
    bridge.set(impairment);
    bridge
}

impl Host {
    fn next(&mut self) -> RadioEvent {
        let event = self.runtime.block_on(async { timeout(PATIENCE, self.radio.recv()).await });
        event.unwrap_or_else(|_| panic!("air{}: no event", self.index)).expect("a running task")
    }

    fn wait_up(&mut self) {
        while self.next() != RadioEvent::Up {}
    }

    /// The reason why it is down.
    fn wait_down(&mut self) -> String {
        loop {
            if let RadioEvent::Down { reason } = self.next() {
                return reason;
            }
        }
    }

    fn send(&self, class: Class, number: u16) -> Result<(), SendError> {
        let [low, high] = number.to_le_bytes();
        let mut datagram = [&MARK[..], &[self.index, low, high]].concat();
        datagram.resize(200, 0x55);
        self.radio.send(class, &datagram)
    }

    /// What it received until nothing came any more: sender and number, in order, its own left out.
    fn drain(&mut self) -> Vec<(u8, u16)> {
        let mut all = vec![];
        let quiet = Duration::from_millis(300);
        while let Ok(event) = self.runtime.block_on(async { timeout(quiet, self.radio.recv()).await }) {
            let Some(RadioEvent::Datagram { bytes, .. }) = event else {
                panic!("air{}: {event:?}", self.index)
            };
            let Some([from, low, high]) = bytes.strip_prefix(&MARK).and_then(<[u8]>::first_chunk) else {
                panic!("air{}: {bytes:?}", self.index)
            };
            if *from != self.index {
                all.push((*from, u16::from_le_bytes([*low, *high])));
            }
        }
        all
    }
}

/// Every aircraft broadcasts so many; compares what each received with what the bridge let through, and returns that
/// and how often a datagram came after a later one.
fn exchange(hosts: &mut [Host], bridge: &Bridge, count: u16) -> (Passed, usize) {
    bridge.take_passed();
    let mut heard: BTreeMap<u8, Vec<(u8, u16)>> = BTreeMap::new();
    for number in 0..count {
        for host in &*hosts {
            host.send(Class::Beacon, number).unwrap_or_else(|e| panic!("air{}: {e}", host.index));
        }
        std::thread::sleep(Duration::from_millis(3));
        // A radio queues 256, and an idle owner would lose them.
        if number % 40 == 39 {
            for host in &mut *hosts {
                heard.entry(host.index).or_default().extend(host.drain());
            }
        }
    }
    for host in &mut *hosts {
        heard.entry(host.index).or_default().extend(host.drain());
        assert_eq!(host.radio.overflows(), 0);
    }
    let passed = bridge.take_passed();
    let mut overtaken = 0;
    for (&receiver, all) in &heard {
        for sender in (0..AIRCRAFT).filter(|&sender| sender != receiver) {
            let mut numbers: BTreeMap<u16, u32> = BTreeMap::new();
            let mut newest = None;
            for (_, number) in all.iter().filter(|(from, _)| *from == sender) {
                *numbers.entry(*number).or_default() += 1;
                overtaken += usize::from(Some(*number) < newest);
                newest = newest.max(Some(*number));
            }
            let let_through = passed.get(&(sender, receiver)).cloned().unwrap_or_default();
            assert_eq!(numbers, let_through, "from air{sender} to air{receiver}");
        }
    }
    (passed, overtaken)
}

/// On a rough bridge every pair loses its share and no more.
fn every_pair_receives_its_share(destination: Destination) {
    const COUNT: u16 = 250;
    let mut hosts = swarm(destination);
    let bridge = bridge(&mut hosts, ROUGH);
    let (passed, overtaken) = exchange(&mut hosts, &bridge, COUNT);
    let pairs: BTreeSet<_> = passed.keys().collect();
    assert_eq!(pairs.len(), usize::from(AIRCRAFT * (AIRCRAFT - 1)));
    for (pair, numbers) in &passed {
        let lost = 1.0 - numbers.len() as f64 / f64::from(COUNT);
        // Five standard deviations of 250 draws.
        assert!((lost - ROUGH.loss).abs() < 0.13, "{pair:?}: {lost} lost");
    }
    let twice = passed.values().flat_map(BTreeMap::values).filter(|&&copies| copies > 1).count();
    assert!(twice > 50 && overtaken > 500, "{twice} twice, {overtaken} overtaken");
}

#[test]
fn ipv4_broadcasts_pass_a_rough_bridge() {
    if !enter("ipv4_broadcasts_pass_a_rough_bridge") {
        every_pair_receives_its_share(Destination::Broadcast(Ipv4Addr::BROADCAST));
    }
}

#[test]
fn broadcasts_of_the_interface_pass_a_rough_bridge() {
    if !enter("broadcasts_of_the_interface_pass_a_rough_bridge") {
        every_pair_receives_its_share(Destination::Interface);
    }
}

#[test]
fn ipv6_multicasts_pass_a_rough_bridge() {
    if !enter("ipv6_multicasts_pass_a_rough_bridge") {
        every_pair_receives_its_share(Destination::Group("ff12::5742".parse().unwrap()));
    }
}

#[test]
fn an_interface_goes_down_and_comes_up_and_vanishes_and_comes_back() {
    if enter("an_interface_goes_down_and_comes_up_and_vanishes_and_comes_back") {
        return;
    }
    for destination in ["255.255.255.255", "interface", "ff12::5742"] {
        let mut hosts = swarm(destination.parse().unwrap());
        let mut joined = bridge(&mut hosts, CLEAR);
        exchange(&mut hosts, &joined, 10);

        command("ip -n air1 link set wlan0 down");
        assert!(hosts[1].wait_down().contains("the interface down"), "{destination}");
        assert_eq!(hosts[1].send(Class::Emergency, 0), Err(SendError::Down));
        hosts[0].send(Class::Beacon, 0).unwrap();
        assert_eq!(hosts[2].drain().len(), 1, "the others go on");
        command("ip -n air1 link set wlan0 up");
        hosts[1].wait_up();
        settle(&mut hosts);
        assert_eq!(exchange(&mut hosts, &joined, 10).0.len(), 20, "{destination}: up again");

        drop(joined);
        command("ip -n air2 link del wlan0");
        let reason = hosts[2].wait_down();
        assert!(reason.contains("no such interface") && reason.contains("wlan0"), "{destination}: {reason}");
        plug_in(2);
        hosts[2].wait_up();
        joined = bridge(&mut hosts, CLEAR);
        assert_eq!(exchange(&mut hosts, &joined, 10).0.len(), 20, "{destination}: back again");
        drop(hosts);
        command("umount -l /run");
        for index in 0..AIRCRAFT {
            let _ = Command::new("ip").args(["link", "del", &format!("port{index}")]).output();
        }
    }
}

/// A link that has just come up passes nothing for a moment, and says so to no program: each sends until all receive it.
fn settle(hosts: &mut [Host]) {
    for _ in 0..20 {
        hosts.iter_mut().for_each(|host| drop(host.drain()));
        for host in &*hosts {
            let _ = host.send(Class::Beacon, u16::MAX);
        }
        let received: Vec<usize> = hosts.iter_mut().map(|host| host.drain().len()).collect();
        if received.iter().all(|&count| count == usize::from(AIRCRAFT - 1)) {
            return;
        }
    }
    panic!("the link does not settle");
}

#[test]
fn a_new_address_is_used() {
    if enter("a_new_address_is_used") {
        return;
    }
    let mut hosts = swarm(Destination::Interface);
    let bridge = bridge(&mut hosts, CLEAR);
    exchange(&mut hosts, &bridge, 10);
    // The old network is gone first: for a moment there is no address to broadcast to.
    for index in 0..AIRCRAFT {
        command(&format!("ip -n air{index} addr flush dev wlan0"));
        let reason = hosts[usize::from(index)].wait_down();
        assert!(reason.contains("no IPv4 broadcast address"), "{reason}");
        command(&format!("ip -n air{index} addr add 10.78.3.{}/22 brd + dev wlan0", index + 1));
        hosts[usize::from(index)].wait_up();
    }
    exchange(&mut hosts, &bridge, 10);
    // Another one at once: the radio was never without.
    for index in 0..AIRCRAFT {
        command(&format!("ip -n air{index} addr add 10.79.0.{}/24 brd + dev wlan0", index + 1));
        command(&format!("ip -n air{index} addr del 10.78.3.{}/22 dev wlan0", index + 1));
        hosts[usize::from(index)].wait_up();
    }
    assert_eq!(exchange(&mut hosts, &bridge, 10).0.len(), 20);
}

#[test]
fn a_full_queue_of_beacons_holds_up_no_emergency() {
    if enter("a_full_queue_of_beacons_holds_up_no_emergency") {
        return;
    }
    let mut hosts = swarm(Destination::Broadcast(Ipv4Addr::BROADCAST));
    let bridge = bridge(&mut hosts, CLEAR);
    exchange(&mut hosts, &bridge, 5);
    // 80 kbit/s: a datagram of 200 bytes takes 24 ms.
    let slow = "ip netns exec air0 tc qdisc replace dev wlan0 root tbf rate 80kbit burst 2000 limit 1000000";
    let made = Command::new("sh").args(["-c", slow]).output().unwrap();
    if !made.status.success() {
        eprintln!("skipped: no tbf here: {}", String::from_utf8_lossy(&made.stderr).trim());
        return;
    }
    let full = (0..1_000).find_map(|number| hosts[0].send(Class::Beacon, number).err());
    assert_eq!(full, Some(SendError::Busy), "the queue is bounded");
    assert_eq!(hosts[0].send(Class::Beacon, 1_001), Err(SendError::Busy));
    assert_eq!(hosts[0].send(Class::Emergency, 2_000), Ok(()), "it has a queue of its own");
    let mut received = vec![];
    while !received.contains(&(0, 2_000)) {
        let more = hosts[1].drain();
        assert!(!more.is_empty(), "the emergency never arrived: {received:?}");
        received.extend(more);
    }
    // A queue that was full does not make a radio that is down.
    assert_eq!(hosts[0].send(Class::Beacon, 3_000), Ok(()));
    assert!(hosts[1].drain().contains(&(0, 3_000)));
}
