//! HELICS (<https://helics.org>) between the computers of a bench: a federate on each, which exchange messages in one time. The library
//! is loaded where it is used, so that nothing else needs it: `WINGBEAT_HELICS` names it, or the loader finds `libhelics.so.3`
//! (`pip install helics` brings it).
//!
//! [`Root`] sends to others and waits for an answer of each; a [`Member`] answers. HELICS' time counts these exchanges, ten milliseconds
//! for each: the first computer sends 2 ms before a multiple of that, the others wait for the multiple and answer 3 ms later, and
//! 2 ms after that the first has all answers. So in any tree of brokers each waits for what is sent to it. What does not come at its
//! time (HELICS was seen to grant one before the other had sent) comes at a later one: no bytes depend on that, because each message
//! answers another.
//!
//! Each call of HELICS may wait for another computer, so it is done in a thread, and a federation that is silent for longer than is
//! stated has failed.
#![deny(unsafe_code)]

mod library;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

pub use library::LIBRARY_KEY;
use library::{Arrived, Broker, Federate, Helics};

/// One TCP connection from each computer to its broker.
const CORE: &str = "tcp_ss";
const ROOT: &str = "wingbeat-1";
/// Grants of one federate differ by so much at least, seconds: HELICS counts in nanoseconds.
const DELTA_S: f64 = 1e-6;
/// Of one exchange, and where in it what happens, seconds.
const EXCHANGE_S: f64 = 0.010;
const SENT_BEFORE_S: f64 = 0.002;
const ANSWERED_AFTER_S: f64 = 0.003;
const OVER_AFTER_S: f64 = 0.005;
/// HELICS prints nothing: what fails is an error of a call.
const QUIET: &str = "--loglevel=no_print";
/// How long computers wait for each other at first: each is started by hand.
pub const JOIN_LIMIT: Duration = Duration::from_secs(120);
/// How long a federation that ends is waited for.
const END_LIMIT: Duration = Duration::from_secs(5);
/// The same within a thread of [`Worker`].
const BROKER_LIMIT: Duration = Duration::from_secs(4);

/// Why there is no federation, or not any more.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum Problem {
    /// There is no library.
    #[error("found no HELICS ({}: {why}), expected version 3: pip install helics, and {LIBRARY_KEY}=PATH of its libhelics.so.3", path.display())]
    NoLibrary {
        /// Where it was looked for.
        path: PathBuf,
        /// The loader's words.
        why: String,
    },
    /// It is another one.
    #[error("{}: found no {name}, expected HELICS 3", path.display())]
    NoFunction {
        /// The library.
        path: PathBuf,
        /// What is not in it.
        name: &'static str,
    },
    /// It is of another version.
    #[error("{}: found HELICS {version}, expected version 3", path.display())]
    Version {
        /// The library.
        path: PathBuf,
        /// Its version.
        version: String,
    },
    /// A call failed.
    #[error("HELICS, {what}: error {code}: {why}")]
    Failed {
        /// What was wanted.
        what: &'static str,
        /// Its number.
        code: i32,
        /// Its words.
        why: String,
    },
    /// More bytes than a message has.
    #[error("HELICS: found a message of {len} bytes, expected less than 2 GiB")]
    TooLong {
        /// How many.
        len: usize,
    },
    /// Nothing can be sent to it any more.
    #[error("computer {number} has left (HELICS: {why})")]
    Left {
        /// Which, counted from 1.
        number: usize,
        /// Its words.
        why: String,
    },
    /// The federation is over.
    #[error("the federation has ended: a computer of it has left, or its broker is gone")]
    Ended,
    /// Nothing came for so long.
    #[error("found nothing from {what} within {} s", limit.as_secs())]
    Silent {
        /// Of which.
        what: String,
        /// How long it was waited for.
        limit: Duration,
    },
}

/// The name of a computer's federate, counted from 1, which is the root.
fn name(number: usize) -> String {
    format!("wingbeat-{number}")
}

/// What a thread is asked, and answers.
#[derive(Debug)]
struct Worker<Asked, Answer> {
    /// `None` when it is to end.
    ask: Option<SyncSender<Asked>>,
    answers: Receiver<Result<Answer, Problem>>,
}

