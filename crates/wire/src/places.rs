//! The index of an aircraft in a table, found in one or two memory accesses.
//!
//! Tables of other aircraft are kept in an order of their own, and are large; a search through one waits for
//! memory at each step, once for every received datagram. A change of the table rebuilds this: aircraft join and
//! leave seldom.

use crate::{ROSTER_MAX, VehicleId};

/// Buckets: over three times as many as the table has rows, so that few ids share one.
const BUCKETS: usize = 512;
/// Rows of the largest table, a roster.
const ROWS_MAX: usize = ROSTER_MAX;
const _: () = assert!(ROWS_MAX < EMPTY as usize && 3 * ROWS_MAX < BUCKETS);
const EMPTY: u8 = u8::MAX;

/// Indices of at most 136 ids, as many as a roster has.
#[derive(Clone, Debug)]
pub struct Places([u8; BUCKETS]);

impl Default for Places {
    fn default() -> Self {
        Self([EMPTY; BUCKETS])
    }
}

impl Places {
    /// Indexes the table anew.
    ///
    /// # Panics
    /// If the table has more than 136 rows.
    pub fn learn(&mut self, table: impl ExactSizeIterator<Item = VehicleId>) {
        assert!(table.len() <= ROWS_MAX, "{} rows", table.len());
        self.0 = [EMPTY; BUCKETS];
        for (index, id) in table.enumerate() {
            let mut bucket = bucket(id);
            while self.0[bucket] != EMPTY {
                bucket = (bucket + 1) % BUCKETS;
            }
            self.0[bucket] = index as u8;
        }
    }

    /// The index of `id`; `is_there` checks whether the row at an index is that id's.
    pub fn find(&self, id: VehicleId, is_there: impl Fn(usize) -> bool) -> Option<usize> {
        let mut bucket = bucket(id);
        // Most buckets are empty, so this ends.
        while self.0[bucket] != EMPTY {
            let index = usize::from(self.0[bucket]);
            if is_there(index) {
                return Some(index);
            }
            bucket = (bucket + 1) % BUCKETS;
        }
        None
    }
}

/// Ids may be neighbouring numbers or MAC addresses of one maker: spread them (Fibonacci hashing).
fn bucket(id: VehicleId) -> usize {
    (id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn finds_every_id_of_the_table_and_no_other(ids in prop::collection::btree_set(any::<u64>(), 0..=128)) {
            let table: Vec<VehicleId> = ids.iter().map(|&id| VehicleId(id)).collect();
            let mut places = Places::default();
            places.learn(table.iter().copied());
            for (place, &id) in table.iter().enumerate() {
                prop_assert_eq!(places.find(id, |i| table[i] == id), Some(place));
                let other = VehicleId(id.0 ^ 0x55);
                if !table.contains(&other) {
                    prop_assert_eq!(places.find(other, |i| table[i] == other), None);
                }
            }
        }
    }

    #[test]
    fn ids_that_share_a_bucket_are_distinct() {
        let shared: Vec<VehicleId> =
            (0..u64::MAX).map(VehicleId).filter(|&id| bucket(id) == bucket(VehicleId(0))).take(128).collect();
        let mut places = Places::default();
        places.learn(shared.iter().copied());
        for (place, &id) in shared.iter().enumerate() {
            assert_eq!(places.find(id, |i| shared[i] == id), Some(place));
        }
    }
}
