//! Telemetry: which message when. Rates come from `SRn_*` in groups, from REQUEST_DATA_STREAM, or
//! message by message from `MAV_CMD_SET_MESSAGE_INTERVAL`.
//!
//! A tick in which nothing is due costs one comparison.

use core::f64::consts::SQRT_2;

use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{
    AHRS_DATA, AHRS2_DATA, ATTITUDE_DATA, ATTITUDE_QUATERNION_DATA, BATTERY_STATUS_DATA,
    EKF_STATUS_REPORT_DATA, EXTENDED_SYS_STATE_DATA, GLOBAL_POSITION_INT_DATA, GPS_GLOBAL_ORIGIN_DATA,
    GPS_RAW_INT_DATA, GpsFixType, HEARTBEAT_DATA, HIGHRES_IMU_DATA, HighresImuUpdatedFlags,
    LOCAL_POSITION_NED_DATA, MEMINFO_DATA, MavAutopilot, MavBatteryChargeState, MavBatteryFault,
    MavBatteryFunction, MavBatteryMode, MavBatteryType, MavFrame, MavLandedState, MavMessage, MavPowerStatus,
    MavSysStatusSensor, MavSysStatusSensorExtended, MavType, MavVtolState, NAV_CONTROLLER_OUTPUT_DATA,
    POSITION_TARGET_GLOBAL_INT_DATA, POSITION_TARGET_LOCAL_NED_DATA, POWER_STATUS_DATA,
    PositionTargetTypemask, RAW_IMU_DATA, RC_CHANNELS_DATA, REQUEST_DATA_STREAM_DATA, SCALED_IMU2_DATA,
    SCALED_PRESSURE_DATA, SERVO_OUTPUT_RAW_DATA, SIMSTATE_DATA, SYS_STATUS_DATA, SYSTEM_TIME_DATA,
    VFR_HUD_DATA, VIBRATION_DATA, WIND_DATA,
};
use wingbeat_geo::{DVec2, DVec3, position::heading_rad};

use super::parameters::Parameters;
use super::{FlightController, Parameter};
use crate::motion::Profile;

/// Horizontal dilution of precision that SITL reports, in hundredths.
const SITL_DILUTION: u16 = 121;
/// Noise of a receiver with corrections on each axis, in metres: the least that one reports.
const RTK_M: f64 = 0.014;
/// Noise on each axis at a dilution of precision of 1, in metres.
const RANGE_ERROR_M: f64 = 0.41;

/// Ticks in a second.
const TICKS_PER_S: f64 = 50.0;
const HEARTBEAT_TICKS: u64 = 50;
/// Never.
const OFF: u64 = u64::MAX;
const GRAVITY_MILLI_G: f64 = 1000.0;
const GRAVITY_M_S2: f64 = 9.80665;
/// The earth's field as it is simulated, level and down.
const FIELD_MILLIGAUSS: f64 = 250.0;
const FIELD_DOWN_MILLIGAUSS: i16 = 343;
/// The receiver's bit in SYS_STATUS.
const RC_RECEIVER: u32 = 0x1_0000;

/// A group of messages with one rate: a `SRn_*` parameter, a stream of REQUEST_DATA_STREAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Group {
    RawSensors = 0,
    ExtendedStatus = 1,
    RcChannels = 2,
    RawController = 3,
    Position = 4,
    Extra1 = 5,
    Extra2 = 6,
    Extra3 = 7,
}

impl Group {
    /// Every group, in the order of the parameters.
    pub const ALL: [Self; 8] = [
        Self::RawSensors,
        Self::ExtendedStatus,
        Self::RcChannels,
        Self::RawController,
        Self::Position,
        Self::Extra1,
        Self::Extra2,
        Self::Extra3,
    ];
    /// The group of a stream number (`MAV_DATA_STREAM`).
    fn of_stream(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::RawSensors,
            2 => Self::ExtendedStatus,
            3 => Self::RcChannels,
            4 => Self::RawController,
            6 => Self::Position,
            10 => Self::Extra1,
            11 => Self::Extra2,
            12 => Self::Extra3,
            _ => return None,
        })
    }
}

/// A message that is sent at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Stream {
    RawImu,
    ScaledPressure,
    SysStatus,
    PowerStatus,
    MemInfo,
    MissionCurrent,
    GpsRawInt,
    NavControllerOutput,
    PositionTargetGlobalInt,
    FenceStatus,
    ServoOutputRaw,
    RcChannels,
    GlobalPositionInt,
    LocalPositionNed,
    Attitude,
    VfrHud,
    Ahrs,
    SystemTime,
    BatteryStatus,
    EkfStatusReport,
    Vibration,
    // In no group: by SET_MESSAGE_INTERVAL only.
    HomePosition,
    ExtendedSysState,
    // In flight, and not from 3.5.7.
    Wind,
    ScaledImu2,
    Ahrs2,
    SimState,
    // In no group: by request, or SET_MESSAGE_INTERVAL.
    GpsGlobalOrigin,
    AttitudeQuaternion,
    HighresImu,
    PositionTargetLocalNed,
}

