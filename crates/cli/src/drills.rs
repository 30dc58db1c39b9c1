//! `wingbeat bench drills` and `wingbeat bench drill`: fault drills in virtual time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result};
use clap::Args;
use wingbeat_bench::drills::hunt::Plan;
use wingbeat_bench::drills::{
    self, AIRCRAFT, BATTERY_MIN, Chosen, Conditions, Draws, GNSS_BIAS_M, GPS_NOISE_M, Kind, SLOPE_M,
    SPEED_M_S, WIND_M_S,
};
use wingbeat_bench::plan::ARDUCOPTER;
use wingbeat_geo::formation::Layout;
use wingbeat_sim::motion::Profile;

use crate::bench::{own_network, program_of};

/// In which conditions drills are flown.
#[derive(Args)]
pub(crate) struct ConditionsArguments {
    /// Number of aircraft.
    #[arg(long = "uavs", value_name = "N", value_parser = aircraft)]
    aircraft: Option<usize>,
    /// Standard deviation of the wandering position error, metres.
    #[arg(long, value_name = "M", value_parser = gps_noise_m, allow_negative_numbers = true)]
    gps_noise_m: Option<f64>,
    /// Mean wind, metres per second; it gusts.
    #[arg(long, value_name = "SPEED", value_parser = wind_m_s, allow_negative_numbers = true)]
    wind_m_s: Option<f64>,
    /// The version of ArduCopter that is simulated: 3.5.7 or 4.6.2.
    #[arg(long, value_name = "VERSION")]
    profile: Option<Profile>,
    /// What flies instead of a simulated flight controller: arducopter:PATH, an ArduCopter SITL program in lock step (docs/lockstep.md).
    #[arg(long, value_name = "AUTOPILOT", conflicts_with = "profile")]
    autopilot: Option<String>,
    /// Constant position error of each aircraft, metres, in a direction of its own.
    #[arg(long, value_name = "M", value_parser = gnss_bias_m, allow_negative_numbers = true)]
    gnss_bias_m: Option<f64>,
    /// The formation of a swarm, as `wingbeat formation` names it.
    #[arg(long, value_name = "NAME")]
    formation: Option<Layout>,
    /// How a swarm takes off: sequential or simultaneous.
    #[arg(long, value_name = "MANNER")]
    take_off: Option<Chosen>,
    /// How a swarm lands: sequential or simultaneous.
    #[arg(long, value_name = "MANNER")]
    landing: Option<Chosen>,
    /// Difference between the heights of the highest and the lowest home, metres.
    #[arg(long, value_name = "M", value_parser = slope_m, allow_negative_numbers = true)]
    slope_m: Option<f64>,
    /// Speed along the legs of a swarm, metres per second, on legs so long that it is reached; drawn otherwise.
    #[arg(long, value_name = "SPEED", value_parser = speed_m_s, allow_negative_numbers = true)]
    speed_m_s: Option<f64>,
    /// Swarms as near to each other on the ground, in flight and landing as their aircraft accept.
    #[arg(long)]
    at_budget: bool,
    /// How long a full battery lasts in a hover, minutes; 0 for one without end.
    #[arg(long, value_name = "MIN", value_parser = battery_min, allow_negative_numbers = true)]
    battery_min: Option<f64>,
    /// Configure the aircraft with the position errors, wind and slope as they are, and not with the defaults.
    #[arg(long)]
    told: bool,
    /// Calm air, level ground, good positions, endless batteries, and aircraft that are told so; otherwise the world of a field,
    /// drawn from the seed.
    #[arg(long)]
    calm: bool,
}

