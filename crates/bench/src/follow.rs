//! The part of a plan in which a formation follows a leader that a pilot flies (FollowMe).

use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::Deserialize;
use wingbeat_geo::formation::Layout;
use wingbeat_geo::{Duration, Formation};
use wingbeat_protocol::follow_me::{self, LeaderLost};
use wingbeat_sim::pilot::Pilot;
use wingbeat_sim::pilot::synthetic::Synthetic;
use wingbeat_sim::pilot::trace::{Replay, Trace};
use wingbeat_wire::{Point, VehicleId};

use crate::scenario::{Scenario, Task, route};

/// Where the leader's nose points, degrees: the published pilot's, who never turned it.
const HEADING_DEG: f64 = 291.0;
/// A leader is lost after so many refreshes at least; 2 s where that is longer.
const REFRESHES_TO_LOSE: u32 = 3;

/// A formation follows a leader.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowTask {
    /// Number of aircraft; the first is the leader.
    pub aircraft: usize,
    /// Formation in flight.
    pub layout: Layout,
    /// Distance between slots in flight, metres.
    pub distance_m: f64,
    /// Height at which the slaves assemble, metres above home.
    pub height_m: f64,
    /// Speed of the slaves, metres per second.
    pub speed_m_s: f64,
    /// How often the leader tells where it is.
    pub refresh: Duration,
    /// Standard deviation of the wandering of the noses, radians.
    pub heading_noise_rad: f64,
    /// How fast the outermost slot moves at most because the formation turns, metres per second; infinite in the
    /// published flights.
    pub turn_m_s: f64,
    /// What a slave does that no longer hears its leader.
    pub leader_lost: LeaderLost,
    /// Whether a slave that holds because of that follows a leader that it hears again.
    pub follows_again: bool,
    /// Who flies the leader.
    pub pilot: PilotOf,
    /// Where the leader stands, and a place before its nose.
    pub axis: [Point; 2],
}

/// Who flies the leader.
#[derive(Clone, Debug, PartialEq)]
pub enum PilotOf {
    /// The published flight's shape.
    Published,
    /// A flight drawn from the seed, about so long.
    Drawn(Duration),
    /// A recording.
    Trace(Arc<Trace>),
}

impl FromStr for PilotOf {
    type Err = String;
    /// `published`, `drawn:SECONDS`, or `trace:FILE`, relative to where the program runs.
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("found '{text}', expected published, drawn:SECONDS or trace:FILE");
        match text.split_once(':') {
            None if text == "published" => Ok(Self::Published),
            Some(("drawn", seconds)) => match seconds.parse::<u64>() {
                Ok(seconds @ 30..=3_600) => Ok(Self::Drawn(Duration::from_secs(seconds))),
                _ => Err(format!("{}; 30 to 3600 seconds", expected())),
            },
            Some(("trace", path)) => {
                let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
                let trace = Trace::parse(&text).map_err(|e| format!("{path}: {e}"))?;
                Ok(Self::Trace(Arc::new(trace)))
            }
            _ => Err(expected()),
        }
    }
}

impl PilotOf {
    /// Hands on the sticks.
    fn pilot(&self, seed: u64) -> Pilot {
        match self {
            Self::Published => Pilot::Synthetic(Synthetic::published(seed)),
            Self::Drawn(time) => Pilot::Synthetic(Synthetic::drawn(seed, *time)),
            Self::Trace(trace) => Pilot::Trace(Replay::new(Trace::clone(trace))),
        }
    }
}

impl FollowTask {
    /// Nine aircraft in a matrix, 75 m apart, one refresh a second (thesis section 7.3.2).
    pub fn new() -> Self {
        let heading_rad = HEADING_DEG.to_radians();
        let (sin, cos) = libm::sincos(heading_rad);
        let height_m = 19.0;
        let places = route(&[[0.0, 0.0], [100.0 * sin, 100.0 * cos]], height_m);
        Self {
            aircraft: 9,
            layout: Layout::Matrix,
            distance_m: 75.0,
            height_m,
            speed_m_s: 10.0,
            refresh: Duration::from_secs(1),
            heading_noise_rad: 0.0,
            turn_m_s: f64::INFINITY,
            leader_lost: LeaderLost::Hold,
            follows_again: false,
            pilot: PilotOf::Published,
            axis: [places[0], places[1]],
        }
    }

    /// Whoever flies an aircraft by hand.
    pub fn pilot(&self, index: usize, seed: u64) -> Option<Pilot> {
        (index == 0).then(|| self.pilot.pilot(seed))
    }

    /// What an aircraft's protocol is configured with.
    pub fn config(&self, me: VehicleId, leader: VehicleId) -> follow_me::Config {
        let mut config = follow_me::Config::new(me, leader, self.aircraft);
        config.swarm.layout = self.layout;
        config.swarm.distance_m = self.distance_m;
        config.height_m = self.height_m;
        config.refresh = self.refresh;
        config.turn_m_s = self.turn_m_s;
        config.leader_timeout = config.leader_timeout.max(self.refresh * REFRESHES_TO_LOSE);
        config.leader_lost = self.leader_lost;
        config.follows_again = self.follows_again;
        // What the tables print is flown, however close.
        config.accepts_close = true;
        config
    }

