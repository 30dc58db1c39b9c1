//! What was received on the line to the flight controller, and the findings from it. Pure: bytes come in pieces of
//! any size, findings come out; rates are measured by the flight controller's own clock, so that a slow
//! doctor does not make a slow line.

use std::collections::{BTreeMap, BTreeSet};

use wingbeat_autopilot::{
    codec::{Decoder, FRAME_LEN_MAX, Frame, MavHeader, Version, encode_v2, text},
    dialect::{MavMessage, PARAM_REQUEST_READ_DATA},
    identity::Vehicle,
    job::{AUTOPILOT_COMPONENT_ID, COMPONENT_ID},
};
use wingbeat_geo::Instant;

use super::Finding;

/// The ground station's system id: `SYSID_MYGCS` until ArduCopter 4.6, `MAV_GCS_SYSID` from 4.7.
const GROUND_STATION: [&str; 2] = ["MAV_GCS_SYSID", "SYSID_MYGCS"];
/// Flow control of TELEM2, where the companion computer is: 0 off, 1 on, 2 automatic.
const FLOW_CONTROL: &str = "BRD_SER2_RTSCTS";
/// Of so many frames one may be lost (2 %) before the line is called bad: a healthy serial line loses none.
const LOSS_ONE_IN: u64 = 50;
/// With fewer frames than this no loss is estimated.
const FRAMES_LEAST: u64 = 20;
/// A stream that is slower than this share of what was asked for is too slow.
const RATE_LEAST: f64 = 0.8;

/// The messages that the agent needs besides the position.
const TELEMETRY: [&str; 4] = ["SYS_STATUS", "GPS_RAW_INT", "EKF_STATUS_REPORT", "NAV_CONTROLLER_OUTPUT"];

/// The frames of one sender.
#[derive(Clone, Copy, Debug)]
struct Sender {
    sequence: u8,
    frames: u64,
    lost: u64,
}

/// Position reports, by the flight controller's clock.
#[derive(Clone, Copy, Debug)]
struct Positions {
    first_ms: u32,
    last_ms: u32,
    intervals: u32,
}

/// What was received on the serial line.
#[derive(Default)]
pub(super) struct Survey {
    decoder: Decoder,
    bytes: u64,
    frames: u64,
    /// MAVLink version of the last frame: an autopilot may begin with 1 and change to 2 when it receives 2.
    version: Option<Version>,
    senders: BTreeMap<(u32, u8), Sender>,
    /// System id of each autopilot, and whether it is ArduPilot on a multicopter.
    autopilots: BTreeMap<u32, bool>,
    received: BTreeSet<&'static str>,
    positions: Option<Positions>,
    parameters: BTreeMap<String, f32>,
    asked: bool,
}

/// What the line should be like.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    /// The aircraft's own flight controller, where it is configured.
    pub(super) system_id: Option<u8>,
    /// Between two position reports, milliseconds.
    pub(super) position_interval_ms: u64,
    /// The ground station that the flight controller should obey.
    pub(super) ground_station_id: u8,
    /// Flow control on our side; nothing where the line has none to have (TCP, UDP, USB).
    pub(super) rtscts: Option<bool>,
}

impl Survey {
    /// Bytes from the line.
    pub(super) fn receive(&mut self, now: Instant, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let mut decoder = std::mem::take(&mut self.decoder);
        decoder.push_at(now, bytes, |frame| self.take(&frame));
        self.decoder = decoder;
    }

