//! Who is who: members by slot, the order of take-off, and sets of members.

use wingbeat_wire::{SWARM_MAX, VehicleId};

use super::Swarm;

/// A set of slots, as bits.
pub type Slots = u128;

impl<F: Copy + PartialEq> Swarm<F> {
    /// Whether we plan.
    pub fn is_master(&self) -> bool {
        self.config.me == self.config.master
    }
    /// Whether a plan is held.
    pub fn planned(&self) -> bool {
        !self.plan.slots.is_empty()
    }
    /// Whether our word is followed.
    pub fn is_leader(&self) -> bool {
        self.planned() && self.slot == self.leader
    }
    /// Who flies a slot.
    pub fn id_of(&self, slot: usize) -> Option<VehicleId> {
        self.plan.slots.get(slot).copied()
    }
    /// Which slot somebody flies.
    pub fn slot_of(&self, id: VehicleId) -> Option<usize> {
        self.plan.slots.iter().position(|&s| s == id)
    }
    /// Bits of everybody but us.
    pub fn others(&self) -> Slots {
        let all =
            if self.plan.slots.len() == SWARM_MAX { Slots::MAX } else { (1 << self.plan.slots.len()) - 1 };
        all & !(1 << self.slot)
    }
    /// Whether everybody but us is in `bits`.
    pub fn all(&self, bits: Slots) -> bool {
        bits & self.others() == self.others()
    }
    /// How many but us are not in `bits`.
    pub fn missing(&self, bits: Slots) -> u32 {
        (self.others() & !bits).count_ones()
    }
    /// Our place in the order of take-off; nothing where a pilot takes us off.
    pub fn turn(&self) -> Option<usize> {
        self.plan.take_off_order.iter().position(|&s| usize::from(s) == self.slot)
    }
    /// Who takes off after us.
    pub(super) fn successor(&self) -> Option<VehicleId> {
        self.id_of(usize::from(*self.plan.take_off_order.get(self.turn()? + 1)?))
    }
    /// Who takes off before us.
    pub(super) fn predecessor(&self) -> Option<usize> {
        Some(usize::from(*self.plan.take_off_order.get(self.turn()?.checked_sub(1)?)?))
    }
}
