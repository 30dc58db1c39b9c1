//! Discovery: the others call until they hold a plan; the master notes who called, and from where.

use wingbeat_geo::Instant;
use wingbeat_wire::{Message, Point, Refused, VehicleId};

use super::{State, Swarm};

/// One that stands and calls does not move so far from one call to the next: it is two with one id, metres.
const JUMP_M: f64 = 30.0;

/// The number that a call bears in place of a flight's, which does not exist yet: whose swarm it calls. Where
/// several swarms share a channel each master plans for those who call it, and for nobody else.
pub(crate) fn call_number(master: VehicleId) -> u32 {
    (master.0 ^ master.0 >> 32) as u32
}

impl<F: Copy + PartialEq> Swarm<F> {
    pub(super) fn hear_hello(
        &mut self,
        now: Instant,
        from: VehicleId,
        called: u32,
        at: Point,
    ) -> Result<(), Refused> {
        if called != call_number(self.config.master) {
            return Err(Refused::OtherFlight);
        }
        if !self.is_master() || self.state != State::Start {
            return Ok(()); // early or late, and harmless
        }
        match self.heard.iter().position(|(id, _)| *id == from) {
            Some(known) => {
                // Who calls stands on the ground.
                let moved_m = self.way(self.heard[known].1, at);
                if (moved_m.to_m - moved_m.from_m).length() > JUMP_M {
                    self.doubled = Some((from, now));
                }
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
