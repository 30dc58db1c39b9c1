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
//! Deciding is apart from doing: [`Muscop::next`] maps state and books to the next state and writes
//! nothing; [`Muscop::enter`] acts. Departures from the thesis are listed with their reasons in
//! `docs/protocols/muscop.md`.

pub mod plan;
mod talk;

#[cfg(test)]
mod tests;

use heapless::Vec;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use wingbeat_geo::formation::Layout;
use wingbeat_geo::{DVec2, Duration, Frame, Instant, Position};
use wingbeat_wire::{Message, Plan, Point, Refused, SWARM_MAX, VehicleId};

use crate::{
    Action, Actions, Command, ConfigError, Configuration, Input, Order, Phase, Protocol, Severity, SwarmView,
    Telemetry, Text, text,
};
use plan::Route;

/// What one aircraft knows before it meets the others. [`Config::new`] gives the published numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// This aircraft.
    pub me: VehicleId,
    /// The aircraft that owns the mission; no other is obeyed.
    pub master: VehicleId,
    /// How many aircraft the swarm has, this one included; the master lets nobody set up before it has
    /// heard them all.
    pub aircraft: usize,
    /// Shape of the formation (master's).
    pub layout: Layout,
    /// Distance between slots in flight (master's; thesis 6.3.1: 50 m).
    pub distance_m: f64,
    /// Distance between slots when landing (master's). The thesis says "i.e. 5 meters" and the reference
    /// lands 2.5 m apart; GNSS errs by 2.5 m each, so the default keeps 10 m.
    pub landing_distance_m: f64,
    /// Lowest height of a waypoint above home.
    pub height_least_m: f64,
    /// Highest height of a waypoint above home: the fence.
    pub height_most_m: f64,
    /// Farthest waypoint from where the swarm assembles.
    pub distance_most_m: f64,
    /// Period of every message (thesis 6.1.3: 200 ms).
    pub send_period: Duration,
    /// How long a message must be silent before its absence is an answer (reference: 2 s).
    pub silence: Duration,
    /// How often arrival is looked at (reference: 200 ms); zero looks at every position report.
    pub arrival_period: Duration,
    /// Arrived when nearer than this to the waypoint (reference: 1 m).
    pub arrival_m: f64,
    /// A follower that has not heard the centre for so long while waiting lands where it is.
    pub leader_timeout: Duration,
    /// After a failure the aircraft holds for so long, for an operator to decide, and then lands.
    pub hold_before_landing: Duration,
}

impl Config {
    /// The published numbers.
    pub fn new(me: VehicleId, master: VehicleId, aircraft: usize) -> Self {
        Self {
            me,
            master,
            aircraft,
            layout: Layout::Linear,
            distance_m: 50.0,
            landing_distance_m: 10.0,
            height_least_m: 2.0,
            height_most_m: 120.0,
            distance_most_m: 5_000.0,
            send_period: Duration::from_millis(200),
            silence: Duration::from_secs(2),
            arrival_period: Duration::from_millis(200),
            arrival_m: 1.0,
            leader_timeout: Duration::from_secs(30),
            hold_before_landing: Duration::from_secs(60),
        }
    }
}

impl Configuration for Config {
    type Flight = Muscop;

    fn me(&self) -> VehicleId {
        self.me
    }
    fn heights_m(&self) -> (f64, f64) {
        (self.height_least_m, self.height_most_m)
    }
    fn check(&self) -> Result<(), ConfigError> {
        ConfigError::aircraft(self.aircraft)?;
        ConfigError::distance("distance_m", self.distance_m)?;
        ConfigError::distance("landing_distance_m", self.landing_distance_m)?;
        ConfigError::period("send_period_ms", self.send_period, 20, 5_000)?;
        ConfigError::period("arrival_period_ms", self.arrival_period, 0, 5_000)
    }
    fn begin(&self, seed: u64, now: Instant) -> Muscop {
        Muscop::new(self.clone(), seed, now)
    }
}

