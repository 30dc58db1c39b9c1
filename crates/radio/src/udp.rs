//! UDP broadcast on an aircraft's radio interface.

use std::{
    io,
    net::{Ipv4Addr, SocketAddrV4},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
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
use wingbeat_wire::DATAGRAM_LEN_MAX;

use crate::{RECEIVED_MAX, Radio, RadioEvent, SendError, check_len};

/// The first and the longest wait before opening again.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// Without a reception the task's loop repeats this often.
const TURN_PERIOD: Duration = Duration::from_millis(500);
/// No pass of a radio task's loop takes longer: the longest step is the wait before opening again.
pub const TURN_MAX: Duration = Duration::from_secs(5);
const _: () = assert!(TURN_MAX.as_millis() > BACKOFF.1.as_millis());
/// `IFF_UP` in `/sys/class/net/IF/flags` (linux/if.h).
const INTERFACE_UP: u32 = 1;

/// Interface, port and broadcast address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// The interface that datagrams may leave and enter by, for example `wlan0`; any if absent.
    pub interface: Option<String>,
    /// The UDP port, the same on every aircraft.
    pub port: u16,
    /// The broadcast address.
    pub broadcast: Ipv4Addr,
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

fn open(config: &UdpConfig) -> Result<Socket, OpenError> {
    let error = |kind, found: String, expected| OpenError { radio: config.name(), kind, found, expected };
    let kernel = |what: &'static str| {
        move |cause: io::Error| {
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
            error(kind, format!("{what} refused ({cause})"), expected)
        }
    };
    if let Some(interface) = &config.interface {
        let folder = Path::new("/sys/class/net").join(interface);
        if !folder.exists() {
            return Err(error(OpenErrorKind::Missing, "no such interface".into(), "an interface that is up"));
        }
        // Where flags cannot be read (a system without sysfs) the kernel's own answer to a broadcast will do.
        let flags = std::fs::read_to_string(folder.join("flags")).unwrap_or_default();
        let up = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16)
            .map_or(true, |flags| flags & INTERFACE_UP != 0);
        if !up {
            return Err(error(
                OpenErrorKind::InterfaceDown,
                "the interface down".into(),
                "an interface that is up",
            ));
        }
    }
    let socket =
        Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).map_err(kernel("a UDP socket"))?;
    socket.set_reuse_address(true).map_err(kernel("SO_REUSEADDR"))?;
    socket.set_broadcast(true).map_err(kernel("SO_BROADCAST"))?;
    socket.set_nonblocking(true).map_err(kernel("O_NONBLOCK"))?;
    if let Some(interface) = &config.interface {
        socket.bind_device(Some(interface.as_bytes())).map_err(kernel("SO_BINDTODEVICE"))?;
    }
    let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, config.port);
    socket.bind(&any.into()).map_err(kernel("the port"))?;
    Ok(socket)
}

/// UDP broadcast. Dropping it closes the socket.
#[derive(Debug)]
pub struct UdpBroadcast {
    events: mpsc::Receiver<RadioEvent>,
    shared: Arc<Shared>,
    destination: SocketAddrV4,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The same socket as the task's, for sending. Not tokio's: that one answers "would block" until its
    /// reactor has seen the socket writable, which would lose the first beacon.
    sender: Mutex<Option<std::net::UdpSocket>>,
    overflows: AtomicU64,
    /// A broadcast was refused in a way that may mean that the interface is gone.
    suspect: Notify,
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
        let (sender, events) = mpsc::channel(RECEIVED_MAX);
        let shared = Arc::new(Shared::default());
        let destination = SocketAddrV4::new(config.broadcast, config.port);
        let task = tokio::spawn(run(config, sender, shared.clone(), turned));
        Self { events, shared, destination, task }
    }
}

impl Radio for UdpBroadcast {
    fn send(&self, datagram: &[u8]) -> Result<(), SendError> {
        check_len(datagram)?;
        let sender = self.shared.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(socket) = sender.as_ref() else { return Err(SendError::Down) };
        match socket.send_to(datagram, self.destination) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(SendError::Busy),
            Err(error) => {
                self.shared.suspect.notify_one();
                Err(SendError::Refused(error.to_string()))
            }
        }
    }

    async fn recv(&mut self) -> Option<RadioEvent> {
        self.events.recv().await
    }

    fn overflows(&self) -> u64 {
        self.shared.overflows.load(Ordering::Relaxed)
    }
}

