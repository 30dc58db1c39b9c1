//! One flight of one aircraft along a route of its own: load the route, arm, climb, fly, and end.
//!
//! [`RouteFlight`] is a machine inside a machine. A host protocol owns one and adds what is its own: `F`, its
//! states between the take-off and the end of the route.
//!
//! ```text
//! Start ─Setup▶ Setup ─loaded▶ SetupFinished ─Start▶ TakingOff ─on the route▶ Flying(F) ─host▶ Landing
//! Landing ─disarmed▶ Finished
//! TakingOff, Flying ─an order failed▶ Holding ─no command for 60 s, or another failure▶ Aborted(Land)
//! any ─Hold, Return, Land by the operator, or a low battery▶ Aborted
//! Aborted, Holding: held on the route ─Resume▶ Flying
//! Start, found in flight ▶ Holding ─its route is known again, Resume▶ Flying
//! ```
//!
//! **One failure rule for every host.** On the ground a failed order leads back to where it can be tried again. In
//! the air the aircraft holds for [`Rules::hold_before_landing`], so that the operator can decide, and then lands;
//! what fails while it holds or returns makes it land now.
//!
//! A host's `handle` is three steps: [`RouteFlight::observe`], [`RouteFlight::next`], which reads and never
//! writes, and [`RouteFlight::apply`].

mod end;

pub use end::{Asked, EndFlight};

use wingbeat_geo::{Duration, Frame, Instant, Position};
use wingbeat_wire::Point;

use crate::{
    Action, Actions, Command, Denied, Fence, Input, MissionError, MissionExtras, Order, Phase, REPORT_HOLDS,
    Route, Severity, StateId, Telemetry, Text, View, push, text,
};

/// Nearer than this to the last waypoint the route is flown (reference), metres.
pub const AT_THE_END_M: f64 = 2.0;
/// The flight controller counts a waypoint as reached a braking distance before it: 50 m at 10 m/s (ArduCopter's
/// `WPNAV_ACCEL` by default, the least of both profiles).
const LEAST_BRAKING_M_S2: f64 = 1.0;
/// And so much farther: the error of the position, and what was flown since the last report, metres.
const REACHED_EARLY_M: f64 = 5.0;
/// Standing means slower than this, metres per second.
const STANDS_M_S: f64 = 0.6;
/// An aircraft that has stood on its last leg for so long goes no farther: the report that the last waypoint was
/// reached comes once, over a line that may lose it.
const SETTLED: Duration = Duration::from_secs(10);

/// How far a flight has come; `F` are the host's own states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State<F> {
    /// On the ground, waiting for the operator.
    Start,
    /// The route goes to the flight controller.
    Setup,
    /// The flight controller holds the route.
    SetupFinished,
    /// Arming, climbing, and then onto the route.
    TakingOff,
    /// The host's.
    Flying(F),
    /// Holding after a failure.
    Holding {
        /// When it lands, if the operator does not command anything else.
        land_at: Instant,
    },
    /// The route is flown: landing.
    Landing,
    /// On the ground after its route.
    Finished,
    /// Ended before: by the operator, by a failure, or by disarming in flight.
    Aborted(EndFlight),
}

/// The values of the host's configuration for its flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Where waypoints may lie.
    pub fence: Fence,
    /// From a failure in the air until the aircraft lands.
    pub hold_before_landing: Duration,
    /// The speed along the route, metres per second.
    pub planned_speed_m_s: f64,
}

/// A state that follows, and the order that comes with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition<F> {
    /// The next state; it may be the present one with other data.
    pub state: State<F>,
    /// What the autopilot is asked for.
    pub order: Option<Order>,
}

impl<F> Transition<F> {
    /// Without an order.
    pub fn to(state: State<F>) -> Self {
        Self { state, order: None }
    }
    /// With an order.
    pub fn ordering(state: State<F>, order: Order) -> Self {
        Self { state, order: Some(order) }
    }
    fn end(end: EndFlight) -> Self {
        Self::ordering(State::Aborted(end), end.order())
    }
}

/// The flight of one aircraft.
pub(crate) struct RouteFlight<F> {
    rules: Rules,
    state: State<F>,
    telemetry: Option<Telemetry>,
    /// When that came.
    telemetry_at: Instant,
    route: Route,
    extras: MissionExtras,
    /// Number of the operator's waypoints in the route; the end of the mission follows them.
    waypoints: usize,
    /// Since when it stands at the last waypoint.
    at_last_since: Option<Instant>,
    reached: Option<u16>,
    /// Whether this flight has been on its route.
    has_begun: bool,
}

