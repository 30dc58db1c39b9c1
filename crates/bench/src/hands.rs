//! A simulated pilot's hands in real time: nobody touches the sticks before the flight has started.

use std::sync::{Arc, Mutex, PoisonError};

use wingbeat_geo::Instant;
use wingbeat_sim::flight_controller::{RcChannels, Truth};
use wingbeat_sim::pilot::{Pilot, STICK_PERIOD};

/// When pilots took their transmitters; nothing before the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Started(Arc<Mutex<Option<Instant>>>);

impl Started {
    /// The flight has started; only the first time counts.
    pub(crate) fn tell(&self, now: Instant) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(now);
    }
    fn at(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One pilot's.
pub(crate) struct Hands {
    pilot: Pilot,
    started: Started,
    next: Instant,
}

impl Hands {
    pub(crate) fn new(pilot: Pilot, started: Started) -> Self {
        Self { pilot, started, next: Instant::ZERO }
    }

    /// What the transmitter sends now, if it is time to send.
    pub(crate) fn sticks(&mut self, now: Instant, seen: &Truth) -> Option<RcChannels> {
        let since = self.started.at()?;
        if now < self.next {
            return None;
        }
        self.next = now + STICK_PERIOD;
        Some(self.pilot.sticks(now.since(since), seen).channels())
    }
}
