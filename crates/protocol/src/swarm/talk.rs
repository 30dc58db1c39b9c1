//! What an aircraft says in each state, each 200 ms (thesis figure 6.1, the arrows above the states),
//! and the answers that it gives at once so that a lost acknowledgement stops nobody.

use wingbeat_geo::Instant;
use wingbeat_wire::Message;

use super::discovery::call_number;
use super::{State, Swarm, TakeOff, plan};
use crate::{Action, Actions, Input, push};

impl<F: Copy + PartialEq> Swarm<F> {
    /// Answers a late question, and says what is due: in flight what the host gives, otherwise the swarm's
    /// own.
    pub fn talk(
        &mut self,
        now: Instant,
        input: Input<'_>,
        in_flight: impl FnOnce(&Self, F) -> [Option<Message>; 2],
        out: &mut Actions,
    ) {
        if let Input::Message { message, .. } = input
            && let Some(answer) = self.late_answer(message)
        {
            self.say(answer, out);
        }
        if now < self.talk_at && !core::mem::take(&mut self.talk_now) {
            return;
        }
        // Free-running: the phase stays what the seed made it.
        while self.talk_at <= now {
            self.talk_at = self.talk_at + self.config.send_period;
        }
        let [first, second] = match self.state {
            State::Flying(flight) => in_flight(self, flight),
            _ => [self.repeated(now), None],
        };
        // Others fly behind it to their landing places, or wait until it is down: then it tells no place.
        let comes_down = self.is_coming_down() && self.state != State::Finished;
        let place = comes_down.then(|| self.alive(now)).flatten();
        let second = self.exclusion().or(second).or(place).or_else(|| self.together());
        for message in [first, second].into_iter().flatten() {
            self.say(message, out);
        }
    }

    fn say(&self, message: Message, out: &mut Actions) {
        let flight = match message {
            Message::Hello { .. } => call_number(self.config.master),
            _ => self.flight,
        };
        push(out, Action::Broadcast { flight, message });
    }

    /// What is repeated in this state.
    fn repeated(&self, now: Instant) -> Option<Message> {
        match self.state {
            State::Start | State::Setup if !self.is_master() && !self.planned() => self.hello(),
            State::Setup if self.is_master() && self.planned() => Some(Message::Data(self.plan.clone())),
            State::Setup if self.loaded => Some(Message::DataAck { hash: plan::hash(&self.plan) }),
            State::ReadyToFly if self.is_master() => Some(Message::ReadyToFly),
            State::ReadyToFly => Some(Message::ReadyToFlyAck),
            State::TakingOff(TakeOff::Waiting | TakeOff::Climbing) => self.alive(now),
            State::TakingOff(TakeOff::MovingToSlot) => {
                self.successor().map(|next| Message::TakeOffNow { next }).or_else(|| self.alive(now))
            }
            State::TakingOff(TakeOff::InSlot) | State::SetupFinished => Some(Message::TargetReached),
            State::TakingOff(TakeOff::Confirming) if self.is_leader() => Some(Message::TakeOffEnd),
            State::TakingOff(TakeOff::Confirming) => Some(Message::TakeOffEndAck),
            State::MovingToLand | State::Landing | State::Finished => self.landing_call(),
            State::Aborted(abort) => self.leaving(abort),
            _ => None,
        }
    }

    pub(crate) fn alive(&self, now: Instant) -> Option<Message> {
        self.here(now).map(|at| match self.held_since {
            Some(_) => Message::Holding { at },
            None => Message::Alive { at },
        })
    }

    /// The master's word, where all take off at once.
    fn together(&self) -> Option<Message> {
        let says = self.is_master() && self.all_at_once && matches!(self.state, State::TakingOff(_));
        says.then_some(Message::TakeOffTogether)
    }

    /// Whom the operator excluded and who has not said that it leaves. Of several each has its turn: one that is
    /// dead never says so.
    fn exclusion(&mut self) -> Option<Message> {
        if !self.is_leader() && !self.is_master() {
            return None;
        }
        let told = self.excluded & !self.left & !(1 << self.slot);
        let slot =
            Self::each(told).find(|&slot| slot > self.told_excluded).or_else(|| Self::each(told).next())?;
        self.told_excluded = slot;
        self.id_of(slot).map(|who| Message::Exclude { who })
    }

    /// The answer to somebody who is still asking what we have long answered.
    fn late_answer(&self, message: &Message) -> Option<Message> {
        match (message, self.state) {
            (Message::Data(_), State::ReadyToFly | State::TakingOff(_)) if self.loaded => {
                Some(Message::DataAck { hash: plan::hash(&self.plan) })
            }
            // Who heard nobody for long may be up already.
            (Message::ReadyToFly, State::TakingOff(_) | State::SetupFinished) => Some(Message::ReadyToFlyAck),
            (Message::TakeOffEnd, State::SetupFinished | State::Flying(_)) => Some(Message::TakeOffEndAck),
            _ => None,
        }
    }
}
