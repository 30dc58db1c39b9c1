//! `cargo xtask dist`: what is installed. For each machine the Debian packages `wingbeatd` (aircraft) and `wingbeat`
//! (ground), archives of the programs, a list of the software in them, and the checksums of all.

mod bill;
mod deb;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

use crate::cross::{self, Target};
use crate::{process, web};

/// The version that is built.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// A package, bytes.
const PACKAGE_MOST: u64 = 15_000_000;
/// A program of the aircraft, bytes. That of the ground has the whole bench in it.
const PROGRAM_MOST: u64 = 10_000_000;
/// The only package that ours may need.
const LIBRARY: &str = "libc6";

/// The crate of each package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Package {
    /// `wingbeatd` and `wingbeat-guard`, for aircraft.
    Aircraft,
    /// `wingbeat`, for the ground.
    Ground,
}

impl Package {
    const ALL: [Self; 2] = [Self::Aircraft, Self::Ground];

    fn of_crate(self) -> &'static str {
        match self {
            Self::Aircraft => "wingbeat-onboard",
            Self::Ground => "wingbeat-cli",
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Aircraft => "crates/onboard",
            Self::Ground => "crates/cli",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Aircraft => "wingbeatd",
            Self::Ground => "wingbeat",
        }
    }

    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Aircraft => &["wingbeatd", "wingbeat-guard"],
            Self::Ground => &["wingbeat"],
        }
    }
}

/// What this machine lacks to build packages for `target`, if anything.
pub(crate) fn missing(target: Target) -> Option<String> {
    if let Some(what) = cross::missing(target) {
        return Some(what);
    }
    (!process::is_installed("dpkg-deb")).then(|| "dpkg-deb: not found; install dpkg".to_owned())
}

/// Builds everything for these machines under `target/packages`.
pub(crate) fn run(root: &Path, targets: &[Target]) -> Result<()> {
    web::build_when_stale(root)?;
    let out = root.join("target/packages");
    if out.exists() {
        std::fs::remove_dir_all(&out)?;
    }
    for &target in targets {
        if let Some(what) = missing(target) {
            bail!("{what}");
        }
        let programs = cross::run(root, target)?;
        for package in Package::ALL {
            let file = deb(root, package, target, &programs, VERSION, &out)?;
            println!("dist: {}", judge(&file, package, target)?);
            println!("dist: {}", archive(root, package, target, &programs, &out)?);
        }
    }
    for package in Package::ALL {
        let bill = out.join(format!("{}_{VERSION}.cdx.json", package.name()));
        std::fs::write(&bill, bill::of(root, package.of_crate(), package.name())?)?;
    }
    println!("dist: {}", sums(&out)?);
    Ok(())
}

/// Makes one package of programs that are built, and returns its file.
pub(crate) fn deb(
    root: &Path,
    package: Package,
    target: Target,
    programs: &Path,
    version: &str,
    out: &Path,
) -> Result<PathBuf> {
    let out = std::path::absolute(out)?;
    std::fs::create_dir_all(&out)?;
    let file = out.join(format!("{}_{version}_{}.deb", package.name(), target.debian()));
    let parts = deb::Parts {
        of_crate: &root.join(package.folder()),
        programs,
        version,
        architecture: target.debian(),
        copyright: &copyright(root)?,
    };
    deb::pack(&parts, &file)?;
    Ok(file)
}

/// Returns both licences, one of which a user may choose.
fn copyright(root: &Path) -> Result<String> {
    let read = |file: &str| std::fs::read_to_string(root.join(file)).with_context(|| file.to_owned());
    Ok(format!("{}\n{}", read("LICENSE-MIT")?, read("LICENSE-APACHE")?))
}

/// Holds what the aircraft's programs may have, and returns the bytes of each.
///
/// # Errors
/// A program is missing or has more bytes than the bound.
pub(crate) fn sizes(package: Package, programs: &Path) -> Result<String> {
    let mut sizes = Vec::new();
    for program in package.programs() {
        let path = programs.join(program);
        let bytes = std::fs::metadata(&path).with_context(|| path.display().to_string())?.len();
        let fits = package == Package::Ground || bytes <= PROGRAM_MOST;
        ensure!(fits, "{}: found {bytes} bytes, expected at most {PROGRAM_MOST}", path.display());
        sizes.push(format!("{program} {:.2} MB", bytes as f64 / 1e6));
    }
    Ok(sizes.join(", "))
}

/// Judges a package's fields and size.
///
/// # Errors
/// The package is for another machine, needs more than libc, or is too large.
pub(crate) fn judge(file: &Path, package: Package, target: Target) -> Result<String> {
    let field = |name: &str| -> Result<String> {
        let text = process::output(Command::new("dpkg-deb").arg("--field").arg(file).arg(name))?;
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    };
    let (name, path) = (package.name(), file.display());
    let (architecture, expected) = (field("Architecture")?, target.debian());
    ensure!(architecture == expected, "{path}: found architecture {architecture}, expected {expected}");
    let needs = field("Depends")?;
    let is_library = |need: &str| need.trim().split(' ').next() == Some(LIBRARY);
    ensure!(needs.split(',').all(is_library), "{path}: found Depends: {needs}, expected {LIBRARY} alone");
    let bytes = std::fs::metadata(file)?.len();
    ensure!(bytes <= PACKAGE_MOST, "{path}: found {bytes} bytes, expected at most {PACKAGE_MOST}");
    Ok(format!("{name} for {expected}: {:.1} MB, needs {needs}", bytes as f64 / 1e6))
}

/// The programs alone, for a system without packages.
fn archive(root: &Path, package: Package, target: Target, programs: &Path, out: &Path) -> Result<String> {
    let name = format!("{}-{VERSION}-{}", package.name(), target.triple());
    let folder = out.join(&name);
    std::fs::create_dir_all(&folder)?;
    let sizes = sizes(package, programs)?;
    let mut copies: Vec<PathBuf> = package.programs().iter().map(|name| programs.join(name)).collect();
    let also: &[&str] = match package {
        Package::Aircraft => &[
            "deploy/wingbeatd.toml",
            "deploy/network/wingbeat-network",
            "deploy/network/network.conf",
            "systemd/wingbeatd.service",
            "systemd/wingbeat-guard.service",
            "systemd/wingbeat-network@.service",
        ],
        Package::Ground => &[],
    };
    copies.extend(also.iter().chain(&["LICENSE-MIT", "LICENSE-APACHE"]).map(|file| root.join(file)));
    for from in copies {
        let to = folder.join(from.file_name().unwrap_or_default());
        std::fs::copy(&from, to).with_context(|| format!("copying {}", from.display()))?;
    }
    if package == Package::Ground {
        process::run(Command::new("cp").arg("-r").arg(root.join("web/dist")).arg(folder.join("web")))?;
    }
    // The same content gives the same bytes.
    process::run(
        Command::new("tar")
            .current_dir(out)
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"])
            .args(["--use-compress-program=gzip -n", "-cf", &format!("{name}.tar.gz"), &name]),
    )?;
    std::fs::remove_dir_all(&folder)?;
    Ok(format!("{name}.tar.gz: {sizes}"))
}

/// `SHA256SUMS` of all files, as `sha256sum --check` reads it.
fn sums(out: &Path) -> Result<String> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(out)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.is_file());
    files.sort();
    let mut text = String::new();
    for file in &files {
        let digest = Sha256::digest(std::fs::read(file)?);
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        text.push_str(&format!("{digits}  {name}\n"));
    }
    std::fs::write(out.join("SHA256SUMS"), text)?;
    Ok(format!("{} files and SHA256SUMS in {}", files.len(), out.display()))
}
