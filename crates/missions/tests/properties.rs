//! Whatever the bytes, reading does not panic, a refusal is one line, and a mission that is taken keeps
//! the promises of the crate; and what is written is read back the same.

use std::path::Path;

use proptest::{collection::vec, prelude::*, sample::Index};
use wingbeat_geo::{Frame, Position};
use wingbeat_missions::{
    Altitude, Datum, Item, LatLon, Limits, Mission, Note, check, parse, write_kml, write_plan,
    write_waypoints,
};

const SAMPLES: [(&str, &str); 3] = [
    ("a.waypoints", include_str!("../../../deploy/missions/square.waypoints")),
    ("a.plan", include_str!("../../../deploy/missions/survey.plan")),
    ("a.kml", include_str!("../../../deploy/missions/corridor.kml")),
];

/// Reads and checks the promises, measured apart from the code that made them.
fn read_any(name: &str, bytes: &[u8]) -> Result<Vec<Mission>, TestCaseError> {
    let limits = Limits { leave_out_payload: true, ..Limits::default() };
    match parse(Path::new(name), bytes, &limits) {
        Ok(missions) => {
            prop_assert!(!missions.is_empty());
            missions.iter().try_for_each(|mission| keeps_promises(mission, &limits))?;
            Ok(missions)
        }
        Err(error) => {
            let message = error.to_string();
            prop_assert!(!message.contains(|c: char| c.is_control()), "{:?}", message);
            prop_assert!(message.contains("found ") && message.contains("expected "), "{}", message);
            prop_assert!(message.chars().count() < 400, "{}", message);
            Ok(Vec::new())
        }
    }
}

fn keeps_promises(mission: &Mission, limits: &Limits) -> Result<(), TestCaseError> {
    let (first, ..) = mission.waypoints().next().expect("a waypoint");
    let home = mission.planned_home;
    let home_altitude_mm = home.map_or(0, |home| home.altitude_mm);
    let center = home.unwrap_or(Position {
        latitude_e7: first.latitude_e7,
        longitude_e7: first.longitude_e7,
        altitude_mm: 0,
    });
    prop_assert!(mission.items.len() <= limits.items_max);
    for (index, item) in mission.items.iter().enumerate() {
        let (position, altitude) = match *item {
            Item::TakeOff { altitude } => {
                let before = &mission.items[..index];
                let first =
                    before.iter().all(|item| matches!(item, Item::ChangeSpeed { .. } | Item::Yaw { .. }));
                prop_assert!(first);
                (None, Some(altitude))
            }
            Item::Waypoint { position, altitude, hold_s } => {
                prop_assert!(hold_s.is_sign_positive() && hold_s <= 65_535.0);
                (Some(position), Some(altitude))
            }
            Item::Land { position } => (position, None),
            Item::ReturnToLaunch => (None, None),
            Item::ChangeSpeed { speed_m_s } => {
                prop_assert!(speed_m_s > 0.0 && speed_m_s <= limits.speed_m_s);
                (None, None)
            }
            Item::Yaw { yaw_deg } => {
                prop_assert!((0.0..360.0).contains(&yaw_deg));
                (None, None)
            }
        };
        if matches!(item, Item::Land { .. } | Item::ReturnToLaunch) {
            prop_assert_eq!(index + 1, mission.items.len());
        }
        if let Some(altitude) = altitude {
            prop_assert!(altitude.datum == Datum::Home || home.is_some());
            let height_mm = altitude.above_home_mm(home_altitude_mm);
            prop_assert!(height_mm > 0 && height_mm <= 120_000, "{}", height_mm);
        }
        if let Some(position) = position {
            // Both altitudes are zero: a frame subtracts them.
            let on_ground = position.at(Altitude { value_mm: 0, datum: Datum::SeaLevel }, 0);
            prop_assert!(on_ground.is_on_earth());
            let local = Frame::new(Position { altitude_mm: 0, ..center }).to_local(on_ground);
            prop_assert!(local.truncate().length() <= limits.distance_from_home_m + 0.01, "{}", local);
        }
    }
    Ok(())
}

