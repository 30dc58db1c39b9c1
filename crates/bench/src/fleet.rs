//! A scenario flown in real time (or N times as fast): one daemon per aircraft, each on its own loopback
//! port and exactly the library that `wingbeatd` runs, against simulated flight controllers on TCP and
//! the simulated channel; and the ground service with the console in front of them.

mod pace;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail, ensure};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::sleep_until;
use wingbeat_api::{
    self as api, AircraftStatus, Command, FleetCommandRequest, FleetMissionUpload, FleetPicture, LinkState,
    LogLine, MissionItem, MissionUpload, VehicleOutcome,
};
use wingbeat_geo::{DVec3, Duration, Frame};
use wingbeat_ground::Ground;
use wingbeat_hub::{Hub, HubRadio, serve};
use wingbeat_link::Endpoint;
use wingbeat_onboard::keys::enrolment::{self, Change};
use wingbeat_onboard::keys::{ConsoleKeys, Keys, Store, Timestamp};
use wingbeat_onboard::recording;
use wingbeat_radio::Clock;
use wingbeat_record::store::Limits;
use wingbeat_sim::flight_controller::Truth;
use wingbeat_sim::keys::{self as simulated, CONSOLE, Signatures};
use wingbeat_sim::observer::{Observer, Sample};
use wingbeat_wire::{Role, Signer, VehicleId};

use crate::flight::Radio;
use crate::report;
use crate::scenario::Scenario;
use crate::transmitter::{Started, Transmitter};
use pace::Pace;

/// What an aircraft has unless it is configured otherwise.
const LINK_PROBE_PERIOD: Duration = Duration::from_secs(1);
/// How often the observer samples, in simulated time.
const SAMPLE_PERIOD: Duration = Duration::from_millis(100);
/// A mission is given so often, until the ground service holds the lease,
const ATTEMPTS: u32 = 100;
/// this far apart, in real time.
const ATTEMPT_PERIOD: Duration = Duration::from_millis(100);
/// *Setup* can be pressed within this, in real time: ArduCopter takes half a minute to know where it is.
const SETUP_WITHIN_S: f64 = 120.0;
/// What the ids of commands begin with that no operator pressed.
const PRESSED: &str = "auto-";
/// A mission that is not over after so much simulated time has failed.
const TIME_LIMIT: Duration = Duration::from_secs(3_600);

/// How a fleet is flown.
#[derive(Clone, Debug)]
pub struct Config {
    /// The scenario that the fleet flies.
    pub scenario: Scenario,
    /// What randomness is drawn from.
    pub seed: u64,
    /// How much faster than the wall clock.
    pub speed: f64,
    /// Where the console is served.
    pub ground: SocketAddr,
    /// The built page.
    pub web_dir: Option<PathBuf>,
    /// A map of the ground for the page, as a PMTiles archive or MBTiles.
    pub tiles: Option<PathBuf>,
    /// Where the aircraft log their flights, and the folder `console` with the keys of the fleet's console; without it nothing is
    /// logged, and the keys are thrown away.
    pub logs: Option<PathBuf>,
    /// Who may use the console.
    pub protection: wingbeat_ground::Protection,
    /// Press *Setup* and *Start* without waiting for an operator.
    pub auto: bool,
    /// End when the flight ends.
    pub headless: bool,
}

/// How a fleet's flight ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every aircraft completed the mission and landed, and none collided.
    Succeeded,
    /// One of these does not hold; the table shows which.
    Failed,
    /// Stopped by Ctrl-C before the flight was over.
    Stopped,
}

