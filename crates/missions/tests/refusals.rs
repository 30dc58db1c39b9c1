//! Every kind of bad file gives one line that names file, position, found and expected. The table in
//! `docs/missions.md` is this test's expectation: `UPDATE_DOCS=1 cargo test -p wingbeat-missions` writes
//! it anew, and the difference is there to be read.

use std::{collections::BTreeSet, path::Path};

use wingbeat_geo::Position;
use wingbeat_missions::{Altitude, Datum, Error, Item, LatLon, Limits, Mission, check, parse, read};

const HOME: &str = "0\t1\t0\t16\t0\t0\t0\t0\t39.4825940\t-0.3462650\t5\t1\n";
const NO_HOME: &str = "0\t1\t0\t16\t0\t0\t0\t0\t0\t0\t0\t1\n";
const WAYPOINT: &str = "1\t0\t3\t16\t0\t0\t0\t0\t39.4829543\t-0.3462650\t20\t1\n";

/// A QGC WPL 110 file of these lines.
fn wpl(lines: &[&str]) -> String {
    format!("QGC WPL 110\n{}", lines.concat())
}

/// One waypoint after home, with a part of it replaced.
fn altered(from: &str, to: &str) -> String {
    assert!(WAYPOINT.contains(from));
    wpl(&[HOME, &WAYPOINT.replacen(from, to, 1)])
}

