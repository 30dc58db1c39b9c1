//! `wingbeat-guard`: lands the aircraft when `wingbeatd` dies in flight.
//!
//! Exit codes: 0 stopped as asked, 2 not started (one message on standard error says what was found and
//! what was expected).
#![forbid(unsafe_code)]

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::Parser;
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};
use wingbeat_onboard::{
    config::{self, kept},
    guard_process, scheduling,
};

/// The Wingbeat guardian: brakes and lands the aircraft when the daemon dies in flight.
#[derive(Debug, Parser)]
#[command(name = "wingbeat-guard", version)]
struct Arguments {
    #[command(flatten)]
    flags: config::Flags,
    /// The directory in which the daemon keeps what the next one must know: its last good configuration.
    #[arg(long, value_name = "DIRECTORY", env = "STATE_DIRECTORY")]
    state: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wingbeat-guard: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let found = kept::read_or_kept(
        &arguments.flags,
        arguments.state.as_deref(),
        kept::Kept::Any,
        config::read_guard,
    )?;
    if let Some(fault) = &found.fault {
        eprintln!("wingbeat-guard: {fault}; the configuration that was last used is used again");
    }
    let settings = found.settings;
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT")?;
    let (socket, endpoint) = (settings.socket.display().to_string(), settings.endpoint.to_string());
    if let Err(error) = scheduling::lock_memory() {
        eprintln!("wingbeat-guard: its memory is not locked: {error}");
    }
    let bound = guard_process::bind(settings)?;
    eprintln!("wingbeat-guard {} at {socket}, autopilot {endpoint}", env!("CARGO_PKG_VERSION"));
    // Without systemd no process waits for the notification, which is no error.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    let stop = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        let _ = sd_notify::notify(&[NotifyState::Stopping]);
    };
    bound.run(stop, || drop(sd_notify::notify(&[NotifyState::Watchdog]))).await;
    Ok(())
}
