//! The horizontal half of ArduCopter's position controller, 3.5 generation: position error to a
//! velocity (square root law), velocity error to an acceleration (PI with the derivative of the
//! velocity target fed forward), then a jerk limit and a low-pass filter in front of the attitude
//! controller.
//!
//! Laws, gains and limits are those read in stored copies of `AC_PosControl` of the 3.5 generation
//! and checked against the 3.5.7 traces; the 4.6.2 profile runs the same controller with its own
//! gains around a target that is already smooth. Promise: finite in, finite out, for any parameter.

use wingbeat_geo::DVec2;

use super::{bounded, low_pass};

/// No profile asks the attitude controller for more than this (45 degrees).
pub(super) const ACCELERATION_MAX_M_S2: f64 = 9.8;
/// A leash is never shorter.
pub(super) const LEASH_MIN_M: f64 = 1.0;
/// The jerk limit outside Loiter and Brake.
pub(super) const JERK_DEFAULT_M_S3: f64 = 17.0;
/// In Loiter, Brake and velocity control a position error adds no more than this.
const CORRECTION_SPEED_MAX_M_S: f64 = 2.0;
/// The integrator's bound (VEL_XY_IMAX).
const INTEGRATOR_MAX_M_S2: f64 = 10.0;
/// Filter on the velocity error (VEL_XY_FILT_HZ 5).
const ERROR_FILTER_HZ: f64 = 5.0;

/// How a position error and a desired velocity become one velocity target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blend {
    /// The position error alone, up to the speed limit: waypoints.
    Position,
    /// The desired velocity plus a small correction: Loiter, Brake, Land, velocity targets.
    LimitedPositionAndVelocity,
    /// Both, together up to the speed limit: position-and-velocity targets.
    PositionAndVelocity,
}

/// Gains, which differ between the profiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gains {
    pub(super) position_p: f64,
    pub(super) velocity_p: f64,
    pub(super) velocity_i: f64,
    /// Low-pass filter on the acceleration asked for.
    pub(super) acceleration_filter_hz: f64,
    /// Whether the derivative of the velocity target is fed forward (3.5 does, 4.x feeds the
    /// acceleration of its smooth target instead).
    pub(super) derivative_feedforward: bool,
}

/// The controller and its memory.
#[derive(Clone, Debug)]
pub(super) struct Horizontal {
    gains: Gains,
    speed_m_s: f64,
    acceleration_m_s2: f64,
    jerk_m_s3: f64,
    leash_m: f64,
    /// Where the aircraft should be.
    pub(super) target: DVec2,
    /// The velocity fed forward.
    pub(super) desired_velocity: DVec2,
    /// The acceleration fed forward by a smooth target.
    pub(super) desired_acceleration: DVec2,
    velocity_target_last: DVec2,
    velocity_error: DVec2,
    filtered_error: DVec2,
    integrator: DVec2,
    feedforward: DVec2,
    jerk_limited: DVec2,
    filtered: DVec2,
    limited: bool,
    restart_velocity: bool,
    restart_acceleration: bool,
    hold_target_once: bool,
    /// The next derivative of the velocity target is a jump that is no motion: keep the last one.
    pub(super) freeze_feedforward: bool,
}

impl Horizontal {
    pub(super) fn new(gains: Gains, position: DVec2) -> Self {
        Self {
            gains,
            speed_m_s: 5.0,
            acceleration_m_s2: 1.0,
            jerk_m_s3: JERK_DEFAULT_M_S3,
            leash_m: LEASH_MIN_M,
            target: position,
            desired_velocity: DVec2::ZERO,
            desired_acceleration: DVec2::ZERO,
            velocity_target_last: DVec2::ZERO,
            velocity_error: DVec2::ZERO,
            filtered_error: DVec2::ZERO,
            integrator: DVec2::ZERO,
            feedforward: DVec2::ZERO,
            jerk_limited: DVec2::ZERO,
            filtered: DVec2::ZERO,
            limited: false,
            restart_velocity: true,
            restart_acceleration: true,
            hold_target_once: true,
            freeze_feedforward: false,
        }
    }

    /// Starts a new kind of control: the integrator takes over the acceleration that the present
    /// lean gives, so that the attitude does not jump.
    pub(super) fn engage(&mut self, lean_acceleration: DVec2) {
        self.integrator = clamp_length(lean_acceleration, INTEGRATOR_MAX_M_S2);
        self.desired_acceleration = DVec2::ZERO;
        self.restart_velocity = true;
        self.restart_acceleration = true;
        self.hold_target_once = true;
    }

    /// Sets the limits that shape the response to a position error.
    pub(super) fn set_limits(&mut self, speed_m_s: f64, acceleration_m_s2: f64, jerk_m_s3: f64) {
        self.speed_m_s = bounded(speed_m_s, 0.0, 1e3);
        self.acceleration_m_s2 = bounded(acceleration_m_s2, 0.05, 100.0);
        self.jerk_m_s3 = bounded(jerk_m_s3, 0.1, 1e3);
        self.leash_m = leash_m(self.speed_m_s, self.acceleration_m_s2, self.gains.position_p);
    }

    /// How far the target may be ahead.
    pub(super) fn leash_m(&self) -> f64 {
        self.leash_m
    }

    /// The acceleration limit in force.
    pub(super) fn acceleration_m_s2(&self) -> f64 {
        self.acceleration_m_s2
    }

