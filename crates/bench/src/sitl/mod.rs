//! A plan flown by real ArduCopter programs (SITL): one process per aircraft, one daemon in front of
//! each, the hub's radio among them, the ground service's *Setup* and *Start* as in a real-time fleet.
//!
//! | module | what it does |
//! |---|---|
//! | [`process`] | one ArduCopter process, its directory, and nothing left of either |
//! | [`parameters`] | what it is configured with |
//! | [`ports`] | which instances are free |
//! | [`network`] | a network of our own, because SITL listens on every interface |
//! | `pilot` | a simulated pilot at the simulated receiver |
//! | `monitor` | the simulator's true position of the aircraft; autopilot time |
//! | [`rate`] | whether the simulation kept pace |
//!
//! A machine that is too slow does not slow everything down alike: ArduCopter's time stays behind while
//! the radio's and the daemons' continues. So a flight below [`RATE_LEAST`] of the asked speed is refused
//! as a result, however it went.
#![allow(clippy::disallowed_methods, reason = "ArduCopter runs in real time")]

mod monitor;
pub mod network;
mod overheads;
pub mod parameters;
mod pilot;
pub mod ports;
pub mod process;
pub mod rate;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use wingbeat_api::Severity;
use wingbeat_geo::{DVec3, Frame};
use wingbeat_ground::Ground;
use wingbeat_hub::Hub;
use wingbeat_radio::Clock;
use wingbeat_sim::motion::WindParameters;

use crate::fleet::{Controllers, Ended, Fact, Facts, Fleet, Press};
use crate::flight::{self, FlightResult};
use crate::plan::{Plan, Table};
use crate::report::{self, Row};
use crate::run::alone;
use crate::scenario::{Scenario, Task};
use crate::transmitter::{Started, Transmitter};
use monitor::Monitor;
use parameters::Wanted;
use process::{Process, Program, Start};

/// Simulated seconds per second, of those asked for: below this the result is not valid.
pub const RATE_LEAST: f64 = 0.95;
/// Until all aircraft know their position. 41 s of simulated time on an idle machine.
const READY_TIMEOUT: Duration = Duration::from_secs(180);
/// While the aircraft boot none flies, and the simulation may run faster.
const BOOT_SPEEDUP: f64 = 10.0;
/// How long a rate is measured before the flight, and how often.
const SETTLE_PERIOD: Duration = Duration::from_millis(1_500);
const SETTLE_TRIES: u8 = 10;
/// So near is steady.
const SETTLED_WITHIN: f64 = 0.04;
/// The observer samples the facts ten times a simulated second; they are copied more often than that.
const COPY_PERIOD: Duration = Duration::from_millis(10);
/// Lower than this above home is on the ground.
const LANDED_BELOW_M: f64 = 0.3;

/// What is flown, and with what.
#[derive(Clone, Debug)]
pub struct Config {
    /// The ArduCopter program.
    pub binary: PathBuf,
    /// The plan.
    pub plan: Plan,
    /// The plan's folder.
    pub folder: PathBuf,
    /// What randomness is drawn from.
    pub seed: u64,
    /// Times real time.
    pub speedup: f64,
    /// Where binary logs are kept; none are written without it.
    pub logs: Option<PathBuf>,
    /// Text of the user's defaults file.
    pub defaults: String,
    /// The first instance number to try.
    pub instance: u16,
    /// Where the console is served.
    pub ground: SocketAddr,
}