    fn take(&mut self, frame: &Frame) {
        self.frames += 1;
        self.version = Some(frame.version);
        let MavHeader { system_id, component_id, sequence } = frame.header;
        let sender = self.senders.entry((system_id, component_id)).or_insert(Sender {
            sequence: sequence.wrapping_sub(1),
            frames: 0,
            lost: 0,
        });
        sender.lost += u64::from(sequence.wrapping_sub(sender.sequence).wrapping_sub(1));
        sender.frames += 1;
        sender.sequence = sequence;
        if component_id != AUTOPILOT_COMPONENT_ID {
            return;
        }
        match &frame.message {
            MavMessage::HEARTBEAT(m) => {
                if let Some(vehicle) = Vehicle::of(m) {
                    self.autopilots.insert(system_id, vehicle.is_copter());
                }
            }
            MavMessage::GLOBAL_POSITION_INT(m) => match &mut self.positions {
                // Back in time: it restarted, and counting restarts.
                Some(p) if m.time_boot_ms >= p.last_ms => {
                    p.last_ms = m.time_boot_ms;
                    p.intervals += 1;
                }
                positions => {
                    let now_ms = m.time_boot_ms;
                    *positions = Some(Positions { first_ms: now_ms, last_ms: now_ms, intervals: 0 });
                }
            },
            MavMessage::PARAM_VALUE(m) => {
                self.parameters.insert(text(&m.param_id[..]).to_owned(), m.param_value);
            }
            MavMessage::SYS_STATUS(_) => drop(self.received.insert("SYS_STATUS")),
            MavMessage::GPS_RAW_INT(_) => drop(self.received.insert("GPS_RAW_INT")),
            MavMessage::EKF_STATUS_REPORT(_) => drop(self.received.insert("EKF_STATUS_REPORT")),
            MavMessage::NAV_CONTROLLER_OUTPUT(_) => drop(self.received.insert("NAV_CONTROLLER_OUTPUT")),
            _ => {}
        }
    }

    /// Whether any byte came.
    pub(super) fn is_silent(&self) -> bool {
        self.bytes == 0
    }

    /// Whether a frame of an autopilot was received.
    pub(super) fn has_autopilot(&self) -> bool {
        !self.autopilots.is_empty()
    }

    /// Whether bytes came of which none was MAVLink.
    pub(super) fn is_noise(&self) -> bool {
        self.bytes > 0 && self.frames == 0
    }

    /// The requests for what is not known yet; none once all is known or without one autopilot to ask.
    pub(super) fn questions(&mut self, sequence: &mut u8) -> Vec<u8> {
        let mut bytes = vec![];
        let Some(&target) = self.autopilots.keys().next() else { return bytes };
        let (Ok(target_system), true) = (u8::try_from(target), self.autopilots.len() == 1) else {
            return bytes;
        };
        let station_known = self.ground_station().is_some();
        let names = GROUND_STATION.iter().filter(|_| !station_known).chain([&FLOW_CONTROL]);
        for &name in names.filter(|name| !self.parameters.contains_key(**name)) {
            let request = MavMessage::PARAM_REQUEST_READ(PARAM_REQUEST_READ_DATA {
                param_index: -1, // by name
                target_system,
                target_component: AUTOPILOT_COMPONENT_ID,
                param_id: name.into(),
            });
            let header = MavHeader { system_id: target, component_id: COMPONENT_ID, sequence: *sequence };
            let mut frame = heapless::Vec::<u8, FRAME_LEN_MAX>::new();
            if encode_v2(header, &request, &mut frame).is_ok() {
                *sequence = sequence.wrapping_add(1);
                bytes.extend_from_slice(&frame);
                self.asked = true;
            }
        }
        bytes
    }

    fn ground_station(&self) -> Option<(&'static str, f32)> {
        GROUND_STATION.iter().find_map(|name| Some((*name, *self.parameters.get(*name)?)))
    }

    /// The findings for a line on which frames were received.
    pub(super) fn findings(&self, expected: &Expected, findings: &mut Vec<Finding>) {
        findings.push(self.mavlink());
        findings.push(self.autopilot(expected.system_id));
        if !self.has_autopilot() {
            return;
        }
        findings.push(self.rates(expected));
        findings.push(self.loss());
        if self.autopilots.len() > 1 {
            return; // Whom to ask?
        }
        if self.asked && self.parameters.is_empty() {
            findings.push(self.unanswered(expected));
            return;
        }
        findings.push(self.station(expected));
        findings.extend(self.flow_control(expected));
    }

