//! What of one log is replayed: samples, datagrams and events, of which there are no more than a bound, however long the log is.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use wingbeat_api::{RecordedDatagrams, RecordedEvent, RecordedTrack, Severity, VehicleId};

use super::file::{self, Go, Item, Problem};
use super::{TEXT_MAX, next_part, text};
use crate::readers::Budget;

/// Of all files of a log together, bytes.
const LENGTH_MAX: u64 = 1 << 30;
/// Events that are given.
const EVENTS_MAX: usize = 5_000;
/// Names of states, of messages, and ids of aircraft: more are in no log.
const NAMES_MAX: usize = 512;
/// Between two datagrams of one sender, milliseconds, where there are not too many.
const DATAGRAM_PERIOD_MS: u32 = 1_000;

/// As the channel `/state` has it.
#[derive(Deserialize)]
struct State<'a> {
    #[serde(borrow)]
    state: std::borrow::Cow<'a, str>,
    engaged: bool,
    mode_number: Option<u32>,
    armed: bool,
    waypoint_reached: Option<u16>,
    height_m: f64,
    speed_m_s: f64,
    heading_deg: f64,
    battery_percent: Option<u8>,
}

/// As the channels of positions have it.
#[derive(Deserialize)]
struct Location {
    latitude: f64,
    longitude: f64,
    altitude: f64,
}

#[derive(Deserialize)]
struct Separation {
    nearest: String,
    distance_m: f64,
}

#[derive(Deserialize)]
struct Line {
    level: u8,
    message: String,
}

#[derive(Deserialize)]
struct Event {
    event: String,
    text: String,
}

#[derive(Deserialize)]
struct Datagram<'a> {
    from: Sender,
    /// The name of the message; as older programs wrote it the message has its name.
    kind: Option<String>,
    #[serde(borrow)]
    message: &'a RawValue,
}

/// An id, or its number, as older programs wrote it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Sender {
    Id(String),
    Number(u64),
}

/// Latitude and longitude, 1e-7 degree, and altitude, millimetre.
type Place = [i32; 3];

fn place(at: &Location) -> Place {
    let e7 = |degrees: f64| (degrees * 1e7).round() as i32;
    [e7(at.latitude), e7(at.longitude), (at.altitude * 1e3).round() as i32]
}

/// One sample, its number in the log, and whether the state is another than before.
struct Row {
    number: u64,
    is_change: bool,
    time_ms: u32,
    place: Option<Place>,
    height_cm: i32,
    speed_cm_s: u32,
    heading_deg: u16,
    battery_percent: Option<u8>,
    armed: bool,
    engaged: bool,
    mode_number: Option<u32>,
    waypoint_reached: Option<u16>,
    state: u16,
    nearest: Option<(u16, u32)>,
}

/// A datagram that was received.
struct Received {
    time_ms: u32,
    from: u16,
    kind: u16,
    place: Option<Place>,
}

/// Texts, each once, by number.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    numbers: BTreeMap<String, u16>,
}

impl Names {
    fn number(&mut self, name: &str) -> Option<u16> {
        if let Some(&number) = self.numbers.get(name) {
            return Some(number);
        }
        if self.names.len() >= NAMES_MAX {
            return None;
        }
        let number = u16::try_from(self.names.len()).ok()?;
        let name: String = name.chars().take(TEXT_MAX).collect();
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        Some(number)
    }
}

struct Reading {
    samples_max: usize,
    track: RecordedTrack,
    /// UTC at agent time zero of the file that is read, nanoseconds: the times of its messages count from there.
    zero_ns: u64,
    rows: Vec<Row>,
    samples: u64,
    every: u64,
    place: Option<(u32, Place)>,
    received: Vec<Received>,
    last_ms: BTreeMap<u16, u32>,
    period_ms: u32,
    neighbour: Option<(String, u32, Place)>,
    states: Names,
    peers: Names,
    kinds: Names,
}

