//! One parameter written, proved by the value that the autopilot then reports.

use wingbeat_geo::{Duration, Instant};

use super::{Name, Names, Refusal, Value, answer};
use crate::dialect::{MavMessage, MavParamError, PARAM_SET_DATA};
use crate::job::{AUTOPILOT_COMPONENT_ID, Failure, Progress, Retry, Transmit};

const PERIOD: Duration = Duration::from_millis(700);
/// Tries under each name.
const TRIES: u8 = 3;
/// Another value counts when it came as the answer to this many writes: the first may have left before the
/// write came.
const DIFFERENT_MAX: u8 = 2;

/// Writes the value of a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    names: Names,
    value: Value,
    retry: Retry,
    tries: u8,
    /// The name that this autopilot answered to.
    known: Option<Name>,
    answered: bool,
    different: u8,
    /// The last write has no answer yet.
    awaits: bool,
    failed: Option<Failure>,
}

impl Write {
    /// Writes `value`, three times under each name.
    pub fn new(now: Instant, names: Names, value: Value) -> Self {
        Self {
            names,
            value,
            retry: Retry::new(now, PERIOD, TRIES * names.count()),
            tries: 0,
            known: None,
            answered: false,
            different: 0,
            awaits: false,
            failed: None,
        }
    }
    /// When the job is due.
    pub fn due(&self) -> Instant {
        self.retry.due()
    }
    /// Its name on this autopilot, once it answered.
    pub fn name(&self) -> Option<Name> {
        self.known
    }
    /// Takes the answer.
    pub fn on_message(&mut self, now: Instant, message: &MavMessage) {
        match answer(message, &self.names) {
            // Before the first write leaves, a report of it answers another request.
            _ if !self.awaits => {}
            None => {}
            Some(Ok((name, value))) => {
                (self.known, self.awaits) = (Some(name), false);
                let wanted = self.names.in_unit_of(name.as_str(), self.value);
                if value.is_same(wanted) {
                    self.answered = true;
                } else if value.kind() != self.value.kind() {
                    let (found, expected) = (value.kind(), self.value.kind());
                    self.failed = Some(Failure::ParameterKind { name, found, expected });
                } else {
                    self.different += 1;
                    if self.different >= DIFFERENT_MAX {
                        let expected = wanted;
                        self.failed = Some(Failure::ParameterValue { name, found: value, expected });
                    } else {
                        self.retry = Retry::new(now, PERIOD, TRIES);
                    }
                }
            }
            Some(Err(Refusal::Bad(bad))) => self.failed = Some(Failure::Parameter(bad)),
            Some(Err(Refusal::Error { name, error: MavParamError::MAV_PARAM_ERROR_DOES_NOT_EXIST }))
                if self.names.count() == 2 && name.as_str() == self.names.usual =>
            {
                self.known = self.names.other.and_then(Name::new);
                (self.retry, self.awaits) = (Retry::new(now, PERIOD, TRIES), false);
            }
            Some(Err(Refusal::Error { name, error: MavParamError::MAV_PARAM_ERROR_DOES_NOT_EXIST })) => {
                self.failed = Some(Failure::NoParameter { name });
            }
            Some(Err(Refusal::Error { name, error })) => {
                self.failed = Some(Failure::ParameterRefused { name, error: error as u8 });
            }
        }
    }
    /// Sends when due; done when the autopilot reports the value.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Progress {
        if self.answered {
            return Progress::Done;
        }
        if let Some(failure) = self.failed {
            return Progress::Failed(failure);
        }
        match self.retry.poll(now) {
            Err(failure) => return Progress::Failed(failure),
            Ok(false) => return Progress::Pending,
            Ok(true) => {}
        }
        let name = self.known.as_ref().map_or(self.names.of_try(self.tries), Name::as_str);
        let (param_value, param_type) = self.names.in_unit_of(name, self.value).on_the_wire();
        let _ = transmit.send(&MavMessage::PARAM_SET(PARAM_SET_DATA {
            param_value,
            target_system: transmit.system_id,
            target_component: AUTOPILOT_COMPONENT_ID,
            param_id: name.into(),
            param_type,
        }));
        (self.tries, self.awaits) = (self.tries.wrapping_add(1), true);
        Progress::Pending
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::job::testing::sent;
    use crate::parameter::Kind;
    use crate::parameter::testing::{integer, no_such, real};
    use std::string::{String, ToString};
    use std::vec::Vec;