/// Message number and group of every stream. The groups are those that 3.5.7 was seen to send.
const STREAMS: [(Stream, u32, Option<Group>); 31] = [
    (Stream::RawImu, 27, Some(Group::RawSensors)),
    (Stream::ScaledPressure, 29, Some(Group::RawSensors)),
    (Stream::SysStatus, 1, Some(Group::ExtendedStatus)),
    (Stream::PowerStatus, 125, Some(Group::ExtendedStatus)),
    (Stream::MemInfo, 152, Some(Group::ExtendedStatus)),
    (Stream::MissionCurrent, 42, Some(Group::ExtendedStatus)),
    (Stream::GpsRawInt, 24, Some(Group::ExtendedStatus)),
    (Stream::NavControllerOutput, 62, Some(Group::ExtendedStatus)),
    (Stream::PositionTargetGlobalInt, 87, Some(Group::ExtendedStatus)),
    (Stream::FenceStatus, 162, Some(Group::ExtendedStatus)),
    (Stream::ServoOutputRaw, 36, Some(Group::RcChannels)),
    (Stream::RcChannels, 65, Some(Group::RcChannels)),
    (Stream::GlobalPositionInt, 33, Some(Group::Position)),
    (Stream::LocalPositionNed, 32, Some(Group::Position)),
    (Stream::Attitude, 30, Some(Group::Extra1)),
    (Stream::VfrHud, 74, Some(Group::Extra2)),
    (Stream::Ahrs, 163, Some(Group::Extra3)),
    (Stream::SystemTime, 2, Some(Group::Extra3)),
    (Stream::BatteryStatus, 147, Some(Group::Extra3)),
    (Stream::EkfStatusReport, 193, Some(Group::Extra3)),
    (Stream::Vibration, 241, Some(Group::Extra3)),
    (Stream::HomePosition, 242, None),
    (Stream::ExtendedSysState, 245, None),
    (Stream::Wind, 168, Some(Group::Extra3)),
    (Stream::ScaledImu2, 116, Some(Group::RawSensors)),
    (Stream::Ahrs2, 178, Some(Group::Extra1)),
    (Stream::SimState, 164, Some(Group::Extra1)),
    (Stream::GpsGlobalOrigin, 49, None),
    (Stream::AttitudeQuaternion, 31, None),
    (Stream::HighresImu, 105, None),
    (Stream::PositionTargetLocalNed, 85, None),
];

#[derive(Clone, Copy, Debug)]
struct Schedule {
    /// Ticks between two messages; 0 for none.
    every: u64,
    next: u64,
}

/// When each message is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    schedule: [Schedule; STREAMS.len()],
    heartbeat_next: u64,
    /// The earliest of all.
    next: u64,
}

impl Default for Streams {
    fn default() -> Self {
        Self { schedule: [Schedule { every: 0, next: OFF }; STREAMS.len()], heartbeat_next: 0, next: 0 }
    }
}

impl Streams {
    fn set(&mut self, index: usize, every: u64, tick: u64) {
        // Messages of one rate do not all leave in the same tick.
        let next = if every == 0 { OFF } else { tick + 1 + index as u64 % every };
        self.schedule[index] = Schedule { every, next };
        self.next = 0;
    }
}

/// The standard atmosphere near the ground.
fn pressure_hpa(altitude_m: f64) -> f64 {
    1013.25 * libm::pow(1.0 - 2.255_77e-5 * altitude_m, 5.255_88)
}

/// Ticks between messages at a rate; the fastest is one a tick.
fn ticks_of_rate(rate_hz: f64) -> u64 {
    if rate_hz > 0.0 { libm::round(TICKS_PER_S / rate_hz).clamp(1.0, 1e9) as u64 } else { 0 }
}

impl FlightController {
    pub(super) fn set_stream_rate(&mut self, group: Group, rate_hz: f64) {
        let every = ticks_of_rate(rate_hz);
        for (index, stream) in STREAMS.iter().enumerate() {
            if stream.2 == Some(group) {
                self.streams.set(index, every, self.ticks);
            }
        }
    }

    /// REQUEST_DATA_STREAM: sets the rate of a group, or of all, and the parameter that holds it.
    pub(super) fn handle_request_data_stream(&mut self, m: &REQUEST_DATA_STREAM_DATA) {
        let rate_hz = if m.start_stop == 0 { 0.0 } else { f64::from(m.req_message_rate) };
        let number = m.req_stream_id as u8;
        for group in Group::ALL {
            if number == 0 || Group::of_stream(number) == Some(group) {
                let parameter = Parameters::stream_rate(self.config.serial, group);
                self.parameters.set(parameter, rate_hz as f32);
                self.set_stream_rate(group, rate_hz);
            }
        }
    }

