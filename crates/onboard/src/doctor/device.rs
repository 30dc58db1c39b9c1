//! The serial device, from the machine's files: present, permitted, no kernel console, not the Bluetooth
//! modem's, not open elsewhere.
//!
//! Facts: on a Raspberry Pi 3, 4 and Zero W the good UART (PL011, `ttyAMA0`) is the Bluetooth modem's unless
//! an overlay gives it back, and the pins carry the mini UART (`ttyS0`), whose rate follows the core's clock
//! (<https://www.raspberrypi.com/documentation/computers/configuration.html#configure-uarts>).

use std::{
    fs,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use wingbeat_link::{Holder, holder, kernel_console};

use super::Finding;

/// The group that the unit `wingbeatd.service` puts the daemon into.
const GROUP: &str = "dialout";
/// The process that takes the line when the daemon dies, as the kernel names it.
const GUARDIAN: &str = "wingbeat-guard";
/// Overlays that take the PL011 back from the Bluetooth modem.
const OVERLAYS: [&str; 4] = ["disable-bt", "miniuart-bt", "pi3-disable-bt", "pi3-miniuart-bt"];
/// Read and write for owner, group and others.
const OWNER_RW: u32 = 0o600;
const GROUP_RW: u32 = 0o060;
const OTHERS_RW: u32 = 0o006;

/// Checks a device; true where the line may be opened.
pub(super) async fn examine(
    root: &Path,
    path: &Path,
    daemon_runs: bool,
    findings: &mut Vec<Finding>,
) -> bool {
    let facts = Facts { root: root.to_owned(), path: path.to_owned(), daemon_runs };
    // It walks through all processes' open files.
    let checked = tokio::task::spawn_blocking(move || {
        let mut findings = vec![];
        let usable = facts.examine(&mut findings);
        (usable, findings)
    });
    match checked.await {
        Ok((usable, more)) => {
            findings.extend(more);
            usable
        }
        Err(_) => false,
    }
}

struct Facts {
    root: PathBuf,
    path: PathBuf,
    daemon_runs: bool,
}

/// A path of the aircraft, below the root.
pub(super) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

impl Facts {
    fn examine(&self, findings: &mut Vec<Finding>) -> bool {
        let here = below(&self.root, &self.path);
        let shown = self.path.display();
        let Ok(metadata) = fs::metadata(&here) else {
            findings.push(Finding::fault(
                "device",
                format!("no {shown}"),
                "a serial device",
                "connect it; on a Raspberry Pi enable_uart=1 in config.txt, then restart; `ls -l /dev/serial*` \
                 shows those that there are",
            ));
            self.bluetooth(findings);
            return false;
        };
        if !metadata.file_type().is_char_device() {
            findings.push(Finding::fault(
                "device",
                format!("{shown}, which is no character device"),
                "a serial device",
                "correct autopilot.endpoint",
            ));
            return false;
        }
        findings.push(Finding::ok("device", format!("{shown}")));
        let permitted = self.permission(&metadata, findings);
        let holder = holder(&here, &self.root);
        let free = self.console(&here, holder.as_ref(), findings);
        self.bluetooth(findings);
        permitted && free && self.held(holder, findings)
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    /// The device's name, for example `ttyAMA0`, with an alias such as `serial0` resolved.
    fn name(&self, path: &Path) -> Option<String> {
        let here = below(&self.root, path);
        let target = fs::read_link(&here).ok();
        let target = target.filter(|_| path.starts_with("/dev"));
        let last = target.as_deref().and_then(Path::file_name).filter(|name| {
            // A pseudo-terminal that stands in for a device keeps the device's name.
            name.to_string_lossy().starts_with("tty")
        });
        Some(last.or(path.file_name())?.to_string_lossy().into_owned())
    }

    fn permission(&self, metadata: &fs::Metadata, findings: &mut Vec<Finding>) -> bool {
        let (mode, group) = (metadata.mode(), self.group_name(metadata.gid()));
        let cure = format!(
            "usermod --append --groups {GROUP} USER and log in anew; if the device is not of that group: chgrp \
             {GROUP} and chmod 660 by a udev rule, and no getty on it"
        );
        let found = format!("{} of group {group}, mode {:03o}", self.path.display(), mode & 0o777);
        // Unknown (no /proc): the attempt to open shows it.
        let user = self.user();
        let may = user.as_ref().is_none_or(|user| {
            user.id == 0
                || (metadata.uid() == user.id && mode & OWNER_RW == OWNER_RW)
                || (user.groups.contains(&metadata.gid()) && mode & GROUP_RW == GROUP_RW)
                || mode & OTHERS_RW == OTHERS_RW
        });
        if !may {
            let id = user.map_or(0, |user| user.id);
            let found = format!("{found}, and user {id} may not open it");
            findings.push(Finding::fault("permission", found, "a device that this user may open", cure));
            return false;
        }
        if (group != GROUP || mode & GROUP_RW != GROUP_RW) && mode & OTHERS_RW != OTHERS_RW {
            let expected = format!("group {GROUP} with read and write, which is what wingbeatd has");
            findings.push(Finding::fault("permission", found, expected, cure));
            return true;
        }
        findings.push(Finding::ok("permission", found));
        true
    }

    fn user(&self) -> Option<User> {
        let status = self.read("proc/self/status")?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        // Real, effective, saved, file system (proc_pid_status(5)).
        let id = field("Uid:")?.split_whitespace().nth(1)?.parse().ok()?;
        let group = field("Gid:")?.split_whitespace().nth(1)?.parse().ok()?;
        let more = field("Groups:").unwrap_or_default();
        let groups =
            more.split_whitespace().filter_map(|argument| argument.parse().ok()).chain([group]).collect();
        Some(User { id, groups })
    }

    fn group_name(&self, id: u32) -> String {
        let known = self.read("etc/group").unwrap_or_default();
        let name = known.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (name, number) = (fields.next()?, fields.nth(1)?);
            (number.parse() == Ok(id)).then(|| name.to_owned())
        });
        name.unwrap_or_else(|| id.to_string())
    }

    /// Whether no console is on it.
    fn console(&self, here: &Path, holder: Option<&Holder>, findings: &mut Vec<Finding>) -> bool {
        let Some(name) = self.name(&self.path) else { return true };
        let mut found = vec![];
        let mut cures = vec![];
        let cmdlines = ["boot/firmware/cmdline.txt", "boot/cmdline.txt", "proc/cmdline"];
        for (file, text) in cmdlines.iter().filter_map(|file| Some((*file, self.read(file)?))) {
            let Some(argument) = text.split_whitespace().find(|argument| self.is_console_on(argument, &name))
            else {
                continue;
            };
            found.push(format!("{argument} in /{file}"));
            cures.push(match file {
                "proc/cmdline" => "restart".to_owned(),
                _ => format!("remove {argument} from /{file} and restart"),
            });
        }
        if let Some(kernel) = kernel_console(here, &self.root) {
            found.push(format!("{kernel}"));
        }
        let unit = format!("serial-getty@{name}.service");
        let login = holder.filter(|holder| holder.is_console());
        if let Some(login) = login {
            found.push(format!("a login on it, {login}"));
        } else if self.is_enabled(&unit) {
            found.push(format!("{unit} enabled"));
        }
        if login.is_some() || self.is_enabled(&unit) {
            cures.push(format!("systemctl disable --now {unit} && systemctl mask {unit}"));
        }
        if found.is_empty() {
            findings.push(Finding::ok("console", format!("none on {name}")));
            return true;
        }
        if cures.is_empty() {
            cures.push("remove console= for this device from the kernel's command line and restart".into());
        }
        cures.dedup();
        findings.push(Finding::fault("console", found.join(", "), "no console on it", cures.join("; ")));
        false
    }

    /// Whether an argument of the kernel's command line puts a console on the device.
    fn is_console_on(&self, argument: &str, name: &str) -> bool {
        let Some(console) = argument.strip_prefix("console=") else { return false };
        let console = console.split(',').next().unwrap_or_default();
        console == name || self.name(&Path::new("/dev").join(console)).as_deref() == Some(name)
    }

    fn is_enabled(&self, unit: &str) -> bool {
        let masked = fs::read_link(self.root.join("etc/systemd/system").join(unit))
            .is_ok_and(|target| target == Path::new("/dev/null"));
        let wanted = ["etc/systemd/system", "run/systemd/generator", "run/systemd/system"]
            .iter()
            .any(|folder| self.root.join(folder).join("getty.target.wants").join(unit).is_symlink());
        wanted && !masked
    }

    fn bluetooth(&self, findings: &mut Vec<Finding>) {
        let model = self.read("proc/device-tree/model").unwrap_or_default();
        let Some(name) = self.name(&self.path).filter(|_| model.starts_with("Raspberry Pi")) else { return };
        let alias = |alias: &str| {
            let target = fs::read_link(self.root.join("dev").join(alias)).ok()?;
            Some(target.file_name()?.to_string_lossy().into_owned())
        };
        let file = ["boot/firmware/config.txt", "boot/config.txt"]
            .into_iter()
            .find(|file| self.root.join(file).exists())
            .unwrap_or("boot/firmware/config.txt");
        let text = self.read(file).unwrap_or_default();
        let overlay = text.lines().map(str::trim).find_map(|line| {
            let overlay = line.strip_prefix("dtoverlay=")?.split(',').next()?;
            OVERLAYS.contains(&overlay).then(|| overlay.to_owned())
        });
        let mini = alias("serial0").as_deref() == Some("ttyS0");
        let taken = name == "ttyAMA0" && (alias("serial1").as_deref() == Some("ttyAMA0") || mini);
        let cure = match &overlay {
            Some(overlay) => format!("restart: dtoverlay={overlay} is in /{file} and not yet in effect"),
            None => format!(
                "dtoverlay=disable-bt in /{file}, systemctl disable hciuart, restart, and serial:/dev/ttyAMA0:RATE \
                 as autopilot.endpoint"
            ),
        };
        if taken {
            findings.push(Finding::fault(
                "bluetooth",
                "ttyAMA0 on the Bluetooth modem and the mini UART on the pins",
                "ttyAMA0 on the pins",
                cure,
            ));
        } else if mini && name == "ttyS0" {
            findings.push(Finding::warning(
                "bluetooth",
                "the mini UART, whose rate follows the core's clock",
                "ttyAMA0 on the pins",
                cure,
            ));
        } else {
            findings.push(Finding::ok("bluetooth", format!("{name} free of it")));
        }
    }

    /// Whether no other process has it open.
    fn held(&self, holder: Option<Holder>, findings: &mut Vec<Finding>) -> bool {
        let is_daemon = matches!(&holder, Some(Holder::Process { name, .. }) if name == "wingbeatd");
        match holder {
            // Its own answer follows.
            _ if self.daemon_runs => true,
            None => true,
            Some(holder) if is_daemon => {
                findings.push(Finding::fault(
                    "port",
                    format!("it open in {holder}, which does not answer on http.bind"),
                    "a daemon that answers, or none",
                    "systemctl restart wingbeatd, or stop it and ask again",
                ));
                false
            }
            Some(Holder::Process { name, .. }) if name == GUARDIAN => {
                findings.push(Finding::fault(
                    "port",
                    "it open in the guardian, which has taken over the aircraft since its daemon stopped sending",
                    "a daemon that holds it",
                    "leave an aircraft that flies to it; on the ground systemctl restart wingbeatd",
                ));
                false
            }
            Some(holder) => {
                findings.push(Finding::fault(
                    "port",
                    format!("it open in {holder}"),
                    "a device that no other process has open",
                    "end that program; ModemManager: systemctl disable --now ModemManager",
                ));
                false
            }
        }
    }
}

/// Who runs the doctor.
struct User {
    id: u32,
    groups: Vec<u32>,
}
