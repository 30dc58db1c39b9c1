//! Scenarios with explicit times: a bench of one flight controller and a ground station that uses
//! MAVLink bytes to it.

mod failsafes;
mod flights;
mod likeness;
mod protocols;
mod services;

use wingbeat_autopilot::codec::{Decoder, FRAME_LEN_MAX, Frame, MavHeader, encode_v2, text};
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{
    COMMAND_LONG_DATA, HEARTBEAT_DATA, MISSION_COUNT_DATA, MISSION_ITEM_INT_DATA, MavAutopilot, MavCmd,
    MavFrame, MavMessage, MavMissionResult, MavMissionType, MavModeFlag, MavParamType, MavResult, MavState,
    MavType, PARAM_SET_DATA, RC_CHANNELS_OVERRIDE_DATA, SET_MODE_DATA,
};
use wingbeat_geo::{Duration, Instant, Position};

use super::{Boot, Config, FlightController, Parameter, RcChannels, TICK};

/// Home of the tests: the field of the Valencia papers.
fn home() -> Position {
    Position::from_degrees(39.4824, -0.3464, 10.0).unwrap()
}

struct Bench {
    fc: FlightController,
    now: Instant,
    decoder: Decoder,
    /// Everything that it sent, with the time.
    received: Vec<(Instant, MavMessage)>,
    sequence: u8,
    /// Whether the ground station sends its heartbeat once a second.
    beats: bool,
}

