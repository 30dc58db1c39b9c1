//! What a mission is once it has been read: the items that an aircraft can fly, and nothing else.

use std::fmt;

use wingbeat_geo::Position;

/// A mission, as an operator drew it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mission {
    /// The placemark's name (KML) or the file's name without extension.
    pub name: String,
    /// What to fly, in order.
    pub items: Vec<Item>,
    /// The speed the mission was planned for (a plan's `hoverSpeed`), until the first [`Item::ChangeSpeed`].
    pub speed_m_s: Option<f64>,
    /// Where its author expected the aircraft to start. Altitude above sea level.
    pub planned_home: Option<Position>,
    /// What the file states and is not flown, or is flown otherwise: for the operator.
    pub notes: Vec<Note>,
}

impl Mission {
    /// The navigation waypoints: where, how high, and how long to hold there in seconds.
    pub fn waypoints(&self) -> impl Iterator<Item = (LatLon, Altitude, f64)> + '_ {
        self.items.iter().filter_map(|item| match *item {
            Item::Waypoint { position, altitude, hold_s } => Some((position, altitude, hold_s)),
            _ => None,
        })
    }
}

/// One step of a mission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item {
    /// Climb straight up from wherever the aircraft stands (ArduCopter ignores the item's position).
    TakeOff {
        /// Where the climb ends.
        altitude: Altitude,
    },
    /// Fly to a point and hold there.
    Waypoint {
        /// Latitude and longitude.
        position: LatLon,
        /// Altitude with its reference.
        altitude: Altitude,
        /// How long to stay, in seconds. In AUTO ArduCopter counts whole seconds and drops the rest.
        hold_s: f64,
    },
    /// Land, there, or where the aircraft is.
    Land {
        /// Where; `None` is straight down.
        position: Option<LatLon>,
    },
    /// Fly home and land, at the height that the autopilot is configured for.
    ReturnToLaunch,
    /// From here on fly at this ground speed.
    ChangeSpeed {
        /// Ground speed.
        speed_m_s: f64,
    },
    /// Point the nose there on the way to the next waypoint.
    Yaw {
        /// Degrees clockwise from north, 0 to less than 360.
        yaw_deg: f64,
    },
}

/// A point on the map: latitude and longitude in 1e-7 degree, on the earth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LatLon {
    /// Latitude, 1e-7 degree, north positive.
    pub latitude_e7: i32,
    /// Longitude, 1e-7 degree, east positive.
    pub longitude_e7: i32,
}

impl LatLon {
    /// The position at a height above this point. `home_altitude_mm` is home's altitude above sea level.
    pub fn at(self, altitude: Altitude, home_altitude_mm: i32) -> Position {
        Position {
            latitude_e7: self.latitude_e7,
            longitude_e7: self.longitude_e7,
            altitude_mm: altitude.above_sea_level_mm(home_altitude_mm),
        }
    }
}

impl From<Position> for LatLon {
    fn from(position: Position) -> Self {
        Self { latitude_e7: position.latitude_e7, longitude_e7: position.longitude_e7 }
    }
}

/// A height and where it is measured from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Altitude {
    /// Millimetres above the datum.
    pub value_mm: i32,
    /// What it is measured from.
    pub datum: Datum,
}

/// What a height is measured from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Datum {
    /// Where the aircraft was armed (MAV_FRAME_GLOBAL_RELATIVE_ALT).
    Home,
    /// Mean sea level (MAV_FRAME_GLOBAL).
    SeaLevel,
}

impl Altitude {
    /// Millimetres above home, for a home at `home_altitude_mm` above sea level.
    pub fn above_home_mm(self, home_altitude_mm: i32) -> i32 {
        match self.datum {
            Datum::Home => self.value_mm,
            Datum::SeaLevel => self.value_mm.saturating_sub(home_altitude_mm),
        }
    }
    /// Millimetres above sea level, for a home at `home_altitude_mm` above sea level.
    pub fn above_sea_level_mm(self, home_altitude_mm: i32) -> i32 {
        match self.datum {
            Datum::Home => self.value_mm.saturating_add(home_altitude_mm),
            Datum::SeaLevel => self.value_mm,
        }
    }
}

