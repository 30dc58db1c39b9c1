//! What comes from the autopilot's line and from ground stations through the gateway.
//!
//! A new job is one line in `JOBS`.

use wingbeat_autopilot::arming::Arm;
use wingbeat_autopilot::codec::finder::{Finder, PATIENCE};
use wingbeat_autopilot::codec::framing::Outgoing;
use wingbeat_autopilot::codec::signing::{Key, Timestamp, Unsigned, Verifier};
use wingbeat_autopilot::codec::{Decoder, FRAME_LEN_MAX, Frame, MavHeader, Version, message};
use wingbeat_autopilot::command::Command;
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{MavMessage, MavMissionType};
use wingbeat_autopilot::gateway::{
    Circumstances, Cookie, Gatekeeper, Verdict, command_of, encode_like, greeting, rate_cap_hz,
};
use wingbeat_autopilot::heartbeat::Heartbeat;
use wingbeat_autopilot::mission::{
    Clear, Download, LegacyKind, LegacyPoint, LegacyUpload, SetCurrent, Upload, items_of,
};
use wingbeat_autopilot::mode::SetMode;
use wingbeat_autopilot::parameter::{Kind, List, Names, Read, Value, Watch, Write};
use wingbeat_autopilot::rc::{Calibration, Channel, Override, ReadCalibration};
use wingbeat_autopilot::signing::SetupSigning;
use wingbeat_autopilot::streams::Streams;
use wingbeat_autopilot::takeoff::TakeOff;
use wingbeat_autopilot::target::{FlyTo, RelativePosition};
use wingbeat_autopilot::{Progress, Telemetry, Transmit};
use wingbeat_geo::{Duration, Instant};

/// The frame reader. The first byte is the length of the pieces, the second the milliseconds between them.
pub fn frames(data: &[u8]) {
    let [piece_len, ms, stream @ ..] = data else { return };
    let mut finder = Finder::default();
    let mut verifying = Decoder::verifying(Verifier::new(Key::new([7; 32]), Unsigned::Refused));
    let (mut now, mut fed, mut in_frames) = (Instant::ZERO, 0, 0);
    for piece in stream.chunks(usize::from(*piece_len).max(1)) {
        finder.expire(now, |raw| in_frames += raw.bytes().len());
        finder.push(now, piece, |raw| {
            in_frames += raw.bytes().len();
            let mut alone = 0;
            Finder::default()
                .push(now, raw.bytes(), |same| alone += usize::from(same.bytes() == raw.bytes()));
            assert_eq!(alone, 1, "a frame is one wherever it stands");
        });
        fed += piece.len();
        let garbage = finder.dropped().garbage_bytes as usize;
        assert_eq!(in_frames + garbage + finder.pending(), fed, "every byte is accounted for");
        assert!(finder.pending() < FRAME_LEN_MAX);
        assert!(finder.due() == Instant::NEVER || finder.due() <= now + PATIENCE, "a frame waits too long");
        verifying.push_at(now, piece, |frame| {
            // 2^48 keys would have to be tried: nothing passes but what needs no signature.
            assert!(matches!(frame.message, MavMessage::RADIO_STATUS(_)), "unsigned: {frame:?}");
        });
        now = now + Duration::from_millis(u64::from(*ms));
    }
    let due = finder.due();
    finder.expire(due, |_| {});
    assert!(due == Instant::NEVER || finder.due() > due, "what is overdue was handed on");
}

/// What a client of the gateway sends: as bytes, and as a frame of every message that commands or requests. The first byte
/// says in which circumstances.
pub fn gateway(data: &[u8]) {
    let Some((&how, bytes)) = data.split_first() else { return };
    let now = Circumstances { system_id: (how & 1 == 0).then_some(1), leased: how & 2 == 0 };
    let gatekeeper = Gatekeeper::new(
        Streams::new(Instant::ZERO, Duration::from_millis(250)).requests(),
        rate_cap_hz(Some(57_600)),
    );
    judge(&gatekeeper, now, bytes);
    let Some(([id, system, flags], payload)) = bytes.split_first_chunk() else { return };
    let id = IDS[usize::from(*id) % IDS.len()];
    let payload: Vec<u8> = payload.iter().copied().take(64).collect();
    let Some(message) = message(id, &payload) else { return };
    let header = MavHeader { system_id: u32::from(*system), component_id: *flags, sequence: how };
    let mut out = heapless::Vec::<u8, FRAME_LEN_MAX>::new();
    let written = if how & 4 == 0 {
        wingbeat_autopilot::codec::encode_v2(header, &message, &mut out)
    } else {
        wingbeat_autopilot::codec::encode_v1(header, &message, &mut out)
    };
    if written.is_ok() {
        judge(&gatekeeper, now, &out);
    }
}

