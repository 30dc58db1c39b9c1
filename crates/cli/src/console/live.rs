//! The fleet live over Foxglove's WebSocket, by Foxglove's SDK. It asks the ground service as any console does, so that a session's role
//! and the service's certificate hold for it too, and nothing of it runs in the service.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use foxglove::{ChannelBuilder, Context, FoxgloveError, PartialMetadata, RawChannel};
use serde::Serialize;
use serde_json::json;
use wingbeat_api::{
    AircraftStatus, FleetAircraft, FleetLogLine, FleetPicture, LinkState, Navigation, Severity,
};
use wingbeat_geo::approach::horizontal_and_vertical_m;
use wingbeat_geo::{DVec3, Position, Scale};
use wingbeat_ground::remote::Remote;
use wingbeat_record::schema::{self, Schema, Time};

use super::orders::read;
use super::{Code, show};

/// How an aircraft is, as the ground service knows it. What is not known is absent.
const AIRCRAFT: Schema = Schema {
    name: "wingbeat.Aircraft",
    text: r#"{"title":"wingbeat.Aircraft","type":"object","properties":{"state":{"type":"string"},"detail":{"type":"string"},"engaged":{"type":"boolean"},"failsafe":{"type":"boolean"},"armed":{"type":"boolean"},"mode":{"type":"string"},"link":{"type":"string"},"waypoint_reached":{"type":"integer"},"height_m":{"type":"number"},"speed_m_s":{"type":"number"},"up_m_s":{"type":"number"},"heading_deg":{"type":"number"},"battery_percent":{"type":"integer"},"battery_v":{"type":"number"}}}"#,
};

/// The message of [`AIRCRAFT`].
#[derive(Serialize)]
struct Aircraft<'a> {
    state: String,
    detail: &'a str,
    engaged: bool,
    failsafe: bool,
    armed: bool,
    link: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waypoint_reached: Option<u16>,
    #[serde(flatten)]
    motion: Option<Motion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    battery_percent: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    battery_v: Option<f64>,
}

#[derive(Serialize)]
struct Motion {
    height_m: f64,
    speed_m_s: f64,
    up_m_s: f64,
    heading_deg: f64,
}

/// Serves until the stream of the service ends.
pub(crate) async fn run(remote: &Remote, json: bool, listen: SocketAddr) -> Result<Code> {
    if !listen.ip().is_loopback() {
        bail!(
            "--listen: found {listen}, expected an address of this computer alone, such as 127.0.0.1:8765: Foxglove's WebSocket knows no \
             users (elsewhere: ssh -L 8765:127.0.0.1:8765)"
        );
    }
    let mut events = remote.events().await?;
    let context = Context::new();
    let server = context.websocket_server().name("Wingbeat").bind(listen.ip().to_string(), listen.port());
    let server = server.start().await.map_err(|error| match error {
        FoxgloveError::Bind(why) => anyhow::anyhow!("--listen: {listen}: found {why}, expected a free port"),
        other => anyhow::anyhow!("--listen: {listen}: {other}"),
    })?;
    let address = format!("ws://{}", SocketAddr::new(listen.ip(), server.port()));
    show::print(&if json {
        format!("{}\n", json!({ "listening": address }))
    } else {
        format!("Foxglove: Open connection, Foxglove WebSocket, {address}\n")
    })?;
    let mut live = Live {
        context,
        channels: BTreeMap::new(),
        names: BTreeMap::new(),
        shown_ms: BTreeMap::new(),
        started_unix_ms: 0,
    };
    loop {
        let (event, data) = events.next().await?;
        if event == "log" {
            let line: FleetLogLine =
                serde_json::from_value(data).context("found a log line of another kind")?;
            live.log(&line)?;
        } else {
            let picture: FleetPicture = read(events.apply(&event, &data))?;
            live.picture(&picture)?;
        }
    }
}

struct Live {
    context: Arc<Context>,
    channels: BTreeMap<String, Arc<RawChannel>>,
    /// The first part of an aircraft's topics, by its id.
    names: BTreeMap<String, String>,
    /// Milliseconds of the service at which what was shown of it last was received.
    shown_ms: BTreeMap<String, u64>,
    started_unix_ms: u64,
}

impl Live {
    fn picture(&mut self, picture: &FleetPicture) -> Result<()> {
        self.started_unix_ms = picture.started_unix_ms;
        self.forget_all_but(picture);
        for aircraft in &picture.aircraft {
            let (Some(status), Some(age_ms)) = (&aircraft.status, aircraft.age_ms) else { continue };
            let link = match aircraft.link {
                LinkState::NeverSeen => "never seen",
                LinkState::Up => "up",
                LinkState::Lost => "lost",
            };
            let name = self.name(&status.id, &status.name);
            let received_ms = picture.time_ms.saturating_sub(age_ms);
            let is_new = self.shown_ms.insert(status.id.clone(), received_ms) != Some(received_ms);
            // Of a lost one the state goes on, and the position that was its last is not shown as if it were there now.
            let at_ms = if aircraft.link == LinkState::Up { received_ms } else { picture.time_ms };
            self.put(&format!("/{name}/aircraft"), &AIRCRAFT, at_ms, &shown(status, link))?;
            if !is_new || aircraft.link != LinkState::Up {
                continue;
            }
            if let Some(Navigation { position, .. }) = &status.navigation {
                let (latitude, longitude) = (position.latitude_deg, position.longitude_deg);
                let fix =
                    schema::LocationFix::new(self.time(at_ms), latitude, longitude, position.altitude_m);
                self.put(&format!("/{name}/position"), &schema::LOCATION_FIX, at_ms, &fix)?;
            }
            if let Some((nearest, offset_m)) = nearest(picture, &status.id) {
                let nearest = self.name(&nearest.id, &nearest.name);
                let (horizontal_m, vertical_m) = horizontal_and_vertical_m(offset_m);
                let distance_m = offset_m.length();
                let separation =
                    schema::Separation { nearest: &nearest, distance_m, horizontal_m, vertical_m };
                self.put(&format!("/{name}/separation"), &schema::SEPARATION, at_ms, &separation)?;
            }
        }
        Ok(())
    }

