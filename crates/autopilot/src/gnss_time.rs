//! GNSS time, received through the autopilot.
//!
//! Two messages make it. `SYSTEM_TIME` pairs UTC with the autopilot's clock since its boot; `TIMESYNC` pairs that clock
//! with ours, by round trips (<https://mavlink.io/en/services/timesync.html>). A round trip bounds the offset of the two
//! clocks by half its own length, whatever waited on the way; with its age it gets worse, because clocks drift apart. The
//! best one counts. Of the pairs with UTC the smallest difference counts: the boot clock's milliseconds are cut off.
//!
//! A receiver's week number may be wrong: at the end of a week it may step back by one, after 1024 weeks it rolls over. So the
//! first time, and one that steps by more than [`STAND_STEP_US`], counts after it stood for [`STANDS_FOR`]. In between the
//! time is not known.
//!
//! What is not seen here is the autopilot's own error. ArduCopter sets its clock by each fix, as it reads it from the
//! receiver (`AP_GPS::time_epoch_usec`): where the receiver's driver does not know when a message began, that is late by
//! the receiver's latency, up to 0.2 s.

use wingbeat_geo::{Duration, Instant};

use crate::codec::BufferFull;
use crate::dialect::{MavMessage, TIMESYNC_DATA};
use crate::job::{AUTOPILOT_COMPONENT_ID, Transmit};

/// From one question to the next once the offset is known.
const PERIOD: Duration = Duration::from_secs(5);
/// The same of the first questions, so that the offset is known soon.
const FIRST_PERIOD: Duration = Duration::from_millis(500);
/// So many.
const FIRST: u8 = 8;
/// An answer that took longer says nothing.
const TRIP_MAX: Duration = Duration::from_secs(1);
/// So much may two quartzes drift apart.
const DRIFT_PPM: u64 = 100;
/// The boot clock's milliseconds are cut off.
const REPORT_ERROR_US: u64 = 1_000;
/// A report that differs by more from the one before: the autopilot set its clock.
const STEP_US: u64 = 100_000;
/// Without a report for so long the time is not known any more.
const FRESH: Duration = Duration::from_secs(60);
/// A larger step is a fault of the receiver, or of the time before: each has to stand first.
const STAND_STEP_US: u64 = 2_000_000;
/// A time counts after it was reported for so long without another step.
const STANDS_FOR: Duration = Duration::from_secs(60);
/// 2026-01-01, UTC, microseconds after 1970: this program was built later. A constant, because builds are reproducible.
pub const BUILT_AFTER_US: u64 = 1_767_225_600_000_000;
/// Plausible times: a receiver whose week number has rolled over reports one before, or one more than ten years later.
pub const PLAUSIBLE_US: core::ops::Range<u64> = BUILT_AFTER_US..BUILT_AFTER_US + 10 * 365 * 86_400_000_000;

/// GNSS time at one instant of the agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GnssTime {
    /// Microseconds after 1970, UTC.
    pub unix_us: u64,
    /// How far that may be from the autopilot's own clock, microseconds.
    pub error_us: u64,
}

/// One round trip.
#[derive(Clone, Copy, Debug)]
struct Trip {
    at: Instant,
    length_us: u64,
    /// The autopilot's clock less ours, microseconds.
    ahead_us: i64,
}

impl Trip {
    fn error_us(&self, now: Instant) -> u64 {
        self.length_us / 2 + drift_us(self.at, now)
    }
}

/// How far two clocks may have drifted apart since.
fn drift_us(since: Instant, now: Instant) -> u64 {
    now.since(since).as_micros() as u64 * DRIFT_PPM / 1_000_000
}

/// A change of GNSS time that operators should know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GnssTimeEvent {
    /// It stepped by so much, microseconds: it counts once it has stood for a minute.
    Stepped {
        /// The step, forward or back.
        by_us: i64,
    },
    /// A time after a step has stood for a minute: it counts.
    Stood,
    /// A time of another decade is ignored; reported once.
    Implausible {
        /// The time, microseconds after 1970.
        unix_us: u64,
    },
}

/// A time that has to stand before it counts.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    since: Instant,
    at: Instant,
    booted_us: u64,
}

/// The estimate of GNSS time.
#[derive(Debug)]
pub struct GnssClock {
    due: Instant,
    /// First questions that have left.
    first: u8,
    /// When the question that is not answered left.
    asked_at: Option<Instant>,
    best: Option<Trip>,
    /// When UTC was reported last; by the reports, UTC when the autopilot booted, microseconds after 1970.
    booted: Option<(Instant, u64)>,
    /// The first time, or that after a step.
    candidate: Option<Candidate>,
    /// Whether an implausible time was reported.
    was_implausible: bool,
}

