//! Space and time in numbers: integer instants, WGS84 positions, local frames, closest approach,
//! formations and the assignment of aircraft to slots.
//!
//! Pure: no clock, no IO, no allocation beyond fixed bounds. Every transcendental function goes
//! through `libm`, so that x86 and ARM compute the same bits.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

pub mod approach;
pub mod assignment;
pub mod formation;
pub mod position;
pub mod rate;
pub mod region;
pub mod time;
pub mod unbounded;

pub use approach::Approach;
pub use assignment::assign;
pub use formation::{Formation, FormationError};
pub use glam::{DQuat, DVec2, DVec3};
pub use position::{Frame, Position, PositionError, Scale};
pub use rate::Rate;
pub use time::{Duration, Instant};

/// The largest swarm that one formation holds: the papers fly 81 and 100, the console draws 100.
pub const AIRCRAFT_MAX: usize = 128;

/// Waypoints of an aircraft that flies for itself: what an ArduCopter of 724 items holds, with room for home, the
/// take-off and what a console adds. The agent, the upload and the API take it from here.
pub const ROUTE_MAX: usize = 600;
