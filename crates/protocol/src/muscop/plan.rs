//! Planning one flight: who flies which slot, who takes off when, and each aircraft's own waypoints.

use heapless::Vec;
use wingbeat_geo::position::heading_rad;
use wingbeat_geo::{DVec2, DVec3, Formation, Frame, Position, assign};
use wingbeat_wire::{DATAGRAM_LEN_MAX, Plan, Point, SWARM_MAX, VehicleId, WAYPOINTS_MAX};

use super::{Config, shape};

/// A first waypoint nearer than this to where the swarm stands is where it assembles; one farther away
/// is flown to.
const ASSEMBLE_WITHIN_M: f64 = 30.0;

/// Why a flight cannot be planned, or a plan not be flown.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The mission has fewer than two waypoints.
    #[error("the mission has {0} waypoints, expected 2 to {WAYPOINTS_MAX}")]
    Waypoints(usize),
    /// More aircraft than a plan can name.
    #[error("{0} aircraft, expected at most {SWARM_MAX}")]
    Aircraft(usize),
    /// The formation is impossible.
    #[error("formation: {0}")]
    Formation(#[from] wingbeat_geo::FormationError),
    /// A waypoint of one slot is too low or too high.
    #[error("slot {slot}, waypoint {waypoint}: height {height_m} m, expected {least_m} to {most_m} m")]
    Height {
        /// Whose.
        slot: usize,
        /// Which.
        waypoint: usize,
        /// Found.
        height_m: i32,
        /// Expected at least.
        least_m: i32,
        /// Expected at most.
        most_m: i32,
    },
    /// A waypoint of one slot is too far from where the swarm stands.
    #[error("slot {slot}, waypoint {waypoint}: {distance_m} m from the start, expected at most {most_m} m")]
    Distance {
        /// Whose.
        slot: usize,
        /// Which.
        waypoint: usize,
        /// Found.
        distance_m: i32,
        /// Expected at most.
        most_m: i32,
    },
    /// It does not fit one datagram.
    #[error("the plan has {bytes} bytes, expected at most {DATAGRAM_LEN_MAX}: fewer waypoints or aircraft")]
    TooLong {
        /// Found.
        bytes: usize,
    },
    /// We are not in the plan.
    #[error("the plan has no slot for this aircraft")]
    NotMember,
}

/// An aircraft's own waypoints.
pub type Route = Vec<Point, WAYPOINTS_MAX>;

fn position(p: Point) -> Position {
    Position { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: 0 }
}

fn point(p: Position, height_mm: i32) -> Point {
    Point { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, height_mm }
}

fn heading(plan: &Plan) -> f64 {
    f64::from(plan.heading_urad) / 1e6
}

/// Plans a flight of `aircraft` (who stands where) over `mission`.
///
/// The formation assembles above the middle of where the aircraft stand (as the reference does), its
/// heading is that of the first leg, slots go to aircraft at the least sum of squared distances, and the
/// aircraft with the longest way takes off first.
///
/// # Errors
/// Names what makes the flight impossible.
pub fn make(config: &Config, aircraft: &[(VehicleId, Point)], mission: &[Point]) -> Result<Plan, PlanError> {
    if mission.len() < 2 || mission.len() > WAYPOINTS_MAX {
        return Err(PlanError::Waypoints(mission.len()));
    }
    let n = aircraft.len();
    let formation = shape::configured(config.layout, &config.offsets, n, config.distance_m)?;
    if n > SWARM_MAX {
        return Err(PlanError::Aircraft(n));
    }
    let frame = Frame::new(position(aircraft[0].1));
    let local = |p: Point| frame.to_local(position(p)).truncate();
    let ground: Vec<DVec2, SWARM_MAX> = aircraft.iter().map(|(_, p)| local(*p)).collect();
    let middle = ground.iter().sum::<DVec2>() / n as f64;
    let assemble = point(frame.to_position(middle.extend(0.0)), mission[0].height_mm);
    let mut waypoints = Route::new();
    let _ = waypoints.push(assemble);
    let first = usize::from(local(mission[0]).distance(middle) <= ASSEMBLE_WITHIN_M);
    waypoints.extend_from_slice(&mission[first..]).map_err(|_| PlanError::Waypoints(mission.len() + 1))?;
    let heading = heading_rad(local(waypoints[0]), local(waypoints[1]));
    let air: Vec<DVec2, SWARM_MAX> = (0..n).map(|slot| middle + formation.offset_m(slot, heading)).collect();
    let slot_of = assign(&ground, &air);
    let mut plan = Plan {
        distance_mm: (config.distance_m * 1e3) as u32,
        landing_distance_mm: (config.landing_distance_m * 1e3) as u32,
        heading_urad: (heading * 1e6) as u32,
        waypoints,
        ..Plan::default()
    };
    shape::tell(&mut plan, &formation);
    let _ = plan.slots.resize(n, VehicleId(0));
    for (i, &slot) in slot_of.iter().enumerate() {
        plan.slots[slot] = aircraft[i].0;
    }
    let mut order: Vec<(i64, u8), SWARM_MAX> = slot_of
        .iter()
        .enumerate()
        .map(|(i, &slot)| (-((ground[i].distance(air[slot]) * 1e3) as i64), slot as u8))
        .collect();
    order.sort_unstable();
    plan.take_off_order = order.iter().map(|(_, slot)| *slot).collect();
    shape::fits(&plan)?;
    for slot in 0..n {
        route_in(&formation, config, &plan, slot)?;
    }
    Ok(plan)
}

