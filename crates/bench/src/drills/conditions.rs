//! In which conditions a drill is flown: how many aircraft, which autopilot, how good its position, how much wind.

use std::fmt;
use std::str::FromStr;

use wingbeat_geo::DVec3;
use wingbeat_geo::formation::Layout;
use wingbeat_protocol::swarm::Manner;
use wingbeat_sim::motion::{Profile, WindParameters};
use wingbeat_sim::rng::{self, Pcg64Mcg};

use crate::scenario::{Scenario, Task};

/// Aircraft in a drill.
pub const AIRCRAFT: std::ops::RangeInclusive<usize> = 2..=25;
/// Standard deviation of the position error, metres.
pub const GPS_NOISE_M: std::ops::RangeInclusive<f64> = 0.0..=5.0;
/// Mean wind, metres per second.
pub const WIND_M_S: std::ops::RangeInclusive<f64> = 0.0..=15.0;

/// Constant position error, metres.
pub const GNSS_BIAS_M: std::ops::RangeInclusive<f64> = 0.0..=3.0;

/// Formations that are drawn: all that no file has, and whose slots a drill's flight reaches (split-up begins 600 m out).
const LAYOUTS: [Layout; 8] = [
    Layout::Linear,
    Layout::Matrix,
    Layout::Circular,
    Layout::CompactMatrix,
    Layout::CompactMesh,
    Layout::Wedge,
    Layout::Diamond,
    Layout::Random { seed: 1 },
];

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
    /// The constant position error of each aircraft over the ground, metres, in a direction of its own.
    pub gnss_bias_m: f64,
    /// The formation; drawn from three where there is none.
    pub formation: Option<Layout>,
    /// How a swarm takes off; one after the other where there is none.
    pub take_off: Option<Manner>,
    /// How a swarm lands; drawn where there is none.
    pub landing: Option<Manner>,
}

impl Default for Conditions {
    /// Five aircraft with good positions in calm air, under ArduCopter 3.5.7.
    fn default() -> Self {
        Self {
            aircraft: 5,
            gps_noise_m: 0.3,
            wind_m_s: 0.0,
            profile: Profile::Copter357,
            gnss_bias_m: 0.0,
            formation: None,
            take_off: None,
            landing: None,
        }
    }
}

impl Conditions {
    /// Drawn from a drill's seed: up to 25 aircraft, up to 0.6 m of wandering and 1.5 m of constant position error, up to 8 m/s
    /// of wind, either autopilot, any formation, either manner of taking off and landing.
    pub fn drawn(seed: u64) -> Self {
        let mut rng = rng::child(seed, "drill conditions", 0);
        let mut rounded = |least: f64, most: f64| {
            let drawn = least + rng::uniform(&mut rng) * (most - least);
            (drawn * 10.0).round() / 10.0
        };
        // Of their own, so that what was drawn before stays what it was.
        let mut shapes = rng::child(seed, "drill shapes", 0);
        let mut one_of = |count: usize| (rng::uniform(&mut shapes) * count as f64) as usize;
        let (formation, take_off, landing, bias_dm) =
            (LAYOUTS[one_of(LAYOUTS.len())], Manner::ALL[one_of(2)], Manner::ALL[one_of(2)], one_of(16));
        let (least, most) = (*AIRCRAFT.start() as f64, *AIRCRAFT.end() as f64);
        Self {
            aircraft: rounded(least, most) as usize,
            gps_noise_m: rounded(0.3, 0.6),
            wind_m_s: rounded(0.0, 8.0),
            profile: if rounded(0.0, 1.0) < 0.5 { Profile::Copter357 } else { Profile::Copter462 },
            gnss_bias_m: bias_dm as f64 / 10.0,
            formation: Some(formation),
            take_off: Some(take_off),
            landing: Some(landing),
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
        // Two that are off towards each other are nearer by both errors.
        let nearer_m = 2.0 * self.gnss_bias_m;
        match &mut scenario.task {
            Task::Swarm(task) => {
                task.layout = self.formation.unwrap_or(task.layout);
                task.take_off = self.take_off.unwrap_or(task.take_off);
                task.landing = self.landing.unwrap_or(task.landing);
                task.distance_m += nearer_m;
                task.landing_distance_m += nearer_m;
            }
            Task::Follow(task) => {
                task.layout = self.formation.unwrap_or(task.layout);
                task.distance_m += nearer_m;
            }
            Task::Own(_) => {}
        }
    }

    /// By what the position of an aircraft is off all the time, metres east, north and up.
    pub(super) fn bias_m(&self, seed: u64, aircraft: usize) -> DVec3 {
        let mut rng = rng::child(seed, "drill bias", aircraft as u64);
        let (sin, cos) = libm::sincos(rng::uniform(&mut rng) * core::f64::consts::TAU);
        DVec3::new(sin, cos, 0.0) * self.gnss_bias_m
    }

    /// Whether a swarm may refuse to be set up in these conditions as it was drawn.
    pub(super) fn may_be_refused(&self) -> bool {
        let usual = Self::default();
        self.aircraft > usual.aircraft || self.formation.is_some() || self.take_off.is_some()
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
        if self.gnss_bias_m != usual.gnss_bias_m {
            write!(f, " --gnss-bias-m {}", self.gnss_bias_m)?;
        }
        if let Some(formation) = self.formation {
            write!(f, " --formation {formation}")?;
        }
        for (option, manner) in [("take-off", self.take_off), ("landing", self.landing)] {
            if let Some(manner) = manner {
                write!(f, " --{option} {}", Chosen(manner))?;
            }
        }
        Ok(())
    }
}

/// A manner by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen(pub Manner);

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Manner::Sequential => "sequential",
            Manner::Simultaneous => "simultaneous",
        })
    }
}

impl FromStr for Chosen {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Manner::ALL.map(Self).into_iter().find(|manner| manner.to_string() == text);
        found.ok_or_else(|| format!("found '{text}', expected sequential or simultaneous"))
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
        let hard = Conditions {
            aircraft: 16,
            gps_noise_m: 0.5,
            wind_m_s: 8.0,
            profile: Profile::Copter462,
            gnss_bias_m: 1.5,
            formation: Some(Layout::Random { seed: 1 }),
            take_off: Some(Manner::Simultaneous),
            landing: Some(Manner::Sequential),
        };
        assert_eq!(
            hard.to_string(),
            " --uavs 16 --gps-noise-m 0.5 --wind-m-s 8 --profile 4.6.2 --gnss-bias-m 1.5 --formation random:1 \
             --take-off simultaneous --landing sequential"
        );
        assert!("both".parse::<Chosen>().unwrap_err().contains("found 'both'"));
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
        assert!(drawn.iter().all(|c| GNSS_BIAS_M.contains(&c.gnss_bias_m)));
        for layout in LAYOUTS {
            assert!(drawn.iter().any(|c| c.formation == Some(layout)), "{layout}");
        }
        let bias_m = Conditions { gnss_bias_m: 1.5, ..Conditions::default() }.bias_m(7, 2);
        assert!((bias_m.length() - 1.5).abs() < 1e-9);
    }
}
