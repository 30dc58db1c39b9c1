//! Setup: the others call until they hold a plan; the master plans, broadcasts the plan, all acknowledge it, and all are
//! ready.

use heapless::Vec;
use rand_core::Rng;
use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{Location, Message, Point, Refused, SWARM_MAX, VehicleId};

use super::distribution::{Assembly, Distribution};
use super::plan::{self, Plan, PlanError, Task};
use super::slot_set::SlotSet;
use super::timer::Timer;
use super::trial::Trial;
use super::{Changes, Config, Notice, State, Swarm, TakeOffPhase, Transition};
use crate::{Action, Actions, Denied, Order, Text, push, text};

/// One that stands and calls does not move so far from one call to the next: it is two with one id, metres.
const JUMP_M: f64 = 30.0;

/// Where an aircraft that calls stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) at: Point,
    /// Altitude of its home above sea level, millimetre; older programs do not broadcast it.
    pub(super) home_mm: Option<i32>,
}

impl Standing {
    pub(super) fn at(at: Location) -> Self {
        let Location { latitude_e7, longitude_e7, altitude_mm } = at;
        Self { at: Point { latitude_e7, longitude_e7, height_mm: 0 }, home_mm: Some(altitude_mm) }
    }
}

/// The number that a call bears in place of a flight's, which does not exist yet: whose swarm it calls. Where several
/// swarms share a channel each master plans for those that call it.
pub(crate) fn call_number(master: VehicleId) -> u32 {
    (master.0 ^ master.0 >> 32) as u32
}

/// What is known before the flight is planned, and which members are ready for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setup {
    /// What the master plans for.
    task: Task,
    /// The aircraft that called, and from where (master).
    callers: Vec<(VehicleId, Standing), SWARM_MAX>,
    /// An id that called from two positions, and when last (master).
    duplicate: Option<(VehicleId, Instant)>,
    /// An aircraft that called besides as many as the swarm has, and when last (master).
    unexpected: Option<(VehicleId, Instant)>,
    /// The plan as it was last tried (master).
    trial: Option<Trial>,
    /// The datagrams of the plan (master).
    distribution: Distribution,
    /// What was received of a plan in several datagrams.
    assembly: Option<Assembly>,
    /// What of the master's plan this aircraft cannot fly.
    refused: Option<PlanError>,
    /// The flight controller holds the own route.
    is_loaded: bool,
    /// The master, or later the leader, reported that all members hold the plan.
    all_hold_plan: bool,
    /// Members that answered what is repeated in the present state.
    answered: SlotSet,
    /// Members that reported another plan than ours.
    other_plan: SlotSet,
}

impl Setup {
    pub(crate) fn task(&self) -> &Task {
        &self.task
    }

    pub(crate) fn task_mut(&mut self) -> &mut Task {
        &mut self.task
    }

    /// How many aircraft meet, this one included.
    pub(crate) fn count(&self) -> usize {
        self.callers.len() + 1
    }

    pub(super) fn trial(&self) -> Option<&Trial> {
        self.trial.as_ref()
    }

    /// Leaves what is known of the aircraft that meet and of their task, and nothing of a plan.
    pub(super) fn forget(&mut self) {
        let Self { task, callers, duplicate, unexpected, trial, .. } = core::mem::take(self);
        *self = Self { task, callers, duplicate, unexpected, trial, ..Self::default() };
    }

    pub(super) fn begin_state(&mut self) {
        self.answered = SlotSet::EMPTY;
    }

    pub(super) fn confirm_plan_of_all(&mut self) {
        self.all_hold_plan = true;
    }

    pub(super) fn confirm_route(&mut self) {
        self.is_loaded = true;
    }

    /// An id is no longer a duplicate, nor an aircraft unexpected, that has not called for the time to live.
    pub(super) fn forget_stale_callers(&mut self, now: Instant, time_to_live: Duration) {
        let is_fresh = |(_, at): &(VehicleId, Instant)| now.since(*at) < time_to_live;
        self.duplicate = self.duplicate.filter(is_fresh);
        self.unexpected = self.unexpected.filter(is_fresh);
    }

