//! The vertical half of ArduCopter's position controller: altitude error to a climb rate (square
//! root law inside a leash), climb rate to an acceleration, acceleration to thrust through a slow
//! PI, as in the 3.5 generation.
//!
//! Two measured properties of the 3.5.7 simulation are part of it. A climb to a waypoint stays below
//! WPNAV_SPEED_UP (2.31 of 2.5 m/s, 1.32 of 1.5 down): the feed-forward sees the aircraft catching
//! up with its target but not the target's own steps, which costs `a·v/(5·v_target)`. And the height
//! estimate drifts while the climb rate is above 2.2 m/s (20 m become 19.5, 30 m become 29.0):
//! [`HeightError`].

use super::horizontal::{leash_m, response};
use super::{GRAVITY_M_S2, bounded, low_pass};

const POSITION_P: f64 = 1.0;
const VELOCITY_P: f64 = 5.0;
/// Filter on the climb rate error, hertz.
const ERROR_FILTER_HZ: f64 = 4.0;
/// ACCEL_Z_P 0.5 and ACCEL_Z_I 1.0 per 1000 cm/s², times the 16.9 m/s² that full throttle adds around
/// the hover point of the simulated quad (linear motors behind the expo 0.65 thrust curve).
const THRUST_P: f64 = 0.845;
const THRUST_I: f64 = 1.69;
/// The throttle filter, hertz.
const THRUST_FILTER_HZ: f64 = 2.0;
/// Full throttle over hover thrust (hover throttle 0.51 of the simulated quad).
const THRUST_MAX_M_S2: f64 = GRAVITY_M_S2 / 0.51;

/// The controller and its memory.
#[derive(Clone, Debug)]
pub(super) struct Vertical {
    speed_up_m_s: f64,
    speed_down_m_s: f64,
    acceleration_m_s2: f64,
    leash_up_m: f64,
    leash_down_m: f64,
    /// The altitude to be at.
    pub(super) target_m: f64,
    /// The climb rate fed forward; `None` where the target alone leads (waypoints).
    pub(super) desired_velocity_m_s: Option<f64>,
    /// Acceleration that the climb rate fed forward may change with now: builds up to the limit.
    desired_acceleration_m_s2: f64,
    /// Acceleration fed forward: how the climb rate fed forward changes.
    pub(super) feedforward_m_s2: f64,
    /// The target carries its own climb rate and acceleration (4.x), so that the position law's
    /// derivative is not fed forward.
    follows_smooth: bool,
    velocity_error_m_s: f64,
    integrator_m_s2: f64,
    /// Vertical force per mass asked of the motors, after the throttle filter.
    thrust_m_s2: f64,
}

impl Vertical {
    pub(super) fn new(altitude_m: f64) -> Self {
        let mut new = Self {
            speed_up_m_s: 0.0,
            speed_down_m_s: 0.0,
            acceleration_m_s2: 0.0,
            leash_up_m: 0.0,
            leash_down_m: 0.0,
            target_m: altitude_m,
            desired_velocity_m_s: None,
            desired_acceleration_m_s2: 0.0,
            feedforward_m_s2: 0.0,
            follows_smooth: false,
            velocity_error_m_s: 0.0,
            integrator_m_s2: -GRAVITY_M_S2,
            thrust_m_s2: 0.0,
        };
        new.set_limits(2.5, 1.5, 1.0);
        new
    }

    pub(super) fn set_limits(&mut self, up_m_s: f64, down_m_s: f64, acceleration_m_s2: f64) {
        self.speed_up_m_s = bounded(libm::fabs(up_m_s), 0.0, 100.0);
        self.speed_down_m_s = bounded(libm::fabs(down_m_s), 0.0, 100.0);
        self.acceleration_m_s2 = bounded(acceleration_m_s2, 0.1, 50.0);
        self.leash_up_m = leash_m(self.speed_up_m_s, self.acceleration_m_s2, POSITION_P);
        self.leash_down_m = leash_m(self.speed_down_m_s, self.acceleration_m_s2, POSITION_P);
    }

