//! What an agent reports of itself: plain data for the API, the bench and the log.

use heapless::Vec;
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::identity::{Firmware, Vehicle};
use wingbeat_autopilot::parameter::Watch;
use wingbeat_autopilot::telemetry::{Measurements, OtherAutopilots, Version};
use wingbeat_geo::{DVec3, Instant, Position};
use wingbeat_protocol::{Absentees, AvoidanceView, Command, FormationView, Phase, StateId, SwarmView, Text};
use wingbeat_wire::{CommandId, Point, VehicleId};

use crate::clock::ClockStatus;
use crate::command::Stage;
use crate::corrections::CorrectionsStatus;
use crate::energy::EnergyStatus;
use crate::loan::{CURES_MAX, Cure};
use crate::remote_id::RemoteIdStatus;
use crate::separation;

/// Health of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Nothing was ever received.
    NeverSeen,
    /// Received lately.
    Up,
    /// Received once, silent now.
    Lost,
}

/// The flight controller as the agent sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlightControllerStatus {
    /// Health of the link.
    pub link: LinkState,
    /// When its last heartbeat came.
    pub heartbeat_at: Option<Instant>,
    /// Which autopilot on which vehicle; absent before the first heartbeat.
    pub vehicle: Option<Vehicle>,
    /// Whether it is ArduPilot on a multicopter; absent before the first heartbeat.
    pub is_copter: Option<bool>,
    /// Firmware, capabilities and board, once known.
    pub firmware: Option<Firmware>,
    /// Number of its reboots.
    pub reboots: u32,
    /// Other autopilots on its line.
    pub other_autopilots: OtherAutopilots,
    /// Firmware, once known.
    pub version: Option<Version>,
    /// Number of its mode.
    pub mode_number: Option<u32>,
    /// Whether motors are armed.
    pub armed: bool,
    /// Bytes and frames that were dropped, by reason.
    pub refused: wingbeat_autopilot::codec::Refused,
}

impl FlightControllerStatus {
    /// The mode, if it is one of [`Mode`].
    pub fn mode(&self) -> Option<Mode> {
        self.mode_number.and_then(Mode::from_number)
    }
}

/// Position and motion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Navigation {
    /// Estimated position.
    pub position: Position,
    /// Height above home, metres.
    pub height_m: f64,
    /// Velocity east, north, up, metres per second.
    pub velocity_m_s: DVec3,
    /// Heading, radians clockwise from north.
    pub heading_rad: f64,
}

/// One preflight check.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Name of the check.
    pub name: &'static str,
    /// Whether it passed.
    pub passed: bool,
    /// Whether setup and start are refused where it has not passed; otherwise it is a warning.
    pub is_required: bool,
    /// The finding, for the operator.
    pub detail: Text,
}

/// An operator's command and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandProgress {
    /// The sender's id.
    pub id: CommandId,
    /// The command.
    pub command: Command,
    /// How far it has come.
    pub stage: Stage,
}

/// The status of one aircraft.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The aircraft.
    pub id: VehicleId,
    /// Agent time at which the status was taken.
    pub at: Instant,
    /// The protocol: `muscop`, `mbcap`, `mbcap-e`, `follow_me`.
    pub protocol: &'static str,
    /// The protocol's state, by the name that its paper gives it.
    pub state: StateId,
    /// How far the flight has come.
    pub phase: Phase,
    /// One line for the operator.
    pub detail: Text,
    /// False after a takeover: the agent commands nothing.
    pub engaged: bool,
    /// The autopilot's own failsafe has the aircraft: *Hold*, *Return* and *Land* take it back.
    pub failsafe: bool,
    /// The flight controller.
    pub flight_controller: FlightControllerStatus,
    /// Where it is, once known.
    pub navigation: Option<Navigation>,
    /// Where the protocol sends it.
    pub target: Option<Point>,
    /// What the autopilot measures or estimates.
    pub measured: Measurements,
    /// The flight against the battery; absent where nothing is kept of the battery.
    pub energy: Option<EnergyStatus>,
    /// GNSS time and this computer's clock, once the flight controller reports it.
    pub clock: Option<ClockStatus>,
    /// Remote ID, where it is configured.
    pub remote_id: Option<RemoteIdStatus>,
    /// Corrections of satellite navigation, once a console has sent any.
    pub corrections: Option<CorrectionsStatus>,
    /// Hash of the route, if there is one ([`wingbeat_autopilot::mission::hash`]).
    pub route_hash: Option<u64>,
    /// Hash of the swarm's plan that the route was derived from; absent before setup.
    pub plan_hash: Option<u64>,
    /// Number of its waypoints.
    pub route_len: u16,
    /// Waypoint reached last.
    pub reached: Option<u16>,
    /// What it does to avoid others, where the protocol does.
    pub avoidance: Option<AvoidanceView>,
    /// How near others are.
    pub separation: separation::View,
    /// Role and slot in the swarm.
    pub swarm: SwarmView,
    /// Members of the swarm that are lost, left or excluded.
    pub absentees: Absentees,
    /// The formation with its slots, where this aircraft plans it.
    pub formation: Option<FormationView>,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams accepted.
    pub received: u64,
    /// Datagrams refused, in the order of [`wingbeat_wire::Refused::ALL`].
    pub refused: [u64; wingbeat_wire::Refused::ALL.len()],
    /// Preflight checks, in a fixed order.
    pub checks: Vec<Check, CHECKS_MAX>,
    /// What *Set parameters* would set, and from which value.
    pub cures: Vec<Cure, CURES_MAX>,
    /// Whether *Resume* would be accepted by the protocol.
    pub can_resume: bool,
    /// The operator's last commands, newest last.
    pub commands: Vec<CommandProgress, COMMANDS_MAX>,
    /// The autopilot's parameters that safety and preflight depend on.
    pub parameters: Watch,
}

/// Number of preflight checks.
pub const CHECKS_MAX: usize = 26;
/// Commands that are remembered.
pub const COMMANDS_MAX: usize = 8;