    /// The aircraft that meet, and where each stands, by id.
    pub(super) fn meeting(&self, me: VehicleId, here: Point) -> Vec<(VehicleId, Point), SWARM_MAX> {
        let mut aircraft = Vec::new();
        let _ = aircraft.push((me, here));
        aircraft.extend(self.callers.iter().map(|(id, standing)| (*id, standing.at)));
        aircraft.sort_unstable_by_key(|(id, _)| *id);
        aircraft
    }

    /// Tries the plan while the master waits for *Setup*.
    pub(super) fn try_plan(&mut self, now: Instant, config: &Config, is_waiting: bool, here: Option<Point>) {
        let is_complete = || self.count() >= config.aircraft && self.task.is_given();
        if !is_waiting || !is_complete() {
            self.trial = None;
            return;
        }
        let Some(here) = here else { return };
        if self.trial.as_ref().is_none_or(|trial| trial.is_due(now)) {
            let meeting = self.meeting(config.me, here);
            Trial::repeat(&mut self.trial, now, config, &meeting, &self.task);
        }
    }

    /// Whether the aircraft that call are those that the swarm has.
    pub(super) fn check_callers(&self, config: &Config) -> Result<(), Denied> {
        if let Some((id, _)) = self.duplicate {
            return Err(Denied::DuplicateId(id));
        }
        match self.unexpected {
            Some((id, _)) => Err(Denied::Unexpected { id, expected: config.aircraft }),
            None => Ok(()),
        }
    }

    /// Whether the homes of all, that of the master among them, are at heights that the budget allows: each flies at
    /// heights above its own.
    fn check_homes(&self, config: &Config, home_mm: Option<i32>) -> Result<(), PlanError> {
        let (mut lowest, mut highest) = ((config.me, home_mm), (config.me, home_mm));
        for (id, standing) in &self.callers {
            let home = (*id, Some(standing.home_mm.ok_or(PlanError::HomeUnknown(*id))?));
            if home.1 < lowest.1 {
                lowest = home;
            }
            if home.1 > highest.1 {
                highest = home;
            }
        }
        let (Some(low_mm), Some(high_mm)) = (lowest.1, highest.1) else { return Ok(()) };
        let found_m = (f64::from(high_mm) - f64::from(low_mm)) / 1e3;
        let most_m = config.surroundings.slope_m;
        if found_m > most_m {
            return Err(PlanError::Slope { low: lowest.0, high: highest.0, found_m, most_m });
        }
        Ok(())
    }

    /// Whether the master can plan, as far as it was tried.
    pub(super) fn check_plan(&self, config: &Config, home_mm: Option<i32>) -> Result<(), Denied> {
        if !self.task.is_given() {
            return Err(Denied::NoMission);
        }
        let (found, expected) = (self.count(), config.aircraft);
        if found < expected {
            return Err(Denied::Missing { found, expected });
        }
        self.check_homes(config, home_mm)?;
        Ok(self.trial.as_ref().and_then(Trial::refused).map_or(Ok(()), Err)?)
    }
}

impl<F: Copy + PartialEq> Swarm<F> {
    pub(super) fn on_call(
        &mut self,
        now: Instant,
        from: VehicleId,
        called: u32,
        standing: Standing,
    ) -> Result<(), Refused> {
        if called != call_number(self.config.master) {
            return Err(Refused::OtherFlight);
        }
        if !self.is_master() || self.state != State::Start {
            return Ok(()); // early or late, and harmless
        }
        match self.setup.callers.iter().position(|(id, _)| *id == from) {
            Some(known) => {
                // An aircraft that calls stands on the ground.
                let moved = self.clearance().path(self.setup.callers[known].1.at, standing.at);
                if (moved.to_m - moved.from_m).length() > JUMP_M {
                    self.setup.duplicate = Some((from, now));
                }
                self.setup.callers[known].1 = standing;
                Ok(())
            }
            // The swarm has as many aircraft as configured and no more.
            None if self.setup.count() >= self.config.aircraft => {
                self.setup.unexpected = Some((from, now));
                Err(Refused::UnexpectedSender)
            }
            None => self.setup.callers.push((from, standing)).map_err(|_| Refused::UnexpectedSender),
        }
    }

