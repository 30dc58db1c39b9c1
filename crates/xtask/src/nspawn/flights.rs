//! What is flown, and what must be seen.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::container::{Container, Program};
use super::http;
use crate::packages::{Debian, Packages};

/// The sample's address of the daemon's API, and where the PC Companion is.
const AIRCRAFT: &str = "127.0.0.1:8080";
const GROUND: &str = "127.0.0.1:8700";
/// The sample's aircraft.
const ID: &str = "0000b827eb010203";
const UNIT: &str = "wingbeatd.service";
const GUARD: &str = "wingbeat-guard.service";
/// Debian's number of the group `dialout`.
const DIALOUT: u32 = 20;
/// A phase of a flight takes some tens of seconds; only a test that fails waits so long.
const PHASE: Duration = Duration::from_secs(180);
/// A daemon that was killed answers again within this, or it was not restarted immediately.
const RESTART_LIMIT: Duration = Duration::from_secs(5);
/// The guardian detects within this that a daemon hangs (`guard.silence_ms` and a second poll).
const HANG_LIMIT: Duration = Duration::from_secs(3);
/// More than systemd's default limit of starts in a short time, which ours lift.
const DEATHS: u32 = 12;
/// Between two polls of a condition.
const POLL_PERIOD: Duration = Duration::from_millis(50);

/// Flies everything; the first thing that is not as it must be is the error.
pub(super) fn fly(root: &Path, debian: &Path, packages: &Packages) -> Result<()> {
    let story = Story::begin();
    let programs = root.join("target/debug");
    let line = debian.with_extension("ttyAMA0");
    // A run that was killed leaves it behind, and its device's number may be another program's by now.
    if line.is_symlink() {
        std::fs::remove_file(&line)?;
    }
    let mut sim = Program::start(
        Command::new(programs.join("wingbeat")).args(["sim", "--watch", "--serial"]).arg(&line),
    )?;
    story.until("the simulated flight controller is behind a line", || {
        sim.alive()?;
        Ok(line.exists().then_some(()))
    })?;
    let device = std::fs::read_link(&line)?;
    // As udev does it on an aircraft.
    chown(&device, Some(0), Some(DIALOUT)).with_context(|| format!("chown {}", device.display()))?;
    std::fs::set_permissions(&device, std::fs::Permissions::from_mode(0o660))?;

    let system = Debian { root: debian.to_owned(), is_bare: false };
    packages.install(&system)?;
    configure(root, debian)?;
    let booted = Instant::now();
    let container = Container::boot(debian, &device)?;
    let test = Test { story, sim, container };
    test.story.until("the aircraft answers", || Ok(aircraft().ok()))?;
    test.story.log(&format!("the API answers {:.1} s after the boot began", booted.elapsed().as_secs_f64()));
    let ground =
        Program::start(Command::new(programs.join("wingbeat")).args(["ground", AIRCRAFT, "--bind", GROUND]))?;

    test.appears()?;
    test.never_gives_up()?;
    test.keeps_its_journal()?;
    test.refuses_a_radio_that_is_none()?;
    test.flies_a_mission()?;
    test.survives_a_kill()?;
    test.survives_a_hang()?;
    test.is_left_safe_by_a_stop()?;
    test.is_left_safe_by_a_shutdown()?;
    test.is_left_safe_by_a_stop_without_guardian()?;
    test.is_not_set_up_unprotected(ground)?;
    let Test { story, sim, container } = test;
    // It powers off.
    drop((container, sim));
    packages.come_and_go(&system, &|what| story.log(what))
}

/// What an operator does after the installation, and what a pseudo-terminal needs.
fn configure(root: &Path, debian: &Path) -> Result<()> {
    let sample = std::fs::read_to_string(root.join("deploy/wingbeatd.toml"))?;
    std::fs::write(debian.join("etc/wingbeat/wingbeatd.toml"), adapt(&sample)?)?;
    for unit in [UNIT, GUARD] {
        let drop_in = debian.join("etc/systemd/system").join(format!("{unit}.d"));
        std::fs::create_dir_all(&drop_in)?;
        // It has another major number than a serial device.
        std::fs::write(drop_in.join("pseudo-terminal.conf"), "[Service]\nDeviceAllow=char-136 rw\n")?;
    }
    Ok(())
}

