//! What an aircraft broadcasts in each state, each 200 ms (thesis figure 6.1, the arrows above the states), and the
//! answers that it gives immediately, so that a lost acknowledgement stops no member.

use wingbeat_geo::Instant;
use wingbeat_wire::Message;

use super::setup::call_number;
use super::timer::Timer;
use super::{Abort, Host, State, Swarm};
use crate::{Action, Actions, Input, push};

/// How soon the messages of the present state are broadcast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Time of the next broadcast.
    #[default]
    Periodic,
    /// Now: other members wait for them.
    Immediate,
}

impl<F: Copy + PartialEq> Swarm<F> {
    /// Answers a late question, and broadcasts what is due: in flight the host's messages, otherwise the swarm's own.
    /// Urgent messages that were due in any case are repeated with the next input, because a datagram may be lost.
    pub(super) fn broadcast<H: Host<FlyingState = F>>(
        &mut self,
        host: &H,
        now: Instant,
        input: Input<'_>,
        urgency: Option<Urgency>,
        out: &mut Actions,
    ) {
        if let Input::Message { message, .. } = input {
            self.answer_late(message, out);
        }
        let urgency = urgency.unwrap_or(self.repeat);
        if self.timers.is_due(Timer::Broadcast, now) {
            self.repeat = urgency;
        } else {
            self.repeat = Urgency::Periodic;
            if urgency == Urgency::Periodic {
                return;
            }
        }
        self.broadcast_state(host, now, out);
    }

    /// Not inlined, nor is what else makes messages: room for the largest plan on the stack costs at every input.
    #[inline(never)]
    fn broadcast_state<H: Host<FlyingState = F>>(&mut self, host: &H, now: Instant, out: &mut Actions) {
        self.advance_broadcast(now);
        let (is_missed, [first, second]) = if let State::Flying(flight) = self.state {
            (host.is_command_missed(self, flight), host.messages(self, now, flight))
        } else {
            (self.is_end_missed(), [self.own_message(now), None])
        };
        if is_missed {
            push(out, Action::PassOn);
        }
        if let Some(at) = self.ownship.point().filter(|_| self.is_adrift()) {
            self.push_message(Message::Adrift { at }, out);
        }
        if let Some(message) = first {
            self.push_message(message, out);
        }
        // One of these, the first that there is: not as a chain of options, each of which has room for a plan.
        if let Some(message) = self.recall_message() {
            self.push_message(message, out);
        } else if let Some(message) = self.exclusion() {
            self.push_message(message, out);
        } else if let Some(message) = second {
            self.push_message(message, out);
        } else if self.is_landing() && self.state != State::Finished
            || matches!(self.state, State::Aborted(Abort::LandAside { .. }))
        {
            // Others fly behind it to their landing positions, or wait until it is down: then it reports none.
            if let Some(message) = self.position_report(now) {
                self.push_message(message, out);
            }
        } else if let Some(message) = self.take_off_together() {
            self.push_message(message, out);
        }
    }

    /// Free-running: the phase stays what the seed made it.
    fn advance_broadcast(&mut self, now: Instant) {
        while let Some(at) = self.timers.get(Timer::Broadcast).filter(|&at| at <= now) {
            self.timers.set(Timer::Broadcast, at + self.config.send_period);
        }
    }

    fn push_message(&self, message: Message, out: &mut Actions) {
        let is_call = matches!(message, Message::Stands { .. });
        let flight = if is_call { call_number(self.config.master) } else { self.assignment.flight() };
        push(out, Action::Broadcast { flight, message });
    }

    /// What is repeated in this state.
    fn own_message(&mut self, now: Instant) -> Option<Message> {
        match self.state {
            State::Start | State::Setup | State::ReadyToFly => self.setup_message(),
            State::TakingOff(phase) => self.take_off_message(now, phase),
            State::SetupFinished => Some(Message::TargetReached),
            State::Flying(_) => None,
            State::MovingToLand | State::Landing | State::Finished => self.landing_message(now),
            State::Aborted(abort) => self.abort_message(abort),
        }
    }

    /// Where this aircraft is, and whether it holds there.
    pub(crate) fn position_report(&self, now: Instant) -> Option<Message> {
        let at = self.position_at(now)?;
        Some(if self.holds_leg() { Message::Holding { at } } else { Message::Alive { at } })
    }

    /// The exclusion that the leader or the master broadcasts next, or another to a member that follows the excluded one.
    fn exclusion(&mut self) -> Option<Message> {
        let is_followed = self.members.take_followed();
        if !self.is_leader() && !self.is_master() && !is_followed {
            return None;
        }
        let slot = self.members.next_exclusion(is_followed)?;
        self.assignment.id_of(slot).map(|member| Message::Exclude { member })
    }

    #[inline(never)]
    fn answer_late(&self, message: &Message, out: &mut Actions) {
        if let Some(answer) = self.late_answer(message) {
            self.push_message(answer, out);
        }
    }

    /// The answer to a member that still asks what was answered long ago.
    fn late_answer(&self, message: &Message) -> Option<Message> {
        let state = self.state;
        let is_plan = matches!(message, Message::Data(_) | Message::DataFirst(_) | Message::DataWaypoints(_));
        if is_plan && matches!(state, State::ReadyToFly | State::TakingOff(_)) {
            return self.plan_acknowledgement();
        }
        // One that received no message for long may be in its slot already.
        let is_late = matches!(message, Message::ReadyToFly)
            && matches!(state, State::TakingOff(_) | State::SetupFinished);
        if is_late {
            return Some(Message::ReadyToFlyAck);
        }
        let is_up = matches!(state, State::SetupFinished | State::Flying(_));
        (matches!(message, Message::TakeOffEnd) && is_up).then_some(Message::TakeOffEndAck)
    }
}
