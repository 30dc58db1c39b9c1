//! The separation budget: how far apart aircraft have to be planned, so that they are not nearer to each other than the
//! separation whatever their positions err, the wind does and the one ahead does (`docs/separation.md`).
//!
//! Errors that are independent of each other, and of either sign, are added as squares: position and wind, of two
//! aircraft. What is bounded, and may have its worst value at any time, is added as it is: the radius of arrival, the
//! difference of the homes' heights, the path of a braking.

use core::f64::consts::SQRT_2;

use serde::{Deserialize, Serialize};
use wingbeat_geo::DVec2;

use super::ownship::{BRAKING_M_S2, REACTION_S};
use crate::ConfigError;

/// So many standard deviations are kept: one sample in 30 000 is beyond, and the error of a position is another one every
/// half minute.
const DEVIATIONS: f64 = 4.0;

/// Wind carries an aircraft that holds its place so far off it, metres per axis and m/s of mean wind, standard deviation:
/// ArduCopter 3.5.7 as it is simulated, in gusts of 30 % of the mean that last 5 s (4.6.2: 0.035). Measured by
/// `crates/sim/tests/hold_in_wind.rs`.
const CARRIED_S: f64 = 0.088;

/// Gusts have this share of the mean wind as their standard deviation.
pub const GUST_SHARE: f64 = 0.3;

/// A height errs by this share of a position over the ground, where a barometer helps (as it is simulated).
const HEIGHT_SHARE: f64 = 0.5;

/// A braking that no multicopter goes beyond by much: so soon the aircraft ahead may stand.
pub(super) const HARD_BRAKING_M_S2: f64 = 5.0;

/// BRAKE of ArduCopter stops harder than any target does ([`BRAKING_M_S2`] of any multicopter), and then swings back.
const STOPPING_M_S2: f64 = 7.5;
/// So much per speed it swings back (3.5 m behind 10 m/s, as 3.5.7 is simulated).
const SWINGS_BACK_S: f64 = 0.35;

/// Speed through the air at the greatest lean of ArduCopter 3, 45 degrees, metres per second (3.5.7 in SITL).
pub const AIRSPEED_3_M_S: f64 = 15.0;
/// Of ArduCopter 4, 30 degrees (4.6.2 in SITL).
pub const AIRSPEED_4_M_S: f64 = 10.0;

/// What two aircraft stray at least, whatever is stated: control, delays and rounding.
const STRAY_LEAST_M: f64 = 3.0;

/// What the operator states of where the swarm flies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Surroundings {
    /// Standard deviation of a position over the ground, metres per axis, as far as it is not common to all aircraft.
    pub gnss_error_m: f64,
    /// Mean wind, metres per second; it gusts.
    pub wind_m_s: f64,
    /// Greatest difference between the heights of two homes, metres.
    pub slope_m: f64,
}

impl Default for Surroundings {
    /// Good reception, light wind, a level field: what the default distances are for.
    fn default() -> Self {
        Self { gnss_error_m: 0.5, wind_m_s: 2.0, slope_m: 1.5 }
    }
}

/// The term of a budget that takes most of it, beside the separation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// The errors of two positions.
    Position,
    /// Wind, on two aircraft.
    Wind,
    /// The heights of two homes.
    Heights,
    /// The radius of arrival, of two aircraft.
    Arrival,
    /// Reaction and braking behind an aircraft that stops.
    Braking,
}

impl core::fmt::Display for Term {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Position => "position errors",
            Self::Wind => "wind",
            Self::Heights => "heights of homes",
            Self::Arrival => "arrival",
            Self::Braking => "braking",
        })
    }
}

/// A least distance, and what takes most of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Least {
    /// The distance, metres.
    pub distance_m: f64,
    /// The greatest term of it, beside the separation.
    pub term: Term,
    /// What that takes, metres.
    pub term_m: f64,
}

/// The budget of one swarm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// The distance that must remain, metres.
    pub separation_m: f64,
    /// The radius of arrival, metres.
    pub arrival_m: f64,
    /// Where it flies.
    pub surroundings: Surroundings,
}

impl Budget {
    /// The errors of two positions, metres.
    fn position_m(&self) -> f64 {
        DEVIATIONS * SQRT_2 * self.surroundings.gnss_error_m
    }

