//! The flight of FollowMe (thesis 7.1): what the leader broadcasts about itself, and how a slave follows it.

use core::f64::consts::TAU;

use wingbeat_geo::{DVec2, DVec3, Duration, Frame, Instant};
use wingbeat_wire::{Coordinates, Message, Point, Refused};

use super::encounter::LeaderPath;
use super::{Config, Landing, LeaderLost, State};
use crate::swarm::plan::{self, position};
use crate::swarm::rejoin::LISTENS;
use crate::swarm::timer::{Timer, TimerSet};
use crate::swarm::view::FormationCenter;
use crate::swarm::{self, Abort, Host, Reason, Transition, Trigger, Urgency};
use crate::{
    Action, Actions, Command, Handling, Input, Order, Severity, StateId, Telemetry, Text, push, text,
};

/// The leader is at height from this part of [`Config::height_m`] on, as a climb is over there.
const AT_HEIGHT: f64 = 0.95;
/// Higher than this above home no aircraft stands on the ground: three deviations of a height.
const UP_M: f64 = 1.0;
/// Motors that run for longer have flown, however low: ArduCopter stops them 10 s after they stood (DISARM_DELAY).
const TRIES_ON_GROUND: Duration = Duration::from_secs(20);
/// No leader flies faster; its reported position may be off by [`LEAP_M`] besides.
const LEADER_MOST_M_S: f64 = 30.0;
/// See [`LEADER_MOST_M_S`].
const LEAP_M: f64 = 20.0;
/// The leader broadcasts its landing for at least this long, even if it has landed earlier.
const LANDING_CALL: Duration = Duration::from_secs(10);
/// The leader is expected to fly on for so long as it did between its last two datagrams; older ones tell nothing.
const LEADER_MOVES_FOR: Duration = Duration::from_secs(5);
/// A leader that was received this long ago may still fly as it did.
const LEADER_KNOWN_FOR: Duration = Duration::from_secs(20);
/// How far from its own position a slave searches for a free landing site, metres.
const SITE_RINGS_M: [f64; 3] = [10.0, 15.0, 20.0];
/// Where motion is shaped no slave flies faster (`WPNAV_SPEED` of ArduCopter 4.x), metres per second; its leader may be as fast.
const SHAPED_SLAVE_M_S: f64 = 10.0;
/// Directions searched at each distance.
const SITE_DIRECTIONS: u32 = 16;

/// States of the flight (thesis figure 7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuidanceState {
    /// The leader: until its pilot has it at height. A slave, there *WaitMaster*: until the leader leads.
    Ready,
    /// The leader leads.
    FollowMe,
    /// A slave follows.
    Following,
    /// A slave holds because it no longer receives its leader.
    LeaderLost {
        /// When it lands if no operator decides.
        land_at: Instant,
    },
    /// The leader's pilot lands it; it calls the slaves to land.
    Descending {
        /// Until when at least.
        until: Instant,
    },
}

type Swarm = swarm::Swarm<GuidanceState>;

/// The state of one aircraft's guidance.
#[derive(Clone, Debug)]
pub(super) struct Guidance {
    config: Config,
    /// The coordinates received last from the leader, and when (slave).
    received: Option<(Instant, Coordinates)>,
    /// The coordinates received before them.
    received_before: Option<(Instant, Coordinates)>,
    /// The leader leads, and its last coordinates are not yet the target (slave).
    is_fresh: bool,
    /// It holds because another stands on its way to its slot, or because it does not receive its leader (slave).
    gives_way: bool,
    /// The position to which it moved off the leader's path while it holds (slave).
    aside: Option<Point>,
    /// Until when it may take to catch up with its slot, after it did not receive its leader (slave).
    catches_up_until: Option<Instant>,
    /// Its companion was restarted in flight: it holds as one that has lost its leader, and follows it again from then on (slave).
    rejoins_at: Option<Instant>,
    /// Its pilot has been up (leader).
    was_up: bool,
    /// Since when its motors run (leader).
    armed_since: Option<Instant>,
    /// The heading of the formation, and since when: it turns after the leader's nose (leader).
    heading: Option<(Instant, f64)>,
    /// How its flight controller moves, and those of its slaves, which are of the same kind (leader).
    handling: Handling,
    /// From the leader to the own slot, in the plan: metres right of the leader's heading, and ahead.
    slot_m: Option<DVec2>,
}

