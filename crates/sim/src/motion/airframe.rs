//! The airframe of ArduPilot's simulation: thrust along a leaning body, air drag, a flat ground.
//!
//! The attitude is kept as the horizontal acceleration that it gives while the thrust carries the
//! weight (`g·tan(lean)`, east and north), which needs no trigonometry; its lag is that of
//! ArduCopter's attitude controller. Drag is linear for 3.5.7 (`g/15` per second: 15 m/s at 45
//! degrees), linear and quadratic for 4.6.2 (10.0 m/s at 30 degrees, 15.08 at 45, as measured).

use wingbeat_geo::{DVec2, DVec3};

use super::{GRAVITY_M_S2, sqrt3};

/// How the lean follows what the position controller asks for: a smoothed target, and the attitude
/// behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lags {
    pub(super) target_s: f64,
    pub(super) attitude_s: f64,
}

/// Air drag per mass: `-(linear + quadratic·|v|)·v`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drag {
    pub(super) linear_per_s: f64,
    pub(super) quadratic_per_m: f64,
}

/// Position, velocity and lean of the aircraft, and the constants of its drag and lags.
#[derive(Clone, Debug)]
pub(super) struct Airframe {
    drag: Drag,
    lags: Lags,
    /// Altitude of the ground under the aircraft: it stands there at the start.
    ground_m: f64,
    pub(super) position: DVec3,
    pub(super) velocity: DVec3,
    pub(super) acceleration: DVec3,
    lean_target: DVec2,
    /// Horizontal acceleration of the present lean.
    pub(super) lean: DVec2,
    pub(super) on_ground: bool,
    /// Length of the thrust vector per mass.
    pub(super) thrust_m_s2: f64,
}

impl Airframe {
    pub(super) fn new(drag: Drag, lags: Lags, position: DVec3) -> Self {
        Self {
            drag,
            lags,
            ground_m: position.z,
            position,
            velocity: DVec3::ZERO,
            acceleration: DVec3::ZERO,
            lean_target: DVec2::ZERO,
            lean: DVec2::ZERO,
            on_ground: true,
            thrust_m_s2: 0.0,
        }
    }

    /// Height above the ground.
    pub(super) fn height_m(&self) -> f64 {
        self.position.z - self.ground_m
    }

    /// Moves on by `dt_s` with the lean asked for and the vertical force per mass that the motors
    /// give (the autopilot adds thrust for the lean, so the vertical part is what it asked for).
    pub(super) fn step(&mut self, lean: DVec2, lift_m_s2: f64, wind_m_s: DVec3, dt_s: f64) {
        self.lean_target += (lean - self.lean_target) * (dt_s / (dt_s + self.lags.target_s));
        self.lean += (self.lean_target - self.lean) * (dt_s / (dt_s + self.lags.attitude_s));
        let push = self.lean * (lift_m_s2 / GRAVITY_M_S2);
        self.thrust_m_s2 = sqrt3(DVec3::new(push.x, push.y, lift_m_s2));
        let air = self.velocity - wind_m_s;
        let drag = self.drag.linear_per_s + self.drag.quadratic_per_m * sqrt3(air);
        let acceleration = DVec3::new(push.x, push.y, lift_m_s2 - GRAVITY_M_S2) - air * drag;
        if self.on_ground && acceleration.z <= 0.0 {
            self.velocity = DVec3::ZERO;
            self.acceleration = DVec3::ZERO;
            return;
        }
        self.on_ground = false;
        self.acceleration = acceleration;
        // Implicit in the drag: stable for any step and any wind.
        let before = self.velocity;
        self.velocity =
            (before + (acceleration + air * drag) * dt_s + wind_m_s * (drag * dt_s)) / (1.0 + drag * dt_s);
        self.position += (before + self.velocity) * (0.5 * dt_s);
        if self.position.z <= self.ground_m && self.velocity.z <= 0.0 {
            self.position.z = self.ground_m;
            self.velocity = DVec3::ZERO;
            self.acceleration = DVec3::ZERO;
            self.on_ground = true;
        }
    }
}
