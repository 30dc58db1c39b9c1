//! The aircraft: the task in force, the controllers that fly it, the airframe that they fly.
//! How a task begins is in `start.rs`.

mod copter4;
mod start;

use core::f64::consts::{PI, TAU};

use wingbeat_geo::{DVec2, DVec3};

use super::airframe::{Airframe, Drag, Lags};
use super::horizontal::{Blend, Gains, Horizontal, clamp_length, length, response};
use super::pilot::{LoiterLimits, LoiterPilot};
use super::track::Track;
use super::vertical::{HeightError, Vertical};
use super::{GRAVITY_M_S2, NavParameters, Profile, State, Sticks, Task, bounded};
use copter4::Copter4;

/// The period of the navigation controllers (50 Hz in the 3.5 generation).
const CONTROL_PERIOD_S: f64 = 0.02;
/// How late the velocity is that 3.5.7's controller sees.
const ESTIMATE_LAG_S: f64 = 0.02;
/// The airframe and the vertical controller run at least this fast.
const AIRFRAME_PERIOD_S: f64 = 0.005;
/// One call of `step` moves no further than this, so that a wild argument cannot hang the caller.
const STEP_MAX_S: f64 = 10.0;
/// Full throttle over hover thrust of the simulated quad.
const HOVER_THROTTLE: f64 = 0.51;
/// While a take-off of 4.6.2 slews its throttle (TKOFF_SLEW_TIME) it lifts with no more than this.
const SLEW_LIFT_M_S2: f64 = 0.55;
/// Thrust of idling motors as a part of the weight.
const IDLE_THROTTLE: f64 = 0.08;
/// BRAKE_MODE_DECEL_RATE and BRAKE_MODE_SPEED_Z.
const BRAKE_ACCELERATION_M_S2: f64 = 7.5;
const BRAKE_CLIMB_M_S: f64 = 2.5;
/// PILOT_ACCEL_Z.
const PILOT_ACCELERATION_Z_M_S2: f64 = 2.5;
/// Above this height LAND descends fast (LAND_ALT_LOW).
const LAND_SLOW_BELOW_M: f64 = 10.0;
/// Thrust that counts as the motors' lower limit.
const LOW_THRUST_M_S2: f64 = 0.05 * GRAVITY_M_S2;
/// ATC_SLEW_YAW, yaw angle gain and yaw acceleration limit (ATC_ACCEL_Y_MAX 27000).
const YAW_SLEW_RAD_S: f64 = 60.0 * PI / 180.0;
const YAW_P: f64 = 4.5;
const YAW_ACCELERATION_RAD_S2: f64 = 270.0 * PI / 180.0;
/// The course gives the heading (WP_YAW_BEHAVIOR 3) above this speed.
const COURSE_SPEED_MIN_M_S: f64 = 2.0;
/// PosHold brakes with up to this lean (PHLD_BRAKE_ANGLE) and holds below this speed.
const POSHOLD_BRAKE_RAD: f64 = 30.0 * PI / 180.0;
const POSHOLD_HOLD_BELOW_M_S: f64 = 0.5;
const POSHOLD_BRAKE_GAIN_PER_S: f64 = 1.6;

/// What differs between the profiles besides the navigation itself.
#[derive(Clone, Copy, Debug)]
struct Character {
    gains: Gains,
    drag: Drag,
    lags: Lags,
    /// From the command to fly until the motors may give full thrust.
    spool_s: f64,
    /// Part of the weight that the motors carry then.
    take_off_thrust: f64,
    /// How long a take-off then still lifts gently.
    slew_s: f64,
    /// The land detector wants this long with the motors at their lower limit.
    land_detector_s: f64,
    loiter: LoiterLimits,
    /// Whether the height estimate drifts in a climb.
    height_drifts: bool,
}

