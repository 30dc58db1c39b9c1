//! The version of the agent: a hash over the sources that decide which bytes it answers. Two builds with the same one
//! replay each other's flights.

use std::{env, fs, io, path::Path};

/// What an agent is made of, under `crates`.
const PARTS: [&str; 5] = ["geo", "wire", "protocol", "autopilot", "agent"];

fn main() -> io::Result<()> {
    let crates = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("..");
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for part in PARTS {
        let sources = crates.join(part).join("src");
        println!("cargo::rerun-if-changed={}", sources.display());
        add(&sources, &mut hash)?;
    }
    println!("cargo::rustc-env=WINGBEAT_AGENT={hash:016x}");
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