    #[inline(never)]
    pub(super) fn on_plan(
        &mut self,
        now: Instant,
        from: VehicleId,
        flight: u32,
        plan: &wingbeat_wire::Plan,
        changes: &mut Changes,
    ) -> Result<(), Refused> {
        if self.awaits_plan_of(from)? {
            self.setup.assembly = None;
            self.adopt(now, flight, plan.with_waypoints(plan.waypoints.len()), changes)?;
        }
        Ok(())
    }

    /// A datagram of a plan that one does not carry. Whether it is kept until the others are received.
    #[inline(never)]
    pub(super) fn on_plan_part(
        &mut self,
        now: Instant,
        from: VehicleId,
        flight: u32,
        message: &Message,
        changes: &mut Changes,
    ) -> Result<bool, Refused> {
        if !self.awaits_plan_of(from)? {
            return Ok(false);
        }
        let assembly = &mut self.setup.assembly;
        if let Message::DataFirst(part) = message {
            Assembly::add_first(assembly, flight, part)?;
        }
        if let Message::DataWaypoints(part) = message {
            Assembly::add_waypoints(assembly, flight, part)?;
        }
        let Some(plan) = Assembly::take(assembly)? else { return Ok(true) };
        self.adopt(now, flight, plan, changes)?;
        Ok(false)
    }

    /// Whether this aircraft waits for a plan, and its sender is the one that plans.
    fn awaits_plan_of(&self, sender: VehicleId) -> Result<bool, Refused> {
        if sender != self.config.master || self.is_master() {
            return Err(Refused::UnexpectedSender);
        }
        Ok(self.state == State::Setup && !self.assignment.is_planned())
    }

    /// A member acknowledges the plan.
    pub(super) fn on_plan_acknowledged(
        &mut self,
        slot: usize,
        hash: u64,
        changes: &mut Changes,
    ) -> Result<(), Refused> {
        if Some(hash) != self.assignment.plan_hash() {
            if self.setup.other_plan.insert(slot) {
                changes.notice = Some((slot, Notice::OtherPlan));
            }
            return Err(Refused::Contradiction);
        }
        if self.state == State::Setup {
            self.setup.answered.insert(slot);
        }
        Ok(())
    }

    /// The master reports that all hold the plan.
    pub(super) fn on_ready(&mut self, now: Instant, slot: usize) -> Result<(), Refused> {
        if self.assignment.id_of(slot) != Some(self.config.master) {
            return Err(Refused::UnexpectedSender);
        }
        self.setup.confirm_plan_of_all();
        self.timers.set(Timer::Silence, now + self.config.silence);
        Ok(())
    }

    /// A member knows that all hold the plan.
    pub(super) fn on_ready_acknowledged(&mut self, slot: usize) {
        if self.state == State::ReadyToFly {
            self.setup.answered.insert(slot);
        }
    }

    /// Takes the master's plan as ours, if this aircraft can fly it.
    pub(super) fn adopt(
        &mut self,
        now: Instant,
        flight: u32,
        plan: Plan,
        changes: &mut Changes,
    ) -> Result<(), Refused> {
        let slot = plan.slots.iter().position(|&s| s == self.config.me).ok_or(Refused::UnexpectedSender)?;
        let master =
            plan.slots.iter().position(|&s| s == self.config.master).ok_or(Refused::Contradiction)?;
        let takes_off = plan.take_off_order.iter().any(|&s| usize::from(s) == master);
        let left_out = plan.slots.len() - plan.take_off_order.len();
        if flight == 0
            || takes_off == self.config.piloted_master
            || left_out != usize::from(self.config.piloted_master)
        {
            return Err(Refused::Contradiction);
        }
        let here = self.ownship.point();
        let route = plan::route_from(&self.config, &plan, slot, here).map_err(|error| {
            if self.setup.refused != Some(error) {
                (self.setup.refused, changes.refused_plan) = (Some(error), Some(error));
            }
            Refused::Contradiction
        })?;
        self.assign(now, flight, plan, slot, route);
        changes.has_adopted = true;
        Ok(())
    }

