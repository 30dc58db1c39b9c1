//! Parameters of many aircraft: read, compared with each other and with what the lab wants, and set.
//!
//! What an aircraft holds is asked of it whenever it is compared; its list travels again only when its revision is another.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use futures_util::stream::{self, StreamExt as _};
use reqwest::Client;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use wingbeat_api::{
    ComparedVehicle, FleetParameters, ParameterComparison, ParameterFile, ParameterProgress,
    ParameterReference, ParameterRow, ParameterTable, VehicleParameterProgress, paths,
};

use crate::client::{self, Method};
use crate::links::Party;
use crate::param_file::{self, is_same};

/// Aircraft that are asked at the same time.
const AT_ONCE: usize = 32;

/// The lists that aircraft sent, by id.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    lists: Mutex<BTreeMap<String, BTreeMap<String, f32>>>,
    revisions: Mutex<BTreeMap<String, u64>>,
}

/// An aircraft to ask, and what it is called.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) party: Party,
    pub(crate) name: String,
    pub(crate) client: Client,
}

/// What an aircraft answers.
type Answer = Result<ParameterProgress, String>;

/// Asks one aircraft.
pub(crate) async fn ask<T: Serialize, U: DeserializeOwned>(
    asked: &Asked,
    method: Method,
    path: &str,
    body: Option<&T>,
) -> Result<U, String> {
    let Party { address, token, .. } = &asked.party;
    let (status, body) = client::ask(&asked.client, method, address, path, body, token.clone()).await?;
    if !status.is_success() {
        return Err(client::sentence(status, &body));
    }
    serde_json::from_slice(&body).map_err(|error| format!("{path} is not what was expected: {error}"))
}

fn fleet(answers: Vec<(Asked, Answer)>) -> FleetParameters {
    let of = |(asked, answer): (Asked, Answer)| {
        let (progress, problem) = match answer {
            Ok(progress) => (Some(progress), None),
            Err(problem) => (None, Some(problem)),
        };
        VehicleParameterProgress { id: asked.party.id, progress, problem }
    };
    FleetParameters { vehicles: answers.into_iter().map(of).collect() }
}

/// How far each has come.
pub(crate) async fn progress(all: Vec<Asked>) -> FleetParameters {
    fleet(
        each(all, |asked| async move {
            let answer = ask(&asked, Method::GET, paths::PARAMETERS_WORK, None::<&()>).await;
            (asked, answer)
        })
        .await,
    )
}

/// Each reads its list anew.
pub(crate) async fn read(all: Vec<Asked>) -> FleetParameters {
    fleet(
        each(all, |asked| async move {
            let answer = ask(&asked, Method::POST, paths::PARAMETERS_WORK, None::<&()>).await;
            (asked, answer)
        })
        .await,
    )
}

/// Each sets its own.
pub(crate) async fn write(all: Vec<(Asked, wingbeat_api::ParameterWrite)>) -> FleetParameters {
    fleet(
        each(all, |(asked, write)| async move {
            let answer = ask(&asked, Method::PUT, paths::PARAMETERS, Some(&write)).await;
            (asked, answer)
        })
        .await,
    )
}

/// All of them, some at a time.
pub(crate) async fn each<T, U, F: Future<Output = U>>(all: Vec<T>, act: impl Fn(T) -> F) -> Vec<U> {
    stream::iter(all).map(act).buffered(AT_ONCE).collect().await
}

/// What is known of one aircraft.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) progress: Answer,
    pub(crate) list: BTreeMap<String, f32>,
}

impl Desk {
    /// What each aircraft holds now, as far as it has read it.
    pub(crate) async fn known(&self, all: Vec<Asked>) -> Vec<Known> {
        each(all, |asked| self.of_one(asked)).await
    }

    async fn of_one(&self, asked: Asked) -> Known {
        let Asked { party: Party { id, address, .. }, name, client } = &asked;
        let mut answer: Answer = ask(&asked, Method::GET, paths::PARAMETERS_WORK, None::<&()>).await;
        let kept = self.revisions.lock().await.get(id).copied();
        if let Ok(progress) = &answer
            && (kept != Some(progress.revision) || progress.age_ms.is_none())
        {
            match client::get::<ParameterTable>(client, address, paths::PARAMETERS).await {
                Ok(ParameterTable { progress, parameters }) => {
                    let list = parameters.into_iter().map(|one| (one.name, one.value)).collect();
                    self.lists.lock().await.insert(id.clone(), list);
                    self.revisions.lock().await.insert(id.clone(), progress.revision);
                    answer = Ok(progress);
                }
                Err(problem) => answer = Err(problem),
            }
        }
        let list = self.lists.lock().await.get(id).cloned().unwrap_or_default();
        Known { id: id.clone(), name: name.clone(), progress: answer, list }
    }
}

/// What aircraft should hold: files in the order in which they count, the last first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    files: Vec<String>,
    problems: Vec<String>,
    profile: BTreeMap<String, f32>,
    of: BTreeMap<String, BTreeMap<String, f32>>,
}

