//! Override of the sticks: RC_CHANNELS_OVERRIDE from −1..1 per axis, with the autopilot's own calibration
//! (<https://mavlink.io/en/messages/common.html#RC_CHANNELS_OVERRIDE>).
//!
//! Nothing is sent before [`Override::take`], an explicit act of the caller. ArduCopter obeys overrides
//! only from its ground station's system id, so every frame carries that id as its source. 3.5.7 keeps an
//! override without a time-out in some builds: a release is repeated.

use wingbeat_geo::{Duration, Instant};

use crate::copter::Mode;
use crate::dialect::{MavMessage, RC_CHANNELS_OVERRIDE_DATA};
use crate::job::{AUTOPILOT_COMPONENT_ID, COMPONENT_ID, Failure, Progress, Transmit};
use crate::parameter::{Kind, Names, Read};

/// Channels that are overridden.
pub const CHANNELS: usize = 8;

/// Faster than this, values may be dropped (ArduSim's documentation observed that); ArduCopter drops an
/// override after RC_OVERRIDE_TIME, 3 s.
pub const PERIOD: Duration = Duration::from_millis(400);
/// Releases that are sent.
const RELEASES: u8 = 5;
/// The time between them.
const RELEASE_PERIOD: Duration = Duration::from_millis(200);

/// How one channel is calibrated, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// RCn_MIN.
    pub min_us: u16,
    /// RCn_TRIM.
    pub trim_us: u16,
    /// RCn_MAX.
    pub max_us: u16,
    /// RCn_DZ.
    pub dead_zone_us: u16,
}

impl Channel {
    /// The pulse of −1..1: beyond the dead zone of the middle, out to the end. Zero, a value out of
    /// range and NaN are the middle.
    fn pulse_us(&self, value: f64, middle_us: u16, dead_zone_us: u16) -> u16 {
        if value == 0.0 || !(-1.0..=1.0).contains(&value) {
            return middle_us;
        }
        let (from, to) = if value > 0.0 {
            (middle_us.saturating_add(dead_zone_us).min(self.max_us), self.max_us)
        } else {
            (middle_us.saturating_sub(dead_zone_us).max(self.min_us), self.min_us)
        };
        let pulse = f64::from(from) + (f64::from(to) - f64::from(from)) * libm::fabs(value);
        libm::round(pulse) as u16
    }
}

/// The calibration of the four sticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// Channel numbers 1..=8 of roll, pitch, throttle, yaw (RCMAP_*).
    pub map: [u8; 4],
    /// The four channels, in the same order.
    pub channels: [Channel; 4],
    /// THR_DZ: around the throttle's middle, in modes that hold the height.
    pub throttle_dead_zone_us: u16,
}

/// Stick positions, −1..1: right, forward as the transmitter has it, up, right.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sticks {
    /// Roll.
    pub roll: f64,
    /// Pitch.
    pub pitch: f64,
    /// Throttle; 0 is the middle.
    pub throttle: f64,
    /// Yaw.
    pub yaw: f64,
}

const MAP: [&str; 4] = ["RCMAP_ROLL", "RCMAP_PITCH", "RCMAP_THROTTLE", "RCMAP_YAW"];
/// The parameters of each channel.
const OF_CHANNEL: [[&str; 4]; CHANNELS] = [
    ["RC1_MIN", "RC1_TRIM", "RC1_MAX", "RC1_DZ"],
    ["RC2_MIN", "RC2_TRIM", "RC2_MAX", "RC2_DZ"],
    ["RC3_MIN", "RC3_TRIM", "RC3_MAX", "RC3_DZ"],
    ["RC4_MIN", "RC4_TRIM", "RC4_MAX", "RC4_DZ"],
    ["RC5_MIN", "RC5_TRIM", "RC5_MAX", "RC5_DZ"],
    ["RC6_MIN", "RC6_TRIM", "RC6_MAX", "RC6_DZ"],
    ["RC7_MIN", "RC7_TRIM", "RC7_MAX", "RC7_DZ"],
    ["RC8_MIN", "RC8_TRIM", "RC8_MAX", "RC8_DZ"],
];
/// The map, four numbers of four channels, and THR_DZ.
const NUMBERS: usize = 4 + 16 + 1;