/// The sample configuration for a swarm of one whose radio is the loopback interface.
pub(crate) fn adapt(sample: &str) -> Result<String> {
    let mut text = sample.to_owned();
    for (from, to) in [
        ("\n#id = ", "\nid = "),
        // Its console is this program, which signs nothing.
        ("\n#insecure = false", "\ninsecure = true"),
        ("\ninterface = \"wlan0\"", "\ninterface = \"lo\""),
        ("\n#broadcast = \"255.255.255.255\"", "\nbroadcast = \"127.255.255.255\""),
        // MUSCOP's: other protocols have the key too.
        ("or 1 with alone; ours]\naircraft = 9", "or 1 with alone; ours]\naircraft = 1\nalone = true"),
        // No pilot takes over here: the wait for one may be shorter than in the field.
        ("\n#hold_s = 10", "\nhold_s = 3"),
    ] {
        ensure!(
            text.matches(from).count() == 1,
            "deploy/wingbeatd.toml: found {} times {:?}, expected once",
            text.matches(from).count(),
            from.trim()
        );
        text = text.replace(from, to);
    }
    Ok(text)
}

/// The aircraft's status, from itself.
fn aircraft() -> Result<Value> {
    let (code, status) = http::ask(AIRCRAFT, "GET", "/api/v1/status", None)?;
    ensure!(code == 200, "status: found code {code}, expected 200");
    Ok(status)
}

/// The preflight checks that fail and stand in the way; a recommendation does not.
fn failing(status: &Value) -> Result<Vec<Value>> {
    let checks = status["checks"].as_array().filter(|checks| !checks.is_empty());
    let checks = checks.context("status: found no checks, expected some")?;
    Ok(checks
        .iter()
        .filter(|check| check["passed"] != true && check["is_required"] != false)
        .cloned()
        .collect())
}

/// Whether the check of companion loss passes, and its detail.
fn companion_loss(status: &Value) -> Result<(bool, String)> {
    let mut checks = status["checks"].as_array().into_iter().flatten();
    let check = checks.find(|check| check["name"] == "companion loss");
    let check = check.context("status: found no check of companion loss, expected it")?;
    Ok((check["passed"] == true, check["detail"].as_str().unwrap_or_default().to_owned()))
}

/// The aircraft as the PC Companion shows it.
fn shown() -> Result<Value> {
    let (code, picture) = http::ask(GROUND, "GET", "/api/v1/fleet", None)?;
    ensure!(code == 200, "fleet: found code {code}, expected 200");
    Ok(picture["aircraft"][0].clone())
}

/// Prints what is seen, with its time.
pub(crate) struct Story {
    since: Instant,
}

impl Story {
    /// Begins now.
    pub(crate) fn begin() -> Self {
        Self { since: Instant::now() }
    }

    /// Milliseconds since then.
    pub(crate) fn elapsed_ms(&self) -> u128 {
        self.since.elapsed().as_millis()
    }

    pub(crate) fn log(&self, what: &str) {
        println!("{:7.1} s  {what}", self.since.elapsed().as_secs_f64());
    }

    /// Waits for a value, and logs that it came.
    pub(crate) fn until<T>(&self, what: &str, poll: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        let found = self.quietly(what, poll)?;
        self.log(what);
        Ok(found)
    }

    /// Waits for a value.
    fn quietly<T>(&self, what: &str, mut poll: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        let since = Instant::now();
        loop {
            if let Some(found) = poll()? {
                return Ok(found);
            }
            ensure!(since.elapsed() < PHASE, "never, within {} s: {what}", PHASE.as_secs());
            thread::sleep(POLL_PERIOD);
        }
    }

