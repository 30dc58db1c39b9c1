//! The cells of a square grid that are nearest to its middle.

use glam::DVec2;
use heapless::Vec;

use super::compact::{Cell, Cells, RINGS, nearest};
use super::shape::{Geometry, Shape};
use crate::AIRCRAFT_MAX;

pub(super) const SHAPE: Shape = Shape {
    name: "compact-matrix",
    number: 3,
    parameter: None,
    center_slot: |_| 0,
    geometry: Geometry::AllSlots(offsets),
};

fn offsets(count: usize) -> Vec<DVec2, AIRCRAFT_MAX> {
    let mut cells = Cells::new();
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
            let cell = Cell { distance_squared: x * x + y * y, ring, index: 0, side, at: (x, y) };
            // The capacity is that of the loops.
            let _ = cells.push(cell);
        }
    }
    nearest(cells, count, DVec2::new)
}
