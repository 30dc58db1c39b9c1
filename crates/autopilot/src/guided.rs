//! Guided targets that are streamed: position with velocity, with acceleration, velocity alone. Nothing
//! answers them; the caller sends them periodically, and when it stops, ArduCopter stops the aircraft
//! three seconds after the last one.
//!
//! A position alone is a job with proof: [`crate::target`].

// MAVLink deprecates the _INT frame names, which 3.5.7 needs.
#![allow(deprecated)]

use wingbeat_geo::{DVec3, Instant};

use crate::codec::BufferFull;
use crate::dialect::{
    MavFrame, MavMessage, PositionTargetTypemask, SET_POSITION_TARGET_GLOBAL_INT_DATA,
    SET_POSITION_TARGET_LOCAL_NED_DATA,
};
use crate::job::{AUTOPILOT_COMPONENT_ID, Transmit};
use crate::target::RelativePosition;
use crate::telemetry::Version;

/// Position only (<https://mavlink.io/en/messages/common.html#POSITION_TARGET_TYPEMASK>): a set bit names
/// what is ignored. Yaw and its rate are always ignored.
pub const POSITION: PositionTargetTypemask = PositionTargetTypemask::from_bits_retain(0x0df8);
/// Velocity only.
pub const VELOCITY: PositionTargetTypemask = PositionTargetTypemask::from_bits_retain(0x0dc7);
/// Position and velocity.
pub const POSITION_VELOCITY: PositionTargetTypemask = PositionTargetTypemask::from_bits_retain(0x0dc0);
/// Position, velocity and acceleration.
pub const POSITION_VELOCITY_ACCELERATION: PositionTargetTypemask =
    PositionTargetTypemask::from_bits_retain(0x0c00);

/// Whether this version flies accelerations: 3.5.7 refuses a target that has one.
pub fn takes_acceleration(version: Version) -> bool {
    version.major >= 4
}

fn global(
    now: Instant,
    mask: PositionTargetTypemask,
    position: RelativePosition,
    velocity_m_s: DVec3,
    system: u8,
) -> MavMessage {
    MavMessage::SET_POSITION_TARGET_GLOBAL_INT(SET_POSITION_TARGET_GLOBAL_INT_DATA {
        time_boot_ms: now.as_millis() as u32,
        lat_int: position.latitude_e7,
        lon_int: position.longitude_e7,
        alt: position.height_mm as f32 * 1e-3,
        // North, east, down.
        vx: velocity_m_s.y as f32,
        vy: velocity_m_s.x as f32,
        vz: -velocity_m_s.z as f32,
        afx: 0.0,
        afy: 0.0,
        afz: 0.0,
        yaw: 0.0,
        yaw_rate: 0.0,
        type_mask: mask,
        target_system: system,
        target_component: AUTOPILOT_COMPONENT_ID,
        coordinate_frame: MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT_INT,
    })
}

/// Be at this position and move with this velocity (east, north, up).
///
/// # Errors
/// No room; the next target of the stream replaces it.
pub fn position_velocity(
    now: Instant,
    position: RelativePosition,
    velocity_m_s: DVec3,
    transmit: &mut Transmit<'_>,
) -> Result<(), BufferFull> {
    transmit.send(&global(now, POSITION_VELOCITY, position, velocity_m_s, transmit.system_id))
}

/// Move with this velocity (east, north, up).
///
/// # Errors
/// As [`position_velocity`].
pub fn velocity(now: Instant, velocity_m_s: DVec3, transmit: &mut Transmit<'_>) -> Result<(), BufferFull> {
    let ignored = RelativePosition { latitude_e7: 0, longitude_e7: 0, height_mm: 0 };
    transmit.send(&global(now, VELOCITY, ignored, velocity_m_s, transmit.system_id))
}

