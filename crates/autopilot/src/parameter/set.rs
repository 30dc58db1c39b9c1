//! One parameter set that is known by its name alone: read for its kind, written where it holds another value, and
//! proved by the value that the autopilot then reports.

use wingbeat_geo::{Duration, Instant};

use super::{Kind, Name, Value, request, value_of};
use crate::codec::text;
use crate::dialect::{MavMessage, MavParamError, PARAM_SET_DATA, PARAM_VALUE_DATA};
use crate::job::{AUTOPILOT_COMPONENT_ID, Failure, Progress, Retry, Transmit};

const PERIOD: Duration = Duration::from_millis(700);
/// Tries of the request, and tries of the write.
const TRIES: u8 = 3;
/// Another value counts when it came as the answer to this many writes: the first may have left before the
/// write came.
const DIFFERENT_MAX: u8 = 2;

/// What a parameter held before, and holds now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Before.
    pub before: Value,
    /// Now: the value that was asked for.
    pub now: Value,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Requested; its value is not known.
    Reading,
    /// Written.
    Writing {
        change: Change,
        /// The last write has no answer yet.
        awaits: bool,
        different: u8,
    },
    /// It holds what was asked for.
    Set(Change),
    Failed(Failure),
}

/// Sets a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Set {
    name: Name,
    wanted: f32,
    retry: Retry,
    stage: Stage,
}

impl Set {
    /// Gives the parameter of this name the value, in its own kind. The request is due now.
    pub fn new(now: Instant, name: Name, wanted: f32) -> Self {
        Self { name, wanted, retry: Retry::new(now, PERIOD, TRIES), stage: Stage::Reading }
    }
    /// When the job is due.
    pub fn due(&self) -> Instant {
        match self.stage {
            Stage::Reading | Stage::Writing { .. } => self.retry.due(),
            Stage::Set(_) | Stage::Failed(_) => Instant::ZERO,
        }
    }
    /// Its parameter.
    pub fn name(&self) -> Name {
        self.name
    }
    /// What it held before and holds now, once that is done.
    pub fn change(&self) -> Option<Change> {
        match self.stage {
            Stage::Set(change) => Some(change),
            Stage::Reading | Stage::Writing { .. } | Stage::Failed(_) => None,
        }
    }

    /// The value that is asked for, in the kind that the parameter has.
    fn of_kind(&self, kind: Kind) -> Result<Value, Failure> {
        let number = f64::from(self.wanted);
        match kind {
            Kind::Real => Ok(Value::Real(self.wanted)),
            Kind::Integer if libm::trunc(number) == number => Ok(Value::Integer(number as i64)),
            Kind::Integer => Err(Failure::ParameterFraction { name: self.name, found: self.wanted }),
        }
    }

