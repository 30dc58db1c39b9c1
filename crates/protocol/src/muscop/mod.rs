//! MUSCOP: one mission, flown by a swarm in formation (thesis chapter 6).
//!
//! The *master* owns the mission and organises the setup; the aircraft in the middle of the formation,
//! the *centre*, leads the flight: at every waypoint it waits until all have arrived, then releases all
//! to the next. Every message is repeated each 200 ms until its answer makes it useless, because any of
//! them may be lost.
//!
//! ```text
//! Start ─Setup▶ Setup ─all hold the plan▶ ReadyToFly ─all ready▶ TakingOff ─all in their slots▶
//! SetupFinished ─Start▶ WaypointReached(k) ◀─arrived── MovingToWaypoint(k+1) … last:
//! centre: Landing ▶ Finished      others: MovingToLand ▶ Landing ▶ Finished
//! any: Hold, Return, Land by the operator, or a failure ▶ Aborted
//! ```
//!
//! What comes before and after the flight is [`Swarm`]'s; here is the flight: the barrier at every waypoint,
//! and who leads. Deciding is apart from doing: [`Muscop::decide`] maps state and books to the next state and
//! writes nothing. Departures from the thesis are listed with their reasons in `docs/protocols/muscop.md`.

#[cfg(test)]
mod tests;

use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{Message, Point, Refused, VehicleId};

use crate::swarm::members::Slots;
use crate::swarm::obstacles::Ahead;
use crate::swarm::preview::Around;
use crate::swarm::{self, Abort, Heard, Swarm, plan};
use crate::{
    Action, Actions, Command, ConfigError, Configuration, Denied, Details, Input, MissionError, Order, Phase,
    Protocol, StateId, Text, View, push, text,
};

/// What one aircraft knows before it meets the others. [`Config::new`] gives the published numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Meeting, taking off, landing.
    pub swarm: swarm::Config,
}

impl Config {
    /// The published numbers.
    pub fn new(me: VehicleId, master: VehicleId, aircraft: usize) -> Self {
        Self { swarm: swarm::Config::new(me, master, aircraft) }
    }
}

impl Configuration for Config {
    type Flight = Muscop;

    fn me(&self) -> VehicleId {
        self.swarm.me
    }
    fn heights_m(&self) -> (f64, f64) {
        (self.swarm.height_least_m, self.swarm.height_most_m)
    }
    fn check(&self) -> Result<(), ConfigError> {
        self.swarm.check()
    }
    fn begin(&self, seed: u64, now: Instant) -> Muscop {
        Muscop::new(self.clone(), seed, now)
    }
}

/// States of the flight (thesis figure 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flight {
    /// At a waypoint, waiting for the others.
    WaypointReached {
        /// Which.
        waypoint: u16,
    },
    /// On the way to a waypoint.
    MovingToWaypoint {
        /// Which.
        waypoint: u16,
    },
}

/// An aircraft that holds behind another does so for at least this long.
const HOLD_LEAST: Duration = Duration::from_secs(1);

/// All states.
pub type State = swarm::State<Flight>;

/// MUSCOP on one aircraft.
pub struct Muscop {
    swarm: Swarm<Flight>,
    /// Where our leader last sent us.
    move_to: Option<u16>,
    /// Whose word we fly on: it alone may be told to others as the leader's.
    word_of: usize,
    /// Our stop was not seen to take effect: until then the autopilot takes no other order.
    braking: bool,
    /// When we no longer wait for somebody in the way.
    wait_until: Instant,
}

impl Muscop {
    /// An aircraft in state [`State::Start`]. `seed` sets the phase of its timers, so that not all talk
    /// at once, and the number of the flights it plans.
    pub fn new(config: Config, seed: u64, now: Instant) -> Self {
        Self {
            swarm: Swarm::new(config.swarm, seed, now),
            move_to: None,
            word_of: 0,
            braking: false,
            wait_until: Instant::NEVER,
        }
    }

    fn last_waypoint(&self) -> u16 {
        self.swarm.route.len().saturating_sub(1) as u16
    }

    /// Writes an input into the books.
    fn absorb(&mut self, now: Instant, input: Input<'_>) -> Result<(), Refused> {
        let (led_by, out, due) = (self.swarm.leader, self.swarm.out(), now >= self.swarm.talk_at);
        self.braking &= !matches!(input, Input::Done(Order::Hold));
        let heard = self.swarm.absorb(now, input);
        if self.swarm.leader != led_by {
            self.move_to = None; // the word of another
        }
        if let State::Flying(Flight::WaypointReached { waypoint }) = self.swarm.state
            && self.swarm.is_leader()
            && (due || self.swarm.out() != out || self.swarm.leader != led_by)
        {
            self.swarm.survey(now, waypoint);
        }
        match heard? {
            Some(Heard { slot, message }) => self.hear(now, slot, message),
            None => Ok(()),
        }
    }

