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
pub mod budget;
pub(crate) mod clearance;
mod config;
pub mod distribution;
mod geometry;
mod host;
mod landing;
mod make_room;
mod membership;
mod messages;
mod navigation;
mod ownship;
#[cfg(test)]
pub(crate) mod passing;
pub mod path;
pub mod plan;
pub(crate) mod rejoin;
pub(crate) mod setup;
pub mod shape;
pub(crate) mod slot_set;
mod survey;
#[cfg(test)]
pub(crate) mod table;
mod take_off;
#[cfg(test)]
mod tests;
pub(crate) mod timer;
mod transition;
mod trial;
pub(crate) mod view;

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{Message, Point, Refused};

use crate::{Action, Actions, Command, EndFlight, Input, Order, Severity, push, text};
use assignment::Assignment;
pub(crate) use broadcast::Urgency;
use budget::Measured;
use clearance::{Clearance, Traffic};
pub use config::{Config, Manner};
pub(crate) use host::{Host, MemberChange};
use landing::Landing;
use make_room::Aside;
use membership::Membership;
use messages::{Changes, Notice, Received};
use navigation::Navigation;
use ownship::Ownship;
use plan::Task;
pub use rejoin::{FlightRecord, LISTENS};
use setup::Setup;
use slot_set::SlotSet;
use survey::Survey;
use take_off::TakeOff;
use timer::{Timer, TimerTable};
pub use transition::{Abort, State, TakeOffPhase};
pub(crate) use transition::{Reason, Transition, Trigger};

