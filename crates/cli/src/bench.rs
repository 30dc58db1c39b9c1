//! `wingbeat bench`: plans in virtual time, a fleet in real time, a plan with real autopilots.

use std::io::Write as _;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use clap::{Args, Subcommand};
use wingbeat_bench::campaign::shard::Shard;
use wingbeat_bench::fleet::{self, Ended};
use wingbeat_bench::hosts::{self, Hosts, Join};
use wingbeat_bench::parity;
use wingbeat_bench::phases::run_times;
use wingbeat_bench::plan::bluesky::{self, Import};
use wingbeat_bench::plan::script::PlannedScript;
use wingbeat_bench::plan::{ARDUCOPTER, Plan};
use wingbeat_bench::prediction;
use wingbeat_bench::progress::Progress;
use wingbeat_bench::run;
use wingbeat_bench::scenario::{Scenario, Task, Variant, read_mission, sample_mission};
use wingbeat_bench::sitl;
use wingbeat_bench::takeoff;
use wingbeat_bench::{emergency, sky, timeouts};
use wingbeat_geo::formation::Layout;
use wingbeat_missions::Limits;
use wingbeat_sim::channel::Model;
use wingbeat_sim::motion::Profile;

use crate::{campaign, drills, hazards};

/// Benches.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Fly a plan in virtual time, as fast as it goes. The same seed gives the same flights, bit for bit.
    Run(RunArguments),
    /// Fly one mission in real time: a daemon per simulated aircraft, and the console in front of them.
    Fleet(FleetArguments),
    /// Fly a plan with real ArduCopter programs (SITL), one process and one daemon per aircraft.
    Sitl(SitlArguments),
    /// Fly one scenario on the simulated flight controller and on a real ArduCopter program, and compare.
    Parity(ParityArguments),
    /// How wrong MBCAP's predictions are: two legs at 15 m/s under each of its alternatives (thesis
    /// sections 5.1.4 and 5.3.1.2).
    Prediction(PredictionArguments),
    /// What each strategy of slot assignment costs at take-off: distance, time, conflicts of the planned paths.
    Takeoff(TakeoffArguments),
    /// Fault drills: seeded swarms under seeded faults, and the rules that must hold whatever goes wrong.
    Drills(drills::DrillsArguments),
    /// One fault drill, printed in full.
    Drill(drills::DrillArguments),
    /// The hazard table: which failure drills flew in which phase, and how many were unsafe.
    Hazards(hazards::HazardsArguments),
    /// Search for drills that break a rule.
    Hunt(hazards::HuntArguments),
    /// A crowd of aircraft through MBCAP-e, and what it costs this computer.
    Sky(SkyArguments),
    /// Print the false alarms of each protocol's time-outs on a channel. Exit code 1 where one is over its budget.
    Timeouts(TimeoutsArguments),
    /// An emergency by radio: from the operator's key to each aircraft's act, where datagrams are lost.
    Emergency(EmergencyArguments),
    /// Translate a scenario of BlueSky (.scn) into a plan, with a report of what has no counterpart.
    Import(ImportArguments),
    /// Print the job file that flies a campaign on many machines.
    Submit(campaign::SubmitArguments),
    /// Gather campaigns into one file.
    Merge(campaign::MergeArguments),
    /// Compare two campaigns, flight by flight.
    Compare(campaign::CompareArguments),
}

/// Arguments of `wingbeat bench import`.
#[derive(Args)]
pub(crate) struct ImportArguments {
    /// The scenario.
    #[arg(value_name = "FILE")]
    scenario: PathBuf,
    /// Where the plan is written. Default: standard output.
    #[arg(long, value_name = "PLAN")]
    out: Option<PathBuf>,
}

/// Arguments of `wingbeat bench timeouts`.
#[derive(Args)]
pub(crate) struct TimeoutsArguments {
    /// unrestricted, range:METRES or 802.11a.
    #[arg(long, default_value = "802.11a")]
    channel: Model,
}

/// Arguments of `wingbeat bench emergency`.
#[derive(Args)]
pub(crate) struct EmergencyArguments {
    /// What carries the datagrams: `unrestricted`, or `csma`, where they wait for each other and collide.
    #[arg(long, default_value = "unrestricted")]
    channel: emergency::Air,
    /// Aircraft.
    #[arg(long = "uavs", value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=128))]
    aircraft: u8,
    /// Share of datagrams that each link loses, 0 to less than 1.
    #[arg(long, default_value_t = 0.5)]
    loss: f64,
    /// Flights, each with randomness of its own.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
}

