//! Straight rows: one abreast, a rectangle of them, and a V. In units of the distance between slots.

use glam::DVec2;

/// Abreast, from left to right, the middle one at zero.
pub(super) fn linear(count: usize, slot: usize) -> DVec2 {
    DVec2::new(slot as f64 - (count / 2) as f64, 0.0)
}

/// Columns and rows of full width of the matrix. The reference divides the integers: the last row, which
/// may be shorter, does not count.
fn matrix_size(count: usize) -> (usize, usize) {
    let columns = libm::ceil(libm::sqrt(count as f64)) as usize;
    (columns, count / columns)
}

/// The slot in the middle of the matrix.
pub(super) fn matrix_center(count: usize) -> usize {
    if count == 0 {
        return 0;
    }
    let (columns, rows) = matrix_size(count);
    (rows / 2) * columns + (columns - 1) / 2
}

/// Row by row, from left to right and from back to front.
pub(super) fn matrix(count: usize, slot: usize) -> DVec2 {
    let (columns, rows) = matrix_size(count);
    let (column, row) = (slot % columns, slot / columns);
    DVec2::new(column as f64 - ((columns - 1) / 2) as f64, row as f64 - (rows / 2) as f64)
}

/// A right angle that points ahead: slot 0 at its tip, odd slots on the left, even ones on the right.
pub(super) fn wedge(slot: usize) -> DVec2 {
    let back = slot.div_ceil(2) as f64 * core::f64::consts::FRAC_1_SQRT_2;
    DVec2::new(if slot % 2 == 1 { -back } else { back }, -back)
}
