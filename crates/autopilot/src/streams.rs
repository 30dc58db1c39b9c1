//! Requests for telemetry: each message is requested, and requested again when it stays away.
//! ArduCopter 4.6 sends little but heartbeats until then.
//!
//! The first request is MAV_CMD_SET_MESSAGE_INTERVAL. ArduCopter 3.5.7 may refuse that; from then on
//! REQUEST_DATA_STREAM follows, one group at a time at the rate of the group's fastest message. An autopilot that
//! does not answer at all gets both in turn.
//!
//! ArduCopter reports home when that is set, which an agent that starts later misses. It is requested until it is received; from
//! 4.x on it is also sent each [`HOME_INTERVAL`].

// MAVLink deprecates REQUEST_AUTOPILOT_CAPABILITIES and GET_HOME_POSITION, which 3.5.7 needs.
#![allow(deprecated)]

use heapless::Vec;
use mavlink::{Message, MessageData};
use wingbeat_geo::{Duration, Instant};

use crate::codec::BufferFull;
use crate::dialect::{HOME_POSITION_DATA, MavCmd, MavMessage, MavResult, REQUEST_DATA_STREAM_DATA};
use crate::identity::Firmware;
use crate::job::{AUTOPILOT_COMPONENT_ID, Transmit};
use crate::telemetry::{self, REQUESTS_MAX, StreamRequest};

/// A requested message.
#[derive(Clone, Copy, Debug)]
struct Stream {
    request: StreamRequest,
    /// How often it was requested.
    requests: u8,
    received_at: Option<Instant>,
    requested_at: Option<Instant>,
}

/// The messages that the agent relies on.
#[derive(Clone, Debug)]
pub struct Streams {
    streams: Vec<Stream, REQUESTS_MAX>,
    /// Intervals of single messages were refused: only groups can be asked for.
    groups_only: bool,
    version_requested_at: Option<Instant>,
    home_requested_at: Option<Instant>,
    is_home_received: bool,
    is_home_streamed: bool,
    /// Major version of the firmware, once it is known.
    major: Option<u8>,
    due: Instant,
}

/// At most one request leaves in this time, so that a slow line is not flooded.
const POLL_PERIOD: Duration = Duration::from_millis(200);
/// A request is repeated, the other way, when its message stays away for so long.
const PATIENCE: Duration = Duration::from_secs(3);
/// The longest time between two reports of home.
const HOME_INTERVAL: Duration = Duration::from_secs(10);
/// Intervals of single messages are requested from this major version on, where none stays away.
const INTERVALS_SINCE: u8 = 4;

