//! The package as an operator meets it: installed, configured, upgraded, rolled back, removed, purged.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cross::{self, Target};
use crate::dist::{self, Package};
use crate::process;

/// The version after the one that is built; its programs are the same.
const NEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "+next");
const CONFIGURATION: &str = "etc/wingbeat/wingbeatd.toml";

/// The packages of a test.
pub(super) struct Packages {
    now: PathBuf,
    next: PathBuf,
}

/// Builds them.
pub(super) fn build(root: &Path) -> Result<Packages> {
    let programs = cross::aircraft(root, Target::X86_64, cross::Profile::Dist)?;
    let out = root.join("target/nspawn/packages");
    let deb = |version| dist::deb(root, Package::Aircraft, Target::X86_64, &programs, version, &out);
    Ok(Packages { now: deb(dist::VERSION)?, next: deb(NEXT)? })
}

impl Packages {
    /// Those that [`build`] made.
    pub(super) fn built(root: &Path) -> Self {
        let file = |version| root.join(format!("target/nspawn/packages/wingbeatd_{version}_amd64.deb"));
        Self { now: file(dist::VERSION), next: file(NEXT) }
    }

    /// Installs it in a Debian that may have it from an earlier run.
    pub(super) fn install(&self, debian: &Path) -> Result<()> {
        dpkg(debian, &["--purge", "wingbeatd"], None)?;
        dpkg(debian, &["--install"], Some(&self.now))?;
        ensure!(version(debian)? == dist::VERSION, "the installed version is another");
        let user = std::fs::read_to_string(debian.join("etc/passwd"))?;
        ensure!(
            user.lines().any(|line| line.starts_with("wingbeat:")),
            "/etc/passwd: found no user wingbeat"
        );
        for unit in ["wingbeatd.service", "wingbeat-guard.service"] {
            let link = debian.join("etc/systemd/system/multi-user.target.wants").join(unit);
            ensure!(link.is_symlink(), "{}: found nothing, expected the unit enabled", link.display());
        }
        Ok(())
    }

    /// Upgrades, rolls back, removes and purges it in a Debian that is not running.
    pub(super) fn come_and_go(&self, debian: &Path, log: &dyn Fn(&str)) -> Result<()> {
        let refused = foreign(debian)?;
        log(&format!("a package for another architecture is refused: {refused}"));
        let configuration = debian.join(CONFIGURATION);
        let edited = std::fs::read_to_string(&configuration)?;
        for (package, expected, what) in
            [(&self.next, NEXT, "upgraded"), (&self.now, dist::VERSION, "rolled back")]
        {
            dpkg(debian, &["--install"], Some(package))?;
            let found = version(debian)?;
            ensure!(found == expected, "{what}: found version {found}, expected {expected}");
            let kept = std::fs::read_to_string(&configuration)?;
            ensure!(kept == edited, "{what}: the operator's configuration was changed");
            log(&format!("{what} to {expected}: the configuration is as it was"));
        }
        dpkg(debian, &["--remove", "wingbeatd"], None)?;
        for gone in ["usr/bin/wingbeatd", "usr/lib/systemd/system/wingbeatd.service"] {
            ensure!(!debian.join(gone).exists(), "/{gone}: found after removal, expected none");
        }
        let enabled = debian.join("etc/systemd/system/multi-user.target.wants/wingbeatd.service");
        ensure!(!enabled.is_symlink(), "{}: found after removal, expected none", enabled.display());
        ensure!(configuration.exists(), "removed: the configuration is gone, expected it kept");
        log("removed: the configuration is kept");
        dpkg(debian, &["--purge", "wingbeatd"], None)?;
        for gone in ["etc/wingbeat", "var/lib/wingbeat", "var/lib/private/wingbeat"] {
            ensure!(!debian.join(gone).exists(), "/{gone}: found after purge, expected none");
        }
        log("purged: nothing is left of it");
        Ok(())
    }
}

fn version(debian: &Path) -> Result<String> {
    let mut ask = Command::new("chroot");
    ask.arg(debian).args(["dpkg-query", "--show", "--showformat=${Version}", "wingbeatd"]);
    Ok(String::from_utf8_lossy(&process::output(&mut ask)?).trim().to_owned())
}

/// Tries to install a package of our name for another architecture; what dpkg says, with the package's file and both.
fn foreign(debian: &Path) -> Result<String> {
    let folder = debian.with_extension("foreign");
    std::fs::create_dir_all(folder.join("DEBIAN"))?;
    let control = "Package: wingbeatd\nVersion: 0.0.1\nArchitecture: armhf\nMaintainer: -\nDescription: -\n";
    std::fs::write(folder.join("DEBIAN/control"), control)?;
    let inside = debian.join("foreign.deb");
    process::output(Command::new("dpkg-deb").arg("--build").args([&folder, &inside]))?;
    let mut install = Command::new("chroot");
    let output = install.arg(debian).args(["dpkg", "--install", "/foreign.deb"]).output()?;
    std::fs::remove_file(&inside)?;
    std::fs::remove_dir_all(&folder)?;
    let text = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    let is_named = ["/foreign.deb", "(armhf)", "(amd64)"].iter().all(|part| text.contains(part));
    ensure!(
        !output.status.success() && is_named,
        "another architecture: found {text:?}, expected it refused"
    );
    Ok(text)
}

/// dpkg inside, with a package that is copied there.
fn dpkg(debian: &Path, arguments: &[&str], package: Option<&Path>) -> Result<()> {
    let mut command = Command::new("chroot");
    command.arg(debian).env("DEBIAN_FRONTEND", "noninteractive").arg("dpkg").args(arguments);
    let inside = debian.join("wingbeatd.deb");
    if let Some(package) = package {
        std::fs::copy(package, &inside).with_context(|| format!("copying {}", package.display()))?;
        command.arg("/wingbeatd.deb");
    }
    process::run(&mut command)?;
    if package.is_some() {
        std::fs::remove_file(&inside)?;
    }
    Ok(())
}
