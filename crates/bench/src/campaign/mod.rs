//! Campaigns: the flights of a plan as tasks, each with a result file of its own in one folder, so that any number of
//! processes and machines fly parts of it, and an interrupted campaign goes on where it ended.
//!
//! | module | |
//! |---|---|
//! | [`shard`] | which of the flights one process flies |
//! | [`stored`] | the file of one flight |
//! | [`row`] | the figures of a flight, by name |
//! | [`results`] | what is made of all flights: table, CSV, JSON, one page |
//! | [`accept`] | the ranges that a plan expects of its figures |
//! | [`drawn`] | the course of a flight that the page draws |
//! | [`effort`] | what each process that flew used |
//! | [`compare`] | two campaigns side by side, flight by flight |
//! | [`parquet`] | many campaigns in one table of Parquet |
//! | [`sqlite`] | many campaigns in one database |
//! | [`submit`] | job files for the engines that run many processes |

pub mod accept;
pub mod compare;
mod drawn;
mod effort;
pub mod parquet;
mod plot;
pub mod results;
pub mod row;
pub mod shard;
pub mod sqlite;
pub mod stored;
pub mod submit;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};

use crate::flight::{FlightResult, fly_traced};
use crate::plan::Plan;
use crate::run::{self, Jobs, Outcome};
use shard::Shard;
use stored::{Flown, Stored};

/// A plan whose results are in a folder.
pub struct Campaign<'a> {
    plan: &'a Plan,
    jobs: Jobs,
    flown: Vec<Flown>,
    folder: PathBuf,
}

/// What a process did for a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Flights that it flew.
    pub flown: usize,
    /// Flights of its shard whose results were there.
    pub present: usize,
    /// Flights without a result, of all shards.
    pub missing: usize,
    /// Flights of the campaign.
    pub all: usize,
}

impl<'a> Campaign<'a> {
    /// The flights of a plan whose files are relative to `plan_folder`, with results in `folder`, which is made.
    ///
    /// # Errors
    /// A scenario cannot be flown, the plan flies none, or the folder cannot be made.
    pub fn new(plan: &'a Plan, plan_folder: &Path, seed: u64, folder: &Path) -> Result<Self> {
        if plan.saturation.is_some() || plan.guidance.is_some() {
            bail!("--out: found a plan without aircraft, expected one that flies");
        }
        plan.on_one_computer("--out")?;
        let jobs = Jobs::of(plan, plan_folder, seed)?;
        let flown = Flown::all(plan, &jobs);
        fs::create_dir_all(stored::flights(folder))
            .with_context(|| format!("{}: expected a folder for results", folder.display()))?;
        Ok(Self { plan, jobs, flown, folder: folder.into() })
    }

    /// Flies what is missing of a shard. `done` is called after each flight, with how many were flown and how many were missing.
    ///
    /// # Errors
    /// Another process flies the shard, a flight is not over in time, or a result cannot be written; what was written stays.
    pub fn fly(
        &self,
        shard: Shard,
        threads: usize,
        record: Option<&Path>,
        done: impl Fn(usize, usize) + Sync,
    ) -> Result<Tally> {
        let _lock = self.lock(shard)?;
        let own: Vec<usize> = (0..self.flown.len()).filter(|i| shard.has(*i)).collect();
        let missing: Vec<usize> = own.iter().copied().filter(|i| self.read(*i).is_none()).collect();
        let flown = std::sync::atomic::AtomicUsize::new(0);
        let meter = effort::Meter::begin();
        let fly = |i: usize| -> Result<f64> {
            let (scenario, seed) = &self.jobs.all[i];
            let logs = record.map(|record| record.join(&self.flown[i].key));
            let (result, course) = fly_traced(scenario, *seed, self.plan.time_limit(), logs.as_deref())?;
            // Before its result, with which it counts as flown.
            if let Some(logs) = &logs {
                parquet::write_tracks(&self.folder, &self.flown[i].key, logs)?;
            }
            if self.is_drawn(i, &result) {
                drawn::write(&self.folder, &self.flown[i].key, &course)?;
            }
            let duration = result.duration;
            Stored { flown: self.flown[i].clone(), result }.write(&self.folder)?;
            done(flown.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1, missing.len());
            Ok(duration.as_secs_f64())
        };
        // The others are flown, and kept; that one has failed is said at once.
        let flights = run::each(&missing, threads, |&i| {
            Ok(fly(i).inspect_err(|why| eprintln!("flight {}: {why:#}", self.flown[i].key)))
        })?;
        let flights = flights.into_iter().collect::<Result<Vec<f64>>>()?;
        if !flights.is_empty() {
            meter.end(shard, threads, &flights).add(&self.folder)?;
        }
        let all = self.flown.len();
        let missing_of_all = (0..all).filter(|i| self.read(*i).is_none()).count();
        Ok(Tally { flown: missing.len(), present: own.len() - missing.len(), missing: missing_of_all, all })
    }

    /// What all flights come to, once all are there; nothing before.
    pub fn results(&self) -> Option<(Outcome, Vec<FlightResult>)> {
        let flights: Option<Vec<FlightResult>> =
            (0..self.flown.len()).map(|i| self.read(i).map(|stored| stored.result)).collect();
        let flights = flights?;
        Some((run::outcome(self.plan, &self.jobs, &flights), flights))
    }

    /// Of each row of the table the first flight is drawn, and each that failed.
    fn is_drawn(&self, i: usize, result: &FlightResult) -> bool {
        let own = &self.flown[i];
        let is_of_row = |other: &Flown| other.flight == own.flight && other.is_reference == own.is_reference;
        self.flown.iter().position(is_of_row) == Some(i) || !run::is_good(own.counts_collisions, result)
    }

    /// Nothing of a file that is missing or damaged: it is flown again.
    fn read(&self, i: usize) -> Option<Stored> {
        Stored::read(&self.folder, &self.flown.get(i)?.key).ok()
    }

    /// Held while a shard is flown. The operating system releases it when the process ends, however it ends.
    fn lock(&self, shard: Shard) -> Result<File> {
        let path = self.folder.join(format!("shard-{}-of-{}.lock", shard.index, shard.count));
        let here = || path.display().to_string();
        let file = File::create(&path).with_context(here)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                bail!("{}: another process flies shard {shard} into this folder", here())
            }
            Err(error) => Err(error).with_context(here),
        }
    }
}

#[cfg(test)]
mod tests;
