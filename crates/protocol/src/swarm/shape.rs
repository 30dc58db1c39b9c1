//! The formation as a plan carries it: a number for its layout, and the offsets themselves where they cannot be
//! calculated from that.

use wingbeat_geo::formation::{Layout, Offset, Offsets};
use wingbeat_geo::{Formation, FormationError};
use wingbeat_wire::{Plan, SlotOffset};

use super::plan::PlanError;

/// The formation that a configuration asks for.
///
/// # Errors
/// The formation is impossible.
pub fn configured(
    layout: Layout,
    offsets: &[Offset],
    count: usize,
    distance_m: f64,
) -> Result<Formation, FormationError> {
    if layout == Layout::Custom {
        Formation::custom(offsets, count, distance_m)
    } else {
        Formation::new(layout, count, distance_m)
    }
}

/// Writes the formation into a plan.
pub fn write<const N: usize>(plan: &mut Plan<N>, formation: &Formation) {
    plan.layout = formation.layout().number();
    plan.offsets.clear();
    if formation.layout().is_listed() {
        let slot_offset =
            |o: &Offset| SlotOffset { right_dm: o.right_dm, ahead_dm: o.ahead_dm, up_dm: o.up_dm };
        plan.offsets.extend(formation.offsets().iter().map(slot_offset));
    }
}

/// The formation that a plan names.
///
/// # Errors
/// The formation is impossible.
pub fn formation<const N: usize>(plan: &Plan<N>) -> Result<Formation, PlanError> {
    let layout = Layout::from_number(plan.layout).ok_or(FormationError::UnknownLayout)?;
    let (count, distance_m) = (plan.slots.len(), f64::from(plan.distance_mm) / 1e3);
    if !layout.is_listed() {
        return Ok(Formation::new(layout, count, distance_m)?);
    }
    let offset = |o: &SlotOffset| Offset { right_dm: o.right_dm, ahead_dm: o.ahead_dm, up_dm: o.up_dm };
    let offsets: Offsets = plan.offsets.iter().map(offset).collect();
    Ok(Formation::listed(layout, &offsets, count, distance_m)?)
}

/// The slot that leads, without calculating the offsets of all others.
pub fn center_slot<const N: usize>(plan: &Plan<N>) -> usize {
    Layout::from_number(plan.layout).map_or(0, |layout| layout.center_slot(plan.slots.len()))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use wingbeat_wire::VehicleId;

    fn plan_of(formation: &Formation) -> Plan {
        let mut plan = Plan {
            distance_mm: (formation.distance_m() * 1e3) as u32,
            slots: (0..formation.count() as u64).map(VehicleId).collect(),
            ..Plan::default()
        };
        write(&mut plan, formation);
        plan
    }

    #[test]
    fn every_formation_is_read_as_it_was_written() {
        let offsets: Offsets =
            (0..7).map(|n| Offset { right_dm: n * 300, ahead_dm: -n * n * 40, up_dm: n * 25 }).collect();
        let split_up = (2..=8).map(|parts| Layout::SplitUp { parts });
        for asked in Layout::ALL.into_iter().chain(split_up) {
            for count in [1, 2, 7] {
                let formation = configured(asked, &offsets, count, 20.0).unwrap();
                let plan = plan_of(&formation);
                assert_eq!(plan.offsets.is_empty(), !asked.is_listed(), "{asked}");
                let read = super::formation(&plan).unwrap();
                assert_eq!(read.layout().name(), asked.name());
                assert_eq!(center_slot(&plan), formation.center_slot(), "{asked} of {count}");
                for slot in 0..count {
                    assert_eq!(read.offset_m(slot, 1.0), formation.offset_m(slot, 1.0), "{asked} of {count}");
                    assert_eq!(read.height_m(slot), formation.height_m(slot), "{asked} of {count}");
                }
            }
        }
    }

    #[test]
    fn offsets_too_near_to_each_other_are_refused() {
        let offsets = [0, 300, 600].map(|right_dm| Offset { right_dm, ..Offset::default() });
        let mut plan = plan_of(&Formation::custom(&offsets, 3, 20.0).unwrap());
        assert!(super::formation(&plan).is_ok());
        plan.offsets[2].right_dm = 450;
        let refused = super::formation(&plan).unwrap_err();
        assert!(
            matches!(refused, PlanError::Formation(FormationError::Near { first: 1, second: 2, .. })),
            "{refused}"
        );
        plan.layout = 9;
        assert_eq!(super::formation(&plan), Err(PlanError::Formation(FormationError::UnknownLayout)));
    }
}
