//! Two logs side by side: the first record that differs, with what stands around it. After it nothing is compared: the
//! flights are others from there on.

use std::collections::VecDeque;

use wingbeat_geo::Instant;

use crate::event::Event;
use crate::export::describe;
use crate::reader::{Entry, Log};
use crate::start::Start;

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Only records of these names; all, but what is plotted, where there is none.
    pub only: &'a [String],
    /// Whether equal records at different times are the same.
    pub any_time: bool,
    /// How many records are shown before the difference, and from each log from there on.
    pub context: usize,
}

/// The first place at which two logs differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Records that are the same before it.
    pub same: u64,
    /// The last of these, described.
    pub before: Vec<String>,
    /// What the first log has from there on; nothing where it ends.
    pub first: Vec<String>,
    /// The second.
    pub second: Vec<String>,
    /// Whether both agents were given the same and answered otherwise.
    pub is_answer: bool,
}

/// What a comparison came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// So many records, all the same.
    Same(u64),
    /// They differ.
    Differ(Difference),
}

/// Compares two logs.
///
/// # Errors
/// A record of the journal that cannot be read.
pub fn diff(first: &Log, second: &Log, options: &Options<'_>) -> Result<Outcome, postcard::Error> {
    let (mut ours, mut theirs) = (wanted(first, options), wanted(second, options));
    let (mut same, mut before) = (0, VecDeque::new());
    loop {
        let (one, other) = (ours.next().transpose()?, theirs.next().transpose()?);
        match (one, other) {
            (None, None) => return Ok(Outcome::Same(same)),
            (Some(one), Some(other)) if is_same(&one, &other, options.any_time) => {
                same += 1;
                if options.context > 0 {
                    if before.len() == options.context {
                        before.pop_front();
                    }
                    before.push_back(line(one.at, &one.event));
                }
            }
            (one, other) => {
                // An answer stands where an input follows, or nothing: then the inputs are the same so far.
                let is_output = |entry: &Option<Entry<'_>>| entry.as_ref().map(|e| e.event.is_output());
                let is_answer = is_output(&one) == Some(true) || is_output(&other) == Some(true);
                let first = shown(one, ours, options.context)?;
                let second = shown(other, theirs, options.context)?;
                let before = before.into_iter().collect();
                return Ok(Outcome::Differ(Difference { same, before, first, second, is_answer }));
            }
        }
    }
}

fn wanted<'a>(
    log: &'a Log,
    options: &Options<'a>,
) -> impl Iterator<Item = Result<Entry<'a>, postcard::Error>> {
    let only = options.only;
    log.entries().filter(move |entry| {
        let Ok(entry) = entry else { return true };
        match only {
            [] => !matches!(entry.event, Event::Sample(_)),
            only => only.iter().any(|name| name == entry.event.name()),
        }
    })
}

fn is_same(one: &Entry<'_>, other: &Entry<'_>, any_time: bool) -> bool {
    (any_time || one.at == other.at)
        && match (&one.event, &other.event) {
            // Another version may begin the same agent.
            (Event::Began(one), Event::Began(other)) => {
                one == other
                    || match (Start::from_json(one), Start::from_json(other)) {
                        (Ok(one), Ok(other)) => one.origin == other.origin,
                        _ => false,
                    }
            }
            (one, other) => one == other,
        }
}

fn line(at: Instant, event: &Event<'_>) -> String {
    format!("{:12.6} {}", at.as_secs_f64(), describe(event))
}

/// A record and those that follow it, `context` at most, and one at least.
fn shown<'a>(
    first: Option<Entry<'a>>,
    rest: impl Iterator<Item = Result<Entry<'a>, postcard::Error>>,
    context: usize,
) -> Result<Vec<String>, postcard::Error> {
    let all = first.map(Ok).into_iter().chain(rest);
    all.take(context.max(1)).map(|entry| entry.map(|entry| line(entry.at, &entry.event))).collect()
}
