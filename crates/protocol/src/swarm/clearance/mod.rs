//! Whether a path is clear of the other members, wherever they may be.
//!
//! [`Traffic`] owns what the members reported; [`Clearance`] combines that with the plan and answers questions: is the
//! next leg clear ([`legs`]), may this aircraft climb and fly home ([`returning`]), where can it land
//! ([`landing_site`]), what may members do that are not received ([`lost_link`]). It reads and never writes.

mod drift;
pub(super) mod landing_site;
mod legs;
mod lost_link;
mod returning;
mod traffic;

use wingbeat_geo::DVec3;
use wingbeat_wire::{Ending, Point};

use crate::coasts_m;

use super::Config;
use super::assignment::Assignment;
use super::landing::Landing;
use super::membership::Membership;
use super::ownship::Ownship;
use super::path::{Curtain, Path};
use super::slot_set::SlotSet;
use super::take_off::TakeOff;
pub(crate) use legs::Approach;
use traffic::Track;
pub(crate) use traffic::{Air, STALE_S, Traffic};

/// What blocks a path that this aircraft is about to fly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathStatus {
    /// Nothing.
    Clear,
    /// A member that will leave.
    Occupied,
    /// A member that may not leave.
    Blocked,
}

/// The positions and paths of the members around this aircraft.
#[derive(Clone, Copy)]
pub(crate) struct Clearance<'a> {
    config: &'a Config,
    ownship: &'a Ownship,
    assignment: &'a Assignment,
    members: &'a Membership,
    traffic: &'a Traffic,
    take_off: &'a TakeOff,
    landing: &'a Landing,
}

impl<'a> Clearance<'a> {
    pub(super) fn new(
        config: &'a Config,
        ownship: &'a Ownship,
        assignment: &'a Assignment,
        members: &'a Membership,
        traffic: &'a Traffic,
        take_off: &'a TakeOff,
        landing: &'a Landing,
    ) -> Self {
        Self { config, ownship, assignment, members, traffic, take_off, landing }
    }

    fn local(&self, point: Point) -> DVec3 {
        self.assignment.local(point, self.ownship.point())
    }

    pub(super) fn path(&self, from: Point, to: Point) -> Path {
        Path { from_m: self.local(from), to_m: self.local(to) }
    }

    /// Straight down to the ground.
    fn descent(&self, from: Point) -> Path {
        self.path(from, Point { height_mm: 0, ..from })
    }

    fn over_ground_m(&self, a: Point, b: Point) -> f64 {
        (self.local(a) - self.local(b)).truncate().length()
    }

    /// Nearer than this a path is not clear.
    fn clear_m(&self) -> f64 {
        self.config.clear_m()
    }

    /// Whether a member keeps clear of `paths`, wherever it may be. One that is present leaves its position only when
    /// its path is clear of this aircraft.
    pub(super) fn is_clear(&self, slot: usize, paths: &[Path]) -> bool {
        paths.iter().all(|path| self.distance_m(slot, path) >= self.clear_m())
    }

    /// How near a member may be to a path, metres: 0 where it is not known where it is, infinite of one that is down.
    pub(super) fn distance_m(&self, slot: usize, path: &Path) -> f64 {
        let nearest = |paths: &[Path]| paths.iter().map(|p| p.distance_m(path)).fold(f64::INFINITY, f64::min);
        let Some(track) = self.traffic.get(slot) else { return f64::INFINITY };
        let (from, by, to) = match track.departure {
            Some((_, Ending::Down)) => return f64::INFINITY,
            Some((at, Ending::Returning)) => {
                return self.return_path(slot, at).map_or(0.0, |home| nearest(&home));
            }
            Some((at, Ending::Landing)) => {
                let down = self.comes_down(track, at);
                // It falls from anywhere on its way.
                return Curtain { foot: down, height_m: self.local(at).z }.distance_m(path);
            }
            Some((at, Ending::Holding)) => (at, at, Point { height_mm: 0, ..at }),
            None if self.landing.is_landing(slot) => {
                let last = || self.assignment.slot_position(slot, self.assignment.last_waypoint());
                let Some(at) = track.position.or_else(last) else { return 0.0 };
                let over = Point { height_mm: at.height_mm, ..self.lands_at(slot).unwrap_or(at) };
                (at, over, Point { height_mm: 0, ..over })
            }
            None => {
                let waypoint = usize::from(track.reached.unwrap_or(0));
                let Some((here, next)) = self
                    .assignment
                    .slot_position(slot, waypoint)
                    .zip(self.assignment.slot_position(slot, waypoint + 1))
                else {
                    return 0.0;
                };
                let stays = !self.members.absent().contains(slot) && track.departed_for <= track.reached;
                let next = if stays { here } else { next };
                match (track.reached, track.position) {
                    // At the last waypoint that it reported, or on the next leg.
                    (Some(_), _) => (here, here, next),
                    // In its slot; it may have been started when this aircraft was not.
                    (None, _) if self.take_off.is_in_slot(slot) => (here, here, next),
                    // Standing, climbing, or on its way to its slot.
                    (None, Some(at)) => {
                        let first_mm = self.assignment.first_height_mm();
                        let above = Point { height_mm: at.height_mm.max(first_mm), ..at };
                        (at, above, here)
                    }
                    (None, None) => return 0.0,
                }
            }
        };
        nearest(&[self.path(from, by), self.path(by, to)])
    }

