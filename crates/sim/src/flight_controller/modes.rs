//! Flight modes: which may be entered, what entering one starts, and what each asks of the vehicle in
//! every tick.

use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{MavModeFlag, MavResult, MavSeverity, MavState, SET_MODE_DATA};
use wingbeat_geo::DVec3;

use super::{FlightController, Parameter};
use crate::motion::{Profile, Sticks, Task};

impl FlightController {
    pub(super) fn needs_position(&self, mode: Mode) -> bool {
        match mode {
            Mode::Stabilize | Mode::AltHold | Mode::Land => false,
            Mode::Auto
            | Mode::Guided
            | Mode::Loiter
            | Mode::Rtl
            | Mode::PosHold
            | Mode::Brake
            | Mode::SmartRtl => true,
        }
    }

    /// `SET_MODE`: 3.5.7 acknowledges it as command 11, 4.x not at all.
    pub(super) fn handle_set_mode(&mut self, m: &SET_MODE_DATA) {
        let custom = m.base_mode.contains(MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED);
        let taken = custom && self.set_mode_number(m.custom_mode);
        if self.profile() == Profile::Copter357 {
            let result = if taken { MavResult::MAV_RESULT_ACCEPTED } else { MavResult::MAV_RESULT_FAILED };
            self.acknowledge_set_mode(result);
        }
    }

    /// Enters the mode of a number, if there is one.
    pub(super) fn set_mode_number(&mut self, number: u32) -> bool {
        match Mode::from_number(number) {
            Some(mode) => self.set_mode(mode),
            None => {
                self.refuse_mode(number, "unknown mode");
                false
            }
        }
    }

    fn refuse_mode(&mut self, number: u32, why: &str) {
        let warning = MavSeverity::MAV_SEVERITY_WARNING;
        match (self.profile(), Mode::from_number(number)) {
            (Profile::Copter357, _) => self.send_text(warning, format_args!("Flight mode change failed")),
            (Profile::Copter462, Some(mode)) => {
                self.send_text(warning, format_args!("Mode change to {} failed: {why}", mode.name()));
            }
            (Profile::Copter462, None) => self.send_text(warning, format_args!("No such mode {number}")),
        }
    }

