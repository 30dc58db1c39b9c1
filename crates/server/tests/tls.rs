//! TLS over real sockets: who is served, what the others are told, and that the limits hold.
#![allow(clippy::disallowed_methods, reason = "connections are served in real time")]

use std::net::SocketAddr;
use std::time::Duration;

use axum::routing::get;
use axum::{Extension, Router};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use wingbeat_server::{Peer, Refusals, Settings, serve};
use wingbeat_tls::{Identity, Why, why};
use wingbeat_wire::{FleetKey, Role, Roster, Signer, VehicleId};

/// Longer than anything here takes on a loaded machine: what misses it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const HERE: [u8; 4] = [127, 0, 0, 1];
const ELSEWHERE: [u8; 4] = [127, 0, 0, 2];
const ASK: &str = "GET /who HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";

/// An aircraft's (1) or a console's keys (2 to 4); the roster does not have 9.
fn identity(number: u8) -> Identity {
    let fleet = || FleetKey([7; 32]);
    let signer = |number: u8| Signer::new(&[number; 32], 1, fleet());
    let mut roster = Roster::new(1, fleet());
    for (number, role) in (1..).zip([Role::Aircraft, Role::Operator, Role::Safety, Role::Viewer]) {
        let key = signer(number).public_key().unwrap();
        roster.add(VehicleId(u64::from(number)), role, &key).unwrap();
    }
    Identity::new(&signer(number), &roster).unwrap()
}

struct Server {
    address: SocketAddr,
    refusals: Refusals,
    _stop: watch::Sender<bool>,
}