    /// Where one that left to land comes down, on the ground: there; and, where it reports its position no more, as far ahead as
    /// its speed carries it. One that lands without a position brakes by the drag of the air alone.
    fn comes_down(&self, track: &Track, at: Point) -> Path {
        let at_m = self.local(at).truncate();
        let carried_m = coasts_m(track.moves_m_s()) + self.drifts_m(track);
        Path { from_m: at_m.extend(0.0), to_m: (at_m + carried_m).extend(0.0) }
    }

    /// Where a member that follows a pilot may stand, or have landed, that is received no more: it may have lost its leader too,
    /// and flies on until it notices, and stops; or it may have flown to its slot. Over the ground; none of one that is received,
    /// or has left.
    fn may_stand(&self, slot: usize) -> Option<Path> {
        let track = self.traffic.get(slot)?;
        let is_lost = self.config.piloted_master && track.is_silent && track.departure.is_none();
        let at_m = self.local(track.position.filter(|_| is_lost)?).truncate();
        let on_m = track.moves_m_s().truncate() * self.config.time_to_live.as_secs_f64();
        let slot_m = self.lost_slot(slot).map(|at| self.local(at).truncate());
        Some(Path { from_m: at_m.extend(0.0), to_m: slot_m.unwrap_or(at_m + on_m).extend(0.0) })
    }

    /// The slot of a member that was last received before it reported that it is there, on its way or before it took off: it may
    /// be there by now.
    fn lost_slot(&self, slot: usize) -> Option<Point> {
        let track =
            self.traffic.get(slot).filter(|track| track.is_silent && !self.take_off.is_in_slot(slot))?;
        let there = self.assignment.slot_position(slot, 0)?;
        let at = track.position?;
        let level = |point: Point| Point { height_mm: 0, ..point };
        let way = self.path(level(track.home.unwrap_or(at)), level(there));
        (self.path(level(at), level(at)).distance_m(&way) < self.clear_m()).then_some(there)
    }

    /// How far over the ground a position is from where one that left to land comes down, metres.
    fn off_landing_m(&self, track: &Track, at: Point, site: Point) -> f64 {
        let site_m = self.local(site).truncate().extend(0.0);
        self.comes_down(track, at).distance_m(&Path { from_m: site_m, to_m: site_m })
    }

    /// Whether all other members keep clear of `paths`, wherever they may be.
    fn is_clear_of_all(&self, paths: &[Path]) -> bool {
        self.members.peers().iter().all(|slot| self.is_clear(slot, paths))
    }

    /// Members that are absent and not known to be down.
    fn obstacles(&self) -> SlotSet {
        let is_down = |&slot: &usize| self.traffic.ending(slot) == Some(Ending::Down);
        (self.members.absent() & self.members.peers()) - self.members.left().iter().filter(is_down).collect()
    }

    /// Whether a member that is on its way to its slot keeps clear of the column in which this aircraft takes off,
    /// wherever on its way it may stop.
    pub(super) fn leaves_room(&self, slot: usize) -> bool {
        let Some(home) = self.ownship.point() else { return false };
        let above = Point { height_mm: self.assignment.first_height_mm(), ..home };
        self.is_clear(slot, &[self.path(home, above)])
    }