    fn assign(&mut self, now: Instant, flight: u32, plan: Plan, slot: usize, route: plan::Route) {
        self.assignment.adopt(&self.config, flight, plan, slot, route);
        let slots = &self.assignment.plan().slots;
        self.members.assemble(now, slots, slot, self.assignment.center());
        self.traffic.begin(now, slots.len());
    }

    /// Loads the route into the flight controller. A plan that only assembles has none.
    pub(super) fn load_route(&mut self, out: &mut Actions) {
        if self.assignment.route().len() < 2 {
            self.setup.is_loaded = true;
        } else {
            push(out, Action::Order(Order::LoadRoute));
        }
    }

    /// The master plans the flight, and adopts its plan.
    pub(super) fn make_plan(&mut self, now: Instant, changes: &mut Changes) {
        let here = self.ownship.point().unwrap_or_default();
        let aircraft = self.setup.meeting(self.config.me, here);
        let homes = self.setup.check_homes(&self.config, self.ownship.home_altitude_mm());
        let planned = homes.and_then(|()| plan::make(&self.config, &aircraft, &self.setup.task));
        let planned = planned.and_then(|plan| {
            let slot = plan.slots.iter().position(|&s| s == self.config.me).ok_or(PlanError::NotMember)?;
            let route = plan::route_from(&self.config, &plan, slot, Some(here))?;
            Ok((Distribution::of(&plan)?, route, slot, plan))
        });
        match planned {
            Ok((distribution, route, slot, plan)) => {
                self.setup.distribution = distribution;
                let flight = (self.rng.next_u64() as u32).max(1);
                self.assign(now, flight, plan, slot, route);
                changes.has_adopted = true;
            }
            Err(error) => changes.refused_setup = Some(error),
        }
    }

    pub(super) fn next_in_setup(&self, now: Instant) -> Option<Transition<F>> {
        let has_all_answers = || self.are_all(self.setup.answered);
        let next = match self.state {
            State::Setup if !self.assignment.is_planned() || !self.setup.is_loaded => return None,
            State::Setup if self.is_master() => has_all_answers().then_some(State::ReadyToFly),
            State::Setup => self.setup.all_hold_plan.then_some(State::ReadyToFly),
            State::ReadyToFly if self.is_master() => {
                has_all_answers().then_some(State::TakingOff(TakeOffPhase::Waiting))
            }
            State::ReadyToFly => {
                let is_silent = self.timers.is_due(Timer::Silence, now);
                is_silent.then_some(State::TakingOff(TakeOffPhase::Waiting))
            }
            State::Start
            | State::TakingOff(_)
            | State::SetupFinished
            | State::Flying(_)
            | State::MovingToLand
            | State::Landing
            | State::Finished
            | State::Aborted(_) => None,
        };
        next.map(Transition::to)
    }

    /// What is repeated before the take-off.
    pub(super) fn setup_message(&mut self) -> Option<Message> {
        let is_master = self.is_master();
        match self.state {
            State::Start | State::Setup if !is_master && !self.assignment.is_planned() => {
                let (at, altitude_mm) = (self.ownship.point()?, self.ownship.home_altitude_mm()?);
                let Point { latitude_e7, longitude_e7, .. } = at;
                Some(Message::Stands { at: Location { latitude_e7, longitude_e7, altitude_mm } })
            }
            State::Setup if is_master && self.assignment.is_planned() => {
                Some(self.setup.distribution.next_message(self.assignment.plan()))
            }
            State::Setup => self.plan_acknowledgement(),
            State::ReadyToFly if is_master => Some(Message::ReadyToFly),
            State::ReadyToFly => Some(Message::ReadyToFlyAck),
            State::Start
            | State::TakingOff(_)
            | State::SetupFinished
            | State::Flying(_)
            | State::MovingToLand
            | State::Landing
            | State::Finished
            | State::Aborted(_) => None,
        }
    }

