//! GNSS time, received through the autopilot.
//!
//! Two messages make it. `SYSTEM_TIME` pairs UTC with the autopilot's clock since its boot; `TIMESYNC` pairs that clock
//! with ours, by round trips (<https://mavlink.io/en/services/timesync.html>). A round trip bounds the offset of the two
//! clocks by half its own length, whatever waited on the way; with its age it gets worse, because clocks drift apart. The
//! best one counts. Of the pairs with UTC the smallest difference counts: the boot clock's milliseconds are cut off.
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
/// 2025-01-01 and 2100-01-01, UTC, microseconds after 1970: a receiver whose week number has rolled over reports a time before,
/// and no flight takes place after.
const PLAUSIBLE_US: core::ops::Range<u64> = 1_735_689_600_000_000..4_102_444_800_000_000;

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
}

impl GnssClock {
    /// The first question is due now.
    pub fn new(now: Instant) -> Self {
        Self { due: now, first: 0, asked_at: None, best: None, booted: None }
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
    pub fn on_message(&mut self, now: Instant, has_fix: bool, message: &MavMessage) {
        match message {
            MavMessage::TIMESYNC(m) => self.on_answer(now, m),
            // Without a fix its clock may have been set by a ground station.
            MavMessage::SYSTEM_TIME(m) if has_fix => {
                let booted_us = m.time_unix_usec.checked_sub(u64::from(m.time_boot_ms) * 1_000);
                let Some(booted_us) = booted_us.filter(|_| PLAUSIBLE_US.contains(&m.time_unix_usec)) else {
                    return;
                };
                // A larger one counts when the smallest may have drifted so far.
                let least_us = match self.booted {
                    Some((at, before)) if before.abs_diff(booted_us) <= STEP_US => {
                        booted_us.min(before + drift_us(at, now))
                    }
                    Some(_) | None => booted_us,
                };
                self.booted = Some((now, least_us));
            }
            _ => {}
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

    /// GNSS time now; nothing before both messages came, and where it is not reported any more.
    pub fn time(&self, now: Instant) -> Option<GnssTime> {
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

    fn report(clock: &mut GnssClock, now: Instant, has_fix: bool, booted_us: u64) {
        let since_us = now.as_micros() + AHEAD_US;
        clock.on_message(
            now,
            has_fix,
            &MavMessage::SYSTEM_TIME(SYSTEM_TIME_DATA {
                time_unix_usec: booted_us + since_us,
                time_boot_ms: (since_us / 1_000) as u32,
            }),
        );
    }

    fn error_us(clock: &GnssClock, now: Instant) -> u64 {
        let time = clock.time(now).unwrap();
        let off_us = time.unix_us.abs_diff(BOOTED_US + AHEAD_US + now.as_micros());
        assert!(off_us <= time.error_us, "{off_us} {time:?}");
        off_us
    }

    #[test]
    fn the_shortest_round_trip_counts_and_the_bound_holds() {
        let mut clock = GnssClock::new(Instant::ZERO);
        let mut now = Instant::from_millis(20);
        report(&mut clock, now, true, BOOTED_US);
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
        let mut clock = GnssClock::new(Instant::ZERO);
        report(&mut clock, Instant::from_millis(1), true, BOOTED_US);
        let now = Instant::from_millis(5);
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

    #[test]
    fn a_time_without_a_fix_of_another_age_or_no_longer_reported_is_none() {
        let mut clock = GnssClock::new(Instant::ZERO);
        let now = ask(&mut clock, Instant::from_millis(1), 300, 300);
        report(&mut clock, now, false, BOOTED_US);
        report(&mut clock, now, true, 0);
        // A week number that has rolled over: 1024 weeks earlier.
        report(&mut clock, now, true, BOOTED_US - 1_024 * 7 * 86_400_000_000);
        assert_eq!(clock.time(now), None);
        report(&mut clock, now, true, BOOTED_US);
        error_us(&clock, now + FRESH - Duration::from_micros(1));
        assert_eq!(clock.time(now + FRESH), None);
    }

    #[test]
    fn a_clock_that_the_autopilot_sets_is_followed() {
        let mut clock = GnssClock::new(Instant::ZERO);
        let now = ask(&mut clock, Instant::from_millis(1), 300, 300);
        report(&mut clock, now, true, BOOTED_US - 3_600_000_000);
        report(&mut clock, now, true, BOOTED_US);
        error_us(&clock, now);
        clock.restart(now);
        assert_eq!((clock.time(now), clock.due()), (None, now));
    }
}
