//! What is owed to the pilot survives the power of the companion: real processes with a simulated flight controller.

use crate::common::client;
use crate::common::rig;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use client::ask;
use rig::{PATIENCE, Rig, configure, daemon, home, program};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::watch, time::sleep};
use wingbeat_api::{CommandOutcome, paths};
use wingbeat_hub::serve;
use wingbeat_onboard::Clock;
use wingbeat_sim::flight_controller::{Config, FlightController, Parameter};

/// The value of a parameter, and the file of what is owed at the moment at which the flight controller had it.
type Seen = (f64, Option<String>);

async fn holds(seen: &mut watch::Receiver<Seen>, what: &str, is_it: impl Fn(f64) -> bool) -> Option<String> {
    let begun = Instant::now();
    loop {
        let (now, file) = seen.borrow().clone();
        if is_it(now) {
            return file;
        }
        assert!(begun.elapsed() < PATIENCE, "found {now}, expected {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// A folder with the configuration for a flight controller of which this parameter is watched.
async fn watched(parameter: Parameter) -> (TempDir, PathBuf, watch::Receiver<Seen>) {
    let folder = TempDir::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let autopilot = listener.local_addr().unwrap();
    let clock = Clock::real_time();
    let fc = FlightController::new(Config::new(1, home()), 7, clock.now());
    let (sender, seen) = watch::channel((f64::NAN, None));
    let file = folder.path().join("owed-parameters");
    let kept = file.clone();
    tokio::spawn(serve::flight_controller(listener, fc, clock, move |fc| {
        let value = fc.parameter(parameter).unwrap();
        if sender.borrow().0 != value {
            sender.send_replace((value, std::fs::read_to_string(&kept).ok()));
        }
    }));
    configure(folder.path(), &format!("tcp:{autopilot}"));
    (folder, file, seen)
}

async fn is_gone(file: &Path) {
    let since = Instant::now();
    while file.exists() {
        assert!(since.elapsed() < PATIENCE, "nothing is owed any more");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parameter_that_is_overridden_comes_back_after_a_power_cut_of_the_companion() {
    let (folder, file, mut seen) = watched(Parameter::FS_EKF_ACTION).await;
    let mut rig = Rig::of(program(), folder, false).await;
    let ekf = |status: &wingbeat_api::AircraftStatus, passed: bool| {
        status.checks.iter().any(|check| check.name == "EKF failsafe" && check.passed == passed)
    };
    rig.until("parameters read", |status| ekf(status, true)).await;
    // The pilot's value, against which a flight is warned.
    let body = r#"{"parameters":[{"name":"FS_EKF_ACTION","value":2}]}"#;
    let (code, answer) = ask(rig.api, "PUT", paths::PARAMETERS, body).await;
    assert_eq!(code, 202, "{answer}");
    holds(&mut seen, "2", |value| value == 2.0).await;
    rig.until("the check sees it", |status| ekf(status, false)).await;
    let since = Instant::now();
    let reply = loop {
        // What the operator set may be under way still.
        let reply = rig.command_as(&format!("{:?}", since.elapsed()), "set_parameters").await;
        if reply.outcome == CommandOutcome::Accepted || since.elapsed() > PATIENCE {
            break reply;
        }
        sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(reply.outcome, CommandOutcome::Accepted, "{reply:?}");
    let at_that_moment = holds(&mut seen, "1", |value| value == 1.0).await;
    assert_eq!(at_that_moment.as_deref(), Some("FS_EKF_ACTION i 2 1\n"), "on the disk before the frame left");

    rig.daemon.signal("KILL");
    rig.daemon.ended().await;
    assert!(file.exists());
    (rig.daemon, rig.api) = daemon(&rig.folder).await;
    rig.daemon.prints("FS_EKF_ACTION: the pilot's 2 is owed since before the restart").await;
    holds(&mut seen, "2", |value| value == 2.0).await;
    rig.daemon.prints("FS_EKF_ACTION: the pilot's 2 is back").await;
    is_gone(&file).await;
}

/// The speed of AUTO is written while the route is loaded, into a parameter that the flight controller keeps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_speed_of_a_route_comes_back_after_a_power_cut_of_the_companion() {
    let (folder, file, mut seen) = watched(Parameter::WPNAV_SPEED).await;
    let config = folder.path().join("wingbeatd.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let (before, after) = text.split_once("[muscop]").unwrap();
    let (_, after) = after.split_once("[http]").unwrap();
    let text = format!("protocol = \"mission\"\n{before}[mission]\nplanned_speed_m_s = 8.0\n[http]{after}");
    std::fs::write(&config, text).unwrap();
    let mut rig = Rig::of(program(), folder, true).await;
    holds(&mut seen, "the pilot's", |value| value == 500.0).await;
    rig.set_up(home()).await;
    let at_that_moment = holds(&mut seen, "800", |value| value == 800.0).await;
    assert_eq!(at_that_moment.as_deref(), Some("WPNAV_SPEED r 500 -\n"), "on the disk before the frame left");

    rig.daemon.signal("KILL");
    rig.daemon.ended().await;
    assert!(file.exists());
    (rig.daemon, rig.api) = daemon(&rig.folder).await;
    rig.daemon.prints("WPNAV_SPEED: the pilot's 500 is owed since before the restart").await;
    holds(&mut seen, "500", |value| value == 500.0).await;
    rig.daemon.prints("the pilot's WPNAV_SPEED 500 restored").await;
    is_gone(&file).await;
}
