//! The flight controller's own logs, fetched over MAVLink into the directory of flight logs: on the ground alone, one after the other,
//! continued where it broke off.
//!
//! It owns [`wingbeat_autopilot::data_flash`] next to the agent, as the gateway owns its own part: nothing of it is an order. Frames
//! that carry logs are not handed to the agent, whose flight log would hold them a second time. Files are written beside the
//! driver, a window at a time.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures_util::FutureExt as _;
use tokio::{
    sync::oneshot,
    task::{JoinHandle, spawn_blocking},
};
use wingbeat_api::{ApiError, AutopilotLogWork, AutopilotLogs};
use wingbeat_autopilot::{
    Transmit,
    codec::{
        Decoder,
        finder::Finder,
        framing::Framing,
        signing::{Key, Signer, Timestamp},
    },
    data_flash::{self, DataFlash, ENTRIES_MAX, LogEntry, LogProgress},
    job::{AUTOPILOT_COMPONENT_ID, TRANSMIT_LEN_MAX},
};
use wingbeat_geo::Instant;
use wingbeat_record::store;

/// Logs of autopilots that are kept: the newest.
const KEPT_MAX: usize = 64;
/// A part that was cut off with the power may end in bytes that never reached the card: so many are fetched again.
const DOUBTFUL_LEN: u64 = 64 * 1024;
/// Between two looks at a file that is being written.
const WRITING_POLL: Duration = Duration::from_millis(10);
/// The autopilot logs no flight before it is told that reading has ended: so often, so far apart.
const ENDS: u8 = 3;
const ENDS_PERIOD: Duration = Duration::from_millis(200);
/// Messages that carry logs: LOG_ENTRY and LOG_DATA.
const OF_LOGS: [u32; 2] = [118, 120];

/// What the API asks.
#[derive(Debug)]
pub(crate) enum Ask {
    Begin { newest: u16, reply: oneshot::Sender<Result<AutopilotLogs, ApiError>> },
    Progress(oneshot::Sender<AutopilotLogs>),
}

/// How many may be asked for.
pub(crate) const NEWEST: std::ops::RangeInclusive<u16> = 1..=ENTRIES_MAX as u16;

/// A file, and how many bytes of the log it has.
type Opened = (File, u32);

enum Step {
    Idle,
    Listing,
    /// None where the log is there whole.
    Opening(JoinHandle<io::Result<Option<Opened>>>),
    Receiving(File),
    Writing(JoinHandle<io::Result<File>>),
    Closing(JoinHandle<io::Result<()>>),
}

/// Fetches the flight controller's logs.
pub(crate) struct Fetcher {
    directory: Option<Arc<Path>>,
    /// So much of the disk stays free, bytes.
    free_len: u64,
    signer: Option<Signer>,
    sequence: u8,
    finder: Finder,
    flash: Box<DataFlash>,
    step: Step,
    /// Those that are still to be fetched, the newest last.
    queue: Vec<LogEntry>,
    status: AutopilotLogs,
    ends_left: u8,
    ends_at: Instant,
}

/// The name of a log's file: its number and when it was begun, or its length where that is not known.
fn name(entry: &LogEntry) -> String {
    let which = if entry.utc_s > 0 { entry.utc_s } else { entry.len };
    format!("{}{:05}-{which}{}", store::AUTOPILOT, entry.id, store::AUTOPILOT_ENDING)
}

fn part(whole: &Path) -> PathBuf {
    whole.with_extension("part")
}

