//! MAVLink frames: bytes in, messages out, and back.
//!
//! [`Decoder`] takes bytes in pieces of any size. Garbage between frames costs nothing but the frames
//! it hides: the library retries a bad candidate from its second byte. What was dropped is counted by
//! reason in [`Refused`].

use mavlink::error::{MessageReadError, ParserError};
use mavlink::{MAVLinkV1MessageRaw, MAVLinkV2MessageRaw, MavlinkReader, MavlinkVersion, Message};

use crate::dialect::MavMessage;

pub use mavlink::MavHeader;

/// The longest MAVLink frame: 10 header, 255 payload, 2 checksum, 13 signature bytes
/// (<https://mavlink.io/en/guide/serialization.html>).
pub const FRAME_LEN_MAX: usize = 280;

/// One message with who sent it.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Sender and sequence number.
    pub header: MavHeader,
    /// The message.
    pub message: MavMessage,
}

/// Bytes and frames that were dropped, by reason. Saturating counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Bytes that belong to no valid frame: line noise, boot text, wrong baud rate.
    pub garbage_bytes: u32,
    /// Frames whose checksum held but whose content is not of the dialect (an enum value that we do
    /// not know, a payload that is too long).
    pub unknown_content: u32,
}

/// A queue that the library reads from: the bytes of one call.
#[derive(Default)]
struct Pending {
    bytes: heapless::Deque<u8, FRAME_LEN_MAX>,
    taken: u32,
}

impl embedded_io::ErrorType for Pending {
    type Error = core::convert::Infallible;
}

impl embedded_io::Read for Pending {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Self::Error> {
        let mut n = 0;
        while n < buffer.len() {
            let Some(byte) = self.bytes.pop_front() else { break };
            buffer[n] = byte;
            n += 1;
        }
        self.taken = self.taken.wrapping_add(n as u32);
        Ok(n)
    }
}

/// Finds the frames in a stream of bytes.
pub struct Decoder {
    reader: MavlinkReader<Pending>,
    refused: Refused,
    version: Option<MavlinkVersion>,
    bytes_in: u32,
    bytes_in_frames: u32,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            reader: MavlinkReader::new(Pending::default()),
            refused: Refused::default(),
            version: None,
            bytes_in: 0,
            bytes_in_frames: 0,
        }
    }
}

impl Decoder {
    /// Takes bytes and hands every complete frame to `each`, in order. Half a frame waits for the
    /// next call.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(Frame)) {
        while !bytes.is_empty() {
            let queue = &mut self.reader.get_mut().bytes;
            let n = bytes.len().min(queue.capacity() - queue.len());
            for &byte in &bytes[..n] {
                queue.push_back(byte).expect("n is the room that is left");
            }
            self.bytes_in = self.bytes_in.wrapping_add(n as u32);
            bytes = &bytes[n..];
            self.drain(&mut each);
        }
        // Whatever is neither in a frame nor waiting in the reader was noise. At most one frame waits,
        // so the count lags by that and never runs ahead.
        let outside = self.bytes_in.wrapping_sub(self.bytes_in_frames);
        self.refused.garbage_bytes =
            self.refused.garbage_bytes.max(outside.saturating_sub(FRAME_LEN_MAX as u32));
    }

    fn drain(&mut self, each: &mut impl FnMut(Frame)) {
        loop {
            match self.reader.read_any_raw_message::<MavMessage>() {
                Ok(raw) => {
                    self.bytes_in_frames = self.bytes_in_frames.wrapping_add(frame_len(&raw) as u32);
                    self.version = Some(raw.version());
                    let (id, payload) = (raw.message_id(), raw.payload());
                    match MavMessage::parse(raw.version(), id, payload) {
                        Ok(message) => each(Frame {
                            header: MavHeader {
                                system_id: raw.system_id(),
                                component_id: raw.component_id(),
                                sequence: raw.sequence(),
                            },
                            message,
                        }),
                        Err(
                            ParserError::InvalidEnum { .. }
                            | ParserError::UnknownMessage { .. }
                            | ParserError::InvalidPayloadSize { .. }
                            | ParserError::BytesError(_),
                        ) => self.refused.unknown_content = self.refused.unknown_content.saturating_add(1),
                    }
                }
                Err(MessageReadError::Parse(_)) => {
                    self.refused.unknown_content = self.refused.unknown_content.saturating_add(1);
                }
                Err(MessageReadError::Io) => return, // the queue is dry
            }
        }
    }

    /// What was dropped so far.
    pub fn refused(&self) -> Refused {
        self.refused
    }
    /// The MAVLink version (1 or 2) of the last frame, if there was one.
    pub fn version(&self) -> Option<u8> {
        self.version.map(|v| match v {
            MavlinkVersion::V1 => 1,
            MavlinkVersion::V2 => 2,
        })
    }
}

fn frame_len(raw: &mavlink::MAVLinkMessageRaw) -> usize {
    match raw {
        mavlink::MAVLinkMessageRaw::V1(m) => m.raw_bytes().len(),
        mavlink::MAVLinkMessageRaw::V2(m) => m.raw_bytes().len(),
    }
}

