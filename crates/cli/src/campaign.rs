//! `wingbeat bench run --out`, `submit`, `merge` and `compare`: plans flown in parts, by many processes, into one folder.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Args, CommandFactory as _};
use indicatif::{ProgressBar, ProgressStyle};
use wingbeat_bench::campaign::results::{self, About};
use wingbeat_bench::campaign::row::{self, FIGURES, FlightRow};
use wingbeat_bench::campaign::shard::Shard;
use wingbeat_bench::campaign::stored::Stored;
use wingbeat_bench::campaign::submit::{Engine, job_file};
use wingbeat_bench::campaign::{Campaign, compare as pairs, parquet, sqlite};
use wingbeat_bench::plan::Plan;
use wingbeat_bench::plan::script::PlannedScript;

use crate::bench::{RunArguments, print_outcome, read_plan};

/// Arguments of `wingbeat bench submit`.
#[derive(Args)]
pub(crate) struct SubmitArguments {
    /// The engine: hyperqueue (`hq submit FILE`), slurm (`sbatch FILE`) or parallel (`sh FILE`).
    #[arg(long)]
    to: Engine,
    #[command(flatten)]
    run: RunArguments,
}

/// Arguments of `wingbeat bench merge`.
#[derive(Args)]
pub(crate) struct MergeArguments {
    /// Folders of `bench run --out`.
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// Add the flights to this SQLite database, which is made; flights that it has stay as they are.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["csv", "parquet"])]
    sqlite: Option<PathBuf>,
    /// Write the flights to this CSV file.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the flights to this Parquet file.
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
}

/// Arguments of `wingbeat bench compare`.
#[derive(Args)]
pub(crate) struct CompareArguments {
    /// The folder of a campaign.
    first: PathBuf,
    /// That of another, whose flights have the same names and seeds.
    second: PathBuf,
    /// Only these figures, whether they differ or not; without it all that differ.
    #[arg(long, value_delimiter = ',')]
    figures: Vec<String>,
}

/// Flies a shard, or all, into a folder; with all flights there, writes what is made of them.
pub(crate) fn fly(plan: &Plan, arguments: &RunArguments, out: &Path) -> Result<ExitCode> {
    let folder = arguments.plan.parent().unwrap_or(Path::new("."));
    let shard = match (arguments.shard, arguments.shards) {
        (Some(shard), _) => shard,
        (None, Some(count)) => Shard::of_engine(count as usize, |name| std::env::var(name).ok())?,
        (None, None) => Shard::WHOLE,
    };
    let threads = match arguments.threads {
        Some(threads) => threads.into(),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let campaign = Campaign::new(plan, folder, arguments.seed, out)?;
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len} flights, {elapsed} gone, {eta} left")?;
    let bar = ProgressBar::new(0).with_style(style);
    let tally = campaign.fly(shard, threads, arguments.record.as_deref(), |flown, of| {
        bar.set_length(of as u64);
        bar.set_position(flown as u64);
    })?;
    bar.finish_and_clear();
    eprintln!(
        "{}: shard {shard}: {} flights flown, {} were there; {} of {} are there now",
        out.display(),
        tally.flown,
        tally.present,
        tally.all - tally.missing,
        tally.all
    );
    let Some((outcome, flights)) = campaign.results() else { return Ok(ExitCode::SUCCESS) };
    let about = About {
        plan: plan.name.clone(),
        title: plan.title.clone(),
        seed: arguments.seed,
        repeat: plan.repeat,
        flown_by: plan.flown_by(),
        configuration: std::fs::read_to_string(&arguments.plan)
            .with_context(|| format!("plan {}", arguments.plan.display()))?,
        command: again(arguments),
    };
    results::write(out, &about, &outcome.table, &outcome.figures, &flights)?;
    let code = print_outcome(plan, arguments, &outcome)?;
    eprintln!("{}: table.txt, flights.csv, aircraft.csv, results.json, index.html", out.display());
    // A shard that ended the campaign is no failed task of its engine, also where it is the only one.
    let is_task = arguments.shard.is_some() || arguments.shards.is_some();
    Ok(if is_task { ExitCode::SUCCESS } else { code })
}

/// The command that flies the same again, for people.
pub(crate) fn again(arguments: &RunArguments) -> String {
    let mut words = vec!["wingbeat".to_owned()];
    words.extend(flown_by(arguments, &arguments.plan));
    words.join(" ")
}

