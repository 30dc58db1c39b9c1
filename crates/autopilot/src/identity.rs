//! What answers on the line: which autopilot on which vehicle, its firmware, and what it can do.

use core::fmt;

use crate::dialect::{AUTOPILOT_VERSION_DATA, HEARTBEAT_DATA, MavAutopilot, MavProtocolCapability, MavType};

/// Version of the autopilot's firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Major.
    pub major: u8,
    /// Minor.
    pub minor: u8,
    /// Patch.
    pub patch: u8,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Types of systems that fly nothing. Some of them name an autopilot nevertheless: mavp2p before 1.2.0 is a ground
/// station with a generic autopilot, ArduPilot's antenna tracker runs ArduPilot.
const OTHERS: [MavType; 20] = [
    MavType::MAV_TYPE_ANTENNA_TRACKER,
    MavType::MAV_TYPE_GCS,
    MavType::MAV_TYPE_ONBOARD_CONTROLLER,
    MavType::MAV_TYPE_GIMBAL,
    MavType::MAV_TYPE_ADSB,
    MavType::MAV_TYPE_CAMERA,
    MavType::MAV_TYPE_CHARGING_STATION,
    MavType::MAV_TYPE_FLARM,
    MavType::MAV_TYPE_SERVO,
    MavType::MAV_TYPE_ODID,
    MavType::MAV_TYPE_BATTERY,
    MavType::MAV_TYPE_PARACHUTE,
    MavType::MAV_TYPE_LOG,
    MavType::MAV_TYPE_OSD,
    MavType::MAV_TYPE_IMU,
    MavType::MAV_TYPE_GPS,
    MavType::MAV_TYPE_WINCH,
    MavType::MAV_TYPE_ILLUMINATOR,
    MavType::MAV_TYPE_GRIPPER,
    MavType::MAV_TYPE_RADIO,
];

/// Autopilot and vehicle, as a heartbeat names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vehicle {
    /// MAV_AUTOPILOT.
    pub autopilot: u8,
    /// MAV_TYPE.
    pub kind: u8,
}

impl Vehicle {
    /// Returns what a heartbeat names; `None` if its sender is no flight controller: a ground station, a router, an antenna
    /// tracker, a gimbal, a companion.
    pub fn of(m: &HEARTBEAT_DATA) -> Option<Self> {
        let is_autopilot = m.autopilot != MavAutopilot::MAV_AUTOPILOT_INVALID && !OTHERS.contains(&m.mavtype);
        is_autopilot.then_some(Self { autopilot: m.autopilot as u8, kind: m.mavtype as u8 })
    }
    /// Whether it is ArduCopter: ArduPilot on a multicopter or a helicopter.
    pub fn is_copter(self) -> bool {
        const ROTORS: [MavType; 8] = [
            MavType::MAV_TYPE_QUADROTOR,
            MavType::MAV_TYPE_HEXAROTOR,
            MavType::MAV_TYPE_OCTOROTOR,
            MavType::MAV_TYPE_DECAROTOR,
            MavType::MAV_TYPE_TRICOPTER,
            MavType::MAV_TYPE_COAXIAL,
            MavType::MAV_TYPE_DODECAROTOR,
            MavType::MAV_TYPE_HELICOPTER,
        ];
        self.autopilot == MavAutopilot::MAV_AUTOPILOT_ARDUPILOTMEGA as u8
            && ROTORS.iter().any(|&kind| kind as u8 == self.kind)
    }
}

impl fmt::Display for Vehicle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.autopilot {
            0 => f.write_str("a generic autopilot")?,
            3 => f.write_str("ArduPilot")?,
            12 => f.write_str("PX4")?,
            other => write!(f, "autopilot {other}")?,
        }
        f.write_str(" on ")?;
        match self.kind {
            0 => f.write_str("a generic vehicle"),
            1 => f.write_str("a fixed wing"),
            2 => f.write_str("a quadrotor"),
            3 => f.write_str("a coaxial helicopter"),
            4 => f.write_str("a helicopter"),
            10 => f.write_str("a rover"),
            11 => f.write_str("a boat"),
            12 => f.write_str("a submarine"),
            13 => f.write_str("a hexarotor"),
            14 => f.write_str("an octorotor"),
            15 => f.write_str("a tricopter"),
            19..=25 => f.write_str("a VTOL"),
            other => write!(f, "vehicle type {other}"),
        }
    }
}

/// The contents of AUTOPILOT_VERSION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Firmware {
    /// Version.
    pub version: Version,
    /// MAV_PROTOCOL_CAPABILITY bits.
    pub capabilities: u64,
    /// Board version as the firmware numbers it; 0 where it does not.
    pub board_version: u32,
    /// Hardware id; 0 where it has none.
    pub uid: u64,
}

impl Firmware {
    /// From the message.
    pub fn of(m: &AUTOPILOT_VERSION_DATA) -> Self {
        let [_, patch, minor, major] = m.flight_sw_version.to_le_bytes();
        Self {
            version: Version { major, minor, patch },
            capabilities: m.capabilities.bits(),
            board_version: m.board_version,
            uid: m.uid,
        }
    }
    /// Whether it announces this capability.
    pub fn can(&self, capability: MavProtocolCapability) -> bool {
        self.capabilities & capability.bits() != 0
    }
    /// Whether fence points travel as a mission of their own kind.
    pub fn has_fence_missions(&self) -> bool {
        self.can(MavProtocolCapability::MAV_PROTOCOL_CAPABILITY_MISSION_FENCE)
    }
    /// Whether rally points travel as a mission of their own kind.
    pub fn has_rally_missions(&self) -> bool {
        self.can(MavProtocolCapability::MAV_PROTOCOL_CAPABILITY_MISSION_RALLY)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn only_ardupilot_on_rotors_is_arducopter() {
        let vehicle = |autopilot, kind| Vehicle { autopilot, kind };
        assert!(vehicle(3, 2).is_copter() && vehicle(3, 13).is_copter() && vehicle(3, 4).is_copter());
        for (other, text) in [
            (vehicle(12, 2), "PX4 on a quadrotor"),
            (vehicle(3, 1), "ArduPilot on a fixed wing"),
            (vehicle(9, 42), "autopilot 9 on vehicle type 42"),
        ] {
            assert!(!other.is_copter());
            assert_eq!(other.to_string(), text);
        }
    }

    #[test]
    fn what_the_versions_can_do() {
        // As 3.5.7 and 4.6.2 answer (autopilot.md: 0x1bcf and 0xfbef).
        let firmware = |flight_sw_version, bits| {
            Firmware::of(&AUTOPILOT_VERSION_DATA {
                flight_sw_version,
                capabilities: MavProtocolCapability::from_bits_retain(bits),
                ..AUTOPILOT_VERSION_DATA::DEFAULT
            })
        };
        let (old, new) = (firmware(0x0305_07ff, 0x1bcf), firmware(0x0406_02ff, 0xfbef));
        assert_eq!((old.version.to_string(), new.version.to_string()), ("3.5.7".into(), "4.6.2".into()));
        assert!(new.has_fence_missions() && new.has_rally_missions());
        assert!(!old.has_fence_missions() && !old.has_rally_missions());
    }
}
