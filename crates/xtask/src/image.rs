//! `cargo xtask image`: `deploy/image/wingbeat-image` on images that are made here: a partition table, a FAT partition with the files of
//! Raspberry Pi's firmware, and an ext4 partition with a Debian's database of packages.
//!
//! The packages are ours as `cargo xtask dist` makes them but for the programs, which are not run: so the test needs
//! no cross compiler. What it reads afterwards, it reads from the image.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::cross::Target;
use crate::dist::{self, Package};
use crate::{packages, process};

const MIB: u64 = 1 << 20;
/// Where the partitions begin and how long they are, MiB.
const FIRMWARE: (u64, u64) = (4, 36);
const SYSTEM: (u64, u64) = (48, 48);
/// Raspberry Pi OS has these at the ends of longer files.
const CONFIG: &str = "dtparam=audio=on\n\n[cm4]\notg_mode=1\n";
const CMDLINE: &str = "console=serial0,115200 console=tty1 root=PARTUUID=4e639091-02 rootfstype=ext4 fsck.repair=yes rootwait quiet\n";
const PROGRAMS: [&str; 11] = [
    "sfdisk",
    "mkfs.vfat",
    "mkfs.ext4",
    "mcopy",
    "mount",
    "losetup",
    "dpkg",
    "dpkg-deb",
    "systemctl",
    "systemd-sysusers",
    "xz",
];

/// What this machine lacks, if anything.
pub(crate) fn missing() -> Result<Option<String>> {
    if let Some(program) = PROGRAMS.into_iter().find(|program| !process::is_on_the_path(program)) {
        return Ok(Some(format!("no {program} here")));
    }
    let id = String::from_utf8(process::output(Command::new("id").arg("-u"))?)?;
    if id.trim() != "0" {
        return Ok(Some(format!("it needs root, found user id {}", id.trim())));
    }
    let has_loop = Command::new("losetup").arg("--find").output()?.status.success();
    Ok((!has_loop).then(|| "no loop devices here".to_owned()))
}

/// Makes images and packages, and tries everything.
pub(crate) fn run(root: &Path) -> Result<()> {
    let folder = root.join("target/image");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(folder.join("files"))?;
    let test = Test { root: root.to_owned(), folder };
    for target in [Target::Aarch64, Target::Armv7, Target::X86_64] {
        test.becomes_an_aircrafts(target)?;
    }
    test.is_refused()
}

struct Test {
    root: PathBuf,
    folder: PathBuf,
}

/// What the recipe said, and how it ended.
struct Said {
    code: Option<i32>,
    text: String,
}

impl Test {
    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.folder.join("files").join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// The aircraft's package with programs that are none.
    fn package(&self, target: Target, version: &str) -> Result<PathBuf> {
        let programs = self.folder.join("target").join(target.triple()).join("dist");
        std::fs::create_dir_all(&programs)?;
        for name in ["wingbeatd", "wingbeat-guard"] {
            std::fs::write(programs.join(name), "a program\n")?;
        }
        dist::deb(&self.root, Package::Aircraft, target, &programs, version, &self.folder.join("files"))
    }

    /// An image of a system whose Debian has this architecture and libc.
    fn image(&self, architecture: &str, libc: &str) -> Result<PathBuf> {
        let system = self.folder.join("system");
        packages::bare(&system, architecture, libc)?;
        for (file, text) in [
            ("etc/hostname", "raspberrypi\n"),
            ("etc/hosts", "127.0.0.1\tlocalhost\n127.0.1.1\traspberrypi\n"),
            ("usr/bin/ip", ""),
        ] {
            std::fs::write(system.join(file), text)?;
        }
        let image = self.folder.join(format!("{architecture}.img"));
        let file = std::fs::File::create(&image)?;
        file.set_len((SYSTEM.0 + SYSTEM.1 + 1) * MIB)?;
        let lines = format!(
            "label: dos\nstart={}MiB, size={}MiB, type=c\nstart={}MiB, size={}MiB, type=83\n",
            FIRMWARE.0, FIRMWARE.1, SYSTEM.0, SYSTEM.1
        );
        let lines = self.file("table", lines)?;
        shell("sfdisk --quiet \"$1\" <\"$2\"", &[&image, &lines])?;
        let at = |mib: u64| format!("offset={}", mib * MIB);
        shell(
            &format!("mkfs.vfat --offset {} \"$1\" {} >/dev/null 2>&1", FIRMWARE.0 * 2048, FIRMWARE.1 * 1024),
            &[&image],
        )?;
        shell(
            &format!("mkfs.ext4 -q -F -E {} -d \"$2\" \"$1\" {}M >/dev/null 2>&1", at(SYSTEM.0), SYSTEM.1),
            &[&image, &system],
        )?;
        for (name, text) in [("config.txt", CONFIG), ("cmdline.txt", CMDLINE)] {
            let from = self.file(name, text)?;
            shell(&format!("mcopy -i \"$1@@{}\" \"$2\" ::{name}", FIRMWARE.0 * MIB), &[&image, &from])?;
        }
        Ok(image)
    }

