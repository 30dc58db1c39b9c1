//! Which aircraft flies which slot, and which takes off first.
//!
//! The cost of an assignment is the sum of the squared distances over the ground. Where it is least, no two
//! aircraft would gain from a swap, and so straight paths that are flown at the same time, each at its own
//! steady speed so that all take equally long, never come nearer to each other than the lesser of the
//! distances on the ground and in the air, divided by the root of two (thesis reference: take-off
//! algorithms; M. Turpin, N. Michael, V. Kumar, "CAPT", 2014).
//!
//! The library that offers Kuhn and Munkres' method (`pathfinding`) needs std, and this runs on board in a
//! pure crate: see `docs/decisions/0004-assignment.md`. The tests compare the two.

mod kuhn_munkres;
#[cfg(test)]
mod tests;

use core::fmt;

use glam::DVec2;
use heapless::Vec;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::AIRCRAFT_MAX;

pub use kuhn_munkres::kuhn_munkres;

/// More aircraft have more permutations (3.6 million) than a user waits for.
pub const PERMUTED_MAX: usize = 10;

/// How slots are assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Every permutation is tried; for [`PERMUTED_MAX`] aircraft at most.
    Optimal,
    /// The same cost, in polynomial time.
    KuhnMunkres,
    /// The slot farthest from the middle of the aircraft takes the aircraft nearest to it, then the next.
    Simplified,
    /// A random permutation, for comparison with the others.
    Random {
        /// Seed of the generator.
        seed: u64,
    },
}

/// Why a strategy gives no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignmentError {
    /// As many slots as aircraft, and no more than the bound.
    #[error(
        "{aircraft} aircraft and {slots} slots, expected as many slots as aircraft, at most {AIRCRAFT_MAX}"
    )]
    Numbers {
        /// Number of aircraft.
        aircraft: usize,
        /// Number of slots.
        slots: usize,
    },
    /// Too many permutations.
    #[error("{0} aircraft, expected at most {PERMUTED_MAX} to try every permutation")]
    Permutations(usize),
}

/// The slot of each aircraft, and the order of take-off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// For each aircraft, its slot.
    pub slot_of: Vec<usize, AIRCRAFT_MAX>,
    /// The aircraft in the order in which they take off.
    pub order: Vec<usize, AIRCRAFT_MAX>,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Optimal => "optimal",
            Self::KuhnMunkres => "kuhn-munkres",
            Self::Simplified => "simplified",
            Self::Random { .. } => "random",
        })
    }
}

impl Strategy {
    /// Assigns the slots. Ties resolve the same way on every machine.
    ///
    /// # Errors
    /// Another number of slots than of aircraft, or too many for the strategy.
    pub fn assign(self, ground: &[DVec2], slots: &[DVec2]) -> Result<Assignment, AssignmentError> {
        let count = ground.len();
        if count != slots.len() || count > AIRCRAFT_MAX {
            return Err(AssignmentError::Numbers { aircraft: count, slots: slots.len() });
        }
        if self == Self::Simplified {
            return Ok(simplified(ground, slots));
        }
        let slot_of = match self {
            Self::Optimal if count > PERMUTED_MAX => return Err(AssignmentError::Permutations(count)),
            Self::Optimal => cheapest_permutation(ground, slots),
            Self::KuhnMunkres | Self::Simplified => assign(ground, slots),
            Self::Random { seed } => shuffled(count, seed),
        };
        // The longest path first (reference).
        let mut order: Vec<(i64, usize), AIRCRAFT_MAX> =
            slot_of.iter().enumerate().map(|(i, &slot)| (-cost_mm2(ground[i], slots[slot]), i)).collect();
        order.sort_unstable();
        Ok(Assignment { order: order.iter().map(|(_, i)| *i).collect(), slot_of })
    }
}

/// A point of a local plane in whole millimetres: ties are ties on every machine, and costs are cheap to compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanePoint {
    east_mm: i64,
    north_mm: i64,
}

impl From<DVec2> for PlanePoint {
    fn from(at_m: DVec2) -> Self {
        // A thousand kilometres are beyond every fence, and their squares far from overflowing.
        let whole = |x: f64| libm::round(x.clamp(-1e6, 1e6) * 1e3) as i64;
        Self { east_mm: whole(at_m.x), north_mm: whole(at_m.y) }
    }
}

