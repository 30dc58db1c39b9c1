//! `cargo xtask test`: every check in order, each named and timed. One that fails does not stop the
//! next; the last line counts them all.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};

use crate::counts::{self, Counts};
use crate::cross::{self, Target};
use crate::{chip, golden, image, layers, network, ns3, nspawn, package, pi, process, web, windows};

/// A subcommand of cargo that is installed prints its version within this.
const VERSION_LIMIT: Duration = Duration::from_secs(20);

/// Niceness of what runs beside other steps: those are in real time.
const BESIDE: i32 = 15;

/// Table of the last run of everything, relative to the root.
const REPORT: &str = "docs/results/full-run.md";

/// The steps so far: their counts, and the names of those that failed.
#[derive(Default)]
struct Suite {
    counts: Counts,
    failed: Vec<&'static str>,
    rows: Vec<Row>,
}

/// A step of the table.
struct Row {
    name: &'static str,
    /// Its counts and seconds, or what this machine lacks for it.
    outcome: Result<(Counts, f64), String>,
}

/// A check that runs beside others, with what they leave of the processors.
struct Beside {
    name: &'static str,
    thread: JoinHandle<(Result<String>, Duration)>,
}

impl Beside {
    /// Begins it; what it returns is printed at its end.
    fn begin(name: &'static str, step: impl FnOnce() -> Result<String> + Send + 'static) -> Self {
        println!("\n== {name}: begun");
        let thread = std::thread::spawn(move || {
            // Linux gives this to the thread and to what it starts. Without it the others only become slower.
            let _ = rustix::process::nice(BESIDE);
            let started = Instant::now();
            (step(), started.elapsed())
        });
        Self { name, thread }
    }
}

/// Where a test runner reports its counts.
enum Report {
    /// In a JUnit file that it writes.
    Junit(PathBuf),
    /// In the closing lines of `cargo test`.
    ClosingLines,
    /// The same, of a run that need not contain any test.
    ClosingLinesOfAnyNumber,
}

