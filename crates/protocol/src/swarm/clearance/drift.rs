//! Aircraft that nothing steers: wind and their last speed carry them while they descend.
//!
//! A member that loses its satellites reports that at once ([`wingbeat_wire::Message::Adrift`]). Its flight controller knows its
//! position for some more seconds, and then lands without one. An aircraft that is about to land in its way climbs above it
//! and waits until it has passed. Where the wind is measured the way is downwind; where it is not, it is any direction, as far
//! as the stated wind carries.
//!
//! A member that left to hold and still moves is in a pilot's hands (ALT_HOLD, for example): it keeps its height and drifts. An
//! aircraft that holds or lands in its way climbs above it, too.

use wingbeat_geo::{DVec2, Duration, Instant};
use wingbeat_wire::{Ending, Point};

use super::traffic::{Adrift, Track};
use super::{Clearance, Path};
use crate::coasts_m;

/// The slowest descent: the last metres of a landing (`LAND_SPEED` 50 cm/s), in metres per second.
const DESCENDS_M_S: f64 = 0.5;
/// It is down after this at the latest, in seconds.
const DOWN_AFTER_MOST_S: f64 = 90.0;
/// After the last known position, the position is known for some seconds more: 5 s of dead reckoning, and a report.
const STEERED_FOR_S: f64 = 6.0;
/// An aircraft takes on the speed of the air in this time, in seconds.
const CARRIED_AFTER_S: f64 = 2.0;
/// It moves at this share of the measured wind at least.
const SLOWEST: f64 = 0.5;
/// Lower than this no aircraft climbs any more: it is down before another drifts there, in millimetres.
const CLIMBS_ABOVE_MM: i32 = 2_500;
/// Above this speed a member that should hold drifts, in metres per second: more than the errors of its position show.
const DRIFTS_M_S: f64 = 1.5;
/// Its way is reckoned for so long ahead, in seconds: it is reported several times a second.
const AHEAD_S: f64 = 8.0;
/// One whose reports are received is in the air; from this time without a report on it may be down.
const ALOFT_FOR: Duration = Duration::from_secs(3);
/// A path straight up comes nearer to another from this difference on, in metres.
const NEARER_M: f64 = 0.5;
/// Spare height above one that drifts, in metres.
const ABOVE_M: f64 = 1.0;
/// An aircraft that loses its satellites from the same cause notices that within this time: its
/// flight controller reports the receiver once a second. A climb without a position takes it farther
/// with the wind than the others.
const SAME_CAUSE_WITHIN: Duration = Duration::from_millis(1_500);
/// The downwash of a multicopter reaches so far below it, in metres: an aircraft that sinks without
/// a position through it sinks faster.
pub(super) const WASH_M: f64 = 15.0;
/// The downwash reaches so far aside, in metres: 5 m, and the errors of two positions.
pub(super) const WASH_ASIDE_M: f64 = 6.5;

/// Where an aircraft that nothing steers may be from now on: within a distance of a path over the ground.
struct Reach {
    path: Path,
    radius_m: f64,
    /// Not higher than this, in millimetres.
    height_mm: i32,
    /// Nor lower.
    lowest_mm: i32,
}

/// Returns whether a member that left to land must be down: it is silent, and its descent is over.
pub(super) fn has_landed(now: Instant, track: &Track, at: Point) -> bool {
    track.is_silent && now.since(track.reported_at).as_secs_f64() > down_after_s(at.height_mm)
}

/// Returns the time until an aircraft at this height is down, in seconds.
fn down_after_s(height_mm: i32) -> f64 {
    (f64::from(height_mm.max(0)) / 1e3 / DESCENDS_M_S + STEERED_FOR_S).min(DOWN_AFTER_MOST_S)
}

/// Returns the seconds for which air of constant speed carries an aircraft within a time, which has to take on that speed.
fn carried_s(time_s: f64) -> f64 {
    let time_s = time_s.max(0.0);
    time_s - CARRIED_AFTER_S * (1.0 - libm::exp(-time_s / CARRIED_AFTER_S))
}

