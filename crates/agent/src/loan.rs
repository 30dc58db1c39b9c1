//! Parameters of the pilot that stand against a flight: set on the operator's request, and given back after the flight.
//!
//! The autopilot keeps what is written when it is switched off: what could not be given back is in the log.

use heapless::Vec;
use wingbeat_autopilot::dialect::MavMessage;
use wingbeat_autopilot::parameter::{Name, Names, Value, WATCHED, Watched, Write};
use wingbeat_autopilot::{Progress, Transmit};
use wingbeat_geo::Instant;
use wingbeat_protocol::{Text, text};

use crate::owed::Owed;

/// Number of parameters that have one cure.
pub const CURES_MAX: usize = 5;

/// A parameter that stands against a flight, and the value that cures it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cure {
    /// The parameter.
    pub parameter: Watched,
    /// As this autopilot calls it.
    pub name: Name,
    /// The pilot's value.
    pub found: Value,
    /// The value for the flight.
    pub expected: Value,
}

/// How far the last request has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LoanState {
    /// Nothing was asked for, or all of it holds.
    #[default]
    Settled,
    /// The autopilot has not confirmed all yet.
    UnderWay,
    /// One could not be written.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Lend,
    Restore,
}

/// What is lent, and what is being done about it.
#[derive(Debug, Default)]
pub(crate) struct Loan {
    lent: Vec<Cure, CURES_MAX>,
    under_way: Option<(usize, Direction)>,
    job: Option<Write>,
    has_failed: bool,
    /// Some could not be given back: that is tried again on request only.
    has_tried: bool,
    /// Some were lent by an agent before this one, whose flight is over.
    is_overdue: bool,
}

impl Loan {
    /// Begins to set these, beside those that are lent already.
    pub(crate) fn lend(&mut self, cures: &[Cure]) {
        for cure in cures {
            if self.lent.iter().all(|lent| lent.name != cure.name) {
                // Each parameter once, and of each there is one cure at most.
                let _ = self.lent.push(*cure);
            }
        }
        (self.under_way, self.job) = (Some((0, Direction::Lend)), None);
        (self.has_failed, self.has_tried, self.is_overdue) = (false, false, false);
    }

