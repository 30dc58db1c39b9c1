//! What is flown, which power is cut, and what must be seen.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::guest::{Conditions, Guest, Ports};
use super::image::Image;
use super::operator::Operator;
use crate::network::copy;
use crate::process;

const CONSOLE: &str = "0000000000000c01";
const UNIT: &str = "wingbeatd.service";
const GUARD: &str = "wingbeat-guard.service";
const STATE: &str = "/var/lib/wingbeat";
/// Power is cut so often; the last time in flight.
const POWER_CUTS: u32 = 4;
/// A daemon that was killed is ready again within this, emulated and on a loaded machine.
const RESTART_LIMIT: Duration = Duration::from_secs(20);

/// Flies everything; the first thing that is not as it must be is the error.
pub(super) fn fly(root: &Path, wingbeat: &Path, folder: &Path, image: &Image, package: &Path) -> Result<()> {
    for gone in ["share", "fleet", "console.keys"] {
        let gone = folder.join(gone);
        if gone.exists() {
            std::fs::remove_dir_all(gone)?;
        }
    }
    let share = folder.join("share");
    std::fs::create_dir_all(&share)?;
    copy(package, &share.join("wingbeatd.deb"))?;
    for file in [
        "tests/pi/aircraft.toml",
        "tests/pi/guided.toml",
        "deploy/chrony/wingbeat.conf",
        "deploy/chrony/wingbeat-override.conf",
    ] {
        let from = root.join(file);
        copy(&from, &share.join(from.file_name().unwrap_or_default()))?;
    }

    let operator = Operator::begin(wingbeat)?;
    let ports = Ports { flight_controller: operator.flight_controller, api: operator.api };
    let guest = Guest::boot(folder, image, ports, Conditions::default())?;
    let took = guest.begun().elapsed().as_secs_f64();
    operator.story.log(&format!("Debian runs our shell {took:.1} s after power came on"));
    let mut test = Test { wingbeat, folder, image, ports, operator, guest };
    let flown = test.fly();
    if flown.is_err() {
        test.tell();
    }
    flown
}

/// What was found after a power cut.
#[derive(Clone, Default)]
struct Kept {
    /// How far the counters of datagrams are reserved.
    counter: u64,
    /// Of this boot of the guest, so many lines of the journal were on the disk.
    boot: String,
    lines: u32,
}

struct Test<'a> {
    wingbeat: &'a Path,
    folder: &'a Path,
    image: &'a Image,
    ports: Ports,
    operator: Operator,
    guest: Guest,
}

