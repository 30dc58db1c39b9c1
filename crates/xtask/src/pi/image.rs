//! The Debian that the guest boots: its kernel, a file system that mounts its disk, and that disk.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::cross::debian;
use crate::network::{copy, the_one_in};
use crate::process;

/// Debian's release, that of Raspberry Pi OS.
const SUITE: &str = "bookworm";
const ARCHITECTURE: &str = "arm64";
/// The packages of the root besides the essential ones. No kernel: that wants an initial file system made by an
/// emulated program, which takes half an hour.
const PACKAGES: &str = "systemd,systemd-sysv,dbus,udev,kmod,busybox-static,chrony";
/// The package that depends on the kernel of the day.
const KERNEL: &str = "linux-image-arm64";
/// Small enough that a test fills it in seconds.
const DISK_SIZE: &str = "768M";
/// Which aircraft this is has nothing to do with it; one that is empty would make each boot a first one.
const MACHINE_ID: &str = "0b827eb01020300000000000000000a5\n";

/// What QEMU is started with.
pub(super) struct Image {
    pub(super) kernel: PathBuf,
    pub(super) initrd: PathBuf,
    pub(super) disk: PathBuf,
}

/// Makes what is missing, and the disk anew: what an earlier run wrote there is gone.
pub(super) fn make(root: &Path, folder: &Path) -> Result<Image> {
    let debian = debian_root(folder)?;
    let kernel = kernel(folder)?;
    let image = Image {
        kernel: the_one_in(&kernel.join("boot"), "vmlinuz-")?,
        initrd: folder.join("initrd"),
        disk: folder.join("disk"),
    };
    initial(root, folder, &debian, &kernel, &image.initrd)?;
    furnish(root, &debian)?;
    let mut make = Command::new("mkfs.ext4");
    make.args(["-q", "-F", "-d"]).arg(&debian).arg(&image.disk).arg(DISK_SIZE);
    if image.disk.exists() {
        std::fs::remove_file(&image.disk)?;
    }
    process::run(&mut make)?;
    Ok(image)
}

/// Debian's root, made once per list of packages.
fn debian_root(folder: &Path) -> Result<PathBuf> {
    let include = format!("--include={PACKAGES}");
    once(&folder.join(SUITE), PACKAGES, |unfinished| {
        let mut command = Command::new("mmdebstrap");
        // Without the check of the emulator, which needs another program; `missing` has checked it.
        command.args(["--quiet", "--variant=minbase", "--skip=check/qemu", &include]);
        command
            .args(["--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*"]);
        command.arg(format!("--architectures={ARCHITECTURE}")).arg(SUITE).arg(unfinished);
        process::run(&mut command)
    })
}

/// The kernel's package, unpacked.
fn kernel(folder: &Path) -> Result<PathBuf> {
    once(&folder.join("kernel"), KERNEL, |unfinished| {
        let options = debian::apt(folder, ARCHITECTURE)?;
        let package = debian::dependency(&options, KERNEL, "linux-image-")?;
        debian::unpack(&options, &package, ARCHITECTURE, unfinished)
    })
}

/// A folder that is made by `make` under another name until it is whole, unless it was made with the same list.
fn once(finished: &Path, list: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let note = finished.with_extension("list");
    if finished.is_dir() && std::fs::read_to_string(&note).is_ok_and(|made| made == list) {
        return Ok(finished.to_path_buf());
    }
    println!("pi: making {}", finished.display());
    let unfinished = finished.with_extension("unfinished");
    for earlier in [&unfinished, finished] {
        if earlier.exists() {
            std::fs::remove_dir_all(earlier)?;
        }
    }
    make(&unfinished)?;
    std::fs::rename(&unfinished, finished)?;
    std::fs::write(&note, list)?;
    Ok(finished.to_path_buf())
}

/// The initial file system: busybox, `tests/pi/init` and the modules that it loads.
fn initial(root: &Path, folder: &Path, debian: &Path, kernel: &Path, archive: &Path) -> Result<()> {
    let tree = folder.join("initrd.d");
    if tree.exists() {
        std::fs::remove_dir_all(&tree)?;
    }
    for below in ["bin", "lib", "proc", "sys", "dev", "root"] {
        std::fs::create_dir_all(tree.join(below))?;
    }
    copy(&root.join("tests/pi/init"), &tree.join("init"))?;
    copy(&root.join("tests/pi/modules"), &tree.join("modules"))?;
    copy(&debian.join("bin/busybox"), &tree.join("bin/busybox"))?;
    let modules = the_one_in(&kernel.join("lib/modules"), "")?.join("kernel");
    for module in std::fs::read_to_string(root.join("tests/pi/modules"))?.lines() {
        let from = modules.join(format!("{module}.ko"));
        copy(&from, &tree.join("lib").join(from.file_name().unwrap_or_default()))?;
    }
    // The guest's own busybox: this machine need not have cpio.
    let pack = "find . | \"$0\" \"$1\" cpio -o -H newc 2>/dev/null >\"$2\"";
    let mut command = Command::new("sh");
    command
        .current_dir(&tree)
        .args(["-c", pack, super::EMULATOR])
        .arg(debian.join("bin/busybox"))
        .arg(archive);
    process::run(&mut command)
}

/// Puts in what the test needs inside.
fn furnish(root: &Path, debian: &Path) -> Result<()> {
    let units = debian.join("etc/systemd/system");
    for folder in [
        debian.join("usr/lib/pi"),
        // A journal that is kept.
        debian.join("var/log/journal"),
        units.join("sysinit.target.wants"),
        units.join("multi-user.target.wants"),
    ] {
        std::fs::create_dir_all(folder)?;
    }
    // Started by the test, where it is what is tested.
    let chrony = units.join("multi-user.target.wants/chrony.service");
    if chrony.is_symlink() {
        std::fs::remove_file(chrony)?;
    }
    let mine = root.join("tests/pi");
    copy(&mine.join("control"), &debian.join("usr/lib/pi/control"))?;
    copy(&mine.join("control.service"), &units.join("control.service"))?;
    copy(&mine.join("wired.network"), &debian.join("etc/systemd/network/wired.network"))?;
    std::fs::write(debian.join("etc/machine-id"), MACHINE_ID)?;
    std::fs::write(debian.join("etc/hostname"), "pi\n")?;
    for (unit, target) in [
        ("/etc/systemd/system/control.service", "sysinit.target.wants/control.service"),
        ("/lib/systemd/system/systemd-networkd.service", "multi-user.target.wants/systemd-networkd.service"),
    ] {
        let link = units.join(target);
        if !link.is_symlink() {
            symlink(unit, &link)?;
        }
    }
    Ok(())
}
