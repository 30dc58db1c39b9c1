//! Files as other programs write them: KML of Google Earth and of ArduSim, KMZ, UTF-16, Latin-1, items of QGroundControl up to
//! 3.2, surveys with cameras. Each states the right value.

use std::io::Write as _;
use std::path::Path;

use wingbeat_geo::Position;
use wingbeat_missions::{Item, Limits, Mission, Note, parse};

const PATH: &str = "-0.3464,39.4829,30 -0.3460,39.4833,30 -0.3455,39.4830,30";

fn kml(mode: &str, coordinates: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<kml xmlns=\"http://www.opengis.net/kml/2.2\" \
         xmlns:gx=\"http://www.google.com/kml/ext/2.2\">\n<Placemark><name>A</name><LineString>{mode}<coordinates>\
         {coordinates}</coordinates></LineString></Placemark></kml>"
    )
}

fn read(name: &str, bytes: &[u8], limits: &Limits) -> Result<Mission, String> {
    let mut missions = parse(Path::new(name), bytes, limits).map_err(|error| error.to_string())?;
    assert_eq!(missions.len(), 1);
    Ok(missions.remove(0))
}

fn heights_m(mission: &Mission) -> Vec<f64> {
    mission.waypoints().map(|(_, altitude, _)| f64::from(altitude.above_home_mm(5_000)) / 1e3).collect()
}

