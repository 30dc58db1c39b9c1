//! An agent that begins while its aircraft flies.
//!
//! It reads from the flight controller what is known there: mode and position from telemetry, the
//! mission and its current item. A pilot's aircraft it asks nothing. Where the guardian gave the
//! aircraft back on its route ([`Before::OnRoute`]) and the mission that is read is that route, the
//! flight goes on; one of a swarm is handed to its protocol, which rejoins the flight that it was
//! told of ([`crate::Input::Flight`]). In every other case nothing is ordered, or, where the
//! guardian has left the aircraft to this agent, it lands; an aircraft of a swarm on its way to a
//! target in GUIDED brakes:
//!
//! ```text
//! first heartbeat ─▶ AwaitingPosition ─first position: holds─▶ Reading ─the route of before─▶ Listening ─▶ resumed
//!                          │ none for 10 s                        │ another, or not read        │ a check fails until the
//!                          ▼                                      ▼                             ▼ hold is over
//!                         lands                       holds, then lands (the protocol's Holding)
//! ```
//!
//! Nothing of the avoidance before the restart is used: the protocol begins with an empty table of neighbours, and receives for
//! [`LISTENS`] what they broadcast before it moves.

use core::num::NonZeroU64;

use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::MavMessage;
use wingbeat_autopilot::mission::ReadBack;
use wingbeat_autopilot::{Failure, Progress, Transmit};
use wingbeat_geo::{Duration, Instant, Position};
use wingbeat_protocol::{
    Action, Actions, Command, FlightRecord, Input, LISTENS, MissionExtras, Order, Phase, Severity, StateId,
    Text, text,
};
use wingbeat_wire::Point;

use crate::executor::Executor;
use crate::given::Given;
use crate::guardian::{Before, Modes};
use crate::status::Check;
use crate::{Agent, Coordination, Outputs};

/// An aircraft whose position is not reported for so long lands.
const POSITION_WITHIN: Duration = Duration::from_secs(10);

/// An agent that begins in flight knows no flight: its number, this aircraft's slot and how far the swarm is were the memory of
/// the one before, and the others have gone on without it and keep clear of where it may be.
const NOT_REJOINING: &str =
    "not rejoining: the flight before the restart is not known here; Hold, Return and Land are obeyed";

/// How far it has come.
#[derive(Default)]
enum Stage {
    /// Nothing is read, or not any more.
    #[default]
    Idle,
    /// The guardian gave the aircraft back, and no position was reported yet.
    AwaitingPosition {
        /// Until when.
        by: Instant,
    },
    /// The mission is read, by the executor.
    Reading,
    /// It is the route of before, and others are received.
    Listening,
    /// The mission is known.
    Read,
    /// It is not taken up, for this reason.
    Refused(Why),
}

/// Why a flight is not taken up.
#[derive(Clone, Copy)]
enum Why {
    Protocol,
    NotRead,
    Another,
    NoItem,
    AtTheEnd,
    NoPosition,
}

impl Why {
    const fn text(self) -> &'static str {
        match self {
            Self::Protocol => "it is no flight that is known here",
            Self::NotRead => "the mission was not read back",
            Self::Another => "the mission is not the one that it was left on",
            Self::NoItem => "the flight controller is at no item of its mission",
            Self::AtTheEnd => "it stands at the end of its mission, or too low",
            Self::NoPosition => "no position is reported",
        }
    }
}

/// What is known of a flight that began before this agent.
#[derive(Default)]
pub(crate) struct Rejoin {
    stage: Stage,
    /// The hash of the route on which the guardian gave the aircraft back: this agent answers for it.
    left_on: Option<NonZeroU64>,
    /// Until when others are received.
    listens_until: Instant,
    /// The current item of the mission, by the last report.
    item: Option<u16>,
    /// Whether the agent's mission is what was found in the flight controller, which no operator handed over.
    is_found: bool,
    /// Whether what was handed over differs from what the flight controller holds.
    differs: bool,
}

impl Rejoin {
    /// Nothing is taken up any more.
    pub(crate) fn stop(&mut self) {
        (self.stage, self.left_on) = (Stage::Idle, None);
    }

    /// Whether the aircraft is to be succeeded by the guardian if this agent dies.
    pub(crate) fn answers(&self) -> bool {
        self.left_on.is_some()
    }

