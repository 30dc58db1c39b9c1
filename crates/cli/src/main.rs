//! `wingbeat`: what an operator and a developer run on the ground.
//!
//! Bad input (an argument, a file, a port in use) gives one message on standard error and exit code 2;
//! a flight that was flown and did not succeed gives exit code 1.
#![allow(clippy::disallowed_methods, reason = "commands report how long they took")]
#![forbid(unsafe_code)]

#[cfg(unix)]
mod bench;
#[cfg(unix)]
mod campaign;
mod console;
#[cfg(unix)]
mod doctor;
#[cfg(unix)]
mod drills;
#[cfg(not(unix))]
mod elsewhere;
mod fleet;
#[cfg(unix)]
mod formation;
mod ground;
#[cfg(unix)]
mod hazards;
mod import_ini;
#[cfg(unix)]
mod linktest;
#[cfg(unix)]
mod log;
#[cfg(unix)]
mod sim;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{CommandFactory as _, Parser, Subcommand};

/// Swarms of multicopters: ground side, benches and tools.
#[derive(Parser)]
#[command(name = "wingbeat", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve simulated flight controllers on TCP ports, for any ground station or MAVLink library.
    #[cfg(unix)]
    Sim(sim::Arguments),
    /// Not on this system.
    #[cfg(not(unix))]
    Sim(elsewhere::Arguments),
    /// Fly plans in virtual time, or a fleet in real time.
    #[cfg(unix)]
    #[command(subcommand)]
    Bench(bench::Command),
    /// Not on this system.
    #[cfg(not(unix))]
    Bench(elsewhere::Arguments),
    /// Serve the PC Companion: the console of a fleet.
    Ground(ground::Arguments),
    /// On the aircraft: name what is wrong with its computer, line, flight controller and radio, and the cure.
    /// Exit code 0 all well, 1 a warning, 2 a fault.
    #[cfg(unix)]
    Doctor(doctor::Arguments),
    /// Not on this system.
    #[cfg(not(unix))]
    Doctor(elsewhere::Arguments),
    /// Command a fleet through its ground service, and make and renew the keys of a fleet.
    #[command(subcommand)]
    Fleet(fleet::Command),
    /// What tests of the link between two aircraft come to, and a channel table from many.
    #[cfg(unix)]
    #[command(subcommand)]
    Linktest(linktest::Command),
    /// Not on this system.
    #[cfg(not(unix))]
    Linktest(elsewhere::Arguments),
    /// Read flight logs: show, replay, export.
    #[cfg(unix)]
    #[command(subcommand)]
    Log(log::Command),
    /// Not on this system.
    #[cfg(not(unix))]
    Log(elsewhere::Arguments),
    /// Translate ArduSim's ardusim.ini for conf.d, and name what has no counterpart.
    ImportIni(import_ini::Arguments),
    /// List the places of a formation, or check a file of them.
    #[cfg(unix)]
    Formation(formation::Arguments),
    /// Not on this system.
    #[cfg(not(unix))]
    Formation(elsewhere::Arguments),
    /// Print what makes a shell complete these commands: bash, elvish, fish, powershell or zsh.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of these commands into a folder.
    Man {
        /// The folder.
        folder: std::path::PathBuf,
    },
}

/// Returns whether the reader of the output has gone, as `head` does: the command ends without a message.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_it = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    error.chain().filter_map(|cause| cause.downcast_ref()).any(is_it)
}

/// Exit code of a program that a closed pipe ended, as shells report it: not 0, because the results were not all printed.
const READER_GONE: u8 = 128 + 13;

/// Ends silently where `println!` finds that the reader of the output has gone.
fn end_with_the_reader() {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<String>().map_or("", String::as_str);
        if text.starts_with("failed printing to std") && text.contains("Broken pipe") {
            std::process::exit(READER_GONE.into());
        }
        others(panic);
    }));
}

fn main() -> ExitCode {
    end_with_the_reader();
    let result = match Arguments::parse().command {
        #[cfg(unix)]
        Command::Sim(arguments) => sim::run(&arguments).map(|()| ExitCode::SUCCESS),
        #[cfg(unix)]
        Command::Bench(command) => bench::run(&command),
        Command::Ground(arguments) => ground::run(&arguments),
        #[cfg(unix)]
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Fleet(command) => fleet::run(&command),
        #[cfg(unix)]
        Command::Linktest(command) => linktest::run(&command).map(|()| ExitCode::SUCCESS),
        #[cfg(unix)]
        Command::Log(command) => log::run(&command),
        #[cfg(not(unix))]
        Command::Sim(arguments)
        | Command::Bench(arguments)
        | Command::Doctor(arguments)
        | Command::Linktest(arguments)
        | Command::Log(arguments)
        | Command::Formation(arguments) => elsewhere::run(&arguments),
        Command::ImportIni(arguments) => import_ini::run(&arguments).map(|()| ExitCode::SUCCESS),
        #[cfg(unix)]
        Command::Formation(arguments) => formation::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Completions { shell } => completions(shell).map(|()| ExitCode::SUCCESS),
        Command::Man { folder } => manual(&folder).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| {
        if is_broken_pipe(&error) {
            return ExitCode::from(READER_GONE);
        }
        eprintln!("wingbeat: {error:#}");
        ExitCode::from(2)
    })
}

/// For the shell's own folder of completions.
fn completions(shell: clap_complete::Shell) -> Result<()> {
    let mut text = vec![];
    clap_complete::generate(shell, &mut Arguments::command(), "wingbeat", &mut text);
    std::io::Write::write_all(&mut std::io::stdout(), &text).context("writing the completions")
}

/// A page for each command, `wingbeat-bench-run.1` for example.
fn manual(folder: &std::path::Path) -> Result<()> {
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Arguments::command().disable_help_subcommand(true), folder));
    written.with_context(|| format!("{}: the manual pages are not written", folder.display()))
}

/// Ctrl-C, or the signal with which a service manager ends a process: caught from the call on, awaited
/// with what it returns.
fn end_signal() -> Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async {
        // Without the signal the process ends by being killed.
        let _ = tokio::signal::ctrl_c().await;
    })
}