/// Flies every flight of the plan. Prints a line per phase, a table per flight, the real-time factor, and
/// the plan's rows next to those of the deterministic bench.
///
/// # Errors
/// A program that is no SITL, ports that are taken, a process that ended, aircraft that do not get ready.
pub async fn fly(config: Config, stop: impl Future<Output = ()>) -> Result<Ended> {
    ensure!(
        (0.1..=20.0).contains(&config.speedup),
        "--speedup: found {}, expected 0.1 to 20",
        config.speedup
    );
    if let Some(folder) = &config.logs {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    config.plan.on_one_computer("bench sitl")?;
    let mut planned = config.plan.flights(&config.folder, config.seed)?;
    planned.iter().flatten().try_for_each(|(scenario, _)| scenario.check_real_time())?;
    let program = Program::find(&config.binary)?;
    // What is flown besides in virtual time is like the program.
    if let Some(profile) = process::profile(&config.binary)? {
        println!("the bench flies the same as ArduCopter {profile}");
        planned.iter_mut().flatten().for_each(|(scenario, _)| scenario.profile = profile);
    }
    tokio::pin!(stop);
    let (mut rows, mut pairs, mut refused, mut ended) =
        (Vec::new(), Vec::new(), String::new(), Ended::Succeeded);
    for (number, flights) in planned.into_iter().enumerate() {
        // What a swarm adds to the time of one aircraft needs both.
        let lone = match config.plan.table {
            Table::MuscopOverhead => flights.iter().map(|(s, seed)| (alone(s), *seed)).collect(),
            _ => Vec::new(),
        };
        let name = format!("flight-{}-", number + 1);
        let flown = each(&config, &program, &flights, &name, &mut ended, &mut stop).await?;
        let name = format!("alone-{}-", number + 1);
        let flown_alone = each(&config, &program, &lone, &name, &mut ended, &mut stop).await?;
        let (Some(flown), Some(flown_alone)) = (flown, flown_alone) else { return Ok(Ended::Stopped) };
        let limit = config.plan.time_limit();
        let simulate = |flights: &[(Scenario, u64)]| -> Result<Vec<FlightResult>> {
            flights.iter().map(|(scenario, seed)| flight::fly(scenario, *seed, limit)).collect()
        };
        refused += &refusals(&flights, &flown, &flown_alone);
        let name = flights.first().map_or_else(String::new, |(scenario, _)| scenario.label());
        let row = |how: &str, flown: &[FlightResult], alone: Vec<FlightResult>| Row {
            mission: format!("{name}, {how}"),
            name: format!("{name}, {how}"),
            ..Row::of(flights.first().map(|(scenario, _)| scenario), flown.to_vec(), alone)
        };
        let (simulated, simulated_alone) = (simulate(&flights)?, simulate(&lone)?);
        // A mean of no flights is none.
        let has_figures = !flown.counted.is_empty() && flown_alone.counted.is_empty() == lone.is_empty();
        let real = has_figures.then(|| row("SITL", &flown.counted, flown_alone.counted));
        rows.push((real, row("bench run", &simulated, simulated_alone)));
        if let Some((scenario, _)) = flights.into_iter().next().filter(|_| has_figures) {
            pairs.push(overheads::Pair { scenario, real: flown.counted, simulated });
        }
    }
    println!("\nthe same plan, SITL and the deterministic bench:");
    print!("{}", tables(config.plan.table, rows, &pairs));
    print!("{refused}");
    Ok(ended)
}

/// Flights, one for each repeat.
#[derive(Default)]
struct Flown {
    /// Those whose figures count.
    counted: Vec<FlightResult>,
    /// How many were refused.
    refused: usize,
}

/// Flies some flights, one after the other. `None` if one was stopped; `ended` notes what failed.
async fn each(
    config: &Config,
    program: &Program,
    flights: &[(Scenario, u64)],
    name: &str,
    ended: &mut Ended,
    stop: &mut (impl Future<Output = ()> + Unpin),
) -> Result<Option<Flown>> {
    let mut flown = Flown::default();
    for (repeat, (scenario, seed)) in flights.iter().enumerate() {
        let name = format!("{name}{}-", repeat + 1);
        let outcome = Box::pin(one(config, program, scenario, *seed, &name, stop)).await?;
        let Some((flight, counts)) = outcome else { return Ok(None) };
        if !counts || !flight.succeeded() {
            *ended = Ended::Failed;
        }
        if counts {
            flown.counted.push(flight);
        } else {
            flown.refused += 1;
        }
    }
    Ok(Some(flown))
}

/// What the tables below leave out, a line for each row of the plan of which flights were refused.
fn refusals(flights: &[(Scenario, u64)], flown: &Flown, alone: &Flown) -> String {
    let of = |how: &str, flown: &Flown| match flown.refused {
        0 => String::new(),
        refused => {
            let all = refused + flown.counted.len();
            let name = flights.first().map_or_else(String::new, |(scenario, _)| scenario.label());
            format!("REFUSED {name}{how}: {refused} of {all} flights by SITL, which are in no figure above\n")
        }
    };
    of("", flown) + &of(", alone", alone)
}

/// The rows of the plan: flown by SITL, where any flight counts, and by simulated flight controllers in virtual time.
fn tables(table: Table, rows: Vec<(Option<Row>, Row)>, pairs: &[overheads::Pair]) -> String {
    let overheads = overheads::table(pairs);
    let flat = |rows: Vec<(Option<Row>, Row)>| {
        rows.into_iter().flat_map(|(real, simulated)| real.into_iter().chain([simulated])).collect::<Vec<_>>()
    };
    match table {
        Table::Following => report::following::table(&flat(rows)),
        Table::MuscopOverhead => {
            // The lines below such a table are of all its rows.
            let (real, simulated): (Vec<Option<Row>>, Vec<Row>) = rows.into_iter().unzip();
            let real: Vec<Row> = real.into_iter().flatten().collect();
            format!(
                "SITL\n{}bench run\n{}",
                report::muscop::overhead(&real),
                report::muscop::overhead(&simulated)
            )
        }
        _ if overheads.is_empty() => report::flights(&flat(rows)),
        _ => overheads,
    }
}

/// One flight. `None` if it was stopped; else its figures, and whether they count.
async fn one(
    config: &Config,
    program: &Program,
    scenario: &Scenario,
    seed: u64,
    name: &str,
    stop: &mut (impl Future<Output = ()> + Unpin),
) -> Result<Option<(FlightResult, bool)>> {
    let mut processes = Processes::start(config, program, scenario, seed)?;
    let flown = {
        let instance = processes.instance;
        tokio::select! {
            flown = in_the_air(config, scenario, seed, instance) => Some(flown),
            ended = processes.ended() => Some(Err(anyhow!("{ended}"))),
            () = stop => None,
        }
    };
    // In every case they end before the result is read.
    let logs = processes.stop(config, name).await;
    let Some(flown) = flown else {
        println!("stopped");
        return Ok(None);
    };
    let flown = flown?;
    for log in logs? {
        println!("log {}", log.display());
    }
    Ok(Some(flown))
}

/// All processes of a flight.
struct Processes {
    instance: u16,
    all: Vec<Process>,
}

impl Processes {
    fn start(config: &Config, program: &Program, scenario: &Scenario, seed: u64) -> Result<Self> {
        let instance = ports::free_instances(config.instance, scenario.aircraft())?;
        println!(
            "{} x {}, instances {instance} to {}, {}, {} times real time",
            scenario.aircraft(),
            config.binary.display(),
            usize::from(instance) + scenario.aircraft() - 1,
            scenario.summary(),
            config.speedup
        );
        let mut all = Vec::new();
        for i in 0..scenario.aircraft() {
            let defaults = parameters::file(&Wanted {
                speed_m_s: scenario.speed_m_s(i),
                wind: WindParameters {
                    speed_m_s: scenario.wind.speed_m_s * parameters::wind_gradient(scenario.height_m(i)),
                    ..scenario.wind
                },
                log: config.logs.is_some(),
                // Four times a sample: what the observer reads is 40 ms old at most.
                position_hz: 25,
                extra: &config.defaults,
            });
            let start = Start {
                instance: instance + i as u16,
                home: scenario.home(i, seed),
                heading_rad: scenario.heading_rad(i),
                speedup: config.speedup.max(BOOT_SPEEDUP),
            };
            all.push(Process::start(program, &start, &defaults)?);
        }
        Ok(Self { instance, all })
    }

    /// Waits until one of them has ended, which none does while all is well.
    async fn ended(&mut self) -> String {
        let instance = self.instance;
        let mut any: Vec<_> = self.all.iter_mut().map(|p| Box::pin(p.ended())).collect();
        std::future::poll_fn(|context| {
            for (i, process) in any.iter_mut().enumerate() {
                if let std::task::Poll::Ready(how) = process.as_mut().poll(context) {
                    let instance = usize::from(instance) + i;
                    return std::task::Poll::Ready(format!(
                        "aircraft {} (SITL instance {instance}) ended during the flight: {how}",
                        i + 1
                    ));
                }
            }
            std::task::Poll::Pending
        })
        .await
    }

    /// Ends all of them, one after the other: each takes a moment.
    async fn stop(self, config: &Config, name: &str) -> Result<Vec<PathBuf>> {
        let (mut logs, mut trouble) = (Vec::new(), None);
        for (i, process) in self.all.into_iter().enumerate() {
            let prefix = format!("{name}uav-{}-", i + 1);
            match process.stop(config.logs.as_deref().map(|folder| (folder, &*prefix))).await {
                Ok(kept) => logs.extend(kept),
                Err(error) => trouble = Some(error),
            }
        }
        trouble.map_or(Ok(logs), Err)
    }
}

/// From booting autopilots to the table.
async fn in_the_air(
    config: &Config,
    scenario: &Scenario,
    seed: u64,
    instance: u16,
) -> Result<(FlightResult, bool)> {
    let instances = instance..instance + scenario.aircraft() as u16;
    let mut monitors = Vec::new();
    for port in instances.clone().map(ports::serial1) {
        monitors.push(Monitor::connect(port).await?);
    }
    ready(&monitors).await?;
    for (i, monitor) in monitors.iter().enumerate() {
        let speedup = monitor.set("SIM_SPEEDUP", config.speedup as f32).await;
        speedup.with_context(|| format!("aircraft {}", i + 1))?;
    }
    settle(&monitors, config.speedup).await;
    let clock = Clock::start(config.speedup)?;
    let hub = Hub::spawn(scenario.real_time_channel(seed)?, scenario.aircraft(), clock);
    let frame = Frame::new(scenario.origin);
    let facts = monitors.iter().filter_map(|monitor| fact(&frame, monitor)).collect();
    let facts: Facts = Arc::new(Mutex::new(facts));
    let mut copies = JoinSet::new();
    let reports = monitors.iter().map(Monitor::share).collect();
    copies.spawn(copy(frame, reports, Arc::clone(&facts), hub.0.positions()));
    let started = Started::default();
    for (i, monitor) in monitors.iter().enumerate() {
        let Some(pilot) = scenario.pilot(i, seed) else { continue };
        let transmitter = Transmitter::new(pilot, started.clone());
        let receiver = ports::receiver(instance + i as u16);
        copies.spawn(pilot::fly(transmitter, monitor.share(), frame, clock, receiver));
    }
    let endpoints: Vec<SocketAddr> =
        instances.map(|i| SocketAddr::from((Ipv4Addr::LOCALHOST, ports::serial0(i)))).collect();
    // A swarm's progress is printed as a whole; aircraft that avoid each other are at different phases.
    let all_lines = matches!(scenario.task, Task::Own(_));
    let controllers = Controllers { endpoints, tasks: copies, started };
    let fleet = Fleet::join(scenario.clone(), seed, clock, hub, facts, controllers, (None, None)).await?;
    let mut lines = JoinSet::new();
    for (i, log) in fleet.logs().enumerate() {
        lines.spawn(print_log(i + 1, log, all_lines));
    }
    let addresses = fleet.addresses();
    let ground = Ground::start(wingbeat_ground::Config {
        bind: config.ground,
        aircraft: addresses,
        web_dir: None,
        tiles: None,
        parameters: None,
        records: None,
        hosts: Default::default(),
        console: Some(fleet.console()),
        protection: Default::default(),
    })
    .await?;
    fleet.upload_mission(&ground).await?;
    monitors.iter().for_each(Monitor::begin_rate);
    let (observer, _) =
        fleet.watch(Some(Press { ground: &ground, is_watched: false }), config.plan.time_limit()).await?;
    let rates: Vec<_> = monitors.iter().map(|m| m.reports().rate.clone()).collect();
    fleet.report(&observer);
    let flight = FlightResult {
        lateness: None,
        following: observer.following().clone(),
        aircraft: observer.aircraft(),
        swarm: observer.swarm().clone(),
        encounters: observer.encounters().to_vec(),
        unprotected: scenario.is_unprotected(),
        is_disturbed: false,
        // The daemons' agents are behind their API.
        avoidance: Vec::new(),
        delays: None,
        losses: Default::default(),
        radio: fleet.radio(),
        duration: clock.now().since(wingbeat_geo::Instant::ZERO),
        // Real time does not repeat: there is nothing to compare it with.
        medium: None,
        flows: Vec::new(),
        trace_hash: 0,
        warnings: Vec::new(),
        causes: Vec::new(),
    };
    ground.stop().await;
    fleet.stop().await;
    Ok((flight, pace(&rates, config.speedup)))
}

/// Prints the real-time factor; whether the simulation kept pace.
fn pace(rates: &[rate::Rate], asked: f64) -> bool {
    let overall = |r: &rate::Rate| r.overall().unwrap_or(0.0);
    let worst = rates.iter().enumerate().min_by(|a, b| overall(a.1).total_cmp(&overall(b.1)));
    let Some((i, worst)) = worst else { return false };
    let (achieved, share) = (overall(worst), overall(worst) / asked);
    let slowest = worst.slowest().map_or("-".into(), |s| format!("{:.3}", s / asked));
    println!(
        "real-time factor    {achieved:.3} of {asked} asked for (aircraft {}, the slowest): {share:.3}; its \
         slowest 10 s: {slowest}",
        i + 1
    );
    if share < RATE_LEAST {
        println!(
            "REFUSED: found a real-time factor of {share:.3}, expected {RATE_LEAST} or more: this machine was \
             too slow, and the figures above are no result. Fly fewer aircraft, or a smaller --speedup."
        );
    }
    share >= RATE_LEAST
}

/// After a change of speed a simulation that was ahead stands for a moment. Waits until all run at the
/// asked speed; a machine that never gets there is reported with the result.
async fn settle(monitors: &[Monitor], asked: f64) {
    for _ in 0..SETTLE_TRIES {
        monitors.iter().for_each(Monitor::begin_rate);
        sleep(SETTLE_PERIOD).await;
        let is_steady = |m: &Monitor| {
            m.reports().rate.overall().is_some_and(|rate| (rate / asked - 1.0).abs() < SETTLED_WITHIN)
        };
        if monitors.iter().all(is_steady) {
            return;
        }
    }
}

/// Waits until every aircraft has a position estimate.
async fn ready(monitors: &[Monitor]) -> Result<()> {
    let began = Instant::now();
    loop {
        let waiting: Vec<usize> =
            (0..monitors.len()).filter(|i| monitors[*i].reports().lacks().is_some()).collect();
        let Some(first) = waiting.first() else {
            println!("all aircraft know their position after {:.1} s", began.elapsed().as_secs_f64());
            return Ok(());
        };
        if began.elapsed() > READY_TIMEOUT {
            let reports = monitors[*first].reports();
            return Err(anyhow!(
                "{} of {} aircraft not ready within {} s: aircraft {} still lacks {}; its last texts: {}",
                waiting.len(),
                monitors.len(),
                READY_TIMEOUT.as_secs(),
                first + 1,
                reports.lacks().unwrap_or("nothing"),
                reports.last_texts()
            ));
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// The state of one aircraft, once it has a position estimate.
fn fact(frame: &Frame, monitor: &Monitor) -> Option<Fact> {
    fact_of(frame, &monitor.reports())
}

fn fact_of(frame: &Frame, reports: &monitor::Reports) -> Option<Fact> {
    let local: DVec3 = frame.to_local(reports.position()?);
    let t = &reports.telemetry;
    let landed = !t.armed || t.height_m < LANDED_BELOW_M;
    let heading_rad = t.heading_rad;
    Some(Fact { local, velocity: reports.velocity(), armed: t.armed, landed, heading_rad })
}

/// Copies the reports to the observer and to the radio channel until the future is dropped.
async fn copy(
    frame: Frame,
    reports: Vec<Arc<Mutex<monitor::Reports>>>,
    facts: Facts,
    positions: wingbeat_hub::Positions,
) -> std::io::Result<()> {
    loop {
        for (i, reports) in reports.iter().enumerate() {
            let fact = fact_of(&frame, &reports.lock().unwrap_or_else(PoisonError::into_inner));
            let Some(fact) = fact else { continue };
            positions.set(i, fact.local);
            if let Some(entry) = facts.lock().unwrap_or_else(PoisonError::into_inner).get_mut(i) {
                *entry = fact;
            }
        }
        sleep(COPY_PERIOD).await;
    }
}

/// A daemon's warnings and errors, or all its lines, as they come.
async fn print_log(
    aircraft: usize,
    mut log: tokio::sync::broadcast::Receiver<wingbeat_api::LogLine>,
    all_lines: bool,
) {
    use tokio::sync::broadcast::error::RecvError;
    loop {
        match log.recv().await {
            Ok(line) if all_lines || line.severity != Severity::Info => {
                println!("{:8.1} s  aircraft {aircraft}: {}", line.time_ms as f64 * 1e-3, line.text);
            }
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_flight_is_in_no_figure_and_is_marked_below_every_table() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("plans");
        let mut plan = Plan::read(&folder.join("muscop-sitl.toml")).unwrap();
        plan.keep(Some(2), None).unwrap();
        let flights = plan.flights(&folder, 1).unwrap().remove(0);
        let (scenario, seed) = &flights[0];
        let flight = flight::fly(scenario, *seed, plan.time_limit()).unwrap();
        let none = Flown::default();
        let some = Flown { counted: vec![flight.clone()], refused: 2 };
        assert_eq!(refusals(&flights, &Flown { counted: vec![flight.clone()], refused: 0 }, &none), "");
        let lines = refusals(&flights, &some, &Flown { counted: Vec::new(), refused: 3 });
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[0].starts_with("REFUSED ") && lines[0].contains(": 2 of 3 flights by SITL"),
            "{lines:?}"
        );
        assert!(lines[1].contains(", alone: 3 of 3 flights by SITL"), "{lines:?}");

        let row = |how: &str| Row {
            mission: format!("mission, {how}"),
            ..Row::of(Some(scenario), vec![flight.clone()], vec![flight.clone()])
        };
        let of_waypoints = format!("\n{:>9}  ", scenario.waypoints());
        for (table, of_sitl) in [(Table::Flights, "mission, SITL"), (Table::MuscopOverhead, &of_waypoints)] {
            let marks = |real: Option<Row>| {
                tables(table, vec![(real, row("bench run"))], &[]).matches(of_sitl).count()
            };
            let both = marks(Some(row("SITL")));
            assert_eq!(both - marks(None), 1, "{table:?}: a row without flights has no figures");
        }
    }
}