/// States of thesis figure 6.1; the take-off is spread out as in the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Followers call; the master listens.
    Start,
    /// The master spreads the plan.
    Setup,
    /// Everybody holds the plan.
    ReadyToFly,
    /// Taking off one after the other.
    TakingOff(TakeOff),
    /// All in their slots, waiting for the operator's start.
    SetupFinished,
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
    /// A follower on the way to its place in the landing formation.
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
    /// Landing.
    Land,
    /// Holding after a failure until `land_at`, then landing.
    Failure {
        /// When it lands.
        land_at: Instant,
    },
    /// On the ground: nothing was flying, or it has come down.
    Ground,
}

/// A set of slots, as bits.
type Slots = u128;

/// MUSCOP on one aircraft.
pub struct Muscop {
    config: Config,
    chance: Pcg64Mcg,
    state: State,
    at: Option<Telemetry>,
    /// The mission as the operator gave it (master only).
    mission: Route,
    /// Who called, and from where (master, before setup).
    heard: Vec<(VehicleId, Point), SWARM_MAX>,
    /// The flight's plan; its `slots` are empty before setup.
    plan: Plan,
    flight: u32,
    slot: usize,
    route: Route,
    /// The flight controller holds our route.
    loaded: bool,
    /// Who answered what is being repeated now; emptied at every change of state.
    acks: Slots,
    /// Who was heard to hover in their slot.
    in_slot: Slots,
    /// Whether the previous aircraft has made room.
    released: bool,
    /// Whether the last look found us where we were going.
    arrived: bool,
    /// Operator's command not yet acted on.
    asked: Option<Command>,
    /// An order failed and nothing was done about it yet.
    failed: bool,
    /// The centre's last release or landing.
    move_to: Option<u16>,
    land_at: Option<Point>,
    /// When the message that keeps us in this state was heard last.
    held_at: Option<Instant>,
    leader_heard_at: Instant,
    talk_at: Instant,
    look_at: Instant,
    /// When what we fly to should long have been reached.
    leg_deadline: Instant,
    target: Option<Point>,
}

