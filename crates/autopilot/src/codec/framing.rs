//! MAVLink 1 or 2 towards one autopilot.
//!
//! MAVLink 2 is sent until the autopilot proves not to understand it. ArduCopter answers in MAVLink 2 on a port with
//! `SERIALn_PROTOCOL = 2`; on a port with 1 (3.5.7's default on its first) it answers in
//! MAVLink 1 until it receives MAVLink 2, and understands both. So frames in MAVLink 1 alone prove nothing; that
//! they continue although MAVLink 2 is sent does. Then the request for `AUTOPILOT_VERSION`, which is repeated
//! until it is answered, leaves in MAVLink 1, and the capabilities in the answer decide.

use wingbeat_geo::{Duration, Instant};

use super::signing::Signer;
use super::{Frame, Version};
use crate::dialect::{MavMessage, MavProtocolCapability};
use crate::job::{TRANSMIT_LEN_MAX, Transmit};

/// Long enough for our heartbeat to arrive and for an answer in MAVLink 2, with one heartbeat lost.
const PATIENCE: Duration = Duration::from_secs(5);

/// The state of sending on one link to an autopilot.
#[derive(Clone, Debug, Default)]
pub struct Outgoing {
    /// Counts our frames.
    pub sequence: u8,
    /// MAVLink 1 or 2.
    pub negotiation: Negotiation,
    /// Signs every frame, if there is one. Only MAVLink 2 can be signed, so that is sent then.
    pub signer: Option<Signer>,
}

impl Outgoing {
    /// Where frames for the autopilot `system_id` go.
    pub fn transmit<'a>(
        &'a mut self,
        system_id: u8,
        bytes: &'a mut heapless::Vec<u8, TRANSMIT_LEN_MAX>,
    ) -> Transmit<'a> {
        let framing = match (&mut self.signer, self.negotiation.version()) {
            (Some(signer), _) => Framing::Signed(signer),
            (None, Version::V1) => Framing::V1,
            (None, Version::V2) => Framing::V2,
        };
        Transmit { system_id, sequence: &mut self.sequence, framing, bytes }
    }
}

/// The format of our frames.
#[derive(Debug, Default)]
pub enum Framing<'a> {
    /// MAVLink 1.
    V1,
    /// MAVLink 2.
    #[default]
    V2,
    /// MAVLink 2, signed.
    Signed(&'a mut Signer),
}

/// Decides which version is sent to the autopilot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Negotiation {
    /// From its capabilities, or from a frame in MAVLink 2.
    understands_v2: Option<bool>,
    /// When its first frame came, in MAVLink 1.
    v1_since: Option<Instant>,
    now: Instant,
}

impl Negotiation {
    /// Takes a frame of the autopilot.
    pub fn on_frame(&mut self, now: Instant, frame: &Frame) {
        self.now = now;
        if frame.version == Version::V2 {
            // An autopilot that sends it understands it, whatever its capabilities.
            self.understands_v2 = Some(true);
            return;
        }
        self.v1_since.get_or_insert(now);
        if let MavMessage::AUTOPILOT_VERSION(m) = &frame.message
            && self.understands_v2.is_none()
        {
            let v2 = MavProtocolCapability::MAV_PROTOCOL_CAPABILITY_MAVLINK2;
            self.understands_v2 = Some(m.capabilities.contains(v2));
        }
    }
    /// Forgets: another autopilot may be there now.
    pub fn restart(&mut self) {
        *self = Self::default();
    }
    /// The version to send.
    pub fn version(&self) -> Version {
        match (self.understands_v2, self.v1_since) {
            (Some(false), _) => Version::V1,
            (None, Some(since)) if self.now.since(since) >= PATIENCE => Version::V1,
            (Some(true) | None, _) => Version::V2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::MavHeader;
    use crate::dialect::{AUTOPILOT_VERSION_DATA, HEARTBEAT_DATA};

    fn heartbeat(version: Version) -> Frame {
        let header = MavHeader { system_id: 1, component_id: 1, sequence: 0 };
        Frame { header, version, message: MavMessage::HEARTBEAT(HEARTBEAT_DATA::default()) }
    }

    fn capabilities(capabilities: MavProtocolCapability) -> Frame {
        let message =
            MavMessage::AUTOPILOT_VERSION(AUTOPILOT_VERSION_DATA { capabilities, ..Default::default() });
        Frame { message, ..heartbeat(Version::V1) }
    }

    fn after(frames: &[(u64, Frame)]) -> Version {
        let mut negotiation = Negotiation::default();
        for (s, frame) in frames {
            negotiation.on_frame(Instant::from_secs(*s), frame);
        }
        negotiation.version()
    }

    #[test]
    fn version_2_until_the_autopilot_does_not_answer_it() {
        let (v1, v2) = (heartbeat(Version::V1), heartbeat(Version::V2));
        assert_eq!(after(&[]), Version::V2);
        // 3.5.7: begins in 1, receives our 2, continues in 2, and stays whatever a stray frame shows.
        assert_eq!(after(&[(0, v1.clone())]), Version::V2);
        assert_eq!(after(&[(0, v1.clone()), (2, v2.clone()), (60, v1.clone())]), Version::V2);
        // An autopilot that understands only version 1 never answers in 2.
        assert_eq!(after(&[(0, v1.clone()), (4, v1.clone())]), Version::V2);
        assert_eq!(after(&[(0, v1.clone()), (5, v1.clone())]), Version::V1);
        // It was slow.
        assert_eq!(after(&[(0, v1.clone()), (9, v1), (10, v2)]), Version::V2);
    }

    #[test]
    fn its_capabilities_decide() {
        let v1 = heartbeat(Version::V1);
        let both = MavProtocolCapability::MAV_PROTOCOL_CAPABILITY_MAVLINK2;
        assert_eq!(after(&[(0, capabilities(both)), (60, v1.clone())]), Version::V2, "SERIALn_PROTOCOL = 1");
        assert_eq!(after(&[(0, capabilities(MavProtocolCapability::empty())), (1, v1)]), Version::V1);
    }

    #[test]
    fn another_autopilot_is_negotiated_again() {
        let mut negotiation = Negotiation::default();
        negotiation.on_frame(Instant::ZERO, &capabilities(MavProtocolCapability::empty()));
        assert_eq!(negotiation.version(), Version::V1);
        negotiation.restart();
        assert_eq!(negotiation.version(), Version::V2);
    }
}
