//! What one aircraft is configured with, and the limits of the numbers that no protocol has.

use serde::{Deserialize, Serialize};
use wingbeat_autopilot::codec::signing::Key;
use wingbeat_autopilot::remote_id::{Identity, OperatorPlace};
use wingbeat_geo::Duration;
use wingbeat_protocol::{ConfigError, Text};

use crate::energy::{self, Reserve};
use crate::{Coordination, guardian, separation};

/// What one aircraft is configured with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// The protocol and its numbers, with this aircraft's id.
    pub coordination: Coordination,
    /// How often the autopilot reports the position (the reference asks for 4 Hz).
    pub position_interval: Duration,
    /// The least battery, per cent, that setup asks for.
    pub battery_least_percent: u8,
    /// What is kept of the battery; `None` where batteries have no limit, as in published experiments.
    pub energy: Option<Reserve>,
    /// Whether setup permits a polygon fence of the autopilot, which is not held against the route.
    pub allow_polygon_fence: bool,
    /// Whether frames to and from the autopilot are signed.
    pub signing: Option<Signing>,
    /// Whether the clocks of all aircraft are set to UTC: then a datagram more than 2 s behind ours is refused also where it
    /// is the first of its sender. One whose clock is behind is not received at all.
    pub clocks_are_set: bool,
    /// Why the owner's configuration is not used but an earlier one: setup asks for that to be mended.
    pub refused: Option<Text>,
    /// What becomes of the aircraft when its companion dies.
    pub companion_loss: CompanionLoss,
    /// The MAVLink system id of the aircraft's own flight controller; without it the line is listened to.
    #[serde(default)]
    pub autopilot_system_id: Option<u8>,
    /// Why the owner cannot keep what the next agent must know.
    #[serde(default)]
    pub forgets: Option<Forgets>,
    /// The ground station's MAVLink system id, from which the autopilot counts heartbeats.
    pub ground_station_system_id: u8,
    /// When the nearness of others alarms.
    pub separation: separation::Thresholds,
    /// What the autopilot's transmitter of Remote ID is given; nothing where it has none.
    pub remote_id: Option<RemoteIdConfig>,
}

/// An owner that cannot keep what the next agent must know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forgets {
    /// The cause.
    pub why: Text,
    /// Whether setup is refused: a slip of the operator, and no card that is full or worn.
    pub is_refused: bool,
}

/// What is broadcast of an aircraft by Remote ID.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemoteIdConfig {
    /// Which aircraft it is.
    pub identity: Identity,
    /// Where its operator stands.
    pub operator: Operator,
}

/// Where the operator's location comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Operator {
    /// Where the aircraft stood when it was armed.
    #[default]
    TakeOff,
    /// It is configured.
    Fixed(OperatorPlace),
}

/// How frames to and from the autopilot are signed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signing {
    /// The key that agent and autopilot share: in no log.
    #[serde(skip, default = "unknown_key")]
    pub key: Key,
    /// Distinguishes our frames from those of another sender with the same key and system id.
    pub link_id: u8,
    /// The autopilot is to be given the key: frames without a signature are accepted until the first with
    /// one.
    pub setup: bool,
}

/// Of a configuration that was read from a log: whoever replays one has the key.
fn unknown_key() -> Key {
    Key::new([0; 32])
}

/// What becomes of an aircraft when the process that holds its agent dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CompanionLoss {
    /// It flies on alone unless a second layer catches it: setup asks for one.
    #[default]
    FliesOn,
    /// The aircraft is simulated by the agent's owner, and ends with it. For benches only.
    EndsWithIt,
}

impl Config {
    /// The published numbers around a protocol.
    pub fn new(coordination: impl Into<Coordination>) -> Self {
        Self {
            coordination: coordination.into(),
            position_interval: Duration::from_millis(250),
            battery_least_percent: 30,
            energy: Some(Reserve::default()),
            allow_polygon_fence: false,
            signing: None,
            clocks_are_set: false,
            refused: None,
            companion_loss: CompanionLoss::default(),
            autopilot_system_id: None,
            forgets: None,
            ground_station_system_id: 255,
            separation: separation::Thresholds::default(),
            remote_id: None,
        }
    }
}

impl Config {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        // System id 0 addresses all systems.
        let id = f64::from(self.ground_station_system_id);
        ConfigError::range("ground_station_system_id", id, 1.0, 255.0)
            .and_then(|()| {
                let own = f64::from(self.autopilot_system_id.unwrap_or(1));
                ConfigError::range("system_id", own, 1.0, 255.0)
            })
            .and_then(|()| ConfigError::period("position_interval_ms", self.position_interval, 20, 2_000))
            .map_err(|error| error.within("autopilot"))?;
        let percent = f64::from(self.battery_least_percent);
        ConfigError::range("battery_least_percent", percent, 0.0, 100.0)
            .map_err(|error| error.within("preflight"))?;
        if let Some(reserve) = &self.energy {
            reserve.check().map_err(|error| error.within("energy"))?;
        }
        self.separation.check().map_err(|error| error.within("separation"))?;
        self.coordination.check()
    }
}

impl separation::Thresholds {
    fn check(&self) -> Result<(), ConfigError> {
        ConfigError::distance("alarm_distance_m", self.alarm_distance_m)?;
        ConfigError::distance("collision_distance_m", self.collision_distance_m)?;
        ConfigError::distance("rule_horizontal_m", self.rule_horizontal_m)?;
        ConfigError::distance("rule_vertical_m", self.rule_vertical_m)?;
        let (alarm_m, collision_m) = (self.alarm_distance_m, self.collision_distance_m);
        // Otherwise a collision would not be announced.
        ConfigError::at_least("alarm_distance_m", alarm_m, collision_m, "separation.collision_distance_m")?;
        // Nothing is predicted for longer than that.
        ConfigError::above("alarm_time_s", self.alarm_time_s, 0.0, 20.0)?;
        ConfigError::period("rule_period_ms", self.rule_period, 50, 10_000)
    }
}

impl guardian::Config {
    /// Judges the guardian's numbers.
    ///
    /// # Errors
    /// The first number that cannot be kept.
    pub fn check(&self) -> Result<(), ConfigError> {
        // Two pulses and a half at least; an aircraft is not left alone for longer than 10 s.
        ConfigError::period("silence_ms", self.silence, 500, 10_000)
            .and_then(|()| ConfigError::range("hold_s", self.hold.as_secs_f64(), 1.0, 600.0))
            .map_err(|error| error.within("guard"))?;
        energy::check_voltage("land_below_v", self.land_below_mv)
            .and_then(|()| energy::check_below_for(self.below_for_s))
            .map_err(|error| error.within("energy"))
    }
}
