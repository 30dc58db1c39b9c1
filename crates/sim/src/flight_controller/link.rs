//! The link to the companion: frames out of bytes, addressing, accepted senders, and what is sent back.

use core::fmt::Write as _;

use wingbeat_autopilot::codec::finder::Raw;
use wingbeat_autopilot::codec::{Decoder, FRAME_LEN_MAX, Frame, MavHeader, Refused, encode_v1, encode_v2};
use wingbeat_autopilot::dialect::{
    COMMAND_ACK_DATA, DEVICE_OP_READ_DATA, DEVICE_OP_READ_REPLY_DATA, LOG_DATA_DATA, LOG_ENTRY_DATA, MavCmd,
    MavMessage, MavResult, MavSeverity, PING_DATA, STATUSTEXT_DATA, TIMESYNC_DATA,
};

use super::{FlightController, Parameter};
use crate::motion::Profile;

/// The autopilot's MAVLink component id.
pub(super) const COMPONENT: u8 = 1;

/// What happened on the link since boot. Saturating where an unknown sender can count them up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Whole frames of the dialect that arrived.
    pub frames_in: u32,
    /// Frames that were sent.
    pub frames_out: u32,
    /// What the decoder dropped.
    pub refused: Refused,
    /// Frames that are addressed to another system.
    pub other_target: u32,
    /// Frames that `SYSID_ENFORCE` keeps out.
    pub other_sender: u32,
    /// Frames whose message has no meaning for a flight controller.
    pub ignored: u32,
    /// Parameters asked for or set that this version does not have, or set to no number.
    pub unknown_parameters: u32,
    /// Guided targets that were not taken: not in GUIDED, a mask or frame that is not flown, no number.
    pub targets_refused: u32,
    /// Commands accepted.
    pub commands_accepted: u32,
    /// Commands that are known and were refused.
    pub commands_failed: u32,
    /// Commands that this version does not know.
    pub commands_unsupported: u32,
}

/// What is left of a text that is cut.
const GARBLED_LEN: usize = 8;
/// First byte of a MAVLink 1 frame.
const MAGIC_V1: u8 = 0xfe;
/// The message number of `SET_MODE`.
const SET_MODE_NUMBER: u16 = 11;
/// Commands whose number has one byte and two: an acknowledgement of them has room for the number of another.
const ONE_BYTE: MavCmd = MavCmd::MAV_CMD_NAV_WAYPOINT;
const TWO_BYTES: MavCmd = MavCmd::MAV_CMD_DO_SEND_BANNER;
/// The message numbers of `COMMAND_INT` and `COMMAND_LONG`; both have the command's number and the addressee here.
const COMMANDS: [u32; 2] = [75, 76];
const COMMAND_AT: usize = 28;
/// The result of reading a device that is not there (ArduPilot, `handle_device_op_read`).
const NO_DEVICE: u8 = 2;
/// What the checksum of a `COMMAND_ACK` ends with
/// (<https://mavlink.io/en/guide/serialization.html#crc_extra>).
const COMMAND_ACK_EXTRA: u8 = 143;

/// MAVLink's checksum, CRC-16/MCRF4XX, of `bytes` and then `extra`.
pub(super) fn checksum(bytes: &[u8], extra: u8) -> u16 {
    bytes.iter().chain([&extra]).fold(0xffff, |crc, &byte| {
        let mut t = byte ^ (crc & 0xff) as u8;
        t ^= t << 4;
        let t = u16::from(t);
        (crc >> 8) ^ (t << 8) ^ (t << 3) ^ (t >> 4)
    })
}

/// The sender of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sender {
    pub(super) system: u8,
    pub(super) component: u8,
}

#[derive(Default)]
pub(super) struct Link {
    decoder: Decoder,
    /// What waits between arriving and being read.
    inbox: Vec<Arrived>,
    outbox: Vec<u8>,
    sequence: u8,
    pub(super) system_id: u8,
    pub(super) muted: bool,
    pub(super) are_texts_garbled: bool,
}

impl core::fmt::Debug for Link {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Link").field("system_id", &self.system_id).finish_non_exhaustive()
    }
}

/// What arrives.
#[allow(clippy::large_enum_variant, reason = "nearly all that arrives are frames")]
enum Arrived {
    Frame(Frame),
    /// A command whose number or frame of reference is not of the dialect.
    UnknownCommand {
        number: u16,
        from: Sender,
        system: u8,
        component: u8,
    },
}

impl Arrived {
    fn unknown(raw: Raw<'_>) -> Option<Self> {
        // MAVLink 2 leaves out zeros at the end.
        let byte = |at: usize| raw.payload().get(at).copied().unwrap_or(0);
        let header = raw.header();
        COMMANDS.contains(&raw.message_id()).then(|| Self::UnknownCommand {
            number: u16::from_le_bytes([byte(COMMAND_AT), byte(COMMAND_AT + 1)]),
            from: Sender { system: header.system_id as u8, component: header.component_id },
            system: byte(COMMAND_AT + 2),
            component: byte(COMMAND_AT + 3),
        })
    }
}

