//! Opening an endpoint once, and the two halves of what was opened.

use std::{
    io,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpStream, UdpSocket},
    time::{Instant, timeout},
};
use tokio_serial::{DataBits, FlowControl, Parity, SerialPortBuilderExt as _, StopBits};

use crate::{Endpoint, holder};

/// A server that does not answer a connection within this is not there: a flight controller's bridge is
/// one hop away. Short, because the kernel repeats a question to a host that is gone ever less often, and a
/// new attempt probes first: a host that returns is probed within 1.5 s.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_500);
/// A port that takes no byte for this long is broken. The longest chunk (a few frames) takes 0.3 s at
/// 57600 baud.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);
/// A TCP peer that sends nothing, or does not confirm what was sent, is probed so often and dropped after so
/// many times: 5 s.
const ALIVE_PERIOD: Duration = Duration::from_secs(1);
const ALIVE_RETRIES: u32 = 5;
/// After this time without a datagram from its peer a listening UDP port takes the next sender as the autopilot. Until
/// then a second sender is ignored: two autopilots on one port would fly each other's orders.
const PEER_TIMEOUT: Duration = Duration::from_secs(5);

/// Why an endpoint could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("autopilot {endpoint}: found {found}, expected {expected}")]
pub struct OpenError {
    /// The endpoint.
    pub endpoint: String,
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
    /// No such device: not plugged in, not booted yet, or misspelt.
    Missing,
    /// The device exists and this user may not open it.
    Permission,
    /// Another program has it.
    Busy,
    /// A login console or the kernel's console has it.
    Console,
    /// It is not what the endpoint names (a file that is no serial device, a rate that it cannot do).
    Unsuitable,
    /// No answer from there.
    Unreachable,
}

impl OpenErrorKind {
    /// Waiting does not correct it: a person must. The rest comes and goes with cables and boot order.
    pub fn needs_a_person(self) -> bool {
        matches!(self, Self::Permission | Self::Busy | Self::Console | Self::Unsuitable)
    }

    /// What a person does about it.
    pub fn cure(self) -> &'static str {
        match self {
            Self::Missing => "connect it; `ls -l /dev/serial*` shows those that there are",
            Self::Permission => "usermod --append --groups dialout USER and log in anew",
            Self::Busy => "end the program that has it: sudo fuser -v DEVICE",
            Self::Console => {
                "no console=DEVICE in cmdline.txt; systemctl disable --now serial-getty@DEVICE.service"
            }
            Self::Unsuitable => "correct the device and its rate in autopilot.endpoint",
            Self::Unreachable => "start the flight controller or its bridge; correct autopilot.endpoint",
        }
    }
}

/// Opens the endpoint once and closes it again.
///
/// # Errors
/// Says what was found and what was expected.
pub async fn check(endpoint: &Endpoint) -> Result<(), OpenError> {
    open(endpoint).await.map(drop)
}

/// The reading half of an open port.
pub(crate) enum Reader {
    Stream(Box<dyn AsyncRead + Send + Unpin>),
    Udp(Arc<Udp>),
}

/// The writing half of an open port.
pub(crate) enum Writer {
    Stream(Box<dyn AsyncWrite + Send + Unpin>),
    Udp(Arc<Udp>),
}

/// A UDP socket and the one peer that it listens to.
pub(crate) struct Udp {
    socket: UdpSocket,
    /// A fixed peer, or nothing where the first sender becomes it.
    fixed: Option<SocketAddr>,
    peer: Mutex<Option<(SocketAddr, Instant)>>,
}

