//! Parameters: ArduCopter's names, types and defaults, and the MAVLink parameter protocol
//! (<https://mavlink.io/en/services/parameter.html>).
//!
//! Defaults are those that ArduCopter 3.5.7 and 4.6.2 report in SITL, radio calibrated to
//! 1000..2000 µs. A parameter that a version does not have is absent from its list, and asking for it
//! is answered with silence, as ArduPilot does.

use wingbeat_autopilot::codec::text;
use wingbeat_autopilot::dialect::{
    MavMessage, MavParamType, PARAM_REQUEST_READ_DATA, PARAM_SET_DATA, PARAM_VALUE_DATA,
};

use super::FlightController;
use super::telemetry::Group;
use crate::motion::{NavParameters, Profile};

/// Parameters sent per tick while the whole list is asked for: 200 a second, so that the list does not
/// crowd out telemetry (3.5.7 gave 300 a second over TCP).
const LIST_PER_TICK: usize = 4;

/// The index that ArduPilot gives to a value that was asked for by name or set.
const INDEX_UNLISTED: u16 = u16::MAX;

/// A type of a parameter as MAVLink names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    I8,
    I16,
    I32,
    F32,
}

/// A value that the version does not have.
const ABSENT: f32 = f32::NAN;

macro_rules! parameters {
    ($($name:ident $kind:ident $old:expr, $new:expr;)*) => {
        /// A parameter, by ArduCopter's name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        #[allow(non_camel_case_types, missing_docs)]
        pub enum Parameter { $($name),* }

        /// Name, type, default of 3.5.7, default of 4.6.2.
        const TABLE: &[(&str, Kind, f32, f32)] = &[$((stringify!($name), Kind::$kind, $old, $new)),*];
        const ALL: &[Parameter] = &[$(Parameter::$name),*];
    };
}

