//! The states of a swarm, and what leads from one to the next.

#[cfg(test)]
extern crate std;

use wingbeat_geo::Instant;
use wingbeat_wire::Point;

use crate::{Command, Input};

/// States of a swarm (thesis figure 6.1; the take-off is spread out as in the reference); `F` are the host's own in
/// flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<F> {
    /// The others call; the master listens.
    Start,
    /// The master broadcasts the plan.
    Setup,
    /// All members hold the plan.
    ReadyToFly,
    /// Taking off one after the other.
    TakingOff(TakeOffPhase),
    /// All in their slots, waiting for the operator's start.
    SetupFinished,
    /// The host's.
    Flying(F),
    /// On the way to the own position in the landing formation.
    MovingToLand,
    /// Landing.
    Landing,
    /// On the ground, disarmed.
    Finished,
    /// Stopped before the end of the flight.
    Aborted(Abort),
}

/// Phases of the take-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeOffPhase {
    /// Others are first.
    Waiting,
    /// Straight up to the first height.
    Climbing,
    /// To the slot.
    MovingToSlot,
    /// In the slot, until all are.
    InSlot,
    /// All are in their slots; until all members know.
    Confirming,
}

/// How an aborted flight ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// Holding at the operator's command.
    Hold,
    /// Returning to launch.
    Return,
    /// Holding until the path home is clear; where it stays blocked for long, landing.
    ReturnHeld {
        /// Since when.
        since: Instant,
    },
    /// Landing.
    Land,
    /// Flying aside first, because a member stands or lands below; a second *Land* lands where the aircraft is.
    LandAside {
        /// Where it lands.
        site: Point,
    },
    /// Holding after a failure, then landing.
    Failure {
        /// When it lands.
        land_at: Instant,
    },
    /// On the ground: it had not taken off, or has landed.
    Ground,
}

/// What an input asks for, beside what it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// Nothing.
    None,
    /// The operator's command.
    Command(Command),
    /// An order failed.
    OrderFailed,
}

impl Trigger {
    pub(super) fn of(input: &Input<'_>) -> Self {
        match *input {
            Input::Operator(command) => Self::Command(command),
            Input::Failed(_) => Self::OrderFailed,
            Input::Wake
            | Input::Telemetry(_)
            | Input::Message { .. }
            | Input::Reached(_)
            | Input::Done(_) => Self::None,
        }
    }
}

/// The next state, and why it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transition<F> {
    pub(crate) to: State<F>,
    /// None where the states say it.
    pub(crate) reason: Option<Reason>,
}

impl<F> Transition<F> {
    pub(crate) fn to(to: State<F>) -> Self {
        Self { to, reason: None }
    }

    pub(crate) fn because(to: State<F>, reason: Reason) -> Self {
        Self { to, reason: Some(reason) }
    }
}

/// Why a flight does not continue as planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Operator,
    Excluded,
    OrderFailed,
    TargetNotReached,
    Undecided,
    /// The path home stays blocked.
    ReturnBlocked,
    /// The leader ends the flight where all are.
    EndedByLeader,
    MembersMissing,
    /// A lost predecessor blocks the take-off.
    TakeOffBlocked,
    /// A lost member blocks a leg of the formation.
    FlightBlocked,
    LeftBehind,
    /// A member that may leave stays on the next leg.
    NextLegOccupied,
    /// A member waits on the next leg for this aircraft.
    NextLegBlocked,
    /// A member stays ahead on the present leg.
    LegOccupied,
    /// The path to the landing position may not be clear.
    LandingPathBlocked,
    /// A member stays ahead on the path to the landing position.
    LandingPathOccupied,
    LeaderSilent,
    LeaderSilentUndecided,
}

impl Reason {
    /// As the log has it, after the state.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Operator => "; operator",
            Self::Excluded => "; excluded by the operator",
            Self::OrderFailed => "; an order failed",
            Self::TargetNotReached => "; the place was not reached in time",
            Self::Undecided => "; nobody decided in time",
            Self::ReturnBlocked => "; the way home stays blocked: lands here",
            Self::EndedByLeader => "; the leader ends the flight here",
            Self::MembersMissing => "; others are missing and nobody decided in time: lands here",
            Self::TakeOffBlocked => "; an aircraft that is lost blocks the way: stays on the ground",
            Self::FlightBlocked => {
                "; the way past an aircraft that is lost stays blocked: all land where they are"
            }
            Self::LeftBehind => "; left behind: the others have gone on",
            Self::NextLegOccupied => "; another stays in the way to the next waypoint",
            Self::NextLegBlocked => "; left behind: others wait on the way to the next waypoint",
            Self::LegOccupied => "; another stays in the way to the waypoint",
            Self::LandingPathBlocked => "; another may be in the way to the landing place",
            Self::LandingPathOccupied => "; another stays in the way to the landing place",
            Self::LeaderSilent => "; the leader is silent",
            Self::LeaderSilentUndecided => "; the leader is silent and nobody decided in time",
        }
    }
}

#[cfg(test)]
impl<F: Copy> State<F> {
    /// Its name in a transition table, without the data that changes from flight to flight.
    pub(crate) fn label(self, flight: impl Fn(F) -> std::string::String) -> std::string::String {
        match self {
            Self::Start => "Start".into(),
            Self::Setup => "Setup".into(),
            Self::ReadyToFly => "ReadyToFly".into(),
            Self::TakingOff(phase) => std::format!("TakingOff({phase:?})"),
            Self::SetupFinished => "SetupFinished".into(),
            Self::Flying(state) => flight(state),
            Self::MovingToLand => "MovingToLand".into(),
            Self::Landing => "Landing".into(),
            Self::Finished => "Finished".into(),
            Self::Aborted(Abort::Hold) => "Aborted(Hold)".into(),
            Self::Aborted(Abort::Return) => "Aborted(Return)".into(),
            Self::Aborted(Abort::ReturnHeld { .. }) => "Aborted(ReturnHeld)".into(),
            Self::Aborted(Abort::Land) => "Aborted(Land)".into(),
            Self::Aborted(Abort::LandAside { .. }) => "Aborted(LandAside)".into(),
            Self::Aborted(Abort::Failure { .. }) => "Aborted(Failure)".into(),
            Self::Aborted(Abort::Ground) => "Aborted(Ground)".into(),
        }
    }
}
