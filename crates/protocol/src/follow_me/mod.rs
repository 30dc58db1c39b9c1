//! FollowMe: a pilot flies one aircraft, a formation follows it (thesis chapter 7).
//!
//! The *leader* is flown by a pilot through its transmitter and never commanded: its companion organises the
//! setup of the *slaves*, which take off to their slots around it, and then tells where it is and where its
//! nose points. A slave flies to its slot, turned with that heading, at the leader's height. When the leader
//! comes down, the slaves are told to land.
//!
//! ```text
//! Start … SetupFinished as in every swarm
//! leader: SetupFinished ─Start▶ Ready ─its pilot is at height▶ FollowMe ─low, LAND, or down▶ Landing ▶ Finished
//! slave:  SetupFinished ─Start▶ WaitMaster ─told▶ Following ─Land▶ (MovingToLand ▶) Landing ▶ Finished
//!         WaitMaster, Following ─silence▶ as configured: LeaderLost (holding), Aborted (landing, returning)
//! slave:  Hold, Return, Land by the operator, or a failure ▶ Aborted
//! ```
//!
//! What comes before and after the flight is [`Swarm`]'s. Deciding is apart from doing: [`FollowMe::next`]
//! reads and writes nothing. Departures from the thesis are listed with their reasons in
//! `docs/protocols/follow-me.md`.

mod config;
mod landing;

#[cfg(test)]
mod tests;

pub use config::{Config, Landing, LeaderLost, UnknownWord};

use core::f64::consts::TAU;

use rand_core::Rng;
use wingbeat_geo::{DVec2, DVec3, Duration, Frame, Instant, Position};
use wingbeat_wire::{Coordinates, Message, Point, Refused};

use crate::swarm::preview::Around;
use crate::swarm::{self, Abort, Heard, Swarm, plan};
use crate::{
    Action, Actions, Command, Denied, Details, Input, MissionError, Order, Phase, Protocol, StateId,
    Telemetry, Text, View, push, text,
};

/// The leader is at height from this part of [`Config::height_m`] on, as a climb is over there.
const AT_HEIGHT: f64 = 0.95;
/// Below this part of it the leader comes down (reference).
const COMES_DOWN: f64 = 0.5;
/// Higher than this above home nobody stands on the ground: three deviations of a height.
const UP_M: f64 = 1.0;
/// Motors that run for longer have flown, however low: ArduCopter stops them 10 s after they stood (DISARM_DELAY).
const TRIES_ON_GROUND: Duration = Duration::from_secs(20);
/// No leader flies faster; what is told of it may be off by [`LEAP_M`] besides.
const LEADER_MOST_M_S: f64 = 30.0;
/// See [`LEADER_MOST_M_S`].
const LEAP_M: f64 = 20.0;
/// The leader calls to land for so long at least, even if it is down at once.
const CALLS_TO_LAND: Duration = Duration::from_secs(10);

/// States of the flight (thesis figure 7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flight {
    /// The leader: until its pilot has it at height. A slave, there *WaitMaster*: until the leader leads.
    Ready,
    /// The leader leads.
    FollowMe,
    /// A slave follows.
    Following,
    /// A slave holds because it no longer hears its leader.
    LeaderLost {
        /// When it lands if nobody decides.
        land_at: Instant,
    },
    /// The leader's pilot brings it down; it calls the slaves to land.
    Descending {
        /// Until when at least.
        until: Instant,
    },
}

/// All states.
pub type State = swarm::State<Flight>;