impl Guidance {
    pub(super) fn new(config: Config, swarm: &mut Swarm, now: Instant) -> Self {
        // The formation assembles around the leader: only the height is of the plan.
        let height_mm = (config.height_m * 1e3) as i32;
        let _ = swarm.task_mut().waypoints.push(Point { height_mm, ..Point::default() });
        let first = swarm.draw_phase(now, config.refresh);
        swarm.timers_mut().set(Timer::Coordinates, first);
        Self {
            config,
            received: None,
            received_before: None,
            is_fresh: false,
            gives_way: false,
            aside: None,
            catches_up_until: None,
            rejoins_at: None,
            was_up: false,
            armed_since: None,
            heading: None,
            handling: Handling::Tracks,
            slot_m: None,
        }
    }

    /// Takes how its flight controller moves.
    pub(super) fn set_handling(&mut self, handling: Handling) {
        self.handling = handling;
    }

    /// Nothing was received of a leader.
    pub(super) fn forget(&mut self) {
        (self.received, self.received_before, self.is_fresh) = (None, None, false);
    }

    #[cfg(test)]
    pub(super) fn has_received_leader(&self) -> bool {
        self.received.is_some() || self.is_fresh
    }

    /// The state of a slave that rejoins its flight.
    pub(super) fn rejoin(&mut self, swarm: &Swarm, now: Instant) -> GuidanceState {
        self.slot_m = planned_slot_m(swarm);
        self.rejoins_at = Some(now + LISTENS);
        GuidanceState::LeaderLost { land_at: now + swarm.config().hold_before_landing }
    }

    /// Takes a report of the flight controller.
    pub(super) fn observe(&mut self, swarm: &mut Swarm, now: Instant, telemetry: &Telemetry) {
        match swarm.state() {
            State::Start => swarm.task_mut().heading_rad = heading_of(telemetry),
            State::Flying(_) => {
                self.armed_since = telemetry.armed.then(|| self.armed_since.unwrap_or(now));
                let long = self.armed_since.is_some_and(|since| now.since(since) > TRIES_ON_GROUND);
                self.was_up |= long || telemetry.armed && telemetry.height_m > UP_M;
            }
            State::Setup
            | State::ReadyToFly
            | State::TakingOff(_)
            | State::SetupFinished
            | State::MovingToLand
            | State::Landing
            | State::Finished
            | State::Aborted(_) => {}
        }
    }

    /// Takes the leader's coordinates if they are possible, and lead this aircraft nowhere that it may not be.
    fn on_coordinates(&mut self, swarm: &mut Swarm, now: Instant, c: Coordinates) -> Result<(), Refused> {
        if c.leads {
            let height_m = f64::from(c.at.height_mm) * 1e-3;
            let limits = swarm.config();
            if !(limits.height_least_m..=limits.height_most_m).contains(&height_m) {
                return Err(Refused::Impossible);
            }
            let slot = slot_around(swarm, c).unwrap_or(c.at);
            let start = || swarm.assignment().plan().waypoints.first().copied().unwrap_or_default();
            let home = swarm.ownship().home().unwrap_or_else(start);
            let is_far = |p: Point| distance_m(home, p) > limits.distance_most_m;
            if is_far(c.at) || is_far(slot) {
                return Err(Refused::FarAway);
            }
        }
        // A leader that leaps is a wrong position, and a formation that flies after it is in danger.
        if let Some((at, last)) = self.received {
            let most_m = LEAP_M + LEADER_MOST_M_S * now.since(at).as_secs_f64();
            if distance_m(last.at, c.at) > most_m {
                return Err(Refused::Impossible);
            }
        }
        (self.received_before, self.received) = (self.received, Some((now, c)));
        self.is_fresh |= c.leads;
        self.on_leader(swarm, now);
        Ok(())
    }

    /// The leader was received.
    fn on_leader(&self, swarm: &mut Swarm, now: Instant) {
        swarm.timers_mut().set(Timer::LeaderSilent, now + self.config.leader_timeout);
    }

    fn next_of_leader(
        &self,
        swarm: &Swarm,
        now: Instant,
        flight: GuidanceState,
    ) -> Option<Transition<GuidanceState>> {
        let is_armed = swarm.ownship().is_armed();
        let (height_m, is_in_land) =
            swarm.ownship().telemetry().map_or((0.0, false), |own| (own.height_m, own.landing));
        let lands = is_in_land
            || !is_armed
            || height_m < self.config.lands_below_percent / 100.0 * self.config.height_m;
        let descending =
            Transition::to(State::Flying(GuidanceState::Descending { until: now + LANDING_CALL }));
        match flight {
            GuidanceState::Ready if is_armed && height_m >= AT_HEIGHT * self.config.height_m => {
                Some(Transition::to(State::Flying(GuidanceState::FollowMe)))
            }
            // A climb that was broken off: the slaves that wait in their slots have to land too.
            GuidanceState::Ready if self.was_up && (is_in_land || !is_armed) => Some(descending),
            GuidanceState::FollowMe if lands => Some(descending),
            GuidanceState::Descending { until } if !is_armed && now >= until => {
                Some(Transition::to(State::Finished))
            }
            GuidanceState::Ready
            | GuidanceState::FollowMe
            | GuidanceState::Following
            | GuidanceState::LeaderLost { .. }
            | GuidanceState::Descending { .. } => None,
        }
    }

