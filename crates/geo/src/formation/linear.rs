//! One row across the heading.

use glam::DVec2;

use super::shape::{Geometry, Shape};

pub(super) const SHAPE: Shape = Shape {
    name: "linear",
    number: 0,
    parameter: None,
    center_slot: |count| count / 2,
    geometry: Geometry::PerSlot(offset),
};

/// From left to right, the middle slot at zero.
fn offset(count: usize, slot: usize) -> DVec2 {
    DVec2::new(slot as f64 - (count / 2) as f64, 0.0)
}
