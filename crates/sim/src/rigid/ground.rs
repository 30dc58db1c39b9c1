//! The ground under a [`Rigid`]: it carries, it rubs, and a body leans on it as far as its gear allows.
//!
//! The gear's feet stand around the middle. While the motors' torque is smaller than the weight that rests on them times their
//! distance, the body stays upright; a larger torque leans it over an edge, and the weight brings it back. Friction holds it in
//! its place and its heading up to a share of that weight.

use wingbeat_geo::{DQuat, DVec2, DVec3};

use super::{Rigid, TIPPED_RAD};
use crate::motion::GRAVITY_M_S2;

/// Friction of rubber feet on dry ground, as a share of the weight on them.
const FRICTION: f64 = 0.7;
/// A body that leans less than this stands on all feet, radians.
const UPRIGHT_RAD: f64 = 2e-3;
/// A body that leans further than this falls on its side, radians.
const FALLS_OVER_RAD: f64 = 1.0;
/// Feet and ground take the energy of a body that rocks within about this time, seconds.
const ROCKS_FOR_S: f64 = 0.05;

impl Rigid {
    /// Meets the ground with the attitude that it has. The ground takes the fall, friction the rest.
    pub(super) fn touch_down(&mut self) {
        self.is_on_ground = true;
        self.position.z = 0.0;
        self.velocity.z = 0.0;
        self.acceleration = DVec3::ZERO;
        if self.is_tipped {
            self.lie();
        }
    }

    /// Stands on the ground under a force per mass of the motors and the air, and the torque of the motors about its axes.
    pub(super) fn stand(&mut self, dt_s: f64, force: DVec3, torque: DVec3) {
        if self.is_tipped {
            self.lie();
            return;
        }
        let carried_m_s2 = (GRAVITY_M_S2 + force.z).max(0.0);
        self.slide(dt_s, force.truncate(), carried_m_s2);
        self.rock(dt_s, torque, carried_m_s2 * self.body.mass_kg);
        self.position.z = 0.0;
        let felt = self.acceleration - DVec3::new(0.0, 0.0, GRAVITY_M_S2);
        self.specific_force = self.attitude.inverse() * felt;
    }

    /// Slides where it is pushed harder than friction holds.
    fn slide(&mut self, dt_s: f64, force: DVec2, carried_m_s2: f64) {
        let before = self.velocity.truncate();
        let pushed = before + force * dt_s;
        let held_m_s = FRICTION * carried_m_s2 * dt_s;
        let speed_m_s = pushed.length();
        let after = if speed_m_s <= held_m_s { DVec2::ZERO } else { pushed * (1.0 - held_m_s / speed_m_s) };
        self.velocity = after.extend(0.0);
        self.acceleration = ((after - before) / dt_s).extend(0.0);
        self.position += ((before + after) * (0.5 * dt_s)).extend(0.0);
    }

    /// Leans over the edge of its gear, or comes back to stand on all feet.
    fn rock(&mut self, dt_s: f64, torque: DVec3, carried_n: f64) {
        let righting_nm = carried_n * self.body.gear_m;
        // The axis about which it leans, horizontal, in the body; its length is the sine of the angle.
        let up = self.attitude.inverse() * DVec3::new(0.0, 0.0, -1.0);
        let lean = DVec2::new(-up.y, up.x);
        let (sine, over) = (lean.length(), torque.truncate());
        let is_upright = sine < UPRIGHT_RAD;
        let turn_held_nm = FRICTION * righting_nm;
        let turn_nm = torque.z - torque.z.clamp(-turn_held_nm, turn_held_nm);
        if is_upright && over.length() <= righting_nm {
            self.set_upright();
            if turn_nm == 0.0 {
                self.rate.z = 0.0;
                return;
            }
            self.turn(dt_s, DVec3::new(0.0, 0.0, turn_nm));
            return;
        }
        let along = if is_upright { over.normalize_or_zero() } else { lean / sine };
        self.turn(dt_s, (over - along * righting_nm).extend(turn_nm));
        let damped = 1.0 / (1.0 + dt_s / ROCKS_FOR_S);
        self.rate = DVec3::new(
            self.rate.x * damped,
            self.rate.y * damped,
            if turn_nm == 0.0 { 0.0 } else { self.rate.z },
        );
        let up = self.attitude.inverse() * DVec3::new(0.0, 0.0, -1.0);
        if DVec2::new(-up.y, up.x).dot(along) <= 0.0 {
            // It came back past upright: all feet are down.
            self.set_upright();
        }
        if -up.z < libm::cos(FALLS_OVER_RAD) {
            self.is_tipped = true;
            self.lie();
        }
    }

    /// Stands on all feet with its nose where it is.
    fn set_upright(&mut self) {
        let (sin, cos) = libm::sincos(self.heading_rad() * 0.5);
        self.attitude = DQuat::from_xyzw(0.0, 0.0, sin, cos);
        (self.rate.x, self.rate.y) = (0.0, 0.0);
    }

    /// Lies on its right side, whatever its motors do.
    fn lie(&mut self) {
        let (sin, cos) = libm::sincos(self.heading_rad() * 0.5);
        self.attitude = DQuat::from_xyzw(0.0, 0.0, sin, cos);
        let (sin, cos) = libm::sincos(TIPPED_RAD * 0.5);
        self.attitude *= DQuat::from_xyzw(sin, 0.0, 0.0, cos);
        self.position.z = 0.0;
        (self.velocity, self.acceleration, self.rate) = (DVec3::ZERO, DVec3::ZERO, DVec3::ZERO);
        self.specific_force = self.attitude.inverse() * DVec3::new(0.0, 0.0, -GRAVITY_M_S2);
        self.is_on_ground = true;
    }
}
