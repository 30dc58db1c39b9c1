//! What others on the network cannot do to the ground service: keep its connections, its streams and its memory, and
//! command aircraft from a web page of theirs.

#![allow(clippy::disallowed_methods, reason = "services run in real time")]

use crate::support;

use std::time::Duration;

use support::{Fake, all_up, ground, picture};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};
use wingbeat_api::paths;
use wingbeat_ground::Handle;

/// Longer than anything here takes on a loaded machine: what misses it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const HERE: [u8; 4] = [127, 0, 0, 1];
const ELSEWHERE: [u8; 4] = [127, 0, 0, 2];

async fn send(handle: &Handle, from: [u8; 4], request: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((from, 0).into()).expect("an address of this machine");
    let connected = timeout(PATIENCE, socket.connect(handle.address())).await.expect("in time");
    let mut stream = connected.expect("it accepts");
    // One that has been closed meanwhile takes nothing.
    let _ = timeout(PATIENCE, stream.write_all(request.as_bytes())).await.expect("it takes or refuses it");
    stream
}

async fn answer(mut stream: TcpStream) -> String {
    let mut answer = vec![];
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

fn post(path: &str, host: &str, more: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_stop_is_answered_while_1100_slow_connections_are_open() {
    let fake = Fake::start(1).await;
    let handle = ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    let mut open = vec![];
    for _ in 0..1_100 {
        open.push(send(&handle, ELSEWHERE, "POST /api/v1/fleet/commands HTTP/1.1\r\nHost: ").await);
    }
    let mut times = vec![];
    for (number, command) in ["hold", "land", "return", "recover_control", "land"].iter().enumerate() {
        let body = format!(r#"{{"id":"c{number}","command":"{command}"}}"#);
        let since = Instant::now();
        let answer =
            answer(send(&handle, HERE, &post(paths::FLEET_COMMANDS, "localhost", "", &body)).await).await;
        times.push(since.elapsed());
        assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    }
    times.sort_unstable();
    println!("answered within {times:?}");
    assert!(times[2] < Duration::from_millis(200), "{times:?}");
    // Each of them is a file descriptor of the service: few are still open.
    let mut still = 0;
    for stream in &mut open {
        still += usize::from(timeout(Duration::from_millis(1), stream.read(&mut [0])).await.is_err());
    }
    assert!(still <= 128, "found {still} of 1100 open");
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_mission_files_pin_little_memory() {
    let handle = ground(&[]).await;
    let body = "x".repeat(3_900_000);
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 3900001\r\n\r\n",
        paths::MISSION_FILES
    );
    let mut open = vec![];
    for _ in 0..200 {
        open.push(send(&handle, ELSEWHERE, &format!("{head}{body}")).await);
    }
    let survey = include_str!("../../../deploy/missions/survey.plan");
    let file = serde_json::json!({"name": "survey.plan", "text": survey}).to_string();
    let read = answer(send(&handle, HERE, &post(paths::MISSION_FILES, "localhost", "", &file)).await).await;
    assert!(read.starts_with("HTTP/1.1 200"), "{read}");
    // A body that is kept is kept until its time is over, and its peer is informed; one that gives way ends before, without an answer. When each has
    // ended no longer matters how fast the service closes them.
    let mut kept = 0;
    for stream in open {
        kept += usize::from(answer(stream).await.starts_with("HTTP/1.1 408"));
    }
    assert!((1..=4).contains(&kept), "found {kept} of 200 bodies of 3.9 MB kept, expected 1 to 4");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_that_comes_back_is_served_while_idle_ones_hold_every_stream() {
    let handle = ground(&[]).await;
    let events = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", paths::FLEET_EVENTS);
    let mut consoles = vec![];
    for number in 0..70 {
        let mut stream = send(&handle, if number < 66 { ELSEWHERE } else { HERE }, &events).await;
        let mut head = [0; 15];
        timeout(PATIENCE, stream.read_exact(&mut head)).await.expect("an answer").expect("an answer");
        assert_eq!(head, *b"HTTP/1.1 200 OK", "console {number}");
        consoles.push(stream);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_rebinds_its_name_cannot_command() {
    let fake = Fake::start(1).await;
    let handle = ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    let command = r#"{"id":"c5","command":"land","vehicles":[]}"#;
    for (host, more, expected) in [
        ("evil.example:8930", "Origin: http://evil.example:8930\r\n", "421"),
        ("evil.example:8930", "", "421"),
        ("127.0.0.1:8930", "Origin: http://evil.example:8930\r\n", "403"),
    ] {
        let answer =
            answer(send(&handle, HERE, &post(paths::FLEET_COMMANDS, host, more, command)).await).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{host}: {answer}");
        assert!(answer.contains("frame-ancestors 'none'") && answer.contains("found"), "{answer}");
    }
    assert!(fake.received().is_empty());
}