    fn run(
        names: Names,
        value: Value,
        mut answer: impl FnMut(&str, f32) -> Option<MavMessage>,
    ) -> (Progress, Vec<String>) {
        let mut job = Write::new(Instant::ZERO, names, value);
        let (mut progress, mut written) = (Progress::Pending, Vec::new());
        for ms in (0..10_000).step_by(100) {
            let now = Instant::from_millis(ms);
            for message in sent(|t| progress = job.poll(now, t)) {
                let MavMessage::PARAM_SET(m) = message else { panic!("{message:?}") };
                let name = crate::codec::text(&*m.param_id).to_string();
                if let Some(message) = answer(&name, m.param_value) {
                    job.on_message(now, &message);
                }
                written.push(name);
            }
            if progress != Progress::Pending {
                break;
            }
        }
        (progress, written)
    }

    const RTL_ALT: Names = Names::one("RTL_ALT");

    #[test]
    fn the_same_value_is_the_proof() {
        let (progress, written) = run(RTL_ALT, Value::Integer(2_000), |n, v| Some(integer(n, v)));
        assert_eq!((progress, written.len()), (Progress::Done, 1));
    }

    #[test]
    fn a_coerced_value_is_refused_with_what_was_found() {
        let (progress, written) = run(RTL_ALT, Value::Integer(40_000), |n, _| Some(integer(n, 32_767.0)));
        let failure = Failure::ParameterValue {
            name: Name::new("RTL_ALT").unwrap(),
            found: Value::Integer(32_767),
            expected: Value::Integer(40_000),
        };
        assert_eq!((progress, written.len()), (Progress::Failed(failure), 2));
        assert_eq!(failure.to_string(), "parameter RTL_ALT: found 32767, expected 40000");
    }

    #[test]
    fn an_old_value_that_was_already_sent_is_no_refusal() {
        let mut answers = 0;
        let (progress, _) = run(RTL_ALT, Value::Integer(2_000), |n, v| {
            answers += 1;
            Some(integer(n, if answers == 1 { 1_500.0 } else { v }))
        });
        assert_eq!(progress, Progress::Done);
    }

    #[test]
    fn a_lost_answer_is_requested_again_and_silence_ends() {
        let mut answers = 0;
        let (progress, written) = run(RTL_ALT, Value::Integer(1), |n, v| {
            answers += 1;
            (answers == 3).then(|| integer(n, v))
        });
        assert_eq!((progress, written.len()), (Progress::Done, 3));
        assert_eq!(
            run(RTL_ALT, Value::Integer(1), |_, _| None).0,
            Progress::Failed(Failure::Silent { tries: 3 })
        );
    }

    #[test]
    fn another_kind_is_refused_and_the_other_name_is_tried() {
        let (progress, _) = run(RTL_ALT, Value::Integer(1), |n, v| Some(real(n, v)));
        let kinds = (Kind::Real, Kind::Integer);
        let name = Name::new("RTL_ALT").unwrap();
        assert_eq!(
            progress,
            Progress::Failed(Failure::ParameterKind { name, found: kinds.0, expected: kinds.1 })
        );
        for error in [false, true] {
            let (progress, written) = run(Names::SYSTEM_ID, Value::Integer(7), |n, v| match n {
                "MAV_SYSID" => Some(integer(n, v)),
                _ => error.then(|| no_such(n)),
            });
            assert_eq!((progress, written.len()), (Progress::Done, 2));
        }
    }
}
