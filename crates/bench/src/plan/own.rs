//! The section of a plan that puts aircraft of different owners into one sky: named flights with a route for
//! each aircraft, a file with one mission for each, or a crowd on random missions; each with every
//! variant of the protocol that the plan names.

use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use serde::Deserialize;
use wingbeat_api::{MissionFileOptions, MissionUpload, ReadMission};
use wingbeat_ground::mission_file::limits;
use wingbeat_sim::motion::WindParameters;

use crate::gauss_markov::Walk;
use crate::scenario::{FileMission, OwnMission, OwnTask, Scenario, Task, Variant, route};

/// Aircraft on missions of their own.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Own {
    /// What keeps them apart: each flight is flown with each of these.
    pub variants: Vec<Variant>,
    /// Height of all routes above home, metres.
    pub height_m: f64,
    /// Standard deviation of the wandering position error, metres.
    #[serde(default)]
    pub gps_noise_m: f64,
    /// Speeds of the aircraft instead of those below: a line for each, metres per second, as ArduSim's `speed.csv`. Relative to
    /// the plan.
    pub speeds_file: Option<String>,
    /// Flights with a name.
    #[serde(default)]
    pub flight: Vec<Named>,
    /// A crowd.
    pub crowd: Option<Crowd>,
    /// A file.
    pub file: Option<File>,
}

/// A flight with a name.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Short name.
    pub name: String,
    /// Speed of the air, metres per second.
    #[serde(default)]
    pub wind_m_s: f64,
    /// Where the wind comes from, degrees clockwise from north.
    #[serde(default)]
    pub wind_from_deg: f64,
    /// The aircraft; the last has the right of way.
    pub aircraft: Vec<Routed>,
}

/// An aircraft and its route.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Routed {
    /// Speed along the legs, metres per second.
    pub speed_m_s: f64,
    /// Height of its route above home, metres, where it is not that of all.
    pub height_m: Option<f64>,
    /// A mission file with its route instead of `east_north_m`, relative to the plan.
    pub path: Option<String>,
    /// The mission of that file, from 1; needed where it holds several.
    pub only: Option<usize>,
    /// How that file is read, and what of it may be left out.
    #[serde(default)]
    pub options: MissionFileOptions,
    /// Waypoints, metres east and north of a common origin; it starts at the first,
    #[serde(default)]
    pub east_north_m: Vec<[f64; 2]>,
    /// unless it starts here.
    pub start_east_north_m: Option<[f64; 2]>,
    /// Of its waypoints, from the first on: when it leaves each at the earliest, seconds after the flight controllers were switched on.
    /// The operator commands it to hold there until then.
    #[serde(default)]
    pub leaves_at_s: Vec<f64>,
}

/// Random missions (thesis section 5.3.2.3).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crowd {
    /// One flight with each of these numbers of aircraft.
    pub aircraft: Vec<usize>,
    /// Speed along the legs, metres per second.
    pub speed_m_s: f64,
    /// Side of the square, metres.
    pub side_m: f64,
    /// Starts are at least so far apart, metres.
    pub start_distance_m: f64,
    /// Waypoints of each mission.
    pub waypoints: usize,
    /// Shortest leg, metres.
    pub leg_least_m: f64,
    /// Longest leg, metres.
    pub leg_most_m: f64,
    /// 0 to 1: how straight the path is.
    pub linearity: f64,
}

/// Missions from a file, one per aircraft (KML holds several).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Relative to the plan.
    pub path: String,
    /// What the file holds, where the plan carries it: then the path is a name only.
    pub text: Option<String>,
    /// Speed of missions that name none, metres per second.
    pub speed_m_s: f64,
    /// How it is read, and what of it may be left out.
    #[serde(default)]
    pub options: MissionFileOptions,
}

impl Own {
    /// Keeps only the crowd of this size and only this variant.
    pub(crate) fn keep(&mut self, aircraft: Option<usize>, variant: Option<Variant>) -> Result<()> {
        if let Some(aircraft) = aircraft {
            let crowd = self.crowd.as_mut().with_context(|| {
                format!("aircraft: found {aircraft}, expected none: the plan names its aircraft")
            })?;
            crowd.aircraft = vec![aircraft];
        }
        if let Some(variant) = variant {
            self.variants = vec![variant];
        }
        Ok(())
    }