fn judge(gatekeeper: &Gatekeeper, now: Circumstances, bytes: &[u8]) {
    Finder::default().push(Instant::ZERO, bytes, |raw| {
        let verdict = gatekeeper.judge(raw, now);
        assert!(now.system_id.is_some() || matches!(verdict, Verdict::Refuse(_)), "{verdict:?}");
        if let Verdict::Replace(messages) = &verdict {
            for message in messages {
                assert!(
                    command_of(message).is_none(),
                    "what replaces a request commands nothing: {message:?}"
                );
                let mut out = heapless::Vec::<u8, FRAME_LEN_MAX>::new();
                assert!(encode_like(raw, message, &mut out).is_ok(), "{message:?}");
            }
        }
        assert!(
            !Cookie::new(7).is_returned_by(raw) || raw.message_id() == 4,
            "a cookie comes back in a PING"
        );
        let _ = greeting(raw);
    });
}

/// One job with a script: the first byte says which.
pub fn jobs(data: &[u8]) {
    let Some((&job, script)) = data.split_first() else { return };
    (JOBS[usize::from(job) % JOBS.len()].1)(script);
}

/// Every job, each with the same script.
pub fn every_job(script: &[u8]) {
    JOBS.iter().for_each(|(_, run)| run(script));
}

/// Whether a job comes to an end when no answer comes.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    Yes,
    Never,
}

const MISSION: MavMissionType = MavMissionType::MAV_MISSION_TYPE_MISSION;
const CORNER: LegacyPoint = LegacyPoint { latitude_e7: 394_825_940, longitude_e7: -3_462_650, height_m: 20 };
const CHANNEL: Channel = Channel { min_us: 1_000, trim_us: 1_500, max_us: 2_000, dead_zone_us: 20 };
const CALIBRATION: Calibration =
    Calibration { map: [1, 2, 3, 4], channels: [CHANNEL; 4], throttle_dead_zone_us: 100 };
const PLACE: RelativePosition =
    RelativePosition { latitude_e7: 394_825_940, longitude_e7: -3_462_650, height_mm: 20_000 };

