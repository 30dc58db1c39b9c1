//! The packets between ArduCopter 4.x's model `JSON` and a simulator (`libraries/SITL/examples/JSON/readme.md` and
//! `SIM_JSON.h` and `.cpp` of ArduPilot): outputs as a structure in little-endian order, sensors as a line of text.
//!
//! The outputs have a number, which grows by one for each answer. A program that waits repeats its outputs each second with the
//! same number, so no answer is given twice.

use wingbeat_sim::rigid::MOTORS;

use crate::gazebo::OUTPUTS;
use crate::proxy::State;

/// What begins a packet of sixteen outputs, and one of thirty-two (`SERVO_32_ENABLE`).
const MAGIC: [(u16, usize); 2] = [(18_458, 16), (29_569, 32)];
/// Length of what stands before the outputs: the mark, the rate, the number.
const HEAD_LEN: usize = 8;
/// Length of the packet of sixteen outputs.
pub const OUTPUTS_LEN: usize = HEAD_LEN + 16 * 2;
/// Length of the longest packet.
pub const OUTPUTS_LEN_MOST: usize = HEAD_LEN + 32 * 2;

/// SITL of either version cuts the difference of two time stamps to whole microseconds: it must not fall below them.
pub(crate) const STAMP_FACTOR: f64 = 1.0 + 1e-9;

/// A packet of outputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outputs {
    /// How many answers the program has had.
    pub number: u32,
    /// The first sixteen outputs, microseconds: 0 is no pulse.
    pub pulses_us: [u16; OUTPUTS],
    /// The outputs of the motors, 0 to 1 for pulses of 1000 to 2000 µs; below 0 without pulses.
    pub motors: [f64; MOTORS],
}

/// Reads a packet of outputs. `None` if it is no such packet.
pub fn outputs(packet: &[u8]) -> Option<Outputs> {
    let (head, pulses) = packet.split_at_checked(HEAD_LEN)?;
    let magic = u16::from_le_bytes([head[0], head[1]]);
    let (_, count) = MAGIC.into_iter().find(|(known, _)| *known == magic)?;
    (pulses.len() == count * 2).then_some(())?;
    let mut pulses_us = [0; OUTPUTS];
    for (pulse_us, pulse) in pulses_us.iter_mut().zip(pulses.chunks_exact(2)) {
        *pulse_us = u16::from_le_bytes([pulse[0], pulse[1]]);
    }
    let mut motors = [0.0; MOTORS];
    for (motor, pulse_us) in motors.iter_mut().zip(pulses_us) {
        *motor = (f64::from(pulse_us) - 1000.0) / 1000.0;
    }
    Some(Outputs { number: u32::from_le_bytes([head[4], head[5], head[6], head[7]]), pulses_us, motors })
}

/// What the sensors measure at a time: seconds, turn rate and specific force (forward, right, down), position and velocity
/// (north, east, down of home), attitude as a quaternion (scalar first). `no_time_sync`: the program does not wait for the
/// clock of the wall.
///
/// The program looks for a whole line, so one begins and ends it. Numbers are written without exponents, as many
/// digits as tell them apart.
pub fn sensors(state: &State) -> String {
    let State { time_s, rate_rad_s: rate, force_m_s2: force, attitude, .. } = *state;
    let (velocity, position) = (state.velocity_ned, state.position_ned);
    format!(
        "\n{{\"timestamp\":{time_s},\"imu\":{{\"gyro\":[{},{},{}],\"accel_body\":[{},{},{}]}},\"position\":[{},{},{}],\
         \"quaternion\":[{},{},{},{}],\"velocity\":[{},{},{}],\"no_time_sync\":1}}\n",
        rate.x,
        rate.y,
        rate.z,
        force.x,
        force.y,
        force.z,
        position.x,
        position.y,
        position.z,
        attitude.w,
        attitude.x,
        attitude.y,
        attitude.z,
        velocity.x,
        velocity.y,
        velocity.z
    )
}

