//! The flight controller's parameters, for the API: the list as it was read last, and a queue of those to set, of which the
//! agent is given one at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tokio::sync::oneshot;
use wingbeat_agent::{ParameterName, ParameterOrder, ParameterReport, Rejection, Reply};
use wingbeat_api::{
    ApiError, ParameterEffect, ParameterOutcome, ParameterProgress, ParameterTable, ParameterValue,
    ParameterWork, ParameterWrite,
};
use wingbeat_geo::Instant;
use wingbeat_wire::VehicleId;

/// More than any version has.
const SET_MAX: usize = 2_048;
/// Parameters that could not be read, of which each is a line.
const PROBLEMS_MAX: usize = 16;

/// What the API asks.
#[derive(Debug)]
pub(crate) enum Ask {
    Table(oneshot::Sender<ParameterTable>),
    Progress(oneshot::Sender<ParameterProgress>),
    Read(oneshot::Sender<Result<ParameterProgress, ApiError>>),
    /// Checked.
    Write {
        set: Vec<(ParameterName, f32)>,
        lease: Option<String>,
        /// Whose connection it is, where there are keys.
        from: Option<VehicleId>,
        reply: oneshot::Sender<Result<ParameterProgress, ApiError>>,
    },
}

/// The parameters of a request, or what is wrong with the first that cannot be one.
pub(crate) fn check(write: &ParameterWrite) -> Result<Vec<(ParameterName, f32)>, String> {
    let found = write.parameters.len();
    if found == 0 || found > SET_MAX {
        return Err(format!("parameters: found {found}, expected 1 to {SET_MAX}"));
    }
    let mut names = BTreeSet::new();
    let mut set = Vec::with_capacity(found);
    for (i, ParameterValue { name, value }) in write.parameters.iter().enumerate() {
        let shown: String = name.chars().take(32).collect();
        let Some(known) = ParameterName::new(name) else {
            return Err(format!(
                "parameters[{i}].name: found {shown:?}, expected 1 to 16 visible ASCII characters"
            ));
        };
        if !value.is_finite() {
            return Err(format!("parameters[{i}].value: found {value}, expected a finite number"));
        }
        if matches!(name.as_str(), "SYSID_THISMAV" | "MAV_SYSID") {
            return Err(format!(
                "parameters[{i}].name: found {name}, expected another: with another system id its daemon no longer knows this \
                 flight controller"
            ));
        }
        if !names.insert(known) {
            return Err(format!("parameters[{i}].name: found {name} twice, expected each once"));
        }
        set.push((known, *value));
    }
    Ok(set)
}

/// What is known and under way.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    list: BTreeMap<ParameterName, f32>,
    revision: u64,
    received: u16,
    count: Option<u16>,
    complete_at: Option<Instant>,
    problems: Vec<String>,
    work: ParameterWork,
    queue: VecDeque<(ParameterName, f32)>,
    outcomes: Vec<ParameterOutcome>,
}

impl Parameters {
    /// Nothing is known. A console kept the list of the daemon before: no revision of that one comes again, where it is
    /// counted from the time.
    pub(crate) fn new(unix_us: u64) -> Self {
        Self { revision: unix_us, ..Self::default() }
    }

    pub(crate) fn progress(&self, now: Instant) -> ParameterProgress {
        ParameterProgress {
            work: self.work,
            revision: self.revision,
            received: self.received,
            count: self.count,
            age_ms: self.complete_at.map(|at| now.since(at).as_millis() as u64),
            problems: self.problems.clone(),
            outcomes: self.outcomes.clone(),
        }
    }

    pub(crate) fn table(&self, now: Instant) -> ParameterTable {
        let of =
            |(name, value): (&ParameterName, &f32)| ParameterValue { name: name.to_string(), value: *value };
        ParameterTable { progress: self.progress(now), parameters: self.list.iter().map(of).collect() }
    }

    fn check_idle(&self) -> Result<(), ApiError> {
        match self.work {
            ParameterWork::None => Ok(()),
            ParameterWork::Reading => Err(conflict("found them being read, expected nothing under way")),
            ParameterWork::Writing => Err(conflict("found others being set, expected nothing under way")),
        }
    }

