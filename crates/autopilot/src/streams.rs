//! Seeing to it that telemetry comes: each message is asked for, and asked for again when it stays away.
//! ArduCopter 4.6 sends little but heartbeats until asked.
//!
//! The first question is MAV_CMD_SET_MESSAGE_INTERVAL. ArduCopter 3.5.7 may refuse that; from then on it
//! is asked with REQUEST_DATA_STREAM, one group at a time at the rate of the group's fastest message. To
//! whoever does not answer at all both are put in turn.

// MAVLink deprecates REQUEST_AUTOPILOT_CAPABILITIES, which 3.5.7 needs.
#![allow(deprecated)]

use wingbeat_geo::{Duration, Instant};

use crate::codec::BufferFull;
use crate::dialect::{MavCmd, MavDataStream, MavMessage, MavResult, REQUEST_DATA_STREAM_DATA};
use crate::job::{AUTOPILOT_COMPONENT_ID, Transmit};

/// A message that we need.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// MAVLink message id.
    id: u32,
    /// Its group in REQUEST_DATA_STREAM
    /// (<https://mavlink.io/en/messages/common.html#MAV_DATA_STREAM>).
    group: MavDataStream,
    interval: Duration,
    asked: u8,
    heard_at: Option<Instant>,
    asked_at: Option<Instant>,
}

/// A message that the agent relies on, and how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// MAVLink message id.
    pub id: u32,
    /// Its group in REQUEST_DATA_STREAM.
    pub group: MavDataStream,
    /// The longest time between two.
    pub interval: Duration,
}

/// The messages that the agent relies on.
#[derive(Clone, Debug)]
pub struct Streams {
    streams: [Stream; 7],
    /// Intervals of single messages were refused: only groups can be asked for.
    groups_only: bool,
    version_asked_at: Option<Instant>,
    version_known: bool,
    due: Instant,
}

const EXTENDED_STATUS: MavDataStream = MavDataStream::MAV_DATA_STREAM_EXTENDED_STATUS;
const POSITION: MavDataStream = MavDataStream::MAV_DATA_STREAM_POSITION;
const EXTRA3: MavDataStream = MavDataStream::MAV_DATA_STREAM_EXTRA3;

const GLOBAL_POSITION_INT: u32 = 33;
const SYS_STATUS: u32 = 1;
const GPS_RAW_INT: u32 = 24;
const POSITION_TARGET_GLOBAL_INT: u32 = 87;
const NAV_CONTROLLER_OUTPUT: u32 = 62;
const EKF_STATUS_REPORT: u32 = 193;
const BATTERY_STATUS: u32 = 147;

/// What may stay away for ever: a target is reported only while there is one, cells only where they are
/// measured.
const OPTIONAL: [u32; 2] = [POSITION_TARGET_GLOBAL_INT, BATTERY_STATUS];

/// How often the books are looked through; at most one request leaves each time, so that a slow line
/// is not flooded.
const LOOK_PERIOD: Duration = Duration::from_millis(200);
/// A request is repeated, the other way, when nothing came of it for so long.
const PATIENCE: Duration = Duration::from_secs(3);