    /// Takes an answer.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub fn on_message(&mut self, now: Instant, message: &MavMessage) {
        match message {
            MavMessage::PARAM_VALUE(m) if text(&*m.param_id) == self.name.as_str() => self.on_value(now, m),
            MavMessage::PARAM_ERROR(m) if text(&*m.param_id) == self.name.as_str() => {
                let name = self.name;
                self.stage = Stage::Failed(match m.error {
                    MavParamError::MAV_PARAM_ERROR_DOES_NOT_EXIST => Failure::NoParameter { name },
                    error => Failure::ParameterRefused { name, error: error as u8 },
                });
            }
            _ => {}
        }
    }

    fn on_value(&mut self, now: Instant, m: &PARAM_VALUE_DATA) {
        let found = match value_of(m) {
            Ok((_, found)) => found,
            Err(bad) => return self.stage = Stage::Failed(Failure::Parameter(bad)),
        };
        let wanted = match self.of_kind(found.kind()) {
            Ok(wanted) => wanted,
            Err(failure) => return self.stage = Stage::Failed(failure),
        };
        match &mut self.stage {
            Stage::Reading if found.is_same(wanted) => {
                self.stage = Stage::Set(Change { before: found, now: wanted });
            }
            Stage::Reading => {
                let change = Change { before: found, now: wanted };
                self.stage = Stage::Writing { change, awaits: false, different: 0 };
                self.retry = Retry::new(now, PERIOD, TRIES);
            }
            // Before the first write leaves, a report answers another request.
            Stage::Writing { awaits: false, .. } | Stage::Set(_) | Stage::Failed(_) => {}
            Stage::Writing { change, .. } if found.is_same(wanted) => self.stage = Stage::Set(*change),
            Stage::Writing { awaits, different, .. } => {
                *awaits = false;
                *different += 1;
                if *different >= DIFFERENT_MAX {
                    let name = self.name;
                    self.stage = Stage::Failed(Failure::ParameterValue { name, found, expected: wanted });
                } else {
                    self.retry = Retry::new(now, PERIOD, TRIES);
                }
            }
        }
    }

    /// Sends when due; done when the autopilot reports the value.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Progress {
        match self.stage {
            Stage::Set(_) => return Progress::Done,
            Stage::Failed(failure) => return Progress::Failed(failure),
            Stage::Reading | Stage::Writing { .. } => {}
        }
        match self.retry.poll(now) {
            // Up to 4.6 an autopilot does not answer about what it does not have.
            Err(_) if matches!(self.stage, Stage::Reading) => {
                return Progress::Failed(Failure::NoAnswerAbout { name: self.name });
            }
            Err(failure) => return Progress::Failed(failure),
            Ok(false) => return Progress::Pending,
            Ok(true) => {}
        }
        if let Stage::Writing { change, awaits, .. } = &mut self.stage {
            let (param_value, param_type) = change.now.on_the_wire();
            let _ = transmit.send(&MavMessage::PARAM_SET(PARAM_SET_DATA {
                param_value,
                target_system: transmit.system_id,
                target_component: AUTOPILOT_COMPONENT_ID,
                param_id: self.name.as_str().into(),
                param_type,
            }));
            *awaits = true;
        } else {
            let _ = request(self.name.as_str(), transmit);
        }
        Progress::Pending
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::job::testing::sent;
    use crate::parameter::testing::{integer, no_such, real};
    use std::string::ToString;

    /// Sets `wanted` on an autopilot that answers requests and writes. How it ended, and the number of writes.
    fn run(
        wanted: f32,
        mut read: impl FnMut() -> Option<MavMessage>,
        mut write: impl FnMut(f32) -> Option<MavMessage>,
    ) -> (Result<Change, Failure>, usize) {
        let name = Name::new("RTL_ALT").unwrap();
        let mut job = Set::new(Instant::ZERO, name, wanted);
        let mut writes = 0;
        for ms in (0..20_000).step_by(100) {
            let (now, mut progress) = (Instant::from_millis(ms), Progress::Pending);
            for message in sent(|t| progress = job.poll(now, t)) {
                let answer = match message {
                    MavMessage::PARAM_REQUEST_READ(m) => {
                        assert_eq!((m.param_index, text(&*m.param_id)), (-1, "RTL_ALT"));
                        read()
                    }
                    MavMessage::PARAM_SET(m) => {
                        writes += 1;
                        write(m.param_value)
                    }
                    other => panic!("{other:?}"),
                };
                if let Some(answer) = answer {
                    // Of another parameter: not ours.
                    job.on_message(now, &real("RTL_SPEED", 1.0));
                    job.on_message(now, &answer);
                }
            }
            match progress {
                Progress::Pending => {}
                Progress::Done => return (Ok(job.change().unwrap()), writes),
                Progress::Failed(failure) => return (Err(failure), writes),
            }
        }
        panic!("never ended");
    }

    fn whole(before: i64, now: i64) -> Change {
        Change { before: Value::Integer(before), now: Value::Integer(now) }
    }

    #[test]
    fn it_is_read_for_its_kind_written_once_and_proved() {
        let held = || Some(integer("RTL_ALT", 1_500.0));
        assert_eq!(run(2_000.0, held, |v| Some(integer("RTL_ALT", v))), (Ok(whole(1_500, 2_000)), 1));
        let (set, writes) = run(2.5, || Some(real("RTL_ALT", 15.0)), |v| Some(real("RTL_ALT", v)));
        assert_eq!((set.unwrap().now, writes), (Value::Real(2.5), 1));
    }

    #[test]
    fn what_it_holds_already_is_not_written() {
        let held = || Some(integer("RTL_ALT", 1_500.0));
        assert_eq!(run(1_500.0, held, |_| None), (Ok(whole(1_500, 1_500)), 0));
    }

    #[test]
    fn a_name_that_the_autopilot_does_not_have_is_never_written() {
        let refused = |read: &dyn Fn() -> Option<MavMessage>| {
            let (set, writes) = run(1.0, read, |v| Some(integer("RTL_ALT", v)));
            assert_eq!(writes, 0);
            set.unwrap_err().to_string()
        };
        assert_eq!(
            refused(&|| None),
            "parameter RTL_ALT: no answer after 3 requests, expected a parameter of this autopilot"
        );
        assert_eq!(
            refused(&|| Some(no_such("RTL_ALT"))),
            "parameter RTL_ALT: this autopilot does not have it"
        );
    }

    #[test]
    fn a_fraction_of_a_whole_number_and_a_coerced_value_are_refused() {
        let held = || Some(integer("RTL_ALT", 1_500.0));
        let (set, writes) = run(1.5, held, |_| None);
        assert_eq!(writes, 0);
        assert_eq!(set.unwrap_err().to_string(), "parameter RTL_ALT: found 1.5, expected a whole number");
        let (set, writes) = run(40_000.0, held, |_| Some(integer("RTL_ALT", 32_767.0)));
        assert_eq!(writes, 2);
        assert_eq!(set.unwrap_err().to_string(), "parameter RTL_ALT: found 32767, expected 40000");
    }

    #[test]
    fn lost_answers_are_asked_for_again_and_silence_ends_it() {
        let (mut reads, mut answers) = (0, 0);
        let read = || {
            reads += 1;
            (reads == 3).then(|| integer("RTL_ALT", 1.0))
        };
        let write = |v| {
            answers += 1;
            (answers == 3).then(|| integer("RTL_ALT", v))
        };
        assert_eq!(run(2.0, read, write), (Ok(whole(1, 2)), 3));
        let (set, writes) = run(2.0, || Some(integer("RTL_ALT", 1.0)), |_| None);
        assert_eq!((set, writes), (Err(Failure::Silent { tries: 3 }), 3));
    }
}
