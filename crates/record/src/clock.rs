//! UTC of a flight. The companion computer's clock is in the log as an input; GNSS time is in the frames of the autopilot, as
//! `autopilot::gnss_time` reads it in flight: `SYSTEM_TIME` pairs UTC with the autopilot's clock, `TIMESYNC` pairs that
//! with the agent's. Aircraft whose computers disagree are put on one clock by the second.

use std::path::Path;

use wingbeat_autopilot::codec::Decoder;
use wingbeat_autopilot::dialect::{GpsFixType, MavMessage};
use wingbeat_geo::{Duration, Instant};

use crate::event::Event;
use crate::reader::{Entry, Log, ReadError, entries};

/// An answer that took longer says nothing, microseconds.
const TRIP_MAX_US: u64 = 1_000_000;
/// The autopilot's milliseconds since its boot are cut off.
const REPORT_ERROR_US: u64 = 1_000;
/// A report that differs by more from those before: another boot, or the autopilot set its clock. Later reports count.
const STEP_US: u64 = 100_000;
/// So long after the first estimate the frames are not decoded any more, which takes most of the time.
const ENOUGH: Duration = Duration::from_secs(120);
/// 2025-01-01 and 2100-01-01, UTC, microseconds after 1970.
const PLAUSIBLE_US: std::ops::Range<u64> = 1_735_689_600_000_000..4_102_444_800_000_000;

/// How a flight's clocks read at agent time zero, microseconds after 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// The companion computer's, where it is known: as it was set last.
    pub utc_base_us: Option<u64>,
    /// How far the computer's clock was set forth (or back, negative) in flight, all steps together, microseconds.
    pub stepped_us: i64,
    /// GNSS time, where the autopilot reported it with a fix.
    pub gnss_base_us: Option<u64>,
    /// How far that may be from the autopilot's own clock, microseconds.
    pub gnss_error_us: u64,
}

impl Clock {
    /// What puts this flight on one clock with others: GNSS time, else the computer's.
    pub fn base_us(&self) -> Option<u64> {
        self.gnss_base_us.or(self.utc_base_us)
    }

    /// UTC at the agent time zero of a log, microseconds after 1970, by which it is put on one clock with others. Of a bench's
    /// nothing: it has no clock of a computer, and needs none, as its agents began together.
    pub fn shared_base_us(log: &Log) -> Option<u64> {
        let has_utc = log.about.contains_key("utc_of_agent_time_zero_us");
        has_utc.then(|| Self::of(log).base_us()).flatten()
    }

    /// How far the computer's clock was ahead of GNSS time, microseconds.
    pub fn ahead_us(&self) -> Option<i64> {
        let difference = |utc: u64, gnss: u64| i64::try_from(i128::from(utc) - i128::from(gnss)).ok();
        self.utc_base_us.zip(self.gnss_base_us).and_then(|(utc, gnss)| difference(utc, gnss))
    }

    /// The clocks of a log.
    pub fn of(log: &Log) -> Self {
        let mut estimate = Estimate::default();
        log.entries().map_while(Result::ok).for_each(|entry| estimate.take(&entry));
        estimate.clock(log)
    }

    /// The clocks of a file, block by block, and why it ends before its end, where it was cut or is corrupt.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub fn of_file(path: &Path) -> Result<(Self, Option<String>), ReadError> {
        let mut estimate = Estimate::default();
        let log = Log::read_with(path, |block| {
            entries(std::slice::from_ref(&block))
                .map_while(Result::ok)
                .for_each(|entry| estimate.take(&entry));
            true
        })?;
        Ok((estimate.clock(&log), log.flaw))
    }
}

/// A round trip to the autopilot: its length, and the autopilot's clock less the agent's.
#[derive(Clone, Copy, Debug)]
struct Trip {
    length_us: u64,
    ahead_us: i64,
}

#[derive(Default)]
struct Estimate {
    clock: Clock,
    decoder: Decoder,
    /// `ts1` of the last question.
    asked_ns: Option<i64>,
    has_fix: bool,
    best: Option<Trip>,
    /// UTC when the autopilot booted, the smallest of the reports.
    booted_us: Option<u64>,
    /// When both were known first.
    known_at: Option<Instant>,
}

