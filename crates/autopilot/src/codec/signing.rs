//! Message signing (<https://mavlink.io/en/guide/message_signing.html>): only a sender with the key is accepted,
//! and a frame cannot be replayed.
//!
//! Time is an argument, in the protocol's unit, and never goes back: [`Signer`] gives every frame a later
//! timestamp than the one before, [`Verifier`] refuses a frame that is not later than the last of its
//! stream.
//!
//! After a restart our clock may be behind what we signed before: a Raspberry Pi has no clock that runs
//! without power. Nothing is stored for that. A signer takes the later of the computer's UTC and every
//! timestamp that was accepted from the autopilot; the autopilot's own is never behind what it accepted from
//! us, and it takes GNSS time once it has that. So the first signed frame that we receive corrects our time. For
//! the same reason a verifier compares with what it accepted and not with our clock: an autopilot that has
//! just booted without GNSS has an old time until it receives ours, and must be accepted for that. The
//! limit of this: a recording of an earlier session is accepted by a daemon that has just started, until a frame
//! of the autopilot itself comes.

use sha2::{Digest as _, Sha256};

use super::finder::{Raw, SIGNATURE_LEN};

/// Timestamps count from 2015-01-01 00:00 UTC, this many microseconds after 1970.
const EPOCH_UNIX_US: u64 = 1_420_070_400_000_000;
/// A timestamp has 48 bits: until the year 2104.
const TIMESTAMP_MAX: u64 = (1 << 48) - 1;
/// One minute in units of 10 µs. A stream that is new may be so far behind the others.
const NEW_STREAM_LAG: u64 = 60 * 100_000;
/// Streams (system, component, link) that are distinguished: an autopilot, its peripherals, and the ground
/// stations that it forwards.
const STREAMS_MAX: usize = 16;
/// `RADIO_STATUS`: the modems of a telemetry link insert it and have no key.
const RADIO_STATUS: u32 = 109;

/// A point in time as signatures count it: units of 10 µs since 2015.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(u64);

impl Timestamp {
    /// From microseconds since 1970, UTC. What is before 2015 is zero: a clock that was never set.
    pub const fn from_unix_us(unix_us: u64) -> Self {
        let units = unix_us.saturating_sub(EPOCH_UNIX_US) / 10;
        Self(if units > TIMESTAMP_MAX { TIMESTAMP_MAX } else { units })
    }
    /// From units of 10 µs since 2015; more than 48 bits are cut to the last.
    pub const fn from_units(units: u64) -> Self {
        Self(if units > TIMESTAMP_MAX { TIMESTAMP_MAX } else { units })
    }
    /// Units of 10 µs since 2015.
    pub const fn units(self) -> u64 {
        self.0
    }
}

/// The secret that both ends know. It is not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// From its bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
    /// Its bytes, for SETUP_SIGNING.
    pub(crate) fn bytes(&self) -> [u8; 32] {
        self.0
    }
    /// The first 48 bits of SHA-256 over the key and what is signed.
    fn signature(&self, frame: &[u8], link_and_time: &[u8]) -> [u8; 6] {
        let hash = Sha256::new().chain_update(self.0).chain_update(frame).chain_update(link_and_time);
        let [a, b, c, d, e, f, ..]: [u8; 32] = hash.finalize().into();
        [a, b, c, d, e, f]
    }
}

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key(secret)")
    }
}

/// Signs our frames.
#[derive(Clone, Debug)]
pub struct Signer {
    key: Key,
    link_id: u8,
    /// The time of the next frame.
    next: Timestamp,
}

impl Signer {
    /// Signs as link `link_id`; two senders with one key and one system id need two.
    pub const fn new(key: Key, link_id: u8) -> Self {
        Self { key, link_id, next: Timestamp(0) }
    }
    /// Moves the time on to at least this. An earlier time changes nothing.
    pub fn advance(&mut self, to: Timestamp) {
        self.next = self.next.max(to);
    }
    /// What the next frame will be stamped with.
    pub fn now(&self) -> Timestamp {
        self.next
    }
    /// The key.
    pub fn key(&self) -> &Key {
        &self.key
    }
    /// Link id, time and signature of a frame that ends with its checksum.
    pub(super) fn sign(&mut self, frame: &[u8]) -> [u8; SIGNATURE_LEN] {
        let mut out = [0; SIGNATURE_LEN];
        out[0] = self.link_id;
        out[1..7].copy_from_slice(&self.next.0.to_le_bytes()[..6]);
        let signature = self.key.signature(frame, &out[..7]);
        out[7..].copy_from_slice(&signature);
        self.next = Timestamp::from_units(self.next.0 + 1);
        out
    }
}

