//! Planning one flight: the slot of each aircraft, the order of take-off, and each aircraft's own waypoints.

use core::f64::consts::TAU;

use heapless::Vec;
use wingbeat_geo::position::heading_rad as heading_rad_of;
use wingbeat_geo::{DVec2, DVec3, Formation, Frame, Position, assign};
use wingbeat_wire::{DATAGRAM_LEN_MAX, Point, SWARM_MAX, VehicleId, WAYPOINTS_MAX};

use super::budget::{Least, Term};
use super::path::{Path, TimedPosition, closest_m};
use super::{Config, Manner, distribution, shape};
use crate::Fence;
pub use crate::Route;
use crate::RouteEnd;

/// A whole plan.
pub type Plan = wingbeat_wire::Plan<WAYPOINTS_MAX>;

const _: () =
    assert!(WAYPOINTS_MAX == crate::ROUTE_MAX, "each slot's route has as many waypoints as the plan");

/// A first waypoint nearer than this to where the swarm stands is where it assembles; one farther away
/// is flown to.
const ASSEMBLE_WITHIN_M: f64 = 30.0;

/// Why a flight cannot be planned, or a plan not be flown.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The mission has fewer than two waypoints, or more than a plan.
    #[error("the mission has {0} waypoints, expected 2 to {WAYPOINTS_MAX}")]
    Waypoints(usize),
    /// The mission has as many waypoints as there may be, and the position where the formation assembles is one more.
    #[error("the mission has {0} waypoints and begins away from the swarm, expected at most {most} then", most = WAYPOINTS_MAX - 1)]
    Assembly(usize),
    /// More aircraft than a plan can name.
    #[error("{0} aircraft, expected at most {SWARM_MAX}")]
    Aircraft(usize),
    /// The formation is impossible.
    #[error("formation: {0}")]
    Formation(#[from] wingbeat_geo::FormationError),
    /// Two aircraft have the same id.
    #[error("{0}: two aircraft with this id")]
    DuplicateId(VehicleId),
    /// Slots lie over each other, in the air or on the ground.
    #[error("{name} {found_m} m: slots over each other, expected at least the separation, {least_m} m")]
    Crowded {
        /// Distance between slots, in the air or on the ground.
        name: &'static str,
        /// Value that was found, metres.
        found_m: f64,
        /// Smallest accepted value, metres.
        least_m: f64,
    },
    /// Nearer than the separation budget has it.
    #[error("{name} {found_m:.1} m, expected at least {least_m:.1} m: {term} {term_m:.1} m")]
    Near {
        /// Distance between slots or landing positions.
        name: &'static str,
        /// Value that was found, metres.
        found_m: f64,
        /// Smallest accepted value, metres.
        least_m: f64,
        /// What takes most of it, beside the separation.
        term: Term,
        /// What that takes, metres.
        term_m: f64,
    },
    /// Two aircraft stand nearer than the separation budget has it.
    #[error("{a} and {b} stand {found_m:.1} m apart, expected {least_m:.1} m: {term} {term_m:.1} m")]
    NearOnGround {
        /// An aircraft.
        a: VehicleId,
        /// The other aircraft.
        b: VehicleId,
        /// Value that was found, metres.
        found_m: f64,
        /// Smallest accepted value, metres.
        least_m: f64,
        /// What takes most of it, beside the separation.
        term: Term,
        /// What that takes, metres.
        term_m: f64,
    },
    /// Two aircraft stand at heights that differ by more than the budget has: each flies at heights above its own home.
    #[error(
        "homes of {low} and {high} differ by {found_m:.1} m in height, expected at most {most_m} m (slope_m)"
    )]
    Slope {
        /// The aircraft whose home is the lowest.
        low: VehicleId,
        /// The aircraft whose home is the highest.
        high: VehicleId,
        /// Value that was found, metres.
        found_m: f64,
        /// Largest accepted value, metres.
        most_m: f64,
    },
    /// An aircraft does not broadcast how high its home is.
    #[error("{0}: does not broadcast the altitude of its home, an older program")]
    HomeUnknown(VehicleId),
    /// Two aircraft would come too near one another while they take off.
    #[error("take-off: {a} and {b} come within {distance_m:.1} m, expected at least {least_m:.1} m")]
    Conflict {
        /// An aircraft.
        a: VehicleId,
        /// The other aircraft.
        b: VehicleId,
        /// Smallest distance between their paths, metres.
        distance_m: f64,
        /// Smallest accepted value, metres.
        least_m: f64,
    },
    /// A waypoint of one slot is too low or too high.
    #[error(
        "{aircraft}, slot {slot}, waypoint {waypoint}: height {height_m} m, expected {least_m} to {most_m} m"
    )]
    Height {
        /// The aircraft.
        aircraft: VehicleId,
        /// Its slot.
        slot: usize,
        /// Index of the waypoint, from 0.
        waypoint: usize,
        /// Height above home, metres.
        height_m: i32,
        /// Smallest accepted value, metres.
        least_m: i32,
        /// Largest accepted value, metres.
        most_m: i32,
    },
    /// A waypoint of one slot is too far from where the swarm stands.
    #[error(
        "{aircraft}, slot {slot}, waypoint {waypoint}: {distance_m} m from the start, expected at most {most_m} m"
    )]
    Distance {
        /// The aircraft.
        aircraft: VehicleId,
        /// Its slot.
        slot: usize,
        /// Index of the waypoint, from 0.
        waypoint: usize,
        /// Distance from the start, metres.
        distance_m: i32,
        /// Largest accepted value, metres.
        most_m: i32,
    },
    /// Its slots do not fit one datagram.
    #[error(
        "the plan has {bytes} bytes with one waypoint, expected at most {DATAGRAM_LEN_MAX}: fewer aircraft"
    )]
    TooLong {
        /// Length of the encoded plan.
        bytes: usize,
    },
    /// The heading of the formation is no number.
    #[error("heading: found {0}, expected a number of radians")]
    Heading(f64),
    /// We are not in the plan.
    #[error("the plan has no slot for this aircraft")]
    NotMember,
}

