//! A rectangle of rows.

use glam::DVec2;

use super::shape::{Geometry, Shape};

pub(super) const SHAPE: Shape =
    Shape { name: "matrix", number: 1, parameter: None, center_slot, geometry: Geometry::PerSlot(offset) };

/// Columns and full rows. The reference divides the integers: the last row, which may be shorter, does not count.
fn size(count: usize) -> (usize, usize) {
    let columns = libm::ceil(libm::sqrt(count as f64)) as usize;
    (columns, count / columns)
}

fn center_slot(count: usize) -> usize {
    if count == 0 {
        return 0;
    }
    let (columns, rows) = size(count);
    (rows / 2) * columns + (columns - 1) / 2
}

/// Row by row, from left to right and from back to front.
fn offset(count: usize, slot: usize) -> DVec2 {
    let (columns, rows) = size(count);
    let (column, row) = (slot % columns, slot / columns);
    DVec2::new(column as f64 - ((columns - 1) / 2) as f64, row as f64 - (rows / 2) as f64)
}