    fn next_of_slave(
        &self,
        swarm: &Swarm,
        now: Instant,
        flight: GuidanceState,
    ) -> Option<Transition<GuidanceState>> {
        let is_silent = swarm.timers().is_due(Timer::LeaderSilent, now);
        let following = Transition::to(State::Flying(GuidanceState::Following));
        if is_called_to_land(swarm) {
            return Some(Transition::to(self.landing(swarm)));
        }
        match flight {
            GuidanceState::Ready if self.is_fresh => Some(following),
            GuidanceState::Ready | GuidanceState::Following if is_silent => {
                Some(self.without_leader(swarm, now))
            }
            GuidanceState::LeaderLost { .. }
                if self.is_fresh
                    && self.rejoins_at.map_or(self.config.follows_again, |at| now >= at)
                    && self.is_way_free(swarm, now) =>
            {
                Some(following)
            }
            GuidanceState::Following if self.catches_up_until.is_some_and(|at| now >= at) => {
                Some(Transition::because(State::Aborted(Abort::LAND), Reason::LeftBehind))
            }
            GuidanceState::LeaderLost { land_at } if now >= land_at => {
                Some(Transition::because(State::Aborted(Abort::LAND), Reason::LeaderSilentUndecided))
            }
            GuidanceState::Ready
            | GuidanceState::FollowMe
            | GuidanceState::Following
            | GuidanceState::LeaderLost { .. }
            | GuidanceState::Descending { .. } => None,
        }
    }

    /// Returns whether no other aircraft stands on the way to the slot, or crosses it. A follower that has fallen behind does not
    /// fly through the formation.
    fn is_way_free(&self, swarm: &Swarm, now: Instant) -> bool {
        let Some((at, c)) = self.received else { return false };
        let Some(to) = slot_around(swarm, c) else { return false };
        let before = self.received_before.filter(|(before, _)| at.since(*before) <= LEADER_MOVES_FOR);
        let ahead = before.map_or(c.at, |(before, from)| moved_on(from.at, c.at, at.since(before)));
        let clearance = swarm.clearance();
        !clearance.is_way_occupied(now, to) && !clearance.is_way_crossed(to, (c.at, ahead))
    }

    /// Returns whether this follower has not received its leader for so long that it holds.
    fn is_without_word(&self, now: Instant) -> bool {
        self.received.is_some_and(|(at, _)| now.since(at) >= self.config.holds_after())
    }

    /// Returns whether this follower is near its slot, as the leader broadcast it last.
    fn is_near_slot(&self, swarm: &Swarm) -> bool {
        let slot = self.received.and_then(|(_, c)| slot_around(swarm, c));
        let near_m = self.near_slot_m();
        slot.zip(swarm.ownship().point()).is_some_and(|(slot, here)| distance_m(slot, here) <= near_m)
    }

    /// Returns the distance from its slot within which a follower has caught up, in metres. Behind a fast leader a healthy follower
    /// is tens of metres behind all the time.
    fn near_slot_m(&self) -> f64 {
        let leader_m_s = self.leader_velocity_m_s().length();
        (self.config.swarm.distance_m / 2.0).max(self.config.lag_m(leader_m_s, self.handling))
    }

    /// Returns the velocity of the leader between its last two datagrams, in m/s east and north;
    /// zero where they are far apart.
    fn leader_velocity_m_s(&self) -> DVec2 {
        self.received.zip(self.received_before).map_or(DVec2::ZERO, |((at, to), (before, from))| {
            let took_s = at.since(before).as_secs_f64();
            let is_recent = at.since(before) <= LEADER_MOVES_FOR;
            if is_recent { way_m(from.at, to.at) / took_s.max(0.1) } else { DVec2::ZERO }
        })
    }

    /// Returns the leader by now and as it moves past this follower, if it was received lately, and
    /// the position of the follower: where it holds, or where it is and flies on.
    fn leader_past(&self, swarm: &Swarm, now: Instant) -> Option<(LeaderPath, Point)> {
        let (at, c) = self.received.filter(|(at, _)| now.since(*at) <= LEADER_KNOWN_FOR)?;
        let own = swarm.ownship().telemetry()?;
        let holds = self.gives_way || swarm.state() != State::Flying(GuidanceState::Following);
        let (stand, own_m_s) = match self.aside {
            Some(site) => (site, DVec2::ZERO),
            None if holds => (own.point(), DVec2::ZERO),
            None => (own.point(), own.velocity_m_s.truncate()),
        };
        let velocity_m_s = self.leader_velocity_m_s();
        let moved_m = velocity_m_s * now.since(at).as_secs_f64();
        let at = plan::moved(c.at, moved_m.x, moved_m.y);
        Some((LeaderPath { at, velocity_m_s: velocity_m_s - own_m_s }, stand))
    }

