//! Taking off into the formation, one after the other: the next leaves when the one before has climbed to its first
//! height or hovers in its slot (reference, safe take-off). An aircraft that the plan's order leaves out is taken off by
//! its pilot, and counts as being in its slot from the start.

use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{Message, Refused};

use super::clearance::Approach;
use super::slot_set::SlotSet;
use super::timer::Timer;
use super::{Abort, Manner, Reason, State, Swarm, TakeOffPhase, Transition, Urgency};
use crate::{Action, Actions, Input, Order, Text, push, text};

/// A climb to the first height takes no longer.
const CLIMB_MOST: Duration = Duration::from_secs(60);

/// How far the take-off of all members has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TakeOff {
    /// Hover in their slots.
    in_slot: SlotSet,
    /// Have climbed clear of where they took off.
    made_room: SlotSet,
    /// The leader reported that all hover in their slots.
    all_in_slots: bool,
    /// Know that all hover in their slots.
    confirmed: SlotSet,
    /// The master reported that all take off together.
    is_simultaneous: bool,
    /// Whether the last message called the next; the one after it reports the position.
    has_called_next: bool,
    /// How far it had come when it last advanced; before the start, whether a member is missing.
    progress: (SlotSet, SlotSet),
    progressed_at: Instant,
    /// Since when this aircraft waits on the ground for one that is absent and in its way, and for no other.
    blocked_since: Option<Instant>,
}

impl TakeOff {
    pub(super) fn begin(now: Instant) -> Self {
        Self { progressed_at: now, ..Self::default() }
    }

    pub(crate) fn is_in_slot(&self, slot: usize) -> bool {
        self.in_slot.contains(slot)
    }

    /// Whether a member reported that it has climbed clear of where it took off.
    pub(crate) fn has_made_room(&self, slot: usize) -> bool {
        self.made_room.contains(slot)
    }

    /// The members that reported that they hover in their slots.
    pub(crate) fn in_slot(&self) -> SlotSet {
        self.in_slot
    }

    /// A new state begins: the wait for others does so too.
    pub(super) fn begin_state(&mut self, now: Instant) {
        self.confirmed = SlotSet::EMPTY;
        self.progressed_at = now;
    }

    /// Notes whether the take-off advances.
    fn watch(&mut self, now: Instant) {
        self.advance(now, (self.in_slot, self.made_room));
    }

    /// Before the start, notes whether a member is missing. That another is lost besides does not restart the wait.
    fn watch_missing(&mut self, now: Instant, is_any_missing: bool) {
        self.advance(now, (SlotSet::first(usize::from(is_any_missing)), SlotSet::EMPTY));
    }

    fn advance(&mut self, now: Instant, progress: (SlotSet, SlotSet)) {
        if progress != self.progress {
            (self.progress, self.progressed_at) = (progress, now);
        }
    }

    /// The leader reports that all are in their slots; `present` are those that this aircraft receives.
    fn report_all_in_slots(&mut self, present: SlotSet) {
        self.all_in_slots = true;
        self.in_slot |= present;
    }

    pub(super) fn report_climbed(&mut self, slot: usize) {
        self.made_room.insert(slot);
    }

    pub(super) fn report_in_slot(&mut self, slot: usize) {
        self.in_slot.insert(slot);
        self.made_room.insert(slot);
    }
}

