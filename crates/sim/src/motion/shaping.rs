//! The moving target of the 4.x position controller: a position, a velocity and an acceleration that
//! belong together, led towards what was asked for with bounded acceleration and jerk.
//!
//! ```text
//! position asked ─▶ root law ─▶ velocity ─▶ root law ─▶ acceleration ─▶ jerk limit ─▶ target
//! ```
//!
//! The laws are those that ArduPilot documents as kinematic shaping: a proportional answer close to the
//! goal, a square root farther away, so that neither limit is exceeded on the way in. The position law
//! plans with half the acceleration and half the bandwidth of the velocity law below it, which leaves
//! the velocity law room to follow.

use wingbeat_geo::{DVec2, DVec3};

use super::bounded;
use super::horizontal::{clamp_length, length, response};

/// Limits of the target's motion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) speed_m_s: f64,
    pub(super) up_m_s: f64,
    pub(super) down_m_s: f64,
    pub(super) acceleration_m_s2: f64,
    pub(super) acceleration_z_m_s2: f64,
    pub(super) jerk_m_s3: f64,
}

/// What the controller could not deliver in the last period, so that the target does not run away
/// from an aircraft that leans as far as it may.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Saturation {
    /// The direction in which the lean is at its limit; zero where it is not.
    pub(super) direction: DVec2,
    pub(super) position_error: DVec2,
    pub(super) velocity_error: DVec2,
}

/// The moving target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Smooth {
    pub(super) position: DVec3,
    pub(super) velocity: DVec3,
    pub(super) acceleration: DVec3,
}

/// The answer to an error, proportional nearby and a root farther out, that does not overshoot
/// within one period.
fn root_law(error: f64, p: f64, limit: f64, dt_s: f64) -> f64 {
    let size = libm::fabs(error);
    let answer = response(size, p, limit).0.min(size / dt_s);
    if error < 0.0 { -answer } else { answer }
}

/// The same along a vector.
fn root_law_2d(error: DVec2, p: f64, limit: f64, dt_s: f64) -> DVec2 {
    let size = length(error);
    if size < 1e-12 { DVec2::ZERO } else { error * (root_law(size, p, limit, dt_s) / size) }
}

/// `step` without the part that would make a saturated error larger.
fn unless_saturated(step: DVec2, direction: DVec2, error: DVec2) -> DVec2 {
    let onwards = step.dot(direction);
    if onwards > 0.0 && error.dot(direction) > 0.0 { step - direction * onwards } else { step }
}

/// An acceleration inside a circle; what turns the motion goes before what speeds it up or slows it.
pub(super) fn limit_turning_first(velocity: DVec2, acceleration: DVec2, limit_m_s2: f64) -> DVec2 {
    if length(acceleration) <= limit_m_s2 {
        return acceleration;
    }
    let speed = length(velocity);
    if speed < 1e-6 {
        return clamp_length(acceleration, limit_m_s2);
    }
    let course = velocity / speed;
    let along = acceleration.dot(course);
    let across = clamp_length(acceleration - course * along, limit_m_s2);
    let left = libm::sqrt((limit_m_s2 * limit_m_s2 - across.dot(across)).max(0.0));
    across + course * bounded(along, -left, left)
}

impl Smooth {
    pub(super) fn new(position: DVec3, velocity: DVec3, acceleration: DVec3) -> Self {
        Self { position, velocity, acceleration }
    }

    /// Lets the target move on with what it has.
    pub(super) fn advance(&mut self, saturation: Saturation, dt_s: f64) {
        let (v, a) = (self.velocity, self.acceleration);
        let way = v * dt_s + a * (0.5 * dt_s * dt_s);
        let flat = unless_saturated(way.truncate(), saturation.direction, saturation.position_error);
        self.position += flat.extend(way.z);
        let gain = a * dt_s;
        let flat = unless_saturated(gain.truncate(), saturation.direction, saturation.velocity_error);
        self.velocity += flat.extend(gain.z);
    }

    /// Leads it towards a horizontal velocity.
    pub(super) fn towards_velocity(&mut self, wanted: DVec2, extra: DVec2, limits: Limits, dt_s: f64) {
        let error = wanted - self.velocity.truncate();
        let gain = limits.jerk_m_s3 / limits.acceleration_m_s2;
        let answer = root_law_2d(error, gain, limits.jerk_m_s3, dt_s);
        let velocity = self.velocity.truncate();
        let asked = limit_turning_first(velocity, answer, limits.acceleration_m_s2) + extra;
        let now = self.acceleration.truncate();
        let next = now + clamp_length(asked - now, limits.jerk_m_s3 * dt_s);
        self.acceleration = next.extend(self.acceleration.z);
    }

    /// Leads it towards a horizontal position that itself moves.
    pub(super) fn towards_position(
        &mut self,
        position: DVec2,
        velocity: DVec2,
        acceleration: DVec2,
        limits: Limits,
        dt_s: f64,
    ) {
        let error = position - self.position.truncate();
        let gain = 0.5 * limits.jerk_m_s3 / limits.acceleration_m_s2;
        let answer = root_law_2d(error, gain, 0.5 * limits.acceleration_m_s2, dt_s);
        let wanted = clamp_length(answer, limits.speed_m_s) + velocity;
        self.towards_velocity(wanted, acceleration, limits, dt_s);
    }

    /// Leads it towards a climb rate.
    pub(super) fn towards_climb(&mut self, wanted_m_s: f64, limits: Limits, dt_s: f64) {
        let limit = limits.acceleration_z_m_s2;
        let gain = limits.jerk_m_s3 / limit;
        let error = bounded(wanted_m_s, -limits.down_m_s, limits.up_m_s) - self.velocity.z;
        let asked = bounded(root_law(error, gain, limits.jerk_m_s3, dt_s), -limit, limit);
        let step = limits.jerk_m_s3 * dt_s;
        self.acceleration.z = bounded(asked, self.acceleration.z - step, self.acceleration.z + step);
    }

    /// Leads it towards an altitude that itself moves.
    pub(super) fn towards_altitude(&mut self, altitude_m: f64, climb_m_s: f64, limits: Limits, dt_s: f64) {
        let limit = limits.acceleration_z_m_s2;
        let gain = 0.5 * limits.jerk_m_s3 / limit;
        let answer = root_law(altitude_m - self.position.z, gain, 0.5 * limit, dt_s);
        let wanted = bounded(answer, -limits.down_m_s, limits.up_m_s) + climb_m_s;
        self.towards_climb(wanted, limits, dt_s);
    }
}

/// The speed along a direction in space that keeps both its horizontal and its vertical part within
/// their limits.
pub(super) fn along(direction: DVec3, horizontal: f64, up: f64, down: f64) -> f64 {
    let flat = libm::sqrt(direction.x * direction.x + direction.y * direction.y);
    let vertical = if direction.z >= 0.0 { up } else { down };
    (horizontal / flat.max(1e-9)).min(vertical / libm::fabs(direction.z).max(1e-9))
}
