//! What every swarm does before and after its flight: meet, agree on a plan, take off into a formation, and land.
//!
//! [`Swarm`] is a machine inside a machine. A protocol embeds one, and is its [`Host`]: it adds the states of its flight,
//! as [`State::Flying`], and what is broadcast in them. Its one door is [`Swarm::handle`].
//!
//! ```text
//! Start ─Setup▶ Setup ─all hold the plan▶ ReadyToFly ─all ready▶ TakingOff ─all in their slots▶
//! SetupFinished ─host▶ Flying(host's own) ─host▶ MovingToLand, Landing ▶ Finished
//! any: Hold, Return, Land by the operator, or a failure ▶ Aborted
//! ```
//!
//! It is made from parts, each of which owns its data: the [assignment](assignment) (the adopted plan), the
//! [membership], the [ownship], the [traffic](clearance), the [setup], the [take-off](take_off), the [landing], and the
//! [timers](timer). Deciding is apart from doing: [`Swarm::next`] reads and never writes, [`Swarm::change`] acts.

mod assignment;
mod broadcast;
pub(crate) mod clearance;
mod config;
mod geometry;
mod landing;
mod membership;
mod navigation;
mod ownship;
pub mod path;
pub mod plan;
pub(crate) mod setup;
pub mod shape;
pub(crate) mod slot_set;
#[cfg(test)]
pub(crate) mod table;
mod take_off;
pub(crate) mod timer;
mod transition;
mod trial;
pub(crate) mod view;

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{Ending, Message, Point, Refused, VehicleId};

use crate::{Action, Actions, Command, Input, Order, Severity, StateId, Text, push, text};
use assignment::Assignment;
pub(crate) use broadcast::Urgency;
use clearance::{Clearance, Traffic};
pub use config::{Config, Manner};
use landing::Landing;
use membership::Membership;
use navigation::Navigation;
use ownship::Ownship;
use plan::{PlanError, Task};
use setup::Setup;
use slot_set::SlotSet;
use take_off::{TakeOff, TakeOffMessage};
use timer::{Timer, TimerTable};
pub use transition::{Abort, State, TakeOffPhase};
pub(crate) use transition::{Reason, Transition, Trigger};

/// One aircraft's part in a swarm; `F` are the host's states in flight.
#[cfg_attr(test, derive(Clone))]
pub struct Swarm<F> {
    config: Config,
    rng: Pcg64Mcg,
    state: State<F>,
    timers: TimerTable,
    ownship: Ownship,
    assignment: Assignment,
    members: Membership,
    traffic: Traffic,
    setup: Setup,
    take_off: TakeOff,
    landing: Landing,
    navigation: Navigation,
    /// Whether the messages broadcast last are repeated with the next input.
    repeat: Urgency,
}

/// A protocol that flies a swarm between take-off and landing.
pub(crate) trait Host {
    /// Its states in flight.
    type Flight: Copy + PartialEq;

    /// The input was applied, before its message is handed on: the leader or the absent members may be others.
    fn on_members(&mut self, swarm: &mut Swarm<Self::Flight>, now: Instant, change: MemberChange) {
        let _ = (swarm, now, change);
    }

    /// A member sent a message, which the swarm has applied as far as it concerns it.
    ///
    /// # Errors
    /// Why the message is not for us.
    fn on_message(
        &mut self,
        swarm: &mut Swarm<Self::Flight>,
        now: Instant,
        slot: usize,
        message: &Message,
    ) -> Result<(), Refused>;

    /// The transition table of the flight: what follows where nothing follows for the swarm. It reads and never writes.
    fn next(
        &self,
        swarm: &Swarm<Self::Flight>,
        now: Instant,
        trigger: Trigger,
    ) -> Option<Transition<Self::Flight>>;

