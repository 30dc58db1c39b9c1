//! `cargo xtask network`: `deploy/network/wingbeat-network` on real 802.11 stacks.
//!
//! QEMU boots Debian's kernel with five radios of `mac80211_hwsim`; `tests/network/init` is its first process and runs
//! `tests/network/cases`. Nothing is emulated of what the program uses: it has Debian's iw, ip, arping, hostapd and
//! `wpa_supplicant`. The machine that runs this is not changed, and no network but the guest's own is there.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::process;

/// Debian's release, as `nspawn` has it.
const SUITE: &str = "bookworm";
/// Packages of the guest; what they depend on comes with them.
const PACKAGES: &str = "dash,coreutils,sed,grep,mawk,iw,iproute2,iputils-arping,hostapd,wpasupplicant,socat,\
     busybox-static,util-linux,kmod,wireless-regdb,linux-image-amd64";
/// A run takes two to six minutes without hardware acceleration.
const LIMIT_S: &str = "1200";
/// Files of the repository that the guest reads under `/wingbeat`.
const FILES: [&str; 4] = [
    "deploy/network/wingbeat-network",
    "deploy/network/network.conf",
    "tests/network/cases",
    "tests/network/modules",
];
/// Writes the initial file system: everything but what a guest of this kind never opens.
const ARCHIVE: &str = "find . \\( -path ./usr/share -o -path ./lib/modules -o -path ./boot -o -path '*/perl*' -o \
     -path '*/gconv' -o -path './var/*' \\) -prune -o -print | bin/busybox cpio -o -H newc >\"$0\" 2>/dev/null";

/// What this machine lacks, if anything.
pub(crate) fn missing() -> Option<String> {
    if !cfg!(target_arch = "x86_64") {
        return Some(format!("the guest is x86-64, this machine is {}", std::env::consts::ARCH));
    }
    let mut programs = ["qemu-system-x86_64", "mmdebstrap", "timeout", "find"].into_iter();
    programs.find(|program| !process::is_installed(program)).map(|program| format!("no {program} here"))
}

/// Boots the guest and reads from its console what passed.
pub(crate) fn run(root: &Path) -> Result<()> {
    let debian = debian(root)?;
    let kernel = the_one_in(&debian.join("boot"), "vmlinuz-")?;
    let initrd = debian.with_extension("cpio");
    furnish(root, &debian)?;
    process::run(Command::new("sh").current_dir(&debian).args(["-c", ARCHIVE]).arg(&initrd))?;
    let mut guest = Command::new("timeout");
    guest.args([
        "--kill-after=5",
        LIMIT_S,
        "qemu-system-x86_64",
        "-accel",
        "tcg",
        "-cpu",
        "max",
        "-m",
        "512",
    ]);
    guest.args(["-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"]);
    guest.args(["-append", "console=ttyS0 quiet panic=-1"]).arg("-kernel").arg(kernel);
    let finished = process::tee(guest.arg("-initrd").arg(&initrd))?;
    ensure!(finished.status.success(), "the guest did not power off: found {}", finished.status);
    judge(&finished.text)
}

/// The last line that counts: `network: N passed, M failed`.
fn judge(console: &str) -> Result<()> {
    let line = console.lines().rev().find_map(|line| line.trim().strip_prefix("network: ")).context(
        "the guest's console: found no line `network: N passed, M failed`, expected it as the last",
    )?;
    let counts: Vec<usize> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    let passed = console.lines().filter(|line| line.starts_with("ok ")).count();
    ensure!(
        passed > 0 && counts == [passed, 0],
        "the guest: found {line}, expected none failed ({passed} lines of those that passed)"
    );
    Ok(())
}

/// Extracts the packages unless that was done with the same list.
fn debian(root: &Path) -> Result<PathBuf> {
    let finished = root.join("target/network").join(SUITE);
    let list = finished.join("packages");
    if std::fs::read_to_string(&list).is_ok_and(|packages| packages == PACKAGES) {
        return Ok(finished);
    }
    println!("extracting Debian packages ({SUITE}) under {}", finished.display());
    // Under another name until it is whole.
    let unfinished = finished.with_extension("unfinished");
    for earlier in [&unfinished, &finished] {
        if earlier.exists() {
            std::fs::remove_dir_all(earlier)?;
        }
    }
    std::fs::create_dir_all(unfinished.parent().unwrap_or(root))?;
    let mut command = Command::new("mmdebstrap");
    command.args(["--quiet", "--variant=extract", &format!("--include={PACKAGES}"), SUITE]).arg(&unfinished);
    process::run(&mut command)?;
    // What scripts of the packages would have done.
    std::os::unix::fs::symlink("mawk", unfinished.join("usr/bin/awk"))?;
    for name in ["regulatory.db", "regulatory.db.p7s"] {
        let firmware = unfinished.join("lib/firmware");
        copy(&firmware.join(format!("{name}-debian")), &firmware.join(name))?;
    }
    std::fs::write(unfinished.join("packages"), PACKAGES)?;
    std::fs::rename(&unfinished, &finished)?;
    Ok(finished)
}

/// Puts in what is tested, and the modules of the kernel.
fn furnish(root: &Path, debian: &Path) -> Result<()> {
    let folder = debian.join("wingbeat");
    std::fs::create_dir_all(&folder)?;
    for file in FILES {
        let from = root.join(file);
        copy(&from, &folder.join(from.file_name().unwrap_or_default()))?;
    }
    copy(&root.join("tests/network/init"), &debian.join("init"))?;
    let kernel = the_one_in(&debian.join("lib/modules"), "")?.join("kernel");
    for line in std::fs::read_to_string(folder.join("modules"))?.lines() {
        let module = line.split(' ').next().unwrap_or_default();
        let from = kernel.join(format!("{module}.ko"));
        copy(&from, &folder.join(from.file_name().unwrap_or_default()))?;
    }
    Ok(())
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).with_context(|| format!("copying {}", from.display()))?;
    Ok(())
}

/// The file or folder that begins with `prefix`; the last if there are several.
pub(crate) fn the_one_in(folder: &Path, prefix: &str) -> Result<PathBuf> {
    let mut names = std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>>>()
        .with_context(|| format!("reading {}", folder.display()))?;
    names.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)));
    names.sort();
    names.pop().with_context(|| format!("{}: found no {prefix}*, expected one", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_passes_only_with_its_last_line() {
        let good = "boot\nok      one\r\nok      two\r\nnetwork: 2 passed, 0 failed\r\n[ 9.1] Power down\n";
        assert!(judge(good).is_ok());
        for (what, console) in [
            ("cut short", "ok      one\n"),
            ("nothing tried", "network: 0 passed, 0 failed\n"),
            ("one failed", "ok      one\nFAILED  two\nnetwork: 1 passed, 1 failed\n"),
            ("counts that lie", "ok      one\nnetwork: 2 passed, 0 failed\n"),
        ] {
            assert!(judge(console).is_err(), "{what}");
        }
    }
}
