//! `cargo xtask bench cosim`: how fast real autopilots, our physics and ns-3 fly together, what the coupling costs, and what the
//! published methods take, into `docs/performance.md`. Real ArduCopters fly where `WINGBEAT_SITL` names a program, and five of
//! 4.x where `WINGBEAT_SITL_4` names one.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::sky::before;
use crate::{bench, ns3, process};

const BEGIN: &str = "<!-- measured: written by cargo xtask bench cosim -->";
const END: &str = "<!-- end of measured cosim -->";
/// The ArduCopter program that flies.
const SITL_KEY: &str = "WINGBEAT_SITL";
/// The one of 4.x, for which the target of five aircraft is stated.
const SITL_4_KEY: &str = "WINGBEAT_SITL_4";
/// Five aircraft with ns-3, times real time.
const FIVE_TARGET: f64 = 2.0;
/// Ten aircraft.
const TEN_TARGET: f64 = 3.0;
/// Of a processor, more than ns-3 alone takes.
const COUPLING_TARGET_PERCENT: f64 = 10.0;
/// Aircraft of the flights whose phases are measured, those of GZUAVCHANNEL.
const SIZES: [u32; 6] = [1, 2, 5, 10, 25, 50];

/// What a command printed.
struct Flown {
    command: String,
    text: String,
}

impl Flown {
    fn trace(&self) -> Result<&str> {
        let trace = self.text.lines().find_map(|line| line.strip_prefix("trace "));
        trace.with_context(|| format!("`{}` printed no line 'trace ...'", self.command))
    }

    /// The lines of flights, each with that of ns-3 if there is one.
    fn flights(&self) -> Vec<(&str, Option<&str>)> {
        let lines: Vec<&str> = self.text.lines().collect();
        let ns3 = |i: usize| lines.get(i + 1).copied().filter(|line| line.starts_with("  ns-3: "));
        let all =
            lines.iter().enumerate().filter(|(_, line)| line.contains(" times real time; each 10 ms: "));
        all.map(|(i, line)| (*line, ns3(i))).collect()
    }

    fn speed(&self) -> Result<f64> {
        let flights = self.flights();
        let (line, _) = flights.first().with_context(|| format!("`{}` printed no flight", self.command))?;
        before(line, " times real time")
    }
}

/// By how much more of a core ns-3 took than alone, per cent: by the same requests without the flight, and in it.
fn percents(line: &str) -> Option<(&str, &str)> {
    let (_, percents) = line.split_once("coupling ")?;
    percents.trim_end_matches(" %").split_once(" %, in the flight ")
}

