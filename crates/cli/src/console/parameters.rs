//! The flight controllers' parameters: read, compared, exported, set.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Subcommand;
use serde_json::json;
use wingbeat_api::{
    ComparedVehicle, FleetParameterRead, FleetParameterWrite, FleetParameters, FleetPicture,
    ParameterComparison, ParameterFile, ParameterOverlay, ParameterReference, ParameterValue,
    VehicleParameters, paths,
};
use wingbeat_ground::remote::{Method, Remote};

use super::orders::{Targets, id_of};
use super::service::Service;
use super::{Code, show};

/// A larger file is refused before it travels, as on the page.
const FILE_LEN_MAX: u64 = 2 * 1024 * 1024;

/// What is done with parameters.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// How far the aircraft have come with reading and setting. Exit code 1 where one has a problem, refused a value, or was not read.
    Status {
        #[command(flatten)]
        service: Service,
    },
    /// Let aircraft read every parameter of their flight controllers, on the ground; it takes each up to 35 s.
    Read {
        #[command(flatten)]
        targets: Targets,
        #[command(flatten)]
        service: Service,
    },
    /// What was read, compared between the aircraft and with a profile. Exit code 1 where an aircraft differs from what it should hold.
    Compare {
        /// What all should hold: a .param file; without it the service's own.
        #[arg(long, value_name = "FILE")]
        profile: Option<PathBuf>,
        /// What one aircraft should hold instead.
        #[arg(long = "overlay", value_name = "AIRCRAFT=FILE")]
        overlays: Vec<String>,
        #[command(flatten)]
        service: Service,
    },
    /// Write what one aircraft has read as a .param file, which ground stations open and `compare` takes as a profile.
    Export {
        /// The aircraft, by its id or name.
        aircraft: String,
        /// The file that is written; one that is there is replaced.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        #[command(flatten)]
        service: Service,
    },
    /// Set parameters, on the ground; each is read back. The outcomes are those of `status`.
    Set {
        #[command(flatten)]
        targets: Targets,
        /// A parameter and its value, as often as needed.
        #[arg(long = "value", value_name = "NAME=VALUE", required = true, value_parser = value)]
        values: Vec<(String, f32)>,
        #[command(flatten)]
        service: Service,
    },
}

impl Command {
    pub(crate) fn service(&self) -> &Service {
        match self {
            Self::Status { service }
            | Self::Read { service, .. }
            | Self::Compare { service, .. }
            | Self::Export { service, .. }
            | Self::Set { service, .. } => service,
        }
    }
}

fn value(text: &str) -> Result<(String, f32), String> {
    let expected = || format!("found {text:?}, expected NAME=VALUE, for example FS_THR_ENABLE=1");
    let (name, value) = text.split_once('=').ok_or_else(expected)?;
    let value: f32 = value.trim().parse().map_err(|_| expected())?;
    if name.is_empty() || !value.is_finite() { Err(expected()) } else { Ok((name.to_owned(), value)) }
}

fn file(path: &Path) -> Result<ParameterFile> {
    let here = || path.display().to_string();
    let length = std::fs::metadata(path).with_context(here)?.len();
    anyhow::ensure!(
        length <= FILE_LEN_MAX,
        "{}: found {length} bytes, expected at most {FILE_LEN_MAX}",
        here()
    );
    Ok(ParameterFile { name: here(), text: super::text_of(path).with_context(here)? })
}

