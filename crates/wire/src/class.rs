//! What a datagram is for, which decides what may hold it up.

use crate::{Avoidance, Message};

/// The classes of datagrams: each has a budget of its own on the radio, so that none is held up by another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// An aircraft leaves the others, stops, lands, or sends them home.
    Emergency,
    /// What a flight together needs: plans, releases, their acknowledgements.
    Coordination,
    /// Where an aircraft is and will be, over and over.
    #[default]
    Beacon,
    /// Tests of the link itself.
    Test,
    /// Corrections of satellite navigation, from a console.
    Corrections,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 5] =
        [Self::Emergency, Self::Coordination, Self::Beacon, Self::Test, Self::Corrections];
}

impl Message {
    /// The class of a datagram with this message.
    pub fn class(&self) -> Class {
        match self {
            Self::Beacon(beacon) if beacon.state == Avoidance::EmergencyLand => Class::Emergency,
            Self::Leaving { .. }
            | Self::Exclude { .. }
            | Self::Holding { .. }
            | Self::Adrift { .. }
            | Self::Land { .. }
            | Self::LandHere { .. }
            | Self::LandAround { .. }
            | Self::Order(_)
            | Self::Recall => Class::Emergency,
            Self::Data(_)
            | Self::DataFirst(_)
            | Self::DataWaypoints(_)
            | Self::DataAck { .. }
            | Self::ReadyToFly
            | Self::ReadyToFlyAck
            | Self::TakeOffNow { .. }
            | Self::TargetReached
            | Self::TakeOffEnd
            | Self::TakeOffEndAck
            | Self::TakeOffTogether
            | Self::ReachedWaypointAck { .. }
            | Self::MoveToWaypoint { .. }
            | Self::Gather { .. }
            | Self::Following { .. }
            | Self::OrderTaken(_)
            | Self::Passed(_)
            | Self::Release { .. } => Class::Coordination,
            Self::Beacon(_)
            | Self::Course(_)
            | Self::Coordinates(_)
            | Self::Hello { .. }
            | Self::Stands { .. }
            | Self::Alive { .. } => Class::Beacon,
            Self::Probe(_) => Class::Test,
            Self::Corrections(_) => Class::Corrections,
        }
    }
}