impl Muscop {
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
            mission: Route::new(),
            heard: Vec::new(),
            plan: Plan::default(),
            flight: 0,
            slot: 0,
            route: Route::new(),
            loaded: false,
            acks: 0,
            in_slot: 0,
            released: false,
            arrived: false,
            asked: None,
            failed: false,
            move_to: None,
            land_at: None,
            held_at: None,
            leader_heard_at: now,
            talk_at,
            look_at,
            leg_deadline: Instant::NEVER,
            target: None,
        }
    }

    fn is_master(&self) -> bool {
        self.config.me == self.config.master
    }
    fn center(&self) -> usize {
        plan::formation(&self.plan).map_or(0, |f| f.center_slot())
    }
    fn is_center(&self) -> bool {
        self.planned() && self.slot == self.center()
    }
    fn planned(&self) -> bool {
        !self.plan.slots.is_empty()
    }
    /// Bits of everybody but us.
    fn others(&self) -> Slots {
        let all =
            if self.plan.slots.len() == SWARM_MAX { Slots::MAX } else { (1 << self.plan.slots.len()) - 1 };
        all & !(1 << self.slot)
    }
    fn slot_of(&self, id: VehicleId) -> Option<usize> {
        self.plan.slots.iter().position(|&s| s == id)
    }
    /// Our place in the order of take-off.
    fn turn(&self) -> usize {
        self.plan.take_off_order.iter().position(|&s| usize::from(s) == self.slot).unwrap_or(0)
    }
    /// Who takes off after us.
    fn successor(&self) -> Option<VehicleId> {
        let slot = *self.plan.take_off_order.get(self.turn() + 1)?;
        self.plan.slots.get(usize::from(slot)).copied()
    }
    fn predecessor(&self) -> Option<VehicleId> {
        let slot = *self.plan.take_off_order.get(self.turn().checked_sub(1)?)?;
        self.plan.slots.get(usize::from(slot)).copied()
    }
    fn climbing(&self) -> bool {
        self.state == State::TakingOff(TakeOff::Climbing)
    }
    /// When the message that keeps us in this state has been silent for long enough.
    fn silence_at(&self) -> Instant {
        self.held_at.map_or(Instant::NEVER, |held_at| held_at + self.config.silence)
    }
    fn airborne(&self) -> bool {
        self.at.is_some_and(|at| at.armed)
    }
    fn last_waypoint(&self) -> u16 {
        self.route.len().saturating_sub(1) as u16
    }
    /// Height of the first, vertical part of the take-off (reference, safe take-off).
    fn first_height_mm(&self) -> i32 {
        match self.route.first().map_or(0, |w| w.height_mm) {
            ..=5_000 => 2_000,
            10_000.. => 5_000,
            h => h / 2,
        }
    }

    /// Whether we hover at `place`: nearer than the arrival distance over the ground, and at its height
    /// within what the reference allows (1 m up to 20 m, 5 % up to 50 m, 2.5 m above).
    fn is_at(&self, place: Point) -> bool {
        let Some(at) = self.at else { return false };
        let height_m = f64::from(place.height_mm) / 1e3;
        let tolerance_m = match height_m {
            ..=20.0 => 1.0,
            ..=50.0 => 0.05 * height_m,
            _ => 2.5,
        };
        self.distance_m(place).is_some_and(|d| d <= self.config.arrival_m)
            && (at.height_m - height_m).abs() <= tolerance_m
    }
    fn distance_m(&self, place: Point) -> Option<f64> {
        let there =
            Position { latitude_e7: place.latitude_e7, longitude_e7: place.longitude_e7, altitude_mm: 0 };
        Some(Frame::new(there).to_local(self.at?.position).truncate().length())
    }

    /// Writes an input into the books. The only place that reads messages.
    fn absorb(&mut self, now: Instant, input: Input<'_>) -> Result<(), Refused> {
        match input {
            Input::Wake => {
                if now >= self.look_at {
                    self.look();
                    self.look_at = now + self.config.arrival_period.max(Duration::from_millis(1));
                }
            }
            Input::Telemetry(at) => {
                self.at = Some(at);
                if self.config.arrival_period.is_zero() {
                    self.look();
                }
            }
            Input::Operator(command) => self.asked = Some(command),
            Input::Done(Order::LoadRoute) => self.loaded = true,
            Input::Done(_) | Input::Reached(_) => {}
            Input::Failed(_) => self.failed = true,
            Input::Message { from, flight, message } => self.hear(now, from, flight, message)?,
        }
        Ok(())
    }

    fn look(&mut self) {
        self.arrived = match self.state {
            State::TakingOff(TakeOff::Climbing) => {
                let enough_m = f64::from(self.first_height_mm()) / 1e3 * 0.95;
                self.at.is_some_and(|at| at.height_m >= enough_m)
            }
            _ => self.target.is_some_and(|t| self.is_at(t)),
        };
    }

    fn hear(&mut self, now: Instant, from: VehicleId, flight: u32, message: &Message) -> Result<(), Refused> {
        match message {
            Message::Hello { at } => {
                if !self.is_master() || self.state != State::Start {
                    return Ok(()); // early or late, and harmless
                }
                return match self.heard.iter().position(|(id, _)| *id == from) {
                    Some(known) => {
                        self.heard[known].1 = *at;
                        Ok(())
                    }
                    // The swarm has as many aircraft as configured and no more.
                    None if self.heard.len() + 1 >= self.config.aircraft => Err(Refused::Stranger),
                    None => self.heard.push((from, *at)).map_err(|_| Refused::Stranger),
                };
            }
            Message::Data(plan) => {
                if from != self.config.master || self.is_master() {
                    return Err(Refused::Stranger);
                }
                if self.state == State::Setup && !self.planned() {
                    self.adopt(flight, plan)?;
                }
            }
            _ => {}
        }
        // From here on only members of this flight are listened to.
        if !self.planned() || flight != self.flight {
            return Err(Refused::OtherFlight);
        }
        let slot = self.slot_of(from).ok_or(Refused::Stranger)?;
        let (from_master, from_center) = (from == self.config.master, slot == self.center());
        if from_center {
            self.leader_heard_at = now;
        }
        let authorised = match message {
            Message::ReadyToFly | Message::Data(_) => from_master,
            Message::TakeOffEnd | Message::MoveToWaypoint { .. } | Message::Land { .. } => from_center,
            _ => true,
        };
        if !authorised {
            return Err(Refused::Stranger);
        }
        let bit = 1 << slot;
        match message {
            Message::Hello { .. } | Message::Data(_) => {}
            Message::DataAck { hash } => {
                if *hash != plan::hash(&self.plan) {
                    return Err(Refused::Contradiction);
                }
                if self.state == State::Setup {
                    self.acks |= bit;
                }
            }
            Message::ReadyToFly => self.held_at = Some(now),
            Message::ReadyToFlyAck if self.state == State::ReadyToFly => self.acks |= bit,
            Message::ReadyToFlyAck => {}
            Message::TakeOffNow { next } => {
                self.released |= *next == self.config.me && Some(from) == self.predecessor();
            }
            Message::TargetReached => {
                if self.is_center() {
                    self.in_slot |= bit;
                }
                self.released |= Some(from) == self.predecessor();
            }
            Message::TakeOffEnd => {
                self.held_at = Some(now);
                self.in_slot = Slots::MAX; // the centre says that all are
            }
            Message::TakeOffEndAck if self.state == State::TakingOff(TakeOff::Confirming) => self.acks |= bit,
            Message::TakeOffEndAck => {}
            Message::ReachedWaypointAck { waypoint } => {
                if self.state == (State::WaypointReached { waypoint: *waypoint }) {
                    self.acks |= bit;
                }
            }
            Message::MoveToWaypoint { waypoint } => self.move_to = Some(*waypoint),
            Message::Land { at } => self.land_at = Some(*at),
            Message::Beacon(_) => {} // of those who avoid one another: no member of this flight
        }
        Ok(())
    }

    /// Takes the master's plan as ours, if we can fly it.
    fn adopt(&mut self, flight: u32, plan: &Plan) -> Result<(), Refused> {
        let slot = plan.slots.iter().position(|&s| s == self.config.me).ok_or(Refused::Stranger)?;
        if !plan.slots.contains(&self.config.master) || flight == 0 {
            return Err(Refused::Contradiction);
        }
        self.route = plan::route(&self.config, plan, slot).map_err(|_| Refused::Contradiction)?;
        self.plan = plan.clone();
        self.flight = flight;
        self.slot = slot;
        Ok(())
    }

    /// The transition table: it reads and never writes, so a test can print it whole.
    fn next(&self, now: Instant) -> State {
        use State::{
            Aborted, Finished, Landing, MovingToLand, MovingToWaypoint, ReadyToFly, Setup, SetupFinished,
            Start, TakingOff, WaypointReached,
        };
        match (self.state, self.asked) {
            (Finished | Aborted(Abort::Ground), _) if !self.airborne() => return self.state,
            (_, Some(Command::Hold | Command::Return | Command::Land)) if !self.airborne() => {
                return Aborted(Abort::Ground);
            }
            (_, Some(Command::Hold)) => return Aborted(Abort::Hold),
            (_, Some(Command::Return)) => return Aborted(Abort::Return),
            (_, Some(Command::Land)) => return Aborted(Abort::Land),
            _ => {}
        }
        if self.failed && !matches!(self.state, Aborted(_)) {
            // It cannot do what it must: hold, say so, come down if nobody decides.
            return match self.state {
                _ if !self.airborne() => Aborted(Abort::Ground),
                MovingToLand | Landing => Aborted(Abort::Land),
                _ => Aborted(Abort::Failure { land_at: now + self.config.hold_before_landing }),
            };
        }
        let all = |bits: Slots| bits & self.others() == self.others();
        let silent = now >= self.silence_at();
        let leaderless = now >= self.leader_heard_at + self.config.leader_timeout;
        match self.state {
            Start if self.asked == Some(Command::Setup) => Setup,
            Setup if !self.planned() || !self.loaded => Setup,
            Setup if self.is_master() && all(self.acks) => ReadyToFly,
            Setup if !self.is_master() && self.held_at.is_some() => ReadyToFly,
            ReadyToFly if self.is_master() && all(self.acks) => TakingOff(TakeOff::Waiting),
            ReadyToFly if !self.is_master() && silent => TakingOff(TakeOff::Waiting),
            TakingOff(TakeOff::Waiting) if self.released || self.turn() == 0 => TakingOff(TakeOff::Climbing),
            TakingOff(TakeOff::Climbing) if self.arrived => TakingOff(TakeOff::MovingToSlot),
            TakingOff(TakeOff::MovingToSlot) if self.arrived => TakingOff(TakeOff::InSlot),
            TakingOff(TakeOff::InSlot) if all(self.in_slot) => TakingOff(TakeOff::Confirming),
            TakingOff(TakeOff::Confirming) if self.is_center() && all(self.acks) => SetupFinished,
            TakingOff(TakeOff::Confirming) if !self.is_center() && silent => SetupFinished,
            SetupFinished if self.asked == Some(Command::Start) => WaypointReached { waypoint: 0 },
            WaypointReached { waypoint } if self.is_center() && all(self.acks) => {
                if waypoint == self.last_waypoint() {
                    Landing
                } else {
                    MovingToWaypoint { waypoint: waypoint + 1 }
                }
            }
            WaypointReached { waypoint } if !self.is_center() && self.move_to == Some(waypoint + 1) => {
                MovingToWaypoint { waypoint: waypoint + 1 }
            }
            WaypointReached { waypoint }
                if !self.is_center() && waypoint == self.last_waypoint() && self.land_at.is_some() =>
            {
                MovingToLand
            }
            WaypointReached { .. } if !self.is_center() && leaderless => Aborted(Abort::Land),
            MovingToWaypoint { waypoint } if self.arrived => WaypointReached { waypoint },
            MovingToLand if self.arrived => Landing,
            TakingOff(TakeOff::Climbing | TakeOff::MovingToSlot) | MovingToWaypoint { .. } | MovingToLand
                if now >= self.leg_deadline =>
            {
                Aborted(Abort::Failure { land_at: now + self.config.hold_before_landing })
            }
            Landing if !self.airborne() => Finished,
            Aborted(Abort::Failure { land_at }) if now >= land_at => Aborted(Abort::Land),
            Aborted(_) if !self.airborne() => Aborted(Abort::Ground),
            unchanged => unchanged,
        }
    }

    /// Acts on a change of state.
    fn enter(&mut self, now: Instant, old: State, out: &mut Actions) {
        self.acks = 0;
        self.arrived = false;
        if !matches!(self.state, State::MovingToWaypoint { .. }) {
            self.target = None;
        }
        let at_height = |route: &Route, w: u16| route.get(usize::from(w)).copied();
        match self.state {
            State::Start | State::TakingOff(TakeOff::Waiting) | State::Finished | State::SetupFinished => {}
            State::Setup if self.is_master() => self.make_plan(out),
            State::Setup => {}
            State::ReadyToFly => self.held_at = Some(now),
            State::TakingOff(TakeOff::Climbing) => {
                let height_mm = self.first_height_mm();
                self.leg_deadline = now + Duration::from_secs(60);
                push(out, Action::Order(Order::TakeOff { height_mm }));
            }
            State::TakingOff(TakeOff::MovingToSlot) => self.fly_to(now, at_height(&self.route, 0), out),
            State::TakingOff(TakeOff::InSlot) => self.in_slot |= 1 << self.slot,
            State::TakingOff(TakeOff::Confirming) => self.held_at = Some(now),
            State::WaypointReached { .. } => self.leader_heard_at = now,
            State::MovingToWaypoint { waypoint } => self.fly_to(now, at_height(&self.route, waypoint), out),
            State::MovingToLand => {
                let place = self.land_at.zip(self.at).map(|(center, at)| {
                    plan::landing_place(&self.plan, self.slot, center, (at.height_m * 1e3) as i32)
                });
                self.fly_to(now, place, out);
            }
            State::Landing | State::Aborted(Abort::Land) => push(out, Action::Order(Order::Land)),
            State::Aborted(Abort::Hold | Abort::Failure { .. }) => push(out, Action::Order(Order::Hold)),
            State::Aborted(Abort::Return) => push(out, Action::Order(Order::Return)),
            // Motors may have been about to start: make sure.
            State::Aborted(Abort::Ground) => {
                if matches!(old, State::TakingOff(_)) {
                    push(out, Action::Order(Order::Land));
                }
            }
        }
        let severity = match self.state {
            State::Aborted(Abort::Failure { .. }) => Severity::Error,
            State::Aborted(_) => Severity::Warning,
            _ => Severity::Info,
        };
        let why = match (old, self.state) {
            (State::WaypointReached { .. }, State::Aborted(Abort::Land)) if self.asked.is_none() => {
                "; the centre is silent"
            }
            (State::Aborted(Abort::Failure { .. }), State::Aborted(Abort::Land)) => {
                "; nobody decided in time"
            }
            (_, State::Aborted(Abort::Failure { .. })) if self.failed => "; an order failed",
            (_, State::Aborted(Abort::Failure { .. })) => "; the place was not reached in time",
            (_, State::Aborted(_)) if self.asked.is_some() => "; operator",
            _ => "",
        };
        push(out, Action::Log(severity, text!("{}: {}{why}", self.state(), self.detail())));
    }

    fn fly_to(&mut self, now: Instant, place: Option<Point>, out: &mut Actions) {
        let Some(place) = place else { return };
        self.target = Some(place);
        // Generous: at half a metre per second any wind that can be flown in is beaten.
        let seconds = self.distance_m(place).unwrap_or(0.0) / 0.5 + 60.0;
        self.leg_deadline = now + Duration::from_millis((seconds * 1e3) as u64);
        push(out, Action::Order(Order::FlyTo(place)));
    }

    fn make_plan(&mut self, out: &mut Actions) {
        let mut aircraft: Vec<(VehicleId, Point), SWARM_MAX> = Vec::new();
        let here = self.at.map_or(Point::default(), |at| at.point());
        let _ = aircraft.push((self.config.me, here));
        let _ = aircraft.extend_from_slice(&self.heard);
        aircraft.sort_unstable_by_key(|(id, _)| *id);
        let planned = plan::make(&self.config, &aircraft, &self.mission).and_then(|plan| {
            let slot =
                plan.slots.iter().position(|&s| s == self.config.me).ok_or(plan::PlanError::NotMember)?;
            Ok((plan::route(&self.config, &plan, slot)?, slot, plan))
        });
        match planned {
            Ok((route, slot, plan)) => {
                self.route = route;
                self.slot = slot;
                self.plan = plan;
                self.flight = (self.chance.next_u64() as u32).max(1);
                push(out, Action::Order(Order::LoadRoute));
            }
            Err(error) => {
                self.state = State::Start;
                push(out, Action::Log(Severity::Error, text!("setup refused: {error}")));
            }
        }
    }
}

