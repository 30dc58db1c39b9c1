//! The event stream of one console: `status` and `log`.
//!
//! A console that reads slowly skips states in between and is sent the number of log lines that it missed; the driver
//! never waits for it.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::response::sse::Event;
use futures_util::{Stream, stream};
use tokio::{
    sync::{broadcast, watch},
    time::{Instant, sleep_until},
};
use wingbeat_api::{AircraftStatus, LogLine, Severity};

/// Between two states that differ only in numbers.
const STATUS_PERIOD: Duration = Duration::from_millis(200);

struct Follower {
    id: String,
    status: watch::Receiver<Arc<AircraftStatus>>,
    log: broadcast::Receiver<LogLine>,
    /// What the console saw last, and when the next state may follow if nothing but numbers changed.
    seen: Option<(Arc<AircraftStatus>, Instant)>,
    /// The connection counts as an event stream until the console disconnects.
    _counted: wingbeat_server::Stream,
}

/// The events for one console, from now until it disconnects or the daemon stops.
pub(crate) fn events(
    id: String,
    status: watch::Receiver<Arc<AircraftStatus>>,
    log: broadcast::Receiver<LogLine>,
    counted: wingbeat_server::Stream,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let follower = Follower { id, status, log, seen: None, _counted: counted };
    stream::unfold(follower, |mut follower| async {
        let event = follower.next().await?;
        Some((Ok(event), follower))
    })
}

impl Follower {
    async fn next(&mut self) -> Option<Event> {
        loop {
            let latest = self.status.borrow_and_update().clone();
            let Some((seen, due)) = self.seen.clone() else {
                return self.show(latest);
            };
            let newer = !Arc::ptr_eq(&seen, &latest);
            let waits = newer && headline_eq(&seen, &latest) && due > Instant::now();
            if newer && !waits {
                return self.show(latest);
            }
            tokio::select! {
                line = self.log.recv() => match line {
                    Ok(line) => return event("log", &line),
                    Err(broadcast::error::RecvError::Lagged(count)) => return event("log", &self.skipped(count)),
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
                () = sleep_until(due), if waits => {}
                // The driver is gone: the daemon stops, and so does the stream.
                changed = self.status.changed() => changed.ok()?,
            }
        }
    }

    fn show(&mut self, status: Arc<AircraftStatus>) -> Option<Event> {
        let event = event("status", status.as_ref());
        self.seen = Some((status, Instant::now() + STATUS_PERIOD));
        event
    }

    fn skipped(&self, count: u64) -> LogLine {
        LogLine {
            id: self.id.clone(),
            time_ms: self.status.borrow().time_ms,
            severity: Severity::Warning,
            text: format!("{count} log lines were skipped: this console reads too slowly"),
        }
    }
}

fn event<T: serde::Serialize>(name: &str, value: &T) -> Option<Event> {
    // Our own types always have a JSON form; if one had none, the stream would end and not lie.
    Event::default().event(name).json_data(value).ok()
}

/// Whether two states are the same but for numbers that move all the time.
fn headline_eq(a: &AircraftStatus, b: &AircraftStatus) -> bool {
    let flight_controller = |s: &AircraftStatus| {
        let f = &s.flight_controller;
        (f.link, f.armed, f.mode.clone(), f.firmware.clone())
    };
    let passed = |s: &AircraftStatus| s.checks.iter().map(|c| (c.name.clone(), c.passed)).collect::<Vec<_>>();
    let stages = |s: &AircraftStatus| s.commands.iter().map(|c| (c.id.clone(), c.stage)).collect::<Vec<_>>();
    a.state == b.state
        && a.engaged == b.engaged
        && flight_controller(a) == flight_controller(b)
        && a.navigation.is_some() == b.navigation.is_some()
        && a.mission == b.mission
        && a.swarm == b.swarm
        && passed(a) == passed(b)
        && stages(a) == stages(b)
}
