//! `cargo xtask ns3`: runs our ns-3 program at every operating point and writes `tests/ns3/broadcast.csv`; `cargo xtask
//! bench medium`: our medium's speed, and next to it that of ns-3, into `docs/performance.md`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::{bench, process, sky};

const SOURCE: &str = "tests/ns3/broadcast.cc";
const FILE: &str = "tests/ns3/broadcast.csv";
/// The program that is a plan's medium.
const MEDIUM: &str = "crates/cosim/ns3/medium.cc";
const MODULES: [&str; 9] = [
    "ns3-aodv",
    "ns3-dsdv",
    "ns3-olsr",
    "ns3-wifi",
    "ns3-internet",
    "ns3-mobility",
    "ns3-network",
    "ns3-propagation",
    "ns3-core",
];
const VERSION: &str = "3.37";
const RATE_HZ: u32 = 5;
/// The columns, which the plan's reader knows too.
const HEADER: &str = "geometry,nodes,payload_bytes,rate_hz,seeds,offered_load,delivery_ratio,delivery_ratio_min,\
    delivery_ratio_max,frames_collided_ratio,access_delay_mean_ms,access_delay_p50_ms,access_delay_p95_ms,\
    access_delay_p99_ms";

/// Another version of ns-3 draws otherwise.
const TOLERANCE: f64 = 0.01;

