//! The Debian that is booted, the programs that run outside it, and how all of them end.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
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
/// Between two polls of a condition.
const POLL_PERIOD: Duration = Duration::from_millis(50);

/// A program that is ended when it is dropped, and the lines that it has printed so far.
pub(crate) struct Program {
    name: String,
    child: Child,
    lines: Arc<Mutex<Vec<(Instant, String)>>>,
}

impl Program {
    /// Starts it with its standard output kept.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
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
    pub(crate) fn alive(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{}: found {status}, expected it to run on", self.name),
        }
    }

    /// How many lines it has printed.
    pub(crate) fn printed(&self) -> usize {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The first line from the `from`th on that satisfies, with its time.
    pub(crate) fn line(&self, from: usize, satisfies: impl Fn(&str) -> bool) -> Option<(Instant, String)> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().skip(from).find(|(_, line)| satisfies(line)).cloned()
    }

    /// The last line.
    pub(crate) fn last(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.last().map(|(_, line)| line.clone()).unwrap_or_default()
    }

    /// The last ones, so many at most.
    pub(crate) fn lines(&self, most: usize) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines[lines.len().saturating_sub(most)..].iter().map(|(_, line)| line.clone()).collect()
    }
}

impl Program {
    /// Asks it to end, and waits for that.
    ///
    /// # Errors
    /// The program runs on for this time, or ends with another exit code than 0.
    pub(crate) fn stop(&mut self, within: Duration) -> Result<()> {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(id.context("a process id")?, rustix::process::Signal::TERM)?;
        let since = Instant::now();
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("{}: found {status}, expected exit code 0", self.name),
                None if since.elapsed() > within => {
                    bail!("{}: found it running {} s after SIGTERM", self.name, within.as_secs())
                }
                None => thread::sleep(POLL_PERIOD),
            }
        }
    }

    /// Ends it outright.
    pub(crate) fn kill(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A running Debian. Dropping it powers it off.
pub(super) struct Container {
    child: Child,
    /// The control groups that it is in.
    groups: Vec<PathBuf>,
    /// The process that is its number 1.
    leader: u32,
}

impl Container {
    /// Boots `root` with `device` as its `/dev/ttyAMA0`. Its console output goes to a file in the same folder.
    pub(super) fn boot(root: &Path, device: &Path) -> Result<Self> {
        let log = root.with_extension("log");
        let console = std::fs::File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        let groups = control_groups()?;
        // What is below our own group may be another container's, whose systemd would end our processes.
        let script = "for group in \"$@\"; do shift; [ \"$group\" = -- ] && break; \
                      echo $$ > \"$group/cgroup.procs\" || exit 1; done; exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).args(&groups).args(["--", "systemd-nspawn"]);
        command
            .args(["--quiet", "--boot", "--register=no", "--keep-unit", "--directory"])
            .arg(root)
            .arg(format!("--bind={}:/dev/ttyAMA0", device.display()))
            .stdin(Stdio::null())
            .stdout(console.try_clone()?)
            .stderr(console);
        let child = command.spawn().context("starting systemd-nspawn")?;
        let mut container = Self { child, groups, leader: 0 };
        let since = Instant::now();
        while container.leader == 0 {
            if let Some(status) = container.child.try_wait()? {
                bail!("systemd-nspawn: found {status}, expected it to boot; see {}", log.display());
            }
            if since.elapsed() > BOOT_LIMIT {
                bail!("systemd-nspawn: found no process of its own in {} s", BOOT_LIMIT.as_secs());
            }
            thread::sleep(POLL_PERIOD);
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

impl Container {
    fn power_off(&mut self) {
        if self.leader != 0 {
            // Best effort: what does not power off is killed below.
            let _ = self.command("systemctl", &["poweroff"]).stderr(Stdio::null()).status();
            let since = Instant::now();
            while since.elapsed() < OFF_LIMIT {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    return;
                }
                thread::sleep(POLL_PERIOD);
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.power_off();
        for group in &self.groups {
            remove(group);
        }
    }
}

/// New control groups for the container: one where systemd keeps its own, one in the unified hierarchy;
/// these are one and the same on most machines.
fn control_groups() -> Result<Vec<PathBuf>> {
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    // Our namespace has a number that no other has while it lives; our process has not.
    let namespace = std::fs::metadata("/proc/self/ns/net")?.ino();
    let groups: Vec<_> = systemd_hierarchies(&mounts)
        .map(|mount| Path::new(mount).join(format!("wingbeat-nspawn-{namespace}")))
        .collect();
    for group in &groups {
        // An earlier run that was killed may have had the same number.
        remove(group);
        std::fs::create_dir(group).with_context(|| format!("creating {}", group.display()))?;
    }
    Ok(groups)
}

/// Where the hierarchies are mounted in which systemd sorts its processes.
fn systemd_hierarchies(mounts: &str) -> impl Iterator<Item = &str> {
    mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (mount, kind, options) = (words.next()?, words.next()?, words.next()?);
        let named = kind == "cgroup" && options.split(',').any(|option| option == "name=systemd");
        (named || kind == "cgroup2").then_some(mount)
    })
}

/// Removes a control group and those below; one with a process in it stays.
fn remove(group: &Path) {
    let Ok(below) = std::fs::read_dir(group) else { return };
    for entry in below.filter_map(Result::ok).filter(|entry| entry.path().is_dir()) {
        remove(&entry.path());
    }
    // Best effort: an empty group costs nothing.
    let _ = std::fs::remove_dir(group);
}

/// The child that has become an init; systemd-nspawn has others for a moment.
fn init_below(process: u32) -> Option<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = std::fs::read_to_string(path).ok()?;
    children.split_whitespace().filter_map(|child| child.parse().ok()).find(|child: &u32| {
        std::fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name.trim() == "systemd")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemds_hierarchies_are_found_in_a_mixed_and_in_a_unified_machine() {
        let mixed = "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n\
                     cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,name=systemd 0 0\n\
                     cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";
        let found: Vec<_> = systemd_hierarchies(mixed).collect();
        assert_eq!(found, ["/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"]);
        let unified = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        assert_eq!(systemd_hierarchies(unified).collect::<Vec<_>>(), ["/sys/fs/cgroup"]);
        assert_eq!(systemd_hierarchies("").count(), 0);
    }
}
