//! QGroundControl plans: JSON of file type "Plan" version 1 with a mission of version 2
//! (<https://docs.qgroundcontrol.com/master/en/qgc-dev-guide/file_formats/plan.html>).
//!
//! Simple items are MAVLink items. Complex items (survey, corridor scan, structure scan) carry the
//! simple items that they were expanded to in `TransectStyleComplexItem.Items`: those are flown.

use serde_json::{Map, Value};
use wingbeat_geo::Position;

use crate::{
    Limits, Location, Mission, Note, Problem,
    command::{Collected, NoYaw, Parsed, Part, Raw, Unused, position_problem},
    error::{Fault, shown, title},
};

const JSON: &str = "a QGroundControl plan (JSON)";

pub(crate) fn parse(name: &str, text: &str, limits: &Limits) -> Result<Mission, Fault> {
    let document: Value = serde_json::from_str(text).map_err(|error| syntax(text, &error))?;
    let root = Node { value: &document, path: String::new() };
    let file_type = root.get("fileType")?;
    if file_type.value.as_str() != Some("Plan") {
        return Err(file_type.version("\"Plan\""));
    }
    root.get("version")?.expect_version(1, "version 1 of the plan format")?;
    let mission = root.get("mission")?;
    let version = mission.get("version")?;
    if ![Some(1), Some(2)].contains(&version.value.as_u64()) {
        return Err(version.version("version 1 or 2 of the plan's mission"));
    }

    let planned_home = match mission.find("plannedHomePosition")? {
        Some(home) => Some(home.position()?),
        None => None,
    };
    let speed_m_s = match mission.find("hoverSpeed")? {
        Some(node) => Some(limits.speed(node.number()?).map_err(|problem| node.fault(problem))?),
        None => None,
    };
    let mut items = Items { limits, collected: Collected::default(), unused: Unused::new(NoYaw::Null) };
    for item in mission.get("items")?.elements()? {
        items.add(&item)?;
    }
    let Items { collected, unused, .. } = items;
    let mut notes: Vec<_> = collected.notes().collect();
    let items = limits.check(collected.items, planned_home)?;
    notes.extend(unused.notes(limits.home.or(planned_home)));
    notes.extend(limits.sea_level_note(&items, planned_home));
    if let Some(fence) = root.find("geoFence")? {
        let shapes = fence.count("circles")? + fence.count("polygons")? + fence.count("polygon")?.min(1);
        if shapes > 0 {
            notes.push(Note::FenceNotUsed { shapes });
        }
    }
    if let Some(rally) = root.find("rallyPoints")? {
        let points = rally.count("points")?;
        if points > 0 {
            notes.push(Note::RallyPointsNotUsed { points });
        }
    }
    Ok(Mission { name: title(name), items, speed_m_s, planned_home, notes })
}

/// What the JSON parser found, at its line.
fn syntax(text: &str, error: &serde_json::Error) -> Fault {
    let (line, column) = (error.line(), error.column());
    if error.is_eof() {
        let problem = Problem::Unexpected {
            found: "the end of the file".into(),
            expected: format!("the rest of {JSON}").into(),
        };
        return Fault::line(line, problem);
    }
    // The parser counts bytes and stops at the end of what it refuses: show what led there. A plan may
    // be a single line, so not all of it.
    let row = text.lines().nth(line.saturating_sub(1)).unwrap_or("");
    let from = column.min(row.len()).saturating_sub(30);
    let from = (0..=from).rev().find(|&at| row.is_char_boundary(at)).unwrap_or(0);
    let message = error.to_string();
    // "… at line 3 column 7": the location is known already.
    let reason = message.split(" at line ").next().unwrap_or("");
    let found = format!("{} ({reason})", shown(row[from..].trim()));
    Fault::new(
        Location::Column { line, column },
        Problem::Unexpected { found: found.into(), expected: JSON.into() },
    )
}

/// The items of a mission while they are read.
struct Items<'a> {
    limits: &'a Limits,
    collected: Collected,
    unused: Unused,
}

