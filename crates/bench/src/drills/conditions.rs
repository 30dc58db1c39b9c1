//! In which conditions a drill is flown: how many aircraft, which autopilot, how good its position, how much wind, how long its
//! batteries last.
//!
//! The world of a field ([`Conditions::field`]) is drawn from the seed and is not told to the aircraft: they are configured with the
//! defaults, as most are. [`Conditions::default`] is the calm one, of which the aircraft are told.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::str::FromStr;

use wingbeat_geo::DVec3;
use wingbeat_geo::formation::Layout;
use wingbeat_protocol::Handling;
use wingbeat_protocol::swarm::Manner;
use wingbeat_protocol::swarm::budget::{self, Budget, Least, Surroundings};
use wingbeat_sim::motion::{NavParameters, Profile, WindParameters};
use wingbeat_sim::rng;
use wingbeat_wire::{Point, VehicleId};

use super::dice::Dice;
use crate::plan::conditions::{GUST_LENGTH_M, GUST_S};
use crate::plan::{self, ARDUCOPTER};
use crate::scenario::{self, Charge, PLACEMENT_ERROR_M, Scenario, Task};

/// Aircraft in a drill.
pub const AIRCRAFT: std::ops::RangeInclusive<usize> = 2..=25;
/// Standard deviation of the position error, metres.
pub const GPS_NOISE_M: std::ops::RangeInclusive<f64> = 0.0..=5.0;
/// Mean wind, metres per second.
pub const WIND_M_S: std::ops::RangeInclusive<f64> = 0.0..=15.0;

/// Constant position error, metres.
pub const GNSS_BIAS_M: std::ops::RangeInclusive<f64> = 0.0..=3.0;

/// How long a battery lasts in a hover, minutes; 0 for a battery without end.
pub const BATTERY_MIN: std::ops::RangeInclusive<f64> = 0.0..=60.0;