    /// What is owed to the pilot.
    pub(crate) fn owed(&self) -> impl Iterator<Item = Owed> + '_ {
        self.lent.iter().map(|lent| Owed { name: lent.name, pilots: lent.found, ours: Some(lent.expected) })
    }

    /// Takes what an agent before this one owed. Whether it is one that is lent, and there is room.
    pub(crate) fn owe(&mut self, owed: &Owed) -> bool {
        let is_named = |names: &Names| {
            let name = owed.name.as_str();
            names.usual == name || names.other == Some(name)
        };
        let Some(&parameter) = WATCHED.iter().find(|watched| is_named(&watched.names())) else {
            return false;
        };
        let Owed { name, pilots, ours } = *owed;
        let cure = Cure { parameter, name, found: pilots, expected: ours.unwrap_or(pilots) };
        let is_taken = self.lent.push(cure).is_ok();
        self.is_overdue |= is_taken;
        is_taken
    }

    /// Whether an agent before this one lent some.
    pub(crate) fn is_overdue(&self) -> bool {
        self.is_overdue
    }

    /// Before what is overdue is given back: forgets one that the pilot has set since, as the autopilot reports it. Its name, the
    /// pilot's value of before, and the present one.
    pub(crate) fn forget_set_since(
        &mut self,
        reported: impl Fn(Watched) -> Option<Value>,
    ) -> Option<(Name, Value, Value)> {
        if !self.is_overdue || self.under_way.is_some() {
            return None;
        }
        let of_another =
            |lent: &Cure| reported(lent.parameter).filter(|now| *now != lent.expected && *now != lent.found);
        let index = self.lent.iter().position(|lent| of_another(lent).is_some())?;
        let lent = self.lent.remove(index);
        Some((lent.name, lent.found, reported(lent.parameter)?))
    }

    /// Whether the autopilot has reported each of those that are overdue.
    pub(crate) fn is_reported(&self, is_read: impl Fn(Watched) -> bool) -> bool {
        self.lent.iter().all(|lent| is_read(lent.parameter))
    }

    /// After a flight: begins to give all back, once.
    pub(crate) fn restore_once(&mut self) {
        if !self.has_tried {
            self.restore();
        }
    }

    /// Begins to give all back. Whether there is any.
    pub(crate) fn restore(&mut self) -> bool {
        if !self.lent.is_empty() && !matches!(self.under_way, Some((_, Direction::Restore))) {
            (self.under_way, self.job) = (Some((0, Direction::Restore)), None);
        }
        !self.lent.is_empty()
    }

    pub(crate) fn state(&self) -> LoanState {
        match self.under_way {
            Some(_) => LoanState::UnderWay,
            None if self.has_failed => LoanState::Failed,
            None => LoanState::Settled,
        }
    }

    /// Whether any is to be given back.
    pub(crate) fn has_lent(&self) -> bool {
        !self.lent.is_empty()
    }

    /// When it wants polling.
    pub(crate) fn due(&self) -> Instant {
        match (&self.job, self.under_way) {
            (Some(job), _) => job.due(),
            (None, Some(_)) => Instant::ZERO,
            (None, None) => Instant::NEVER,
        }
    }

    /// Takes a message of the autopilot.
    pub(crate) fn on_message(&mut self, now: Instant, message: &MavMessage) {
        if let Some(job) = &mut self.job {
            job.on_message(now, message);
        }
    }

    /// Continues. A line for the log for each parameter that was written or could not be: the others are written all the
    /// same.
    pub(crate) fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Option<Result<Text, Text>> {
        let (index, direction) = self.under_way?;
        let Some(&Cure { parameter, name, found, expected }) = self.lent.get(index) else {
            self.under_way = None;
            self.has_tried = direction == Direction::Restore && !self.lent.is_empty();
            self.is_overdue &= self.has_tried;
            return None;
        };
        let value = if direction == Direction::Lend { expected } else { found };
        let job = self.job.get_or_insert_with(|| Write::new(now, known_as(parameter, name), value));
        let result = match job.poll(now, transmit) {
            Progress::Pending => return None,
            Progress::Done if direction == Direction::Lend => Ok(text!(
                "{name} set to {value}; the pilot's {found} comes back after the flight, or at engage"
            )),
            Progress::Done => Ok(text!("{name}: the pilot's {value} is back")),
            Progress::Failed(failure) => {
                self.has_failed = true;
                Err(text!("{name} not set to {value}: {failure}; the pilot's is {found}"))
            }
        };
        self.job = None;
        // One that seems not to be written may be, its answers lost: the pilot's value is kept, and given back, too.
        if result.is_ok() && direction == Direction::Restore {
            self.lent.remove(index);
        } else {
            self.under_way = Some((index + 1, direction));
        }
        Some(result)
    }
}

