//! Landing: every aircraft at its own position in the landing formation, around the leader's landing site (thesis
//! 6.1.2).
//!
//! The leader's landing site is passed on by all members that received it, as the leader sealed it: one that missed it must
//! not take the silence of the landed for their loss.

use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{Ending, Message, Point, Refused};

use super::clearance::landing_site::SITE_RINGS;
use super::slot_set::SlotSet;
use super::timer::Timer;
use super::{Abort, Manner, Reason, State, Swarm, plan};
use crate::EndFlight;

/// Distances nearer to each other than this are the same, metres: plans hold millimetres.
const NEARER_M: f64 = 0.05;

/// A member that can leave for its landing position leaves within this time after the leader stated its site. In this time each
/// sends ten messages.
const LEAVES_WITHIN: Duration = Duration::from_secs(2);

/// No aircraft waits longer than this at its landing position for others to come to theirs.
const WAITS_MOST: Duration = Duration::from_secs(60);

/// How far the landing of all members has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Landing {
    /// Where the leader lands, once it does.
    leader_site: Option<Point>,
    /// Members that have left their last waypoint for their landing positions.
    landing: SlotSet,
    /// Where all land one after the other: those before us that are down.
    landed: SlotSet,
    /// This aircraft lands where it is: the path to its landing position is not safe.
    is_in_place: bool,
    /// All land where they are.
    ends_here: Option<EndedBy>,
    /// The battery of a member ends the flight of all.
    is_recalled: bool,
    /// This aircraft lands where it is, whatever is below: the operator commanded *Land* again on its way aside, or it did not
    /// come there in time.
    is_insisted: bool,
    /// The battery of this aircraft makes it land: it waits for nothing.
    is_for_battery: bool,
    /// The least distance between landing positions by what this aircraft measures, where that is more than was stated, metres.
    apart_m: f64,
    /// The time at which this aircraft left for its landing position.
    left_at: Instant,
}

/// The leader that ended the flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum EndedBy {
    /// This aircraft.
    Itself,
    /// Another, which sealed that.
    Another,
}

impl Landing {
    pub(crate) fn leader_site(&self) -> Option<Point> {
        self.leader_site
    }

    /// Whether a member has left its last waypoint to land.
    pub(crate) fn is_landing(&self, slot: usize) -> bool {
        self.landing.contains(slot)
    }

    /// The members that have left their last waypoint to land.
    pub(crate) fn landing(&self) -> SlotSet {
        self.landing
    }

    pub(super) fn is_in_place(&self) -> bool {
        self.is_in_place
    }

    /// Whether the leader ended the flight.
    pub(super) fn ends_here(&self) -> bool {
        self.ends_here.is_some()
    }

    pub(super) fn end_here(&mut self) {
        self.ends_here.get_or_insert(EndedBy::Itself);
    }

    /// The leader ended the flight.
    pub(super) fn end_with_leader(&mut self) {
        self.ends_here.get_or_insert(EndedBy::Another);
    }

    /// Whether the battery of a member ends the flight of all.
    pub(super) fn is_recalled(&self) -> bool {
        self.is_recalled
    }

    pub(super) fn is_insisted(&self) -> bool {
        self.is_insisted
    }

    pub(super) fn insist(&mut self) {
        self.is_insisted = true;
    }

    /// Takes the least distance between landing positions by what is measured, in metres.
    pub(super) fn keep_apart(&mut self, least_m: f64) {
        self.apart_m = least_m;
    }

    /// Whether positions so far apart are too near for what is measured, and slots so far apart are better.
    pub(crate) fn is_too_near(&self, landing_m: f64, spacing_m: f64) -> bool {
        landing_m < self.apart_m - NEARER_M && spacing_m > landing_m
    }

    pub(super) fn desist(&mut self) {
        (self.is_insisted, self.is_for_battery) = (false, false);
    }

    /// Notes that the battery of this aircraft makes it land.
    pub(super) fn land_for_battery(&mut self) {
        self.is_for_battery = true;
    }

