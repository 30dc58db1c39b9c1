//! `wingbeat linktest`: reads the files of tests, fits a channel table to them, and makes such files over the simulated
//! channel.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use clap::{Args, Subcommand};
use wingbeat_api::{FleetLinkTest, LinkTestRequest};
use wingbeat_bench::linktest::Away;
use wingbeat_ground::{Reach, run_link_test};
use wingbeat_linktest::{Fit, Record, Report};
use wingbeat_sim::channel::Model;

use crate::console::Credentials;

/// A test's file is at most so long: 60 000 rows of 160 bytes, and half as much again.
const FILE_LEN_MAX: u64 = 16 * 1024 * 1024;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Tests the link from one aircraft to others and records it, a file for each receiver.
    Run(RunArguments),
    /// Loss, bursts and flight parameters of tests, with their 95 % intervals.
    Report {
        /// Files of tests.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Also every burst of losses: number of its first datagram and length.
        #[arg(long)]
        bursts: bool,
    },
    /// Loss against distance from many tests, as a table that plans fly (channel.model = "table").
    Fit(FitArguments),
    /// Two aircraft in the simulated channel, one of which flies away: a file for each test.
    Simulate(SimulateArguments),
}

#[derive(Args)]
pub(crate) struct FitArguments {
    /// Files of tests.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Width of a range of distances, metres.
    #[arg(long, default_value_t = 50.0)]
    width_m: f64,
    /// Write the table into this file.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct SimulateArguments {
    /// unrestricted, range:METRES or 802.11a.
    #[arg(long, default_value = "802.11a")]
    channel: String,
    /// How many tests.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    tests: u32,
    /// Datagrams a second.
    #[arg(long, default_value_t = 50.0)]
    rate_hz: f64,
    /// UDP payload of each, bytes.
    #[arg(long, default_value_t = 1472)]
    payload_bytes: u32,
    /// How far the sender flies, metres.
    #[arg(long, default_value_t = 1500.0)]
    until_m: f64,
    /// How fast, metres per second.
    #[arg(long, default_value_t = 5.0)]
    speed_m_s: f64,
    /// What randomness is drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the files into this folder.
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
}

#[derive(Args)]
pub(crate) struct RunArguments {
    /// The ground service, which knows the aircraft and holds their leases.
    #[arg(long, value_name = "HOST:PORT", required_unless_present = "aircraft")]
    ground: Option<String>,
    #[command(flatten)]
    credentials: Credentials,
    /// The API of an aircraft of the test, where no ground service runs; once for each of them. Aircraft with keys need one.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "ground")]
    aircraft: Vec<String>,
    /// Id of the aircraft that sends, 16 hexadecimal digits.
    #[arg(long, value_name = "ID")]
    sender: String,
    /// Id of an aircraft that records; once for each of them.
    #[arg(long, value_name = "ID", required = true)]
    receiver: Vec<String>,
    /// Datagrams a second, 1 to 100.
    #[arg(long, value_name = "HZ", default_value_t = 50.0)]
    rate: f64,
    /// UDP payload of each, bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1000)]
    size: u32,
    /// How long, 1 to 600.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Send to the one receiver, and not to all: 802.11 repeats such frames until they are acknowledged.
    #[arg(long)]
    unicast: bool,
    /// Write what was recorded into this file; of several receivers, with their ids before its extension.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Run(arguments) => fly(arguments),
        Command::Report { files, bursts } => files.iter().try_for_each(|file| report(file, *bursts)),
        Command::Fit(arguments) => fit(arguments),
        Command::Simulate(arguments) => simulate(arguments),
    }
}

fn read(file: &Path) -> Result<Record> {
    let here = || format!("link test {}", file.display());
    let length = std::fs::metadata(file).with_context(here)?.len();
    ensure!(length <= FILE_LEN_MAX, "{}: found {length} bytes, expected at most {FILE_LEN_MAX}", here());
    let text = std::fs::read_to_string(file).with_context(here)?;
    Record::from_csv(&text).with_context(here)
}

fn report(file: &Path, with_bursts: bool) -> Result<()> {
    let record = read(file)?;
    let (test, report) = (&record.test, Report::of(&record));
    println!("{}: test {} from {} to {}", file.display(), test.number, test.from, test.to);
    println!("{} bytes, {} a second\n{report}", test.payload_bytes, test.rate_hz);
    for burst in report.bursts.iter().filter(|_| with_bursts) {
        println!("from {:.3} s: {} lost", f64::from(burst.first) / test.rate_hz, burst.length);
    }
    Ok(())
}

