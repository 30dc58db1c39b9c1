//! Two flight controllers on one line, as ArduPilot makes them by forwarding between its telemetry ports: which of them a
//! daemon commands, and which it takes up again after its death in flight. Real processes, in real time.

use crate::common::rig;

use std::{net::SocketAddr, time::Duration};

use rig::{PATIENCE, Rig, configure, daemon, home, program};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Instant, sleep, timeout},
};
use wingbeat_api::{AircraftStatus, CommandOutcome, StateId};
use wingbeat_autopilot::codec::{Decoder, encode_v2};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec3, Frame};
use wingbeat_hub::serve;
use wingbeat_onboard::Clock;
use wingbeat_sim::flight_controller::{Config, FlightController, Truth};

/// The system id of the daemon's flight controller.
const OWN: u8 = 1;
/// The system id of another one.
const OTHER: u8 = 2;

/// What passes on the line.
#[derive(Clone, Copy, Debug)]
struct Passes {
    /// Whether frames of the other flight controller pass.
    other: bool,
    /// Frames of the own one are lost for this time after a connection.
    own_after: Duration,
}

/// A line with two flight controllers at its end.
struct Line {
    address: SocketAddr,
    passes: watch::Sender<Passes>,
    own: watch::Receiver<Truth>,
    other: watch::Receiver<Truth>,
}

async fn controller(system_id: u8, east_m: f64) -> (SocketAddr, watch::Receiver<Truth>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, clock) = (listener.local_addr().unwrap(), Clock::real_time());
    let at = Frame::new(home()).to_position(DVec3::new(east_m, 0.0, 0.0));
    let fc = FlightController::new(Config::new(system_id, at), 7, clock.now());
    let (sender, truth) = watch::channel(fc.truth());
    tokio::spawn(serve::flight_controller(listener, fc, clock, move |fc| {
        sender.send_replace(fc.truth());
    }));
    (address, truth)
}

/// Carries one connection: frames of both go down, everything goes up to both.
async fn carry(mut daemon: TcpStream, ends: [SocketAddr; 2], passes: watch::Receiver<Passes>) {
    let [mut own, mut other] =
        [TcpStream::connect(ends[0]).await.unwrap(), TcpStream::connect(ends[1]).await.unwrap()];
    let (begun, mut decoders) = (Instant::now(), [Decoder::default(), Decoder::default()]);
    let [mut a, mut b, mut up] = [[0; 4096]; 3];
    loop {
        let (which, bytes) = tokio::select! {
            Ok(length @ 1..) = own.read(&mut a) => (0, &a[..length]),
            Ok(length @ 1..) = other.read(&mut b) => (1, &b[..length]),
            Ok(length @ 1..) = daemon.read(&mut up) => {
                let _ = own.write_all(&up[..length]).await;
                let _ = other.write_all(&up[..length]).await;
                continue;
            }
            else => return,
        };
        let Passes { other, own_after } = *passes.borrow();
        let is_passed = if which == 0 { begun.elapsed() >= own_after } else { other };
        let mut frames = heapless::Vec::<u8, 8_192>::new();
        // Whole frames, so that two streams become one.
        decoders[which].push(bytes, |frame| {
            if is_passed {
                encode_v2(frame.header, &frame.message, &mut frames).unwrap();
            }
        });
        if daemon.write_all(&frames).await.is_err() {
            return;
        }
    }
}

async fn line(passes: Passes) -> Line {
    let ((own_at, own), (other_at, other)) = (controller(OWN, 0.0).await, controller(OTHER, 40.0).await);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, passes) = watch::channel(passes);
    tokio::spawn(async move {
        loop {
            let (daemon, _) = listener.accept().await.unwrap();
            // One client after the other, as a serial line.
            Box::pin(carry(daemon, [own_at, other_at], passes.clone())).await;
        }
    });
    Line { address, passes: sender, own, other }
}

impl Line {
    fn pass(&self, other: bool, own_after: Duration) {
        self.passes.send_replace(Passes { other, own_after });
    }
}

fn several(status: &AircraftStatus) -> Option<String> {
    status.checks.iter().find(|check| check.name == "several flight controllers").map(|c| c.detail.clone())
}

