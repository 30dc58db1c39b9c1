//! Mission files: what an operator has on disk becomes what an aircraft takes. An aircraft never reads one.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wingbeat_api::{
    FenceBounds, FleetAircraft, GeoPoint, MissionEnd, MissionExport, MissionExportFile, MissionFile,
    MissionFileContent, MissionFileOptions, MissionFormat, MissionItem, MissionUpload, ReadMission,
};
use wingbeat_geo::{AIRCRAFT_MAX, Position, ROUTE_MAX};
use wingbeat_missions::{
    Altitude, Datum, Item, LatLon, Limits, Mission, check, parse, write_kml, write_plan, write_waypoints,
};

/// Largest file.
const MAX_FILE_BYTES: u64 = 2_000_000;
/// Largest request with a file: JSON escapes what it must.
pub(crate) const MAX_BODY_BYTES: usize = 2 * MAX_FILE_BYTES as usize;
/// The highest, the farthest and the fastest that any option allows.
const HEIGHT_MOST_M: f64 = 100_000.0;
const DISTANCE_MOST_M: f64 = 100_000.0;
const SPEED_MOST_M_S: f64 = 100.0;
/// Longest name that an aircraft takes.
const MAX_NAME_CHARACTERS: usize = 64;

/// The missions of the file, with notes of what is not flown.
///
/// # Errors
/// The first thing that is wrong with the file and where it stands.
pub(crate) fn read(file: &MissionFile) -> Result<MissionFileContent, String> {
    let missions = parsed(file)?;
    let read = |mission: &Mission| {
        let mut read = upload(mission, &file.name);
        read.mission.leave_out.clone_from(&file.options.leave_out);
        read.notes.extend(file.protocol.iter().flat_map(|protocol| read.mission.notes(protocol)));
        read.refusals.extend(file.protocol.iter().flat_map(|protocol| read.mission.refusals(protocol)));
        read
    };
    Ok(MissionFileContent { missions: missions.iter().map(read).collect() })
}

/// Where the first mission of the file expects its aircraft to start; none where it does not state it.
///
/// # Errors
/// As [`read`].
pub(crate) fn home(file: &MissionFile) -> Result<Option<GeoPoint>, String> {
    let home = parsed(file)?.first().and_then(|mission| mission.planned_home);
    Ok(home.map(|home| GeoPoint {
        latitude_deg: f64::from(home.latitude_e7) / 1e7,
        longitude_deg: f64::from(home.longitude_e7) / 1e7,
        altitude_m: f64::from(home.altitude_mm) / 1e3,
    }))
}

fn parsed(file: &MissionFile) -> Result<Vec<Mission>, String> {
    let limits = limits(&file.options)?;
    let archive = file.archive.as_deref().map(|archive| STANDARD.decode(archive)).transpose();
    let archive =
        archive.map_err(|error| format!("{}: archive: found {error}, expected base64", file.name))?;
    let bytes = archive.as_deref().unwrap_or(file.text.as_bytes());
    parse(Path::new(&file.name), bytes, &limits).map_err(|error| error.to_string())
}

/// The limits of a request.
///
/// # Errors
/// The option that is none.
pub fn limits(options: &MissionFileOptions) -> Result<Limits, String> {
    let usual = Limits::default();
    let positive = |name: &str, value: Option<f64>, usual: f64, most: f64| match value {
        None => Ok(usual),
        Some(value) if value > 0.0 && value <= most => Ok(value),
        Some(found) => Err(format!("options.{name}: found {found}, expected more than 0 and at most {most}")),
    };
    let home = options.home.as_ref().map(|home| {
        Position::from_degrees(home.latitude_deg, home.longitude_deg, home.altitude_m)
            .map_err(|error| format!("options.home: {error}"))
    });
    Ok(Limits {
        file_bytes_max: MAX_FILE_BYTES,
        leave_out_payload: options.leave_out_payload,
        leave_out: options.leave_out_commands.clone(),
        home: home.transpose()?,
        kml_altitude_min_m: positive(
            "kml_height_least_m",
            options.kml_height_least_m,
            usual.kml_altitude_min_m,
            HEIGHT_MOST_M,
        )?,
        fence_altitude_m: positive(
            "height_most_m",
            options.height_most_m,
            usual.fence_altitude_m,
            HEIGHT_MOST_M,
        )?,
        distance_from_home_m: positive(
            "distance_most_m",
            options.distance_most_m,
            usual.distance_from_home_m,
            DISTANCE_MOST_M,
        )?,
        speed_m_s: positive("speed_most_m_s", options.speed_most_m_s, usual.speed_m_s, SPEED_MOST_M_S)?,
        ..usual
    })
}