impl<F: Copy + PartialEq> Swarm<F> {
    pub(super) fn on_take_off_message(
        &mut self,
        now: Instant,
        slot: usize,
        message: TakeOffMessage,
    ) -> Result<(), Refused> {
        match message {
            TakeOffMessage::Together => {
                if self.assignment.id_of(slot) != Some(self.config.master) {
                    return Err(Refused::UnexpectedSender);
                }
                self.take_off.is_simultaneous = true;
            }
            TakeOffMessage::Climbed => self.take_off.report_climbed(slot),
            TakeOffMessage::InSlot => self.take_off.report_in_slot(slot),
            TakeOffMessage::AllInSlots => {
                if slot != self.members.leader() {
                    return Err(Refused::UnexpectedSender);
                }
                // Of one that missed the master's report.
                self.setup.confirm_plan_of_all();
                self.timers.set(Timer::Silence, now + self.config.silence);
                // Not of those that the leader does not wait for.
                self.take_off.report_all_in_slots(self.members.peers() - self.members.absent());
            }
            TakeOffMessage::Confirmed => {
                self.take_off.report_in_slot(slot);
                if self.state == State::TakingOff(TakeOffPhase::Confirming) {
                    self.take_off.confirmed.insert(slot);
                }
            }
        }
        Ok(())
    }

    /// When an aircraft that hovers in its slot no longer waits for others. In the take-off, when none has advanced for so
    /// long; before the start, when a member is missing and no operator decides.
    pub(super) fn stalled_at(&self) -> Option<Instant> {
        if self.assignment.take_off_index().is_none() || !self.ownship.is_armed() {
            return None;
        }
        let patience_at = self.config.patience_after(self.take_off.progressed_at);
        match self.state {
            State::TakingOff(TakeOffPhase::InSlot | TakeOffPhase::Confirming) => {
                // One that is blocked on the ground aborts before.
                Some(patience_at + self.config.hold_before_landing)
            }
            State::SetupFinished if self.watches() && !self.members.absent().is_empty() => Some(patience_at),
            State::Start
            | State::Setup
            | State::ReadyToFly
            | State::TakingOff(TakeOffPhase::Waiting | TakeOffPhase::Climbing | TakeOffPhase::MovingToSlot)
            | State::SetupFinished
            | State::Flying(_)
            | State::MovingToLand
            | State::Landing
            | State::Finished
            | State::Aborted(_) => None,
        }
    }

    /// Each time that messages are due.
    pub(super) fn watch_take_off(&mut self, now: Instant) {
        if self.state == State::SetupFinished {
            self.take_off.watch_missing(now, !self.members.absent().is_empty());
        } else {
            self.take_off.watch(now);
        }
        if self.state == State::TakingOff(TakeOffPhase::Waiting) {
            self.watch_blocked_take_off(now);
        }
    }

    /// Limits the wait for a predecessor that is absent and in the way, of this aircraft and of those before it. All that
    /// wait behind it count from when the last made room: one after the other they would keep those that fly waiting for
    /// longer than a battery lasts. For the same reason it ends while others still take off, once it has lasted twice as long.
    fn watch_blocked_take_off(&mut self, now: Instant) {
        let (absent, clearance) = (self.members.absent(), self.clearance());
        let is_blocked = !self.has_room(now)
            && self.assignment.predecessors().any(|s| absent.contains(s) && !clearance.makes_room(s));
        if !is_blocked {
            self.take_off.blocked_since = None;
            return self.timers.stop(Timer::Blocked);
        }
        let patience_after = |since| self.config.patience_after(since);
        let blocked_at = self.timers.get(Timer::Blocked).unwrap_or(patience_after(now));
        let ends_at = blocked_at.max(patience_after(self.take_off.progressed_at));
        let is_next = self
            .assignment
            .predecessors()
            .all(|slot| absent.contains(slot) || self.take_off.has_made_room(slot));
        let blocked_since = if is_next { self.take_off.blocked_since.or(Some(now)) } else { None };
        self.take_off.blocked_since = blocked_since;
        let most = blocked_since.map_or(Instant::NEVER, |since| patience_after(patience_after(since)));
        self.timers.set(Timer::Blocked, ends_at.min(most));
    }

