//! What every protocol's numbers have in common: who we are, the fence, and which numbers cannot be flown.

use wingbeat_geo::{Duration, Frame, Instant, Position};
use wingbeat_wire::{Point, SWARM_MAX, VehicleId};

use crate::{FenceError, Protocol};

/// The numbers of one protocol, from which its flights are made.
pub trait Configuration {
    /// The protocol.
    type Flight: Protocol;
    /// Who we are.
    fn me(&self) -> VehicleId;
    /// Lowest and highest height of a waypoint above home, metres.
    fn heights_m(&self) -> (f64, f64);
    /// Looks for numbers that cannot be flown.
    ///
    /// # Errors
    /// The first one.
    fn check(&self) -> Result<(), ConfigError>;
    /// A fresh flight of an aircraft on the ground. All its chance comes from `seed`.
    fn begin(&self, seed: u64, now: Instant) -> Self::Flight;
}

/// Why a configuration cannot be flown.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The number of aircraft is impossible.
    #[error("aircraft: found {0}, expected 1 to {SWARM_MAX}")]
    Aircraft(usize),
    /// A distance is not a positive number.
    #[error("{name}: found {found} m, expected more than 0 and at most 10000 m")]
    Distance {
        /// Which.
        name: &'static str,
        /// Found.
        found: f64,
    },
    /// Heights contradict each other.
    #[error("heights: found {least} m to {most} m, expected 0 < least < most")]
    Heights {
        /// Least.
        least: f64,
        /// Most.
        most: f64,
    },
    /// The planned speed cannot be flown.
    #[error("planned_speed_m_s: found {0}, expected 0.5 to 20")]
    Speed(f64),
    /// The leader would fly into a slave that lags behind.
    #[error(
        "distance_m: found {found} m, expected at least {least} m for a refresh of {refresh_ms} ms: slaves lag \
         behind, and the leader flies into them (accepts_close flies it all the same)"
    )]
    Close {
        /// Found.
        found: f64,
        /// Least.
        least: f64,
        /// How often the leader tells where it is.
        refresh_ms: u64,
    },
    /// The formation would never turn.
    #[error("turn_m_s: found {0}, expected at least 0.1 m/s")]
    Turn(f64),
    /// The formation would assemble outside the fence.
    #[error("height_m: found {found} m, expected {least} m to {most} m")]
    Height {
        /// Found.
        found: f64,
        /// Least.
        least: f64,
        /// Most.
        most: f64,
    },
    /// There is no such strip.
    #[error("strip: found {found}, expected 0 to {}", .aircraft - 1)]
    Strip {
        /// Which.
        found: usize,
        /// Number of strips.
        aircraft: usize,
    },
    /// A period is out of its range.
    #[error("{name}: found {found_ms} ms, expected {least_ms} to {most_ms} ms")]
    Period {
        /// Which.
        name: &'static str,
        /// Found.
        found_ms: u64,
        /// Least.
        least_ms: u64,
        /// Most.
        most_ms: u64,
    },
}

impl ConfigError {
    /// A number of aircraft that a swarm can have.
    ///
    /// # Errors
    /// It cannot.
    pub fn aircraft(found: usize) -> Result<(), Self> {
        if (1..=SWARM_MAX).contains(&found) { Ok(()) } else { Err(Self::Aircraft(found)) }
    }
    /// A distance.
    ///
    /// # Errors
    /// It is none.
    pub fn distance(name: &'static str, found: f64) -> Result<(), Self> {
        if found > 0.0 && found <= 10_000.0 { Ok(()) } else { Err(Self::Distance { name, found }) }
    }
    /// Heights between which waypoints lie.
    ///
    /// # Errors
    /// Nothing lies between them.
    pub fn heights((least, most): (f64, f64)) -> Result<(), Self> {
        if least > 0.0 && least < most { Ok(()) } else { Err(Self::Heights { least, most }) }
    }
    /// A speed along the legs.
    ///
    /// # Errors
    /// It cannot be flown.
    pub fn speed(found: f64) -> Result<(), Self> {
        if (0.5..=20.0).contains(&found) { Ok(()) } else { Err(Self::Speed(found)) }
    }
    /// A period within its range.
    ///
    /// # Errors
    /// It is outside.
    pub fn period(name: &'static str, found: Duration, least_ms: u64, most_ms: u64) -> Result<(), Self> {
        let found_ms = found.as_millis() as u64;
        if (least_ms..=most_ms).contains(&found_ms) {
            return Ok(());
        }
        Err(Self::Period { name, found_ms, least_ms, most_ms })
    }
}

/// Where waypoints may lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fence {
    /// Lowest height above home, metres.
    pub height_least_m: f64,
    /// Highest height above home, metres.
    pub height_most_m: f64,
    /// Farthest from where the aircraft stands at its setup, metres.
    pub distance_most_m: f64,
}

impl Default for Fence {
    fn default() -> Self {
        Self { height_least_m: 2.0, height_most_m: 120.0, distance_most_m: 5_000.0 }
    }
}

impl Fence {
    /// Looks for waypoints outside, seen from an aircraft that stands at `here`.
    ///
    /// # Errors
    /// Names the first one, what was found and what was expected.
    pub fn check(&self, here: Position, route: &[Point]) -> Result<(), FenceError> {
        let Self { height_least_m, height_most_m, distance_most_m } = *self;
        let frame = Frame::new(here);
        for (waypoint, w) in route.iter().enumerate() {
            let found_m = f64::from(w.height_mm) * 1e-3;
            if !(height_least_m..=height_most_m).contains(&found_m) {
                let (least_m, most_m) = (height_least_m, height_most_m);
                return Err(FenceError::Height { waypoint, found_m, least_m, most_m });
            }
            let there = Position { latitude_e7: w.latitude_e7, longitude_e7: w.longitude_e7, ..here };
            let found_m = frame.to_local(there).truncate().length();
            if found_m > distance_most_m {
                return Err(FenceError::Distance { waypoint, found_m, most_m: distance_most_m });
            }
        }
        Ok(())
    }
}
