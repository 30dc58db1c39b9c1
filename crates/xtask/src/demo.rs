//! `cargo xtask demo`: builds the web page and the program, then becomes it, so that Ctrl-C and the exit
//! code are its own.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, web};

/// Where the demo serves the PC Companion.
const GROUND: &str = "127.0.0.1:8700";
/// The map of its place, unless another is given.
const TILES: &str = "deploy/maps/valencia.pmtiles";

/// Builds and runs; returns only if the program could not be started.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    if !arguments.iter().any(|argument| argument == "--headless") {
        web::build_when_stale(root)?;
    }
    let program = process::build_wingbeat(root)?;
    let mut fleet = Command::new(&program);
    fleet.args(["bench", "fleet", "--ground", GROUND, "--web"]).arg(root.join("web/dist"));
    if !arguments.iter().any(|argument| argument == "--tiles" || argument.starts_with("--tiles=")) {
        fleet.arg("--tiles").arg(root.join(TILES));
    }
    fleet.args(arguments);
    become_it(fleet).with_context(|| format!("starting {}", program.display()))
}

#[cfg(unix)]
fn become_it(mut command: Command) -> std::io::Result<()> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

#[cfg(not(unix))]
fn become_it(mut command: Command) -> std::io::Result<()> {
    let status = command.status()?;
    std::process::exit(status.code().unwrap_or(1))
}
