//! Replay: gives the inputs of a log to a fresh agent, which must answer the same bytes.

use std::fmt;

use wingbeat_agent::{Agent, Outputs, Severity, SigningKey, StateId};
use wingbeat_geo::{Duration, Instant};

use crate::event::{Event, Time, outputs};
use crate::export::describe;
use crate::reader::Log;
use crate::start::Start;

/// How far a replay goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Until {
    /// Up to this agent time.
    Time(Instant),
    /// Up to the first input after which the protocol is in this state.
    State(String),
    /// Up to the input of this number, from 1.
    Input(u64),
}

/// What a replay is told.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where it ends before the log does.
    pub until: Option<Until>,
    /// Whether an agent of another version is compared all the same.
    pub anyway: bool,
    /// The key by which frames to and from the autopilot are signed: it is in no log.
    pub signing_key: Option<SigningKey>,
}

/// Why nothing was replayed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// The log's first record is no beginning.
    #[error("found no beginning of an agent in it, expected one as the first record")]
    NoStart,
    /// What the agent began with cannot be read.
    #[error("the agent's beginning: found {0}, expected one of this program")]
    Start(String),
    /// Another agent wrote it.
    #[error(
        "found a log of version {version}, agent {agent}, expected version {}, agent {}, which this program has: other \
         programs may answer otherwise (--anyway compares all the same)",
        crate::VERSION,
        crate::AGENT
    )]
    OtherVersion {
        /// The program's version.
        version: String,
        /// The agent's.
        agent: String,
    },
    /// A signing key is needed.
    #[error(
        "found frames that are signed, expected the signing key of the flight (--signing-key FILE): it is in no log"
    )]
    NoKey,
}

/// The first place at which the agent answered otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Agent time.
    pub at: Instant,
    /// Which input of the log it was, from 1.
    pub input_number: u64,
    /// The input.
    pub input: String,
    /// What the log has; nothing where it has no more outputs.
    pub expected: String,
    /// What the agent answered now.
    pub found: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, input_number, input, expected, found } = self;
        write!(
            f,
            "{:.6} s, input {input_number}, {input}:\n  expected {expected}\n  found    {found}",
            at.as_secs_f64()
        )
    }
}

/// What a replay came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Inputs that were given to the agent.
    pub inputs: u64,
    /// Bytes of outputs that were compared.
    pub compared: u64,
    /// Agents that began: one, and one for each restart.
    pub starts: u32,
    /// Agent time between the first input and the last.
    pub flown: Duration,
    /// The first difference.
    pub difference: Option<Difference>,
    /// Where records were lost, and how many: the replay ended there.
    pub lost: Option<(Instant, u64)>,
    /// States of the protocol, each when it began.
    pub states: Vec<(Instant, String)>,
    /// Warnings and errors that the agent logged now.
    pub warnings: Vec<(Instant, String)>,
    /// Why the rest of the file was not read.
    pub flaw: Option<String>,
    /// Whether it came to where it was to end ([`Options::until`]); the log has no more where it did not.
    pub is_reached: bool,
}