/// Runs everything; the exit code is 1 if anything failed.
pub(crate) fn run(root: &Path, full: bool) -> ExitCode {
    let mut suite = Suite::default();
    let cargo = |arguments: &[&str]| {
        let mut command = process::cargo();
        command.current_dir(root).args(arguments);
        command
    };
    // Flights in real time want the machine for themselves: they are a step of their own.
    let without_sitl = |arguments: &[&str]| {
        let mut command = cargo(arguments);
        command.env_remove("WINGBEAT_SITL");
        command
    };
    suite.check("format", || process::run(&mut cargo(&["fmt", "--all", "--check"])));
    suite.check("layers", || layers::run(root).map(|line| println!("{line}")));
    let is_there = process::succeeds_within(&mut cargo(&["deny", "--version"]), VERSION_LIMIT);
    let missing = (!is_there).then(|| "no cargo-deny here; `cargo install cargo-deny` has it".to_owned());
    suite.optional("deny", Ok(missing), || {
        process::run(&mut cargo(&["deny", "--log-level", "error", "check", "licenses", "bans", "sources"]))
    });
    suite.check("chip", || chip::run(root, false).map(|line| println!("{line}")));
    // The Rust tests fly with it where it is built.
    suite.optional("ns3 program", Ok(ns3::missing()), || {
        ns3::program(root).map(|path| println!("{}", path.display()))
    });
    let has_nextest = process::succeeds_within(&mut cargo(&["nextest", "--version"]), VERSION_LIMIT);
    // With it `wingbeat`, for the steps below: built for development it checks its arithmetic too, and the bytes are the same.
    suite.check("rust build", || {
        let run: &[&str] = if has_nextest { &["nextest", "run"] } else { &["test", "--all-targets"] };
        process::run(&mut cargo(&[run, &["--workspace", "--no-run", "--color", "never"]].concat()))
    });
    let wingbeat = root.join("target/debug/wingbeat");
    let golden = Beside::begin("golden", {
        let (root, wingbeat) = (root.to_owned(), wingbeat.clone());
        move || golden::run(&root, &wingbeat, false, false)
    });
    // In a folder of its own: cargo would let it and the tests wait for each other.
    let clippy = Beside::begin("clippy", {
        let mut command = cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--target-dir"]);
        command.arg(root.join("target/clippy")).args(["--", "-D", "warnings"]);
        move || process::run(&mut command).map(|()| String::new())
    });
    let package = suite.beside("package", package::missing(), {
        let (root, wingbeat) = (root.to_owned(), wingbeat.clone());
        move || package::run(&root, &wingbeat)
    });
    if has_nextest {
        // Most of its time a flight in real time waits: twice as many run as there are processors.
        let threads = std::thread::available_parallelism().map_or(2, |n| 2 * n.get()).to_string();
        let run = ["nextest", "run", "--workspace", "--no-fail-fast", "--status-level", "slow"];
        let arguments = [&run[..], &["--color", "never", "--test-threads", &threads]].concat();
        // The path is in .config/nextest.toml.
        let report = Report::Junit(root.join("target/nextest/default/junit.xml"));
        suite.tests("rust", report, || Ok(without_sitl(&arguments)));
    } else {
        let arguments =
            ["test", "--workspace", "--all-targets", "--no-fail-fast", "--quiet", "--color", "never"];
        suite.tests("rust", Report::ClosingLines, || Ok(without_sitl(&arguments)));
    }
    suite.end(golden);
    suite.end(clippy);
    if let Some(package) = package {
        suite.end(package);
    }
    // Examples in the documentation are not required.
    suite.tests("rust documentation", Report::ClosingLinesOfAnyNumber, || {
        Ok(cargo(&["test", "--workspace", "--doc", "--no-fail-fast", "--quiet", "--color", "never"]))
    });
    let page = root.join("web");
    suite.check("web install", || web::install(root, "web"));
    suite.check("web check", || process::run(&mut web::npm(&page, &["run", "--silent", "check"])));
    let report = root.join("target/reports/web.xml");
    let output = format!("--outputFile.junit={}", report.display());
    suite.tests("web", Report::Junit(report), || {
        let reporters = ["--reporter=default", "--reporter=junit", &output];
        Ok(web::npm(&page, &[&["test", "--silent", "--"][..], &reporters].concat()))
    });
    suite.check("web build", || process::run(&mut web::npm(&page, &["run", "--silent", "build"])));
    suite.optional("arm64", Ok(pi::emulated::missing(None)), || pi::emulated::run(root, &wingbeat, None));
    let report = root.join("target/reports/browser.xml");
    suite.tests("browser", Report::Junit(report.clone()), || {
        web::install(root, "tests/browser")?;
        let mut test = Command::new("node");
        // One after the other: two fleets and two browsers in parallel would only slow each other down.
        test.current_dir(root).env("WINGBEAT", &wingbeat);
        test.args(["--test", "--test-concurrency=1", "--test-timeout=600000"]);
        test.args(["--test-reporter=tap", "--test-reporter-destination=stdout", "--test-reporter=junit"]);
        test.arg(format!("--test-reporter-destination={}", report.display()));
        test.args(
            [
                "console",
                "plan",
                "consoles",
                "alarms",
                "login",
                "avoidance",
                "replay",
                "fence",
                "tiles",
                "axe",
            ]
            .map(|story| format!("tests/browser/{story}.test.mjs")),
        );
        Ok(test)
    });
    if full {
        suite.check("golden full", || {
            let wingbeat = process::build_wingbeat(root)?;
            golden::run(root, &wingbeat, true, false).map(|line| println!("{line}"))
        });
        if std::env::var_os("WINGBEAT_SITL").is_none_or(|path| path.is_empty()) {
            println!("\nfull: no SITL; set WINGBEAT_SITL to the path of an ArduCopter SITL program");
        }
        let larger =
            ["test", "-p", "wingbeat-protocol", "--lib", "--color", "never", "muscop::tests::model::larger_"];
        suite.tests("model", Report::ClosingLines, || {
            let mut test = cargo(&larger);
            test.args(["--", "--ignored", "--nocapture"]);
            Ok(test)
        });
        // One after the other: each wants the machine for itself to keep real time.
        let programs = ["sitl::", "lockstep::", "json::", "incidents::", "proxy::", "scripts::", "hosts::"];
        let tests = ["cli", "cosim", "bench"].iter().flat_map(|name| ["--test", name]);
        let sitl: Vec<&str> = ["test", "--workspace"]
            .into_iter()
            .chain(tests)
            .chain(["--no-fail-fast", "--color", "never", "--"])
            .chain(programs)
            .collect();
        suite.tests("sitl", Report::ClosingLines, || {
            let mut test = cargo(&sitl);
            test.args(["--test-threads", "1", "--nocapture"]);
            Ok(test)
        });
        let processes = [
            "test",
            "-p",
            "wingbeat-daemon-tests",
            "--test",
            "daemon",
            "--color",
            "never",
            "namespaces::",
            "--",
        ];
        suite.tests("namespaces", Report::ClosingLines, || {
            let mut test = cargo(&processes);
            test.args(["--ignored", "--nocapture"]);
            Ok(test)
        });
        suite.optional("nspawn", nspawn::missing(), || nspawn::run(root));
        suite.optional("image", image::missing(), || image::run(root));
        suite.optional("network", Ok(network::missing()), || network::run(root));
        suite.optional("pi", pi::missing(None), || pi::run(root, None, false));
        suite.optional("ns3", Ok(ns3::missing()), || ns3::check(root));
        for (name, target) in [("cross aarch64", Target::Aarch64), ("cross armv7", Target::Armv7)] {
            suite.optional(name, Ok(cross::missing(target)), || cross::run(root, target).map(drop));
        }
        suite.optional("windows", Ok(windows::missing()), || windows::run(root));
        for (name, target) in [("vectors aarch64", Target::Aarch64), ("vectors armv7", Target::Armv7)] {
            suite.optional(name, Ok(cross::vectors_missing(target)), || cross::vectors(root, target));
        }
        suite.report(root);
    }
    suite.close()
}