/// Completes a request by what the fleet's aircraft are configured with: the protocol that all of them fly, the highest and the
/// widest fence.
pub(crate) fn complete(file: &mut MissionFile, fleet: &[FleetAircraft]) {
    let known = || fleet.iter().filter_map(|aircraft| aircraft.status.as_ref());
    if file.protocol.is_none() {
        let first = known().next().map(|status| status.protocol.clone());
        file.protocol = first.filter(|first| known().all(|status| status.protocol == *first));
    }
    let most =
        |of: fn(&FenceBounds) -> f64| known().filter_map(|s| s.fence.as_ref()).map(of).reduce(f64::max);
    let MissionFileOptions { height_most_m, distance_most_m, .. } = &mut file.options;
    *height_most_m = height_most_m.or_else(|| most(|fence| fence.height_most_m.min(HEIGHT_MOST_M)));
    *distance_most_m = distance_most_m.or_else(|| most(|fence| fence.distance_most_m.min(DISTANCE_MOST_M)));
}

/// The limits of an aircraft with these bounds.
pub(crate) fn limits_of(fence: Option<&FenceBounds>) -> Limits {
    let usual = Limits::default();
    Limits {
        fence_altitude_m: fence.map_or(usual.fence_altitude_m, |fence| fence.height_most_m),
        distance_from_home_m: fence.map_or(usual.distance_from_home_m, |fence| fence.distance_most_m),
        speed_m_s: SPEED_MOST_M_S,
        ..usual
    }
}

/// A mission as an aircraft takes it: everything that its items state, whether a protocol flies it or not. Its notes
/// are those of the file, and the changes of speed that no waypoint carries.
pub fn upload(mission: &Mission, file_name: &str) -> ReadMission {
    let home_mm = mission.planned_home.map_or(0, |home| home.altitude_mm);
    let degrees =
        |position: LatLon| (f64::from(position.latitude_e7) / 1e7, f64::from(position.longitude_e7) / 1e7);
    let height_m = |altitude: Altitude| f64::from(altitude.above_home_mm(home_mm)) / 1e3;
    let name = [mission.name.as_str(), file_name, "mission"].into_iter().map(cut);
    let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
    let mut upload = MissionUpload { speed_m_s: mission.speed_m_s, ..MissionUpload::new(name, vec![]) };
    let mut notes: Vec<_> = mission.notes.iter().map(ToString::to_string).collect();
    let (mut speed, mut yaw) = (None, None);
    let mut last = None;
    for item in &mission.items {
        match *item {
            Item::TakeOff { altitude } => upload.take_off_height_m = Some(height_m(altitude)),
            Item::ChangeSpeed { speed_m_s } => {
                let replaced = speed.replace(speed_m_s);
                notes.extend(replaced.map(|replaced_m_s| {
                    format!(
                        "change of speed to {replaced_m_s} m/s is not flown: a change to {speed_m_s} m/s follows it \
                         before the next waypoint"
                    )
                }));
            }
            Item::Yaw { yaw_deg } => {
                let replaced = yaw.replace(yaw_deg);
                notes.extend(replaced.map(|replaced_deg| {
                    format!(
                        "yaw of {replaced_deg} degrees is not flown: a yaw of {yaw_deg} degrees follows it before the next \
                         waypoint"
                    )
                }));
            }
            Item::Waypoint { position, altitude, hold_s } => {
                let (latitude_deg, longitude_deg) = degrees(position);
                let waypoint = MissionItem::at(latitude_deg, longitude_deg, height_m(altitude));
                let (speed_m_s, yaw_deg) = (speed.take(), yaw.take());
                upload.waypoints.push(MissionItem { hold_s, speed_m_s, yaw_deg, ..waypoint });
                last = Some(position);
            }
            Item::Land { position: Some(position) } if last != Some(position) => {
                let (latitude_deg, longitude_deg) = degrees(position);
                upload.end = Some(MissionEnd::LandAt { latitude_deg, longitude_deg });
            }
            Item::Land { .. } => upload.end = Some(MissionEnd::Land),
            Item::ReturnToLaunch => upload.end = Some(MissionEnd::Return),
        }
    }
    notes.extend(speed.map(|speed_m_s| {
        format!(
            "change of speed to {speed_m_s} m/s after the last waypoint is not flown: the flight ends there"
        )
    }));
    notes.extend(yaw.map(|yaw_deg| {
        format!("yaw of {yaw_deg} degrees after the last waypoint is not flown: the flight ends there")
    }));
    ReadMission { mission: upload, notes, refusals: Vec::new() }
}

