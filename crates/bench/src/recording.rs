//! Flight logs of a bench: a file for each aircraft of a flight. They hold no clock of this machine: the same flight makes
//! the same bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
use wingbeat_agent::{Agent, Input, Outputs};
use wingbeat_geo::Instant;
use wingbeat_record::file::{About, Header};
use wingbeat_record::recorder::Recorder;
use wingbeat_record::store::{ENDING, SingleFile};
use wingbeat_record::writer::{Pace, Writer};
use wingbeat_sim::world::Record;

/// The writers of one flight.
pub struct Recording {
    folder: PathBuf,
    about: About,
    writers: Writers,
}

type Writers = Arc<Mutex<Vec<Result<Writer, String>>>>;

impl Recording {
    /// Logs into a folder, which is made; `about` is stated at the beginning of each.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn begin(folder: &Path, about: &[(&str, String)]) -> Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("{}: expected a folder for logs", folder.display()))?;
        let about = about.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        Ok(Self { folder: folder.into(), about, writers: Writers::default() })
    }

    /// What a world hands its inputs to.
    pub fn recorder(&self) -> Box<dyn Record> {
        Box::new(Recorders {
            folder: self.folder.clone(),
            about: self.about.clone(),
            writers: Arc::clone(&self.writers),
            recorders: Vec::new(),
        })
    }

    /// Waits until all is written, after the world has ended.
    ///
    /// # Errors
    /// A log that could not be written.
    pub fn end(self) -> Result<()> {
        let writers = std::mem::take(&mut *self.writers.lock().unwrap_or_else(PoisonError::into_inner));
        writers.into_iter().try_for_each(|writer| writer.and_then(Writer::join)).map_err(|why| anyhow!(why))
    }
}

/// The file of an aircraft, from 0.
pub fn file(folder: &Path, vehicle: usize) -> PathBuf {
    folder.join(format!("uav-{:03}.{ENDING}", vehicle + 1))
}

struct Recorders {
    folder: PathBuf,
    about: About,
    writers: Writers,
    recorders: Vec<Option<Recorder>>,
}

impl Record for Recorders {
    fn begin(&mut self, now: Instant, vehicle: usize, agent: &Agent) {
        if self.recorders.len() <= vehicle {
            self.recorders.resize_with(vehicle + 1, || None);
            let name = format!("UAV {}", vehicle + 1);
            let header = Header { about: self.about.clone(), utc_base_us: None };
            let sink = SingleFile::new(file(&self.folder, vehicle), header);
            let writer = Writer::spawn(sink, Pace::Waits).map(|(writer, blocks)| {
                self.recorders[vehicle] = Some(Recorder::new(blocks, &name));
                writer
            });
            let writer = writer.map_err(|error| format!("a thread for the log of {name}: found {error}"));
            self.writers.lock().unwrap_or_else(PoisonError::into_inner).push(writer);
        }
        if let Some(recorder) = &mut self.recorders[vehicle] {
            recorder.begin(now, agent);
        }
    }

    fn handled(&mut self, now: Instant, vehicle: usize, input: &Input<'_>, agent: &Agent, out: &Outputs) {
        if let Some(Some(recorder)) = self.recorders.get_mut(vehicle) {
            recorder.record(now, input, agent, out);
        }
    }
}
