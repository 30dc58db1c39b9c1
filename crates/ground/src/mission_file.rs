//! Mission files: what an operator has on disk becomes what an aircraft takes. An aircraft never reads one.

use std::path::Path;

use wingbeat_api::{MissionFile, MissionFileContent, MissionItem, MissionUpload, ReadMission};
use wingbeat_missions::{Limits, Mission, parse};

/// Largest file.
const MAX_FILE_BYTES: u64 = 2_000_000;
/// Largest request with a file: JSON escapes what it must.
pub(crate) const MAX_BODY_BYTES: usize = 2 * MAX_FILE_BYTES as usize;
/// Longest name that an aircraft takes.
const MAX_NAME_CHARACTERS: usize = 64;

/// Reads the file.
///
/// # Errors
/// What is wrong with it, and where.
pub(crate) fn read(file: &MissionFile) -> Result<MissionFileContent, String> {
    let limits = Limits { file_bytes_max: MAX_FILE_BYTES, ..Limits::default() };
    let missions = parse(Path::new(&file.name), file.text.as_bytes(), &limits);
    let missions = missions.map_err(|error| error.to_string())?;
    Ok(MissionFileContent { missions: missions.iter().map(|mission| content(mission, &file.name)).collect() })
}

fn content(mission: &Mission, file_name: &str) -> ReadMission {
    let home_mm = mission.planned_home.map_or(0, |home| home.altitude_mm);
    let waypoints = mission.waypoints().map(|(position, altitude, _)| MissionItem {
        latitude_deg: f64::from(position.latitude_e7) / 1e7,
        longitude_deg: f64::from(position.longitude_e7) / 1e7,
        height_m: f64::from(altitude.above_home_mm(home_mm)) / 1e3,
    });
    let name = [mission.name.as_str(), file_name, "mission"].into_iter().map(cut);
    ReadMission {
        mission: MissionUpload {
            name: name.into_iter().find(|name| !name.is_empty()).unwrap_or_default(),
            waypoints: waypoints.collect(),
        },
        notes: mission.notes.iter().map(ToString::to_string).collect(),
    }
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
        MissionFile { name: name.to_owned(), text: text.to_owned() }
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
        assert_eq!(
            north.mission.waypoints[1],
            MissionItem { latitude_deg: 39.49, longitude_deg: -0.35, height_m: 30.0 }
        );
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