    /// An aircraft that the service no longer has, or that has another id now, leaves no topics behind.
    fn forget_all_but(&mut self, picture: &FleetPicture) {
        let is_known = |id: &str| {
            picture
                .aircraft
                .iter()
                .any(|aircraft| aircraft.status.as_ref().is_some_and(|status| status.id == id))
        };
        let gone: Vec<String> = self.names.keys().filter(|id| !is_known(id)).cloned().collect();
        for id in gone {
            self.shown_ms.remove(&id);
            let Some(name) = self.names.remove(&id) else { continue };
            for topic in ["aircraft", "position", "separation"] {
                if let Some(channel) = self.channels.remove(&format!("/{name}/{topic}")) {
                    channel.close();
                }
            }
        }
    }

    fn log(&mut self, line: &FleetLogLine) -> Result<()> {
        let level = match line.line.severity {
            Severity::Info => 2,
            Severity::Warning => 3,
            Severity::Error => 4,
        };
        let name = self.names.get(&line.line.id).unwrap_or(&line.line.id).clone();
        let message = schema::Log::new(self.time(line.at_ms), level, &name, &line.line.text);
        self.put("/log", &schema::LOG, line.at_ms, &message)
    }

    /// What an aircraft is called in topics: its name as it was first, its id besides where another has that name.
    fn name(&mut self, id: &str, name: &str) -> String {
        if let Some(known) = self.names.get(id) {
            return known.clone();
        }
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        let mut topic: String = name.chars().map(plain).collect();
        if topic.is_empty() || topic == "log" || self.names.values().any(|other| *other == topic) {
            topic = format!("{topic}-{id}");
        }
        self.names.insert(id.to_owned(), topic.clone());
        topic
    }

    fn time_us(&self, at_ms: u64) -> u64 {
        self.started_unix_ms.saturating_add(at_ms).saturating_mul(1_000)
    }

    fn time(&self, at_ms: u64) -> Time {
        Time::from_us(self.time_us(at_ms))
    }

    fn put(&mut self, topic: &str, schema: &Schema, at_ms: u64, message: &impl Serialize) -> Result<()> {
        if !self.channels.contains_key(topic) {
            let schema = foxglove::Schema::new(schema.name, "jsonschema", schema.text.as_bytes());
            let builder = ChannelBuilder::new(topic).context(&self.context);
            let channel = builder.message_encoding("json").schema(schema).build_raw()?;
            self.channels.insert(topic.to_owned(), channel);
        }
        if let Some(channel) = self.channels.get(topic) {
            let log_time = Some(self.time_us(at_ms).saturating_mul(1_000));
            channel.log_with_meta(&serde_json::to_vec(message)?, PartialMetadata { log_time });
        }
        Ok(())
    }
}

/// The nearest other aircraft that is not lost, by the positions of both that the service has, and how far away it is.
fn nearest<'a>(picture: &'a FleetPicture, id: &str) -> Option<(&'a AircraftStatus, DVec3)> {
    let placed = |aircraft: &'a FleetAircraft| {
        let status = aircraft.status.as_ref().filter(|_| aircraft.link == LinkState::Up)?;
        let at = status.navigation.as_ref()?.position;
        let at = Position::from_degrees(at.latitude_deg, at.longitude_deg, at.altitude_m).ok()?;
        Some((status, at))
    };
    let (_, own) = picture.aircraft.iter().filter_map(placed).find(|(status, _)| status.id == id)?;
    let scale = Scale::at(own);
    let others = picture.aircraft.iter().filter_map(placed).filter(|(status, _)| status.id != id);
    others
        .map(|(status, at)| (status, scale.offset_m(own, at)))
        .min_by(|(_, one), (_, other)| one.length_squared().total_cmp(&other.length_squared()))
}

fn shown<'a>(status: &'a AircraftStatus, link: &'a str) -> Aircraft<'a> {
    let battery = status.measurements.battery.as_ref();
    Aircraft {
        state: format!("{:?}", status.state),
        detail: &status.detail,
        engaged: status.engaged,
        failsafe: status.failsafe,
        armed: status.flight_controller.armed,
        link,
        mode: status.flight_controller.mode.as_deref(),
        waypoint_reached: status.mission.as_ref().and_then(|mission| mission.reached),
        motion: status.navigation.as_ref().map(|navigation| Motion {
            height_m: navigation.height_m,
            speed_m_s: navigation.ground_speed_m_s,
            up_m_s: navigation.climb_m_s,
            heading_deg: navigation.heading_deg,
        }),
        battery_percent: battery.and_then(|battery| battery.remaining_percent),
        battery_v: battery.map(|battery| battery.voltage_v),
    }
}
