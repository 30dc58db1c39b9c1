//! `cargo xtask nspawn`: the daemon under systemd, as on an aircraft, with a flight controller on its
//! serial line.
//!
//! A Debian root is booted by `systemd-nspawn` with the package, the sample configuration for a swarm of one,
//! and a pseudo-terminal for `/dev/ttyAMA0`; behind that flies `wingbeat sim --serial`. The PC Companion
//! runs outside. Afterwards the package is upgraded, rolled back, removed and purged. Everything is in a network namespace of its own, in which there is nothing but loopback:
//! ports cannot clash and nothing can leave; in a process namespace and control groups of its own, so that
//! no process is left behind. What is seen is printed with its time; the first thing that is
//! not as it must be is the error.

mod container;
mod flights;
pub(crate) mod http;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
pub(crate) use container::Program;
pub(crate) use flights::{Story, adapt};

use crate::cross::{self, Target};
use crate::packages::Packages;
use crate::{dist, process};

/// Debian's release: that of Raspberry Pi OS, and old enough that what was built here finds its glibc.
const SUITE: &str = "bookworm";
/// The packages of the root besides the essential ones.
const PACKAGES: &str = "systemd,systemd-sysv,dbus,iproute2,iw,iputils-arping";

/// Builds what is needed and runs the test in a network namespace of its own, on a machine that lacks
/// nothing.
pub(crate) fn run(root: &Path) -> Result<()> {
    let me = process::keep_running_program(root, "nspawn")?;
    process::build_wingbeat_dev(root)?;
    let programs = cross::aircraft(root, Target::X86_64, cross::Profile::Dist)?;
    Packages::build(root, Target::X86_64, &programs, &packages(root))?;
    debian(root)?;
    // A namespace begins with a loopback interface that is down.
    let script = "ip link set lo up && exec \"$0\" nspawn --inside";
    // And one of processes: killing this program, or the shell that started it, ends all of them.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig=KILL", "--", "unshare", "--net", "--pid", "--fork", "--kill-child"]);
    command.args(["--mount-proc", "--", "sh", "-c", script]).arg(me);
    process::run(&mut command)
}

/// The test, in the namespace that [`run`] made.
pub(crate) fn run_inside(root: &Path) -> Result<()> {
    let interfaces = std::fs::read_dir("/sys/class/net").map(Iterator::count).unwrap_or_default();
    let namespace = String::from_utf8(process::output(Command::new("ip").args(["-o", "link"]))?)?;
    if namespace.lines().count() != 1 || !namespace.contains(": lo:") {
        bail!(
            "--inside: found {} interfaces ({interfaces} of the machine), expected loopback alone; run `cargo \
             xtask nspawn` without it",
            namespace.lines().count()
        );
    }
    flights::fly(root, &debian_root(root), &Packages::built(&packages(root)))
}

/// What this machine lacks, if anything.
pub(crate) fn missing() -> Result<Option<String>> {
    let mut programs =
        ["systemd-nspawn", "systemctl", "mmdebstrap", "setpriv", "unshare", "nsenter", "ip"].into_iter();
    if let Some(program) = programs.find(|program| !process::is_on_the_path(program)) {
        return Ok(Some(format!("no {program} here")));
    }
    if let Some(what) = dist::missing(Target::X86_64) {
        return Ok(Some(what));
    }
    let id = String::from_utf8(process::output(Command::new("id").arg("-u"))?)?;
    Ok((id.trim() != "0").then(|| format!("it needs root, found user id {}", id.trim())))
}

/// Where Debian's root is kept from run to run, outside of what git sees.
fn debian_root(root: &Path) -> PathBuf {
    root.join("target/nspawn").join(SUITE)
}

/// Returns the folder of the packages of the test.
fn packages(root: &Path) -> PathBuf {
    root.join("target/nspawn/packages")
}

/// Makes Debian's root unless it is there.
fn debian(root: &Path) -> Result<()> {
    let finished = debian_root(root);
    if finished.is_dir() {
        return Ok(());
    }
    println!("making a Debian root ({SUITE}) under {}", finished.display());
    // Under another name until it is whole.
    let unfinished = finished.with_extension("unfinished");
    std::fs::create_dir_all(finished.parent().unwrap_or(root))?;
    if unfinished.exists() {
        std::fs::remove_dir_all(&unfinished)?;
    }
    let mut command = Command::new("mmdebstrap");
    command.args(["--quiet", "--variant=minbase", &format!("--include={PACKAGES}"), SUITE]).arg(&unfinished);
    process::run(&mut command)?;
    std::fs::rename(&unfinished, &finished)?;
    Ok(())
}
