//! Tables as text: one flight in full, and the tables of plans with the published figures next
//! ours.

pub mod axes;
pub mod crowd;
pub mod flows;
pub mod following;
pub mod media;
pub mod muscop;
pub mod pairs;

use std::fmt::Write as _;

use wingbeat_cosim::ns3::End;

use crate::flight::{FlightResult, Radio};
use crate::saturation::table::becomes;
use crate::scenario::FollowTask;
use crate::scenario::{Scenario, Task, Variant};
use wingbeat_sim::observer::{AircraftFigures, SwarmFigures};

/// The figures of one flight: a row per aircraft, then the swarm.
pub fn flight(aircraft: &[AircraftFigures], swarm: &SwarmFigures, radio: &Radio) -> String {
    let mut t = String::new();
    line(&mut t, "aircraft   flight time   distance   formation error mean / max   completed");
    for (i, a) in aircraft.iter().enumerate() {
        let completed = if a.completed { "yes" } else { "NO" };
        line(
            &mut t,
            &format!(
                "{:>8}  {:>10.1} s  {:>7.0} m  {:>12.2} m / {:>6.2} m  {completed:>12}",
                i + 1,
                a.flight_time_s,
                a.distance_m,
                a.error_mean_m,
                a.error_max_m
            ),
        );
    }
    line(&mut t, &format!("mission time        {:.1} s", swarm.mission_time_s));
    line(&mut t, &format!("minimum separation  {}", metres(swarm.separation_min_m)));
    line(&mut t, &format!("collisions          {}", swarm.collisions.len()));
    for c in &swarm.collisions {
        let (a, b) = (c.pair.0 + 1, c.pair.1 + 1);
        line(
            &mut t,
            &format!("  at {:.1} s aircraft {a} and {b}: {:.2} m", c.at.as_secs_f64(), c.distance_m),
        );
    }
    let Radio { sent, delivered, lost, refused } = *radio;
    line(
        &mut t,
        &format!("datagrams           {sent} sent, {delivered} received, {lost} lost, {refused} refused"),
    );
    t
}

fn metres(m: f64) -> String {
    if m.is_finite() { format!("{m:.2} m") } else { "no pair".to_owned() }
}

fn line(t: &mut String, text: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(t, "{}", text.trim_end());
}

/// Nearer than this is a soft collision: the positions' errors of both, at their worst (thesis section
/// 5.3.2.3), metres.
const SOFT_M: f64 = 5.0;
/// And this is a hard one.
const HARD_M: f64 = 4.0;

/// The flights of one scenario.
pub struct Row {
    /// What was flown, where it was flown from a scenario.
    pub scenario: Option<Scenario>,
    /// Name of the mission and how it was flown.
    pub mission: String,
    /// Name of the flight alone.
    pub name: String,
    /// What kept aircraft on missions of their own apart.
    pub variant: Option<Variant>,
    /// What followed, and how.
    pub follow: Option<FollowTask>,
    /// Number of aircraft.
    pub aircraft: usize,
    /// Number of waypoints.
    pub waypoints: usize,
    /// One flight per repeat.
    pub flights: Vec<FlightResult>,
    /// The same flown by one aircraft alone, where the table asks for it.
    pub alone: Vec<FlightResult>,
}

impl Row {
    /// The flights of a scenario; without one an empty row.
    pub fn of(scenario: Option<&Scenario>, flights: Vec<FlightResult>, alone: Vec<FlightResult>) -> Self {
        Self {
            scenario: scenario.cloned(),
            mission: scenario.map_or_else(String::new, Scenario::label),
            name: scenario.map_or_else(String::new, |s| format!("{}{}", s.name, s.settings.suffix())),
            variant: scenario.and_then(Scenario::variant),
            follow: scenario.and_then(|s| match &s.task {
                Task::Follow(follow) => Some(follow.clone()),
                Task::Swarm(_) | Task::Own(_) => None,
            }),
            aircraft: scenario.map_or(0, Scenario::aircraft),
            waypoints: scenario.map_or(0, Scenario::waypoints),
            flights,
            alone,
        }
    }
}

/// One row per mission: times, offsets, separation, datagrams.
pub fn flights(rows: &[Row]) -> String {
    let mut t = String::new();
    let width = rows.iter().map(|row| row.mission.chars().count()).max().unwrap_or(0).max(16);
    line(
        &mut t,
        &format!(
            "{:<width$} flights  failed  mission time    offset mean / max    separation     sent     lost",
            "mission"
        ),
    );
    for row in rows {
        let n = row.flights.len();
        let failed = row.flights.iter().filter(|f| !f.succeeded()).count();
        // Without a leader whose mission it is: from the first take-off to the last landing.
        let longest = |f: &FlightResult| f.aircraft.iter().map(|a| a.flight_time_s).fold(0.0, f64::max);
        let time = mean(
            row.flights
                .iter()
                .map(|f| if row.variant.is_some() { longest(f) } else { f.swarm.mission_time_s }),
        );
        let offset = mean(row.flights.iter().map(|f| f.swarm.distance_offset.mean()));
        let offset_max = row.flights.iter().map(|f| f.swarm.distance_offset.max()).fold(0.0, f64::max);
        let separation = row.flights.iter().map(|f| f.swarm.separation_min_m).fold(f64::INFINITY, f64::min);
        let sent: u64 = row.flights.iter().map(|f| f.radio.sent).sum();
        let lost: u64 = row.flights.iter().map(|f| f.radio.lost).sum();
        line(
            &mut t,
            &format!(
                "{:<width$} {n:>7}  {failed:>6}  {time:>10.1} s  {offset:>8.2} / {offset_max:>6.2} m  {:>12}  {sent:>7}  {lost:>7}",
                row.mission,
                metres(separation)
            ),
        );
        let media = row.flights.iter().filter_map(|f| f.medium.as_ref());
        if media.clone().next().is_some() {
            becomes(media, &mut |text| line(&mut t, &text));
        }
        for index in 0..row.scenario.iter().flat_map(|s| &s.ns3).flat_map(|ns3| &ns3.flows).count() {
            line(&mut t, &flow(row, index));
        }
    }
    t
}

/// What a flow of traffic beside that of the aircraft came to.
fn flow(row: &Row, index: usize) -> String {
    let Some((config, flow)) =
        row.scenario.iter().flat_map(|s| &s.ns3).find_map(|ns3| Some((ns3, ns3.flows.get(index)?)))
    else {
        return String::new();
    };
    let (from_s, until_s) = flow.seconds;
    let shares = row.flights.iter().filter_map(|flight| {
        let sent_s = until_s.min(flight.duration.as_secs_f64()) - from_s;
        let received = flight.flows.get(index)?.bytes() as f64 * 8.0 / 1e3;
        (sent_s > 0.0).then(|| received / (sent_s * flow.kbit_s))
    });
    format!(
        "  flow {} to {}, routing {}: {:.1} of {} kbit/s received ({:.1} %)",
        flow.from + 1,
        match flow.to {
            End::Radio(to) => (to + 1).to_string(),
            End::Ground(node) => format!("ground node {}", node + 1),
        },
        config.routing.name(),
        mean(shares.clone()) * flow.kbit_s,
        flow.kbit_s,
        mean(shares) * 100.0
    )
}

/// The mean in a cell of a table, which is 0 of none.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    wingbeat_linktest::statistics::mean(values).unwrap_or_default()
}
