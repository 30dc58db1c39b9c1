//! The journal's records: inputs and outputs of an agent. Each is the time since the record before it, microseconds,
//! and an [`Event`], in postcard's format.

use core::num::NonZeroU32;

use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};
#[cfg(feature = "replay")]
use wingbeat_agent::ParameterName;
use wingbeat_agent::guardian::{Answer, Before};
use wingbeat_agent::{
    FlightRecord, Input, KnownAutopilot, KnownSession, LogEntry, MissionExtras, Outputs, Owed,
    ParameterOrder, ParameterValue, ProbeOrder, RegionOrder, Reply, Severity,
};
use wingbeat_geo::Instant;
use wingbeat_wire::{Command, Draft, Opened, Point, Probe, Refused, Role, VehicleId};

/// MAVLink's `SETUP_SIGNING`, whose payload is the secret key.
const SETUP_SIGNING: u32 = 256;

/// What happened, or what the agent answered. New kinds are added at the end: their number is their place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event<'a> {
    /// An agent began: what makes it anew, a [`crate::start::Start`] in JSON.
    Began(&'a str),
    /// The host lost so many records here: a full queue, a full disk. No replay goes beyond.
    Lost(u64),

    /// Time has passed.
    Wake,
    /// Bytes from the autopilot.
    Autopilot(#[serde(with = "bytes")] &'a [u8]),
    /// UTC, microseconds after 1970.
    Utc(u64),
    /// From and until when keys hold, microseconds after 1970.
    KeysHold(u64, u64),
    /// The port to the autopilot opened or closed.
    AutopilotLink(bool),
    /// A datagram that the roster opened.
    Datagram(#[serde(borrow)] Sealed<'a>),
    /// A datagram that it refused: the number of [`Refused`].
    RefusedDatagram(u8),
    /// An order that was posted.
    Order(Sealed<'a>),
    /// The operator's command.
    Operator(&'a str, Command),
    /// The operator's mission.
    Mission(Vec<Point>),
    /// The guardian's answer.
    Guard(Option<Answer>),
    /// A ground station commands the autopilot.
    GroundStation(&'a str),
    /// A probe is due.
    Probe(Probing),
    /// Whether a console holds the lease.
    Lease(bool),
    /// A pilot had the aircraft before.
    TakenBefore(&'a str),

    /// Bytes for the autopilot. A secret key is overwritten with zeros.
    ToAutopilot(#[serde(with = "bytes")] &'a [u8]),
    /// A datagram to seal and broadcast: class and content.
    Broadcast(u8, #[serde(with = "bytes")] &'a [u8]),
    /// Another's datagram to pass on, as that sealed it.
    PassOn(#[serde(with = "bytes")] &'a [u8]),
    /// A line of the log: 0 for the record, 1 a warning, 2 an error.
    Log(u8, &'a str),
    /// The answer to a command, an order or a mission.
    Reply(&'a str),
    /// The operator's command that was accepted.
    Accepted(Command),
    /// The probe that was received.
    ProbeReceived(VehicleId, Probe),

    /// What is plotted: derived, and not compared.
    Sample(Plotted<'a>),

    /// Who had the aircraft before: an input.
    Before(Before),
    /// The operator reads all parameters, or sets the one of this name: an input.
    Parameters(Option<(&'a str, f32)>),
    /// A parameter that an agent before owed to the pilot: name, the pilot's value, what overrode it, and whether these are whole
    /// numbers. An input.
    Owed(&'a str, f64, Option<f64>, bool),
    /// What the swarm's flight before was: an input.
    Flight(Box<FlightRecord>),
    /// Fence and rally points: an input.
    Region(RegionOrder),
    /// The operator set the flight up otherwise: protocol and numbers in JSON, which a later program reads too. An input.
    Coordination(String),
    /// An order that its console itself posted: the peer of the TLS connection. An input.
    DirectOrder(Sealed<'a>),
    /// The identity of the flight controller: its system id, whether it was armed, and whether the guardian has it.
    KnownAutopilot(u8, bool, bool),
    /// The operator's mission with what it states besides its waypoints: an input.
    MissionWith(Vec<Point>, Box<MissionExtras>),
    /// A console's program whose orders an agent before took: console, session, newest counter. An input.
    KnownSession(VehicleId, NonZeroU32, u64),
}

/// A datagram as its sender sealed it, with the roles that the roster gave its sender, and the sender of what it passes
/// on: numbers in [`Role::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sealed<'a> {
    role: Option<u8>,
    passed: Option<u8>,
    /// The whole datagram.
    #[serde(with = "bytes")]
    pub bytes: &'a [u8],
}

/// As [`ProbeOrder`], of the same width on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probing {
    test: u32,
    sequence: u32,
    period_ms: u16,
    unsigned_len: u32,
}

/// What of an aircraft is plotted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plotted<'a> {
    /// The protocol's state.
    pub state: &'a str,
    /// Whether the agent may command.
    pub engaged: bool,
    /// Number of the autopilot's mode.
    pub mode_number: Option<u32>,
    /// Whether motors are armed.
    pub armed: bool,
    /// The waypoint reached last.
    pub reached: Option<u16>,
    /// Latitude and longitude, 1e-7 degree, and altitude above mean sea level, millimetre.
    pub position: Option<[i32; 3]>,
    /// Height above home, millimetre.
    pub height_mm: i32,
    /// Velocity east, north, up, centimetre per second.
    pub velocity_cm_s: [i16; 3],
    /// Heading clockwise from north, hundredths of a degree.
    pub heading_cdeg: u16,
    /// Charge of the battery, per cent.
    pub battery_percent: Option<u8>,
    /// The nearest other aircraft; its distance over ground and in height, millimetre.
    pub nearest: Option<(VehicleId, u32, u32)>,
}

/// Bytes in one piece, not one by one.
mod bytes {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'de [u8], D::Error> {
        <&[u8]>::deserialize(deserializer)
    }
}

/// At the end of a block.
struct Tail<'a>(&'a mut Vec<u8>);

impl Flavor for Tail<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

fn number_of<T: PartialEq>(all: &[T], value: &T) -> Option<u8> {
    all.iter().position(|one| one == value).and_then(|number| u8::try_from(number).ok())
}

impl<'a> Sealed<'a> {
    fn of(opened: &Opened<'a>) -> Self {
        let role = |opened: &Opened<'_>| opened.role().and_then(|role| number_of(&Role::ALL, &role));
        Self {
            role: role(opened),
            passed: opened.passed().and_then(|inner| role(&inner)),
            bytes: opened.sealed(),
        }
    }

    /// As the roster opened it in flight.
    #[cfg(feature = "replay")]
    fn open(&self) -> Result<Opened<'a>, Refused> {
        let role = |number: Option<u8>| number.and_then(|number| Role::ALL.get(usize::from(number)).copied());
        Opened::recorded(self.bytes, role(self.role), role(self.passed))
    }
}

impl<'a> Event<'a> {
    /// The record of an input.
    pub fn of_input(input: &'a Input<'a>) -> Self {
        match *input {
            Input::Wake => Self::Wake,
            Input::Autopilot(bytes) => Self::Autopilot(bytes),
            Input::Utc { unix_us } => Self::Utc(unix_us),
            Input::KeysHold { from_unix_us, until_unix_us } => Self::KeysHold(from_unix_us, until_unix_us),
            Input::AutopilotLink(is_open) => Self::AutopilotLink(is_open),
            Input::Datagram(Ok(opened)) => Self::Datagram(Sealed::of(&opened)),
            // Every reason has a number.
            Input::Datagram(Err(reason)) => {
                Self::RefusedDatagram(number_of(&Refused::ALL, &reason).unwrap_or_default())
            }
            Input::Order { opened, is_direct: false } => Self::Order(Sealed::of(&opened)),
            Input::Order { opened, is_direct: true } => Self::DirectOrder(Sealed::of(&opened)),
            Input::Operator { id, command } => Self::Operator(id, command),
            Input::Mission(points) => Self::Mission(points.to_vec()),
            Input::MissionWith(points, extras) => {
                Self::MissionWith(points.to_vec(), Box::new(extras.clone()))
            }
            Input::Guard(answer) => Self::Guard(answer),
            Input::Region(order) => Self::Region(order),
            // Numbers and names: nothing of it can fail.
            Input::Coordination(flight) => {
                Self::Coordination(serde_json::to_string(flight).unwrap_or_default())
            }
            Input::Parameters(ParameterOrder::ReadAll) => Self::Parameters(None),
            Input::Parameters(ParameterOrder::Set { ref name, value }) => {
                Self::Parameters(Some((name.as_str(), value)))
            }
            Input::Before(before) => Self::Before(before),
            Input::KnownAutopilot { known: KnownAutopilot { system_id, is_armed }, is_held } => {
                Self::KnownAutopilot(system_id, is_armed, is_held)
            }
            Input::KnownSession(KnownSession { console, number, newest }) => {
                Self::KnownSession(console, number, newest)
            }
            Input::Flight(record) => Self::Flight(Box::new(record.clone())),
            Input::GroundStation { what } => Self::GroundStation(what),
            Input::Probe(ProbeOrder { test, sequence, period_ms, unsigned_len }) => {
                let unsigned_len = u32::try_from(unsigned_len).unwrap_or(u32::MAX);
                Self::Probe(Probing { test, sequence, period_ms, unsigned_len })
            }
            Input::Lease(is_held) => Self::Lease(is_held),
            Input::TakenBefore { by } => Self::TakenBefore(by),
            Input::Owed(Owed { ref name, pilots, ours }) => {
                let is_whole = pilots.as_integer().is_some();
                Self::Owed(name.as_str(), pilots.as_f64(), ours.map(ParameterValue::as_f64), is_whole)
            }
        }
    }

    /// Gives the input of this record to `act`; nothing where it is none.
    ///
    /// # Errors
    /// A datagram that is none: the file is not what was recorded.
    #[cfg(feature = "replay")]
    pub fn as_input<R>(&self, act: impl FnOnce(Input<'_>) -> R) -> Result<Option<R>, Refused> {
        let input = match self {
            Self::Wake => Input::Wake,
            Self::Autopilot(bytes) => Input::Autopilot(bytes),
            Self::Utc(unix_us) => Input::Utc { unix_us: *unix_us },
            Self::KeysHold(from, until) => Input::KeysHold { from_unix_us: *from, until_unix_us: *until },
            Self::AutopilotLink(is_open) => Input::AutopilotLink(*is_open),
            Self::Datagram(sealed) => Input::Datagram(Ok(sealed.open()?)),
            Self::RefusedDatagram(number) => {
                let reason = Refused::ALL.get(usize::from(*number)).copied();
                Input::Datagram(Err(reason.ok_or(Refused::Malformed)?))
            }
            Self::Order(sealed) => Input::Order { opened: sealed.open()?, is_direct: false },
            Self::DirectOrder(sealed) => Input::Order { opened: sealed.open()?, is_direct: true },
            Self::Operator(id, command) => Input::Operator { id, command: *command },
            Self::Mission(points) => Input::Mission(points),
            Self::MissionWith(points, extras) => Input::MissionWith(points, extras),
            Self::Guard(answer) => Input::Guard(*answer),
            Self::Before(before) => Input::Before(*before),
            Self::KnownAutopilot(system_id, is_armed, is_held) => {
                let known = KnownAutopilot { system_id: *system_id, is_armed: *is_armed };
                Input::KnownAutopilot { known, is_held: *is_held }
            }
            Self::KnownSession(console, number, newest) => {
                Input::KnownSession(KnownSession { console: *console, number: *number, newest: *newest })
            }
            Self::Flight(record) => Input::Flight(record),
            Self::Region(order) => Input::Region(*order),
            Self::Coordination(text) => {
                let flight = crate::start::coordination(text).ok_or(Refused::Malformed)?;
                return Ok(Some(act(Input::Coordination(&flight))));
            }
            Self::Parameters(None) => Input::Parameters(ParameterOrder::ReadAll),
            Self::Parameters(Some((name, value))) => {
                let name = ParameterName::new(name).ok_or(Refused::Malformed)?;
                Input::Parameters(ParameterOrder::Set { name, value: *value })
            }
            Self::GroundStation(what) => Input::GroundStation { what },
            Self::Probe(Probing { test, sequence, period_ms, unsigned_len }) => Input::Probe(ProbeOrder {
                test: *test,
                sequence: *sequence,
                period_ms: *period_ms,
                unsigned_len: usize::try_from(*unsigned_len).unwrap_or(usize::MAX),
            }),
            Self::Lease(is_held) => Input::Lease(*is_held),
            Self::TakenBefore(by) => Input::TakenBefore { by },
            Self::Owed(name, pilots, ours, is_whole) => {
                let value = |number: f64| match is_whole {
                    true => ParameterValue::Integer(number as i64),
                    false => ParameterValue::Real(number as f32),
                };
                let name = ParameterName::new(name).ok_or(Refused::Malformed)?;
                Input::Owed(Owed { name, pilots: value(*pilots), ours: ours.map(value) })
            }
            Self::Began(_)
            | Self::Lost(_)
            | Self::ToAutopilot(_)
            | Self::Broadcast(..)
            | Self::PassOn(_)
            | Self::Log(..)
            | Self::Reply(_)
            | Self::Accepted(_)
            | Self::ProbeReceived(..)
            | Self::Sample(_) => return Ok(None),
        };
        Ok(Some(act(input)))
    }

    /// Whether the agent answered it.
    pub fn is_output(&self) -> bool {
        matches!(
            self,
            Self::ToAutopilot(_)
                | Self::Broadcast(..)
                | Self::PassOn(_)
                | Self::Log(..)
                | Self::Reply(_)
                | Self::Accepted(_)
                | Self::ProbeReceived(..)
        )
    }

    /// Every name.
    pub const NAMES: [&'static str; 33] = [
        "began",
        "lost",
        "wake",
        "autopilot",
        "utc",
        "keys",
        "link",
        "datagram",
        "refused",
        "order",
        "operator",
        "mission",
        "guard",
        "before",
        "ground-station",
        "probe",
        "lease",
        "taken-before",
        "to-autopilot",
        "broadcast",
        "pass-on",
        "log",
        "reply",
        "accepted",
        "probe-received",
        "sample",
        "parameters",
        "owed",
        "flight",
        "region",
        "coordination",
        "direct-order",
        "known-autopilot",
    ];

    /// Its name, for filters.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Began(_) => "began",
            Self::Lost(_) => "lost",
            Self::Wake => "wake",
            Self::Autopilot(_) => "autopilot",
            Self::Utc(_) => "utc",
            Self::KeysHold(..) => "keys",
            Self::AutopilotLink(_) => "link",
            Self::Datagram(_) => "datagram",
            Self::RefusedDatagram(_) => "refused",
            Self::Order(_) => "order",
            Self::DirectOrder(_) => "direct-order",
            Self::Operator(..) => "operator",
            Self::Mission(_) | Self::MissionWith(..) => "mission",
            Self::Guard(_) => "guard",
            Self::Before(_) => "before",
            Self::KnownAutopilot(..) => "known-autopilot",
            Self::KnownSession(..) => "known-session",
            Self::Flight(_) => "flight",
            Self::Parameters(_) => "parameters",
            Self::Owed(..) => "owed",
            Self::Region(_) => "region",
            Self::Coordination(_) => "coordination",
            Self::GroundStation(_) => "ground-station",
            Self::Probe(_) => "probe",
            Self::Lease(_) => "lease",
            Self::TakenBefore(_) => "taken-before",
            Self::ToAutopilot(_) => "to-autopilot",
            Self::Broadcast(..) => "broadcast",
            Self::PassOn(_) => "pass-on",
            Self::Log(..) => "log",
            Self::Reply(_) => "reply",
            Self::Accepted(_) => "accepted",
            Self::ProbeReceived(..) => "probe-received",
            Self::Sample(_) => "sample",
        }
    }

    /// Writes it at the end of a block, so many microseconds after the record before it.
    pub fn write(&self, since_us: u64, block: &mut Vec<u8>) {
        // A Vec takes everything.
        let _ = postcard::serialize_with_flavor(&(since_us, self), Tail(block));
    }

    /// Reads the first record of a block: its distance in time, what it is, and the rest.
    ///
    /// # Errors
    /// No record of this version.
    pub fn read(block: &'a [u8]) -> Result<(u64, Self, &'a [u8]), postcard::Error> {
        let ((since_us, event), rest) = postcard::take_from_bytes(block)?;
        Ok((since_us, event, rest))
    }
}

/// Gives every output to `each`, in the order in which a host performs them.
pub fn outputs(out: &Outputs, mut each: impl FnMut(Event<'_>)) {
    if !out.autopilot.is_empty() {
        if has_key(&out.autopilot) {
            let mut masked = out.autopilot.to_vec();
            mask_keys(&mut masked);
            each(Event::ToAutopilot(&masked));
        } else {
            each(Event::ToAutopilot(&out.autopilot));
        }
    }
    for draft in &out.datagrams {
        each(of_draft(draft));
    }
    for LogEntry { severity, text } in &out.log {
        each(Event::Log(level(*severity), text));
    }
    if let Some(reply) = &out.reply {
        each(Event::Reply(&of_reply(reply)));
    }
    if let Some(command) = out.accepted {
        each(Event::Accepted(command));
    }
    if let Some((from, probe)) = out.probe {
        each(Event::ProbeReceived(from, probe));
    }
}

fn of_draft(draft: &Draft) -> Event<'_> {
    match draft.relayed() {
        Some(sealed) => Event::PassOn(sealed),
        None => {
            let class = number_of(&wingbeat_wire::Class::ALL, &draft.class()).unwrap_or_default();
            Event::Broadcast(class, draft.content())
        }
    }
}

fn of_reply(reply: &Reply) -> String {
    match reply {
        Reply::Accepted => "accepted".into(),
        Reply::AlreadyKnown => "already known".into(),
        Reply::Refused(why) => format!("refused: {why}"),
    }
}

fn level(severity: Severity) -> u8 {
    match severity {
        Severity::Info => 0,
        Severity::Warning => 1,
        Severity::Error => 2,
    }
}

impl<'a> Plotted<'a> {
    /// What is plotted of a sample; `state` is its state's name.
    pub(crate) fn of(sample: &wingbeat_agent::Sample, state: &'a str) -> Self {
        let mm = |m: f64| (m * 1e3).clamp(0.0, f64::from(u32::MAX)) as u32;
        let v = sample.velocity_m_s;
        Self {
            state,
            engaged: sample.engaged,
            mode_number: sample.mode_number,
            armed: sample.armed,
            reached: sample.reached,
            position: sample.position.map(|p| [p.latitude_e7, p.longitude_e7, p.altitude_mm]),
            height_mm: (sample.height_m * 1e3) as i32,
            velocity_cm_s: [v.x, v.y, v.z].map(|m_s| (m_s * 1e2) as i16),
            heading_cdeg: (sample.heading_rad.to_degrees() * 1e2).rem_euclid(36_000.0) as u16,
            battery_percent: sample.battery_percent,
            nearest: sample.nearest.map(|n| (n.id, mm(n.horizontal_m), mm(n.vertical_m.abs()))),
        }
    }
}

/// Whether one of these whole frames carries a key.
fn has_key(frames: &[u8]) -> bool {
    let mut found = false;
    each_frame(frames, |id, _| found |= id == SETUP_SIGNING);
    found
}

/// Overwrites the payload, and what is computed from it, of frames that carry a key.
fn mask_keys(frames: &mut [u8]) {
    let mut keys = Vec::new();
    each_frame(frames, |id, range| {
        if id == SETUP_SIGNING {
            keys.push(range);
        }
    });
    for (from, to) in keys {
        let to = to.min(frames.len());
        if let Some(secret) = frames.get_mut(from..to) {
            secret.fill(0);
        }
    }
}

/// The message id of each whole frame, and where payload, checksum and signature are
/// (<https://mavlink.io/en/guide/serialization.html>).
fn each_frame(frames: &[u8], mut each: impl FnMut(u32, (usize, usize))) {
    let mut at = 0;
    while let Some(frame) = frames.get(at..).filter(|rest| rest.len() >= 8) {
        let payload = usize::from(frame[1]);
        let (id, head, tail) = match (frame[0], frame.get(7..10)) {
            (0xfd, Some(id)) => {
                let signature = if frame[2] & 1 == 1 { 13 } else { 0 };
                (u32::from_le_bytes([id[0], id[1], id[2], 0]), 10, 2 + signature)
            }
            (0xfe, _) => (u32::from(frame[5]), 6, 2),
            _ => return,
        };
        each(id, (at + head, at + head + payload + tail));
        at += head + payload + tail;
    }
}

/// Agent time of records, one after another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Time(u64);

impl Time {
    /// After `since_us` more.
    pub fn advance(&mut self, since_us: u64) -> Instant {
        self.0 = self.0.saturating_add(since_us);
        Instant::from_micros(self.0)
    }
}

#[cfg(test)]
mod tests {
    use wingbeat_agent::guardian::Modes;

    use super::*;

    #[test]
    fn a_key_on_its_way_to_the_autopilot_is_in_no_log() {
        let heartbeat = [0xfd, 1, 0, 0, 0, 1, 1, 0, 0, 0, 7, 0xaa, 0xbb];
        let mut key = vec![0xfd, 4, 0, 0, 0, 1, 1, 0, 1, 0, 9, 9, 9, 9, 5, 6];
        let old = [0xfe, 2, 0, 1, 1, 0, 8, 8, 1, 2];
        let mut frames = [heartbeat.as_slice(), &key, &old].concat();
        assert!(has_key(&frames) && !has_key(&heartbeat) && !has_key(&old));
        mask_keys(&mut frames);
        key[10..].fill(0);
        assert_eq!(frames, [heartbeat.as_slice(), &key, &old].concat());
        // What is cut off is masked as far as it goes, and nothing panics.
        for end in 0..frames.len() {
            mask_keys(&mut frames[..end].to_vec());
        }
    }

    #[test]
    fn records_are_read_as_they_were_written_and_rubbish_is_an_error() {
        let events = [
            Event::Wake,
            Event::Autopilot(&[1, 2, 3]),
            Event::Datagram(Sealed { role: Some(1), passed: None, bytes: &[9; 100] }),
            Event::Operator("id", Command::Land),
            Event::Guard(None),
            Event::Before(Before::Failsafe(Modes(64))),
            Event::Parameters(None),
            Event::Region(RegionOrder::Write(wingbeat_agent::RegionKind::Rally, 2)),
            Event::Parameters(Some(("RTL_ALT", 1_500.0))),
            Event::Log(2, "text"),
            Event::Lost(7),
        ];
        let mut block = Vec::new();
        for (i, event) in events.iter().enumerate() {
            event.write(i as u64 * 1_000, &mut block);
        }
        let mut rest = block.as_slice();
        for (i, event) in events.iter().enumerate() {
            let (since_us, read, after) = Event::read(rest).unwrap();
            assert_eq!((since_us, &read), (i as u64 * 1_000, event));
            rest = after;
        }
        assert!(rest.is_empty());
        assert!(Event::read(&[0, 200]).is_err() && Event::read(&[]).is_err());
        assert!(Event::read(&[0, 3, 50, 1]).is_err(), "shorter than it says");
    }
}