/// Opens an endpoint.
pub(crate) async fn open(endpoint: &Endpoint) -> Result<(Reader, Writer), OpenError> {
    let name = endpoint.to_string();
    match endpoint {
        Endpoint::Serial { path, baud, rtscts } => open_serial(name, path, *baud, *rtscts).await,
        Endpoint::TcpClient { host, port } => {
            let expected = "a server that accepts the connection";
            let unreachable = |found| OpenError {
                endpoint: name.clone(),
                kind: OpenErrorKind::Unreachable,
                found,
                expected,
            };
            let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect((host.as_str(), *port)))
                .await
                .map_err(|_| unreachable(format!("no answer within {} ms", CONNECT_TIMEOUT.as_millis())))?
                .map_err(|error| unreachable(error.to_string()))?;
            tune(&stream);
            Ok(halves(stream))
        }
        Endpoint::UdpListen(address) => bind(name, *address, None).await,
        Endpoint::UdpSend(peer) => {
            let any: SocketAddr = if peer.is_ipv4() {
                (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
            } else {
                (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
            };
            bind(name, any, Some(*peer)).await
        }
    }
}

/// Frames are small and urgent: never wait to fill a segment. A bridge that lost its power does not hang
/// up: ask it whether it lives, so that a dead connection ends and is reopened. A stack without these
/// options still works.
fn tune(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let socket = SockRef::from(stream);
    let keepalive =
        TcpKeepalive::new().with_time(ALIVE_PERIOD).with_interval(ALIVE_PERIOD).with_retries(ALIVE_RETRIES);
    let _ = socket.set_tcp_keepalive(&keepalive);
    #[cfg(target_os = "linux")]
    let _ = socket.set_tcp_user_timeout(Some(ALIVE_PERIOD * ALIVE_RETRIES));
}

async fn bind(
    endpoint: String,
    address: SocketAddr,
    fixed: Option<SocketAddr>,
) -> Result<(Reader, Writer), OpenError> {
    let socket = UdpSocket::bind(address).await.map_err(|error| OpenError {
        kind: match error.kind() {
            io::ErrorKind::AddrInUse => OpenErrorKind::Busy,
            io::ErrorKind::PermissionDenied => OpenErrorKind::Permission,
            _ => OpenErrorKind::Missing,
        },
        endpoint,
        found: error.to_string(),
        expected: "a free port on an address of this machine",
    })?;
    let udp = Arc::new(Udp { socket, fixed, peer: Mutex::new(None) });
    Ok((Reader::Udp(udp.clone()), Writer::Udp(udp)))
}

async fn open_serial(
    endpoint: String,
    path: &Path,
    baud: u32,
    rtscts: bool,
) -> Result<(Reader, Writer), OpenError> {
    let error = |kind, found, expected| OpenError { endpoint: endpoint.clone(), kind, found, expected };
    let busy = |found| error(OpenErrorKind::Busy, found, "a device that no other process has open");
    // TIOCEXCL stops those who open later, flock stops those who lock: a terminal program that opened the
    // line before us does neither, and its keys and ours would mix. So ask the kernel which process has it.
    let device = path.to_owned();
    let holder = tokio::task::spawn_blocking(move || {
        let root = Path::new("/");
        holder::holder(&device, root).or_else(|| holder::kernel_console(&device, root))
    });
    let holder = holder.await.ok().flatten();
    if let Some(holder) = holder {
        return Err(match holder.is_console() {
            false => busy(format!("the device open in {holder}")),
            true => error(
                OpenErrorKind::Console,
                format!("a console on the device, {holder}"),
                "a device without a console (no console=DEVICE in cmdline.txt, and systemctl disable --now \
                 serial-getty@DEVICE)",
            ),
        });
    }
    let opened = tokio_serial::new(path.to_string_lossy(), baud)
        .data_bits(DataBits::Eight)
        .parity(Parity::None)
        .stop_bits(StopBits::One)
        .flow_control(if rtscts { FlowControl::Hardware } else { FlowControl::None })
        .open_native_async();
    opened.map(halves).map_err(|cause| match cause.kind() {
        tokio_serial::ErrorKind::Io(io::ErrorKind::NotFound) => {
            error(OpenErrorKind::Missing, "no such device".into(), "a connected serial device")
        }
        tokio_serial::ErrorKind::Io(io::ErrorKind::PermissionDenied) => error(
            OpenErrorKind::Permission,
            "permission denied".into(),
            "a device that this user may read and write (usermod --append --groups dialout USER)",
        ),
        // The serial crate reports EBUSY, a lock held by another and an unplugged line as "no device".
        tokio_serial::ErrorKind::NoDevice if path.exists() => {
            busy("the device locked by another process".into())
        }
        tokio_serial::ErrorKind::NoDevice => {
            error(OpenErrorKind::Missing, "no such device".into(), "a connected serial device")
        }
        _ if path.is_dir() => error(OpenErrorKind::Unsuitable, "a directory".into(), "a serial device"),
        _ => error(
            OpenErrorKind::Unsuitable,
            cause.to_string(),
            "a serial device that can do 8N1 at this baud rate",
        ),
    })
}

fn halves<S: AsyncRead + AsyncWrite + Send + 'static>(stream: S) -> (Reader, Writer) {
    let (reader, writer) = tokio::io::split(stream);
    (Reader::Stream(Box::new(reader)), Writer::Stream(Box::new(writer)))
}

impl Reader {
    /// The next bytes; 0 means that the far end is gone. Dropping the future loses nothing.
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stream(stream) => stream.read(buffer).await,
            Self::Udp(udp) => loop {
                match udp.socket.recv_from(buffer).await {
                    Ok((length, from)) if length > 0 && udp.takes(from) => return Ok(length),
                    Ok(_) => {}
                    // An ICMP answer to something that we sent: no program listens there yet. Silence, not a fault.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                    Err(error) => return Err(error),
                }
            },
        }
    }
}

impl Writer {
    /// Writes all of it.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = match self {
            Self::Stream(stream) => timeout(WRITE_TIMEOUT, stream.write_all(bytes)).await,
            Self::Udp(udp) => {
                let Some(peer) = udp.peer() else { return Ok(()) }; // no datagram was received yet: no peer to answer
                match timeout(WRITE_TIMEOUT, udp.socket.send_to(bytes, peer)).await {
                    Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(Ok(())),
                    sent => sent.map(|sent| sent.map(drop)),
                }
            }
        };
        written.unwrap_or_else(|_| {
            let seconds = WRITE_TIMEOUT.as_secs();
            Err(io::Error::new(io::ErrorKind::TimedOut, format!("it took no byte for {seconds} s")))
        })
    }
}

impl Udp {
    fn peer(&self) -> Option<SocketAddr> {
        self.fixed.or_else(|| self.peer.lock().ok()?.map(|(peer, _)| peer))
    }

    /// Whether what comes from there is the autopilot's.
    fn takes(&self, from: SocketAddr) -> bool {
        if let Some(fixed) = self.fixed {
            return fixed == from;
        }
        let Ok(mut peer) = self.peer.lock() else { return false };
        let now = Instant::now();
        match *peer {
            Some((known, received)) if known != from && now - received < PEER_TIMEOUT => false,
            _ => {
                *peer = Some((from, now));
                true
            }
        }
    }
}
