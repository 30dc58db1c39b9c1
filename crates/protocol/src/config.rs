//! What the configurations of all protocols have in common: this aircraft's id, the fence, and the limits of numbers.
//! Each limit is judged here or in the protocol's own configuration, and nowhere a second time.

use core::fmt;
use serde::{Deserialize, Serialize};

use wingbeat_geo::{Duration, Frame, Instant, Position};
use wingbeat_wire::{Point, SWARM_MAX, VehicleId};

use crate::{FenceError, Protocol};

/// The configuration of one protocol, from which its machine is made.
pub trait Configuration {
    /// The state machine of the protocol; one is made for each flight.
    type Machine: Protocol;
    /// Section of the configuration file that has its keys.
    const SECTION: &'static str;
    /// Id of this aircraft.
    fn me(&self) -> VehicleId;
    /// Lowest and highest height of a waypoint above home, metres.
    fn heights_m(&self) -> (f64, f64);
    /// Judges every number. Of another section's the error names that section.
    ///
    /// # Errors
    /// The first number that cannot be flown.
    fn check(&self) -> Result<(), ConfigError>;
    /// The machine for an aircraft on the ground. All its random numbers come from `seed`.
    fn begin(&self, seed: u64, now: Instant) -> Self::Machine;
}

/// A number that cannot be flown: its key, its value, and what the value may be.
///
/// The key is that of the configuration file, so that every program that reads one shows the same message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfigError {
    /// Section of the key; `None`: the section of the protocol that judged it.
    pub section: Option<&'static str>,
    /// Key, its unit last.
    pub key: &'static str,
    /// Value, in the key's unit.
    pub found: f64,
    /// The range or values that are accepted.
    pub expected: Expected,
}

/// What a number may be, in its key's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    /// Both ends included.
    Range {
        /// Lower end.
        least: f64,
        /// Upper end.
        most: f64,
    },
    /// The lower end excluded.
    Above {
        /// Lower end.
        least: f64,
        /// Upper end.
        most: f64,
    },
    /// Bounded below by another key or by a rule.
    AtLeast {
        /// Lower end.
        least: f64,
        /// The key, or the rule.
        reason: &'static str,
    },
}

impl core::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(section) = self.section {
            write!(f, "{section}.")?;
        }
        write!(f, "{}: found {}, expected ", self.key, self.found)?;
        let unit = unit(self.key);
        match self.expected {
            Expected::Range { least, most } => write!(f, "{least} to {most}{unit}"),
            Expected::Above { least, most } => write!(f, "more than {least} and at most {most}{unit}"),
            Expected::AtLeast { least, reason } => write!(f, "at least {least}{unit}: {reason}"),
        }
    }
}

/// The unit is the last word of a key; with the space before it.
fn unit(key: &str) -> &'static str {
    const UNITS: [(&str, &str); 7] = [
        ("_m_s2", " m/s²"),
        ("_m_s", " m/s"),
        ("_m", " m"),
        ("_ms", " ms"),
        ("_s", " s"),
        ("_percent", " per cent"),
        ("_v", " V"),
    ];
    UNITS.iter().find(|(suffix, _)| key.ends_with(suffix)).map_or("", |(_, unit)| unit)
}

impl ConfigError {
    /// A longer distance inside a swarm or between two aircraft is a mistake, metres.
    const DISTANCE_MOST_M: f64 = 10_000.0;
    /// A longer wait is a mistake.
    const WAIT_MOST_MS: u64 = 3_600_000;