fn checked(route: &[Point]) -> Result<Route, MissionError> {
    let waypoints = Route::from_slice(route).ok().filter(|route| route.len() >= 2);
    waypoints.ok_or(MissionError::Waypoints { found: route.len() })
}

impl<F: Copy + PartialEq> RouteFlight<F> {
    /// An aircraft on the ground, in state [`State::Start`].
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            state: State::Start,
            telemetry: None,
            telemetry_at: Instant::ZERO,
            route: Route::new(),
            extras: MissionExtras::default(),
            waypoints: 0,
            at_last_since: None,
            reached: None,
            has_begun: false,
        }
    }

    pub(crate) fn state(&self) -> State<F> {
        self.state
    }
    pub(crate) fn telemetry(&self) -> Option<&Telemetry> {
        self.telemetry.as_ref()
    }
    fn is_flying(&self) -> bool {
        matches!(self.state, State::Flying(_))
    }
    pub(crate) fn is_armed(&self) -> bool {
        self.telemetry.is_some_and(|t| t.armed)
    }
    /// Whether its motors are known to be off.
    fn is_disarmed(&self, now: Instant) -> bool {
        !self.is_armed() && now.since(self.telemetry_at) <= REPORT_HOLDS
    }
    pub(crate) fn speed_m_s(&self) -> f64 {
        self.telemetry.map_or(0.0, |t| t.velocity_m_s.truncate().length())
    }
    pub(crate) fn route(&self) -> &Route {
        &self.route
    }
    /// Index of the waypoint that the aircraft flies to; the length of the route after the last.
    pub(crate) fn next_waypoint(&self) -> usize {
        self.reached.map_or(0, |w| usize::from(w) + 1)
    }

    /// Takes the operator's route; `found` is the host's name of the state.
    ///
    /// # Errors
    /// The state forbids it, or it has too few or too many waypoints.
    pub(crate) fn set_route(
        &mut self,
        route: &[Point],
        extras: &MissionExtras,
        found: StateId,
    ) -> Result<(), MissionError> {
        if self.state != State::Start {
            return Err(MissionError::State { found });
        }
        let checked = checked(route)?;
        extras.check(checked.len())?;
        (self.route, self.waypoints) = (checked, route.len());
        self.extras.clone_from(extras);
        self.add_end();
        Ok(())
    }

    /// Ends the route as the mission says, from where the aircraft stands now.
    fn add_end(&mut self) {
        self.route.truncate(self.waypoints);
        let home = self.telemetry.filter(|t| !t.armed).map(|t| t.position);
        // `MissionExtras::check` has found room.
        let added = self.extras.end.add_to(&mut self.route, home);
        debug_assert!(added.is_ok(), "see MissionExtras::check");
    }

    /// Parts of the route besides its waypoints.
    pub(crate) fn extras(&self) -> &MissionExtras {
        &self.extras
    }

    /// The speed of the leg that it flies or would fly next, metres per second.
    pub(crate) fn planned_speed_m_s(&self) -> f64 {
        self.extras.speed_m_s(self.next_waypoint()).unwrap_or(self.rules.planned_speed_m_s)
    }

    /// What [`crate::Protocol::hold_found`] leads to.
    pub(crate) fn hold_found(&self, now: Instant) -> Option<Transition<F>> {
        let land_at = now + self.rules.hold_before_landing;
        let is_found = self.state == State::Start && self.is_armed();
        is_found.then(|| Transition::ordering(State::Holding { land_at }, Order::Hold))
    }

    /// [`crate::Protocol::take_up`]; `found` is the host's name of the state.
    ///
    /// # Errors
    /// It holds no aircraft that was found in flight, or the route has too few or too many waypoints.
    pub(crate) fn take_up(
        &mut self,
        route: &[Point],
        extras: &MissionExtras,
        reached: Option<u16>,
        found: StateId,
    ) -> Result<(), MissionError> {
        if !matches!(self.state, State::Holding { .. }) || !self.route.is_empty() {
            return Err(MissionError::State { found });
        }
        self.route = checked(route)?;
        self.waypoints = route.len();
        self.extras.clone_from(extras);
        self.reached = reached.filter(|reached| usize::from(*reached) < route.len());
        self.has_begun = true;
        Ok(())
    }

    /// Whether the operator may command this now; `found` is the host's name of the state.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn permits(&self, command: Command, found: StateId) -> Result<(), Denied> {
        match Asked::by(command) {
            Asked::Setup if self.state != State::Start => {
                Err(Denied::State { command, found, expected: StateId::Start })
            }
            Asked::Setup if self.route.is_empty() => Err(Denied::NoMission),
            Asked::Setup => match self.telemetry {
                None => Err(Denied::NoPosition),
                Some(t) => {
                    // With the way to where it lands.
                    let mut route = self.route.clone();
                    route.truncate(self.waypoints);
                    let _ = self.extras.end.add_to(&mut route, Some(t.position));
                    self.rules.fence.check(t.position, &route)?;
                    Ok(self.rules.fence.check_take_off(self.extras.take_off_mm)?)
                }
            },
            Asked::Start if self.state == State::SetupFinished => Ok(()),
            Asked::Start => Err(Denied::State { command, found, expected: StateId::SetupFinished }),
            Asked::Resume => self.permits_resume(found),
            // From the moment that the flight is set up until the aircraft is down, so that a stop overtakes a
            // start; and where motors were armed by hand.
            Asked::End(_) => match self.state {
                State::Start | State::Finished | State::Aborted(_) if !self.is_armed() => {
                    Err(Denied::OnGround { found })
                }
                State::Start
                | State::Setup
                | State::SetupFinished
                | State::TakingOff
                | State::Flying(_)
                | State::Holding { .. }
                | State::Landing
                | State::Finished
                | State::Aborted(_) => Ok(()),
            },
            Asked::Exclude(member) => Err(Denied::NoSwarm(member)),
            Asked::Nothing => Err(Denied::NotTheProtocols),
        }
    }

    /// A flight that was held goes on where it was left, from where it hovers, unless it came down too far for a straight
    /// leg to the next waypoint.
    fn permits_resume(&self, found: StateId) -> Result<(), Denied> {
        let is_held = matches!(self.state, State::Holding { .. } | State::Aborted(EndFlight::Hold));
        // ArduCopter begins a completed mission again, and the report of its last waypoint may have been lost.
        let is_left = self.has_begun
            && self.next_waypoint() < self.route.len()
            && !self.is_at_the_end(self.planned_speed_m_s());
        let Some(telemetry) = self.telemetry.filter(|t| t.armed && is_held && is_left) else {
            return Err(Denied::NotHeld { found });
        };
        let (found_m, least_m) = (telemetry.height_m, self.rules.fence.height_least_m);
        if found_m < least_m { Err(Denied::TooLow { found_m, least_m }) } else { Ok(()) }
    }

    /// Takes what the aircraft reports of itself.
    pub(crate) fn observe(&mut self, now: Instant, input: &Input<'_>) {
        match input {
            Input::Telemetry(telemetry) => {
                (self.telemetry, self.telemetry_at) = (Some(*telemetry), now);
                self.note_stop(now);
            }
            // The way back leads to where the aircraft stands at its setup.
            Input::Operator(Command::Setup) if self.state == State::Start => self.add_end(),
            // Another flies it, maybe far from its route.
            Input::TakenOver(_) => self.has_begun = false,
            Input::Reached(waypoint) if usize::from(*waypoint) < self.route.len() => {
                self.reached = self.reached.max(Some(*waypoint));
            }
            Input::Wake
            | Input::Message { .. }
            | Input::Passed { .. }
            | Input::Operator(_)
            | Input::Reached(_)
            | Input::Done(_)
            | Input::Failed(_)
            | Input::BatteryLow(_) => {}
        }
    }

    /// The transition table of what all hosts have in common: what follows, or nothing where the state stays or
    /// the host decides. `begin` is the host's first state in flight.
    pub(crate) fn next(&self, now: Instant, input: &Input<'_>, begin: F) -> Option<Transition<F>> {
        use State::{Aborted, Finished, Flying, Holding, Landing, Setup, SetupFinished, Start, TakingOff};
        let by_input = match *input {
            Input::Operator(command) => match Asked::by(command) {
                Asked::Setup => {
                    (self.state == Start).then_some(Transition::ordering(Setup, Order::LoadRoute))
                }
                Asked::Start => (self.state == SetupFinished).then(|| {
                    let height_mm = self.take_off_mm();
                    Transition::ordering(TakingOff, Order::FlyRoute { height_mm })
                }),
                Asked::End(end) => Some(Transition::end(end)),
                Asked::Resume => matches!(self.state, Holding { .. } | Aborted(EndFlight::Hold))
                    .then(|| Transition::ordering(Flying(begin), Order::ResumeHeld)),
                Asked::Exclude(_) | Asked::Nothing => None,
            },
            Input::Done(order) => match order {
                Order::LoadRoute => (self.state == Setup).then_some(Transition::to(SetupFinished)),
                Order::FlyRoute { .. } => (self.state == TakingOff).then_some(Transition::to(Flying(begin))),
                Order::TakeOff { .. }
                | Order::FlyTo(_)
                | Order::Resume
                | Order::ResumeHeld
                | Order::Hold
                | Order::Return
                | Order::Land => None,
            },
            Input::Failed(_) => match self.state {
                Setup => Some(Transition::to(Start)),
                TakingOff if self.is_disarmed(now) => Some(Transition::to(SetupFinished)),
                // Its motors may have been started without a report of it: the line was cut.
                TakingOff | Flying(_) => {
                    let land_at = now + self.rules.hold_before_landing;
                    Some(Transition::ordering(Holding { land_at }, Order::Hold))
                }
                // It cannot even do that: there is only the ground.
                Holding { .. } | Aborted(EndFlight::Hold | EndFlight::Return) => {
                    Some(Transition::end(EndFlight::Land))
                }
                Start | SetupFinished | Landing | Finished | Aborted(EndFlight::Land) => None,
            },
            Input::Telemetry(telemetry) if !telemetry.armed => match self.state {
                Landing => Some(Transition::to(Finished)),
                // Down without having been asked: its own failsafe, or a fall.
                Flying(_) | Holding { .. } => Some(Transition::to(Aborted(EndFlight::Land))),
                Start | Setup | SetupFinished | TakingOff | Finished | Aborted(_) => None,
            },
            // The pilot or the failsafe flies it: nothing is ordered.
            Input::TakenOver(end) => Some(Transition::to(Aborted(end))),
            Input::BatteryLow(end) => Some(Transition::end(end)),
            Input::Wake
            | Input::Telemetry(_)
            | Input::Message { .. }
            | Input::Passed { .. }
            | Input::Reached(_) => None,
        };
        by_input.or_else(|| match self.state {
            Holding { land_at } if now >= land_at => Some(Transition::end(EndFlight::Land)),
            Start
            | Setup
            | SetupFinished
            | TakingOff
            | Flying(_)
            | Holding { .. }
            | Landing
            | Finished
            | Aborted(_) => None,
        })
    }

    /// Takes a transition and asks for its order. Whether another state began, for the host to log.
    pub(crate) fn apply(&mut self, next: Option<Transition<F>>, out: &mut Actions) -> bool {
        let Some(Transition { state, order }) = next else { return false };
        let changed = state != self.state;
        // From a return it is not begun again: it avoids on its way.
        let is_returning = self.state == State::Aborted(EndFlight::Return);
        self.has_begun |= matches!(state, State::Flying(_)) && !is_returning && !self.is_flying();
        self.state = state;
        if let Some(order) = order {
            push(out, Action::Order(order));
        }
        changed
    }

    /// How bad it is that an input leads to a state.
    pub(crate) fn severity(input: &Input<'_>, state: State<F>) -> Severity {
        match input {
            Input::Failed(_) => Severity::Error,
            Input::Wake
            | Input::Telemetry(_)
            | Input::Message { .. }
            | Input::Passed { .. }
            | Input::Operator(_)
            | Input::Reached(_)
            | Input::Done(_)
            | Input::TakenOver(_)
            | Input::BatteryLow(_) => match state {
                // Disarmed in the air.
                State::Aborted(_) if matches!(input, Input::Telemetry(t) if !t.armed) => Severity::Error,
                State::Aborted(_) => Severity::Warning,
                State::Start
                | State::Setup
                | State::SetupFinished
                | State::TakingOff
                | State::Flying(_)
                | State::Holding { .. }
                | State::Landing
                | State::Finished => Severity::Info,
            },
        }
    }

    /// When a state without the host's help ends, and why.
    pub(crate) fn poll_timeout(&self) -> (Instant, &'static str) {
        match self.state {
            State::Holding { land_at } => (land_at, "land after a failure"),
            State::Start
            | State::Setup
            | State::SetupFinished
            | State::TakingOff
            | State::Flying(_)
            | State::Landing
            | State::Finished
            | State::Aborted(_) => (Instant::NEVER, "nothing"),
        }
    }

    /// Whether the aircraft is so near to its last waypoint, on the way there at that speed, that the flight controller may
    /// have counted it as reached.
    pub(crate) fn is_at_the_end(&self, speed_m_s: f64) -> bool {
        let (Some(telemetry), Some(last)) = (self.telemetry, self.route.last()) else { return false };
        let last =
            Position { latitude_e7: last.latitude_e7, longitude_e7: last.longitude_e7, altitude_mm: 0 };
        let off_m = Frame::new(last).to_local(telemetry.position).truncate().length();
        let early_m = speed_m_s * speed_m_s / (2.0 * LEAST_BRAKING_M_S2) + REACHED_EARLY_M;
        self.next_waypoint() + 1 >= self.route.len() && off_m < early_m
    }

    /// Whether the route has been flown, by an aircraft that has been on its way since then and stands below
    /// that speed.
    pub(crate) fn is_over(&self, now: Instant, since: Instant, standing_m_s: f64) -> bool {
        let (Some(telemetry), Some(last)) = (self.telemetry, self.route.last()) else { return false };
        let next = self.next_waypoint();
        if next + 1 < self.route.len() {
            return false;
        }
        let last =
            Position { latitude_e7: last.latitude_e7, longitude_e7: last.longitude_e7, altitude_mm: 0 };
        let near = Frame::new(last).to_local(telemetry.position).truncate().length() < AT_THE_END_M;
        let stands = self.speed_m_s() <= standing_m_s && now.since(since) > SETTLED;
        // It may stop short of a waypoint that it reached; and that report may have been lost.
        if next >= self.route.len() { near || stands } else { near && stands && self.has_held(now) }
    }

    /// Whether the hold at the last waypoint is over, of an aircraft that stands there: the report comes after the hold.
    fn has_held(&self, now: Instant) -> bool {
        let hold = self.extras.hold(self.route.len().saturating_sub(1));
        hold.is_zero() || self.at_last_since.is_some_and(|since| now.since(since) > hold + SETTLED)
    }

    /// Notes since when the aircraft stands at its last waypoint.
    fn note_stop(&mut self, now: Instant) {
        let hold = self.extras.hold(self.route.len().saturating_sub(1));
        if hold.is_zero() {
            return;
        }
        let stands = self.next_waypoint() + 1 >= self.route.len()
            && self.is_at_the_end(0.0)
            && self.speed_m_s() < STANDS_M_S;
        self.at_last_since = if stands { self.at_last_since.or(Some(now)) } else { None };
    }

    /// The height above home at which the take-off ends, millimetres.
    fn take_off_mm(&self) -> i32 {
        match self.extras.take_off_mm {
            0 => self.route.first().map_or(0, |w| w.height_mm),
            stated => stated,
        }
    }

    /// Name of the state; the host names its own.
    pub(crate) fn id(&self, flying: StateId) -> StateId {
        match self.state {
            State::Start => StateId::Start,
            State::Setup => StateId::Setup,
            State::SetupFinished => StateId::SetupFinished,
            State::TakingOff => StateId::TakingOff,
            State::Flying(_) => flying,
            State::Holding { .. } => StateId::Holding,
            State::Landing => StateId::Landing,
            State::Finished => StateId::Finished,
            State::Aborted(_) => StateId::Aborted,
        }
    }

    /// What the flight shows of itself, by the host's names of its own states.
    pub(crate) fn view(&self, flying: StateId, phase: Phase) -> View {
        View::alone(self.id(flying), self.phase(phase)).on_route(&self.route, self.reached)
    }

    /// How far the flight has come; the host gives it for its own states.
    pub(crate) fn phase(&self, flying: Phase) -> Phase {
        match self.state {
            State::Start => Phase::Start,
            State::Setup | State::TakingOff => Phase::Preparing,
            State::SetupFinished => Phase::Ready,
            State::Flying(_) => flying,
            State::Landing => Phase::Ending,
            State::Finished => Phase::Finished,
            State::Holding { .. } | State::Aborted(_) => Phase::Aborted,
        }
    }

    /// One line: what the aircraft does or waits for; the host gives it for its own states.
    pub(crate) fn detail(&self, flying: impl FnOnce() -> Text) -> Text {
        match self.state {
            State::Start if self.route.is_empty() => text!("waiting for a mission"),
            State::Start => text!("waiting for setup"),
            State::Setup => text!("loading the mission into the flight controller"),
            State::SetupFinished => text!("the flight controller holds the mission"),
            State::TakingOff if !self.is_armed() => text!("reading the mission back, then arming"),
            State::TakingOff => text!("climbing"),
            State::Flying(_) => flying(),
            State::Holding { .. } => text!("holding, then landing"),
            State::Landing => text!("the mission is over: landing"),
            State::Finished => text!("mission completed, landed"),
            State::Aborted(_) if !self.is_armed() => text!("on the ground"),
            State::Aborted(EndFlight::Hold) => text!("holding"),
            State::Aborted(EndFlight::Return) => text!("returning to launch"),
            State::Aborted(EndFlight::Land) => text!("landing"),
        }
    }

    /// One line: which waypoint it flies to.
    pub(crate) fn progress(&self) -> Text {
        text!("waypoint {} of {}", self.next_waypoint().min(self.route.len()), self.route.len())
    }
}