impl Streams {
    /// Position every `position_interval`, the rest each second or faster as needed.
    pub fn new(now: Instant, position_interval: Duration) -> Self {
        let stream = |request| Stream { request, requests: 0, received_at: None, requested_at: None };
        Self {
            streams: telemetry::requests(position_interval).into_iter().map(stream).collect(),
            groups_only: false,
            version_requested_at: None,
            home_requested_at: None,
            is_home_received: false,
            is_home_streamed: false,
            major: None,
            due: now,
        }
    }
    /// What the agent relies on: a gateway keeps other ground stations from slowing it down.
    pub fn requests(&self) -> impl Iterator<Item = StreamRequest> {
        self.streams.iter().map(|stream| stream.request)
    }
    /// When [`Streams::poll`] is due.
    pub fn due(&self) -> Instant {
        self.due
    }
    /// Takes a message from the autopilot.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub fn on_message(&mut self, now: Instant, message: &MavMessage) {
        match message {
            MavMessage::COMMAND_ACK(ack) => {
                let refused = ack.command == MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL
                    && ack.result == MavResult::MAV_RESULT_UNSUPPORTED;
                if refused && !self.groups_only {
                    self.groups_only = true;
                    for stream in &mut self.streams {
                        stream.requested_at = None;
                    }
                }
            }
            MavMessage::AUTOPILOT_VERSION(m) => self.major = Some(Firmware::of(m).version.major),
            MavMessage::HOME_POSITION(_) => self.is_home_received = true,
            _ => {
                let id = message.message_id();
                if let Some(stream) = self.streams.iter_mut().find(|stream| stream.request.id == id) {
                    stream.received_at = Some(now);
                }
            }
        }
    }
    /// Forgets all requests: the autopilot has restarted.
    pub fn restart(&mut self, now: Instant) {
        for stream in &mut self.streams {
            (stream.requests, stream.received_at, stream.requested_at) = (0, None, None);
        }
        (self.version_requested_at, self.major, self.due) = (None, None, now);
        (self.home_requested_at, self.is_home_received, self.is_home_streamed) = (None, false, false);
        self.groups_only = false;
    }
    /// Asks for the first message that stays away.
    ///
    /// # Errors
    /// No room; the request leaves at the next call.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Result<(), BufferFull> {
        if now < self.due {
            return Ok(());
        }
        self.due = now + POLL_PERIOD;
        let long_ago = |at: Option<Instant>| at.is_none_or(|at| now.since(at) >= PATIENCE);
        let next = self.streams.iter().position(|stream| {
            let since_major = stream.request.since_major;
            if since_major > 0 && self.major.is_none_or(|major| major < since_major) {
                return false;
            }
            let is_missing = long_ago(stream.received_at) && !stream.request.is_optional;
            stream.requested_at.is_none() || (is_missing && long_ago(stream.requested_at))
        });
        if let Some(next) = next {
            let Stream { request: StreamRequest { id, group, interval, .. }, requests, .. } =
                self.streams[next];
            if !self.groups_only && requests.is_multiple_of(2) {
                let interval_us = interval.as_micros() as f32;
                let params = [id as f32, interval_us, 0.0, 0.0, 0.0, 0.0, 0.0];
                transmit.command(MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL, params)?;
                self.streams[next].requests = requests.wrapping_add(1);
                self.streams[next].requested_at = Some(now);
                return Ok(());
            }
            // The group's rate is one for all its messages.
            let of_group = self.requests().filter(|request| request.group == group);
            let fastest = of_group.map(|request| request.interval).min();
            let period_ms = fastest.unwrap_or(interval).as_millis().max(1) as u16;
            transmit.send(&MavMessage::REQUEST_DATA_STREAM(REQUEST_DATA_STREAM_DATA {
                req_message_rate: 1000_u16.div_ceil(period_ms).max(2),
                target_system: transmit.system_id,
                target_component: AUTOPILOT_COMPONENT_ID,
                req_stream_id: group,
                start_stop: 1,
            }))?;
            for (index, stream) in self.streams.iter_mut().enumerate() {
                if index == next || (self.groups_only && stream.request.group == group) {
                    stream.requests = stream.requests.wrapping_add(1);
                    stream.requested_at = Some(now);
                }
            }
            return Ok(());
        }
        if self.major.is_none() && long_ago(self.version_requested_at) {
            // 3.5.7 does not know REQUEST_MESSAGE; every version answers this one.
            let params = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
            transmit.command(MavCmd::MAV_CMD_REQUEST_AUTOPILOT_CAPABILITIES, params)?;
            self.version_requested_at = Some(now);
        } else {
            self.request_home(now, transmit)?;
        }
        Ok(())
    }

    fn request_home(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Result<(), BufferFull> {
        let has_waited = self.home_requested_at.is_none_or(|at| now.since(at) >= PATIENCE);
        let has_intervals = !self.groups_only && self.major.is_some_and(|major| major >= INTERVALS_SINCE);
        if !self.is_home_received && has_waited {
            transmit.command(MavCmd::MAV_CMD_GET_HOME_POSITION, [0.0; 7])?;
            self.home_requested_at = Some(now);
        } else if has_intervals && !self.is_home_streamed {
            let interval_us = HOME_INTERVAL.as_micros() as f32;
            let params = [HOME_POSITION_DATA::ID as f32, interval_us, 0.0, 0.0, 0.0, 0.0, 0.0];
            transmit.command(MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL, params)?;
            self.is_home_streamed = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use mavlink::MessageData;
    use std::collections::BTreeSet;

    use crate::dialect::{
        AUTOPILOT_VERSION_DATA, GLOBAL_POSITION_INT_DATA, MavDataStream, POSITION_TARGET_GLOBAL_INT_DATA,
        SYS_STATUS_DATA, WIND_DATA,
    };
    use crate::job::testing::sent;

    fn requested(message: &MavMessage) -> Option<u32> {
        match message {
            MavMessage::COMMAND_LONG(c) if c.command == MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL => {
                Some(c.param1 as u32)
            }
            MavMessage::REQUEST_DATA_STREAM(r) => Some(1000 + r.req_stream_id as u32),
            _ => None,
        }
    }

    #[test]
    fn requests_leave_one_at_a_time_and_again_only_for_messages_that_stay_away() {
        let mut streams = Streams::new(Instant::ZERO, Duration::from_millis(250));
        let mut requests = std::vec::Vec::new();
        for ms in (0..10_000).step_by(100) {
            let now = Instant::from_millis(ms);
            let position = MavMessage::GLOBAL_POSITION_INT(GLOBAL_POSITION_INT_DATA::default());
            streams.on_message(now, &position);
            let messages = sent(|t| streams.poll(now, t).unwrap());
            assert!(messages.len() <= 1);
            requests.extend(messages.iter().filter_map(requested));
        }
        let count = |id| requests.iter().filter(|&&r| r == id).count();
        assert_eq!(count(GLOBAL_POSITION_INT_DATA::ID), 1, "it came: one request");
        assert_eq!(count(POSITION_TARGET_GLOBAL_INT_DATA::ID), 1);
        assert_eq!(count(SYS_STATUS_DATA::ID), 2, "it stayed away: {requests:?}");
        assert!(
            count(1000 + MavDataStream::MAV_DATA_STREAM_EXTENDED_STATUS as u32) >= 2,
            "requested as a group in between: {requests:?}"
        );
    }

    #[test]
    fn each_group_is_requested_once_at_its_fastest_where_intervals_are_refused() {
        let mut streams = Streams::new(Instant::ZERO, Duration::from_millis(250));
        let mut requests = std::vec::Vec::new();
        for ms in (0..2_800).step_by(100) {
            let now = Instant::from_millis(ms);
            for message in sent(|t| streams.poll(now, t).unwrap()) {
                match &message {
                    MavMessage::REQUEST_DATA_STREAM(r) => {
                        requests.push((r.req_stream_id as u32, r.req_message_rate));
                    }
                    MavMessage::COMMAND_LONG(c) => {
                        let unsupported = MavResult::MAV_RESULT_UNSUPPORTED;
                        streams.on_message(now, &crate::job::testing::ack(c.command, unsupported));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        let groups = [
            (MavDataStream::MAV_DATA_STREAM_POSITION as u32, 4),
            (MavDataStream::MAV_DATA_STREAM_EXTENDED_STATUS as u32, 2),
            (MavDataStream::MAV_DATA_STREAM_EXTRA3 as u32, 2),
            (MavDataStream::MAV_DATA_STREAM_RC_CHANNELS as u32, 2),
        ];
        assert_eq!(requests, groups);
    }

    #[test]
    fn the_wind_is_requested_once_and_only_where_the_firmware_sends_it() {
        for (flight_sw_version, expected) in [(0x0305_07ff, 0), (0x0406_02ff, 1)] {
            let mut streams = Streams::new(Instant::ZERO, Duration::from_millis(250));
            let mut winds = 0;
            for ms in (0..30_000).step_by(100) {
                let now = Instant::from_millis(ms);
                for message in sent(|t| streams.poll(now, t).unwrap()) {
                    winds += usize::from(requested(&message) == Some(WIND_DATA::ID));
                }
                if ms == 10_000 {
                    assert_eq!(winds, 0, "the version is not known");
                    let version =
                        AUTOPILOT_VERSION_DATA { flight_sw_version, ..AUTOPILOT_VERSION_DATA::DEFAULT };
                    streams.on_message(now, &MavMessage::AUTOPILOT_VERSION(version));
                }
            }
            assert_eq!(winds, expected, "{flight_sw_version:x}");
        }
    }

    #[test]
    fn home_is_requested_until_it_comes_and_streamed_where_the_firmware_sends_it() {
        for (flight_sw_version, streamed) in [(0x0305_07ff, 0), (0x0406_02ff, 1)] {
            let mut streams = Streams::new(Instant::ZERO, Duration::from_millis(250));
            let version = AUTOPILOT_VERSION_DATA { flight_sw_version, ..AUTOPILOT_VERSION_DATA::DEFAULT };
            streams.on_message(Instant::ZERO, &MavMessage::AUTOPILOT_VERSION(version));
            let count = |streams: &mut Streams, from_s: u64| {
                let (mut asked, mut intervals) = (0, 0);
                for ms in (from_s * 1_000..from_s * 1_000 + 20_000).step_by(100) {
                    let now = Instant::from_millis(ms);
                    for stream in &mut streams.streams {
                        stream.received_at = Some(now);
                    }
                    for message in sent(|t| streams.poll(now, t).unwrap()) {
                        intervals += usize::from(requested(&message) == Some(HOME_POSITION_DATA::ID));
                        asked += usize::from(matches!(&message, MavMessage::COMMAND_LONG(c)
                            if c.command == MavCmd::MAV_CMD_GET_HOME_POSITION));
                    }
                }
                (asked, intervals)
            };
            let (asked, intervals) = count(&mut streams, 0);
            assert!(asked >= 5 && intervals == streamed, "{flight_sw_version:x}: {asked} {intervals}");
            streams.on_message(Instant::from_secs(20), &MavMessage::HOME_POSITION(Default::default()));
            assert_eq!(count(&mut streams, 20), (0, 0), "{flight_sw_version:x}");
        }
    }

    #[test]
    fn every_message_is_requested_once_and_in_an_order_of_its_own() {
        let requests: Vec<StreamRequest, REQUESTS_MAX> =
            Streams::new(Instant::ZERO, Duration::from_secs(1)).requests().collect();
        let ids: BTreeSet<u32> = requests.iter().map(|request| request.id).collect();
        let ranks: BTreeSet<u8> = requests.iter().map(|request| request.rank).collect();
        assert_eq!((ids.len(), ranks.len()), (requests.len(), requests.len()), "{requests:?}");
    }
}