    fn hear(&mut self, now: Instant, slot: usize, message: &Message) -> Result<(), Refused> {
        // What they have reached, whose word they follow, and that word if it is our leader's.
        let (reached, follows, word) = match *message {
            Message::ReachedWaypointAck { waypoint } => (Some(waypoint), self.swarm.center(), None),
            Message::Following { waypoint, reached: true, leader, .. } => {
                (Some(waypoint), usize::from(leader), None)
            }
            Message::Following { waypoint, reached: false, leader, .. } => {
                (waypoint.checked_sub(1), usize::from(leader), Some(waypoint))
            }
            Message::MoveToWaypoint { waypoint } => (waypoint.checked_sub(1), slot, Some(waypoint)),
            Message::Release { waypoint } => (waypoint.checked_sub(1), slot, Some(waypoint)),
            Message::Gather { waypoint } => (Some(waypoint), slot, Some(waypoint)),
            _ => return Ok(()),
        };
        // Who is at a waypoint says no place: it is in its slot there.
        if let Message::ReachedWaypointAck { waypoint } | Message::Gather { waypoint } = message
            && self.swarm.peers[slot].reached < Some(*waypoint)
            && let Some(at) = self.swarm.slot_place(slot, usize::from(*waypoint))
        {
            self.swarm.note_place(now, slot, at);
        }
        let peer = &mut self.swarm.peers[slot];
        peer.reached = peer.reached.max(reached);
        peer.follows = follows;
        // Said since we are here ourselves, and on our word: who follows another yet, because it still hears it,
        // is not left alone.
        if let State::Flying(Flight::WaypointReached { waypoint }) = self.swarm.state {
            let answers = peer.reached >= Some(waypoint) && follows == self.swarm.slot;
            self.swarm.acks = self.swarm.acks & !(1 << slot) | u128::from(answers) << slot;
        }
        let left_for = match *message {
            Message::MoveToWaypoint { waypoint } | Message::Following { waypoint, .. } => Some(waypoint),
            _ => reached,
        };
        peer.going = peer.going.max(left_for);
        let leads = matches!(
            message,
            Message::MoveToWaypoint { .. } | Message::Gather { .. } | Message::Release { .. }
        );
        if leads && slot != self.swarm.leader {
            return Err(Refused::Stranger);
        }
        let behind = matches!(message, Message::Following { reached: false, .. }) && !leads;
        self.take_word(slot, follows, word, if behind { left_for } else { None });
        Ok(())
    }

    /// Takes our leader's word, and withdraws it where somebody turns out to be behind. What the leader says
    /// itself counts as it is said last: it calls back its word when one that it had given up is heard again. A
    /// relayed word is older than that, so it counts only for whoever knows of nobody behind.
    fn take_word(&mut self, slot: usize, follows: usize, word: Option<u16>, goes_to: Option<u16>) {
        let s = &self.swarm;
        let State::Flying(flight) = s.state else { return };
        let (Flight::WaypointReached { waypoint: here } | Flight::MovingToWaypoint { waypoint: here }) =
            flight;
        if s.is_leader() {
            return;
        }
        if goes_to.is_some_and(|goes_to| goes_to <= here) && s.out() >> slot & 1 == 0 {
            self.move_to = self.move_to.min(Some(here));
        } else if follows != s.leader {
        } else if slot == s.leader {
            self.move_to = word.or(self.move_to);
        } else if word > self.move_to && behind(s, here) == 0 {
            self.move_to = word;
        }
    }