pub(crate) async fn run(remote: &Remote, command: &Command) -> Result<Code> {
    let json = command.service().json;
    match command {
        Command::Status { .. } => {
            let fleet: FleetParameters = remote.get(paths::FLEET_PARAMETERS).await?;
            let code = progress(json, &fleet, &remote.get(paths::FLEET).await?)?;
            Ok(if are_all_read(&fleet) { code } else { Code::NotAll })
        }
        Command::Read { targets, .. } => {
            let picture: FleetPicture = remote.get(paths::FLEET).await?;
            let read = FleetParameterRead { vehicles: targets.listed(&picture)? };
            let answer = remote.ask(Method::POST, paths::FLEET_PARAMETERS, Some(&read)).await?;
            progress(json, &answer.json()?, &picture)
        }
        Command::Set { targets, values, .. } => {
            let picture: FleetPicture = remote.get(paths::FLEET).await?;
            let parameters: Vec<_> = values
                .iter()
                .map(|(name, value)| ParameterValue { name: name.clone(), value: *value })
                .collect();
            let one = |vehicle| VehicleParameters { vehicle, parameters: parameters.clone() };
            let write =
                FleetParameterWrite { vehicles: targets.listed(&picture)?.into_iter().map(one).collect() };
            let answer = remote.ask(Method::PUT, paths::FLEET_PARAMETERS, Some(&write)).await?;
            progress(json, &answer.json()?, &picture)
        }
        Command::Export { aircraft, out, .. } => {
            let id = id_of(&remote.get(paths::FLEET).await?, aircraft)?;
            let path = format!("{}?vehicle={id}", paths::FLEET_PARAMETERS_FILE);
            let text = remote.ask(Method::GET, &path, None::<&()>).await?.text();
            std::fs::write(out, text).with_context(|| out.display().to_string())?;
            let written = json!({ "vehicle": id, "file": out });
            show::answer(json, &written, |_| format!("written: {}\n", out.display()))?;
            Ok(Code::Done)
        }
        Command::Compare { profile, overlays, .. } => {
            let picture: FleetPicture = remote.get(paths::FLEET).await?;
            let overlay = |text: &String| {
                let (aircraft, path) = text
                    .split_once('=')
                    .with_context(|| format!("--overlay: found {text:?}, expected AIRCRAFT=FILE"))?;
                Ok(ParameterOverlay { vehicle: id_of(&picture, aircraft)?, file: file(Path::new(path))? })
            };
            let reference = ParameterReference {
                profile: profile.as_deref().map(file).transpose()?,
                overlays: overlays.iter().map(overlay).collect::<Result<_>>()?,
            };
            let answer =
                remote.ask(Method::POST, paths::FLEET_PARAMETERS_COMPARISON, Some(&reference)).await?;
            let comparison: ParameterComparison = answer.json()?;
            show::answer(json, &comparison, compared)?;
            Ok(if is_as_expected(&comparison) { Code::Done } else { Code::NotAll })
        }
    }
}

/// Whether all parameters of the aircraft were read: what was not read agrees with nothing.
fn is_known(vehicle: &ComparedVehicle) -> bool {
    // The age is that of a complete list.
    vehicle.age_ms.is_some() && vehicle.count.is_some_and(|count| count > 0 && vehicle.known >= count)
}

/// Whether everything is known, and as expected.
fn is_as_expected(comparison: &ParameterComparison) -> bool {
    let is_fine = |vehicle: &ComparedVehicle| {
        is_known(vehicle) && vehicle.drifted == 0 && vehicle.unknown.is_empty() && vehicle.problems.is_empty()
    };
    comparison.problems.is_empty()
        && !comparison.vehicles.is_empty()
        && comparison.vehicles.iter().all(is_fine)
}

/// Whether the whole list of each aircraft was read.
fn are_all_read(fleet: &FleetParameters) -> bool {
    let is_read = |vehicle: &wingbeat_api::VehicleParameterProgress| {
        vehicle
            .progress
            .as_ref()
            .is_some_and(|p| p.count.is_some_and(|count| count > 0 && p.received >= count))
    };
    !fleet.vehicles.is_empty() && fleet.vehicles.iter().all(is_read)
}

/// A line for each aircraft, and for each value that it was given.
fn progress(json: bool, fleet: &FleetParameters, picture: &FleetPicture) -> Result<Code> {
    let mut is_all = true;
    let mut text = String::new();
    for vehicle in &fleet.vehicles {
        let name = show::name_of(picture, &vehicle.id);
        let mut problems: Vec<String> = vehicle.problem.iter().cloned().collect();
        let mut line = format!("{name}:");
        if let Some(progress) = &vehicle.progress {
            let work = serde_json::to_value(progress.work)?;
            let work = work
                .as_str()
                .filter(|work| *work != "none")
                .map_or(String::new(), |work| format!(" {work},"));
            let of = progress.count.map_or(String::new(), |count| format!(" of {count}"));
            line.push_str(&format!("{work} {}{of} parameters known", progress.received));
            problems.extend(progress.problems.iter().cloned());
        }
        text.push_str(&format!("{line}\n"));
        for outcome in vehicle.progress.iter().flat_map(|progress| &progress.outcomes) {
            let effect = serde_json::to_value(outcome.effect)?;
            let effect = effect.as_str().unwrap_or_default();
            is_all &= effect != "refused";
            let before = outcome.before.map_or(String::new(), |before| format!(", {before} before"));
            let why = if outcome.reason.is_empty() { String::new() } else { format!(": {}", outcome.reason) };
            text.push_str(&format!(
                "  {} = {}: {effect}{before}{}\n",
                outcome.name,
                outcome.value,
                show::plain(&why)
            ));
        }
        is_all &= problems.is_empty();
        problems.iter().for_each(|problem| text.push_str(&format!("  {}\n", show::plain(problem))));
    }
    show::answer(json, fleet, |_| text)?;
    Ok(if is_all { Code::Done } else { Code::NotAll })
}

