//! The cells of a grid of equilateral triangles that are nearest to its middle. Its rows lie across the heading.

use glam::DVec2;
use heapless::Vec;

use super::compact::{Cell, Cells, RINGS, nearest};
use super::shape::{Geometry, Shape};
use crate::AIRCRAFT_MAX;

pub(super) const SHAPE: Shape = Shape {
    name: "compact-mesh",
    number: 4,
    parameter: None,
    center_slot: |_| 0,
    geometry: Geometry::AllSlots(offsets),
};

fn offsets(count: usize) -> Vec<DVec2, AIRCRAFT_MAX> {
    let mut cells = Cells::new();
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
            // The capacity is that of the loops.
            let _ = cells.push(Cell { distance_squared, ring, index: 0, side, at: (column, row) });
        }
    }
    let row_step = libm::sqrt(0.75);
    nearest(cells, count, |column, row| DVec2::new(column + row * 0.5, row * row_step))
}