impl Items<'_> {
    /// A simple item, or the simple items inside a complex one.
    fn add(&mut self, node: &Node<'_>) -> Result<(), Fault> {
        let kind = node.get("type")?;
        match kind.text()? {
            "SimpleItem" => self.add_simple(node),
            "ComplexItem" => {
                let complex = node.find("TransectStyleComplexItem")?;
                let inner = match complex {
                    Some(complex) => complex.find("Items")?,
                    None => None,
                };
                let Some(inner) = inner else {
                    let name = node.find("complexItemType")?.map_or("of no type".into(), |n| n.shown());
                    return Err(node.fault(Problem::Unexpected {
                        found: format!("a complex item ({name}) without TransectStyleComplexItem.Items")
                            .into(),
                        expected: "a simple item, or a survey that was saved with its items".into(),
                    }));
                };
                inner.elements()?.try_for_each(|item| self.add_simple(&item))
            }
            _ => Err(kind.unexpected("\"SimpleItem\" or \"ComplexItem\"")),
        }
    }

    fn add_simple(&mut self, node: &Node<'_>) -> Result<(), Fault> {
        let params = node.get("params")?;
        // QGroundControl up to 3.2 has the last three in a list of their own.
        let coordinate = node.find("coordinate")?;
        let expected = if coordinate.is_some() { 4 } else { 7 };
        let of_coordinate = match &coordinate {
            Some(coordinate) if coordinate.list()?.len() != 3 => {
                return Err(coordinate.unexpected("[latitude, longitude, altitude]"));
            }
            Some(coordinate) => coordinate.elements()?.collect(),
            None => Vec::new(),
        };
        if params.list()?.len() != expected {
            let found = format!("{} values", params.list()?.len()).into();
            return Err(params.fault(Problem::Unexpected { found, expected: expected.to_string().into() }));
        }
        let mut raw = Raw {
            command: node.get("command")?.integer()?,
            frame: node.get("frame")?.integer()?,
            params: [None; 7],
            autocontinue: match node.find("autoContinue")? {
                Some(node) => node.value.as_bool().ok_or_else(|| node.unexpected("true or false"))?,
                None => true,
            },
        };
        for (param, element) in raw.params.iter_mut().zip(params.elements()?.chain(of_coordinate)) {
            *param = if element.value.is_null() { None } else { Some(element.number()?) };
        }
        let parsed = raw.read(self.limits).map_err(|(part, problem)| {
            let field = match part {
                Part::Command => format!("{}.command", node.path),
                Part::Frame => format!("{}.frame", node.path),
                Part::Param(index @ 4..) if coordinate.is_some() => {
                    format!("{}.coordinate[{}]", node.path, index - 4)
                }
                Part::Param(index) => format!("{}.params[{index}]", node.path),
            };
            Fault::new(Location::Field(field.into()), problem)
        })?;
        if let Parsed::Item(_) | Parsed::Delay(_) | Parsed::DelayAt(..) = parsed {
            self.unused.count(&raw);
        }
        let at = Location::Field(node.path.as_str().into());
        self.collected.take(parsed, at).map_err(|problem| node.fault(problem))?;
        if self.collected.count() > self.limits.items_max {
            return Err(node.fault(self.limits.too_many_items()));
        }
        Ok(())
    }
}

/// A JSON value and the path that led to it.
struct Node<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> Node<'a> {
    fn fault(&self, problem: Problem) -> Fault {
        let at =
            if self.path.is_empty() { Location::File } else { Location::Field(self.path.as_str().into()) };
        Fault::new(at, problem)
    }
    fn unexpected(&self, expected: &str) -> Fault {
        self.fault(Problem::Unexpected { found: self.shown(), expected: expected.into() })
    }
    fn version(&self, expected: &'static str) -> Fault {
        self.fault(Problem::Version { found: self.shown(), expected })
    }
    /// The value for a message; what is long is named by its kind.
    fn shown(&self) -> Box<str> {
        match self.value {
            Value::String(text) => shown(text),
            Value::Array(_) => "a list".into(),
            Value::Object(_) => "an object".into(),
            scalar => scalar.to_string().into(),
        }
    }
    fn child(&self, key: &str, value: &'a Value) -> Self {
        let path = if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) };
        Self { value, path }
    }
    fn object(&self) -> Result<&'a Map<String, Value>, Fault> {
        self.value.as_object().ok_or_else(|| self.unexpected("an object"))
    }
    /// A field that may be missing or null.
    fn find(&self, key: &str) -> Result<Option<Self>, Fault> {
        let value = self.object()?.get(key).filter(|value| !value.is_null());
        Ok(value.map(|value| self.child(key, value)))
    }
    /// A field that must be there.
    fn get(&self, key: &'static str) -> Result<Self, Fault> {
        self.find(key)?.ok_or_else(|| {
            self.child(key, self.value).fault(Problem::Unexpected {
                found: "nothing".into(),
                expected: format!("the field {key}").into(),
            })
        })
    }
    fn list(&self) -> Result<&'a [Value], Fault> {
        self.value.as_array().map(Vec::as_slice).ok_or_else(|| self.unexpected("a list"))
    }
    /// The elements of a list, each made when it is asked for: a file may hold millions.
    fn elements(&self) -> Result<impl Iterator<Item = Self>, Fault> {
        let node = |(index, value)| Self { value, path: format!("{}[{index}]", self.path) };
        Ok(self.list()?.iter().enumerate().map(node))
    }
    /// How many elements a list has that may be missing.
    fn count(&self, key: &'static str) -> Result<usize, Fault> {
        match self.find(key)? {
            Some(node) => Ok(node.list()?.len()),
            None => Ok(0),
        }
    }
    fn text(&self) -> Result<&'a str, Fault> {
        self.value.as_str().ok_or_else(|| self.unexpected("a text"))
    }
    fn number(&self) -> Result<f64, Fault> {
        let value = self.value.as_f64().filter(|value| value.is_finite());
        value.ok_or_else(|| self.unexpected("a finite number"))
    }
    fn integer(&self) -> Result<u32, Fault> {
        let value = self.value.as_u64().and_then(|value| u32::try_from(value).ok());
        value.ok_or_else(|| self.unexpected("a whole number from 0"))
    }
    fn expect_version(&self, version: u64, expected: &'static str) -> Result<(), Fault> {
        if self.value.as_u64() == Some(version) { Ok(()) } else { Err(self.version(expected)) }
    }
    /// Latitude, longitude, altitude above sea level.
    fn position(&self) -> Result<Position, Fault> {
        let elements: Vec<Self> = self.elements()?.take(4).collect();
        let [latitude, longitude, altitude] = elements.as_slice() else {
            return Err(self.unexpected("[latitude, longitude, altitude]"));
        };
        Position::from_degrees(latitude.number()?, longitude.number()?, altitude.number()?)
            .map_err(|error| self.fault(position_problem(error)))
    }
}
