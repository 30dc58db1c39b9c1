//! A right angle that points ahead.

use glam::DVec2;

use super::shape::{Geometry, Shape};

pub(super) const SHAPE: Shape = Shape {
    name: "wedge",
    number: 5,
    parameter: None,
    center_slot: |_| 0,
    geometry: Geometry::PerSlot(offset),
};

/// Slot 0 at the tip, odd slots on the left, even slots on the right.
fn offset(_: usize, slot: usize) -> DVec2 {
    let back = slot.div_ceil(2) as f64 * core::f64::consts::FRAC_1_SQRT_2;
    DVec2::new(if slot % 2 == 1 { -back } else { back }, -back)
}
