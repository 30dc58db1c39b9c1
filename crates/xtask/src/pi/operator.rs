//! The operator: `wingbeat ground` on this machine, its buttons, and the flight controller that it does not see.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::nspawn::{Program, Story, http};

/// The aircraft, by `tests/pi/aircraft.toml`.
pub(super) const ID: &str = "0000b827eb010203";

/// One aircraft, its simulated flight controller, and the PC Companion.
pub(super) struct Operator {
    pub(super) story: Story,
    pub(super) sim: Program,
    /// Port of the flight controller.
    pub(super) flight_controller: u16,
    /// Port of the aircraft's API.
    pub(super) api: u16,
    page: u16,
    ground: Option<Program>,
}

impl Operator {
    /// Starts the flight controller.
    pub(super) fn begin(wingbeat: &Path) -> Result<Self> {
        let story = Story::begin();
        let sim = flight_controller(wingbeat, 0)?;
        let flight_controller = story.until("the simulated flight controller waits", || {
            let line = sim.line(0, |line| line.contains(": tcp:127.0.0.1:"));
            Ok(line.and_then(|(_, line)| line.rsplit(':').next()?.parse().ok()))
        })?;
        Ok(Self { story, sim, flight_controller, api: free_port()?, page: free_port()?, ground: None })
    }

    /// Another battery: the flight controller starts anew, at home. Its line has ended before.
    pub(super) fn change_battery(&mut self, wingbeat: &Path) -> Result<()> {
        // The one before is ended first: both have the port.
        self.sim.kill();
        self.sim = flight_controller(wingbeat, self.flight_controller)?;
        let listens = || Ok(self.sim.line(0, |line| line.contains(": tcp:127.0.0.1:")).map(drop));
        self.story.until("another battery: the flight controller starts anew", listens)
    }

    /// Starts the PC Companion anew, with the keys of this folder if there is one, and waits for the aircraft.
    pub(super) fn connect(&mut self, wingbeat: &Path, keys: Option<&Path>) -> Result<()> {
        self.open(wingbeat, keys)?;
        self.is_ready("the PC Companion shows it, its flight controller connected")
    }

    /// Starts the PC Companion anew.
    pub(super) fn open(&mut self, wingbeat: &Path, keys: Option<&Path>) -> Result<()> {
        // The one before is ended first: both have the port.
        self.ground = None;
        let mut ground = Command::new(wingbeat);
        ground.arg("ground").arg(format!("127.0.0.1:{}", self.api)).args(["--bind", &self.page()]);
        if let Some(keys) = keys {
            ground.arg("--keys").arg(keys);
        }
        self.ground = Some(Program::start(&mut bound(&ground))?);
        Ok(())
    }

    fn page(&self) -> String {
        format!("127.0.0.1:{}", self.page)
    }

    /// The aircraft as the PC Companion shows it.
    pub(super) fn shown(&self) -> Result<Value> {
        let (code, picture) = http::ask(&self.page(), "GET", "/api/v1/fleet", None)?;
        ensure!(code == 200, "fleet: found code {code}, expected 200");
        Ok(picture["aircraft"][0].clone())
    }

    /// Waits for what is shown, as long as it is fresh.
    pub(super) fn until(&self, what: &str, satisfies: impl Fn(&Value) -> bool) -> Result<()> {
        let mut last = Value::Null;
        let seen = self.story.until(what, || {
            // Before it listens there is nothing to be seen.
            let Ok(seen) = self.shown() else { return Ok(None) };
            let young = seen["age_ms"].as_u64().is_some_and(|age_ms| age_ms < 1_000);
            let satisfied = seen["link"] == "up" && young && satisfies(&seen["status"]);
            last = seen;
            Ok(satisfied.then_some(()))
        });
        seen.with_context(|| format!("found {last}; {}", self.sim.last()))
    }

    /// Waits until it is shown on the ground with its flight controller.
    pub(super) fn is_ready(&self, what: &str) -> Result<()> {
        self.until(what, |status| {
            let connected = status["flight_controller"]["link"] == "up";
            status["id"] == ID && connected && status["phase"] == "start"
        })
    }

    /// Gives it a short mission, presses *Setup* and *Start*, and waits until it is on its way.
    pub(super) fn take_off(&self) -> Result<()> {
        self.story.until("the mission is accepted", || {
            let waypoint = |latitude_deg: f64| json!({"latitude_deg": latitude_deg, "longitude_deg": -0.3464, "height_m": 10.0});
            let waypoints = [waypoint(39.4825), waypoint(39.4834)];
            let body = json!({"vehicle": ID, "mission": {"name": "there", "waypoints": waypoints}});
            let (code, _) = http::ask(&self.page(), "PUT", "/api/v1/fleet/mission", Some(&body))?;
            Ok((code == 200).then_some(()))
        })?;
        self.until("all preflight checks that setup needs pass", |status| {
            let checks = status["checks"].as_array();
            let is_met = |check: &Value| check["passed"] == true || check["is_required"] == false;
            checks.is_some_and(|checks| !checks.is_empty() && checks.iter().all(is_met))
        })?;
        for (button, phase) in [("setup", "ready"), ("start", "moving")] {
            self.press(button)?;
            self.until(&format!("it is {phase}"), |status| status["phase"] == phase)?;
        }
        self.story.log(&self.sim.last());
        Ok(())
    }

    /// Waits until the mission is flown.
    pub(super) fn completes(&self) -> Result<()> {
        self.until("the mission is flown: finished, disarmed", |status| {
            status["phase"] == "finished" && status["flight_controller"]["armed"] == false
        })?;
        self.story.log(&self.sim.last());
        Ok(())
    }

    /// Presses a button of the PC Companion, when it can be pressed.
    pub(super) fn press(&self, command: &str) -> Result<()> {
        self.story.until(&format!("pressed {command}"), || {
            let id = format!("{command}-{}", self.story.elapsed_ms());
            let body = json!({"id": id, "command": command, "vehicles": []});
            let (code, answer) = http::ask(&self.page(), "POST", "/api/v1/fleet/commands", Some(&body))?;
            let taken = (200..300).contains(&code);
            ensure!(taken || code == 409, "{command}: found {code} {answer}, expected it to be taken");
            Ok(taken.then_some(()))
        })
    }

    /// Waits until it is down after one of these modes in this order; `from` is how many lines had been printed when it began.
    pub(super) fn lands(&self, from: usize, since: Instant, modes: &[&str]) -> Result<()> {
        self.story.lands(&self.sim, from, since, modes)
    }
}

/// A simulated flight controller on this port, or one of the system's choice.
fn flight_controller(wingbeat: &Path, port: u16) -> Result<Program> {
    let mut sim = Command::new(wingbeat);
    Program::start(&mut bound(sim.args(["sim", "--watch", "--tcp", &port.to_string()])))
}

/// The command, whose program ends with this one however this ends.
pub(super) fn bound(command: &Command) -> Command {
    let mut bound = Command::new("setpriv");
    bound.args(["--pdeathsig=KILL", "--"]).arg(command.get_program()).args(command.get_args());
    bound
}

/// A port that nothing listens on.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