/// FollowMe on one aircraft.
pub struct FollowMe {
    swarm: Swarm<Flight>,
    config: Config,
    /// What the leader told last, and when.
    told: Option<(Instant, Coordinates)>,
    /// It leads, and our target is not yet what it told.
    is_fresh: bool,
    /// When the leader was heard last: also its call to land.
    heard_at: Option<Instant>,
    /// Since when we wait for the leader.
    waits_since: Instant,
    /// Its pilot has been up (leader).
    was_up: bool,
    /// Since when its motors run (leader).
    armed_since: Option<Instant>,
    /// When we tell next (leader).
    tell_at: Instant,
    /// Where the formation points, and since when: it turns after the leader's nose (leader).
    formation: Option<(Instant, f64)>,
    /// From the leader to our slot, in the plan: metres right of the leader's heading, and ahead.
    slot_m: Option<DVec2>,
}

impl FollowMe {
    /// An aircraft in state [`State::Start`]. `seed` sets the phase of its timers, so that not all talk
    /// at once, and the number of the flights it plans.
    pub fn new(mut config: Config, seed: u64, now: Instant) -> Self {
        config.swarm.piloted_master = true;
        let mut swarm = Swarm::new(config.swarm.clone(), seed, now);
        // The formation assembles around the leader: only the height is of the plan.
        let height_mm = (config.height_m * 1e3) as i32;
        let _ = swarm.task.waypoints.push(Point { height_mm, ..Point::default() });
        let phase_us = swarm.chance.next_u64() % (config.refresh.as_micros() as u64).max(1);
        Self {
            swarm,
            told: None,
            is_fresh: false,
            heard_at: None,
            waits_since: Instant::NEVER,
            was_up: false,
            armed_since: None,
            tell_at: now + Duration::from_micros(phase_us),
            formation: None,
            slot_m: None,
            config,
        }
    }

    fn is_leader(&self) -> bool {
        self.swarm.is_master()
    }

    /// Writes an input into the books.
    fn absorb(&mut self, now: Instant, input: Input<'_>) -> Result<(), Refused> {
        if let Input::Telemetry(at) = input
            && self.swarm.state == State::Start
        {
            self.swarm.task.heading_rad = heading_of(&at);
        }
        if let Input::Telemetry(at) = input
            && matches!(self.swarm.state, State::Flying(_))
        {
            self.armed_since = at.armed.then(|| self.armed_since.unwrap_or(now));
            let long = self.armed_since.is_some_and(|since| now.since(since) > TRIES_ON_GROUND);
            self.was_up |= long || at.armed && at.height_m > UP_M;
        }
        // The operator does not command what a pilot flies.
        let stops = matches!(input, Input::Operator(Command::Hold | Command::Return | Command::Land));
        if stops && self.is_leader() && self.swarm.airborne() {
            return Ok(());
        }
        let Some(Heard { slot, message }) = self.swarm.absorb(now, input)? else { return Ok(()) };
        match message {
            Message::Coordinates(_) | Message::Land { .. } if slot != self.swarm.leader => {
                return Err(Refused::Stranger);
            }
            Message::Coordinates(coordinates) => self.hear_leader(now, *coordinates)?,
            Message::Land { .. } => self.heard_at = Some(now),
            _ => {}
        }
        Ok(())
    }

    /// Believes the leader if what it tells is possible and leads us nowhere that we may not be.
    fn hear_leader(&mut self, now: Instant, c: Coordinates) -> Result<(), Refused> {
        let start = self.swarm.plan.waypoints.first().copied().unwrap_or_default();
        if c.leads {
            let height_m = f64::from(c.at.height_mm) * 1e-3;
            let limits = &self.swarm.config;
            if !(limits.height_least_m..=limits.height_most_m).contains(&height_m) {
                return Err(Refused::Impossible);
            }
            let slot = self.slot_of(c).unwrap_or(c.at);
            let far = |p: Point| apart_m(start, p) > limits.distance_most_m;
            if far(c.at) || far(slot) {
                return Err(Refused::FarAway);
            }
        }
        // A leader that leaps is a wrong position, and a formation that flies after it is in danger.
        if let Some((at, last)) = self.told {
            let most_m = LEAP_M + LEADER_MOST_M_S * now.since(at).as_secs_f64();
            if apart_m(last.at, c.at) > most_m {
                return Err(Refused::Impossible);
            }
        }
        self.told = Some((now, c));
        self.heard_at = Some(now);
        self.is_fresh |= c.leads;
        Ok(())
    }

