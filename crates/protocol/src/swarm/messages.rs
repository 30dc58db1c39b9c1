//! Messages of the members, and what changes about the members.

use wingbeat_geo::Instant;
use wingbeat_wire::{Ending, Message, Point, Refused, VehicleId};

use super::plan::PlanError;
use super::setup::Standing;
use super::take_off::TakeOffMessage;
use super::{State, Swarm};
use crate::{Action, Actions, Severity, Text, push, text};

/// What an input changed that is logged or ordered.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// About a member, by slot.
    pub(super) notice: Option<(usize, Notice)>,
    is_leader_new: bool,
    /// The master's plan cannot be flown here.
    pub(super) refused_plan: Option<PlanError>,
    /// This master cannot plan the flight.
    pub(super) refused_setup: Option<PlanError>,
    /// A plan was adopted.
    pub(super) has_adopted: bool,
}

/// What is logged about a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
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
            Self::OtherPlan => "holds another plan: setup waits",
        }
    }
}

/// What a member sent that concerns the host too.
#[derive(Clone, Copy)]
pub(super) enum Received<'a> {
    Nothing,
    /// From this slot.
    Message(usize, &'a Message),
    /// A command of our leader.
    Passed(&'a Message),
}

impl<F: Copy + PartialEq> Swarm<F> {
    /// A member passed on a command of another: only of our leader it counts. It is older than what we receive of the leader
    /// itself, so nothing else is learned from it about the leader.
    pub(super) fn on_passed<'a>(
        &mut self,
        now: Instant,
        [by, from]: [VehicleId; 2],
        flight: u32,
        command: &'a Message,
        changes: &mut Changes,
    ) -> Result<Received<'a>, Refused> {
        self.sender(now, by, flight, changes)?;
        if self.members.slot_of(from) != Some(self.members.leader()) || self.is_leader() {
            return Err(Refused::UnexpectedSender);
        }
        if let Message::Land { at } = *command {
            self.take_landing_site(now, at)?;
        } else if matches!(command, Message::LandHere { .. }) {
            self.landing.end_with_leader();
        }
        Ok(Received::Passed(command))
    }

    /// The slot of the sender of a datagram of this flight.
    fn sender(
        &mut self,
        now: Instant,
        from: VehicleId,
        flight: u32,
        changes: &mut Changes,
    ) -> Result<usize, Refused> {
        if !self.assignment.is_planned() || flight != self.assignment.flight() {
            return Err(Refused::OtherFlight);
        }
        let slot = self.members.slot_of(from).ok_or(Refused::UnexpectedSender)?;
        if self.members.received(now, slot) {
            self.elect(changes);
        }
        Ok(slot)
    }

    pub(super) fn on_message<'a>(
        &mut self,
        now: Instant,
        from: VehicleId,
        flight: u32,
        message: &'a Message,
        changes: &mut Changes,
    ) -> Result<Received<'a>, Refused> {
        if let Message::Hello { at } = message {
            let standing = Standing { at: *at, home_mm: None };
            return self.on_call(now, from, flight, standing).map(|()| Received::Nothing);
        }
        if let Message::Stands { at } = message {
            return self.on_call(now, from, flight, Standing::at(*at)).map(|()| Received::Nothing);
        }
        if let Message::Data(plan) = message {
            self.on_plan(now, from, flight, plan, changes)?;
        }
        if matches!(message, Message::DataFirst(_) | Message::DataWaypoints(_))
            && self.on_plan_part(now, from, flight, message, changes)?
        {
            return Ok(Received::Nothing);
        }
        // From here on only members of this flight count.
        let slot = self.sender(now, from, flight, changes)?;
        self.on_member_message(now, slot, message, changes)?;
        Ok(Received::Message(slot, message))
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
            // It is no report of its position: that is where it was last.
            Message::Adrift { at } => {
                self.traffic.report_adrift(now, slot, *at);
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
            Message::Exclude { member } => {
                let leader = self.members.leader();
                let is_relay = slot == leader || self.assignment.id_of(slot) == Some(self.config.master);
                // Of our leader any member may know it: after a partition each part may have had its operator.
                let is_of_leader =
                    !self.config.piloted_master && self.members.slot_of(*member) == Some(leader);
                if !is_relay && !is_of_leader {
                    return Err(Refused::UnexpectedSender);
                }
                let by = self.assignment.plan().slots[slot];
                self.exclude(*member, by, changes);
                Ok(())
            }
            Message::LandHere { at } => {
                let is_of_leader = slot == self.members.leader();
                if is_of_leader {
                    self.landing.end_with_leader();
                }
                self.report_position(now, slot, *at);
                self.traffic.report_departure(slot, *at, Ending::Landing);
                self.members.leaves(slot);
                self.elect(changes);
                // Of another leader it is no order.
                if is_of_leader { Ok(()) } else { Err(Refused::UnexpectedSender) }
            }
            // A pilot ends his own flight, and those that follow him land each in its time.
            Message::Recall if self.config.piloted_master || self.members.excluded_by(slot).is_some() => {
                Err(Refused::UnexpectedSender)
            }
            Message::Recall => {
                self.landing.recall();
                Ok(())
            }
            Message::Land { at } => self.on_landing(now, slot, slot, *at),
            Message::LandAround { at, leader } => self.on_landing(now, slot, usize::from(*leader), *at),
            // Those of the flight are the host's; a plan and a call came before. Orders are the agent's.
            Message::Hello { .. }
            | Message::Stands { .. }
            | Message::Data(_)
            | Message::DataFirst(_)
            | Message::DataWaypoints(_)
            | Message::ReachedWaypointAck { .. }
            | Message::MoveToWaypoint { .. }
            | Message::Beacon(_)
            | Message::Course(_)
            | Message::Coordinates(_)
            | Message::Gather { .. }
            | Message::Release { .. }
            | Message::Order(_)
            | Message::OrderTaken(_)
            | Message::Probe(_)
            | Message::Corrections(_)
            | Message::Passed(_) => Ok(()),
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

    /// A member reports which leader it follows. Of one that the operator excluded it learns that next.
    pub(crate) fn report_leader(&mut self, slot: usize, leader: usize) {
        if slot != leader {
            self.members.report_leader(leader);
        }
    }

    /// No longer waits for a member, as the operator of `by` has it. Of this aircraft, ends its flight.
    pub(super) fn exclude(&mut self, id: VehicleId, by: VehicleId, changes: &mut Changes) {
        let Some(slot) = self.members.slot_of(id) else { return };
        if self.members.exclude(slot, by) {
            changes.notice = Some((slot, Notice::Excluded));
            self.elect(changes);
        }
    }

    /// Checks what time alone changes about the members. Each time that messages are due, not at each input: a large
    /// swarm receives many.
    pub(super) fn check_members(&mut self, now: Instant, changes: &mut Changes) {
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

    pub(super) fn log_changes(&self, changes: &Changes, out: &mut Actions) {
        if let Some(line) = self.member_line(changes) {
            push(out, Action::Log(Severity::Warning, line));
        }
        if let Some(error) = changes.refused_plan {
            push(out, Action::Log(Severity::Error, text!("the master's plan is refused: {error}")));
        }
        if let Some(error) = changes.refused_setup {
            push(out, Action::Log(Severity::Error, text!("setup refused: {error}")));
        }
    }

    /// What is logged about the members; none where nothing changed.
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
}
