//! The section of a plan that gives an aircraft to a script of its owner.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::scenario::{Scenario, Scripted};

/// Where a script finds its autopilot: ArduPilot's first instance of SITL.
const ADDRESS: &str = "127.0.0.1:5760";

/// A script that flies an aircraft, instead of its agent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedScript {
    /// The aircraft, counted from 1.
    pub aircraft: usize,
    /// The file, relative to the plan.
    pub run: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// `HOST:PORT`, where it connects by TCP; `127.0.0.1:5760` unless stated.
    pub address: Option<String>,
    /// The UDP port of its radio: scripts that have the same port receive each other's broadcasts, over the plan's medium.
    pub radio: Option<u16>,
}

impl std::str::FromStr for PlannedScript {
    type Err = anyhow::Error;

    /// `N:FILE ARGUMENT …`, relative to where we are.
    fn from_str(text: &str) -> Result<Self> {
        let expected = || format!("found '{text}', expected AIRCRAFT:FILE, then its arguments");
        let (aircraft, rest) = text.split_once(':').with_context(expected)?;
        let mut words = rest.split_whitespace().map(str::to_owned);
        let run = std::path::absolute(words.next().with_context(expected)?)?;
        Ok(Self {
            aircraft: aircraft.trim().parse().with_context(expected)?,
            run: run.display().to_string(),
            arguments: words.collect(),
            address: None,
            radio: None,
        })
    }
}

impl std::fmt::Display for PlannedScript {
    /// As it is read.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.aircraft, self.run)?;
        self.arguments.iter().try_for_each(|word| write!(f, " {word}"))
    }
}

/// Gives the aircraft of a scenario to their scripts.
///
/// # Errors
/// Names the key, what was found and what was expected.
pub(super) fn give(scripts: &[PlannedScript], scenario: &mut Scenario, folder: &Path) -> Result<()> {
    for PlannedScript { aircraft, run, arguments, address, radio } in scripts {
        let (path, of) = (folder.join(run), scenario.aircraft());
        ensure!((1..=of).contains(aircraft), "script.aircraft: found {aircraft}, expected 1 to {of}");
        let text = std::fs::read(&path)
            .with_context(|| format!("script.run: {}: expected a Python script", path.display()))?;
        let address = address.as_deref().unwrap_or(ADDRESS);
        ensure!(
            address
                .rsplit_once(':')
                .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()),
            "script.address: found '{address}', expected HOST:PORT"
        );
        ensure!(*radio != Some(0), "script.radio: found 0, expected a port, 1 to 65535");
        scenario.scripts.push(Scripted {
            aircraft: aircraft - 1,
            path: std::path::absolute(&path)?,
            text: blake3::hash(&text).to_hex().to_string(),
            arguments: arguments.clone(),
            address: address.to_owned(),
            radio: *radio,
        });
    }
    Ok(())
}
