//! Where this aircraft can land: at its own position of the landing formation, where it is, or aside.

use wingbeat_geo::{DVec2, DVec3, Frame};
use wingbeat_wire::{Ending, Point};

use super::super::plan;
use super::legs::REPORTED_HOLDING;
use super::traffic::Track;
use super::{Clearance, Path, PathStatus};
use crate::Fence;

/// Distances nearer than this are the same, metres.
const NEARER_M: f64 = 0.1;

/// One that returns and is nearer to its home over the ground than this comes down within a quarter of a minute: it flies
/// there, waits 5 s over it, and descends the height of a layer, metres. One that the operator sent home holds farther out while
/// its column is not clear.
const NEARS_HOME_M: f64 = 20.0;
/// Lower than this no aircraft that lands flies aside any more, millimetre.
const ASIDE_LEAST_MM: i32 = 4_000;
/// Of two that land next to each other the one that is so much higher flies aside: more than the error of either height,
/// millimetre.
const LOWER_MM: i32 = 2_000;
/// Positions aside of a hover position are searched on so many rings, so far apart, in so many directions.
const ASIDE_RINGS: u32 = 5;
/// See [`ASIDE_RINGS`], metres.
const ASIDE_RING_M: f64 = 4.0;
/// See [`ASIDE_RINGS`].
const ASIDE_DIRECTIONS: u32 = 16;

/// A member flies at most this far between two reports at the end of its way, metres.
const BETWEEN_REPORTS_M: f64 = 0.3;

/// How many rings of sites are searched, each so far from the next as a path keeps clear.
pub(in super::super) const SITE_RINGS: u32 = 6;

