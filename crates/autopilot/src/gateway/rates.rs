//! Requests for streams: the agent's own requests are their floor, the capacity of the line their ceiling.

// REQUEST_DATA_STREAM is deprecated, and what most ground stations send to ArduPilot.
#![allow(deprecated)]

use super::{Gatekeeper, Refusal, Replacement, Verdict, text};
use crate::codec;
use crate::dialect::{MavCmd, MavDataStream, MavMessage, PARAM_SET_DATA, REQUEST_DATA_STREAM_DATA};

/// HEARTBEAT's number, and the period that the watch over the link rests on.
const HEARTBEAT: (u32, f32) = (0, 1e6);

/// The parameters of stream rates: `SR0_POSITION` and its like; since 4.7 `MAV1_POSITION`
/// (<https://ardupilot.org/copter/docs/parameters.html#sr0-parameters>).
const GROUPS: [(&str, MavDataStream); 3] = [
    ("EXT_STAT", MavDataStream::MAV_DATA_STREAM_EXTENDED_STATUS),
    ("POSITION", MavDataStream::MAV_DATA_STREAM_POSITION),
    ("EXTRA3", MavDataStream::MAV_DATA_STREAM_EXTRA3),
];
/// The others, which the agent does not need.
const OTHER_GROUPS: [&str; 7] = ["RAW_SENS", "RC_CHAN", "RAW_CTRL", "EXTRA1", "EXTRA2", "PARAMS", "ADSB"];

impl Gatekeeper {
    /// The verdict on a request for streams; `None` for any other message.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub(super) fn rate(&self, message: &MavMessage) -> Option<Verdict> {
        match message {
            MavMessage::REQUEST_DATA_STREAM(m) => Some(self.stream(m)),
            MavMessage::COMMAND_LONG(m) if m.command == MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL => {
                let param2 = self.interval(m.param1, m.param2);
                let mut m = m.clone();
                let same = same(m.param2, param2);
                m.param2 = param2;
                Some(if same { Verdict::Pass } else { replace([MavMessage::COMMAND_LONG(m)]) })
            }
            MavMessage::COMMAND_INT(m) if m.command == MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL => {
                let param2 = self.interval(m.param1, m.param2);
                let mut m = m.clone();
                let same = same(m.param2, param2);
                m.param2 = param2;
                Some(if same { Verdict::Pass } else { replace([MavMessage::COMMAND_INT(m)]) })
            }
            MavMessage::PARAM_SET(m) => self.parameter(m),
            _ => None,
        }
    }

    /// The interval in microseconds instead of the requested one; 0 (the default) and -1 (off) are values of
    /// the command.
    fn interval(&self, message_id: f32, requested_us: f32) -> f32 {
        let needs = self.requests.iter().map(|need| (need.id, need.interval.as_micros() as f32));
        let need_us = needs.chain([HEARTBEAT]).find(|(id, _)| *id as f32 == message_id).map(|(_, us)| us);
        let fastest_us = (1e6 / f32::from(self.rate_cap_hz)).min(need_us.unwrap_or(f32::MAX));
        match need_us {
            // NaN too.
            Some(need_us) if !(requested_us > 0.0 && requested_us <= need_us) => need_us,
            _ if requested_us > 0.0 && requested_us < fastest_us => fastest_us,
            _ => requested_us,
        }
    }

    fn stream(&self, m: &REQUEST_DATA_STREAM_DATA) -> Verdict {
        let requested_hz = if m.start_stop == 0 { 0 } else { m.req_message_rate };
        if m.req_stream_id != MavDataStream::MAV_DATA_STREAM_ALL {
            let need_hz = self.need_hz(m.req_stream_id);
            let rate_hz = requested_hz.min(self.rate_cap_hz.max(need_hz)).max(need_hz);
            return if rate_hz == requested_hz {
                Verdict::Pass
            } else {
                replace([at(m, m.req_stream_id, rate_hz)])
            };
        }
        let floor_hz = GROUPS.iter().map(|(_, group)| self.need_hz(*group)).max().unwrap_or(0);
        if (1..floor_hz).contains(&requested_hz) && floor_hz <= self.rate_cap_hz {
            // A little more than requested, which the line carries, and nothing slower at any time.
            return replace([at(m, m.req_stream_id, floor_hz)]);
        }
        // All groups, no faster than the line allows; then again those that the agent needs faster.
        let all_hz = requested_hz.min(self.rate_cap_hz);
        let mut frames = Replacement::new();
        let all = if all_hz == requested_hz {
            MavMessage::REQUEST_DATA_STREAM(m.clone())
        } else {
            at(m, m.req_stream_id, all_hz)
        };
        let changed = all_hz != requested_hz;
        let slow =
            GROUPS.iter().map(|(_, group)| (*group, self.need_hz(*group))).filter(|(_, hz)| *hz > all_hz);
        for frame in core::iter::once(all).chain(slow.map(|(group, hz)| at(m, group, hz))) {
            frames.push(frame).expect("one for all and one for each of three groups");
        }
        if changed || frames.len() > 1 { Verdict::Replace(frames) } else { Verdict::Pass }
    }

    /// What the agent needs of a group, rounded up.
    fn need_hz(&self, group: MavDataStream) -> u16 {
        let of_group = self.requests.iter().filter(|need| need.group == group);
        let hz = of_group.map(|need| 1_000_000_u128.div_ceil(need.interval.as_micros().max(1)));
        hz.max().map_or(0, |hz| hz.min(u128::from(u16::MAX)) as u16)
    }

    /// A parameter that sets a stream's rate is no flight parameter; it passes within the limits.
    fn parameter(&self, m: &PARAM_SET_DATA) -> Option<Verdict> {
        let name = codec::text(&m.param_id[..]);
        let port = name.strip_prefix("SR").or_else(|| name.strip_prefix("MAV"))?;
        let group = port.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix('_')?;
        if port.starts_with('_') {
            return None;
        }
        let need_hz = match GROUPS.iter().find(|(name, _)| *name == group) {
            Some((_, group)) => self.need_hz(*group),
            None if OTHER_GROUPS.contains(&group) => 0,
            None => return None,
        };
        let most_hz = self.rate_cap_hz.max(need_hz);
        if m.param_value >= f32::from(need_hz) && m.param_value <= f32::from(most_hz) {
            return Some(Verdict::Pass);
        }
        // A STATUSTEXT holds 50 characters.
        let why = text(format_args!("{name} {}: expected {need_hz} to {most_hz} Hz", m.param_value));
        Some(Verdict::Explain(Refusal::StreamRate, why))
    }
}

/// Equal, or both NaN: an invalid request for a message that the agent does not need passes.
fn same(requested: f32, passed: f32) -> bool {
    requested == passed || requested.is_nan() && passed.is_nan()
}

fn at(m: &REQUEST_DATA_STREAM_DATA, group: MavDataStream, rate_hz: u16) -> MavMessage {
    MavMessage::REQUEST_DATA_STREAM(REQUEST_DATA_STREAM_DATA {
        req_message_rate: rate_hz,
        req_stream_id: group,
        start_stop: u8::from(rate_hz > 0),
        ..m.clone()
    })
}

fn replace<const N: usize>(messages: [MavMessage; N]) -> Verdict {
    Verdict::Replace(messages.into_iter().collect())
}
