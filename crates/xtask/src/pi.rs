//! `cargo xtask pi`: the aircraft's package on a Debian for the Raspberry Pi, with a flight controller on its serial line.
//!
//! QEMU boots Debian's arm64 kernel; the guest's `/dev/ttyAMA0` is a PL011 like the Pi's, and behind it flies
//! `wingbeat sim` on this machine. The package is installed in the guest and enrolled as an operator does it, and
//! `wingbeat ground` shows and commands the aircraft with its keys. What must be seen is in `flights`. Nothing of this
//! machine is changed, and the guest reaches no network.
//!
//! [`emulated`] is the quick check: the same programs for arm64, one by one under qemu-user.

pub(crate) mod emulated;
mod flights;
mod guest;
mod image;
mod operator;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::cross::{self, Target};
use crate::dist::{self, Package};
use crate::process;

/// The machine's emulator.
const MACHINE: &str = "qemu-system-aarch64";
/// That of single programs, which the root is made with.
const EMULATOR: &str = "qemu-aarch64-static";
/// Where the kernel shows the emulators that it starts foreign programs by.
const BINFMT: &str = "/proc/sys/fs/binfmt_misc/qemu-aarch64";

/// What this machine lacks, if anything; with a package that is built already it builds none.
pub(crate) fn missing(package: Option<&Path>) -> Result<Option<String>> {
    for (program, package) in [
        (MACHINE, "qemu-system-arm"),
        (EMULATOR, "qemu-user-static"),
        ("mmdebstrap", "mmdebstrap"),
        ("setpriv", "util-linux"),
    ] {
        if !process::is_installed(program) {
            return Ok(Some(format!("no {program} here; install {package}")));
        }
    }
    if !Path::new("/usr/sbin/mkfs.ext4").is_file() {
        return Ok(Some("no mkfs.ext4 here; install e2fsprogs".to_owned()));
    }
    if let Some(what) = package.map_or_else(|| dist::missing(Target::Aarch64), |_| None) {
        return Ok(Some(what));
    }
    if !Path::new(BINFMT).exists() {
        return Ok(Some(format!("no {BINFMT} here; register {EMULATOR} with binfmt_misc (systemd-binfmt)")));
    }
    let id = String::from_utf8(process::output(Command::new("id").arg("-u"))?)?;
    Ok((id.trim() != "0").then(|| format!("it needs root, found user id {}", id.trim())))
}

/// Builds what is needed, on a machine that lacks nothing, and flies; the package too unless one is given. With
/// `programs` without a machine.
pub(crate) fn run(root: &Path, package: Option<&Path>, programs: bool) -> Result<()> {
    let wingbeat = process::build_wingbeat_dev(root)?;
    if programs {
        return emulated::run(root, &wingbeat, package);
    }
    let folder = folder(root);
    std::fs::create_dir_all(&folder)?;
    let image = image::make(root, &folder)?;
    let package = match package {
        Some(file) => file.to_path_buf(),
        None => {
            let programs = cross::aircraft(root, Target::Aarch64, cross::Profile::Dist)?;
            let out = folder.join("packages");
            dist::deb(root, Package::Aircraft, Target::Aarch64, &programs, dist::VERSION, &out)?
        }
    };
    flights::fly(root, &wingbeat, &folder, &image, &package)
}

/// Where everything is kept from run to run, outside of what git sees.
fn folder(root: &Path) -> PathBuf {
    root.join("target/pi")
}