    /// Acts on a new state, after the swarm has. How soon its messages are broadcast, where that is new.
    fn enter(
        &mut self,
        swarm: &mut Swarm<Self::Flight>,
        now: Instant,
        old: State<Self::Flight>,
        out: &mut Actions,
    ) -> Option<Urgency>;

    /// Acts while a state lasts, after the transitions of an input and before its messages are broadcast.
    fn act(
        &mut self,
        swarm: &mut Swarm<Self::Flight>,
        now: Instant,
        input: &Input<'_>,
        out: &mut Actions,
    ) -> Option<Urgency>;

    /// What is repeated in flight.
    fn messages(
        &self,
        swarm: &Swarm<Self::Flight>,
        now: Instant,
        flight: Self::Flight,
    ) -> [Option<Message>; 2];

    /// Where this aircraft lands that leaves the formation to land.
    fn landing_site(&self, swarm: &Swarm<Self::Flight>) -> Option<Point> {
        let clearance = swarm.clearance();
        if swarm.is_leader() { clearance.site_aside() } else { clearance.landing_position() }
    }

    /// Broadcasts what has a period of its own, after the messages of the swarm.
    fn broadcast(&mut self, swarm: &mut Swarm<Self::Flight>, now: Instant, out: &mut Actions) {
        let _ = (swarm, now, out);
    }

    /// Whether a timer runs in the present state, besides those of the swarm.
    fn runs(&self, swarm: &Swarm<Self::Flight>, timer: Timer) -> bool;

    /// A deadline that the present state owns, and why it wakes.
    fn deadline(&self, swarm: &Swarm<Self::Flight>) -> Option<(Instant, &'static str)> {
        let _ = swarm;
        None
    }

    /// The state, and what it does or waits for, for the log.
    fn describe(&self, swarm: &Swarm<Self::Flight>) -> (StateId, Text);
}

/// What an input changed about the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberChange {
    /// Another leads.
    pub(crate) is_leader_new: bool,
    /// Others are absent, or it is time to check again.
    pub(crate) is_check_due: bool,
}

/// What an input changed that the log or the flight controller is told.
#[derive(Debug, Default)]
struct Changes {
    /// About a member, by slot.
    notice: Option<(usize, Notice)>,
    is_leader_new: bool,
    /// The master's plan cannot be flown here.
    refused_plan: Option<PlanError>,
    /// The master's plan was adopted.
    has_adopted: bool,
}

/// What the log says about a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notice {
    Leaves,
    Lost,
    Excluded,
    OtherPlan,
}

impl Notice {
    const fn text(self) -> &'static str {
        match self {
            Self::Leaves => "leaves: not waited for",
            Self::Lost => "is silent: not waited for",
            Self::Excluded => "is excluded: not waited for",
            Self::OtherPlan => "holds another plan: setup goes no further",
        }
    }
}

impl<F: Copy + PartialEq> Swarm<F> {
    /// An aircraft in state [`State::Start`]. `seed` sets the phase of its timers, so that the members do not broadcast
    /// at the same time, and the number of the flights it plans.
    pub(crate) fn new(config: Config, seed: u64, now: Instant) -> Self {
        let mut rng = Pcg64Mcg::new(u128::from(seed) << 64 | u128::from(config.me.0));
        let mut timers = TimerTable::new();
        for (timer, period) in
            [(Timer::Broadcast, config.send_period), (Timer::ArrivalCheck, config.arrival_period)]
        {
            timers.set(timer, now + random_phase(&mut rng, period));
        }
        Self {
            config,
            rng,
            state: State::Start,
            timers,
            ownship: Ownship::default(),
            assignment: Assignment::none(),
            members: Membership::default(),
            traffic: Traffic::default(),
            setup: Setup::default(),
            take_off: TakeOff::begin(now),
            landing: Landing::default(),
            navigation: Navigation::default(),
            repeat: Urgency::Periodic,
        }
    }

