//! The lab's checklist: what people check before a flight. Its items are ticked by operators, and *Setup* and *Start* wait for those
//! that are required.
//!
//! ```text
//! operator ──tick──▶ state ──▶ ticks-PORT.json        a restart keeps them
//! Setup, Start ──▶ missing? ──▶ refused with the list; Start accepted ──▶ checklist-UTC.json
//! status ──▶ was in flight, motors off ──▶ its ticks are cleared
//! ```
//!
//! What it promises: no command but those two asks for it. Nothing of a command waits for the disk: what could not be written is
//! logged, and the page shows it. A tick counts for one flight.

mod disk;
mod file;
pub(crate) mod http;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use wingbeat_api::{
    AircraftStatus, CHECKLIST_RESULT_FORMAT, CheckedAircraft, CheckedItem, Checklist, ChecklistItem,
    ChecklistResult, ChecklistScope, ChecklistStep, Command, FleetAircraft, FleetPicture, KeptTick,
    LinkState, Phase, Tick, TickWrite,
};

use crate::refused::Refused;
pub use disk::is_result;
use disk::{Disk, Kept};
pub use file::{ChecklistError, List};

/// With armed motors above this height an aircraft flies, whatever its companion says, metres: barometers drift by less on the ground.
const FLYING_HEIGHT_M: f64 = 2.0;
/// Aircraft that a refusal names for an item.
const NAMED_MAX: usize = 3;

/// A checklist, and where its ticks and its results are kept.
#[derive(Clone, Debug)]
pub struct Configured {
    /// The list.
    pub list: List,
    /// The folder; made where there is none.
    pub folder: PathBuf,
}

/// What is kept over a restart of the service.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// Of the list that the ticks are for.
    hash: String,
    /// By the item's id, then by the aircraft's; of an item for the fleet the id is empty.
    ticks: BTreeMap<String, BTreeMap<String, Ticked>>,
    /// Aircraft that were seen in flight.
    flying: BTreeSet<String>,
    /// The automatic checks by which *Setup* was allowed.
    setup: BTreeMap<String, CheckedAircraft>,
    #[serde(skip)]
    last_result: Option<String>,
    #[serde(skip)]
    problem: Option<String>,
    /// Counts up with each change that consoles see.
    #[serde(skip)]
    version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ticked {
    by: String,
    unix_ms: u64,
}

#[derive(Debug)]
struct Inner {
    list: List,
    folder: PathBuf,
    state: Arc<Mutex<State>>,
    disk: Disk,
}

/// The checklist of one service; of a service without one it asks for nothing.
#[derive(Debug)]
pub(crate) struct Desk {
    inner: Option<Inner>,
    /// The name by which the service holds leases.
    console: String,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// UTC to the millisecond.
fn utc(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(String::new, |time| format!("{time:.3}"))
}

/// The automatic checks of aircraft whose id is known, as they are now.
pub(crate) fn checked(all: Vec<FleetAircraft>, of: &[String]) -> Vec<CheckedAircraft> {
    let now = unix_ms();
    let known = all.into_iter().filter_map(|one| Some((one.status?, one.age_ms.unwrap_or_default())));
    let asked = known.filter(|(status, _)| of.contains(&status.id));
    let checked = asked.map(|(status, age_ms)| CheckedAircraft {
        time: utc(now.saturating_sub(age_ms)),
        firmware: status.flight_controller.firmware,
        battery: status.measurements.battery,
        mission: status.mission,
        flight_setup: status.flight_setup.map(|now| now.setup),
        checks: status.checks,
        id: status.id,
        name: status.name,
    });
    checked.collect()
}

/// What the operator has accepted.
pub(crate) struct Accepted<'a> {
    pub(crate) command: Command,
    pub(crate) id: &'a str,
    pub(crate) by: &'a str,
    pub(crate) aircraft: Vec<CheckedAircraft>,
}