    /// Where our slot is when the leader is there (thesis equation 7.1), as much higher or lower as the formation has
    /// it, but within the fence: a leader near the ground leads nobody into it.
    fn slot_of(&self, c: Coordinates) -> Option<Point> {
        let formation = plan::formation(&self.swarm.plan).ok()?;
        let offset = formation.offset_m(self.swarm.slot, f64::from(c.heading_urad) * 1e-6);
        let frame = Frame::new(position(c.at));
        let p = frame.to_position(DVec3::new(offset.x, offset.y, 0.0));
        let height_m = f64::from(c.at.height_mm) * 1e-3 + formation.height_m(self.swarm.slot);
        let limits = &self.swarm.config;
        let height_m = height_m.clamp(limits.height_least_m, limits.height_most_m.max(limits.height_least_m));
        let height_mm = libm::round(height_m * 1e3) as i32;
        Some(Point { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, height_mm })
    }

    /// Our slot seen from the leader, metres east and north, where the formation has the heading received last.
    fn slot_offset_m(&self) -> Option<DVec2> {
        let slot_m = self.slot_m?;
        let heading_rad = match self.told {
            Some((_, c)) => f64::from(c.heading_urad) * 1e-6,
            None => plan::heading_rad(&self.swarm.plan),
        };
        let (sin, cos) = libm::sincos(heading_rad);
        Some(DVec2::new(slot_m.x * cos + slot_m.y * sin, slot_m.y * cos - slot_m.x * sin))
    }

    /// When the leader counts as lost. One that was never heard may not have been started yet: for it we wait as
    /// long as for an operator.
    fn lost_at(&self) -> Instant {
        match self.heard_at {
            Some(at) => at + self.config.leader_timeout,
            None if self.waits_since == Instant::NEVER => Instant::NEVER,
            None => self.waits_since + self.swarm.config.hold_before_landing,
        }
    }

    /// The transition table: it reads and never writes, so a test can print it whole.
    fn next(&self, now: Instant) -> State {
        let next = self.swarm.next(now);
        if next != self.swarm.state {
            return next;
        }
        match self.swarm.state {
            State::SetupFinished if self.swarm.asked == Some(Command::Start) => State::Flying(Flight::Ready),
            State::SetupFinished if !self.is_leader() && self.called_to_land() => self.landing(),
            State::SetupFinished if now >= self.hangs_until() => self.without_leader(now),
            State::Flying(flight) if self.is_leader() => self.next_of_leader(now, flight),
            State::Flying(flight) => self.next_of_slave(now, flight),
            unchanged => unchanged,
        }
    }

    fn next_of_leader(&self, now: Instant, flight: Flight) -> State {
        let height_m = self.swarm.at.map_or(0.0, |at| at.height_m);
        let lands = self.swarm.at.is_some_and(|at| at.landing);
        let comes_down = lands || !self.swarm.airborne() || height_m < COMES_DOWN * self.config.height_m;
        match flight {
            Flight::Ready if self.swarm.airborne() && height_m >= AT_HEIGHT * self.config.height_m => {
                State::Flying(Flight::FollowMe)
            }
            // A climb that was broken off: whoever waits in a slot has to come down too.
            Flight::Ready if self.was_up && (lands || !self.swarm.airborne()) => {
                State::Flying(Flight::Descending { until: now + CALLS_TO_LAND })
            }
            Flight::FollowMe if comes_down => {
                State::Flying(Flight::Descending { until: now + CALLS_TO_LAND })
            }
            Flight::Descending { until } if !self.swarm.airborne() && now >= until => State::Finished,
            unchanged => State::Flying(unchanged),
        }
    }