impl Character {
    fn new(profile: Profile) -> Self {
        match profile {
            Profile::Copter357 => Self {
                gains: Gains {
                    position_p: 1.0,
                    velocity_p: 1.0,
                    // Fitted; VEL_XY_I is 0.5.
                    velocity_i: 0.475,
                    acceleration_filter_hz: 2.0,
                    derivative_feedforward: true,
                },
                drag: Drag { linear_per_s: GRAVITY_M_S2 / 15.0, quadratic_per_m: 0.0 },
                lags: Lags { target_s: 0.125, attitude_s: 0.02 },
                spool_s: 1.1,
                take_off_thrust: 0.4,
                slew_s: 0.0,
                land_detector_s: 1.0,
                loiter: LoiterLimits { acceleration_m_s2: 2.5, braking_min_m_s2: 0.25, jerk_m_s3: 10.0 },
                height_drifts: true,
            },
            Profile::Copter462 => Self {
                gains: Gains {
                    position_p: 1.0,
                    velocity_p: 2.0,
                    velocity_i: 1.0,
                    acceleration_filter_hz: 5.0,
                    derivative_feedforward: false,
                },
                drag: Drag { linear_per_s: 0.3996, quadratic_per_m: 0.01664 },
                lags: Lags { target_s: 0.125, attitude_s: 0.02 },
                spool_s: 2.75,
                take_off_thrust: 1.0,
                slew_s: 0.72,
                land_detector_s: 1.3,
                loiter: LoiterLimits { acceleration_m_s2: 5.0, braking_min_m_s2: 2.5, jerk_m_s3: 5.0 },
                height_drifts: false,
            },
        }
    }
}

/// What the motors do in this control period.
#[derive(Clone, Copy, Debug)]
enum Lift {
    /// A fixed vertical force per mass: motors off, idling, or the throttle stick.
    Fixed(f64),
    /// The vertical controller goes for its target.
    Altitude,
    /// The vertical controller follows a climb rate; `force` presses on into the ground.
    Climb { rate_m_s: f64, force: bool },
}

/// Where the nose goes in this control period.
#[derive(Clone, Copy, Debug)]
enum Yaw {
    Hold,
    Heading(f64),
    Rate(f64),
}

/// Dynamics of a multicopter with its position controller.
#[derive(Clone, Debug)]
pub struct Multicopter {
    profile: Profile,
    character: Character,
    task: Task,
    /// Since the task was last set.
    since_task_s: f64,
    /// Since the motors were asked to fly off the ground.
    spooled_s: f64,
    /// Since the motors began to lift it off the ground.
    slewed_s: f64,
    /// With thrust at its lower limit on the ground.
    grounded_s: f64,
    landed: bool,
    airframe: Airframe,
    horizontal: Horizontal,
    vertical: Vertical,
    track: Track,
    /// The track has begun (a take-off waits for the motors first).
    track_started: bool,
    four: Copter4,
    brake_from_m_s: f64,
    reached: bool,
    streamed_position: DVec3,
    loiter: LoiterPilot,
    poshold_holds: bool,
    height_error: HeightError,
    lean_limit: LeanLimit,
    yaw_rad: f64,
    yaw_rate_rad_s: f64,
    yaw_hold_rad: f64,
    state: State,
}

impl Multicopter {
    /// An aircraft that stands on the ground at `position` with its motors stopped. The ground is
    /// flat, at that altitude.
    pub fn new(profile: Profile, position: DVec3, yaw_rad: f64) -> Self {
        let position = if position.is_finite() { position } else { DVec3::ZERO };
        let yaw_rad = wrap(if yaw_rad.is_finite() { yaw_rad } else { 0.0 });
        let character = Character::new(profile);
        let mut new = Self {
            profile,
            character,
            task: Task::Stopped,
            since_task_s: 0.0,
            spooled_s: 0.0,
            slewed_s: 0.0,
            grounded_s: 0.0,
            landed: true,
            airframe: Airframe::new(character.drag, character.lags, position),
            horizontal: Horizontal::new(character.gains, flat(position)),
            vertical: Vertical::new(position.z),
            track: Track::new(position),
            track_started: false,
            four: Copter4::new(position),
            brake_from_m_s: 0.0,
            reached: false,
            streamed_position: position,
            loiter: LoiterPilot::default(),
            poshold_holds: false,
            height_error: HeightError::default(),
            lean_limit: LeanLimit::default(),
            yaw_rad,
            yaw_rate_rad_s: 0.0,
            yaw_hold_rad: yaw_rad,
            state: State {
                position,
                velocity: DVec3::ZERO,
                acceleration: DVec3::ZERO,
                lean_m_s2: DVec2::ZERO,
                yaw_rad,
                yaw_rate_rad_s: 0.0,
                throttle: 0.0,
                landed: true,
            },
        };
        new.publish();
        new
    }