/// Reads a log with the parts that follow it, up to one that is none.
pub(super) fn read(path: &Path, name: &str, samples: u32, budget: &Budget) -> Result<RecordedTrack, Problem> {
    let mut reading = Reading::new(name, samples);
    let named = |path: &Path, flaw: &dyn std::fmt::Display| {
        format!("{}: {flaw}", path.file_name().unwrap_or_default().to_string_lossy())
    };
    let mut flaw = file::read(path, LENGTH_MAX, budget, |item| reading.take(item))?;
    let mut left_bytes = LENGTH_MAX.saturating_sub(path.metadata().map_or(0, |about| about.len()));
    let mut last = path.to_path_buf();
    while let Some(next) = next_part(&last).filter(|_| left_bytes > 0) {
        match file::read(&next, left_bytes, budget, |item| reading.take(item)) {
            // The first flaw counts: what follows it is given, and is not all.
            Ok(of_next) => flaw = flaw.or_else(|| of_next.map(|flaw| named(&next, &flaw))),
            Err(problem) => {
                flaw = flaw.or_else(|| Some(named(&next, &problem)));
                break;
            }
        }
        left_bytes = left_bytes.saturating_sub(next.metadata().map_or(0, |about| about.len()));
        last = next;
    }
    Ok(reading.end(flaw))
}

impl Reading {
    fn new(name: &str, samples: u32) -> Self {
        Self {
            samples_max: samples as usize,
            track: RecordedTrack { file: name.to_owned(), ..RecordedTrack::default() },
            zero_ns: 0,
            rows: Vec::new(),
            samples: 0,
            every: 1,
            place: None,
            received: Vec::new(),
            last_ms: BTreeMap::new(),
            period_ms: DATAGRAM_PERIOD_MS,
            neighbour: None,
            states: Names::default(),
            peers: Names::default(),
            kinds: Names::default(),
        }
    }

    fn take(&mut self, item: Item<'_>) -> Go {
        match item {
            Item::About(about) => {
                let zero_us = file::zero_unix_us(&about);
                self.zero_ns = zero_us.unwrap_or(0).saturating_mul(1_000);
                let track = &mut self.track;
                if track.zero_unix_ms.is_none() {
                    track.zero_unix_ms = zero_us.map(|us| us as f64 / 1e3);
                }
                for (field, key) in [
                    (&mut track.aircraft, "aircraft"),
                    (&mut track.name, "name"),
                    (&mut track.version, "version"),
                ] {
                    if field.is_empty() {
                        *field = text(&about, key);
                    }
                }
            }
            Item::Message(topic, at_ns, data) => {
                let since_ms = at_ns.saturating_sub(self.zero_ns) / 1_000_000;
                let time_ms = u32::try_from(since_ms).unwrap_or(u32::MAX);
                // What of a channel cannot be read is left out: the file's checksums hold, so that it is of another version.
                let _ = self.message(topic, time_ms, data);
            }
        }
        Go::Continue(())
    }

    fn message(&mut self, topic: &str, time_ms: u32, data: &[u8]) -> Option<()> {
        match topic {
            "/position" => {
                self.place = Some((time_ms, place(&serde_json::from_slice(data).ok()?)));
            }
            "/state" => self.sample(time_ms, &serde_json::from_slice(data).ok()?)?,
            "/separation" => {
                let found: Separation = serde_json::from_slice(data).ok()?;
                let peer = self.peers.number(&found.nearest)?;
                let row = self.rows.last_mut().filter(|row| row.time_ms == time_ms)?;
                row.nearest = Some((peer, (found.distance_m * 1e2).round() as u32));
            }
            "/received" => self.datagram(time_ms, &serde_json::from_slice(data).ok()?)?,
            "/log" => {
                let Line { level, message } = serde_json::from_slice(data).ok()?;
                let severity = match level {
                    0..=2 => Severity::Info,
                    3 => Severity::Warning,
                    _ => Severity::Error,
                };
                self.event(RecordedEvent { time_ms, kind: "log".to_owned(), severity, text: message });
            }
            "/events" => {
                let Event { event, text } = serde_json::from_slice(data).ok()?;
                let severity = if event == "lost" { Severity::Warning } else { Severity::Info };
                self.event(RecordedEvent { time_ms, kind: event, severity, text });
            }
            _ => {
                let id = topic.strip_prefix("/neighbours/")?;
                self.neighbour = Some((id.to_owned(), time_ms, place(&serde_json::from_slice(data).ok()?)));
            }
        }
        Some(())
    }

    fn event(&mut self, event: RecordedEvent) {
        if self.track.events.len() < EVENTS_MAX {
            self.track.events.push(event);
        } else {
            self.track.events_left_out = self.track.events_left_out.saturating_add(1);
        }
    }

