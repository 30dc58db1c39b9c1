//! The transmitter of a simulated pilot in real time: its sticks are centred before the flight has started.

use std::sync::{Arc, Mutex, PoisonError};

use wingbeat_geo::Instant;
use wingbeat_sim::flight_controller::{RcChannels, Truth};
use wingbeat_sim::pilot::{Pilot, STICK_PERIOD};

/// When the flight started; nothing before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Started(Arc<Mutex<Option<Instant>>>);

impl Started {
    /// The flight has started; only the first time counts.
    pub(crate) fn set(&self, now: Instant) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(now);
    }
    fn at(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sticks of one pilot.
pub(crate) struct Transmitter {
    pilot: Pilot,
    started: Started,
    next: Instant,
}

impl Transmitter {
    pub(crate) fn new(pilot: Pilot, started: Started) -> Self {
        Self { pilot, started, next: Instant::ZERO }
    }

    /// What the transmitter sends now, if it is time to send.
    pub(crate) fn sticks(&mut self, now: Instant, truth: &Truth) -> Option<RcChannels> {
        let since = self.started.at()?;
        if now < self.next {
            return None;
        }
        self.next = now + STICK_PERIOD;
        Some(self.pilot.sticks(now.since(since), truth).channels())
    }
}
