//! MAVLink between a companion computer and an autopilot: microservices, client side, without IO, clock or
//! allocation.
//!
//! One file per microservice: [`telemetry`] keeps what was received, [`streams`] requests it,
//! [`heartbeat`] is ours, and the jobs ([`mode`], [`arming`], [`takeoff`], [`target`], [`mission`],
//! [`parameter`], [`command`], [`signing`]) each have one effect: they send, wait, repeat, and are done
//! when telemetry shows it. [`guided`] and [`rc`] are streams: nothing answers them.
//! [`data_flash`] fetches its logs, [`gnss_time`] estimates UTC from the autopilot's clock, [`remote_id`] informs its transmitter. [`gateway`] judges what other ground stations send to the same autopilot.
//!
//! This crate owns the `mavlink` dependency. Others take messages from [`dialect`] and frames from
//! [`codec`], so that the library's version is a matter of one crate.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

pub mod arming;
pub mod codec;
pub mod command;
pub mod copter;
pub mod data_flash;
pub mod gateway;
pub mod gnss_time;
pub mod guided;
pub mod heartbeat;
pub mod identity;
pub mod job;
pub mod mission;
pub mod mode;
pub mod parameter;
pub mod rc;
pub mod remote_id;
pub mod rtcm;
pub mod signing;
pub mod streams;
pub mod takeoff;
pub mod target;
pub mod telemetry;

pub use codec::message_name;
pub use job::{Failure, Progress, Transmit};
pub use mavlink::dialects::ardupilotmega as dialect;
pub use telemetry::Telemetry;