/// Measures, prints, and writes into `docs/performance.md`. Another program than a release of this tree flies if one is named.
pub(crate) fn run(root: &Path, seed: u64, program: Option<&Path>) -> Result<()> {
    if let Some(what) = ns3::missing() {
        println!("bench cosim: skipped: {what}");
        return Ok(());
    }
    ns3::program(root)?;
    let program = match program {
        Some(program) => std::path::absolute(program)?,
        None => process::build_wingbeat(root)?,
    };
    // They are not part of the command that is written down: where a program is on this machine is of no interest there.
    let named = |key| std::env::var_os(key).filter(|path| !path.is_empty()).map(PathBuf::from);
    let (sitl, sitl_4) = (named(SITL_KEY), named(SITL_4_KEY));
    let fly_by = |sitl: Option<&Path>, plan: &str, rest: &str| -> Result<Flown> {
        let arguments = format!("bench run crates/bench/plans/{plan} --seed {seed} {rest} --phases");
        let mut command = Command::new(&program);
        command.current_dir(root).args(arguments.split_whitespace());
        command.args(
            sitl.iter().flat_map(|path| ["--autopilot".to_owned(), format!("arducopter:{}", path.display())]),
        );
        let finished = process::tee(&mut command)?;
        ensure!(
            finished.status.success(),
            "`wingbeat {arguments}`: found {}, expected exit code 0",
            finished.status
        );
        Ok(Flown { command: arguments.split_whitespace().collect::<Vec<_>>().join(" "), text: finished.text })
    };
    let fly = |plan: &str, rest: &str| fly_by(sitl.as_deref(), plan, rest);
    let verdict = |met: bool| if met { "met" } else { "**missed**" };
    let flown_by =
        if sitl.is_some() { "real ArduCopter 3.5 in lock step" } else { "simulated flight controllers" };
    let mut page = Page {
        path: root.join("docs/performance.md"),
        head: format!("Machine: {}. Flown by {flown_by}.", bench::machine()),
        rows: Vec::new(),
        methods: String::new(),
    };
    let newer = sitl_4.as_deref().map(|path| (Some(path), ", flown by 4.x"));
    for (sitl, flown_by) in [(sitl.as_deref(), "")].into_iter().chain(newer) {
        let five = fly_by(sitl, "muscop-sitl.toml", "--medium ns3")?;
        let again = fly_by(sitl, "muscop-sitl.toml", "--medium ns3")?;
        let (speed, second) = (five.speed()?, again.speed()?);
        page.add(format!(
            "| `wingbeat {}`: five aircraft{flown_by}, twice | at least {FIVE_TARGET} times real time (stated for 4.x) | \
             {speed:.1} and {second:.1} times | {} |",
            five.command,
            verdict(speed.min(second) >= FIVE_TARGET)
        ))?;
        let is_equal = five.trace()? == again.trace()?;
        page.add(format!(
            "| the traces of both | equal | {} and {} | {} |",
            five.trace()?,
            again.trace()?,
            verdict(is_equal)
        ))?;
    }
    let ten = fly("gzuav-speed.toml", "--uavs 10 --medium unrestricted")?;
    page.add(format!(
        "| `wingbeat {}`: ten aircraft | at least {TEN_TARGET} times real time | {:.1} times | {} |",
        ten.command,
        ten.speed()?,
        verdict(ten.speed()? >= TEN_TARGET)
    ))?;
    // Before the sizes, of which the last ones take longest.
    let methods = fly("dusc-methods.toml", "")?;
    let run_times = methods.text.find("run time ").map(|at| &methods.text[at..]);
    let run_times: Vec<&str> = run_times.unwrap_or_default().lines().take(9).collect();
    page.methods = format!(
        "\n\n`wingbeat {}`, one after the other:\n\n```text\n{}\n```",
        methods.command,
        run_times.join("\n")
    );
    for size in SIZES {
        let flown = fly("gzuav-speed.toml", &format!("--uavs {size}"))?;
        let flights = flown.flights();
        let (line, coupling) =
            flights.first().with_context(|| format!("`{}` printed no flight", flown.command))?;
        let (percent, met) = match coupling.and_then(percents) {
            Some((asked, flown)) => {
                let judge = |percent: &str| {
                    verdict(percent.parse::<f64>().is_ok_and(|percent| percent <= COUPLING_TARGET_PERCENT))
                };
                let words = format!(
                    "; asked as in the flight, without it, ns-3 takes {asked} % more, in the flight {flown} %"
                );
                (words, format!("{}; in the flight {}", judge(asked), judge(flown)))
            }
            None => (String::new(), String::new()),
        };
        page.add(format!(
            "| `wingbeat {}` | ns-3 takes at most {COUPLING_TARGET_PERCENT} % more of a core than alone | {:.1} times real time; \
             each 10 ms {:.0} µs autopilots and physics, {:.0} µs agents and world, {:.0} µs medium{percent} | {met} |",
            flown.command,
            before(line, " times real time")?,
            before(line, " us autopilots")?,
            before(line, " us agents")?,
            before(line, " us medium")?,
        ))?;
    }
    println!("{}", page.text());
    Ok(())
}

/// What is written into the page of figures after each flight: one that is ended early has shown what it measured.
struct Page {
    path: PathBuf,
    head: String,
    rows: Vec<String>,
    methods: String,
}

impl Page {
    fn add(&mut self, row: String) -> Result<()> {
        self.rows.push(row);
        bench::replace(&self.path, BEGIN, END, &self.text())
    }

    fn text(&self) -> String {
        format!(
            "{BEGIN}\n{}\n\n| figure | target | measured | |\n|---|---|---|---|\n{}{}\n{END}",
            self.head,
            self.rows.join("\n"),
            self.methods,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flights_are_found_with_what_ns3_took() {
        let line = "a, none, 5 aircraft, flight seed 1: 55 s in 10.00 s, 5.5 times real time; each 10 ms: 9 us autopilots and physics, 8 us agents \
                    and world, 7 us medium";
        let text = format!(
            "{line}\n  ns-3: 3 round trips: coupling 8.1 %, in the flight 90.0 %\n{line}\ntrace 0f\n"
        );
        let flown = Flown { command: "bench run".into(), text };
        let flights = flown.flights();
        assert_eq!((flights.len(), flights[1].1), (2, None));
        assert_eq!(percents(flights[0].1.unwrap()), Some(("8.1", "90.0")));
        assert_eq!((flown.speed().unwrap(), flown.trace().unwrap()), (5.5, "0f"));
        assert_eq!(before(flights[0].0, " us agents").unwrap(), 8.0);
    }
}