    /// Wind on two aircraft, each in gusts of its own, metres.
    fn wind_m(&self) -> f64 {
        DEVIATIONS * SQRT_2 * CARRIED_S * self.surroundings.wind_m_s
    }

    /// How much nearer two aircraft may be over the ground than they report, or are ordered, metres.
    pub fn drift_m(&self) -> f64 {
        libm::hypot(self.position_m(), self.wind_m()).max(STRAY_LEAST_M)
    }

    /// How much nearer two aircraft may be in height than their heights above their homes, metres.
    pub fn height_m(&self) -> f64 {
        self.position_m() * HEIGHT_SHARE + self.surroundings.slope_m
    }

    /// How much nearer to each other two aircraft may be, or an aircraft to a path, than it is known, metres. One number for
    /// all directions: distances are compared in space.
    pub fn stray_m(&self) -> f64 {
        self.drift_m().max(self.height_m())
    }

    /// How far from its waypoint an aircraft may be when it reports to have arrived, metres.
    pub fn off_m(&self) -> f64 {
        self.arrival_m + libm::hypot(self.position_m(), self.wind_m()) / SQRT_2
    }

    /// How far from its place an aircraft that holds it may report to be, metres.
    pub fn held_m(&self) -> f64 {
        self.arrival_m + self.wind_m() / SQRT_2
    }

    /// The distance on the ground from one that takes off, and between those that land.
    fn with(&self, bias_m: f64, bias: Term) -> Least {
        let stray_m = self.stray_m();
        let (term, term_m) = if bias_m > stray_m {
            (bias, bias_m)
        } else if self.height_m() > self.drift_m() {
            (Term::Heights, stray_m)
        } else if self.position_m() >= self.wind_m() {
            (Term::Position, stray_m)
        } else {
            (Term::Wind, stray_m)
        };
        Least { distance_m: self.separation_m + stray_m + bias_m, term, term_m }
    }

    /// Between aircraft on the ground, of which one climbs.
    pub fn ground(&self) -> Least {
        self.with(0.0, Term::Arrival)
    }

    /// Between the planned paths of a take-off, metres. Their times are those of aircraft that do not wait, and in the air
    /// each holds behind another that it receives: what aircraft stray in any case is in that, and only more is added.
    pub fn take_off_m(&self) -> f64 {
        self.separation_m + self.stray_m() - STRAY_LEAST_M
    }

    /// Between landing positions: each aircraft begins to land within the radius of arrival.
    pub fn landing(&self) -> Least {
        self.with(2.0 * self.arrival_m, Term::Arrival)
    }

    /// Between the slots of aircraft that fly at this speed, metres per second. Where they hover, each is within the
    /// radius of arrival. Where one flies behind another that is stopped by BRAKE, it flies on for the time of reaction
    /// and brakes as any multicopter can. That one whose companion died is stopped without a word costs nothing more: its
    /// guardian notices that when the aircraft behind does.
    pub fn spacing(&self, speed_m_s: f64) -> Least {
        let braking_m = speed_m_s * (REACTION_S + SWINGS_BACK_S)
            + speed_m_s * speed_m_s / 2.0 * (1.0 / BRAKING_M_S2 - 1.0 / STOPPING_M_S2);
        let arrival_m = 2.0 * self.arrival_m;
        if braking_m > arrival_m {
            self.with(braking_m, Term::Braking)
        } else {
            self.with(arrival_m, Term::Arrival)
        }
    }
}

/// What an aircraft measures of where it flies; `None` is not known, and changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Standard deviation of its position over the ground, metres per axis, as far as it is not common to all aircraft.
    pub gnss_error_m: Option<f64>,
    /// Velocity of the air over the ground, metres per second east and north.
    pub air_m_s: Option<DVec2>,
    /// It has lost its satellites, or its filter the position: within seconds nothing steers it.
    pub is_blind: bool,
}

/// An estimate of the wind includes gusts of some seconds: it may be this share of the mean.
pub const ESTIMATE_SHARE: f64 = 1.5;
/// An estimate of the accuracy counts where it exceeds the stated one by this share.
const COUNTS_FROM: f64 = 1.1;
/// Steps of an accuracy that counts, in metres: it is rounded up.
const ACCURACY_STEP_M: f64 = 0.1;

