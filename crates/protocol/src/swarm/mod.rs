//! What every swarm does before and after its flight: meet, agree on a plan, take off into a formation, and
//! come down again.
//!
//! [`Swarm`] is a machine inside a machine. A host protocol embeds one, hands it every input first, and adds
//! what is its own: the states of its flight, as [`State::Flying`], and what is said in them.
//!
//! ```text
//! Start ─Setup▶ Setup ─all hold the plan▶ ReadyToFly ─all ready▶ TakingOff ─all in their slots▶
//! SetupFinished ─host▶ Flying(host's own) ─host▶ MovingToLand, Landing ▶ Finished
//! any: Hold, Return, Land by the operator, or a failure ▶ Aborted
//! ```
//!
//! The host's `handle` is these steps, in this order:
//!
//! 1. [`Swarm::absorb`] writes the input into the books. A message of a member that is none of the swarm's
//!    own comes back, for the host to absorb.
//! 2. [`Swarm::prepare`] asks for what a plan just adopted needs.
//! 3. [`Swarm::next`] (and the host's own table while flying) names the next state; [`Swarm::change`] takes
//!    it and acts; what the host's own states do is the host's. At most two changes follow from one input.
//! 4. [`Swarm::talk`] says what is due, with the host's own messages while flying.
//!
//! Deciding is apart from doing: `next` reads and never writes.

mod arrival;
mod chart;
mod config;
pub mod conflict;
pub(crate) mod discovery;
mod landing;
pub mod members;
pub(crate) mod obstacles;
pub mod plan;
pub mod preview;
mod returning;
mod setup;
pub mod shape;
mod takeoff;
mod talk;
mod unheard;

use heapless::Vec;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use wingbeat_geo::{DVec2, Duration, Instant};
use wingbeat_wire::{Message, Plan, Point, Refused, SWARM_MAX, VehicleId};

use crate::{
    Action, Actions, Command, Denied, Details, Input, Order, Phase, Severity, StateId, SwarmView, Telemetry,
    Text, View, push, text,
};
use chart::Chart;
pub use config::{Config, Manner};
use members::{Peer, Slots};
use plan::{Route, Task};
use preview::Around;

/// States of a swarm (thesis figure 6.1; the take-off is spread out as in the reference); `F` are the host's
/// own in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<F> {
    /// The others call; the master listens.
    Start,
    /// The master spreads the plan.
    Setup,
    /// Everybody holds the plan.
    ReadyToFly,
    /// Taking off one after the other.
    TakingOff(TakeOff),
    /// All in their slots, waiting for the operator's start.
    SetupFinished,
    /// The host's.
    Flying(F),
    /// On the way to its place in the landing formation.
    MovingToLand,
    /// Coming down.
    Landing,
    /// On the ground, disarmed.
    Finished,
    /// Stopped before the end.
    Aborted(Abort),
}

/// Phases of the take-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeOff {
    /// Others are first.
    Waiting,
    /// Straight up to the first height.
    Climbing,
    /// To the slot.
    MovingToSlot,
    /// In the slot, until all are.
    InSlot,
    /// Telling that all are.
    Confirming,
}

/// How an aborted flight ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// Holding at the operator's command.
    Hold,
    /// Returning to launch.
    Return,
    /// Holding until the way home is clear; where it stays blocked for long, landing.
    ReturnHeld {
        /// Since when.
        since: Instant,
    },
    /// Landing.
    Land,
    /// Flying aside first, because somebody stands or comes down below; a second *Land* lands at once.
    LandBeside,
    /// Holding after a failure until `land_at`, then landing.
    Failure {
        /// When it lands.
        land_at: Instant,
    },
    /// On the ground: nothing was flying, or it has come down.
    Ground,
}

/// A member's message that is none of the swarm's own, for the host.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// The slot of whoever said it.
    pub slot: usize,
    /// What.
    pub message: &'a Message,
}

