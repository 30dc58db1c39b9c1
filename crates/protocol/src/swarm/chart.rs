//! What follows from a plan for everybody and is asked for with every message: the frame of the flight, where
//! slots lie from the centre, who flies which. Worked out once, when the plan is held.

use heapless::Vec;
use wingbeat_geo::formation::Layout;
use wingbeat_geo::{DVec2, DVec3, Frame, Position, Scale};
use wingbeat_wire::{Places, Plan, Point, SWARM_MAX, VehicleId, WAYPOINTS_MAX};

use super::plan;

/// A plan's geometry. Without a plan its frame is nowhere in particular.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    frame: Frame,
    scale: Scale,
    layout: Option<Layout>,
    center: usize,
    /// Where each slot lies from the centre's in flight: metres east, north and up.
    offsets_m: Vec<DVec3, SWARM_MAX>,
    /// The waypoints of the centre in the frame.
    waypoints_m: Vec<DVec2, WAYPOINTS_MAX>,
    slots: Places,
    /// When each slot takes off; nothing where a pilot takes it off.
    turns: Vec<Option<u8>, SWARM_MAX>,
}

fn ground(place: Point) -> Position {
    Position { latitude_e7: place.latitude_e7, longitude_e7: place.longitude_e7, altitude_mm: 0 }
}

impl Chart {
    /// That of a plan; of one whose formation is impossible, without slots: no plan that is held has one.
    pub(crate) fn of(plan: &Plan) -> Self {
        let origin = ground(plan.waypoints.first().copied().unwrap_or_default());
        let frame = Frame::new(origin);
        let mut slots = Places::default();
        slots.learn(plan.slots.iter().copied());
        let formation = plan::formation(plan).ok();
        let offsets_m = formation.as_ref().and_then(|f| f.offsets_m(plan::heading_rad(plan)).ok());
        Self {
            frame,
            scale: Scale::at(origin),
            layout: formation.as_ref().map(|f| f.layout()),
            center: formation.as_ref().map_or(0, |f| f.center_slot()),
            offsets_m: offsets_m.unwrap_or_default().into_iter().collect(),
            waypoints_m: plan.waypoints.iter().map(|&w| frame.to_local(ground(w)).truncate()).collect(),
            slots,
            turns: (0..plan.slots.len())
                .map(|slot| plan.take_off_order.iter().position(|&s| usize::from(s) == slot))
                .map(|turn| turn.map(|turn| turn as u8))
                .collect(),
        }
    }

    /// Metres east and north of the first waypoint, and above home.
    pub(crate) fn local(&self, place: Point) -> DVec3 {
        self.frame.to_local(ground(place)).truncate().extend(f64::from(place.height_mm) / 1e3)
    }

    /// From one place to another that is not far away; without trigonometry, for what is asked of everybody's
    /// every word.
    pub(crate) fn offset_m(&self, from: Point, to: Point) -> DVec3 {
        let position = |p: Point| Position { altitude_mm: p.height_mm, ..ground(p) };
        self.scale.offset_m(position(from), position(to))
    }

    /// Where one comes to from a place by so many metres east, north and up.
    pub(crate) fn moved(&self, from: Point, by_m: DVec3) -> Point {
        let to = self.scale.moved(Position { altitude_mm: from.height_mm, ..ground(from) }, by_m);
        Point { latitude_e7: to.latitude_e7, longitude_e7: to.longitude_e7, height_mm: to.altitude_mm }
    }

    /// The formation, once there is a plan.
    pub(crate) fn layout(&self) -> Option<Layout> {
        self.layout
    }

    /// The slot that leads while nobody is lost.
    pub(crate) fn center(&self) -> usize {
        self.center
    }

    /// Where a slot lies from the centre's in flight: metres east, north and up.
    pub(crate) fn slot_offset_m(&self, slot: usize) -> Option<DVec3> {
        self.offsets_m.get(slot).copied()
    }

    /// The slot of a member, where `is_its` tells of a slot whether it is that member's.
    pub(crate) fn slot_of(&self, id: VehicleId, is_its: impl Fn(usize) -> bool) -> Option<usize> {
        self.slots.find(id, is_its)
    }

    /// A slot's place in the order of take-off; nothing where a pilot takes it off.
    pub(crate) fn turn(&self, slot: usize) -> Option<usize> {
        self.turns.get(slot).copied().flatten().map(usize::from)
    }

    /// Where a slot's aircraft is when the formation is at a waypoint, in the frame of [`Chart::local`].
    pub(crate) fn slot_place_m(&self, plan: &Plan, slot: usize, waypoint: usize) -> Option<DVec3> {
        let (center_m, offset_m) = (self.waypoints_m.get(waypoint)?, self.offsets_m.get(slot)?);
        let up_mm = libm::round(offset_m.z * 1e3) as i32;
        let height_mm = plan.waypoints.get(waypoint)?.height_mm.saturating_add(up_mm);
        Some((center_m + offset_m.truncate()).extend(f64::from(height_mm) / 1e3))
    }

    /// The same as a place on the earth.
    pub(crate) fn slot_place(&self, plan: &Plan, slot: usize, waypoint: usize) -> Option<Point> {
        let place_m = self.slot_place_m(plan, slot, waypoint)?;
        let position = self.frame.to_position(place_m.truncate().extend(0.0));
        Some(Point {
            latitude_e7: position.latitude_e7,
            longitude_e7: position.longitude_e7,
            height_mm: libm::round(place_m.z * 1e3) as i32,
        })
    }
}