/// Geometry, radios, payload and seeds.
type Point = (&'static str, u32, u32, u32);

/// Large ones take ns-3 minutes.
const POINTS: [Point; 15] = [
    ("equal", 25, 705, 3),
    ("equal", 50, 705, 3),
    ("equal", 75, 705, 3),
    ("equal", 100, 705, 3),
    ("equal", 125, 705, 1),
    ("equal", 150, 705, 1),
    ("equal", 175, 705, 1),
    ("equal", 200, 705, 1),
    ("equal", 100, 400, 3),
    ("disc30", 25, 705, 3),
    ("disc30", 100, 705, 3),
    ("disc30", 200, 705, 1),
    ("disc30", 100, 400, 3),
    ("disc100", 50, 705, 3),
    ("disc100", 100, 705, 1),
];

/// What this machine lacks, if anything.
pub(crate) fn missing() -> Option<String> {
    for program in ["c++", "pkg-config"] {
        if !process::is_installed(program) {
            return Some(format!("no {program} here"));
        }
    }
    let mut asked = Command::new("pkg-config");
    let has_ns3 = process::succeeds_within(asked.arg("--exists").args(MODULES), Duration::from_secs(20));
    if !has_ns3 {
        return Some("no ns-3 here; Debian's libns3-dev has it".to_owned());
    }
    let mut asked = Command::new("pkg-config");
    match process::output(asked.args(["--modversion", "ns3-core"])) {
        Ok(found) => another(String::from_utf8_lossy(&found).trim()),
        Err(error) => Some(format!("{error:#}")),
    }
}

/// Of another version every flight over ns-3 would be another, without a word.
fn another(found: &str) -> Option<String> {
    (found != VERSION).then(|| format!("found ns-3 {found}, expected {VERSION}, of which the figures are"))
}

/// Builds the program that is a plan's medium; returns its path.
///
/// # Errors
/// ns-3 or a compiler is missing, or ns-3 is of another version.
pub(crate) fn program(root: &Path) -> Result<PathBuf> {
    if let Some(missing) = missing() {
        bail!("ns-3 program: {missing}");
    }
    compiled(root, MEDIUM, "wingbeat-ns3")
}

/// Builds the program of one operating point; returns its path.
fn build(root: &Path) -> Result<PathBuf> {
    compiled(root, SOURCE, "broadcast")
}

fn compiled(root: &Path, source: &str, name: &str) -> Result<PathBuf> {
    // Debian's files also name libraries that its package does not depend on; these it finds itself.
    let flags = process::output(Command::new("pkg-config").arg("--libs-only-l").args(MODULES))?;
    let flags = String::from_utf8(flags).context("pkg-config")?;
    let program = root.join("target/ns3").join(name);
    std::fs::create_dir_all(root.join("target/ns3")).context("target/ns3")?;
    let mut compile = Command::new("c++");
    compile.current_dir(root).args(["-std=c++17", "-O2", "-Wall", "-Wextra", source, "-o"]).arg(&program);
    process::run(compile.args(flags.split_whitespace()))?;
    Ok(program)
}

fn command(program: &Path, geometry: &str, nodes: u32, payload: u32, seed: u32) -> Command {
    let mut command = Command::new(program);
    command.arg(format!("--geometry={geometry}")).arg(format!("--nodes={nodes}"));
    command
        .arg(format!("--payload={payload}"))
        .arg(format!("--rate={RATE_HZ}"))
        .arg(format!("--seed={seed}"));
    command
}

/// Runs every operating point and writes the file; half an hour of one core.
pub(crate) fn run(root: &Path) -> Result<()> {
    let program = build(root)?;
    let mut text = format!("{HEADER}\n");
    for point in POINTS {
        let (geometry, nodes, payload, _) = point;
        let row = row(geometry, nodes, payload, &all_seeds(&program, point)?);
        println!("{row}");
        // Writing to a string does not fail.
        let _ = writeln!(text, "{row}");
    }
    std::fs::write(root.join(FILE), text).with_context(|| FILE.to_owned())
}

fn all_seeds(program: &Path, (geometry, nodes, payload, seeds): Point) -> Result<Vec<Figures>> {
    let one = |seed| {
        let printed = process::output(&mut command(program, geometry, nodes, payload, seed))?;
        figures(&String::from_utf8_lossy(&printed))
    };
    (1..=seeds).map(one).collect()
}

/// Runs the smallest operating point, seconds, and holds its delivery against the file.
pub(crate) fn check(root: &Path) -> Result<()> {
    let (geometry, nodes, payload, _) = POINTS[0];
    let runs = all_seeds(&build(root)?, POINTS[0])?;
    let found = runs.iter().map(|run| run[0]).sum::<f64>() / runs.len() as f64;
    let text = std::fs::read_to_string(root.join(FILE)).with_context(|| FILE.to_owned())?;
    let begin = format!("{geometry},{nodes},{payload},");
    let row = text.lines().find(|line| line.starts_with(&begin));
    let row = row.with_context(|| format!("{FILE}: found no row '{begin}', expected one"))?;
    let expected: Option<f64> = row.split(',').nth(6).and_then(|field| field.parse().ok());
    let expected = expected.with_context(|| format!("{FILE}: found no delivery in '{row}'"))?;
    ensure!(
        (found - expected).abs() <= TOLERANCE,
        "{SOURCE}: found delivery {found:.4} at {begin} expected {expected} as in {FILE}"
    );
    println!("ns3: delivery {found:.4}, as in {FILE} ({expected})");
    Ok(())
}

/// Delivery, share overlapped, and four figures of the access delay.
type Figures = [f64; 6];

fn figures(line: &str) -> Result<Figures> {
    let numbers: Vec<f64> = line.trim().split(',').filter_map(|field| field.parse().ok()).collect();
    let found = numbers.len();
    ensure!(found == 6, "{SOURCE}: found {found} numbers in '{}', expected 6", line.trim());
    numbers.try_into().ok().context("six numbers")
}

fn row(geometry: &str, nodes: u32, payload: u32, runs: &[Figures]) -> String {
    let mean = |i: usize| runs.iter().map(|run| run[i]).sum::<f64>() / runs.len() as f64;
    let (least, most) = runs.iter().fold((1.0_f64, 0.0_f64), |(l, m), run| (l.min(run[0]), m.max(run[0])));
    // 16 service and 6 tail bits, 64 bytes of headers; symbols of 24 bits, 20 µs before them.
    let airtime_us = 20 + 4 * (22 + 8 * (payload + 64)).div_ceil(24);
    let offered = f64::from(nodes * RATE_HZ * airtime_us) * 1e-6;
    format!(
        "{geometry},{nodes},{payload},{RATE_HZ},{},{offered:.3},{:.4},{least:.4},{most:.4},{:.4},{:.3},{:.3},{:.3},{:.3}",
        runs.len(),
        mean(0),
        mean(1),
        mean(2),
        mean(3),
        mean(4),
        mean(5)
    )
}

const BEGIN: &str = "<!-- measured: written by cargo xtask bench medium -->";
const END: &str = "<!-- end of measured medium -->";
/// A hundred radios in range.
const RATE_TARGET: f64 = 5.0;
/// Next to ns-3, for a hundred radios.
const RATIO_TARGET: f64 = 100.0;
const NODES: u32 = 100;
const PAYLOAD: u32 = 705;

/// Measures, prints, and writes into `docs/performance.md`.
pub(crate) fn compare(root: &Path) -> Result<()> {
    let lines = sky::lines(root, "wingbeat-bench", "medium", &[])?;
    let line = lines.first().context("the bench printed no line 'medium: ...'")?;
    let ours = sky::before(line, " million receptions per second")?;
    let verdict = |met: bool| if met { "met" } else { "**missed**" };
    let mut rows = format!(
        "| `cargo bench --package wingbeat-bench --bench medium`: {NODES} radios in range, {PAYLOAD} bytes {RATE_HZ} times a \
         second each | at least {RATE_TARGET} million | {line} | {} |\n",
        verdict(ours >= RATE_TARGET)
    );
    match missing() {
        Some(what) => println!("ns-3: skipped: {what}"),
        None => {
            let program = build(root)?;
            let finished = process::tee(&mut command(&program, "equal", NODES, PAYLOAD, 1))?;
            if !finished.status.success() {
                bail!("{SOURCE}: found {}, expected exit code 0", finished.status);
            }
            let line = finished.text.lines().find_map(|line| line.strip_prefix("ns-3: "));
            let line = line.context("our ns-3 program printed no line 'ns-3: ...'")?;
            let ns3 = sky::before(line, " receptions")? * 1e-6 / sky::before(line, " s of one core")?;
            let ratio = ours / ns3;
            let _ = writeln!(
                rows,
                "| ns-3.37 (`{SOURCE}`), the same load, in the same run | ours at least {RATIO_TARGET:.0} times as fast \
                 | {ns3:.3} million receptions per second of one core ({line}): ours is {ratio:.0} times as fast | {} |",
                verdict(ratio >= RATIO_TARGET)
            );
        }
    }
    let machine = bench::machine();
    let measured = format!(
        "{BEGIN}\nMachine: {machine}.\n\n| figure | target | measured | |\n|---|---|---|---|\n{rows}{END}"
    );
    println!("{measured}");
    bench::replace(&root.join("docs/performance.md"), BEGIN, END, &measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_of_ns_3_is_named() {
        assert_eq!(another("3.37"), None);
        assert_eq!(another("3.41").unwrap(), "found ns-3 3.41, expected 3.37, of which the figures are");
        assert!(another("").is_some());
    }

    #[test]
    fn a_row_is_the_mean_of_its_runs() {
        let one = figures("0.99,0.01,0.1,0.03,0.8,1.1\n").unwrap();
        let two = figures("0.97,0.03,0.3,0.05,1.0,1.3").unwrap();
        assert_eq!(
            row("equal", 100, 705, &[one, two]),
            "equal,100,705,5,2,0.526,0.9800,0.9700,0.9900,0.0200,0.200,0.040,0.900,1.200"
        );
        assert_eq!(row("a", 1, 1, &[one]).split(',').count(), HEADER.split(',').count());
        assert!(figures("0.99,x").unwrap_err().to_string().contains("found 1 numbers"));
    }
}
