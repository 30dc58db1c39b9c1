//! The swarm as the status and the agent show it.

use heapless::Vec;
use wingbeat_geo::Frame;
use wingbeat_wire::{Plan, Point, VehicleId};

use super::{Abort, State, Swarm, plan};
use crate::{
    Absent, Absentees, Asked, Command, Denied, Details, EndFlight, FormationView, Phase, SlotView, StateId,
    SwarmView, Text, View, text,
};

/// Where the centre of the formation is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FormationCenter {
    /// At this waypoint of the plan.
    Waypoint(u16),
    /// There, with this heading (radians clockwise from north).
    Position(Point, f64),
}

impl<F: Copy + PartialEq> Swarm<F> {
    /// Whether the operator may command this now. `found` is the state.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn permits(&self, command: Command, found: StateId) -> Result<(), Denied> {
        let is_planned = self.assignment.is_planned();
        match Asked::by(command) {
            Asked::Setup => self.permits_setup(found),
            Asked::Start if self.state == State::SetupFinished && self.is_aside() => Err(Denied::Aside),
            Asked::Start if self.state == State::SetupFinished => self.permits_start(),
            Asked::Start => Err(Denied::State { command, found, expected: StateId::SetupFinished }),
            Asked::Resume => Err(Denied::NoResume),
            Asked::Exclude(member) if !is_planned => Err(Denied::NoPlan(member)),
            Asked::Exclude(member) if self.members.slot_of(member).is_none() => Err(Denied::NoMember(member)),
            Asked::Exclude(_) => Ok(()),
            Asked::End(EndFlight::Return) if self.ownship.is_armed() && self.lacks_layers() => {
                Err(Denied::NoReturnHeight { height_most_m: self.config.height_most_m })
            }
            Asked::End(_) => {
                let is_over =
                    matches!(self.state, State::Start | State::Finished | State::Aborted(Abort::Ground));
                if is_over && !self.ownship.is_armed() { Err(Denied::OnGround { found }) } else { Ok(()) }
            }
            Asked::Nothing => Err(Denied::NotTheProtocols),
        }
    }

    /// An aircraft that gusts have carried off its slot since it came there does not begin the mission from elsewhere.
    fn permits_start(&self) -> Result<(), Denied> {
        let most_m = self.config.budget().held_m();
        match self.off_target_m() {
            Some(found_m) if found_m > most_m && !self.config.piloted_master => {
                Err(Denied::OffSlot { found_m, most_m })
            }
            _ => Ok(()),
        }
    }

    fn permits_setup(&self, found: StateId) -> Result<(), Denied> {
        // A follower that waits for a plan that did not come: the operator presses again.
        if self.state == State::Setup && !self.is_master() && !self.assignment.is_planned() {
            return Ok(());
        }
        if self.state != State::Start {
            return Err(Denied::State { command: Command::Setup, found, expected: StateId::Start });
        }
        if self.ownship.telemetry().is_none() {
            return Err(Denied::NoPosition);
        }
        self.setup.check_callers(&self.config)?;
        if self.ownship.is_armed() {
            return Err(Denied::Armed);
        }
        if self.is_master() {
            self.setup.check_plan(&self.config, self.ownship.home_altitude_mm())
        } else {
            Ok(())
        }
    }

    /// Whether returns at one height could meet, and there is no room for several.
    pub(super) fn lacks_layers(&self) -> bool {
        let needs_layers = self.assignment.plan().slots.len() > 1 && !self.config.piloted_master;
        needs_layers && self.assignment.layers().is_none()
    }

    /// The state; none for the host's own.
    pub(crate) fn state_id(&self) -> Option<StateId> {
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

    /// How far the flight has come; none while the host flies.
    pub(crate) fn phase(&self) -> Option<Phase> {
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

    /// What it does or waits for, in one line; none while the host flies.
    pub(crate) fn detail(&self) -> Option<Text> {
        Some(match self.state {
            State::Start | State::Setup | State::ReadyToFly => self.setup_detail(),
            State::TakingOff(phase) => self.take_off_detail(phase),
            State::SetupFinished => text!("in slot {}, waiting for the start", self.assignment.slot()),
            State::Flying(_) => return None,
            State::MovingToLand if self.navigation.has_arrived() => {
                text!("at the landing position, waiting for others to reach theirs")
            }
            State::MovingToLand => text!("to the landing position"),
            State::Landing if self.landing.is_in_place() => text!("landing where it is"),
            State::Landing => text!("landing"),
            State::Finished => text!("mission completed, landed"),
            State::Aborted(Abort::Ending(EndFlight::Hold)) => text!("holding"),
            State::Aborted(Abort::Ending(EndFlight::Return)) => text!("returning to launch"),
            State::Aborted(Abort::Ending(EndFlight::Land)) => text!("landing"),
            State::Aborted(Abort::ReturnHeld { .. }) => text!("holding until the path home is clear"),
            State::Aborted(Abort::LandAside { .. }) => {
                text!("flying aside to land: another aircraft is below")
            }
            State::Aborted(Abort::Failure { .. }) => text!("holding, then landing"),
            State::Aborted(Abort::TakenOver(EndFlight::Hold)) => text!("flown by another"),
            State::Aborted(Abort::TakenOver(EndFlight::Return)) => {
                text!("flown by another: returning to launch")
            }
            State::Aborted(Abort::TakenOver(EndFlight::Land)) => text!("flown by another: landing"),
            State::Aborted(Abort::Ground) => text!("on the ground"),
        })
    }

    /// What is shown of the swarm; the route and the flight are the host's.
    pub(crate) fn view(&self, state: StateId, phase: Phase) -> View {
        let assignment = &self.assignment;
        let is_planned = assignment.is_planned();
        let swarm = SwarmView {
            leader: if is_planned { self.is_leader() } else { self.is_master() },
            leader_id: match is_planned {
                true => assignment.id_of(self.members.leader()),
                false => Some(self.config.master),
            },
            size: if is_planned { assignment.plan().slots.len() } else { self.setup.count() },
            formation: assignment.layout().unwrap_or(self.config.layout).name(),
            slot: is_planned.then_some(assignment.slot()),
            flight: assignment.flight(),
        };
        let config = &self.config;
        let may_be_close = config.accepts_close || config.piloted_master || config.aircraft < 2;
        let spacing_m = match is_planned {
            true => Some(f64::from(assignment.plan().distance_mm) / 1e3),
            false => self.is_master().then_some(config.distance_m),
        };
        let spacing_m = spacing_m.filter(|_| !may_be_close);
        View { target: self.target(), swarm, spacing_m, ..View::alone(state, phase) }
    }

    /// The rest of what is shown of the swarm, with its formation around `center`.
    pub(crate) fn details(&self, line: Text, center: FormationCenter) -> Details {
        let is_on_leg = matches!(self.state, State::TakingOff(_) | State::Flying(_) | State::MovingToLand);
        let line = match is_on_leg && self.holds_leg() && !line.contains("holding") {
            true => text!("{line}: holding until the path is clear of another aircraft"),
            false => line,
        };
        Details {
            line,
            absentees: self.absentees(),
            avoidance: None,
            formation: self.formation_view(center),
            plan_hash: self.assignment.plan_hash(),
        }
    }

    /// Lost, left and excluded members, this aircraft too if it was excluded.
    pub(crate) fn absentees(&self) -> Absentees {
        let awaited = self.awaited();
        let absent = |slot: usize| {
            Some(Absent {
                id: self.assignment.id_of(slot)?,
                is_lost: self.members.lost().contains(slot),
                leaves: self.traffic.ending(slot),
                excluded_by: self.members.excluded_by(slot),
                is_waited_for: awaited.contains(slot),
            })
        };
        self.members.absent().iter().filter_map(absent).collect()
    }

    /// The formation as the master sees it: none on the others, which need not know all positions, and none when the
    /// flight is over. Before it is agreed on, as it was tried, at its first waypoint.
    fn formation_view(&self, center: FormationCenter) -> Option<FormationView> {
        let is_over =
            matches!(self.state, State::MovingToLand | State::Landing | State::Finished | State::Aborted(_));
        if !self.is_master() || is_over {
            return None;
        }
        let mut view = FormationView {
            distance_m: self.config.distance_m,
            heading_rad: None,
            is_planned: self.assignment.is_planned(),
            refused: None,
            slots: Vec::new(),
        };
        match (self.setup.trial(), view.is_planned) {
            (_, true) => draw(&mut view, self.assignment.plan(), center),
            (Some(trial), false) => {
                view.refused = trial.refused();
                draw(&mut view, trial.plan(), FormationCenter::Waypoint(0));
            }
            (None, false) => {}
        }
        Some(view)
    }
}

/// Draws the slots of a plan; none where it has no formation.
fn draw<const N: usize>(view: &mut FormationView, plan: &Plan<N>, center: FormationCenter) {
    let waypoint = match center {
        FormationCenter::Waypoint(waypoint) => usize::from(waypoint),
        FormationCenter::Position(..) => 0,
    };
    let (Ok(formation), Some(at)) = (plan::formation(plan), plan.waypoints.get(waypoint)) else { return };
    let (at, heading_rad) = match center {
        FormationCenter::Position(at, heading_rad) => (at, heading_rad),
        FormationCenter::Waypoint(_) => (*at, plan::heading_rad(plan)),
    };
    view.heading_rad = Some(heading_rad);
    let frame = Frame::new(plan::position(at));
    let slot_view = |(slot, id): (usize, &VehicleId)| {
        let offset = formation.offset_m(slot, heading_rad);
        let up_mm = libm::round(formation.height_m(slot) * 1e3) as i32;
        let position = frame.to_position(offset.extend(0.0));
        SlotView { id: *id, position: plan::point(position, at.height_mm.saturating_add(up_mm)) }
    };
    view.slots = plan.slots.iter().enumerate().map(slot_view).collect();
}
