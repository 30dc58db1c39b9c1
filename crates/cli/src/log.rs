//! `wingbeat log`: flight logs on the ground.

mod export;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant as WallInstant;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{Args, Subcommand};
use wingbeat_agent::SigningKey;
use wingbeat_geo::Instant;
use wingbeat_record::event::Event;
use wingbeat_record::export::describe;
use wingbeat_record::reader::Log;
use wingbeat_record::replay::{Options, Outcome, Until, replay};
use wingbeat_record::step::{End, Steps};
use wingbeat_record::{compare, diff, store};

/// Flight logs (docs/records.md).
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Give the inputs of a log to a fresh agent and compare every byte that it answers. Exit code 1 where one differs.
    Replay(ReplayArguments),
    /// The same step by step: print each input, what the agent answers to it, and the state that it enters.
    Step(StepArguments),
    /// Print the records of a log, one on each line.
    Show(ShowArguments),
    /// Print the first record in which two logs differ, with those around it. Exit code 1 where one does.
    Diff(DiffArguments),
    /// Print flight times of real flights next to those of the bench, in the form of thesis Table 5.5.
    Compare(CompareArguments),
    /// Write a flight, or several on one time base, in another format.
    Export(export::Arguments),
}

/// Arguments of `wingbeat log replay`.
#[derive(Args)]
pub(crate) struct ReplayArguments {
    #[command(flatten)]
    replayed: Replayed,
    /// Print what it came to as one object of JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `wingbeat log step`.
#[derive(Args)]
pub(crate) struct StepArguments {
    #[command(flatten)]
    replayed: Replayed,
    /// Print nothing before this second of the agent's time; what came before is replayed all the same.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    from: f64,
    /// End after so many inputs.
    #[arg(long, value_name = "N", conflicts_with = "until", value_parser = clap::value_parser!(u64).range(1..))]
    inputs: Option<u64>,
    /// Print each step as an object of JSON on a line of its own, with the whole state, and last {"end": ...}.
    #[arg(long)]
    json: bool,
}

/// What is replayed, and how far.
#[derive(Args)]
struct Replayed {
    /// The log; parts of the same flight that follow it are read too.
    file: PathBuf,
    /// End there: seconds of the agent's time, or the name of a state.
    #[arg(long, value_name = "STATE|SECONDS")]
    until: Option<String>,
    /// Also replay the log of another version, and show where this one answers otherwise first.
    #[arg(long)]
    anyway: bool,
    /// The key file of frames that are signed (autopilot.signing_key), which is in no log.
    #[arg(long, value_name = "FILE")]
    signing_key: Option<PathBuf>,
}

/// Arguments of `wingbeat log show`.
#[derive(Args)]
pub(crate) struct ShowArguments {
    /// The log; parts of the same flight that follow it are read too.
    file: PathBuf,
    /// Only records of these names, for example log,datagram,to-autopilot.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// From this second of the agent's time on.
    #[arg(long, default_value_t = 0.0)]
    from: f64,
    /// Up to this second of the agent's time.
    #[arg(long, default_value_t = f64::INFINITY)]
    to: f64,
}

/// Arguments of `wingbeat log diff`.
#[derive(Args)]
pub(crate) struct DiffArguments {
    /// A log; parts of the same flight that follow it are read too.
    first: PathBuf,
    /// Another: of another version, another seed, another flight.
    second: PathBuf,
    /// Only records of these names, for example log,reply; without it all but what is plotted.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Equal records at different times are the same.
    #[arg(long)]
    any_time: bool,
    /// Records that are shown before the difference, and of each log from there on.
    #[arg(long, default_value_t = 5, value_name = "N")]
    context: usize,
}

/// Arguments of `wingbeat log compare`.
#[derive(Args)]
pub(crate) struct CompareArguments {
    /// A log of a real flight, or a folder with one log of each aircraft.
    real: PathBuf,
    /// The same of the bench.
    bench: PathBuf,
    /// The real flight without the protocol.
    #[arg(long, value_name = "PATH")]
    real_off: Option<PathBuf>,
    /// The bench's flight without the protocol.
    #[arg(long, value_name = "PATH")]
    bench_off: Option<PathBuf>,
    /// What the table calls it; the bench's own name of the flight without it.
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
}

/// Runs the subcommand.
pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Replay(arguments) => replay_file(arguments),
        Command::Step(arguments) => step(arguments),
        Command::Diff(arguments) => diff_files(arguments),
        Command::Compare(arguments) => compare_files(arguments).map(|()| ExitCode::SUCCESS),
        Command::Show(arguments) => show(arguments).map(|()| ExitCode::SUCCESS),
        Command::Export(arguments) => export::run(arguments).map(|()| ExitCode::SUCCESS),
    }
}

