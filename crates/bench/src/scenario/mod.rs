//! One flight to be flown: which aircraft fly what from where, in which wind and over which radio channel. The
//! deterministic bench and the real-time fleet build their aircraft from the same description.
//!
//! | module | |
//! |---|---|
//! | [`swarm`] | one mission flown as a formation (MUSCOP) |
//! | [`own`] | a mission of its own for each aircraft (Mission, Sweep, MBCAP) |
//! | [`follow`] | a formation that follows a piloted leader (FollowMe) |
//! | `route` | waypoints: from a file, from metres, the published staircases |
//!
//! What differs from one kind of task to another is in its module, behind the trait `Kind`; what is the same for all
//! is here.

pub mod follow;
pub mod own;
mod route;
pub mod swarm;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use wingbeat_agent::energy::Reserve;
use wingbeat_agent::{Agent, CompanionLoss, Config as AgentConfig, Coordination, Input, Outputs, Reply};
use wingbeat_api::ReadMission;
use wingbeat_cosim::copter::STRETCH;
use wingbeat_cosim::hosts::Federation;
use wingbeat_cosim::incidents;
use wingbeat_cosim::method::Method;
use wingbeat_cosim::ns3;
use wingbeat_geo::position::heading_rad;
use wingbeat_geo::{DVec2, DVec3, Duration, Frame, Instant, Position, Scale};
use wingbeat_protocol::swarm::budget::{Budget, Surroundings};
use wingbeat_protocol::{ConfigError, Fence, MissionExtras};
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::flight_controller::{Boot, Config as ControllerConfig, FlightController, Parameter, TICK};
use wingbeat_sim::keys::Signatures;
use wingbeat_sim::medium::Medium;
use wingbeat_sim::medium::csma::{self, Csma};
use wingbeat_sim::motion::{BatteryParameters, Profile, WindParameters};
use wingbeat_sim::pilot::Pilot;
use wingbeat_sim::rng;
use wingbeat_sim::sensors::ImuNoise;
use wingbeat_wire::{Point, VehicleId};

pub use follow::FollowTask;
pub use own::{OwnMission, OwnTask, Variant};
pub use route::{FileMission, ORIGIN, parse_mission, read_mission, route, sample_mission, staircase};
pub use swarm::SwarmTask;

use crate::axes::Settings;
use crate::lockstep;
use crate::media::Broadcasts;
use crate::trouble::Trouble;
use route::position;

/// Aircraft stand this far apart on the ground (the reference's ground formation: linear, 10 m).
pub(crate) const GROUND_DISTANCE_M: f64 = 10.0;
/// Flight controllers boot within one second of each other.
const BOOT_SPREAD_TICKS: f64 = 50.0;
/// An aircraft is not set down to the centimetre.
pub(crate) const PLACEMENT_ERROR_M: f64 = 0.3;
/// The most aircraft of one flight where none broadcasts.
const ALONE_MOST: usize = 512;
/// Points further than this from a flight's origin are refused: one plane does not measure them.
const PLANE_REACH_KM: f64 = 100.0;
/// A battery that is never empty.
const ENDLESS_MAH: f64 = 1e6;

/// ArduCopter 3.5.7 that is asked for four positions a second, as by the reference implementation, sends one every
/// twelfth of its ticks of 20 ms: 240.0 ms of its own time, measured over minutes with nine of them in SITL.
const REFERENCE_POSITION_INTERVAL: Duration = Duration::from_millis(240);

