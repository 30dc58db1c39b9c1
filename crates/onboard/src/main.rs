//! `wingbeatd`: the daemon on the aircraft.
//!
//! Exit codes: 0 stopped as asked, 1 ended without a request, 2 not started (one message on standard error states
//! what was found and what was expected).
#![forbid(unsafe_code)]

use std::{
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use clap::{Args, Parser, Subcommand};
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::{EnvFilter, layer::SubscriberExt as _, util::SubscriberInitExt as _};
use wingbeat_onboard::{
    Clock, StartError,
    config::{self, ConfigError, Flags, Layers, Settings, kept},
    journal::Journal,
    keys::{
        BUNDLE_LEN_MAX, Store,
        file::{Refused, read_text},
    },
    liveness::Liveness,
    scheduling, state_directory, watchdog,
};
use wingbeat_radio::UdpBroadcast;

/// The exit code of a daemon that did not start.
const NOT_STARTED: u8 = 2;
/// Under systemd, a daemon that did not start is tried again after this.
const NOT_STARTED_PAUSE: Duration = Duration::from_secs(2);

/// The Wingbeat daemon: flies one aircraft of a swarm.
#[derive(Debug, Parser)]
#[command(name = "wingbeatd", version)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
    /// The directory in which a daemon keeps what the next one must know.
    #[arg(long, value_name = "DIRECTORY", env = "STATE_DIRECTORY")]
    state: Option<PathBuf>,
    /// Check the configuration and every device that it names, report what is wrong, and fly nothing.
    #[arg(long)]
    check: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Become a member of a fleet: first ask, with a key that is made here and stays here, then take the fleet's bundle.
    Enrol(Enrol),
    /// Read the configuration, name the first mistake in it, open no device, and fly nothing.
    CheckConfig,
}

#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
struct Enrol {
    /// Write a request for `wingbeat fleet enrol`, - for standard output, and show the code that the operator compares. The secret key is
    /// made where there is none.
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    /// Take the fleet's bundle: the first fixes its authority, and none that is older than the last is taken.
    #[arg(long, value_name = "BUNDLE")]
    accept: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match Box::pin(run(&arguments)).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("wingbeatd: {error:#}");
            if arguments.flies() && std::env::var_os("NOTIFY_SOCKET").is_some() {
                // systemd restarts a daemon that died immediately. One that did not start waits for a
                // person, and would only fill the journal.
                tokio::time::sleep(NOT_STARTED_PAUSE).await;
            }
            ExitCode::from(NOT_STARTED)
        }
    }
}

impl Arguments {
    /// Whether a daemon is asked for, and not only a check.
    fn flies(&self) -> bool {
        !self.check && self.command.is_none()
    }
}