/// The sample survey with a part replaced.
fn survey(from: &str, to: &str) -> String {
    let text = include_str!("../../../deploy/missions/survey.plan");
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

/// A KML path.
fn kml(mode: &str, coordinates: &str) -> String {
    format!(
        "<kml xmlns=\"http://www.opengis.net/kml/2.2\">\n<Placemark><name>UAV 1</name>\n<LineString>\
         <altitudeMode>{mode}</altitudeMode><coordinates>{coordinates}</coordinates></LineString>\
         </Placemark></kml>"
    )
}

fn refused(name: &str, content: &[u8], limits: &Limits) -> Error {
    match parse(Path::new(name), content, limits) {
        Ok(missions) => panic!("{name} is taken: {missions:?}"),
        Err(error) => error,
    }
}

/// What is wrong, and the message about it.
fn cases() -> Vec<(&'static str, Error)> {
    let limits = Limits::default();
    let folder = tempfile::tempdir().unwrap();
    let from_disk = |name: &str| {
        let mut error = read(&folder.path().join(name), &limits).unwrap_err();
        // The folder has another name every time.
        error.path = Path::new(if name.is_empty() { "missions" } else { name }).into();
        error
    };
    let mut cases = vec![("missing file", from_disk("gone.plan")), ("a directory", from_disk(""))];
    let mut case = |what, name: &str, content: &str| {
        cases.push((what, refused(name, content.as_bytes(), &limits)));
    };
    case("empty", "a.waypoints", "\r\n");
    case("too large", "a.waypoints", &"0".repeat(5_000_001));
    case("unknown format", "mission", "latitude;longitude\n");
    case("another version", "a.waypoints", "QGC WPL 120\n");
    case("another format than the name implies", "a.waypoints", "{\"fileType\": \"Plan\"}");
    case("truncated line", "a.waypoints", "QGC WPL 110\n0\t1\t0\t16\t0\t0\t0");
    case("no waypoint", "a.waypoints", &wpl(&[HOME]));
    case("sequence", "a.waypoints", &altered("1\t", "2\t"));
    case("no home", "a.waypoints", &wpl(&[WAYPOINT]));
    case(
        "delay without a waypoint",
        "a.waypoints",
        &wpl(&[HOME, "1\t0\t3\t93\t5\t0\t0\t0\t0\t0\t0\t1\n", &WAYPOINT.replacen('1', "2", 1)]),
    );
    case("delay until a time of day", "a.waypoints", &altered("16\t0\t0", "93\t-1\t12"));
    case("turn", "a.waypoints", &altered("16\t0\t0\t0\t0", "115\t90\t0\t0\t1"));
    case("item 0 is not home", "a.waypoints", &wpl(&[&HOME.replace("\t16\t", "\t22\t")]));
    case("home above home", "a.waypoints", &wpl(&[&HOME.replace("\t1\t0\t16", "\t1\t3\t16")]));
    case("not a number", "a.waypoints", &altered("39.4829543", "NaN"));
    case("infinite", "a.waypoints", &altered("\t20\t", "\tinf\t"));
    case("negative frame", "a.waypoints", &altered("\t3\t", "\t-3\t"));
    case("flag", "a.waypoints", &altered("20\t1", "20\tyes"));
    case("off the earth", "a.waypoints", &altered("39.4829543", "394.829543"));
    case("latitude and longitude 0", "a.waypoints", &altered("39.4829543\t-0.3462650", "0\t0"));
    case("hold time", "a.waypoints", &altered("16\t0", "16\t-1"));
    case("unsupported command", "a.waypoints", &altered("\t16\t", "\t82\t"));
    case("unknown command", "a.waypoints", &altered("\t16\t", "\t60000\t"));
    case("terrain frame", "a.waypoints", &altered("\t3\t", "\t10\t"));
    case("above the fence", "a.waypoints", &altered("\t20\t", "\t150\t"));
    case(
        "above the fence, from sea level",
        "a.waypoints",
        &altered("\t3\t16", "\t0\t16").replace("\t20\t", "\t126\t"),
    );
    case("in the ground", "a.waypoints", &altered("\t20\t", "\t0\t"));
    case("sea level without home", "a.waypoints", &wpl(&[NO_HOME, &WAYPOINT.replace("\t3\t16", "\t0\t16")]));
    case("far from home", "a.waypoints", &altered("39.4829543", "39.6"));
    let far = WAYPOINT.replace("1\t0\t3", "2\t0\t3").replace("39.4829543", "-39.5");
    case("far from the first waypoint", "a.waypoints", &wpl(&[NO_HOME, WAYPOINT, &far]));
    case("speed", "a.waypoints", &altered("16\t0\t0", "178\t1\t25"));
    case("kind of speed", "a.waypoints", &altered("16\t0\t0", "178\t2\t5"));
    let take_off = WAYPOINT.replace("1\t0\t3\t16", "2\t0\t3\t22");
    case("late take-off", "a.waypoints", &wpl(&[HOME, WAYPOINT, &take_off]));
    let (land, after) = ("1\t0\t3\t21\t0\t0\t0\t0\t0\t0\t0\t1\n", WAYPOINT.replacen('1', "2", 1));
    case("item after landing", "a.waypoints", &wpl(&[HOME, land, &after]));
    let many: String = (1..=701).map(|n| WAYPOINT.replacen('1', &n.to_string(), 1)).collect();
    case("too many items", "a.waypoints", &wpl(&[HOME, &many]));

    case("truncated plan", "a.plan", &survey("", "")[..400]);
    case("broken JSON", "a.plan", &survey("\"hoverSpeed\": 10", "\"hoverSpeed\": NaN"));
    case("number beyond all", "a.plan", &survey("39.4828642", "1e999"));
    case("another kind of JSON", "a.plan", &survey("\"Plan\"", "\"GeoFence\""));
    case("another plan version", "a.plan", &survey("  \"version\": 1", "  \"version\": 2"));
    case(
        "another mission version",
        "a.plan",
        &survey("\"vehicleType\": 2,\n    \"version\": 2", "\"version\": 3"),
    );
    case("missing field", "a.plan", &survey("\"items\"", "\"Items\""));
    case("wrong kind of value", "a.plan", &survey("\"command\": 16", "\"command\": \"waypoint\""));
    case("null where a number must be", "a.plan", &survey("39.4828642", "null"));
    case("unknown item type", "a.plan", &survey("SimpleItem", "Item"));
    case("params", "a.plan", &survey("0,\n          null", "null"));
    case("complex item without items", "a.plan", &survey("SimpleItem", "ComplexItem"));
    case("camera command", "a.plan", &survey("\"command\": 16", "\"command\": 206"));
    case("planned speed", "a.plan", &survey("\"hoverSpeed\": 10", "\"hoverSpeed\": 0"));
    case("home", "a.plan", &survey("-0.346265,\n      5", "-0.346265"));
    case(
        "plan above the fence",
        "a.plan",
        &survey("-0.3471367,\n          25", "-0.3471367,\n          250"),
    );

    case("truncated KML", "a.kml", &kml("absolute", "1,2,3")[..120]);
    case("broken XML", "a.kml", "<kml>\n<Document></kml>");
    case("another kind of XML", "a.kml", "<?xml version=\"1.0\"?>\n<gpx></gpx>");
    case("nested too deep", "a.kml", &format!("<kml>{}", "<Folder>".repeat(500_000)));
    case("entity", "a.kml", "<kml><Placemark><name>&who;</name></Placemark></kml>");
    case(
        "no path",
        "a.kml",
        "<kml><Placemark><Point><coordinates>1,2,3</coordinates></Point></Placemark></kml>",
    );
    case("path of one point", "a.kml", &kml("relativeToGround", "-0.34,39.48,20"));
    case("altitude mode", "a.kml", &kml("clampToSky", "-0.34,39.48,20 -0.34,39.49,20"));
    let offset = kml("relativeToGround", "-0.34,39.48,20 -0.34,39.49,20")
        .replace("<coordinates>", "<gx:altitudeOffset>50</gx:altitudeOffset><coordinates>");
    case("altitude offset", "a.kml", &offset);
    case("blank in a coordinate", "a.kml", &kml("relativeToGround", "-0.34, 39.48, 20"));
    case("point not finite", "a.kml", &kml("relativeToGround", "-0.34,39.48,20 -0.34,inf,20"));
    case("point off the earth", "a.kml", &kml("relativeToGround", "-0.34,39.48,20 -0.34,95,20"));
    case("sea level, home unknown", "a.kml", &kml("absolute", "-0.34,39.48,20 -0.34,39.49,20"));
    case("path above the fence", "a.kml", &kml("relativeToGround", "-0.34,39.48,20 -0.34,39.49,121"));
    let paths = "<LineString></LineString>".repeat(129);
    case("too many paths", "a.kml", &format!("<kml>{paths}</kml>"));

    cases.push(("not text", refused("a.txt", b"QGC WPL 110\n0\t1\t\xff\x00", &limits)));
    let home = Position::from_degrees(39.6, -0.346, 0.0).unwrap();
    let limits = Limits { home: Some(home), ..Limits::default() };
    cases.push((
        "far from where the aircraft is",
        refused("a.waypoints", wpl(&[HOME, WAYPOINT]).as_bytes(), &limits),
    ));
    cases
}

#[test]
fn messages_are_one_line_each_and_stand_in_the_documentation() {
    const BEGIN: &str = "<!-- messages: written by crates/missions/tests/refusals.rs -->\n";
    const END: &str = "<!-- end of messages -->\n";
    let mut table = String::from("| what is wrong | message |\n|---|---|\n");
    for (what, error) in cases() {
        let message = error.to_string();
        assert!(!message.contains(['\n', '\r']), "{message:?}");
        assert!(message.contains("found ") && message.contains("expected "), "{message}");
        assert!(message.starts_with(&*error.path.to_string_lossy()), "{message}");
        assert!(message.len() < 300, "{message}");
        table += &format!("| {what} | `{message}` |\n");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/missions.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(BEGIN).expect("the marker of the table");
    let (found, after) = rest.split_once(END).expect("the marker after the table");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    for (found, expected) in found.lines().zip(table.lines()) {
        assert_eq!(found, expected, "docs/missions.md against the code");
    }
    assert_eq!(found.lines().count(), table.lines().count(), "docs/missions.md against the code");
}

#[test]
fn every_kind_of_problem_has_a_case() {
    let kinds: BTreeSet<String> = cases()
        .iter()
        .map(|(_, error)| {
            let text = format!("{:?}", error.problem);
            text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("").to_owned()
        })
        .collect();
    let source = include_str!("../src/error.rs");
    let (_, rest) = source.split_once("pub enum Problem {").unwrap();
    let (body, _) = rest.split_once("\n}\n").unwrap();
    let variants: BTreeSet<String> = body
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()))
        .map(|line| line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("").to_owned())
        .collect();
    assert!(variants.len() > 15, "{variants:?}");
    assert_eq!(kinds, variants);
}

