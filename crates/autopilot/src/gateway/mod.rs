//! Other ground stations: what a client of the daemon's gateway may send to the autopilot, and how.
//!
//! [`Gatekeeper::judge`] decides about one frame and changes nothing. What it promises:
//!
//! - A frame that commands is distinguished from one that reads or requests ([`command_of`]), and a doubtful
//!   one commands: the daemon hands the aircraft over before such a frame leaves.
//! - No request makes a message that the agent relies on slower than the agent needs it, and none
//!   requests more than the line can carry.
//! - A ground station's heartbeat passes only while a console holds the lease: the first one arms the
//!   autopilot's ground-station failsafe (`FS_GCS_ENABLE`), and one that then leaves would trigger it.
//! - Nothing passes that would silence the agent: its own address, a signing key, a radio's report that
//!   makes the autopilot slow down.
//!
//! Frames that pass unchanged pass with their own bytes, signature included.

// MAVLink deprecates some of what ground stations still send.
#![allow(deprecated)]

mod classify;
mod proof;
mod rates;
#[cfg(test)]
mod tests;

use heapless::Vec;
use mavlink::{MavlinkVersion, Message as _};
use strum::{IntoStaticStr, VariantArray};
use wingbeat_geo::{Duration, Instant};

use crate::codec::finder::Raw;
use crate::codec::{BufferFull, FRAME_LEN_MAX, MavHeader, Version, encode_v1, encode_v2};
use crate::dialect::{
    HEARTBEAT_DATA, MavAutopilot, MavMessage, MavModeFlag, MavSeverity, MavState, MavType, STATUSTEXT_DATA,
};
use crate::job::{AUTOPILOT_COMPONENT_ID, COMPONENT_ID, Transmit};
use crate::telemetry::{REQUESTS_MAX, StreamRequest};

pub use classify::command_of;
pub use proof::{CHALLENGE_LEN, Cookie, GREETING_LEN, greeting};

/// What a client commands, or why a frame of it is not passed on: one line for messages.
pub type Text = heapless::String<64>;

/// Frames that replace one: a request for all streams, and one per group that the agent needs.
pub type Replacement = Vec<MavMessage, 4>;

/// Why a client's frame was not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[repr(u8)]
pub enum Refusal {
    /// A heartbeat while no console holds the lease.
    HeartbeatWithoutLease,
    /// A heartbeat of something that is no ground station.
    HeartbeatOfOther,
    /// It has the autopilot's address or ours.
    OurAddress,
    /// It is addressed to another system than the vehicle.
    OtherSystem,
    /// No autopilot was received yet.
    NoAutopilot,
    /// A setting that would slow what the agent relies on, or fill the line.
    StreamRate,
    /// A message that would silence the agent.
    Forbidden,
    /// The client sends more than its share of the line.
    TooFast,
    /// The line to the autopilot did not take it.
    LineFull,
}

impl Refusal {
    /// Every reason, in the order of the counters.
    pub const ALL: &'static [Self] = Self::VARIANTS;
    /// A stable name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What becomes of a client's frame.
// The replacement is rare, and a verdict lives no longer than its frame.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It passes unchanged.
    Pass,
    /// It passes unchanged, after the agent has handed the aircraft over to the ground station.
    Command(Text),
    /// These pass instead, under the client's own address.
    Replace(Replacement),
    /// It does not pass.
    Refuse(Refusal),
    /// It does not pass, and the client receives the reason.
    Explain(Refusal, Text),
}

/// What the verdict on a frame depends on, besides the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// The vehicle's system id, once its autopilot was received.
    pub system_id: Option<u8>,
    /// Whether a console holds the lease.
    pub leased: bool,
}

/// Judges what clients send.
#[derive(Clone, Debug)]
pub struct Gatekeeper {
    requests: Vec<StreamRequest, REQUESTS_MAX>,
    rate_cap_hz: u16,
}

impl Gatekeeper {
    /// Keeps these `requests` of the agent, and lets no client request more than `rate_cap_hz` (see
    /// [`rate_cap_hz`]).
    pub fn new(requests: impl IntoIterator<Item = StreamRequest>, rate_cap_hz: u16) -> Self {
        Self { requests: requests.into_iter().collect(), rate_cap_hz: rate_cap_hz.max(1) }
    }