/// Be at this position (east and north of the estimate's origin, up from home), move with this velocity and
/// acceleration. 4.x flies it, and only from this message: of a global target it drops the acceleration.
///
/// # Errors
/// As [`position_velocity`].
pub fn position_velocity_acceleration(
    now: Instant,
    position_m: DVec3,
    velocity_m_s: DVec3,
    acceleration_m_s2: DVec3,
    transmit: &mut Transmit<'_>,
) -> Result<(), BufferFull> {
    let ned = |v: DVec3| (v.y as f32, v.x as f32, -v.z as f32);
    let ((x, y, z), (vx, vy, vz)) = (ned(position_m), ned(velocity_m_s));
    let (afx, afy, afz) = ned(acceleration_m_s2);
    transmit.send(&MavMessage::SET_POSITION_TARGET_LOCAL_NED(SET_POSITION_TARGET_LOCAL_NED_DATA {
        time_boot_ms: now.as_millis() as u32,
        x,
        y,
        z,
        vx,
        vy,
        vz,
        afx,
        afy,
        afz,
        yaw: 0.0,
        yaw_rate: 0.0,
        type_mask: POSITION_VELOCITY_ACCELERATION,
        target_system: transmit.system_id,
        target_component: AUTOPILOT_COMPONENT_ID,
        coordinate_frame: MavFrame::MAV_FRAME_LOCAL_NED,
    }))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::codec::{FRAME_LEN_MAX, MavHeader, encode_v2};
    use crate::job::testing::sent;
    use std::vec::Vec;

    const POSITION: RelativePosition =
        RelativePosition { latitude_e7: 394_825_940, longitude_e7: -3_462_650, height_mm: 20_000 };

    /// The payload as numbers of four bytes, little end first, then the tail of single bytes.
    fn payload(message: &MavMessage) -> Vec<u8> {
        let mut bytes = heapless::Vec::<u8, FRAME_LEN_MAX>::new();
        encode_v2(MavHeader { system_id: 1, component_id: 191, sequence: 0 }, message, &mut bytes).unwrap();
        bytes[10..bytes.len() - 2].to_vec()
    }

    fn expected(fields: &[[u8; 4]], mask: u16, frame: u8) -> Vec<u8> {
        let mut bytes = fields.concat();
        bytes.extend(mask.to_le_bytes());
        bytes.extend([1, 1, frame]);
        bytes
    }

    fn f(number: f32) -> [u8; 4] {
        number.to_le_bytes()
    }

    #[test]
    fn golden_bytes_of_every_mask() {
        let now = Instant::from_millis(0x0102_0304);
        let v = DVec3::new(3.0, 4.0, 1.0);
        let zero = f(0.0);
        let (time, lat, lon) = ([4, 3, 2, 1], [0xd4, 0x90, 0x88, 0x17], [0x06, 0x2a, 0xcb, 0xff]);
        assert_eq!((lat, lon), (POSITION.latitude_e7.to_le_bytes(), POSITION.longitude_e7.to_le_bytes()));
        let ned = [f(4.0), f(3.0), f(-1.0)];
        let messages = sent(|t| {
            position_velocity(now, POSITION, v, t).unwrap();
            velocity(now, v, t).unwrap();
            position_velocity_acceleration(now, DVec3::new(7.0, 8.0, 9.0), v, DVec3::new(0.5, 0.25, 0.0), t)
                .unwrap();
        });
        let fields = [&[time, lat, lon, f(20.0)][..], &ned, &[zero; 5]].concat();
        assert_eq!(payload(&messages[0]), expected(&fields, 0x0dc0, 6));
        let fields = [&[time, zero, zero, zero][..], &ned, &[zero; 5]].concat();
        assert_eq!(payload(&messages[1]), expected(&fields, 0x0dc7, 6));
        let position = [time, f(8.0), f(7.0), f(-9.0)];
        let fields = [&position[..], &ned, &[f(0.25), f(0.5), f(-0.0), zero, zero]].concat();
        assert_eq!(payload(&messages[2]), expected(&fields, 0x0c00, 1));
    }

    #[test]
    fn only_4_x_takes_accelerations() {
        let version = |major, minor, patch| Version { major, minor, patch };
        assert!(!takes_acceleration(version(3, 5, 7)) && takes_acceleration(version(4, 6, 2)));
    }
}