/// The bound of [`Actions`] holds what one input can ask: see there.
fn push(out: &mut Actions, action: Action) {
    let pushed = out.push(action);
    debug_assert!(pushed.is_ok(), "see the bound on Actions");
}

impl Protocol for Muscop {
    fn name(&self) -> &'static str {
        "muscop"
    }

    /// Only the master flies it as given; it replaces an earlier one.
    fn set_mission(&mut self, mission: &[Point]) -> Result<(), Text> {
        if self.config.me != self.config.master {
            return Err(text!("the mission belongs to the master, {}", self.config.master));
        }
        if self.state != State::Start {
            return Err(text!("a mission can be given in state Start, found {}", self.state()));
        }
        self.mission = Route::from_slice(mission)
            .ok()
            .filter(|m| m.len() >= 2)
            .ok_or_else(|| text!("{}", plan::PlanError::Waypoints(mission.len())))?;
        Ok(())
    }
    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Actions) {
        let had_plan = self.planned();
        if let Err(reason) = self.absorb(now, input) {
            push(out, Action::Refused(reason));
            return;
        }
        if !had_plan && self.planned() {
            push(out, Action::Order(Order::LoadRoute));
        }
        // Two changes at most follow from one input: a place reached that was the last to be waited for.
        for _ in 0..2 {
            let (old, new) = (self.state, self.next(now));
            if old == new {
                break;
            }
            self.state = new;
            self.enter(now, old, out);
            self.asked = None;
            self.failed = false;
        }
        self.asked = None;
        self.talk(now, input, out);
    }

    fn poll_timeout(&self) -> (Instant, &'static str) {
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
            State::TakingOff(TakeOff::Confirming) if !self.is_center() => {
                consider(self.silence_at(), "silence is an answer");
            }
            State::WaypointReached { .. } if !self.is_center() => {
                consider(self.leader_heard_at + self.config.leader_timeout, "centre silent");
            }
            State::TakingOff(TakeOff::Climbing | TakeOff::MovingToSlot)
            | State::MovingToWaypoint { .. }
            | State::MovingToLand => consider(self.leg_deadline, "place not reached"),
            State::Aborted(Abort::Failure { land_at }) => consider(land_at, "nobody decided"),
            _ => {}
        }
        next
    }

    fn permits(&self, command: Command) -> Result<(), Text> {
        match command {
            // A follower that waits for a plan that did not come: the operator presses again.
            Command::Setup if self.state == State::Setup && !self.is_master() && !self.planned() => Ok(()),
            Command::Setup if self.state != State::Start => {
                Err(text!("setup is possible in state Start, found {}", self.state()))
            }
            Command::Setup if self.at.is_none() => Err(text!("no position yet")),
            Command::Setup if self.airborne() => Err(text!("setup needs a disarmed aircraft")),
            Command::Setup if self.is_master() && self.mission.is_empty() => Err(text!("no mission")),
            Command::Setup if self.is_master() && self.heard.len() + 1 < self.config.aircraft => {
                Err(text!("heard {} of {} aircraft", self.heard.len() + 1, self.config.aircraft))
            }
            Command::Start if self.state != State::SetupFinished => {
                Err(text!("start is possible in state SetupFinished, found {}", self.state()))
            }
            Command::Hold | Command::Return | Command::Land
                if !self.airborne()
                    && matches!(
                        self.state,
                        State::Start | State::Finished | State::Aborted(Abort::Ground)
                    ) =>
            {
                Err(text!("on the ground, {}", self.state()))
            }
            _ => Ok(()),
        }
    }

    fn state(&self) -> &'static str {
        match self.state {
            State::Start => "Start",
            State::Setup => "Setup",
            State::ReadyToFly => "ReadyToFly",
            State::TakingOff(_) => "TakingOff",
            State::SetupFinished => "SetupFinished",
            State::WaypointReached { .. } => "WaypointReached",
            State::MovingToWaypoint { .. } => "MovingToWaypoint",
            State::MovingToLand => "MovingToLand",
            State::Landing => "Landing",
            State::Finished => "Finished",
            State::Aborted(_) => "Aborted",
        }
    }

    fn phase(&self) -> Phase {
        match self.state {
            State::Start => Phase::Start,
            State::Setup | State::ReadyToFly | State::TakingOff(_) => Phase::Preparing,
            State::SetupFinished => Phase::Ready,
            State::WaypointReached { .. } => Phase::Waiting,
            State::MovingToWaypoint { .. } => Phase::Moving,
            State::MovingToLand | State::Landing => Phase::Ending,
            State::Finished => Phase::Finished,
            State::Aborted(_) => Phase::Aborted,
        }
    }

    fn detail(&self) -> Text {
        let missing = |bits: Slots| (self.others() & !bits).count_ones();
        let last = self.last_waypoint();
        match self.state {
            State::Start if self.is_master() && self.mission.is_empty() => text!("waiting for a mission"),
            State::Start if self.is_master() => {
                text!("heard {} of {} aircraft", self.heard.len() + 1, self.config.aircraft)
            }
            State::Start => text!("calling the master, {}", self.config.master),
            State::Setup if !self.planned() => text!("waiting for the master's plan"),
            State::Setup if !self.loaded => text!("loading the route into the flight controller"),
            State::Setup if self.is_master() => text!("waiting for {} to hold the plan", missing(self.acks)),
            State::Setup => text!("waiting until all hold the plan"),
            State::ReadyToFly if self.is_master() => text!("waiting for {} to be ready", missing(self.acks)),
            State::ReadyToFly => text!("ready"),
            State::TakingOff(TakeOff::Waiting) => {
                text!("takes off as {} of {}", self.turn() + 1, self.plan.slots.len())
            }
            State::TakingOff(TakeOff::Climbing) => text!("climbing"),
            State::TakingOff(TakeOff::MovingToSlot) => text!("flying to slot {}", self.slot),
            State::TakingOff(TakeOff::InSlot) if self.is_center() => {
                text!("in slot {}, waiting for {}", self.slot, missing(self.in_slot))
            }
            State::TakingOff(TakeOff::InSlot | TakeOff::Confirming) => text!("in slot {}", self.slot),
            State::SetupFinished => text!("in slot {}, waiting for the start", self.slot),
            State::WaypointReached { waypoint } if self.is_center() => {
                text!("at waypoint {waypoint} of {last}, waiting for {}", missing(self.acks))
            }
            State::WaypointReached { waypoint } => text!("at waypoint {waypoint} of {last}"),
            State::MovingToWaypoint { waypoint } => text!("to waypoint {waypoint} of {last}"),
            State::MovingToLand => text!("to the landing place"),
            State::Landing => text!("landing"),
            State::Finished => text!("mission completed, landed"),
            State::Aborted(Abort::Hold) => text!("holding"),
            State::Aborted(Abort::Return) => text!("returning to launch"),
            State::Aborted(Abort::Land) => text!("landing"),
            State::Aborted(Abort::Failure { .. }) => text!("holding, then landing"),
            State::Aborted(Abort::Ground) => text!("on the ground"),
        }
    }

    fn route(&self) -> &[Point] {
        if self.planned() { &self.route } else { &self.mission }
    }

    fn reached(&self) -> Option<u16> {
        match self.state {
            State::WaypointReached { waypoint } => Some(waypoint),
            State::MovingToWaypoint { waypoint } => waypoint.checked_sub(1),
            State::MovingToLand | State::Landing | State::Finished => Some(self.last_waypoint()),
            _ => None,
        }
    }

    fn target(&self) -> Option<Point> {
        self.target
    }

    fn swarm(&self) -> SwarmView {
        let planned = self.planned();
        let formation = plan::formation(&self.plan);
        SwarmView {
            leader: if planned { self.is_center() } else { self.is_master() },
            leader_id: if planned {
                self.plan.slots.get(self.center()).copied()
            } else {
                Some(self.config.master)
            },
            size: if planned { self.plan.slots.len() } else { self.heard.len() + 1 },
            formation: formation.map_or(self.config.layout, |f| f.layout()).name(),
            slot: planned.then_some(self.slot),
        }
    }

    fn slot_offset_m(&self) -> Option<DVec2> {
        let formation = plan::formation(&self.plan).ok()?;
        Some(formation.offset_m(self.slot, f64::from(self.plan.heading_urad) / 1e6))
    }

    fn plan_hash(&self) -> Option<u64> {
        self.planned().then(|| plan::hash(&self.plan))
    }
}
