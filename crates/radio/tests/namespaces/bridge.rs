//! A bridge between the aircraft's interfaces that loses, delays, duplicates and reorders, and remembers what it did: so a
//! test need not guess how many datagrams should have arrived. `tc netem` would be the kernel's; many kernels have
//! none, and its losses are not known to the test.

use std::collections::{BTreeMap, BinaryHeap};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recv, sendto, socket,
};
use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

/// What the bridge does to every frame, for each receiver of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Impairment {
    /// Share of frames that are lost.
    pub(crate) loss: f64,
    /// Share of frames that arrive twice.
    pub(crate) duplicate: f64,
    /// Every frame is delayed by up to so much: more than between two of a sender, so that they overtake each other.
    pub(crate) delay: Duration,
    /// Whether it meets every frame, or test datagrams alone.
    pub(crate) everything: bool,
}

/// What it let through of each pair's test datagrams, sender and receiver: numbers, each as often as it was passed on.
pub(crate) type Passed = BTreeMap<(u8, u8), BTreeMap<u16, u32>>;

/// Before the sender and the number in the payload of a test datagram.
pub(crate) const MARK: [u8; 8] = *b"wing\0nam";

pub(crate) struct Bridge {
    impairment: Arc<Mutex<Impairment>>,
    passed: Arc<Mutex<Passed>>,
    ends: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Waiting {
    at: Instant,
    serial: u64,
    to: usize,
    frame: Arc<[u8]>,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    /// The earliest is the greatest.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.serial).cmp(&(self.at, self.serial))
    }
}

impl Bridge {
    /// Joins these interfaces of the network namespace of the calling thread.
    pub(crate) fn over(ports: &[String], seed: u64, impairment: Impairment) -> Self {
        let sockets: Vec<_> = ports.iter().map(|port| open(port)).collect();
        let impairment = Arc::new(Mutex::new(impairment));
        let passed = Arc::new(Mutex::new(Passed::new()));
        let ends = Arc::new(AtomicBool::new(false));
        let shared = (impairment.clone(), passed.clone(), ends.clone());
        let thread = std::thread::spawn(move || run(&sockets, seed, &shared.0, &shared.1, &shared.2));
        Self { impairment, passed, ends, thread: Some(thread) }
    }

    pub(crate) fn set(&self, impairment: Impairment) {
        *self.impairment.lock().unwrap() = impairment;
    }

    /// What it let through since this was asked last.
    pub(crate) fn take_passed(&self) -> Passed {
        std::mem::take(&mut self.passed.lock().unwrap())
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A packet socket on one interface.
fn open(port: &str) -> (OwnedFd, LinkAddr) {
    let socket = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
        SockProtocol::EthAll,
    )
    .unwrap();
    let address = getifaddrs()
        .unwrap()
        .filter(|entry| entry.interface_name == port)
        .find_map(|entry| entry.address.as_ref().and_then(|a| a.as_link_addr().copied()))
        .unwrap_or_else(|| panic!("{port}: no link address"));
    bind(socket.as_raw_fd(), &address).unwrap();
    (socket, address)
}

/// Sender and number of a test datagram in a frame, wherever its headers end.
fn marked(frame: &[u8]) -> Option<(u8, u16)> {
    let at = frame.windows(MARK.len()).position(|window| window == MARK)?;
    let [from, low, high] = *frame.get(at + MARK.len()..)?.first_chunk()?;
    Some((from, u16::from_le_bytes([low, high])))
}

/// Writes the checksum of UDP and TCP, which a virtual interface leaves to hardware that it has not (RFC 768, RFC 9293 section
/// 3.1, RFC 8200 section 8.1).
fn complete(frame: &mut [u8]) {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    match frame.get(12..14) {
        // IPv4 without options: 0 is no checksum.
        Some([0x08, 0x00]) if frame.len() > 42 && frame[23] == UDP => frame[40..42].fill(0),
        Some([0x08, 0x00]) if frame.len() >= 54 && frame[23] == TCP => {
            // What follows the packet in a short frame is padding.
            let end = (14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]))).clamp(54, frame.len());
            frame[50..52].fill(0);
            // Addresses, length, protocol, then header and payload.
            let checksum = checksum(&frame[26..end], end - 34 + usize::from(TCP));
            frame[50..52].copy_from_slice(&checksum);
        }
        Some([0x86, 0xdd]) if frame.len() > 62 && frame[20] == UDP => {
            frame[60..62].fill(0);
            // Addresses, length, next header, then header and payload.
            let checksum = checksum(&frame[22..], frame.len() - 54 + usize::from(UDP));
            frame[60..62].copy_from_slice(&checksum);
        }
        _ => {}
    }
}

/// The Internet checksum of these bytes and a number more (RFC 1071).
fn checksum(bytes: &[u8], more: usize) -> [u8; 2] {
    let word = |word: &[u8]| u32::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]));
    let mut sum = bytes.chunks(2).map(word).sum::<u32>() + more as u32;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

fn run(
    ports: &[(OwnedFd, LinkAddr)],
    seed: u64,
    impairment: &Mutex<Impairment>,
    passed: &Mutex<Passed>,
    ends: &AtomicBool,
) {
    let mut chance = Pcg64Mcg::new(u128::from(seed) << 1 | 1);
    let mut share = || (chance.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let mut waiting = BinaryHeap::<Waiting>::new();
    let (mut serial, mut buffer) = (0, [0; 2048]);
    while !ends.load(Ordering::Relaxed) {
        let now = Instant::now();
        while waiting.peek().is_some_and(|first| first.at <= now) {
            let Some(Waiting { to, frame, .. }) = waiting.pop() else { break };
            let (socket, address) = &ports[to];
            // A port that is down loses it.
            let _ = sendto(socket.as_raw_fd(), &frame, address, MsgFlags::empty());
        }
        let next = waiting.peek().map_or(Duration::from_millis(50), |first| first.at - now);
        let timeout = next.as_millis().clamp(1, 50) as u16;
        let mut ready: Vec<_> =
            ports.iter().map(|(fd, _)| PollFd::new(as_fd(fd), PollFlags::POLLIN)).collect();
        let _ = poll(&mut ready, PollTimeout::from(timeout));
        for (from, (socket, _)) in ports.iter().enumerate() {
            loop {
                let length = match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                    Ok(length) => length,
                    // Reported once when the port goes down.
                    Err(Errno::ENETDOWN) => continue,
                    Err(_) => break,
                };
                complete(&mut buffer[..length]);
                let frame: Arc<[u8]> = buffer[..length].into();
                let mark = marked(&frame);
                let Impairment { loss, duplicate, delay, everything } = *impairment.lock().unwrap();
                for to in (0..ports.len()).filter(|&to| to != from) {
                    // What is no test datagram is how hosts get to know each other.
                    let copies = match mark {
                        None if !everything => 1,
                        _ if share() < loss => 0,
                        _ => 1 + u32::from(share() < duplicate),
                    };
                    if let Some((sender, number)) = mark.filter(|_| copies > 0) {
                        let mut passed = passed.lock().unwrap();
                        *passed.entry((sender, to as u8)).or_default().entry(number).or_default() += copies;
                    }
                    for _ in 0..copies {
                        serial += 1;
                        let at = Instant::now() + delay.mul_f64(share());
                        waiting.push(Waiting { at, serial, to, frame: frame.clone() });
                    }
                }
            }
        }
    }
}

fn as_fd(fd: &OwnedFd) -> std::os::fd::BorrowedFd<'_> {
    use std::os::fd::AsFd as _;
    fd.as_fd()
}
