//! Flight formations: where slot k lies, relative to the slot that leads (thesis section 4.1.6.1).
//!
//! A slot's offset has x to the right of the heading, y ahead and z up; [`Formation::offset_m`] turns it
//! into east and north with the rotation of thesis equation 6.2. Slots are numbered as the reference
//! implementation numbers them; [`Formation::center_slot`] is the one that flies the mission as planned,
//! and its offset is zero.
//!
//! Over the ground no two slots are nearer to each other than the distance that was asked for, whatever
//! their heights: an aircraft below another flies in its downwash, and all come straight down in the end.
//! The same numbers give the same slots on every machine.

mod compact;
mod custom;
mod random;
mod ring;
mod row;
#[cfg(test)]
mod tests;

pub use custom::{FileError, Found, Offset, OffsetError, Offsets, read_offsets};
pub use ring::PARTS_MAX;

use core::fmt;

use glam::{DVec2, DVec3};
use heapless::Vec;

use crate::AIRCRAFT_MAX;

/// The greatest distance between slots, metres.
const DISTANCE_MOST_M: f64 = 10_000.0;
/// What rounding may take from a distance: a hundredth of a millimetre at 10 km.
const ROUNDING: f64 = 1.0 - 1e-9;

/// Offsets of all slots before rotation: x to the right of the heading, y ahead, z up, metres.
type Slots = Vec<DVec3, AIRCRAFT_MAX>;

/// A layout, its number of aircraft and the least distance between two of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Formation {
    layout: Layout,
    distance_m: f64,
    slots: Slots,
}

/// The shape of a formation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A row abreast, at right angles to the heading.
    Linear,
    /// A square grid, row by row, from left to right and from back to front.
    Matrix,
    /// The places of a square grid that are nearest to its middle.
    CompactMatrix,
    /// The places of a grid of equilateral triangles that are nearest to its middle.
    CompactMesh,
    /// One in the middle, the others on a circle around it.
    Circular,
    /// A V: one ahead, the others alternately on its left and right, each farther back.
    Wedge,
    /// One in the middle, the others in rows that begin far away from it, one row in each direction.
    SplitUp {
        /// Number of rows.
        parts: u8,
    },
    /// Anywhere around the middle, as chance has it.
    Random {
        /// Where chance begins.
        seed: u32,
    },
    /// Places from a list.
    Custom,
}

/// Why a formation cannot exist.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum FormationError {
    /// The number of aircraft is zero or more than the bound.
    #[error("a formation has 1 to {AIRCRAFT_MAX} aircraft, found {0}")]
    Count(usize),
    /// The distance is not a positive number of at most 10 km.
    #[error("the distance between aircraft is more than 0 and at most 10000 m, found {0}")]
    Distance(f64),
    /// The name is not one of the layouts.
    #[error(
        "a formation is one of linear, matrix, circular, compact-matrix, compact-mesh, wedge, split-up, \
         split-up:PARTS (2 to {PARTS_MAX}), random, random:SEED, custom"
    )]
    UnknownLayout,
    /// The formation is to be split up into too few or too many.
    #[error("split-up: found {0} parts, expected 2 to {PARTS_MAX}")]
    Parts(u8),
    /// A custom formation without its list.
    #[error("a custom formation needs a list of places, found none")]
    NoPlaces,
    /// More aircraft than the list has places.
    #[error("a custom formation of {places} places for {aircraft} aircraft, expected a place for each")]
    Places {
        /// How many fly.
        aircraft: usize,
        /// How many can.
        places: usize,
    },
    /// Two slots are too near to each other, or over each other.
    #[error(
        "slots {first} and {second} are {found_m:.1} m apart over the ground, expected at least {least_m} m"
    )]
    Near {
        /// The lower one.
        first: usize,
        /// The higher one.
        second: usize,
        /// How far apart they are.
        found_m: f64,
        /// How far apart they should be.
        least_m: f64,
    },
    /// A slot lies too far from the middle.
    #[error("slot {slot}: {problem}")]
    Far {
        /// Which.
        slot: usize,
        /// In which coordinate.
        problem: OffsetError,
    },
    /// The heading is no number.
    #[error("the heading of a formation is a finite angle, found {0}")]
    Heading(f64),
}