    /// Returns whether the battery of this aircraft makes it land.
    pub(super) fn is_for_battery(&self) -> bool {
        self.is_for_battery
    }

    pub(super) fn recall(&mut self) {
        self.is_recalled = true;
    }
}

impl<F: Copy + PartialEq> Swarm<F> {
    /// A member lands around the landing site of a leader, or is that leader. Where our leader lands it states itself alone.
    pub(super) fn on_landing(
        &mut self,
        now: Instant,
        slot: usize,
        leader: usize,
        site: Point,
    ) -> Result<(), Refused> {
        if leader != self.members.leader() {
            // It lands with others: its own position is known all the same.
            let is_relayed = leader != slot && leader < self.assignment.plan().slots.len();
            let position = if is_relayed {
                self.assignment.landing_position(slot, leader, site, site.height_mm)
            } else {
                site
            };
            self.traffic.report_departure(slot, position, Ending::Landing);
            self.members.leaves(slot);
            return Err(Refused::UnexpectedSender);
        }
        if slot == leader {
            self.take_landing_site(now, site)?;
        } else if !self.is_leader() && !self.accepts_site(leader, site) {
            return Err(Refused::FarAway);
        }
        if self.landing.landing.insert(slot) {
            self.traffic.report_landing(now, slot);
        }
        Ok(())
    }

    /// Our leader states where it lands, to us or to one that passed that on.
    pub(super) fn take_landing_site(&mut self, now: Instant, site: Point) -> Result<(), Refused> {
        if !self.accepts_site(self.members.leader(), site) {
            return Err(Refused::FarAway);
        }
        self.landing.leader_site = Some(site);
        let wait_ends_at = now + self.config.hold_before_landing;
        let wait_ends_at =
            self.timers.get(Timer::LandingPath).map_or(wait_ends_at, |at| at.min(wait_ends_at));
        self.timers.set(Timer::LandingPath, wait_ends_at);
        Ok(())
    }

    /// Whether a member may have missed what ends the flight, which the leader commanded.
    pub(super) fn is_end_missed(&self) -> bool {
        let awaited = self.awaited() - SlotSet::from_iter([self.members.leader()]);
        match self.state {
            State::Aborted(_) => {
                self.landing.ends_here == Some(EndedBy::Another) && awaited != SlotSet::EMPTY
            }
            _ if self.landing.is_in_place || self.is_leader() => false,
            State::MovingToLand | State::Landing | State::Finished => {
                !self.landing.landing.contains_all(awaited)
            }
            State::Start
            | State::Setup
            | State::ReadyToFly
            | State::TakingOff(_)
            | State::SetupFinished
            | State::Flying(_) => false,
        }
    }

    /// Whether a leader may land there: where we land around it is within our own fence, or as far outside as one flies aside;
    /// and, where the leader flies the same mission, its site is where that ends, or as far aside as it looks for a free place.
    /// A site elsewhere is a wrong position, or forged.
    fn accepts_site(&self, leader: usize, site: Point) -> bool {
        let own = self.assignment.landing_position(self.assignment.slot(), leader, site, site.height_mm);
        let is_inside = self.clearance().is_within_reach(own);
        let last = self.assignment.slot_position(leader, self.assignment.last_waypoint());
        let is_at_end = |last: Point| {
            let aside_m = f64::from(SITE_RINGS + 1) * self.config.clear_m() + self.config.arrival_m;
            self.assignment.geometry().offset_m(last, Point { height_mm: last.height_mm, ..site }).length()
                <= aside_m
        };
        is_inside && (self.config.piloted_master || last.is_none_or(is_at_end))
    }

    /// Another leads: the site of the former leader is of no use to a formation around this one.
    pub(super) fn forget_landing_site(&mut self) {
        self.landing.leader_site = None;
        self.timers.stop(Timer::LandingPath);
        self.timers.stop(Timer::LandingOrder);
    }

