//! One client that flies one scenario, whatever the flight controller is: bytes of its frames come in,
//! bytes of ours go out. Its only clock is the autopilot's own, read from the position reports.

// SET_MODE and the _INT frame names are deprecated, and the ones that ArduCopter 3.5.7 supports.
#![allow(deprecated)]

use anyhow::{Result, bail};
use wingbeat_autopilot::codec::{self, MavHeader, encode_v1};
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{
    COMMAND_LONG_DATA, EkfStatusFlags, MISSION_COUNT_DATA, MISSION_ITEM_INT_DATA, MavCmd, MavDataStream,
    MavFrame, MavMessage, MavMissionResult, MavMissionType, MavModeFlag, MavResult, PositionTargetTypemask,
    REQUEST_DATA_STREAM_DATA, SET_MODE_DATA, SET_POSITION_TARGET_GLOBAL_INT_DATA,
};
use wingbeat_geo::{DVec3, Frame, Position};

/// Height of everything but take-off and landing.
pub const HEIGHT_M: f64 = 20.0;
/// Where the legs end: three of them, right angles between.
pub const LEGS: [DVec3; 4] = [
    DVec3::new(0.0, 0.0, HEIGHT_M),
    DVec3::new(0.0, 120.0, HEIGHT_M),
    DVec3::new(120.0, 120.0, HEIGHT_M),
    DVec3::new(120.0, 0.0, HEIGHT_M),
];
/// The corners of the guided square, flown in this order.
pub const SQUARE: [DVec3; 4] = [
    DVec3::new(80.0, 0.0, HEIGHT_M),
    DVec3::new(80.0, 40.0, HEIGHT_M),
    DVec3::new(40.0, 40.0, HEIGHT_M),
    DVec3::new(40.0, 0.0, HEIGHT_M),
];
/// The circle: its middle, radius and speed.
pub const CIRCLE: (DVec3, f64, f64) = (DVec3::new(10.0, 0.0, HEIGHT_M), 30.0, 5.0);
/// Speeds from which it brakes, each with the segment's name.
pub const BRAKES: [(f64, &str); 3] = [(2.5, "brake 2.5 m/s"), (5.0, "brake 5 m/s"), (8.0, "brake 8 m/s")];
/// WPNAV_SPEED of the whole scenario.
pub const SPEED_M_S: f64 = 8.0;
/// Where the manoeuvres are flown to and from, each with the name of its segment: where it begins, where it ends, and the speed
/// that is set before.
pub const CRUISES: [(&str, DVec3, DVec3, f64); 2] = [
    ("5 m/s and stop", DVec3::new(0.0, 0.0, HEIGHT_M), DVec3::new(0.0, 80.0, HEIGHT_M), 5.0),
    ("10 m/s and stop", DVec3::new(0.0, 80.0, HEIGHT_M), DVec3::new(0.0, -80.0, HEIGHT_M), 10.0),
];
/// The same, up and down.
pub const LEVELS: [(&str, DVec3, DVec3); 2] = [
    ("climb", DVec3::new(0.0, -80.0, HEIGHT_M), DVec3::new(0.0, -80.0, 2.0 * HEIGHT_M)),
    ("descent", DVec3::new(0.0, -80.0, 2.0 * HEIGHT_M), DVec3::new(0.0, -80.0, HEIGHT_M)),
];
/// The speed from which the manoeuvres brake, and the segment's name.
pub const SUDDEN: (f64, &str) = (8.0, "brake from 8 m/s");
/// How far it turns about itself, degrees clockwise.
pub const TURN_DEG: f64 = 90.0;
/// The cruise in wind: where it ends, against the wind, and its speed.
pub const AGAINST: (&str, DVec3, f64) =
    ("5 m/s against the wind and stop", DVec3::new(-60.0, 0.0, HEIGHT_M), 5.0);