pub(crate) fn position(p: Point) -> Position {
    Position { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: 0 }
}

pub(crate) fn point(p: Position, height_mm: i32) -> Point {
    Point { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, height_mm }
}

pub use super::shape::formation;

/// Heading of the formation in flight, radians clockwise from north.
pub fn heading_rad<const N: usize>(plan: &wingbeat_wire::Plan<N>) -> f64 {
    f64::from(plan.heading_urad) / 1e6
}

/// What a swarm is to fly, before it is known where its members stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// Waypoints of the centre. Where a pilot flies the master, only the height of the first counts: the
    /// formation assembles at that height around the master, and follows.
    pub waypoints: Route,
    /// Heading of the formation; that of the first leg if nothing is given.
    pub heading_rad: Option<f64>,
    /// How the flight ends: a return leads back to the middle of where the swarm took off.
    pub end: RouteEnd,
}

impl Task {
    /// Whether there is one.
    pub fn is_given(&self) -> bool {
        !self.waypoints.is_empty()
    }
}

/// Plans a flight of `aircraft`, each of which stands at a position.
///
/// The formation assembles above the middle of where the aircraft stand (as the reference does), slots go
/// to aircraft at the least sum of squared distances, and the aircraft with the longest path takes off
/// first. Where a pilot flies the master, the formation assembles around the master instead, the master
/// is its centre, and the order of take-off leaves it out.
///
/// # Errors
/// Names what makes the flight impossible.
pub fn make(config: &Config, aircraft: &[(VehicleId, Point)], task: &Task) -> Result<Plan, PlanError> {
    let draft = draft(config, aircraft, task)?;
    draft.check(config)?;
    Ok(draft.plan)
}

/// A plan of which it is not known yet whether it can be flown.
pub struct Draft {
    /// The plan.
    pub plan: Plan,
    formation: Formation,
    ground: Vec<DVec2, SWARM_MAX>,
    air: Vec<DVec2, SWARM_MAX>,
    slot_of: Vec<usize, SWARM_MAX>,
}

