//! One flight to be flown: who, where, over which mission, through which air and which ether. The
//! deterministic bench and the real-time fleet build their aircraft from the same description.

use anyhow::{Context, Result, bail, ensure};
use wingbeat_agent::{Agent, CompanionLoss, Config as AgentConfig, Coordination};
use wingbeat_geo::formation::{Layout, Offsets};
use wingbeat_geo::position::heading_rad;
use wingbeat_geo::{DVec2, DVec3, Duration, Formation, FormationError, Frame, Instant, Position};
use wingbeat_missions::{Limits, Mission};
use wingbeat_protocol::{mbcap, mission, muscop, swarm, sweep};
use wingbeat_sim::chance;
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::flight_controller::{Boot, Config as ControllerConfig, FlightController, Parameter, TICK};
use wingbeat_sim::motion::WindParameters;
use wingbeat_sim::pilot::Pilot;
use wingbeat_wire::{Point, VehicleId};

use crate::follow::{self, FollowTask};

/// Where missions made from numbers begin (Valencia, as the sample missions).
pub const ORIGIN: Position =
    Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };

/// Aircraft stand this far apart on the ground (the reference's ground formation: linear, 10 m).
const GROUND_DISTANCE_M: f64 = 10.0;
/// Flight controllers boot within one second of each other.
const BOOT_SPREAD_TICKS: f64 = 50.0;
/// Nobody sets an aircraft down to the centimetre.
const PLACEMENT_ERROR_M: f64 = 0.3;
/// Missions of their own reach so far from home at most.
const OWN_DISTANCE_MOST_M: f64 = 10_000.0;
/// A battery that lasts for ever.
const ENDLESS_MAH: f64 = 1e6;

/// ArduCopter 3.5.7 that is asked for four positions a second, as by the reference implementation, sends one every
/// twelfth of its ticks of 20 ms: 240.0 ms of its own time, measured over minutes with nine of them in SITL.
const REFERENCE_POSITION_INTERVAL: Duration = Duration::from_millis(240);

/// One flight.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What is flown, for people: the mission's name.
    pub name: String,
    /// Who flies what.
    pub task: Task,
    /// Reach of the radio.
    pub channel: Model,
    /// How often chance decides about a link.
    pub draw: Draw,
    /// Standard deviation of the wandering position error, metres.
    pub gps_noise_m: f64,
    /// The air, the same around all.
    pub wind: WindParameters,
    /// Closer than this counts as a collision, metres.
    pub collision_distance_m: f64,
    /// How long the flight controllers take to get ready.
    pub boot: Boot,
}

/// Who flies what.
// A handful of them live at a time.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// One mission, flown as a formation (MUSCOP); the first aircraft is the master.
    Swarm(SwarmTask),
    /// A mission of its own for each (MBCAP).
    Own(OwnTask),
    /// A formation behind a leader that a pilot flies (FollowMe); the first aircraft is the leader.
    Follow(FollowTask),
}

/// One mission flown as a formation.
#[derive(Clone, Debug, PartialEq)]
pub struct SwarmTask {
    /// Number of aircraft.
    pub aircraft: usize,
    /// Formation in flight.
    pub layout: Layout,
    /// Its places, if it is custom.
    pub offsets: Offsets,
    /// Distance between slots in flight, metres.
    pub distance_m: f64,
    /// Whether all land at once.
    pub landing: swarm::Manner,
    /// Distance between slots when landing, metres.
    pub landing_distance_m: f64,
    /// Speed along the legs, metres per second.
    pub speed_m_s: f64,
    /// Waypoints, heights above home.
    pub mission: Vec<Point>,
    /// How often arrival is looked at.
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
    fn formation(&self) -> Result<Formation, FormationError> {
        swarm::shape::configured(self.layout, &self.offsets, self.aircraft, self.distance_m)
    }
}

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
}

/// What keeps aircraft on missions of their own apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Nothing, each flies its mission (protocol Mission): the yardstick of the two others.
    Off,
    /// Thesis section 5.1.
    Mbcap,
    /// Thesis section 5.3.
    MbcapE,
    /// Nothing but that each searches a strip of its own: the points of its mission are the area's corners.
    Sweep,
}

