//! One message per bad file: what, where, found, expected, on one line.

use std::{fmt, io, path::Path};

/// Why a file is not a mission. Its text is one line: file, location, found, expected.
#[derive(Debug, thiserror::Error)]
#[error("{}{at}: {problem}", escaped(&path.to_string_lossy()))]
pub struct Error {
    /// The file, as the caller named it.
    pub path: Box<Path>,
    /// Location in the file.
    pub at: Location,
    /// What is wrong there.
    pub problem: Problem,
}

/// A location in a file. Its text starts with a comma, or is empty for the whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// The file as a whole.
    File,
    /// A line, from 1.
    Line(usize),
    /// A column of a QGC WPL line, both from 1.
    Column {
        /// Line.
        line: usize,
        /// Column.
        column: usize,
    },
    /// A field of a JSON document: `mission.items[3].params[6]`.
    Field(Box<str>),
    /// A KML placemark, by its name (possibly empty) and the line of its LineString.
    Placemark {
        /// The placemark's name.
        name: Box<str>,
        /// Line of the LineString, from 1.
        line: usize,
        /// Point of the LineString, from 1.
        point: Option<usize>,
    },
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => Ok(()),
            Self::Line(line) => write!(f, ", line {line}"),
            Self::Column { line, column } => write!(f, ", line {line}, column {column}"),
            Self::Field(path) => write!(f, ", {path}"),
            Self::Placemark { name, line, point } => {
                write!(f, ", placemark {} (line {line})", shown(name))?;
                point.map_or(Ok(()), |point| write!(f, ", point {point}"))
            }
        }
    }
}

