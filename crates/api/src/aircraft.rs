//! The aircraft's own API, served by `wingbeatd`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wingbeat_wire::{Command, Phase, StateId};

use crate::flight_setup::FlightSetupNow;
use crate::measurements::Measurements;

/// A point on the map.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GeoPoint {
    /// Latitude, degrees, north positive.
    pub latitude_deg: f64,
    /// Longitude, degrees, east positive.
    pub longitude_deg: f64,
    /// Altitude above mean sea level, metres.
    pub altitude_m: f64,
}

/// Who an aircraft is and what runs on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Identity {
    /// 16 hexadecimal digits.
    pub id: String,
    /// The display name.
    pub name: String,
    /// Version of `wingbeatd`.
    pub version: String,
    /// Version of the API: 1.
    pub api_version: u32,
    /// The coordination protocol that it is configured for: `mission`, `sweep`, `mbcap`, `muscop` or `follow_me`.
    pub protocol: String,
}

/// Where the waypoints of an aircraft may lie, as it is configured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FenceBounds {
    /// Least height above home, metres.
    pub height_least_m: f64,
    /// Greatest height above home, metres.
    pub height_most_m: f64,
    /// Greatest distance from home, metres.
    pub distance_most_m: f64,
}

/// Everything that the console shows of one aircraft.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AircraftStatus {
    /// 16 hexadecimal digits.
    pub id: String,
    /// The display name.
    pub name: String,
    /// Milliseconds since the daemon's agent started.
    pub time_ms: u64,
    /// The coordination protocol: `mission` (a mission of its own), `sweep` (its strip of an area, in lanes),
    /// `mbcap-e` or `mbcap` (a mission of its own, kept apart from others), `muscop` (one mission as a
    /// formation) or `follow_me` (a formation behind an aircraft that a pilot flies).
    pub protocol: String,
    /// The protocol's state, by the name that its paper gives it.
    pub state: StateId,
    /// How far its flight has come, whatever the protocol calls that.
    pub phase: Phase,
    /// One line for the operator: what it is doing or waiting for.
    pub detail: String,
    /// False after a pilot's takeover or *Recover control*: the agent commands nothing until engaged again.
    pub engaged: bool,
    /// The flight controller's own failsafe has the aircraft, and no pilot: *Hold*, *Return* and *Land* take it back.
    pub failsafe: bool,
    /// The link to the flight controller and what answers there.
    pub flight_controller: FlightController,
    /// Where it is and how it moves; absent before the first position.
    pub navigation: Option<Navigation>,
    /// What the autopilot measures or estimates.
    #[serde(flatten)]
    pub measurements: Measurements,
    /// The mission that it holds.
    pub mission: Option<MissionSummary>,
    /// What its flight is set up with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flight_setup: Option<FlightSetupNow>,
    /// Where waypoints may lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<FenceBounds>,
    /// Its place in the swarm; absent where it flies a mission of its own, for itself.
    pub swarm: Option<Swarm>,
    /// What it does to avoid others; absent where its protocol does not, and before the flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avoidance: Option<Avoidance>,
    /// How near other aircraft are and were; absent before the first beacon of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separation: Option<Separation>,
    /// Counters of the radio.
    pub radio: Radio,
    /// How this API is protected, and what it refused.
    #[serde(default)]
    pub http: HttpApi,
    /// Which console holds the lease; absent while none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// The gateway for ground stations; absent where none is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Gateway>,
    /// The flight log on the aircraft.
    #[serde(default)]
    pub log: FlightLog,
    /// Preflight checks, in a fixed order.
    pub checks: Vec<Check>,
    /// What *Set parameters* would set in the flight controller; empty where nothing of it is needed.
    pub cures: Vec<Cure>,
    /// Whether the aircraft holds on a mission of its own that *Resume* would go on with.
    pub can_resume: bool,
    /// The operator's last commands and what became of them, newest last, at most 8.
    pub commands: Vec<CommandProgress>,
}

/// The flight log on the aircraft.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FlightLog {
    /// Where it is; absent where nothing is logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Records that were written.
    pub written: u64,
    /// Records that were lost: the disk was too slow, or had no room.
    pub lost: u64,
    /// Why nothing is logged now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What an aircraft does to avoid others, from its last beacon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Avoidance {
    /// Normal, StandStill, MovingAside, GoOnPlease, Overtaking or EmergencyLand.
    pub state: StateId,
    /// Id of the aircraft that it is in conflict with, 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avoiding: Option<String>,
    /// Present and predicted positions, or what its beacon carries instead in its state (its path, the position of the risk).
    pub predicted: Vec<GeoPoint>,
    /// Where the conflict lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<GeoPoint>,
    /// Where it goes to give way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aside: Option<GeoPoint>,
    /// Whether it receives other aircraft; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receives: Option<bool>,
    /// Whether other aircraft receive it; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_received: Option<bool>,
}

