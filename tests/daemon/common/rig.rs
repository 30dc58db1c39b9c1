//! Real processes: `wingbeatd`, `wingbeat-guard`, and a simulated flight controller behind TCP, in real time.

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::{net::TcpListener, sync::watch, time::sleep};
use wingbeat_api::{
    AircraftStatus, CommandOutcome, CommandReply, MissionItem, MissionUpload, StateId, paths,
};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec3, Frame, Position};
use wingbeat_hub::serve;
use wingbeat_onboard::Clock;
use wingbeat_sim::flight_controller::{Config, FlightController, Truth};

use super::client::{ask, ask_with};

/// Longer than anything here takes on a loaded machine: what misses it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
pub(crate) const HOLD_S: u64 = 3;
pub(crate) const HEIGHT_M: f64 = 6.0;

pub(crate) fn home() -> Position {
    Position::from_degrees(39.4824, -0.3464, 10.0).unwrap()
}

/// A simulated flight controller, one client after the other, as SITL.
pub(crate) struct Aircraft {
    pub(crate) address: SocketAddr,
    pub(crate) truth: watch::Receiver<Truth>,
    pub(crate) pilot: watch::Sender<Option<Mode>>,
}

pub(crate) async fn aircraft() -> Aircraft {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let clock = Clock::real_time();
    let fc = FlightController::new(Config::new(1, home()), 7, clock.now());
    let (sender, truth) = watch::channel(fc.truth());
    let (pilot, mut switch) = watch::channel(None);
    tokio::spawn(serve::flight_controller(listener, fc, clock, move |fc| {
        if switch.has_changed().unwrap_or(false)
            && let Some(mode) = *switch.borrow_and_update()
        {
            assert!(fc.set_mode_by_pilot(mode));
        }
        sender.send_replace(fc.truth());
    }));
    Aircraft { address, truth, pilot }
}

/// A process that ends with its test, and its output.
pub(crate) struct Process {
    pub(crate) child: Child,
    output: Arc<Mutex<String>>,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        // This test's own are not its: what it is given counts.
        for variable in ["NOTIFY_SOCKET", "JOURNAL_STREAM", "RUST_LOG"] {
            if !command.get_envs().any(|(name, value)| name == variable && value.is_some()) {
                command.env_remove(variable);
            }
        }
        let mut child = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let output = Arc::new(Mutex::new(String::new()));
        let received = output.clone();
        std::thread::spawn(move || {
            let mut line = String::new();
            while lines.read_line(&mut line).is_ok_and(|length| length > 0) {
                received.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        Self { child, output }
    }

    pub(crate) fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    pub(crate) async fn prints(&self, what: &str) -> String {
        let since = Instant::now();
        while !self.output().contains(what) {
            assert!(since.elapsed() < PATIENCE, "never printed {what:?}: {}", self.output());
            sleep(Duration::from_millis(5)).await;
        }
        self.output()
    }

    /// Waits for its end.
    pub(crate) async fn ended(&mut self) -> std::process::ExitStatus {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(since.elapsed() < PATIENCE, "never ended: {}", self.output());
            sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").arg(format!("-{name}")).arg(id).status().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.output());
        }
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct Rig {
    // The processes end before their folder.
    pub(crate) daemon: Process,
    pub(crate) guard: Option<Process>,
    pub(crate) folder: TempDir,
    pub(crate) api: SocketAddr,
    /// The token of the lease that the test holds.
    pub(crate) token: String,
}

/// Writes the configuration of an aircraft that flies alone, and returns its radio's port.
pub(crate) fn configure(folder: &Path, autopilot: &str) -> u16 {
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text = format!(
        "id = \"00b827eb01020304\"\n[autopilot]\nendpoint = \"{autopilot}\"\n[log]\nfree_mb = 16\n[security]\ninsecure = true\n[muscop]\n\
         master = \"00b827eb01020304\"\naircraft = 1\nalone = true\n[http]\nbind = \"127.0.0.1:0\"\n[radio]\n\
         broadcast = \"127.255.255.255\"\nport = {port}\n[guard]\nsocket = \"{}\"\nhold_s = {HOLD_S}\n",
        folder.join("guard.sock").display()
    );
    std::fs::write(folder.join("wingbeatd.toml"), text).unwrap();
    port
}

pub(crate) fn guard(folder: &TempDir) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeat-guard-under-test"));
    Process::start(command.arg("--config").arg(folder.path().join("wingbeatd.toml")))
}

pub(crate) async fn daemon(folder: &TempDir) -> (Process, SocketAddr) {
    daemon_by(program(), folder).await
}

/// The daemon's program.
pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_wingbeatd-under-test"))
}

/// By a command that lacks the daemon's arguments.
pub(crate) async fn daemon_by(mut command: Command, folder: &TempDir) -> (Process, SocketAddr) {
    let state = ["--state".as_ref(), folder.path().as_os_str()];
    let daemon =
        Process::start(command.arg("--config").arg(folder.path().join("wingbeatd.toml")).args(state));
    let output = daemon.prints("API http://").await;
    let address = output.split_once("API http://").unwrap().1.split(',').next().unwrap().parse().unwrap();
    (daemon, address)
}

impl Rig {
    pub(crate) async fn new(autopilot: SocketAddr, guarded: bool) -> Self {
        Self::with(program(), autopilot, guarded).await
    }

