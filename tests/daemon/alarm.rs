//! How long a failsafe takes from the flight controller to the operator's screen: a real daemon and a real ground service
//! in real time, a simulated ArduCopter 4.6.2 that loses its transmitter, and the event stream that the page reads.
//!
//! Measured from the change of the flight controller's mode until the console's stream shows the failsafe. The operator
//! takes the aircraft back with *Hold*, and it is lost again: forty times, at every phase of the heartbeat.
//!
//! `cargo bench --package wingbeat-daemon-tests --bench alarm`, which `cargo xtask bench` runs.
#![allow(clippy::disallowed_methods, reason = "latency is measured")]

#[path = "common/config.rs"]
mod config;

use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use config::{config, tcp};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use wingbeat_api::{Command, FleetCommandRequest, Phase, paths};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::Position;
use wingbeat_hub::{Hub, serve};
use wingbeat_onboard::Clock;
use wingbeat_protocol::muscop;
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::flight_controller::{Config, FlightController};
use wingbeat_sim::motion::Profile;
use wingbeat_wire::VehicleId;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: u32 = 40;
/// Nothing here takes so long on a machine that works.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two rounds: each begins at another phase of the heartbeat, which comes once a second.
const PAUSE: Duration = Duration::from_millis(1_370);
const ID: VehicleId = VehicleId(0xa1);

fn main() -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure())
}

/// The aircraft's mode with the time since when, as it is in truth.
type Shown = (Mode, Instant);

/// A flight controller that loses its transmitter when it is told to.
async fn flight_controller(
    mut is_lost: watch::Receiver<bool>,
) -> Result<(SocketAddr, watch::Receiver<Shown>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let clock = Clock::real_time();
    let home = Position::from_degrees(39.4824, -0.3464, 10.0).map_err(|why| format!("{why:?}"))?;
    let config = Config { profile: Profile::Copter462, ..Config::new(1, home) };
    let fc = FlightController::new(config, 7, clock.now());
    let (sender, mode) = watch::channel((fc.truth().mode, Instant::now()));
    tokio::spawn(serve::flight_controller(listener, fc, clock, move |fc| {
        if is_lost.has_changed().unwrap_or(false) {
            fc.lose_transmitter(*is_lost.borrow_and_update());
        }
        let mode = fc.truth().mode;
        sender.send_if_modified(|shown| {
            let is_new = shown.0 != mode;
            if is_new {
                *shown = (mode, Instant::now());
            }
            is_new
        });
    }));
    Ok((address, mode))
}

