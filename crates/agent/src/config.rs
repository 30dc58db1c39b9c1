//! What one aircraft is configured with, and which numbers cannot be flown.

use wingbeat_autopilot::codec::signing::Key;
use wingbeat_geo::Duration;
use wingbeat_protocol::ConfigError as Number;

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
    /// A number of the protocol, a distance or a period.
    #[error(transparent)]
    Number(#[from] wingbeat_protocol::ConfigError),
    /// System id 0 addresses everybody and belongs to nobody.
    #[error("ground_station_system_id: found 0, expected 1 to 255")]
    GroundStation,
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
        Number::period("position_interval_ms", self.position_interval, 20, 2_000)?;
        self.separation.check()?;
        Ok(self.coordination.check()?)
    }
}

impl separation::Thresholds {
    fn check(&self) -> Result<(), ConfigError> {
        let (alarm_m, collision_m) = (self.alarm_distance_m, self.collision_distance_m);
        Number::distance("alarm_distance_m", alarm_m)?;
        Number::distance("collision_distance_m", collision_m)?;
        Number::distance("rule_horizontal_m", self.rule_horizontal_m)?;
        Number::distance("rule_vertical_m", self.rule_vertical_m)?;
        if alarm_m < collision_m {
            return Err(ConfigError::Alarm { alarm_m, collision_m });
        }
        if !(self.alarm_time_s > 0.0 && self.alarm_time_s <= 20.0) {
            return Err(ConfigError::AlarmTime(self.alarm_time_s));
        }
        Ok(Number::period("rule_period_ms", self.rule_period, 50, 10_000)?)
    }
}
