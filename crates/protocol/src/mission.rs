//! Mission: every aircraft flies its own mission by its flight controller's own navigation, and nothing keeps
//! it apart from others. The simplest protocol, and the one to begin a new one from
//! (`docs/protocols/writing-one.md`).
//!
//! ```text
//! Start ─Setup▶ Setup ─loaded▶ SetupFinished ─Start▶ TakingOff ─in the mission▶ Flying ─over▶ Landing ▶ Finished
//! any in the air ─an order failed▶ Holding ─nobody decided for 60 s▶ Aborted(Land)
//! any but Start and Finished ─Hold, Return, Land by the operator▶ Aborted
//! ```
//!
//! It promises that the operator is obeyed in every state, that an aircraft which cannot do what it must
//! holds and then comes down, and that it never asks for anything again once it is on the ground.

#[cfg(test)]
mod tests;

use wingbeat_geo::{Duration, Frame, Instant, Position};
use wingbeat_wire::{Point, Refused, VehicleId};

use crate::{
    Action, Actions, Command, ConfigError, Configuration, Denied, Details, EndFlight, Fence, Input,
    MissionError, Order, Phase, Protocol, Route, Severity, StateId, Telemetry, Text, View, text,
};

/// The last waypoint counts as flown to when nearer than this, metres.
const AT_THE_END_M: f64 = 2.0;
/// Or when the aircraft has stood there for so long: the word that it was reached is said once, over a line
/// that may lose it.
const SETTLED: Duration = Duration::from_secs(10);
/// Standing means slower than this, metres per second.
const STANDING_M_S: f64 = 0.6;

/// What one aircraft is configured with.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Who we are.
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
    type Flight = Mission;

    fn me(&self) -> VehicleId {
        self.me
    }
    fn heights_m(&self) -> (f64, f64) {
        (self.fence.height_least_m, self.fence.height_most_m)
    }
    fn check(&self) -> Result<(), ConfigError> {
        ConfigError::distance("distance_most_m", self.fence.distance_most_m)?;
        ConfigError::speed(self.planned_speed_m_s)
    }
    fn begin(&self, _: u64, _: Instant) -> Mission {
        Mission::new(self.clone())
    }
}

/// How far the flight has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// On the ground, waiting for the operator.
    Start,
    /// The mission goes to the flight controller.
    Setup,
    /// The flight controller holds the mission.
    SetupFinished,
    /// Arming, climbing, and then into the mission.
    TakingOff,
    /// On the mission.
    Flying {
        /// When that began.
        since: Instant,
    },
    /// Holding after a failure.
    Holding {
        /// When it lands if nobody decides.
        land_at: Instant,
    },
    /// The mission is over: coming down.
    Landing,
    /// On the ground after its mission.
    Finished,
    /// Ended by the operator, or by landing after a failure.
    Aborted(EndFlight),
}

/// One aircraft on its mission.
pub struct Mission {
    config: Config,
    state: State,
    at: Option<Telemetry>,
    route: Route,
    reached: Option<u16>,
}

impl Mission {
    /// An aircraft in state [`State::Start`].
    pub fn new(config: Config) -> Self {
        Self { config, state: State::Start, at: None, route: Route::new(), reached: None }
    }

    fn armed(&self) -> bool {
        self.at.is_some_and(|at| at.armed)
    }

    /// Whether the mission has been flown.
    fn is_over(&self, now: Instant, since: Instant) -> bool {
        let (Some(at), Some(last)) = (self.at, self.route.last()) else { return false };
        let there =
            Position { latitude_e7: last.latitude_e7, longitude_e7: last.longitude_e7, altitude_mm: 0 };
        let near = Frame::new(there).to_local(at.position).truncate().length() < AT_THE_END_M;
        let stands = at.velocity_m_s.truncate().length() <= STANDING_M_S && now.since(since) > SETTLED;
        let reached = self.reached.map_or(0, |w| usize::from(w) + 1);
        if reached >= self.route.len() {
            near || stands
        } else {
            reached + 1 == self.route.len() && near && stands
        }
    }

    fn state_id(&self) -> StateId {
        match self.state {
            State::Start => StateId::Start,
            State::Setup => StateId::Setup,
            State::SetupFinished => StateId::SetupFinished,
            State::TakingOff => StateId::TakingOff,
            State::Flying { .. } => StateId::Flying,
            State::Holding { .. } => StateId::Holding,
            State::Landing => StateId::Landing,
            State::Finished => StateId::Finished,
            State::Aborted(_) => StateId::Aborted,
        }
    }

    fn phase(&self) -> Phase {
        match self.state {
            State::Start => Phase::Start,
            State::Setup | State::TakingOff => Phase::Preparing,
            State::SetupFinished => Phase::Ready,
            State::Flying { .. } => Phase::Moving,
            State::Landing => Phase::Ending,
            State::Finished => Phase::Finished,
            State::Holding { .. } | State::Aborted(_) => Phase::Aborted,
        }
    }

    fn detail(&self) -> Text {
        match self.state {
            State::Start if self.route.is_empty() => text!("waiting for a mission"),
            State::Start => text!("waiting for setup"),
            State::Setup => text!("loading the mission into the flight controller"),
            State::SetupFinished => text!("the flight controller holds the mission"),
            State::TakingOff => text!("climbing"),
            State::Flying { .. } => {
                let next = self.reached.map_or(0, |w| usize::from(w) + 1);
                text!("waypoint {} of {}", next.min(self.route.len()), self.route.len())
            }
            State::Holding { .. } => text!("holding, then landing"),
            State::Landing => text!("the mission is over: landing"),
            State::Finished => text!("mission completed, landed"),
            State::Aborted(_) if !self.armed() => text!("on the ground"),
            State::Aborted(EndFlight::Hold) => text!("holding"),
            State::Aborted(EndFlight::Return) => text!("returning to launch"),
            State::Aborted(EndFlight::Land) => text!("landing"),
        }
    }

