//! `cargo xtask bench sky`: the crowded sky at speed, and what a hundred neighbours cost one aircraft, into
//! `docs/performance.md`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{bench, process};

const BEGIN: &str = "<!-- measured: written by cargo xtask bench sky -->";
const END: &str = "<!-- end of measured sky -->";

const AIRCRAFT: u32 = 100;
const MINUTES: u32 = 64;
/// The whole flight takes one core for at most so long.
const SKY_TARGET_S: f64 = 60.0;
const MEMORY_TARGET_MB: f64 = 500.0;
/// An agent with a hundred neighbours takes at most so much of one core.
const SHARE_TARGET_PERCENT: f64 = 2.0;

/// Measures, prints, and writes into `docs/performance.md`.
pub(crate) fn run(root: &Path, seed: u64) -> Result<()> {
    let program = process::build_wingbeat(root)?;
    let arguments = format!("bench sky --aircraft {AIRCRAFT} --minutes {MINUTES} --seed {seed}");
    let mut command = Command::new(program);
    let finished = process::tee(command.current_dir(root).args(arguments.split(' ')))?;
    let sky = finished.text.lines().find_map(|line| line.strip_prefix("sky: "));
    let sky = sky.with_context(|| format!("`wingbeat {arguments}` printed no line 'sky: ...'"))?;
    let (core_s, memory_mb) = (before(sky, " s of one core")?, before(sky, " MB at most")?);
    let verdict = |met: bool| if met { "met" } else { "**missed**" };
    let mut rows = vec![format!(
        "| `wingbeat {arguments}` | at most \
         {SKY_TARGET_S} s on one core, {MEMORY_TARGET_MB} MB | {sky} | {} |",
        verdict(core_s <= SKY_TARGET_S && memory_mb <= MEMORY_TARGET_MB)
    )];
    for line in lines(root, "wingbeat-sim", "neighbours", &[])? {
        let share_percent = before(&line, " % of one core")?;
        let allocations = before(&line, " allocations in")?;
        rows.push(format!(
            "| `cargo bench --package wingbeat-sim --bench neighbours` | below {SHARE_TARGET_PERCENT} % of one \
             core, no allocation | {line} | {} |",
            verdict(share_percent < SHARE_TARGET_PERCENT && allocations == 0.0)
        ));
    }
    let (machine, rows) = (bench::machine(), rows.join("\n"));
    let measured = format!(
        "{BEGIN}\nMachine: {machine}.\n\n| figure | target | measured | |\n|---|---|---|---|\n{rows}\n{END}"
    );
    println!("{measured}");
    bench::replace(&root.join("docs/performance.md"), BEGIN, END, &measured)
}

/// Runs a benchmark of a package; what follows its name in the lines that begin with it.
pub(crate) fn lines(root: &Path, package: &str, name: &str, arguments: &[String]) -> Result<Vec<String>> {
    let mut command = process::cargo();
    command.current_dir(root).args(["bench", "--package", package, "--bench", name, "--"]);
    let finished = process::tee(command.args(arguments))?;
    if !finished.status.success() {
        bail!("the bench '{name}': found {}, expected exit code 0", finished.status);
    }
    let begin = format!("{name}: ");
    Ok(finished.text.lines().filter_map(|line| line.strip_prefix(&begin)).map(str::to_owned).collect())
}

/// The number that stands before `unit`.
pub(crate) fn before(line: &str, unit: &str) -> Result<f64> {
    let number = line.split_once(unit).and_then(|(text, _)| text.rsplit(' ').next()?.parse().ok());
    number.with_context(|| format!("found no number before '{unit}' in '{line}'"))
}
