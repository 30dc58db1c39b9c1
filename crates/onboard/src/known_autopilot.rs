//! Keeps over a restart which flight controller is this aircraft's: one line in a file of the state directory.
//!
//! A daemon that is started again in flight takes the same one, whoever else speaks on the line.

use std::{fs, path::Path, sync::mpsc, thread};

use wingbeat_agent::KnownAutopilot;
use wingbeat_keys::file::write;

/// The file's name in the state directory.
const FILE: &str = "flight-controller";
/// A file that is longer is none.
const LEN_MAX: u64 = 64;

/// The identity that is kept. Without a directory nothing is kept.
#[derive(Default)]
pub(crate) struct Kept {
    kept: Option<KnownAutopilot>,
    problem: Option<String>,
    /// To the thread that writes: a slow card does not delay the driver.
    writer: Option<mpsc::Sender<KnownAutopilot>>,
}

impl Kept {
    /// Reads the identity that an earlier daemon has kept. What cannot be read is said, and the line is listened to.
    pub(crate) fn open(directory: Option<&Path>) -> Self {
        let Some(directory) = directory else { return Self::default() };
        let path = directory.join(FILE);
        let expected = "expected the flight controller's system id, and armed or disarmed";
        let (kept, mut problem) = match crate::state_directory::read(&path, LEN_MAX) {
            Ok(None) => (None, None),
            Ok(Some(bytes)) => match read(&String::from_utf8_lossy(&bytes)) {
                Some(known) => (Some(known), None),
                None => (
                    None,
                    Some(format!(
                        "{}: found {} bytes that are none, {expected}",
                        path.display(),
                        bytes.len()
                    )),
                ),
            },
            Err(found) => (None, Some(format!("{}: found {found}, {expected}", path.display()))),
        };
        let (writer, lines) = mpsc::channel();
        let thread = thread::Builder::new().name("identity".into()).spawn(move || write_all(&path, &lines));
        if let Err(error) = thread {
            problem = problem.or(Some(format!("{FILE}: found {error}, expected a thread that writes it")));
        }
        Self { kept, problem, writer: Some(writer) }
    }

    /// Returns what was wrong with the file.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Returns the identity that is kept.
    pub(crate) fn kept(&self) -> Option<KnownAutopilot> {
        self.kept
    }

    /// Keeps the identity.
    pub(crate) fn keep(&mut self, known: Option<KnownAutopilot>) {
        let Some(known) = known.filter(|known| self.kept != Some(*known)) else { return };
        self.kept = Some(known);
        if let Some(writer) = &self.writer {
            // The thread ends with this sender.
            let _ = writer.send(known);
        }
    }
}

fn line(known: KnownAutopilot) -> String {
    let KnownAutopilot { system_id, is_armed } = known;
    format!("{system_id} {}", if is_armed { "armed" } else { "disarmed" })
}

fn read(text: &str) -> Option<KnownAutopilot> {
    let (id, motors) = text.trim().split_once(' ')?;
    let is_armed = match motors {
        "armed" => true,
        "disarmed" => false,
        _ => return None,
    };
    let system_id = id.parse().ok().filter(|id| *id != 0)?;
    Some(KnownAutopilot { system_id, is_armed })
}

fn write_all(path: &Path, lines: &mpsc::Receiver<KnownAutopilot>) {
    while let Ok(mut newest) = lines.recv() {
        while let Ok(newer) = lines.try_recv() {
            newest = newer;
        }
        // Each start would otherwise wear the card.
        let is_there = fs::read_to_string(path).is_ok_and(|text| read(&text) == Some(newest));
        let written = if is_there { Ok(()) } else { write(path, &line(newest)) };
        if let Err(error) = written {
            tracing::error!(
                "{}: found {error}, expected to keep the flight controller's id there",
                path.display()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_by_the_next_daemon_and_rubbish_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let known = KnownAutopilot { system_id: 7, is_armed: true };
        let mut kept = Kept::open(Some(folder.path()));
        assert_eq!((kept.kept(), kept.problem()), (None, None));
        kept.keep(None);
        kept.keep(Some(known));
        while Kept::open(Some(folder.path())).kept() != Some(known) {
            thread::yield_now();
        }
        for rubbish in ["", "7", "0 armed", "256 armed", "7 perhaps", &"x".repeat(200)] {
            fs::write(folder.path().join(FILE), rubbish).unwrap();
            let kept = Kept::open(Some(folder.path()));
            assert!(
                kept.kept().is_none()
                    && kept.problem().is_some_and(|p| p.contains("flight-controller: found"))
            );
        }
        assert!(Kept::open(None).kept().is_none());
    }
}
