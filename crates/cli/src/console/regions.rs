//! The flight controllers' fence and rally points: sent, read, compared, cleared.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Subcommand;
use wingbeat_api::{
    FleetPicture, FleetRegionRead, FleetRegionWrite, FleetRegions, Region, RegionFile, RegionFileContent,
    RegionWork, paths,
};
use wingbeat_ground::remote::{Method, Remote};

use super::orders::Targets;
use super::service::Service;
use super::{Code, show};

/// A larger file is refused before it travels.
const FILE_LEN_MAX: u64 = 2_000_000;
/// The aircraft are asked again after this time,
const POLL: Duration = Duration::from_millis(500);
/// so often: an aircraft gives up after 90 s with each of both lists.
const POLLS_MAX: u32 = 400;

/// Which list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Fence,
    Rally,
}

impl List {
    fn of(self, region: Region) -> Region {
        match self {
            Self::Fence => Region { rally: None, ..region },
            Self::Rally => Region { fence: None, ..region },
        }
    }
}

/// What is done with them.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// What the aircraft hold, as they read it last, compared with what they were sent. Exit code 1 where one differs or has a problem.
    Status {
        #[command(flatten)]
        service: Service,
    },
    /// Let aircraft read fence and rally points of their flight controllers, on the ground, and wait for it.
    Read {
        #[command(flatten)]
        targets: Targets,
        #[command(flatten)]
        service: Service,
    },
    /// What a file holds, checked; nothing is sent.
    Check {
        /// A QGroundControl plan, or GeoJSON.
        file: PathBuf,
        #[command(flatten)]
        service: Service,
    },
    /// Send what a file holds, on the ground, and wait until it was read back. Exit code 1 where one refused it or holds it differently.
    Send {
        /// A QGroundControl plan, or GeoJSON.
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        targets: Targets,
        #[command(flatten)]
        service: Service,
    },
    /// Clear them, on the ground.
    Clear {
        #[command(flatten)]
        targets: Targets,
        #[command(flatten)]
        service: Service,
    },
}

impl Command {
    pub(crate) fn service(&self) -> &Service {
        match self {
            Self::Status { service }
            | Self::Read { service, .. }
            | Self::Check { service, .. }
            | Self::Send { service, .. }
            | Self::Clear { service, .. } => service,
        }
    }
}

async fn content(remote: &Remote, path: &Path) -> Result<RegionFileContent> {
    let here = || path.display().to_string();
    let length = std::fs::metadata(path).with_context(here)?.len();
    anyhow::ensure!(
        length <= FILE_LEN_MAX,
        "{}: found {length} bytes, expected at most {FILE_LEN_MAX}",
        here()
    );
    let file = RegionFile { name: here(), text: super::text_of(path).with_context(here)? };
    Ok(remote.ask(Method::POST, paths::REGION_FILES, Some(&file)).await?.json()?)
}

pub(crate) async fn run(remote: &Remote, list: List, command: &Command) -> Result<Code> {
    let json = command.service().json;
    match command {
        Command::Status { .. } => {
            answer(json, list, &remote.get(paths::FLEET_REGION).await?, &remote.get(paths::FLEET).await?)
        }
        Command::Check { file, .. } => {
            let found = content(remote, file).await?;
            show::answer(json, &found, |found| {
                let notes = found.notes.iter().map(|note| format!("{}\n", show::plain(note)));
                format!("{}\n{}", count(&found.region), notes.collect::<String>())
            })?;
            Ok(Code::Done)
        }
        Command::Read { targets, .. } => {
            let picture: FleetPicture = remote.get(paths::FLEET).await?;
            let read = FleetRegionRead { vehicles: targets.listed(&picture)? };
            let begun = remote.ask(Method::POST, paths::FLEET_REGION, Some(&read)).await?;
            settled(remote, list, begun.json()?, &picture, json).await
        }
        Command::Send { file, targets, .. } => {
            let RegionFileContent { region, notes } = content(remote, file).await?;
            let region = list.of(region);
            let name = if list == List::Fence { "fence" } else { "rally points" };
            anyhow::ensure!(
                region.fence.is_some() || region.rally.is_some(),
                "{}: found no {name}, expected some",
                file.display()
            );
            if !json {
                notes.iter().for_each(|note| eprintln!("{}", show::plain(note)));
            }
            send(remote, list, targets, region, json).await
        }
        Command::Clear { targets, .. } => {
            let region = list.of(Region { fence: Some(vec![]), rally: Some(vec![]) });
            send(remote, list, targets, region, json).await
        }
    }
}

async fn send(remote: &Remote, list: List, targets: &Targets, region: Region, json: bool) -> Result<Code> {
    let picture: FleetPicture = remote.get(paths::FLEET).await?;
    let write = FleetRegionWrite { vehicles: targets.listed(&picture)?, region };
    let begun = remote.ask(Method::PUT, paths::FLEET_REGION, Some(&write)).await?;
    settled(remote, list, begun.json()?, &picture, json).await
}