/// Returns the velocity of air that comes from there (radians clockwise from north), in metres per second east and north.
pub fn air_m_s(speed_m_s: f64, from_rad: f64) -> DVec2 {
    let (sin, cos) = libm::sincos(from_rad);
    DVec2::new(-sin, -cos) * speed_m_s
}

impl Budget {
    /// Returns the greatest speed that slots at this distance allow, in metres per second, in whole tenths; `None` where they are too near for
    /// aircraft that hover.
    pub fn speed_most_m_s(&self, distance_m: f64) -> Option<f64> {
        let left_m = distance_m - self.separation_m - self.stray_m();
        if left_m < 2.0 * self.arrival_m {
            return None;
        }
        let (a, b) = ((1.0 / BRAKING_M_S2 - 1.0 / STOPPING_M_S2) / 2.0, REACTION_S + SWINGS_BACK_S);
        let most_m_s = (libm::sqrt(b * b + 4.0 * a * left_m) - b) / (2.0 * a);
        Some(libm::floor(most_m_s * 10.0 + 1e-6) / 10.0)
    }
}

impl Surroundings {
    /// Returns the larger of what is stated and what is measured.
    pub fn with(self, measured: Measured) -> Self {
        let exceeds = |error_m: &f64| *error_m > self.gnss_error_m * COUNTS_FROM;
        let steps = |error_m: f64| libm::ceil(error_m / ACCURACY_STEP_M - 1e-6) * ACCURACY_STEP_M;
        let gnss_error_m = measured.gnss_error_m.filter(exceeds).map_or(self.gnss_error_m, steps);
        let mean_m_s = measured.air_m_s.map_or(0.0, |air_m_s| air_m_s.length() / ESTIMATE_SHARE);
        Self { gnss_error_m, wind_m_s: self.wind_m_s.max(mean_m_s), ..self }
    }

    /// Judges what is stated.
    ///
    /// # Errors
    /// The first number that is no place to fly in.
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::range("gnss_error_m", self.gnss_error_m, 0.0, 10.0)?;
        ConfigError::range("wind_m_s", self.wind_m_s, 0.0, 15.0)?;
        ConfigError::range("slope_m", self.slope_m, 0.0, 100.0)
    }
}