/// One aircraft's part in a swarm.
pub struct Swarm<F> {
    pub(crate) config: Config,
    pub(crate) chance: Pcg64Mcg,
    pub(crate) state: State<F>,
    pub(crate) at: Option<Telemetry>,
    /// When that was reported.
    at_reported: Instant,
    /// Since when we hold on our way, because somebody ahead is too near.
    pub(crate) held_since: Option<Instant>,
    /// How much faster we grow, and since which report.
    at_since: Instant,
    gaining_m_s2: f64,
    /// What the master plans for.
    pub(crate) task: Task,
    /// Who called, and from where (master, before setup).
    pub(crate) heard: Vec<(VehicleId, Point), SWARM_MAX>,
    /// Whose calls came from two places, and when last (master, before setup).
    doubled: Option<(VehicleId, Instant)>,
    /// Who called beside as many as the swarm has, and when last (master, before setup).
    uninvited: Option<(VehicleId, Instant)>,
    /// The flight's plan; its `slots` are empty before setup.
    pub(crate) plan: Plan,
    /// What follows from the plan, or from none.
    chart: Chart,
    /// The heights of its returns, where it has any.
    layers: Option<plan::Layers>,
    /// Where we stood before our motors were armed.
    home: Option<Point>,
    pub(crate) flight: u32,
    pub(crate) slot: usize,
    /// Whose word is followed: at first the centre's.
    pub(crate) leader: usize,
    /// By slot; empty before the plan is known.
    pub(crate) peers: Vec<Peer, SWARM_MAX>,
    /// Who is lost until heard again.
    pub(crate) silent: Slots,
    /// Who said that it leaves.
    pub(crate) left: Slots,
    /// Whom the operator excluded.
    pub(crate) excluded: Slots,
    /// Of whose exclusion we told last: of several each has its turn.
    told_excluded: usize,
    /// A member about which people are to be told.
    news: Option<(usize, &'static str)>,
    new_leader: bool,
    /// Since when the next leg of those who follow us is not clear of those who are out.
    pub(crate) blocked_since: Option<Instant>,
    /// The flight is over: all land where they are.
    pub(crate) land_here: bool,
    /// The mission is flown, and we land where we are: the way to our landing place is not safe.
    pub(crate) lands_here: bool,
    /// Whom the take-off has brought to its first height and to its slot, and since when that is all.
    stalled: (Slots, Slots, Instant),
    pub(crate) route: Route,
    /// A plan was adopted, and its route not yet asked to be loaded.
    adopted: bool,
    /// The flight controller holds our route.
    pub(crate) loaded: bool,
    /// Who answered what is being repeated now; emptied at every change of state.
    pub(crate) acks: Slots,
    /// Who was heard to hover in their slot.
    pub(crate) in_slot: Slots,
    /// The master said that all take off at once.
    all_at_once: bool,
    /// Who was told to hold another plan than ours.
    other_plan: Slots,
    /// The plan as it was last tried (master, before setup).
    trial: Option<preview::Trial>,
    /// What of the master's plan we could not fly.
    unflyable: Option<plan::PlanError>,
    tell_unflyable: bool,
    /// The leader said that all hover in their slots.
    pub(crate) all_in_slots: bool,
    /// Who was heard to have climbed clear of the place of its take-off.
    pub(crate) made_room: Slots,
    /// Whether the last look found us where we were going.
    pub(crate) arrived: bool,
    /// Operator's command not yet acted on.
    pub(crate) asked: Option<Command>,
    /// An order failed and nothing was done about it yet.
    pub(crate) failed: bool,
    /// Where the leader said that it lands.
    pub(crate) land_at: Option<Point>,
    /// When we no longer wait for the way to our landing place to become clear.
    pub(crate) land_by: Instant,
    /// Who has left its last waypoint for its landing place.
    pub(crate) coming_down: Slots,
    /// Where all land one after the other: who before us is down, and when we no longer wait for the next.
    pub(crate) landed: Slots,
    pub(crate) turn_by: Instant,
    /// When the message that keeps us in this state was heard last.
    pub(crate) held_at: Option<Instant>,
    pub(crate) talk_at: Instant,
    /// What is said now others wait for: it is said at once, too.
    pub(crate) talk_now: bool,
    pub(crate) look_at: Instant,
    /// When what we fly to should long have been reached.
    pub(crate) leg_deadline: Instant,
    pub(crate) target: Option<Point>,
}

impl<F: Copy + PartialEq> Swarm<F> {
    /// An aircraft in state [`State::Start`]. `seed` sets the phase of its timers, so that not all talk
    /// at once, and the number of the flights it plans.
    pub fn new(config: Config, seed: u64, now: Instant) -> Self {
        let mut chance = Pcg64Mcg::new(u128::from(seed) << 64 | u128::from(config.me.0));
        let phase = |chance: &mut Pcg64Mcg, period: Duration| {
            Duration::from_micros(chance.next_u64() % (period.as_micros() as u64).max(1))
        };
        let talk_at = now + phase(&mut chance, config.send_period);
        let look_at = now + phase(&mut chance, config.arrival_period);
        Self {
            config,
            chance,
            state: State::Start,
            at: None,
            at_reported: Instant::ZERO,
            held_since: None,
            at_since: Instant::ZERO,
            gaining_m_s2: 0.0,
            task: Task::default(),
            heard: Vec::new(),
            doubled: None,
            uninvited: None,
            plan: Plan::default(),
            chart: Chart::of(&Plan::default()),
            layers: None,
            home: None,
            flight: 0,
            slot: 0,
            leader: 0,
            peers: Vec::new(),
            silent: 0,
            left: 0,
            excluded: 0,
            told_excluded: 0,
            news: None,
            new_leader: false,
            blocked_since: None,
            land_here: false,
            lands_here: false,
            stalled: (0, 0, now),
            route: Route::new(),
            adopted: false,
            loaded: false,
            acks: 0,
            in_slot: 0,
            all_at_once: false,
            other_plan: 0,
            trial: None,
            unflyable: None,
            tell_unflyable: false,
            all_in_slots: false,
            made_room: 0,
            arrived: false,
            asked: None,
            failed: false,
            land_at: None,
            land_by: Instant::NEVER,
            coming_down: 0,
            landed: 0,
            turn_by: Instant::NEVER,
            held_at: None,
            talk_at,
            talk_now: false,
            look_at,
            leg_deadline: Instant::NEVER,
            target: None,
        }
    }