impl Draft {
    /// Whether it can be flown: its slots fit a datagram, every slot's waypoints are where they may be, and no two
    /// aircraft come too near to each other while they take off.
    ///
    /// # Errors
    /// Names what makes the flight impossible.
    pub fn check(&self, config: &Config) -> Result<(), PlanError> {
        let Self { plan, formation, ground, air, slot_of } = self;
        distribution::first_waypoints(plan)?;
        for slot in 0..plan.slots.len() {
            waypoints_in(formation, config, plan, slot).try_for_each(|waypoint| waypoint.map(drop))?;
        }
        let height_m = f64::from(plan.waypoints[0].height_mm) / 1e3;
        let id = |aircraft: usize| plan.slots[slot_of[aircraft]];
        let Least { distance_m: least_m, term, term_m } = config.budget().ground();
        let pairs = (0..ground.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        let nearest =
            pairs.map(|(a, b)| (ground[a].distance(ground[b]), a, b)).min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((found_m, a, b)) = nearest.filter(|(found_m, ..)| *found_m < least_m) {
            return Err(PlanError::NearOnGround { a: id(a), b: id(b), found_m, least_m, term, term_m });
        }
        let least_m = config.budget().take_off_m();
        match (TakeOffPaths { ground, air, slot_of, formation, height_m }).conflict(config, plan) {
            Some((a, b, distance_m)) => Err(PlanError::Conflict { a: id(a), b: id(b), distance_m, least_m }),
            None => Ok(()),
        }
    }
}

/// The plan of [`make`], before it is known whether it can be flown.
///
/// # Errors
/// There is no such formation, or it cannot be flown.
pub fn draft(config: &Config, aircraft: &[(VehicleId, Point)], task: &Task) -> Result<Draft, PlanError> {
    let n = aircraft.len();
    let formation = shape::configured(config.layout, &config.offsets, n, config.distance_m)?;
    if n > SWARM_MAX {
        return Err(PlanError::Aircraft(n));
    }
    if let Some(i) = (1..n).find(|&i| aircraft[..i].iter().any(|(id, _)| *id == aircraft[i].0)) {
        return Err(PlanError::DuplicateId(aircraft[i].0));
    }
    let least_m = config.separation_m;
    for (name, found_m) in
        [("distance_m", config.distance_m), ("landing_distance_m", config.landing_distance_m)]
    {
        if n > 1 && found_m < least_m {
            return Err(PlanError::Crowded { name, found_m, least_m });
        }
    }
    let budget = config.budget();
    if n > 1 {
        let spacing = budget.spacing(0.0);
        // Closer formations are flown where that is accepted; what depends on the speed is judged where that is known.
        if !config.accepts_close {
            near("distance_m", config.distance_m, spacing)?;
        }
        near("landing_distance_m", config.landing_distance_m, budget.landing())?;
    }
    let master = aircraft.iter().position(|(id, _)| *id == config.master).ok_or(PlanError::NotMember)?;
    let frame = Frame::new(position(aircraft[0].1));
    let local = |p: Point| frame.to_local(position(p)).truncate();
    let ground: Vec<DVec2, SWARM_MAX> = aircraft.iter().map(|(_, p)| local(*p)).collect();
    let middle = if config.piloted_master { ground[master] } else { ground.iter().sum::<DVec2>() / n as f64 };
    let mission = &task.waypoints;
    let mut waypoints = Route::new();
    let assemble = |first: Point| point(frame.to_position(middle.extend(0.0)), first.height_mm);
    if config.piloted_master {
        waypoints.extend(mission.first().map(|first| assemble(*first)));
    } else if mission.len() >= 2 {
        let first = usize::from(local(mission[0]).distance(middle) <= ASSEMBLE_WITHIN_M);
        let _ = waypoints.push(assemble(mission[0]));
        waypoints.extend_from_slice(&mission[first..]).map_err(|_| PlanError::Assembly(mission.len()))?;
        let middle = frame.to_position(middle.extend(0.0));
        task.end.add_to(&mut waypoints, Some(middle)).map_err(|_| PlanError::Assembly(mission.len()))?;
    }
    if waypoints.is_empty() {
        return Err(PlanError::Waypoints(mission.len()));
    }
    let heading = match (task.heading_rad, waypoints.get(1)) {
        (Some(heading), _) if !heading.is_finite() => return Err(PlanError::Heading(heading)),
        (Some(heading), _) => heading - libm::floor(heading / TAU) * TAU,
        (None, Some(second)) => heading_rad_of(local(waypoints[0]), local(*second)),
        (None, None) => 0.0,
    };
    let air: Vec<DVec2, SWARM_MAX> = (0..n).map(|slot| middle + formation.offset_m(slot, heading)).collect();
    let slot_of: Vec<usize, SWARM_MAX> = match config.piloted_master {
        true => assign_around(&ground, &air, master, formation.center_slot()),
        false => assign(&ground, &air).into_iter().collect(),
    };
    let mut plan = Plan {
        distance_mm: (config.distance_m * 1e3) as u32,
        landing_distance_mm: (config.landing_distance_m * 1e3) as u32,
        heading_urad: (heading * 1e6) as u32,
        waypoints,
        ..Plan::default()
    };
    shape::write(&mut plan, &formation);
    let _ = plan.slots.resize(n, VehicleId(0));
    for (i, &slot) in slot_of.iter().enumerate() {
        plan.slots[slot] = aircraft[i].0;
    }
    let mut order: Vec<(i64, u8), SWARM_MAX> = slot_of
        .iter()
        .enumerate()
        .filter(|(i, _)| !(config.piloted_master && *i == master))
        .map(|(i, &slot)| (-((ground[i].distance(air[slot]) * 1e3) as i64), slot as u8))
        .collect();
    order.sort_unstable();
    plan.take_off_order = order.iter().map(|(_, slot)| *slot).collect();
    Ok(Draft { plan, formation, ground, air, slot_of })
}

/// Whether a distance is within the separation budget.
fn near(name: &'static str, found_m: f64, least: Least) -> Result<(), PlanError> {
    let Least { distance_m: least_m, term, term_m } = least;
    if found_m < least_m { Err(PlanError::Near { name, found_m, least_m, term, term_m }) } else { Ok(()) }
}

/// Height of the first, vertical part of the take-off to `height_mm` (reference, safe take-off).
pub fn first_height_mm(height_mm: i32) -> i32 {
    match height_mm {
        ..=5_000 => 2_000,
        10_000.. => 5_000,
        h => h / 2,
    }
}

/// ArduCopter's usual speeds (WPNAV_SPEED_UP, WPNAV_SPEED), for the times of the planned paths.
const CLIMB_M_S: f64 = 2.5;
const CRUISE_M_S: f64 = 5.0;
/// Between one's passing its first height and the next one's leaving the ground.
const HANDOVER_S: f64 = 0.5;

/// The paths of a take-off: straight up to the first height, straight to the slot.
struct TakeOffPaths<'a> {
    ground: &'a [DVec2],
    air: &'a [DVec2],
    slot_of: &'a [usize],
    formation: &'a Formation,
    /// Of the centre.
    height_m: f64,
}