    /// The one door. When it returns, `out` holds everything to do, in order.
    pub(crate) fn handle<H: Host<Flight = F>>(
        &mut self,
        host: &mut H,
        now: Instant,
        input: Input<'_>,
        out: &mut Actions,
    ) {
        let is_due = self.timers.is_due(Timer::Broadcast, now);
        let (leader, absent) = (self.members.leader(), self.members.absent());
        let mut changes = Changes::default();
        let applied = self.apply(now, input, &mut changes);
        let change = MemberChange {
            is_leader_new: self.members.leader() != leader,
            is_check_due: is_due || self.members.absent() != absent,
        };
        host.on_members(self, now, change);
        let handled = applied.and_then(|message| match message {
            Some((slot, message)) => host.on_message(self, now, slot, message),
            None => Ok(()),
        });
        if let Err(reason) = handled {
            push(out, Action::Refused(reason));
        }
        self.log_changes(&changes, out);
        if handled.is_err() {
            return;
        }
        if changes.has_adopted {
            self.load_route(out);
        }
        let mut urgency = None;
        let mut trigger = Trigger::of(&input);
        // Two changes at most follow from one input: a target reached that was the last to be waited for.
        for _ in 0..2 {
            let Some(transition) = self.next(host, now, trigger) else { break };
            urgency = self.change(host, now, transition, out).or(urgency);
            trigger = Trigger::None;
        }
        urgency = host.act(self, now, &input, out).or(urgency);
        self.broadcast(host, now, input, urgency, out);
        host.broadcast(self, now, out);
    }