impl Estimate {
    fn take(&mut self, entry: &Entry<'_>) {
        let is_enough = self.known_at.is_some_and(|at| entry.at.since(at) > ENOUGH);
        match &entry.event {
            // Another agent: its clock begins anew.
            Event::Began(_) => *self = Self::default(),
            Event::Utc(unix_us) => {
                let base = unix_us.saturating_sub(entry.at.as_micros());
                if let Some(before) = self.clock.utc_base_us {
                    let step = i64::try_from(i128::from(base) - i128::from(before)).unwrap_or(0);
                    self.clock.stepped_us = self.clock.stepped_us.saturating_add(step);
                }
                self.clock.utc_base_us = Some(base);
            }
            Event::ToAutopilot(_) | Event::Autopilot(_) if is_enough => {}
            Event::ToAutopilot(bytes) => {
                let asked = &mut self.asked_ns;
                Decoder::default().push(bytes, |frame| {
                    if let MavMessage::TIMESYNC(m) = frame.message {
                        *asked = Some(m.ts1);
                    }
                });
            }
            Event::Autopilot(bytes) => {
                let mut decoder = std::mem::take(&mut self.decoder);
                decoder.push_at(entry.at, bytes, |frame| self.message(entry.at, &frame.message));
                self.decoder = decoder;
                if self.known_at.is_none() && self.booted_us.is_some() && self.best.is_some() {
                    self.known_at = Some(entry.at);
                }
            }
            _ => {}
        }
    }

    fn message(&mut self, at: Instant, message: &MavMessage) {
        match message {
            MavMessage::GPS_RAW_INT(m) => {
                self.has_fix = m.fix_type as u8 >= GpsFixType::GPS_FIX_TYPE_3D_FIX as u8;
            }
            MavMessage::TIMESYNC(m) if m.tc1 > 0 && Some(m.ts1) == self.asked_ns => {
                self.asked_ns = None;
                let Ok(asked_us) = u64::try_from(m.ts1 / 1_000) else { return };
                let length_us = at.as_micros().saturating_sub(asked_us);
                let middle_us = asked_us.saturating_add(length_us / 2);
                let ahead_us = (m.tc1 / 1_000).saturating_sub(i64::try_from(middle_us).unwrap_or(i64::MAX));
                // Another boot of the autopilot has another clock.
                let is_other =
                    self.best.is_some_and(|best| best.ahead_us.abs_diff(ahead_us) > STEP_US + TRIP_MAX_US);
                if length_us <= TRIP_MAX_US
                    && (is_other || self.best.is_none_or(|b| length_us <= b.length_us))
                {
                    self.best = Some(Trip { length_us, ahead_us });
                }
            }
            MavMessage::SYSTEM_TIME(m) if self.has_fix && PLAUSIBLE_US.contains(&m.time_unix_usec) => {
                let booted_us = m.time_unix_usec.saturating_sub(u64::from(m.time_boot_ms) * 1_000);
                self.booted_us = match self.booted_us {
                    Some(before) if before.abs_diff(booted_us) <= STEP_US => Some(before.min(booted_us)),
                    Some(_) | None => Some(booted_us),
                };
            }
            _ => {}
        }
    }

    fn clock(mut self, log: &Log) -> Clock {
        // A part that follows states the computer's clock, as its flight's first had it.
        let stated = log.about.get("utc_of_agent_time_zero_us").and_then(|us| us.parse().ok());
        self.clock.utc_base_us = self.clock.utc_base_us.or(stated);
        let gnss = self.booted_us.zip(self.best);
        let gnss_base_us = gnss.and_then(|(booted_us, trip)| booted_us.checked_add_signed(trip.ahead_us));
        let gnss_error_us =
            gnss_base_us.and(self.best).map_or(0, |trip| trip.length_us / 2 + REPORT_ERROR_US);
        Clock { gnss_base_us, gnss_error_us, ..self.clock }
    }
}

#[cfg(test)]
mod tests {
    use wingbeat_autopilot::codec::{MavHeader, encode_v2};
    use wingbeat_autopilot::dialect::{GPS_RAW_INT_DATA, SYSTEM_TIME_DATA, TIMESYNC_DATA};

    use super::*;
    use crate::recorder::Block;

    const GNSS_BASE_US: u64 = 1_800_000_000_000_000;
    /// The autopilot booted 20 s before the agent began.
    const BOOTED_US: u64 = GNSS_BASE_US - 20_000_000;

    fn frame(message: &MavMessage) -> Vec<u8> {
        let mut bytes = heapless::Vec::<u8, 280>::new();
        encode_v2(MavHeader::default(), message, &mut bytes).unwrap();
        bytes.to_vec()
    }

    #[test]
    fn gnss_time_that_steps_counts_as_it_was_after_the_last_step() {
        const STEPS_US: [i64; 2] = [-40_000_000, 18_000_000];
        let mut log = log(0, false, GpsFixType::GPS_FIX_TYPE_3D_FIX);
        let (mut block, mut last) = (Block::default(), 0);
        for (i, step_us) in STEPS_US.into_iter().enumerate() {
            for second in 0..5 {
                let at_us = 40_000_000 + 10_000_000 * i as u64 + 1_000_000 * second;
                let time = SYSTEM_TIME_DATA {
                    time_unix_usec: (GNSS_BASE_US + at_us).saturating_add_signed(step_us),
                    time_boot_ms: ((GNSS_BASE_US + at_us - BOOTED_US) / 1_000) as u32,
                };
                let bytes = frame(&MavMessage::SYSTEM_TIME(time));
                block.push(&mut last, at_us + 4_000, &Event::Autopilot(&bytes));
            }
        }
        log.blocks.push(block);
        assert_eq!(Clock::of(&log).gnss_base_us, Some(GNSS_BASE_US + 18_000_000));
    }

