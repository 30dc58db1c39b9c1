//! KML paths: every LineString is the mission of one aircraft, in file order (OGC 12-007r2).
//!
//! The elements are read with a streaming parser and a bound on their depth, so that a message can name
//! the line, and no nesting can exhaust the stack. Everything but Placemark names, LineString
//! coordinates, altitude modes and offsets is passed over.

use quick_xml::{
    Reader,
    escape::resolve_xml_entity,
    events::{BytesRef, Event},
};
use wingbeat_geo::Position;

use crate::{
    Altitude, Datum, Item, Limits, Location, Mission, Note, Problem,
    command::position_problem,
    error::{Fault, parser_message, shown, title},
};

/// The name of Google's altitude mode among the open elements.
const SEA_FLOOR_MODE: &str = "gx:altitudeMode";

/// Google Earth nests folders, a few levels deep.
const DEPTH_MAX: usize = 64;

/// A LineString as it stands in the file.
#[derive(Default)]
struct Path {
    line: usize,
    altitude_mode: String,
    /// Google's extension `gx:altitudeMode`; where both are stated it is the other that counts.
    sea_floor_mode: String,
    /// Google's extension `gx:altitudeOffset`.
    altitude_offset: String,
    coordinates: String,
    /// The element of the coordinates was there.
    has_coordinates: bool,
}

/// The paths of one Placemark.
#[derive(Default)]
struct Placemark {
    name: String,
    paths: Vec<Path>,
}

pub(crate) fn parse(stem: &str, text: &str, limits: &Limits) -> Result<Vec<Mission>, Fault> {
    let Document { placemarks, shapes, .. } = Document::new(text, limits).read()?;
    let paths = || placemarks.iter().flat_map(|p| p.paths.iter().map(move |path| (p.name.trim(), path)));
    let several = paths().count() > 1;
    if paths().next().is_none() {
        return Err(Fault::file(Problem::Unexpected {
            found: "no LineString".into(),
            expected: "at least one (a path)".into(),
        }));
    }
    let mut missions = Vec::new();
    for (index, (name, path)) in paths().enumerate() {
        let mut mission = mission(name, path, limits)?;
        if mission.name.is_empty() {
            mission.name = title(&if several { format!("{stem}-{}", index + 1) } else { stem.into() });
        }
        if shapes > 0 {
            mission.notes.push(Note::ShapesNotUsed { shapes });
        }
        missions.push(mission);
    }
    Ok(missions)
}

/// The streaming parser and where it stands.
struct Document<'a> {
    text: &'a str,
    limits: &'a Limits,
    reader: Reader<&'a [u8]>,
    /// Names of the open elements.
    open: Vec<String>,
    /// Bytes and lines that were counted so far.
    counted: (usize, usize),
    placemarks: Vec<Placemark>,
    paths: usize,
    /// Elements with coordinates that are no path.
    shapes: usize,
}

impl<'a> Document<'a> {
    fn new(text: &'a str, limits: &'a Limits) -> Self {
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        Self {
            text,
            limits,
            reader,
            open: Vec::new(),
            counted: (0, 1),
            placemarks: Vec::new(),
            paths: 0,
            shapes: 0,
        }
    }

    fn read(mut self) -> Result<Self, Fault> {
        let mut has_root = false;
        loop {
            // Before the event is read the position is where it starts.
            let start = self.reader.buffer_position();
            let event = match self.reader.read_event() {
                Ok(event) => event,
                Err(error) => {
                    let line = self.line(self.reader.error_position().max(start));
                    let found = format!("broken XML ({})", parser_message(&error.to_string()));
                    return Err(xml(line, found, "well-formed XML"));
                }
            };
            match event {
                Event::Start(element) => {
                    let line = self.line(start);
                    let name = match element.name().as_ref() {
                        b"gx:altitudeMode" => SEA_FLOOR_MODE.to_owned(),
                        _ => String::from_utf8_lossy(element.local_name().as_ref()).into_owned(),
                    };
                    if self.open.is_empty() && (name != "kml" || has_root) {
                        return Err(xml(
                            line,
                            format!("the element {}", shown(&name)),
                            "one element kml around all",
                        ));
                    }
                    has_root = true;
                    self.start(line, name)?;
                }
                Event::End(_) => {
                    // The parser has compared the names.
                    self.open.pop();
                }
                Event::Text(text) => {
                    let text = text.decode().map_err(|e| xml(self.line(start), e.to_string(), "text"))?;
                    self.append(&text);
                }
                Event::CData(text) => {
                    let text = text.decode().map_err(|e| xml(self.line(start), e.to_string(), "text"))?;
                    self.append(&text);
                }
                Event::GeneralRef(reference) => {
                    let text = resolved(&reference).ok_or_else(|| {
                        let name = String::from_utf8_lossy(&reference).into_owned();
                        xml(self.line(start), format!("the entity {}", shown(&name)), "one that XML defines")
                    })?;
                    self.append(&text);
                }
                Event::Eof => {
                    let line = self.line(self.text.len() as u64);
                    return match self.open.last() {
                        Some(name) => Err(xml(
                            line,
                            format!("the end of the file inside {}", shown(name)),
                            "its end tag (the file is truncated)",
                        )),
                        None if !has_root => {
                            Err(xml(line, "no XML element".into(), "one element kml around all"))
                        }
                        None => Ok(self),
                    };
                }
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Empty(_) => {}
            }
        }
    }