    fn recipe(&self, arguments: &[&str], files: &[&Path]) -> Result<Said> {
        let mut command = Command::new("sh");
        command.arg(self.root.join("deploy/image/wingbeat-image")).args(arguments).args(files);
        let output = command.output()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(Said { code: output.status.code(), text })
    }

    /// A file of the firmware.
    fn firmware(&self, image: &Path, name: &str) -> Result<String> {
        let output = process::output(
            Command::new("mcopy")
                .arg("-n")
                .arg("-i")
                .arg(format!("{}@@{}", image.display(), FIRMWARE.0 * MIB))
                .args([&format!("::{name}"), "-"]),
        )?;
        Ok(String::from_utf8(output)?)
    }

    /// Does something with the system of an image mounted.
    fn inside<T>(&self, image: &Path, step: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        let at = self.folder.join("mounted");
        std::fs::create_dir_all(&at)?;
        let options = format!("loop,ro,offset={},sizelimit={}", SYSTEM.0 * MIB, SYSTEM.1 * MIB);
        process::run(Command::new("mount").args(["-t", "ext4", "-o", &options]).arg(image).arg(&at))?;
        let result = step(&at);
        process::run(Command::new("umount").arg(&at))?;
        result
    }

    fn becomes_an_aircrafts(&self, target: Target) -> Result<()> {
        let architecture = target.debian();
        let image = self.image(architecture, "2.36-9+rpt2+deb12u10")?;
        let package = self.package(target, dist::VERSION)?;
        let config = self.file("aircraft.toml", "# of this aircraft\n")?;
        let network = std::fs::read(self.root.join("deploy/network/network.conf"))?;
        let network = self.file("network.conf", network)?;
        let (key, bundle) = (self.file("key", "a key\n")?, self.file("bundle", "a bundle\n")?);
        let path = |path: &Path| path.display().to_string();
        let options = [
            "--package",
            &path(&package),
            "--hostname",
            "uav-0203",
            "--id",
            "0000b827eb010203",
            "--config",
            &path(&config),
            "--network",
            &path(&network),
            "--key",
            &path(&key),
            "--bundle",
            &path(&bundle),
        ];
        let mut first = None;
        // Again, with what is there already.
        for turn in ["once", "twice"] {
            let said = self.recipe(&options, &[&image])?;
            ensure!(said.code == Some(0), "{architecture}, {turn}: found {:?}: {}", said.code, said.text);
            let lacks = said.text.lines().filter(|line| line.contains("warning: ")).count();
            ensure!(
                lacks == 2,
                "{architecture}: found {}, expected iw and arping named as missing",
                said.text
            );
            let boot = (self.firmware(&image, "config.txt")?, self.firmware(&image, "cmdline.txt")?);
            let expected = "[cm4]\notg_mode=1\n\n# wingbeat: the first UART is that of the flight controller\n[all]\nenable_uart=1\n\
                            dtparam=uart0=on\ndtoverlay=disable-bt\n";
            ensure!(
                boot.0.ends_with(expected),
                "config.txt: found {}, expected {expected} at its end",
                boot.0
            );
            ensure!(
                boot.1 == CMDLINE.replace("console=serial0,115200 ", ""),
                "cmdline.txt: found {}",
                boot.1
            );
            let system = self.inside(&image, |system| judge(system, architecture))?;
            match &first {
                None => first = Some((boot, system)),
                Some(first) => ensure!(*first == (boot, system), "a second run changed the image"),
            }
        }
        println!(
            "image: {architecture}: package, serial line, host name, id, network, keys; the same after a second run"
        );
        // An upgrade keeps what is the aircraft's.
        let next = self.package(target, &format!("{}+next", dist::VERSION))?;
        let said = self.recipe(&["--package", &path(&next)], &[&image])?;
        ensure!(
            said.code == Some(0),
            "{architecture}, another version: found {:?}: {}",
            said.code,
            said.text
        );
        self.inside(&image, |system| judge(system, architecture).map(drop))?;
        println!("image: {architecture}: another version keeps configuration and keys");
        Ok(())
    }

