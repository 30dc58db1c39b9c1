//! Fence and rally points: what an aircraft's flight controller holds, what is sent to it, and the fleet compared.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wingbeat_geo::Position;
use wingbeat_geo::region::{Area, POINTS_MAX};

/// A place on the ground.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroundPoint {
    /// Latitude, degrees.
    pub latitude_deg: f64,
    /// Longitude, degrees.
    pub longitude_deg: f64,
}

impl GroundPoint {
    /// In degrees.
    pub fn of(latitude_e7: i32, longitude_e7: i32) -> Self {
        Self { latitude_deg: f64::from(latitude_e7) / 1e7, longitude_deg: f64::from(longitude_e7) / 1e7 }
    }
    fn position(self) -> Result<Position, String> {
        Position::from_degrees(self.latitude_deg, self.longitude_deg, 0.0).map_err(|error| error.to_string())
    }
}

/// An area of a fence. An aircraft keeps inside of every inclusion and outside of every exclusion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "shape", rename_all = "snake_case", deny_unknown_fields)]
pub enum FenceArea {
    /// A polygon, its last corner joined to the first.
    Polygon {
        /// Whether the aircraft must be inside (true) or outside.
        inclusion: bool,
        /// The corners.
        #[schema(min_items = 3, max_items = 127)]
        corners: Vec<GroundPoint>,
    },
    /// A circle.
    Circle {
        /// Whether the aircraft must be inside (true) or outside.
        inclusion: bool,
        /// Its centre.
        centre: GroundPoint,
        /// Its radius, metres.
        #[schema(minimum = 1, maximum = 100_000)]
        radius_m: f64,
    },
}

/// A rally point: where an aircraft returns to instead of home, if it is nearer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RallyPoint {
    /// Latitude, degrees.
    pub latitude_deg: f64,
    /// Longitude, degrees.
    pub longitude_deg: f64,
    /// Height above home, metres: the flight controller keeps whole ones.
    #[schema(minimum = 0, maximum = 10_000)]
    pub height_m: i16,
}

/// PUT body: a fence, rally points, or both. What is absent is left as it is; an empty list is cleared. Nothing is sent while motors are
/// armed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// The areas of the fence, of at most 127 corners and centres together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Vec<FenceArea>>,
    /// Rally points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 127)]
    pub rally: Option<Vec<RallyPoint>>,
}

/// An area that was checked.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckedArea {
    /// A polygon: whether the aircraft must be inside, and its corners.
    Polygon(bool, Vec<Position>),
    /// A circle: whether the aircraft must be inside, its centre, its radius in metres.
    Circle(bool, Position, f64),
}

impl CheckedArea {
    /// As it is reckoned with.
    pub fn area(&self) -> Area<'_> {
        match self {
            Self::Polygon(is_inclusion, corners) => Area::Polygon { is_inclusion: *is_inclusion, corners },
            Self::Circle(is_inclusion, centre, radius_m) => {
                Area::Circle { is_inclusion: *is_inclusion, centre: *centre, radius_m: *radius_m }
            }
        }
    }
}

/// Checks the areas of a fence.
///
/// # Errors
/// The first thing that is wrong, and where it stands.
pub fn check_fence(fence: &[FenceArea]) -> Result<Vec<CheckedArea>, String> {
    let mut checked = Vec::with_capacity(fence.len().min(POINTS_MAX));
    let mut points = 0;
    for (i, area) in fence.iter().enumerate() {
        let named = |what: &str, why: String| format!("fence[{i}]{what}: {why}");
        let (one, count) = match area {
            FenceArea::Polygon { inclusion, corners } => {
                let positions: Result<Vec<_>, _> = corners
                    .iter()
                    .enumerate()
                    .map(|(j, corner)| corner.position().map_err(|why| named(&format!(".corners[{j}]"), why)))
                    .collect();
                (CheckedArea::Polygon(*inclusion, positions?), corners.len())
            }
            FenceArea::Circle { inclusion, centre, radius_m } => {
                let centre = centre.position().map_err(|why| named(".centre", why))?;
                (CheckedArea::Circle(*inclusion, centre, *radius_m), 1)
            }
        };
        points += count;
        if points > POINTS_MAX {
            return Err(format!(
                "fence: found {points} corners and centres or more, expected at most {POINTS_MAX}"
            ));
        }
        one.area().check().map_err(|why| named("", why.to_string()))?;
        checked.push(one);
    }
    Ok(checked)
}