/// Frames that wait for one tick; what comes on top is lost, as in a receive buffer that runs over.
const INBOX_MAX: usize = 256;

impl Link {
    pub(super) fn new(system_id: u8) -> Self {
        Self { system_id, ..Self::default() }
    }
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        let inbox = &mut self.inbox;
        self.decoder.push_all(bytes, |frame| {
            let arrived = frame.map_or_else(Arrived::unknown, |frame| Some(Arrived::Frame(frame)));
            if inbox.len() < INBOX_MAX {
                inbox.extend(arrived);
            }
        });
    }
    pub(super) fn refused(&self) -> Refused {
        self.decoder.refused()
    }
    pub(super) fn drain(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.outbox);
        self.outbox.clear();
    }
    /// Appends a frame in the version that the companion's last frame had; version 2 before that.
    fn send(&mut self, component_id: u8, message: &MavMessage) {
        let header =
            MavHeader { system_id: u32::from(self.system_id), component_id, sequence: self.sequence };
        self.sequence = self.sequence.wrapping_add(1);
        if self.muted {
            return;
        }
        let mut frame = heapless::Vec::<u8, FRAME_LEN_MAX>::new();
        let written = match self.decoder.version() {
            Some(1) => encode_v1(header, message, &mut frame),
            _ => encode_v2(header, message, &mut frame),
        };
        written.expect("a buffer of FRAME_LEN_MAX holds every frame");
        self.outbox.extend_from_slice(&frame);
    }
}

/// Messages of a log that are sent at once: the real one sends until it is stopped, as fast as its line takes them.
const LOG_MESSAGES_MAX: u32 = 128;

impl FlightController {
    /// Lists logs as ArduCopter does: one of length 0 where there is none.
    fn list_logs(&mut self, start: u16, end: u16) {
        let count = u16::try_from(self.config.logs.len()).unwrap_or(u16::MAX);
        if count == 0 {
            return self.send(&MavMessage::LOG_ENTRY(LOG_ENTRY_DATA::DEFAULT));
        }
        let last_log_num = end.min(count);
        for id in start.max(1)..=last_log_num {
            let Some((time_utc, log)) = self.config.logs.get(usize::from(id) - 1) else { continue };
            let size = u32::try_from(log.len()).unwrap_or(u32::MAX);
            let entry = LOG_ENTRY_DATA { time_utc: *time_utc, size, id, num_logs: count, last_log_num };
            self.send(&MavMessage::LOG_ENTRY(entry));
        }
    }

    /// Sends a piece of a log; of what it does not have an empty message.
    fn send_log(&mut self, id: u16, from: u32, count: u32) {
        let logs = std::mem::take(&mut self.config.logs);
        let log = usize::from(id).checked_sub(1).and_then(|index| logs.get(index));
        let log: &[u8] = log.map_or(&[], |(_, log)| log);
        let mut ofs = from;
        for _ in 0..LOG_MESSAGES_MAX {
            let left = from.saturating_add(count).saturating_sub(ofs).min(90) as usize;
            let begin = (ofs as usize).min(log.len());
            let piece = &log[begin..(begin + left).min(log.len())];
            let mut data = [0; 90];
            data[..piece.len()].copy_from_slice(piece);
            let message = LOG_DATA_DATA { ofs, id, count: piece.len() as u8, data };
            self.send(&MavMessage::LOG_DATA(message));
            ofs = ofs.saturating_add(90);
            if piece.len() < 90 || ofs >= from.saturating_add(count) {
                break;
            }
        }
        self.config.logs = logs;
    }
}

impl FlightController {
    pub(super) fn send(&mut self, message: &MavMessage) {
        self.send_from(COMPONENT, message);
    }

    /// What a component behind the autopilot sends: it passes that on.
    pub(super) fn send_from(&mut self, component: u8, message: &MavMessage) {
        if self.is_sending() {
            self.counters.frames_out = self.counters.frames_out.wrapping_add(1);
            self.link.send(component, message);
        }
    }

    /// A text for the operator; what is longer than a STATUSTEXT holds is cut.
    pub(super) fn send_text(&mut self, severity: MavSeverity, text: core::fmt::Arguments<'_>) {
        let mut buffer = heapless::String::<64>::new();
        // A text that does not fit is cut where the buffer ends.
        let _ = buffer.write_fmt(text);
        if self.link.are_texts_garbled {
            let letter = |(i, c)| if i % 3 == 2 { '~' } else { c };
            buffer = buffer.chars().take(GARBLED_LEN).enumerate().map(letter).collect();
        }
        self.send(&MavMessage::STATUSTEXT(STATUSTEXT_DATA {
            severity,
            text: buffer.as_str().into(),
            id: 0,
            chunk_seq: 0,
        }));
    }