    /// Waits for the landing, and logs each mode until then; `modes` must be among them in this order.
    pub(crate) fn lands(&self, sim: &Program, from: usize, since: Instant, modes: &[&str]) -> Result<()> {
        let mut logged = from;
        let mut missing = modes;
        self.until("it is down and disarmed", || {
            let mut down = false;
            while let Some((at, line)) = sim.line(logged, |_| true) {
                let after = at.saturating_duration_since(since).as_secs_f64();
                self.log(&format!("  {after:.1} s later: {line}"));
                logged += 1;
                if let [mode, rest @ ..] = missing
                    && line.contains(&format!(": {mode}, "))
                {
                    missing = rest;
                }
                down |= line.contains("disarmed, landed");
            }
            Ok(down.then_some(()))
        })
        .with_context(|| format!("found {}", sim.last()))?;
        ensure!(
            missing.is_empty(),
            "modes: found no {}, expected {}",
            missing.join(", "),
            modes.join(", then ")
        );
        Ok(())
    }
}

struct Test {
    story: Story,
    sim: Program,
    container: Container,
}

impl Test {
    /// It is in the PC Companion, and in the journal with its fields.
    fn appears(&self) -> Result<()> {
        self.story.until("it appears in the PC Companion, its flight controller connected", || {
            let seen = shown().unwrap_or_default();
            let connected = seen["status"]["flight_controller"]["link"] == "up";
            Ok((seen["link"] == "up" && connected && seen["status"]["id"] == ID).then_some(()))
        })?;
        let of = format!("WINGBEAT_ID={ID}");
        let arguments = ["--output=verbose", "--no-pager", "--unit", UNIT, &of, "WINGBEAT_STATE=Start"];
        let journal = self.container.output("journalctl", &arguments)?;
        for field in ["WINGBEAT_AIRCRAFT=uav-0203", &of, "WINGBEAT_PROTOCOL=muscop", "WINGBEAT_STATE=Start"] {
            ensure!(
                journal.lines().any(|line| line.trim() == field),
                "journalctl --output=verbose: found no {field} in {journal}"
            );
            self.story.log(&format!("journalctl --output=verbose: {field}"));
        }
        let user = journal.lines().find_map(|line| line.trim().strip_prefix("_UID="));
        ensure!(
            user.is_some_and(|user| user != "0"),
            "journal: found {user:?}, expected another user than root"
        );
        Ok(())
    }

    /// A daemon that dies again and again is started again and again: no number of failures is too many.
    fn never_gives_up(&self) -> Result<()> {
        let since = Instant::now();
        for _ in 0..DEATHS {
            let old = self.property(UNIT, "MainPID")?;
            self.container.output("systemctl", &["kill", "--kill-whom=main", "--signal=KILL", UNIT])?;
            self.story.quietly("another daemon is ready", || {
                let process = self.property(UNIT, "MainPID")?;
                let ready =
                    process != old && process != "0" && self.property(UNIT, "ActiveState")? == "active";
                Ok(ready.then_some(()))
            })?;
        }
        let restarts: u32 = self.property(UNIT, "NRestarts")?.parse()?;
        ensure!(restarts >= DEATHS, "restarts: found {restarts}, expected at least {DEATHS}");
        let took = since.elapsed().as_secs_f64();
        self.story.log(&format!("killed {DEATHS} times in {took:.1} s, started again each time"));
        self.has_the_line_back()
    }

    /// The journal is on the disk, within the limits of our file.
    fn keeps_its_journal(&self) -> Result<()> {
        let limits = self.container.output("systemd-analyze", &["cat-config", "systemd/journald.conf"])?;
        ensure!(
            limits.contains("\nSystemMaxUse=200M\n"),
            "journald.conf: found {limits}, expected our limits"
        );
        let usage = self.container.output("journalctl", &["--disk-usage"])?;
        let kept = self.container.output("sh", &["-c", "ls /var/log/journal/*/system.journal"])?;
        self.story.log(&format!("{kept}: {usage}"));
        Ok(())
    }

