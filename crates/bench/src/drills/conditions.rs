//! In which conditions a drill is flown: how many aircraft, which autopilot, how good its position, how much wind.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use wingbeat_geo::DVec3;
use wingbeat_geo::formation::Layout;
use wingbeat_protocol::Handling;
use wingbeat_protocol::swarm::Manner;
use wingbeat_protocol::swarm::budget::{self, Budget, Least, Surroundings};
use wingbeat_sim::motion::{NavParameters, Profile, WindParameters};
use wingbeat_sim::rng::{self, Pcg64Mcg};
use wingbeat_wire::{Point, VehicleId};

use crate::plan::conditions::{GUST_LENGTH_M, GUST_S};
use crate::plan::{self, ARDUCOPTER};
use crate::scenario::{self, PLACEMENT_ERROR_M, Scenario, Task};

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

/// Difference between the heights of homes, metres.
pub const SLOPE_M: std::ops::RangeInclusive<f64> = 0.0..=20.0;
/// Speed along the legs, metres per second.
pub const SPEED_M_S: std::ops::RangeInclusive<f64> = 1.0..=20.0;

/// The shortest leg that is drawn, metres; with 1 m/s² of ArduCopter 3.5.7 a speed is reached and left again on its square.
const LEG_LEAST_M: f64 = 40.0;
/// Standard deviation of the gusts, as a share of the mean wind.
const GUSTS: f64 = 0.3;

/// What surrounds a drill, apart from what goes wrong in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// Number of aircraft of the swarm.
    pub aircraft: usize,
    /// Standard deviation of the wandering position error, metres.
    pub gps_noise_m: f64,
    /// Mean wind, metres per second; gusts, the same for aircraft that are near to each other.
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
    /// Difference between the heights of the highest and the lowest home, metres.
    pub slope_m: f64,
    /// Speed along the legs of a swarm, metres per second, and legs on which it is reached; drawn otherwise.
    pub speed_m_s: Option<f64>,
    /// Whether a swarm stands, flies and lands as near to each other as its aircraft accept in these surroundings, instead of
    /// at drawn distances, and is told of them what is so.
    pub is_at_budget: bool,
    /// The ArduCopter program that flies in lock step instead of a simulated flight controller.
    pub arducopter: Option<&'static Path>,
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
            slope_m: 0.0,
            speed_m_s: None,
            is_at_budget: false,
            arducopter: None,
        }
    }
}

impl Conditions {
    /// Flown by this program.
    ///
    /// # Errors
    /// It is not there, or no ArduCopter.
    pub fn flown_by(self, program: &'static Path) -> anyhow::Result<Self> {
        let profile = plan::profile_of(program)?;
        Ok(Self { profile, arducopter: Some(program), ..self })
    }

