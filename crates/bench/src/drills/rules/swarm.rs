//! Rules of a swarm that flies a mission (MUSCOP).

use wingbeat_geo::{Frame, Position};
use wingbeat_wire::VehicleId;

use super::Rule;
use crate::drills::progress::{Milestone, Passed};
use crate::drills::run::Run;

/// An aircraft that reports to have reached a waypoint is at most so far from it over the ground: 1 m of arrival,
/// three deviations of its position, and the way of one step.
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
        (off_m > REACHED_WITHIN_M + run.sky.struck[passed.vehicle].off_m)
            .then(|| format!("aircraft {aircraft} reports waypoint {waypoint}, {off_m:.1} m away from it"))
    }
}

pub(super) struct Release {
    /// The group of each aircraft after the last step. It left its waypoint at some time since then, so that a
    /// member that was lost at either time may have been lost before.
    groups: Vec<Vec<bool>>,
}

impl Release {
    pub(super) fn among(aircraft: usize) -> Self {
        Self { groups: vec![vec![true; aircraft]; aircraft] }
    }
}

impl Rule for Release {
    fn name(&self) -> &'static str {
        "release"
    }

    fn on_milestone(&mut self, run: &Run, passed: &Passed) -> Option<String> {
        let Milestone::Left { waypoint } = passed.milestone else { return None };
        let i = passed.vehicle;
        let given_up = given_up(run);
        let is_late = |j: usize| run.sky.progress.reached(j) < Some(waypoint);
        let late: Vec<String> = (0..run.sky.count())
            .filter(|&j| self.groups[i][j] && is_member(run, &given_up, i, j) && is_late(j))
            .map(|j| (j + 1).to_string())
            .collect();
        (!late.is_empty()).then(|| {
            let (aircraft, at_s, late) = (i + 1, passed.at.as_secs_f64(), late.join(", "));
            format!("aircraft {aircraft} leaves waypoint {waypoint} at {at_s:.1} s before aircraft {late} reached it")
        })
    }

    fn on_step(&mut self, run: &Run) -> Option<String> {
        let (count, given_up) = (run.sky.count(), given_up(run));
        let group = |i| (0..count).map(|j| is_member(run, &given_up, i, j)).collect();
        self.groups = (0..count).map(group).collect();
        None
    }
}

/// Whether `j` belongs to the group that `i` flies with: neither `i` nor its leader has given `j` up.
fn is_member(run: &Run, given_up: &[Vec<VehicleId>], i: usize, j: usize) -> bool {
    let scenario = &run.sky.script.scenario;
    let (leader, other) = (run.sky.world.agent_of(i).view().swarm.leader_id, scenario.id(j));
    let leader = (0..run.sky.count()).find(|&l| Some(scenario.id(l)) == leader).unwrap_or(i);
    let waits = |i: usize| !given_up[i].contains(&other);
    waits(i) && (leader == j || waits(leader))
}

/// The members that each aircraft does not wait for.
fn given_up(run: &Run) -> Vec<Vec<VehicleId>> {
    let of = |i: usize| {
        let absentees = run.sky.world.agent_of(i).absentees();
        absentees.iter().filter(|a| !a.is_waited_for).map(|a| a.id).collect()
    };
    (0..run.sky.count()).map(of).collect()
}
