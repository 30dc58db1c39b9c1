//! Mission files: QGC WPL 110, QGroundControl plans and KML paths become one checked value.
//!
//! [`read`] gives missions that an aircraft can fly, or one message that names the file, the location
//! in it, what was found and what was expected. A [`Mission`] that came out of it has at least one
//! waypoint and at most [`Limits::items_max`] items, takes off at most once and first, lands or returns
//! at most once and last, and no waypoint of it is above the fence, at or below home, or farther from
//! home than [`Limits`] allow. What the file states and is not flown, or is flown otherwise, is listed in
//! [`Mission::notes`]. Nothing here panics, whatever the bytes are.
//!
//! Text is UTF-8, UTF-16 with a byte order mark or, where it is neither, Latin-1; a KMZ archive is read by its document.
//!
//! The subset of each format is described in `docs/missions.md`.
#![forbid(unsafe_code)]

mod command;
mod error;
mod kml;
mod limits;
mod mission;
mod plan;
mod text;
mod waypoints;
mod write;

use std::{fs::File, io::Read, path::Path};

pub use error::{Error, Location, Problem};
pub use limits::{Limits, distance_m};
pub use mission::{Altitude, Datum, Item, LatLon, Mission, Note};
pub use text::decode;
pub use waypoints::write_waypoints;
pub use write::{write_kml, write_plan};

use error::{Fault, shown};

/// The mission formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Waypoints,
    Plan,
    Kml,
}

impl Format {
    /// A known extension decides; any other name leaves it to the first bytes.
    fn of(path: &Path, text: &str) -> Result<Self, Fault> {
        let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        match extension.as_deref() {
            Some("waypoints" | "txt") => return Ok(Self::Waypoints),
            Some("plan") => return Ok(Self::Plan),
            Some("kml" | "kmz") => return Ok(Self::Kml),
            _ => {}
        }
        let start = text.trim_start();
        match start.bytes().next() {
            Some(b'{') => Ok(Self::Plan),
            Some(b'<') => Ok(Self::Kml),
            _ if start.starts_with("QGC") => Ok(Self::Waypoints),
            _ => Err(Fault::file(Problem::UnknownFormat { found: shown(first_line(start)) })),
        }
    }
    fn name(self) -> &'static str {
        match self {
            Self::Waypoints => "a QGC WPL 110 mission",
            Self::Plan => "a QGroundControl plan",
            Self::Kml => "a KML document",
        }
    }
}

/// Reads the missions of a file: one from QGC WPL 110 (`.waypoints`, `.txt`) and from a QGroundControl
/// plan (`.plan`), one per LineString from KML (`.kml`). The format of a file of another name is found from its content.
///
/// # Errors
/// The first thing that is wrong, in file order; what can only be seen once the file is whole (height,
/// distance, order of items) comes last.
pub fn read(path: &Path, limits: &Limits) -> Result<Vec<Mission>, Error> {
    let bytes = load(path, limits).map_err(|fault| fault.of(path))?;
    parse(path, &bytes, limits)
}

/// The same for bytes that did not come from a disk, such as an upload: `path` gives the format and
/// the name in messages, and is not opened.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, bytes: &[u8], limits: &Limits) -> Result<Vec<Mission>, Error> {
    missions_of(path, bytes, limits).map_err(|fault| fault.of(path))
}

/// The text of a mission file, for a program that sends it elsewhere: decoded, and of a KMZ archive its document.
///
/// # Errors
/// As [`parse`].
pub fn text_of<'a>(path: &Path, bytes: &'a [u8]) -> Result<std::borrow::Cow<'a, str>, Error> {
    text::of_file(bytes, Limits::default().file_bytes_max).map_err(|fault| fault.of(path))
}

/// Checks a mission that was not read from a file, such as one that was drawn on a map, as strictly as [`parse`]. A
/// message names the mission and the waypoint, from 1.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(mission: &Mission, limits: &Limits) -> Result<(), Error> {
    let mut number = 0;
    let located = mission.items.iter().map(|item| {
        number += usize::from(matches!(item, Item::Waypoint { .. }));
        let at = match item {
            Item::Waypoint { .. } => Location::Field(format!("waypoint {number}").into()),
            Item::TakeOff { .. } => Location::Field("take-off".into()),
            Item::Land { .. } | Item::ReturnToLaunch => Location::Field("landing".into()),
            Item::ChangeSpeed { .. } => Location::Field(format!("speed to waypoint {}", number + 1).into()),
            Item::Yaw { .. } => Location::Field(format!("yaw to waypoint {}", number + 1).into()),
        };
        (*item, at)
    });
    let located: Vec<_> = located.collect();
    let stated = || {
        for (item, at) in &located {
            item.check(limits).map_err(|problem| Fault::new(at.clone(), problem))?;
        }
        if let Some(speed_m_s) = mission.speed_m_s {
            limits.speed(speed_m_s).map_err(Fault::file)?;
        }
        limits.check(located.clone(), mission.planned_home).map(drop)
    };
    stated().map_err(|fault| fault.of(Path::new(&mission.name)))
}

/// The bytes of a regular file that is not too large, never more of them than the limit.
fn load(path: &Path, limits: &Limits) -> Result<Vec<u8>, Fault> {
    let unreadable = |error| Fault::file(Problem::Unreadable(error));
    // Ask before opening: to open a pipe is to wait for its writer.
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        let found = if metadata.is_dir() { "a directory" } else { "a device or pipe" };
        return Err(Fault::file(Problem::NotAFile { found }));
    }
    fits(metadata.len(), limits.file_bytes_max)?;
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    // One byte more than allowed shows that a file that grows meanwhile is too large.
    file.take(limits.file_bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

fn fits(found_bytes: u64, limit_bytes: u64) -> Result<(), Fault> {
    if found_bytes <= limit_bytes {
        return Ok(());
    }
    Err(Fault::file(Problem::TooLarge { found_bytes, limit_bytes }))
}

fn missions_of(path: &Path, bytes: &[u8], limits: &Limits) -> Result<Vec<Mission>, Fault> {
    fits(bytes.len() as u64, limits.file_bytes_max)?;
    let text = text::of_file(bytes, limits.file_bytes_max)?;
    let text = text.as_ref();
    if text.trim().is_empty() {
        let expected = Format::of(path, "").map_or("a mission", Format::name);
        return Err(Fault::file(Problem::Empty { expected }));
    }
    let stem = path.file_stem().map_or_else(|| "mission".into(), |s| s.to_string_lossy());
    match Format::of(path, text)? {
        Format::Waypoints => Ok(vec![waypoints::parse(&stem, text, limits)?]),
        Format::Plan => Ok(vec![plan::parse(&stem, text, limits)?]),
        Format::Kml => kml::parse(&stem, text, limits),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("")
}
