//! Those who are no longer with us are in the way: where they may be, and whether the next leg keeps clear.
//!
//! A swarm is safe because all fly the same leg at the same time. Whoever is lost breaks that: it may hover
//! where another is about to pass. So nobody goes on past the place of a lost member: the leader waits until
//! the way is clear, and if it does not become clear, all land where they are.

use wingbeat_geo::{DVec3, Duration, Frame, Instant, Position};
use wingbeat_wire::{Ending, Point};

use super::Swarm;
use super::conflict::Way;
use super::members::{STALE_S, Slots};
use crate::Telemetry;

/// How far aircraft stray from their ways: satellite positions, wind and arrival.
pub(super) const STRAY_M: f64 = 3.0;

/// From a word that tells us to stop to the beginning of the braking: our period and the flight controller's. That
/// the word itself is old is in the place that it tells.
const REACTION_S: f64 = 0.5;

/// Of the distance between landing places: so far aircraft on their way there keep apart.
const LANDING_SHARE: f64 = 0.8;

/// Of a place told longer ago not even the way that another needs to stop is sure.
const FRESH: Duration = Duration::from_secs(2);

/// Nor that it is still there: BRAKE swings back (3.5 m behind 10 m/s, as ArduCopter 3.5.7 is simulated).
const DRIFT_M: f64 = 4.0;

/// Who said that it stops, and was not heard since, may still do so.
const SAID_HOLDS: Duration = Duration::from_secs(1);

/// Who held behind another goes on when it could stop behind it from this speed.
const RESUMED_M_S: f64 = 5.0;

/// A braking that any multicopter manages (ArduCopter's guided default is 2.5 m/s², its brake mode's 7.5).
const BRAKING_M_S2: f64 = 2.5;

/// So long a report of the flight controller says where we are by now.
const REPORT_HOLDS: Duration = Duration::from_millis(500);

/// A braking that no multicopter goes beyond by much: who says that it stops may stand as soon as that.
const HARD_BRAKING_M_S2: f64 = 5.0;

/// Who holds goes on when it is slower than this: ArduCopter begins a guided target from standing, whatever the
/// speed, and those behind would take it for one that flies on.
const STANDS_M_S: f64 = 1.0;

/// Reports of the flight controller that are nearer to each other tell nothing of an acceleration, seconds.
const REPORTS_APART_S: f64 = 0.1;

/// What lies on a way that we are about to fly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ahead {
    /// Nobody.
    Clear,
    /// Somebody who will leave.
    Waits,
    /// Somebody who may not.
    Blocked,
}

impl<F: Copy + PartialEq> Swarm<F> {
    pub(super) fn local(&self, place: Point) -> DVec3 {
        if self.planned() {
            return self.chart.local(place);
        }
        let position =
            |p: Point| Position { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: 0 };
        let here = self.at.map(|at| at.point());
        let origin = here.unwrap_or_default();
        let over_ground = Frame::new(position(origin)).to_local(position(place)).truncate();
        over_ground.extend(f64::from(place.height_mm) / 1e3)
    }

    pub(super) fn way(&self, from: Point, to: Point) -> Way {
        Way { from_m: self.local(from), to_m: self.local(to) }
    }

    pub(crate) fn slot_place(&self, slot: usize, waypoint: usize) -> Option<Point> {
        self.chart.slot_place(&self.plan, slot, waypoint.min(self.plan.waypoints.len() - 1))
    }

    /// The same in metres, for what is asked with every message.
    fn slot_place_m(&self, slot: usize, waypoint: usize) -> Option<DVec3> {
        self.chart.slot_place_m(&self.plan, slot, waypoint.min(self.plan.waypoints.len() - 1))
    }

    /// A slot's leg to a waypoint.
    fn leg(&self, slot: usize, to: usize) -> Option<Way> {
        let (from_m, to_m) = self.slot_place_m(slot, to.checked_sub(1)?).zip(self.slot_place_m(slot, to))?;
        Some(Way { from_m, to_m })
    }

    /// Whether a member keeps clear of `ways`, wherever it may be. One that is with us leaves its place only when
    /// its way is clear of us.
    pub(super) fn is_clear(&self, slot: usize, ways: &[Way]) -> bool {
        let Some(peer) = self.peers.get(slot) else { return true };
        let clear_m = self.config.separation_m + STRAY_M;
        let (from, by, to) = match peer.left {
            Some((_, Ending::Down)) => return true,
            Some((at, Ending::Returning)) => {
                return self.way_home(slot, at).is_some_and(|home| {
                    ways.iter().all(|way| home.iter().all(|part| part.distance_m(way) >= clear_m))
                });
            }
            Some((at, Ending::Holding | Ending::Landing)) => (at, at, Point { height_mm: 0, ..at }),
            None => {
                let in_slot = self.in_slot >> slot & 1 == 1 || self.all_in_slots;
                let at_waypoint = usize::from(peer.reached.unwrap_or(0));
                let Some((here, next)) =
                    self.slot_place(slot, at_waypoint).zip(self.slot_place(slot, at_waypoint + 1))
                else {
                    return false;
                };
                let stays = self.out() >> slot & 1 == 0 && peer.going <= peer.reached;
                let next = if stays { here } else { next };
                match (peer.reached, peer.at) {
                    // At the last waypoint that it told, or on the next leg.
                    (Some(_), _) => (here, here, next),
                    // In its slot; it may have had a start that we had not.
                    (None, _) if in_slot => (here, here, next),
                    // Standing, climbing, or on its way to its slot.
                    (None, Some(at)) => {
                        let above = Point { height_mm: at.height_mm.max(self.first_height_mm()), ..at };
                        (at, above, here)
                    }
                    (None, None) => return false,
                }
            }
        };
        let may_be = [self.way(from, by), self.way(by, to)];
        ways.iter().all(|way| may_be.iter().all(|m| m.distance_m(way) >= clear_m))
    }

