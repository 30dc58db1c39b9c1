//! The states of the avoidance, each with what it needs.

use wingbeat_geo::{DVec2, DVec3, Instant};
use wingbeat_wire::{Avoidance, VehicleId};

/// Two aircraft that would be at one place at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conflict {
    /// The other aircraft.
    pub peer: VehicleId,
    /// The first of our predicted locations that the peer comes too near; none where only the peer sees a risk.
    pub risk: Option<DVec3>,
}

/// What the aircraft does on its mission. The thesis' six states, and the two manoeuvres that lead from one to
/// another: until the autopilot has shown their effect nothing is decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Avoiding {
    /// On the mission.
    Normal {
        /// Start of this state.
        since: Instant,
    },
    /// The autopilot was asked to stop; for others still Normal.
    Stopping {
        /// Why.
        conflict: Conflict,
        /// The autopilot brakes: from here on the aircraft counts as standing, however fast it is.
        stands_by: Option<Instant>,
    },
    /// Stopped because of a conflict.
    StandStill {
        /// The conflict that it waits for or landed because of.
        conflict: Conflict,
        /// When it began to stand.
        began_at: Instant,
        /// Since when the peer has had no conflict with a third aircraft.
        since: Instant,
        /// Whether it moved aside for a silent peer before: it stands clear, as far as the error of its position allows.
        is_aside: bool,
    },
    /// Out of the peer's path.
    MovingAside {
        /// For which peer.
        conflict: Conflict,
        /// Start of this state.
        since: Instant,
        /// To this position.
        aside: DVec2,
        /// It is there: from here on it counts as standing, however fast it is.
        calm_by: Option<Instant>,
    },
    /// Waiting until the peer has passed.
    GoOnPlease {
        /// For which peer.
        conflict: Conflict,
        /// Start of this state.
        since: Instant,
        /// The peer's event number then; it has passed when the number changes. None where the peer does not answer: it is
        /// silent, or does not receive us.
        event: Option<u16>,
    },
    /// Passing the peer.
    Overtaking {
        /// The conflict with the peer that is overtaken.
        conflict: Conflict,
        /// Start of this state.
        since: Instant,
    },
    /// The autopilot was asked to resume the mission.
    Resuming {
        /// The conflict that was waited for.
        conflict: Conflict,
        /// What others see until then.
        from: Waiting,
        /// What it does after it resumed the mission.
        then: AfterResume,
    },
    /// The mission is over where another has landed or stands: on the way to a position clear of it, to land there.
    LandingAside {
        /// To this position.
        aside: DVec2,
        /// It lands where it is then.
        by: Instant,
    },
    /// Landing: the conflict was not solved in time. The published exception to the rule that an aircraft holds
    /// before it lands ([`crate::flight`]).
    EmergencyLand {
        /// The conflict that it waits for or landed because of.
        conflict: Conflict,
    },
}

/// The states in which an aircraft waits for its peer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Waiting {
    /// [`Avoiding::StandStill`].
    StandStill,
    /// [`Avoiding::MovingAside`].
    MovingAside {
        /// To this position.
        aside: DVec2,
    },
    /// [`Avoiding::GoOnPlease`].
    GoOnPlease,
}

/// What follows when the mission has been resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterResume {
    /// The conflict is over.
    Normal,
    /// The peer gives way.
    Overtaking,
}

impl Avoiding {
    /// The state that others see in the beacon.
    pub const fn shown(&self) -> Avoidance {
        match self {
            Self::Normal { .. } | Self::Stopping { .. } => Avoidance::Normal,
            Self::StandStill { .. } | Self::Resuming { from: Waiting::StandStill, .. } => {
                Avoidance::StandStill
            }
            Self::MovingAside { .. }
            | Self::LandingAside { .. }
            | Self::Resuming { from: Waiting::MovingAside { .. }, .. } => Avoidance::MovingAside,
            Self::GoOnPlease { .. } | Self::Resuming { from: Waiting::GoOnPlease, .. } => {
                Avoidance::GoOnPlease
            }
            Self::Overtaking { .. } => Avoidance::Overtaking,
            Self::EmergencyLand { .. } => Avoidance::EmergencyLand,
        }
    }

    /// The conflict that it is about.
    pub const fn conflict(&self) -> Option<Conflict> {
        match *self {
            Self::Normal { .. } | Self::LandingAside { .. } => None,
            Self::Stopping { conflict, .. }
            | Self::StandStill { conflict, .. }
            | Self::MovingAside { conflict, .. }
            | Self::GoOnPlease { conflict, .. }
            | Self::Overtaking { conflict, .. }
            | Self::Resuming { conflict, .. }
            | Self::EmergencyLand { conflict } => Some(conflict),
        }
    }

    /// Where it goes to give way.
    pub const fn aside(&self) -> Option<DVec2> {
        match *self {
            Self::MovingAside { aside, .. }
            | Self::LandingAside { aside, .. }
            | Self::Resuming { from: Waiting::MovingAside { aside }, .. } => Some(aside),
            Self::Normal { .. }
            | Self::Stopping { .. }
            | Self::StandStill { .. }
            | Self::GoOnPlease { .. }
            | Self::Overtaking { .. }
            | Self::Resuming { from: Waiting::StandStill | Waiting::GoOnPlease, .. }
            | Self::EmergencyLand { .. } => None,
        }
    }
}
