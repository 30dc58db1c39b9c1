//! Positions on the WGS84 ellipsoid and the local frame in which distances are measured.
//!
//! A [`Position`] is integers, as MAVLink and datagrams carry it. A [`Frame`] converts positions near its
//! origin to metres: east and north are those of the tangent plane at the origin (through
//! earth-centred coordinates, so they agree with geodesics to millimetres at 5 km), up is the plain
//! difference of altitudes, because aircraft hold altitude above sea level and not above a plane that
//! leaves the earth by 2 m at 5 km.

use glam::{DVec2, DVec3};

/// WGS84 semi-major axis (NIMA TR8350.2, table 3.1).
const SEMI_MAJOR_M: f64 = 6_378_137.0;
/// WGS84 first eccentricity squared (NIMA TR8350.2, table 3.3).
const ECCENTRICITY_SQUARED: f64 = 6.694_379_990_141_4e-3;

/// A point: latitude and longitude in 1e-7 degree (1.1 cm), altitude above sea level in millimetres.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Latitude, 1e-7 degree, north positive.
    pub latitude_e7: i32,
    /// Longitude, 1e-7 degree, east positive.
    pub longitude_e7: i32,
    /// Altitude above mean sea level, millimetre.
    pub altitude_mm: i32,
}

/// The coordinate that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PositionError {
    /// Latitude is not a number in −90..=90.
    #[error("latitude {0} is not within -90..90 degrees")]
    Latitude(f64),
    /// Longitude is not a number in −180..=180.
    #[error("longitude {0} is not within -180..180 degrees")]
    Longitude(f64),
    /// Altitude is not a number that fits (±2 147 km).
    #[error("altitude {0} m is not within -1000..100000 m")]
    Altitude(f64),
}

impl Position {
    /// A position from degrees and metres above sea level.
    ///
    /// # Errors
    /// Names the first coordinate that is out of range or not a number.
    pub fn from_degrees(
        latitude_deg: f64,
        longitude_deg: f64,
        altitude_m: f64,
    ) -> Result<Self, PositionError> {
        if !(-90.0..=90.0).contains(&latitude_deg) {
            return Err(PositionError::Latitude(latitude_deg));
        }
        if !(-180.0..=180.0).contains(&longitude_deg) {
            return Err(PositionError::Longitude(longitude_deg));
        }
        if !(-1_000.0..=100_000.0).contains(&altitude_m) {
            return Err(PositionError::Altitude(altitude_m));
        }
        Ok(Self {
            latitude_e7: libm::round(latitude_deg * 1e7) as i32,
            longitude_e7: libm::round(longitude_deg * 1e7) as i32,
            altitude_mm: libm::round(altitude_m * 1e3) as i32,
        })
    }
    /// Latitude in degrees.
    pub fn latitude_deg(self) -> f64 {
        f64::from(self.latitude_e7) * 1e-7
    }
    /// Longitude in degrees.
    pub fn longitude_deg(self) -> f64 {
        f64::from(self.longitude_e7) * 1e-7
    }
    /// Altitude above sea level in metres.
    pub fn altitude_m(self) -> f64 {
        f64::from(self.altitude_mm) * 1e-3
    }
    /// Whether latitude and longitude lie on the earth. Bytes from outside may claim otherwise.
    pub fn is_on_earth(self) -> bool {
        self.latitude_e7.unsigned_abs() <= 900_000_000 && self.longitude_e7.unsigned_abs() <= 1_800_000_000
    }
    /// Earth-centred coordinates of the point at height `height_m` above the ellipsoid.
    fn ecef(self, height_m: f64) -> DVec3 {
        let (sin_lat, cos_lat) = libm::sincos(self.latitude_deg().to_radians());
        let (sin_lon, cos_lon) = libm::sincos(self.longitude_deg().to_radians());
        let normal_m = SEMI_MAJOR_M / libm::sqrt(1.0 - ECCENTRICITY_SQUARED * sin_lat * sin_lat);
        DVec3::new(
            (normal_m + height_m) * cos_lat * cos_lon,
            (normal_m + height_m) * cos_lat * sin_lon,
            (normal_m * (1.0 - ECCENTRICITY_SQUARED) + height_m) * sin_lat,
        )
    }
}