/// What differs, a row for each name.
fn compared(comparison: &ParameterComparison) -> String {
    let mut head = vec!["parameter", "expected"];
    let names: Vec<String> = comparison.vehicles.iter().map(|vehicle| show::plain(&vehicle.name)).collect();
    head.extend(names.iter().map(String::as_str));
    let cell = |value: &Option<f32>| value.map_or("-".to_owned(), |value| value.to_string());
    let rows: Vec<Vec<String>> = comparison
        .rows
        .iter()
        .filter(|row| !row.is_own)
        .map(|row| {
            let mut expected: Vec<String> = row.expected.iter().flatten().map(f32::to_string).collect();
            expected.dedup();
            let expected = if expected.is_empty() { "-".to_owned() } else { expected.join(", ") };
            [row.name.clone(), expected].into_iter().chain(row.values.iter().map(cell)).collect()
        })
        .collect();
    let is_known_of_all = !comparison.vehicles.is_empty() && comparison.vehicles.iter().all(is_known);
    let mut text = match (rows.is_empty(), is_known_of_all) {
        (false, _) => show::table(&head, &rows),
        (true, true) => "nothing differs\n".to_owned(),
        (true, false) => "not known: nothing that was read differs\n".to_owned(),
    };
    if comparison.vehicles.is_empty() {
        text.push_str("no aircraft: nothing was compared\n");
    }
    for vehicle in &comparison.vehicles {
        if !is_known(vehicle) {
            let of = vehicle.count.map_or_else(|| "an unknown number".to_owned(), |count| count.to_string());
            text.push_str(&format!(
                "{}: not known: {} of {of} parameters read; read them: wingbeat fleet parameters read --all\n",
                show::plain(&vehicle.name),
                vehicle.known
            ));
        }
        let unknown = vehicle.unknown.iter().map(|name| format!("has no {name}"));
        for problem in vehicle.problems.iter().cloned().chain(unknown) {
            text.push_str(&format!("{}: {}\n", show::plain(&vehicle.name), show::plain(&problem)));
        }
    }
    comparison.problems.iter().for_each(|problem| text.push_str(&format!("{}\n", show::plain(problem))));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_api::ParameterRow;

    #[test]
    fn a_value_has_a_name_and_a_number() {
        assert_eq!(value("FS_THR_ENABLE=1"), Ok(("FS_THR_ENABLE".to_owned(), 1.0)));
        for bad in ["FS_THR_ENABLE", "=1", "A=", "A=fast", "A=nan"] {
            assert!(value(bad).is_err_and(|why| why.contains("expected NAME=VALUE")), "{bad}");
        }
    }

    #[test]
    fn what_differs_is_a_table_with_what_is_expected() {
        let vehicle = |name: &str, unknown: &[&str]| ComparedVehicle {
            id: name.to_owned(),
            name: name.to_owned(),
            known: 2,
            count: Some(2),
            age_ms: Some(1),
            problems: vec![],
            drifted: 1,
            unknown: unknown.iter().map(|name| (*name).to_owned()).collect(),
        };
        let row = |name: &str, is_own, values: [Option<f32>; 2]| ParameterRow {
            name: name.to_owned(),
            is_own,
            values: values.to_vec(),
            expected: vec![Some(1.0), Some(1.0)],
        };
        let comparison = ParameterComparison {
            vehicles: vec![vehicle("a", &["NO_SUCH"]), vehicle("b", &[])],
            rows: vec![
                row("FS_THR_ENABLE", false, [Some(1.0), Some(0.5)]),
                row("STAT_RUNTIME", true, [Some(7.0), None]),
            ],
            files: vec![],
            problems: vec![],
        };
        let text = compared(&comparison);
        let line = text.lines().find(|line| line.starts_with("FS_THR_ENABLE")).unwrap_or_default();
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["FS_THR_ENABLE", "1", "1", "0.5"]);
        assert!(text.contains("a: has no NO_SUCH") && !text.contains("STAT_RUNTIME"), "{text}");
        assert!(!text.contains("not known"), "{text}");
    }

    #[test]
    fn what_was_not_read_agrees_with_nothing() {
        let compare = |known, count| {
            let age_ms = (Some(known) == count).then_some(1);
            let vehicle =
                ComparedVehicle { name: "a".to_owned(), known, count, age_ms, ..ComparedVehicle::default() };
            ParameterComparison { vehicles: vec![vehicle], ..ParameterComparison::default() }
        };
        for (known, count) in [(0, None), (0, Some(0)), (156, Some(157))] {
            let comparison = compare(known, count);
            let text = compared(&comparison);
            assert!(text.starts_with("not known: nothing that was read differs\na: not known: "), "{text}");
            assert!(!is_as_expected(&comparison), "{known} of {count:?}");
        }
        assert_eq!(compared(&compare(157, Some(157))), "nothing differs\n");
        assert!(is_as_expected(&compare(157, Some(157))));
        let none = ParameterComparison::default();
        assert!(!is_as_expected(&none) && compared(&none).contains("no aircraft: nothing was compared"));
    }
}
