//! The schemas of a log's channels. Foxglove knows its own by their names (<https://docs.foxglove.dev/docs/visualization/message-schemas/introduction>).

use serde::Serialize;
use serde_json::Value;

/// A channel's schema: name, encoding, text.
#[derive(Debug)]
pub struct Schema {
    /// Foxglove's own name where it has one.
    pub name: &'static str,
    /// JSON Schema.
    pub text: &'static str,
}

/// A position on the map (<https://docs.foxglove.dev/docs/visualization/message-schemas/location-fix>).
pub const LOCATION_FIX: Schema = Schema {
    name: "foxglove.LocationFix",
    text: r#"{"title":"foxglove.LocationFix","type":"object","properties":{"timestamp":{"type":"object","title":"time","properties":{"sec":{"type":"integer","minimum":0},"nsec":{"type":"integer","minimum":0,"maximum":999999999}}},"frame_id":{"type":"string"},"latitude":{"type":"number"},"longitude":{"type":"number"},"altitude":{"type":"number"},"position_covariance":{"type":"array","items":{"type":"number"},"minItems":9,"maxItems":9},"position_covariance_type":{"title":"foxglove.PositionCovarianceType","oneOf":[{"title":"UNKNOWN","const":0},{"title":"APPROXIMATED","const":1},{"title":"DIAGONAL_KNOWN","const":2},{"title":"KNOWN","const":3}]}}}"#,
};

/// A time since 1970, UTC.
#[derive(Debug, Serialize)]
pub struct Time {
    /// Seconds.
    pub sec: u64,
    /// Nanoseconds of the second.
    pub nsec: u64,
}

impl Time {
    /// From microseconds since 1970.
    #[must_use]
    pub fn from_us(us: u64) -> Self {
        Self { sec: us / 1_000_000, nsec: us % 1_000_000 * 1_000 }
    }
}

/// The message of [`LOCATION_FIX`].
#[derive(Debug, Serialize)]
pub struct LocationFix<'a> {
    timestamp: Time,
    frame_id: &'a str,
    latitude: f64,
    longitude: f64,
    altitude: f64,
    position_covariance: [u8; 9],
    position_covariance_type: u8,
}

impl LocationFix<'_> {
    /// A position without what is known of its error: degrees, and metres of altitude.
    #[must_use]
    pub fn new(timestamp: Time, latitude: f64, longitude: f64, altitude: f64) -> Self {
        let (position_covariance, position_covariance_type) = ([0; 9], 0);
        Self {
            timestamp,
            frame_id: "",
            latitude,
            longitude,
            altitude,
            position_covariance,
            position_covariance_type,
        }
    }
}

/// A line of the log (<https://docs.foxglove.dev/docs/visualization/message-schemas/log>).
pub const LOG: Schema = Schema {
    name: "foxglove.Log",
    text: r#"{"title":"foxglove.Log","type":"object","properties":{"timestamp":{"type":"object","title":"time","properties":{"sec":{"type":"integer","minimum":0},"nsec":{"type":"integer","minimum":0,"maximum":999999999}}},"level":{"title":"foxglove.LogLevel","oneOf":[{"title":"UNKNOWN","const":0},{"title":"DEBUG","const":1},{"title":"INFO","const":2},{"title":"WARNING","const":3},{"title":"ERROR","const":4},{"title":"FATAL","const":5}]},"message":{"type":"string"},"name":{"type":"string"},"file":{"type":"string"},"line":{"type":"integer","minimum":0}}}"#,
};

/// The message of [`LOG`].
#[derive(Debug, Serialize)]
pub struct Log<'a> {
    timestamp: Time,
    level: u8,
    message: &'a str,
    name: &'a str,
    file: &'a str,
    line: u32,
}

impl<'a> Log<'a> {
    /// A line of what is named; level 2 is information, 3 a warning, 4 an error.
    #[must_use]
    pub fn new(timestamp: Time, level: u8, name: &'a str, message: &'a str) -> Self {
        Self { timestamp, level, message, name, file: "", line: 0 }
    }
}

/// State and motion.
pub(crate) const STATE: Schema = Schema {
    name: "wingbeat.State",
    text: r#"{"title":"wingbeat.State","type":"object","properties":{"state":{"type":"string"},"engaged":{"type":"boolean"},"mode_number":{"type":"integer"},"armed":{"type":"boolean"},"waypoint_reached":{"type":"integer"},"height_m":{"type":"number"},"east_m_s":{"type":"number"},"north_m_s":{"type":"number"},"up_m_s":{"type":"number"},"speed_m_s":{"type":"number"},"heading_deg":{"type":"number"},"battery_percent":{"type":"integer"}}}"#,
};

/// What is not known is absent: the schema has numbers there, no nulls.
#[derive(Serialize)]
pub(crate) struct State<'a> {
    pub(crate) state: &'a str,
    pub(crate) engaged: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode_number: Option<u32>,
    pub(crate) armed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waypoint_reached: Option<u16>,
    pub(crate) height_m: f64,
    pub(crate) east_m_s: f64,
    pub(crate) north_m_s: f64,
    pub(crate) up_m_s: f64,
    pub(crate) speed_m_s: f64,
    pub(crate) heading_deg: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) battery_percent: Option<u8>,
}

/// The nearest other aircraft.
pub const SEPARATION: Schema = Schema {
    name: "wingbeat.Separation",
    text: r#"{"title":"wingbeat.Separation","type":"object","properties":{"nearest":{"type":"string"},"distance_m":{"type":"number"},"horizontal_m":{"type":"number"},"vertical_m":{"type":"number"}}}"#,
};