/// Something in the file that is not part of the flight, or is flown otherwise than stated. Its text is one
/// line for the operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Note {
    /// The plan holds a fence of its own.
    FenceNotUsed {
        /// How many circles and polygons.
        shapes: usize,
    },
    /// The plan holds rally points.
    RallyPointsNotUsed {
        /// Number of points.
        points: usize,
    },
    /// Commands were left out, as [`crate::Limits::leave_out`] allows.
    CommandsLeftOut {
        /// Number of commands.
        commands: usize,
    },
    /// Camera, gimbal and servo commands were left out, as [`crate::Limits::leave_out_payload`] allows.
    PayloadLeftOut {
        /// Number of commands.
        commands: usize,
    },
    /// Items state an acceptance radius, a pass radius, a yaw, or the kind or altitude of a landing, which ArduCopter
    /// decides by its own parameters, or a value where the command has no parameter.
    ParametersNotUsed {
        /// Number of items.
        items: usize,
    },
    /// Items ask to wait for a command before the next (`autocontinue` 0), which ArduCopter does not.
    StopsNotFlown {
        /// Number of items.
        items: usize,
    },
    /// The take-off states a position that is not home. An aircraft takes off where it stands.
    TakeOffElsewhere {
        /// Distance of the position from home, if that is known, metres.
        from_home_m: Option<f64>,
    },
    /// Altitudes above sea level, which an aircraft flies as heights above its home.
    AltitudeAboveSeaLevel {
        /// Number of waypoints.
        waypoints: usize,
        /// The altitude of the home that the heights are measured from.
        home_altitude_m: f64,
    },
    /// Item 0 is ArduSim's placeholder for a home at sea level.
    HomeAtSeaLevel,
    /// A KML document holds points, polygons or tracks in addition to its paths.
    ShapesNotUsed {
        /// Number of shapes.
        shapes: usize,
    },
    /// KML points lay below the least height and were raised to it.
    AltitudeRaised {
        /// Number of points.
        points: usize,
        /// The height that they got.
        altitude_m: f64,
    },
    /// A KML path states heights and no mode; they count as heights above home.
    AltitudeWithoutMode,
    /// A KML path lies on the ground (`clampToGround`), so it has no heights.
    AltitudeFromLimits {
        /// The height that all its points got.
        altitude_m: f64,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FenceNotUsed { shapes } => {
                write!(f, "the plan's fence is not used: {shapes} circles or polygons")
            }
            Self::RallyPointsNotUsed { points } => {
                write!(f, "the plan's rally points are not used: {points}")
            }
            Self::PayloadLeftOut { commands } => {
                write!(f, "camera, gimbal, servo and relay commands are left out: {commands}")
            }
            Self::CommandsLeftOut { commands } => {
                write!(f, "commands are left out as the operator allowed: {commands}")
            }
            Self::ParametersNotUsed { items } => {
                write!(
                    f,
                    "items with an acceptance radius, a pass radius, a yaw, a kind or altitude of landing or another \
                     parameter that ArduCopter does not use: {items}"
                )
            }
            Self::StopsNotFlown { items } => {
                write!(f, "items with autocontinue 0, after which the aircraft does not wait: {items}")
            }
            Self::TakeOffElsewhere { from_home_m } => {
                f.write_str(
                    "the position of the take-off is not used: the aircraft takes off where it stands",
                )?;
                from_home_m.map_or(Ok(()), |from_home_m| write!(f, " ({from_home_m:.0} m from home)"))
            }
            Self::AltitudeAboveSeaLevel { waypoints, home_altitude_m } => {
                write!(
                    f,
                    "waypoints with an altitude above sea level, flown as a height above a home at \
                     {home_altitude_m} m: {waypoints}"
                )
            }
            Self::HomeAtSeaLevel => {
                f.write_str("the file's home is at sea level: all altitudes are flown as heights above home")
            }
            Self::ShapesNotUsed { shapes } => {
                write!(f, "points, polygons and tracks are not flown: {shapes}")
            }
            Self::AltitudeRaised { points, altitude_m } => {
                write!(f, "points raised to {altitude_m} m above home: {points}")
            }
            Self::AltitudeWithoutMode => f.write_str(
                "the path has heights and no altitudeMode (for KML they count for nothing then): flown as heights above home",
            ),
            Self::AltitudeFromLimits { altitude_m } => {
                write!(f, "the path is clamped to the ground: flown at {altitude_m} m above home")
            }
        }
    }
}