parameters! {
    SYSID_SW_MREV I16 120.0, ABSENT;
    FORMAT_VERSION I16 ABSENT, 120.0;
    SYSID_SW_TYPE I8 10.0, ABSENT;
    SYSID_THISMAV I16 1.0, 1.0;
    SYSID_MYGCS I16 255.0, 255.0;
    SYSID_ENFORCE I8 0.0, 0.0;
    PILOT_THR_FILT F32 0.0, 0.0;
    PILOT_TKOFF_ALT F32 0.0, 0.0;
    PILOT_THR_BHV I16 0.0, 0.0;
    TELEM_DELAY I8 0.0, 0.0;
    RTL_ALT I16 1500.0, 1500.0;
    RTL_CONE_SLOPE F32 3.0, 3.0;
    RTL_SPEED I16 0.0, 0.0;
    RTL_ALT_FINAL I16 0.0, 0.0;
    RTL_ALT_TYPE I8 ABSENT, 0.0;
    RTL_CLIMB_MIN I16 0.0, 0.0;
    RTL_LOIT_TIME I32 5000.0, 5000.0;
    FS_GCS_ENABLE I8 1.0, 0.0;
    FS_GCS_TIMEOUT F32 ABSENT, 5.0;
    FS_OPTIONS I32 ABSENT, 16.0;
    FS_THR_ENABLE I8 1.0, 1.0;
    FS_THR_VALUE I16 975.0, 975.0;
    FS_EKF_ACTION I8 1.0, 1.0;
    FS_EKF_THRESH F32 0.8, 0.8;
    FS_CRASH_CHECK I8 1.0, 1.0;
    FS_BATT_ENABLE I8 0.0, ABSENT;
    FS_BATT_VOLTAGE F32 10.5, ABSENT;
    FS_BATT_MAH F32 0.0, ABSENT;
    GPS_HDOP_GOOD I16 140.0, 140.0;
    SUPER_SIMPLE I8 0.0, 0.0;
    WP_YAW_BEHAVIOR I8 2.0, 2.0;
    LAND_SPEED I16 50.0, 50.0;
    LAND_SPEED_HIGH I16 0.0, 0.0;
    LAND_ALT_LOW I16 ABSENT, 1000.0;
    LAND_REPOSITION I8 1.0, 1.0;
    PILOT_VELZ_MAX I16 250.0, ABSENT;
    PILOT_SPEED_UP I16 ABSENT, 250.0;
    PILOT_SPEED_DN I16 ABSENT, 0.0;
    PILOT_ACCEL_Z I16 250.0, 250.0;
    PILOT_TKOFF_DZ I16 100.0, 100.0;
    THR_DZ I16 100.0, 100.0;
    FLTMODE1 I8 7.0, 7.0;
    FLTMODE2 I8 9.0, 9.0;
    FLTMODE3 I8 6.0, 6.0;
    FLTMODE4 I8 3.0, 3.0;
    FLTMODE5 I8 5.0, 5.0;
    FLTMODE6 I8 0.0, 0.0;
    FLTMODE_CH I8 ABSENT, 5.0;
    SIMPLE I8 0.0, 0.0;
    LOG_BITMASK I32 176_126.0, 176_126.0;
    DISARM_DELAY I8 10.0, 10.0;
    ANGLE_MAX I16 4500.0, 3000.0;
    PHLD_BRAKE_RATE I16 8.0, 8.0;
    PHLD_BRAKE_ANGLE I16 3000.0, 3000.0;
    FRAME_CLASS I8 1.0, 1.0;
    FRAME_TYPE I8 0.0, 0.0;
    ARMING_CHECK I32 1.0, 1.0;
    RCMAP_ROLL I8 1.0, 1.0;
    RCMAP_PITCH I8 2.0, 2.0;
    RCMAP_THROTTLE I8 3.0, 3.0;
    RCMAP_YAW I8 4.0, 4.0;
    RC1_MIN I16 1000.0, 1000.0;
    RC1_TRIM I16 1500.0, 1500.0;
    RC1_MAX I16 2000.0, 2000.0;
    RC1_REVERSED I8 0.0, 0.0;
    RC1_DZ I16 20.0, 20.0;
    RC2_MIN I16 1000.0, 1000.0;
    RC2_TRIM I16 1500.0, 1500.0;
    RC2_MAX I16 2000.0, 2000.0;
    RC2_REVERSED I8 0.0, 0.0;
    RC2_DZ I16 20.0, 20.0;
    RC3_MIN I16 1000.0, 1000.0;
    RC3_TRIM I16 1500.0, 1500.0;
    RC3_MAX I16 2000.0, 2000.0;
    RC3_REVERSED I8 0.0, 0.0;
    RC3_DZ I16 30.0, 30.0;
    RC4_MIN I16 1000.0, 1000.0;
    RC4_TRIM I16 1500.0, 1500.0;
    RC4_MAX I16 2000.0, 2000.0;
    RC4_REVERSED I8 0.0, 0.0;
    RC4_DZ I16 20.0, 20.0;
    RC5_MIN I16 1000.0, 1000.0;
    RC5_TRIM I16 1500.0, 1500.0;
    RC5_MAX I16 2000.0, 2000.0;
    RC5_REVERSED I8 0.0, 0.0;
    RC5_DZ I16 0.0, 0.0;
    RC6_MIN I16 1000.0, 1000.0;
    RC6_TRIM I16 1500.0, 1500.0;
    RC6_MAX I16 2000.0, 2000.0;
    RC6_REVERSED I8 0.0, 0.0;
    RC6_DZ I16 0.0, 0.0;
    RC7_MIN I16 1000.0, 1000.0;
    RC7_TRIM I16 1500.0, 1500.0;
    RC7_MAX I16 2000.0, 2000.0;
    RC7_REVERSED I8 0.0, 0.0;
    RC7_DZ I16 0.0, 0.0;
    RC8_MIN I16 1000.0, 1000.0;
    RC8_TRIM I16 1500.0, 1500.0;
    RC8_MAX I16 2000.0, 2000.0;
    RC8_REVERSED I8 0.0, 0.0;
    RC8_DZ I16 0.0, 0.0;
    RC_OVERRIDE_TIME F32 3.0, 3.0;
    SERIAL0_BAUD I32 115.0, 115.0;
    SERIAL0_PROTOCOL I8 1.0, 2.0;
    SERIAL1_BAUD I32 57.0, 57.0;
    SERIAL1_PROTOCOL I8 1.0, 2.0;
    SERIAL2_BAUD I32 57.0, 57.0;
    SERIAL2_PROTOCOL I8 1.0, 2.0;
    SR0_RAW_SENS I16 0.0, 0.0;
    SR0_EXT_STAT I16 0.0, 0.0;
    SR0_RC_CHAN I16 0.0, 0.0;
    SR0_RAW_CTRL I16 0.0, 0.0;
    SR0_POSITION I16 0.0, 0.0;
    SR0_EXTRA1 I16 0.0, 0.0;
    SR0_EXTRA2 I16 0.0, 0.0;
    SR0_EXTRA3 I16 0.0, 0.0;
    SR0_PARAMS I16 10.0, 10.0;
    SR1_RAW_SENS I16 0.0, 0.0;
    SR1_EXT_STAT I16 0.0, 0.0;
    SR1_RC_CHAN I16 0.0, 0.0;
    SR1_RAW_CTRL I16 0.0, 0.0;
    SR1_POSITION I16 0.0, 0.0;
    SR1_EXTRA1 I16 0.0, 0.0;
    SR1_EXTRA2 I16 0.0, 0.0;
    SR1_EXTRA3 I16 0.0, 0.0;
    SR1_PARAMS I16 0.0, 0.0;
    SR2_RAW_SENS I16 0.0, 0.0;
    SR2_EXT_STAT I16 0.0, 0.0;
    SR2_RC_CHAN I16 0.0, 0.0;
    SR2_RAW_CTRL I16 0.0, 0.0;
    SR2_POSITION I16 0.0, 0.0;
    SR2_EXTRA1 I16 0.0, 0.0;
    SR2_EXTRA2 I16 0.0, 0.0;
    SR2_EXTRA3 I16 0.0, 0.0;
    SR2_PARAMS I16 0.0, 0.0;
    WPNAV_SPEED F32 500.0, 1000.0;
    WPNAV_RADIUS F32 200.0, 200.0;
    WPNAV_SPEED_UP F32 250.0, 250.0;
    WPNAV_SPEED_DN F32 150.0, 150.0;
    WPNAV_ACCEL F32 100.0, 250.0;
    WPNAV_ACCEL_Z F32 100.0, 100.0;
    WPNAV_LOIT_SPEED F32 500.0, ABSENT;
    LOIT_SPEED F32 ABSENT, 1250.0;
    GUID_TIMEOUT F32 ABSENT, 3.0;
    GUID_OPTIONS I32 ABSENT, 0.0;
    FENCE_ENABLE I8 0.0, 0.0;
    FENCE_TYPE I8 7.0, 7.0;
    FENCE_ACTION I8 1.0, 1.0;
    FENCE_ALT_MAX F32 100.0, 100.0;
    FENCE_RADIUS F32 300.0, 300.0;
    FENCE_MARGIN F32 2.0, 2.0;
    FENCE_TOTAL I8 0.0, 0.0;
    FENCE_AUTOENABLE I8 ABSENT, 0.0;
    BATT_MONITOR I8 4.0, 4.0;
    BATT_CAPACITY I32 3300.0, 3300.0;
    BATT_LOW_VOLT F32 ABSENT, 10.5;
    BATT_LOW_MAH F32 ABSENT, 0.0;
    BATT_LOW_TIMER I8 ABSENT, 10.0;
    BATT_CRT_VOLT F32 ABSENT, 0.0;
    BATT_CRT_MAH F32 ABSENT, 0.0;
    BATT_FS_LOW_ACT I8 ABSENT, 0.0;
    BATT_FS_CRT_ACT I8 ABSENT, 0.0;
    DID_ENABLE I8 ABSENT, 0.0;
    DID_MAVPORT I8 ABSENT, -1.0;
    DID_OPTIONS I16 ABSENT, 0.0;
    SRTL_ACCURACY F32 ABSENT, 2.0;
    SRTL_POINTS I16 ABSENT, 300.0;
    MIS_TOTAL I16 0.0, 0.0;
    MIS_RESTART I8 0.0, 0.0;
    RALLY_TOTAL I8 0.0, 0.0;
    COMPASS_USE I8 1.0, 1.0;
    GPS_TYPE I8 1.0, ABSENT;
    GPS1_TYPE I8 ABSENT, 1.0;
    EK2_ENABLE I8 1.0, 0.0;
    EK3_ENABLE I8 ABSENT, 1.0;
    MOT_SPIN_ARM F32 0.1, 0.1;
    MOT_SPIN_MIN F32 0.15, 0.15;
    MOT_THST_EXPO F32 0.5, 0.65;
    MOT_THST_HOVER F32 0.36, 0.39;
    SCHED_LOOP_RATE I16 400.0, 400.0;
    STAT_BOOTCNT I16 1.0, 1.0;
    STAT_FLTTIME I32 0.0, 0.0;
    STAT_RUNTIME I32 0.0, 0.0;
}