#[cfg(test)]
mod tests {
    use wingbeat_geo::DVec3;
    use wingbeat_sim::motion::BatteryParameters;
    use wingbeat_sim::rigid::{Body, Rigid};

    use super::*;

    fn packet(magic: u16, number: u32, pulses: &[u16]) -> Vec<u8> {
        let head = magic.to_le_bytes().into_iter().chain([0x90, 0x01]).chain(number.to_le_bytes());
        head.chain(pulses.iter().flat_map(|pulse| pulse.to_le_bytes())).collect()
    }

    #[test]
    fn outputs_are_the_first_four_pulses_behind_the_number() {
        let mut pulses = [1000; 16];
        pulses[..5].copy_from_slice(&[1500, 2000, 1000, 0, 1700]);
        let found = outputs(&packet(18_458, 70_000, &pulses)).unwrap();
        assert_eq!(found, Outputs { number: 70_000, pulses_us: pulses, motors: [0.5, 1.0, 0.0, -1.0] });
        let mut wide = [1000; 32];
        wide[2] = 1250;
        let found = outputs(&packet(29_569, 1, &wide)).unwrap();
        assert_eq!((found.number, found.motors), (1, [0.0, 0.0, 0.25, 0.0]));
        assert_eq!(found.pulses_us, wide[..16]);
    }

    #[test]
    fn other_packets_are_none() {
        let fine = packet(18_458, 1, &[1000; 16]);
        assert!(outputs(&fine).is_some());
        assert_eq!(fine.len(), OUTPUTS_LEN);
        for bad in [
            &fine[..39],
            &[],
            &fine[..7],
            &packet(18_457, 1, &[1000; 16]),
            &packet(18_458, 1, &[1000; 32]),
            &packet(29_569, 1, &[1000; 16]),
            &[0; crate::gazebo::OUTPUTS_LEN],
        ] {
            assert_eq!(outputs(bad), None, "{bad:?}");
        }
    }

    /// The value of a key as ArduPilot's own reader finds it: behind the key's first occurrence, a quote and a colon.
    fn values(line: &str, key: &str) -> Vec<f64> {
        let text = &line[line.find(key).unwrap() + key.len() + 2..];
        let text = text.strip_prefix('[').unwrap_or(text);
        text.split([']', '}']).next().unwrap().split(',').map_while(|word| word.parse().ok()).collect()
    }

    #[test]
    fn sensors_are_one_line_that_ardupilots_reader_takes_apart() {
        let mut body = Rigid::new(Body::default(), BatteryParameters::default(), 0.7);
        for _ in 0..200 {
            body.step(0.0025, [0.8, 0.79, 0.8, 0.8], DVec3::new(4.0, 0.0, 0.0));
        }
        // In the air, and turning: no value is one that stands.
        assert!(!body.is_on_ground() && body.rate_rad_s().x.abs() > 0.01 && body.velocity_ned().y > 0.1);
        let line = sensors(&crate::gazebo::measured(1.25e-9, &body));
        assert!(
            line.starts_with("\n{") && line.ends_with("}\n") && line.matches('\n').count() == 2,
            "{line}"
        );
        assert!(!line.contains("e-"), "an exponent: {line}");
        assert_eq!(values(&line, "timestamp"), [1.25e-9]);
        let three = |v: DVec3| vec![v.x, v.y, v.z];
        assert_eq!(values(&line, "gyro"), three(body.rate_rad_s()));
        assert_eq!(values(&line, "accel_body"), three(body.specific_force_m_s2()));
        assert_eq!(values(&line, "position"), three(body.position_ned()));
        assert_eq!(values(&line, "velocity"), three(body.velocity_ned()));
        let turn = body.attitude();
        assert_eq!(values(&line, "quaternion"), [turn.w, turn.x, turn.y, turn.z]);
        assert_eq!(values(&line, "no_time_sync"), [1.0]);
        assert!(!line.contains("no_lockstep") && !line.contains("attitude"), "{line}");
        assert!(values(&line, "position")[2] < -0.3, "up is negative: {line}");
    }
}