/// The bytes of one message as a MAVLink 2 frame, appended to `out`.
///
/// # Errors
/// `out` has no room for the frame; nothing is appended.
pub fn encode_v2<const N: usize>(
    header: MavHeader,
    message: &MavMessage,
    out: &mut heapless::Vec<u8, N>,
) -> Result<(), BufferFull> {
    let mut raw = MAVLinkV2MessageRaw::new();
    raw.serialize_message(header, message);
    out.extend_from_slice(raw.raw_bytes()).map_err(|_| BufferFull)
}

/// The bytes of one message as a MAVLink 1 frame, appended to `out`.
///
/// # Errors
/// `out` has no room for the frame; nothing is appended.
pub fn encode_v1<const N: usize>(
    header: MavHeader,
    message: &MavMessage,
    out: &mut heapless::Vec<u8, N>,
) -> Result<(), BufferFull> {
    let mut raw = MAVLinkV1MessageRaw::new();
    raw.serialize_message(header, message);
    out.extend_from_slice(raw.raw_bytes()).map_err(|_| BufferFull)
}

/// A buffer of fixed size has no room for the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the output buffer is full")]
pub struct BufferFull;

/// Text of a fixed-size MAVLink field, up to its first zero byte; bytes that are not UTF-8 end it.
pub fn text(field: &[u8]) -> &str {
    let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
    match core::str::from_utf8(&field[..end]) {
        Ok(s) => s,
        Err(e) => core::str::from_utf8(&field[..e.valid_up_to()]).unwrap_or(""),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::dialect::{HEARTBEAT_DATA, MavModeFlag};
    use proptest::prelude::*;
    use std::vec::Vec;

    fn heartbeat(custom_mode: u32) -> MavMessage {
        MavMessage::HEARTBEAT(HEARTBEAT_DATA {
            custom_mode,
            base_mode: MavModeFlag::empty(),
            ..HEARTBEAT_DATA::default()
        })
    }

    fn header(sequence: u8) -> MavHeader {
        MavHeader { system_id: 3, component_id: 1, sequence }
    }

    #[test]
    fn golden_heartbeat_bytes() {
        let mut out = heapless::Vec::<u8, 64>::new();
        encode_v2(header(7), &heartbeat(4), &mut out).unwrap();
        // 0xFD, length 9, flags, sequence, system, component, id 0, then the payload of
        // https://mavlink.io/en/messages/common.html#HEARTBEAT and the checksum.
        assert_eq!(out[..10], [0xfd, 9, 0, 0, 7, 3, 1, 0, 0, 0]);
        assert_eq!(out[10..14], [4, 0, 0, 0]);
        assert_eq!(out.len(), 21);
    }

    #[test]
    fn an_empty_heartbeat_must_name_its_base_mode() {
        // The library's default claims an armed aircraft: whoever builds a heartbeat states the mode.
        assert!(HEARTBEAT_DATA::default().base_mode.contains(MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED));
    }

    #[test]
    fn unknown_enum_value_is_counted_and_the_next_frame_parses() {
        let mut bytes = heapless::Vec::<u8, 128>::new();
        encode_v2(header(0), &heartbeat(1), &mut bytes).unwrap();
        bytes[14] = 250; // MAV_TYPE 250
        let crc = mavlink::calculate_crc(&bytes[1..19], 50).to_le_bytes();
        bytes[19..21].copy_from_slice(&crc);
        encode_v2(header(1), &heartbeat(2), &mut bytes).unwrap();
        let (mut decoder, mut seen) = (Decoder::default(), Vec::new());
        decoder.push(&bytes, |f| seen.push(f.header.sequence));
        assert_eq!(seen, [1]);
        assert_eq!(decoder.refused().unknown_content, 1);
    }

    proptest! {
        #[test]
        fn every_frame_survives_noise_and_any_slicing(
            noise in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..20), slice in 1..64usize,
        ) {
            let mut bytes = Vec::new();
            for (i, piece) in noise.iter().enumerate() {
                // No false start of a frame: such a candidate may hold back what follows until it is refuted.
                bytes.extend(piece.iter().map(|&b| if b == 0xfd || b == 0xfe { 0 } else { b }));
                let mut frame = heapless::Vec::<u8, 64>::new();
                let message = heartbeat(i as u32);
                if i % 2 == 0 { encode_v2(header(i as u8), &message, &mut frame) } else { encode_v1(header(i as u8), &message, &mut frame) }.unwrap();
                bytes.extend_from_slice(&frame);
            }
            let (mut decoder, mut seen) = (Decoder::default(), Vec::new());
            for piece in bytes.chunks(slice) {
                decoder.push(piece, |f| seen.push(f.message.clone()));
            }
            prop_assert_eq!(seen.len(), noise.len());
            prop_assert!(seen.iter().enumerate().all(|(i, m)| *m == heartbeat(i as u32)));
        }

        #[test]
        fn rubbish_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let mut decoder = Decoder::default();
            decoder.push(&bytes, |_| {});
            prop_assert!(decoder.refused().garbage_bytes as usize <= bytes.len());
        }
    }
}
