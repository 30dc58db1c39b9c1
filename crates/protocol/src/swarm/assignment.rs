//! The plan that this aircraft has adopted, and its own part in it.

use wingbeat_geo::formation::Layout;
use wingbeat_geo::{DVec2, DVec3, Frame, Position};
use wingbeat_wire::{Point, VehicleId};

use super::Config;
use super::geometry::Geometry;
use super::plan::{self, Layers, Plan, Route};

/// The adopted plan; before setup a plan without slots.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    plan: Plan,
    hash: u64,
    geometry: Geometry,
    /// The heights of returns, where the plan has any.
    layers: Option<Layers>,
    /// The own one of those: asked for at every input.
    own_return_height_mm: Option<i32>,
    flight: u32,
    slot: usize,
    route: Route,
}

impl Assignment {
    /// Before setup.
    pub(super) fn none() -> Self {
        let plan = Plan::default();
        let geometry = Geometry::of(&plan);
        Self {
            geometry,
            plan,
            hash: 0,
            layers: None,
            own_return_height_mm: None,
            flight: 0,
            slot: 0,
            route: Route::new(),
        }
    }

    /// Adopts a plan in which this aircraft flies `route` in `slot`.
    pub(super) fn adopt(&mut self, config: &Config, flight: u32, plan: Plan, slot: usize, route: Route) {
        self.geometry = Geometry::of(&plan);
        self.layers = Layers::of(config, &plan);
        self.hash = plan::hash(&plan);
        (self.plan, self.flight, self.slot, self.route) = (plan, flight, slot, route);
        self.own_return_height_mm = self.return_height_mm(slot);
    }

