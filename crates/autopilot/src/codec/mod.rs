//! MAVLink frames: bytes in, messages out, and back.
//!
//! | module | what it does |
//! |---|---|
//! | [`finder`] | finds the frames in a stream of bytes, whatever is between them |
//! | [`signing`] | signs our frames, checks received ones |
//! | [`framing`] | decides between MAVLink 1 and 2 |
//! | `crc`, `table` | the checksum, and what each message's length may be |
//! | `encode` | frames from messages |
//!
//! The frame layer is ours, the messages are the `mavlink` crate's. [`Decoder`] joins them: it takes bytes
//! in pieces of any size and counts what it drops by reason in [`Refused`].

mod crc;
mod encode;
pub mod finder;
pub mod framing;
pub mod signing;
mod table;
#[cfg(test)]
#[rustfmt::skip]
mod vectors;

use mavlink::{MavlinkVersion, Message};
use wingbeat_geo::Instant;

use crate::dialect::MavMessage;
use finder::{Finder, Raw};
use signing::{SignatureRefused, Verifier};

pub use encode::{encode_signed, encode_v1, encode_v2};
pub use mavlink::MavHeader;

/// The name of a message.
pub fn message_name(id: u32) -> &'static str {
    MavMessage::default_message_from_id(id).map_or("unknown message", |message| message.message_name())
}

/// The longest MAVLink frame: 10 header, 255 payload, 2 checksum, 13 signature bytes
/// (<https://mavlink.io/en/guide/serialization.html>).
pub const FRAME_LEN_MAX: usize = 280;

/// Of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// MAVLink 1.
    V1,
    /// MAVLink 2.
    #[default]
    V2,
}

/// One message with its sender.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Sender and sequence number.
    pub header: MavHeader,
    /// MAVLink version of its frame.
    pub version: Version,
    /// The message.
    pub message: MavMessage,
}

/// Bytes and frames that were dropped, by reason. Saturating counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Bytes that belong to no valid frame: line noise, boot text, wrong baud rate, and the bytes of
    /// candidates that were refused.
    pub garbage_bytes: u32,
    /// Candidates whose header was plausible and whose checksum was wrong.
    pub bad_checksum: u32,
    /// Candidates whose message id is not of the dialect; in noise these are mere start bytes.
    pub unknown_message: u32,
    /// Candidates that no sender writes: unknown flags, a length that the message cannot have.
    pub bad_header: u32,
    /// Unfinished candidates that were dropped for a complete frame inside them.
    pub overtaken: u32,
    /// Frames whose checksum held but whose content is not of the dialect: an enum value that we do not
    /// know.
    pub unknown_content: u32,
    /// Frames whose signature was not accepted.
    pub signature: SignatureRefused,
}

/// Turns a stream of bytes into messages.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    finder: Finder,
    checks: Checks,
}

/// What a frame goes through behind the finder.
#[derive(Clone, Debug, Default)]
struct Checks {
    verifier: Option<Verifier>,
    version: Option<Version>,
    unknown_content: u32,
    signature: SignatureRefused,
}

impl Checks {
    fn pass(&mut self, raw: Raw<'_>, each: &mut impl FnMut(Result<Frame, Raw<'_>>)) {
        if let Some(verifier) = &mut self.verifier
            && let Err(error) = verifier.check(raw)
        {
            self.signature.count(error);
            return;
        }
        let version = raw.version();
        self.version = Some(version);
        let mavlink_version = match version {
            Version::V1 => MavlinkVersion::V1,
            Version::V2 => MavlinkVersion::V2,
        };
        match MavMessage::parse(mavlink_version, raw.message_id(), raw.payload()) {
            Ok(message) => each(Ok(Frame { header: raw.header(), version, message })),
            Err(_) => {
                self.unknown_content = self.unknown_content.saturating_add(1);
                each(Err(raw));
            }
        }
    }
}

impl Decoder {
    /// One that passes on what `verifier` accepts. The default passes on every frame.
    pub fn verifying(verifier: Verifier) -> Self {
        Self { checks: Checks { verifier: Some(verifier), ..Checks::default() }, ..Self::default() }
    }

    /// Takes bytes that arrived at `now` and hands every complete frame to `each`, in order. Half a frame
    /// waits for the next call.
    pub fn push_at(&mut self, now: Instant, bytes: &[u8], mut each: impl FnMut(Frame)) {
        let Self { finder, checks } = self;
        finder.push(now, bytes, |raw| checks.pass(raw, &mut |frame| frame.into_iter().for_each(&mut each)));
    }

    /// As [`Decoder::push_at`] without time: an incomplete candidate waits without end. For bytes that are
    /// complete.
    pub fn push(&mut self, bytes: &[u8], each: impl FnMut(Frame)) {
        self.push_at(Instant::ZERO, bytes, each);
    }

    /// As [`Decoder::push`], with the frames whose content is not of the dialect.
    pub fn push_all(&mut self, bytes: &[u8], mut each: impl FnMut(Result<Frame, Raw<'_>>)) {
        let Self { finder, checks } = self;
        finder.push(Instant::ZERO, bytes, |raw| checks.pass(raw, &mut each));
    }

    /// When [`Decoder::expire`] has something to do.
    pub fn due(&self) -> Instant {
        self.finder.due()
    }

    /// Drops a candidate that has been unfinished for too long, and passes on the frames behind it.
    pub fn expire(&mut self, now: Instant, mut each: impl FnMut(Frame)) {
        let Self { finder, checks } = self;
        finder.expire(now, |raw| checks.pass(raw, &mut |frame| frame.into_iter().for_each(&mut each)));
    }

    /// The port was reopened: what is unfinished will not be finished.
    pub fn restart(&mut self) {
        self.finder.restart();
    }

    /// What was dropped so far.
    pub fn refused(&self) -> Refused {
        let dropped = self.finder.dropped();
        Refused {
            garbage_bytes: dropped.garbage_bytes,
            bad_checksum: dropped.bad_checksum,
            unknown_message: dropped.unknown_message,
            bad_header: dropped.bad_header,
            overtaken: dropped.overtaken,
            unknown_content: self.checks.unknown_content,
            signature: self.checks.signature,
        }
    }

    /// The state of the check of signatures, where there is one.
    pub fn verifier(&self) -> Option<&Verifier> {
        self.checks.verifier.as_ref()
    }

    /// The MAVLink version (1 or 2) of the last frame, if there was one.
    pub fn version(&self) -> Option<u8> {
        self.checks.version.map(|v| match v {
            Version::V1 => 1,
            Version::V2 => 2,
        })
    }
}

/// The message `id` with this payload, as MAVLink 2 sends it; none where the dialect has no such message or
/// one of its fields has no such value.
pub fn message(id: u32, payload: &[u8]) -> Option<MavMessage> {
    MavMessage::parse(MavlinkVersion::V2, id, payload).ok()
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
mod tests;
