//! Scenario files of BlueSky (`.scn`, <https://github.com/TUDelft-CNS-ATM/bluesky>) as plans: a route and a speed for each
//! aircraft, wind, and a report of what has no counterpart.
//!
//! A line is `HH:MM:SS.hh>COMMAND arguments`, with arguments between commas or spaces; several commands are separated by `;`. Speeds
//! are knots, heights feet or flight levels.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use wingbeat_geo::{Frame, Position};

use super::Plan;

const KNOT_M_S: f64 = 1852.0 / 3600.0;
const FOOT_M: f64 = 0.3048;
/// Height of an aircraft whose scenario states none, metres.
const HEIGHT_M: f64 = 10.0;
/// How far one flies that has a heading and no route, metres.
const STRAIGHT_M: f64 = 1_000.0;
/// More than any scenario of aircraft that the bench flies.
const BYTES_MOST: usize = 10_000_000;

/// A plan, and what became of the scenario's lines.
#[derive(Debug)]
pub struct Import {
    /// TOML.
    pub plan: String,
    /// One line each.
    pub report: Vec<String>,
}

#[derive(Debug, Default)]
struct Aircraft {
    id: String,
    at: [f64; 2],
    heading_deg: f64,
    height_m: f64,
    speed_m_s: f64,
    /// The first that a waypoint states.
    route_speed_m_s: Option<f64>,
    route: Vec<[f64; 2]>,
    destination: Option<[f64; 2]>,
}

#[derive(Default)]
struct Scene {
    aircraft: Vec<Aircraft>,
    places: BTreeMap<String, [f64; 2]>,
    /// Metres per second, and where from, degrees.
    wind: Option<(f64, f64)>,
    /// First line and number of each kind of thing without counterpart.
    left_out: BTreeMap<String, (usize, usize)>,
}

/// Reads a scenario, for a plan of this name.
///
/// # Errors
/// Names the line, what was found and what was expected.
pub fn import(name: &str, text: &str) -> Result<Import> {
    ensure!(text.len() <= BYTES_MOST, "found {} bytes, expected {BYTES_MOST} at most", text.len());
    let mut scene = Scene::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let number = index + 1;
        let (time, commands) = line.split_once('>').unwrap_or(("", line));
        for command in commands.split(';') {
            let arguments = split(command);
            scene
                .apply(number, time.trim(), &arguments)
                .with_context(|| format!("line {number}: {line:?}"))?;
        }
    }
    ensure!(!scene.aircraft.is_empty(), "found no CRE, expected one or more aircraft");
    Ok(scene.plan(name))
}

/// The arguments of a command: between two commas there may be nothing.
fn split(command: &str) -> Vec<&str> {
    let (mut all, mut rest) = (Vec::new(), command.trim());
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == ',' || c.is_whitespace()).unwrap_or(rest.len());
        all.push(&rest[..end]);
        rest = rest[end..].trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    all
}

fn number(what: &str, found: Option<&&str>) -> Result<f64> {
    let found = found.with_context(|| format!("{what}: found none, expected a number"))?;
    let value = found.parse::<f64>().ok().filter(|value| value.is_finite());
    value.with_context(|| format!("{what}: found {found:?}, expected a number"))
}

/// Heights that differ by less are the same height, metres.
const SAME_M: f64 = 0.1;

/// Feet, or a flight level.
fn height_m(found: Option<&&str>) -> Result<f64> {
    let level = found.and_then(|text| text.get(2..).filter(|_| text[..2].eq_ignore_ascii_case("fl")));
    let feet = match level {
        Some(level) => number("height", Some(&level))? * 100.0,
        None => number("height", found)?,
    };
    ensure!((0.0..=100_000.0).contains(&feet), "height: found {feet} ft, expected 0 to 100000");
    Ok(feet * FOOT_M)
}

fn speed_m_s(found: Option<&&str>) -> Result<f64> {
    let knots = number("speed", found)?;
    ensure!((0.0..=2_000.0).contains(&knots), "speed: found {knots} kt, expected 0 to 2000");
    Ok(knots * KNOT_M_S)
}

/// The mean of longitudes on the circle: that of 179 and -179 degrees is 180. Opposite ones have none; the first stands for
/// them.
fn mean_longitude_deg(all_deg: impl Iterator<Item = f64> + Clone) -> f64 {
    let first_deg = all_deg.clone().next().unwrap_or_default();
    let (mut off_deg, mut count) = (0.0, 0.0);
    for deg in all_deg {
        let from_first = deg - first_deg;
        off_deg += from_first - 360.0 * (from_first / 360.0).round();
        count += 1.0;
    }
    let mean_deg = first_deg + if count > 0.0 { off_deg / count } else { 0.0 };
    mean_deg - 360.0 * (mean_deg / 360.0).round()
}