impl Parameter {
    /// The parameter of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().position(|row| row.0 == name).map(|i| ALL[i])
    }
    /// ArduCopter's name.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].0
    }
    /// Whether this version has it.
    pub fn is_of(self, profile: Profile) -> bool {
        Parameters::new(profile).has(self)
    }
    /// The parameter `offset` places after this one in the table: channel blocks and stream blocks
    /// repeat at fixed distances.
    fn after(self, offset: usize) -> Option<Self> {
        ALL.get(self as usize + offset).copied()
    }
    fn mav_type(self) -> MavParamType {
        match TABLE[self as usize].1 {
            Kind::I8 => MavParamType::MAV_PARAM_TYPE_INT8,
            Kind::I16 => MavParamType::MAV_PARAM_TYPE_INT16,
            Kind::I32 => MavParamType::MAV_PARAM_TYPE_INT32,
            Kind::F32 => MavParamType::MAV_PARAM_TYPE_REAL32,
        }
    }
    /// The type in a packed file.
    fn packed_type(self) -> u8 {
        match TABLE[self as usize].1 {
            Kind::I8 => 1,
            Kind::I16 => 2,
            Kind::I32 => 3,
            Kind::F32 => 4,
        }
    }
    /// Appends a value as its type has it in memory.
    fn pack(self, value: f32, file: &mut Vec<u8>) {
        match TABLE[self as usize].1 {
            Kind::I8 => file.extend((value as i8).to_le_bytes()),
            Kind::I16 => file.extend((value as i16).to_le_bytes()),
            Kind::I32 => file.extend((value as i32).to_le_bytes()),
            Kind::F32 => file.extend(value.to_le_bytes()),
        }
    }
    /// `value` as this parameter's type stores it.
    fn stored(self, value: f32) -> f32 {
        match TABLE[self as usize].1 {
            Kind::I8 => f32::from(libm::roundf(value) as i8),
            Kind::I16 => f32::from(libm::roundf(value) as i16),
            Kind::I32 => libm::roundf(value) as i32 as f32,
            Kind::F32 => value,
        }
    }
}

