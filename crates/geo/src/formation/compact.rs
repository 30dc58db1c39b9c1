//! The cells of a grid that are nearest to its middle: the mean distance to the centre is the least that the grid
//! allows (thesis section 4.1.6.1). In distances between slots.
//!
//! As in the reference, cells are taken by their distance from the middle, among equal distances by their ring, and
//! within a ring from each side in turn.

use glam::DVec2;
use heapless::Vec;

use crate::AIRCRAFT_MAX;

/// Rings that are searched: all that may hold one of the nearest 128 cells. The square grid has so many in six rings,
/// the grid of triangles in seven; the corners of these (8.5 and 7 away) are nearer than any cell of the ninth (9 and
/// 7.8).
pub(super) const RINGS: i32 = 8;
/// Cells in so many rings of the square grid.
const CELLS_MAX: usize = ((2 * RINGS + 1) * (2 * RINGS + 1)) as usize;

/// The cells of a grid, at most those of [`RINGS`] rings.
pub(super) type Cells = Vec<Cell, CELLS_MAX>;

/// A cell of a grid; compared in the order in which cells are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    pub(super) distance_squared: i32,
    pub(super) ring: i32,
    /// How many cells of the same distance, ring and side are taken before.
    pub(super) index: i32,
    pub(super) side: i32,
    /// Along the grid's two directions.
    pub(super) at: (i32, i32),
}

/// The nearest `count` cells.
pub(super) fn nearest(
    mut cells: Cells,
    count: usize,
    to_plane: impl Fn(f64, f64) -> DVec2,
) -> Vec<DVec2, AIRCRAFT_MAX> {
    cells.sort_unstable_by_key(|c| (c.distance_squared, c.ring, c.side, c.at));
    for i in 1..cells.len() {
        let (before, cell) = (cells[i - 1], cells[i]);
        if (before.distance_squared, before.ring, before.side)
            == (cell.distance_squared, cell.ring, cell.side)
        {
            cells[i].index = before.index + 1;
        }
    }
    cells.sort_unstable();
    cells.into_iter().take(count).map(|c| to_plane(f64::from(c.at.0), f64::from(c.at.1))).collect()
}