    /// Reads all, where the agent takes it.
    pub(crate) fn read(
        &mut self,
        begin: impl FnOnce(ParameterOrder) -> Option<Reply>,
    ) -> Result<(), ApiError> {
        if self.work == ParameterWork::Reading {
            return Ok(());
        }
        self.check_idle()?;
        accepted(begin(ParameterOrder::ReadAll)).map_err(|why| conflict(&why))?;
        self.work = ParameterWork::Reading;
        self.list.clear();
        self.problems.clear();
        (self.received, self.count, self.complete_at) = (0, None, None);
        self.revision += 1;
        Ok(())
    }

    /// Sets these, one after another; the first is refused here where the agent refuses it.
    pub(crate) fn write(
        &mut self,
        set: Vec<(ParameterName, f32)>,
        mut begin: impl FnMut(ParameterOrder) -> Option<Reply>,
    ) -> Result<(), ApiError> {
        self.check_idle()?;
        let Some(&(name, value)) = set.first() else { return Ok(()) };
        accepted(begin(ParameterOrder::Set { name, value })).map_err(|why| conflict(&why))?;
        self.work = ParameterWork::Writing;
        let pending = |&(name, value): &(ParameterName, f32)| ParameterOutcome {
            name: name.to_string(),
            value,
            effect: ParameterEffect::Pending,
            before: None,
            reason: String::new(),
        };
        self.outcomes = set.iter().map(pending).collect();
        self.queue = set.into();
        Ok(())
    }

    /// Takes what came of it. Whether that has ended, and the next may begin.
    pub(crate) fn take(&mut self, now: Instant, reports: &[ParameterReport]) -> bool {
        let mut has_ended = false;
        for report in reports {
            match *report {
                ParameterReport::Listed(one) => {
                    // A list of another length begins anew.
                    if self.count.is_some_and(|count| count != one.count) {
                        self.list.clear();
                        self.received = 0;
                    }
                    self.count = Some(one.count);
                    self.received = self.received.saturating_add(1);
                    self.list.insert(one.name, one.value.as_f64() as f32);
                }
                ParameterReport::Unreadable(why) => {
                    self.received = self.received.saturating_add(1);
                    if self.problems.len() < PROBLEMS_MAX {
                        self.problems.push(why.to_string());
                    }
                }
                ParameterReport::Set(name, change) => {
                    let (before, value) = (change.before.as_f64() as f32, change.now.as_f64() as f32);
                    let is_same = change.before == change.now;
                    let effect = if is_same { ParameterEffect::Unchanged } else { ParameterEffect::Set };
                    self.note(effect, Some(before), "");
                    if self.list.insert(name, value) != Some(value) {
                        self.revision += 1;
                    }
                }
                ParameterReport::Ended(result) => {
                    has_ended = true;
                    match self.work {
                        ParameterWork::Reading => {
                            self.work = ParameterWork::None;
                            self.revision += 1;
                            match result {
                                Ok(()) => self.complete_at = Some(now),
                                Err(why) => self.problems.push(format!("the list is not complete: {why}")),
                            }
                        }
                        ParameterWork::Writing => {
                            if let Err(why) = result {
                                self.note(ParameterEffect::Refused, None, &why.to_string());
                            }
                            self.queue.pop_front();
                        }
                        ParameterWork::None => {}
                    }
                }
            }
        }
        has_ended
    }

    /// Continues with the next to set; what the agent refuses then is refused for all that are left.
    pub(crate) fn go_on(&mut self, begin: impl FnOnce(ParameterOrder) -> Option<Reply>) {
        if self.work != ParameterWork::Writing {
            return;
        }
        let Some(&(name, value)) = self.queue.front() else {
            self.work = ParameterWork::None;
            return;
        };
        if let Err(why) = accepted(begin(ParameterOrder::Set { name, value })) {
            while !self.queue.is_empty() {
                self.note(ParameterEffect::Refused, None, &why);
                self.queue.pop_front();
            }
            self.work = ParameterWork::None;
        }
    }

    /// What became of the first of the queue.
    fn note(&mut self, effect: ParameterEffect, before: Option<f32>, reason: &str) {
        let at = self.outcomes.len().saturating_sub(self.queue.len());
        if let Some(outcome) = self.outcomes.get_mut(at) {
            (outcome.effect, outcome.before) = (effect, before);
            outcome.reason = reason.to_owned();
        }
    }
}