impl core::str::FromStr for Layout {
    type Err = FormationError;
    fn from_str(text: &str) -> Result<Self, FormationError> {
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        match (name, number) {
            ("linear", None) => Ok(Self::Linear),
            ("matrix", None) => Ok(Self::Matrix),
            ("circular", None) => Ok(Self::Circular),
            ("compact-matrix", None) => Ok(Self::CompactMatrix),
            ("compact-mesh", None) => Ok(Self::CompactMesh),
            ("wedge", None) => Ok(Self::Wedge),
            ("custom", None) => Ok(Self::Custom),
            ("split-up", None) => Ok(Self::SplitUp { parts: 2 }),
            ("split-up", Some(parts)) => {
                let parts = parts.parse().map_err(|_| FormationError::UnknownLayout)?;
                if (2..=PARTS_MAX).contains(&parts) {
                    Ok(Self::SplitUp { parts })
                } else {
                    Err(FormationError::Parts(parts))
                }
            }
            ("random", None) => Ok(Self::Random { seed: 1 }),
            ("random", Some(seed)) => {
                Ok(Self::Random { seed: seed.parse().map_err(|_| FormationError::UnknownLayout)? })
            }
            _ => Err(FormationError::UnknownLayout),
        }
    }
}

/// As configuration files and flags write it, with its number.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SplitUp { parts } => write!(f, "{}:{parts}", self.name()),
            Self::Random { seed } => write!(f, "{}:{seed}", self.name()),
            _ => f.write_str(self.name()),
        }
    }
}

impl Layout {
    /// One of each, in the order of the lists for people.
    pub const ALL: [Self; 9] = [
        Self::Linear,
        Self::Matrix,
        Self::CompactMatrix,
        Self::CompactMesh,
        Self::Circular,
        Self::Wedge,
        Self::SplitUp { parts: 2 },
        Self::Random { seed: 1 },
        Self::Custom,
    ];
    /// The name that configuration files and flags use, without its number.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Matrix => "matrix",
            Self::CompactMatrix => "compact-matrix",
            Self::CompactMesh => "compact-mesh",
            Self::Circular => "circular",
            Self::Wedge => "wedge",
            Self::SplitUp { .. } => "split-up",
            Self::Random { .. } => "random",
            Self::Custom => "custom",
        }
    }
    /// The slot in the middle of `count`, whose aircraft leads the flight.
    pub fn center_slot(self, count: usize) -> usize {
        match self {
            Self::Linear => count / 2,
            Self::Matrix => row::matrix_center(count),
            _ => 0,
        }
    }
    /// Whether its places cannot be worked out from a number of aircraft and a distance on every aircraft
    /// alike, so that they must be told.
    pub const fn is_listed(self) -> bool {
        matches!(self, Self::Random { .. } | Self::Custom)
    }
}

