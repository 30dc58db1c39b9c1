//! Mission files: what an operator has on disk becomes what an aircraft takes. An aircraft never reads one.

use std::path::Path;

use wingbeat_api::{MissionEnd, MissionFile, MissionFileContent, MissionItem, MissionUpload, ReadMission};
use wingbeat_missions::{Altitude, Item, LatLon, Limits, Mission, parse};

/// Largest file.
const MAX_FILE_BYTES: u64 = 2_000_000;
/// Largest request with a file: JSON escapes what it must.
pub(crate) const MAX_BODY_BYTES: usize = 2 * MAX_FILE_BYTES as usize;
/// Longest name that an aircraft takes.
const MAX_NAME_CHARACTERS: usize = 64;

/// The missions of the file, with notes of what is not flown.
///
/// # Errors
/// The first thing that is wrong with the file and where it stands.
pub(crate) fn read(file: &MissionFile) -> Result<MissionFileContent, String> {
    let limits = Limits { file_bytes_max: MAX_FILE_BYTES, ..Limits::default() };
    let missions = parse(Path::new(&file.name), file.text.as_bytes(), &limits);
    let missions = missions.map_err(|error| error.to_string())?;
    let read = |mission: &Mission| {
        let ReadMission { mission, mut notes } = upload(mission, &file.name);
        notes.extend(file.protocol.iter().flat_map(|protocol| mission.notes(protocol)));
        ReadMission { mission, notes }
    };
    Ok(MissionFileContent { missions: missions.iter().map(read).collect() })
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
    let mut speed = None;
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
            Item::Waypoint { position, altitude, hold_s } => {
                let (latitude_deg, longitude_deg) = degrees(position);
                let waypoint = MissionItem::at(latitude_deg, longitude_deg, height_m(altitude));
                upload.waypoints.push(MissionItem { hold_s, speed_m_s: speed.take(), ..waypoint });
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
    ReadMission { mission: upload, notes }
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
        MissionFile { name: name.to_owned(), text: text.to_owned(), protocol: None }
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
            found.notes.len() == 6 && found.notes[4].starts_with("hold of 4.5 s at waypoint 1 of 2 is not")
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
    fn a_name_is_cut_to_what_an_aircraft_takes() {
        assert_eq!(cut(&format!(" a\nb{}", "x".repeat(100))).chars().count(), 63);
        assert_eq!(cut("\t"), "");
    }
}