impl Drop for UdpBroadcast {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
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
        let opened = open(&config).and_then(|socket| {
            split(socket).map_err(|error| OpenError {
                radio: config.name(),
                kind: OpenErrorKind::Other,
                found: error.to_string(),
                expected: "a socket that can broadcast",
            })
        });
        let reason = match opened {
            Ok((receiver, sender)) => {
                *shared.sender.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
                if events.send(RadioEvent::Up).await.is_err() {
                    return;
                }
                last_reason = None;
                backoff = BACKOFF.0;
                let found = listen(&config, &receiver, &events, &shared, &turned).await;
                shared.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
                format!("radio {}: found {found}, expected an interface that is up", config.name())
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

/// The task's half and the sender's half of one socket.
fn split(socket: Socket) -> io::Result<(UdpSocket, std::net::UdpSocket)> {
    let sender = socket.try_clone()?.into();
    Ok((UdpSocket::from_std(socket.into())?, sender))
}

/// Queues received datagrams until the socket or its interface fails; returns how it failed.
async fn listen(
    config: &UdpConfig,
    socket: &UdpSocket,
    events: &mpsc::Sender<RadioEvent>,
    shared: &Shared,
    turned: &(impl Fn() + Send + Sync),
) -> String {
    // One byte more than a datagram may have, so that a longer one is seen to be too long and not cut to fit.
    let mut buffer = [0; DATAGRAM_LEN_MAX + 1];
    let mut turn = interval(TURN_PERIOD);
    loop {
        turned();
        tokio::select! {
            received = socket.recv_from(&mut buffer) => match received {
                Ok((length, _)) => {
                    let datagram = buffer.get(..length).unwrap_or_default().to_vec();
                    if events.try_send(RadioEvent::Datagram(datagram)).is_err() {
                        shared.overflows.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return format!("a failing receive ({error})"),
            },
            // A broadcast was refused. If the interface is gone or down, opening reports it; if not, the refusal
            // was counted and that is all.
            () = shared.suspect.notified() => if let Err(error) = open(config) {
                return error.found;
            },
            _ = turn.tick() => {}
            () = events.closed() => return "no receiver of its events".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn config(port: u16) -> UdpConfig {
        // Linux answers 127.255.255.255 as the loopback interface's broadcast address.
        UdpConfig { interface: None, port, broadcast: Ipv4Addr::new(127, 255, 255, 255) }
    }

    /// A port that is free now.
    fn port() -> u16 {
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    async fn next(radio: &mut UdpBroadcast) -> RadioEvent {
        tokio::time::timeout(PATIENCE, radio.recv()).await.expect("an event").expect("a running task")
    }

    #[tokio::test]
    async fn a_broadcast_reaches_every_radio_of_the_port_and_its_sender() {
        let port = port();
        let mut radios: Vec<_> = (0..3).map(|_| UdpBroadcast::spawn(config(port))).collect();
        for radio in &mut radios {
            assert_eq!(next(radio).await, RadioEvent::Up);
        }
        radios[0].send(b"beacon").unwrap();
        for radio in &mut radios {
            assert_eq!(next(radio).await, RadioEvent::Datagram(b"beacon".to_vec()));
        }
    }

    #[tokio::test]
    async fn a_datagram_that_is_too_long_or_sent_too_early_is_refused_with_its_reason() {
        let mut radio = UdpBroadcast::spawn(config(port()));
        assert_eq!(radio.send(b"too early"), Err(SendError::Down));
        assert_eq!(next(&mut radio).await, RadioEvent::Up);
        let long = vec![0; DATAGRAM_LEN_MAX + 1];
        assert_eq!(radio.send(&long), Err(SendError::TooLong(DATAGRAM_LEN_MAX + 1)));
        radio.send(&long[1..]).unwrap();
    }

    #[tokio::test]
    async fn datagrams_that_a_slow_owner_does_not_take_are_counted() {
        let mut radio = UdpBroadcast::spawn(config(port()));
        assert_eq!(next(&mut radio).await, RadioEvent::Up);
        let mut sent = 0;
        while radio.overflows() == 0 {
            assert!(sent < 100_000, "a bounded queue must overflow");
            let _ = radio.send(b"beacon");
            sent += 1;
            tokio::task::yield_now().await;
        }
        let mut taken = 0;
        while let Ok(Some(RadioEvent::Datagram(_))) =
            tokio::time::timeout(Duration::from_millis(200), radio.recv()).await
        {
            taken += 1;
        }
        assert!(taken >= RECEIVED_MAX && taken <= sent, "{taken} of {sent}");
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
        assert_eq!(radio.send(b"beacon"), Err(SendError::Down));
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
        radio.send(b"beacon").unwrap();
        assert_eq!(next(&mut radio).await, RadioEvent::Datagram(b"beacon".to_vec()));
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