impl Suite {
    /// A step that is one check.
    fn check(&mut self, name: &'static str, step: impl FnOnce() -> Result<()>) {
        self.step(name, || step().map(|()| Counts { passed: 1, failed: 0 }));
    }

    /// A step that is one check, on a machine that has what it takes; else a line names what is missing, and
    /// it counts for nothing.
    fn optional(
        &mut self,
        name: &'static str,
        missing: Result<Option<String>>,
        step: impl FnOnce() -> Result<()>,
    ) {
        match missing {
            Ok(Some(what)) => self.skip(name, what),
            Ok(None) => self.check(name, step),
            Err(error) => self.check(name, || Err(error)),
        }
    }

    fn skip(&mut self, name: &'static str, what: String) {
        println!("\n== {name}: skipped: {what}");
        self.rows.push(Row { name, outcome: Err(what) });
    }

    /// Begins a check beside the steps that follow, on a machine that has what it takes.
    fn beside(
        &mut self,
        name: &'static str,
        missing: Result<Option<String>>,
        step: impl FnOnce() -> Result<String> + Send + 'static,
    ) -> Option<Beside> {
        match missing {
            Ok(Some(what)) => {
                self.skip(name, what);
                None
            }
            Ok(None) => Some(Beside::begin(name, step)),
            Err(error) => Some(Beside::begin(name, || Err(error))),
        }
    }

    /// Waits for a check that was begun before.
    fn end(&mut self, beside: Beside) {
        self.check(beside.name, || {
            let (result, took) = beside.thread.join().map_err(|_| anyhow!("it panicked"))?;
            let line = result?;
            println!(
                "{line}{}beside the steps before: {:.1} s",
                if line.is_empty() { "" } else { "\n" },
                took.as_secs_f64()
            );
            Ok(())
        });
    }

