//! The process around the guardian: one socket for the daemon, one port to the autopilot while the
//! guardian wants it, and nothing else. `wingbeat-guard` is this with a configuration file.
//!
//! What it decides is [`wingbeat_agent::guardian`]; what it is for, `docs/decisions/0003-companion-death.md`.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            fs::{FileTypeExt as _, PermissionsExt as _},
            net::UnixStream as StdStream,
        },
    },
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};
use tokio::{
    net::{UnixListener, UnixStream},
    time::{Instant as KernelInstant, sleep_until},
};
use wingbeat_agent::{
    Severity,
    guardian::{Beat, Config, Guardian, Input, Outputs, PULSE_LEN, Stance},
};
use wingbeat_geo::Instant;
use wingbeat_link::{Endpoint, Link, LinkEvent};

use crate::scheduling;

/// Where the socket is unless configured.
pub const DEFAULT_SOCKET: &str = "/run/wingbeat/guard.sock";
/// Default time without a pulse after which a commanding daemon counts as hung: five pulses.
pub const SILENCE_MS: u64 = 1_000;
/// How long BRAKE is kept unless configured: long enough for 3.5.7, which flies back after braking and rests
/// after about 9 s.
pub const HOLD_S: u64 = 10;
/// A guardian that is asked to end while it has the autopilot waits so long for LAND to be seen.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// The loop turns at least this often, and feeds the watchdog.
const TURN: Duration = Duration::from_secs(1);
/// Bytes handed in as one input: one of the longest MAVLink frames.
const PIECE_MAX: usize = 280;
/// A shortage of file descriptors or memory is waited out for this time before the next connection is accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// File descriptors that are kept for the port to the autopilot: what it needs (2), and what daemons that connect meanwhile may take
/// (two connections and a handle of a process).
const RESERVED: usize = 5;

/// What a guardian process is started with.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where the autopilot is.
    pub endpoint: Endpoint,
    /// Where daemons connect.
    pub socket: PathBuf,
    /// The guardian's numbers.
    pub guardian: Config,
}

/// Why a guardian does not run.
#[derive(Debug, thiserror::Error)]
#[error(
    "guard.socket {path}: found {found}, expected a path in a folder that we may write, with nothing there, or the socket \
     of a guardian that has ended"
)]
pub struct StartError {
    /// Path of the socket.
    pub path: String,
    /// The value or problem that was found.
    pub found: String,
}

/// The daemon that is connected.
struct Daemon {
    stream: UnixStream,
    /// Names its process for ever, which its number does not.
    process: Option<OwnedFd>,
    /// Its number.
    pid: Option<Pid>,
    partial: Vec<u8>,
}

struct Process {
    settings: Settings,
    guardian: Guardian,
    out: Outputs,
    started: KernelInstant,
    daemon: Option<Daemon>,
    /// One that connected while another is connected: the next daemon, which was faster than the end of the last.
    next: Option<UnixStream>,
    /// The user whose connection was refused last: each is logged once.
    refused_uid: Option<u32>,
    /// Connections that were not accepted for want of something, and when the next is.
    not_accepted: u64,
    accepts_at: KernelInstant,
    /// Descriptors that nothing else takes while the port is closed.
    reserved: Vec<File>,
    link: Option<Link>,
    link_open: bool,
}

/// A guardian's socket, ready for a daemon.
pub struct Bound {
    settings: Settings,
    listener: UnixListener,
}

/// Takes the socket.
///
/// # Errors
/// Another guardian has it, or the path cannot be used.
pub fn bind(settings: Settings) -> Result<Bound, StartError> {
    let path = &settings.socket;
    let error = |found: String| StartError { path: path.display().to_string(), found };
    not_a_socket(path).map_or(Ok(()), |found| Err(error(found)))?;
    // A guardian that died left its socket behind; one that lives accepts.
    match StdStream::connect(path) {
        Ok(_) => return Err(error("another guardian".into())),
        Err(cause) if cause.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|cause| error(cause.to_string()))?;
        }
        Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(|cause| error(cause.to_string()))?;
    // The daemon has our user.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(|cause| error(cause.to_string()))?;
    Ok(Bound { settings, listener })
}

/// What is at the path, if it is there and no socket: nothing of ours, and never to be deleted.
pub(crate) fn not_a_socket(path: &Path) -> Option<String> {
    let kind = fs::symlink_metadata(path).ok()?.file_type();
    let found = match kind {
        kind if kind.is_socket() => return None,
        kind if kind.is_file() => "a regular file",
        kind if kind.is_dir() => "a directory",
        kind if kind.is_symlink() => "a symbolic link",
        _ => "a device or a pipe",
    };
    Some(found.into())
}