impl TakeOffPaths<'_> {
    fn corners(&self, aircraft: usize) -> [DVec3; 3] {
        let (home, slot) = (self.ground[aircraft], self.slot_of[aircraft]);
        let height_m = self.height_m + self.formation.height_m(slot);
        let first_m = f64::from(first_height_mm((height_m * 1e3) as i32)) / 1e3;
        [home.extend(0.0), home.extend(first_m), self.air[slot].extend(height_m)]
    }

    fn timed(&self, config: &Config, plan: &Plan, aircraft: usize) -> Vec<TimedPosition, 3> {
        let [home, above, slot] = self.corners(aircraft);
        let climb_s = (above - home).length() / CLIMB_M_S;
        let own = self.slot_of[aircraft] as u8;
        let mut timed = Vec::new();
        let Some(index) = plan.take_off_order.iter().position(|&s| s == own) else {
            let _ = timed.push(TimedPosition { time_s: 0.0, at_m: home });
            return timed;
        };
        let wait_s = match config.take_off {
            Manner::Sequential => index as f64 * (climb_s + HANDOVER_S),
            Manner::Simultaneous => 0.0,
        };
        let cruise_s = (slot - above).length() / CRUISE_M_S;
        let _ = timed.push(TimedPosition { time_s: wait_s, at_m: home });
        let _ = timed.push(TimedPosition { time_s: wait_s + climb_s, at_m: above });
        let _ = timed.push(TimedPosition { time_s: wait_s + climb_s + cruise_s, at_m: slot });
        timed
    }

    /// The first two that come nearer than the separation. One after the other, as their times go. All at
    /// once, at whatever times: one that receives the release late must be as safe.
    fn conflict(&self, config: &Config, plan: &Plan) -> Option<(usize, usize, f64)> {
        let (n, least_m) = (self.ground.len(), config.budget().take_off_m());
        (0..n).flat_map(|a| (0..a).map(move |b| (a, b))).find_map(|(a, b)| {
            let distance_m = match config.take_off {
                Manner::Sequential => closest_m(&self.timed(config, plan, a), &self.timed(config, plan, b)),
                Manner::Simultaneous => {
                    let legs = |[home, above, slot]: [DVec3; 3]| {
                        [Path { from_m: home, to_m: above }, Path { from_m: above, to_m: slot }]
                    };
                    let (a, b) = (legs(self.corners(a)), legs(self.corners(b)));
                    a.iter().flat_map(|x| b.iter().map(|y| x.distance_m(y))).fold(f64::INFINITY, f64::min)
                }
            };
            (distance_m < least_m).then_some((a, b, distance_m))
        })
    }
}