/// A scenario: the aircraft, their task and their surroundings.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Name of the mission, for tables.
    pub name: String,
    /// The aircraft and what they fly.
    pub task: Task,
    /// Reach of the radio.
    pub channel: Model,
    /// How often the loss on a link is drawn.
    pub draw: Draw,
    /// 802.11 with its frames, instead of `channel`.
    pub csma: Option<csma::Config>,
    /// ns-3, instead of `channel`.
    pub ns3: Option<ns3::Config>,
    /// The name of the medium, where what is transmitted is recorded and put through it afterwards.
    pub network: Option<String>,
    /// What each aircraft broadcasts there beside what its agent does.
    pub broadcasts: Option<Broadcasts>,
    /// What proves the senders of datagrams.
    pub signatures: Signatures,
    /// Standard deviation of the wandering position error, metres.
    pub gps_noise_m: f64,
    /// What the inertial sensors of programs are off by; simulated flight controllers have none.
    pub imu: ImuNoise,
    /// The same for all aircraft.
    pub wind: WindParameters,
    /// Difference between the heights of the highest and the lowest home, metres.
    pub slope_m: f64,
    /// What the aircraft are told of where they fly; `None`: what is so, and at least the default.
    pub surroundings: Option<Surroundings>,
    /// How far apart they stand on the ground, metres.
    pub ground_distance_m: f64,
    /// Closer than this counts as a collision, metres.
    pub collision_distance_m: f64,
    /// How long the flight controllers take to get ready.
    pub boot: Boot,
    /// The autopilot that is simulated, or the one that is most like the program.
    pub profile: Profile,
    /// Constant position error of each aircraft over the ground, metres, in a direction that is drawn for each.
    pub gnss_bias_m: f64,
    /// Height of the ground above sea level, millimetres.
    pub ground_altitude_mm: i32,
    /// The batteries, where they are not the task's.
    pub charge: Option<Charge>,
    /// What is kept of them, where `charge` is one: otherwise nothing limits a flight.
    pub reserve: Reserve,
    /// Origin of the frame in which this flight is measured, and in which its gusts and starts lie.
    pub origin: Position,
    /// Where the aircraft stand, metres east and north of `origin`; empty: as the task has it.
    pub starts: Vec<DVec3>,
    /// What goes wrong.
    pub trouble: Vec<Trouble>,
    /// What flies aircraft instead of their agents.
    pub scripts: Vec<Scripted>,
    /// The ArduCopter program that flies, in virtual time, instead of a simulated flight controller.
    pub arducopter: Option<PathBuf>,
    /// The simulators that move the aircraft of that program.
    pub physics: Option<Simulators>,
    /// How often bytes cross that program's serial port.
    pub step: Duration,
    /// The other computers that fly a part of the aircraft.
    pub hosts: Option<Federation>,
    /// Parameters of the flight controllers that differ from what the task sets.
    pub parameters: Vec<(Parameter, f32)>,
    /// The height above home at which each flight controller returns (`RTL_ALT`), metres; the
    /// autopilot's usual one where none is stated.
    pub return_heights_m: Vec<f64>,
    /// What the aircraft are configured with in addition to the task.
    pub settings: Settings,
    /// The missions of files as they were read, one for all aircraft or one for each; empty without files.
    pub stated: Vec<ReadMission>,
}

/// A script that flies an aircraft.
#[derive(Clone, Debug, PartialEq)]
pub struct Scripted {
    /// The aircraft's index.
    pub aircraft: usize,
    /// Its file.
    pub path: PathBuf,
    /// A hash over what the file holds.
    pub text: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// `HOST:PORT`, where it connects.
    pub address: String,
    /// The UDP port of its radio, where it has one.
    pub radio: Option<u16>,
}

/// Where other simulators are, that of the first aircraft, and each further one ten ports higher, as ArduPilot's instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulators {
    host: String,
    port: u16,
}

/// Between the ports of two simulators.
const SIMULATOR_PORTS: usize = 10;

impl Simulators {
    /// That of an aircraft.
    ///
    /// # Errors
    /// The host has no address, or there are not so many ports.
    pub fn of(&self, index: usize) -> Result<SocketAddr> {
        let port = u16::try_from(usize::from(self.port) + SIMULATOR_PORTS * index).with_context(|| {
            format!("physics: found no port for aircraft {}, expected a lower one", index + 1)
        })?;
        let place = || format!("physics: {}: expected an address", self.host);
        (&*self.host, port).to_socket_addrs().with_context(place)?.next().with_context(place)
    }
}

impl std::str::FromStr for Simulators {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.strip_prefix("proxy:").and_then(|place| place.rsplit_once(':'));
        let found = parts.and_then(|(host, port)| Some((host, port.parse().ok().filter(|port| *port > 0)?)));
        let (host, port) =
            found.with_context(|| format!("physics: found '{text}', expected proxy:HOST:PORT"))?;
        Ok(Self { host: host.to_owned(), port })
    }
}

/// A battery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Charge {
    /// Its capacity; `None`: the simulated flight controller's default.
    pub capacity_mah: Option<f64>,
    /// Its charge at the beginning, 0 to 100.
    pub percent: f64,
}

/// The aircraft and what they fly.
// A handful of them live at a time.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// One mission, flown as a formation (MUSCOP); the first aircraft is the master.
    Swarm(SwarmTask),
    /// A mission of its own for each aircraft (Mission, Sweep, MBCAP).
    Own(OwnTask),
    /// A formation that follows a piloted leader (FollowMe); the first aircraft is the leader.
    Follow(FollowTask),
}

/// What one kind of task decides. `index` is an aircraft's, from 0.
trait Kind {
    fn aircraft(&self) -> usize;