impl GnssClock {
    /// The first question is due now.
    pub fn new(now: Instant) -> Self {
        Self {
            due: now,
            first: 0,
            asked_at: None,
            best: None,
            booted: None,
            candidate: None,
            was_implausible: false,
        }
    }

    /// Another autopilot, or another boot of this one.
    pub fn restart(&mut self, now: Instant) {
        *self = Self::new(now);
    }

    /// When [`GnssClock::poll`] is due.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Asks for the autopilot's clock when it is time.
    ///
    /// # Errors
    /// No room; it stays due.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Result<(), BufferFull> {
        if now < self.due {
            return Ok(());
        }
        transmit.send(&MavMessage::TIMESYNC(TIMESYNC_DATA {
            tc1: 0,
            ts1: nanoseconds(now),
            target_system: transmit.system_id,
            target_component: AUTOPILOT_COMPONENT_ID,
        }))?;
        self.asked_at = Some(now);
        self.first = self.first.saturating_add(1).min(FIRST);
        self.due = now + if self.first < FIRST { FIRST_PERIOD } else { PERIOD };
        Ok(())
    }

    /// Takes a message of the autopilot; `has_fix` states whether its receiver has one.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub fn on_message(&mut self, now: Instant, has_fix: bool, message: &MavMessage) -> Option<GnssTimeEvent> {
        match message {
            MavMessage::TIMESYNC(m) => {
                self.on_answer(now, m);
                None
            }
            // Without a fix its clock may have been set by a ground station.
            MavMessage::SYSTEM_TIME(m) if has_fix => {
                self.on_report(now, m.time_unix_usec, u64::from(m.time_boot_ms) * 1_000)
            }
            _ => None,
        }
    }

    fn on_report(&mut self, now: Instant, unix_us: u64, boot_us: u64) -> Option<GnssTimeEvent> {
        let booted_us = unix_us.checked_sub(boot_us).filter(|_| PLAUSIBLE_US.contains(&unix_us));
        let Some(booted_us) = booted_us else {
            // Before its first fix a clock shows 1970.
            let is_told = unix_us < boot_us.saturating_add(STAND_STEP_US) || self.was_implausible;
            self.was_implausible |= !is_told;
            return (!is_told).then_some(GnssTimeEvent::Implausible { unix_us });
        };
        if let Some((at, before)) = self.booted
            && before.abs_diff(booted_us) <= STAND_STEP_US
        {
            // A larger one counts when the smallest may have drifted so far.
            let is_same = before.abs_diff(booted_us) <= STEP_US;
            let least_us = if is_same { booted_us.min(before + drift_us(at, now)) } else { booted_us };
            (self.booted, self.candidate) = (Some((now, least_us)), None);
            return None;
        }
        let known = self.booted.map(|(_, before)| before);
        match &mut self.candidate {
            Some(held)
                if held.booted_us.abs_diff(booted_us) <= STAND_STEP_US && now.since(held.at) < FRESH =>
            {
                held.at = now;
                if now.since(held.since) < STANDS_FOR {
                    return None;
                }
                (self.booted, self.candidate) = (Some((now, booted_us)), None);
                known.map(|_| GnssTimeEvent::Stood)
            }
            _ => {
                self.candidate = Some(Candidate { since: now, at: now, booted_us });
                let step = |before: u64| GnssTimeEvent::Stepped { by_us: booted_us as i64 - before as i64 };
                known.map(step)
            }
        }
    }

    fn on_answer(&mut self, now: Instant, m: &TIMESYNC_DATA) {
        // A question of the autopilot's, an answer to another's, one that was overtaken, a clock that shows nothing.
        let Some(asked_at) = self.asked_at.filter(|at| m.ts1 == nanoseconds(*at) && m.tc1 > 0) else {
            return;
        };
        self.asked_at = None;
        let length = now.since(asked_at);
        if length > TRIP_MAX {
            return;
        }
        let length_us = length.as_micros() as u64;
        let middle_us = asked_at.as_micros().saturating_add(length_us / 2) as i64;
        let trip = Trip { at: now, length_us, ahead_us: (m.tc1 / 1_000).saturating_sub(middle_us) };
        if self.best.is_none_or(|best| trip.error_us(now) <= best.error_us(now)) {
            self.best = Some(trip);
        }
    }

    /// GNSS time now; nothing before both messages came, while a time has to stand, and where it is not reported any more.
    pub fn time(&self, now: Instant) -> Option<GnssTime> {
        if self.candidate.is_some() {
            return None;
        }
        let (_, booted_us) = self.booted.filter(|(at, _)| now.since(*at) < FRESH)?;
        let trip = self.best?;
        let since_boot_us = (now.as_micros() as i64).saturating_add(trip.ahead_us);
        let unix_us = booted_us.checked_add_signed(since_boot_us)?;
        Some(GnssTime { unix_us, error_us: trip.error_us(now) + REPORT_ERROR_US })
    }
}

