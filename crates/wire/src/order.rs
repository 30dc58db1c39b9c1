//! An operator's order as a datagram of the console, and how far an aircraft has come with it.

use heapless::{String, Vec};
use serde::{Deserialize, Serialize};

use crate::{Command, Refused, VehicleId};

/// The id of a command, chosen by its sender: however often and by whatever path it arrives, it is one command.
pub type CommandId = String<64>;

/// Aircraft that one order names; an order for more of them, and not for all, is several datagrams.
pub const ADDRESSEES_MAX: usize = 32;

/// The longest datagram with an exclusion: what an aircraft keeps to pass it on as the console sealed it.
pub const EXCLUSION_LEN_MAX: usize = 192;

/// An operator's order. The datagram's flight is that for which an exclusion counts. For other commands it is the session
/// of the console's program, a random number; 0 states none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The command's id.
    pub id: CommandId,
    /// The aircraft that it is for.
    pub to: Addressees,
    /// The command.
    pub command: Command,
}

/// The aircraft that an order is for.
// Without an allocator a list is as large as its bound.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Addressees {
    /// Every aircraft that receives it.
    All,
    /// These.
    Listed(Vec<VehicleId, ADDRESSEES_MAX>),
}

impl Addressees {
    /// Whether the order is for this aircraft.
    pub fn contains(&self, id: VehicleId) -> bool {
        match self {
            Self::All => true,
            Self::Listed(ids) => ids.contains(&id),
        }
    }
}

impl Order {
    pub(crate) fn check(&self) -> Result<(), Refused> {
        check_id(&self.id)?;
        match &self.to {
            Addressees::Listed(ids) if ids.is_empty() => Err(Refused::Contradiction),
            Addressees::Listed(_) | Addressees::All => Ok(()),
        }
    }
}

/// How far an aircraft has come with an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OrderProgress {
    /// Its effect is not seen yet.
    Accepted,
    /// Its effect was read back from the flight controller.
    EffectSeen,
    /// It failed, or another command replaced it.
    Failed,
    /// The aircraft does not carry it out.
    Refused,
}

/// An aircraft received an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderTaken {
    /// The console that ordered.
    pub console: VehicleId,
    /// The command's id.
    pub id: CommandId,
    /// How far it has come.
    pub progress: OrderProgress,
}

impl OrderTaken {
    pub(crate) fn check(&self) -> Result<(), Refused> {
        check_id(&self.id)
    }
}

/// As the aircraft's API requires it.
fn check_id(id: &CommandId) -> Result<(), Refused> {
    let is_visible = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic());
    if is_visible { Ok(()) } else { Err(Refused::Impossible) }
}

/// What the key of a sender may sign: the roster states it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// An aircraft: everything but orders and exclusions.
    #[default]
    Aircraft,
    /// A console: every order.
    Operator,
    /// A console: orders that take an aircraft out of its flight ([`Command::recovers`]).
    Safety,
    /// A console that only displays: nothing.
    Viewer,
}

impl Role {
    /// Every role, with its name in a roster's file and on the command line.
    pub const ALL: [Self; 4] = [Self::Aircraft, Self::Operator, Self::Safety, Self::Viewer];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aircraft => "aircraft",
            Self::Operator => "operator",
            Self::Safety => "safety",
            Self::Viewer => "viewer",
        }
    }

    /// The role of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Whether a console of this role may order it.
    pub const fn may_order(self, command: Command) -> bool {
        match self {
            Self::Operator => true,
            Self::Safety => command.recovers(),
            Self::Aircraft | Self::Viewer => false,
        }
    }
}
