//! One aircraft in the middle and rows that begin far away from it.

use core::f64::consts::{PI, TAU};

use glam::DVec2;

use super::shape::{Geometry, LayoutParameter, Shape, direction};

pub(super) const SHAPE: Shape = Shape {
    name: "split-up",
    // A plan names `16 + parts`.
    number: 16,
    parameter: Some(LayoutParameter { name: "parts", least: 2, most: 8, is_in_number: true }),
    center_slot: |_| 0,
    geometry: Geometry::InMetres(offset_m),
};

/// Distance from the middle to the first slot of each row (reference), metres.
const FIRST_SLOT_M: f64 = 600.0;

/// Slot 0 in the middle, the others dealt in turn to `parts` rows. The reference leaves out the aircraft that do not
/// fit into rows of equal length; here every aircraft has a slot.
fn offset_m(parts: u32, slot: usize, distance_m: f64) -> DVec2 {
    let Some(other) = slot.checked_sub(1) else { return DVec2::ZERO };
    let rows = parts as usize;
    let (row, column) = (other % rows, other / rows);
    // Far enough from the middle, and from the first slot of the next row.
    let apart_m = distance_m / (2.0 * libm::sin(PI / f64::from(parts)));
    let first_m = FIRST_SLOT_M.max(distance_m).max(apart_m);
    direction(row as f64 * TAU / f64::from(parts)) * (first_m + column as f64 * distance_m)
}
