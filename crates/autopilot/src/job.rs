//! What all jobs share: sending, retrying, ending.

use wingbeat_geo::{Duration, Instant};

use crate::codec::framing::Framing;
use crate::codec::{BufferFull, MavHeader, encode_signed, encode_v1, encode_v2};
use crate::dialect::{COMMAND_LONG_DATA, MavCmd, MavMessage, MavResult};
use crate::parameter::{BadValue, Kind, Name, Value};

/// Our MAVLink component: an onboard computer (<https://mavlink.io/en/messages/common.html#MAV_COMP_ID_ONBOARD_COMPUTER>).
pub const COMPONENT_ID: u8 = 191;

/// The autopilot's component on its system.
pub const AUTOPILOT_COMPONENT_ID: u8 = 1;

/// Bytes for the autopilot that one input may ask for: eight frames of the longest kind.
pub const TRANSMIT_LEN_MAX: usize = 8 * crate::codec::FRAME_LEN_MAX;

/// Where frames for the autopilot go.
pub struct Transmit<'a> {
    /// The autopilot's system id, which is ours too.
    pub system_id: u8,
    /// Counts our frames.
    pub sequence: &'a mut u8,
    /// MAVLink 1 or 2, signed or not: no job depends on it.
    pub framing: Framing<'a>,
    /// Bytes so far.
    pub bytes: &'a mut heapless::Vec<u8, TRANSMIT_LEN_MAX>,
}

impl Transmit<'_> {
    /// Appends one message as a frame.
    ///
    /// # Errors
    /// The bytes of this input are full; a job tries again at its next deadline.
    pub fn send(&mut self, message: &MavMessage) -> Result<(), BufferFull> {
        self.send_from(self.system_id, COMPONENT_ID, message)
    }

    /// Appends one message as a frame of ours under another address: ArduCopter obeys RC overrides only from its
    /// ground station's system id, and the guardian is a component of its own.
    ///
    /// # Errors
    /// As [`Transmit::send`].
    pub fn send_from(
        &mut self,
        system_id: u8,
        component_id: u8,
        message: &MavMessage,
    ) -> Result<(), BufferFull> {
        let header = MavHeader { system_id: system_id.into(), component_id, sequence: *self.sequence };
        self.send_as(header, message)?;
        *self.sequence = self.sequence.wrapping_add(1);
        Ok(())
    }

    /// Appends one message under an address that is not ours, whose sequence numbers the caller counts.
    ///
    /// # Errors
    /// As [`Transmit::send`].
    pub fn send_as(&mut self, header: MavHeader, message: &MavMessage) -> Result<(), BufferFull> {
        match &mut self.framing {
            Framing::V1 => encode_v1(header, message, self.bytes),
            Framing::V2 => encode_v2(header, message, self.bytes),
            Framing::Signed(signer) => encode_signed(header, message, signer, self.bytes),
        }
    }

    /// Appends a `COMMAND_LONG`.
    ///
    /// # Errors
    /// As [`Transmit::send`].
    pub fn command(&mut self, command: MavCmd, params: [f32; 7]) -> Result<(), BufferFull> {
        let [param1, param2, param3, param4, param5, param6, param7] = params;
        self.send(&MavMessage::COMMAND_LONG(COMMAND_LONG_DATA {
            param1,
            param2,
            param3,
            param4,
            param5,
            param6,
            param7,
            command,
            target_system: self.system_id,
            target_component: AUTOPILOT_COMPONENT_ID,
            confirmation: 0,
        }))
    }
}

/// How far a job has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// Waiting for an answer or an effect.
    Pending,
    /// The effect shows.
    Done,
    /// It will not happen.
    Failed(Failure),
}

