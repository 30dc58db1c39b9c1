//! The HTTP server of the aircraft's daemon and of the ground service, made for a network on which others may
//! misbehave.
//!
//! ```text
//! accept ─▶ table: at most so many connections ─▶ TLS, head 5 s ─▶ Host, Origin ─▶ body 10 s, so many bytes ─▶ router
//!             the oldest of the address with the most gives way                                          │ 10 s
//!           stalled for 10 s while written: closed ◀──────────────────────── headers of every answer ◀───┘
//! ```
//!
//! What it promises:
//!
//! - A new connection is always accepted. When the table is full, one that waits gives way: of the address that has
//!   the most, the one that waits longest. So an address that opens a thousand closes its own.
//! - A request that is answered under a name that is not this machine's, or from a page of another origin, does not
//!   reach the router: a web page cannot command aircraft by rebinding its own name (DNS rebinding).
//! - Every request ends: its head, its body, its answer and each pause in which the peer takes nothing have a limit.
//!   An event stream has none, but for the last.
//! - With keys nothing is answered without TLS 1.3 and a key of the roster, and a router knows whose it is ([`Peer`]). What
//!   is refused is counted ([`Refusals`]).
//! - The memory of bodies is bounded: by the limit of a body times the connections, and large ones by their number.
#![allow(clippy::disallowed_methods, reason = "connections are served in real time")]
#![forbid(unsafe_code)]

mod document;
mod handshakes;
mod hosts;
mod intake;
mod patience;
mod peers;
mod refusal;
mod secure;
mod table;

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout_at};

pub use document::described;
pub use hosts::machine_names;
pub use hosts::{Hosts, NameError};
pub use peers::network;
pub use secure::{Barred, Refusals};
pub use table::{Connection, Stream};
pub use wingbeat_tls::{Acceptor, NoCertificate, Peer};

use crate::handshakes::Handshakes;
use crate::patience::Patient;
use crate::secure::Opened;
use crate::table::Table;

/// The loop turns at least this often.
const TURN_PERIOD: Duration = Duration::from_millis(500);
/// No turn of the loop takes longer. A watchdog that is fed every turn may take a longer silence for a hang.
pub const TURN_MAX: Duration = Duration::from_secs(3);
/// A shortage of the system (file descriptors, memory) is waited out for this time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const _: () = assert!(TURN_MAX.as_millis() > TURN_PERIOD.as_millis() + ACCEPT_PAUSE.as_millis());
/// The longest head of a request, bytes; browsers stay below 8 kB.
const HEAD_MAX: usize = 32 * 1024;
/// What the kernel holds of answers that a peer has not taken, bytes per connection: a peer that takes nothing is
/// found when this is full.
const SEND_BUFFER: usize = 64 * 1024;
/// File descriptors that are left to everything else of the process: links, radio, guardian, gateway, files.
pub const DESCRIPTORS_RESERVED: usize = 64;
/// However few file descriptors there are, so many connections are served: they are kept from the start, so that whatever else the
/// process opens an operator finds room.
const CONNECTIONS_LEAST: usize = 4;

/// In an answer's extensions: its body is a page that others wrote, from a file. A browser gives it an origin of its own, runs none of
/// its scripts and loads nothing for it, so that it reaches neither the service nor a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign;

/// Routes whose bodies may be longer than others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Large {
    /// Their paths.
    pub paths: &'static [&'static str],
    /// The longest body, bytes.
    pub bytes: usize,
    /// How many requests with such a body may be under way simultaneously.
    pub simultaneous: usize,
}

