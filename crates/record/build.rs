//! Versions that decide which bytes come out, as hashes over sources, for the packages whose build script this is: of the agent, whose
//! flights two builds with the same one replay; and of the bench, which flies the same results.

use std::{env, fs, io, path::Path};

/// What an agent is made of, under `crates`.
const AGENT: &[&str] = &["geo", "wire", "protocol", "autopilot", "agent"];
/// What a flight of the bench is made of.
const BENCH: &[&str] =
    &["geo", "wire", "protocol", "autopilot", "agent", "sim", "cosim", "missions", "bench"];

fn main() -> io::Result<()> {
    let of = |name: &str| env::var(name).unwrap_or_default();
    let (variable, parts) = match &*of("CARGO_PKG_NAME") {
        "wingbeat-bench" => ("WINGBEAT_BENCH", BENCH),
        _ => ("WINGBEAT_AGENT", AGENT),
    };
    let crates = Path::new(&of("CARGO_MANIFEST_DIR")).join("..");
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        let sources = crates.join(part).join("src");
        println!("cargo::rerun-if-changed={}", sources.display());
        add(&sources, &mut hash)?;
    }
    println!("cargo::rustc-env={variable}={hash:016x}");
    Ok(())
}

/// Adds the files of a folder by name; tests decide nothing.
fn add(folder: &Path, hash: &mut u64) -> io::Result<()> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("tests") {
            continue;
        }
        if path.is_dir() {
            add(&path, hash)?;
        } else {
            // FNV-1a.
            for &byte in name.as_bytes().iter().chain(&fs::read(&path)?) {
                *hash = (*hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
    }
    Ok(())
}