/// Whether a process of this user may be our daemon: ours, or root's.
fn is_daemons(uid: u32, own: u32) -> bool {
    uid == own || uid == 0
}

impl Bound {
    /// Guards until `stop` is done. `fed` is called at least once a second while the loop turns.
    pub async fn run(self, stop: impl Future<Output = ()>, mut fed: impl FnMut()) {
        let Self { settings, listener } = self;
        let socket = settings.socket.clone();
        let mut process = Process {
            guardian: Guardian::new(settings.guardian.clone()),
            settings,
            out: Outputs::default(),
            started: KernelInstant::now(),
            daemon: None,
            next: None,
            refused_uid: None,
            not_accepted: 0,
            accepts_at: KernelInstant::now(),
            reserved: vec![],
            link: None,
            link_open: false,
        };
        tokio::pin!(stop);
        let mut stopping: Option<KernelInstant> = None;
        let mut fed_at = None;
        process.update_port();
        loop {
            if fed_at.is_none_or(|at: KernelInstant| at.elapsed() >= TURN / 2) {
                fed();
                process.send_utc();
                fed_at = Some(KernelInstant::now());
            }
            let due = process.due();
            let mut turn = due.min(KernelInstant::now() + TURN);
            let accepts = process.next.is_none() && process.accepts_at <= KernelInstant::now();
            if process.next.is_none() && !accepts {
                turn = turn.min(process.accepts_at);
            }
            if let Some(since) = stopping {
                let stance = process.guardian.stance();
                if !stance.holds() || stance == Stance::Descending || since.elapsed() >= STOP_TIMEOUT {
                    break;
                }
                turn = turn.min(since + STOP_TIMEOUT);
            }
            // In this order: pulses that wait are read before the time since the last is judged.
            tokio::select! {
                biased;
                () = readable(process.daemon.as_ref()) => process.receive_pulses(),
                // Also while a daemon is connected: what others leave in the queue would shut out the next.
                accepted = listener.accept(), if accepts => process.accepted(accepted),
                () = &mut stop, if stopping.is_none() => {
                    stopping = Some(KernelInstant::now());
                    process.feed(Input::Stop);
                }
                event = received(process.link.as_mut()) => process.link_event(event),
                () = sleep_until(turn) => {}
            }
            if KernelInstant::now() >= process.due() {
                // What came meanwhile is read first.
                process.receive_pulses();
                process.feed(Input::Wake);
            }
            process.take_next();
            process.update_port();
        }
        // Nobody minds a file that is gone already.
        let _ = fs::remove_file(socket);
    }
}

impl Process {
    fn now(&self) -> Instant {
        Instant::ZERO + self.started.elapsed()
    }

    fn due(&self) -> KernelInstant {
        match self.guardian.poll_timeout() {
            Instant::NEVER => KernelInstant::now() + TURN,
            at => self.started + at.since(Instant::ZERO),
        }
    }

