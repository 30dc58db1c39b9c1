//! Debian's compiler with a foreign standard library, unpacked beside each other and never installed.
//!
//! `rustc-web` follows upstream closely in Debian's stable releases. rustup's compiler refuses a standard
//! library that another built, so the compiler is Debian's too; rustup's cargo drives it. Each architecture
//! has an apt configuration of its own: an index that fails would otherwise drop the whole list.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

const STANDARD_LIBRARY: &str = "libstd-rust-web-dev";

/// Debian's compiler and how it is driven.
pub(super) struct Compiler {
    sysroot: PathBuf,
    pub(super) version: String,
}

impl Compiler {
    /// Lets a cargo build with it.
    pub(super) fn apply(&self, build: &mut Command) {
        let usr = self.sysroot.join("usr");
        build.env("RUSTC", usr.join("bin/rustc")).env(
            "LD_LIBRARY_PATH",
            std::env::join_paths([usr.join("lib"), usr.join("lib/x86_64-linux-gnu")]).unwrap_or_default(),
        );
    }
}

/// Fetches and unpacks what is missing.
pub(super) fn compiler(folder: &Path, foreign: &str) -> Result<Compiler> {
    let sysroot = folder.join("sysroot").join(foreign);
    let rustc = sysroot.join("usr/bin/rustc");
    if !rustc.is_file() {
        let unfinished = sysroot.with_extension("unfinished");
        if unfinished.exists() {
            std::fs::remove_dir_all(&unfinished)?;
        }
        std::fs::create_dir_all(&unfinished)?;
        let native = apt(folder, "amd64")?;
        // The compiler itself is a library, in a package that is named by its version.
        let library = dependency(&native, STANDARD_LIBRARY, "libstd-rust-web-")?;
        let llvm = dependency(&native, &library, "libllvm")?;
        let other = apt(folder, foreign)?;
        same(foreign, &candidate(&other, STANDARD_LIBRARY)?, &candidate(&native, STANDARD_LIBRARY)?)?;
        for package in ["rustc-web", STANDARD_LIBRARY, &library, &llvm] {
            unpack(&native, package, "amd64", &unfinished)?;
        }
        unpack(&other, STANDARD_LIBRARY, foreign, &unfinished)?;
        std::fs::rename(&unfinished, &sysroot)?;
    }
    let mut compiler = Compiler { sysroot, version: String::new() };
    let mut ask = Command::new(&rustc);
    ask.arg("--version");
    compiler.apply(&mut ask);
    let version = String::from_utf8(process::output(&mut ask)?)?;
    compiler.version = version.split(' ').nth(1).unwrap_or("of an unknown version").to_owned();
    Ok(compiler)
}

/// A private apt for one architecture, with this machine's own sources and keys; its options.
pub(crate) fn apt(folder: &Path, architecture: &str) -> Result<Vec<String>> {
    let private = folder.join("apt").join(architecture);
    for below in ["state/lists/partial", "cache/archives/partial"] {
        std::fs::create_dir_all(private.join(below))?;
    }
    let status = private.join("status");
    std::fs::write(&status, "").with_context(|| format!("writing {}", status.display()))?;
    let options: Vec<String> = [
        format!("APT::Architecture={architecture}"),
        format!("APT::Architectures={architecture}"),
        format!("Dir::State={}", private.join("state").display()),
        format!("Dir::State::status={}", status.display()),
        format!("Dir::Cache={}", private.join("cache").display()),
        "APT::Sandbox::User=root".to_owned(),
    ]
    .into_iter()
    .flat_map(|option| ["-o".to_owned(), option])
    .collect();
    // A source that has nothing for this architecture is no reason to stop: what is needed is asked for next.
    process::succeeds_within(
        Command::new("apt-get").args(&options).args(["-qq", "update"]),
        std::time::Duration::from_secs(300),
    );
    Ok(options)
}

/// The version of a package that would be fetched.
fn candidate(options: &[String], package: &str) -> Result<String> {
    let text = process::output(Command::new("apt-cache").args(options).args(["policy", package]))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let version = text.lines().find_map(|line| line.trim().strip_prefix("Candidate: "));
    match version.filter(|version| *version != "(none)") {
        Some(version) => Ok(version.to_owned()),
        None => bail!("apt-cache policy {package}: found no candidate, expected one"),
    }
}

/// A compiler takes a standard library of its own version only. Debian's mirrors may lag in one architecture.
fn same(foreign: &str, found: &str, expected: &str) -> Result<()> {
    if found != expected {
        bail!(
            "{STANDARD_LIBRARY} for {foreign}: found {found} in Debian's index, expected {expected} as for amd64"
        );
    }
    Ok(())
}

/// The package that `package` depends on and whose name begins like this.
pub(crate) fn dependency(options: &[String], package: &str, prefix: &str) -> Result<String> {
    let text = process::output(Command::new("apt-cache").args(options).args(["depends", package]))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    match names.map(str::trim).find(|name| name.starts_with(prefix)) {
        Some(name) => Ok(name.to_owned()),
        None => bail!("apt-cache depends {package}: found no {prefix}..., expected one"),
    }
}

pub(crate) fn unpack(options: &[String], package: &str, architecture: &str, to: &Path) -> Result<()> {
    let downloads = to.join("downloads").join(architecture);
    std::fs::create_dir_all(&downloads)?;
    let name = format!("{package}:{architecture}");
    process::run(
        Command::new("apt-get").current_dir(&downloads).args(options).args(["-qq", "download", &name]),
    )?;
    for entry in std::fs::read_dir(&downloads)? {
        let file = entry?.path();
        process::run(Command::new("dpkg").arg("-x").arg(&file).arg(to))?;
        std::fs::remove_file(&file)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standard_library_of_another_version_is_refused_before_it_is_unpacked() {
        assert!(same("armhf", "1.96.0-1", "1.96.0-1").is_ok());
        let error = same("armhf", "1.85.0-3", "1.96.0-1").unwrap_err().to_string();
        let expected = "found 1.85.0-3 in Debian's index, expected 1.96.0-1 as for amd64";
        assert_eq!(error, format!("libstd-rust-web-dev for armhf: {expected}"));
    }
}