/// Charge that a minute of hovering takes, milliampere hours: 290 W at 15.4 V.
pub(super) const HOVER_MAH_PER_MIN: f64 = 315.0;
/// The worst of the field: standard deviation and constant part of the position error, metres, mean wind, metres per second, and
/// difference between the heights of homes, metres. The stated slope is the default's, because *Setup* measures it.
const FIELD_NOISE_M: [f64; 2] = [0.3, 1.5];
const FIELD_BIAS_M: f64 = 1.0;
const FIELD_WIND_M_S: f64 = 4.0;
const FIELD_SLOPE_M: f64 = 1.5;
/// Batteries of the field last so long in a hover, minutes.
const FIELD_BATTERY_MIN: [f64; 2] = [15.0, 20.0];

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
    /// How long a full battery lasts in a hover, minutes; 0 for a battery without end.
    pub battery_min: f64,
    /// Whether the aircraft are configured with the surroundings as they are, and not with the defaults.
    pub is_told: bool,
    /// Whether the base of these conditions is the calm world, and not that of the field.
    pub is_calm: bool,
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
            battery_min: 0.0,
            is_told: true,
            is_calm: true,
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

    /// Draws the world of a field from a drill's seed: position errors, gusty wind, a slope, batteries that run down. The aircraft
    /// are told nothing of it.
    pub fn field(seed: u64) -> Self {
        let mut dice = Dice::new(seed, "drill field", &[]);
        let mut drawn = |[least, most]: [f64; 2]| {
            let value = least + dice.uniform() * (most - least);
            (value * 10.0).round() / 10.0
        };
        Self {
            gps_noise_m: drawn(FIELD_NOISE_M),
            gnss_bias_m: drawn([0.0, FIELD_BIAS_M]),
            wind_m_s: drawn([0.0, FIELD_WIND_M_S]),
            slope_m: drawn([0.0, FIELD_SLOPE_M]),
            battery_min: drawn(FIELD_BATTERY_MIN),
            is_told: false,
            is_calm: false,
            ..Self::default()
        }
    }

    /// Draws the field for the hazard table: even seeds fly ArduCopter 3.5.7, odd ones 4.6.2.
    pub fn of_hazards(seed: u64) -> Self {
        Self { profile: Profile::ALL[(seed % 2) as usize], ..Self::field(seed) }
    }

    /// Draws more than the field from a drill's seed: up to 25 aircraft, up to 1.5 m of constant position error, as much wind as its
    /// autopilot, which is either, holds its place in, up to 3 m of slope, any formation, either manner of taking off and landing.
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
            ..Self::field(seed)
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
    pub(super) fn surround(&self, scenario: &mut Scenario, dice: &mut Dice) {
        scenario.gps_noise_m = self.gps_noise_m;
        scenario.profile = self.profile;
        scenario.arducopter = self.arducopter.map(Path::to_owned);
        scenario.wind = WindParameters {
            speed_m_s: self.wind_m_s,
            direction_rad: dice.uniform() * core::f64::consts::TAU,
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
        } else if !self.is_told {
            let usual = Surroundings::default();
            scenario.surroundings = Some(Surroundings { slope_m: usual.slope_m.max(self.slope_m), ..usual });
        }
        if self.battery_min > 0.0 {
            let percent = scenario.charge.map_or(100.0, |charge| charge.percent);
            let capacity_mah = Some(self.battery_min * HOVER_MAH_PER_MIN);
            scenario.charge = Some(Charge { capacity_mah, percent });
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
        // Two that are off towards each other all the time are nearer by both errors; an operator who does not know that adds nothing.
        let nearer_m = if self.is_told { 2.0 * self.gnss_bias_m } else { 0.0 };
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
        !self.is_calm || self.aircraft > usual.aircraft || self.formation.is_some() || self.take_off.is_some()
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

impl Conditions {
    /// Returns them as options of the command that flies a drill of this seed: those that differ from its world.
    pub fn options(&self, seed: u64) -> String {
        let usual = if self.is_calm { Self::default() } else { Self::field(seed) };
        let mut out = String::from(if self.is_calm { " --calm" } else { "" });
        let mut option = |name: &str, differs: bool, value: &dyn fmt::Display| {
            if differs {
                let _ = write!(out, " --{name} {value}");
            }
        };
        option("uavs", self.aircraft != usual.aircraft, &self.aircraft);
        option("gps-noise-m", self.gps_noise_m != usual.gps_noise_m, &self.gps_noise_m);
        option("wind-m-s", self.wind_m_s != usual.wind_m_s, &self.wind_m_s);
        // A program has a version.
        match self.arducopter {
            Some(program) => option("autopilot", true, &format!("{ARDUCOPTER}{}", program.display())),
            None => option("profile", self.profile != usual.profile, &self.profile),
        }
        option("gnss-bias-m", self.gnss_bias_m != usual.gnss_bias_m, &self.gnss_bias_m);
        if let Some(formation) = self.formation {
            option("formation", true, &formation);
        }
        for (name, manner) in [("take-off", self.take_off), ("landing", self.landing)] {
            if let Some(manner) = manner {
                option(name, true, &Chosen(manner));
            }
        }
        option("slope-m", self.slope_m != usual.slope_m, &self.slope_m);
        if let Some(speed_m_s) = self.speed_m_s {
            option("speed-m-s", true, &speed_m_s);
        }
        option("battery-min", self.battery_min != usual.battery_min, &self.battery_min);
        if self.is_told && !usual.is_told {
            out.push_str(" --told");
        }
        if self.is_at_budget {
            out.push_str(" --at-budget");
        }
        out
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
        assert_eq!(Conditions::default().options(1), " --calm");
        assert_eq!(Conditions::field(7).options(7), "");
        let windy = Conditions { wind_m_s: 5.5, is_told: true, ..Conditions::field(7) };
        assert_eq!(windy.options(7), " --wind-m-s 5.5 --told");
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
            ..Conditions::default()
        };
        assert_eq!(
            hard.options(1),
            " --calm --uavs 16 --gps-noise-m 0.5 --wind-m-s 8 --profile 4.6.2 --gnss-bias-m 1.5 --formation random:1 \
             --take-off simultaneous --landing sequential --slope-m 3 --speed-m-s 15 --at-budget"
        );
        let real = Conditions { arducopter: Some(Path::new("/sitl/copter")), ..hard };
        assert!(
            real.options(1).starts_with(
                " --calm --uavs 16 --gps-noise-m 0.5 --wind-m-s 8 --autopilot arducopter:/sitl/copter "
            ),
            "{}",
            real.options(1)
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
