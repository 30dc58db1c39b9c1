//! One MCAP file: the journal, and channels of what is plotted. The same records make the same bytes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};

use mcap::records::{MessageHeader, Metadata};
use mcap::{Compression, McapError, WriteOptions};
use serde::Serialize;
use serde_json::{Value, json};
use wingbeat_wire::{Datagram, Message, VehicleId, read_unverified, sender_unverified};

use crate::event::{self, Event, Plotted};
use crate::recorder::Block;
use crate::schema::{self, Schema, Time};
use crate::start::Start;

/// The channel of the journal.
pub const JOURNAL_TOPIC: &str = "/journal";
/// The name of the metadata.
pub const METADATA: &str = "wingbeat";
/// Between two datagrams of one sender that are plotted, microseconds. The journal has all.
const DATAGRAM_PERIOD_US: u64 = 1_000_000;
/// Channels for so many neighbours at most.
const NEIGHBOURS_MAX: usize = 128;
/// The length of a chunk that is not flushed earlier, bytes.
const CHUNK_LEN: u64 = 128 * 1024;

/// What a file is about: texts that it states first.
pub type About = BTreeMap<String, String>;

type Output = mcap::write::NoSeek<BufWriter<File>>;

/// A file that is being written.
pub struct LogFile {
    writer: mcap::Writer<Output>,
    file: File,
    channels: BTreeMap<String, u16>,
    schemas: BTreeMap<&'static str, u16>,
    journal: u16,
    blocks: u32,
    /// UTC at agent time zero, microseconds after 1970; 0 where it is unknown.
    utc_base_us: u64,
    plotted: Plotting,
    written: u64,
    /// Room for the message that is being written.
    text: Vec<u8>,
}

/// What was plotted last.
#[derive(Default)]
struct Plotting {
    own_id: Option<VehicleId>,
    state: String,
    received_us: BTreeMap<VehicleId, u64>,
    sent_us: BTreeMap<u8, u64>,
}

/// What the beginning of a file states beside its records.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// Texts.
    pub about: About,
    /// UTC at agent time zero, microseconds after 1970, where the file before this one had it.
    pub utc_base_us: Option<u64>,
}

