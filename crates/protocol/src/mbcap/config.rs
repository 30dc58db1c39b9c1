//! What MBCAP is configured with: the published numbers of both variants, and the switches where the
//! sources disagree (`docs/protocols/mbcap.md`).

use core::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::VehicleId;

use super::Mbcap;
use super::silent::SILENT_AFTER;
use crate::{ConfigError, Configuration, Fence, Handling};

/// Peers refuse more than 20 beacons a second ([`super::neighbours`]); this leaves half of that.
const BEACON_PERIOD_LEAST_MS: u64 = 100;
const _: () = assert!(2 * (1_000 / BEACON_PERIOD_LEAST_MS) <= super::neighbours::STORM_BEACONS as u64);
/// Names of the published variants.
const VARIANTS: [&str; 2] = ["mbcap", "mbcap-e"];
/// The published 2.5 m are this many standard deviations of a receiver under a good sky (0.5 m per axis at an HDOP of 1.2).
const ERRORS: f64 = 5.0;
/// Steps in which the measured error counts, metres.
const ERROR_STEP_M: f64 = 0.5;
/// A receiver that reports a larger error has no position to avoid others by, metres.
const ERROR_MOST_M: f64 = 25.0;
/// One that stops for another stops this much further from it than it passes it, metres.
const RISK_BEYOND_SAFE_M: f64 = 7.5;
/// A longer wait for one peer is a mistake.
const WAIT_MOST_MS: u64 = 600_000;

/// Which of the two fits of figure 5.12 gives the braking distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BrakeFit {
    /// As printed: 12 to 17 locations in a beacon.
    Published,
    /// Of the reference implementation since 2019: 11 to 16.
    Later,
}

/// The horizon of a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Horizon {
    /// MBCAP: always the same time; risks farther than `distance_m` do not count.
    Fixed {
        /// Seconds ahead.
        time_s: f64,
        /// Reaction threshold, metres.
        distance_m: f64,
    },
    /// MBCAP-e, equation 5.4.
    BySpeed {
        /// Braking distance.
        brake: BrakeFit,
        /// d_GPS, metres.
        gps_error_m: f64,
        /// d_react per speed: the time between two checks, seconds.
        reaction_s: f64,
        /// d_comm per speed: the time that messages may be lost, seconds.
        loss_s: f64,
    },
}

/// Alternative 1 predicts from the position itself, 2 and 3 from the mission's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Projection {
    /// From the position.
    None,
    /// From its foot on the leg.
    Leg,
}

/// How locations are predicted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// How far ahead positions are predicted.
    pub horizon: Horizon,
    /// Time between two locations, seconds.
    pub hop_s: f64,
    /// Where the first location lies.
    pub projection: Projection,
    /// Whether the filtered acceleration counts (alternative 3).
    pub accelerates: bool,
    /// The filter of the acceleration.
    pub filter: Filter,
    /// Slower than this only the current location is broadcast, metres per second (thesis section 5.1.3).
    pub moving_m_s: f64,
    /// Braking harder than this (negative, m/s²), only the current location is broadcast.
    pub braking_m_s2: Option<f64>,
    /// How the flight controller moves: no matter of configuration, it is told by the agent.
    pub handling: Handling,
}

/// How the acceleration is filtered (thesis equation 5.1).
///
/// The thesis prints a minus before (1 − α) and a dead band of 0.1 m/s²; its program adds, and uses 0.2.
/// A filter with the printed sign oscillates, so the program is followed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// α: the share of the newest acceleration, per cent.
    pub newest_percent: f64,
    /// A lower acceleration counts as none, metres per second squared.
    pub dead_band_m_s2: f64,
}

impl Default for Filter {
    fn default() -> Self {
        Self { newest_percent: 20.0, dead_band_m_s2: 0.2 }
    }
}

/// What gives the distance from the peer's path that is safe to wait at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum SafeDistance {
    /// This many metres.
    Fixed(f64),
    /// Equation 5.5: both GNSS errors ([`Horizon::BySpeed`]) and these two.
    ByErrors {
        /// Error of a curve flown at its waypoint, metres.
        curve_m: f64,
        /// Error of the flight to the position aside, metres.
        aside_m: f64,
    },
}

/// When two predictions are a risk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Risk {
    /// Nearer than this over ground, metres.
    pub distance_m: f64,
    /// And nearer than this in height, metres.
    pub height_m: f64,
    /// And nearer than this in time, seconds.
    pub time_s: f64,
    /// Whether a standing aircraft is a risk at any time (MBCAP-e).
    pub standing_at_any_time: bool,
}

