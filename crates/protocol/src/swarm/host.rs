//! What a protocol adds to a swarm to fly it.

use wingbeat_geo::Instant;
use wingbeat_wire::{Message, Point, Refused};

use super::timer::TimerSet;
use super::{State, Swarm, Transition, Trigger, Urgency};
use crate::{Actions, Input, StateId, Text};

/// A protocol that flies a swarm between take-off and landing.
pub(crate) trait Host {
    /// Its states in flight.
    type FlyingState: Copy + PartialEq;

    /// The input was applied, before its message is handed on: the leader or the absent members may be others.
    fn on_members(&mut self, swarm: &mut Swarm<Self::FlyingState>, now: Instant, change: MemberChange) {
        let _ = (swarm, now, change);
    }

    /// A member sent a message, which the swarm has applied as far as it concerns it.
    ///
    /// # Errors
    /// Why the message is not for us.
    fn on_message(
        &mut self,
        swarm: &mut Swarm<Self::FlyingState>,
        now: Instant,
        slot: usize,
        message: &Message,
    ) -> Result<(), Refused>;

    /// A member passed on a command of our leader, which the swarm has applied as far as it concerns it.
    fn on_passed(&mut self, swarm: &Swarm<Self::FlyingState>, command: &Message) {
        let _ = (swarm, command);
    }

    /// Whether a member may have missed the command that this aircraft obeys in flight.
    fn is_command_missed(&self, swarm: &Swarm<Self::FlyingState>, flight: Self::FlyingState) -> bool {
        let _ = (swarm, flight);
        false
    }

    /// The transition table of the flight: what follows where nothing follows for the swarm. It reads and never writes.
    fn next(
        &self,
        swarm: &Swarm<Self::FlyingState>,
        now: Instant,
        trigger: Trigger,
    ) -> Option<Transition<Self::FlyingState>>;

    /// Acts on a new state, after the swarm has. How soon its messages are broadcast, where that is new.
    fn enter(
        &mut self,
        swarm: &mut Swarm<Self::FlyingState>,
        now: Instant,
        old: State<Self::FlyingState>,
        out: &mut Actions,
    ) -> Option<Urgency>;

    /// Acts while a state lasts, after the transitions of an input and before its messages are broadcast.
    fn act(
        &mut self,
        swarm: &mut Swarm<Self::FlyingState>,
        now: Instant,
        input: &Input<'_>,
        out: &mut Actions,
    ) -> Option<Urgency>;

    /// What is repeated in flight.
    fn messages(
        &self,
        swarm: &Swarm<Self::FlyingState>,
        now: Instant,
        flight: Self::FlyingState,
    ) -> [Option<Message>; 2];

    /// Where this aircraft hovers in a state in flight, from where it may move aside for one that lands below.
    fn hover_position(&self, swarm: &Swarm<Self::FlyingState>, flight: Self::FlyingState) -> Option<Point> {
        let _ = (swarm, flight);
        None
    }

    /// Where this aircraft lands that leaves the formation to land.
    fn landing_site(&self, swarm: &Swarm<Self::FlyingState>) -> Option<Point> {
        let clearance = swarm.clearance();
        if swarm.is_leader() { clearance.site_aside() } else { clearance.landing_position() }
    }

    /// Broadcasts what has a period of its own, after the messages of the swarm.
    fn broadcast(&mut self, swarm: &mut Swarm<Self::FlyingState>, now: Instant, out: &mut Actions) {
        let _ = (swarm, now, out);
    }

    /// The timers that run in the present state, besides those of the swarm.
    fn running(&self, swarm: &Swarm<Self::FlyingState>) -> TimerSet;

    /// A deadline that the present state owns, and why it wakes.
    fn deadline(&self, swarm: &Swarm<Self::FlyingState>) -> Option<(Instant, &'static str)> {
        let _ = swarm;
        None
    }

    /// The state, and what it does or waits for, for the log.
    fn describe(&self, swarm: &Swarm<Self::FlyingState>) -> (StateId, Text);
}

/// What an input changed about the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberChange {
    /// Another leads.
    pub(crate) is_leader_new: bool,
    /// Others are absent, or it is time to check again.
    pub(crate) is_check_due: bool,
}