    /// Writes an input into the books. The only place that reads messages.
    ///
    /// # Errors
    /// Why a message is not for us.
    pub fn absorb<'a>(&mut self, now: Instant, input: Input<'a>) -> Result<Option<Heard<'a>>, Refused> {
        if now >= self.talk_at {
            self.judge(now);
            let fresh = |(_, at): &(VehicleId, Instant)| now.since(*at) < self.config.time_to_live;
            self.doubled = self.doubled.filter(fresh);
            self.uninvited = self.uninvited.filter(fresh);
        }
        self.try_plan(now);
        match input {
            Input::Wake => {
                if now >= self.look_at {
                    self.look();
                    self.look_at = now + self.config.arrival_period.max(Duration::from_millis(1));
                }
            }
            Input::Telemetry(at) => {
                self.note_speed(now, &at);
                (self.at, self.at_reported) = (Some(at), now);
                if !at.armed {
                    self.home = Some(at.point());
                }
                if self.config.arrival_period.is_zero() {
                    self.look();
                }
            }
            Input::Operator(Command::Exclude { member }) => self.exclude(member, self.config.me),
            Input::Operator(command) => self.asked = Some(command),
            Input::Done(Order::LoadRoute) => self.loaded = true,
            Input::Done(_) | Input::Reached(_) => {}
            Input::Failed(_) => self.failed = true,
            Input::Message { from, flight, message } => return self.hear(now, from, flight, message),
        }
        Ok(None)
    }

    fn hear<'a>(
        &mut self,
        now: Instant,
        from: VehicleId,
        flight: u32,
        message: &'a Message,
    ) -> Result<Option<Heard<'a>>, Refused> {
        match message {
            Message::Hello { at } => return self.hear_hello(now, from, flight, *at).map(|()| None),
            Message::Data(plan) => self.hear_plan(now, from, flight, plan)?,
            _ => {}
        }
        // From here on only members of this flight are listened to.
        if !self.planned() || flight != self.flight {
            return Err(Refused::OtherFlight);
        }
        let slot = self.slot_of(from).ok_or(Refused::Stranger)?;
        self.hear_member(now, slot, message)?;
        match message {
            Message::Hello { .. } | Message::Data(_) => {}
            Message::DataAck { .. } | Message::ReadyToFly | Message::ReadyToFlyAck => {
                self.hear_setup(now, slot, message)?;
            }
            Message::TakeOffNow { .. }
            | Message::TargetReached
            | Message::TakeOffEnd
            | Message::TakeOffEndAck
            | Message::TakeOffTogether => self.hear_take_off(now, slot, message)?,
            Message::Land { at } => self.hear_land(now, slot, slot, *at)?,
            Message::LandAround { at, leader } => self.hear_land(now, slot, usize::from(*leader), *at)?,
            // Those of the flight are the host's; the others were heard above.
            _ => {}
        }
        Ok(Some(Heard { slot, message }))
    }

    /// Tells who is lost or leads now, and asks for what a plan just adopted needs: the route in the flight controller. A plan that only
    /// assembles has no route to hold.
    pub fn prepare(&mut self, out: &mut Actions) {
        if let Some(line) = self.news() {
            push(out, Action::Log(Severity::Warning, line));
        }
        if let Some(error) = self.unflyable.filter(|_| core::mem::take(&mut self.tell_unflyable)) {
            push(out, Action::Log(Severity::Error, text!("the master's plan is refused: {error}")));
        }
        if core::mem::take(&mut self.adopted) {
            self.load(out);
        }
    }

    fn load(&mut self, out: &mut Actions) {
        if self.route.len() < 2 {
            self.loaded = true;
        } else {
            push(out, Action::Order(Order::LoadRoute));
        }
    }

    /// What follows from the books: it reads and never writes. While [`State::Flying`] only what ends the
    /// flight at once.
    pub fn next(&self, now: Instant) -> State<F> {
        use State::{Aborted, Finished, Landing, MovingToLand, Start};
        if let Some(stopped) = self.stop(now) {
            return stopped;
        }
        match self.state {
            Start if self.asked == Some(Command::Setup) => State::Setup,
            State::Setup | State::ReadyToFly => self.next_in_setup(now),
            State::TakingOff(_) | State::SetupFinished if now >= self.stalled_until() => Aborted(Abort::Land),
            State::TakingOff(phase) => self.next_in_take_off(now, phase),
            MovingToLand if self.arrived => Landing,
            MovingToLand if now >= self.leg_deadline => self.failure(now),
            Landing if !self.airborne() => Finished,
            Aborted(Abort::LandBeside) if self.airborne() && (self.arrived || now >= self.leg_deadline) => {
                Aborted(Abort::Land)
            }
            Aborted(Abort::Return | Abort::ReturnHeld { .. }) if self.airborne() => {
                Aborted(self.next_in_return(now))
            }
            Aborted(Abort::Failure { land_at }) if now >= land_at => Aborted(Abort::Land),
            Aborted(_) if !self.airborne() => Aborted(Abort::Ground),
            unchanged => unchanged,
        }
    }

    /// What the operator's stop, or a failure, makes of any state.
    fn stop(&self, now: Instant) -> Option<State<F>> {
        use State::{Aborted, Finished, Landing, MovingToLand};
        match (self.state, self.asked) {
            (Finished | Aborted(Abort::Ground), _) if !self.airborne() => return Some(self.state),
            (_, Some(Command::Hold | Command::Return | Command::Land)) if !self.airborne() => {
                return Some(Aborted(Abort::Ground));
            }
            (_, Some(Command::Hold)) => return Some(Aborted(Abort::Hold)),
            (Aborted(Abort::Return | Abort::ReturnHeld { .. }), Some(Command::Return)) => {}
            (_, Some(Command::Return)) => return Some(Aborted(self.begin_return(now))),
            (_, Some(Command::Land)) => return Some(Aborted(Abort::Land)),
            _ => {}
        }
        if self.land_here && self.watches() && self.airborne() {
            return Some(Aborted(Abort::Land));
        }
        let excluded = self.is_excluded() && !matches!(self.state, MovingToLand | Landing | Finished);
        if (self.failed || excluded) && !matches!(self.state, Aborted(_)) {
            // It cannot do what it must: hold, say so, come down if nobody decides.
            return Some(match self.state {
                _ if !self.airborne() => Aborted(Abort::Ground),
                MovingToLand | Landing => Aborted(Abort::Land),
                _ => self.failure(now),
            });
        }
        None
    }

    /// Holding for the operator to decide, then landing.
    pub fn failure(&self, now: Instant) -> State<F> {
        State::Aborted(Abort::Failure { land_at: now + self.config.hold_before_landing })
    }

    /// Takes a state and does what it asks; the host does what its own ask. The line about it is
    /// [`Swarm::tell`]'s.
    pub fn change(&mut self, now: Instant, new: State<F>, out: &mut Actions) {
        // Whatever brings it down, it does not land on another.
        let beside = match (self.state, new) {
            (State::Aborted(Abort::LandBeside), _) => None,
            (_, State::Aborted(Abort::Land)) if self.airborne() => self.place_beside(),
            _ => None,
        };
        let new = if beside.is_some() { State::Aborted(Abort::LandBeside) } else { new };
        let old = core::mem::replace(&mut self.state, new);
        self.acks = 0;
        self.arrived = false;
        self.target = None;
        self.stalled.2 = now;
        match self.state {
            State::Start | State::Finished | State::SetupFinished | State::Flying(_) => {}
            State::Setup if self.is_master() => self.make_plan(now, out),
            State::Setup => {}
            State::ReadyToFly => self.held_at = Some(now),
            State::TakingOff(phase) => self.begin_take_off(now, phase, out),
            State::MovingToLand => {
                let place = if self.is_leader() { self.place_beside() } else { self.landing_place() };
                self.fly_to(now, place, out);
            }
            State::Landing => {
                if self.is_leader() {
                    self.land_at = self.at.map(|at| at.point());
                }
                push(out, Action::Order(Order::Land));
            }
            State::Aborted(Abort::Land) => push(out, Action::Order(Order::Land)),
            State::Aborted(Abort::LandBeside) => self.fly_to(now, beside, out),
            State::Aborted(Abort::Hold | Abort::ReturnHeld { .. } | Abort::Failure { .. }) => {
                push(out, Action::Order(Order::Hold));
            }
            State::Aborted(Abort::Return) => push(out, Action::Order(Order::Return)),
            // Motors may have been about to start: make sure.
            State::Aborted(Abort::Ground) => {
                if matches!(old, State::TakingOff(_)) {
                    push(out, Action::Order(Order::Land));
                }
            }
        }
    }

    /// Tells people of the change from `old`, in the host's words, and forgets what caused it. `why` is the
    /// host's reason, if it has one.
    pub fn tell(
        &mut self,
        old: State<F>,
        state: StateId,
        detail: &Text,
        why: Option<&str>,
        out: &mut Actions,
    ) {
        let severity = match self.state {
            State::Aborted(Abort::Failure { .. }) => Severity::Error,
            State::Aborted(_) => Severity::Warning,
            State::Landing if self.lands_here => Severity::Warning,
            _ => Severity::Info,
        };
        let why = match (old, self.state) {
            _ if why.is_some() => why.unwrap_or_default(),
            (State::Aborted(Abort::Failure { .. }), State::Aborted(Abort::Land)) => {
                "; nobody decided in time"
            }
            (State::Aborted(Abort::ReturnHeld { .. }), State::Aborted(Abort::Land))
                if self.asked.is_none() =>
            {
                "; the way home stays blocked: lands here"
            }
            (State::Aborted(Abort::Return | Abort::ReturnHeld { .. }), State::Aborted(_))
                if self.asked.is_none() =>
            {
                ""
            }
            (State::Aborted(Abort::LandBeside), State::Aborted(_)) if self.asked.is_none() => "",
            (_, State::Aborted(Abort::Land | Abort::LandBeside)) if self.land_here => {
                "; the leader ends the flight here"
            }
            (State::TakingOff(_) | State::SetupFinished, State::Aborted(Abort::Land))
                if self.asked.is_none() && !self.failed && !self.is_excluded() =>
            {
                "; others are missing and nobody decided in time: lands here"
            }
            (_, State::Aborted(_)) if self.is_excluded() => "; excluded by the operator",
            (_, State::Aborted(_)) if self.failed => "; an order failed",
            (_, State::Aborted(Abort::Failure { .. })) => "; the place was not reached in time",
            (State::TakingOff(TakeOff::Waiting), State::Aborted(Abort::Ground)) if self.asked.is_none() => {
                "; an aircraft that is lost blocks the way: stays on the ground"
            }
            (_, State::Aborted(_)) if self.asked.is_some() => "; operator",
            _ => "",
        };
        push(out, Action::Log(severity, text!("{state}: {detail}{why}")));
        self.asked = None;
        self.failed = false;
    }

    /// When it wants waking, and why.
    pub fn poll_timeout(&self) -> (Instant, &'static str) {
        let mut next = (self.talk_at, "message due");
        let mut consider = |at: Instant, why| {
            if at < next.0 {
                next = (at, why);
            }
        };
        if !self.config.arrival_period.is_zero() && (self.target.is_some() || self.climbing()) {
            consider(self.look_at, "look whether arrived");
        }
        match self.state {
            State::ReadyToFly if !self.is_master() => consider(self.silence_at(), "silence is an answer"),
            State::TakingOff(TakeOff::Confirming) => {
                if !self.is_leader() {
                    consider(self.silence_at(), "silence is an answer");
                }
                consider(self.stalled_until(), "others are missing");
            }
            State::TakingOff(TakeOff::Waiting) => consider(self.blocked_until(), "the way stays blocked"),
            State::TakingOff(TakeOff::InSlot) | State::SetupFinished => {
                consider(self.stalled_until(), "others are missing");
            }
            State::TakingOff(TakeOff::Climbing | TakeOff::MovingToSlot) | State::MovingToLand => {
                consider(self.leg_deadline, "place not reached");
            }
            State::Aborted(Abort::Failure { land_at }) => consider(land_at, "nobody decided"),
            State::Aborted(Abort::LandBeside) => consider(self.leg_deadline, "place not reached"),
            _ => {}
        }
        next
    }

    /// Whether the operator may command this now. `found` is the state.
    ///
    /// # Errors
    /// Why not.
    pub fn permits(&self, command: Command, found: StateId) -> Result<(), Denied> {
        match command {
            Command::Setup => self.permits_setup(found),
            Command::Start if self.state == State::SetupFinished => Ok(()),
            Command::Start => Err(Denied::State { command, found, expected: StateId::SetupFinished }),
            Command::Exclude { member } if !self.planned() => Err(Denied::NoPlan(member)),
            Command::Exclude { member } if self.slot_of(member).is_none() => Err(Denied::NoMember(member)),
            Command::Exclude { .. } => Ok(()),
            Command::Return if self.airborne() && self.needs_layers() && self.layers.is_none() => {
                Err(Denied::NoReturnHeight { height_most_m: self.config.height_most_m })
            }
            Command::Hold | Command::Return | Command::Land => match self.state {
                State::Start | State::Finished | State::Aborted(Abort::Ground) if !self.airborne() => {
                    Err(Denied::OnGround { found })
                }
                _ => Ok(()),
            },
            Command::RecoverControl | Command::Engage => Err(Denied::NotTheProtocols),
        }
    }

    fn permits_setup(&self, found: StateId) -> Result<(), Denied> {
        // A follower that waits for a plan that did not come: the operator presses again.
        if self.state == State::Setup && !self.is_master() && !self.planned() {
            return Ok(());
        }
        if self.state != State::Start {
            return Err(Denied::State { command: Command::Setup, found, expected: StateId::Start });
        }
        if self.at.is_none() {
            return Err(Denied::NoPosition);
        }
        if let Some((id, _)) = self.doubled {
            return Err(Denied::DuplicateId(id));
        }
        if let Some((id, _)) = self.uninvited {
            return Err(Denied::Unexpected { id, expected: self.config.aircraft });
        }
        if self.airborne() {
            return Err(Denied::Armed);
        }
        if self.is_master() {
            if !self.task.is_given() {
                return Err(Denied::NoMission);
            }
            let (found, expected) = (self.heard.len() + 1, self.config.aircraft);
            if found < expected {
                return Err(Denied::Missing { found, expected });
            }
        }
        Ok(self.cannot_plan().map_or(Ok(()), Err)?)
    }

    /// The state's name; nothing for the host's own.
    pub fn state_id(&self) -> Option<StateId> {
        Some(match self.state {
            State::Start => StateId::Start,
            State::Setup => StateId::Setup,
            State::ReadyToFly => StateId::ReadyToFly,
            State::TakingOff(_) => StateId::TakingOff,
            State::SetupFinished => StateId::SetupFinished,
            State::Flying(_) => return None,
            State::MovingToLand => StateId::MovingToLand,
            State::Landing => StateId::Landing,
            State::Finished => StateId::Finished,
            State::Aborted(_) => StateId::Aborted,
        })
    }

    /// How far the flight has come; nothing while the host flies.
    pub fn phase(&self) -> Option<Phase> {
        Some(match self.state {
            State::Start => Phase::Start,
            State::Setup | State::ReadyToFly | State::TakingOff(_) => Phase::Preparing,
            State::SetupFinished => Phase::Ready,
            State::Flying(_) => return None,
            State::MovingToLand | State::Landing => Phase::Ending,
            State::Finished => Phase::Finished,
            State::Aborted(_) => Phase::Aborted,
        })
    }

    /// One line: what it does or waits for; nothing while the host flies.
    pub fn detail(&self) -> Option<Text> {
        Some(match self.state {
            State::Start | State::Setup | State::ReadyToFly => self.setup_detail(),
            State::TakingOff(phase) => self.take_off_detail(phase),
            State::SetupFinished => text!("in slot {}, waiting for the start", self.slot),
            State::Flying(_) => return None,
            State::MovingToLand => text!("to the landing place"),
            State::Landing if self.lands_here => text!("landing where it is"),
            State::Landing => text!("landing"),
            State::Finished => text!("mission completed, landed"),
            State::Aborted(Abort::Hold) => text!("holding"),
            State::Aborted(Abort::Return) => text!("returning to launch"),
            State::Aborted(Abort::ReturnHeld { .. }) => text!("holding until the way home is clear"),
            State::Aborted(Abort::Land) => text!("landing"),
            State::Aborted(Abort::LandBeside) => text!("flying aside to land: somebody is below"),
            State::Aborted(Abort::Failure { .. }) => text!("holding, then landing"),
            State::Aborted(Abort::Ground) => text!("on the ground"),
        })
    }

    /// What is shown of the swarm; the route and the flight are the host's.
    pub fn view(&self, state: StateId, phase: Phase) -> View {
        let planned = self.planned();
        let swarm = SwarmView {
            leader: if planned { self.is_leader() } else { self.is_master() },
            leader_id: if planned { self.id_of(self.leader) } else { Some(self.config.master) },
            size: if planned { self.plan.slots.len() } else { self.heard.len() + 1 },
            formation: self.chart.layout().unwrap_or(self.config.layout).name(),
            slot: planned.then_some(self.slot),
        };
        View { target: self.target, swarm, ..View::alone(state, phase) }
    }

    /// The rest of what is shown of the swarm, with its formation `around` where it is.
    pub fn details(&self, line: Text, around: Around) -> Details {
        Details {
            line,
            absentees: self.absentees(),
            avoidance: None,
            formation: self.formation_view(around),
            plan_hash: self.planned().then(|| plan::hash(&self.plan)),
        }
    }

    /// Where our slot lies from the centre's, metres east and north; nothing before the plan is known.
    pub fn slot_offset_m(&self) -> Option<DVec2> {
        self.chart.slot_offset_m(self.slot).map(|offset| offset.truncate())
    }

    fn is_excluded(&self) -> bool {
        self.planned() && self.excluded >> self.slot & 1 == 1
    }

    /// Whether our motors are armed.
    pub fn airborne(&self) -> bool {
        self.at.is_some_and(|at| at.armed)
    }
}
