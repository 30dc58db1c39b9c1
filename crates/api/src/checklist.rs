//! The lab's checklist: what people check before a flight, who ticked it and when, and what is kept with the flight.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::aircraft::{Check, MissionSummary};
use crate::flight_setup::FlightSetup;
use crate::measurements::Battery;

/// The form of [`ChecklistResult`].
pub const CHECKLIST_RESULT_FORMAT: u32 = 1;

/// The checklist of a ground service, and what of it is ticked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Checklist {
    /// Its title.
    pub title: String,
    /// SHA-256 of its file, 64 lower-case hexadecimal digits.
    pub hash: String,
    /// In the order of the file.
    pub items: Vec<ChecklistItem>,
    /// The newest file that was kept with a flight, by its name; absent before the first.
    pub last_result: Option<String>,
    /// Why ticks or a result are not on the disk; absent where they are.
    pub problem: Option<String>,
}

/// One thing to be checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChecklistItem {
    /// Its id in the file.
    pub id: String,
    /// What is to be checked.
    pub text: String,
    /// How; empty where the file has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// Whether the command that it stands before is refused until it is ticked.
    pub required: bool,
    /// What it is ticked for.
    pub per: ChecklistScope,
    /// The command that it stands before.
    pub before: ChecklistStep,
    /// Who ticked it: of an item for each aircraft by the aircraft's id, of one for the fleet at most one.
    #[serde(default)]
    pub ticks: Vec<Tick>,
}

/// What an item is ticked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChecklistScope {
    /// Once for all.
    #[default]
    Fleet,
    /// For each aircraft.
    Aircraft,
}

/// The command that an item stands before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChecklistStep {
    /// *Set up*, and *Start* after it.
    #[default]
    Setup,
    /// *Start* alone.
    Start,
}

/// An item that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tick {
    /// The aircraft, 16 hexadecimal digits; absent of an item for the fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vehicle: Option<String>,
    /// The user; where the service has no users, the address that it came from.
    pub by: String,
    /// When, by the clock of the service's computer: milliseconds since 1970, UTC.
    pub unix_ms: u64,
}

/// PUT body: an item is ticked, or no longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TickWrite {
    /// The hash of the checklist that the sender has: of another nothing is ticked.
    pub hash: String,
    /// The item's id.
    pub item: String,
    /// The aircraft that it is ticked for, each once; none for an item of the fleet.
    #[serde(default)]
    pub vehicles: Vec<String>,
    /// Ticked, or not.
    pub ticked: bool,
}

/// The files that were kept with flights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChecklistResults {
    /// Their folder on the service's computer.
    pub folder: String,
    /// The newest first, at most 500.
    pub results: Vec<ChecklistResultFile>,
}

/// A file that was kept with a flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChecklistResultFile {
    /// Its name, with the time of the start in UTC.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Seconds since it was written.
    pub age_s: u64,
}

/// What is kept with a flight: written when *Start* is accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChecklistResult {
    /// Its form: 1.
    pub format: u32,
    /// The version of the ground service.
    pub version: String,
    /// The name by which that service holds leases.
    pub console: String,
    /// When *Start* was accepted, UTC.
    pub time: String,
    /// The id of that command.
    pub command: String,
    /// The user that gave it; empty where the service has no users.
    pub by: String,
    /// The checklist's title.
    pub title: String,
    /// SHA-256 of the checklist's file, 64 lower-case hexadecimal digits.
    pub hash: String,
    /// Every item, and its ticks for the fleet and for the aircraft that were started.
    pub items: Vec<CheckedItem>,
    /// The automatic checks when *Set up* was accepted, by which it was allowed; empty of those that this service did not set up.
    pub setup: Vec<CheckedAircraft>,
    /// The automatic checks when *Start* was accepted.
    pub start: Vec<CheckedAircraft>,
}

/// An item as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckedItem {
    /// Its id in the file.
    pub id: String,
    /// What was to be checked.
    pub text: String,
    /// Whether *Start* was refused without it.
    pub required: bool,
    /// What it is ticked for.
    pub per: ChecklistScope,
    /// Who ticked it.
    pub ticks: Vec<KeptTick>,
}

/// A tick as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeptTick {
    /// The aircraft, 16 hexadecimal digits; absent of an item for the fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vehicle: Option<String>,
    /// The user; where the service has no users, the address that it came from.
    pub by: String,
    /// When, UTC.
    pub time: String,
}

/// The automatic checks of an aircraft, with their values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CheckedAircraft {
    /// 16 hexadecimal digits.
    pub id: String,
    /// Display name.
    pub name: String,
    /// When its status arrived, of which these values are: UTC.
    pub time: String,
    /// The flight controller's firmware; absent where it is not known.
    pub firmware: Option<String>,
    /// The battery; absent where it is not measured.
    pub battery: Option<Battery>,
    /// The mission that it holds; absent where it holds none.
    pub mission: Option<MissionSummary>,
    /// How it is to fly; absent where it does not say.
    pub flight_setup: Option<FlightSetup>,
    /// Each check: its outcome and its finding.
    pub checks: Vec<Check>,
}