/// Flies until the flight is over (headless) or until `stop` completes. Prints the console's address,
/// a line per phase, and the table of results.
///
/// # Errors
/// A port that is taken, a scenario that cannot be flown: one message, and nothing flies.
pub async fn fly(config: Config, stop: impl Future<Output = ()>) -> Result<Ended> {
    let Config { scenario, seed, speed, ground, web_dir, tiles, logs, protection, auto, headless } = config;
    scenario.check()?;
    scenario.check_real_time()?;
    let clock = Clock::start(speed)?;
    let fleet = Box::pin(Fleet::start(scenario, seed, clock, logs.as_deref())).await?;
    let has_no_page = web_dir.is_none();
    let ground = Ground::start(wingbeat_ground::Config {
        bind: ground,
        aircraft: fleet.addresses(),
        web_dir,
        tiles,
        parameters: None,
        records: None,
        hosts: Default::default(),
        console: Some(fleet.console()),
        protection,
    })
    .await?;
    println!("PC Companion: http://{}", ground.address());
    if has_no_page && !headless {
        println!("its API alone, without a page: --web DIR serves one");
    }
    fleet.upload_mission(&ground).await?;
    let scenario = &fleet.scenario;
    let (summary, profile) = (scenario.summary(), scenario.profile);
    println!("{summary}, simulated ArduCopter {profile}, {} times real time, seed {seed}", clock.speed());
    let mut stop = pin!(stop);
    let ended = tokio::select! {
        flown = fleet.watch(auto.then_some(Press { ground: &ground, is_watched: !headless }), TIME_LIMIT) => {
            let (observer, pace) = flown?;
            let ended = fleet.report(&observer);
            match pace.refusal(clock.speed()) {
                Some(refusal) => {
                    println!("{refusal}");
                    Ended::Failed
                }
                None => ended,
            }
        }
        () = &mut stop => Ended::Stopped,
    };
    if ended != Ended::Stopped && !headless {
        println!("the page stays until Ctrl-C");
        stop.await;
    }
    if ended == Ended::Stopped {
        println!("stopped");
    }
    ground.stop().await;
    fleet.stop().await;
    Ok(ended)
}

/// Keys that are drawn from the seed, and thrown away with the fleet: each aircraft's, and its console's.
fn thrown_away(seed: u64, ids: impl Iterator<Item = VehicleId>) -> Result<(Vec<Keys>, ConsoleKeys)> {
    let ids: Vec<VehicleId> = ids.collect();
    let drawn = simulated::Keys::new(Signatures::Ed25519, seed, ids.iter().copied())?;
    let of = |signer: &Signer| Keys { signer: signer.clone(), roster: Box::new(drawn.roster().clone()) };
    let console = ConsoleKeys { id: CONSOLE, role: Role::Operator, keys: of(drawn.console()) };
    Ok(((0..ids.len()).map(|i| of(drawn.signer(i))).collect(), console))
}

/// The same enrolled as a real fleet's, the console's in the folder `console`: another program may use them. The authority and the
/// aircraft's files are thrown away.
fn enrolled(folder: &Path, ids: impl Iterator<Item = VehicleId>) -> Result<(Vec<Keys>, ConsoleKeys)> {
    let console = folder.join("console");
    ensure!(!console.exists(), "{}: found one, expected none: a folder is one fleet's", console.display());
    let (fleet, now) = (tempfile::tempdir()?, Timestamp::now());
    let path = |name: String| fleet.path().join(name);
    let stores: Vec<Store> = ids
        .map(|id| Store::of_aircraft(id, path(format!("{id}.key")), path(format!("{id}.bundle"))))
        .collect();
    let refused = |refused: wingbeat_onboard::keys::file::Refused| {
        anyhow!("found {}, expected {}", refused.found, refused.expected)
    };
    let authority = path("authority".to_owned());
    enrolment::init(&authority, now, 1)?;
    let members = stores.iter().map(|store| (store, Role::Aircraft));
    let desk = Store::of_console(CONSOLE, &console);
    for (store, role) in members.chain([(&desk, Role::Operator)]) {
        let request = store.request().map_err(refused)?;
        enrolment::change(&authority, &Change::Enrol { request, role }, now)?;
    }
    let bundle = enrolment::read(&authority)?;
    let keys = stores.iter().map(|store| Ok(store.accept(bundle.text())?.keys)).collect::<Result<_>>()?;
    desk.accept(bundle.text())?;
    Ok((keys, wingbeat_onboard::keys::read_console(&console).map_err(refused)?))
}

/// The true state of one aircraft, as far as the observer needs it. The owner of the flight controllers writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fact {
    /// East, north and up of the flight's origin, metres.
    pub(crate) local: DVec3,
    /// East, north and up, metres per second.
    pub(crate) velocity: DVec3,
    /// Motors armed.
    pub(crate) armed: bool,
    /// On the ground.
    pub(crate) landed: bool,
    /// Where its nose points, clockwise from north.
    pub(crate) heading_rad: f64,
}

impl Fact {
    fn of(frame: &Frame, truth: Truth) -> Self {
        let local = frame.to_local(truth.position);
        let Truth { velocity, armed, landed, heading_rad, .. } = truth;
        Self { local, velocity, armed, landed, heading_rad }
    }
}

/// The facts of all aircraft.
pub(crate) type Facts = Arc<Mutex<Vec<Fact>>>;

