//! Every door that takes bytes from outside, as a function: any bytes go in, nothing panics, and what each function
//! asserts holds.
//!
//! Run by the tests (`tests/replay.rs`: the committed corpora, and some thousand inputs from a seed), by `cargo xtask fuzz`
//! (mutations of the corpora at full speed), and by cargo-fuzz under `fuzz/`, which is led by coverage.
#![forbid(unsafe_code)]

pub mod air;
pub mod autopilot;
pub mod files;
pub mod keys;
pub mod mutate;

use std::path::{Path, PathBuf};

/// A door.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name: that of its corpus.
    pub name: &'static str,
    /// What takes the bytes.
    pub run: fn(&[u8]),
}

/// Every door. A new one is a line here, a folder in `fuzz/corpus` and a file in `fuzz/fuzz_targets`.
pub const TARGETS: &[Target] = &[
    Target { name: "frames", run: autopilot::frames },
    Target { name: "jobs", run: autopilot::jobs },
    Target { name: "gateway", run: autopilot::gateway },
    Target { name: "datagrams", run: air::datagrams },
    Target { name: "beacons", run: air::beacons },
    Target { name: "muscop", run: air::muscop },
    Target { name: "follow_me", run: air::follow_me },
    Target { name: "rtcm", run: air::rtcm },
    Target { name: "missions", run: files::missions },
    Target { name: "bodies", run: files::bodies },
    Target { name: "plans", run: files::plans },
    Target { name: "linktests", run: files::linktests },
    Target { name: "keys", run: keys::keys },
];

/// The files of a target's corpus.
///
/// # Errors
/// The folder cannot be read.
pub fn corpus(name: &str) -> std::io::Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files = std::fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>()?;
    files.sort();
    Ok(files)
}