#[test]
fn tolerates_byte_order_mark_windows_line_ends_and_blanks_for_tabs() {
    let limits = Limits::default();
    let plain = parse(Path::new("a.waypoints"), wpl(&[HOME, WAYPOINT]).as_bytes(), &limits).unwrap();
    let windows =
        format!("\u{feff}{}\r\n\r\n", wpl(&[HOME, WAYPOINT]).replace('\n', "\r\n").replace('\t', "  "));
    assert_eq!(parse(Path::new("a.TXT"), windows.as_bytes(), &limits).unwrap(), plain);
    let plan = format!("\u{feff}{}", survey("", "").replace('\n', "\r\n"));
    assert_eq!(
        parse(Path::new("survey.plan"), plan.as_bytes(), &limits).unwrap(),
        parse(Path::new("survey.plan"), survey("", "").as_bytes(), &limits).unwrap(),
    );
    let path = kml("relativeToGround", "-0.34,39.48,20\n-0.34,39.49,20");
    let windows = format!("\u{feff}{}", path.replace('\n', "\r\n"));
    assert_eq!(
        parse(Path::new("a.kml"), windows.as_bytes(), &limits).unwrap(),
        parse(Path::new("a.kml"), path.as_bytes(), &limits).unwrap(),
    );
}

#[test]
fn a_name_cannot_break_the_line() {
    let content = "<kml><Placemark><name>a\nb\u{1b}[2J</name><LineString></LineString></Placemark></kml>";
    let message = refused("a\nb.kml", content.as_bytes(), &Limits::default()).to_string();
    assert!(!message.contains(|c: char| c.is_control()), "{message:?}");
}