/// Opens the part of a log that is there.
fn open(directory: &Path, entry: LogEntry, free_len: u64) -> io::Result<Option<Opened>> {
    let whole = directory.join(name(&entry));
    let part = part(&whole);
    match fs::metadata(&whole) {
        Ok(held) if held.len() == u64::from(entry.len) => return Ok(None),
        Ok(held) if held.len() > u64::from(entry.len) => {
            let found = format!("found {} bytes of it here, expected at most {}", held.len(), entry.len);
            return Err(io::Error::other(found));
        }
        // It has grown.
        Ok(_) => fs::rename(&whole, &part)?,
        Err(_) => {}
    }
    prune(directory)?;
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(&part)?;
    let held = file.metadata()?.len().saturating_sub(DOUBTFUL_LEN).min(entry.len.into());
    let free = store::free_len(directory)?;
    let needed = free_len.saturating_add(u64::from(entry.len) - held);
    if free < needed {
        let (free, needed) = (free >> 20, needed >> 20);
        return Err(io::Error::other(format!(
            "found {free} MiB free on its disk, expected {needed} (log.free_mb)"
        )));
    }
    file.set_len(held)?;
    file.seek(SeekFrom::End(0))?;
    Ok(Some((file, u32::try_from(held).unwrap_or(0))))
}

/// Deletes the oldest beyond those that are kept.
fn prune(directory: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_log = path.file_name().and_then(|name| name.to_str()).is_some_and(store::is_of_autopilot);
        if is_log && let Ok(metadata) = fs::metadata(&path) {
            files.push((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), path));
        }
    }
    files.sort();
    let more = files.len().saturating_sub(KEPT_MAX - 1);
    files.into_iter().take(more).try_for_each(|(_, path)| fs::remove_file(path))
}

impl Fetcher {
    /// Into this directory, where there is one; frames are signed with the key, where the flight controller wants that.
    pub(crate) fn new(directory: Option<&Path>, free_len: u64, signing: Option<(Key, u8)>) -> Self {
        // A daemon that ended while it read left the flight controller reading, and not logging.
        let is_left = directory.and_then(|directory| fs::read_dir(directory).ok()).is_some_and(|entries| {
            entries.flatten().any(|entry| entry.path().extension().is_some_and(|ending| ending == "part"))
        });
        Self {
            directory: directory.map(Arc::from),
            free_len,
            signer: signing.map(|(key, link_id)| Signer::new(key, link_id)),
            sequence: 0,
            finder: Finder::default(),
            flash: Box::new(DataFlash::list(Instant::ZERO, 1)),
            step: Step::Idle,
            queue: vec![],
            status: AutopilotLogs::default(),
            ends_left: if is_left { ENDS } else { 0 },
            ends_at: Instant::ZERO,
        }
    }

    /// Whether it fetches.
    pub(crate) fn is_active(&self) -> bool {
        !matches!(self.step, Step::Idle)
    }

    /// How far it has come.
    pub(crate) fn progress(&self) -> AutopilotLogs {
        self.status.clone()
    }

    /// Begins; while it is under way the same again is answered with how far it has come.
    pub(crate) fn begin(&mut self, now: Instant, newest: u16) -> Result<AutopilotLogs, ApiError> {
        if self.directory.is_none() {
            let message =
                "flight controller's logs: found no directory of flight logs, expected one (log.directory)";
            return Err(ApiError { code: "conflict".into(), message: message.into() });
        }
        if !self.is_active() {
            *self.flash = DataFlash::list(now, newest);
            self.finder.restart();
            self.step = Step::Listing;
            self.queue.clear();
            self.status = AutopilotLogs { work: AutopilotLogWork::Listing, ..AutopilotLogs::default() };
        }
        Ok(self.progress())
    }

    /// Takes the bytes of the line to the flight controller whose system id this is. Returns the agent's share: all, but the
    /// messages of that flight controller that carry logs while they are fetched.
    pub(crate) fn filter(&mut self, now: Instant, system_id: u8, bytes: Vec<u8>) -> Vec<u8> {
        if !self.is_active() {
            return bytes;
        }
        let (mut others, flash) = (Vec::with_capacity(bytes.len()), &mut self.flash);
        self.finder.push(now, &bytes, |raw| {
            let mut is_taken = false;
            if OF_LOGS.contains(&raw.message_id()) {
                Decoder::default().push(raw.bytes(), |frame| {
                    // Another aircraft's log on the same line is not this one's.
                    is_taken = frame.header.system_id == u32::from(system_id)
                        && frame.header.component_id == AUTOPILOT_COMPONENT_ID;
                    if is_taken {
                        flash.on_message(now, &frame.message);
                    }
                });
            }
            if !is_taken {
                others.extend_from_slice(raw.bytes());
            }
        });
        others
    }

