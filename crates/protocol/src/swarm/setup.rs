//! Setup: the master spreads one plan, everybody proves to hold it, everybody is ready.

use wingbeat_geo::Instant;
use wingbeat_wire::{Message, Plan, Point, Refused, VehicleId};

use super::chart::Chart;
use super::{State, Swarm, TakeOff, plan};
use crate::{Action, Actions, Severity, Text, push, text};
use rand_core::Rng;

impl<F: Copy + PartialEq> Swarm<F> {
    pub(super) fn hear_plan(
        &mut self,
        now: Instant,
        from: VehicleId,
        flight: u32,
        plan: &Plan,
    ) -> Result<(), Refused> {
        if from != self.config.master || self.is_master() {
            return Err(Refused::Stranger);
        }
        if self.state == State::Setup && !self.planned() {
            self.adopt(now, flight, plan)?;
        }
        Ok(())
    }

    pub(super) fn hear_setup(&mut self, now: Instant, slot: usize, message: &Message) -> Result<(), Refused> {
        let bit = 1 << slot;
        match message {
            Message::DataAck { hash } => {
                if *hash != plan::hash(&self.plan) {
                    if self.other_plan & bit == 0 {
                        self.other_plan |= bit;
                        self.news = Some((slot, "holds another plan: setup goes no further"));
                    }
                    return Err(Refused::Contradiction);
                }
                if self.state == State::Setup {
                    self.acks |= bit;
                }
            }
            Message::ReadyToFly => {
                if self.id_of(slot) != Some(self.config.master) {
                    return Err(Refused::Stranger);
                }
                self.held_at = Some(now);
            }
            Message::ReadyToFlyAck if self.state == State::ReadyToFly => self.acks |= bit,
            _ => {}
        }
        Ok(())
    }

    /// Takes the master's plan as ours, if we can fly it.
    fn adopt(&mut self, now: Instant, flight: u32, plan: &Plan) -> Result<(), Refused> {
        let slot = plan.slots.iter().position(|&s| s == self.config.me).ok_or(Refused::Stranger)?;
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
        self.route = plan::route(&self.config, plan, slot).map_err(|error| {
            self.tell_unflyable = self.unflyable != Some(error);
            self.unflyable = Some(error);
            Refused::Contradiction
        })?;
        self.hold(now, flight, slot, plan.clone());
        self.adopted = true;
        Ok(())
    }

    fn hold(&mut self, now: Instant, flight: u32, slot: usize, plan: Plan) {
        self.chart = Chart::of(&plan);
        self.layers = plan::Layers::of(&self.config, &plan);
        self.plan = plan;
        self.flight = flight;
        self.slot = slot;
        self.meet(now);
    }

    pub(super) fn make_plan(&mut self, now: Instant, out: &mut Actions) {
        let aircraft = self.meeting(self.at.map_or(Point::default(), |at| at.point()));
        let planned = plan::make(&self.config, &aircraft, &self.task).and_then(|plan| {
            let slot =
                plan.slots.iter().position(|&s| s == self.config.me).ok_or(plan::PlanError::NotMember)?;
            Ok((plan::route(&self.config, &plan, slot)?, slot, plan))
        });
        match planned {
            Ok((route, slot, plan)) => {
                let flight = (self.chance.next_u64() as u32).max(1);
                self.route = route;
                self.hold(now, flight, slot, plan);
                self.load(out);
            }
            Err(error) => {
                self.state = State::Start;
                push(out, Action::Log(Severity::Error, text!("setup refused: {error}")));
            }
        }
    }

    pub(super) fn next_in_setup(&self, now: Instant) -> State<F> {
        let silent = now >= self.silence_at();
        match self.state {
            State::Setup if !self.planned() || !self.loaded => State::Setup,
            State::Setup if self.is_master() && self.all(self.acks) => State::ReadyToFly,
            State::Setup if !self.is_master() && self.held_at.is_some() => State::ReadyToFly,
            State::ReadyToFly if self.is_master() && self.all(self.acks) => {
                State::TakingOff(TakeOff::Waiting)
            }
            State::ReadyToFly if !self.is_master() && silent => State::TakingOff(TakeOff::Waiting),
            unchanged => unchanged,
        }
    }

    /// When the message that keeps us in this state has been silent for long enough.
    pub(super) fn silence_at(&self) -> Instant {
        self.held_at.map_or(Instant::NEVER, |held_at| held_at + self.config.silence)
    }

    pub(super) fn setup_detail(&self) -> Text {
        let all_ready = self.state == State::ReadyToFly;
        match self.state {
            State::Start if self.is_master() && !self.task.is_given() => text!("waiting for a mission"),
            State::Start if self.is_master() => {
                text!("heard {} of {} aircraft", self.heard.len() + 1, self.config.aircraft)
            }
            State::Start => text!("calling the master, {}", self.config.master),
            _ if all_ready && self.is_master() => {
                text!("waiting for {} to be ready", self.missing(self.acks))
            }
            _ if all_ready => text!("ready"),
            _ if !self.planned() => match self.unflyable {
                Some(error) => text!("the master's plan is refused: {error}"),
                None => text!("waiting for the master's plan"),
            },
            _ if !self.loaded => text!("loading the route into the flight controller"),
            _ if self.is_master() => text!("waiting for {} to hold the plan", self.missing(self.acks)),
            _ => text!("waiting until all hold the plan"),
        }
    }
}
