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
//! MovingToLand ─all at their landing positions▶ Landing ▶ Finished
//! any: Hold, Return, Land by the operator, or a failure ▶ Aborted
//! ```
//!
//! What comes before and after the flight is [`Swarm`]'s. The flight, with the barrier at every waypoint and what its
//! leader does, is in [`barrier`]. Departures from the thesis are listed with their reasons in `docs/protocols/muscop.md`.

mod barrier;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use wingbeat_geo::Instant;
use wingbeat_wire::{Point, VehicleId};

use crate::swarm::rejoin::Place;
use crate::swarm::view::FormationCenter;
use crate::swarm::{self, FlightRecord, Swarm, plan};
use crate::{
    Action, Actions, Command, ConfigError, Configuration, Denied, Details, Fence, Input, Measured,
    MissionError, MissionExtras, Phase, Protocol, Severity, StateId, Text, View, push, text,
};
use barrier::Barrier;
pub use barrier::BarrierState;

/// Configuration of one aircraft. [`Config::new`] gives the published numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    type Machine = Muscop;
    const SECTION: &'static str = "muscop";

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

/// All states.
pub type State = swarm::State<BarrierState>;

/// MUSCOP on one aircraft.
#[cfg_attr(test, derive(Clone))]
pub struct Muscop {
    swarm: Swarm<BarrierState>,
    barrier: Barrier,
}

impl Muscop {
    /// An aircraft in state [`State::Start`]. `seed` sets the phase of its timers, so that the members do not broadcast
    /// at the same time, and the number of the flights it plans.
    pub fn new(config: Config, seed: u64, now: Instant) -> Self {
        Self { swarm: Swarm::new(config.swarm, seed, now), barrier: Barrier::default() }
    }

    fn state_id(&self) -> StateId {
        barrier::state_id(&self.swarm)
    }

    fn phase(&self) -> Phase {
        let State::Flying(flight) = self.swarm.state() else {
            return self.swarm.phase().unwrap_or(Phase::Moving);
        };
        match flight {
            BarrierState::WaypointReached { .. } => Phase::Waiting,
            BarrierState::MovingToWaypoint { .. } => Phase::Moving,
        }
    }

    fn reached(&self) -> Option<u16> {
        match self.swarm.state() {
            State::Flying(BarrierState::WaypointReached { waypoint }) => Some(waypoint),
            State::Flying(BarrierState::MovingToWaypoint { waypoint, .. }) => waypoint.checked_sub(1),
            State::MovingToLand | State::Landing | State::Finished => {
                Some(self.swarm.assignment().last_waypoint() as u16)
            }
            State::Start
            | State::Setup
            | State::ReadyToFly
            | State::TakingOff(_)
            | State::SetupFinished
            | State::Aborted(_) => None,
        }
    }

    fn detail(&self) -> Text {
        self.barrier.detail(&self.swarm)
    }
}

impl Protocol for Muscop {
    fn name(&self) -> &'static str {
        "muscop"
    }

    fn set_measured(&mut self, now: Instant, measured: Measured) {
        self.swarm.set_measured(now, measured);
    }

    /// Only the master plans; a later mission replaces an earlier one.
    fn set_mission(&mut self, mission: &[Point], extras: &MissionExtras) -> Result<(), MissionError> {
        let config = self.swarm.config();
        if config.me != config.master {
            return Err(MissionError::Master(config.master));
        }
        if self.swarm.state() != State::Start {
            return Err(MissionError::State { found: self.state_id() });
        }
        let waypoints = plan::Route::from_slice(mission)
            .ok()
            .filter(|m| m.len() >= 2)
            .ok_or(plan::PlanError::Waypoints(mission.len()))?;
        extras.of_formation(&waypoints)?;
        let task = self.swarm.task_mut();
        (task.waypoints, task.end) = (waypoints, extras.end);
        Ok(())
    }

    fn takes_up(&self) -> bool {
        self.swarm.remembers_flight() || self.left_on().is_some()
    }

    fn left_on(&self) -> Option<u64> {
        let State::Flying(flight) = self.swarm.state() else { return None };
        self.swarm.place_key(match flight {
            BarrierState::WaypointReached { waypoint } => Place::At(waypoint),
            BarrierState::MovingToWaypoint { waypoint, .. } => Place::To(waypoint),
        })
    }

    fn flight_record(&self) -> Option<FlightRecord> {
        self.swarm.flight_record()
    }

    fn remember(&mut self, now: Instant, record: Option<&FlightRecord>) -> bool {
        if record.is_none() && self.swarm.remembers_flight() {
            self.barrier = Barrier::default();
        }
        self.swarm.remember(now, record)
    }

    fn rejoin(&mut self, now: Instant, left_on: u64, out: &mut Actions) -> bool {
        let Some(place) = self.swarm.remembered_place(left_on) else { return false };
        self.barrier = Barrier::rejoining(now);
        let commanded_by = self.swarm.members().leader();
        let (flight, target) = match place {
            Place::At(waypoint) => (BarrierState::WaypointReached { waypoint }, None),
            Place::To(waypoint) => (
                BarrierState::MovingToWaypoint { waypoint, commanded_by },
                self.swarm.assignment().route().get(usize::from(waypoint)).copied(),
            ),
        };
        self.swarm.rejoin(now, flight, target, out);
        let state = self.state_id();
        push(out, Action::Log(Severity::Warning, text!("{state}: {}, rejoins its swarm", self.detail())));
        true
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Actions) {
        self.swarm.handle(&mut self.barrier, now, input, out);
    }

    fn poll_timeout(&self) -> (Instant, &'static str) {
        self.swarm.poll_timeout(&self.barrier)
    }

    fn permits(&self, command: Command) -> Result<(), Denied> {
        self.swarm.permits(command, self.state_id())
    }

    fn route(&self) -> &[Point] {
        let assignment = self.swarm.assignment();
        if assignment.is_planned() { assignment.route() } else { &self.swarm.setup().task().waypoints }
    }

    fn fence(&self) -> Fence {
        self.swarm.config().fence()
    }

    fn view(&self) -> View {
        View {
            reached: self.reached(),
            return_height_mm: self.swarm.clearance().own_return_height_mm(),
            slot_offset_m: self.swarm.assignment().slot_offset_m(),
            ..self.swarm.view(self.state_id(), self.phase())
        }
    }

    fn details(&self) -> Details {
        let waypoint = match self.swarm.state() {
            State::Flying(
                BarrierState::WaypointReached { waypoint } | BarrierState::MovingToWaypoint { waypoint, .. },
            ) => waypoint,
            State::Start
            | State::Setup
            | State::ReadyToFly
            | State::TakingOff(_)
            | State::SetupFinished
            | State::MovingToLand
            | State::Landing
            | State::Finished
            | State::Aborted(_) => 0,
        };
        self.swarm.details(self.detail(), FormationCenter::Waypoint(waypoint))
    }
}