/// The limits of one server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Connections at the same time, event streams included.
    pub connections: usize,
    /// Event streams at the same time; fewer than connections.
    pub streams: usize,
    /// The longest time from an open connection, its TLS handshake included, or from the last answer, to a whole head.
    pub head_within: Duration,
    /// The longest time from the head to the end of the body.
    pub body_within: Duration,
    /// The longest time from the body to the head of the answer.
    pub answer_within: Duration,
    /// The longest time for which a peer takes nothing of what is written to it.
    pub write_within: Duration,
    /// The longest body, bytes.
    pub body_bytes: usize,
    /// The route with longer bodies, if there is one.
    pub large: Option<Large>,
    /// The names under which this server may be addressed.
    pub hosts: Hosts,
    /// How it speaks TLS, to the fleet or to browsers; without it, every peer is served, and nothing is encrypted.
    pub tls: Option<Acceptor>,
    /// Where it counts what it refuses.
    pub refusals: Refusals,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connections: 64,
            streams: 16,
            head_within: Duration::from_secs(5),
            body_within: Duration::from_secs(10),
            answer_within: Duration::from_secs(10),
            write_within: Duration::from_secs(10),
            body_bytes: 128 * 1024,
            large: None,
            hosts: Hosts::default(),
            tls: None,
            refusals: Refusals::default(),
        }
    }
}

impl Settings {
    /// As many connections as the process's file descriptors permit, with room for everything else.
    fn within(mut self, descriptors: Option<u64>) -> Self {
        let Some(descriptors) = descriptors.and_then(|count| usize::try_from(count).ok()) else {
            return self;
        };
        let most = descriptors.saturating_sub(DESCRIPTORS_RESERVED).max(CONNECTIONS_LEAST);
        if most < self.connections {
            tracing::warn!(
                "HTTP server: found a limit of {descriptors} open files, expected {} (LimitNOFILE): serving {most} \
                 connections instead of {}",
                self.connections + DESCRIPTORS_RESERVED,
                self.connections
            );
            self.connections = most;
        }
        // Others than streams always find room.
        self.streams = self.streams.min(self.connections / 2).max(1);
        self
    }
}

/// Serves until `stop` is true (or its sender gone) and every connection has ended. `turned` is called at each turn of
/// the loop, at least every 500 ms. Dropping the future closes every connection.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    settings: Settings,
    mut stop: watch::Receiver<bool>,
    mut turned: impl FnMut(),
) {
    #[cfg(unix)]
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    let descriptors = None;
    let settings = Arc::new(settings.within(descriptors));
    let table =
        Table::new(settings.connections, settings.streams, settings.large.map_or(0, |l| l.simultaneous));
    let handshakes = Arc::new(Handshakes::new(table.trusted().clone()));
    let mut connections = JoinSet::new();
    let mut turns = interval(TURN_PERIOD);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ending = stop.clone();
    let mut spare = Vec::new();
    loop {
        turned();
        tokio::select! {
            // Not faster than what gives way is closed: until then it has its file descriptor.
            accepted = listener.accept(), if connections.len() <= settings.connections => match accepted {
                Ok((stream, peer)) => {
                    let connection = table.enter(peer.ip());
                    let (router, settings) = (router.clone(), settings.clone());
                    let one = carry(stream, connection, handshakes.clone(), router, settings, ending.clone());
                    connections.spawn(one);
                }
                Err(error) if is_the_peers(&error) => {}
                Err(error) => {
                    settings.refusals.count(Barred::Shortage, &error);
                    // What it leaves is the next connection's.
                    if spare.pop().is_some() {
                        continue;
                    }
                    // What was accepted just now is answered meanwhile, and what gives way is closed.
                    sleep(ACCEPT_PAUSE / 2).await;
                    table.give_way();
                    sleep(ACCEPT_PAUSE / 2).await;
                }
            },
            Some(_) = connections.join_next() => {}
            // Only here: kept again at once, it would be given up and kept without pause.
            _ = turns.tick() => while connections.len() + spare.len() < CONNECTIONS_LEAST
                && let Ok(file) = File::open("/dev/null")
            {
                spare.push(file);
            },
            () = stopped(&mut stop) => break,
        }
    }
    drop(listener);
    while !connections.is_empty() {
        turned();
        tokio::select! {
            _ = connections.join_next() => {}
            _ = turns.tick() => {}
        }
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error is a sender that is gone: stop as well.
    let _ = stop.wait_for(|&stop| stop).await;
}

/// A peer that gave up before it was accepted.
fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionRefused | ConnectionAborted | ConnectionReset)
}