/// The same the other way: a mission that a console drew, as the checks and the formats know it. Its numbers are checked
/// as far as they fit; whether it may be flown is for [`check`].
///
/// # Errors
/// The first number that cannot be, and where it stands.
pub(crate) fn mission(upload: &MissionUpload) -> Result<Mission, String> {
    let name = &upload.name;
    let found = upload.waypoints.len();
    if !(1..=ROUTE_MAX).contains(&found) {
        return Err(format!("{name:?}: waypoints: found {found}, expected 1 to {ROUTE_MAX}"));
    }
    let position = |at: &str, latitude_deg, longitude_deg, height_m| {
        let position = Position::from_degrees(latitude_deg, longitude_deg, height_m);
        position.map_err(|error| format!("{name:?}, {at}: {error}"))
    };
    let above_home = |position: Position| Altitude { value_mm: position.altitude_mm, datum: Datum::Home };
    let mut items = Vec::new();
    if let Some(height_m) = upload.take_off_height_m {
        items.push(Item::TakeOff { altitude: above_home(position("take-off", 0.0, 0.0, height_m)?) });
    }
    for (number, item) in (1..).zip(&upload.waypoints) {
        let at = format!("waypoint {number}");
        items.extend(item.speed_m_s.map(|speed_m_s| Item::ChangeSpeed { speed_m_s }));
        items.extend(item.yaw_deg.map(|yaw_deg| Item::Yaw { yaw_deg }));
        let place = position(&at, item.latitude_deg, item.longitude_deg, item.height_m)?;
        let altitude = above_home(place);
        items.push(Item::Waypoint { position: place.into(), altitude, hold_s: item.hold_s });
    }
    match upload.end {
        None => {}
        Some(MissionEnd::Land) => items.push(Item::Land { position: None }),
        Some(MissionEnd::LandAt { latitude_deg, longitude_deg }) => {
            let place = position("landing", latitude_deg, longitude_deg, 0.0)?;
            items.push(Item::Land { position: Some(place.into()) });
        }
        Some(MissionEnd::Return) => items.push(Item::ReturnToLaunch),
    }
    Ok(Mission { name: cut(name), items, speed_m_s: upload.speed_m_s, planned_home: None, notes: Vec::new() })
}