    fn next_of_slave(&self, now: Instant, flight: Flight) -> State {
        let is_lost = now >= self.lost_at();
        match flight {
            _ if self.called_to_land() => self.landing(),
            Flight::Ready if self.is_fresh => State::Flying(Flight::Following),
            Flight::Ready | Flight::Following if is_lost => self.without_leader(now),
            Flight::LeaderLost { .. } if self.is_fresh && self.config.follows_again => {
                State::Flying(Flight::Following)
            }
            Flight::LeaderLost { land_at } if now >= land_at => State::Aborted(Abort::Land),
            unchanged => State::Flying(unchanged),
        }
    }

    /// As configured.
    fn without_leader(&self, now: Instant) -> State {
        match self.config.leader_lost {
            LeaderLost::Hold => {
                let land_at = now + self.swarm.config.hold_before_landing;
                State::Flying(Flight::LeaderLost { land_at })
            }
            LeaderLost::Land => State::Aborted(Abort::Land),
            LeaderLost::Return => State::Aborted(Abort::Return),
        }
    }

    /// A slave in its slot hears its leader five times a second. When it no longer waits for one that says nothing:
    /// as long as for an operator.
    fn hangs_until(&self) -> Instant {
        match self.swarm.peers.get(self.swarm.leader) {
            Some(leader) if !self.is_leader() => leader.heard_at + self.swarm.config.hold_before_landing,
            _ => Instant::NEVER,
        }
    }

    fn state_id(&self) -> StateId {
        match self.swarm.state {
            State::Flying(Flight::Ready) if self.is_leader() => StateId::Ready,
            State::Flying(Flight::Ready) => StateId::WaitMaster,
            State::Flying(Flight::FollowMe) => StateId::FollowMe,
            State::Flying(Flight::Following) => StateId::Following,
            State::Flying(Flight::LeaderLost { .. }) => StateId::LeaderLost,
            State::Flying(Flight::Descending { .. }) => StateId::Landing,
            _ => self.swarm.state_id().unwrap_or(StateId::Following),
        }
    }

    fn phase(&self) -> Phase {
        match self.swarm.state {
            State::Flying(Flight::FollowMe | Flight::Following) => Phase::Moving,
            State::Flying(Flight::Descending { .. }) => Phase::Ending,
            State::Flying(Flight::Ready | Flight::LeaderLost { .. }) => Phase::Waiting,
            _ => self.swarm.phase().unwrap_or(Phase::Waiting),
        }
    }

    fn detail(&self) -> Text {
        let height_m = self.config.height_m;
        match self.swarm.state {
            State::Flying(Flight::Ready) if self.is_leader() => {
                text!("waiting for its pilot to be at {height_m} m")
            }
            State::Flying(Flight::Ready) => text!("in slot {}, waiting for the leader", self.swarm.slot),
            State::Flying(Flight::FollowMe) => text!("flown by its pilot, telling where it is"),
            State::Flying(Flight::Following) => text!("following in slot {}", self.swarm.slot),
            State::Flying(Flight::LeaderLost { .. }) => {
                text!("the leader is silent: holding, then landing")
            }
            State::Flying(Flight::Descending { .. }) => text!("landed by its pilot, calling all to land"),
            State::TakingOff(_) if self.is_leader() => {
                text!("waiting for {} to be in their slots", self.swarm.missing(self.swarm.in_slot))
            }
            State::SetupFinished if self.is_leader() => text!("all in their slots, waiting for the start"),
            State::Finished => text!("flight completed, landed"),
            _ => self.swarm.detail().unwrap_or_default(),
        }
    }