    fn mavlink(&self) -> Finding {
        match self.version {
            Some(Version::V1) => Finding::warning(
                "MAVLink",
                "MAVLink 1 only",
                "MAVLink 2",
                "SERIAL2_PROTOCOL = 2 (SERIALn of the port in use) and restart the flight controller",
            ),
            Some(Version::V2) | None => Finding::ok("MAVLink", "MAVLink 2"),
        }
    }

    fn autopilot(&self, own: Option<u8>) -> Finding {
        if let Some(own) = own {
            let others = self.autopilots.keys().copied().filter(|id| *id != u32::from(own));
            return match self.autopilots.get(&u32::from(own)) {
                Some(true) => {
                    Finding::ok("autopilot", format!("ArduPilot multicopter, system {own}, as configured"))
                }
                Some(false) => Finding::fault(
                    "autopilot",
                    format!("another autopilot or vehicle, system {own}"),
                    "ArduCopter",
                    "load ArduCopter, or correct autopilot.system_id",
                ),
                None => Finding::fault(
                    "autopilot",
                    format!("no heartbeat of system {own}, but {}", systems_text(others)),
                    format!("system {own}, as autopilot.system_id has it"),
                    "correct autopilot.system_id, or connect the right flight controller",
                ),
            };
        }
        let mut systems = self.autopilots.iter();
        match (systems.next(), systems.next()) {
            (None, _) => {
                let others: BTreeSet<u32> = self.senders.keys().map(|(system, _)| *system).collect();
                Finding::fault(
                    "autopilot",
                    format!("MAVLink of {} and no heartbeat of an autopilot", systems_text(others)),
                    "the heartbeat of a flight controller",
                    "connect the companion computer to a telemetry port of the flight controller itself",
                )
            }
            (Some((id, true)), None) => {
                Finding::ok("autopilot", format!("ArduPilot multicopter, system {id}"))
            }
            (Some((id, false)), None) => Finding::fault(
                "autopilot",
                format!("another autopilot or vehicle, system {id}"),
                "ArduCopter",
                "load ArduCopter, or connect the right flight controller",
            ),
            (Some(_), Some(_)) => Finding::fault(
                "autopilot",
                format!(
                    "{} autopilots on the line, {}",
                    self.autopilots.len(),
                    systems_text(self.autopilots.keys().copied())
                ),
                "one",
                "autopilot.system_id = N, this aircraft's own; or no telemetry radio or router that forwards another's frames",
            ),
        }
    }

    fn rates(&self, expected: &Expected) -> Finding {
        let asked_hz = 1_000.0 / expected.position_interval_ms.max(1) as f64;
        let cure = "SERIAL2_BAUD = 921 and the same rate in autopilot.endpoint; no ground station that sets other \
                    rates; wingbeatd asks for what it needs";
        let Some(positions) = self.positions else {
            return Finding::ok(
                "telemetry",
                "no position reports yet; wingbeatd asks for them when it starts",
            );
        };
        let passed_s = f64::from(positions.last_ms - positions.first_ms) / 1_000.0;
        if positions.intervals == 0 || passed_s <= 0.0 {
            let found = "a single position report";
            return Finding::warning("telemetry", found, format!("{asked_hz:.1} Hz"), cure);
        }
        let rate_hz = f64::from(positions.intervals) / passed_s;
        if rate_hz < asked_hz * RATE_LEAST {
            let found = format!("the position at {rate_hz:.1} Hz");
            return Finding::warning("telemetry", found, format!("{asked_hz:.1} Hz"), cure);
        }
        let missing: Vec<&str> = TELEMETRY.into_iter().filter(|name| !self.received.contains(name)).collect();
        if !missing.is_empty() {
            let found = format!("the position and no {}", missing.join(", no "));
            return Finding::warning("telemetry", found, "each at 1 Hz at least", cure);
        }
        Finding::ok("telemetry", format!("the position at {rate_hz:.1} Hz and all that the agent needs"))
    }

