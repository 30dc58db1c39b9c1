//! Which messages command: all but those of a list.

use mavlink::Message as _;

use super::{Refusal, Text, Verdict, explain, text};
use crate::codec;
use crate::copter::Mode;
use crate::dialect::{FILE_TRANSFER_PROTOCOL_DATA, MavCmd, MavMessage};

/// The system that a message is addressed to; none or 0 is every system.
pub(super) fn target(message: &MavMessage) -> Option<u8> {
    message.target_system_id()
}

/// What a message commands, in one line; `None` for one that only reads, requests, answers or corrects.
#[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
pub fn command_of(message: &MavMessage) -> Option<Text> {
    match message {
        MavMessage::COMMAND_LONG(m) => command(m.command),
        MavMessage::COMMAND_INT(m) => command(m.command),
        MavMessage::SET_MODE(m) => Some(match Mode::from_number(m.custom_mode) {
            Some(mode) => text(format_args!("mode {}", mode.name())),
            None => text(format_args!("mode number {}", m.custom_mode)),
        }),
        MavMessage::PARAM_SET(m) => {
            Some(text(format_args!("parameter {} = {}", codec::text(&m.param_id[..]), m.param_value)))
        }
        MavMessage::FILE_TRANSFER_PROTOCOL(m) if reads_files(m) => None,
        message if only_reads(message) => None,
        message => Some(text(format_args!("{}", message.message_name()))),
    }
}

/// A frame whose content is not of the dialect.
pub(super) fn unknown(message_id: u32) -> Verdict {
    match MavMessage::default_message_from_id(message_id) {
        // An odd heartbeat may arm the ground-station failsafe all the same.
        Some(MavMessage::HEARTBEAT(_)) => Verdict::Refuse(Refusal::HeartbeatOfOther),
        Some(MavMessage::SETUP_SIGNING(_) | MavMessage::RADIO_STATUS(_) | MavMessage::RADIO(_)) => {
            Verdict::Refuse(Refusal::Forbidden)
        }
        Some(MavMessage::REQUEST_DATA_STREAM(_)) => {
            explain(Refusal::StreamRate, "a data stream that Wingbeat does not know")
        }
        Some(message) => Verdict::Command(text(format_args!(
            "{} with a value unknown to Wingbeat",
            message.message_name()
        ))),
        None => Verdict::Command(text(format_args!("message number {message_id}"))),
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
fn command(command: MavCmd) -> Option<Text> {
    match command {
        MavCmd::MAV_CMD_REQUEST_MESSAGE
        | MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL
        | MavCmd::MAV_CMD_GET_MESSAGE_INTERVAL
        | MavCmd::MAV_CMD_REQUEST_AUTOPILOT_CAPABILITIES
        | MavCmd::MAV_CMD_REQUEST_PROTOCOL_VERSION
        | MavCmd::MAV_CMD_REQUEST_CAMERA_INFORMATION
        | MavCmd::MAV_CMD_REQUEST_CAMERA_SETTINGS
        | MavCmd::MAV_CMD_REQUEST_CAMERA_CAPTURE_STATUS
        | MavCmd::MAV_CMD_REQUEST_STORAGE_INFORMATION
        | MavCmd::MAV_CMD_REQUEST_FLIGHT_INFORMATION
        | MavCmd::MAV_CMD_REQUEST_VIDEO_STREAM_INFORMATION
        | MavCmd::MAV_CMD_REQUEST_VIDEO_STREAM_STATUS
        | MavCmd::MAV_CMD_UAVCAN_GET_NODE_INFO
        | MavCmd::MAV_CMD_GET_HOME_POSITION
        | MavCmd::MAV_CMD_DO_SEND_BANNER
        | MavCmd::MAV_CMD_RUN_PREARM_CHECKS => None,
        command => Some(text(format_args!("{command:?}"))),
    }
}

/// Requests and what answers them; clocks; corrections of the position that the autopilot weighs itself;
/// terrain heights that it requested.
// MAVLink deprecates some of what ground stations still send.
#[allow(deprecated)]
fn only_reads(message: &MavMessage) -> bool {
    matches!(
        message,
        // Whether it passes is a matter of the lease.
        MavMessage::HEARTBEAT(_)
            | MavMessage::PARAM_REQUEST_READ(_)
            | MavMessage::PARAM_REQUEST_LIST(_)
            | MavMessage::PARAM_EXT_REQUEST_READ(_)
            | MavMessage::PARAM_EXT_REQUEST_LIST(_)
            | MavMessage::MISSION_REQUEST_LIST(_)
            | MavMessage::MISSION_REQUEST_PARTIAL_LIST(_)
            | MavMessage::MISSION_REQUEST(_)
            | MavMessage::MISSION_REQUEST_INT(_)
            | MavMessage::MISSION_ACK(_)
            | MavMessage::RALLY_FETCH_POINT(_)
            | MavMessage::FENCE_FETCH_POINT(_)
            | MavMessage::REQUEST_DATA_STREAM(_)
            | MavMessage::REQUEST_EVENT(_)
            | MavMessage::AUTOPILOT_VERSION_REQUEST(_)
            | MavMessage::AUTOPILOT_VERSION(_)
            | MavMessage::LOG_REQUEST_LIST(_)
            | MavMessage::LOG_REQUEST_DATA(_)
            | MavMessage::LOG_REQUEST_END(_)
            | MavMessage::REMOTE_LOG_BLOCK_STATUS(_)
            | MavMessage::DEVICE_OP_READ(_)
            | MavMessage::COMMAND_ACK(_)
            | MavMessage::PING(_)
            | MavMessage::TIMESYNC(_)
            | MavMessage::SYSTEM_TIME(_)
            | MavMessage::STATUSTEXT(_)
            | MavMessage::GPS_RTCM_DATA(_)
            | MavMessage::GPS_INJECT_DATA(_)
            | MavMessage::TERRAIN_DATA(_)
            | MavMessage::TERRAIN_CHECK(_)
    )
}

/// MAVLink FTP: terminate, reset, list, open to read, read, checksum, read a burst, list with times
/// (<https://mavlink.io/en/services/ftp.html#opcodes>). The others write.
fn reads_files(message: &FILE_TRANSFER_PROTOCOL_DATA) -> bool {
    /// Index of the operation in the payload.
    const OPCODE: usize = 3;
    matches!(message.payload.get(OPCODE), Some(1..=5 | 14..=16))
}
