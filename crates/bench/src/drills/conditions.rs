//! In which conditions a drill is flown: how many aircraft, which autopilot, how good its position, how much wind.

use std::fmt;
use std::str::FromStr;

use wingbeat_sim::motion::{Profile, WindParameters};
use wingbeat_sim::rng::{self, Pcg64Mcg};

use crate::scenario::Scenario;

/// Aircraft in a drill.
pub const AIRCRAFT: std::ops::RangeInclusive<usize> = 2..=25;
/// Standard deviation of the position error, metres.
pub const GPS_NOISE_M: std::ops::RangeInclusive<f64> = 0.0..=5.0;
/// Mean wind, metres per second.
pub const WIND_M_S: std::ops::RangeInclusive<f64> = 0.0..=15.0;

/// Standard deviation of the gusts, as a share of the mean wind.
const GUSTS: f64 = 0.3;
/// How long a gust lasts, seconds.
const GUST_S: f64 = 5.0;

/// What surrounds a drill, apart from what goes wrong in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// Number of aircraft of the swarm.
    pub aircraft: usize,
    /// Standard deviation of the wandering position error, metres.
    pub gps_noise_m: f64,
    /// Mean wind, metres per second; gusts by themselves at each aircraft.
    pub wind_m_s: f64,
    /// The autopilot that is simulated.
    pub profile: Profile,
}

impl Default for Conditions {
    /// Five aircraft with good positions in calm air, under ArduCopter 3.5.7.
    fn default() -> Self {
        Self { aircraft: 5, gps_noise_m: 0.3, wind_m_s: 0.0, profile: Profile::Copter357 }
    }
}

impl Conditions {
    /// Drawn from a drill's seed: up to 25 aircraft, up to 0.6 m of position error, up to 8 m/s of wind, either autopilot.
    pub fn drawn(seed: u64) -> Self {
        let mut rng = rng::child(seed, "drill conditions", 0);
        let mut rounded = |least: f64, most: f64| {
            let drawn = least + rng::uniform(&mut rng) * (most - least);
            (drawn * 10.0).round() / 10.0
        };
        let (least, most) = (*AIRCRAFT.start() as f64, *AIRCRAFT.end() as f64);
        Self {
            aircraft: rounded(least, most) as usize,
            gps_noise_m: rounded(0.3, 0.6),
            wind_m_s: rounded(0.0, 8.0),
            profile: if rounded(0.0, 1.0) < 0.5 { Profile::Copter357 } else { Profile::Copter462 },
        }
    }

    /// Sets a scenario's surroundings. The direction of the wind is drawn.
    pub(super) fn surround(&self, scenario: &mut Scenario, rng: &mut Pcg64Mcg) {
        scenario.gps_noise_m = self.gps_noise_m;
        scenario.profile = self.profile;
        scenario.wind = WindParameters {
            speed_m_s: self.wind_m_s,
            direction_rad: rng::uniform(rng) * core::f64::consts::TAU,
            gust_deviation_m_s: self.wind_m_s * GUSTS,
            gust_time_constant_s: GUST_S,
        };
    }
}

/// As options of the command: those that are not the default.
impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = Self::default();
        if self.aircraft != usual.aircraft {
            write!(f, " --uavs {}", self.aircraft)?;
        }
        if self.gps_noise_m != usual.gps_noise_m {
            write!(f, " --gps-noise-m {}", self.gps_noise_m)?;
        }
        if self.wind_m_s != usual.wind_m_s {
            write!(f, " --wind-m-s {}", self.wind_m_s)?;
        }
        if self.profile != usual.profile {
            write!(f, " --profile {}", Version(self.profile))?;
        }
        Ok(())
    }
}

/// A profile by the version of ArduCopter that it simulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(pub Profile);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Profile::Copter357 => "3.5.7",
            Profile::Copter462 => "4.6.2",
        })
    }
}

impl FromStr for Version {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found =
            [Profile::Copter357, Profile::Copter462].map(Self).into_iter().find(|v| v.to_string() == text);
        found.ok_or_else(|| format!("found '{text}', expected 3.5.7 or 4.6.2"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_usual_is_an_option_of_the_command() {
        assert_eq!(Conditions::default().to_string(), "");
        let hard = Conditions { aircraft: 16, gps_noise_m: 0.5, wind_m_s: 8.0, profile: Profile::Copter462 };
        assert_eq!(hard.to_string(), " --uavs 16 --gps-noise-m 0.5 --wind-m-s 8 --profile 4.6.2");
        assert_eq!("4.6.2".parse(), Ok(Version(Profile::Copter462)));
        assert!("4.6".parse::<Version>().unwrap_err().contains("found '4.6'"));
    }

    #[test]
    fn conditions_are_drawn_within_their_bounds() {
        let drawn: Vec<Conditions> = (0..500).map(Conditions::drawn).collect();
        assert!(drawn.iter().all(|c| AIRCRAFT.contains(&c.aircraft) && WIND_M_S.contains(&c.wind_m_s)));
        for aircraft in AIRCRAFT {
            assert!(drawn.iter().any(|c| c.aircraft == aircraft), "{aircraft}");
        }
        assert!(drawn.iter().any(|c| c.profile == Profile::Copter462 && c.gps_noise_m == 0.6));
    }
}