    /// Takes a state, acts and tells.
    fn change(&mut self, now: Instant, new: State, out: &mut Actions) {
        let old = self.swarm.state;
        self.swarm.change(now, new, out);
        let formation = plan::formation(&self.swarm.plan).ok();
        self.slot_m = formation.map(|formation| formation.offset_m(self.swarm.slot, 0.0));
        match new {
            State::Flying(Flight::Ready) => self.waits_since = now,
            State::Flying(Flight::LeaderLost { .. }) => {
                self.is_fresh = false;
                push(out, Action::Order(Order::Hold));
            }
            State::MovingToLand => {
                let place = self.landing_place();
                self.swarm.fly_to(now, place, out);
            }
            _ => {}
        }
        let silent = match old {
            State::Flying(Flight::Ready | Flight::Following) => now >= self.lost_at(),
            State::SetupFinished => now >= self.hangs_until(),
            _ => false,
        };
        let lost = silent && self.swarm.asked.is_none();
        let undecided = matches!(old, State::Flying(Flight::LeaderLost { .. }));
        let why = match new {
            State::Aborted(Abort::Land | Abort::Return) if lost => Some("; the leader is silent"),
            State::Aborted(Abort::Land) if undecided && self.swarm.asked.is_none() => {
                Some("; the leader is silent and nobody decided in time")
            }
            _ => None,
        };
        let (state, detail) = (self.state_id(), self.detail());
        self.swarm.tell(old, state, &detail, why, out);
    }

    /// A slave flies after what was told last.
    fn follow(&mut self, now: Instant, out: &mut Actions) {
        if self.swarm.state != State::Flying(Flight::Following) || !core::mem::take(&mut self.is_fresh) {
            return;
        }
        let target = self.told.and_then(|(_, c)| self.slot_of(c));
        self.swarm.fly_to(now, target, out);
    }

    /// The leader tells, each refresh, from its start on.
    fn tell(&mut self, now: Instant, out: &mut Actions) {
        if now < self.tell_at {
            return;
        }
        while self.tell_at <= now {
            self.tell_at = self.tell_at + self.config.refresh.max(Duration::from_millis(1));
        }
        self.turn(now);
        if let Some(coordinates) = self.coordinates() {
            let message = Message::Coordinates(coordinates);
            push(out, Action::Broadcast { flight: self.swarm.flight, message });
        }
    }

    /// Turns the formation after the leader's nose, no faster than its outermost slave can follow. It stays as
    /// planned until the leader leads: that is where the slaves wait.
    fn turn(&mut self, now: Instant) {
        let planned_rad = plan::heading_rad(&self.swarm.plan);
        if self.swarm.state != State::Flying(Flight::FollowMe) {
            self.formation = Some((now, planned_rad));
            return;
        }
        let Some(nose_rad) = self.swarm.at.and_then(|at| heading_of(&at)) else { return };
        let (since, heading_rad) = self.formation.unwrap_or((now, planned_rad));
        let outermost_m = plan::formation(&self.swarm.plan)
            .map_or(0.0, |f| (0..f.count()).map(|slot| f.offset_m(slot, 0.0).length()).fold(0.0, f64::max));
        let most_rad = self.config.turn_m_s / outermost_m.max(1.0) * now.since(since).as_secs_f64();
        let way_rad = libm::remainder(nose_rad - heading_rad, TAU);
        let turned_rad = heading_rad + way_rad.clamp(-most_rad, most_rad);
        self.formation = Some((now, turned_rad - libm::floor(turned_rad / TAU) * TAU));
    }

    /// What the leader tells; nothing where it does not know it.
    fn coordinates(&self) -> Option<Coordinates> {
        let leads = match self.swarm.state {
            State::Flying(Flight::Ready) if self.is_leader() => false,
            State::Flying(Flight::FollowMe) => true,
            _ => return None,
        };
        let at = self.swarm.at?;
        heading_of(&at)?;
        let heading_rad = self.formation.map_or(plan::heading_rad(&self.swarm.plan), |(_, heading)| heading);
        let heading_urad = ((heading_rad * 1e6) as u32).min(6_283_185);
        Some(Coordinates { at: at.point(), heading_urad, leads })
    }
}