    /// When [`Fetcher::turn`] is due.
    pub(crate) fn due(&self, now: Instant) -> Instant {
        let ends_at = if self.ends_left > 0 { self.ends_at } else { Instant::NEVER };
        let due = match self.step {
            Step::Idle => Instant::NEVER,
            Step::Listing | Step::Receiving(_)
                if self.flash.progress() != LogProgress::Pending || self.flash.window().is_some() =>
            {
                now
            }
            Step::Listing | Step::Receiving(_) => self.flash.due(),
            Step::Opening(_) | Step::Writing(_) | Step::Closing(_) => now + WRITING_POLL,
        };
        due.min(ends_at)
    }

    /// Breaks off. What is there is continued the next time.
    pub(crate) fn stop(&mut self, now: Instant, why: &str) -> Option<String> {
        self.is_active().then(|| self.end(now, why))
    }

    fn end(&mut self, now: Instant, why: &str) -> String {
        self.finish(now);
        let line = format!("flight controller's logs: {why}");
        self.status.problem = Some(line.clone());
        line
    }

    fn finish(&mut self, now: Instant) {
        self.step = Step::Idle;
        self.queue.clear();
        self.status.work = AutopilotLogWork::None;
        self.status.log = None;
        (self.ends_left, self.ends_at) = (ENDS, now);
    }

    /// The next of the queue, or the end.
    fn advance(&mut self, now: Instant) {
        let Some((entry, directory)) = self.queue.last().copied().zip(self.directory.clone()) else {
            return self.finish(now);
        };
        self.status.work = AutopilotLogWork::Fetching;
        self.status.log = Some(name(&entry));
        (self.status.received_bytes, self.status.bytes) = (0, entry.len);
        let free_len = self.free_len;
        self.step = Step::Opening(spawn_blocking(move || open(&directory, entry, free_len)));
    }

    /// A log is there whole.
    fn hold(&mut self, now: Instant) {
        self.status.held.extend(self.status.log.take());
        self.queue.pop();
        self.advance(now);
    }

    /// Continues; lines for the log.
    pub(crate) fn turn(&mut self, now: Instant) -> Option<String> {
        match self.work(now) {
            Ok(()) => None,
            Err(why) => {
                let log = self.status.log.clone().map_or_else(String::new, |log| format!("{log}: "));
                Some(self.end(now, &format!("{log}{why}")))
            }
        }
    }

    fn work(&mut self, now: Instant) -> Result<(), String> {
        /// The outcome, once there is one.
        fn ended<T>(handle: &mut JoinHandle<io::Result<T>>) -> Option<Result<T, String>> {
            let joined = handle.now_or_never()?;
            Some(
                joined
                    .map_err(|error| error.to_string())
                    .and_then(|done| done.map_err(|error| error.to_string())),
            )
        }
        let is_ready = match self.flash.progress() {
            LogProgress::Pending => false,
            LogProgress::Ready => true,
            LogProgress::Failed(failure) if self.is_active() => return Err(failure.to_string()),
            LogProgress::Failed(_) => false,
        };
        match std::mem::replace(&mut self.step, Step::Idle) {
            Step::Idle => {}
            Step::Listing if is_ready => {
                // One of no bytes was never begun.
                self.queue = self.flash.entries().iter().copied().filter(|entry| entry.len > 0).collect();
                self.advance(now);
            }
            Step::Listing => self.step = Step::Listing,
            Step::Opening(mut handle) => match (ended(&mut handle), self.queue.last()) {
                (None, _) => self.step = Step::Opening(handle),
                (Some(opened), Some(entry)) => match opened? {
                    Some((file, held)) => {
                        self.flash.fetch(now, *entry, held);
                        self.status.received_bytes = held;
                        self.step = Step::Receiving(file);
                    }
                    None => self.hold(now),
                },
                (Some(_), None) => self.finish(now),
            },
            Step::Receiving(mut file) => match self.flash.window() {
                Some((_, bytes)) => {
                    let bytes = bytes.to_vec();
                    self.step = Step::Writing(spawn_blocking(move || file.write_all(&bytes).map(|()| file)));
                }
                None if is_ready => self.close(file),
                None => self.step = Step::Receiving(file),
            },
            Step::Writing(mut handle) => match ended(&mut handle) {
                None => self.step = Step::Writing(handle),
                Some(file) => {
                    let file = file?;
                    if let Some((from, bytes)) = self.flash.window() {
                        self.status.received_bytes = from + u32::try_from(bytes.len()).unwrap_or(0);
                    }
                    self.flash.next(now);
                    self.step = Step::Receiving(file);
                }
            },
            Step::Closing(mut handle) => match ended(&mut handle) {
                None => self.step = Step::Closing(handle),
                Some(closed) => {
                    closed?;
                    self.hold(now);
                }
            },
        }
        Ok(())
    }