/// A local frame: metres east, north and up of an origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    origin: Position,
    origin_ecef: DVec3,
    east: DVec3,
    north: DVec3,
    up: DVec3,
    /// Mean radius of curvature at the origin.
    radius_m: f64,
}

impl Frame {
    /// The frame whose zero is `origin`.
    pub fn new(origin: Position) -> Self {
        let (sin_lat, cos_lat) = libm::sincos(origin.latitude_deg().to_radians());
        let (sin_lon, cos_lon) = libm::sincos(origin.longitude_deg().to_radians());
        let w = 1.0 - ECCENTRICITY_SQUARED * sin_lat * sin_lat;
        Self {
            origin,
            origin_ecef: origin.ecef(0.0),
            east: DVec3::new(-sin_lon, cos_lon, 0.0),
            north: DVec3::new(-sin_lat * cos_lon, -sin_lat * sin_lon, cos_lat),
            up: DVec3::new(cos_lat * cos_lon, cos_lat * sin_lon, sin_lat),
            radius_m: SEMI_MAJOR_M * libm::sqrt(1.0 - ECCENTRICITY_SQUARED) / w,
        }
    }
    /// The position at zero.
    pub fn origin(&self) -> Position {
        self.origin
    }
    /// Metres east, north and up of the origin. Altitude does not stretch the horizontal plane
    /// (0.016 ‰ at 100 m).
    pub fn to_local(&self, position: Position) -> DVec3 {
        let d = position.ecef(0.0) - self.origin_ecef;
        DVec3::new(
            d.dot(self.east),
            d.dot(self.north),
            (f64::from(position.altitude_mm) - f64::from(self.origin.altitude_mm)) * 1e-3,
        )
    }
    /// The point `local` metres from this origin, in the frame `other`: as through a [`Position`], without its
    /// rounding to the centimetre and without trigonometry.
    pub fn to_frame(&self, other: &Self, local: DVec3) -> DVec3 {
        let d = self.surface_ecef(local) - other.origin_ecef;
        let up_mm = f64::from(self.origin.altitude_mm) - f64::from(other.origin.altitude_mm);
        DVec3::new(d.dot(other.east), d.dot(other.north), local.z + up_mm * 1e-3)
    }
    /// Earth-centred coordinates of the point of the ellipsoid below or above a local point.
    fn surface_ecef(&self, local: DVec3) -> DVec3 {
        // The tangent plane leaves the ellipsoid by d²/2R: go down by that.
        let sagitta_m = (local.x * local.x + local.y * local.y) / (2.0 * self.radius_m);
        self.origin_ecef + self.east * local.x + self.north * local.y - self.up * sagitta_m
    }
    /// The position that lies `local` metres (east, north, up) from the origin.
    ///
    /// Exact to the centimetre of 1e-7 degree within 100 km of the origin.
    pub fn to_position(&self, local: DVec3) -> Position {
        // Near the surface Bowring's formula is exact to far less than a millimetre.
        let p = self.surface_ecef(local);
        let distance_m = libm::hypot(p.x, p.y);
        let semi_minor_m = SEMI_MAJOR_M * libm::sqrt(1.0 - ECCENTRICITY_SQUARED);
        let (sin_u, cos_u) = libm::sincos(libm::atan2(p.z * SEMI_MAJOR_M, distance_m * semi_minor_m));
        let second = ECCENTRICITY_SQUARED / (1.0 - ECCENTRICITY_SQUARED);
        let latitude = libm::atan2(
            p.z + second * semi_minor_m * sin_u * sin_u * sin_u,
            distance_m - ECCENTRICITY_SQUARED * SEMI_MAJOR_M * cos_u * cos_u * cos_u,
        );
        let longitude = libm::atan2(p.y, p.x);
        Position {
            latitude_e7: libm::round(latitude.to_degrees() * 1e7) as i32,
            longitude_e7: libm::round(longitude.to_degrees() * 1e7) as i32,
            altitude_mm: self.origin.altitude_mm.saturating_add(libm::round(local.z * 1e3) as i32),
        }
    }
}

