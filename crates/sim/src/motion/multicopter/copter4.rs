//! The 4.6.2 profile: how each task leads the smooth target, which the 4.x position controller follows.
//!
//! Positions, velocities and both together are led by kinematic shaping, AUTO and RTL by S-curves. A
//! change of task keeps the target's motion, as ArduCopter does while its position controller runs; a
//! leg that begins anew is the exception: its target jumps to where the aircraft would stop.

use wingbeat_geo::{DVec2, DVec3};

use super::{BRAKE_ACCELERATION_M_S2, COURSE_SPEED_MIN_M_S, Lift, Multicopter, Yaw, flat};
use crate::motion::course4::Course;
use crate::motion::horizontal::length;
use crate::motion::horizontal4::Horizontal4;
use crate::motion::pilot::Loiter4;
use crate::motion::shaping::{Limits, Saturation, Smooth, along};
use crate::motion::{GRAVITY_M_S2, NavParameters, Sticks, Task, bounded, sqrt3};

/// PSC_JERK_XY and PSC_JERK_Z.
const JERK_M_S3: f64 = 5.0;
/// In Loiter a position error adds no more speed than this; the target is pulled in accordingly.
const LOITER_CORRECTION_M_S: f64 = 2.0;
/// LOIT_ACC_MAX.
const LOITER_ACCELERATION_M_S2: f64 = 5.0;
/// The nose follows a course that is flown with more than this part of WPNAV_SPEED.
const YAW_SPEED_PART: f64 = 0.05;
/// A take-off is complete when the climb rate asked for is below this part of WPNAV_SPEED_UP.
const TAKE_OFF_CLIMB_PART: f64 = 0.1;

/// What only this profile remembers.
#[derive(Clone, Debug)]
pub(super) struct Copter4 {
    controller: Horizontal4,
    target: Smooth,
    course: Course,
    loiter: Loiter4,
    /// The position controller flew in the last period.
    active: bool,
}

impl Copter4 {
    pub(super) fn new(at: DVec3) -> Self {
        Self {
            controller: Horizontal4::default(),
            target: Smooth::new(at, DVec3::ZERO, DVec3::ZERO),
            course: Course::new(at),
            loiter: Loiter4::default(),
            active: false,
        }
    }
}

fn limits(p: &NavParameters) -> Limits {
    Limits {
        speed_m_s: bounded(p.wpnav_speed_m_s, 0.01, 1e3),
        up_m_s: bounded(libm::fabs(p.wpnav_speed_up_m_s), 0.01, 100.0),
        down_m_s: bounded(libm::fabs(p.wpnav_speed_down_m_s), 0.01, 100.0),
        acceleration_m_s2: bounded(p.wpnav_accel_m_s2, 0.1, 50.0),
        acceleration_z_m_s2: bounded(p.wpnav_accel_z_m_s2, 0.1, 50.0),
        jerk_m_s3: JERK_M_S3,
    }
}

impl Multicopter {
    /// The position controller no longer flies: the next task that needs it starts it anew.
    pub(super) fn rest4(&mut self) {
        self.four.active = false;
    }

    /// The task just set begins; `same` where only its numbers are new.
    pub(super) fn start4(&mut self, before: Task, p: &NavParameters, same: bool) {
        match self.task {
            Task::TakeOff { .. } if before == self.task => {}
            Task::TakeOff { .. } => {
                self.track_started = false;
                self.reached = false;
                if self.landed {
                    self.spooled_s = 0.0;
                }
            }
            Task::Waypoint { destination, next, .. } => self.start_leg4(before, destination, next, p),
            Task::Position { .. } => self.reached = false,
            Task::PositionVelocity { position, .. } => self.streamed_position = position,
            _ if same => {}
            Task::Brake => {
                // BRAKE is the one mode that does not take over the target: it stops the motion found.
                self.four.active = false;
                self.brake_from_m_s = length(flat(self.airframe.velocity));
            }
            Task::AltHold(_) => self.engage_climb(p),
            Task::Loiter(_) => {
                self.engage_climb(p);
                self.start_loiter4(p);
            }
            Task::PosHold(_) => {
                self.engage_climb(p);
                self.poshold_holds = false;
            }
            Task::Velocity { .. } | Task::Land | Task::Stopped | Task::Idle | Task::Stabilize(_) => {}
        }
    }

    fn engage4(&mut self, p: &NavParameters) {
        self.set_navigation_limits(p);
        if self.four.active {
            return;
        }
        self.four.active = true;
        let at = self.estimate();
        self.vertical.target_m = at.z;
        self.four.target = Smooth::new(at, self.airframe.velocity, DVec3::ZERO);
        self.four.controller.engage(self.airframe.lean);
    }

