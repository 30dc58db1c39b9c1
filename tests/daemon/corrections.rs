//! Corrections of satellite navigation: a base station on TCP, the ground service, two daemons with keys on real sockets, and their
//! simulated flight controllers, whose receivers need them.

use crate::common::aircraft;
use crate::common::config;

use std::time::Duration;

use aircraft::{home, until};
use config::config;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use wingbeat_api::{AircraftStatus, BaseStation, FleetCommandRequest, VehicleOutcome};
use wingbeat_geo::Instant;
use wingbeat_ground::{ConsoleConfig, Ground};
use wingbeat_hub::serve;
use wingbeat_link::Endpoint;
use wingbeat_onboard::keys::{ConsoleKeys, Keys as OwnKeys};
use wingbeat_onboard::{Clock, Config, Handle, start};
use wingbeat_protocol::muscop;
use wingbeat_radio::{Destination, UdpBroadcast, UdpConfig};
use wingbeat_sim::flight_controller::{self, FlightController};
use wingbeat_sim::keys::{CONSOLE, Keys, Signatures};
use wingbeat_wire::{Command, Role, Signer, VehicleId, rtcm_frame};

const IDS: [VehicleId; 2] = [VehicleId(0xa1), VehicleId(0xa2)];
/// Longer than anything here takes on a loaded machine: what misses it hangs.
const PATIENCE: Duration = Duration::from_secs(120);

fn fleet_keys() -> Keys {
    Keys::new(Signatures::Ed25519, 1, IDS).unwrap()
}

fn keys_of(signer: &Signer) -> OwnKeys {
    OwnKeys { signer: signer.clone(), roster: Box::new(fleet_keys().roster().clone()) }
}

/// Two daemons with flight controllers whose receivers need corrections, and the console's radio; these broadcast on loopback.
async fn two(clock: Clock) -> (Vec<Handle>, UdpBroadcast) {
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let destination = Destination::Broadcast([127, 255, 255, 255].into());
    let radio = || UdpBroadcast::spawn(UdpConfig { interface: None, port, destination });
    let mut daemons = vec![];
    for (i, id) in IDS.into_iter().enumerate() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut controller = flight_controller::Config::new(i as u8 + 1, home());
        controller.needs_corrections = true;
        let controller = FlightController::new(controller, 7, Instant::ZERO);
        tokio::spawn(serve::flight_controller(listener, controller, clock, |_| {}));
        let agent = wingbeat_agent::Config::new(muscop::Config::new(id, IDS[0], 2));
        let autopilot = Endpoint::TcpClient { host: "127.0.0.1".into(), port };
        let keys = keys_of(fleet_keys().signer(i));
        let config = Config { name: format!("uav-{i}"), keys, ..config(agent, autopilot) };
        daemons.push(start(config, clock, radio()).await.unwrap());
    }
    (daemons, radio())
}

/// What the base station sends to its clients, over and over.
#[derive(Clone)]
struct Sends {
    bytes: Vec<u8>,
    every: Duration,
}

/// A base station on TCP: what it sends can be changed.
async fn base_station(sends: watch::Receiver<Sends>) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            loop {
                let Sends { bytes, every } = sends.borrow().clone();
                if client.write_all(&bytes).await.is_err() {
                    break;
                }
                sleep(every).await;
            }
        }
    });
    Endpoint::TcpClient { host: "127.0.0.1".into(), port }
}

/// A second's frames of a base station with two systems, with noise and a damaged frame between them.
fn second() -> Vec<u8> {
    let mut bytes = vec![];
    for length in [19, 190, 400] {
        bytes.extend_from_slice(&rtcm_frame(&vec![length as u8; length]).unwrap().frame);
    }
    let mut damaged = rtcm_frame(&[1; 40]).unwrap().frame;
    damaged[20] ^= 4;
    bytes.extend_from_slice(&damaged);
    bytes.extend_from_slice(b"$GNGGA\r\n");
    bytes
}

