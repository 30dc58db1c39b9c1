//! A mission of its own for each aircraft (Mission, Sweep, MBCAP): aircraft of different owners in one sky.

use anyhow::{Context, Result};
use strum::{IntoStaticStr, VariantArray};
use wingbeat_agent::{Config as AgentConfig, Coordination};
use wingbeat_protocol::{mbcap, mission, sweep};
use wingbeat_sim::flight_controller::Config as ControllerConfig;
use wingbeat_wire::{Point, VehicleId};

use crate::timetable;

use super::{ENDLESS_MAH, Kind, Scenario, id};

/// Farthest waypoint from home; the published area is 7 km across.
const DISTANCE_MOST_M: f64 = 10_000.0;

/// Aircraft of different owners.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnTask {
    /// What keeps them apart.
    pub variant: Variant,
    /// One mission per aircraft; the last has the right of way.
    pub missions: Vec<OwnMission>,
}

/// The mission of one aircraft among others.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnMission {
    /// Speed along the legs, metres per second.
    pub speed_m_s: f64,
    /// Waypoints, heights above home.
    pub points: Vec<Point>,
    /// Where the aircraft stands, if not at the first waypoint.
    pub start: Option<Point>,
    /// When it leaves each of its waypoints at the earliest, from the first on, seconds after the flight controllers were switched on; as
    /// soon as it can where none is stated.
    pub leaves_at_s: Vec<f64>,
}

/// What keeps aircraft on missions of their own apart.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Nothing, each flies its mission (protocol Mission): the yardstick of the two others.
    Off,
    /// Thesis section 5.1.
    Mbcap,
    /// Thesis section 5.3.
    MbcapE,
    /// Each searches a strip of its own: the points of its mission are the area's corners.
    Sweep,
}

impl Variant {
    /// As plans and tables call it.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it keeps aircraft apart.
    pub fn avoids(self) -> bool {
        match self {
            Self::Off | Self::Sweep => false,
            Self::Mbcap | Self::MbcapE => true,
        }
    }

    fn coordination(
        self,
        me: VehicleId,
        index: usize,
        aircraft: usize,
        planned_speed_m_s: f64,
    ) -> Coordination {
        let own = |mbcap: mbcap::Config| {
            mbcap::Config { me, planned_speed_m_s, distance_most_m: DISTANCE_MOST_M, ..mbcap }.into()
        };
        let mut mission = mission::Config { planned_speed_m_s, ..mission::Config::new(me) };
        mission.fence.distance_most_m = DISTANCE_MOST_M;
        match self {
            Self::Off => mission.into(),
            Self::Sweep => sweep::Config { mission, ..sweep::Config::new(me, index, aircraft) }.into(),
            Self::Mbcap => own(mbcap::Config::mbcap()),
            Self::MbcapE => own(mbcap::Config::mbcap_e()),
        }
    }
}

impl std::str::FromStr for Variant {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::VARIANTS.iter().map(|variant| variant.name()).collect::<Vec<_>>().join(", ");
        let found = Self::VARIANTS.iter().copied().find(|variant| variant.name() == text);
        found.ok_or_else(|| format!("found '{text}', expected one of {names}"))
    }
}

impl Kind for OwnTask {
    fn aircraft(&self) -> usize {
        self.missions.len()
    }

    fn route(&self, index: usize) -> &[Point] {
        self.missions.get(index).map_or(&[], |m| &m.points)
    }

    fn speed_m_s(&self, index: usize) -> f64 {
        self.missions.get(index).map_or(0.0, |m| m.speed_m_s)
    }

    fn label(&self, name: &str) -> String {
        format!("{name}, {}", self.variant.name())
    }

    fn summary(&self, name: &str) -> String {
        format!("{} aircraft on missions of their own, {name}, {}", self.missions.len(), self.variant.name())
    }

    fn check(&self, scenario: &Scenario) -> Result<()> {
        for (index, OwnMission { points, leaves_at_s, .. }) in self.missions.iter().enumerate() {
            timetable::check(leaves_at_s, points.len()).with_context(|| format!("aircraft {}", index + 1))?;
        }
        (0..self.missions.len())
            .try_for_each(|i| scenario.check_agent(i).with_context(|| format!("aircraft {}", i + 1)))
    }

    fn agent_config(&self, index: usize) -> AgentConfig {
        let speed_m_s = self.speed_m_s(index);
        AgentConfig::new(self.variant.coordination(id(index), index, self.missions.len(), speed_m_s))
    }

    fn mission_for(&self, index: usize) -> Option<&[Point]> {
        self.missions.get(index).map(|m| &*m.points)
    }

    fn leaves_at_s(&self, index: usize) -> &[f64] {
        self.missions.get(index).map_or(&[], |m| &m.leaves_at_s)
    }

    fn start(&self, index: usize) -> Point {
        let start = self.missions.get(index).and_then(|m| m.start);
        start.unwrap_or_else(|| self.route(index)[0])
    }

    fn equip(&self, config: &mut ControllerConfig, _heading_rad: f64) {
        // The published flights had no limit on the battery; one of their missions takes 64 minutes.
        config.battery.capacity_mah = ENDLESS_MAH;
    }

    fn variant(&self) -> Option<Variant> {
        Some(self.variant)
    }

    fn is_unprotected(&self) -> bool {
        self.variant == Variant::Off
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::route::position;
    use crate::scenario::{Task, staircase};
    use wingbeat_geo::Frame;

    #[test]
    fn each_stands_at_the_start_of_its_own_mission() {
        let points = [staircase(2, 100.0, 10.0), staircase(4, 900.0, 10.0).split_off(2)];
        let missions = points
            .map(|points| OwnMission { speed_m_s: 5.0, points, start: None, leaves_at_s: Vec::new() })
            .to_vec();
        let scenario =
            Scenario::new("two", Task::Own(OwnTask { variant: Variant::MbcapE, missions: missions.clone() }));
        scenario.check().unwrap();
        for (i, mission) in missions.iter().enumerate() {
            let from_start = Frame::new(position(mission.points[0])).to_local(scenario.home(i, 3));
            assert!(from_start.truncate().length() < 0.5, "{from_start}");
            assert_eq!(scenario.mission_for(i), Some(&*mission.points));
        }
        assert!(scenario.id(1) > scenario.id(0), "the last has the right of way");
    }

    #[test]
    fn a_mission_of_one_waypoint_is_refused_with_its_aircraft() {
        let points = staircase(2, 100.0, 500.0).split_off(1);
        let task = OwnTask {
            variant: Variant::Off,
            missions: vec![OwnMission { speed_m_s: 10.0, points, start: None, leaves_at_s: Vec::new() }],
        };
        let message = format!("{:#}", Scenario::new("own", Task::Own(task)).check().unwrap_err());
        assert!(message.contains("aircraft 1") && message.contains("found 1 waypoints"), "{message}");
    }
}