    /// The network's unit, with all that it is denied, runs its program, which says what is wrong; it is not started again.
    fn refuses_a_radio_that_is_none(&self) -> Result<()> {
        // There is no udev in here, hence no unit of the device to which it is bound.
        let copy = "sed '/^BindsTo=/d' /usr/lib/systemd/system/wingbeat-network@.service >/etc/systemd/system/wingbeat-network@.service";
        self.container.output("sh", &["-c", &format!("{copy} && systemctl daemon-reload")])?;
        for (interface, found) in [("wlan7", "no wlan7"), ("lo", "lo")] {
            let unit = format!("wingbeat-network@{interface}.service");
            let set = format!("s/^INTERFACE=.*/INTERFACE={interface}/");
            let sample = "/usr/share/doc/wingbeatd/network.conf";
            let edit = format!("sed '{set}' {sample} >/etc/wingbeat/network.conf");
            self.container.output("sh", &["-c", &edit])?;
            let mut start = self.container.command("systemctl", &["start", &unit]);
            let started = start.stderr(std::process::Stdio::null()).status()?;
            ensure!(!started.success(), "{unit}: found it started, expected a refusal");
            let status = self.property(&unit, "ExecMainStatus")?;
            let restarts = self.property(&unit, "NRestarts")?;
            let said =
                self.container.output("journalctl", &["--output=cat", "--no-pager", "--unit", &unit])?;
            let line = said.lines().find(|line| line.starts_with("wingbeat-network: ")).unwrap_or_default();
            let begins = format!("wingbeat-network: /etc/wingbeat/network.conf: INTERFACE: found {found}");
            ensure!(
                status == "2" && restarts == "0" && line.starts_with(&begins) && line.contains("; cure: "),
                "{unit}: found exit code {status}, {restarts} restarts and {said:?}, expected 2, 0 and {begins}"
            );
            self.story.log(line);
        }
        let undo = "rm /etc/systemd/system/wingbeat-network@.service && systemctl daemon-reload";
        self.container.output("sh", &["-c", undo])?;
        Ok(())
    }

    fn flies_a_mission(&self) -> Result<()> {
        self.take_off()?;
        self.press("start")?;
        self.story.until("the mission is flown: Finished", || {
            let status = aircraft()?;
            ensure!(status["state"] != "Aborted", "found {}, expected no abort", status["detail"]);
            Ok((status["state"] == "Finished" && status["flight_controller"]["armed"] == false).then_some(()))
        })?;
        self.story.log(&self.sim.last());
        Ok(())
    }

    /// `kill -9` in flight: another daemon starts immediately, the guardian lands the aircraft, and gives
    /// the line back.
    fn survives_a_kill(&self) -> Result<()> {
        self.restart()?;
        self.dies_in_flight("KILL", RESTART_LIMIT)
    }

    /// A daemon that stands still: the guardian ends it, which needs no right but the same user.
    fn survives_a_hang(&self) -> Result<()> {
        self.dies_in_flight("STOP", RESTART_LIMIT + HANG_LIMIT)
    }

    fn dies_in_flight(&self, signal: &str, limit: Duration) -> Result<()> {
        self.take_off()?;
        let restarts = self.property(UNIT, "NRestarts")?;
        let old = self.property(UNIT, "MainPID")?;
        let from = self.sim.printed();
        let killed = Instant::now();
        let signal = format!("--signal={signal}");
        self.container.output("systemctl", &["kill", "--kill-whom=main", &signal, UNIT])?;
        self.story.log(&format!("systemctl kill {signal} in flight"));
        self.story.until("another daemon is ready", || {
            // The process first: one that has a number by now and is active afterwards is another, and ready.
            let process = self.property(UNIT, "MainPID")?;
            let another = process != old && process != "0";
            let ready = another && self.property(UNIT, "ActiveState")? == "active";
            Ok(ready.then_some(()))
        })?;
        let took = killed.elapsed();
        ensure!(
            took < limit,
            "restart: found {} ms, expected at most {} s",
            took.as_millis(),
            limit.as_secs()
        );
        let now = self.property(UNIT, "NRestarts")?;
        ensure!(now != restarts, "restarts: found {now} as before, expected one more");
        self.story.log(&format!("restarted {} ms after the signal", took.as_millis()));
        self.story.until("it is back in the PC Companion, which shows that the guardian has it", || {
            let seen = shown()?;
            let young = seen["age_ms"].as_u64().is_some_and(|age_ms| age_ms < 1_000);
            let fresh = seen["link"] == "up" && young && seen["status"]["state"] == "Start";
            Ok((fresh && seen["status"]["flight_controller"]["link"] != "up").then_some(()))
        })?;
        let new = self.property(UNIT, "MainPID")?;
        self.lands(from, killed, &["BRAKE", "LAND"])?;
        self.has_the_line_back()?;
        let now = self.property(UNIT, "MainPID")?;
        ensure!(now == new, "daemon: found process {now}, expected {new} to have lived on");
        Ok(())
    }

