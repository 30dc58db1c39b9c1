//! One mission flown as a formation (MUSCOP).

use anyhow::{Context, Result, ensure};
use wingbeat_agent::Config as AgentConfig;
use wingbeat_geo::formation::{Layout, Offsets};
use wingbeat_geo::position::heading_rad;
use wingbeat_geo::{DVec2, Duration, Formation, FormationError, Frame, Position};
use wingbeat_protocol::{muscop, swarm};
use wingbeat_sim::flight_controller::Config as ControllerConfig;
use wingbeat_wire::Point;

use super::route::position;
use super::{Kind, Scenario, id};

/// One mission flown as a formation.
#[derive(Clone, Debug, PartialEq)]
pub struct SwarmTask {
    /// Number of aircraft.
    pub aircraft: usize,
    /// Formation in flight.
    pub layout: Layout,
    /// Slots of a custom formation.
    pub offsets: Offsets,
    /// Distance between slots in flight, metres.
    pub distance_m: f64,
    /// Whether all take off at the same time.
    pub take_off: swarm::Manner,
    /// Whether it is flown however close it is.
    pub accepts_close: bool,
    /// Whether all land at the same time.
    pub landing: swarm::Manner,
    /// Distance between slots when landing, metres.
    pub landing_distance_m: f64,
    /// Speed along the legs, metres per second.
    pub speed_m_s: f64,
    /// Waypoints, heights above home.
    pub mission: Vec<Point>,
    /// How often arrival is checked.
    pub arrival_period: Duration,
    /// How often flight controllers report their position.
    pub position_interval: Duration,
    /// Orders wait for the flight controller's next frame, as in the reference implementation. Flown in virtual
    /// time, positions then come as often as they came to it, instead of every `position_interval`.
    pub orders_wait: bool,
    /// How far a flight controller's clock walks in one second, standard deviation.
    pub clock_walk_s: f64,
    /// How the aircraft stand on the ground.
    pub ground: Layout,
}

impl SwarmTask {
    /// Nine aircraft in line, 50 m apart, 10 m/s.
    pub(super) fn published(mission: Vec<Point>) -> Self {
        Self {
            aircraft: 9,
            layout: Layout::Linear,
            offsets: Offsets::new(),
            distance_m: 50.0,
            take_off: swarm::Manner::Sequential,
            accepts_close: false,
            landing: swarm::Manner::Simultaneous,
            landing_distance_m: 10.0,
            speed_m_s: 10.0,
            mission,
            arrival_period: Duration::from_millis(200),
            position_interval: Duration::from_millis(250),
            orders_wait: false,
            clock_walk_s: 0.0,
            ground: Layout::Linear,
        }
    }

    fn formation(&self) -> Result<Formation, FormationError> {
        swarm::shape::configured(self.layout, &self.offsets, self.aircraft, self.distance_m)
    }
}

impl Kind for SwarmTask {
    fn aircraft(&self) -> usize {
        self.aircraft
    }

    fn route(&self, _index: usize) -> &[Point] {
        &self.mission
    }

    fn speed_m_s(&self, _index: usize) -> f64 {
        self.speed_m_s
    }

    fn label(&self, name: &str) -> String {
        name.to_owned()
    }

    fn summary(&self, name: &str) -> String {
        format!(
            "{} aircraft, mission {name} ({} waypoints), formation {}, {} m/s",
            self.aircraft,
            self.mission.len(),
            self.layout,
            self.speed_m_s
        )
    }

    fn check(&self, scenario: &Scenario) -> Result<()> {
        let walk_s = self.clock_walk_s;
        ensure!((0.0..=0.1).contains(&walk_s), "clock walk: found {walk_s} s, expected 0 to 0.1");
        self.formation().context("formation")?;
        scenario.check_agent(0)
    }

    fn agent_config(&self, index: usize) -> AgentConfig {
        let mut muscop = muscop::Config::new(id(index), id(0), self.aircraft);
        muscop.swarm.layout = self.layout;
        muscop.swarm.offsets.clone_from(&self.offsets);
        muscop.swarm.distance_m = self.distance_m;
        muscop.swarm.landing_distance_m = self.landing_distance_m;
        muscop.swarm.take_off = self.take_off;
        muscop.swarm.accepts_close = self.accepts_close;
        muscop.swarm.landing = self.landing;
        muscop.swarm.arrival_period = self.arrival_period;
        AgentConfig { position_interval: self.position_interval, ..AgentConfig::new(muscop) }
    }

    fn mission_for(&self, index: usize) -> Option<&[Point]> {
        (index == 0).then_some(&*self.mission)
    }

    fn ground_offset_m(&self, index: usize, heading_rad: f64, distance_m: f64) -> DVec2 {
        Formation::new(self.ground, self.aircraft, distance_m)
            .map_or(DVec2::ZERO, |ground| ground.offset_m(index, heading_rad))
    }

    fn equip(&self, config: &mut ControllerConfig, _heading_rad: f64) {
        config.clock_walk_s = self.clock_walk_s;
    }

    fn orders_wait(&self) -> bool {
        self.orders_wait
    }

    fn slot_offset(&self, slot: usize, homes: &dyn Fn(usize) -> Position) -> Option<DVec2> {
        let frame = Frame::new(position(self.mission[0]));
        let local = |p: Position| frame.to_local(p).truncate();
        let sum: DVec2 = (0..self.aircraft).map(|i| local(homes(i))).sum();
        let heading = heading_rad(sum / self.aircraft as f64, local(position(self.mission[1])));
        let formation = self.formation().ok()?;
        (slot < self.aircraft).then(|| formation.offset_m(slot, heading))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Task, staircase};
    use wingbeat_geo::DVec3;

    #[test]
    fn the_row_stands_ten_metres_apart_around_the_first_waypoint() {
        let mission = staircase(4, 400.0, 10.0);
        let frame = Frame::new(position(mission[0]));
        let scenario = Scenario::muscop("test", mission);
        let at: Vec<DVec3> = (0..9).map(|i| frame.to_local(scenario.home(i, 3))).collect();
        for w in at.windows(2) {
            assert!((w[0].distance(w[1]) - 10.0).abs() < 1.0);
        }
        assert!(at[4].length() < 0.5, "the middle one stands at the first waypoint");
    }

    #[test]
    fn a_swarm_that_cannot_be_flown_is_refused_with_what_was_found() {
        let good = Scenario::muscop("test", staircase(4, 400.0, 10.0));
        good.check().unwrap();
        let message = |change: fn(&mut SwarmTask)| {
            let mut bad = good.clone();
            let Task::Swarm(swarm) = &mut bad.task else { panic!("a swarm") };
            change(swarm);
            format!("{:#}", bad.check().unwrap_err())
        };
        assert!(message(|s| s.aircraft = 0).contains("aircraft: found 0"));
        assert!(message(|s| s.speed_m_s = f64::NAN).contains("speed_m_s: found NaN"));
        assert!(message(|s| s.distance_m = -1.0).contains("found -1"));
        assert!(message(|s| s.mission = vec![s.mission[0]; 3]).contains("first leg"));
    }
}
