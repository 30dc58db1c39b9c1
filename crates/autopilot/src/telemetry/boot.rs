//! The autopilot's clock: a reboot, or two senders with one system id.

use wingbeat_geo::{Duration, Instant};

use crate::dialect::MavMessage;

/// Frames may overtake each other by this much on a datagram link; a clock that goes back further has
/// restarted.
const REORDERED_MS: u32 = 1_000;
/// A clock that goes on where it was before it went back is another's: two systems share one id.
const GOES_ON_WITHIN: Duration = Duration::from_secs(5);
/// It then differs from its own course by less than this: half of the least step back.
const GOES_ON_MS: u64 = 500;
/// In flight a clock has restarted when no frame has followed the former one for this time: a second sender is no reboot.
const FORMER_SILENT: Duration = Duration::from_millis(1_500);
/// Frames of another clock that show more than one reordered frame.
const SHOWN_BY: u8 = 2;
/// Two senders are known for this time after their clocks were seen to differ.
const TWINS_FOR: Duration = Duration::from_secs(60);

/// One of the clocks.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    last_ms: Option<u32>,
    /// When that was received.
    last_at: Option<Instant>,
    /// The value before it went back, and when that was.
    left: Option<(Instant, u32)>,
    /// In flight, the frames that are behind it, and when the last of them was received.
    behind: u8,
    behind_at: Instant,
}

/// The meaning of a clock's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ticked {
    /// The clock goes on.
    On,
    /// It has restarted.
    Restarted,
    /// Two senders use one system id: true when that is seen first.
    Twins(bool),
}

/// Follows the autopilot's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Boot {
    /// That of its reports in general, and that of its positions.
    clocks: [Clock; 2],
    twins_at: Option<Instant>,
}

impl Boot {
    /// Returns the clock at the last report, milliseconds since the boot.
    pub fn boot_ms(&self) -> Option<u32> {
        self.clocks[0].last_ms
    }

    /// Returns whether two senders use the system id of the autopilot.
    pub fn has_twins(&self, now: Instant) -> bool {
        self.twins_at.is_some_and(|at| now.since(at) < TWINS_FOR)
    }

    /// Returns what outlives a reboot: the other clock restarts too.
    pub(super) fn rebooted(mut self, now: Instant) -> Self {
        for clock in &mut self.clocks {
            if clock.left.is_none_or(|(at, _)| at != now) {
                let last = clock.last_ms.take();
                clock.left = last.map(|last_ms| (now, last_ms));
            }
        }
        self
    }

    /// Follows the clock in a message. A position is compared with positions only: that of ArduCopter 3.5.7 carries the
    /// time of the last satellite fix (measured on SITL): when the receiver stalls, it stops.
    ///
    /// In flight a clock that goes back may be another sender's. It has restarted once a second frame follows it and none the
    /// former clock.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub(super) fn on_message(&mut self, now: Instant, message: &MavMessage, is_armed: bool) -> Ticked {
        let (which, boot_ms) = match message {
            MavMessage::GLOBAL_POSITION_INT(m) => (1, m.time_boot_ms),
            MavMessage::SYSTEM_TIME(m) => (0, m.time_boot_ms),
            MavMessage::ATTITUDE(m) => (0, m.time_boot_ms),
            _ => return Ticked::On,
        };
        let has_twins = self.has_twins(now);
        let clock = &mut self.clocks[which];
        let before = clock.last_ms.unwrap_or(boot_ms);
        // The clock wraps after 49 days: that is a step forward.
        let back_ms = before.wrapping_sub(boot_ms);
        let is_back = back_ms > REORDERED_MS && back_ms < u32::MAX / 2;
        if now.since(clock.behind_at) >= GOES_ON_WITHIN {
            clock.behind = 0;
        }
        if is_armed && is_back && !has_twins {
            (clock.behind, clock.behind_at) = (clock.behind.saturating_add(1), now);
            let is_silent = clock.last_at.is_none_or(|at| now.since(at) >= FORMER_SILENT);
            if clock.behind < SHOWN_BY || !is_silent {
                return Ticked::On;
            }
        } else if is_armed && clock.behind >= SHOWN_BY {
            (clock.last_ms, clock.last_at, clock.behind) = (Some(boot_ms), Some(now), 0);
            self.twins_at = Some(now);
            return Ticked::Twins(!has_twins);
        }
        if is_back {
            clock.behind = 0;
        }
        (clock.last_ms, clock.last_at) = (Some(boot_ms), Some(now));
        let goes_on = clock.left.is_some_and(|(at, left_ms)| {
            let expected_ms = u64::from(left_ms) + now.since(at).as_millis() as u64;
            now.since(at) < GOES_ON_WITHIN && u64::from(boot_ms).abs_diff(expected_ms) < GOES_ON_MS
        });
        if is_back {
            clock.left = Some((now, before));
        }
        if goes_on || is_back && self.has_twins(now) {
            let is_first = !self.has_twins(now);
            self.twins_at = Some(now);
            return Ticked::Twins(is_first);
        }
        if is_back { Ticked::Restarted } else { Ticked::On }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::dialect::SYSTEM_TIME_DATA;
    use std::vec::Vec;

