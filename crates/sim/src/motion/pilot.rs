//! What a pilot's sticks ask for: lean angles, climb rate, yaw rate, and Loiter's velocity model.
//!
//! Loiter of the 3.5 generation: the stick is an acceleration (2.5 m/s² at full stick), which a
//! drag-like term balances at WPNAV_LOIT_SPEED; centred sticks brake with at least 0.25 m/s². Half
//! stick gives 2.37 m/s after 10 s, full stick 5.0 m/s, as measured.

use wingbeat_geo::DVec2;

use super::horizontal::{clamp_length, length, response};
use super::{GRAVITY_M_S2, NavParameters, Sticks, bounded};

/// Throttle stick positions this close to the middle hold the altitude (THR_DZ 100 of ±500).
const THROTTLE_DEADZONE: f64 = 0.1;
/// Stick deflections below this are centred.
const STICK_DEADZONE: f64 = 0.02;
/// Yaw rate at full stick: ACRO_YAW_P 4.5 times 45 degrees.
const YAW_RATE_MAX_RAD_S: f64 = 202.5 * core::f64::consts::PI / 180.0;

/// Acceleration limits of Loiter, which are no field of [`NavParameters`].
#[derive(Clone, Copy, Debug)]
pub(super) struct LoiterLimits {
    pub(super) acceleration_m_s2: f64,
    pub(super) braking_min_m_s2: f64,
    pub(super) jerk_m_s3: f64,
}

impl Sticks {
    /// Every value inside its range; what is no number is centred (throttle: closed).
    pub(super) fn bounded(self) -> Self {
        let part = |v: f64| if v.is_finite() { v.clamp(-1.0, 1.0) } else { 0.0 };
        Self {
            roll: part(self.roll),
            pitch: part(self.pitch),
            throttle: part(self.throttle).max(0.0),
            yaw: part(self.yaw),
        }
    }

    /// Centred but for the throttle, which asks for this share of the fastest descent.
    pub fn descending(share: f64) -> Self {
        let throttle = 0.5 - THROTTLE_DEADZONE - share * (0.5 - THROTTLE_DEADZONE);
        Self { roll: 0.0, pitch: 0.0, throttle, yaw: 0.0 }
    }

    /// Whether roll and pitch are left alone.
    pub(super) fn centred(self) -> bool {
        libm::fabs(self.roll) < STICK_DEADZONE && libm::fabs(self.pitch) < STICK_DEADZONE
    }

    /// Forward and right parts of the deflection, turned to east and north.
    fn deflection(self, yaw_rad: f64) -> DVec2 {
        let (sin, cos) = (libm::sin(yaw_rad), libm::cos(yaw_rad));
        let (forward, right) = (-self.pitch, self.roll);
        clamp_length(DVec2::new(forward * sin + right * cos, forward * cos - right * sin), 1.0)
    }

    /// Horizontal acceleration of the lean angle that the sticks ask for.
    pub(super) fn lean(self, yaw_rad: f64, angle_max_rad: f64) -> DVec2 {
        let deflection = self.deflection(yaw_rad);
        let part = length(deflection);
        if part < 1e-9 {
            return DVec2::ZERO;
        }
        deflection * (GRAVITY_M_S2 * libm::tan(part * bounded(angle_max_rad, 0.0, 1.3)) / part)
    }

    /// The climb rate of the throttle stick in modes that hold the altitude.
    pub(super) fn climb_m_s(self, limit_m_s: f64) -> f64 {
        let off = self.throttle - 0.5;
        let beyond = libm::fabs(off) - THROTTLE_DEADZONE;
        if beyond <= 0.0 {
            return 0.0;
        }
        let rate = beyond / (0.5 - THROTTLE_DEADZONE) * bounded(limit_m_s, 0.0, 100.0);
        if off > 0.0 { rate } else { -rate }
    }

    /// The yaw rate of the yaw stick.
    pub(super) fn yaw_rate_rad_s(self) -> f64 {
        if libm::fabs(self.yaw) < STICK_DEADZONE { 0.0 } else { self.yaw * YAW_RATE_MAX_RAD_S }
    }
}

/// Loiter's velocity model between the stick and the position controller.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoiterPilot {
    acceleration: DVec2,
}