    /// That this aircraft holds the plan, once its flight controller holds the route.
    pub(super) fn plan_acknowledgement(&self) -> Option<Message> {
        let hash = self.assignment.plan_hash().filter(|_| self.setup.is_loaded)?;
        Some(Message::DataAck { hash })
    }

    pub(super) fn setup_detail(&self) -> Text {
        let is_master = self.is_master();
        if self.state == State::Start {
            return match self.setup.task.is_given() {
                _ if !is_master => text!("calling the master, {}", self.config.master),
                false => text!("waiting for a mission"),
                true => text!("received from {} of {} aircraft", self.setup.count(), self.config.aircraft),
            };
        }
        if self.state == State::ReadyToFly {
            return match is_master {
                true => text!("waiting for {} to be ready", self.missing(self.setup.answered)),
                false => text!("ready"),
            };
        }
        match (self.assignment.is_planned(), self.setup.refused) {
            (false, Some(error)) => text!("the master's plan is refused: {error}"),
            (false, None) => match self.setup.assembly.as_ref().map(Assembly::progress) {
                Some((found, of)) => text!("received {found} of {of} waypoints of the master's plan"),
                None => text!("waiting for the master's plan"),
            },
            (true, _) if !self.setup.is_loaded => text!("loading the route into the flight controller"),
            (true, _) if is_master => {
                text!("waiting for {} to hold the plan", self.missing(self.setup.answered))
            }
            (true, _) => text!("waiting until all hold the plan"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::tests::{MASTER, Member, OTHER, THIRD, message_of, messages_of};
    use super::*;
    use crate::{Command, Input};

    #[test]
    fn muscop_07_a_plan_is_adopted_once_and_from_the_master_only() {
        let mut member = Member::new(OTHER);
        let plan = message_of(&Member::plan());
        assert_eq!(member.receive_in(7, THIRD, plan.clone()), Some(Refused::UnexpectedSender));
        // Before the operator's Setup it is not for this aircraft yet.
        assert_eq!(member.receive_in(7, MASTER, plan.clone()), Some(Refused::OtherFlight));
        member.handle(Input::Operator(Command::Setup));
        assert_eq!(member.receive_in(0, MASTER, plan.clone()), Some(Refused::Contradiction));
        assert_eq!(member.receive_in(7, MASTER, plan.clone()), None);
        assert_eq!((member.swarm.assignment().flight(), member.orders()), (7, [Order::LoadRoute].into()));
        assert_eq!(member.receive_in(8, MASTER, plan), Some(Refused::OtherFlight));
        assert_eq!(member.swarm.plan_acknowledgement(), None, "the flight controller has no route yet");
        member.handle(Input::Done(Order::LoadRoute));
        assert!(member.swarm.plan_acknowledgement().is_some());
    }

    #[test]
    fn muscop_31_a_member_acknowledges_a_plan_in_several_datagrams_once_it_is_whole() {
        let plan = Member::plan_of(300);
        let [first, second, third, fourth] = messages_of(&plan).try_into().unwrap();
        let mut member = Member::new(OTHER);
        // Before the operator's Setup it is not for this aircraft yet, and nothing is kept.
        assert_eq!(member.receive_in(7, MASTER, first.clone()), Some(Refused::OtherFlight));
        assert_eq!(member.receive_in(7, MASTER, second.clone()), Some(Refused::OtherFlight));
        member.handle(Input::Operator(Command::Setup));
        assert_eq!(member.swarm.setup_detail(), "waiting for the master's plan");
        for part in [&first, &second] {
            assert_eq!(member.receive_in(7, THIRD, part.clone()), Some(Refused::UnexpectedSender));
        }
        for (part, detail) in [
            (&third, "received 90 of 300 waypoints of the master's plan"),
            (&third, "received 90 of 300 waypoints of the master's plan"),
            (&first, "received 148 of 300 waypoints of the master's plan"),
            (&fourth, "received 210 of 300 waypoints of the master's plan"),
        ] {
            assert_eq!(member.receive_in(7, MASTER, part.clone()), None);
            assert_eq!(member.swarm.setup_detail(), detail);
        }
        assert!(!member.swarm.assignment().is_planned() && member.orders().is_empty());
        assert_eq!(member.receive_in(7, MASTER, second.clone()), None);
        assert_eq!((member.swarm.assignment().plan(), member.orders()), (&plan, [Order::LoadRoute].into()));
        assert_eq!(member.swarm.assignment().route().len(), 300);
        assert_eq!(member.swarm.plan_acknowledgement(), None, "the flight controller has no route yet");
        member.handle(Input::Done(Order::LoadRoute));
        let acknowledgement = Message::DataAck { hash: plan::hash(&plan) };
        assert_eq!(member.swarm.plan_acknowledgement(), Some(acknowledgement));
        // The master repeats it for others.
        assert_eq!(member.receive_in(7, MASTER, second.clone()), None);
        assert_eq!(member.receive_in(8, MASTER, second), Some(Refused::OtherFlight));
    }

    #[test]
    fn muscop_31_a_plan_in_several_datagrams_that_cannot_be_flown_here_is_refused_and_logged_once() {
        let mut plan = Member::plan_of(148);
        plan.waypoints[147].height_mm = 500_000;
        let mut member = Member::new(OTHER);
        member.handle(Input::Operator(Command::Setup));
        for message in messages_of(&plan) {
            let is_last = matches!(message, Message::DataWaypoints(_));
            let refused = is_last.then_some(Refused::Contradiction);
            assert_eq!(member.receive_in(7, MASTER, message), refused);
        }
        assert_eq!(member.logged("the master's plan is refused"), 1);
        assert!(member.swarm.setup_detail().contains("waypoint 147: height 500 m"));
    }

    #[test]
    fn muscop_31_the_master_broadcasts_one_part_each_period_until_all_have_acknowledged() {
        let mut master = Member::new(MASTER);
        for id in [OTHER, THIRD] {
            let hello = Member::call(id);
            assert_eq!(master.receive_in(call_number(MASTER), id, hello), None);
        }
        *master.swarm.task_mut() = Member::task_of(300);
        master.handle(Input::Operator(Command::Setup));
        let plan = master.swarm.assignment().plan().clone();
        assert_eq!(plan, Member::plan_of(300));
        master.take_broadcast();
        let period = master.config.send_period;
        let next_period = |master: &mut Member| {
            master.now = master.now + period;
            master.handle(Input::Wake);
            master.take_broadcast()
        };
        let all = messages_of(&plan);
        for turn in 0..9 {
            assert_eq!(next_period(&mut master), [all[turn % 4].clone()], "{turn}");
        }
        master.handle(Input::Done(Order::LoadRoute));
        let acknowledgement = Message::DataAck { hash: plan::hash(&plan) };
        assert_eq!(master.receive(OTHER, acknowledgement.clone()), None);
        master.take_broadcast();
        assert_eq!(next_period(&mut master), [all[1].clone()]);
        assert_eq!(master.receive(THIRD, acknowledgement), None);
        master.take_broadcast();
        assert_eq!(next_period(&mut master), [Message::ReadyToFly]);
    }

    #[test]
    fn muscop_28_a_master_that_cannot_plan_stays_where_it_is_and_logs_why() {
        let mut master = Member::new(MASTER);
        master.handle(Input::Operator(Command::Setup));
        assert_eq!((master.swarm.state(), master.logged("setup refused: ")), (State::Start, 1));
        assert_eq!((master.swarm.assignment().is_planned(), master.orders()), (false, [].into()));
        // Once it can, it loads its route.
        for id in [OTHER, THIRD] {
            assert_eq!(master.receive_in(call_number(MASTER), id, Member::call(id)), None);
        }
        *master.swarm.task_mut() = Member::task_of(2);
        master.handle(Input::Operator(Command::Setup));
        assert_eq!((master.swarm.state(), master.orders()), (State::Setup, [Order::LoadRoute].into()));
    }

    #[test]
    fn muscop_18_a_member_that_holds_another_plan_is_refused_and_logged_once() {
        let mut member = Member::planned();
        let other = Message::DataAck { hash: 1 };
        assert_eq!(member.receive(THIRD, other.clone()), Some(Refused::Contradiction));
        assert_eq!(member.receive(THIRD, other), Some(Refused::Contradiction));
        assert_eq!(member.logged("holds another plan"), 1);
        let hash = plan::hash(member.swarm.assignment().plan());
        assert_eq!(member.receive(THIRD, Message::DataAck { hash }), None);
    }

    #[test]
    fn muscop_18_calls_of_duplicates_and_of_unexpected_aircraft_are_noticed_and_forgotten() {
        let mut master = Member::new(MASTER);
        let call = call_number(MASTER);
        let place = |e7: i32| Point { latitude_e7: 394_825_940 + e7, longitude_e7: -3_462_650, height_mm: 0 };
        let hello = |e7| Member::call_from(place(e7), 0);
        assert_eq!(master.receive_in(call ^ 1, OTHER, hello(0)), Some(Refused::OtherFlight));
        for id in [OTHER, THIRD] {
            assert_eq!(master.receive_in(call, id, hello(500)), None);
        }
        assert_eq!(
            (master.swarm.setup().count(), master.swarm.setup().check_callers(&master.config)),
            (3, Ok(()))
        );
        // 30 m are 2,700e-7 degree.
        assert_eq!(master.receive_in(call, OTHER, hello(4_000)), None);
        let refused = master.swarm.setup().check_callers(&master.config);
        assert_eq!(refused, Err(Denied::DuplicateId(OTHER)));
        let fourth = VehicleId(99);
        assert_eq!(master.receive_in(call, fourth, hello(900)), Some(Refused::UnexpectedSender));
        master.now = master.now + master.config.time_to_live;
        master.handle(Input::Wake);
        assert_eq!(master.swarm.setup().check_callers(&master.config), Ok(()));
    }

    #[test]
    fn muscop_35_homes_that_differ_too_much_in_height_are_refused_with_both_and_the_metres() {
        let mut master = Member::new(MASTER);
        *master.swarm.task_mut() = Member::task_of(2);
        let call = |master: &mut Member, id, altitude_mm| {
            let message = Member::call_from(Member::stand(id), altitude_mm);
            assert_eq!(master.receive_in(call_number(MASTER), id, message), None);
            master.swarm.setup().check_plan(&master.config, Some(50_000)).map_err(|why| std::format!("{why}"))
        };
        let _ = call(&mut master, OTHER, 49_000);
        assert_eq!(call(&mut master, THIRD, 50_400), Ok(()));
        let refused = call(&mut master, THIRD, 51_600).unwrap_err();
        let words = "homes of 000000000000000b and 000000000000000c differ by 2.6 m in height, expected at most 1.5 m (slope_m)";
        assert_eq!(refused, words);
        master.config.surroundings.slope_m = 3.0;
        assert_eq!(call(&mut master, THIRD, 51_600), Ok(()));
        // An older program says nothing of its home.
        let hello = Message::Hello { at: Member::stand(THIRD) };
        assert_eq!(master.receive_in(call_number(MASTER), THIRD, hello), None);
        let refused = master.swarm.setup().check_plan(&master.config, Some(50_000)).unwrap_err();
        assert_eq!(refused, Denied::Plan(PlanError::HomeUnknown(THIRD)));
    }
}
