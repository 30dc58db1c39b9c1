//! What is read from the richer corners of the formats.

use std::path::Path;

use wingbeat_geo::Position;
use wingbeat_missions::{Altitude, Datum, Item, LatLon, Limits, Mission, Note, parse};

fn parsed(name: &str, text: &str, limits: &Limits) -> Vec<Mission> {
    parse(Path::new(name), text.as_bytes(), limits).unwrap_or_else(|error| panic!("{error}"))
}

/// A plan with these items, a fence and a rally point.
fn plan(items: &str) -> String {
    format!(
        r#"{{"fileType": "Plan", "version": 1, "groundStation": "QGroundControl",
        "geoFence": {{"version": 2, "circles": [{{"circle": {{}}}}], "polygons": [{{}}, {{}}]}},
        "rallyPoints": {{"version": 2, "points": [[39.48, -0.34, 30]]}},
        "mission": {{"version": 2, "plannedHomePosition": [39.4825, -0.3462, 50.5], "items": [{items}]}}}}"#
    )
}

const TAKE_OFF: &str =
    r#"{"type": "SimpleItem", "command": 22, "frame": 3, "params": [15, 0, 0, null, null, null, 30]}"#;
const SURVEY: &str = r#"{"type": "ComplexItem", "complexItemType": "survey", "version": 5, "polygon": [],
    "TransectStyleComplexItem": {"version": 2, "Items": [
        {"type": "SimpleItem", "command": 16, "frame": 3, "params": [1.5, 0, 0, null, 39.483, -0.3461, 40]},
        {"type": "SimpleItem", "command": 206, "frame": 2, "params": [25, 0, 1, 0, 0, 0, 0]},
        {"type": "SimpleItem", "command": 16, "frame": 0, "params": [0, 0, 0, null, 39.484, -0.3461, 100]}]}}"#;
const RETURN: &str = r#"{"type": "SimpleItem", "command": 20, "frame": 2, "params": [0, 0, 0, 0, 0, 0, 0]}"#;

#[test]
fn a_survey_flies_the_items_inside_and_reports_what_it_leaves_out() {
    let text = plan(&[TAKE_OFF, SURVEY, RETURN].join(","));
    let error = parse(Path::new("a.plan"), text.as_bytes(), &Limits::default()).unwrap_err();
    assert!(
        error.to_string().starts_with(
            "a.plan, mission.items[1].TransectStyleComplexItem.Items[1].command: found command 206 \
             (MAV_CMD_DO_SET_CAM_TRIGG_DIST), expected one of 16 "
        ),
        "{error}"
    );
    let limits = Limits { leave_out_payload: true, ..Limits::default() };
    let mission = parsed("a.plan", &text, &limits).remove(0);
    let position = |latitude_e7| LatLon { latitude_e7, longitude_e7: -3_461_000 };
    let (home, sea_level) = (Datum::Home, Datum::SeaLevel);
    assert_eq!(
        mission.items,
        [
            Item::TakeOff { altitude: Altitude { value_mm: 30_000, datum: home } },
            Item::Waypoint {
                position: position(394_830_000),
                altitude: Altitude { value_mm: 40_000, datum: home },
                hold_s: 1.5
            },
            Item::Waypoint {
                position: position(394_840_000),
                altitude: Altitude { value_mm: 100_000, datum: sea_level },
                hold_s: 0.0
            },
            Item::ReturnToLaunch,
        ]
    );
    assert_eq!(
        mission.notes,
        [
            Note::PayloadLeftOut { commands: 1 },
            Note::AltitudeAboveSeaLevel { waypoints: 1, home_altitude_m: 50.5 },
            Note::FenceNotUsed { shapes: 3 },
            Note::RallyPointsNotUsed { points: 1 },
        ]
    );
    // 100 m above the sea over a home at 50.5 m.
    let (_, altitude, _) = mission.waypoints().last().unwrap();
    assert_eq!(altitude.above_home_mm(mission.planned_home.unwrap().altitude_mm), 49_500);
}

/// Commands that move the aircraft are never left out.
#[test]
fn leaving_out_payload_leaves_out_nothing_else() {
    let limits = Limits { leave_out_payload: true, ..Limits::default() };
    for command in [17, 82, 112, 177, 179, 207, 208] {
        let text = plan(&SURVEY.replace("206", &command.to_string()));
        assert!(parse(Path::new("a.plan"), text.as_bytes(), &limits).is_err(), "{command}");
    }
}

