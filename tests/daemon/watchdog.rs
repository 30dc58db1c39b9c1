//! systemd's watchdog with the real program: a daemon that is well feeds it, and one of which a single task hangs does not,
//! whatever its other tasks do.
//!
//! A task hangs in a system call that only that task makes, and that `strace` does not let begin: the program is the one that
//! is shipped. `-- --nocapture` prints what hung, and after which time systemd would have killed the daemon.

use crate::common::rig;
use crate::common::strace;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use rig::{PATIENCE, Process, configure, daemon_by, home, program};
use strace::missing;
use tempfile::TempDir;
use tokio::{
    net::{TcpStream, UdpSocket, UnixDatagram},
    time::timeout,
};
use wingbeat_bench::serve_serial::{self, Line};
use wingbeat_radio::Clock;
use wingbeat_sim::flight_controller::{Config, FlightController};

const UNIT: &str = include_str!("../../systemd/wingbeatd.service");
/// So often at least a daemon that is well is seen to feed.
const FEEDS: usize = 4;
/// Longer than any test: microseconds.
const FOR_EVER_US: u64 = 3_600_000_000;

/// The period that the unit gives the daemon.
fn period() -> Duration {
    let line = UNIT.lines().find_map(|line| line.strip_prefix("WatchdogSec=")).unwrap();
    Duration::from_secs(line.parse().unwrap())
}

/// systemd, as far as a daemon notifies it.
struct Systemd {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Systemd {
    fn new(folder: &Path) -> Self {
        let path = folder.join("notify.sock");
        Self { socket: UnixDatagram::bind(&path).unwrap(), path }
    }

    /// The command of a daemon that it starts.
    fn command(&self) -> Command {
        let mut command = program();
        command.env("NOTIFY_SOCKET", &self.path).env("WATCHDOG_USEC", period().as_micros().to_string());
        command
    }

    /// Whether the watchdog is fed within its period.
    async fn is_fed(&self) -> bool {
        let fed = async {
            let mut buffer = [0; 1024];
            loop {
                let length = self.socket.recv(&mut buffer).await.unwrap();
                if String::from_utf8_lossy(&buffer[..length]).lines().any(|line| line == "WATCHDOG=1") {
                    return;
                }
            }
        };
        timeout(period(), fed).await.is_ok()
    }

    async fn is_fed_often(&self, what: &str) {
        for number in 0..FEEDS {
            assert!(self.is_fed().await, "{what}: not fed after {number} times");
        }
    }

    /// Until it would end the daemon.
    async fn expires(&self, what: &str) -> Duration {
        let since = Instant::now();
        while self.is_fed().await {
            assert!(since.elapsed() < PATIENCE, "{what}: fed for ever");
        }
        since.elapsed()
    }
}

/// A task, and a system call that it alone makes here.
struct Hang {
    task: &'static str,
    call: &'static str,
    /// Whether only calls on the serial line are meant.
    on_line: bool,
}

const HANGS: [Hang; 4] = [
    Hang { task: "link", call: "read", on_line: true },
    Hang { task: "radio", call: "recvfrom", on_line: false },
    Hang { task: "HTTP server", call: "accept4", on_line: false },
    Hang { task: "driver", call: "sendto", on_line: false },
];

/// A daemon is well; then one of its tasks hangs; then it is ended and started again, as by systemd. Returns a line that says
/// what was seen.
async fn hang(&Hang { task, call, on_line }: &Hang) -> String {
    let folder = TempDir::new().unwrap();
    let line = Line::new(&folder.path().join("tty")).unwrap();
    let device = line.device().display().to_string();
    let clock = Clock::real_time();
    let controller = FlightController::new(Config::new(1, home()), 7, clock.now());
    tokio::spawn(serve_serial::flight_controller(line, controller, clock, |_| ()));
    let port = configure(folder.path(), &format!("serial:{}:921600", folder.path().join("tty").display()));
    let systemd = Systemd::new(folder.path());
    let (daemon, api) = daemon_by(systemd.command(), &folder).await;
    daemon.prints("the port to the flight controller opened").await;
    systemd.is_fed_often(task).await;

    let trace = |inject: &[String]| {
        let mut tracer = Command::new("strace");
        tracer.args(["-f", "-o", "/dev/null", "-e", &format!("trace={call}")]).args(inject);
        if on_line {
            tracer.args(["-P", &device]);
        }
        Process::start(tracer.args(["-p", &daemon.child.id().to_string()]))
    };
    // Being traced does not make it hang.
    let mut tracer = trace(&[]);
    tracer.prints("attached").await;
    provoke(api, port).await;
    systemd.is_fed_often(task).await;
    tracer.signal("TERM");
    tracer.ended().await;
    systemd.is_fed_often(task).await;
    let tracer = trace(&["-e".to_owned(), format!("inject={call}:delay_enter={FOR_EVER_US}")]);
    tracer.prints("attached").await;
    provoke(api, port).await;
    let after = systemd.expires(task).await;
    let is_named = daemon.output().contains(&format!("task {task}: found no iteration"));
    // The traced one ends only after its tracer.
    drop((tracer, daemon));

    let _daemon = daemon_by(systemd.command(), &folder).await;
    systemd.is_fed_often(task).await;
    let named = if is_named { "named in the log" } else { "not named in the log" };
    format!("{task:12} hangs in {call:9} the watchdog expires after {:4.1} s, {named}", after.as_secs_f64())
}

/// A connection, and a datagram: what servers and radios wait for.
async fn provoke(api: SocketAddr, port: u16) {
    // Neither has to be taken.
    let _ = TcpStream::connect(api).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let _ = socket.send_to(b"no datagram of ours", ("127.0.0.1", port)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_of_which_one_task_hangs_does_not_feed_the_watchdog() {
    if let Some(what) = missing() {
        println!("skipped: {what}");
        return;
    }
    let hangs = HANGS.iter().map(|one| tokio::spawn(hang(one)));
    for seen in hangs.collect::<Vec<_>>() {
        println!("{}", seen.await.unwrap());
    }
}