    fn close(&mut self, file: File) {
        let (Some(directory), Some(entry)) = (self.directory.clone(), self.queue.last().copied()) else {
            return;
        };
        self.step = Step::Closing(spawn_blocking(move || {
            let whole = directory.join(name(&entry));
            let found = file.metadata()?.len();
            if found != u64::from(entry.len) {
                return Err(io::Error::other(format!("found {found} bytes, expected {}", entry.len)));
            }
            file.sync_all()?;
            fs::rename(part(&whole), &whole)?;
            wingbeat_keys::file::sync_folder(&whole)
        }));
    }

    /// Bytes for the autopilot whose system id this is.
    pub(crate) fn poll(&mut self, now: Instant, system_id: u8, unix_us: u64) -> Vec<u8> {
        let mut bytes = heapless::Vec::<u8, TRANSMIT_LEN_MAX>::new();
        let framing = match &mut self.signer {
            Some(signer) => {
                signer.advance(Timestamp::from_unix_us(unix_us));
                Framing::Signed(signer)
            }
            // The autopilot answers as it did before: both versions carry logs.
            None => Framing::V1,
        };
        let mut transmit = Transmit { system_id, sequence: &mut self.sequence, framing, bytes: &mut bytes };
        // There is room for one frame.
        if self.ends_left > 0 && matches!(self.step, Step::Idle) {
            if now >= self.ends_at {
                (self.ends_left, self.ends_at) = (self.ends_left - 1, now + ENDS_PERIOD);
                let _ = data_flash::end(&mut transmit);
            }
        } else if matches!(self.step, Step::Listing | Step::Receiving(_)) {
            self.ends_left = 0;
            let _ = self.flash.poll(now, &mut transmit);
        }
        bytes.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use wingbeat_autopilot::codec::{MavHeader, encode_v2};
    use wingbeat_autopilot::dialect::{LOG_DATA_DATA, LOG_ENTRY_DATA, MavMessage};

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn sent(fetcher: &mut Fetcher, ms: u64) -> Vec<MavMessage> {
        let mut messages = vec![];
        let bytes = fetcher.poll(at(ms), 1, 0);
        Decoder::default().push(&bytes, |frame| {
            assert_eq!(frame.header.component_id, data_flash::COMPONENT_ID);
            messages.push(frame.message);
        });
        messages
    }

    fn frame(system_id: u32, message: &MavMessage) -> Vec<u8> {
        let mut bytes = heapless::Vec::<u8, 300>::new();
        encode_v2(MavHeader { system_id, component_id: 1, sequence: 0 }, message, &mut bytes).unwrap();
        bytes.to_vec()
    }

    #[tokio::test]
    async fn what_carries_logs_is_kept_from_the_agent_and_the_end_is_told_when_it_is_broken_off() {
        let folder = tempfile::tempdir().unwrap();
        let mut fetcher = Fetcher::new(Some(folder.path()), 0, None);
        assert_eq!((fetcher.due(at(0)), sent(&mut fetcher, 0).len()), (Instant::NEVER, 0));
        let of = |system_id| {
            frame(
                system_id,
                &MavMessage::LOG_ENTRY(LOG_ENTRY_DATA { id: 1, num_logs: 1, size: 90, ..Default::default() }),
            )
        };
        let entry = of(1);
        let data = frame(1, &MavMessage::LOG_DATA(LOG_DATA_DATA { id: 1, count: 90, ..Default::default() }));
        let other = frame(1, &MavMessage::TIMESYNC(Default::default()));
        // Another's download.
        assert_eq!(fetcher.filter(at(0), 1, data.clone()), data);
        fetcher.begin(at(0), 4).unwrap();
        assert!(matches!(sent(&mut fetcher, 0)[..], [MavMessage::LOG_REQUEST_LIST(_)]));
        let all = [other.clone(), entry.clone(), other.clone(), data].concat();
        assert_eq!(fetcher.filter(at(1), 1, all), [other.clone(), other].concat());
        // Another aircraft on the line answers the same request.
        assert_eq!(fetcher.filter(at(2), 1, of(2)), of(2));
        assert!(fetcher.turn(at(2)).is_none() && fetcher.progress().log.is_none());
        assert!(matches!(sent(&mut fetcher, 2)[..], [MavMessage::LOG_REQUEST_LIST(_)]));
        fetcher.filter(at(3), 1, entry);
        assert_eq!(fetcher.turn(at(3)), None);
        assert_eq!(fetcher.progress().log.as_deref(), Some("autopilot-00001-90.bin"));

        let line = fetcher.stop(at(10), "found motors armed").unwrap();
        assert_eq!(line, "flight controller's logs: found motors armed");
        assert_eq!(fetcher.progress().problem, Some(line));
        assert!(fetcher.stop(at(10), "again").is_none());
        let ends: Vec<u64> = (10..2_000).filter(|ms| !sent(&mut fetcher, *ms).is_empty()).collect();
        assert_eq!(ends, [10, 210, 410]);
        assert_eq!(fetcher.due(at(2_000)), Instant::NEVER);
    }

    #[test]
    fn a_daemon_that_finds_a_part_tells_the_end_that_the_last_could_not() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("autopilot-00001-90.part"), b"x").unwrap();
        let mut fetcher = Fetcher::new(Some(folder.path()), 0, None);
        assert!(matches!(sent(&mut fetcher, 0)[..], [MavMessage::LOG_REQUEST_END(_)]));
        let mut nowhere = Fetcher::new(None, 0, None);
        assert!(nowhere.begin(at(0), 1).is_err_and(|error| error.message.contains("found no directory")));
    }

    #[test]
    fn a_disk_without_room_and_another_log_of_the_same_name_are_said() {
        let folder = tempfile::tempdir().unwrap();
        let entry = LogEntry { id: 1, utc_s: 7, len: 100 };
        let full = open(folder.path(), entry, u64::MAX).unwrap_err().to_string();
        assert!(full.contains("MiB free on its disk, expected"), "{full}");
        assert_eq!(open(folder.path(), entry, 0).unwrap().unwrap().1, 0);
        std::fs::write(folder.path().join("autopilot-00001-7.bin"), [0; 101]).unwrap();
        let longer = open(folder.path(), entry, 0).unwrap_err().to_string();
        assert_eq!(longer, "found 101 bytes of it here, expected at most 100");
        for i in 0..KEPT_MAX + 5 {
            std::fs::write(folder.path().join(format!("autopilot-{i:05}-9.bin")), b"x").unwrap();
        }
        open(folder.path(), LogEntry { id: 99, ..entry }, 0).unwrap();
        let left = std::fs::read_dir(folder.path()).unwrap();
        let left =
            left.flatten().filter(|entry| entry.path().extension().is_some_and(|e| e == "bin")).count();
        assert_eq!(left, KEPT_MAX - 1);
    }
}
