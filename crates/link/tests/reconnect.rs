//! The link from outside: servers that come and go, a pseudo-terminal that is unplugged, ports that
//! another process has. Real sockets and real time; a test waits for events, never for a duration.
#![allow(clippy::disallowed_methods, reason = "ports are reopened in real time")]

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, UdpSocket},
    time::timeout,
};
use tokio_serial::{SerialPort as _, SerialStream};
use wingbeat_link::{Backoff, Endpoint, Link, LinkEvent, OpenErrorKind, check};

/// Longer than anything here takes on a loaded machine: what misses it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

async fn next(link: &mut Link) -> LinkEvent {
    timeout(PATIENCE, link.recv()).await.expect("an event").expect("a running task")
}

async fn bytes(link: &mut Link, count: usize) -> Vec<u8> {
    let mut all = vec![];
    while all.len() < count {
        match next(link).await {
            LinkEvent::Bytes(more) => all.extend(more),
            other => panic!("expected bytes, found {other:?}"),
        }
    }
    all
}

async fn down(link: &mut Link) -> String {
    match next(link).await {
        LinkEvent::Down { reason } => reason,
        other => panic!("expected Down, found {other:?}"),
    }
}

/// A listener on a given port, which a connection of the test's past may still occupy.
fn listen(address: SocketAddr) -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket.listen(8).unwrap()
}