    /// Whether another is down or not waited for: one that lands broadcasts until it stands.
    fn is_down(&self, now: Instant, slot: usize) -> bool {
        let is_silent = || now >= self.traffic.reported_at(slot) + self.config.silence;
        self.members.absent().contains(slot) || self.landing.is_landing(slot) && is_silent()
    }

    /// Those that land before us where all land one after the other: the leader, and then from the inside to the
    /// outside, because the outer fly past the positions of the inner.
    fn before_us(&self) -> SlotSet {
        let Ok(formation) = plan::formation(self.assignment.plan()) else { return SlotSet::EMPTY };
        let own = self.assignment.slot();
        let offset_m = |slot: usize| formation.offset_m(slot, 0.0);
        let leader_m = offset_m(self.members.leader());
        let rank = |slot: usize| ((offset_m(slot).distance(leader_m) * 1e3) as i64, slot);
        self.members
            .peers()
            .iter()
            .filter(|&slot| slot == self.members.leader() || rank(slot) < rank(own))
            .collect()
    }

    /// Notes which are down, where all land one after the other. Each time that messages are due.
    pub(super) fn watch_landing(&mut self, now: Instant) {
        if self.config.landing == Manner::Simultaneous || self.landing.leader_site.is_none() {
            return;
        }
        let before = self.before_us();
        let landed: SlotSet = before.iter().filter(|&slot| self.is_down(now, slot)).collect();
        if landed != self.landing.landed || !self.timers.is_set(Timer::LandingOrder) {
            self.landing.landed = landed;
            self.timers.set(Timer::LandingOrder, self.config.patience_after(now));
        }
        if landed == before {
            self.timers.set(Timer::LandingOrder, now);
        } else if !self.timers.is_due(Timer::LandingOrder, now) {
            // An aircraft waits for a clear path only once it may leave.
            self.timers.set(Timer::LandingPath, now + self.config.hold_before_landing);
        }
    }

    /// Whether this aircraft may leave for its landing position.
    pub(crate) fn may_leave_to_land(&self, now: Instant) -> bool {
        self.config.landing == Manner::Simultaneous || self.timers.is_due(Timer::LandingOrder, now)
    }

    /// Begins the flight to the landing position. A leader lands at `site` where it stays; the others
    /// learn that now, and come to their positions around it.
    pub(super) fn begin_move_to_land(&mut self, now: Instant, site: Option<Point>) {
        self.landing.left_at = now;
        if self.is_leader() {
            self.landing.leader_site = site;
        }
    }

    /// Returns whether this aircraft stays at its landing position because others still come to theirs.
    ///
    /// All that land together begin their descent together. A wind that carries aircraft without a
    /// position carries each one until it is down: one that descends later is carried farther, onto
    /// one that stands already. The wait ends after [`Config::hold_before_landing`](super::Config) at
    /// the latest.
    pub(super) fn waits_to_descend(&self, now: Instant) -> bool {
        let is_together = self.config.landing == Manner::Simultaneous && !self.landing.is_for_battery;
        let left_at = self.landing.left_at;
        if !is_together || now >= left_at + self.config.hold_before_landing.min(WAITS_MOST) {
            return false;
        }
        let may_leave = now < left_at + LEAVES_WITHIN;
        let mut received = (self.members.peers() - self.members.absent()).iter();
        received.any(|slot| self.clearance().comes_to_land(slot, may_leave))
    }

    /// Whether the landing's messages are broadcast.
    pub(super) fn is_landing(&self) -> bool {
        matches!(self.state, State::MovingToLand | State::Landing | State::Finished)
    }

    /// What is broadcast while landing and after. An aircraft that lands where it is reports that, so that none takes its
    /// landing position for occupied and its own for free.
    pub(super) fn landing_message(&self, now: Instant) -> Option<Message> {
        if self.landing.is_in_place || self.has_landed_elsewhere(now) {
            let how = if self.state == State::Finished { Ending::Down } else { Ending::Landing };
            return self.ownship.point().map(|at| Message::Leaving { at, how });
        }
        let at = self.landing.leader_site?;
        Some(if self.is_leader() {
            Message::Land { at }
        } else {
            Message::LandAround { at, leader: self.members.leader() as u8 }
        })
    }

