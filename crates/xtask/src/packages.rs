//! The aircraft's package as an operator meets it: installed, configured, upgraded, rolled back, removed, purged.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cross::Target;
use crate::dist::{self, Package};
use crate::process;

/// The version after the one that is built; its programs are the same.
const NEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "+next");
const CONFIGURATION: &str = "etc/wingbeat/wingbeatd.toml";

/// The packages of a test.
pub(crate) struct Packages {
    now: PathBuf,
    next: PathBuf,
}

/// A system that packages are installed in.
pub(crate) struct Debian {
    /// Its folder.
    pub(crate) root: PathBuf,
    /// Whether it has only what dpkg needs: then its scripts run outside of it, with `DPKG_ROOT`.
    pub(crate) is_bare: bool,
}

impl Packages {
    /// Builds them in a folder, from programs that are built.
    pub(crate) fn build(root: &Path, target: Target, programs: &Path, out: &Path) -> Result<Self> {
        let deb = |version| dist::deb(root, Package::Aircraft, target, programs, version, out);
        Ok(Self { now: deb(dist::VERSION)?, next: deb(NEXT)? })
    }

    /// Returns those that [`Packages::build`] made there.
    pub(crate) fn built(out: &Path) -> Self {
        let file = |version| out.join(format!("wingbeatd_{version}_amd64.deb"));
        Self { now: file(dist::VERSION), next: file(NEXT) }
    }

    /// The package of the present version.
    pub(crate) fn now(&self) -> &Path {
        &self.now
    }

    /// Installs it in a Debian that may have it from an earlier run.
    pub(crate) fn install(&self, debian: &Debian) -> Result<()> {
        debian.dpkg(&["--purge", "wingbeatd"], None)?;
        debian.dpkg(&["--install"], Some(&self.now))?;
        ensure!(debian.version()? == dist::VERSION, "the installed version is another");
        let user = std::fs::read_to_string(debian.root.join("etc/passwd"))?;
        ensure!(
            user.lines().any(|line| line.starts_with("wingbeat:")),
            "/etc/passwd: found no user wingbeat"
        );
        for unit in ["wingbeatd.service", "wingbeat-guard.service"] {
            let link = debian.root.join("etc/systemd/system/multi-user.target.wants").join(unit);
            ensure!(link.is_symlink(), "{}: found nothing, expected the unit enabled", link.display());
        }
        Ok(())
    }

    /// Upgrades, rolls back, removes and purges it in a Debian that is not running.
    pub(crate) fn come_and_go(&self, debian: &Debian, log: &dyn Fn(&str)) -> Result<()> {
        let refused = debian.foreign()?;
        log(&format!("a package for another architecture is refused: {refused}"));
        let configuration = debian.root.join(CONFIGURATION);
        let edited = std::fs::read_to_string(&configuration)?;
        for (package, expected, what) in
            [(&self.next, NEXT, "upgraded"), (&self.now, dist::VERSION, "rolled back")]
        {
            debian.dpkg(&["--install"], Some(package))?;
            let found = debian.version()?;
            ensure!(found == expected, "{what}: found version {found}, expected {expected}");
            let kept = std::fs::read_to_string(&configuration)?;
            ensure!(kept == edited, "{what}: the operator's configuration was changed");
            log(&format!("{what} to {expected}: the configuration is as it was"));
        }
        debian.dpkg(&["--remove", "wingbeatd"], None)?;
        for gone in ["usr/bin/wingbeatd", "usr/lib/systemd/system/wingbeatd.service"] {
            ensure!(!debian.root.join(gone).exists(), "/{gone}: found after removal, expected none");
        }
        let enabled = debian.root.join("etc/systemd/system/multi-user.target.wants/wingbeatd.service");
        ensure!(!enabled.is_symlink(), "{}: found after removal, expected none", enabled.display());
        ensure!(configuration.exists(), "removed: the configuration is gone, expected it kept");
        log("removed: the configuration is kept");
        debian.dpkg(&["--purge", "wingbeatd"], None)?;
        for gone in ["etc/wingbeat", "var/lib/wingbeat", "var/lib/private/wingbeat"] {
            ensure!(!debian.root.join(gone).exists(), "/{gone}: found after purge, expected none");
        }
        log("purged: nothing is left of it");
        Ok(())
    }
}

