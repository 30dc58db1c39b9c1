//! The plan as the master would make it now, tried before setup.
//!
//! The master tries it once a second at most while it waits for *Setup*, whenever an aircraft stands elsewhere or the
//! mission is another. What makes the flight impossible is known before any aircraft is ordered to do anything, and is a
//! reason to refuse *Setup*.

use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{Plan, Point, VehicleId};

use super::Config;
use super::budget::Surroundings;
use super::plan::{self, PlanError, Task};
use crate::RouteEnd;

/// Two tries are at least this long apart.
const PERIOD: Duration = Duration::from_secs(1);
/// An aircraft that moved by less stands where it stood, 1e-7 degree: half a metre.
const MOVED_E7: i32 = 45;
/// One that turned by less points where it did, radians.
const TURNED_RAD: f64 = 0.02;

/// A plan that was tried.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    at: Instant,
    /// Hash of what it was made from: the same again gives the same.
    made_from: u64,
    /// The plan with its first waypoint; without slots where the formation itself is impossible.
    plan: Plan<1>,
    refused: Option<PlanError>,
}

impl Trial {
    pub(super) fn plan(&self) -> &Plan<1> {
        &self.plan
    }

    pub(super) fn refused(&self) -> Option<PlanError> {
        self.refused
    }

    /// Whether it is time for another try.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.at + PERIOD
    }

    /// Tries again, if that may give another plan.
    pub(super) fn repeat(
        last: &mut Option<Self>,
        now: Instant,
        config: &Config,
        meeting: &[(VehicleId, Point)],
        task: &Task,
    ) {
        let made_from = circumstances(config, meeting, task);
        if let Some(trial) = last.as_mut().filter(|trial| trial.made_from == made_from) {
            trial.at = now;
            return;
        }
        let (plan, refused) = match plan::draft(config, meeting, task) {
            Ok(draft) => {
                let refused = draft.check(config).err();
                (draft.plan.with_waypoints(1), refused)
            }
            Err(error) => (Plan::default(), Some(error)),
        };
        *last = Some(Self { at: now, made_from, plan, refused });
    }
}

/// Everything that a plan is made from and that changes, as a number (FNV-1a).
fn circumstances(config: &Config, meeting: &[(VehicleId, Point)], task: &Task) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |value: u64| hash = (hash ^ value).wrapping_mul(0x0000_0100_0000_01b3);
    let Surroundings { gnss_error_m, wind_m_s, slope_m } = config.surroundings;
    [gnss_error_m, wind_m_s, slope_m].into_iter().for_each(|number| add(number.to_bits()));
    for (id, at) in meeting {
        add(id.0);
        add((at.latitude_e7 / MOVED_E7) as u64);
        add((at.longitude_e7 / MOVED_E7) as u64);
    }
    for w in &task.waypoints {
        [w.latitude_e7, w.longitude_e7, w.height_mm].into_iter().for_each(|number| add(number as u64));
    }
    match task.end {
        RouteEnd::Land => add(0),
        RouteEnd::LandAt(at) => {
            add(1);
            [at.latitude_e7, at.longitude_e7].into_iter().for_each(|number| add(number as u64));
        }
        RouteEnd::Return { height_mm } => {
            add(2);
            add(height_mm as u64);
        }
    }
    add(task.heading_rad.map_or(u64::MAX, |heading| (heading / TURNED_RAD) as i64 as u64));
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn muscop_28_a_plan_is_tried_again_only_when_it_may_be_another() {
        let config = Config::new(VehicleId(1), VehicleId(1), 2);
        let at = |north_e7: i32| Point { latitude_e7: 394_825_940 + north_e7, ..Point::default() };
        let waypoint = |north_e7| Point { height_mm: 20_000, ..at(north_e7) };
        let mut task = Task::default();
        task.waypoints.extend([waypoint(0), waypoint(9_000)]);
        let mut trial = None;
        let mut try_at = |now_s: u64, other_e7: i32, task: &Task| {
            let meeting = [(VehicleId(1), at(0)), (VehicleId(2), at(other_e7))];
            Trial::repeat(&mut trial, Instant::from_secs(now_s), &config, &meeting, task);
            trial.clone().unwrap()
        };
        let first = try_at(1, 900, &task);
        assert_eq!((first.refused(), first.plan().slots.len()), (None, 2));
        assert!(!first.is_due(Instant::from_millis(1_999)) && first.is_due(Instant::from_secs(2)));
        assert_eq!(try_at(2, 901, &task).made_from, first.made_from, "it stands where it stood");
        let near = try_at(3, 9, &task);
        assert!(matches!(near.refused(), Some(PlanError::NearOnGround { .. })), "{:?}", near.refused());
        assert_eq!(near.plan().slots.len(), 2, "drawn all the same");
        task.heading_rad = Some(f64::NAN);
        assert!(matches!(try_at(4, 900, &task).refused(), Some(PlanError::Heading(_))));
    }
}
