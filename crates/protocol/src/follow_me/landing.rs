//! Where a slave comes down: where it is, or in the formation drawn together around the leader; and beside whoever
//! stands there already, who landed before because its leader was silent or its operator said so.

use wingbeat_geo::{DVec2, DVec3, Frame};
use wingbeat_wire::{Ending, Point};

use super::{FollowMe, Landing, State, position};
use crate::swarm::plan;

/// How far beside our place we look for a free one, metres.
const RINGS_M: [f64; 3] = [10.0, 15.0, 20.0];
/// Directions of each ring.
const DIRECTIONS: u32 = 16;
/// How far aircraft stray from their places: satellite positions, wind and arrival.
const STRAY_M: f64 = 3.0;

impl FollowMe {
    pub(super) fn called_to_land(&self) -> bool {
        self.swarm.land_at.is_some()
    }

    /// How a slave begins to come down.
    pub(super) fn landing(&self) -> State {
        match self.config.landing {
            Landing::InPlace if self.beside().is_none() => State::Landing,
            Landing::InPlace | Landing::Formation => State::MovingToLand,
        }
    }

    /// Where it flies to come down: around where the leader lands, turned as it was last, or beside its own place.
    pub(super) fn landing_place(&self) -> Option<Point> {
        if self.config.landing == Landing::InPlace {
            return self.beside();
        }
        let (center, at) = self.swarm.land_at.zip(self.swarm.at)?;
        let heading_rad = match self.told {
            Some((_, c)) => f64::from(c.heading_urad) * 1e-6,
            None => plan::heading_rad(&self.swarm.plan),
        };
        let height_mm = at.point().height_mm;
        let swarm = &self.swarm;
        Some(plan::landing_place(&swarm.plan, swarm.slot, swarm.center(), center, heading_rad, height_mm))
    }

    /// Where others stand, hover or come down, as far as they told: who left this flight, and who was lost before
    /// it began.
    fn taken(&self) -> impl Iterator<Item = Point> {
        let swarm = &self.swarm;
        swarm.peers.iter().enumerate().filter(|(slot, _)| *slot != swarm.slot).flat_map(|(slot, peer)| {
            let left = peer.left.filter(|(_, how)| *how != Ending::Returning).map(|(at, _)| at);
            let is_lost = swarm.silent >> slot & 1 == 1 && slot != swarm.leader;
            let lost = is_lost.then(|| [peer.at, swarm.slot_place(slot, 0)]).into_iter().flatten().flatten();
            left.into_iter().chain(lost)
        })
    }

    /// The nearest free place, at our height; nothing where our own is free, or none is.
    fn beside(&self) -> Option<Point> {
        let here = self.swarm.at?.point();
        let frame = Frame::new(position(here));
        let clear_m = self.swarm.config.separation_m + STRAY_M;
        let free = |place: DVec2| {
            self.taken().all(|at| frame.to_local(position(at)).truncate().distance(place) >= clear_m)
        };
        if free(DVec2::ZERO) {
            return None;
        }
        let directions =
            (0..DIRECTIONS).map(|n| core::f64::consts::TAU * f64::from(n) / f64::from(DIRECTIONS));
        let places = RINGS_M.into_iter().flat_map(move |ring_m| {
            directions.clone().map(move |angle| {
                let (sin, cos) = libm::sincos(angle);
                DVec2::new(sin, cos) * ring_m
            })
        });
        let place = places.into_iter().find(|place| free(*place))?;
        let p = frame.to_position(DVec3::new(place.x, place.y, 0.0));
        Some(Point { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, ..here })
    }
}
