//! Commands that need Linux, on another system: one message, and nothing is done.

use std::process::ExitCode;

use anyhow::{Result, bail};

/// Whatever was asked for.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    bail!(
        "found {}, expected Linux (WSL 2 is one): wingbeat ground, fleet and import-ini are here, and not this command{}",
        std::env::consts::OS,
        arguments.rest.first().map_or(String::new(), |first| format!(" ({first})"))
    );
}