/// Why a job failed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// No answer and no effect after every try.
    #[error("no answer and no effect after {tries} tries")]
    Silent {
        /// Number of tries.
        tries: u8,
    },
    /// The autopilot refused.
    #[error("the autopilot refused {what}: result {result}")]
    Refused {
        /// The command, mode or item that was requested.
        what: &'static str,
        /// Its MAV_RESULT or MAV_MISSION_RESULT.
        result: u8,
    },
    /// It was accepted without an effect.
    #[error("{what} was accepted, and its effect was not seen")]
    NoEffect {
        /// The command, mode or item that was requested.
        what: &'static str,
    },
    /// It lies outside the fence; nothing was sent.
    #[error("found a target {found_m} m {of}, expected at most {most_m} m (the fence)")]
    Outside {
        /// What is measured: from home, or above home.
        of: &'static str,
        /// Found, metres.
        found_m: i32,
        /// Expected at most, metres.
        most_m: i32,
    },
    /// It is not done in flight.
    #[error("{what}: found armed motors, expected disarmed ones")]
    Armed {
        /// The command, mode or item that was requested.
        what: &'static str,
    },
    /// What the autopilot holds is not what was sent.
    #[error("the autopilot holds item {seq} differently from what was sent")]
    Different {
        /// The first item that differs.
        seq: u16,
    },
    /// What the autopilot holds is no route of ours.
    #[error("mission item {seq} is none of a route: found another than a take-off and waypoints above home")]
    NoRoute {
        /// The first item that is none.
        seq: u16,
    },
    /// What the autopilot holds is no fence of ours, or no rally point.
    #[error(
        "{what}: item {seq} is none that is known, expected corners, circles and rally points above home"
    )]
    NoRegion {
        /// The list.
        what: &'static str,
        /// The first item that is none.
        seq: u16,
    },
    /// What is being read changed while it was read.
    #[error("{what} changed while it was read")]
    Changed {
        /// The list.
        what: &'static str,
    },
    /// There are more than Wingbeat takes.
    #[error("{what}: found {found}, expected at most {most}")]
    TooMany {
        /// Their name.
        what: &'static str,
        /// Number found.
        found: u16,
        /// Highest number.
        most: u16,
    },
    /// The autopilot has no parameter of this name.
    #[error("parameter {name}: this autopilot does not have it")]
    NoParameter {
        /// The parameter.
        name: Name,
    },
    /// The autopilot answered nothing about a parameter; up to 4.6 it has none of this name then.
    #[error("parameter {name}: no answer after 3 requests, expected a parameter of this autopilot")]
    NoAnswerAbout {
        /// The parameter.
        name: Name,
    },
    /// A fraction for a parameter that is a whole number.
    #[error("parameter {name}: found {found}, expected a whole number")]
    ParameterFraction {
        /// The parameter.
        name: Name,
        /// The value.
        found: f32,
    },
    /// The autopilot refused to read or write a parameter.
    #[error("parameter {name}: the autopilot refused it with error {error}")]
    ParameterRefused {
        /// The parameter.
        name: Name,
        /// Its MAV_PARAM_ERROR.
        error: u8,
    },
    /// A parameter holds another kind of number.
    #[error("parameter {name}: found {found}, expected {expected}")]
    ParameterKind {
        /// The parameter.
        name: Name,
        /// What the autopilot reported.
        found: Kind,
        /// The item that was expected.
        expected: Kind,
    },
    /// A parameter holds another value than was written.
    #[error("parameter {name}: found {found}, expected {expected}")]
    ParameterValue {
        /// The parameter.
        name: Name,
        /// What the autopilot holds.
        found: Value,
        /// The value that was written.
        expected: Value,
    },
    /// A parameter's value cannot be read.
    #[error(transparent)]
    Parameter(BadValue),
}

/// A number of tries with a fixed time between them.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    period: Duration,
    left: Option<u8>,
    made: u8,
    due: Instant,
}

impl Retry {
    /// `tries` tries, the first of them now.
    pub fn new(now: Instant, period: Duration, tries: u8) -> Self {
        Self { period, left: Some(tries), made: 0, due: now }
    }
    /// Tries without end: for a stop, a landing, a return.
    pub fn endless(now: Instant, period: Duration) -> Self {
        Self { period, left: None, made: 0, due: now }
    }
    /// When the next try or the end is due.
    pub fn due(&self) -> Instant {
        self.due
    }
    /// Whether to try now.
    ///
    /// # Errors
    /// The last try is over and its time has passed.
    pub fn poll(&mut self, now: Instant) -> Result<bool, Failure> {
        if now < self.due {
            return Ok(false);
        }
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1).ok_or(Failure::Silent { tries: self.made })?;
        }
        self.made = self.made.saturating_add(1);
        self.due = now + self.period;
        Ok(true)
    }
}

/// The result of `command`, where the message acknowledges it.
#[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
pub fn acknowledged(message: &MavMessage, command: MavCmd) -> Option<MavResult> {
    match message {
        MavMessage::COMMAND_ACK(ack) if ack.command == command => Some(ack.result),
        _ => None,
    }
}

/// Bytes and sequence number for a job's test.
#[cfg(test)]
pub(crate) mod testing {
    extern crate std;
    use super::*;
    use crate::codec::Decoder;
    use std::vec::Vec;

    /// Runs `act` with somewhere to send and returns the messages that it sent.
    pub(crate) fn sent(act: impl FnOnce(&mut Transmit<'_>)) -> Vec<MavMessage> {
        let (mut sequence, mut bytes) = (0, heapless::Vec::new());
        let framing = Framing::default();
        act(&mut Transmit { system_id: 1, sequence: &mut sequence, framing, bytes: &mut bytes });
        let mut messages = Vec::new();
        Decoder::default().push(&bytes, |frame| messages.push(frame.message));
        messages
    }

    /// An acknowledgement.
    pub(crate) fn ack(command: MavCmd, result: MavResult) -> MavMessage {
        MavMessage::COMMAND_ACK(crate::dialect::COMMAND_ACK_DATA {
            command,
            result,
            ..crate::dialect::COMMAND_ACK_DATA::default()
        })
    }
}
