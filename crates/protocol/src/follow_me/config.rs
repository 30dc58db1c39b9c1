//! What one aircraft of a FollowMe flight is configured with.

use serde::{Deserialize, Serialize};
use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::VehicleId;

use crate::loss_budget::CORRELATED;
use crate::{ConfigError, Configuration, FollowMe, Handling, swarm};

/// No follower keeps up with a leader that broadcasts more often.
const REFRESH_LEAST_MS: u64 = 250;
/// Nor at this period, which only `accepts_close` permits.
const REFRESH_LEAST_CLOSE_MS: u64 = 100;
/// The greatest speed of a pilot in LOITER that the published distances are for, metres per second (`WPNAV_LOIT_SPEED` of 3.5.7).
const PUBLISHED_M_S: f64 = 5.0;
/// The separation in the published distances, metres.
const PUBLISHED_SEPARATION_M: f64 = 5.0;
/// Where motion is shaped a follower is behind by the way of so long, and of a refresh. Behind pilots who were drawn from seeds,
/// up to 10 m/s (4.6.2, simulated; `docs/protocols/follow-me.md`).
const SHAPED_LAG_S: f64 = 5.0;
/// A word that comes late, beside the one that was lost, seconds.
const WORD_LATE_S: f64 = 0.2;
/// A leader is lost after so many refreshes: seven datagrams in a row are lost, and the next may come late.
const REFRESHES_TO_LOSE: u32 = 8;
/// Why a distance is too close for its refresh.
const CLOSE: &str = "at this refresh followers lag behind so far that the leader flies into them (accepts_close flies it \
                     all the same)";

/// Configuration of one aircraft. [`Config::new`] gives the published numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Discovery, take-off, landing. Its master is the leader, which a pilot flies.
    pub swarm: swarm::Config,
    /// Height above home at which the followers assemble, and from which the leader is followed (reference: 19 m).
    pub height_m: f64,
    /// Period at which the leader broadcasts its position (thesis 7.3.3: 1000 ms).
    pub refresh: Duration,
    /// Below this part of [`Config::height_m`] the leader lands, per cent (reference: half).
    pub lands_below_percent: f64,
    /// How fast the outermost slot moves at most because the formation turns (leader's), metres per second;
    /// infinite turns with every turn of the nose, as published. A pilot turns the nose faster than any follower can
    /// fly around the leader: after half a turn in one step every follower would fly straight through the leader.
    #[serde(with = "wingbeat_geo::unbounded")]
    pub turn_m_s: f64,
    /// A leader from which no datagram came for this time is lost ([`Config::default_leader_timeout`]).
    pub leader_timeout: Duration,
    /// What a follower does then.
    pub leader_lost: LeaderLost,
    /// Whether a follower that holds because its leader was lost follows again when datagrams of it come again.
    pub follows_again: bool,
    /// How followers land when the leader does.
    pub landing: Landing,
    /// Whether a formation closer than [`Config::distance_least_m`], or a refresh under 250 ms, is flown all the
    /// same.
    pub accepts_close: bool,
}

/// What a follower does that has lost its leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaderLost {
    /// Hold position for an operator to decide, then land.
    #[default]
    Hold,
    /// Land where it is.
    Land,
}

/// How followers land.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Landing {
    /// Where they are (thesis 7.1.2).
    #[default]
    InPlace,
    /// In the formation drawn together around the leader (the reference's later version).
    Formation,
}

impl Config {
    /// The published numbers.
    pub fn new(me: VehicleId, leader: VehicleId, aircraft: usize) -> Self {
        let mut swarm = swarm::Config::new(me, leader, aircraft);
        swarm.piloted_master = true;
        // The thesis flies 50 m; see distance_least_m.
        swarm.distance_m = 60.0;
        Self {
            swarm,
            height_m: 19.0,
            refresh: Duration::from_secs(1),
            lands_below_percent: 50.0,
            turn_m_s: 3.0,
            leader_timeout: Self::default_leader_timeout(Duration::from_secs(1)),
            leader_lost: LeaderLost::default(),
            follows_again: true,
            landing: Landing::default(),
            accepts_close: false,
        }
    }

    /// Returns the time after which a leader with this refresh is lost. Nine in a line at 75 m on 802.11a lose a leader that lives
    /// less than once in 1000 flight hours ([`crate::loss_budget`]).
    pub fn default_leader_timeout(refresh: Duration) -> Duration {
        refresh.max(CORRELATED) * REFRESHES_TO_LOSE
    }

    /// Returns the time after which a follower holds that does not receive its leader: two losses in
    /// a row. Datagrams that are sent within [`CORRELATED`] are lost together, so a shorter refresh
    /// does not shorten this time.
    pub fn holds_after(&self) -> Duration {
        (self.refresh.max(CORRELATED) * 5 / 2).min(self.leader_timeout)
    }