/// One aircraft's part in a swarm; `F` are the host's states in flight.
#[cfg_attr(test, derive(Clone))]
pub struct Swarm<F> {
    config: Config,
    survey: Survey,
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
    /// While it makes room for one that lands below.
    aside: Option<Aside>,
    /// Whether the messages broadcast last are repeated with the next input.
    repeat: Urgency,
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
            survey: Survey::of(&config),
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
            aside: None,
            repeat: Urgency::Periodic,
        }
    }

    /// The one door. When it returns, `out` holds everything to do, in order.
    pub(crate) fn handle<H: Host<FlyingState = F>>(
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
        let handled = applied.and_then(|received| match received {
            Received::Message(slot, message) => host.on_message(self, now, slot, message),
            Received::Passed(command) => {
                host.on_passed(self, command);
                Ok(())
            }
            Received::Nothing => Ok(()),
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
        urgency = self.act_in_take_off(now, &input, out).or(urgency);
        urgency = host.act(self, now, &input, out).or(urgency);
        self.make_room(host, now, &input, out);
        self.check_again_above_drift(now);
        self.broadcast(host, now, input, urgency, out);
        host.broadcast(self, now, out);
        if !self.ownship.is_known(now) {
            let is_adrift =
                |action: &Action| matches!(action, Action::Broadcast { message: Message::Adrift { .. }, .. });
            out.retain(|action| !matches!(action, Action::Broadcast { .. }) || is_adrift(action));
        }
    }

    /// Whether nothing steers this aircraft within seconds: it flies without satellites, or without a position.
    pub(super) fn is_adrift(&self) -> bool {
        self.survey.is_blind() && self.ownship.is_armed() && self.assignment.is_planned()
    }

    /// Applies an input to the parts. What a member sent is handed back, for the host.
    fn apply<'a>(
        &mut self,
        now: Instant,
        input: Input<'a>,
        changes: &mut Changes,
    ) -> Result<Received<'a>, Refused> {
        if self.timers.is_due(Timer::Broadcast, now) {
            self.traffic.watch(now, self.config.silence);
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
            Input::Operator(Command::Setup) if self.state == State::Start && self.is_master() => {
                self.make_plan(now, changes);
            }
            Input::Operator(Command::Exclude { member }) => self.exclude(member, self.config.me, changes),
            Input::Done(Order::LoadRoute) => self.setup.confirm_route(),
            Input::Done(Order::Hold) => self.navigation.confirm_hold(),
            Input::BatteryLow(EndFlight::Land) => self.landing.land_for_battery(),
            Input::Operator(_)
            | Input::Done(_)
            | Input::Reached(_)
            | Input::Failed(_)
            | Input::TakenOver(_)
            | Input::BatteryLow(_) => {}
            Input::Message { from, flight, message } => {
                return self.on_message(now, from, flight, message, changes);
            }
            Input::Passed { by, from, flight, command } => {
                return self.on_passed(now, [by, from], flight, command, changes);
            }
        }
        Ok(Received::Nothing)
    }

    /// Takes a state, does what it asks for, and logs it.
    fn change<H: Host<FlyingState = F>>(
        &mut self,
        host: &mut H,
        now: Instant,
        transition: Transition<F>,
        out: &mut Actions,
    ) -> Option<Urgency> {
        let old = self.state;
        let Transition { to, reason } = self.land_clear(now, transition);
        let flew_aside = matches!(old, State::Aborted(Abort::LandAside { .. }));
        // Also above one that still drifts: the aircraft has waited for as long as it may, and climbs no second time.
        let is_cut_short = || !self.navigation.has_arrived() || self.clearance().is_drifted_over(now);
        if flew_aside && to == State::Aborted(Abort::LAND) && is_cut_short() {
            self.landing.insist();
        }
        if !matches!(to, State::Aborted(Abort::LAND | Abort::LandAside { .. } | Abort::Ground)) {
            self.landing.desist();
        }
        self.state = to;
        self.setup.begin_state();
        self.take_off.begin_state(now);
        self.navigation = Navigation::default();
        self.timers.stop(Timer::Yield);
        self.enter(host, now, old, reason, out);
        let urgency = host.enter(self, now, old, out);
        let (state, detail) = host.describe(self);
        let why = reason.map_or("", Reason::text);
        push(out, Action::Log(self.severity(reason), text!("{state}: {detail}{why}")));
        urgency
    }

    /// An aircraft does not land on another that stands or lands below: whatever makes it land, it flies aside first.
    fn land_clear(&self, now: Instant, transition: Transition<F>) -> Transition<F> {
        let flies_aside = matches!(self.state, State::Aborted(Abort::LandAside { .. }));
        // With a reason it is not where it was to land; nor may be where it has flown to, because another that landed where
        // it was may stand there by now.
        let is_checked = transition.to == State::Landing
            && (transition.reason.is_some() || self.state == State::MovingToLand);
        let lands_here = is_checked || transition.to == State::Aborted(Abort::LAND);
        if !lands_here || flies_aside || !self.ownship.is_armed() {
            return transition;
        }
        match self.land_aside(now) {
            Some(aside) => Transition { to: State::Aborted(aside), ..transition },
            None => transition,
        }
    }

    fn enter<H: Host<FlyingState = F>>(
        &mut self,
        host: &H,
        now: Instant,
        old: State<F>,
        reason: Option<Reason>,
        out: &mut Actions,
    ) {
        let was_flying_with_others = !matches!(old, State::Aborted(_) | State::MovingToLand | State::Landing);
        if reason == Some(Reason::BatteryLow) && was_flying_with_others && !self.config.piloted_master {
            self.landing.recall();
        }
        match self.state {
            State::Start | State::Setup | State::SetupFinished | State::Flying(_) | State::Finished => {}
            State::ReadyToFly => self.timers.set(Timer::Silence, now + self.config.silence),
            State::TakingOff(phase) => self.begin_take_off(now, phase, out),
            State::MovingToLand => {
                let site = host.landing_site(self);
                let here = self.ownship.point().filter(|_| self.is_leader() && site.is_none());
                self.begin_move_to_land(now, here);
                self.fly_to(now, site.or(here), out);
            }
            State::Landing => {
                self.begin_landing(reason);
                push(out, Action::Order(Order::Land));
            }
            State::Aborted(Abort::Ending(ending)) => {
                if reason == Some(Reason::FlightBlocked) && ending == EndFlight::Land {
                    self.landing.end_here();
                }
                push(out, Action::Order(ending.order()));
            }
            State::Aborted(Abort::LandAside { site, .. }) => self.fly_to(now, Some(site), out),
            State::Aborted(Abort::ReturnHeld { .. } | Abort::Failure { .. }) => {
                push(out, Action::Order(Order::Hold));
            }
            // The pilot or the failsafe flies it: nothing is ordered.
            State::Aborted(Abort::TakenOver(_)) => {}
            // Motors may have been about to start: make sure.
            State::Aborted(Abort::Ground) => {
                if matches!(old, State::TakingOff(_)) && reason != Some(Reason::MotorsStopped) {
                    push(out, Action::Order(Order::Land));
                }
            }
        }
    }

    fn severity(&self, reason: Option<Reason>) -> Severity {
        match self.state {
            State::Aborted(_) if reason == Some(Reason::MotorsStopped) => Severity::Error,
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
}

/// What the hosts and the parts ask.
impl<F: Copy + PartialEq> Swarm<F> {
    /// Takes what this aircraft measures of where it flies. Before *Setup* it counts for the plan; after that the plan stays,
    /// and the aircraft lands farther from the others where it errs by more than was planned for.
    pub(crate) fn set_measured(&mut self, now: Instant, measured: Measured) {
        let counts_otherwise = self.survey.measure(now, measured);
        self.traffic.set_air(self.survey.air());
        if counts_otherwise && self.state == State::Start {
            self.survey.apply(&mut self.config);
        }
        // Each time: what lands is forgotten where a flight is rejoined.
        self.landing.keep_apart(self.survey.landing_least_m(&self.config));
    }

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