impl Variant {
    /// As plans and tables call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Mbcap => "mbcap",
            Self::MbcapE => "mbcap-e",
            Self::Sweep => "sweep",
        }
    }

    /// Its numbers for the aircraft of this index among so many, and this speed.
    fn coordination(
        self,
        me: VehicleId,
        index: usize,
        aircraft: usize,
        planned_speed_m_s: f64,
    ) -> Coordination {
        let own = |mbcap: mbcap::Config| {
            // The published area is 7 km across.
            mbcap::Config { me, planned_speed_m_s, distance_most_m: OWN_DISTANCE_MOST_M, ..mbcap }.into()
        };
        let mut mission = mission::Config { planned_speed_m_s, ..mission::Config::new(me) };
        mission.fence.distance_most_m = OWN_DISTANCE_MOST_M;
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
        [Self::Off, Self::Mbcap, Self::MbcapE, Self::Sweep]
            .into_iter()
            .find(|v| v.name() == text)
            .ok_or_else(|| format!("found '{text}', expected off, mbcap, mbcap-e or sweep"))
    }
}

impl Scenario {
    /// The published MUSCOP flight: nine aircraft in line, 50 m apart, 10 m/s, ideal channel.
    pub fn muscop(name: &str, mission: Vec<Point>) -> Self {
        Self::new(
            name,
            Task::Swarm(SwarmTask {
                aircraft: 9,
                layout: Layout::Linear,
                offsets: Offsets::new(),
                distance_m: 50.0,
                landing: swarm::Manner::Simultaneous,
                landing_distance_m: 10.0,
                speed_m_s: 10.0,
                mission,
                arrival_period: Duration::from_millis(200),
                position_interval: Duration::from_millis(250),
                orders_wait: false,
                clock_walk_s: 0.0,
                ground: Layout::Linear,
            }),
        )
    }

    /// A task in calm air, over an ideal channel, with perfect positions.
    pub fn new(name: &str, task: Task) -> Self {
        Self {
            name: name.to_owned(),
            task,
            channel: Model::Unrestricted,
            draw: Draw::PerSecond,
            gps_noise_m: 0.0,
            wind: WindParameters::default(),
            collision_distance_m: 5.0,
            boot: Boot::Warm,
        }
    }

    /// Number of aircraft.
    pub fn aircraft(&self) -> usize {
        match &self.task {
            Task::Swarm(swarm) => swarm.aircraft,
            Task::Own(own) => own.missions.len(),
            Task::Follow(follow) => follow.aircraft,
        }
    }

    /// Number of waypoints: the swarm's, or the first aircraft's.
    pub fn waypoints(&self) -> usize {
        self.route(0).len()
    }

    /// How high an aircraft flies first, above home, metres.
    pub fn height_m(&self, index: usize) -> f64 {
        self.route(index).first().map_or(0.0, |w| f64::from(w.height_mm) * 1e-3)
    }

    /// What keeps aircraft on missions of their own apart; `None` of a swarm.
    pub fn variant(&self) -> Option<Variant> {
        match &self.task {
            Task::Swarm(_) | Task::Follow(_) => None,
            Task::Own(own) => Some(own.variant),
        }
    }

    /// Whether orders wait for the flight controller's next frame.
    pub fn orders_wait(&self) -> bool {
        matches!(&self.task, Task::Swarm(swarm) if swarm.orders_wait)
    }

    /// What is flown and how, for a row of a table.
    pub fn label(&self) -> String {
        match &self.task {
            Task::Swarm(_) => self.name.clone(),
            Task::Follow(follow) => format!("{}, {}", self.name, follow::describe(follow)),
            Task::Own(own) => format!("{}, {}", self.name, own.variant.name()),
        }
    }

    /// Whether closeness is what the flight is to show: nothing keeps the aircraft apart, or a formation that an
    /// aircraft would refuse as too close.
    pub fn is_unprotected(&self) -> bool {
        let is_close = matches!(&self.task, Task::Follow(follow) if follow.is_close());
        self.variant() == Some(Variant::Off) || is_close
    }

