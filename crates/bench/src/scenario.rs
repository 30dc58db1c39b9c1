//! One flight to be flown: who, where, over which mission, through which air and which ether. The
//! deterministic bench and the real-time fleet build their aircraft from the same description.

use anyhow::{Context, Result, bail, ensure};
use wingbeat_agent::{Agent, CompanionLoss, Config as AgentConfig};
use wingbeat_geo::formation::Layout;
use wingbeat_geo::position::heading_rad;
use wingbeat_geo::{DVec2, DVec3, Duration, Formation, Frame, Instant, Position};
use wingbeat_missions::{Limits, Mission};
use wingbeat_protocol::muscop;
use wingbeat_sim::chance;
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::flight_controller::{Boot, Config as ControllerConfig, FlightController, Parameter, TICK};
use wingbeat_wire::{Point, VehicleId};

/// Where missions made from numbers begin (Valencia, as the sample missions).
pub const ORIGIN: Position =
    Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };

/// Aircraft stand this far apart on the ground (the reference's ground formation: linear, 10 m).
const GROUND_DISTANCE_M: f64 = 10.0;
/// Flight controllers boot within one second of each other.
const BOOT_SPREAD_TICKS: f64 = 50.0;
/// Nobody sets an aircraft down to the centimetre.
const PLACEMENT_ERROR_M: f64 = 0.3;

/// One flight.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Number of aircraft.
    pub aircraft: usize,
    /// Formation in flight.
    pub layout: Layout,
    /// Distance between slots in flight, metres.
    pub distance_m: f64,
    /// Distance between slots when landing, metres.
    pub landing_distance_m: f64,
    /// Speed along the legs, metres per second.
    pub speed_m_s: f64,
    /// Waypoints, heights above home.
    pub mission: Vec<Point>,
    /// Name of the mission.
    pub mission_name: String,
    /// Reach of the radio.
    pub channel: Model,
    /// How often chance decides about a link.
    pub draw: Draw,
    /// Standard deviation of the wandering position error, metres.
    pub gps_noise_m: f64,
    /// How often arrival is looked at.
    pub arrival_period: Duration,
    /// Closer than this counts as a collision, metres.
    pub collision_distance_m: f64,
    /// How long the flight controllers take to get ready.
    pub boot: Boot,
}

impl Scenario {
    /// The published MUSCOP flight: nine aircraft in line, 50 m apart, 10 m/s, ideal channel.
    pub fn muscop(mission_name: &str, mission: Vec<Point>) -> Self {
        Self {
            aircraft: 9,
            layout: Layout::Linear,
            distance_m: 50.0,
            landing_distance_m: 10.0,
            speed_m_s: 10.0,
            mission,
            mission_name: mission_name.to_owned(),
            channel: Model::Unrestricted,
            draw: Draw::PerSecond,
            gps_noise_m: 0.0,
            arrival_period: Duration::from_millis(200),
            collision_distance_m: 5.0,
            boot: Boot::Warm,
        }
    }

    /// What cannot be flown is refused before anything starts.
    ///
    /// # Errors
    /// Names what was found and what was expected.
    pub fn check(&self) -> Result<()> {
        let most = wingbeat_wire::SWARM_MAX;
        ensure!(
            (1..=most).contains(&self.aircraft),
            "aircraft: found {}, expected 1 to {most}",
            self.aircraft
        );
        let speed = self.speed_m_s;
        ensure!((0.5..=20.0).contains(&speed), "speed_m_s: found {speed}, expected 0.5 to 20");
        ensure!(
            self.mission.len() >= 2,
            "mission {}: found {} waypoints, expected 2 or more",
            self.mission_name,
            self.mission.len()
        );
        let (first, second) = (position(self.mission[0]), position(self.mission[1]));
        let leg_m = Frame::new(first).to_local(second).truncate().length();
        ensure!(
            leg_m >= 1.0,
            "mission {}: the first leg is {leg_m:.1} m long, expected 1 m or more",
            self.mission_name
        );
        Formation::new(self.layout, self.aircraft, self.distance_m).context("formation")?;
        Agent::new(self.agent_config(0), 0, Instant::ZERO).map(|_| ()).context("aircraft")
    }