    /// The transition table: what follows, and the order that comes with it. It reads and never writes.
    fn next(&self, now: Instant, input: &Input<'_>) -> (State, Option<Order>) {
        use State::{Aborted, Finished, Flying, Holding, Landing, Setup, SetupFinished, Start, TakingOff};
        let stay = (self.state, None);
        let hold = Holding { land_at: now + self.config.hold_before_landing };
        match (self.state, input) {
            (Start, Input::Operator(Command::Setup)) => (Setup, Some(Order::LoadRoute)),
            (SetupFinished, Input::Operator(Command::Start)) => {
                let height_mm = self.route.first().map_or(0, |w| w.height_mm);
                (TakingOff, Some(Order::FlyRoute { height_mm }))
            }
            (_, Input::Operator(command)) => match EndFlight::commanded(*command) {
                Some(end) => (Aborted(end), Some(end.order())),
                None => stay,
            },
            (Setup, Input::Done(Order::LoadRoute)) => (SetupFinished, None),
            (TakingOff, Input::Done(Order::FlyRoute { .. })) => (Flying { since: now }, None),
            (Setup, Input::Failed(_)) => (Start, None),
            (TakingOff, Input::Failed(_)) if !self.armed() => (SetupFinished, None),
            (TakingOff | Flying { .. }, Input::Failed(_)) => (hold, Some(Order::Hold)),
            // It cannot even do that: there is only the ground.
            (Holding { .. } | Aborted(EndFlight::Hold | EndFlight::Return), Input::Failed(_)) => {
                (Aborted(EndFlight::Land), Some(Order::Land))
            }
            (Holding { land_at }, _) if now >= land_at => (Aborted(EndFlight::Land), Some(Order::Land)),
            (Landing, Input::Telemetry(at)) if !at.armed => (Finished, None),
            // Down without having been asked: its own failsafe, or a fall.
            (Flying { .. } | Holding { .. }, Input::Telemetry(at)) if !at.armed => {
                (Aborted(EndFlight::Land), None)
            }
            (Flying { since }, _) if self.is_over(now, since) => (Landing, Some(Order::Land)),
            _ => stay,
        }
    }
}

impl Protocol for Mission {
    fn name(&self) -> &'static str {
        "mission"
    }

    fn set_mission(&mut self, mission: &[Point]) -> Result<(), MissionError> {
        if self.state != State::Start {
            return Err(MissionError::State { found: self.state_id() });
        }
        self.route = Route::from_slice(mission)
            .ok()
            .filter(|m| m.len() >= 2)
            .ok_or(MissionError::Waypoints { found: mission.len() })?;
        Ok(())
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Actions) {
        match input {
            Input::Telemetry(at) => self.at = Some(at),
            Input::Reached(waypoint) if usize::from(waypoint) < self.route.len() => {
                self.reached = self.reached.max(Some(waypoint));
            }
            // It listens to nobody.
            Input::Message { .. } => {
                let _ = out.push(Action::Refused(Refused::Stranger));
            }
            _ => {}
        }
        let (next, order) = self.next(now, &input);
        let severity = match (&input, next) {
            (Input::Failed(_), _) => Severity::Error,
            (_, State::Aborted(_)) => Severity::Warning,
            _ => Severity::Info,
        };
        if let Input::Failed(order) = input {
            let _ = out.push(Action::Log(severity, text!("{order} failed in state {}", self.state_id())));
        }
        if next != self.state {
            self.state = next;
            let _ = out.push(Action::Log(severity, text!("{}: {}", self.state_id(), self.detail())));
        }
        if let Some(order) = order {
            let _ = out.push(Action::Order(order));
        }
    }

    fn poll_timeout(&self) -> (Instant, &'static str) {
        match self.state {
            State::Holding { land_at } => (land_at, "land after a failure"),
            _ => (Instant::NEVER, "nothing"),
        }
    }

    fn permits(&self, command: Command) -> Result<(), Denied> {
        let found = self.state_id();
        match command {
            Command::Setup => match (self.state, self.at) {
                (State::Start, _) if self.route.is_empty() => Err(Denied::NoMission),
                (State::Start, None) => Err(Denied::NoPosition),
                (State::Start, Some(at)) => Ok(self.config.fence.check(at.position, &self.route)?),
                _ => Err(Denied::State { command, found, expected: StateId::Start }),
            },
            Command::Start if self.state == State::SetupFinished => Ok(()),
            Command::Start => Err(Denied::State { command, found, expected: StateId::SetupFinished }),
            Command::Hold | Command::Return | Command::Land => match self.state {
                State::Start | State::Finished if !self.armed() => Err(Denied::OnGround { found }),
                _ => Ok(()),
            },
            Command::Exclude { member } => Err(Denied::NoSwarm(member)),
            Command::RecoverControl | Command::Engage => Err(Denied::NotTheProtocols),
        }
    }

    fn route(&self) -> &[Point] {
        &self.route
    }

    fn view(&self) -> View {
        View {
            route_speed_m_s: Some(self.config.planned_speed_m_s),
            ..View::alone(self.state_id(), self.phase()).on_route(&self.route, self.reached)
        }
    }

    fn details(&self) -> Details {
        Details { line: self.detail(), ..Details::default() }
    }
}
