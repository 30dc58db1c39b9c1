//! The messages that telemetry is read from.

// MAVLink deprecates the groups of REQUEST_DATA_STREAM, which 3.5.7 needs.
#![allow(deprecated)]

use mavlink::MessageData;
use wingbeat_geo::Duration;

use super::Measurements;
use crate::dialect::{
    EKF_STATUS_REPORT_DATA, GLOBAL_POSITION_INT_DATA, MISSION_CURRENT_DATA, MavDataStream,
    NAV_CONTROLLER_OUTPUT_DATA, POSITION_TARGET_GLOBAL_INT_DATA, RC_CHANNELS_DATA, SYSTEM_TIME_DATA,
};

pub(super) const EXTENDED_STATUS: MavDataStream = MavDataStream::MAV_DATA_STREAM_EXTENDED_STATUS;
const POSITION: MavDataStream = MavDataStream::MAV_DATA_STREAM_POSITION;
pub(super) const EXTRA3: MavDataStream = MavDataStream::MAV_DATA_STREAM_EXTRA3;

/// A message that telemetry is read from, and how it is requested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamRequest {
    /// MAVLink message id.
    pub id: u32,
    /// Its group in REQUEST_DATA_STREAM (<https://mavlink.io/en/messages/common.html#MAV_DATA_STREAM>).
    pub group: MavDataStream,
    /// The longest time between two.
    pub interval: Duration,
    /// An autopilot may never send it: it is requested once.
    pub is_optional: bool,
    /// Requests leave one at a time, the lowest rank first. No two have the same.
    pub rank: u8,
    /// Older firmware never sends it, by its major version: no request leaves before the version is known. 0 is any.
    pub since_major: u8,
}

/// The messages that [`Telemetry`] is read from, by rank, with a position every `position_interval`.
pub fn requests(position_interval: Duration) -> heapless::Vec<StreamRequest, REQUESTS_MAX> {
    let request = |id, group, interval, rank| StreamRequest {
        id,
        group,
        interval,
        is_optional: false,
        rank,
        since_major: 0,
    };
    let half_second = Duration::from_millis(500);
    let of_navigation = [
        request(GLOBAL_POSITION_INT_DATA::ID, POSITION, position_interval, 0),
        request(EKF_STATUS_REPORT_DATA::ID, EXTRA3, Duration::from_secs(1), 2),
        request(NAV_CONTROLLER_OUTPUT_DATA::ID, EXTENDED_STATUS, half_second, 4),
        // Sent only while there is a target.
        StreamRequest {
            is_optional: true,
            ..request(POSITION_TARGET_GLOBAL_INT_DATA::ID, EXTENDED_STATUS, half_second, 5)
        },
        // MISSION_ITEM_REACHED is sent once, and may be lost.
        request(MISSION_CURRENT_DATA::ID, EXTENDED_STATUS, half_second, 8),
        // The pilot's mode switch.
        request(RC_CHANNELS_DATA::ID, MavDataStream::MAV_DATA_STREAM_RC_CHANNELS, half_second, 9),
        // UTC, and the autopilot's clock.
        request(SYSTEM_TIME_DATA::ID, EXTRA3, Duration::from_secs(1), 10),
    ];
    let mut requests: heapless::Vec<StreamRequest, REQUESTS_MAX> =
        of_navigation.into_iter().chain(Measurements::requests().copied()).collect();
    requests.sort_unstable_by_key(|request| request.rank);
    requests
}

/// Messages that telemetry is read from.
pub const REQUESTS_MAX: usize = 11;