fn fix(status: &AircraftStatus) -> u8 {
    status.measurements.gnss.map_or(0, |gnss| gnss.fix_type)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corrections_of_a_base_station_give_two_aircraft_an_rtk_fix_and_hold_up_no_emergency() {
    let clock = Clock::real_time();
    let (daemons, radio) = two(clock).await;
    for daemon in &daemons {
        until(daemon, "an ordinary fix", |status| fix(status) == 3).await;
    }
    let (change, sends) = watch::channel(Sends { bytes: second(), every: Duration::from_secs(1) });
    let source = base_station(sends).await;
    let keys = ConsoleKeys { id: CONSOLE, role: Role::Operator, keys: keys_of(fleet_keys().console()) };
    let config = wingbeat_ground::Config {
        bind: ([127, 0, 0, 1], 0).into(),
        aircraft: daemons.iter().map(|daemon| daemon.address().to_string()).collect(),
        web_dir: None,
        tiles: None,
        parameters: None,
        records: None,
        hosts: wingbeat_ground::Hosts::default(),
        console: Some(ConsoleConfig { keys, clock, state: None, rtcm: Some(source.clone()) }),
        protection: Default::default(),
    };
    let refused = Ground::start(config.clone()).await.unwrap_err().to_string();
    assert_eq!(refused, "base station: found no radio, expected one: corrections are broadcast");
    let ground = Ground::start_with(config, Some(radio)).await.unwrap();
    let base = async |what: &str, holds: &dyn Fn(&BaseStation) -> bool| {
        let wait = async {
            loop {
                let base = ground.picture().await.unwrap().corrections.unwrap();
                if holds(&base) {
                    return base;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never: {what}"))
    };

    for daemon in &daemons {
        until(daemon, "RTK float", |status| fix(status) == 5).await;
    }
    for daemon in &daemons {
        let status = until(daemon, "RTK fixed", |status| fix(status) == 6).await;
        let shown = status.measurements.corrections.clone().unwrap();
        assert_eq!(shown.console, Some(CONSOLE.to_string()));
        assert!(shown.frames >= 3 && shown.age_ms.unwrap() < 10_000 && shown.bytes_s > 0, "{shown:?}");
        assert!(shown.refused.is_empty(), "{shown:?}");
    }
    let counts = |base: &BaseStation, reason: &str| base.refused.iter().any(|r| r.reason == reason);
    let shown =
        base("what is no frame is counted", &|base| counts(base, "damaged") && counts(base, "garbage_bytes"))
            .await;
    assert_eq!((shown.source.as_str(), shown.problem), (source.to_string().as_str(), None));
    // Each frame leaves once, whatever the number of aircraft, and each takes it once: none is a recording.
    let statuses = daemons.iter().map(|daemon| daemon.status().borrow().clone());
    let statuses: Vec<_> = statuses.collect();
    let sent = ground.picture().await.unwrap().corrections.unwrap().frames;
    for status in statuses {
        let received = status.measurements.corrections.as_ref().unwrap().frames;
        assert!(received <= sent, "{received} of {sent}");
        assert!(!status.radio.refused.iter().any(|r| r.reason == "replayed"), "{:?}", status.radio);
    }

    // Ten times twenty frames of the longest kind a second, so that also a slow machine is over the budget: most are refused, and
    // an emergency order by radio is carried out all the same.
    let longest = rtcm_frame(&[7; 714]).unwrap().frame.repeat(10);
    change.send_replace(Sends { bytes: longest, every: Duration::from_millis(50) });
    base("over its budget", &|base| counts(base, "over_budget_corrections")).await;
    let request =
        FleetCommandRequest { id: "r".into(), command: Command::RecoverControl, vehicles: Vec::new() };
    ground.command(request).await.unwrap();
    let carried_out = async {
        loop {
            let commands = ground.picture().await.unwrap().commands;
            let is_done = |r: &wingbeat_api::FleetCommandResult| r.outcome == VehicleOutcome::EffectSeen;
            if commands.iter().any(|c| c.results.len() == 2 && c.results.iter().all(is_done)) {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, carried_out).await.expect("recover control");
    for daemon in &daemons {
        until(daemon, "the flight controller's line is not filled", |status| {
            let shown = status.measurements.corrections.as_ref().unwrap();
            shown.refused.iter().any(|r| r.reason == "too_many")
        })
        .await;
    }

    // It falls silent: the fix is an ordinary one again.
    change.send_replace(Sends { bytes: vec![], every: Duration::from_millis(50) });
    for daemon in &daemons {
        until(daemon, "an ordinary fix again", |status| fix(status) == 3).await;
    }
    drop(ground);
    for daemon in daemons {
        daemon.stop().await;
    }
}