    /// Members that are out and not known to be down.
    fn obstacles(&self) -> Slots {
        let down = Self::each(self.left).filter(|&s| matches!(self.peers[s].left, Some((_, Ending::Down))));
        self.out() & !(1 << self.slot) & !down.fold(0, |bits, s| bits | 1 << s)
    }

    /// Looks whether all who follow us can fly the leg from `waypoint` clear of those who are out; notes since
    /// when not. At the last, each looks for itself ([`Swarm::landing_ahead`]).
    pub(crate) fn survey(&mut self, now: Instant, waypoint: u16) {
        let (obstacles, next) = (self.obstacles(), usize::from(waypoint) + 1);
        let blocked = obstacles != 0
            && next < self.plan.waypoints.len()
            && Self::each(self.others() | 1 << self.slot).any(|slot| {
                self.leg(slot, next)
                    .is_none_or(|leg| Self::each(obstacles).any(|s| !self.is_clear(s, &[leg])))
            });
        self.blocked_since = blocked.then(|| self.blocked_since.unwrap_or(now));
    }

    /// Notes since when a predecessor that is out keeps us on the ground, and those before us. All who wait
    /// behind it count at once, from when the last made room: one after the other they would keep those who fly
    /// waiting for longer than a battery lasts.
    pub(super) fn survey_take_off(&mut self, now: Instant) {
        let out = self.out();
        let blocked =
            !self.has_room() && self.predecessors().any(|s| out >> s & 1 == 1 && !self.makes_way(s));
        self.blocked_since = blocked.then(|| self.blocked_since.unwrap_or(now).max(self.stalled.2));
    }

    /// Whether our leg from `waypoint` is clear: those whose place at this waypoint lies on it leave first, and
    /// nobody may wait on it already.
    pub(crate) fn leg_ahead(&self, waypoint: u16) -> Ahead {
        let next = usize::from(waypoint) + 1;
        let (Some(&from), Some(&to)) = (self.route.get(next - 1), self.route.get(next)) else {
            return Ahead::Clear;
        };
        let own = self.way(from, to);
        let reach_m = self.config.separation_m + STRAY_M;
        let near = |at_m: DVec3| Way { from_m: at_m, to_m: at_m }.distance_m(&own) < reach_m;
        let out = self.out();
        let mut ahead = Ahead::Clear;
        for slot in (0..self.peers.len()).filter(|&s| s != self.slot) {
            let peer = &self.peers[slot];
            ahead = ahead.max(if out >> slot & 1 == 1 {
                if self.is_clear(slot, &[own]) { Ahead::Clear } else { Ahead::Waits }
            } else if peer.reached > Some(waypoint) {
                if self.slot_place_m(slot, next).is_none_or(near) { Ahead::Blocked } else { Ahead::Clear }
            } else if peer.going <= Some(waypoint) && self.slot_place_m(slot, next - 1).is_none_or(near) {
                Ahead::Waits
            } else {
                Ahead::Clear
            });
        }
        ahead
    }

    /// Whether somebody's leg from `waypoint` leads past our place there: it waits until it hears that we left.
    pub(crate) fn is_waited_for(&self, waypoint: u16) -> bool {
        let next = usize::from(waypoint) + 1;
        let Some(&here) = self.route.get(next - 1) else { return false };
        let here = self.way(here, here);
        Self::each(self.others()).any(|slot| {
            let reach_m = self.config.separation_m + STRAY_M;
            self.leg(slot, next).is_none_or(|leg| leg.distance_m(&here) < reach_m)
        })
    }

    /// Where we are by now. Reports come four times a second, and others take from what we tell how fast we fly.
    pub(crate) fn here(&self, now: Instant) -> Option<Point> {
        let at = self.at?;
        let past_s = now.since(self.at_reported).min(REPORT_HOLDS).as_secs_f64();
        Some(self.chart.moved(at.point(), at.velocity_m_s * past_s))
    }

    /// Notes how much faster we grow. Whoever sets off is faster than it last knew when the brakes take hold.
    pub(super) fn note_speed(&mut self, now: Instant, at: &Telemetry) {
        let past_s = now.since(self.at_since).as_secs_f64();
        let speed_m_s = at.velocity_m_s.length();
        match self.at {
            Some(before) if past_s < STALE_S => {
                let gained_m_s = speed_m_s - before.velocity_m_s.length();
                // Two reports at once tell no acceleration.
                if past_s >= REPORTS_APART_S {
                    self.gaining_m_s2 = (gained_m_s / past_s).clamp(0.0, BRAKING_M_S2);
                    self.at_since = now;
                }
            }
            _ => (self.gaining_m_s2, self.at_since) = (0.0, now),
        }
    }

