//! Finds frames in a stream of bytes: start byte, plausible header, checksum. Messages are not parsed.
//!
//! Every frame whose bytes arrive intact is found, whatever surrounds it. A false
//! candidate is dropped by one byte, its start, and the search continues behind that: a false start cannot take
//! good frames with it. Most false starts are known by their header (undefined flags, a message
//! that is not of the dialect, a length that the message cannot have). What is left is a candidate that
//! is plausible and incomplete. It may really be a frame, and the frames inside it the payload of a
//! tunnel or a log, so they wait for it; but not longer than [`PATIENCE`] once one of them is complete, and
//! not at all where the candidate is longer than its message as we know it. So a line that trickles one
//! heartbeat a second is not silenced by one bad byte that announced 255 more.
//!
//! Frames in the caller's bytes are borrowed, not copied; only an unfinished candidate is kept. There is no
//! allocation, and every byte is accounted for: in a frame, dropped, or pending.

use wingbeat_geo::{Duration, Instant};

use super::crc::checksum;
use super::table;
use super::{FRAME_LEN_MAX, MavHeader, Version};

/// A frame of the longest kind takes 49 ms at 57600 baud. A candidate that has a complete frame inside and
/// is itself not complete after so long was a false start.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// Starts a MAVLink 1 frame.
const START_V1: u8 = 0xfe;
/// Starts a MAVLink 2 frame.
const START_V2: u8 = 0xfd;
/// Start byte and header.
const HEADER_LEN_V1: usize = 6;
const HEADER_LEN_V2: usize = 10;
pub(super) const CHECKSUM_LEN: usize = 2;
/// Link id, time and signature behind a signed frame.
pub(super) const SIGNATURE_LEN: usize = 13;
/// The one flag that we understand. A frame with another must be dropped
/// (<https://mavlink.io/en/guide/serialization.html#incompat_flags>).
pub(super) const FLAG_SIGNED: u8 = 1;

/// One frame whose checksum holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    bytes: &'a [u8],
    version: Version,
}

impl<'a> Raw<'a> {
    /// All of it, from its start byte to its checksum or signature.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }
    /// MAVLink 1 or 2.
    pub fn version(self) -> Version {
        self.version
    }
    /// Sender and sequence number.
    pub fn header(self) -> MavHeader {
        let b = self.bytes;
        let (sequence, system, component_id) = match self.version {
            Version::V1 => (b[2], b[3], b[4]),
            Version::V2 => (b[4], b[5], b[6]),
        };
        MavHeader { system_id: system.into(), component_id, sequence }
    }
    /// Which message it carries.
    pub fn message_id(self) -> u32 {
        message_id(self.bytes, self.version)
    }
    /// The message's bytes.
    pub fn payload(self) -> &'a [u8] {
        let start = header_len(self.version);
        &self.bytes[start..start + usize::from(self.bytes[1])]
    }
    /// Link id, time and signature, where it is signed, and the bytes that they sign.
    pub(super) fn signature(self) -> Option<(&'a [u8], &'a [u8; SIGNATURE_LEN])> {
        if self.version == Version::V1 || self.bytes[2] & FLAG_SIGNED == 0 {
            return None;
        }
        self.bytes.split_last_chunk()
    }
}

fn header_len(version: Version) -> usize {
    match version {
        Version::V1 => HEADER_LEN_V1,
        Version::V2 => HEADER_LEN_V2,
    }
}

fn message_id(header: &[u8], version: Version) -> u32 {
    match version {
        Version::V1 => header[5].into(),
        Version::V2 => u32::from_le_bytes([header[7], header[8], header[9], 0]),
    }
}

/// Candidates and bytes that were dropped. Saturating counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Bytes that belong to no frame, those of refused candidates among them.
    pub garbage_bytes: u32,
    /// Candidates whose header was plausible and whose checksum was not.
    pub bad_checksum: u32,
    /// Candidates with a message id that the dialect does not have. In noise these are mere start bytes.
    pub unknown_message: u32,
    /// Candidates that no sender writes: unknown flags, a length that the message cannot have.
    pub bad_header: u32,
    /// Unfinished candidates that were dropped for a complete frame inside them.
    pub overtaken: u32,
}