    /// Whether an absent member no longer keeps this aircraft from taking off: it is down, or clear of our path
    /// wherever it may be.
    pub(super) fn makes_room(&self, slot: usize) -> bool {
        if !self.members.absent().contains(slot) {
            return false;
        }
        let Some((home, &to)) = self.ownship.point().zip(self.assignment.route().first()) else {
            return false;
        };
        let above = Point { height_mm: self.assignment.first_height_mm(), ..home };
        self.is_clear(slot, &[self.path(home, above), self.path(above, to)])
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::super::plan::{self, Task};
    use super::*;
    use crate::Telemetry;
    use wingbeat_geo::{DVec3, Duration, Frame, Instant, Position};
    use wingbeat_wire::VehicleId;

    const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 0 };

    pub(super) fn at(east_m: f64, north_m: f64, height_m: f64) -> Point {
        let position = Frame::new(ORIGIN).to_position(DVec3::new(east_m, north_m, 0.0));
        plan::point(position, (height_m * 1e3) as i32)
    }

    /// Three aircraft in a row from west to east, 50 m apart, that fly 200 m north and then 200 m along the row.
    pub(super) struct Airspace {
        pub(super) config: Config,
        pub(super) ownship: Ownship,
        pub(super) assignment: Assignment,
        pub(super) members: Membership,
        pub(super) traffic: Traffic,
        pub(super) take_off: TakeOff,
        pub(super) landing: Landing,
    }

    impl Airspace {
        /// Of the aircraft that stands `index` in the row.
        pub(super) fn of(index: u64) -> Self {
            let config = Config::new(VehicleId(10 + index), VehicleId(10), 3);
            let stand = |i: u64| (VehicleId(10 + i), at(50.0 * i as f64 - 50.0, 0.0, 0.0));
            let mut task = Task::default();
            task.waypoints.extend([at(0.0, 0.0, 20.0), at(0.0, 200.0, 20.0), at(200.0, 200.0, 20.0)]);
            let plan = plan::make(&config, &[0, 1, 2].map(stand), &task).unwrap();
            let slot = plan.slots.iter().position(|id| *id == config.me).unwrap();
            let route = plan::route(&config, &plan, slot).unwrap();
            let mut assignment = Assignment::none();
            assignment.adopt(&config, 7, plan, slot, route);
            let (mut members, mut traffic) = (Membership::default(), Traffic::default());
            members.assemble(Instant::ZERO, &assignment.plan().slots, slot, assignment.center());
            traffic.begin(Instant::ZERO, 3);
            let (take_off, landing) = (TakeOff::begin(Instant::ZERO), Landing::default());
            let ownship = Ownship::default();
            Self { config, ownship, assignment, members, traffic, take_off, landing }
        }

        pub(super) fn clearance(&self) -> Clearance<'_> {
            Clearance::new(
                &self.config,
                &self.ownship,
                &self.assignment,
                &self.members,
                &self.traffic,
                &self.take_off,
                &self.landing,
            )
        }

        pub(super) fn slot(&self, index: u64) -> usize {
            self.members.slot_of(VehicleId(10 + index)).unwrap()
        }

        pub(super) fn report_own(&mut self, point: Point, armed: bool) {
            self.report_own_flying(point, armed, DVec3::ZERO);
        }

        pub(super) fn report_own_flying(&mut self, point: Point, armed: bool, velocity_m_s: DVec3) {
            let telemetry = Telemetry {
                position: plan::position(point),
                height_m: f64::from(point.height_mm) * 1e-3,
                velocity_m_s,
                heading_rad: 0.0,
                armed,
                landing: false,
                is_located: true,
            };
            self.ownship.report(Instant::ZERO, telemetry);
        }

