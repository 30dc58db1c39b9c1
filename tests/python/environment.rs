//! Python with the MAVLink clients that the tests drive, and one with what opens tables: virtual environments under the target
//! directory, each made by the test that comes first. Included by path, because tests of several crates use it.
#![allow(clippy::disallowed_methods, reason = "processes run in real time")]
#![allow(dead_code, reason = "a test uses one of both")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

/// The virtual environment's interpreter, or why there is none. Whoever has no Python or reaches no
/// registry skips, with a line.
pub(crate) fn python() -> Result<PathBuf, String> {
    static PYTHON: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let words = [
        "pymavlink==2.4.50",
        "pyserial==3.5",
        "mavsdk==4.1.0",
        "dronekit==2.9.2",
        "future==1.0.0",
        "--bare",
        "MAVProxy==1.8.75",
        "--",
        "pymavlink",
        "serial",
        "mavsdk",
        "monotonic",
        "MAVProxy",
    ];
    PYTHON.get_or_init(|| set_up("mavlink-clients", &words)).clone()
}

/// The same with polars, which opens Parquet.
pub(crate) fn tables() -> Result<PathBuf, String> {
    static PYTHON: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PYTHON.get_or_init(|| set_up("tables", &["polars==2.1.0", "--", "polars"])).clone()
}

fn set_up(name: &str, words: &[&str]) -> Result<PathBuf, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python/environment.py");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut child = Command::new("python3")
        .arg(script)
        .arg(folder)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("python3: {error}"))?;
    // A registry that never answers must not hang the suite.
    let end = std::time::Instant::now() + Duration::from_secs(240);
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if std::time::Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            return Err("the packages took longer than 240 s".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(errors.lines().last().unwrap_or("no reason given").to_owned())
}