    /// The transition table: it reads and never writes, so a test can print it whole. The next state, and why,
    /// where that is not plain.
    fn decide(&self, now: Instant) -> (State, Option<&'static str>) {
        use Flight::{MovingToWaypoint, WaypointReached};
        let s = &self.swarm;
        let next = s.next(now);
        if next != s.state {
            return (next, None);
        }
        let state = match s.state {
            State::SetupFinished if s.asked == Some(Command::Start) => {
                State::Flying(WaypointReached { waypoint: 0 })
            }
            State::Flying(WaypointReached { waypoint }) => {
                let last = waypoint == self.last_waypoint();
                let released = match s.is_leader() {
                    // Who comes down already says nothing else.
                    true => s.all(s.acks | if last { s.coming_down } else { 0 }),
                    false => self.move_to == Some(waypoint + 1),
                };
                if s.is_leader() && s.blocked_since.is_some() {
                    if now < s.blocked_until() {
                        return (s.state, None);
                    }
                    return (
                        State::Aborted(Abort::Land),
                        Some(
                            "; the way past an aircraft that is lost stays blocked: all land where they are",
                        ),
                    );
                }
                let given_up = self.move_to > Some(waypoint + 1) && now >= self.wait_until;
                if !s.is_leader() && (given_up || s.land_at.is_some() && !last) {
                    return (s.failure(now), Some("; left behind: the others have gone on"));
                }
                match (released, last) {
                    (true, true) if s.is_leader() && s.place_beside().is_some() => State::MovingToLand,
                    (true, true) if s.is_leader() => State::Landing,
                    (true, false) => match s.leg_ahead(waypoint) {
                        Ahead::Clear => State::Flying(MovingToWaypoint { waypoint: waypoint + 1 }),
                        Ahead::Waits if now < self.wait_until => s.state,
                        Ahead::Waits => {
                            let why = "; another stays in the way to the next waypoint";
                            return (s.failure(now), Some(why));
                        }
                        Ahead::Blocked => {
                            let why = "; left behind: others wait on the way to the next waypoint";
                            return (s.failure(now), Some(why));
                        }
                    },
                    _ if !s.is_leader() && last && s.land_at.is_some() && !s.is_turn_to_land(now) => s.state,
                    _ if !s.is_leader() && last && s.land_at.is_some() => match s.landing_ahead() {
                        Ahead::Clear => State::MovingToLand,
                        Ahead::Waits if now < s.land_by => s.state,
                        Ahead::Waits | Ahead::Blocked => {
                            let why = "; another may be in the way to the landing place";
                            return (State::Landing, Some(why));
                        }
                    },
                    _ => s.state,
                }
            }
            State::Flying(MovingToWaypoint { waypoint }) if s.arrived => {
                State::Flying(WaypointReached { waypoint })
            }
            State::Flying(MovingToWaypoint { .. }) if now >= self.wait_until => {
                return (s.failure(now), Some("; another stays in the way to the waypoint"));
            }
            State::Flying(MovingToWaypoint { .. }) if now >= s.leg_deadline => s.failure(now),
            State::MovingToLand if now >= self.wait_until => {
                return (State::Landing, Some("; another stays in the way to the landing place"));
            }
            unchanged => unchanged,
        };
        (state, None)
    }