/// What a question is recognised by.
fn nanoseconds(at: Instant) -> i64 {
    (at.as_micros() as i64).saturating_mul(1_000)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::dialect::SYSTEM_TIME_DATA;
    use crate::job::testing::sent;

    const BOOTED_US: u64 = 1_795_435_200_000_000;
    /// The autopilot booted so long before the agent's time zero.
    const AHEAD_US: u64 = 7_654_321;

    /// An autopilot: each question is answered after `there_us` and arrives after `back_us` more.
    fn ask(clock: &mut GnssClock, now: Instant, there_us: u64, back_us: u64) -> Instant {
        let messages = sent(|t| clock.poll(now, t).unwrap());
        let [MavMessage::TIMESYNC(question)] = &messages[..] else { panic!("{messages:?}") };
        assert_eq!((question.tc1, question.target_system), (0, 1));
        let tc1 = (now.as_micros() + there_us + AHEAD_US) as i64 * 1_000;
        let arrives = now + Duration::from_micros(there_us + back_us);
        clock.on_message(
            arrives,
            true,
            &MavMessage::TIMESYNC(TIMESYNC_DATA { tc1, ts1: question.ts1, ..TIMESYNC_DATA::DEFAULT }),
        );
        arrives
    }

    fn report(clock: &mut GnssClock, now: Instant, has_fix: bool, booted_us: u64) -> Option<GnssTimeEvent> {
        let since_us = now.as_micros() + AHEAD_US;
        clock.on_message(
            now,
            has_fix,
            &MavMessage::SYSTEM_TIME(SYSTEM_TIME_DATA {
                time_unix_usec: booted_us + since_us,
                time_boot_ms: (since_us / 1_000) as u32,
            }),
        )
    }

    fn error_us(clock: &GnssClock, now: Instant) -> u64 {
        let time = clock.time(now).unwrap();
        let off_us = time.unix_us.abs_diff(BOOTED_US + AHEAD_US + now.as_micros());
        assert!(off_us <= time.error_us, "{off_us} {time:?}");
        off_us
    }

    /// A clock whose time has stood, and when.
    fn stood() -> (GnssClock, Instant) {
        let mut clock = GnssClock::new(Instant::ZERO);
        for s in [0, 30, 60] {
            report(&mut clock, Instant::from_millis(s * 1_000 + 1), true, BOOTED_US);
        }
        (clock, Instant::from_millis(60_002))
    }

    #[test]
    fn the_shortest_round_trip_counts_and_the_bound_holds() {
        let (mut clock, mut now) = stood();
        assert_eq!(clock.time(now), None, "no round trip yet");
        // All of the delay on one way: the worst that half a round trip bounds.
        ask(&mut clock, now, 80_000, 0);
        assert!(error_us(&clock, now + Duration::from_millis(80)) > 30_000);
        for (there_us, back_us) in [(20_000, 1_000), (300, 500), (0, 90_000)] {
            now = clock.due();
            let then = ask(&mut clock, now, there_us, back_us);
            error_us(&clock, then);
        }
        assert!(error_us(&clock, clock.due()) < 1_200);
    }

    #[test]
    fn nothing_counts_but_the_answer_to_the_last_question() {
        let (mut clock, now) = stood();
        sent(|t| clock.poll(now, t).unwrap());
        let answers = [(0, nanoseconds(now)), (-1, nanoseconds(now)), (9, 4_999_000), (9, 0)];
        for (tc1, ts1) in answers {
            let m = TIMESYNC_DATA { tc1, ts1, ..TIMESYNC_DATA::DEFAULT };
            clock.on_message(now, true, &MavMessage::TIMESYNC(m));
            assert_eq!(clock.time(now), None);
        }
        let late = now + TRIP_MAX + Duration::from_micros(1);
        let m = TIMESYNC_DATA { tc1: 9, ts1: nanoseconds(now), ..TIMESYNC_DATA::DEFAULT };
        clock.on_message(late, true, &MavMessage::TIMESYNC(m));
        assert_eq!(clock.time(late), None);
    }

    const WEEK_US: u64 = 7 * 86_400_000_000;

    #[test]
    fn a_time_without_a_fix_of_another_decade_or_no_longer_reported_is_none() {
        let mut clock = GnssClock::new(Instant::ZERO);
        let mut now = ask(&mut clock, Instant::from_millis(1), 300, 300);
        // Week numbers that have rolled over, back and ahead, for as long as they like.
        for booted_us in [0, BOOTED_US - 1_024 * WEEK_US, BOOTED_US + 1_024 * WEEK_US] {
            for has_fix in [false, true] {
                for _ in 0..100 {
                    now = now + Duration::from_secs(1);
                    report(&mut clock, now, has_fix, booted_us);
                    assert_eq!(clock.time(now), None);
                }
            }
        }
        let (mut clock, now) = stood();
        let now = ask(&mut clock, now, 300, 300);
        report(&mut clock, now, true, BOOTED_US);
        error_us(&clock, now + FRESH - Duration::from_micros(1));
        assert_eq!(clock.time(now + FRESH), None);
    }

    #[test]
    fn an_implausible_time_is_reported_once() {
        let mut clock = GnssClock::new(Instant::ZERO);
        let ahead_us = BOOTED_US + 1_024 * WEEK_US;
        let Some(GnssTimeEvent::Implausible { unix_us }) =
            report(&mut clock, Instant::from_secs(1), true, ahead_us)
        else {
            panic!("not reported")
        };
        assert_eq!(unix_us, ahead_us + AHEAD_US + 1_000_000);
        assert_eq!(report(&mut clock, Instant::from_secs(2), true, ahead_us), None);
        assert_eq!(
            report(&mut GnssClock::new(Instant::ZERO), Instant::from_secs(1), true, 0),
            None,
            "no time yet"
        );
    }

    #[test]
    fn a_step_of_a_week_counts_after_it_stood_for_a_minute_and_is_no_sample_before() {
        let (mut clock, now) = stood();
        let mut now = ask(&mut clock, now, 300, 300);
        error_us(&clock, now);
        let stepped = BOOTED_US - WEEK_US;
        // It comes and goes: the right time counts again at once.
        for _ in 0..3 {
            now = now + Duration::from_secs(1);
            let event = report(&mut clock, now, true, stepped);
            let Some(GnssTimeEvent::Stepped { by_us }) = event else { panic!("{event:?}") };
            assert!((by_us + WEEK_US as i64).abs() < 1_000, "{by_us}");
            assert_eq!(clock.time(now), None, "no sample in between");
            now = now + Duration::from_secs(1);
            assert_eq!(report(&mut clock, now, true, BOOTED_US), None);
            error_us(&clock, now);
        }
        // It stands.
        let since = now + Duration::from_secs(1);
        assert!(report(&mut clock, since, true, stepped).is_some());
        for s in 1..60 {
            now = since + Duration::from_secs(s);
            assert_eq!(report(&mut clock, now, true, stepped), None);
            assert_eq!(clock.time(now), None, "{s} s");
        }
        now = since + STANDS_FOR;
        assert_eq!(report(&mut clock, now, true, stepped), Some(GnssTimeEvent::Stood));
        assert!(clock.time(now).is_some());
        clock.restart(now);
        assert_eq!((clock.time(now), clock.due()), (None, now));
    }

    #[test]
    fn the_first_time_after_the_start_has_to_stand_too() {
        let mut clock = GnssClock::new(Instant::ZERO);
        let now = ask(&mut clock, Instant::from_millis(1), 300, 300);
        for s in 1..60 {
            let at = now + Duration::from_secs(s);
            // Half a minute of a wrong week at the start.
            let booted_us = if s < 30 { BOOTED_US - WEEK_US } else { BOOTED_US };
            report(&mut clock, at, true, booted_us);
            assert_eq!(clock.time(at), None, "{s} s");
        }
        for s in 60..=90 {
            report(&mut clock, now + Duration::from_secs(s), true, BOOTED_US);
        }
        let at = now + Duration::from_secs(90);
        assert!(clock.time(at).is_some());
    }

    #[test]
    fn small_corrections_of_the_autopilot_are_followed_at_once() {
        let (mut clock, now) = stood();
        let now = ask(&mut clock, now, 300, 300);
        report(&mut clock, now, true, BOOTED_US + 1_500_000);
        let off_us = clock.time(now).unwrap().unix_us - (BOOTED_US + AHEAD_US + now.as_micros());
        assert!(off_us.abs_diff(1_500_000) < 2_000, "{off_us}");
    }
}