impl PlanePoint {
    /// What it costs to fly from here to there, square millimetres.
    pub fn cost_mm2(self, there: Self) -> i64 {
        let (x, y) = (self.east_mm - there.east_mm, self.north_mm - there.north_mm);
        x * x + y * y
    }
}

/// What it costs to fly from here to there, square millimetres.
fn cost_mm2(ground: DVec2, slot: DVec2) -> i64 {
    PlanePoint::from(ground).cost_mm2(slot.into())
}

/// For each position on the ground, the slot in the air: the permutation with the least sum of squared
/// distances. Ties resolve the same way on every machine (positions are rounded to millimetres).
///
/// # Panics
/// If the two lists differ in length or hold more than [`AIRCRAFT_MAX`] points.
pub fn assign(ground: &[DVec2], slots: &[DVec2]) -> Vec<usize, AIRCRAFT_MAX> {
    let n = ground.len();
    assert!(n == slots.len() && n <= AIRCRAFT_MAX, "{n} aircraft, {} slots", slots.len());
    let rounded = |points_m: &[DVec2]| -> Vec<PlanePoint, AIRCRAFT_MAX> {
        points_m.iter().map(|at| PlanePoint::from(*at)).collect()
    };
    let (ground, slots) = (rounded(ground), rounded(slots));
    let slot_of = kuhn_munkres::<AIRCRAFT_MAX>(n, |i, j| ground[i].cost_mm2(slots[j]));
    slot_of.iter().copied().take(n).collect()
}

/// The sum of squared distances, square metres.
pub fn cost_m2(ground: &[DVec2], slots: &[DVec2], slot_of: &[usize]) -> f64 {
    slot_of.iter().zip(ground).map(|(&slot, from)| from.distance_squared(slots[slot])).sum()
}

/// Every permutation, depth first; a prefix that costs more than the best permutation so far is cut off.
fn cheapest_permutation(ground: &[DVec2], slots: &[DVec2]) -> Vec<usize, AIRCRAFT_MAX> {
    struct Search<'a> {
        ground: &'a [DVec2],
        slots: &'a [DVec2],
        taken: [bool; PERMUTED_MAX],
        tried: [usize; PERMUTED_MAX],
        best: [usize; PERMUTED_MAX],
        best_cost: i64,
    }
    impl Search<'_> {
        fn from(&mut self, aircraft: usize, cost: i64) {
            if cost >= self.best_cost {
                return;
            }
            let Some(&from) = self.ground.get(aircraft) else {
                (self.best, self.best_cost) = (self.tried, cost);
                return;
            };
            for slot in 0..self.slots.len() {
                if !self.taken[slot] {
                    self.taken[slot] = true;
                    self.tried[aircraft] = slot;
                    self.from(aircraft + 1, cost + cost_mm2(from, self.slots[slot]));
                    self.taken[slot] = false;
                }
            }
        }
    }
    let (taken, tried) = ([false; PERMUTED_MAX], [0; PERMUTED_MAX]);
    let mut search = Search { ground, slots, taken, tried, best: tried, best_cost: i64::MAX };
    search.from(0, 0);
    search.best.iter().copied().take(ground.len()).collect()
}

/// The reference's default: the outermost slot chooses its aircraft first; aircraft take off in that order.
fn simplified(ground: &[DVec2], slots: &[DVec2]) -> Assignment {
    let middle = ground.iter().sum::<DVec2>() / ground.len().max(1) as f64;
    let mut outermost: Vec<(i64, usize), AIRCRAFT_MAX> =
        slots.iter().enumerate().map(|(slot, at)| (-cost_mm2(middle, *at), slot)).collect();
    outermost.sort_unstable();
    let mut assignment = Assignment::default();
    let _ = assignment.slot_of.resize(ground.len(), usize::MAX);
    for (_, slot) in outermost {
        let free = (0..ground.len()).filter(|&i| assignment.slot_of[i] == usize::MAX);
        let Some(nearest) = free.min_by_key(|&i| (cost_mm2(ground[i], slots[slot]), i)) else { break };
        assignment.slot_of[nearest] = slot;
        // There are as many as aircraft.
        let _ = assignment.order.push(nearest);
    }
    assignment
}

/// A random permutation (Fisher and Yates).
fn shuffled(count: usize, seed: u64) -> Vec<usize, AIRCRAFT_MAX> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut slot_of: Vec<usize, AIRCRAFT_MAX> = (0..count).collect();
    for i in (1..count).rev() {
        slot_of.swap(i, (rng.next_u64() % (i as u64 + 1)) as usize);
    }
    slot_of
}