/// What one aircraft under MBCAP is configured with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// This aircraft: the higher id has the right of way.
    pub me: VehicleId,
    /// `mbcap` or `mbcap-e`.
    #[serde(deserialize_with = "known_name")]
    pub name: Name,
    /// Speed of the mission, which the flight controller keeps, metres per second.
    pub planned_speed_m_s: f64,
    /// Lowest height of a waypoint above home, metres.
    pub height_least_m: f64,
    /// Highest height of a waypoint above home: the fence, metres.
    pub height_most_m: f64,
    /// Farthest waypoint from where the aircraft is set up, metres.
    pub distance_most_m: f64,
    /// Prediction.
    pub prediction: Prediction,
    /// Risk.
    pub risk: Risk,
    /// Time between two beacons.
    pub beacon_period: Duration,
    /// Beacons that carry the same prediction.
    pub beacons_per_prediction: u32,
    /// Whether a change of state makes a new prediction immediately (MBCAP-e).
    pub renew_at_change: bool,
    /// Older beacons are not used.
    pub beacon_validity: Duration,
    /// Time between two checks for risks, which drive the state machine.
    pub check_period: Duration,
    /// Time in StandStill before any other state.
    pub standing: Duration,
    /// Time in Overtaking before it may end.
    pub overtaking: Duration,
    /// Time in Normal before the claim of a peer without a risk of our own is accepted.
    pub resume: Duration,
    /// Time for which the peer of a solved risk is not checked; zero in the original.
    pub recheck: Duration,
    /// Longest time in one state outside Normal.
    pub deadlock: Deadlock,
    /// Time for which the deadlock time is suspended at most, while the peer has a conflict with a third aircraft.
    pub turn: Duration,
    /// Distance from the peer's path that is safe to wait at.
    pub safe_distance: SafeDistance,
    /// Whether a curve of the peer widens that (MBCAP-e, figure 5.18).
    pub curves: Option<CurveFit>,
    /// Whether overtaking ends only `risk.distance_m` beyond the peer (MBCAP-e).
    pub overtake_beyond: bool,
    /// Whether one that passes stops for a third that passes, moves aside or stands in its way (ours, in MBCAP-e).
    pub passing_judges: bool,
    /// Whether aircraft that land neither stop nor stop others (MBCAP-e).
    pub landing_is_out: bool,
    /// Whether it avoids others to the end of its flight: after its last waypoint counts as reached, and ordered home on its
    /// way there (ours, in MBCAP-e).
    pub avoids_to_the_end: bool,
    /// Standing means slower than this, metres per second.
    pub stopped_m_s: f64,
    /// Longest time until the aircraft stands at the position aside.
    pub calm: Duration,
    /// Longest time of braking: after it the aircraft counts as standing.
    pub stop: Duration,
    /// After a failure the aircraft holds for this time, so that the operator can decide, and then lands. A conflict
    /// that was not solved is no failure: there it lands without holding, as published.
    pub hold_before_landing: Duration,
    /// The state that transition d tests (the reference tests the last scanned beacon's: a defect).
    pub aside_tests: AsideTests,
    /// The error of positions that the receiver reports, in metres: no matter of configuration, it is told by the agent. Where it
    /// is larger than the configured one it widens the distances of MBCAP-e; zero where it is not known.
    #[serde(skip)]
    pub measured_error_m: f64,
}

/// The name of a variant. Not written out in [`Config`]: the derived reading would borrow it from what is read.
pub type Name = &'static str;

/// The name of a variant, read from a log.
fn known_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
    struct Known;
    impl Visitor<'_> for Known {
        type Value = &'static str;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the name of a variant")
        }
        fn visit_str<E: de::Error>(self, found: &str) -> Result<&'static str, E> {
            let known = VARIANTS.into_iter().find(|name| *name == found);
            known.ok_or_else(|| E::unknown_variant(found, &VARIANTS))
        }
    }
    deserializer.deserialize_str(Known)
}

/// When waiting has lasted too long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Deadlock {
    /// MBCAP-e.
    Fixed(Duration),
    /// The original program: the time to fly `distance_m` there and back, and `base`, but never less than
    /// `least`.
    BySpeed {
        /// At least.
        least: Duration,
        /// Beside the flight.
        base: Duration,
        /// One way, metres.
        distance_m: f64,
    },
}