    /// The clock may be set at any time; without it a signature is as late as what the autopilot signed.
    fn send_utc(&mut self) {
        if let Ok(since_1970) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            self.feed(Input::Utc { unix_us: since_1970.as_micros() as u64 });
        }
    }

    fn feed(&mut self, input: Input<'_>) {
        let now = self.now();
        self.guardian.handle(now, input, &mut self.out);
        self.perform();
        if self.out.sample {
            let sample = self
                .daemon
                .as_ref()
                .and_then(|daemon| scheduling::sample(daemon.pid?, daemon.process.as_ref().map(AsFd::as_fd)));
            let now = self.now();
            self.guardian.handle(now, Input::Process(sample), &mut self.out);
            self.perform();
        }
    }

    fn perform(&mut self) {
        for entry in &self.out.log {
            log(entry.severity, &entry.text);
        }
        if !self.out.autopilot.is_empty()
            && self.link_open
            && let Some(link) = &self.link
        {
            // A frame that does not leave is asked again.
            let _ = link.send(self.out.autopilot.to_vec());
        }
        if let (Some(report), Some(daemon)) = (self.out.report, &self.daemon) {
            // A daemon that does not read is one that does not know that it is protected: its matter.
            let _ = daemon.stream.try_write(&report.encode());
        }
        if self.out.kill
            && let Some(daemon) = &self.daemon
        {
            let killed = match &daemon.process {
                Some(process) => pidfd_send_signal(process, Signal::KILL).map_err(io::Error::from),
                None => Err(io::Error::other("its process is not known")),
            };
            if let Err(error) = killed {
                log(Severity::Error, &format!("the daemon cannot be killed: {error}"));
            }
        }
        if self.out.is_dead {
            // A child of it may keep its socket open: the next daemon does not wait for that.
            self.daemon = None;
        }
    }

    fn accepted(&mut self, accepted: io::Result<(UnixStream, tokio::net::unix::SocketAddr)>) {
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // It stays readable: accepted again at once, it would be all that is done.
                self.accepts_at = KernelInstant::now() + ACCEPT_PAUSE;
                self.not_accepted += 1;
                if self.not_accepted.is_power_of_two() {
                    let times = self.not_accepted;
                    log(Severity::Error, &format!("the socket does not accept ({times}): {error}"));
                }
                return;
            }
        };
        let own = geteuid().as_raw();
        match stream.peer_cred().map(|peer| peer.uid()) {
            Ok(uid) if is_daemons(uid, own) => self.next = Some(stream),
            // Dropped: it hears nothing and keeps no daemon away.
            Ok(uid) => {
                if self.refused_uid.replace(uid) != Some(uid) {
                    let text =
                        format!("a connection: found user {uid}, expected our own ({own}) or root: refused");
                    log(Severity::Error, &text);
                }
            }
            Err(error) => log(Severity::Error, &format!("a connection without its user is refused: {error}")),
        }
    }

    /// The daemon that waits becomes ours when no other is.
    fn take_next(&mut self) {
        if self.daemon.is_some() {
            return;
        }
        let Some(stream) = self.next.take() else { return };
        let pid = stream.peer_cred().ok().and_then(|peer| Pid::from_raw(peer.pid()?));
        let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        if process.is_none() {
            log(Severity::Warning, "no handle of the daemon's process: it could not be killed if it hung");
        }
        self.daemon = Some(Daemon { stream, process, pid, partial: vec![] });
        self.feed(Input::Connected);
    }

    fn receive_pulses(&mut self) {
        let mut buffer = [0; 64 * PULSE_LEN];
        while let Some(daemon) = &mut self.daemon {
            match daemon.stream.try_read(&mut buffer) {
                Ok(0) => return self.daemon_gone(),
                Ok(length) => {
                    daemon.partial.extend_from_slice(buffer.get(..length).unwrap_or_default());
                    let whole = daemon.partial.len() / PULSE_LEN * PULSE_LEN;
                    let rest = daemon.partial.split_off(whole);
                    let records = std::mem::replace(&mut daemon.partial, rest);
                    for record in records.chunks_exact(PULSE_LEN) {
                        let Ok(record) = record.try_into() else { continue };
                        match Beat::decode(record) {
                            Ok(beat) => self.feed(Input::Beat(beat)),
                            Err(error) => {
                                log(Severity::Error, &error.to_string());
                                return self.daemon_gone();
                            }
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // A reset is an end like any other.
                Err(_) => return self.daemon_gone(),
            }
        }
    }

    fn daemon_gone(&mut self) {
        self.daemon = None;
        self.feed(Input::Gone);
    }

    fn link_event(&mut self, event: Option<LinkEvent>) {
        match event {
            Some(LinkEvent::Up) => {
                self.link_open = true;
                self.feed(Input::AutopilotLink(true));
            }
            Some(LinkEvent::Bytes(bytes)) => {
                for piece in bytes.chunks(PIECE_MAX) {
                    self.feed(Input::Autopilot(piece));
                }
            }
            Some(LinkEvent::Down { reason }) => {
                log(Severity::Warning, &reason);
                if std::mem::take(&mut self.link_open) {
                    self.feed(Input::AutopilotLink(false));
                }
            }
            // Its task ended, which it does not: another is made.
            None => {
                self.link = None;
                self.link_open = false;
            }
        }
    }

    /// The port is open exactly while the guardian wants it.
    fn update_port(&mut self) {
        match (self.guardian.wants_port(), self.link.is_some()) {
            (true, false) => {
                self.reserved.clear();
                self.link = Some(Link::spawn(self.settings.endpoint.clone()));
            }
            (false, true) => {
                self.link = None;
                self.link_open = false;
            }
            _ => {}
        }
        // Where there is no more of them, at a later turn.
        while self.link.is_none()
            && self.reserved.len() < RESERVED
            && let Ok(file) = File::open("/dev/null")
        {
            self.reserved.push(file);
        }
    }
}

async fn readable(daemon: Option<&Daemon>) {
    match daemon {
        // An error shows at the read.
        Some(daemon) => drop(daemon.stream.readable().await),
        None => std::future::pending().await,
    }
}

async fn received(link: Option<&mut Link>) -> Option<LinkEvent> {
    match link {
        Some(link) => link.recv().await,
        None => std::future::pending().await,
    }
}

/// To standard error, with the priority that systemd's journal reads (`sd-daemon(3)`).
fn log(severity: Severity, text: &str) {
    let priority = match severity {
        Severity::Info => 6,
        Severity::Warning => 4,
        Severity::Error => 3,
    };
    if std::env::var_os("JOURNAL_STREAM").is_some() {
        eprintln!("<{priority}>{text}");
    } else {
        eprintln!("wingbeat-guard: {text}");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tempfile::TempDir;
    use tokio::{io::AsyncReadExt as _, time::timeout};
    use wingbeat_agent::guardian::{Then, fingerprint};

    use super::*;

    fn settings(socket: PathBuf) -> Settings {
        let endpoint: Endpoint = "tcp:127.0.0.1:1".parse().unwrap();
        let guardian = Config {
            silence: Duration::from_millis(SILENCE_MS),
            hold: Duration::from_secs(HOLD_S),
            then: Then::default(),
            land_below_mv: 0,
            below_for_s: 10,
            other_batteries: 0,
            endpoint: fingerprint(&endpoint.to_string()),
            signing: None,
        };
        Settings { endpoint, socket, guardian }
    }

    #[tokio::test]
    async fn what_is_no_socket_is_named_and_never_deleted() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("precious");
        let refused = |path: &Path| bind(settings(path.into())).err().map(|error| error.to_string());
        fs::write(&path, "kept").unwrap();
        let message = refused(&path).expect("no socket");
        let expected = format!("guard.socket {}: found a regular file, expected a path", path.display());
        assert!(message.starts_with(&expected), "{message}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "kept");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(refused(&link).expect("no socket").contains("found a symbolic link"));
        assert!(refused(folder.path()).expect("no socket").contains("found a directory"));
        // The socket of a guardian that died is replaced, one that lives is not.
        let socket = folder.path().join("guard.sock");
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        let bound = bind(settings(socket.clone())).expect("no process accepts there");
        assert!(refused(&socket).expect("one that lives").contains("found another guardian"));
        assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
        drop(bound);
    }

    #[test]
    fn the_daemon_has_our_user_or_is_roots() {
        assert!(is_daemons(1_000, 1_000) && is_daemons(0, 1_000) && is_daemons(0, 0));
        assert!(!is_daemons(1_001, 1_000) && !is_daemons(1_000, 0));
    }

    /// Connects as another user, and keeps the connection until it is closed. Only root can: elsewhere none.
    fn stranger(socket: &Path) -> Option<std::process::Child> {
        let script = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print('in',flush=True); \
                      sys.exit(len(s.recv(1)))";
        let python = ["/usr/bin/python3", "/usr/local/bin/python3"]
            .into_iter()
            .find(|path| Path::new(path).exists())?;
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", python, "-c", script]).arg(socket);
        command.stdout(std::process::Stdio::piped()).spawn().ok()
    }

    #[tokio::test]
    async fn a_stranger_that_connects_first_does_not_hold_the_place() {
        let folder = TempDir::new().unwrap();
        let socket = folder.path().join("guard.sock");
        let bound = bind(settings(socket.clone())).unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let guarding = tokio::spawn(bound.run(async move { drop(stopped.await) }, || {}));
        if geteuid().is_root() {
            for path in [folder.path(), &socket] {
                fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
            }
            match stranger(&socket) {
                // It sees the end of its connection: no byte.
                Some(mut stranger) => {
                    let ended = tokio::task::spawn_blocking(move || stranger.wait());
                    let status =
                        timeout(Duration::from_secs(30), ended).await.expect("refused").unwrap().unwrap();
                    assert_eq!(
                        status.code(),
                        Some(0),
                        "found it served or unable to connect, expected it refused"
                    );
                }
                None => {
                    println!("skipped: no python3 or setpriv here, so that nothing connects as another user")
                }
            }
        } else {
            println!("skipped: only root can connect as another user");
        }
        // The daemon, which is answered, and a second one, which waits until the first has gone.
        let pulse = wingbeat_agent::guardian::Pulse {
            activity: wingbeat_agent::guardian::Activity::Idle,
            system_id: 0,
            ours: wingbeat_agent::guardian::Modes::default(),
            switch_channel: 0,
            endpoint: fingerprint("tcp:127.0.0.1:1"),
            route: 0,
            takes_up: 0,
        };
        let pulse = Beat { pulse, sequence: 1, driver_age_ms: 0 };
        let mut answers = [0; wingbeat_agent::guardian::REPORT_LEN];
        let mut first = UnixStream::connect(&socket).await.unwrap();
        first.try_write(&pulse.encode()).unwrap();
        timeout(Duration::from_secs(30), first.read_exact(&mut answers)).await.expect("an answer").unwrap();
        let mut second = UnixStream::connect(&socket).await.unwrap();
        second.try_write(&pulse.encode()).unwrap();
        drop(first);
        timeout(Duration::from_secs(30), second.read_exact(&mut answers)).await.expect("an answer").unwrap();
        let _ = stop.send(());
        guarding.await.unwrap();
    }
}
