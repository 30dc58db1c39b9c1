//! The daemon's end of the socket to its guardian: sends pulses, knows whether they are answered.
//!
//! It never waits: a guardian that is absent, stopped or full is one that does not answer, and the driver
//! flies on, unprotected, and reports that. A pulse that differs from the last is sent by the driver itself, before the bytes
//! that it announces leave; the others by [`PulseThread`].

use std::{
    fs::File,
    io::{self, ErrorKind},
    os::unix::net::UnixStream as StdStream,
    path::{Path, PathBuf},
    time::Duration,
};

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::{
    net::UnixStream,
    time::{Instant, sleep_until, timeout_at},
};
use wingbeat_agent::guardian::{
    ANSWER_WITHIN, Activity, Answer, Beat, Before, Modes, PULSE_PERIOD, Pulse, REPORT_LEN, Report,
    fingerprint,
};
use wingbeat_link::Endpoint;

use crate::pulse_thread::PulseThread;

/// Between two attempts to connect.
const CONNECT_PERIOD: Duration = Duration::from_millis(500);
/// A guardian that is there answers within milliseconds; a daemon that starts waits no longer to know.
const GREET_TIMEOUT: Duration = Duration::from_secs(1);

/// The daemon's end.
pub(crate) struct Client {
    path: PathBuf,
    endpoint: u32,
    stream: Option<UnixStream>,
    /// Where there is no stream: its two file descriptors, which nothing else takes.
    spare: Vec<File>,
    /// Bytes of an answer that has not come whole.
    partial: Vec<u8>,
    answer: Option<Answer>,
    /// What came with the last answer.
    before: Before,
    system_id: u8,
    answered_at: Instant,
    /// The pulse that was sent last.
    sent: Option<Pulse>,
    /// The number of the newest content.
    sequence: u32,
    /// Without it the driver sends every pulse.
    thread: Option<PulseThread>,
    /// When the next pulse, or the next attempt to connect, is due.
    due: Instant,
    /// The last failure that was logged: each is logged once.
    logged: Option<String>,
}

/// Waits until [`Client::poll`] has something to do; for ever where there is no guardian to have.
pub(crate) async fn ready(client: Option<&Client>) {
    let Some(client) = client else { return std::future::pending().await };
    let due = match client.answer {
        Some(_) => client.due.min(client.answered_at + ANSWER_WITHIN),
        None => client.due,
    };
    match &client.stream {
        Some(stream) => tokio::select! {
            // An error shows at the read.
            _ = stream.readable() => {}
            () = sleep_until(due) => {}
        },
        None => sleep_until(due).await,
    }
}

impl Client {
    /// Connects, and asks whether the autopilot is free. Returns when that is known, or after a second.
    pub(crate) async fn greet(path: PathBuf, endpoint: &Endpoint) -> Self {
        let now = Instant::now();
        let mut client = Self {
            path,
            endpoint: fingerprint(&endpoint.to_string()),
            stream: None,
            spare: vec![],
            partial: vec![],
            answer: None,
            before: Before::Unknown,
            system_id: 0,
            answered_at: now,
            sent: None,
            sequence: 0,
            thread: PulseThread::start()
                .inspect_err(|error| tracing::error!("found no thread for pulses ({error}), expected one"))
                .ok(),
            due: now,
            logged: None,
        };
        let idle = Pulse {
            activity: Activity::Idle,
            system_id: 0,
            ours: Modes::default(),
            switch_channel: 0,
            endpoint: 0,
            route: 0,
            takes_up: 0,
        };
        client.poll(idle);
        // An absent guardian is noticed before the first input.
        while client.stream.is_some() && client.answer.is_none() {
            if timeout_at(now + GREET_TIMEOUT, ready(Some(&client))).await.is_err() {
                break;
            }
            client.poll(idle);
        }
        client
    }

    /// What the guardian answered last, if it answers.
    pub(crate) fn answer(&self) -> Option<Answer> {
        self.answer
    }

    /// Who had the aircraft before, where a guardian has said so.
    pub(crate) fn before(&self) -> Before {
        self.before
    }

    /// The system id of the flight controller, as the guardian knows or receives it; 0 while unknown.
    pub(crate) fn system_id(&self) -> u8 {
        self.system_id
    }

    /// Notes that the driver's loop turns: its sign of life.
    pub(crate) fn turned(&self) {
        if let Some(thread) = &self.thread {
            thread.turned();
        }
    }

    /// Whether the guardian has the autopilot.
    pub(crate) fn guardian_holds(&self) -> bool {
        self.answer.is_some_and(|answer| answer.stance.holds())
    }

