//! A formation that follows a piloted leader (FollowMe).

use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use wingbeat_agent::Config as AgentConfig;
use wingbeat_geo::formation::Layout;
use wingbeat_geo::{DVec2, Duration, Formation};
use wingbeat_protocol::follow_me::{self, LeaderLost};
use wingbeat_sim::flight_controller::Config as ControllerConfig;
use wingbeat_sim::pilot::Pilot;
use wingbeat_sim::pilot::synthetic::Synthetic;
use wingbeat_sim::pilot::trace::{Replay, Trace};
use wingbeat_wire::{Point, VehicleId};

use super::{ENDLESS_MAH, Kind, Scenario, id, route};

/// Heading of the published leader, degrees; its pilot never yawed it.
const HEADING_DEG: f64 = 291.0;

/// A formation follows a leader.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowTask {
    /// Number of aircraft; the first is the leader.
    pub aircraft: usize,
    /// Formation in flight.
    pub layout: Layout,
    /// Distance between slots in flight, metres.
    pub distance_m: f64,
    /// Height at which the followers assemble, metres above home.
    pub height_m: f64,
    /// Speed of the followers, metres per second.
    pub speed_m_s: f64,
    /// How often the leader broadcasts its position.
    pub refresh: Duration,
    /// Standard deviation of the wandering heading error, radians.
    pub heading_noise_rad: f64,
    /// Highest speed of the outermost slot that is due to a turn of the formation, metres per second; infinite in the
    /// published flights.
    pub turn_m_s: f64,
    /// What a follower does that receives nothing from its leader any more.
    pub leader_lost: LeaderLost,
    /// Whether a follower that holds because of that follows again once it receives its leader again.
    pub follows_again: bool,
    /// The pilot of the leader.
    pub pilot: LeaderPilot,
    /// Where the leader stands, and a point ahead of it.
    pub axis: [Point; 2],
}

/// The pilot of the leader.
#[derive(Clone, Debug, PartialEq)]
pub enum LeaderPilot {
    /// The published flight's shape.
    Published,
    /// A flight drawn from the seed, about so long.
    Drawn(Duration),
    /// A recording.
    Trace(Arc<Trace>),
}

impl FromStr for LeaderPilot {
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

impl LeaderPilot {
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
        let axis = route(&[[0.0, 0.0], [100.0 * sin, 100.0 * cos]], height_m);
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
            follows_again: true,
            pilot: LeaderPilot::Published,
            axis: [axis[0], axis[1]],
        }
    }

    /// What an aircraft's protocol is configured with.
    pub fn config(&self, me: VehicleId, leader: VehicleId) -> follow_me::Config {
        let mut config = follow_me::Config::new(me, leader, self.aircraft);
        config.swarm.layout = self.layout;
        config.swarm.distance_m = self.distance_m;
        config.height_m = self.height_m;
        config.refresh = self.refresh;
        config.turn_m_s = self.turn_m_s;
        config.leader_timeout = follow_me::Config::default_leader_timeout(self.refresh);
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

    /// From the leader to the farthest slot, metres.
    pub fn reach_m(&self) -> f64 {
        let Ok(formation) = self.formation() else { return 0.0 };
        let offset_m = |slot| formation.offset_m(slot, 0.0).length();
        (0..self.aircraft).map(offset_m).fold(0.0, f64::max)
    }

    /// Whether the formation is closer than that: such a flight is to show closeness.
    pub fn is_close(&self) -> bool {
        self.distance_m < self.distance_least_m()
    }

    /// An aircraft's slot in the row on the ground; the leader has the middle one.
    pub fn ground_slot(&self, index: usize) -> usize {
        let middle = self.aircraft / 2;
        match index {
            0 => middle,
            i if i <= middle => i - 1,
            i => i,
        }
    }
}

impl FollowTask {
    fn formation(&self) -> Result<Formation, wingbeat_geo::FormationError> {
        Formation::new(self.layout, self.aircraft, self.distance_m)
    }

    /// For the header of a table.
    pub(crate) fn describe(&self) -> String {
        format!(
            "{} aircraft, {} {} m, refresh {} ms",
            self.aircraft,
            self.layout.name(),
            self.distance_m,
            self.refresh.as_millis()
        )
    }
}

impl Default for FollowTask {
    fn default() -> Self {
        Self::new()
    }
}

impl Kind for FollowTask {
    fn aircraft(&self) -> usize {
        self.aircraft
    }

    fn route(&self, _index: usize) -> &[Point] {
        &self.axis
    }

    fn speed_m_s(&self, _index: usize) -> f64 {
        self.speed_m_s
    }

    fn label(&self, name: &str) -> String {
        format!("{name}, {}", self.describe())
    }

    fn summary(&self, _name: &str) -> String {
        format!("{}, following a piloted leader", self.describe())
    }

    fn check(&self, scenario: &Scenario) -> Result<()> {
        let (aircraft, most) = (self.aircraft, wingbeat_wire::SWARM_MAX);
        ensure!(
            (2..=most).contains(&aircraft),
            "aircraft: found {aircraft}, expected 2 to {most}: a leader and followers"
        );
        self.formation().context("formation")?;
        scenario.check_agent(0)
    }