impl<Asked, Answer> Drop for Worker<Asked, Answer> {
    /// The thread leaves the federation, so that the others see that it has ended; one that waits for another computer is not waited
    /// for longer.
    fn drop(&mut self) {
        self.ask = None;
        while self.answers.recv_timeout(END_LIMIT).is_ok() {}
        library::end_without_destructors();
    }
}

impl<Asked: Send + 'static, Answer: Send + 'static> Worker<Asked, Answer> {
    fn start(
        work: impl FnOnce(&Receiver<Asked>, &SyncSender<Result<Answer, Problem>>) -> Result<(), Problem>
        + Send
        + 'static,
    ) -> std::io::Result<Self> {
        let ((ask, asked), (tell, answers)) = (sync_channel(1), sync_channel(1));
        std::thread::Builder::new().name("helics".into()).spawn(move || {
            if let Err(problem) = work(&asked, &tell) {
                let _ = tell.send(Err(problem));
            }
        })?;
        Ok(Self { ask: Some(ask), answers })
    }

    fn ask(&self, asked: Asked) -> Result<(), Problem> {
        self.ask.as_ref().and_then(|ask| ask.send(asked).ok()).ok_or(Problem::Ended)
    }

    fn wait(&self, what: &str, limit: Duration) -> Result<Answer, Problem> {
        self.answers.recv_timeout(limit).unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => Err(Problem::Silent { what: what.to_owned(), limit }),
            RecvTimeoutError::Disconnected => Err(Problem::Ended),
        })
    }
}

/// What is sent at a time, to which computer, counted from 2.
pub type Addressed = (usize, Vec<u8>);

/// The first computer: the others answer to what it sends.
#[derive(Debug)]
pub struct Root {
    worker: Worker<Vec<Addressed>, Vec<Addressed>>,
    silence: Duration,
    version: String,
}

impl Root {
    /// Waits at this port until so many computers, itself among them, are there. Later no answer takes longer than `silence`.
    ///
    /// # Errors
    /// There is no HELICS, the port is taken, or they are not there within [`JOIN_LIMIT`].
    pub fn listen(port: u16, computers: usize, silence: Duration) -> Result<Self, Problem> {
        let worker = Worker::start(move |asked: &Receiver<Vec<Addressed>>, tell| {
            let helics = Helics::load()?;
            let wait = format!("-f {computers} --port {port} --all {QUIET}");
            let broker = helics.broker(CORE, "wingbeat", &wait)?;
            let at = format!("--broker_address=127.0.0.1 --brokerport={port} {QUIET}");
            let federate = helics.federate(CORE, ROOT, &at, DELTA_S)?;
            (2..=computers).try_for_each(|number| federate.exchanges_with(&name(number)))?;
            federate.enter()?;
            let _ = tell.send(Ok(vec![(0, helics.version().as_bytes().to_vec())]));
            let mut middles = middles_s();
            for messages in asked {
                let answers = exchange(&federate, &mut middles, &messages);
                if tell.send(answers).is_err() {
                    break;
                }
            }
            end(federate, Some(broker));
            Ok(())
        });
        let worker = worker.map_err(no_thread)?;
        let what = format!("the other {} computers at port {port}", computers.saturating_sub(1));
        let version = worker.wait(&what, JOIN_LIMIT)?.into_iter().next().unwrap_or_default().1;
        Ok(Self { worker, silence, version: String::from_utf8_lossy(&version).into_owned() })
    }

    /// The version of HELICS.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Sends, and waits for the answer of each to which something was sent, by their numbers.
    ///
    /// # Errors
    /// One has left, or does not answer.
    pub fn exchange(&self, messages: Vec<Addressed>) -> Result<Vec<Addressed>, Problem> {
        let to: Vec<String> = messages.iter().map(|(number, _)| number.to_string()).collect();
        self.worker.ask(messages)?;
        self.worker.wait(&format!("computer {}", to.join(" or ")), self.silence)
    }
}

/// The multiples in the middle of exchanges.
fn middles_s() -> impl Iterator<Item = f64> {
    (1_u64..).map(|count| count as f64 * EXCHANGE_S)
}

/// Waits until then: what arrived.
fn wait(federate: &Federate<'_>, until_s: f64) -> Result<Vec<Arrived>, Problem> {
    let mut all = Vec::new();
    loop {
        let (now_s, arrived) = federate.wait(until_s)?;
        all.extend(arrived);
        if now_s > until_s - DELTA_S {
            return Ok(all);
        }
    }
}

