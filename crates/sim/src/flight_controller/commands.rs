//! The command protocol (<https://mavlink.io/en/services/command.html>): COMMAND_LONG and COMMAND_INT,
//! each answered with one COMMAND_ACK. What a version does not know is UNSUPPORTED, what it will not do
//! now is FAILED.

use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{
    AUTOPILOT_VERSION_DATA, COMMAND_INT_DATA, COMMAND_LONG_DATA, MESSAGE_INTERVAL_DATA, MavCmd, MavFrame,
    MavMessage, MavProtocolCapability, MavResult, MavSeverity,
};
use wingbeat_geo::Position;
use wingbeat_geo::position::heading_rad;

use super::arming::ArmBy;
use super::link::Sender;
use super::{FlightController, Parameter};
use crate::motion::{Profile, Task};

/// The number that skips the checks of arming and disarming.
const FORCE: f32 = 21196.0;

const ACCEPTED: MavResult = MavResult::MAV_RESULT_ACCEPTED;
const FAILED: MavResult = MavResult::MAV_RESULT_FAILED;
const UNSUPPORTED: MavResult = MavResult::MAV_RESULT_UNSUPPORTED;
const DENIED: MavResult = MavResult::MAV_RESULT_DENIED;
/// `MAV_DO_REPOSITION_FLAGS_CHANGE_MODE`.
const CHANGE_MODE: u32 = 1;
/// The outputs of the motors: none of them is a servo's.
const MOTORS: core::ops::RangeInclusive<u8> = 1..=4;
/// Outputs, of motors and servos.
const OUTPUTS: core::ops::RangeInclusive<u8> = 1..=16;
/// Sets of sources of the position estimate (`EK3_SRC1_*` to `EK3_SRC3_*`).
const SOURCE_SETS: core::ops::RangeInclusive<u8> = 1..=3;
/// The upper position of a switch with an auxiliary function.
const SWITCH_HIGH: u8 = 2;
/// The auxiliary function that arms and disarms (ArduCopter, `RC_Channel::AUX_FUNC`).
const ARM_BY_SWITCH: u16 = 153;

/// The mode that an auxiliary function sets.
fn mode_of_switch(function: u16) -> Option<Mode> {
    Some(match function {
        4 => Mode::Rtl,
        16 => Mode::Auto,
        18 => Mode::Land,
        33 => Mode::Brake,
        42 => Mode::SmartRtl,
        55 => Mode::Guided,
        56 => Mode::Loiter,
        69 => Mode::PosHold,
        70 => Mode::AltHold,
        _ => return None,
    })
}

/// A command as both messages carry it. The place is in 1e-7 degree.
struct Command {
    id: MavCmd,
    /// It came as COMMAND_INT.
    is_int: bool,
    p: [f32; 4],
    latitude_e7: i32,
    longitude_e7: i32,
    z: f32,
    frame: MavFrame,
}

fn accepted_if(done: bool) -> MavResult {
    if done { ACCEPTED } else { FAILED }
}

/// Degrees as 1e-7 degree; what is no place on the earth becomes none.
fn degrees_e7(degrees: f32) -> i32 {
    let scaled = f64::from(degrees) * 1e7;
    if scaled.abs() <= 1.8e9 { scaled as i32 } else { i32::MAX }
}

impl FlightController {
    pub(super) fn handle_command_long(&mut self, m: &COMMAND_LONG_DATA, from: Sender) {
        let command = Command {
            id: m.command,
            is_int: false,
            p: [m.param1, m.param2, m.param3, m.param4],
            latitude_e7: degrees_e7(m.param5),
            longitude_e7: degrees_e7(m.param6),
            z: m.param7,
            frame: MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT,
        };
        let home_is_absolute = m.command == MavCmd::MAV_CMD_DO_SET_HOME;
        let frame = if home_is_absolute { MavFrame::MAV_FRAME_GLOBAL } else { command.frame };
        self.run_command(&Command { frame, ..command }, from);
    }

