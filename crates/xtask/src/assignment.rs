//! `cargo xtask bench assignment`: what it takes to give 500 aircraft their slots, into `docs/performance.md`.

use std::path::Path;

use anyhow::{Context, Result};

use crate::{bench, sky};

const BEGIN: &str = "<!-- measured: written by cargo xtask bench assignment -->";
const END: &str = "<!-- end of measured assignment -->";

const AIRCRAFT: u32 = 500;
/// On a core of a Raspberry Pi 3 it takes less.
const TARGET_S: f64 = 1.0;

/// Measures, prints, and writes into `docs/performance.md`.
pub(crate) fn run(root: &Path, seed: u64) -> Result<()> {
    let lines = sky::lines(root, "wingbeat-geo", "assignment", &[AIRCRAFT.to_string(), seed.to_string()])?;
    let mut rows = Vec::new();
    for line in &lines {
        let estimate_s = sky::before(line, " s on a Raspberry Pi 3")
            .context("instructions are counted by valgrind: is it installed?")?;
        let verdict = if estimate_s < TARGET_S { "met" } else { "**missed**" };
        rows.push(format!(
            "| `cargo bench --package wingbeat-geo --bench assignment -- {AIRCRAFT} {seed}` | below {TARGET_S} s on a \
             Raspberry Pi 3 class core | {line} | {verdict} |"
        ));
    }
    let (machine, rows) = (bench::machine(), rows.join("\n"));
    let measured = format!(
        "{BEGIN}\nMachine: {machine}. Seed {seed}.\n\n| figure | target | measured | |\n|---|---|---|---|\n{rows}\n{END}"
    );
    println!("{measured}");
    bench::replace(&root.join("docs/performance.md"), BEGIN, END, &measured)
}
