//! UDP broadcast on an aircraft's radio interface.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    net::UdpSocket,
    sync::{Notify, mpsc},
    task::JoinHandle,
    time::{interval, sleep},
};
use wingbeat_wire::{Class, DATAGRAM_LEN_MAX, Refused, Screen};

use crate::interface::Interface;
use crate::queue::{Queue, Received};
use crate::{Destination, Radio, RadioEvent, Screened, SendError, check_len};

/// The first and the longest wait before opening again.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// The task's loop repeats this often, and then looks whether the interface is still the one that was opened.
const TURN_PERIOD: Duration = Duration::from_millis(500);
/// No pass of a radio task's loop takes longer: the longest step is the wait before opening again.
pub const TURN_MAX: Duration = Duration::from_secs(5);
const _: () = assert!(TURN_MAX.as_millis() > BACKOFF.1.as_millis());
/// [`RadioEvent::Up`] and [`RadioEvent::Down`] that wait for the owner; the task waits for room.
const CHANGES_MAX: usize = 16;
/// What the kernel keeps for the interface to send, bytes (it doubles this): some thirty datagrams. What waits
/// longer is useless.
const SEND_BUFFER_LEN: usize = 32 * 1024;
/// DSCP CS6, which 802.11 with QoS sends as voice (RFC 8325, section 4.3; 802.1D user priority 6).
const EMERGENCY_TOS: u32 = 0xc0;
/// The highest priority that needs no capability (socket(7), SO_PRIORITY).
const EMERGENCY_PRIORITY: u32 = 6;

/// Interface, port and destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// The interface that datagrams may leave and enter by, for example `wlan0`; any if absent.
    pub interface: Option<String>,
    /// The UDP port, the same on every aircraft.
    pub port: u16,
    /// Where datagrams go.
    pub destination: Destination,
}

/// Why the socket could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("radio {radio}: found {found}, expected {expected}")]
pub struct OpenError {
    /// Interface and port.
    pub radio: String,
    /// What kind of failure.
    pub kind: OpenErrorKind,
    /// The value or problem that was found.
    pub found: String,
    /// The values that are accepted.
    pub expected: &'static str,
}

/// Kinds of [`OpenError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenErrorKind {
    /// No such interface: the driver has not loaded yet, or the stick is out.
    Missing,
    /// The interface is there and down.
    InterfaceDown,
    /// The interface has no address that the destination needs.
    Address,
    /// This user may not.
    Permission,
    /// Another program has the port for itself.
    Busy,
    /// Any other error of the kernel.
    Other,
}

impl OpenErrorKind {
    /// Waiting does not repair it: a person has to.
    pub fn needs_a_person(self) -> bool {
        matches!(self, Self::Permission | Self::Busy)
    }

    /// What a person does about it.
    pub fn cure(self) -> &'static str {
        match self {
            Self::Missing => {
                "correct radio.interface (ip link lists those that there are), or connect the adapter"
            }
            Self::InterfaceDown => "systemctl status wingbeat-network@INTERFACE; ip link set INTERFACE up",
            Self::Address => "systemctl status wingbeat-network@INTERFACE; ip address lists what it has",
            Self::Permission => "Linux 5.7 or newer, or CAP_NET_RAW",
            Self::Busy => {
                "end the program that has the port for itself (ss -ulpn), or another radio.port on every aircraft"
            }
            Self::Other => "correct radio.interface and radio.broadcast",
        }
    }
}

impl UdpConfig {
    fn name(&self) -> String {
        format!("{}:{}", self.interface.as_deref().unwrap_or("any interface"), self.port)
    }
}

/// Opens the socket once and closes it again.
///
/// # Errors
/// What was found and what was expected.
pub fn check(config: &UdpConfig) -> Result<(), OpenError> {
    open(config).map(drop)
}

/// A socket that receives what the radio receives, beside it.
///
/// # Errors
/// As [`check`].
pub fn listener(config: &UdpConfig) -> Result<std::net::UdpSocket, OpenError> {
    open(config).map(|open| open.socket.into())
}

/// What was opened: the sockets, and what the interface was like then.
struct Open {
    /// Receives everything and sends what is no emergency.
    socket: Socket,
    /// Sends emergencies: a queue of its own, so that none waits behind what is none.
    emergency: Socket,
    to: SocketAddr,
    basis: Basis,
}

