//! What an operator's command asks of a flight, and how a flight ends before its mission does.

use wingbeat_wire::VehicleId;

use crate::{Command, Order};

/// What an operator's command asks of a flight. Protocols decide by this and not by the command, so that a command
/// which ends a flight in one of the known ways is a row of [`Asked::by`] and nothing in any protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To be set up.
    Setup,
    /// To fly the mission.
    Start,
    /// To fly on after a hold.
    Resume,
    /// To end before the mission does.
    End(EndFlight),
    /// Not to wait for a member of the swarm.
    Exclude(VehicleId),
    /// Nothing: the command is the agent's own.
    Nothing,
}

impl Asked {
    /// By this command.
    pub const fn by(command: Command) -> Self {
        match command {
            Command::Setup => Self::Setup,
            Command::Start => Self::Start,
            Command::Resume => Self::Resume,
            Command::Hold => Self::End(EndFlight::Hold),
            Command::Return => Self::End(EndFlight::Return),
            Command::Land => Self::End(EndFlight::Land),
            Command::Exclude { member } => Self::Exclude(member),
            Command::RecoverControl | Command::Engage | Command::SetParameters => Self::Nothing,
        }
    }
}

/// How a flight ends before its mission does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndFlight {
    /// Stop and hold position.
    Hold,
    /// Return to launch.
    Return,
    /// Land below the present position.
    Land,
}

impl core::fmt::Display for EndFlight {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Hold => "hold",
            Self::Return => "return",
            Self::Land => "land",
        })
    }
}

impl EndFlight {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Hold, Self::Return, Self::Land];

    /// The order that brings it about.
    pub const fn order(self) -> Order {
        match self {
            Self::Hold => Order::Hold,
            Self::Return => Order::Return,
            Self::Land => Order::Land,
        }
    }
}
