//! Rejoining a flight that this machine does not remember: its aircraft was left in flight by the machine before, which died.
//!
//! What the flight is does not change after the take-off: its number, the plan, and where each aircraft took off. Another keeps
//! that on the ground ([`FlightRecord`]), and hands it to the next machine. How far along the route the aircraft was is in
//! [`Place::key`], which the guardian keeps. With both the aircraft is as one that was out of contact: it stands where it was
//! stopped, says so at once, receives the others for [`LISTENS`], and flies on. That the others had lost it, and what the leader
//! does when it receives it again from farther behind, is the flight's (`docs/protocols/muscop.md`).

use heapless::Vec;
use serde::{Deserialize, Serialize};
use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{Point, SWARM_MAX, WAYPOINTS_MAX};

use super::assignment::Assignment;
use super::messages::Changes;
use super::plan::Plan;
use super::take_off::TakeOff;
use super::{State, Swarm};
use crate::Actions;

/// Of messages that are broadcast five times a second one is received in this time where four in five are lost.
pub const LISTENS: Duration = Duration::from_secs(5);

/// What a swarm's flight is, for the machine that flies it after this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlightRecord {
    /// The number of the flight, never 0.
    pub flight: u32,
    /// Its plan.
    pub plan: Plan,
    /// Where the aircraft of each slot stood before it took off, as far as that was received.
    pub homes: Vec<Option<Point>, SWARM_MAX>,
}

/// How far along the route an aircraft is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At this waypoint.
    At(u16),
    /// On its way to this one, which is not the first.
    To(u16),
}

/// The bits of a key that say how far along the route the aircraft is.
const PLACE_BITS: u32 = 16;
const _: () = assert!(WAYPOINTS_MAX <= 1 << (PLACE_BITS - 1), "a place of every route fits");

impl Place {
    /// Names a flight and a place on its route in one number, never 0: the lowest bits are the place.
    fn key(self, flight: u32, plan_hash: u64) -> u64 {
        let number = match self {
            Self::At(waypoint) => u64::from(waypoint) << 1,
            Self::To(waypoint) => u64::from(waypoint) << 1 | 1,
        };
        Self::flight_key(flight, plan_hash) | number & ((1 << PLACE_BITS) - 1)
    }

    /// The place of a key of this flight; none where it is of another.
    fn of_key(key: u64, flight: u32, plan_hash: u64) -> Option<Self> {
        if key >> PLACE_BITS << PLACE_BITS != Self::flight_key(flight, plan_hash) {
            return None;
        }
        let waypoint = (key as u16) >> 1;
        Some(if key & 1 == 0 { Self::At(waypoint) } else { Self::To(waypoint) })
    }

    fn flight_key(flight: u32, plan_hash: u64) -> u64 {
        // The highest bit is set: no flight's key is 0. A prime spreads the number over the others.
        let mixed = plan_hash ^ u64::from(flight).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed | 1 << (u64::BITS - 1)) >> PLACE_BITS << PLACE_BITS
    }
}

impl<F: Copy + PartialEq> Swarm<F> {
    /// What the flight is, once a plan is adopted.
    pub(crate) fn flight_record(&self) -> Option<FlightRecord> {
        let assignment = &self.assignment;
        let home = |slot| match slot == assignment.slot() {
            true => self.ownship.home(),
            false => self.traffic.home(slot),
        };
        assignment.is_planned().then(|| FlightRecord {
            flight: assignment.flight(),
            plan: assignment.plan().clone(),
            homes: (0..assignment.plan().slots.len()).map(home).collect(),
        })
    }

    /// The key of the flight and of the place on its route, where an aircraft that was left there can go on. Where one is aside,
    /// or the swarm lands or returns, it cannot: what it would have to know is not on the route.
    pub(crate) fn place_key(&self, place: Place) -> Option<u64> {
        let is_on_route = matches!(self.state, State::Flying(_))
            && !self.is_aside()
            && self.landing.leader_site().is_none()
            && !self.landing.is_recalled();
        is_on_route.then_some(place.key(self.assignment.flight(), self.assignment.plan_hash()?))
    }

    /// Takes what the flight of before is, before anything is known of the aircraft; or forgets it. Whether it was taken: a record
    /// that is not of this aircraft, or that its configuration cannot fly, is not.
    pub(crate) fn remember(&mut self, now: Instant, record: Option<&FlightRecord>) -> bool {
        let Some(record) = record else {
            self.forget(now);
            return false;
        };
        if self.state != State::Start || self.assignment.is_planned() || self.ownship.telemetry().is_some() {
            return false;
        }
        // Of a datagram the reading checks that; a file may hold anything.
        let homes = &record.homes;
        if record.plan.check().is_err()
            || homes.len() > record.plan.slots.len()
            || homes.iter().flatten().any(|home| home.check().is_err())
        {
            return false;
        }
        let plan = record.plan.clone();
        if self.adopt(now, record.flight, plan, &mut Changes::default()).is_err() {
            return false;
        }
        for (slot, home) in record.homes.iter().enumerate() {
            let Some(home) = *home else { continue };
            if slot == self.assignment.slot() {
                self.ownship.set_home(Some(home));
            } else {
                self.traffic.report_home(slot, home);
            }
        }
        true
    }

    /// Messages of that flight may have been received meanwhile, among them that it ends: nothing of it is left.
    fn forget(&mut self, now: Instant) {
        if self.remembers_flight() {
            self.assignment = Assignment::none();
            self.members = Default::default();
            self.traffic = Default::default();
            self.setup.forget();
            self.take_off = TakeOff::begin(now);
            self.landing = Default::default();
            self.timers.keep_free_running();
            self.ownship.set_home(None);
        }
    }

    /// Whether the flight of before is remembered, and not rejoined yet.
    pub(crate) fn remembers_flight(&self) -> bool {
        self.state == State::Start && self.assignment.is_planned()
    }

    /// The place of a key, where it is of the flight that is remembered.
    pub(crate) fn remembered_place(&self, key: u64) -> Option<Place> {
        if !self.remembers_flight() || !self.ownship.is_armed() {
            return None;
        }
        let hash = self.assignment.plan_hash()?;
        let place = Place::of_key(key, self.assignment.flight(), hash)?;
        let (Place::At(waypoint) | Place::To(waypoint)) = place;
        (usize::from(waypoint) < self.assignment.route().len() && place != Place::To(0)).then_some(place)
    }

    /// The aircraft is in this state of the flight again. Silence counts from now on, and where it flies to a target it holds
    /// first.
    pub(crate) fn rejoin(&mut self, now: Instant, flight: F, target: Option<Point>, out: &mut Actions) {
        self.state = State::Flying(flight);
        self.setup.begin_state();
        self.take_off.begin_state(now);
        self.members.begin_watch(now);
        self.hold_found(now, target, now + LISTENS, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_its_flight_and_its_place_and_is_never_nothing() {
        for place in [Place::At(0), Place::To(1), Place::At(599), Place::To(599)] {
            for (flight, hash) in [(1, 0), (7, 0x1234_5678_9abc_def0), (u32::MAX, u64::MAX)] {
                let key = place.key(flight, hash);
                assert_ne!(key, 0);
                assert_eq!(Place::of_key(key, flight, hash), Some(place));
                assert_eq!(Place::of_key(key, flight ^ 2, hash), None, "another flight");
                assert_eq!(Place::of_key(key, flight, hash ^ 1 << 40), None, "another plan");
            }
        }
    }
}