    /// Returns whether this aircraft stands so far from its landing position that another may be
    /// about to land there. It lost its position on the way down, the wind carried it, and it knows
    /// its position again.
    fn has_landed_elsewhere(&self, now: Instant) -> bool {
        // Behind a pilot no landing position is planned.
        if self.state != State::Finished || self.config.piloted_master || !self.ownship.is_known(now) {
            return false;
        }
        let (slot, leader) = (self.assignment.slot(), self.members.leader());
        let stands = self.ownship.point().zip(self.landing.leader_site);
        stands.is_some_and(|(here, site)| {
            let planned = self.assignment.landing_position(slot, leader, site, here.height_mm);
            let off_m = self.assignment.geometry().offset_m(planned, here).truncate().length();
            off_m > self.config.separation_m
        })
    }

    /// Lands where this aircraft is; `reason` where it is not where it was to land.
    pub(super) fn begin_landing(&mut self, reason: Option<Reason>) {
        self.landing.is_in_place |= reason.is_some();
        // The others fly to their positions around a site that was stated.
        if self.is_leader() && (self.landing.is_in_place || self.landing.leader_site.is_none()) {
            self.landing.leader_site = self.ownship.point();
        }
    }

    /// What ends the flight of all, repeated by each member that obeyed: some may be out of reach of the first.
    pub(super) fn recall_message(&self) -> Option<Message> {
        let is_over = matches!(self.state, State::Aborted(_));
        (is_over && self.landing.is_recalled && self.assignment.is_planned()).then_some(Message::Recall)
    }

    /// What is broadcast after the flight was stopped.
    pub(super) fn abort_message(&self, abort: Abort) -> Option<Message> {
        if !self.assignment.is_planned() {
            return None;
        }
        let here = self.ownship.point();
        let (at, how) = match abort {
            // One whose motors stopped falls.
            Abort::Ground if self.ownship.is_above_ground() => (here?, Ending::Landing),
            Abort::Ground => (here?, Ending::Down),
            Abort::Ending(EndFlight::Return) | Abort::TakenOver(EndFlight::Return) => {
                (here?, Ending::Returning)
            }
            Abort::Ending(EndFlight::Land) | Abort::TakenOver(EndFlight::Land) => (here?, Ending::Landing),
            // Where it will land.
            Abort::LandAside { site, .. } => (site, Ending::Landing),
            // One that holds on its way home is still on it.
            Abort::ReturnHeld { .. } if self.clearance().is_in_layer() => (here?, Ending::Returning),
            Abort::Ending(EndFlight::Hold)
            | Abort::ReturnHeld { .. }
            | Abort::Failure { .. }
            | Abort::TakenOver(EndFlight::Hold) => (here?, Ending::Holding),
        };
        if self.landing.ends_here == Some(EndedBy::Itself) && how == Ending::Landing {
            return Some(Message::LandHere { at });
        }
        Some(Message::Leaving { at, how })
    }
}

