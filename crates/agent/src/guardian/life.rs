//! Whether a daemon lives: late, hung or dead. A loaded computer delays every process; only a dead or hung one is
//! ended.
//!
//! | found, a silence after the last sign of life | done |
//! |---|---|
//! | the process has ended: seen from half a silence on | the guardian takes over and requests BRAKE |
//! | it is stopped by a signal, or sleeps, or runs without turning its loop | it is killed |
//! | it waits for a processor, or for a disk | it is given [`LATE_WITHIN`] more, once |
//! | it is runnable, and its waits are not shown | it is given [`LATE_WITHIN`] more, once |
//! | nothing of it is shown | it is killed |
//! | the guardian itself was not woken | one more silence, once |

use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::{Text, text};

use super::Beat;

/// A daemon that waits for a processor is given this time more.
pub const LATE_WITHIN: Duration = Duration::from_secs(1);
/// Woken later than this, the guardian itself stood still, and the daemon perhaps with it.
const OVERSLEPT: Duration = Duration::from_millis(500);
/// Between two samples of a process: its delay is their difference.
const BETWEEN_SAMPLES: Duration = Duration::from_millis(100);
/// A process that waited for a processor for this share of the time is late, not hung.
const LATE_SHARE: u128 = 4;

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// It has ended.
    Ended,
    /// A signal stopped it.
    Stopped,
    /// It runs, or could.
    Runnable,
    /// It waits for a disk, or for memory from one.
    WaitsForDisk,
    /// It sleeps.
    Sleeps,
}

/// A sample of the daemon's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The state of its threads: the one that waits longest counts.
    pub state: ProcessState,
    /// The time for which its threads ran, in total.
    pub ran: Duration,
    /// The time for which its threads waited for a processor, in total; absent where the system does not show it.
    pub waited: Option<Duration>,
    /// The load of the computer in the last minute, hundredths of a runnable process.
    pub load_percent: u32,
}

/// The next step of a guardian that has not had a sign of life for a silence.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// It waits; where something was found it is said.
    Wait(Option<Text>),
    /// It asks for a sample of the process.
    Sample,
    /// The process has ended.
    Dead(Text),
    /// The process is to be killed.
    Kill(Text),
}

/// The signs of life of one daemon.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    /// When its driver turned last, as far as its pulses say.
    alive_at: Instant,
    /// When a pulse was received last.
    pulse_at: Instant,
    sequence: Option<u32>,
    first: Option<(Instant, Process)>,
    /// Whether a sample was asked for and has not come.
    is_asked: bool,
    /// Whether the process cannot be read.
    is_unknown: bool,
    /// The end of the time that it was given for being late.
    late_until: Option<Instant>,
    has_overslept: bool,
}

