//! The members of the flight: which are present, lost, gone or excluded, and which leads.
//!
//! A member that has been silent for the time to live is lost: it is not waited for until a message of it is
//! received again. One that reports that it leaves, or that the operator excludes, is gone for this flight. The
//! leader is the first in the order of succession that is still present: the plan's centre, and then the order of
//! take-off from its end. All members derive the same order from the plan.

use heapless::Vec;
use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{Places, SWARM_MAX, VehicleId};

use super::slot_set::SlotSet;

#[derive(Clone, Copy, Debug)]
struct Member {
    id: VehicleId,
    received_at: Instant,
    /// The aircraft whose operator excluded it, as far as known: this one, or the member that passed it on.
    excluded_by: Option<VehicleId>,
}

/// The members of the flight, this aircraft among them. Empty before the plan is adopted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Membership {
    own: usize,
    leader: usize,
    /// Slots by id.
    index: Places,
    members: Vec<Member, SWARM_MAX>,
    /// Silent for the time to live.
    lost: SlotSet,
    /// Reported that they leave.
    left: SlotSet,
    excluded: SlotSet,
    /// The member whose exclusion was broadcast last: of several, each is broadcast in turn.
    announced: usize,
    /// A member reported that it follows one that is excluded: it does not know yet.
    is_followed: bool,
}

impl Membership {
    /// The members of a plan that was just adopted, in the order of their slots.
    pub(super) fn assemble(&mut self, now: Instant, ids: &[VehicleId], own: usize, center: usize) {
        (self.own, self.leader) = (own, center);
        self.index.learn(ids.iter().copied());
        let member = |&id: &VehicleId| Member { id, received_at: now, excluded_by: None };
        self.members = ids.iter().map(member).collect();
    }

    /// Silence counts from now on.
    pub(super) fn begin_watch(&mut self, now: Instant) {
        self.members.iter_mut().for_each(|member| member.received_at = now);
    }

    pub(crate) fn slot_of(&self, id: VehicleId) -> Option<usize> {
        self.index.find(id, |slot| self.members.get(slot).is_some_and(|member| member.id == id))
    }

    /// The slots of all but this aircraft.
    pub(crate) fn peers(&self) -> SlotSet {
        SlotSet::first(self.members.len()) - SlotSet::of(self.own)
    }

    /// The slot of the leader: at first the centre.
    pub(crate) fn leader(&self) -> usize {
        self.leader
    }

    /// Whether this aircraft leads.
    pub(crate) fn is_leader(&self) -> bool {
        !self.members.is_empty() && self.own == self.leader
    }

    /// When a message of a member was received last.
    pub(crate) fn received_at(&self, slot: usize) -> Option<Instant> {
        self.members.get(slot).map(|member| member.received_at)
    }

    pub(crate) fn excluded_by(&self, slot: usize) -> Option<VehicleId> {
        self.members.get(slot).and_then(|member| member.excluded_by)
    }

    /// Lost, gone or excluded.
    pub(crate) fn absent(&self) -> SlotSet {
        self.left | self.lost | self.excluded
    }

    pub(crate) fn lost(&self) -> SlotSet {
        self.lost
    }

    pub(super) fn left(&self) -> SlotSet {
        self.left
    }

    /// Whether the operator excluded this aircraft.
    pub(super) fn is_excluded(&self) -> bool {
        !self.members.is_empty() && self.excluded.contains(self.own)
    }

    /// The peers that are waited for. Where silence does not count, all are but those that the operator excluded.
    pub(crate) fn awaited(&self, silence_counts: bool) -> SlotSet {
        self.peers() - if silence_counts { self.absent() } else { self.excluded }
    }

    /// A message of a member was received. Whether it was lost before.
    pub(super) fn received(&mut self, now: Instant, slot: usize) -> bool {
        self.members[slot].received_at = now;
        self.lost.remove(slot)
    }

    /// A member reported that it leaves. Whether that is new.
    pub(super) fn leaves(&mut self, slot: usize) -> bool {
        self.left.insert(slot)
    }

    /// The operator of `by` excludes a member. Whether that is new.
    pub(super) fn exclude(&mut self, slot: usize, by: VehicleId) -> bool {
        let is_new = self.excluded.insert(slot);
        if is_new {
            self.members[slot].excluded_by = Some(by);
        }
        is_new
    }

    /// Members that have been silent for the time to live are lost; the last of them, if any.
    pub(super) fn check_silence(&mut self, now: Instant, time_to_live: Duration) -> Option<usize> {
        let silent = |&slot: &usize| now >= self.members[slot].received_at + time_to_live;
        let newly_lost: SlotSet = self.awaited(true).iter().filter(silent).collect();
        self.lost |= newly_lost;
        newly_lost.iter().last()
    }

    /// The first in the order of succession that is present leads. Whether that is another than before.
    pub(super) fn elect(&mut self, center: usize, take_off_order: &[u8], silence_counts: bool) -> bool {
        let absent = if silence_counts { self.absent() } else { self.left | self.excluded };
        let order = take_off_order.iter().rev().map(|&slot| usize::from(slot));
        let leader = core::iter::once(center)
            .chain(order.filter(|&slot| slot != center))
            .find(|&slot| slot == self.own || !absent.contains(slot))
            .unwrap_or(self.own);
        core::mem::replace(&mut self.leader, leader) != leader
    }