    /// The waypoints that an aircraft flies along: its own, or the swarm's.
    fn route(&self, index: usize) -> &[Point];

    fn speed_m_s(&self, index: usize) -> f64;

    /// For a row of a table.
    fn label(&self, name: &str) -> String;

    /// One line for the operator.
    fn summary(&self, name: &str) -> String;

    fn check(&self, scenario: &Scenario) -> Result<()>;

    fn agent_config(&self, index: usize) -> AgentConfig;

    /// The mission that the operator uploads to an aircraft.
    fn mission_for(&self, index: usize) -> Option<&[Point]>;

    /// See [`OwnMission::leaves_at_s`].
    fn leaves_at_s(&self, _index: usize) -> &[f64] {
        &[]
    }

    /// The middle of the row on the ground, or where one aircraft stands.
    fn start(&self, index: usize) -> Point {
        self.route(index)[0]
    }

    /// From the start to where an aircraft stands, metres east and north.
    fn ground_offset_m(&self, _index: usize, _heading_rad: f64, _distance_m: f64) -> DVec2 {
        DVec2::ZERO
    }

    /// What its flight controllers have that others have not.
    fn equip(&self, config: &mut ControllerConfig, heading_rad: f64);

    fn pilot(&self, _index: usize, _seed: u64) -> Option<Pilot> {
        None
    }

    fn variant(&self) -> Option<Variant> {
        None
    }

    fn orders_wait(&self) -> bool {
        false
    }

    fn is_unprotected(&self) -> bool {
        false
    }

    /// See [`Scenario::slot_offset`].
    fn slot_offset(&self, _slot: usize, _homes: &dyn Fn(usize) -> Position) -> Option<DVec2> {
        None
    }

    /// See [`Scenario::slot_in_heading`].
    fn slot_in_heading(&self, _slot: usize) -> Option<DVec2> {
        None
    }
}

impl Task {
    fn kind(&self) -> &dyn Kind {
        match self {
            Self::Swarm(task) => task,
            Self::Own(task) => task,
            Self::Follow(task) => task,
        }
    }
}

impl Scenario {
    /// The published MUSCOP flight: nine aircraft in line, 50 m apart, 10 m/s, ideal channel.
    pub fn muscop(name: &str, mission: Vec<Point>) -> Self {
        Self::new(name, Task::Swarm(SwarmTask::published(mission)))
    }

    /// A task in calm air, over an ideal channel, with perfect positions.
    pub fn new(name: &str, task: Task) -> Self {
        Self {
            name: name.to_owned(),
            task,
            channel: Model::Unrestricted,
            draw: Draw::PerSecond,
            csma: None,
            ns3: None,
            network: None,
            broadcasts: None,
            signatures: Signatures::default(),
            gps_noise_m: 0.0,
            imu: ImuNoise::default(),
            wind: WindParameters::default(),
            slope_m: 0.0,
            surroundings: None,
            ground_distance_m: GROUND_DISTANCE_M,
            collision_distance_m: 5.0,
            boot: Boot::Warm,
            profile: Profile::Copter357,
            gnss_bias_m: 0.0,
            ground_altitude_mm: ORIGIN.altitude_mm,
            charge: None,
            reserve: Reserve::default(),
            origin: ORIGIN,
            starts: Vec::new(),
            trouble: Vec::new(),
            scripts: Vec::new(),
            arducopter: None,
            physics: None,
            step: STRETCH,
            hosts: None,
            parameters: Vec::new(),
            return_heights_m: Vec::new(),
            settings: Settings::default(),
            stated: Vec::new(),
        }
    }

    /// Measures the flight from where its first aircraft starts, for missions with positions of their own. A plane that
    /// touches the earth elsewhere shows turned and stretched distances.
    #[must_use]
    pub fn measured_from_its_start(mut self) -> Self {
        if !self.kind().route(0).is_empty() {
            self.origin = position(self.kind().start(0));
        }
        self
    }

    fn kind(&self) -> &dyn Kind {
        self.task.kind()
    }

    /// Number of aircraft.
    pub fn aircraft(&self) -> usize {
        self.kind().aircraft()
    }

    /// Number of waypoints: the swarm's, or the first aircraft's.
    pub fn waypoints(&self) -> usize {
        self.kind().route(0).len()
    }

    /// Height of an aircraft's first waypoint above home, metres.
    pub fn height_m(&self, index: usize) -> f64 {
        self.kind().route(index).first().map_or(0.0, |w| f64::from(w.height_mm) * 1e-3)
    }

    /// What keeps aircraft on missions of their own apart; `None` of other tasks.
    pub fn variant(&self) -> Option<Variant> {
        self.kind().variant()
    }

