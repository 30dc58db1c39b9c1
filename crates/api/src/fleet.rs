//! The ground service's API: one picture of the fleet, commands for many.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use wingbeat_wire::Command;

use crate::aircraft::{AircraftStatus, GeoPoint, LinkState, LogLine, Refusal};
use crate::alarms::FleetAlarm;
use crate::checklist::Checklist;
use crate::mission::{MissionPart, MissionUpload};

/// Everything the console needs to draw itself. Sent once when a console connects and again when
/// missions or the list of aircraft change; between those, [`FleetUpdate`] carries what moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FleetPicture {
    /// Milliseconds since the ground service started.
    pub time_ms: u64,
    /// Version of the ground service.
    pub version: String,
    /// The name by which this service holds the aircraft's leases.
    pub console: String,
    /// When the service started, by this computer's clock: milliseconds since 1970, UTC.
    pub started_unix_ms: u64,
    /// Whether there is a map of the ground, at [`MAP`](crate::paths::MAP).
    pub has_map: bool,
    /// Whether that map is served tile by tile instead, at [`TILE_JSON`](crate::paths::TILE_JSON).
    pub has_tiles: bool,
    /// Corrections of satellite navigation that this console broadcasts; absent where it has no base station.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrections: Option<BaseStation>,
    /// The radio by whose datagrams aircraft are found; absent where the service does not listen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listening: Option<RadioListening>,
    /// The lab's checklist; absent where the service has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checklist: Option<Checklist>,
    /// Every aircraft, by id. On the event stream without the parameters of the flight controllers, which are at
    /// [`FLEET_AIRCRAFT`](crate::paths::FLEET_AIRCRAFT).
    pub aircraft: Vec<FleetAircraft>,
    /// The missions that aircraft hold, each once.
    pub missions: Vec<FleetMission>,
    /// The last commands, newest last, at most 16.
    pub commands: Vec<FleetCommand>,
    /// The alarms, by their numbers.
    #[serde(default)]
    pub alarms: Vec<FleetAlarm>,
    /// What the operator can do now.
    pub actions: Actions,
    /// The last lines of the aircraft's logs, oldest first, at most 256.
    pub log: Vec<FleetLogLine>,
}

/// What changed since the picture, or the update before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FleetUpdate {
    /// Milliseconds since the ground service started.
    pub time_ms: u64,
    /// Aircraft of the picture of which something has changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aircraft: Vec<AircraftChange>,
    /// Commands that are new, or of which something has changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<FleetCommand>,
    /// Alarms that are new, or of which something has changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<FleetAlarm>,
    /// The base station, once a second; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrections: Option<BaseStation>,
    /// The radio by whose datagrams aircraft are found, once a second; absent where the service does not listen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listening: Option<RadioListening>,
    /// What of the checklist has changed, as in [`AircraftChange`]; absent where it is as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub checklist: Option<serde_json::Value>,
    /// What the operator can do now; absent where it is as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Actions>,
}

/// The base station of a console, whose corrections (RTCM 3) it broadcasts once to all aircraft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BaseStation {
    /// Where they come from, for example `tcp:10.0.0.2:2101`.
    pub source: String,
    /// Why nothing can come from there, as text; absent while the port is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Milliseconds since the last frame was broadcast; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// Bytes a second that are broadcast, over 5 s.
    pub bytes_s: u32,
    /// Frames that were broadcast.
    pub frames: u64,
    /// Frames that were not broadcast, and bytes of no frame (`garbage_bytes`), by reason.
    pub refused: Vec<Refusal>,
}

/// The radio by whose datagrams the ground service finds aircraft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RadioListening {
    /// Interface and port, for example `wlan0:14600`.
    pub radio: String,
    /// Why nothing is received, as text; absent while the radio is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Datagrams that were received, those that were refused by their senders' signatures included. Those of other fleets are in
    /// `refused` alone.
    pub datagrams: u64,
    /// Aircraft of which a datagram was received in the last 10 s.
    pub received: u32,
    /// Those of them that are not followed, because they do not answer where their datagrams come from; at most 16.
    pub unanswered: Vec<UnansweredSender>,
    /// Datagrams that were refused, by reason.
    pub refused: Vec<Refusal>,
}

/// An aircraft that broadcasts, and that is not followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnansweredSender {
    /// Its id, 16 hexadecimal digits.
    pub id: String,
    /// The address that its datagrams come from.
    pub address: String,
    /// Why it is not followed.
    pub problem: String,
}

/// What has changed of an aircraft.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AircraftChange {
    /// Its address, as in the picture.
    pub address: String,
    /// The members of [`FleetAircraft`] that have changed. An object changes the members that it names; on a list of the
    /// same length it changes the elements by their index from 0; every other value takes the place of the old one.
    #[schema(value_type = Object)]
    pub change: serde_json::Value,
}

/// A line of an aircraft's log, and when it arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FleetLogLine {
    /// Milliseconds since the ground service started.
    pub at_ms: u64,
    /// The line.
    #[serde(flatten)]
    pub line: LogLine,
}