impl Wanted {
    fn add(&mut self, vehicle: Option<&str>, file: &ParameterFile) {
        let read = param_file::read(&file.name, &file.text);
        self.files.push(file.name.clone());
        self.problems.extend(read.problems);
        match vehicle {
            None => self.profile.extend(read.values),
            Some(id) => self.of.entry(id.to_owned()).or_default().extend(read.values),
        }
    }

    /// What a console sent.
    pub(crate) fn sent(reference: &ParameterReference) -> Self {
        let mut wanted = Self::default();
        if let Some(profile) = &reference.profile {
            wanted.add(None, profile);
        }
        for overlay in &reference.overlays {
            wanted.add(Some(&overlay.vehicle), &overlay.file);
        }
        wanted
    }

    /// The service's own files: `fleet.param`, and `NAME.param` or `ID.param` of aircraft.
    pub(crate) fn of_folder(folder: &Path, aircraft: &[(String, String)]) -> Self {
        let mut wanted = Self::default();
        let mut add = |vehicle: Option<&str>, stem: &str| {
            // A name comes from an aircraft: it names no other folder.
            let is_plain = !stem.is_empty() && !stem.contains(['/', '\\', '\0']) && !stem.starts_with('.');
            let name = format!("{stem}.param");
            let path = folder.join(&name);
            if !is_plain || (vehicle.is_some() && !path.exists()) {
                return;
            }
            let is_short = |m: &std::fs::Metadata| m.is_file() && m.len() <= param_file::FILE_MAX as u64;
            let text = match std::fs::metadata(&path) {
                Ok(found) if !is_short(&found) => {
                    Err(format!("expected a file of at most {} bytes", param_file::FILE_MAX))
                }
                Ok(_) => std::fs::read(&path).map_err(|error| error.to_string()).and_then(|bytes| {
                    let text = wingbeat_missions::decode(&bytes);
                    text.map(|text| text.into_owned()).map_err(|line| {
                        format!("line {line}: found bytes that are no text, expected text in UTF-8, UTF-16 or Latin-1")
                    })
                }),
                Err(error) => Err(error.to_string()),
            };
            match text {
                Ok(text) => wanted.add(vehicle, &ParameterFile { name, text }),
                Err(why) => wanted.problems.push(format!("{name}: {why}")),
            }
        };
        add(None, "fleet");
        for (id, name) in aircraft {
            // Named like the profile it has an overlay under its id only.
            if name != "fleet" && name != id {
                add(Some(id), name);
            }
            add(Some(id), id);
        }
        wanted
    }

    fn value(&self, id: &str, name: &str) -> Option<f32> {
        self.of.get(id).and_then(|own| own.get(name)).or_else(|| self.profile.get(name)).copied()
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.profile.keys().chain(self.of.values().flat_map(BTreeMap::keys))
    }
}

/// What is an aircraft's own by its nature: its address, its calibration, its statistics.
const OWN: [&str; 25] = [
    "SYSID_THISMAV",
    "MAV_SYSID",
    "STAT_",
    "INS_ACC",
    "INS_GYR",
    "INS_TCAL",
    "INS_USE_TCAL",
    "COMPASS_OFS",
    "COMPASS_DIA",
    "COMPASS_ODI",
    "COMPASS_MOT",
    "COMPASS_DEV_ID",
    "COMPASS_SCALE",
    "COMPASS_DEC",
    "COMPASS_PRIO",
    "AHRS_TRIM",
    "BARO1_GND_PRESS",
    "BARO2_GND_PRESS",
    "GND_ABS_PRESS",
    "GND_TEMP",
    "BARO_ALT_OFFSET",
    "BARO1_DEVID",
    "BARO2_DEVID",
    "MIS_TOTAL",
    "SYS_NUM_RESETS",
];

fn is_own(name: &str) -> bool {
    OWN.iter().any(|own| name.starts_with(own))
}

/// Compares what is known with each other and with what is wanted.
pub(crate) fn compare(known: &[Known], wanted: &Wanted) -> ParameterComparison {
    let names: BTreeSet<&String> =
        known.iter().flat_map(|one| one.list.keys()).chain(wanted.names()).collect();
    let mut vehicles: Vec<ComparedVehicle> = known.iter().map(vehicle).collect();
    let mut rows = vec![];
    for name in names {
        let values: Vec<Option<f32>> = known.iter().map(|one| one.list.get(name).copied()).collect();
        let mut expected: Vec<Option<f32>> = known.iter().map(|one| wanted.value(&one.id, name)).collect();
        let mut drifts = false;
        for (i, (value, stated)) in values.iter().zip(&expected).enumerate() {
            let Some(stated) = stated else { continue };
            match value {
                Some(value) if is_same(*value, *stated) => {}
                Some(_) => {
                    vehicles[i].drifted += 1;
                    drifts = true;
                }
                // Of a list that is not complete nothing is missing.
                None if vehicles[i].age_ms.is_some() => {
                    vehicles[i].unknown.push(name.clone());
                    drifts = true;
                }
                None => {}
            }
        }
        // One that an aircraft of another version does not have differs too; of an incomplete list that is not known.
        let mut held =
            values.iter().zip(&vehicles).filter(|(_, v)| v.age_ms.is_some()).map(|(value, _)| value);
        let first = held.next();
        let is_other = |value: &Option<f32>| match (first, value) {
            (Some(Some(first)), Some(value)) => !is_same(*value, *first),
            (Some(first), value) => first.is_some() != value.is_some(),
            (None, _) => false,
        };
        let differs = held.any(is_other);
        let is_own = is_own(name) && expected.iter().all(Option::is_none);
        if drifts || differs {
            if expected.iter().all(Option::is_none) {
                expected.clear();
            }
            rows.push(ParameterRow { name: name.clone(), is_own, values, expected });
        }
    }
    ParameterComparison { vehicles, rows, files: wanted.files.clone(), problems: wanted.problems.clone() }
}