/// The assignment in which `master` flies the slot `center` whatever it costs.
fn assign_around(ground: &[DVec2], air: &[DVec2], master: usize, center: usize) -> Vec<usize, SWARM_MAX> {
    let but = |places: &[DVec2], one: usize| -> Vec<DVec2, SWARM_MAX> {
        places.iter().enumerate().filter(|(i, _)| *i != one).map(|(_, p)| *p).collect()
    };
    let others = assign(&but(ground, master), &but(air, center));
    let mut others = others.iter().map(|&slot| if slot < center { slot } else { slot + 1 });
    (0..ground.len()).map(|i| if i == master { center } else { others.next().unwrap_or(center) }).collect()
}

/// The waypoints of one slot: the centre's, moved by the slot's offset.
///
/// # Errors
/// Names the first waypoint that would lie too low, too high or too far away.
pub fn route(config: &Config, plan: &Plan, slot: usize) -> Result<Route, PlanError> {
    let mut route = Route::new();
    for waypoint in waypoints_in(&formation(plan)?, config, plan, slot) {
        // There is as much room as in the plan.
        let _ = route.push(waypoint?);
    }
    Ok(route)
}

/// The same, as far as it is within the fence of the aircraft that stands at `here`: a plan is another's word.
///
/// # Errors
/// As of [`route`], and the first waypoint that is too far from `here`.
pub(super) fn route_from(
    config: &Config,
    plan: &Plan,
    slot: usize,
    here: Option<Point>,
) -> Result<Route, PlanError> {
    let route = route(config, plan, slot)?;
    let Some(here) = here else { return Ok(route) };
    for (waypoint, &at) in route.iter().enumerate() {
        let distance_m = Fence::distance_m(position(here), at);
        if distance_m > config.distance_most_m {
            let (distance_m, most_m) = (distance_m as i32, config.distance_most_m as i32);
            return Err(PlanError::Distance {
                aircraft: plan.slots[slot],
                slot,
                waypoint,
                distance_m,
                most_m,
            });
        }
    }
    Ok(route)
}

fn waypoints_in(
    formation: &Formation,
    config: &Config,
    plan: &Plan,
    slot: usize,
) -> impl Iterator<Item = Result<Point, PlanError>> {
    let offset = formation.offset_m(slot, heading_rad(plan));
    let up_m = formation.height_m(slot);
    let frame = Frame::new(position(plan.waypoints[0]));
    plan.waypoints.iter().enumerate().map(move |(waypoint, &w)| {
        let local = frame.to_local(position(w)).truncate() + offset;
        let height_m = f64::from(w.height_mm) / 1e3 + up_m;
        if !(config.height_least_m..=config.height_most_m).contains(&height_m) {
            return Err(PlanError::Height {
                aircraft: plan.slots[slot],
                slot,
                waypoint,
                height_m: height_m as i32,
                least_m: config.height_least_m as i32,
                most_m: config.height_most_m as i32,
            });
        }
        if local.length() > config.distance_most_m {
            return Err(PlanError::Distance {
                aircraft: plan.slots[slot],
                slot,
                waypoint,
                distance_m: local.length() as i32,
                most_m: config.distance_most_m as i32,
            });
        }
        let height_mm = libm::round(height_m * 1e3) as i32;
        Ok(point(frame.to_position(local.extend(0.0)), height_mm))
    })
}

