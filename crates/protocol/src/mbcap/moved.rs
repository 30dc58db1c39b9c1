//! Peers that stand at other positions than the ones that two aircraft agreed on: each may move
//! aside for a third, or for one that does not answer, after the other gave way to it.

use wingbeat_geo::{DVec2, DVec3, Instant};
use wingbeat_wire::Avoidance;

use super::Mbcap;
use super::alone::PASSES_WITHIN;
use super::decide::{CLOSER_M, nearest, ordering, stands};
use super::neighbours::Neighbour;
use super::state::{Avoiding, Conflict};
use crate::Order;
use crate::flight::{State, Transition};

/// A peer that gave way may appear to stand this much nearer than it does, metres.
const ERROR_M: f64 = 1.0;

impl Mbcap {
    /// Returns whether a peer that stands is nearer to the own way than the passing distance, less
    /// the error of its position.
    pub(super) fn passes_near(&self, peer: &Neighbour) -> bool {
        let (there, clear_m) = (peer.at, self.config.passing_distance_m() - ERROR_M);
        let is_level = |at: &&DVec3| libm::fabs(at.z - there.z) < self.config.risk.height_m;
        let here_m = self.motion.here.truncate().distance(there.truncate());
        let nearest_m = clear_m.min(here_m - CLOSER_M);
        let path = self.path_ahead();
        self.config.passing_judges
            && path.iter().filter(is_level).any(|at| at.truncate().distance(there.truncate()) < nearest_m)
    }

    /// GoOnPlease: moves aside again where the way of an aircraft that stands because of this one
    /// comes nearer than the passing distance: the peer stands at another position than before, or
    /// this aircraft gave way to another one first.
    pub(super) fn gives_way_again(
        &self,
        now: Instant,
        conflict: Conflict,
        since: Instant,
    ) -> Option<Transition<Avoiding>> {
        if !self.config.passing_judges || !self.knows_where_it_is(now) {
            return None;
        }
        let (here, clear_m) = (self.motion.here.truncate(), self.config.passing_distance_m());
        let asks = |n: &&Neighbour| {
            n.beacon.state == Avoidance::StandStill
                && self.claims(n)
                && !n.beacon.landing
                && n.is_recent(now, self.config.prediction_lasts())
        };
        let is_due = |n: &&Neighbour| match n.id == conflict.peer {
            true => now.since(since) >= self.config.standing,
            // The turn of a third comes after that of the peer, which takes no longer where they
            // receive each other.
            false => n.id > self.config.me && now.since(since) >= PASSES_WITHIN,
        };
        self.clear_neighbours(now).filter(asks).filter(is_due).find_map(|n| {
            if self.room_off_m(n, here) >= clear_m {
                return None;
            }
            let again = self.give_way(now, Conflict { peer: n.id, ..conflict }, n)?;
            let State::Flying(Avoiding::MovingAside { aside, .. }) = again.state else { return None };
            let is_clear = |other: &Neighbour| {
                let room_m = self.room_off_m(other, aside);
                room_m >= clear_m || room_m >= self.room_off_m(other, here)
            };
            self.clear_neighbours(now).filter(asks).all(is_clear).then_some(again)
        })
    }

    /// Returns whether a peer whose conflict is over has yet to pass: a third stopped it next to this
    /// aircraft, and that conflict is the one that ended. One that has passed is farther away than a
    /// risk.
    pub(super) fn has_yet_to_pass(&self, peer: &Neighbour) -> bool {
        let stays = peer.beacon.landing || stands(peer) && peer.beacon.avoiding.is_none();
        self.config.overtake_beyond
            && !stays
            && self.motion.here.truncate().distance(peer.at.truncate()) <= self.config.risk_distance_m()
    }

    /// Returns the distance over ground of a position from the way that an aircraft broadcasts, in
    /// metres.
    fn room_off_m(&self, n: &Neighbour, at: DVec2) -> f64 {
        let Some(frame) = self.frame() else { return f64::INFINITY };
        let way = n.locations(frame);
        let legs = way.iter().zip(way.iter().skip(1));
        let room_m = legs.map(|(from, to)| nearest(at, from.truncate(), to.truncate()).distance(at));
        room_m.fold(f64::INFINITY, f64::min)
    }

    /// MovingAside: stops before a peer that came to stand next to the rest of the way.
    pub(super) fn stops_before_peer(
        &self,
        now: Instant,
        conflict: Conflict,
        aside: DVec2,
    ) -> Option<Transition<Avoiding>> {
        let peer = self.neighbours.get(conflict.peer).filter(|_| self.config.passing_judges)?;
        let is_there = peer.is_recent(now, self.config.prediction_lasts()) && stands(peer);
        let blocks = is_there && !self.is_moving(peer) && self.is_next_to_way(peer, aside);
        blocks.then(|| ordering(Avoiding::Stopping { conflict, stands_by: None }, Order::Hold))
    }

    /// Returns whether another is next to the straight way to a position aside.
    pub(super) fn is_next_to_way(&self, n: &Neighbour, aside: DVec2) -> bool {
        let (here, clear_m) = (self.motion.here, self.config.passing_distance_m());
        let (way, there) = (aside - here.truncate(), n.at.truncate() - here.truncate());
        // Away from one that stands near is out of its way.
        let nearest_m = clear_m.min(there.length() - CLOSER_M);
        nearest(there, DVec2::ZERO, way).distance(there) < nearest_m
            && libm::fabs(n.at.z - here.z) < self.config.risk.height_m
    }
}