    /// A log whose computer's clock is `ahead_us` ahead of GNSS time, and is set right by a step where that is wanted.
    fn log(ahead_us: u64, is_set: bool, fix_type: GpsFixType) -> Log {
        let (mut block, mut last) = (Block::default(), 0);
        let mut push = |at_us: u64, event: &Event<'_>| block.push(&mut last, at_us, event);
        push(0, &Event::Utc(GNSS_BASE_US + ahead_us));
        for second in 1..30_u64 {
            let at_us = second * 1_000_000;
            let ts1 = (at_us * 1_000) as i64;
            let question = MavMessage::TIMESYNC(TIMESYNC_DATA { ts1, ..TIMESYNC_DATA::default() });
            push(at_us, &Event::ToAutopilot(&frame(&question)));
            let fix = MavMessage::GPS_RAW_INT(GPS_RAW_INT_DATA { fix_type, ..GPS_RAW_INT_DATA::default() });
            push(at_us + 500, &Event::Autopilot(&frame(&fix)));
            // Half of the way back and forth is 4 ms; of one trip half a second.
            let half_us = if second == 7 { 250_000 } else { 4_000 };
            let tc1 = ((GNSS_BASE_US + at_us + half_us - BOOTED_US) * 1_000) as i64;
            let answer = MavMessage::TIMESYNC(TIMESYNC_DATA { tc1, ts1, ..TIMESYNC_DATA::default() });
            push(at_us + 2 * half_us, &Event::Autopilot(&frame(&answer)));
            let time = SYSTEM_TIME_DATA {
                time_unix_usec: GNSS_BASE_US + at_us + 600_000,
                time_boot_ms: ((GNSS_BASE_US + at_us + 600_000 - BOOTED_US) / 1_000) as u32,
            };
            push(at_us + 604_000, &Event::Autopilot(&frame(&MavMessage::SYSTEM_TIME(time))));
        }
        if is_set {
            push(40_000_000, &Event::Utc(GNSS_BASE_US + 40_000_000));
        }
        Log { blocks: vec![block], ..Log::default() }
    }

    #[cfg(feature = "replay")]
    #[test]
    fn flights_of_computers_that_disagree_are_put_on_one_time_base() {
        use crate::event::Plotted;
        use crate::export::track::tracks;

        // The same positions at the same moments; the second computer's clock is an hour ahead.
        let flight = |ahead_us: u64| {
            let mut log = log(ahead_us, false, GpsFixType::GPS_FIX_TYPE_3D_FIX);
            let (mut block, mut last) = (Block::default(), 0);
            for i in 0..5 {
                let sample = Plotted {
                    state: "Start",
                    engaged: true,
                    mode_number: None,
                    armed: true,
                    reached: None,
                    position: Some([394_000_000 + i, -3_000_000, 10_000]),
                    height_mm: 0,
                    velocity_cm_s: [0; 3],
                    heading_cdeg: 0,
                    battery_percent: None,
                    nearest: None,
                };
                block.push(&mut last, 50_000_000 + 1_000_000 * i as u64, &Event::Sample(sample));
            }
            log.blocks.push(block);
            let stated = (1_800_000_000_000_000 + ahead_us).to_string();
            log.about.insert("utc_of_agent_time_zero_us".into(), stated);
            log
        };
        let [first, second] = [flight(0), flight(3_600_000_000)];
        let both = tracks([&first, &second]);
        let times = |index: usize| both[index].fixes.iter().map(|fix| fix.time_s).collect::<Vec<_>>();
        assert_eq!(times(0), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(times(0), times(1));
        assert_eq!(both[1].utc_us, Some(1_800_000_050_000_000));
    }

    #[test]
    fn gnss_time_counts_before_the_computers_clock_which_may_be_far_off() {
        let fix = GpsFixType::GPS_FIX_TYPE_3D_FIX;
        let clock = Clock::of(&log(3_600_000_000, false, fix));
        assert_eq!(clock.base_us(), Some(1_800_000_000_000_000));
        assert_eq!((clock.ahead_us(), clock.gnss_error_us), (Some(3_600_000_000), 5_000));
        // One that is set in flight counts as it was set last; how far is known.
        let clock = Clock::of(&log(3_600_000_000, true, fix));
        assert_eq!((clock.ahead_us(), clock.stepped_us), (Some(0), -3_600_000_000));
        // Without a fix the autopilot's clock may be a ground station's.
        let clock = Clock::of(&log(7, false, GpsFixType::GPS_FIX_TYPE_NO_FIX));
        assert_eq!((clock.gnss_base_us, clock.base_us()), (None, Some(1_800_000_000_000_007)));
        assert_eq!(Clock::of(&Log::default()), Clock::default());
    }
}