    /// Speaks at once where others wait for it, and stops behind somebody who is too near ahead.
    fn keep_clear(&mut self, now: Instant, out: &mut Actions) {
        let patience = self.swarm.config.hold_before_landing + self.swarm.config.hold_before_landing;
        match self.swarm.state {
            State::Flying(Flight::WaypointReached { waypoint }) => {
                // Who is given up by its leader, but hears it, waits to be heard again.
                let released = match self.swarm.is_leader() {
                    true => may_go(&self.swarm, waypoint),
                    false => self.move_to > Some(waypoint),
                };
                if !released {
                    self.wait_until = Instant::NEVER;
                } else if self.wait_until == Instant::NEVER {
                    // Those ahead of us wait for our word.
                    self.wait_until = now + patience;
                    self.swarm.talk_now = self.swarm.is_leader();
                }
            }
            State::Flying(Flight::MovingToWaypoint { .. }) | State::MovingToLand => {
                let Some(target) = self.swarm.target else { return };
                match (
                    self.swarm.held_since,
                    self.swarm.closes_up(now, target, self.swarm.held_since.is_some()),
                ) {
                    (None, true) => {
                        self.swarm.held_since = Some(now);
                        self.braking = true;
                        // Those behind stop at once, not when they see us slow down.
                        self.swarm.talk_now = true;
                        self.wait_until = now + patience;
                        if self.swarm.state == State::MovingToLand {
                            // Its own end of the wait is to land here, not to hold for longer.
                            self.swarm.leg_deadline = Instant::NEVER;
                        }
                        push(out, Action::Order(Order::Hold));
                    }
                    (Some(since), false)
                        if !self.braking && self.swarm.stands() && now.since(since) >= HOLD_LEAST =>
                    {
                        self.swarm.held_since = None;
                        self.wait_until = Instant::NEVER;
                        self.swarm.fly_to(now, Some(target), out);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn state_id(&self) -> StateId {
        match self.swarm.state {
            State::Flying(Flight::WaypointReached { .. }) => StateId::WaypointReached,
            State::Flying(Flight::MovingToWaypoint { .. }) => StateId::MovingToWaypoint,
            _ => self.swarm.state_id().unwrap_or(StateId::MovingToWaypoint),
        }
    }

    fn phase(&self) -> Phase {
        match self.swarm.state {
            State::Flying(Flight::WaypointReached { .. }) => Phase::Waiting,
            State::Flying(Flight::MovingToWaypoint { .. }) => Phase::Moving,
            _ => self.swarm.phase().unwrap_or(Phase::Moving),
        }
    }

    fn reached(&self) -> Option<u16> {
        match self.swarm.state {
            State::Flying(Flight::WaypointReached { waypoint }) => Some(waypoint),
            State::Flying(Flight::MovingToWaypoint { waypoint }) => waypoint.checked_sub(1),
            State::MovingToLand | State::Landing | State::Finished => Some(self.last_waypoint()),
            _ => None,
        }
    }

    fn detail(&self) -> Text {
        let last = self.last_waypoint();
        match self.swarm.state {
            State::Flying(Flight::WaypointReached { waypoint }) if self.swarm.is_leader() => {
                match self.swarm.missing(self.swarm.acks) {
                    0 if self.swarm.blocked_since.is_some() => {
                        text!("at waypoint {waypoint} of {last}, the way past a lost aircraft is blocked")
                    }
                    n => text!("at waypoint {waypoint} of {last}, waiting for {n}"),
                }
            }
            State::Flying(Flight::WaypointReached { waypoint }) => text!("at waypoint {waypoint} of {last}"),
            State::Flying(Flight::MovingToWaypoint { waypoint }) => text!("to waypoint {waypoint} of {last}"),
            _ => self.swarm.detail().unwrap_or_default(),
        }
    }

    /// Takes a state, acts and tells.
    fn change(&mut self, now: Instant, new: State, why: Option<&str>, out: &mut Actions) {
        let old = self.swarm.state;
        self.swarm.lands_here |= new == State::Landing && why.is_some();
        let blocked = now >= self.swarm.blocked_until();
        self.swarm.change(now, new, out);
        (self.swarm.held_since, self.braking, self.wait_until) = (None, false, Instant::NEVER);
        match self.swarm.state {
            State::Flying(Flight::WaypointReached { waypoint }) => {
                self.swarm.blocked_since = None;
                self.swarm.survey(now, waypoint);
            }
            State::Flying(Flight::MovingToWaypoint { waypoint }) => {
                let place = self.swarm.route.get(usize::from(waypoint)).copied();
                self.swarm.fly_to(now, place, out);
                self.swarm.talk_now = self.swarm.is_waited_for(waypoint - 1);
                self.word_of = self.swarm.leader;
            }
            // The leader's last word.
            State::Aborted(Abort::Land) if blocked && why.is_some() => self.swarm.land_here = true,
            _ => {}
        }
        let (state, detail) = (self.state_id(), self.detail());
        self.swarm.tell(old, state, &detail, why, out);
    }
}

/// What is repeated in flight.
fn in_flight(now: Instant, swarm: &Swarm<Flight>, word_of: usize, flight: Flight) -> [Option<Message>; 2] {
    let leader = swarm.leader;
    let at = swarm.here(now).unwrap_or_default();
    let one = |message| [Some(message), None];
    let following =
        |waypoint, reached, leader: usize| Message::Following { waypoint, reached, leader: leader as u8, at };
    match flight {
        // Whoever missed the release to here must still hear it, and all that the leader is alive.
        Flight::WaypointReached { waypoint } if swarm.is_leader() => one(match may_go(swarm, waypoint) {
            true => Message::Release { waypoint: waypoint + 1 },
            false => Message::Gather { waypoint: word(swarm, waypoint) },
        }),
        Flight::MovingToWaypoint { waypoint } if swarm.is_leader() => {
            [Some(Message::MoveToWaypoint { waypoint: word(swarm, waypoint) }), swarm.alive(now)]
        }
        Flight::WaypointReached { waypoint } if leader == swarm.center() => {
            one(Message::ReachedWaypointAck { waypoint })
        }
        Flight::WaypointReached { waypoint } => one(following(waypoint, true, leader)),
        // Whoever missed the leader's word hears it from us; of another leader it is none.
        Flight::MovingToWaypoint { waypoint } => {
            let holds = swarm.held_since.and_then(|_| swarm.alive(now));
            [Some(following(waypoint, false, word_of)), holds]
        }
    }
}

/// Who is waited for and not known to have reached a waypoint.
fn behind(swarm: &Swarm<Flight>, waypoint: u16) -> Slots {
    Swarm::<Flight>::each(swarm.others())
        .filter(|&slot| swarm.peers[slot].reached < Some(waypoint))
        .fold(0, |bits, slot| bits | 1 << slot)
}

/// Where a leader that is at a waypoint, or on its way there, sends the others: there, unless one that was
/// given up is heard again from farther behind. Nobody leaves that one behind a second time.
fn word(swarm: &Swarm<Flight>, waypoint: u16) -> u16 {
    Swarm::<Flight>::each(swarm.others())
        .map(|slot| swarm.peers[slot].reached.map_or(0, |reached| reached.saturating_add(1)))
        .fold(waypoint, u16::min)
}

/// Whether all may leave a waypoint, as far as the leader is concerned: all are there, the next exists, and no
/// lost member lies on anybody's way.
fn may_go(swarm: &Swarm<Flight>, waypoint: u16) -> bool {
    swarm.is_leader()
        && usize::from(waypoint) + 1 < swarm.route.len()
        && swarm.blocked_since.is_none()
        && swarm.all(swarm.acks)
}

impl Protocol for Muscop {
    fn name(&self) -> &'static str {
        "muscop"
    }

    /// Only the master flies it as given; it replaces an earlier one.
    fn set_mission(&mut self, mission: &[Point]) -> Result<(), MissionError> {
        let config = &self.swarm.config;
        if config.me != config.master {
            return Err(MissionError::Master(config.master));
        }
        if self.swarm.state != State::Start {
            return Err(MissionError::State { found: self.state_id() });
        }
        self.swarm.task.waypoints = plan::Route::from_slice(mission)
            .ok()
            .filter(|m| m.len() >= 2)
            .ok_or(plan::PlanError::Waypoints(mission.len()))?;
        Ok(())
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Actions) {
        if let Err(reason) = self.absorb(now, input) {
            push(out, Action::Refused(reason));
            return;
        }
        self.swarm.prepare(out);
        // Two changes at most follow from one input: a place reached that was the last to be waited for.
        for _ in 0..2 {
            let (new, why) = self.decide(now);
            if new == self.swarm.state {
                break;
            }
            self.change(now, new, why, out);
        }
        self.swarm.asked = None;
        let stops = matches!(input, Input::Message { message: Message::Holding { .. }, .. });
        if now >= self.swarm.talk_at || stops || !matches!(input, Input::Message { .. }) {
            self.keep_clear(now, out);
        }
        let word_of = self.word_of;
        self.swarm.talk(now, input, |swarm, flight| in_flight(now, swarm, word_of, flight), out);
    }

    fn poll_timeout(&self) -> (Instant, &'static str) {
        let first = self.swarm.poll_timeout();
        let own = match self.swarm.state {
            State::Flying(Flight::WaypointReached { waypoint }) => {
                let s = &self.swarm;
                // Only what ends the wait in this role: a time that passes and changes nothing wakes for ever.
                let landing = waypoint == self.last_waypoint() && s.land_at.is_some();
                let ends = match s.is_leader() {
                    true => s.blocked_until(),
                    false if landing => s.land_by,
                    false => Instant::NEVER,
                };
                (ends.min(self.wait_until), "the way stays blocked")
            }
            State::Flying(Flight::MovingToWaypoint { .. }) | State::MovingToLand => {
                (self.swarm.leg_deadline.min(self.wait_until), "place not reached")
            }
            _ => return first,
        };
        if own.0 < first.0 { own } else { first }
    }

    fn permits(&self, command: Command) -> Result<(), Denied> {
        self.swarm.permits(command, self.state_id())
    }

    fn route(&self) -> &[Point] {
        if self.swarm.planned() { &self.swarm.route } else { &self.swarm.task.waypoints }
    }

    fn view(&self) -> View {
        View {
            reached: self.reached(),
            return_height_mm: self.swarm.return_height_mm(),
            slot_offset_m: self.swarm.slot_offset_m(),
            ..self.swarm.view(self.state_id(), self.phase())
        }
    }

    fn details(&self) -> Details {
        let waypoint = match self.swarm.state {
            State::Flying(Flight::WaypointReached { waypoint } | Flight::MovingToWaypoint { waypoint }) => {
                waypoint
            }
            _ => 0,
        };
        self.swarm.details(self.detail(), Around::Waypoint(waypoint))
    }
}
