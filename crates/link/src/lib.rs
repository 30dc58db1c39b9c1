//! Bytes to and from the autopilot over a serial line, TCP or UDP.
//!
//! An [`Endpoint`] is parsed from one string of the configuration (`serial:/dev/ttyAMA0:921600`). A [`Link`]
//! is a task that opens it, reports [`LinkEvent::Up`], carries bytes both ways, reports
//! [`LinkEvent::Down`] with the reason, and opens it again, for ever, with a bounded back-off. Nothing
//! here knows MAVLink: what the bytes mean is the agent's business.
//!
//! Promises: no byte that was queued before a port opened is written to it (an order that waited out a
//! disconnection is an order out of date); every queue is bounded; a reason names the
//! endpoint, what was found and what was expected.
#![allow(clippy::disallowed_methods, reason = "serial lines and sockets are reopened in real time")]
#![forbid(unsafe_code)]

mod endpoint;
mod holder;
mod port;
mod task;

pub use endpoint::{Endpoint, EndpointError};
pub use holder::{Holder, holder, kernel_console};
pub use port::{OpenError, OpenErrorKind, check};
pub use task::{Backoff, Link, LinkEvent, SendError, TURN_MAX};
