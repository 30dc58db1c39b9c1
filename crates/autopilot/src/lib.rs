//! What a companion computer says to an autopilot and hears from it: MAVLink microservices, client
//! side, without IO, clock or allocation.
//!
//! This crate owns the `mavlink` dependency. Others take messages from [`mavlink`] here and frames from
//! [`codec`], so that the library's version is a matter of one crate.
#![no_std]
#![forbid(unsafe_code)]

pub mod codec;
pub mod copter;

pub use mavlink::dialects::ardupilotmega as dialect;