fn fly(arguments: &RunArguments) -> Result<()> {
    let RunArguments { ground, credentials, aircraft, sender, receiver, rate, size, seconds, unicast, out } =
        arguments;
    // Before anything is sent: a test whose file cannot be written need not be flown.
    let files: Vec<PathBuf> = receiver.iter().map(|id| file_of(out, id, receiver.len())).collect();
    for file in &files {
        std::fs::write(file, "").with_context(|| format!("--out {}", file.display()))?;
    }
    let test = LinkTestRequest {
        number: None,
        sender: sender.clone(),
        receivers: receiver.clone(),
        rate_hz: *rate,
        payload_bytes: *size,
        seconds: *seconds,
        unicast: *unicast,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let recorded: Result<_> = runtime.block_on(async {
        let Some(ground) = ground else {
            return Ok(run_link_test(Reach::Aircraft(aircraft.clone()), test, progress).await?);
        };
        let session = credentials.open(ground).await?;
        let recorded = run_link_test(Reach::Ground(session.remote.clone()), test, progress).await;
        session.close().await;
        Ok(recorded?)
    });
    if recorded.is_err() {
        // Nothing was recorded: an empty file is none of a test.
        files.iter().for_each(|file| drop(std::fs::remove_file(file)));
    }
    for (file, (_, text)) in files.iter().zip(recorded?) {
        std::fs::write(file, text).with_context(|| format!("--out {}", file.display()))?;
        report(file, false)?;
    }
    Ok(())
}

/// One line for each second.
fn progress(now: &FleetLinkTest) {
    let sent = now.sender.as_ref().map_or("no answer".into(), |sender| format!("sent {}", sender.count));
    let received: Vec<String> = now
        .receivers
        .iter()
        .zip(&now.test.receivers)
        .map(|(report, id)| match report {
            None => format!("{id}: no answer"),
            Some(report) => {
                let last = report.seconds.last().and_then(|second| second.distance_m);
                let distance = last.map_or(String::new(), |metres| format!(" at {metres:.0} m"));
                format!("{id}: received {}{distance}", report.count)
            }
        })
        .collect();
    println!("{}: {sent}; {}", now.test.sender, received.join("; "));
}

/// The file of a receiver's record.
fn file_of(out: &Path, receiver: &str, receivers: usize) -> PathBuf {
    if receivers == 1 {
        return out.to_owned();
    }
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    let extension = out.extension().map_or(String::new(), |e| format!(".{}", e.to_string_lossy()));
    out.with_file_name(format!("{stem}-{receiver}{extension}"))
}

fn fit(arguments: &FitArguments) -> Result<()> {
    let width_m = arguments.width_m;
    ensure!((1.0..=10_000.0).contains(&width_m), "--width-m: found {width_m}, expected 1 to 10000");
    let records = arguments.files.iter().map(|file| read(file)).collect::<Result<Vec<_>>>()?;
    let fit = Fit::of(&records, width_m);
    let table = fit.table().context("found no datagram whose distance is known, expected some")?;
    println!("distance (m)      sent      lost   loss (%)   lies in (%), all together 95 %");
    for bin in &fit.bins {
        let (least, most) = bin.interval;
        println!(
            "{:12.1} {:9} {:9} {:10.2}   {:.2} to {:.2}",
            bin.distance_m,
            bin.sent,
            bin.lost,
            bin.loss * 1e2,
            least * 1e2,
            most * 1e2
        );
    }
    let Some(out) = &arguments.out else { return Ok(()) };
    std::fs::write(out, table.to_toml()).with_context(|| format!("--out {}", out.display()))?;
    println!("{}: {} rows", out.display(), table.rows().len());
    Ok(())
}

fn simulate(arguments: &SimulateArguments) -> Result<()> {
    let model: Model = arguments.channel.parse().map_err(|e| anyhow!("--channel: {e}"))?;
    let away = Away {
        rate_hz: arguments.rate_hz,
        payload_bytes: arguments.payload_bytes,
        until_m: arguments.until_m,
        speed_m_s: arguments.speed_m_s,
        ..Away::over(model)
    };
    let folder = &arguments.out;
    std::fs::create_dir_all(folder).with_context(|| format!("--out {}", folder.display()))?;
    for number in 0..arguments.tests {
        let record = away.fly(number, arguments.seed.wrapping_add(u64::from(number)))?;
        let file = folder.join(format!("test-{number}.csv"));
        std::fs::write(&file, record.to_csv()).with_context(|| file.display().to_string())?;
    }
    println!("{}: {} tests", folder.display(), arguments.tests);
    Ok(())
}