    fn sample(&mut self, time_ms: u32, found: &State<'_>) -> Option<()> {
        let state = self.states.number(&found.state)?;
        let is_change = self.rows.last().is_none_or(|row| row.state != state);
        let number = self.samples;
        self.samples += 1;
        if !is_change && !number.is_multiple_of(self.every) {
            return Some(());
        }
        let place = self.place.filter(|(at_ms, _)| *at_ms == time_ms).map(|(_, place)| place);
        self.rows.push(Row {
            number,
            is_change,
            time_ms,
            place,
            height_cm: (found.height_m * 1e2).round() as i32,
            speed_cm_s: (found.speed_m_s * 1e2).round() as u32,
            heading_deg: found.heading_deg.round().rem_euclid(360.0) as u16,
            battery_percent: found.battery_percent,
            armed: found.armed,
            engaged: found.engaged,
            mode_number: found.mode_number,
            waypoint_reached: found.waypoint_reached,
            state,
            nearest: None,
        });
        if self.rows.len() > self.samples_max {
            self.every *= 2;
            self.rows.retain(|row| row.is_change || row.number.is_multiple_of(self.every));
            // A state that changes with each sample is in no flight.
            self.rows.truncate(self.samples_max);
        }
        Some(())
    }

    fn datagram(&mut self, time_ms: u32, found: &Datagram<'_>) -> Option<()> {
        let id = match &found.from {
            Sender::Id(id) => id.clone(),
            Sender::Number(number) => VehicleId(*number).to_string(),
        };
        let from = self.peers.number(&id)?;
        let due =
            self.last_ms.get(&from).is_none_or(|last_ms| time_ms >= last_ms.saturating_add(self.period_ms));
        if !due {
            return Some(());
        }
        let kind = match &found.kind {
            Some(kind) => kind.clone(),
            None => match serde_json::from_str(found.message.get()).ok()? {
                Value::String(name) => name,
                Value::Object(message) => message.keys().next()?.clone(),
                _ => return None,
            },
        };
        let kind = self.kinds.number(&kind)?;
        let place = self.neighbour.take().filter(|(of, at_ms, _)| *of == id && *at_ms == time_ms);
        self.received.push(Received { time_ms, from, kind, place: place.map(|(_, _, place)| place) });
        self.last_ms.insert(from, time_ms);
        if self.received.len() > self.samples_max {
            self.period_ms = self.period_ms.saturating_mul(2);
            self.last_ms.clear();
            let (last_ms, period_ms) = (&mut self.last_ms, self.period_ms);
            self.received.retain(|one| {
                let due =
                    last_ms.get(&one.from).is_none_or(|last| one.time_ms >= last.saturating_add(period_ms));
                if due {
                    last_ms.insert(one.from, one.time_ms);
                }
                due
            });
            self.received.truncate(self.samples_max);
        }
        Some(())
    }

    fn end(self, flaw: Option<String>) -> RecordedTrack {
        let mut track = self.track;
        track.flaw = flaw.unwrap_or_default();
        track.every = u32::try_from(self.every).unwrap_or(u32::MAX);
        for row in self.rows {
            track.time_ms.push(row.time_ms);
            track.latitude_e7.push(row.place.map(|place| place[0]));
            track.longitude_e7.push(row.place.map(|place| place[1]));
            track.altitude_mm.push(row.place.map(|place| place[2]));
            track.height_cm.push(row.height_cm);
            track.speed_cm_s.push(row.speed_cm_s);
            track.heading_deg.push(row.heading_deg);
            track.battery_percent.push(row.battery_percent);
            track.armed.push(row.armed);
            track.engaged.push(row.engaged);
            track.mode_number.push(row.mode_number);
            track.waypoint_reached.push(row.waypoint_reached);
            track.state.push(row.state);
            track.nearest.push(row.nearest.map(|(peer, _)| peer));
            track.nearest_cm.push(row.nearest.map(|(_, distance_cm)| distance_cm));
        }
        let mut received = RecordedDatagrams {
            period_ms: self.period_ms,
            kinds: self.kinds.names,
            ..RecordedDatagrams::default()
        };
        for one in self.received {
            received.time_ms.push(one.time_ms);
            received.from.push(one.from);
            received.kind.push(one.kind);
            received.latitude_e7.push(one.place.map(|place| place[0]));
            received.longitude_e7.push(one.place.map(|place| place[1]));
        }
        track.received = received;
        track.states = self.states.names;
        track.peers = self.peers.names;
        track
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flight that failed once, with another aircraft near.
    fn flown() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/flights/perpendicular-mbcap-e.mcap")
    }