    /// The target alone leads, without a climb rate fed forward.
    pub(super) fn follow_target(&mut self, target_m: f64) {
        self.target_m = target_m;
        self.desired_velocity_m_s = None;
        self.feedforward_m_s2 = 0.0;
        self.follows_smooth = false;
    }

    /// A smooth target leads, with its own climb rate and acceleration.
    pub(super) fn follow_smooth(&mut self, target_m: f64, velocity_m_s: f64, acceleration_m_s2: f64) {
        self.target_m = target_m;
        self.desired_velocity_m_s = Some(velocity_m_s);
        self.feedforward_m_s2 = acceleration_m_s2;
        self.follows_smooth = true;
    }

    pub(super) fn leash_up_m(&self) -> f64 {
        self.leash_up_m
    }

    pub(super) fn leash_down_m(&self) -> f64 {
        self.leash_down_m
    }

    /// Motors stopped or idling: nothing is held, and the next start begins without thrust.
    pub(super) fn relax(&mut self, altitude_m: f64, thrust_m_s2: f64) {
        self.follow_target(altitude_m);
        self.desired_acceleration_m_s2 = 0.0;
        self.velocity_error_m_s = 0.0;
        self.integrator_m_s2 = thrust_m_s2 - GRAVITY_M_S2;
        self.thrust_m_s2 = thrust_m_s2;
    }

    /// Where a climb or descent would end if it were ordered to stop now (at most 3 m up, 2 m down).
    pub(super) fn stopping_altitude_m(&self, altitude_m: f64, velocity_m_s: f64) -> f64 {
        let speed = libm::fabs(velocity_m_s);
        let a = self.acceleration_m_s2;
        let distance_m =
            if speed < a / POSITION_P { speed / POSITION_P } else { 0.5 * a + speed * speed / (2.0 * a) };
        if velocity_m_s > 0.0 { altitude_m + distance_m.min(3.0) } else { altitude_m - distance_m.min(2.0) }
    }

    /// Moves the target with a climb rate that itself changes no faster than the acceleration limit,
    /// which builds up within a second. `force` lets the target sink into the ground, so that a
    /// landed aircraft takes its thrust away.
    pub(super) fn climb(&mut self, rate_m_s: f64, altitude_m: f64, dt_s: f64, force: bool) {
        self.follows_smooth = false;
        let desired = self.desired_velocity_m_s.unwrap_or(0.0);
        let mut acceleration = self.acceleration_m_s2;
        // Too fast for the limits: slow down harder, in proportion.
        if desired < -self.speed_down_m_s && self.speed_down_m_s > 0.0 {
            acceleration *= 2.0 * -desired / self.speed_down_m_s;
        } else if desired > self.speed_up_m_s && self.speed_up_m_s > 0.0 {
            acceleration *= 2.0 * desired / self.speed_up_m_s;
        }
        acceleration = acceleration.min(7.5);
        let jerk = acceleration;
        let braking = libm::sqrt(2.0 * libm::fabs(desired - rate_m_s) * jerk);
        self.desired_acceleration_m_s2 =
            (self.desired_acceleration_m_s2 + jerk * dt_s).min(acceleration).min(braking);
        let step = self.desired_acceleration_m_s2 * dt_s;
        let before = desired;
        let desired = bounded(rate_m_s, desired - step, desired + step);
        self.feedforward_m_s2 = (desired - before) / dt_s;
        self.desired_velocity_m_s = Some(desired);
        let may_move = if desired < 0.0 {
            force || self.thrust_m_s2 > 0.1
        } else {
            self.target_m - altitude_m < self.leash_up_m
        };
        if may_move {
            self.target_m += desired * dt_s;
        }
    }