    /// Returns whether the leader flies towards this follower.
    fn is_met_by_leader(&self, swarm: &Swarm, now: Instant) -> bool {
        let clear_m = swarm.config().clear_m();
        self.leader_past(swarm, now)
            .is_some_and(|(leader, stand)| leader.sites_off(stand, clear_m).next().is_some())
    }

    /// Returns a position off the path on which the leader flies towards this follower, with a free
    /// way to it.
    fn site_off_leader(&self, swarm: &Swarm, now: Instant) -> Option<Point> {
        let (leader, stand) = self.leader_past(swarm, now)?;
        let ahead_m = self.leader_velocity_m_s() * LEADER_MOVES_FOR.as_secs_f64();
        let ahead = plan::moved(leader.at, ahead_m.x, ahead_m.y);
        let (clearance, limits) = (swarm.clearance(), swarm.config());
        let home = swarm.ownship().home();
        leader.sites_off(stand, limits.clear_m()).find(|&site| {
            home.is_none_or(|home| distance_m(home, site) <= limits.distance_most_m)
                && !clearance.is_way_occupied(now, site)
                && !clearance.is_way_crossed(site, (leader.at, ahead))
        })
    }

    /// As configured.
    fn without_leader(&self, swarm: &Swarm, now: Instant) -> Transition<GuidanceState> {
        match self.config.leader_lost {
            LeaderLost::Hold => {
                let land_at = now + swarm.config().hold_before_landing;
                Transition::to(State::Flying(GuidanceState::LeaderLost { land_at }))
            }
            LeaderLost::Land => Transition::because(State::Aborted(Abort::LAND), Reason::LeaderSilent),
        }
    }

    /// How a slave begins to land.
    fn landing(&self, swarm: &Swarm) -> State {
        match self.config.landing {
            Landing::InPlace if site_aside(swarm).is_none() => State::Landing,
            Landing::InPlace | Landing::Formation => State::MovingToLand,
        }
    }

    /// The heading of the formation as the leader broadcast it last; before that, as planned.
    pub(super) fn heading_rad(&self, swarm: &Swarm) -> f64 {
        let planned_rad = || plan::heading_rad(swarm.assignment().plan());
        self.received.map_or_else(planned_rad, |(_, c)| f64::from(c.heading_urad) * 1e-6)
    }

    /// From the leader to the own slot: metres right of the leader's heading, and ahead; none before the plan is known.
    pub(super) fn slot_in_heading_m(&self) -> Option<DVec2> {
        self.slot_m
    }

    /// The same in metres east and north, with the heading of the formation as received last.
    pub(super) fn slot_offset_m(&self, swarm: &Swarm) -> Option<DVec2> {
        let slot_m = self.slot_m?;
        let (sin, cos) = libm::sincos(self.heading_rad(swarm));
        Some(DVec2::new(slot_m.x * cos + slot_m.y * sin, slot_m.y * cos - slot_m.x * sin))
    }

    /// Where the formation is while this aircraft leads it.
    pub(super) fn formation_around(&self, swarm: &Swarm) -> Option<FormationCenter> {
        let leads = swarm.state() == State::Flying(GuidanceState::FollowMe);
        let ((_, heading_rad), here) = self.heading.filter(|_| leads).zip(swarm.ownship().point())?;
        Some(FormationCenter::Position(here, heading_rad))
    }

    /// The greatest speed of the outermost slot around the leader, metres per second. Where a leader may be as fast as its slaves a
    /// slot that turns to the front leaves its slave behind, by up to twice its distance; when the leader stops, that slave flies
    /// to its slot straight through the leader. So the formation turns with what the leader's speed leaves of theirs.
    fn turn_most_m_s(&self, own: &Telemetry) -> f64 {
        match self.handling {
            // As published.
            Handling::Shaped if self.config.turn_m_s.is_finite() => {
                let leader_m_s = own.velocity_m_s.truncate().length();
                self.config.turn_m_s.min((SHAPED_SLAVE_M_S - leader_m_s).max(0.0))
            }
            Handling::Tracks | Handling::Shaped => self.config.turn_m_s,
        }
    }

