//! `cargo xtask bench`: measures the figures of `docs/performance.md` and writes them there, with the
//! machine that they came from. A target that is missed is written down as missed.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{process, sky};

const BEGIN: &str = "<!-- measured: written by cargo xtask bench -->";
const END: &str = "<!-- end of measured -->";

/// Runs of the deterministic bench.
const RUNS: usize = 5;
/// The bench flies nine aircraft at least so many times faster than real time, on one core.
const SPEED_TARGET: f64 = 200.0;
/// One aircraft in real time takes at most so much of one core.
const SHARE_TARGET_PERCENT: f64 = 1.0;
/// 81 aircraft fly 30 waypoints, on one core.
const SWARM_TARGET_S: f64 = 20.0;
/// From a telemetry frame to the command that it triggers, 99 of 100 rounds.
const LATENCY_TARGET_MS: f64 = 5.0;
/// From a failsafe in the flight controller to the operator's screen, each of 40 rounds.
const ALARM_TARGET_MS: f64 = 1_000.0;
/// What the bench of the envelope prints, in its order: a tag rejected, signed, verified, microseconds.
const ENVELOPE_TARGETS_US: [f64; 3] = [1.0, 40.0, 80.0];
/// In the air well before this, and still flying well after the measurement.
const WARM_UP: Duration = Duration::from_secs(25);
const MEASURE: Duration = Duration::from_secs(30);
/// Number of aircraft by which the cost of a fleet is divided.
const FLEET: u32 = 9;

/// Measures, prints, and writes into `docs/performance.md`.
pub(crate) fn run(root: &Path) -> Result<()> {
    let program = process::build_wingbeat(root)?;
    let speeds = bench_speeds(root, &program)?;
    let swarm_s = core_time(root, &program, "crates/bench/plans/muscop-81.toml")?.as_secs_f64();
    let share_percent = real_time_share(root, &program, FLEET)? / f64::from(FLEET);
    let alone_percent = real_time_share(root, &program, 1)?;
    let latency = printed(root, "wingbeat-onboard", "latency", "p99 ")?;
    let envelope = envelope_rows(root)?;
    let alarm = printed(root, "wingbeat-daemon-tests", "alarm", "max ")?;
    let verdict = |met: bool| if met { "met" } else { "**missed**" };
    let [least, median, most] = [speeds[0], speeds[RUNS / 2], speeds[RUNS - 1]];
    let measured = format!(
        "{BEGIN}\n\
         Machine: {}.\n\n\
         | figure | target | measured | |\n|---|---|---|---|\n\
         | `wingbeat bench run crates/bench/plans/nine-fourteen.toml --seed 1`, one thread: nine aircraft, 14 waypoints, \
         agents, MAVLink bytes both ways, datagrams | at least {SPEED_TARGET:.0} times real time | median {median:.0}, \
         least {least:.0}, most {most:.0} of {RUNS} runs | {} |\n\
         | `wingbeat bench run crates/bench/plans/muscop-81.toml --seed 1`, one thread: 81 aircraft, 30 waypoints, \
         from the switch to the ground | at most {SWARM_TARGET_S:.0} s of one core | {swarm_s:.1} s | {} |\n\
         | `wingbeat bench fleet --uavs {FLEET} --auto`: per aircraft in real time: daemon, simulated flight \
         controller over TCP, radio, and its share of the ground service and the checkers; CPU over {} s | under \
         {SHARE_TARGET_PERCENT} % of one core | {share_percent:.2} % | {} |\n\
         | the same with one aircraft, which bears the ground service and the checkers alone | | \
         {alone_percent:.2} % | |\n\
         | `cargo bench --package wingbeat-onboard --bench latency`: from a telemetry frame to the command that it \
         triggers, through the daemon on a pseudo-terminal pair, the peer's own share included | p99 at most \
         {LATENCY_TARGET_MS} ms | {} | {} |\n\
         | `cargo bench --package wingbeat-daemon-tests --bench alarm`: from a failsafe of the flight controller (4.6.2) to \
         the console's event stream, through daemon and ground service in real time | each at most \
         {ALARM_TARGET_MS:.0} ms | {} | {} |\n\
         {envelope}\
         {END}",
        machine(),
        verdict(median >= SPEED_TARGET),
        verdict(swarm_s <= SWARM_TARGET_S),
        MEASURE.as_secs(),
        verdict(share_percent < SHARE_TARGET_PERCENT),
        latency.text,
        verdict(latency.judged_ms <= LATENCY_TARGET_MS),
        alarm.text,
        verdict(alarm.judged_ms <= ALARM_TARGET_MS),
    );
    println!("{measured}");
    replace(&root.join("docs/performance.md"), BEGIN, END, &measured)
}

/// What a datagram's tag and signature cost.
fn envelope_rows(root: &Path) -> Result<String> {
    let lines = sky::lines(root, "wingbeat-wire", "envelope", &[])?;
    if lines.len() != ENVELOPE_TARGETS_US.len() {
        bail!("the bench envelope printed {} lines, expected {}", lines.len(), ENVELOPE_TARGETS_US.len());
    }
    let mut rows = String::new();
    for (line, target_us) in lines.iter().zip(ENVELOPE_TARGETS_US) {
        let is_met = sky::before(line, " us")? < target_us && sky::before(line, " allocations")? == 0.0;
        let verdict = if is_met { "met" } else { "**missed**" };
        rows.push_str(&format!(
            "| `cargo bench --package wingbeat-wire --bench envelope` | under {target_us} µs, no allocation | {line} | \
             {verdict} |\n"
        ));
    }
    Ok(rows)
}