/// Reads the calibration.
#[derive(Clone, Copy, Debug)]
pub struct ReadCalibration {
    numbers: [u16; NUMBERS],
    known: usize,
    read: Read,
}

impl ReadCalibration {
    /// Reads one parameter after the other: the map names the channels.
    pub fn new(now: Instant) -> Self {
        Self { numbers: [0; NUMBERS], known: 0, read: Self::next(now, MAP[0]) }
    }
    fn next(now: Instant, name: &'static str) -> Read {
        Read::new(now, Names::one(name), Kind::Integer)
    }
    fn name(&self, index: usize) -> &'static str {
        match index {
            0..4 => MAP[index],
            4..20 => {
                let channel = usize::from(self.numbers[(index - 4) / 4]).clamp(1, CHANNELS);
                OF_CHANNEL[channel - 1][(index - 4) % 4]
            }
            _ => "THR_DZ",
        }
    }
    /// When the job is due.
    pub fn due(&self) -> Instant {
        if self.known == NUMBERS || self.read.value().is_some() { Instant::ZERO } else { self.read.due() }
    }
    /// Takes the answers.
    pub fn on_message(&mut self, now: Instant, message: &MavMessage) {
        self.read.on_message(now, message);
    }
    /// Sends when due; done when everything is known.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Progress {
        while self.known < NUMBERS {
            match self.read.poll(now, transmit) {
                Progress::Done => {}
                other @ (Progress::Pending | Progress::Failed(_)) => return other,
            }
            let Some((name, value)) = self.read.value() else { return Progress::Pending };
            let number = value.as_integer().and_then(|i| u16::try_from(i).ok());
            let number = number.filter(|&n| self.known >= 4 || (1..=CHANNELS as u16).contains(&n));
            let Some(number) = number else {
                let found = value.as_f64() as f32;
                return Progress::Failed(Failure::Parameter(crate::parameter::BadValue::Number {
                    name,
                    found,
                }));
            };
            self.numbers[self.known] = number;
            self.known += 1;
            if self.known < NUMBERS {
                self.read = Self::next(now, self.name(self.known));
            }
        }
        Progress::Done
    }
    /// The calibration, once it is done; `None` too where it contradicts itself.
    pub fn calibration(&self) -> Option<Calibration> {
        if self.known < NUMBERS {
            return None;
        }
        let n = |i: usize| self.numbers[i];
        let channel = |axis: usize| Channel {
            min_us: n(4 + 4 * axis),
            trim_us: n(5 + 4 * axis),
            max_us: n(6 + 4 * axis),
            dead_zone_us: n(7 + 4 * axis),
        };
        let channels = core::array::from_fn(channel);
        let ordered = |c: &Channel| {
            800 <= c.min_us
                && c.min_us < c.max_us
                && c.max_us <= 2_200
                && (c.min_us..=c.max_us).contains(&c.trim_us)
        };
        let map: [u8; 4] = core::array::from_fn(|axis| n(axis) as u8);
        let distinct = (0..4).all(|i| !map[..i].contains(&map[i]));
        let calibration = Calibration { map, channels, throttle_dead_zone_us: n(20) };
        (distinct && channels.iter().all(ordered)).then_some(calibration)
    }
}

impl Calibration {
    /// Pulses of the eight channels; 0 leaves a channel to the pilot.
    pub fn pulses_us(&self, sticks: Sticks, mode: Option<Mode>) -> [u16; CHANNELS] {
        let mut pulses = [0; CHANNELS];
        let values = [sticks.roll, sticks.pitch, sticks.throttle, sticks.yaw];
        for (axis, (&number, channel)) in self.map.iter().zip(&self.channels).enumerate() {
            let (middle, dead_zone) = if axis == 2 {
                let holds = matches!(mode, Some(Mode::AltHold | Mode::Loiter | Mode::PosHold));
                ((channel.min_us + channel.max_us) / 2, if holds { self.throttle_dead_zone_us } else { 0 })
            } else {
                (channel.trim_us, channel.dead_zone_us)
            };
            if let Some(pulse) = pulses.get_mut(usize::from(number.saturating_sub(1))) {
                *pulse = channel.pulse_us(values[axis], middle, dead_zone);
            }
        }
        pulses
    }
}

/// What moves the sticks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum StickOwner {
    Pilot,
    Ours(Sticks),
    /// Zeros are sent, so often still.
    Releasing {
        left: u8,
    },
}

