//! The gateway for ground stations: the vehicle's MAVLink on UDP and TCP, for QGroundControl, Mission Planner,
//! MAVProxy and MAVSDK.
//!
//! Sockets have tasks, which only carry bytes; everything is decided in the driver's task, by
//! [`wingbeat_autopilot::gateway`], so that a client's command and the agent's orders have one order. What
//! it promises: a client that is slow loses frames and delays no other; at most [`CLIENTS_MAX`] clients; a
//! UDP peer that sends nothing for [`IDLE`] is removed; every frame that is not passed on is counted by its reason.
//!
//! A UDP peer is no client before it has proved that it receives at its address, or is configured
//! ([`Config::udp_clients`]): nothing of it passes, and it is sent no more than it sent
//! ([`wingbeat_autopilot::gateway::Cookie`]). A TCP client that has sent no whole frame for [`IDLE`], or none yet, gives way
//! where there are too many.

use std::{
    hash::{BuildHasher as _, RandomState},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UdpSocket},
    sync::mpsc,
    task::JoinSet,
    time::{Instant as KernelInstant, interval, sleep, timeout},
};
use wingbeat_autopilot::{
    codec::finder::{Dropped, Finder},
    gateway::{
        Allowance, CHALLENGE_LEN, Circumstances, Cookie, FrameWriter, GREETING_LEN, Gatekeeper, Refusal,
        Verdict, encode_like, greeting,
    },
    telemetry::StreamRequest,
};
use wingbeat_geo::Instant;
use wingbeat_link::Endpoint;

use crate::liveness::{Liveness, TaskWatchdog};

/// Simultaneous clients. Each takes a copy of everything that the autopilot sends.
pub const CLIENTS_MAX: usize = 8;
/// A UDP peer that sends nothing for so long is removed: ground stations send a heartbeat a second.
pub const IDLE: Duration = Duration::from_secs(10);
/// Pieces that wait for a TCP client: 10 s of all streams at 4 Hz.
const QUEUE_MAX: usize = 64;
/// What clients sent and the driver has not taken yet.
const EVENTS_MAX: usize = 64;
/// A datagram that is carried unbroken by Ethernet, with room for tunnels.
const PIECE_MAX: usize = 1_400;
/// A TCP client that takes nothing for so long is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// A shortage of the system (file descriptors) is waited out for this time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// An idle socket's task iterates this often, by its timer.
const TURN_PERIOD: Duration = Duration::from_millis(500);
/// None of its turns takes longer: the longest step is the pause.
const TURN_MAX: Duration = Duration::from_secs(3);
const _: () = assert!(TURN_MAX.as_millis() > TURN_PERIOD.as_millis() + ACCEPT_PAUSE.as_millis());
/// Addresses that have to prove themselves and are logged; the others are counted.
const NOTICED_MAX: usize = 8;
/// MAVLink's usual period of a heartbeat.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Where the vehicle's MAVLink is offered; nowhere by default, because any program that reaches it can fly the
/// aircraft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// UDP: `udpout` sends to one ground station, `udp` answers to those that send.
    pub udp: Vec<Endpoint>,
    /// A TCP server.
    pub tcp: Option<SocketAddr>,
    /// UDP peers at these addresses need not prove that they receive there.
    pub udp_clients: Vec<IpAddr>,
}

impl Config {
    /// Returns the endpoints that other computers reach, for operators; nothing where there are none.
    pub fn reached_by_others(&self) -> Option<String> {
        let udp = self.udp.iter().filter_map(|endpoint| match endpoint {
            Endpoint::UdpListen(address) | Endpoint::UdpSend(address) => Some(("udp", *address)),
            Endpoint::Serial { .. } | Endpoint::TcpClient { .. } => None,
        });
        let all = udp.chain(self.tcp.map(|address| ("tcp", address)));
        let open: Vec<String> = all
            .filter(|(_, address)| !address.ip().is_loopback())
            .map(|(kind, address)| format!("gateway.{kind} {address}"))
            .collect();
        (!open.is_empty()).then(|| open.join(", "))
    }
}

impl Default for Config {
    /// No sockets. The kernel takes no datagram from a network whose sender is this machine.
    fn default() -> Self {
        let udp_clients = vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        Self { udp: vec![], tcp: None, udp_clients }
    }
}

