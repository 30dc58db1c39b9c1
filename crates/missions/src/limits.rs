//! What a mission may ask for, and the last check of every mission.

use wingbeat_geo::{Frame, Position};

use crate::{Altitude, Datum, Item, LatLon, Location, Note, Problem, command, error::Fault};

/// What a mission may ask for. A limit that is not a number refuses everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// No item lies higher above home than this.
    pub fence_altitude_m: f64,
    /// No item lies farther from home than this, on the ground.
    pub distance_from_home_m: f64,
    /// No speed is greater.
    pub speed_m_s: f64,
    /// The height above home that KML points are raised to, and that a path clamped to the ground is
    /// flown at.
    pub kml_altitude_min_m: f64,
    /// Where the aircraft will really start, if it is known: it goes before the file's planned home.
    pub home: Option<Position>,
    /// Leave camera, gimbal, servo and relay commands out, with a note, instead of refusing the file.
    pub leave_out_payload: bool,
    /// Numbers of MAVLink commands that are left out, with a note, instead of refusing the file.
    pub leave_out: Vec<u32>,
    /// Longest mission.
    pub items_max: usize,
    /// Most missions in one file.
    pub missions_max: usize,
    /// Largest file.
    pub file_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // The open category of EU 2019/947, UAS.OPEN.010.
            fence_altitude_m: 120.0,
            distance_from_home_m: 5_000.0,
            // The upper end of ArduCopter's WPNAV_SPEED.
            speed_m_s: 20.0,
            // ArduSim's KMLMINALTITUDE.
            kml_altitude_min_m: 5.0,
            home: None,
            leave_out_payload: false,
            leave_out: Vec::new(),
            // What a Pixhawk holds (ArduPilot issue 2391).
            items_max: 700,
            missions_max: wingbeat_geo::AIRCRAFT_MAX,
            file_bytes_max: 5_000_000,
        }
    }
}

impl Item {
    /// What the item states by itself.
    pub(crate) fn check(&self, limits: &Limits) -> Result<(), Problem> {
        match *self {
            Self::Waypoint { hold_s, .. } => command::hold_s(hold_s).map(drop),
            Self::ChangeSpeed { speed_m_s } => limits.speed(speed_m_s).map(drop),
            Self::Yaw { yaw_deg } => command::yaw_deg(yaw_deg).map(drop),
            Self::TakeOff { .. } | Self::Land { .. } | Self::ReturnToLaunch => Ok(()),
        }
    }
}

impl Limits {
    /// The speed, if it may be flown.
    pub(crate) fn speed(&self, speed_m_s: f64) -> Result<f64, Problem> {
        if speed_m_s > 0.0 && speed_m_s <= self.speed_m_s {
            Ok(speed_m_s)
        } else {
            Err(Problem::Speed { found_m_s: speed_m_s, limit_m_s: self.speed_m_s })
        }
    }

    /// Checks a whole mission: number and order of its items, heights, distances.
    pub(crate) fn check(
        &self,
        items: Vec<(Item, Location)>,
        planned_home: Option<Position>,
    ) -> Result<Vec<Item>, Fault> {
        let first = items.iter().find_map(|(item, _)| match item {
            Item::Waypoint { position, .. } => Some(*position),
            _ => None,
        });
        let Some(first) = first else {
            return Err(Fault::file(Problem::NoWaypoints));
        };
        if items.len() > self.items_max {
            return Err(Fault::file(self.too_many_items()));
        }
        let home = self.home.or(planned_home);
        let (center, from) = match (self.home, planned_home) {
            (Some(home), _) => (home.into(), "home"),
            (None, Some(home)) => (home.into(), "the planned home"),
            (None, None) => (first, "the first waypoint"),
        };
        let (mut moved, mut down) = (false, false);
        for (item, at) in &items {
            let check = || {
                if down {
                    return Err(Problem::Order {
                        found: "an item after the landing or return",
                        expected: "that to be the last item",
                    });
                }
                match *item {
                    Item::TakeOff { .. } if moved => Err(Problem::Order {
                        found: "a take-off after another item that moves the aircraft",
                        expected: "the take-off to be the first of them",
                    }),
                    Item::TakeOff { altitude } => self.height(altitude, home),
                    Item::Waypoint { position, altitude, .. } => {
                        self.height(altitude, home)?;
                        self.distance(center, position, from)
                    }
                    Item::Land { position: Some(position) } => self.distance(center, position, from),
                    Item::Land { position: None }
                    | Item::ReturnToLaunch
                    | Item::ChangeSpeed { .. }
                    | Item::Yaw { .. } => Ok(()),
                }
            };
            check().map_err(|problem| Fault::new(at.clone(), problem))?;
            moved |= !matches!(item, Item::ChangeSpeed { .. } | Item::Yaw { .. });
            down |= matches!(item, Item::Land { .. } | Item::ReturnToLaunch);
        }
        Ok(items.into_iter().map(|(item, _)| item).collect())
    }

