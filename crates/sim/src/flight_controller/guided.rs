//! GUIDED: targets from the companion, with the masks and frames that ArduCopter takes.

use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{
    MavFrame, PositionTargetTypemask, SET_POSITION_TARGET_GLOBAL_INT_DATA, SET_POSITION_TARGET_LOCAL_NED_DATA,
};
use wingbeat_geo::{DVec3, Position};

use super::FlightController;
use crate::motion::{Profile, Task};

/// A target farther away than this is no target but a mistake (ArduCopter has no such bound; the local
/// frame is exact within it).
const FAR_M: f64 = 100_000.0;
/// A velocity beyond this is no number for a multicopter.
const FAST_M_S: f64 = 1_000.0;
/// An acceleration beyond this is none that a multicopter can fly, and is not fed forward.
const HARD_M_S2: f64 = 100.0;

/// What the companion wants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Guided {
    /// The last target, until another mode or a take-off takes over.
    target: Option<Target>,
    /// The yaw that a command asked for.
    yaw_rad: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Target {
    pub(super) position: Option<DVec3>,
    pub(super) velocity: Option<DVec3>,
    /// Fed forward with a position and a velocity (4.x); zero where none came.
    pub(super) acceleration: DVec3,
}

impl Guided {
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
    /// The nose is free again.
    pub(super) fn look_ahead(&mut self) {
        self.yaw_rad = None;
    }
    pub(super) fn target(&self) -> Option<Target> {
        self.target
    }
}

const POSITION: PositionTargetTypemask = PositionTargetTypemask::from_bits_truncate(0x007);
const VELOCITY: PositionTargetTypemask = PositionTargetTypemask::from_bits_truncate(0x038);
const ACCELERATION: PositionTargetTypemask = PositionTargetTypemask::from_bits_truncate(0x1c0);

impl FlightController {
    /// What a mask leaves of a target. 3.5.7 takes none with an acceleration in it; 4.x feeds it
    /// forward, though not from the global message, whose acceleration it drops.
    fn masked(
        &self,
        mask: PositionTargetTypemask,
        position: Option<DVec3>,
        velocity: DVec3,
        acceleration: DVec3,
    ) -> Option<Target> {
        let wants_acceleration = !mask.intersects(ACCELERATION);
        if wants_acceleration && self.profile() == Profile::Copter357 {
            return None;
        }
        let wants_position = !mask.intersects(POSITION);
        let wants_velocity = !mask.intersects(VELOCITY);
        let position = if wants_position {
            Some(position.filter(|p| p.is_finite() && p.length() < FAR_M)?)
        } else {
            None
        };
        let velocity = wants_velocity.then_some(velocity).filter(|v| v.is_finite() && v.length() < FAST_M_S);
        if (wants_velocity && velocity.is_none()) || (position.is_none() && velocity.is_none()) {
            return None;
        }
        let acceleration =
            if wants_acceleration && acceleration.length() < HARD_M_S2 { acceleration } else { DVec3::ZERO };
        Some(Target { position, velocity, acceleration })
    }

    pub(super) fn handle_target_global(&mut self, m: &SET_POSITION_TARGET_GLOBAL_INT_DATA) {
        let position = self.place(m.lat_int, m.lon_int, f64::from(m.alt), m.coordinate_frame);
        let velocity = DVec3::new(f64::from(m.vy), f64::from(m.vx), -f64::from(m.vz));
        let target = self.masked(m.type_mask, position, velocity, DVec3::ZERO);
        self.take_target(target);
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub(super) fn handle_target_local(&mut self, m: &SET_POSITION_TARGET_LOCAL_NED_DATA) {
        let state = *self.vehicle.state();
        let body = matches!(
            m.coordinate_frame,
            MavFrame::MAV_FRAME_BODY_NED | MavFrame::MAV_FRAME_BODY_OFFSET_NED | MavFrame::MAV_FRAME_BODY_FRD
        );
        // North-east-down (forward-right-down in body frames) to east-north-up.
        let (sin, cos) = libm::sincos(state.yaw_rad);
        let turn = |x: f32, y: f32, z: f32| {
            let (x, y, z) = (f64::from(x), f64::from(y), f64::from(z));
            if body { DVec3::new(x * sin + y * cos, x * cos - y * sin, -z) } else { DVec3::new(y, x, -z) }
        };
        let offset = turn(m.x, m.y, m.z);
        let position = match m.coordinate_frame {
            // East and north count from the origin of the estimate, up from home (3.5.7).
            MavFrame::MAV_FRAME_LOCAL_NED => Some(offset + DVec3::Z * self.home_or_origin().z),
            MavFrame::MAV_FRAME_LOCAL_OFFSET_NED
            | MavFrame::MAV_FRAME_BODY_NED
            | MavFrame::MAV_FRAME_BODY_OFFSET_NED => Some(state.position + offset),
            _ => return self.refuse_target(),
        };
        let acceleration = turn(m.afx, m.afy, m.afz);
        let target = self.masked(m.type_mask, position, turn(m.vx, m.vy, m.vz), acceleration);
        self.take_target(target);
    }

    /// A place in the local frame; `None` if it is none, or in a frame that is not flown.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub(super) fn place(
        &self,
        latitude_e7: i32,
        longitude_e7: i32,
        altitude_m: f64,
        frame: MavFrame,
    ) -> Option<DVec3> {
        let position = Position { latitude_e7, longitude_e7, altitude_mm: self.config.home.altitude_mm };
        if !position.is_on_earth() || altitude_m.is_nan() || altitude_m.abs() > FAR_M {
            return None;
        }
        let flat = self.frame.to_local(position);
        let up = match frame {
            MavFrame::MAV_FRAME_GLOBAL | MavFrame::MAV_FRAME_GLOBAL_INT => {
                altitude_m - self.config.home.altitude_m()
            }
            MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT | MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT_INT => {
                altitude_m + self.home_or_origin().z
            }
            _ => return None,
        };
        Some(DVec3::new(flat.x, flat.y, up))
    }