    /// Asks for something else, or for the same with new numbers: once per command or message, since
    /// every call counts as one (a waypoint restarts its track, a velocity its time-out). A task with a
    /// target that is not finite is refused: the aircraft keeps the one it has.
    pub fn set_task(&mut self, task: Task, parameters: &NavParameters) {
        let finite = match task {
            Task::TakeOff { altitude_m } => altitude_m.is_finite(),
            Task::Waypoint { destination, next, yaw, .. } => {
                destination.is_finite() && next.is_none_or(DVec3::is_finite) && yaw.is_none_or(f64::is_finite)
            }
            Task::Position { position, yaw } => position.is_finite() && yaw.is_none_or(f64::is_finite),
            Task::PositionVelocity { position, velocity, acceleration } => {
                position.is_finite() && velocity.is_finite() && acceleration.is_finite()
            }
            Task::Velocity { velocity } => velocity.is_finite(),
            Task::Stopped
            | Task::Idle
            | Task::Brake
            | Task::Land
            | Task::Stabilize(_)
            | Task::AltHold(_)
            | Task::Loiter(_)
            | Task::PosHold(_) => true,
        };
        if !finite {
            return;
        }
        let before = core::mem::replace(&mut self.task, task);
        self.since_task_s = 0.0;
        let same = core::mem::discriminant(&before) == core::mem::discriminant(&task);
        match self.profile {
            Profile::Copter357 => self.start3(before, parameters, same),
            Profile::Copter462 => self.start4(before, parameters, same),
        }
        if !same {
            self.yaw_hold_rad = self.yaw_rad;
        }
    }

    /// Moves on by `dt_s` in this wind (the air's velocity). Time that is no number or negative does
    /// nothing; more than 10 s in one step counts as 10 s.
    pub fn step(&mut self, dt_s: f64, parameters: &NavParameters, wind_m_s: DVec3) {
        let wind_m_s = if wind_m_s.is_finite() { wind_m_s } else { DVec3::ZERO };
        let mut left_s = bounded(dt_s, 0.0, STEP_MAX_S);
        while left_s > 1e-9 {
            let dt_s = if left_s > CONTROL_PERIOD_S * 1.5 { CONTROL_PERIOD_S } else { left_s };
            left_s -= dt_s;
            self.control_period(dt_s, parameters, wind_m_s);
        }
        self.publish();
    }

    /// Position, velocity and attitude now.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What it was asked to do.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// As ArduCopter's "reached": a fast waypoint once the intermediate target is there (on 3.5.7 up
    /// to a leash early), another within WPNAV_RADIUS, a take-off likewise. False for other tasks.
    pub fn destination_reached(&self) -> bool {
        self.reached
            && matches!(self.task, Task::TakeOff { .. } | Task::Waypoint { .. } | Task::Position { .. })
    }

    /// The destination that navigation holds now.
    pub fn target(&self) -> Option<DVec3> {
        match self.task {
            Task::TakeOff { altitude_m } => {
                Some(DVec3::new(self.horizontal.target.x, self.horizontal.target.y, altitude_m))
            }
            Task::Waypoint { destination: position, .. } | Task::Position { position, .. } => Some(position),
            Task::PositionVelocity { .. } => Some(self.streamed_position),
            Task::Brake | Task::Land | Task::Loiter(_) => {
                Some(self.horizontal.target.extend(self.vertical.target_m))
            }
            Task::PosHold(_) if self.poshold_holds => {
                Some(self.horizontal.target.extend(self.vertical.target_m))
            }
            Task::Stopped
            | Task::Idle
            | Task::Velocity { .. }
            | Task::Stabilize(_)
            | Task::AltHold(_)
            | Task::PosHold(_) => None,
        }
    }