/// The calibration of one radio channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Channel {
    pub(super) min_us: f64,
    pub(super) trim_us: f64,
    pub(super) max_us: f64,
    pub(super) reversed: bool,
    pub(super) dead_zone_us: f64,
}

/// The values of one flight controller.
#[derive(Clone, Debug)]
pub(super) struct Parameters {
    profile: Profile,
    values: Vec<f32>,
    /// What this version has, in the order of the list.
    listed: Vec<Parameter>,
    /// The next entry of the list to send, while it is being sent.
    list_next: Option<usize>,
}

impl Parameters {
    pub(super) fn new(profile: Profile) -> Self {
        let default = |row: &(&str, Kind, f32, f32)| match profile {
            Profile::Copter357 => row.2,
            Profile::Copter462 => row.3,
        };
        let values: Vec<f32> = TABLE.iter().map(default).collect();
        let listed = ALL.iter().copied().filter(|&p| !values[p as usize].is_nan()).collect();
        Self { profile, values, listed, list_next: None }
    }
    /// The value, zero if this version does not have the parameter.
    pub(super) fn get(&self, parameter: Parameter) -> f64 {
        let value = self.values[parameter as usize];
        if value.is_nan() { 0.0 } else { f64::from(value) }
    }
    pub(super) fn has(&self, parameter: Parameter) -> bool {
        !self.values[parameter as usize].is_nan()
    }
    pub(super) fn flag(&self, parameter: Parameter) -> u32 {
        self.get(parameter).max(0.0) as u32
    }
    /// Stores `value`; false if this version does not have the parameter or the value is no number.
    pub(super) fn set(&mut self, parameter: Parameter, value: f32) -> bool {
        if !self.has(parameter) || !value.is_finite() {
            return false;
        }
        self.values[parameter as usize] = parameter.stored(value);
        true
    }
    /// The calibration of channel 1..=8.
    pub(super) fn channel(&self, number: usize) -> Channel {
        let first = Parameter::RC1_MIN as usize + 5 * (number.clamp(1, 8) - 1);
        let at = |i: usize| self.get(ALL[first + i]);
        Channel { min_us: at(0), trim_us: at(1), max_us: at(2), reversed: at(3) > 0.0, dead_zone_us: at(4) }
    }
    /// The mode number of switch position 0..=5.
    pub(super) fn switch_mode(&self, position: usize) -> u32 {
        self.get(Self::of_switch(position)) as u32
    }
    /// The same, as the pilot set it up.
    pub(super) fn set_switch_mode(&mut self, position: usize, mode_number: u32) {
        self.set(Self::of_switch(position), mode_number as f32);
    }
    fn of_switch(position: usize) -> Parameter {
        Parameter::FLTMODE1.after(position.min(5)).unwrap_or(Parameter::FLTMODE1)
    }
    /// The parameter that holds the rate of a group of messages on a serial port.
    pub(super) fn stream_rate(serial: u8, group: Group) -> Parameter {
        let block = 9 * usize::from(serial.min(2)) + group as usize;
        Parameter::SR0_RAW_SENS.after(block).unwrap_or(Parameter::SR0_RAW_SENS)
    }
    /// The group of messages whose rate on `serial` is `parameter`.
    pub(super) fn group_of(serial: u8, parameter: Parameter) -> Option<Group> {
        Group::ALL.into_iter().find(|&g| Self::stream_rate(serial, g) == parameter)
    }

