//! This computer's clock next to GNSS time: the offset, and what is judged by which of the two.
//!
//! Nothing in an agent runs by either: its own time is monotonic, and a clock that is set changes none of its deadlines.

use wingbeat_autopilot::gnss_time::{BUILT_AFTER_US, GnssTime, GnssTimeEvent};
use wingbeat_geo::Instant;
use wingbeat_protocol::{Severity, Text, text};

use crate::checks::CLOCK;
use crate::status::Check;
use crate::{Agent, Outputs};

/// A clock farther than this from GNSS time is not set: half of the age at which datagrams are refused.
const OFFSET_MAX_US: u64 = 1_000_000;
/// A clock that shows an earlier time was never set.
const SET_US: u64 = BUILT_AFTER_US;

/// The clock of this computer and GNSS time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStatus {
    /// GNSS time, through the flight controller.
    pub gnss: GnssTime,
    /// How far this computer's clock is ahead of it, microseconds; absent where its owner stated none.
    pub ahead_us: Option<i64>,
}

/// UTC `now`, where it was stated at some instant.
pub(crate) fn elapsed(utc: Option<(Instant, u64)>, now: Instant) -> Option<u64> {
    let (at, unix_us) = utc?;
    Some(unix_us.saturating_add(now.as_micros().saturating_sub(at.as_micros())))
}

/// A time for people, in a unit of its size.
fn span(us: u64) -> Text {
    match us {
        0..10_000 => text!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        10_000..10_000_000 => text!("{} ms", us / 1_000),
        10_000_000..172_800_000_000 => text!("{} s", us / 1_000_000),
        _ => text!("{} days", us / 86_400_000_000),
    }
}

/// Logs a change of GNSS time.
pub(crate) fn report(event: Option<GnssTimeEvent>, out: &mut Outputs) {
    let Some(event) = event else { return };
    out.log(
        Severity::Warning,
        match event {
            GnssTimeEvent::Stepped { by_us } => {
                let side = if by_us < 0 { "back" } else { "ahead" };
                text!(
                    "GNSS time stepped {side} by {}: it counts once it has stood for 1 min",
                    span(by_us.unsigned_abs())
                )
            }
            GnssTimeEvent::Stood => text!("GNSS time stood for 1 min after its step: it counts"),
            GnssTimeEvent::Implausible { unix_us } => {
                let year = 1970 + unix_us / 31_556_952_000_000;
                text!("GNSS time is of the year {year}: ignored; the receiver's week number is wrong")
            }
        },
    );
}

impl Agent {
    /// UTC by this computer's clock.
    pub(crate) fn unix_us(&self, now: Instant) -> Option<u64> {
        elapsed(self.utc, now)
    }

    /// GNSS time, through the flight controller; nothing before it is known.
    pub fn gnss_time(&self, now: Instant) -> Option<GnssTime> {
        self.gnss_clock.time(now)
    }

    /// The later of the two times. A clock that was never set is behind, so this judges an expiry: neither of the two,
    /// however far it is put back, makes keys valid again that the other knows to have expired.
    pub fn latest_us(&self, now: Instant) -> Option<u64> {
        self.unix_us(now).max(self.gnss_time(now).map(|gnss| gnss.unix_us))
    }

    /// The earlier of the two times, where they are plausible: it judges the age of an order, of which a clock that is ahead
    /// must refuse none.
    pub(crate) fn earliest_us(&self, now: Instant) -> Option<u64> {
        let own = self.unix_us(now).filter(|us| *us >= SET_US);
        let gnss = self.gnss_time(now).map(|gnss| gnss.unix_us);
        match (own, gnss) {
            (Some(own), Some(gnss)) => Some(own.min(gnss)),
            (own, gnss) => own.or(gnss),
        }
    }

    /// This computer's clock is stated, or was set. Where it was set forward, our datagrams are counted from there on: the
    /// others may hold them against their own clocks. Never backwards.
    pub(crate) fn on_utc(&mut self, now: Instant, unix_us: u64) {
        let is_forward =
            self.unix_us(now).is_some_and(|expected| unix_us > expected.saturating_add(OFFSET_MAX_US));
        self.utc = Some((now, unix_us));
        if is_forward {
            self.counter_base_us = self.counter_base_us.max(unix_us.saturating_sub(now.as_micros()));
            // Its owner reserves what it may have used before a datagram leaves.
            self.counter = self.counter.max(self.counter_base_us.saturating_add(now.as_micros()));
        }
    }

    pub(crate) fn clock_status(&self, now: Instant) -> Option<ClockStatus> {
        let gnss = self.gnss_time(now)?;
        let ahead_us = self.unix_us(now).map(|unix_us| (unix_us as i64).saturating_sub(gnss.unix_us as i64));
        Some(ClockStatus { gnss, ahead_us })
    }

    /// Whether this computer's clock is set, as far as that is known; nothing where its owner stated none. Setup is refused
    /// only where datagrams are held against it.
    pub(crate) fn clock_check(&self, now: Instant) -> Option<Check> {
        let unix_us = self.unix_us(now)?;
        let (passed, detail) = match self.clock_status(now) {
            Some(ClockStatus { ahead_us: Some(ahead_us), .. }) => {
                let off = span(ahead_us.unsigned_abs());
                let side = if ahead_us < 0 { "behind" } else { "ahead of" };
                let passed = ahead_us.unsigned_abs() <= OFFSET_MAX_US;
                let cure =
                    if passed { "" } else { ", expected at most 1 s: set it (docs/operating.md, Clock)" };
                (passed, text!("{off} {side} GNSS time{cure}"))
            }
            _ if unix_us < SET_US => {
                (false, text!("not set, and no GNSS time from the flight controller yet"))
            }
            _ => (true, text!("set; no GNSS time from the flight controller to compare it with")),
        };
        Some(Check { name: CLOCK, passed, is_required: self.config.clocks_are_set, detail })
    }
}