/// Where a slot lands when the aircraft of the slot `leader` lands at `leader_at`: the flight formation, drawn
/// together. If the formation were impossible, where the leader is: no plan that is held has one.
pub fn landing_place(
    plan: &Plan,
    slot: usize,
    leader: usize,
    leader_at: Point,
    heading_rad: f64,
    height_mm: i32,
) -> Point {
    let drawn_together =
        formation(plan).and_then(|f| Ok(f.with_distance_m(f64::from(plan.landing_distance_mm) / 1e3)?));
    let Ok(formation) = drawn_together else { return leader_at };
    let offset = formation.offset_m(slot, heading_rad) - formation.offset_m(leader, heading_rad);
    let frame = Frame::new(position(leader_at));
    point(frame.to_position(DVec3::new(offset.x, offset.y, 0.0)), height_mm)
}

/// The position so far east and north of another, at its height.
pub(crate) fn moved(from: Point, east_m: f64, north_m: f64) -> Point {
    point(Frame::new(position(from)).to_position(DVec3::new(east_m, north_m, 0.0)), from.height_mm)
}

/// Heights at which the aircraft of a flight return, each in a layer of its own above all waypoints, so that no
/// two meet on their paths home.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layers {
    lowest_mm: i32,
    apart_mm: i32,
    count: usize,
}

impl Layers {
    /// Those of a plan; nothing where one flies alone, where a pilot flies the master (the swarm then flies at
    /// whatever height the pilot does), or where nothing is left below the greatest height.
    pub fn of(config: &Config, plan: &Plan) -> Option<Self> {
        let formation = formation(plan).ok()?;
        let up_m = (0..formation.count()).map(|slot| formation.height_m(slot)).fold(0.0, f64::max);
        let top_mm = plan.waypoints.iter().map(|w| w.height_mm).max()? + libm::ceil(up_m * 1e3) as i32;
        let apart_mm = libm::ceil(config.clear_m() * 1e3) as i32;
        let lowest_mm = top_mm + apart_mm + ARRIVAL_MM;
        let room_mm = libm::floor(config.height_most_m * 1e3) as i32 - lowest_mm;
        if plan.slots.len() < 2 || config.piloted_master || room_mm < 0 {
            return None;
        }
        Some(Self { lowest_mm, apart_mm, count: (room_mm / apart_mm) as usize + 1 })
    }

    /// The layer of a slot: the last to take off has the lowest, because its path home passes over the fewest.
    /// Those for whom no layer is left share the lowest.
    pub fn height_mm(&self, plan: &Plan, slot: usize) -> i32 {
        match rank(plan, slot) {
            rank if rank < self.count => self.lowest_mm + self.apart_mm * rank as i32,
            _ => self.lowest_mm,
        }
    }

    /// Whether the two have the same layer.
    pub fn are_shared(&self, plan: &Plan, a: usize, b: usize) -> bool {
        self.height_mm(plan, a) == self.height_mm(plan, b)
    }
}

/// Above the highest waypoint aircraft may hover by so much (their arrival's tolerance).
const ARRIVAL_MM: i32 = 2_500;