    /// Notes the current item of the mission, in whatever mode.
    pub(crate) fn on_item(&mut self, item: u16) {
        self.item = Some(item);
    }

    /// Takes the autopilot's side of the reading; the items go to `mission`.
    pub(crate) fn on_message(
        &mut self,
        now: Instant,
        message: &MavMessage,
        job: &mut ReadBack,
        mission: &mut Given,
    ) {
        let (is_found, differs) = (self.is_found, &mut self.differs);
        job.on_message(now, message, |index, item| {
            if is_found {
                mission.take_found(index, item);
            } else {
                *differs |= !mission.is_held(index, item);
            }
        });
    }

    /// When it wants polling.
    pub(crate) fn due(&self) -> Instant {
        match &self.stage {
            Stage::AwaitingPosition { by } => *by,
            Stage::Idle | Stage::Reading | Stage::Listening | Stage::Read | Stage::Refused(_) => {
                Instant::NEVER
            }
        }
    }

    /// Sends what is due. Returns how the reading ended, with the number of items after the take-off.
    pub(crate) fn poll(
        &self,
        now: Instant,
        executor: &mut Executor,
        transmit: &mut Transmit<'_>,
    ) -> Option<Result<usize, Failure>> {
        let Stage::Reading = self.stage else { return None };
        let job = executor.reading(now)?;
        match job.poll(now, transmit) {
            Progress::Pending => None,
            Progress::Done => Some(Ok(job.items().unwrap_or_default())),
            Progress::Failed(failure) => Some(Err(failure)),
        }
    }

    /// The waypoint of `mission` that was reached last, by the current item.
    fn reached(&self, mission: &Given) -> Option<u16> {
        mission.reached_before(self.item?)
    }
}

impl Agent {
    /// The guardian gave the aircraft back on its route, and the first heartbeat shows it in a mode of ours.
    pub(crate) fn answer_for(&mut self, now: Instant, mode: Mode, route: u64) {
        self.executor.adopt(mode);
        self.rejoin.left_on = NonZeroU64::new(route);
        self.rejoin.stage = Stage::AwaitingPosition { by: now + POSITION_WITHIN };
    }

    /// Whether it was in the air when this agent began, and no order has changed that.
    pub(crate) fn was_found_in_flight(&self) -> bool {
        let view = self.protocol.view();
        self.authority.is_ours() && self.telemetry.armed && view.phase == Phase::Start && !view.is_piloted
    }

    /// With the first position: what was found. The mission is read; an aircraft that this agent answers for holds meanwhile.
    pub(crate) fn report_found_in_flight(&mut self, now: Instant, at: Position, out: &mut Outputs) {
        if !self.was_found_in_flight() {
            return;
        }
        let (mode, height_m) =
            (self.telemetry.mode().map_or("an unknown mode", Mode::name), self.telemetry.height_m);
        let (latitude, longitude) = (at.latitude_deg(), at.longitude_deg());
        out.log(
            Severity::Warning,
            text!("in flight when first received: {mode}, {height_m:.1} m above home, at {latitude:.6} {longitude:.6}"),
        );
        let mut actions = Actions::new();
        if let Some(left_on) = self.rejoin.left_on
            && self.protocol.rejoin(now, left_on.get(), &mut actions)
        {
            // From here on it is the protocol's: it holds, receives the others, and flies on.
            self.rejoin.stop();
            self.perform(now, &actions, out);
            return;
        }
        // The flight that is on record is another: nothing of it counts for how this one ends.
        self.protocol.remember(now, None);
        self.rejoin.is_found = self.mission.is_empty();
        self.rejoin.differs = false;
        self.rejoin.stage = Stage::Reading;
        self.rejoin.listens_until = now + LISTENS;
        if !self.rejoin.answers() {
            self.stop_found(now, out);
            return out.log(Severity::Warning, text!("{NOT_REJOINING}"));
        }
        self.protocol.hold_found(now, &mut actions);
        self.perform(now, &actions, out);
        out.log(
            Severity::Warning,
            text!("left on its route by the daemon before: holds, and reads the mission"),
        );
        if self.protocol.view().state != StateId::Holding {
            self.refuse_flight(now, Why::Protocol, out);
        }
    }