    /// One control period: the vertical force per mass that the motors give (0 to full throttle).
    /// `acceleration_m_s2` is what the accelerometer measures, `limit_m_s2` what the motors can give.
    pub(super) fn update(
        &mut self,
        altitude_m: f64,
        velocity_m_s: f64,
        acceleration_m_s2: f64,
        limit_m_s2: f64,
        dt_s: f64,
    ) -> f64 {
        let error = bounded(self.target_m - altitude_m, -self.leash_down_m, self.leash_up_m);
        self.target_m = altitude_m + error;
        let (speed, mut slope) = response(libm::fabs(error), POSITION_P, self.acceleration_m_s2);
        let mut target = if error < 0.0 { -speed } else { speed };
        if target > self.speed_up_m_s || target < -self.speed_down_m_s {
            target = bounded(target, -self.speed_down_m_s, self.speed_up_m_s);
            slope = 0.0;
        }
        let desired = self.desired_velocity_m_s.unwrap_or(0.0);
        target += desired;
        if self.follows_smooth {
            slope = 0.0;
        }
        let feedforward = slope * (desired - velocity_m_s) + self.feedforward_m_s2;
        self.velocity_error_m_s +=
            (target - velocity_m_s - self.velocity_error_m_s) * low_pass(ERROR_FILTER_HZ, dt_s);
        let wanted = VELOCITY_P * self.velocity_error_m_s + feedforward;
        let acceleration_error = wanted - acceleration_m_s2;
        let limit_m_s2 = limit_m_s2.min(THRUST_MAX_M_S2);
        let saturated_low = self.thrust_m_s2 <= 0.0 && acceleration_error < 0.0;
        let saturated_high = self.thrust_m_s2 >= limit_m_s2 && acceleration_error > 0.0;
        if !saturated_low && !saturated_high {
            self.integrator_m_s2 = bounded(
                self.integrator_m_s2 + THRUST_I * acceleration_error * dt_s,
                -GRAVITY_M_S2,
                GRAVITY_M_S2,
            );
        }
        let thrust = GRAVITY_M_S2 + THRUST_P * acceleration_error + self.integrator_m_s2;
        let thrust = bounded(thrust, 0.0, limit_m_s2);
        self.thrust_m_s2 += (thrust - self.thrust_m_s2) * low_pass(THRUST_FILTER_HZ, dt_s);
        self.thrust_m_s2
    }
}

/// How far the height estimate of 3.5.7 (EKF2 in its simulation) is above the true height.
///
/// Measured: a climb at 2.3 m/s adds about 0.125 m per second after it has passed 2.2 m/s, a climb
/// below 1.6 m/s adds nothing, a descent takes it away; it shows at no more than 0.05 m/s.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeightError {
    settled_m: f64,
    shown_m: f64,
}

impl HeightError {
    const RATE_FROM_M_S: f64 = 2.2;
    const GROWTH_PER_S: f64 = 1.05;
    const SHOW_RATE_M_S: f64 = 0.04;
    const DESCENT_FROM_M_S: f64 = -1.0;
    const DESCENT_RATE_M_S: f64 = 0.09;

    pub(super) fn step(&mut self, climb_m_s: f64, dt_s: f64) {
        let mut rate = Self::SHOW_RATE_M_S;
        if climb_m_s > Self::RATE_FROM_M_S {
            self.settled_m =
                (self.settled_m + Self::GROWTH_PER_S * (climb_m_s - Self::RATE_FROM_M_S) * dt_s).min(3.0);
        } else if climb_m_s < Self::DESCENT_FROM_M_S {
            rate = Self::DESCENT_RATE_M_S;
            self.settled_m = (self.settled_m - rate * dt_s).max(0.0);
        }
        self.shown_m += bounded(self.settled_m - self.shown_m, -rate * dt_s, rate * dt_s);
    }

    pub(super) fn shown_m(&self) -> f64 {
        self.shown_m
    }
}