    fn clock(time_boot_ms: u32) -> MavMessage {
        MavMessage::SYSTEM_TIME(SYSTEM_TIME_DATA { time_unix_usec: 0, time_boot_ms })
    }

    #[test]
    fn two_senders_with_one_id_are_said_once_and_a_reboot_is_one() {
        let mut boot = Boot::default();
        let mut seen = Vec::new();
        // Two clocks that are a minute apart, four times a second.
        for tick in 0..400_u32 {
            let now = Instant::from_millis(u64::from(tick) * 250);
            for offset_ms in [90_000, 30_000] {
                match boot.on_message(now, &clock(tick * 250 + offset_ms), false) {
                    Ticked::On | Ticked::Twins(false) => {}
                    ticked => {
                        seen.push(ticked);
                        boot = boot.rebooted(now);
                    }
                }
            }
        }
        assert_eq!(seen.iter().filter(|ticked| **ticked == Ticked::Twins(true)).count(), 1, "{seen:?}");
        assert!(seen.iter().filter(|ticked| **ticked == Ticked::Restarted).count() <= 2, "{seen:?}");
        assert!(boot.has_twins(Instant::from_secs(100)) && !boot.has_twins(Instant::from_secs(161)));
        // One that reboots again and again is no pair.
        let mut boot = Boot::default();
        for (s, ms) in [(0, 90_000), (1, 91_000), (5, 1_000), (6, 2_000), (9, 500), (30, 21_500)] {
            let ticked = boot.on_message(Instant::from_secs(s), &clock(ms), false);
            assert_eq!(ticked == Ticked::Restarted, matches!(ms, 1_000 | 500), "{s}: {ticked:?}");
        }
    }

    #[test]
    fn in_flight_a_second_sender_is_no_reboot_and_a_reboot_shows_in_two_frames() {
        for offsets_ms in [[90_000, 30_000], [30_000, 90_000]] {
            let (mut boot, mut twins) = (Boot::default(), 0);
            for tick in 0..80_u32 {
                let now = Instant::from_millis(u64::from(tick) * 250);
                // The second one appears after 5 s.
                for offset_ms in offsets_ms.iter().take(if tick < 20 { 1 } else { 2 }) {
                    match boot.on_message(now, &clock(tick * 250 + offset_ms), true) {
                        Ticked::Restarted => panic!("{tick}"),
                        Ticked::Twins(is_first) => twins += usize::from(is_first),
                        Ticked::On => {}
                    }
                }
            }
            assert_eq!(twins, 1, "{offsets_ms:?}");
        }
        let mut boot = Boot::default();
        let mut tick = |ms: u64, boot_ms| boot.on_message(Instant::from_millis(ms), &clock(boot_ms), true);
        // One frame that was overtaken by seconds, then a reboot of ten.
        for (ms, boot_ms) in [(0, 90_000), (1_000, 91_000), (1_100, 89_000), (2_000, 92_000), (9_000, 500)] {
            assert_eq!(tick(ms, boot_ms), Ticked::On, "{ms}");
        }
        assert_eq!((tick(10_000, 1_500), tick(11_000, 2_500)), (Ticked::Restarted, Ticked::On));
    }
}