/// One aircraft as the ground service receives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FleetAircraft {
    /// The address of its API, for example `http://10.0.0.7:8080`.
    pub address: String,
    /// Health of the link between ground and companion (not of the flight controller's).
    pub link: LinkState,
    /// Milliseconds since its last message; absent before the first.
    pub age_ms: Option<u64>,
    /// Its last status; absent before the first.
    pub status: Option<AircraftStatus>,
    /// Why nothing is received from it or it cannot be commanded, as text; absent if nothing is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A mission on the map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FleetMission {
    /// The hash in [`MissionSummary`](crate::MissionSummary).
    pub hash: String,
    /// Name, usually of the file.
    pub name: String,
    /// Waypoints in order.
    pub waypoints: Vec<GeoPoint>,
    /// Ids of the aircraft that hold it.
    pub holders: Vec<String>,
}

/// Which buttons work, and why not where they do not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Actions {
    /// *Setup* can be pressed.
    pub setup: bool,
    /// Why not, as text; empty if it can.
    pub setup_blocked: String,
    /// *Start* can be pressed.
    pub start: bool,
    /// Why not, as text; empty if it can.
    pub start_blocked: String,
}

/// POST body of a command for many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetCommandRequest {
    /// Chosen by the sender, 1 to 64 visible ASCII characters: the same id is the same command.
    pub id: String,
    /// The command.
    pub command: Command,
    /// Ids of the aircraft; empty = all. An exclusion leaves it empty: it goes to all that fly in the swarm.
    #[serde(default)]
    pub vehicles: Vec<String>,
}

/// POST body: this console takes over the leases that other consoles hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetTakeOver {
    /// Ids of the aircraft; none for all.
    #[serde(default)]
    pub vehicles: Vec<String>,
}

/// What each aircraft answered to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FleetLeases {
    /// Each aircraft that was asked.
    pub vehicles: Vec<VehicleLease>,
}

/// What one aircraft answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VehicleLease {
    /// Its id, 16 hexadecimal digits.
    pub id: String,
    /// Why this console does not hold its lease, as text; absent where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Answer to a command for many: it is sent until answered or expired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FleetCommandReply {
    /// The command's id.
    pub id: String,
    /// Ids of the aircraft that it is sent to.
    pub vehicles: Vec<String>,
}

/// A command for many and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FleetCommand {
    /// The command's id.
    pub id: String,
    /// The command.
    pub command: Command,
    /// Milliseconds since the ground service started when it was asked.
    pub time_ms: u64,
    /// Why, in the operator's words; empty where none were given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The user that gave it; empty where the service has no users.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// One line per aircraft.
    pub results: Vec<FleetCommandResult>,
}

/// PUT body: why a command was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetCommandNote {
    /// The command's id.
    pub id: String,
    /// At most 200 characters, none of them a control character.
    pub note: String,
}

/// A command on its way to one aircraft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FleetCommandResult {
    /// The aircraft, 16 hexadecimal digits.
    pub vehicle: String,
    /// How far it has come.
    pub outcome: VehicleOutcome,
    /// One line for the operator.
    pub detail: String,
}

/// How far a command has come at one aircraft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VehicleOutcome {
    /// Not answered yet; being repeated.
    Sending,
    /// Accepted, effect not seen yet.
    Accepted,
    /// Its effect was seen.
    EffectSeen,
    /// The aircraft refused it, or it failed there.
    Failed,
    /// Neither an effect nor a final answer was seen in time; the detail says which, and the next step.
    Expired,
}

/// PUT body: a mission for one aircraft.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetMissionUpload {
    /// The aircraft, 16 hexadecimal digits.
    pub vehicle: String,
    /// The mission.
    pub mission: MissionUpload,
}

/// How a mission file is read. What is absent is as the fleet's aircraft are configured, or as `docs/missions.md` says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MissionFileOptions {
    /// Leave camera, gimbal, servo and relay commands out, with a note.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub leave_out_payload: bool,
    /// Numbers of MAVLink commands that are left out, with a note.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leave_out_commands: Vec<u32>,
    /// Parts that an aircraft may leave out where its protocol does not fly them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leave_out: Vec<MissionPart>,
    /// Where the aircraft will start: altitudes above sea level are heights above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<GeoPoint>,
    /// Height above home to which points of KML paths are raised, and of paths without heights, metres.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kml_height_least_m: Option<f64>,
    /// No item lies higher above home, metres; that of the fence of the aircraft that has the highest where it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height_most_m: Option<f64>,
    /// No item lies farther from home, metres.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance_most_m: Option<f64>,
    /// No speed is greater, metres per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_most_m_s: Option<f64>,
}

/// POST body: a mission file, to be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MissionFile {
    /// The file's name; its extension (`.waypoints`, `.txt`, `.plan`, `.kml`, `.kmz`) gives the format.
    pub name: String,
    /// Its content; empty where that is in `archive`.
    #[serde(default)]
    pub text: String,
    /// Its content as base64 (RFC 4648): a KMZ archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// The protocol that will fly it, as in the aircraft's status: what it does not fly is in the notes then. Where it is
    /// absent, it is that of the fleet if all aircraft fly the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// How it is read.
    #[serde(default)]
    pub options: MissionFileOptions,
}

/// The missions of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MissionFileContent {
    /// One from a plan or a list of waypoints; one per path from KML.
    pub missions: Vec<ReadMission>,
}

/// A mission as it was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReadMission {
    /// As an aircraft takes it.
    pub mission: MissionUpload,
    /// What of the file is not flown, or not as it is stated; one line each.
    pub notes: Vec<String>,
    /// Parts for which an aircraft of the protocol refuses it, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
}