/// What bytes that begin with a start byte are.
enum Candidate {
    /// A frame of so many bytes.
    Frame(usize, Version),
    /// Incomplete; `doubtful` if the message as we know it is not that long. A newer sender may
    /// have added fields at its end.
    Unfinished {
        doubtful: bool,
    },
    BadHeader,
    UnknownMessage,
    BadChecksum,
}

#[inline]
fn judge(bytes: &[u8]) -> Candidate {
    const UNFINISHED: Candidate = Candidate::Unfinished { doubtful: false };
    let version = if bytes[0] == START_V2 { Version::V2 } else { Version::V1 };
    let header_len = header_len(version);
    let mut signature_len = 0;
    if version == Version::V2 {
        let Some(&flags) = bytes.get(2) else { return UNFINISHED };
        if flags & !FLAG_SIGNED != 0 {
            return Candidate::BadHeader;
        }
        signature_len = usize::from(flags & FLAG_SIGNED) * SIGNATURE_LEN;
    }
    if bytes.len() < header_len {
        return UNFINISHED;
    }
    let Some(row) = table::row(message_id(bytes, version)) else { return Candidate::UnknownMessage };
    let payload_len = bytes[1];
    // MAVLink 1 cuts nothing and has no extensions; some senders write those nevertheless.
    if version == Version::V1 && !(row.base_len..=row.full_len).contains(&payload_len) {
        return Candidate::BadHeader;
    }
    let checked_len = header_len + usize::from(payload_len);
    let Some(frame) = bytes.get(..checked_len + CHECKSUM_LEN + signature_len) else {
        return Candidate::Unfinished { doubtful: payload_len > row.full_len };
    };
    let found = u16::from_le_bytes([frame[checked_len], frame[checked_len + 1]]);
    if checksum(&frame[1..checked_len], row.extra_crc) == found {
        Candidate::Frame(frame.len(), version)
    } else {
        Candidate::BadChecksum
    }
}

fn is_start(byte: u8) -> bool {
    byte == START_V1 || byte == START_V2
}