    /// A step that runs tests and is counted by them.
    fn tests(&mut self, name: &'static str, report: Report, command: impl FnOnce() -> Result<Command>) {
        self.step(name, || {
            if let Report::Junit(path) = &report {
                begin_report(path)?;
            }
            let mut command = command()?;
            let (succeeded, counts) = match &report {
                Report::Junit(path) => (process::succeeds(&mut command)?, junit(path)?),
                Report::ClosingLines | Report::ClosingLinesOfAnyNumber => {
                    let finished = process::tee(&mut command)?;
                    (finished.status.success(), counts::closing_lines(&finished.text))
                }
            };
            verdict(counts, succeeded, matches!(report, Report::ClosingLinesOfAnyNumber))
        });
    }

    fn step(&mut self, name: &'static str, step: impl FnOnce() -> Result<Counts>) {
        println!("\n== {name}");
        let started = Instant::now();
        let counts = step().unwrap_or_else(|error| {
            println!("{error:#}");
            Counts { passed: 0, failed: 1 }
        });
        let verdict = if counts.failed == 0 { "passed" } else { "FAILED" };
        let seconds = started.elapsed().as_secs_f64();
        println!("== {name}: {verdict} in {seconds:.1} s");
        self.rows.push(Row { name, outcome: Ok((counts, seconds)) });
        self.counts = self.counts.plus(counts);
        if counts.failed > 0 {
            self.failed.push(name);
        }
    }