    /// How far we fly on if we are told now to stop. Who holds goes on only to get up to speed.
    pub(super) fn stopping_m(&self, at: &Telemetry, held: bool) -> f64 {
        let told_m_s = at.velocity_m_s.length().max(if held { RESUMED_M_S } else { 0.0 });
        let braked_m_s = told_m_s + self.gaining_m_s2 * REACTION_S;
        (told_m_s + braked_m_s) / 2.0 * REACTION_S + braked_m_s * braked_m_s / (2.0 * BRAKING_M_S2)
    }

    /// Whether who was told to hold has come to stand.
    pub(crate) fn stands(&self) -> bool {
        self.at.is_some_and(|at| at.velocity_m_s.length() < STANDS_M_S)
    }

    /// Whether somebody was last known so near ahead of us, on our way to `target`, that we stop now to come
    /// to stand clear of it. Whoever flies on ahead tells so, and its place flies with it.
    pub(crate) fn closes_up(&self, now: Instant, target: Point, held: bool) -> bool {
        let Some((at, here)) = self.at.zip(self.here(now)) else { return false };
        let way = self.chart.offset_m(here, target);
        let Some(along) = way.try_normalize() else { return false };
        let stop_m = self.stopping_m(&at, held);
        let far_m = self.config.separation_m + STRAY_M;
        let (clear_m, drift_m) = match self.state {
            // Those who land beside us are as near as the plan has them.
            super::State::MovingToLand => {
                let landing_m = f64::from(self.plan.landing_distance_mm) / 1e3;
                (far_m.min(landing_m * LANDING_SHARE), 0.0)
            }
            _ => (far_m, DRIFT_M),
        };
        (0..self.peers.len()).filter(|&s| s != self.slot).any(|slot| {
            let peer = &self.peers[slot];
            let (place, velocity_m_s) = match peer.left {
                Some((_, Ending::Down)) => (None, DVec3::ZERO),
                Some((at, _)) => (Some(at), DVec3::ZERO),
                None => (peer.at, peer.velocity_m_s),
            };
            // Had it begun to stop right after its last word, it would stand there.
            let fresh = now.since(peer.moved_at) < FRESH;
            let its_speed_m_s = if fresh { velocity_m_s.dot(along).max(0.0) } else { 0.0 };
            let holds = peer.holds_at.is_some_and(|at| now.since(at) < SAID_HOLDS);
            let its_braking_m_s2 = if holds { HARD_BRAKING_M_S2 } else { BRAKING_M_S2 };
            let its_stop_m = its_speed_m_s * its_speed_m_s / (2.0 * its_braking_m_s2);
            let clear_m = if fresh { clear_m } else { clear_m + drift_m };
            place.is_some_and(|place| {
                let off = self.chart.offset_m(here, place);
                let ahead_m = off.dot(along);
                // Whatever happens we stand at the target in the end.
                let reach_m = (stop_m - its_stop_m).clamp(0.0, way.length());
                ahead_m > 0.0 && (off - along * ahead_m.min(reach_m)).length() < clear_m
            })
        })
    }

    /// Whether the way to our landing place is clear. Those who wait on it leave first.
    pub(crate) fn landing_ahead(&self) -> Ahead {
        let Some((place, at)) = self.landing_place().zip(self.at) else { return Ahead::Waits };
        let ways = [self.way(at.point(), place), self.way(place, Point { height_mm: 0, ..place })];
        let clear_m = self.config.separation_m + STRAY_M;
        let near = |at: Point| ways.iter().any(|w| self.way(at, at).distance_m(w) < clear_m);
        let last = self.plan.waypoints.len() - 1;
        let mut ahead = Ahead::Clear;
        for slot in (0..self.peers.len()).filter(|&s| s != self.slot && s != self.leader) {
            ahead = ahead.max(match self.peers[slot].left {
                Some((at, Ending::Down)) if near(Point { height_mm: 0, ..at }) => Ahead::Blocked,
                Some((_, Ending::Down)) => Ahead::Clear,
                Some(_) if !self.is_clear(slot, &ways) => Ahead::Waits,
                Some(_) => Ahead::Clear,
                // It may lead others, or have gone on with others: only the place of its own slot is nobody
                // else's, and so is ours.
                None if self.out() >> slot & 1 == 1 => Ahead::Blocked,
                None if self.coming_down >> slot & 1 == 1 => Ahead::Clear,
                None if self.slot_place(slot, last).is_none_or(near) => Ahead::Waits,
                None => Ahead::Clear,
            });
        }
        ahead
    }

    /// When a blocked way ends the flight.
    pub(crate) fn blocked_until(&self) -> Instant {
        self.blocked_since.map_or(Instant::NEVER, |since| {
            since + self.config.hold_before_landing + self.config.hold_before_landing
        })
    }
}