/// What the sockets depend on: where any of it changes they are opened anew.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Basis {
    /// The interface's number; none where no interface is configured.
    index: Option<u32>,
    to: IpAddr,
    link_local: Option<Ipv6Addr>,
}

/// Looks at the interface. An address that nothing depends on may change.
fn look(config: &UdpConfig) -> Result<Basis, OpenError> {
    let error = |kind, found: &str, expected| {
        Err(OpenError { radio: config.name(), kind, found: found.into(), expected })
    };
    let Some(name) = &config.interface else {
        return match config.destination {
            Destination::Broadcast(address) => {
                Ok(Basis { index: None, to: address.into(), link_local: None })
            }
            Destination::Interface | Destination::Group(_) => error(
                OpenErrorKind::Other,
                "no interface configured",
                "the interface that the destination is of",
            ),
        };
    };
    let up = "an interface that is up";
    let found = match Interface::find(name) {
        Ok(Some(found)) => found,
        Ok(None) => return error(OpenErrorKind::Missing, "no such interface", up),
        Err(cause) => return error(OpenErrorKind::Other, &format!("getifaddrs refused ({cause})"), up),
    };
    if !found.is_up {
        return error(OpenErrorKind::InterfaceDown, "the interface down", up);
    }
    let (to, link_local) = match config.destination {
        Destination::Broadcast(address) => (address.into(), None),
        Destination::Interface => match found.broadcast {
            Some(address) => (address.into(), None),
            None => {
                return error(
                    OpenErrorKind::Address,
                    "no IPv4 broadcast address",
                    "an interface with an IPv4 network",
                );
            }
        },
        Destination::Group(group) => match found.link_local {
            Some(own) => (group.into(), Some(own)),
            None => {
                return error(
                    OpenErrorKind::Address,
                    "no IPv6 link-local address",
                    "an interface with IPv6 (net.ipv6.conf.IF.disable_ipv6 = 0)",
                );
            }
        },
    };
    Ok(Basis { index: Some(found.index), to, link_local })
}

fn open(config: &UdpConfig) -> Result<Open, OpenError> {
    let basis = look(config)?;
    let to = match basis.to {
        IpAddr::V4(address) => SocketAddr::from((address, config.port)),
        IpAddr::V6(group) => SocketAddrV6::new(group, config.port, 0, basis.index.unwrap_or(0)).into(),
    };
    let kernel = |(what, cause): (&'static str, io::Error)| {
        let (kind, expected) = match cause.kind() {
            io::ErrorKind::AddrInUse => {
                (OpenErrorKind::Busy, "a port that no program has without SO_REUSEADDR")
            }
            io::ErrorKind::PermissionDenied => (
                OpenErrorKind::Permission,
                "a user that may bind to the interface (Linux 5.7 or newer, or CAP_NET_RAW)",
            ),
            _ => (OpenErrorKind::Other, "a socket that can broadcast"),
        };
        OpenError { radio: config.name(), kind, found: format!("{what} refused ({cause})"), expected }
    };
    let socket = bind(config, &basis, config.port).map_err(kernel)?;
    // Any port: what arrives at the datagrams' own is queued once.
    let emergency = bind(config, &basis, 0).and_then(prefer).map_err(kernel)?;
    Ok(Open { socket, emergency, to, basis })
}

type Step<T> = Result<T, (&'static str, io::Error)>;

fn step<T>(what: &'static str, done: io::Result<T>) -> Step<T> {
    done.map_err(|cause| (what, cause))
}

/// A socket on the interface; with the datagrams' port it receives them.
fn bind(config: &UdpConfig, basis: &Basis, port: u16) -> Step<Socket> {
    let domain = if basis.to.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = step("a UDP socket", Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)))?;
    step("SO_REUSEADDR", socket.set_reuse_address(true))?;
    step("O_NONBLOCK", socket.set_nonblocking(true))?;
    step("SO_SNDBUF", socket.set_send_buffer_size(SEND_BUFFER_LEN))?;
    if let Some(interface) = &config.interface {
        step("SO_BINDTODEVICE", bind_to(&socket, interface))?;
    }
    match basis.to {
        IpAddr::V4(_) => {
            step("SO_BROADCAST", socket.set_broadcast(true))?;
            let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
            step("the port", socket.bind(&any.into()))?;
        }
        IpAddr::V6(group) => {
            let index = basis.index.unwrap_or(0);
            step("IPV6_V6ONLY", socket.set_only_v6(true))?;
            step("IPV6_MULTICAST_IF", socket.set_multicast_if_v6(index))?;
            step("IPV6_MULTICAST_HOPS", socket.set_multicast_hops_v6(1))?;
            let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
            step("the port", socket.bind(&any.into()))?;
            if port != 0 {
                // Only the groups that this socket has joined.
                #[cfg(target_os = "linux")]
                step("IPV6_MULTICAST_ALL", socket.set_multicast_all_v6(false))?;
                step("the group", socket.join_multicast_v6(&group, index))?;
            }
        }
    }
    Ok(socket)
}

