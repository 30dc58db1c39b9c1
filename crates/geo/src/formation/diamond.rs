//! Rhombuses, one around the other.

use glam::DVec2;

use super::shape::{Geometry, Shape};

pub(super) const SHAPE: Shape = Shape {
    name: "diamond",
    number: 8,
    parameter: None,
    center_slot: |_| 0,
    geometry: Geometry::PerSlot(offset),
};

/// Slot 0 in the middle, then ring k with 4·k slots: those cells of a square grid that are k steps away along its
/// directions. Of a ring the corners come first (ahead, right, behind, left), then from each corner the next cell
/// clockwise, so that a ring that is not full is even on all sides.
fn offset(_: usize, slot: usize) -> DVec2 {
    let Some(mut index) = slot.checked_sub(1) else { return DVec2::ZERO };
    let mut ring = 1;
    while index >= 4 * ring {
        index -= 4 * ring;
        ring += 1;
    }
    let along = (index / 4) as f64;
    let back = ring as f64 - along;
    match index % 4 {
        0 => DVec2::new(along, back),
        1 => DVec2::new(back, -along),
        2 => DVec2::new(-along, -back),
        _ => DVec2::new(-back, along),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::collections::BTreeSet;

    use super::*;
    use crate::AIRCRAFT_MAX;

    fn cell(slot: usize) -> (i32, i32) {
        let at = offset(AIRCRAFT_MAX, slot);
        (at.x as i32, at.y as i32)
    }

    #[test]
    fn rings_are_full_rhombuses_of_whole_steps() {
        let mut slot = 1;
        for ring in 1..=7 {
            let cells: BTreeSet<(i32, i32)> = (slot..slot + 4 * ring).map(cell).collect();
            let expected: BTreeSet<(i32, i32)> = (-8..=8_i32)
                .flat_map(|x| (-8..=8_i32).map(move |y| (x, y)))
                .filter(|(x, y)| x.abs() + y.abs() == ring as i32)
                .collect();
            assert_eq!(cells, expected, "ring {ring}");
            slot += 4 * ring;
        }
    }

    #[test]
    fn a_ring_begins_with_its_corners_and_continues_clockwise() {
        let corners: std::vec::Vec<(i32, i32)> = (5..13).map(cell).collect();
        assert_eq!(corners, [(0, 2), (2, 0), (0, -2), (-2, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)]);
    }

    #[test]
    fn a_ring_that_is_even_on_all_sides_is_balanced() {
        for count in [5, 9, 13, 17, 21, 25, 113] {
            let sum: DVec2 = (0..count).map(|slot| offset(count, slot)).sum();
            assert!(sum.length() < 1e-9, "{count}: {sum}");
        }
    }
}
