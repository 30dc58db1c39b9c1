//! The legs of the flight: whether the next one is clear, and whether this aircraft flies into one that stops ahead.

use wingbeat_geo::{DVec3, Duration, Instant};
use wingbeat_wire::{Ending, Point};

use super::super::budget::HARD_BRAKING_M_S2;
use super::super::ownship::BRAKING_M_S2;
use super::super::path::Path;
use super::super::slot_set::SlotSet;
use super::drift::{WASH_ASIDE_M, WASH_M, has_landed};
use super::traffic::Track;
use super::{Clearance, PathStatus};

/// Of the distance between landing positions: so far aircraft on their way there keep apart.
const LANDING_SHARE: f64 = 0.8;

/// Of a position reported longer ago not even the distance that the member needs to stop is sure.
const FRESH: Duration = Duration::from_secs(2);

/// Nor that it is still there: BRAKE swings back (3.5 m behind 10 m/s, as ArduCopter 3.5.7 is simulated).
const DRIFT_M: f64 = 4.0;

/// A member that was not received for so long may be stopped by its guardian: that notices a dead companion after as long.
const SILENT: Duration = Duration::from_secs(1);

/// A member that reported that it holds, and was not received since, may still do so.
pub(super) const REPORTED_HOLDING: Duration = Duration::from_secs(1);

/// One that follows a pilot and reported that it holds stands there for so long, whatever is lost.
const STANDS_FOR: Duration = Duration::from_secs(5);

/// A follower that catches up with its slot judges the others for so long ahead, in seconds: its way is judged again each refresh.
const CROSSES_WITHIN_S: f64 = 5.0;

/// The speed of a member is known to this, metres per second.
const KNOWN_TO_M_S: f64 = 2.0;

/// No member flies faster, metres per second.
const SPEED_MOST_M_S: f64 = 20.0;

/// What this aircraft is on its way to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Approach {
    /// Its slot, after it took off.
    Slot,
    /// The next waypoint.
    Waypoint,
    /// Its landing position.
    Landing,
}

