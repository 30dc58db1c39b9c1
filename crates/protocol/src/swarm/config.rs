//! What an aircraft is configured with before it meets its swarm.

use serde::{Deserialize, Serialize};
use wingbeat_geo::formation::{Layout, Offsets};
use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::VehicleId;

use super::budget::{Budget, Surroundings};
use crate::{ConfigError, Fence};

/// Distance between slots when landing in default surroundings, metres.
const LANDING_DISTANCE_M: f64 = 10.0;

/// Configuration of one aircraft. [`Config::new`] gives the published numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// This aircraft.
    pub me: VehicleId,
    /// The aircraft that plans; no other is obeyed.
    pub master: VehicleId,
    /// A pilot flies the master: it is the centre, and the others take off around it (FollowMe).
    pub piloted_master: bool,
    /// How many aircraft the swarm has, this one included; the master refuses a setup before it has received a
    /// datagram of each.
    pub aircraft: usize,
    /// Shape of the formation (master's).
    pub layout: Layout,
    /// Its slots, if it is custom (master's).
    pub offsets: Offsets,
    /// Distance between slots in flight (master's; thesis 6.3.1: 50 m).
    pub distance_m: f64,
    /// Distance between slots when landing (master's). The thesis says "i.e. 5 meters" and the reference
    /// lands 2.5 m apart; 10 m are what the budget asks for by default ([`Budget::landing`]).
    pub landing_distance_m: f64,
    /// Lowest height of a waypoint above home.
    pub height_least_m: f64,
    /// Highest height of a waypoint above home: the fence.
    pub height_most_m: f64,
    /// Farthest waypoint from where the swarm assembles.
    pub distance_most_m: f64,
    /// Period of every message (thesis 6.1.3: 200 ms).
    pub send_period: Duration,
    /// How long a message must be silent before its absence is an answer (reference: 2 s).
    pub silence: Duration,
    /// Period of the checks for arrival (reference: 200 ms); zero checks every position report.
    pub arrival_period: Duration,
    /// Arrived when nearer than this to the waypoint (reference: 1 m).
    pub arrival_m: f64,
    /// And when its height is off by no more than this, metres. `None`, as the reference: 1 m up to 20 m, 5 % up to
    /// 50 m, 2.5 m above.
    pub arrival_height_m: Option<f64>,
    /// How the swarm takes off (master's).
    pub take_off: Manner,
    /// How this aircraft lands after the leader: with the others, or when those nearer to the leader are down
    /// (MUSCOP; alike on all).
    pub landing: Manner,
    /// A member that has been silent for this time is lost (reference: 5 s).
    pub time_to_live: Duration,
    /// No two aircraft come nearer to one another than this.
    pub separation_m: f64,
    /// Where it flies: how far apart aircraft are planned follows from it (the same on all).
    pub surroundings: Surroundings,
    /// Speed through the air at the greatest lean, metres per second; `None`: that of ArduCopter as it is simulated.
    pub airspeed_m_s: Option<f64>,
    /// Whether a formation closer than the budget asks for is flown all the same (master's).
    pub accepts_close: bool,
    /// After a failure the aircraft holds for this time, so that the operator can decide, and then lands.
    pub hold_before_landing: Duration,
}

impl Config {
    /// The published numbers.
    pub fn new(me: VehicleId, master: VehicleId, aircraft: usize) -> Self {
        Self {
            me,
            master,
            piloted_master: false,
            aircraft,
            layout: Layout::Linear,
            offsets: Offsets::new(),
            distance_m: 50.0,
            landing_distance_m: LANDING_DISTANCE_M,
            height_least_m: 2.0,
            height_most_m: 120.0,
            distance_most_m: 5_000.0,
            send_period: Duration::from_millis(200),
            silence: Duration::from_secs(2),
            arrival_period: Duration::from_millis(200),
            arrival_m: 1.0,
            arrival_height_m: None,
            take_off: Manner::Sequential,
            landing: Manner::Simultaneous,
            time_to_live: Duration::from_secs(5),
            separation_m: 5.0,
            surroundings: Surroundings::default(),
            airspeed_m_s: None,
            accepts_close: false,
            hold_before_landing: Duration::from_secs(60),
        }
    }

    /// When a wait for others ends that began at `since`: twice the hold before a landing.
    pub(crate) fn patience_after(&self, since: Instant) -> Instant {
        since + self.hold_before_landing + self.hold_before_landing
    }

    /// How long all waits for members that stay away may take together: three times the hold before a landing.
    pub(crate) fn stall_most(&self) -> Duration {
        self.hold_before_landing + self.hold_before_landing + self.hold_before_landing
    }

    /// How far apart its aircraft have to be planned.
    pub fn budget(&self) -> Budget {
        let Self { separation_m, arrival_m, surroundings, .. } = *self;
        Budget { separation_m, arrival_m, surroundings }
    }

    /// The landing distance of a swarm that states none, metres: the usual one, or what the budget asks for, in whole
    /// half metres.
    pub fn default_landing_distance_m(&self) -> f64 {
        let least_m = self.budget().landing().distance_m;
        LANDING_DISTANCE_M.max(libm::ceil(least_m * 2.0) / 2.0)
    }

    /// Nearer than this to where an aircraft may be a path is not clear, metres.
    pub(crate) fn clear_m(&self) -> f64 {
        self.separation_m + self.budget().stray_m()
    }

    /// Where waypoints may lie.
    pub fn fence(&self) -> Fence {
        Fence {
            height_least_m: self.height_least_m,
            height_most_m: self.height_most_m,
            distance_most_m: self.distance_most_m,
        }
    }

    /// Judges every number that the swarm core uses. One aircraft alone is a swarm here.
    ///
    /// # Errors
    /// The first number that cannot be flown.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.fence().judge()?;
        ConfigError::aircraft(self.aircraft, 1)?;
        ConfigError::distance("distance_m", self.distance_m)?;
        ConfigError::distance("landing_distance_m", self.landing_distance_m)?;
        ConfigError::distance("separation_m", self.separation_m)?;
        ConfigError::distance("arrival_m", self.arrival_m)?;
        self.surroundings.check()?;
        if let Some(airspeed_m_s) = self.airspeed_m_s {
            ConfigError::range("airspeed_m_s", airspeed_m_s, 1.0, 60.0)?;
        }
        if let Some(arrival_height_m) = self.arrival_height_m {
            // The layers of returns leave no more room above the waypoints.
            ConfigError::range("arrival_height_m", arrival_height_m, 0.1, 2.5)?;
        }
        ConfigError::period("send_period_ms", self.send_period, 20, 5_000)?;
        ConfigError::period("arrival_period_ms", self.arrival_period, 0, 5_000)?;
        ConfigError::wait("silence_ms", self.silence, 100)?;
        ConfigError::wait("time_to_live_ms", self.time_to_live, 1_000)?;
        ConfigError::wait("hold_before_landing_ms", self.hold_before_landing, 0)
    }
}

/// Whether aircraft do something one after the other or together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Manner {
    /// One after the other.
    Sequential,
    /// All together, where their paths never meet.
    Simultaneous,
}

impl Manner {
    /// Every manner.
    pub const ALL: [Self; 2] = [Self::Sequential, Self::Simultaneous];
}