fn bind_to(socket: &Socket, interface: &str) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return socket.bind_device(Some(interface.as_bytes()));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = socket;
        Err(crate::interface::not_here(interface))
    }
}

/// Where the system has no such priorities, a datagram is like the others.
#[cfg(not(target_os = "linux"))]
fn prefer(socket: Socket) -> Step<Socket> {
    let _ = (EMERGENCY_TOS, EMERGENCY_PRIORITY);
    Ok(socket)
}

/// Before other datagrams in the kernel's queue, and in the radio's where it has one for each priority.
#[cfg(target_os = "linux")]
fn prefer(socket: Socket) -> Step<Socket> {
    let is_ipv4 = step("the socket's family", socket.local_addr())?.is_ipv4();
    let tos = if is_ipv4 { socket.set_tos_v4(EMERGENCY_TOS) } else { socket.set_tclass_v6(EMERGENCY_TOS) };
    step("IP_TOS", tos)?;
    // After it, because it sets a priority too.
    step("SO_PRIORITY", socket.set_priority(EMERGENCY_PRIORITY))?;
    Ok(socket)
}

/// UDP broadcast. Dropping it closes the socket.
#[derive(Debug)]
pub struct UdpBroadcast {
    /// Up and down.
    events: mpsc::Receiver<RadioEvent>,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The same socket as the task's, for sending. Not tokio's: that one answers "would block" until its
    /// reactor has seen the socket writable, which would lose the first beacon.
    senders: Mutex<Option<Senders>>,
    queue: Mutex<Queue>,
    /// A datagram was queued.
    queued: Notify,
    overflows: AtomicU64,
    screen: Mutex<Option<Screen>>,
    /// What it refused, by reason.
    refused: [AtomicU64; Refused::ALL.len()],
    /// A broadcast was refused in a way that may mean that the interface is gone.
    suspect: Notify,
}

/// What datagrams leave by, and where they go.
#[derive(Debug)]
struct Senders {
    ordinary: std::net::UdpSocket,
    emergency: std::net::UdpSocket,
    to: SocketAddr,
}

impl UdpBroadcast {
    /// Starts the task that opens the socket and keeps it open.
    pub fn spawn(config: UdpConfig) -> Self {
        Self::spawn_watched(config, || {})
    }

    /// As [`UdpBroadcast::spawn`]; calls `turned` at every pass of the task's loop, within [`TURN_MAX`] of
    /// each other, whether or not the interface is there, which distinguishes a task that hangs from a
    /// idle radio.
    pub fn spawn_watched(config: UdpConfig, turned: impl Fn() + Send + Sync + 'static) -> Self {
        let (sender, events) = mpsc::channel(CHANGES_MAX);
        let shared = Arc::new(Shared::default());
        let task = tokio::spawn(run(config, sender, shared.clone(), turned));
        Self { events, shared, task }
    }
}

impl Radio for UdpBroadcast {
    fn send(&self, class: Class, datagram: &[u8]) -> Result<(), SendError> {
        self.shared.send(datagram, |senders| {
            let socket = if class == Class::Emergency { &senders.emergency } else { &senders.ordinary };
            (socket, senders.to)
        })
    }

    fn send_to(&self, radio: SocketAddr, datagram: &[u8]) -> Result<(), SendError> {
        self.shared.send(datagram, |senders| (&senders.ordinary, radio))
    }

    async fn recv(&mut self) -> Option<RadioEvent> {
        tokio::select! {
            // A change is not kept waiting by datagrams.
            biased;
            change = self.events.recv() => change,
            (from, bytes) = self.shared.next() => Some(RadioEvent::Datagram { from, bytes }),
        }
    }

