//! The machine: QEMU's, with the flight controller on its first serial line, and a shell in the Debian that it boots.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::image::Image;
use super::operator::bound;
use crate::nspawn::Program;

/// A boot takes 20 to 40 s without hardware acceleration; only one that fails takes so long.
const BOOT_LIMIT: Duration = Duration::from_secs(300);
/// So does a command.
const COMMAND_LIMIT: Duration = Duration::from_secs(180);
const POLL_PERIOD: Duration = Duration::from_millis(100);
/// What the guest's shell prints when it begins.
const READY: &str = "==ready==";

/// What differs from boot to boot.
#[derive(Clone, Copy, Default)]
pub(super) struct Conditions {
    /// The disk cannot be written.
    pub(super) read_only: bool,
    /// No serial line leads to a flight controller.
    pub(super) no_flight_controller: bool,
    /// There is no network interface.
    pub(super) no_radio: bool,
    /// The clock begins in 1970. (systemd sets it to the date of its own release at once.)
    pub(super) clock_of_1970: bool,
}

/// Ports of this machine.
#[derive(Clone, Copy)]
pub(super) struct Ports {
    /// Where the simulated flight controller is.
    pub(super) flight_controller: u16,
    /// Where the aircraft's API becomes reachable.
    pub(super) api: u16,
}

/// A running machine. Dropping it cuts its power.
pub(super) struct Guest {
    // Dropped first: QEMU is killed.
    qemu: Program,
    shell: BufReader<UnixStream>,
    begun: Instant,
}

impl Guest {
    /// Boots the image; `share` is its `/mnt`. Its console is kept in `console` of the folder.
    pub(super) fn boot(folder: &Path, image: &Image, ports: Ports, conditions: Conditions) -> Result<Self> {
        let begun = Instant::now();
        let control = folder.join("control");
        if control.exists() {
            std::fs::remove_file(&control)?;
        }
        let Conditions { read_only, no_flight_controller, no_radio, clock_of_1970 } = conditions;
        let mut qemu = Command::new(super::MACHINE);
        qemu.args(["-machine", "virt", "-cpu", "cortex-a72", "-accel", "tcg", "-smp", "2", "-m", "512"]);
        qemu.args(["-nodefaults", "-display", "none", "-no-reboot"]);
        let mode = if read_only { "ro" } else { "rw" };
        qemu.args(["-append", &format!("console=hvc0 net.ifnames=0 quiet {mode}")]);
        qemu.arg("-kernel").arg(&image.kernel).arg("-initrd").arg(&image.initrd);
        // What the guest has not written is lost with it; what it has written, the host keeps.
        qemu.arg("-drive").arg(format!("if=none,id=disk,format=raw,file={}", image.disk.display()));
        qemu.args(["-device", "virtio-blk-device,drive=disk"]);
        if no_flight_controller {
            qemu.args(["-serial", "null"]);
        } else {
            qemu.arg("-chardev").arg(format!("socket,id=fc,host=127.0.0.1,port={}", ports.flight_controller));
            qemu.args(["-serial", "chardev:fc"]);
        }
        qemu.args(["-device", "virtio-serial-device", "-chardev"]);
        qemu.arg(format!("file,id=console,path={}", folder.join("console").display()));
        qemu.args(["-device", "virtconsole,chardev=console", "-chardev"]);
        qemu.arg(format!("socket,id=control,path={},server=on,wait=off", control.display()));
        qemu.args(["-device", "virtserialport,chardev=control,name=control"]);
        if !no_radio {
            let forward = format!("hostfwd=tcp:127.0.0.1:{}-:8080", ports.api);
            qemu.args(["-netdev", &format!("user,id=net,restrict=on,{forward}")]);
            qemu.args(["-device", "virtio-net-device,netdev=net"]);
        }
        let share = folder.join("share");
        qemu.arg("-fsdev");
        qemu.arg(format!("local,id=share,security_model=none,readonly=on,path={}", share.display()));
        qemu.args(["-device", "virtio-9p-device,fsdev=share,mount_tag=share"]);
        if clock_of_1970 {
            qemu.args(["-rtc", "base=1970-01-01T00:00:00"]);
        }
        let mut qemu = Program::start(&mut bound(&qemu))?;
        let stream = loop {
            qemu.alive()?;
            match UnixStream::connect(&control) {
                Ok(stream) => break stream,
                Err(error) if begun.elapsed() > BOOT_LIMIT => bail!("{}: found {error}", control.display()),
                Err(_) => thread::sleep(POLL_PERIOD),
            }
        };
        stream.set_read_timeout(Some(BOOT_LIMIT))?;
        let mut guest = Self { qemu, shell: BufReader::new(stream), begun };
        guest.lines(|line| line == READY).with_context(|| {
            format!("the guest does not boot; its console is {}", folder.join("console").display())
        })?;
        guest.shell.get_ref().set_read_timeout(Some(COMMAND_LIMIT))?;
        Ok(guest)
    }

    /// Cuts the power.
    pub(super) fn cut(&mut self) {
        self.qemu.kill();
    }

    /// When the power came on.
    pub(super) fn begun(&self) -> Instant {
        self.begun
    }

    /// Runs a line in a shell inside, as root; its exit code and what it printed.
    pub(super) fn run(&mut self, line: &str) -> Result<(i32, String)> {
        ensure!(!line.contains('\n'), "found several lines, expected one: {line}");
        writeln!(self.shell.get_ref(), "{line}")?;
        let mut code = None;
        let printed = self
            .lines(|line| {
                let number = line.strip_prefix("==").and_then(|rest| rest.strip_suffix("=="));
                code = number.and_then(|number| number.parse().ok());
                code.is_some()
            })
            .with_context(|| format!("in the guest: {line}"))?;
        Ok((code.unwrap_or(-1), printed))
    }

    /// What a line prints that must succeed.
    pub(super) fn output(&mut self, line: &str) -> Result<String> {
        let (code, printed) = self.run(line)?;
        ensure!(code == 0, "in the guest `{line}`: found exit code {code}, expected 0; it printed {printed}");
        Ok(printed)
    }

    /// The lines before the one that satisfies.
    fn lines(&mut self, mut is_last: impl FnMut(&str) -> bool) -> Result<String> {
        let mut text = String::new();
        loop {
            self.qemu.alive()?;
            let mut line = Vec::new();
            ensure!(self.shell.read_until(b'\n', &mut line)? > 0, "found the end of the guest's shell");
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end();
            if is_last(line) {
                return Ok(text.trim_end().to_owned());
            }
            text.push_str(line);
            text.push('\n');
        }
    }
}