        pub(super) fn progress(&mut self, index: u64, reached: u16, departed_for: u16) {
            let slot = self.slot(index);
            self.traffic.report_progress(slot, Some(reached), Some(departed_for));
        }
    }

    #[test]
    fn muscop_30_a_site_aside_is_clear_of_those_that_stand_and_land() {
        let mut airspace = Airspace::of(1);
        airspace.report_own(at(0.0, 0.0, 20.0), true);
        // Neither of the others is where this aircraft lands.
        for index in [0, 2] {
            let slot = airspace.slot(index);
            airspace.members.leaves(slot);
            airspace.traffic.report_departure(slot, at(100.0, 100.0, 0.0), Ending::Down);
        }
        assert_eq!(airspace.clearance().site_aside(), None);
        let below = airspace.slot(0);
        airspace.traffic.report_departure(below, at(1.0, 1.0, 5.0), Ending::Landing);
        let site = airspace.clearance().site_aside().unwrap();
        let clearance = airspace.clearance();
        let off_m = clearance.over_ground_m(site, at(1.0, 1.0, 0.0));
        assert!(off_m >= airspace.config.separation_m + 1.0, "{off_m} m");
        assert_eq!(site.height_mm, 20_000);
    }

    #[test]
    fn muscop_32_one_that_hovers_over_the_home_of_one_that_comes_down_on_it_moves_aside() {
        let mut airspace = Airspace::of(1);
        let slot = at(0.0, 0.0, 20.0);
        airspace.report_own(slot, true);
        let (other, third) = (airspace.slot(0), airspace.slot(2));
        airspace.members.leaves(third);
        airspace.traffic.report_departure(third, at(100.0, 100.0, 0.0), Ending::Down);
        airspace.traffic.report_home(other, at(4.0, 0.0, 0.0));
        airspace.members.leaves(other);
        airspace.traffic.report_departure(other, at(40.0, 0.0, 30.0), Ending::Returning);
        assert_eq!(airspace.clearance().site_off_returns(slot), None, "it is far from its home");
        airspace.traffic.report_departure(other, at(20.0, 0.0, 30.0), Ending::Returning);
        let site = airspace.clearance().site_off_returns(slot).unwrap();
        let clearance = airspace.clearance();
        let off_m = clearance.over_ground_m(site, at(4.0, 0.0, 0.0));
        assert!((clearance.clear_m()..25.0).contains(&off_m), "{off_m} m");
        assert_eq!(site.height_mm, 20_000);
        for how in [Ending::Holding, Ending::Down] {
            airspace.traffic.report_departure(other, at(4.0, 0.0, 20.0), how);
            assert!(airspace.clearance().is_off_returns(slot), "{how:?}");
        }
    }

    /// One whose position estimate failed on a leg lands blind: it drifts on, and says nothing any more, also when it is down.
    #[test]
    fn muscop_33_one_that_lands_without_a_position_may_come_down_as_far_ahead_as_its_speed_carries_it() {
        let mut airspace = Airspace::of(1);
        let geometry = airspace.assignment.geometry().clone();
        let (blind, there) = (airspace.slot(0), at(100.0, 0.0, 20.0));
        let sited = Instant::from_secs(1);
        airspace.traffic.report(sited, blind, at(99.2, 0.0, 20.0), &geometry);
        airspace.traffic.report(sited + Duration::from_millis(100), blind, there, &geometry);
        airspace.members.leaves(blind);
        // Before it stops reporting it reports the last position that it knows.
        airspace.traffic.report(sited + Duration::from_millis(900), blind, there, &geometry);
        airspace.traffic.report_departure(blind, there, Ending::Landing);
        assert_eq!(may_land(&mut airspace, 2, 120.0), (true, false), "it is received");
        // 8 m/s for 2.5 s.
        assert_eq!(may_land(&mut airspace, 4, 120.0), (false, true));
        assert_eq!(may_land(&mut airspace, 4, 90.0), (true, false), "it does not fly back");
        assert_eq!(may_land(&mut airspace, 4, 130.0), (true, false));
        airspace.traffic.report(Instant::from_secs(5), blind, at(101.0, 0.0, 10.0), &geometry);
        assert_eq!(may_land(&mut airspace, 6, 120.0), (true, false), "it knows again where it is");
    }

    /// Whether this aircraft may land there, and whether it lands on another.
    fn may_land(airspace: &mut Airspace, at_s: u64, east_m: f64) -> (bool, bool) {
        airspace.report_own(at(east_m, 1.0, 20.0), true);
        airspace.traffic.watch(Instant::from_secs(at_s), Duration::from_secs(2));
        let clearance = airspace.clearance();
        (clearance.is_free(at(east_m, 1.0, 0.0)), clearance.lands_on_another())
    }

    #[test]
    fn muscop_33_one_that_lands_climbs_out_of_the_way_of_one_that_drifts_downwind() {
        let mut airspace = Airspace::of(1);
        airspace.report_own(at(0.0, 0.0, 12.0), true);
        let (blind, now) = (airspace.slot(0), Instant::from_secs(1));
        let east = Some(wingbeat_geo::DVec2::new(4.0, 0.0));
        let mut climbs = |known_m_s, east_m: f64, after_s: u64| {
            airspace.traffic.set_air(Air { known_m_s, most_m_s: 4.0 });
            airspace.traffic.report_adrift(now, blind, at(east_m, 0.0, 12.0));
            let above = airspace.clearance().above_adrift(now + Duration::from_secs(after_s));
            above.map(|above| f64::from(above.height_mm) / 1e3)
        };
        assert_eq!(climbs(east, -12.0, 0), Some(28.0), "its downwash of 15 m and one to spare");
        assert_eq!(climbs(east, 12.0, 0), None, "it drifts away");
        assert_eq!(climbs(None, 12.0, 0), Some(28.0), "the direction of the wind is not known");
        assert_eq!(climbs(east, -12.0, 40), None, "it is down");
    }

    #[test]
    fn muscop_33_one_that_reports_that_it_drifts_is_in_the_air_however_long_it_has_drifted() {
        let mut airspace = Airspace::of(1);
        airspace.report_own(at(0.0, 0.0, 12.0), true);
        airspace.traffic.set_air(Air { known_m_s: None, most_m_s: 4.0 });
        let (blind, begins) = (airspace.slot(0), Instant::from_secs(1));
        let mut climbs = |reported_s: u64, after_s: u64| {
            let seconds = |s| begins + Duration::from_secs(s);
            airspace.traffic.report_adrift(seconds(reported_s), blind, at(12.0, 0.0, 12.0));
            airspace.clearance().above_adrift(seconds(after_s)).is_some()
        };
        assert!(climbs(0, 1));
        assert!(climbs(40, 42), "it still reports");
        assert!(!climbs(40, 44), "it is down");
    }

    #[test]
    fn muscop_33_one_does_not_climb_into_another_above_it() {
        let mut airspace = Airspace::of(1);
        airspace.report_own(at(0.0, 0.0, 12.0), true);
        airspace.traffic.set_air(Air { known_m_s: None, most_m_s: 4.0 });
        let (blind, holds, now) = (airspace.slot(0), airspace.slot(2), Instant::from_secs(1));
        airspace.traffic.report_adrift(now, blind, at(12.0, 0.0, 12.0));
        airspace.members.leaves(holds);
        let climbs_m = [(24.0, None), (34.0, Some(21.0)), (40.0, Some(28.0)), (12.0, Some(28.0))];
        for (height_m, expected_m) in climbs_m {
            let east_m = if height_m > 20.0 { 0.0 } else { 9.0 };
            airspace.traffic.report_departure(holds, at(east_m, 0.0, height_m), Ending::Holding);
            let above = airspace.clearance().above_adrift(now);
            let above_m = above.map(|above| f64::from(above.height_mm) / 1e3);
            assert_eq!(above_m, expected_m, "{height_m}");
        }
    }

    #[test]
    fn muscop_33_one_that_descends_notices_another_that_fell_below_it() {
        let mut airspace = Airspace::of(1);
        airspace.report_own(at(0.0, 0.0, 15.0), true);
        let other = airspace.slot(0);
        let mut notices = |east_m: f64, how| {
            airspace.members.leaves(other);
            airspace.traffic.report_departure(other, at(east_m, 0.0, 0.0), how);
            airspace.clearance().lands_on_another()
        };
        assert!(notices(4.0, Ending::Down));
        assert!(!notices(8.0, Ending::Down), "the landing formation is wider");
        assert!(!notices(4.0, Ending::Returning));
        assert!(notices(4.0, Ending::Landing), "it lands below");
        assert!(!notices(8.0, Ending::Landing));
        airspace.traffic.report_departure(other, at(4.0, 0.0, 14.0), Ending::Landing);
        assert!(!airspace.clearance().lands_on_another(), "the higher one flies aside");
        airspace.report_own(at(0.0, 0.0, 3.0), true);
        airspace.traffic.report_departure(other, at(4.0, 0.0, 0.0), Ending::Down);
        assert!(!airspace.clearance().lands_on_another(), "too low to fly aside");
    }

    #[test]
    fn follow_19_one_that_holds_or_lands_on_the_way_occupies_it_and_one_behind_does_not() {
        let mut airspace = Airspace::of(1);
        airspace.report_own(at(0.0, 0.0, 20.0), true);
        let (other, now, to) = (airspace.slot(0), Instant::from_secs(1), at(0.0, 40.0, 20.0));
        for (position, how, occupies) in [
            (at(3.0, 20.0, 20.0), Ending::Holding, true),
            (at(3.0, 20.0, 20.0), Ending::Landing, true),
            (at(3.0, 20.0, 0.0), Ending::Down, false),
            (at(12.0, 20.0, 20.0), Ending::Holding, false),
            (at(3.0, -4.0, 20.0), Ending::Holding, false),
        ] {
            airspace.traffic.report_departure(other, position, how);
            assert_eq!(airspace.clearance().is_way_occupied(now, to), occupies, "{position:?} {how:?}");
        }
        // One that lost its leader says that it holds, and may be received again any time.
        let lost = airspace.slot(2);
        let geometry = airspace.assignment.geometry().clone();
        airspace.traffic.report(now, lost, at(0.0, 30.0, 20.0), &geometry);
        assert!(!airspace.clearance().is_way_occupied(now, to));
        airspace.traffic.report_holding(now, lost);
        assert!(airspace.clearance().is_way_occupied(now, to));
        assert!(!airspace.clearance().is_way_occupied(Instant::from_secs(7), to));
    }

    #[test]
    fn follow_19_one_that_was_received_last_on_the_ground_may_be_in_its_slot() {
        let mut airspace = Airspace::of(1);
        airspace.config.piloted_master = true;
        let lost = airspace.slot(2);
        let slot = airspace.assignment.slot_position(lost, 0).unwrap();
        let geometry = airspace.assignment.geometry().clone();
        airspace.report_own(plan::moved(slot, -20.0, 0.0), true);
        let home = Point { height_mm: 0, ..plan::moved(slot, 0.0, -60.0) };
        airspace.traffic.report(Instant::from_secs(1), lost, home, &geometry);
        let (now, beyond) = (Instant::from_secs(150), plan::moved(slot, 20.0, 0.0));
        let is_occupied = |airspace: &mut Airspace| {
            airspace.traffic.watch(now, Duration::from_secs(2));
            airspace.clearance().is_way_occupied(now, beyond)
        };
        assert!(is_occupied(&mut airspace), "longer than any other waits");
        airspace.take_off.report_in_slot(lost);
        assert!(
            !is_occupied(&mut airspace),
            "the way behind this aircraft is no longer one that it may be on"
        );
    }

    #[test]
    fn muscop_30_nor_is_the_home_of_one_that_returns_a_site() {
        let mut airspace = Airspace::of(1);
        airspace.report_own(at(0.0, 0.0, 20.0), true);
        let (returns, other) = (airspace.slot(0), airspace.slot(2));
        airspace.traffic.report_home(returns, at(7.0, 0.0, 0.0));
        for (slot, how, from) in
            [(other, Ending::Down, at(100.0, 100.0, 0.0)), (returns, Ending::Returning, at(0.0, 300.0, 60.0))]
        {
            airspace.members.leaves(slot);
            airspace.traffic.report_departure(slot, from, how);
        }
        let site = airspace.clearance().site_aside().unwrap();
        let clearance = airspace.clearance();
        let off_m = clearance.over_ground_m(site, at(7.0, 0.0, 0.0));
        assert!(off_m >= clearance.clear_m(), "{off_m} m");
    }

    #[test]
    fn muscop_14_one_on_its_way_to_its_slot_leaves_room_for_the_next_wherever_it_stops() {
        let mut airspace = Airspace::of(1);
        airspace.report_own(at(0.0, 0.0, 0.0), false);
        let (before, geometry) = (airspace.slot(2), airspace.assignment.geometry().clone());
        let mut leaves_room = |from: Point| {
            airspace.traffic.report(Instant::from_secs(1), before, from, &geometry);
            airspace.clearance().leaves_room(before)
        };
        assert!(leaves_room(at(10.0, 0.0, 5.0)));
        assert!(!leaves_room(at(-10.0, 0.0, 5.0)), "over this aircraft");
    }

    #[test]
    fn muscop_30_nor_is_it_where_one_that_is_lost_may_have_fallen() {
        let mut airspace = Airspace::of(1);
        airspace.report_own(at(0.0, 0.0, 20.0), true);
        let (lost, other) = (airspace.slot(0), airspace.slot(2));
        airspace.members.leaves(other);
        airspace.traffic.report_departure(other, at(100.0, 100.0, 0.0), Ending::Down);
        let reported_at = Instant::from_secs(1);
        airspace.traffic.report(reported_at, lost, at(2.0, 0.0, 5.0), airspace.assignment.geometry());
        assert_eq!(airspace.clearance().site_aside(), None, "it is received: it keeps clear itself");
        airspace.members.check_silence(Instant::from_secs(9), airspace.config.time_to_live);
        assert!(airspace.members.lost().contains(lost));
        let site = airspace.clearance().site_aside().unwrap();
        let clearance = airspace.clearance();
        let off_m = clearance.over_ground_m(site, at(2.0, 0.0, 0.0));
        assert!(off_m >= clearance.clear_m(), "{off_m} m");
    }
}
