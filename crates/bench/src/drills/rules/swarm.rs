//! Rules of a swarm that flies a mission (MUSCOP).

use wingbeat_geo::{Frame, Position};
use wingbeat_wire::VehicleId;

use super::Rule;
use crate::drills::progress::{Milestone, Passed};
use crate::drills::run::Run;

/// An aircraft that reports to have reached a waypoint is at most so far from it over the ground: 1 m of arrival, three
/// deviations of its position, and the way of one step. Where positions are worse, or it blows, what the separation budget
/// has for it (`docs/separation.md`).
const REACHED_WITHIN_M: f64 = 3.0;

pub(super) struct Arrival;

impl Rule for Arrival {
    fn name(&self) -> &'static str {
        "arrival"
    }

    fn on_milestone(&mut self, run: &Run, passed: &Passed) -> Option<String> {
        let Milestone::Reached { waypoint, position } = passed.milestone else { return None };
        let aircraft = passed.vehicle + 1;
        let Some(&at) = run.sky.world.agent_of(passed.vehicle).route().get(usize::from(waypoint)) else {
            return Some(format!("aircraft {aircraft} is at waypoint {waypoint}, which it does not have"));
        };
        let (latitude_e7, longitude_e7) = (at.latitude_e7, at.longitude_e7);
        let there = Position { latitude_e7, longitude_e7, altitude_mm: 0 };
        let off_m = Frame::new(there).to_local(position).truncate().length();
        let within_m = REACHED_WITHIN_M.max(run.sky.script.scenario.budget().off_m());
        (off_m > within_m + run.sky.struck[passed.vehicle].off_m)
            .then(|| format!("aircraft {aircraft} reports waypoint {waypoint}, {off_m:.1} m away from it"))
    }
}

/// An aircraft waits for each member that it receives, unless its leader has long given that up.
pub(super) struct Release {
    /// For which members the leader of each aircraft waited after the last step. The aircraft left its waypoint at some
    /// time since then, so that a member that was lost at either time may have been lost before.
    awaited: Vec<Vec<bool>>,
}

impl Release {
    pub(super) fn among(aircraft: usize) -> Self {
        Self { awaited: vec![vec![true; aircraft]; aircraft] }
    }
}

impl Rule for Release {
    fn name(&self) -> &'static str {
        "release"
    }

    fn on_milestone(&mut self, run: &Run, passed: &Passed) -> Option<String> {
        let Milestone::Left { waypoint, given_up } = &passed.milestone else { return None };
        let (i, waypoint) = (passed.vehicle, *waypoint);
        let of_leader = awaited_by_leader(run);
        let is_awaited = |j: usize| {
            let id = run.sky.script.scenario.id(j);
            self.awaited[i][j] && of_leader[i][j] && !given_up.contains(&id)
        };
        let is_late = |j: usize| run.sky.progress.reached(j) < Some(waypoint);
        let late: Vec<String> = (0..run.sky.count())
            .filter(|&j| is_awaited(j) && is_late(j))
            .map(|j| (j + 1).to_string())
            .collect();
        (!late.is_empty()).then(|| {
            let (aircraft, at_s, late) = (i + 1, passed.at.as_secs_f64(), late.join(", "));
            format!("aircraft {aircraft} leaves waypoint {waypoint} at {at_s:.1} s before aircraft {late} reached it")
        })
    }

    fn on_step(&mut self, run: &Run) -> Option<String> {
        self.awaited = awaited_by_leader(run);
        None
    }
}

/// For each aircraft, which others its leader waits for now, the leader itself among them.
fn awaited_by_leader(run: &Run) -> Vec<Vec<bool>> {
    let (scenario, count) = (&run.sky.script.scenario, run.sky.count());
    let given_up: Vec<Vec<VehicleId>> = (0..count)
        .map(|i| {
            let absentees = run.sky.world.agent_of(i).absentees();
            absentees.iter().filter(|a| !a.is_waited_for).map(|a| a.id).collect()
        })
        .collect();
    let of = |i: usize| {
        let id = run.sky.world.agent_of(i).view().swarm.leader_id;
        let leader = (0..count).find(|&l| Some(scenario.id(l)) == id).unwrap_or(i);
        (0..count).map(|j| leader == j || !given_up[leader].contains(&scenario.id(j))).collect()
    };
    (0..count).map(of).collect()
}