impl Deadlock {
    /// For an aircraft of this planned speed.
    pub fn timeout(self, planned_speed_m_s: f64) -> Duration {
        match self {
            Self::Fixed(timeout) => timeout,
            Self::BySpeed { least, base, distance_m } => {
                let flight_s = 2.0 * distance_m / planned_speed_m_s.max(super::predict::LEAST_M_S);
                least.max(base + Duration::from_millis((flight_s * 1e3) as u64))
            }
        }
    }
}

/// Which beacon's state lets the lower aircraft decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AsideTests {
    /// That of the aircraft avoided: as in the thesis.
    Avoided,
    /// That of the aircraft scanned last: a defect of the reference. Flown by the bench only.
    LastScanned,
}

/// The 5 m/s row of the curve table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CurveFit {
    /// With the sign that all other rows have.
    Corrected,
    /// As the reference computes: +1.33 α², almost surely a slip of the sign. Flown by the bench only.
    AsCoded,
}

impl Config {
    /// Thesis section 5.1.
    pub fn mbcap() -> Self {
        Self {
            me: VehicleId(0),
            name: VARIANTS[0],
            planned_speed_m_s: 10.0,
            height_least_m: 2.0,
            height_most_m: 120.0,
            distance_most_m: 5_000.0,
            prediction: Prediction {
                horizon: Horizon::Fixed { time_s: 25.0, distance_m: 90.0 },
                hop_s: 0.5,
                projection: Projection::Leg,
                accelerates: true,
                filter: Filter::default(),
                moving_m_s: 1.0,
                braking_m_s2: None,
                handling: Handling::Tracks,
            },
            risk: Risk { distance_m: 20.0, height_m: 50.0, time_s: 0.5, standing_at_any_time: false },
            beacon_period: Duration::from_millis(200),
            beacons_per_prediction: 5,
            renew_at_change: false,
            beacon_validity: Duration::from_secs(10),
            check_period: Duration::from_secs(2),
            standing: Duration::from_secs(5),
            overtaking: Duration::from_secs(5),
            resume: Duration::from_secs(4),
            recheck: Duration::ZERO,
            deadlock: Deadlock::BySpeed {
                least: Duration::from_secs(50),
                base: Duration::from_secs(20),
                distance_m: 90.0,
            },
            turn: Duration::from_secs(600),
            safe_distance: SafeDistance::Fixed(20.0),
            curves: None,
            overtake_beyond: false,
            passing_judges: false,
            landing_is_out: false,
            avoids_to_the_end: false,
            stopped_m_s: 0.2,
            calm: Duration::from_secs(30),
            stop: Duration::from_secs(5),
            hold_before_landing: Duration::from_secs(60),
            aside_tests: AsideTests::Avoided,
            measured_error_m: 0.0,
        }
    }

    /// Thesis section 5.3, with the reference implementation's numbers.
    pub fn mbcap_e() -> Self {
        Self {
            name: VARIANTS[1],
            prediction: Prediction {
                horizon: Horizon::BySpeed {
                    brake: BrakeFit::Later,
                    gps_error_m: 2.5,
                    reaction_s: 1.0,
                    loss_s: 2.0,
                },
                braking_m_s2: Some(-0.6),
                ..Self::mbcap().prediction
            },
            risk: Risk { standing_at_any_time: true, ..Self::mbcap().risk },
            renew_at_change: true,
            check_period: Duration::from_secs(1),
            recheck: Duration::from_secs(5),
            deadlock: Deadlock::Fixed(Duration::from_secs(120)),
            safe_distance: SafeDistance::ByErrors { curve_m: 1.5, aside_m: 1.0 },
            curves: Some(CurveFit::Corrected),
            overtake_beyond: true,
            passing_judges: true,
            landing_is_out: true,
            avoids_to_the_end: true,
            stopped_m_s: 0.6,
            calm: Duration::from_secs(10),
            ..Self::mbcap()
        }
    }
}

impl Config {
    /// Distance from the peer's path that is safe to wait at, metres.
    pub fn safe_distance_m(&self) -> f64 {
        match self.safe_distance {
            SafeDistance::Fixed(distance_m) => distance_m,
            SafeDistance::ByErrors { curve_m, aside_m } => {
                2.0 * self.stated_error_m().max(self.measured_error_m) + curve_m + aside_m
            }
        }
    }

    /// Returns the configured error of positions, in metres.
    fn stated_error_m(&self) -> f64 {
        match self.prediction.horizon {
            Horizon::Fixed { .. } => 0.0,
            Horizon::BySpeed { gps_error_m, .. } => gps_error_m,
        }
    }