    /// Whether orders wait for the flight controller's next frame.
    pub fn orders_wait(&self) -> bool {
        self.kind().orders_wait()
    }

    /// What is flown and how, for a row of a table.
    pub fn label(&self) -> String {
        let network = self.network.as_ref().map_or_else(String::new, |network| format!(", {network}"));
        format!("{}{network}{}", self.kind().label(&self.name), self.settings.suffix())
    }

    /// Whether closeness is what the flight is to show: nothing keeps the aircraft apart, or a formation that an
    /// aircraft would refuse as too close.
    pub fn is_unprotected(&self) -> bool {
        self.kind().is_unprotected()
    }

    /// The mission that the operator uploads to an aircraft: in a swarm only the master gets one.
    pub fn mission_for(&self, index: usize) -> Option<&[Point]> {
        self.kind().mission_for(index)
    }

    /// What the file of that mission states, if it has one.
    pub fn stated_for(&self, index: usize) -> Option<&ReadMission> {
        self.mission_for(index)?;
        match &self.task {
            Task::Own(_) => self.stated.get(index),
            Task::Swarm(_) | Task::Follow(_) => self.stated.first(),
        }
    }

    /// What the mission of an aircraft states besides its waypoints, as its protocol flies it.
    ///
    /// # Errors
    /// The protocol does not fly a part of it, and the part may not be left out.
    pub fn extras_for(&self, index: usize) -> Result<MissionExtras> {
        let Some(ReadMission { mission, .. }) = self.stated_for(index) else {
            return Ok(MissionExtras::default());
        };
        let protocol = self.protocol_of(index)?;
        let refusals = mission.refusals(protocol);
        ensure!(refusals.is_empty(), "mission {:?}: {}", mission.name, refusals.join("; "));
        let mut flown = mission.flown(protocol);
        // The bench configures its flight controllers with the speed of the scenario.
        flown.speed_m_s = flown.speed_m_s.filter(|speed_m_s| *speed_m_s != self.speed_m_s(index));
        Ok(wingbeat_onboard::mission::extras(&flown)?)
    }