    fn refuse_target(&mut self) {
        self.counters.targets_refused = self.counters.targets_refused.saturating_add(1);
    }

    fn take_target(&mut self, target: Option<Target>) {
        match target {
            Some(target) if self.mode == Mode::Guided => {
                if !self.fly_to(target) {
                    self.refuse_target();
                }
            }
            _ => self.refuse_target(),
        }
    }

    /// Flies to a guided target, unless the fence is in the way. A target that comes on the ground waits
    /// for nothing: ArduCopter drops it there too.
    fn fly_to(&mut self, target: Target) -> bool {
        if target.position.is_some_and(|p| !self.fence_allows(p)) {
            return false;
        }
        if !self.armed() || !self.may_fly() {
            return true;
        }
        self.guided.target = Some(target);
        let task = match target {
            Target { position: Some(position), velocity: None, .. } => {
                Task::Position { position, yaw: self.guided.yaw_rad }
            }
            Target { position: Some(position), velocity: Some(velocity), acceleration } => {
                Task::PositionVelocity { position, velocity, acceleration }
            }
            Target { position: None, velocity, .. } => {
                Task::Velocity { velocity: velocity.unwrap_or(DVec3::ZERO) }
            }
        };
        self.vehicle.set_task(task, &self.nav);
        true
    }

    /// `MISSION_ITEM` with `current` 2: a guided target by another door.
    pub(super) fn go_to(&mut self, destination: DVec3) -> bool {
        self.mode == Mode::Guided
            && self.fly_to(Target { position: Some(destination), velocity: None, acceleration: DVec3::ZERO })
    }

    /// `MISSION_ITEM` with `current` 3: another altitude, the same place.
    pub(super) fn change_altitude(&mut self, up_m: f64) -> bool {
        let here = self.vehicle.target().unwrap_or(self.vehicle.state().position);
        self.go_to(DVec3::new(here.x, here.y, up_m))
    }

    /// `CONDITION_YAW`: an absolute heading or a turn, in degrees.
    pub(super) fn turn_to(&mut self, degrees: f32, relative: f32) {
        if !degrees.is_finite() || self.mode != Mode::Guided {
            return;
        }
        let base = if relative == 1.0 { self.vehicle.state().yaw_rad } else { 0.0 };
        let tau = core::f64::consts::TAU;
        let yaw = libm::fmod(base + f64::from(degrees).to_radians(), tau);
        self.guided.yaw_rad = Some(if yaw < 0.0 { yaw + tau } else { yaw });
        if let (Some(Target { position: Some(position), velocity: None, .. }), true) =
            (self.guided.target, self.may_fly())
        {
            let task = Task::Position { position, yaw: self.guided.yaw_rad };
            self.vehicle.set_task(task, &self.nav);
        }
    }

    /// GUIDED between two messages: on the ground nothing turns but the idling motors.
    pub(super) fn run_guided(&mut self) {
        let flying_task = matches!(
            self.vehicle.task(),
            Task::TakeOff { .. }
                | Task::Waypoint { .. }
                | Task::Position { .. }
                | Task::PositionVelocity { .. }
                | Task::Velocity { .. }
        );
        if !self.may_fly() {
            self.ensure(Task::Idle);
        } else if !flying_task {
            // Entered in the air: hold where it comes to rest.
            self.stop_here();
        }
    }
}
