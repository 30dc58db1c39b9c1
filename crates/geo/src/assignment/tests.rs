extern crate std;

use std::vec::Vec as StdVec;

use pathfinding::kuhn_munkres::kuhn_munkres_min;
use pathfinding::matrix::Matrix;
use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};
use proptest::strategy::Strategy as Generator;

use super::*;
use crate::approach::nearest_between;

/// As many positions on the ground as slots in the air.
fn positions(most: usize) -> impl Generator<Value = (StdVec<DVec2>, StdVec<DVec2>)> {
    prop::collection::vec((-200.0..200.0f64, -200.0..200.0f64), 2..2 * most).prop_map(|points| {
        let half = points.len() / 2;
        let at = |p: &(f64, f64)| DVec2::new(p.0, p.1);
        (points[..half].iter().map(at).collect(), points[half..2 * half].iter().map(at).collect())
    })
}

fn total_mm2(ground: &[DVec2], slots: &[DVec2], slot_of: &[usize]) -> i64 {
    slot_of.iter().enumerate().map(|(i, &slot)| cost_mm2(ground[i], slots[slot])).sum()
}

fn is_permutation(of: &[usize]) -> bool {
    let mut sorted = of.to_vec();
    sorted.sort_unstable();
    sorted.into_iter().eq(0..of.len())
}

const ALL: [Strategy; 4] =
    [Strategy::Optimal, Strategy::KuhnMunkres, Strategy::Simplified, Strategy::Random { seed: 7 }];

proptest! {
    #[test]
    fn as_cheap_as_the_library_finds_it((ground, slots) in positions(AIRCRAFT_MAX)) {
        let slot_of = assign(&ground, &slots);
        prop_assert!(is_permutation(&slot_of));
        let costs = Matrix::from_fn(ground.len(), slots.len(), |(i, j)| cost_mm2(ground[i], slots[j]));
        prop_assert_eq!(total_mm2(&ground, &slots, &slot_of), kuhn_munkres_min(&costs).0);
    }

    #[test]
    fn as_cheap_as_the_best_permutation((ground, slots) in positions(7)) {
        let [optimal, polynomial, simplified, random] =
            ALL.map(|strategy| strategy.assign(&ground, &slots).unwrap());
        let cost = |a: &Assignment| total_mm2(&ground, &slots, &a.slot_of);
        prop_assert_eq!(cost(&optimal), cost(&polynomial));
        prop_assert!(cost(&simplified) >= cost(&optimal) && cost(&random) >= cost(&optimal));
    }

    #[test]
    fn every_strategy_gives_each_a_slot_and_a_take_off_order((ground, slots) in positions(PERMUTED_MAX)) {
        for strategy in ALL {
            let a = strategy.assign(&ground, &slots).unwrap();
            prop_assert!(is_permutation(&a.slot_of) && is_permutation(&a.order), "{strategy}");
            prop_assert_eq!(&a, &strategy.assign(&ground, &slots).unwrap());
        }
        let a = Strategy::KuhnMunkres.assign(&ground, &slots).unwrap();
        let cost = |&i: &usize| cost_mm2(ground[i], slots[a.slot_of[i]]);
        prop_assert!(a.order.windows(2).all(|pair| cost(&pair[0]) >= cost(&pair[1])), "the longest path first");
    }

    /// The reason for the squares: aircraft on straight paths of equal duration keep their distance.
    #[test]
    fn paths_of_the_least_cost_keep_their_distance((ground, slots) in positions(20)) {
        let slot_of = assign(&ground, &slots);
        for (i, &a) in slot_of.iter().enumerate() {
            for (j, &b) in slot_of.iter().enumerate().take(i) {
                let (before, after) = (ground[i] - ground[j], slots[a] - slots[b]);
                // Positions are rounded to millimetres: a swap may still gain so much.
                prop_assert!(before.dot(after) > -1.0);
                let nearest = nearest_between(before.extend(0.0), after.extend(0.0)).length();
                let least = before.length().min(after.length()) / core::f64::consts::SQRT_2;
                prop_assert!(nearest >= least - 0.1, "{nearest} {least}");
            }
        }
    }
}

#[test]
fn five_hundred_are_as_cheap_as_the_library_finds_them() {
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut uniform = || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * 1_000.0;
    let ground: StdVec<DVec2> = (0..500).map(|_| DVec2::new(uniform(), uniform())).collect();
    let slots: StdVec<DVec2> = (0..500).map(|_| DVec2::new(uniform(), uniform())).collect();
    let slot_of = kuhn_munkres::<500>(500, |i, j| cost_mm2(ground[i], slots[j]));
    let costs = Matrix::from_fn(500, 500, |(i, j)| cost_mm2(ground[i], slots[j]));
    assert!(is_permutation(&slot_of[..500]));
    assert_eq!(total_mm2(&ground, &slots, &slot_of[..500]), kuhn_munkres_min(&costs).0);
}

#[test]
fn numbers_without_an_assignment_are_refused() {
    let many = [DVec2::ZERO; AIRCRAFT_MAX + 1];
    for strategy in ALL {
        assert!(matches!(strategy.assign(&many[..2], &many[..3]), Err(AssignmentError::Numbers { .. })));
        assert!(matches!(strategy.assign(&many, &many), Err(AssignmentError::Numbers { .. })));
        assert!(strategy.assign(&[], &[]).unwrap().order.is_empty());
    }
    let eleven = &many[..PERMUTED_MAX + 1];
    assert_eq!(
        Strategy::Optimal.assign(eleven, eleven),
        Err(AssignmentError::Permutations(PERMUTED_MAX + 1))
    );
}

/// From the reference's description: outermost first, each takes the nearest aircraft that is free.
#[test]
fn the_simplified_strategy_serves_the_outermost_slot_first() {
    let at = |x: f64| DVec2::new(x, 0.0);
    let ground = [at(0.0), at(10.0), at(20.0)];
    let slots = [at(-40.0), at(10.0), at(61.0)];
    let a = Strategy::Simplified.assign(&ground, &slots).unwrap();
    assert_eq!((a.slot_of.as_slice(), a.order.as_slice()), (&[0, 1, 2][..], &[2, 0, 1][..]));
}
