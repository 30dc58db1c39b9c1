//! The Debian that is booted, the programs that run beside it, and how all of them end.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process;

/// A machine under load boots the container within this.
const BOOT_LIMIT: Duration = Duration::from_secs(120);
/// The container powers off within this; else it is killed.
const OFF_LIMIT: Duration = Duration::from_secs(30);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// A program that is ended when it is dropped, and the lines that it has printed so far.
pub(super) struct Program {
    name: String,
    child: Child,
    lines: Arc<Mutex<Vec<(Instant, String)>>>,
}

impl Program {
    /// Starts it with its standard output kept.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", process::show(command)))?;
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let stdout = child.stdout.take().context("its standard output")?;
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(std::result::Result::ok) {
                kept.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), line));
            }
        });
        Ok(Self { name: process::show(command), child, lines })
    }

    /// An error if it has ended.
    pub(super) fn alive(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{}: found {status}, expected it to run on", self.name),
        }
    }

    /// How many lines it has printed.
    pub(super) fn printed(&self) -> usize {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The first line from the `from`th on that satisfies, with its time.
    pub(super) fn line(&self, from: usize, satisfies: impl Fn(&str) -> bool) -> Option<(Instant, String)> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().skip(from).find(|(_, line)| satisfies(line)).cloned()
    }

    /// The last line.
    pub(super) fn last(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.last().map(|(_, line)| line.clone()).unwrap_or_default()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running Debian. Dropping it powers it off.
pub(super) struct Container {
    child: Child,
    /// The process that is its number 1.
    leader: u32,
}

impl Container {
    /// Boots `root` with `device` as its `/dev/ttyAMA0`. What its console says goes to a file beside it.
    pub(super) fn boot(root: &Path, device: &Path) -> Result<Self> {
        let log = root.with_extension("log");
        let console = std::fs::File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        let mut command = Command::new("systemd-nspawn");
        command
            .args(["--quiet", "--boot", "--register=no", "--keep-unit", "--directory"])
            .arg(root)
            .arg(format!("--bind={}:/dev/ttyAMA0", device.display()))
            .stdin(Stdio::null())
            .stdout(console.try_clone()?)
            .stderr(console);
        let child = command.spawn().context("starting systemd-nspawn")?;
        let mut container = Self { child, leader: 0 };
        let since = Instant::now();
        while container.leader == 0 {
            if let Some(status) = container.child.try_wait()? {
                bail!("systemd-nspawn: found {status}, expected it to boot; see {}", log.display());
            }
            if since.elapsed() > BOOT_LIMIT {
                bail!("systemd-nspawn: found no process of its own in {} s", BOOT_LIMIT.as_secs());
            }
            thread::sleep(LOOK);
            container.leader = init_below(container.child.id()).unwrap_or_default();
        }
        Ok(container)
    }

    /// A program inside.
    pub(super) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--target={}", self.leader))
            .args(["--mount", "--uts", "--ipc", "--pid", "--", program])
            .args(arguments);
        command
    }

    /// What a program inside prints.
    pub(super) fn output(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let bytes = process::output(&mut self.command(program, arguments))?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if self.leader != 0 {
            // Best effort: what does not power off is killed below.
            let _ = self.command("systemctl", &["poweroff"]).stderr(Stdio::null()).status();
            let since = Instant::now();
            while since.elapsed() < OFF_LIMIT {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    return;
                }
                thread::sleep(LOOK);
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The child that has become an init; systemd-nspawn has others for a moment.
fn init_below(process: u32) -> Option<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = std::fs::read_to_string(path).ok()?;
    children.split_whitespace().filter_map(|child| child.parse().ok()).find(|child: &u32| {
        std::fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name.trim() == "systemd")
    })
}