    /// SET_MESSAGE_INTERVAL: microseconds, 0 the default of the message's group, −1 none. False for a
    /// message that is not simulated.
    pub(super) fn set_message_interval(&mut self, id: u32, interval_us: f32) -> bool {
        let Some(index) = STREAMS.iter().position(|s| s.1 == id) else { return false };
        let every = if interval_us == 0.0 {
            let rate = STREAMS[index].2.map(|g| Parameters::stream_rate(self.config.serial, g));
            ticks_of_rate(rate.map_or(0.0, |p| self.parameters.get(p)))
        } else if interval_us > 0.0 {
            ticks_of_rate(1e6 / f64::from(interval_us))
        } else {
            0
        };
        self.streams.set(index, every, self.ticks);
        true
    }

    /// The interval of a message, −1 if it is not sent; `None` if it is not simulated.
    pub(super) fn message_interval_us(&self, id: u32) -> Option<i32> {
        let index = STREAMS.iter().position(|s| s.1 == id)?;
        let every = self.streams.schedule[index].every;
        Some(if every == 0 { -1 } else { (every * 20_000) as i32 })
    }

    /// Sends one message now; false if it is not simulated.
    pub(super) fn send_message_by_id(&mut self, id: u32) -> bool {
        if id == 0 {
            self.send_heartbeat();
            return true;
        }
        let Some(stream) = STREAMS.iter().find(|s| s.1 == id) else { return false };
        self.send_stream(stream.0);
        true
    }

    /// Sends what is due.
    pub(super) fn send_telemetry(&mut self) {
        if self.ticks < self.streams.next || !self.is_sending() {
            return;
        }
        if self.ticks >= self.streams.heartbeat_next {
            self.send_heartbeat();
        }
        let mut next = self.streams.heartbeat_next;
        for (index, stream) in STREAMS.iter().enumerate() {
            let due = self.streams.schedule[index];
            if due.next <= self.ticks {
                self.streams.schedule[index].next = self.ticks + due.every;
                self.send_stream(stream.0);
            }
            next = next.min(self.streams.schedule[index].next);
        }
        self.streams.next = next;
    }

    pub(super) fn send_heartbeat(&mut self) {
        self.streams.heartbeat_next = self.ticks + HEARTBEAT_TICKS;
        self.send(&MavMessage::HEARTBEAT(HEARTBEAT_DATA {
            custom_mode: self.mode.number(),
            mavtype: MavType::MAV_TYPE_QUADROTOR,
            autopilot: MavAutopilot::MAV_AUTOPILOT_ARDUPILOTMEGA,
            base_mode: self.base_mode(),
            system_status: self.system_status(),
            mavlink_version: 3,
        }));
    }

    fn boot_ms(&self) -> u32 {
        self.uptime().as_millis() as u32
    }
    fn boot_us(&self) -> u64 {
        self.uptime().as_micros() as u64
    }
    fn utc_us(&self) -> u64 {
        self.config.utc_at_boot_us.saturating_add(self.boot_us())
    }

    fn send_stream(&mut self, stream: Stream) {
        let message = match stream {
            Stream::MissionCurrent => return self.send_mission_current(),
            Stream::FenceStatus => return self.send_fence_status(),
            Stream::HomePosition => {
                self.send_home();
                return;
            }
            Stream::LocalPositionNed if !self.position_ok() => return,
            Stream::PositionTargetGlobalInt => match self.position_target() {
                Some(message) => message,
                None => return,
            },
            Stream::Wind => match self.wind() {
                Some(message) => message,
                None => return,
            },
            Stream::GpsGlobalOrigin if !self.estimate.has_origin(self.now) => return,
            Stream::PositionTargetLocalNed => match self.position_target_local() {
                Some(message) => message,
                None => return,
            },
            Stream::GpsGlobalOrigin => MavMessage::GPS_GLOBAL_ORIGIN(GPS_GLOBAL_ORIGIN_DATA {
                latitude: self.config.home.latitude_e7,
                longitude: self.config.home.longitude_e7,
                altitude: self.config.home.altitude_mm,
                time_usec: self.boot_us(),
            }),
            Stream::AttitudeQuaternion => self.attitude_quaternion(),
            Stream::Ahrs2 => self.ahrs2(),
            Stream::SimState => self.sim_state(),
            Stream::HighresImu => self.highres_imu(),
            Stream::ScaledImu2 => self.scaled_imu2(),
            Stream::RawImu => self.raw_imu(),
            Stream::ScaledPressure => self.scaled_pressure(),
            Stream::SysStatus => self.sys_status(),
            Stream::PowerStatus => MavMessage::POWER_STATUS(POWER_STATUS_DATA {
                Vcc: 5000,
                Vservo: 0,
                flags: MavPowerStatus::empty(),
            }),
            Stream::MemInfo => {
                MavMessage::MEMINFO(MEMINFO_DATA { brkval: 0, freemem: 65_535, freemem32: 131_072 })
            }
            Stream::GpsRawInt => self.gps_raw_int(),
            Stream::NavControllerOutput => self.nav_controller_output(),
            Stream::ServoOutputRaw => self.servo_output_raw(),
            Stream::RcChannels => self.rc_channels(),
            Stream::GlobalPositionInt => self.global_position_int(),
            Stream::LocalPositionNed => self.local_position_ned(),
            Stream::Attitude => self.attitude(),
            Stream::VfrHud => self.vfr_hud(),
            Stream::Ahrs => {
                MavMessage::AHRS(AHRS_DATA { error_rp: 0.003, error_yaw: 0.001, ..AHRS_DATA::DEFAULT })
            }
            Stream::SystemTime => MavMessage::SYSTEM_TIME(SYSTEM_TIME_DATA {
                // Without a fix the time is unknown.
                time_unix_usec: if self.estimate.has_fix(self.now) { self.utc_us() } else { 0 },
                time_boot_ms: self.boot_ms(),
            }),
            Stream::BatteryStatus => self.battery_status(),
            Stream::EkfStatusReport => self.ekf_status_report(),
            Stream::Vibration => {
                MavMessage::VIBRATION(VIBRATION_DATA { time_usec: self.boot_us(), ..VIBRATION_DATA::DEFAULT })
            }
            Stream::ExtendedSysState => MavMessage::EXTENDED_SYS_STATE(EXTENDED_SYS_STATE_DATA {
                vtol_state: MavVtolState::MAV_VTOL_STATE_UNDEFINED,
                landed_state: match (self.landed(), self.mode, self.taking_off()) {
                    (true, ..) => MavLandedState::MAV_LANDED_STATE_ON_GROUND,
                    (false, Mode::Land, _) => MavLandedState::MAV_LANDED_STATE_LANDING,
                    (false, _, true) => MavLandedState::MAV_LANDED_STATE_TAKEOFF,
                    (false, ..) => MavLandedState::MAV_LANDED_STATE_IN_AIR,
                },
            }),
        };
        self.send(&message);
    }

