//! Why an operator's command or mission is not accepted: values, whose text is made where it is displayed.

use wingbeat_wire::{Command, StateId, VehicleId};

use crate::ROUTE_MAX;
use crate::swarm::plan::PlanError;

/// Why an operator's command is not carried out now.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Denied {
    /// The state forbids it.
    #[error("{command} is possible in state {expected}, found {found}")]
    State {
        /// The command that was refused.
        command: Command,
        /// The present state.
        found: StateId,
        /// The state in which it is accepted.
        expected: StateId,
    },
    /// Gusts have carried it off its slot.
    #[error("{found_m:.1} m from its slot, expected at most {most_m:.1} m: press Start again")]
    OffSlot {
        /// Distance over the ground, metres.
        found_m: f64,
        /// Largest accepted value, metres.
        most_m: f64,
    },
    /// Another aircraft flies over the take-off site.
    #[error("{0} flies over the take-off site or is about to: press Start again when it has passed")]
    Overflown(VehicleId),
    /// There is nothing to stop.
    #[error("on the ground, {found}")]
    OnGround {
        /// Its state there.
        found: StateId,
    },
    /// Setup begins with motors off.
    #[error("setup needs a disarmed aircraft")]
    Armed,
    /// The aircraft has no mission to fly.
    #[error("no mission: hand one over first")]
    NoMission,
    /// The flight controller has not reported a position.
    #[error("no position yet")]
    NoPosition,
    /// It is not where it is started from.
    #[error("off its slot while another lands below: again when it is back")]
    Aside,
    /// The flight controller has not reported a heading.
    #[error("no heading yet")]
    NoHeading,
    /// The mission leaves the fence.
    #[error(transparent)]
    Fence(#[from] FenceError),
    /// The swarm cannot fly the mission in this formation.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Calls under one id come from two positions.
    #[error("{0}: received from two positions, two aircraft with this id")]
    DuplicateId(VehicleId),
    /// More aircraft call than the swarm has.
    #[error("{id} calls too: more aircraft than the {expected} of this swarm")]
    Unexpected {
        /// The one too many.
        id: VehicleId,
        /// The size of the swarm.
        expected: usize,
    },
    /// Fewer aircraft call than the swarm has.
    #[error("received from {found} of {expected} aircraft")]
    Missing {
        /// Aircraft that called, with the master.
        found: usize,
        /// The size of the swarm.
        expected: usize,
    },
    /// The fence leaves no heights above the waypoints in which members could return apart from each other.
    #[error("no height above the waypoints is left for returns below {height_most_m} m: hold or land")]
    NoReturnHeight {
        /// The fence, metres above home.
        height_most_m: f64,
    },
    /// A formation does not take back a member that left it.
    #[error("a swarm takes no member back in flight: return or land")]
    NoResume,
    /// Nothing is held that could go on.
    #[error(
        "nothing to resume: found {found}, expected a flight that was held on its route and not taken over"
    )]
    NotHeld {
        /// Its state.
        found: StateId,
    },
    /// It came down too far to fly straight on.
    #[error("resume: found {found_m:.1} m above home, expected at least {least_m} m (the fence)")]
    TooLow {
        /// Its height, metres.
        found_m: f64,
        /// The fence, metres.
        least_m: f64,
    },
    /// Who follows a pilot has no height of its own for the way home.
    #[error("returns behind a pilot are all at one height, and could meet: hold or land")]
    NoReturnBehindPilot,
    /// The aircraft is its pilot's.
    #[error("a pilot flies this aircraft")]
    Piloted,
    /// No swarm flies yet from which a member could be excluded.
    #[error("exclude {0}: no plan yet, no swarm flies")]
    NoPlan(VehicleId),
    /// The swarm has no such member.
    #[error("exclude {0}: no member of this swarm")]
    NoMember(VehicleId),
    /// All follow the aircraft that would be excluded.
    #[error("exclude {0}: a pilot flies it and all follow it")]
    Followed(VehicleId),
    /// The protocol has no swarm.
    #[error("exclude {0}: no swarm, this aircraft flies for itself")]
    NoSwarm(VehicleId),
    /// The command is the agent's own: it never reaches a protocol.
    #[error("not a command that the protocol carries out")]
    NotTheProtocols,
}