fn accepted(reply: Option<Reply>) -> Result<(), String> {
    match reply {
        Some(Reply::Accepted | Reply::AlreadyKnown) => Ok(()),
        Some(Reply::Refused(why @ Rejection::Disengaged(_))) => Err(format!("parameters: {why}")),
        Some(Reply::Refused(why)) => Err(why.to_string()),
        None => Err("parameters: the agent did not answer".into()),
    }
}

fn conflict(message: &str) -> ApiError {
    let message =
        if message.starts_with("parameters") { message.to_owned() } else { format!("parameters: {message}") };
    ApiError { code: "conflict".into(), message }
}

#[cfg(test)]
mod tests {
    use wingbeat_agent::{ListedParameter, ParameterChange, ParameterValue as Value};

    use super::*;

    fn name(name: &str) -> ParameterName {
        ParameterName::new(name).expect("a name")
    }

    fn taken(_: ParameterOrder) -> Option<Reply> {
        Some(Reply::Accepted)
    }

    #[test]
    fn what_cannot_be_set_is_named() {
        let of = |pairs: &[(&str, f32)]| {
            let parameters =
                pairs.iter().map(|&(name, value)| ParameterValue { name: name.into(), value }).collect();
            check(&ParameterWrite { parameters }).map(|set| set.len())
        };
        assert_eq!(of(&[("RTL_ALT", 1.0), ("WPNAV_SPEED", 2.0)]), Ok(2));
        assert_eq!(of(&[]).unwrap_err(), "parameters: found 0, expected 1 to 2048");
        for (pairs, expected) in [
            (&[("RTL ALT", 1.0)][..], "parameters[0].name: found \"RTL ALT\", expected 1 to 16"),
            (&[("A", 1.0), ("B", f32::NAN)], "parameters[1].value: found NaN, expected a finite number"),
            (&[("A", 1.0), ("A", 1.0)], "parameters[1].name: found A twice, expected each once"),
            (&[("SYSID_THISMAV", 2.0)], "parameters[0].name: found SYSID_THISMAV, expected another"),
        ] {
            let message = of(pairs).unwrap_err();
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn a_list_is_complete_when_it_has_ended_well() {
        let mut parameters = Parameters::default();
        let at = Instant::from_secs(3);
        parameters.read(taken).expect("begun");
        let one = |index, text| {
            let value = Value::Real(0.5);
            ParameterReport::Listed(ListedParameter { index, count: 2, name: name(text), value })
        };
        parameters.take(at, &[one(0, "A")]);
        let progress = parameters.progress(at);
        assert_eq!((progress.received, progress.count, progress.age_ms), (1, Some(2), None));
        assert!(parameters.write(vec![(name("A"), 1.0)], taken).is_err(), "while it is read");
        parameters.take(at, &[one(1, "B"), ParameterReport::Ended(Ok(()))]);
        let table = parameters.table(at);
        assert_eq!((table.parameters.len(), table.progress.age_ms), (2, Some(0)));
        assert_eq!(table.progress.work, ParameterWork::None);
    }

    #[test]
    fn each_that_is_set_has_its_outcome_and_arming_ends_the_rest() {
        let mut parameters = Parameters::default();
        let set = vec![(name("A"), 1.0), (name("B"), 2.0), (name("C"), 3.0), (name("D"), 4.0)];
        parameters.write(set, taken).expect("begun");
        let now = Instant::ZERO;
        let change = ParameterChange { before: Value::Real(0.0), now: Value::Real(1.0) };
        let done = ParameterReport::Ended(Ok(()));
        assert!(parameters.take(now, &[ParameterReport::Set(name("A"), change), done]));
        parameters.go_on(taken);
        let same = ParameterChange { before: Value::Real(2.0), now: Value::Real(2.0) };
        assert!(parameters.take(now, &[ParameterReport::Set(name("B"), same), done]));
        parameters.go_on(|_| Some(Reply::Refused(Rejection::MotorsArmed)));
        let progress = parameters.progress(now);
        let effects: Vec<_> = progress.outcomes.iter().map(|o| o.effect).collect();
        use ParameterEffect::{Refused, Set, Unchanged};
        assert_eq!(effects, [Set, Unchanged, Refused, Refused]);
        assert_eq!(progress.outcomes[3].reason, "parameters: found armed motors, expected disarmed ones");
        assert_eq!((progress.outcomes[0].before, progress.work), (Some(0.0), ParameterWork::None));
    }
}