    fn start(&mut self, line: usize, name: String) -> Result<(), Fault> {
        if self.open.len() >= DEPTH_MAX {
            return Err(xml(line, format!("more than {DEPTH_MAX} elements inside each other"), "fewer"));
        }
        let in_path = self.parent() == Some("LineString");
        match name.as_str() {
            "Placemark" => self.placemarks.push(Placemark::default()),
            "Point" | "Polygon" | "Track" => self.shapes += 1,
            // A polygon's rings are inside it.
            "LinearRing" if !self.inside("Polygon") => self.shapes += 1,
            "LineString" => {
                self.paths += 1;
                if self.paths > self.limits.missions_max {
                    let limit = self.limits.missions_max;
                    return Err(Fault::line(
                        line,
                        Problem::TooMany { what: "missions (LineStrings)", limit },
                    ));
                }
                if !self.inside("Placemark") {
                    self.placemarks.push(Placemark::default());
                }
                let path = Path { line, ..Path::default() };
                if let Some(placemark) = self.placemarks.last_mut() {
                    placemark.paths.push(path);
                }
            }
            "coordinates" if in_path => {
                if let Some(path) = self.path() {
                    if path.has_coordinates {
                        return Err(xml(
                            line,
                            "coordinates a second time".into(),
                            "them once in a LineString",
                        ));
                    }
                    path.has_coordinates = true;
                }
            }
            _ => {}
        }
        self.open.push(name);
        Ok(())
    }

    /// Text goes to the element that it stands in, if that one matters.
    fn append(&mut self, text: &str) {
        let depth = self.open.len();
        let Some([parent, element]) = depth.checked_sub(2).and_then(|from| self.open.get(from..)) else {
            return;
        };
        match (parent.as_str(), element.as_str()) {
            ("Placemark", "name") => {
                if let Some(placemark) = self.placemarks.last_mut() {
                    placemark.name.push_str(text);
                }
            }
            ("LineString", "coordinates") => {
                if let Some(path) = self.path() {
                    path.coordinates.push_str(text);
                }
            }
            ("LineString", "altitudeMode") => {
                if let Some(path) = self.path() {
                    path.altitude_mode.push_str(text);
                }
            }
            ("LineString", SEA_FLOOR_MODE) => {
                if let Some(path) = self.path() {
                    path.sea_floor_mode.push_str(text);
                }
            }
            ("LineString", "altitudeOffset") => {
                if let Some(path) = self.path() {
                    path.altitude_offset.push_str(text);
                }
            }
            _ => {}
        }
    }

    fn parent(&self) -> Option<&str> {
        self.open.last().map(String::as_str)
    }
    fn inside(&self, name: &str) -> bool {
        self.open.iter().any(|open| open == name)
    }
    fn path(&mut self) -> Option<&mut Path> {
        self.placemarks.last_mut()?.paths.last_mut()
    }
    /// The line, from 1, of a byte; asked in ascending order, so that the text is counted once.
    fn line(&mut self, byte: u64) -> usize {
        let byte = usize::try_from(byte).unwrap_or(usize::MAX).min(self.text.len());
        let (from, line) = self.counted;
        if byte > from {
            let newlines = self.text.as_bytes()[from..byte].iter().filter(|&&b| b == b'\n').count();
            self.counted = (byte, line + newlines);
        }
        self.counted.1
    }
}

fn xml(line: usize, found: String, expected: &str) -> Fault {
    Fault::line(line, Problem::Unexpected { found: found.into(), expected: expected.into() })
}

/// A character reference or one of XML's five entities.
fn resolved(reference: &BytesRef<'_>) -> Option<String> {
    if let Some(character) = reference.resolve_char_ref().ok()? {
        return Some(character.into());
    }
    resolve_xml_entity(&reference.decode().ok()?).map(Into::into)
}