/// The stream of overrides.
#[derive(Clone, Copy, Debug)]
pub struct Override {
    calibration: Calibration,
    owner: StickOwner,
    due: Instant,
}

impl Override {
    /// Starts with the pilot's sticks.
    pub fn new(calibration: Calibration) -> Self {
        Self { calibration, owner: StickOwner::Pilot, due: Instant::NEVER }
    }
    /// Overrides the sticks, centred.
    pub fn take(&mut self, now: Instant) {
        (self.owner, self.due) = (StickOwner::Ours(Sticks::default()), now);
    }
    /// Moves them; without effect before [`Override::take`].
    pub fn set(&mut self, now: Instant, sticks: Sticks) {
        if let StickOwner::Ours(held) = &mut self.owner {
            if *held != sticks {
                self.due = self.due.min(now + PERIOD / 4);
            }
            *held = sticks;
        }
    }
    /// Restores the pilot's sticks.
    pub fn release(&mut self, now: Instant) {
        (self.owner, self.due) = (StickOwner::Releasing { left: RELEASES }, now);
    }
    /// Whether frames still leave.
    pub fn is_active(&self) -> bool {
        self.owner != StickOwner::Pilot
    }
    /// When the job is due.
    pub fn due(&self) -> Instant {
        self.due
    }
    /// Sends when due, as the ground station `ground_station_id`
    /// ([`crate::parameter::Watched::GroundStationId`]).
    pub fn poll(
        &mut self,
        now: Instant,
        mode: Option<Mode>,
        ground_station_id: u8,
        transmit: &mut Transmit<'_>,
    ) {
        if now < self.due {
            return;
        }
        let pulses = match &mut self.owner {
            StickOwner::Pilot => return,
            StickOwner::Ours(sticks) => {
                self.due = now + PERIOD;
                self.calibration.pulses_us(*sticks, mode)
            }
            StickOwner::Releasing { left } => {
                self.due = now + RELEASE_PERIOD;
                *left -= 1;
                if *left == 0 {
                    (self.owner, self.due) = (StickOwner::Pilot, Instant::NEVER);
                }
                [0; CHANNELS]
            }
        };
        // The next frame replaces a lost one.
        let _ = send(pulses, ground_station_id, transmit);
    }
}

/// One frame of pulses; zeros restore the channels.
fn send(
    pulses: [u16; CHANNELS],
    ground_station_id: u8,
    transmit: &mut Transmit<'_>,
) -> Result<(), crate::codec::BufferFull> {
    let [chan1_raw, chan2_raw, chan3_raw, chan4_raw, chan5_raw, chan6_raw, chan7_raw, chan8_raw] = pulses;
    let message = MavMessage::RC_CHANNELS_OVERRIDE(RC_CHANNELS_OVERRIDE_DATA {
        chan1_raw,
        chan2_raw,
        chan3_raw,
        chan4_raw,
        chan5_raw,
        chan6_raw,
        chan7_raw,
        chan8_raw,
        target_system: transmit.system_id,
        target_component: AUTOPILOT_COMPONENT_ID,
        // Channels 9 to 18: 0 is "left alone" there.
        ..RC_CHANNELS_OVERRIDE_DATA::default()
    });
    transmit.send_from(ground_station_id, COMPONENT_ID, &message)
}