    #[test]
    fn a_log_is_given_in_columns() {
        let track = read(&flown(), "x.mcap", 20_000, &Budget::of(1 << 40)).unwrap();
        assert_eq!((track.flaw.as_str(), track.every, track.file.as_str()), ("", 1, "x.mcap"));
        let count = track.time_ms.len();
        assert!(count > 500 && track.time_ms.is_sorted(), "{count}");
        let states: Vec<&str> = track.states.iter().map(String::as_str).collect();
        assert!(
            states.starts_with(&["Start", "Setup", "SetupFinished", "TakingOff", "Normal"]),
            "{states:?}"
        );
        for len in [
            track.latitude_e7.len(),
            track.longitude_e7.len(),
            track.altitude_mm.len(),
            track.height_cm.len(),
            track.speed_cm_s.len(),
            track.heading_deg.len(),
            track.battery_percent.len(),
            track.armed.len(),
            track.engaged.len(),
            track.mode_number.len(),
            track.waypoint_reached.len(),
            track.state.len(),
            track.nearest.len(),
            track.nearest_cm.len(),
        ] {
            assert_eq!(len, count);
        }
        assert!(track.armed.contains(&true) && track.latitude_e7.iter().flatten().count() > count / 2);
        let nearest_cm = track.nearest_cm.iter().flatten().min().copied();
        assert!(nearest_cm.is_some_and(|cm| cm < 10_000), "{nearest_cm:?}");
        let received = &track.received;
        assert!(
            received.time_ms.len() > 50 && received.kinds.iter().any(|kind| kind == "Beacon"),
            "{:?}",
            received.kinds
        );
        assert!(received.latitude_e7.iter().flatten().count() > 50);
        assert!(track.events.iter().any(|event| event.kind == "operator" && event.text.starts_with("start")));
        assert!(track.events.iter().any(|event| event.kind == "log"));
        assert_eq!(track.aircraft.len(), 16);
    }

    #[test]
    fn datagrams_are_read_as_this_program_writes_them_and_as_older_ones_did() {
        let mut reading = Reading::new("x", 100);
        for (time_ms, text) in [
            (0, r#"{"from":"0000020000000002","counter":1,"flight":2,"kind":"ReadyToFly","message":{}}"#),
            (
                2_000,
                r#"{"from":"0000020000000002","counter":1,"flight":2,"kind":"Beacon","message":{"event":1}}"#,
            ),
            (4_000, r#"{"from":2199023255554,"counter":1,"flight":2,"message":{"Beacon":{"event":1}}}"#),
            (6_000, r#"{"from":2199023255554,"counter":1,"flight":2,"message":"ReadyToFly"}"#),
        ] {
            reading.message("/received", time_ms, text.as_bytes()).unwrap();
        }
        let track = reading.end(None);
        assert_eq!(track.peers, ["0000020000000002"]);
        assert_eq!(track.received.kinds, ["ReadyToFly", "Beacon"]);
        assert_eq!(track.received.kind, [0, 1, 1, 0]);
    }

    #[test]
    fn a_long_log_is_thinned_and_keeps_each_state() {
        let (all, few) = (
            read(&flown(), "x", 20_000, &Budget::of(1 << 40)).unwrap(),
            read(&flown(), "x", 100, &Budget::of(1 << 40)).unwrap(),
        );
        assert!(few.time_ms.len() <= 100 && few.every >= 8, "{} of {}", few.time_ms.len(), all.time_ms.len());
        assert!(few.received.time_ms.len() <= 100 && few.received.period_ms > 1_000);
        let passed = |track: &RecordedTrack| {
            let mut states = track.state.clone();
            states.dedup();
            states.into_iter().map(|state| track.states[usize::from(state)].clone()).collect::<Vec<_>>()
        };
        assert_eq!(passed(&few), passed(&all));
    }

    #[test]
    fn a_log_that_was_cut_is_given_as_far_as_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let (bytes, path) = (std::fs::read(flown()).unwrap(), folder.path().join("cut.mcap"));
        let whole = read(&flown(), "x", 20_000, &Budget::of(1 << 40)).unwrap().time_ms.len();
        let mut given = 0;
        for part in 0..12 {
            let at = bytes.len() * part / 12;
            let mut changed = bytes.clone();
            changed[at] ^= 0x40;
            for content in [&bytes[..at], &changed] {
                std::fs::write(&path, content).unwrap();
                match read(&path, "x", 20_000, &Budget::of(1 << 40)) {
                    Ok(track) => {
                        assert!(!track.flaw.is_empty() || track.time_ms.len() == whole, "{at}");
                        given += usize::from(!track.time_ms.is_empty());
                    }
                    Err(Problem::NoLog(_)) => assert!(at < 4_096, "{at}"),
                    Err(problem) => panic!("{problem:?}"),
                }
            }
        }
        assert!(given > 6, "{given}");
    }
}
