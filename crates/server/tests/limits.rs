//! The limits over real sockets: times are shortened, numbers are those of the aircraft.
#![allow(clippy::disallowed_methods, reason = "connections are served in real time")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use axum::routing::{get, post};
use futures_util::stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use wingbeat_server::{Connection, Hosts, Large, Settings, serve};

/// Longer than anything here takes on a loaded machine: what misses it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

async fn server(settings: Settings) -> Server {
    let events = |connection: Connection| async move {
        let events = stream::unfold(connection.stream(), |kept| async {
            sleep(Duration::from_millis(10)).await;
            Some((Ok::<_, Infallible>(Event::default().data("x".repeat(4096))), kept))
        });
        Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(1)))
    };
    let router = Router::new()
        .route("/now", get(|| async { "now" }))
        .route("/echo", post(|body: String| async move { body.len().to_string() }))
        .route("/file", post(|body: String| async move { body.len().to_string() }))
        .route("/never", get(std::future::pending::<()>))
        .route("/events", get(events));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(serve(listener, router, settings, stopped, || {}));
    Server { address, stop, task }
}

/// A connection from an address of this machine.
async fn connect(server: &Server, from: [u8; 4]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    socket.connect(server.address).await.unwrap()
}

async fn send(server: &Server, from: [u8; 4], request: &str) -> TcpStream {
    let mut stream = connect(server, from).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Everything until the server disconnects.
async fn rest(mut stream: TcpStream) -> String {
    let mut answer = vec![];
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the end");
    String::from_utf8_lossy(&answer).into_owned()
}

async fn ask(server: &Server, from: [u8; 4], head: &str, body: &str) -> String {
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    rest(send(server, from, &request).await).await
}

const HERE: [u8; 4] = [127, 0, 0, 1];
const ELSEWHERE: [u8; 4] = [127, 0, 0, 2];
const EVENTS: &str = "GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_answered_fast_while_1100_slow_connections_are_open() {
    let server = server(Settings::default()).await;
    let slow = [
        "",
        "POST /echo HTTP/1.1\r\nHost: ",
        "POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{",
        EVENTS,
    ];
    let mut open = vec![];
    for number in 0..1_100 {
        open.push(send(&server, ELSEWHERE, slow[number % slow.len()]).await);
    }
    let mut times = vec![];
    for _ in 0..9 {
        let since = Instant::now();
        let answer = ask(&server, HERE, "POST /echo", "hold").await;
        times.push(since.elapsed());
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with('4'), "{answer}");
    }
    times.sort_unstable();
    println!("1100 slow connections open: median {:?}, longest {:?}", times[4], times[8]);
    assert!(times[4] < Duration::from_millis(200), "{times:?}");
    // From the same address too, and while more come.
    let answer = ask(&server, ELSEWHERE, "GET /now", "").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("now"), "{answer}");
    drop(open);
}