    fn protocol_of(&self, index: usize) -> Result<&'static str> {
        let config = self.kind().agent_config(index);
        let agent = Agent::new(config, 0, Instant::ZERO).context("configuration")?;
        Ok(agent.status(Instant::ZERO).protocol)
    }

    /// When an aircraft leaves its waypoints at the earliest: [`OwnMission::leaves_at_s`].
    pub fn leaves_at_s(&self, index: usize) -> &[f64] {
        self.kind().leaves_at_s(index)
    }

    /// An aircraft's speed along its legs, metres per second.
    pub fn speed_m_s(&self, index: usize) -> f64 {
        self.kind().speed_m_s(index)
    }

    /// What is flown, in one line.
    pub fn summary(&self) -> String {
        self.kind().summary(&self.name)
    }

    /// What mission files state and these aircraft do not fly, or fly otherwise: one line each.
    ///
    /// # Errors
    /// As [`Scenario::check`].
    pub fn notes(&self) -> Result<Vec<String>> {
        self.check()?;
        let mut notes = Vec::new();
        for (index, ReadMission { mission, notes: of_the_file, .. }) in self.stated.iter().enumerate() {
            let mut mission = mission.clone();
            // The bench configures its flight controllers with the speed of the scenario.
            mission.speed_m_s = mission.speed_m_s.filter(|speed_m_s| *speed_m_s != self.speed_m_s(index));
            let protocol = self.agent(index, 0)?.status(Instant::ZERO).protocol;
            let all = of_the_file.iter().cloned().chain(mission.notes(protocol));
            notes.extend(all.map(|note| format!("mission {:?}: {note}", mission.name)));
        }
        if self.physics.is_some() && (self.gps_noise_m > 0.0 || self.imu != ImuNoise::default()) {
            notes.push("gps_noise_m, gnss_noise_m and noise of the inertial sensors: the simulator has its own sensors, without ours".into());
        }
        if self.arducopter.is_some() {
            let controllers = "simulated flight controllers alone have it, and this flight is flown without";
            match &self.task {
                Task::Swarm(swarm) if swarm.clock_walk_s > 0.0 => {
                    notes.push(format!("swarm.clock_walk_ms: {controllers}"));
                }
                Task::Follow(follow) if follow.heading_noise_rad > 0.0 => {
                    notes.push(format!("follow.heading_noise_deg: {controllers}"));
                }
                Task::Swarm(_) | Task::Own(_) | Task::Follow(_) => {}
            }
        }
        for (index, trouble) in self.trouble.iter().enumerate() {
            if trouble.is_of_link() && self.broadcasts_nothing() {
                notes.push(format!(
                    "fault {}: it never comes: with the variant {} aircraft send no datagrams, and no link is lost or found",
                    index + 1,
                    self.variant().map_or("off", Variant::name)
                ));
            }
        }
        if self.arducopter.is_none() && self.imu != ImuNoise::default() {
            notes.push(
                "conditions.gyroscope_noise_deg_s, accelerometer_noise_m_s2: ArduCopter programs have such sensors, simulated flight \
                 controllers do not"
                    .into(),
            );
        }
        Ok(notes)
    }

    /// What cannot be flown is refused before anything starts.
    ///
    /// # Errors
    /// Names what was found and what was expected.
    pub fn check(&self) -> Result<()> {
        let (found, most) = (self.aircraft(), self.aircraft_most());
        ensure!((1..=most).contains(&found), "aircraft: found {found}, expected 1 to {most}");
        let wind = self.wind.speed_m_s;
        ensure!((0.0..=30.0).contains(&wind), "wind: found {wind} m/s, expected 0 to 30");
        let noise_m = self.gps_noise_m;
        let slope_m = self.slope_m;
        ensure!((0.0..=100.0).contains(&slope_m), "slope_m: found {slope_m}, expected 0 to 100");
        ensure!((0.0..=10.0).contains(&noise_m), "gps_noise_m: found {noise_m}, expected 0 to 10");
        if self.arducopter.is_some() {
            for (index, trouble) in self.trouble.iter().enumerate() {
                ensure!(
                    trouble.inflict.incident().is_none_or(|incident| incidents::check(incident).is_ok()),
                    "fault {}: found {:?}, expected what happens to an ArduCopter program: simulated flight controllers alone fail so",
                    index + 1,
                    trouble.inflict
                );
            }
        }
        if self.physics.is_some() {
            ensure!(
                self.gnss_bias_m == 0.0
                    && self.charge.is_none()
                    && self.trouble.iter().all(|trouble| trouble.inflict.incident().is_none()),
                "physics: found a position bias, a battery or a fault of the flight controller, expected none: the simulator has the aircraft"
            );
            ensure!(
                self.arducopter.is_some(),
                "physics: found one, expected none: simulated flight controllers have their own (autopilot = \"arducopter:PATH\")"
            );
            ensure!(
                self.wind == WindParameters::default(),
                "physics: found wind, expected none: the simulator has its own"
            );
        }
        self.check_scripts()?;
        self.check_place()?;
        for flow in self.ns3.iter().flat_map(|ns3| &ns3.flows) {
            let to = match flow.to {
                ns3::End::Radio(to) => to,
                ns3::End::Ground(_) => 0,
            };
            let last = flow.from.max(to) + 1;
            ensure!(last <= found, "channel.ns3.flow: found aircraft {last}, expected 1 to {found}");
        }
        let is_stepwise = self.ns3.as_ref().is_some_and(|ns3| ns3.method == Method::Stepwise);
        ensure!(
            !(is_stepwise && self.flies_by_radio()),
            "channel.ns3.method: found stepwise, expected another: what these aircraft receive decides how they fly, and the network \
             would run after the flight"
        );
        ensure!(
            self.network.is_none() || !self.flies_by_radio(),
            "media: found aircraft that fly by what they receive, or a fault that the network brings, expected missions of their own with \
             off or sweep: each network would make another flight"
        );
        for (index, trouble) in self.trouble.iter().enumerate() {
            trouble.check(found).with_context(|| format!("fault {}", index + 1))?;
        }
        self.kind().check(self)
    }

    /// Returns the largest number of aircraft in one flight. Those that broadcast are bound by the roster that each holds.
    fn aircraft_most(&self) -> usize {
        match self.variant() {
            Some(Variant::Off) => ALONE_MOST,
            Some(Variant::Sweep | Variant::Mbcap | Variant::MbcapE) | None => wingbeat_wire::SWARM_MAX,
        }
    }

    /// Returns what proves the senders of datagrams. More aircraft than a roster holds broadcast none.
    pub(crate) fn signatures_of_all(&self) -> Signatures {
        if self.aircraft() > wingbeat_wire::SWARM_MAX { Signatures::StandIn } else { self.signatures }
    }

    /// Refuses a flight whose aircraft are so far apart that one plane cannot measure them.
    fn check_place(&self) -> Result<()> {
        let scale = Scale::at(self.origin);
        for index in 0..self.aircraft() {
            let route = self.kind().route(index);
            let start = (!route.is_empty()).then(|| self.kind().start(index));
            for point in route.iter().chain(&start) {
                let there = position(*point);
                let away_km = scale.offset_m(self.origin, there).truncate().length() * 1e-3;
                ensure!(
                    there.is_on_earth() && away_km <= PLANE_REACH_KM,
                    "mission {}: aircraft {}: found {:.7}, {:.7}, which is {away_km:.0} km from the start of the flight at {:.7}, {:.7}, \
                     expected {PLANE_REACH_KM} km at most: fly missions at different places as flights of their own",
                    self.name,
                    index + 1,
                    there.latitude_deg(),
                    there.longitude_deg(),
                    self.origin.latitude_deg(),
                    self.origin.longitude_deg()
                );
            }
        }
        Ok(())
    }

    fn check_scripts(&self) -> Result<()> {
        ensure!(
            self.scripts.is_empty() || self.variant().is_some(),
            "script: found a swarm or a formation, expected missions of their own (own): the others would wait for its agent"
        );
        for (index, script) in self.scripts.iter().enumerate() {
            let number = script.aircraft + 1;
            ensure!(
                self.scripts[..index].iter().all(|other| other.aircraft != script.aircraft),
                "script.aircraft: found {number} twice, expected one script for each"
            );
            ensure!(
                self.trouble.iter().all(|trouble| trouble.inflict.companion() != Some(number)),
                "fault: found one of the companion of aircraft {number}, expected another: a script is in its place"
            );
        }
        Ok(())
    }

    /// Refuses a configuration and a mission that the aircraft itself refuses.
    fn check_agent(&self, index: usize) -> Result<()> {
        let kind = self.kind();
        ConfigError::speed("speed_m_s", kind.speed_m_s(index))?;
        let config = self.agent_config(index);
        let (height_least_m, height_most_m) = config.coordination.heights_m();
        let mut agent = Agent::new(config, 0, Instant::ZERO).context("configuration")?;
        let Some(points) = kind.mission_for(index) else { return Ok(()) };
        let mut outputs = Outputs::default();
        let extras = self.extras_for(index)?;
        agent.handle(Instant::ZERO, Input::MissionWith(points, &extras), &mut outputs);
        if let Some(Reply::Refused(why)) = outputs.reply {
            bail!("mission {}: {why}", self.name);
        }
        // An aircraft on the ground judges the distance too; here only the heights are known.
        let fence = Fence { height_least_m, height_most_m, distance_most_m: f64::INFINITY };
        fence.check(position(points[0]), points).with_context(|| format!("mission {}", self.name))?;
        route::check(&self.name, kind.route(index))
    }

    /// Whether what aircraft receive decides how they fly, or what goes wrong.
    pub fn flies_by_radio(&self) -> bool {
        let is_alone = self.variant().is_some_and(|variant| !variant.avoids());
        let is_scripted = self.scripts.iter().any(|script| script.radio.is_some());
        !is_alone || is_scripted || self.trouble.iter().any(Trouble::is_of_network)
    }

    /// Returns whether no aircraft transmits anything that another could receive.
    fn broadcasts_nothing(&self) -> bool {
        self.variant().is_some_and(|variant| !variant.avoids())
            && self.scripts.iter().all(|script| script.radio.is_none())
    }

    /// The id of an aircraft; the first is a swarm's master, the last has the right of way.
    pub fn id(&self, index: usize) -> VehicleId {
        id(index)
    }

    /// What its aircraft are told of where they fly.
    pub fn surroundings(&self) -> Surroundings {
        let usual = Surroundings::default();
        self.surroundings.unwrap_or(Surroundings {
            gnss_error_m: usual.gnss_error_m.max(self.gps_noise_m),
            wind_m_s: usual.wind_m_s.max(self.wind.speed_m_s),
            slope_m: usual.slope_m.max(self.slope_m),
        })
    }

    /// The separation budget of what is so, and not of what its aircraft are told.
    pub fn budget(&self) -> Budget {
        let (gnss_error_m, wind_m_s) = (self.gps_noise_m, self.wind.speed_m_s);
        let surroundings = Surroundings { gnss_error_m, wind_m_s, slope_m: self.slope_m };
        Budget { separation_m: self.collision_distance_m, arrival_m: 1.0, surroundings }
    }

    /// What an aircraft's agent is configured with.
    pub fn agent_config(&self, index: usize) -> AgentConfig {
        let mut config = self.kind().agent_config(index);
        let surroundings = self.surroundings();
        match &mut config.coordination {
            Coordination::Muscop(config) => config.swarm.surroundings = surroundings,
            Coordination::FollowMe(config) => {
                config.swarm.surroundings = surroundings;
                config.swarm.landing_distance_m = config.swarm.default_landing_distance_m();
            }
            // What keeps these apart is no formation.
            Coordination::Mission(_) | Coordination::Mbcap(_) | Coordination::Sweep(_) => {}
        }
        self.settings.apply(&mut config.coordination);
        // The published flights had no limit on the battery.
        let energy = config.energy.and(self.charge).map(|_| self.reserve);
        AgentConfig { companion_loss: CompanionLoss::EndsWithIt, energy, ..config }
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

    /// Where an aircraft stands: a swarm 10 m apart with its middle at the first waypoint;
    /// others at the first waypoint of their missions, unless they start elsewhere.
    ///
    /// On a slope the ground rises in one direction, which is drawn.
    pub fn home(&self, index: usize, seed: u64) -> Position {
        let level = self.level_home(index, seed);
        if self.slope_m <= 0.0 {
            return level;
        }
        let (frame, mut rng) = (Frame::new(self.origin), rng::child(seed, "slope", 0));
        let (east, north) = libm::sincos(rng::uniform(&mut rng) * core::f64::consts::TAU);
        let along_m = |home| frame.to_local(home).truncate().dot(DVec2::new(east, north));
        let all = (0..self.aircraft()).map(|i| along_m(self.level_home(i, seed)));
        let (lowest_m, highest_m) =
            all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(at), high.max(at)));
        let share = (along_m(level) - lowest_m) / (highest_m - lowest_m).max(f64::MIN_POSITIVE);
        Position { altitude_mm: level.altitude_mm + (share * self.slope_m * 1e3) as i32, ..level }
    }

    fn level_home(&self, index: usize, seed: u64) -> Position {
        let altitude_mm = self.ground_altitude_mm;
        if let Some(at) = self.starts.get(index) {
            return Position { altitude_mm, ..Frame::new(self.origin).to_position(*at) };
        }
        let kind = self.kind();
        let frame = Frame::new(position(kind.start(index)));
        let slot = kind.ground_offset_m(index, self.heading_rad(index), self.ground_distance_m);
        let mut rng = rng::child(seed, "placement", index as u64);
        let mut error = || (rng::uniform(&mut rng) * 2.0 - 1.0) * PLACEMENT_ERROR_M;
        Position { altitude_mm, ..frame.to_position(DVec3::new(slot.x + error(), slot.y + error(), 0.0)) }
    }

    /// Direction of an aircraft's first leg, clockwise from north.
    pub fn heading_rad(&self, index: usize) -> f64 {
        let route = self.kind().route(index);
        let next = Frame::new(position(route[0])).to_local(position(route[1])).truncate();
        heading_rad(DVec2::ZERO, next)
    }

    /// From the leader's slot to another, metres east and north, in the plan that the master makes.
    pub fn slot_offset(&self, slot: usize, seed: u64) -> Option<DVec2> {
        self.kind().slot_offset(slot, &|index| self.home(index, seed))
    }

    /// From the leader's slot to another, metres right and ahead of the leader's nose, in a formation that turns with
    /// the leader.
    pub fn slot_in_heading(&self, slot: usize) -> Option<DVec2> {
        self.kind().slot_in_heading(slot)
    }

    /// Returns the parameters of an aircraft's flight controller that differ from what the task
    /// sets.
    pub fn parameters_of(&self, index: usize) -> impl Iterator<Item = (Parameter, f32)> {
        let return_m = self.return_heights_m.get(index);
        let return_height = return_m.map(|&return_m| (Parameter::RTL_ALT, (return_m * 100.0) as f32));
        self.parameters.iter().copied().chain(return_height)
    }

    /// An aircraft's simulated flight controller.
    pub fn controller(&self, index: usize, seed: u64) -> FlightController {
        let mut config = ControllerConfig::new((index % 250 + 1) as u8, self.home(index, seed));
        (config.boot, config.profile) = (self.boot, self.profile);
        config.gps_noise_m = self.gps_noise_m;
        config.wind = self.wind;
        config.weather = Some((seed, self.origin));
        self.kind().equip(&mut config, self.heading_rad(index));
        if let Some(charge) = self.charge {
            config.battery.capacity_mah =
                charge.capacity_mah.unwrap_or(BatteryParameters::default().capacity_mah);
        }
        config.parameters.push((Parameter::WPNAV_SPEED, (self.speed_m_s(index) * 100.0) as f32));
        config.parameters.extend(self.parameters_of(index));
        let booted = self.booted_at(index, seed);
        let mut controller =
            FlightController::new(config, seed.wrapping_add(index as u64 * 0x1_0001), booted);
        if let Some(charge) = self.charge.filter(|charge| charge.percent < 100.0) {
            controller.set_battery_percent(charge.percent);
        }
        controller
    }

    /// When an aircraft is switched on: not all in the same instant, so their telemetry comes at different times.
    pub fn booted_at(&self, index: usize, seed: u64) -> Instant {
        let mut rng = rng::child(seed, "boot", index as u64);
        let ticks = (rng::uniform(&mut rng) * BOOT_SPREAD_TICKS) as u64;
        Instant::from_millis(ticks * TICK.as_millis() as u64)
    }

    /// How far an aircraft's constant position error moves its estimate, metres east, north and up.
    pub fn gnss_bias(&self, index: usize, seed: u64) -> DVec3 {
        bias(seed, index, self.gnss_bias_m)
    }

    /// The pilot of an aircraft that is flown by hand from the start on.
    pub fn pilot(&self, index: usize, seed: u64) -> Option<Pilot> {
        self.kind().pilot(index, seed)
    }

    /// The medium among them.
    ///
    /// # Errors
    /// It is ns-3, and our program of it is not there or does not start.
    pub fn radio(&self, seed: u64) -> Result<Box<dyn Medium>> {
        Ok(match (&self.ns3, &self.csma) {
            (Some(config), _) => lockstep::medium(config, seed, self.aircraft(), self.flies_by_radio())?,
            (None, Some(config)) => Csma::new(config.clone(), seed, self.aircraft()).into(),
            (None, None) => Channel::new(self.channel.clone(), self.draw, seed, self.aircraft()).into(),
        })
    }

    /// The flight without what carries its datagrams, where that does not decide how it is flown.
    pub(crate) fn without_network(&self) -> Self {
        let channel = Model::Unrestricted;
        Self { network: None, channel, csma: None, ns3: None, ..self.clone() }
    }

    /// Whether it asks of flight controllers what they do in virtual time alone.
    fn disturbs_controllers(&self) -> bool {
        !self.trouble.is_empty() || self.gnss_bias_m != 0.0 || self.charge.is_some()
    }

    /// Refuses a medium and an autopilot that exist in virtual time only.
    ///
    /// # Errors
    /// Names the key, what was found and what was expected.
    pub fn check_real_time(&self) -> Result<()> {
        ensure!(
            !self.disturbs_controllers(),
            "fault, conditions.gnss_bias_m, battery_mah, battery_percent: found some, expected none: they are simulated in virtual \
             time only (wingbeat bench run)"
        );
        ensure!(
            self.scripts.is_empty(),
            "script: found one, expected none: scripts fly in virtual time only (wingbeat bench run)"
        );
        ensure!(
            (0..self.aircraft()).all(|i| self.leaves_at_s(i).is_empty()),
            "leaves_at_s: found some, expected none: the operator keeps a timetable in virtual time only (wingbeat bench run)"
        );
        ensure!(
            self.network.is_none(),
            "media: found some, expected none: flights are put through them in virtual time only (wingbeat bench run)"
        );
        ensure!(
            self.csma.is_none() && self.ns3.is_none(),
            "channel.model: found {}, expected unrestricted, range:METRES or 802.11a: frames are modelled in \
             virtual time only (wingbeat bench run)",
            if self.ns3.is_some() { "ns3" } else { "csma" }
        );
        ensure!(
            self.arducopter.is_none(),
            "autopilot: found arducopter:PATH, expected a version: programs fly in step in virtual time only (wingbeat bench run)"
        );
        Ok(())
    }

    /// The channel among aircraft that fly in real time.
    ///
    /// # Errors
    /// As [`Scenario::check_real_time`].
    pub fn real_time_channel(&self, seed: u64) -> Result<Channel> {
        self.check_real_time()?;
        Ok(Channel::new(self.channel.clone(), self.draw, seed, self.aircraft()))
    }
}

/// A constant position error of this length, in a direction that is drawn for each aircraft.
pub(crate) fn bias(seed: u64, aircraft: usize, length_m: f64) -> DVec3 {
    // Named as the drills had it first: their traces depend on it.
    let mut rng = rng::child(seed, "drill bias", aircraft as u64);
    let (sin, cos) = libm::sincos(rng::uniform(&mut rng) * core::f64::consts::TAU);
    DVec3::new(sin, cos, 0.0) * length_m
}

fn id(index: usize) -> VehicleId {
    VehicleId(0x0200_0000_0001 + index as u64)
}