    /// Takes the standard deviation per axis of the receiver's position, in metres; nothing where it is not known.
    pub(super) fn take_position_error(&mut self, error_m: Option<f64>) {
        let most_m = error_m.filter(|error_m| error_m.is_finite()).unwrap_or_default() * ERRORS;
        // In steps: the distances of one conflict do not follow every report.
        self.measured_error_m = (libm::ceil(most_m / ERROR_STEP_M) * ERROR_STEP_M).clamp(0.0, ERROR_MOST_M);
    }

    /// Nearer than this over ground is a risk, metres: as configured, and where the errors are larger than configured further
    /// than one that gives way stands, by as much as with the published numbers at least.
    pub(super) fn risk_distance_m(&self) -> f64 {
        match self.safe_distance {
            SafeDistance::ByErrors { .. } if self.measured_error_m > self.stated_error_m() => {
                self.risk.distance_m.max(self.safe_distance_m() + RISK_BEYOND_SAFE_M)
            }
            SafeDistance::ByErrors { .. } | SafeDistance::Fixed(_) => self.risk.distance_m,
        }
    }

    /// How near to one that stands this aircraft passes, metres: as near as to one that gave way to it, less what that one
    /// goes too far to be sure.
    pub(super) fn passing_distance_m(&self) -> f64 {
        match self.safe_distance {
            SafeDistance::Fixed(distance_m) => distance_m,
            SafeDistance::ByErrors { aside_m, .. } => self.safe_distance_m() - aside_m,
        }
    }

    /// Without a beacon for so long the last prediction of another reaches no farther than this aircraft needs to stop: the
    /// loss that equation 5.4 allows for. From then on it may be anywhere on its course.
    pub(super) fn prediction_lasts(&self) -> Duration {
        match self.prediction.horizon {
            // Of the original's 25 s a reaction is left when it is silent.
            Horizon::Fixed { .. } => SILENT_AFTER,
            Horizon::BySpeed { loss_s, .. } => {
                Duration::from_millis((loss_s * 1e3) as u64).clamp(self.beacon_period, SILENT_AFTER)
            }
        }
    }

    /// Where waypoints may lie.
    pub fn fence(&self) -> Fence {
        Fence {
            height_least_m: self.height_least_m,
            height_most_m: self.height_most_m,
            distance_most_m: self.distance_most_m,
        }
    }
}

impl Prediction {
    fn check(&self) -> Result<(), ConfigError> {
        ConfigError::range("prediction_hop_s", self.hop_s, 0.1, 5.0)?;
        match self.horizon {
            Horizon::Fixed { time_s, distance_m } => {
                ConfigError::range("horizon_s", time_s, 1.0, 60.0)?;
                ConfigError::distance("reaction_distance_m", distance_m)?;
            }
            Horizon::BySpeed {
                brake: BrakeFit::Published | BrakeFit::Later,
                gps_error_m,
                reaction_s,
                loss_s,
            } => {
                ConfigError::range("gps_error_m", gps_error_m, 0.0, 50.0)?;
                ConfigError::range("reaction_s", reaction_s, 0.0, 20.0)?;
                ConfigError::range("loss_s", loss_s, 0.0, 20.0)?;
            }
        }
        ConfigError::range("acceleration_newest_percent", self.filter.newest_percent, 1.0, 100.0)?;
        ConfigError::range("acceleration_dead_band_m_s2", self.filter.dead_band_m_s2, 0.0, 5.0)?;
        ConfigError::range("moving_m_s", self.moving_m_s, 0.1, 5.0)?;
        match self.braking_m_s2 {
            None => Ok(()),
            Some(braking_m_s2) => ConfigError::range("braking_m_s2", braking_m_s2, -10.0, -0.1),
        }
    }
}

impl Configuration for Config {
    type Machine = Mbcap;
    const SECTION: &'static str = "mbcap";

