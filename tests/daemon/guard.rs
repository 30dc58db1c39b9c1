//! Companion death with real processes: `wingbeatd`, `wingbeat-guard`, and a simulated flight controller
//! behind TCP, in real time. `-- --nocapture` prints what happened when.
//!
//! The last test flies ArduPilot's SITL: `WINGBEAT_SITL` is the path of its program, and `copter.parm` stands
//! connected.
#![allow(deprecated, reason = "ArduCopter 3.5.7 uses messages that MAVLink has superseded since")]

use crate::common::client;
use crate::common::rig;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use client::ask;
use rig::{HOLD_S, PATIENCE, Rig, aircraft, daemon, guard, home};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::watch,
    time::{sleep, timeout},
};
use wingbeat_agent::guardian::{self, Activity, Beat, Modes, Pulse};
use wingbeat_api::{AircraftStatus, CommandOutcome, StateId, paths};
use wingbeat_autopilot::codec::{Decoder, MavHeader, encode_v2};
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{
    MavDataStream, MavMessage, MavModeFlag, REQUEST_DATA_STREAM_DATA, SET_MODE_DATA,
};
use wingbeat_geo::{DVec3, Frame, Position};
use wingbeat_sim::flight_controller::{Config, FlightController, Truth};

/// ArduPilot's SITL, and what a second port of its shows.
struct Sitl {
    shell: Child,
    _folder: TempDir,
    autopilot: SocketAddr,
    truth: watch::Receiver<Truth>,
    pilot: watch::Sender<Option<Mode>>,
}

/// SITL's instance: ports 5760 + 10 N. Others on this machine take other numbers.
const SITL_INSTANCE: u16 = 30;