    /// How altitudes above sea level become heights: they are right only for the home that they were measured
    /// from. None where every altitude is above home.
    pub(crate) fn sea_level_note(&self, items: &[Item], planned_home: Option<Position>) -> Option<Note> {
        let home = self.home.or(planned_home)?;
        let waypoints = items
            .iter()
            .filter(
                |item| matches!(item, Item::Waypoint { altitude, .. } if altitude.datum == Datum::SeaLevel),
            )
            .count();
        (waypoints > 0).then(|| Note::AltitudeAboveSeaLevel { waypoints, home_altitude_m: home.altitude_m() })
    }

    pub(crate) fn too_many_items(&self) -> Problem {
        Problem::TooMany { what: "mission items", limit: self.items_max }
    }

    fn height(&self, altitude: Altitude, home: Option<Position>) -> Result<(), Problem> {
        let home_altitude_mm = match (altitude.datum, home) {
            (Datum::Home, _) => 0,
            (Datum::SeaLevel, Some(home)) => home.altitude_mm,
            (Datum::SeaLevel, None) => return Err(Problem::NoHome),
        };
        let found_mm = altitude.above_home_mm(home_altitude_mm);
        let found_m = f64::from(found_mm) / 1e3;
        if found_mm <= 0 {
            return Err(Problem::NotAboveHome { found_m });
        }
        if found_m <= self.fence_altitude_m {
            Ok(())
        } else {
            Err(Problem::AboveFence { found_m, fence_m: self.fence_altitude_m })
        }
    }

    fn distance(&self, center: LatLon, position: LatLon, from: &'static str) -> Result<(), Problem> {
        let distance_m = distance_m(center, position);
        if distance_m <= self.distance_from_home_m {
            Ok(())
        } else {
            Err(Problem::TooFar { distance_m, from, limit_m: self.distance_from_home_m })
        }
    }
}

/// Distance on the ground: within millimetres nearby, within 1 % anywhere.
pub fn distance_m(a: LatLon, b: LatLon) -> f64 {
    let position = |position: LatLon| Position {
        latitude_e7: position.latitude_e7,
        longitude_e7: position.longitude_e7,
        altitude_mm: 0,
    };
    let (a, b) = (position(a), position(b));
    // The tangent plane is exact nearby and folds over far away (the antipode lies at its zero): there
    // the great circle on the mean sphere is exact enough to find that it is too far.
    const NEAR_M: f64 = 50_000.0;
    const EARTH_RADIUS_M: f64 = 6_371_008.8;
    let half = |deg: f64| libm::sin(deg.to_radians() / 2.0);
    let (lat, lon) = (half(b.latitude_deg() - a.latitude_deg()), half(b.longitude_deg() - a.longitude_deg()));
    let cosines = libm::cos(a.latitude_deg().to_radians()) * libm::cos(b.latitude_deg().to_radians());
    let chord = libm::sqrt((lat * lat + cosines * lon * lon).clamp(0.0, 1.0));
    let great_circle_m = 2.0 * EARTH_RADIUS_M * libm::asin(chord);
    if great_circle_m > NEAR_M {
        return great_circle_m;
    }
    let local = Frame::new(a).to_local(b);
    libm::hypot(local.x, local.y)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(latitude_deg: f64, longitude_deg: f64) -> LatLon {
        Position::from_degrees(latitude_deg, longitude_deg, 0.0).unwrap().into()
    }

    #[test]
    fn distance_holds_nearby_far_away_and_across_the_date_line() {
        // One minute of latitude is a nautical mile within 0.5 %.
        let mile_m = distance_m(position(45.0, 9.0), position(45.0 + 1.0 / 60.0, 9.0));
        assert!((mile_m - 1852.0).abs() < 9.0, "{mile_m}");
        let antipode_m = distance_m(position(39.0, -0.3), position(-39.0, 179.7));
        assert!((antipode_m - 20_015_000.0).abs() < 1_000.0, "{antipode_m}");
        let date_line_m = distance_m(position(0.0, 179.9999), position(0.0, -179.9999));
        assert!((date_line_m - 22.26).abs() < 0.05, "{date_line_m}");
    }

    #[test]
    fn limits_that_are_not_numbers_refuse() {
        let limits = Limits {
            fence_altitude_m: f64::NAN,
            distance_from_home_m: f64::NAN,
            speed_m_s: f64::NAN,
            ..Limits::default()
        };
        let altitude = Altitude { value_mm: 1_000, datum: Datum::Home };
        assert!(limits.height(altitude, None).is_err());
        assert!(limits.distance(position(1.0, 1.0), position(1.0, 1.0), "home").is_err());
        assert!(limits.speed(1.0).is_err());
    }
}
