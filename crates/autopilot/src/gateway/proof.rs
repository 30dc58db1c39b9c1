//! Whether a UDP client receives at the address from which it sends.
//!
//! Any sender's address can be written into a datagram. So the gateway answers no peer with more than it sent, until the
//! peer has returned a number that only its address was sent: a `PING` request
//! (<https://mavlink.io/en/services/ping.html>), which ground stations answer by themselves. They answer a vehicle that
//! they know, so they are sent the autopilot's heartbeat too. Both are as short as the shortest frame that a ground station
//! sends, its heartbeat in MAVLink 1.

use mavlink::MessageData as _;

use super::{FrameWriter, Raw, Vec, message_of};
use crate::codec::{FRAME_LEN_MAX, encode_v1};
use crate::dialect::{HEARTBEAT_DATA, MavMessage, PING_DATA};

/// The number of one address: as many bits as fit a challenge of [`CHALLENGE_LEN`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie(u64);

/// Bits of a cookie: the rest of the field is zero, and MAVLink 2 does not send zeros at the end.
const COOKIE_BITS: u32 = 40;
/// The longest challenge, bytes: a frame of MAVLink 2 with the cookie alone.
pub const CHALLENGE_LEN: usize = 10 + COOKIE_BITS as usize / 8 + 2;
/// The length of the autopilot's heartbeat as it is sent to a peer that has not proved its address.
pub const GREETING_LEN: usize = 8 + 9;
const _: () = assert!(CHALLENGE_LEN == GREETING_LEN, "both answer a heartbeat in MAVLink 1");

impl Cookie {
    /// From a number that only the daemon can compute.
    pub fn new(secret: u64) -> Self {
        // Never zero, which a peer may send unasked.
        Self((secret & ((1 << COOKIE_BITS) - 1)).max(1))
    }

    /// Whether this frame returns it.
    pub fn is_returned_by(self, frame: Raw<'_>) -> bool {
        frame.message_id() == PING_DATA::ID
            && matches!(message_of(frame), Some(MavMessage::PING(ping)) if ping.time_usec == self.0
                && ping.target_system != 0)
    }
}

impl FrameWriter {
    /// The request that a peer answers with its cookie; at most [`CHALLENGE_LEN`] bytes.
    pub fn challenge(&mut self, system_id: u8, cookie: Cookie) -> Vec<u8, FRAME_LEN_MAX> {
        self.frame(system_id, &MavMessage::PING(PING_DATA { time_usec: cookie.0, ..PING_DATA::default() }))
    }
}

/// The autopilot's heartbeat in [`GREETING_LEN`] bytes, whatever its version and signature; none of other frames.
pub fn greeting(frame: Raw<'_>) -> Option<Vec<u8, FRAME_LEN_MAX>> {
    if frame.message_id() != HEARTBEAT_DATA::ID {
        return None;
    }
    let message = message_of(frame)?;
    let mut bytes = Vec::new();
    encode_v1(frame.header(), &message, &mut bytes).ok()?;
    Some(bytes)
}
