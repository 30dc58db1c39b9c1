//! What one aircraft is configured with, and which numbers cannot be flown.

use wingbeat_autopilot::codec::signing::Key;
use wingbeat_geo::Duration;
use wingbeat_protocol::{follow_me, swarm};

use crate::{Coordination, separation};

/// What one aircraft is configured with.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The protocol and its numbers, with who we are.
    pub coordination: Coordination,
    /// How often the autopilot reports the position (the reference asks for 4 Hz).
    pub position_interval: Duration,
    /// The least battery, per cent, that setup asks for.
    pub battery_least_percent: u8,
    /// Whether frames to and from the autopilot are signed.
    pub signing: Option<Signing>,
    /// What becomes of the aircraft when its companion dies.
    pub companion_loss: CompanionLoss,
    /// The ground station's MAVLink system id, from which the autopilot counts heartbeats.
    pub ground_station_system_id: u8,
    /// When the nearness of others alarms.
    pub separation: separation::Thresholds,
}

/// How frames to and from the autopilot are signed.
#[derive(Clone, Debug, PartialEq)]
pub struct Signing {
    /// What both know.
    pub key: Key,
    /// Tells our frames from those of another sender with the same key and system id.
    pub link_id: u8,
    /// The autopilot is to be given the key: frames without a signature are believed until the first with
    /// one.
    pub setup: bool,
}

/// What becomes of an aircraft when the process that holds its agent dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompanionLoss {
    /// It flies on alone unless a second layer catches it: setup asks for one.
    #[default]
    FliesOn,
    /// The aircraft is simulated by whoever holds the agent, and ends with it. For benches only.
    EndsWithIt,
}

impl Config {
    /// The published numbers around a protocol.
    pub fn new(coordination: impl Into<Coordination>) -> Self {
        Self {
            coordination: coordination.into(),
            position_interval: Duration::from_millis(250),
            battery_least_percent: 30,
            signing: None,
            companion_loss: CompanionLoss::default(),
            ground_station_system_id: 255,
            separation: separation::Thresholds::default(),
        }
    }
}

/// Why a configuration cannot be flown.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The number of aircraft is impossible.
    #[error("aircraft: found {0}, expected 1 to {max}", max = wingbeat_wire::SWARM_MAX)]
    Aircraft(usize),
    /// A distance is not a positive number.
    #[error("{name}: found {found} m, expected more than 0 and at most 10000 m")]
    Distance {
        /// Which.
        name: &'static str,
        /// Found.
        found: f64,
    },
    /// Heights contradict each other.
    #[error("heights: found {least} m to {most} m, expected 0 < least < most")]
    Heights {
        /// Least.
        least: f64,
        /// Most.
        most: f64,
    },
    /// The leader would fly into a slave that lags behind.
    #[error(
        "distance_m: found {found} m, expected at least {least} m for a refresh of {refresh_ms} ms: slaves lag \
         behind, and the leader flies into them (accepts_close flies it all the same)"
    )]
    Close {
        /// Found.
        found: f64,
        /// Least.
        least: f64,
        /// How often the leader tells where it is.
        refresh_ms: u64,
    },
    /// The formation would never turn.
    #[error("turn_m_s: found {0}, expected at least 0.1 m/s")]
    Turn(f64),
    /// The formation would assemble outside the fence.
    #[error("height_m: found {found} m, expected {least} m to {most} m")]
    Height {
        /// Found.
        found: f64,
        /// Least.
        least: f64,
        /// Most.
        most: f64,
    },
    /// The planned speed cannot be flown.
    #[error("planned_speed_m_s: found {0}, expected 0.5 to 20")]
    Speed(f64),
    /// System id 0 addresses everybody and belongs to nobody.
    #[error("ground_station_system_id: found 0, expected 1 to 255")]
    GroundStation,
    /// A period is out of its range.
    #[error("{name}: found {found_ms} ms, expected {least_ms} to {most_ms} ms")]
    Period {
        /// Which.
        name: &'static str,
        /// Found.
        found_ms: u64,
        /// Least.
        least_ms: u64,
        /// Most.
        most_ms: u64,
    },
    /// Nobody would be warned of a collision.
    #[error("alarm_distance_m: found {alarm_m} m, expected at least collision_distance_m, {collision_m} m")]
    Alarm {
        /// When it alarms.
        alarm_m: f64,
        /// What is a collision.
        collision_m: f64,
    },
    /// It would alarm of what nobody can know.
    #[error("alarm_time_s: found {0} s, expected more than 0 and at most 20 s")]
    AlarmTime(f64),
}

