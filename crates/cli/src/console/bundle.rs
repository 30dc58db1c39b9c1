//! `wingbeat fleet bundle`: the logs of the fleet in one folder of this computer.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use tokio::time::sleep;
use wingbeat_api::{
    Bundle, BundledAircraft, BundledClock, ChecklistResultFile, ChecklistResults, FleetBundle,
    FleetBundleRequest, FleetPicture, LogKind, Missing, paths,
};
use wingbeat_ground::bundle::{self, ReadClock, Source, Step, Wanted};
use wingbeat_ground::remote::{Method, Remote};

use super::service::Service;
use super::{Code, show};

/// Arguments of `wingbeat fleet bundle`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The folder of all experiments on this computer; the bundle is OUT/EXPERIMENT/UTC. Without it the ground service collects, into
    /// its own (`wingbeat ground --bundles`).
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The experiment's name: letters, digits, dots, hyphens and underscores.
    #[arg(long, value_name = "NAME", default_value = "experiment")]
    experiment: String,
    /// Only files that were written within so many hours, by the aircraft's clock.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=87_600))]
    hours: u32,
    /// Continue the newest bundle of the experiment: what is there is not asked for again.
    #[arg(long)]
    resume: bool,
    /// The flight controllers' own logs (DataFlash) too, so many of each, the newest, 0 to 16: an aircraft fetches them over MAVLink
    /// first, which takes 3 to 4 minutes for 1 MB at 57600 baud.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=16))]
    autopilot_logs: u16,
    /// The API of an aircraft, where no ground service runs; once for each of them. Without it the ground service names the aircraft.
    #[arg(long, value_name = "HOST:PORT", requires = "out")]
    aircraft: Vec<String>,
    /// The folder of this console's keys, as for `wingbeat ground`: with it aircraft are reached by TLS alone, without it those
    /// without keys.
    #[arg(long, value_name = "DIR", requires = "out")]
    keys: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) service: Service,
}

/// Collects, and prints what there is.
pub(crate) async fn run(remote: &Remote, arguments: &Arguments) -> Result<Code> {
    let Arguments { out, experiment, hours, resume, autopilot_logs, aircraft, keys, service } = arguments;
    let Some(out) = out else { return by_service(remote, arguments).await };
    let keys = keys.as_deref().map(wingbeat_keys::read_console).transpose();
    let keys =
        keys.map_err(|refused| anyhow!("--keys: found {}, expected {}", refused.found, refused.expected))?;
    let sources = if aircraft.is_empty() {
        let picture: FleetPicture = remote.get(paths::FLEET).await?;
        picture.aircraft.iter().map(known).collect()
    } else {
        let named = |address: &String| Source { address: address.clone(), ..Source::default() };
        aircraft.iter().map(named).collect::<Vec<_>>()
    };
    if keys.is_none() {
        reached_without_keys(&sources)?;
    }
    // Where no ground service is asked for the aircraft, none is asked for these.
    let (checklists, missing) =
        if aircraft.is_empty() { checklists(remote, *hours).await } else { (vec![], vec![]) };
    let wanted = Wanted {
        out: out.clone(),
        experiment: experiment.clone(),
        hours: *hours,
        resume: *resume,
        autopilot_logs: *autopilot_logs,
        free_least: bundle::FREE_LEAST,
        read_clock: READ_CLOCK,
        checklists,
        missing,
    };
    let shown = Mutex::new(Shown::default());
    let watch = |step: Step<'_>| {
        if !service.json {
            shown.lock().unwrap_or_else(PoisonError::into_inner).step(step);
        }
    };
    let (folder, bundle) = bundle::collect(&wanted, keys.as_ref(), &sources, &watch).await?;
    show::answer(service.json, &bundle, |bundle| summary(&folder, bundle))?;
    Ok(if bundle.complete { Code::Done } else { Code::NotAll })
}

/// Aircraft with keys answer to consoles of their fleet alone.
fn reached_without_keys(sources: &[Source]) -> Result<()> {
    let Some(one) = sources.iter().find(|source| source.address.starts_with("https:")) else {
        return Ok(());
    };
    let name = if one.name.is_empty() { &one.address } else { &one.name };
    bail!(
        "--keys: found none, and {}, an aircraft with keys; expected the folder of a console of its fleet (console.key, fleet.bundle); \
         without --out the ground service collects, by its own",
        show::plain(name)
    )
}