/// Carries one connection until either end has enough, or until it gives way.
async fn carry(
    stream: TcpStream,
    connection: Connection,
    handshakes: Arc<Handshakes>,
    router: Router,
    settings: Arc<Settings>,
    mut stop: watch::Receiver<bool>,
) {
    tune(&stream, settings.write_within);
    let Ok(address) = stream.peer_addr() else { return };
    let begun = Instant::now();
    let opening = secure::open(stream, settings.tls.as_ref(), &handshakes, connection.peer());
    let opening = timeout_at(begun + settings.head_within, opening);
    let opened = tokio::select! {
        opened = opening => opened.unwrap_or_else(|_| Err(settings.tls.as_ref().map(|_| Barred::Handshake))),
        () = connection.given_way() => Err(None),
        () = stopped(&mut stop) => Err(None),
    };
    let carried = Carried { connection, address: address.to_string(), begun, router, settings, stop };
    match opened {
        Ok(Opened::Plain(stream)) => carried.http(stream, None).await,
        Ok(Opened::Secured(stream, peer)) => carried.http(stream, peer).await,
        Err(None) => tracing::debug!(%address, "an HTTP connection ended before it began"),
        Err(Some(barred)) => carried.settings.refusals.count(barred, &address),
    }
}

/// A connection that is open.
struct Carried {
    connection: Connection,
    address: String,
    begun: Instant,
    router: Router,
    settings: Arc<Settings>,
    stop: watch::Receiver<bool>,
}

impl Carried {
    /// Answers its requests; `peer` is who proved to be at the other end.
    async fn http(self, stream: impl AsyncRead + AsyncWrite + Unpin, peer: Option<Peer>) {
        let Self { connection, address, begun, router, settings, mut stop } = self;
        let asked = AtomicBool::new(false);
        let service = service_fn(|request: hyper::Request<Incoming>| {
            asked.store(true, Ordering::Relaxed);
            let (router, connection, settings) = (router.clone(), connection.clone(), settings.clone());
            async move {
                let mut request: Request = request.map(Body::new);
                if let Some(peer) = peer {
                    request.extensions_mut().insert(peer);
                }
                Ok::<_, Infallible>(intake::answer(request, connection, router, &settings).await)
            }
        });
        let io = TokioIo::new(Patient::new(stream, settings.write_within));
        let mut serving = std::pin::pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(settings.head_within)
                .max_buf_size(HEAD_MAX)
                .serve_connection(io, service)
        );
        // What a handshake took is not given to the first head again.
        let mut late = std::pin::pin!(sleep_until(begun + settings.head_within));
        let (mut stopping, mut in_time) = (false, false);
        loop {
            tokio::select! {
                ended = serving.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(address, %error, "an HTTP connection ended");
                    }
                    break;
                }
                () = connection.given_way() => {
                    tracing::debug!(address, "an HTTP connection gave way");
                    break;
                }
                () = late.as_mut(), if !in_time => {
                    in_time = asked.load(Ordering::Relaxed);
                    if !in_time {
                        tracing::debug!(address, "an HTTP connection sent no head in time");
                        break;
                    }
                }
                () = stopped(&mut stop), if !stopping => {
                    stopping = true;
                    serving.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

/// Answers and events are small, and a peer waits for them; one that is gone is found although it never said so.
fn tune(stream: &TcpStream, write_within: Duration) {
    // Without one of these a connection is slower or ends later; it works.
    let _ = stream.set_nodelay(true);
    let socket = socket2::SockRef::from(stream);
    let _ = socket.set_send_buffer_size(SEND_BUFFER);
    #[cfg(target_os = "linux")]
    let _ = socket.set_tcp_user_timeout(Some(write_within));
    #[cfg(not(target_os = "linux"))]
    let _ = write_within;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_file_descriptors_leave_room_for_everything_else() {
        let at = |descriptors| {
            let settings = Settings::default().within(descriptors);
            (settings.connections, settings.streams)
        };
        assert_eq!(at(Some(1024)), (64, 16));
        assert_eq!(at(Some(128)), (64, 16));
        assert_eq!(at(Some(100)), (36, 16));
        assert_eq!(at(Some(32)), (4, 2));
        assert_eq!(at(None), (64, 16), "no limit");
    }
}
