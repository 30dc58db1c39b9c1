//! The legs of the flight: whether the next one is clear, and whether this aircraft flies into one that stops ahead.

use wingbeat_geo::{DVec3, Duration, Instant};
use wingbeat_wire::{Ending, Point};

use super::super::ownship::BRAKING_M_S2;
use super::super::path::Path;
use super::super::slot_set::SlotSet;
use super::{Clearance, PathStatus, STRAY_M};

/// Of the distance between landing positions: so far aircraft on their way there keep apart.
const LANDING_SHARE: f64 = 0.8;

/// Of a position reported longer ago not even the distance that the member needs to stop is sure.
const FRESH: Duration = Duration::from_secs(2);

/// Nor that it is still there: BRAKE swings back (3.5 m behind 10 m/s, as ArduCopter 3.5.7 is simulated).
const DRIFT_M: f64 = 4.0;

/// A member that reported that it holds, and was not received since, may still do so.
const REPORTED_HOLDING: Duration = Duration::from_secs(1);

/// A braking that no multicopter goes beyond by much: a member that reports that it holds may stand as soon as that.
const HARD_BRAKING_M_S2: f64 = 5.0;

impl Clearance<'_> {
    fn leg(&self, slot: usize, to: usize) -> Option<Path> {
        let from_m = self.assignment.slot_position_m(slot, to.checked_sub(1)?)?;
        Some(Path { from_m, to_m: self.assignment.slot_position_m(slot, to)? })
    }

    /// Whether the leg from `waypoint` of this aircraft, or of a member that is waited for, leads past a member that is
    /// absent. Of the last waypoint never: there each checks its own path ([`Clearance::landing_path`]).
    pub(crate) fn is_any_leg_blocked(&self, waypoint: u16, awaited: SlotSet) -> bool {
        let (obstacles, next) = (self.obstacles(), usize::from(waypoint) + 1);
        !obstacles.is_empty()
            && next <= self.assignment.last_waypoint()
            && (awaited | SlotSet::of(self.assignment.slot())).iter().any(|slot| {
                self.leg(slot, next)
                    .is_none_or(|leg| obstacles.iter().any(|slot| !self.is_clear(slot, &[leg])))
            })
    }

    /// Whether our leg from `waypoint` is clear: members whose position at this waypoint lies on it leave first, and
    /// none may wait on it already.
    pub(crate) fn next_leg(&self, waypoint: u16) -> PathStatus {
        let (next, route) = (usize::from(waypoint) + 1, self.assignment.route());
        let (Some(&from), Some(&to)) = (route.get(next - 1), route.get(next)) else {
            return PathStatus::Clear;
        };
        let own = self.path(from, to);
        let reach_m = self.clear_m();
        let near = |at_m: DVec3| Path { from_m: at_m, to_m: at_m }.distance_m(&own) < reach_m;
        let absent = self.members.absent();
        let mut status = PathStatus::Clear;
        for slot in self.members.peers() {
            let track = self.traffic.track(slot);
            status = status.max(if absent.contains(slot) {
                if self.is_clear(slot, &[own]) { PathStatus::Clear } else { PathStatus::Occupied }
            } else if track.reached > Some(waypoint) {
                let waits_on_it = self.assignment.slot_position_m(slot, next).is_none_or(near);
                if waits_on_it { PathStatus::Blocked } else { PathStatus::Clear }
            } else if track.departed_for <= Some(waypoint)
                && self.assignment.slot_position_m(slot, next - 1).is_none_or(near)
            {
                PathStatus::Occupied
            } else {
                PathStatus::Clear
            });
        }
        status
    }

    /// Whether the leg of a member from `waypoint` leads past our position there: it waits until we report that we
    /// left.
    pub(crate) fn is_in_the_way(&self, waypoint: u16, awaited: SlotSet) -> bool {
        let next = usize::from(waypoint) + 1;
        let Some(&here) = self.assignment.route().get(next - 1) else { return false };
        let here = self.path(here, here);
        awaited
            .iter()
            .any(|slot| self.leg(slot, next).is_none_or(|leg| leg.distance_m(&here) < self.clear_m()))
    }

    /// Whether a member was last known so near ahead, on our way to `target`, that this aircraft stops now to come to
    /// stand clear of it. One that flies on ahead reports that, and its position moves with it.
    pub(crate) fn closes_up(&self, now: Instant, target: Point, is_holding: bool, to_land: bool) -> bool {
        let geometry = self.assignment.geometry();
        let Some(here) = self.ownship.point_at(now, geometry) else { return false };
        let path_m = geometry.offset_m(here, target);
        let Some(along) = path_m.try_normalize() else { return false };
        let stop_m = self.ownship.stopping_distance_m(is_holding);
        let far_m = self.config.separation_m + STRAY_M;
        let (clear_m, drift_m) = if to_land {
            // Those that land next to us are as near as the plan has them.
            let landing_m = f64::from(self.assignment.plan().landing_distance_mm) / 1e3;
            (far_m.min(landing_m * LANDING_SHARE), 0.0)
        } else {
            (far_m, DRIFT_M)
        };
        self.members.peers().iter().any(|slot| {
            let track = self.traffic.track(slot);
            let (position, velocity_m_s) = match track.departure {
                Some((_, Ending::Down)) => (None, DVec3::ZERO),
                Some((at, Ending::Holding | Ending::Landing | Ending::Returning)) => (Some(at), DVec3::ZERO),
                None => (track.position, track.velocity_m_s),
            };
            // Had it begun to stop right after its last message, it would stand there.
            let is_fresh = now.since(track.sampled_at) < FRESH;
            let its_speed_m_s = if is_fresh { velocity_m_s.dot(along).max(0.0) } else { 0.0 };
            let holds = track.holding_at.is_some_and(|at| now.since(at) < REPORTED_HOLDING);
            let its_braking_m_s2 = if holds { HARD_BRAKING_M_S2 } else { BRAKING_M_S2 };
            let its_stop_m = its_speed_m_s * its_speed_m_s / (2.0 * its_braking_m_s2);
            let clear_m = if is_fresh { clear_m } else { clear_m + drift_m };
            position.is_some_and(|position| {
                let offset_m = geometry.offset_m(here, position);
                let ahead_m = offset_m.dot(along);
                // In any case this aircraft stands at the target at last.
                let reach_m = (stop_m - its_stop_m).clamp(0.0, path_m.length());
                ahead_m > 0.0 && (offset_m - along * ahead_m.min(reach_m)).length() < clear_m
            })
        })
    }
}