async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !arguments.flies() {
        let layers = Layers::read(&arguments.flags)?;
        return match &arguments.command {
            Some(Command::Enrol(enrol)) => enrol.run(&config::read_store(&layers)?),
            Some(Command::CheckConfig) => check_config(&layers, &config::read(&layers)?),
            None => Ok(check(&layers, &config::read(&layers)?).await),
        };
    }
    log_somewhere()?;
    let state = arguments.state.as_deref();
    // Until this process has ended: another would overwrite what is kept for the next.
    let _lock = state.map(state_directory::lock).transpose().map_err(|why| anyhow!(why))?;
    let kept::Found { settings, layers, fault } = read(&arguments.flags, state)?;
    let mut daemon = settings.daemon;
    if let Some(fault) = &fault {
        tracing::error!("{fault}; the configuration that was last used is used again");
    }
    daemon.configuration_fault = fault;
    daemon.state.clone_from(&arguments.state);
    daemon.seed = seed()?;
    match wingbeat_radio::check(&settings.radio) {
        Err(error) if error.kind.needs_a_person() => {
            return Err(complaint(&layers, RADIO, &error, error.kind.cure()));
        }
        // The radio's task waits for an interface that is missing or down.
        Ok(()) | Err(_) => {}
    }
    // Before READY, so that a stop that comes immediately is not missed.
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT")?;

    let (id, name, autopilot) =
        (daemon.agent.coordination.me(), daemon.name.clone(), daemon.autopilot.clone());
    let seed = daemon.seed;
    let mut tasks = Liveness::default();
    let radio_watchdog = tasks.task("radio", wingbeat_radio::TURN_MAX);
    let radio = UdpBroadcast::spawn_watched(settings.radio, move || radio_watchdog.feed());
    let started = wingbeat_onboard::start(daemon, Clock::real_time(), radio).await;
    let mut handle = started.map_err(|error| not_started(&layers, error))?;
    // Once it is known to start.
    if let Err(error) = scheduling::lock_memory() {
        tracing::warn!(
            "this daemon's memory is not locked: found {error}, expected leave to lock it (LimitMEMLOCK)"
        );
    }
    if let Some(Err(error)) = state.map(|state| kept::keep(state, &layers)) {
        let state = state.unwrap_or(Path::new("")).display();
        tracing::warn!("{state}: found {error}, expected to keep the configuration there for the next start");
    }
    tasks.join(handle.liveness());
    let scheme = if handle.status().borrow().http.secured { "https" } else { "http" };
    tracing::info!(
        aircraft = name,
        id = %id,
        "wingbeatd {} is {id} ({name}), autopilot {autopilot}, API {scheme}://{}, seed {seed:#018x}",
        env!("CARGO_PKG_VERSION"),
        handle.address()
    );
    notify_systemd(&[NotifyState::Ready]);

    let asked = async {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    };
    let feeding = watchdog::run(tasks, handle.status(), sd_notify::watchdog_enabled(), notify_systemd);
    let ended = tokio::select! {
        name = asked => Ok(name),
        why = handle.ended() => Err(why),
        () = feeding => Err("the driver ended".to_owned()),
    };
    notify_systemd(&[NotifyState::Stopping]);
    match ended {
        Ok(name) => {
            tracing::info!("stopping: {name}");
            handle.stop().await;
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            tracing::error!("{why}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Reads what is configured, and warns of variables that are left out.
fn read(flags: &Flags, state: Option<&Path>) -> Result<kept::Found<Settings>, ConfigError> {
    for line in Layers::warnings_here() {
        tracing::warn!("{line}");
    }
    kept::read_or_kept(flags, state, kept::Kept::AsSecure, config::read)
}

impl Enrol {
    fn run(&self, store: &Store) -> anyhow::Result<ExitCode> {
        if let Some(to) = &self.request {
            let request = store.request().map_err(|Refused { found, expected }| {
                anyhow!("enrol: found {found}, expected {expected}")
            })?;
            if to == Path::new("-") {
                print!("{}", request.text());
            } else {
                let written = std::fs::write(to, request.text());
                written.with_context(|| format!("{}: expected a file that can be written", to.display()))?;
            }
            // Not part of the request: the operator compares it with what arrived.
            eprintln!("request of {}, code {}", request.id(), request.code());
        }
        if let Some(from) = &self.accept {
            let expected = "a bundle of a fleet (wingbeat fleet)";
            let text = read_text(from, BUNDLE_LEN_MAX, expected).map_err(|Refused { found, expected }| {
                anyhow!("enrol: found {found}, expected {expected}")
            })?;
            let held = store.accept(&text).with_context(|| format!("{}: not taken", from.display()))?;
            println!("{} holds keys of the fleet: {}", store.id(), held.terms);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Without systemd no process waits for the notification, which is no error.
fn notify_systemd(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd was not notified");
    }
}

/// Says what is configured, and by which files.
fn check_config(layers: &Layers, settings: &Settings) -> anyhow::Result<ExitCode> {
    let warnings = Layers::warnings_here().into_iter().chain(settings.daemon.open_gateway());
    warnings.for_each(|line| eprintln!("wingbeatd: warning: {line}"));
    let daemon = &settings.daemon;
    let (id, protocol) = (daemon.agent.coordination.me(), daemon.agent.coordination.section());
    let files: Vec<String> = layers.paths().map(|path| path.display().to_string()).collect();
    writeln!(std::io::stdout(), "{}: fine: {id} ({}), {protocol}", files.join(", "), daemon.name)?;
    Ok(ExitCode::SUCCESS)
}

/// Keys of what is opened.
const AUTOPILOT: &str = "autopilot.endpoint";
const RADIO: &str = "radio.interface";
const HTTP: &str = "http.bind";
const HTTP_CURE: &str = "ss -ltnp shows which program has a port, ip address what this machine has";
const GUARD: &str = "guard.socket";
const GUARD_CURE: &str = "remove what is there, or correct the key";

/// A mistake that opening shows: with the place of its key, and what a person does about it.
fn complaint(layers: &Layers, key: &str, error: &dyn std::fmt::Display, cure: &str) -> anyhow::Error {
    anyhow!("{}: {key}: {error}; cure: {cure}", layers.place(key))
}

fn not_started(layers: &Layers, error: StartError) -> anyhow::Error {
    match &error {
        StartError::Http { .. } => complaint(layers, HTTP, &error, HTTP_CURE),
        StartError::Guard { .. } => complaint(layers, GUARD, &error, GUARD_CURE),
        StartError::Gateway(_) => {
            complaint(layers, "gateway", &error, "correct gateway.udp or gateway.tcp; ss -lunp, ss -ltnp")
        }
        StartError::Link(link) => complaint(layers, AUTOPILOT, &error, link.kind.cure()),
        StartError::Tls { .. } | StartError::Agent(_) => error.into(),
    }
}

/// Opens everything that the configuration names, once, and reports each result.
async fn check(layers: &Layers, settings: &Settings) -> ExitCode {
    let daemon = &settings.daemon;
    if let Some(warning) = daemon.open_gateway() {
        eprintln!("wingbeatd: warning: {warning}");
    }
    let autopilot = wingbeat_link::check(&daemon.autopilot).await;
    let autopilot = autopilot.map_err(|error| complaint(layers, AUTOPILOT, &error, error.kind.cure()));
    let radio = wingbeat_radio::check(&settings.radio);
    let radio = radio.map_err(|error| complaint(layers, RADIO, &error, error.kind.cure()));
    let http = tokio::net::TcpListener::bind(daemon.http).await.map(drop);
    let http = http.map_err(|error| {
        let expected = "a free port on an address of this machine";
        let error = format!("http {}: found {error}, expected {expected}", daemon.http);
        complaint(layers, HTTP, &error, HTTP_CURE)
    });
    let guard = daemon.guard.as_deref().unwrap_or(std::path::Path::new(""));
    let socket = wingbeat_onboard::check_guard(guard);
    let socket = socket.map_err(|error| complaint(layers, GUARD, &error, GUARD_CURE));
    let mut code = ExitCode::SUCCESS;
    for (what, result) in [
        (format!("autopilot {}", daemon.autopilot), autopilot),
        (format!("radio {:?}", settings.radio.interface.as_deref().unwrap_or("any interface")), radio),
        (format!("http {}", daemon.http), http),
        (format!("guard.socket {}", guard.display()), socket),
    ] {
        match result {
            Ok(()) => println!("{what}: fine"),
            Err(error) => {
                eprintln!("wingbeatd: {error}");
                code = ExitCode::from(NOT_STARTED);
            }
        }
    }
    code
}

/// To the journal where systemd started us, else to standard error. `RUST_LOG` sets what is written.
fn log_somewhere() -> anyhow::Result<()> {
    let filter = match std::env::var("RUST_LOG").as_deref() {
        Err(_) | Ok("") => EnvFilter::new("info"),
        Ok(text) => EnvFilter::try_new(text).with_context(|| {
            format!("RUST_LOG: found {text:?}, expected a level or a list of target=level")
        })?,
    };
    if systemd_journal_logger::connected_to_journal() {
        let journal = systemd_journal_logger::JournalLog::new()
            .context("the journal: found no logger, expected systemd's socket")?;
        tracing_subscriber::registry().with(filter).with(Journal::new(journal)).init();
    } else {
        tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .with_env_filter(filter)
            .with_target(false)
            .init();
    }
    Ok(())
}

/// Every flight draws other random numbers; the seed is logged, so that the flight can be replayed.
fn seed() -> anyhow::Result<u64> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("/dev/urandom: found no random bytes, expected 8")?;
    Ok(u64::from_le_bytes(bytes))
}