    /// Sends what is due, reads what came. Returns the answer if it is another than before.
    pub(crate) fn poll(&mut self, pulse: Pulse) -> Option<Option<Answer>> {
        let before = self.answer;
        self.receive();
        let now = Instant::now();
        if now >= self.due {
            if self.stream.is_none() {
                self.connect(now);
            }
            let pulse = Pulse { endpoint: self.endpoint, ..pulse };
            if self.thread.is_none() || self.sent != Some(pulse) {
                self.send(now, pulse);
            }
            self.due = self.due.max(now + PULSE_PERIOD);
        }
        if self.answer.is_some() && now >= self.answered_at + ANSWER_WITHIN {
            self.complain(format!("no answer for {} s", ANSWER_WITHIN.as_secs()));
            self.answer = None;
        }
        (self.answer != before).then_some(self.answer)
    }

    /// Sends a pulse immediately if it differs from the last one.
    pub(crate) fn send_change(&mut self, pulse: Pulse) {
        let pulse = Pulse { endpoint: self.endpoint, ..pulse };
        if self.sent.is_some_and(|sent| sent != pulse) {
            self.send(Instant::now(), pulse);
        }
    }

    fn connect(&mut self, now: Instant) {
        self.due = now + CONNECT_PERIOD;
        self.spare.clear();
        match connect(&self.path) {
            Ok((stream, other)) => {
                if let Some(thread) = &self.thread {
                    thread.stream(Some(other));
                }
                self.stream = Some(stream);
                self.partial.clear();
                self.sent = None;
            }
            Err(error) => {
                self.keep_spare();
                self.complain(format!("{error}"));
            }
        }
    }

    fn keep_spare(&mut self) {
        self.spare.clear();
        self.spare.extend([(); 2].iter().filter_map(|()| File::open("/dev/null").ok()));
    }

    fn send(&mut self, now: Instant, pulse: Pulse) {
        let Some(stream) = &self.stream else { return };
        self.sequence = self.sequence.wrapping_add(1);
        let beat = Beat { pulse, sequence: self.sequence, driver_age_ms: 0 };
        if let Some(thread) = &self.thread {
            thread.turned();
            thread.content(&beat);
        }
        let bytes = beat.encode();
        self.due = now + PULSE_PERIOD;
        match stream.try_write(&bytes) {
            Ok(length) if length == bytes.len() => self.sent = Some(pulse),
            // It does not read, and will be missed for not answering. A pulse that differs from the last is due
            // again immediately.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Ok(_) => self.lose("a pulse that was cut off".into()),
            Err(error) => self.lose(error.to_string()),
        }
    }

    fn receive(&mut self) {
        let mut buffer = [0; 64 * REPORT_LEN];
        while let Some(stream) = &self.stream {
            match stream.try_read(&mut buffer) {
                Ok(0) => return self.lose("that it hung up".into()),
                Ok(length) => {
                    self.partial.extend_from_slice(buffer.get(..length).unwrap_or_default());
                    let whole = self.partial.len() / REPORT_LEN * REPORT_LEN;
                    let rest = self.partial.split_off(whole);
                    let records = std::mem::replace(&mut self.partial, rest);
                    for record in records.chunks_exact(REPORT_LEN) {
                        let Ok(record) = record.try_into() else { continue };
                        match Report::decode(record) {
                            Ok(Report { answer, before, system_id }) => {
                                (self.answer, self.answered_at) = (Some(answer), Instant::now());
                                (self.before, self.system_id) = (before, system_id);
                                self.logged = None;
                            }
                            Err(error) => return self.lose(error.to_string()),
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => return self.lose(error.to_string()),
            }
        }
    }

    fn lose(&mut self, found: String) {
        if let Some(thread) = &self.thread {
            thread.stream(None);
        }
        self.stream = None;
        self.keep_spare();
        self.answer = None;
        self.due = Instant::now() + CONNECT_PERIOD;
        self.complain(found);
    }

    fn complain(&mut self, found: String) {
        if self.logged.as_ref() != Some(&found) {
            tracing::warn!("guard {}: found {found}, expected a guardian that answers", self.path.display());
            self.logged = Some(found);
        }
    }
}

/// Connects without waiting: where the guardian's queue is full, that is an error. Returns the driver's handle and the
/// thread's.
fn connect(path: &Path) -> io::Result<(UnixStream, StdStream)> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    socket.connect(&SockAddr::unix(path)?)?;
    let stream = StdStream::from(socket);
    let other = stream.try_clone()?;
    Ok((UnixStream::from_std(stream)?, other))
}