    /// Turns the formation after the leader's nose, no faster than its outermost slave can follow. It stays as planned
    /// until the leader leads: that is where the slaves wait.
    fn turn_formation(&mut self, swarm: &Swarm, now: Instant) {
        let planned_rad = plan::heading_rad(swarm.assignment().plan());
        if swarm.state() != State::Flying(GuidanceState::FollowMe) {
            self.heading = Some((now, planned_rad));
            return;
        }
        let Some(own) = swarm.ownship().telemetry() else { return };
        let Some(nose_rad) = heading_of(own) else { return };
        let (since, heading_rad) = self.heading.unwrap_or((now, planned_rad));
        let outermost_m = plan::formation(swarm.assignment().plan())
            .map_or(0.0, |f| (0..f.count()).map(|slot| f.offset_m(slot, 0.0).length()).fold(0.0, f64::max));
        let most_rad = self.turn_most_m_s(own) / outermost_m.max(1.0) * now.since(since).as_secs_f64();
        let turn_rad = libm::remainder(nose_rad - heading_rad, TAU);
        let turned_rad = heading_rad + turn_rad.clamp(-most_rad, most_rad);
        self.heading = Some((now, turned_rad - libm::floor(turned_rad / TAU) * TAU));
    }

    /// What the leader broadcasts about itself; none where it does not know it.
    pub(super) fn coordinates(&self, swarm: &Swarm) -> Option<Coordinates> {
        let leads = swarm.state() == State::Flying(GuidanceState::FollowMe);
        let is_ready = swarm.state() == State::Flying(GuidanceState::Ready) && swarm.is_master();
        if !leads && !is_ready {
            return None;
        }
        let own = swarm.ownship().telemetry()?;
        heading_of(own)?;
        let planned_rad = || plan::heading_rad(swarm.assignment().plan());
        let heading_rad = self.heading.map_or_else(planned_rad, |(_, heading_rad)| heading_rad);
        let heading_urad = ((heading_rad * 1e6) as u32).min(6_283_185);
        Some(Coordinates { at: own.point(), heading_urad, leads })
    }

    /// What this aircraft does or waits for, in one line.
    pub(super) fn detail(&self, swarm: &Swarm) -> Text {
        let (height_m, is_leader, slot) =
            (self.config.height_m, swarm.is_master(), swarm.assignment().slot());
        match swarm.state() {
            State::Flying(GuidanceState::Ready) if is_leader => {
                text!("waiting for its pilot to be at {height_m} m")
            }
            State::Flying(GuidanceState::Ready) => text!("in slot {slot}, waiting for the leader"),
            State::Flying(GuidanceState::FollowMe) => text!("flown by its pilot, broadcasting its position"),
            State::Flying(GuidanceState::Following | GuidanceState::LeaderLost { .. })
                if self.aside.is_some() =>
            {
                text!("slot {slot}: moved aside of the leader, holding until the way to the slot is free")
            }
            State::Flying(GuidanceState::Following) if self.gives_way => {
                text!("slot {slot}: holding until the leader is received and the way to the slot is free")
            }
            State::Flying(GuidanceState::Following) => text!("following in slot {slot}"),
            State::Flying(GuidanceState::LeaderLost { .. }) if self.rejoins_at.is_some() => {
                text!("holding, rejoins its swarm when it receives its leader, or lands")
            }
            State::Flying(GuidanceState::LeaderLost { .. }) => {
                text!("the leader is silent: holding, then landing")
            }
            State::Flying(GuidanceState::Descending { .. }) => {
                text!("landed by its pilot, commanding all to land")
            }
            State::TakingOff(_) if is_leader => {
                text!("waiting for {} to be in their slots", swarm.missing(swarm.take_off().in_slot()))
            }
            State::SetupFinished if is_leader => text!("all in their slots, waiting for the start"),
            State::Finished => text!("flight completed, landed"),
            State::Start
            | State::Setup
            | State::ReadyToFly
            | State::TakingOff(_)
            | State::SetupFinished
            | State::MovingToLand
            | State::Landing
            | State::Aborted(_) => swarm.detail().unwrap_or_default(),
        }
    }
}

impl Guidance {
    /// Stops and logs the cause, unless this aircraft holds already.
    fn hold(&mut self, cause: &str, out: &mut Actions) {
        if !core::mem::replace(&mut self.gives_way, true) {
            push(out, Action::Log(Severity::Info, text!("holding: {cause}")));
            push(out, Action::Order(Order::Hold));
        }
    }

    /// Moves off the path of the leader. The leader is its pilot's, and this follower holds without
    /// that pilot knowing.
    fn make_way(&mut self, swarm: &Swarm, now: Instant, out: &mut Actions) {
        let Some(site) = self.site_off_leader(swarm, now) else { return };
        self.aside = Some(site);
        push(out, Action::Log(Severity::Warning, text!("the leader flies towards here: moving aside")));
        push(out, Action::Order(Order::FlyTo(site)));
    }
}

