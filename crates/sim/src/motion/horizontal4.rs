//! The horizontal half of the 4.x position controller: position error to a velocity (square root law),
//! velocity error to an acceleration (PID), with velocity and acceleration of a smooth target fed
//! forward; the sum is cut to what ANGLE_MAX allows, turning before speeding up.
//!
//! Gains are the 4.6.2 defaults (PSC_POSXY_P 1, PSC_VELXY_P 2, I 1, D 0.25, both filters 5 Hz).

use wingbeat_geo::DVec2;

use super::horizontal::{clamp_length, length, response};
use super::shaping::{Saturation, Smooth, limit_turning_first};
use super::{bounded, low_pass};

const POSITION_P: f64 = 1.0;
const VELOCITY_P: f64 = 2.0;
const VELOCITY_I: f64 = 1.0;
const VELOCITY_D: f64 = 0.25;
const FILTER_HZ: f64 = 5.0;
const INTEGRATOR_MAX_M_S2: f64 = 10.0;

/// The controller and its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Horizontal4 {
    /// How far the target may be ahead, and the speed and acceleration of the way back to it.
    error_max_m: f64,
    acceleration_m_s2: f64,
    /// The filtered velocity error; `None` before the first period.
    error: Option<DVec2>,
    derivative: DVec2,
    integrator: DVec2,
    saturation: Saturation,
}

impl Horizontal4 {
    /// Restarts: the integrator takes over the acceleration of the present lean.
    pub(super) fn engage(&mut self, lean: DVec2) {
        let integrator = clamp_length(lean, INTEGRATOR_MAX_M_S2);
        *self = Self { integrator, ..Self::default() };
    }

    /// Sets what shapes the way back to a target that was lost.
    pub(super) fn set_limits(&mut self, speed_m_s: f64, acceleration_m_s2: f64) {
        let a = bounded(acceleration_m_s2, 0.05, 100.0);
        let speed = bounded(speed_m_s, 0.01, 1e3);
        self.acceleration_m_s2 = a;
        self.error_max_m = if speed <= a / POSITION_P {
            speed / POSITION_P
        } else {
            speed * speed / (2.0 * a) + a / (2.0 * POSITION_P * POSITION_P)
        };
    }

    /// What the last period could not deliver.
    pub(super) fn saturation(&self) -> Saturation {
        self.saturation
    }

    /// How far the aircraft is from its target.
    pub(super) fn position_error(&self) -> DVec2 {
        self.saturation.position_error
    }

    /// One control period: the horizontal acceleration to lean for. A target out of reach is pulled in.
    pub(super) fn update(
        &mut self,
        target: &mut Smooth,
        position: DVec2,
        velocity: DVec2,
        lean_max_m_s2: f64,
        dt_s: f64,
    ) -> DVec2 {
        let wanted = target.position.truncate() - position;
        let off = clamp_length(wanted, self.error_max_m.max(0.01));
        if off != wanted {
            target.position = (position + off).extend(target.position.z);
        }
        let distance_m = length(off);
        let back = off
            * (response(distance_m, POSITION_P, self.acceleration_m_s2.max(0.05)).0 / distance_m.max(1e-9));
        let ahead = target.velocity.truncate();
        let error_now = back + ahead - velocity;
        let error = match self.error {
            None => error_now,
            Some(before) => {
                let error = before + (error_now - before) * low_pass(FILTER_HZ, dt_s);
                let derivative = (error - before) / dt_s;
                self.derivative += (derivative - self.derivative) * low_pass(FILTER_HZ, dt_s);
                error
            }
        };
        self.error = Some(error);
        let grown = self.integrator + error * (VELOCITY_I * dt_s);
        // At the lean limit the integrator grows no further that way.
        let grown = if error.dot(self.saturation.direction) > 0.0 {
            clamp_length(grown, length(self.integrator))
        } else {
            grown
        };
        self.integrator = clamp_length(grown, INTEGRATOR_MAX_M_S2);
        let asked = error * VELOCITY_P
            + self.integrator
            + self.derivative * VELOCITY_D
            + target.acceleration.truncate();
        let given = limit_turning_first(ahead, asked, lean_max_m_s2);
        let direction = if given == asked { DVec2::ZERO } else { given / length(given).max(1e-9) };
        self.saturation = Saturation { direction, position_error: off, velocity_error: error };
        given
    }
}