/// Flight controllers of any kind.
pub(crate) struct Controllers {
    /// Where each is connected to.
    pub(crate) endpoints: Vec<SocketAddr>,
    /// What must run as long as the fleet does.
    pub(crate) tasks: JoinSet<std::io::Result<()>>,
    /// How pilots among them learn of the start.
    pub(crate) started: Started,
}

/// Daemons on a hub, in front of flight controllers of any kind.
pub(crate) struct Fleet {
    scenario: Scenario,
    seed: u64,
    clock: Clock,
    console: ConsoleKeys,
    hub: Hub,
    daemons: Vec<wingbeat_onboard::Handle>,
    facts: Facts,
    controllers: JoinSet<std::io::Result<()>>,
    /// For piloted aircraft.
    started: Started,
}

impl Fleet {
    /// With simulated flight controllers.
    async fn start(scenario: Scenario, seed: u64, clock: Clock, logs: Option<&Path>) -> Result<Self> {
        let frame = Frame::new(scenario.origin);
        let hub = Hub::spawn(scenario.real_time_channel(seed)?, scenario.aircraft(), clock);
        let mut controllers = JoinSet::new();
        let flight_controllers: Vec<_> =
            (0..scenario.aircraft()).map(|i| scenario.controller(i, seed)).collect();
        let facts = flight_controllers.iter().map(|c| Fact::of(&frame, c.truth())).collect::<Vec<_>>();
        let facts = Arc::new(Mutex::new(facts));
        let started = Started::default();
        let mut endpoints = Vec::new();
        for (i, controller) in flight_controllers.into_iter().enumerate() {
            let listener = TcpListener::bind("127.0.0.1:0").await.context("flight controller's port")?;
            endpoints.push(listener.local_addr()?);
            let (facts, positions) = (Arc::clone(&facts), hub.0.positions());
            let mut transmitter =
                scenario.pilot(i, seed).map(|pilot| Transmitter::new(pilot, started.clone()));
            controllers.spawn(serve::flight_controller(listener, controller, clock, move |controller| {
                let truth = controller.truth();
                if let Some(sticks) = transmitter.as_mut().and_then(|t| t.sticks(clock.now(), &truth)) {
                    controller.set_rc(Some(sticks));
                }
                let fact = Fact::of(&frame, truth);
                positions.set(i, fact.local);
                facts.lock().unwrap_or_else(PoisonError::into_inner)[i] = fact;
            }));
        }
        let controllers = Controllers { endpoints, tasks: controllers, started };
        Self::join(scenario, seed, clock, hub, facts, controllers, (Some(LINK_PROBE_PERIOD), logs)).await
    }

