//! Keeps over a restart the newest order of each console's program: a line each in a file of the state directory.
//!
//! The daemon after this one refuses recordings of orders that this one took. A file that is lost or
//! cannot be read refuses no order: a recording is then refused when it is older than 10 minutes.

use std::{num::NonZeroU32, path::Path, sync::mpsc, thread, time::Duration};

use wingbeat_agent::KnownSession;
use wingbeat_keys::file::write;
use wingbeat_wire::VehicleId;

/// The file's name in the state directory.
const FILE: &str = "console-sessions";
/// A file that is longer is none: 16 lines of 50 characters.
const LEN_MAX: u64 = 1024;
/// Least time between two writings: a console repeats an order ten times a second.
const WRITTEN_EVERY: Duration = Duration::from_secs(1);

/// The sessions that are kept. Without a directory nothing is kept.
#[derive(Default)]
pub(crate) struct Kept {
    kept: Vec<KnownSession>,
    problem: Option<String>,
    /// To the thread that writes: a slow card does not delay the driver.
    writer: Option<mpsc::Sender<Vec<KnownSession>>>,
}

impl Kept {
    /// Reads what an earlier daemon has kept.
    pub(crate) fn open(directory: Option<&Path>) -> Self {
        let Some(directory) = directory else { return Self::default() };
        let path = directory.join(FILE);
        let problem = |found: &str| {
            format!(
                "{}: found {found}, expected a console, a session and a counter on each line; recordings of \
                 orders of the last 10 min may be obeyed",
                path.display()
            )
        };
        let (kept, mut problem) = match crate::state_directory::read(&path, LEN_MAX) {
            Ok(None) => (Vec::new(), None),
            Ok(Some(bytes)) => {
                let text = String::from_utf8_lossy(&bytes);
                let (good, bad): (Vec<_>, Vec<_>) = text.lines().map(read).partition(Option::is_some);
                let found = format!("{} lines that are none", bad.len());
                (good.into_iter().flatten().collect(), (!bad.is_empty()).then(|| problem(&found)))
            }
            Err(found) => (Vec::new(), Some(problem(&found))),
        };
        let (writer, changes) = mpsc::channel();
        let thread = thread::Builder::new().name("sessions".into()).spawn(move || write_all(&path, &changes));
        if let Err(error) = thread {
            problem = problem.or(Some(format!("{FILE}: found {error}, expected a thread that writes it")));
        }
        Self { kept, problem, writer: Some(writer) }
    }

    /// Returns what was wrong with the file.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Returns the sessions that are kept.
    pub(crate) fn kept(&self) -> &[KnownSession] {
        &self.kept
    }

    /// Keeps the sessions as they are now.
    pub(crate) fn keep(&mut self, known: impl Iterator<Item = KnownSession> + Clone) {
        if self.kept.iter().copied().eq(known.clone()) {
            return;
        }
        self.kept = known.collect();
        if let Some(writer) = &self.writer {
            // The thread ends with this sender.
            let _ = writer.send(self.kept.clone());
        }
    }
}

fn line(known: &KnownSession) -> String {
    let KnownSession { console, number, newest } = known;
    format!("{} {number} {newest}", console.0)
}

fn read(line: &str) -> Option<KnownSession> {
    let mut numbers = line.split(' ').map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let (console, number, newest) = (VehicleId(next()?), next()?, next()?);
    let number = NonZeroU32::new(u32::try_from(number).ok()?)?;
    numbers.next().is_none().then_some(KnownSession { console, number, newest })
}

fn write_all(path: &Path, changes: &mpsc::Receiver<Vec<KnownSession>>) {
    while let Ok(mut newest) = changes.recv() {
        while let Ok(newer) = changes.try_recv() {
            newest = newer;
        }
        if let Err(error) = write(path, &newest.iter().map(line).collect::<Vec<_>>().join("\n")) {
            tracing::error!(
                "{}: found {error}, expected to keep consoles' sessions there; a daemon that is started \
                 again may obey recordings of orders of the last 10 min",
                path.display()
            );
        }
        thread::sleep(WRITTEN_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(console: u64, number: u32, newest: u64) -> KnownSession {
        KnownSession { console: VehicleId(console), number: NonZeroU32::new(number).unwrap(), newest }
    }

    #[test]
    fn sessions_are_read_by_the_next_daemon_and_rubbish_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let most: Vec<_> = (0..16).map(|n| known(u64::MAX - n, u32::MAX, u64::MAX)).collect();
        for all in [vec![known(9, 1, 5)], vec![known(9, 1, 6), known(10, 0x8000_0000, 7)], most] {
            let mut kept = Kept::open(Some(folder.path()));
            assert_eq!(kept.problem(), None);
            kept.keep(all.iter().copied());
            while Kept::open(Some(folder.path())).kept() != all {
                thread::yield_now();
            }
        }
        for rubbish in ["9", "9 0 5", "9 4294967296 5", "9 1 5 6", "nine 1 5", "9 1 -5", "9 1 5\n\u{1}"] {
            std::fs::write(folder.path().join(FILE), rubbish).unwrap();
            let kept = Kept::open(Some(folder.path()));
            assert!(
                kept.problem().is_some_and(|p| p.contains("console-sessions: found 1 lines")),
                "{rubbish}"
            );
            assert_eq!(kept.kept().len(), usize::from(rubbish.contains('\n')), "the other lines count");
        }
        std::fs::write(folder.path().join(FILE), "x".repeat(2_000)).unwrap();
        assert!(
            Kept::open(Some(folder.path())).problem().is_some_and(|p| p.contains("more than 1024 bytes"))
        );
        assert!(Kept::open(None).kept().is_empty());
    }
}
