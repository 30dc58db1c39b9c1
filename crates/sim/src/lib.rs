//! The simulated world. No IO and no clock: time and the seed are arguments, and the same seed gives
//! the same bytes on every machine.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

pub mod autopilot;
pub mod channel;
pub mod encounters;
pub mod faults;
pub mod flight_controller;
pub mod following;
pub mod keys;
pub mod logic;
pub mod medium;
pub mod motion;
pub mod observer;
pub mod pilot;
mod replies;
pub mod rigid;
pub mod rng;
pub mod sensors;
mod stalls;
pub mod world;
