//! Those who are no longer with us are in the way: where they may be, and whether the next leg keeps clear.
//!
//! A swarm is safe because all fly the same leg at the same time. Whoever is lost breaks that: it may hover
//! where another is about to pass. So nobody goes on past the place of a lost member: the leader waits until
//! the way is clear, and if it does not become clear, all land where they are.

use wingbeat_geo::{DVec3, Frame, Instant, Position};
use wingbeat_wire::{Ending, Point};

use super::conflict::Way;
use super::members::Slots;
use super::{Swarm, plan};

/// What lies on the way to a landing place.
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
    fn local(&self, place: Point) -> DVec3 {
        let position =
            |p: Point| Position { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: 0 };
        let here = self.at.map(|at| at.point());
        let origin = self.plan.waypoints.first().copied().or(here).unwrap_or_default();
        let over_ground = Frame::new(position(origin)).to_local(position(place)).truncate();
        over_ground.extend(f64::from(place.height_mm) / 1e3)
    }

    pub(super) fn way(&self, from: Point, to: Point) -> Way {
        Way { from_m: self.local(from), to_m: self.local(to) }
    }

    fn slot_place(&self, slot: usize, waypoint: usize) -> Option<Point> {
        plan::slot_place(&self.plan, slot, waypoint.min(self.plan.waypoints.len() - 1))
    }

    /// Whether a member that is out keeps clear of `ways`, wherever it may be.
    pub(super) fn is_clear(&self, slot: usize, ways: &[Way]) -> bool {
        let Some(peer) = self.peers.get(slot) else { return true };
        let (from, by, to) = match peer.left {
            Some((_, Ending::Down)) => return true,
            // It crosses at heights and times that are its own.
            Some((_, Ending::Returning)) => return false,
            Some((at, Ending::Holding | Ending::Landing)) => (at, at, Point { height_mm: 0, ..at }),
            None => {
                let in_slot = self.in_slot >> slot & 1 == 1 || self.all_in_slots;
                let at_waypoint = usize::from(peer.reached.unwrap_or(0));
                let Some((here, next)) =
                    self.slot_place(slot, at_waypoint).zip(self.slot_place(slot, at_waypoint + 1))
                else {
                    return false;
                };
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
        ways.iter().all(|way| may_be.iter().all(|m| m.distance_m(way) >= self.config.separation_m))
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
                let ends = self.slot_place(slot, next - 1).zip(self.slot_place(slot, next));
                ends.is_none_or(|(from, to)| {
                    let leg = [self.way(from, to)];
                    Self::each(obstacles).any(|s| !self.is_clear(s, &leg))
                })
            });
        self.blocked_since = blocked.then(|| self.blocked_since.unwrap_or(now));
    }

    /// Notes since when a predecessor that is out keeps us on the ground.
    pub(super) fn survey_take_off(&mut self, now: Instant) {
        let out = self.out();
        let blocked = self.predecessors().find(|&s| !self.makes_way(s)).is_some_and(|s| out >> s & 1 == 1);
        self.blocked_since = blocked.then(|| self.blocked_since.unwrap_or(now));
    }

    /// Whether somebody has gone on from `waypoint` and may wait on our leg.
    pub(crate) fn is_left_behind(&self, waypoint: u16) -> bool {
        let next = usize::from(waypoint) + 1;
        let (Some(&from), Some(&to)) = (self.route.get(next - 1), self.route.get(next)) else {
            return false;
        };
        let own = self.way(from, to);
        Self::each(self.others()).filter(|&slot| self.peers[slot].reached > Some(waypoint)).any(|slot| {
            self.slot_place(slot, next)
                .is_none_or(|there| self.way(there, there).distance_m(&own) < self.config.separation_m)
        })
    }

    /// Whether the way to our landing place is clear. Those who wait on it leave first.
    pub(crate) fn landing_ahead(&self) -> Ahead {
        let Some((place, at)) = self.landing_place().zip(self.at) else { return Ahead::Waits };
        let ways = [self.way(at.point(), place), self.way(place, Point { height_mm: 0, ..place })];
        let near = |at: Point| ways.iter().any(|w| self.way(at, at).distance_m(w) < self.config.separation_m);
        let last = self.plan.waypoints.len() - 1;
        let mut ahead = Ahead::Clear;
        for slot in (0..self.peers.len()).filter(|&s| s != self.slot && s != self.leader) {
            ahead = ahead.max(match self.peers[slot].left {
                Some((at, Ending::Down)) if near(Point { height_mm: 0, ..at }) => Ahead::Blocked,
                Some((_, Ending::Down)) => Ahead::Clear,
                Some(_) if !self.is_clear(slot, &ways) => Ahead::Waits,
                Some(_) => Ahead::Clear,
                None if self.coming_down >> slot & 1 == 1 => Ahead::Clear,
                None if self.out() >> slot & 1 == 1 => match self.is_clear(slot, &ways) {
                    true => Ahead::Clear,
                    false => Ahead::Blocked,
                },
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
