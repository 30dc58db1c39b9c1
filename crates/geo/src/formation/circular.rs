//! One aircraft in the middle of a circle.

use core::f64::consts::{PI, TAU};

use glam::DVec2;

use super::shape::{Geometry, Shape, direction};

pub(super) const SHAPE: Shape = Shape {
    name: "circular",
    number: 2,
    parameter: None,
    center_slot: |_| 0,
    geometry: Geometry::PerSlot(offset),
};

/// Slot 0 in the middle, the others on the circle, counter-clockwise from the right.
fn offset(count: usize, slot: usize) -> DVec2 {
    if slot == 0 {
        return DVec2::ZERO;
    }
    let others = (count - 1) as f64;
    // Up to six neighbours fit at the distance itself; more need a wider circle.
    let radius = if count <= 7 { 1.0 } else { 1.0 / (2.0 * libm::sin(PI / others)) };
    direction((slot - 1) as f64 * TAU / others) * radius
}
