//! The packets between ArduCopter 3.5's model `gazebo` and a simulator (`libraries/SITL/SIM_Gazebo.h` and `.cpp` of ArduPilot,
//! branch Copter-3.5): plain structures in the byte order of the machine, which is little-endian here as there.
//!
//! Neither has a number. The program repeats the outputs after each 100 ms of waiting for an answer, so an answer too many
//! would put the two out of step; [`crate::copter`] prevents that.

use wingbeat_sim::rigid::{MOTORS, Rigid};

use crate::proxy::State;

/// Outputs in a packet.
pub const OUTPUTS: usize = 16;
/// Length of the outputs' packet: sixteen 32-bit numbers.
pub const OUTPUTS_LEN: usize = OUTPUTS * 4;
/// Length of the sensors' packet: seventeen 64-bit numbers.
pub const SENSORS_LEN: usize = 17 * 8;

/// The outputs of the motors, 0 to 1 for pulses of 1000 to 2000 µs. `None` if it is no such packet.
pub fn outputs(packet: &[u8]) -> Option<[f64; MOTORS]> {
    let packet: &[u8; OUTPUTS_LEN] = packet.try_into().ok()?;
    let mut motors = [0.0; MOTORS];
    for (motor, bytes) in motors.iter_mut().zip(packet.chunks_exact(4)) {
        *motor = f64::from(f32::from_le_bytes(bytes.try_into().ok()?));
    }
    Some(motors)
}

/// All outputs as pulses, microseconds: 0 is no pulse. `None` if it is no such packet.
pub fn pulses_us(packet: &[u8]) -> Option<[u16; OUTPUTS]> {
    let packet: &[u8; OUTPUTS_LEN] = packet.try_into().ok()?;
    let mut pulses = [0; OUTPUTS];
    for (pulse, bytes) in pulses.iter_mut().zip(packet.chunks_exact(4)) {
        *pulse = (f32::from_le_bytes(bytes.try_into().ok()?) * 1000.0 + 1000.0).round() as u16;
    }
    Some(pulses)
}

/// What sensors without errors measure of our physics at a time.
pub fn measured(time_s: f64, body: &Rigid) -> State {
    State {
        time_s,
        rate_rad_s: body.rate_rad_s(),
        force_m_s2: body.specific_force_m_s2(),
        attitude: body.attitude(),
        velocity_ned: body.velocity_ned(),
        position_ned: body.position_ned(),
    }
}

/// The packet of what the sensors measure at a time: seconds, turn rate and specific force (forward, right, down), attitude as a quaternion
/// (scalar first), velocity and position (north, east, down of home).
pub fn sensors(state: &State) -> [u8; SENSORS_LEN] {
    let State { time_s, rate_rad_s: rate, force_m_s2: force, attitude, .. } = *state;
    let (velocity, position) = (state.velocity_ned, state.position_ned);
    let fields: [f64; 17] = [
        time_s, rate.x, rate.y, rate.z, force.x, force.y, force.z, attitude.w, attitude.x, attitude.y,
        attitude.z, velocity.x, velocity.y, velocity.z, position.x, position.y, position.z,
    ];
    let mut packet = [0; SENSORS_LEN];
    for (bytes, field) in packet.chunks_exact_mut(8).zip(fields) {
        bytes.copy_from_slice(&field.to_le_bytes());
    }
    packet
}

#[cfg(test)]
mod tests {
    use wingbeat_geo::DVec3;
    use wingbeat_sim::motion::BatteryParameters;
    use wingbeat_sim::rigid::Body;

    use super::*;

    #[test]
    fn outputs_are_the_first_four_little_endian_numbers_of_a_whole_packet() {
        let mut packet = [0u8; OUTPUTS_LEN];
        // 0.5, 1.0, 0.0, -1.0 (no pulse at all) as IEEE 754 binary32.
        packet[..16].copy_from_slice(&[0, 0, 0, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0, 0, 0x80, 0xbf]);
        assert_eq!(outputs(&packet), Some([0.5, 1.0, 0.0, -1.0]));
        assert_eq!(pulses_us(&packet).unwrap()[..5], [1500, 2000, 1000, 0, 1000]);
        assert_eq!(pulses_us(&packet[1..]), None);
        assert_eq!(outputs(&packet[..63]), None);
        assert_eq!(outputs(&[0; 65]), None);
        assert_eq!(outputs(&[]), None);
    }

    #[test]
    fn sensors_are_seventeen_little_endian_numbers_in_ardupilots_order() {
        let body = Rigid::new(Body::default(), BatteryParameters::default(), 0.0);
        let packet = sensors(&measured(1.5, &body));
        let field = |i: usize| &packet[i * 8..i * 8 + 8];
        // 1.5 and -9.80665 as IEEE 754 binary64.
        assert_eq!(field(0), [0, 0, 0, 0, 0, 0, 0xf8, 0x3f]);
        assert_eq!(field(6), [0x05, 0xa3, 0x92, 0x3a, 0x01, 0x9d, 0x23, 0xc0]);
        // The unit quaternion, scalar first.
        assert_eq!(field(7), [0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        let zeroes = [1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
        assert!(zeroes.iter().all(|&i| field(i) == [0; 8] || field(i) == (-0.0f64).to_le_bytes()));
    }

    #[test]
    fn a_climb_to_the_east_is_seen_down_and_east() {
        let mut body = Rigid::new(Body::default(), BatteryParameters::default(), 0.0);
        for _ in 0..800 {
            body.step(0.0025, [0.8; 4], DVec3::new(4.0, 0.0, 0.0));
        }
        let packet = sensors(&measured(2.0, &body));
        let field = |i: usize| f64::from_le_bytes(packet[i * 8..i * 8 + 8].try_into().unwrap());
        assert!(field(12) > 1.0 && field(13) < -3.0, "{} {}", field(12), field(13));
        assert!(field(15) > 0.5 && field(16) < -3.0, "{} {}", field(15), field(16));
        assert!(field(11).abs() < 1e-9 && field(14).abs() < 1e-9);
    }
}
