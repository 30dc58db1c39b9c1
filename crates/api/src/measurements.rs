//! What an autopilot measures or estimates, as the page shows it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The last of each. The page has a row for each (`web/src/fleet/measurements.ts`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Measurements {
    /// Absent before the first report, and where the voltage is not measured.
    pub battery: Option<Battery>,
    /// Absent before the first report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gnss: Option<Gnss>,
    /// Absent where the autopilot does not estimate it, and on the ground: absent is not calm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wind: Option<Wind>,
}

/// Battery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Battery {
    /// Remaining charge, 0..=100 per cent; absent where the autopilot does not estimate it.
    pub remaining_percent: Option<u8>,
    /// Volts.
    pub voltage_v: f64,
    /// Amperes; absent where not measured.
    pub current_a: Option<f64>,
    /// Volts of each cell; empty where they are not measured.
    #[serde(default)]
    pub cells_v: Vec<f64>,
    /// Charge drawn so far, milliampere hours; absent where not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumed_mah: Option<u32>,
}

/// Satellite navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Gnss {
    /// MAVLink's GPS_FIX_TYPE: 0 no receiver, 1 no fix, 2 two dimensions, 3 three dimensions, more with
    /// corrections.
    pub fix_type: u8,
    /// Satellites in use; absent where not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub satellites: Option<u8>,
}

/// The autopilot's estimate of the wind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Wind {
    /// Speed of the air over the ground, metres per second.
    pub speed_m_s: f64,
    /// Where it comes from, degrees clockwise from north, 0..360.
    pub from_deg: f64,
}
