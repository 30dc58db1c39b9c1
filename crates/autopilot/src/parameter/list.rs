//! Every parameter: the whole list once, then those that were lost, by index.
//!
//! 3.5.7 has 850, 4.6.2 has 1392: they are not stored. The caller gets each once, as it comes.

use wingbeat_geo::{Duration, Instant};

use super::{BadValue, Name, Value, value_of};
use crate::dialect::{MavMessage, PARAM_REQUEST_LIST_DATA, PARAM_REQUEST_READ_DATA};
use crate::job::{AUTOPILOT_COMPONENT_ID, Failure, Progress, Transmit};

/// More parameters than any version has.
pub const LISTED_MAX: usize = 2_048;
const BITMAP_LEN: usize = LISTED_MAX / 32;

/// The list has ended, or broken off, when no parameter came for this time: at 57600 baud with telemetry it
/// takes 35 s, some forty a second.
const QUIET: Duration = Duration::from_millis(1_500);
/// Missing ones are requested in groups, so that a slow line is not flooded.
const WINDOW: usize = 8;
/// Rounds in a row without one new parameter before it fails.
const ROUNDS: u8 = 5;
/// Changes of the number of parameters before it fails (a parameter that enables others changes it).
const CHANGES: u8 = 2;

/// One parameter of the list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Listed {
    /// Its index.
    pub index: u16,
    /// Length of the list.
    pub count: u16,
    /// Its name.
    pub name: Name,
    /// Its value.
    pub value: Value,
}

/// What is wrong with a list.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// So many parameters.
    TooMany(u16),
    Changed,
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::TooMany(found) => Self::TooMany { what: "parameters", found, most: LISTED_MAX as u16 },
            Fault::Changed => Self::Changed { what: "the list of parameters" },
        }
    }
}

/// Reads every parameter.
#[derive(Clone, Debug)]
pub struct List {
    received: [u32; BITMAP_LEN],
    received_count: u16,
    count: Option<u16>,
    due: Instant,
    /// Parameters of the group requested by index that did not come yet.
    awaited: u8,
    rounds: u8,
    changes: u8,
    failed: Option<Fault>,
    /// Whether a parameter beyond the announced end of the list came.
    has_more: bool,
}

impl List {
    /// The request is due now.
    pub fn new(now: Instant) -> Self {
        Self {
            received: [0; BITMAP_LEN],
            received_count: 0,
            count: None,
            due: now,
            awaited: 0,
            rounds: 0,
            changes: 0,
            failed: None,
            has_more: false,
        }
    }
    /// When the job is due.
    pub fn due(&self) -> Instant {
        if self.failed.is_some() { Instant::ZERO } else { self.due }
    }
    /// Parameters received so far, and the length of the list.
    pub fn progress(&self) -> (u16, Option<u16>) {
        (self.received_count, self.count)
    }
    fn is_complete(&self) -> bool {
        self.count == Some(self.received_count)
    }
    fn has(&self, index: u16) -> bool {
        let index = usize::from(index);
        self.received.get(index / 32).is_some_and(|bits| bits >> (index % 32) & 1 == 1)
    }

    /// Takes a parameter. Returns it when it is a new one of the list; one that cannot be read counts as
    /// received: another request would bring the same.
    pub fn on_message(&mut self, now: Instant, message: &MavMessage) -> Option<Result<Listed, BadValue>> {
        let MavMessage::PARAM_VALUE(m) = message else { return None };
        let (index, count) = (m.param_index, m.param_count);
        if index >= count || self.failed.is_some() {
            // The answer to another station's request by name has no index; any other lies beyond the announced end.
            self.has_more |= index != u16::MAX;
            return None;
        }
        if usize::from(count) > LISTED_MAX {
            self.failed = Some(Fault::TooMany(count));
            return None;
        }
        if self.count.is_some_and(|before| before != count) {
            // Every index may mean another parameter now.
            self.changes += 1;
            if self.changes > CHANGES {
                self.failed = Some(Fault::Changed);
                return None;
            }
            (self.received, self.received_count, self.rounds, self.awaited) = ([0; BITMAP_LEN], 0, 0, 0);
        }
        self.count = Some(count);
        if self.has(index) {
            return None;
        }
        self.received[usize::from(index) / 32] |= 1 << (index % 32);
        (self.received_count, self.rounds) = (self.received_count + 1, 0);
        self.due = match self.awaited {
            0 => now + QUIET,
            // The group is complete: the next one is due now.
            1 => now,
            _ => now + QUIET / 3,
        };
        self.awaited = self.awaited.saturating_sub(1);
        if self.is_complete() {
            // More may follow than was announced: then the list is not whole.
            self.due = now + QUIET / 3;
        }
        Some(value_of(m).map(|(name, value)| Listed { index, count, name, value }))
    }