/// How near others are and were, as an aircraft reckons from their beacons. It watches, and commands nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Separation {
    /// The nearest aircraft now; absent while no beacon of another is received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<Nearby>,
    /// The closest approach within the next 20 s, if all continue straight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closest_approach: Option<ClosestApproach>,
    /// The smallest distance to another aircraft on this flight, or on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flight_minimum: Option<Nearby>,
    /// Whether an encounter that alarmed is not over.
    pub alarmed: bool,
    /// Encounters of the flight that alarmed.
    pub alarms: u32,
    /// Encounters of the flight that were nearer than a collision.
    pub collisions: u32,
    /// Encounters that were collisions by the published rule: sampled every 0.5 s, with a limit over ground and
    /// one in height.
    pub rule_collisions: u32,
}

/// Another aircraft and how far away it is or was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Nearby {
    /// 16 hexadecimal digits.
    pub id: String,
    /// Distance, metres.
    pub distance_m: f64,
    /// Over ground, metres.
    pub horizontal_m: f64,
    /// In height, metres.
    pub vertical_m: f64,
}

/// Another aircraft and when it will be nearest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClosestApproach {
    /// 16 hexadecimal digits.
    pub id: String,
    /// From now, seconds.
    pub time_s: f64,
    /// How near it will be then, metres.
    pub distance_m: f64,
}

/// Health of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// Nothing was received since the start.
    NeverSeen,
    /// Received within the timeout.
    Up,
    /// Received before, not within the timeout.
    Lost,
}

/// Why nothing is received from a flight controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkFault {
    /// What kind of failure.
    pub kind: LinkFaultKind,
    /// One line for the operator.
    pub detail: String,
}

/// Kinds of [`LinkFault`]: each is cured elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkFaultKind {
    /// The port cannot be opened, or the far end closed it.
    PortClosed,
    /// The port is open and no byte comes.
    Silent,
    /// Bytes come and the autopilot's MAVLink is not among them.
    NoMavlink,
}

/// The flight controller as the companion sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlightController {
    /// Health of the serial, TCP or UDP link.
    pub link: LinkState,
    /// Why nothing is received; absent while the link is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_fault: Option<LinkFault>,
    /// Milliseconds since its last heartbeat; absent before the first.
    pub heartbeat_age_ms: Option<u64>,
    /// For example `ArduCopter 3.5.7`; absent until known.
    pub firmware: Option<String>,
    /// ArduCopter's name of the flight mode; absent until known.
    pub mode: Option<String>,
    /// Whether motors are armed.
    pub armed: bool,
    /// What was dropped of its bytes, by reason.
    pub refused: Vec<Refusal>,
    /// What its heartbeat and version messages report; absent before its first heartbeat.
    #[serde(default)]
    pub autopilot: Option<Autopilot>,
    /// The parameters that safety and preflight depend on, as far as they are known.
    #[serde(default)]
    pub parameters: Vec<Parameter>,
}

/// What an autopilot reports of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Autopilot {
    /// Autopilot and vehicle, for example `ArduPilot on a quadrotor`.
    pub vehicle: String,
    /// MAV_PROTOCOL_CAPABILITY bits, hexadecimal; absent until known.
    pub capabilities: Option<String>,
    /// Hardware id, 16 hexadecimal digits; absent until known.
    pub hardware_id: Option<String>,
    /// Board version as the firmware numbers it; absent until known.
    pub board_version: Option<u32>,
    /// Number of its reboots since the agent started.
    pub reboots: u32,
    /// Heartbeats of other autopilots on the same line: they are ignored.
    pub other_autopilots: u32,
}

/// A parameter of the autopilot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Parameter {
    /// The name of the mode on this autopilot.
    pub name: String,
    /// Its value; absent where this autopilot does not have it or gave no number of the expected type.
    pub value: Option<f64>,
    /// Why there is no value; empty otherwise.
    pub detail: String,
}

