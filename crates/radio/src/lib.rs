//! Datagrams to and from the other aircraft.
//!
//! A [`Radio`] is either [`UdpBroadcast`] (an aircraft's 802.11 interface) or a [`HubRadio`] (one of N
//! radios on a simulated channel that a [`Hub`] runs in real time). Whoever flies with one cannot tell which.
//! Nothing here reads a datagram: what it says, and whether it is our own echo, is the agent's business.
//!
//! Promises: sending never waits (a beacon that cannot leave now is worth nothing later); every queue is
//! bounded and counts what it dropped; an interface that disappears is looked for again, for ever.
#![forbid(unsafe_code)]

mod clock;
mod hub;
mod udp;

use std::future::Future;

pub use clock::{Clock, ClockError};
pub use hub::{Hub, HubCounters, HubRadio, Positions};
pub use udp::{OpenError, OpenErrorKind, TURN_MAX, UdpBroadcast, UdpConfig, check};
use wingbeat_wire::DATAGRAM_LEN_MAX;

/// Datagrams received and not yet taken. 128 aircraft that each beacon five times a second fill it in
/// 0.4 s: an owner that is later than that has other problems.
const RECEIVED_MAX: usize = 256;

/// A broadcast radio.
pub trait Radio: Send + Sync + 'static {
    /// Broadcasts a datagram, without waiting.
    ///
    /// # Errors
    /// It did not leave; nothing will send it later.
    fn send(&self, datagram: &[u8]) -> Result<(), SendError>;

    /// The next event; `None` when the radio has ended for good. Dropping the future loses nothing.
    fn recv(&mut self) -> impl Future<Output = Option<RadioEvent>> + Send;

    /// Datagrams that arrived and were thrown away because they were not taken in time.
    fn overflows(&self) -> u64;
}

/// What happened on the radio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RadioEvent {
    /// It can send and hear.
    Up,
    /// It cannot, and why; said once per reason.
    Down {
        /// One line: what, found, expected.
        reason: String,
    },
    /// A datagram arrived; possibly our own.
    Datagram(Vec<u8>),
}

/// Why a datagram did not leave.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The radio is down.
    #[error("the radio is down")]
    Down,
    /// Its queue is full.
    #[error("the radio's queue is full")]
    Busy,
    /// It is longer than one frame carries.
    #[error("a datagram of {0} bytes, expected at most {DATAGRAM_LEN_MAX}")]
    TooLong(usize),
    /// The kernel refused it.
    #[error("the kernel refused a broadcast ({0})")]
    Refused(String),
}

impl SendError {
    /// A stable word for counters.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Down => "radio_down",
            Self::Busy => "radio_busy",
            Self::TooLong(_) => "radio_too_long",
            Self::Refused(_) => "radio_refused",
        }
    }
}

fn fits(datagram: &[u8]) -> Result<(), SendError> {
    if datagram.len() > DATAGRAM_LEN_MAX { Err(SendError::TooLong(datagram.len())) } else { Ok(()) }
}
