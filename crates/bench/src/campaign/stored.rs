//! The file of one flight: what was flown by which program, and what it came to, exactly. Its name is its key, a hash over all that
//! decides about the flight; a file that is there need not be flown again.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::row::FlightRow;
use crate::flight::FlightResult;
use crate::plan::Plan;
use crate::run::{self, Jobs};
use crate::scenario::Scenario;

/// A flight and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// The flight.
    pub flown: Flown,
    /// What it came to.
    pub result: FlightResult,
}

/// What was flown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flown {
    /// The file's name.
    pub key: String,
    /// The program that flew it: the package's number and a hash over the sources that decide about flights.
    pub program: String,
    /// Name of the plan.
    pub plan: String,
    /// Name of the mission and how it was flown: a row of the table.
    pub flight: String,
    /// What kept aircraft on missions of their own apart.
    pub variant: Option<String>,
    /// Number of aircraft.
    pub aircraft: usize,
    /// Number of waypoints.
    pub waypoints: usize,
    /// Its seed.
    pub seed: u64,
    /// Whether it is the flight that the table compares a row with.
    pub is_reference: bool,
    /// Whether its plan counts collisions instead of expecting none.
    pub counts_collisions: bool,
}

impl Flown {
    /// Each flight of a plan, in their order.
    pub(crate) fn all(plan: &Plan, jobs: &Jobs) -> Vec<Self> {
        let of = |(i, (scenario, seed)): (usize, &(Scenario, u64))| Self {
            key: key(plan, scenario, *seed),
            program: program(),
            plan: plan.name.clone(),
            flight: scenario.label(),
            variant: scenario.variant().map(|variant| variant.name().to_owned()),
            aircraft: scenario.aircraft(),
            waypoints: scenario.waypoints(),
            seed: *seed,
            is_reference: i >= jobs.flown,
            counts_collisions: run::counts_collisions(plan),
        };
        jobs.all.iter().enumerate().map(of).collect()
    }
}

/// Where the files are.
pub(super) fn flights(folder: &Path) -> PathBuf {
    folder.join("flights")
}

/// The program of this build.
pub fn program() -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), env!("WINGBEAT_BENCH"))
}

/// The hash is over the whole scenario, missions and keys of the plan with it, as its text for people of this program.
fn key(plan: &Plan, scenario: &Scenario, seed: u64) -> String {
    let about = format!("{} {seed} {:?} {scenario:?}", program(), plan.time_limit());
    let hash = blake3::hash(about.as_bytes()).to_hex();
    format!("{}-{seed}-{}", plan.name, &hash[..16])
}

impl Stored {
    fn path(folder: &Path, key: &str) -> PathBuf {
        flights(folder).join(format!("{key}.json"))
    }

    /// Writes it whole or not at all.
    ///
    /// # Errors
    /// Names the file.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let path = Self::path(folder, &self.flown.key);
        let mut text = serde_json::to_vec(self).with_context(|| path.display().to_string())?;
        text.push(b'\n');
        write_whole(&path, &text)
    }

    /// Reads the one of a key.
    ///
    /// # Errors
    /// Names the file, what was found and what was expected.
    pub(super) fn read(folder: &Path, key: &str) -> Result<Self> {
        let path = Self::path(folder, key);
        Self::read_file(&path)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Names the file, what was found and what was expected.
    pub fn read_file(path: &Path) -> Result<Self> {
        let here = || path.display().to_string();
        let text = fs::read(path).with_context(here)?;
        let stored: Self = serde_json::from_slice(&text).with_context(here)?;
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let key = &stored.flown.key;
        ensure!(key == name, "{}: found the flight {key}, expected that of its name", here());
        Ok(stored)
    }

    /// All flights of a folder, by their names; and what was found that is none.
    ///
    /// # Errors
    /// There is no such folder, or it holds no flight.
    pub fn read_all(folder: &Path) -> Result<(Vec<Self>, Vec<String>)> {
        let place = flights(folder);
        let here = || format!("{}: expected the folder of a campaign (bench run --out)", folder.display());
        let mut paths = Vec::new();
        for entry in fs::read_dir(&place).with_context(here)? {
            paths.push(entry.with_context(here)?.path());
        }
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        paths.sort();
        let (mut all, mut bad) = (Vec::new(), Vec::new());
        for path in paths {
            match Self::read_file(&path) {
                Ok(stored) => all.push(stored),
                Err(error) => bad.push(format!("{error:#}")),
            }
        }
        ensure!(!all.is_empty(), "{}: found no flight, expected at least one", place.display());
        Ok((all, bad))
    }

    /// Its figures.
    pub fn row(&self) -> FlightRow {
        FlightRow::of(&self.flown, &self.result)
    }
}

/// Writes a file that another process sees whole or not at all, also after a power cut.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&temporary))).with_context(|| path.display().to_string())
}