/// Reads a flight, and says where it ends before its end.
fn read(file: &Path) -> Result<Log> {
    ensure!(!file.is_dir(), "{}: found a folder, expected the log of one flight", file.display());
    let log = Log::read_flight(file).with_context(|| file.display().to_string())?;
    if let Some(flaw) = &log.flaw {
        let blocks = log.blocks.len();
        eprintln!("{}: {flaw}: read up to its last good chunk, {blocks} blocks", file.display());
    }
    Ok(log)
}

/// Prints a line; nothing where its reader has gone, as `head` does.
fn print(line: &str) -> bool {
    writeln!(std::io::stdout(), "{line}").is_ok()
}

impl Replayed {
    fn options(&self) -> Result<Options> {
        let until = self.until.as_deref().map(until).transpose()?;
        let signing_key = self.signing_key.as_deref().map(signing_key).transpose()?;
        Ok(Options { until, anyway: self.anyway, signing_key })
    }

    /// Prints what it came to, and how that ends the program.
    fn conclude(&self, options: &Options, outcome: &Outcome, json: bool) -> Result<ExitCode> {
        if !json {
            print_outcome(outcome);
        }
        if let Some(Until::State(state)) = &options.until
            && !outcome.is_reached
        {
            let names: Vec<&str> = outcome.states.iter().map(|(_, state)| state.as_str()).collect();
            bail!(
                "{}: --until: found no moment at which the agent enters {state}, expected a state that it enters in this log: \
                 {}",
                self.file.display(),
                names.join(", ")
            );
        }
        Ok(if outcome.difference.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn replay_file(arguments: &ReplayArguments) -> Result<ExitCode> {
    let ReplayArguments { replayed, json } = arguments;
    let options = replayed.options()?;
    let log = read(&replayed.file)?;
    let began = WallInstant::now();
    let outcome = replay(&log, &options, |_, _, _, _| ());
    let outcome = outcome.with_context(|| replayed.file.display().to_string())?;
    let (wall_s, flown_s) = (began.elapsed().as_secs_f64(), outcome.flown.as_secs_f64());
    eprintln!("replayed in {wall_s:.2} s: {:.0} times real time", flown_s / wall_s);
    if *json {
        print(&serde_json::to_string(&End::of(&outcome))?);
    }
    replayed.conclude(&options, &outcome, *json)
}

fn step(arguments: &StepArguments) -> Result<ExitCode> {
    let StepArguments { replayed, from, inputs, json } = arguments;
    ensure!(*from >= 0.0 && from.is_finite(), "--from: found {from}, expected seconds from 0 on");
    let mut options = replayed.options()?;
    if let Some(inputs) = inputs {
        options.until = Some(Until::Input(*inputs));
    }
    let log = read(&replayed.file)?;
    let (mut steps, mut is_read, mut failure) = (Steps::default(), true, None);
    let outcome = replay(&log, &options, |at, input, agent, out| {
        let step = steps.next(at, input, agent, out);
        if step.time_s < *from || !is_read {
            return;
        }
        if *json {
            match serde_json::to_string(&step) {
                Ok(line) => is_read = print(&line),
                Err(error) => failure = Some(error),
            }
        } else {
            is_read = step.lines().iter().all(|line| print(line));
        }
    });
    let outcome = outcome.with_context(|| replayed.file.display().to_string())?;
    if let Some(error) = failure {
        return Err(error).context("a step as JSON");
    }
    if *json {
        print(&serde_json::json!({ "end": End::of(&outcome) }).to_string());
    }
    replayed.conclude(&options, &outcome, *json)
}

fn print_outcome(outcome: &Outcome) {
    for (at, state) in &outcome.states {
        print(&format!("{:9.3} s {state}", at.as_secs_f64()));
    }
    let Outcome { inputs, compared, starts, .. } = outcome;
    let flown_s = outcome.flown.as_secs_f64();
    print(&format!("{inputs} inputs, {compared} bytes of outputs, {starts} starts, {flown_s:.1} s flown"));
    if let Some((at, count)) = outcome.lost {
        let at_s = at.as_secs_f64();
        print(&format!("{at_s:.3} s: {count} records were lost in flight: the replay ends there"));
    }
    if let Some(flaw) = &outcome.flaw {
        print(&format!("{flaw}: the replay ends there"));
    }
    match &outcome.difference {
        None => print("every output is the same"),
        Some(difference) => print(&format!("first difference at {difference}")),
    };
}

fn until(text: &str) -> Result<Until> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 && seconds.is_finite() => {
            Ok(Until::Time(Instant::from_micros((seconds * 1e6) as u64)))
        }
        Ok(seconds) => bail!("--until: found {seconds}, expected seconds from 0 on, or the name of a state"),
        Err(_) => {
            let known = serde_json::from_value::<wingbeat_wire::StateId>(text.into());
            known.map_err(|why| anyhow!("--until: found {text:?}, expected seconds, or a state: {why}"))?;
            Ok(Until::State(text.to_owned()))
        }
    }
}

fn signing_key(path: &Path) -> Result<SigningKey> {
    wingbeat_onboard::read_signing_key(path)
        .map_err(|refused| anyhow!("--signing-key: found {}, expected {}", refused.found, refused.expected))
}

fn check_names(only: &[String]) -> Result<()> {
    for name in only {
        ensure!(
            Event::NAMES.contains(&name.as_str()),
            "--only: found {name:?}, expected names of {}",
            Event::NAMES.join(", ")
        );
    }
    Ok(())
}

fn diff_files(arguments: &DiffArguments) -> Result<ExitCode> {
    check_names(&arguments.only)?;
    let (first, second) = (read(&arguments.first)?, read(&arguments.second)?);
    let DiffArguments { only, any_time, context, .. } = arguments;
    let options = diff::Options { only, any_time: *any_time, context: *context };
    let outcome = diff::diff(&first, &second, &options);
    match outcome.map_err(|error| anyhow!("a record of the journal: found {error}"))? {
        diff::Outcome::Same(count) => {
            print(&format!("{count} records are the same"));
            Ok(ExitCode::SUCCESS)
        }
        diff::Outcome::Differ(difference) => {
            let diff::Difference { same, before, first, second, is_answer } = difference;
            let what =
                if is_answer { "what the agents answered differs" } else { "what they were given differs" };
            print(&format!("{same} records are the same, then {what}"));
            let ends = || vec!["the log ends".to_owned()];
            let or_end = |lines: Vec<String>| if lines.is_empty() { ends() } else { lines };
            for (sign, lines) in [(' ', before), ('-', or_end(first)), ('+', or_end(second))] {
                for line in lines {
                    print(&format!("{sign} {line}"));
                }
            }
            Ok(ExitCode::FAILURE)
        }
    }
}

/// A file, or the first part of each flight in a folder and in those of aircraft below it, by name.
fn files_in(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let within = |folder: &Path| -> Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
        let mut found = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
        found.sort();
        Ok(found)
    };
    let mut files = Vec::new();
    for found in within(path)? {
        // A bundle's folder has one of each aircraft.
        files.extend(if found.is_dir() { within(&found)? } else { vec![found] });
    }
    files.retain(|file| file.extension().is_some_and(|ending| ending == store::ENDING));
    // What follows the first part of a flight is read with it.
    let parts: Vec<PathBuf> = files.iter().filter_map(|file| store::next_part(file)).collect();
    files.retain(|file| !parts.contains(file));
    ensure!(!files.is_empty(), "{}: found no flight log, expected one of each aircraft", path.display());
    Ok(files)
}