    /// Where it would come to rest if it were ordered to stop now, as ArduCopter reckons it: where it
    /// loiters when a mission ends under way.
    pub fn stopping_point(&self) -> DVec3 {
        let at = self.estimate();
        let velocity = self.airframe.velocity;
        self.horizontal
            .stopping_point(flat(at), flat(velocity))
            .extend(self.vertical.stopping_altitude_m(at.z, velocity.z))
    }

    fn control_period(&mut self, dt_s: f64, parameters: &NavParameters, wind_m_s: DVec3) {
        self.since_task_s += dt_s;
        let (lean, lift, yaw) = self.control(dt_s, parameters);
        let steps = libm::ceil(dt_s / AIRFRAME_PERIOD_S - 1e-9).max(1.0);
        let step_s = dt_s / steps;
        let low = self.vertical_low(lift);
        for _ in 0..steps as usize {
            let altitude_m = self.estimate().z;
            let climb = self.airframe.velocity.z;
            let lift_m_s2 = match lift {
                Lift::Fixed(lift_m_s2) => {
                    self.vertical.relax(altitude_m, lift_m_s2);
                    lift_m_s2
                }
                Lift::Altitude => self.lift(altitude_m, climb, step_s),
                Lift::Climb { rate_m_s, force } => {
                    self.vertical.climb(rate_m_s, altitude_m, step_s, force);
                    self.lift(altitude_m, climb, step_s)
                }
            };
            self.airframe.step(lean, lift_m_s2, wind_m_s, step_s);
        }
        if self.character.height_drifts {
            self.height_error.step(self.airframe.velocity.z, dt_s);
        }
        self.turn(yaw, dt_s);
        self.detect_landing(low, dt_s);
    }

    fn lift(&mut self, altitude_m: f64, climb_m_s: f64, dt_s: f64) -> f64 {
        let slewing = self.slewed_s < self.character.slew_s && matches!(self.task, Task::TakeOff { .. });
        let limit_m_s2 = if slewing { GRAVITY_M_S2 + SLEW_LIFT_M_S2 } else { f64::INFINITY };
        self.slewed_s += dt_s;
        self.vertical.update(altitude_m, climb_m_s, self.airframe.acceleration.z, limit_m_s2, dt_s)
    }

    fn vertical_low(&self, lift: Lift) -> bool {
        match lift {
            Lift::Fixed(lift_m_s2) => lift_m_s2 < 0.3 * GRAVITY_M_S2,
            Lift::Altitude | Lift::Climb { .. } => self.airframe.thrust_m_s2 < LOW_THRUST_M_S2,
        }
    }

    fn detect_landing(&mut self, low_thrust: bool, dt_s: f64) {
        if !self.airframe.on_ground {
            self.landed = false;
        }
        if self.airframe.on_ground && low_thrust {
            self.grounded_s += dt_s;
            self.landed |= self.grounded_s >= self.character.land_detector_s;
        } else {
            self.grounded_s = 0.0;
        }
    }