    /// What becomes of a frame.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub fn judge(&self, frame: Raw<'_>, now: Circumstances) -> Verdict {
        let Some(system_id) = now.system_id else { return Verdict::Refuse(Refusal::NoAutopilot) };
        let header = frame.header();
        if header.system_id == u32::from(system_id)
            && matches!(header.component_id, AUTOPILOT_COMPONENT_ID | COMPONENT_ID)
        {
            return Verdict::Refuse(Refusal::OurAddress);
        }
        let Some(message) = message_of(frame) else {
            // A valid frame with a value that our dialect does not have: it may command.
            return classify::unknown(frame.message_id());
        };
        let message = &message;
        if classify::target(message).is_some_and(|target| target != 0 && target != system_id) {
            return Verdict::Refuse(Refusal::OtherSystem);
        }
        match message {
            MavMessage::HEARTBEAT(m) if m.mavtype != MavType::MAV_TYPE_GCS => {
                Verdict::Refuse(Refusal::HeartbeatOfOther)
            }
            MavMessage::HEARTBEAT(_) if !now.leased => Verdict::Refuse(Refusal::HeartbeatWithoutLease),
            MavMessage::HEARTBEAT(_) => Verdict::Pass,
            // The autopilot would accept only signed frames, and not ours.
            MavMessage::SETUP_SIGNING(_) => {
                explain(Refusal::Forbidden, "signing is set up by Wingbeat alone")
            }
            // ArduPilot sends slower when a radio reports that its buffer is full.
            MavMessage::RADIO_STATUS(_) | MavMessage::RADIO(_) => Verdict::Refuse(Refusal::Forbidden),
            _ => match self.rate(message) {
                Some(verdict) if is_signed(frame) && matches!(verdict, Verdict::Replace(_)) => {
                    explain(Refusal::StreamRate, "signed: a rate cannot be corrected")
                }
                Some(verdict) => verdict,
                None => command_of(message).map_or(Verdict::Pass, Verdict::Command),
            },
        }
    }
}

fn explain(refusal: Refusal, why: &str) -> Verdict {
    Verdict::Explain(refusal, text(format_args!("{why}")))
}

/// A line that is cut where it does not fit.
fn text(line: core::fmt::Arguments<'_>) -> Text {
    struct Cut<'a>(&'a mut Text);
    impl core::fmt::Write for Cut<'_> {
        fn write_str(&mut self, s: &str) -> core::fmt::Result {
            for c in s.chars() {
                self.0.push(c).map_err(|_| core::fmt::Error)?;
            }
            Ok(())
        }
    }
    let mut text = Text::new();
    // An error means that it was cut.
    let _ = core::fmt::Write::write_fmt(&mut Cut(&mut text), line);
    text
}

/// The message of a frame, if its content is of the dialect.
fn message_of(frame: Raw<'_>) -> Option<MavMessage> {
    let version = match frame.version() {
        Version::V1 => MavlinkVersion::V1,
        Version::V2 => MavlinkVersion::V2,
    };
    MavMessage::parse(version, frame.message_id(), frame.payload()).ok()
}

/// Whether a frame ends in a signature: the first of the incompatibility flags
/// (<https://mavlink.io/en/guide/serialization.html>).
fn is_signed(frame: Raw<'_>) -> bool {
    frame.version() == Version::V2 && frame.bytes().get(2).is_some_and(|flags| flags & 1 != 0)
}

/// Writes a message instead of a client's frame: its address, its sequence number, its version of
/// MAVLink.
///
/// # Errors
/// No room.
pub fn encode_like<const N: usize>(
    frame: Raw<'_>,
    message: &MavMessage,
    out: &mut Vec<u8, N>,
) -> Result<(), BufferFull> {
    match frame.version() {
        Version::V1 => encode_v1(frame.header(), message, out),
        Version::V2 => encode_v2(frame.header(), message, out),
    }
}

/// The highest rate that a client may request on a line of so many bits per second; on a network without
/// such a limit, `None`.
///
/// All streams of ArduPilot at 4 Hz are 3.7 kB/s, which is 64 % of the 5.76 kB/s that 57600 baud carry:
/// what remains is for commands, parameters and missions. A faster line takes as much more, up to 50 Hz.
pub fn rate_cap_hz(baud: Option<u32>) -> u16 {
    const FASTEST_HZ: u32 = 50;
    baud.map_or(FASTEST_HZ, |baud| (baud / (57_600 / 4)).clamp(1, FASTEST_HZ)) as u16
}

/// Bytes per second that all clients together may send to the autopilot on such a line: half of it. The
/// agent's own commands are small and must never wait behind an upload.
pub fn share_bytes_s(baud: Option<u32>) -> u32 {
    const NETWORK_BYTES_S: u32 = 100_000;
    // Ten bits on the line are one byte.
    baud.map_or(NETWORK_BYTES_S, |baud| baud / 10 / 2)
}

/// The limit of what may be sent: a bucket that fills at the rate of the share.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    bytes_s: u32,
    /// Bytes times a million, so that a microsecond's share is a whole number.
    left_micro: u64,
    at: Instant,
}

