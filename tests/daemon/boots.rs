//! Starts in poor circumstances, with the real program: a full and a read-only disk, a corrupt configuration, no radio and
//! no flight controller. It says what is wrong, and flies where it can.

use crate::common::rig;

use std::process::Command;

use rig::{PATIENCE, Rig, aircraft, configure, daemon, home, program};
use tempfile::TempDir;
use tokio::{net::TcpListener, time::timeout};
use wingbeat_api::{AircraftStatus, CommandOutcome, LinkState};
use wingbeat_autopilot::copter::Mode;
use wingbeat_hub::serve;
use wingbeat_onboard::Clock;
use wingbeat_sim::flight_controller::{Config, FlightController};

/// A small disk of its own for the state, which is filled or made read-only before the daemon starts: `$0` is its folder,
/// `$1` what is done to it, then the program with its configuration, and the state directory that it is not given.
const ON_A_DISK: &str = r#"
    mount -t tmpfs -o size=64k wingbeat "$0" || exit 3
    case $1 in
        full) dd if=/dev/zero of="$0/fill" bs=4k 2>/dev/null; true;;
        read-only) mount -o remount,ro "$0" || exit 3;;
    esac
    exec "$2" "$3" "$4" --state "$0"
"#;

fn on_a_disk(kind: &str, folder: &TempDir) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", ON_A_DISK])
        .arg(folder.path())
        .arg(kind)
        .arg(program().get_program());
    command
}

/// Why no disk can be mounted here, if so.
fn missing() -> Option<&'static str> {
    let folder = TempDir::new().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "mount", "-t", "tmpfs", "wingbeat"]).arg(folder.path());
    match command.output() {
        Ok(output) if output.status.success() => None,
        Ok(_) => Some("no file system may be mounted here"),
        Err(_) => Some("no unshare here"),
    }
}

/// On a disk like this, of which it says so, and so of the flight log.
async fn flies_on(kind: &'static str, found: &'static str, of_log: &'static str) {
    let disk = TempDir::new().unwrap();
    let mut aircraft = aircraft().await;
    let rig = Rig::with(on_a_disk(kind, &disk), aircraft.address, true).await;
    let state = disk.path().display();
    for what in [
        format!("{state}: found {found}"),
        "expected to keep there that a pilot has the aircraft; a restart of the daemon forgets it".to_owned(),
        format!("{state}/datagram-counter: found {found}"),
        "expected to keep the configuration there for the next start".to_owned(),
        of_log.to_owned(),
    ] {
        rig.daemon.prints(&what).await;
    }
    rig.until("without a log", |s| s.log.problem.as_ref().is_some_and(|problem| problem.contains(of_log)))
        .await;
    rig.cruising(home()).await;
    let reply = rig.command("land").await;
    assert_eq!(reply.outcome, CommandOutcome::Accepted, "{kind}: {reply:?}");
    let down = timeout(PATIENCE, aircraft.truth.wait_for(|truth| !truth.armed)).await;
    let down = *down.unwrap_or_else(|_| panic!("{kind}: never down")).unwrap();
    assert!(down.landed && down.mode == Mode::Land, "{kind}: {down:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_full_or_a_read_only_disk_it_says_so_and_flies() {
    if let Some(what) = missing() {
        println!("skipped: {what}");
        return;
    }
    let full = tokio::spawn(flies_on("full", "No space left on device", "MiB free on its disk"));
    flies_on("read-only", "Read-only file system", "/log: found Read-only file system").await;
    full.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_corrupt_configuration_it_starts_with_the_last_good_one_and_is_not_set_up() {
    let aircraft = aircraft().await;
    let mut rig = Rig::new(aircraft.address, true).await;
    let path = rig.folder.path().join("wingbeatd.toml");
    let good = std::fs::read_to_string(&path).unwrap();
    let fails =
        |s: &AircraftStatus| s.checks.iter().any(|check| check.name == "configuration" && !check.passed);
    let is_up = |s: &AircraftStatus| s.flight_controller.link == LinkState::Up;
    rig.until("connected", is_up).await;
    // Zeros, as a power cut may leave; half of it; and rubbish.
    for text in ["\0".repeat(good.len()), good[..good.len() / 2].to_owned(), "id = [\u{fffd}".to_owned()] {
        rig.daemon.signal("KILL");
        rig.daemon.ended().await;
        std::fs::write(&path, text).unwrap();
        (rig.daemon, rig.api) = daemon(&rig.folder).await;
        rig.daemon.prints("the configuration that was last used is used again").await;
        rig.daemon.prints("wingbeatd.toml").await;
        let status = rig.until("connected", is_up).await;
        assert!(fails(&status), "{status:?}");
        let reply = rig.command("setup").await;
        assert_eq!(reply.outcome, CommandOutcome::Refused, "{reply:?}");
    }
    // Mended, and started again.
    rig.daemon.signal("KILL");
    rig.daemon.ended().await;
    std::fs::write(&path, good).unwrap();
    (rig.daemon, rig.api) = daemon(&rig.folder).await;
    let status = rig.until("connected", is_up).await;
    assert!(!fails(&status), "{status:?}");
    rig.set_up(home()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_radio_or_flight_controller_it_waits_for_both() {
    let folder = TempDir::new().unwrap();
    // Its port is taken, and nothing listens there yet.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    configure(folder.path(), &format!("tcp:{address}"));
    let mut command = program();
    command.env("WINGBEAT_RADIO__INTERFACE", "wingbeat9");
    let rig = Rig::of(command, folder, false).await;
    rig.daemon.prints("found no such interface").await;
    rig.daemon.prints(&format!("autopilot tcp:{address}: found")).await;
    let status = rig.until("without both", |s| s.radio.down.is_some()).await;
    assert_ne!(status.flight_controller.link, LinkState::Up, "{status:?}");
    let reply = rig.command("setup").await;
    assert_eq!(reply.outcome, CommandOutcome::Refused, "{reply:?}");

    // The flight controller boots later.
    let listener: TcpListener = socket.listen(1).unwrap();
    let clock = Clock::real_time();
    let controller = FlightController::new(Config::new(1, home()), 7, clock.now());
    tokio::spawn(serve::flight_controller(listener, controller, clock, |_| ()));
    let status = rig.until("connected", |s| s.flight_controller.link == LinkState::Up).await;
    assert!(status.radio.down.is_some(), "{status:?}");
}