/// Waits until those that were asked are done, and shows what they hold then; what one refused stays its answer.
async fn settled(
    remote: &Remote,
    list: List,
    begun: FleetRegions,
    picture: &FleetPicture,
    json: bool,
) -> Result<Code> {
    let mut now = begun.clone();
    for _ in 0..POLLS_MAX {
        let is_idle = |work| work == RegionWork::None;
        if now.vehicles.iter().filter_map(|v| v.state.as_ref()).all(|state| is_idle(state.work)) {
            break;
        }
        tokio::time::sleep(POLL).await;
        let all: FleetRegions = remote.get(paths::FLEET_REGION).await?;
        now.vehicles = begun
            .vehicles
            .iter()
            .map(|asked| {
                let newer = all.vehicles.iter().find(|one| one.id == asked.id);
                newer.filter(|_| asked.problem.is_none()).unwrap_or(asked).clone()
            })
            .collect();
    }
    answer(json, list, &now, picture)
}

fn count(region: &Region) -> String {
    let one = |count: Option<usize>, what: &str| match count {
        None => format!("{what} not read"),
        Some(count) => format!("{count} {what}"),
    };
    let fence = one(region.fence.as_ref().map(Vec::len), "areas of a fence");
    let rally = one(region.rally.as_ref().map(Vec::len), "rally points");
    format!("{fence}, {rally}")
}

fn answer(json: bool, list: List, fleet: &FleetRegions, picture: &FleetPicture) -> Result<Code> {
    let (text, is_all) = shown(list, fleet, |id| show::name_of(picture, id));
    show::answer(json, fleet, |_| text)?;
    Ok(if is_all { Code::Done } else { Code::NotAll })
}

/// A line for each aircraft, and one for each thing that is wrong; whether nothing is.
fn shown(list: List, fleet: &FleetRegions, name_of: impl Fn(&str) -> String) -> (String, bool) {
    let (mut text, mut is_all) = (String::new(), !fleet.vehicles.is_empty());
    for vehicle in &fleet.vehicles {
        let mut problems: Vec<&String> = vehicle.problem.iter().chain(&vehicle.differs).collect();
        let name = name_of(&vehicle.id);
        let Some(state) = &vehicle.state else {
            text.push_str(&format!("{name}: no answer\n"));
            problems.iter().for_each(|problem| text.push_str(&format!("  {}\n", show::plain(problem))));
            is_all = false;
            continue;
        };
        let held = list.of(Region { fence: state.fence.clone(), rally: state.rally.clone() });
        let work = match state.work {
            RegionWork::None => "",
            RegionWork::Reading => ", reading",
            RegionWork::Writing => ", sending",
        };
        let held = match (list, held.fence, held.rally) {
            (List::Fence, Some(fence), _) => format!("{} areas", fence.len()),
            (List::Rally, _, Some(rally)) => format!("{} rally points", rally.len()),
            (List::Fence, None, _) | (List::Rally, _, None) => {
                is_all = false;
                "not read: not known".to_owned()
            }
        };
        text.push_str(&format!("{name}: {held}{work}\n"));
        problems.extend(&state.problems);
        is_all &= problems.is_empty() && state.work == RegionWork::None;
        problems.iter().for_each(|problem| text.push_str(&format!("  {}\n", show::plain(problem))));
        if let Some(finding) = state.finding.as_ref().filter(|_| list == List::Fence) {
            text.push_str(&format!("  {}\n", show::plain(finding)));
        }
    }
    (text, is_all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_api::{RegionState, VehicleRegion};

    #[test]
    fn what_differs_or_was_refused_is_a_line_and_no_success() {
        let vehicle = |id: &str, state: Option<RegionState>| VehicleRegion {
            id: id.to_owned(),
            problem: state.is_none().then(|| "found armed motors".to_owned()),
            state,
            differs: vec![],
        };
        let good = RegionState {
            fence: Some(vec![]),
            finding: Some("home and route lie inside of the fence".to_owned()),
            ..RegionState::default()
        };
        let mut fleet = FleetRegions { vehicles: vec![vehicle("a", Some(good.clone()))] };
        let expected = "a: 0 areas\n  home and route lie inside of the fence\n".to_owned();
        assert_eq!(shown(List::Fence, &fleet, str::to_owned), (expected, true));
        assert_eq!(shown(List::Rally, &fleet, str::to_owned), ("a: not read: not known\n".to_owned(), false));
        fleet.vehicles.push(vehicle("b", None));
        fleet.vehicles[0].differs.push("fence: found 0 areas, expected 1".to_owned());
        let (text, is_all) = shown(List::Fence, &fleet, str::to_owned);
        assert!(!is_all && text.contains("  fence: found 0 areas, expected 1\n"), "{text}");
        assert!(text.ends_with("b: no answer\n  found armed motors\n"), "{text}");
    }
}
