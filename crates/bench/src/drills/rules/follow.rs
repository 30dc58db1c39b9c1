//! Rules of a formation that follows a piloted leader (FollowMe).

use wingbeat_agent::StateId;
use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::VehicleId;

use super::Rule;
use crate::drills::progress::{Milestone, Passed, Stage};
use crate::drills::run::Run;
use crate::drills::sky::{FIRST, OTHERS};
use crate::scenario::FollowTask;

/// From the loss of the leader to the follower's own decision, besides the timeout: a refresh, and a step.
const DECIDES_WITHIN: Duration = Duration::from_millis(2_500);
/// A follower of the other swarm's leader is soon farther than this from its own, and from its slot.
const ASTRAY_M: f64 = 1_000.0;
/// How far a follower may be from its slot: behind a leader at full speed that it lost, while that one's pilot reacts.
const BEHIND_M: f64 = 500.0;

pub(super) struct OwnLeader;

impl Rule for OwnLeader {
    fn name(&self) -> &'static str {
        "leader"
    }

    fn on_step(&mut self, run: &Run) -> Option<String> {
        (0..run.sky.count()).find_map(|i| {
            let own = if i < run.sky.size() { run.sky.script.scenario.id(FIRST) } else { VehicleId(OTHERS) };
            let leader = run.sky.world.agent_of(i).view().swarm.leader_id.filter(|leader| *leader != own)?;
            Some(format!("aircraft {} takes {leader} for its leader", i + 1))
        })
    }
}

pub(super) struct NotAstray {
    bound_m: f64,
}

impl NotAstray {
    pub(super) fn of(task: &FollowTask) -> Self {
        Self { bound_m: ASTRAY_M.max(task.reach_m() + BEHIND_M) }
    }
}

impl Rule for NotAstray {
    fn name(&self) -> &'static str {
        "astray"
    }

    fn on_step(&mut self, run: &Run) -> Option<String> {
        (0..run.sky.count()).find_map(|i| {
            let leader = i - i % run.sky.size() + FIRST;
            let far_m = run.sky.apart_m(i, leader);
            (far_m > self.bound_m).then(|| format!("aircraft {} is {far_m:.0} m from its leader", i + 1))
        })
    }
}

pub(super) struct LeaderLost {
    timeout: Duration,
    /// A follower that never received its leader waits as long as for an operator.
    waits: Duration,
    /// Since when the leader broadcasts its position.
    broadcasts_since: Option<Instant>,
}

impl LeaderLost {
    pub(super) fn of(task: &FollowTask) -> Self {
        let config = task.config(VehicleId(1), VehicleId(1));
        Self {
            timeout: config.leader_timeout,
            waits: config.swarm.hold_before_landing,
            broadcasts_since: None,
        }
    }

    /// When a follower that is in its state since then has decided at the latest.
    fn decided_by(&self, lost_at: Instant, since: Instant) -> Instant {
        let was_received = self.broadcasts_since.is_some_and(|at| lost_at > at + DECIDES_WITHIN);
        let begins = if was_received { lost_at + self.timeout } else { lost_at.max(since) + self.waits };
        begins + DECIDES_WITHIN
    }
}

impl Rule for LeaderLost {
    fn name(&self) -> &'static str {
        "leader lost"
    }

    fn on_milestone(&mut self, _run: &Run, passed: &Passed) -> Option<String> {
        if passed.vehicle == FIRST && passed.milestone == Milestone::Entered(Stage::Waiting) {
            self.broadcasts_since = Some(passed.at);
        }
        None
    }

    fn on_step(&mut self, run: &Run) -> Option<String> {
        let (sky, now) = (&run.sky, run.sky.world.now());
        (0..run.sky.size()).find_map(|i| {
            let lost_at = run.faults.lost_at(FIRST, i)?;
            let state = sky.world.agent_of(i).view().state;
            let follows = matches!(state, StateId::WaitMaster | StateId::Following);
            let is_late = now > self.decided_by(lost_at, sky.progress.since(i));
            (follows && sky.lives(i) && is_late)
                .then(|| format!("undecided at {:.1} s: {}", now.as_secs_f64(), sky.describe(|j| i == j)))
        })
    }
}
