//! The geometry of a plan, calculated once when the plan is adopted, because every message needs it: the frame of
//! the flight, the offsets of the slots from the centre, the order of take-off.

use heapless::Vec;
use wingbeat_geo::formation::Layout;
use wingbeat_geo::{DVec2, DVec3, Frame, Position, Scale};
use wingbeat_wire::{Point, SWARM_MAX, WAYPOINTS_MAX};

use super::plan::{self, Plan};

/// A plan's geometry. Without a plan its frame is arbitrary.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    frame: Frame,
    scale: Scale,
    layout: Option<Layout>,
    center: usize,
    /// Offsets of the slots from the centre's in flight: metres east, north and up.
    offsets_m: Vec<DVec3, SWARM_MAX>,
    /// The waypoints of the centre in the frame.
    waypoints_m: Vec<DVec2, WAYPOINTS_MAX>,
    /// Index of each slot in the order of take-off; none where a pilot takes it off.
    take_off_indices: Vec<Option<u8>, SWARM_MAX>,
}

fn ground(point: Point) -> Position {
    Position { latitude_e7: point.latitude_e7, longitude_e7: point.longitude_e7, altitude_mm: 0 }
}

impl Geometry {
    /// That of a plan. It has no slots where the formation is impossible; no adopted plan has such a formation.
    pub(crate) fn of(plan: &Plan) -> Self {
        let origin = ground(plan.waypoints.first().copied().unwrap_or_default());
        let frame = Frame::new(origin);
        let formation = plan::formation(plan).ok();
        let offsets_m = formation.as_ref().and_then(|f| f.offsets_m(plan::heading_rad(plan)).ok());
        Self {
            frame,
            scale: Scale::at(origin),
            layout: formation.as_ref().map(|f| f.layout()),
            center: formation.as_ref().map_or(0, |f| f.center_slot()),
            offsets_m: offsets_m.unwrap_or_default().into_iter().collect(),
            waypoints_m: plan.waypoints.iter().map(|&w| frame.to_local(ground(w)).truncate()).collect(),
            take_off_indices: (0..plan.slots.len())
                .map(|slot| plan.take_off_order.iter().position(|&s| usize::from(s) == slot))
                .map(|index| index.map(|index| index as u8))
                .collect(),
        }
    }

    /// Metres east and north of the first waypoint, and above home.
    pub(crate) fn local(&self, point: Point) -> DVec3 {
        self.frame.to_local(ground(point)).truncate().extend(f64::from(point.height_mm) / 1e3)
    }

    /// From one position to another nearby, metres east, north and up. Without trigonometry, because every message
    /// of every member needs it.
    pub(crate) fn offset_m(&self, from: Point, to: Point) -> DVec3 {
        let position = |p: Point| Position { altitude_mm: p.height_mm, ..ground(p) };
        self.scale.offset_m(position(from), position(to))
    }

    /// The position so many metres east, north and up of another.
    pub(crate) fn moved(&self, from: Point, by_m: DVec3) -> Point {
        let to = self.scale.moved(Position { altitude_mm: from.height_mm, ..ground(from) }, by_m);
        Point { latitude_e7: to.latitude_e7, longitude_e7: to.longitude_e7, height_mm: to.altitude_mm }
    }

    /// The layout of the formation, once there is a plan.
    pub(crate) fn layout(&self) -> Option<Layout> {
        self.layout
    }

    /// The slot that leads while no member is lost.
    pub(crate) fn center(&self) -> usize {
        self.center
    }

    /// Offset of a slot from the centre's in flight: metres east, north and up.
    pub(crate) fn slot_offset_m(&self, slot: usize) -> Option<DVec3> {
        self.offsets_m.get(slot).copied()
    }

    /// Index of a slot in the order of take-off; none where a pilot takes it off.
    pub(crate) fn take_off_index(&self, slot: usize) -> Option<usize> {
        self.take_off_indices.get(slot).copied().flatten().map(usize::from)
    }

    /// Position of a slot when the formation is at a waypoint, in the frame of [`Geometry::local`].
    pub(crate) fn slot_position_m(&self, plan: &Plan, slot: usize, waypoint: usize) -> Option<DVec3> {
        let (center_m, offset_m) = (self.waypoints_m.get(waypoint)?, self.offsets_m.get(slot)?);
        let up_mm = libm::round(offset_m.z * 1e3) as i32;
        let height_mm = plan.waypoints.get(waypoint)?.height_mm.saturating_add(up_mm);
        Some((center_m + offset_m.truncate()).extend(f64::from(height_mm) / 1e3))
    }

    /// The same on the earth.
    pub(crate) fn slot_position(&self, plan: &Plan, slot: usize, waypoint: usize) -> Option<Point> {
        let slot_m = self.slot_position_m(plan, slot, waypoint)?;
        let position = self.frame.to_position(slot_m.truncate().extend(0.0));
        Some(Point {
            latitude_e7: position.latitude_e7,
            longitude_e7: position.longitude_e7,
            height_mm: libm::round(slot_m.z * 1e3) as i32,
        })
    }
}
