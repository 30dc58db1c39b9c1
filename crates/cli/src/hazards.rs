//! `wingbeat bench hazards` and `wingbeat bench hunt`: the hazard table from drills, and the search for drills that break a rule.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use wingbeat_bench::drills::hazards::{Results, with_section};
use wingbeat_bench::drills::hunt::Hunt;
use wingbeat_bench::drills::{self, Conditions, Kind, Protocol};

use crate::drills::{name_panics, program};

/// The file of the results, from the root of the repository.
const RESULTS: &str = "docs/hazards.json";

/// Arguments of `wingbeat bench hazards`.
#[derive(Args)]
pub(crate) struct HazardsArguments {
    /// Drills of each kind.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 7_400_000, value_parser = clap::value_parser!(u64).range(0..=1_000_000_000))]
    first: u64,
    /// Threads; the figures do not depend on them.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Write docs/hazards.json and the generated sections of docs/failures.md and docs/testing.md.
    #[arg(long)]
    write: bool,
    /// Fly nothing: take the results from docs/hazards.json.
    #[arg(long, conflicts_with_all = ["seeds", "first", "threads"])]
    from_file: bool,
    /// The root of the repository.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    root: PathBuf,
}

/// Arguments of `wingbeat bench hunt`.
#[derive(Args)]
pub(crate) struct HuntArguments {
    /// Only this protocol: MUSCOP, FollowMe, MBCAP, Mission or Sweep; all if none is given.
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<Protocol>,
    /// How long the search runs, minutes.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    minutes: u64,
    /// End after so many evaluations in all, whatever the time: the same seed and number give the same finds.
    #[arg(long, value_name = "N", conflicts_with = "minutes")]
    evaluations: Option<u64>,
    /// The seed of the search.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The folder of the search: a plan for each kind of find, and the state from which it is continued.
    #[arg(long, value_name = "DIR", default_value = "hunt")]
    out: PathBuf,
    /// What flies instead of a simulated flight controller: arducopter:PATH, an ArduCopter SITL program in lock step.
    #[arg(long, value_name = "AUTOPILOT")]
    autopilot: Option<String>,
}

fn replace(root: &Path, page: &str, section: &str) -> Result<()> {
    let path = root.join(page);
    let place = || path.display().to_string();
    let text = std::fs::read_to_string(&path).with_context(place)?;
    std::fs::write(&path, with_section(&text, section).with_context(place)?).with_context(place)
}

/// Flies every kind and prints the hazard tables, or writes them.
pub(crate) fn run(arguments: &HazardsArguments) -> Result<ExitCode> {
    name_panics();
    let file = arguments.root.join(RESULTS);
    let place = || file.display().to_string();
    let results = if arguments.from_file {
        serde_json::from_str(&std::fs::read_to_string(&file).with_context(place)?).with_context(place)?
    } else {
        let (first, seeds) = (arguments.first, arguments.seeds);
        let kinds: Vec<Kind> = Kind::all().collect();
        // Both autopilots by turns: every second seed flies 4.6.2.
        let outcomes =
            drills::drills(&kinds, first, seeds, arguments.threads.into(), Conditions::of_hazards)?;
        eprint!("{}", drills::failures(&outcomes));
        Results::of(
            &outcomes,
            &format!("wingbeat bench hazards --seeds {seeds} --first {first}"),
            "five aircraft in the world of a field that each seed draws, even seeds under ArduCopter 3.5.7 and odd ones under 4.6.2, simulated",
        )
    };
    if arguments.write {
        std::fs::write(&file, format!("{}\n", serde_json::to_string_pretty(&results)?))
            .with_context(place)?;
        replace(&arguments.root, "docs/failures.md", &results.table())?;
        replace(&arguments.root, "docs/testing.md", &results.measured())?;
    } else {
        print!("{}\n{}", results.measured(), results.table());
    }
    Ok(ExitCode::SUCCESS)
}

/// Searches and prints what was found.
pub(crate) fn hunt(arguments: &HuntArguments) -> Result<ExitCode> {
    name_panics();
    let program = program(arguments.autopilot.as_deref())?;
    let mut hunt = Hunt::open(&arguments.out, arguments.seed, arguments.protocol)?;
    let (most, within) = match arguments.evaluations {
        Some(evaluations) => (evaluations, None),
        None => (u64::MAX, Some(Duration::from_secs(arguments.minutes * 60))),
    };
    hunt.run(&arguments.out, most, within, program)?;
    print!("{}", hunt.table(&arguments.out));
    Ok(if hunt.has_unsafe() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