    /// `systemctl stop` in flight: the guardian brings the aircraft to the ground.
    fn is_left_safe_by_a_stop(&self) -> Result<()> {
        self.take_off()?;
        let from = self.sim.printed();
        let asked = Instant::now();
        self.stop(&[UNIT])?;
        self.lands(from, asked, &["BRAKE", "LAND"])?;
        self.start(&[UNIT])
    }

    /// Both units stopped in flight, as by a shutdown.
    fn is_left_safe_by_a_shutdown(&self) -> Result<()> {
        self.take_off()?;
        let from = self.sim.printed();
        let asked = Instant::now();
        self.stop(&[UNIT, GUARD])?;
        self.lands(from, asked, &["LAND"])?;
        self.start(&[GUARD, UNIT])
    }

    /// The guardian gone in flight is shown, with the layer that is left; a daemon that is stopped then lands
    /// the aircraft itself. Starting the daemon starts the guardian too.
    fn is_left_safe_by_a_stop_without_guardian(&self) -> Result<()> {
        self.take_off()?;
        self.stop(&[GUARD])?;
        self.story.until(
            "without a guardian the check of companion loss names the autopilot alone",
            || {
                let (_, detail) = companion_loss(&aircraft()?)?;
                let alone =
                    detail.starts_with("no guardian answers") && detail.contains("; the autopilot: RTL");
                Ok(alone.then_some(()))
            },
        )?;
        let from = self.sim.printed();
        let asked = Instant::now();
        self.stop(&[UNIT])?;
        self.lands(from, asked, &["LAND"])?;
        self.start(&[UNIT])?;
        let guard = self.property(GUARD, "ActiveState")?;
        ensure!(guard == "active", "{GUARD} after the start of {UNIT}: found {guard}, expected active");
        Ok(())
    }

    /// Neither guardian nor console: nothing would catch the aircraft, so it does not take off.
    fn is_not_set_up_unprotected(&self, ground: Program) -> Result<()> {
        self.story.until("all preflight checks but the swarm's pass", || {
            let left = failing(&aircraft()?)?;
            Ok(left.iter().all(|check| check["name"] == "swarm").then_some(()))
        })?;
        self.stop(&[GUARD])?;
        drop(ground);
        self.story.until("without guardian and console the check of companion loss fails", || {
            let (passed, detail) = companion_loss(&aircraft()?)?;
            Ok((!passed && detail.ends_with("no console holds the lease")).then_some(()))
        })?;
        let body = json!({"id": "unprotected", "command": "setup"});
        let (code, answer) = http::ask(AIRCRAFT, "POST", "/api/v1/commands", Some(&body))?;
        let reason = answer["reason"].as_str().unwrap_or_default();
        ensure!(
            code == 409 && reason.starts_with("companion loss"),
            "setup: found {code} {answer}, expected 409 for companion loss"
        );
        self.story.log(&format!("setup is refused: {reason}"));
        Ok(())
    }

    /// Stops units; systemd must not have had to kill one.
    fn stop(&self, units: &[&str]) -> Result<()> {
        let asked = Instant::now();
        self.container.output("systemctl", &[&["stop"], units].concat())?;
        let took = asked.elapsed().as_millis();
        self.story.log(&format!("systemctl stop {} returned after {took} ms", units.join(" ")));
        for unit in units {
            let result = self.property(unit, "Result")?;
            ensure!(result == "success", "systemctl stop {unit}: found result {result}, expected success");
        }
        Ok(())
    }

