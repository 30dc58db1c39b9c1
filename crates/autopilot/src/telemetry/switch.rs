//! The pilot's mode switch, as the autopilot reports the channels of his transmitter.
//!
//! A heartbeat names the mode and not who set it: a pilot who switches to the mode that was ordered already shows here only.

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

/// Where the switch is, from 0; none where no transmitter is received.
pub fn position(report: &RC_CHANNELS_DATA, channel: u8) -> Option<u8> {
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
    Some(POSITIONS_US.iter().filter(|&&from_us| switch_us >= from_us).count() as u8)
}

/// The switch over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModeSwitch {
    at: Option<u8>,
    /// Seen once: ArduCopter too takes a position only after it has rested there.
    next: Option<u8>,
}

impl ModeSwitch {
    /// Takes a reported position. Whether the switch was moved since the one that counted before; the first one counts at
    /// once, and moves nothing.
    pub fn on_position(&mut self, position: u8) -> bool {
        let before = self.next.replace(position);
        let was_moved = self.at.is_some_and(|at| at != position) && before == Some(position);
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
        assert_eq!([1_000, 1_230, 1_231, 1_361, 1_491].map(of), [0, 0, 1, 2, 3].map(Some));
        assert_eq!([1_620, 1_621, 1_749, 1_750, 2_200].map(of), [3, 4, 4, 5, 5].map(Some));
        assert_eq!([0, 799, 2_201, u16::MAX].map(of), [None; 4]);
        for throttle_us in [0, 900, 974, u16::MAX] {
            assert_eq!(position(&report(throttle_us, 1_500), USUAL_CHANNEL), None, "{throttle_us}");
        }
        assert_eq!([0, 6, 17, 255].map(|channel| position(&report(1_500, 1_500), channel)), [None; 4]);
    }

    #[test]
    fn a_switch_is_moved_once_it_rests_elsewhere() {
        let mut switch = ModeSwitch::default();
        let moved = |switch: &mut ModeSwitch, at: &[u8]| {
            at.iter().map(|&p| switch.on_position(p)).fold(0, |n, m| n + u8::from(m))
        };
        assert_eq!(
            moved(&mut switch, &[5, 5, 4, 5, 5, 3, 4, 5]),
            0,
            "it passed through, or one report was wrong"
        );
        assert_eq!(moved(&mut switch, &[4]), 0);
        assert!(switch.on_position(4));
        assert_eq!(moved(&mut switch, &[4, 4, 4]), 0);
        switch.forget();
        assert_eq!(moved(&mut switch, &[2, 2, 2]), 0);
        assert_eq!(moved(&mut switch, &[4, 4, 2, 2]), 2);
    }
}
