//! Alarms of the fleet, which the ground service keeps for all consoles.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How grave an alarm is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlarmLevel {
    /// The operator acts soon.
    Caution,
    /// The operator acts now.
    Alarm,
}

/// The subject of an alarm. An aircraft has one alarm of a kind at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlarmKind {
    /// It is out of contact.
    Lost,
    /// Its flight controller sends nothing.
    Controller,
    /// Its flight controller's failsafe has it.
    Failsafe,
    /// Its companion computer commands nothing.
    Takeover,
    /// It is too near to another aircraft.
    Separation,
    /// The charge of its battery is low.
    Battery,
    /// No guardian protects it from a loss of its companion computer.
    Companion,
    /// Its radio is down, or in one direction only.
    Radio,
    /// Its keys have expired.
    Keys,
    /// It holds its position.
    Holding,
    /// Its mission has ended without an order.
    Ended,
    /// It is in conflict with another aircraft.
    Conflict,
    /// It holds another mission than its leader.
    Mission,
    /// The others of its swarm do not wait for it, or do not receive it.
    Excluded,
    /// It cannot be commanded.
    Problem,
}

/// Who acknowledged an alarm, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AlarmAcknowledgement {
    /// The user's name; where the service has no users, the address of the console.
    pub by: String,
    /// Milliseconds since the ground service started.
    pub at_ms: u64,
}

/// An alarm of one aircraft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FleetAlarm {
    /// Its number since the ground service started, from 1. A condition that comes back is a new alarm.
    pub number: u64,
    /// The address of the aircraft's API.
    pub address: String,
    /// The aircraft's display name.
    pub name: String,
    /// Its subject.
    pub kind: AlarmKind,
    /// How grave it is; while it lasts it can become graver.
    pub level: AlarmLevel,
    /// One sentence without the name.
    pub text: String,
    /// When it began, milliseconds since the ground service started.
    pub since_ms: u64,
    /// When it ended, milliseconds since the ground service started; absent while it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Absent until it is acknowledged, and again once it has become graver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<AlarmAcknowledgement>,
}

/// The alarms of the fleet, by their numbers: all that last, and the last 200 that have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FleetAlarms {
    /// The alarms.
    pub alarms: Vec<FleetAlarm>,
}

/// POST body: acknowledges alarms, for all consoles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AlarmsAcknowledge {
    /// Their numbers; empty for all that last. An alarm that has ended needs none.
    #[serde(default)]
    pub numbers: Vec<u64>,
}
