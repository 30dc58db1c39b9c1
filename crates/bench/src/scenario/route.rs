//! Waypoints of missions: read from a file, measured in metres, or drawn as the published staircases.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use wingbeat_api::ReadMission;
use wingbeat_geo::{DVec3, Frame, Position};
use wingbeat_ground::mission_file;
use wingbeat_missions::{Altitude, LatLon, Limits, Mission};
use wingbeat_wire::Point;

/// Origin of missions that are given in metres (Valencia, as the sample missions). A mission of a file has its own:
/// [`super::Scenario::origin`].
pub const ORIGIN: Position =
    Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };

const SURVEY: &[u8] = include_bytes!("../../../../deploy/missions/survey.plan");

pub(super) fn position(p: Point) -> Position {
    Position { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: ORIGIN.altitude_mm }
}

/// Refuses a route without a direction to start in. How many waypoints it has is the protocol's to judge.
pub(super) fn check(name: &str, route: &[Point]) -> Result<()> {
    let [first, second, ..] = *route else { return Ok(()) };
    let leg_m = Frame::new(position(first)).to_local(position(second)).truncate().length();
    ensure!(leg_m >= 1.0, "mission {name}: the first leg is {leg_m:.1} m long, expected 1 m or more");
    Ok(())
}

/// A mission of a file: its waypoints, and all that it states, of which not everything is flown.
#[derive(Clone, Debug, PartialEq)]
pub struct FileMission {
    /// Its name.
    pub name: String,
    /// Waypoints in the units of datagrams.
    pub points: Vec<Point>,
    /// The whole mission, and what is noted of its file.
    pub stated: ReadMission,
}

impl FileMission {
    /// The mission as it was read from the file at `path`.
    pub fn new(mission: &Mission, path: &Path) -> Self {
        let home_mm = mission.planned_home.map_or(0, |home| home.altitude_mm);
        let point = |(position, altitude, _): (LatLon, Altitude, f64)| Point {
            latitude_e7: position.latitude_e7,
            longitude_e7: position.longitude_e7,
            height_mm: altitude.above_home_mm(home_mm),
        };
        let file_name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Self {
            name: mission.name.clone(),
            points: mission.waypoints().map(point).collect(),
            stated: mission_file::upload(mission, &file_name),
        }
    }
}

/// The one mission in a file.
///
/// # Errors
/// Names the file, the position in it, what was found and what was expected.
pub fn read_mission(path: &Path, limits: &Limits) -> Result<FileMission> {
    one(path, wingbeat_missions::read(path, limits)?)
}

/// The same for text that did not come from a disk; the name states its format.
///
/// # Errors
/// As [`read_mission`].
pub fn parse_mission(name: &str, text: &str, limits: &Limits) -> Result<FileMission> {
    let name = Path::new(name);
    one(name, wingbeat_missions::parse(name, text.as_bytes(), limits)?)
}

/// The sample survey of `deploy/missions`, which is part of the program.
///
/// # Errors
/// It is beyond the limits.
pub fn sample_mission(limits: &Limits) -> Result<FileMission> {
    let name = Path::new("survey.plan");
    one(name, wingbeat_missions::parse(name, SURVEY, limits)?)
}

fn one(path: &Path, mut missions: Vec<Mission>) -> Result<FileMission> {
    let found = missions.len();
    let Some(mission) = missions.pop().filter(|_| found == 1) else {
        bail!("{}: found {found} missions, expected one: the swarm flies one mission", path.display());
    };
    Ok(FileMission::new(&mission, path))
}

/// The published test missions (thesis section 6.2.1): to the north-east in equal steps, alternately
/// north and east, `length_m` in all.
pub fn staircase(waypoints: usize, length_m: f64, height_m: f64) -> Vec<Point> {
    let leg_m = length_m / (waypoints.max(2) - 1) as f64;
    let corner = |k: usize| [(k / 2) as f64 * leg_m, k.div_ceil(2) as f64 * leg_m];
    route(&(0..waypoints).map(corner).collect::<Vec<_>>(), height_m)
}

/// A route given in metres east and north of [`ORIGIN`].
pub fn route(east_north_m: &[[f64; 2]], height_m: f64) -> Vec<Point> {
    let frame = Frame::new(ORIGIN);
    east_north_m
        .iter()
        .map(|[east, north]| {
            let p = frame.to_position(DVec3::new(*east, *north, 0.0));
            Point {
                latitude_e7: p.latitude_e7,
                longitude_e7: p.longitude_e7,
                height_mm: (height_m * 1e3) as i32,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_staircase_has_its_length_and_its_corners() {
        for n in [2, 4, 14, 30] {
            let points = staircase(n, 1840.0, 10.0);
            let frame = Frame::new(ORIGIN);
            let at = |p: &Point| frame.to_local(position(*p)).truncate();
            let length_m: f64 = points.windows(2).map(|w| at(&w[0]).distance(at(&w[1]))).sum();
            assert_eq!(points.len(), n);
            assert!((length_m - 1840.0).abs() < 0.5, "{n}: {length_m}");
        }
    }
}