/// Each connection is a file descriptor, also while it is being closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_is_not_accepted_faster_than_what_gives_way_is_closed() {
    let server = server(Settings { connections: 4, streams: 2, ..Settings::default() }).await;
    let address = server.address;
    let flood = std::thread::spawn(move || {
        let connections = (0..2_000).map(|_| std::net::TcpStream::connect(address).unwrap());
        connections.collect::<Vec<_>>()
    });
    let metrics = tokio::runtime::Handle::current().metrics();
    let mut most = 0;
    while !flood.is_finished() {
        // The server's task is one.
        most = most.max(metrics.num_alive_tasks() - 1);
        tokio::task::yield_now().await;
    }
    assert!((1..=5).contains(&most), "found {most} connections, expected at most 4 and the newest");
    drop(flood.join().unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_bodies_answers_and_idle_connections_have_an_end() {
    let settings =
        Settings { head_within: SHORT, body_within: SHORT, answer_within: SHORT, ..Settings::default() };
    let server = server(settings).await;
    assert!(!rest(connect(&server, HERE).await).await.contains(" 200 "), "nothing was asked");
    assert!(!rest(send(&server, HERE, "GET /now HTT").await).await.contains(" 200 "), "half a head");
    let answer = rest(send(&server, HERE, "GET /now HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await).await;
    assert!(answer.ends_with("now"), "one answer, and the idle connection ends: {answer}");
    let half = "POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{";
    let answer = rest(send(&server, HERE, half).await).await;
    assert!(
        answer.starts_with("HTTP/1.1 408") && answer.contains("/echo: found no end of the body"),
        "{answer}"
    );
    // A body that drips is no better.
    let mut dripping = send(&server, HERE, &half.replace("10", "1000")).await;
    let dripped = timeout(PATIENCE, async {
        while dripping.write_all(b"x").await.is_ok() {
            sleep(SHORT / 10).await;
        }
    });
    dripped.await.expect("it ends");
    let answer = ask(&server, HERE, "GET /never", "").await;
    assert!(
        answer.starts_with("HTTP/1.1 503") && answer.contains("/never: found no end of the answer"),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_stream_outlives_every_limit_while_it_is_read_and_ends_when_it_is_not() {
    let settings = Settings {
        head_within: SHORT,
        body_within: SHORT,
        answer_within: SHORT,
        write_within: SHORT,
        ..Settings::default()
    };
    let server = server(settings).await;
    let mut read = send(&server, HERE, EVENTS).await;
    let mut buffer = vec![0; 1 << 16];
    let since = Instant::now();
    while since.elapsed() < 5 * SHORT {
        let length = timeout(PATIENCE, read.read(&mut buffer)).await.expect("an event").expect("it is open");
        assert!(length > 0, "it ended after {:?}", since.elapsed());
    }
    // One that reads nothing: its stream is given back.
    let unread = send(&server, ELSEWHERE, EVENTS).await;
    let alone = Instant::now();
    loop {
        let _ = timeout(Duration::from_millis(1), read.read(&mut buffer)).await;
        assert!(alone.elapsed() < PATIENCE, "found it open, expected it closed");
        // A server that closed answers what it is sent with a reset.
        let _ = unread.try_write(b"x");
        if unread.take_error().unwrap().is_some()
            || unread.try_write(b"x").is_err_and(|e| e.kind() != std::io::ErrorKind::WouldBlock)
        {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_17th_event_stream_is_served_and_the_first_gives_way() {
    let server = server(Settings::default()).await;
    let mut streams = vec![];
    for _ in 0..17 {
        let mut stream = send(&server, ELSEWHERE, EVENTS).await;
        let mut buffer = [0; 32];
        timeout(PATIENCE, stream.read_exact(&mut buffer)).await.expect("an answer").expect("an answer");
        assert!(buffer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&buffer));
        streams.push(stream);
    }
    rest(streams.remove(0)).await;
    let mut console = send(&server, HERE, EVENTS).await;
    let mut buffer = [0; 32];
    timeout(PATIENCE, console.read_exact(&mut buffer)).await.expect("an answer").expect("an answer");
    assert!(buffer.starts_with(b"HTTP/1.1 200"));
    rest(streams.remove(0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_has_a_limit_and_large_ones_a_number() {
    let large = Large { paths: &["/file"], bytes: 4_000_000, simultaneous: 4 };
    let server = server(Settings { large: Some(large), ..Settings::default() }).await;
    let body = "x".repeat(200_000);
    let answer = ask(&server, HERE, "POST /echo", &body).await;
    assert!(
        answer.starts_with("HTTP/1.1 413") && answer.contains("expected at most 131072 bytes"),
        "{answer}"
    );
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let chunked = "POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = rest(send(&server, HERE, &format!("{chunked}{chunk}")).await).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(ask(&server, HERE, "POST /file", &body).await.ends_with("200000"));

    let head = "POST /file HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3900000\r\n\r\nx";
    let mut unfinished = vec![];
    for _ in 0..5 {
        unfinished.push(send(&server, ELSEWHERE, head).await);
        // Each in its turn.
        ask(&server, HERE, "GET /now", "").await;
    }
    let mut open = 0;
    for stream in &mut unfinished {
        let closed = timeout(SHORT, stream.read(&mut [0])).await;
        open += usize::from(closed.is_err());
    }
    assert_eq!(open, 4, "found another number of unfinished large bodies");
    assert!(ask(&server, HERE, "POST /file", &body).await.ends_with("200000"), "another address finds room");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_name_or_origin_is_refused_and_every_answer_forbids_frames() {
    let hosts = Hosts::new("allowed_hosts", &["uav-3.example".to_owned()]).unwrap();
    let server = server(Settings { hosts, ..Settings::default() }).await;
    let get = async |host: &str, more: &str| {
        let request = format!("GET /now HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n");
        rest(send(&server, HERE, &request).await).await
    };
    for (host, more, expected) in [
        ("127.0.0.1", "", "200"),
        ("uav-3.example:8080", "", "200"),
        ("127.0.0.1", "Origin: http://127.0.0.1\r\n", "200"),
        ("evil.example", "", "421"),
        ("evil.example", "Origin: http://evil.example\r\n", "421"),
        ("127.0.0.1", "Origin: http://evil.example\r\n", "403"),
        ("127.0.0.1", "Origin: null\r\n", "403"),
    ] {
        let answer = get(host, more).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{host} {more}: {answer}");
        for header in [
            "frame-ancestors 'none'",
            "default-src 'none'",
            "x-content-type-options: nosniff",
            "x-frame-options: DENY",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(answer.contains(header), "{header}: {answer}");
        }
    }
    assert!(rest(send(&server, HERE, "GET /now HTTP/1.1\r\n\r\n").await).await.starts_with("HTTP/1.1 400"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_requests_end_and_frees_the_port() {
    let server = server(Settings { answer_within: SHORT, ..Settings::default() }).await;
    let asked = send(&server, HERE, "GET /never HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await;
    let idle = send(&server, HERE, "GET /now HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await;
    sleep(SHORT / 3).await;
    server.stop.send_replace(true);
    assert!(rest(idle).await.ends_with("now"));
    assert!(rest(asked).await.starts_with("HTTP/1.1 503"), "it was answered");
    timeout(PATIENCE, server.task).await.expect("it ends").unwrap();
    TcpListener::bind(server.address).await.expect("the port is free");
}