    fn agent_config(&self, index: usize) -> AgentConfig {
        AgentConfig::new(self.config(id(index), id(0)))
    }

    /// A pilot flies the leader, and its followers get no route.
    fn mission_for(&self, _index: usize) -> Option<&[Point]> {
        None
    }

    fn ground_offset_m(&self, index: usize, heading_rad: f64, distance_m: f64) -> DVec2 {
        Formation::new(Layout::Linear, self.aircraft, distance_m)
            .map_or(DVec2::ZERO, |row| row.offset_m(self.ground_slot(index), heading_rad))
    }

    fn equip(&self, config: &mut ControllerConfig, heading_rad: f64) {
        config.heading_rad = heading_rad;
        config.heading_noise_rad = self.heading_noise_rad;
        // The published flights had no limit on the battery.
        config.battery.capacity_mah = ENDLESS_MAH;
    }

    fn pilot(&self, index: usize, seed: u64) -> Option<Pilot> {
        (index == 0).then(|| self.pilot.pilot(seed))
    }

    fn is_unprotected(&self) -> bool {
        self.is_close()
    }

    fn slot_in_heading(&self, slot: usize) -> Option<DVec2> {
        let formation = self.formation().ok()?;
        (slot < self.aircraft).then(|| formation.offset_m(slot, 0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Task;

    #[test]
    fn a_pilot_is_read_from_its_name_or_refused() {
        assert_eq!("published".parse(), Ok(LeaderPilot::Published));
        assert_eq!("drawn:300".parse(), Ok(LeaderPilot::Drawn(Duration::from_secs(300))));
        for (text, words) in [
            ("drawn:5", "30 to 3600"),
            ("drawn:x", "30 to 3600"),
            ("autopilot", "found 'autopilot', expected published"),
            ("trace:/nowhere/x.txt", "/nowhere/x.txt"),
        ] {
            let message = text.parse::<LeaderPilot>().unwrap_err();
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn the_leader_stands_in_the_middle_of_the_row() {
        for aircraft in [2, 3, 9, 10] {
            let task = FollowTask { aircraft, ..FollowTask::new() };
            let mut slots: Vec<usize> = (0..aircraft).map(|i| task.ground_slot(i)).collect();
            assert_eq!(slots[0], aircraft / 2);
            slots.sort_unstable();
            assert_eq!(slots, (0..aircraft).collect::<Vec<_>>());
        }
    }

    /// The published flight's shape, once.
    fn flown(change: impl FnOnce(&mut FollowTask)) -> crate::flight::FlightResult {
        let mut task = FollowTask { heading_noise_rad: 1.1f64.to_radians(), ..FollowTask::new() };
        change(&mut task);
        let scenario = Scenario::new("test", Task::Follow(task));
        let flight = crate::flight::fly(&scenario, 1_000, Duration::from_secs(3_600)).unwrap();
        assert!(flight.is_complete(), "{:?}", flight.warnings);
        flight
    }

    #[test]
    fn the_lag_is_the_published_one_and_rises_with_too_short_a_refresh() {
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
    fn a_short_refresh_loses_no_follower_on_the_measured_channel() {
        // Nine in a line have 300 m between the leader and the outermost slots: each loses one
        // second of 17.
        let refresh = Duration::from_millis(500);
        let task = FollowTask {
            layout: Layout::Linear,
            refresh,
            heading_noise_rad: 1.1f64.to_radians(),
            ..FollowTask::new()
        };
        let mut scenario = Scenario::new("test", Task::Follow(task));
        scenario.channel = wingbeat_sim::channel::Model::Ieee80211a;
        let flight = crate::flight::fly(&scenario, 1_000, Duration::from_secs(3_600)).unwrap();
        assert!(flight.succeeded(), "{:?} {:?}", flight.swarm.collisions, flight.warnings);
        let lag_m = flight.following.global.of_slaves().mean();
        assert!(lag_m < 35.0, "{lag_m} m, without losses 31.5 m");
    }

    #[test]
    fn a_leader_that_turns_stops_and_climbs_is_followed_and_all_land() {
        for seed in 1..=3 {
            let task = FollowTask {
                aircraft: 5,
                pilot: LeaderPilot::Drawn(Duration::from_secs(240)),
                turn_m_s: 3.0,
                ..FollowTask::new()
            };
            let mut scenario = Scenario::new("test", Task::Follow(task));
            scenario.channel = wingbeat_sim::channel::Model::Ieee80211a;
            let fly = || crate::flight::fly(&scenario, seed, Duration::from_secs(3_600)).unwrap();
            let flight = fly();
            assert!(flight.succeeded(), "seed {seed}: {:?} {:?}", flight.swarm.collisions, flight.warnings);
            assert!(flight.following.global.of_samples().count() > 4_000);
            // Followers broadcast nothing in flight, and no aircraft takes that for a loss.
            let lost = flight.warnings.iter().find(|w| w.contains("is silent"));
            assert_eq!(lost, None, "seed {seed}");
            assert_eq!(flight.trace_hash, fly().trace_hash);
        }
    }
}