/// The heights that a path states are flown, whatever it says of their meaning, or a note says what is flown instead.
#[test]
fn heights_of_kml_paths_are_flown() {
    let home = Position::from_degrees(39.4829, -0.3464, 5.0).unwrap();
    let usual = Limits::default();
    let low = Limits { kml_altitude_min_m: 25.0, ..Limits::default() };
    let at_home = Limits { home: Some(home), ..Limits::default() };
    let zero = PATH.replace(",30", "");
    let tag = |mode: &str| format!("<altitudeMode>{mode}</altitudeMode>");
    let gx = |mode: &str| format!("<gx:altitudeMode>{mode}</gx:altitudeMode>");
    let unstated = |notes: &[Note]| notes.contains(&Note::AltitudeWithoutMode);
    let clamped = |notes: &[Note]| notes.iter().any(|note| matches!(note, Note::AltitudeFromLimits { .. }));
    type Noted<'a> = &'a dyn Fn(&[Note]) -> bool;
    for (mode, path, limits, height_m, noted) in [
        (String::new(), PATH, &usual, 30.0, &unstated as Noted<'_>),
        (String::new(), &*zero, &usual, 5.0, &clamped),
        (String::new(), &*zero, &low, 25.0, &clamped),
        (tag("clampToGround"), PATH, &low, 25.0, &clamped),
        (tag("relativeToGround"), PATH, &usual, 30.0, &<[Note]>::is_empty),
        (gx("relativeToSeaFloor"), PATH, &usual, 30.0, &<[Note]>::is_empty),
        (gx("clampToSeaFloor"), PATH, &usual, 5.0, &clamped),
        (tag("relativeToGround") + &gx("clampToSeaFloor"), PATH, &usual, 30.0, &<[Note]>::is_empty),
        (tag("absolute"), PATH, &at_home, 25.0, &|notes: &[Note]| notes.len() == 1),
    ] {
        let mission = read("a.kml", kml(&mode, path).as_bytes(), limits).unwrap();
        assert_eq!(heights_m(&mission), [height_m; 3], "{mode} {path}");
        assert!(noted(&mission.notes), "{mode}: {:?}", mission.notes);
    }
    let error = read("a.kml", kml(&tag("absolute"), PATH).as_bytes(), &usual).unwrap_err();
    assert!(error.contains("expected a home"), "{error}");
}

#[test]
fn kmz_utf16_and_latin1_are_read() {
    let text = kml("<altitudeMode>relativeToGround</altitudeMode>", PATH).replace(">A<", ">Calibração<");
    let utf16: Vec<u8> =
        [0xfe, 0xff].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect();
    let latin1: Vec<u8> = text.chars().map(|c| c as u8).collect();
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in [("files/icon.png", &b"\x89PNG"[..]), ("doc.kml", text.as_bytes())] {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    let kmz = archive.finish().unwrap().into_inner();
    for (name, bytes) in [("a.kml", &utf16), ("a.kml", &latin1), ("a.kmz", &kmz), ("a", &kmz)] {
        let mission = read(name, bytes, &Limits::default()).unwrap();
        assert_eq!((mission.name.as_str(), heights_m(&mission)), ("Calibração", vec![30.0; 3]), "{name}");
    }
    for (name, bytes, words) in [
        ("a.kmz", &kmz[..60], "expected a KMZ archive with a KML document"),
        ("a.kml", b"<kml>\n\xff\x00</kml>", "line 2: found bytes that are no text"),
    ] {
        let error = read(name, bytes, &Limits::default()).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    // An archive that grows without end.
    let small = Limits { file_bytes_max: 1_000, ..Limits::default() };
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    archive.start_file("doc.kml", zip::write::SimpleFileOptions::default()).unwrap();
    archive.write_all(&[b' '; 100_000]).unwrap();
    let bomb = archive.finish().unwrap().into_inner();
    let error = read("a.kmz", &bomb, &small).unwrap_err();
    assert!(error.contains("found 1001 bytes, expected at most 1000"), "{error}");
}

/// Items of QGroundControl 3.0 to 3.2 have their place in `coordinate`, and a mission of version 1.
#[test]
fn items_of_older_ground_stations_are_read() {
    let plan = |coordinate: &str| {
        format!(
            "{{\"fileType\":\"Plan\",\"version\":1,\"mission\":{{\"version\":1,\"items\":[{{\"type\":\"SimpleItem\",\
             \"autoContinue\":true,\"command\":16,\"frame\":3,\"params\":[7,0,0,0],\"coordinate\":{coordinate}}}]}}}}"
        )
    };
    let mission = read("a.plan", plan("[39.4829,-0.3464,20]").as_bytes(), &Limits::default()).unwrap();
    let (position, altitude, hold_s) = mission.waypoints().next().unwrap();
    assert_eq!((position.latitude_e7, altitude.value_mm, hold_s), (394_829_000, 20_000, 7.0));
    for (coordinate, words) in [
        ("[39.4829,-0.3464]", "expected [latitude, longitude, altitude]"),
        ("[91,-0.3464,20]", "mission.items[0].coordinate[0]: latitude: found 91"),
    ] {
        let error = read("a.plan", plan(coordinate).as_bytes(), &Limits::default()).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

/// Yaws and delays are read; cameras are refused, and left out where the operator says so.
#[test]
fn payload_is_left_out_only_where_the_operator_says_so() {
    let text = "QGC WPL 110\n0 1 0 16 0 0 0 0 39.4829 -0.3464 5 1\n1 0 3 16 0 0 0 0 39.4829 -0.3464 20 1\n\
        2 0 3 93 5 0 0 0 0 0 0 1\n3 0 3 206 25 0 0 0 0 0 0 1\n4 0 3 115 90 0 0 0 0 0 0 1\n\
        5 0 3 19 30 0 0 0 39.4833 -0.3460 20 1\n6 0 3 183 9 1500 0 0 0 0 0 1\n7 0 3 112 4 0 0 0 0 0 0 1\n";
    let refused = |limits: &Limits| read("a.txt", text.as_bytes(), limits).unwrap_err();
    let error = refused(&Limits::default());
    assert!(error.contains("line 5, column 4") && error.contains("--leave-out payload"), "{error}");
    let payload = Limits { leave_out_payload: true, ..Limits::default() };
    let error = refused(&payload);
    assert!(error.contains("line 9") && error.contains("--leave-out 112"), "{error}");
    let mission = read("a.txt", text.as_bytes(), &Limits { leave_out: vec![112], ..payload }).unwrap();
    let notes: Vec<String> = mission.notes.iter().map(ToString::to_string).collect();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].ends_with("are left out: 2") && notes[1].ends_with("allowed: 1"), "{notes:?}");
    let holds: Vec<f64> = mission.waypoints().map(|(_, _, hold_s)| hold_s).collect();
    assert_eq!(holds, [5.0, 30.0], "a delay is a hold at the waypoint before it");
    assert!(mission.items.contains(&Item::Yaw { yaw_deg: 90.0 }));
}

/// A hold without a position keeps the altitude of its waypoint, or it is refused: none is dropped.
#[test]
fn a_hold_without_a_position_at_another_altitude_is_refused() {
    let read_at = |altitude_m: u32| {
        let text = format!(
            "QGC WPL 110\n0 1 0 16 0 0 0 0 39.4825 -0.3462 5 1\n1 0 3 16 0 0 0 0 39.4825 -0.3462 20 1\n\
             2 0 3 19 30 0 0 0 0 0 {altitude_m} 1\n3 0 3 16 0 0 0 0 39.4835 -0.3462 20 1\n"
        );
        read("a.waypoints", text.as_bytes(), &Limits::default())
    };
    for altitude_m in [0, 20] {
        assert_eq!(heights_m(&read_at(altitude_m).unwrap()), [20.0; 2], "{altitude_m}");
    }
    let error = read_at(50).unwrap_err();
    assert!(error.contains("found 50 m after 20 m, expected the altitude of the waypoint before"), "{error}");
}
