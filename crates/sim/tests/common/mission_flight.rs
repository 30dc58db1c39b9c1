//! A companion that is a few lines: loads a mission, takes off in GUIDED, and lets AUTO fly it. It stands
//! for any protocol that flies missions.

#![allow(deprecated, reason = "ArduCopter 3.5.7 uses messages that MAVLink has superseded since")]

use wingbeat_autopilot::codec::{Decoder, MavHeader, encode_v2};
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{
    COMMAND_LONG_DATA, MISSION_COUNT_DATA, MISSION_ITEM_INT_DATA, MavCmd, MavDataStream, MavFrame,
    MavMessage, MavMissionType, MavModeFlag, REQUEST_DATA_STREAM_DATA, SET_MODE_DATA,
};
use wingbeat_geo::{DVec2, Duration, Frame, Instant, Position};

/// Everything is asked again after this.
const PERIOD: Duration = Duration::from_millis(1_500);
/// From this height AUTO flies.
const AUTO_FROM_M: f64 = 3.0;

/// The companion.
pub(crate) struct Scripted {
    items: Vec<(MavCmd, Position, f32)>,
    decoder: Decoder,
    loaded: bool,
    mode: u32,
    armed: bool,
    was_armed: bool,
    height_m: f64,
    ask_at: Instant,
    asked: Vec<Mode>,
}

impl Scripted {
    pub(crate) fn new(home: Position, legs: &[DVec2], height_m: f64) -> Self {
        let frame = Frame::new(home);
        let height = height_m as f32;
        let mut items =
            vec![(MavCmd::MAV_CMD_NAV_WAYPOINT, home, 0.0), (MavCmd::MAV_CMD_NAV_TAKEOFF, home, height)];
        items.extend(
            legs.iter().map(|leg| (MavCmd::MAV_CMD_NAV_WAYPOINT, frame.to_position(leg.extend(0.0)), height)),
        );
        let last = frame.to_position(legs.last().map_or(DVec2::ZERO, |leg| *leg).extend(0.0));
        items.push((MavCmd::MAV_CMD_NAV_LAND, last, 0.0));
        Self {
            items,
            decoder: Decoder::default(),
            loaded: false,
            mode: 0,
            armed: false,
            was_armed: false,
            height_m: 0.0,
            ask_at: Instant::ZERO,
            asked: vec![],
        }
    }

    /// From the first order that moves it until the motors stop.
    pub(crate) fn commanding(&self) -> bool {
        self.loaded && !self.done()
    }

    /// What is no pilot's doing: the mode that is asked for and the one that it was in.
    pub(crate) fn own_modes(&self) -> &[Mode] {
        let from = self.asked.iter().position(|m| m.number() == self.mode).unwrap_or_default();
        self.asked.get(from..).unwrap_or_default()
    }

    pub(crate) fn done(&self) -> bool {
        self.was_armed && !self.armed
    }

    /// Hears, and asks for what comes next.
    pub(crate) fn step(&mut self, now: Instant, received: &[u8], out: &mut Vec<u8>) {
        let mut decoder = std::mem::take(&mut self.decoder);
        let mut wanted = vec![];
        decoder.push(received, |frame| match frame.message {
            MavMessage::HEARTBEAT(m) => {
                self.mode = m.custom_mode;
                self.armed = m.base_mode.contains(MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED);
                self.was_armed |= self.armed;
            }
            MavMessage::GLOBAL_POSITION_INT(m) => self.height_m = f64::from(m.relative_alt) * 1e-3,
            MavMessage::MISSION_REQUEST(m) => wanted.push(m.seq),
            MavMessage::MISSION_REQUEST_INT(m) => wanted.push(m.seq),
            MavMessage::MISSION_ACK(_) => (self.loaded, self.ask_at) = (true, now),
            _ => {}
        });
        self.decoder = decoder;
        for seq in wanted {
            let Some((command, place, height)) = self.items.get(usize::from(seq)).copied() else { continue };
            send(
                out,
                &MavMessage::MISSION_ITEM_INT(MISSION_ITEM_INT_DATA {
                    seq,
                    command,
                    x: place.latitude_e7,
                    y: place.longitude_e7,
                    z: height,
                    frame: MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT,
                    autocontinue: 1,
                    target_system: 1,
                    target_component: 1,
                    mission_type: MavMissionType::MAV_MISSION_TYPE_MISSION,
                    ..Default::default()
                }),
            );
        }
        if now < self.ask_at || self.done() {
            return;
        }
        self.ask_at = now + PERIOD;
        if !self.loaded {
            // Position at 4 Hz.
            send(
                out,
                &MavMessage::REQUEST_DATA_STREAM(REQUEST_DATA_STREAM_DATA {
                    req_message_rate: 4,
                    target_system: 1,
                    target_component: 1,
                    req_stream_id: MavDataStream::MAV_DATA_STREAM_POSITION,
                    start_stop: 1,
                }),
            );
            send(
                out,
                &MavMessage::MISSION_COUNT(MISSION_COUNT_DATA {
                    count: self.items.len() as u16,
                    target_system: 1,
                    target_component: 1,
                    ..Default::default()
                }),
            );
        } else if !self.armed && self.mode != Mode::Guided.number() {
            self.ask(Mode::Guided, out);
        } else if !self.armed {
            command(out, MavCmd::MAV_CMD_COMPONENT_ARM_DISARM, 1.0, 0.0);
        } else if self.height_m < AUTO_FROM_M && self.mode == Mode::Guided.number() {
            command(out, MavCmd::MAV_CMD_NAV_TAKEOFF, 0.0, 10.0);
        } else if self.mode == Mode::Guided.number() {
            self.ask(Mode::Auto, out);
        }
    }

    fn ask(&mut self, mode: Mode, out: &mut Vec<u8>) {
        self.asked.retain(|m| *m != mode);
        self.asked.push(mode);
        send(
            out,
            &MavMessage::SET_MODE(SET_MODE_DATA {
                custom_mode: mode.number(),
                target_system: 1,
                base_mode: MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED,
            }),
        );
    }
}

fn command(out: &mut Vec<u8>, command: MavCmd, param1: f32, param7: f32) {
    send(
        out,
        &MavMessage::COMMAND_LONG(COMMAND_LONG_DATA {
            command,
            param1,
            param7,
            target_system: 1,
            target_component: 1,
            ..Default::default()
        }),
    );
}

fn send(out: &mut Vec<u8>, message: &MavMessage) {
    let mut frame = heapless::Vec::<u8, 280>::new();
    encode_v2(MavHeader { system_id: 1, component_id: 191, sequence: 0 }, message, &mut frame).unwrap();
    out.extend_from_slice(&frame);
}