/// Guided targets are sent at this period.
const STREAM_PERIOD_S: f64 = 0.1;
/// A question without an answer is repeated after this time.
const RETRY_S: f64 = 2.0;
/// No step of the scenario takes longer.
const STEP_TIMEOUT_S: f64 = 180.0;
/// At rest within this distance it has arrived: 3.5.7 may stop beyond its last waypoint.
pub const ARRIVED_M: f64 = 2.5;
/// Position reports that we ask for, each second.
const SAMPLE_HZ: u16 = 25;
const GROUND: MavHeader = MavHeader { system_id: 255, component_id: 190, sequence: 0 };

/// One position report, from the place of arming.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Autopilot time, seconds.
    pub t_s: f64,
    /// East, north, up, metres.
    pub position: DVec3,
    /// East, north, up, metres per second.
    pub velocity: DVec3,
    /// Clockwise from north, degrees, 0 to 360; NaN while it is not reported.
    pub heading_deg: f64,
}

/// A named part of the flight, from the command that begins it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Name.
    pub name: &'static str,
    /// Autopilot time when the command left, seconds.
    pub from_s: f64,
    /// When the next segment began, or the flight ended.
    pub to_s: f64,
}

/// The recorded flight.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Position reports, oldest first.
    pub samples: Vec<Sample>,
    /// Segments, in order.
    pub segments: Vec<Segment>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Ready,
    Mode(Mode),
    Arm,
    TakeOff,
    Upload,
    /// Until it is at rest there.
    Arrive(DVec3),
    /// Streams a velocity for a time.
    Cruise(DVec3, f64),
    /// One position target, until it is at rest there.
    Go(DVec3),
    /// Streams position and velocity along the circle for a time.
    Circle(f64),
    /// Sets the speed of what follows, metres per second.
    Speed(f64),
    /// Turns about itself by so many degrees, clockwise; until that is accepted.
    Turn(f64),
    Rest(f64),
    Disarmed,
}

/// The client.
pub struct Script {
    steps: std::collections::VecDeque<(Option<&'static str>, Step)>,
    trace: Trace,
    now_s: f64,
    began_s: Option<f64>,
    sent_s: f64,
    asked_streams: bool,
    system: u8,
    mode: Option<u32>,
    armed: bool,
    ekf: bool,
    /// What was accepted since the step began.
    accepted: Option<MavCmd>,
    heading_deg: f64,
    uploaded: bool,
    wanted: Option<u16>,
    origin: Option<Frame>,
    home: Option<Position>,
    zero: DVec3,
    out: Vec<u8>,
}

impl Default for Script {
    fn default() -> Self {
        Self::new()
    }
}

impl Script {
    /// The scenario from its beginning.
    pub fn new() -> Self {
        use Step::{Arm, Arrive, Circle, Cruise, Disarmed, Go, Ready, Rest, TakeOff, Upload};
        let mut steps = vec![
            (None, Ready),
            (None, Step::Mode(Mode::Guided)),
            (None, Arm),
            (Some("take-off"), TakeOff),
            (None, Rest(8.0)),
            (None, Upload),
            (Some("legs"), Step::Mode(Mode::Auto)),
            (None, Arrive(LEGS[3])),
            (None, Rest(4.0)),
        ];
        // To the north and back in turn, so that they stay together.
        for (i, (speed_m_s, name)) in BRAKES.into_iter().enumerate() {
            let north_m_s = if i % 2 == 0 { speed_m_s } else { -speed_m_s };
            steps.push((Some("cruise"), Step::Mode(Mode::Guided)));
            steps.push((None, Cruise(DVec3::new(0.0, north_m_s, 0.0), 14.0)));
            steps.push((Some(name), Step::Mode(Mode::Brake)));
            steps.push((None, Rest(12.0)));
        }
        steps.push((Some("to the square"), Step::Mode(Mode::Guided)));
        steps.push((None, Go(SQUARE[3])));
        steps.push((None, Rest(5.0)));
        for (corner, name) in SQUARE.into_iter().zip(["side 1", "side 2", "side 3", "side 4"]) {
            steps.push((Some(name), Go(corner)));
            steps.push((None, Rest(5.0)));
        }
        steps.push((Some("circle"), Circle(60.0)));
        steps.push((Some("stream ends"), Rest(12.0)));
        steps.push((Some("return"), Step::Mode(Mode::Rtl)));
        steps.push((None, Arrive(DVec3::new(0.0, 0.0, f64::NAN))));
        steps.push((Some("land"), Step::Mode(Mode::Land)));
        steps.push((None, Disarmed));
        Self::of(steps)
    }

