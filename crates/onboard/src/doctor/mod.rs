//! `wingbeat doctor`: checks one aircraft's computer, line, flight controller and radio, and names what is
//! wrong with each, what was expected and how it is cured.
//!
//! Promises: it commands nothing. It reads files, asks `iw`, `wingbeat-network` and `timedatectl`, listens, and asks the flight
//! controller for parameters; where the daemon holds the line it asks the daemon instead. Files are read below
//! a root directory and programs are run through [`System`], so that a test can make up an aircraft with any
//! fault.
//!
//! | module | what it checks |
//! |---|---|
//! | `device` | the serial device: present, permitted, no kernel console, not the Bluetooth modem's |
//! | `probe` | opens the line, listens, tries other rates, asks for parameters |
//! | `line` | what was received, and the findings from it; pure |
//! | `daemon` | the running daemon's own answer |
//! | `radio` | the interface, its mode, and whether another aircraft has our id |
//! | `system` | the machine: files, programs, the clock |

mod daemon;
mod device;
mod line;
mod probe;
mod radio;
mod system;

use std::{fmt, path::PathBuf, time::Duration};

use serde::Serialize;
pub use system::{Kernel, System};
use wingbeat_link::Endpoint;

use crate::config::{ConfigError, Settings};

/// How a check ended; the worse is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It may fly, and the operator should know.
    Warning,
    /// It must be corrected before flight.
    Fault,
}

/// One check and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Result of the check.
    pub verdict: Verdict,
    /// Name of the check, for example `baud rate`.
    pub name: &'static str,
    /// The value or problem that was found.
    pub found: String,
    /// What should have been found; empty where all is well.
    pub expected: String,
    /// What to do about it; empty where all is well.
    pub cure: String,
}

impl Finding {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { verdict: Verdict::Ok, name, found: found.into(), expected: String::new(), cure: String::new() }
    }

    fn warning(
        name: &'static str,
        found: impl Into<String>,
        expected: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        let (found, expected, cure) = (found.into(), expected.into(), cure.into());
        Self { verdict: Verdict::Warning, name, found, expected, cure }
    }

    fn fault(
        name: &'static str,
        found: impl Into<String>,
        expected: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        Self { verdict: Verdict::Fault, ..Self::warning(name, found, expected, cure) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, found, expected, cure, .. } = self;
        match self.verdict {
            Verdict::Ok => write!(f, "ok      {name}: found {found}"),
            Verdict::Warning => write!(f, "warning {name}: found {found}, expected {expected}; cure: {cure}"),
            Verdict::Fault => write!(f, "FAULT   {name}: found {found}, expected {expected}; cure: {cure}"),
        }
    }
}

/// Everything that was found, in the order of the checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The worst verdict.
    pub verdict: Verdict,
    /// One finding per check, in the order of checking.
    pub findings: Vec<Finding>,
}

impl Report {
    fn new(findings: Vec<Finding>) -> Self {
        let verdict = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Ok);
        Self { verdict, findings }
    }

    /// The exit code: 0 all well, 1 a warning, 2 a fault.
    pub fn exit_code(&self) -> u8 {
        self.verdict as u8
    }
}

impl fmt::Display for Report {
    /// One line per check.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.findings.iter().try_for_each(|finding| writeln!(f, "{finding}"))
    }
}

/// What the checks are run on.
#[derive(Clone, Debug)]
pub struct Options {
    /// The daemon's configuration, or why there is none.
    pub settings: Result<Settings, ConfigError>,
    /// Root of the files: `/`.
    pub root: PathBuf,
    /// The MAVLink system id of the ground station that the flight controller obeys.
    pub ground_station_id: u8,
    /// How long the line is listened to.
    pub listen: Duration,
    /// How long each other rate is listened to: a heartbeat comes each second.
    pub listen_baud: Duration,
    /// How often and how long a parameter is asked for.
    pub ask_period: Duration,
    /// How long the radio is listened to.
    pub listen_radio: Duration,
}

impl Options {
    /// The times that suit a real aircraft.
    pub fn new(settings: Result<Settings, ConfigError>) -> Self {
        Self {
            settings,
            root: "/".into(),
            ground_station_id: 255,
            listen: Duration::from_secs(4),
            listen_baud: Duration::from_millis(1_500),
            ask_period: Duration::from_millis(500),
            listen_radio: Duration::from_secs(3),
        }
    }
}

/// Runs every check once. It takes up to half a minute.
pub async fn examine(options: &Options, system: &dyn System) -> Report {
    let settings = match &options.settings {
        Ok(settings) => settings,
        Err(error) => {
            let cure = "correct the file; deploy/wingbeatd.toml is a sample with every key";
            let problem = error.to_string().replace('\n', " ");
            let found = Finding::fault("configuration", problem, "a configuration that can be flown", cure);
            return Report::new(vec![found, system::clock(system)]);
        }
    };
    let me = settings.daemon.agent.coordination.me();
    let mut findings = vec![Finding::ok("configuration", format!("aircraft {me}"))];
    findings.extend(settings.daemon.open_gateway().map(|found| {
        let expected = "a gateway of this computer alone, or signed MAVLink";
        Finding::warning(
            "gateway",
            found,
            expected,
            "gateway.tcp and gateway.udp at 127.0.0.1, or autopilot.signing_key_file",
        )
    }));
    let daemon = daemon::ask(settings).await;
    let usable = match &settings.daemon.autopilot {
        Endpoint::Serial { path, .. } => {
            device::examine(&options.root, path, daemon.is_some(), &mut findings).await
        }
        Endpoint::TcpClient { .. } | Endpoint::UdpListen(_) | Endpoint::UdpSend(_) => true,
    };
    match &daemon {
        Some(status) => daemon::examine(status, &mut findings),
        None if usable => Box::pin(probe::examine(options, settings, &mut findings)).await,
        None => {}
    }
    findings.push(system::clock(system));
    radio::examine(options, settings, system, daemon.is_some(), &mut findings).await;
    Report::new(findings)
}
