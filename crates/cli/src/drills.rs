//! `wingbeat bench drills` and `wingbeat bench drill`: fault drills in virtual time.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use wingbeat_bench::drills::{self, Kind};

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
}

/// Arguments of `wingbeat bench drill`.
#[derive(Args)]
pub(crate) struct DrillArguments {
    /// The kind of fault.
    #[arg(long)]
    kind: Kind,
    /// The seed of the drill.
    #[arg(long)]
    seed: u64,
    /// The whole log, not its end.
    #[arg(long)]
    log: bool,
}

/// A release build ends at a panic: print first which drill runs.
fn name_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        if let Some((kind, seed)) = drills::under_way() {
            eprintln!("UNSAFE panic: {}", drills::command(kind, seed));
        }
    }));
}

/// Flies many and prints one table.
pub(crate) fn run_all(arguments: &DrillsArguments) -> Result<ExitCode> {
    name_panics();
    let all: Vec<Kind> = Kind::all().collect();
    let kinds = if arguments.kinds.is_empty() { &all } else { &arguments.kinds };
    let began = Instant::now();
    let outcomes = drills::drills(kinds, arguments.first, arguments.seeds, arguments.threads.into())?;
    let wall_s = began.elapsed().as_secs_f64();
    if arguments.traces {
        for outcome in &outcomes {
            println!("trace {} {} {:016x}", outcome.kind.name(), outcome.seed, outcome.trace_hash);
        }
    } else {
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
    let outcome = drills::drill(arguments.kind, arguments.seed)?;
    print!("{}", drills::story(&outcome));
    if arguments.log {
        outcome.log.iter().for_each(|line| println!("{line}"));
    }
    print!("{}", drills::table(std::slice::from_ref(&outcome)));
    println!("trace {:016x}", outcome.trace_hash);
    Ok(if outcome.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