    /// Whether a plan is adopted.
    pub(crate) fn is_planned(&self) -> bool {
        !self.plan.slots.is_empty()
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub(super) fn layers(&self) -> Option<&Layers> {
        self.layers.as_ref()
    }

    /// The number of the flight; 0 before setup.
    pub(crate) fn flight(&self) -> u32 {
        self.flight
    }

    /// The own slot.
    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    /// The own waypoints.
    pub(crate) fn route(&self) -> &[Point] {
        &self.route
    }

    pub(super) fn layout(&self) -> Option<Layout> {
        self.geometry.layout()
    }

    /// The slot that leads while no member is lost.
    pub(crate) fn center(&self) -> usize {
        self.geometry.center()
    }

    /// The aircraft that flies a slot.
    pub(crate) fn id_of(&self, slot: usize) -> Option<VehicleId> {
        self.plan.slots.get(slot).copied()
    }

    /// Index of the own slot in the order of take-off; none where a pilot takes this aircraft off.
    pub(crate) fn take_off_index(&self) -> Option<usize> {
        self.geometry.take_off_index(self.slot)
    }

    /// The aircraft that takes off next after this one.
    pub(super) fn successor(&self) -> Option<VehicleId> {
        self.id_of(usize::from(*self.plan.take_off_order.get(self.take_off_index()? + 1)?))
    }

    /// The slots that take off before this aircraft, the last first.
    pub(super) fn predecessors(&self) -> impl Iterator<Item = usize> + Clone {
        self.plan.take_off_order[..self.take_off_index().unwrap_or(0)].iter().rev().map(|&s| usize::from(s))
    }

    /// Height of the first, vertical part of the own take-off, millimetre.
    pub(super) fn first_height_mm(&self) -> i32 {
        plan::first_height_mm(self.route.first().map_or(0, |w| w.height_mm))
    }

    /// Index of the last waypoint of the plan.
    pub(crate) fn last_waypoint(&self) -> usize {
        self.plan.waypoints.len().saturating_sub(1)
    }

    /// Where a slot is when the formation is at a waypoint; at the last one for those after it.
    pub(crate) fn slot_position(&self, slot: usize, waypoint: usize) -> Option<Point> {
        self.geometry.slot_position(&self.plan, slot, waypoint.min(self.last_waypoint()))
    }

    /// The same in the frame of [`Assignment::local`].
    pub(super) fn slot_position_m(&self, slot: usize, waypoint: usize) -> Option<DVec3> {
        self.geometry.slot_position_m(&self.plan, slot, waypoint.min(self.last_waypoint()))
    }

    /// Offset of the own slot from the centre's, metres east and north; none before a plan is adopted.
    pub(crate) fn slot_offset_m(&self) -> Option<DVec2> {
        self.geometry.slot_offset_m(self.slot).map(|offset| offset.truncate())
    }

    /// Metres east and north of the first waypoint, and above home. Without a plan, of `here`.
    pub(super) fn local(&self, point: Point, here: Option<Point>) -> DVec3 {
        if self.is_planned() {
            return self.geometry.local(point);
        }
        let position =
            |p: Point| Position { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: 0 };
        let over_ground = Frame::new(position(here.unwrap_or_default())).to_local(position(point)).truncate();
        over_ground.extend(f64::from(point.height_mm) / 1e3)
    }

    /// Height above home at which a slot's aircraft returns, millimetre; none where returns have no layers.
    pub(super) fn return_height_mm(&self, slot: usize) -> Option<i32> {
        Some(self.layers?.height_mm(&self.plan, slot))
    }

    /// The same of the own slot.
    pub(super) fn own_return_height_mm(&self) -> Option<i32> {
        self.own_return_height_mm
    }

    /// Where a slot lands when the aircraft of the slot `leader` lands at `leader_site`.
    pub(super) fn landing_position(
        &self,
        slot: usize,
        leader: usize,
        leader_site: Point,
        height_mm: i32,
    ) -> Point {
        let heading_rad = plan::heading_rad(&self.plan);
        plan::landing_place(&self.plan, slot, leader, leader_site, heading_rad, height_mm)
    }

    /// Hash of the plan; none before it is adopted.
    pub(crate) fn plan_hash(&self) -> Option<u64> {
        self.is_planned().then_some(self.hash)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::super::tests::{MASTER, Member, OTHER, THIRD};
    use super::*;

    fn of(me: VehicleId) -> Assignment {
        let (config, plan) = (Config::new(me, MASTER, 3), Member::plan());
        let slot = plan.slots.iter().position(|&id| id == me).unwrap();
        let route = plan::route(&config, &plan, slot).unwrap();
        let mut assignment = Assignment::none();
        assignment.adopt(&config, 7, plan, slot, route);
        assignment
    }

    #[test]
    fn before_a_plan_is_adopted_nothing_is_assigned() {
        let none = Assignment::none();
        assert_eq!((none.is_planned(), none.flight(), none.plan_hash()), (false, 0, None));
        assert_eq!((none.take_off_index(), none.id_of(0), none.route()), (None, None, &[][..]));
        assert_eq!((none.slot_offset_m(), none.return_height_mm(0)), (None, None));
        // Metres from where the aircraft stands.
        let (here, there) = (Member::stand(MASTER), Member::stand(THIRD));
        assert!((none.local(there, Some(here)) - DVec3::X * 20.0).length() < 0.1);
    }

    #[test]
    fn each_member_takes_off_after_its_predecessors_and_before_its_successor() {
        let members = [MASTER, OTHER, THIRD].map(of);
        let order: Vec<VehicleId> = {
            let plan = members[0].plan();
            plan.take_off_order.iter().map(|&slot| plan.slots[usize::from(slot)]).collect()
        };
        assert_eq!(order.len(), 3);
        for assignment in &members {
            let index = assignment.take_off_index().unwrap();
            assert_eq!(Some(order[index]), assignment.id_of(assignment.slot()));
            assert_eq!(assignment.successor(), order.get(index + 1).copied());
            let before: Vec<_> =
                assignment.predecessors().filter_map(|slot| assignment.id_of(slot)).collect();
            assert_eq!(before, order[..index].iter().rev().copied().collect::<Vec<_>>());
            assert_eq!(assignment.plan_hash(), members[0].plan_hash(), "all hold one plan");
        }
    }

    #[test]
    fn the_own_route_is_that_of_the_own_slot_and_no_position_lies_beyond_the_last_waypoint() {
        for assignment in [MASTER, OTHER, THIRD].map(of) {
            let (slot, last) = (assignment.slot(), assignment.last_waypoint());
            let route: Vec<_> = (0..=last).filter_map(|n| assignment.slot_position(slot, n)).collect();
            let apart_m = |a: Point, b: Point| {
                (assignment.geometry().local(a) - assignment.geometry().local(b)).length()
            };
            assert_eq!(route.len(), assignment.route().len());
            assert!(route.iter().zip(assignment.route()).all(|(&a, &b)| apart_m(a, b) < 0.05));
            assert_eq!(assignment.slot_position(slot, last + 5), assignment.slot_position(slot, last));
            assert_eq!(assignment.slot_position(3, 0), None);
            // The offset is from the centre.
            let centre_m = assignment.slot_position_m(assignment.center(), 0).unwrap();
            let own_m = assignment.slot_position_m(slot, 0).unwrap();
            assert!(((own_m - centre_m).truncate() - assignment.slot_offset_m().unwrap()).length() < 0.05);
        }
    }

    #[test]
    fn a_leader_lands_at_its_site_and_the_others_at_the_landing_distance() {
        let assignment = of(OTHER);
        let (leader, site) = (assignment.center(), Member::stand(MASTER));
        let lands_at = |slot| assignment.local(assignment.landing_position(slot, leader, site, 0), None);
        let site_m = assignment.local(site, None);
        assert!((lands_at(leader) - site_m).length() < 0.05);
        assert!(((lands_at(assignment.slot()) - site_m).length() - 10.0).abs() < 0.05);
    }
}