/// Passes on every frame up to the first unfinished candidate; returns the start of that.
fn scan(bytes: &[u8], dropped: &mut Dropped, each: &mut impl FnMut(Raw<'_>)) -> usize {
    let mut at = 0;
    let mut garbage = 0;
    let consumed = loop {
        let rest = &bytes[at..];
        let Some(skipped) = rest.iter().position(|&byte| is_start(byte)) else {
            garbage += rest.len();
            break bytes.len();
        };
        (garbage, at) = (garbage + skipped, at + skipped);
        let candidate = &bytes[at..];
        let count = match judge(candidate) {
            Candidate::Frame(len, version) => {
                each(Raw { bytes: &candidate[..len], version });
                at += len;
                continue;
            }
            Candidate::Unfinished { .. } => break at,
            Candidate::BadHeader => &mut dropped.bad_header,
            Candidate::UnknownMessage => &mut dropped.unknown_message,
            Candidate::BadChecksum => &mut dropped.bad_checksum,
        };
        *count = count.saturating_add(1);
        (garbage, at) = (garbage + 1, at + 1);
    };
    let garbage = u32::try_from(garbage).unwrap_or(u32::MAX);
    dropped.garbage_bytes = dropped.garbage_bytes.saturating_add(garbage);
    consumed
}

/// The start of a complete frame in an unfinished candidate.
fn frame_inside(candidate: &[u8]) -> Option<usize> {
    let starts = candidate.iter().enumerate().skip(1).filter(|(_, byte)| is_start(**byte));
    starts.map(|(at, _)| at).find(|&at| matches!(judge(&candidate[at..]), Candidate::Frame(..)))
}

/// Bytes in, frames out.
#[derive(Clone, Debug, Default)]
pub struct Finder {
    /// An unfinished candidate and what came behind it: less than one frame between calls, and room for
    /// another that completes it.
    pending: heapless::Vec<u8, { 2 * FRAME_LEN_MAX }>,
    /// When the candidate at the head of `pending` began to arrive.
    since: Instant,
    /// When it is dropped for the frame inside it, if there is one.
    overdue_at: Option<Instant>,
    dropped: Dropped,
}

impl Finder {
    /// Takes bytes that arrived at `now` and hands every frame to `each`, in order.
    pub fn push(&mut self, now: Instant, bytes: &[u8], mut each: impl FnMut(Raw<'_>)) {
        self.feed(now, bytes, &mut each);
        self.settle(now, &mut each);
    }

    /// Drops a candidate that has been unfinished for too long. Harmless at any time.
    pub fn expire(&mut self, now: Instant, mut each: impl FnMut(Raw<'_>)) {
        if self.overdue_at.is_some_and(|at| now >= at) {
            self.settle(now, &mut each);
        }
    }

    /// When [`Finder::expire`] has something to do.
    pub fn due(&self) -> Instant {
        self.overdue_at.unwrap_or(Instant::NEVER)
    }

    /// Drops what is unfinished.
    pub fn restart(&mut self) {
        self.dropped.garbage_bytes = self.dropped.garbage_bytes.saturating_add(self.pending.len() as u32);
        self.pending.clear();
        self.overdue_at = None;
    }

    /// What was dropped so far.
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Bytes of an unfinished frame.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    fn feed(&mut self, now: Instant, mut bytes: &[u8], each: &mut impl FnMut(Raw<'_>)) {
        while !self.pending.is_empty() && !bytes.is_empty() {
            let before = self.pending.len();
            let taken = bytes.len().min(self.pending.capacity() - before);
            // It is the room that is left.
            let _ = self.pending.extend_from_slice(&bytes[..taken]);
            let consumed = scan(&self.pending, &mut self.dropped, each);
            if consumed >= before {
                // The rest is in the caller's bytes, where it need not be copied.
                self.pending.clear();
                bytes = &bytes[consumed - before..];
            } else {
                self.forget(consumed);
                bytes = &bytes[taken..];
            }
        }
        if !bytes.is_empty() {
            let consumed = scan(bytes, &mut self.dropped, each);
            self.keep(now, &bytes[consumed..]);
        }
    }

    /// Keeps an unfinished candidate, which is shorter than a frame.
    fn keep(&mut self, now: Instant, candidate: &[u8]) {
        debug_assert!(self.pending.is_empty() && candidate.len() < FRAME_LEN_MAX);
        let _ = self.pending.extend_from_slice(candidate);
        self.since = now;
    }

    fn forget(&mut self, count: usize) {
        let len = self.pending.len();
        self.pending.copy_within(count..len, 0);
        self.pending.truncate(len - count);
    }

    /// Decides about an unfinished candidate with a complete frame inside.
    fn settle(&mut self, now: Instant, each: &mut impl FnMut(Raw<'_>)) {
        loop {
            self.overdue_at = None;
            let Some(inside) = frame_inside(&self.pending) else { return };
            let doubtful = matches!(judge(&self.pending), Candidate::Unfinished { doubtful: true });
            let overdue_at = if doubtful { now } else { self.since + PATIENCE };
            if now < overdue_at {
                self.overdue_at = Some(overdue_at);
                return;
            }
            self.dropped.overtaken = self.dropped.overtaken.saturating_add(1);
            self.dropped.garbage_bytes = self.dropped.garbage_bytes.saturating_add(inside as u32);
            self.forget(inside);
            let consumed = scan(&self.pending, &mut self.dropped, each);
            self.forget(consumed);
            self.since = now;
        }
    }
}
