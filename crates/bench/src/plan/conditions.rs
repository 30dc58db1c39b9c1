//! The section of a plan that says what surrounds every flight: wind, ground, satellites, battery, where the aircraft
//! stand.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use wingbeat_geo::{DVec3, Frame, Position};
use wingbeat_sim::motion::WindParameters;
use wingbeat_sim::sensors::ImuNoise;

use crate::scenario::{Charge, Scenario};

/// What is not stated stays as it is without the section: calm, level, a battery as the task has it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// Mean speed of the air, metres per second, 0 to 30.
    #[serde(default)]
    pub wind_m_s: f64,
    /// Where the wind comes from, degrees clockwise from north.
    #[serde(default)]
    pub wind_from_deg: f64,
    /// Standard deviation of the gusts on each horizontal axis, metres per second.
    #[serde(default)]
    pub gusts_m_s: f64,
    /// How long a gust lasts, seconds.
    pub gust_s: Option<f64>,
    /// How wide a gust is, metres.
    pub gust_length_m: Option<f64>,
    /// Standard deviation of the wandering position error, metres, 0 to 10.
    pub gnss_noise_m: Option<f64>,
    /// Standard deviation of what the gyroscopes of an ArduCopter program measure, at full thrust, degrees a second, 0 to 10.
    #[serde(default)]
    pub gyroscope_noise_deg_s: f64,
    /// The same of its accelerometers, metres per second squared, 0 to 10.
    #[serde(default)]
    pub accelerometer_noise_m_s2: f64,
    /// Constant position error of each aircraft over the ground, metres, in a direction that is drawn for each.
    #[serde(default)]
    pub gnss_bias_m: f64,
    /// Difference between the heights of the highest and the lowest home, metres; which way it rises is drawn.
    pub slope_m: Option<f64>,
    /// How far apart a swarm stands, metres; 10 as published, which its aircraft refuse where wind or slope need more.
    pub ground_distance_m: Option<f64>,
    /// Height of the ground above sea level, metres.
    pub ground_altitude_m: Option<f64>,
    /// Capacity of each battery, milliampere hours; the aircraft then watch over what is left for the way home, as they do in the field.
    pub battery_mah: Option<f64>,
    /// Charge at the beginning, percent.
    pub battery_percent: Option<f64>,
    /// A file with a line for each aircraft, where it stands: `east_m,north_m` from the bench's origin, or
    /// `latitude_deg,longitude_deg`, as its first line says. Relative to the plan.
    pub starts_file: Option<String>,
}

/// How long a gust lasts where nothing else is stated, seconds.
pub(crate) const GUST_S: f64 = 5.0;
/// How wide it is, metres.
pub(crate) const GUST_LENGTH_M: f64 = 100.0;

/// Aircraft stand no further than this from the flight's origin.
const METRES_MOST: f64 = 50_000.0;

impl Conditions {
    /// Surrounds a scenario.
    ///
    /// # Errors
    /// Names the key, what was found and what was expected.
    pub(crate) fn surround(&self, scenario: &mut Scenario, folder: &Path) -> Result<()> {
        let ranges = [
            ("gusts_m_s", Some(self.gusts_m_s), 0.0..=10.0),
            ("wind_from_deg", Some(self.wind_from_deg), 0.0..=360.0),
            ("gust_s", self.gust_s, 0.1..=600.0),
            ("gust_length_m", self.gust_length_m, 0.5..=10_000.0),
            ("gnss_bias_m", Some(self.gnss_bias_m), 0.0..=50.0),
            ("gyroscope_noise_deg_s", Some(self.gyroscope_noise_deg_s), 0.0..=10.0),
            ("accelerometer_noise_m_s2", Some(self.accelerometer_noise_m_s2), 0.0..=10.0),
            ("ground_distance_m", self.ground_distance_m, 1.0..=500.0),
            ("ground_altitude_m", self.ground_altitude_m, -400.0..=6_000.0),
            ("battery_mah", self.battery_mah, 100.0..=1e6),
            ("battery_percent", self.battery_percent, 1.0..=100.0),
        ];
        for (key, value, range) in ranges {
            if let Some(found) = value.filter(|value| !range.contains(value)) {
                bail!("conditions.{key}: found {found}, expected {} to {}", range.start(), range.end());
            }
        }
        if self.wind_m_s != 0.0 || self.gusts_m_s > 0.0 {
            ensure!(
                scenario.wind.speed_m_s == 0.0,
                "conditions.wind_m_s: found wind of the flight {:?} too, expected one of both",
                scenario.name
            );
            scenario.wind = WindParameters {
                speed_m_s: self.wind_m_s,
                direction_rad: self.wind_from_deg.to_radians(),
                gust_deviation_m_s: self.gusts_m_s,
                gust_time_constant_s: self.gust_s.unwrap_or(GUST_S),
                gust_length_m: self.gust_length_m.unwrap_or(GUST_LENGTH_M),
            };
        }
        for (key, value, of) in [
            ("gnss_noise_m", self.gnss_noise_m, &mut scenario.gps_noise_m),
            ("slope_m", self.slope_m, &mut scenario.slope_m),
        ] {
            let Some(value) = value else { continue };
            ensure!(*of == 0.0, "conditions.{key}: found {of} at the aircraft too, expected one of both");
            *of = value;
        }
        scenario.gnss_bias_m = self.gnss_bias_m;
        scenario.imu = ImuNoise {
            rate_rad_s: self.gyroscope_noise_deg_s.to_radians(),
            force_m_s2: self.accelerometer_noise_m_s2,
        };
        scenario.ground_distance_m = self.ground_distance_m.unwrap_or(scenario.ground_distance_m);
        if let Some(altitude_m) = self.ground_altitude_m {
            scenario.ground_altitude_mm = (altitude_m * 1e3) as i32;
        }
        if self.battery_mah.is_some() || self.battery_percent.is_some() {
            scenario.charge = Some(Charge {
                capacity_mah: self.battery_mah,
                percent: self.battery_percent.unwrap_or(100.0),
            });
        }
        if let Some(file) = &self.starts_file {
            let path = folder.join(file);
            let here = || format!("conditions.starts_file: {}", path.display());
            let text = std::fs::read_to_string(&path).with_context(here)?;
            scenario.starts = starts(&text, scenario.origin).with_context(here)?;
            let (found, expected) = (scenario.starts.len(), scenario.aircraft());
            ensure!(
                found >= expected,
                "{}: found {found} places, expected {expected}, one for each aircraft",
                here()
            );
        }
        Ok(())
    }
}

