//! What an autopilot measures or estimates, as the page shows it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::aircraft::Refusal;

/// The last of each. The page has a row for each (`web/src/fleet/measurements.ts`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Measurements {
    /// Absent before the first report, and where the voltage is not measured.
    pub battery: Option<Battery>,
    /// Absent before the first report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gnss: Option<Gnss>,
    /// Corrections for it, by radio; absent before a console has sent any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrections: Option<Corrections>,
    /// Absent where the autopilot does not estimate it, and on the ground: absent is not calm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wind: Option<Wind>,
    /// The aircraft's clock next to GNSS time; absent before the flight controller reports that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// Remote ID; absent where it is not configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_id: Option<RemoteId>,
}

/// The battery that decisions are made by: of several the worst.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Battery {
    /// Remaining charge, 0..=100 per cent, the lowest of any battery; absent where the autopilot estimates none.
    pub remaining_percent: Option<u8>,
    /// Volts, the lowest of any battery.
    pub voltage_v: f64,
    /// Amperes of the first battery; absent where not measured.
    pub current_a: Option<f64>,
    /// Volts of each cell; empty where they are not measured.
    #[serde(default)]
    pub cells_v: Vec<f64>,
    /// Charge drawn so far, milliampere hours; absent where not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumed_mah: Option<u32>,
    /// Seconds until the reserve begins, at the rate of this flight; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_s: Option<u32>,
    /// Seconds that the flight takes: on the ground the rest of the route, in flight the return home or, where the aircraft does not
    /// return, the landing below it; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_s: Option<u32>,
    /// Each battery, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batteries: Vec<OneBattery>,
}

/// One of several batteries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OneBattery {
    /// Its number as ArduPilot's parameters count, from 1.
    pub number: u8,
    /// Remaining charge, per cent; absent where it is not estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining_percent: Option<u8>,
    /// Volts; absent where not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voltage_v: Option<f64>,
    /// State that the flight controller reports: `good`, `low`, `critical`, `emergency`, `failed`, `unhealthy` or `not known`.
    pub state: String,
}

/// Satellite navigation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Gnss {
    /// MAVLink's GPS_FIX_TYPE: 0 no receiver, 1 no fix, 2 two dimensions, 3 three dimensions, more with
    /// corrections.
    pub fix_type: u8,
    /// Satellites in use; absent where not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub satellites: Option<u8>,
    /// The receiver's own estimate of its horizontal error, metres; absent where not reported: absent is not accurate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy_m: Option<f64>,
}

/// Corrections of satellite navigation (RTCM 3), which a console broadcasts and the flight controller's receiver is handed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Corrections {
    /// Id of the console with the base station, 16 hexadecimal digits; absent before the first frame that was handed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console: Option<String>,
    /// Milliseconds since the flight controller was handed the last frame; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// Bytes a second that it is handed, over 5 s.
    pub bytes_s: u32,
    /// Frames that it was handed.
    pub frames: u64,
    /// Frames that it was not handed, by reason. What the datagram itself was refused for is in `radio.refused`.
    pub refused: Vec<Refusal>,
}

/// The clock of the aircraft's computer next to GNSS time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Clock {
    /// GNSS time when the status was taken, through the flight controller, microseconds after 1970, UTC.
    pub gnss_unix_us: u64,
    /// How far that may be from the flight controller's clock, microseconds. The flight controller's own error, its
    /// receiver's latency of up to 0.2 s, is not in it.
    pub error_us: u64,
    /// How far the computer's clock is ahead of it, microseconds; negative where it is behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_us: Option<i64>,
    /// Whether chronyd, which sets the computer's clock, is given GNSS time.
    #[serde(default)]
    pub is_fed: bool,
}

/// Remote ID (Open Drone ID), which the flight controller's transmitter broadcasts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RemoteId {
    /// The aircraft's id.
    pub uas_id: String,
    /// Whether the transmitter lets the aircraft arm; absent where none reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_arm: Option<bool>,
    /// What stands against arming, or that nothing does.
    pub detail: String,
    /// The operator's latitude as it is stated, degrees; absent before it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_latitude_deg: Option<f64>,
    /// The operator's longitude, degrees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_longitude_deg: Option<f64>,
}

/// The autopilot's estimate of the wind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Wind {
    /// Speed of the air over the ground, metres per second.
    pub speed_m_s: f64,
    /// Where it comes from, degrees clockwise from north, 0..360.
    pub from_deg: f64,
}