impl Debian {
    fn version(&self) -> Result<String> {
        let mut ask = Command::new("dpkg-query");
        ask.arg(format!("--admindir={}", self.root.join("var/lib/dpkg").display()));
        ask.args(["--show", "--showformat=${Version}", "wingbeatd"]);
        Ok(String::from_utf8_lossy(&process::output(&mut ask)?).trim().to_owned())
    }

    /// Tries to install a package of our name for another architecture; returns what dpkg says, with the package's file and
    /// both architectures.
    fn foreign(&self) -> Result<String> {
        let folder = self.root.with_extension("foreign");
        std::fs::create_dir_all(folder.join("DEBIAN"))?;
        let control =
            "Package: wingbeatd\nVersion: 0.0.1\nArchitecture: armhf\nMaintainer: -\nDescription: -\n";
        std::fs::write(folder.join("DEBIAN/control"), control)?;
        let file = self.root.with_file_name("foreign.deb");
        process::output(Command::new("dpkg-deb").arg("--build").args([&folder, &file]))?;
        let output = self.command(&["--install"], Some(&file))?.output()?;
        std::fs::remove_file(&file)?;
        std::fs::remove_dir_all(&folder)?;
        let text = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        let is_named = ["/foreign.deb", "(armhf)", "(amd64)"].iter().all(|part| text.contains(part));
        ensure!(
            !output.status.success() && is_named,
            "another architecture: found {text:?}, expected it refused"
        );
        Ok(text)
    }

    fn dpkg(&self, arguments: &[&str], package: Option<&Path>) -> Result<()> {
        process::run(&mut self.command(arguments, package)?)
    }

    /// Returns dpkg for this system, with a package.
    fn command(&self, arguments: &[&str], package: Option<&Path>) -> Result<Command> {
        if self.is_bare {
            let mut command = Command::new("dpkg");
            command.arg(format!("--root={}", self.root.display())).arg("--force-script-chrootless");
            // Else it writes into the log of the system that it runs in.
            command.arg(format!("--log={}", self.root.join("var/log/dpkg.log").display()));
            command.args(arguments).args(package);
            return Ok(command);
        }
        let mut command = Command::new("chroot");
        command.arg(&self.root).env("DEBIAN_FRONTEND", "noninteractive").arg("dpkg").args(arguments);
        if let Some(package) = package {
            let name = package.file_name().context("a package has a name")?;
            let inside = Path::new("/tmp").join(name);
            std::fs::copy(package, self.root.join("tmp").join(name))
                .with_context(|| format!("copying {}", package.display()))?;
            command.arg(inside);
        }
        Ok(command)
    }
}

/// Makes a folder a bare system in which Debian's database names these packages and versions as installed.
///
/// # Errors
/// The folder cannot be written.
pub(crate) fn bare(folder: &Path, architecture: &str, libc: &str) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    for below in
        ["etc", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log", "usr/lib", "usr/sbin", "usr/bin"]
    {
        std::fs::create_dir_all(folder.join(below))?;
    }
    let package = |name: &str, version: &str| {
        format!(
            "Package: {name}\nStatus: install ok installed\nMaintainer: Debian\nArchitecture: {architecture}\nVersion: {version}\n\
             Description: {name}\n\n"
        )
    };
    let packages = package("dpkg", "1.21.22") + &package("libc6", libc);
    for (file, text) in [
        ("etc/os-release", "ID=debian\n"),
        ("etc/passwd", "root:x:0:0::/root:/bin/sh\n"),
        ("etc/group", "root:x:0:\ndialout:x:20:\n"),
        ("var/lib/dpkg/status", &packages),
        // What belongs to these packages: nothing of it is here.
        ("var/lib/dpkg/info/dpkg.list", "/.\n"),
        ("var/lib/dpkg/info/libc6.list", "/.\n"),
    ] {
        std::fs::write(folder.join(file), text)?;
    }
    Ok(())
}