/// A change of some bytes.
#[derive(Clone, Debug)]
enum Edit {
    Set(Index, u8),
    Cut(Index, usize),
    Truncate(Index),
    Insert(Index, String),
    /// Copy a stretch to another position.
    Copy(Index, Index, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let token = prop_oneof![
        "[-0-9.,eE ]{1,8}",
        Just("NaN".to_owned()),
        Just("1e999".to_owned()),
        Just("null".to_owned()),
        Just("\t".to_owned()),
        Just("\n".to_owned()),
        Just("{}[]\"".to_owned()),
        Just("<LineString>".to_owned()),
        Just("</LineString>".to_owned()),
        Just("<Point><coordinates/></Point>".to_owned()),
        Just("<![CDATA[".to_owned()),
        Just("&#0;&#x110000;".to_owned()),
        ".{0,6}",
    ];
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Edit::Set(at, byte)),
        (any::<Index>(), 1..40usize).prop_map(|(at, length)| Edit::Cut(at, length)),
        any::<Index>().prop_map(Edit::Truncate),
        (any::<Index>(), token).prop_map(|(at, text)| Edit::Insert(at, text)),
        (any::<Index>(), any::<Index>(), 1..80usize)
            .prop_map(|(from, to, length)| Edit::Copy(from, to, length)),
    ]
}

fn apply(bytes: &mut Vec<u8>, edit: &Edit) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    match edit {
        Edit::Set(at, byte) => bytes[at.index(length)] = *byte,
        Edit::Cut(at, count) => {
            let at = at.index(length);
            bytes.drain(at..(at + count).min(length));
        }
        Edit::Truncate(at) => bytes.truncate(at.index(length)),
        Edit::Insert(at, text) => {
            let at = at.index(length);
            bytes.splice(at..at, text.bytes());
        }
        Edit::Copy(from, to, count) => {
            let from = from.index(length);
            let stretch = bytes[from..(from + count).min(length)].to_vec();
            let to = to.index(length);
            bytes.splice(to..to, stretch);
        }
    }
}

fn position() -> impl Strategy<Value = LatLon> {
    // Within 5 km of the home of `mission`.
    (-300_000..300_000i32, -300_000..300_000i32).prop_map(|(north, east)| LatLon {
        latitude_e7: 394_825_940 + north,
        longitude_e7: -3_462_650 + east,
    })
}

fn altitude() -> impl Strategy<Value = Altitude> {
    prop_oneof![
        (1..=120_000i32).prop_map(|value_mm| Altitude { value_mm, datum: Datum::Home }),
        (-49_999..=70_000i32).prop_map(|value_mm| Altitude { value_mm, datum: Datum::SeaLevel }),
    ]
}

