//! How a multicopter moves when ArduCopter's navigation flies it: a task and a wind go in, position,
//! velocity and attitude come out.
//!
//! ```text
//! task ─▶ track (leash-ahead target) ─▶ horizontal: position P ─▶ velocity PI ─▶ lean ─┐
//!      └─▶ climb rate ─────────────────▶ vertical: altitude P ─▶ climb P ─▶ thrust PI ─┴▶ airframe
//! ```
//!
//! The cascade is modelled, not the curves: laws and constants are facts about ArduCopter 3.5 and 4.6 as
//! their parameters and documentation give them, and `tests/motion_reference.rs` holds the result against
//! measured flights of both in SITL (`docs/autopilot-parity.md`).
//!
//! Promises: no clock, no randomness, no allocation; every transcendental through libm, so the same calls
//! give the same bits everywhere; finite numbers out for any input, however wild.
//!
//! Frame: metres east, north and up of the vehicle's home.

mod airframe;
mod battery;
mod course4;
mod horizontal;
mod horizontal4;
mod multicopter;
mod pilot;
mod scurve;
mod shaping;
mod track;
mod vertical;
mod wind;

use core::fmt;
use core::str::FromStr;

use wingbeat_geo::{DVec2, DVec3};

pub use battery::{Battery, BatteryParameters};
pub use multicopter::Multicopter;
pub use wind::{Wind, WindEstimate, WindParameters, share_at as wind_share_at};

/// ArduPilot's GRAVITY_MSS.
pub(crate) const GRAVITY_M_S2: f64 = 9.80665;

/// Which ArduCopter's navigation is flown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// ArduCopter 3.5.7, with which the published figures were flown.
    Copter357,
    /// ArduCopter 4.6.2.
    Copter462,
}

impl Profile {
    /// All, the oldest first.
    pub const ALL: [Self; 2] = [Self::Copter357, Self::Copter462];

    /// The one that is most like a version of ArduCopter: 4.1 brought today's position control and S-curves, and what came
    /// before flies as 3.5.
    pub fn of_version(major: u8, minor: u8) -> Self {
        if (major, minor) < (4, 1) { Self::Copter357 } else { Self::Copter462 }
    }
}

/// The version.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Copter357 => "3.5.7",
            Self::Copter462 => "4.6.2",
        })
    }
}

impl FromStr for Profile {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|profile| profile.to_string() == text);
        found.ok_or_else(|| format!("found '{text}', expected 3.5.7 or 4.6.2"))
    }
}

/// The ArduCopter parameters that navigation obeys, in SI units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NavParameters {
    /// WPNAV_SPEED: horizontal speed between waypoints.
    pub wpnav_speed_m_s: f64,
    /// WPNAV_ACCEL: horizontal acceleration between waypoints.
    pub wpnav_accel_m_s2: f64,
    /// WPNAV_RADIUS: a waypoint that is stopped at counts as reached within this distance.
    pub wpnav_radius_m: f64,
    /// WPNAV_SPEED_UP: climb rate between waypoints.
    pub wpnav_speed_up_m_s: f64,
    /// WPNAV_SPEED_DN: descent rate between waypoints (positive).
    pub wpnav_speed_down_m_s: f64,
    /// WPNAV_ACCEL_Z: vertical acceleration between waypoints.
    pub wpnav_accel_z_m_s2: f64,
    /// LAND_SPEED: descent rate below 10 m.
    pub land_speed_m_s: f64,
    /// LAND_SPEED_HIGH: descent rate above 10 m; 0 means WPNAV_SPEED_DN.
    pub land_speed_high_m_s: f64,
    /// WPNAV_LOIT_SPEED or LOIT_SPEED: speed at full stick in Loiter.
    pub loiter_speed_m_s: f64,
    /// ANGLE_MAX: the largest lean.
    pub angle_max_rad: f64,
    /// PILOT_VELZ_MAX or PILOT_SPEED_UP: climb and descent rate at full throttle stick.
    pub pilot_velocity_z_m_s: f64,
    /// GUID_TIMEOUT (fixed in 3.5.7): a velocity older than this becomes a stop.
    pub guided_timeout_s: f64,
    /// WP_YAW_BEHAVIOR: 0 keep the heading, 1 and 2 face the next waypoint (2: not during RTL, which
    /// is chosen by the flight controller with [`Task::Waypoint`]'s `yaw`), 3 face the course.
    pub yaw_behavior: u8,
}

impl NavParameters {
    /// The profile's defaults.
    pub fn new(profile: Profile) -> Self {
        let copter357 = Self {
            wpnav_speed_m_s: 5.0,
            wpnav_accel_m_s2: 1.0,
            wpnav_radius_m: 2.0,
            wpnav_speed_up_m_s: 2.5,
            wpnav_speed_down_m_s: 1.5,
            wpnav_accel_z_m_s2: 1.0,
            land_speed_m_s: 0.5,
            land_speed_high_m_s: 0.0,
            loiter_speed_m_s: 5.0,
            angle_max_rad: core::f64::consts::FRAC_PI_4,
            pilot_velocity_z_m_s: 2.5,
            guided_timeout_s: 3.0,
            yaw_behavior: 2,
        };
        match profile {
            Profile::Copter357 => copter357,
            Profile::Copter462 => Self {
                wpnav_speed_m_s: 10.0,
                wpnav_accel_m_s2: 2.5,
                loiter_speed_m_s: 12.5,
                angle_max_rad: core::f64::consts::FRAC_PI_6,
                ..copter357
            },
        }
    }
}