impl Host for Guidance {
    type FlyingState = GuidanceState;

    fn on_message(
        &mut self,
        swarm: &mut Swarm,
        now: Instant,
        slot: usize,
        message: &Message,
    ) -> Result<(), Refused> {
        let is_from_leader = slot == swarm.members().leader();
        if let Message::Coordinates(coordinates) = message {
            if !is_from_leader {
                return Err(Refused::UnexpectedSender);
            }
            return self.on_coordinates(swarm, now, *coordinates);
        }
        if message.is_command() && !is_from_leader {
            return Err(Refused::UnexpectedSender);
        }
        if matches!(message, Message::Land { .. }) {
            self.on_leader(swarm, now);
        }
        Ok(())
    }

    fn next(&self, swarm: &Swarm, now: Instant, trigger: Trigger) -> Option<Transition<GuidanceState>> {
        let is_leader = swarm.is_master();
        match swarm.state() {
            State::SetupFinished if trigger == Trigger::Command(Command::Start) => {
                Some(Transition::to(State::Flying(GuidanceState::Ready)))
            }
            State::SetupFinished if !is_leader && is_called_to_land(swarm) => {
                Some(Transition::to(self.landing(swarm)))
            }
            State::SetupFinished if leader_lost_at(swarm).is_some_and(|at| now >= at) => {
                Some(self.without_leader(swarm, now))
            }
            State::Flying(flight) if is_leader => self.next_of_leader(swarm, now, flight),
            State::Flying(flight) => self.next_of_slave(swarm, now, flight),
            State::Start
            | State::Setup
            | State::ReadyToFly
            | State::TakingOff(_)
            | State::SetupFinished
            | State::MovingToLand
            | State::Landing
            | State::Finished
            | State::Aborted(_) => None,
        }
    }

    fn enter(&mut self, swarm: &mut Swarm, now: Instant, old: State, out: &mut Actions) -> Option<Urgency> {
        self.slot_m = planned_slot_m(swarm);
        (self.gives_way, self.rejoins_at, self.catches_up_until) = (false, None, None);
        self.aside = None;
        let State::Flying(flight) = swarm.state() else { return None };
        if let (GuidanceState::Following, State::Flying(GuidanceState::LeaderLost { .. })) = (flight, old) {
            self.catches_up_until = Some(swarm.config().patience_after(now));
        }
        match flight {
            // A leader that was never received may not have been started yet: it is waited for as long as an operator.
            GuidanceState::Ready if !was_leader_received(swarm) => {
                let ends_at = now + swarm.config().hold_before_landing;
                swarm.timers_mut().set(Timer::LeaderSilent, ends_at);
            }
            GuidanceState::LeaderLost { .. } => {
                self.is_fresh = false;
                push(out, Action::Order(Order::Hold));
            }
            GuidanceState::Ready
            | GuidanceState::FollowMe
            | GuidanceState::Following
            | GuidanceState::Descending { .. } => {}
        }
        None
    }

    /// A slave flies after the last coordinates, unless another stands on the way: then it holds until that one has landed, or
    /// the leader has led it past. It holds as well where it does not receive its leader, and then flies to its slot only
    /// while no other crosses its way. While it holds it makes way for the leader.
    fn act(&mut self, swarm: &mut Swarm, now: Instant, _: &Input<'_>, out: &mut Actions) -> Option<Urgency> {
        if matches!(swarm.state(), State::Flying(GuidanceState::LeaderLost { .. })) && !swarm.is_master() {
            self.make_way(swarm, now, out);
        }
        if swarm.state() != State::Flying(GuidanceState::Following) {
            return None;
        }
        if core::mem::take(&mut self.is_fresh) {
            if self.is_near_slot(swarm) {
                self.catches_up_until = None;
            }
            let target = self.received.and_then(|(_, c)| slot_around(swarm, c));
            let is_occupied = match self.catches_up_until {
                Some(_) => !self.is_way_free(swarm, now) || self.is_met_by_leader(swarm, now),
                None => target.is_some_and(|to| swarm.clearance().is_way_occupied(now, to)),
            };
            if is_occupied {
                self.is_fresh = true;
                self.hold("the way to the slot is not free", out);
                self.make_way(swarm, now, out);
                return None;
            }
            (self.gives_way, self.aside) = (false, None);
            swarm.fly_to(now, target, out);
        } else if self.is_without_word(now) {
            self.catches_up_until.get_or_insert(swarm.config().patience_after(now));
            self.hold("the leader is not received", out);
            self.make_way(swarm, now, out);
        }
        None
    }