    /// With a daemon that is started by a command, which lacks its arguments.
    pub(crate) async fn with(command: Command, autopilot: SocketAddr, guarded: bool) -> Self {
        let folder = TempDir::new().unwrap();
        configure(folder.path(), &format!("tcp:{autopilot}"));
        Self::of(command, folder, guarded).await
    }

    /// Of a folder that has its configuration.
    pub(crate) async fn of(command: Command, folder: TempDir, guarded: bool) -> Self {
        let guard = guarded.then(|| guard(&folder));
        if let Some(guard) = &guard {
            guard.prints("wingbeat-guard 0").await;
        }
        let (daemon, api) = daemon_by(command, &folder).await;
        Self { daemon, guard, folder, api, token: String::new() }
    }

    pub(crate) fn guard(&self) -> &Process {
        self.guard.as_ref().unwrap()
    }

    pub(crate) async fn status(&self) -> AircraftStatus {
        serde_json::from_str(&ask(self.api, "GET", paths::STATUS, "").await.1).unwrap()
    }

    pub(crate) async fn until(
        &self,
        what: &str,
        satisfies: impl Fn(&AircraftStatus) -> bool,
    ) -> AircraftStatus {
        let since = Instant::now();
        loop {
            let status = self.status().await;
            if satisfies(&status) {
                return status;
            }
            assert!(since.elapsed() < PATIENCE, "never {what}: {status:#?}\n{}", self.daemon.output());
            sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn command(&self, command: &str) -> CommandReply {
        self.command_as(command, command).await
    }

    /// Under an id of its own.
    pub(crate) async fn command_as(&self, id: &str, command: &str) -> CommandReply {
        let body = format!(r#"{{"id":"{id}","command":"{command}"}}"#);
        let (_, answer) = ask_with(&self.token, self.api, "POST", paths::COMMANDS, &body).await;
        serde_json::from_str(&answer).unwrap()
    }

    /// A leg of 300 m, given and set up.
    pub(crate) async fn set_up(&self, home: Position) {
        let frame = Frame::new(home);
        let item = |north_m| {
            let place = frame.to_position(DVec3::new(0.0, north_m, 0.0));
            let (latitude_deg, longitude_deg) = (place.latitude_deg(), place.longitude_deg());
            MissionItem::at(latitude_deg, longitude_deg, HEIGHT_M)
        };
        let mission = MissionUpload::new("leg", vec![item(5.0), item(305.0)]);
        let (code, answer) =
            ask_with(&self.token, self.api, "PUT", paths::MISSION, &serde_json::to_string(&mission).unwrap())
                .await;
        assert_eq!(code, 200, "{answer}");
        self.until("checks passed", |s| s.checks.iter().all(|check| check.passed || !check.is_required))
            .await;
        let reply = self.command("setup").await;
        assert_eq!(reply.outcome, CommandOutcome::Accepted, "{reply:?}");
    }

    /// Until it cruises along its leg, in GUIDED.
    pub(crate) async fn cruising(&self, home: Position) {
        self.set_up(home).await;
        self.until("set up", |s| s.state == StateId::SetupFinished).await;
        self.command("start").await;
        self.until("cruising", |s| {
            s.state == StateId::MovingToWaypoint
                && s.navigation.as_ref().is_some_and(|n| n.ground_speed_m_s > 4.0)
        })
        .await;
    }
}