    /// What navigation obeys, in SI units. 3.5.7 has 3 s as a constant where 4.x has `GUID_TIMEOUT`.
    pub(super) fn nav(&self, profile: Profile) -> NavParameters {
        let cm = |p| self.get(p) / 100.0;
        let (loiter, climb) = match profile {
            Profile::Copter357 => (Parameter::WPNAV_LOIT_SPEED, Parameter::PILOT_VELZ_MAX),
            Profile::Copter462 => (Parameter::LOIT_SPEED, Parameter::PILOT_SPEED_UP),
        };
        let timeout =
            if self.has(Parameter::GUID_TIMEOUT) { self.get(Parameter::GUID_TIMEOUT).max(0.1) } else { 3.0 };
        // ArduCopter clamps what would divide by zero or never move.
        NavParameters {
            wpnav_speed_m_s: cm(Parameter::WPNAV_SPEED).max(0.2),
            wpnav_accel_m_s2: cm(Parameter::WPNAV_ACCEL).max(0.5),
            wpnav_radius_m: cm(Parameter::WPNAV_RADIUS).max(0.05),
            wpnav_speed_up_m_s: cm(Parameter::WPNAV_SPEED_UP).max(0.1),
            wpnav_speed_down_m_s: cm(Parameter::WPNAV_SPEED_DN).max(0.1),
            wpnav_accel_z_m_s2: cm(Parameter::WPNAV_ACCEL_Z).max(0.5),
            land_speed_m_s: cm(Parameter::LAND_SPEED).max(0.3),
            land_speed_high_m_s: cm(Parameter::LAND_SPEED_HIGH).max(0.0),
            loiter_speed_m_s: cm(loiter).max(0.2),
            angle_max_rad: (cm(Parameter::ANGLE_MAX).clamp(10.0, 80.0)).to_radians(),
            pilot_velocity_z_m_s: cm(climb).max(0.5),
            guided_timeout_s: timeout,
            yaw_behavior: self.get(Parameter::WP_YAW_BEHAVIOR).clamp(0.0, 3.0) as u8,
        }
    }

