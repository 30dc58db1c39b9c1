//! Keeps over a restart that a pilot has the aircraft: one line in a file of the state directory.
//!
//! A daemon that forgot it would take back, at the operator's next command, an aircraft that its pilot flies in a mode
//! that Wingbeat asks for too.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
};

/// The file's name in the state directory.
const FILE: &str = "taken-by-pilot";
/// No line that the agent writes is longer.
const LINE_MAX: usize = 512;

/// Keeps who has the aircraft. Without a directory it keeps nothing.
#[derive(Default)]
pub(crate) struct Latch {
    kept: Option<String>,
    /// To the thread that writes: a slow card does not delay the driver.
    writer: Option<mpsc::Sender<Option<String>>>,
}

impl Latch {
    /// Reads what an earlier daemon has kept. A file that cannot be read counts as kept: whoever has the aircraft is
    /// unknown then, and the pilot wins.
    ///
    /// # Errors
    /// Nothing can be written there.
    pub(crate) fn open(directory: Option<&Path>) -> io::Result<Self> {
        let Some(directory) = directory else { return Ok(Self::default()) };
        let path = directory.join(FILE);
        let kept = match fs::read(&path) {
            Ok(bytes) => {
                let line = String::from_utf8_lossy(&bytes[..bytes.len().min(LINE_MAX)]);
                Some(line.trim().chars().filter(|c| !c.is_control()).collect())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(format!("unknown: {}: {error}", path.display())),
        };
        // Tried now, so that an aircraft whose state cannot be kept does not start.
        let probe = directory.join(".writable");
        fs::write(&probe, b"")?;
        fs::remove_file(&probe)?;
        let (writer, lines) = mpsc::channel();
        thread::Builder::new().name("state".into()).spawn(move || write_all(&path, &lines))?;
        Ok(Self { kept, writer: Some(writer) })
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
    while let Ok(mut newest) = lines.recv() {
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
        }
    }
}

/// Whole or not at all, and on the disk.
fn write(path: &Path, line: &str) -> io::Result<()> {
    let new: PathBuf = path.with_extension("new");
    let mut file = fs::File::create(&new)?;
    io::Write::write_all(&mut file, format!("{line}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
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
        let mut latch = Latch::open(Some(path)).expect("writable");
        assert_eq!(latch.kept(), None);
        latch.keep(Some("mode LOITER"));
        end(latch, path, true);
        let mut latch = Latch::open(Some(path)).expect("writable");
        assert_eq!(latch.kept(), Some("mode LOITER"));
        latch.keep(None);
        end(latch, path, false);
        assert_eq!(Latch::open(Some(path)).expect("writable").kept(), None);
    }

    #[test]
    fn rubbish_counts_as_a_pilot_and_a_directory_that_is_missing_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join(FILE), [0xff, 0x00, b'\n', 0x1b, b'x']).expect("written");
        let latch = Latch::open(Some(directory.path())).expect("writable");
        assert!(latch.kept().is_some_and(|line| !line.chars().any(char::is_control)));
        assert!(Latch::open(Some(&directory.path().join("missing"))).is_err());
        assert!(Latch::open(None).expect("nothing to open").kept().is_none());
    }
}