impl Bench {
    fn new(config: Config) -> Self {
        let fc = FlightController::new(config, 1, Instant::ZERO);
        Self {
            fc,
            now: Instant::ZERO,
            decoder: Decoder::default(),
            received: Vec::new(),
            sequence: 0,
            beats: true,
        }
    }
    fn warm() -> Self {
        Self::new(Config::new(1, home()))
    }
    /// Ready, in GUIDED, armed and hovering at 10 m.
    fn hovering() -> Self {
        let mut bench = Self::warm();
        bench.run(1.0);
        bench.take_off(10.0);
        bench
    }
    fn take_off(&mut self, altitude_m: f32) {
        self.mode(Mode::Guided);
        assert_eq!(
            self.command(MavCmd::MAV_CMD_COMPONENT_ARM_DISARM, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
            OK
        );
        assert_eq!(self.command(MavCmd::MAV_CMD_NAV_TAKEOFF, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, altitude_m]), OK);
        self.run(20.0);
        let up = self.fc.truth().local.z;
        assert!((up - f64::from(altitude_m)).abs() < 0.5, "took off to {up} m, asked for {altitude_m} m");
    }
    fn send(&mut self, message: &MavMessage) {
        self.send_as(255, message);
    }
    fn send_as(&mut self, system_id: u32, message: &MavMessage) {
        let mut frame = heapless::Vec::<u8, FRAME_LEN_MAX>::new();
        let header = MavHeader { system_id, component_id: 190, sequence: self.sequence };
        self.sequence = self.sequence.wrapping_add(1);
        encode_v2(header, message, &mut frame).unwrap();
        self.fc.receive(&frame);
    }
    fn tick(&mut self) {
        if self.beats && self.now.as_micros().is_multiple_of(1_000_000) {
            self.send(&heartbeat());
        }
        let mut out = Vec::new();
        self.fc.advance(self.now, &mut out);
        let (now, received) = (self.now, &mut self.received);
        self.decoder.push(&out, |frame: Frame| received.push((now, frame.message)));
        self.now = self.now + TICK;
    }
    fn run(&mut self, seconds: f64) {
        let end = self.now + Duration::from_micros((seconds * 1e6) as u64);
        while self.now < end {
            self.tick();
        }
    }
    /// Runs until `done`, at most `seconds`; panics with `what` if it does not come.
    fn until(&mut self, seconds: f64, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.now + Duration::from_micros((seconds * 1e6) as u64);
        while !done(self) {
            assert!(self.now < end, "{what} did not happen in {seconds} s; {:?}", self.fc.truth());
            self.tick();
        }
    }
    /// Sends a command; its acknowledgement.
    fn command(&mut self, command: MavCmd, p: [f32; 7]) -> MavResult {
        self.send(&MavMessage::COMMAND_LONG(COMMAND_LONG_DATA {
            param1: p[0],
            param2: p[1],
            param3: p[2],
            param4: p[3],
            param5: p[4],
            param6: p[5],
            param7: p[6],
            command,
            target_system: 1,
            target_component: 1,
            confirmation: 0,
        }));
        let from = self.received.len();
        self.run(0.04);
        let ack = self.received[from..].iter().find_map(|(_, m)| match m {
            MavMessage::COMMAND_ACK(a) if a.command == command => Some(a.result),
            _ => None,
        });
        ack.unwrap_or_else(|| panic!("no acknowledgement of {command:?}"))
    }
    fn arm(&mut self) -> MavResult {
        self.command(MavCmd::MAV_CMD_COMPONENT_ARM_DISARM, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    }
    /// Sets a mode and lets it be read; whether it is in force.
    fn mode(&mut self, mode: Mode) -> bool {
        self.send(&MavMessage::SET_MODE(SET_MODE_DATA {
            custom_mode: mode.number(),
            target_system: 1,
            base_mode: MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED,
        }));
        self.run(0.04);
        self.fc.truth().mode == mode
    }
    fn set(&mut self, name: &str, value: f32) {
        self.send(&MavMessage::PARAM_SET(PARAM_SET_DATA {
            param_value: value,
            target_system: 1,
            target_component: 1,
            param_id: name.into(),
            param_type: MavParamType::MAV_PARAM_TYPE_REAL32,
        }));
        self.run(0.02);
    }
    fn texts(&self) -> Vec<String> {
        let texts = self.received.iter().filter_map(|(_, m)| match m {
            MavMessage::STATUSTEXT(t) => Some(text(&t.text[..]).to_owned()),
            _ => None,
        });
        texts.collect()
    }
    fn reached(&self) -> Vec<u16> {
        let reached = self.received.iter().filter_map(|(_, m)| match m {
            MavMessage::MISSION_ITEM_REACHED(r) => Some(r.seq),
            _ => None,
        });
        reached.collect()
    }
    /// Uploads a mission as a well-behaved ground station does; the final acknowledgement.
    fn upload(&mut self, items: &[MISSION_ITEM_INT_DATA]) -> MavMissionResult {
        self.send(&count(items.len() as u16));
        let mut from = self.received.len();
        for _ in 0..500 {
            self.tick();
            let new: Vec<MavMessage> = self.received[from..].iter().map(|h| h.1.clone()).collect();
            from = self.received.len();
            for message in new {
                match message {
                    MavMessage::MISSION_REQUEST(r) => {
                        let item = items[usize::from(r.seq)].clone();
                        self.send(&MavMessage::MISSION_ITEM_INT(item));
                    }
                    MavMessage::MISSION_ACK(a) => return a.mavtype,
                    _ => {}
                }
            }
        }
        panic!("the upload did not end");
    }
    fn throttle(&mut self, pulse_us: u16) {
        self.send(&override_of([0, 0, pulse_us, 0, 0, 0, 0, 0]));
    }
}

const OK: MavResult = MavResult::MAV_RESULT_ACCEPTED;
const FAILED: MavResult = MavResult::MAV_RESULT_FAILED;

fn heartbeat() -> MavMessage {
    MavMessage::HEARTBEAT(HEARTBEAT_DATA {
        custom_mode: 0,
        mavtype: MavType::MAV_TYPE_GCS,
        autopilot: MavAutopilot::MAV_AUTOPILOT_INVALID,
        base_mode: MavModeFlag::empty(),
        system_status: MavState::MAV_STATE_UNINIT,
        mavlink_version: 3,
    })
}

fn count(count: u16) -> MavMessage {
    MavMessage::MISSION_COUNT(MISSION_COUNT_DATA {
        count,
        target_system: 1,
        target_component: 1,
        mission_type: MavMissionType::MAV_MISSION_TYPE_MISSION,
        opaque_id: 0,
    })
}

fn override_of(c: [u16; 8]) -> MavMessage {
    MavMessage::RC_CHANNELS_OVERRIDE(RC_CHANNELS_OVERRIDE_DATA {
        chan1_raw: c[0],
        chan2_raw: c[1],
        chan3_raw: c[2],
        chan4_raw: c[3],
        chan5_raw: c[4],
        chan6_raw: c[5],
        chan7_raw: c[6],
        chan8_raw: c[7],
        target_system: 1,
        target_component: 1,
        ..RC_CHANNELS_OVERRIDE_DATA::DEFAULT
    })
}

/// An item at metres north and east of home; 0/0 at zero metres.
fn item(seq: u16, command: MavCmd, p1: f32, north_m: f64, east_m: f64, up_m: f32) -> MISSION_ITEM_INT_DATA {
    let frame = wingbeat_geo::Frame::new(home());
    let place = frame.to_position(wingbeat_geo::DVec3::new(east_m, north_m, 0.0));
    let nowhere = north_m == 0.0 && east_m == 0.0;
    MISSION_ITEM_INT_DATA {
        param1: p1,
        param2: 0.0,
        param3: 0.0,
        param4: 0.0,
        x: if nowhere { 0 } else { place.latitude_e7 },
        y: if nowhere { 0 } else { place.longitude_e7 },
        z: up_m,
        seq,
        command,
        target_system: 1,
        target_component: 1,
        frame: MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT,
        current: 0,
        autocontinue: 1,
        mission_type: MavMissionType::MAV_MISSION_TYPE_MISSION,
    }
}

/// Take-off, three waypoints (the second waits two seconds), return.
fn triangle() -> Vec<MISSION_ITEM_INT_DATA> {
    vec![
        item(0, MavCmd::MAV_CMD_NAV_WAYPOINT, 0.0, 0.0, 0.0, 0.0),
        item(1, MavCmd::MAV_CMD_NAV_TAKEOFF, 0.0, 0.0, 0.0, 10.0),
        item(2, MavCmd::MAV_CMD_NAV_WAYPOINT, 0.0, 60.0, 0.0, 10.0),
        item(3, MavCmd::MAV_CMD_NAV_WAYPOINT, 2.0, 60.0, 60.0, 10.0),
        item(4, MavCmd::MAV_CMD_NAV_WAYPOINT, 0.0, 30.0, 60.0, 10.0),
        item(5, MavCmd::MAV_CMD_NAV_RETURN_TO_LAUNCH, 0.0, 0.0, 0.0, 0.0),
    ]
}