/// Place in the order of take-off from its end.
pub(super) fn rank(plan: &Plan, slot: usize) -> usize {
    plan.take_off_order.iter().rev().position(|&s| usize::from(s) == slot).unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(east_m: f64, north_m: f64) -> Point {
        let origin = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 0 };
        point(Frame::new(origin).to_position(DVec3::new(east_m, north_m, 0.0)), 0)
    }

    #[test]
    fn a_piloted_master_is_the_centre_where_it_stands_and_does_not_take_off() {
        let mut config = Config::new(VehicleId(3), VehicleId(3), 5);
        config.piloted_master = true;
        let aircraft: Vec<_, 8> = (0..5).map(|i| (VehicleId(1 + i), at(10.0 * i as f64, 0.0))).collect();
        let waypoints = Route::from_slice(&[Point { height_mm: 19_000, ..at(0.0, 0.0) }]).unwrap();
        let mut task =
            Task { waypoints, heading_rad: Some(-core::f64::consts::FRAC_PI_2), ..Task::default() };
        let plan = make(&config, &aircraft, &task).unwrap();
        let center = formation(&plan).unwrap().center_slot();
        assert_eq!(plan.slots[center], VehicleId(3));
        assert_eq!(plan.take_off_order.len(), 4);
        assert!(!plan.take_off_order.contains(&(center as u8)));
        assert!((heading_rad(&plan) - 1.5 * core::f64::consts::PI).abs() < 1e-5);
        let own = route(&config, &plan, center).unwrap();
        assert_eq!((own.len(), own[0].height_mm), (1, 19_000));
        assert!(Frame::new(position(own[0])).to_local(position(at(20.0, 0.0))).truncate().length() < 0.1);
        task.heading_rad = Some(f64::NAN);
        assert!(matches!(make(&config, &aircraft, &task), Err(PlanError::Heading(_))));
    }

    #[test]
    fn muscop_31_a_mission_has_as_many_waypoints_as_a_plan_with_the_one_where_the_formation_assembles() {
        let config = Config::new(VehicleId(1), VehicleId(1), 2);
        let aircraft = [(VehicleId(1), at(0.0, 0.0)), (VehicleId(2), at(60.0, 0.0))];
        let planned = |count: usize, from_m: f64| {
            let waypoint = |n: usize| Point { height_mm: 19_000, ..at(30.0, from_m + n as f64) };
            let task =
                Task { waypoints: (0..count).map(waypoint).collect(), heading_rad: None, ..Task::default() };
            make(&config, &aircraft, &task).map(|plan| plan.waypoints.len())
        };
        assert_eq!((planned(600, 0.0), planned(599, 100.0)), (Ok(600), Ok(600)));
        let refused = planned(600, 100.0).unwrap_err();
        assert_eq!(refused, PlanError::Assembly(600));
        extern crate std;
        let text = "the mission has 600 waypoints and begins away from the swarm, expected at most 599 then";
        assert_eq!(std::string::ToString::to_string(&refused), text);
    }

    #[test]
    fn others_expect_an_aircraft_where_its_own_route_leads_it() {
        use wingbeat_geo::formation::{Layout, Offset, Offsets};
        let place = |right_dm, up_dm| Offset { right_dm, ahead_dm: 0, up_dm };
        let mut config = Config::new(VehicleId(1), VehicleId(1), 3);
        config.layout = Layout::Custom;
        config.offsets = Offsets::from_slice(&[place(0, 0), place(600, 55), place(-600, -40)]).unwrap();
        let aircraft: Vec<_, 8> = (0..3).map(|i| (VehicleId(1 + i), at(20.0 * i as f64, 0.0))).collect();
        let waypoints = [(20.0, 0.0), (20.0, 100.0), (150.0, 100.0)];
        let waypoints = waypoints.map(|(east, north)| Point { height_mm: 19_000, ..at(east, north) });
        let task =
            Task { waypoints: Route::from_slice(&waypoints).unwrap(), heading_rad: None, ..Task::default() };
        let plan = make(&config, &aircraft, &task).unwrap();
        let geometry = super::super::geometry::Geometry::of(&plan);
        for slot in 0..3 {
            let own = route(&config, &plan, slot).unwrap();
            for (waypoint, there) in own.iter().enumerate() {
                assert_eq!(
                    geometry.slot_position(&plan, slot, waypoint),
                    Some(*there),
                    "slot {slot}, waypoint {waypoint}"
                );
            }
        }
        assert_eq!(route(&config, &plan, 1).unwrap()[0].height_mm, 24_500);
    }
}
