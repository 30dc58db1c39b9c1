//! `cargo xtask test`: every check in order, each named and timed. One that fails does not stop the
//! next; the last line counts them all.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Result, bail};

use crate::counts::{self, Counts, Runner};
use crate::cross::{self, Target};
use crate::{chip, golden, layers, nspawn, process, web};

/// Counts what ran and prints it.
struct Suite {
    counts: Counts,
    failed: Vec<&'static str>,
}

/// Runs everything; the exit code is 1 if anything failed.
pub(crate) fn run(root: &Path, full: bool) -> ExitCode {
    let mut suite = Suite { counts: Counts::default(), failed: Vec::new() };
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
    suite.check("clippy", || {
        process::run(&mut cargo(&[
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]))
    });
    suite.check("layers", || layers::run(root).map(|line| println!("{line}")));
    suite.check("chip", || chip::run(root, false).map(|line| println!("{line}")));
    if process::succeeds_within(&mut cargo(&["nextest", "--version"]), std::time::Duration::from_secs(20)) {
        let arguments =
            ["nextest", "run", "--workspace", "--no-fail-fast", "--status-level", "slow", "--color", "never"];
        suite.tests("rust", Runner::Nextest, || Ok(without_sitl(&arguments)));
    } else {
        let arguments =
            ["test", "--workspace", "--all-targets", "--no-fail-fast", "--quiet", "--color", "never"];
        suite.tests("rust", Runner::CargoTest, || Ok(without_sitl(&arguments)));
    }
    // An example in the documentation is welcome, not required: none at all is no failure.
    suite.tests("rust documentation", Runner::Documentation, || {
        Ok(cargo(&["test", "--workspace", "--doc", "--no-fail-fast", "--quiet", "--color", "never"]))
    });
    let page = root.join("web");
    suite.check("web install", || web::install(root, "web"));
    suite.check("web check", || process::run(&mut web::npm(&page, &["run", "--silent", "check"])));
    suite.tests("web", Runner::Vitest, || Ok(web::npm(&page, &["test", "--silent"])));
    suite.check("web build", || process::run(&mut web::npm(&page, &["run", "--silent", "build"])));
    suite.check("release build", || process::build_wingbeat(root).map(drop));
    suite.check("golden", || golden::run(root, full, false).map(|line| println!("{line}")));
    suite.tests("browser", Runner::Node, || {
        web::install(root, "tests/browser")?;
        let mut test = Command::new("node");
        // One after the other: two fleets and two browsers at once would only slow each other down.
        test.current_dir(root).args(["--test", "--test-concurrency=1", "--test-timeout=600000"]);
        test.arg("--test-reporter=tap");
        test.args(["tests/browser/console.test.mjs", "tests/browser/avoidance.test.mjs"]);
        Ok(test)
    });
    if full {
        if std::env::var_os("WINGBEAT_SITL").is_none() {
            println!("\nfull: no SITL; set WINGBEAT_SITL to the path of an ArduCopter SITL program");
        }
        // One after the other: each wants the machine for itself to keep real time.
        let sitl = ["test", "--workspace", "--test", "sitl", "--no-fail-fast", "--color", "never", "--"];
        suite.tests("sitl", Runner::CargoTest, || {
            let mut test = cargo(&sitl);
            test.args(["--test-threads", "1", "--nocapture"]);
            Ok(test)
        });
        suite.optional("nspawn", nspawn::missing(), || nspawn::run(root));
        for (name, target) in [("cross aarch64", Target::Aarch64), ("cross armv7", Target::Armv7)] {
            suite.optional(name, Ok(cross::missing(target)), || cross::run(root, target));
        }
    }
    suite.close()
}

impl Suite {
    /// A step that is one check.
    fn check(&mut self, name: &'static str, step: impl FnOnce() -> Result<()>) {
        self.step(name, || step().map(|()| Counts { passed: 1, failed: 0 }));
    }

    /// A step that is one check, on a machine that has what it takes; else a line says what is missing, and
    /// it counts for nothing.
    fn optional(
        &mut self,
        name: &'static str,
        missing: Result<Option<String>>,
        step: impl FnOnce() -> Result<()>,
    ) {
        match missing {
            Ok(Some(what)) => println!("\n== {name}: skipped: {what}"),
            Ok(None) => self.check(name, step),
            Err(error) => self.check(name, || Err(error)),
        }
    }

    /// A step that runs tests and is counted by them.
    fn tests(&mut self, name: &'static str, runner: Runner, command: impl FnOnce() -> Result<Command>) {
        self.step(name, || {
            let finished = process::tee(&mut command()?)?;
            tested(runner, finished.status.success(), &finished.text)
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
        println!("== {name}: {verdict} in {:.1} s", started.elapsed().as_secs_f64());
        self.counts = self.counts.plus(counts);
        if counts.failed > 0 {
            self.failed.push(name);
        }
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

/// What a test runner's end means: its counts, if they agree with its exit code.
fn tested(runner: Runner, succeeded: bool, text: &str) -> Result<Counts> {
    match counts::read(runner, text) {
        Some(counts) if succeeded && counts == Counts::default() && runner != Runner::Documentation => {
            bail!("the test runner executed no test, expected at least one")
        }
        Some(counts) if succeeded || counts.failed > 0 => Ok(counts),
        // It broke after or between tests: what passed still counts.
        Some(counts) => Ok(Counts { failed: 1, ..counts }),
        None if succeeded => bail!("the test runner printed no closing line, expected its counts"),
        None => bail!("the tests did not run to their end"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_exit_code_must_agree() {
        let line = "test result: ok. 3 passed; 0 failed; 0 ignored";
        assert_eq!(tested(Runner::CargoTest, true, line).ok(), Some(Counts { passed: 3, failed: 0 }));
        assert_eq!(tested(Runner::CargoTest, false, line).ok(), Some(Counts { passed: 3, failed: 1 }));
        assert!(tested(Runner::CargoTest, true, "").is_err(), "silence is no success");
        assert!(
            tested(Runner::CargoTest, true, "test result: ok. 0 passed; 0 failed").is_err(),
            "no test is no success"
        );
    }

    #[test]
    fn a_failed_step_is_counted_and_named() {
        let mut suite = Suite { counts: Counts::default(), failed: Vec::new() };
        suite.check("good", || Ok(()));
        suite.check("bad", || bail!("on purpose"));
        suite.tests("shell", Runner::Node, || {
            let mut command = Command::new("sh");
            command.args(["-c", "echo '# pass 2'; echo '# fail 1'; exit 1"]);
            Ok(command)
        });
        assert_eq!(suite.counts, Counts { passed: 3, failed: 2 });
        assert_eq!(suite.failed, ["bad", "shell"]);
    }

    #[test]
    fn what_this_machine_cannot_do_is_not_run_and_not_counted() {
        let mut suite = Suite { counts: Counts::default(), failed: Vec::new() };
        suite.optional("lacking", Ok(Some("no tools here".into())), || bail!("it was run"));
        assert_eq!((suite.counts, suite.failed.len()), (Counts::default(), 0));
        suite.optional("equipped", Ok(None), || Ok(()));
        suite.optional("broken", Ok(None), || bail!("on purpose"));
        suite.optional("unknown", Err(anyhow::anyhow!("on purpose")), || Ok(()));
        assert_eq!(suite.counts, Counts { passed: 1, failed: 2 });
        assert_eq!(suite.failed, ["broken", "unknown"]);
    }
}