fn vehicle(known: &Known) -> ComparedVehicle {
    let (count, age_ms, problems) = match &known.progress {
        Ok(progress) => (progress.count, progress.age_ms, progress.problems.clone()),
        Err(problem) => (None, None, vec![problem.clone()]),
    };
    ComparedVehicle {
        id: known.id.clone(),
        name: known.name.clone(),
        known: u16::try_from(known.list.len()).unwrap_or(u16::MAX),
        count,
        age_ms,
        problems,
        drifted: 0,
        unknown: vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(id: &str, list: &[(&str, f32)], age_ms: Option<u64>) -> Known {
        let list = list.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let progress = ParameterProgress { age_ms, count: Some(3), ..Default::default() };
        Known { id: id.into(), name: format!("drone {id}"), progress: Ok(progress), list }
    }

    fn file(text: &str) -> ParameterFile {
        ParameterFile { name: "a.param".into(), text: text.into() }
    }

    #[test]
    fn only_what_differs_is_a_row_and_calibration_is_each_ones_own() {
        let same = ("RTL_ALT", 1_500.0);
        let all = [
            known("1", &[same, ("WPNAV_SPEED", 500.0), ("INS_ACCOFFS_X", 0.1)], Some(1)),
            known("2", &[same, ("WPNAV_SPEED", 800.0), ("INS_ACCOFFS_X", 0.2)], Some(1)),
            // Its list is not complete: nothing is missing of it.
            known("3", &[same], None),
        ];
        let found = compare(&all, &Wanted::default());
        let rows: Vec<_> = found.rows.iter().map(|row| (row.name.as_str(), row.is_own)).collect();
        assert_eq!(rows, [("INS_ACCOFFS_X", true), ("WPNAV_SPEED", false)]);
        assert_eq!(found.rows[1].values, [Some(500.0), Some(800.0), None]);
        assert!(found.rows[1].expected.is_empty());
    }

    #[test]
    fn drift_is_what_a_profile_and_the_overlay_over_it_state() {
        let all = [
            known("1", &[("RTL_ALT", 1_500.0), ("WPNAV_SPEED", 500.0)], Some(1)),
            known("2", &[("RTL_ALT", 2_000.0), ("WPNAV_SPEED", 500.0)], Some(1)),
        ];
        let overlay = wingbeat_api::ParameterOverlay { vehicle: "2".into(), file: file("RTL_ALT 2000") };
        let profile = Some(file("RTL_ALT 1500\nWPNAV_SPEED 800\nNO_SUCH 1\nbad"));
        let wanted = Wanted::sent(&ParameterReference { profile, overlays: vec![overlay] });
        let found = compare(&all, &wanted);
        let rows: Vec<_> = found.rows.iter().map(|row| (row.name.as_str(), row.expected.clone())).collect();
        assert_eq!(
            rows,
            [
                ("NO_SUCH", vec![Some(1.0), Some(1.0)]),
                // Not as each other, but as they should be.
                ("RTL_ALT", vec![Some(1_500.0), Some(2_000.0)]),
                ("WPNAV_SPEED", vec![Some(800.0), Some(800.0)]),
            ]
        );
        let vehicles: Vec<_> = found.vehicles.iter().map(|v| (v.drifted, v.unknown.clone())).collect();
        assert_eq!(vehicles, [(1, vec!["NO_SUCH".to_owned()]), (1, vec!["NO_SUCH".to_owned()])]);
        assert_eq!(found.problems.len(), 1, "{:?}", found.problems);
    }

    #[test]
    fn the_services_folder_holds_a_profile_and_overlays() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        write("fleet.param", "RTL_ALT 1500\n");
        write("two.param", "RTL_ALT 2000\n");
        write("00b827eb01020304.param", "RTL_ALT 2500\n");
        let aircraft = [("1", "one"), ("2", "two"), ("00b827eb01020304", "../../etc")]
            .map(|(i, n)| (i.into(), n.into()));
        let wanted = Wanted::of_folder(folder.path(), &aircraft);
        assert_eq!(wanted.problems, Vec::<String>::new());
        let values: Vec<_> = aircraft.iter().map(|(id, _)| wanted.value(id, "RTL_ALT")).collect();
        assert_eq!(values, [Some(1_500.0), Some(2_000.0), Some(2_500.0)]);
        let none = Wanted::of_folder(&folder.path().join("none"), &aircraft);
        assert!(none.problems[0].starts_with("fleet.param: "), "{:?}", none.problems);
    }
}