    /// The file `@PARAM/param.pck` (ArduPilot, `AP_Filesystem_Param`), of what `query` selects: `start`, `count` and
    /// `withdefaults`, joined by `&`. `None` where it selects nothing that there is. ArduPilot pads values to blocks of
    /// reading, so that one which changes meanwhile is never read in halves; this file does not change while it is read.
    pub(super) fn packed(&self, query: &str) -> Option<Vec<u8>> {
        const MAGIC: u16 = 0x671b;
        const MAGIC_WITH_DEFAULTS: u16 = 0x671c;
        let (mut start, mut count, mut with_defaults) = (0, 0, false);
        for word in query.split('&').filter(|word| !word.is_empty()) {
            match word.split_once('=')? {
                ("start", value) => start = value.parse::<u16>().ok()?.into(),
                ("count", value) => count = value.parse::<u16>().ok()?.into(),
                ("withdefaults", value) => with_defaults = value.parse::<u8>().ok().filter(|v| *v <= 1)? == 1,
                _ => {}
            }
        }
        let rest = self.listed.get(start..).filter(|rest| !rest.is_empty())?;
        let selected = if count == 0 { rest } else { &rest[..count.min(rest.len())] };
        let magic = if with_defaults { MAGIC_WITH_DEFAULTS } else { MAGIC };
        let numbers = [magic, selected.len() as u16, self.listed.len() as u16];
        let mut file: Vec<u8> = numbers.into_iter().flat_map(u16::to_le_bytes).collect();
        let mut last = "";
        for &parameter in selected {
            let (name, value) = (parameter.name(), self.get(parameter) as f32);
            let default = match self.profile {
                Profile::Copter357 => TABLE[parameter as usize].2,
                Profile::Copter462 => TABLE[parameter as usize].3,
            };
            let is_changed = with_defaults && value != default;
            let shared = name.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
            // Something of a name is always written.
            let shared = shared.min(name.len() - 1).min(15);
            file.push(parameter.packed_type() | u8::from(is_changed) << 4);
            file.push(shared as u8 | ((name.len() - shared - 1) as u8) << 4);
            file.extend_from_slice(&name.as_bytes()[shared..]);
            parameter.pack(value, &mut file);
            if is_changed {
                parameter.pack(default, &mut file);
            }
            last = name;
        }
        Some(file)
    }

    fn message(&self, parameter: Parameter, index: u16) -> MavMessage {
        MavMessage::PARAM_VALUE(PARAM_VALUE_DATA {
            param_value: self.get(parameter) as f32,
            param_count: self.listed.len() as u16,
            param_index: index,
            param_id: parameter.name().into(),
            param_type: parameter.mav_type(),
        })
    }
}

impl FlightController {
    pub(super) fn handle_param_request_list(&mut self) {
        self.parameters.list_next = Some(0);
    }

    pub(super) fn handle_param_request_read(&mut self, request: &PARAM_REQUEST_READ_DATA) {
        let message = if request.param_index >= 0 {
            let index = request.param_index as usize;
            self.parameters.listed.get(index).map(|&p| self.parameters.message(p, index as u16))
        } else {
            Parameter::from_name(text(&request.param_id[..]))
                .filter(|&p| self.parameters.has(p))
                .map(|p| self.parameters.message(p, INDEX_UNLISTED))
        };
        match message {
            Some(message) => self.send(&message),
            None => self.counters.unknown_parameters += 1,
        }
    }

    pub(super) fn handle_param_set(&mut self, request: &PARAM_SET_DATA) {
        let named = Parameter::from_name(text(&request.param_id[..]));
        let Some(parameter) = named.filter(|&p| self.parameters.set(p, request.param_value)) else {
            self.counters.unknown_parameters += 1;
            return;
        };
        self.parameter_changed(parameter);
        self.send(&self.parameters.message(parameter, INDEX_UNLISTED));
    }