    /// The least distance between slots at which the leader does not fly into a follower. A follower is tens of metres
    /// behind its slot, and more so the shorter the refresh (thesis Table 7.1): a leader that flies towards a
    /// follower closes that distance. Three parts, rounded up: the greatest lag behind a pilot at the bounds of LOITER
    /// (4.9 m/s) whose formation turns (40 m at 2000 ms, 49 m at 1000 ms, 61 m at 750 ms, 78 m at 500 ms, 112 m at
    /// 250 ms: the worst of 360 flights of five aircraft each, drawn from seeds); the leader's path until the datagram
    /// after a lost one has come (a refresh and 0.2 s); and the 5 m of separation.
    ///
    /// What aircraft stray beyond 3 m in their surroundings is added.
    ///
    /// That is of an autopilot that begins its track anew at every target, and its pilot. What the autopilot is and permits its
    /// pilot is known at *Setup* only ([`Config::distance_least_at_m`]).
    pub fn distance_least_m(&self) -> f64 {
        self.distance_least_at_m(PUBLISHED_M_S, Handling::Tracks)
    }

    /// The same behind a pilot whose aircraft flies up to so fast in LOITER. Where motion is shaped the lag is in proportion to
    /// the speed, and the longer the refresh the more ([`SHAPED_LAG_S`]); where tracks begin anew nothing faster than
    /// published was flown, and the square of the speed is assumed.
    pub fn distance_least_at_m(&self, pilot_m_s: f64, handling: Handling) -> f64 {
        let strays_m = self.swarm.budget().take_off_m() - self.swarm.separation_m;
        let published_m = self.published_least_m();
        let refresh_s = self.refresh.as_secs_f64();
        let faster = (pilot_m_s / PUBLISHED_M_S).max(1.0);
        strays_m
            + match handling {
                Handling::Tracks => published_m * faster * faster,
                Handling::Shaped => {
                    let lag_s = SHAPED_LAG_S + refresh_s;
                    (lag_s + refresh_s + WORD_LATE_S) * pilot_m_s + self.swarm.separation_m
                }
            }
    }
}

impl Config {
    /// Returns the least distance for the published speed of the pilot.
    fn published_least_m(&self) -> f64 {
        match self.refresh.as_millis() {
            1_000.. => 60.0,
            750.. => 75.0,
            500.. => 90.0,
            _ => 125.0,
        }
    }

    /// Returns how far a follower is behind its slot at most that keeps up with a leader of this speed, in metres: the lag that is
    /// part of [`Config::distance_least_at_m`].
    pub(super) fn lag_m(&self, leader_m_s: f64, handling: Handling) -> f64 {
        let refresh_s = self.refresh.as_secs_f64();
        match handling {
            Handling::Tracks => {
                let path_m = (refresh_s + WORD_LATE_S) * PUBLISHED_M_S;
                let faster = leader_m_s / PUBLISHED_M_S;
                (self.published_least_m() - path_m - PUBLISHED_SEPARATION_M) * faster.max(faster * faster)
            }
            Handling::Shaped => (SHAPED_LAG_S + refresh_s) * leader_m_s,
        }
    }
}

impl Configuration for Config {
    type Machine = FollowMe;
    const SECTION: &'static str = "follow_me";

    fn me(&self) -> VehicleId {
        self.swarm.me
    }
    fn heights_m(&self) -> (f64, f64) {
        (self.swarm.height_least_m, self.swarm.height_most_m)
    }
    fn check(&self) -> Result<(), ConfigError> {
        self.swarm.check()?;
        // Without a second aircraft there is no follower.
        ConfigError::aircraft(self.swarm.aircraft, 2)?;
        let (least_m, most_m) = self.heights_m();
        ConfigError::range("height_m", self.height_m, least_m, most_m)?;
        // At a shorter period followers fall behind without bound.
        let least_ms = if self.accepts_close { REFRESH_LEAST_CLOSE_MS } else { REFRESH_LEAST_MS };
        ConfigError::period("refresh_ms", self.refresh, least_ms, 5_000)?;
        ConfigError::range("lands_below_percent", self.lands_below_percent, 10.0, 90.0)?;
        // Infinite turns as published.
        if self.turn_m_s != f64::INFINITY {
            ConfigError::range("turn_m_s", self.turn_m_s, 0.1, 20.0)?;
        }
        if !self.accepts_close {
            let least_m = self.distance_least_m();
            ConfigError::at_least("distance_m", self.swarm.distance_m, least_m, CLOSE)?;
        }
        ConfigError::range("leader_timeout_s", self.leader_timeout.as_secs_f64(), 0.2, 60.0)?;
        // One datagram that is lost is no leader lost.
        let least_s = 2.0 * self.refresh.as_secs_f64();
        ConfigError::at_least("leader_timeout_s", self.leader_timeout.as_secs_f64(), least_s, "two refreshes")
    }
    fn begin(&self, seed: u64, now: Instant) -> FollowMe {
        FollowMe::new(self.clone(), seed, now)
    }
}
