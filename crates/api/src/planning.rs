//! Missions before they are sent: where they lie against the real aircraft, and as files.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::aircraft::{GeoPoint, SwarmSlot};
use crate::fleet::FleetMissionUpload;
use crate::mission::MissionUpload;

/// POST body: missions that would be sent. Nothing is sent to an aircraft.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanDraft {
    /// Each with the aircraft that would take it: in a swarm its leader.
    #[schema(min_items = 1, max_items = 128)]
    pub missions: Vec<FleetMissionUpload>,
    /// How long a full battery flies, seconds; without it energy is not estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endurance_s: Option<f64>,
}

/// What would be flown, seen from where the aircraft are now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanPreview {
    /// What is wrong, worst first.
    pub problems: Vec<PlanProblem>,
    /// The formation at the first waypoint; absent where each aircraft flies for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formation: Option<PlanFormation>,
    /// What each aircraft would fly.
    pub flights: Vec<PlannedFlight>,
    /// What of the missions the aircraft do not fly, one line each with the reason.
    pub notes: Vec<String>,
}

/// Something that is wrong with a draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanProblem {
    /// Whether the draft must not be sent.
    pub stops: bool,
    /// One line for the operator.
    pub text: String,
}

/// The formation as *Setup* would plan it now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanFormation {
    /// Its name.
    pub name: String,
    /// Distance between slots, metres; absent where the leader does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance_m: Option<f64>,
    /// Where it points, degrees clockwise from north, 0..360.
    pub heading_deg: f64,
    /// The places around the first waypoint, by slot from 0; empty where they cannot be known before *Setup*.
    pub slots: Vec<SwarmSlot>,
}

/// What one aircraft would fly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlannedFlight {
    /// The aircraft, 16 hexadecimal digits.
    pub vehicle: String,
    /// Over the ground from where it is to its first waypoint, metres; absent where its position is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance_m: Option<f64>,
    /// Its own waypoints, as far as they are known before *Setup*.
    pub route: Vec<GeoPoint>,
    /// Over the ground from where it is to the end, metres; absent like the distance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_m: Option<f64>,
    /// From take-off to landing, seconds, estimated; absent where the route is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// Charge of its battery, per cent; absent where it is not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining_percent: Option<u8>,
    /// Charge that the flight takes, per cent of a full battery; absent where that cannot be estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_percent: Option<f64>,
}

/// A format of mission files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissionFormat {
    /// QGC WPL 110; one mission.
    Waypoints,
    /// A QGroundControl plan; one mission.
    Plan,
    /// KML, a path for each mission.
    Kml,
}

/// POST body: missions to be written as a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MissionExport {
    /// The format.
    pub format: MissionFormat,
    /// The missions.
    #[schema(min_items = 1, max_items = 128)]
    pub missions: Vec<MissionUpload>,
    /// Where the aircraft starts, for the formats that state a home. Altitude above sea level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<GeoPoint>,
}

/// A mission file that was written, and read again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MissionExportFile {
    /// Its name, with the extension of its format.
    pub name: String,
    /// Its content.
    pub text: String,
    /// What of the missions is not read back from it, one line each; empty where all of it is.
    pub notes: Vec<String>,
}