    /// 3.5.7 never sends it, 4.6.2 while its filter estimates the wind.
    fn wind(&self) -> Option<MavMessage> {
        let air_m_s = match self.profile() {
            Profile::Copter357 => None,
            Profile::Copter462 => self.wind_estimate.velocity_m_s().filter(|_| self.position_ok()),
        }?;
        Some(MavMessage::WIND(WIND_DATA {
            direction: libm::atan2(-air_m_s.x, -air_m_s.y).to_degrees() as f32,
            speed: air_m_s.length() as f32,
            speed_z: -air_m_s.z as f32,
        }))
    }

    /// What its accelerometers show forward, to the right and down, in units of gravity, and its magnetometer forward and to
    /// the right, milligauss; the nose turns about the vertical.
    fn imu(&self) -> (DVec3, DVec2) {
        let state = self.vehicle.state();
        let (roll_rad, pitch_rad) = state.roll_pitch_rad();
        let (sin_pitch, cos_pitch) = libm::sincos(pitch_rad);
        let (sin_roll, cos_roll) = libm::sincos(roll_rad);
        let field = DVec2::new(libm::cos(state.yaw_rad), -libm::sin(state.yaw_rad)) * FIELD_MILLIGAUSS;
        (DVec3::new(sin_pitch, -sin_roll * cos_pitch, -cos_roll * cos_pitch), field)
    }

    fn scaled_imu2(&self) -> MavMessage {
        let (acceleration, field) = self.imu();
        let milli_g = |g: f64| (g * GRAVITY_MILLI_G) as i16;
        MavMessage::SCALED_IMU2(SCALED_IMU2_DATA {
            time_boot_ms: self.boot_ms(),
            xacc: milli_g(acceleration.x),
            yacc: milli_g(acceleration.y),
            zacc: milli_g(acceleration.z),
            zgyro: (self.vehicle.state().yaw_rate_rad_s * 1e3) as i16,
            xmag: field.x as i16,
            ymag: field.y as i16,
            zmag: FIELD_DOWN_MILLIGAUSS,
            ..SCALED_IMU2_DATA::DEFAULT
        })
    }

    fn highres_imu(&self) -> MavMessage {
        let (acceleration, field) = self.imu();
        let m_s2 = |g: f64| (g * GRAVITY_M_S2) as f32;
        let altitude_m = self.config.home.altitude_m() + self.vehicle.state().position.z;
        MavMessage::HIGHRES_IMU(HIGHRES_IMU_DATA {
            time_usec: self.boot_us(),
            xacc: m_s2(acceleration.x),
            yacc: m_s2(acceleration.y),
            zacc: m_s2(acceleration.z),
            zgyro: self.vehicle.state().yaw_rate_rad_s as f32,
            xmag: (field.x * 1e-3) as f32,
            ymag: (field.y * 1e-3) as f32,
            zmag: f32::from(FIELD_DOWN_MILLIGAUSS) * 1e-3,
            abs_pressure: pressure_hpa(altitude_m) as f32,
            pressure_alt: altitude_m as f32,
            temperature: 25.0,
            fields_updated: HighresImuUpdatedFlags::all(),
            ..HIGHRES_IMU_DATA::DEFAULT
        })
    }