/// The missions as a file, which is read again to say what is not in it.
///
/// # Errors
/// What is wrong with the missions, or that the format holds one.
pub(crate) fn export(request: &MissionExport) -> Result<MissionExportFile, String> {
    let found = request.missions.len();
    if !(1..=AIRCRAFT_MAX).contains(&found) {
        return Err(format!("missions: found {found}, expected 1 to {AIRCRAFT_MAX}"));
    }
    let home = request.home.as_ref().map(|home| {
        Position::from_degrees(home.latitude_deg, home.longitude_deg, home.altitude_m)
            .map_err(|error| format!("home: {error}"))
    });
    let home = home.transpose()?;
    // What may be flown is for the aircraft to judge; a file may hold it.
    let limits = Limits {
        fence_altitude_m: HEIGHT_MOST_M,
        distance_from_home_m: DISTANCE_MOST_M,
        speed_m_s: SPEED_MOST_M_S,
        ..Limits::default()
    };
    let mut missions = Vec::with_capacity(found);
    for upload in &request.missions {
        let mission = Mission { planned_home: home, ..mission(upload)? };
        check(&mission, &limits).map_err(|error| error.to_string())?;
        missions.push(mission);
    }
    let (extension, text) = match (request.format, missions.as_slice()) {
        (MissionFormat::Kml, missions) => ("kml", write_kml(missions)),
        (MissionFormat::Waypoints, [mission]) => ("waypoints", write_waypoints(mission)),
        (MissionFormat::Plan, [mission]) => ("plan", write_plan(mission)),
        (MissionFormat::Waypoints | MissionFormat::Plan, _) => {
            return Err(format!("missions: found {found}, expected 1: this format holds one"));
        }
    };
    let stem = file_stem(missions.first().map_or("", |mission| &mission.name));
    let name = format!("{stem}.{extension}");
    let read = parse(Path::new(&name), text.as_bytes(), &limits).map_err(|error| error.to_string())?;
    let mut notes: Vec<String> = Vec::new();
    for (written, read) in request.missions.iter().zip(&read) {
        for note in not_read_back(written, &upload(read, &name).mission) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    Ok(MissionExportFile { name, text, notes })
}

/// What of a mission the file that was written of it does not hold.
fn not_read_back(written: &MissionUpload, read: &MissionUpload) -> Vec<String> {
    let rounded = |value: f64, parts: f64| (value * parts).round() as i64;
    let pairs = || written.waypoints.iter().zip(&read.waypoints);
    let place = |item: &MissionItem| {
        [rounded(item.latitude_deg, 1e7), rounded(item.longitude_deg, 1e7), rounded(item.height_m, 1e3)]
    };
    // A take-off of no height ends at that of the first waypoint.
    let take_off_m = |mission: &MissionUpload| {
        mission.take_off_height_m.or(mission.waypoints.first().map(|first| first.height_m))
    };
    let same = [
        ("the places and heights of the waypoints", pairs().all(|(a, b)| place(a) == place(b))),
        ("the times to hold", pairs().all(|(a, b)| a.hold_s == b.hold_s)),
        ("the changes of speed", pairs().all(|(a, b)| a.speed_m_s == b.speed_m_s)),
        ("the yaws", pairs().all(|(a, b)| a.yaw_deg == b.yaw_deg)),
        ("the planned speed", written.speed_m_s == read.speed_m_s),
        ("the height of the take-off", take_off_m(written) == take_off_m(read)),
        ("how it ends", written.end == read.end),
    ];
    same.iter().filter(|(_, same)| !same).map(|(what, _)| format!("not in the file: {what}")).collect()
}

/// A name of a file that no system takes for a path, an option or a device of its own.
fn file_stem(name: &str) -> String {
    let safe = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
    let stem: String = name.chars().map(safe).collect();
    let stem = stem.trim_matches('-');
    if stem.is_empty() { "mission".to_owned() } else { stem.to_owned() }
}

/// A name that an aircraft takes.
fn cut(name: &str) -> String {
    let printable = name.chars().filter(|c| !c.is_control());
    printable.take(MAX_NAME_CHARACTERS).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> MissionFile {
        MissionFile {
            name: name.to_owned(),
            text: text.to_owned(),
            archive: None,
            protocol: None,
            options: MissionFileOptions::default(),
        }
    }

    #[test]
    fn an_archive_is_read_by_its_document_and_what_is_none_is_named() {
        let kml = "<kml><Document><Placemark><LineString><coordinates>-0.3462,39.4825,20 -0.3442,39.4835,20\
                   </coordinates></LineString></Placemark></Document></kml>";
        let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        writer.start_file("doc.kml", zip::write::SimpleFileOptions::default()).expect("an archive");
        std::io::Write::write_all(&mut writer, kml.as_bytes()).expect("memory");
        let bytes = writer.finish().expect("memory").into_inner();
        let archive = |archive: String| MissionFile { archive: Some(archive), ..file("a.kmz", "") };
        let found = read(&archive(STANDARD.encode(&bytes))).expect("a mission");
        assert_eq!(found.missions, read(&file("a.kml", kml)).expect("a mission").missions);
        let broken = read(&archive("%".to_owned())).expect_err("no base64");
        assert!(
            broken.starts_with("a.kmz: archive: found ") && broken.ends_with(", expected base64"),
            "{broken}"
        );
        let cut = read(&archive(STANDARD.encode(&bytes[..bytes.len() / 2]))).expect_err("no archive");
        assert!(cut.contains("an archive that cannot be read"), "{cut}");
    }

    #[test]
    fn what_the_items_state_is_carried_and_what_the_protocol_does_not_fly_is_noted() {
        let text = "QGC WPL 110\n0 1 0 16 0 0 0 0 39.4825 -0.3462 5 1\n1 0 3 22 0 0 0 0 0 0 12 1\n\
                    2 0 3 16 4.5 0 0 0 39.483 -0.346 20 1\n3 0 3 178 1 9 -1 0 0 0 0 1\n\
                    4 0 3 178 1 3 -1 0 0 0 0 1\n5 0 0 16 0 0 0 0 39.484 -0.346 25 1\n\
                    6 0 3 20 0 0 0 0 0 0 0 1\n";
        let mut file = file("a.waypoints", text);
        let found = read(&file).expect("a mission").missions.remove(0);
        let (first, second) = (MissionItem::at(39.483, -0.346, 20.0), MissionItem::at(39.484, -0.346, 20.0));
        let expected = MissionUpload {
            take_off_height_m: Some(12.0),
            end: Some(MissionEnd::Return),
            ..MissionUpload::new(
                "a",
                vec![MissionItem { hold_s: 4.5, ..first }, MissionItem { speed_m_s: Some(3.0), ..second }],
            )
        };
        assert_eq!(found.mission, expected);
        let above_sea_level =
            "waypoints with an altitude above sea level, flown as a height above a home at 5 m: 1".to_owned();
        let replaced =
            "change of speed to 9 m/s is not flown: a change to 3 m/s follows it before the next waypoint";
        let of_the_file = vec![above_sea_level, replaced.to_owned()];
        assert_eq!(found.notes, of_the_file);
        file.protocol = Some("muscop".into());
        let found = read(&file).expect("a mission").missions.remove(0);
        assert_eq!(found.notes, [of_the_file, expected.notes("muscop")].concat());
        assert!(
            found.notes.len() == 5 && found.notes[4].starts_with("hold of 4.5 s at waypoint 1 of 2 is not")
        );
    }

    #[test]
    fn landing_elsewhere_is_not_landing_at_the_last_waypoint() {
        let end = |landing: &str| {
            let text = format!(
                "QGC WPL 110\n0 1 0 16 0 0 0 0 0 0 0 1\n1 0 3 16 0 0 0 0 39.48 -0.34 20 1\n{landing}"
            );
            read(&file("a.waypoints", &text)).expect("a mission").missions.remove(0).mission.end
        };
        assert_eq!(end(""), None);
        assert_eq!(end("2 0 3 21 0 0 0 0 0 0 0 1\n"), Some(MissionEnd::Land));
        assert_eq!(end("2 0 3 21 0 0 0 0 39.48 -0.34 0 1\n"), Some(MissionEnd::Land));
        let elsewhere = MissionEnd::LandAt { latitude_deg: 39.481, longitude_deg: -0.34 };
        assert_eq!(end("2 0 3 21 0 0 0 0 39.481 -0.34 0 1\n"), Some(elsewhere));
        assert_eq!(end("2 0 3 20 0 0 0 0 0 0 0 1\n"), Some(MissionEnd::Return));
    }

    #[test]
    fn a_change_of_speed_behind_the_last_waypoint_is_noted() {
        let text = "QGC WPL 110\n0 1 0 16 0 0 0 0 0 0 0 1\n1 0 3 16 0 0 0 0 39.48 -0.34 20 1\n\
                    2 0 3 178 1 2 -1 0 0 0 0 1\n3 0 3 20 0 0 0 0 0 0 0 1\n";
        let found = read(&file("a.waypoints", text)).expect("a mission").missions.remove(0);
        assert!(
            found.notes.len() == 1 && found.notes[0].contains("speed to 2 m/s after"),
            "{:?}",
            found.notes
        );
    }

    #[test]
    fn every_path_of_a_kml_is_a_mission() {
        let line = |name: &str, places: &str| {
            format!(
                "<Placemark><name>{name}</name><LineString><altitudeMode>relativeToGround</altitudeMode>\
                 <coordinates>{places}</coordinates></LineString></Placemark>"
            )
        };
        let (east, north) = ("-0.35,39.48,20 -0.34,39.48,20", "-0.35,39.48,3 -0.35,39.49,30");
        let text = format!("<kml><Document>{}{}</Document></kml>", line("east", east), line("north", north));
        let found = read(&file("two.kml", &text)).expect("two missions");
        let names: Vec<_> = found.missions.iter().map(|m| m.mission.name.as_str()).collect();
        assert_eq!(names, ["east", "north"]);
        let north = &found.missions[1];
        assert_eq!(north.mission.waypoints[1], MissionItem::at(39.49, -0.35, 30.0));
        assert_eq!(north.notes.len(), 1, "one point was raised: {:?}", north.notes);
    }

    #[test]
    fn what_is_no_mission_is_named() {
        let error = read(&file("notes.txt", "take off at noon")).expect_err("no mission");
        assert!(error.contains("notes.txt") && error.contains("expected"), "{error}");
    }

    #[test]
    fn what_is_exported_is_read_back_or_named() {
        let item = MissionItem::at(39.4830001, -0.3460007, 20.125);
        let upload = MissionUpload {
            take_off_height_m: Some(12.5),
            end: Some(MissionEnd::LandAt { latitude_deg: 39.4831, longitude_deg: -0.346 }),
            ..MissionUpload::new(
                "../a b",
                vec![
                    MissionItem { hold_s: 4.5, ..item },
                    MissionItem { speed_m_s: Some(3.0), latitude_deg: 39.4835, ..item },
                ],
            )
        };
        let file = |format, upload: &MissionUpload| {
            let home =
                Some(wingbeat_api::GeoPoint { latitude_deg: 39.482, longitude_deg: -0.346, altitude_m: 7.5 });
            export(&MissionExport { format, missions: vec![upload.clone()], home }).expect("a file")
        };
        for format in [MissionFormat::Waypoints, MissionFormat::Plan] {
            let written = file(format, &upload);
            assert_eq!(written.notes, Vec::<String>::new());
            assert!(written.name.starts_with("a-b."), "{}", written.name);
            let mut read = read(&MissionFile {
                name: written.name,
                text: written.text,
                archive: None,
                protocol: None,
                options: MissionFileOptions::default(),
            });
            let read = read.as_mut().expect("a mission").missions.remove(0);
            assert_eq!(read.mission, MissionUpload { name: "a-b".into(), ..upload.clone() });
            assert_eq!(read.notes, Vec::<String>::new());
        }
        assert_eq!(
            file(MissionFormat::Kml, &upload).notes,
            ["the times to hold", "the changes of speed", "the height of the take-off", "how it ends"]
                .map(|what| format!("not in the file: {what}"))
        );
        let fast = MissionUpload { speed_m_s: Some(7.0), ..upload.clone() };
        assert_eq!(file(MissionFormat::Plan, &fast).notes, Vec::<String>::new());
        assert_eq!(file(MissionFormat::Waypoints, &fast).notes, ["not in the file: the planned speed"]);
        let request =
            |format, missions: Vec<MissionUpload>| export(&MissionExport { format, missions, home: None });
        let two = request(MissionFormat::Plan, vec![upload.clone(), upload.clone()]).expect_err("one each");
        assert_eq!(two, "missions: found 2, expected 1: this format holds one");
        let high = MissionUpload { waypoints: vec![MissionItem { height_m: -1.0, ..item }; 2], ..upload };
        let error = request(MissionFormat::Kml, vec![high]).expect_err("below home");
        assert!(
            error.contains("waypoint 1: found altitude -1 m above home, expected more than 0 m"),
            "{error}"
        );
    }

    #[test]
    fn a_name_is_cut_to_what_an_aircraft_takes() {
        assert_eq!(cut(&format!(" a\nb{}", "x".repeat(100))).chars().count(), 63);
        assert_eq!(cut("\t"), "");
    }
}