impl LogFile {
    /// Begins a file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(file: File, header: &Header, first: &Block) -> Result<Self, McapError> {
        let copy = file.try_clone()?;
        let output = mcap::write::NoSeek::new(BufWriter::new(file));
        let options = WriteOptions::new()
            .compression(Some(Compression::Lz4))
            .chunk_size(Some(CHUNK_LEN))
            .disable_seeking(true)
            .profile("")
            .library(format!("wingbeat {}", crate::VERSION));
        let mut writer = options.create(output)?;
        let utc_base_us = header.utc_base_us.or_else(|| utc_base_us(first)).unwrap_or(0);
        let mut metadata = header.about.clone();
        metadata.insert("version".into(), crate::VERSION.into());
        metadata.insert("agent".into(), crate::AGENT.into());
        if utc_base_us > 0 {
            metadata.insert("utc_of_agent_time_zero_us".into(), utc_base_us.to_string());
        }
        if let Some(start) = start_of(first) {
            metadata.insert("aircraft".into(), start.aircraft);
            metadata.insert("name".into(), start.name);
        }
        writer.write_metadata(&Metadata { name: METADATA.into(), metadata })?;
        let schema = writer.add_schema(schema::JOURNAL, "protobuf", &schema::journal())?;
        let journal = writer.add_channel(schema, JOURNAL_TOPIC, "protobuf", &BTreeMap::new())?;
        Ok(Self {
            writer,
            file: copy,
            channels: BTreeMap::new(),
            schemas: BTreeMap::new(),
            journal,
            blocks: 0,
            utc_base_us,
            plotted: Plotting::default(),
            written: 0,
            text: Vec::new(),
        })
    }

    /// UTC at agent time zero, microseconds after 1970, where it is known.
    pub fn utc_base_us(&self) -> Option<u64> {
        (self.utc_base_us > 0).then_some(self.utc_base_us)
    }

    /// Bytes of records so far, before compression.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Adds a block, and what of it is plotted.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&mut self, block: &Block) -> Result<(), McapError> {
        let message = schema::journal_message(block.from_us, &block.records);
        self.blocks = self.blocks.wrapping_add(1);
        self.put(self.journal, block.from_us, self.blocks, &message)?;
        let (mut time, mut rest) = (event::Time::default(), block.records.as_slice());
        let _ = time.advance(block.from_us);
        while let Ok((since_us, event, after)) = Event::read(rest) {
            let now_us = time.advance(since_us).as_micros();
            self.plot(now_us, &event)?;
            rest = after;
        }
        Ok(())
    }

    /// Ends the chunk and waits until the disk has it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn sync(&mut self) -> Result<(), McapError> {
        self.writer.flush()?;
        self.file.sync_data()?;
        Ok(())
    }

    /// Ends the file: its index. Who needs it on the disk synchronises what is given back.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> Result<File, McapError> {
        self.writer.finish()?;
        let mut output = self.writer.into_inner().into_inner();
        output.flush()?;
        Ok(self.file)
    }

    fn put(&mut self, channel: u16, at_us: u64, sequence: u32, data: &[u8]) -> Result<(), McapError> {
        let log_time = self.utc_base_us.saturating_add(at_us).saturating_mul(1_000);
        let header = MessageHeader { channel_id: channel, sequence, log_time, publish_time: log_time };
        self.written += data.len() as u64;
        self.writer.write_to_known_channel(&header, data)
    }

    fn channel(&mut self, topic: &str, schema: &Schema) -> Result<u16, McapError> {
        if let Some(&channel) = self.channels.get(topic) {
            return Ok(channel);
        }
        let id = match self.schemas.get(schema.name) {
            Some(&id) => id,
            None => {
                let id = self.writer.add_schema(schema.name, "jsonschema", schema.text.as_bytes())?;
                self.schemas.insert(schema.name, id);
                id
            }
        };
        let channel = self.writer.add_channel(id, topic, "json", &BTreeMap::new())?;
        self.channels.insert(topic.into(), channel);
        Ok(channel)
    }

    fn put_json(
        &mut self,
        topic: &str,
        schema: &Schema,
        at_us: u64,
        value: &impl Serialize,
    ) -> Result<(), McapError> {
        let channel = self.channel(topic, schema)?;
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        // Numbers and texts: nothing of it can fail.
        let _ = serde_json::to_writer(&mut text, value);
        let put = self.put(channel, at_us, 0, &text);
        self.text = text;
        put
    }

    fn time(&self, at_us: u64) -> Time {
        Time::from_us(self.utc_base_us.saturating_add(at_us))
    }

    fn put_place(&mut self, topic: &str, at_us: u64, place: [i32; 3]) -> Result<(), McapError> {
        let [latitude, longitude] = [place[0], place[1]].map(|degrees_e7| f64::from(degrees_e7) / 1e7);
        let altitude = f64::from(place[2]) / 1e3;
        let fix = schema::LocationFix::new(self.time(at_us), latitude, longitude, altitude);
        self.put_json(topic, &schema::LOCATION_FIX, at_us, &fix)
    }

    fn plot(&mut self, at_us: u64, event: &Event<'_>) -> Result<(), McapError> {
        match event {
            Event::Began(start) => {
                let start = Start::from_json(start).ok();
                self.plotted.own_id = start.map(|start| start.origin.config.coordination.me());
                Ok(())
            }
            Event::Sample(sample) => self.plot_sample(at_us, sample),
            Event::Log(level, text) => {
                let name = self.plotted.state.clone();
                let line = schema::Log::new(self.time(at_us), 2 + level, &name, text);
                self.put_json("/log", &schema::LOG, at_us, &line)
            }
            Event::Datagram(sealed) => self.plot_received(at_us, sealed.bytes),
            Event::Broadcast(class, content) => self.plot_sent(at_us, *class, content),
            Event::Operator(id, command) => self.plot_event(at_us, "operator", &format!("{command} ({id})")),
            Event::Mission(points) | Event::MissionWith(points, _) => {
                self.plot_event(at_us, "mission", &format!("{} waypoints", points.len()))
            }
            Event::Reply(text) => self.plot_event(at_us, "reply", text),
            Event::Accepted(command) => self.plot_event(at_us, "accepted", &command.to_string()),
            Event::GroundStation(what) => self.plot_event(at_us, "ground-station", what),
            Event::Parameters(None) => self.plot_event(at_us, "parameters", "read"),
            Event::Parameters(Some((name, value))) => {
                self.plot_event(at_us, "parameters", &format!("{name} {value}"))
            }
            Event::Region(order) => self.plot_event(at_us, "region", &format!("{order:?}")),
            Event::Coordination(flight) => self.plot_event(at_us, "coordination", flight),
            Event::TakenBefore(by) => self.plot_event(at_us, "taken-before", by),
            Event::Owed(name, pilots, ..) => self.plot_event(at_us, "owed", &format!("{name} {pilots}")),
            Event::AutopilotLink(is_open) => {
                self.plot_event(at_us, "link", if *is_open { "opened" } else { "closed" })
            }
            Event::Lost(count) => self.plot_event(at_us, "lost", &format!("{count} records")),
            Event::Utc(_)
            | Event::KeysHold(..)
            | Event::Wake
            | Event::Autopilot(_)
            | Event::RefusedDatagram(_)
            | Event::Order(_)
            | Event::DirectOrder(_)
            | Event::Guard(_)
            | Event::Before(_)
            | Event::KnownAutopilot(..)
            | Event::KnownSession(..)
            | Event::Flight(_)
            | Event::Probe(_)
            | Event::Lease(_)
            | Event::ToAutopilot(_)
            | Event::PassOn(_)
            | Event::ProbeReceived(..) => Ok(()),
        }
    }

    fn plot_event(&mut self, at_us: u64, event: &str, text: &str) -> Result<(), McapError> {
        self.put_json("/events", &schema::EVENT, at_us, &schema::Event { event, text })
    }

    fn plot_sample(&mut self, at_us: u64, sample: &Plotted<'_>) -> Result<(), McapError> {
        if let Some(place) = sample.position {
            self.put_place("/position", at_us, place)?;
        }
        let [east_m_s, north_m_s, up_m_s] = sample.velocity_cm_s.map(|cm_s| f64::from(cm_s) / 1e2);
        let state = schema::State {
            state: sample.state,
            engaged: sample.engaged,
            mode_number: sample.mode_number,
            armed: sample.armed,
            waypoint_reached: sample.reached,
            height_m: f64::from(sample.height_mm) / 1e3,
            east_m_s,
            north_m_s,
            up_m_s,
            // Two decimals, as the velocity has.
            speed_m_s: ((east_m_s * east_m_s + north_m_s * north_m_s).sqrt() * 1e2).round() / 1e2,
            heading_deg: f64::from(sample.heading_cdeg) / 1e2,
            battery_percent: sample.battery_percent,
        };
        if self.plotted.state != sample.state {
            self.plotted.state = sample.state.into();
        }
        self.put_json("/state", &schema::STATE, at_us, &state)?;
        let Some((nearest, horizontal_mm, vertical_mm)) = sample.nearest else { return Ok(()) };
        let (horizontal_m, vertical_m) = (f64::from(horizontal_mm) / 1e3, f64::from(vertical_mm) / 1e3);
        let separation = schema::Separation {
            nearest: &nearest.to_string(),
            distance_m: ((horizontal_m * horizontal_m + vertical_m * vertical_m).sqrt() * 1e3).round() / 1e3,
            horizontal_m,
            vertical_m,
        };
        self.put_json("/separation", &schema::SEPARATION, at_us, &separation)
    }

    fn plot_received(&mut self, at_us: u64, sealed: &[u8]) -> Result<(), McapError> {
        // The sender is read first: reading all of each datagram costs more than writing it.
        let Some(from) = sender_unverified(sealed) else { return Ok(()) };
        let last_us = self.plotted.received_us.get(&from).copied();
        if last_us.is_some_and(|last_us| at_us < last_us + DATAGRAM_PERIOD_US)
            || last_us.is_none() && self.plotted.received_us.len() >= NEIGHBOURS_MAX
        {
            return Ok(());
        }
        let Ok(datagram) = read_unverified(sealed) else { return Ok(()) };
        self.plotted.received_us.insert(from, at_us);
        if let Some(place) = place_of(&datagram.message) {
            self.put_place(&format!("/neighbours/{from}"), at_us, place)?;
        }
        self.put_datagram("/received", at_us, &datagram)
    }

    fn plot_sent(&mut self, at_us: u64, class: u8, content: &[u8]) -> Result<(), McapError> {
        let last_us = self.plotted.sent_us.get(&class);
        if last_us.is_some_and(|last_us| at_us < last_us + DATAGRAM_PERIOD_US) {
            return Ok(());
        }
        let Ok(datagram) = wingbeat_wire::Draft::of_content(content).and_then(|draft| draft.read()) else {
            return Ok(());
        };
        self.plotted.sent_us.insert(class, at_us);
        self.put_datagram("/sent", at_us, &datagram)
    }

    fn put_datagram(&mut self, topic: &str, at_us: u64, datagram: &Datagram) -> Result<(), McapError> {
        let (kind, message) = plain(serde_json::to_value(&datagram.message).unwrap_or_default());
        let value = schema::Datagram {
            // As text: an id has more digits than a viewer's numbers.
            from: &datagram.from.to_string(),
            counter: datagram.counter,
            flight: datagram.flight,
            kind: &kind,
            message: &message,
        };
        self.put_json(topic, &schema::DATAGRAM, at_us, &value)
    }
}