/// Why a mission is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum MissionError {
    /// The flight has begun.
    #[error("a mission can be given in state Start, found {found}")]
    State {
        /// The present state.
        found: StateId,
    },
    /// Too few waypoints to fly, or more than an aircraft holds.
    #[error("mission: found {found} waypoints, expected 2 to {ROUTE_MAX}")]
    Waypoints {
        /// Number in the mission.
        found: usize,
    },
    /// A value that no leg has, or a leg to no waypoint.
    #[error(
        "mission, waypoint {waypoint}: expected a waypoint of the mission, at most {} m/s and a yaw below 360 degrees",
        crate::LEG_SPEED_MAX_CM_S / 100
    )]
    Leg {
        /// From 0.
        waypoint: usize,
    },
    /// More items than an aircraft holds.
    #[error(
        "mission: found {found} mission items with speeds, yaws and the end, expected at most {ROUTE_MAX}"
    )]
    Items {
        /// Number of the mission's items.
        found: usize,
    },
    /// A hold, a speed or a yaw at the corner of an area, which is no waypoint.
    #[error(
        "area, corner {waypoint}: found a hold, a speed or a yaw, expected none: lanes have a speed from the first on"
    )]
    LegOfArea {
        /// From 0.
        waypoint: usize,
    },
    /// A hold, a speed, a yaw or a height of take-off of a formation.
    #[error(
        "mission, waypoint {waypoint}: found a speed, a yaw, a hold or another height of take-off, expected none: formations fly none"
    )]
    LegOfFormation {
        /// From 0.
        waypoint: usize,
    },
    /// The swarm cannot fly it.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Another aircraft distributes the swarm's mission.
    #[error("the mission belongs to the master, {0}")]
    Master(VehicleId),
    /// The protocol flies none.
    #[error("FollowMe flies no mission: a pilot flies the leader, {0}")]
    Piloted(VehicleId),
    /// An area is given by three corners.
    #[error("area: found {found} corners, expected 3")]
    Corners {
        /// Number in the mission.
        found: usize,
    },
    /// The first two corners lie over each other.
    #[error("area: found lanes of {found_m:.1} m, expected 1 m or more")]
    LaneLength {
        /// Value of the mission, metres.
        found_m: f64,
    },
    /// The strip of one aircraft is too wide.
    #[error("area: found {found} lanes for one aircraft, expected {} at most", ROUTE_MAX / 2)]
    Lanes {
        /// Number of lanes that the area needs.
        found: f64,
    },
}

/// A waypoint outside the fence.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum FenceError {
    /// Too low or too high.
    #[error(
        "waypoint {waypoint}: found {found_m} m above home, expected {least_m} to {most_m} m (the fence)"
    )]
    Height {
        /// From 0.
        waypoint: usize,
        /// Value of the mission, metres.
        found_m: f64,
        /// Smallest accepted value, metres.
        least_m: f64,
        /// Largest accepted value, metres.
        most_m: f64,
    },
    /// The take-off ends too low or too high.
    #[error("take-off: found {found_m} m above home, expected {least_m} to {most_m} m (the fence)")]
    TakeOff {
        /// Value of the mission, metres.
        found_m: f64,
        /// Smallest accepted value, metres.
        least_m: f64,
        /// Largest accepted value, metres.
        most_m: f64,
    },
    /// Too far from where the aircraft stands at its setup.
    #[error("waypoint {waypoint}: found {found_m:.0} m away, expected at most {most_m} m (the fence)")]
    Distance {
        /// From 0.
        waypoint: usize,
        /// Value of the mission, metres.
        found_m: f64,
        /// Largest accepted value, metres.
        most_m: f64,
    },
}