/// Missions with a home at 50 m below the sea, so that signs are tried.
fn mission() -> impl Strategy<Value = Mission> {
    let item = prop_oneof![
        4 => (position(), altitude(), prop_oneof![Just(0.0), 0.0..=65_535.0f64])
            .prop_map(|(position, altitude, hold_s)| Item::Waypoint { position, altitude, hold_s }),
        1 => (0.01..=20.0f64).prop_map(|speed_m_s| Item::ChangeSpeed { speed_m_s }),
    ];
    let end = prop_oneof![
        Just(None),
        Just(Some(Item::ReturnToLaunch)),
        proptest::option::of(position()).prop_map(|position| Some(Item::Land { position })),
    ];
    let take_off = proptest::option::of(altitude().prop_map(|altitude| Item::TakeOff { altitude }));
    (take_off, position(), altitude(), vec(item, 0..30), end).prop_map(
        |(take_off, position, altitude, middle, end)| {
            let waypoint = Item::Waypoint { position, altitude, hold_s: 0.0 };
            Mission {
                name: "a".into(),
                items: take_off.into_iter().chain([waypoint]).chain(middle).chain(end).collect(),
                speed_m_s: None,
                planned_home: Some(Position::from_degrees(39.482594, -0.346265, -50.0).unwrap()),
                notes: Vec::new(),
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_samples_are_taken_or_refused(which in 0..SAMPLES.len(), edits in vec(edit(), 1..5)) {
        let (name, text) = SAMPLES[which];
        let mut bytes = text.as_bytes().to_vec();
        edits.iter().for_each(|edit| apply(&mut bytes, edit));
        read_any(name, &bytes)?;
    }

    #[test]
    fn random_bytes_are_taken_or_refused(which in 0..4usize, bytes in vec(any::<u8>(), 0..200)) {
        let name = ["a.waypoints", "a.plan", "a.kml", "a"][which];
        let starts: [&[u8]; 4] = [b"QGC WPL 110\n", b"{\"fileType\":\"Plan\",\"version\":1,", b"<kml>", b""];
        read_any(name, &bytes)?;
        read_any(name, &[starts[which], &bytes].concat())?;
    }

    #[test]
    fn columns_of_anything_are_taken_or_refused(
        rows in vec(vec(prop_oneof!["[0-9]{1,3}", "-?[0-9]{1,3}\\.[0-9]{1,9}", "-?inf|NaN|1e400|-0"], 12), 1..6),
    ) {
        let mut text = String::from("QGC WPL 110\n0 1 0 16 0 0 0 0 39.48 -0.34 5 1\n");
        for (index, mut row) in rows.into_iter().enumerate() {
            // Let most rows come through to the values.
            (row[0], row[1], row[11]) = ((index + 1).to_string(), "0".into(), "1".into());
            row[2] = ["0", "3", "5", "10"][row[2].len() % 4].into();
            row[3] = ["16", "20", "21", "22", "178"][row[3].len() % 5].into();
            text += &row.join(" ");
            text.push('\n');
        }
        read_any("a.waypoints", text.as_bytes())?;
    }

    #[test]
    fn what_is_written_is_read_back(mission in mission()) {
        let text = write_waypoints(&mission);
        let read = read_any("a.waypoints", text.as_bytes())?;
        let waypoints = mission.waypoints().filter(|(_, altitude, _)| altitude.datum == Datum::SeaLevel).count();
        let note = Note::AltitudeAboveSeaLevel { waypoints, home_altitude_m: -50.0 };
        let notes = if waypoints > 0 { vec![note] } else { vec![] };
        prop_assert_eq!(read.as_slice(), &[Mission { notes: notes.clone(), ..mission.clone() }], "{}", text);

        // JSON's numbers are read exactly up to fifteen digits: what a person writes.
        let mut mission = mission;
        for item in &mut mission.items {
            match item {
                Item::Waypoint { hold_s: value, .. } | Item::ChangeSpeed { speed_m_s: value } => {
                    *value = (*value * 1e3).ceil() / 1e3;
                }
                Item::Yaw { yaw_deg } => *yaw_deg = yaw_deg.floor(),
                Item::TakeOff { .. } | Item::Land { .. } | Item::ReturnToLaunch => {}
            }
        }
        let text = write_plan(&mission);
        let read = read_any("a.plan", text.as_bytes())?;
        prop_assert_eq!(read.as_slice(), &[Mission { notes, ..mission.clone() }], "{}", text);
        check(&mission, &Limits::default()).map_err(|error| TestCaseError::fail(error.to_string()))?;
    }

    #[test]
    fn paths_that_are_written_are_read_back(
        // A KML has no home: its points lie within 5 km of the first.
        missions in vec(("[a-z<>&\"' é]{1,9}", vec((-150_000..150_000i32, -150_000..150_000i32, 5_000..=120_000i32), 2..9)), 1..4),
    ) {
        let missions: Vec<_> = missions.into_iter().map(|(name, points)| {
            let waypoints = points.into_iter().map(|(north, east, value_mm)| {
                let position = LatLon { latitude_e7: 394_825_940 + north, longitude_e7: -3_462_650 + east };
                Item::Waypoint { position, altitude: Altitude { value_mm, datum: Datum::Home }, hold_s: 0.0 }
            });
            Mission { name, items: waypoints.collect(), speed_m_s: None, planned_home: None, notes: vec![] }
        }).collect();
        let text = write_kml(&missions);
        let read = read_any("a.kml", text.as_bytes())?;
        prop_assert_eq!(read.len(), missions.len());
        for (read, written) in read.iter().zip(&missions) {
            prop_assert!(read.waypoints().eq(written.waypoints()), "{}", text);
            if !written.name.trim().is_empty() {
                prop_assert_eq!(&read.name, written.name.trim());
            }
        }
    }
}

/// Any cut of a sample is refused, or holds whole items only; a cut of a plan or of KML is refused
/// wherever it falls before the last brace or tag.
#[test]
fn truncation_is_seen() {
    for (name, text) in SAMPLES {
        let whole = parse(Path::new(name), text.as_bytes(), &Limits::default()).unwrap().remove(0);
        for length in 0..text.trim_end().len() {
            let Ok(missions) = parse(Path::new(name), &text.as_bytes()[..length], &Limits::default()) else {
                continue;
            };
            assert_eq!(name, "a.waypoints", "cut at {length}");
            let items = &missions[0].items;
            assert_eq!(items.as_slice(), &whole.items[..items.len()], "cut at {length}");
        }
    }
}
