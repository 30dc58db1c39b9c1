//! What the running daemon reports of its own link: the doctor does not take the line from an aircraft that may
//! be flying.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use axum::body::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{Request, client::conn::http1, header::HOST};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use wingbeat_api::{AircraftStatus, LinkState, measurements::Clock, paths};
use wingbeat_keys::Keys;
use wingbeat_tls::Identity;

use super::Finding;
use crate::config::Settings;

/// The daemon answers from memory.
const PATIENCE: Duration = Duration::from_secs(3);
/// A clock that is farther off is not set.
const OFFSET_MAX_US: u64 = 1_000_000;
/// No status is longer.
const ANSWER_MAX: usize = 1 << 20;

/// The state of the daemon that flies with this configuration; nothing if none runs here.
pub(super) async fn ask(settings: &Settings) -> Option<AircraftStatus> {
    let mut address = settings.daemon.http;
    if address.port() == 0 {
        return None; // It chose a free port, which is unknown here.
    }
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    let keys = &settings.daemon.keys;
    let identity: wingbeat_api::Identity = get(address, keys, paths::IDENTITY).await?;
    if identity.id != settings.daemon.agent.coordination.me().to_string() {
        return None;
    }
    get(address, keys, paths::STATUS).await
}

async fn get<T: DeserializeOwned>(address: SocketAddr, keys: &Keys, path: &str) -> Option<T> {
    let body = timeout(PATIENCE, exchange(address, keys, path)).await.ok()??;
    serde_json::from_slice(&body).ok()
}

/// The body of a success. With keys the doctor shows the aircraft's own, which may read.
async fn exchange(address: SocketAddr, keys: &Keys, path: &str) -> Option<Bytes> {
    let stream = TcpStream::connect(address).await.ok()?;
    match Identity::new(&keys.signer, &keys.roster) {
        Some(identity) => ask_over(identity.connect(stream).await.ok()?, address, path).await,
        None => ask_over(stream, address, path).await,
    }
}

async fn ask_over(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    address: SocketAddr,
    path: &str,
) -> Option<Bytes> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    let request = Request::get(path).header(HOST, address.to_string()).body(Empty::<Bytes>::new()).ok()?;
    // It ends with the answer.
    let exchange = async {
        let answer = sender.send_request(request).await.ok().filter(|answer| answer.status() == 200)?;
        Limited::new(answer.into_body(), ANSWER_MAX).collect().await.ok()
    };
    tokio::pin!(exchange, connection);
    let body = tokio::select! {
        body = &mut exchange => body,
        // It may have ended after the answer was there.
        _ = &mut connection => exchange.await,
    };
    Some(body?.to_bytes())
}

/// What that state means.
pub(super) fn examine(status: &AircraftStatus, findings: &mut Vec<Finding>) {
    findings.push(Finding::ok("daemon", "wingbeatd running; it holds the line and answers for it"));
    let controller = &status.flight_controller;
    let cure =
        "systemctl stop wingbeatd on the ground and ask the doctor again: it then listens to the line itself";
    let missing = |what: &str| {
        let why = controller.link_fault.as_ref().map_or("unknown", |fault| fault.detail.as_str());
        Finding::fault("line", format!("{what} ({why})"), "telemetry", cure)
    };
    findings.push(match controller.link {
        LinkState::Up => Finding::ok("line", "telemetry"),
        LinkState::NeverSeen => missing("no telemetry since the daemon started"),
        LinkState::Lost => missing("telemetry that ceased"),
    });
    if let Some(firmware) = &controller.firmware {
        findings.push(if firmware.starts_with("ArduCopter") {
            Finding::ok("autopilot", firmware.as_str())
        } else {
            let cure = "load ArduCopter, or connect the right flight controller";
            Finding::fault("autopilot", firmware.as_str(), "ArduCopter", cure)
        });
    }
    findings.extend(status.measurements.clock.as_ref().map(clock));
    let unwritten = controller.refused.iter().find(|refusal| refusal.reason == "unwritten");
    if let Some(unwritten) = unwritten {
        findings.push(Finding::warning(
            "flow control",
            format!("{} messages that the line did not take", unwritten.count),
            "a line that takes every message",
            "a higher SERIAL2_BAUD; without RTS and CTS wires BRD_SER2_RTSCTS = 0 and no rtscts in autopilot.endpoint",
        ));
    }
}

/// The computer's clock next to GNSS time.
fn clock(clock: &Clock) -> Finding {
    let Clock { ahead_us, is_fed, .. } = *clock;
    let Some(ahead_us) = ahead_us else { return Finding::ok("GNSS time", "known; the clock is not") };
    let side = if ahead_us < 0 { "behind" } else { "ahead of" };
    let set_by = if is_fed { ", chronyd sets it" } else { "" };
    let found = format!("a clock {:.3} s {side} it{set_by}", ahead_us.unsigned_abs() as f64 * 1e-6);
    if ahead_us.unsigned_abs() <= OFFSET_MAX_US {
        return Finding::ok("GNSS time", found);
    }
    let cure = if is_fed {
        "wait until chronyd has set it (chronyc sources)"
    } else {
        "install chrony with the two files of /usr/share/doc/wingbeatd (docs/operating.md, Clock)"
    };
    Finding::warning("GNSS time", found, "at most 1 s: logs of several aircraft are compared by it", cure)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// What is read of a server that answers one request with these bytes, and the request.
    async fn read(answer: String) -> (Option<Vec<u32>>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1_024];
            let length = stream.read(&mut request).await.unwrap();
            // A client that has read enough disconnects.
            let _ = stream.write_all(answer.as_bytes()).await;
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        (get(address, &Keys::insecure(), "/api/v1/x").await, server.await.unwrap())
    }

    #[tokio::test]
    async fn only_a_success_with_the_expected_json_is_an_answer() {
        let body = |status: &str, body: &str| {
            format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        };
        let (answer, request) = read(body("200 OK", "[1, 2]")).await;
        assert_eq!(answer, Some(vec![1, 2]));
        assert!(request.starts_with("GET /api/v1/x HTTP/1.1\r\n"), "{request}");
        let chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n[1,\r\n3\r\n 2]\r\n0\r\n\r\n";
        assert_eq!(read(chunks.to_owned()).await.0, Some(vec![1, 2]));
        for bad in [
            body("404 Not Found", "[1, 2]"),
            body("302 Found", "[1, 2]"),
            body("200 OK", "[1, \"two\"]"),
            body("200 OK", &format!("[1{}]", " ".repeat(ANSWER_MAX))),
            "SSH-2.0-x\r\n".to_owned(),
            String::new(),
        ] {
            let shown: String = bad.chars().take(40).collect();
            assert_eq!(read(bad).await.0, None, "{shown}");
        }
    }
}