/// What the ground service kept of its checklist with the flights of these hours, and what of it is not given; nothing where it has no
/// checklist. The logs come all the same.
async fn checklists(remote: &Remote, hours: u32) -> (Vec<(String, Vec<u8>)>, Vec<Missing>) {
    let (mut files, mut missing) = (vec![], vec![]);
    let mut lacks = |what: &str, why: &dyn std::fmt::Display| {
        eprintln!("{}: {}", show::plain(what), show::plain(&why.to_string()));
        missing.push(Missing { what: what.to_owned(), why: why.to_string() });
    };
    match kept(remote).await {
        Ok(kept) => {
            for file in kept.into_iter().filter(|file| file.age_s <= u64::from(hours) * 3600) {
                let path = format!("{}?file={}", paths::FLEET_CHECKLIST_RESULT, show::escaped(&file.name));
                match remote.ask(Method::GET, &path, None::<&()>).await {
                    Ok(answer) => files.push((file.name, answer.text().into_bytes())),
                    Err(error) => lacks(&file.name, &format_args!("{error:#}")),
                }
            }
        }
        Err(error) => lacks("checklists", &format_args!("{error:#}")),
    }
    (files, missing)
}

/// The files that it has of its checklist.
async fn kept(remote: &Remote) -> Result<Vec<ChecklistResultFile>> {
    let picture: FleetPicture = remote.get(paths::FLEET).await?;
    if picture.checklist.is_none() {
        return Ok(vec![]);
    }
    let results: ChecklistResults = remote.get(paths::FLEET_CHECKLIST_RESULTS).await?;
    Ok(results.results)
}

/// Between two looks at what the service collects.
const POLL: Duration = Duration::from_secs(1);

/// Has the ground service collect into its own folder, and follows that.
async fn by_service(remote: &Remote, arguments: &Arguments) -> Result<Code> {
    let request = FleetBundleRequest {
        experiment: arguments.experiment.clone(),
        hours: arguments.hours,
        autopilot_logs: arguments.autopilot_logs,
        resume: arguments.resume,
    };
    remote.ask(Method::POST, paths::FLEET_BUNDLE, Some(&request)).await?;
    let (json, mut shown) = (arguments.service.json, Shown::default());
    loop {
        let now: FleetBundle = remote.get(paths::FLEET_BUNDLE).await?;
        if now.running {
            for one in now.receiving.iter().filter(|_| !json) {
                shown.receives(
                    &show::plain(&one.aircraft),
                    &show::plain(&one.file),
                    one.held_bytes,
                    one.bytes,
                );
            }
            sleep(POLL).await;
            continue;
        }
        let Some(bundle) = now.bundle else {
            bail!("{}", now.problem.unwrap_or_else(|| "found no bundle, expected one".into()));
        };
        let folder = PathBuf::from(now.folder.unwrap_or_default());
        show::answer(json, &bundle, |bundle| summary(&folder, bundle))?;
        return Ok(if bundle.complete { Code::Done } else { Code::NotAll });
    }
}

fn known(aircraft: &wingbeat_api::FleetAircraft) -> Source {
    let status = aircraft.status.as_ref();
    Source {
        address: aircraft.address.clone(),
        id: status.map(|status| status.id.clone()),
        name: status.map_or_else(String::new, |status| status.name.clone()),
    }
}

/// What was printed last of the files that come, on standard error.
#[derive(Default)]
struct Shown {
    percent: std::collections::BTreeMap<(String, String), u64>,
}

impl Shown {
    fn receives(&mut self, aircraft: &str, name: &str, held: u64, of: u64) {
        let tenths = held.saturating_mul(10) / of.max(1);
        let last = self.percent.insert((aircraft.to_owned(), name.to_owned()), tenths);
        if last.is_some_and(|last| last != tenths) && tenths < 10 {
            eprintln!("{aircraft}: {name}: {held} of {of} bytes");
        }
    }

    fn step(&mut self, step: Step<'_>) {
        match step {
            Step::Receives(source, name, held, of) => self.receives(&source.address, name, held, of),
            Step::Holds(source, file) => {
                self.percent.remove(&(source.address.clone(), file.name.clone()));
                eprintln!("{}: {}: {} bytes, verified", source.address, file.name, file.bytes);
            }
            Step::Lacks(source, missing) => {
                eprintln!(
                    "{}: {}: {}",
                    source.address,
                    show::plain(&missing.what),
                    show::plain(&missing.why)
                );
            }
        }
    }
}