    /// The closest formation that an aircraft accepts at this refresh.
    pub fn distance_least_m(&self) -> f64 {
        self.config(VehicleId(1), VehicleId(1)).distance_least_m()
    }

    /// Whether the formation is closer than that: closeness is what such a flight shows.
    pub fn is_close(&self) -> bool {
        self.distance_m < self.distance_least_m()
    }

    /// Where an aircraft stands in the row on the ground: the leader in its middle.
    pub fn place_in_row(&self, index: usize) -> usize {
        let middle = self.aircraft / 2;
        match index {
            0 => middle,
            i if i <= middle => i - 1,
            i => i,
        }
    }
}

impl Default for FollowTask {
    fn default() -> Self {
        Self::new()
    }
}

/// Flights behind a leader.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Follow {
    /// Who flies the leader: `published`, `drawn:SECONDS` or `trace:FILE`.
    pub pilot: String,
    /// Height at which the slaves assemble, metres above home.
    pub height_m: f64,
    /// Speed of the slaves, metres per second.
    pub speed_m_s: f64,
    /// Standard deviation of the wandering of the noses, degrees.
    pub heading_noise_deg: f64,
    /// Standard deviation of the wandering position error, metres.
    #[serde(default)]
    pub gps_noise_m: f64,
    /// How fast the outermost slot moves at most because the formation turns, metres per second; without it the
    /// formation turns with every turn of the nose, as published.
    pub turn_m_s: Option<f64>,
    /// Rows of the table.
    pub series: Vec<Series>,
}

/// Flights that differ in one or more of these: every number with every other.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Which figure or table it is, for people.
    pub name: String,
    /// `linear`, `matrix` or `circular`.
    pub formation: Vec<String>,
    /// Numbers of aircraft, the leader among them.
    pub aircraft: Vec<usize>,
    /// Distances between slots in flight, metres.
    pub distance_m: Vec<f64>,
    /// How often the leader tells where it is, milliseconds.
    pub refresh_ms: Vec<u64>,
}

impl Follow {
    /// Every flight of every series.
    pub(crate) fn scenarios(&self) -> Result<Vec<Scenario>> {
        let pilot: PilotOf = self.pilot.parse().map_err(|e| anyhow!("follow.pilot: {e}"))?;
        let noise_deg = self.heading_noise_deg;
        ensure!(
            (0.0..=30.0).contains(&noise_deg),
            "follow.heading_noise_deg: found {noise_deg}, expected 0 to 30"
        );
        let noise_m = self.gps_noise_m;
        ensure!((0.0..=10.0).contains(&noise_m), "follow.gps_noise_m: found {noise_m}, expected 0 to 10");
        let mut all = Vec::new();
        for series in &self.series {
            for ((formation, &aircraft), (&distance_m, &refresh_ms)) in
                pairs(&series.formation, &series.aircraft)
                    .flat_map(|a| pairs(&series.distance_m, &series.refresh_ms).map(move |b| (a, b)))
            {
                let layout = formation.parse().map_err(|e| anyhow!("follow.series.formation: {e}"))?;
                let task = FollowTask {
                    aircraft,
                    layout,
                    distance_m,
                    height_m: self.height_m,
                    speed_m_s: self.speed_m_s,
                    refresh: Duration::from_millis(refresh_ms),
                    heading_noise_rad: noise_deg.to_radians(),
                    turn_m_s: self.turn_m_s.unwrap_or(f64::INFINITY),
                    pilot: pilot.clone(),
                    ..FollowTask::new()
                };
                let mut scenario = Scenario::new(&series.name, Task::Follow(task));
                scenario.gps_noise_m = noise_m;
                all.push(scenario);
            }
        }
        ensure!(!all.is_empty(), "follow.series: found no flight, expected one or more");
        Ok(all)
    }

    /// Keeps only flights of this many aircraft.
    pub(crate) fn keep(&mut self, aircraft: Option<usize>) -> Result<()> {
        let Some(aircraft) = aircraft else { return Ok(()) };
        self.series.iter_mut().for_each(|s| s.aircraft.retain(|n| *n == aircraft));
        self.series.retain(|s| !s.aircraft.is_empty());
        if self.series.is_empty() {
            bail!("aircraft: found {aircraft}, which no series of the plan flies");
        }
        Ok(())
    }
}

fn pairs<'a, A, B>(a: &'a [A], b: &'a [B]) -> impl Iterator<Item = (&'a A, &'a B)> {
    a.iter().flat_map(move |x| b.iter().map(move |y| (x, y)))
}

/// What cannot be flown is refused.
pub(crate) fn check(task: &FollowTask) -> Result<()> {
    let (aircraft, most) = (task.aircraft, wingbeat_wire::SWARM_MAX);
    ensure!(
        (2..=most).contains(&aircraft),
        "aircraft: found {aircraft}, expected 2 to {most}: a leader and slaves"
    );
    let speed = task.speed_m_s;
    ensure!((0.5..=20.0).contains(&speed), "speed_m_s: found {speed}, expected 0.5 to 20");
    Formation::new(task.layout, aircraft, task.distance_m).context("formation")?;
    Ok(())
}