    /// The mission that the operator hands to an aircraft: in a swarm only the master gets one.
    pub fn mission_for(&self, index: usize) -> Option<&[Point]> {
        match &self.task {
            Task::Swarm(swarm) => (index == 0).then_some(&*swarm.mission),
            Task::Own(own) => own.missions.get(index).map(|m| &*m.points),
            // A pilot flies the leader.
            Task::Follow(_) => None,
        }
    }

    /// The waypoints that an aircraft flies along: its own, or the swarm's.
    fn route(&self, index: usize) -> &[Point] {
        match &self.task {
            Task::Swarm(swarm) => &swarm.mission,
            Task::Own(own) => own.missions.get(index).map_or(&[], |m| &m.points),
            Task::Follow(follow) => &follow.axis,
        }
    }

    /// An aircraft's speed along its legs, metres per second.
    pub fn speed_m_s(&self, index: usize) -> f64 {
        match &self.task {
            Task::Swarm(swarm) => swarm.speed_m_s,
            Task::Own(own) => own.missions.get(index).map_or(0.0, |m| m.speed_m_s),
            Task::Follow(follow) => follow.speed_m_s,
        }
    }

    /// What is flown, in one line for people.
    pub fn summary(&self) -> String {
        match &self.task {
            Task::Swarm(swarm) => format!(
                "{} aircraft, mission {} ({} waypoints), formation {}, {} m/s",
                swarm.aircraft,
                self.name,
                swarm.mission.len(),
                swarm.layout,
                swarm.speed_m_s
            ),
            Task::Follow(follow) => format!("{}, behind a pilot", follow::describe(follow)),
            Task::Own(own) => format!(
                "{} aircraft on missions of their own, {}, {}",
                own.missions.len(),
                self.name,
                own.variant.name()
            ),
        }
    }

    /// What cannot be flown is refused before anything starts.
    ///
    /// # Errors
    /// Names what was found and what was expected.
    pub fn check(&self) -> Result<()> {
        let (found, most) = (self.aircraft(), wingbeat_wire::SWARM_MAX);
        ensure!((1..=most).contains(&found), "aircraft: found {found}, expected 1 to {most}");
        let wind = self.wind.speed_m_s;
        ensure!((0.0..=30.0).contains(&wind), "wind: found {wind} m/s, expected 0 to 30");
        match &self.task {
            Task::Swarm(swarm) => {
                self.check_route(0)?;
                let walk_s = swarm.clock_walk_s;
                ensure!((0.0..=0.1).contains(&walk_s), "clock walk: found {walk_s} s, expected 0 to 0.1");
                swarm.formation().context("formation")?;
                self.check_agent(0)
            }
            Task::Follow(follow) => {
                follow::check(follow)?;
                self.check_agent(0)
            }
            Task::Own(_) => (0..found).try_for_each(|i| {
                self.check_route(i)
                    .and_then(|()| self.check_agent(i))
                    .with_context(|| format!("aircraft {}", i + 1))
            }),
        }
    }

    fn check_route(&self, index: usize) -> Result<()> {
        let speed = self.speed_m_s(index);
        ensure!((0.5..=20.0).contains(&speed), "speed_m_s: found {speed}, expected 0.5 to 20");
        let (route, name) = (self.route(index), &self.name);
        ensure!(route.len() >= 2, "mission {name}: found {} waypoints, expected 2 or more", route.len());
        let leg_m = Frame::new(position(route[0])).to_local(position(route[1])).truncate().length();
        ensure!(leg_m >= 1.0, "mission {name}: the first leg is {leg_m:.1} m long, expected 1 m or more");
        Ok(())
    }

    fn check_agent(&self, index: usize) -> Result<()> {
        Agent::new(self.agent_config(index), 0, Instant::ZERO).map(|_| ()).context("configuration")
    }

    /// The id of an aircraft; the first is a swarm's master, the last has the right of way.
    pub fn id(&self, index: usize) -> VehicleId {
        VehicleId(0x0200_0000_0001 + index as u64)
    }

