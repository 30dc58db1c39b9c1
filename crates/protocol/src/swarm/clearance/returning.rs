//! Returning: each aircraft climbs straight up into a layer of its own above all waypoints, flies home in it, and lands
//! on its own home.
//!
//! In the layers no two aircraft meet. Where one changes height it crosses the layers of others, so:
//!
//! - an aircraft does not begin to climb while the path of another leads past its column, or ends there;
//! - an aircraft that flies home stops short of a column in which another climbs or lands;
//! - an aircraft does not begin to land while the path of another leads past its column;
//! - an aircraft does not cross where a member with a lost link may return ([`super::lost_link`]).
//!
//! One that climbs or lands waits for none, one that flies home for those only, and one that holds for those and the
//! flying: so there is no ring of waits. The autopilot flies all of it in its mode RTL, whose height is set to the layer
//! while the plan is adopted; waiting is holding position.

use wingbeat_geo::{DVec3, Duration, Instant};
use wingbeat_wire::{Ending, Point};

use super::super::path::{Curtain, Path};
use super::super::{Abort, plan};
use super::Clearance;
use super::drift::{WASH_ASIDE_M, WASH_M, has_landed};
use crate::EndFlight;

/// Nearer to its home over the ground than this an aircraft is above it, metres.
const HOME_WITHIN_M: f64 = 4.0;

/// So far below its layer an aircraft is on its way up to it or down from it, millimetre: half of what layers are apart.
/// An autopilot may hold its height as much lower as its estimate has drifted in the climb: ArduCopter 3.5.7 by 2 m and
/// more at 120 m.
const LAYER_WITHIN_MM: i32 = 4_000;

/// Slower than this an aircraft stands, metres per second.
const STANDS_M_S: f64 = 0.5;

/// Faster than this an aircraft above its home flies past it, metres per second.
const HOVERS_M_S: f64 = 2.0;

/// An aircraft that waits for another to pass above continues at this distance, in metres.
const PASSED_M: f64 = 12.0;

/// An aircraft that flies no faster than this relative to the one below stays above it, in m/s.
const STAYS_M_S: f64 = 2.0;

/// From this difference on a path home leads nearer to a landing aircraft than a stop, in metres.
const NEARER_M: f64 = 0.5;

/// An aircraft that holds on its way home does so for at least this long.
const HOLD_LEAST: Duration = Duration::from_secs(1);

