//! What MBCAP is configured with: the published numbers of both variants, and the switches where the
//! sources disagree (`docs/protocols/mbcap.md`).

use serde::Deserialize;
use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::VehicleId;

use super::Mbcap;
use crate::{ConfigError, Configuration, Fence};

/// Peers refuse more than 20 beacons a second ([`super::neighbours`]); this leaves half of that.
const BEACON_PERIOD_LEAST_MS: u64 = 100;
const _: () = assert!(2 * (1_000 / BEACON_PERIOD_LEAST_MS) <= super::neighbours::STORM_BEACONS as u64);
/// A longer wait for one peer is a mistake.
const WAIT_MOST_MS: u64 = 600_000;
/// Error of a curve flown at its waypoint (thesis equation 5.5), metres.
const CURVE_ERROR_M: f64 = 1.5;
/// Error of the flight to the position aside (thesis equation 5.5), metres.
const PRECISION_M: f64 = 1.0;

/// Which of the two fits of figure 5.12 gives the braking distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BrakeFit {
    /// As printed: 12 to 17 locations in a beacon.
    Published,
    /// Of the reference implementation since 2019: 11 to 16.
    Later,
}

/// The horizon of a prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    /// From the position.
    None,
    /// From its foot on the leg.
    Leg,
}

/// How locations are predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// How far ahead positions are predicted.
    pub horizon: Horizon,
    /// Time between two locations, seconds.
    pub hop_s: f64,
    /// Where the first location lies.
    pub projection: Projection,
    /// Whether the filtered acceleration counts (alternative 3).
    pub accelerates: bool,
    /// Braking harder than this (negative, m/s²), only the current location is broadcast.
    pub braking_m_s2: Option<f64>,
}

/// When two predictions are a risk.
#[derive(Clone, Copy, Debug, PartialEq)]
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
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// This aircraft: the higher id has the right of way.
    pub me: VehicleId,
    /// `mbcap` or `mbcap-e`.
    pub name: &'static str,
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
    /// Distance from the peer's path that is safe to wait at, metres.
    pub safe_distance_m: f64,
    /// Whether a curve of the peer widens that (MBCAP-e, figure 5.18).
    pub curves: Option<CurveFit>,
    /// Whether overtaking ends only `risk.distance_m` beyond the peer (MBCAP-e).
    pub overtake_beyond: bool,
    /// Whether aircraft that land neither stop nor stop others (MBCAP-e).
    pub landing_is_out: bool,
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
}

/// When waiting has lasted too long.
#[derive(Clone, Copy, Debug, PartialEq)]
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
                let flight_s = 2.0 * distance_m / planned_speed_m_s.max(super::predict::STANDING_M_S);
                least.max(base + Duration::from_millis((flight_s * 1e3) as u64))
            }
        }
    }
}

/// Which beacon's state lets the lower aircraft decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AsideTests {
    /// That of the aircraft avoided: as in the thesis.
    Avoided,
    /// That of the aircraft scanned last: a defect of the reference. Flown by the bench only.
    LastScanned,
}

/// The 5 m/s row of the curve table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
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
            name: "mbcap",
            planned_speed_m_s: 10.0,
            height_least_m: 2.0,
            height_most_m: 120.0,
            distance_most_m: 5_000.0,
            prediction: Prediction {
                horizon: Horizon::Fixed { time_s: 25.0, distance_m: 90.0 },
                hop_s: 0.5,
                projection: Projection::Leg,
                accelerates: true,
                braking_m_s2: None,
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
            safe_distance_m: 20.0,
            curves: None,
            overtake_beyond: false,
            landing_is_out: false,
            stopped_m_s: 0.2,
            calm: Duration::from_secs(30),
            stop: Duration::from_secs(5),
            hold_before_landing: Duration::from_secs(60),
            aside_tests: AsideTests::Avoided,
        }
    }

    /// Thesis section 5.3, with the reference implementation's numbers.
    pub fn mbcap_e() -> Self {
        let gps_error_m = 2.5;
        Self {
            name: "mbcap-e",
            prediction: Prediction {
                horizon: Horizon::BySpeed {
                    brake: BrakeFit::Later,
                    gps_error_m,
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
            safe_distance_m: Self::safe_distance_m(gps_error_m),
            curves: Some(CurveFit::Corrected),
            overtake_beyond: true,
            landing_is_out: true,
            stopped_m_s: 0.6,
            calm: Duration::from_secs(10),
            ..Self::mbcap()
        }
    }
}

impl Config {
    /// Thesis equation 5.5: both GNSS errors, the curve's and the position's.
    pub fn safe_distance_m(gps_error_m: f64) -> f64 {
        2.0 * gps_error_m + CURVE_ERROR_M + PRECISION_M
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
        ConfigError::distance("safe_distance_m", self.safe_distance_m)?;
        ConfigError::range("stopped_m_s", self.stopped_m_s, 0.05, 5.0)?;
        ConfigError::period("calm_ms", self.calm, 0, WAIT_MOST_MS)?;
        ConfigError::period("stop_ms", self.stop, 0, WAIT_MOST_MS)?;
        ConfigError::wait("hold_before_landing_ms", self.hold_before_landing, 0)
    }
    fn begin(&self, seed: u64, now: Instant) -> Mbcap {
        Mbcap::new(self.clone(), seed, now)
    }
}