fn summary(folder: &Path, bundle: &Bundle) -> String {
    let mut text: String = bundle.aircraft.iter().map(row).collect();
    if !bundle.checklists.is_empty() {
        text += &format!("checklists: {} of flights\n", bundle.checklists.len());
    }
    for missing in &bundle.missing {
        text += &format!("missing: {}: {}\n", show::plain(&missing.what), show::plain(&missing.why));
    }
    let (have, of) =
        (bundle.aircraft.iter().filter(|one| one.missing.is_empty()).count(), bundle.aircraft.len());
    text += &format!("{}: {have} of {of} aircraft", folder.display());
    if !bundle.complete {
        text += "; run it again with --resume for the rest";
    }
    text + "\n"
}

fn row(one: &BundledAircraft) -> String {
    let name = if one.name.is_empty() { one.address.as_str() } else { one.name.as_str() };
    let (count, bytes) = (one.files.len(), one.files.iter().map(|file| file.bytes).sum::<u64>());
    let mut text = format!(
        "{} {}: {count} files, {:.1} MB; {}\n",
        one.folder,
        show::plain(name),
        bytes as f64 / 1e6,
        clocks(one)
    );
    for file in &one.files {
        if let Some(flaw) = &file.flaw {
            text += &format!("  {}: {}: read up to its last good chunk\n", file.name, show::plain(flaw));
        }
    }
    for missing in &one.missing {
        text += &format!("  missing: {}: {}\n", show::plain(&missing.what), show::plain(&missing.why));
    }
    text
}

/// How far the computer's clock was off, in the newest flight of which that is known.
fn clocks(one: &BundledAircraft) -> String {
    let flights = one.files.iter().filter(|file| file.kind == LogKind::Flight);
    let clocks: Vec<&BundledClock> = flights.filter_map(|file| file.clock.as_ref()).collect();
    let known = |clock: &&&BundledClock| clock.ahead_of_gnss_ms.is_some();
    let Some(clock) = clocks.iter().rev().find(known) else {
        return match clocks.iter().any(|clock| clock.utc_of_agent_time_zero_us.is_some()) {
            true => "on its computer's clock: no GNSS time in its logs".into(),
            false => "clock unknown".into(),
        };
    };
    let ahead = clock.ahead_of_gnss_ms.unwrap_or_default();
    let mut text = format!("on GNSS time, its computer's clock {ahead:+.1} ms");
    if let Some(error) = clock.gnss_error_ms {
        text += &format!(" (to {error:.1} ms)");
    }
    if clock.stepped_ms != 0.0 {
        text += &format!(", set by {:+.1} ms in flight", clock.stepped_ms);
    }
    text
}

#[cfg(unix)]
pub(crate) const READ_CLOCK: Option<ReadClock> = Some(read_clock);
#[cfg(not(unix))]
pub(crate) const READ_CLOCK: Option<ReadClock> = None;

/// The clocks of a flight log.
#[cfg(unix)]
fn read_clock(path: &Path) -> Result<(BundledClock, Option<String>), String> {
    let (clock, flaw) = wingbeat_record::clock::Clock::of_file(path).map_err(|error| error.to_string())?;
    let bundled = BundledClock {
        utc_of_agent_time_zero_us: clock.utc_base_us,
        gnss_of_agent_time_zero_us: clock.gnss_base_us,
        gnss_error_ms: clock.gnss_base_us.map(|_| clock.gnss_error_us as f64 / 1e3),
        ahead_of_gnss_ms: clock.ahead_us().map(|us| us as f64 / 1e3),
        stepped_ms: clock.stepped_us as f64 / 1e3,
    };
    Ok((bundled, flaw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aircraft_with_keys_need_a_console_of_their_fleet() {
        let source =
            |address: &str, name: &str| Source { address: address.into(), id: None, name: name.into() };
        let open = source("http://10.0.0.7:8080", "UAV 1");
        assert!(reached_without_keys(std::slice::from_ref(&open)).is_ok());
        for (name, shown) in [("UAV 2", "UAV 2"), ("", "https://10.0.0.8:8080")] {
            let error =
                reached_without_keys(&[open.clone(), source("https://10.0.0.8:8080", name)]).unwrap_err();
            let expected = format!(
                "--keys: found none, and {shown}, an aircraft with keys; expected the folder of a console"
            );
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
    }
}
