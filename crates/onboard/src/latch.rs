//! Keeps over a restart that a pilot has the aircraft: one line in a file of the state directory.
//!
//! A daemon that forgot it would take back, at the operator's next command, an aircraft that its pilot flies in a mode
//! that Wingbeat asks for too.

use std::{fs, io, path::Path, sync::mpsc, thread, time::Duration};

use wingbeat_keys::file::write;

/// The file's name in the state directory.
const FILE: &str = "taken-by-pilot";
/// No line that the agent writes is longer.
const LINE_MAX: usize = 512;
/// From a failed writing to the next.
const RETRY: Duration = Duration::from_secs(1);

/// Keeps who has the aircraft. Without a directory it keeps nothing.
#[derive(Default)]
pub(crate) struct Latch {
    kept: Option<String>,
    problem: Option<String>,
    /// To the thread that writes: a slow card does not delay the driver.
    writer: Option<mpsc::Sender<Option<String>>>,
}

impl Latch {
    /// Reads what an earlier daemon has kept. A file that cannot be read counts as kept: whoever has the aircraft is
    /// unknown then, and the pilot wins. A directory that cannot be written is said and no more: an aircraft in flight
    /// needs its daemon.
    pub(crate) fn open(directory: Option<&Path>) -> Self {
        let Some(directory) = directory else { return Self::default() };
        let path = directory.join(FILE);
        let kept = match fs::read(&path) {
            Ok(bytes) => {
                let line = String::from_utf8_lossy(&bytes[..bytes.len().min(LINE_MAX)]);
                Some(line.trim().chars().filter(|c| !c.is_control()).collect())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(format!("unknown: {}: {error}", path.display())),
        };
        // Tried now, with as much as is written later: a full disk still takes an empty file.
        let probe = directory.join("probe");
        let tried = write(&probe, &"x".repeat(LINE_MAX)).and_then(|()| fs::remove_file(&probe));
        let (writer, lines) = mpsc::channel();
        let thread = thread::Builder::new().name("state".into()).spawn(move || write_all(&path, &lines));
        let expected =
            "expected to keep there that a pilot has the aircraft; a restart of the daemon forgets it";
        let problem = tried.and_then(|()| thread.map(drop)).err();
        let problem = problem.map(|error| format!("{}: found {error}, {expected}", directory.display()));
        Self { kept, problem, writer: Some(writer) }
    }

    /// Why nothing is kept, if that was seen at the start.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Who had the aircraft when the last daemon ended, if a pilot.
    pub(crate) fn kept(&self) -> Option<&str> {
        self.kept.as_deref()
    }

    /// Keeps who has the aircraft now.
    pub(crate) fn keep(&mut self, taken_by: Option<&str>) {
        if self.kept.as_deref() == taken_by {
            return;
        }
        self.kept = taken_by.map(str::to_owned);
        if let Some(writer) = &self.writer {
            // The thread ends with this sender.
            let _ = writer.send(self.kept.clone());
        }
    }
}

fn write_all(path: &Path, lines: &mpsc::Receiver<Option<String>>) {
    let Ok(mut newest) = lines.recv() else { return };
    loop {
        while let Ok(newer) = lines.try_recv() {
            newest = newer;
        }
        let written = match &newest {
            Some(line) => write(path, line),
            None => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                Ok(()) | Err(_) => Ok(()),
            },
        };
        if let Err(error) = written {
            let path = path.display();
            tracing::error!("{path}: found {error}, expected to keep who has the aircraft there");
            match lines.recv_timeout(RETRY) {
                Ok(newer) => newest = newer,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
            continue;
        }
        match lines.recv() {
            Ok(newer) => newest = newer,
            Err(mpsc::RecvError) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits until the writing thread has done what it was told.
    fn end(latch: Latch, directory: &Path, expected: bool) {
        drop(latch);
        while directory.join(FILE).exists() != expected {
            thread::yield_now();
        }
    }

    #[test]
    fn what_is_kept_is_read_by_the_next_and_forgotten_when_engaged() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        let mut latch = Latch::open(Some(path));
        assert_eq!(latch.kept(), None);
        latch.keep(Some("mode LOITER"));
        end(latch, path, true);
        let mut latch = Latch::open(Some(path));
        assert_eq!(latch.kept(), Some("mode LOITER"));
        latch.keep(None);
        end(latch, path, false);
        assert_eq!(Latch::open(Some(path)).kept(), None);
    }

    #[test]
    fn rubbish_counts_as_a_pilot_and_a_directory_that_is_missing_is_said() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join(FILE), [0xff, 0x00, b'\n', 0x1b, b'x']).expect("written");
        let latch = Latch::open(Some(directory.path()));
        assert!(latch.kept().is_some_and(|line| !line.chars().any(char::is_control)));
        assert_eq!(latch.problem(), None);
        let missing = Latch::open(Some(&directory.path().join("missing")));
        assert!(missing.kept().is_none() && missing.problem().is_some_and(|p| p.contains("missing: found")));
        assert!(Latch::open(None).kept().is_none());
    }
}
