//! The pilot's mode switch, as the autopilot reports the channels of his transmitter.
//!
//! A heartbeat names the mode and not who set it: a pilot who switches to the mode that was ordered already shows here only.

use wingbeat_geo::{Duration, Instant};

use crate::dialect::RC_CHANNELS_DATA;

/// The channel of the switch where the autopilot has no parameter for it (ArduCopter 3.5.7), from 1.
pub const USUAL_CHANNEL: u8 = 5;

/// Below this pulse of the throttle a receiver reports that it receives nothing, and ArduCopter ignores the switch
/// (`FS_THR_VALUE`, whose default this is), microseconds.
const THROTTLE_RECEIVED_US: u16 = 975;
/// The channel of the throttle (`RCMAP_THROTTLE`, whose default this is), from 1.
const THROTTLE_CHANNEL: u8 = 3;
/// Pulses outside of these are of no transmitter, microseconds.
const PULSES_US: core::ops::RangeInclusive<u16> = 800..=2_200;
/// Where each position of the switch but the first begins, microseconds
/// (<https://ardupilot.org/copter/docs/flight-modes.html>).
const POSITIONS_US: [u16; 5] = [1_231, 1_361, 1_491, 1_621, 1_750];

/// So near to where a position begins a pulse may be of either, microseconds.
const UNSURE_US: u16 = 10;
/// ArduCopter takes a position once the switch has rested there for so long.
const RESTS: Duration = Duration::from_millis(200);

/// Where the switch is, from 0; none where no transmitter is received, or that is not sure.
fn position(report: &RC_CHANNELS_DATA, channel: u8) -> Option<u8> {
    let pulse_us = |channel: u8| {
        let pulses_us = [
            report.chan1_raw,
            report.chan2_raw,
            report.chan3_raw,
            report.chan4_raw,
            report.chan5_raw,
            report.chan6_raw,
            report.chan7_raw,
            report.chan8_raw,
            report.chan9_raw,
            report.chan10_raw,
            report.chan11_raw,
            report.chan12_raw,
            report.chan13_raw,
            report.chan14_raw,
            report.chan15_raw,
            report.chan16_raw,
        ];
        let pulse_us = pulses_us.get(usize::from(channel).checked_sub(1)?)?;
        PULSES_US.contains(pulse_us).then_some(*pulse_us)
    };
    pulse_us(THROTTLE_CHANNEL).filter(|&throttle_us| throttle_us >= THROTTLE_RECEIVED_US)?;
    let switch_us = pulse_us(channel)?;
    let at = |pulse_us: u16| POSITIONS_US.iter().filter(|&&from_us| pulse_us >= from_us).count() as u8;
    let (least, most) = (at(switch_us - UNSURE_US), at(switch_us + UNSURE_US));
    (least == most).then_some(least)
}

/// The switch over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModeSwitch {
    /// The channel that was read.
    channel: u8,
    at: Option<u8>,
    /// Where it was seen last, and since when there.
    seen: Option<(u8, Instant)>,
}

impl ModeSwitch {
    /// Takes a report of the channels, of which this is the switch's. Whether the switch was moved since the position that
    /// counted before: it rests elsewhere. The first one counts at once, and moves nothing; so does the first on another channel.
    pub fn on_report(&mut self, now: Instant, report: &RC_CHANNELS_DATA, channel: u8) -> bool {
        if self.channel != channel {
            *self = Self { channel, ..Self::default() };
        }
        let Some(position) = position(report, channel) else { return false };
        let (_, since) = *self.seen.insert(match self.seen {
            Some((before, since)) if before == position => (before, since),
            Some(_) | None => (position, now),
        });
        let was_moved = self.at.is_some_and(|at| at != position) && now.since(since) >= RESTS;
        if was_moved || self.at.is_none() {
            self.at = Some(position);
        }
        was_moved
    }

    /// Forgets where it was: wherever it is next, it was not moved.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(throttle_us: u16, switch_us: u16) -> RC_CHANNELS_DATA {
        RC_CHANNELS_DATA { chan3_raw: throttle_us, chan5_raw: switch_us, ..RC_CHANNELS_DATA::default() }
    }

    #[test]
    fn positions_are_arducopters_and_only_of_a_transmitter_that_is_received() {
        let of = |switch_us| position(&report(1_500, switch_us), USUAL_CHANNEL);
        assert_eq!([1_000, 1_165, 1_295, 1_425, 1_555].map(of), [0, 0, 1, 2, 3].map(Some));
        assert_eq!([1_685, 1_800, 2_200].map(of), [4, 5, 5].map(Some));
        assert_eq!([1_225, 1_231, 1_240].map(of), [None; 3], "it may be of either");
        assert_eq!([0, 799, 2_201, u16::MAX].map(of), [None; 4]);
        for throttle_us in [0, 900, 974, u16::MAX] {
            assert_eq!(position(&report(throttle_us, 1_500), USUAL_CHANNEL), None, "{throttle_us}");
        }
        assert_eq!([0, 6, 17, 255].map(|channel| position(&report(1_500, 1_500), channel)), [None; 4]);
    }

    #[test]
    fn a_switch_is_moved_once_it_rests_elsewhere() {
        const PULSES_US: [u16; 6] = [1_165, 1_295, 1_425, 1_555, 1_685, 1_800];
        let (mut switch, mut now) = (ModeSwitch::default(), Instant::from_secs(1));
        let mut moved = |switch: &mut ModeSwitch, apart_ms: u64, at: &[usize]| {
            let mut moves = 0;
            for &position in at {
                now = now + Duration::from_millis(apart_ms);
                moves += u8::from(switch.on_report(now, &report(1_500, PULSES_US[position]), USUAL_CHANNEL));
            }
            moves
        };
        assert_eq!(moved(&mut switch, 500, &[5, 5, 4, 5, 5, 3, 4, 5]), 0, "it passed through");
        assert_eq!(moved(&mut switch, 500, &[4]), 0);
        assert_eq!(moved(&mut switch, 0, &[4]), 0, "the same report once more");
        assert_eq!(moved(&mut switch, 500, &[4, 4, 4]), 1);
        switch.forget();
        assert_eq!(moved(&mut switch, 500, &[2, 2, 2]), 0);
        assert_eq!(moved(&mut switch, 500, &[4, 4, 2, 2]), 2);
        let elsewhere =
            RC_CHANNELS_DATA { chan3_raw: 1_500, chan8_raw: 1_800, ..RC_CHANNELS_DATA::default() };
        for ms in [500, 1_000] {
            let now = Instant::from_secs(60) + Duration::from_millis(ms);
            assert!(!switch.on_report(now, &elsewhere, 8), "another channel");
        }
    }
}
