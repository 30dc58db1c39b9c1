//! Keeps over a restart how far the counters of datagrams have come, so that none is ever used twice: the next daemon
//! begins beyond what this one has reserved, whatever its clock shows.
//!
//! A number of microseconds in a file of the state directory. It is reserved an hour ahead, so that the card is written
//! once an hour.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
};

use crate::file;

/// The file's name in the state directory.
const FILE: &str = "datagram-counter";
/// So far ahead a number is reserved, microseconds.
const STEP_US: u64 = 3_600_000_000;
/// So long before the end the next one is, microseconds.
const MARGIN_US: u64 = 600_000_000;

/// After a failure it is tried again so much later, microseconds.
const RETRY_US: u64 = 60_000_000;

/// The counters that this daemon may use.
#[derive(Debug, Default)]
pub struct Reserve {
    /// None of a bench, whose aircraft end with it.
    path: Option<PathBuf>,
    base_us: u64,
    /// What the file holds, or will.
    end_us: u64,
    problem: Option<String>,
    /// How the writing that is under way ended.
    written: Option<mpsc::Receiver<io::Result<()>>>,
}

impl Reserve {
    /// Reads what an earlier daemon has reserved, and reserves the next hour. `unix_us` is what the clock shows. Where the
    /// file cannot be read or written the clock alone must be right, which is said and no more: an aircraft in flight
    /// needs its daemon.
    pub fn open(directory: Option<&Path>, unix_us: u64) -> Self {
        let Some(path) = directory.map(|directory| directory.join(FILE)) else {
            return Self { base_us: unix_us, end_us: u64::MAX, ..Self::default() };
        };
        let read = match fs::read_to_string(&path) {
            Ok(text) => {
                text.trim().parse().map_err(|_| format!("{:?}", text.chars().take(32).collect::<String>()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error.to_string()),
        };
        let base_us = unix_us.max(*read.as_ref().unwrap_or(&0));
        let end_us = base_us.saturating_add(STEP_US);
        let written = file::write(&path, &end_us.to_string()).map_err(|error| error.to_string());
        let problem = read.err().or(written.err()).map(|found| problem(&path, &found));
        Self { path: Some(path), base_us, end_us, problem, written: None }
    }

    /// Where counters begin.
    pub fn base_us(&self) -> u64 {
        self.base_us
    }

    /// Why nothing is reserved, if that was seen at the start.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Reserves further where `counter` has come near the end. A line for the log where that fails; it is tried again.
    pub fn keep_ahead(&mut self, counter: u64) -> Option<String> {
        let path = self.path.as_ref()?;
        if let Some(written) = &self.written {
            let failed = match written.try_recv() {
                Err(mpsc::TryRecvError::Empty) => return None,
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(mpsc::TryRecvError::Disconnected) => Some("no writing thread".to_owned()),
            };
            self.written = None;
            if failed.is_some() {
                self.end_us = counter.saturating_add(MARGIN_US + RETRY_US);
            }
            return failed.map(|found| problem(path, &found));
        }
        if counter.saturating_add(MARGIN_US) < self.end_us {
            return None;
        }
        self.end_us = counter.saturating_add(STEP_US);
        let (sender, written) = mpsc::channel();
        let (path, line) = (path.clone(), self.end_us.to_string());
        // A slow card does not delay the driver.
        let writing = move || drop(sender.send(file::write(&path, &line)));
        self.written = Some(written);
        let spawned = thread::Builder::new().name("counter".into()).spawn(writing);
        spawned.err().map(|error| format!("counters of datagrams: found {error}, expected a thread"))
    }
}

fn problem(path: &Path, found: &str) -> String {
    format!(
        "{}: found {found}, expected to keep there how far the counters of datagrams have come; after a restart with a \
         clock that is behind, the others refuse our datagrams as replayed",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_795_435_200_000_000;

    fn settled(reserve: &mut Reserve, counter: u64) -> Option<String> {
        let mut line = reserve.keep_ahead(counter);
        while reserve.written.is_some() {
            line = line.or(reserve.keep_ahead(counter));
            thread::yield_now();
        }
        line
    }

    #[test]
    fn no_restart_uses_a_counter_again_whatever_the_clock_shows() {
        let folder = tempfile::tempdir().unwrap();
        let mut reserve = Reserve::open(Some(folder.path()), NOW);
        assert_eq!((reserve.base_us(), reserve.problem()), (NOW, None));
        let mut used = NOW;
        // Two hours and a half, a beacon a second.
        for s in 0..9_000_u64 {
            used = NOW + s * 1_000_000;
            assert_eq!(settled(&mut reserve, used), None);
        }
        // The clock was reset to 1970.
        let mut next = Reserve::open(Some(folder.path()), 0);
        assert!(next.base_us() > used, "{} after {used}", next.base_us());
        assert!(next.base_us() < used + 2 * STEP_US);
        let later = next.base_us() + STEP_US;
        assert_eq!(settled(&mut next, later), None);
        // And was set again, a day later.
        assert_eq!(Reserve::open(Some(folder.path()), NOW + 86_400_000_000).base_us(), NOW + 86_400_000_000);
    }

    #[test]
    fn a_file_that_holds_no_number_or_cannot_be_written_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), "yesterday\n").unwrap();
        let reserve = Reserve::open(Some(folder.path()), NOW);
        assert!(reserve.problem().is_some_and(|p| p.contains("found \"yesterday")), "{reserve:?}");
        let missing = folder.path().join("missing");
        let mut reserve = Reserve::open(Some(&missing), NOW);
        assert!(reserve.problem().is_some_and(|p| p.contains("No such file")), "{reserve:?}");
        assert_eq!(reserve.base_us(), NOW);
        assert!(settled(&mut reserve, NOW + STEP_US).is_some_and(|line| line.contains("No such file")));
    }

    #[test]
    fn a_bench_keeps_nothing() {
        let mut reserve = Reserve::open(None, NOW);
        assert_eq!((reserve.base_us(), reserve.problem()), (NOW, None));
        assert_eq!(reserve.keep_ahead(u64::MAX), None);
    }
}