    /// This error of a number that stands in `section`, unless it names a section already.
    #[must_use]
    pub fn within(self, section: &'static str) -> Self {
        Self { section: self.section.or(Some(section)), ..self }
    }
    /// A number in its range.
    ///
    /// # Errors
    /// It is outside.
    pub fn range(key: &'static str, found: f64, least: f64, most: f64) -> Result<(), Self> {
        if (least..=most).contains(&found) {
            return Ok(());
        }
        Err(Self { section: None, key, found, expected: Expected::Range { least, most } })
    }
    /// A number above `least`.
    ///
    /// # Errors
    /// It is not, or above `most`.
    pub fn above(key: &'static str, found: f64, least: f64, most: f64) -> Result<(), Self> {
        if found > least && found <= most {
            return Ok(());
        }
        Err(Self { section: None, key, found, expected: Expected::Above { least, most } })
    }
    /// A number that another key or a rule bounds below.
    ///
    /// # Errors
    /// It is less.
    pub fn at_least(key: &'static str, found: f64, least: f64, reason: &'static str) -> Result<(), Self> {
        if found >= least {
            return Ok(());
        }
        Err(Self { section: None, key, found, expected: Expected::AtLeast { least, reason } })
    }
    /// A number of aircraft that a swarm can have.
    ///
    /// # Errors
    /// It cannot.
    pub fn aircraft(found: usize, least: usize) -> Result<(), Self> {
        Self::range("aircraft", found as f64, least as f64, SWARM_MAX as f64)
    }
    /// A distance inside a swarm, or between two aircraft.
    ///
    /// # Errors
    /// It is none.
    pub fn distance(key: &'static str, found: f64) -> Result<(), Self> {
        Self::above(key, found, 0.0, Self::DISTANCE_MOST_M)
    }
    /// A speed along the legs.
    ///
    /// # Errors
    /// It cannot be flown.
    pub fn speed(key: &'static str, found: f64) -> Result<(), Self> {
        Self::range(key, found, 0.5, 20.0)
    }
    /// A period within its range.
    ///
    /// # Errors
    /// It is outside.
    pub fn period(key: &'static str, found: Duration, least_ms: u64, most_ms: u64) -> Result<(), Self> {
        Self::range(key, found.as_micros() as f64 / 1e3, least_ms as f64, most_ms as f64)
    }
    /// A wait that an operator may use, an hour at most.
    ///
    /// # Errors
    /// It is shorter than `least_ms`, or longer than that.
    pub fn wait(key: &'static str, found: Duration, least_ms: u64) -> Result<(), Self> {
        Self::period(key, found, least_ms, Self::WAIT_MOST_MS)
    }
}

/// Where waypoints may lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Nothing is flown higher or farther away, metres.
    const MOST_M: f64 = 100_000.0;

    /// Judges the fence itself.
    ///
    /// # Errors
    /// The first number of the section `fence` that leaves no room for waypoints.
    pub fn judge(&self) -> Result<(), ConfigError> {
        let Self { height_least_m, height_most_m, distance_most_m } = *self;
        ConfigError::above("height_least_m", height_least_m, 0.0, Self::MOST_M)
            .and_then(|()| ConfigError::above("height_most_m", height_most_m, height_least_m, Self::MOST_M))
            .and_then(|()| ConfigError::above("distance_most_m", distance_most_m, 0.0, Self::MOST_M))
            .map_err(|error| error.within("fence"))
    }

    /// An aircraft that makes room for another, or flies aside to land, chooses a place of its own near where it is, which may
    /// lie outside by as much, metres: were it refused, it would land on the other.
    pub const ASIDE_M: f64 = 150.0;

    /// How far a point is from where the aircraft stands at its setup, over the ground, metres.
    pub fn distance_m(here: Position, at: Point) -> f64 {
        let there = Position { latitude_e7: at.latitude_e7, longitude_e7: at.longitude_e7, ..here };
        Frame::new(here).to_local(there).truncate().length()
    }

    /// Judges the height at which a take-off ends, millimetres above home; 0 is that of the first waypoint, which
    /// [`Fence::check`] judges.
    ///
    /// # Errors
    /// States the height and the bounds of the fence.
    pub fn check_take_off(&self, take_off_mm: i32) -> Result<(), FenceError> {
        let (found_m, least_m, most_m) =
            (f64::from(take_off_mm) / 1e3, self.height_least_m, self.height_most_m);
        if take_off_mm == 0 || (least_m..=most_m).contains(&found_m) {
            return Ok(());
        }
        Err(FenceError::TakeOff { found_m, least_m, most_m })
    }

    /// Looks for waypoints outside, seen from an aircraft that stands at `here`.
    ///
    /// # Errors
    /// Names the first one, what was found and what was expected.
    pub fn check(&self, here: Position, route: &[Point]) -> Result<(), FenceError> {
        let Self { height_least_m, height_most_m, distance_most_m } = *self;
        for (waypoint, &w) in route.iter().enumerate() {
            let found_m = f64::from(w.height_mm) / 1e3;
            if !(height_least_m..=height_most_m).contains(&found_m) {
                let (least_m, most_m) = (height_least_m, height_most_m);
                return Err(FenceError::Height { waypoint, found_m, least_m, most_m });
            }
            let found_m = Self::distance_m(here, w);
            if found_m > distance_most_m {
                return Err(FenceError::Distance { waypoint, found_m, most_m: distance_most_m });
            }
        }
        Ok(())
    }
}