    /// Each refusal is one message with what, found, expected and cure, and leaves the image as it is.
    fn is_refused(&self) -> Result<()> {
        let arm64 = self.package(Target::Aarch64, dist::VERSION)?;
        let amd64 = self.package(Target::X86_64, dist::VERSION)?;
        let (arm64, amd64) = (arm64.display().to_string(), amd64.display().to_string());
        let good = self.image("arm64", "2.36-9")?;
        let name = |file: &str| self.folder.join("files").join(file);
        let noise = self.file("noise.img", vec![0x5a; 1 << 20])?;
        let archive = name("archive.img");
        shell("xz --stdout \"$1\" >\"$2\"", &[&self.file("part", CONFIG)?, &archive])?;
        let empty = self.file("empty.img", vec![0; 8 << 20])?;
        shell("echo 'label: dos' | sfdisk --quiet \"$1\"", &[&empty])?;
        let foreign = name("foreign.img");
        std::fs::copy(&good, &foreign)?;
        shell(&format!("mdel -i \"$1@@{}\" ::config.txt", FIRMWARE.0 * MIB), &[&foreign])?;
        let folder = self.folder.join("files");
        let no_interface = self.file("none.conf", "MODE=ibss\n")?.display().to_string();
        let key = name("key").display().to_string();
        let old = name("old.img");
        std::fs::rename(self.image("arm64", "2.31-13+deb11u11")?, &old)?;
        let good = self.image("arm64", "2.36-9")?;
        let nowhere = folder.join("nowhere.img");
        for (what, options, image, parts) in [
            ("no package", vec![], &good, ["--package: found none", "cargo xtask dist"]),
            ("no such image", vec!["--package", &arm64], &nowhere, ["nowhere.img", "found no regular file"]),
            ("a folder", vec!["--package", &arm64], &folder, ["files", "found no regular file"]),
            ("noise", vec!["--package", &arm64], &noise, ["noise.img", "found no partition table"]),
            ("an archive", vec!["--package", &arm64], &archive, ["found an xz archive", "unxz"]),
            ("no partitions", vec!["--package", &arm64], &empty, ["empty.img", "found no partitions"]),
            ("another system", vec!["--package", &arm64], &foreign, ["config.txt", "Raspberry Pi OS"]),
            (
                "a package for another architecture",
                vec!["--package", &amd64],
                &good,
                ["found a package for amd64, and", "wingbeatd_VERSION_arm64.deb"],
            ),
            ("an old system", vec!["--package", &arm64], &old, ["found libc6 2.31", "2.34 or newer"]),
            (
                "no package at all",
                vec!["--package", &key],
                &good,
                ["--package: found", "the package wingbeatd"],
            ),
            (
                "a bundle alone",
                vec!["--package", &arm64, "--bundle", &key],
                &good,
                ["--bundle: found", "both"],
            ),
            ("an id", vec!["--package", &arm64, "--id", "203"], &good, ["--id: found '203'", "16 hex"]),
            (
                "a host name",
                vec!["--package", &arm64, "--hostname", "a b"],
                &good,
                ["--hostname: found 'a b'", "for example"],
            ),
            (
                "a network without interface",
                vec!["--package", &arm64, "--network", &no_interface],
                &good,
                ["none.conf: INTERFACE: found ''", "INTERFACE=wlan1"],
            ),
            ("an option", vec!["--colour", "red"], &good, ["--colour: found no such option", "--help"]),
        ] {
            let before = std::fs::read(image).ok();
            let said = self.recipe(&options, &[image])?;
            let is_one = said.text.lines().count() == 1 && said.text.contains("; cure: ");
            let has_all = parts.iter().all(|part| said.text.contains(part));
            ensure!(
                said.code == Some(2) && is_one && has_all,
                "{what}: found {:?} and {:?}, expected code 2 and one line with {parts:?}",
                said.code,
                said.text
            );
            ensure!(std::fs::read(image).ok() == before, "{what}: the image was changed");
            println!("image: refused: {}", said.text.trim());
        }
        // As any user but root.
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh"]);
        let script = self.root.join("deploy/image/wingbeat-image");
        let Ok(script) = std::fs::File::open(script) else { bail!("deploy/image/wingbeat-image: not found") };
        // Read from here: the folders above may be closed to others.
        let copy = Path::new("/tmp").join(format!("wingbeat-image-test-{}", std::process::id()));
        std::fs::create_dir(&copy)?;
        for from in [&good, Path::new(&arm64)] {
            let to = copy.join(from.file_name().context("a name")?);
            std::fs::copy(from, to)?;
        }
        let output = command
            .args(["-s", "--", "--package"])
            .arg(copy.join(Path::new(&arm64).file_name().context("a name")?))
            .arg(copy.join("arm64.img"))
            .stdin(script)
            .output();
        std::fs::remove_dir_all(&copy)?;
        let output = output?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            output.status.code() == Some(2) && text.contains("the user: found nobody, expected root"),
            "another user: found {:?} and {text:?}, expected code 2",
            output.status.code()
        );
        println!("image: refused: {}", text.trim());
        Ok(())
    }
}