    /// Stops an aircraft of a swarm that flies to a target of the flight before the restart: its
    /// autopilot flies there whatever is in the way, and others that keep clear of a silent
    /// aircraft may have stopped there.
    fn stop_found(&mut self, now: Instant, out: &mut Outputs) {
        let is_of_swarm = match self.config.coordination {
            Coordination::Muscop(_) | Coordination::FollowMe(_) => true,
            Coordination::Mission(_) | Coordination::Mbcap(_) | Coordination::Sweep(_) => false,
        };
        if !is_of_swarm || self.telemetry.mode() != Some(Mode::Guided) {
            return;
        }
        let mut actions = Actions::new();
        let _ = actions.push(Action::Order(Order::Hold));
        self.perform(now, &actions, out);
        out.log(
            Severity::Warning,
            text!("on its way to a target that is not known here: brakes; command Return or Land"),
        );
    }

    /// What the flight of before was.
    pub(crate) fn remember_flight(&mut self, now: Instant, record: &FlightRecord, out: &mut Outputs) {
        if self.telemetry.system_id.is_some() || !self.protocol.remember(now, Some(record)) {
            let flight = record.flight;
            out.log(
                Severity::Warning,
                text!("the record of flight {flight:08x} is another aircraft's, or another configuration's: not used"),
            );
        }
    }

    /// With the first heartbeat: unless this agent answers for the aircraft, the flight of before is over.
    pub(crate) fn forget_flight(&mut self, now: Instant) {
        if !self.rejoin.answers() {
            self.protocol.remember(now, None);
        }
    }

    /// The reading has ended.
    pub(crate) fn on_mission_read(
        &mut self,
        now: Instant,
        result: Result<usize, Failure>,
        out: &mut Outputs,
    ) {
        let items = match result {
            Ok(items) => items,
            Err(failure) => {
                self.executor.end_reading();
                if core::mem::take(&mut self.rejoin.is_found) {
                    self.mission.clear();
                }
                out.log(Severity::Error, text!("the mission was not read back: {failure}"));
                return self.refuse_flight(now, Why::NotRead, out);
            }
        };
        if self.rejoin.is_found {
            self.mission.end_found();
        }
        let is_one = !self.rejoin.differs && self.mission.items() == Some(items);
        let waypoints = self.mission.route().len();
        let hash = self.executor.reading_begun().map_or(0, |read| read.held());
        let item =
            self.rejoin.item.map_or(text!("an item that is not known yet"), |item| text!("item {item}"));
        let what = match (self.rejoin.is_found, is_one) {
            (true, _) => text!("mission {hash:016x}"),
            (false, true) => text!("the mission that was handed over, {hash:016x}"),
            (false, false) => text!("another mission than was handed over"),
        };
        out.log(
            Severity::Warning,
            text!("the flight controller holds {what}: {waypoints} waypoints, at {item}"),
        );
        self.executor.end_reading();
        self.rejoin.stage = Stage::Read;
        let Some(left_on) = self.rejoin.left_on else { return };
        if !is_one || hash != left_on.get() {
            return self.refuse_flight(now, Why::Another, out);
        }
        self.rejoin.stage = Stage::Listening;
    }

    /// It is not taken up: an aircraft that holds lands when its hold is over, and one that this agent answers for and that does
    /// not hold lands now.
    fn refuse_flight(&mut self, now: Instant, why: Why, out: &mut Outputs) {
        self.rejoin.stage = Stage::Refused(why);
        if self.rejoin.left_on.take().is_none() {
            return;
        }
        let holds = self.protocol.view().state == StateId::Holding;
        let then = if holds { "holds, then lands" } else { "lands" };
        out.log(Severity::Error, text!("the flight is not taken up: {}; {then}", why.text()));
        if !holds {
            self.protocol_input(now, Input::Operator(Command::Land), out);
        }
    }

