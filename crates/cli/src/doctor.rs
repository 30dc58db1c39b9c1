//! `wingbeat doctor`: on the aircraft, names what is wrong with it and how it is cured.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use wingbeat_onboard::config::{self, Flags, Layers};
use wingbeat_onboard::doctor::{self, Kernel, Options};

/// Arguments of `wingbeat doctor`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    flags: Flags,
    /// MAVLink system id of the ground station that the flight controller should obey.
    #[arg(long, value_name = "ID", default_value_t = 255, value_parser = clap::value_parser!(u8).range(1..))]
    gcs_system_id: u8,
    /// For programs: one JSON object instead of lines.
    #[arg(long)]
    json: bool,
}

/// Examines once; the exit code is 0 for all well, 1 for a warning, 2 for a fault.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let options = Options {
        ground_station_id: arguments.gcs_system_id,
        ..Options::new(Layers::read(&arguments.flags).and_then(|layers| config::read(&layers)))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(doctor::examine(&options, &Kernel));
    let text = if arguments.json {
        serde_json::to_string_pretty(&report).context("writing the report")? + "\n"
    } else {
        report.to_string()
    };
    std::io::stdout().write_all(text.as_bytes()).context("writing the report")?;
    Ok(ExitCode::from(report.exit_code()))
}