/// The mission of one path: take-off to the height of its first point, then its points.
fn mission(name: &str, path: &Path, limits: &Limits) -> Result<Mission, Fault> {
    let at = |point| Location::Placemark { name: name.into(), line: path.line, point };
    let stated = [&path.altitude_mode, &path.sea_floor_mode].map(|mode| mode.trim());
    let mode = stated.into_iter().find(|mode| !mode.is_empty()).unwrap_or_default();
    let datum = match mode {
        // clampToGround is KML's default; who states heights and no mode means the heights.
        "" if has_heights(&path.coordinates) => Some(Datum::Home),
        "" | "clampToGround" | "clampToSeaFloor" => None,
        "relativeToGround" | "relativeToSeaFloor" => Some(Datum::Home),
        "absolute" => Some(Datum::SeaLevel),
        other => {
            let expected = "clampToGround, relativeToGround or absolute";
            return Err(Fault::new(
                at(None),
                Problem::Value { what: "altitudeMode", found: shown(other), expected },
            ));
        }
    };
    let offset = path.altitude_offset.trim();
    if !offset.is_empty() && offset.parse() != Ok(0.0) {
        let (what, expected) = ("altitudeOffset", "0: the altitudes of the coordinates are flown");
        return Err(Fault::new(at(None), Problem::Value { what, found: shown(offset), expected }));
    }
    let lowest_m = limits.kml_altitude_min_m;
    let lowest_mm = Position::from_degrees(0.0, 0.0, lowest_m)
        .map_err(|error| Fault::new(at(None), position_problem(error)))?
        .altitude_mm;
    let (mut items, mut raised) = (Vec::new(), 0);
    for (index, text) in path.coordinates.split_whitespace().enumerate() {
        let point = || at(Some(index + 1));
        let refused = || {
            let expected = "longitude,latitude,altitude: finite numbers without blanks between";
            Fault::new(point(), Problem::Value { what: "coordinates", found: shown(text), expected })
        };
        let (longitude_deg, latitude_deg, altitude_m) = coordinate(text).ok_or_else(refused)?;
        let position = Position::from_degrees(latitude_deg, longitude_deg, altitude_m)
            .map_err(|error| Fault::new(point(), position_problem(error)))?;
        let altitude = match datum {
            None => Altitude { value_mm: lowest_mm, datum: Datum::Home },
            Some(Datum::Home) => {
                raised += usize::from(position.altitude_mm < lowest_mm);
                Altitude { value_mm: position.altitude_mm.max(lowest_mm), datum: Datum::Home }
            }
            Some(Datum::SeaLevel) => Altitude { value_mm: position.altitude_mm, datum: Datum::SeaLevel },
        };
        if items.is_empty() {
            items.push((Item::TakeOff { altitude }, point()));
        }
        items.push((Item::Waypoint { position: position.into(), altitude, hold_s: 0.0 }, point()));
        if items.len() > limits.items_max {
            return Err(Fault::new(point(), limits.too_many_items()));
        }
    }
    // Two points and the take-off.
    if items.len() < 3 {
        return Err(Fault::new(at(None), Problem::NoPath { found: items.len().saturating_sub(1) }));
    }
    let items = limits.check(items, None)?;
    let mut notes = Vec::new();
    if datum.is_none() {
        notes.push(Note::AltitudeFromLimits { altitude_m: lowest_m });
    }
    if datum.is_some() && mode.is_empty() {
        notes.push(Note::AltitudeWithoutMode);
    }
    if raised > 0 {
        notes.push(Note::AltitudeRaised { points: raised, altitude_m: lowest_m });
    }
    notes.extend(limits.sea_level_note(&items, None));
    Ok(Mission { name: title(name), items, speed_m_s: None, planned_home: None, notes })
}

/// Whether a path states a height other than 0.
fn has_heights(coordinates: &str) -> bool {
    coordinates.split_whitespace().filter_map(coordinate).any(|(_, _, altitude_m)| altitude_m != 0.0)
}

/// Longitude, latitude and altitude, which may be missing.
fn coordinate(text: &str) -> Option<(f64, f64, f64)> {
    let mut numbers = text.split(',').map(|text| text.parse::<f64>().ok().filter(|value| value.is_finite()));
    let (longitude_deg, latitude_deg) = (numbers.next()??, numbers.next()??);
    let altitude_m = numbers.next().unwrap_or(Some(0.0))?;
    numbers.next().is_none().then_some((longitude_deg, latitude_deg, altitude_m))
}
