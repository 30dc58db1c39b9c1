//! What an operator asks of an aircraft: one enumeration from the page to the protocol.

use core::fmt;
// What the derive of `ToSchema` names without a path.
#[cfg(feature = "schema")]
use std::{string::String, vec, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::VehicleId;

/// An operator's command. In JSON the name in `snake_case`; one with a value is an object of that name, for example
/// `{"exclude": {"member": "00b827eb01020304"}}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Command {
    /// Form the swarm: distribute the mission, take off, take the slots.
    Setup,
    /// Fly the mission.
    Start,
    /// Stop and hold position.
    Hold,
    /// Return to launch.
    Return,
    /// Land where it is.
    Land,
    /// Fly on after a hold, where an aircraft flies a mission of its own.
    Resume,
    /// Hand the aircraft to the pilot: release every override, command nothing any more.
    RecoverControl,
    /// Let the agent command again after a takeover, on the ground.
    Engage,
    /// On the ground: set the autopilot's parameters that stand against a flight and have one cure. The pilot's values
    /// are given back after the flight.
    SetParameters,
    /// No longer wait for a member of the swarm. The leader and the master pass it on over the radio; the member
    /// itself, when it receives it, holds and then lands.
    Exclude {
        /// The member's id, 16 hexadecimal digits.
        #[serde(with = "hexadecimal")]
        #[cfg_attr(feature = "schema", schema(value_type = String))]
        member: VehicleId,
    },
}

impl Command {
    /// Whether it concerns what the aircraft itself does. An exclusion concerns the swarm: it neither ends such a
    /// command nor is ended by one.
    pub const fn concerns_flight(self) -> bool {
        match self {
            Self::Setup
            | Self::Start
            | Self::Hold
            | Self::Return
            | Self::Land
            | Self::Resume
            | Self::RecoverControl
            | Self::Engage => true,
            Self::SetParameters | Self::Exclude { .. } => false,
        }
    }

    /// Whether the console that commands it needs the lease: it begins something. What takes an aircraft out of its flight,
    /// or a member out of the swarm, never waits for a lease.
    pub const fn needs_lease(self) -> bool {
        !self.recovers() && !matches!(self, Self::Exclude { .. })
    }

    /// Whether it takes an aircraft out of its flight, in whatever state that is. It is sent until its effect is
    /// seen, and ends what was asked before.
    pub const fn recovers(self) -> bool {
        match self {
            Self::Hold | Self::Return | Self::Land | Self::RecoverControl => true,
            Self::Setup
            | Self::Start
            | Self::Resume
            | Self::Engage
            | Self::SetParameters
            | Self::Exclude { .. } => false,
        }
    }
}

/// For logs and refusals.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Setup => "setup",
            Self::Start => "start",
            Self::Hold => "hold",
            Self::Return => "return",
            Self::Land => "land",
            Self::Resume => "resume",
            Self::RecoverControl => "recover control",
            Self::Engage => "engage",
            Self::SetParameters => "set parameters",
            Self::Exclude { member } => return write!(f, "exclude {member}"),
        })
    }
}

/// An aircraft's id in JSON, where a number of 64 bits does not survive; in a datagram it is that number.
mod hexadecimal {
    use core::fmt;

    use serde::de::{Error, Unexpected, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::VehicleId;

    pub(super) fn serialize<S: Serializer>(id: &VehicleId, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(id) } else { id.serialize(serializer) }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<VehicleId, D::Error> {
        struct Digits;
        impl Visitor<'_> for Digits {
            type Value = VehicleId;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("16 hexadecimal digits")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<VehicleId, E> {
                VehicleId::from_hexadecimal(text)
                    .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(Digits)
        } else {
            VehicleId::deserialize(deserializer)
        }
    }
}