/// Position and motion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Navigation {
    /// Estimated position.
    pub position: GeoPoint,
    /// Height above home, metres.
    pub height_m: f64,
    /// Speed over ground, metres per second.
    pub ground_speed_m_s: f64,
    /// Climb rate, metres per second, up positive.
    pub climb_m_s: f64,
    /// Heading, degrees clockwise from north, 0..360.
    pub heading_deg: f64,
    /// Where it is flying to, if the agent asked for a place.
    pub target: Option<GeoPoint>,
}

/// The mission that an aircraft holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MissionSummary {
    /// Name, usually of the file.
    pub name: String,
    /// The first 8 bytes of the SHA-256 over its waypoints, 16 hexadecimal digits: equal hashes, equal
    /// waypoints.
    pub hash: String,
    /// In a swarm every aircraft flies waypoints of its own, derived from one plan: the plan's hash, 16
    /// hexadecimal digits. Equal hashes, equal plans. Absent before setup.
    pub plan_hash: Option<String>,
    /// Number of waypoints.
    pub waypoints: u16,
    /// The waypoint that was reached last, from 0; absent before the first.
    pub reached: Option<u16>,
    /// What the operator's mission states and the aircraft does not fly, one line each with the reason. Empty for a
    /// plan that came by radio.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Role and slot in the swarm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Swarm {
    /// Whether this aircraft leads the flight.
    pub leader: bool,
    /// Id of the aircraft that leads, 16 hexadecimal digits; absent until known.
    pub leader_id: Option<String>,
    /// How many aircraft fly (for the master before setup: how many it has received from, itself included).
    pub size: u16,
    /// Name of the formation, without its parameter: one that `wingbeat formation` lists.
    pub formation: String,
    /// This aircraft's slot; absent until assigned.
    pub slot: Option<u16>,
    /// The number of the flight, for which an exclusion is signed; 0 before the plan is adopted.
    #[serde(default)]
    pub flight: u32,
    /// Members that this aircraft does not wait for, by slot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<Absent>,
    /// The formation with its places, as the aircraft that plans it sees it; absent on the others, and when the
    /// flight is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<SwarmPlan>,
}

/// A formation and its places: before setup as it would be planned now, afterwards as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SwarmPlan {
    /// Distance between slots in flight, metres.
    pub distance_m: f64,
    /// Where it points, degrees clockwise from north, 0..360; absent before that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heading_deg: Option<f64>,
    /// Whether the swarm has agreed on it; otherwise it is what *Setup* would plan now.
    pub planned: bool,
    /// Why *Setup* would be refused, as text: the aircraft and the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The places, by slot from 0, around the waypoint that the formation is at or flies to, or around an
    /// aircraft flown by a pilot. Empty before datagrams of all aircraft were received and a mission is known.
    pub slots: Vec<SwarmSlot>,
}

/// A place in a formation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SwarmSlot {
    /// Position of the slot.
    pub place: GeoPoint,
    /// Who flies there, 16 hexadecimal digits.
    pub vehicle: String,
}

/// A member of a swarm that another does not wait for, and why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Absent {
    /// 16 hexadecimal digits.
    pub id: String,
    /// Nothing was received from it for the time to live; ends when a datagram is received again.
    pub silent: bool,
    /// It broadcast that it leaves: `holding`, `returning`, `landing` or `down`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaves: Option<String>,
    /// The operator excluded it, for the rest of the flight: the id of the aircraft that passed it on over the
    /// radio, or this aircraft's own id where the operator excluded it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_by: Option<String>,
}

/// Which keys of its fleet an aircraft holds, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Keys {
    /// The epoch; aircraft of different epochs do not receive each other.
    pub epoch: u8,
    /// The serial of the bundle, which counts over all epochs.
    pub serial: u64,
    /// When the bundle was made, UTC (RFC 3339).
    pub issued: String,
    /// From when on no setup begins with it, UTC (RFC 3339).
    pub expires: String,
    /// Whether it holds now.
    pub validity: KeysValidity,
}

/// Whether keys hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeysValidity {
    /// As far as the aircraft's clock shows.
    Valid,
    /// No setup begins with them.
    Expired,
    /// The aircraft's clock shows a time before they were made: whether they have expired is not known.
    ClockNotSet,
}

/// How the aircraft's HTTP API is protected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HttpApi {
    /// Whether it is served by TLS 1.3 alone, to senders of the roster. Without, any program that reaches it commands.
    pub secured: bool,
    /// Connections and requests refused, by reason.
    pub refused: Vec<Refusal>,
}