    /// The second estimate is no other than the first.
    fn ahrs2(&self) -> MavMessage {
        let (roll, pitch, yaw) = self.lean_and_nose();
        let position = self.frame.to_position(self.reported().0);
        MavMessage::AHRS2(AHRS2_DATA {
            roll,
            pitch,
            yaw,
            altitude: position.altitude_m() as f32,
            lat: position.latitude_e7,
            lng: position.longitude_e7,
        })
    }

    fn sim_state(&self) -> MavMessage {
        let (roll, pitch, _) = self.lean_and_nose();
        let (acceleration, _) = self.imu();
        let m_s2 = |g: f64| (g * GRAVITY_M_S2) as f32;
        let position = self.truth().position;
        MavMessage::SIMSTATE(SIMSTATE_DATA {
            roll,
            pitch,
            yaw: self.vehicle.state().yaw_rad as f32,
            xacc: m_s2(acceleration.x),
            yacc: m_s2(acceleration.y),
            zacc: m_s2(acceleration.z),
            zgyro: self.vehicle.state().yaw_rate_rad_s as f32,
            lat: position.latitude_e7,
            lng: position.longitude_e7,
            ..SIMSTATE_DATA::DEFAULT
        })
    }

    fn attitude_quaternion(&self) -> MavMessage {
        let (roll, pitch, yaw) = self.lean_and_nose();
        let half = |angle: f32| libm::sincos(f64::from(angle) / 2.0);
        let ((sr, cr), (sp, cp), (sy, cy)) = (half(roll), half(pitch), half(yaw));
        MavMessage::ATTITUDE_QUATERNION(ATTITUDE_QUATERNION_DATA {
            time_boot_ms: self.boot_ms(),
            q1: (cr * cp * cy + sr * sp * sy) as f32,
            q2: (sr * cp * cy - cr * sp * sy) as f32,
            q3: (cr * sp * cy + sr * cp * sy) as f32,
            q4: (cr * cp * sy - sr * sp * cy) as f32,
            yawspeed: self.vehicle.state().yaw_rate_rad_s as f32,
            ..ATTITUDE_QUATERNION_DATA::DEFAULT
        })
    }

    fn raw_imu(&self) -> MavMessage {
        let state = self.vehicle.state();
        let (acceleration, field) = self.imu();
        let milli_g = |g: f64| (g * GRAVITY_MILLI_G) as i16;
        let milli_rad = |rad_s: f64| (rad_s * 1e3) as i16;
        MavMessage::RAW_IMU(RAW_IMU_DATA {
            time_usec: self.boot_us(),
            xacc: milli_g(acceleration.x),
            yacc: milli_g(acceleration.y),
            zacc: milli_g(acceleration.z),
            zgyro: milli_rad(state.yaw_rate_rad_s),
            xmag: field.x as i16,
            ymag: field.y as i16,
            zmag: FIELD_DOWN_MILLIGAUSS,
            ..RAW_IMU_DATA::DEFAULT
        })
    }

    fn scaled_pressure(&self) -> MavMessage {
        let altitude_m = self.config.home.altitude_m() + self.vehicle.state().position.z;
        let press_abs = pressure_hpa(altitude_m);
        MavMessage::SCALED_PRESSURE(SCALED_PRESSURE_DATA {
            time_boot_ms: self.boot_ms(),
            press_abs: press_abs as f32,
            temperature: 2500,
            ..SCALED_PRESSURE_DATA::DEFAULT
        })
    }

    fn sys_status(&self) -> MavMessage {
        // 3.5.7 in SITL: present 0x361fc0f, GPS once it is detected; altitude and position control are
        // enabled in the modes that use them, the motors while armed.
        let gps = if self.now >= self.booted_at && self.estimate.has_fix(self.now) { 0x20 } else { 0 };
        let altitude = if self.mode == Mode::Stabilize { 0 } else { 0x2000 };
        let position = if self.needs_position(self.mode) && self.mode != Mode::PosHold { 0x4000 } else { 0 };
        let armed = if self.armed() { 0x100_0000 } else { 0 };
        let fence = if self.parameters.flag(Parameter::FENCE_ENABLE) == 1 { 0x10_0000 } else { 0 };
        // Since 4.0.
        let (prearm_present, (prearm_enabled, prearm_passes)) = match self.profile() {
            Profile::Copter462 => (true, self.prearm()),
            Profile::Copter357 => (false, (false, false)),
        };
        let prearm = |is_set: bool| if is_set { 0x1000_0000 } else { 0 };
        let no_receiver = if self.rc.is_present() { 0 } else { RC_RECEIVER };
        let unhealthy = if self.rc.is_present() && !self.radio_is_lost() { 0 } else { RC_RECEIVER };
        let sensors = MavSysStatusSensor::from_bits_truncate;
        MavMessage::SYS_STATUS(SYS_STATUS_DATA {
            onboard_control_sensors_present: sensors(
                (0x0361_fc0f & !no_receiver) | gps | fence | prearm(prearm_present),
            ),
            onboard_control_sensors_enabled: sensors(
                0x0261_9c0f | gps | altitude | position | armed | fence | prearm(prearm_enabled),
            ),
            onboard_control_sensors_health: sensors(
                (0x0361_fc0f & !unhealthy) | gps | fence | prearm(prearm_passes),
            ),
            load: 100,
            voltage_battery: (self.battery.voltage_v() * 1e3) as u16,
            current_battery: self.current_ca(),
            drop_rate_comm: 0,
            errors_comm: 0,
            errors_count1: 0,
            errors_count2: 0,
            errors_count3: 0,
            errors_count4: 0,
            battery_remaining: self.remaining_percent(),
            onboard_control_sensors_present_extended: MavSysStatusSensorExtended::empty(),
            onboard_control_sensors_enabled_extended: MavSysStatusSensorExtended::empty(),
            onboard_control_sensors_health_extended: MavSysStatusSensorExtended::empty(),
        })
    }

