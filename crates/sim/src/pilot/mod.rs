//! A simulated pilot: watches an aircraft and moves the sticks of its transmitter.
//!
//! Two kinds. [`trace::Replay`] gives the sticks of a recorded flight again, at their times, blind.
//! [`synthetic::Synthetic`] flies a programme by eye: it sees height and speed as a pilot on the field does,
//! and needs no recording. Both turn the mode switch to LOITER, arm by the sticks, and bring the aircraft
//! down at the end. No clock and no hidden randomness: the same flight from the same seed.

pub mod synthetic;
pub mod trace;

use wingbeat_geo::{Duration, Instant};

use crate::flight_controller::{RcChannels, Truth};

/// How often sticks reach the flight controller. The published recording has a row each 201 ms.
pub const STICK_PERIOD: Duration = Duration::from_millis(100);

/// The mode switch in its fifth position, which the defaults of SITL make LOITER (`FLTMODE5` 5).
const SWITCH_LOITER_US: u16 = 1685;

/// Pulses of the four sticks, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sticks {
    /// More is to the right.
    pub roll_us: u16,
    /// Less is forward.
    pub pitch_us: u16,
    /// More is up.
    pub throttle_us: u16,
    /// More is clockwise.
    pub yaw_us: u16,
}

impl Sticks {
    /// Let go: position and height are held in LOITER.
    pub const CENTRED: Self = Self { roll_us: 1500, pitch_us: 1500, throttle_us: 1500, yaw_us: 1500 };
    /// Throttle down, the others let go.
    pub const DOWN: Self = Self { throttle_us: 1000, ..Self::CENTRED };
    /// The gesture that arms.
    pub const ARM: Self = Self { yaw_us: 2000, ..Self::DOWN };

    /// All channels of the transmitter, the mode switch at LOITER.
    pub fn channels(self) -> RcChannels {
        let RcChannels(mut pulses) = RcChannels::IDLE;
        pulses[..5].copy_from_slice(&[
            self.roll_us,
            self.pitch_us,
            self.throttle_us,
            self.yaw_us,
            SWITCH_LOITER_US,
        ]);
        RcChannels(pulses)
    }
}

/// Whose hands are on the sticks.
#[derive(Clone, Debug, PartialEq)]
pub enum Pilot {
    /// A recording's.
    Trace(trace::Replay),
    /// Made-up ones.
    Synthetic(synthetic::Synthetic),
}

impl Pilot {
    /// Where the sticks are `flown` after the pilot took them, by what it sees then. Call it each
    /// [`STICK_PERIOD`], with time that does not run back.
    pub fn sticks(&mut self, flown: Duration, seen: &Truth) -> Sticks {
        match self {
            Self::Trace(replay) => replay.sticks(flown, seen),
            Self::Synthetic(pilot) => pilot.sticks(Instant::ZERO + flown, seen),
        }
    }

    /// Holds other sticks for so long, from the next look on, because of something that the pilot
    /// sees. A recording is blind.
    pub fn divert(&mut self, sticks: Sticks, time: Duration) {
        match self {
            Self::Trace(_) => {}
            Self::Synthetic(pilot) => pilot.divert(sticks, time),
        }
    }
}