/// The mean wind in which an aircraft holds its place, metres per second, where it flies at most so fast through the air
/// at its greatest lean: gusts of four deviations are no faster than that.
pub fn wind_most_m_s(airspeed_m_s: f64) -> f64 {
    airspeed_m_s / (1.0 + DEVIATIONS * GUST_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(gnss_error_m: f64, wind_m_s: f64) -> Budget {
        let surroundings = Surroundings { gnss_error_m, wind_m_s, slope_m: 1.5 };
        Budget { separation_m: 5.0, arrival_m: 1.0, surroundings }
    }

    fn tenths(metres: f64) -> f64 {
        libm::round(metres * 10.0) / 10.0
    }

    /// The table of `docs/separation.md`.
    #[test]
    fn the_distances_are_those_of_the_document() {
        for (gnss_error_m, wind_m_s, ground_m, landing_m, spacing_m, stray_m) in [
            (0.0, 0.0, 8.0, 10.0, [15.6, 29.8, 50.8], 3.0),
            (0.3, 0.0, 8.0, 10.0, [15.6, 29.8, 50.8], 3.0),
            (0.5, 2.0, 8.0, 10.0, [15.6, 29.8, 50.8], 3.0),
            (0.3, 4.0, 8.0, 10.0, [15.6, 29.8, 50.8], 3.0),
            (1.5, 0.0, 13.5, 15.5, [21.1, 35.3, 56.2], 8.5),
            (1.5, 4.0, 13.7, 15.7, [21.3, 35.5, 56.5], 8.7),
            (2.5, 0.0, 19.1, 21.1, [26.7, 41.0, 61.9], 14.1),
            (2.5, 4.0, 19.3, 21.3, [26.9, 41.1, 62.0], 14.3),
        ] {
            let budget = budget(gnss_error_m, wind_m_s);
            let spacing = [5.0, 10.0, 15.0].map(|speed_m_s| tenths(budget.spacing(speed_m_s).distance_m));
            let found = (tenths(budget.ground().distance_m), tenths(budget.landing().distance_m), spacing);
            assert_eq!(found, (ground_m, landing_m, spacing_m), "{gnss_error_m} m, {wind_m_s} m/s");
            assert_eq!(tenths(budget.stray_m()), stray_m, "{gnss_error_m} m, {wind_m_s} m/s");
        }
    }

    #[test]
    fn the_default_landing_distance_is_the_budgets() {
        let config = crate::swarm::Config::new(wingbeat_wire::VehicleId(1), wingbeat_wire::VehicleId(1), 2);
        let least_m = config.budget().landing().distance_m;
        assert_eq!((config.landing_distance_m, config.default_landing_distance_m()), (least_m, least_m));
    }

    #[test]
    fn the_greatest_term_is_named() {
        assert_eq!(budget(0.5, 0.0).landing().term, Term::Position);
        assert_eq!(budget(0.1, 6.0).landing().term, Term::Wind);
        assert_eq!(budget(0.5, 0.0).spacing(10.0).term, Term::Braking);
        assert_eq!(budget(2.5, 0.0).spacing(5.0).term, Term::Position);
        let wide = Budget { arrival_m: 4.0, ..budget(0.5, 0.0) }.landing();
        assert_eq!((wide.distance_m, wide.term, wide.term_m), (16.0, Term::Arrival, 8.0));
    }

    #[test]
    fn a_slope_counts_in_every_direction() {
        let mut steep = budget(0.5, 2.0);
        assert_eq!(steep.stray_m(), 3.0);
        steep.surroundings.slope_m = 6.0;
        assert!((steep.stray_m() - (6.0 + 2.0 * SQRT_2 * 0.5)).abs() < 1e-9);
        let landing = steep.landing();
        assert_eq!((landing.distance_m, landing.term), (7.0 + steep.stray_m(), Term::Heights));
    }

    #[test]
    fn an_aircraft_holds_its_place_in_gusts_no_faster_than_it_flies() {
        // ArduCopter 3.5.7 at 45 degrees, 4.6.2 at 30.
        assert_eq!([AIRSPEED_3_M_S, AIRSPEED_4_M_S].map(|m_s| tenths(wind_most_m_s(m_s))), [6.8, 4.5]);
    }

    #[test]
    fn the_larger_of_stated_and_measured_counts() {
        let stated = Surroundings::default();
        let with = |gnss_error_m, air_m_s| stated.with(Measured { gnss_error_m, air_m_s, is_blind: false });
        assert_eq!(with(None, None), stated, "not known");
        assert_eq!(with(Some(0.3), Some(DVec2::new(0.0, -2.9))), stated);
        assert_eq!(with(Some(0.54), None), stated, "an estimate is not so exact");
        let worse = with(Some(1.96), Some(DVec2::new(0.0, -4.5)));
        assert!((worse.gnss_error_m - 2.0).abs() < 1e-9 && (worse.wind_m_s - 3.0).abs() < 1e-9, "{worse:?}");
    }

    #[test]
    fn the_speed_that_a_distance_allows_is_the_one_whose_spacing_it_is() {
        for (gnss_error_m, speed_m_s) in [(0.5, 5.0), (0.5, 10.0), (1.5, 3.0)] {
            let budget = budget(gnss_error_m, 2.0);
            let found = budget.speed_most_m_s(budget.spacing(speed_m_s).distance_m).unwrap();
            assert!((found - speed_m_s).abs() < 1e-9, "{found}");
        }
        assert_eq!(budget(0.5, 2.0).speed_most_m_s(9.9), None);
    }

    #[test]
    fn what_is_no_place_to_fly_in_is_refused() {
        let bad = [
            ("gnss_error_m", Surroundings { gnss_error_m: f64::NAN, ..Surroundings::default() }),
            ("wind_m_s", Surroundings { wind_m_s: -1.0, ..Surroundings::default() }),
            ("slope_m", Surroundings { slope_m: 101.0, ..Surroundings::default() }),
        ];
        for (key, surroundings) in bad {
            assert_eq!(surroundings.check().unwrap_err().key, key);
        }
    }
}