    fn me(&self) -> VehicleId {
        self.me
    }
    fn heights_m(&self) -> (f64, f64) {
        (self.height_least_m, self.height_most_m)
    }
    fn check(&self) -> Result<(), ConfigError> {
        self.fence().judge()?;
        ConfigError::speed("planned_speed_m_s", self.planned_speed_m_s)?;
        self.prediction.check()?;
        ConfigError::distance("risk_distance_m", self.risk.distance_m)?;
        ConfigError::distance("risk_height_m", self.risk.height_m)?;
        ConfigError::range("risk_time_s", self.risk.time_s, 0.1, 10.0)?;
        ConfigError::period("beacon_period_ms", self.beacon_period, BEACON_PERIOD_LEAST_MS, 5_000)?;
        let beacons = f64::from(self.beacons_per_prediction);
        ConfigError::range("beacons_per_prediction", beacons, 1.0, 100.0)?;
        ConfigError::period("beacon_validity_ms", self.beacon_validity, 1_000, WAIT_MOST_MS)?;
        ConfigError::period("check_period_ms", self.check_period, 20, 5_000)?;
        ConfigError::period("stand_still_ms", self.standing, 0, WAIT_MOST_MS)?;
        ConfigError::period("overtaking_ms", self.overtaking, 0, WAIT_MOST_MS)?;
        ConfigError::period("resume_ms", self.resume, 0, WAIT_MOST_MS)?;
        ConfigError::period("recheck_ms", self.recheck, 0, WAIT_MOST_MS)?;
        ConfigError::wait("deadlock_ms", self.deadlock.timeout(self.planned_speed_m_s), 10_000)?;
        ConfigError::wait("third_party_wait_ms", self.turn, 1_000)?;
        if let SafeDistance::ByErrors { curve_m, aside_m } = self.safe_distance {
            ConfigError::range("curve_error_m", curve_m, 0.0, 50.0)?;
            ConfigError::range("aside_error_m", aside_m, 0.0, 50.0)?;
        }
        ConfigError::distance("safe_distance_m", self.safe_distance_m())?;
        ConfigError::range("stopped_m_s", self.stopped_m_s, 0.05, 5.0)?;
        ConfigError::period("calm_ms", self.calm, 0, WAIT_MOST_MS)?;
        ConfigError::period("stop_ms", self.stop, 0, WAIT_MOST_MS)?;
        ConfigError::wait("hold_before_landing_ms", self.hold_before_landing, 0)
    }
    fn begin(&self, seed: u64, now: Instant) -> Mbcap {
        Mbcap::new(self.clone(), seed, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(change: impl Fn(&mut Config)) -> Result<f64, &'static str> {
        let mut config = Config { me: VehicleId(1), ..Config::mbcap_e() };
        change(&mut config);
        config.check().map(|()| config.safe_distance_m()).map_err(|error| error.key)
    }

    #[test]
    fn mbcap_06_the_safe_distance_is_that_of_equation_5_5_unless_one_is_given() {
        assert_eq!((Config::mbcap().safe_distance_m(), checked(|_| {})), (20.0, Ok(7.5)));
        let by_errors =
            |curve_m, aside_m| checked(|c| c.safe_distance = SafeDistance::ByErrors { curve_m, aside_m });
        assert_eq!(by_errors(3.0, 2.0), Ok(10.0));
        assert_eq!(
            (by_errors(51.0, 1.0), by_errors(1.0, -1.0)),
            (Err("curve_error_m"), Err("aside_error_m"))
        );
        // Both GNSS errors widen it.
        let wide = checked(|c| match &mut c.prediction.horizon {
            Horizon::BySpeed { gps_error_m, .. } => *gps_error_m = 5.0,
            Horizon::Fixed { .. } => {}
        });
        assert_eq!(wide, Ok(12.5));
        assert_eq!(checked(|c| c.safe_distance = SafeDistance::Fixed(0.0)), Err("safe_distance_m"));
    }

    #[test]
    fn mbcap_22_distances_grow_with_the_error_that_the_receiver_reports() {
        let with = |mut config: Config, error_m| {
            config.take_position_error(error_m);
            (config.safe_distance_m(), config.risk_distance_m())
        };
        let e = Config::mbcap_e;
        for as_configured in [None, Some(0.0), Some(0.3), Some(0.5), Some(f64::NAN)] {
            assert_eq!(with(e(), as_configured), (7.5, 20.0), "{as_configured:?}");
        }
        assert_eq!(with(e(), Some(1.0)), (12.5, 20.0));
        assert_eq!(with(e(), Some(2.0)), (22.5, 30.0));
        assert_eq!(with(e(), Some(1e9)), (52.5, 60.0), "bounded");
        assert_eq!(with(Config::mbcap(), Some(2.0)), (20.0, 20.0), "as published");
    }

    #[test]
    fn the_numbers_of_the_filter_and_of_moving_are_judged() {
        assert_eq!(
            [
                checked(|c| c.prediction.filter.newest_percent = 0.0),
                checked(|c| c.prediction.filter.dead_band_m_s2 = 5.1),
                checked(|c| c.prediction.moving_m_s = 0.0),
            ],
            [Err("acceleration_newest_percent"), Err("acceleration_dead_band_m_s2"), Err("moving_m_s"),]
        );
    }
}