    /// A member follows this leader.
    pub(super) fn report_leader(&mut self, leader: usize) {
        self.is_followed |= self.excluded.contains(leader);
    }

    /// Whether a member was received, since this was asked last, that follows one that is excluded.
    pub(super) fn take_followed(&mut self) -> bool {
        core::mem::take(&mut self.is_followed)
    }

    /// The next excluded member to be broadcast: each in turn, until it reports that it leaves, and while another member
    /// follows one of them whatever that reports. One that is dead never does.
    pub(super) fn next_exclusion(&mut self, is_followed: bool) -> Option<usize> {
        let left = if is_followed { SlotSet::EMPTY } else { self.left };
        let unanswered = self.excluded - left - SlotSet::of(self.own);
        let next = unanswered.iter().find(|&slot| slot > self.announced);
        self.announced = next.or_else(|| unanswered.iter().next())?;
        Some(self.announced)
    }
}

#[cfg(test)]
impl Membership {
    /// Everything that decides what follows, for [`Swarm::fingerprint`](super::Swarm::fingerprint).
    pub(super) fn fingerprint(
        &self,
        ages: &super::table::fingerprint::Ages,
        state: &mut impl core::hash::Hasher,
    ) {
        use core::hash::Hash as _;
        (self.leader, self.announced, self.is_followed).hash(state);
        (self.lost, self.left, self.excluded).hash(state);
        for member in &self.members {
            (ages.of(member.received_at), member.excluded_by.map(|id| id.0)).hash(state);
        }
    }

    /// The slots that the operator excluded, as far as known.
    pub(crate) fn excluded(&self) -> SlotSet {
        self.excluded
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec as StdVec;

    const TIME_TO_LIVE: Duration = Duration::from_secs(5);

    /// Five members, this one in slot 1, the centre in slot 2; 4 takes off last.
    fn five() -> Membership {
        let mut members = Membership::default();
        let ids: StdVec<VehicleId> = (10..15).map(VehicleId).collect();
        members.assemble(Instant::ZERO, &ids, 1, 2);
        members
    }

    const ORDER: [u8; 5] = [2, 0, 1, 3, 4];

    fn slots(set: SlotSet) -> StdVec<usize> {
        set.iter().collect()
    }

    #[test]
    fn before_the_plan_is_adopted_there_are_no_members() {
        let members = Membership::default();
        assert!(!members.is_leader() && !members.is_excluded());
        assert_eq!((members.peers(), members.slot_of(VehicleId(0))), (SlotSet::EMPTY, None));
    }

    #[test]
    fn muscop_05_the_order_of_succession_is_the_centre_and_then_the_order_of_take_off_from_its_end() {
        let mut members = five();
        let mut leaders = StdVec::new();
        for leaves in [2, 4, 3, 0] {
            members.leaves(leaves);
            members.elect(2, &ORDER, true);
            leaders.push(members.leader());
        }
        // This aircraft comes before 0, and is never absent to itself.
        assert_eq!(leaders, [4, 3, 1, 1]);
        assert!(members.is_leader());
    }

    #[test]
    fn muscop_15_a_lost_member_leads_again_once_it_is_received() {
        let mut members = five();
        (0..5).filter(|&slot| slot != 2).for_each(|slot| {
            members.received(Instant::from_secs(4), slot);
        });
        assert_eq!(members.check_silence(Instant::from_secs(5), TIME_TO_LIVE), Some(2));
        assert!(members.elect(2, &ORDER, true));
        assert_eq!((members.leader(), slots(members.absent())), (4, [2].into()));
        assert!(members.received(Instant::from_secs(6), 2), "it was lost");
        assert!(members.elect(2, &ORDER, true) && !members.elect(2, &ORDER, true));
        assert_eq!((members.leader(), members.absent()), (2, SlotSet::EMPTY));
        assert!(!members.received(Instant::from_secs(6), 2));
    }

    #[test]
    fn muscop_13_on_the_ground_only_the_excluded_are_not_waited_for() {
        let mut members = five();
        members.leaves(3);
        members.exclude(4, VehicleId(10));
        members.check_silence(Instant::from_secs(9), TIME_TO_LIVE);
        assert_eq!(slots(members.awaited(true)), [] as [usize; 0]);
        assert_eq!(slots(members.awaited(false)), [0, 2, 3]);
        assert_eq!(slots(members.lost()), [0, 2], "the absent are not lost besides");
    }

    #[test]
    fn muscop_13_of_several_excluded_each_is_broadcast_in_turn_until_it_leaves() {
        let mut members = five();
        assert_eq!(members.next_exclusion(false), None);
        for slot in [0, 3, 4] {
            assert!(members.exclude(slot, VehicleId(12)) && !members.exclude(slot, VehicleId(13)));
        }
        let round: StdVec<_> = (0..4).filter_map(|_| members.next_exclusion(false)).collect();
        assert_eq!(round, [3, 4, 0, 3]);
        members.leaves(4);
        assert_eq!((members.next_exclusion(false), members.next_exclusion(false)), (Some(0), Some(3)));
        assert_eq!(members.next_exclusion(true), Some(4), "it says that it leaves, and is followed");
        assert_eq!(members.excluded_by(3), Some(VehicleId(12)));
        members.exclude(1, VehicleId(12));
        assert!(members.is_excluded());
        assert_eq!(members.next_exclusion(false), Some(0), "its own it does not broadcast");
    }
}