impl Streams {
    /// Position every `position_interval`, the rest each second or faster as needed.
    pub fn new(now: Instant, position_interval: Duration) -> Self {
        let stream =
            |id, group, interval| Stream { id, group, interval, asked: 0, heard_at: None, asked_at: None };
        let second = Duration::from_secs(1);
        Self {
            streams: [
                stream(GLOBAL_POSITION_INT, POSITION, position_interval),
                stream(SYS_STATUS, EXTENDED_STATUS, second),
                stream(EKF_STATUS_REPORT, EXTRA3, second),
                stream(GPS_RAW_INT, EXTENDED_STATUS, second),
                stream(NAV_CONTROLLER_OUTPUT, EXTENDED_STATUS, Duration::from_millis(500)),
                stream(POSITION_TARGET_GLOBAL_INT, EXTENDED_STATUS, Duration::from_millis(500)),
                stream(BATTERY_STATUS, EXTRA3, Duration::from_secs(2)),
            ],
            groups_only: false,
            version_asked_at: None,
            version_known: false,
            due: now,
        }
    }
    /// What the agent relies on, for whoever passes on the requests of others.
    pub fn needs(&self) -> impl Iterator<Item = Need> {
        self.streams.iter().map(|s| Need { id: s.id, group: s.group, interval: s.interval })
    }
    /// When the books want looking through.
    pub fn due(&self) -> Instant {
        self.due
    }
    /// Notes what came.
    pub fn hear(&mut self, now: Instant, message: &MavMessage) {
        let id = match message {
            MavMessage::GLOBAL_POSITION_INT(_) => GLOBAL_POSITION_INT,
            MavMessage::SYS_STATUS(_) => SYS_STATUS,
            MavMessage::GPS_RAW_INT(_) => GPS_RAW_INT,
            MavMessage::NAV_CONTROLLER_OUTPUT(_) => NAV_CONTROLLER_OUTPUT,
            MavMessage::POSITION_TARGET_GLOBAL_INT(_) => POSITION_TARGET_GLOBAL_INT,
            MavMessage::EKF_STATUS_REPORT(_) => EKF_STATUS_REPORT,
            MavMessage::BATTERY_STATUS(_) => BATTERY_STATUS,
            MavMessage::COMMAND_ACK(ack) => {
                let refused = ack.command == MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL
                    && ack.result == MavResult::MAV_RESULT_UNSUPPORTED;
                if refused && !self.groups_only {
                    self.groups_only = true;
                    for stream in &mut self.streams {
                        stream.asked_at = None;
                    }
                }
                return;
            }
            MavMessage::AUTOPILOT_VERSION(_) => {
                self.version_known = true;
                return;
            }
            _ => return,
        };
        if let Some(stream) = self.streams.iter_mut().find(|s| s.id == id) {
            stream.heard_at = Some(now);
        }
    }
    /// Forgets that anything was asked: the autopilot has started anew.
    pub fn restart(&mut self, now: Instant) {
        for stream in &mut self.streams {
            (stream.asked, stream.heard_at, stream.asked_at) = (0, None, None);
        }
        (self.version_asked_at, self.version_known, self.due) = (None, false, now);
        self.groups_only = false;
    }
    /// Asks for the first message that stays away.
    ///
    /// # Errors
    /// No room; it is asked at the next look.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Result<(), BufferFull> {
        if now < self.due {
            return Ok(());
        }
        self.due = now + LOOK_PERIOD;
        let long_ago = |at: Option<Instant>| at.is_none_or(|at| now.since(at) >= PATIENCE);
        let wanted = self.streams.iter().position(|stream| {
            let silent = long_ago(stream.heard_at) && !OPTIONAL.contains(&stream.id);
            stream.asked_at.is_none() || (silent && long_ago(stream.asked_at))
        });
        if let Some(wanted) = wanted {
            let Stream { id, group, interval, asked, .. } = self.streams[wanted];
            if !self.groups_only && asked.is_multiple_of(2) {
                let interval_us = interval.as_micros() as f32;
                let params = [id as f32, interval_us, 0.0, 0.0, 0.0, 0.0, 0.0];
                transmit.command(MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL, params)?;
                self.streams[wanted].asked = asked.wrapping_add(1);
                self.streams[wanted].asked_at = Some(now);
                return Ok(());
            }
            // The group's rate is one for all its messages.
            let in_group = |stream: &&Stream| stream.group == group;
            let fastest = self.streams.iter().filter(in_group).map(|stream| stream.interval).min();
            let period_ms = fastest.unwrap_or(interval).as_millis().max(1) as u16;
            transmit.send(&MavMessage::REQUEST_DATA_STREAM(REQUEST_DATA_STREAM_DATA {
                req_message_rate: 1000_u16.div_ceil(period_ms).max(2),
                target_system: transmit.system_id,
                target_component: AUTOPILOT_COMPONENT_ID,
                req_stream_id: group,
                start_stop: 1,
            }))?;
            for (index, stream) in self.streams.iter_mut().enumerate() {
                if index == wanted || (self.groups_only && stream.group == group) {
                    stream.asked = stream.asked.wrapping_add(1);
                    stream.asked_at = Some(now);
                }
            }
            return Ok(());
        }
        if !self.version_known && long_ago(self.version_asked_at) {
            // 3.5.7 does not know REQUEST_MESSAGE; every version answers this one.
            let params = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
            transmit.command(MavCmd::MAV_CMD_REQUEST_AUTOPILOT_CAPABILITIES, params)?;
            self.version_asked_at = Some(now);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::dialect::GLOBAL_POSITION_INT_DATA;
    use crate::job::testing::sent;

    fn asked(message: &MavMessage) -> Option<u32> {
        match message {
            MavMessage::COMMAND_LONG(c) if c.command == MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL => {
                Some(c.param1 as u32)
            }
            MavMessage::REQUEST_DATA_STREAM(r) => Some(1000 + r.req_stream_id as u32),
            _ => None,
        }
    }

    #[test]
    fn asks_one_at_a_time_and_again_only_for_what_stays_away() {
        let mut streams = Streams::new(Instant::ZERO, Duration::from_millis(250));
        let mut requests = std::vec::Vec::new();
        for ms in (0..10_000).step_by(100) {
            let now = Instant::from_millis(ms);
            let position = MavMessage::GLOBAL_POSITION_INT(GLOBAL_POSITION_INT_DATA::default());
            streams.hear(now, &position);
            let messages = sent(|t| streams.poll(now, t).unwrap());
            assert!(messages.len() <= 1);
            requests.extend(messages.iter().filter_map(asked));
        }
        let count = |id| requests.iter().filter(|&&r| r == id).count();
        assert_eq!(count(GLOBAL_POSITION_INT), 1, "it came, so it is asked for once");
        assert_eq!(count(POSITION_TARGET_GLOBAL_INT), 1);
        assert_eq!(count(SYS_STATUS), 2, "it stayed away: {requests:?}");
        assert!(count(1000 + EXTENDED_STATUS as u32) >= 2, "asked the old way in between: {requests:?}");
    }

    #[test]
    fn an_autopilot_that_refuses_intervals_is_asked_for_each_group_once_at_its_fastest() {
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
                        streams.hear(now, &crate::job::testing::ack(c.command, unsupported));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        let groups = [(POSITION as u32, 4), (EXTENDED_STATUS as u32, 2), (EXTRA3 as u32, 2)];
        assert_eq!(requests, groups);
    }
}
