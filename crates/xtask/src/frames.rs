//! `cargo xtask bench frames`: the frame readers side by side (`tests/frames`), into `docs/performance.md`.
//!
//! pymavlink takes part where `WINGBEAT_PYTHON` (or `python3`) can import it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::{bench, process};

const BEGIN: &str = "<!-- measured: written by cargo xtask bench frames -->";
const END: &str = "<!-- end of measured frames -->";

/// Measures, prints, and writes into `docs/performance.md`.
pub(crate) fn run(root: &Path, seed: u64) -> Result<()> {
    let target = root.join("target/frames");
    let mut build = process::cargo();
    build.current_dir(root).args([
        "build",
        "--release",
        "--locked",
        "--manifest-path",
        "tests/frames/Cargo.toml",
    ]);
    process::run(build.arg("--target-dir").arg(&target))?;
    let python = std::env::var_os("WINGBEAT_PYTHON").unwrap_or_else(|| "python3".into());
    let mut imports = Command::new(&python);
    imports.args(["-c", "import pymavlink"]);
    let mut command = Command::new(target.join("release/wingbeat-frames-bench"));
    command.args(["--seed", &seed.to_string()]);
    if process::succeeds_within(&mut imports, Duration::from_secs(20)) {
        command.arg("--python").arg(&python);
    } else {
        println!("skipped: pymavlink ({} cannot import it; WINGBEAT_PYTHON names another)", python.display());
    }
    let finished = process::tee(&mut command)?;
    if !finished.status.success() {
        bail!("the frame readers: found {}, expected exit code 0", finished.status);
    }
    let table = finished.text.trim();
    let measured = format!("{BEGIN}\nMachine: {}. {table}\n{END}", bench::machine());
    bench::replace(&root.join("docs/performance.md"), BEGIN, END, &measured)
}