    /// One daemon for each flight controller, on the radios of a hub.
    pub(crate) async fn join(
        scenario: Scenario,
        seed: u64,
        clock: Clock,
        (hub, radios): (Hub, Vec<HubRadio>),
        facts: Facts,
        controllers: Controllers,
        (link_probe_period, logs): (Option<Duration>, Option<&Path>),
    ) -> Result<Self> {
        let Controllers { endpoints, tasks: controllers, started } = controllers;
        let mut daemons = Vec::new();
        let ids = (0..scenario.aircraft()).map(|i| scenario.id(i));
        let (keys, console) = match logs {
            Some(folder) => enrolled(folder, ids).context("--logs")?,
            None => thrown_away(seed, ids)?,
        };
        for (i, (radio, port)) in radios.into_iter().zip(&endpoints).enumerate() {
            let daemon = wingbeat_onboard::Config {
                name: format!("UAV {}", i + 1),
                autopilot: format!("tcp:{port}").parse::<Endpoint>()?,
                http: SocketAddr::from(([127, 0, 0, 1], 0)),
                hosts: wingbeat_onboard::Hosts::default(),
                agent: scenario.agent_config(i),
                protocols: Default::default(),
                // Flight controller and daemon live in this one process.
                guard: None,
                keys: keys[i].clone(),
                enrolled: None,
                configuration_fault: None,
                link_probe_period,
                log: logs.map(|folder| recording::Settings {
                    directory: Some(folder.join(format!("aircraft-{}", i + 1))),
                    limits: Limits::default(),
                }),
                chrony_socket: None,
                state: None,
                gateway: wingbeat_onboard::gateway::Config::default(),
                seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i as u64),
            };
            daemons.push(Box::pin(wingbeat_onboard::start(daemon, clock, radio)).await?);
        }
        Ok(Self { scenario, seed, clock, console, hub, daemons, facts, controllers, started })
    }

    /// The log lines of one daemon from now on.
    pub(crate) fn logs(&self) -> impl Iterator<Item = tokio::sync::broadcast::Receiver<LogLine>> {
        self.daemons.iter().map(wingbeat_onboard::Handle::log)
    }

    /// Where the daemons serve their API.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.daemons.iter().map(|d| d.address().to_string()).collect()
    }

    /// What the operator's console signs with.
    pub(crate) fn console(&self) -> wingbeat_ground::ConsoleConfig {
        let keys = self.console.clone();
        wingbeat_ground::ConsoleConfig { keys, clock: self.clock, state: None, rtcm: None }
    }

    /// Uploads the missions, as an operator would: to the master, or to each its own. The ground service holds the leases
    /// some time after it was started.
    pub(crate) async fn upload_mission(&self, ground: &wingbeat_ground::Handle) -> Result<()> {
        for (i, daemon) in self.daemons.iter().enumerate() {
            let Some(mission) = self.scenario.mission_for(i) else { continue };
            let waypoints = mission.iter().map(|w| {
                let [latitude_deg, longitude_deg] =
                    [w.latitude_e7, w.longitude_e7].map(|e7| f64::from(e7) * 1e-7);
                MissionItem::at(latitude_deg, longitude_deg, f64::from(w.height_mm) * 1e-3)
            });
            let upload = match self.scenario.stated_for(i) {
                Some(stated) => {
                    let name = self.scenario.name.clone();
                    MissionUpload { name, ..stated.mission.clone() }
                }
                None => MissionUpload::new(&self.scenario.name, waypoints.collect()),
            };
            let vehicle = daemon.identity().id.clone();
            let upload = FleetMissionUpload { vehicle, mission: upload };
            let mut attempts = 0;
            loop {
                let Err(text) = ground.give_mission(upload.clone()).await else { break };
                let name = &self.scenario.name;
                attempts += 1;
                ensure!(attempts < ATTEMPTS, "mission {name} of aircraft {}: {text}", i + 1);
                tokio::time::sleep(ATTEMPT_PERIOD).await;
            }
        }
        Ok(())
    }

    fn status(&self, i: usize) -> Arc<AircraftStatus> {
        self.daemons[i].status().borrow().clone()
    }

    /// Samples until the flight is over, or `limit` of simulated time has passed.
    ///
    /// # Errors
    /// Nothing begins, and no operator is there who could help.
    pub(crate) async fn watch(&self, press: Option<Press<'_>>, limit: Duration) -> Result<(Observer, Pace)> {
        let mut pace = Pace::default();
        let mut observer = Observer::new(self.scenario.aircraft(), self.scenario.collision_distance_m);
        let mut progress = Progress {
            printed: String::new(),
            flew: false,
            setup_pressed: false,
            start_pressed: false,
            settled: false,
        };
        let mut at = self.clock.now();
        loop {
            at = at + SAMPLE_PERIOD;
            sleep_until(self.clock.kernel(at)).await;
            let statuses = self.statuses();
            let now = self.clock.now();
            pace.sample(now.since(at));
            observer.sample(now, &self.samples(&statuses));
            if statuses.iter().all(|s| matches!(s.phase, api::Phase::Waiting | api::Phase::Moving)) {
                self.started.set(now);
            }
            progress.report(now.as_secs_f64(), &statuses);
            if let Some(press) = &press {
                // As the operator and ArduCopter have it, which wait in real time.
                let waited_s = now.as_secs_f64() / self.clock.speed();
                progress.press(press, waited_s).await?;
            }
            let over = statuses.iter().all(|s| is_over(s)) && progress.flew;
            if over || now.since(wingbeat_geo::Instant::ZERO) > limit {
                return Ok((observer, pace));
            }
        }
    }

    fn statuses(&self) -> Vec<Arc<AircraftStatus>> {
        (0..self.scenario.aircraft()).map(|i| self.status(i)).collect()
    }

    fn samples(&self, statuses: &[Arc<AircraftStatus>]) -> Vec<Sample> {
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let sample = |(fact, status): (&Fact, &Arc<AircraftStatus>)| {
            let swarm = status.swarm.as_ref();
            let slot = swarm.and_then(|s| s.slot).map(usize::from);
            let offset = slot.and_then(|slot| self.scenario.slot_offset(slot, self.seed));
            Sample {
                local: fact.local,
                velocity: fact.velocity,
                armed: fact.armed,
                landed: fact.landed,
                phase: status.phase,
                leader: swarm.is_some_and(|s| s.leader),
                slot_offset: offset.map(|o| DVec3::new(o.x, o.y, 0.0)),
                heading_rad: fact.heading_rad,
                slot_in_heading: slot.and_then(|slot| self.scenario.slot_in_heading(slot)),
            }
        };
        facts.iter().zip(statuses).map(sample).collect()
    }

    /// Datagrams of the whole swarm so far.
    pub(crate) fn radio(&self) -> Radio {
        let channel = self.hub.counters().channel;
        let refused = self.statuses().iter().flat_map(|s| &s.radio.refused).map(|r| r.count).sum();
        Radio { sent: channel.sent, delivered: channel.delivered, lost: channel.lost, refused }
    }

    /// Prints the table; true if the flight succeeded.
    pub(crate) fn report(&self, observer: &Observer) -> Ended {
        let (aircraft, swarm) = (observer.aircraft(), observer.swarm());
        print!("{}", report::flight(&aircraft, swarm, &self.radio()));
        let overflows = self.hub.counters().overflows;
        if overflows > 0 {
            println!("this machine was too slow: {overflows} receptions did not fit a queue");
        }
        let apart = swarm.collisions.is_empty() || self.scenario.is_unprotected();
        let succeeded = aircraft.iter().all(|a| a.completed) && apart;
        if succeeded { Ended::Succeeded } else { Ended::Failed }
    }

    /// Stops the daemons and whatever served them.
    pub(crate) async fn stop(mut self) {
        for daemon in self.daemons {
            daemon.stop().await;
        }
        self.controllers.shutdown().await;
    }
}

