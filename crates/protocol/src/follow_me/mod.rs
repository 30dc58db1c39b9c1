//! FollowMe: a pilot flies one aircraft, a formation follows it (thesis chapter 7).
//!
//! The *leader* is flown by a pilot through its transmitter and never commanded: its companion organises the
//! setup of the *slaves*, which take off to their slots around it, and then broadcasts where it is and where its
//! nose points. A slave flies to its slot, turned with that heading, at the leader's height. When the leader
//! lands, it calls the slaves to land.
//!
//! ```text
//! Start … SetupFinished as in every swarm
//! leader: SetupFinished ─Start▶ Ready ─its pilot is at height▶ FollowMe ─low, LAND, or down▶ Landing ▶ Finished
//! slave:  SetupFinished ─Start▶ WaitMaster ─coordinates▶ Following ─Land▶ (MovingToLand ▶) Landing ▶ Finished
//!         WaitMaster, Following ─silence▶ as configured: LeaderLost (holding), Aborted (landing)
//! slave:  Hold, Land by the operator, or a failure ▶ Aborted
//! slave whose companion was restarted: LeaderLost, until it has listened and its leader leads ▶ Following
//! ```
//!
//! What comes before and after the flight is [`Swarm`]'s; the flight is in [`guidance`]. Departures from the thesis are listed with their reasons in
//! `docs/protocols/follow-me.md`.

mod config;
mod encounter;
mod guidance;

#[cfg(test)]
mod tests;

pub use config::{Config, Landing, LeaderLost};
pub use guidance::GuidanceState;

use wingbeat_geo::Instant;
use wingbeat_wire::Point;

use crate::swarm::rejoin::Place;
use crate::swarm::view::FormationCenter;
use crate::swarm::{self, FlightRecord, Swarm};
use crate::{
    Action, Actions, Asked, Command, Denied, Details, EndFlight, Fence, Handling, Input, Measured,
    MissionError, MissionExtras, Phase, Protocol, Severity, StateId, Text, View, push, text,
};
use guidance::Guidance;

/// All states.
pub type State = swarm::State<GuidanceState>;

/// FollowMe on one aircraft.
#[cfg_attr(test, derive(Clone))]
pub struct FollowMe {
    swarm: Swarm<GuidanceState>,
    guidance: Guidance,
}

impl FollowMe {
    /// An aircraft in state [`State::Start`]. `seed` sets the phase of its timers, so that the members do not broadcast
    /// at the same time, and the number of the flights it plans.
    pub fn new(mut config: Config, seed: u64, now: Instant) -> Self {
        config.swarm.piloted_master = true;
        let mut swarm = Swarm::new(config.swarm.clone(), seed, now);
        let guidance = Guidance::new(config, &mut swarm, now);
        Self { swarm, guidance }
    }

    fn is_leader(&self) -> bool {
        self.swarm.is_master()
    }

    fn state_id(&self) -> StateId {
        guidance::state_id(&self.swarm)
    }

    fn phase(&self) -> Phase {
        let State::Flying(flight) = self.swarm.state() else {
            return self.swarm.phase().unwrap_or(Phase::Waiting);
        };
        match flight {
            GuidanceState::FollowMe | GuidanceState::Following => Phase::Moving,
            GuidanceState::Descending { .. } => Phase::Ending,
            GuidanceState::Ready | GuidanceState::LeaderLost { .. } => Phase::Waiting,
        }
    }

    fn detail(&self) -> Text {
        self.guidance.detail(&self.swarm)
    }
}

