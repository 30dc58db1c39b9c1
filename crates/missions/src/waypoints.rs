//! QGC WPL 110, the plain text of MAVLink's file formats (<https://mavlink.io/en/file_formats/>):
//! a header, then one item per line in twelve columns; item 0 is home, as ArduPilot keeps it.

use std::fmt::Write;

use wingbeat_geo::Position;

use crate::{
    Altitude, Datum, Item, Limits, Location, Mission, Note, Place, Problem,
    command::{self, Part, Raw},
    error::{Fault, shown, title},
    first_line,
};

const HEADER: &str = "QGC WPL 110";

/// Names of the columns for messages.
const COLUMNS: [&str; 12] = [
    "sequence number",
    "current",
    "frame",
    "command",
    "parameter 1",
    "parameter 2",
    "parameter 3",
    "parameter 4",
    "latitude",
    "longitude",
    "altitude",
    "autocontinue",
];

pub(crate) fn parse(name: &str, text: &str, limits: &Limits) -> Result<Mission, Fault> {
    if !first_line(text).split_whitespace().eq(HEADER.split_whitespace()) {
        let problem = Problem::Version { found: shown(first_line(text)), expected: HEADER };
        return Err(Fault::line(1, problem));
    }
    let (mut items, mut left_out, mut planned_home) = (Vec::new(), 0, None);
    let mut expected = 0;
    for (index, text) in text.lines().enumerate().skip(1) {
        if text.trim().is_empty() {
            continue;
        }
        let line = index + 1;
        let (sequence, raw) = row(line, text)?;
        if sequence != expected {
            return Err(Fault::new(
                Location::Column { line, column: 1 },
                Problem::Sequence { found: sequence, expected },
            ));
        }
        expected += 1;
        if sequence == 0 {
            planned_home = home(line, &raw)?;
            continue;
        }
        match raw.item(limits) {
            Ok(Some(item)) => items.push((item, Location::Line(line))),
            Ok(None) => left_out += 1,
            Err((part, problem)) => {
                return Err(Fault::new(Location::Column { line, column: column(part) }, problem));
            }
        }
        if items.len() + left_out > limits.items_max {
            return Err(Fault::line(line, limits.too_many_items()));
        }
    }
    let items = limits.check(items, planned_home)?;
    let notes = (left_out > 0).then_some(Note::PayloadLeftOut { commands: left_out }).into_iter().collect();
    Ok(Mission { name: title(name), items, speed_m_s: None, planned_home, notes })
}

/// The column, from 1, of a part of an item.
fn column(part: Part) -> usize {
    match part {
        Part::Frame => 3,
        Part::Command => 4,
        Part::Param(index) => 5 + index,
    }
}

/// The twelve columns of a line.
fn row(line: usize, text: &str) -> Result<(u32, Raw), Fault> {
    let found = text.split_whitespace().count();
    if found != COLUMNS.len() {
        return Err(Fault::line(line, Problem::Columns { found }));
    }
    let mut columns = [""; 12];
    columns.iter_mut().zip(text.split_whitespace()).for_each(|(slot, text)| *slot = text);
    let refused = |index: usize, expected| {
        let problem = Problem::Value { what: COLUMNS[index], found: shown(columns[index]), expected };
        Fault::new(Location::Column { line, column: index + 1 }, problem)
    };
    let integer =
        |index: usize| columns[index].parse::<u32>().map_err(|_| refused(index, "a whole number from 0"));
    let number = |index: usize| {
        let value = columns[index].parse::<f64>().ok().filter(|value| value.is_finite());
        value.ok_or_else(|| refused(index, "a finite number"))
    };
    for index in [1, 11] {
        if !matches!(columns[index], "0" | "1") {
            return Err(refused(index, "0 or 1"));
        }
    }
    let mut params = [None; 7];
    for (index, param) in params.iter_mut().enumerate() {
        *param = Some(number(4 + index)?);
    }
    Ok((integer(0)?, Raw { command: integer(3)?, frame: integer(2)?, params }))
}

/// Item 0: where the author expected the aircraft to start; all zeros where nobody knew.
fn home(line: usize, raw: &Raw) -> Result<Option<Position>, Fault> {
    if raw.command != command::WAYPOINT {
        let problem = Problem::Value {
            what: "item 0",
            found: format!("command {}", raw.command).into(),
            expected: "home (command 16)",
        };
        return Err(Fault::new(Location::Column { line, column: column(Part::Command) }, problem));
    }
    let [.., latitude_deg, longitude_deg, altitude_m] = raw.params.map(Option::unwrap_or_default);
    let home = Position::from_degrees(latitude_deg, longitude_deg, altitude_m)
        .map_err(|error| Fault::line(line, command::position_problem(error)))?;
    if (home.latitude_e7, home.longitude_e7) == (0, 0) {
        return Ok(None);
    }
    if !matches!(raw.frame, 0 | 5) {
        let problem = Problem::Value {
            what: "frame of home",
            found: raw.frame.to_string().into(),
            expected: "0 (above sea level)",
        };
        return Err(Fault::new(Location::Column { line, column: column(Part::Frame) }, problem));
    }
    Ok(Some(home))
}

/// The mission as QGC WPL 110. [`crate::read`] gives the same items and planned home back; the format
/// has no place for the name, the planned speed and the notes.
pub fn write_waypoints(mission: &Mission) -> String {
    let mut text = format!("{HEADER}\n");
    let home = mission.planned_home.unwrap_or_default();
    let mut sequence = 0;
    let mut line = |current, frame, command, params: [f64; 2], place: Place, altitude_mm| {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{sequence}\t{current}\t{frame}\t{command}\t{}\t{}\t0\t0\t{}\t{}\t{}\t1",
            params[0],
            params[1],
            decimal(place.latitude_e7, 7),
            decimal(place.longitude_e7, 7),
            decimal(altitude_mm, 3),
        );
        sequence += 1;
    };
    let nowhere = Place { latitude_e7: 0, longitude_e7: 0 };
    line(1, command::FRAME_SEA_LEVEL, command::WAYPOINT, [0.0; 2], home.into(), home.altitude_mm);
    for item in &mission.items {
        match *item {
            Item::TakeOff { altitude } => {
                line(0, frame(altitude), command::TAKE_OFF, [0.0; 2], nowhere, altitude.value_mm);
            }
            Item::Waypoint { place, altitude, hold_s } => {
                line(0, frame(altitude), command::WAYPOINT, [hold_s, 0.0], place, altitude.value_mm);
            }
            Item::Land { place } => {
                line(0, command::FRAME_HOME, command::LAND, [0.0; 2], place.unwrap_or(nowhere), 0);
            }
            Item::ReturnToLaunch => {
                line(0, command::FRAME_HOME, command::RETURN_TO_LAUNCH, [0.0; 2], nowhere, 0);
            }
            Item::ChangeSpeed { speed_m_s } => {
                line(0, command::FRAME_HOME, command::CHANGE_SPEED, [1.0, speed_m_s], nowhere, 0);
            }
        }
    }
    text
}

fn frame(altitude: Altitude) -> u32 {
    match altitude.datum {
        Datum::Home => command::FRAME_HOME,
        Datum::SeaLevel => command::FRAME_SEA_LEVEL,
    }
}

/// An integer with `places` decimals: exact, where a float might not come back the same.
fn decimal(value: i32, places: usize) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", value.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    format!("{sign}{whole}.{fraction}")
}
