//! ArduCopter programs of the tests, real ones and such that only pretend, and what is left of them.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]
#![allow(clippy::disallowed_methods, reason = "ArduCopter runs in real time")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub fn text_of(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{out}{err}")
}

/// A program with SITL's options that opens no port: a bench waits for it until it is ended.
pub fn pretender(folder: &Path, body: &str) -> PathBuf {
    pretends(folder, "APM:Copter V3.5.7", "--uartA", body)
}

/// The same of 4.x.
pub fn newer_pretender(folder: &Path, body: &str) -> PathBuf {
    pretends(folder, "ArduCopter V4.6.2", "--serial0", body)
}

fn pretends(folder: &Path, version: &str, option: &str, body: &str) -> PathBuf {
    let path = folder.join("arducopter");
    let help = format!("if [ \"$1\" = --help ]; then echo --home --speedup {option}; exit; fi");
    std::fs::write(&path, format!("#!/bin/sh\n# {version}\n{help}\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The real program; none, with a line that gives the reason, where the test is skipped.
pub fn real() -> Option<PathBuf> {
    wingbeat_cosim::program::named("WINGBEAT_SITL")
}

/// The real program of 4.x, for lock step alone; none, with a line that gives the reason, where the test is skipped.
pub fn newer_real() -> Option<PathBuf> {
    wingbeat_cosim::program::named("WINGBEAT_SITL_4")
}

/// Processes that work in a directory under `folder` or have it in their command line.
pub fn left_in(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let works_in = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        if works_in.to_string_lossy().starts_with(&folder) || line.contains(&folder) {
            found.push(line);
        }
    }
    found
}

/// Until nothing runs and no directory is left, with a generous end.
pub fn nothing_is_left(folder: &Path) {
    let end = Instant::now() + Duration::from_secs(30);
    let directories = || std::fs::read_dir(folder).unwrap().flatten().map(|e| e.path()).collect::<Vec<_>>();
    while !(left_in(folder).is_empty() && directories().is_empty()) {
        assert!(Instant::now() < end, "left: {:?}, {:?}", left_in(folder), directories());
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}
