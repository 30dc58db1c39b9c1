//! ArduCopter: its flight modes, their numbers, and its quirks, among them what its versions call their parameters.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::identity::Version;

/// ArduCopter's flight modes that Wingbeat uses, with their numbers in `HEARTBEAT.custom_mode`
/// (<https://ardupilot.org/copter/docs/parameters.html#fltmode1>).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Mode {
    Stabilize = 0,
    AltHold = 2,
    Auto = 3,
    Guided = 4,
    Loiter = 5,
    Rtl = 6,
    Land = 9,
    #[strum(serialize = "POSHOLD")]
    PosHold = 16,
    Brake = 17,
    SmartRtl = 21,
}

impl Mode {
    /// The mode of a number, if it is one of these.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|mode| mode.number() == number)
    }
    /// The number in `HEARTBEAT.custom_mode`.
    pub const fn number(self) -> u32 {
        self as u32
    }
    /// ArduCopter's name of the mode.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A parameter of two names, by the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The name that is asked for first: that of 4.1 to 4.6.
    pub usual: &'static str,
    /// The other.
    pub other: &'static str,
    /// How many of the usual one's unit one of the other's is: 100 where centimetres became metres.
    pub unit: u16,
}

const fn renamed(usual: &'static str, other: &'static str, unit: u16) -> Renamed {
    Renamed { usual, other, unit }
}

/// The parameters that versions name otherwise, of those that Wingbeat reads and writes: the second name is that of 4.7
/// (<https://ardupilot.org/copter/docs/common-param-name-changes.html>), or of 3.5. An aircraft is asked for both, and the
/// one that it has is used. The heights of the return have rows of their own, because their type changed with their name.
pub const RENAMED: &[Renamed] = &[
    renamed("SYSID_THISMAV", "MAV_SYSID", 1),
    renamed("SYSID_MYGCS", "MAV_GCS_SYSID", 1),
    // Its lowest bit.
    renamed("SYSID_ENFORCE", "MAV_OPTIONS", 1),
    // Its bits are inverted.
    renamed("ARMING_CHECK", "ARMING_SKIPCHK", 1),
    renamed("WPNAV_SPEED", "WP_SPD", 100),
    renamed("WPNAV_SPEED_UP", "WP_SPD_UP", 100),
    renamed("WPNAV_SPEED_DN", "WP_SPD_DN", 100),
    renamed("WPNAV_RADIUS", "WP_RADIUS_M", 100),
    renamed("LOIT_SPEED", "LOIT_SPEED_MS", 100),
    renamed("BATT_FS_LOW_ACT", "FS_BATT_ENABLE", 1),
    renamed("BATT_LOW_VOLT", "FS_BATT_VOLTAGE", 1),
    renamed("BATT_LOW_MAH", "FS_BATT_MAH", 1),
];

/// Whether motion is shaped: velocities, accelerations and their changes are bounded, and a stop takes longer than before. So it
/// is since 4.1; of an unknown version the same is assumed, which is the more careful.
pub fn shapes_motion(version: Option<Version>) -> bool {
    version.is_none_or(|version| (version.major, version.minor) >= (4, 1))
}

/// Whether the vertical speed of GLOBAL_POSITION_INT is positive downwards, as MAVLink has it. Before 3.6 ArduCopter sent it
/// positive upwards (<https://github.com/ArduPilot/ardupilot/pull/7672>); of an unknown version MAVLink's is assumed.
pub fn reports_downward_speed(version: Option<Version>) -> bool {
    version.is_none_or(|version| (version.major, version.minor) >= (3, 6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn motion_is_shaped_since_4_1_and_where_the_version_is_not_known() {
        let version = |major, minor| Some(Version { major, minor, patch: 0 });
        let found = [version(3, 5), version(4, 0), version(4, 1), version(4, 7), version(5, 0), None];
        assert_eq!(found.map(shapes_motion), [false, false, true, true, true, true]);
    }

    #[test]
    fn vertical_speed_is_downward_since_3_6_and_where_the_version_is_not_known() {
        let version = |major, minor| Some(Version { major, minor, patch: 7 });
        let found = [version(3, 4), version(3, 5), version(3, 6), version(4, 0), None];
        assert_eq!(found.map(reports_downward_speed), [false, false, true, true, true]);
    }

    #[test]
    fn every_mode_has_arducopters_number_and_name() {
        let found = Mode::VARIANTS.iter().map(|mode| (mode.number(), mode.name()));
        let expected = [
            (0, "STABILIZE"),
            (2, "ALT_HOLD"),
            (3, "AUTO"),
            (4, "GUIDED"),
            (5, "LOITER"),
            (6, "RTL"),
            (9, "LAND"),
            (16, "POSHOLD"),
            (17, "BRAKE"),
            (21, "SMART_RTL"),
        ];
        assert!(found.eq(expected), "{:?}", Mode::VARIANTS);
        assert!(expected.iter().all(|&(number, _)| Mode::from_number(number).is_some()));
        assert_eq!(Mode::from_number(1), None);
    }
}
