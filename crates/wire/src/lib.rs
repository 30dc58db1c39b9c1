//! The messages between aircraft and their bytes; and the vocabulary that aircraft share with the ground: an
//! operator's [`Command`], a flight's [`StateId`] and [`Phase`].
//!
//! A [`Datagram`] is postcard-encoded: everything in it is bounded and an integer. A sender's [`Signer`] seals it in
//! an envelope of version, key epoch, fleet tag and signature, and a receiver's [`Roster`] opens that: [`Opened`] is a
//! datagram that its sender signed, and there is no other way to one. Both never allocate and never panic, and name one
//! reason per refused datagram. Golden datagrams lie under `vectors/`, a map of the bytes in `docs/protocols/wire.md`.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

#[cfg(feature = "schema")]
extern crate std;

mod class;
mod command;
mod deltas;
mod envelope;
mod keys;
mod message;
mod order;
mod places;
mod probe;
mod read;
mod refused;
mod rtcm;
mod state;
mod verifier;

pub use class::Class;
pub use command::Command;
pub use envelope::{Claim, Draft, Opened, SIGNATURE_LEN, Screen, read_unverified, sender_unverified};
pub use keys::{FleetKey, PublicKey, ROSTER_MAX, Roster, RosterError, SecretKey, Signer};
pub use message::{
    AGE_MAX_MS, Avoidance, Beacon, COMMAND_LEN_MAX, COURSE_MAX, Coordinates, Course, Ending,
    FIRST_WAYPOINTS_MAX, FirstPart, LOCATIONS_MAX, Location, MORE_WAYPOINTS_MAX, Message, MoreWaypoints,
    Plan, Point, SWARM_MAX, Sealed, SlotOffset, VehicleId, WAYPOINTS_MAX,
};
pub use order::{
    ADDRESSEES_MAX, Addressees, CommandId, EXCLUSION_LEN_MAX, Order, OrderProgress, OrderTaken, Role,
};
pub use places::Places;
pub use probe::{Padding, Probe, SenderMotion};
pub use refused::Refused;
pub use rtcm::{Corrections, RTCM_LEN_MAX, RtcmFinder, is_frame as is_rtcm_frame, rtcm_frame};
use serde::Serialize;
pub use state::{Phase, StateId};

/// The longest datagram: what fits an Ethernet frame without fragments (1500 − 20 IP − 8 UDP).
pub const DATAGRAM_LEN_MAX: usize = 1472;

/// The first byte of every signed datagram. A change of any message below changes it. A kind that is added does not: to
/// an older program its datagrams are malformed.
pub const VERSION: u8 = 4;

/// A datagram: a message with its sender, counter and flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct Datagram {
    /// The sender.
    pub from: VehicleId,
    /// The sender's clock, microseconds: each of its datagrams has a higher one than all before, also of the process
    /// before.
    pub counter: u64,
    /// The flight it belongs to: drawn at random by the leader at setup. Before that, [`Message::Hello`] bears a
    /// number made from the id of the leader that it is for. A message of another flight is an old one or another
    /// swarm's.
    pub flight: u32,
    /// The content.
    pub message: Message,
}

impl Datagram {
    /// An empty one, to be read into with [`Opened::read_into`].
    pub const fn blank() -> Self {
        Self { from: VehicleId(0), counter: 0, flight: 0, message: Message::ReadyToFly }
    }

    /// Its bytes, not yet sealed.
    ///
    /// # Errors
    /// As [`Draft::write`].
    pub fn draft(&self) -> Result<Draft, Refused> {
        let mut draft = Draft::default();
        draft.write(self.from, self.counter, self.flight, &self.message)?;
        Ok(draft)
    }
}

/// What stands around a message at its longest: the envelope; twice 64 bits and once 32, seven to a byte.
const AROUND_LEN_MAX: usize = envelope::ENVELOPE_LEN + 10 + 10 + 5;

/// Three numbers of 32 bits, seven to a byte.
const POINT_LEN_MAX: usize = 3 * 5;

// Kind; hash; twice 16 bits; the number of waypoints.
const _: () = assert!(
    AROUND_LEN_MAX + 1 + 10 + 3 + 3 + 1 + MORE_WAYPOINTS_MAX * POINT_LEN_MAX <= DATAGRAM_LEN_MAX,
    "the longest DataWaypoints fits a datagram"
);

// Kind; length.
const _: () = assert!(
    AROUND_LEN_MAX + 1 + 2 + RTCM_LEN_MAX <= DATAGRAM_LEN_MAX,
    "the longest Corrections fits a datagram"
);

/// Length of the longest datagram with this message: the sender's id, the counter and the flight at their
/// longest. More than [`DATAGRAM_LEN_MAX`] cannot be sent.
pub fn length_at_most(message: &Message) -> usize {
    AROUND_LEN_MAX + length(message)
}

/// Bytes of a position in a datagram.
pub fn point_length(point: Point) -> usize {
    length(&point)
}

/// Counting writes nothing, so there is nothing that can fail; if it did, the value cannot be sent.
fn length<T: Serialize>(value: &T) -> usize {
    postcard::experimental::serialized_size(value).unwrap_or(DATAGRAM_LEN_MAX)
}

#[cfg(test)]
mod tests;
