//! Coming down: every aircraft at its own place in the landing formation, around where the leader lands
//! (thesis 6.1.2).
//!
//! Where the leader lands is relayed by all who heard it: who missed it may not take the silence of the
//! landed for their loss.

use wingbeat_geo::Instant;
use wingbeat_wire::{Ending, Message, Point, Refused};

use super::{Abort, State, Swarm, plan};

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
        self.coming_down |= 1 << slot;
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

    /// A slot's place in the landing formation in which the leader's is `leader_at`.
    pub(super) fn place_around(&self, slot: usize, leader_at: Point, height_mm: i32) -> Point {
        let heading_rad = plan::heading_rad(&self.plan);
        plan::landing_place(&self.plan, slot, self.leader, leader_at, heading_rad, height_mm)
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
        let at = self.at?.point();
        if self.land_here && abort == Abort::Land {
            return Some(Message::LandHere { at, leader: self.leader as u8 });
        }
        let how = match abort {
            Abort::Ground => Ending::Down,
            Abort::Return => Ending::Returning,
            Abort::Land => Ending::Landing,
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