impl Clearance<'_> {
    /// What the operator's *Return* begins with.
    pub(crate) fn begin_return(&self, now: Instant) -> Abort {
        let is_above_home = self.ownship.telemetry().zip(self.ownship.home()).is_some_and(|(own, home)| {
            self.assignment.layers().is_some()
                && self.over_ground_m(own.point(), home) < HOME_WITHIN_M
                && own.velocity_m_s.truncate().length() < HOVERS_M_S
        });
        if is_above_home && !self.is_in_layer() {
            Abort::LAND
        } else if self.may_climb(now, None) {
            Abort::Ending(EndFlight::Return)
        } else {
            Abort::ReturnHeld { since: now }
        }
    }

    /// What follows while returning; none while nothing does.
    pub(crate) fn continue_return(&self, now: Instant) -> Option<Abort> {
        let is_held = (self.is_in_layer() && (!self.may_fly_home(now, None) || self.is_below_another(false)))
            || (self.is_climbing() && !self.may_climb_on(now));
        is_held.then_some(Abort::ReturnHeld { since: now })
    }

    /// What follows while a return is held since a time; none while nothing does.
    pub(crate) fn resume_return(&self, now: Instant, since: Instant) -> Option<Abort> {
        if now.since(since) < HOLD_LEAST {
            return None;
        }
        let is_clear = if self.is_in_layer() {
            self.may_fly_home(now, Some(since)) && !self.is_below_another(true)
        } else {
            self.may_climb(now, Some(since))
        };
        if is_clear {
            return Some(Abort::Ending(EndFlight::Return));
        }
        let waits_long = now >= self.config.patience_after(since) && self.may_land_here(now);
        // Where one comes down that does not know of this aircraft, it does not wait at all: it lands, aside of there.
        let is_in_the_way = !self.is_in_layer() && self.hovers_over_home_of_lost();
        (waits_long || is_in_the_way).then_some(Abort::LAND)
    }

    /// Height above home at which this aircraft returns, millimetre; none where returns have no layers.
    pub(crate) fn own_return_height_mm(&self) -> Option<i32> {
        self.assignment.own_return_height_mm()
    }

    /// Whether this aircraft is below its layer, and not because it lands on its home.
    fn is_climbing(&self) -> bool {
        self.assignment.layers().is_some()
            && !self.is_in_layer()
            && self
                .ownship
                .point()
                .zip(self.ownship.home())
                .is_some_and(|(here, home)| self.over_ground_m(here, home) >= HOME_WITHIN_M)
    }

    /// Whether this aircraft has reached its layer.
    pub(crate) fn is_in_layer(&self) -> bool {
        let height_mm = self.ownship.point().map_or(0, |here| here.height_mm);
        self.own_return_height_mm().is_some_and(|layer_mm| height_mm >= layer_mm - LAYER_WITHIN_MM)
    }

    /// The rest of the return of a member that was last received at `at`: up, home, down. None where that is not known.
    pub(super) fn return_path(&self, slot: usize, at: Point) -> Option<[Path; 3]> {
        let track = self.traffic.get(slot)?;
        let (layer_mm, home) = (self.assignment.return_height_mm(slot)?, track.home?);
        let up = Point { height_mm: layer_mm.max(at.height_mm), ..at };
        let over = Point { height_mm: up.height_mm, ..home };
        if at.height_mm < layer_mm - LAYER_WITHIN_MM && self.over_ground_m(at, home) < HOME_WITHIN_M {
            // It lands, or is about to climb from there.
            let from = if track.velocity_m_s.z < -STANDS_M_S / 2.0 { at } else { over };
            return Some([self.path(from, Point { height_mm: 0, ..home }); 3]);
        }
        Some([self.path(at, up), self.path(up, over), self.descent(over)])
    }

    /// What of that no other may cross now: the column in which it climbs or lands, and, unless it stands, its path home
    /// in its layer.
    fn occupied_by(&self, slot: usize, at: Point) -> Option<[Path; 2]> {
        let [up, home, down] = self.return_path(slot, at)?;
        if up == down {
            return Some([down; 2]);
        }
        let stands = self.traffic.track(slot).velocity_m_s.length() < STANDS_M_S;
        Some([up, if stands && self.is_member_in_layer(slot, at) { up } else { home }])
    }

    pub(super) fn is_member_in_layer(&self, slot: usize, at: Point) -> bool {
        self.assignment.return_height_mm(slot).is_some_and(|mm| at.height_mm >= mm - LAYER_WITHIN_MM)
    }

    /// Members that reported that they return, and where they were.
    fn returning(&self) -> impl Iterator<Item = (usize, Point)> {
        self.members.peers().iter().filter_map(|slot| match self.traffic.track(slot).departure {
            Some((at, Ending::Returning)) => Some((slot, at)),
            Some((_, Ending::Holding | Ending::Landing | Ending::Down)) | None => None,
        })
    }

    /// Whether this aircraft may climb into its layer: no returning member passes its column, and those that share the
    /// layer are down. `held` since when it waits.
    fn may_climb(&self, now: Instant, held: Option<Instant>) -> bool {
        let Some((here, layer_mm)) = self.ownship.point().zip(self.own_return_height_mm()) else {
            return true;
        };
        if !self.has_layer(now, held) {
            return false;
        }
        let up = Point { height_mm: layer_mm.max(here.height_mm), ..here };
        let column = self.path(here, up);
        let clear_m = self.clear_m();
        let is_passed = self.returning().any(|(slot, at)| {
            let occupied = self.occupied_by(slot, at);
            occupied.is_none_or(|paths| paths.iter().any(|p| p.distance_m(&column) < clear_m))
        });
        // From below the height of the flight the column leads through the paths of all others.
        let lowest_mm = self.assignment.route().iter().map(|w| w.height_mm).min().unwrap_or(0);
        let is_below = here.height_mm < lowest_mm - LAYER_WITHIN_MM;
        let is_clear_of_lost_links =
            self.receives_none(now) || self.is_clear_of_lost_links(now, Some(held.unwrap_or(now)), &[column]);
        !is_passed && is_clear_of_lost_links && (!is_below || self.is_clear_of_all(&[column]))
    }

    /// Whether the layer is free for this aircraft: no other has it, or those that have it are down or on the mission,
    /// and we have received for long enough to know.
    fn has_layer(&self, now: Instant, held: Option<Instant>) -> bool {
        let Some(layers) = self.assignment.layers() else { return true };
        let (plan, own) = (self.assignment.plan(), self.assignment.slot());
        let own_rank = plan::rank(plan, own);
        let mut sharers =
            self.members.peers().iter().filter(|&slot| layers.are_shared(plan, slot, own)).peekable();
        if sharers.peek().is_none() {
            return true;
        }
        let has_listened = own_rank == 0 || held.is_some_and(|since| now.since(since) >= self.config.silence);
        has_listened
            && sharers.all(|slot| match self.traffic.ending(slot) {
                Some(Ending::Returning) => false,
                Some(Ending::Holding) => plan::rank(plan, slot) > own_rank,
                Some(Ending::Landing | Ending::Down) => true,
                None => !self.members.lost().contains(slot),
            })
    }

    /// Whether this aircraft may fly on in its layer, and land at its end. `held` since when it stands.
    fn may_fly_home(&self, now: Instant, held: Option<Instant>) -> bool {
        let Some((here, home)) = self.ownship.point().zip(self.ownship.home()) else { return true };
        let stop_m = self.ownship.stopping_distance_m(held.is_some());
        let (clear_m, from_m) = (self.clear_m(), self.local(here));
        let left_m = (self.local(home) - from_m) * DVec3::new(1.0, 1.0, 0.0);
        let reach_m = stop_m + clear_m;
        let ahead = Path { from_m, to_m: from_m + left_m.clamp_length_max(reach_m) };
        let is_met = self.returning().any(|(slot, at)| {
            let Some([up, ..]) = self.return_path(slot, at) else { return true };
            let column = if self.is_member_in_layer(slot, at) { self.path(at, at) } else { up };
            column.distance_m(&ahead) < clear_m
        });
        let stops = Path { from_m, to_m: from_m + left_m.clamp_length_max(stop_m) };
        // One that stopped on its way up to its own layer may be as high as this one, and as an
        // autopilot's height drifts. One that lands from a higher layer descends through this one:
        // where a stop leads as near, this aircraft flies past.
        let is_met = is_met
            || self.traffic.iter().any(|track| match track.departure {
                Some((at, Ending::Holding)) => self.path(at, at).distance_m(&ahead) < clear_m,
                Some((at, Ending::Landing)) if !has_landed(now, track, at) => {
                    let column = Curtain { foot: self.comes_down(track, at), height_m: self.local(at).z };
                    let near_m = column.distance_m(&ahead);
                    near_m < clear_m && near_m < column.distance_m(&stops) - NEARER_M
                }
                Some((_, Ending::Returning | Ending::Landing | Ending::Down)) | None => false,
            });
        if is_met {
            return false;
        }
        if self.receives_none(now) {
            return true;
        }
        let column = self.descent(Point { height_mm: here.height_mm, ..home });
        self.is_clear_of_lost_links(now, held, &[ahead])
            && (left_m.length() > reach_m
                || self.is_clear_of_all(&[column])
                    && self.is_clear_of_lost_links(now, held, &[column])
                    && self.is_free(home))
    }

    /// Returns whether a member that flies home in a layer above stays over this aircraft, and its
    /// downwash with it. The lower one of two waits until the other has passed; for one that stands
    /// above it does not wait.
    fn is_below_another(&self, is_holding: bool) -> bool {
        let Some(own) = self.ownship.telemetry() else { return false };
        let here_m = self.local(own.point());
        self.returning().any(|(slot, at)| {
            let (off_m, its_m_s) = (self.local(at) - here_m, self.traffic.track(slot).velocity_m_s);
            let (within_m, relative_m_s) = match is_holding {
                true => (PASSED_M, 0.0),
                false => (WASH_ASIDE_M, (its_m_s - own.velocity_m_s).truncate().length()),
            };
            self.is_member_in_layer(slot, at)
                && (STANDS_M_S..WASH_M).contains(&off_m.z)
                && off_m.truncate().length() < within_m
                && its_m_s.truncate().length() > HOVERS_M_S
                && relative_m_s < STAYS_M_S
        })
    }

    /// Whether no member was received for so long that none will be: what the others do now is not known and never will
    /// be, and the own home is what they keep clear of.
    pub(super) fn receives_none(&self, now: Instant) -> bool {
        let mut others = self.members.peers().iter();
        others.all(|slot| now >= self.config.patience_after(self.received_at(slot)))
    }

    /// Whether this aircraft may land where it is, or aside of what stands there.
    fn may_land_here(&self, now: Instant) -> bool {
        let Some(here) = self.ownship.point() else { return true };
        self.is_clear_to_land(now, self.descent(here)) && (self.is_free(here) || self.site_aside().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Airspace, at};
    use super::*;

    #[test]
    fn muscop_20_a_return_begins_where_no_other_passes_the_column() {
        // The one with the highest layer crosses those of the others.
        let height_mm = |airspace: &Airspace| airspace.clearance().own_return_height_mm();
        let mut airspace =
            [0, 1, 2].map(Airspace::of).into_iter().max_by_key(|airspace| height_mm(airspace)).unwrap();
        let own = airspace.config.me.0 - 10;
        let home = at(50.0 * own as f64 - 50.0, 0.0, 0.0);
        airspace.report_own(home, false);
        airspace.report_own(Point { height_mm: 10_000, ..home }, true);
        assert_eq!(airspace.clearance().begin_return(Instant::ZERO), Abort::LAND, "above its home");
        let here = at(0.0, 400.0, 20.0);
        airspace.report_own(here, true);
        let now = Instant::from_secs(1);
        assert_eq!(airspace.clearance().begin_return(now), Abort::Ending(EndFlight::Return));
        assert!(!airspace.clearance().is_in_layer());
        // Another returns through this column, and then is down.
        let other = airspace.slot((own + 1) % 3);
        airspace.traffic.report_home(other, at(-100.0, 400.0, 0.0));
        airspace.members.leaves(other);
        airspace.traffic.report_departure(other, at(100.0, 400.0, 20.0), Ending::Returning);
        let held = Abort::ReturnHeld { since: now };
        assert_eq!(airspace.clearance().begin_return(now), held);
        let later = now + Duration::from_millis(999);
        assert_eq!(airspace.clearance().resume_return(later, now), None, "it holds for a second at least");
        airspace.traffic.report_departure(other, at(-100.0, 400.0, 0.0), Ending::Down);
        let later = now + Duration::from_secs(1);
        for slot in airspace.members.peers() {
            airspace.members.received(later, slot);
        }
        let resumed = airspace.clearance().resume_return(later, now);
        assert_eq!(resumed, Some(Abort::Ending(EndFlight::Return)));
    }

    #[test]
    fn muscop_20_a_return_is_held_where_another_climbs_or_lands_ahead_and_ends_when_it_stays_blocked() {
        let mut airspace = Airspace::of(1);
        let (own, other) = (airspace.assignment.slot(), airspace.slot(0));
        let layer_m = f64::from(airspace.assignment.return_height_mm(own).unwrap()) / 1e3;
        let now = Instant::from_secs(1);
        let third = airspace.slot(2);
        airspace.members.leaves(third);
        airspace.traffic.report_departure(third, at(50.0, 0.0, 0.0), Ending::Down);
        airspace.report_own(at(0.0, 0.0, 0.0), false);
        // In its layer, on its way home to the south; another returns from ahead on its path.
        airspace.report_own_flying(at(0.0, 200.0, layer_m), true, -DVec3::Y * 5.0);
        assert_eq!(airspace.clearance().continue_return(now), None);
        airspace.traffic.report_home(other, at(-50.0, 0.0, 0.0));
        airspace.members.leaves(other);
        airspace.traffic.report_departure(other, at(0.0, 190.0, 20.0), Ending::Returning);
        assert_eq!(airspace.clearance().continue_return(now), Some(Abort::ReturnHeld { since: now }));
        // It stands, and continues once the other has left the path.
        airspace.report_own(at(0.0, 190.0 + 15.0, layer_m), true);
        let later = now + HOLD_LEAST;
        let receive = |airspace: &mut Airspace, now| {
            for slot in airspace.members.peers() {
                airspace.members.received(now, slot);
            }
        };
        receive(&mut airspace, later);
        assert_eq!(airspace.clearance().resume_return(later, now), None, "it is still there");
        airspace.traffic.report_departure(other, at(-50.0, 0.0, 0.0), Ending::Down);
        let resumed = airspace.clearance().resume_return(later, now);
        assert_eq!(resumed, Some(Abort::Ending(EndFlight::Return)));
        // One that stays ends the return.
        airspace.traffic.report_departure(other, at(0.0, 190.0, 20.0), Ending::Returning);
        let patience_at = airspace.config.patience_after(now);
        receive(&mut airspace, patience_at);
        assert_eq!(airspace.clearance().resume_return(patience_at, now), Some(Abort::LAND));
    }

    #[test]
    fn muscop_20_one_that_holds_below_a_layer_does_not_wait_for_the_one_in_it_that_waits_for_it() {
        let mut airspace = Airspace::of(1);
        let (other, third) = (airspace.slot(0), airspace.slot(2));
        let layer_m = f64::from(airspace.assignment.return_height_mm(other).unwrap()) / 1e3;
        airspace.members.leaves(third);
        airspace.traffic.report_departure(third, at(50.0, 0.0, 0.0), Ending::Down);
        airspace.report_own(at(-50.0, 3.0, 12.0), true);
        // The other would descend on its home, past this aircraft.
        airspace.traffic.report_home(other, at(-50.0, 0.0, 0.0));
        airspace.members.leaves(other);
        let now = Instant::from_secs(200);
        let lands = |airspace: &mut Airspace, height_m: f64| {
            airspace.traffic.report_departure(other, at(-50.0, 0.0, height_m), Ending::Returning);
            airspace.members.received(now, other);
            airspace.clearance().resume_return(now, Instant::from_secs(1)) == Some(Abort::LAND)
        };
        assert!(lands(&mut airspace, layer_m - 3.0), "it hovers there until this aircraft is gone");
        assert!(!lands(&mut airspace, layer_m - 10.0), "it descends");
    }

    /// ArduCopter 3.5.7 flies home so much lower after a climb of 100 m.
    #[test]
    fn muscop_20_an_aircraft_is_in_its_layer_where_its_height_has_drifted() {
        let mut airspace = Airspace::of(1);
        let layer_m = f64::from(airspace.clearance().own_return_height_mm().unwrap()) / 1e3;
        airspace.report_own(at(0.0, 200.0, layer_m - 3.9), true);
        assert!(airspace.clearance().is_in_layer());
        airspace.report_own(at(0.0, 200.0, layer_m - 4.1), true);
        assert!(!airspace.clearance().is_in_layer());
    }

    #[test]
    fn muscop_20_one_that_flies_home_stops_short_of_one_that_lands_from_a_higher_layer() {
        let mut airspace = Airspace::of(1);
        let (own, other, third) = (airspace.assignment.slot(), airspace.slot(0), airspace.slot(2));
        let layer_m = f64::from(airspace.assignment.return_height_mm(own).unwrap()) / 1e3;
        for slot in [other, third] {
            airspace.members.leaves(slot);
        }
        airspace.traffic.report_departure(third, at(50.0, 0.0, 0.0), Ending::Down);
        airspace.report_own(at(0.0, 0.0, 0.0), false);
        let now = Instant::from_secs(1);
        // On its way home to the south; the other lands ahead.
        let mut stops = |north_m: f64, height_m: f64| {
            airspace.report_own_flying(at(0.0, 200.0, layer_m), true, -DVec3::Y * 5.0);
            airspace.traffic.report_departure(other, at(0.0, north_m, height_m), Ending::Landing);
            airspace.clearance().continue_return(now).is_some()
        };
        assert!(stops(186.0, layer_m + 9.0), "it descends through this layer");
        assert!(stops(186.0, layer_m));
        assert!(!stops(186.0, layer_m - 15.0), "it is below");
        assert!(!stops(150.0, layer_m + 9.0), "it is far ahead");
        assert!(!stops(198.0, layer_m + 9.0), "a stop leads below it: past it");
        assert!(!stops(208.0, layer_m + 9.0), "it is behind");
        // One that fell silent long ago is down.
        airspace.report_own_flying(at(0.0, 200.0, layer_m), true, -DVec3::Y * 5.0);
        airspace.traffic.report_departure(other, at(0.0, 186.0, layer_m + 9.0), Ending::Landing);
        let later = Instant::from_secs(200);
        for slot in [other, third] {
            airspace.members.received(later, slot);
        }
        airspace.traffic.watch(later, airspace.config.silence);
        assert_eq!(airspace.clearance().continue_return(later), None);
    }

    #[test]
    fn muscop_20_the_lower_one_of_two_that_fly_home_above_each_other_lets_the_other_pass() {
        let mut airspace = Airspace::of(1);
        let own = airspace.assignment.slot();
        let (slots, geometry) = ([0, 2].map(|i| airspace.slot(i)), airspace.assignment.geometry().clone());
        let layer_mm = |airspace: &Airspace, slot: usize| airspace.assignment.return_height_mm(slot).unwrap();
        let own_mm = layer_mm(&airspace, own);
        let above = slots.into_iter().filter(|&slot| layer_mm(&airspace, slot) > own_mm);
        let upper = above.min_by_key(|&slot| layer_mm(&airspace, slot)).unwrap();
        let lower = slots.into_iter().find(|&slot| slot != upper).unwrap();
        airspace.report_own(at(0.0, 0.0, 0.0), false);
        airspace.members.leaves(lower);
        airspace.traffic.report_departure(lower, at(50.0, 0.0, 0.0), Ending::Down);
        airspace.members.leaves(upper);
        airspace.traffic.report_home(upper, at(-50.0, 0.0, 0.0));
        let now = Instant::from_secs(1);
        let upper_m = f64::from(layer_mm(&airspace, upper)) / 1e3;
        let mut is_below = |north_m: f64, south_m_s: f64, is_holding: bool| {
            let own_m_s = if is_holding { 0.0 } else { 5.0 };
            let here = at(0.0, 200.0, f64::from(own_mm) / 1e3);
            airspace.report_own_flying(here, true, -DVec3::Y * own_m_s);
            for (at_ms, off_m) in [(0, 0.5 * south_m_s), (500, 0.0)] {
                let there = at(0.0, north_m + off_m, upper_m);
                let at = now + Duration::from_millis(at_ms);
                airspace.traffic.report(at, upper, there, &geometry);
                airspace.traffic.report_departure(upper, there, Ending::Returning);
            }
            airspace.clearance().is_below_another(is_holding)
        };
        assert!(is_below(203.0, 5.0, false));
        assert!(!is_below(203.0, 9.0, false), "it passes");
        assert!(!is_below(203.0, 0.0, false), "it stands: this aircraft passes");
        assert!(!is_below(210.0, 5.0, false), "it is aside");
        assert!(is_below(195.0, 5.0, true), "it has not passed");
        assert!(!is_below(185.0, 5.0, true));
        assert!(!is_below(200.0, 0.0, true), "it waits itself: no two wait for each other");
    }
}