    /// Where the aircraft would come to rest if it were ordered to stop now. The velocity error counts
    /// as velocity, so that the acceleration does not jump.
    pub(super) fn stopping_point(&self, position: DVec2, velocity: DVec2) -> DVec2 {
        let velocity = velocity + self.velocity_error;
        let speed_m_s = length(velocity);
        if speed_m_s <= 1e-9 {
            return position;
        }
        let p = self.gains.position_p;
        let distance_m = if speed_m_s < self.acceleration_m_s2 / p {
            speed_m_s / p
        } else {
            self.acceleration_m_s2 / (2.0 * p * p) + speed_m_s * speed_m_s / (2.0 * self.acceleration_m_s2)
        };
        position + velocity * (distance_m.min(self.leash_m) / speed_m_s)
    }

    /// One control period: the horizontal acceleration to lean for.
    pub(super) fn update(
        &mut self,
        blend: Blend,
        position: DVec2,
        velocity: DVec2,
        acceleration_max_m_s2: f64,
        dt_s: f64,
    ) -> DVec2 {
        if self.hold_target_once {
            self.hold_target_once = false;
        } else {
            self.target += self.desired_velocity * dt_s;
        }
        let target = self.velocity_target(blend, position);
        self.velocity_to_acceleration(target, velocity, dt_s);
        let limit = acceleration_max_m_s2.min(ACCELERATION_MAX_M_S2);
        let mut wanted = self.feedforward
            + self.filtered_error * self.gains.velocity_p
            + self.integrator
            + self.desired_acceleration;
        self.limited = length(wanted) > limit;
        wanted = clamp_length(wanted, limit);
        if self.restart_acceleration {
            self.restart_acceleration = false;
            self.jerk_limited = wanted;
            self.filtered = wanted;
        }
        self.jerk_limited += clamp_length(wanted - self.jerk_limited, self.jerk_m_s3 * dt_s);
        self.filtered +=
            (self.jerk_limited - self.filtered) * low_pass(self.gains.acceleration_filter_hz, dt_s);
        self.filtered
    }

    fn velocity_target(&mut self, blend: Blend, position: DVec2) -> DVec2 {
        let mut error = self.target - position;
        let mut distance_m = length(error);
        if distance_m > self.leash_m {
            error *= self.leash_m / distance_m;
            self.target = position + error;
            distance_m = self.leash_m;
        }
        let correction = error * response(distance_m, self.gains.position_p, self.acceleration_m_s2).0
            / distance_m.max(1e-9);
        match blend {
            Blend::Position => clamp_length(correction, self.speed_m_s),
            Blend::PositionAndVelocity => clamp_length(correction + self.desired_velocity, self.speed_m_s),
            Blend::LimitedPositionAndVelocity => {
                clamp_length(correction, CORRECTION_SPEED_MAX_M_S) + self.desired_velocity
            }
        }
    }

    fn velocity_to_acceleration(&mut self, target: DVec2, velocity: DVec2, dt_s: f64) {
        if self.restart_velocity {
            self.restart_velocity = false;
            self.velocity_target_last = target;
        }
        if !self.gains.derivative_feedforward {
            self.feedforward = DVec2::ZERO;
        } else if self.freeze_feedforward {
            self.freeze_feedforward = false;
        } else {
            self.feedforward = (target - self.velocity_target_last) / dt_s;
        }
        self.velocity_target_last = target;
        self.velocity_error = target - velocity;
        self.filtered_error += (self.velocity_error - self.filtered_error) * low_pass(ERROR_FILTER_HZ, dt_s);
        let grown = clamp_length(
            self.integrator + self.filtered_error * (self.gains.velocity_i * dt_s),
            INTEGRATOR_MAX_M_S2,
        );
        // At the lean limit the integrator may only shrink.
        if !self.limited || length(grown) < length(self.integrator) {
            self.integrator = grown;
        }
    }
}

/// The distance within which a position controller of gain `p` stops from `speed_m_s`:
/// `v²/2a + a/2p²`, linear below the speed where the two laws meet.
pub(super) fn leash_m(speed_m_s: f64, acceleration_m_s2: f64, p: f64) -> f64 {
    let leash_m = if speed_m_s <= acceleration_m_s2 / p {
        speed_m_s / p
    } else {
        acceleration_m_s2 / (2.0 * p * p) + speed_m_s * speed_m_s / (2.0 * acceleration_m_s2)
    };
    leash_m.max(LEASH_MIN_M)
}

/// The speed asked for at a distance from the target, and its derivative: proportional close by,
/// then a square root, so that the deceleration never exceeds the limit.
pub(super) fn response(distance_m: f64, p: f64, acceleration_m_s2: f64) -> (f64, f64) {
    let linear_m = acceleration_m_s2 / (p * p);
    if distance_m > linear_m {
        let speed = libm::sqrt(2.0 * acceleration_m_s2 * (distance_m - 0.5 * linear_m));
        (speed, acceleration_m_s2 / speed)
    } else {
        (p * distance_m, p)
    }
}

/// The vector's length, through libm as every root in this crate.
pub(super) fn length(v: DVec2) -> f64 {
    libm::sqrt(v.x * v.x + v.y * v.y)
}

/// The vector, shortened to `max` where it is longer.
pub(super) fn clamp_length(v: DVec2, max: f64) -> DVec2 {
    let length = length(v);
    if length > max { v * (max / length) } else { v }
}