    /// A leg of a mission: the one after a leg that was flown, or one from where the aircraft stops.
    pub(super) fn start_leg4(
        &mut self,
        before: Task,
        destination: DVec3,
        next: Option<DVec3>,
        p: &NavParameters,
    ) {
        self.engage4(p);
        match before {
            Task::Waypoint { .. } if self.reached => self.four.course.follow(destination, next, p),
            Task::TakeOff { altitude_m } if self.reached => {
                let origin = self.four.target.position.truncate().extend(altitude_m);
                self.four.course.start(origin, destination, next, p);
            }
            Task::Stopped
            | Task::Idle
            | Task::TakeOff { .. }
            | Task::Waypoint { .. }
            | Task::Position { .. }
            | Task::PositionVelocity { .. }
            | Task::Velocity { .. }
            | Task::Brake
            | Task::Land
            | Task::Stabilize(_)
            | Task::AltHold(_)
            | Task::Loiter(_)
            | Task::PosHold(_) => {
                let origin = self.stopping_point();
                self.four.target = Smooth::new(origin, DVec3::ZERO, DVec3::ZERO);
                self.four.controller.engage(self.airframe.lean);
                self.four.course.start(origin, destination, next, p);
            }
        }
        self.reached = false;
    }

    /// Loiter begins with the motion that it finds.
    pub(super) fn start_loiter4(&mut self, p: &NavParameters) {
        self.four.active = false;
        self.engage4(p);
        self.four.loiter = Loiter4::engage(self.airframe.lean);
    }

    /// The controllers' answer to a task in the air.
    pub(super) fn control4(&mut self, p: &NavParameters, dt_s: f64) -> (DVec2, Lift, Yaw) {
        self.engage4(p);
        let limits = limits(p);
        let saturation = self.four.controller.saturation();
        // The vertical controller pulls a target in that it cannot reach.
        self.four.target.position.z = self.vertical.target_m;
        let mut yaw = Yaw::Hold;
        let mut around = (limits.speed_m_s, limits.acceleration_m_s2);
        match self.task {
            Task::Waypoint { fast, yaw: asked, .. } => {
                self.fly_course4(fast, p, dt_s);
                yaw = self.heading4(asked, p);
            }
            Task::Position { position, yaw: asked } => {
                let target = &mut self.four.target;
                target.advance(saturation, dt_s);
                let limits = towards(position - target.position, limits);
                target.towards_position(flat(position), DVec2::ZERO, DVec2::ZERO, limits, dt_s);
                target.towards_altitude(position.z, 0.0, limits, dt_s);
                self.reached |= sqrt3(position - self.airframe.position) <= p.wpnav_radius_m.max(0.1);
                yaw = self.heading4(asked, p);
            }
            Task::PositionVelocity { velocity, acceleration, .. } => {
                let alive = !self.timed_out(p);
                let now = if alive { velocity + acceleration * self.since_task_s } else { DVec3::ZERO };
                let acceleration = if alive { acceleration } else { DVec3::ZERO };
                self.streamed_position += now * dt_s;
                let (position, target) = (self.streamed_position, &mut self.four.target);
                target.advance(saturation, dt_s);
                target.towards_position(flat(position), flat(now), flat(acceleration), limits, dt_s);
                target.towards_altitude(position.z, now.z, limits, dt_s);
            }
            Task::Velocity { velocity } => {
                let wanted = if self.timed_out(p) { DVec3::ZERO } else { velocity };
                let target = &mut self.four.target;
                target.advance(saturation, dt_s);
                target.towards_velocity(flat(wanted), DVec2::ZERO, limits, dt_s);
                target.towards_climb(wanted.z, limits, dt_s);
            }
            Task::TakeOff { altitude_m } => {
                if !self.track_started {
                    self.track_started = true;
                    if self.landed {
                        let at = self.estimate();
                        self.vertical.relax(at.z, self.character.take_off_thrust * GRAVITY_M_S2);
                        self.four.target = Smooth::new(at, DVec3::ZERO, DVec3::ZERO);
                    }
                }
                let target = &mut self.four.target;
                target.advance(saturation, dt_s);
                target.towards_velocity(DVec2::ZERO, DVec2::ZERO, limits, dt_s);
                target.towards_altitude(altitude_m, 0.0, limits, dt_s);
                let slow_m_s = TAKE_OFF_CLIMB_PART * limits.up_m_s;
                let near_m = 0.5 * slow_m_s * slow_m_s / limits.acceleration_z_m_s2;
                let climb = target.velocity.z;
                self.reached |= self.estimate().z >= altitude_m - near_m && climb < slow_m_s;
            }
            Task::Brake => {
                around = (self.brake_from_m_s, BRAKE_ACCELERATION_M_S2);
                let limits = Limits {
                    acceleration_m_s2: BRAKE_ACCELERATION_M_S2,
                    acceleration_z_m_s2: BRAKE_ACCELERATION_M_S2,
                    ..limits
                };
                let target = &mut self.four.target;
                target.advance(saturation, dt_s);
                target.towards_velocity(DVec2::ZERO, DVec2::ZERO, limits, dt_s);
                target.towards_climb(0.0, limits, dt_s);
            }
            Task::Stopped
            | Task::Idle
            | Task::Land
            | Task::Stabilize(_)
            | Task::AltHold(_)
            | Task::Loiter(_)
            | Task::PosHold(_) => {
                let rate = self.land_rate_m_s(p);
                let target = &mut self.four.target;
                target.advance(saturation, dt_s);
                target.towards_velocity(DVec2::ZERO, DVec2::ZERO, limits, dt_s);
                target.towards_climb(rate, limits, dt_s);
            }
        }
        let Smooth { position, velocity, acceleration } = self.four.target;
        self.vertical.follow_smooth(position.z, velocity.z, acceleration.z);
        self.four.controller.set_limits(around.0, around.1);
        (self.lean4(p, dt_s), Lift::Altitude, yaw)
    }