impl Allowance {
    /// What may be saved up: some of the longest frames, so that a burst of small ones passes.
    const BURST_BYTES: u64 = 16 * FRAME_LEN_MAX as u64;

    /// A full bucket.
    pub fn new(now: Instant, bytes_s: u32) -> Self {
        Self { bytes_s, left_micro: Self::BURST_BYTES * 1_000_000, at: now }
    }
    /// Takes `bytes` out, if they are there.
    pub fn take(&mut self, now: Instant, bytes: usize) -> bool {
        let passed_us = now.since(self.at).as_micros().min(1 << 32) as u64;
        self.at = self.at.max(now);
        let filled = self.left_micro.saturating_add(passed_us.saturating_mul(self.bytes_s.into()));
        self.left_micro = filled.min(Self::BURST_BYTES * 1_000_000);
        match self.left_micro.checked_sub(bytes as u64 * 1_000_000) {
            Some(left) => {
                self.left_micro = left;
                true
            }
            None => false,
        }
    }
}

/// The companion's own frames to one client, with their own sequence numbers: the agent uses the same address
/// towards the autopilot, and a client receives none of those frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameWriter {
    sequence: u8,
}

impl FrameWriter {
    /// Our heartbeat: onboard controller, so that clients see that the companion lives.
    pub fn heartbeat(&mut self, system_id: u8) -> Vec<u8, FRAME_LEN_MAX> {
        self.frame(system_id, &heartbeat(MavType::MAV_TYPE_ONBOARD_CONTROLLER))
    }
    /// A warning for the operator of the client.
    pub fn warn(&mut self, system_id: u8, line: &str) -> Vec<u8, FRAME_LEN_MAX> {
        let mut field = [0; 50];
        // A STATUSTEXT holds 50 bytes; a character that is cut in two would not be one.
        let cut = (0..=line.len().min(field.len())).rev().find(|&n| line.is_char_boundary(n)).unwrap_or(0);
        field[..cut].copy_from_slice(&line.as_bytes()[..cut]);
        self.frame(
            system_id,
            &MavMessage::STATUSTEXT(STATUSTEXT_DATA {
                severity: MavSeverity::MAV_SEVERITY_WARNING,
                text: field.into(),
                ..STATUSTEXT_DATA::default()
            }),
        )
    }
    fn frame(&mut self, system_id: u8, message: &MavMessage) -> Vec<u8, FRAME_LEN_MAX> {
        let header =
            MavHeader { system_id: system_id.into(), component_id: COMPONENT_ID, sequence: self.sequence };
        self.sequence = self.sequence.wrapping_add(1);
        let mut bytes = Vec::new();
        encode_v2(header, message, &mut bytes).expect("a buffer of FRAME_LEN_MAX holds every frame");
        bytes
    }
}

/// The heartbeat of a console that holds the lease, once a second, under the ground station's system id.
/// Its component is ours: another ground station of the same id counts its own frames.
#[derive(Clone, Copy, Debug)]
pub struct ConsoleHeartbeat {
    system_id: u8,
    sequence: u8,
    due: Option<Instant>,
}

impl ConsoleHeartbeat {
    const PERIOD: Duration = Duration::from_secs(1);

    /// Silent until a console holds the lease.
    pub fn new(system_id: u8) -> Self {
        Self { system_id, sequence: 0, due: None }
    }
    /// A console took the lease (true; the first heartbeat is due immediately) or lost it.
    pub fn lease(&mut self, now: Instant, held: bool) {
        self.due = if held { self.due.or(Some(now)) } else { None };
    }
    /// Whether a console holds the lease, so that it is sent.
    pub fn is_sent(&self) -> bool {
        self.due.is_some()
    }
    /// When the next one is due.
    pub fn due(&self) -> Instant {
        self.due.unwrap_or(Instant::NEVER)
    }
    /// Writes it when it is due.
    ///
    /// # Errors
    /// No room; it stays due.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Result<(), BufferFull> {
        if now < self.due() {
            return Ok(());
        }
        let header = MavHeader {
            system_id: self.system_id.into(),
            component_id: COMPONENT_ID,
            sequence: self.sequence,
        };
        transmit.send_as(header, &heartbeat(MavType::MAV_TYPE_GCS))?;
        self.sequence = self.sequence.wrapping_add(1);
        self.due = Some(now + Self::PERIOD);
        Ok(())
    }
}

fn heartbeat(mavtype: MavType) -> MavMessage {
    MavMessage::HEARTBEAT(HEARTBEAT_DATA {
        custom_mode: 0,
        mavtype,
        autopilot: MavAutopilot::MAV_AUTOPILOT_INVALID,
        base_mode: MavModeFlag::empty(),
        system_status: MavState::MAV_STATE_ACTIVE,
        mavlink_version: 3,
    })
}