    fn loss(&self) -> Finding {
        // The noisiest sender: frames that a router or a gimbal loses are not this line's.
        let worst = self.senders.values().filter(|sender| sender.frames >= FRAMES_LEAST);
        let worst = worst.max_by(|a, b| (a.lost * b.frames).cmp(&(b.lost * a.frames)));
        let one_in = |s: &Sender| (s.frames + s.lost) as f64 / s.lost as f64;
        match worst {
            Some(sender) if (sender.frames + sender.lost) < sender.lost * LOSS_ONE_IN => Finding::warning(
                "frames",
                format!("one in {:.0} lost, by the gaps in their numbers", one_in(sender)),
                "no gaps",
                "flow control is suspected: connect RTS and CTS, set BRD_SER2_RTSCTS = 1 and :rtscts at the end of \
                 autopilot.endpoint; or a lower rate; shorter wires, a common ground",
            ),
            _ => Finding::ok("frames", "no gaps"),
        }
    }

    fn unanswered(&self, expected: &Expected) -> Finding {
        let expected_text = "an answer to a parameter request";
        if expected.rtscts == Some(true) {
            let found = "telemetry and no answer, with flow control on: our bytes wait for CTS";
            let cure =
                "no :rtscts in autopilot.endpoint unless RTS and CTS are connected and BRD_SER2_RTSCTS = 1";
            return Finding::fault("answers", found, expected_text, cure);
        }
        Finding::fault(
            "answers",
            "telemetry and no answer: our bytes do not arrive",
            expected_text,
            "the wire from our TX to the flight controller's RX; flow control: BRD_SER2_RTSCTS = 0 without RTS and CTS \
             wires; signing: no key that only a ground station has",
        )
    }

    fn station(&self, expected: &Expected) -> Finding {
        let wanted = expected.ground_station_id;
        match self.ground_station() {
            Some((name, value)) if value == f32::from(wanted) => {
                Finding::ok("ground station id", format!("{name} = {value}"))
            }
            Some((name, value)) => Finding::fault(
                "ground station id",
                format!("{name} = {value}"),
                format!("{wanted}"),
                format!("{name} = {wanted}: overrides and heartbeats of another id are not obeyed"),
            ),
            None => Finding::warning(
                "ground station id",
                format!("no answer for {}", GROUND_STATION.join(" or ")),
                format!("{wanted}"),
                "ask again; read it with a ground station",
            ),
        }
    }

    fn flow_control(&self, expected: &Expected) -> Option<Finding> {
        let ours = expected.rtscts?;
        let theirs = *self.parameters.get(FLOW_CONTROL)?;
        // 2 is automatic: it tries, and does without.
        Some(if theirs == 1.0 && !ours {
            Finding::warning(
                "flow control",
                format!("{FLOW_CONTROL} = 1 and none on our side"),
                "both or neither",
                format!("{FLOW_CONTROL} = 0; or connect RTS and CTS and add :rtscts to autopilot.endpoint"),
            )
        } else if theirs == 0.0 && ours {
            Finding::fault(
                "flow control",
                format!("{FLOW_CONTROL} = 0 and :rtscts on our side: our bytes may wait for ever"),
                "both or neither",
                format!("{FLOW_CONTROL} = 1, or no :rtscts in autopilot.endpoint"),
            )
        } else {
            let side = if ours { "on" } else { "off" };
            Finding::ok("flow control", format!("{FLOW_CONTROL} = {theirs}, {side} on our side"))
        })
    }
}

fn systems_text(ids: impl IntoIterator<Item = u32>) -> String {
    let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
    format!("system{} {}", if ids.len() == 1 { "" } else { "s" }, ids.join(", "))
}