    /// What an aircraft's agent is configured with.
    pub fn agent_config(&self, index: usize) -> AgentConfig {
        let mut config = match &self.task {
            Task::Swarm(swarm) => {
                let mut muscop = muscop::Config::new(self.id(index), self.id(0), swarm.aircraft);
                muscop.swarm.layout = swarm.layout;
                muscop.swarm.offsets.clone_from(&swarm.offsets);
                muscop.swarm.distance_m = swarm.distance_m;
                muscop.swarm.landing_distance_m = swarm.landing_distance_m;
                muscop.swarm.landing = swarm.landing;
                muscop.swarm.arrival_period = swarm.arrival_period;
                AgentConfig { position_interval: swarm.position_interval, ..AgentConfig::new(muscop) }
            }
            Task::Follow(follow) => AgentConfig::new(follow.config(self.id(index), self.id(0))),
            Task::Own(own) => {
                let (me, speed_m_s) = (self.id(index), self.speed_m_s(index));
                AgentConfig::new(own.variant.coordination(me, index, own.missions.len(), speed_m_s))
            }
        };
        config.companion_loss = CompanionLoss::EndsWithIt;
        config
    }

    /// An aircraft's agent.
    ///
    /// # Errors
    /// The configuration cannot be flown.
    pub fn agent(&self, index: usize, seed: u64) -> Result<Agent> {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(index as u64);
        let mut config = self.agent_config(index);
        if self.orders_wait() {
            config.position_interval = REFERENCE_POSITION_INTERVAL;
        }
        Ok(Agent::new(config, seed, Instant::ZERO)?)
    }

    /// Where an aircraft stands: a swarm 10 m apart, its middle at the first waypoint;
    /// others at the first waypoint of their missions, unless they start elsewhere.
    pub fn home(&self, index: usize, seed: u64) -> Position {
        let start = match &self.task {
            Task::Swarm(_) | Task::Follow(_) => None,
            Task::Own(own) => own.missions.get(index).and_then(|m| m.start),
        };
        let frame = Frame::new(position(start.unwrap_or(self.route(index)[0])));
        let slot = match &self.task {
            Task::Swarm(swarm) => Formation::new(swarm.ground, swarm.aircraft, GROUND_DISTANCE_M)
                .map_or(DVec2::ZERO, |ground| ground.offset_m(index, self.heading_rad(index))),
            Task::Follow(follow) => Formation::new(Layout::Linear, follow.aircraft, GROUND_DISTANCE_M)
                .map_or(DVec2::ZERO, |row| row.offset_m(follow.place_in_row(index), self.heading_rad(index))),
            Task::Own(_) => DVec2::ZERO,
        };
        let mut luck = chance::child(seed, "placement", index as u64);
        let mut error = || (chance::uniform(&mut luck) * 2.0 - 1.0) * PLACEMENT_ERROR_M;
        frame.to_position(DVec3::new(slot.x + error(), slot.y + error(), 0.0))
    }

    /// Where an aircraft's first leg leads, clockwise from north.
    pub fn heading_rad(&self, index: usize) -> f64 {
        let route = self.route(index);
        let next = Frame::new(position(route[0])).to_local(position(route[1])).truncate();
        heading_rad(DVec2::ZERO, next)
    }

    /// Where a slot lies from the leader's, metres east and north, in the plan that the master makes.
    pub fn slot_offset(&self, slot: usize, seed: u64) -> Option<DVec2> {
        let Task::Swarm(swarm) = &self.task else { return None };
        let frame = Frame::new(position(swarm.mission[0]));
        let local = |p: Position| frame.to_local(p).truncate();
        let homes: DVec2 = (0..swarm.aircraft).map(|i| local(self.home(i, seed))).sum();
        let heading = heading_rad(homes / swarm.aircraft as f64, local(position(swarm.mission[1])));
        let formation = swarm.formation().ok()?;
        (slot < swarm.aircraft).then(|| formation.offset_m(slot, heading))
    }

    /// Where a slot lies from the leader's nose, right and ahead, metres, in a formation that turns with it.
    pub fn slot_in_heading(&self, slot: usize) -> Option<DVec2> {
        let Task::Follow(follow) = &self.task else { return None };
        let formation = Formation::new(follow.layout, follow.aircraft, follow.distance_m).ok()?;
        (slot < follow.aircraft).then(|| formation.offset_m(slot, 0.0))
    }

