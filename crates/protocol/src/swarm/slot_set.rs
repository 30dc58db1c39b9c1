//! A set of slots of one formation.

use core::fmt;
use core::ops::{BitAnd, BitOr, BitOrAssign, Sub};

use wingbeat_wire::SWARM_MAX;

/// Slots below [`SWARM_MAX`], one bit each.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct SlotSet(u128);

const _: () = assert!(SWARM_MAX <= u128::BITS as usize);

impl SlotSet {
    /// No slot.
    pub(crate) const EMPTY: Self = Self(0);

    /// The slots below `count`.
    pub(crate) const fn first(count: usize) -> Self {
        if count >= u128::BITS as usize { Self(u128::MAX) } else { Self((1 << count) - 1) }
    }

    /// The set of this slot alone.
    pub(crate) const fn of(slot: usize) -> Self {
        Self(1 << slot)
    }

    /// Whether it has no slot.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many slots it has.
    pub(crate) const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether the slot is in it.
    pub(crate) const fn contains(self, slot: usize) -> bool {
        self.0 >> slot & 1 == 1
    }

    /// Whether every slot of `other` is in it.
    pub(crate) const fn contains_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Adds a slot; whether it is new.
    pub(crate) const fn insert(&mut self, slot: usize) -> bool {
        let is_new = !self.contains(slot);
        self.0 |= 1 << slot;
        is_new
    }

    /// Removes a slot; whether it was there.
    pub(crate) const fn remove(&mut self, slot: usize) -> bool {
        let was_there = self.contains(slot);
        self.0 &= !(1 << slot);
        was_there
    }

    /// Adds or removes a slot.
    pub(crate) const fn set(&mut self, slot: usize, is_in: bool) {
        self.0 = self.0 & !(1 << slot) | (is_in as u128) << slot;
    }

    /// Its slots, the lowest first.
    pub(crate) fn iter(self) -> Iter {
        Iter(self.0)
    }
}

impl BitOr for SlotSet {
    type Output = Self;
    /// The slots of either.
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for SlotSet {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for SlotSet {
    type Output = Self;
    /// The slots of both.
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Sub for SlotSet {
    type Output = Self;
    /// The slots of the first that are not in the second.
    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl FromIterator<usize> for SlotSet {
    fn from_iter<I: IntoIterator<Item = usize>>(slots: I) -> Self {
        Self(slots.into_iter().fold(0, |bits, slot| bits | 1 << slot))
    }
}

impl IntoIterator for SlotSet {
    type Item = usize;
    type IntoIter = Iter;
    fn into_iter(self) -> Iter {
        self.iter()
    }
}

/// As a list of its slots.
impl fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(*self).finish()
    }
}

/// Iterator over the slots of a set, the lowest first.
#[derive(Clone, Debug)]
pub(crate) struct Iter(u128);

impl Iterator for Iter {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let slot = self.0.trailing_zeros() as usize;
        self.0 &= self.0.checked_sub(1)?;
        Some(slot)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.0.count_ones() as usize;
        (len, Some(len))
    }
}

impl ExactSizeIterator for Iter {}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    #[test]
    fn the_first_slots_up_to_a_whole_swarm() {
        assert_eq!(SlotSet::first(0), SlotSet::EMPTY);
        assert_eq!(SlotSet::first(3).iter().collect::<Vec<_>>(), [0, 1, 2]);
        let all = SlotSet::first(SWARM_MAX);
        assert_eq!((all.len(), all.iter().last()), (SWARM_MAX as u32, Some(SWARM_MAX - 1)));
        assert_eq!(std::format!("{:?}", SlotSet::of(5) | SlotSet::of(127)), "{5, 127}");
    }

    proptest! {
        #[test]
        fn it_is_a_set(
            a in prop::collection::btree_set(0..SWARM_MAX, 0..20),
            b in prop::collection::btree_set(0..SWARM_MAX, 0..20),
            slot in 0..SWARM_MAX, is_in: bool,
        ) {
            let of = |set: &BTreeSet<usize>| set.iter().copied().collect::<SlotSet>();
            let (x, y) = (of(&a), of(&b));
            prop_assert_eq!(x.iter().collect::<BTreeSet<_>>(), a.clone());
            prop_assert_eq!(x.iter().len(), a.len());
            prop_assert_eq!(x | y, of(&a.union(&b).copied().collect()));
            prop_assert_eq!(x & y, of(&a.intersection(&b).copied().collect()));
            prop_assert_eq!(x - y, of(&a.difference(&b).copied().collect()));
            prop_assert_eq!(x.contains_all(y), b.is_subset(&a));
            prop_assert_eq!((x.len() as usize, x.is_empty()), (a.len(), a.is_empty()));
            let (mut set, mut model) = (x, a.clone());
            prop_assert_eq!((set.contains(slot), set.insert(slot)), (model.contains(&slot), model.insert(slot)));
            prop_assert_eq!((set, set.remove(slot)), (of(&model), model.remove(&slot)));
            set.set(slot, is_in);
            prop_assert_eq!(set.contains(slot), is_in);
        }
    }
}