/// The arguments that decide what is flown.
fn flown_by(arguments: &RunArguments, plan: &Path) -> Vec<String> {
    let RunArguments {
        seed,
        repeat,
        uavs,
        variant,
        pilot,
        signatures,
        profile,
        autopilot,
        physics,
        medium,
        method,
        script,
        ..
    } = arguments;
    let mut words = ["bench", "run"].map(str::to_owned).to_vec();
    words.push(plan.display().to_string());
    let options = [
        ("--seed", Some(seed.to_string())),
        ("--repeat", repeat.map(|repeat| repeat.to_string())),
        ("--uavs", uavs.map(|uavs| uavs.to_string())),
        ("--variant", variant.map(|variant| variant.name().to_owned())),
        ("--pilot", pilot.clone()),
        ("--signatures", signatures.clone()),
        ("--profile", profile.map(|profile| profile.to_string())),
        ("--autopilot", autopilot.clone()),
        ("--physics", physics.clone()),
        ("--medium", medium.clone()),
        ("--method", method.clone()),
    ];
    for (name, value) in options {
        words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
    }
    // Its file is where we are, which is not where the job runs.
    let absolute = |script: &String| {
        script.parse::<PlannedScript>().map_or_else(|_| script.clone(), |script| script.to_string())
    };
    words.extend(script.iter().flat_map(|script| ["--script".to_owned(), absolute(script)]));
    words
}

/// Prints a job file: nothing is submitted, so that it can be read and changed before.
pub(crate) fn submit(arguments: &SubmitArguments) -> Result<ExitCode> {
    let run = &arguments.run;
    let absolute = |path: &Path| {
        std::path::absolute(path).with_context(|| format!("{}: expected a path", path.display()))
    };
    let refused = |message: &str| {
        crate::Arguments::command().error(clap::error::ErrorKind::MissingRequiredArgument, message).exit()
    };
    let Some(out) = &run.out else { refused("--out FOLDER: found none, expected the folder of the results") };
    let Some(shards) = run.shards else { refused("--shards N: found none, expected the number of tasks") };
    let plan = read_plan(run)?;
    let plan_file = absolute(&run.plan)?;
    // What cannot be flown is said now, not by each task.
    plan.on_one_computer("--out")?;
    plan.flights(run.plan.parent().unwrap_or(Path::new(".")), run.seed)?;
    let program = std::env::current_exe().context("the path of this program")?;
    let mut command = vec![program.display().to_string()];
    command.extend(flown_by(run, &plan_file));
    command.extend(["--out".to_owned(), absolute(out)?.display().to_string()]);
    print!("{}", job_file(arguments.to, &plan.name, &command, shards as usize));
    Ok(ExitCode::SUCCESS)
}

/// Gathers campaigns.
pub(crate) fn merge(arguments: &MergeArguments) -> Result<ExitCode> {
    let mut all = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for folder in &arguments.folders {
        let (flights, bad) = Stored::read_all(folder)?;
        eprintln!("{}: {} flights", folder.display(), flights.len());
        all.extend(flights);
        for line in bad {
            eprintln!("left out: {line}");
            code = ExitCode::FAILURE;
        }
    }
    let before = all.len();
    all.sort_by(|a, b| a.flown.key.cmp(&b.flown.key));
    all.dedup_by(|a, b| a.flown.key == b.flown.key);
    if all.len() < before {
        eprintln!("{} flights were in more than one folder", before - all.len());
    }
    if let Some(path) = &arguments.csv {
        let rows: Vec<FlightRow> = all.iter().map(Stored::row).collect();
        std::fs::write(path, results::csv(&rows)?).with_context(|| path.display().to_string())?;
        println!("{}: {} flights", path.display(), rows.len());
    }
    if let Some(path) = &arguments.parquet {
        let rows: Vec<FlightRow> = all.iter().map(Stored::row).collect();
        parquet::write(path, &rows)?;
        println!("{}: {} flights", path.display(), rows.len());
    }
    if let Some(path) = &arguments.sqlite {
        let added = sqlite::add(path, &all)?;
        println!("{}: {added} flights added, {} were there", path.display(), all.len() - added);
    }
    Ok(code)
}

/// Compares two campaigns.
pub(crate) fn compare(arguments: &CompareArguments) -> Result<ExitCode> {
    for name in &arguments.figures {
        let is_known = FIGURES.iter().any(|(known, _)| known == name);
        ensure!(is_known, "--figures: found '{name}', expected some of {}", row::names());
    }
    let read = |folder: &Path| -> Result<Vec<FlightRow>> {
        let (flights, bad) = Stored::read_all(folder)?;
        bad.iter().for_each(|line| eprintln!("left out: {line}"));
        Ok(flights.iter().map(Stored::row).collect())
    };
    let (first, second) = (read(&arguments.first)?, read(&arguments.second)?);
    let compared = pairs::compare(&first, &second, &arguments.figures);
    ensure!(
        compared.pairs > 0,
        "{}: found no flight of the name and seed of one in {}, expected some",
        arguments.second.display(),
        arguments.first.display()
    );
    print!("{}", pairs::table(&compared));
    Ok(ExitCode::SUCCESS)
}
