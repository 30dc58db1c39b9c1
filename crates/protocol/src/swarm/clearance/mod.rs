//! Whether a path is clear of the other members, wherever they may be.
//!
//! [`Traffic`] owns what the members reported; [`Clearance`] combines that with the plan and answers questions: is the
//! next leg clear ([`legs`]), may this aircraft climb and fly home ([`returning`]), where can it land
//! ([`landing_site`]), what may members do that are not received ([`lost_link`]). It reads and never writes.

mod landing_site;
mod legs;
mod lost_link;
mod returning;
mod traffic;

use wingbeat_geo::DVec3;
use wingbeat_wire::{Ending, Point};

use super::Config;
use super::assignment::Assignment;
use super::landing::Landing;
use super::membership::Membership;
use super::ownship::Ownship;
use super::path::Path;
use super::slot_set::SlotSet;
use super::take_off::TakeOff;
pub(crate) use traffic::{STALE_S, Traffic};

/// How far aircraft stray from their paths: satellite positions, wind and arrival.
pub(crate) const STRAY_M: f64 = 3.0;

/// What blocks a path that this aircraft is about to fly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathStatus {
    /// Nothing.
    Clear,
    /// A member that will leave.
    Occupied,
    /// A member that may not leave.
    Blocked,
}

/// What the swarm knows of the airspace around this aircraft.
#[derive(Clone, Copy)]
pub(crate) struct Clearance<'a> {
    config: &'a Config,
    ownship: &'a Ownship,
    assignment: &'a Assignment,
    members: &'a Membership,
    traffic: &'a Traffic,
    take_off: &'a TakeOff,
    landing: &'a Landing,
}

impl<'a> Clearance<'a> {
    pub(super) fn new(
        config: &'a Config,
        ownship: &'a Ownship,
        assignment: &'a Assignment,
        members: &'a Membership,
        traffic: &'a Traffic,
        take_off: &'a TakeOff,
        landing: &'a Landing,
    ) -> Self {
        Self { config, ownship, assignment, members, traffic, take_off, landing }
    }

    fn local(&self, point: Point) -> DVec3 {
        self.assignment.local(point, self.ownship.point())
    }

    pub(super) fn path(&self, from: Point, to: Point) -> Path {
        Path { from_m: self.local(from), to_m: self.local(to) }
    }

    /// Straight down to the ground.
    fn descent(&self, from: Point) -> Path {
        self.path(from, Point { height_mm: 0, ..from })
    }

    fn over_ground_m(&self, a: Point, b: Point) -> f64 {
        (self.local(a) - self.local(b)).truncate().length()
    }

    /// Nearer than this a path is not clear.
    fn clear_m(&self) -> f64 {
        self.config.separation_m + STRAY_M
    }

    /// Whether a member keeps clear of `paths`, wherever it may be. One that is present leaves its position only when
    /// its path is clear of this aircraft.
    pub(super) fn is_clear(&self, slot: usize, paths: &[Path]) -> bool {
        let Some(track) = self.traffic.get(slot) else { return true };
        let clear_m = self.clear_m();
        let (from, by, to) = match track.departure {
            Some((_, Ending::Down)) => return true,
            Some((at, Ending::Returning)) => {
                return self.return_path(slot, at).is_some_and(|home| {
                    paths.iter().all(|path| home.iter().all(|part| part.distance_m(path) >= clear_m))
                });
            }
            Some((at, Ending::Holding | Ending::Landing)) => (at, at, Point { height_mm: 0, ..at }),
            None => {
                let waypoint = usize::from(track.reached.unwrap_or(0));
                let Some((here, next)) = self
                    .assignment
                    .slot_position(slot, waypoint)
                    .zip(self.assignment.slot_position(slot, waypoint + 1))
                else {
                    return false;
                };
                let stays = !self.members.absent().contains(slot) && track.departed_for <= track.reached;
                let next = if stays { here } else { next };
                match (track.reached, track.position) {
                    // At the last waypoint that it reported, or on the next leg.
                    (Some(_), _) => (here, here, next),
                    // In its slot; it may have been started when this aircraft was not.
                    (None, _) if self.take_off.is_in_slot(slot) => (here, here, next),
                    // Standing, climbing, or on its way to its slot.
                    (None, Some(at)) => {
                        let first_mm = self.assignment.first_height_mm();
                        let above = Point { height_mm: at.height_mm.max(first_mm), ..at };
                        (at, above, here)
                    }
                    (None, None) => return false,
                }
            }
        };
        let may_be = [self.path(from, by), self.path(by, to)];
        paths.iter().all(|path| may_be.iter().all(|m| m.distance_m(path) >= clear_m))
    }

    /// Whether all other members keep clear of `paths`, wherever they may be.
    fn is_clear_of_all(&self, paths: &[Path]) -> bool {
        self.members.peers().iter().all(|slot| self.is_clear(slot, paths))
    }

    /// Members that are absent and not known to be down.
    fn obstacles(&self) -> SlotSet {
        let is_down = |&slot: &usize| self.traffic.ending(slot) == Some(Ending::Down);
        (self.members.absent() & self.members.peers()) - self.members.left().iter().filter(is_down).collect()
    }

    /// Whether an absent member no longer keeps this aircraft from taking off: it is down, or clear of our path
    /// wherever it may be.
    pub(super) fn makes_room(&self, slot: usize) -> bool {
        if !self.members.absent().contains(slot) {
            return false;
        }
        let Some((home, &to)) = self.ownship.point().zip(self.assignment.route().first()) else {
            return false;
        };
        let above = Point { height_mm: self.assignment.first_height_mm(), ..home };
        self.is_clear(slot, &[self.path(home, above), self.path(above, to)])
    }
}
