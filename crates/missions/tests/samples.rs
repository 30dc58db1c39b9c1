//! The sample missions under `deploy/missions/` are as their README describes them.

use std::path::{Path, PathBuf};

use wingbeat_geo::{Frame, Position};
use wingbeat_missions::{Altitude, Datum, Item, Limits, Mission, read};

fn sample(name: &str) -> Mission {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../deploy/missions", name].iter().collect();
    let mut missions = read(&path, &Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(missions.len(), 1, "{name}");
    missions.remove(0)
}

/// The waypoints in metres east and north of the samples' common home.
fn points_m(mission: &Mission) -> Vec<(f64, f64)> {
    let frame = Frame::new(Position::from_degrees(39.482594, -0.346265, 5.0).unwrap());
    mission
        .waypoints()
        .map(|(position, altitude, _)| {
            let local = frame.to_local(position.at(altitude, 5_000));
            assert!((20.0..=30.0).contains(&local.z), "{}: {} m high", mission.name, local.z);
            assert!(local.truncate().length() < 1_000.0, "{}: {local}", mission.name);
            (local.x, local.y)
        })
        .collect()
}

fn legs_m(points_m: &[(f64, f64)]) -> Vec<f64> {
    points_m.windows(2).map(|w| (w[1].0 - w[0].0).hypot(w[1].1 - w[0].1)).collect()
}

fn home(value_mm: i32) -> Altitude {
    Altitude { value_mm, datum: Datum::Home }
}

#[test]
fn survey_has_fourteen_waypoints_in_lanes_of_120_m() {
    let mission = sample("survey.plan");
    assert_eq!(mission.name, "survey");
    assert_eq!(mission.speed_m_s, Some(10.0));
    assert_eq!(mission.planned_home, Some(Position::from_degrees(39.482594, -0.346265, 5.0).unwrap()));
    assert!(mission.notes.is_empty(), "{:?}", mission.notes);
    let points_m = points_m(&mission);
    assert_eq!(points_m.len(), 14);
    for (index, leg_m) in legs_m(&points_m).into_iter().enumerate() {
        let expected_m = if index % 2 == 0 { 120.0 } else { 25.0 };
        assert!((leg_m - expected_m).abs() < 0.1, "leg {index}: {leg_m} m");
    }
    assert_eq!(mission.items.len(), 16);
    assert_eq!(mission.items[0], Item::TakeOff { altitude: home(25_000) });
    let (last, ..) = mission.waypoints().last().unwrap();
    assert_eq!(mission.items[15], Item::Land { position: Some(last) });
}

#[test]
fn corridor_has_eight_waypoints() {
    let mission = sample("corridor.kml");
    assert_eq!(mission.name, "corridor");
    let points_m = points_m(&mission);
    assert_eq!(points_m.len(), 8);
    let length_m: f64 = legs_m(&points_m).iter().sum();
    assert!((length_m - 750.0).abs() < 1.0, "{length_m}");
    assert_eq!(mission.items[0], Item::TakeOff { altitude: home(30_000) });
}

#[test]
fn square_closes_and_returns() {
    let mission = sample("square.waypoints");
    assert_eq!(mission.name, "square");
    let points_m = points_m(&mission);
    assert_eq!(points_m.len(), 5);
    assert_eq!(points_m[0], points_m[4]);
    assert!(legs_m(&points_m).iter().all(|leg_m| (leg_m - 150.0).abs() < 0.1));
    assert_eq!(mission.items[0], Item::TakeOff { altitude: home(20_000) });
    assert_eq!(mission.items.last(), Some(&Item::ReturnToLaunch));
}

#[test]
fn the_content_gives_the_format_of_a_name_without_extension() {
    for name in ["survey.plan", "corridor.kml", "square.waypoints"] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/missions").join(name);
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("mission");
        std::fs::copy(source, &copy).unwrap();
        let read = read(&copy, &Limits::default()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read[0].items, sample(name).items);
    }
}