/// The waypoints of one slot: the centre's, moved by the slot's offset.
///
/// # Errors
/// Names the first waypoint that would lie too low, too high or too far away.
pub fn route(config: &Config, plan: &Plan, slot: usize) -> Result<Route, PlanError> {
    route_in(&shape::formation(plan)?, config, plan, slot)
}

fn route_in(formation: &Formation, config: &Config, plan: &Plan, slot: usize) -> Result<Route, PlanError> {
    let offset = formation.offset_m(slot, heading(plan));
    let up_m = formation.height_m(slot);
    let frame = Frame::new(position(plan.waypoints[0]));
    let mut route = Route::new();
    for (waypoint, &w) in plan.waypoints.iter().enumerate() {
        let local = frame.to_local(position(w)).truncate() + offset;
        let height_m = f64::from(w.height_mm) / 1e3 + up_m;
        if !(config.height_least_m..=config.height_most_m).contains(&height_m) {
            return Err(PlanError::Height {
                slot,
                waypoint,
                height_m: height_m as i32,
                least_m: config.height_least_m as i32,
                most_m: config.height_most_m as i32,
            });
        }
        if local.length() > config.distance_most_m {
            return Err(PlanError::Distance {
                slot,
                waypoint,
                distance_m: local.length() as i32,
                most_m: config.distance_most_m as i32,
            });
        }
        let height_mm = libm::round(height_m * 1e3) as i32;
        let _ = route.push(point(frame.to_position(local.extend(0.0)), height_mm));
    }
    Ok(route)
}

/// Where a slot lands when the centre lands at `center`: the flight formation, drawn together.
pub fn landing_place(plan: &Plan, slot: usize, center: Point, height_mm: i32) -> Point {
    let drawn_together = shape::formation(plan)
        .and_then(|f| Ok(f.with_distance_m(f64::from(plan.landing_distance_mm) / 1e3)?));
    let Ok(formation) = drawn_together else { return center };
    let offset = formation.offset_m(slot, heading(plan));
    let frame = Frame::new(position(center));
    point(frame.to_position(DVec3::new(offset.x, offset.y, 0.0)), height_mm)
}

/// A number that two aircraft share if and only if they hold the same plan (FNV-1a over its numbers).
pub fn hash(plan: &Plan) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut eat = |value: u64| {
        for byte in value.to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    eat(u64::from(plan.layout));
    eat(u64::from(plan.distance_mm));
    eat(u64::from(plan.landing_distance_mm));
    eat(u64::from(plan.heading_urad));
    plan.slots.iter().for_each(|id| eat(id.0));
    plan.take_off_order.iter().for_each(|&slot| eat(u64::from(slot)));
    for w in &plan.waypoints {
        eat(w.latitude_e7 as u64);
        eat(w.longitude_e7 as u64);
        eat(w.height_mm as u64);
    }
    for o in &plan.offsets {
        [o.right_dm, o.ahead_dm, o.up_dm].into_iter().for_each(|dm| eat(dm as u64));
    }
    hash
}
