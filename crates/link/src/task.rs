//! The task that keeps an endpoint open.

use std::{io, time::Duration};

use tokio::{
    sync::mpsc::{self, error::TrySendError},
    task::JoinHandle,
    time::{Instant, sleep},
};

use crate::{
    Endpoint,
    port::{self, CONNECT_TIMEOUT, Reader, Writer},
};

/// The first and the longest wait before opening again. Each wait is twice the one before; a connection that
/// lasted restarts with the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
}

impl Default for Backoff {
    /// 100 ms to 1 s: a port that returns is open within a second and telemetry is there within two, while a
    /// port that stays away costs one attempt a second.
    fn default() -> Self {
        Self { least: Duration::from_millis(100), most: Duration::from_secs(1) }
    }
}

/// Chunks read and not yet taken. When it is full the task stops reading and the kernel buffers: late
/// telemetry is better than telemetry with a hole, and a driver that is 128 reads behind has other problems.
const EVENTS_MAX: usize = 128;
/// Chunks queued to be written. At 10 orders per second and 57600 baud the line drains faster than they come.
const WRITES_MAX: usize = 64;
/// The longest read: 15 of the longest MAVLink 2 frames.
const READ_MAX: usize = 4_096;
/// On an idle port the task's loop iterates this often.
const TURN_PERIOD: Duration = Duration::from_millis(500);
/// No iteration of the task's loop takes longer: the longest step is opening a server that does not answer.
pub const TURN_MAX: Duration = Duration::from_secs(5);
const _: () = assert!(TURN_MAX.as_millis() > CONNECT_TIMEOUT.as_millis());

/// What happened on the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// The port opened.
    Up,
    /// Bytes from the autopilot, in order.
    Bytes(Vec<u8>),
    /// The port closed, or could not be opened; reported once per reason.
    Down {
        /// One line: endpoint, found, expected.
        reason: String,
    },
}

/// Why bytes were not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The port takes bytes slower than they come.
    #[error("the autopilot link's queue of {WRITES_MAX} writes is full")]
    Full,
    /// The task has ended, which it does only when the link is dropped or the runtime stops.
    #[error("the autopilot link's task has ended")]
    Ended,
}

/// A link to the autopilot. Dropping it closes the port.
#[derive(Debug)]
pub struct Link {
    events: mpsc::Receiver<LinkEvent>,
    writes: mpsc::Sender<Vec<u8>>,
    task: JoinHandle<()>,
}

impl Link {
    /// Starts the task. It opens the endpoint and reports by [`Link::recv`]; it retries for ever.
    pub fn spawn(endpoint: Endpoint) -> Self {
        Self::spawn_with(endpoint, Backoff::default(), || {})
    }

    /// The same, with other waits between attempts. `turned` is called at every iteration of the task's loop,
    /// within [`TURN_MAX`] of each other, whether or not the port is there, so that a task that hangs can be
    /// distinguished from an idle port.
    pub fn spawn_with(
        endpoint: Endpoint,
        backoff: Backoff,
        turned: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let (event_sender, events) = mpsc::channel(EVENTS_MAX);
        let (writes, write_receiver) = mpsc::channel(WRITES_MAX);
        let task = tokio::spawn(run(endpoint, backoff, event_sender, write_receiver, turned));
        Self { events, writes, task }
    }

    /// The next event. Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<LinkEvent> {
        self.events.recv().await
    }

    /// How many writes the queue still takes.
    pub fn room(&self) -> usize {
        self.writes.capacity()
    }

    /// Queues whole frames to be written, without waiting. What is queued when the port closes is discarded.
    ///
    /// # Errors
    /// The queue is full, or the task has ended.
    pub fn send(&self, bytes: Vec<u8>) -> Result<(), SendError> {
        self.writes.try_send(bytes).map_err(|error| match error {
            TrySendError::Full(_) => SendError::Full,
            TrySendError::Closed(_) => SendError::Ended,
        })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The receiver is gone: the task ends.
struct NoReceiver;

async fn run(
    endpoint: Endpoint,
    backoff: Backoff,
    events: mpsc::Sender<LinkEvent>,
    mut writes: mpsc::Receiver<Vec<u8>>,
    turned: impl Fn() + Send + Sync,
) {
    let mut wait = backoff.least;
    let mut last_reason = None;
    loop {
        turned();
        let opened = port::open(&endpoint).await;
        turned();
        let reason = match opened {
            Ok((reader, writer)) => {
                while writes.try_recv().is_ok() {} // what waited out the disconnection is stale
                if events.send(LinkEvent::Up).await.is_err() {
                    return;
                }
                last_reason = None;
                let opened = Instant::now();
                let Ok(found) = carry(reader, writer, &events, &mut writes, &turned).await else { return };
                // A server that accepts and disconnects immediately must not be asked ten times a second.
                if opened.elapsed() >= backoff.most {
                    wait = backoff.least;
                }
                format!("autopilot {endpoint}: found {found}, expected an open connection")
            }
            Err(error) => error.to_string(),
        };
        if last_reason.as_ref() != Some(&reason) {
            tracing::debug!(reason, "the autopilot link is down");
            last_reason = Some(reason.clone());
            if events.send(LinkEvent::Down { reason }).await.is_err() {
                return;
            }
        }
        tokio::select! {
            () = sleep(wait) => wait = (wait * 2).min(backoff.most),
            () = events.closed() => return,
        }
    }
}

/// Carries bytes in both directions until one breaks, and returns how it broke.
async fn carry(
    mut reader: Reader,
    mut writer: Writer,
    events: &mpsc::Sender<LinkEvent>,
    writes: &mut mpsc::Receiver<Vec<u8>>,
    turned: &(impl Fn() + Send + Sync),
) -> Result<String, NoReceiver> {
    // Two futures, so that a port that takes no bytes can still be read and vice versa.
    let reading = async {
        let mut buffer = vec![0; READ_MAX];
        loop {
            match reader.read(&mut buffer).await {
                Ok(0) => return Ok("that the far end closed it".to_owned()),
                Ok(length) => {
                    let bytes = buffer.get(..length).unwrap_or_default().to_vec();
                    events.send(LinkEvent::Bytes(bytes)).await.map_err(|_| NoReceiver)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Ok(format!("a failing read ({error})")),
            }
        }
    };
    let writing = async {
        loop {
            let bytes = writes.recv().await.ok_or(NoReceiver)?;
            if let Err(error) = writer.write(&bytes).await {
                return Ok(format!("a failing write ({error})"));
            }
        }
    };
    let turning = async {
        loop {
            turned();
            sleep(TURN_PERIOD).await;
        }
    };
    tokio::select! {
        ended = reading => ended,
        ended = writing => ended,
        () = turning => Err(NoReceiver), // it never ends
    }
}
