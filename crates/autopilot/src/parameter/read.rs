//! One parameter by name.

use wingbeat_geo::{Duration, Instant};

use super::{Kind, Name, Names, Refusal, Value, answer, request};
use crate::dialect::{MavMessage, MavParamError};
use crate::job::{Failure, Progress, Retry, Transmit};

/// 3.5.7 answers within a few milliseconds, a busy line within a few hundred.
const PERIOD: Duration = Duration::from_millis(700);
/// Tries under each name.
const TRIES: u8 = 3;

/// Reads the value of a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    names: Names,
    kind: Kind,
    retry: Retry,
    tries: u8,
    found: Option<(Name, Value)>,
    failed: Option<Failure>,
    /// Names that the autopilot reported not to exist.
    denied: u8,
}

impl Read {
    /// Requests a parameter of this kind, three times under each of its names.
    pub fn new(now: Instant, names: Names, kind: Kind) -> Self {
        let retry = Retry::new(now, PERIOD, TRIES * names.count());
        Self { names, kind, retry, tries: 0, found: None, failed: None, denied: 0 }
    }
    /// When the job is due.
    pub fn due(&self) -> Instant {
        self.retry.due()
    }
    /// The value, once it is known, and its name on this autopilot.
    pub fn value(&self) -> Option<(Name, Value)> {
        self.found
    }
    /// Takes the answer.
    pub fn on_message(&mut self, now: Instant, message: &MavMessage) {
        if self.found.is_some() {
            return;
        }
        match answer(message, &self.names) {
            None => {}
            Some(Ok((name, value))) if value.kind() == self.kind => self.found = Some((name, value)),
            Some(Ok((name, value))) => {
                let (found, expected) = (value.kind(), self.kind);
                self.failed = Some(Failure::ParameterKind { name, found, expected });
            }
            Some(Err(Refusal::Bad(bad))) => self.failed = Some(Failure::Parameter(bad)),
            Some(Err(Refusal::Error { name, error: MavParamError::MAV_PARAM_ERROR_DOES_NOT_EXIST })) => {
                let bit = if name.as_str() == self.names.usual { 1 } else { 2 };
                self.denied |= bit;
                if self.denied.count_ones() == u32::from(self.names.count()) {
                    self.failed = Some(Failure::NoParameter { name });
                } else {
                    // The other name, now.
                    (self.tries, self.retry) = (bit, Retry::new(now, PERIOD, TRIES));
                }
            }
            Some(Err(Refusal::Error { name, error })) => {
                self.failed = Some(Failure::ParameterRefused { name, error: error as u8 });
            }
        }
    }
    /// Sends when due; done when the value is known.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Progress {
        if self.found.is_some() {
            return Progress::Done;
        }
        if let Some(failure) = self.failed {
            return Progress::Failed(failure);
        }
        match self.retry.poll(now) {
            Err(failure) => Progress::Failed(failure),
            Ok(false) => Progress::Pending,
            Ok(true) => {
                let number = if self.denied == 0 { self.tries } else { self.denied };
                let _ = request(self.names.of_try(number), transmit);
                self.tries = self.tries.wrapping_add(1);
                Progress::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::job::testing::sent;
    use crate::parameter::testing::{integer, no_such, real};
    use std::string::{String, ToString};
    use std::vec::Vec;

    fn run(
        names: Names,
        kind: Kind,
        answer: impl Fn(&str) -> Option<MavMessage>,
    ) -> (Progress, Read, Vec<String>) {
        let mut job = Read::new(Instant::ZERO, names, kind);
        let (mut progress, mut asked) = (Progress::Pending, Vec::new());
        for ms in (0..10_000).step_by(100) {
            let now = Instant::from_millis(ms);
            for message in sent(|t| progress = job.poll(now, t)) {
                let MavMessage::PARAM_REQUEST_READ(m) = message else { panic!("{message:?}") };
                let name = crate::codec::text(&*m.param_id).to_string();
                if let Some(message) = answer(&name) {
                    job.on_message(now, &message);
                }
                asked.push(name);
            }
            if progress != Progress::Pending {
                break;
            }
        }
        (progress, job, asked)
    }

    #[test]
    fn the_second_name_is_tried_after_the_first_and_remembered() {
        let new = |name: &str| (name == "MAV_GCS_SYSID").then(|| integer(name, 255.0));
        let (progress, job, asked) = run(Names::GROUND_STATION_ID, Kind::Integer, new);
        assert_eq!((progress, asked.len()), (Progress::Done, 2));
        let (name, value) = job.value().unwrap();
        assert_eq!((name.as_str(), value), ("MAV_GCS_SYSID", Value::Integer(255)));
    }

    #[test]
    fn without_an_answer_it_tries_six_times_under_two_names() {
        let (progress, _, asked) = run(Names::SYSTEM_ID, Kind::Integer, |_| None);
        assert_eq!(progress, Progress::Failed(Failure::Silent { tries: 6 }));
        let count = |name| asked.iter().filter(|n| *n == name).count();
        assert_eq!((count("SYSID_THISMAV"), count("MAV_SYSID")), (3, 3));
    }

    #[test]
    fn a_parameter_of_another_kind_is_refused() {
        let (progress, _, asked) = run(Names::one("RTL_ALT"), Kind::Integer, |n| Some(real(n, 1500.0)));
        let name = Name::new("RTL_ALT").unwrap();
        let failure = Failure::ParameterKind { name, found: Kind::Real, expected: Kind::Integer };
        assert_eq!((progress, asked.len()), (Progress::Failed(failure), 1));
        assert_eq!(failure.to_string(), "parameter RTL_ALT: found a real number, expected a whole number");
    }

    #[test]
    fn a_version_that_reports_that_there_is_none_is_asked_once_under_each_name() {
        let (progress, _, asked) = run(Names::SYSTEM_ID, Kind::Integer, |name| Some(no_such(name)));
        let name = Name::new("MAV_SYSID").unwrap();
        assert_eq!(progress, Progress::Failed(Failure::NoParameter { name }));
        assert_eq!(asked, ["SYSID_THISMAV", "MAV_SYSID"]);
    }

    #[test]
    fn another_parameter_is_no_answer() {
        let (progress, ..) =
            run(Names::one("RTL_ALT"), Kind::Integer, |_| Some(integer("RTL_ALT_FINAL", 0.0)));
        assert_eq!(progress, Progress::Failed(Failure::Silent { tries: 3 }));
    }
}
