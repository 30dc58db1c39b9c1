//! Mission: every aircraft flies its own mission by its flight controller's own navigation, and nothing keeps
//! it apart from others. The simplest protocol, and the one to begin a new one from
//! (`docs/protocols/writing-one.md`).
//!
//! ```text
//! Start ─Setup▶ Setup ─loaded▶ SetupFinished ─Start▶ TakingOff ─on the route▶ Flying ─over▶ Landing ▶ Finished
//! ```
//!
//! What fails, what the operator commands, and how a flight ends is [`RouteFlight`]'s; this file adds one state
//! and when it is over.
//!
//! It promises that the operator is obeyed in every state, and that an aircraft which cannot do what it must
//! holds and then lands.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{Point, Refused, VehicleId};

use crate::flight::{self, RouteFlight, Rules, Transition};
use crate::{
    Action, Actions, Command, ConfigError, Configuration, Denied, Details, Fence, Input, MissionError,
    MissionExtras, Order, Phase, Protocol, Severity, StateId, Text, View, push, text,
};

/// Standing means slower than this, metres per second.
const STANDING_M_S: f64 = 0.6;

/// What one aircraft is configured with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Id of this aircraft.
    pub me: VehicleId,
    /// Speed of the mission, which the flight controller keeps, metres per second.
    pub planned_speed_m_s: f64,
    /// Where waypoints may lie.
    pub fence: Fence,
    /// After a failure the aircraft holds for so long, for an operator to decide, and then lands.
    pub hold_before_landing: Duration,
}

impl Config {
    /// At 10 m/s, holding for a minute after a failure.
    pub fn new(me: VehicleId) -> Self {
        Self {
            me,
            planned_speed_m_s: 10.0,
            fence: Fence::default(),
            hold_before_landing: Duration::from_secs(60),
        }
    }
}

impl Configuration for Config {
    type Machine = Mission;
    const SECTION: &'static str = "mission";

    fn me(&self) -> VehicleId {
        self.me
    }
    fn heights_m(&self) -> (f64, f64) {
        (self.fence.height_least_m, self.fence.height_most_m)
    }
    fn check(&self) -> Result<(), ConfigError> {
        self.fence.judge()?;
        ConfigError::speed("planned_speed_m_s", self.planned_speed_m_s)?;
        ConfigError::wait("hold_before_landing_ms", self.hold_before_landing, 0)
    }
    fn begin(&self, _: u64, _: Instant) -> Mission {
        Mission::new(self.clone())
    }
}

/// On the mission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnRoute {
    /// Start of the mission's flight.
    pub since: Instant,
}

/// How far the flight has come.
pub type State = flight::State<OnRoute>;

/// One aircraft on its mission.
pub struct Mission {
    config: Config,
    flight: RouteFlight<OnRoute>,
}

impl Mission {
    /// An aircraft in state [`State::Start`].
    pub fn new(config: Config) -> Self {
        let Config { fence, hold_before_landing, planned_speed_m_s, .. } = config;
        Self { config, flight: RouteFlight::new(Rules { fence, hold_before_landing, planned_speed_m_s }) }
    }

    /// The transition table: what follows, and the order that comes with it. It reads and never writes.
    fn next(&self, now: Instant, input: &Input<'_>) -> Option<Transition<OnRoute>> {
        self.flight.next(now, input, OnRoute { since: now }).or_else(|| match self.flight.state() {
            State::Flying(OnRoute { since }) if self.flight.is_over(now, since, STANDING_M_S) => {
                Some(Transition::ordering(State::Landing, Order::Land))
            }
            State::Start
            | State::Setup
            | State::SetupFinished
            | State::TakingOff
            | State::Flying(_)
            | State::Holding { .. }
            | State::Landing
            | State::Finished
            | State::Aborted(_) => None,
        })
    }
}

impl Mission {
    fn state_id(&self) -> StateId {
        self.flight.id(StateId::Flying)
    }
    fn detail(&self) -> Text {
        self.flight.detail(|| self.flight.progress())
    }
}

impl Protocol for Mission {
    fn name(&self) -> &'static str {
        "mission"
    }

    fn set_mission(&mut self, mission: &[Point], extras: &MissionExtras) -> Result<(), MissionError> {
        let state = self.state_id();
        self.flight.set_route(mission, extras, state)
    }
    fn extras(&self) -> &MissionExtras {
        self.flight.extras()
    }

    fn takes_up(&self) -> bool {
        true
    }
    fn hold_found(&mut self, now: Instant, out: &mut Actions) {
        self.flight.apply(self.flight.hold_found(now), out);
    }
    fn take_up(
        &mut self,
        route: &[Point],
        extras: &MissionExtras,
        reached: Option<u16>,
    ) -> Result<(), MissionError> {
        let state = self.state_id();
        self.flight.take_up(route, extras, reached, state)
    }
    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Actions) {
        if let Input::Message { .. } | Input::Passed { .. } = input {
            // It needs nothing from other aircraft.
            push(out, Action::Refused(Refused::UnexpectedSender));
        }
        self.flight.observe(now, &input);
        let next = self.next(now, &input);
        if let Input::Failed(order) = input {
            push(out, Action::Log(Severity::Error, text!("{order} failed in state {}", self.state_id())));
        }
        if self.flight.apply(next, out) {
            let severity = RouteFlight::severity(&input, self.flight.state());
            push(out, Action::Log(severity, text!("{}: {}", self.state_id(), self.detail())));
        }
    }

    fn poll_timeout(&self) -> (Instant, &'static str) {
        self.flight.poll_timeout()
    }
    fn permits(&self, command: Command) -> Result<(), Denied> {
        self.flight.permits(command, self.state_id())
    }
    fn route(&self) -> &[Point] {
        self.flight.route()
    }
    fn fence(&self) -> Fence {
        self.config.fence
    }
    fn view(&self) -> View {
        let view = self.flight.view(StateId::Flying, Phase::Moving);
        View { route_speed_m_s: Some(self.config.planned_speed_m_s), ..view }
    }
    fn details(&self) -> Details {
        Details { line: self.detail(), ..Details::default() }
    }
}
