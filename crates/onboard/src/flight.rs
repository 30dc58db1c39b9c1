//! Keeps over a restart what the swarm's flight is: one file of the state directory, written when the flight is set up, and read by
//! a daemon that starts. How far along its route the aircraft is changes in flight, and is the guardian's to know.

use std::{io, path::Path, sync::mpsc, thread};

use serde::{Deserialize, Serialize};
use wingbeat_agent::{FlightRecord, StateId};
use wingbeat_keys::file::write;

use crate::state_directory;

/// The file's name in the state directory.
const FILE: &str = "flight.json";
/// Of the file.
const VERSION: u32 = 1;
/// No record is longer: 600 waypoints and 128 aircraft have less than half of that.
const LEN_MAX: u64 = 256 << 10;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    flight: FlightRecord,
}

/// Keeps the record of the flight. Without a directory it keeps nothing.
#[derive(Default)]
pub(crate) struct KeptFlight {
    found: Option<Box<FlightRecord>>,
    problem: Option<String>,
    kept: Option<Box<FlightRecord>>,
    /// The protocol's state when it was kept last.
    state: Option<StateId>,
    /// To the thread that writes: a slow card does not delay the driver.
    writer: Option<mpsc::Sender<Box<FlightRecord>>>,
}

impl KeptFlight {
    /// Reads what an earlier daemon has kept.
    pub(crate) fn open(directory: Option<&Path>) -> Self {
        let Some(directory) = directory else { return Self::default() };
        let path = directory.join(FILE);
        let (found, problem) = match read(&path) {
            Ok(found) => (found, None),
            Err(found) => {
                let expected = format!("expected the record of a flight, version {VERSION}");
                (
                    None,
                    Some(format!("{}: found {found}, {expected}; a swarm is not rejoined", path.display())),
                )
            }
        };
        let (writer, records) = mpsc::channel();
        let thread = thread::Builder::new().name("flight".into()).spawn(move || write_all(&path, &records));
        let writer = thread.is_ok().then_some(writer);
        Self { kept: found.clone(), found, problem, state: None, writer }
    }

    /// Why what is there is not used.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// What an earlier daemon has kept; once.
    pub(crate) fn take(&mut self) -> Option<Box<FlightRecord>> {
        self.found.take()
    }

    /// Keeps the flight, if it is another. It is asked for when the protocol is in another state.
    pub(crate) fn keep(&mut self, state: StateId, flight: impl FnOnce() -> Option<FlightRecord>) {
        if self.state.replace(state) == Some(state) {
            return;
        }
        let Some(flight) = flight().map(Box::new).filter(|flight| self.kept.as_ref() != Some(flight)) else {
            return;
        };
        if let Some(writer) = &self.writer {
            // The thread ends with this sender.
            let _ = writer.send(flight.clone());
        }
        self.kept = Some(flight);
    }
}

fn read(path: &Path) -> Result<Option<Box<FlightRecord>>, String> {
    let Some(bytes) = state_directory::read(path, LEN_MAX)? else { return Ok(None) };
    let Content { version, flight } = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if version != VERSION {
        return Err(format!("version {version}"));
    }
    Ok(Some(Box::new(flight)))
}

fn write_all(path: &Path, records: &mpsc::Receiver<Box<FlightRecord>>) {
    while let Ok(mut newest) = records.recv() {
        while let Ok(newer) = records.try_recv() {
            newest = newer;
        }
        let content = Content { version: VERSION, flight: *newest };
        let text = serde_json::to_string(&content).map_err(io::Error::other);
        if let Err(error) = text.and_then(|text| write(path, &text)) {
            let path = path.display();
            tracing::error!(
                "{path}: found {error}, expected to keep the flight there; a restart does not rejoin it"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn record(flight: u32) -> FlightRecord {
        FlightRecord { flight, plan: Default::default(), homes: [None].into_iter().collect() }
    }

    /// What the next daemon finds, once it is `expected` or ten seconds have passed.
    fn found(directory: &Path, expected: &FlightRecord) -> Option<Box<FlightRecord>> {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let found = KeptFlight::open(Some(directory)).take();
            if found.as_deref() == Some(expected) || Instant::now() > until {
                return found;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_is_kept_is_found_by_the_next_daemon_and_asked_for_once_in_each_state() {
        let directory = tempfile::tempdir().unwrap();
        let mut kept = KeptFlight::open(Some(directory.path()));
        assert!(kept.take().is_none() && kept.problem().is_none());
        kept.keep(StateId::Start, || None);
        kept.keep(StateId::ReadyToFly, || Some(record(7)));
        kept.keep(StateId::ReadyToFly, || panic!("the state is the same"));
        assert_eq!(found(directory.path(), &record(7)).as_deref(), Some(&record(7)));
        kept.keep(StateId::TakingOff, || Some(record(8)));
        assert_eq!(found(directory.path(), &record(8)).as_deref(), Some(&record(8)));
        // What is over is not forgotten: another aircraft's flight may still be that one.
        kept.keep(StateId::Start, || None);
        assert_eq!(found(directory.path(), &record(8)).as_deref(), Some(&record(8)));
    }

    #[test]
    fn without_a_directory_nothing_is_kept() {
        let mut kept = KeptFlight::open(None);
        kept.keep(StateId::ReadyToFly, || Some(record(7)));
        assert!(kept.take().is_none() && kept.problem().is_none());
    }

    #[test]
    fn a_file_that_is_no_record_is_said_and_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let whole = serde_json::to_string(&Content { version: VERSION, flight: record(7) }).unwrap();
        for (content, says) in [
            (whole.get(..whole.len() / 2).unwrap().to_owned(), "EOF"),
            (whole.replace("\"version\":1", "\"version\":2"), "version 2"),
            (whole.replace("\"flight\":7", "\"flight\":-7"), "invalid value"),
            (" ".repeat(LEN_MAX as usize + 1), "more than"),
            ("\u{0}".repeat(9), "expected value"),
        ] {
            std::fs::write(&path, content).unwrap();
            let mut kept = KeptFlight::open(Some(directory.path()));
            assert!(kept.take().is_none());
            let problem = kept.problem().unwrap();
            assert!(problem.contains(says) && problem.contains("flight.json"), "{problem}");
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(KeptFlight::open(Some(directory.path())).problem().unwrap().contains("directory"));
    }
}
