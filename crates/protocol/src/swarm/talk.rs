//! What an aircraft says in each state, each 200 ms (thesis figure 6.1, the arrows above the states),
//! and the answers that it gives at once so that a lost acknowledgement stops nobody.

use wingbeat_geo::Instant;
use wingbeat_wire::Message;

use super::{State, Swarm, TakeOff, plan};
use crate::{Action, Actions, Input, push};

impl<F: Copy + PartialEq> Swarm<F> {
    /// Answers a late question, and says what is due: in flight what the host gives, otherwise the swarm's
    /// own.
    pub fn talk(
        &mut self,
        now: Instant,
        input: Input<'_>,
        in_flight: impl FnOnce(&Self, F) -> Option<Message>,
        out: &mut Actions,
    ) {
        if let Input::Message { message, .. } = input
            && let Some(answer) = self.late_answer(message)
        {
            self.say(answer, out);
        }
        if now < self.talk_at {
            return;
        }
        // Free-running: the phase stays what the seed made it.
        while self.talk_at <= now {
            self.talk_at = self.talk_at + self.config.send_period;
        }
        let message = match self.state {
            State::Flying(flight) => in_flight(self, flight),
            _ => self.repeated(),
        };
        if let Some(message) = message {
            self.say(message, out);
        }
    }

    fn say(&self, message: Message, out: &mut Actions) {
        let flight = if matches!(message, Message::Hello { .. }) { 0 } else { self.flight };
        push(out, Action::Broadcast { flight, message });
    }

    /// What is repeated in this state.
    fn repeated(&self) -> Option<Message> {
        match self.state {
            State::Start | State::Setup if !self.is_master() && !self.planned() => self.hello(),
            State::Setup if self.is_master() && self.planned() => Some(Message::Data(self.plan.clone())),
            State::Setup if self.loaded => Some(Message::DataAck { hash: plan::hash(&self.plan) }),
            State::ReadyToFly if self.is_master() => Some(Message::ReadyToFly),
            State::ReadyToFly => Some(Message::ReadyToFlyAck),
            State::TakingOff(TakeOff::MovingToSlot) => {
                self.successor().map(|next| Message::TakeOffNow { next })
            }
            State::TakingOff(TakeOff::InSlot) => Some(Message::TargetReached),
            State::TakingOff(TakeOff::Confirming) if self.is_leader() => Some(Message::TakeOffEnd),
            State::TakingOff(TakeOff::Confirming) => Some(Message::TakeOffEndAck),
            State::Landing => self.landing_call(),
            _ => None,
        }
    }

    /// The answer to somebody who is still asking what we have long answered.
    fn late_answer(&self, message: &Message) -> Option<Message> {
        match (message, self.state) {
            (Message::Data(_), State::ReadyToFly | State::TakingOff(_)) if self.loaded => {
                Some(Message::DataAck { hash: plan::hash(&self.plan) })
            }
            (Message::ReadyToFly, State::TakingOff(_)) => Some(Message::ReadyToFlyAck),
            (Message::TakeOffEnd, State::SetupFinished | State::Flying(_)) => Some(Message::TakeOffEndAck),
            _ => None,
        }
    }
}