    fn overflows(&self) -> u64 {
        self.shared.overflows.load(Ordering::Relaxed)
    }

    fn screen(&self, screen: Screen) {
        *lock(&self.shared.screen) = Some(screen);
    }

    fn refused(&self) -> Screened {
        self.shared.refused.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `ENOBUFS`, `ENODEV` and `ENXIO`: std has no names for them.
#[cfg(unix)]
const NO_BUFFER: i32 = nix::errno::Errno::ENOBUFS as i32;
#[cfg(unix)]
const NO_DEVICE: [i32; 2] = [nix::errno::Errno::ENODEV as i32, nix::errno::Errno::ENXIO as i32];
/// `WSAENOBUFS`, `WSAENETDOWN` and `WSAEHOSTUNREACH` of Windows.
#[cfg(not(unix))]
const NO_BUFFER: i32 = 10_055;
#[cfg(not(unix))]
const NO_DEVICE: [i32; 2] = [10_050, 10_065];

impl Shared {
    /// Queues a datagram, unless it is an outsider's.
    fn receive(&self, received: Received) {
        let lane = match lock(&self.screen).as_ref().map(|screen| screen.check(&received.1)).transpose() {
            Ok(lane) => lane,
            Err(reason) => {
                self.refused[reason as usize].fetch_add(1, Ordering::Relaxed);
                return;
            }
        };
        if !lock(&self.queue).push(lane, received) {
            self.overflows.fetch_add(1, Ordering::Relaxed);
        }
        self.queued.notify_one();
    }

    /// The next datagram. Dropping the future loses nothing.
    async fn next(&self) -> Received {
        loop {
            let queued = lock(&self.queue).pop();
            if let Some(received) = queued {
                return received;
            }
            self.queued.notified().await;
        }
    }

    fn send(
        &self,
        datagram: &[u8],
        by: impl FnOnce(&Senders) -> (&std::net::UdpSocket, SocketAddr),
    ) -> Result<(), SendError> {
        check_len(datagram)?;
        let senders = lock(&self.senders);
        let (socket, to) = by(senders.as_ref().ok_or(SendError::Down)?);
        socket.send_to(datagram, to).map(|_| ()).map_err(|error| self.refusal(&error))
    }

    /// Why the kernel did not take a datagram. The task looks at the interface unless a queue was full.
    fn refusal(&self, error: &io::Error) -> SendError {
        let code = error.raw_os_error();
        if error.kind() == io::ErrorKind::WouldBlock || code == Some(NO_BUFFER) {
            return SendError::Busy;
        }
        self.suspect.notify_one();
        if error.kind() == io::ErrorKind::NetworkDown || code.is_some_and(|code| NO_DEVICE.contains(&code)) {
            return SendError::Down;
        }
        SendError::Refused(error.to_string())
    }
}

impl Drop for UdpBroadcast {
    fn drop(&mut self) {
        self.task.abort();
        lock(&self.shared.senders).take();
    }
}

async fn run(
    config: UdpConfig,
    events: mpsc::Sender<RadioEvent>,
    shared: Arc<Shared>,
    turned: impl Fn() + Send + Sync,
) {
    let mut backoff = BACKOFF.0;
    let mut last_reason = None;
    loop {
        turned();
        let opened = open(&config).and_then(|open| {
            split(open).map_err(|error| OpenError {
                radio: config.name(),
                kind: OpenErrorKind::Other,
                found: error.to_string(),
                expected: "a socket that can broadcast",
            })
        });
        let reason = match opened {
            Ok((receiver, senders, basis)) => {
                *lock(&shared.senders) = Some(senders);
                if events.send(RadioEvent::Up).await.is_err() {
                    return;
                }
                last_reason = None;
                backoff = BACKOFF.0;
                let ended = listen(&config, &basis, &receiver, &events, &shared, &turned).await;
                lock(&shared.senders).take();
                match ended {
                    Ended::Failed(reason) => reason,
                    // The next pass opens it as it is now.
                    Ended::Changed => {
                        sleep(BACKOFF.0).await;
                        continue;
                    }
                }
            }
            Err(error) => error.to_string(),
        };
        if last_reason.as_ref() != Some(&reason) {
            last_reason = Some(reason.clone());
            if events.send(RadioEvent::Down { reason }).await.is_err() {
                return;
            }
        }
        tokio::select! {
            () = sleep(backoff) => backoff = (backoff * 2).min(BACKOFF.1),
            () = events.closed() => return,
        }
    }
}

/// The task's half and the senders' half of the sockets.
fn split(open: Open) -> io::Result<(UdpSocket, Senders, Basis)> {
    let Open { socket, emergency, to, basis } = open;
    let senders = Senders { ordinary: socket.try_clone()?.into(), emergency: emergency.into(), to };
    Ok((UdpSocket::from_std(socket.into())?, senders, basis))
}

/// Why nothing is received any more.
enum Ended {
    /// What failed, as one line.
    Failed(String),
    /// The interface is up and not what it was.
    Changed,
}

/// Queues received datagrams until the socket or its interface fails or changes.
async fn listen(
    config: &UdpConfig,
    basis: &Basis,
    socket: &UdpSocket,
    events: &mpsc::Sender<RadioEvent>,
    shared: &Shared,
    turned: &(impl Fn() + Send + Sync),
) -> Ended {
    // One byte more than a datagram may have, so that a longer one is seen to be too long and not cut to fit.
    let mut buffer = [0; DATAGRAM_LEN_MAX + 1];
    let mut turn = interval(TURN_PERIOD);
    loop {
        turned();
        tokio::select! {
            received = socket.recv_from(&mut buffer) => match received {
                Ok((length, from)) => {
                    let bytes = buffer.get(..length).unwrap_or_default().to_vec();
                    shared.receive((from, bytes));
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Ended::Failed(format!(
                    "radio {}: found a failing receive ({error}), expected an interface that is up",
                    config.name()
                )),
            },
            // A datagram was refused: if the interface is gone, down or another, that is seen here; if not, the
            // refusal was counted and that is all.
            () = shared.suspect.notified() => {}
            _ = turn.tick() => {}
            () = events.closed() => return Ended::Failed("no receiver of its events".into()),
        }
        match look(config) {
            Ok(now) if now == *basis => {}
            Ok(_) => return Ended::Changed,
            Err(error) => return Ended::Failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use wingbeat_wire::{Draft, FleetKey, Message, Role, Roster, Signer, VehicleId};

    use super::*;
    use crate::RECEIVED_MAX;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn config(port: u16) -> UdpConfig {
        // Linux answers 127.255.255.255 as the loopback interface's broadcast address.
        let loopback = Destination::Broadcast(Ipv4Addr::new(127, 255, 255, 255));
        UdpConfig { interface: None, port, destination: loopback }
    }

    /// A port that is free now.
    fn port() -> u16 {
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    async fn next(radio: &mut UdpBroadcast) -> RadioEvent {
        tokio::time::timeout(PATIENCE, radio.recv()).await.expect("an event").expect("a running task")
    }

    async fn received(radio: &mut UdpBroadcast) -> Vec<u8> {
        match next(radio).await {
            RadioEvent::Datagram { bytes, .. } => bytes,
            other => panic!("{other:?}, expected a datagram"),
        }
    }

    #[tokio::test]
    async fn a_broadcast_reaches_every_radio_of_the_port_and_its_sender() {
        let port = port();
        let mut radios: Vec<_> = (0..3).map(|_| UdpBroadcast::spawn(config(port))).collect();
        for radio in &mut radios {
            assert_eq!(next(radio).await, RadioEvent::Up);
        }
        radios[0].send(Class::Beacon, b"beacon").unwrap();
        for radio in &mut radios {
            assert_eq!(received(radio).await, b"beacon");
        }
    }

    #[tokio::test]
    async fn a_datagram_for_one_radio_goes_to_where_another_came_from() {
        // Two addresses of one machine: the radios of one port have no other that distinguishes them.
        let port = port();
        let mut radio = UdpBroadcast::spawn(config(port));
        assert_eq!(next(&mut radio).await, RadioEvent::Up);
        let peer = std::net::UdpSocket::bind(("127.0.0.2", port));
        // Without SO_REUSEADDR the port is taken: another port serves as well.
        let peer = peer.or_else(|_| std::net::UdpSocket::bind("127.0.0.2:0")).unwrap();
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        peer.send_to(b"probe", ("127.0.0.1", port)).unwrap();
        let RadioEvent::Datagram { from, bytes } = next(&mut radio).await else { panic!("a datagram") };
        assert_eq!((from, &bytes[..]), (peer.local_addr().unwrap(), &b"probe"[..]));
        radio.send_to(from, b"answer").unwrap();
        let mut buffer = [0; 16];
        assert_eq!(peer.recv(&mut buffer).unwrap(), b"answer".len());
        assert_eq!(radio.send_to(from, &[0; DATAGRAM_LEN_MAX + 1]), Err(SendError::TooLong(1473)));
    }

    #[tokio::test]
    async fn a_datagram_that_is_too_long_or_sent_too_early_is_refused_with_its_reason() {
        let mut radio = UdpBroadcast::spawn(config(port()));
        assert_eq!(radio.send(Class::Beacon, b"too early"), Err(SendError::Down));
        assert_eq!(next(&mut radio).await, RadioEvent::Up);
        let long = vec![0; DATAGRAM_LEN_MAX + 1];
        assert_eq!(radio.send(Class::Beacon, &long), Err(SendError::TooLong(DATAGRAM_LEN_MAX + 1)));
        radio.send(Class::Beacon, &long[1..]).unwrap();
    }

    #[tokio::test]
    async fn datagrams_that_a_slow_owner_does_not_take_are_counted() {
        let mut radio = UdpBroadcast::spawn(config(port()));
        assert_eq!(next(&mut radio).await, RadioEvent::Up);
        let mut sent = 0;
        while radio.overflows() == 0 {
            assert!(sent < 100_000, "a bounded queue must overflow");
            let _ = radio.send(Class::Beacon, b"beacon");
            sent += 1;
            tokio::task::yield_now().await;
        }
        let mut taken = 0;
        while let Ok(Some(RadioEvent::Datagram { .. })) =
            tokio::time::timeout(Duration::from_millis(200), radio.recv()).await
        {
            taken += 1;
        }
        assert!(taken >= RECEIVED_MAX && taken <= sent, "{taken} of {sent}");
    }

    fn sealed(signer: &Signer, from: u64, counter: u64) -> Vec<u8> {
        let mut draft = Draft::default();
        draft.write(VehicleId(from), counter, 0, &Message::TakeOffTogether).unwrap();
        signer.seal(&mut draft).to_vec()
    }

    /// Sends until `is_done`, by a socket beside the radio.
    async fn flood(port: u16, each: &mut dyn FnMut() -> Vec<u8>, is_done: &dyn Fn() -> bool) {
        let other = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..1_000_000 {
            if is_done() {
                return;
            }
            let _ = other.send_to(&each(), ("127.0.0.1", port));
            tokio::task::yield_now().await;
        }
        panic!("the flood did not arrive");
    }

    /// An aircraft (1) that is captured, another (2) and a console (3): `(roster, signers)`.
    fn fleet() -> (Roster, [Signer; 3]) {
        let key = FleetKey([7; 32]);
        let mut roster = Roster::new(1, key.clone());
        let signers = [1_u8, 2, 3].map(|id| Signer::new(&[id; 32], 1, key.clone()));
        for (signer, (id, role)) in
            signers.iter().zip([(1, Role::Aircraft), (2, Role::Aircraft), (3, Role::Operator)])
        {
            roster.add(VehicleId(id), role, &signer.public_key().unwrap()).unwrap();
        }
        (roster, signers)
    }

    /// Everything that waits until the datagram comes, which must.
    async fn waits_for(radio: &mut UdpBroadcast, expected: &[u8]) -> usize {
        for before in 0..=RECEIVED_MAX {
            if received(radio).await == expected {
                return before;
            }
        }
        panic!("the genuine datagram was dropped");
    }

    #[tokio::test]
    async fn an_outsiders_flood_takes_no_place_of_a_genuine_datagram() {
        let port = port();
        let mut radio = UdpBroadcast::spawn(config(port));
        assert_eq!(next(&mut radio).await, RadioEvent::Up);
        let (roster, signers) = fleet();
        radio.screen(roster.screen());
        let genuine = sealed(&signers[2], 3, 1);
        // The console's id with another fleet's key, of another epoch, of a sender that no roster has, rubbish.
        let outsider = Signer::new(&[3; 32], 1, FleetKey([8; 32]));
        let old = Signer::new(&[3; 32], 2, FleetKey([7; 32]));
        let kinds =
            [sealed(&outsider, 3, 1), sealed(&old, 3, 1), sealed(&signers[0], 4, 1), vec![0; 200], vec![]];
        let mut sent = 0_usize;
        let mut each = || {
            sent += 1;
            kinds[sent % kinds.len()].clone()
        };
        let refused = || radio.refused().iter().sum::<u64>();
        flood(port, &mut each, &|| refused() >= 4 * RECEIVED_MAX as u64).await;
        let other = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        other.send_to(&genuine, ("127.0.0.1", port)).unwrap();
        assert_eq!(waits_for(&mut radio, &genuine).await, 0, "nothing waited before it");
        assert_eq!(radio.overflows(), 0);
        let count = |reason: Refused| radio.refused()[reason as usize];
        for reason in
            [Refused::FleetTag, Refused::Epoch, Refused::UnknownSender, Refused::Version, Refused::Empty]
        {
            assert!(count(reason) > 0, "{reason:?} is counted");
        }
    }

    #[tokio::test]
    async fn a_captured_members_flood_in_a_consoles_name_holds_up_no_other_sender() {
        let port = port();
        let mut radio = UdpBroadcast::spawn(config(port));
        assert_eq!(next(&mut radio).await, RadioEvent::Up);
        let (roster, signers) = fleet();
        radio.screen(roster.screen());
        // Its own key in the console's name, each of them newer: only the signature shows that it is forged.
        let mut counter = 0;
        let mut each = || {
            counter += 1;
            sealed(&signers[0], 3, counter)
        };
        flood(port, &mut each, &|| radio.overflows() > 0).await;
        let genuine = sealed(&signers[1], 2, 1);
        let other = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        other.send_to(&genuine, ("127.0.0.1", port)).unwrap();
        // What is refused shows that the task has read what came before it.
        while radio.refused().iter().sum::<u64>() < 3 {
            let _ = other.send_to(b"rubbish", ("127.0.0.1", port));
            tokio::time::sleep(Duration::from_millis(1)).await;
            let _ = other.send_to(&genuine, ("127.0.0.1", port));
        }
        let before = waits_for(&mut radio, &genuine).await;
        assert!(before <= 1, "{before} were served before it");
        assert!(roster.open(&genuine).is_ok());
    }

    #[tokio::test]
    async fn a_missing_interface_is_reported_and_waited_for() {
        let config = UdpConfig { interface: Some("wingbeat9".into()), ..config(port()) };
        let error = check(&config).unwrap_err();
        assert_eq!(error.kind, OpenErrorKind::Missing);
        assert!(!error.kind.needs_a_person());
        let mut radio = UdpBroadcast::spawn(config.clone());
        let RadioEvent::Down { reason } = next(&mut radio).await else { panic!("expected Down") };
        assert!(reason.contains("wingbeat9") && reason.contains("no such interface"), "{reason}");
        assert_eq!(radio.send(Class::Beacon, b"beacon"), Err(SendError::Down));
    }

    #[tokio::test]
    async fn a_port_that_another_program_has_alone_is_reported() {
        let other = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        let port = other.local_addr().unwrap().port();
        let error = check(&config(port)).unwrap_err();
        assert_eq!(error.kind, OpenErrorKind::Busy);
        assert!(error.kind.needs_a_person() && error.to_string().contains(&port.to_string()), "{error}");
    }

    #[tokio::test]
    async fn an_interface_can_be_bound_to() {
        let config = UdpConfig { interface: Some("lo".into()), ..config(port()) };
        let mut radio = UdpBroadcast::spawn(config);
        assert_eq!(next(&mut radio).await, RadioEvent::Up);
        radio.send(Class::Beacon, b"beacon").unwrap();
        assert_eq!(received(&mut radio).await, b"beacon");
    }

    #[tokio::test]
    async fn the_task_repeats_without_reception_and_without_interface() {
        let missing = UdpConfig { interface: Some("wingbeat9".into()), ..config(port()) };
        for config in [config(port()), missing] {
            let (sender, mut turns) = tokio::sync::watch::channel(0);
            let _radio = UdpBroadcast::spawn_watched(config, move || sender.send_modify(|n| *n += 1));
            let turned = tokio::time::timeout(PATIENCE, turns.wait_for(|&n| n > 4)).await;
            turned.expect("it turns").unwrap();
        }
    }
}