    /// The id of an aircraft; the first is the master.
    pub fn id(&self, index: usize) -> VehicleId {
        VehicleId(0x0200_0000_0001 + index as u64)
    }

    /// What an aircraft's agent is configured with.
    pub fn agent_config(&self, index: usize) -> AgentConfig {
        let mut muscop = muscop::Config::new(self.id(index), self.id(0), self.aircraft);
        muscop.layout = self.layout;
        muscop.distance_m = self.distance_m;
        muscop.landing_distance_m = self.landing_distance_m;
        muscop.arrival_period = self.arrival_period;
        let mut config = AgentConfig::new(muscop);
        config.companion_loss = CompanionLoss::EndsWithIt;
        config
    }

    /// An aircraft's agent.
    ///
    /// # Errors
    /// The configuration cannot be flown.
    pub fn agent(&self, index: usize, seed: u64) -> Result<Agent> {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(index as u64);
        Ok(Agent::new(self.agent_config(index), seed, Instant::ZERO)?)
    }

    /// Where an aircraft stands: in a row across the first leg, its middle at the first waypoint.
    pub fn home(&self, index: usize, seed: u64) -> Position {
        let frame = Frame::new(position(self.mission[0]));
        let next = frame.to_local(position(self.mission[1])).truncate();
        let heading = heading_rad(DVec2::ZERO, next);
        let row = Formation::new(Layout::Linear, self.aircraft, GROUND_DISTANCE_M);
        let slot = row.map_or(DVec2::ZERO, |f| f.offset_m(index, heading));
        let mut luck = chance::child(seed, "placement", index as u64);
        let mut error = || (chance::uniform(&mut luck) * 2.0 - 1.0) * PLACEMENT_ERROR_M;
        frame.to_position(DVec3::new(slot.x + error(), slot.y + error(), 0.0))
    }

    /// Where a slot lies from the leader's, metres east and north, in the plan that the master makes.
    pub fn slot_offset(&self, slot: usize, seed: u64) -> Option<DVec2> {
        let frame = Frame::new(position(self.mission[0]));
        let local = |p: Position| frame.to_local(p).truncate();
        let homes: DVec2 = (0..self.aircraft).map(|i| local(self.home(i, seed))).sum();
        let heading = heading_rad(homes / self.aircraft as f64, local(position(self.mission[1])));
        let formation = Formation::new(self.layout, self.aircraft, self.distance_m).ok()?;
        (slot < self.aircraft).then(|| formation.offset_m(slot, heading))
    }

    /// An aircraft's simulated flight controller.
    pub fn controller(&self, index: usize, seed: u64) -> FlightController {
        let mut config = ControllerConfig::new((index % 250 + 1) as u8, self.home(index, seed));
        config.boot = self.boot;
        config.gps_noise_m = self.gps_noise_m;
        config.parameters.push((Parameter::WPNAV_SPEED, (self.speed_m_s * 100.0) as f32));
        // Nobody switches all aircraft on in the same instant: their telemetry comes at different times.
        let mut luck = chance::child(seed, "boot", index as u64);
        let ticks = (chance::uniform(&mut luck) * BOOT_SPREAD_TICKS) as u64;
        let booted = Instant::from_millis(ticks * TICK.as_millis() as u64);
        FlightController::new(config, seed.wrapping_add(index as u64 * 0x1_0001), booted)
    }

    /// The radio channel among them.
    pub fn radio(&self, seed: u64) -> Channel {
        Channel::new(self.channel, self.draw, seed, self.aircraft)
    }
}

fn position(p: Point) -> Position {
    Position { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: ORIGIN.altitude_mm }
}