impl ConditionsArguments {
    /// Those of the command line, and the others of `otherwise`.
    fn over(&self, otherwise: Conditions) -> Conditions {
        Conditions {
            aircraft: self.aircraft.unwrap_or(otherwise.aircraft),
            gps_noise_m: self.gps_noise_m.unwrap_or(otherwise.gps_noise_m),
            wind_m_s: self.wind_m_s.unwrap_or(otherwise.wind_m_s),
            profile: self.profile.unwrap_or(otherwise.profile),
            gnss_bias_m: self.gnss_bias_m.unwrap_or(otherwise.gnss_bias_m),
            formation: self.formation.or(otherwise.formation),
            take_off: self.take_off.map(|chosen| chosen.0).or(otherwise.take_off),
            landing: self.landing.map(|chosen| chosen.0).or(otherwise.landing),
            slope_m: self.slope_m.unwrap_or(otherwise.slope_m),
            speed_m_s: self.speed_m_s.or(otherwise.speed_m_s),
            is_at_budget: self.at_budget || otherwise.is_at_budget,
            battery_min: self.battery_min.unwrap_or(otherwise.battery_min),
            is_told: self.told || otherwise.is_told,
            is_calm: otherwise.is_calm,
            arducopter: otherwise.arducopter,
        }
    }

    /// Returns the world of a seed, flown by the program where one is named.
    fn world(&self, seed: u64, program: Option<Conditions>) -> Conditions {
        let world = if self.calm { Conditions::default() } else { Conditions::field(seed) };
        match program {
            Some(Conditions { profile, arducopter, .. }) => Conditions { profile, arducopter, ..world },
            None => world,
        }
    }

    /// Returns the program that flies instead of simulated flight controllers.
    fn program(&self) -> Result<Option<Conditions>> {
        program(self.autopilot.as_deref())
    }
}

/// Returns the ArduCopter program of an option, in conditions that name it.
pub(crate) fn program(autopilot: Option<&str>) -> Result<Option<Conditions>> {
    let Some(autopilot) = autopilot else { return Ok(None) };
    let path = program_of(autopilot)?.with_context(|| {
        format!(
            "--autopilot: found '{autopilot}', expected {ARDUCOPTER}PATH (a version is chosen by --profile)"
        )
    })?;
    // Named once by a process; conditions are copied for each drill.
    let program: &'static Path = Box::leak(path.into_boxed_path());
    let conditions = Conditions::default().flown_by(program)?;
    own_network(false);
    Ok(Some(conditions))
}

fn within<T: std::str::FromStr + PartialOrd + std::fmt::Display>(
    text: &str,
    bounds: &std::ops::RangeInclusive<T>,
) -> Result<T, String> {
    let number: Option<T> = text.parse().ok();
    let (least, most) = (bounds.start(), bounds.end());
    number.filter(|n| bounds.contains(n)).ok_or_else(|| format!("found '{text}', expected {least} to {most}"))
}

fn aircraft(text: &str) -> Result<usize, String> {
    within(text, &AIRCRAFT)
}

fn gps_noise_m(text: &str) -> Result<f64, String> {
    within(text, &GPS_NOISE_M)
}

fn wind_m_s(text: &str) -> Result<f64, String> {
    within(text, &WIND_M_S)
}

fn gnss_bias_m(text: &str) -> Result<f64, String> {
    within(text, &GNSS_BIAS_M)
}

fn battery_min(text: &str) -> Result<f64, String> {
    within(text, &BATTERY_MIN)
}

fn slope_m(text: &str) -> Result<f64, String> {
    within(text, &SLOPE_M)
}

fn speed_m_s(text: &str) -> Result<f64, String> {
    within(text, &SPEED_M_S)
}

/// Arguments of `wingbeat bench drills`.
#[derive(Args)]
pub(crate) struct DrillsArguments {
    /// Only these kinds; all if none is given.
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<Kind>,
    /// Drills of each kind.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=1_000_000_000))]
    first: u64,
    /// Threads; the figures do not depend on them.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Print the trace of every drill instead of the table: a number over every byte that crossed a border.
    #[arg(long)]
    traces: bool,
    /// Draw the conditions that are not named from each drill's seed: those of the field, and 2 to 25 aircraft, 0.3 to 0.6 m of
    /// wandering and up to 1.5 m of constant position error, up to 3 m of slope, both autopilots (or the version of
    /// --autopilot), as much wind as they hold their places in, any formation, both manners of taking off and landing.
    #[arg(long, conflicts_with = "calm")]
    varied: bool,
    #[command(flatten)]
    conditions: ConditionsArguments,
}