/// The message of [`SEPARATION`].
#[derive(Debug, Serialize)]
pub struct Separation<'a> {
    /// Who it is.
    pub nearest: &'a str,
    /// How far away, metres.
    pub distance_m: f64,
    /// Over ground, metres.
    pub horizontal_m: f64,
    /// In height, metres.
    pub vertical_m: f64,
}

/// A datagram that was sent or received.
pub(crate) const DATAGRAM: Schema = Schema {
    name: "wingbeat.Datagram",
    text: r#"{"title":"wingbeat.Datagram","type":"object","properties":{"from":{"type":"string"},"counter":{"type":"integer"},"flight":{"type":"integer"},"kind":{"type":"string"},"message":{"type":"object","properties":{}}}}"#,
};

#[derive(Serialize)]
pub(crate) struct Datagram<'a> {
    pub(crate) from: &'a str,
    pub(crate) counter: u64,
    pub(crate) flight: u32,
    pub(crate) kind: &'a str,
    pub(crate) message: &'a Value,
}

/// A command of the operator, or its answer.
pub(crate) const EVENT: Schema = Schema {
    name: "wingbeat.Event",
    text: r#"{"title":"wingbeat.Event","type":"object","properties":{"event":{"type":"string"},"text":{"type":"string"}}}"#,
};

#[derive(Serialize)]
pub(crate) struct Event<'a> {
    pub(crate) event: &'a str,
    pub(crate) text: &'a str,
}

/// The name of the journal's message.
pub(crate) const JOURNAL: &str = "wingbeat.Journal";

/// The descriptor of the journal's message (`google.protobuf.FileDescriptorSet`):
/// `message Journal { uint64 from_us = 1; bytes records = 2; }`.
pub(crate) fn journal() -> Vec<u8> {
    const TYPE_UINT64: u64 = 4;
    const TYPE_BYTES: u64 = 12;
    const LABEL_OPTIONAL: u64 = 1;
    let field = |name: &str, number: u64, kind: u64| {
        let mut field = Vec::new();
        text(&mut field, 1, name.as_bytes());
        for (tag, value) in [(3, number), (4, LABEL_OPTIONAL), (5, kind)] {
            integer(&mut field, tag, value);
        }
        field
    };
    let mut message = Vec::new();
    text(&mut message, 1, b"Journal");
    text(&mut message, 2, &field("from_us", 1, TYPE_UINT64));
    text(&mut message, 2, &field("records", 2, TYPE_BYTES));
    let mut file = Vec::new();
    text(&mut file, 1, b"wingbeat.proto");
    text(&mut file, 2, b"wingbeat");
    text(&mut file, 4, &message);
    text(&mut file, 12, b"proto3");
    let mut set = Vec::new();
    text(&mut set, 1, &file);
    set
}

/// The journal's message: agent time of its first record, and the records.
pub(crate) fn journal_message(from_us: u64, records: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(records.len() + 24);
    integer(&mut message, 1, from_us);
    text(&mut message, 2, records);
    message
}

/// Reads it: time and records.
pub(crate) fn read_journal_message(message: &[u8]) -> Option<(u64, &[u8])> {
    let (mut from_us, mut rest) = (0, message);
    loop {
        let tag = read_varint(&mut rest)?;
        match tag {
            0x08 => from_us = read_varint(&mut rest)?,
            0x12 => {
                let length = usize::try_from(read_varint(&mut rest)?).ok()?;
                return (rest.len() == length).then_some((from_us, rest));
            }
            _ => return None,
        }
    }
}

fn integer(into: &mut Vec<u8>, number: u64, value: u64) {
    varint(into, number << 3);
    varint(into, value);
}

fn text(into: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    varint(into, number << 3 | 2);
    varint(into, bytes.len() as u64);
    into.extend_from_slice(bytes);
}

fn varint(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_message_is_read_as_it_was_written_and_rubbish_is_none() {
        for from_us in [0, 1, 300, u64::MAX] {
            for records in [&[] as &[u8], &[1, 2, 3], &[7; 1_000]] {
                let message = journal_message(from_us, records);
                assert_eq!(read_journal_message(&message), Some((from_us, records)));
                assert!(read_journal_message(&message[..message.len() - 1]).is_none());
            }
        }
        assert_eq!(read_journal_message(&[0xff; 12]), None);
    }

    #[test]
    fn every_schema_is_json_of_its_name() {
        for schema in [LOCATION_FIX, LOG, STATE, SEPARATION, DATAGRAM, EVENT] {
            let read: serde_json::Value = serde_json::from_str(schema.text).unwrap();
            assert_eq!(read["title"], schema.name);
            assert_types_are_plain(&read, schema.name);
        }
    }

    /// Foxglove reads schemas in which each field has one type, an object its properties and an array its items; at another it
    /// drops the whole channel (`parseJsonSchema` of its `mcap-support`).
    fn assert_types_are_plain(schema: &serde_json::Value, path: &str) {
        if let Some(choices) = schema["oneOf"].as_array() {
            assert!(choices.iter().all(|choice| choice["const"].is_number()), "{path}: {schema}");
            return;
        }
        match schema["type"].as_str() {
            Some("boolean" | "string" | "number" | "integer") => {}
            Some("object") => {
                for (name, field) in schema["properties"].as_object().unwrap() {
                    assert_types_are_plain(field, &format!("{path}.{name}"));
                }
            }
            Some("array") => assert_types_are_plain(&schema["items"], &format!("{path}[]")),
            _ => panic!("{path}: found {}, expected one type", schema["type"]),
        }
    }
}