/// Ended: finished or stopped, and disarmed.
fn is_over(status: &AircraftStatus) -> bool {
    matches!(status.phase, api::Phase::Finished | api::Phase::Aborted) && !status.flight_controller.armed
}

/// The console whose *Setup* and *Start* are pressed without an operator.
pub(crate) struct Press<'a> {
    pub(crate) ground: &'a wingbeat_ground::Handle,
    /// Whether there is an operator at its page, who may press again: a refusal is no end then.
    pub(crate) is_watched: bool,
}

/// The swarm's progress, as it is printed.
struct Progress {
    printed: String,
    flew: bool,
    setup_pressed: bool,
    start_pressed: bool,
    /// Every aircraft has done what *Start* asked of it, or will not.
    settled: bool,
}

impl Progress {
    /// A line when the swarm has entered another phase: the phase of the aircraft that is behind.
    fn report(&mut self, now_s: f64, statuses: &[Arc<AircraftStatus>]) {
        self.flew |= statuses.iter().any(|s| s.flight_controller.armed);
        let Some(behind) = statuses.iter().min_by_key(|s| s.phase) else { return };
        let lead = statuses.iter().find(|s| s.swarm.as_ref().is_some_and(|w| w.leader)).unwrap_or(behind);
        let mut phase = match behind.phase {
            api::Phase::Waiting | api::Phase::Moving => {
                let reached = lead.mission.as_ref().and_then(|m| m.reached.map(|r| (r, m.waypoints)));
                match reached {
                    Some((reached, waypoints)) => {
                        format!("mission, waypoint {} of {waypoints} reached", reached + 1)
                    }
                    None => "mission".to_owned(),
                }
            }
            api::Phase::Ending => "landing".to_owned(),
            _ => behind.state.to_string(),
        };
        if let Some(lost) = statuses.iter().find(|s| s.flight_controller.link == LinkState::Lost) {
            phase = format!("{phase}; {}: flight controller silent", lost.name);
        }
        if phase != self.printed {
            println!("{now_s:8.1} s  {phase}");
            self.printed = phase;
        }
    }

    /// Presses *Setup*, then *Start*, as soon as the console would let an operator do it.
    ///
    /// # Errors
    /// An aircraft refuses one, or *Setup* has stayed blocked, and no operator is there.
    async fn press(&mut self, press: &Press<'_>, waited_s: f64) -> Result<()> {
        if self.settled {
            return Ok(());
        }
        let Ok(picture) = press.ground.picture().await else { return Ok(()) };
        let waited_s = (!self.setup_pressed).then_some(waited_s);
        let refusal = if press.is_watched { None } else { refusal(&picture, waited_s) };
        if let Some(refusal) = refusal {
            bail!(refusal);
        }
        self.settled = self.start_pressed && is_settled(&picture);
        let (command, pressed) = match (picture.actions.setup, picture.actions.start) {
            (true, _) if !self.setup_pressed => (Command::Setup, &mut self.setup_pressed),
            (_, true) if !self.start_pressed => (Command::Start, &mut self.start_pressed),
            _ => return Ok(()),
        };
        let request =
            FleetCommandRequest { id: format!("{PRESSED}{command:?}"), command, vehicles: Vec::new() };
        match press.ground.command(request).await {
            Ok(_) => *pressed = true,
            Err(refused) => println!("{command:?} refused: {refused}"),
        }
        Ok(())
    }
}