/// Restores every channel with one frame: for a caller without an [`Override`].
///
/// # Errors
/// No room.
pub fn release(ground_station_id: u8, transmit: &mut Transmit<'_>) -> Result<(), crate::codec::BufferFull> {
    send([0; CHANNELS], ground_station_id, transmit)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::job::testing::sent;
    use crate::parameter::testing::integer;
    use std::vec::Vec;

    fn calibration() -> Calibration {
        let channel = |dead_zone_us| Channel { min_us: 1_000, trim_us: 1_500, max_us: 2_000, dead_zone_us };
        // Pitch and roll exchanged.
        let channels = [channel(20), channel(20), channel(30), channel(10)];
        Calibration { map: [2, 1, 3, 4], channels, throttle_dead_zone_us: 100 }
    }

    #[test]
    fn the_rule_of_the_reference() {
        let at = |roll, throttle, mode| {
            calibration().pulses_us(Sticks { roll, throttle, ..Sticks::default() }, mode)
        };
        let centred = [1_500, 1_500, 1_500, 1_500, 0, 0, 0, 0];
        assert_eq!(at(0.0, 0.0, None), centred);
        assert_eq!((at(1.0, 0.0, None)[1], at(-1.0, 0.0, None)[1]), (2_000, 1_000));
        // Next to the dead zone: 1520 and 1480, half of the rest.
        assert_eq!((at(0.5, 0.0, None)[1], at(-0.5, 0.0, None)[1]), (1_760, 1_240));
        assert_eq!((at(0.0, 0.5, None)[2], at(0.0, 0.5, Some(Mode::Loiter))[2]), (1_750, 1_800));
        for wild in [1.01, -7.0, f64::NAN, f64::INFINITY] {
            assert_eq!(at(wild, wild, None), centred, "{wild}");
        }
    }

    #[test]
    fn nothing_leaves_before_the_sticks_are_taken_and_a_release_is_repeated() {
        let mut sticks = Override::new(calibration());
        let mut frames: Vec<(u64, u16)> = Vec::new();
        for ms in (0..5_000).step_by(50) {
            let now = Instant::from_millis(ms);
            match ms {
                500 => sticks.set(now, Sticks { roll: 1.0, ..Sticks::default() }),
                1_000 => sticks.take(now),
                1_500 => sticks.set(now, Sticks { roll: 1.0, ..Sticks::default() }),
                2_500 => sticks.release(now),
                _ => {}
            }
            for message in sent(|t| sticks.poll(now, None, 255, t)) {
                let MavMessage::RC_CHANNELS_OVERRIDE(m) = message else { panic!("{message:?}") };
                frames.push((ms, m.chan2_raw));
            }
        }
        assert_eq!(frames[..3], [(1_000, 1_500), (1_400, 1_500), (1_600, 2_000)]);
        let released: Vec<_> = frames.iter().filter(|(_, pulse)| *pulse == 0).map(|(ms, _)| *ms).collect();
        assert_eq!(released, [2_500, 2_700, 2_900, 3_100, 3_300]);
        assert!(!sticks.is_active());
    }

    #[test]
    fn the_source_is_the_ground_station() {
        let (mut sequence, mut bytes) = (0, heapless::Vec::new());
        let framing = crate::codec::framing::Framing::V2;
        let mut transmit = Transmit { system_id: 1, sequence: &mut sequence, framing, bytes: &mut bytes };
        release(252, &mut transmit).unwrap();
        assert_eq!((bytes[5], bytes[6]), (252, crate::job::COMPONENT_ID));
    }

    #[test]
    fn a_calibration_is_read_along_its_map() {
        let run = |map: [f32; 4]| {
            let mut job = ReadCalibration::new(Instant::ZERO);
            let (mut progress, mut requested) = (Progress::Pending, Vec::new());
            for ms in (0..60_000).step_by(10) {
                let now = Instant::from_millis(ms);
                for message in sent(|t| progress = job.poll(now, t)) {
                    let MavMessage::PARAM_REQUEST_READ(m) = message else { panic!("{message:?}") };
                    let name = std::string::String::from(crate::codec::text(&*m.param_id));
                    let number = match name.as_str() {
                        "THR_DZ" => 100.0,
                        n if n.ends_with("_MIN") => 1_000.0,
                        n if n.ends_with("_TRIM") => 1_500.0,
                        n if n.ends_with("_MAX") => 2_000.0,
                        n if n.ends_with("_DZ") => 20.0,
                        n => map[MAP.iter().position(|m| *m == n).unwrap()],
                    };
                    job.on_message(now, &integer(&name, number));
                    requested.push(name);
                }
                if progress != Progress::Pending {
                    break;
                }
            }
            (progress, requested.len(), requested.iter().any(|n| n == "RC6_TRIM"), job.calibration())
        };
        let (progress, requested, sixth, calibration) = run([1.0, 2.0, 6.0, 4.0]);
        assert_eq!((progress, requested, sixth), (Progress::Done, NUMBERS, true));
        assert_eq!(calibration.unwrap().map, [1, 2, 6, 4]);
        assert_eq!(run([1.0, 1.0, 3.0, 4.0]).3, None, "two axes on one channel");
        assert!(matches!(run([9.0, 2.0, 3.0, 4.0]).0, Progress::Failed(Failure::Parameter(_))));
    }
}
