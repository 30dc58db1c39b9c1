//! How each task begins: what the controllers take over from the motion so far, and which limits they
//! get. These are ArduCopter's mode and sub-mode initialisations, and with them its jumps.

use wingbeat_geo::{DVec2, DVec3};

use super::{BRAKE_ACCELERATION_M_S2, BRAKE_CLIMB_M_S, Multicopter, PILOT_ACCELERATION_Z_M_S2, flat};
use crate::motion::horizontal::{JERK_DEFAULT_M_S3, length};
use crate::motion::pilot::LoiterPilot;
use crate::motion::track::Leashes;
use crate::motion::{NavParameters, Task};

impl Multicopter {
    /// The task just set begins on 3.5.7; `same` where only its numbers are new.
    pub(super) fn start3(&mut self, before: Task, parameters: &NavParameters, same: bool) {
        match self.task {
            // Saying the same again does not run the motors up again.
            Task::TakeOff { .. } if before == self.task => {}
            Task::TakeOff { .. } => self.start_take_off(parameters),
            Task::Waypoint { destination, fast, .. } => {
                self.start_waypoint(before, destination, fast, parameters);
            }
            Task::Position { position, .. } => {
                self.start_waypoint(before, position, false, parameters);
                self.track.lose_first_period();
            }
            Task::PositionVelocity { position, .. } => {
                if !same {
                    self.engage_navigation(parameters);
                }
                self.streamed_position = position;
            }
            _ if same => {}
            Task::Velocity { .. } => self.start_velocity(parameters),
            Task::Brake => self.start_brake(parameters),
            Task::Land => self.start_land(parameters),
            Task::AltHold(_) => self.engage_climb(parameters),
            Task::Loiter(_) => {
                self.engage_climb(parameters);
                self.start_loiter(parameters);
            }
            Task::PosHold(_) => {
                self.engage_climb(parameters);
                self.poshold_holds = false;
            }
            Task::Stopped | Task::Idle | Task::Stabilize(_) => {}
        }
    }

    /// Navigation's position estimate.
    pub(super) fn estimate(&self) -> DVec3 {
        let p = self.airframe.position;
        DVec3::new(p.x, p.y, p.z + self.height_error.shown_m())
    }

    pub(super) fn leashes(&self) -> Leashes {
        Leashes {
            horizontal_m: self.horizontal.leash_m(),
            up_m: self.vertical.leash_up_m(),
            down_m: self.vertical.leash_down_m(),
        }
    }

    pub(super) fn set_navigation_limits(&mut self, p: &NavParameters) {
        self.horizontal.set_limits(p.wpnav_speed_m_s, p.wpnav_accel_m_s2.max(0.05), JERK_DEFAULT_M_S3);
        self.vertical.set_limits(p.wpnav_speed_up_m_s, p.wpnav_speed_down_m_s, p.wpnav_accel_z_m_s2);
    }

    pub(super) fn engage_navigation(&mut self, parameters: &NavParameters) {
        self.horizontal.engage(self.airframe.lean);
        self.horizontal.desired_velocity = DVec2::ZERO;
        self.set_navigation_limits(parameters);
    }

    pub(super) fn engage_climb(&mut self, p: &NavParameters) {
        self.vertical.set_limits(p.pilot_velocity_z_m_s, p.pilot_velocity_z_m_s, PILOT_ACCELERATION_Z_M_S2);
        if !self.landed {
            self.vertical.target_m = self.estimate().z;
            self.vertical.desired_velocity_m_s = Some(self.airframe.velocity.z);
        }
    }

    pub(super) fn start_take_off(&mut self, parameters: &NavParameters) {
        self.engage_navigation(parameters);
        self.track_started = false;
        self.reached = false;
        if self.landed {
            self.spooled_s = 0.0;
        }
    }