    /// With each position: others have been received for long enough, and what a flight relies on holds.
    pub(crate) fn go_on(&mut self, now: Instant, out: &mut Outputs) {
        if !self.rejoin.answers() || self.rejoin.is_waiting() {
            return;
        }
        // The operator, the battery or the end of the hold has decided.
        if self.protocol.view().state != StateId::Holding {
            return self.rejoin.stop();
        }
        let Stage::Listening = self.rejoin.stage else { return };
        if now < self.rejoin.listens_until
            || self.executor.is_busy()
            || self.failed_check(now, Command::Resume).is_some()
        {
            return;
        }
        // It is reported less often than a short mission takes to be read.
        if self.rejoin.item.is_none_or(|item| item == 0) {
            return self.refuse_flight(now, Why::NoItem, out);
        }
        let reached = self.rejoin.reached(&self.mission);
        let taken = self.protocol.take_up(self.mission.route(), self.mission.extras(), reached);
        if taken.is_err() || self.protocol.permits(Command::Resume).is_err() {
            return self.refuse_flight(now, Why::AtTheEnd, out);
        }
        let waypoint = reached.map_or(0, |reached| reached + 1);
        out.log(Severity::Warning, text!("the flight is taken up: on to waypoint {waypoint} of its mission"));
        self.route_hash = self.rejoin.left_on.map_or(0, NonZeroU64::get);
        // It is the mission of this flight, as if it had been handed over.
        self.rejoin = Rejoin::default();
        self.protocol_input(now, Input::Operator(Command::Resume), out);
    }

    /// No position was reported in time.
    pub(crate) fn await_position(&mut self, now: Instant, out: &mut Outputs) {
        if matches!(self.rejoin.stage, Stage::AwaitingPosition { by } if now >= by) {
            self.refuse_flight(now, Why::NoPosition, out);
        }
    }

    /// What stands in the status of a flight that is not, or not yet, taken up.
    pub(crate) fn rejoin_line(&self, now: Instant) -> Option<Text> {
        let holds = self.protocol.view().state == StateId::Holding;
        match &self.rejoin.stage {
            _ if !self.authority.is_ours() || !self.telemetry.armed => None,
            Stage::AwaitingPosition { .. } => Some(text!("found on its route: waits for its position")),
            Stage::Reading if self.rejoin.answers() => {
                Some(text!("found on its route: holds, reads the mission back"))
            }
            Stage::Listening if now < self.rejoin.listens_until => {
                Some(text!("found on its route: holds, receives others before it goes on"))
            }
            Stage::Listening => Some(match self.failed_check(now, Command::Resume) {
                Some(Check { name, detail, .. }) => text!("found on its route: holds; {name}: {detail}"),
                None => text!("found on its route: goes on"),
            }),
            Stage::Refused(why) if holds => Some(text!("not taken up: {}; holds, then lands", why.text())),
            Stage::Idle | Stage::Reading | Stage::Read | Stage::Refused(_) => {
                self.was_found_in_flight().then(|| text!("{NOT_REJOINING}"))
            }
        }
    }

    /// The route of the status: that of the protocol, or the one that was found in the flight controller, with the waypoint
    /// that was reached last.
    pub(crate) fn shown_route(&self) -> (&[Point], Option<u16>) {
        let route = self.protocol.route();
        let is_read = matches!(self.rejoin.stage, Stage::Read | Stage::Listening | Stage::Refused(_));
        if route.is_empty() && self.rejoin.is_found && is_read && self.telemetry.armed {
            let route = self.mission.route();
            let reached = self.rejoin.reached(&self.mission);
            return (route, reached.filter(|reached| usize::from(*reached) < route.len()));
        }
        (route, self.protocol.view().reached)
    }

    /// The parts of the route of the status besides its waypoints.
    pub(crate) fn shown_extras(&self) -> &MissionExtras {
        let is_own = self.protocol.route().is_empty() && !self.shown_route().0.is_empty();
        if is_own { self.mission.extras() } else { self.protocol.extras() }
    }

    /// What the guardian is to know of an aircraft that this agent answers for and has not received yet.
    pub(crate) fn given_back(&self) -> Option<Modes> {
        match self.before {
            Before::OnRoute { modes, .. } => Some(modes),
            Before::Unknown | Before::Ours(_) | Before::Failsafe(_) | Before::Pilot => None,
        }
    }

    /// A mission that was found and that no operator handed over is not flown on another flight.
    pub(crate) fn forget_found(&mut self) {
        if core::mem::take(&mut self.rejoin).is_found {
            self.mission.clear();
        }
    }
}

impl Rejoin {
    fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::AwaitingPosition { .. })
    }
}