#[tokio::test]
async fn a_tcp_server_comes_and_goes_and_comes_again() {
    let listener = listen(([127, 0, 0, 1], 0).into());
    let address = listener.local_addr().unwrap();
    let mut link = Link::spawn(format!("tcp:{address}").parse().unwrap());

    let (mut server, _) = listener.accept().await.unwrap();
    assert_eq!(next(&mut link).await, LinkEvent::Up);
    server.write_all(b"first").await.unwrap();
    assert_eq!(bytes(&mut link, 5).await, b"first");
    link.send(b"order".to_vec()).unwrap();
    let mut order = [0; 5];
    server.read_exact(&mut order).await.unwrap();
    assert_eq!(&order, b"order");

    drop((server, listener));
    let reason = down(&mut link).await;
    assert!(reason.contains(&address.to_string()) && reason.contains("found"), "{reason}");
    let reason = down(&mut link).await;
    assert!(reason.contains("refused"), "no program listens there: {reason}");
    link.send(b"stale".to_vec()).unwrap();

    let listener = listen(address);
    let (mut server, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    assert_eq!(next(&mut link).await, LinkEvent::Up);
    link.send(b"fresh".to_vec()).unwrap();
    server.read_exact(&mut order).await.unwrap();
    assert_eq!(&order, b"fresh", "an order from before the disconnection must not be flown");
}

#[tokio::test]
async fn dropping_the_link_closes_the_port() {
    let listener = listen(([127, 0, 0, 1], 0).into());
    let mut link = Link::spawn(Endpoint::TcpClient {
        host: "127.0.0.1".into(),
        port: listener.local_addr().unwrap().port(),
    });
    let (mut server, _) = listener.accept().await.unwrap();
    assert_eq!(next(&mut link).await, LinkEvent::Up);
    drop(link);
    assert_eq!(timeout(PATIENCE, server.read(&mut [0; 8])).await.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn an_autopilot_that_reads_nothing_fills_a_bounded_queue_and_is_hung_up_on() {
    let listener = listen(([127, 0, 0, 1], 0).into());
    let address = listener.local_addr().unwrap();
    let mut link = Link::spawn(format!("tcp:{address}").parse().unwrap());
    let (_server, _) = listener.accept().await.unwrap();
    assert_eq!(next(&mut link).await, LinkEvent::Up);
    let mut refused = false;
    for _ in 0..1_000 {
        refused |= link.send(vec![0; 1 << 20]).is_err();
    }
    assert!(refused, "a gigabyte cannot be queued");
    assert!(down(&mut link).await.contains("took no byte"));
}

#[tokio::test]
async fn udp_answers_its_first_peer_and_ignores_another() {
    let reserved = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = reserved.local_addr().unwrap();
    drop(reserved);
    let mut link = Link::spawn(Endpoint::UdpListen(address));
    assert_eq!(next(&mut link).await, LinkEvent::Up);
    link.send(b"to no peer".to_vec()).unwrap();

    let autopilot = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    autopilot.send_to(b"one", address).await.unwrap();
    assert_eq!(bytes(&mut link, 3).await, b"one");
    other.send_to(b"other", address).await.unwrap();
    autopilot.send_to(b"two", address).await.unwrap();
    assert_eq!(bytes(&mut link, 3).await, b"two", "a second sender is not the autopilot");

    link.send(b"answer".to_vec()).unwrap();
    let mut buffer = [0; 64];
    let length = timeout(PATIENCE, autopilot.recv(&mut buffer)).await.unwrap().unwrap();
    assert_eq!(&buffer[..length], b"answer");
}

#[tokio::test]
async fn udp_sends_to_a_peer_that_is_not_there_yet() {
    let autopilot = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = autopilot.local_addr().unwrap();
    drop(autopilot);
    let mut link = Link::spawn(Endpoint::UdpSend(address));
    assert_eq!(next(&mut link).await, LinkEvent::Up);
    for _ in 0..3 {
        link.send(b"hello".to_vec()).unwrap();
        tokio::task::yield_now().await;
    }
    let autopilot = UdpSocket::bind(address).await.unwrap();
    let mut buffer = [0; 64];
    let (length, from) = timeout(PATIENCE, async {
        loop {
            let _ = link.send(b"again".to_vec());
            if let Ok(received) = timeout(Duration::from_millis(100), autopilot.recv_from(&mut buffer)).await
            {
                return received.unwrap();
            }
        }
    })
    .await
    .unwrap();
    assert!(length == 5, "hello or again");
    autopilot.send_to(b"here", from).await.unwrap();
    assert_eq!(bytes(&mut link, 4).await, b"here");
}

#[tokio::test]
async fn a_serial_line_is_opened_carries_all_bytes_and_closes_when_unplugged() {
    let (mut far, near) = SerialStream::pair().unwrap();
    let path = near.name().unwrap();
    drop(near);
    let mut link = Link::spawn(format!("serial:{path}:921600").parse().unwrap());
    assert_eq!(next(&mut link).await, LinkEvent::Up);

    // Every byte value, so that no line discipline may eat or translate one.
    let all: Vec<u8> = (0..=255).collect();
    far.write_all(&all).await.unwrap();
    assert_eq!(bytes(&mut link, 256).await, all);
    link.send(all.clone()).unwrap();
    let mut received = vec![0; 256];
    timeout(PATIENCE, far.read_exact(&mut received)).await.unwrap().unwrap();
    assert_eq!(received, all);

    drop(far);
    let reason = down(&mut link).await;
    assert!(reason.contains(&path), "{reason}");
    let reason = down(&mut link).await;
    assert!(reason.contains("no such device"), "{reason}");
}

#[tokio::test]
async fn a_busy_a_missing_and_an_unsuitable_device_each_have_their_message() {
    let (_far, near) = SerialStream::pair().unwrap();
    let path = near.name().unwrap();
    let error = check(&format!("serial:{path}:57600").parse().unwrap()).await.unwrap_err();
    assert_eq!(error.kind, OpenErrorKind::Busy);
    let message = error.to_string();
    let me = std::process::id().to_string();
    assert!(message.contains(&format!("serial:{path}:57600")), "the device: {message}");
    assert!(message.contains(&format!("found the device open in process {me}")), "holder: {message}");
    assert!(message.contains("expected a device that no other process has open"), "{message}");
    drop(near);
    check(&format!("serial:{path}:57600").parse().unwrap()).await.expect("free now");

    let error = check(&"serial:/dev/ttyWINGBEAT:57600".parse().unwrap()).await.unwrap_err();
    assert_eq!(error.kind, OpenErrorKind::Missing);
    assert!(!error.kind.needs_a_person(), "it may be plugged in later");
    assert!(error.to_string().contains("no such device"), "{error}");

    let file = std::env::current_exe().unwrap();
    let error = check(&Endpoint::Serial { path: file, baud: 57_600, rtscts: false }).await.unwrap_err();
    assert!(error.kind.needs_a_person(), "{error}");
}

#[tokio::test]
async fn a_link_to_a_missing_device_reports_it_once_and_keeps_trying() {
    let mut link = Link::spawn("serial:/dev/ttyWINGBEAT:57600".parse().unwrap());
    assert!(down(&mut link).await.contains("no such device"));
    // Several attempts later the same reason has not been reported again.
    let quiet = timeout(Duration::from_millis(800), link.recv()).await;
    assert!(quiet.is_err(), "reported again: {quiet:?}");
}

#[tokio::test(start_paused = true)]
async fn a_device_that_returns_is_open_within_two_seconds_however_long_it_was_away() {
    let folder = std::env::temp_dir().join(format!("wingbeat-return-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("ttyFC");
    let mut link = Link::spawn(format!("serial:{}:921600", path.display()).parse().unwrap());
    assert!(down(&mut link).await.contains("no such device"));
    // Time is the test's own: it passes only while every task waits.
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let (mut far, near) = SerialStream::pair().unwrap();
    std::os::unix::fs::symlink(near.name().unwrap(), &path).unwrap();
    drop(near);
    far.write_all(b"telemetry").await.unwrap();
    let returned = tokio::time::Instant::now();
    assert_eq!(next(&mut link).await, LinkEvent::Up);
    assert_eq!(bytes(&mut link, 9).await, b"telemetry");
    let away = returned.elapsed();
    std::fs::remove_dir_all(folder).unwrap();
    assert!(away <= Duration::from_secs(2), "{away:?}");
}

/// A link whose turns are counted.
fn watched(endpoint: &str) -> (Link, tokio::sync::watch::Receiver<u32>) {
    let (sender, turns) = tokio::sync::watch::channel(0);
    let link = Link::spawn_with(endpoint.parse().unwrap(), Backoff::default(), move || {
        sender.send_modify(|n| *n += 1)
    });
    (link, turns)
}

#[tokio::test]
async fn the_task_iterates_on_an_idle_port_and_on_one_that_is_not_there() {
    let listener = listen(([127, 0, 0, 1], 0).into());
    let (mut link, mut turns) = watched(&format!("tcp:{}", listener.local_addr().unwrap()));
    let (_silent, _) = listener.accept().await.unwrap();
    assert_eq!(next(&mut link).await, LinkEvent::Up);
    let before = *turns.borrow_and_update();
    let more = |n: &u32| *n > before + 2;
    timeout(PATIENCE, turns.wait_for(more)).await.expect("the loop of an idle port runs").unwrap();

    let (_missing, mut turns) = watched("serial:/dev/ttyWINGBEAT:57600");
    timeout(PATIENCE, turns.wait_for(|n| *n > 4)).await.expect("a missing port turns").unwrap();
}
