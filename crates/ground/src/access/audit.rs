//! What each user did through the service: appended to a file of JSON lines, each on the disk before the next.
//!
//! Nothing waits for the disk: a *Land* is carried out although the disk is full. What does not reach the file is counted,
//! its number is missing there, and the page says so in red.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use wingbeat_api::{AuditEntry, AuditLog, UserRole};

/// Entries that are kept for the page.
const SHOWN_MAX: usize = 500;
/// Entries that wait for the disk.
const QUEUE: usize = 256;
/// From this size on a file is put aside and another is begun, bytes. None is ever deleted.
const FILE_MAX: u64 = 10 << 20;
/// As much of the end of the file is read at the start, bytes.
const TAIL_MAX: u64 = 1 << 20;
/// Refusals that a stranger can cause without end: so many have an entry, and one more each time.
const STRANGERS: (u32, Duration) = (30, Duration::from_secs(10));
/// At the end the disk is waited for.
const FLUSH_LIMIT: Duration = Duration::from_secs(5);

/// What was done, before it has a number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    pub(crate) user: String,
    pub(crate) role: Option<UserRole>,
    pub(crate) address: String,
    pub(crate) action: String,
    pub(crate) what: String,
    pub(crate) to: Vec<String>,
    pub(crate) id: String,
    pub(crate) status: u16,
    pub(crate) refused: String,
}

enum Job {
    Append(Box<AuditEntry>),
    Flush(oneshot::Sender<()>),
}

/// The log.
#[derive(Debug)]
pub(crate) struct Audit {
    shown: Mutex<Shown>,
    disk: Option<SyncSender<Job>>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Shown {
    entries: VecDeque<AuditEntry>,
    next: u64,
    /// Entries about strangers that may be made now, and since when.
    strangers: (u32, Instant),
    suppressed: u64,
}

impl Audit {
    /// Opens the file and reads its end; without a file what was done is known until the service ends.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let lost = Arc::new(AtomicU64::new(0));
        let mut entries = VecDeque::new();
        let mut disk = None;
        if let Some(path) = path {
            let mut writer = Writer::open(path)?;
            entries = tail(path)?;
            let (sender, jobs) = sync_channel(QUEUE);
            let lost = lost.clone();
            std::thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&jobs, &lost))?;
            disk = Some(sender);
        }
        let next = entries.back().map_or(1, |last| last.number + 1);
        let shown = Shown { entries, next, strangers: (STRANGERS.0, Instant::now()), suppressed: 0 };
        Ok(Self { shown: Mutex::new(shown), disk, lost })
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what was done.
    pub(crate) fn note(&self, done: Done) {
        let mut shown = self.shown();
        let entry = AuditEntry {
            number: shown.next,
            time: now(),
            user: done.user,
            role: done.role,
            address: done.address,
            action: done.action,
            what: done.what,
            to: done.to,
            id: done.id,
            status: done.status,
            refused: done.refused,
        };
        shown.next += 1;
        if shown.entries.len() == SHOWN_MAX {
            shown.entries.pop_front();
        }
        shown.entries.push_back(entry.clone());
        // Under the lock, so that the file has them in their order.
        if let Some(disk) = &self.disk
            && disk.try_send(Job::Append(Box::new(entry))).is_err()
        {
            let lost = self.lost.fetch_add(1, Ordering::Relaxed) + 1;
            if lost.is_power_of_two() {
                tracing::error!(
                    "audit log: found the disk too slow, expected an entry's place in it: {lost} lost"
                );
            }
        }
    }

    /// Notes what a stranger asked, unless too many did.
    pub(crate) fn note_refused(&self, done: Done) {
        let mut shown = self.shown();
        let (left, since) = &mut shown.strangers;
        let more = since.elapsed().as_millis() / STRANGERS.1.as_millis();
        if more > 0 {
            *left = u32::try_from(more).unwrap_or(u32::MAX).saturating_add(*left).min(STRANGERS.0);
            *since = Instant::now();
        }
        if *left == 0 {
            shown.suppressed += 1;
            return;
        }
        *left -= 1;
        drop(shown);
        self.note(done);
    }

    /// What was done after the entry with this number.
    pub(crate) fn after(&self, number: u64) -> AuditLog {
        let shown = self.shown();
        AuditLog {
            entries: shown.entries.iter().filter(|entry| entry.number > number).cloned().collect(),
            lost: self.lost.load(Ordering::Relaxed),
            suppressed: shown.suppressed,
            kept: self.disk.is_some(),
        }
    }

    /// Waits until everything is on the disk.
    pub(crate) async fn flush(&self) {
        let Some(disk) = self.disk.clone() else { return };
        let (done, flushed) = oneshot::channel();
        let sent = tokio::task::spawn_blocking(move || disk.send(Job::Flush(done))).await;
        if matches!(sent, Ok(Ok(()))) {
            // A disk that hangs does not keep the service from ending.
            let _ = timeout(FLUSH_LIMIT, flushed).await;
        }
    }
}

/// UTC to the millisecond.
fn now() -> String {
    let millis = Timestamp::now().as_millisecond();
    Timestamp::from_millisecond(millis).map_or_else(|_| String::new(), |time| format!("{time:.3}"))
}

/// The last entries of the file. Lines that are none are passed over.
fn tail(path: &Path) -> io::Result<VecDeque<AuditEntry>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_MAX)))?;
    let mut bytes = vec![];
    file.take(TAIL_MAX).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let entries: Vec<AuditEntry> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let first = entries.len().saturating_sub(SHOWN_MAX);
    Ok(entries.into_iter().skip(first).collect())
}