    /// Sends when due; done when each was received.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Progress {
        if let Some(fault) = self.failed {
            return Progress::Failed(fault.into());
        }
        if now < self.due {
            return Progress::Pending;
        }
        if self.is_complete() {
            return match self.has_more {
                true => Progress::Failed(Fault::Changed.into()),
                false => Progress::Done,
            };
        }
        if self.rounds >= ROUNDS {
            return Progress::Failed(Failure::Silent { tries: ROUNDS });
        }
        self.rounds += 1;
        self.due = now + QUIET;
        let (target_system, target_component) = (transmit.system_id, AUTOPILOT_COMPONENT_ID);
        let Some(count) = self.count.filter(|_| self.received_count > 0) else {
            let request = PARAM_REQUEST_LIST_DATA { target_system, target_component };
            let _ = transmit.send(&MavMessage::PARAM_REQUEST_LIST(request));
            return Progress::Pending;
        };
        self.due = now + QUIET / 3;
        self.awaited = usize::from(count - self.received_count).min(WINDOW) as u8;
        let missing = (0..count).filter(|&index| !self.has(index)).take(WINDOW);
        for index in missing {
            let _ = transmit.send(&MavMessage::PARAM_REQUEST_READ(PARAM_REQUEST_READ_DATA {
                param_index: i16::try_from(index).unwrap_or(i16::MAX),
                target_system,
                target_component,
                param_id: "".into(),
            }));
        }
        Progress::Pending
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::dialect::{MavParamType, PARAM_VALUE_DATA};
    use crate::job::testing::sent;
    use std::{format, vec::Vec};

    fn listed(index: u16, count: u16) -> MavMessage {
        MavMessage::PARAM_VALUE(PARAM_VALUE_DATA {
            param_value: f32::from(index),
            param_count: count,
            param_index: index,
            param_id: format!("P{index}").as_str().into(),
            param_type: MavParamType::MAV_PARAM_TYPE_REAL32,
        })
    }

    /// An autopilot with `count` parameters; `lost` selects the answers that are lost, by their number.
    fn run(count: impl Fn(u32) -> u16, lost: impl Fn(u32) -> bool) -> (Progress, Vec<u16>, Instant) {
        let mut job = List::new(Instant::ZERO);
        let (mut progress, mut came, mut answers) = (Progress::Pending, Vec::new(), 0);
        for ms in (0..120_000).step_by(20) {
            let now = Instant::from_millis(ms);
            for message in sent(|t| progress = job.poll(now, t)) {
                let indices: Vec<u16> = match message {
                    MavMessage::PARAM_REQUEST_LIST(_) => (0..count(answers)).collect(),
                    MavMessage::PARAM_REQUEST_READ(m) => Vec::from([m.param_index as u16]),
                    other => panic!("{other:?}"),
                };
                for index in indices {
                    answers += 1;
                    if lost(answers) {
                        continue;
                    }
                    // Each twice: a duplicate is not a second parameter.
                    for _ in 0..2 {
                        came.extend(
                            job.on_message(now, &listed(index, count(answers))).map(|l| l.unwrap().index),
                        );
                    }
                }
            }
            if progress != Progress::Pending {
                return (progress, came, now);
            }
        }
        panic!("never ended: {:?}", job.progress());
    }

    #[test]
    fn each_comes_once_whatever_is_lost() {
        for nth in [0, 2, 3, 10] {
            let (progress, mut came, _) = run(|_| 1392, |n| nth > 0 && n % nth == 0);
            assert_eq!((progress, came.len()), (Progress::Done, 1392));
            came.sort_unstable();
            assert!(came.iter().enumerate().all(|(i, &index)| usize::from(index) == i));
        }
    }

    #[test]
    fn silence_ends_it() {
        let (progress, came, at) = run(|_| 850, |_| true);
        assert_eq!((progress, came.len()), (Progress::Failed(Failure::Silent { tries: 5 }), 0));
        assert!(at >= Instant::from_millis(7_500) && at < Instant::from_secs(8), "{at:?}");
    }

    #[test]
    fn a_list_that_changes_starts_again_and_fails_at_the_third_change() {
        let (progress, came, _) = run(|answers| if answers < 400 { 850 } else { 900 }, |_| false);
        assert_eq!(progress, Progress::Done);
        let again: Vec<u16> = came.iter().copied().filter(|&i| i < 300).collect();
        assert_eq!(again.len(), 600, "what came before the change came again after it");
        let (progress, ..) = run(|answers| 850 + (answers / 100) as u16, |_| false);
        assert_eq!(progress, Progress::Failed(Failure::Changed { what: "the list of parameters" }));
    }

    #[test]
    fn a_list_that_is_longer_than_announced_is_not_called_whole() {
        for late in [false, true] {
            let mut job = List::new(Instant::ZERO);
            sent(|t| assert_eq!(job.poll(Instant::ZERO, t), Progress::Pending));
            let all = 175;
            for index in 0..all {
                let ms = if late && index >= 157 { 400 } else { 100 };
                job.on_message(Instant::from_millis(ms), &listed(index, 157));
            }
            assert_eq!(job.progress(), (157, Some(157)));
            let mut progress = Progress::Pending;
            sent(|t| progress = job.poll(Instant::from_millis(599), t));
            assert_eq!(progress, Progress::Pending);
            sent(|t| progress = job.poll(Instant::from_millis(600), t));
            assert_eq!(progress, Progress::Failed(Failure::Changed { what: "the list of parameters" }));
        }
    }

    #[test]
    fn more_than_fit_is_refused_with_the_number() {
        let (progress, ..) = run(|_| 3_000, |_| false);
        assert_eq!(
            progress,
            Progress::Failed(Failure::TooMany { what: "parameters", found: 3_000, most: 2_048 })
        );
    }
}