    fn gps_raw_int(&self) -> MavMessage {
        let state = self.vehicle.state();
        let fix = self.estimate.has_fix(self.now);
        let position = self.frame.to_position(state.position);
        let speed_m_s = libm::hypot(state.velocity.x, state.velocity.y);
        let course = heading_rad(DVec2::ZERO, DVec2::new(state.velocity.x, state.velocity.y));
        let or_zero = |value: i32| if fix { value } else { 0 };
        MavMessage::GPS_RAW_INT(GPS_RAW_INT_DATA {
            time_usec: if fix { self.utc_us() } else { 0 },
            lat: or_zero(position.latitude_e7),
            lon: or_zero(position.longitude_e7),
            alt: or_zero(position.altitude_mm),
            eph: if fix { self.dilution() } else { 9999 },
            epv: if fix { 200 } else { 9999 },
            h_acc: if fix { self.accuracy_mm() } else { 0 },
            vel: (speed_m_s * 1e2) as u16,
            cog: (course.to_degrees() * 1e2) as u16,
            fix_type: if fix { self.fix_type() } else { GpsFixType::GPS_FIX_TYPE_NO_FIX },
            satellites_visible: if fix { 10 } else { 0 },
            ..GPS_RAW_INT_DATA::DEFAULT
        })
    }

    /// Returns the horizontal accuracy that the receiver knows of itself, in millimetres: the standard deviation of its noise on
    /// both axes, and without corrections as much again that is common to all receivers. A bias or a spoofed position does not
    /// show. 3.5.7 does not send it.
    fn accuracy_mm(&self) -> u32 {
        let share = if self.fix_type() == GpsFixType::GPS_FIX_TYPE_3D_FIX { 2.0 } else { SQRT_2 };
        match self.profile() {
            Profile::Copter357 => 0,
            Profile::Copter462 => (self.config.gps_noise_m.max(RTK_M) * share * 1e3) as u32,
        }
    }

    /// Returns the horizontal dilution of precision in hundredths: SITL's, or more where the noise is more than a receiver has
    /// under such a sky.
    fn dilution(&self) -> u16 {
        SITL_DILUTION.max((self.config.gps_noise_m / RANGE_ERROR_M * 1e2) as u16)
    }

    fn global_position_int(&self) -> MavMessage {
        let state = self.vehicle.state();
        let (reported, is_known) = self.reported();
        let position = self.frame.to_position(reported);
        let known = self.estimate.has_origin(self.now);
        let relative_m = state.position.z - self.home_or_origin().z;
        let cm_s = |m_s: f64| (m_s * 1e2) as i16;
        // Without a position the filter holds its place, and its velocity with it.
        let over_ground = if is_known { state.velocity.truncate() } else { DVec2::ZERO };
        let is_downward = self.profile() != Profile::Copter357;
        MavMessage::GLOBAL_POSITION_INT(GLOBAL_POSITION_INT_DATA {
            time_boot_ms: self.boot_ms(),
            lat: if known { position.latitude_e7 } else { 0 },
            lon: if known { position.longitude_e7 } else { 0 },
            alt: position.altitude_mm,
            relative_alt: libm::round(relative_m * 1e3) as i32,
            vx: cm_s(over_ground.y),
            vy: cm_s(over_ground.x),
            vz: cm_s(if is_downward { -state.velocity.z } else { state.velocity.z }),
            hdg: (self.nose_rad().to_degrees() * 1e2) as u16 % 36_000,
        })
    }

    fn local_position_ned(&self) -> MavMessage {
        let state = self.vehicle.state();
        MavMessage::LOCAL_POSITION_NED(LOCAL_POSITION_NED_DATA {
            time_boot_ms: self.boot_ms(),
            x: state.position.y as f32,
            y: state.position.x as f32,
            z: -state.position.z as f32,
            vx: state.velocity.y as f32,
            vy: state.velocity.x as f32,
            vz: -state.velocity.z as f32,
        })
    }

