//! How a plan travels: in one datagram, or in several where one does not carry all of its waypoints.
//!
//! The first of several has everything but the waypoints that do not fit, each of the others as many of these as fit.
//! The master broadcasts them in turn, one at a time, until all members hold the plan. A member puts them together in
//! whatever order it receives them. Each names the hash of the whole plan: what was put together is checked against it
//! before it is adopted.

use wingbeat_wire::{
    DATAGRAM_LEN_MAX, FIRST_WAYPOINTS_MAX, FirstPart, MORE_WAYPOINTS_MAX, Message, MoreWaypoints, Point,
    Refused, WAYPOINTS_MAX, length_at_most, point_length,
};

use super::plan::{self, Plan, PlanError};

/// How many waypoints the first datagram of a plan carries: all of them where it is the only one.
///
/// # Errors
/// Not even one fits, because the plan has too many slots.
pub fn first_waypoints(plan: &Plan) -> Result<usize, PlanError> {
    let count = plan.waypoints.len();
    let fits_alone = count <= FIRST_WAYPOINTS_MAX
        && length_at_most(&Message::Data(plan.with_waypoints(count))) <= DATAGRAM_LEN_MAX;
    if fits_alone {
        return Ok(count);
    }
    let least = FirstPart { plan: plan.with_waypoints(1), hash: u64::MAX, count: count as u16 };
    let mut bytes = length_at_most(&Message::DataFirst(least));
    if bytes > DATAGRAM_LEN_MAX {
        return Err(PlanError::TooLong { bytes });
    }
    let fits = |waypoint: &&Point| {
        bytes += point_length(**waypoint);
        bytes <= DATAGRAM_LEN_MAX
    };
    Ok(1 + plan.waypoints.iter().take(FIRST_WAYPOINTS_MAX).skip(1).take_while(fits).count())
}

/// The datagrams of the master's plan, and whose turn it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Distribution {
    /// Hash of the plan.
    hash: u64,
    /// Waypoints in the first datagram.
    first: usize,
    /// Index of the first waypoint of the datagram whose turn it is.
    next: usize,
}

impl Distribution {
    /// That of a plan, from its first datagram on.
    ///
    /// # Errors
    /// As [`first_waypoints`].
    pub(super) fn of(plan: &Plan) -> Result<Self, PlanError> {
        Ok(Self { hash: plan::hash(plan), first: first_waypoints(plan)?, next: 0 })
    }

    /// The message whose turn it is.
    pub(super) fn next_message(&mut self, plan: &Plan) -> Message {
        let Self { hash, first, next } = *self;
        let count = plan.waypoints.len();
        let carried = if next == 0 { first } else { MORE_WAYPOINTS_MAX };
        self.next = if next + carried < count { next + carried } else { 0 };
        if next > 0 {
            let waypoints = plan.waypoints.iter().skip(next).take(carried).copied().collect();
            return Message::DataWaypoints(MoreWaypoints {
                hash,
                count: count as u16,
                first: next as u16,
                waypoints,
            });
        }
        let plan = plan.with_waypoints(first);
        if first == count {
            Message::Data(plan)
        } else {
            Message::DataFirst(FirstPart { plan, hash, count: count as u16 })
        }
    }
}

/// Which waypoints of a plan were received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Received([u64; WAYPOINTS_MAX.div_ceil(64)]);