/// The name of a message, and what it has as an object, however it is written: a schema has one type for each field.
fn plain(message: Value) -> (String, Value) {
    let (kind, content) = match message {
        Value::String(kind) => return (kind, json!({})),
        Value::Object(variant) => variant.into_iter().next().unwrap_or_default(),
        other => (String::new(), other),
    };
    match content {
        Value::Object(fields) => (kind, Value::Object(fields)),
        other => (kind, json!({ "value": other })),
    }
}

/// Where its sender is, 1e-7 degree and millimetre; heights above home where the message has no altitude.
fn place_of(message: &Message) -> Option<[i32; 3]> {
    let point = |at: &wingbeat_wire::Point| Some([at.latitude_e7, at.longitude_e7, at.height_mm]);
    let location = |at: &wingbeat_wire::Location| Some([at.latitude_e7, at.longitude_e7, at.altitude_mm]);
    match message {
        Message::Hello { at }
        | Message::Land { at }
        | Message::Alive { at }
        | Message::Holding { at }
        | Message::Adrift { at }
        | Message::LandHere { at }
        | Message::LandAround { at, .. }
        | Message::Following { at, .. }
        | Message::Leaving { at, .. } => point(at),
        Message::Coordinates(coordinates) => point(&coordinates.at),
        Message::Stands { at } => location(at),
        Message::Beacon(beacon) => beacon.locations.first().and_then(location),
        Message::Probe(probe) => probe.motion.as_ref().and_then(|motion| location(&motion.at)),
        _ => None,
    }
}

/// UTC at agent time zero, where the block states it.
fn utc_base_us(block: &Block) -> Option<u64> {
    let (mut time, mut rest) = (event::Time::default(), block.records.as_slice());
    let _ = time.advance(block.from_us);
    while let Ok((since_us, event, after)) = Event::read(rest) {
        let now_us = time.advance(since_us).as_micros();
        if let Event::Utc(unix_us) = event {
            return Some(unix_us.saturating_sub(now_us));
        }
        rest = after;
    }
    None
}

fn start_of(block: &Block) -> Option<Start> {
    match Event::read(&block.records).ok()?.1 {
        Event::Began(start) => Start::from_json(start).ok(),
        _ => None,
    }
}