    /// Roll, pitch and yaw as they are reported, −π to π.
    fn lean_and_nose(&self) -> (f32, f32, f32) {
        let (roll_rad, pitch_rad) = self.vehicle.state().roll_pitch_rad();
        let pi = core::f64::consts::PI;
        let nose = self.nose_rad();
        let yaw_rad = if nose > pi { nose - 2.0 * pi } else { nose };
        (roll_rad as f32, pitch_rad as f32, yaw_rad as f32)
    }

    fn attitude(&self) -> MavMessage {
        let (roll, pitch, yaw) = self.lean_and_nose();
        MavMessage::ATTITUDE(ATTITUDE_DATA {
            time_boot_ms: self.boot_ms(),
            roll,
            pitch,
            yaw,
            yawspeed: self.vehicle.state().yaw_rate_rad_s as f32,
            ..ATTITUDE_DATA::DEFAULT
        })
    }

    fn vfr_hud(&self) -> MavMessage {
        let state = self.vehicle.state();
        let relative_m = state.position.z - self.home_or_origin().z;
        // 3.5.7 shows the height above home, 4.x the one above sea level.
        let alt = match self.profile() {
            Profile::Copter357 => relative_m,
            Profile::Copter462 => self.config.home.altitude_m() + state.position.z,
        };
        let air = state.velocity - self.wind_m_s;
        MavMessage::VFR_HUD(VFR_HUD_DATA {
            airspeed: air.length() as f32,
            groundspeed: libm::hypot(state.velocity.x, state.velocity.y) as f32,
            alt: alt as f32,
            climb: state.velocity.z as f32,
            heading: self.nose_rad().to_degrees() as i16 % 360,
            throttle: (state.throttle * 100.0) as u16,
        })
    }

    fn nav_controller_output(&self) -> MavMessage {
        let state = self.vehicle.state();
        let (roll_rad, pitch_rad) = state.roll_pitch_rad();
        let target = self.vehicle.target();
        let to = target.unwrap_or(state.position) - state.position;
        let bearing = heading_rad(DVec2::ZERO, DVec2::new(to.x, to.y)).to_degrees();
        let signed = if bearing > 180.0 { bearing - 360.0 } else { bearing };
        MavMessage::NAV_CONTROLLER_OUTPUT(NAV_CONTROLLER_OUTPUT_DATA {
            nav_roll: roll_rad.to_degrees() as f32,
            nav_pitch: pitch_rad.to_degrees() as f32,
            alt_error: to.z as f32,
            aspd_error: 0.0,
            xtrack_error: 0.0,
            nav_bearing: signed as i16,
            target_bearing: signed as i16,
            wp_dist: libm::hypot(to.x, to.y).min(65_535.0) as u16,
        })
    }

    /// The target that is flown to: in AUTO, and in GUIDED once there is one.
    fn position_target(&self) -> Option<MavMessage> {
        let guided = self.guided.target();
        let position = match self.mode {
            Mode::Auto if self.armed() && self.auto.going() => self.vehicle.target(),
            Mode::Guided => guided.and_then(|t| t.position).and(self.vehicle.target()),
            Mode::Stabilize
            | Mode::AltHold
            | Mode::Auto
            | Mode::Loiter
            | Mode::Rtl
            | Mode::Land
            | Mode::PosHold
            | Mode::Brake
            | Mode::SmartRtl => None,
        };
        let velocity = match self.mode {
            Mode::Guided => guided.and_then(|t| t.velocity),
            Mode::Stabilize
            | Mode::AltHold
            | Mode::Auto
            | Mode::Loiter
            | Mode::Rtl
            | Mode::Land
            | Mode::PosHold
            | Mode::Brake
            | Mode::SmartRtl => None,
        };
        if position.is_none() && velocity.is_none() {
            return None;
        }
        let mut mask = 0x0fc0;
        mask |= if position.is_none() { 0x007 } else { 0 };
        mask |= if velocity.is_none() { 0x038 } else { 0 };
        let place = position.map(|p| self.frame.to_position(p)).unwrap_or_default();
        let v = velocity.unwrap_or_default();
        Some(MavMessage::POSITION_TARGET_GLOBAL_INT(POSITION_TARGET_GLOBAL_INT_DATA {
            time_boot_ms: self.boot_ms(),
            lat_int: place.latitude_e7,
            lon_int: place.longitude_e7,
            alt: place.altitude_m() as f32,
            vx: v.y as f32,
            vy: v.x as f32,
            vz: -v.z as f32,
            type_mask: PositionTargetTypemask::from_bits_truncate(mask),
            coordinate_frame: MavFrame::MAV_FRAME_GLOBAL,
            ..POSITION_TARGET_GLOBAL_INT_DATA::DEFAULT
        }))
    }

