//! What an aircraft says in each state, each 200 ms (thesis figure 6.1, the arrows above the states),
//! and the answers that it gives at once so that a lost acknowledgement stops nobody.

use wingbeat_geo::Instant;
use wingbeat_wire::Message;

use super::{Muscop, State, TakeOff, plan, push};
use crate::{Action, Actions, Input};

impl Muscop {
    pub(super) fn talk(&mut self, now: Instant, input: Input<'_>, out: &mut Actions) {
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
        for message in self.repeated().into_iter().flatten() {
            self.say(message, out);
        }
    }

    fn say(&self, message: Message, out: &mut Actions) {
        let flight = if matches!(message, Message::Hello { .. }) { 0 } else { self.flight };
        push(out, Action::Broadcast { flight, message });
    }

    /// What is repeated in this state: at most two messages.
    fn repeated(&self) -> [Option<Message>; 2] {
        let one = |m| [Some(m), None];
        match self.state {
            State::Start | State::Setup if !self.is_master() && !self.planned() => {
                [self.at.map(|at| Message::Hello { at: at.point() }), None]
            }
            State::Setup if self.is_master() && self.planned() => one(Message::Data(self.plan.clone())),
            State::Setup if self.loaded => one(Message::DataAck { hash: plan::hash(&self.plan) }),
            State::ReadyToFly if self.is_master() => one(Message::ReadyToFly),
            State::ReadyToFly => one(Message::ReadyToFlyAck),
            State::TakingOff(TakeOff::MovingToSlot) => {
                [self.successor().map(|next| Message::TakeOffNow { next }), None]
            }
            State::TakingOff(TakeOff::InSlot) => one(Message::TargetReached),
            State::TakingOff(TakeOff::Confirming) if self.is_center() => one(Message::TakeOffEnd),
            State::TakingOff(TakeOff::Confirming) => one(Message::TakeOffEndAck),
            State::WaypointReached { waypoint } if self.is_center() => {
                // Whoever missed the release to here must still hear it, and all that we are alive.
                one(Message::MoveToWaypoint { waypoint })
            }
            State::WaypointReached { waypoint } => one(Message::ReachedWaypointAck { waypoint }),
            State::MovingToWaypoint { waypoint } if self.is_center() => {
                one(Message::MoveToWaypoint { waypoint })
            }
            State::MovingToWaypoint { waypoint } => {
                one(Message::ReachedWaypointAck { waypoint: waypoint - 1 })
            }
            State::Landing if self.is_center() => [self.at.map(|at| Message::Land { at: at.point() }), None],
            _ => [None, None],
        }
    }

    /// The answer to somebody who is still asking what we have long answered.
    fn late_answer(&self, message: &Message) -> Option<Message> {
        match (message, self.state) {
            (Message::Data(_), State::ReadyToFly | State::TakingOff(_)) if self.loaded => {
                Some(Message::DataAck { hash: plan::hash(&self.plan) })
            }
            (Message::ReadyToFly, State::TakingOff(_)) => Some(Message::ReadyToFlyAck),
            (Message::TakeOffEnd, State::SetupFinished | State::WaypointReached { waypoint: 0 }) => {
                Some(Message::TakeOffEndAck)
            }
            _ => None,
        }
    }
}
