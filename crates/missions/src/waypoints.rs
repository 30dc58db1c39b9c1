//! QGC WPL 110, the plain text of MAVLink's file formats (<https://mavlink.io/en/file_formats/>):
//! a header, then one item per line in twelve columns; item 0 is home, as ArduPilot keeps it.

use std::fmt::Write;

use wingbeat_geo::Position;

use crate::{
    Altitude, Datum, Item, LatLon, Limits, Location, Mission, Note, Problem,
    command::{self, Collected, NoYaw, Parsed, Part, Raw, Unused},
    error::{Fault, shown, title},
    first_line,
};

const HEADER: &str = "QGC WPL 110";

/// Command of item 0 in ArduSim's own files.
const NO_COMMAND: u32 = 0;

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
    let (mut collected, mut home) = (Collected::default(), Home::Unknown);
    let (mut unused, mut expected) = (Unused::new(NoYaw::Zero), 0);
    for (index, text) in text.lines().enumerate().skip(1) {
        if text.trim().is_empty() {
            continue;
        }
        let line = index + 1;
        let (sequence, raw) = row(line, text)?;
        if expected == 0 && sequence != 0 {
            return Err(Fault::new(
                Location::Column { line, column: 1 },
                Problem::HomeMissing { found: sequence },
            ));
        }
        if sequence != expected {
            return Err(Fault::new(
                Location::Column { line, column: 1 },
                Problem::Sequence { found: sequence, expected },
            ));
        }
        expected += 1;
        if sequence == 0 {
            home = Home::read(line, &raw)?;
            continue;
        }
        let parsed = raw.read(limits).map_err(|(part, problem)| {
            Fault::new(Location::Column { line, column: column(part) }, problem)
        })?;
        if let Parsed::Item(_) | Parsed::Delay(_) | Parsed::DelayAt(..) = parsed {
            unused.count(&raw);
        }
        let parsed = match parsed {
            Parsed::Item(item) => Parsed::Item(home.rebased(item)),
            other => other,
        };
        collected.take(parsed, Location::Line(line)).map_err(|problem| Fault::line(line, problem))?;
        if collected.count() > limits.items_max {
            return Err(Fault::line(line, limits.too_many_items()));
        }
    }
    let planned_home = home.planned();
    let mut notes: Vec<_> = collected.notes().collect();
    let items = limits.check(collected.items, planned_home)?;
    notes.extend(unused.notes(limits.home.or(planned_home)));
    if home == Home::SeaLevel {
        notes.push(Note::HomeAtSeaLevel);
    }
    notes.extend(limits.sea_level_note(&items, planned_home));
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
    let raw = Raw { command: integer(3)?, frame: integer(2)?, params, autocontinue: columns[11] == "1" };
    Ok((integer(0)?, raw))
}

/// What item 0 states.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Home {
    /// All zeros: the author did not know it.
    Unknown,
    /// All zeros and command 0: the placeholder of ArduSim's own files. ArduSim replaces item 0 by a home at
    /// altitude 0 and simulates there, so its altitudes above sea level are heights above home.
    SeaLevel,
    /// Where the author expected the aircraft to start.
    At(Position),
}

impl Home {
    fn read(line: usize, raw: &Raw) -> Result<Self, Fault> {
        if !matches!(raw.command, NO_COMMAND | command::WAYPOINT) {
            let problem = Problem::Value {
                what: "item 0",
                found: format!("command {}", raw.command).into(),
                expected: "home (command 16 or 0)",
            };
            return Err(Fault::new(Location::Column { line, column: column(Part::Command) }, problem));
        }
        let [.., latitude_deg, longitude_deg, altitude_m] = raw.params.map(Option::unwrap_or_default);
        let home = Position::from_degrees(latitude_deg, longitude_deg, altitude_m)
            .map_err(|error| Fault::line(line, command::position_problem(error)))?;
        if (home.latitude_e7, home.longitude_e7) == (0, 0) {
            let is_placeholder = raw.command == NO_COMMAND && home.altitude_mm == 0;
            return Ok(if is_placeholder { Self::SeaLevel } else { Self::Unknown });
        }
        if !matches!(raw.frame, 0 | 5) {
            let problem = Problem::Value {
                what: "frame of home",
                found: raw.frame.to_string().into(),
                expected: "0 (above sea level)",
            };
            return Err(Fault::new(Location::Column { line, column: column(Part::Frame) }, problem));
        }
        Ok(Self::At(home))
    }

    fn planned(self) -> Option<Position> {
        match self {
            Self::Unknown | Self::SeaLevel => None,
            Self::At(home) => Some(home),
        }
    }

    /// The item with its altitude above home, where home is at sea level.
    fn rebased(self, item: Item) -> Item {
        let above_home = |altitude: Altitude| Altitude { datum: Datum::Home, ..altitude };
        match (self, item) {
            (Self::SeaLevel, Item::TakeOff { altitude }) => Item::TakeOff { altitude: above_home(altitude) },
            (Self::SeaLevel, Item::Waypoint { position, altitude, hold_s }) => {
                Item::Waypoint { position, altitude: above_home(altitude), hold_s }
            }
            (_, item) => item,
        }
    }
}

/// The mission as QGC WPL 110. [`crate::read`] gives the same items and planned home back; the format
/// cannot state the name, the planned speed and the notes.
pub fn write_waypoints(mission: &Mission) -> String {
    let mut text = format!("{HEADER}\n");
    let home = mission.planned_home.unwrap_or_default();
    let mut sequence = 0;
    let mut line = |current, frame, command, params: [f64; 2], position: LatLon, altitude_mm| {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{sequence}\t{current}\t{frame}\t{command}\t{}\t{}\t0\t0\t{}\t{}\t{}\t1",
            params[0],
            params[1],
            decimal(position.latitude_e7, 7),
            decimal(position.longitude_e7, 7),
            decimal(altitude_mm, 3),
        );
        sequence += 1;
    };
    let nowhere = LatLon { latitude_e7: 0, longitude_e7: 0 };
    line(1, command::FRAME_SEA_LEVEL, command::WAYPOINT, [0.0; 2], home.into(), home.altitude_mm);
    for item in &mission.items {
        match *item {
            Item::TakeOff { altitude } => {
                line(0, frame(altitude), command::TAKE_OFF, [0.0; 2], nowhere, altitude.value_mm);
            }
            Item::Waypoint { position, altitude, hold_s } => {
                line(0, frame(altitude), command::WAYPOINT, [hold_s, 0.0], position, altitude.value_mm);
            }
            Item::Land { position } => {
                line(0, command::FRAME_HOME, command::LAND, [0.0; 2], position.unwrap_or(nowhere), 0);
            }
            Item::ReturnToLaunch => {
                line(0, command::FRAME_HOME, command::RETURN_TO_LAUNCH, [0.0; 2], nowhere, 0);
            }
            Item::ChangeSpeed { speed_m_s } => {
                line(0, command::FRAME_HOME, command::CHANGE_SPEED, [1.0, speed_m_s], nowhere, 0);
            }
            Item::Yaw { yaw_deg } => {
                line(0, command::FRAME_HOME, command::YAW, [yaw_deg, 0.0], nowhere, 0);
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
pub(crate) fn decimal(value: i32, places: usize) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", value.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    format!("{sign}{whole}.{fraction}")
}