/// What was drawn and not read is checked as strictly.
#[test]
fn a_drawn_mission_is_checked() {
    let at = |latitude_deg: f64| LatLon::from(Position::from_degrees(latitude_deg, -0.34, 0.0).unwrap());
    let waypoint = |latitude_deg, height_m: i32, hold_s| Item::Waypoint {
        position: at(latitude_deg),
        altitude: Altitude { value_mm: height_m * 1000, datum: Datum::Home },
        hold_s,
    };
    let message = |items: Vec<Item>| {
        let mission =
            Mission { name: "drawn".into(), items, speed_m_s: None, planned_home: None, notes: vec![] };
        let home = Position::from_degrees(39.48, -0.34, 5.0).ok();
        check(&mission, &Limits { home, ..Limits::default() }).err().map(|error| error.to_string())
    };
    let good = waypoint(39.481, 20, 0.0);
    assert_eq!(message(vec![good, waypoint(39.482, 20, 5.0)]), None);
    for (items, expected) in [
        (
            vec![good, waypoint(40.48, 20, 0.0)],
            "drawn, waypoint 2: found a point 111195 m from home, expected at most 5000 m",
        ),
        (
            vec![good, waypoint(39.482, 121, 0.0)],
            "drawn, waypoint 2: found altitude 121 m above home, expected at most 120 m (the fence)",
        ),
        (vec![waypoint(39.482, 20, -1.0)], "drawn, waypoint 1: hold time: found -1 s, expected 0 to 65535 s"),
        (
            vec![good, Item::ChangeSpeed { speed_m_s: 25.0 }, good],
            "drawn, speed to waypoint 2: speed: found 25 m/s, expected more than 0 and at most 20 m/s",
        ),
        (vec![], "drawn: found no waypoint, expected at least 1"),
    ] {
        assert_eq!(message(items).as_deref(), Some(expected));
    }
}