    /// Writes the table of all steps; one that fails is a failed step itself.
    fn report(&mut self, root: &Path) {
        let mut date = Command::new("date");
        let date = process::output(date.args(["-u", "+%Y-%m-%d"]))
            .map_or_else(|_| "unknown".to_owned(), |bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
        let text = table(&self.rows, &date, &machine());
        self.check("report", || {
            let path = root.join(REPORT);
            std::fs::create_dir_all(path.parent().context("a file has a folder")?)?;
            std::fs::write(&path, text).with_context(|| path.display().to_string())
        });
    }

    fn close(self) -> ExitCode {
        println!();
        if !self.failed.is_empty() {
            println!("failed: {}", self.failed.join(", "));
        }
        println!("{} passed, {} failed", self.counts.passed, self.counts.failed);
        if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Returns the processor and the number of cores.
fn machine() -> String {
    let facts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        facts.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cores} cores", model.unwrap_or("unknown processor"))
}

/// Returns the page of a run: a row for each step. A step that was not run is no step that passed.
fn table(rows: &[Row], date: &str, machine: &str) -> String {
    let mut text = format!(
        "# The last run of everything\n\nWritten by `cargo xtask test --full` on {date}, {machine}.\n\n| step | verdict | passed | failed | \
         seconds |\n|---|---|---|---|---|\n"
    );
    for Row { name, outcome } in rows {
        text += &match outcome {
            Ok((counts, seconds)) => {
                let verdict = if counts.failed == 0 { "passed" } else { "**failed**" };
                format!("| {name} | {verdict} | {} | {} | {seconds:.0} |\n", counts.passed, counts.failed)
            }
            Err(what) => format!("| {name} | not run: {} | | | |\n", what.replace('|', "/")),
        };
    }
    text
}

/// Removes the report of an earlier run, and makes the folder for the next.
fn begin_report(path: &Path) -> Result<()> {
    let folder = path.parent().context("a report has a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    if path.exists() {
        std::fs::remove_file(path).with_context(|| format!("removing {}", path.display()))?;
    }
    Ok(())
}

/// The counts of a report; `None` if the runner wrote none.
fn junit(path: &Path) -> Result<Option<Counts>> {
    if !path.exists() {
        return Ok(None);
    }
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {name}"))?;
    counts::junit(&text).map(Some).with_context(|| name.to_string())
}

/// The counts of a run, if they agree with its exit code.
fn verdict(counts: Option<Counts>, succeeded: bool, may_be_empty: bool) -> Result<Counts> {
    match counts {
        Some(counts) if succeeded && counts == Counts::default() && !may_be_empty => {
            bail!("the test runner executed no test, expected at least one")
        }
        Some(counts) if succeeded || counts.failed > 0 => Ok(counts),
        // It broke after or between tests: what passed still counts.
        Some(counts) => Ok(Counts { failed: 1, ..counts }),
        None if succeeded => bail!("the test runner reported no counts, expected them"),
        None => bail!("the tests did not run to their end"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_exit_code_must_agree() {
        let three = Some(Counts { passed: 3, failed: 0 });
        assert_eq!(verdict(three, true, false).ok(), three);
        assert_eq!(verdict(three, false, false).ok(), Some(Counts { passed: 3, failed: 1 }));
        assert!(verdict(None, true, false).is_err(), "a run without counts is no success");
        assert!(verdict(Some(Counts::default()), true, false).is_err(), "no test is no success");
        assert!(verdict(Some(Counts::default()), true, true).is_ok());
    }

    #[test]
    fn the_report_of_an_earlier_run_does_not_count() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("reports/shell.xml");
        let mut suite = Suite::default();
        let report = || Report::Junit(path.clone());
        let run = |script: String| {
            move || {
                let mut command = Command::new("sh");
                command.args(["-c", &script]);
                Ok(command)
            }
        };
        let write = format!("echo '<testsuites><testcase/></testsuites>' > '{}'", path.display());
        suite.tests("writes", report(), run(write));
        assert_eq!(suite.counts, Counts { passed: 1, failed: 0 });
        suite.tests("writes none", report(), run("true".to_owned()));
        suite.tests("writes half", report(), run(format!("echo '<testsuites>' > '{}'", path.display())));
        assert_eq!(suite.counts, Counts { passed: 1, failed: 2 });
        assert_eq!(suite.failed, ["writes none", "writes half"]);
    }

    #[test]
    fn the_table_shows_what_passed_failed_and_was_not_run() {
        let mut suite = Suite::default();
        suite.check("good", || Ok(()));
        suite.check("bad", || bail!("on purpose"));
        suite.optional("lacking", Ok(Some("no tools | here".into())), || Ok(()));
        let text = table(&suite.rows, "2026-11-28", "a machine");
        let rows: Vec<&str> = text.lines().skip(6).collect();
        assert_eq!(
            rows,
            [
                "| good | passed | 1 | 0 | 0 |",
                "| bad | **failed** | 0 | 1 | 0 |",
                "| lacking | not run: no tools / here | | | |"
            ]
        );
        let folder = tempfile::TempDir::new().unwrap();
        suite.report(folder.path());
        assert!(folder.path().join(REPORT).is_file());
    }

    #[test]
    fn a_failed_step_is_counted_and_named() {
        let mut suite = Suite::default();
        suite.check("good", || Ok(()));
        suite.check("bad", || bail!("on purpose"));
        suite.tests("shell", Report::ClosingLines, || {
            let mut command = Command::new("sh");
            command.args(["-c", "echo 'test result: FAILED. 2 passed; 1 failed; 0 ignored'; exit 1"]);
            Ok(command)
        });
        assert_eq!(suite.counts, Counts { passed: 3, failed: 2 });
        assert_eq!(suite.failed, ["bad", "shell"]);
    }

    #[test]
    fn a_check_that_runs_beside_others_counts_when_it_has_ended() {
        let mut suite = Suite::default();
        let (good, bad) =
            (Beside::begin("good", || Ok("a line".to_owned())), Beside::begin("bad", || bail!("on purpose")));
        assert_eq!(suite.counts, Counts::default());
        suite.end(good);
        suite.end(bad);
        suite.end(Beside::begin("panics", || panic!("on purpose")));
        assert_eq!(suite.counts, Counts { passed: 1, failed: 2 });
        assert_eq!(suite.failed, ["bad", "panics"]);
    }

    #[test]
    fn what_this_machine_cannot_do_is_not_run_and_not_counted() {
        let mut suite = Suite::default();
        suite.optional("lacking", Ok(Some("no tools here".into())), || bail!("it was run"));
        assert_eq!((suite.counts, suite.failed.len()), (Counts::default(), 0));
        suite.optional("equipped", Ok(None), || Ok(()));
        suite.optional("broken", Ok(None), || bail!("on purpose"));
        suite.optional("unknown", Err(anyhow::anyhow!("on purpose")), || Ok(()));
        assert_eq!(suite.counts, Counts { passed: 1, failed: 2 });
        assert_eq!(suite.failed, ["broken", "unknown"]);
    }
}
