//! Anywhere around the middle, one slot after another as in the reference: the more slots, the farther away.

use core::f64::consts::TAU;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::custom::{Offset, Offsets};
use super::shape::{Geometry, LayoutParameter, Shape};

pub(super) const SHAPE: Shape = Shape {
    name: "random",
    number: 6,
    parameter: Some(LayoutParameter { name: "seed", least: 0, most: u32::MAX, is_in_number: false }),
    center_slot: |_| 0,
    geometry: Geometry::Drawn(offsets),
};

/// How much farther than the farthest slot so far the next may be, in distances (reference).
const GROWTH: f64 = 0.3;
/// After so many draws that were too near to another slot the circle grows by the same again. The search ends, because
/// beyond one distance from the farthest slot every position is free.
const TRIES: u32 = 64;

/// `count` offsets in whole decimetres, at least `distance_m` apart.
fn offsets(seed: u32, count: usize, distance_m: f64) -> Offsets {
    let mut rng = Pcg64Mcg::seed_from_u64(seed.into());
    // 53 random bits: from 0 to just below 1.
    let mut uniform = move || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    // At least a decimetre: whole decimetres that are nearer are equal.
    let least_dm = (distance_m * 10.0).max(1.0);
    let mut offsets = Offsets::new();
    let _ = offsets.push(Offset::default());
    let mut farthest_dm = least_dm;
    while offsets.len() < count {
        let mut reach_dm = farthest_dm + GROWTH * least_dm;
        let mut tries = 0;
        let offset = loop {
            let (sin, cos) = libm::sincos(uniform() * TAU);
            let radius_dm = uniform() * reach_dm;
            let whole = |x: f64| libm::round(x) as i32;
            let offset =
                Offset { right_dm: whole(radius_dm * cos), ahead_dm: whole(radius_dm * sin), up_dm: 0 };
            if offsets.iter().all(|other| apart_dm(*other, offset) >= least_dm) {
                break offset;
            }
            tries += 1;
            if tries % TRIES == 0 {
                reach_dm += GROWTH * least_dm;
            }
        };
        farthest_dm = farthest_dm.max(apart_dm(Offset::default(), offset));
        if offsets.push(offset).is_err() {
            break;
        }
    }
    offsets
}

fn apart_dm(a: Offset, b: Offset) -> f64 {
    let (x, y) =
        (f64::from(a.right_dm) - f64::from(b.right_dm), f64::from(a.ahead_dm) - f64::from(b.ahead_dm));
    libm::sqrt(x * x + y * y)
}