/// Checks rally points.
///
/// # Errors
/// The first thing that is wrong, and where it stands.
pub fn check_rally(rally: &[RallyPoint]) -> Result<Vec<(Position, i16)>, String> {
    let found = rally.len();
    if found > POINTS_MAX {
        return Err(format!("rally: found {found} points, expected at most {POINTS_MAX}"));
    }
    let one = |(i, point): (usize, &RallyPoint)| {
        let place = GroundPoint { latitude_deg: point.latitude_deg, longitude_deg: point.longitude_deg };
        let position = place.position().map_err(|why| format!("rally[{i}]: {why}"))?;
        if !(0..=10_000).contains(&point.height_m) {
            return Err(format!("rally[{i}].height_m: found {}, expected 0 to 10000", point.height_m));
        }
        Ok((position, point.height_m))
    };
    rally.iter().enumerate().map(one).collect()
}

/// What an aircraft is doing about its fence and rally points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RegionWork {
    /// Nothing.
    #[default]
    None,
    /// It reads them.
    Reading,
    /// It writes them, and reads them back.
    Writing,
}

/// The fence and the rally points of an aircraft as its flight controller held them when they were read last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RegionState {
    /// What it is doing.
    pub work: RegionWork,
    /// The fence; absent until it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Vec<FenceArea>>,
    /// The rally points; absent until they were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rally: Option<Vec<RallyPoint>>,
    /// Time since the last of them was read completely, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// What went wrong with the last request, a line each: with none, what was sent was read back equal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// How home and the route lie in the fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

/// Body: whose fence and rally points are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetRegionRead {
    /// Ids; empty for every aircraft.
    pub vehicles: Vec<String>,
}

/// Body: a fence, rally points or both for many aircraft.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetRegionWrite {
    /// Ids; empty for every aircraft.
    pub vehicles: Vec<String>,
    /// What each is sent.
    pub region: Region,
}

/// The fence and the rally points of one aircraft.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VehicleRegion {
    /// The aircraft's id.
    pub id: String,
    /// What it answers; absent where it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<RegionState>,
    /// Why it does not answer, or what it refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What it holds otherwise than it was sent by this service, or otherwise than the first aircraft where nothing was sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

/// The fences and the rally points of the aircraft.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FleetRegions {
    /// Each aircraft that was asked.
    pub vehicles: Vec<VehicleRegion>,
}

/// A file with a fence or rally points: a QGroundControl plan, or GeoJSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RegionFile {
    /// Its name, for messages.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RegionFileContent {
    /// The fence and the rally points, each where the file has some.
    pub region: Region,
    /// What of the file is not used.
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(latitude_deg: f64, longitude_deg: f64) -> GroundPoint {
        GroundPoint { latitude_deg, longitude_deg }
    }

    #[test]
    fn what_is_wrong_with_a_fence_is_named_with_its_place() {
        let corners = vec![at(39.48, -0.35), at(39.48, -0.34), at(39.49, -0.34)];
        let good = FenceArea::Polygon { inclusion: true, corners: corners.clone() };
        let circle = |radius_m| FenceArea::Circle { inclusion: false, centre: at(39.48, -0.34), radius_m };
        assert_eq!(check_fence(&[good.clone(), circle(20.0)]).map(|areas| areas.len()), Ok(2));
        let two = FenceArea::Polygon { inclusion: true, corners: corners[..2].to_vec() };
        let off =
            FenceArea::Polygon { inclusion: true, corners: [corners.as_slice(), &[at(91.0, 0.0)]].concat() };
        for (fence, message) in [
            (vec![good.clone(), two], "fence[1]: found 2 corners, expected at least 3"),
            (vec![off], "fence[0].corners[3]: latitude 91 is not within -90..90 degrees"),
            (vec![circle(0.0)], "fence[0]: radius_m: found 0, expected 1 to 100000"),
            (vec![circle(9.0); 128], "fence: found 128 corners and centres or more, expected at most 127"),
        ] {
            assert_eq!(check_fence(&fence), Err(message.to_owned()));
        }
        let rally = |height_m| RallyPoint { latitude_deg: 39.48, longitude_deg: -0.34, height_m };
        assert!(check_rally(&[rally(20)]).is_ok());
        assert_eq!(
            check_rally(&[rally(20), rally(-1)]),
            Err("rally[1].height_m: found -1, expected 0 to 10000".to_owned())
        );
    }
}
