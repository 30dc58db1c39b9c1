//! Parameters of the flight controller: the whole list of one aircraft, writes with their outcome, and the fleet compared.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A parameter and its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParameterValue {
    /// Its name, 1 to 16 characters.
    pub name: String,
    /// The value in the parameter's own unit, as the flight controller carries it: a number of 32 bits.
    pub value: f32,
}

/// PUT body: parameters to set. None is written while motors are armed, and none that the flight controller does not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParameterWrite {
    /// Each name once.
    #[schema(min_items = 1, max_items = 2048)]
    pub parameters: Vec<ParameterValue>,
}

/// What an aircraft is doing about parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParameterWork {
    /// Nothing.
    #[default]
    None,
    /// It reads the list.
    Reading,
    /// It sets parameters, one after another.
    Writing,
}

/// What became of a parameter that was to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParameterEffect {
    /// Not written yet.
    Pending,
    /// Written, and read back.
    Set,
    /// It held this value before.
    Unchanged,
    /// Not set; the reason says why.
    Refused,
}

/// One parameter that was to be set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ParameterOutcome {
    /// Its name.
    pub name: String,
    /// The value that was asked for.
    pub value: f32,
    /// What became of it.
    pub effect: ParameterEffect,
    /// What it held before, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<f32>,
    /// Why it was not set.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// How far an aircraft has come with its parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ParameterProgress {
    /// What it is doing.
    pub work: ParameterWork,
    /// Counts changes of the list that it holds: another number, another list.
    pub revision: u64,
    /// Parameters that were received of the list.
    pub received: u16,
    /// Length of the list, once known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u16>,
    /// Time since the list was received completely, milliseconds; absent while it is not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// Why the list is not complete, where a reading of it failed; and which parameters could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// What became of each parameter of the last write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<ParameterOutcome>,
}

/// The parameters of a flight controller as they were read last, those that were set since with their new values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ParameterTable {
    /// How complete they are.
    pub progress: ParameterProgress,
    /// By name.
    pub parameters: Vec<ParameterValue>,
}

/// Body: whose parameters are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetParameterRead {
    /// Ids; empty for every aircraft.
    pub vehicles: Vec<String>,
}

/// What one aircraft is to be given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VehicleParameters {
    /// The aircraft's id.
    pub vehicle: String,
    /// Each name once.
    pub parameters: Vec<ParameterValue>,
}

/// Body: parameters for many aircraft.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetParameterWrite {
    /// Each aircraft once.
    pub vehicles: Vec<VehicleParameters>,
}

/// How far one aircraft has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VehicleParameterProgress {
    /// The aircraft's id.
    pub id: String,
    /// What it answers; absent where it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ParameterProgress>,
    /// Why it does not answer, or what it refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How far the aircraft have come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FleetParameters {
    /// Each aircraft that was asked.
    pub vehicles: Vec<VehicleParameterProgress>,
}

/// A `.param` file: lines `NAME VALUE` or `NAME,VALUE`, and comments after `#`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParameterFile {
    /// Its name, for messages.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A file for one aircraft: its values count before the profile's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParameterOverlay {
    /// The aircraft's id.
    pub vehicle: String,
    /// The file.
    pub file: ParameterFile,
}

/// Body: what the aircraft's parameters are compared with, besides each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParameterReference {
    /// What all should hold. Without it the service takes its own profile, `fleet.param` of its folder of parameters, where it
    /// has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ParameterFile>,
    /// What single aircraft should hold instead. Without a profile here the service adds its own, `NAME.param` or `ID.param`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlays: Vec<ParameterOverlay>,
}

/// An aircraft of the comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ComparedVehicle {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Parameters that are known of it.
    pub known: u16,
    /// Length of its list, once known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u16>,
    /// Time since its list was read completely, milliseconds; absent while it is not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// Why nothing, or not everything, is known of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// How many of its parameters are not as they should be.
    pub drifted: u16,
    /// Names of its profile that its flight controller does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// A parameter that differs: between aircraft, or from what it should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ParameterRow {
    /// Its name.
    pub name: String,
    /// Whether it is each aircraft's own by its nature: calibration, statistics, an address. The fleet is not compared by it.
    pub is_own: bool,
    /// What each aircraft holds, in the order of the aircraft.
    pub values: Vec<Option<f32>>,
    /// What each should hold; empty where neither profile nor overlay has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<Option<f32>>,
}

/// The parameters of the fleet, compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ParameterComparison {
    /// The aircraft.
    pub vehicles: Vec<ComparedVehicle>,
    /// What differs, by name.
    pub rows: Vec<ParameterRow>,
    /// The files that they were compared with.
    pub files: Vec<String>,
    /// What is wrong with those, one line each: what they hold otherwise is compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}