    /// Drawn from a drill's seed: up to 25 aircraft, up to 0.6 m of wandering and 1.5 m of constant position error, as much wind
    /// as its autopilot, which is either, holds its place in, up to 3 m of slope, any formation, either manner of taking off and
    /// landing.
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
        let (aircraft, gps_noise_m, wind_m_s) = (rounded(least, most), rounded(0.3, 0.6), rounded(0.0, 8.0));
        let profile = if rounded(0.0, 1.0) < 0.5 { Profile::Copter357 } else { Profile::Copter462 };
        Self {
            aircraft: aircraft as usize,
            gps_noise_m,
            wind_m_s: wind_m_s.min((wind_most_m_s(profile) * 10.0).floor() / 10.0),
            profile,
            gnss_bias_m: bias_dm as f64 / 10.0,
            formation: Some(formation),
            take_off: Some(take_off),
            landing: Some(landing),
            slope_m: rounded(0.0, 3.0),
            ..Self::default()
        }
    }

    /// Draws from a drill's seed as [`Conditions::drawn`], for the program that flies in lock step, if one does: then with its
    /// version, and in no more wind than that holds its place in.
    pub fn drawn_for(seed: u64, usual: Self) -> Self {
        let drawn = Self::drawn(seed);
        let Some(program) = usual.arducopter else { return drawn };
        let wind_m_s = drawn.wind_m_s.min((wind_most_m_s(usual.profile) * 10.0).floor() / 10.0);
        Self { profile: usual.profile, arducopter: Some(program), wind_m_s, ..drawn }
    }

    /// Whether a swarm is set up in these conditions.
    ///
    /// # Errors
    /// The wind, where it is too strong for that.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let (found, most) = (self.wind_m_s, wind_most_m_s(self.profile));
        anyhow::ensure!(
            found <= most,
            "wind: found {found} m/s, expected at most {most:.1}: in more a swarm refuses setup (docs/separation.md)"
        );
        Ok(())
    }

    /// Sets a scenario's surroundings. The direction of the wind is drawn.
    pub(super) fn surround(&self, scenario: &mut Scenario, rng: &mut Pcg64Mcg) {
        scenario.gps_noise_m = self.gps_noise_m;
        scenario.profile = self.profile;
        scenario.arducopter = self.arducopter.map(Path::to_owned);
        scenario.wind = WindParameters {
            speed_m_s: self.wind_m_s,
            direction_rad: rng::uniform(rng) * core::f64::consts::TAU,
            gust_deviation_m_s: self.wind_m_s * GUSTS,
            gust_time_constant_s: GUST_S,
            gust_length_m: GUST_LENGTH_M,
        };
        match &mut scenario.task {
            Task::Swarm(task) => {
                task.layout = self.formation.unwrap_or(task.layout);
                task.take_off = self.take_off.unwrap_or(task.take_off);
                task.landing = self.landing.unwrap_or(task.landing);
            }
            Task::Follow(task) => task.layout = self.formation.unwrap_or(task.layout),
            Task::Own(_) => {}
        }
        scenario.slope_m = self.slope_m;
        if self.is_at_budget {
            scenario.surroundings = Some(Surroundings {
                gnss_error_m: self.gps_noise_m,
                wind_m_s: self.wind_m_s,
                slope_m: self.slope_m,
            });
        }
        self.space(scenario);
    }

    /// Moves aircraft apart, as far as their surroundings need it; at the budget to just there.
    fn space(&self, scenario: &mut Scenario) {
        let budget = Budget { separation_m: 5.0, arrival_m: 1.0, surroundings: scenario.surroundings() };
        let spaced = |drawn_m: f64, least: Least| {
            // Plans carry millimetres.
            let least_m = (least.distance_m * 100.0).ceil() / 100.0;
            if self.is_at_budget { least_m } else { drawn_m.max(least_m) }
        };
        // Two that are off towards each other all the time are nearer by both errors.
        let nearer_m = 2.0 * self.gnss_bias_m;
        // Each is set down with an error, in both axes.
        let ground_m = budget.ground().distance_m + 2.0 * std::f64::consts::SQRT_2 * PLACEMENT_ERROR_M;
        let usual_m = if self.is_at_budget { 0.0 } else { scenario.ground_distance_m };
        match &mut scenario.task {
            Task::Swarm(task) => {
                scenario.ground_distance_m = ground_m.max(usual_m);
                if let Some(speed_m_s) = self.speed_m_s {
                    task.speed_m_s = speed_m_s;
                    stretch(&mut task.mission, (speed_m_s * speed_m_s / LEG_LEAST_M).max(1.0));
                }
                task.distance_m = nearer_m + spaced(task.distance_m, budget.spacing(task.speed_m_s));
                task.landing_distance_m = nearer_m + spaced(task.landing_distance_m, budget.landing());
            }
            Task::Follow(task) => {
                scenario.ground_distance_m = ground_m.max(usual_m);
                let mut config = task.config(VehicleId(1), VehicleId(1));
                config.swarm.surroundings = budget.surroundings;
                let pilot_m_s = NavParameters::new(self.profile).loiter_speed_m_s;
                let handling = match self.profile {
                    Profile::Copter357 => Handling::Tracks,
                    Profile::Copter462 => Handling::Shaped,
                };
                let least_m = config.distance_least_at_m(pilot_m_s, handling);
                task.distance_m = nearer_m + task.distance_m.max(least_m);
            }
            Task::Own(_) => {}
        }
    }

    /// By what the position of an aircraft is off all the time, metres east, north and up.
    pub(super) fn bias_m(&self, seed: u64, aircraft: usize) -> DVec3 {
        scenario::bias(seed, aircraft, self.gnss_bias_m)
    }

    /// Whether a swarm may refuse to be set up in these conditions as it was drawn.
    pub(super) fn may_be_refused(&self) -> bool {
        let usual = Self::default();
        self.aircraft > usual.aircraft || self.formation.is_some() || self.take_off.is_some()
    }
}

/// The mean wind in which an autopilot holds its place, metres per second: in more its aircraft refuse *Setup* of a swarm.
fn wind_most_m_s(profile: Profile) -> f64 {
    budget::wind_most_m_s(match profile {
        Profile::Copter357 => budget::AIRSPEED_3_M_S,
        Profile::Copter462 => budget::AIRSPEED_4_M_S,
    })
}

/// A mission with legs so many times as long, from its first waypoint on.
fn stretch(mission: &mut [Point], times: f64) {
    let Some(&first) = mission.first() else { return };
    let farther = |from: i32, to: i32| from + (f64::from(to - from) * times) as i32;
    for waypoint in mission {
        waypoint.latitude_e7 = farther(first.latitude_e7, waypoint.latitude_e7);
        waypoint.longitude_e7 = farther(first.longitude_e7, waypoint.longitude_e7);
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
        // A program has a version.
        if let Some(program) = self.arducopter {
            write!(f, " --autopilot {ARDUCOPTER}{}", program.display())?;
        } else if self.profile != usual.profile {
            write!(f, " --profile {}", self.profile)?;
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
        if self.slope_m != usual.slope_m {
            write!(f, " --slope-m {}", self.slope_m)?;
        }
        if let Some(speed_m_s) = self.speed_m_s {
            write!(f, " --speed-m-s {speed_m_s}")?;
        }
        f.write_str(if self.is_at_budget { " --at-budget" } else { "" })
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
            slope_m: 3.0,
            speed_m_s: Some(15.0),
            is_at_budget: true,
            arducopter: None,
        };
        assert_eq!(
            hard.to_string(),
            " --uavs 16 --gps-noise-m 0.5 --wind-m-s 8 --profile 4.6.2 --gnss-bias-m 1.5 --formation random:1 \
             --take-off simultaneous --landing sequential --slope-m 3 --speed-m-s 15 --at-budget"
        );
        let real = Conditions { arducopter: Some(Path::new("/sitl/copter")), ..hard };
        assert!(
            real.to_string().starts_with(
                " --uavs 16 --gps-noise-m 0.5 --wind-m-s 8 --autopilot arducopter:/sitl/copter "
            ),
            "{real}"
        );
        assert!("both".parse::<Chosen>().unwrap_err().contains("found 'both'"));
        assert_eq!("4.6.2".parse(), Ok(Profile::Copter462));
        assert!("4.6".parse::<Profile>().unwrap_err().contains("found '4.6'"));
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
        assert!(drawn.iter().all(|c| c.check().is_ok()));
        assert!(drawn.iter().any(|c| c.wind_m_s == 6.8) && drawn.iter().any(|c| c.slope_m > 2.9));
    }
}
