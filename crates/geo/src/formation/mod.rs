//! Flight formations: where slot k is, relative to the centre slot (thesis section 4.1.6.1).
//!
//! A formation is a file here, which states its [`Shape`], and one line of `layouts!` below: names,
//! numbers in a plan, messages and help texts follow from them.
//!
//! A slot's offset has x to the right of the heading, y ahead and z up; [`Formation::offset_m`] turns it
//! into east and north with the rotation of thesis equation 6.2. Slots are numbered as the reference
//! implementation numbers them; [`Formation::center_slot`] is the one that flies the mission as planned,
//! and its offset is zero.
//!
//! Over the ground no two slots are nearer to each other than the distance that was asked for, whatever
//! their heights: an aircraft below another flies in its downwash, and all land straight down.
//! The same numbers give the same slots on every machine.

#[macro_use]
mod layout;

mod circular;
mod compact;
mod compact_matrix;
mod compact_mesh;
mod custom;
mod diamond;
mod linear;
mod matrix;
mod random;
mod shape;
mod split_up;
#[cfg(test)]
mod tests;
mod wedge;

pub use custom::{FileError, FoundText, Offset, OffsetError, Offsets, read_offsets};

use glam::{DVec2, DVec3};
use heapless::Vec;
use shape::{Geometry, Shape};

use crate::AIRCRAFT_MAX;

layouts! {
    Linear => linear, "one row across the heading";
    Matrix => matrix, "a square grid, row by row from left to right and from back to front";
    Circular => circular, "one in the middle, the others on a circle around it";
    CompactMatrix => compact_matrix, "the cells of a square grid nearest to its middle";
    CompactMesh => compact_mesh, "the cells of a grid of equilateral triangles nearest to its middle";
    Wedge => wedge, "a right angle that points ahead: one at the tip, the others in turn on its left and its right";
    Random { seed: u32 = 1 } => random, "anywhere around the middle, drawn from a seed";
    Custom => custom, "the slots of a file";
    Diamond => diamond, "rhombuses around the middle, one around the other";
    SplitUp { parts: u8 = 2 } => split_up, "one in the middle, the others in rows that begin 600 m away from it";
}

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
    count: usize,
    distance_m: f64,
    /// Empty where a slot's offset is quickly computed alone.
    slots: Slots,
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
    #[error("a formation is one of {}", Layout::names())]
    UnknownLayout,
    /// The number after the name is outside its limits.
    #[error("{layout}: found {found} {name}, expected {least} to {most}")]
    Parameter {
        /// The name of the layout.
        layout: &'static str,
        /// The name of the parameter.
        name: &'static str,
        /// The number that was given.
        found: u32,
        /// The lowest that the layout takes.
        least: u32,
        /// The highest that the layout takes.
        most: u32,
    },
    /// A custom formation without its list.
    #[error("a custom formation needs a list of slots, found none")]
    NoSlots,
    /// More aircraft than the list has slots.
    #[error("a custom formation of {slots} slots for {aircraft} aircraft, expected a slot for each")]
    TooFewSlots {
        /// Number of aircraft that are to fly.
        aircraft: usize,
        /// Number of slots of the formation.
        slots: usize,
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
        /// Their distance.
        found_m: f64,
        /// How far apart they should be.
        least_m: f64,
    },
    /// A slot is too far from the middle.
    #[error("slot {slot}: {problem}")]
    Far {
        /// The first such slot.
        slot: usize,
        /// In which coordinate.
        problem: OffsetError,
    },
    /// The heading is no number.
    #[error("the heading of a formation is a finite angle, found {0}")]
    Heading(f64),
}

impl Formation {
    /// A formation of `count` aircraft at least `distance_m` apart.
    ///
    /// # Errors
    /// No aircraft, more than [`AIRCRAFT_MAX`], a distance that is not positive and finite, a parameter outside
    /// its limits, or [`Layout::Custom`], which needs [`Formation::custom`].
    pub fn new(layout: Layout, count: usize, distance_m: f64) -> Result<Self, FormationError> {
        check(count, distance_m)?;
        layout.check()?;
        let slots = match layout.shape().geometry {
            Geometry::PerSlot(_) | Geometry::InMetres(_) => Slots::new(),
            Geometry::AllSlots(offsets) => {
                offsets(count).iter().map(|offset| (*offset * distance_m).extend(0.0)).collect()
            }
            Geometry::Drawn(offsets) => {
                let offsets = offsets(layout.parameter(), count, distance_m);
                return Self::listed(layout, &offsets, count, distance_m);
            }
            Geometry::Listed => return Err(FormationError::NoSlots),
        };
        Ok(Self { layout, count, distance_m, slots })
    }
    /// The first `count` slots of a list, relative to its first, which leads.
    ///
    /// # Errors
    /// As [`Formation::new`]; more aircraft than slots; a slot too far away; two slots nearer to each
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
            return Err(FormationError::NoSlots);
        }
        if count > offsets.len() {
            return Err(FormationError::TooFewSlots { aircraft: count, slots: offsets.len() });
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
        Ok(Self { layout, count, distance_m, slots })
    }
    /// Where a slot is before the formation is rotated to its heading.
    fn unrotated_m(&self, slot: usize) -> DVec3 {
        assert!(slot < self.count, "slot {slot} of {}", self.count);
        match self.layout.shape().geometry {
            Geometry::PerSlot(offset) => (offset(self.count, slot) * self.distance_m).extend(0.0),
            Geometry::InMetres(offset_m) => {
                offset_m(self.layout.parameter(), slot, self.distance_m).extend(0.0)
            }
            Geometry::AllSlots(_) | Geometry::Drawn(_) | Geometry::Listed => self.slots[slot],
        }
    }
    /// The shape.
    pub fn layout(&self) -> Layout {
        self.layout
    }
    /// Number of aircraft.
    pub fn count(&self) -> usize {
        self.count
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
        Ok(Self { distance_m, slots, ..*self })
    }
    /// The slot in the middle, whose aircraft leads the flight.
    pub fn center_slot(&self) -> usize {
        self.layout.center_slot(self.count())
    }
    /// All offsets in decimetres, for a plan that carries them.
    pub fn offsets(&self) -> Offsets {
        (0..self.count).map(|slot| Offset::nearest_to(self.unrotated_m(slot))).collect()
    }
    /// Where `slot` is, seen from the centre slot, metres east (x) and north (y), for a formation whose
    /// heading is `heading_rad` clockwise from north (thesis equation 6.2).
    ///
    /// # Panics
    /// If `slot` is not below [`Formation::count`].
    pub fn offset_m(&self, slot: usize, heading_rad: f64) -> DVec2 {
        let o = self.unrotated_m(slot);
        let (sin, cos) = libm::sincos(heading_rad);
        DVec2::new(o.x * cos + o.y * sin, o.y * cos - o.x * sin)
    }
    /// Height of `slot` above the centre slot, metres: zero except in a custom formation.
    ///
    /// # Panics
    /// If `slot` is not below [`Formation::count`].
    pub fn height_m(&self, slot: usize) -> f64 {
        self.unrotated_m(slot).z
    }
    /// Where all slots are, seen from the centre slot: metres east, north and up.
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
