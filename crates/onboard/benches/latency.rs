//! Bytes in to bytes out: how long the daemon takes from a telemetry frame to the command that it triggers.
//!
//! The real daemon (`wingbeat_onboard::start`) on a pseudo-terminal pair, with a peer on a thread of its own
//! that plays the autopilot during a mission upload: each `MISSION_REQUEST_INT` must be answered by its
//! `MISSION_ITEM_INT`. Measured from before the request is written to after its answer is decoded, so the
//! peer's own share counts too. Between rounds it waits a different time each, and position reports continue, so
//! that rounds meet every phase of the driver's timers.
//!
//! `cargo bench --package wingbeat-onboard --bench latency`, which `cargo xtask bench` runs.
#![allow(clippy::disallowed_methods, reason = "latency is measured")]

use std::{
    error::Error,
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_serial::{SerialPort as _, SerialStream};
use wingbeat_agent::CompanionLoss;
use wingbeat_autopilot::{
    codec::{Decoder, FRAME_LEN_MAX, MavHeader, encode_v2},
    dialect::{
        EKF_STATUS_REPORT_DATA, EkfStatusFlags, GLOBAL_POSITION_INT_DATA, GPS_RAW_INT_DATA, GpsFixType,
        HEARTBEAT_DATA, MISSION_REQUEST_INT_DATA, MavAutopilot, MavMessage, MavModeFlag, MavType,
        SYS_STATUS_DATA,
    },
    job::COMPONENT_ID,
};
use wingbeat_onboard::{Clock, config};
use wingbeat_radio::UdpBroadcast;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: usize = 5_000;
/// The daemon gives an upload up after 60 s.
const PATIENCE: Duration = Duration::from_secs(50);
/// The longest wait between two rounds: more than a tick of the driver and of the kernel's timers.
const PAUSE_MAX_US: u64 = 5_000;
const CONFIG: &str = "id = \"00b827eb01020304\"\n[muscop]\nmaster = \"00b827eb01020304\"\naircraft = 1\nalone = true\n[http]\nbind = \
                      \"127.0.0.1:0\"\n[security]\ninsecure = true\n[radio]\nbroadcast = \"127.255.255.255\"\n[autopilot]\n";

fn main() -> Result<()> {
    // The daemon's own runtime is this one, as in `wingbeatd`.
    tokio::runtime::Runtime::new()?.block_on(daemon())
}

async fn daemon() -> Result<()> {
    // The pseudo-terminal is made inside the peer's runtime, which drives its end.
    let (sender, device) = std::sync::mpsc::channel();
    let peer = thread::spawn(move || {
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(peer(&sender))
    });
    let text = format!("{CONFIG}endpoint = \"serial:{}:921600\"\n", device.recv()?);
    let mut settings =
        config::read_with(&config::Layers::of("latency", &text), &|_| Err("none asked for".into()))?;
    // The aircraft is this program's, and ends with it.
    settings.daemon.guard = None;
    settings.daemon.agent.companion_loss = CompanionLoss::EndsWithIt;
    settings.radio.port = std::net::UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
    let radio = UdpBroadcast::spawn(settings.radio);
    let daemon = wingbeat_onboard::start(settings.daemon, Clock::real_time(), radio).await?;

    let mut status = daemon.status();
    let ready = status.wait_for(|status| {
        let mut checks = status.checks.iter().filter(|check| check.name != "swarm");
        checks.all(|check| check.passed || !check.is_required)
    });
    let is_ready = timeout(PATIENCE, ready).await.is_ok();
    if !is_ready {
        return Err(format!("never ready: {:?}", daemon.status().borrow().checks).into());
    }
    let mission = r#"{"name": "line", "waypoints": [
        {"latitude_deg": 39.4826, "longitude_deg": -0.3463, "height_m": 20},
        {"latitude_deg": 39.4836, "longitude_deg": -0.3463, "height_m": 20}]}"#;
    ask(daemon.address(), "PUT", wingbeat_api::paths::MISSION, mission).await?;
    ask(daemon.address(), "POST", wingbeat_api::paths::COMMANDS, r#"{"id": "1", "command": "setup"}"#)
        .await?;

    let peer = tokio::task::spawn_blocking(move || peer.join());
    let mut latencies = peer.await?.map_err(|_| "the peer panicked")??;
    daemon.stop().await;
    latencies.sort();
    let at = |percent: usize| latencies[(latencies.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    println!(
        "latency: {} rounds, p50 {:.3} ms, p95 {:.3} ms, p99 {:.3} ms, max {:.3} ms",
        latencies.len(),
        at(50),
        at(95),
        at(99),
        at(100)
    );
    Ok(())
}

/// One request that must be taken.
async fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> Result<()> {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = vec![];
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    if answer.split(' ').nth(1).is_some_and(|code| code.starts_with('2')) {
        Ok(())
    } else {
        Err(answer.into())
    }
}

/// The autopilot: telemetry until the upload begins, then one request after the other.
struct Peer {
    far: SerialStream,
    decoder: Decoder,
    sequence: u8,
    time_ms: u32,
}

async fn peer(device: &std::sync::mpsc::Sender<String>) -> Result<Vec<Duration>> {
    let (far, near) = SerialStream::pair()?;
    device.send(near.name().ok_or("the pseudo-terminal has no name")?)?;
    drop(near);
    let mut peer = Peer { far, decoder: Decoder::default(), sequence: 0, time_ms: 0 };
    let began = Instant::now();
    let mut items = loop {
        if began.elapsed() > PATIENCE {
            return Err("the upload never began".into());
        }
        peer.telemetry().await?;
        let received = peer.receive(Duration::from_millis(50)).await?;
        let count = received.iter().find_map(|message| match message {
            MavMessage::MISSION_COUNT(count) => Some(count.count),
            _ => None,
        });
        if let Some(count) = count {
            break (0..count).cycle();
        }
    };
    let began = Instant::now();
    let mut latencies = Vec::with_capacity(ROUNDS);
    let mut pause_us = 0;
    while latencies.len() < ROUNDS {
        if began.elapsed() > PATIENCE {
            return Err(format!("{} rounds in {PATIENCE:?}, expected {ROUNDS}", latencies.len()).into());
        }
        // A step that shares no factor with the longest pause visits them all.
        pause_us = (pause_us + 1_231) % PAUSE_MAX_US;
        sleep(Duration::from_micros(pause_us)).await;
        if latencies.len() % 50 == 0 {
            peer.telemetry().await?;
        }
        let seq = items.next().unwrap_or_default();
        let asked = Instant::now();
        peer.send(&MavMessage::MISSION_REQUEST_INT(MISSION_REQUEST_INT_DATA {
            seq,
            target_system: 1,
            target_component: COMPONENT_ID,
            ..MISSION_REQUEST_INT_DATA::default()
        }))
        .await?;
        let is_answer =
            |message: &MavMessage| matches!(message, MavMessage::MISSION_ITEM_INT(item) if item.seq == seq);
        while !peer.receive(Duration::from_secs(5)).await?.iter().any(is_answer) {
            if asked.elapsed() > Duration::from_secs(5) {
                return Err(format!("item {seq} was asked for and never came").into());
            }
        }
        latencies.push(asked.elapsed());
    }
    Ok(latencies)
}

impl Peer {
    async fn send(&mut self, message: &MavMessage) -> Result<()> {
        let header = MavHeader { system_id: 1, component_id: 1, sequence: self.sequence };
        self.sequence = self.sequence.wrapping_add(1);
        let mut frame = heapless::Vec::<u8, FRAME_LEN_MAX>::new();
        encode_v2(header, message, &mut frame)?;
        Ok(self.far.write_all(&frame).await?)
    }

    /// What came in the next read, nothing if it takes longer.
    async fn receive(&mut self, patience: Duration) -> Result<Vec<MavMessage>> {
        let mut buffer = [0; 2_048];
        let mut received = vec![];
        match timeout(patience, self.far.read(&mut buffer)).await {
            Ok(Ok(length)) => self.decoder.push(&buffer[..length], |frame| received.push(frame.message)),
            // Nobody has the line open yet.
            Ok(Err(_)) => sleep(Duration::from_millis(10)).await,
            Err(_) => {}
        }
        Ok(received)
    }

    /// All that preflight wants to see.
    async fn telemetry(&mut self) -> Result<()> {
        self.time_ms += 250;
        for message in [
            MavMessage::HEARTBEAT(HEARTBEAT_DATA {
                mavtype: MavType::MAV_TYPE_QUADROTOR,
                autopilot: MavAutopilot::MAV_AUTOPILOT_ARDUPILOTMEGA,
                base_mode: MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED,
                ..HEARTBEAT_DATA::default()
            }),
            MavMessage::GLOBAL_POSITION_INT(GLOBAL_POSITION_INT_DATA {
                time_boot_ms: self.time_ms,
                lat: 394_824_000,
                lon: -3_464_000,
                alt: 10_000,
                ..GLOBAL_POSITION_INT_DATA::default()
            }),
            MavMessage::SYS_STATUS(SYS_STATUS_DATA {
                voltage_battery: 12_600,
                battery_remaining: 100,
                ..SYS_STATUS_DATA::default()
            }),
            MavMessage::GPS_RAW_INT(GPS_RAW_INT_DATA {
                fix_type: GpsFixType::GPS_FIX_TYPE_3D_FIX,
                satellites_visible: 10,
                ..GPS_RAW_INT_DATA::default()
            }),
            MavMessage::EKF_STATUS_REPORT(EKF_STATUS_REPORT_DATA {
                flags: EkfStatusFlags::EKF_POS_HORIZ_ABS,
                ..EKF_STATUS_REPORT_DATA::default()
            }),
        ] {
            self.send(&message).await?;
        }
        Ok(())
    }
}