/// Why a frame's signature was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// There is none.
    #[error("signature: found none, expected one by the configured key")]
    Unsigned,
    /// It is not by our key, or the frame was changed.
    #[error("signature: found one of another key, or of other bytes")]
    Wrong,
    /// Its time is not later than the last frame of the same sender and link: it was sent before.
    #[error("signature: found a time that was used before, expected a later one")]
    Replayed,
    /// A new sender whose time is more than a minute behind.
    #[error("signature: found a new sender more than a minute behind the others")]
    Old,
    /// More senders than are distinguished.
    #[error("signature: found more than {STREAMS_MAX} senders within a minute")]
    TooManyStreams,
}

/// Frames that were refused for their signature, by reason. Saturating counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignatureRefused {
    /// Not signed.
    pub unsigned: u32,
    /// Another key, or changed bytes.
    pub wrong: u32,
    /// Not later than the sender's last.
    pub replayed: u32,
    /// A new sender more than a minute behind.
    pub old: u32,
    /// More senders than are distinguished.
    pub too_many_streams: u32,
}

impl SignatureRefused {
    pub(super) fn count(&mut self, error: SignatureError) {
        let counter = match error {
            SignatureError::Unsigned => &mut self.unsigned,
            SignatureError::Wrong => &mut self.wrong,
            SignatureError::Replayed => &mut self.replayed,
            SignatureError::Old => &mut self.old,
            SignatureError::TooManyStreams => &mut self.too_many_streams,
        };
        *counter = counter.saturating_add(1);
    }
    /// All of them.
    pub fn total(&self) -> u32 {
        [self.unsigned, self.wrong, self.replayed, self.old, self.too_many_streams]
            .into_iter()
            .fold(0, u32::saturating_add)
    }
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    system_id: u8,
    component_id: u8,
    link_id: u8,
    last: Timestamp,
}

impl Stream {
    fn is(&self, system_id: u8, component_id: u8, link_id: u8) -> bool {
        (self.system_id, self.component_id, self.link_id) == (system_id, component_id, link_id)
    }
}

/// Whether frames without a signature pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsigned {
    /// Only `RADIO_STATUS` does.
    Refused,
    /// They do until the first frame that is signed by our key: while the key is being handed over.
    UntilSigned,
}

/// Checks received frames.
#[derive(Clone, Debug)]
pub struct Verifier {
    key: Key,
    unsigned: Unsigned,
    streams: heapless::Vec<Stream, STREAMS_MAX>,
    /// The latest time that was accepted.
    newest: Timestamp,
    accepted: u32,
}

impl Verifier {
    /// Accepts what is signed by `key`.
    pub const fn new(key: Key, unsigned: Unsigned) -> Self {
        Self { key, unsigned, streams: heapless::Vec::new(), newest: Timestamp(0), accepted: 0 }
    }
    /// The latest time that was accepted: ours must not be behind it.
    pub fn newest(&self) -> Timestamp {
        self.newest
    }
    /// Signed frames that were accepted. Saturates.
    pub fn accepted(&self) -> u32 {
        self.accepted
    }
    /// Whether a frame's signature is accepted.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&mut self, frame: Raw<'_>) -> Result<(), SignatureError> {
        let Some((signed, trailer)) = frame.signature() else {
            let lets_pass = frame.message_id() == RADIO_STATUS
                || (self.unsigned == Unsigned::UntilSigned && self.accepted == 0);
            return if lets_pass { Ok(()) } else { Err(SignatureError::Unsigned) };
        };
        let [link_id, t0, t1, t2, t3, t4, t5, ..] = *trailer;
        let time = Timestamp(u64::from_le_bytes([t0, t1, t2, t3, t4, t5, 0, 0]));
        let expected = self.key.signature(signed, &trailer[..7]);
        // No early return: the duration must not reveal how many bytes agree.
        let difference = expected.iter().zip(&trailer[7..]).fold(0, |all, (a, b)| all | (a ^ b));
        if difference != 0 {
            return Err(SignatureError::Wrong);
        }
        let header = frame.header();
        let (system_id, component_id) = (header.system_id as u8, header.component_id);
        match self.streams.iter_mut().find(|s| s.is(system_id, component_id, link_id)) {
            Some(stream) if time <= stream.last => return Err(SignatureError::Replayed),
            Some(stream) => stream.last = time,
            None => self.begin(Stream { system_id, component_id, link_id, last: time })?,
        }
        self.newest = self.newest.max(time);
        self.accepted = self.accepted.saturating_add(1);
        Ok(())
    }

    fn begin(&mut self, stream: Stream) -> Result<(), SignatureError> {
        let is_old = |time: Timestamp| time.0.saturating_add(NEW_STREAM_LAG) < self.newest.0;
        if is_old(stream.last) {
            return Err(SignatureError::Old);
        }
        if self.streams.is_full() {
            // What is forgotten must not be repeatable: only a stream whose last frame would be refused
            // as old makes room.
            let forgettable = self.streams.iter().position(|s| is_old(s.last));
            self.streams.swap_remove(forgettable.ok_or(SignatureError::TooManyStreams)?);
        }
        self.streams.push(stream).map_err(|_| SignatureError::TooManyStreams)
    }
}