/// Counters of the radio.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Radio {
    /// Whether datagrams are signed and others' signatures are asked for. Without, any transmitter in reach flies the
    /// aircraft.
    pub secured: bool,
    /// The keys that it holds; absent without any, and on a bench.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Keys>,
    /// Why it can neither send nor receive, as one line; absent while it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<String>,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams accepted.
    pub received: u64,
    /// Datagrams refused, by reason.
    pub refused: Vec<Refusal>,
}

/// Which console has the aircraft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lease {
    /// The console's name.
    pub console: String,
    /// The console's id, where it proved it by its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console_id: Option<String>,
    /// Milliseconds until the lease ends, unless it is renewed.
    pub left_ms: u64,
}

/// Answer to a lease: the console holds it now.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseGrant {
    /// The console's name.
    pub console: String,
    /// Milliseconds until the lease ends, unless it is renewed.
    pub left_ms: u64,
    /// What renews it, 32 hexadecimal digits: told once, to the console that takes the lease. It stands nowhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl std::fmt::Debug for LeaseGrant {
    /// Without the token, which no log must have.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeaseGrant")
            .field("console", &self.console)
            .field("left_ms", &self.left_ms)
            .finish_non_exhaustive()
    }
}

/// POST body of a lease: a console takes it, or renews its own.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseRequest {
    /// The console's name, 1 to 64 characters, its own on the network.
    pub console: String,
    /// For how long, milliseconds, 1000 to 60000.
    pub ttl_ms: u64,
    /// The token of the grant that is renewed. Without it, or with another, a lease is taken that no console holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Takes the lease also from another console that holds it: an operator asks for that, never a program by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub take_over: bool,
}

impl std::fmt::Debug for LeaseRequest {
    /// Without the token, which no log must have.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeaseRequest")
            .field("console", &self.console)
            .field("ttl_ms", &self.ttl_ms)
            .finish_non_exhaustive()
    }
}

/// The gateway for ground stations: its clients, and the frames that it refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Gateway {
    /// Who is connected, for example `tcp 127.0.0.1:50312`.
    pub clients: Vec<String>,
    /// What was not passed on, by reason.
    pub refused: Vec<Refusal>,
}

/// A reason and how often it occurred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Refusal {
    /// A stable word.
    pub reason: String,
    /// Number of times since the daemon started.
    pub count: u64,
}

/// One preflight check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// Name of the check.
    pub name: String,
    /// Whether it passed.
    pub passed: bool,
    /// Whether *Setup* and *Start* are refused where it has not passed; otherwise it is a warning.
    pub is_required: bool,
    /// The finding, for the operator.
    pub detail: String,
}

/// A parameter of the flight controller that stands against a flight and has one cure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Cure {
    /// The parameter, by its name in this flight controller.
    pub parameter: String,
    /// The pilot's value, which comes back after the flight or at *Engage*.
    pub found: f64,
    /// The value for the flight.
    pub expected: f64,
}

/// POST body of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandRequest {
    /// Chosen by the sender, 1 to 64 visible ASCII characters: the same id is the same command, however often it arrives.
    pub id: String,
    /// The command.
    pub command: Command,
}

/// Answer to a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommandReply {
    /// The command's id.
    pub id: String,
    /// What was decided. 202 accepted, 200 already known, 409 refused.
    pub outcome: CommandOutcome,
    /// The protocol's state when it was decided.
    pub state: StateId,
    /// Why it was refused, as text; empty otherwise.
    pub reason: String,
}

/// What was decided about a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandOutcome {
    /// It is being carried out; watch `commands` in the status for its effect.
    Accepted,
    /// The same id came before.
    AlreadyKnown,
    /// The state forbids it.
    Refused,
}

/// How far a command has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandStage {
    /// Accepted, effect not seen yet.
    Accepted,
    /// Its effect was read back from telemetry.
    EffectSeen,
    /// It failed or was overtaken by another.
    Failed,
}

/// An operator's command and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommandProgress {
    /// The command's id.
    pub id: String,
    /// The command.
    pub command: Command,
    /// How far it has come.
    pub stage: CommandStage,
    /// One line for the operator.
    pub detail: String,
}

/// How bad a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// For the record.
    Info,
    /// Needs attention.
    Warning,
    /// Something that was wanted does not happen.
    Error,
}

/// One line of an aircraft's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// The aircraft, 16 hexadecimal digits.
    pub id: String,
    /// Milliseconds since its agent started.
    pub time_ms: u64,
    /// Severity.
    pub severity: Severity,
    /// The text of the line.
    pub text: String,
}