/// What can be wrong with a mission file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The operating system did not hand the file out.
    #[error("found a file that cannot be read ({0}), expected a readable file")]
    Unreadable(io::Error),
    /// A directory, a device, a pipe.
    #[error("found {found}, expected a regular file")]
    NotAFile {
        /// The kind of file system entry that was found.
        found: &'static str,
    },
    /// Nothing but white space.
    #[error("found an empty file, expected {expected}")]
    Empty {
        /// The format that the name promises.
        expected: &'static str,
    },
    /// More bytes than the limit.
    #[error("found {found_bytes} bytes, expected at most {limit_bytes}")]
    TooLarge {
        /// Its size, or as much of it as was read.
        found_bytes: u64,
        /// [`crate::Limits::file_bytes_max`].
        limit_bytes: u64,
    },
    /// Not text.
    #[error("found bytes that are no text, expected text in UTF-8, UTF-16 with a byte order mark or Latin-1")]
    NotText,
    /// Neither the name nor the content is of a known format.
    #[error("found {found}, expected QGC WPL 110, a QGroundControl plan (JSON) or KML")]
    UnknownFormat {
        /// Its first line.
        found: Box<str>,
    },
    /// Another file type, or another version of the right one.
    #[error("found {found}, expected {expected}")]
    Version {
        /// The text that was found.
        found: Box<str>,
        /// The formats that are read.
        expected: &'static str,
    },
    /// Not JSON, not XML, cut off, or another kind of thing than belongs there.
    #[error("found {found}, expected {expected}")]
    Unexpected {
        /// The text that was found.
        found: Box<str>,
        /// What is expected in its place.
        expected: Box<str>,
    },
    /// A QGC WPL line without its twelve columns.
    #[error("found {found} columns, expected 12")]
    Columns {
        /// How many there are.
        found: usize,
    },
    /// A QGC WPL item out of sequence.
    #[error("found sequence number {found}, expected {expected}")]
    Sequence {
        /// The text that was found.
        found: u32,
        /// One more than the last.
        expected: u32,
    },
    /// A QGC WPL file whose first item is not the home.
    #[error(
        "found sequence number {found} first, expected item 0, which is the home: a line \"0 1 0 16 0 0 0 0 LATITUDE \
         LONGITUDE ALTITUDE 1\", or zeros for a home that is not known"
    )]
    HomeMissing {
        /// The sequence number of the first item.
        found: u32,
    },
    /// A value that is missing, not a finite number, or out of its range.
    #[error("{what}: found {found}, expected {expected}")]
    Value {
        /// Its name.
        what: &'static str,
        /// The text that was found.
        found: Box<str>,
        /// The values that are accepted.
        expected: &'static str,
    },
    /// A speed beyond the limit.
    #[error("speed: found {found_m_s} m/s, expected more than 0 and at most {limit_m_s} m/s")]
    Speed {
        /// The text that was found.
        found_m_s: f64,
        /// [`crate::Limits::speed_m_s`].
        limit_m_s: f64,
    },
    /// A MAVLink command that is not flown.
    #[error(
        "found command {number} ({name}), expected one of 16 (waypoint), 19 (loiter time), 20 (return to launch), \
         21 (land), 22 (take-off), 93 (delay), 115 (yaw), 178 (change speed), or leave it out (--leave-out {})",
        left_out_as(*.number, *.is_payload)
    )]
    Command {
        /// MAV_CMD.
        number: u32,
        /// Its MAVLink name, or that it has none that we know.
        name: &'static str,
        /// Whether it is a camera's, a gimbal's or a servo's.
        is_payload: bool,
    },
    /// A coordinate frame whose altitudes cannot be flown.
    #[error("found frame {number} ({name}), expected 0 or 5 (above sea level), 3 or 6 (above home)")]
    Frame {
        /// MAV_FRAME.
        number: u32,
        /// Its MAVLink name.
        name: &'static str,
    },
    /// Higher than the fence.
    #[error("found altitude {found_m} m above home, expected at most {fence_m} m (the fence)")]
    AboveFence {
        /// Height above home.
        found_m: f64,
        /// [`crate::Limits::fence_altitude_m`].
        fence_m: f64,
    },
    /// On the ground or under it.
    #[error("found altitude {found_m} m above home, expected more than 0 m")]
    NotAboveHome {
        /// Height above home.
        found_m: f64,
    },
    /// An altitude above sea level and nothing to compare it with.
    #[error("found an altitude above sea level and no home, expected a home to measure its height from")]
    NoHome,
    /// Too far away.
    #[error("found a point {distance_m:.0} m from {from}, expected at most {limit_m} m")]
    TooFar {
        /// Distance on the ground.
        distance_m: f64,
        /// What it was measured from.
        from: &'static str,
        /// [`crate::Limits::distance_from_home_m`].
        limit_m: f64,
    },
    /// Nothing to fly to.
    #[error("found no waypoint, expected at least 1")]
    NoWaypoints,
    /// A KML path that leads nowhere.
    #[error("found a LineString of {found} points, expected at least 2")]
    NoPath {
        /// How many there are.
        found: usize,
    },
    /// More than an autopilot holds.
    #[error("found more than {limit} {what}, expected at most {limit}")]
    TooMany {
        /// Items or missions.
        what: &'static str,
        /// The largest number that is accepted.
        limit: usize,
    },
    /// An item that cannot be flown where it stands.
    #[error("found {found}, expected {expected}")]
    Order {
        /// The text that was found.
        found: &'static str,
        /// What is expected in its place.
        expected: &'static str,
    },
}

/// The entry of `--leave-out` that leaves a command out.
fn left_out_as(number: u32, is_payload: bool) -> String {
    if is_payload { "payload".into() } else { number.to_string() }
}

/// A problem and its location, before the file is known.
#[derive(Debug)]
pub(crate) struct Fault {
    at: Location,
    problem: Problem,
}

impl Fault {
    pub(crate) fn new(at: Location, problem: Problem) -> Self {
        Self { at, problem }
    }
    pub(crate) fn file(problem: Problem) -> Self {
        Self::new(Location::File, problem)
    }
    pub(crate) fn line(line: usize, problem: Problem) -> Self {
        Self::new(Location::Line(line), problem)
    }
    pub(crate) fn of(self, path: &Path) -> Error {
        Error { path: path.into(), at: self.at, problem: self.problem }
    }
}

/// Text from a file as a message may show it: quoted, on one line, of a length to read.
pub(crate) fn shown(text: &str) -> Box<str> {
    format!("\"{}\"", cut(&escaped(text), 40)).into()
}

/// A parser's message, which may quote the whole file.
pub(crate) fn parser_message(text: &str) -> String {
    cut(&escaped(text), 120)
}

fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Without the characters that would break the line or steer a terminal.
fn escaped(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { '\u{fffd}' } else { c })
        .collect()
}

/// A mission's name: one line of a length that a table shows.
pub(crate) fn title(text: &str) -> String {
    const CHARS_MAX: usize = 100;
    escaped(text).chars().take(CHARS_MAX).collect()
}