    /// One manoeuvre after the other, each until it stands again: what shows the physics more than the control laws.
    pub fn manoeuvres() -> Self {
        use Step::{Arrive, Cruise, Disarmed, Go, Rest, Speed, Turn, Upload};
        let mut steps = Self::up();
        steps.push((Some("hover"), Rest(20.0)));
        for (name, _, to, speed_m_s) in CRUISES {
            steps.extend([(Some("speed"), Speed(speed_m_s)), (Some(name), Go(to)), (None, Rest(8.0))]);
        }
        for (name, _, to) in LEVELS {
            steps.extend([(Some(name), Go(to)), (None, Rest(8.0))]);
        }
        steps.extend([(Some("turn"), Turn(TURN_DEG)), (None, Rest(12.0))]);
        let (speed_m_s, name) = SUDDEN;
        steps.push((Some("cruise"), Cruise(DVec3::new(0.0, speed_m_s, 0.0), 14.0)));
        steps.extend([(Some(name), Step::Mode(Mode::Brake)), (None, Rest(12.0))]);
        steps.extend([(Some("mission"), Step::Mode(Mode::Guided)), (None, Go(LEGS[0])), (None, Upload)]);
        steps.extend([(Some("corners"), Step::Mode(Mode::Auto)), (None, Arrive(LEGS[3])), (None, Rest(6.0))]);
        steps.push((Some("return"), Step::Mode(Mode::Rtl)));
        steps.push((None, Arrive(DVec3::new(0.0, 0.0, f64::NAN))));
        steps.extend([(Some("land"), Step::Mode(Mode::Land)), (None, Disarmed)]);
        Self::of(steps)
    }

    /// What is flown in wind.
    pub fn in_wind() -> Self {
        use Step::{Disarmed, Go, Rest, Speed};
        let mut steps = Self::up();
        let (name, to, speed_m_s) = AGAINST;
        steps.push((Some("hover in wind"), Rest(30.0)));
        steps.extend([(Some("speed"), Speed(speed_m_s)), (Some(name), Go(to)), (None, Rest(8.0))]);
        steps.extend([(Some("down"), Step::Mode(Mode::Land)), (None, Disarmed)]);
        Self::of(steps)
    }

    /// The steps until it stands in the air.
    fn up() -> Vec<(Option<&'static str>, Step)> {
        vec![
            (None, Step::Ready),
            (None, Step::Mode(Mode::Guided)),
            (None, Step::Arm),
            (Some("take-off"), Step::TakeOff),
            (None, Step::Rest(12.0)),
        ]
    }

