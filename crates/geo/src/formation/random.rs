//! Anywhere around the middle, one after another, as the reference does it: farther away the more there are.

use core::f64::consts::TAU;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::custom::{Offset, Offsets};

/// So much farther than the farthest so far may the next one lie, in distances (reference).
const GROWTH: f64 = 0.3;
/// After so many places that were too near to another the circle grows by the same again, so that there is
/// always an end: beyond one distance from the farthest every place is free.
const TRIES: u32 = 64;

/// `count` places, whole decimetres, at least `distance_m` apart.
pub(super) fn offsets(seed: u32, count: usize, distance_m: f64) -> Offsets {
    let mut luck = Pcg64Mcg::seed_from_u64(seed.into());
    // 53 random bits: from 0 to just below 1.
    let mut uniform = move || (luck.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    // A decimetre at least: nearer than that whole decimetres cannot lie without being the same.
    let least_dm = (distance_m * 10.0).max(1.0);
    let mut places = Offsets::new();
    let _ = places.push(Offset::default());
    let mut farthest_dm = least_dm;
    while places.len() < count {
        let mut reach_dm = farthest_dm + GROWTH * least_dm;
        let mut tries = 0;
        let place = loop {
            let (sin, cos) = libm::sincos(uniform() * TAU);
            let radius_dm = uniform() * reach_dm;
            let whole = |x: f64| libm::round(x) as i32;
            let place =
                Offset { right_dm: whole(radius_dm * cos), ahead_dm: whole(radius_dm * sin), up_dm: 0 };
            if places.iter().all(|other| apart_dm(*other, place) >= least_dm) {
                break place;
            }
            tries += 1;
            if tries % TRIES == 0 {
                reach_dm += GROWTH * least_dm;
            }
        };
        farthest_dm = farthest_dm.max(apart_dm(Offset::default(), place));
        if places.push(place).is_err() {
            break;
        }
    }
    places
}

fn apart_dm(a: Offset, b: Offset) -> f64 {
    let (x, y) =
        (f64::from(a.right_dm) - f64::from(b.right_dm), f64::from(a.ahead_dm) - f64::from(b.ahead_dm));
    libm::sqrt(x * x + y * y)
}