#[test]
fn kml_paths_are_missions_of_their_own() {
    let line = |mode: &str, points: &str| {
        format!(
            "<LineString><altitudeMode>{mode}</altitudeMode><coordinates>{points}</coordinates></LineString>"
        )
    };
    let text = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE kml><k:kml xmlns:k=\"http://www.opengis.net/kml/2.2\"><Document>\
         <Folder><name>folder</name><Placemark><name>A &amp; &#66;</name><Style/>{}</Placemark></Folder>\
         <Placemark><MultiGeometry>{}{}</MultiGeometry><name><![CDATA[two]]></name></Placemark>\
         <Placemark><Point><coordinates/></Point></Placemark>{}</Document></k:kml>",
        line("relativeToGround", "-0.34,39.48,2 <!-- low -->\n-0.34,39.481,20"),
        line("clampToGround", "-0.34,39.48,77 -0.34,39.481"),
        line("absolute", "-0.34,39.48,60 -0.34,39.481,60.5"),
        line("relativeToGround", "-0.34,39.48,20 -0.34,39.481,20")
            .replace("relativeToGround", " relativeToGround\n"),
    );
    let home = Position::from_degrees(39.48, -0.34, 40.0).unwrap();
    let limits = Limits { home: Some(home), ..Limits::default() };
    let missions = parsed("paths.kml", &text, &limits);
    let names: Vec<&str> = missions.iter().map(|mission| mission.name.as_str()).collect();
    assert_eq!(names, ["A & B", "two", "two", "paths-4"]);
    let heights_mm = |mission: &Mission| -> Vec<(i32, Datum)> {
        mission.waypoints().map(|(_, altitude, _)| (altitude.value_mm, altitude.datum)).collect()
    };
    let (above_home, above_sea) = (Datum::Home, Datum::SeaLevel);
    assert_eq!(heights_mm(&missions[0]), [(5_000, above_home), (20_000, above_home)]);
    let shape = Note::ShapesNotUsed { shapes: 1 };
    assert_eq!(missions[0].notes, [Note::AltitudeRaised { points: 1, altitude_m: 5.0 }, shape]);
    assert_eq!(heights_mm(&missions[1]), [(5_000, above_home); 2]);
    assert_eq!(missions[1].notes, [Note::AltitudeFromLimits { altitude_m: 5.0 }, shape]);
    assert_eq!(heights_mm(&missions[2]), [(60_000, above_sea), (60_500, above_sea)]);
    let above_sea_level = Note::AltitudeAboveSeaLevel { waypoints: 2, home_altitude_m: 40.0 };
    assert_eq!(missions[2].notes, [above_sea_level, shape]);
    assert_eq!(missions[3].notes, [shape]);
    for mission in &missions {
        let (_, altitude, _) = mission.waypoints().next().unwrap();
        assert_eq!(mission.items[0], Item::TakeOff { altitude });
    }
}

#[test]
fn speed_changes_and_holds_are_kept_in_order() {
    let text = "QGC WPL 110\n0 1 0 16 0 0 0 0 0 0 0 1\n1 0 3 178 1 7.5 -1 0 0 0 0 1\n\
                2 0 6 22 0 0 0 0 0 0 20 1\n3 0 6 16 12 2 0 90 39.48 -0.34 20 1\n4 0 3 21 0 0 0 0 0 0 0 1\n";
    let mission = parsed("a.txt", text, &Limits::default()).remove(0);
    let altitude = Altitude { value_mm: 20_000, datum: Datum::Home };
    let position = LatLon { latitude_e7: 394_800_000, longitude_e7: -3_400_000 };
    assert_eq!(mission.planned_home, None);
    assert_eq!(
        mission.items,
        [
            Item::ChangeSpeed { speed_m_s: 7.5 },
            Item::TakeOff { altitude },
            Item::Waypoint { position, altitude, hold_s: 12.0 },
            Item::Land { position: None },
        ]
    );
    assert_eq!(mission.notes, [Note::ParametersNotUsed { items: 1 }], "acceptance radius and yaw");
}