impl Life {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            alive_at: now,
            pulse_at: now,
            sequence: None,
            first: None,
            is_asked: false,
            is_unknown: false,
            late_until: None,
            has_overslept: false,
        }
    }

    /// Counts it as alive now.
    pub(super) fn renew(&mut self, now: Instant) {
        *self = Self { sequence: self.sequence, ..Self::new(now) };
    }

    /// Takes a pulse. Returns whether its content is the newest.
    pub(super) fn on_beat(&mut self, now: Instant, beat: &Beat) -> bool {
        let age = Duration::from_millis(u64::from(beat.driver_age_ms));
        let turned_at = Instant::ZERO + now.since(Instant::ZERO).saturating_sub(age);
        self.pulse_at = now;
        if turned_at > self.alive_at {
            let sequence = self.sequence;
            *self = Self { alive_at: turned_at, sequence, pulse_at: now, ..Self::new(now) };
        }
        let is_newest = self.sequence.is_none_or(|newest| beat.sequence.wrapping_sub(newest) < u32::MAX / 2);
        if is_newest {
            self.sequence = Some(beat.sequence);
        }
        is_newest
    }

    /// Returns when it wants to be judged.
    pub(super) fn due(&self, silence: Duration) -> Instant {
        let silent_at = self.alive_at + silence;
        match (self.late_until, self.first) {
            (Some(until), _) => until,
            _ if self.is_unknown || self.is_asked => silent_at,
            (None, None) => self.alive_at + silence / 2,
            (None, Some((at, _))) => silent_at.max(at + BETWEEN_SAMPLES),
        }
    }

    /// Judges it at this time, without a sample.
    pub(super) fn judge(&mut self, now: Instant, silence: Duration) -> Verdict {
        let silent_at = self.alive_at + silence;
        if now < self.due(silence) {
            return Verdict::Wait(None);
        }
        if let Some(until) = self.late_until
            && now >= until
        {
            let silent_ms = now.since(self.alive_at).as_millis();
            return Verdict::Kill(text!(
                "late for {silent_ms} ms, and no more is waited: ending it by force"
            ));
        }
        if now >= silent_at + OVERSLEPT && !self.has_overslept {
            let late_ms = now.since(silent_at).as_millis();
            self.renew(now);
            self.has_overslept = true;
            return Verdict::Wait(Some(text!("woken {late_ms} ms late: this machine is too slow")));
        }
        self.is_unknown |= self.is_asked;
        if self.is_unknown && now >= silent_at {
            return Verdict::Kill(text!("{}: ending the daemon by force", self.silence_of(now)));
        }
        self.is_asked = true;
        Verdict::Sample
    }

    fn silence_of(&self, now: Instant) -> Text {
        let silent_ms = now.since(self.alive_at).as_millis();
        // Its pulses are sent by another thread than the one that flies.
        if self.pulse_at > self.alive_at {
            text!("its driver has not turned for {silent_ms} ms")
        } else {
            text!("no pulse for {silent_ms} ms")
        }
    }

    /// Judges a sample of the process; none where it cannot be read.
    pub(super) fn on_sample(&mut self, now: Instant, silence: Duration, sample: Option<Process>) -> Verdict {
        let silence_of = self.silence_of(now);
        self.is_asked = false;
        let Some(process) = sample else {
            self.is_unknown = true;
            return if now >= self.alive_at + silence {
                Verdict::Kill(text!("{silence_of}: ending the daemon by force"))
            } else {
                Verdict::Wait(None)
            };
        };
        if process.state == ProcessState::Ended {
            return Verdict::Dead(text!("the daemon's process has ended"));
        }
        let Some((at, first)) = self.first else {
            self.first = Some((now, process));
            return Verdict::Wait(None);
        };
        if now < self.alive_at + silence {
            return Verdict::Wait(None);
        }
        let load = f64::from(process.load_percent) * 1e-2;
        let passed = now.since(at);
        let ran = process.ran.saturating_sub(first.ran);
        let waited = process.waited.zip(first.waited).map(|(now, before)| now.saturating_sub(before));
        let waited_ms = waited.unwrap_or_default().as_millis();
        let (ran_ms, passed_ms) = (ran.as_millis(), passed.as_millis());
        let has_waited = waited.map(|waited| waited.as_micros() * LATE_SHARE >= passed.as_micros());
        let is_late = match process.state {
            ProcessState::WaitsForDisk => true,
            ProcessState::Runnable => has_waited.unwrap_or(true),
            ProcessState::Sleeps => has_waited.unwrap_or(false),
            ProcessState::Stopped | ProcessState::Ended => false,
        };
        if is_late {
            self.late_until = Some(self.alive_at + silence + LATE_WITHIN);
            return Verdict::Wait(Some(text!(
                "{silence_of}: late, waited {waited_ms} of {passed_ms} ms, load {load:.1}; given {} ms more",
                LATE_WITHIN.as_millis()
            )));
        }
        let how = match process.state {
            ProcessState::Stopped => text!("stopped by a signal"),
            ProcessState::Ended
            | ProcessState::Runnable
            | ProcessState::WaitsForDisk
            | ProcessState::Sleeps => text!("ran {ran_ms}, waited {waited_ms} of {passed_ms} ms"),
        };
        Verdict::Kill(text!("{silence_of}: ending the daemon by force ({how}, load {load:.1})"))
    }
}
