//! A bundle: the logs of a fleet in one folder, and its manifest.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::LogKind;

/// The form of the manifest.
pub const BUNDLE_FORMAT: u32 = 1;

/// The manifest, `manifest.json` in the folder of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Bundle {
    /// Its form: 1.
    pub format: u32,
    /// The version that collected it.
    pub version: String,
    /// The experiment.
    pub experiment: String,
    /// When it was begun, by the clock of the computer that collected it, UTC.
    pub begun: String,
    /// When it ended last; absent while it is collected, or where that was broken off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Whether nothing is missing.
    pub complete: bool,
    /// Each aircraft that was asked.
    pub aircraft: Vec<BundledAircraft>,
    /// What the ground service kept of its checklist with flights, in the folder `checklists`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checklists: Vec<BundledChecklist>,
    /// What is missing besides what the aircraft have: results of checklists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

/// What was kept of a checklist with a flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BundledChecklist {
    /// Its name in the folder `checklists`.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256, 64 lower-case hexadecimal digits.
    pub sha256: String,
}

/// What there is of one aircraft.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BundledAircraft {
    /// Its folder in the bundle: aircraft-1 and so on.
    pub folder: String,
    /// The address of its API.
    pub address: String,
    /// Its id; absent where it never answered and was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its display name.
    #[serde(default)]
    pub name: String,
    /// The version of its daemon.
    #[serde(default)]
    pub version: String,
    /// Its coordination protocol.
    #[serde(default)]
    pub protocol: String,
    /// The files that are there whole, with the hashes that the aircraft has of them.
    pub files: Vec<BundledFile>,
    /// What is not.
    pub missing: Vec<Missing>,
}

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BundledFile {
    /// Its name in the aircraft's folder.
    pub name: String,
    /// What it is.
    pub kind: LogKind,
    /// Its length.
    pub bytes: u64,
    /// SHA-256, 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// The clocks of the flight; absent where they were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<BundledClock>,
    /// Why the log ends before its end, or cannot be read; absent where it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaw: Option<String>,
}

/// How a flight's clocks read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BundledClock {
    /// UTC at agent time zero by the companion computer's clock, as it was set last: microseconds after 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utc_of_agent_time_zero_us: Option<u64>,
    /// The same by GNSS time, which the flight controller reported with a fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gnss_of_agent_time_zero_us: Option<u64>,
    /// How far that may be off, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gnss_error_ms: Option<f64>,
    /// How far the computer's clock was ahead of GNSS time, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_of_gnss_ms: Option<f64>,
    /// How far the computer's clock was set forth in flight, all steps together, milliseconds.
    pub stepped_ms: f64,
}

/// What a bundle lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Missing {
    /// What: a file's name, or *aircraft*.
    pub what: String,
    /// Why.
    pub why: String,
}

/// POST body: what the ground service collects into its own folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetBundleRequest {
    /// The experiment's name: letters, digits, dots, hyphens and underscores.
    #[schema(min_length = 1, max_length = 64)]
    pub experiment: String,
    /// Only files that were written within so many hours.
    #[serde(default = "a_day")]
    pub hours: u32,
    /// The flight controllers' own logs, so many of each, the newest: 0 to 16.
    #[serde(default = "one")]
    pub autopilot_logs: u16,
    /// Continue the experiment's newest bundle.
    #[serde(default)]
    pub resume: bool,
}

fn a_day() -> u32 {
    24
}

fn one() -> u16 {
    1
}

/// A file that is being received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BundleReceiving {
    /// The aircraft's name, or the address of its API.
    pub aircraft: String,
    /// The file.
    pub file: String,
    /// Bytes that are there.
    pub held_bytes: u64,
    /// Its length.
    pub bytes: u64,
}

/// The bundle that the ground service collects, or the last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FleetBundle {
    /// Whether it is being collected.
    pub running: bool,
    /// Its folder on the service's computer, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// What is being received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receiving: Vec<BundleReceiving>,
    /// Its manifest, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Bundle>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