    /// Returns whether all before us have made room, those that are absent keep clear, and none
    /// drifts to here. The last of them alone is not enough: it may have passed over one that it
    /// did not receive.
    fn has_room(&self, now: Instant) -> bool {
        if self.clearance().is_take_off_drifted_over(now) {
            return false;
        }
        if self.take_off.is_simultaneous {
            return true;
        }
        // One that left may have made room, and come back since.
        let (absent, clearance) = (self.members.absent(), self.clearance());
        self.assignment.predecessors().filter(|&slot| !clearance.makes_room(slot)).all(|slot| {
            !absent.contains(slot)
                && self.take_off.has_made_room(slot)
                && (self.take_off.is_in_slot(slot) || clearance.leaves_room(slot))
        })
    }

    pub(super) fn next_in_take_off(&self, now: Instant, phase: TakeOffPhase) -> Option<Transition<F>> {
        use TakeOffPhase::{Climbing, Confirming, InSlot, MovingToSlot, Waiting};
        let phase_after = |phase| Some(Transition::to(State::TakingOff(phase)));
        let arrived = self.navigation.has_arrived();
        match phase {
            Waiting if self.assignment.take_off_index().is_none() => phase_after(InSlot),
            Waiting if self.has_room(now) => phase_after(Climbing),
            Waiting if self.timers.is_due(Timer::Blocked, now) => {
                Some(Transition::because(State::Aborted(Abort::Ground), Reason::TakeOffBlocked))
            }
            Climbing if arrived => phase_after(MovingToSlot),
            MovingToSlot if arrived => phase_after(InSlot),
            // As the leader reports, or all members did: one that was not received for a while may have missed either.
            InSlot if self.take_off.all_in_slots || self.are_all(self.take_off.in_slot) => {
                phase_after(Confirming)
            }
            Confirming if self.is_leader() && self.are_all(self.take_off.confirmed) => {
                Some(Transition::to(State::SetupFinished))
            }
            Confirming if !self.is_leader() && self.timers.is_due(Timer::Silence, now) => {
                Some(Transition::to(State::SetupFinished))
            }
            MovingToSlot if self.timers.is_due(Timer::Yield, now) => {
                Some(self.failure(now, Reason::LegOccupied))
            }
            Climbing | MovingToSlot if self.timers.is_due(Timer::Leg, now) => {
                Some(self.failure(now, Reason::TargetNotReached))
            }
            Waiting | Climbing | MovingToSlot | InSlot | Confirming => None,
        }
    }

    pub(super) fn begin_take_off(&mut self, now: Instant, phase: TakeOffPhase, out: &mut Actions) {
        match phase {
            TakeOffPhase::Waiting => {
                let is_simultaneous = self.is_master() && self.config.take_off == Manner::Simultaneous;
                self.take_off.is_simultaneous |= is_simultaneous;
                self.members.begin_watch(now);
            }
            TakeOffPhase::Climbing => {
                self.timers.set(Timer::Leg, now + CLIMB_MOST);
                let height_mm = self.assignment.first_height_mm();
                push(out, Action::Order(Order::TakeOff { height_mm }));
            }
            TakeOffPhase::MovingToSlot => self.fly_to(now, self.assignment.route().first().copied(), out),
            TakeOffPhase::InSlot => {
                self.take_off.in_slot.insert(self.assignment.slot());
            }
            TakeOffPhase::Confirming => self.timers.set(Timer::Silence, now + self.config.silence),
        }
    }

    /// On its way to its slot an aircraft holds behind one that stopped on its own way.
    pub(super) fn act_in_take_off(
        &mut self,
        now: Instant,
        input: &Input<'_>,
        out: &mut Actions,
    ) -> Option<Urgency> {
        let is_under_way = self.state == State::TakingOff(TakeOffPhase::MovingToSlot);
        if !is_under_way || !self.checks_path(now, input) {
            return None;
        }
        self.keep_distance(now, Approach::Slot, out)
    }

