//! Taking off into the formation, one after the other: the next leaves when the one before has climbed to
//! its first height or hovers in its slot (reference, safe take-off). Whom the plan's order leaves out is
//! taken off by its pilot, and counts as being in its slot from the start.

use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{Message, Refused};

use super::members::Slots;
use super::{State, Swarm, TakeOff};
use crate::{Action, Actions, Order, Text, push, text};

impl<F: Copy + PartialEq> Swarm<F> {
    pub(super) fn hear_take_off(
        &mut self,
        now: Instant,
        slot: usize,
        message: &Message,
    ) -> Result<(), Refused> {
        let bit = 1 << slot;
        match message {
            Message::TakeOffNow { next } => {
                self.released |= *next == self.config.me && Some(slot) == self.predecessor();
            }
            Message::TargetReached => {
                if self.is_leader() {
                    self.in_slot |= bit;
                }
                self.released |= Some(slot) == self.predecessor();
            }
            Message::TakeOffEnd => {
                if slot != self.leader {
                    return Err(Refused::Stranger);
                }
                self.held_at = Some(now);
                self.in_slot = Slots::MAX; // the leader says that all are
            }
            Message::TakeOffEndAck if self.state == State::TakingOff(TakeOff::Confirming) => self.acks |= bit,
            _ => {}
        }
        Ok(())
    }

    pub(super) fn next_in_take_off(&self, now: Instant, phase: TakeOff) -> State<F> {
        use TakeOff::{Climbing, Confirming, InSlot, MovingToSlot, Waiting};
        match phase {
            Waiting if self.turn().is_none() => State::TakingOff(InSlot),
            Waiting if self.released || self.turn() == Some(0) => State::TakingOff(Climbing),
            Climbing if self.arrived => State::TakingOff(MovingToSlot),
            MovingToSlot if self.arrived => State::TakingOff(InSlot),
            InSlot if self.all(self.in_slot) => State::TakingOff(Confirming),
            Confirming if self.is_leader() && self.all(self.acks) => State::SetupFinished,
            Confirming if !self.is_leader() && now >= self.silence_at() => State::SetupFinished,
            Climbing | MovingToSlot if now >= self.leg_deadline => self.failure(now),
            Waiting | Climbing | MovingToSlot | InSlot | Confirming => self.state,
        }
    }

    pub(super) fn begin_take_off(&mut self, now: Instant, phase: TakeOff, out: &mut Actions) {
        match phase {
            TakeOff::Waiting => {}
            TakeOff::Climbing => {
                let height_mm = self.first_height_mm();
                self.leg_deadline = now + Duration::from_secs(60);
                push(out, Action::Order(Order::TakeOff { height_mm }));
            }
            TakeOff::MovingToSlot => self.fly_to(now, self.route.first().copied(), out),
            TakeOff::InSlot => self.in_slot |= 1 << self.slot,
            TakeOff::Confirming => self.held_at = Some(now),
        }
    }

    pub(super) fn climbing(&self) -> bool {
        self.state == State::TakingOff(TakeOff::Climbing)
    }

    /// Height of the first, vertical part of the take-off (reference, safe take-off).
    pub(super) fn first_height_mm(&self) -> i32 {
        match self.route.first().map_or(0, |w| w.height_mm) {
            ..=5_000 => 2_000,
            10_000.. => 5_000,
            h => h / 2,
        }
    }

    pub(super) fn take_off_detail(&self, phase: TakeOff) -> Text {
        match (phase, self.turn()) {
            (TakeOff::Waiting, Some(turn)) => {
                text!("takes off as {} of {}", turn + 1, self.plan.take_off_order.len())
            }
            (TakeOff::Climbing, _) => text!("climbing"),
            (TakeOff::MovingToSlot, _) => text!("flying to slot {}", self.slot),
            (TakeOff::InSlot, _) if self.is_leader() => {
                text!("in slot {}, waiting for {}", self.slot, self.missing(self.in_slot))
            }
            (TakeOff::Waiting | TakeOff::InSlot | TakeOff::Confirming, _) => text!("in slot {}", self.slot),
        }
    }
}
