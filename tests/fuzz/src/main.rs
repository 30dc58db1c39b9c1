//! `cargo xtask fuzz TARGET`: runs a door on mutations of its corpus, at full speed, and says how fast that was. An input
//! that panics is written into a file, and its name is printed.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "executions are counted against the kernel's time")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use clap::Parser;
use wingbeat_fuzz_targets::mutate::Mutator;
use wingbeat_fuzz_targets::{TARGETS, Target, corpus};

/// So fast that ten million take an hour.
const GOAL_PER_S: f64 = 10_000_000.0 / 3_600.0;
/// The clock is read once in so many executions.
const BATCH: u64 = 32;

#[derive(Parser)]
#[command(name = "wingbeat-fuzz")]
struct Arguments {
    /// The door, or all of them one after the other.
    #[arg(default_value = "all")]
    target: String,
    /// How long each.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// So many executions each, however long they take, instead of `--seconds`.
    #[arg(long, conflicts_with = "seconds")]
    executions: Option<u64>,
    /// What inputs are made from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run this input alone.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Where an input that panics is written.
    #[arg(long, value_name = "FOLDER", default_value = "fuzz/artifacts")]
    artifacts: PathBuf,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let names = || TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
    let chosen: Vec<&Target> =
        TARGETS.iter().filter(|t| arguments.target == "all" || t.name == arguments.target).collect();
    if chosen.is_empty() {
        return Err(anyhow!("target: found {:?}, expected all, {}", arguments.target, names()));
    }
    if let Some(file) = &arguments.input {
        let input = std::fs::read(file).with_context(|| format!("--input {}", file.display()))?;
        chosen.iter().for_each(|target| (target.run)(&input));
        return Ok(ExitCode::SUCCESS);
    }
    let mut failed = false;
    for target in chosen {
        failed |= !fuzz(target, &arguments)?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// False where an input panicked.
fn fuzz(target: &Target, arguments: &Arguments) -> Result<bool> {
    let files = corpus(target.name).with_context(|| format!("the corpus of {}", target.name))?;
    let read = |file: PathBuf| std::fs::read(&file).with_context(|| file.display().to_string());
    let members = files.into_iter().map(read).collect::<Result<Vec<_>>>()?;
    let mut mutator = Mutator::new(members, arguments.seed);
    let (mut input, mut executions, mut slowest) = (Vec::new(), 0_u64, (Duration::ZERO, 0));
    let begun = Instant::now();
    let (end, mut at) = (begun + Duration::from_secs(arguments.seconds), begun);
    // Whole batches: up to 31 more than asked.
    while arguments.executions.map_or(at < end, |wanted| executions < wanted) {
        for _ in 0..BATCH {
            mutator.next_into(&mut input);
            let ran = catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
            executions += 1;
            if ran.is_err() {
                let name = format!("{}-seed{}-{executions}", target.name, arguments.seed);
                let file = arguments.artifacts.join(name);
                std::fs::create_dir_all(&arguments.artifacts)?;
                std::fs::write(&file, &input).with_context(|| file.display().to_string())?;
                println!("{}: panicked at execution {executions}: {}", target.name, file.display());
                return Ok(false);
            }
        }
        let now = Instant::now();
        slowest = slowest.max((now - at, executions));
        at = now;
    }
    let per_s = executions as f64 / (at - begun).as_secs_f64();
    let verdict = if per_s < GOAL_PER_S { "  slower than ten million in an hour" } else { "" };
    let slowest_ms = slowest.0.as_secs_f64() * 1e3 / BATCH as f64;
    println!(
        "{:10} {executions:9} executions, {per_s:9.0}/s, slowest {BATCH}: {slowest_ms:.2} ms each{verdict}",
        target.name
    );
    Ok(true)
}