/// Arguments of `wingbeat bench sky`.
#[derive(Args)]
pub(crate) struct SkyArguments {
    /// Aircraft.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u8).range(1..=128))]
    aircraft: u8,
    /// Minutes flown after the start.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1000))]
    minutes: u64,
    /// What starts, missions and the channel are drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Arguments of `wingbeat bench takeoff`.
#[derive(Args)]
pub(crate) struct TakeoffArguments {
    /// What randomness is drawn from: where they stand, and the random strategy.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Numbers of aircraft.
    #[arg(long, value_delimiter = ',', default_values_t = [9, 25, 81])]
    uavs: Vec<usize>,
    /// How they stand, 10 m apart.
    #[arg(long, value_delimiter = ',', default_values_t = [Layout::Linear, Layout::Matrix, Layout::Random { seed: 3 }])]
    ground: Vec<Layout>,
    /// Formations in flight.
    #[arg(long, value_delimiter = ',', default_values_t = [Layout::Linear, Layout::Matrix, Layout::CompactMesh, Layout::Circular, Layout::Wedge])]
    air: Vec<Layout>,
    /// Distance between slots, metres.
    #[arg(long, default_value_t = 50.0)]
    distance_m: f64,
    /// Also the time that this computer took, which is not the same twice.
    #[arg(long)]
    time: bool,
}

/// Arguments of `wingbeat bench prediction`.
#[derive(Args)]
pub(crate) struct PredictionArguments {
    /// Draw the errors into this file (SVG).
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// Arguments of `wingbeat bench run`.
#[derive(Args)]
pub(crate) struct RunArguments {
    /// The plan, a TOML file.
    pub(crate) plan: PathBuf,
    /// What randomness is drawn from.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads; the figures do not depend on them. Without it 1, and with --out as many as this machine has.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Flights per row, instead of the plan's number.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: Option<u32>,
    /// Only so many aircraft: the swarm's number, or one of the crowds of a plan.
    #[arg(long)]
    pub(crate) uavs: Option<usize>,
    /// Only this protocol of a plan for missions of their own: off, mbcap, mbcap-e or sweep.
    #[arg(long)]
    pub(crate) variant: Option<Variant>,
    /// Another pilot for the leader of a plan that follows one: published, drawn:SECONDS or trace:FILE.
    #[arg(long)]
    pub(crate) pilot: Option<String>,
    /// What proves the senders of datagrams, instead of the plan's: ed25519 or stand-in.
    #[arg(long)]
    pub(crate) signatures: Option<String>,
    /// The version of ArduCopter that is simulated, instead of the plan's: 3.5.7 or 4.6.2.
    #[arg(long, value_name = "VERSION")]
    pub(crate) profile: Option<Profile>,
    /// What flies, instead of the plan's autopilot: a version that is simulated, 3.5.7 or 4.6.2, or arducopter:PATH, an ArduCopter SITL
    /// program in step with the virtual time (docs/lockstep.md).
    #[arg(long, value_name = "AUTOPILOT", conflicts_with = "profile")]
    pub(crate) autopilot: Option<String>,
    /// What moves the aircraft of that program, instead of our physics: proxy:HOST:PORT, a simulator that speaks ArduPilot's JSON interface
    /// (docs/lockstep.md).
    #[arg(long, value_name = "PHYSICS")]
    pub(crate) physics: Option<String>,
    /// Fly on so many computers, of which this is the first: N or N:PORT, where the others join (docs/lockstep.md).
    #[arg(long, value_name = "N[:PORT]", conflicts_with_all = ["threads", "phases", "out"])]
    pub(crate) hosts: Option<Hosts>,
    /// Fly a part of the aircraft for the first computer, which listens there, by the same plan and arguments.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "number", conflicts_with_all = ["threads", "phases", "out", "record"])]
    pub(crate) join: Option<String>,
    /// The number of this computer, from 2.
    #[arg(long, value_name = "NUMBER", requires = "join")]
    pub(crate) number: Option<usize>,
    /// Pass on for so many others, which join at this port here instead.
    #[arg(long, value_name = "N:PORT", requires = "join", value_parser = passed_on)]
    pub(crate) pass_on: Option<(u16, usize)>,
    /// What carries the datagrams, instead of the plan's channel.model: unrestricted, range:METRES, 802.11a, csma, or ns3
    /// (docs/lockstep.md).
    #[arg(long, value_name = "MODEL")]
    pub(crate) medium: Option<String>,
    /// How the flight and ns-3 keep one time, instead of the plan's channel.ns3.method: next-event, coupled, stepwise or asynchronous
    /// (docs/lockstep.md).
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// A Python script that flies an aircraft instead of its agent, in virtual time: the aircraft, counted from 1, the file, and its
    /// arguments (docs/lockstep.md).
    #[arg(long, value_name = "N:FILE ARGUMENTS")]
    pub(crate) script: Vec<String>,
    /// Write the flight logs of each flight into a folder of its own in this one (docs/records.md).
    #[arg(long, value_name = "FOLDER")]
    pub(crate) record: Option<PathBuf>,
    /// Also where the time of each flight went: autopilots and physics, agents and world, medium; and what it costs to couple ns-3
    /// (docs/lockstep.md). Figures of this computer, on standard error.
    #[arg(long, conflicts_with_all = ["threads", "record", "out"])]
    pub(crate) phases: bool,
    /// Keep the result of each flight in this folder, fly only what it does not have, and write tables and a page there once it
    /// has all (docs/campaigns.md).
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Fly only a part of the flights, such as 3/8.
    #[arg(long, value_name = "I/N", requires = "out")]
    pub(crate) shard: Option<Shard>,
    /// Fly one of so many parts: the one of HQ_TASK_ID, SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX.
    #[arg(long, value_name = "N", requires = "out", conflicts_with = "shard", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) shards: Option<u32>,
}

/// Arguments of `wingbeat bench fleet`.
#[derive(Args)]
pub(crate) struct FleetArguments {
    /// A plan, a TOML file, instead of a mission and a formation: its first flight, or the one that
    /// --flight names.
    #[arg(long, conflicts_with_all = ["mission", "formation", "distance_m", "speed_m_s", "channel", "gps_noise_m"])]
    plan: Option<PathBuf>,
    /// The flight of the plan: the first whose name contains this.
    #[arg(long, requires = "plan")]
    flight: Option<String>,
    /// Only this protocol of a plan for missions of their own: off, mbcap, mbcap-e or sweep.
    #[arg(long, requires = "plan")]
    variant: Option<Variant>,
    /// Another pilot for the leader of a plan that follows one: published, drawn:SECONDS or trace:FILE.
    #[arg(long, requires = "plan")]
    pilot: Option<String>,
    /// How many aircraft: 9, or as many as the plan has.
    #[arg(long)]
    uavs: Option<usize>,
    /// The version of ArduCopter that is simulated: 3.5.7 or 4.6.2; without it the plan's, or 3.5.7.
    #[arg(long, value_name = "VERSION")]
    profile: Option<Profile>,
    /// The mission: QGC WPL 110 (.waypoints, .txt), QGroundControl .plan, or KML. Without it the sample survey, which
    /// is part of this program.
    #[arg(long)]
    mission: Option<PathBuf>,
    /// A formation that `wingbeat formation` lists, except custom.
    #[arg(long, default_value = "linear")]
    formation: String,
    /// Distance between slots in flight, metres.
    #[arg(long, default_value_t = 50.0)]
    distance_m: f64,
    /// Speed along the legs, metres per second.
    #[arg(long, default_value_t = 10.0)]
    speed_m_s: f64,
    /// unrestricted, range:METRES or 802.11a.
    #[arg(long, default_value = "802.11a")]
    channel: String,
    /// Standard deviation of the wandering position error, metres.
    #[arg(long, default_value_t = 0.3)]
    gps_noise_m: f64,
    /// Simulated time runs so many times faster than the wall clock.
    #[arg(long, default_value_t = 1.0)]
    speed: f64,
    /// Highest waypoint above home that is accepted, metres.
    #[arg(long, default_value_t = 120.0)]
    fence_altitude_m: f64,
    /// Farthest waypoint from home that is accepted, metres.
    #[arg(long, default_value_t = 5_000.0)]
    distance_from_home_m: f64,
    /// What randomness is drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the console is served.
    #[arg(long, default_value = "127.0.0.1:8700")]
    ground: SocketAddr,
    /// The users who sign in to the console, as for `wingbeat ground`. Without it the console asks for no password.
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
    #[command(flatten)]
    checklist: crate::ground::Checklist,
    /// The built page: `web/dist` after `npm run build` in `web/`. Without it the console is its API alone.
    #[arg(long, value_name = "DIR")]
    web: Option<PathBuf>,
    /// A map of the ground for the page, as for `wingbeat ground`
    #[arg(long, value_name = "FILE", requires = "web", value_parser = crate::ground::map)]
    tiles: Option<PathBuf>,
    /// Log each aircraft's flight in DIR/aircraft-N, and keep the keys of the console in DIR/console, a new folder: `wingbeat fleet
    /// bundle --out OUT --keys DIR/console` collects the logs. Without it nothing is logged, and the keys are thrown away
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,
    /// Press Setup and Start without waiting for an operator.
    #[arg(long, conflicts_with = "checklist")]
    auto: bool,
    /// End with the flight, and fail if not every aircraft completed it. Presses Setup and Start too:
    /// there is no page to press them on.
    #[arg(long, conflicts_with = "checklist")]
    headless: bool,
}

/// Arguments of `wingbeat bench sitl`.
#[derive(Args)]
pub(crate) struct SitlArguments {
    /// The ArduCopter SITL program.
    #[arg(long)]
    binary: PathBuf,
    /// The plan, a TOML file.
    #[arg(long)]
    plan: PathBuf,
    /// How many aircraft, instead of the plan's number.
    #[arg(long)]
    uavs: Option<usize>,
    /// Only this protocol of a plan for missions of their own: off, mbcap, mbcap-e or sweep.
    #[arg(long)]
    variant: Option<Variant>,
    /// Another pilot for the leader of a plan that follows one: published, drawn:SECONDS or trace:FILE.
    #[arg(long)]
    pilot: Option<String>,
    /// Times real time, 0.1 to 20. A result below 0.95 of it is refused.
    #[arg(long, default_value_t = 1.0)]
    speedup: f64,
    /// Keep the binary logs in this folder.
    #[arg(long)]
    logs: Option<PathBuf>,
    /// Further parameters, NAME VALUE on each line: after the bench's own, before the plan's speed.
    #[arg(long)]
    defaults: Option<PathBuf>,
    /// Flights per row, instead of the plan's number.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,
    /// What randomness is drawn from: placement and the radio. The flight itself does not repeat.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The first SITL instance number to try; its ports are 5760, 5762, 5763 (TCP) and 5501 (UDP), each
    /// plus 10 times this.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=255))]
    instance: u16,
    /// Use this machine's network instead of one of its own: a browser and ground stations can connect,
    /// and so can every program that reaches this machine.
    #[arg(long)]
    host_network: bool,
    /// Where the console is served, reachable with --host-network only.
    #[arg(long, default_value = "127.0.0.1:0")]
    ground: SocketAddr,
}

/// Arguments of `wingbeat bench parity`.
#[derive(Args)]
pub(crate) struct ParityArguments {
    /// The ArduCopter SITL program; without it the simulated flight controller's figures alone.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// The version of ArduCopter that is simulated, 3.5.7 or 4.6.2; without it that of the program, or 3.5.7 where there is none.
    #[arg(long, value_name = "VERSION")]
    profile: Option<Profile>,
    /// Fly the program twice instead: on its own physics, and in lock step on ours. Exit code 1 where a figure differs by more than its bound.
    #[arg(long, requires = "binary", conflicts_with = "profile")]
    lock_step: bool,
    /// Times real time, 0.1 to 20; slower is more exact. Of the program on its own physics.
    #[arg(long, default_value_t = 1.0)]
    speedup: f64,
    /// The first SITL instance number to try.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=255))]
    instance: u16,
}

/// Runs the subcommand.
pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Run(arguments) => run_plan(arguments),
        Command::Fleet(arguments) => fly_fleet(arguments),
        Command::Sitl(arguments) => fly_sitl(arguments),
        Command::Parity(arguments) => compare(arguments),
        Command::Prediction(arguments) => predict(arguments),
        Command::Takeoff(arguments) => take_off(arguments),
        Command::Drills(arguments) => drills::run_all(arguments),
        Command::Drill(arguments) => drills::run_one(arguments),
        Command::Hazards(arguments) => hazards::run(arguments),
        Command::Hunt(arguments) => hazards::hunt(arguments),
        Command::Emergency(EmergencyArguments { channel, aircraft, loss, seeds }) => {
            emergency::run(*channel, usize::from(*aircraft), *loss, *seeds).map(|()| ExitCode::SUCCESS)
        }
        Command::Timeouts(TimeoutsArguments { channel }) => {
            let table = timeouts::Table::new(channel.clone());
            print!("{table}");
            Ok(if table.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::Import(arguments) => import(arguments),
        Command::Submit(arguments) => campaign::submit(arguments),
        Command::Merge(arguments) => campaign::merge(arguments),
        Command::Compare(arguments) => campaign::compare(arguments),
        Command::Sky(SkyArguments { aircraft, minutes, seed }) => {
            sky::run(usize::from(*aircraft), *minutes, *seed).map(|()| ExitCode::SUCCESS)
        }
    }
}

/// Writes the plan, and on standard error what became of the scenario's lines.
fn import(arguments: &ImportArguments) -> Result<ExitCode> {
    let path = &arguments.scenario;
    let here = || path.display().to_string();
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or("scenario");
    let text = std::fs::read_to_string(path).with_context(here)?;
    let Import { plan, report } = bluesky::import(name, &text).with_context(here)?;
    for line in report {
        eprintln!("{line}");
    }
    match &arguments.out {
        Some(out) => {
            let mut file = std::fs::File::create_new(out)
                .with_context(|| format!("{}: expected no file there", out.display()))?;
            file.write_all(plan.as_bytes()).with_context(|| out.display().to_string())?;
        }
        None => print!("{plan}"),
    }
    Ok(ExitCode::SUCCESS)
}

fn predict(arguments: &PredictionArguments) -> Result<ExitCode> {
    let flown = prediction::fly_all()?;
    let (speed_m_s, leg_m) = (prediction::SPEED_M_S, prediction::LEG_M);
    println!("MBCAP's predictions: two legs of {leg_m} m at {speed_m_s} m/s with a right angle between them");
    print!("{}", prediction::table::table(&flown));
    if let Some(path) = &arguments.plot {
        let place = || format!("--plot {}", path.display());
        std::fs::write(path, prediction::plot::svg(&flown)?).with_context(place)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn take_off(arguments: &TakeoffArguments) -> Result<ExitCode> {
    let comparison = takeoff::Comparison {
        counts: arguments.uavs.clone(),
        ground: arguments.ground.clone(),
        air: arguments.air.clone(),
        distance_m: arguments.distance_m,
        seed: arguments.seed,
    };
    let progress = Progress::watch();
    let rows = takeoff::compare(&comparison)?;
    drop(progress);
    println!(
        "Take-off: slots {} m apart, seed {}; a conflict is a pair nearer than 5 m",
        arguments.distance_m, arguments.seed
    );
    print!("{}", takeoff::table(&rows, arguments.time));
    Ok(ExitCode::SUCCESS)
}

/// The plan with the arguments that change it.
pub(crate) fn read_plan(arguments: &RunArguments) -> Result<Plan> {
    let mut plan = Plan::read(&arguments.plan)?;
    plan.repeat = arguments.repeat.unwrap_or(plan.repeat);
    plan.keep(arguments.uavs, arguments.variant)?;
    choose_pilot(&mut plan, arguments.pilot.as_deref())?;
    if let Some(signatures) = &arguments.signatures {
        plan.channel.signatures = Some(signatures.clone());
    }
    if let Some(medium) = &arguments.medium {
        plan.set_medium(medium)?;
    }
    plan.physics = arguments.physics.clone().or(plan.physics);
    plan.hosts = arguments.hosts.or(plan.hosts);
    if let Some(method) = &arguments.method {
        plan.set_method(method)?;
    }
    for script in &arguments.script {
        let script: PlannedScript = script.parse().context("--script")?;
        plan.script.retain(|planned| planned.aircraft != script.aircraft);
        plan.script.push(script);
    }
    plan.autopilot = arguments.profile.map(|profile| profile.to_string()).or(plan.autopilot);
    if let Some(autopilot) = &arguments.autopilot {
        let named = program_of(autopilot)?.map(|path| format!("{ARDUCOPTER}{}", path.display()));
        plan.autopilot = Some(named.unwrap_or_else(|| autopilot.clone()));
    }
    Ok(plan)
}

/// The program that `--autopilot` names, relative to where we are and not to the plan; nothing where it names a version.
pub(crate) fn program_of(autopilot: &str) -> Result<Option<PathBuf>> {
    let Some(path) = autopilot.strip_prefix(ARDUCOPTER) else { return Ok(None) };
    ensure!(!path.is_empty(), "--autopilot: found '{autopilot}', expected {ARDUCOPTER}PATH");
    Ok(Some(std::path::absolute(path)?))
}

fn run_plan(arguments: &RunArguments) -> Result<ExitCode> {
    let plan = read_plan(arguments)?;
    let folder = arguments.plan.parent().unwrap_or(Path::new("."));
    // Another simulator, or another computer, is not in a network of ours.
    if plan.arducopter(folder).is_some() && plan.physics.is_none() && plan.hosts.is_none() {
        own_network(false);
    }
    print_notes(&plan.notes(folder)?);
    if let Some(address) = &arguments.join {
        return join_plan(&plan, arguments, address);
    }
    if let Some(out) = &arguments.out {
        return campaign::fly(&plan, arguments, out);
    }
    let began = Instant::now();
    let progress = Progress::watch();
    let record = arguments.record.as_deref();
    let threads = arguments.threads.unwrap_or(1).into();
    let outcome = if arguments.phases {
        let (outcome, phases) = run::run_watched(&plan, folder, arguments.seed)?;
        phases.iter().for_each(|phases| eprint!("{}", phases.text()));
        eprint!("{}", run_times(&phases).unwrap_or_default());
        outcome
    } else {
        run::run_recorded(&plan, folder, arguments.seed, threads, record)?
    };
    drop(progress);
    let wall_s = began.elapsed().as_secs_f64();
    let code = print_outcome(&plan, arguments, &outcome)?;
    let virtual_s = outcome.virtual_time.as_secs_f64();
    // How fast this machine was is no part of the result.
    eprintln!("{virtual_s:.0} s flown in {wall_s:.2} s: {:.0} times real time", virtual_s / wall_s);
    Ok(code)
}

/// The port at which a computer passes on, and for how many.
fn passed_on(text: &str) -> Result<(u16, usize), String> {
    let parts =
        text.split_once(':').and_then(|(count, port)| Some((port.parse().ok()?, count.parse().ok()?)));
    let found = parts.filter(|(port, count)| *port > 0 && (1..hosts::COMPUTERS_MOST).contains(count));
    found.ok_or_else(|| format!("found '{text}', expected N:PORT: how many others, and where they join"))
}

/// Flies a part of the aircraft for another computer.
fn join_plan(plan: &Plan, arguments: &RunArguments, address: &str) -> Result<ExitCode> {
    let place = || format!("--join: found '{address}', expected ADDRESS:PORT of the first computer");
    let at = address.to_socket_addrs().with_context(place)?.next().with_context(place)?;
    let join = Join { at, number: arguments.number.unwrap_or_default(), passes_on: arguments.pass_on };
    let folder = arguments.plan.parent().unwrap_or(Path::new("."));
    let flights = hosts::join(plan, folder, arguments.seed, join)?;
    eprintln!("{flights} flights flown for {at}");
    Ok(ExitCode::SUCCESS)
}

/// The table, what aircraft warned of, flights that failed, figures that missed their range.
pub(crate) fn print_outcome(
    plan: &Plan,
    arguments: &RunArguments,
    outcome: &run::Outcome,
) -> Result<ExitCode> {
    println!("{}", plan.title);
    let (size, repeat, seed) = (plan.size(), plan.repeat, arguments.seed);
    println!("{size}{repeat} flights per row, seed {seed}, signatures {}", plan.signatures()?.name());
    if let Some(line) = plan.flown_by() {
        println!("{line}");
    }
    print!("{}", outcome.table);
    println!("trace {:016x}", outcome.trace_hash);
    for line in &outcome.warnings {
        eprintln!("{line}");
    }
    for flight in &outcome.failed {
        eprintln!("failed: {flight}");
    }
    for row in &outcome.missed {
        eprintln!("out of range: {row}");
    }
    if outcome.failed.is_empty() && outcome.missed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("to see it again: {}", campaign::again(arguments));
    Ok(ExitCode::FAILURE)
}

/// What of mission files is not flown is no part of the result.
fn print_notes(notes: &[String]) {
    for note in notes {
        eprintln!("{note}");
    }
}

/// Another pilot than the plan's.
fn choose_pilot(plan: &mut Plan, pilot: Option<&str>) -> Result<()> {
    pilot.map_or(Ok(()), |pilot| plan.set_pilot(pilot).context("--pilot"))
}

/// What the fleet flies: a flight of a plan, or what the arguments describe.
fn fleet_scenario(arguments: &FleetArguments) -> Result<Scenario> {
    let Some(path) = &arguments.plan else { return described(arguments) };
    let mut plan = Plan::read(path)?;
    plan.on_one_computer("bench fleet")?;
    plan.keep(arguments.uavs, arguments.variant)?;
    choose_pilot(&mut plan, arguments.pilot.as_deref())?;
    let scenarios = plan.scenarios(path.parent().unwrap_or(Path::new(".")), arguments.seed)?;
    let Some(name) = &arguments.flight else {
        return scenarios.into_iter().next().context("the plan has no flight");
    };
    let names: Vec<String> = scenarios.iter().map(Scenario::label).collect();
    let found = names.iter().position(|n| n.contains(name.as_str()));
    let found = found.and_then(|i| scenarios.into_iter().nth(i));
    found.with_context(|| format!("--flight: found '{name}', expected a part of: {}", names.join("; ")))
}

fn described(arguments: &FleetArguments) -> Result<Scenario> {
    let (fence, farthest) = (arguments.fence_altitude_m, arguments.distance_from_home_m);
    ensure!((2.0..=120.0).contains(&fence), "--fence-altitude-m: found {fence}, expected 2 to 120");
    ensure!(
        (10.0..=5_000.0).contains(&farthest),
        "--distance-from-home-m: found {farthest}, expected 10 to 5000"
    );
    let limits = Limits { fence_altitude_m: fence, distance_from_home_m: farthest, ..Limits::default() };
    let mission = match &arguments.mission {
        Some(path) => read_mission(path, &limits)?,
        None => sample_mission(&limits)?,
    };
    let mut scenario = Scenario::muscop(&mission.name, mission.points).measured_from_its_start();
    scenario.stated = vec![mission.stated];
    if let Task::Swarm(swarm) = &mut scenario.task {
        swarm.aircraft = arguments.uavs.unwrap_or(swarm.aircraft);
        swarm.layout = arguments
            .formation
            .parse()
            .map_err(|e| anyhow!("--formation: found '{}', {e}", arguments.formation))?;
        swarm.distance_m = arguments.distance_m;
        swarm.speed_m_s = arguments.speed_m_s;
    }
    scenario.gps_noise_m = arguments.gps_noise_m;
    scenario.channel = arguments.channel.parse().map_err(|e| anyhow!("--channel: {e}"))?;
    Ok(scenario)
}

/// A page that is asked for is there before anything flies.
fn check_page(arguments: &FleetArguments) -> Result<()> {
    if let Some(folder) = arguments.web.as_ref().filter(|_| !arguments.headless) {
        let page = folder.join("index.html");
        ensure!(
            page.is_file(),
            "--web: found no {}, expected the built page (`npm ci && npm run build` in web/)",
            page.display()
        );
    }
    Ok(())
}

fn fly_fleet(arguments: &FleetArguments) -> Result<ExitCode> {
    check_page(arguments)?;
    let mut scenario = fleet_scenario(arguments)?;
    scenario.profile = arguments.profile.unwrap_or(scenario.profile);
    print_notes(&scenario.notes()?);
    let mut protection = crate::ground::of_users(arguments.users.as_deref());
    protection.checklist = arguments.checklist.read(protection.audit.as_deref(), None)?;
    let config = fleet::Config {
        scenario,
        seed: arguments.seed,
        speed: arguments.speed,
        ground: arguments.ground,
        web_dir: arguments.web.clone(),
        tiles: arguments.tiles.clone(),
        logs: arguments.logs.clone(),
        protection,
        auto: arguments.auto || arguments.headless,
        headless: arguments.headless,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let end = crate::end_signal()?;
        Box::pin(fleet::fly(config, end)).await
    })?;
    Ok(match ended {
        Ended::Succeeded => ExitCode::SUCCESS,
        Ended::Failed => ExitCode::FAILURE,
        // Headless, a flight was asked for and did not take place; with a page, this is how it ends.
        Ended::Stopped if arguments.headless => ExitCode::FAILURE,
        Ended::Stopped => ExitCode::SUCCESS,
    })
}

fn fly_sitl(arguments: &SitlArguments) -> Result<ExitCode> {
    let mut plan = Plan::read(&arguments.plan)?;
    plan.repeat = arguments.repeat.unwrap_or(plan.repeat);
    plan.keep(arguments.uavs, arguments.variant).context("--uavs, --variant")?;
    choose_pilot(&mut plan, arguments.pilot.as_deref())?;
    let folder = arguments.plan.parent().unwrap_or(Path::new(".")).to_path_buf();
    plan.flights(&folder, arguments.seed).context("--uavs")?;
    print_notes(&plan.notes(&folder)?);
    let defaults = match &arguments.defaults {
        None => String::new(),
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
            sitl::parameters::check(&text).with_context(|| path.display().to_string())?;
            text
        }
    };
    let binary = &arguments.binary;
    is_program(binary)?;
    own_network(arguments.host_network);
    println!("{}", plan.title);
    let config = sitl::Config {
        binary: binary.clone(),
        plan,
        folder,
        seed: arguments.seed,
        speedup: arguments.speedup,
        logs: arguments.logs.clone(),
        defaults,
        instance: arguments.instance,
        ground: arguments.ground,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let end = crate::end_signal()?;
        Box::pin(sitl::fly(config, end)).await
    })?;
    Ok(if ended == Ended::Succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Continues in a network of our own, or warns that SITL's ports are open.
pub(crate) fn own_network(host: bool) {
    if sitl::network::is_own() {
        return;
    }
    let why = if host { "--host-network".into() } else { sitl::network::enter() };
    eprintln!("SITL's ports are open to this machine's network while it flies: {why}");
}

fn compare(arguments: &ParityArguments) -> Result<ExitCode> {
    ensure!(
        (0.1..=20.0).contains(&arguments.speedup),
        "--speedup: found {}, expected 0.1 to 20",
        arguments.speedup
    );
    let Some(binary) = &arguments.binary else {
        let trace = parity::simulated(arguments.profile.unwrap_or(Profile::Copter357))?;
        for quantity in parity::measure::everything(&trace) {
            println!("{:<44} {:>8.2} {}", quantity.name, quantity.value, quantity.unit);
        }
        return Ok(ExitCode::SUCCESS);
    };
    is_program(binary)?;
    if arguments.lock_step {
        return compare_physics(arguments, binary);
    }
    let of_binary = sitl::process::profile(binary)?;
    let profile = arguments.profile.or(of_binary).unwrap_or(Profile::Copter357);
    println!("simulated: ArduCopter {profile}");
    own_network(false);
    let simulated = parity::simulated(profile)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let real = runtime.block_on(async {
        let end = crate::end_signal()?;
        parity::real(binary, arguments.instance, arguments.speedup, end).await
    })?;
    let Some(real) = real else {
        println!("stopped");
        return Ok(ExitCode::FAILURE);
    };
    let comparison = parity::compare(&real, &simulated);
    print!("{}", comparison.table);
    let (alike, all) = comparison.alike;
    println!(
        "\n{alike} of {all} quantities alike (within 10 %, or 0.3 m, 0.2 s, 0.1 m/s where that is larger)"
    );
    Ok(ExitCode::SUCCESS)
}

/// One program on two physics.
fn compare_physics(arguments: &ParityArguments, binary: &Path) -> Result<ExitCode> {
    use parity::manoeuvres::{Flight, everything, on_ours};
    own_network(false);
    let [calm, wind] = Flight::ALL.map(|flight| on_ours(binary, flight));
    let ours = everything(&calm?, &wind?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let theirs = runtime.block_on(async {
        let mut flown = Vec::new();
        for flight in Flight::ALL {
            let (end, speedup) = (crate::end_signal()?, arguments.speedup);
            match parity::on_its_own(binary, arguments.instance, speedup, flight, end).await? {
                Some(trace) => flown.push(trace),
                None => return anyhow::Ok(None),
            }
        }
        Ok(Some(flown))
    })?;
    let Some([calm, wind]) = theirs.as_deref() else {
        println!("stopped");
        return Ok(ExitCode::FAILURE);
    };
    let comparison = parity::side_by_side(("its own physics", &everything(calm, wind)), ("ours", &ours));
    print!("{}", comparison.table);
    let (alike, all) = comparison.alike;
    println!("\n{alike} of {all} quantities within their bounds");
    Ok(if alike == all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_program(binary: &Path) -> Result<()> {
    let place = binary.display();
    ensure!(binary.is_file(), "--binary {place}: found no file, expected an ArduCopter SITL program");
    Ok(())
}