#[test]
fn parameters_that_arducopter_does_not_use_are_counted() {
    let used = [
        "22 15 0 0 0 0 0 20 1",
        "178 1 5 -1 0 0 0 0 1",
        "16 9 0 0 0 39.48 -0.34 20 1",
        "21 0 0 0 0 39.48 -0.34 0 1",
    ];
    let returns = [used[0], used[1], used[2], "20 0 0 0 0 0 0 0 1"];
    assert_eq!((waypoints_notes(HOME, &used), waypoints_notes(HOME, &returns)), (vec![], vec![]));
    for (at, unused) in [
        (0, "22 15 0 0 90 0 0 20 1"),
        (0, "22 15 2 0 0 0 0 20 1"),
        (1, "178 1 5 50 0 0 0 0 1"),
        (1, "178 1 5 -1 1 0 0 0 1"),
        (1, "178 1 5 -1 0 0 0 20 1"),
        (2, "16 0 2 0 0 39.48 -0.34 20 1"),
        (2, "16 0 0 3 0 39.48 -0.34 20 1"),
        (2, "16 0 0 0 -90 39.48 -0.34 20 1"),
        (3, "21 0 1 0 0 39.48 -0.34 0 1"),
        (3, "21 20 0 0 0 39.48 -0.34 0 1"),
        (3, "21 0 0 0 0 39.48 -0.34 15 1"),
        (3, "20 0 0 0 0 0 0 15 1"),
    ] {
        let mut items = used;
        items[at] = unused;
        assert_eq!(waypoints_notes(HOME, &items), [Note::ParametersNotUsed { items: 1 }], "{unused}");
    }
}

#[test]
fn no_item_of_any_kind_waits_for_a_command() {
    let items = ["22 0 0 0 0 0 0 20 0", "178 1 5 -1 0 0 0 0 0", "16 0 0 0 0 39.48 -0.34 20 0"];
    for end in ["21 0 0 0 0 0 0 0 0", "20 0 0 0 0 0 0 0 0"] {
        let items = [&items[..], &[end]].concat();
        assert_eq!(waypoints_notes(HOME, &items), [Note::StopsNotFlown { items: 4 }], "{end}");
    }
}

#[test]
fn a_take_off_that_is_not_at_home_is_noted() {
    let notes = |home, position: &str| {
        let take_off = format!("22 0 0 0 0 {position} 20 1");
        waypoints_notes(home, &[&take_off, "16 0 0 0 0 39.48 -0.34 20 1"])
    };
    assert_eq!(notes(HOME, "39.48 -0.34"), []);
    assert_eq!(notes(HOME, "39.48008 -0.34"), [], "9 m");
    let [Note::TakeOffElsewhere { from_home_m: Some(from_home_m) }] = notes(HOME, "39.516 -0.34")[..] else {
        panic!("a note with a distance")
    };
    assert!((from_home_m - 3_997.0).abs() < 5.0, "{from_home_m}");
    let unknown = "16 0 0 0 0 0 0 0 1";
    assert_eq!(notes(unknown, "39.48 -0.34"), [Note::TakeOffElsewhere { from_home_m: None }]);
    assert_eq!(notes(unknown, "0 0"), []);
}

#[test]
fn a_yaw_of_0_is_north_in_a_plan_only() {
    let notes = |yaw: &str| {
        let waypoint = format!(
            r#"{{"type": "SimpleItem", "command": 16, "frame": 3, "params": [0, 0, 0, {yaw}, 39.483, -0.346, 40]}}"#
        );
        let notes = parsed("a.plan", &plan(&waypoint), &Limits::default()).remove(0).notes;
        notes.into_iter().filter(|note| matches!(note, Note::ParametersNotUsed { .. })).collect::<Vec<_>>()
    };
    assert_eq!(notes("null"), []);
    assert_eq!(notes("0"), [Note::ParametersNotUsed { items: 1 }]);
    assert_eq!(waypoints_notes(HOME, &["16 0 0 0 0 39.48 -0.34 20 1"]), []);
}

/// Item 0, from its command on.
const HOME: &str = "16 0 0 0 0 39.48 -0.34 5 1";

/// The notes of a QGC WPL file with these items above home, from their commands on.
fn waypoints_notes(home: &str, items: &[&str]) -> Vec<Note> {
    let rows: String = items.iter().zip(1..).map(|(item, n)| format!("{n} 0 3 {item}\n")).collect();
    let text = format!("QGC WPL 110\n0 1 0 {home}\n{rows}");
    parsed("a.txt", &text, &Limits::default()).remove(0).notes
}