impl Desk {
    /// `port` tells services of one computer apart.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn open(configured: Option<Configured>, console: String, port: u16) -> std::io::Result<Self> {
        let Some(Configured { list, folder }) = configured else {
            return Ok(Self { inner: None, console });
        };
        wingbeat_keys::file::make_folder(&folder)?;
        let path = folder.join(format!("ticks-{port}.json"));
        let mut state = State::default();
        match disk::read_ticks(&path) {
            Ok(None) => {}
            Ok(Some(kept)) if kept.hash == list.hash => state = kept,
            Ok(Some(_)) => tracing::warn!("checklist: it is another than before: no item is ticked"),
            Err(error) => {
                tracing::error!("{}: found {error}, expected ticks: no item is ticked", path.display());
            }
        }
        state.hash.clone_from(&list.hash);
        state.last_result = disk::results(&folder)?.into_iter().next().map(|file| file.name);
        let state = Arc::new(Mutex::new(state));
        let disk = Disk::begin(folder.clone(), path, state.clone())?;
        Ok(Self { inner: Some(Inner { list, folder, state, disk }), console })
    }

    fn inner(&self) -> Result<&Inner, Refused> {
        self.inner.as_ref().ok_or_else(none)
    }

    /// The list with its ticks.
    pub(crate) fn shown(&self) -> Option<Checklist> {
        let Inner { list, state, .. } = self.inner.as_ref()?;
        let state = lock(state);
        let items = list.items.iter().map(|item| {
            let ticks = state.ticks.get(&item.id).into_iter().flatten();
            let tick = |(vehicle, tick): (&String, &Ticked)| Tick {
                vehicle: (!vehicle.is_empty()).then(|| vehicle.clone()),
                by: tick.by.clone(),
                unix_ms: tick.unix_ms,
            };
            ChecklistItem { ticks: ticks.map(tick).collect(), ..item.clone() }
        });
        Some(Checklist {
            title: list.title.clone(),
            hash: list.hash.clone(),
            items: items.collect(),
            last_result: state.last_result.clone(),
            problem: state.problem.clone(),
        })
    }

    /// Differs from what it was where consoles have to be told.
    pub(crate) fn version(&self) -> u64 {
        self.inner.as_ref().map_or(0, |inner| lock(&inner.state).version)
    }

    /// The required items that are not ticked and stand before a command for these aircraft (id and name), as text; empty if there
    /// are none.
    pub(crate) fn missing(&self, command: Command, aircraft: &[(String, String)]) -> String {
        let Some(Inner { list, state, .. }) = &self.inner else { return String::new() };
        let is_asked = |item: &&ChecklistItem| match (command, item.before) {
            (Command::Setup, ChecklistStep::Setup) | (Command::Start, _) => item.required,
            // No other command waits for a checklist.
            _ => false,
        };
        let state = lock(state);
        let mut missing = Vec::new();
        for item in list.items.iter().filter(is_asked) {
            let ticks = state.ticks.get(&item.id);
            let has = |vehicle: &str| ticks.is_some_and(|ticks| ticks.contains_key(vehicle));
            match item.per {
                ChecklistScope::Fleet if has("") => {}
                ChecklistScope::Fleet => missing.push(item.id.clone()),
                ChecklistScope::Aircraft => {
                    let without: Vec<&str> =
                        aircraft.iter().filter(|(id, _)| !has(id)).map(|(_, name)| name.as_str()).collect();
                    if let Some(more) = without.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
                        let named = without[..NAMED_MAX].join(", ");
                        missing.push(format!("{} ({named} and {more} more)", item.id));
                    } else if !without.is_empty() {
                        missing.push(format!("{} ({})", item.id, without.join(", ")));
                    }
                }
            }
        }
        match missing.len() {
            0 => String::new(),
            count => format!("checklist: {count} not ticked: {}", missing.join(", ")),
        }
    }

    /// An item is ticked, or no longer.
    pub(crate) async fn write(
        &self,
        write: &TickWrite,
        by: &str,
        fleet: &FleetPicture,
    ) -> Result<(), Refused> {
        let Inner { list, state, disk, .. } = self.inner()?;
        if write.hash != list.hash {
            let found: String = write.hash.chars().filter(char::is_ascii_alphanumeric).take(64).collect();
            return Err(Refused::conflict(format!(
                "hash: found {found:?}, expected {}: the checklist is another now",
                list.hash
            )));
        }
        let Some(item) = list.position(&write.item).and_then(|place| list.items.get(place)) else {
            let found: String = write.item.chars().take(32).flat_map(char::escape_debug).collect();
            let cure = list.nearest(&write.item).map_or(String::new(), |id| format!(" (did you mean {id}?)"));
            return Err(Refused::not_found(format!(
                "item: found \"{found}\", expected one of the checklist{cure}"
            )));
        };
        let vehicles = self.vehicles(item, write, fleet)?;
        let kept = {
            let mut state = lock(state);
            let ticks = state.ticks.entry(item.id.clone()).or_default();
            for vehicle in vehicles {
                match write.ticked {
                    // Who ticked it first has checked it.
                    true => drop(
                        ticks
                            .entry(vehicle)
                            .or_insert_with(|| Ticked { by: by.to_owned(), unix_ms: unix_ms() }),
                    ),
                    false => drop(ticks.remove(&vehicle)),
                }
            }
            state.version += 1;
            disk.keep(Kept::Ticks(Box::new(state.clone())), &mut state)
        };
        kept.done().await;
        Ok(())
    }

    /// The aircraft that a tick is for; an empty id for the fleet.
    fn vehicles(
        &self,
        item: &ChecklistItem,
        write: &TickWrite,
        fleet: &FleetPicture,
    ) -> Result<BTreeSet<String>, Refused> {
        let known: BTreeMap<&str, &AircraftStatus> = fleet
            .aircraft
            .iter()
            .filter_map(|one| one.status.as_ref())
            .map(|status| (status.id.as_str(), status))
            .collect();
        let holder = |status: &AircraftStatus| {
            status.lease.as_ref().map(|lease| lease.console.clone()).filter(|name| *name != self.console)
        };
        let found = write.vehicles.len();
        if item.per == ChecklistScope::Fleet {
            if found > 0 {
                let id = &item.id;
                return Err(Refused::bad_request(format!(
                    "vehicles: found {found}, expected none: {id} is ticked once for the fleet"
                )));
            }
            // Another console has them all, and its own list with them.
            let others: Vec<Option<String>> = known.values().map(|status| holder(status)).collect();
            if let (Some(Some(name)), true) = (others.first(), others.iter().all(Option::is_some)) {
                return Err(another(name));
            }
            return Ok(BTreeSet::from([String::new()]));
        }
        if found == 0 {
            return Err(Refused::bad_request(format!(
                "vehicles: found none, expected the aircraft that {} is ticked for",
                item.id
            )));
        }
        let mut vehicles = BTreeSet::new();
        for vehicle in &write.vehicles {
            let shown: String = vehicle.chars().take(32).flat_map(char::escape_debug).collect();
            let Some(status) = known.get(vehicle.as_str()) else {
                return Err(Refused::not_found(format!(
                    "vehicles: no aircraft with the id \"{shown}\" is known"
                )));
            };
            if let Some(name) = holder(status) {
                return Err(another(&name));
            }
            if !vehicles.insert(vehicle.clone()) {
                return Err(Refused::bad_request(format!(
                    "vehicles: found \"{shown}\" twice, expected each once"
                )));
            }
        }
        Ok(vehicles)
    }

    /// No item is ticked any more.
    pub(crate) async fn begin_anew(&self) -> Result<(), Refused> {
        let Inner { state, disk, .. } = self.inner()?;
        let kept = {
            let mut state = lock(state);
            state.ticks.clear();
            state.version += 1;
            disk.keep(Kept::Ticks(Box::new(state.clone())), &mut state)
        };
        kept.done().await;
        Ok(())
    }

    /// A status arrived: whether the aircraft's flight is over, and its ticks with it.
    pub(crate) fn observe(&self, status: &AircraftStatus) -> bool {
        let Some(Inner { list, state, disk, .. }) = &self.inner else { return false };
        if status.flight_controller.link != LinkState::Up {
            return false;
        }
        let height_m = status.navigation.as_ref().map_or(0.0, |navigation| navigation.height_m);
        let is_under_way = matches!(status.phase, Phase::Waiting | Phase::Moving | Phase::Ending);
        let is_armed = status.flight_controller.armed;
        let mut state = lock(state);
        if is_armed && (is_under_way || height_m > FLYING_HEIGHT_M) {
            if state.flying.insert(status.id.clone()) {
                disk.keep(Kept::Ticks(Box::new(state.clone())), &mut state);
            }
            return false;
        }
        if is_armed || !state.flying.remove(&status.id) {
            return false;
        }
        state.setup.remove(&status.id);
        let is_last = state.flying.is_empty();
        for item in &list.items {
            let Some(ticks) = state.ticks.get_mut(&item.id) else { continue };
            match item.per {
                ChecklistScope::Aircraft => drop(ticks.remove(&status.id)),
                ChecklistScope::Fleet if is_last => ticks.clear(),
                // Others fly still, by the same ticks.
                ChecklistScope::Fleet => {}
            }
        }
        state.version += 1;
        disk.keep(Kept::Ticks(Box::new(state.clone())), &mut state);
        true
    }

    /// *Setup* or *Start* was accepted: the first is remembered, with the second a file is written.
    pub(crate) fn accepted(&self, accepted: Accepted<'_>) {
        let Some(Inner { list, state, disk, .. }) = &self.inner else { return };
        let Accepted { command, id, by, aircraft } = accepted;
        let mut state = lock(state);
        if command == Command::Setup {
            state.setup.extend(aircraft.into_iter().map(|one| (one.id.clone(), one)));
            disk.keep(Kept::Ticks(Box::new(state.clone())), &mut state);
            return;
        }
        let is_started = |vehicle: &str| vehicle.is_empty() || aircraft.iter().any(|one| one.id == vehicle);
        let items = list.items.iter().map(|item| {
            let ticks = state.ticks.get(&item.id).into_iter().flatten();
            let ticks = ticks.filter(|(vehicle, _)| is_started(vehicle)).map(|(vehicle, tick)| KeptTick {
                vehicle: (!vehicle.is_empty()).then(|| vehicle.clone()),
                by: tick.by.clone(),
                time: utc(tick.unix_ms),
            });
            CheckedItem {
                id: item.id.clone(),
                text: item.text.clone(),
                required: item.required,
                per: item.per,
                ticks: ticks.collect(),
            }
        });
        let result = ChecklistResult {
            format: CHECKLIST_RESULT_FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            console: self.console.clone(),
            time: utc(unix_ms()),
            command: id.to_owned(),
            by: by.to_owned(),
            title: list.title.clone(),
            hash: list.hash.clone(),
            items: items.collect(),
            setup: aircraft.iter().filter_map(|one| state.setup.get(&one.id)).cloned().collect(),
            start: aircraft,
        };
        disk.keep(Kept::Result(Box::new(result)), &mut state);
    }

    /// The files of flights, the newest first.
    pub(crate) fn results(&self) -> Result<wingbeat_api::ChecklistResults, Refused> {
        let Inner { folder, .. } = self.inner()?;
        let folder_name = folder.display().to_string();
        let results =
            disk::results(folder).map_err(|error| Refused::unavailable(format!("{folder_name}: {error}")))?;
        Ok(wingbeat_api::ChecklistResults { folder: folder_name, results })
    }

    /// One of them.
    pub(crate) fn result(&self, name: &str) -> Result<Vec<u8>, Refused> {
        let Inner { folder, .. } = self.inner()?;
        if !is_result(name) {
            let found: String = name.chars().take(64).flat_map(char::escape_debug).collect();
            return Err(Refused::bad_request(format!(
                "file: found \"{found}\", expected the name of a result, as they are listed"
            )));
        }
        disk::read_result(&folder.join(name)).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Refused::not_found(format!("file: found no {name}, expected one of the list"))
            }
            _ => Refused::unavailable(format!("{name}: {error}")),
        })
    }

    /// Those that were written within so many hours, for a bundle; none where there is no checklist.
    pub(crate) fn of_last(&self, hours: u32) -> Vec<(String, Vec<u8>)> {
        let Ok(found) = self.results() else { return vec![] };
        let recent = found.results.into_iter().filter(|file| file.age_s <= u64::from(hours) * 3600);
        recent.filter_map(|file| Some((file.name.clone(), self.result(&file.name).ok()?))).collect()
    }

    /// Waits until everything is on the disk.
    pub(crate) async fn flush(&self) {
        if let Some(inner) = &self.inner {
            inner.disk.flush().await;
        }
    }
}

/// An answer waits for the disk no longer than this.
const KEPT_WITHIN: Duration = Duration::from_secs(5);

/// A service without a checklist.
pub(crate) fn none() -> Refused {
    Refused::not_found("found no checklist, expected one (wingbeat ground --checklist)".to_owned())
}

fn another(console: &str) -> Refused {
    let console: String = console.chars().take(64).flat_map(char::escape_debug).collect();
    Refused::conflict(format!("found the console \"{console}\" in charge, expected this one: tick it there"))
}

#[cfg(test)]
mod tests;
