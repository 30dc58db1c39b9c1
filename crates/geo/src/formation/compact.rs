//! The places of a grid that are nearest to its middle: the mean distance to the centre is the least that
//! the grid allows (thesis section 4.1.6.1). In units of the distance between slots.
//!
//! As in the reference, places are taken in the order of their distance from the middle, among equals of
//! their ring, and within a ring from side to side by turns.

use glam::DVec2;
use heapless::Vec;

use crate::AIRCRAFT_MAX;

/// Rings that are looked at: all that may hold one of the nearest 128 places. The square grid has so many in
/// six rings, the grid of triangles in seven; the corners of these (8.5 and 7 away) are nearer than any place
/// of the ninth (9 and 7.8).
const RINGS: i32 = 8;
/// Places in so many rings of the square grid.
const CELLS: usize = ((2 * RINGS + 1) * (2 * RINGS + 1)) as usize;

/// A place of a grid; compared in the order in which places are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    distance_squared: i32,
    ring: i32,
    /// How many of the same distance, ring and side are taken before.
    turn: i32,
    side: i32,
    /// Along the grid's two directions.
    at: (i32, i32),
}

/// Sorts the places; within a ring and a distance the sides take turns.
fn nearest(mut cells: Vec<Cell, CELLS>, count: usize) -> impl Iterator<Item = (i32, i32)> {
    cells.sort_unstable_by_key(|c| (c.distance_squared, c.ring, c.side, c.at));
    for i in 1..cells.len() {
        let (before, cell) = (cells[i - 1], cells[i]);
        if (before.distance_squared, before.ring, before.side)
            == (cell.distance_squared, cell.ring, cell.side)
        {
            cells[i].turn = before.turn + 1;
        }
    }
    cells.sort_unstable();
    cells.into_iter().take(count).map(|c| c.at)
}

/// Places of a square grid.
pub(super) fn matrix(count: usize) -> Vec<DVec2, AIRCRAFT_MAX> {
    let mut cells = Vec::new();
    for y in -RINGS..=RINGS {
        for x in -RINGS..=RINGS {
            let ring = x.abs().max(y.abs());
            // The reference's numbers: left with the corner ahead, right, the corner ahead on the right, ahead
            // with the corner behind on the left, behind with the corner on the right.
            let side = match () {
                () if x == -ring && y != -ring => 1,
                () if x == ring && y.abs() != ring => 2,
                () if x == ring && y == ring => 3,
                () if y == ring || (x, y) == (-ring, -ring) => 5,
                () => 6,
            };
            let cell = Cell { distance_squared: x * x + y * y, ring, turn: 0, side, at: (x, y) };
            // The room is that of the loops.
            let _ = cells.push(cell);
        }
    }
    nearest(cells, count).map(|(x, y)| DVec2::new(f64::from(x), f64::from(y))).collect()
}

/// Places of a grid of equilateral triangles, whose rows lie across the heading.
pub(super) fn mesh(count: usize) -> Vec<DVec2, AIRCRAFT_MAX> {
    let mut cells = Vec::new();
    for row in -RINGS..=RINGS {
        for column in -RINGS..=RINGS {
            // Steps along the row are (1, 0), from row to row (1/2, sin 60°); so this is the hexagon's ring.
            let ring = column.abs().max(row.abs()).max((column + row).abs());
            if ring > RINGS {
                continue;
            }
            // The reference's numbers, clockwise from the left: up on the left, ahead, up on the right, down
            // on the right, behind, down on the left; each side with the corner where it begins.
            let side = match () {
                () if column == -ring && row < ring => 1,
                () if row == ring && column < 0 => 5,
                () if column + row == ring && row > 0 => 2,
                () if column == ring && row > -ring => 4,
                () if row == -ring && column > 0 => 6,
                () => 3,
            };
            let distance_squared = column * column + column * row + row * row;
            let _ = cells.push(Cell { distance_squared, ring, turn: 0, side, at: (column, row) });
        }
    }
    let row_step = libm::sqrt(0.75);
    nearest(cells, count)
        .map(|(column, row)| DVec2::new(f64::from(column) + f64::from(row) * 0.5, f64::from(row) * row_step))
        .collect()
}