/// Whether nothing more becomes of the *Start* that was pressed.
fn is_settled(picture: &FleetPicture) -> bool {
    let start = picture.commands.iter().find(|c| c.command == Command::Start && c.id.starts_with(PRESSED));
    let is_open = |outcome| matches!(outcome, VehicleOutcome::Sending | VehicleOutcome::Accepted);
    start.is_some_and(|start| !start.results.iter().any(|result| is_open(result.outcome)))
}

/// Why nothing begins: an aircraft refuses what was pressed, or *Setup* has been blocked for so long.
fn refusal(picture: &FleetPicture, waited_s: Option<f64>) -> Option<String> {
    let pressed = picture.commands.iter().filter(|command| command.id.starts_with(PRESSED));
    let mut results = pressed.flat_map(|command| command.results.iter().map(move |r| (command.command, r)));
    if let Some((command, result)) = results.find(|(_, result)| result.outcome == VehicleOutcome::Failed) {
        let mut known = picture.aircraft.iter().filter_map(|aircraft| aircraft.status.as_ref());
        let name = known.find(|s| s.id == result.vehicle).map_or(&result.vehicle, |status| &status.name);
        return Some(format!("{name} refuses {command:?}: {}", result.detail));
    }
    let blocked = waited_s? > SETUP_WITHIN_S && !picture.actions.setup;
    blocked.then(|| format!("Setup is blocked for {SETUP_WITHIN_S} s: {}", picture.actions.setup_blocked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_api::{Actions, FleetCommand, FleetCommandResult};

    fn picture(results: Vec<FleetCommandResult>, setup_blocked: &str) -> FleetPicture {
        let command = FleetCommand {
            id: "auto-Setup".into(),
            command: Command::Setup,
            time_ms: 0,
            note: String::new(),
            by: String::new(),
            results,
        };
        let operators = FleetCommand {
            id: "page-1".into(),
            results: vec![result(VehicleOutcome::Failed)],
            ..command.clone()
        };
        FleetPicture {
            time_ms: 0,
            version: String::new(),
            console: String::new(),
            started_unix_ms: 0,
            has_map: false,
            has_tiles: false,
            corrections: None,
            listening: None,
            checklist: None,
            aircraft: Vec::new(),
            missions: Vec::new(),
            commands: vec![operators, command],
            actions: Actions {
                setup: setup_blocked.is_empty(),
                setup_blocked: setup_blocked.into(),
                start: false,
                start_blocked: String::new(),
            },
            alarms: Vec::new(),
            log: Vec::new(),
        }
    }

    fn result(outcome: VehicleOutcome) -> FleetCommandResult {
        FleetCommandResult { vehicle: "0000000000000002".into(), outcome, detail: "no GNSS fix".into() }
    }

    #[test]
    fn what_an_aircraft_refuses_ends_the_flight_with_its_reason() {
        for (outcome, is_refused) in [
            (VehicleOutcome::Sending, false),
            (VehicleOutcome::Accepted, false),
            (VehicleOutcome::EffectSeen, false),
            (VehicleOutcome::Failed, true),
            (VehicleOutcome::Expired, false),
        ] {
            let why = refusal(&picture(vec![result(VehicleOutcome::Accepted), result(outcome)], ""), None);
            let expected = is_refused.then(|| "0000000000000002 refuses Setup: no GNSS fix".to_owned());
            assert_eq!(why, expected, "{outcome:?}");
        }
    }

    #[test]
    fn a_setup_that_stays_blocked_ends_the_flight_with_its_reason() {
        let blocked = picture(Vec::new(), "UAV 2: battery");
        let late = SETUP_WITHIN_S + 0.1;
        assert_eq!(refusal(&blocked, Some(SETUP_WITHIN_S)), None);
        assert_eq!(refusal(&blocked, Some(late)), Some("Setup is blocked for 120 s: UAV 2: battery".into()));
        assert_eq!(refusal(&blocked, None), None, "it was pressed");
        assert_eq!(refusal(&picture(Vec::new(), ""), Some(late)), None, "it can be pressed now");
    }
}
