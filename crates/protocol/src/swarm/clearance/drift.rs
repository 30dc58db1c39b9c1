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
/// A member that holds has stopped after this, in seconds.
const STOPS_WITHIN_S: f64 = 6.0;
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
const WASH_M: f64 = 15.0;

/// Where an aircraft that nothing steers may be from now on: within a distance of a path over the ground.
struct Reach {
    path: Path,
    radius_m: f64,
    /// Not higher than this, in millimetres.
    height_mm: i32,
    /// Nor lower.
    lowest_mm: i32,
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

    fn reach(&self, now: Instant, track: &Track) -> Option<Reach> {
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

    /// Where a member that should hold drifts to in a pilot's hands.
    fn piloted(&self, now: Instant, track: &Track) -> Option<Reach> {
        let (at, _) = track.departure.filter(|(_, how)| *how == Ending::Holding)?;
        let over_ground_m_s = track.velocity_m_s.truncate();
        let has_had_time = now.since(track.departed_at).as_secs_f64() >= STOPS_WITHIN_S;
        if track.is_silent || !has_had_time || over_ground_m_s.length() < DRIFTS_M_S {
            return None;
        }
        let from_m = self.local(at).truncate();
        let path =
            Path { from_m: from_m.extend(0.0), to_m: (from_m + over_ground_m_s * AHEAD_S).extend(0.0) };
        let lowest_mm = at.height_mm.saturating_sub((self.clear_m() * 1e3) as i32);
        Some(Reach { path, radius_m: 0.0, height_mm: at.height_mm, lowest_mm })
    }

    /// The aircraft that drift over or past this one, as far as that is not known better.
    fn reaches_here(&self, now: Instant) -> impl Iterator<Item = Reach> {
        let here = self.ownship.point();
        let here_m = here.map(|here| self.local(here).truncate().extend(0.0));
        let clear_m = self.clear_m();
        self.traffic.iter().enumerate().filter_map(move |(slot, track)| {
            let reach = (slot != self.assignment.slot()).then(|| self.reach(now, track))??;
            let stands = here_m.map(|from_m| Path { from_m, to_m: from_m })?;
            let is_above = here.is_some_and(|here| here.height_mm >= reach.lowest_mm);
            (is_above && reach.path.distance_m(&stands) < clear_m + reach.radius_m).then_some(reach)
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
