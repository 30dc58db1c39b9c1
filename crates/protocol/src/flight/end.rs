//! How a flight ends before its mission does.

use crate::{Command, Order};

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

impl EndFlight {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Hold, Self::Return, Self::Land];

    /// The end that an operator's command asks for; none where it asks for something else.
    pub const fn commanded(command: Command) -> Option<Self> {
        match command {
            Command::Hold => Some(Self::Hold),
            Command::Return => Some(Self::Return),
            Command::Land => Some(Self::Land),
            Command::Setup
            | Command::Start
            | Command::RecoverControl
            | Command::Engage
            | Command::Exclude { .. } => None,
        }
    }

    /// The order that brings it about.
    pub const fn order(self) -> Order {
        match self {
            Self::Hold => Order::Hold,
            Self::Return => Order::Return,
            Self::Land => Order::Land,
        }
    }
}
