//! What the running daemon reports of its own link: the doctor does not take the line from an aircraft that may
//! be flying.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use serde::de::DeserializeOwned;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use wingbeat_api::{AircraftStatus, Identity, LinkState, paths};

use super::Finding;
use crate::config::Settings;

/// The daemon answers from memory.
const PATIENCE: Duration = Duration::from_secs(3);
/// No status is longer.
const ANSWER_MAX: u64 = 1 << 20;

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
    let identity: Identity = get(address, paths::IDENTITY).await?;
    if identity.id != settings.daemon.agent.coordination.me().to_string() {
        return None;
    }
    get(address, paths::STATUS).await
}

async fn get<T: DeserializeOwned>(address: SocketAddr, path: &str) -> Option<T> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = vec![];
        stream.take(ANSWER_MAX).read_to_end(&mut answer).await.ok()?;
        Some(answer)
    };
    let answer = timeout(PATIENCE, exchange).await.ok()??;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    (head.split(' ').nth(1) == Some("200")).then(|| serde_json::from_str(body).ok())?
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
