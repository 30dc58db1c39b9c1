//! What the processes used that flew a campaign: a line for each in `runs.csv`, which is no part of the results.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::shard::Shard;
use super::stored::program;

const FILE: &str = "runs.csv";

/// One process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Effort {
    pub(super) shard: String,
    pub(super) program: String,
    /// The processor's kind and its number of cores.
    pub(super) machine: String,
    pub(super) threads: usize,
    pub(super) flights: usize,
    /// Time that was flown.
    pub(super) virtual_s: f64,
    pub(super) wall_s: f64,
    /// Of all threads of this process; ArduCopter's and ns-3's are processes of their own.
    pub(super) cpu_s: f64,
}

/// Measures one.
pub(super) struct Meter {
    began_s: f64,
    began_cpu_s: f64,
}

fn seconds(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

impl Meter {
    pub(super) fn begin() -> Self {
        Self { began_s: seconds(ClockId::Monotonic), began_cpu_s: seconds(ClockId::ProcessCPUTime) }
    }

    /// After these flights, of which each was so long.
    pub(super) fn end(self, shard: Shard, threads: usize, flights_s: &[f64]) -> Effort {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let rounded = |s: f64| (s * 1e3).round() / 1e3;
        Effort {
            shard: shard.to_string(),
            program: program(),
            machine: format!("{}, {cores} cores", std::env::consts::ARCH),
            threads: threads.min(flights_s.len()),
            flights: flights_s.len(),
            virtual_s: rounded(flights_s.iter().sum()),
            wall_s: rounded(seconds(ClockId::Monotonic) - self.began_s),
            cpu_s: rounded(seconds(ClockId::ProcessCPUTime) - self.began_cpu_s),
        }
    }
}

impl Effort {
    /// Adds its line, in one piece: other processes add theirs.
    ///
    /// # Errors
    /// Names the file.
    pub(super) fn add(&self, folder: &Path) -> Result<()> {
        let path = folder.join(FILE);
        let here = || path.display().to_string();
        let mut file = OpenOptions::new().create(true).append(true).open(&path).with_context(here)?;
        let is_new = file.metadata().with_context(here)?.len() == 0;
        let mut line = csv::WriterBuilder::new().has_headers(is_new).from_writer(Vec::new());
        line.serialize(self).with_context(here)?;
        let line = line.into_inner().with_context(here)?;
        file.write_all(&line).with_context(here)
    }

    /// All that ended; lines that are none are left out.
    pub(super) fn read_all(folder: &Path) -> Vec<Self> {
        let Ok(mut reader) = csv::Reader::from_path(folder.join(FILE)) else { return Vec::new() };
        reader.deserialize().filter_map(Result::ok).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_a_line_and_what_it_used_is_its_own() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Effort::read_all(folder.path()).is_empty());
        let meter = Meter::begin();
        let mut sum = 0.0f64;
        while seconds(ClockId::ProcessCPUTime) - meter.began_cpu_s < 0.05 {
            sum = (sum + 1.0).sqrt();
        }
        let effort = meter.end(Shard { index: 2, count: 3 }, 8, &[100.0, 23.5]);
        assert!(effort.cpu_s >= 0.05 && effort.wall_s > 0.0, "{effort:?}, {sum}");
        assert_eq!((effort.threads, effort.flights, effort.virtual_s), (2, 2, 123.5));
        effort.add(folder.path()).unwrap();
        effort.add(folder.path()).unwrap();
        std::fs::OpenOptions::new()
            .append(true)
            .open(folder.path().join(FILE))
            .and_then(|mut file| file.write_all(b"cut,off"))
            .unwrap();
        assert_eq!(Effort::read_all(folder.path()), [effort.clone(), effort]);
    }
}