impl Scene {
    fn leave_out(&mut self, line: usize, what: impl Into<String>) {
        self.left_out.entry(what.into()).or_insert((line, 0)).1 += 1;
    }

    fn index(&self, id: &str) -> Option<usize> {
        self.aircraft.iter().position(|aircraft| aircraft.id.eq_ignore_ascii_case(id))
    }

    /// A place by its coordinates or its name, and what follows it.
    fn place<'a, 'b>(&self, arguments: &'a [&'b str]) -> Result<([f64; 2], &'a [&'b str])> {
        let first = arguments
            .first()
            .copied()
            .context("place: found none, expected latitude and longitude or a name")?;
        if let Some(at) = self.places.get(&first.to_ascii_uppercase()) {
            return Ok((*at, &arguments[1..]));
        }
        if first.parse::<f64>().is_err() {
            bail!("place: found {first:?}, expected latitude and longitude, or a name of a DEFWPT before");
        }
        let at = [number("latitude", arguments.first())?, number("longitude", arguments.get(1))?];
        ensure!(
            at[0].abs() <= 90.0 && at[1].abs() <= 180.0,
            "place: found {at:?}, expected ±90 and ±180 degrees"
        );
        Ok((at, &arguments[2..]))
    }

    fn apply(&mut self, line: usize, time: &str, arguments: &[&str]) -> Result<()> {
        let Some((mut command, mut rest)) = arguments.split_first() else { return Ok(()) };
        // The aircraft may come first.
        let swapped: Vec<&str>;
        if self.index(command).is_some() && !rest.is_empty() {
            swapped = [&[*command], &rest[1..]].concat();
            (command, rest) = (&rest[0], &swapped);
        }
        let command = command.to_ascii_uppercase();
        let is_late = time.chars().any(|c| c.is_ascii_digit() && c != '0');
        let of = rest.first().and_then(|id| self.index(id));
        match (&*command, of) {
            ("CRE", None) => {
                let id = rest.first().copied().unwrap_or_default();
                ensure!(!id.is_empty(), "CRE: found no name, expected one");
                let (at, rest) = self.place(rest.get(2..).unwrap_or_default())?;
                let heading_deg = number("heading", rest.first())?;
                let (height_m, speed_m_s) = (height_m(rest.get(1))?, speed_m_s(rest.get(2))?);
                let id = id.to_owned();
                self.aircraft.push(Aircraft {
                    id,
                    at,
                    heading_deg,
                    height_m,
                    speed_m_s,
                    ..Aircraft::default()
                });
                if is_late {
                    self.leave_out(line, "CRE later than the others: all begin at the same time");
                }
            }
            ("CRE", Some(_)) => bail!("CRE: found {:?} twice, expected a new name", rest[0]),
            ("DEFWPT", _) => {
                let name = rest.first().copied().unwrap_or_default().to_ascii_uppercase();
                let (at, _) = self.place(rest.get(1..).unwrap_or_default())?;
                self.places.insert(name, at);
            }
            ("ADDWPT", Some(index)) => match rest.get(1).map(|first| first.to_ascii_uppercase()).as_deref() {
                Some(way @ ("FLYBY" | "FLYOVER" | "FLYTURN" | "TURNSPD" | "TURNSPEED" | "TURNRAD")) => {
                    self.leave_out(line, format!("ADDWPT {way}"));
                }
                _ => {
                    let (at, rest) = self.place(&rest[1..])?;
                    self.aircraft[index].route.push(at);
                    let stated = rest.first().filter(|height| !height.is_empty());
                    let stated_m = stated.map(|height| height_m(Some(height))).transpose()?;
                    let own_m = self.aircraft[index].height_m;
                    if stated_m.is_some_and(|stated_m| (stated_m - own_m).abs() > SAME_M) {
                        self.leave_out(line, "ADDWPT with a height: each aircraft keeps its first");
                    }
                    if let Some(speed) = rest.get(1).filter(|speed| !speed.is_empty()) {
                        let speed_m_s = speed_m_s(Some(speed))?;
                        let first_m_s = *self.aircraft[index].route_speed_m_s.get_or_insert(speed_m_s);
                        if first_m_s != speed_m_s {
                            self.leave_out(line, "ADDWPT with another speed than the first: that is flown");
                        }
                    }
                }
            },
            ("DEST", Some(index)) => self.aircraft[index].destination = Some(self.place(&rest[1..])?.0),
            ("ALT" | "SPD", Some(index)) if !is_late => {
                let aircraft = &mut self.aircraft[index];
                if command == "ALT" {
                    aircraft.height_m = height_m(rest.get(1))?;
                } else {
                    aircraft.speed_m_s = speed_m_s(rest.get(1))?;
                }
            }
            ("WIND", _) => {
                let (_, rest) = self.place(rest)?;
                // With a height, or nothing in its place, before direction and speed.
                let [from, speed] = rest.get(rest.len().saturating_sub(2)..).unwrap_or_default() else {
                    bail!("WIND: found no direction and speed, expected both");
                };
                let wind = (speed_m_s(Some(speed))?, number("direction", Some(from))?.rem_euclid(360.0));
                if rest.len() > 3 || self.wind.is_some_and(|first| first != wind) {
                    self.leave_out(line, "WIND that differs by place or height: the first is flown");
                }
                self.wind.get_or_insert(wind);
            }
            _ => self.leave_out(line, command),
        }
        Ok(())
    }

    fn plan(self, name: &str) -> Import {
        let count = self.aircraft.len() as f64;
        let latitude_deg = self.aircraft.iter().map(|aircraft| aircraft.at[0]).sum::<f64>() / count;
        let middle = [latitude_deg, mean_longitude_deg(self.aircraft.iter().map(|aircraft| aircraft.at[1]))];
        let position = |at: [f64; 2]| {
            let [latitude_e7, longitude_e7] = at.map(|degrees| (degrees * 1e7).round() as i32);
            Position { latitude_e7, longitude_e7, altitude_mm: 0 }
        };
        let frame = Frame::new(position(middle));
        let mut report = vec![format!(
            "{} aircraft; their middle, {:.6} {:.6}, is the bench's origin",
            self.aircraft.len(),
            middle[0],
            middle[1]
        )];
        let name = name.escape_default();
        let mut plan = format!(
            "# From a scenario of BlueSky.\nname = \"{name}\"\ntitle = \"{name}\"\ntable = \"flights\"\nrepeat = 1\ntime_limit_s = 7200\n\n"
        );
        if let Some((speed_m_s, from_deg)) = self.wind {
            let _ =
                writeln!(plan, "[conditions]\nwind_m_s = {speed_m_s:.2}\nwind_from_deg = {from_deg:.1}\n");
        }
        let _ = writeln!(
            plan,
            "[own]\nvariants = [\"off\", \"mbcap-e\"]\nheight_m = {HEIGHT_M:.1}\n\n[[own.flight]]\nname = \"{name}\""
        );
        for aircraft in &self.aircraft {
            let id = aircraft.id.escape_debug();
            let local = |at: &[f64; 2]| frame.to_local(position(*at)).truncate();
            let start = local(&aircraft.at);
            let mut route = vec![start];
            for at in aircraft.route.iter().chain(&aircraft.destination).map(local) {
                // The first is often where the aircraft is.
                if route.last().is_some_and(|last| last.distance(at) > 0.5) {
                    route.push(at);
                }
            }
            if route.len() == 1 {
                let (sin, cos) = libm::sincos(aircraft.heading_deg.to_radians());
                route.push(start + wingbeat_geo::DVec2::new(sin, cos) * STRAIGHT_M);
                report.push(format!("{id}: no route: flies {STRAIGHT_M} m on its heading"));
            }
            let speed_m_s =
                aircraft.route_speed_m_s.filter(|speed| *speed > 0.0).unwrap_or(aircraft.speed_m_s);
            let points: Vec<String> = route.iter().map(|at| format!("[{:.2}, {:.2}]", at.x, at.y)).collect();
            let _ = writeln!(plan, "[[own.flight.aircraft]]\n# {id}\nspeed_m_s = {speed_m_s:.3}");
            if aircraft.height_m > 0.0 {
                let _ = writeln!(plan, "height_m = {:.2}", aircraft.height_m);
            }
            let _ = writeln!(plan, "east_north_m = [{}]", points.join(", "));
        }
        plan.push_str("\n[channel]\nmodel = \"802.11a\"\ndraw = \"second\"\n");
        for (what, (line, count)) in self.left_out {
            let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            report.push(format!("no counterpart: {what} (line {line}{more})"));
        }
        if let Err(error) = Plan::parse(&plan, Path::new(".")) {
            report.push(format!("cannot be flown as it is: {error:#}"));
        }
        Import { plan, report }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With places by name, commands in both orders, arguments that are left out.
    const CITY: &str = "# two that meet\n\
        00:00:00.00>WIND 52.38,9.73,,315,6;PAN 52.38 9.73\n\
        00:00:00.00 > DEFWPT A1,52.380000,9.730000\n\
        00:00:00.00 > CRE U001 M600 A1 90 82.025 0\n\
        00:00:00.00 > ADDWPT U001 A1, , 19.44\n\
        00:00:00.00 > ADDWPT U001 FLYOVER\n\
        00:00:00.00 > U001 ADDWPT 52.380000 9.740000, 100, 19.44\n\
        00:00:00.00 > DEST U001 52.385 9.74\n\
        00:00:00.00>CRE,U002,M600,52.38,9.74,270,FL01,20\n\
        00:00:10.00>SPD U002 15\n";

    #[test]
    fn a_scenario_becomes_a_plan_that_is_flown_as_it_says() {
        let Import { plan, report } = import("city", CITY).unwrap();
        let plan = Plan::parse(&plan, Path::new(".")).unwrap();
        assert_eq!((plan.conditions.wind_from_deg, plan.conditions.wind_m_s), (315.0, 3.09));
        let aircraft = &plan.own.as_ref().unwrap().flight[0].aircraft;
        assert_eq!(aircraft[0].speed_m_s, 10.001);
        assert_eq!((aircraft[0].height_m, aircraft[1].height_m), (Some(25.0), Some(30.48)));
        // 0.01 degrees of longitude at 52.38 degrees are 681 m, 0.005 of latitude 556 m.
        let route = &aircraft[0].east_north_m;
        assert_eq!(route.len(), 3, "{route:?}");
        assert!(
            (route[1][0] - route[0][0] - 681.0).abs() < 1.5 && (route[2][1] - 556.4).abs() < 1.5,
            "{route:?}"
        );
        let straight = &aircraft[1].east_north_m;
        assert!((straight[0][0] - straight[1][0] - 1000.0).abs() < 0.1, "{straight:?}");
        for line in
            ["U002: no route", "ADDWPT FLYOVER (line 6)", "PAN (line 2)", "SPD (line 10)", "with a height"]
        {
            assert!(report.iter().any(|found| found.contains(line)), "{line}: {report:?}");
        }
        assert!(!report.iter().any(|line| line.contains("cannot be flown")), "{report:?}");
    }

    /// A scene is the same scene at any longitude, the date line among them.
    #[test]
    fn a_scenario_across_the_date_line_is_the_one_at_any_other_longitude() {
        let routes = |longitude_deg: f64, spread: &[f64]| {
            let wrapped = |deg: f64| deg - 360.0 * ((deg + 180.0) / 360.0).floor();
            let scene: String = (0..)
                .zip(spread)
                .map(|(number, off)| {
                    let (from, to) = (wrapped(longitude_deg + off), wrapped(longitude_deg + off + 0.002));
                    format!(
                        "0>CRE D{number} M600 -16.8 {from:.7} 90 82.021 10\n0>ADDWPT D{number} -16.8 {to:.7} 82.021\n"
                    )
                })
                .collect();
            let Import { plan, report } = import("line", &scene).unwrap();
            assert!(
                !report.iter().any(|line| line.contains("with a height")),
                "the height is its own: {report:?}"
            );
            let plan = Plan::parse(&plan, Path::new(".")).unwrap();
            let flight = plan.own.unwrap().flight.remove(0);
            flight.aircraft.into_iter().map(|aircraft| aircraft.east_north_m).collect::<Vec<_>>()
        };
        for spread in [&[0.0, 0.001][..], &[0.0, -0.001, 0.003], &[0.0]] {
            let expected = routes(10.0, spread);
            assert!((expected[0][1][0] - expected[0][0][0] - 213.2).abs() < 0.2, "eastward: {expected:?}");
            for longitude_deg in [179.999, -179.999, 180.0, -180.0, 0.0, 179.9985, -90.0] {
                let found = routes(longitude_deg, spread);
                for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
                    let off_m = (found[0] - expected[0]).hypot(found[1] - expected[1]);
                    assert!(off_m < 0.03, "{longitude_deg}: {found:?} {expected:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_scenario_is_named() {
        for (text, message) in [
            ("", "found no CRE"),
            ("0>CRE U1 M600 A1 0 0 0", "place: found \"A1\""),
            ("0>CRE U1 M600 1 2 0 0", "line 1"),
            ("0>CRE U1 M600 1 2 0 0 fast", "speed: found \"fast\", expected a number"),
            ("0>CRE U1 M600 91 2 0 0 5", "expected ±90"),
            ("0>CRE U1 M600 1 2 0 0 5\n0>CRE u1 M600 1 2 0 0 5", "found \"u1\" twice"),
            ("0>CRE U1 M600 1 2 0 FLx 5", "height: found \"x\""),
            ("0>WIND 0 0", "WIND: found no direction"),
            ("0>CRE", "found no name"),
        ] {
            let found = format!("{:#}", import("x", text).unwrap_err());
            assert!(found.contains(message), "{text}: {found}");
        }
        let airliner = import("x", "0>CRE KL1 B744 0 0 90 FL200 300").unwrap();
        assert!(airliner.report.iter().any(|line| line.contains("cannot be flown as it is")), "{airliner:?}");
    }
}