impl Clearance<'_> {
    /// The own position around the leader's landing site, at the present height.
    pub(crate) fn landing_position(&self) -> Option<Point> {
        let (leader_site, here) = self.landing.leader_site().zip(self.ownship.point())?;
        let (slot, leader) = (self.assignment.slot(), self.members.leader());
        Some(self.assignment.landing_position(slot, leader, leader_site, here.height_mm))
    }

    /// Whether the path to our landing position is clear. Members that wait on it leave first.
    pub(crate) fn landing_path(&self) -> PathStatus {
        let Some((site, here)) = self.landing_position().zip(self.ownship.point()) else {
            return PathStatus::Occupied;
        };
        // It does not know where it is as well as was planned for: its slot is farther from the others.
        let [landing_m, spacing_m] =
            [self.assignment.plan().landing_distance_mm, self.assignment.plan().distance_mm]
                .map(|mm| f64::from(mm) / 1e3);
        if self.landing.is_too_near(landing_m, spacing_m) {
            return PathStatus::Blocked;
        }
        let paths = [self.path(here, site), self.descent(site)];
        let clear_m = self.clear_m();
        let near = |at: Point| paths.iter().any(|p| self.path(at, at).distance_m(p) < clear_m);
        let last = self.assignment.last_waypoint();
        let absent = self.members.absent();
        let mut status = PathStatus::Clear;
        for slot in self.members.peers().iter().filter(|&slot| slot != self.members.leader()) {
            status = status.max(match self.traffic.track(slot).departure {
                Some((at, Ending::Down)) if near(Point { height_mm: 0, ..at }) => PathStatus::Blocked,
                Some((_, Ending::Down)) => PathStatus::Clear,
                Some(_) if !self.is_clear(slot, &paths) => PathStatus::Occupied,
                Some(_) => PathStatus::Clear,
                // It may lead others, or have continued with others: only the position of its own slot is no other
                // aircraft's, and so is ours.
                None if absent.contains(slot) => PathStatus::Blocked,
                None if self.landing.is_landing(slot) => PathStatus::Clear,
                None if self.assignment.slot_position(slot, last).is_none_or(near) => PathStatus::Occupied,
                None => PathStatus::Clear,
            });
        }
        status
    }

    /// The landing position of a member that has left its last waypoint for it. Behind a pilot it is not known: there the
    /// formation turns, or each lands where it is.
    pub(super) fn lands_at(&self, slot: usize) -> Option<Point> {
        let is_known = self.landing.is_landing(slot) && !self.config.piloted_master;
        let site = self.landing.leader_site().filter(|_| is_known)?;
        Some(self.assignment.landing_position(slot, self.members.leader(), site, 0))
    }

    /// Returns whether a member still comes to its landing position, or `may_leave` for it. One that is
    /// silent, holds on its way, drifts, or leaves the flight is not waited for.
    pub(in super::super) fn comes_to_land(&self, slot: usize, may_leave: bool) -> bool {
        let track = self.traffic.track(slot);
        let is_gone = track.is_silent || track.departure.is_some() || track.adrift().is_some();
        let holds = track.holding_at.is_some_and(|at| track.reported_at.since(at) < REPORTED_HOLDING);
        if is_gone || holds {
            return false;
        }
        if !self.landing.is_landing(slot) && slot != self.members.leader() {
            return may_leave;
        }
        let Some((site, at)) = self.lands_at(slot).zip(track.position) else { return false };
        let off_m = self.assignment.geometry().offset_m(at, site).truncate().length();
        off_m > self.config.arrival_m + BETWEEN_REPORTS_M
    }

    /// Whether no member stands there on the ground, or lands, or holds there below this aircraft.
    pub(super) fn is_free(&self, site: Point) -> bool {
        let clear_m = self.clear_m();
        let is_below = |at: Point| self.ownship.point().is_some_and(|here| at.height_mm < here.height_mm);
        self.traffic.iter().enumerate().all(|(slot, track)| {
            let off_m = match track.departure {
                Some((at, Ending::Landing)) => self.off_landing_m(track, at, site),
                Some((at, Ending::Down)) => self.over_ground_m(at, site),
                Some((at, Ending::Holding)) if is_below(at) => self.over_ground_m(at, site),
                Some((_, Ending::Holding | Ending::Returning)) => return true,
                None => match (self.may_stand(slot), self.lands_at(slot)) {
                    (Some(stands), _) => {
                        let site_m = self.local(site).truncate().extend(0.0);
                        stands.distance_m(&Path { from_m: site_m, to_m: site_m })
                    }
                    (None, Some(at)) => self.over_ground_m(at, site),
                    (None, None) => return true,
                },
            };
            off_m >= clear_m
        })
    }

    /// The same, none that returns or is lost has its home there, and none that is lost may be below: it may have fallen, or its
    /// guardian has landed it.
    fn is_free_for_long(&self, site: Point) -> bool {
        let (column, lost) = ([self.descent(site)], self.members.lost() & self.members.peers());
        let is_home = |(slot, track): (usize, &Track)| match track.departure {
            Some((_, Ending::Returning)) => {
                track.home.is_some_and(|home| self.over_ground_m(home, site) < self.clear_m())
            }
            None => self.is_home_of_lost(slot, site),
            Some((_, Ending::Holding | Ending::Landing | Ending::Down)) => false,
        };
        self.is_free(site)
            && !self.traffic.iter().enumerate().any(is_home)
            && lost.iter().all(|slot| self.is_clear(slot, &column))
    }

    /// Whether a member that is lost has its home there: one that receives nothing flies there after a while, and lands. An
    /// aircraft that has lost all others is that one itself.
    fn is_home_of_lost(&self, slot: usize, at: Point) -> bool {
        let home = self.traffic.get(slot).and_then(|track| track.home);
        // Homes are as near to each other as landing is safe: over the own it is.
        let own_m = self.ownship.home().map_or(f64::INFINITY, |own| self.over_ground_m(own, at));
        let lost = self.members.lost();
        lost.contains(slot)
            && lost & self.members.peers() != self.members.peers()
            && home.is_some_and(|home| self.over_ground_m(home, at) < self.clear_m().min(own_m))
    }

    /// Whether this aircraft hovers over the home of a member that is lost.
    pub(super) fn hovers_over_home_of_lost(&self) -> bool {
        let Some(here) = self.ownship.point() else { return false };
        self.members.peers().iter().any(|slot| self.is_home_of_lost(slot, here))
    }

    /// The nearest free landing site around this aircraft with a clear path to it, where a member stands or lands
    /// below; none where this aircraft may land where it is, or where there is none.
    pub(crate) fn site_aside(&self) -> Option<Point> {
        const DIAGONAL: f64 = core::f64::consts::FRAC_1_SQRT_2;
        const DIRECTIONS: [(f64, f64); 8] = [
            (0.0, 1.0),
            (1.0, 0.0),
            (0.0, -1.0),
            (-1.0, 0.0),
            (DIAGONAL, DIAGONAL),
            (DIAGONAL, -DIAGONAL),
            (-DIAGONAL, -DIAGONAL),
            (-DIAGONAL, DIAGONAL),
        ];
        let here = self.ownship.point()?;
        if self.is_free_for_long(here) {
            return None;
        }
        let step_m = self.clear_m();
        let site = |(ring, (east, north)): (u32, (f64, f64))| {
            let out_m = f64::from(ring) * step_m;
            plan::moved(here, out_m * east, out_m * north)
        };
        // Where a lost one may be within reach already, or one that lands or returns is below, the way leads no nearer to it;
        // and, where there is no other, nor to any: those that fly towards this aircraft hold.
        let stands = self.path(here, here);
        let leaves = |slot: usize| self.members.lost().contains(slot) || self.traffic.ending(slot).is_some();
        let is_way_clear = |slot: usize, site: Point, any: bool| {
            let way = self.path(here, site);
            let near_m = match any || leaves(slot) {
                true => self.clear_m().min(self.distance_m(slot, &stands) - NEARER_M),
                false => self.clear_m(),
            };
            self.distance_m(slot, &way) >= near_m && self.is_clear(slot, &[self.descent(site)])
        };
        let is_clear = |site: Point, any: bool| {
            self.is_within_reach(site)
                && self.is_free_for_long(site)
                && self.members.peers().iter().all(|slot| is_way_clear(slot, site, any))
        };
        // Each of two that have lost each other flies aside: where it can, not past where it last knew the other, and away
        // from there.
        let in_ring = |ring, passes_lost, any| {
            DIRECTIONS
                .map(|way| site((ring, way)))
                .into_iter()
                .filter(|&site| is_clear(site, any) && (passes_lost || self.keeps_off_lost(here, site)))
                .map(|site| (self.lost_are_m(site), site))
                .reduce(|best, next| if next.0 > best.0 + NEARER_M { next } else { best })
        };
        let search = |(passes_lost, any)| (1..=SITE_RINGS).find_map(|ring| in_ring(ring, passes_lost, any));
        // Where no aircraft is known to be below, and one that is lost was last known on every way out, it stays.
        let passes = [(false, false), (false, true), (true, false), (true, true)];
        let passes = if self.is_free(here) { &passes[..2] } else { &passes };
        passes.iter().copied().find_map(search).map(|(_, site)| site)
    }

    /// Whether this aircraft may fly there to land: within the own fence, or as far outside as one flies aside.
    pub(in super::super) fn is_within_reach(&self, site: Point) -> bool {
        let most_m = self.config.distance_most_m + Fence::ASIDE_M;
        let Some(home) = self.ownship.home().map(plan::position) else { return true };
        // One that a pilot carried beyond lands next to where it is.
        let is_outside = |at: Point| Fence::distance_m(home, at) > most_m;
        !is_outside(site) || self.ownship.point().is_some_and(is_outside)
    }

    /// Whether the way to a site leads past no place where a member was before it was lost, or no nearer than this aircraft is.
    fn keeps_off_lost(&self, here: Point, site: Point) -> bool {
        let way = self.path(here, site);
        let lost = self.members.lost() & self.members.peers();
        let mut known = lost.iter().filter_map(|slot| self.traffic.track(slot).position);
        known.all(|at| {
            let least_m = self.clear_m().min(self.over_ground_m(at, here) - NEARER_M);
            let level = Point { height_mm: here.height_mm, ..at };
            self.path(level, level).distance_m(&way) >= least_m
        })
    }

    /// How far over the ground the nearest member that is lost was from there, metres; infinite if none is lost.
    fn lost_are_m(&self, site: Point) -> f64 {
        let lost = self.members.lost() & self.members.peers();
        let known = lost.iter().filter_map(|slot| self.traffic.track(slot).position);
        known.map(|at| self.over_ground_m(at, site)).fold(f64::INFINITY, f64::min)
    }

    /// Whether a member that returns comes down on its home next.
    pub(super) fn nears_home(&self, from: Point, home: Point) -> bool {
        self.over_ground_m(home, from) <= NEARS_HOME_M
    }

    /// Whether this aircraft descends on another that came down next to where it lands, or is about to, below it: one that was
    /// fast when it began to land stops elsewhere than it reported. Those of the landing formation are farther apart.
    pub(in super::super) fn lands_on_another(&self) -> bool {
        let Some(here) = self.ownship.point() else { return false };
        let near_m = self.config.separation_m + 1.0;
        let stands = |track: &Track| match track.departure {
            Some((at, Ending::Down)) => self.over_ground_m(at, here) < near_m,
            Some((at, Ending::Landing)) => {
                let is_lower = track.is_silent || at.height_mm + LOWER_MM < here.height_mm;
                is_lower && self.off_landing_m(track, at, here) < near_m
            }
            Some((_, Ending::Holding | Ending::Returning)) | None => false,
        };
        here.height_mm > ASIDE_LEAST_MM && self.traffic.iter().any(stands)
    }

    /// Whether no member that flies home, and is near it, comes down next to a position.
    pub(in super::super) fn is_off_returns(&self, at: Point) -> bool {
        self.traffic.iter().all(|track| match track.departure {
            Some((from, Ending::Returning)) => track.home.is_none_or(|home| {
                self.over_ground_m(home, at) >= self.clear_m() || !self.nears_home(from, home)
            }),
            Some((_, Ending::Holding | Ending::Landing | Ending::Down)) | None => true,
        })
    }

    /// The nearest position around a hover position where this aircraft is off the columns of those that return, and on the way
    /// of no other; none where it need not move, or where there is none.
    pub(in super::super) fn site_off_returns(&self, back: Point) -> Option<Point> {
        if self.is_off_returns(back) {
            return None;
        }
        let peers = || self.members.peers().iter();
        let is_clear = |site: Point| {
            let (way, column) = (self.path(back, site), self.path(site, site));
            let keeps_clear = |slot: usize| {
                self.traffic.ending(slot).is_some()
                    || self.is_clear(slot, &[way]) && self.is_next_leg_clear(slot, column)
            };
            self.is_off_returns(site) && peers().all(keeps_clear)
        };
        let around = |(ring, n): (u32, u32)| {
            let (sin, cos) =
                libm::sincos(core::f64::consts::TAU * f64::from(n) / f64::from(ASIDE_DIRECTIONS));
            let out_m = f64::from(ring) * ASIDE_RING_M;
            plan::moved(back, out_m * sin, out_m * cos)
        };
        let rings = (1..=ASIDE_RINGS).flat_map(|ring| (0..ASIDE_DIRECTIONS).map(move |n| (ring, n)));
        rings.map(around).find(|&site| is_clear(site))
    }

    /// Whether the next leg of a member leads past a position, from wherever it is at.
    fn is_next_leg_clear(&self, slot: usize, column: super::Path) -> bool {
        let next = usize::from(self.traffic.reached(slot).unwrap_or(0)) + 1;
        let ends =
            self.assignment.slot_position_m(slot, next - 1).zip(self.assignment.slot_position_m(slot, next));
        ends.is_none_or(|(from_m, to_m)| super::Path { from_m, to_m }.distance_m(&column) >= self.clear_m())
    }

    /// Where the others stand, hover or land, as far as they reported: those that left this flight, those that
    /// were lost before it began, and those that follow a pilot and are received no more.
    fn occupied(&self) -> impl Iterator<Item = Point> {
        let leader = self.members.leader();
        self.members.peers().iter().flat_map(move |slot| {
            let track = self.traffic.track(slot);
            let left = track.departure.filter(|(_, how)| *how != Ending::Returning).map(|(at, _)| at);
            let is_lost = self.members.lost().contains(slot) && slot != leader;
            let slot_position = || self.assignment.slot_position(slot, 0);
            let lost = is_lost.then(|| [track.position, slot_position()]).into_iter().flatten().flatten();
            let stands = self.may_stand(slot).zip(track.position).into_iter().flat_map(|(way, at)| {
                let way_m = way.to_m - way.from_m;
                [0.0, 0.5, 1.0].map(|share| plan::moved(at, way_m.x * share, way_m.y * share))
            });
            left.into_iter().chain(lost).chain(stands)
        })
    }

    /// The nearest position around this aircraft, at its height, that keeps clear of where the others stand, hover or
    /// land; none where its own does, or none of `rings_m` with so many directions each does.
    pub(crate) fn unoccupied_position(&self, rings_m: &[f64], directions: u32) -> Option<Point> {
        let here = self.ownship.point()?;
        let frame = Frame::new(plan::position(here));
        let clear_m = self.clear_m();
        let free = |offset_m: DVec2| {
            self.occupied()
                .all(|at| frame.to_local(plan::position(at)).truncate().distance(offset_m) >= clear_m)
        };
        if free(DVec2::ZERO) {
            return None;
        }
        let angles = (0..directions).map(|n| core::f64::consts::TAU * f64::from(n) / f64::from(directions));
        let offsets_m = rings_m.iter().flat_map(move |&ring_m| {
            angles.clone().map(move |angle| {
                let (sin, cos) = libm::sincos(angle);
                DVec2::new(sin, cos) * ring_m
            })
        });
        let offset_m = offsets_m.into_iter().find(|offset_m| free(*offset_m))?;
        let site = frame.to_position(DVec3::new(offset_m.x, offset_m.y, 0.0));
        Some(plan::point(site, here.height_mm))
    }
}