/// The waypoints of the one mission in a file.
///
/// # Errors
/// Names the file, the place in it, what was found and what was expected.
pub fn read_mission(path: &std::path::Path, limits: &Limits) -> Result<(String, Vec<Point>)> {
    let mut missions = wingbeat_missions::read(path, limits)?;
    let found = missions.len();
    let Some(mission) = missions.pop().filter(|_| found == 1) else {
        bail!("{}: found {found} missions, expected one: the swarm flies one mission", path.display());
    };
    let points = points(&mission);
    let (least, most) = (2, wingbeat_wire::WAYPOINTS_MAX);
    ensure!(
        (least..=most).contains(&points.len()),
        "{}: found {} waypoints, expected {least} to {most}",
        path.display(),
        points.len()
    );
    Ok((mission.name, points))
}

/// A mission's waypoints as aircraft tell them to each other.
pub fn points(mission: &Mission) -> Vec<Point> {
    let home_mm = mission.planned_home.map_or(0, |home| home.altitude_mm);
    mission
        .waypoints()
        .map(|(place, altitude, _)| Point {
            latitude_e7: place.latitude_e7,
            longitude_e7: place.longitude_e7,
            height_mm: altitude.above_home_mm(home_mm),
        })
        .collect()
}

/// The published test missions (thesis section 6.2.1): to the north-east in equal steps, alternately
/// north and east, `length_m` in all.
pub fn staircase(waypoints: usize, length_m: f64, height_m: f64) -> Vec<Point> {
    let frame = Frame::new(ORIGIN);
    let leg_m = length_m / (waypoints.max(2) - 1) as f64;
    (0..waypoints)
        .map(|k| {
            let (north, east) = (k.div_ceil(2) as f64 * leg_m, (k / 2) as f64 * leg_m);
            let p = frame.to_position(DVec3::new(east, north, 0.0));
            Point {
                latitude_e7: p.latitude_e7,
                longitude_e7: p.longitude_e7,
                height_mm: (height_m * 1e3) as i32,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_staircase_has_its_length_and_its_corners() {
        for n in [2, 4, 14, 30] {
            let points = staircase(n, 1840.0, 10.0);
            let frame = Frame::new(ORIGIN);
            let at = |p: &Point| frame.to_local(position(*p)).truncate();
            let length_m: f64 = points.windows(2).map(|w| at(&w[0]).distance(at(&w[1]))).sum();
            assert_eq!(points.len(), n);
            assert!((length_m - 1840.0).abs() < 0.5, "{n}: {length_m}");
        }
    }

    #[test]
    fn the_row_stands_ten_metres_apart_around_the_first_waypoint() {
        let scenario = Scenario::muscop("test", staircase(4, 400.0, 10.0));
        let frame = Frame::new(position(scenario.mission[0]));
        let at: Vec<DVec3> = (0..9).map(|i| frame.to_local(scenario.home(i, 3))).collect();
        for w in at.windows(2) {
            assert!((w[0].distance(w[1]) - 10.0).abs() < 1.0);
        }
        assert!(at[4].length() < 0.5, "the middle one stands at the first waypoint");
    }

    #[test]
    fn what_cannot_be_flown_is_named() {
        let good = Scenario::muscop("test", staircase(4, 400.0, 10.0));
        good.check().unwrap();
        let message = |s: Scenario| format!("{:#}", s.check().unwrap_err());
        assert!(message(Scenario { aircraft: 0, ..good.clone() }).contains("aircraft: found 0"));
        assert!(message(Scenario { speed_m_s: f64::NAN, ..good.clone() }).contains("speed_m_s: found NaN"));
        assert!(message(Scenario { distance_m: -1.0, ..good.clone() }).contains("found -1"));
        let stuck = vec![good.mission[0]; 3];
        assert!(message(Scenario { mission: stuck, ..good }).contains("first leg"));
    }
}
