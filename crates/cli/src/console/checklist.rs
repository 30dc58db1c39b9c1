//! The lab's checklist: shown, ticked, begun anew; the files that were kept with flights.

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use wingbeat_api::{
    Checklist, ChecklistItem, ChecklistResults, ChecklistScope, ChecklistStep, FleetPicture, TickWrite, paths,
};
use wingbeat_ground::remote::{Method, Remote};

use super::orders::id_of;
use super::service::Service;
use super::{Code, show};

/// Arguments of `wingbeat fleet checklist`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    service: Service,
}

/// What is done with it.
#[derive(Subcommand, Debug)]
enum Command {
    /// Tick an item: it was checked, by this user, now.
    Tick(Ticking),
    /// Untick an item.
    Untick(Ticking),
    /// Untick all.
    BeginAnew {
        #[command(flatten)]
        service: Service,
    },
    /// The files that were kept with flights, the newest first.
    Results {
        #[command(flatten)]
        service: Service,
    },
    /// Print one of these files: every item with who ticked it and when, every automatic check with its value.
    Export {
        /// Its name, as it is listed.
        name: String,
        #[command(flatten)]
        service: Service,
    },
}

/// What is ticked.
#[derive(Args, Debug)]
struct Ticking {
    /// The item's id.
    item: String,
    /// The aircraft that it is for, where it is ticked for each: ids of 16 hexadecimal digits, or display names.
    #[arg(value_name = "AIRCRAFT", conflicts_with = "all")]
    aircraft: Vec<String>,
    /// All aircraft.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    service: Service,
}

impl Arguments {
    pub(crate) fn service(&self) -> &Service {
        match &self.command {
            None => &self.service,
            Some(Command::Tick(ticking) | Command::Untick(ticking)) => &ticking.service,
            Some(
                Command::BeginAnew { service }
                | Command::Results { service }
                | Command::Export { service, .. },
            ) => service,
        }
    }
}

pub(crate) async fn run(remote: &Remote, arguments: &Arguments) -> Result<Code> {
    let json = arguments.service().json;
    let list: Checklist = match &arguments.command {
        None => remote.get(paths::FLEET_CHECKLIST).await?,
        Some(Command::Tick(ticking)) => tick(remote, ticking, true).await?,
        Some(Command::Untick(ticking)) => tick(remote, ticking, false).await?,
        Some(Command::BeginAnew { .. }) => {
            remote.ask(Method::DELETE, paths::FLEET_CHECKLIST, None::<&()>).await?.json()?
        }
        Some(Command::Results { .. }) => {
            let results: ChecklistResults = remote.get(paths::FLEET_CHECKLIST_RESULTS).await?;
            show::answer(json, &results, listed)?;
            return Ok(Code::Done);
        }
        Some(Command::Export { name, .. }) => {
            let path = format!("{}?file={}", paths::FLEET_CHECKLIST_RESULT, show::escaped(name));
            show::print(&remote.ask(Method::GET, &path, None::<&()>).await?.text())?;
            return Ok(Code::Done);
        }
    };
    let picture: FleetPicture = remote.get(paths::FLEET).await?;
    show::answer(json, &list, |list| shown(list, &picture))?;
    Ok(Code::Done)
}

async fn tick(remote: &Remote, ticking: &Ticking, ticked: bool) -> Result<Checklist> {
    let list: Checklist = remote.get(paths::FLEET_CHECKLIST).await?;
    let picture: FleetPicture = remote.get(paths::FLEET).await?;
    let vehicles = if ticking.all {
        let known = picture.aircraft.iter().filter_map(|one| one.status.as_ref());
        known.map(|status| status.id.clone()).collect()
    } else {
        ticking.aircraft.iter().map(|asked| id_of(&picture, asked)).collect::<Result<Vec<_>>>()?
    };
    let is_known = list.items.iter().any(|item| item.id == ticking.item);
    let is_each =
        list.items.iter().any(|item| item.id == ticking.item && item.per == ChecklistScope::Aircraft);
    ensure!(
        !is_known || !is_each || !vehicles.is_empty(),
        "{}: found no aircraft, expected those that it is ticked for, or --all",
        ticking.item
    );
    let write = TickWrite { hash: list.hash, item: ticking.item.clone(), vehicles, ticked };
    Ok(remote.ask(Method::PUT, paths::FLEET_CHECKLIST, Some(&write)).await?.json()?)
}

fn listed(results: &ChecklistResults) -> String {
    let mut text = format!("{}\n", show::plain(&results.folder));
    for file in &results.results {
        let _ = writeln!(text, "{}  {} bytes", show::plain(&file.name), file.bytes);
    }
    text
}

fn time(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(String::new, |time| time.strftime("%H:%M:%S").to_string())
}

/// A line for each item, and one for each tick.
fn shown(list: &Checklist, picture: &FleetPicture) -> String {
    let mut text = format!("{}\n", show::plain(&list.title));
    for item in &list.items {
        let needed = if item.required { "" } else { ", not required" };
        let before = match item.before {
            ChecklistStep::Setup => "",
            ChecklistStep::Start => ", before start",
        };
        let (mark, count) = state(item, picture);
        let _ = writeln!(text, "[{mark}] {}: {}{needed}{before}{count}", item.id, show::plain(&item.text));
        for tick in &item.ticks {
            let of = tick.vehicle.as_ref().map(|id| format!("{}, ", show::name_of(picture, id)));
            let _ = writeln!(
                text,
                "      {}{}, {} UTC",
                of.unwrap_or_default(),
                show::plain(&tick.by),
                time(tick.unix_ms)
            );
        }
    }
    if let Some(problem) = &list.problem {
        let _ = writeln!(text, "{}", show::plain(problem));
    }
    if let Some(name) = &list.last_result {
        let _ = writeln!(text, "last flight: {}", show::plain(name));
    }
    text
}

/// x where it is ticked for all, - where for some.
fn state(item: &ChecklistItem, picture: &FleetPicture) -> (char, String) {
    let known: Vec<&str> = picture
        .aircraft
        .iter()
        .filter_map(|one| one.status.as_ref())
        .map(|status| status.id.as_str())
        .collect();
    let of = match item.per {
        ChecklistScope::Fleet => return (if item.ticks.is_empty() { ' ' } else { 'x' }, String::new()),
        ChecklistScope::Aircraft => known.len(),
    };
    let ticked = |id: &&&str| item.ticks.iter().any(|tick| tick.vehicle.as_deref() == Some(**id));
    let count = known.iter().filter(ticked).count();
    let mark = match count {
        0 => ' ',
        count if count == of => 'x',
        _ => '-',
    };
    (mark, format!(" ({count} of {of})"))
}