/// The plan's pilot, another than its own.
pub(crate) fn set_pilot(follow: Option<&mut Follow>, pilot: &str) -> Result<()> {
    let follow = follow.context("pilot: found one, expected none: nobody follows a pilot in this plan")?;
    follow.pilot = pilot.to_owned();
    Ok(())
}

/// For the header of a table.
pub(crate) fn describe(task: &FollowTask) -> String {
    format!(
        "{} aircraft, {} {} m, refresh {} ms",
        task.aircraft,
        task.layout.name(),
        task.distance_m,
        task.refresh.as_millis()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pilot_is_one_of_three() {
        assert_eq!("published".parse(), Ok(PilotOf::Published));
        assert_eq!("drawn:300".parse(), Ok(PilotOf::Drawn(Duration::from_secs(300))));
        for (text, words) in [
            ("drawn:5", "30 to 3600"),
            ("drawn:x", "30 to 3600"),
            ("autopilot", "found 'autopilot', expected published"),
            ("trace:/nowhere/x.txt", "/nowhere/x.txt"),
        ] {
            let message = text.parse::<PilotOf>().unwrap_err();
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn the_leader_stands_in_the_middle_of_the_row() {
        for aircraft in [2, 3, 9, 10] {
            let task = FollowTask { aircraft, ..FollowTask::new() };
            let mut places: Vec<usize> = (0..aircraft).map(|i| task.place_in_row(i)).collect();
            assert_eq!(places[0], aircraft / 2);
            places.sort_unstable();
            assert_eq!(places, (0..aircraft).collect::<Vec<_>>());
        }
    }

    /// The published flight's shape, once.
    fn flown(change: impl FnOnce(&mut FollowTask)) -> crate::flight::Flight {
        let mut task = FollowTask { heading_noise_rad: 1.1f64.to_radians(), ..FollowTask::new() };
        change(&mut task);
        let scenario = Scenario::new("test", Task::Follow(task));
        let flight = crate::flight::fly(&scenario, 1_000, Duration::from_secs(3_600)).unwrap();
        assert!(flight.is_complete(), "{:?}", flight.warnings);
        flight
    }

    #[test]
    fn the_lag_is_the_published_one_and_rises_when_the_leader_tells_too_often() {
        // Thesis Table 7.1, matrix of nine, 75 m.
        let mut lags_m = Vec::new();
        for (refresh_ms, published_m) in [(500, 26.57), (750, 22.74), (1_000, 21.70), (2_000, 23.43)] {
            let flight = flown(|t| t.refresh = Duration::from_millis(refresh_ms));
            assert!(flight.succeeded(), "{:?}", flight.swarm.collisions);
            let lag_m = flight.following.global.of_slaves().mean();
            assert!((lag_m / published_m - 1.0).abs() < 0.15, "{refresh_ms} ms: {lag_m} m");
            lags_m.push(lag_m);
        }
        assert!(lags_m[0] > lags_m[1] && lags_m[1] > lags_m[2], "{lags_m:?}");
    }

    #[test]
    fn a_matrix_keeps_its_shape_better_than_a_circle_and_a_circle_better_than_a_line() {
        // Thesis Table 7.2, nine aircraft, 50 m.
        let errors_m = [(Layout::Matrix, 1.20), (Layout::Circular, 1.34), (Layout::Linear, 2.48)].map(
            |(layout, published_m)| {
                let flight = flown(|t| (t.layout, t.distance_m) = (layout, 50.0));
                let error_m = flight.following.formation.of_slaves().mean();
                assert!((error_m / published_m - 1.0).abs() < 0.3, "{layout:?}: {error_m} m");
                error_m
            },
        );
        assert!(errors_m[0] < errors_m[1] && errors_m[1] < errors_m[2], "{errors_m:?}");
    }

    #[test]
    fn who_turns_stops_and_climbs_is_followed_and_everybody_comes_down() {
        for seed in 1..=3 {
            let task = FollowTask {
                aircraft: 5,
                pilot: PilotOf::Drawn(Duration::from_secs(240)),
                turn_m_s: 3.0,
                ..FollowTask::new()
            };
            let mut scenario = Scenario::new("test", Task::Follow(task));
            scenario.channel = wingbeat_sim::channel::Model::Ieee80211a;
            let fly = || crate::flight::fly(&scenario, seed, Duration::from_secs(3_600)).unwrap();
            let flight = fly();
            assert!(flight.succeeded(), "seed {seed}: {:?} {:?}", flight.swarm.collisions, flight.warnings);
            assert!(flight.following.global.of_samples().count() > 4_000);
            // Slaves say nothing in flight, and nobody takes that for a loss.
            let lost = flight.warnings.iter().find(|w| w.contains("is silent"));
            assert_eq!(lost, None, "seed {seed}");
            assert_eq!(flight.trace_hash, fly().trace_hash);
        }
    }
}
