//! Datagrams to and from the other aircraft.
//!
//! A [`Radio`] is either [`UdpBroadcast`] (an aircraft's 802.11 interface) or, on the bench, a radio of
//! `wingbeat_hub` (a simulated channel in real time). The daemon does not distinguish them. Nothing here
//! decodes a datagram; the agent does, and drops the echo of its own.
//!
//! Promises: sending never waits (a beacon that cannot leave now is useless later); every queue is
//! bounded and counts what it dropped; an outsider's datagrams take no place in it, and no sender's push out another's; an interface that disappears or changes is reopened when it is back; no class of
//! datagrams holds up another ([`Budget`]), and emergencies have a socket of their own.
//!
//! [`Clock`] is here because the daemon and the hub need the same one, and both depend on this crate.
#![forbid(unsafe_code)]

mod budget;
mod clock;
mod destination;
mod interface;
mod outage;
mod queue;
mod udp;

use std::{future::Future, net::SocketAddr};

pub use budget::{Budget, on_air_bytes, rate_bytes_s};
pub use clock::{Clock, ClockError};
pub use destination::Destination;
pub use outage::Outage;
pub use udp::{OpenError, OpenErrorKind, TURN_MAX, UdpBroadcast, UdpConfig, check, listener};
use wingbeat_wire::{Class, DATAGRAM_LEN_MAX, Refused, Screen};

/// Capacity of a radio's queue of received datagrams. 128 aircraft that each send five beacons a second
/// fill it in 0.4 s; an owner that takes longer than that to drain it has failed already.
pub const RECEIVED_MAX: usize = 256;

/// A broadcast radio.
pub trait Radio: Send + Sync + 'static {
    /// Broadcasts a datagram, without waiting.
    ///
    /// # Errors
    /// The datagram did not leave, and will not be sent later.
    fn send(&self, class: Class, datagram: &[u8]) -> Result<(), SendError>;

    /// Sends a datagram to one radio, without waiting: a test of the link may ask for it (802.11 repeats such frames until
    /// they are acknowledged, and broadcasts never).
    ///
    /// # Errors
    /// As [`Radio::send`].
    fn send_to(&self, radio: SocketAddr, datagram: &[u8]) -> Result<(), SendError>;

    /// The next event; `None` when the radio has ended for good. Dropping the future loses nothing.
    fn recv(&mut self) -> impl Future<Output = Option<RadioEvent>> + Send;

    /// Datagrams that arrived and were dropped because the queue was full.
    fn overflows(&self) -> u64;

    /// From now on what this screen refuses is counted and waits in no queue, and what waits is served by turns of its
    /// senders. A radio of the bench has no outsiders.
    fn screen(&self, _: Screen) {}

    /// What the screen has refused.
    fn refused(&self) -> Screened {
        Screened::default()
    }
}

/// How many datagrams a screen refused, in the order of [`Refused::ALL`].
pub type Screened = [u64; Refused::ALL.len()];

/// A change of the radio, or a reception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RadioEvent {
    /// It can send and receive.
    Up,
    /// It cannot send or receive; one event per reason.
    Down {
        /// One line: what, found, expected.
        reason: String,
    },
    /// A datagram was received; it may be the echo of one that this radio sent.
    Datagram {
        /// The radio that sent it, for [`Radio::send_to`].
        from: SocketAddr,
        /// The datagram.
        bytes: Vec<u8>,
    },
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
    /// Its class has sent too much of late.
    #[error("{} datagrams take more than {} bytes a second", class_name(*.0), rate_bytes_s(*.0))]
    OverBudget(Class),
    /// The datagram is longer than one frame carries.
    #[error("a datagram of {0} bytes, expected at most {DATAGRAM_LEN_MAX}")]
    TooLong(usize),
    /// The kernel refused it.
    #[error("the kernel refused a broadcast ({0})")]
    Refused(String),
}

impl SendError {
    /// The name of its counter in the aircraft's status.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Down => "radio_down",
            Self::Busy => "radio_busy",
            Self::OverBudget(Class::Emergency) => "over_budget_emergency",
            Self::OverBudget(Class::Coordination) => "over_budget_coordination",
            Self::OverBudget(Class::Beacon) => "over_budget_beacon",
            Self::OverBudget(Class::Test) => "over_budget_test",
            Self::OverBudget(Class::Corrections) => "over_budget_corrections",
            Self::TooLong(_) => "radio_too_long",
            Self::Refused(_) => "radio_refused",
        }
    }
}

const fn class_name(class: Class) -> &'static str {
    match class {
        Class::Emergency => "emergency",
        Class::Coordination => "coordination",
        Class::Beacon => "beacon",
        Class::Test => "test",
        Class::Corrections => "corrections",
    }
}

/// Checks that one frame carries the datagram; for implementations of [`Radio::send`].
///
/// # Errors
/// [`SendError::TooLong`].
pub fn check_len(datagram: &[u8]) -> Result<(), SendError> {
    if datagram.len() > DATAGRAM_LEN_MAX { Err(SendError::TooLong(datagram.len())) } else { Ok(()) }
}
