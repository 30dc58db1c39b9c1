//! What the file of a formation states: its name, its number in a plan, and where its slots are.

use core::fmt;

use glam::DVec2;
use heapless::Vec;

use super::custom::Offsets;
use crate::AIRCRAFT_MAX;

/// One kind of formation.
pub(super) struct Shape {
    /// The name in configuration files and flags.
    pub(super) name: &'static str,
    /// The number in a plan's datagram ([`Layout::number`](super::Layout::number)). Aircraft of other versions read
    /// it: it never changes and is never used again.
    pub(super) number: u8,
    /// The number that may follow the name after a colon.
    pub(super) parameter: Option<LayoutParameter>,
    /// The slot in the middle of so many aircraft.
    pub(super) center_slot: fn(count: usize) -> usize,
    pub(super) geometry: Geometry,
}

/// The number after the name, as in `split-up:3`.
pub(super) struct LayoutParameter {
    pub(super) name: &'static str,
    pub(super) least: u32,
    pub(super) most: u32,
    /// A plan names the layout by [`Shape::number`] and this together. Otherwise the plan carries the offsets and
    /// the parameter is not transmitted.
    pub(super) is_in_number: bool,
}

/// Where the slots are, x to the right of the heading and y ahead. The centre slot is at zero.
pub(super) enum Geometry {
    /// In distances between slots, for a number of aircraft and a slot below it.
    PerSlot(fn(count: usize, slot: usize) -> DVec2),
    /// As [`Geometry::PerSlot`], all slots together: computed when the formation is made, and kept.
    AllSlots(fn(count: usize) -> Vec<DVec2, AIRCRAFT_MAX>),
    /// In metres, for the layout's parameter, a slot, and the distance in metres.
    InMetres(fn(parameter: u32, slot: usize, distance_m: f64) -> DVec2),
    /// Drawn from a generator with the layout's parameter as its seed. Plans carry the offsets.
    Drawn(fn(seed: u32, count: usize, distance_m: f64) -> Offsets),
    /// From a file. Plans carry the offsets.
    Listed,
}

/// The unit vector at an angle, counter-clockwise from the right.
pub(super) fn direction(angle_rad: f64) -> DVec2 {
    DVec2::new(libm::cos(angle_rad), libm::sin(angle_rad))
}

/// All names, as an error message and a help text list them.
pub(super) struct LayoutNames;

impl fmt::Display for LayoutNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, layout) in super::Layout::ALL.into_iter().enumerate() {
            let Shape { name, parameter, .. } = layout.shape();
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name}")?;
            let Some(parameter) = parameter else { continue };
            write!(f, ", {name}:")?;
            parameter.name.chars().try_for_each(|c| write!(f, "{}", c.to_ascii_uppercase()))?;
            if parameter.most < u32::MAX {
                write!(f, " ({} to {})", parameter.least, parameter.most)?;
            }
        }
        Ok(())
    }
}