    fn of(steps: Vec<(Option<&'static str>, Step)>) -> Self {
        Self {
            steps: steps.into(),
            trace: Trace::default(),
            now_s: 0.0,
            began_s: None,
            sent_s: f64::NEG_INFINITY,
            asked_streams: false,
            system: 1,
            mode: None,
            armed: false,
            ekf: false,
            accepted: None,
            heading_deg: f64::NAN,
            uploaded: false,
            wanted: None,
            origin: None,
            home: None,
            zero: DVec3::ZERO,
            out: Vec::new(),
        }
    }

    /// Takes one frame; what is to be sent is appended to `out`. The trace when the scenario is over.
    ///
    /// # Errors
    /// A step that does not end.
    pub fn on_frame(&mut self, frame: &codec::Frame, out: &mut Vec<u8>) -> Result<Option<Trace>> {
        let mut over = false;
        match &frame.message {
            MavMessage::HEARTBEAT(m) if frame.header.component_id == 1 => {
                self.system = frame.header.system_id as u8;
                self.mode = Some(m.custom_mode);
                self.armed = m.base_mode.contains(MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED);
                if !self.asked_streams {
                    self.ask_streams();
                }
                self.asked_streams = false;
            }
            MavMessage::EKF_STATUS_REPORT(m) => {
                self.ekf = m.flags.contains(EkfStatusFlags::EKF_POS_HORIZ_ABS);
            }
            MavMessage::GLOBAL_POSITION_INT(m) => {
                // The largest value is none.
                self.heading_deg = if m.hdg == u16::MAX { f64::NAN } else { f64::from(m.hdg) * 1e-2 };
                if m.lat != 0 && !self.armed {
                    let altitude_mm = m.alt;
                    self.home = Some(Position { latitude_e7: m.lat, longitude_e7: m.lon, altitude_mm });
                }
            }
            MavMessage::COMMAND_ACK(m) if m.result == MavResult::MAV_RESULT_ACCEPTED => {
                self.accepted = Some(m.command);
            }
            MavMessage::MISSION_REQUEST(m) => self.wanted = Some(m.seq),
            MavMessage::MISSION_REQUEST_INT(m) => self.wanted = Some(m.seq),
            MavMessage::MISSION_ACK(m) => {
                self.uploaded |= m.mavtype == MavMissionResult::MAV_MISSION_ACCEPTED
            }
            MavMessage::LOCAL_POSITION_NED(m) => {
                self.asked_streams = true;
                self.now_s = f64::from(m.time_boot_ms) * 1e-3;
                let east_north_up = |n: f32, e: f32, d: f32| DVec3::new(e.into(), n.into(), f64::from(-d));
                let position = east_north_up(m.x, m.y, m.z);
                if !self.armed && self.trace.segments.is_empty() {
                    self.zero = position;
                }
                let velocity = east_north_up(m.vx, m.vy, m.vz);
                let (t_s, heading_deg) = (self.now_s, self.heading_deg);
                let sample = Sample { t_s, position: position - self.zero, velocity, heading_deg };
                over = self.fly(sample)?;
            }
            _ => {}
        }
        if let Some(seq) = self.wanted.take() {
            self.send_item(seq);
        }
        out.append(&mut self.out);
        Ok(over.then(|| std::mem::take(&mut self.trace)))
    }

    /// One position report: true when the last step has ended.
    fn fly(&mut self, sample: Sample) -> Result<bool> {
        self.trace.samples.push(sample);
        let Some((name, step)) = self.steps.front().copied() else { return Ok(true) };
        let began_s = match self.began_s {
            Some(began_s) => began_s,
            None => {
                self.began_s = Some(self.now_s);
                self.sent_s = f64::NEG_INFINITY;
                self.accepted = None;
                if let Some(name) = name {
                    self.end_segment();
                    self.trace.segments.push(Segment { name, from_s: self.now_s, to_s: self.now_s });
                }
                self.now_s
            }
        };
        if self.now_s - began_s > STEP_TIMEOUT_S {
            let mode = self.mode.unwrap_or(u32::MAX);
            bail!(
                "{step:?}: found it not done after {STEP_TIMEOUT_S} s at {:.1?}, mode {mode}, armed {}",
                sample.position,
                self.armed
            );
        }
        if self.step(step, sample, self.now_s - began_s) {
            self.steps.pop_front();
            self.began_s = None;
            if self.steps.is_empty() {
                self.end_segment();
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn end_segment(&mut self) {
        if let Some(last) = self.trace.segments.last_mut() {
            last.to_s = self.now_s;
        }
    }

    /// Whether the time has come to send (again), `period_s` after the last time.
    fn is_due(&mut self, period_s: f64) -> bool {
        let due = self.now_s - self.sent_s >= period_s - 1e-6;
        if due {
            self.sent_s = self.now_s;
        }
        due
    }

    fn step(&mut self, step: Step, sample: Sample, age_s: f64) -> bool {
        let at_rest = |place: DVec3| {
            let away = place - sample.position;
            let high = place.z.is_finite() && away.z.abs() > 1.5;
            away.truncate().length() < ARRIVED_M && !high && sample.velocity.length() < 0.3
        };
        match step {
            Step::Ready => {
                // Two seconds more, for the checks before arming.
                if !(self.ekf && self.home.is_some()) {
                    self.began_s = Some(self.now_s);
                }
                self.origin = self.home.map(Frame::new);
                age_s > 2.0
            }
            Step::Mode(mode) => {
                if self.mode == Some(mode.number()) && age_s > 0.0 {
                    return true;
                }
                if self.is_due(RETRY_S) {
                    let base_mode = MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED;
                    let (custom_mode, target_system) = (mode.number(), self.system);
                    self.send(&MavMessage::SET_MODE(SET_MODE_DATA { custom_mode, target_system, base_mode }));
                }
                false
            }
            Step::Arm => {
                if !self.armed && self.is_due(RETRY_S) {
                    self.command(MavCmd::MAV_CMD_COMPONENT_ARM_DISARM, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
                }
                self.armed
            }
            Step::TakeOff => {
                let params = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, HEIGHT_M as f32];
                self.is_accepted(MavCmd::MAV_CMD_NAV_TAKEOFF, params);
                // 3.5.7 creeps up to its height and stays half a metre below it.
                sample.position.z > HEIGHT_M - 1.0
            }
            Step::Upload => {
                if !self.uploaded && self.is_due(RETRY_S * 5.0) {
                    self.send(&MavMessage::MISSION_COUNT(MISSION_COUNT_DATA {
                        count: LEGS.len() as u16,
                        target_system: self.system,
                        target_component: 1,
                        mission_type: MavMissionType::MAV_MISSION_TYPE_MISSION,
                        ..MISSION_COUNT_DATA::default()
                    }));
                }
                self.uploaded
            }
            Step::Arrive(place) => age_s > 2.0 && at_rest(place),
            Step::Cruise(velocity, seconds) => {
                if self.is_due(STREAM_PERIOD_S) {
                    self.target(DVec3::ZERO, velocity, 0x0dc7);
                }
                age_s >= seconds
            }
            Step::Go(place) => {
                if self.sent_s == f64::NEG_INFINITY {
                    self.sent_s = self.now_s;
                    self.target(place, DVec3::ZERO, 0x0df8);
                }
                age_s > 2.0 && at_rest(place)
            }
            Step::Circle(seconds) => {
                if self.is_due(STREAM_PERIOD_S) {
                    let (place, velocity) = on_circle(age_s);
                    self.target(place, velocity, 0x0dc0);
                }
                age_s >= seconds
            }
            Step::Speed(speed_m_s) => {
                // Over the ground; -1 leaves the throttle.
                let params = [1.0, speed_m_s as f32, -1.0, 0.0, 0.0, 0.0, 0.0];
                self.is_accepted(MavCmd::MAV_CMD_DO_CHANGE_SPEED, params)
            }
            Step::Turn(degrees) => {
                // At its own rate, clockwise, from where it points.
                let params = [degrees as f32, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0];
                self.is_accepted(MavCmd::MAV_CMD_CONDITION_YAW, params)
            }
            Step::Rest(seconds) => age_s >= seconds,
            Step::Disarmed => !self.armed,
        }
    }

    /// Commands until that is accepted; whether it is.
    fn is_accepted(&mut self, command: MavCmd, params: [f32; 7]) -> bool {
        let is_accepted = self.accepted == Some(command);
        if !is_accepted && self.is_due(RETRY_S) {
            self.command(command, params);
        }
        is_accepted
    }

    fn send(&mut self, message: &MavMessage) {
        let mut bytes = heapless::Vec::<u8, 280>::new();
        // Every frame fits.
        let _ = encode_v1(GROUND, message, &mut bytes);
        self.out.extend_from_slice(&bytes);
    }

    fn command(&mut self, command: MavCmd, params: [f32; 7]) {
        let [param1, param2, param3, param4, param5, param6, param7] = params;
        self.send(&MavMessage::COMMAND_LONG(COMMAND_LONG_DATA {
            param1,
            param2,
            param3,
            param4,
            param5,
            param6,
            param7,
            command,
            target_system: self.system,
            target_component: 1,
            confirmation: 0,
        }));
    }

    /// Position reports as often as we like, the EKF's state now and then.
    fn ask_streams(&mut self) {
        for (req_stream_id, req_message_rate) in
            [(MavDataStream::MAV_DATA_STREAM_POSITION, SAMPLE_HZ), (MavDataStream::MAV_DATA_STREAM_EXTRA3, 2)]
        {
            self.send(&MavMessage::REQUEST_DATA_STREAM(REQUEST_DATA_STREAM_DATA {
                req_message_rate,
                target_system: self.system,
                target_component: 1,
                req_stream_id,
                start_stop: 1,
            }));
        }
    }

    fn place(&self, local: DVec3) -> Option<Position> {
        self.origin.map(|frame| frame.to_position(local))
    }

    /// A guided target; the mask selects the fields that count.
    fn target(&mut self, place: DVec3, velocity: DVec3, mask: u16) {
        let Some(position) = self.place(place) else { return };
        self.send(&MavMessage::SET_POSITION_TARGET_GLOBAL_INT(SET_POSITION_TARGET_GLOBAL_INT_DATA {
            time_boot_ms: (self.now_s * 1e3) as u32,
            lat_int: position.latitude_e7,
            lon_int: position.longitude_e7,
            alt: place.z as f32,
            vx: velocity.y as f32,
            vy: velocity.x as f32,
            vz: -velocity.z as f32,
            afx: 0.0,
            afy: 0.0,
            afz: 0.0,
            yaw: 0.0,
            yaw_rate: 0.0,
            type_mask: PositionTargetTypemask::from_bits_truncate(mask),
            target_system: self.system,
            target_component: 1,
            coordinate_frame: MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT_INT,
        }));
    }

    /// Item 0 is home, which the autopilot overwrites; the rest are the ends of the legs.
    fn send_item(&mut self, seq: u16) {
        let Some(&local) = LEGS.get(usize::from(seq)) else { return };
        let Some(position) = self.place(local) else { return };
        self.send(&MavMessage::MISSION_ITEM_INT(MISSION_ITEM_INT_DATA {
            param1: 0.0,
            param2: 0.0,
            param3: 0.0,
            param4: 0.0,
            x: position.latitude_e7,
            y: position.longitude_e7,
            z: HEIGHT_M as f32,
            seq,
            command: MavCmd::MAV_CMD_NAV_WAYPOINT,
            target_system: self.system,
            target_component: 1,
            frame: MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT,
            current: u8::from(seq == 1),
            autocontinue: 1,
            mission_type: MavMissionType::MAV_MISSION_TYPE_MISSION,
        }));
    }
}

/// The target on the circle, and its velocity, so long after its begin: counter-clockwise from the east.
pub fn on_circle(age_s: f64) -> (DVec3, DVec3) {
    let (middle, radius_m, speed_m_s) = CIRCLE;
    let angle = speed_m_s / radius_m * age_s;
    let (sin, cos) = angle.sin_cos();
    let place = middle + DVec3::new(cos, sin, 0.0) * radius_m;
    (place, DVec3::new(-sin, cos, 0.0) * speed_m_s)
}