    /// Why a mode may not be entered.
    fn mode_obstacle(&self, mode: Mode) -> Option<&'static str> {
        // 3.5.7 came before SMART_RTL.
        if mode == Mode::SmartRtl && self.profile() == Profile::Copter357 {
            return Some("unknown mode");
        }
        // Disarmed, any mode may be chosen; arming checks it again.
        if !self.armed() {
            return None;
        }
        if self.needs_position(mode) && !self.position_ok() {
            return Some("requires position");
        }
        match mode {
            Mode::Auto if self.mission.is_empty() => Some("init failed"),
            Mode::Auto if self.landed() && !self.mission.starts_with_take_off() => {
                Some("Missing Takeoff Cmd")
            }
            Mode::SmartRtl if !self.returning.has_path() => Some("init failed"),
            // A raised throttle would jump off the ground.
            Mode::Stabilize
                if self.landed() && self.mode != Mode::Stabilize && self.throttle_stick() > 0.25 =>
            {
                Some("throttle too high")
            }
            Mode::Stabilize
            | Mode::AltHold
            | Mode::Auto
            | Mode::Guided
            | Mode::Loiter
            | Mode::Rtl
            | Mode::Land
            | Mode::PosHold
            | Mode::Brake
            | Mode::SmartRtl => None,
        }
    }

    /// Enters a mode; false, with a text, if that is refused.
    pub(super) fn set_mode(&mut self, mode: Mode) -> bool {
        if mode == self.mode {
            return true;
        }
        if let Some(why) = self.mode_obstacle(mode) {
            if why == "Missing Takeoff Cmd" {
                self.send_text(MavSeverity::MAV_SEVERITY_CRITICAL, format_args!("Auto: Missing Takeoff Cmd"));
            }
            self.refuse_mode(mode.number(), why);
            return false;
        }
        self.enter(mode);
        true
    }

    pub(super) fn enter(&mut self, mode: Mode) {
        // A speed that a command set does not outlive the mode that it was set in (4.x).
        self.nav = self.parameters.nav(self.config.profile);
        self.mode = mode;
        self.failsafes.on_mode_entered();
        self.guided.reset();
        self.returning.stop();
        match mode {
            Mode::Auto => self.resume_mission(),
            Mode::Guided => self.stop_here(),
            Mode::Rtl => self.start_return(),
            Mode::SmartRtl => self.start_smart_return(),
            Mode::Stabilize | Mode::AltHold | Mode::Loiter | Mode::PosHold | Mode::Land | Mode::Brake => {}
        }
        // 4.x reports the new mode immediately, 3.5.7 with the next heartbeat.
        if self.profile() == Profile::Copter462 {
            self.send_heartbeat();
        }
    }

    /// Goes to the stopping point and stays there. Does nothing on the ground.
    pub(super) fn hold_stopping_point(&mut self) {
        if self.armed() && !self.landed() {
            let destination = self.vehicle.stopping_point();
            self.ensure(Task::Waypoint { destination, fast: false, next: None, yaw: None });
        }
    }

    /// Stops as GUIDED does on entry and a mission does when it is paused: 3.5.7 goes to its stopping
    /// point, 4.x slows down with bounded jerk. Does nothing on the ground.
    pub(super) fn stop_here(&mut self) {
        match self.profile() {
            Profile::Copter357 => self.hold_stopping_point(),
            Profile::Copter462 if self.armed() && !self.landed() => {
                self.ensure(Task::Velocity { velocity: DVec3::ZERO });
            }
            Profile::Copter462 => {}
        }
    }

    /// Whether the pilot's throttle asks for a climb in the modes that hold altitude.
    pub(super) fn pilot_climbs(&self) -> bool {
        let dead_zone = self.parameters.get(Parameter::THR_DZ) / 1000.0;
        self.throttle_stick() > 0.5 + dead_zone
    }

    /// Whether a take-off is under way and has not left the ground yet.
    pub(super) fn taking_off(&self) -> bool {
        matches!(self.vehicle.task(), Task::TakeOff { .. })
    }

    /// Whether an autonomous mode may move the aircraft now.
    pub(super) fn may_fly(&self) -> bool {
        self.arming.may_take_off && (!self.landed() || self.taking_off())
    }

    /// What the mode asks of the vehicle in this tick.
    pub(super) fn run_mode(&mut self) {
        if self.motor_failed && self.mode == Mode::Land && self.landed() {
            // LAND disarms what stands on the ground, whatever stopped its motors.
            self.disarm();
        }
        if !self.armed() || self.motor_failed {
            return self.ensure(Task::Stopped);
        }
        if self.is_stuck && !self.landed() {
            return self.ensure(Task::Brake);
        }
        match self.mode {
            Mode::Stabilize => self.ensure(Task::Stabilize(self.sticks())),
            Mode::AltHold => self.ensure(Task::AltHold(self.sticks())),
            Mode::Loiter => self.ensure(Task::Loiter(self.sticks())),
            Mode::PosHold => self.ensure(Task::PosHold(self.sticks())),
            Mode::Guided => self.run_guided(),
            Mode::Auto => self.run_mission(),
            Mode::Rtl | Mode::SmartRtl => self.run_return(),
            Mode::Land => self.run_landing(),
            Mode::Brake if self.landed() => self.ensure(Task::Idle),
            Mode::Brake => self.ensure(Task::Brake),
        }
    }

    /// Comes down here; disarms on the ground. True once that has happened.
    pub(super) fn run_landing(&mut self) {
        if self.landed() {
            self.disarm();
            self.ensure(Task::Stopped);
        } else if self.position_ok() {
            self.ensure(Task::Land);
        } else {
            // Level, as ArduCopter's LAND without a position: nothing brakes it, and wind carries it away.
            let full_m_s = self.nav.pilot_velocity_z_m_s.max(0.1);
            let share = (-self.vehicle.land_rate_m_s(&self.nav) / full_m_s).min(1.0);
            self.ensure(Task::AltHold(Sticks::descending(share)));
        }
    }

    /// `HEARTBEAT.base_mode`: 81 and 89 disarmed, 209 and 217 armed, as 3.5.7 shows them.
    pub(super) fn base_mode(&self) -> MavModeFlag {
        let mut flags = MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED
            | MavModeFlag::MAV_MODE_FLAG_STABILIZE_ENABLED
            | MavModeFlag::MAV_MODE_FLAG_MANUAL_INPUT_ENABLED;
        if self.needs_position(self.mode) {
            flags |= MavModeFlag::MAV_MODE_FLAG_GUIDED_ENABLED;
        }
        if self.armed() {
            flags |= MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED;
        }
        flags
    }

    pub(super) fn system_status(&self) -> MavState {
        if self.failsafes.any() {
            MavState::MAV_STATE_CRITICAL
        } else if self.armed() && !self.landed() {
            MavState::MAV_STATE_ACTIVE
        } else {
            MavState::MAV_STATE_STANDBY
        }
    }

    /// `MAV_CMD_DO_SET_MODE`, which 3.5.7 does not know.
    pub(super) fn command_set_mode(&mut self, number: f32) -> MavResult {
        if self.profile() == Profile::Copter357 {
            return MavResult::MAV_RESULT_UNSUPPORTED;
        }
        if (0.0..256.0).contains(&number) && self.set_mode_number(number as u32) {
            MavResult::MAV_RESULT_ACCEPTED
        } else {
            MavResult::MAV_RESULT_FAILED
        }
    }

    /// The command that only changes the mode: return or land.
    pub(super) fn command_mode(&mut self, mode: Mode) -> MavResult {
        if self.set_mode(mode) { MavResult::MAV_RESULT_ACCEPTED } else { MavResult::MAV_RESULT_FAILED }
    }
}
