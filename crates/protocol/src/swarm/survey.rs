//! The surroundings as the operator stated them, and as this aircraft measures them.

use wingbeat_geo::Instant;

use super::Config;
use super::budget::{Budget, Measured, Surroundings};
use super::clearance::Air;
use crate::accuracy::Accuracy;

/// What is stated, and what counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Survey {
    stated: Surroundings,
    stated_landing_m: f64,
    measured: Measured,
    accuracy: Accuracy,
    counts: Surroundings,
}

impl Survey {
    /// Returns what is stated; nothing is measured yet.
    pub(super) fn of(config: &Config) -> Self {
        let stated = config.surroundings;
        let measured = Measured::default();
        let accuracy = Accuracy::default();
        Self { stated, stated_landing_m: config.landing_distance_m, measured, accuracy, counts: stated }
    }

    /// Takes a measurement. Returns whether another value counts from now on.
    pub(super) fn measure(&mut self, now: Instant, measured: Measured) -> bool {
        self.measured = Measured { gnss_error_m: self.accuracy.take(now, &measured), ..measured };
        let counts = self.stated.with(self.measured);
        core::mem::replace(&mut self.counts, counts) != counts
    }

    /// Plans with what counts. Landing positions move apart by themselves: that needs nothing but room.
    pub(super) fn apply(&self, config: &mut Config) {
        config.surroundings = self.counts;
        let asked_m = libm::ceil(config.budget().landing().distance_m * 2.0) / 2.0;
        let grows = self.counts != self.stated && !config.accepts_close;
        config.landing_distance_m =
            if grows { self.stated_landing_m.max(asked_m) } else { self.stated_landing_m };
    }

    /// Returns the least distance between landing positions by the accuracy that is measured now, in metres; 0 where it is no
    /// worse than stated.
    pub(super) fn landing_least_m(&self, config: &Config) -> f64 {
        let Surroundings { gnss_error_m, .. } = self.counts;
        if gnss_error_m <= self.stated.gnss_error_m {
            return 0.0;
        }
        let surroundings = Surroundings { gnss_error_m, ..self.stated };
        Budget { surroundings, ..config.budget() }.landing().distance_m
    }

    /// Whether this aircraft has lost its satellites or its position.
    pub(super) fn is_blind(&self) -> bool {
        self.measured.is_blind
    }

    /// Returns the wind that carries an aircraft that nothing steers.
    pub(super) fn air(&self) -> Air {
        Air { known_m_s: self.measured.air_m_s, most_m_s: self.stated.wind_m_s }
    }
}