    /// Every flight with every variant, the variants of one flight next to each other.
    pub(crate) fn scenarios(&self, folder: &Path, seed: u64) -> Result<Vec<Scenario>> {
        let height_m = self.height_m;
        ensure!(!self.variants.is_empty(), "own.variants: found none, expected off, mbcap, mbcap-e or sweep");
        let mut all = Vec::new();
        for named in &self.flight {
            let wind = WindParameters {
                speed_m_s: named.wind_m_s,
                direction_rad: named.wind_from_deg.to_radians(),
                ..WindParameters::default()
            };
            let from_files = named.aircraft.iter().filter(|aircraft| aircraft.path.is_some()).count();
            ensure!(
                from_files == 0 || from_files == named.aircraft.len(),
                "own.flight {:?}: found path of {from_files} of {} aircraft, expected all or none: a file states places on \
                 earth, east_north_m metres from the plan's origin",
                named.name,
                named.aircraft.len()
            );
            let routed = named.aircraft.iter().enumerate().map(|(index, aircraft)| {
                aircraft
                    .routed(folder, height_m)
                    .with_context(|| format!("own.flight {:?}, aircraft {}", named.name, index + 1))
            });
            let routed = routed.collect::<Result<Vec<_>>>()?;
            let (missions, stated): (Vec<_>, Vec<_>) = routed.into_iter().unzip();
            let first = all.len();
            self.fly(&named.name, wind, missions, &mut all);
            if from_files > 0 {
                for scenario in &mut all[first..] {
                    let own = Scenario { stated: stated.clone(), ..scenario.clone() };
                    *scenario = own.measured_from_its_start();
                }
            }
        }
        if let Some(crowd) = &self.crowd {
            for &aircraft in &crowd.aircraft {
                let walk = crowd.walk(height_m);
                walk.check(aircraft).context("own.crowd")?;
                let with_speed = |points| OwnMission {
                    speed_m_s: crowd.speed_m_s,
                    points,
                    start: None,
                    leaves_at_s: Vec::new(),
                };
                let missions = walk.missions(aircraft, seed).into_iter().map(with_speed).collect();
                self.fly(&format!("{aircraft} aircraft"), WindParameters::default(), missions, &mut all);
            }
        }
        if let Some(file) = &self.file {
            let path = folder.join(&file.path);
            let limits = limits(&file.options).map_err(|why| anyhow!("own.file.{why}"))?;
            let missions = match &file.text {
                Some(text) => wingbeat_missions::parse(Path::new(&file.path), text.as_bytes(), &limits)?,
                None => wingbeat_missions::read(&path, &limits)?,
            };
            let (mut own, mut stated) = (Vec::new(), Vec::new());
            for mission in &missions {
                let speed_m_s = mission.speed_m_s.unwrap_or(file.speed_m_s);
                let mission = FileMission::new(mission, &path);
                own.push(OwnMission {
                    speed_m_s,
                    points: mission.points,
                    start: None,
                    leaves_at_s: Vec::new(),
                });
                let mut of_file = mission.stated;
                of_file.mission.leave_out.clone_from(&file.options.leave_out);
                stated.push(of_file);
            }
            let first = all.len();
            self.fly(&file.path, WindParameters::default(), own, &mut all);
            for scenario in &mut all[first..] {
                let own = Scenario { stated: stated.clone(), ..scenario.clone() };
                *scenario = own.measured_from_its_start();
            }
        }
        ensure!(!all.is_empty(), "own: found no aircraft, expected flight, crowd or file");
        if let Some(file) = &self.speeds_file {
            let speeds = speeds(&folder.join(file)).context("own.speeds_file")?;
            for scenario in &mut all {
                let Task::Own(task) = &mut scenario.task else { continue };
                let (found, expected) = (speeds.len(), task.missions.len());
                ensure!(
                    found >= expected,
                    "own.speeds_file: found {found} speeds, expected {expected}, one for each aircraft of {:?}",
                    scenario.name
                );
                task.missions.iter_mut().zip(&speeds).for_each(|(mission, speed)| mission.speed_m_s = *speed);
            }
        }
        Ok(all)
    }

    fn fly(&self, name: &str, wind: WindParameters, missions: Vec<OwnMission>, all: &mut Vec<Scenario>) {
        for &variant in &self.variants {
            let task = Task::Own(OwnTask { variant, missions: missions.clone() });
            let mut scenario = Scenario::new(name, task);
            (scenario.wind, scenario.gps_noise_m) = (wind, self.gps_noise_m);
            all.push(scenario);
        }
    }
}

