//! What of a checklist is on the disk: its ticks, which a restart keeps, and a file for each start. A thread of its own writes,
//! because no command waits for it.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::time::timeout;
use wingbeat_api::{ChecklistResult, ChecklistResultFile};
use wingbeat_keys::file::write_private;

use super::{KEPT_WITHIN, State, lock};

/// What waits for the disk.
const QUEUE: usize = 64;
/// Results that are listed.
const RESULTS_MAX: usize = 500;
/// The longest file that is read, bytes: 64 items and 512 aircraft need less.
const FILE_MAX: u64 = 16 << 20;

/// What is to be on the disk.
pub(super) enum Kept {
    Ticks(Box<State>),
    Result(Box<ChecklistResult>),
    /// Nothing more than what came before.
    Flush,
}

/// Ends when it is there, or cannot be.
pub(super) struct Pending(Option<oneshot::Receiver<()>>);

impl Pending {
    pub(super) async fn done(self) {
        if let Some(done) = self.0 {
            // A disk that hangs keeps no operator waiting for ever.
            let _ = timeout(KEPT_WITHIN, done).await;
        }
    }
}

type Job = (Kept, oneshot::Sender<()>);

#[derive(Debug)]
pub(super) struct Disk(SyncSender<Job>);

impl Disk {
    pub(super) fn begin(folder: PathBuf, ticks: PathBuf, state: Arc<Mutex<State>>) -> io::Result<Self> {
        let (sender, jobs) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new().name("checklist".to_owned());
        thread.spawn(move || run(&folder, &ticks, &state, &jobs))?;
        Ok(Self(sender))
    }

    /// Under the lock of the state, so that the disk has everything in its order.
    pub(super) fn keep(&self, kept: Kept, state: &mut State) -> Pending {
        let (done, pending) = oneshot::channel();
        if self.0.try_send((kept, done)).is_err() {
            state.problem = Some("the disk is too slow: not everything of the checklist is kept".to_owned());
            state.version += 1;
            tracing::error!("checklist: found the disk too slow, expected a place for ticks and results");
            return Pending(None);
        }
        Pending(Some(pending))
    }

    pub(super) async fn flush(&self) {
        let (sender, (done, flushed)) = (self.0.clone(), oneshot::channel());
        let sent = tokio::task::spawn_blocking(move || sender.send((Kept::Flush, done))).await;
        if matches!(sent, Ok(Ok(()))) {
            Pending(Some(flushed)).done().await;
        }
    }
}

fn run(folder: &Path, ticks: &Path, state: &Mutex<State>, jobs: &Receiver<Job>) {
    while let Ok((kept, done)) = jobs.recv() {
        let (what, written) = match kept {
            Kept::Ticks(state) => ("ticks", write_ticks(ticks, &state).map(|()| None)),
            Kept::Result(result) => ("a result", write_result(folder, &result).map(Some)),
            Kept::Flush => {
                let _ = done.send(());
                continue;
            }
        };
        let mut state = lock(state);
        let problem = match written {
            Ok(None) => None,
            Ok(Some(name)) => {
                tracing::info!("checklist: {} is kept", folder.join(&name).display());
                state.last_result = Some(name);
                state.version += 1;
                None
            }
            Err(error) => {
                tracing::error!("{}: found {error}, expected a place for {what}", folder.display());
                Some(format!("{what} of the checklist could not be written: {error}"))
            }
        };
        // A result that is lost stays lost: only what takes its place ends its message.
        let is_new = problem.is_some()
            || (what == "ticks" && state.problem.as_ref().is_some_and(|p| p.starts_with("ticks")));
        if is_new && state.problem != problem {
            state.problem = problem;
            state.version += 1;
        }
        drop(state);
        let _ = done.send(());
    }
}

fn write_ticks(path: &Path, state: &State) -> io::Result<()> {
    write_private(path, &format!("{}\n", serde_json::to_string(state)?))
}

/// What a service of this port kept; nothing where there is no file.
pub(super) fn read_ticks(path: &Path) -> io::Result<Option<State>> {
    match read_result(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a result under a name that there is not yet; that name.
fn write_result(folder: &Path, result: &ChecklistResult) -> io::Result<String> {
    let utc = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let text = format!("{}\n", serde_json::to_string_pretty(result)?);
    let names = (1..100).map(|number| match number {
        1 => format!("checklist-{utc}.json"),
        number => format!("checklist-{utc}-{number:02}.json"),
    });
    let mut free = names.filter(|name| !folder.join(name).exists());
    let name = free.next().ok_or_else(|| io::Error::from(io::ErrorKind::AlreadyExists))?;
    write_private(&folder.join(&name), &text)?;
    Ok(name)
}

/// Whether a name is one of a result: it becomes a path.
#[must_use]
pub fn is_result(name: &str) -> bool {
    let inner = name.strip_prefix("checklist-").and_then(|rest| rest.strip_suffix(".json"));
    inner.is_some_and(|inner| {
        (1..=24).contains(&inner.len())
            && inner.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'T' | b'Z' | b'-'))
    })
}

/// The results in the folder, the newest first.
pub(super) fn results(folder: &Path) -> io::Result<Vec<ChecklistResultFile>> {
    let mut results = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let facts = entry.metadata()?;
        if !is_result(&name) || !facts.is_file() {
            continue;
        }
        let age = facts.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        results.push(ChecklistResultFile {
            name,
            bytes: facts.len(),
            age_s: age.map_or(0, |age| age.as_secs()),
        });
    }
    // By the stem: a second file of the same second comes after the first, and a hyphen before a dot.
    let stem = |file: &ChecklistResultFile| file.name.trim_end_matches(".json").to_owned();
    results.sort_by_cached_key(|file| std::cmp::Reverse(stem(file)));
    results.truncate(RESULTS_MAX);
    Ok(results)
}

/// A file of at most [`FILE_MAX`].
pub(super) fn read_result(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(path)?.take(FILE_MAX + 1).read_to_end(&mut bytes)?;
    if read as u64 > FILE_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("found more than {FILE_MAX} bytes")));
    }
    Ok(bytes)
}