impl Protocol for FollowMe {
    fn name(&self) -> &'static str {
        "follow_me"
    }

    fn set_mission(&mut self, _mission: &[Point], _extras: &MissionExtras) -> Result<(), MissionError> {
        Err(MissionError::Piloted(self.swarm.config().master))
    }

    fn set_handling(&mut self, handling: Handling) {
        self.guidance.set_handling(handling);
    }

    fn set_measured(&mut self, now: Instant, measured: Measured) {
        self.swarm.set_measured(now, measured);
    }

    /// A slave's flight. The leader's is its pilot's.
    fn takes_up(&self) -> bool {
        !self.is_leader() && self.swarm.remembers_flight() || self.left_on().is_some()
    }

    fn left_on(&self) -> Option<u64> {
        match self.swarm.state() {
            State::Flying(GuidanceState::Ready | GuidanceState::Following) if !self.is_leader() => {
                self.swarm.place_key(Place::At(0))
            }
            State::Start
            | State::Setup
            | State::ReadyToFly
            | State::TakingOff(_)
            | State::SetupFinished
            | State::Flying(_)
            | State::MovingToLand
            | State::Landing
            | State::Finished
            | State::Aborted(_) => None,
        }
    }

    fn flight_record(&self) -> Option<FlightRecord> {
        self.swarm.flight_record()
    }

    fn remember(&mut self, now: Instant, record: Option<&FlightRecord>) -> bool {
        if record.is_none() && self.swarm.remembers_flight() {
            self.guidance.forget();
        }
        self.swarm.remember(now, record)
    }

    fn rejoin(&mut self, now: Instant, left_on: u64, out: &mut Actions) -> bool {
        let may_be = !self.is_leader() && self.swarm.remembered_place(left_on).is_some();
        if may_be {
            let flight = self.guidance.rejoin(&self.swarm, now);
            self.swarm.rejoin(now, flight, None, out);
            let (state, detail) = (self.state_id(), self.detail());
            push(out, Action::Log(Severity::Warning, text!("{state}: {detail}")));
        }
        may_be
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Actions) {
        // The operator does not command what a pilot flies.
        let stops = matches!(input, Input::Operator(command) if matches!(Asked::by(command), Asked::End(_)));
        if stops && self.is_leader() && self.swarm.ownship().is_armed() {
            return;
        }
        if let Input::Telemetry(telemetry) = input {
            self.guidance.observe(&mut self.swarm, now, &telemetry);
        }
        self.swarm.handle(&mut self.guidance, now, input, out);
        if self.is_leader() {
            // Whatever the swarm's states ask for, a pilot has this aircraft.
            out.retain(|action| !matches!(action, Action::Order(_)));
        }
    }

    fn poll_timeout(&self) -> (Instant, &'static str) {
        self.swarm.poll_timeout(&self.guidance)
    }

    fn permits(&self, command: Command) -> Result<(), Denied> {
        let (is_leader, ownship) = (self.is_leader(), self.swarm.ownship());
        match Asked::by(command) {
            Asked::End(_) if is_leader && ownship.is_armed() => Err(Denied::Piloted),
            Asked::End(EndFlight::Return) if ownship.is_armed() => Err(Denied::NoReturnBehindPilot),
            Asked::Setup
                if is_leader
                    && ownship.telemetry().is_some_and(|own| guidance::heading_of(own).is_none()) =>
            {
                Err(Denied::NoHeading)
            }
            Asked::Exclude(member)
                if self.swarm.assignment().is_planned() && member == self.swarm.config().master =>
            {
                Err(Denied::Followed(member))
            }
            Asked::Setup
            | Asked::Start
            | Asked::Resume
            | Asked::End(_)
            | Asked::Exclude(_)
            | Asked::Nothing => self.swarm.permits(command, self.state_id()),
        }
    }

    fn route(&self) -> &[Point] {
        self.swarm.assignment().route()
    }

    fn fence(&self) -> Fence {
        self.swarm.config().fence()
    }

    fn view(&self) -> View {
        View {
            is_piloted: self.is_leader(),
            slot_offset_m: self.guidance.slot_offset_m(&self.swarm),
            slot_in_heading_m: self.guidance.slot_in_heading_m(),
            ..self.swarm.view(self.state_id(), self.phase())
        }
    }

    /// In flight the formation is around the leader, wherever its pilot is.
    fn details(&self) -> Details {
        let in_flight = self.guidance.formation_around(&self.swarm);
        self.swarm.details(self.detail(), in_flight.unwrap_or(FormationCenter::Waypoint(0)))
    }
}