/// Puts `measured`, which has both lines itself, where they and what is between them were.
pub(crate) fn replace(path: &Path, begin_line: &str, end_line: &str, measured: &str) -> Result<()> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let (Some(begin), Some(end)) = (text.find(begin_line), text.find(end_line)) else {
        bail!("{}: found no lines {begin_line} and {end_line}, expected both", path.display());
    };
    fs::write(path, format!("{}{measured}{}", &text[..begin], &text[end + end_line.len()..]))
        .with_context(|| format!("writing {}", path.display()))
}

/// Times real time, sorted, as the program itself reports.
fn bench_speeds(root: &Path, program: &Path) -> Result<Vec<f64>> {
    let mut speeds = Vec::new();
    for _ in 0..RUNS {
        let mut command = Command::new(program);
        command.current_dir(root).args([
            "bench",
            "run",
            "crates/bench/plans/nine-fourteen.toml",
            "--seed",
            "1",
        ]);
        let finished = process::tee(&mut command)?;
        if !finished.status.success() {
            bail!("the bench failed: found {}, expected exit code 0", finished.status);
        }
        let speed = finished
            .text
            .lines()
            .find_map(|line| line.strip_suffix(" times real time")?.rsplit(' ').next()?.parse::<f64>().ok());
        speeds.push(speed.context("the bench printed no 'N times real time'")?);
    }
    speeds.sort_by(f64::total_cmp);
    Ok(speeds)
}

/// Time that a plan's flights take of one core, which on an idle machine is the time by the clock.
fn core_time(root: &Path, program: &Path, plan: &str) -> Result<Duration> {
    let mut command = Command::new(program);
    command.current_dir(root).args(["bench", "run", plan, "--seed", "1"]).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("starting {}", program.display()))?;
    let mut table = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        // Until it has ended; until it is waited for, its times can be read.
        stdout.read_to_string(&mut table)?;
    }
    let used = cpu_time(child.id())?;
    let status = child.wait()?;
    if !status.success() {
        bail!("{plan}: found {status}, expected exit code 0");
    }
    print!("{table}");
    Ok(used)
}

struct Latency {
    text: String,
    judged_ms: f64,
}

/// The line that a bench of a package prints under its name, and the figure in it that is judged.
fn printed(root: &Path, package: &str, bench: &str, judged: &str) -> Result<Latency> {
    let mut command = process::cargo();
    command.current_dir(root).args(["bench", "--package", package, "--bench", bench]);
    let finished = process::tee(&mut command)?;
    if !finished.status.success() {
        bail!("the bench {bench} failed: found {}, expected exit code 0", finished.status);
    }
    let line = finished.text.lines().find_map(|line| line.strip_prefix(bench)?.strip_prefix(": "));
    let text = line.with_context(|| format!("the bench printed no line '{bench}: ...'"))?.to_owned();
    let judged_ms = text.split_once(judged).and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    Ok(Latency {
        judged_ms: judged_ms.with_context(|| format!("the bench printed no '{judged}N ms'"))?,
        text,
    })
}

/// Share of one core that a fleet takes while it flies, per cent.
fn real_time_share(root: &Path, program: &Path, uavs: u32) -> Result<f64> {
    let mut command = Command::new(program);
    command.current_dir(root).args(["bench", "fleet", "--auto", "--ground", "127.0.0.1:0", "--uavs"]);
    command.arg(uavs.to_string());
    let child =
        command.stdout(Stdio::null()).spawn().with_context(|| format!("starting {}", program.display()))?;
    let mut fleet = Ended(child);
    sleep(WARM_UP);
    let (before, began) = (cpu_time(fleet.0.id())?, Instant::now());
    sleep(MEASURE);
    let used = cpu_time(fleet.0.id())? - before;
    let share = used.as_secs_f64() / began.elapsed().as_secs_f64() * 100.0;
    if fleet.0.try_wait()?.is_some() {
        bail!("the fleet ended before the measurement did");
    }
    Ok(share)
}

/// A fleet that does not outlive the measurement.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// User and system time of a process (proc(5): fields 14 and 15, in ticks of 10 ms).
fn cpu_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks =
        |field: usize| after_name.split_whitespace().nth(field - 3).and_then(|v| v.parse::<u64>().ok());
    let total = ticks(14).zip(ticks(15)).map(|(user, system)| user + system);
    Ok(Duration::from_millis(10 * total.with_context(|| format!("{path}: found no times"))?))
}

pub(crate) fn machine() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|l| l.strip_prefix("model name").and_then(|l| l.split(": ").nth(1)));
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let rustc = Command::new("rustc").arg("--version").output().ok();
    let rustc = rustc.and_then(|o| String::from_utf8(o.stdout).ok()).unwrap_or_default();
    format!("{}, {cores} cores, {}", model.unwrap_or("unknown processor"), rustc.trim())
}
