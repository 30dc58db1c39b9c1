//! What comes as text: mission files, bodies of HTTP requests, plans of the bench, files of link tests.

use std::path::Path;
use std::sync::OnceLock;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wingbeat_api::{
    CommandRequest, FleetCommandRequest, FleetMissionUpload, LeaseRequest, LinkTestRequest, MissionFile,
    MissionUpload,
};
use wingbeat_bench::plan::Plan;
use wingbeat_geo::ROUTE_MAX;
use wingbeat_linktest::{Fit, Record, Report, Table};
use wingbeat_missions::Limits;

/// Mission files: the first byte says by which name.
pub fn missions(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else { return };
    let names = ["m.waypoints", "m.plan", "m.kml", "m.txt", "mission"];
    let path = Path::new(names[usize::from(kind) % names.len()]);
    let limits = Limits::default();
    match wingbeat_missions::parse(path, bytes, &limits) {
        Ok(missions) => {
            assert!(!missions.is_empty() && missions.len() <= limits.missions_max);
            for mission in &missions {
                for (place, _, speed) in mission.waypoints() {
                    assert!(
                        speed.is_finite() && place.latitude_e7.unsigned_abs() <= 900_000_000,
                        "{place:?}"
                    );
                }
            }
        }
        Err(error) => assert!(error.to_string().len() < 2_000, "a message is a line or two: {error}"),
    }
}

/// The same, but for the last place of a number: reading text into a double, serde_json errs by that much.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => a == b || (a - b).abs() <= a.abs() * 4.0 * f64::EPSILON,
            (a, b) => a == b,
        },
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        (a, b) => a == b,
    }
}

/// What is read is written, and read again the same.
fn comes_back<T: DeserializeOwned + Serialize + std::fmt::Debug>(bytes: &[u8]) -> Option<T> {
    let read: T = serde_json::from_slice(bytes).ok()?;
    let value = |read: &T| serde_json::to_value(read).unwrap_or_else(|e| panic!("{read:?}: {e}"));
    let written = value(&read).to_string();
    let again: T = serde_json::from_str(&written).unwrap_or_else(|e| panic!("{read:?}: {e}"));
    assert!(is_same(&value(&again), &value(&read)), "{again:?}, expected {read:?}");
    Some(read)
}

/// Bodies of the requests of both HTTP APIs: the first byte says of which.
pub fn bodies(data: &[u8]) {
    let Some((&kind, body)) = data.split_first() else { return };
    match kind % 7 {
        0 => drop(comes_back::<CommandRequest>(body)),
        1 => drop(comes_back::<LeaseRequest>(body)),
        2 => {
            if let Some(upload) = comes_back::<MissionUpload>(body) {
                for protocol in ["muscop", "mbcap", "mission", "sweep", "follow_me"] {
                    assert!(upload.notes(protocol).len() <= 8 * (ROUTE_MAX + 8) + upload.waypoints.len() * 8);
                }
            }
        }
        3 => drop(comes_back::<FleetCommandRequest>(body)),
        4 => drop(comes_back::<FleetMissionUpload>(body)),
        5 => drop(comes_back::<MissionFile>(body)),
        _ => drop(comes_back::<LinkTestRequest>(body)),
    }
}

/// Plans of the bench, as text; a file that one names is looked for in an empty folder.
pub fn plans(data: &[u8]) {
    static EMPTY: OnceLock<tempfile::TempDir> = OnceLock::new();
    let Ok(text) = std::str::from_utf8(data) else { return };
    let folder = EMPTY.get_or_init(|| tempfile::tempdir().unwrap_or_else(|e| panic!("a folder: {e}")));
    if let Err(error) = Plan::parse(text, folder.path()) {
        let message = format!("{error:#}");
        assert!(!message.is_empty() && message.len() < 20_000, "{message}");
    }
}

/// Files of link tests, and tables fitted to them: the first byte says which.
pub fn linktests(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if kind % 2 == 1 {
        if let Ok(table) = text.parse::<Table>() {
            assert!(table.rows().iter().all(|(m, share)| m.is_finite() && (0.0..=1.0).contains(share)));
        }
        return;
    }
    let Ok(record) = Record::from_csv(text) else { return };
    let report = Report::of(&record);
    let lost: u32 = report.bursts.iter().map(|burst| burst.length).sum();
    assert_eq!(report.received + lost, report.sent);
    assert!((0.0..=1.0).contains(&report.loss), "{report:?}");
    assert!(!report.to_string().is_empty());
    let fit = Fit::of([&record], 50.0);
    assert!(fit.bins.windows(2).all(|pair| pair[0].loss <= pair[1].loss), "{fit:?}");
    assert_eq!(fit.table().is_some(), !fit.bins.is_empty());
}
