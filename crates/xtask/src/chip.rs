//! The pure crates compile where there is no operating system.
//!
//! Where the chip's target is installed, or can be, each is checked for it: that target has no `std` to
//! link. Elsewhere a probe crate per pure crate is checked on the host: it is `no_std` and brings its own
//! panic handler, so a `std` anywhere below it is a second one, which the compiler refuses. Each crate is
//! checked alone, so that no other crate's features bring `std` in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process;

const TARGET: &str = "thumbv7em-none-eabihf";
const CRATES: &[&str] = &["geo", "wire", "protocol", "autopilot", "console", "agent"];

/// A machine that reaches no download server reports it within this, or hangs.
const INSTALL_LIMIT: Duration = Duration::from_secs(20);

/// Checks every pure crate that exists; the answer is one line with the target.
pub(crate) fn run(root: &Path, on_host: bool) -> Result<String> {
    let names: Vec<_> = CRATES.iter().copied().filter(|name| manifest(root, name).is_file()).collect();
    let mut failed = Vec::new();
    let how = if !on_host && (installed()? || install()) {
        for name in &names {
            let mut check = process::cargo();
            check.current_dir(root).args(["check", "--quiet", "--lib", "--target", TARGET]);
            if process::run(check.args(["--package", &format!("wingbeat-{name}")])).is_err() {
                failed.push(*name);
            }
        }
        format!("for {TARGET}")
    } else {
        for name in &names {
            if probe(root, name).is_err() {
                failed.push(*name);
            }
        }
        let why = if on_host { "as asked".to_owned() } else { format!("{TARGET} is not to be had here") };
        format!("as no_std on the host ({why})")
    };
    if !failed.is_empty() {
        bail!("chip: {} do not compile {how}; expected pure crates to need no std", failed.join(", "));
    }
    Ok(format!("chip: {} compile {how}", names.join(", ")))
}

fn manifest(root: &Path, name: &str) -> PathBuf {
    root.join("crates").join(name).join("Cargo.toml")
}

fn installed() -> Result<bool> {
    let sysroot = process::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let sysroot = String::from_utf8(sysroot).context("rustc's sysroot is not UTF-8")?;
    Ok(Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).join("lib").is_dir())
}

fn install() -> bool {
    process::succeeds_within(Command::new("rustup").args(["target", "add", TARGET]), INSTALL_LIMIT)
}

/// Checks one crate below a probe.
fn probe(root: &Path, name: &str) -> Result<()> {
    let package = format!("wingbeat-{name}");
    let path = root.join("crates").join(name);
    check_probe(
        root,
        name,
        &format!("{package} = {{ path = {path:?} }}\n"),
        &format!("use wingbeat_{name} as _;\n"),
    )
}

fn check_probe(root: &Path, name: &str, dependencies: &str, uses: &str) -> Result<()> {
    let target = root.join("target/chip");
    let folder = target.join("probes").join(name);
    fs::create_dir_all(folder.join("src")).with_context(|| format!("creating {}", folder.display()))?;
    let manifest = format!(
        "[package]\nname = \"chip-probe-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\n{dependencies}\n[workspace]\n"
    );
    let library = format!(
        "#![no_std]\n{uses}\n#[panic_handler]\nfn panic(_: &core::panic::PanicInfo<'_>) -> ! {{\n    loop {{}}\n}}\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).context("writing the probe's Cargo.toml")?;
    fs::write(folder.join("src/lib.rs"), library).context("writing the probe's lib.rs")?;
    // The same versions as in the workspace.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).context("copying Cargo.lock")?;
    let mut check = process::cargo();
    check.current_dir(&folder).env("CARGO_TARGET_DIR", &target).args(["check", "--quiet", "--lib"]);
    process::run(&mut check)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The host's check is only worth its line if a crate that links `std` fails it.
    #[test]
    fn the_hosts_probe_refuses_std_and_takes_core() {
        let root = crate::root();
        check_probe(&root, "self-test-core", "", "use core as _;\n").expect("core alone passes");
        let folder = root.join("target/chip/links-std");
        fs::create_dir_all(folder.join("src")).expect("target is writable");
        fs::write(
            folder.join("Cargo.toml"),
            "[package]\nname = \"links-std\"\nversion = \"0.0.0\"\nedition = \"2024\"\n",
        )
        .expect("target is writable");
        fs::write(
            folder.join("src/lib.rs"),
            "pub fn now() -> std::time::Instant { std::time::Instant::now() }\n",
        )
        .expect("target is writable");
        let dependency = format!("links-std = {{ path = {folder:?} }}\n");
        let refused = check_probe(&root, "self-test-std", &dependency, "use links_std as _;\n");
        assert!(refused.is_err(), "a crate with std passed the check");
    }
}
