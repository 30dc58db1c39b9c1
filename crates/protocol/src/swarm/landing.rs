//! Coming down: every aircraft at its own place in the landing formation, around where the leader lands
//! (thesis 6.1.2).

use wingbeat_wire::{Message, Point, Refused};

use super::{State, Swarm, plan};

impl<F: Copy + PartialEq> Swarm<F> {
    pub(super) fn hear_land(&mut self, slot: usize, at: Point) -> Result<(), Refused> {
        if slot != self.leader {
            return Err(Refused::Stranger);
        }
        self.land_at = Some(at);
        Ok(())
    }

    /// Our own place around where the leader lands, at the height that we have.
    pub(super) fn landing_place(&self) -> Option<Point> {
        let (center, at) = self.land_at.zip(self.at)?;
        let heading_rad = plan::heading_rad(&self.plan);
        Some(plan::landing_place(&self.plan, self.slot, center, heading_rad, at.point().height_mm))
    }

    /// What the leader says while it lands.
    pub(super) fn landing_call(&self) -> Option<Message> {
        let calls = self.state == State::Landing && self.is_leader();
        self.at.filter(|_| calls).map(|at| Message::Land { at: at.point() })
    }
}