impl Formation {
    /// A formation of `count` aircraft at least `distance_m` apart.
    ///
    /// # Errors
    /// No aircraft, more than [`AIRCRAFT_MAX`], a distance that is not positive and finite, or a custom
    /// layout, whose places nobody told.
    pub fn new(layout: Layout, count: usize, distance_m: f64) -> Result<Self, FormationError> {
        check(count, distance_m)?;
        let flat = |places: Vec<DVec2, AIRCRAFT_MAX>| -> Slots {
            places.iter().map(|place| (*place * distance_m).extend(0.0)).collect()
        };
        let slots = match layout {
            Layout::Linear => flat((0..count).map(|slot| row::linear(count, slot)).collect()),
            Layout::Matrix => flat((0..count).map(|slot| row::matrix(count, slot)).collect()),
            Layout::Wedge => flat((0..count).map(row::wedge).collect()),
            Layout::Circular => flat((0..count).map(|slot| ring::circular(count, slot)).collect()),
            Layout::CompactMatrix => flat(compact::matrix(count)),
            Layout::CompactMesh => flat(compact::mesh(count)),
            Layout::SplitUp { parts } if !(2..=PARTS_MAX).contains(&parts) => {
                return Err(FormationError::Parts(parts));
            }
            Layout::SplitUp { parts } => {
                (0..count).map(|slot| ring::split_up(parts, slot, distance_m).extend(0.0)).collect()
            }
            Layout::Random { seed } => {
                let offsets = random::offsets(seed, count, distance_m);
                return Self::listed(layout, &offsets, count, distance_m);
            }
            Layout::Custom => return Err(FormationError::NoPlaces),
        };
        Ok(Self { layout, distance_m, slots })
    }
    /// The first `count` places of a list, relative to its first, which leads.
    ///
    /// # Errors
    /// As [`Formation::new`]; more aircraft than places; a place too far away; two places nearer to each
    /// other over the ground than `distance_m`.
    pub fn custom(offsets: &[Offset], count: usize, distance_m: f64) -> Result<Self, FormationError> {
        Self::listed(Layout::Custom, offsets, count, distance_m)
    }
    /// As [`Formation::custom`], for a list that another layout made.
    ///
    /// # Errors
    /// As [`Formation::custom`].
    pub fn listed(
        layout: Layout,
        offsets: &[Offset],
        count: usize,
        distance_m: f64,
    ) -> Result<Self, FormationError> {
        check(count, distance_m)?;
        if offsets.is_empty() {
            return Err(FormationError::NoPlaces);
        }
        if count > offsets.len() {
            return Err(FormationError::Places { aircraft: count, places: offsets.len() });
        }
        let offsets = &offsets[..count];
        for (slot, offset) in offsets.iter().enumerate() {
            offset.check().map_err(|problem| FormationError::Far { slot, problem })?;
        }
        let leader_m = offsets[0].meters();
        let slots: Slots = offsets.iter().map(|o| o.meters() - leader_m).collect();
        for (second, b) in slots.iter().enumerate() {
            for (first, a) in slots[..second].iter().enumerate() {
                let found_m = a.truncate().distance(b.truncate());
                if found_m < distance_m * ROUNDING {
                    return Err(FormationError::Near { first, second, found_m, least_m: distance_m });
                }
            }
        }
        Ok(Self { layout, distance_m, slots })
    }
    /// The shape.
    pub fn layout(&self) -> Layout {
        self.layout
    }
    /// Number of aircraft.
    pub fn count(&self) -> usize {
        self.slots.len()
    }
    /// Least distance between two slots, metres.
    pub fn distance_m(&self) -> f64 {
        self.distance_m
    }
    /// The same shape with its aircraft `distance_m` apart (the landing formation). Heights stay.
    ///
    /// # Errors
    /// The distance is not positive and finite.
    pub fn with_distance_m(&self, distance_m: f64) -> Result<Self, FormationError> {
        if !self.layout.is_listed() {
            return Self::new(self.layout, self.count(), distance_m);
        }
        check(self.count(), distance_m)?;
        let scale = distance_m / self.distance_m;
        let slots = self.slots.iter().map(|s| (s.truncate() * scale).extend(s.z)).collect();
        Ok(Self { layout: self.layout, distance_m, slots })
    }
    /// The slot in the middle, whose aircraft leads the flight.
    pub fn center_slot(&self) -> usize {
        self.layout.center_slot(self.count())
    }
    /// The places as a list, in decimetres: what is told to those who cannot work them out.
    pub fn offsets(&self) -> Offsets {
        self.slots.iter().map(|slot| Offset::nearest_to(*slot)).collect()
    }
    /// Where `slot` lies from the centre slot, metres east (x) and north (y), for a formation whose
    /// heading is `heading_rad` clockwise from north (thesis equation 6.2).
    ///
    /// # Panics
    /// If `slot` is not below [`Formation::count`].
    pub fn offset_m(&self, slot: usize, heading_rad: f64) -> DVec2 {
        let o = self.slots[slot];
        let (sin, cos) = libm::sincos(heading_rad);
        DVec2::new(o.x * cos + o.y * sin, o.y * cos - o.x * sin)
    }
    /// How far above the centre slot `slot` lies, metres: zero but in a custom formation.
    ///
    /// # Panics
    /// If `slot` is not below [`Formation::count`].
    pub fn height_m(&self, slot: usize) -> f64 {
        self.slots[slot].z
    }
    /// Where all slots lie from the centre slot: metres east, north and up.
    ///
    /// # Errors
    /// The heading is not a finite number.
    pub fn offsets_m(&self, heading_rad: f64) -> Result<Vec<DVec3, AIRCRAFT_MAX>, FormationError> {
        if !heading_rad.is_finite() {
            return Err(FormationError::Heading(heading_rad));
        }
        let offset = |slot| self.offset_m(slot, heading_rad).extend(self.height_m(slot));
        Ok((0..self.count()).map(offset).collect())
    }
}

fn check(count: usize, distance_m: f64) -> Result<(), FormationError> {
    if count == 0 || count > AIRCRAFT_MAX {
        return Err(FormationError::Count(count));
    }
    // Written so that NaN is refused too.
    if !(distance_m > 0.0 && distance_m <= DISTANCE_MOST_M) {
        return Err(FormationError::Distance(distance_m));
    }
    Ok(())
}
