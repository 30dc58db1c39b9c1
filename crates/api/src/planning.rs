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
    /// Pairs of aircraft on missions of their own that would come near to each other, the nearest first, at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<PlanConflict>,
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

/// Two aircraft that would come near to each other if all started together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanConflict {
    /// The two, 16 hexadecimal digits each.
    #[schema(min_items = 2, max_items = 2)]
    pub vehicles: Vec<String>,
    /// Where each of them is then.
    #[schema(min_items = 2, max_items = 2)]
    pub places: Vec<GeoPoint>,
    /// How far apart they are then, metres.
    pub apart_m: f64,
    /// Seconds after the start.
    pub after_s: u32,
}

/// What keeps the aircraft of a plan together, or apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanProtocol {
    /// A swarm in formation flies one mission.
    Muscop,
    /// Each flies its own and gives way to others (thesis 5.1).
    Mbcap,
    /// The same, extended (thesis 5.3).
    MbcapE,
    /// Each flies its own, and nothing keeps them apart.
    Mission,
    /// A formation follows an aircraft that a pilot flies.
    #[serde(rename = "follow_me")]
    FollowMe,
}

impl PlanProtocol {
    /// As the bench's plans call what keeps aircraft on missions of their own apart.
    #[must_use]
    pub fn variant(self) -> &'static str {
        match self {
            Self::Mbcap => "mbcap",
            Self::MbcapE => "mbcap-e",
            Self::Muscop | Self::Mission | Self::FollowMe => "off",
        }
    }
}

/// POST body: a plan to be written as a file that the bench flies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// The protocol.
    pub protocol: PlanProtocol,
    /// How many aircraft fly in the swarm; of no meaning where each has its mission.
    pub aircraft: u8,
    /// The formation's name; the same.
    pub formation: String,
    /// Distance between slots, metres; the same.
    pub distance_m: f64,
    /// Distance between slots when landing, metres; as published where none is stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing_distance_m: Option<f64>,
    /// `sequential` or `simultaneous`; the first where none is stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take_off: Option<String>,
    /// `sequential` or `simultaneous`; the second where none is stated. FollowMe: `in_place` or `formation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing: Option<String>,
    /// Speed along the legs, metres per second; a mission that names one flies that where each has its own.
    pub speed_m_s: f64,
    /// FollowMe: height above home at which the followers gather, metres.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height_m: Option<f64>,
    /// FollowMe: the leader's pilot in the bench, `drawn:SECONDS` (30 to 3600) or `published`; `drawn:60` where none is stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pilot: Option<String>,
    /// The swarm's mission, or one for each aircraft; none with FollowMe, whose leader is flown by a pilot.
    #[schema(max_items = 128)]
    pub missions: Vec<MissionUpload>,
    /// Where the aircraft start. Altitude above sea level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<GeoPoint>,
}

/// POST body: a file that [`PlanFile`] was written as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SavedPlan {
    /// Its name, for messages.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The formations that a plan can name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FormationPictures {
    /// In the order in which they are listed.
    pub formations: Vec<FormationPicture>,
}

/// A formation, to be drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FormationPicture {
    /// Its name.
    pub name: String,
    /// What it looks like, in words.
    pub appearance: String,
    /// Its places, seen from the one that leads, by slot from 0.
    pub places: Vec<FormationPlace>,
    /// The slot that leads.
    pub leads: usize,
}

/// A place of a formation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FormationPlace {
    /// To the right of the heading, metres.
    pub right_m: f64,
    /// Along the heading, metres.
    pub ahead_m: f64,
}
