//! Taking off into the formation, one after the other: the next leaves when the one before has climbed to
//! its first height or hovers in its slot (reference, safe take-off). Whom the plan's order leaves out is
//! taken off by its pilot, and counts as being in its slot from the start.

use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{Message, Refused};

use super::members::Slots;
use super::{Abort, Manner, State, Swarm, TakeOff, plan};
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
            Message::TakeOffTogether => {
                if self.id_of(slot) != Some(self.config.master) {
                    return Err(Refused::Stranger);
                }
                self.all_at_once = true;
            }
            Message::TakeOffNow { .. } => self.made_room |= bit,
            Message::TargetReached => {
                self.in_slot |= bit;
                self.made_room |= bit;
            }
            Message::TakeOffEnd => {
                if slot != self.leader {
                    return Err(Refused::Stranger);
                }
                self.held_at = Some(now);
                self.all_in_slots = true;
            }
            Message::TakeOffEndAck => {
                self.in_slot |= bit;
                self.made_room |= bit;
                if self.state == State::TakingOff(TakeOff::Confirming) {
                    self.acks |= bit;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// When whoever hovers in its slot no longer waits for others. In the take-off, when for so long nobody has
    /// come further; before the start, when somebody is missing for whom nobody decides.
    pub(super) fn stalled_until(&self) -> Instant {
        let patience = self.config.hold_before_landing + self.config.hold_before_landing;
        let flies = self.turn().is_some() && self.airborne();
        match self.state {
            State::TakingOff(TakeOff::InSlot | TakeOff::Confirming) if flies => {
                // Who is blocked on the ground gives up before.
                self.stalled.2 + patience + self.config.hold_before_landing
            }
            State::SetupFinished if flies && self.watches() && self.out() != 0 => self.stalled.2 + patience,
            _ => Instant::NEVER,
        }
    }

    /// Notes whether the take-off goes on, and before the start whether somebody is missing.
    pub(super) fn watch_progress(&mut self, now: Instant) {
        let come = match self.state {
            // Whoever else is lost meanwhile does not begin the wait anew.
            State::SetupFinished => (Slots::from(self.out() != 0), 0),
            _ => (self.in_slot, self.made_room),
        };
        if come != (self.stalled.0, self.stalled.1) {
            self.stalled = (come.0, come.1, now);
        }
    }

    /// Whether the last before us who is still with us has made room.
    pub(super) fn has_room(&self) -> bool {
        if self.all_at_once {
            return true;
        }
        // One that left may have made room, and come back since.
        let out = self.out();
        let mut stays = self.predecessors().filter(|&slot| !self.makes_way(slot));
        (out == 0 || stays.clone().all(|slot| out >> slot & 1 == 0))
            && stays.next().is_none_or(|slot| self.made_room >> slot & 1 == 1)
    }

    pub(super) fn next_in_take_off(&self, now: Instant, phase: TakeOff) -> State<F> {
        use TakeOff::{Climbing, Confirming, InSlot, MovingToSlot, Waiting};
        match phase {
            Waiting if self.turn().is_none() => State::TakingOff(InSlot),
            Waiting if self.has_room() => State::TakingOff(Climbing),
            Waiting if now >= self.blocked_until() => State::Aborted(Abort::Ground),
            Climbing if self.arrived => State::TakingOff(MovingToSlot),
            MovingToSlot if self.arrived => State::TakingOff(InSlot),
            // The leader's word, or everybody's own: who was not heard for a while may have missed the word.
            InSlot if self.all_in_slots || self.all(self.in_slot) => State::TakingOff(Confirming),
            Confirming if self.is_leader() && self.all(self.acks) => State::SetupFinished,
            Confirming if !self.is_leader() && now >= self.silence_at() => State::SetupFinished,
            Climbing | MovingToSlot if now >= self.leg_deadline => self.failure(now),
            Waiting | Climbing | MovingToSlot | InSlot | Confirming => self.state,
        }
    }

    pub(super) fn begin_take_off(&mut self, now: Instant, phase: TakeOff, out: &mut Actions) {
        match phase {
            TakeOff::Waiting => {
                self.all_at_once |= self.is_master() && self.config.take_off == Manner::Simultaneous;
                self.begin_watch(now);
            }
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

    /// Height of the first, vertical part of the take-off.
    pub(super) fn first_height_mm(&self) -> i32 {
        plan::first_height_mm(self.route.first().map_or(0, |w| w.height_mm))
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
