//! A target whose position, velocity and acceleration are continuous: what 4.x flies instead of the
//! 3.5 leash. Acceleration and jerk are limited; the position controller gets all three.
//!
//! A simple stand-in for the S-curves of 4.6.2: same limits, exact end point, corners taken at the
//! waypoint with the speed measured at 90 degrees. A later issue fits it to the 4.6.2 traces.

use wingbeat_geo::{DVec2, DVec3};

use super::bounded;
use super::horizontal::{clamp_length, length, response};

/// Speed at a fast waypoint: measured at a 90 degree corner.
const CORNER_SPEED_M_S: f64 = 2.9;
/// Gain of the smooth approach.
const APPROACH_P: f64 = 0.7;
/// How fast the velocity wanted turns into acceleration.
const VELOCITY_P: f64 = 2.0;
/// The approach brakes with this part of the acceleration limit, which leaves room for the jerk limit.
const BRAKING_PART: f64 = 0.55;

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

/// The moving target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Smooth {
    pub(super) position: DVec3,
    pub(super) velocity: DVec3,
    pub(super) acceleration: DVec3,
}

impl Smooth {
    pub(super) fn new(position: DVec3, velocity: DVec3) -> Self {
        Self { position, velocity, acceleration: DVec3::ZERO }
    }

    /// Towards a point; returns whether the target is there (or, `fast`, at the corner).
    pub(super) fn approach(&mut self, destination: DVec3, fast: bool, limits: Limits, dt_s: f64) -> bool {
        let way = destination - self.position;
        let flat = DVec2::new(way.x, way.y);
        let distance_m = length(flat);
        let braking = limits.acceleration_m_s2 * BRAKING_PART;
        let speed = if fast {
            libm::sqrt(CORNER_SPEED_M_S * CORNER_SPEED_M_S + 2.0 * braking * distance_m)
        } else {
            response(distance_m, APPROACH_P, braking).0
        };
        let mut speed = bounded(speed, 0.0, limits.speed_m_s);
        let climb = response(libm::fabs(way.z), APPROACH_P, limits.acceleration_z_m_s2 * BRAKING_PART).0;
        let mut climb = if way.z < 0.0 { -climb } else { climb };
        climb = bounded(climb, -limits.down_m_s, limits.up_m_s);
        // One straight line: the slower axis sets the pace of both.
        let seconds = (distance_m / speed.max(1e-9)).max(libm::fabs(way.z) / libm::fabs(climb).max(1e-9));
        if seconds > 1.0 {
            speed = speed.min(distance_m / seconds);
            climb = bounded(climb, -libm::fabs(way.z) / seconds, libm::fabs(way.z) / seconds);
        }
        let flat = flat * (speed / distance_m.max(1e-9));
        self.follow_velocity(DVec3::new(flat.x, flat.y, climb), limits, dt_s);
        distance_m < if fast { 0.5 } else { 0.05 } && libm::fabs(way.z) < if fast { 0.5 } else { 0.05 }
    }

    /// Towards a velocity.
    pub(super) fn follow_velocity(&mut self, velocity: DVec3, limits: Limits, dt_s: f64) {
        let wanted = (velocity - self.velocity) * VELOCITY_P;
        let flat = clamp_length(DVec2::new(wanted.x, wanted.y), limits.acceleration_m_s2);
        let jerk = limits.jerk_m_s3 * dt_s;
        let step = clamp_length(flat - DVec2::new(self.acceleration.x, self.acceleration.y), jerk);
        let up = bounded(wanted.z, -limits.acceleration_z_m_s2, limits.acceleration_z_m_s2);
        let step_z = bounded(up - self.acceleration.z, -jerk, jerk);
        self.acceleration += DVec3::new(step.x, step.y, step_z);
        let before = self.velocity;
        self.velocity += self.acceleration * dt_s;
        self.position += (before + self.velocity) * (0.5 * dt_s);
    }
}