impl Received {
    fn insert(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    fn contains(&self, index: usize) -> bool {
        self.0[index / 64] & 1 << (index % 64) != 0
    }

    fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// A plan in several datagrams, as far as this member has received it.
#[derive(Clone, Debug)]
pub(super) struct Assembly {
    flight: u32,
    hash: u64,
    /// Whether the first datagram was received.
    has_first: bool,
    /// Has room for all waypoints of the plan from the beginning on; those that were not received yet are zero.
    plan: Plan,
    received: Received,
}

impl Assembly {
    fn new(flight: u32, hash: u64, count: u16) -> Self {
        let mut plan = Plan::default();
        // Decoding has checked that there is room.
        let _ = plan.waypoints.resize_default(usize::from(count));
        Self { flight, hash, has_first: false, plan, received: Received::default() }
    }

    /// How many waypoints were received, of how many.
    pub(super) fn progress(&self) -> (usize, usize) {
        (self.received.len(), self.plan.waypoints.len())
    }

    /// Adds the first datagram of a plan. Where it is another plan than before, the master has planned anew.
    ///
    /// # Errors
    /// It contradicts what was received before.
    pub(super) fn add_first(
        assembly: &mut Option<Self>,
        flight: u32,
        part: &FirstPart,
    ) -> Result<(), Refused> {
        let is_same = |known: &Self| known.flight == flight && known.hash == part.hash;
        if !assembly.as_ref().is_some_and(is_same) {
            *assembly = None;
        }
        let this = assembly.get_or_insert_with(|| Self::new(flight, part.hash, part.count));
        if usize::from(part.count) != this.plan.waypoints.len() {
            return Err(Refused::Contradiction);
        }
        if this.has_first {
            let first = part.plan.waypoints.len();
            let is_repeated = part.plan == this.plan.with_waypoints(first);
            return if is_repeated { Ok(()) } else { Err(Refused::Contradiction) };
        }
        this.add(0, &part.plan.waypoints)?;
        let waypoints = core::mem::take(&mut this.plan.waypoints);
        this.plan = Plan { waypoints, ..part.plan.with_waypoints(0) };
        this.has_first = true;
        Ok(())
    }

    /// Adds more waypoints of a plan.
    ///
    /// # Errors
    /// They contradict what was received before, or belong to another plan.
    pub(super) fn add_waypoints(
        assembly: &mut Option<Self>,
        flight: u32,
        part: &MoreWaypoints,
    ) -> Result<(), Refused> {
        let this = assembly.get_or_insert_with(|| Self::new(flight, part.hash, part.count));
        if flight != this.flight {
            return Err(Refused::OtherFlight);
        }
        if part.hash != this.hash || usize::from(part.count) != this.plan.waypoints.len() {
            return Err(Refused::Contradiction);
        }
        this.add(usize::from(part.first), &part.waypoints)
    }

    /// A part that was received before is the same again. Two parts never overlap otherwise.
    fn add(&mut self, first: usize, waypoints: &[Point]) -> Result<(), Refused> {
        let range = first..first + waypoints.len();
        let known = self.plan.waypoints.get_mut(range.clone()).ok_or(Refused::Contradiction)?;
        if range.clone().all(|index| self.received.contains(index)) {
            return if known == waypoints { Ok(()) } else { Err(Refused::Contradiction) };
        }
        if range.clone().any(|index| self.received.contains(index)) {
            return Err(Refused::Contradiction);
        }
        known.copy_from_slice(waypoints);
        range.for_each(|index| self.received.insert(index));
        Ok(())
    }

    /// The plan, once all of it was received: nothing is kept then. None while there are more to come.
    ///
    /// # Errors
    /// It is not what the master has planned: its parts are to be received anew.
    pub(super) fn take(assembly: &mut Option<Self>) -> Result<Option<Plan>, Refused> {
        let is_whole = |this: &mut Self| this.has_first && this.received.len() == this.plan.waypoints.len();
        let Some(whole) = assembly.take_if(is_whole) else { return Ok(None) };
        if plan::hash(&whole.plan) != whole.hash {
            return Err(Refused::Contradiction);
        }
        Ok(Some(whole.plan))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use proptest::prelude::*;
    use wingbeat_wire::{Datagram, SlotOffset, VehicleId};

    use super::super::tests::messages_of;
    use super::*;

    const FLIGHT: u32 = 7;

    /// With ids, positions and heights as long as they are in the field.
    fn plan_of(aircraft: u8, waypoints: i32, is_listed: bool) -> Plan {
        let offset = |n| SlotOffset { right_dm: 50 * n, ahead_dm: -50 * n, up_dm: 0 };
        let count = if is_listed { i32::from(aircraft) } else { 0 };
        Plan {
            layout: if is_listed { 7 } else { 1 },
            distance_mm: 50_000,
            landing_distance_mm: 10_000,
            heading_urad: 785_398,
            slots: (0..u64::from(aircraft)).map(|i| VehicleId(0xfe00_0000_0000 + i)).collect(),
            take_off_order: (0..aircraft).collect(),
            waypoints: (0..waypoints)
                .map(|n| Point {
                    latitude_e7: 394_825_940 + n * 900,
                    longitude_e7: -3_462_650 - n * 1_200,
                    height_mm: 20_000 + n,
                })
                .collect(),
            offsets: (0..count).map(offset).collect(),
        }
    }

    /// The messages of one turn of all, each as it is received.
    fn messages(plan: &Plan) -> Vec<Message> {
        let received = |message| {
            let from = VehicleId(u64::MAX);
            let datagram = Datagram { from, counter: u64::MAX, flight: u32::MAX, message };
            datagram.draft().unwrap().read().unwrap().message
        };
        messages_of(plan).into_iter().map(received).collect()
    }

    fn add(assembly: &mut Option<Assembly>, message: &Message) -> Result<Option<Plan>, Refused> {
        add_in(FLIGHT, assembly, message)
    }

    fn add_in(
        flight: u32,
        assembly: &mut Option<Assembly>,
        message: &Message,
    ) -> Result<Option<Plan>, Refused> {
        if let Message::DataFirst(part) = message {
            Assembly::add_first(assembly, flight, part)?;
        }
        if let Message::DataWaypoints(part) = message {
            Assembly::add_waypoints(assembly, flight, part)?;
        }
        Assembly::take(assembly)
    }

    /// A message of [`messages`] with its waypoints changed.
    fn changed(message: &Message, change: impl Fn(&mut MoreWaypoints)) -> Message {
        let Message::DataWaypoints(mut part) = message.clone() else { panic!("{message:?}") };
        change(&mut part);
        Message::DataWaypoints(part)
    }

    #[test]
    fn muscop_31_a_plan_that_fits_one_datagram_is_the_published_message() {
        for (aircraft, waypoints, is_listed) in
            [(1, 1, false), (5, 58, false), (100, 30, false), (9, 58, true)]
        {
            let plan = plan_of(aircraft, waypoints, is_listed);
            let whole = Message::Data(plan.with_waypoints(plan.waypoints.len()));
            assert_eq!(messages(&plan), [whole], "{aircraft} aircraft, {waypoints} waypoints");
        }
    }

    #[test]
    fn muscop_31_the_datagrams_of_a_long_plan_are_few_and_carry_all_of_it() {
        for (aircraft, waypoints, is_listed, datagrams, first) in [
            (5, 59, false, 2, 58),
            (5, 148, false, 2, 58),
            (5, 600, false, 8, 58),
            (100, 59, false, 2, 45),
            (100, 600, false, 8, 45),
            (100, 30, true, 2, 4),
            (100, 600, true, 8, 4),
            (103, 600, true, 8, 1),
        ] {
            let plan = plan_of(aircraft, waypoints, is_listed);
            let (all, case) = (messages(&plan), std::format!("{aircraft} aircraft, {waypoints} waypoints"));
            assert_eq!((all.len(), first_waypoints(&plan)), (datagrams, Ok(first)), "{case}");
            let mut assembly = None;
            let (last, others) = all.split_last().unwrap();
            for message in others {
                assert_eq!(add(&mut assembly, message), Ok(None), "{case}");
            }
            assert_eq!(add(&mut assembly, last), Ok(Some(plan)), "{case}");
            assert!(assembly.is_none());
        }
        let refused = first_waypoints(&plan_of(128, 2, true));
        assert!(matches!(refused, Err(PlanError::TooLong { bytes }) if bytes > DATAGRAM_LEN_MAX));
    }

    #[test]
    fn muscop_31_parts_that_contradict_each_other_are_refused() {
        let plan = plan_of(5, 300, false);
        let all = messages(&plan);
        let mut assembly = None;
        assert_eq!(add(&mut assembly, &all[1]), Ok(None));
        assert_eq!(assembly.as_ref().unwrap().progress(), (90, 300));
        let refused = Err(Refused::Contradiction);
        let other = |change: fn(&mut MoreWaypoints)| changed(&all[1], change);
        for message in [
            other(|part| part.waypoints[3].height_mm += 1),
            other(|part| part.first += 1),
            other(|part| part.first -= 1),
            other(|part| part.count += 1),
            other(|part| part.hash += 1),
        ] {
            assert_eq!(add(&mut assembly, &message), refused, "{message:?}");
        }
        assert_eq!(add_in(8, &mut assembly, &all[2]), Err(Refused::OtherFlight));
        let Message::DataFirst(first) = all[0].clone() else { panic!("{all:?}") };
        let longer = Message::DataFirst(FirstPart { count: 301, ..first.clone() });
        assert_eq!(add(&mut assembly, &longer), refused);
        assert_eq!(add(&mut assembly, &all[0]), Ok(None));
        let mut other_heading = first;
        other_heading.plan.heading_urad += 1;
        assert_eq!(add(&mut assembly, &Message::DataFirst(other_heading)), refused);
        assert_eq!(assembly.as_ref().unwrap().progress(), (148, 300));
        for message in &all[..3] {
            assert_eq!(add(&mut assembly, message), Ok(None));
        }
        assert_eq!(add(&mut assembly, &all[3]), Ok(Some(plan)));
    }

    #[test]
    fn muscop_31_what_is_not_the_masters_plan_is_received_anew() {
        let plan = plan_of(5, 148, false);
        let all = messages(&plan);
        let mut assembly = None;
        let forged = changed(&all[1], |part| part.waypoints[0].latitude_e7 += 1);
        assert_eq!(add(&mut assembly, &forged), Ok(None));
        assert_eq!(add(&mut assembly, &all[1]), Err(Refused::Contradiction));
        assert_eq!(add(&mut assembly, &all[0]), Err(Refused::Contradiction));
        assert_eq!(add(&mut assembly, &all[1]), Ok(None));
        assert_eq!(add(&mut assembly, &all[0]), Ok(Some(plan)));
    }

    #[test]
    fn muscop_31_a_second_plan_replaces_the_first_with_its_first_part() {
        let (former, plan) = (plan_of(5, 300, false), plan_of(5, 301, false));
        let (late, all) = (messages(&former), messages(&plan));
        let mut assembly = None;
        for message in &late[..3] {
            assert_eq!(add_in(6, &mut assembly, message), Ok(None));
        }
        assert_eq!(add(&mut assembly, &all[1]), Err(Refused::OtherFlight));
        assert_eq!(assembly.as_ref().unwrap().progress(), (238, 300));
        assert_eq!(add(&mut assembly, &all[0]), Ok(None));
        assert_eq!(assembly.as_ref().unwrap().progress(), (58, 301));
        assert_eq!(add_in(6, &mut assembly, &late[3]), Err(Refused::OtherFlight));
        for message in &all[1..3] {
            assert_eq!(add(&mut assembly, message), Ok(None));
        }
        assert_eq!(add(&mut assembly, &all[3]), Ok(Some(plan)));
    }

    proptest! {
        #[test]
        fn muscop_31_parts_are_put_together_in_any_order_with_losses_and_duplicates(
            waypoints in 59..=600i32,
            aircraft in 1..=100u8,
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        ) {
            let plan = plan_of(aircraft, waypoints, false);
            let all = messages(&plan);
            let (mut assembly, mut received) = (None, std::collections::BTreeSet::new());
            // Some are lost at first, and received in a later turn of all.
            let first_turns = order.iter().map(|index| index.index(all.len()));
            for index in first_turns.chain(0..all.len()) {
                received.insert(index);
                let taken = add(&mut assembly, &all[index]);
                if received.len() == all.len() {
                    prop_assert_eq!(taken, Ok(Some(plan)));
                    return Ok(());
                }
                prop_assert_eq!(taken, Ok(None));
            }
            prop_assert!(false, "never whole");
        }
    }
}