/// A pilot's sticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sticks {
    /// -1 (left) to 1 (right).
    pub roll: f64,
    /// -1 (nose down, stick forward) to 1 (nose up, stick back).
    pub pitch: f64,
    /// 0 (closed) to 1 (open); 0.5 holds the altitude in the modes that do.
    pub throttle: f64,
    /// -1 to 1, clockwise positive.
    pub yaw: f64,
}

/// What the vehicle is asked to do.
///
/// Setting the same kind of task again with new numbers is an update, with ArduCopter's own
/// consequences: 3.5.7 restarts its track at every [`Task::Waypoint`], velocities and
/// position-and-velocity targets stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Task {
    /// Motors stopped.
    Stopped,
    /// Armed, motors idling on the ground.
    Idle,
    /// Straight up.
    TakeOff {
        /// Altitude above home.
        altitude_m: f64,
    },
    /// In a straight line: AUTO legs, legs of RTL.
    Waypoint {
        /// Target position, metres east, north and up of the origin.
        destination: DVec3,
        /// Another waypoint follows without delay, so the corner is cut.
        fast: bool,
        /// That waypoint: 4.6.2 turns towards it before the corner. 3.5.7 takes no account of it.
        next: Option<DVec3>,
        /// A heading to keep, radians clockwise from north; `None` leaves it to WP_YAW_BEHAVIOR.
        yaw: Option<f64>,
    },
    /// Guided position: 3.5.7 flies it as a leg, 4.6.2 leads a smooth target there.
    Position {
        /// Target position, metres east, north and up of the origin.
        position: DVec3,
        /// A heading to keep, as in [`Task::Waypoint`].
        yaw: Option<f64>,
    },
    /// Guided position and velocity: the position moves on with the velocity until the time-out.
    PositionVelocity {
        /// Where the aircraft should be now.
        position: DVec3,
        /// How fast that place moves, metres per second.
        velocity: DVec3,
        /// How that velocity changes: 4.6.2 feeds it forward, 3.5.7 ignores it.
        acceleration: DVec3,
    },
    /// Guided velocity, until the time-out.
    Velocity {
        /// Metres per second.
        velocity: DVec3,
    },
    /// Stop as hard as BRAKE does, and stay.
    Brake,
    /// Down where it is.
    Land,
    /// Lean angles and thrust by stick.
    Stabilize(Sticks),
    /// Lean angles and climb rate by stick.
    AltHold(Sticks),
    /// Velocity by stick; centred sticks stop and hold the place.
    Loiter(Sticks),
    /// Lean angles by stick; centred sticks stop and hold the place.
    PosHold(Sticks),
}

/// How the vehicle moves now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Metres east, north, up of home.
    pub position: DVec3,
    /// Metres per second.
    pub velocity: DVec3,
    /// Metres per second squared, gravity taken off: zero in a hover and on the ground.
    pub acceleration: DVec3,
    /// The horizontal acceleration, east and north, that the lean gives while the thrust carries the weight.
    pub lean_m_s2: DVec2,
    /// 0 to 2π clockwise from north.
    pub yaw_rad: f64,
    /// Clockwise positive.
    pub yaw_rate_rad_s: f64,
    /// 0 to 1; about 0.51 in a hover.
    pub throttle: f64,
    /// The land detector's state.
    pub landed: bool,
}

impl State {
    /// Roll, right side down positive, and pitch, nose up positive. Worked out when it is asked for, which is
    /// far less often than the aircraft moves.
    pub fn roll_pitch_rad(&self) -> (f64, f64) {
        let (sin_yaw, cos_yaw) = (libm::sin(self.yaw_rad), libm::cos(self.yaw_rad));
        let forward = self.lean_m_s2.x * sin_yaw + self.lean_m_s2.y * cos_yaw;
        let right = self.lean_m_s2.x * cos_yaw - self.lean_m_s2.y * sin_yaw;
        let pitch_rad = -libm::atan2(forward, GRAVITY_M_S2);
        // cos(pitch) = g / |(g, forward)|
        let cos_pitch = GRAVITY_M_S2 / horizontal::length(DVec2::new(GRAVITY_M_S2, forward));
        (libm::atan2(right * cos_pitch, GRAVITY_M_S2), pitch_rad)
    }
}

/// `value` inside the bounds; the lower bound where it is no number. (`f64::clamp` would panic on
/// bounds that crossed, and keep NaN.)
fn bounded(value: f64, low: f64, high: f64) -> f64 {
    value.max(low).min(high)
}

/// Share that a first-order low-pass filter of this corner frequency takes over within `dt_s`.
fn low_pass(corner_hz: f64, dt_s: f64) -> f64 {
    dt_s / (dt_s + 1.0 / (core::f64::consts::TAU * corner_hz))
}

/// The vector's length, through libm.
fn sqrt3(v: DVec3) -> f64 {
    libm::sqrt(v.x * v.x + v.y * v.y + v.z * v.z)
}
