//! The flight log of the daemon: `wingbeat-record` next to the driver, on a thread of its own. The driver never waits for it:
//! what finds no room is lost, counted, and stated in the log and in the status.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use wingbeat_agent::{Agent, Input, Outputs};
use wingbeat_api::FlightLog;
use wingbeat_geo::Instant as AgentTime;
use wingbeat_record::file::{About, Header};
use wingbeat_record::recorder::Recorder;
use wingbeat_record::store::{Limits, Store};
use wingbeat_record::writer::{Counts, Pace, Writer};

/// The folder of logs in the state directory.
const FOLDER: &str = "log";
/// A daemon that stops waits so long for the disk.
const END_TIMEOUT: Duration = Duration::from_secs(1);
const END_POLL: Duration = Duration::from_millis(10);

/// Where and within which limits a daemon logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The directory; without one, `log` in the state directory.
    pub directory: Option<PathBuf>,
    /// What is kept there.
    pub limits: Limits,
}

/// The flight log, or why there is none.
#[derive(Debug)]
pub(crate) enum Recording {
    /// Nothing is logged; why, where that was not asked for.
    Off(Option<String>),
    On {
        recorder: Recorder,
        writer: Writer,
        counts: Arc<Counts>,
        directory: PathBuf,
    },
}

impl Recording {
    /// Opens the directory. An aircraft without a log flies all the same, and says so.
    pub(crate) fn open(settings: Option<Settings>, state: Option<&Path>, name: &str) -> Self {
        let Some(Settings { directory, limits }) = settings else { return Self::Off(None) };
        let Some(directory) = directory.or_else(|| state.map(|state| state.join(FOLDER))) else {
            return Self::Off(Some(
                "log.directory: found none and no state directory, expected one of them: this flight is not logged".into(),
            ));
        };
        let header = Header { about: About::new(), utc_base_us: None };
        let opened = Store::open(&directory, limits, header).and_then(|store| {
            Writer::spawn(store, Pace::Loses)
                .map_err(|error| format!("log: found {error}, expected a thread for the flight log"))
        });
        match opened {
            Ok((writer, blocks)) => {
                Self::On { recorder: Recorder::new(blocks, name), counts: writer.counts(), writer, directory }
            }
            Err(problem) => Self::Off(Some(format!("{problem}: this flight is not logged"))),
        }
    }

    pub(crate) fn begin(&mut self, now: AgentTime, agent: &Agent) {
        if let Self::On { recorder, .. } = self {
            recorder.begin(now, agent);
        }
    }

    pub(crate) fn record(&mut self, now: AgentTime, input: &Input<'_>, agent: &Agent, out: &Outputs) {
        if let Self::On { recorder, .. } = self {
            recorder.record(now, input, agent, out);
        }
    }

    /// When something is old enough to be handed on.
    pub(crate) fn due(&self) -> Option<AgentTime> {
        match self {
            Self::Off(_) => None,
            Self::On { recorder, .. } => recorder.due(),
        }
    }

    /// Hands on what is old enough, also where nothing happens.
    pub(crate) fn turn(&mut self, now: AgentTime) {
        if let Self::On { recorder, .. } = self {
            recorder.turn(now);
        }
    }

    /// Ends the log: its last records and its index, where the disk takes them in time. Without that it is read up to
    /// its last chunk.
    pub(crate) async fn end(self) {
        let Self::On { recorder, writer, .. } = self else { return };
        // The thread ends when all is written after the recorder has gone.
        drop(recorder);
        let until = Instant::now() + END_TIMEOUT;
        while !writer.is_finished() && Instant::now() < until {
            sleep(END_POLL).await;
        }
    }

    /// Where it is.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Self::Off(_) => None,
            Self::On { directory, .. } => Some(directory),
        }
    }

    /// Why nothing is logged now.
    pub(crate) fn problem(&self) -> Option<String> {
        match self {
            Self::Off(why) => why.clone(),
            Self::On { counts, .. } => counts.problem(),
        }
    }

    /// For the status.
    pub(crate) fn status(&self) -> FlightLog {
        match self {
            Self::Off(why) => FlightLog { directory: None, written: 0, lost: 0, problem: why.clone() },
            Self::On { counts, directory, .. } => FlightLog {
                directory: Some(directory.display().to_string()),
                written: counts.written(),
                lost: counts.lost(),
                problem: counts.problem(),
            },
        }
    }
}