/// Why the gateway cannot be offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("gateway {address}: found {found}, expected {expected}")]
pub struct GatewayError {
    /// The address that cannot be served.
    pub address: String,
    /// The kernel's error.
    pub found: String,
    /// The values that are accepted.
    pub expected: &'static str,
}

/// The address of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Tcp(u64),
    Udp(usize, SocketAddr),
}

/// What the sockets' tasks report.
#[derive(Debug)]
pub(crate) enum GatewayEvent {
    Connected { id: u64, peer: SocketAddr, out: mpsc::Sender<Arc<[u8]>> },
    Bytes { id: u64, bytes: Vec<u8> },
    Disconnected { id: u64 },
    Datagram { socket: usize, from: SocketAddr, bytes: Vec<u8> },
}

/// What the driver has to do, in this order.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    /// Inform the agent that a ground station commands.
    Command(&'a str),
    /// Write to the autopilot; false if it was not taken.
    Write(&'a [u8]),
    /// For the log.
    Log(String),
}

#[derive(Debug)]
enum Sink {
    Tcp(mpsc::Sender<Arc<[u8]>>),
    Udp(Arc<UdpSocket>, SocketAddr),
}

struct Client {
    key: Key,
    name: String,
    sink: Sink,
    finder: Finder,
    sender: FrameWriter,
    received_at: KernelInstant,
    /// When it sent a whole frame last.
    frame_at: Option<KernelInstant>,
    address: IpAddr,
    /// It stays whether or not it sends: the configured receiver.
    fixed: bool,
}

impl Client {
    /// Whether the piece left or was queued. A UDP socket's queue is the kernel's.
    fn send(&self, piece: &Arc<[u8]>) -> bool {
        match &self.sink {
            Sink::Tcp(out) => out.try_send(piece.clone()).is_ok(),
            // No program listens there yet: that is no slow client.
            Sink::Udp(socket, peer) => match socket.try_send_to(piece, *peer) {
                Err(error) => error.kind() == io::ErrorKind::ConnectionRefused,
                Ok(_) => true,
            },
        }
    }
}

/// The driver's side.
pub(crate) struct Gateway {
    events: mpsc::Receiver<GatewayEvent>,
    sockets: Vec<Arc<UdpSocket>>,
    clients: Vec<Client>,
    keeper: Gatekeeper,
    allowance: Allowance,
    /// Finds the autopilot's frames again, whole.
    autopilot: Finder,
    heartbeat_due: Instant,
    refused: [u64; Refusal::ALL.len()],
    /// Of clients that have gone.
    dropped: Dropped,
    /// Pieces that a client was too slow for.
    lost: u64,
    turned_away: u64,
    /// UDP peers that need no proof.
    udp_clients: Vec<IpAddr>,
    /// Makes the cookies.
    secret: RandomState,
    challenger: FrameWriter,
    /// The autopilot's heartbeat, for those that have not proved themselves.
    greeting: Option<Vec<u8>>,
    /// Frames of peers that have not proved that they receive at their address.
    unproved: u64,
    noticed: Vec<IpAddr>,
    opened_at: KernelInstant,
    /// Datagrams that came faster than the driver takes them.
    overflows: Arc<AtomicU64>,
    /// TCP connections that were not accepted for want of file descriptors or memory.
    shortages: Arc<AtomicU64>,
    addresses: Vec<SocketAddr>,
    _tasks: JoinSet<()>,
}

impl Gateway {
    /// Binds every socket, or none, and enters their tasks in `liveness`. `baud` is the autopilot's line's,
    /// where it is one.
    ///
    /// # Errors
    /// The first address that cannot be had.
    pub(crate) async fn open(
        config: &Config,
        needs: impl IntoIterator<Item = StreamRequest>,
        baud: Option<u32>,
        now: Instant,
        liveness: &mut Liveness,
    ) -> Result<Option<Self>, GatewayError> {
        if config.udp.is_empty() && config.tcp.is_none() {
            return Ok(None);
        }
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let overflows = Arc::new(AtomicU64::new(0));
        let shortages = Arc::new(AtomicU64::new(0));
        let (mut sockets, mut clients, mut addresses) = (Vec::new(), Vec::new(), Vec::new());
        let mut tasks = JoinSet::new();
        let mut bound = Vec::new();
        for endpoint in &config.udp {
            let (address, fixed) = match endpoint {
                Endpoint::UdpListen(address) => (*address, None),
                Endpoint::UdpSend(peer) if peer.is_ipv4() => (([0, 0, 0, 0], 0).into(), Some(*peer)),
                Endpoint::UdpSend(peer) => (([0_u16; 8], 0).into(), Some(*peer)),
                other => {
                    return Err(GatewayError {
                        address: other.to_string(),
                        found: "another kind of endpoint".into(),
                        expected: "udp:ADDRESS:PORT or udpout:ADDRESS:PORT",
                    });
                }
            };
            let socket = UdpSocket::bind(address).await.map_err(|error| refused(endpoint, &error))?;
            let socket = Arc::new(socket);
            if fixed.is_none() {
                addresses.push(socket.local_addr().map_err(|error| refused(endpoint, &error))?);
            }
            if let Some(peer) = fixed {
                let key = Key::Udp(sockets.len(), peer);
                let sink = Sink::Udp(socket.clone(), peer);
                clients.push(client(key, sink, peer.ip(), format!("udp {peer}"), true));
            }
            bound.push((socket.clone(), fixed));
            sockets.push(socket);
        }
        let listener = match config.tcp {
            None => None,
            Some(address) => {
                let name = format!("tcp:{address}");
                let listener = TcpListener::bind(address).await.map_err(|error| refused(&name, &error))?;
                addresses.push(listener.local_addr().map_err(|error| refused(&name, &error))?);
                Some(listener)
            }
        };
        // Nothing is carried before everything is bound.
        for (index, (socket, fixed)) in bound.into_iter().enumerate() {
            let watchdog = liveness.task("gateway UDP", TURN_MAX);
            tasks.spawn(receive(index, socket, fixed, sender.clone(), overflows.clone(), watchdog));
        }
        if let Some(listener) = listener {
            tasks.spawn(accept(listener, sender, shortages.clone(), liveness.task("gateway TCP", TURN_MAX)));
        }
        let (cap_hz, share) = (
            wingbeat_autopilot::gateway::rate_cap_hz(baud),
            wingbeat_autopilot::gateway::share_bytes_s(baud),
        );
        Ok(Some(Self {
            events,
            sockets,
            clients,
            keeper: Gatekeeper::new(needs, cap_hz),
            allowance: Allowance::new(now, share),
            autopilot: Finder::default(),
            heartbeat_due: now,
            refused: [0; Refusal::ALL.len()],
            dropped: Dropped::default(),
            lost: 0,
            turned_away: 0,
            udp_clients: config.udp_clients.clone(),
            secret: RandomState::new(),
            challenger: FrameWriter::default(),
            greeting: None,
            unproved: 0,
            noticed: Vec::new(),
            opened_at: KernelInstant::now(),
            overflows,
            shortages,
            addresses,
            _tasks: tasks,
        }))
    }

    /// Where it listens: UDP in the order of the configuration, then TCP.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The next event. Dropping the future loses nothing.
    pub(crate) async fn recv(&mut self) -> GatewayEvent {
        match self.events.recv().await {
            Some(event) => event,
            // Every socket's task has ended, which none does while the gateway runs.
            None => std::future::pending().await,
        }
    }

    /// Takes what came from a client, and hands on what is to be done.
    pub(crate) fn take(
        &mut self,
        event: GatewayEvent,
        now: Instant,
        circumstances: Circumstances,
        act: &mut dyn FnMut(Step<'_>) -> bool,
    ) {
        let (key, bytes) = match event {
            GatewayEvent::Connected { id, peer, out } => {
                let name = format!("tcp {peer}");
                if !self.makes_room(peer.ip(), &name, act) {
                    // Its task sees its queue end, and disconnects.
                    act(Step::Log(format!("gateway: {name} refused, {CLIENTS_MAX} clients are served")));
                    return;
                }
                act(Step::Log(format!("gateway: {name} connected")));
                self.clients.push(client(Key::Tcp(id), Sink::Tcp(out), peer.ip(), name, false));
                return;
            }
            GatewayEvent::Disconnected { id } => {
                for client in self.forget(|client| client.key == Key::Tcp(id)) {
                    act(Step::Log(format!("gateway: {client} left")));
                }
                return;
            }
            GatewayEvent::Bytes { id, bytes } => (Key::Tcp(id), bytes),
            GatewayEvent::Datagram { socket, from, bytes } => (Key::Udp(socket, from), bytes),
        };
        let index = match self.clients.iter().position(|client| client.key == key) {
            Some(index) => index,
            None => match self.newcomer(key, &bytes, now, circumstances.system_id, act) {
                Some(name) => {
                    act(Step::Log(format!("gateway: {name} connected")));
                    self.clients.len() - 1
                }
                None => return,
            },
        };
        self.judge(index, &bytes, now, circumstances, act);
    }

    /// Whether there is a place for a client at this address, which a silent one may have to leave.
    fn makes_room(&mut self, address: IpAddr, name: &str, act: &mut dyn FnMut(Step<'_>) -> bool) -> bool {
        if self.clients.len() < CLIENTS_MAX {
            return true;
        }
        let silent = self.give_way(address);
        match &silent {
            Some(silent) => act(Step::Log(format!(
                "gateway: {silent} sends nothing, disconnected: {name} needs its place"
            ))),
            None => {
                self.turned_away += 1;
                true
            }
        };
        silent.is_some()
    }

    /// Removes a TCP client that sends nothing, for one at this address; returns its name. Of those that may, of the
    /// address that has the most the one that has sent nothing for the longest time.
    fn give_way(&mut self, address: IpAddr) -> Option<String> {
        let now = KernelInstant::now();
        let is_silent = |client: &Client| {
            matches!(client.key, Key::Tcp(_))
                && client.frame_at.is_none_or(|at| now.saturating_duration_since(at) >= IDLE)
        };
        let silent = |of: IpAddr| {
            let count =
                self.clients.iter().filter(|client| client.address == of && is_silent(client)).count();
            count + usize::from(of == address)
        };
        let silents = self.clients.iter().filter(|client| is_silent(client));
        let since = |client: &Client| client.frame_at.unwrap_or(client.received_at);
        let key =
            silents.max_by_key(|client| (silent(client.address), std::cmp::Reverse(since(client))))?.key;
        self.turned_away += 1;
        self.forget(|client| client.key == key).pop()
    }

    /// Answers a peer that has not proved that it receives at its address, with no more than it sent.
    fn challenge(&mut self, socket: usize, peer: SocketAddr, most: usize, cookie: Cookie, system_id: u8) {
        let challenge = self.challenger.challenge(system_id, cookie);
        let greeting = self.greeting.as_deref().unwrap_or_default();
        let mut answer = Vec::with_capacity(GREETING_LEN + CHALLENGE_LEN);
        // One after the other where both are too long: a heartbeat comes each second.
        let turn = self.opened_at.elapsed().as_secs().is_multiple_of(2);
        for (piece, is_its_turn) in [(greeting, turn), (&challenge, !turn)] {
            if answer.len() + piece.len() <= most && (is_its_turn || most >= GREETING_LEN + CHALLENGE_LEN) {
                answer.extend_from_slice(piece);
            }
        }
        if !answer.is_empty()
            && let Some(socket) = self.sockets.get(socket)
        {
            // It asks again.
            let _ = socket.try_send_to(&answer, peer);
        }
    }

    /// Takes in a UDP peer that has sent a whole frame and proved its address; returns its name.
    fn newcomer(
        &mut self,
        key: Key,
        bytes: &[u8],
        now: Instant,
        system_id: Option<u8>,
        act: &mut dyn FnMut(Step<'_>) -> bool,
    ) -> Option<String> {
        let Key::Udp(socket, peer) = key else { return None };
        let address = peer.ip().to_canonical();
        let cookie = Cookie::new(self.secret.hash_one((socket, peer)));
        let mut is_proved = self.udp_clients.contains(&address);
        let mut finder = Finder::default();
        let mut frames = 0;
        finder.push(now, bytes, |frame| {
            frames += 1;
            is_proved |= cookie.is_returned_by(frame);
        });
        if frames > 0 && !is_proved {
            self.unproved += frames;
            if !self.noticed.contains(&address) && self.noticed.len() < NOTICED_MAX {
                self.noticed.push(address);
                act(Step::Log(format!(
                    "gateway: udp {peer} has not proved that it receives there: found no answer to PING, expected one, or \
                     its address in gateway.udp_clients"
                )));
            }
            if let Some(system_id) = system_id {
                self.challenge(socket, peer, bytes.len(), cookie, system_id);
            }
            return None;
        }
        if frames == 0 {
            self.dropped = sum(self.dropped, finder.dropped());
            self.dropped.garbage_bytes = self.dropped.garbage_bytes.saturating_add(finder.pending() as u32);
            return None;
        }
        let name = format!("udp {peer}");
        if !self.makes_room(address, &name, act) {
            return None;
        }
        let sink = Sink::Udp(self.sockets.get(socket)?.clone(), peer);
        self.clients.push(client(key, sink, address, name.clone(), false));
        Some(name)
    }

    fn judge(
        &mut self,
        index: usize,
        bytes: &[u8],
        now: Instant,
        circumstances: Circumstances,
        act: &mut dyn FnMut(Step<'_>) -> bool,
    ) {
        let Self { clients, keeper, allowance, refused, .. } = self;
        let Some(client) = clients.get_mut(index) else { return };
        client.received_at = KernelInstant::now();
        let Client { finder, sender, name, sink, .. } = client;
        let mut explanations = Vec::new();
        // What passes of one event is one write: the line's queue counts writes.
        let mut passing = Vec::new();
        let mut frames = 0;
        let mut has_sent_a_frame = false;
        let mut count = |refusal: Refusal, n: u64| refused[refusal as usize] += n;
        finder.push(now, bytes, |frame| {
            has_sent_a_frame = true;
            let verdict = keeper.judge(frame, circumstances);
            match verdict {
                Verdict::Command(what) => {
                    // What came before it leaves before it; a command is not held to the allowance.
                    if !passing.is_empty() && !act(Step::Write(&passing)) {
                        count(Refusal::LineFull, frames);
                    }
                    (passing, frames) = (Vec::new(), 0);
                    let _ = allowance.take(now, frame.bytes().len());
                    act(Step::Command(&format!("{what} ({name})")));
                    if !act(Step::Write(frame.bytes())) {
                        count(Refusal::LineFull, 1);
                    }
                }
                Verdict::Refuse(refusal) => count(refusal, 1),
                Verdict::Explain(refusal, why) => {
                    count(refusal, 1);
                    explanations.push(why);
                }
                Verdict::Pass | Verdict::Replace(_) if !allowance.take(now, frame.bytes().len()) => {
                    count(Refusal::TooFast, 1);
                }
                Verdict::Pass => {
                    passing.extend_from_slice(frame.bytes());
                    frames += 1;
                }
                Verdict::Replace(messages) => {
                    for message in &messages {
                        let mut out =
                            heapless::Vec::<u8, { wingbeat_autopilot::codec::FRAME_LEN_MAX }>::new();
                        // The longest frame fits.
                        if encode_like(frame, message, &mut out).is_ok() {
                            passing.extend_from_slice(&out);
                        }
                    }
                    frames += 1;
                }
            }
        });
        if !passing.is_empty() && !act(Step::Write(&passing)) {
            count(Refusal::LineFull, frames);
        }
        if has_sent_a_frame {
            client.frame_at = Some(KernelInstant::now());
        }
        let Some(system_id) = circumstances.system_id else { return };
        for why in explanations {
            let piece: Arc<[u8]> = sender.warn(system_id, &why).as_slice().into();
            let left = match sink {
                Sink::Tcp(out) => out.try_send(piece).is_ok(),
                Sink::Udp(socket, peer) => socket.try_send_to(&piece, *peer).is_ok(),
            };
            self.lost += u64::from(!left);
        }
    }

    /// The autopilot's bytes: its frames go to every client as they are.
    pub(crate) fn autopilot(&mut self, now: Instant, bytes: &[u8]) {
        let mut pieces: Vec<Vec<u8>> = Vec::new();
        let latest = &mut self.greeting;
        self.autopilot.push(now, bytes, |frame| {
            if let Some(greeting) = greeting(frame) {
                *latest = Some(greeting.to_vec());
            }
            match pieces.last_mut() {
                Some(piece) if piece.len() + frame.bytes().len() <= PIECE_MAX => {
                    piece.extend_from_slice(frame.bytes());
                }
                _ => pieces.push(frame.bytes().to_vec()),
            }
        });
        for piece in pieces {
            let piece: Arc<[u8]> = piece.into();
            self.lost += self.clients.iter().filter(|client| !client.send(&piece)).count() as u64;
        }
    }

    /// The autopilot's port reopened: half a frame will not be finished.
    pub(crate) fn restart(&mut self) {
        self.autopilot.restart();
    }

    /// When [`Gateway::poll`] has something to do.
    pub(crate) fn due(&self) -> Instant {
        if self.clients.is_empty() { Instant::NEVER } else { self.heartbeat_due }
    }

    /// Sends our heartbeat to the clients that are due one, and forgets those that send nothing any more.
    /// A driver that stands still sends none.
    pub(crate) fn poll(&mut self, now: Instant, system_id: Option<u8>, log: &mut dyn FnMut(String)) {
        let since = KernelInstant::now();
        let idle = |client: &Client| {
            matches!(client.key, Key::Udp(..))
                && !client.fixed
                && since.saturating_duration_since(client.received_at) >= IDLE
        };
        for name in self.forget(idle) {
            log(format!("gateway: {name} sent nothing for {} s, disconnected", IDLE.as_secs()));
        }
        if now < self.heartbeat_due {
            return;
        }
        self.heartbeat_due = now + HEARTBEAT;
        let Some(system_id) = system_id else { return };
        for client in &mut self.clients {
            let piece: Arc<[u8]> = client.sender.heartbeat(system_id).as_slice().into();
            self.lost += u64::from(!client.send(&piece));
        }
    }

    fn forget(&mut self, mut gone: impl FnMut(&Client) -> bool) -> Vec<String> {
        let (gone, stay) = std::mem::take(&mut self.clients).into_iter().partition::<Vec<_>, _>(|c| gone(c));
        self.clients = stay;
        self.dropped = gone.iter().fold(self.dropped, |all, client| sum(all, client.finder.dropped()));
        gone.into_iter().map(|client| client.name).collect()
    }

    /// Names of the connected clients.
    pub(crate) fn clients(&self) -> Vec<String> {
        self.clients.iter().map(|client| client.name.clone()).collect()
    }

    /// What was not passed on, by reason: clients' frames and bytes, and what clients were too slow for.
    pub(crate) fn refused(&self) -> Vec<(&'static str, u64)> {
        let dropped = self.clients.iter().fold(self.dropped, |all, client| sum(all, client.finder.dropped()));
        let reasons = Refusal::ALL.iter().zip(self.refused).map(|(refusal, count)| (refusal.name(), count));
        reasons
            .chain([
                ("garbage_bytes", dropped.garbage_bytes.into()),
                ("bad_checksum", dropped.bad_checksum.into()),
                ("overflow", self.overflows.load(Ordering::Relaxed)),
                ("shortage", self.shortages.load(Ordering::Relaxed)),
                ("turned_away", self.turned_away),
                ("unproved", self.unproved),
                ("slow_client", self.lost),
            ])
            .collect()
    }
}

fn client(key: Key, sink: Sink, address: IpAddr, name: String, fixed: bool) -> Client {
    let (finder, sender, received_at) = (Finder::default(), FrameWriter::default(), KernelInstant::now());
    Client { key, name, sink, finder, sender, received_at, frame_at: None, address, fixed }
}

fn sum(a: Dropped, b: Dropped) -> Dropped {
    Dropped {
        garbage_bytes: a.garbage_bytes.saturating_add(b.garbage_bytes),
        bad_checksum: a.bad_checksum.saturating_add(b.bad_checksum),
        ..a
    }
}

fn refused(address: &impl ToString, error: &io::Error) -> GatewayError {
    GatewayError {
        address: address.to_string(),
        found: match error.kind() {
            io::ErrorKind::AddrInUse => "the port in use".into(),
            _ => error.to_string(),
        },
        expected: "a free port on an address of this machine",
    }
}

/// Carries datagrams to the driver. A flood is dropped here, and counted.
async fn receive(
    index: usize,
    socket: Arc<UdpSocket>,
    fixed: Option<SocketAddr>,
    events: mpsc::Sender<GatewayEvent>,
    overflows: Arc<AtomicU64>,
    watchdog: TaskWatchdog,
) {
    let mut buffer = vec![0; 4_096];
    loop {
        watchdog.feed();
        // Nothing is lost by a wait that ends.
        let Ok(received) = timeout(TURN_PERIOD, socket.recv_from(&mut buffer)).await else { continue };
        match received {
            Ok((length, from)) if fixed.is_none_or(|peer| peer == from) => {
                let bytes = buffer.get(..length).unwrap_or_default().to_vec();
                match events.try_send(GatewayEvent::Datagram { socket: index, from, bytes }) {
                    Ok(()) => {}
                    Err(mpsc::error::TrySendError::Full(_)) => {
                        overflows.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(mpsc::error::TrySendError::Closed(_)) => return,
                }
            }
            Ok(_) => {}
            // The answer to a datagram that no program received; the socket itself works.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn accept(
    listener: TcpListener,
    events: mpsc::Sender<GatewayEvent>,
    shortages: Arc<AtomicU64>,
    watchdog: TaskWatchdog,
) {
    let mut connections = JoinSet::new();
    let mut id = 0;
    let mut turns = interval(TURN_PERIOD);
    loop {
        watchdog.feed();
        tokio::select! {
            // More than are served would only wait to be refused.
            accepted = listener.accept(), if connections.len() <= 2 * CLIENTS_MAX => match accepted {
                Ok((stream, peer)) => {
                    id += 1;
                    connections.spawn(carry(id, peer, stream, events.clone()));
                }
                Err(_) => {
                    shortages.fetch_add(1, Ordering::Relaxed);
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = turns.tick() => {}
        }
    }
}

/// Carries one connection until either end has had enough.
async fn carry(id: u64, peer: SocketAddr, stream: TcpStream, events: mpsc::Sender<GatewayEvent>) {
    // Frames are small and urgent; without it they come late, not wrong.
    let _ = stream.set_nodelay(true);
    let (out, mut queue) = mpsc::channel::<Arc<[u8]>>(QUEUE_MAX);
    if events.send(GatewayEvent::Connected { id, peer, out }).await.is_err() {
        return;
    }
    let (mut reader, mut writer) = stream.into_split();
    let reading = async {
        let mut buffer = vec![0; 4_096];
        while let Ok(length) = reader.read(&mut buffer).await {
            let bytes = buffer.get(..length).unwrap_or_default().to_vec();
            if length == 0 || events.send(GatewayEvent::Bytes { id, bytes }).await.is_err() {
                break;
            }
        }
    };
    let writing = async {
        while let Some(piece) = queue.recv().await {
            if !matches!(timeout(WRITE_TIMEOUT, writer.write_all(&piece)).await, Ok(Ok(()))) {
                break;
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = writing => {}
    }
    // A driver that has ended does not need to know.
    let _ = events.send(GatewayEvent::Disconnected { id }).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Real sockets, so the kernel's time: idle tasks must iterate, and must be missed when they have ended.
    #[tokio::test]
    async fn every_sockets_task_is_watched_iterates_when_idle_and_is_late_when_it_is_gone() {
        let local = "127.0.0.1:0".parse().unwrap();
        let config = Config { udp: vec![Endpoint::UdpListen(local)], tcp: Some(local), ..Config::default() };
        let mut liveness = Liveness::default();
        let gateway = Gateway::open(&config, [], None, Instant::ZERO, &mut liveness).await.unwrap().unwrap();
        assert!(liveness.names().eq(["gateway UDP", "gateway TCP"]));
        sleep(TURN_MAX + TURN_PERIOD).await;
        assert_eq!(liveness.late(), None, "no client sent, and the loops ran");
        drop(gateway);
        sleep(TURN_MAX + TURN_PERIOD).await;
        assert!(liveness.late().is_some(), "found two tasks that are gone alive");
        assert!(
            Gateway::open(&Config::default(), [], None, Instant::ZERO, &mut Liveness::default())
                .await
                .unwrap()
                .is_none()
        );
    }
}
