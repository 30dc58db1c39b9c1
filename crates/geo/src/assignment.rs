//! Who flies which slot: the assignment with the least sum of squared distances.
//!
//! With that cost, straight paths flown at the same time do not cross in the plane: swapping two that
//! cross would make the sum smaller. The method is Kuhn and Munkres' with potentials, O(n³); the
//! library that offers it (`pathfinding`) needs std, and this runs on board in a pure crate.

use glam::DVec2;
use heapless::Vec;

use crate::AIRCRAFT_MAX;

/// For each place on the ground, the slot in the air: the permutation with the least sum of squared
/// distances. Ties resolve the same way on every machine (costs are whole square centimetres).
///
/// # Panics
/// If the two lists differ in length or hold more than [`AIRCRAFT_MAX`] points.
pub fn assign(ground: &[DVec2], slots: &[DVec2]) -> Vec<usize, AIRCRAFT_MAX> {
    let n = ground.len();
    assert!(n == slots.len() && n <= AIRCRAFT_MAX, "{n} aircraft, {} slots", slots.len());
    let cost = |i: usize, j: usize| (ground[i].distance_squared(slots[j]) * 1e4) as i64;
    // Row and column potentials, with index 0 as the free column of the augmenting search.
    const N: usize = AIRCRAFT_MAX + 1;
    let (mut u, mut v) = ([0i64; N], [0i64; N]);
    let mut row_of = [0usize; N];
    for row in 1..=n {
        let (mut least, mut used, mut way) = ([i64::MAX; N], [false; N], [0usize; N]);
        row_of[0] = row;
        let mut column = 0;
        while row_of[column] != 0 {
            used[column] = true;
            let (current, mut delta, mut next) = (row_of[column], i64::MAX, 0);
            for j in 1..=n {
                if used[j] {
                    continue;
                }
                let reduced = cost(current - 1, j - 1) - u[current] - v[j];
                if reduced < least[j] {
                    least[j] = reduced;
                    way[j] = column;
                }
                if least[j] < delta {
                    delta = least[j];
                    next = j;
                }
            }
            for j in 0..=n {
                if used[j] {
                    u[row_of[j]] += delta;
                    v[j] -= delta;
                } else {
                    least[j] = least[j].saturating_sub(delta);
                }
            }
            column = next;
        }
        while column != 0 {
            row_of[column] = row_of[way[column]];
            column = way[column];
        }
    }
    let mut slot_of = Vec::new();
    slot_of.resize(n, 0).expect("n is checked above");
    for (j, &row) in row_of.iter().enumerate().take(n + 1).skip(1) {
        slot_of[row - 1] = j - 1;
    }
    slot_of
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    fn best_by_trying_all(ground: &[DVec2], slots: &[DVec2]) -> i64 {
        fn go(i: usize, used: &mut [bool], ground: &[DVec2], slots: &[DVec2]) -> i64 {
            if i == ground.len() {
                return 0;
            }
            let mut best = i64::MAX;
            for j in 0..slots.len() {
                if !used[j] {
                    used[j] = true;
                    let rest = go(i + 1, used, ground, slots);
                    best = best.min(rest + (ground[i].distance_squared(slots[j]) * 1e4) as i64);
                    used[j] = false;
                }
            }
            best
        }
        go(0, &mut std::vec![false; slots.len()], ground, slots)
    }

    proptest! {
        #[test]
        fn as_cheap_as_the_best_permutation(points in prop::collection::vec((-200.0..200.0f64, -200.0..200.0f64), 2..12)) {
            let half = points.len() / 2;
            let at = |p: &(f64, f64)| DVec2::new(p.0, p.1);
            let ground: std::vec::Vec<_> = points[..half].iter().map(at).collect();
            let slots: std::vec::Vec<_> = points[half..2 * half].iter().map(at).collect();
            let chosen = assign(&ground, &slots);
            let mut seen = std::collections::BTreeSet::new();
            let total: i64 = chosen.iter().enumerate().map(|(i, &j)| {
                seen.insert(j);
                (ground[i].distance_squared(slots[j]) * 1e4) as i64
            }).sum();
            prop_assert_eq!(seen.len(), half);
            prop_assert_eq!(total, best_by_trying_all(&ground, &slots));
        }
    }
}
