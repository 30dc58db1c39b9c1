//! Coming down: every aircraft at its own place in the landing formation, around where the leader lands
//! (thesis 6.1.2).
//!
//! Where the leader lands is relayed by all who heard it: who missed it may not take the silence of the
//! landed for their loss.

use wingbeat_geo::Instant;
use wingbeat_wire::{Ending, Message, Point, Refused};

use super::members::Slots;
use super::obstacles::STRAY_M;
use super::{Abort, Manner, State, Swarm, plan};

impl<F: Copy + PartialEq> Swarm<F> {
    /// Only the leader's word counts, from itself or relayed.
    pub(super) fn hear_land(
        &mut self,
        now: Instant,
        slot: usize,
        leader: usize,
        at: Point,
    ) -> Result<(), Refused> {
        if leader != self.leader {
            // It lands with others: where, is known all the same.
            if leader != slot && leader < self.plan.slots.len() {
                let heading_rad = plan::heading_rad(&self.plan);
                let place = plan::landing_place(&self.plan, slot, leader, at, heading_rad, at.height_mm);
                self.peers[slot].left = Some((place, Ending::Landing));
            } else {
                self.peers[slot].left = Some((at, Ending::Landing));
            }
            self.left |= 1 << slot;
            return Err(Refused::Stranger);
        }
        if self.coming_down >> slot & 1 == 0 {
            self.coming_down |= 1 << slot;
            self.peers[slot].told_at = now;
        }
        if !self.is_leader() {
            self.land_at = Some(at);
            self.land_by = self.land_by.min(now + self.config.hold_before_landing);
        }
        Ok(())
    }

    /// Our own place around where the leader lands, at the height that we have.
    pub(super) fn landing_place(&self) -> Option<Point> {
        let (leader_at, at) = self.land_at.zip(self.at)?;
        Some(self.place_around(self.slot, leader_at, at.point().height_mm))
    }

    /// Where the leader lands when somebody stands on the ground below it: the nearest place around it that nobody
    /// is on or over, and its way there; nothing where it may land where it is, or where there is none.
    pub(crate) fn place_beside(&self) -> Option<Point> {
        const DIAGONAL: f64 = core::f64::consts::FRAC_1_SQRT_2;
        const TOWARDS: [(f64, f64); 8] = [
            (0.0, 1.0),
            (1.0, 0.0),
            (0.0, -1.0),
            (-1.0, 0.0),
            (DIAGONAL, DIAGONAL),
            (DIAGONAL, -DIAGONAL),
            (-DIAGONAL, -DIAGONAL),
            (-DIAGONAL, DIAGONAL),
        ];
        let here = self.at?.point();
        if self.is_free(here) {
            return None;
        }
        let step_m = self.config.separation_m + STRAY_M;
        let around = (1..=3).flat_map(|ring| TOWARDS.map(|(east, north)| (ring as f64, east, north)));
        around.map(|(ring, east, north)| plan::moved(here, ring * step_m * east, ring * step_m * north)).find(
            |&place| {
                let ways = [self.way(here, place), self.way(place, Point { height_mm: 0, ..place })];
                self.is_free(place) && self.is_clear_of_all(&ways)
            },
        )
    }

    /// A slot's place in the landing formation in which the leader's is `leader_at`.
    pub(super) fn place_around(&self, slot: usize, leader_at: Point, height_mm: i32) -> Point {
        let heading_rad = plan::heading_rad(&self.plan);
        plan::landing_place(&self.plan, slot, self.leader, leader_at, heading_rad, height_mm)
    }

    /// Whether another is down or not waited for: who comes down tells where it is until it stands.
    fn is_down(&self, now: Instant, slot: usize) -> bool {
        self.out() >> slot & 1 == 1
            || self.coming_down >> slot & 1 == 1 && now >= self.peers[slot].told_at + self.config.silence
    }

    /// Those who land before us where all land one after the other: the leader, and then from the inside to the
    /// outside, because the outer fly past the places of the inner.
    fn before_in_landing(&self) -> Slots {
        let Ok(formation) = plan::formation(&self.plan) else { return 0 };
        let place = |slot: usize| formation.offset_m(slot, 0.0);
        let leader = place(self.leader);
        let rank = |slot: usize| ((place(slot).distance(leader) * 1e3) as i64, slot);
        (0..self.peers.len())
            .filter(|&slot| slot == self.leader || rank(slot) < rank(self.slot))
            .fold(0, |bits, slot| bits | 1 << slot)
    }

    /// Notes who is down, where all land one after the other.
    pub(super) fn watch_landing(&mut self, now: Instant) {
        if self.config.landing == Manner::Simultaneous || self.land_at.is_none() {
            return;
        }
        let before = self.before_in_landing() & !(1 << self.slot);
        let landed = Self::each(before).filter(|&s| self.is_down(now, s)).fold(0, |bits, s| bits | 1 << s);
        if landed != self.landed || self.turn_by == Instant::NEVER {
            let patience = self.config.hold_before_landing + self.config.hold_before_landing;
            (self.landed, self.turn_by) = (landed, now + patience);
        }
        if landed == before {
            self.turn_by = now;
        } else if now < self.turn_by {
            // Only who may go waits for a clear way.
            self.land_by = now + self.config.hold_before_landing;
        }
    }

    /// Whether we may leave for our landing place.
    pub(crate) fn is_turn_to_land(&self, now: Instant) -> bool {
        self.config.landing == Manner::Simultaneous || now >= self.turn_by
    }

    /// What is said while coming down and after. Who lands where it is says that, so that nobody takes its
    /// landing place for taken and its own for free.
    pub(super) fn landing_call(&self) -> Option<Message> {
        if self.lands_here {
            let how = if self.state == State::Finished { Ending::Down } else { Ending::Landing };
            return self.at.map(|at| Message::Leaving { at: at.point(), how });
        }
        let at = self.land_at?;
        Some(if self.is_leader() {
            Message::Land { at }
        } else {
            Message::LandAround { at, leader: self.leader as u8 }
        })
    }

    /// What is said after the flight was stopped.
    pub(super) fn leaving(&self, abort: Abort) -> Option<Message> {
        if !self.planned() {
            return None;
        }
        // Who flies aside to land says where it will.
        let at = match abort {
            Abort::LandBeside => self.target.or(self.at.map(|at| at.point()))?,
            _ => self.at?.point(),
        };
        let lands = matches!(abort, Abort::Land | Abort::LandBeside);
        if self.land_here && lands {
            return Some(Message::LandHere { at, leader: self.leader as u8 });
        }
        let how = match abort {
            Abort::Ground => Ending::Down,
            Abort::Return => Ending::Returning,
            Abort::Land | Abort::LandBeside => Ending::Landing,
            // Who holds on its way home is on it.
            Abort::ReturnHeld { .. } if self.is_aloft() => Ending::Returning,
            Abort::Hold | Abort::ReturnHeld { .. } | Abort::Failure { .. } => Ending::Holding,
        };
        Some(Message::Leaving { at, how })
    }

    /// Whether we say [`State::Landing`]'s messages.
    pub(super) fn is_coming_down(&self) -> bool {
        matches!(self.state, State::MovingToLand | State::Landing | State::Finished)
    }
}
