//! `cargo xtask bench record`: what flight logs cost, into `docs/performance.md`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{bench, process};

const BEGIN: &str = "<!-- measured: written by cargo xtask bench record -->";
const END: &str = "<!-- end of measured record -->";
const PLAN: &str = "crates/bench/plans/nine-fourteen.toml";
/// Pairs of runs, without and with logs in turns.
const RUNS: usize = 5;
/// Logs cost so much of the bench's speed at most.
const COST_TARGET_PERCENT: f64 = 10.0;
/// 64 minutes of one aircraft take at most so much.
const SIZE_TARGET_MB: f64 = 40.0;
const SIZE_MINUTES: f64 = 64.0;
/// A replay is at least so many times faster than real time.
const REPLAY_TARGET: f64 = 500.0;
/// A hundred aircraft that fly for about 64 minutes and hear each other's beacons.
const CROWD: [&str; 11] = [
    "bench",
    "run",
    "crates/bench/plans/mbcap-crowd.toml",
    "--uavs",
    "100",
    "--variant",
    "mbcap-e",
    "--repeat",
    "1",
    "--seed",
    "1",
];
/// Their logs are in every format within it.
const EXPORT_TARGET_S: f64 = 60.0;

/// Measures, prints, and writes into `docs/performance.md`.
pub(crate) fn run(root: &Path) -> Result<()> {
    let program = process::build_wingbeat(root)?;
    let folder = root.join("target/record");
    let plan = ["bench", "run", PLAN, "--seed", "1"];
    let logs = folder.to_string_lossy().into_owned();
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        without.push(times_real_time(root, &program, &plan)?);
        with.push(times_real_time(root, &program, &[&plan[..], &["--record", &logs]].concat())?);
    }
    let (without, with) = (median(&mut without), median(&mut with));
    let cost_percent = (without / with - 1.0) * 100.0;
    let (mut len, mut flown_s, mut replays) = (0, 0.0, Vec::new());
    for entry in fs::read_dir(folder.join("flight-0001")).context("the logs of the first flight")? {
        let path = entry?.path();
        len += fs::metadata(&path)?.len();
        let file = path.to_string_lossy().into_owned();
        let mut command = Command::new(&program);
        command.current_dir(root).args(["log", "replay", &file]);
        let finished = process::tee(&mut command)?;
        if !finished.status.success() {
            bail!("{file}: found {}, expected a replay without a difference", finished.status);
        }
        let before = |unit: &str| {
            finished
                .text
                .lines()
                .find_map(|line| line.strip_suffix(unit)?.rsplit(' ').next()?.parse::<f64>().ok())
        };
        flown_s += before(" s flown").context("the replay printed no 'N s flown'")?;
        replays.push(before(" times real time").context("the replay printed no 'N times real time'")?);
    }
    let (crowd_gb, export_s) = export_crowd(root, &program, &folder.join("crowd"))?;
    let size_mb = len as f64 / 1e6 / flown_s * 60.0 * SIZE_MINUTES;
    let replay = median(&mut replays);
    let verdict = |met: bool| if met { "met" } else { "**missed**" };
    let measured = format!(
        "{BEGIN}\nMachine: {}.\n\n| figure | target | measured | |\n|---|---|---|---|\n\
         | `wingbeat bench run {PLAN} --seed 1 --record FOLDER` against the same without logs: nine aircraft, one thread and a \
         thread for each log | at most {COST_TARGET_PERCENT} % of the speed | {cost_percent:.1} % ({without:.0} and {with:.0} \
         times real time, medians of {RUNS} runs in turns) | {} |\n\
         | their logs, for {SIZE_MINUTES} minutes of one aircraft of nine | at most {SIZE_TARGET_MB} MB | {size_mb:.1} MB | {} |\n\
         | `wingbeat log replay FILE`, one thread | at least {REPLAY_TARGET} times real time | {replay:.0} (median) | {} |\n\
         | `wingbeat log export FOLDER --to all --out FOLDER`: {crowd_gb:.1} GB, the logs of `wingbeat {} --record FOLDER` | \
         at most {EXPORT_TARGET_S} s | {export_s:.1} s | {} |\n{END}",
        bench::machine(),
        verdict(cost_percent <= COST_TARGET_PERCENT),
        verdict(size_mb <= SIZE_TARGET_MB),
        verdict(replay >= REPLAY_TARGET),
        CROWD.join(" "),
        verdict(export_s <= EXPORT_TARGET_S),
    );
    println!("{measured}");
    bench::replace(&root.join("docs/performance.md"), BEGIN, END, &measured)
}

/// How large the logs of the crowd are, and how long it takes to write them in every format.
fn export_crowd(root: &Path, program: &Path, folder: &Path) -> Result<(f64, f64)> {
    let (logs, exported) = (folder.join("flight-0001"), folder.join("exported"));
    let [to, logs, exported] = [folder, &logs, &exported].map(|path| path.to_string_lossy().into_owned());
    let fly = [&CROWD[..], &["--record", &to]].concat();
    let export = ["log", "export", &logs, "--to", "all", "--out", &exported];
    process::run(Command::new(program).current_dir(root).args(fly))?;
    let mut len = 0;
    for entry in fs::read_dir(&logs).with_context(|| logs.clone())? {
        len += entry?.metadata()?.len();
    }
    let begun = Instant::now();
    process::run(Command::new(program).current_dir(root).args(export))?;
    let took = begun.elapsed();
    fs::remove_dir_all(folder).context("the logs of the crowd")?;
    Ok((len as f64 / 1e9, took.as_secs_f64()))
}

fn times_real_time(root: &Path, program: &Path, arguments: &[&str]) -> Result<f64> {
    let mut command = Command::new(program);
    command.current_dir(root).args(arguments);
    let finished = process::tee(&mut command)?;
    if !finished.status.success() {
        bail!("the bench failed: found {}, expected exit code 0", finished.status);
    }
    let speed = finished
        .text
        .lines()
        .find_map(|line| line.strip_suffix(" times real time")?.rsplit(' ').next()?.parse::<f64>().ok());
    speed.context("the bench printed no 'N times real time'")
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