    fn start(&self, units: &[&str]) -> Result<()> {
        self.container.output("systemctl", &[&["start"], units].concat())?;
        self.has_the_line_back()
    }

    /// A daemon on the ground receives the flight controller, and the PC Companion receives the daemon.
    fn has_the_line_back(&self) -> Result<()> {
        self.story.until("the daemon has the line, and is shown", || {
            let (Ok(status), Ok(seen)) = (aircraft(), shown()) else { return Ok(None) };
            let whole = status["flight_controller"]["link"] == "up" && status["state"] == "Start";
            let young = seen["age_ms"].as_u64().is_some_and(|age_ms| age_ms < 1_000);
            let seen_up = seen["status"]["flight_controller"]["link"] == "up";
            let fresh = seen["link"] == "up" && seen["status"]["state"] == "Start" && young && seen_up;
            Ok((whole && fresh).then_some(()))
        })
    }

    fn lands(&self, from: usize, since: Instant, modes: &[&str]) -> Result<()> {
        self.story.lands(&self.sim, from, since, modes)
    }

    /// Gives it a short mission and lets it take off.
    fn take_off(&self) -> Result<()> {
        self.story.until("the flight controller is connected, the mission is accepted", || {
            let waypoint = |latitude_deg: f64| json!({"latitude_deg": latitude_deg, "longitude_deg": -0.3464, "height_m": 10.0});
            let mission = json!({"name": "there", "waypoints": [waypoint(39.4825), waypoint(39.4828)]});
            let connected = aircraft()?["flight_controller"]["link"] == "up";
            let (code, _) = http::ask(AIRCRAFT, "PUT", "/api/v1/mission", Some(&mission))?;
            Ok((connected && code == 200).then_some(()))
        })?;
        let mut left = vec![];
        let passed = self.story.until("all preflight checks pass", || {
            left = failing(&aircraft()?)?;
            // The PC Companion presses no button before it has seen it too.
            Ok((left.is_empty() && failing(&shown()?["status"])?.is_empty()).then_some(()))
        });
        passed.with_context(|| format!("found {} failing", json!(left)))?;
        self.press("setup")?;
        self.story.until("it has taken off: SetupFinished", || {
            let status = aircraft()?;
            ensure!(status["state"] != "Aborted", "found {}, expected no abort", status["detail"]);
            Ok((status["state"] == "SetupFinished").then_some(()))
        })?;
        self.story.log(&self.sim.last());
        Ok(())
    }

    /// Presses a button of the PC Companion.
    fn press(&self, command: &str) -> Result<()> {
        let id = format!("{command}-{}", self.story.since.elapsed().as_millis());
        let body = json!({"id": id, "command": command, "vehicles": []});
        let (code, answer) = http::ask(GROUND, "POST", "/api/v1/fleet/commands", Some(&body))?;
        ensure!((200..300).contains(&code), "{command}: found {code} {answer}, expected it to be taken");
        self.story.log(&format!("pressed {command}"));
        Ok(())
    }

    /// A fresh daemon, on the ground.
    fn restart(&self) -> Result<()> {
        self.container.output("systemctl", &["restart", UNIT])?;
        self.has_the_line_back()
    }

    /// The state of a unit, from systemd.
    fn property(&self, unit: &str, name: &str) -> Result<String> {
        let value = self.container.output("systemctl", &["show", "--value", "--property", name, unit])?;
        if value.is_empty() {
            bail!("systemctl show {unit}: found no {name}, expected a value");
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_can_be_adapted_and_another_is_refused() {
        let sample = std::fs::read_to_string(crate::root().join("deploy/wingbeatd.toml")).unwrap();
        let adapted = adapt(&sample).unwrap();
        assert!(adapted.contains("\nid = \"0000b827eb010203\"\n") && adapted.contains(ID));
        assert!(
            adapted.contains("\naircraft = 1\nalone = true\n") && adapted.contains("\ninterface = \"lo\"\n")
        );
        let error = adapt(&adapted).unwrap_err().to_string();
        assert!(error.contains("found 0 times \"#id =\""), "{error}");
    }
}
