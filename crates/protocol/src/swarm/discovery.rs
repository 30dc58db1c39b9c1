//! Discovery: the others call until they hold a plan; the master notes who called, and from where.

use wingbeat_wire::{Message, Point, Refused, VehicleId};

use super::{State, Swarm};

impl<F: Copy + PartialEq> Swarm<F> {
    pub(super) fn hear_hello(&mut self, from: VehicleId, at: Point) -> Result<(), Refused> {
        if !self.is_master() || self.state != State::Start {
            return Ok(()); // early or late, and harmless
        }
        match self.heard.iter().position(|(id, _)| *id == from) {
            Some(known) => {
                self.heard[known].1 = at;
                Ok(())
            }
            // The swarm has as many aircraft as configured and no more.
            None if self.heard.len() + 1 >= self.config.aircraft => Err(Refused::Stranger),
            None => self.heard.push((from, at)).map_err(|_| Refused::Stranger),
        }
    }

    /// What is said until a plan is held.
    pub(super) fn hello(&self) -> Option<Message> {
        let calls = matches!(self.state, State::Start | State::Setup) && !self.is_master() && !self.planned();
        self.at.filter(|_| calls).map(|at| Message::Hello { at: at.point() })
    }
}