impl LoiterPilot {
    /// Enters Loiter at a speed, which the model takes over.
    pub(super) fn engage(velocity: DVec2, parameters: &NavParameters, limits: LoiterLimits) -> Self {
        let speed = parameters.loiter_speed_m_s.max(0.2);
        Self { acceleration: velocity * (limits.acceleration_m_s2 / speed) }
    }

    /// The velocity to feed forward next.
    pub(super) fn step(
        &mut self,
        desired_velocity: DVec2,
        sticks: Sticks,
        yaw_rad: f64,
        parameters: &NavParameters,
        limits: LoiterLimits,
        dt_s: f64,
    ) -> DVec2 {
        let speed_limit = bounded(parameters.loiter_speed_m_s, 0.2, 1e3);
        let centred = sticks.centred();
        let asked = if centred { DVec2::ZERO } else { sticks.deflection(yaw_rad) * limits.acceleration_m_s2 };
        self.acceleration += clamp_length(asked - self.acceleration, limits.jerk_m_s3 * dt_s);
        let velocity = desired_velocity + self.acceleration * dt_s;
        let speed = length(velocity);
        if speed < 1e-9 {
            return DVec2::ZERO;
        }
        let mut drag = limits.acceleration_m_s2 * speed / speed_limit;
        if centred {
            drag = drag.max(limits.braking_min_m_s2.min(2.0 * speed));
        }
        velocity * ((speed - drag * dt_s).clamp(0.0, speed_limit) / speed)
    }
}

/// Loiter of the 4.x generation: the stick is a lean angle (two thirds of ANGLE_MAX at full stick), a
/// drag-like term balances it at LOIT_SPEED; sticks that stay centred brake (LOIT_BRK_ACCEL) after a
/// delay, with a bounded jerk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loiter4 {
    /// The acceleration that the lean, which lags behind the stick, gives.
    acceleration: DVec2,
    braking_m_s2: f64,
    centred_s: f64,
}

impl Loiter4 {
    /// LOIT_ANG_MAX 0: this part of ANGLE_MAX.
    const ANGLE_PART: f64 = 2.0 / 3.0;
    /// LOIT_BRK_ACCEL, LOIT_BRK_JERK, LOIT_BRK_DELAY.
    const BRAKING_M_S2: f64 = 2.5;
    const BRAKING_JERK_M_S3: f64 = 5.0;
    const BRAKING_DELAY_S: f64 = 1.0;
    /// How fast the braking answers to the speed that is left.
    const BRAKING_P: f64 = 1.0;
    /// Time constant of the lean behind the stick (ATC_INPUT_TC).
    const LEAN_LAG_S: f64 = 0.15;

    pub(super) fn engage(lean: DVec2) -> Self {
        Self { acceleration: lean, ..Self::default() }
    }

    /// The acceleration that changes the target's velocity in this period.
    pub(super) fn step(
        &mut self,
        velocity: DVec2,
        sticks: Sticks,
        yaw_rad: f64,
        p: &NavParameters,
        dt_s: f64,
    ) -> DVec2 {
        let angle_max_rad = Self::ANGLE_PART * bounded(p.angle_max_rad, 0.01, 1.3);
        let asked = if sticks.centred() { DVec2::ZERO } else { sticks.lean(yaw_rad, angle_max_rad) };
        self.centred_s = if sticks.centred() { self.centred_s + dt_s } else { 0.0 };
        self.acceleration += (asked - self.acceleration) * (dt_s / (dt_s + Self::LEAN_LAG_S));
        let full_m_s2 = GRAVITY_M_S2 * libm::tan(angle_max_rad);
        let velocity_next = velocity + self.acceleration * dt_s;
        let speed = length(velocity_next);
        let braking = if self.centred_s >= Self::BRAKING_DELAY_S {
            response(speed, Self::BRAKING_P, Self::BRAKING_M_S2).0.min(Self::BRAKING_M_S2)
        } else {
            0.0
        };
        let step = Self::BRAKING_JERK_M_S3 * dt_s;
        self.braking_m_s2 = bounded(braking, self.braking_m_s2 - step, self.braking_m_s2 + step);
        if speed < 1e-9 {
            return (velocity_next - velocity) / dt_s;
        }
        let drag = full_m_s2 * speed / bounded(p.loiter_speed_m_s, 0.2, 1e3);
        let kept = (speed - (drag + self.braking_m_s2) * dt_s).max(0.0);
        (velocity_next * (kept / speed) - velocity) / dt_s
    }
}