    pub(super) fn start_waypoint(
        &mut self,
        before: Task,
        destination: DVec3,
        fast: bool,
        parameters: &NavParameters,
    ) {
        // A leg starts where the intermediate target is; from anything else, where the aircraft would
        // stop. A take-off that is not complete is something else.
        let follows = match before {
            Task::Waypoint { .. } | Task::Position { .. } => true,
            Task::TakeOff { .. } => self.reached,
            Task::Stopped
            | Task::Idle
            | Task::PositionVelocity { .. }
            | Task::Velocity { .. }
            | Task::Brake
            | Task::Land
            | Task::Stabilize(_)
            | Task::AltHold(_)
            | Task::Loiter(_)
            | Task::PosHold(_) => false,
        };
        if !follows {
            self.engage_navigation(parameters);
        }
        self.set_navigation_limits(parameters);
        let origin = if follows { self.track.target() } else { self.stopping_point() };
        let (velocity, leashes) = (self.airframe.velocity, self.leashes());
        self.track.start(origin, destination, fast, velocity, parameters, leashes);
        self.track_started = true;
        self.reached = false;
        self.horizontal.freeze_feedforward = true;
    }

    pub(super) fn start_velocity(&mut self, p: &NavParameters) {
        let at = self.estimate();
        self.vertical.set_limits(p.pilot_velocity_z_m_s, p.pilot_velocity_z_m_s, PILOT_ACCELERATION_Z_M_S2);
        self.horizontal.engage(self.airframe.lean);
        self.horizontal.target = flat(at);
        self.horizontal.desired_velocity = flat(self.airframe.velocity);
        self.vertical.target_m = at.z;
        self.vertical.desired_velocity_m_s = Some(self.airframe.velocity.z);
    }

    pub(super) fn start_brake(&mut self, parameters: &NavParameters) {
        let (at, velocity) = (flat(self.estimate()), flat(self.airframe.velocity));
        let climb = self.airframe.velocity.z;
        self.horizontal.engage(self.airframe.lean);
        self.horizontal.set_limits(length(velocity), BRAKE_ACCELERATION_M_S2, JERK_DEFAULT_M_S3);
        self.horizontal.target = self.horizontal.stopping_point(at, velocity);
        self.horizontal.desired_velocity = DVec2::ZERO;
        // The stop is planned with Brake's deceleration but flown with Loiter's limits: its leash pulls
        // the target in, and an overshoot drags it along.
        self.set_loiter_limits(parameters);
        self.vertical.set_limits(BRAKE_CLIMB_M_S, BRAKE_CLIMB_M_S, BRAKE_ACCELERATION_M_S2);
        if self.vertical.desired_velocity_m_s.is_none() {
            self.vertical.desired_velocity_m_s = Some(climb);
        }
    }

    pub(super) fn start_land(&mut self, p: &NavParameters) {
        let (at, velocity) = (flat(self.estimate()), flat(self.airframe.velocity));
        let target = self.horizontal.stopping_point(at, velocity);
        self.horizontal.engage(self.airframe.lean);
        self.horizontal.target = target;
        self.horizontal.desired_velocity = DVec2::ZERO;
        self.set_loiter_limits(p);
        self.vertical.set_limits(p.wpnav_speed_up_m_s, p.wpnav_speed_down_m_s, p.wpnav_accel_z_m_s2);
        self.vertical.target_m = self.estimate().z;
        self.vertical.desired_velocity_m_s = Some(self.airframe.velocity.z);
    }

    pub(super) fn start_loiter(&mut self, parameters: &NavParameters) {
        let velocity = flat(self.airframe.velocity);
        self.horizontal.engage(self.airframe.lean);
        self.set_loiter_limits(parameters);
        self.horizontal.target = flat(self.estimate());
        self.horizontal.desired_velocity = velocity;
        self.loiter = LoiterPilot::engage(velocity, parameters, self.character.loiter);
    }

    pub(super) fn set_loiter_limits(&mut self, parameters: &NavParameters) {
        let limits = self.character.loiter;
        self.horizontal.set_limits(
            parameters.loiter_speed_m_s.max(0.2),
            limits.acceleration_m_s2,
            limits.jerk_m_s3,
        );
    }
}