/// The logs of a path: one, or those of a folder.
fn logs_in(path: &Path) -> Result<Vec<(String, Log)>> {
    files_in(path)?.iter().map(|file| Ok((file.display().to_string(), read(file)?))).collect()
}

fn compare_files(arguments: &CompareArguments) -> Result<()> {
    let or_none =
        |path: &Option<PathBuf>| path.as_deref().map(logs_in).transpose().map(Option::unwrap_or_default);
    let flights = compare::Flights {
        real: logs_in(&arguments.real)?,
        bench: logs_in(&arguments.bench)?,
        real_off: or_none(&arguments.real_off)?,
        bench_off: or_none(&arguments.bench_off)?,
    };
    let rows = compare::rows(&flights)?;
    let own = flights.bench.first().and_then(|(_, log)| log.about.get("flight"));
    let scenario = arguments.scenario.as_ref().or(own).map_or("-", String::as_str);
    print(compare::table(scenario, &rows).trim_end());
    Ok(())
}

fn show(arguments: &ShowArguments) -> Result<()> {
    check_names(&arguments.only)?;
    let log = read(&arguments.file)?;
    for (key, value) in &log.about {
        if !print(&format!("# {key}: {value}")) {
            return Ok(());
        }
    }
    for entry in log.entries() {
        let entry = entry.map_err(|error| anyhow!("a record of the journal: found {error}"))?;
        let at_s = entry.at.as_secs_f64();
        let is_wanted =
            arguments.only.is_empty() || arguments.only.iter().any(|name| name == entry.event.name());
        if is_wanted
            && (arguments.from..=arguments.to).contains(&at_s)
            && !print(&format!("{at_s:12.6} {}", describe(&entry.event)))
        {
            return Ok(());
        }
    }
    Ok(())
}