const AT_ONCE: Duration = Duration::ZERO;
/// The other one is the first to speak.
const LATER: Duration = Duration::from_millis(1_500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_flight_controllers_none_is_commanded_until_the_own_one_is_named() {
    let mut line = line(Passes { other: true, own_after: LATER }).await;
    let mut rig = Rig::new(line.address, true).await;
    let status = rig.until("both received", |s| several(s).is_some()).await;
    let detail = several(&status).unwrap();
    assert!(
        detail.starts_with("systems 1 and 2 speak") && detail.contains("autopilot.system_id"),
        "{detail}"
    );
    let reply = rig.command("setup").await;
    assert_eq!(reply.outcome, CommandOutcome::Refused);
    assert!(reply.reason.contains("several flight controllers"), "{reply:?}");
    sleep(Duration::from_secs(5)).await;
    assert!(several(&rig.status().await).is_some());
    assert!(!line.own.borrow().armed && !line.other.borrow().armed);
    assert!(!rig.daemon.output().contains("flight controller: ArduPilot"), "{}", rig.daemon.output());

    // Named: the other one is ignored, whoever speaks first.
    rig.daemon.signal("TERM");
    rig.daemon.ended().await;
    let path = rig.folder.path().join("wingbeatd.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("[autopilot]\n", "[autopilot]\nsystem_id = 1\n")).unwrap();
    (rig.daemon, rig.api) = daemon(&rig.folder).await;
    rig.cruising(home()).await;
    assert!(line.own.borrow_and_update().armed && !line.other.borrow_and_update().armed);
    let output = rig.daemon.output();
    assert!(output.contains("a second autopilot on the line: found system 2, expected 1"), "{output}");
    assert_eq!(rig.command("land").await.outcome, CommandOutcome::Accepted);
    timeout(PATIENCE, line.own.wait_for(|truth| !truth.armed)).await.unwrap().unwrap();
    assert!(!line.other.borrow().armed);
}

/// The guardian has aircraft 1; the next daemon receives aircraft 2 first. It must take aircraft 1, or none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_is_started_again_in_flight_takes_the_same_flight_controller() {
    let mut line = line(Passes { other: false, own_after: AT_ONCE }).await;
    let mut rig = Rig::new(line.address, true).await;
    rig.cruising(home()).await;
    // The neighbour comes into reach in flight: it is named, and the own one stays.
    line.pass(true, LATER);
    rig.daemon.prints("a second autopilot on the line: found system 2, expected 1").await;
    assert!(rig.status().await.engaged);
    let kept = std::fs::read_to_string(rig.folder.path().join("flight-controller")).unwrap();
    assert_eq!(kept.trim(), "1 armed");

    rig.daemon.signal("KILL");
    rig.daemon.ended().await;
    timeout(PATIENCE, line.own.wait_for(|truth| truth.mode == Mode::Brake)).await.unwrap().unwrap();
    (rig.daemon, rig.api) = daemon(&rig.folder).await;
    rig.until("it has aircraft 1 again", |s| s.flight_controller.armed).await;
    let output = rig.daemon.output();
    assert!(output.contains("flight controller: ArduPilot on a quadrotor, system 1"), "{output}");
    assert!(rig.guard().output().contains("system 1, holding on route"), "{}", rig.guard().output());
    let reply = rig.command("land").await;
    assert_eq!(reply.outcome, CommandOutcome::Accepted, "{reply:?}");
    timeout(PATIENCE, line.own.wait_for(|truth| truth.mode == Mode::Land)).await.unwrap().unwrap();
    timeout(PATIENCE, line.own.wait_for(|truth| !truth.armed)).await.unwrap().unwrap();
    assert!(!line.other.borrow().armed);
    rig.until("landed", |s| s.state == StateId::Finished || !s.flight_controller.armed).await;
}

/// Nothing is known of it but the guardian's word: the record of the flight and the kept identity are lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_aircraft_that_is_not_received_stays_the_guardians() {
    let mut line = line(Passes { other: false, own_after: AT_ONCE }).await;
    let folder = TempDir::new().unwrap();
    configure(folder.path(), &format!("tcp:{}", line.address));
    let mut rig = Rig::of(program(), folder, true).await;
    rig.cruising(home()).await;
    rig.daemon.signal("KILL");
    rig.daemon.ended().await;
    rig.guard().prints("holding in BRAKE").await;
    // From the next connection on its own flight controller is silent, and the other one speaks.
    line.pass(true, Duration::from_secs(60));
    (rig.daemon, rig.api) = daemon(&rig.folder).await;
    let reply = rig.command("land").await;
    assert_eq!(reply.outcome, CommandOutcome::Accepted, "not refused for what is not known: {reply:?}");
    rig.guard().prints("system 1 was given back and is not received").await;
    assert!(rig.guard().output().contains("the daemon did not receive it"), "{}", rig.guard().output());
    let status = rig.status().await;
    assert!(!status.flight_controller.armed && status.navigation.is_none(), "the other one is not its");
    // The guardian receives it again, and lands it.
    line.pass(true, AT_ONCE);
    timeout(PATIENCE, line.own.wait_for(|truth| truth.mode == Mode::Land)).await.unwrap().unwrap();
    timeout(PATIENCE, line.own.wait_for(|truth| !truth.armed)).await.unwrap().unwrap();
    assert!(!line.other.borrow().armed);
}

/// A slip in `--state` would let a restart forget that a pilot has the aircraft.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_directory_that_is_missing_refuses_setup() {
    let line = line(Passes { other: false, own_after: AT_ONCE }).await;
    let folder = TempDir::new().unwrap();
    configure(folder.path(), &format!("tcp:{}", line.address));
    let mut command = program();
    command.arg("--config").arg(folder.path().join("wingbeatd.toml"));
    command.arg("--state").arg(folder.path().join("missing"));
    let daemon = rig::Process::start(&mut command);
    let output = daemon.prints("API http://").await;
    let api = output.split_once("API http://").unwrap().1.split(',').next().unwrap().parse().unwrap();
    let rig = Rig { daemon, guard: None, folder, api, token: String::new() };
    let status = rig.until("judged", |s| s.checks.iter().any(|check| check.name == "state directory")).await;
    let check = status.checks.iter().find(|check| check.name == "state directory").unwrap();
    assert!(check.is_required && !check.passed && check.detail.contains("no such directory"), "{check:?}");
}
