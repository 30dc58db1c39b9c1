//! The rules of a drill, each a named check in one place.
//!
//! | rule | of | what it checks |
//! |---|---|---|
//! | `separation` | all | no two aircraft come nearer to each other than 5 m |
//! | `crash` | all | no aircraft meets the ground faster than its autopilot's landing does, no motors stop above the ground |
//! | `battery` | all | no aircraft flies with an empty battery that no fault has emptied |
//! | `downwash` | all | no aircraft stays below another: 5 m in the plane, 15 m in height, 5 s |
//! | `known` | all | the page gives the cause of an effect within 2 s: a line of the log, the line of the status, a check, or a button |
//! | `returns` | all | an aircraft that obeys *Return* lands at home, or says that its battery or a failsafe demands otherwise |
//! | `landed` | all | an aircraft that can land is on the ground within [`LAND_BOUND`] of the operator's *Land* |
//! | `time` | all | a drill is over within [`time_limit`] |
//! | `pilot` | all | no order of ours changes a mode, or arms, after a pilot took the aircraft |
//! | `obeyed` | all | *Hold*, *Return* and *Land* are not refused in flight, and their mode is seen within a bound |
//! | `arrival` | MUSCOP | an aircraft that reports to be at a waypoint is there |
//! | `release` | MUSCOP | an aircraft leaves a waypoint when every member of its group has reached it |
//! | `leader` | FollowMe | no follower takes another leader than its own, whatever that claims |
//! | `astray` | FollowMe | no follower flies after the other swarm |
//! | `leader lost` | FollowMe | a follower that lost its leader does what is configured, in time |
//! | `home` | own missions, liveness | an aircraft that avoids others on its way home lands there, unless it is asked to land elsewhere |
//! | `unaided` | all, liveness | the swarm lands within [`calm_bound`] without the operator |
//! | `completed` | all, liveness | where nothing was lost for good the flight is completed |
//! | `set up` | all, liveness | *Setup* is accepted in the end, unless something failed on the ground |
//!
//! A rule of safety holds whatever goes wrong; a rule of liveness once nothing goes wrong any more.
//!
//! [`LAND_BOUND`]: super::run::LAND_BOUND
//! [`time_limit`]: super::run::time_limit
//! [`calm_bound`]: super::operator::calm_bound

mod all;
mod command;
mod follow;
mod impact;
mod known;
mod own;
mod swarm;
#[cfg(test)]
mod tests;

use super::Kind;
use super::progress::Passed;
use super::run::{End, Run};
use super::script::Script;
use crate::scenario::Task;

/// A check that explains what it found. Only the first violation of a rule is kept.
trait Rule {
    fn name(&self) -> &'static str;

    /// After an aircraft passed a milestone; in the order of time.
    fn on_milestone(&mut self, _run: &Run, _passed: &Passed) -> Option<String> {
        None
    }

    /// After every step.
    fn on_step(&mut self, _run: &Run) -> Option<String> {
        None
    }

    /// After the last step.
    fn on_end(&mut self, _run: &Run, _end: End) -> Option<String> {
        None
    }
}

struct Judged {
    rule: Box<dyn Rule>,
    violation: Option<String>,
}

/// The rules of one drill, and what they found.
pub(super) struct Rules {
    safety: Vec<Judged>,
    liveness: Vec<Judged>,
}

impl Rules {
    /// The rules for a drill's task.
    pub(super) fn of(kind: Kind, script: &Script) -> Self {
        let mut safety: Vec<Box<dyn Rule>> =
            vec![Box::new(all::Separation), Box::new(all::Landed), Box::new(all::Time)];
        safety.push(Box::new(command::Pilot::of(2 * script.scenario.aircraft())));
        let most = 2 * script.scenario.aircraft();
        safety.push(Box::new(command::Obeyed::default()));
        safety.push(Box::new(command::Returns::of(most)));
        safety.push(Box::new(impact::Crash::of(most)));
        safety.push(Box::new(impact::Empty));
        safety.push(Box::new(impact::Downwash::of(most)));
        safety.push(Box::new(known::Known::of(most)));
        match &script.scenario.task {
            Task::Swarm(task) => {
                safety.push(Box::new(swarm::Arrival));
                safety.push(Box::new(swarm::Release::among(task.aircraft)));
            }
            Task::Follow(task) => {
                safety.push(Box::new(follow::OwnLeader));
                safety.push(Box::new(follow::NotAstray::of(task)));
                safety.push(Box::new(follow::LeaderLost::of(task)));
            }
            // Aircraft of different owners owe each other their separation alone.
            Task::Own(_) => {}
        }
        let home = Box::new(own::Home::of(2 * script.scenario.aircraft()));
        let liveness: Vec<Box<dyn Rule>> = vec![
            home,
            Box::new(all::Unaided),
            Box::new(all::Completed { kind }),
            Box::new(all::SetUp { kind }),
        ];
        let judged = |rules: Vec<Box<dyn Rule>>| {
            rules.into_iter().map(|rule| Judged { rule, violation: None }).collect()
        };
        Self { safety: judged(safety), liveness: judged(liveness) }
    }

    pub(super) fn on_milestone(&mut self, run: &Run, passed: &Passed) {
        self.judge(|rule| rule.on_milestone(run, passed));
    }

    pub(super) fn on_step(&mut self, run: &Run) {
        self.judge(|rule| rule.on_step(run));
    }

    pub(super) fn on_end(&mut self, run: &Run, end: End) {
        self.judge(|rule| rule.on_end(run, end));
    }

    fn judge(&mut self, check: impl Fn(&mut dyn Rule) -> Option<String>) {
        for Judged { rule, violation } in self.safety.iter_mut().chain(&mut self.liveness) {
            if violation.is_none() {
                *violation = check(&mut **rule).map(|found| format!("{}: {found}", rule.name()));
            }
        }
    }

    /// The violations of safety, and those of liveness.
    pub(super) fn verdict(self) -> (Vec<String>, Vec<String>) {
        let found = |rules: Vec<Judged>| rules.into_iter().filter_map(|judged| judged.violation).collect();
        (found(self.safety), found(self.liveness))
    }
}