/// Arguments of `wingbeat bench drill`.
#[derive(Args)]
pub(crate) struct DrillArguments {
    /// The kind of fault.
    #[arg(long, required_unless_present = "plan", requires = "seed")]
    kind: Option<Kind>,
    /// The seed of the drill.
    #[arg(long, required_unless_present = "plan")]
    seed: Option<u64>,
    /// A plan that `wingbeat bench hunt` found.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "seed"])]
    plan: Option<PathBuf>,
    /// The whole log, not its end.
    #[arg(long)]
    log: bool,
    /// Write the flight log of each aircraft into this folder (docs/records.md).
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    #[command(flatten)]
    conditions: ConditionsArguments,
}

impl DrillsArguments {
    /// Which autopilot they fly.
    fn autopilot(&self) -> String {
        if let Some(autopilot) = &self.conditions.autopilot {
            return format!("{}, in lock step", autopilot.trim_start_matches(ARDUCOPTER));
        }
        match self.conditions.profile {
            Some(profile) => format!("ArduCopter {profile}, simulated"),
            None if self.varied => "ArduCopter 3.5.7 or 4.6.2, simulated, as each seed draws it".into(),
            None => format!("ArduCopter {}, simulated", Conditions::default().profile),
        }
    }
}

/// A release build ends at a panic: print first which drill runs.
pub(crate) fn name_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        if let Some(command) = drills::under_way() {
            eprintln!("UNSAFE panic: {command}");
        }
    }));
}

/// Flies many and prints one table.
pub(crate) fn run_all(arguments: &DrillsArguments) -> Result<ExitCode> {
    name_panics();
    let program = arguments.conditions.program()?;
    let all: Vec<Kind> = Kind::all().collect();
    let kinds = if arguments.kinds.is_empty() { &all } else { &arguments.kinds };
    let began = Instant::now();
    let conditions = |seed| {
        let world = arguments.conditions.world(seed, program);
        arguments.conditions.over(if arguments.varied { Conditions::drawn_for(seed, world) } else { world })
    };
    let (first, seeds) = (arguments.first, arguments.seeds);
    let outcomes = drills::drills(kinds, first, seeds, arguments.threads.into(), conditions)?;
    let wall_s = began.elapsed().as_secs_f64();
    if arguments.traces {
        for outcome in &outcomes {
            println!("trace {} {} {:016x}", outcome.kind.name(), outcome.seed, outcome.trace_hash);
        }
    } else {
        println!("{}", arguments.autopilot());
        print!("{}", drills::table(&outcomes));
    }
    let virtual_s: f64 = outcomes.iter().map(|o| o.duration.as_secs_f64()).sum();
    // How fast this machine was is no part of the result.
    eprintln!("{virtual_s:.0} s flown in {wall_s:.2} s: {:.0} times real time", virtual_s / wall_s);
    eprint!("{}", drills::failures(&outcomes));
    let good = outcomes.iter().all(drills::Outcome::is_good);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Flies one and prints its story.
pub(crate) fn run_one(arguments: &DrillArguments) -> Result<ExitCode> {
    name_panics();
    let program = arguments.conditions.program()?;
    let record = arguments.record.as_deref();
    let outcome = match (&arguments.plan, arguments.kind, arguments.seed) {
        (Some(path), ..) => {
            println!("wingbeat bench drill --plan {}, of the kind", path.display());
            Plan::read(path)?.fly(program, record)?
        }
        (None, Some(kind), Some(seed)) => {
            let conditions = arguments.conditions.over(arguments.conditions.world(seed, program));
            drills::recorded(kind, seed, conditions, &Draws::default(), record)?
        }
        _ => anyhow::bail!("found neither --plan nor --kind and --seed, expected one"),
    };
    print!("{}", drills::story(&outcome));
    if arguments.log {
        outcome.log.iter().for_each(|line| println!("{line}"));
    }
    print!("{}", drills::table(std::slice::from_ref(&outcome)));
    println!("trace {:016x}", outcome.trace_hash);
    Ok(if outcome.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