    /// Besides the coordinates: the leader's call to land, and where a slave stands.
    fn messages(&self, swarm: &Swarm, now: Instant, flight: GuidanceState) -> [Option<Message>; 2] {
        match flight {
            GuidanceState::Descending { .. } => {
                [swarm.ownship().point().map(|at| Message::Land { at }), None]
            }
            GuidanceState::LeaderLost { .. } => {
                [swarm.position_at(now).map(|at| Message::Holding { at }), None]
            }
            GuidanceState::Following if self.gives_way => {
                [swarm.position_at(now).map(|at| Message::Holding { at }), None]
            }
            // The leader broadcasts its coordinates instead.
            GuidanceState::FollowMe => [None, None],
            GuidanceState::Ready if swarm.is_master() => [None, None],
            GuidanceState::Ready | GuidanceState::Following => {
                [swarm.position_at(now).map(|at| Message::Alive { at }), None]
            }
        }
    }

    fn hover_position(&self, swarm: &Swarm, flight: GuidanceState) -> Option<Point> {
        match flight {
            GuidanceState::Ready => swarm.assignment().route().first().copied(),
            GuidanceState::FollowMe
            | GuidanceState::Following
            | GuidanceState::LeaderLost { .. }
            | GuidanceState::Descending { .. } => None,
        }
    }

    /// Around the leader's landing site, turned as the formation was last; or at the nearest free site.
    fn landing_site(&self, swarm: &Swarm) -> Option<Point> {
        match self.config.landing {
            Landing::InPlace => site_aside(swarm),
            Landing::Formation => {
                let (leader_site, here) = swarm.landing().leader_site().zip(swarm.ownship().point())?;
                let (assignment, heading_rad) = (swarm.assignment(), self.heading_rad(swarm));
                let (slot, center) = (assignment.slot(), assignment.center());
                let plan = assignment.plan();
                Some(plan::landing_place(plan, slot, center, leader_site, heading_rad, here.height_mm))
            }
        }
    }

    /// The leader's coordinates, each refresh, from its start on.
    fn broadcast(&mut self, swarm: &mut Swarm, now: Instant, out: &mut Actions) {
        if !swarm.is_master() || !swarm.timers().is_due(Timer::Coordinates, now) {
            return;
        }
        let period = self.config.refresh.max(Duration::from_millis(1));
        while let Some(at) = swarm.timers().get(Timer::Coordinates).filter(|&at| at <= now) {
            swarm.timers_mut().set(Timer::Coordinates, at + period);
        }
        self.turn_formation(swarm, now);
        if let Some(coordinates) = self.coordinates(swarm) {
            let message = Message::Coordinates(coordinates);
            push(out, Action::Broadcast { flight: swarm.assignment().flight(), message });
        }
    }

    fn running(&self, swarm: &Swarm) -> TimerSet {
        let State::Flying(flight) = swarm.state() else { return TimerSet::EMPTY };
        match flight {
            // Only the end of its call to land.
            GuidanceState::Descending { .. } if !swarm.ownship().is_armed() => TimerSet::EMPTY,
            _ if swarm.is_master() => TimerSet::of(Timer::Coordinates),
            GuidanceState::LeaderLost { .. } => TimerSet::EMPTY,
            GuidanceState::Ready
            | GuidanceState::FollowMe
            | GuidanceState::Following
            | GuidanceState::Descending { .. } => TimerSet::of(Timer::LeaderSilent),
        }
    }

    fn deadline(&self, swarm: &Swarm) -> Option<(Instant, &'static str)> {
        match swarm.state() {
            State::Flying(GuidanceState::Descending { until }) if !swarm.ownship().is_armed() => {
                Some((until, "down"))
            }
            State::Flying(GuidanceState::LeaderLost { land_at }) => Some((land_at, "no operator decided")),
            State::SetupFinished => leader_lost_at(swarm).map(|at| (at, "leader silent")),
            State::Start
            | State::Setup
            | State::ReadyToFly
            | State::TakingOff(_)
            | State::Flying(_)
            | State::MovingToLand
            | State::Landing
            | State::Finished
            | State::Aborted(_) => None,
        }
    }

    fn describe(&self, swarm: &Swarm) -> (StateId, Text) {
        (state_id(swarm), self.detail(swarm))
    }
}

/// The state, by its name in the thesis.
pub(super) fn state_id(swarm: &Swarm) -> StateId {
    let State::Flying(flight) = swarm.state() else { return swarm.state_id().unwrap_or(StateId::Following) };
    match flight {
        GuidanceState::Ready if swarm.is_master() => StateId::Ready,
        GuidanceState::Ready => StateId::WaitMaster,
        GuidanceState::FollowMe => StateId::FollowMe,
        GuidanceState::Following => StateId::Following,
        GuidanceState::LeaderLost { .. } => StateId::LeaderLost,
        GuidanceState::Descending { .. } => StateId::Landing,
    }
}