struct Writer {
    path: PathBuf,
    file: Option<File>,
    length: u64,
}

impl Writer {
    fn open(path: &Path) -> io::Result<Self> {
        let mut writer = Self { path: path.into(), file: None, length: 0 };
        writer.reopen()?;
        Ok(writer)
    }

    fn reopen(&mut self) -> io::Result<&mut File> {
        let mut file =
            wingbeat_keys::file::permit(OpenOptions::new().read(true).append(true).create(true), 0o600)
                .open(&self.path)?;
        self.length = file.metadata()?.len();
        if self.length > 0 {
            // A line that a power cut tore ends here, and spoils no other.
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
                self.length += 1;
            }
        }
        wingbeat_keys::file::sync_folder(&self.path)?;
        Ok(self.file.insert(file))
    }

    fn run(&mut self, jobs: &Receiver<Job>, lost: &AtomicU64) {
        while let Ok(job) = jobs.recv() {
            match job {
                Job::Append(entry) => {
                    if let Err(error) = self.append(&entry) {
                        // What was written of it is ended by the next opening.
                        self.file = None;
                        let lost = lost.fetch_add(1, Ordering::Relaxed) + 1;
                        if lost.is_power_of_two() {
                            let path = self.path.display();
                            tracing::error!(
                                "audit log: {path}: found {error}, expected a place for an entry: {lost} lost"
                            );
                        }
                    }
                }
                // The one that asked may have stopped waiting.
                Job::Flush(done) => drop(done.send(())),
            }
        }
    }

    fn append(&mut self, entry: &AuditEntry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        if self.length >= FILE_MAX {
            self.put_aside(entry.number)?;
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.reopen()?,
        };
        file.write_all(&line)?;
        file.sync_data()?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// The file that is full keeps its name with the number of the first entry of the next.
    fn put_aside(&mut self, number: u64) -> io::Result<()> {
        self.file = None;
        let extension =
            self.path.extension().map_or_else(String::new, |text| format!(".{}", text.to_string_lossy()));
        let aside = self.path.with_extension(format!("before-{number}{extension}"));
        fs::rename(&self.path, aside)?;
        self.reopen().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(what: &str) -> Done {
        Done {
            user: "anna".to_owned(),
            action: "command".to_owned(),
            what: what.to_owned(),
            status: 202,
            ..Done::default()
        }
    }

    fn lines(path: &Path) -> Vec<AuditEntry> {
        fs::read_to_string(path).unwrap().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    #[tokio::test]
    async fn what_was_done_is_in_the_file_and_counts_on_after_a_restart_and_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = Audit::open(Some(&path)).unwrap();
        audit.note(done("land"));
        audit.note(done("hold"));
        audit.flush().await;
        assert_eq!(lines(&path).iter().map(|entry| entry.number).collect::<Vec<_>>(), [1, 2]);
        drop(audit);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"number\":3,\"ti").unwrap();
        let audit = Audit::open(Some(&path)).unwrap();
        audit.note(done("return"));
        audit.flush().await;
        let kept = lines(&path);
        assert_eq!(
            kept.iter().map(|entry| entry.what.as_str()).collect::<Vec<_>>(),
            ["land", "hold", "return"]
        );
        assert_eq!((kept[2].number, audit.after(1).entries), (3, kept[1..].to_vec()));
        assert!(kept[0].time.ends_with('Z') && kept[0].time.len() == 24, "{}", kept[0].time);
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&fs::metadata(&path).unwrap()) & 0o777, 0o600);
    }

    #[tokio::test]
    async fn a_full_file_is_put_aside_and_none_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        File::create(&path).unwrap().set_len(FILE_MAX).unwrap();
        let audit = Audit::open(Some(&path)).unwrap();
        audit.note(done("land"));
        audit.flush().await;
        let names = || {
            let mut names: Vec<_> = fs::read_dir(folder.path())
                .unwrap()
                .map(|file| file.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        assert_eq!(names(), ["audit.before-1.jsonl", "audit.jsonl"]);
        assert_eq!(lines(&path).len(), 1);
    }

    #[tokio::test]
    async fn what_does_not_reach_the_file_is_counted_and_its_number_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = Audit::open(Some(&path)).unwrap();
        audit.note(done("land"));
        audit.flush().await;
        // A file that cannot be put aside: something else has the name.
        OpenOptions::new().append(true).open(&path).unwrap().set_len(FILE_MAX).unwrap();
        drop(audit);
        let audit = Audit::open(Some(&path)).unwrap();
        assert_eq!(audit.after(0).entries.len(), 0, "a file of zeros has no entries");
        fs::create_dir_all(folder.path().join("audit.before-1.jsonl/x")).unwrap();
        audit.note(done("hold"));
        audit.flush().await;
        assert_eq!((audit.after(0).lost, audit.after(0).entries.len()), (1, 1));
        fs::remove_dir_all(folder.path().join("audit.before-1.jsonl")).unwrap();
        audit.note(done("return"));
        audit.flush().await;
        assert_eq!((audit.after(0).lost, lines(&path)[0].number), (1, 2));
    }

    #[test]
    fn strangers_do_not_fill_the_file() {
        let audit = Audit::open(None).unwrap();
        for _ in 0..1_000 {
            audit.note_refused(done("guess"));
        }
        let log = audit.after(0);
        assert!(log.entries.len() <= 40, "{}", log.entries.len());
        assert_eq!(log.entries.len() as u64 + log.suppressed, 1_000);
        assert!(!log.kept);
    }
}