async fn measure() -> Result<()> {
    let (transmitter, is_lost) = watch::channel(false);
    let (autopilot, mut mode) = flight_controller(is_lost).await?;
    let clock = Clock::real_time();
    let (_hub, mut radios) = Hub::spawn(Channel::new(Model::Unrestricted, Draw::PerPacket, 1, 1), 1, clock);
    let agent = wingbeat_agent::Config::new(muscop::Config::new(ID, ID, 1));
    let config = config(agent, tcp(autopilot));
    let daemon = wingbeat_onboard::start(config, clock, radios.remove(0)).await?;
    let ground = wingbeat_ground::Ground::start(wingbeat_ground::Config {
        bind: ([127, 0, 0, 1], 0).into(),
        aircraft: vec![daemon.address().to_string()],
        web_dir: None,
        tiles: None,
        parameters: None,
        records: None,
        hosts: wingbeat_ground::Hosts::default(),
        console: None,
        protection: Default::default(),
    })
    .await?;
    let screen = screen(ground.address()).await?;
    let mut status = daemon.status();
    let is_ready = |s: &wingbeat_api::AircraftStatus| {
        s.checks.iter().all(|check| check.passed || !check.is_required || check.name == "swarm")
    };
    within("the checks to pass", status.wait_for(|s| is_ready(s))).await?;
    let mission = r#"{"name": "hover", "waypoints": [
        {"latitude_deg": 39.4824, "longitude_deg": -0.3464, "height_m": 20},
        {"latitude_deg": 39.4834, "longitude_deg": -0.3464, "height_m": 20}]}"#;
    put_mission(daemon.address(), mission).await?;
    let order = async |id: String, command| {
        let request = FleetCommandRequest { id, command, vehicles: vec![ID.to_string()] };
        ground.command(request).await.map_err(|why| format!("{command:?}: {why:?}"))
    };
    sleep(PAUSE).await;
    order("setup".into(), Command::Setup).await?;
    within("the take-off", status.wait_for(|s| s.phase == Phase::Ready)).await?;

    let mut latencies = vec![];
    for round in 0..ROUNDS {
        sleep(PAUSE).await;
        transmitter.send_replace(true);
        let failed_at = within("the failsafe's RTL", mode.wait_for(|shown| shown.0 == Mode::Rtl)).await?.1;
        let mut shown = screen.clone();
        let shown_at = within("the failsafe on the screen", shown.wait_for(|shown| shown.0)).await?.1;
        latencies.push(shown_at.saturating_duration_since(failed_at));
        transmitter.send_replace(false);
        // Received again, or the failsafe acts against the hold.
        sleep(Duration::from_millis(500)).await;
        order(format!("hold-{round}"), Command::Hold).await?;
        if let Err(why) = within("BRAKE", mode.wait_for(|shown| shown.0 == Mode::Brake)).await {
            let status = daemon.status().borrow().clone();
            let commands = ground.picture().await.map(|picture| picture.commands);
            return Err(format!("{why} in round {round}: {:?}, {commands:?}", status.detail).into());
        }
        within("the hold on the screen", shown.wait_for(|shown| !shown.0)).await?;
    }
    latencies.sort();
    let at = |percent: usize| latencies[(latencies.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    println!("alarm: {ROUNDS} rounds, p50 {:.0} ms, p95 {:.0} ms, max {:.0} ms", at(50), at(95), at(100));
    ground.stop().await;
    daemon.stop().await;
    Ok(())
}

/// What a wait for a value ends with; one that hangs is named.
async fn within<T>(
    what: &str,
    wait: impl Future<Output = std::result::Result<T, watch::error::RecvError>>,
) -> Result<T> {
    let waited =
        timeout(PATIENCE, wait).await.map_err(|_| format!("found nothing for 60 s, expected {what}"))?;
    Ok(waited?)
}

/// What the console shows: whether a failsafe has the aircraft, and since when.
async fn screen(ground: SocketAddr) -> Result<watch::Receiver<(bool, Instant)>> {
    let mut stream = TcpStream::connect(ground).await?;
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {ground}\r\nAccept: text/event-stream\r\n\r\n",
        paths::FLEET_EVENTS
    );
    stream.write_all(request.as_bytes()).await?;
    let (sender, screen) = watch::channel((false, Instant::now()));
    tokio::spawn(async move {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let shown = match (line.contains("\"failsafe\":true"), line.contains("\"failsafe\":false")) {
                (true, _) => true,
                (false, true) => false,
                (false, false) => continue,
            };
            sender.send_if_modified(|before| {
                let is_new = before.0 != shown;
                if is_new {
                    *before = (shown, Instant::now());
                }
                is_new
            });
        }
    });
    Ok(screen)
}

async fn put_mission(daemon: SocketAddr, body: &str) -> Result<()> {
    let mut stream = TcpStream::connect(daemon).await?;
    let (path, length) = (paths::MISSION, body.len());
    let head = format!(
        "PUT {path} HTTP/1.1\r\nHost: {daemon}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    );
    stream.write_all(format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes()).await?;
    let mut answer = BufReader::new(stream).lines();
    let first = answer.next_line().await?.unwrap_or_default();
    if first.contains(" 2") { Ok(()) } else { Err(first.into()) }
}
