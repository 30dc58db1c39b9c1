//! When the reference implementation would write to its flight controller.

use wingbeat_autopilot::codec::Decoder;
use wingbeat_autopilot::dialect::MavMessage;

/// Whether one of these frames would have come to the reference implementation too, which writes only after it has
/// read a frame. It asks for positions four times a second and for the extended status once, which ArduCopter 3.5.7
/// sends all together, so that one of that group stands for all. Other streams are requested by our agent alone.
pub(crate) fn lets_the_reference_write(frames: &[u8]) -> bool {
    let mut lets = false;
    Decoder::default().push(frames, |frame| {
        lets |= !matches!(
            frame.message,
            MavMessage::GPS_RAW_INT(_)
                | MavMessage::NAV_CONTROLLER_OUTPUT(_)
                | MavMessage::POSITION_TARGET_GLOBAL_INT(_)
                | MavMessage::EKF_STATUS_REPORT(_)
                | MavMessage::BATTERY_STATUS(_)
        );
    });
    lets
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_autopilot::codec::{MavHeader, encode_v2};
    use wingbeat_autopilot::dialect::{
        BATTERY_STATUS_DATA, COMMAND_ACK_DATA, EKF_STATUS_REPORT_DATA, GLOBAL_POSITION_INT_DATA,
        HEARTBEAT_DATA, NAV_CONTROLLER_OUTPUT_DATA, SYS_STATUS_DATA,
    };

    #[test]
    fn streams_that_only_our_agent_requests_do_not_trigger_a_write() {
        let frames = |messages: &[MavMessage]| {
            let header = MavHeader { system_id: 1, component_id: 1, sequence: 0 };
            let mut all = Vec::new();
            for message in messages {
                let mut frame = heapless::Vec::<u8, 280>::new();
                encode_v2(header, message, &mut frame).unwrap();
                all.extend_from_slice(&frame);
            }
            all
        };
        let ours = [
            MavMessage::NAV_CONTROLLER_OUTPUT(NAV_CONTROLLER_OUTPUT_DATA::DEFAULT),
            MavMessage::EKF_STATUS_REPORT(EKF_STATUS_REPORT_DATA::DEFAULT),
            MavMessage::BATTERY_STATUS(BATTERY_STATUS_DATA::DEFAULT),
        ];
        assert!(!lets_the_reference_write(&frames(&ours)));
        for message in [
            MavMessage::HEARTBEAT(HEARTBEAT_DATA::DEFAULT),
            MavMessage::GLOBAL_POSITION_INT(GLOBAL_POSITION_INT_DATA::DEFAULT),
            MavMessage::SYS_STATUS(SYS_STATUS_DATA::DEFAULT),
            MavMessage::COMMAND_ACK(COMMAND_ACK_DATA::DEFAULT),
        ] {
            let [nav, ekf, battery] = ours.clone();
            assert!(lets_the_reference_write(&frames(&[nav, message, ekf, battery])));
        }
    }
}