    /// What is repeated while taking off.
    pub(super) fn take_off_message(&mut self, now: Instant, phase: TakeOffPhase) -> Option<Message> {
        match phase {
            TakeOffPhase::Waiting | TakeOffPhase::Climbing => self.position_report(now),
            // In turn: those behind keep clear of where it is.
            TakeOffPhase::MovingToSlot => {
                let next = self.assignment.successor().filter(|_| !self.take_off.has_called_next);
                self.take_off.has_called_next = next.is_some();
                next.map(|next| Message::TakeOffNow { next }).or_else(|| self.position_report(now))
            }
            TakeOffPhase::InSlot => Some(Message::TargetReached),
            TakeOffPhase::Confirming if self.is_leader() => Some(Message::TakeOffEnd),
            TakeOffPhase::Confirming => Some(Message::TakeOffEndAck),
        }
    }

    /// The master's message where all take off together.
    pub(super) fn take_off_together(&self) -> Option<Message> {
        let is_taking_off = matches!(self.state, State::TakingOff(_));
        (self.is_master() && self.take_off.is_simultaneous && is_taking_off)
            .then_some(Message::TakeOffTogether)
    }

    pub(super) fn take_off_detail(&self, phase: TakeOffPhase) -> Text {
        let slot = self.assignment.slot();
        match (phase, self.assignment.take_off_index()) {
            (TakeOffPhase::Waiting, Some(index)) => {
                text!("takes off as {} of {}", index + 1, self.assignment.plan().take_off_order.len())
            }
            (TakeOffPhase::Climbing, _) => text!("climbing"),
            (TakeOffPhase::MovingToSlot, _) => text!("flying to slot {slot}"),
            (TakeOffPhase::InSlot, _) if self.is_leader() => {
                text!("in slot {slot}, waiting for {}", self.missing(self.take_off.in_slot))
            }
            (TakeOffPhase::Waiting | TakeOffPhase::InSlot | TakeOffPhase::Confirming, _) => {
                text!("in slot {slot}")
            }
        }
    }
}

/// The messages of the take-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakeOffMessage {
    /// All take off together.
    Together,
    /// The sender has climbed clear of where it took off.
    Climbed,
    /// The sender hovers in its slot.
    InSlot,
    /// All hover in their slots.
    AllInSlots,
    /// The sender has determined that all hover in their slots.
    Confirmed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    #[test]
    fn muscop_26_the_wait_for_others_begins_anew_only_when_the_take_off_advances() {
        let mut take_off = TakeOff::begin(at(0));
        take_off.watch(at(1));
        assert_eq!(take_off.progressed_at, at(0), "no aircraft has left the ground");
        take_off.made_room.insert(1);
        take_off.watch(at(2));
        take_off.watch(at(3));
        assert_eq!(take_off.progressed_at, at(2));
        take_off.report_in_slot(1);
        take_off.watch(at(4));
        assert_eq!(take_off.progressed_at, at(4));
        // Before the start a second missing member does not restart it, and one that is back does.
        take_off.begin_state(at(5));
        take_off.watch_missing(at(6), false);
        take_off.watch_missing(at(7), true);
        take_off.watch_missing(at(8), true);
        assert_eq!(take_off.progressed_at, at(7));
        take_off.watch_missing(at(9), false);
        assert_eq!(take_off.progressed_at, at(9));
    }

    #[test]
    fn muscop_22_a_member_is_in_its_slot_by_its_own_report_or_the_leaders() {
        let mut take_off = TakeOff::begin(at(0));
        take_off.made_room.insert(2);
        assert!(!take_off.is_in_slot(2));
        take_off.report_in_slot(2);
        assert!(take_off.is_in_slot(2) && !take_off.is_in_slot(3));
        take_off.report_all_in_slots(SlotSet::of(3));
        assert!(take_off.is_in_slot(3) && !take_off.is_in_slot(4), "of one that is lost nothing is known");
        take_off.confirmed.insert(2);
        take_off.begin_state(at(1));
        assert_eq!(
            (take_off.confirmed, take_off.in_slot()),
            (SlotSet::EMPTY, SlotSet::of(2) | SlotSet::of(3))
        );
    }
}