/// Replays a log; `each` is handed every input, and what the agent answered now.
///
/// # Errors
/// Nothing of it can be replayed.
pub fn replay(
    log: &Log,
    options: &Options,
    mut each: impl FnMut(Instant, &Event<'_>, &Agent, &Outputs),
) -> Result<Outcome, ReplayError> {
    let mut outcome = Outcome { flaw: log.flaw.clone(), ..Outcome::default() };
    let mut agent: Option<Box<Agent>> = None;
    let (mut out, mut found) = (Box::<Outputs>::default(), Vec::new());
    let (mut first, mut state): (Option<Instant>, Option<StateId>) = (None, None);
    for block in &log.blocks {
        let (mut time, mut rest) = (Time::default(), block.records.as_slice());
        let _ = time.advance(block.from_us);
        while !rest.is_empty() {
            let (since_us, event, after) = match Event::read(rest) {
                Ok(read) => read,
                Err(error) => {
                    outcome.flaw = Some(format!("a record of the journal: {error}"));
                    return Ok(outcome);
                }
            };
            let at = time.advance(since_us);
            rest = after;
            match &event {
                Event::Began(start) => {
                    agent = Some(Box::new(begin(start, options)?));
                    outcome.starts += 1;
                    continue;
                }
                Event::Lost(count) => {
                    outcome.lost = Some((at, *count));
                    return Ok(outcome);
                }
                Event::Sample(_) => continue,
                event if event.is_output() => {
                    // Outputs that follow an input are compared with it: here one stands alone.
                    outcome.flaw = Some("an output of the journal follows no input".into());
                    return Ok(outcome);
                }
                _ => {}
            }
            if matches!(&options.until, Some(Until::Time(until)) if at > *until) {
                outcome.is_reached = true;
                return Ok(outcome);
            }
            let Some(agent) = &mut agent else { return Err(ReplayError::NoStart) };
            if let Err(reason) = event.as_input(|input| agent.handle(at, input, &mut out)) {
                outcome.flaw = Some(format!("an input of the journal: {reason}"));
                return Ok(outcome);
            }
            outcome.inputs += 1;
            outcome.flown = at.since(*first.get_or_insert(at));
            found.clear();
            outputs(&out, |event| event.write(0, &mut found));
            let expected = outputs_at(rest);
            rest = &rest[expected.len()..];
            outcome.compared += expected.len() as u64;
            if expected != found.as_slice() && outcome.difference.is_none() {
                let (expected, found) = first_difference(expected, &found);
                let input_number = outcome.inputs;
                outcome.difference =
                    Some(Difference { at, input_number, input: describe(&event), expected, found });
            }
            each(at, &event, agent, &out);
            note_warnings(&mut outcome, at, &out);
            let now = agent.view().state;
            if state.replace(now) != Some(now) {
                let name = now.to_string();
                let is_wanted = matches!(&options.until, Some(Until::State(wanted)) if *wanted == name);
                outcome.states.push((at, name));
                if is_wanted {
                    outcome.is_reached = true;
                    return Ok(outcome);
                }
            }
            if options.until == Some(Until::Input(outcome.inputs)) {
                outcome.is_reached = true;
                return Ok(outcome);
            }
        }
    }
    if outcome.starts == 0 { Err(ReplayError::NoStart) } else { Ok(outcome) }
}

fn begin(start: &str, options: &Options) -> Result<Agent, ReplayError> {
    let mut start = Start::from_json(start).map_err(|error| ReplayError::Start(error.to_string()))?;
    if start.agent != crate::AGENT && !options.anyway {
        return Err(ReplayError::OtherVersion { version: start.version, agent: start.agent });
    }
    if let Some(signing) = &mut start.origin.config.signing {
        signing.key = options.signing_key.clone().ok_or(ReplayError::NoKey)?;
    }
    Agent::of(start.origin).map_err(|error| ReplayError::Start(error.to_string()))
}

fn note_warnings(outcome: &mut Outcome, at: Instant, out: &Outputs) {
    for entry in &out.log {
        if entry.severity != Severity::Info {
            outcome.warnings.push((at, entry.text.as_str().to_owned()));
        }
    }
}

/// The outputs that stand at the beginning of these records.
fn outputs_at(records: &[u8]) -> &[u8] {
    let mut rest = records;
    while let Ok((_, event, after)) = Event::read(rest) {
        if !event.is_output() {
            break;
        }
        rest = after;
    }
    &records[..records.len() - rest.len()]
}

/// The first outputs that differ, described.
fn first_difference(mut expected: &[u8], mut found: &[u8]) -> (String, String) {
    loop {
        match (Event::read(expected).ok(), Event::read(found).ok()) {
            (Some((_, one, after)), Some((_, other, behind))) if one == other => {
                if after.is_empty() && behind.is_empty() {
                    // The same outputs at another time.
                    return (format!("{} bytes", expected.len()), format!("{} bytes", found.len()));
                }
                (expected, found) = (after, behind);
            }
            (one, other) => {
                let text = |read: Option<(u64, Event<'_>, &[u8])>| {
                    read.map_or_else(|| "no more outputs".to_owned(), |(_, event, _)| describe(&event))
                };
                return (text(one), text(other));
            }
        }
    }
}