    pub(super) fn handle_command_int(&mut self, m: &COMMAND_INT_DATA, from: Sender) {
        let command = Command {
            id: m.command,
            is_int: true,
            p: [m.param1, m.param2, m.param3, m.param4],
            latitude_e7: m.x,
            longitude_e7: m.y,
            z: m.z,
            frame: m.frame,
        };
        self.run_command(&command, from);
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    fn run_command(&mut self, command: &Command, from: Sender) {
        let old = self.profile() == Profile::Copter357;
        let p = command.p;
        let is_exact = old && self.config.is_exact;
        let result = match command.id {
            MavCmd::MAV_CMD_DO_SET_ROI => self.look_at(command),
            // 3.5.7 takes no other as COMMAND_INT (measured).
            _ if is_exact && command.is_int => UNSUPPORTED,
            MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL if is_exact => UNSUPPORTED,
            MavCmd::MAV_CMD_DO_SET_ROI_LOCATION if !old => self.look_at(command),
            MavCmd::MAV_CMD_DO_SET_ROI_NONE if !old => self.look_ahead(),
            MavCmd::MAV_CMD_DO_REPOSITION if !old => self.command_reposition(command),
            MavCmd::MAV_CMD_DO_FENCE_ENABLE => self.command_fence(p[0]),
            MavCmd::MAV_CMD_PREFLIGHT_CALIBRATION => self.command_calibration(command),
            MavCmd::MAV_CMD_DO_SEND_BANNER => {
                self.send_banner();
                ACCEPTED
            }
            MavCmd::MAV_CMD_DO_SET_SERVO | MavCmd::MAV_CMD_DO_REPEAT_SERVO => {
                let output = p[0] as u8;
                accepted_if(OUTPUTS.contains(&output) && !MOTORS.contains(&output))
            }
            // Only the first is connected to something.
            MavCmd::MAV_CMD_DO_SET_RELAY | MavCmd::MAV_CMD_DO_REPEAT_RELAY => accepted_if(p[0] as i32 == 0),
            MavCmd::MAV_CMD_DO_MOTOR_TEST => {
                accepted_if(!self.armed() && self.landed() && MOTORS.contains(&(p[0] as u8)))
            }
            MavCmd::MAV_CMD_DO_AUX_FUNCTION if !old => self.command_switch(p[0] as u16, p[1] as u8),
            MavCmd::MAV_CMD_SET_EKF_SOURCE_SET if !old => {
                if SOURCE_SETS.contains(&(p[0] as u8)) {
                    ACCEPTED
                } else {
                    DENIED
                }
            }
            MavCmd::MAV_CMD_DO_SET_MISSION_CURRENT if !old => {
                accepted_if(p[0] >= 0.0 && self.set_current(p[0] as u16))
            }
            MavCmd::MAV_CMD_COMPONENT_ARM_DISARM => self.command_arm(p[0], p[1]),
            MavCmd::MAV_CMD_NAV_TAKEOFF => accepted_if(self.take_off(f64::from(command.z))),
            MavCmd::MAV_CMD_NAV_LAND => self.command_mode(Mode::Land),
            MavCmd::MAV_CMD_NAV_RETURN_TO_LAUNCH => self.command_mode(Mode::Rtl),
            MavCmd::MAV_CMD_NAV_LOITER_UNLIM => self.command_mode(Mode::Loiter),
            MavCmd::MAV_CMD_DO_SET_MODE => self.command_set_mode(p[1]),
            MavCmd::MAV_CMD_DO_CHANGE_SPEED => accepted_if(self.change_speed(p[0], f64::from(p[1]))),
            MavCmd::MAV_CMD_DO_SET_HOME => self.command_set_home(command),
            MavCmd::MAV_CMD_GET_HOME_POSITION => accepted_if(self.send_home()),
            MavCmd::MAV_CMD_MISSION_START => accepted_if(self.start_mission()),
            MavCmd::MAV_CMD_DO_PAUSE_CONTINUE if !old => self.command_pause(p[0]),
            MavCmd::MAV_CMD_CONDITION_YAW => {
                self.turn_to(p[0], p[3]);
                ACCEPTED
            }
            MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL => self.command_interval(p[0], p[1]),
            MavCmd::MAV_CMD_GET_MESSAGE_INTERVAL if !old => self.command_get_interval(p[0]),
            MavCmd::MAV_CMD_REQUEST_MESSAGE if !old => self.command_request_message(p[0]),
            MavCmd::MAV_CMD_REQUEST_AUTOPILOT_CAPABILITIES => {
                if p[0] == 1.0 {
                    self.send_version();
                }
                accepted_if(p[0] == 1.0)
            }
            MavCmd::MAV_CMD_RUN_PREARM_CHECKS if !old => {
                if self.armed() {
                    MavResult::MAV_RESULT_TEMPORARILY_REJECTED
                } else {
                    ACCEPTED
                }
            }
            MavCmd::MAV_CMD_PREFLIGHT_REBOOT_SHUTDOWN => return self.command_reboot(p[0], from),
            _ => UNSUPPORTED,
        };
        self.acknowledge(command.id, result, from);
    }

    fn command_arm(&mut self, arm: f32, force: f32) -> MavResult {
        let forced = force == FORCE;
        if arm == 1.0 {
            let by = if forced { ArmBy::Force } else { ArmBy::Command };
            accepted_if(self.arm(by))
        } else if arm == 0.0 && (self.landed() || forced || !self.armed()) {
            self.disarm();
            ACCEPTED
        } else if self.profile() == Profile::Copter357 {
            // In the air, without force: 3.5.7 answers UNSUPPORTED, 4.x FAILED.
            UNSUPPORTED
        } else {
            FAILED
        }
    }

    /// A region of interest: the nose turns towards it where the aircraft is when the command comes, and does not follow it.
    fn look_at(&mut self, command: &Command) -> MavResult {
        let nowhere = command.latitude_e7 == 0 && command.longitude_e7 == 0;
        if nowhere {
            return self.look_ahead();
        }
        let up_m = f64::from(command.z);
        let Some(place) = self.place(command.latitude_e7, command.longitude_e7, up_m, command.frame) else {
            return FAILED;
        };
        let here = self.vehicle.state().position;
        let bearing_rad = heading_rad(here.truncate(), place.truncate());
        self.turn_to(bearing_rad.to_degrees() as f32, 0.0);
        ACCEPTED
    }

    fn look_ahead(&mut self) -> MavResult {
        self.guided.look_ahead();
        ACCEPTED
    }

    /// As 4.x: to a place in GUIDED, from another mode only if that may be left.
    fn command_reposition(&mut self, command: &Command) -> MavResult {
        // A place in degrees has too few digits for it.
        if !command.is_int {
            return MavResult::MAV_RESULT_COMMAND_INT_ONLY;
        }
        let changes_mode = command.p[1] >= 0.0 && command.p[1] as u32 & CHANGE_MODE != 0;
        if self.mode != Mode::Guided && !changes_mode {
            return DENIED;
        }
        let nowhere = command.latitude_e7 == 0 && command.longitude_e7 == 0;
        let place =
            self.place(command.latitude_e7, command.longitude_e7, f64::from(command.z), command.frame);
        let Some(place) = place.filter(|_| !nowhere) else { return DENIED };
        if !self.fence_allows(place) || self.mode != Mode::Guided && !self.set_mode(Mode::Guided) {
            return FAILED;
        }
        accepted_if(self.go_to(place))
    }

    /// 0 switches the fence off, 1 on.
    fn command_fence(&mut self, on: f32) -> MavResult {
        if on != 0.0 && on != 1.0 {
            return FAILED;
        }
        self.parameters.set(Parameter::FENCE_ENABLE, on);
        ACCEPTED
    }

    /// Nothing here needs calibration; on the ground it is done at once.
    fn command_calibration(&mut self, command: &Command) -> MavResult {
        let asked = command.p.iter().any(|p| *p != 0.0) || command.latitude_e7 != 0;
        match (self.armed(), asked, self.profile()) {
            (false, true, _) => ACCEPTED,
            (false, false, Profile::Copter462) => UNSUPPORTED,
            (true, ..) | (false, false, Profile::Copter357) => FAILED,
        }
    }

    /// What the switch of an auxiliary function would do in this position.
    fn command_switch(&mut self, function: u16, position: u8) -> MavResult {
        if position > SWITCH_HIGH {
            return DENIED;
        }
        match (function, mode_of_switch(function)) {
            (ARM_BY_SWITCH, _) if position == SWITCH_HIGH => self.command_arm(1.0, 0.0),
            (ARM_BY_SWITCH, _) => self.command_arm(0.0, 0.0),
            (_, Some(mode)) if position == SWITCH_HIGH => accepted_if(self.set_mode(mode)),
            (_, Some(_)) => ACCEPTED,
            (_, None) => FAILED,
        }
    }

    /// Straight up, from the ground only, armed only, above home only.
    fn take_off(&mut self, altitude_m: f64) -> bool {
        let allowed = self.armed()
            && self.landed()
            && matches!(self.mode, Mode::Guided)
            && altitude_m.is_finite()
            && altitude_m < 10_000.0
            && self.position_ok();
        // NaN fails the comparison as well.
        let target_m = self.home_or_origin().z + altitude_m;
        if !allowed || target_m <= self.vehicle.state().position.z {
            return false;
        }
        self.arming.may_take_off = true;
        self.guided.reset();
        self.vehicle.set_task(Task::TakeOff { altitude_m: target_m }, &self.nav);
        true
    }

    /// The speed of flight along a track. 3.5.7 writes it into `WPNAV_SPEED` (measured: the parameter
    /// reads back changed), ignoring the type; 4.x keeps type 2 and 3 for climb and descent.
    #[allow(clippy::wildcard_enum_match_arm, reason = "most parameters have no effect here")]
    pub(super) fn change_speed(&mut self, kind: f32, speed_m_s: f64) -> bool {
        if !(speed_m_s > 0.0 && speed_m_s < 100.0) {
            return false;
        }
        let parameter = match (self.profile(), kind as i32) {
            (Profile::Copter462, 2) => Parameter::WPNAV_SPEED_UP,
            (Profile::Copter462, 3) => Parameter::WPNAV_SPEED_DN,
            _ => Parameter::WPNAV_SPEED,
        };
        // Slower than ArduCopter's minimum of 20 cm/s changes nothing.
        if speed_m_s < 0.2 {
            return true;
        }
        match self.profile() {
            Profile::Copter357 => {
                self.parameters.set(parameter, (speed_m_s * 100.0) as f32);
                self.nav = self.parameters.nav(self.config.profile);
            }
            Profile::Copter462 => match parameter {
                Parameter::WPNAV_SPEED_UP => self.nav.wpnav_speed_up_m_s = speed_m_s,
                Parameter::WPNAV_SPEED_DN => self.nav.wpnav_speed_down_m_s = speed_m_s,
                _ => self.nav.wpnav_speed_m_s = speed_m_s,
            },
        }
        true
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    fn command_set_home(&mut self, command: &Command) -> MavResult {
        if !self.estimate.has_origin(self.now) {
            return FAILED;
        }
        if command.p[0] == 1.0 {
            self.set_home(self.vehicle.state().position);
            return ACCEPTED;
        }
        let altitude_m = match command.frame {
            MavFrame::MAV_FRAME_GLOBAL | MavFrame::MAV_FRAME_GLOBAL_INT => f64::from(command.z),
            _ => {
                let home = self.frame.to_position(self.home_or_origin());
                home.altitude_m() + f64::from(command.z)
            }
        };
        let (latitude, longitude) =
            (f64::from(command.latitude_e7) * 1e-7, f64::from(command.longitude_e7) * 1e-7);
        let nowhere = command.latitude_e7 == 0 && command.longitude_e7 == 0;
        match Position::from_degrees(latitude, longitude, altitude_m) {
            Ok(position) if !nowhere => {
                let local = self.frame.to_local(position);
                // ArduCopter does not take a home that is far from where it started.
                if local.length() > 50_000.0 {
                    return FAILED;
                }
                self.set_home(local);
                ACCEPTED
            }
            _ => FAILED,
        }
    }

    fn command_pause(&mut self, go_on: f32) -> MavResult {
        if self.mode == Mode::Auto && go_on == 0.0 {
            self.pause_mission();
            ACCEPTED
        } else if self.mode == Mode::Auto && go_on == 1.0 {
            self.resume_mission();
            ACCEPTED
        } else if self.mode == Mode::Guided && go_on == 0.0 {
            self.guided.reset();
            self.stop_here();
            ACCEPTED
        } else {
            FAILED
        }
    }

    fn command_interval(&mut self, id: f32, interval_us: f32) -> MavResult {
        accepted_if(self.set_message_interval(id as u32, interval_us))
    }

    fn command_get_interval(&mut self, id: f32) -> MavResult {
        let Some(interval_us) = self.message_interval_us(id as u32) else { return FAILED };
        self.send(&MavMessage::MESSAGE_INTERVAL(MESSAGE_INTERVAL_DATA {
            interval_us,
            message_id: id as u16,
        }));
        ACCEPTED
    }

    fn command_request_message(&mut self, id: f32) -> MavResult {
        match id as u32 {
            148 => self.send_version(),
            242 => return accepted_if(self.send_home()),
            other => return accepted_if(self.send_message_by_id(other)),
        }
        ACCEPTED
    }

    fn command_reboot(&mut self, kind: f32, from: Sender) {
        let id = MavCmd::MAV_CMD_PREFLIGHT_REBOOT_SHUTDOWN;
        if kind != 1.0 && kind != 3.0 {
            return self.acknowledge(id, if kind == 0.0 { DENIED } else { UNSUPPORTED }, from);
        }
        if self.armed() {
            return self.acknowledge(id, FAILED, from);
        }
        self.send_text(MavSeverity::MAV_SEVERITY_INFO, format_args!("Initialising APM"));
        self.acknowledge(id, ACCEPTED, from);
        self.boot(self.now);
    }

    /// The banner of 3.5.7 and 4.6.2, sent when the parameters are requested.
    pub(super) fn send_banner(&mut self) {
        let info = MavSeverity::MAV_SEVERITY_INFO;
        match self.profile() {
            Profile::Copter357 => self.send_text(info, format_args!("APM:Copter V3.5.7 (b11c6af3)")),
            Profile::Copter462 => self.send_text(info, format_args!("ArduCopter V4.6.2 (wingbeat)")),
        }
        self.send_text(info, format_args!("Frame: QUAD"));
    }

    pub(super) fn send_version(&mut self) {
        let (capabilities, version) = match self.profile() {
            Profile::Copter357 => (0x1bcf, 0x0305_07ff),
            Profile::Copter462 => (0xfbef, 0x0406_02ff),
        };
        self.send(&MavMessage::AUTOPILOT_VERSION(AUTOPILOT_VERSION_DATA {
            capabilities: MavProtocolCapability::from_bits_truncate(capabilities),
            flight_sw_version: version,
            uid: u64::from(self.link.system_id),
            ..AUTOPILOT_VERSION_DATA::DEFAULT
        }));
    }
}