    /// Acknowledges a command. 3.5.7 leaves the target fields empty, 4.x names the sender.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub(super) fn acknowledge(&mut self, command: MavCmd, result: MavResult, to: Sender) {
        match result {
            MavResult::MAV_RESULT_ACCEPTED => self.counters.commands_accepted += 1,
            MavResult::MAV_RESULT_UNSUPPORTED => self.counters.commands_unsupported += 1,
            _ => self.counters.commands_failed += 1,
        }
        let to = match self.profile() {
            Profile::Copter357 => Sender::default(),
            Profile::Copter462 => to,
        };
        self.send(&MavMessage::COMMAND_ACK(COMMAND_ACK_DATA {
            command,
            result,
            progress: 0,
            result_param2: 0,
            target_system: to.system,
            target_component: to.component,
        }));
    }

    /// Acknowledges `SET_MODE` as 3.5.7 does: as the command whose number is the message's, 11.
    pub(super) fn acknowledge_set_mode(&mut self, result: MavResult) {
        self.acknowledge_number(SET_MODE_NUMBER, result, Sender::default());
    }

    /// Acknowledges a command that the dialect does not have: its number is written into a finished frame.
    fn acknowledge_number(&mut self, number: u16, result: MavResult, to: Sender) {
        let start = self.link.outbox.len();
        let [low, high] = number.to_le_bytes();
        self.acknowledge(if high == 0 { ONE_BYTE } else { TWO_BYTES }, result, to);
        let Some(frame) = self.link.outbox.get_mut(start..).filter(|f| !f.is_empty()) else { return };
        let header_len = if frame[0] == MAGIC_V1 { 6 } else { 10 };
        frame[header_len] = low;
        if high != 0 {
            frame[header_len + 1] = high;
        }
        let end = frame.len() - 2;
        let checksum = checksum(&frame[1..end], COMMAND_ACK_EXTRA).to_le_bytes();
        frame[end..].copy_from_slice(&checksum);
    }

    /// Reads what arrived since the last tick.
    pub(super) fn read_link(&mut self) {
        if self.link.inbox.is_empty() {
            return;
        }
        let mut inbox = core::mem::take(&mut self.link.inbox);
        // Before it has booted no task reads.
        for arrived in inbox.drain(..) {
            match arrived {
                Arrived::Frame(frame) => {
                    self.counters.frames_in = self.counters.frames_in.saturating_add(1);
                    if self.is_sending() {
                        self.handle(&frame);
                    }
                }
                Arrived::UnknownCommand { number, from, system, component } => {
                    if self.is_sending() && self.addressed(system, component) {
                        self.acknowledge_number(number, MavResult::MAV_RESULT_UNSUPPORTED, from);
                    }
                }
            }
        }
        self.link.inbox = inbox;
    }

    /// Whether a frame is meant for this autopilot: its system, its component, or all.
    fn addressed(&mut self, system: u8, component: u8) -> bool {
        let mine =
            (system == 0 || system == self.link.system_id) && (component == 0 || component == COMPONENT);
        if !mine {
            self.counters.other_target = self.counters.other_target.saturating_add(1);
        }
        mine
    }

    /// There are no buses with devices here.
    fn refuse_device(&mut self, m: &DEVICE_OP_READ_DATA) {
        self.send(&MavMessage::DEVICE_OP_READ_REPLY(DEVICE_OP_READ_REPLY_DATA {
            request_id: m.request_id,
            result: NO_DEVICE,
            regstart: m.regstart,
            count: m.count,
            bank: m.bank,
            ..DEVICE_OP_READ_REPLY_DATA::DEFAULT
        }));
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    fn handle(&mut self, frame: &Frame) {
        // A system id beyond a byte cannot be answered and matches no id that a parameter names.
        let system = u8::try_from(frame.header.system_id).unwrap_or(0);
        let from = Sender { system, component: frame.header.component_id };
        let ground = self.parameters.get(Parameter::SYSID_MYGCS) as u8;
        if self.parameters.flag(Parameter::SYSID_ENFORCE) == 1 && from.system != ground {
            self.counters.other_sender = self.counters.other_sender.saturating_add(1);
            return;
        }
        let from_ground = from.system == ground;
        macro_rules! mine {
            ($m:ident) => {
                self.addressed($m.target_system, $m.target_component)
            };
        }
        match &frame.message {
            MavMessage::HEARTBEAT(_) => {
                if from_ground {
                    self.failsafes.on_ground_station_heartbeat(self.now);
                }
            }
            MavMessage::COMMAND_LONG(m) if mine!(m) => self.handle_command_long(m, from),
            MavMessage::COMMAND_INT(m) if mine!(m) => self.handle_command_int(m, from),
            MavMessage::SET_MODE(m) if self.addressed(m.target_system, 0) => self.handle_set_mode(m),
            MavMessage::PARAM_REQUEST_LIST(m) if mine!(m) => {
                self.send_banner();
                self.handle_param_request_list();
            }
            MavMessage::PARAM_REQUEST_READ(m) if mine!(m) => self.handle_param_request_read(m),
            MavMessage::PARAM_SET(m) if mine!(m) => self.handle_param_set(m),
            MavMessage::MISSION_COUNT(m) if mine!(m) => self.handle_mission_count(m, from),
            MavMessage::MISSION_ITEM(m) if mine!(m) => self.handle_mission_item(m, from),
            MavMessage::MISSION_ITEM_INT(m) if mine!(m) => self.handle_mission_item_int(m, from),
            MavMessage::MISSION_REQUEST_LIST(m) if mine!(m) => self.handle_mission_request_list(m, from),
            MavMessage::MISSION_REQUEST(m) if mine!(m) => {
                self.handle_mission_request(m.seq, m.mission_type, false, from);
            }
            MavMessage::MISSION_REQUEST_INT(m) if mine!(m) => {
                self.handle_mission_request(m.seq, m.mission_type, true, from);
            }
            MavMessage::MISSION_CLEAR_ALL(m) if mine!(m) => self.handle_mission_clear_all(m, from),
            MavMessage::MISSION_SET_CURRENT(m) if mine!(m) => self.handle_mission_set_current(m.seq),
            // The end of a download: nothing is owed for it.
            MavMessage::MISSION_ACK(m) if mine!(m) => {}
            MavMessage::SET_POSITION_TARGET_GLOBAL_INT(m) if mine!(m) => self.handle_target_global(m),
            MavMessage::SET_POSITION_TARGET_LOCAL_NED(m) if mine!(m) => self.handle_target_local(m),
            MavMessage::RC_CHANNELS_OVERRIDE(m) if mine!(m) => {
                if from_ground {
                    self.handle_rc_override(m);
                } else {
                    self.counters.other_sender = self.counters.other_sender.saturating_add(1);
                }
            }
            MavMessage::REQUEST_DATA_STREAM(m) if mine!(m) => self.handle_request_data_stream(m),
            MavMessage::TIMESYNC(m) => {
                // A question has no answer in it yet.
                if m.tc1 == 0 {
                    self.send(&MavMessage::TIMESYNC(TIMESYNC_DATA {
                        tc1: (self.uptime().as_micros() as i64).saturating_mul(1_000),
                        ts1: m.ts1,
                        target_system: from.system,
                        target_component: from.component,
                    }));
                }
            }
            // 3.5.7 leaves a broadcast ping unanswered.
            MavMessage::PING(m) if self.profile() == Profile::Copter462 => {
                if m.target_system == 0 && m.target_component == 0 {
                    self.send(&MavMessage::PING(PING_DATA {
                        time_usec: m.time_usec,
                        seq: m.seq,
                        target_system: from.system,
                        target_component: from.component,
                    }));
                }
            }
            MavMessage::AUTOPILOT_VERSION_REQUEST(m) if mine!(m) => self.send_version(),
            MavMessage::FILE_TRANSFER_PROTOCOL(m) if mine!(m) && self.profile() == Profile::Copter462 => {
                self.handle_file_transfer(m, from);
            }
            MavMessage::LOG_REQUEST_LIST(m) if mine!(m) => self.list_logs(m.start, m.end),
            MavMessage::LOG_REQUEST_DATA(m) if mine!(m) => self.send_log(m.id, m.ofs, m.count),
            MavMessage::LOG_REQUEST_END(m) if mine!(m) => {}
            MavMessage::LOG_ERASE(m) if mine!(m) => {}
            // 3.5.7 leaves it unanswered (measured).
            MavMessage::DEVICE_OP_READ(m) if mine!(m) && self.profile() == Profile::Copter462 => {
                self.refuse_device(m);
            }
            MavMessage::FENCE_FETCH_POINT(m) if mine!(m) => self.handle_fence_fetch(m.idx, from),
            MavMessage::FENCE_POINT(m) if mine!(m) => self.handle_fence_point(m),
            MavMessage::RALLY_FETCH_POINT(m) if mine!(m) => self.handle_rally_fetch(m.idx, from),
            MavMessage::RALLY_POINT(m) if mine!(m) => self.handle_rally_point(m),
            MavMessage::GPS_RTCM_DATA(m) => self.handle_corrections(m),
            message if self.handle_remote_id(message) => {}
            _ => self.counters.ignored = self.counters.ignored.saturating_add(1),
        }
    }
}