fn exchange(
    federate: &Federate<'_>,
    middles_s: &mut impl Iterator<Item = f64>,
    messages: &[Addressed],
) -> Result<Vec<Addressed>, Problem> {
    let mut answers: Vec<Addressed> = Vec::new();
    let mut is_sent = false;
    for middle_s in middles_s {
        if !is_sent {
            for (number, bytes) in messages {
                let sent = federate.send(&name(*number), bytes, middle_s - SENT_BEFORE_S);
                sent.map_err(|problem| match problem {
                    Problem::Failed { why, .. } => Problem::Left { number: *number, why },
                    other => other,
                })?;
            }
            is_sent = true;
        }
        for (from, bytes) in wait(federate, middle_s + OVER_AFTER_S)? {
            let sender = messages.iter().map(|(number, _)| *number).find(|number| name(*number) == from);
            answers.extend(sender.map(|number| (number, bytes)));
        }
        if answers.len() >= messages.len() {
            break;
        }
    }
    answers.sort_by_key(|(number, _)| *number);
    Ok(answers)
}

/// Where a further computer joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The first computer, or one that passes on for it.
    pub at: SocketAddr,
    /// Its own number, from 2.
    pub number: usize,
    /// The port at which it passes on for so many others, which join there.
    pub passes_on: Option<(u16, usize)>,
}

/// A further computer.
#[derive(Debug)]
pub struct Member {
    worker: Worker<Vec<u8>, Vec<u8>>,
    silence: Duration,
}

impl Member {
    /// Joins, and waits until all are there. Later it asks for nothing that takes longer than `silence` to come.
    ///
    /// # Errors
    /// There is no HELICS, nothing answers there, or the others are not there within [`JOIN_LIMIT`].
    pub fn join(join: Join, silence: Duration) -> Result<Self, Problem> {
        let at = join.at;
        let worker = Worker::start(move |asked: &Receiver<Vec<u8>>, tell| {
            let helics = Helics::load()?;
            let (host, port) = (join.at.ip(), join.at.port());
            let mut broker = None;
            let mut init = format!("--broker_address={host} --brokerport={port} {QUIET}");
            if let Some((own_port, others)) = join.passes_on {
                let count = others + 1;
                // With `--all` it listens at the interface that leads to the first computer alone.
                let up = format!("-f {count} --port {own_port} --local_interface=0.0.0.0 {init}");
                broker = Some(helics.broker(CORE, &format!("wingbeat-by-{}", join.number), &up)?);
                init = format!("--broker_address=127.0.0.1 --brokerport={own_port} {QUIET}");
            }
            let federate = helics.federate(CORE, &name(join.number), &init, DELTA_S)?;
            federate.exchanges_with(ROOT)?;
            federate.enter()?;
            let _ = tell.send(Ok(Vec::new()));
            for middle_s in middles_s() {
                for (_, bytes) in wait(&federate, middle_s)? {
                    let _ = tell.send(Ok(bytes));
                    // The federate ends with what answers.
                    let Ok(answer) = asked.recv() else {
                        end(federate, broker);
                        return Ok(());
                    };
                    federate.send(ROOT, &answer, middle_s + ANSWERED_AFTER_S)?;
                }
            }
            Ok(())
        });
        let worker = worker.map_err(no_thread)?;
        worker.wait(&format!("the federation at {at}"), JOIN_LIMIT)?;
        Ok(Self { worker, silence })
    }

    /// What the first computer sends next.
    ///
    /// # Errors
    /// It has left, or sends nothing.
    pub fn next(&self) -> Result<Vec<u8>, Problem> {
        self.worker.wait("the first computer", self.silence)
    }

    /// Answers to what came last.
    ///
    /// # Errors
    /// The federation has ended.
    pub fn answer(&self, bytes: Vec<u8>) -> Result<(), Problem> {
        self.worker.ask(bytes)
    }
}

fn end(federate: Federate<'_>, broker: Option<Broker<'_>>) {
    drop(federate);
    if let Some(broker) = broker {
        broker.wait(BROKER_LIMIT);
    }
}

fn no_thread(error: std::io::Error) -> Problem {
    Problem::Failed { what: "a thread", code: 0, why: error.to_string() }
}