/// Metres per 1e-7 degree around a position: for differences of positions near it, without trigonometry for each.
///
/// A difference is right to 0.1 ‰ within a kilometre of that position, up to 30 degrees from the poles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    east_m: f64,
    north_m: f64,
}

/// Once round the earth, in ten millionths of a degree.
const ROUND_E7: i64 = 3_600_000_000;

impl Scale {
    /// At the latitude of a position.
    pub fn at(position: Position) -> Self {
        let (sin_lat, cos_lat) = libm::sincos(position.latitude_deg().to_radians());
        let w = 1.0 - ECCENTRICITY_SQUARED * sin_lat * sin_lat;
        let normal_m = SEMI_MAJOR_M / libm::sqrt(w);
        let step_rad = 1e-7_f64.to_radians();
        Self {
            east_m: normal_m * cos_lat * step_rad,
            north_m: normal_m * (1.0 - ECCENTRICITY_SQUARED) / w * step_rad,
        }
    }
    /// Metres east, north and up from one position to another, the shorter way round the earth.
    pub fn offset_m(&self, from: Position, to: Position) -> DVec3 {
        let longitude_e7 = i64::from(to.longitude_e7) - i64::from(from.longitude_e7);
        let longitude_e7 = match longitude_e7 {
            ..-1_800_000_000 => longitude_e7 + ROUND_E7,
            1_800_000_001.. => longitude_e7 - ROUND_E7,
            _ => longitude_e7,
        };
        DVec3::new(
            longitude_e7 as f64 * self.east_m,
            (f64::from(to.latitude_e7) - f64::from(from.latitude_e7)) * self.north_m,
            (f64::from(to.altitude_mm) - f64::from(from.altitude_mm)) * 1e-3,
        )
    }

    /// The position so many metres east, north and up of another. A longitude past 180° continues in the west.
    pub fn moved(&self, from: Position, by_m: DVec3) -> Position {
        let rounded = |value: f64| libm::round(value) as i32;
        let longitude_e7 = i64::from(from.longitude_e7) + i64::from(rounded(by_m.x / self.east_m));
        Position {
            latitude_e7: from.latitude_e7.saturating_add(rounded(by_m.y / self.north_m)),
            longitude_e7: ((longitude_e7 + ROUND_E7 / 2).rem_euclid(ROUND_E7) - ROUND_E7 / 2) as i32,
            altitude_mm: from.altitude_mm.saturating_add(rounded(by_m.z * 1e3)),
        }
    }
}

/// Heading from `from` to `to` on a local plane (x east, y north), radians clockwise from north in
/// 0..2π; zero for equal points.
pub fn heading_rad(from: DVec2, to: DVec2) -> f64 {
    let d = to - from;
    let heading = libm::atan2(d.x, d.y);
    if heading < 0.0 { heading + core::f64::consts::TAU } else { heading }
}

#[cfg(test)]
mod tests {
    use super::*;
    use geographiclib_rs::{Geodesic, InverseGeodesic};
    use proptest::prelude::*;

