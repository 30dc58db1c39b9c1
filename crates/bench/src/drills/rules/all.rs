//! Rules of every drill.

use super::Rule;
use crate::drills::Kind;
use crate::drills::operator::calm_bound;
use crate::drills::run::{End, LAND_BOUND, Run, completed, time_limit};
use wingbeat_agent::{Phase, Severity};
use wingbeat_geo::Instant;
use wingbeat_sim::world::Logged;

pub(super) struct Separation;

impl Rule for Separation {
    fn name(&self) -> &'static str {
        "separation"
    }

    fn on_step(&mut self, run: &Run) -> Option<String> {
        let c = run.sky.world.observer().swarm().collisions.first()?;
        let (a, b, at_s) = (c.pair.0 + 1, c.pair.1 + 1, c.at.as_secs_f64());
        let both = run.sky.describe(|i| i == c.pair.0 || i == c.pair.1);
        Some(format!("aircraft {a} and {b} at {at_s:.1} s, {:.2} m: {both}", c.distance_m))
    }
}

pub(super) struct Landed;

impl Rule for Landed {
    fn name(&self) -> &'static str {
        "landed"
    }

    fn on_end(&mut self, run: &Run, end: End) -> Option<String> {
        let up = || run.sky.describe(|i| run.sky.world.truth(i).armed);
        (end == End::NotLanded).then(|| format!("not landed {} s after Land: {}", LAND_BOUND.as_secs(), up()))
    }
}

pub(super) struct Time;

impl Rule for Time {
    fn name(&self) -> &'static str {
        "time"
    }

    fn on_end(&mut self, run: &Run, end: End) -> Option<String> {
        let limit = time_limit(run.sky.size());
        (end == End::TimeLimit).then(|| format!("not over after {} s", limit.as_secs()))
    }
}

pub(super) struct Unaided;

impl Rule for Unaided {
    fn name(&self) -> &'static str {
        "unaided"
    }

    fn on_step(&mut self, run: &Run) -> Option<String> {
        run.operator.gave_up_at()?;
        let up = run.sky.describe(|i| run.sky.world.truth(i).armed && run.sky.lives(i));
        let all = if up.is_empty() { run.sky.describe(|_| true) } else { up };
        Some(format!(
            "not landed {} s after the last that went wrong: {all}",
            calm_bound(run.sky.size()).as_secs()
        ))
    }
}

pub(super) struct Completed {
    pub(super) kind: Kind,
}

impl Rule for Completed {
    fn name(&self) -> &'static str {
        "completed"
    }

    fn on_end(&mut self, run: &Run, _end: End) -> Option<String> {
        let is_short = |line: &Logged| {
            let is_of_battery = ["battery", "charge"].iter().any(|word| line.entry.text.contains(word));
            let has_flown = run.sky.armed_at[line.vehicle].is_some_and(|at| line.at >= at);
            is_of_battery && has_flown && line.entry.severity >= Severity::Warning
        };
        // A flight that a battery ended early is over as it should be.
        let has_ended_early = || run.sky.world.log().iter().any(is_short);
        let is_promised = (self.kind.costs_no_flight() || run.sky.story.is_empty())
            && self.kind != Kind::LongWay
            && !has_ended_early();
        // A swarm that the operator had to land has broken another rule.
        if !is_promised || run.operator.gave_up_at().is_some() || completed(&run.sky) == run.sky.count() {
            return None;
        }
        let others = run.sky.describe(|i| run.sky.world.phase(i) != Phase::Finished);
        Some(format!("flight not completed: {others}"))
    }
}

/// *Setup* is accepted in the end, unless something failed on the ground or strikes the aircraft, or its mission is longer than
/// its battery.
pub(super) struct SetUp {
    pub(super) kind: Kind,
}

impl Rule for SetUp {
    fn name(&self) -> &'static str {
        "set up"
    }

    fn on_end(&mut self, run: &Run, _end: End) -> Option<String> {
        if self.kind == Kind::LongWay || run.sky.failed_on_ground {
            return None;
        }
        let is_struck = |i: usize| {
            let struck = run.sky.struck[i];
            struck.restarts || struck.pilot.is_some() || struck.until > Instant::ZERO || !run.sky.lives(i)
        };
        let refused = run.operator.refused_setups().into_iter().find(|press| !is_struck(press.vehicle))?;
        Some(format!("aircraft {}: Setup is refused: {}", refused.vehicle + 1, refused.why()))
    }
}
