//! The formation, for people: before setup as the master would plan it now, afterwards as it is planned.
//!
//! The master tries the plan once a second at most while it waits for *Setup*, whenever somebody stands elsewhere
//! or the mission is another. What makes the flight impossible is so known, and a reason to refuse, before
//! anybody is told to do anything.

use heapless::Vec;
use wingbeat_geo::{Duration, Frame, Instant};
use wingbeat_wire::{Plan, Point, SWARM_MAX, VehicleId};

use super::plan::{self, PlanError};
use super::{State, Swarm};
use crate::{FormationView, SlotView};

/// No two tries follow one another faster.
const PERIOD: Duration = Duration::from_secs(1);
/// Who moved by less stands where it stood, 1e-7 degree: half a metre.
const MOVED_E7: i32 = 45;
/// Who turned by less points where it did.
const TURNED_RAD: f64 = 0.02;

/// A plan that was tried.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    at: Instant,
    /// What it was made of, as a hash: the same again gives the same.
    of: u64,
    /// The plan; without slots where the formation itself is impossible.
    plan: Plan,
    refused: Option<PlanError>,
}

impl<F: Copy + PartialEq> Swarm<F> {
    /// Tries the plan, where it is time to.
    pub(super) fn try_plan(&mut self, now: Instant) {
        let complete = self.heard.len() + 1 >= self.config.aircraft && self.task.is_given();
        if self.state != State::Start || !self.is_master() || !complete {
            self.trial = None;
            return;
        }
        let Some(here) = self.at.map(|at| at.point()) else { return };
        if self.trial.as_ref().is_some_and(|trial| now < trial.at + PERIOD) {
            return;
        }
        let of = self.circumstances(here);
        if let Some(trial) = self.trial.as_mut().filter(|trial| trial.of == of) {
            trial.at = now;
            return;
        }
        let (plan, refused) = match plan::draft(&self.config, &self.meeting(here), &self.task) {
            Ok(draft) => {
                let refused = draft.check(&self.config).err();
                (draft.plan, refused)
            }
            Err(error) => (Plan::default(), Some(error)),
        };
        self.trial = Some(Trial { at: now, of, plan, refused });
    }

    /// Why *Setup* would come to nothing, as far as it was tried.
    pub(super) fn cannot_plan(&self) -> Option<PlanError> {
        self.trial.as_ref().and_then(|trial| trial.refused)
    }

    /// Who meets, and where each stands, by id.
    pub(super) fn meeting(&self, here: Point) -> Vec<(VehicleId, Point), SWARM_MAX> {
        let mut aircraft = Vec::new();
        let _ = aircraft.push((self.config.me, here));
        let _ = aircraft.extend_from_slice(&self.heard);
        aircraft.sort_unstable_by_key(|(id, _)| *id);
        aircraft
    }

    /// Everything that a plan is made of and that changes, as a number (FNV-1a).
    fn circumstances(&self, here: Point) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut eat = |value: u64| hash = (hash ^ value).wrapping_mul(0x0000_0100_0000_01b3);
        for (id, at) in self.meeting(here) {
            eat(id.0);
            eat((at.latitude_e7 / MOVED_E7) as u64);
            eat((at.longitude_e7 / MOVED_E7) as u64);
        }
        for w in &self.task.waypoints {
            [w.latitude_e7, w.longitude_e7, w.height_mm].into_iter().for_each(|number| eat(number as u64));
        }
        eat(self.task.heading_rad.map_or(u64::MAX, |heading| (heading / TURNED_RAD) as i64 as u64));
        hash
    }

    /// The formation as the master sees it: nothing on the others, who need not know all places, and nothing
    /// when the flight is over. Once agreed on, `around` says which waypoint the places lie around, or the
    /// place itself and where the formation points there.
    pub fn formation_view(&self, around: Around) -> Option<FormationView> {
        if !self.is_master() {
            return None;
        }
        let over =
            matches!(self.state, State::MovingToLand | State::Landing | State::Finished | State::Aborted(_));
        if over {
            return None;
        }
        let mut view = FormationView {
            distance_m: self.config.distance_m,
            heading_rad: None,
            is_planned: self.planned(),
            refused: None,
            slots: Vec::new(),
        };
        let plan = match (&self.trial, view.is_planned) {
            (_, true) => &self.plan,
            (Some(trial), false) => {
                view.refused = trial.refused;
                &trial.plan
            }
            (None, false) => return Some(view),
        };
        let waypoint = match around {
            Around::Waypoint(waypoint) if view.is_planned => usize::from(waypoint),
            _ => 0,
        };
        let (Ok(formation), Some(center)) = (plan::formation(plan), plan.waypoints.get(waypoint)) else {
            return Some(view);
        };
        let (center, heading_rad) = match around {
            Around::Place(place, heading_rad) if view.is_planned => (place, heading_rad),
            _ => (*center, plan::heading_rad(plan)),
        };
        view.heading_rad = Some(heading_rad);
        let frame = Frame::new(plan::position(center));
        let place = |(slot, id): (usize, &VehicleId)| {
            let offset = formation.offset_m(slot, heading_rad);
            let up_mm = libm::round(formation.height_m(slot) * 1e3) as i32;
            let position = frame.to_position(offset.extend(0.0));
            SlotView { id: *id, place: plan::point(position, center.height_mm.saturating_add(up_mm)) }
        };
        view.slots = plan.slots.iter().enumerate().map(place).collect();
        Some(view)
    }
}

/// Where the formation is.
#[derive(Clone, Copy, Debug)]
pub enum Around {
    /// Its centre at this waypoint of the plan.
    Waypoint(u16),
    /// Its centre there, pointing so (radians clockwise from north).
    Place(Point, f64),
}