impl Config {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.ground_station_system_id == 0 {
            return Err(ConfigError::GroundStation);
        }
        period("position_interval_ms", self.position_interval, 20, 2_000)?;
        let (least, most) = self.coordination.heights_m();
        if !(least > 0.0 && least < most) {
            return Err(ConfigError::Heights { least, most });
        }
        self.separation.check()?;
        match &self.coordination {
            Coordination::Muscop(m) => check_swarm(&m.swarm),
            Coordination::FollowMe(f) => check_follow_me(f, (least, most)),
            Coordination::Mbcap(m) => {
                if !(0.5..=20.0).contains(&m.planned_speed_m_s) {
                    return Err(ConfigError::Speed(m.planned_speed_m_s));
                }
                distance("risk.distance_m", m.risk.distance_m)?;
                distance("safe_distance_m", m.safe_distance_m)?;
                period("beacon_period_ms", m.beacon_period, 20, 5_000)?;
                period("check_period_ms", m.check_period, 20, 5_000)
            }
        }
    }
}

fn check_follow_me(f: &follow_me::Config, (least, most): (f64, f64)) -> Result<(), ConfigError> {
    check_swarm(&f.swarm)?;
    if !(least..=most).contains(&f.height_m) {
        return Err(ConfigError::Height { found: f.height_m, least, most });
    }
    period("refresh_ms", f.refresh, 100, 5_000)?;
    // Infinite turns as published.
    if f.turn_m_s.is_nan() || f.turn_m_s < 0.1 {
        return Err(ConfigError::Turn(f.turn_m_s));
    }
    if f.swarm.distance_m < f.distance_least_m() && !f.accepts_close {
        let (found, least, refresh_ms) =
            (f.swarm.distance_m, f.distance_least_m(), f.refresh.as_millis() as u64);
        return Err(ConfigError::Close { found, least, refresh_ms });
    }
    // One datagram that is lost is no leader lost.
    let least_ms = 2 * f.refresh.as_millis() as u64;
    period("leader_timeout_ms", f.leader_timeout, least_ms, 60_000)
}

fn check_swarm(swarm: &swarm::Config) -> Result<(), ConfigError> {
    if swarm.aircraft == 0 || swarm.aircraft > wingbeat_wire::SWARM_MAX {
        return Err(ConfigError::Aircraft(swarm.aircraft));
    }
    distance("distance_m", swarm.distance_m)?;
    distance("landing_distance_m", swarm.landing_distance_m)?;
    period("send_period_ms", swarm.send_period, 20, 5_000)?;
    period("arrival_period_ms", swarm.arrival_period, 0, 5_000)
}

impl separation::Thresholds {
    fn check(&self) -> Result<(), ConfigError> {
        let (alarm_m, collision_m) = (self.alarm_distance_m, self.collision_distance_m);
        distance("alarm_distance_m", alarm_m)?;
        distance("collision_distance_m", collision_m)?;
        distance("rule_horizontal_m", self.rule_horizontal_m)?;
        distance("rule_vertical_m", self.rule_vertical_m)?;
        if alarm_m < collision_m {
            return Err(ConfigError::Alarm { alarm_m, collision_m });
        }
        if !(self.alarm_time_s > 0.0 && self.alarm_time_s <= 20.0) {
            return Err(ConfigError::AlarmTime(self.alarm_time_s));
        }
        period("rule_period_ms", self.rule_period, 50, 10_000)
    }
}

fn distance(name: &'static str, found: f64) -> Result<(), ConfigError> {
    if found > 0.0 && found <= 10_000.0 { Ok(()) } else { Err(ConfigError::Distance { name, found }) }
}

fn period(name: &'static str, found: Duration, least_ms: u64, most_ms: u64) -> Result<(), ConfigError> {
    let found_ms = found.as_millis() as u64;
    if (least_ms..=most_ms).contains(&found_ms) {
        return Ok(());
    }
    Err(ConfigError::Period { name, found_ms, least_ms, most_ms })
}