/// The heading, where it is one. A whole turn is none.
fn heading_of(at: &Telemetry) -> Option<f64> {
    let heading_rad = at.heading_rad;
    if !(0.0..=TAU).contains(&heading_rad) {
        return None;
    }
    Some(if heading_rad * 1e6 >= 6_283_185.0 { 0.0 } else { heading_rad })
}

fn position(p: Point) -> Position {
    Position { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: 0 }
}

fn apart_m(a: Point, b: Point) -> f64 {
    Frame::new(position(a)).to_local(position(b)).truncate().length()
}

/// What is repeated in flight beside the coordinates: the leader's call to land.
fn in_flight(swarm: &Swarm<Flight>, flight: Flight) -> [Option<Message>; 2] {
    match flight {
        Flight::Descending { .. } => [swarm.at.map(|at| Message::Land { at: at.point() }), None],
        _ => [None, None],
    }
}

impl Protocol for FollowMe {
    fn name(&self) -> &'static str {
        "follow_me"
    }

    fn set_mission(&mut self, _mission: &[Point]) -> Result<(), MissionError> {
        Err(MissionError::Piloted(self.swarm.config.master))
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Actions) {
        if let Err(reason) = self.absorb(now, input) {
            push(out, Action::Refused(reason));
            return;
        }
        self.swarm.prepare(out);
        for _ in 0..2 {
            let new = self.next(now);
            if new == self.swarm.state {
                break;
            }
            self.change(now, new, out);
        }
        self.swarm.asked = None;
        self.follow(now, out);
        self.swarm.talk(now, input, in_flight, out);
        if self.is_leader() {
            self.tell(now, out);
            // Whatever the swarm's states ask for, a pilot has this aircraft.
            out.retain(|action| !matches!(action, Action::Order(_)));
        }
    }

    fn poll_timeout(&self) -> (Instant, &'static str) {
        let first = self.swarm.poll_timeout();
        let own = match self.swarm.state {
            State::Flying(Flight::Descending { until }) if !self.swarm.airborne() => (until, "down"),
            State::Flying(_) if self.is_leader() => (self.tell_at, "coordinates due"),
            State::Flying(Flight::LeaderLost { land_at }) => (land_at, "nobody decided"),
            State::Flying(_) => (self.lost_at(), "leader silent"),
            State::SetupFinished => (self.hangs_until(), "leader silent"),
            _ => return first,
        };
        if own.0 < first.0 { own } else { first }
    }

    fn permits(&self, command: Command) -> Result<(), Denied> {
        let leader = self.is_leader();
        match command {
            Command::Hold | Command::Return | Command::Land if leader && self.swarm.airborne() => {
                Err(Denied::Piloted)
            }
            Command::Setup if leader && self.swarm.at.is_some_and(|at| heading_of(&at).is_none()) => {
                Err(Denied::NoHeading)
            }
            Command::Exclude { member } if self.swarm.planned() && member == self.swarm.config.master => {
                Err(Denied::Followed(member))
            }
            _ => self.swarm.permits(command, self.state_id()),
        }
    }

    fn route(&self) -> &[Point] {
        if self.swarm.planned() { &self.swarm.route } else { &[] }
    }

    fn view(&self) -> View {
        View {
            is_piloted: self.is_leader(),
            slot_offset_m: self.slot_offset_m(),
            slot_in_heading_m: self.slot_m,
            ..self.swarm.view(self.state_id(), self.phase())
        }
    }

    /// In flight the formation is around the leader, wherever its pilot is.
    fn details(&self) -> Details {
        let here = self.swarm.at.map(|at| at.point());
        let around = match (self.swarm.state, here, self.formation) {
            (State::Flying(Flight::FollowMe), Some(here), Some((_, heading_rad))) => {
                Around::Place(here, heading_rad)
            }
            _ => Around::Waypoint(0),
        };
        self.swarm.details(self.detail(), around)
    }
}