impl Clearance<'_> {
    fn leg(&self, slot: usize, to: usize) -> Option<Path> {
        let from_m = self.assignment.slot_position_m(slot, to.checked_sub(1)?)?;
        Some(Path { from_m, to_m: self.assignment.slot_position_m(slot, to)? })
    }

    /// Whether an absent member keeps clear of a leg, wherever it may be: up to the waypoint after the last that it reported,
    /// or, unless it reported that it leaves, waiting at any later one. It may have continued, alone or with others, but on
    /// no leg past a position where one that it has lost may be.
    fn is_leg_clear(&self, slot: usize, leg: Path) -> bool {
        let from = usize::from(self.traffic.reached(slot).unwrap_or(0)) + 1;
        let clear_m = self.clear_m();
        let may_continue = self.traffic.ending(slot).is_none();
        let mut later = (from..=self.assignment.last_waypoint()).filter(|_| may_continue);
        let is_far = |at_m: DVec3| Path { from_m: at_m, to_m: at_m }.distance_m(&leg) >= clear_m;
        self.is_clear(slot, &[leg])
            && later.all(|waypoint| self.assignment.slot_position_m(slot, waypoint).is_some_and(is_far))
    }

    /// Whether the leg from `waypoint` of this aircraft, or of a member that is waited for, leads past a member that is
    /// absent. Of the last waypoint never: there each checks its own path ([`Clearance::landing_path`]).
    pub(crate) fn is_any_leg_blocked(&self, waypoint: u16, awaited: SlotSet) -> bool {
        let (obstacles, next) = (self.obstacles(), usize::from(waypoint) + 1);
        !obstacles.is_empty()
            && next <= self.assignment.last_waypoint()
            && (awaited | SlotSet::of(self.assignment.slot())).iter().any(|slot| {
                self.leg(slot, next)
                    .is_none_or(|leg| obstacles.iter().any(|slot| !self.is_leg_clear(slot, leg)))
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
                if self.is_leg_clear(slot, own) { PathStatus::Clear } else { PathStatus::Occupied }
            } else if track.reached > Some(waypoint) {
                let waits_on_it = self.assignment.slot_position_m(slot, next).is_none_or(near);
                // One that is a leg ahead may cross ours on its way.
                let is_under_way = track.departed_for > track.reached;
                let way = track.departed_for.filter(|_| is_under_way).map(usize::from);
                let crosses =
                    way.is_some_and(|to| self.leg(slot, to).is_none_or(|leg| leg.distance_m(&own) < reach_m));
                match (waits_on_it, crosses) {
                    (true, _) => PathStatus::Blocked,
                    (false, true) => PathStatus::Occupied,
                    (false, false) => PathStatus::Clear,
                }
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

    /// Whether a member stands, or lands, on the straight way to a position, and is nearer to it than to us. One that is
    /// received no more has lost its leader too, as far as is known: it flew on until it noticed, stands there, and lands.
    pub(crate) fn is_way_occupied(&self, now: Instant, to: Point) -> bool {
        let Some(here) = self.ownship.point() else { return false };
        let (way, stands) = (self.path(here, to), self.path(here, here));
        let columns = |slot: usize| {
            let track = self.traffic.get(slot)?;
            let (at, way_m) = match track.departure {
                Some((at, Ending::Holding | Ending::Landing)) => (at, DVec3::ZERO),
                Some((_, Ending::Returning | Ending::Down)) => return None,
                None => {
                    let held = track.holding_at.is_some_and(|at| now.since(at) < STANDS_FOR);
                    // In its slot it waits longer: for the others, and then for the start.
                    let lost_slot = self.lost_slot(slot);
                    let waits = self.patience() * if lost_slot.is_some() { 3 } else { 1 };
                    let stands = self.may_stand(slot).filter(|_| now.since(track.reported_at) < waits);
                    let way_m = stands.map_or(DVec3::ZERO, |way| way.to_m - way.from_m);
                    let at = track.position.filter(|_| held || stands.is_some())?;
                    let height_mm = lost_slot.map_or(at.height_mm, |slot| at.height_mm.max(slot.height_mm));
                    (Point { height_mm, ..at }, way_m)
                }
            };
            let Path { from_m, to_m } = self.descent(at);
            Some([
                Path { from_m, to_m },
                Path { from_m: from_m + way_m, to_m: to_m + way_m },
                Path { from_m, to_m: from_m + way_m },
            ])
        };
        self.members.peers().iter().filter_map(columns).flatten().any(|column| {
            let near_m = column.distance_m(&way);
            near_m < self.clear_m() && near_m < column.distance_m(&stands)
        })
    }

    /// Returns whether another flies across the straight way to a position within the next [`CROSSES_WITHIN_S`], the leader on the
    /// path that is given. Aircraft that fly away from the way, as from this aircraft, do not count.
    pub(crate) fn is_way_crossed(&self, to: Point, leader: (Point, Point)) -> bool {
        let Some(here) = self.ownship.point() else { return true };
        let (way, stands) = (self.path(here, to), self.path(here, here));
        let crosses = |swath: Path| {
            let near_m = swath.distance_m(&way);
            near_m < self.clear_m() && near_m < swath.distance_m(&stands)
        };
        let swath = |slot: usize| {
            let track = self.traffic.get(slot).filter(|track| track.departure.is_none())?;
            let from_m = self.local(track.position?);
            Some(Path { from_m, to_m: from_m + track.velocity_m_s * CROSSES_WITHIN_S })
        };
        let others = self.members.peers().iter().filter(|&slot| slot != self.members.leader());
        crosses(self.path(leader.0, leader.1)) || others.filter_map(swath).any(crosses)
    }

    /// Whether a member of which nothing was received may be on the way to a position: it may have stopped anywhere along its
    /// route.
    pub(crate) fn may_hide_another(&self, to: Point) -> bool {
        let Some(here) = self.ownship.point() else { return true };
        let (way, last) = (self.path(here, to), self.assignment.last_waypoint());
        let is_unknown = |&slot: &usize| {
            self.traffic.get(slot).is_some_and(|track| track.position.is_none() && track.departure.is_none())
        };
        let is_near = |slot: usize, to: usize| {
            self.leg(slot, to).is_none_or(|leg| leg.distance_m(&way) < self.clear_m())
        };
        self.members.peers().iter().filter(is_unknown).any(|slot| (1..=last).any(|to| is_near(slot, to)))
    }

    /// Whether a member was last received so far from its position at a waypoint that it cannot be there yet: one that comes
    /// to rest there brakes, and is no farther from it than it brakes in the time since.
    pub(crate) fn is_still_far(&self, now: Instant, slot: usize, waypoint: usize) -> bool {
        let track = self.traffic.track(slot);
        let there = self.assignment.slot_position_m(slot, waypoint);
        let (Some(position), Some(there)) = (track.position, there) else { return false };
        let (t, arrival_m) = (now.since(track.sampled_at).as_secs_f64(), self.config.arrival_m);
        // It counts as arrived before it is at rest.
        let to_rest_s = t + libm::sqrt(2.0 * arrival_m / HARD_BRAKING_M_S2);
        let braked_m = 0.5 * HARD_BRAKING_M_S2 * to_rest_s * to_rest_s;
        // One that has just left its waypoint has to get up to speed before: it gains speed no faster than any brakes.
        let known_m_s = track.velocity_m_s.length() + KNOWN_TO_M_S;
        let gains_s = (HARD_BRAKING_M_S2 * to_rest_s - known_m_s) / (BRAKING_M_S2 + HARD_BRAKING_M_S2);
        let brakes_s = to_rest_s - gains_s;
        let gained_m = (known_m_s + 0.5 * BRAKING_M_S2 * gains_s) * gains_s
            + 0.5 * HARD_BRAKING_M_S2 * brakes_s * brakes_s;
        let reach_m = if gains_s > 0.0 { braked_m.min(gained_m) } else { braked_m };
        let reach_m = reach_m.min(arrival_m + t * SPEED_MOST_M_S);
        (there - self.assignment.geometry().local(position)).length_squared() > reach_m * reach_m
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

    /// Whether a member is where the plan's times have it in the take-off: on the ground before its turn, or in its slot.
    fn keeps_to_take_off(&self, slot: usize) -> bool {
        let (is_absent, has_left) = (self.members.absent().contains(slot), self.take_off.has_made_room(slot));
        !has_left && self.traffic.ending(slot).is_none() || self.take_off.is_in_slot(slot) && !is_absent
    }

    /// Whether a member keeps clear of this aircraft on the way to its slot: it took off later, and is received.
    fn gives_way(&self, slot: usize) -> bool {
        let takes_off_before = self.assignment.predecessors().any(|before| before == slot);
        !takes_off_before && !self.members.absent().contains(slot)
    }

    /// Returns whether this aircraft, on its way to a target, is about to stop above a member that
    /// lands: the downwash would be on that one until it is down.
    fn stops_above(
        &self,
        now: Instant,
        (track, at): (&Track, Point),
        (here, target): (Point, Point),
        is_holding: bool,
    ) -> bool {
        let height_mm = track.position.unwrap_or(at).height_mm;
        let above_m = f64::from(here.height_mm.saturating_sub(height_mm)) / 1e3;
        let [off_m, target_off_m] = [here, target].map(|point| self.over_ground_m(point, at));
        let stops_m = self.ownship.stopping_distance_m(false) + self.clear_m();
        // An aircraft that is above it already flies on.
        !has_landed(now, track, at)
            && (0.0..WASH_M).contains(&above_m)
            && target_off_m < WASH_ASIDE_M
            && off_m >= WASH_ASIDE_M
            && (is_holding || off_m < stops_m)
    }

    /// Whether a member was last known so near ahead, on our way to `target`, that this aircraft stops now to come to
    /// stand clear of it. One that flies on ahead reports that, and its position moves with it.
    pub(crate) fn closes_up(
        &self,
        now: Instant,
        target: Point,
        is_holding: bool,
        approach: Approach,
    ) -> bool {
        let geometry = self.assignment.geometry();
        let Some(here) = self.ownship.point_at(now, geometry) else { return false };
        let path_m = geometry.offset_m(here, target);
        let Some(along) = path_m.try_normalize() else { return false };
        let path_length_m = path_m.length();
        let stop_m = self.ownship.stopping_distance_m(is_holding);
        let far_m = self.clear_m();
        let (clear_m, drift_m) = match approach {
            Approach::Slot | Approach::Waypoint => (far_m, DRIFT_M),
            // Those that land next to us are as near as the plan has them.
            Approach::Landing => {
                let landing_m = f64::from(self.assignment.plan().landing_distance_mm) / 1e3;
                (far_m.min(landing_m * LANDING_SHARE), 0.0)
            }
        };
        self.members.peers().iter().any(|slot| {
            if approach == Approach::Slot && self.keeps_to_take_off(slot) {
                return false;
            }
            // Otherwise two would hold for each other.
            let (clear_m, drift_m) = match approach {
                Approach::Slot if self.gives_way(slot) => (self.config.separation_m, 0.0),
                Approach::Slot | Approach::Waypoint | Approach::Landing => (clear_m, drift_m),
            };
            let track = self.traffic.track(slot);
            let (position, velocity_m_s) = match track.departure {
                Some((_, Ending::Down)) => (None, DVec3::ZERO),
                // One that flies aside to land reports where it will land, and then where it is.
                Some((at, Ending::Landing)) => (track.position.or(Some(at)), DVec3::ZERO),
                Some((at, Ending::Holding | Ending::Returning)) => (Some(at), DVec3::ZERO),
                None => (track.position, track.velocity_m_s),
            };
            let Some(position) = position else { return false };
            if let Some((at, Ending::Landing)) = track.departure
                && self.stops_above(now, (track, at), (here, target), is_holding)
            {
                return true;
            }
            // One that flies home by itself and is near descends there next, whatever aircraft is below.
            if let (Some((from, Ending::Returning)), Some(home)) = (track.departure, track.home)
                && self.nears_home(from, home)
            {
                let offset_m = geometry.offset_m(here, Point { height_mm: here.height_mm, ..home });
                let ahead_m = offset_m.dot(along);
                let reach_m = stop_m.clamp(0.0, path_length_m);
                if ahead_m > 0.0 && (offset_m - along * ahead_m.min(reach_m)).length() < clear_m {
                    return true;
                }
            }
            let is_fresh = now.since(track.sampled_at) < FRESH;
            let mut offset_m = geometry.offset_m(here, position);
            if approach == Approach::Slot && !is_fresh {
                // Silent among aircraft at every height, it may climb to return, or sink.
                offset_m.z = 0.0;
            }
            let ahead_m = offset_m.dot(along);
            // Most are behind, or farther than any stop leads.
            let near_m = stop_m.max(0.0) + clear_m + drift_m;
            if ahead_m <= 0.0 || offset_m.length_squared() > near_m * near_m {
                return false;
            }
            // Had it begun to stop right after its last message, it would stand there.
            let its_speed_m_s = if is_fresh { velocity_m_s.dot(along).max(0.0) } else { 0.0 };
            let stops_in_m = |braking_m_s2: f64| its_speed_m_s * its_speed_m_s / (2.0 * braking_m_s2);
            let its_stop_m = if track.holding_at.is_some_and(|at| now.since(at) < REPORTED_HOLDING) {
                stops_in_m(HARD_BRAKING_M_S2)
            } else if now.since(track.sampled_at) > SILENT {
                // Its guardian may have stopped it, hard, but not before it noticed; at 10 m/s that is as far.
                let unnoticed_m = its_speed_m_s * SILENT.as_secs_f64();
                stops_in_m(BRAKING_M_S2).min(unnoticed_m + stops_in_m(HARD_BRAKING_M_S2))
            } else {
                stops_in_m(BRAKING_M_S2)
            };
            let clear_m = if is_fresh { clear_m } else { clear_m + drift_m };
            // In any case this aircraft stands at the target at last.
            let reach_m = (stop_m - its_stop_m).clamp(0.0, path_length_m);
            (offset_m - along * ahead_m.min(reach_m)).length() < clear_m
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Airspace, at};
    use super::*;

    #[test]
    fn muscop_17_no_aircraft_stops_above_one_that_lands() {
        let mut airspace = Airspace::of(0);
        let (other, geometry) = (airspace.slot(1), airspace.assignment.geometry().clone());
        airspace.members.leaves(other);
        let now = Instant::from_secs(1);
        airspace.report_own(at(0.0, 0.0, 20.0), true);
        let mut holds = |north_m: f64, height_m: f64, later_s: u64| {
            let (there, later) = (at(0.0, north_m, height_m), now + Duration::from_secs(later_s));
            airspace.traffic.report(now, other, there, &geometry);
            airspace.traffic.report_departure(other, there, Ending::Landing);
            airspace.traffic.watch(later, airspace.config.silence);
            airspace.clearance().closes_up(later, at(0.0, 13.0, 20.0), true, Approach::Waypoint)
        };
        assert!(holds(11.0, 8.0, 0), "it waits outside the downwash");
        assert!(holds(11.0, 8.0, 10), "it still descends");
        assert!(!holds(11.0, 8.0, 60), "it is down");
        assert!(!holds(11.0, 4.0, 0), "below the downwash");
        assert!(!holds(23.0, 8.0, 0), "aside");
        assert!(!holds(5.0, 8.0, 0), "this aircraft is above it already");
    }

    #[test]
    fn muscop_16_a_leg_is_clear_once_those_on_it_have_left() {
        let mut airspace = Airspace::of(0);
        for index in [1, 2] {
            airspace.progress(index, 1, 1);
        }
        assert_eq!(airspace.clearance().next_leg(0), PathStatus::Clear, "at right angles to the row");
        assert_eq!(airspace.clearance().next_leg(1), PathStatus::Occupied);
        airspace.progress(1, 1, 2);
        assert_eq!(airspace.clearance().next_leg(1), PathStatus::Occupied, "by the far one");
        airspace.progress(2, 1, 2);
        assert_eq!(airspace.clearance().next_leg(1), PathStatus::Clear);
        let waits = airspace.members.awaited(true);
        assert!(!airspace.clearance().is_in_the_way(1, waits), "it is the last of the row");
        // The first of the row, where the last has reached a waypoint on its leg.
        let mut airspace = Airspace::of(2);
        airspace.progress(1, 1, 1);
        airspace.progress(0, 2, 2);
        assert_eq!(airspace.clearance().next_leg(1), PathStatus::Blocked);
        let waits = airspace.members.awaited(true);
        assert!(airspace.clearance().is_in_the_way(1, waits));
    }

    #[test]
    fn muscop_12_a_lost_member_blocks_the_legs_of_all_that_lead_past_it() {
        let mut airspace = Airspace::of(1);
        for index in [0, 2] {
            airspace.progress(index, 1, 1);
        }
        let awaited = |airspace: &Airspace| airspace.members.awaited(true);
        assert!(!airspace.clearance().is_any_leg_blocked(1, awaited(&airspace)));
        let east = airspace.slot(2);
        airspace.members.received(Instant::from_secs(9), airspace.slot(0));
        airspace.members.check_silence(Instant::from_secs(9), Duration::from_secs(5));
        assert_eq!(airspace.members.lost(), SlotSet::of(east));
        assert!(airspace.clearance().is_any_leg_blocked(1, awaited(&airspace)));
        assert!(!airspace.clearance().is_any_leg_blocked(2, awaited(&airspace)), "the last has no leg");
        // One that is down blocks none.
        airspace.members.leaves(east);
        airspace.traffic.report_departure(east, at(50.0, 200.0, 0.0), Ending::Down);
        assert!(!airspace.clearance().is_any_leg_blocked(1, awaited(&airspace)));
    }

    #[test]
    fn muscop_12_a_lost_member_may_wait_at_any_later_waypoint() {
        // Lost on its first leg, which is at right angles to the row. The third leads back past where the second ends.
        let mut airspace = Airspace::of(0);
        for index in [1, 2] {
            airspace.progress(index, 0, 1);
        }
        let (lost, slot) = (airspace.slot(2), airspace.assignment.slot());
        let mut plan = airspace.assignment.plan().clone();
        let _ = plan.waypoints.push(at(300.0, 200.0, 20.0));
        let own = crate::swarm::plan::route(&airspace.config, &plan, slot).unwrap();
        airspace.assignment.adopt(&airspace.config, 7, plan, slot, own);
        airspace.members.received(Instant::from_secs(9), airspace.slot(1));
        airspace.members.check_silence(Instant::from_secs(9), Duration::from_secs(5));
        assert_eq!(airspace.members.lost(), SlotSet::of(lost));
        let awaited = airspace.members.awaited(true);
        assert!(!airspace.clearance().is_any_leg_blocked(0, awaited), "at right angles to the row");
        // From 150 to 250 m east; the lost one may be at 250, and waits for none of these.
        assert!(airspace.clearance().is_any_leg_blocked(2, awaited));
        // One that reported that it holds has not continued.
        airspace.members.leaves(lost);
        airspace.traffic.report_departure(lost, at(50.0, 100.0, 20.0), Ending::Holding);
        assert!(!airspace.clearance().is_any_leg_blocked(2, awaited));
    }

    #[test]
    fn muscop_14_on_the_way_to_its_slot_an_aircraft_stops_for_one_that_stopped_before_it() {
        // The last in the order of take-off, east of the two before it, flies west at 5 m/s: 2.5 m of reaction, 5 of braking.
        let index = (0..3).find(|&i| Airspace::of(i).assignment.take_off_index() == Some(2)).unwrap();
        let before = (0..3).find(|&i| Airspace::of(i).assignment.take_off_index() == Some(0)).unwrap();
        let stops = |change: fn(&mut Airspace, usize), now_s: u64| {
            let mut airspace = Airspace::of(index);
            let (ahead, geometry) = (airspace.slot(before), airspace.assignment.geometry().clone());
            airspace.report_own_flying(at(0.0, 0.0, 10.0), true, -DVec3::X * 5.0);
            airspace.traffic.report(Instant::from_secs(1), ahead, at(-14.0, 0.0, 12.0), &geometry);
            change(&mut airspace, ahead);
            let now = Instant::from_secs(now_s);
            airspace.clearance().closes_up(now, at(-50.0, 0.0, 20.0), false, Approach::Slot)
        };
        let climbed = |airspace: &mut Airspace, ahead| airspace.take_off.report_climbed(ahead);
        assert!(stops(climbed, 2));
        assert!(!stops(|_, _| {}, 2), "it stands until it is its turn");
        assert!(
            !stops(|airspace, ahead| airspace.take_off.report_in_slot(ahead), 2),
            "the plan keeps clear of it"
        );
        assert!(stops(
            |airspace, ahead| {
                airspace.take_off.report_in_slot(ahead);
                airspace.members.check_silence(Instant::from_secs(9), Duration::from_secs(5));
            },
            9
        ));
        // One that took off later gives way itself.
        let mut airspace = Airspace::of(before);
        let (later, geometry) = (airspace.slot(index), airspace.assignment.geometry().clone());
        airspace.report_own_flying(at(0.0, 0.0, 10.0), true, -DVec3::X * 5.0);
        airspace.take_off.report_climbed(later);
        let closes_up = |airspace: &Airspace, now_s| {
            let now = Instant::from_secs(now_s);
            airspace.clearance().closes_up(now, at(-50.0, 0.0, 20.0), false, Approach::Slot)
        };
        airspace.traffic.report(Instant::from_secs(1), later, at(-14.0, 4.0, 14.0), &geometry);
        assert!(!closes_up(&airspace, 2));
        airspace.members.check_silence(Instant::from_secs(9), Duration::from_secs(5));
        assert!(closes_up(&airspace, 9), "unless it is lost");
    }

    #[test]
    fn muscop_17_an_aircraft_stops_for_one_ahead_that_it_could_not_stop_clear_of_later() {
        // Where another is, how fast it flies north, and how it leaves. This aircraft flies north at 10 m/s, by now
        // from (0, 105), and stops within 5 m of reaction and 20 m of braking; 8 m is clear.
        let (stands, flies) = (0.0, 10.0);
        for (east_m, north_m, speed_m_s, departure, stops) in [
            (0.0, 130.0, stands, None, true),
            (0.0, 145.0, stands, None, false),
            (0.0, 130.0, flies, None, false),
            (0.0, 108.0, flies, None, true),
            (0.0, 90.0, stands, None, false),
            (20.0, 120.0, stands, None, false),
            (0.0, 130.0, stands, Some(Ending::Holding), true),
            (0.0, 130.0, stands, Some(Ending::Down), false),
        ] {
            let mut airspace = Airspace::of(1);
            let geometry = airspace.assignment.geometry().clone();
            let (own, ahead) = (at(0.0, 100.0, 20.0), airspace.slot(2));
            airspace.report_own_flying(own, true, DVec3::Y * 10.0);
            for (second, north_m) in [(1, north_m - speed_m_s), (2, north_m)] {
                let now = Instant::from_secs(second);
                airspace.traffic.report(now, ahead, at(east_m, north_m, 20.0), &geometry);
            }
            if let Some(ending) = departure {
                airspace.members.leaves(ahead);
                airspace.traffic.report_departure(ahead, at(east_m, north_m, 20.0), ending);
            }
            let now = Instant::from_secs(2);
            let found = airspace.clearance().closes_up(now, at(0.0, 200.0, 20.0), false, Approach::Waypoint);
            assert_eq!(found, stops, "({east_m}, {north_m}) at {speed_m_s} m/s, {departure:?}");
        }
    }

    #[test]
    fn muscop_17_one_that_fell_silent_may_have_been_stopped_by_its_guardian() {
        // Both fly at 15 m/s, 20 m apart. Slowing down together they stay so; stopped by its guardian 1 s after its last
        // message the other stands after 37.5 m, where this aircraft, which needs 52.5 m, comes to within 5 m.
        for (silent_ms, stops) in [(0, false), (900, false), (1100, true), (1900, true)] {
            let mut airspace = Airspace::of(1);
            let geometry = airspace.assignment.geometry().clone();
            let ahead = airspace.slot(2);
            let report = |airspace: &mut Airspace, now, north_m| {
                airspace.traffic.report(now, ahead, at(0.0, north_m, 20.0), &geometry);
            };
            report(&mut airspace, Instant::from_secs(1), 110.0);
            report(&mut airspace, Instant::from_secs(2), 125.0);
            let now = Instant::from_secs(2) + Duration::from_millis(silent_ms);
            // By now at 105 m.
            airspace.report_own_flying(at(0.0, 97.5, 20.0), true, DVec3::Y * 15.0);
            let found = airspace.clearance().closes_up(now, at(0.0, 300.0, 20.0), false, Approach::Waypoint);
            assert_eq!(found, stops, "silent for {silent_ms} ms");
        }
    }
}