    /// The controllers' answer to the task: lean, lift, heading.
    fn control(&mut self, dt_s: f64, p: &NavParameters) -> (DVec2, Lift, Yaw) {
        const IDLE: Lift = Lift::Fixed(IDLE_THROTTLE * GRAVITY_M_S2);
        let still = (DVec2::ZERO, IDLE, Yaw::Hold);
        if matches!(self.task, Task::Stopped | Task::Idle | Task::Stabilize(_) | Task::AltHold(_)) {
            self.rest4();
        }
        match self.task {
            Task::Stopped => (DVec2::ZERO, Lift::Fixed(0.0), Yaw::Hold),
            Task::TakeOff { altitude_m } => {
                if !self.spool(dt_s) {
                    still
                } else if self.profile == Profile::Copter462 {
                    self.control4(p, dt_s)
                } else {
                    self.fly_take_off(altitude_m, p, dt_s)
                }
            }
            Task::Stabilize(sticks) => {
                let sticks = sticks.bounded();
                let lift = (sticks.throttle * 2.0).min(1.0 / HOVER_THROTTLE) * GRAVITY_M_S2;
                (sticks.lean(self.yaw_rad, p.angle_max_rad), Lift::Fixed(lift), rate(sticks))
            }
            Task::AltHold(sticks) | Task::Loiter(sticks) | Task::PosHold(sticks) => {
                let sticks = sticks.bounded();
                let climb = sticks.climb_m_s(p.pilot_velocity_z_m_s);
                if self.landed && (climb <= 0.0 || !self.spool(dt_s)) {
                    if climb <= 0.0 {
                        self.spooled_s = 0.0;
                    }
                    self.settle();
                    return still;
                }
                let lift = Lift::Climb { rate_m_s: climb, force: true };
                (self.fly_by_sticks(sticks, p, dt_s), lift, rate(sticks))
            }
            // Guided targets and BRAKE leave a landed aircraft idling.
            _ if self.landed => {
                self.settle();
                still
            }
            Task::Idle => still,
            _ if self.profile == Profile::Copter462 => self.control4(p, dt_s),
            Task::Waypoint { yaw, .. } | Task::Position { yaw, .. } => self.fly_waypoint(yaw, p, dt_s),
            Task::PositionVelocity { velocity, .. } => self.fly_position_velocity(velocity, p, dt_s),
            Task::Velocity { velocity } => self.fly_velocity(velocity, p, dt_s),
            Task::Brake => {
                let lean = self.hold_place(dt_s, p);
                (lean, Lift::Climb { rate_m_s: 0.0, force: false }, Yaw::Hold)
            }
            Task::Land => {
                let lean = self.hold_place(dt_s, p);
                (lean, Lift::Climb { rate_m_s: self.land_rate_m_s(p), force: true }, Yaw::Hold)
            }
        }
    }

    /// Runs the motors up; true once they may lift.
    fn spool(&mut self, dt_s: f64) -> bool {
        if !self.landed || !self.airframe.on_ground {
            return true;
        }
        self.spooled_s += dt_s;
        self.slewed_s = 0.0;
        self.spooled_s >= self.character.spool_s
    }

    /// On the ground nothing winds up and nothing is aimed at.
    fn settle(&mut self) {
        let at = self.estimate();
        self.horizontal.engage(DVec2::ZERO);
        self.horizontal.target = flat(at);
        self.horizontal.desired_velocity = DVec2::ZERO;
        self.track = Track::new(at);
        self.rest4();
        self.streamed_position = at;
    }

    fn lean(&mut self, blend: Blend, p: &NavParameters, dt_s: f64) -> DVec2 {
        let limit = self.lean_limit.m_s2(p.angle_max_rad);
        // The velocity estimate is a little late; fitted to the overshoots of 3.5.7.
        let velocity = self.airframe.velocity - self.airframe.acceleration * ESTIMATE_LAG_S;
        let at = self.airframe.position;
        let lean = self.horizontal.update(blend, flat(at), flat(velocity), limit, dt_s);
        clamp_length(lean, limit)
    }

    fn hold_place(&mut self, dt_s: f64, p: &NavParameters) -> DVec2 {
        self.lean(Blend::LimitedPositionAndVelocity, p, dt_s)
    }

    fn fly_take_off(&mut self, altitude_m: f64, p: &NavParameters, dt_s: f64) -> (DVec2, Lift, Yaw) {
        let at = self.estimate();
        if !self.track_started {
            self.track_started = true;
            let (velocity, leashes) = (self.airframe.velocity, self.leashes());
            let origin = if self.landed {
                self.vertical.relax(at.z, self.character.take_off_thrust * GRAVITY_M_S2);
                at
            } else {
                self.stopping_point()
            };
            let destination = DVec3::new(origin.x, origin.y, altitude_m);
            self.horizontal.target = flat(origin);
            self.track.start(origin, destination, false, velocity, p, leashes);
        }
        let (lean, lift, _) = self.fly_waypoint(Some(self.yaw_hold_rad), p, dt_s);
        (lean, lift, Yaw::Hold)
    }

