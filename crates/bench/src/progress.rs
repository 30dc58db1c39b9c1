//! How far the flights of a command have come, for people who wait: a line on standard error now and then.
#![allow(clippy::disallowed_methods, reason = "people wait by the wall clock")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use wingbeat_geo::Duration;

/// A command that takes longer than this prints a line, and one more after each such time.
const PERIOD: std::time::Duration = std::time::Duration::from_secs(10);

static FLOWN_MS: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);

/// Counts virtual time that was flown.
pub(crate) fn flown(time: Duration) {
    FLOWN_MS.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
}

/// Counts a flight that is over.
pub(crate) fn done() {
    DONE.fetch_add(1, Ordering::Relaxed);
}

/// Prints lines until it is dropped.
#[derive(Debug)]
pub struct Progress {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Begins to watch the flights of this process.
    pub fn watch() -> Self {
        let (end, ended) = channel::<()>();
        let (began, before) = (Instant::now(), counts());
        let thread = std::thread::spawn(move || {
            while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let (flown_s, done) = counts();
                eprintln!("{}", line(began.elapsed().as_secs(), flown_s - before.0, done - before.1));
            }
        });
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // It ends at once: nothing else holds its end.
            let _ = thread.join();
        }
    }
}

fn counts() -> (u64, u64) {
    (FLOWN_MS.load(Ordering::Relaxed) / 1_000, DONE.load(Ordering::Relaxed))
}

fn line(wall_s: u64, flown_s: u64, done: u64) -> String {
    let flights = if done == 1 { "flight" } else { "flights" };
    format!("{wall_s} s: {done} {flights} over, {flown_s} s of virtual time flown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_how_far_the_flights_have_come_and_a_short_command_prints_none() {
        assert_eq!(line(20, 1_234, 1), "20 s: 1 flight over, 1234 s of virtual time flown");
        let began = Instant::now();
        drop(Progress::watch());
        assert!(began.elapsed() < PERIOD, "it waits for nothing");
    }
}
