//! Fence and rally points, on the ground: sent, cleared or read on request. Their points stay with the owner of the agent, who is
//! asked for each, and is handed those that are read; it compares them, and judges the route by them ([`Verdict`]).

use serde::{Deserialize, Serialize};
use wingbeat_autopilot::job::Failure;
use wingbeat_autopilot::mission::{RegionEvent, RegionKind, RegionPoint};

/// What is asked of the autopilot, or handed to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum RegionOrder {
    /// Read the list.
    Read(RegionKind),
    /// Replace the list by so many points; by none clears it.
    Write(RegionKind, u16),
    /// The point that was asked for ([`RegionEvent::Wanted`]).
    Supply(u16, RegionPoint),
    /// How the route lies in the fence that was read; nothing where that is not known any more.
    Judged(Option<Verdict>),
}

/// How a route lies in a fence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The hash of the route ([`wingbeat_autopilot::mission::hash`]).
    pub route_hash: u64,
    /// Points of the fence.
    pub points: u16,
    /// What was found.
    pub finding: RegionFinding,
}

/// What is outside of the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RegionFinding {
    /// Nothing.
    Inside,
    /// Where the aircraft stands.
    Home,
    /// The waypoint of this number, from 1.
    Waypoint(u16),
    /// Part of the leg to the waypoint of this number, from 1.
    Leg(u16),
}

impl core::fmt::Display for RegionFinding {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Inside => write!(f, "home and route lie inside of the fence"),
            Self::Home => write!(f, "found home outside of the fence, expected it inside"),
            Self::Waypoint(n) => write!(f, "found waypoint {n} outside of the fence, expected it inside"),
            Self::Leg(n) => write!(f, "found the leg to waypoint {n} leaving the fence, expected it inside"),
        }
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RegionReport {
    /// A point is wanted, or was read.
    Event(RegionEvent),
    /// Nothing is under way any more: the list was read completely, or why not.
    Ended(Result<(), Failure>),
}

/// Where they are put: a piece of a read has eight frames of them at most.
pub(crate) type Reports = heapless::Vec<RegionReport, { crate::REPORTS_MAX }>;