    /// Loiter, or PosHold with its sticks let go: the lean.
    pub(super) fn loiter4(&mut self, sticks: Sticks, p: &NavParameters, dt_s: f64) -> DVec2 {
        self.four.active = true;
        let velocity = flat(self.four.target.velocity);
        let acceleration = self.four.loiter.step(velocity, sticks, self.yaw_rad, p, dt_s);
        self.four.target.acceleration = acceleration.extend(0.0);
        self.four.target.velocity.z = 0.0;
        // Loiter's target runs on even if the aircraft leans as far as it may.
        self.four.target.advance(Saturation::default(), dt_s);
        self.four.controller.set_limits(LOITER_CORRECTION_M_S, LOITER_ACCELERATION_M_S2);
        self.lean4(p, dt_s)
    }

    fn fly_course4(&mut self, fast: bool, p: &NavParameters, dt_s: f64) {
        let at = self.estimate();
        let error = self.four.controller.position_error().extend(self.vertical.target_m - at.z);
        let Copter4 { course, target, .. } = &mut self.four;
        course.advance(target, error, self.airframe.velocity, p, dt_s);
        let near = sqrt3(at - course.destination()) <= p.wpnav_radius_m.max(0.1);
        self.reached |= course.passed() && (fast || near);
    }

    fn lean4(&mut self, p: &NavParameters, dt_s: f64) -> DVec2 {
        let limit = self.lean_limit.m_s2(p.angle_max_rad);
        let (at, velocity) = (flat(self.airframe.position), flat(self.airframe.velocity));
        let Copter4 { controller, target, .. } = &mut self.four;
        controller.update(target, at, velocity, limit, dt_s)
    }

    /// The nose follows the target's course, which turns with the corner.
    fn heading4(&self, asked: Option<f64>, p: &NavParameters) -> Yaw {
        let course = flat(self.four.target.velocity);
        let flown = flat(self.airframe.velocity);
        match (asked, p.yaw_behavior) {
            (Some(heading), _) => Yaw::Heading(heading),
            (None, 1 | 2) if length(course) > YAW_SPEED_PART * p.wpnav_speed_m_s => {
                Yaw::Heading(libm::atan2(course.x, course.y))
            }
            (None, 3) if length(flown) > COURSE_SPEED_MIN_M_S => Yaw::Heading(libm::atan2(flown.x, flown.y)),
            _ => Yaw::Hold,
        }
    }
}

/// Speed limits on the way to a point: one straight line, the slower axis sets the pace of both.
fn towards(way: DVec3, limits: Limits) -> Limits {
    let distance_m = sqrt3(way);
    if distance_m < 1e-6 {
        return limits;
    }
    let unit = way / distance_m;
    let speed = along(unit, limits.speed_m_s, limits.up_m_s, limits.down_m_s);
    let vertical = libm::fabs(unit.z) * speed;
    let (up_m_s, down_m_s) =
        if unit.z >= 0.0 { (vertical, limits.down_m_s) } else { (limits.up_m_s, vertical) };
    Limits { speed_m_s: length(flat(unit)) * speed, up_m_s, down_m_s, ..limits }
}