    #[test]
    fn moved_is_where_the_offset_leads_also_past_the_antimeridian() {
        for (lat, lon) in [(39.48, -0.34), (-33.0, 179.9999), (60.0, -179.9999)] {
            let from = Position::from_degrees(lat, lon, 20.0).unwrap();
            let scale = Scale::at(from);
            for by_m in [DVec3::new(40.0, -30.0, 2.5), DVec3::new(-40.0, 30.0, -2.5)] {
                let to = scale.moved(from, by_m);
                assert!(to.is_on_earth() && (scale.offset_m(from, to) - by_m).length() < 0.01, "{to:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn frame_agrees_with_geodesics_and_returns(
            lat in -70.0..70.0f64, lon in -179.0..179.0f64, east in -5000.0..5000.0f64, north in -5000.0..5000.0f64,
        ) {
            let origin = Position::from_degrees(lat, lon, 100.0).unwrap();
            let frame = Frame::new(origin);
            let there = frame.to_position(DVec3::new(east, north, 25.0));
            prop_assert_eq!(there.altitude_mm, 125_000);
            let back = frame.to_local(there);
            prop_assert!((back.x - east).abs() < 0.02 && (back.y - north).abs() < 0.02, "{back}");
            let geodesic_m: f64 = Geodesic::wgs84().inverse(
                origin.latitude_deg(), origin.longitude_deg(), there.latitude_deg(), there.longitude_deg());
            prop_assert!((geodesic_m - back.truncate().length()).abs() < 0.005, "{geodesic_m} {back}");
        }

        #[test]
        fn from_frame_to_frame_as_through_positions(
            lat in -70.0..70.0f64, lon in -179.0..179.0f64,
            east in -5000.0..5000.0f64, north in -5000.0..5000.0f64,
            away_east in -5000.0..5000.0f64, away_north in -5000.0..5000.0f64,
        ) {
            let frame = Frame::new(Position::from_degrees(lat, lon, 100.0).unwrap());
            let other = Frame::new(frame.to_position(DVec3::new(away_east, away_north, 40.0)));
            let local = DVec3::new(east, north, 25.0);
            let through = other.to_local(frame.to_position(local));
            let direct = frame.to_frame(&other, local);
            prop_assert!(direct.distance(through) < 0.011, "{direct} {through}");
            prop_assert!((direct.z - -15.0).abs() < 1e-9);
        }

        #[test]
        fn a_scale_agrees_with_the_frame_nearby(
            lat in -60.0..60.0f64, lon in -180.0..180.0f64, east in -700.0..700.0f64, north in -700.0..700.0f64,
        ) {
            let here = Position::from_degrees(lat, lon, 100.0).unwrap();
            let there = Frame::new(here).to_position(DVec3::new(east, north, 25.0));
            let error = Scale::at(here).offset_m(here, there) - DVec3::new(east, north, 25.0);
            prop_assert!(error.length() < 0.02 + 2e-4 * east.hypot(north), "{error}");
        }
    }

    #[test]
    fn rejects_what_is_not_on_earth() {
        assert_eq!(Position::from_degrees(91.0, 0.0, 0.0), Err(PositionError::Latitude(91.0)));
        assert!(matches!(Position::from_degrees(f64::NAN, 0.0, 0.0), Err(PositionError::Latitude(_))));
        assert!(matches!(Position::from_degrees(0.0, -181.0, 0.0), Err(PositionError::Longitude(_))));
        assert!(matches!(Position::from_degrees(0.0, 0.0, f64::INFINITY), Err(PositionError::Altitude(_))));
    }

    #[test]
    fn the_height_between_extremes_does_not_wrap() {
        let frame = Frame::new(Position { altitude_mm: i32::MIN, ..Position::default() });
        let top = Position { altitude_mm: i32::MAX, ..Position::default() };
        assert_eq!(frame.to_local(top).z, 4_294_967.295);
    }

    #[test]
    fn heading_is_clockwise_from_north() {
        let o = DVec2::ZERO;
        assert_eq!(heading_rad(o, DVec2::Y), 0.0);
        assert!((heading_rad(o, DVec2::X).to_degrees() - 90.0).abs() < 1e-9);
        assert!((heading_rad(o, DVec2::NEG_X).to_degrees() - 270.0).abs() < 1e-9);
    }
}
