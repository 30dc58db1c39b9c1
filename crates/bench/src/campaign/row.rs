//! The figures of a flight by name: a row of CSV and of the database, and what ranges and comparisons speak of.

use serde::{Deserialize, Serialize};

use super::stored::Flown;
use crate::flight::FlightResult;
use crate::run;
use wingbeat_sim::observer::Spread;

/// One flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlightRow {
    /// The key of its file.
    pub key: String,
    /// Name of the plan.
    pub plan: String,
    /// Name of the mission and how it was flown.
    pub flight: String,
    /// What kept aircraft on missions of their own apart.
    pub variant: Option<String>,
    /// Number of aircraft.
    pub aircraft: usize,
    /// Number of waypoints.
    pub waypoints: usize,
    /// Its seed.
    pub seed: u64,
    /// Whether it is the flight that the table compares a row with.
    pub is_reference: bool,
    /// The program that flew it.
    pub program: String,
    /// Whether it came to what its plan expects.
    pub is_good: bool,
    /// Why it did not; nothing where a collision or a figure is the reason.
    #[serde(default)]
    pub cause: Option<String>,
    /// Aircraft that ended on the ground with their mission completed.
    pub completed: usize,
    /// Pairs that came nearer than the plan's collision distance.
    pub collisions: usize,
    /// From the start of the mission to the leader's landing, seconds; none where there is no leader.
    pub mission_time_s: Option<f64>,
    /// The longest time from arming to disarming, seconds.
    pub flight_time_most_s: f64,
    /// All aircraft together, metres.
    pub distance_m: f64,
    /// The closest that two ever were, metres; none where fewer than two flew.
    pub separation_least_m: Option<f64>,
    /// The closest encounter, metres; none where no two came near each other.
    pub encounter_closest_m: Option<f64>,
    /// Distance offset of the followers (thesis equation 6.3), metres; none without followers, as of the three that follow.
    pub distance_offset_mean_m: Option<f64>,
    /// The largest, metres.
    pub distance_offset_most_m: Option<f64>,
    /// Time offset of the followers, seconds.
    pub time_offset_mean_s: Option<f64>,
    /// The largest, seconds.
    pub time_offset_most_s: Option<f64>,
    /// Formation error behind a piloted leader (thesis equations 7.2 to 7.4), metres; none without one.
    pub formation_error_mean_m: Option<f64>,
    /// The largest, metres.
    pub formation_error_most_m: Option<f64>,
    /// Stops because of a risk.
    pub stops: f64,
    /// Datagrams sent.
    pub sent: u64,
    /// Receptions.
    pub received: u64,
    /// Receptions that were prevented.
    pub lost: u64,
    /// Datagrams that agents refused.
    pub refused: u64,
    /// Virtual time, seconds.
    pub duration_s: f64,
    /// Hash over every byte that crossed a border, hexadecimal.
    pub trace: String,
}

impl FlightRow {
    pub(crate) fn of(flown: &Flown, result: &FlightResult) -> Self {
        let Flown { key, program, plan, flight, variant, aircraft, waypoints, seed, is_reference, .. } =
            flown.clone();
        let (swarm, following) = (&result.swarm, result.following.formation.of_samples());
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let known = |spread: &Spread, value: f64| (spread.count() > 0).then_some(value);
        Self {
            key,
            plan,
            flight,
            variant,
            aircraft,
            waypoints,
            seed,
            is_reference,
            program,
            is_good: run::is_good(flown.counts_collisions, result),
            cause: (!result.causes.is_empty()).then(|| result.causes.join("; ")),
            completed: result.aircraft.iter().filter(|aircraft| aircraft.completed).count(),
            collisions: swarm.collisions.len(),
            // A leader's mission takes some time.
            mission_time_s: Some(swarm.mission_time_s).filter(|seconds| *seconds > 0.0),
            flight_time_most_s: result.aircraft.iter().map(|a| a.flight_time_s).fold(0.0, f64::max),
            distance_m: result.aircraft.iter().map(|a| a.distance_m).sum(),
            separation_least_m: finite(swarm.separation_min_m),
            encounter_closest_m: result.encounters.iter().map(|e| e.closest_m).reduce(f64::min),
            distance_offset_mean_m: known(&swarm.distance_offset, swarm.distance_offset.mean()),
            distance_offset_most_m: known(&swarm.distance_offset, swarm.distance_offset.max()),
            time_offset_mean_s: known(&swarm.time_offset, swarm.time_offset.mean()),
            time_offset_most_s: known(&swarm.time_offset, swarm.time_offset.max()),
            formation_error_mean_m: known(following, following.mean()),
            formation_error_most_m: known(following, following.max()),
            stops: result.stops(),
            sent: result.radio.sent,
            received: result.radio.delivered,
            lost: result.radio.lost,
            refused: result.radio.refused,
            duration_s: result.duration.as_secs_f64(),
            trace: format!("{:016x}", result.trace_hash),
        }
    }

    /// A figure by its name; none where the flight has none, or where there is no such name ([`FIGURES`]).
    pub fn figure(&self, name: &str) -> Option<f64> {
        FIGURES.iter().find(|(known, _)| *known == name).and_then(|(_, of)| of(self))
    }
}

/// Reads one figure of a row.
type Figure = fn(&FlightRow) -> Option<f64>;

/// What ranges and comparisons can speak of.
pub const FIGURES: &[(&str, Figure)] = &[
    ("completed", |r| Some(r.completed as f64)),
    ("collisions", |r| Some(r.collisions as f64)),
    ("mission_time_s", |r| r.mission_time_s),
    ("flight_time_most_s", |r| Some(r.flight_time_most_s)),
    ("distance_m", |r| Some(r.distance_m)),
    ("separation_least_m", |r| r.separation_least_m),
    ("encounter_closest_m", |r| r.encounter_closest_m),
    ("distance_offset_mean_m", |r| r.distance_offset_mean_m),
    ("distance_offset_most_m", |r| r.distance_offset_most_m),
    ("time_offset_mean_s", |r| r.time_offset_mean_s),
    ("time_offset_most_s", |r| r.time_offset_most_s),
    ("formation_error_mean_m", |r| r.formation_error_mean_m),
    ("formation_error_most_m", |r| r.formation_error_most_m),
    ("stops", |r| Some(r.stops)),
    ("sent", |r| Some(r.sent as f64)),
    ("received", |r| Some(r.received as f64)),
    ("lost", |r| Some(r.lost as f64)),
    ("refused", |r| Some(r.refused as f64)),
    ("duration_s", |r| Some(r.duration_s)),
];

/// Names, for messages.
pub fn names() -> String {
    FIGURES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Rows of one flight together, in the order in which they were flown; references apart.
pub fn groups(rows: &[FlightRow]) -> Vec<(String, Vec<&FlightRow>)> {
    let mut groups: Vec<(String, Vec<&FlightRow>)> = Vec::new();
    for row in rows {
        let name = if row.is_reference { format!("{} (reference)", row.flight) } else { row.flight.clone() };
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, group)) => group.push(row),
            None => groups.push((name, vec![row])),
        }
    }
    groups
}