impl Test<'_> {
    /// In order.
    fn fly(&mut self) -> Result<()> {
        self.install()?;
        self.enrol()?;
        self.start()?;
        self.operator.take_off()?;
        self.operator.completes()?;
        self.restart("a fresh daemon on the ground is shown")?;
        self.survives_kills()?;
        self.is_left_safe_by_a_stop()?;
        let counter = self.survives_power_cuts()?;
        self.starts_with_a_corrupt_configuration()?;
        self.starts_with_a_full_disk()?;
        self.starts_in_1970(counter)?;
        self.starts_with_a_read_only_disk()?;
        self.starts_with_neither_radio_nor_flight_controller()
    }

    /// What was seen last, for one who asks why it failed.
    fn tell(&mut self) {
        for line in self.operator.sim.lines(60) {
            println!("flight controller: {line}");
        }
        let journal = format!(
            "journalctl --boot --no-pager --lines=80 --output=short-monotonic --unit={GUARD} --unit={UNIT}"
        );
        match self.guest.run(&journal) {
            Ok((_, journal)) => println!("{journal}"),
            Err(error) => println!("no journal: {error:#}"),
        }
    }

    fn log(&self, what: &str) {
        self.operator.story.log(what);
    }

    /// As an operator does it: the package, and the configuration beside the sample.
    fn install(&mut self) -> Result<()> {
        self.guest.output("dpkg --install /mnt/wingbeatd.deb")?;
        let version =
            self.guest.output("dpkg-query --show --showformat='${Version} ${Architecture}\\n' wingbeatd")?;
        self.log(&format!("installed wingbeatd {version}"));
        for unit in [UNIT, GUARD] {
            self.guest.output(&format!("systemctl is-enabled {unit}"))?;
        }
        let to = "/etc/wingbeat/conf.d";
        self.guest
            .output(&format!("mkdir -p {to} && cp /mnt/aircraft.toml {to}/50-pi.toml && sync"))
            .map(drop)
    }

    /// The aircraft's own key, the fleet's authority and a console on this machine.
    fn enrol(&mut self) -> Result<()> {
        self.fleet(&["init", "FLEET", "--days", "30"])?;
        // The request is standard output, its code standard error.
        let request = self.guest.output("wingbeatd enrol --request - 2>/run/code")?;
        let code = self.guest.output("sed 's/.* code //' /run/code")?;
        std::fs::write(self.folder.join("request"), format!("{request}\n"))?;
        self.fleet(&["enrol", "FLEET", "REQUEST", "--code", &code])?;
        self.fleet(&["console", "FLEET", CONSOLE, "CONSOLE"])?;
        copy(&self.folder.join("fleet/fleet.bundle"), &self.folder.join("share/fleet.bundle"))?;
        let taken = self.guest.output("wingbeatd enrol --accept /mnt/fleet.bundle")?;
        self.log(&format!("enrolled: {taken}"));
        self.guest.output("wingbeatd check-config")?;
        let found = self.guest.output("wingbeatd --check 2>&1")?;
        self.log(&format!("wingbeatd --check: {}", found.replace('\n', ", ")));
        Ok(())
    }

    /// `wingbeat fleet`, with the names of its folders replaced.
    fn fleet(&self, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(self.wingbeat);
        command.arg("fleet").args(arguments.iter().map(|argument| match *argument {
            "FLEET" => self.folder.join("fleet").into_os_string(),
            "CONSOLE" => self.folder.join("console.keys").into_os_string(),
            "REQUEST" => self.folder.join("request").into_os_string(),
            "BUNDLE" => self.folder.join("fleet/fleet.bundle").into_os_string(),
            other => other.into(),
        }));
        process::output(&mut command).map(drop)
    }

    /// The units, and the PC Companion outside.
    fn start(&mut self) -> Result<()> {
        let asked = Instant::now();
        self.guest.output(&format!("systemctl start {GUARD} {UNIT}"))?;
        let took = asked.elapsed().as_secs_f64();
        self.log(&format!("units started {took:.1} s after they were asked to"));
        self.connect()
    }

    /// The PC Companion anew, with the keys that its console holds now.
    fn connect(&mut self) -> Result<()> {
        self.operator.connect(self.wingbeat, Some(&self.folder.join("console.keys")))
    }

    fn restart(&mut self, what: &str) -> Result<()> {
        self.guest.output(&format!("systemctl restart {UNIT}"))?;
        self.operator.is_ready(what)
    }

    /// `kill -9` in flight: another daemon, to which the guardian gives the aircraft back, and which goes on with its mission.
    /// Killed once more on the same flight: the guardian lands it, and gives the line back.
    fn survives_kills(&mut self) -> Result<()> {
        self.operator.take_off()?;
        // Below the least height of its waypoints it would not be resumed.
        self.operator.until("it is high enough to be resumed", |status| {
            status["navigation"]["height_m"].as_f64().is_some_and(|height_m| height_m > 5.0)
        })?;
        self.kill()?;
        self.operator.until("it takes up its mission", |status| {
            status["detail"].as_str().is_some_and(|detail| detail.starts_with("found on its route"))
        })?;
        self.operator.until("it is moving again", |status| status["phase"] == "moving")?;
        self.operator.story.log(&self.operator.sim.last());
        let from = self.operator.sim.printed();
        let killed = Instant::now();
        self.kill()?;
        self.operator.until("it reports to the PC Companion that it has not the aircraft", |status| {
            status["phase"] == "start" && status["flight_controller"]["link"] != "up"
        })?;
        self.operator.lands(from, killed, &["BRAKE", "LAND"])?;
        self.operator.is_ready("the daemon has the line back, and is shown")
    }

    /// `kill -9` of the daemon, and another that is ready.
    fn kill(&mut self) -> Result<()> {
        let old = self.property("MainPID")?;
        let killed = Instant::now();
        self.guest.output(&format!("systemctl kill --kill-whom=main --signal=KILL {UNIT}"))?;
        self.log("kill -9 of the daemon in flight");
        let guest = &mut self.guest;
        self.operator.story.until("another daemon is ready", || {
            let process = property(guest, "MainPID")?;
            let another = process != old && process != "0";
            Ok((another && property(guest, "ActiveState")? == "active").then_some(()))
        })?;
        let took = killed.elapsed();
        let (found, most) = (took.as_secs_f64(), RESTART_LIMIT.as_secs());
        ensure!(took < RESTART_LIMIT, "restart: found {found:.1} s, expected at most {most} s");
        Ok(())
    }

    /// `systemctl stop` in flight: the guardian brings the aircraft to the ground.
    fn is_left_safe_by_a_stop(&mut self) -> Result<()> {
        self.operator.take_off()?;
        let from = self.operator.sim.printed();
        let asked = Instant::now();
        self.guest.output(&format!("systemctl stop {UNIT}"))?;
        let took = asked.elapsed().as_secs_f64();
        self.log(&format!("systemctl stop {UNIT} in flight returned after {took:.1} s"));
        let result = self.property("Result")?;
        ensure!(result == "success", "systemctl stop: found result {result}, expected success");
        self.operator.lands(from, asked, &["BRAKE", "LAND"])?;
        self.restart("started again, it is shown")
    }

    /// The companion's power is cut: on the ground right after it took keys, and in flight. What it keeps must be whole
    /// and no older than it has said; no counter may be used twice. Returns the counter.
    fn survives_power_cuts(&mut self) -> Result<u64> {
        let mut kept = Kept::default();
        for cut in 1..=POWER_CUTS {
            let is_flying = cut == POWER_CUTS;
            if is_flying {
                self.guest.output("cp /mnt/guided.toml /etc/wingbeat/conf.d/60-guided.toml && sync")?;
                self.restart("it flies MUSCOP alone from here on, in GUIDED")?;
                self.operator.take_off()?;
            } else {
                self.fleet(&["renew", "FLEET"])?;
                let address = format!("127.0.0.1:{}", self.ports.api);
                self.operator.story.until("the aircraft took the keys of the next epoch", || {
                    Ok(self.fleet(&["push", "FLEET", &address, "--keys", "CONSOLE"]).ok())
                })?;
                self.fleet(&["accept", "CONSOLE", "BUNDLE"])?;
            }
            let from = self.operator.sim.printed();
            let since = Instant::now();
            self.guest.cut();
            if cut + 1 == POWER_CUTS {
                // The height that 3.5.7 estimates is 1 m off after three flights: too far for MUSCOP's take-off.
                self.operator.change_battery(self.wingbeat)?;
            }
            self.power(Conditions::default(), &format!("power cut {cut}"))?;
            kept = self.is_whole(&kept)?;
            if is_flying {
                // Nothing of the companion was left: the autopilot's own failsafe brings it home, after the heartbeats that
                // the daemon relayed for the console.
                self.operator.lands(from, since, &["RTL"])?;
                self.operator.open(self.wingbeat, Some(&self.folder.join("console.keys")))?;
                // It was not this daemon that flew, nor is RTL a mode that it asked for.
                self.operator.until("the daemon leaves the aircraft to the failsafe", |status| {
                    status["phase"] == "aborted" && status["flight_controller"]["mode"] == "RTL"
                })?;
                self.restart("a fresh daemon on the ground is ready")?;
            } else {
                self.connect()?;
            }
        }
        Ok(kept.counter)
    }

    /// Cuts the power, boots again, and waits for the units.
    fn power(&mut self, conditions: Conditions, what: &str) -> Result<()> {
        self.guest.cut();
        self.log(&format!("{what}: the power is cut"));
        self.guest = Guest::boot(self.folder, self.image, self.ports, conditions)?;
        let took = self.guest.begun().elapsed().as_secs_f64();
        let guest = &mut self.guest;
        self.operator.story.until(&format!("{what}: both units are active"), || {
            // Of several units it is enough for `is-active` that one is.
            let active = format!("systemctl is-active {GUARD} && systemctl is-active {UNIT}");
            Ok((guest.run(&active)?.0 == 0).then_some(()))
        })?;
        let active = self.guest.begun().elapsed().as_secs_f64();
        self.log(&format!("{what}: a shell {took:.1} s, the units {active:.1} s after power came on"));
        Ok(())
    }

    /// What the aircraft keeps is what it has said before the power was cut, and more than after the last cut.
    fn is_whole(&mut self, kept: &Kept) -> Result<Kept> {
        let sum = |file: &str| format!("sha256sum <{file}");
        let held = self.guest.output(&sum(&format!("{STATE}/fleet.bundle")))?;
        copy(&self.folder.join("fleet/fleet.bundle"), &self.folder.join("share/fleet.bundle"))?;
        let pushed = self.guest.output(&sum("/mnt/fleet.bundle"))?;
        ensure!(held == pushed, "keys: found other ones than the aircraft took before the power was cut");
        let text = self.guest.output(&format!("cat {STATE}/datagram-counter"))?;
        let later: u64 = text.trim().parse().with_context(|| format!("counter: found {text:?}"))?;
        ensure!(later > kept.counter, "counter: found {later}, expected more than {}", kept.counter);
        self.guest.output(&format!("test -s {STATE}/configuration.toml && wingbeatd check-config"))?;
        let earlier = if kept.boot.is_empty() { 0 } else { self.journal_lines(&kept.boot)? };
        ensure!(
            earlier >= kept.lines,
            "journal: found {earlier} lines of {UNIT} of boot {}, expected the {} that were on the disk",
            kept.boot,
            kept.lines
        );
        let boot = self.guest.output("tr -d - </proc/sys/kernel/random/boot_id")?;
        let lines = self.journal_lines(&boot)?;
        ensure!(lines > 0, "journal: found no line of {UNIT} since the power came on, expected some");
        // Journald puts lines on the disk after a while: what is counted above stays.
        self.guest.output("journalctl --sync")?;
        self.log(&format!(
            "keys as taken, counter {later}, configuration whole, {earlier} of {} synced lines of the last boot's journal read, {lines} of this one's",
            kept.lines
        ));
        Ok(Kept { counter: later, boot, lines })
    }

    fn journal_lines(&mut self, boot: &str) -> Result<u32> {
        let lines = self
            .guest
            .output(&format!("journalctl --quiet --boot={boot} --unit={UNIT} --output=cat | wc -l"))?;
        lines.trim().parse().with_context(|| format!("journal: found {lines:?}"))
    }

    /// It starts with the one before, and does not set up.
    fn starts_with_a_corrupt_configuration(&mut self) -> Result<()> {
        let file = "/etc/wingbeat/conf.d/50-pi.toml";
        self.guest.output(&format!("head -c 40 /dev/zero >{file}"))?;
        self.guest.output(&format!("systemctl restart {UNIT}"))?;
        self.operator.until(
            "with a corrupt configuration it is shown, and refuses setup for it",
            |status| {
                let mut checks = status["checks"].as_array().into_iter().flatten();
                let check = checks.find(|check| check["name"] == "configuration");
                status["phase"] == "start" && check.is_some_and(|check| check["passed"] == false)
            },
        )?;
        self.guest.output(&format!("cp /mnt/aircraft.toml {file}"))?;
        self.restart("with the right one it is as before")
    }

    /// Nothing can be kept; that is said, and everything else works.
    fn starts_with_a_full_disk(&mut self) -> Result<()> {
        // dd ends with an error when the disk is full.
        self.guest.run("dd if=/dev/zero of=/full bs=1M; dd if=/dev/zero of=/full.2 bs=512; sync")?;
        self.restart("with a full disk it is shown")?;
        let said = self.said("No space left on device")?;
        self.log(&format!("it said: {said}"));
        self.operator.take_off()?;
        self.operator.completes()?;
        self.guest.output("rm /full /full.2")?;
        self.restart("with room again it is as before")
    }

    /// A clock that was never set: keys are not judged by it, and counters continue.
    fn starts_in_1970(&mut self, counter: u64) -> Result<()> {
        self.power(Conditions { clock_of_1970: true, ..Conditions::default() }, "clock of 1970")?;
        // systemd has put it to the year of its own release.
        self.guest.output("date --set=@600")?;
        self.guest.output(&format!("systemctl restart {UNIT}"))?;
        self.connect()?;
        let year = self.guest.output("date +%Y")?;
        ensure!(year == "1970", "clock: found {year}, expected 1970");
        let said = self.said("whether they have expired is not known")?;
        self.log(&format!("it said: {said}"));
        let text = self.guest.output(&format!("cat {STATE}/datagram-counter"))?;
        let later: u64 = text.trim().parse().with_context(|| format!("counter: found {text:?}"))?;
        ensure!(later > counter, "counter: found {later}, expected more than {counter}");
        self.operator.take_off()?;
        self.operator.completes()?;
        self.sets_its_clock()
    }

    /// As docs/operating.md describes it: chronyd steps the clock to GNSS time, which this flight controller has.
    fn sets_its_clock(&mut self) -> Result<()> {
        for (file, to) in [
            ("wingbeat.conf", "/etc/chrony/conf.d"),
            ("wingbeat-override.conf", "/etc/systemd/system/chrony.service.d"),
        ] {
            self.guest.output(&format!("install -D -m 644 /mnt/{file} {to}/wingbeat.conf"))?;
        }
        self.guest.output("systemctl daemon-reload && systemctl restart chrony")?;
        self.operator.until("chronyd is given GNSS time, and the clock is within 0.5 s of it", |status| {
            let ahead_us = status["clock"]["ahead_us"].as_i64();
            status["clock"]["is_fed"] == true && ahead_us.is_some_and(|us| us.unsigned_abs() < 500_000)
        })?;
        let tracking = self.guest.output("chronyc -n tracking | grep -E 'Reference ID|Leap status'")?;
        ensure!(
            tracking.contains("(GNSS)"),
            "chronyc tracking: found {tracking}, expected the reference GNSS"
        );
        let year: u32 = self.guest.output("date +%Y")?.trim().parse().context("the year")?;
        ensure!(year > 2025, "clock: found the year {year}, expected the flight controller's");
        self.log(&format!("the year is {year}; {}", tracking.replace('\n', ", ")));
        Ok(())
    }

    fn starts_with_a_read_only_disk(&mut self) -> Result<()> {
        self.power(Conditions { read_only: true, ..Conditions::default() }, "read-only disk")?;
        self.connect()?;
        let said = self.said("Read-only file system")?;
        self.log(&format!("it said: {said}"));
        self.operator.take_off()?;
        self.operator.completes()
    }

    fn starts_with_neither_radio_nor_flight_controller(&mut self) -> Result<()> {
        let conditions = Conditions { no_radio: true, no_flight_controller: true, ..Conditions::default() };
        self.power(conditions, "neither radio nor flight controller")?;
        let said = self.said("eth0")?;
        self.log(&format!("it said: {said}"));
        let restarts = self.property("NRestarts")?;
        ensure!(restarts == "0", "restarts: found {restarts}, expected the daemon to wait for them");
        Ok(())
    }

    /// The first line of the daemon since it was started that contains the text.
    fn said(&mut self, text: &str) -> Result<String> {
        let id = self.property("InvocationID")?;
        let guest = &mut self.guest;
        self.operator.story.until(&format!("it says why: {text}"), || {
            let log = guest.output(&format!("journalctl --output=cat _SYSTEMD_INVOCATION_ID={id}"))?;
            Ok(log.lines().find(|line| line.contains(text)).map(str::to_owned))
        })
    }

    fn property(&mut self, name: &str) -> Result<String> {
        property(&mut self.guest, name)
    }
}

/// The state of the daemon's unit, from systemd.
fn property(guest: &mut Guest, name: &str) -> Result<String> {
    guest.output(&format!("systemctl show --value --property {name} {UNIT}"))
}