#[cfg(test)]
mod tests {
    use wingbeat_geo::DVec3;

    use super::*;

    const HOME: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 0 };
    const NOW: Instant = Instant::from_secs(100);
    const HOLDING: State<()> = State::Holding { land_at: Instant::from_secs(160) };
    const CLIMB: Order = Order::FlyRoute { height_mm: 20_000 };

    const STATES: [State<()>; 11] = [
        State::Start,
        State::Setup,
        State::SetupFinished,
        State::TakingOff,
        State::Flying(()),
        HOLDING,
        State::Landing,
        State::Finished,
        State::Aborted(EndFlight::Hold),
        State::Aborted(EndFlight::Return),
        State::Aborted(EndFlight::Land),
    ];

    fn point(north_m: f64) -> Point {
        let at = Frame::new(HOME).to_position(DVec3::new(0.0, north_m, 0.0));
        Point { latitude_e7: at.latitude_e7, longitude_e7: at.longitude_e7, height_mm: 20_000 }
    }

    fn telemetry(north_m: f64, speed_m_s: f64, armed: bool) -> Telemetry {
        Telemetry {
            position: Frame::new(HOME).to_position(DVec3::new(0.0, north_m, 0.0)),
            height_m: 20.0,
            velocity_m_s: DVec3::Y * speed_m_s,
            heading_rad: 0.0,
            armed,
            landing: false,
            is_located: true,
        }
    }

    /// A flight in a state, with a route of three waypoints to the north.
    fn flight(state: State<()>, armed: bool) -> RouteFlight<()> {
        let rules = Rules {
            fence: Fence::default(),
            hold_before_landing: Duration::from_secs(60),
            planned_speed_m_s: 5.0,
        };
        let mut flight = RouteFlight::new(rules);
        flight.set_route(&[0.0, 100.0, 200.0].map(point), MissionExtras::NONE, StateId::Start).unwrap();
        flight.observe(NOW, &Input::Telemetry(telemetry(0.0, 0.0, armed)));
        flight.state = state;
        flight
    }

    fn next(state: State<()>, armed: bool, input: &Input<'_>) -> Option<Transition<()>> {
        flight(state, armed).next(NOW, input, ())
    }

    #[test]
    fn a_flight_that_goes_well_passes_its_states_in_order() {
        let steps = [
            (State::Start, Input::Operator(Command::Setup), State::Setup, Some(Order::LoadRoute)),
            (State::Setup, Input::Done(Order::LoadRoute), State::SetupFinished, None),
            (State::SetupFinished, Input::Operator(Command::Start), State::TakingOff, Some(CLIMB)),
            (State::TakingOff, Input::Done(CLIMB), State::Flying(()), None),
            (State::Landing, Input::Telemetry(telemetry(200.0, 0.0, false)), State::Finished, None),
        ];
        for (state, input, to, order) in steps {
            assert_eq!(next(state, true, &input), Some(Transition { state: to, order }), "{input:?}");
            // In every other state the same is nothing, or the end of a flight that fell.
            for other in STATES.into_iter().filter(|other| *other != state) {
                let to = next(other, true, &input).map(|transition| transition.state);
                assert!(matches!(to, None | Some(State::Aborted(EndFlight::Land))), "{other:?}, {input:?}");
            }
        }
    }

    #[test]
    fn a_failed_order_goes_back_on_the_ground_holds_in_the_air_and_lands_where_holding_failed() {
        let failed = Input::Failed(Order::Hold);
        let ordered = |state, order| Some(Transition::ordering(state, order));
        let lands = ordered(State::Aborted(EndFlight::Land), Order::Land);
        for (state, armed, expected) in [
            (State::Setup, false, Some(Transition::to(State::Start))),
            (State::TakingOff, false, Some(Transition::to(State::SetupFinished))),
            (State::TakingOff, true, ordered(HOLDING, Order::Hold)),
            (State::Flying(()), true, ordered(HOLDING, Order::Hold)),
            (HOLDING, true, lands),
            (State::Aborted(EndFlight::Hold), true, lands),
            (State::Aborted(EndFlight::Return), true, lands),
            (State::Aborted(EndFlight::Land), true, None),
            (State::Landing, true, None),
            (State::Start, false, None),
        ] {
            assert_eq!(next(state, armed, &failed), expected, "{state:?}, armed: {armed}");
        }
        // Without a report since, the motors may run.
        let silent = NOW + Duration::from_secs(30);
        let found = flight(State::TakingOff, false).next(silent, &failed, ());
        let land_at = silent + Duration::from_secs(60);
        assert_eq!(found, ordered(State::Holding { land_at }, Order::Hold));
        // Without a decision it lands at the end of the hold, and not before.
        let mut held = flight(HOLDING, true);
        assert_eq!(held.poll_timeout().0, Instant::from_secs(160));
        assert_eq!(held.next(Instant::from_secs(159), &Input::Wake, ()), None);
        let next = held.next(Instant::from_secs(160), &Input::Wake, ());
        assert_eq!(next, lands);
        let mut out = Actions::new();
        assert!(held.apply(next, &mut out) && held.poll_timeout().0 == Instant::NEVER);
        assert_eq!(out.len(), 1, "one order");
    }

    #[test]
    fn one_that_is_found_in_flight_holds_is_resumed_where_it_was_and_lands_otherwise() {
        let found = StateId::Flying;
        let route = [0.0, 100.0, 200.0].map(point);
        let resume = |flight: &RouteFlight<()>| flight.permits(Command::Resume, found);
        let rules = Rules {
            fence: Fence::default(),
            hold_before_landing: Duration::from_secs(60),
            planned_speed_m_s: 5.0,
        };
        let in_the_air = |armed| {
            let mut flight: RouteFlight<()> = RouteFlight::new(rules);
            flight.observe(NOW, &Input::Telemetry(telemetry(50.0, 0.0, armed)));
            flight
        };
        assert_eq!(in_the_air(false).hold_found(NOW), None, "it stands");
        assert_eq!(
            in_the_air(true).take_up(&route, MissionExtras::NONE, None, found),
            Err(MissionError::State { found })
        );
        let mut held = in_the_air(true);
        let next = held.hold_found(NOW);
        assert_eq!(next, Some(Transition::ordering(HOLDING, Order::Hold)));
        held.apply(next, &mut Actions::new());
        assert_eq!(held.hold_found(NOW), None, "once");
        assert_eq!(resume(&held), Err(Denied::NotHeld { found }), "its route is not known");
        assert_eq!(
            held.take_up(&route[..1], MissionExtras::NONE, None, found),
            Err(MissionError::Waypoints { found: 1 })
        );
        assert_eq!(held.take_up(&route, MissionExtras::NONE, Some(0), found), Ok(()));
        assert_eq!((resume(&held), held.next_waypoint()), (Ok(()), 1));
        assert_eq!(
            held.take_up(&route, MissionExtras::NONE, Some(0), found),
            Err(MissionError::State { found }),
            "once"
        );
        let resumed = held.next(NOW, &Input::Operator(Command::Resume), ());
        assert_eq!(resumed, Some(Transition::ordering(State::Flying(()), Order::ResumeHeld)));
        let landed = held.next(Instant::from_secs(160), &Input::Wake, ());
        assert_eq!(landed, Some(Transition::end(EndFlight::Land)));
        // At the end of its route it lands, and does not begin it again.
        for (reached, north_m) in [(Some(2), 50.0), (Some(1), 199.0)] {
            let mut held = in_the_air(true);
            held.observe(NOW, &Input::Telemetry(telemetry(north_m, 0.0, true)));
            held.apply(held.hold_found(NOW), &mut Actions::new());
            held.take_up(&route, MissionExtras::NONE, reached, found).unwrap();
            assert_eq!(resume(&held), Err(Denied::NotHeld { found }), "{reached:?}");
        }
    }

    #[test]
    fn a_stop_ends_what_is_set_up_or_armed_and_is_refused_on_the_ground() {
        let found = StateId::Flying;
        for (end, command) in EndFlight::ALL.into_iter().zip([Command::Hold, Command::Return, Command::Land])
        {
            for state in STATES {
                let is_down = matches!(state, State::Start | State::Finished | State::Aborted(_));
                let expected = if is_down { Err(Denied::OnGround { found }) } else { Ok(()) };
                assert_eq!(flight(state, false).permits(command, found), expected, "{state:?}");
                assert_eq!(flight(state, true).permits(command, found), Ok(()), "{state:?}, armed");
                let stopped = next(state, true, &Input::Operator(command));
                assert_eq!(stopped, Some(Transition::end(end)), "{state:?}");
                let taken = next(state, true, &Input::TakenOver(end));
                assert_eq!(taken, Some(Transition::to(State::Aborted(end))), "no order for {state:?}");
            }
        }
    }

    #[test]
    fn the_route_is_over_near_its_end_or_standing_and_never_before_the_last_leg() {
        // The last waypoint reached, how far north, how fast, since when.
        for (reached, north_m, speed_m_s, since_s, is_over) in [
            (Some(2), 198.5, 5.0, 1, true),
            (Some(2), 150.0, 0.1, 11, true),
            (Some(2), 150.0, 0.1, 9, false),
            (Some(2), 150.0, 5.0, 11, false),
            (Some(1), 198.5, 0.1, 11, true),
            (Some(1), 198.5, 5.0, 11, false),
            (Some(1), 150.0, 0.1, 11, false),
            (Some(0), 199.0, 0.1, 60, false),
            (None, 199.0, 0.1, 60, false),
        ] {
            let mut flight = flight(State::Flying(()), true);
            if let Some(waypoint) = reached {
                flight.observe(NOW, &Input::Reached(waypoint));
            }
            flight.observe(NOW, &Input::Reached(3)); // the route has no such waypoint
            flight.observe(NOW, &Input::Telemetry(telemetry(north_m, speed_m_s, true)));
            let now = Instant::from_secs(since_s);
            let found = flight.is_over(now, Instant::ZERO, 0.6);
            assert_eq!(found, is_over, "{reached:?}, {north_m} m, {speed_m_s} m/s, {since_s} s");
        }
    }

    #[test]
    fn a_route_is_taken_at_the_start_and_has_two_waypoints() {
        let found = StateId::Setup;
        let mut start = flight(State::Start, false);
        assert_eq!(
            start.set_route(&[point(0.0)], MissionExtras::NONE, found),
            Err(MissionError::Waypoints { found: 1 })
        );
        assert_eq!(start.set_route(&[0.0, 9.0].map(point), MissionExtras::NONE, found), Ok(()));
        assert_eq!(start.route().len(), 2);
        let mut later = flight(State::Setup, false);
        assert_eq!(
            later.set_route(&[0.0, 9.0].map(point), MissionExtras::NONE, found),
            Err(MissionError::State { found })
        );
    }

    #[test]
    fn a_take_off_above_or_below_the_fence_is_not_set_up() {
        let found = StateId::Start;
        for (take_off_mm, problem) in [(0, None), (120_000, None), (500_000, Some(500.0)), (1_500, Some(1.5))]
        {
            let mut start = flight(State::Start, false);
            let mut extras = MissionExtras::default();
            extras.take_off_mm = take_off_mm;
            start.set_route(&[0.0, 9.0].map(point), &extras, found).unwrap();
            let denied = start.permits(Command::Setup, found).err();
            let expected = problem.map(|found_m| {
                Denied::Fence(crate::FenceError::TakeOff { found_m, least_m: 2.0, most_m: 120.0 })
            });
            assert_eq!(denied, expected, "{take_off_mm} mm");
        }
    }

    #[test]
    fn what_nobody_asked_for_is_an_error_and_what_was_asked_for_a_warning() {
        let aborted = State::Aborted(EndFlight::Land);
        for (input, state, severity) in [
            (Input::Failed(Order::Hold), HOLDING, Severity::Error),
            (Input::Telemetry(telemetry(0.0, 0.0, false)), aborted, Severity::Error),
            (Input::Telemetry(telemetry(0.0, 0.0, true)), aborted, Severity::Warning),
            (Input::Operator(Command::Land), aborted, Severity::Warning),
            (Input::Operator(Command::Setup), State::Setup, Severity::Info),
        ] {
            assert_eq!(RouteFlight::severity(&input, state), severity, "{input:?}");
        }
    }
}
