//! How far a flight has come, in the words of the papers and in those that all protocols share. One enumeration
//! each, from the protocol to the page.

use core::fmt;
// What the derive of `ToSchema` names without a path.
#[cfg(feature = "schema")]
use std::{string::String, vec, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::Avoidance;

/// The states of all protocols, by the names that their papers give them. One that a checker does not know does not
/// compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum StateId {
    /// On the ground, waiting for the operator.
    Start,
    /// The plan is agreed on, or the mission goes to the flight controller.
    Setup,
    /// Every member of the swarm holds the plan.
    ReadyToFly,
    /// From arming to the slot, or to the mission.
    TakingOff,
    /// Set up, waiting for the operator's start.
    SetupFinished,
    /// `mission`, `sweep`: on the mission.
    Flying,
    /// `mission`, `sweep`, `mbcap`: holding after a failure.
    Holding,
    /// `muscop`: at a waypoint, waiting for the others.
    WaypointReached,
    /// `muscop`: on the way to a waypoint.
    MovingToWaypoint,
    /// `follow_me`: the leader, before its pilot has climbed.
    Ready,
    /// `follow_me`: the leader, flown by its pilot.
    FollowMe,
    /// `follow_me`: in the slot, before the leader leads.
    WaitMaster,
    /// `follow_me`: following the leader.
    Following,
    /// `follow_me`: the leader is silent.
    LeaderLost,
    /// `mbcap`: on the mission.
    Normal,
    /// `mbcap`: stopped because of a conflict.
    StandStill,
    /// `mbcap`: on the way out of another's path.
    MovingAside,
    /// `mbcap`: waiting until another has passed.
    GoOnPlease,
    /// `mbcap`: passing another.
    Overtaking,
    /// `mbcap`: landing because a conflict was not solved.
    EmergencyLand,
    /// On the way to the slot of the landing formation.
    MovingToLand,
    /// Landing after the mission.
    Landing,
    /// On the ground after the mission.
    Finished,
    /// Ended by the operator or a failure.
    Aborted,
}

/// The paper's name, as in JSON.
impl fmt::Display for StateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl From<Avoidance> for StateId {
    fn from(avoidance: Avoidance) -> Self {
        match avoidance {
            Avoidance::Normal => Self::Normal,
            Avoidance::StandStill => Self::StandStill,
            Avoidance::MovingAside => Self::MovingAside,
            Avoidance::GoOnPlease => Self::GoOnPlease,
            Avoidance::Overtaking => Self::Overtaking,
            Avoidance::EmergencyLand => Self::EmergencyLand,
        }
    }
}

/// How far a flight has come, in words that all protocols share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Phase {
    /// On the ground, waiting for setup.
    Start,
    /// Being set up, or on the way into the mission.
    Preparing,
    /// Set up, waiting for the start.
    Ready,
    /// On the mission, standing for others.
    Waiting,
    /// On the mission, under way.
    Moving,
    /// The mission is over: coming down.
    Ending,
    /// Landed after the mission.
    Finished,
    /// Ended by the operator or a failure.
    Aborted,
}