/// A job and how it is driven: whether it ends, how it begins, when it is due, how it receives and polls.
type Entry = (&'static str, fn(&[u8]));

/// One line for each job.
#[rustfmt::skip]
const JOBS: &[Entry] = &[
    ("arming", |d| drive(d, Ends::Yes, |now, _| Arm::new(now), Arm::due, |j, _, m| j.on_message(m), |j, now, t, out| j.poll(now, t, out))),
    ("mode", |d| drive(d, Ends::Yes, |now, _| SetMode::new(now, Mode::Guided), SetMode::due, |_, _, _| {}, |j, now, t, out| j.poll(now, t, out))),
    ("stop", |d| drive(d, Ends::Never, |now, _| SetMode::insist(now, Mode::Brake), SetMode::due, |_, _, _| {}, |j, now, t, out| j.poll(now, t, out))),
    ("take-off", |d| drive(d, Ends::Yes, |now, t| TakeOff::new(now, 20.0, t), TakeOff::due, |j, now, m| j.on_message(now, m), |j, now, t, out| j.poll(now, t, out))),
    ("target", |d| drive(d, Ends::Yes, |now, _| FlyTo::new(now, PLACE), FlyTo::due, |_, _, _| {}, |j, now, t, out| j.poll(now, t, out))),
    ("mission", |d| drive(d, Ends::Yes, |now, _| Upload::new(now, items_of([PLACE; 5].into_iter()).unwrap_or_default()), Upload::due, |j, now, m| j.on_message(now, m), |j, now, _, out| j.poll(now, out))),
    ("signing", |d| drive(d, Ends::Yes, |now, _| SetupSigning::new(now, Key::new([7; 32])), SetupSigning::due, |_, _, _| {}, |j, now, t, out| j.poll(now, t, false, Timestamp::default(), out))),
    ("streams", |d| drive(d, Ends::Never, |now, _| Streams::new(now, Duration::from_millis(250)), Streams::due, |j, now, m| j.on_message(now, m), |j, now, _, out| j.poll(now, out).map_or(Progress::Pending, |()| Progress::Pending))),
    ("heartbeat", |d| drive(d, Ends::Never, |now, _| Heartbeat::new(now), Heartbeat::due, |_, _, _| {}, |j, now, _, out| j.poll(now, out).map_or(Progress::Pending, |()| Progress::Pending))),
    ("parameter read", |d| drive(d, Ends::Yes, |now, _| Read::new(now, Names::SYSTEM_ID, Kind::Integer), Read::due, |j, now, m| j.on_message(now, m), |j, now, _, out| j.poll(now, out))),
    ("parameter write", |d| drive(d, Ends::Yes, |now, _| Write::new(now, Names::SYSTEM_ID, Value::Integer(1)), Write::due, |j, now, m| j.on_message(now, m), |j, now, _, out| j.poll(now, out))),
    ("parameter list", |d| drive(d, Ends::Yes, |now, _| List::new(now), List::due, |j, now, m| { let _ = j.on_message(now, m); }, |j, now, _, out| j.poll(now, out))),
    ("fence", |d| drive(d, Ends::Yes, |now, _| Upload::of_kind(now, MavMissionType::MAV_MISSION_TYPE_FENCE, items_of([PLACE; 5].into_iter()).unwrap_or_default()), Upload::due, |j, now, m| j.on_message(now, m), |j, now, _, out| j.poll(now, out))),
    ("legacy fence", |d| drive(d, Ends::Yes, |now, _| LegacyUpload::new(now, LegacyKind::Fence, [CORNER; 5].into_iter().collect()), LegacyUpload::due, |j, now, m| j.on_message(now, m), |j, now, _, out| j.poll(now, out))),
    ("legacy rally", |d| drive(d, Ends::Yes, |now, _| LegacyUpload::new(now, LegacyKind::Rally, [CORNER; 3].into_iter().collect()), LegacyUpload::due, |j, now, m| j.on_message(now, m), |j, now, _, out| j.poll(now, out))),
    ("download", |d| drive(d, Ends::Yes, |now, _| Download::new(now), Download::due, |j, now, m| j.on_message(now, m), |j, now, _, out| j.poll(now, out))),
    ("clear", |d| drive(d, Ends::Yes, |now, _| Clear::new(now, MISSION), Clear::due, |j, now, m| j.on_message(now, m), |j, now, _, out| j.poll(now, out))),
    ("current item", |d| drive(d, Ends::Yes, |now, _| SetCurrent::new(now, 2), SetCurrent::due, |j, _, m| j.on_message(m), |j, now, _, out| j.poll(now, out))),
    ("command", |d| drive(d, Ends::Yes, |now, _| Command::planned_speed(now, 5.0), Command::due, |j, now, m| j.on_message(now, m), |j, now, t, out| j.poll(now, t, out))),
    ("disarming", |d| drive(d, Ends::Yes, |now, _| Command::disarm(now), Command::due, |j, now, m| j.on_message(now, m), |j, now, t, out| j.poll(now, t, out))),
    ("home", |d| drive(d, Ends::Yes, |now, _| Command::get_home(now), Command::due, |j, now, m| j.on_message(now, m), |j, now, t, out| j.poll(now, t, out))),
    ("mission start", |d| drive(d, Ends::Yes, |now, _| Command::start_mission(now), Command::due, |j, now, m| j.on_message(now, m), |j, now, t, out| j.poll(now, t, out))),
    ("reboot", |d| drive(d, Ends::Yes, |now, t| Command::reboot(now, t).unwrap_or_else(|e| panic!("{e}")), Command::due, |j, now, m| j.on_message(now, m), |j, now, t, out| j.poll(now, t, out))),
    ("calibration", |d| drive(d, Ends::Yes, |now, _| ReadCalibration::new(now), ReadCalibration::due, |j, now, m| j.on_message(now, m), |j, now, _, out| j.poll(now, out))),
    ("override", |d| drive(d, Ends::Never, |now, _| { let mut hand = Override::new(CALIBRATION); hand.take(now); hand }, Override::due, |_, _, _| {}, |j, now, t, out| { j.poll(now, t.mode(), 255, out); Progress::Pending })),
    ("release", |d| drive(d, Ends::Never, |now, _| { let mut hand = Override::new(CALIBRATION); hand.release(now); hand }, Override::due, |_, _, _| {}, |j, now, t, out| { j.poll(now, t.mode(), 255, out); Progress::Pending })),
    ("parameter watch", |d| drive(d, Ends::Never, |now, _| Watch::new(now), Watch::due, |j, _, m| j.on_message(m), |j, now, _, out| j.poll(now, out).map_or(Progress::Pending, |()| Progress::Pending))),
];

/// Messages that a job may wait for.
const IDS: [u32; 23] =
    [0, 1, 11, 22, 24, 33, 39, 40, 42, 44, 46, 47, 51, 62, 73, 76, 77, 87, 148, 253, 160, 175, 242];
/// However a transfer stalls, it has ended after so much silence.
const END: Duration = Duration::from_secs(1_800);
/// A job that never ends is polled for so long.
const LOOK_LONGER: Duration = Duration::from_secs(20);
/// Polls at one instant until a job must have advanced.
const POLLS_MAX: usize = 16;
/// Frames that one poll may send.
const FRAMES_MAX: usize = 8;

/// A job between a script and a wire.
struct Driver<J> {
    job: J,
    due: fn(&J) -> Instant,
    receive: fn(&mut J, Instant, &MavMessage),
    poll: fn(&mut J, Instant, &Telemetry, &mut Transmit<'_>) -> Progress,
    telemetry: Telemetry,
    outgoing: Outgoing,
    now: Instant,
    ended: bool,
}

impl<J> Driver<J> {
    fn on_frame(&mut self, frame: &Frame) {
        self.telemetry.on_frame(self.now, frame);
        (self.receive)(&mut self.job, self.now, &frame.message);
    }

    /// Polls the job until it is not due any more.
    fn poll_due(&mut self, at_least_once: bool) {
        for _ in 0..POLLS_MAX {
            if self.ended || !at_least_once && (self.due)(&self.job) > self.now {
                return;
            }
            let mut bytes = heapless::Vec::new();
            let mut transmit = self.outgoing.transmit(1, &mut bytes);
            let progress = (self.poll)(&mut self.job, self.now, &self.telemetry, &mut transmit);
            self.ended = progress != Progress::Pending;
            let (mut decoder, mut frames) = (Decoder::default(), 0);
            decoder.push(&bytes, |_| frames += 1);
            assert!(frames <= FRAMES_MAX, "{frames} frames in one poll");
            assert_eq!(decoder.refused(), Default::default(), "it sends whole frames and nothing else");
            if (self.due)(&self.job) > self.now {
                return;
            }
        }
        assert!(self.ended, "due again and again at one instant");
    }
}

fn drive<J>(
    script: &[u8],
    ends: Ends,
    new: fn(Instant, &Telemetry) -> J,
    due: fn(&J) -> Instant,
    receive: fn(&mut J, Instant, &MavMessage),
    poll: fn(&mut J, Instant, &Telemetry, &mut Transmit<'_>) -> Progress,
) {
    let (now, telemetry) = (Instant::from_secs(100), Telemetry::default());
    let job = new(now, &telemetry);
    let mut driver =
        Driver { job, due, receive, poll, telemetry, outgoing: Outgoing::default(), now, ended: false };
    let mut decoder = Decoder::default();
    let mut latest = now;
    let mut script = script.iter().copied();
    while let Some(step) = script.next() {
        let mut byte = || script.next().unwrap_or(0);
        match step % 8 {
            0..=2 => {
                let ms = u64::from(u16::from_le_bytes([byte(), byte()]) % 4_000);
                driver.now = driver.now + Duration::from_millis(ms);
            }
            // Whoever owns us may restart its clock.
            3 => driver.now = driver.now - Duration::from_millis(u64::from(byte()) * 10),
            4 | 5 => {
                let id = IDS[usize::from(byte()) % IDS.len()];
                let payload: Vec<u8> = (0..byte() % 64).map(|_| byte()).collect();
                if let Some(message) = message(id, &payload) {
                    let header = MavHeader { system_id: 1, component_id: 1, sequence: 0 };
                    driver.on_frame(&Frame { header, version: Version::V2, message });
                }
            }
            6 => {
                let bytes: Vec<u8> = (0..byte()).map(|_| byte()).collect();
                decoder.push_at(driver.now, &bytes, |frame| driver.on_frame(&frame));
            }
            _ => driver.poll_due(true),
        }
        latest = latest.max(driver.now);
        driver.poll_due(false);
    }
    // From now on no answer comes.
    driver.now = latest;
    let give_up_at = driver.now + if ends == Ends::Yes { END } else { LOOK_LONGER };
    while !driver.ended && driver.now < give_up_at {
        let due = (driver.due)(&driver.job);
        if due == Instant::NEVER {
            assert!(ends == Ends::Never, "it waits for ever");
            break;
        }
        driver.now = driver.now.max(due);
        driver.poll_due(false);
    }
    assert!(driver.ended || ends == Ends::Never, "it has not ended after {END:?} of silence");
}