    /// The same in the local frame, in GUIDED only.
    fn position_target_local(&self) -> Option<MavMessage> {
        let target = self.guided.target().filter(|_| self.mode == Mode::Guided)?;
        let position = target.position.and(self.vehicle.target());
        let mut mask = 0x0dc0;
        mask |= if position.is_none() { 0x007 } else { 0 };
        mask |= if target.velocity.is_none() { 0x038 } else { 0 };
        let (p, v) = (position.unwrap_or_default(), target.velocity.unwrap_or_default());
        Some(MavMessage::POSITION_TARGET_LOCAL_NED(POSITION_TARGET_LOCAL_NED_DATA {
            time_boot_ms: self.boot_ms(),
            x: p.y as f32,
            y: p.x as f32,
            z: -p.z as f32,
            vx: v.y as f32,
            vy: v.x as f32,
            vz: -v.z as f32,
            type_mask: PositionTargetTypemask::from_bits_truncate(mask),
            coordinate_frame: MavFrame::MAV_FRAME_LOCAL_NED,
            ..POSITION_TARGET_LOCAL_NED_DATA::DEFAULT
        }))
    }

    fn servo_output_raw(&self) -> MavMessage {
        let pulse = if self.armed() { 1100 + (self.vehicle.state().throttle * 800.0) as u16 } else { 1000 };
        MavMessage::SERVO_OUTPUT_RAW(SERVO_OUTPUT_RAW_DATA {
            time_usec: self.boot_us() as u32,
            servo1_raw: pulse,
            servo2_raw: pulse,
            servo3_raw: pulse,
            servo4_raw: pulse,
            ..SERVO_OUTPUT_RAW_DATA::DEFAULT
        })
    }

    fn rc_channels(&self) -> MavMessage {
        let pulses = self.rc.effective.0;
        MavMessage::RC_CHANNELS(RC_CHANNELS_DATA {
            time_boot_ms: self.boot_ms(),
            chan1_raw: pulses[0],
            chan2_raw: pulses[1],
            chan3_raw: pulses[2],
            chan4_raw: pulses[3],
            chan5_raw: pulses[4],
            chan6_raw: pulses[5],
            chan7_raw: pulses[6],
            chan8_raw: pulses[7],
            chancount: 16,
            ..RC_CHANNELS_DATA::DEFAULT
        })
    }

    /// A monitor of the voltage alone (`BATT_MONITOR` 3) measures no current, and estimates no charge.
    fn has_current_sensor(&self) -> bool {
        self.parameters.flag(Parameter::BATT_MONITOR) != 3
    }

    /// Hundredths of an ampere; -1 where it is not measured.
    fn current_ca(&self) -> i16 {
        if self.has_current_sensor() { (self.battery.current_a() * 1e2) as i16 } else { -1 }
    }

    /// Per cent; -1 where it is not estimated.
    fn remaining_percent(&self) -> i8 {
        if self.has_current_sensor() { self.battery.remaining_percent() as i8 } else { -1 }
    }

    fn battery_status(&self) -> MavMessage {
        let mut voltages = [u16::MAX; 10];
        voltages[0] = (self.battery.voltage_v() * 1e3) as u16;
        MavMessage::BATTERY_STATUS(BATTERY_STATUS_DATA {
            current_consumed: if self.has_current_sensor() { self.battery.used_mah() as i32 } else { -1 },
            // Hectojoule.
            energy_consumed: if self.has_current_sensor() {
                (self.battery.used_wh() * 36.0) as i32
            } else {
                -1
            },
            temperature: i16::MAX,
            voltages,
            current_battery: self.current_ca(),
            id: 0,
            battery_function: MavBatteryFunction::MAV_BATTERY_FUNCTION_UNKNOWN,
            mavtype: MavBatteryType::MAV_BATTERY_TYPE_UNKNOWN,
            battery_remaining: self.remaining_percent(),
            time_remaining: 0,
            charge_state: MavBatteryChargeState::MAV_BATTERY_CHARGE_STATE_UNDEFINED,
            voltages_ext: [0; 4],
            mode: MavBatteryMode::MAV_BATTERY_MODE_UNKNOWN,
            fault_bitmask: MavBatteryFault::empty(),
        })
    }

    fn ekf_status_report(&self) -> MavMessage {
        // SITL's values at rest; what cannot be known is off by a metre's variance.
        let doubt = if self.position_ok() { 0.004 } else { 1.0 };
        MavMessage::EKF_STATUS_REPORT(EKF_STATUS_REPORT_DATA {
            velocity_variance: doubt,
            pos_horiz_variance: doubt,
            pos_vert_variance: 0.009,
            compass_variance: 0.004,
            terrain_alt_variance: 0.0,
            flags: self.estimate.flags(self.now),
            airspeed_variance: 0.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_stands_in_its_own_row() {
        for (index, row) in STREAMS.iter().enumerate() {
            assert_eq!(row.0 as usize, index, "{:?}", row.0);
        }
    }

    #[test]
    fn rates_become_ticks() {
        assert_eq!(ticks_of_rate(0.0), 0);
        assert_eq!(ticks_of_rate(4.0), 13);
        assert_eq!(ticks_of_rate(10.0), 5);
        assert_eq!(ticks_of_rate(200.0), 1);
    }
}