/// Reads places as metres east and north of the flight's origin; heights are the ground's.
fn starts(text: &str, origin: Position) -> Result<Vec<DVec3>> {
    let mut lines =
        csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let header: Vec<String> = lines.headers()?.iter().map(str::to_owned).collect();
    let is_geodetic = match &*header {
        [a, b] if a == "east_m" && b == "north_m" => false,
        [a, b] if a == "latitude_deg" && b == "longitude_deg" => true,
        _ => bail!(
            "line 1: found {:?}, expected east_m,north_m or latitude_deg,longitude_deg",
            header.join(",")
        ),
    };
    let (limits, frame) = (if is_geodetic { [90.0, 180.0] } else { [METRES_MOST; 2] }, Frame::new(origin));
    let mut all = Vec::new();
    for (row, record) in lines.deserialize::<[f64; 2]>().enumerate() {
        let at = record.with_context(|| format!("place {}", row + 1))?;
        for (value, limit) in at.iter().zip(limits) {
            ensure!(value.abs() <= limit, "place {}: found {value}, expected -{limit} to {limit}", row + 1);
        }
        all.push(if is_geodetic {
            let [latitude_e7, longitude_e7] = at.map(|degrees| (degrees * 1e7).round() as i32);
            let place = frame.to_local(Position { latitude_e7, longitude_e7, ..origin }).truncate();
            let (found_km, most_km) = (place.length() * 1e-3, METRES_MOST * 1e-3);
            ensure!(
                found_km <= most_km,
                "place {}: found {found_km:.0} km from the start of the flight, expected {most_km} km at most",
                row + 1
            );
            place.extend(0.0)
        } else {
            DVec3::new(at[0], at[1], 0.0)
        });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ORIGIN;

    #[test]
    fn places_are_read_in_metres_or_in_degrees() {
        let metres = starts("east_m, north_m\n# the row\n10, -20\n0.5,0\n", ORIGIN).unwrap();
        assert_eq!(metres, [DVec3::new(10.0, -20.0, 0.0), DVec3::new(0.5, 0.0, 0.0)]);
        let (latitude, longitude) =
            (f64::from(ORIGIN.latitude_e7) * 1e-7, f64::from(ORIGIN.longitude_e7) * 1e-7);
        let degrees =
            starts(&format!("latitude_deg,longitude_deg\n{latitude:.7},{longitude:.7}\n"), ORIGIN).unwrap();
        assert!(degrees[0].length() < 0.02, "{degrees:?}");
        for (text, message) in [
            ("x,y\n1,2\n", "found \"x,y\", expected east_m,north_m"),
            ("east_m,north_m\n1,two\n", "place 1"),
            ("east_m,north_m\n1,2\n60000,2\n", "place 2: found 60000, expected -50000 to 50000"),
            ("latitude_deg,longitude_deg\n91,0\n", "place 1: found 91, expected -90 to 90"),
            ("latitude_deg,longitude_deg\n52,4\n", "from the start of the flight, expected 50 km at most"),
        ] {
            let found = format!("{:#}", starts(text, ORIGIN).unwrap_err());
            assert!(found.contains(message), "{found}");
        }
    }
}