/// The parameter under the name that this autopilot answered to.
fn known_as(parameter: Watched, name: Name) -> Names {
    let names = parameter.names();
    match names.other {
        Some(other) if other == name.as_str() => Names::one(other),
        Some(_) | None => Names::one(names.usual),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;
    use std::vec::Vec as StdVec;

    use wingbeat_autopilot::codec::Decoder;
    use wingbeat_autopilot::codec::framing::Framing;
    use wingbeat_autopilot::dialect::{MavParamType, PARAM_VALUE_DATA};

    use super::*;

    fn cure(parameter: Watched, found: i64, expected: i64) -> Cure {
        let name = Name::new(parameter.names().usual).unwrap();
        Cure { parameter, name, found: Value::Integer(found), expected: Value::Integer(expected) }
    }

    type Written = StdVec<(std::string::String, f32)>;

    /// Runs against an autopilot that answers to all names but one. Returns what was written, and the lines.
    fn run(loan: &mut Loan, without: &str) -> (Written, StdVec<Result<Text, Text>>) {
        let (mut written, mut lines, mut ms) = (StdVec::new(), StdVec::new(), 0);
        while loan.under_way.is_some() {
            let now = Instant::from_millis(ms);
            assert!(ms < 100_000, "it never ends");
            ms += 50;
            let (mut sequence, mut bytes) = (0, heapless::Vec::new());
            let framing = Framing::default();
            let mut transmit = Transmit { system_id: 1, sequence: &mut sequence, framing, bytes: &mut bytes };
            lines.extend(loan.poll(now, &mut transmit));
            let mut sent = StdVec::new();
            Decoder::default().push(&bytes, |frame| sent.push(frame.message));
            for message in sent {
                let MavMessage::PARAM_SET(m) = message else { panic!("{message:?}") };
                let name = wingbeat_autopilot::codec::text(&*m.param_id).to_string();
                if name == without {
                    continue;
                }
                written.push((name, m.param_value));
                let held = PARAM_VALUE_DATA {
                    param_id: m.param_id,
                    param_value: m.param_value,
                    param_type: MavParamType::MAV_PARAM_TYPE_INT8,
                    ..PARAM_VALUE_DATA::default()
                };
                loan.on_message(now, &MavMessage::PARAM_VALUE(held));
            }
        }
        (written, lines)
    }

    #[test]
    fn what_is_lent_is_given_back() {
        let mut loan = Loan::default();
        let cures = [cure(Watched::MissionRestart, 1, 0), cure(Watched::EstimateFailsafe, 2, 1)];
        loan.lend(&cures);
        assert_eq!((loan.state(), loan.due()), (LoanState::UnderWay, Instant::ZERO));
        let written = |pairs: [(&str, f32); 2]| pairs.map(|(name, value)| (name.to_string(), value)).to_vec();
        assert_eq!(run(&mut loan, "").0, written([("MIS_RESTART", 0.0), ("FS_EKF_ACTION", 1.0)]));
        assert_eq!((loan.state(), loan.due()), (LoanState::Settled, Instant::NEVER));
        // A second request lends nothing anew: the pilot's values are those of before the first.
        loan.lend(&[cure(Watched::MissionRestart, 0, 0)]);
        run(&mut loan, "");
        loan.restore();
        assert_eq!(run(&mut loan, "").0, written([("MIS_RESTART", 1.0), ("FS_EKF_ACTION", 2.0)]));
        assert!(!loan.restore(), "nothing is lent");
        assert_eq!(loan.state(), LoanState::Settled);
    }

    #[test]
    fn what_an_agent_before_owed_is_given_back_unless_the_pilot_has_set_it_since() {
        let owed = |name: &str, pilots, ours| Owed {
            name: Name::new(name).unwrap(),
            pilots: Value::Integer(pilots),
            ours: Some(Value::Integer(ours)),
        };
        let mut loan = Loan::default();
        assert!(loan.owe(&owed("MIS_RESTART", 1, 0)) && loan.owe(&owed("FS_EKF_ACTION", 2, 1)));
        assert!(!loan.owe(&owed("NO_SUCH", 1, 0)));
        assert_eq!(loan.owed().count(), 2);
        assert!(loan.is_overdue() && !loan.is_reported(|_| false));
        // Another action than both was set since: by the pilot.
        let reported = |watched| Some(Value::Integer(if watched == Watched::MissionRestart { 0 } else { 3 }));
        assert!(loan.is_reported(|_| true));
        let name = Name::new("FS_EKF_ACTION").unwrap();
        assert_eq!(loan.forget_set_since(reported), Some((name, Value::Integer(2), Value::Integer(3))));
        assert_eq!(loan.forget_set_since(reported), None);
        loan.restore_once();
        assert_eq!(run(&mut loan, "").0, [("MIS_RESTART".to_string(), 1.0)]);
        assert!(!loan.is_overdue() && loan.owed().next().is_none());
    }

    #[test]
    fn one_that_cannot_be_set_is_said_and_the_others_are_set_all_the_same() {
        let mut loan = Loan::default();
        loan.lend(&[cure(Watched::MissionRestart, 1, 0), cure(Watched::EstimateFailsafe, 2, 1)]);
        let (written, lines) = run(&mut loan, "MIS_RESTART");
        assert_eq!(written, [("FS_EKF_ACTION".to_string(), 1.0)]);
        assert!(lines[0].as_ref().unwrap_err().starts_with("MIS_RESTART not set to 0: "), "{lines:?}");
        assert_eq!(loan.state(), LoanState::Failed);
        // Its answers may have been lost, so it is given back too; what cannot be is tried again on request only.
        loan.restore_once();
        let (written, lines) = run(&mut loan, "MIS_RESTART");
        assert_eq!(written, [("FS_EKF_ACTION".to_string(), 2.0)]);
        assert!(lines[0].as_ref().unwrap_err().ends_with("the pilot's is 1"), "{lines:?}");
        loan.restore_once();
        assert_eq!(loan.due(), Instant::NEVER);
        assert!(loan.restore());
        assert_eq!(run(&mut loan, "").0, [("MIS_RESTART".to_string(), 1.0)]);
        assert!(!loan.restore());
    }
}
