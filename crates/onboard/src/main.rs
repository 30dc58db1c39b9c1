//! `wingbeatd`: the daemon on the aircraft.
//!
//! Exit codes: 0 stopped as asked, 1 ended by itself, 2 not started (one message on standard error says
//! what was found and what was expected).
#![forbid(unsafe_code)]

use std::{
    io::Read as _,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow};
use clap::Parser;
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;
use wingbeat_onboard::{
    Clock, Handle,
    config::{self, Settings},
};
use wingbeat_radio::UdpBroadcast;

/// The exit code of a daemon that did not start.
const NOT_STARTED: u8 = 2;

/// The Wingbeat daemon: flies one aircraft of a swarm.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// The configuration file.
    #[arg(long, value_name = "FILE", default_value = config::DEFAULT_PATH)]
    config: PathBuf,
    /// Read the configuration, try every device that it names, say what is wrong, fly nothing.
    #[arg(long)]
    check: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match Box::pin(run(&arguments)).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("wingbeatd: {error:#}");
            ExitCode::from(NOT_STARTED)
        }
    }
}

async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let settings = config::read(&arguments.config)?;
    if arguments.check {
        return Ok(check(&settings).await);
    }
    log_somewhere()?;
    let mut daemon = settings.daemon;
    daemon.seed = seed()?;
    match wingbeat_radio::check(&settings.radio) {
        Err(error) if error.kind.needs_a_person() => return Err(error.into()),
        // The radio's task waits for an interface that is missing or down.
        Ok(()) | Err(_) => {}
    }
    // Before READY, so that a stop that comes at once is not missed.
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT")?;

    let (id, name, autopilot) = (daemon.agent.muscop.me, daemon.name.clone(), daemon.autopilot.clone());
    let seed = daemon.seed;
    let radio = UdpBroadcast::spawn(settings.radio);
    let mut handle = wingbeat_onboard::start(daemon, Clock::real_time(), radio).await?;
    tracing::info!(
        "wingbeatd {} is {id} ({name}), autopilot {autopilot}, API http://{}, seed {seed:#018x}",
        env!("CARGO_PKG_VERSION"),
        handle.address()
    );
    tell_systemd(&[NotifyState::Ready]);

    let asked = async {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    };
    let feeding = feed_watchdog(&handle);
    let ended = tokio::select! {
        name = asked => Ok(name),
        why = handle.ended() => Err(why),
        () = feeding => Err("the driver ended".to_owned()),
    };
    tell_systemd(&[NotifyState::Stopping]);
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

/// Tells systemd that the driver lives: each published state is proof of one turn of its loop, and it
/// publishes twice a second at least. A driver that hangs is not spoken for, and systemd starts another. It
/// ends when the driver does.
fn feed_watchdog(handle: &Handle) -> impl Future<Output = ()> + 'static {
    let mut status = handle.status();
    let period = sd_notify::watchdog_enabled().map(|interval| interval / 4);
    async move {
        let mut fed = Instant::now();
        let mut told = String::new();
        while status.changed().await.is_ok() {
            let state = status.borrow_and_update().state.clone();
            if state != told {
                tell_systemd(&[NotifyState::Status(&state)]);
                told = state;
            }
            if period.is_some_and(|period: Duration| fed.elapsed() >= period) {
                tell_systemd(&[NotifyState::Watchdog]);
                fed = Instant::now();
            }
        }
    }
}

/// Without systemd there is nobody to tell, which is no error.
fn tell_systemd(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd was not told");
    }
}

/// Opens everything that the configuration names, once, and says how each does.
async fn check(settings: &Settings) -> ExitCode {
    let daemon = &settings.daemon;
    let autopilot = wingbeat_link::check(&daemon.autopilot).await.map_err(|error| error.to_string());
    let radio = wingbeat_radio::check(&settings.radio).map_err(|error| error.to_string());
    let http = tokio::net::TcpListener::bind(daemon.http).await.map(drop).map_err(|error| {
        format!("http {}: found {error}, expected a free port on an address of this machine", daemon.http)
    });
    let mut code = ExitCode::SUCCESS;
    for (what, result) in [
        (format!("autopilot {}", daemon.autopilot), autopilot),
        (format!("radio {:?}", settings.radio.interface.as_deref().unwrap_or("any interface")), radio),
        (format!("http {}", daemon.http), http),
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

/// To the journal where systemd started us, else to standard error. `RUST_LOG` sets the level.
///
/// The journal's logger is one of the crate `log`: tracing hands it every event by its feature `log-always`
/// (`docs/decisions/0002-journal-logger.md`), and no subscriber is set beside it.
fn log_somewhere() -> anyhow::Result<()> {
    let level = std::env::var("RUST_LOG").ok();
    if systemd_journal_logger::connected_to_journal() {
        let level = match level.as_deref().map(str::parse) {
            None => log::LevelFilter::Info,
            Some(Ok(level)) => level,
            Some(Err(_)) => {
                return Err(anyhow!(
                    "RUST_LOG: found {:?}, expected off, error, warn, info, debug or trace",
                    level.unwrap_or_default()
                ));
            }
        };
        systemd_journal_logger::JournalLog::new()
            .and_then(|journal| journal.install().map_err(std::io::Error::other))
            .context("the journal: found no logger, expected systemd's socket")?;
        log::set_max_level(level);
    } else {
        let filter = match level.as_deref() {
            None | Some("") => EnvFilter::new("info"),
            Some(text) => EnvFilter::try_new(text).with_context(|| {
                format!("RUST_LOG: found {text:?}, expected a level or a list of target=level")
            })?,
        };
        tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .with_env_filter(filter)
            .with_target(false)
            .init();
    }
    Ok(())
}

/// Another flight, other luck; it is logged, so that the flight can be replayed.
fn seed() -> anyhow::Result<u64> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("/dev/urandom: found no random bytes, expected 8")?;
    Ok(u64::from_le_bytes(bytes))
}