impl Routed {
    /// The mission of the aircraft, and what its file states.
    fn routed(&self, folder: &Path, height_m: f64) -> Result<(OwnMission, ReadMission)> {
        let start = self.start_east_north_m.and_then(|start| route(&[start], height_m).pop());
        let leaves_at_s = self.leaves_at_s.clone();
        let Some(file) = &self.path else {
            let points = route(&self.east_north_m, self.height_m.unwrap_or(height_m));
            let mission = MissionUpload::new("route", wingbeat_onboard::mission::items(&points));
            let stated = ReadMission { mission, notes: Vec::new(), refusals: Vec::new() };
            return Ok((OwnMission { speed_m_s: self.speed_m_s, points, start, leaves_at_s }, stated));
        };
        ensure!(
            self.east_north_m.is_empty() && self.height_m.is_none(),
            "path: found east_north_m or height_m as well, expected either: the file states places and heights"
        );
        ensure!(
            start.is_none(),
            "path: found start_east_north_m as well, expected none: the aircraft starts at its first waypoint"
        );
        let path = folder.join(file);
        let limits = limits(&self.options).map_err(|why| anyhow!("{why}"))?;
        let missions = wingbeat_missions::read(&path, &limits)?;
        let found = missions.len();
        let number = self.only.unwrap_or(1);
        ensure!(
            self.only.is_some() || found == 1,
            "path: found {found} missions in {file:?}, expected one, or the number of one (only)"
        );
        let mission = number.checked_sub(1).and_then(|index| missions.get(index));
        let mission = mission.with_context(|| format!("only: found {number}, expected 1 to {found}"))?;
        let FileMission { points, mut stated, .. } = FileMission::new(mission, &path);
        stated.mission.leave_out.clone_from(&self.options.leave_out);
        Ok((OwnMission { speed_m_s: self.speed_m_s, points, start, leaves_at_s }, stated))
    }
}

/// One speed on each line, without a header.
fn speeds(path: &Path) -> Result<Vec<f64>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(index, line): (usize, &str)| {
        let here =
            || format!("{} line {}: found {line:?}, expected a speed in m/s", path.display(), index + 1);
        line.trim().parse::<f64>().with_context(here)
    };
    lines.map(read).collect()
}

impl Crowd {
    fn walk(&self, height_m: f64) -> Walk {
        Walk {
            side_m: self.side_m,
            start_distance_m: self.start_distance_m,
            waypoints: self.waypoints,
            leg_m: (self.leg_least_m, self.leg_most_m),
            linearity: self.linearity,
            height_m,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    /// Two waypoints in Seattle, 111 m apart.
    const SEATTLE: &str = "QGC WPL 110\n0 1 0 16 0 0 0 0 47.6 -122.33 5 1\n1 0 3 22 0 0 0 0 0 0 20 1\n\
        2 0 3 16 0 0 0 0 47.6 -122.33 20 1\n3 0 3 16 0 0 0 0 47.601 -122.33 20 1\n";

    fn scenarios(aircraft: &[&str]) -> Result<Vec<Scenario>> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("seattle.waypoints"), SEATTLE).unwrap();
        let mut text = "name = \"a\"\ntitle = \"a\"\ntable = \"flights\"\nrepeat = 1\ntime_limit_s = 600\n\
            [channel]\nmodel = \"unrestricted\"\ndraw = \"packet\"\n\
            [own]\nvariants = [\"off\"]\nheight_m = 20.0\n[[own.flight]]\nname = \"b\"\n"
            .to_owned();
        for keys in aircraft {
            text += &format!("[[own.flight.aircraft]]\nspeed_m_s = 5.0\n{keys}\n");
        }
        let path = folder.path().join("plan.toml");
        std::fs::write(&path, text).unwrap();
        let own = Plan::read(&path)?.own.context("own")?;
        own.scenarios(folder.path(), 1)
    }

    #[test]
    fn a_flight_of_files_is_measured_where_it_is_flown() {
        let of_file = "path = \"seattle.waypoints\"";
        let flown = scenarios(&[of_file]).unwrap();
        let origin = flown[0].origin;
        assert_eq!((origin.latitude_e7, origin.longitude_e7), (476_000_000, -1_223_300_000));
        flown[0].check().unwrap();
        let refused = |aircraft: &[&str]| format!("{:#}", scenarios(aircraft).unwrap_err());
        let metres = "east_north_m = [[0.0, 0.0], [0.0, 100.0]]";
        assert!(refused(&[of_file, metres]).contains("found path of 1 of 2 aircraft, expected all or none"));
        let moved = format!("{of_file}\nstart_east_north_m = [10.0, 0.0]");
        assert!(refused(&[&moved]).contains("found start_east_north_m as well"));
    }
}
