//! Around a middle: a circle, and rows that lead away from it.

use core::f64::consts::{PI, TAU};

use glam::DVec2;

/// The most parts into which a swarm is split up.
pub const PARTS_MAX: u8 = 8;

/// Where the rows of a swarm that splits up begin, from the middle (reference), metres.
const SPLIT_UP_M: f64 = 600.0;

/// Slot 0 in the middle, the others on a circle, from the right counter-clockwise; in units of the distance.
pub(super) fn circular(count: usize, slot: usize) -> DVec2 {
    if slot == 0 {
        return DVec2::ZERO;
    }
    let others = (count - 1) as f64;
    // Up to six neighbours fit at the distance itself; more need a wider circle.
    let radius = if count <= 7 { 1.0 } else { 1.0 / (2.0 * libm::sin(PI / others)) };
    direction((slot - 1) as f64 * TAU / others) * radius
}

/// Slot 0 in the middle, the others by turns in `parts` rows that lead away from it; metres. The reference
/// leaves out who does not fit into rows of equal length; here everybody has a place.
pub(super) fn split_up(parts: u8, slot: usize, distance_m: f64) -> DVec2 {
    let Some(other) = slot.checked_sub(1) else { return DVec2::ZERO };
    let count = usize::from(parts);
    let (part, place) = (other % count, other / count);
    // Far enough from the middle, and from the beginning of the next row.
    let apart_m = distance_m / (2.0 * libm::sin(PI / f64::from(parts)));
    let first_m = SPLIT_UP_M.max(distance_m).max(apart_m);
    direction(part as f64 * TAU / f64::from(parts)) * (first_m + place as f64 * distance_m)
}

fn direction(angle_rad: f64) -> DVec2 {
    DVec2::new(libm::cos(angle_rad), libm::sin(angle_rad))
}