    fn fly_waypoint(&mut self, yaw: Option<f64>, p: &NavParameters, dt_s: f64) -> (DVec2, Lift, Yaw) {
        self.set_navigation_limits(p);
        let at = self.estimate();
        let leashes = self.leashes();
        let target = self.track.advance(at, self.airframe.velocity, p, leashes, dt_s);
        self.horizontal.target = flat(target);
        self.vertical.follow_target(target.z);
        self.reached |= self.track.reached();
        let heading = self.track.heading(at, leashes.horizontal_m);
        let lean = self.lean(Blend::Position, p, dt_s);
        (lean, Lift::Altitude, self.waypoint_yaw(yaw, heading, p))
    }

    fn waypoint_yaw(&self, yaw: Option<f64>, heading: Option<f64>, p: &NavParameters) -> Yaw {
        let velocity = flat(self.airframe.velocity);
        match (yaw, p.yaw_behavior) {
            (Some(heading), _) => Yaw::Heading(heading),
            (None, 1 | 2) => heading.map_or(Yaw::Hold, Yaw::Heading),
            (None, 3) if length(velocity) > COURSE_SPEED_MIN_M_S => {
                Yaw::Heading(libm::atan2(velocity.x, velocity.y))
            }
            _ => Yaw::Hold,
        }
    }

    fn fly_position_velocity(&mut self, velocity: DVec3, p: &NavParameters, dt_s: f64) -> (DVec2, Lift, Yaw) {
        self.set_navigation_limits(p);
        let velocity = if self.timed_out(p) { DVec3::ZERO } else { velocity };
        self.streamed_position += velocity * dt_s;
        let target = self.streamed_position;
        self.horizontal.target = flat(target);
        self.horizontal.desired_velocity = flat(velocity);
        self.vertical.follow_target(target.z);
        (self.lean(Blend::PositionAndVelocity, p, dt_s), Lift::Altitude, Yaw::Hold)
    }

    fn fly_velocity(&mut self, velocity: DVec3, p: &NavParameters, dt_s: f64) -> (DVec2, Lift, Yaw) {
        let velocity = if self.timed_out(p) { DVec3::ZERO } else { velocity };
        let desired = self.horizontal.desired_velocity;
        let step = clamp_length(flat(velocity) - desired, self.horizontal.acceleration_m_s2() * dt_s);
        if step != DVec2::ZERO {
            self.horizontal.desired_velocity = desired + step;
            self.horizontal.freeze_feedforward = true;
        }
        let lean = self.lean(Blend::LimitedPositionAndVelocity, p, dt_s);
        (lean, Lift::Climb { rate_m_s: velocity.z, force: false }, Yaw::Hold)
    }

    fn timed_out(&self, p: &NavParameters) -> bool {
        self.since_task_s > p.guided_timeout_s
    }

    /// LAND's climb rate: fast above 10 m, LAND_SPEED below, a square root law between.
    /// Climb rate of a landing at this height.
    pub fn land_rate_m_s(&self, p: &NavParameters) -> f64 {
        let fast = if p.land_speed_high_m_s > 0.0 { p.land_speed_high_m_s } else { p.wpnav_speed_down_m_s };
        let slow = libm::fabs(p.land_speed_m_s).max(0.01);
        let above_m = self.airframe.height_m() - LAND_SLOW_BELOW_M;
        let speed = response(above_m.max(0.0), 1.0, bounded(p.wpnav_accel_z_m_s2, 0.1, 50.0)).0;
        -bounded(speed, slow, libm::fabs(fast).max(slow))
    }