impl Clearance<'_> {
    /// How far the measured wind carries a member that nothing steers until it is down, over the ground.
    pub(super) fn drifts_m(&self, track: &Track) -> DVec2 {
        let drifts = track.adrift().zip(self.traffic.air().known_m_s);
        drifts.map_or(DVec2::ZERO, |(adrift, air_m_s)| air_m_s * carried_s(down_after_s(adrift.at.height_mm)))
    }

    /// Returns where a member that the swarm does not steer may be within so many seconds.
    fn reach(&self, now: Instant, track: &Track, ahead_s: f64) -> Option<Reach> {
        let Some(adrift) = track.adrift() else { return self.piloted(now, track) };
        let Adrift { at, since, received_at, .. } = adrift;
        let (past_s, mut down_s) = (now.since(since).as_secs_f64(), down_after_s(at.height_mm));
        // Its flight controller may keep its height: while it reports, it is in the air.
        if now.since(received_at) <= ALOFT_FOR {
            down_s = down_s.max(past_s + AHEAD_S);
        }
        if past_s >= down_s {
            return None;
        }
        let down_s = down_s.min(past_s + ahead_s);
        let (at_m, air) = (self.local(at).truncate(), self.traffic.air());
        let coasts_m = coasts_m(track.moves_m_s());
        let (from_m, to_m, radius_m) = match air.known_m_s {
            Some(air_m_s) => {
                let past_m = air_m_s * carried_s(past_s - STEERED_FOR_S) * SLOWEST;
                (past_m, coasts_m + air_m_s * carried_s(down_s), 0.0)
            }
            None => (DVec2::ZERO, coasts_m, air.most_m_s * carried_s(down_s)),
        };
        let path = Path { from_m: (at_m + from_m).extend(0.0), to_m: (at_m + to_m).extend(0.0) };
        Some(Reach { path, radius_m, height_mm: at.height_mm, lowest_mm: 0 })
    }

    /// Returns where a member that should hold drifts to in a pilot's hands.
    fn piloted(&self, now: Instant, track: &Track) -> Option<Reach> {
        let (at, _) = track.departure.filter(|(_, how)| *how == Ending::Holding)?;
        let over_ground_m_s = track.velocity_m_s.truncate();
        if track.is_silent || track.may_brake(now) || over_ground_m_s.length() < DRIFTS_M_S {
            return None;
        }
        let from_m = self.local(at).truncate();
        let path =
            Path { from_m: from_m.extend(0.0), to_m: (from_m + over_ground_m_s * AHEAD_S).extend(0.0) };
        let lowest_mm = at.height_mm.saturating_sub((self.clear_m() * 1e3) as i32);
        Some(Reach { path, radius_m: 0.0, height_mm: at.height_mm, lowest_mm })
    }

    /// Returns the members that may come within so many seconds to a path over the ground.
    fn reaches(&self, now: Instant, way: Path, ahead_s: f64) -> impl Iterator<Item = Reach> {
        let clear_m = self.clear_m();
        self.traffic.iter().enumerate().filter_map(move |(slot, track)| {
            let reach = (slot != self.assignment.slot()).then(|| self.reach(now, track, ahead_s))??;
            (reach.path.distance_m(&way) < clear_m + reach.radius_m).then_some(reach)
        })
    }

    /// The aircraft that drift over or past this one, as far as that is not known better.
    fn reaches_here(&self, now: Instant) -> impl Iterator<Item = Reach> {
        let here = self.ownship.point();
        let stands = here.map(|here| self.level(here, here));
        let all = stands.into_iter().flat_map(move |stands| self.reaches(now, stands, f64::INFINITY));
        all.filter(move |reach| here.is_some_and(|here| here.height_mm >= reach.lowest_mm))
    }

    /// Returns a path over the ground.
    fn level(&self, from: Point, to: Point) -> Path {
        let [from_m, to_m] = [from, to].map(|point| self.local(point).truncate().extend(0.0));
        Path { from_m, to_m }
    }

    /// Returns whether another may drift, before it is down, to where this aircraft takes off or to
    /// its path to its slot.
    pub(in super::super) fn is_take_off_drifted_over(&self, now: Instant) -> bool {
        let way = self.ownship.point().zip(self.assignment.route().first());
        way.is_some_and(|(home, &slot)| {
            self.reaches(now, self.level(home, slot), f64::INFINITY).next().is_some()
        })
    }

    /// Returns whether another drifts within the next seconds to where this aircraft flies until it
    /// could stop, at its height or above it.
    pub(in super::super) fn is_drifted_ahead(&self, now: Instant, target: Point, is_holding: bool) -> bool {
        let Some(here) = self.ownship.point() else { return false };
        let Path { from_m, to_m } = self.level(here, target);
        let left_m = (to_m - from_m).clamp_length_max(self.ownship.stopping_distance_m(is_holding));
        let clear_mm = ((self.clear_m() + ABOVE_M) * 0.75e3) as i32;
        self.reaches(now, Path { from_m, to_m: from_m + left_m }, AHEAD_S).any(|reach| {
            (reach.lowest_mm..reach.height_mm.saturating_add(clear_mm)).contains(&here.height_mm)
        })
    }

    /// Whether another may yet drift below or through the column of this aircraft.
    pub(in super::super) fn is_drifted_over(&self, now: Instant) -> bool {
        self.reaches_here(now).next().is_some()
    }

    /// Returns whether another has just begun to drift: this aircraft may lose its satellites next, from
    /// the same cause.
    pub(in super::super) fn may_drift_next(&self, now: Instant) -> bool {
        let begins = |track: &Track| track.adrift().is_some_and(|a| now < a.began_at + SAME_CAUSE_WITHIN);
        self.traffic.iter().any(begins)
    }

    /// Returns the position straight above this aircraft that is clear of all that drift towards
    /// it, above their downwash where there is room; none where it is there, where none does, and
    /// where it is down before.
    pub(in super::super) fn above_adrift(&self, now: Instant) -> Option<Point> {
        let here = self.ownship.point()?;
        let highest_mm = self.reaches_here(now).map(|reach| reach.height_mm).max()?;
        let [above_mm, off_wash_mm] =
            [self.clear_m(), self.clear_m().max(WASH_M)].map(|clear_m| ((clear_m + ABOVE_M) * 1e3) as i32);
        let most_mm = (self.config.height_most_m * 1e3) as i32;
        let height_mm = |above_mm: i32| highest_mm.saturating_add(above_mm).min(most_mm);
        let clear_mm = height_mm(above_mm);
        if here.height_mm >= clear_mm - above_mm / 4 || here.height_mm <= CLIMBS_ABOVE_MM {
            return None;
        }
        [height_mm(off_wash_mm), clear_mm]
            .map(|height_mm| Point { height_mm, ..here })
            .into_iter()
            .find(|&above| self.is_free_above(here, above))
    }

    /// Returns whether a climb comes no nearer to the other members than they are clear, or than they are now.
    fn is_free_above(&self, here: Point, above: Point) -> bool {
        let (stays, climbs) = (self.path(here, here), self.path(here, above));
        let is_steered =
            |(slot, track): &(usize, &Track)| *slot != self.assignment.slot() && track.adrift().is_none();
        let comes_no_nearer = |at: Point| {
            let there = self.path(at, at);
            let near_m = there.distance_m(&climbs);
            near_m >= self.clear_m() || near_m >= there.distance_m(&stays) - NEARER_M
        };
        self.traffic.iter().enumerate().filter(is_steered).all(|(slot, track)| {
            let mut reported = track.position.into_iter().chain(track.departure.map(|(at, _)| at));
            self.distance_m(slot, &climbs) >= self.clear_m() || reported.all(comes_no_nearer)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Airspace, at};
    use super::super::traffic::Air;
    use super::*;

    const NOW: Instant = Instant::from_secs(100);

    /// The middle one of three, with a wind of 4 m/s to the east.
    fn airspace() -> Airspace {
        let mut airspace = Airspace::of(1);
        airspace.traffic.set_air(Air { known_m_s: Some(DVec2::new(4.0, 0.0)), most_m_s: 4.0 });
        airspace
    }

    #[test]
    fn muscop_33_no_aircraft_takes_off_where_another_drifts() {
        let mut airspace = airspace();
        airspace.report_own(at(0.0, 0.0, 0.0), false);
        let blind = airspace.slot(0);
        let mut waits = |east_m: f64, after_s: u64| {
            airspace.traffic.report_adrift(NOW, blind, at(east_m, 0.0, 10.0));
            airspace.clearance().is_take_off_drifted_over(NOW + Duration::from_secs(after_s))
        };
        assert!(waits(-40.0, 0));
        assert!(!waits(60.0, 0), "it drifts away");
        assert!(!waits(-41.0, 60), "it is down");
    }

    #[test]
    fn muscop_33_an_aircraft_under_way_holds_before_one_that_drifts_across() {
        let mut airspace = airspace();
        let (blind, target) = (airspace.slot(0), at(0.0, 200.0, 20.0));
        let mut holds = |east_m: f64, height_m: f64| {
            airspace.report_own_flying(at(0.0, 0.0, height_m), true, wingbeat_geo::DVec3::Y * 5.0);
            airspace.traffic.report_adrift(NOW, blind, at(east_m, 12.0, 20.0));
            airspace.clearance().is_drifted_ahead(NOW, target, false)
        };
        assert!(holds(-20.0, 20.0));
        assert!(holds(-20.0, 15.0), "it sinks to there");
        assert!(!holds(-20.0, 40.0), "high above it");
        assert!(!holds(-80.0, 20.0), "it is not there within seconds");
        assert!(!holds(20.0, 20.0), "it drifts away");
    }

    /// A pilot took an aircraft that landed, in ALT_HOLD: the wind takes it along at once.
    #[test]
    fn muscop_33_a_slow_aircraft_in_a_pilots_hands_drifts_at_once_and_a_fast_one_brakes_first() {
        let climbs = |before_m_s: f64, after_ms: u64| {
            let mut airspace = airspace();
            let (taken, geometry) = (airspace.slot(0), airspace.assignment.geometry().clone());
            airspace.report_own(at(0.0, 0.0, 12.0), true);
            let after = |ms: u64| NOW + Duration::from_millis(ms);
            let mut east_m = -30.0;
            airspace.traffic.report(NOW, taken, at(east_m, 0.0, 10.0), &geometry);
            east_m += before_m_s;
            airspace.traffic.report(after(1_000), taken, at(east_m, 0.0, 10.0), &geometry);
            airspace.traffic.report_departure(taken, at(east_m, 0.0, 10.0), Ending::Holding);
            airspace.traffic.report(after(after_ms), taken, at(east_m, 0.0, 10.0), &geometry);
            // 2 m/s towards this aircraft.
            let there = at(east_m + 1.0, 0.0, 10.0);
            airspace.traffic.report(after(after_ms + 500), taken, there, &geometry);
            airspace.traffic.report_departure(taken, at(-12.0, 0.0, 10.0), Ending::Holding);
            airspace.clearance().above_adrift(after(after_ms + 500)).is_some()
        };
        assert!(climbs(0.4, 3_000));
        assert!(!climbs(0.4, 1_500), "it has just been taken");
        assert!(!climbs(6.0, 3_000) && climbs(6.0, 7_000), "it may still brake");
        assert!(climbs(-3.0, 3_000), "it moves back: the wind takes it along");
        assert!(!climbs(-6.0, 3_000), "it swings back");
    }
}
