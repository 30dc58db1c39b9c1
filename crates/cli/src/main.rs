//! `wingbeat`: what an operator and a developer run on the ground.
//!
//! Bad input (an argument, a file, a port in use) gives one message on standard error and exit code 2.
#![forbid(unsafe_code)]

mod sim;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    Sim(sim::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Sim(arguments) => sim::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wingbeat: {error:#}");
            ExitCode::from(2)
        }
    }
}