    /// Applies an input to the parts. A message of a member is handed back, for the host.
    fn apply<'a>(
        &mut self,
        now: Instant,
        input: Input<'a>,
        changes: &mut Changes,
    ) -> Result<Option<(usize, &'a Message)>, Refused> {
        if self.timers.is_due(Timer::Broadcast, now) {
            self.check_members(now, changes);
            self.setup.forget_stale_callers(now, self.config.time_to_live);
        }
        let is_waiting = self.state == State::Start && self.is_master();
        self.setup.try_plan(now, &self.config, is_waiting, self.ownship.point());
        match input {
            Input::Wake => {
                if self.timers.is_due(Timer::ArrivalCheck, now) {
                    self.check_arrival();
                    let period = self.config.arrival_period.max(Duration::from_millis(1));
                    self.timers.set(Timer::ArrivalCheck, now + period);
                }
            }
            Input::Telemetry(telemetry) => {
                self.ownship.report(now, telemetry);
                if self.config.arrival_period.is_zero() {
                    self.check_arrival();
                }
            }
            Input::Operator(Command::Exclude { member }) => self.exclude(member, self.config.me, changes),
            Input::Done(Order::LoadRoute) => self.setup.confirm_route(),
            Input::Done(Order::Hold) => self.navigation.confirm_hold(),
            Input::Operator(_) | Input::Done(_) | Input::Reached(_) | Input::Failed(_) => {}
            Input::Message { from, flight, message } => {
                return self.on_message(now, from, flight, message, changes);
            }
        }
        Ok(None)
    }

    fn on_message<'a>(
        &mut self,
        now: Instant,
        from: VehicleId,
        flight: u32,
        message: &'a Message,
        changes: &mut Changes,
    ) -> Result<Option<(usize, &'a Message)>, Refused> {
        if let Message::Hello { at } = message {
            return self.on_call(now, from, flight, *at).map(|()| None);
        }
        if let Message::Data(plan) = message {
            self.on_plan(now, from, flight, plan, changes)?;
        }
        // From here on only members of this flight count.
        if !self.assignment.is_planned() || flight != self.assignment.flight() {
            return Err(Refused::OtherFlight);
        }
        let slot = self.members.slot_of(from).ok_or(Refused::Stranger)?;
        if self.members.received(now, slot) {
            self.elect(changes);
        }
        self.on_member_message(now, slot, message, changes)?;
        Ok(Some((slot, message)))
    }

    fn on_member_message(
        &mut self,
        now: Instant,
        slot: usize,
        message: &Message,
        changes: &mut Changes,
    ) -> Result<(), Refused> {
        match message {
            Message::DataAck { hash } => self.on_plan_acknowledged(slot, *hash, changes),
            Message::ReadyToFly => self.on_ready(now, slot),
            Message::ReadyToFlyAck => {
                self.on_ready_acknowledged(slot);
                Ok(())
            }
            Message::TakeOffTogether => self.on_take_off_message(now, slot, TakeOffMessage::Together),
            Message::TakeOffNow { .. } => self.on_take_off_message(now, slot, TakeOffMessage::Climbed),
            Message::TargetReached => self.on_take_off_message(now, slot, TakeOffMessage::InSlot),
            Message::TakeOffEnd => self.on_take_off_message(now, slot, TakeOffMessage::AllInSlots),
            Message::TakeOffEndAck => self.on_take_off_message(now, slot, TakeOffMessage::Confirmed),
            Message::Alive { at } => {
                self.traffic.report_home(slot, *at);
                self.report_position(now, slot, *at);
                Ok(())
            }
            Message::Following { at, .. } => {
                self.report_position(now, slot, *at);
                Ok(())
            }
            Message::Holding { at } => {
                self.report_position(now, slot, *at);
                self.traffic.report_holding(now, slot);
                Ok(())
            }
            Message::Leaving { at, how } => {
                self.report_position(now, slot, *at);
                self.traffic.report_departure(slot, *at, *how);
                if self.members.leaves(slot) {
                    changes.notice = Some((slot, Notice::Leaves));
                    self.elect(changes);
                }
                Ok(())
            }
            Message::Exclude { who } => {
                if slot != self.members.leader() && self.assignment.id_of(slot) != Some(self.config.master) {
                    return Err(Refused::Stranger);
                }
                let by = self.assignment.plan().slots[slot];
                self.exclude(*who, by, changes);
                Ok(())
            }
            Message::LandHere { at, leader } => {
                // Of another leader it is no order.
                if usize::from(*leader) == self.members.leader() && !self.is_leader() {
                    self.landing.end_here();
                }
                self.traffic.report_departure(slot, *at, Ending::Landing);
                self.members.leaves(slot);
                self.elect(changes);
                Ok(())
            }
            Message::Land { at } => self.on_landing_site(now, slot, slot, *at),
            Message::LandAround { at, leader } => self.on_landing_site(now, slot, usize::from(*leader), *at),
            // Those of the flight are the host's; a plan and a call came before.
            Message::Hello { .. }
            | Message::Data(_)
            | Message::ReachedWaypointAck { .. }
            | Message::MoveToWaypoint { .. }
            | Message::Beacon(_)
            | Message::Coordinates(_)
            | Message::Gather { .. }
            | Message::Release { .. } => Ok(()),
        }
    }

    /// A member reports its position.
    pub(crate) fn report_position(&mut self, now: Instant, slot: usize, position: Point) {
        self.traffic.report(now, slot, position, self.assignment.geometry());
    }

    /// A member reports how far along the route it is.
    pub(crate) fn report_progress(&mut self, slot: usize, reached: Option<u16>, departed_for: Option<u16>) {
        self.traffic.report_progress(slot, reached, departed_for);
    }

    /// No longer waits for a member, as the operator of `by` has it. Of this aircraft, ends its flight.
    fn exclude(&mut self, id: VehicleId, by: VehicleId, changes: &mut Changes) {
        let Some(slot) = self.members.slot_of(id) else { return };
        if self.members.exclude(slot, by) {
            changes.notice = Some((slot, Notice::Excluded));
            self.elect(changes);
        }
    }

    /// Checks what time alone changes about the members. Each time that messages are due, not at each input: a large
    /// swarm receives many.
    fn check_members(&mut self, now: Instant, changes: &mut Changes) {
        if !self.watches() {
            return;
        }
        if let Some(slot) = self.members.check_silence(now, self.config.time_to_live) {
            changes.notice = Some((slot, Notice::Lost));
        }
        self.watch_take_off(now);
        self.watch_landing(now);
        self.elect(changes);
    }

    /// Lets the first of the order of succession lead. A piloted master has no successor.
    fn elect(&mut self, changes: &mut Changes) {
        let is_over =
            self.is_landing() || matches!(self.state, State::Aborted(_)) || self.landing.ends_here();
        if self.config.piloted_master || !self.assignment.is_planned() || is_over {
            return;
        }
        let silence_counts = self.watches();
        let order = &self.assignment.plan().take_off_order;
        if self.members.elect(self.assignment.center(), order, silence_counts) {
            changes.is_leader_new = true;
            self.forget_landing_site();
        }
    }

    fn log_changes(&self, changes: &Changes, out: &mut Actions) {
        if let Some(line) = self.member_line(changes) {
            push(out, Action::Log(Severity::Warning, line));
        }
        if let Some(error) = changes.refused_plan {
            push(out, Action::Log(Severity::Error, text!("the master's plan is refused: {error}")));
        }
    }

    /// What the log says about the members; none where nothing changed.
    fn member_line(&self, changes: &Changes) -> Option<Text> {
        if changes.notice.is_none() && !changes.is_leader_new {
            return None;
        }
        let leader = self.assignment.id_of(self.members.leader())?;
        let leads = match self.is_leader() {
            true => text!("this aircraft leads"),
            false => text!("{leader} leads"),
        };
        let Some((slot, notice)) = changes.notice else { return Some(leads) };
        let member = self.assignment.id_of(slot)?;
        Some(text!("{member} {}; {leads}", notice.text()))
    }

    /// The transition table: it reads and never writes.
    fn next<H: Host<Flight = F>>(&self, host: &H, now: Instant, trigger: Trigger) -> Option<Transition<F>> {
        self.stop(now, trigger)
            .or_else(|| self.next_of_swarm(now, trigger))
            .or_else(|| host.next(self, now, trigger))
            .filter(|transition| transition.to != self.state)
    }

    /// What the operator's stop, or a failure, makes of any state.
    fn stop(&self, now: Instant, trigger: Trigger) -> Option<Transition<F>> {
        use State::{Aborted, Finished, Landing, MovingToLand};
        let is_armed = self.ownship.is_armed();
        if matches!(self.state, Finished | Aborted(Abort::Ground)) && !is_armed {
            return Some(Transition::to(self.state));
        }
        if let Trigger::Command(command) = trigger {
            let is_returning =
                matches!(self.state, Aborted(Abort::Return | Abort::ReturnHeld { .. })) && is_armed;
            let ending = match command {
                Command::Setup
                | Command::Start
                | Command::Exclude { .. }
                | Command::RecoverControl
                | Command::Engage => None,
                Command::Return if is_returning => None,
                Command::Hold | Command::Return | Command::Land if !is_armed => Some(Abort::Ground),
                Command::Hold => Some(Abort::Hold),
                Command::Return => Some(self.clearance().begin_return(now)),
                Command::Land => Some(Abort::Land),
            };
            if let Some(ending) = ending {
                return Some(Transition::because(Aborted(ending), Reason::Operator));
            }
        }
        if self.landing.ends_here() && self.watches() && is_armed {
            return Some(Transition::because(Aborted(Abort::Land), Reason::EndedByLeader));
        }
        let is_excluded =
            self.members.is_excluded() && !matches!(self.state, MovingToLand | Landing | Finished);
        let has_failed = trigger == Trigger::OrderFailed;
        if !(is_excluded || has_failed) || matches!(self.state, Aborted(_)) {
            return None;
        }
        // It cannot do what it must: it holds, reports that, and lands if no operator decides.
        let reason = if is_excluded { Reason::Excluded } else { Reason::OrderFailed };
        Some(match self.state {
            _ if !is_armed => Transition::because(Aborted(Abort::Ground), reason),
            MovingToLand | Landing => Transition::because(Aborted(Abort::Land), reason),
            State::Start
            | State::Setup
            | State::ReadyToFly
            | State::TakingOff(_)
            | State::SetupFinished
            | State::Flying(_)
            | State::Finished
            | State::Aborted(_) => self.failure(now, reason),
        })
    }

    /// What follows for the swarm. While [`State::Flying`] nothing does.
    fn next_of_swarm(&self, now: Instant, trigger: Trigger) -> Option<Transition<F>> {
        use State::{
            Aborted, Finished, Flying, Landing, MovingToLand, ReadyToFly, Setup, SetupFinished, Start,
            TakingOff,
        };
        let is_overdue = || self.timers.is_due(Timer::Leg, now);
        match self.state {
            Start => {
                let is_asked = trigger == Trigger::Command(Command::Setup);
                is_asked.then_some(Transition::to(Setup))
            }
            Setup | ReadyToFly => self.next_in_setup(now),
            TakingOff(_) | SetupFinished if self.stalled_at().is_some_and(|at| now >= at) => {
                Some(Transition::because(Aborted(Abort::Land), Reason::MembersMissing))
            }
            TakingOff(phase) => self.next_in_take_off(now, phase),
            MovingToLand if self.navigation.has_arrived() => Some(Transition::to(Landing)),
            MovingToLand if is_overdue() => Some(self.failure(now, Reason::TargetNotReached)),
            Landing if !self.ownship.is_armed() => Some(Transition::to(Finished)),
            Aborted(abort) if self.ownship.is_armed() => self.next_in_abort(now, abort),
            Aborted(_) => Some(Transition::to(Aborted(Abort::Ground))),
            SetupFinished | Flying(_) | MovingToLand | Landing | Finished => None,
        }
    }

    /// What follows in the air after the flight was stopped.
    fn next_in_abort(&self, now: Instant, abort: Abort) -> Option<Transition<F>> {
        let aborted = |abort| Transition::to(State::Aborted(abort));
        // Others report their positions as often as messages are due here.
        let is_due = || self.timers.is_due(Timer::Broadcast, now);
        match abort {
            Abort::Return if is_due() => self.clearance().continue_return(now).map(aborted),
            Abort::ReturnHeld { since } if is_due() => {
                let next = self.clearance().resume_return(now, since)?;
                let reason = (next == Abort::Land).then_some(Reason::ReturnBlocked);
                Some(Transition { to: State::Aborted(next), reason })
            }
            Abort::LandAside { .. } => {
                let is_over = self.navigation.has_arrived() || self.timers.is_due(Timer::Leg, now);
                is_over.then_some(aborted(Abort::Land))
            }
            Abort::Failure { land_at } if now >= land_at => {
                Some(Transition::because(State::Aborted(Abort::Land), Reason::Undecided))
            }
            Abort::Hold
            | Abort::Return
            | Abort::ReturnHeld { .. }
            | Abort::Land
            | Abort::Failure { .. }
            | Abort::Ground => None,
        }
    }

    /// Holding for the operator to decide, then landing.
    pub(crate) fn failure(&self, now: Instant, reason: Reason) -> Transition<F> {
        let land_at = now + self.config.hold_before_landing;
        Transition::because(State::Aborted(Abort::Failure { land_at }), reason)
    }

    /// Takes a state, does what it asks for, and logs it.
    fn change<H: Host<Flight = F>>(
        &mut self,
        host: &mut H,
        now: Instant,
        transition: Transition<F>,
        out: &mut Actions,
    ) -> Option<Urgency> {
        let old = self.state;
        let Transition { to, reason } = self.land_clear(transition);
        self.state = to;
        self.setup.begin_state();
        self.take_off.begin_state(now);
        self.navigation = Navigation::default();
        self.timers.stop(Timer::Yield);
        self.enter(host, now, old, reason, out);
        let urgency = host.enter(self, now, old, out);
        let (state, detail) = host.describe(self);
        let why = reason.map_or("", Reason::text);
        push(out, Action::Log(self.severity(), text!("{state}: {detail}{why}")));
        urgency
    }

    /// An aircraft does not land on another that stands or lands below: whatever makes it land, it flies aside first.
    fn land_clear(&self, transition: Transition<F>) -> Transition<F> {
        let flies_aside = matches!(self.state, State::Aborted(Abort::LandAside { .. }));
        let lands = transition.to == State::Aborted(Abort::Land);
        if !lands || flies_aside || !self.ownship.is_armed() {
            return transition;
        }
        match self.clearance().site_aside() {
            Some(site) => Transition { to: State::Aborted(Abort::LandAside { site }), ..transition },
            None => transition,
        }
    }

    fn enter<H: Host<Flight = F>>(
        &mut self,
        host: &H,
        now: Instant,
        old: State<F>,
        reason: Option<Reason>,
        out: &mut Actions,
    ) {
        match self.state {
            State::Start | State::Finished | State::SetupFinished | State::Flying(_) => {}
            State::Setup if self.is_master() => self.make_plan(now, out),
            State::Setup => {}
            State::ReadyToFly => self.timers.set(Timer::Silence, now + self.config.silence),
            State::TakingOff(phase) => self.begin_take_off(now, phase, out),
            State::MovingToLand => {
                let site = host.landing_site(self);
                self.fly_to(now, site, out);
            }
            State::Landing => {
                self.begin_landing(reason);
                push(out, Action::Order(Order::Land));
            }
            State::Aborted(Abort::Land) => {
                if reason == Some(Reason::FlightBlocked) {
                    self.landing.end_here();
                }
                push(out, Action::Order(Order::Land));
            }
            State::Aborted(Abort::LandAside { site }) => self.fly_to(now, Some(site), out),
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

    fn severity(&self) -> Severity {
        match self.state {
            State::Aborted(Abort::Failure { .. }) => Severity::Error,
            State::Aborted(_) => Severity::Warning,
            State::Landing if self.landing.is_in_place() => Severity::Warning,
            State::Start
            | State::Setup
            | State::ReadyToFly
            | State::TakingOff(_)
            | State::SetupFinished
            | State::Flying(_)
            | State::MovingToLand
            | State::Landing
            | State::Finished => Severity::Info,
        }
    }

    /// When it wants waking, and why.
    pub(crate) fn poll_timeout<H: Host<Flight = F>>(&self, host: &H) -> (Instant, &'static str) {
        let timer = self.timers.next(|timer| self.runs(timer) || host.runs(self, timer));
        let deadline = match self.state {
            State::Aborted(Abort::Failure { land_at }) => Some((land_at, "nobody decided")),
            State::TakingOff(_) | State::SetupFinished => {
                self.stalled_at().map(|at| (at, "others are missing"))
            }
            State::Start
            | State::Setup
            | State::ReadyToFly
            | State::Flying(_)
            | State::MovingToLand
            | State::Landing
            | State::Finished
            | State::Aborted(_) => None,
        };
        let of_host = host.deadline(self);
        let first = [timer, deadline, of_host].into_iter().flatten().min_by_key(|(at, _)| *at);
        first.unwrap_or((Instant::NEVER, "nothing"))
    }

    /// In which states the swarm's timers run.
    fn runs(&self, timer: Timer) -> bool {
        use TakeOffPhase::{Climbing, Confirming, MovingToSlot, Waiting};
        let is_climbing = self.state == State::TakingOff(Climbing);
        match timer {
            Timer::Broadcast => true,
            Timer::ArrivalCheck => {
                !self.config.arrival_period.is_zero() && (self.navigation.target().is_some() || is_climbing)
            }
            Timer::Leg => matches!(
                self.state,
                State::TakingOff(Climbing | MovingToSlot)
                    | State::MovingToLand
                    | State::Aborted(Abort::LandAside { .. })
            ),
            Timer::Silence => {
                self.state == State::ReadyToFly && !self.is_master()
                    || self.state == State::TakingOff(Confirming) && !self.is_leader()
            }
            Timer::Blocked => self.state == State::TakingOff(Waiting),
            Timer::Yield
            | Timer::LandingPath
            | Timer::LandingOrder
            | Timer::Coordinates
            | Timer::LeaderSilent => false,
        }
    }
}

/// What the hosts and the parts ask.
impl<F: Copy + PartialEq> Swarm<F> {
    pub(crate) fn state(&self) -> State<F> {
        self.state
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn ownship(&self) -> &Ownship {
        &self.ownship
    }

    pub(crate) fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    pub(crate) fn members(&self) -> &Membership {
        &self.members
    }

    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    pub(crate) fn take_off(&self) -> &TakeOff {
        &self.take_off
    }

    pub(crate) fn landing(&self) -> &Landing {
        &self.landing
    }

    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// What the master plans for.
    pub(crate) fn task_mut(&mut self) -> &mut Task {
        self.setup.task_mut()
    }

    pub(crate) fn timers(&self) -> &TimerTable {
        &self.timers
    }

    /// The deadlines of the host stand in the same table.
    pub(crate) fn timers_mut(&mut self) -> &mut TimerTable {
        &mut self.timers
    }

    /// An instant within a period from now, drawn from the seed.
    pub(crate) fn draw_phase(&mut self, now: Instant, period: Duration) -> Instant {
        now + random_phase(&mut self.rng, period)
    }

    pub(crate) fn clearance(&self) -> Clearance<'_> {
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

    /// Whether this aircraft plans.
    pub(crate) fn is_master(&self) -> bool {
        self.config.me == self.config.master
    }

    /// Whether this aircraft leads the flight.
    pub(crate) fn is_leader(&self) -> bool {
        self.members.is_leader()
    }

    /// Whether the silence of others counts in this state: from the take-off to the end of the flight. The members that
    /// follow a piloted leader broadcast nothing after the take-off, and are not waited for.
    pub(crate) fn watches(&self) -> bool {
        match self.state {
            State::TakingOff(_) => true,
            State::SetupFinished | State::Flying(_) => !self.config.piloted_master,
            State::Start
            | State::Setup
            | State::ReadyToFly
            | State::MovingToLand
            | State::Landing
            | State::Finished
            | State::Aborted(_) => false,
        }
    }

    /// The members that are waited for.
    pub(crate) fn awaited(&self) -> SlotSet {
        self.members.awaited(self.watches())
    }

    /// Whether all members that are waited for are in a set.
    pub(crate) fn are_all(&self, slots: SlotSet) -> bool {
        slots.contains_all(self.awaited())
    }

    /// How many members that are waited for are not in a set.
    pub(crate) fn missing(&self, slots: SlotSet) -> u32 {
        (self.awaited() - slots).len()
    }

    /// The present target.
    pub(crate) fn target(&self) -> Option<Point> {
        self.navigation.target()
    }

    /// Whether the target is reached.
    pub(crate) fn has_arrived(&self) -> bool {
        self.navigation.has_arrived()
    }

    /// Where this aircraft is by now.
    pub(crate) fn position_at(&self, now: Instant) -> Option<Point> {
        self.ownship.point_at(now, self.assignment.geometry())
    }
}

fn random_phase(rng: &mut Pcg64Mcg, period: Duration) -> Duration {
    Duration::from_micros(rng.next_u64() % (period.as_micros() as u64).max(1))
}