    /// What follows from a new value. 4.x reads the stream rates at boot only.
    fn parameter_changed(&mut self, parameter: Parameter) {
        self.nav = self.parameters.nav(self.config.profile);
        if self.config.profile == Profile::Copter357
            && let Some(group) = Parameters::group_of(self.config.serial, parameter)
        {
            self.set_stream_rate(group, self.parameters.get(parameter));
        }
    }

    /// The next few parameters of a list that was asked for.
    pub(super) fn send_listed_parameters(&mut self) {
        let Some(next) = self.parameters.list_next else { return };
        let end = (next + LIST_PER_TICK).min(self.parameters.listed.len());
        for index in next..end {
            let message = self.parameters.message(self.parameters.listed[index], index as u16);
            self.send(&message);
        }
        self.parameters.list_next = (end < self.parameters.listed.len()).then_some(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_lists_its_own_parameters() {
        let old = Parameters::new(Profile::Copter357);
        let new = Parameters::new(Profile::Copter462);
        assert!(
            old.listed.len() > 120 && new.listed.len() > 120,
            "{} {}",
            old.listed.len(),
            new.listed.len()
        );
        assert!(!old.has(Parameter::GUID_TIMEOUT) && new.has(Parameter::GUID_TIMEOUT));
        assert!(TABLE.iter().all(|row| row.0.len() <= 16));
    }

    #[test]
    fn blocks_of_the_table_keep_their_distances() {
        assert_eq!(Parameters::stream_rate(2, Group::Extra3).name(), "SR2_EXTRA3");
        assert_eq!(Parameters::stream_rate(0, Group::RawSensors).name(), "SR0_RAW_SENS");
        assert_eq!(Parameters::group_of(1, Parameter::SR1_POSITION), Some(Group::Position));
        let mut p = Parameters::new(Profile::Copter357);
        assert!(p.set(Parameter::RC8_DZ, 7.0));
        assert_eq!(p.channel(8).dead_zone_us, 7.0);
        assert_eq!(p.channel(3).dead_zone_us, 30.0);
        assert_eq!(p.switch_mode(5), 0);
        assert_eq!(p.switch_mode(2), 6);
    }

    #[test]
    fn the_packed_file_holds_what_is_asked_for() {
        let mut p = Parameters::new(Profile::Copter462);
        p.set(Parameter::RTL_ALT, 2000.0);
        let all = p.packed("").unwrap();
        let word = |at: usize| usize::from(u16::from_le_bytes([all[at], all[at + 1]]));
        assert_eq!((word(0), word(2), word(4)), (0x671b, p.listed.len(), p.listed.len()));
        // 16 bits, nothing shared with nothing: FORMAT_VERSION is 120.
        assert_eq!(all[6..8], [2, 13 << 4]);
        assert_eq!(&all[8..22], b"FORMAT_VERSION");
        assert_eq!(all[22..24], [120, 0]);
        let one = p.packed("start=1&count=1").unwrap();
        assert_eq!(one[2..4], [1, 0]);
        assert_eq!(&one[8..], b"SYSID_THISMAV\x01\0");
        // Only what is not the default brings it.
        let longer = p.packed("withdefaults=1").unwrap();
        assert_eq!(longer.len(), all.len() + 2);
        for bad in ["start=60000", "start=x", "count=-1", "withdefaults=2", "start"] {
            assert_eq!(p.packed(bad), None, "{bad}");
        }
    }

    #[test]
    fn values_are_stored_as_their_type_and_nonsense_is_refused() {
        let mut p = Parameters::new(Profile::Copter357);
        assert!(p.set(Parameter::RTL_ALT, 1234.6));
        assert_eq!(p.get(Parameter::RTL_ALT), 1235.0);
        assert!(p.set(Parameter::RTL_ALT, 1e9));
        assert_eq!(p.get(Parameter::RTL_ALT), 32767.0);
        assert!(!p.set(Parameter::WPNAV_SPEED, f32::NAN));
        assert_eq!(p.nav(Profile::Copter357).wpnav_speed_m_s, 5.0);
    }
}