async fn server(settings: Settings) -> Server {
    let who = |peer: Option<Extension<Peer>>| async move {
        peer.map_or("unknown".to_owned(), |Extension(peer)| format!("{} {:?}", peer.id, peer.role))
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let refusals = settings.refusals.clone();
    tokio::spawn(serve(listener, Router::new().route("/who", get(who)), settings, stopped, || {}));
    Server { address, refusals, _stop: stop }
}

fn secured() -> Settings {
    Settings { tls: Some(identity(1).acceptor().unwrap()), ..Settings::default() }
}

impl Server {
    async fn connect(&self, from: [u8; 4]) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        socket.connect(self.address).await.unwrap()
    }

    /// The reasons that were counted, once there are so many.
    async fn counted(&self, number: u64) -> Vec<(&'static str, u64)> {
        let counts = || self.refusals.counts().filter(|(_, count)| *count > 0).collect::<Vec<_>>();
        let enough = async {
            while counts().iter().map(|(_, count)| count).sum::<u64>() < number {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = timeout(PATIENCE, enough).await;
        counts()
    }
}

async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<String, Option<Why>> {
    let exchange = async {
        stream.write_all(ASK.as_bytes()).await?;
        let mut answer = vec![];
        stream.read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    timeout(PATIENCE, exchange).await.expect("an answer").map_err(|error: std::io::Error| why(&error))
}

#[tokio::test]
async fn a_router_knows_who_asks_and_strangers_are_told_why_and_counted() {
    let server = server(secured()).await;
    for (number, expected) in
        [(2, "0000000000000002 Operator"), (4, "0000000000000004 Viewer"), (1, "0000000000000001 Aircraft")]
    {
        let stream = identity(number).connect(server.connect(HERE).await).await.unwrap();
        let answer = ask(stream).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(expected), "{answer}");
    }
    assert_eq!(server.counted(0).await, []);

    // The client takes the handshake for done before its key is judged.
    let stream = identity(9).connect(server.connect(HERE).await).await.unwrap();
    assert_eq!(ask(stream).await, Err(Some(Why::RefusedOurs)));
    let answer = ask(server.connect(HERE).await).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("found HTTP without TLS"), "{answer}");
    let mut garbage = server.connect(HERE).await;
    garbage.write_all(&[0x16, 3, 1, 0, 5, 9, 9, 9, 9, 9]).await.unwrap();
    assert_eq!(server.counted(3).await, [("not_tls", 1), ("unknown_key", 1), ("handshake", 1)]);
}

#[tokio::test]
async fn a_console_with_keys_learns_that_the_server_has_none() {
    let server = server(Settings::default()).await;
    let error = identity(2).connect(server.connect(HERE).await).await.unwrap_err();
    assert_eq!(why(&error), Some(Why::NotTls), "{error}");
    assert_eq!(server.counted(1).await, [("tls", 1)]);
    let answer = ask(server.connect(HERE).await).await.unwrap();
    assert!(answer.ends_with("unknown"), "{answer}");
}

#[tokio::test]
async fn a_handshake_and_the_first_head_have_one_limit_together() {
    let limit = Duration::from_secs(4);
    let server = server(Settings { head_within: limit, ..secured() }).await;
    let mut half = server.connect(HERE).await;
    half.write_all(&[0x16, 3, 1]).await.unwrap();
    let since = Instant::now();
    let ended = timeout(PATIENCE, half.read(&mut [0; 64])).await.expect("the end");
    assert!(matches!(ended, Ok(0) | Err(_)) && since.elapsed() >= limit / 2, "{ended:?}");
    assert_eq!(server.counted(1).await, [("handshake", 1)]);

    let begun = Instant::now();
    let plain = server.connect(HERE).await;
    tokio::time::sleep(limit / 2).await;
    let mut silent = identity(2).connect(plain).await.unwrap();
    let mut end = vec![];
    let _ = timeout(PATIENCE, silent.read_to_end(&mut end)).await.expect("the end");
    assert!(
        begun.elapsed() >= limit && begun.elapsed() < limit * 3 / 2 - limit / 10,
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_answered_fast_while_1100_slow_connections_are_open() {
    let server = server(secured()).await;
    let (member, stranger) = (identity(2), identity(9));
    let mut open: Vec<Box<dyn std::any::Any>> = vec![];
    for number in 0..1_100 {
        let mut stream = server.connect(ELSEWHERE).await;
        match number % 4 {
            0 => {}
            1 => stream.write_all(&[0x16, 3, 1]).await.unwrap(),
            2 => {
                if let Ok(mut member) = member.connect(stream).await {
                    let _ = member.write_all(b"GET /who HTTP").await;
                    open.push(Box::new(member));
                }
                continue;
            }
            _ => {
                open.push(Box::new(stranger.connect(stream).await.ok()));
                continue;
            }
        }
        open.push(Box::new(stream));
    }
    let mut times = vec![];
    for _ in 0..9 {
        let since = Instant::now();
        let stream = identity(2).connect(server.connect(HERE).await).await.unwrap();
        let answer = ask(stream).await.unwrap();
        times.push(since.elapsed());
        assert!(answer.ends_with("0000000000000002 Operator"), "{answer}");
    }
    times.sort_unstable();
    println!("1100 slow connections open: median {:?}, longest {:?}", times[4], times[8]);
    assert!(times[4] < Duration::from_millis(200), "{times:?}");
    drop(open);
}

#[tokio::test]
async fn handshakes_without_a_key_of_the_fleet_are_bounded_by_address() {
    let server = server(secured()).await;
    for _ in 0..200 {
        // The client side may take it for done before it is refused.
        if let Ok(stream) = identity(9).connect(server.connect(ELSEWHERE).await).await {
            let _ = ask(stream).await;
        }
    }
    let counted = server.counted(200).await;
    let of = |name| counted.iter().find(|(why, _)| *why == name).map_or(0, |(_, count)| *count);
    assert_eq!(of("unknown_key") + of("handshake_rate"), 200, "{counted:?}");
    assert!(of("handshake_rate") > 0 && of("unknown_key") >= 64, "{counted:?}");
    // A member elsewhere begins as many as it likes.
    for _ in 0..200 {
        let stream = identity(2).connect(server.connect(HERE).await).await.unwrap();
        assert!(ask(stream).await.unwrap().ends_with("0000000000000002 Operator"));
    }
}