    fn fly_by_sticks(&mut self, sticks: Sticks, p: &NavParameters, dt_s: f64) -> DVec2 {
        let by_stick = sticks.lean(self.yaw_rad, p.angle_max_rad);
        match self.task {
            Task::Loiter(_) if self.profile == Profile::Copter462 => self.loiter4(sticks, p, dt_s),
            Task::Loiter(_) => {
                self.set_loiter_limits(p);
                let desired = self.horizontal.desired_velocity;
                self.horizontal.desired_velocity =
                    self.loiter.step(desired, sticks, self.yaw_rad, p, self.character.loiter, dt_s);
                self.hold_place(dt_s, p)
            }
            Task::PosHold(_) if sticks.centred() => {
                let velocity = flat(self.airframe.velocity);
                if !self.poshold_holds && length(velocity) < POSHOLD_HOLD_BELOW_M_S {
                    self.poshold_holds = true;
                    if self.profile == Profile::Copter462 {
                        self.start_loiter4(p);
                    } else {
                        self.start_loiter(p);
                        self.horizontal.desired_velocity = DVec2::ZERO;
                    }
                }
                if self.poshold_holds {
                    return match self.profile {
                        Profile::Copter357 => self.hold_place(dt_s, p),
                        Profile::Copter462 => self.loiter4(sticks, p, dt_s),
                    };
                }
                // Lean against the motion, less as it dies away.
                let limit = GRAVITY_M_S2 * libm::tan(POSHOLD_BRAKE_RAD);
                clamp_length(velocity * -POSHOLD_BRAKE_GAIN_PER_S, limit)
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
            | Task::PosHold(_) => {
                self.poshold_holds = false;
                by_stick
            }
        }
    }

    fn turn(&mut self, yaw: Yaw, dt_s: f64) {
        let wanted = match yaw {
            Yaw::Hold => YAW_P * turn_to(self.yaw_rad, self.yaw_hold_rad),
            Yaw::Heading(heading) => {
                self.yaw_hold_rad = wrap(heading);
                YAW_P * turn_to(self.yaw_rad, self.yaw_hold_rad)
            }
            Yaw::Rate(rate) => {
                self.yaw_hold_rad = self.yaw_rad;
                rate
            }
        };
        let slewed = match yaw {
            Yaw::Rate(_) => wanted,
            Yaw::Hold | Yaw::Heading(_) => bounded(wanted, -YAW_SLEW_RAD_S, YAW_SLEW_RAD_S),
        };
        let still = self.airframe.on_ground && self.airframe.thrust_m_s2 < 0.3 * GRAVITY_M_S2;
        let slewed = if still { 0.0 } else { slewed };
        let step = YAW_ACCELERATION_RAD_S2 * dt_s;
        self.yaw_rate_rad_s = bounded(slewed, self.yaw_rate_rad_s - step, self.yaw_rate_rad_s + step);
        self.yaw_rad = wrap(self.yaw_rad + self.yaw_rate_rad_s * dt_s);
    }

    fn publish(&mut self) {
        self.state = State {
            position: self.airframe.position,
            velocity: self.airframe.velocity,
            acceleration: self.airframe.acceleration,
            lean_m_s2: self.airframe.lean,
            yaw_rad: self.yaw_rad,
            yaw_rate_rad_s: self.yaw_rate_rad_s,
            throttle: bounded(self.airframe.thrust_m_s2 * HOVER_THROTTLE / GRAVITY_M_S2, 0.0, 1.0),
            landed: self.landed,
        };
    }
}

/// The acceleration of the largest lean, kept from one control period to the next: the angle hardly ever changes.
#[derive(Clone, Copy, Debug, Default)]
struct LeanLimit {
    angle_max_rad: f64,
    limit_m_s2: f64,
}

impl LeanLimit {
    fn m_s2(&mut self, angle_max_rad: f64) -> f64 {
        if self.angle_max_rad != angle_max_rad {
            self.angle_max_rad = angle_max_rad;
            self.limit_m_s2 = GRAVITY_M_S2 * libm::tan(bounded(angle_max_rad, 0.0, 1.3));
        }
        self.limit_m_s2
    }
}

fn rate(sticks: Sticks) -> Yaw {
    let rate = sticks.yaw_rate_rad_s();
    if rate == 0.0 { Yaw::Hold } else { Yaw::Rate(rate) }
}

fn flat(v: DVec3) -> DVec2 {
    DVec2::new(v.x, v.y)
}

/// An angle in 0 to 2π.
fn wrap(angle_rad: f64) -> f64 {
    if (0.0..TAU).contains(&angle_rad) {
        return angle_rad;
    }
    let wrapped = angle_rad - TAU * libm::floor(angle_rad / TAU);
    if wrapped < TAU { wrapped } else { 0.0 }
}

/// The shorter turn from one heading to another, -π to π.
fn turn_to(from_rad: f64, to_rad: f64) -> f64 {
    wrap(to_rad - from_rad + PI) - PI
}