/// What must be in the system of the image; all files with their contents, but for the package's own list of them.
fn judge(system: &Path, architecture: &str) -> Result<String> {
    let read = |file: &str| {
        std::fs::read_to_string(system.join(file))
            .with_context(|| format!("{file}: expected it in the image"))
    };
    let has = |file: &str, part: &str| -> Result<()> {
        let text = read(file)?;
        ensure!(text.contains(part), "{file}: found {text:?}, expected {part:?} in it");
        Ok(())
    };
    has("etc/hostname", "uav-0203\n")?;
    has("etc/hosts", "127.0.0.1\tlocalhost\n127.0.1.1\tuav-0203\n")?;
    ensure!(!read("etc/hosts")?.contains("raspberrypi"), "etc/hosts: found the old name");
    has("etc/passwd", "\nwingbeat:")?;
    has("etc/group", "dialout:x:20:wingbeat")?;
    has("etc/wingbeat/wingbeatd.toml", "# of this aircraft")?;
    has("etc/wingbeat/conf.d/50-image.toml", "id = \"0000b827eb010203\"\n")?;
    has("etc/wingbeat/network.conf", "INTERFACE=wlan1")?;
    has("var/lib/wingbeat/aircraft.key", "a key")?;
    has("var/lib/wingbeat/fleet.bundle", "a bundle")?;
    has("usr/bin/wingbeatd", "a program")?;
    let package = "Package: wingbeatd\nStatus: install ok installed\nPriority: optional\nSection: net\n";
    has("var/lib/dpkg/status", package)?;
    let status = read("var/lib/dpkg/status")?;
    let entry =
        status.split("\n\n").find(|entry| entry.starts_with("Package: wingbeatd")).unwrap_or_default();
    ensure!(entry.contains(&format!("Architecture: {architecture}\n")), "status: found {entry}");
    for (link, to) in [
        ("multi-user.target.wants/wingbeatd.service", "wingbeatd.service"),
        ("multi-user.target.wants/wingbeat-guard.service", "wingbeat-guard.service"),
        (
            "sys-subsystem-net-devices-wlan1.device.wants/wingbeat-network@wlan1.service",
            "wingbeat-network@.service",
        ),
        ("hciuart.service", "/dev/null"),
        ("serial-getty@ttyAMA0.service", "/dev/null"),
    ] {
        let path = system.join("etc/systemd/system").join(link);
        let found = std::fs::read_link(&path).with_context(|| format!("{link}: expected a link"))?;
        ensure!(
            found.ends_with(to) || found == Path::new(to),
            "{link}: found {}, expected {to}",
            found.display()
        );
    }
    for secret in ["var/lib/wingbeat", "var/lib/wingbeat/aircraft.key"] {
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(system.join(secret))?.permissions());
        ensure!(mode & 0o077 == 0, "{secret}: found mode {mode:o}, expected it closed to others");
    }
    let list = "find . -type f ! -path './var/lib/dpkg/*-old' ! -name '*-' -exec sha256sum {} + -o -type l -printf '%l  %p\\n' | sort";
    let found = process::output(Command::new("sh").current_dir(system).args(["-c", list]))?;
    Ok(String::from_utf8(found)?)
}

fn shell(script: &str, files: &[&Path]) -> Result<()> {
    process::run(Command::new("sh").args(["-ec", script, "sh"]).args(files))
}