#[cfg(test)]
impl Landing {
    /// Everything that decides what follows, for [`Swarm::fingerprint`].
    pub(super) fn fingerprint(&self, state: &mut impl core::hash::Hasher) {
        use core::hash::Hash as _;
        self.leader_site.map(super::table::fingerprint::coordinates).hash(state);
        (self.landing, self.landed, self.is_in_place, self.ends_here, self.is_recalled, self.is_insisted)
            .hash(state);
        self.is_for_battery.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::data_of;
    use super::super::tests::{MASTER, Member, OTHER, THIRD};
    use super::*;
    use crate::Input;
    use wingbeat_geo::Duration;
    use wingbeat_wire::Command;

    /// Where the mission ends.
    const SITE: Point = Point { latitude_e7: 394_843_900, longitude_e7: -3_462_650, height_mm: 20_000 };

    #[test]
    fn muscop_23_only_the_own_leaders_landing_site_counts() {
        let mut member = Member::planned();
        let leader = member.swarm.members().leader();
        let follower = member.slot_of(THIRD);
        let refused = member.receive(THIRD, Message::Land { at: SITE });
        assert_eq!((refused, member.swarm.landing().leader_site()), (Some(Refused::UnexpectedSender), None));
        assert_eq!(member.swarm.traffic().ending(follower), Some(Ending::Landing), "its own is known");
        // A member that lands around it states its own position,
        let around = Message::LandAround { at: SITE, leader: leader as u8 };
        assert_eq!((member.receive(THIRD, around), member.swarm.landing().leader_site()), (None, None));
        // and passes on what the leader itself stated.
        let id = member.leader();
        let land = || Message::Land { at: SITE };
        assert_eq!(member.receive_passed(OTHER, THIRD, land()), Some(Refused::UnexpectedSender));
        assert_eq!(member.swarm.landing().leader_site(), None);
        assert_eq!(member.receive_passed(THIRD, id, land()), None);
        assert_eq!(member.swarm.landing().leader_site(), Some(SITE));
        assert!(member.swarm.landing().is_landing(follower) && !member.swarm.landing().is_landing(leader));
    }

    #[test]
    fn muscop_23_a_landing_site_elsewhere_than_where_the_mission_ends_is_refused() {
        let moved = |north_m: f64| plan::moved(SITE, 0.0, north_m);
        // 22 km, within the fence but on the way, aside of the end as far as a leader looks for a free place, at the end.
        for (site, refused) in [
            (moved(22_000.0), Some(Refused::FarAway)),
            (moved(-100.0), Some(Refused::FarAway)),
            (moved(-40.0), None),
            (SITE, None),
        ] {
            let mut member = Member::planned();
            let (leader, id) = (member.swarm.members().leader(), member.leader());
            assert_eq!(member.receive(id, Message::Land { at: site }), refused);
            let around = Message::LandAround { at: site, leader: leader as u8 };
            assert_eq!(member.receive(THIRD, around), refused);
            assert_eq!(member.receive_passed(THIRD, id, Message::Land { at: site }), refused);
            let expected = refused.is_none().then_some(site);
            assert_eq!(member.swarm.landing().leader_site(), expected);
        }
    }

    /// The others keep its landing position free, and not where the wind carried it.
    #[test]
    fn muscop_33_an_aircraft_that_came_down_elsewhere_states_where_it_stands() {
        let mut member = Member::planned();
        let (id, leader) = (member.leader(), member.swarm.members().leader());
        assert_eq!(member.receive(id, Message::Land { at: SITE }), None);
        member.swarm.state = State::Finished;
        let slot = member.swarm.assignment().slot();
        let planned = member.swarm.assignment().landing_position(slot, leader, SITE, 0);
        let mut states = |east_m: f64, is_located| {
            let telemetry = crate::Telemetry {
                position: plan::position(plan::moved(planned, east_m, 0.0)),
                height_m: 0.0,
                velocity_m_s: wingbeat_geo::DVec3::ZERO,
                heading_rad: 0.0,
                armed: false,
                landing: false,
                is_located,
            };
            member.swarm.ownship.report(member.now, telemetry);
            member.swarm.landing_message(member.now)
        };
        let around = Some(Message::LandAround { at: SITE, leader: leader as u8 });
        assert_eq!(states(4.0, true), around);
        assert_eq!(states(20.0, false), around, "it does not know where it is");
        let stated = states(20.0, true);
        assert!(matches!(stated, Some(Message::Leaving { how: Ending::Down, .. })), "{stated:?}");
    }

    /// A flight that is rejoined, or forgotten, begins its landing again.
    #[test]
    fn muscop_23_the_distance_that_is_measured_counts_again_after_the_landing_was_forgotten() {
        let mut member = Member::planned();
        let measured = crate::Measured { gnss_error_m: Some(2.0), ..crate::Measured::default() };
        member.swarm.set_measured(member.now, measured);
        assert!(member.swarm.landing().is_too_near(10.0, 50.0));
        member.swarm.landing = super::Landing::default();
        member.swarm.set_measured(member.now, measured);
        assert!(member.swarm.landing().is_too_near(10.0, 50.0));
    }

    #[test]
    fn muscop_05_a_plan_far_from_the_own_home_is_refused_whatever_its_length() {
        let mut plan = Member::plan();
        for waypoint in &mut plan.waypoints {
            *waypoint = plan::moved(*waypoint, 22_000.0, 0.0);
        }
        let mut member = Member::new(OTHER);
        member.handle(Input::Operator(Command::Setup));
        assert_eq!(member.receive_in(7, MASTER, data_of(&plan)), Some(Refused::Contradiction));
        assert!(!member.swarm.assignment().is_planned());
        assert_eq!(member.logged("m from the start, expected"), 1, "{:?}", member.lines());
    }

    #[test]
    fn muscop_23_the_wait_for_the_path_to_land_is_not_prolonged_by_repeated_messages() {
        let mut member = Member::planned();
        let leader = member.leader();
        assert_eq!(member.receive(leader, Message::Land { at: SITE }), None);
        let ends_at = member.swarm.timers().get(Timer::LandingPath);
        assert_eq!(ends_at, Some(member.now + member.swarm.config().hold_before_landing));
        member.now = member.now + Duration::from_secs(30);
        assert_eq!(member.receive(leader, Message::Land { at: SITE }), None);
        assert_eq!(member.swarm.timers().get(Timer::LandingPath), ends_at);
        // All together: none waits for another.
        assert!(member.swarm.may_leave_to_land(member.now));
    }

    /// Two that began to land a few seconds apart came within 0.8 m in a wind of 4 m/s once both had
    /// lost their positions.
    #[test]
    fn muscop_37_all_that_land_together_begin_their_descent_together() {
        let begins = |landing, at_m: f64, holds, for_battery, after: Duration| {
            let mut member = Member::planned();
            member.swarm.config.landing = landing;
            let (id, leader) = (member.leader(), member.swarm.members().leader());
            member.receive(id, Message::Land { at: SITE });
            let now = member.now;
            member.swarm.begin_move_to_land(now, None);
            let slot = member.slot_of(THIRD);
            member.now = now + Duration::from_secs(1);
            member.receive(THIRD, Message::LandAround { at: SITE, leader: leader as u8 });
            let site = member.swarm.assignment().landing_position(slot, leader, SITE, 20_000);
            let at = plan::moved(site, at_m, 0.0);
            member.receive(THIRD, if holds { Message::Holding { at } } else { Message::Alive { at } });
            if for_battery {
                member.swarm.landing.land_for_battery();
            }
            !member.swarm.waits_to_descend(now + after)
        };
        let together = Manner::Simultaneous;
        let soon = Duration::from_secs(3);
        assert!(!begins(together, 12.0, false, false, soon), "another still comes");
        assert!(begins(together, 1.0, false, false, soon), "all are there");
        assert!(begins(together, 12.0, true, false, soon), "one that holds may hold for this one");
        assert!(begins(together, 12.0, false, true, soon), "the battery ends the flight");
        assert!(begins(together, 12.0, false, false, Duration::from_secs(60)), "for no longer");
        assert!(begins(Manner::Sequential, 12.0, false, false, soon), "one after the other");
    }

    #[test]
    fn muscop_27_those_nearer_to_the_leader_land_before() {
        let mut member = Member::planned();
        let own = member.swarm.assignment().slot();
        let before = member.swarm.before_us();
        assert!(before.contains(member.swarm.members().leader()) && !before.contains(own));
        // One that lands is down once it is silent.
        let slot = member.slot_of(THIRD);
        let leader = member.swarm.members().leader() as u8;
        member.receive(THIRD, Message::LandAround { at: SITE, leader });
        assert!(!member.swarm.is_down(member.now, slot));
        assert!(member.swarm.is_down(member.now + member.swarm.config().silence, slot));
    }
}