async fn sitl(program: &Path) -> Sitl {
    use std::os::unix::process::CommandExt as _;
    let folder = TempDir::new().unwrap();
    let parameters = program.with_file_name("copter.parm");
    assert!(parameters.exists(), "{}: found nothing, expected SITL's parameters", parameters.display());
    let (ports, place) = (5760 + 10 * SITL_INSTANCE, home());
    let shell = Command::new("sh")
        // It stays the program's parent, and both are one group.
        .args(["-c", r#""$@"; exit $?"#, "sh"])
        .arg(program)
        .args(["-S", "-I", &SITL_INSTANCE.to_string(), "--disable-fgview", "--uartA", "tcp:0", "--home"])
        .arg(format!("{},{},{},0", place.latitude_deg(), place.longitude_deg(), place.altitude_m()))
        .args(["--model", "quad", "--speedup", "1", "--defaults"])
        .arg(parameters)
        .current_dir(folder.path())
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let autopilot = SocketAddr::from(([127, 0, 0, 1], ports));
    let fc = FlightController::new(Config::new(1, place), 7, wingbeat_geo::Instant::ZERO);
    let (truth_sender, truth) = watch::channel(fc.truth());
    let (pilot, switch) = watch::channel(None);
    tokio::spawn(observe(SocketAddr::from(([127, 0, 0, 1], ports + 2)), truth_sender, switch));
    Sitl { shell, _folder: folder, autopilot, truth, pilot }
}

impl Drop for Sitl {
    fn drop(&mut self) {
        // The shell and the program: its group.
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", self.shell.id())]).status();
        let _ = self.shell.wait();
    }
}

/// Reads a port of SITL's that the daemon does not use, and is its pilot's mode switch. The mode is as fresh
/// as its heartbeat.
async fn observe(
    address: SocketAddr,
    truth_sender: watch::Sender<Truth>,
    mut switch: watch::Receiver<Option<Mode>>,
) {
    let stream = loop {
        match TcpStream::connect(address).await {
            Ok(stream) => break stream,
            Err(_) => sleep(Duration::from_millis(200)).await,
        }
    };
    let (mut reader, mut writer) = stream.into_split();
    let (mut decoder, mut buffer, mut asked) = (Decoder::default(), [0; 4096], None::<Instant>);
    let frame = Frame::new(home());
    while let Ok(length @ 1..) = reader.read(&mut buffer).await {
        decoder.push(&buffer[..length], |received| {
            truth_sender.send_if_modified(|truth| {
                match &received.message {
                    MavMessage::HEARTBEAT(m) if received.header.component_id == 1 => {
                        truth.mode = Mode::from_number(m.custom_mode).unwrap_or(truth.mode);
                        truth.armed = m.base_mode.contains(MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED);
                    }
                    MavMessage::GLOBAL_POSITION_INT(m) => {
                        truth.position =
                            Position { latitude_e7: m.lat, longitude_e7: m.lon, altitude_mm: m.alt };
                        truth.local = frame.to_local(truth.position);
                        truth.velocity =
                            DVec3::new(f64::from(m.vy), f64::from(m.vx), -f64::from(m.vz)) * 1e-2;
                        truth.landed = f64::from(m.relative_alt) < 500.0;
                    }
                    _ => return false,
                }
                true
            });
        });
        let mut bytes = heapless::Vec::<u8, 128>::new();
        let header = MavHeader { system_id: 255, component_id: 190, sequence: 0 };
        if asked.is_none_or(|at| at.elapsed() > Duration::from_secs(2)) {
            asked = Some(Instant::now());
            let request = MavMessage::REQUEST_DATA_STREAM(REQUEST_DATA_STREAM_DATA {
                req_message_rate: 20,
                target_system: 1,
                target_component: 1,
                req_stream_id: MavDataStream::MAV_DATA_STREAM_POSITION,
                start_stop: 1,
            });
            encode_v2(header, &request, &mut bytes).unwrap();
        }
        if let (Ok(true), Some(mode)) = (switch.has_changed(), *switch.borrow_and_update()) {
            let switched = MavMessage::SET_MODE(SET_MODE_DATA {
                custom_mode: mode.number(),
                target_system: 1,
                base_mode: MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED,
            });
            encode_v2(header, &switched, &mut bytes).unwrap();
        }
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

fn check<'a>(status: &'a AircraftStatus, name: &str) -> &'a wingbeat_api::Check {
    status.checks.iter().find(|check| check.name == name).unwrap()
}

/// Follows the truth after a death and prints when what happened.
async fn observe_landing(what: &str, truth: &mut watch::Receiver<Truth>, died: Instant) {
    let mut times = String::new();
    let mut note = |name: &str| times += &format!(", {name} {:.2} s", died.elapsed().as_secs_f64());
    let mut until = async |wanted: &dyn Fn(&Truth) -> bool, name: &str| {
        let truth = timeout(PATIENCE, truth.wait_for(|truth| wanted(truth))).await;
        let truth = *truth.unwrap_or_else(|_| panic!("{what}: never {name}")).unwrap();
        note(name);
        truth
    };
    let braking = until(&|t| t.mode == Mode::Brake, "BRAKE").await;
    until(&|t| t.velocity.length() < 0.5, "at rest").await;
    let at_rest = died.elapsed();
    until(&|t| t.mode == Mode::Land, "LAND").await;
    let down = until(&|t| !t.armed, "disarmed").await;
    println!("{what}: death{times}");
    assert!(at_rest < Duration::from_secs(8), "{what}: at rest after {at_rest:?}");
    assert!((down.local - braking.local).truncate().length() < 20.0, "{what}: {down:?}");
    assert!(down.landed && down.touchdown_m_s < 1.0, "{what}: {down:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_guided_flight_the_aircraft_stops_and_lands_and_the_next_daemon_waits() {
    let mut aircraft = aircraft().await;
    let mut rig = Rig::new(aircraft.address, true).await;
    rig.cruising(home()).await;
    rig.daemon.signal("KILL");
    let died = Instant::now();
    rig.guard().prints("taking over the flight controller").await;

    // Started again immediately, as systemd would: the autopilot is not its own yet, and it gives the reason. Without the record of
    // the flight it is given nothing back.
    std::fs::remove_file(rig.folder.path().join("flight.json")).unwrap();
    (rig.daemon, rig.api) = daemon(&rig.folder).await;
    let status = rig
        .until("informed that the guardian holds", |s| {
            check(s, "companion loss").detail.contains("the guardian has the flight controller")
        })
        .await;
    assert!(!check(&status, "companion loss").passed, "{status:?}");
    assert!(
        !rig.daemon.output().contains("the port to the flight controller opened"),
        "{}",
        rig.daemon.output()
    );
    observe_landing("kill -9 in guided flight", &mut aircraft.truth, died).await;
    let output = rig.daemon.prints("the port to the flight controller opened").await;
    assert!(output.contains("the guardian has the flight controller (the daemon ended)"), "{output}");
    rig.until("protected again", |s| check(s, "companion loss").passed && !s.flight_controller.armed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_during_take_off_the_aircraft_stops_and_lands() {
    let mut aircraft = aircraft().await;
    let rig = Rig::new(aircraft.address, true).await;
    rig.set_up(home()).await;
    rig.until("climbing", |s| s.navigation.as_ref().is_some_and(|n| n.height_m > 1.0)).await;
    rig.daemon.signal("KILL");
    observe_landing("kill -9 during take-off", &mut aircraft.truth, Instant::now()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_hangs_is_killed_and_succeeded() {
    let mut aircraft = aircraft().await;
    let mut rig = Rig::new(aircraft.address, true).await;
    rig.cruising(home()).await;
    rig.daemon.signal("STOP");
    let died = Instant::now();
    rig.guard().prints("ending the daemon by force").await;
    observe_landing("SIGSTOP in guided flight", &mut aircraft.truth, died).await;
    let status = rig.daemon.child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_in_flight_it_leaves_the_aircraft_to_the_guardian() {
    let mut aircraft = aircraft().await;
    let mut rig = Rig::new(aircraft.address, true).await;
    rig.cruising(home()).await;
    rig.daemon.signal("TERM");
    observe_landing("SIGTERM in guided flight", &mut aircraft.truth, Instant::now()).await;
    assert_eq!(rig.daemon.child.wait().unwrap().code(), Some(0));
    assert!(rig.daemon.output().contains("the guardian takes the aircraft"), "{}", rig.daemon.output());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guardian_that_dies_is_noticed_and_without_one_a_stop_asks_for_land() {
    let mut aircraft = aircraft().await;
    let mut rig = Rig::new(aircraft.address, true).await;
    rig.cruising(home()).await;
    rig.guard().signal("KILL");
    let died = Instant::now();
    rig.until("unprotected", |s| !check(s, "companion loss").passed).await;
    println!("kill -9 of the guardian: shown after {:.2} s", died.elapsed().as_secs_f64());
    assert!(died.elapsed() < Duration::from_secs(2));
    // It comes back, and is found again; then it hangs.
    rig.guard = Some(guard(&rig.folder));
    rig.until("protected again", |s| check(s, "companion loss").passed).await;
    rig.guard().signal("STOP");
    let hung = Instant::now();
    rig.until("unprotected again", |s| !check(s, "companion loss").passed).await;
    println!("SIGSTOP of the guardian: shown after {:.2} s", hung.elapsed().as_secs_f64());
    assert!(hung.elapsed() < Duration::from_millis(2_600));

    rig.daemon.signal("TERM");
    let status = rig.daemon.child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(rig.daemon.output().contains("the aircraft is landing"), "{}", rig.daemon.output());
    assert_eq!(aircraft.truth.borrow_and_update().mode, Mode::Land);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pilot_who_takes_over_after_the_death_keeps_the_aircraft() {
    let mut aircraft = aircraft().await;
    let rig = Rig::new(aircraft.address, true).await;
    rig.cruising(home()).await;
    rig.daemon.signal("KILL");
    timeout(PATIENCE, aircraft.truth.wait_for(|t| t.mode == Mode::Brake)).await.unwrap().unwrap();
    aircraft.pilot.send_replace(Some(Mode::AltHold));
    let output = rig.guard().prints("released the flight controller").await;
    // By the heartbeat or by the switch, whichever is received first.
    let seen = ["the pilot's or a failsafe's", "the pilot moved the mode switch"];
    assert!(seen.iter().any(|line| output.contains(line)), "{output}");
    // The hold would be over now.
    let later = Instant::now();
    while later.elapsed() < Duration::from_secs(HOLD_S + 3) {
        timeout(PATIENCE, aircraft.truth.changed()).await.unwrap().unwrap();
        assert_eq!(aircraft.truth.borrow_and_update().mode, Mode::AltHold);
    }
}

/// A pilot may choose a mode that Wingbeat asks for too: a daemon that is started again must not take the aircraft for its
/// own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pilot_keeps_the_aircraft_over_a_restart_of_the_daemon() {
    let aircraft = aircraft().await;
    let mut rig = Rig::new(aircraft.address, true).await;
    rig.cruising(home()).await;
    aircraft.pilot.send_replace(Some(Mode::Loiter));
    // By the heartbeat or by the switch, whichever is received first.
    let by = rig.until("taken over", |s| !s.engaged).await.detail;
    aircraft.pilot.send_replace(Some(Mode::Rtl));
    rig.until("returning, flown by the pilot", |s| s.flight_controller.mode.as_deref() == Some("RTL")).await;
    assert_eq!(rig.command("land").await.outcome, CommandOutcome::Refused);
    rig.daemon.signal("KILL");
    (rig.daemon, rig.api) = daemon(&rig.folder).await;
    let status = rig.until("connected again", |s| s.flight_controller.armed && s.navigation.is_some()).await;
    assert!(!status.engaged, "{status:?}");
    for command in ["land", "return", "hold"] {
        let reply = rig.command(command).await;
        assert_eq!(reply.outcome, CommandOutcome::Refused, "{command}: {reply:?}");
        assert!(reply.reason.contains(&by), "{reply:?}, {by}");
    }
    assert_eq!(aircraft.truth.borrow().mode, Mode::Rtl);
    assert!(rig.daemon.output().contains("a pilot had the aircraft before the restart"));
}

/// What happened while no daemon ran is read from the flight controller.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pilot_who_takes_over_while_no_daemon_runs_keeps_the_aircraft() {
    let mut aircraft = aircraft().await;
    let mut rig = Rig::new(aircraft.address, true).await;
    rig.cruising(home()).await;
    rig.daemon.signal("KILL");
    rig.daemon.ended().await;
    timeout(PATIENCE, aircraft.truth.wait_for(|t| t.mode == Mode::Brake)).await.unwrap().unwrap();
    aircraft.pilot.send_replace(Some(Mode::Loiter));
    rig.guard().prints("released the flight controller").await;
    assert!(!rig.folder.path().join("taken-by-pilot").exists(), "no daemon has written it");

    // Twice: the second one is told by the first.
    for said in
        ["pilot: armed in mode LOITER when first received", "a pilot had the aircraft before the restart"]
    {
        (rig.daemon, rig.api) = daemon(&rig.folder).await;
        let status = rig.until("connected", |s| s.flight_controller.armed && s.navigation.is_some()).await;
        assert!(!status.engaged, "{status:?}");
        rig.daemon.prints(said).await;
        for command in ["setup", "start", "resume", "hold", "return", "land"] {
            let reply = rig.command(command).await;
            assert_eq!(reply.outcome, CommandOutcome::Refused, "{command}: {reply:?}");
        }
        let reply = rig.command("land").await;
        assert!(reply.reason.contains("LOITER"), "{reply:?}");
        let reply = rig.command("engage").await;
        assert_eq!(reply.outcome, CommandOutcome::Refused, "the pilot flies it: {reply:?}");
        // Longer than any order is repeated.
        rig.until("two seconds on", |s| s.time_ms > status.time_ms + 2_000).await;
        assert_eq!(aircraft.truth.borrow_and_update().mode, Mode::Loiter);
        written(&rig.folder.path().join("taken-by-pilot")).await;
        rig.daemon.signal("KILL");
        rig.daemon.ended().await;
    }

    // He hands it over, and the operator takes it, explicitly.
    (rig.daemon, rig.api) = daemon(&rig.folder).await;
    rig.until("connected", |s| s.flight_controller.armed && s.navigation.is_some()).await;
    aircraft.pilot.send_replace(Some(Mode::Guided));
    rig.until("handed over", |s| s.flight_controller.mode.as_deref() == Some("GUIDED")).await;
    let reply = rig.command("land").await;
    assert_eq!(reply.outcome, CommandOutcome::Refused, "before it is engaged: {reply:?}");
    let since = Instant::now();
    for number in 0.. {
        let reply = rig.command_as(&format!("engage-{number}"), "engage").await;
        if reply.outcome == CommandOutcome::Accepted {
            break;
        }
        assert!(since.elapsed() < PATIENCE, "never engaged");
        sleep(Duration::from_millis(100)).await;
    }
    let reply = rig.command_as("land-2", "land").await;
    assert_eq!(reply.outcome, CommandOutcome::Accepted, "{reply:?}");
    let down = timeout(PATIENCE, aircraft.truth.wait_for(|t| !t.armed)).await.unwrap().unwrap();
    assert!(down.landed && down.mode == Mode::Land, "{down:?}");
}

/// In modes that Wingbeat asks for too. He takes the aircraft from the guardian, by a mode that it did not ask for, or by his
/// switch alone (BRAKE, in which the guardian has it); what that saw it tells the next daemon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pilot_who_chooses_a_mode_of_ours_while_no_daemon_runs_keeps_the_aircraft() {
    let mut flights = tokio::task::JoinSet::new();
    for mode in [Mode::Rtl, Mode::Land, Mode::Brake, Mode::Auto, Mode::Guided] {
        flights.spawn(chosen_while_no_daemon_runs(mode));
    }
    while let Some(flight) = flights.join_next().await {
        flight.unwrap();
    }
}

async fn chosen_while_no_daemon_runs(mode: Mode) {
    let mut aircraft = aircraft().await;
    let mut rig = Rig::new(aircraft.address, true).await;
    rig.cruising(home()).await;
    rig.daemon.signal("KILL");
    rig.daemon.ended().await;
    rig.guard().prints("holding in BRAKE").await;
    aircraft.pilot.send_replace(Some(mode));
    rig.guard().prints("released the flight controller").await;
    assert!(!rig.folder.path().join("taken-by-pilot").exists(), "no daemon has written it");
    (rig.daemon, rig.api) = daemon(&rig.folder).await;
    let status = rig.until("connected", |s| s.flight_controller.mode.is_some()).await;
    if !status.flight_controller.armed {
        assert!(matches!(mode, Mode::Rtl | Mode::Land), "{mode:?}: {status:?}");
        return println!("{mode:?}: down before the next daemon had the flight controller: a slow machine");
    }
    assert!(!status.engaged, "{mode:?}: {status:?}");
    rig.daemon.prints("pilot or failsafe took over while no daemon ran").await;
    for command in ["hold", "return", "land"] {
        let reply = rig.command(command).await;
        assert_eq!(reply.outcome, CommandOutcome::Refused, "{mode:?}, {command}: {reply:?}");
        assert!(reply.reason.contains("while no daemon ran"), "{reply:?}");
    }
    // Longer than any order is repeated.
    rig.until("two seconds on", |s| s.time_ms > status.time_ms + 2_000).await;
    assert_eq!(aircraft.truth.borrow_and_update().mode, mode);
    written(&rig.folder.path().join("taken-by-pilot")).await;
}

async fn written(path: &Path) {
    let since = Instant::now();
    while !path.exists() {
        assert!(since.elapsed() < PATIENCE, "{}: never there", path.display());
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_guardian_setup_is_refused() {
    let aircraft = aircraft().await;
    let rig = Rig::new(aircraft.address, false).await;
    let others = |s: &AircraftStatus| {
        let is_judged = |name: &str| matches!(name, "companion loss" | "swarm");
        s.checks.iter().all(|c| c.passed || !c.is_required || is_judged(&c.name))
    };
    rig.until("all other checks passed", others).await;
    let reply = rig.command("setup").await;
    assert_eq!(reply.outcome, CommandOutcome::Refused);
    assert!(reply.reason.starts_with("companion loss: no guardian answers"), "{reply:?}");
}

/// The test plays the daemon that flies AUTO: it loads nothing and reports that it requested AUTO.
async fn dies_in_auto(
    what: &str,
    mut rig: Rig,
    autopilot: SocketAddr,
    pilot: &watch::Sender<Option<Mode>>,
    truth: &mut watch::Receiver<Truth>,
) {
    // The real daemon loads the route and takes off; then another companion takes its place.
    rig.set_up(home()).await;
    rig.until("set up", |s| s.state == StateId::SetupFinished).await;
    pilot.send_replace(Some(Mode::Auto));
    rig.until("disengaged", |s| !s.engaged).await;
    rig.daemon.signal("KILL");
    rig.daemon.child.wait().unwrap();
    rig.guard().prints("it was not commanding").await;
    timeout(PATIENCE, truth.wait_for(|t| t.velocity.truncate().length() > 3.0)).await.unwrap().unwrap();
    assert_eq!(truth.borrow().mode, Mode::Auto, "a pilot's AUTO continues");
    let mut companion = tokio::net::UnixStream::connect(rig.folder.path().join("guard.sock")).await.unwrap();
    let pulse = Pulse {
        activity: Activity::Commanding,
        system_id: 1,
        ours: Modes::one(Mode::Auto.number()),
        switch_channel: 0,
        endpoint: guardian::fingerprint(&format!("tcp:{autopilot}")),
        route: 0,
        takes_up: 0,
    };
    let beat = Beat { pulse, sequence: 1, driver_age_ms: 0 };
    companion.write_all(&beat.encode()).await.unwrap();
    let mut answer = [0; guardian::REPORT_LEN];
    companion.read_exact(&mut answer).await.unwrap();
    assert_eq!(guardian::Report::decode(&answer).unwrap().answer.stance, guardian::Stance::Watching);
    drop(companion);
    observe_landing(what, truth, Instant::now()).await;
    rig.guard().prints("released the flight controller").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_companion_that_flies_auto_is_succeeded_too() {
    let mut aircraft = aircraft().await;
    let rig = Rig::new(aircraft.address, true).await;
    dies_in_auto("death in AUTO", rig, aircraft.address, &aircraft.pilot, &mut aircraft.truth).await;
}

/// No guardian: a console holds the lease, so that the autopilot's own failsafe is the layer. Prints what
/// happens after the death in guided flight.
async fn returns_alone(what: &str, autopilot: SocketAddr, truth: &mut watch::Receiver<Truth>) {
    let mut rig = Rig::new(autopilot, false).await;
    let body = r#"{"console":"test","ttl_ms":60000}"#;
    let (code, answer) = ask(rig.api, "POST", paths::LEASE, body).await;
    assert_eq!(code, 200, "{answer}");
    let grant: wingbeat_api::LeaseGrant = serde_json::from_str(&answer).unwrap();
    rig.token = grant.token.unwrap();
    let status = rig.until("caught", |s| check(s, "companion loss").passed).await;
    let layers = &check(&status, "companion loss").detail;
    assert!(layers.ends_with("the autopilot: RTL after 5 s in GUIDED, not AUTO"), "{layers}");
    rig.cruising(home()).await;
    rig.daemon.signal("KILL");
    let died = Instant::now();
    timeout(PATIENCE, truth.wait_for(|t| t.mode == Mode::Rtl)).await.unwrap().unwrap();
    let rtl = died.elapsed();
    timeout(PATIENCE, truth.wait_for(|t| !t.armed)).await.unwrap().unwrap();
    println!("{what}: RTL {:.2} s, disarmed {:.2} s", rtl.as_secs_f64(), died.elapsed().as_secs_f64());
    assert!(
        rtl < Duration::from_millis(6_500),
        "{what}: the heartbeat that shows it is up to 1 s late: {rtl:?}"
    );
    assert!(truth.borrow().local.truncate().length() < 3.0, "{:?}", *truth.borrow());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_guardian_a_lease_arms_the_autopilots_own_failsafe() {
    let mut aircraft = aircraft().await;
    returns_alone("kill -9 without a guardian", aircraft.address, &mut aircraft.truth).await;
}

/// The same deaths on ArduCopter itself, one flight after the other, in real time: its position takes 40 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_on_sitl_in_every_kind_of_flight() {
    let Some(program) = std::env::var_os("WINGBEAT_SITL").map(PathBuf::from) else {
        return println!("skipped: WINGBEAT_SITL is not set, expected the path of ArduPilot's arducopter");
    };
    let mut sitl = sitl(&program).await;
    let mut rig = Rig::new(sitl.autopilot, true).await;
    rig.set_up(home()).await;
    rig.until("climbing", |s| s.navigation.as_ref().is_some_and(|n| n.height_m > 1.0)).await;
    rig.daemon.signal("KILL");
    observe_landing("SITL, kill -9 during take-off", &mut sitl.truth, Instant::now()).await;
    rig.guard().prints("released the flight controller").await;

    (rig.daemon, rig.api) = daemon(&rig.folder).await;
    rig.cruising(home()).await;
    rig.daemon.signal("KILL");
    observe_landing("SITL, kill -9 in guided flight", &mut sitl.truth, Instant::now()).await;
    rig.guard().prints("released the flight controller").await;
    drop(rig);

    let rig = Rig::new(sitl.autopilot, true).await;
    dies_in_auto("SITL, death in AUTO", rig, sitl.autopilot, &sitl.pilot, &mut sitl.truth).await;
    returns_alone("SITL, kill -9 without a guardian", sitl.autopilot, &mut sitl.truth).await;
}