    /// An aircraft's simulated flight controller.
    pub fn controller(&self, index: usize, seed: u64) -> FlightController {
        let mut config = ControllerConfig::new((index % 250 + 1) as u8, self.home(index, seed));
        config.boot = self.boot;
        config.gps_noise_m = self.gps_noise_m;
        config.wind = self.wind;
        if let Task::Swarm(swarm) = &self.task {
            config.clock_walk_s = swarm.clock_walk_s;
        }
        if let Task::Follow(follow) = &self.task {
            config.heading_rad = self.heading_rad(index);
            config.heading_noise_rad = follow.heading_noise_rad;
        }
        if let Task::Own(_) | Task::Follow(_) = self.task {
            // The published flights had a battery without end; a mission of theirs takes 64 minutes.
            config.battery.capacity_mah = ENDLESS_MAH;
        }
        config.parameters.push((Parameter::WPNAV_SPEED, (self.speed_m_s(index) * 100.0) as f32));
        // Nobody switches all aircraft on in the same instant: their telemetry comes at different times.
        let mut luck = chance::child(seed, "boot", index as u64);
        let ticks = (chance::uniform(&mut luck) * BOOT_SPREAD_TICKS) as u64;
        let booted = Instant::from_millis(ticks * TICK.as_millis() as u64);
        FlightController::new(config, seed.wrapping_add(index as u64 * 0x1_0001), booted)
    }

    /// Whoever flies an aircraft by hand, from the start on.
    pub fn pilot(&self, index: usize, seed: u64) -> Option<Pilot> {
        match &self.task {
            Task::Follow(follow) => follow.pilot(index, seed),
            Task::Swarm(_) | Task::Own(_) => None,
        }
    }

    /// The radio channel among them.
    pub fn radio(&self, seed: u64) -> Channel {
        Channel::new(self.channel, self.draw, seed, self.aircraft())
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
    let leg_m = length_m / (waypoints.max(2) - 1) as f64;
    let place = |k: usize| [(k / 2) as f64 * leg_m, k.div_ceil(2) as f64 * leg_m];
    route(&(0..waypoints).map(place).collect::<Vec<_>>(), height_m)
}

/// Places of a route in metres east and north of [`ORIGIN`], as points.
pub fn route(east_north_m: &[[f64; 2]], height_m: f64) -> Vec<Point> {
    let frame = Frame::new(ORIGIN);
    east_north_m
        .iter()
        .map(|[east, north]| {
            let p = frame.to_position(DVec3::new(*east, *north, 0.0));
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
        let frame = Frame::new(position(scenario.route(0)[0]));
        let at: Vec<DVec3> = (0..9).map(|i| frame.to_local(scenario.home(i, 3))).collect();
        for w in at.windows(2) {
            assert!((w[0].distance(w[1]) - 10.0).abs() < 1.0);
        }
        assert!(at[4].length() < 0.5, "the middle one stands at the first waypoint");
    }

    #[test]
    fn each_stands_at_the_start_of_its_own_mission() {
        let points = [staircase(2, 100.0, 10.0), staircase(4, 900.0, 10.0).split_off(2)];
        let missions = points.map(|points| OwnMission { speed_m_s: 5.0, points, start: None }).to_vec();
        let scenario = Scenario::new("two", Task::Own(OwnTask { variant: Variant::MbcapE, missions }));
        scenario.check().unwrap();
        for i in 0..2 {
            let from_start = Frame::new(position(scenario.route(i)[0])).to_local(scenario.home(i, 3));
            assert!(from_start.truncate().length() < 0.5, "{from_start}");
            assert_eq!(scenario.mission_for(i), Some(scenario.route(i)));
        }
        assert!(scenario.id(1) > scenario.id(0), "the last has the right of way");
    }

    #[test]
    fn what_cannot_be_flown_is_named() {
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
        let lone =
            OwnMission { speed_m_s: 10.0, points: staircase(2, 100.0, 500.0).split_off(1), start: None };
        let task = OwnTask { variant: Variant::Off, missions: vec![lone] };
        let words = format!("{:#}", Scenario::new("own", Task::Own(task)).check().unwrap_err());
        assert!(words.contains("aircraft 1") && words.contains("found 1 waypoints"), "{words}");
    }
}