/// From the leader to the own slot, in the plan: metres right of the leader's heading, and ahead.
fn planned_slot_m(swarm: &Swarm) -> Option<DVec2> {
    let formation = plan::formation(swarm.assignment().plan()).ok()?;
    Some(formation.offset_m(swarm.assignment().slot(), 0.0))
}

/// Where the own slot is when the leader is there (thesis equation 7.1), as much higher or lower as the formation has it,
/// but within the fence: a leader near the ground leads no slave into it.
pub(super) fn slot_around(swarm: &Swarm, c: Coordinates) -> Option<Point> {
    let (assignment, limits) = (swarm.assignment(), swarm.config());
    let formation = plan::formation(assignment.plan()).ok()?;
    let offset = formation.offset_m(assignment.slot(), f64::from(c.heading_urad) * 1e-6);
    let p = Frame::new(position(c.at)).to_position(DVec3::new(offset.x, offset.y, 0.0));
    let height_m = f64::from(c.at.height_mm) * 1e-3 + formation.height_m(assignment.slot());
    let height_m = height_m.clamp(limits.height_least_m, limits.height_most_m.max(limits.height_least_m));
    Some(plan::point(p, libm::round(height_m * 1e3) as i32))
}

/// Whether the leader was ever received: from then on its silence is measured.
fn was_leader_received(swarm: &Swarm) -> bool {
    swarm.timers().is_set(Timer::LeaderSilent)
}

fn is_called_to_land(swarm: &Swarm) -> bool {
    swarm.landing().leader_site().is_some()
}

/// A free landing site near the own position; none where the own is free, or none is.
fn site_aside(swarm: &Swarm) -> Option<Point> {
    swarm.clearance().unoccupied_position(&SITE_RINGS_M, SITE_DIRECTIONS)
}

/// When a slave in its slot, which receives its leader five times a second, no longer waits for one that is silent: after
/// as long as for an operator.
fn leader_lost_at(swarm: &Swarm) -> Option<Instant> {
    let received_at = swarm.members().received_at(swarm.members().leader())?;
    (!swarm.is_master()).then_some(received_at + swarm.config().hold_before_landing)
}

/// The heading, where it is one. A whole turn is none.
pub(super) fn heading_of(telemetry: &Telemetry) -> Option<f64> {
    let heading_rad = telemetry.heading_rad;
    if !(0.0..=TAU).contains(&heading_rad) {
        return None;
    }
    Some(if heading_rad * 1e6 >= 6_283_185.0 { 0.0 } else { heading_rad })
}

/// Returns the position of the leader after [`LEADER_MOVES_FOR`] if it flies on as it did between two datagrams.
fn moved_on(from: Point, to: Point, took: Duration) -> Point {
    let on_m = way_m(from, to) * (LEADER_MOVES_FOR.as_secs_f64() / took.as_secs_f64().max(0.1));
    plan::moved(to, on_m.x, on_m.y)
}

/// Returns the way from one point to another over the ground, in metres east and north.
fn way_m(from: Point, to: Point) -> DVec2 {
    Frame::new(position(from)).to_local(position(to)).truncate()
}

fn distance_m(a: Point, b: Point) -> f64 {
    way_m(a, b).length()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_wire::VehicleId;

    #[test]
    fn follow_21_a_follower_as_far_behind_a_fast_leader_as_it_lags_has_caught_up() {
        let config = Config::new(VehicleId(2), VehicleId(1), 2);
        let mut swarm = Swarm::new(config.swarm.clone(), 1, Instant::ZERO);
        let mut guidance = Guidance::new(config, &mut swarm, Instant::ZERO);
        let mut near_m = |leader_m_s: f64, handling| {
            let from = Point { latitude_e7: 394_825_940, longitude_e7: -3_462_650, height_mm: 20_000 };
            let coordinates = |at| Coordinates { at, heading_urad: 0, leads: true };
            guidance.set_handling(handling);
            guidance.received_before = Some((Instant::from_secs(1), coordinates(from)));
            let to = plan::moved(from, leader_m_s, 0.0);
            guidance.received = Some((Instant::from_secs(2), coordinates(to)));
            libm::round(guidance.near_slot_m())
        };
        assert_eq!(near_m(0.0, Handling::Tracks), 30.0, "half the distance");
        assert_eq!(near_m(10.0, Handling::Shaped), 60.0);
        assert_eq!(near_m(5.0, Handling::Tracks), 49.0);
    }
}
