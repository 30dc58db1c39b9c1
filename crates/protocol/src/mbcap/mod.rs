//! MBCAP and MBCAP-e: collision avoidance between aircraft of different owners, each on its own planned
//! mission (thesis chapter 5).
//!
//! Every aircraft broadcasts five times a second where it is and where it will be. An aircraft that finds that
//! another will be at the same place at the same time stops; the one with the lower id gives way, aside if it
//! stands in the other's path; the one with the higher id passes; both continue.
//!
//! ```text
//! Normal ─risk (a)▶ StandStill ─lower id, in the way (d)▶ MovingAside ─there (e)▶ GoOnPlease
//!                   StandStill ─lower id, not in the way (c)──────────────────▶ GoOnPlease
//!                   StandStill ─higher id, the other gives way (h)▶ Overtaking ─past it (i)▶ Normal
//! GoOnPlease ─the other has passed (f)▶ Normal      StandStill ─the other lands (j)▶ Normal
//! StandStill, MovingAside or GoOnPlease for too long ▶ EmergencyLand (g); of two that do not receive each other
//! the lower waits (GoOnPlease) and lands, the higher passes where the other can no longer be ([`silent`])
//! ```
//!
//! Before and after its mission, and after a failure, the aircraft flies as every other does ([`crate::flight`]); it
//! broadcasts until its motors stop. One that was ordered home avoids on its way too. What follows from what
//! is one function that reads and never writes (`decide`); this file acts on it. Detection is [`risk`], prediction
//! [`predict`], the position aside [`aside`]. What the sources leave open or state differently is decided in
//! `docs/protocols/mbcap.md`.

mod alone;
pub mod aside;
mod beacon;
pub mod config;
mod decide;
mod kept;
mod moved;
mod neighbours;
mod overflown;
pub mod predict;
mod radio;
pub mod risk;
mod silent;
pub mod state;

#[cfg(test)]
mod tests;

pub use config::Config;
pub use state::{Avoiding, Conflict};

use core::mem::discriminant;
use serde::{Deserialize, Serialize};

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use wingbeat_geo::{DVec2, DVec3, Duration, Frame, Instant, Position};
use wingbeat_wire::{Beacon, Message, Point, Refused, VehicleId};

use crate::accuracy::Accuracy;
use crate::flight::{self, AT_THE_END_M, RouteFlight, Rules};
use crate::{
    Action, Actions, AvoidanceView, Command, Denied, Details, EndFlight, Fence, Handling, Input, MOVES_M_S,
    Measured, MissionError, MissionExtras, Order, Phase, Protocol, Severity, StateId, Telemetry, Text, View,
    push, text,
};
use beacon::{LastBeacon, LastCourse};
use config::AsideTests;
use decide::{Outcome, Step, Trigger};
use neighbours::Neighbours;
use predict::{Acceleration, Trail, Waypoints};
use radio::Evidence;

pub use wingbeat_wire::Avoidance;

/// States: those of every flight, and in the air those of the avoidance.
pub type State = flight::State<Avoiding>;

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Stops because of a risk.
    pub stops: u32,
    /// Times that it moved aside.
    pub asides: u32,
    /// Deadlocks after which the aircraft continued.
    pub deadlocks_solved: u32,
    /// Deadlocks that it ended by landing.
    pub deadlocks_failed: u32,
}

/// MBCAP on one aircraft.
pub struct Mbcap {
    config: Config,
    flight: RouteFlight<Avoiding>,
    local: Option<Local>,
    motion: Motion,
    neighbours: Neighbours,
    /// Conflicts solved: an aircraft that waits for us continues when it grows.
    event: u16,
    /// The other side of the conflict solved last causes no new one until then.
    ignored: Option<(VehicleId, Instant)>,
    /// The neighbour checked last ([`config::AsideTests::LastScanned`]).
    last_scanned: Option<VehicleId>,
    last_beacon: LastBeacon,
    last_course: LastCourse,
    /// When the motors stopped: others are told that it is down.
    disarmed_at: Option<Instant>,
    /// It flies home by an order whose effect was seen, or stands because of a conflict on that way.
    returning: Option<Returning>,
    /// When it began to wait for a silent aircraft, over all that it does because of that one.
    alone_since: Option<Instant>,
    accuracy: Accuracy,
    /// The velocity of the air that the flight controller measures, metres per second east and
    /// north.
    air_m_s: Option<DVec2>,
    beacon_at: Instant,
    check_at: Instant,
    tally: Tally,
    evidence: Evidence,
}

/// An aircraft that resumes its mission for less than this time between two waits for silent
/// aircraft has not passed them.
const WAITS_AGAIN_WITHIN: Duration = Duration::from_secs(30);

/// The way home.
#[derive(Clone, Copy, Debug)]
struct Returning {
    /// Undisturbed since then, or in conflict.
    since: Instant,
    /// How long its conflicts before have lasted.
    stood: Duration,
}

/// The local frame of a flight, made at its start.
struct Local {
    frame: Frame,
    /// Heights above home become altitudes.
    home_mm: i32,
    /// Height of home in the frame, metres.
    ground_m: f64,
    /// Whether the flight began at its origin, which is home then.
    is_at_home: bool,
}

impl Local {
    fn new(telemetry: &Telemetry, is_at_home: bool) -> Self {
        let at = telemetry.position;
        let home_mm = at.altitude_mm.saturating_sub(libm::round(telemetry.height_m * 1e3) as i32);
        Self { frame: Frame::new(at), home_mm, ground_m: -telemetry.height_m, is_at_home }
    }
    fn of(&self, waypoint: &Point) -> DVec3 {
        self.frame.to_local(Position {
            latitude_e7: waypoint.latitude_e7,
            longitude_e7: waypoint.longitude_e7,
            altitude_mm: waypoint.height_mm.saturating_add(self.home_mm),
        })
    }
}

/// Where the flight leads, in the local frame.
enum Way<'a> {
    /// Along the mission, each waypoint computed when it is needed: that is a few a second.
    Mission { local: &'a Local, route: &'a [Point], extras: &'a MissionExtras },
    /// Home, at this height.
    Home { up_m: f64 },
}

impl Waypoints for Way<'_> {
    fn count(&self) -> usize {
        match self {
            Self::Mission { route, .. } => route.len(),
            Self::Home { .. } => 1,
        }
    }
    fn get(&self, index: usize) -> Option<DVec3> {
        match self {
            Self::Mission { local, route, .. } => route.get(index).map(|w| local.of(w)),
            Self::Home { up_m } => (index == 0).then_some(DVec3::Z * *up_m),
        }
    }
    fn holds_at(&self, index: usize) -> bool {
        match self {
            Self::Mission { extras, .. } => !extras.hold(index).is_zero(),
            Self::Home { .. } => false,
        }
    }
}

/// How the aircraft has moved, in the local frame.
#[derive(Clone, Copy, Debug, Default)]
struct Motion {
    /// When the autopilot reported it last.
    measured_at: Instant,
    here: DVec3,
    acceleration: Acceleration,
    trail: Trail,
    /// When it was last under way, and how fast.
    moved: (Instant, DVec3),
    /// Whether it flies on its mission's line: not on the way back from a position aside.
    is_on_track: bool,
}

impl Mbcap {
    /// An aircraft in state [`State::Start`]. `seed` sets the phase of its beacons and of its checks.
    pub fn new(config: Config, seed: u64, now: Instant) -> Self {
        let mut rng = Pcg64Mcg::new(u128::from(seed) << 64 | u128::from(config.me.0));
        let mut phase = |period: Duration| {
            now + Duration::from_micros(rng.next_u64() % (period.as_micros() as u64).max(1))
        };
        let fence = config.fence();
        let Config { hold_before_landing, planned_speed_m_s, .. } = config;
        Self {
            flight: RouteFlight::new(Rules { fence, hold_before_landing, planned_speed_m_s }),
            local: None,
            motion: Motion { is_on_track: true, ..Motion::default() },
            neighbours: Neighbours::default(),
            event: 0,
            ignored: None,
            last_scanned: None,
            last_beacon: LastBeacon::default(),
            last_course: LastCourse::default(),
            disarmed_at: None,
            returning: None,
            alone_since: None,
            accuracy: Accuracy::default(),
            air_m_s: None,
            beacon_at: phase(config.beacon_period),
            check_at: phase(config.check_period),
            tally: Tally::default(),
            evidence: Evidence::default(),
            config,
        }
    }

    fn frame(&self) -> Option<&Frame> {
        self.local.as_ref().map(|local| &local.frame)
    }
    fn avoiding(&self) -> Option<Avoiding> {
        flying(self.flight.state())
    }
    fn is_returning(&self) -> bool {
        self.returning.is_some()
    }
    fn way<'a>(&'a self, local: &'a Local) -> Way<'a> {
        match self.is_returning() {
            true => Way::Home { up_m: self.motion.here.z },
            false => Way::Mission { local, route: self.flight.route(), extras: self.flight.extras() },
        }
    }
    /// Whether the mission that it flies is over but for its landing.
    fn is_last_reached(&self) -> bool {
        let len = self.flight.route().len();
        len > 0 && self.flight.next_waypoint() >= len && !self.is_returning()
    }
    /// Whether others need not keep clear of us: on the ground, or landing.
    fn is_landing(&self) -> bool {
        // An aircraft that stands in another's path is in it, though its mission is over.
        let is_at_the_end = self.is_last_reached()
            && matches!(
                self.flight.state(),
                State::Flying(Avoiding::Normal { .. } | Avoiding::Stopping { .. })
                    | State::Landing
                    | State::Finished
            );
        self.config.landing_is_out && (self.is_coming_down() || is_at_the_end)
    }
    /// Also over its home, where RTL descends.
    fn is_coming_down(&self) -> bool {
        self.flight.telemetry().is_none_or(|t| !t.armed || t.landing)
            || self.is_returning() && self.is_at_home()
    }
    /// Whether its flight began at home: the flight controller returns there.
    fn is_home_known(&self) -> bool {
        self.local.as_ref().is_some_and(|local| local.is_at_home)
    }
    fn is_at_home(&self) -> bool {
        self.motion.here.truncate().length() < AT_THE_END_M
    }

    /// Applies an input to the own state and to that of others. Whether something may follow from it.
    fn observe(&mut self, now: Instant, input: &Input<'_>, out: &mut Actions) -> bool {
        match *input {
            Input::Telemetry(telemetry) => self.observe_motion(now, &telemetry),
            Input::Reached(waypoint) if usize::from(waypoint) < self.flight.route().len() => {
                self.motion.is_on_track = true;
            }
            Input::Message { from, message, .. } => {
                if let Err(reason) = self.receive(now, from, message) {
                    push(out, Action::Refused(reason));
                    return false;
                }
            }
            Input::Passed { .. } => {
                push(out, Action::Refused(Refused::UnexpectedSender));
                return false;
            }
            Input::Done(Order::Return) if self.flight.state() == State::Aborted(EndFlight::Return) => {
                let is_at_home = self.local.as_ref().is_some_and(|local| local.is_at_home);
                self.returning = (is_at_home && self.config.avoids_to_the_end)
                    .then_some(Returning { since: now, stood: Duration::ZERO });
            }
            // Another flies it.
            Input::TakenOver(_) => self.returning = None,
            Input::Wake
            | Input::Operator(_)
            | Input::Reached(_)
            | Input::Done(_)
            | Input::Failed(_)
            | Input::BatteryLow(_) => {}
        }
        self.flight.observe(now, input);
        true
    }

    fn observe_motion(&mut self, now: Instant, telemetry: &Telemetry) {
        let motion = &mut self.motion;
        if let Some(last) = self.flight.telemetry() {
            let speed_m_s = |t: &Telemetry| t.velocity_m_s.truncate().length();
            let change_m_s = speed_m_s(telemetry) - speed_m_s(last);
            motion.acceleration.update(
                &self.config.prediction.filter,
                change_m_s,
                now.since(motion.measured_at).as_secs_f64(),
            );
        }
        if telemetry.is_located {
            motion.measured_at = now;
        }
        if telemetry.velocity_m_s.truncate().length() >= MOVES_M_S {
            motion.moved = (now, telemetry.velocity_m_s);
        }
        if telemetry.armed {
            self.disarmed_at = None;
        } else if self.flight.is_armed() {
            self.disarmed_at = Some(now);
        }
        if let Some(local) = &self.local {
            motion.here = local.frame.to_local(telemetry.position);
            motion.trail.push(motion.here.truncate());
        }
    }

    fn receive(&mut self, now: Instant, from: VehicleId, message: &Message) -> Result<(), Refused> {
        if let Message::Course(course) = message {
            self.neighbours.receive_course(from, course, self.motion.here);
            return Ok(());
        }
        let Message::Beacon(beacon) = message else {
            return Err(Refused::UnexpectedSender);
        };
        let Some(local) = &self.local else {
            return self.receive_on_ground(now, from, beacon);
        };
        if beacon.avoiding == Some(self.config.me) {
            self.evidence.acknowledged(now);
        }
        let peer = flying(self.flight.state()).and_then(|a| a.conflict()).map(|c| c.peer);
        self.neighbours.receive(now, from, beacon, &local.frame, self.motion.here, peer)
    }

    /// Takes a beacon before the flight: *Start* waits for an aircraft that flies over.
    fn receive_on_ground(&mut self, now: Instant, from: VehicleId, beacon: &Beacon) -> Result<(), Refused> {
        let is_set_up = matches!(self.flight.state(), State::Setup | State::SetupFinished);
        let Some(telemetry) = self.flight.telemetry().filter(|_| is_set_up && self.config.avoids_to_the_end)
        else {
            return Ok(());
        };
        let frame = Frame::new(telemetry.position);
        self.neighbours.receive(now, from, beacon, &frame, DVec3::ZERO, None)
    }

    /// Acts on what follows from a trigger.
    fn act(&mut self, now: Instant, trigger: Trigger<'_>, out: &mut Actions) {
        if let Trigger::Check = trigger {
            self.watch_alone(now);
        }
        let step = self.next(now, trigger);
        match trigger {
            Trigger::Input(Input::Failed(order)) => {
                push(out, Action::Log(Severity::Error, text!("{order} failed in state {}", self.state_id())));
            }
            Trigger::Check if self.tests_last_scanned() => {
                self.last_scanned = self.valid_neighbours(now).last().map(|n| n.id).or(self.last_scanned);
            }
            Trigger::Input(_) | Trigger::Manoeuvre | Trigger::Check => {}
        }
        let Some(Step { transition, outcome }) = step else {
            return;
        };
        let old = self.flight.state();
        self.flight.apply(Some(transition), out);
        let new = self.flight.state();
        self.count(old, new);
        if let State::Flying(Avoiding::MovingAside { conflict, .. }) = new
            && self.neighbours.get(conflict.peer).is_some_and(|n| {
                // One that brakes for a third, or passes it, says nothing of what it receives.
                self.is_moving(n) && !self.claims(n) && n.beacon.avoiding.is_none()
            })
            && !self.is_silent(now, conflict.peer)
        {
            self.evidence.ignored(now);
        }
        self.returning = match new {
            State::Flying(Avoiding::EmergencyLand { .. }) => None,
            State::Flying(_) if flying(old).is_some() => self.returning,
            State::Flying(_) => self.returning.map(|way| Returning { since: now, ..way }),
            // Back on its way. Ordered anew it is on its way when that was seen.
            State::Aborted(EndFlight::Return) if transition.order.is_none() => {
                self.returning.map(|way| Returning { since: now, stood: way.stood + now.since(way.since) })
            }
            State::Aborted(_)
            | State::Start
            | State::Setup
            | State::SetupFinished
            | State::TakingOff
            | State::Holding { .. }
            | State::Landing
            | State::Finished => None,
        };
        if matches!(old, State::Holding { .. } | State::Aborted(_)) && flying(new).is_some() {
            // Held maybe beside its mission's line.
            self.motion.is_on_track = false;
        }
        if let (Some(outcome), Some(conflict)) = (outcome, flying(old).and_then(|a| a.conflict())) {
            self.close(now, conflict, outcome);
        }
        // A pilot who takes it over may begin the flight.
        let is_begun_by_another = self.local.is_none() && matches!(new, State::Aborted(_));
        let takes_off = matches!((old, new), (State::SetupFinished, State::TakingOff));
        if old == State::TakingOff && flying(new).is_none() && !self.flight.is_armed() {
            // The course of its mission was broadcast already.
            self.disarmed_at = Some(now);
        }
        if takes_off || is_begun_by_another {
            self.begin_flight(takes_off);
        }
        if self.config.renew_at_change && is_shown_anew(old, new) {
            (self.last_beacon.sent, self.beacon_at) = (0, now);
        }
        if !is_same(old, new) {
            push(out, Action::Log(severity(trigger, new), self.line(new)));
        }
    }

    /// Notes since when it waits for aircraft that are silent or do not take the way that it gives.
    fn watch_alone(&mut self, now: Instant) {
        self.alone_since = match self.avoiding() {
            Some(
                avoiding @ (Avoiding::StandStill { conflict, .. }
                | Avoiding::MovingAside { conflict, .. }
                | Avoiding::GoOnPlease { conflict, .. }),
            ) if self.is_silent(now, conflict.peer) || self.is_unheeded(now, avoiding) => {
                self.alone_since.or(Some(now))
            }
            // A short flight between two waits is no end of the wait.
            Some(Avoiding::Normal { since }) if now.since(since) <= WAITS_AGAIN_WITHIN => self.alone_since,
            Some(
                Avoiding::Stopping { .. }
                | Avoiding::StandStill { .. }
                | Avoiding::MovingAside { .. }
                | Avoiding::GoOnPlease { .. }
                | Avoiding::Resuming { .. },
            ) => self.alone_since,
            Some(
                Avoiding::Normal { .. }
                | Avoiding::LandingAside { .. }
                | Avoiding::Overtaking { .. }
                | Avoiding::EmergencyLand { .. },
            )
            | None => None,
        };
    }

    /// Whether this check is one that the reference's defect remembers.
    fn tests_last_scanned(&self) -> bool {
        self.config.aside_tests == AsideTests::LastScanned
            && matches!(self.flight.state(), State::Flying(Avoiding::Normal { .. }))
            && self.checks_risks()
    }

    fn begin_flight(&mut self, is_at_home: bool) {
        let Some(telemetry) = self.flight.telemetry() else {
            return;
        };
        let local = Local::new(telemetry, is_at_home);
        self.motion.here = local.frame.to_local(telemetry.position);
        self.local = Some(local);
    }

    fn count(&mut self, old: State, new: State) {
        let (old, Some(new)) = (flying(old), flying(new)) else { return };
        match new {
            // On its mission, or on its way home.
            Avoiding::Stopping { .. } if matches!(old, Some(Avoiding::Normal { .. }) | None) => {
                self.tally.stops += 1;
            }
            Avoiding::MovingAside { .. } if matches!(old, Some(Avoiding::StandStill { .. })) => {
                self.tally.asides += 1;
            }
            // On the way back it is beside its mission's line.
            Avoiding::GoOnPlease { .. } | Avoiding::StandStill { is_aside: true, .. }
                if matches!(old, Some(Avoiding::MovingAside { .. })) =>
            {
                self.motion.is_on_track = false;
            }
            Avoiding::Normal { .. }
            | Avoiding::Stopping { .. }
            | Avoiding::StandStill { .. }
            | Avoiding::MovingAside { .. }
            | Avoiding::LandingAside { .. }
            | Avoiding::GoOnPlease { .. }
            | Avoiding::Overtaking { .. }
            | Avoiding::Resuming { .. }
            | Avoiding::EmergencyLand { .. } => {}
        }
    }

    /// A conflict has ended: others may learn it, and its other side causes no new one for a while.
    fn close(&mut self, now: Instant, conflict: Conflict, outcome: Outcome) {
        self.event = self.event.wrapping_add(1);
        match outcome {
            Outcome::Solved => {}
            Outcome::DeadlockSolved => self.tally.deadlocks_solved += 1,
            Outcome::DeadlockFailed => {
                self.tally.deadlocks_failed += 1;
                return;
            }
        }
        if !self.config.recheck.is_zero() {
            self.ignored = Some((conflict.peer, now + self.config.recheck));
        }
    }

    /// Reports once that the radio seems deaf or mute.
    fn report_radio(&mut self, now: Instant, out: &mut Actions) {
        let radio = self.judge_radio(now);
        let old = core::mem::replace(&mut self.evidence.radio, radio);
        if radio.receives == Some(false) && old.receives != Some(false) {
            let text =
                text!("receives no aircraft any more: avoids them by their last courses, land it soon");
            push(out, Action::Log(Severity::Warning, text));
        }
        if radio.is_received == Some(false) && old.is_received != Some(false) {
            let text = text!("another aircraft flies on as if it did not receive this one: check the radio");
            push(out, Action::Log(Severity::Warning, text));
        }
    }

    /// One line for the operator when a state begins.
    fn line(&self, state: State) -> Text {
        let State::Flying(avoiding) = state else {
            return text!("{}: {}", self.state_id(), self.detail());
        };
        let peer = avoiding.conflict().map_or(VehicleId::default(), |c| c.peer);
        match avoiding {
            Avoiding::Normal { .. } => text!("on the mission"),
            Avoiding::Stopping { .. } => text!("conflict with {peer}: stopping"),
            Avoiding::StandStill { .. } => text!("standing still, in conflict with {peer}"),
            Avoiding::MovingAside { .. } => text!("moving aside for {peer}"),
            Avoiding::LandingAside { .. } => text!("another is at the landing site: landing aside"),
            Avoiding::GoOnPlease { .. } => text!("giving way to {peer}"),
            Avoiding::Overtaking { .. } => text!("passing {peer}"),
            Avoiding::Resuming { .. } if self.is_returning() => text!("returning: the conflict is over"),
            Avoiding::Resuming { .. } => text!("resuming the mission"),
            Avoiding::EmergencyLand { .. } => {
                text!("landing: the conflict with {peer} was not solved")
            }
        }
    }
}

const fn flying(state: State) -> Option<Avoiding> {
    match state {
        State::Flying(avoiding) => Some(avoiding),
        State::Start
        | State::Setup
        | State::SetupFinished
        | State::TakingOff
        | State::Holding { .. }
        | State::Landing
        | State::Finished
        | State::Aborted(_) => None,
    }
}

/// Whether both are one state, whatever their data.
fn is_same(old: State, new: State) -> bool {
    match flying(old).zip(flying(new)) {
        Some((old, new)) => discriminant(&old) == discriminant(&new),
        None => discriminant(&old) == discriminant(&new),
    }
}

/// Whether others see another state.
fn is_shown_anew(old: State, new: State) -> bool {
    match new {
        State::Flying(new) => flying(old).map(|old| old.shown()) != Some(new.shown()),
        State::Holding { .. } | State::Aborted(_) => !is_same(old, new),
        State::Start
        | State::Setup
        | State::SetupFinished
        | State::TakingOff
        | State::Landing
        | State::Finished => false,
    }
}

fn severity(trigger: Trigger<'_>, new: State) -> Severity {
    let by_trigger = || match trigger {
        Trigger::Input(input) => RouteFlight::severity(input, new),
        Trigger::Manoeuvre | Trigger::Check => Severity::Info,
    };
    let Some(avoiding) = flying(new) else { return by_trigger() };
    match avoiding {
        Avoiding::Stopping { .. } | Avoiding::EmergencyLand { .. } => Severity::Warning,
        Avoiding::Normal { .. }
        | Avoiding::StandStill { .. }
        | Avoiding::MovingAside { .. }
        | Avoiding::LandingAside { .. }
        | Avoiding::GoOnPlease { .. }
        | Avoiding::Overtaking { .. }
        | Avoiding::Resuming { .. } => by_trigger(),
    }
}

impl Mbcap {
    /// The avoidance's state as others see it; Normal outside the mission.
    fn shown(&self) -> Avoidance {
        self.avoiding().map_or(Avoidance::Normal, |a| a.shown())
    }

    /// The mission of one that returns has been ended, also while it stands on its way.
    fn state_id(&self) -> StateId {
        let flying = if self.is_returning() { StateId::Aborted } else { self.shown().into() };
        self.flight.id(flying)
    }

    fn detail(&self) -> Text {
        // Nothing but an emergency landing ends a flight after a conflict that was not solved, and in Finished.
        if self.flight.state() == State::Finished && self.tally.deadlocks_failed > 0 {
            return text!("landed: a conflict was not solved");
        }
        let is_deaf = self.avoiding().is_some() && self.evidence.radio.receives == Some(false);
        self.flight.detail(|| match self.avoiding().and_then(|a| a.conflict()) {
            _ if is_deaf => text!("receives no other aircraft any more: land it soon"),
            Some(conflict) if self.is_returning() => {
                text!("returning to launch: in conflict with {}", conflict.peer)
            }
            Some(conflict) => text!("in conflict with {}", conflict.peer),
            None => self.flight.progress(),
        })
    }

    fn avoidance(&self) -> Option<AvoidanceView> {
        let frame = self.frame()?;
        let position = |at: DVec3| frame.to_position(at);
        let avoiding = self.avoiding();
        let conflict = avoiding.and_then(|a| a.conflict());
        Some(AvoidanceView {
            state: self.shown(),
            avoiding: conflict.map(|c| c.peer),
            predicted: self.last_beacon.locations.iter().map(|&l| position(l)).collect(),
            risk: conflict.and_then(|c| c.risk).map(position),
            aside: avoiding.and_then(|a| a.aside()).map(|a| position(a.extend(self.motion.here.z))),
            receives: self.evidence.radio.receives,
            is_received: self.evidence.radio.is_received,
        })
    }
}

impl Protocol for Mbcap {
    fn name(&self) -> &'static str {
        self.config.name
    }

    fn set_mission(&mut self, mission: &[Point], extras: &MissionExtras) -> Result<(), MissionError> {
        let state = self.state_id();
        self.flight.set_route(mission, extras, state)
    }
    fn extras(&self) -> &MissionExtras {
        self.flight.extras()
    }

    fn set_handling(&mut self, handling: Handling) {
        self.config.prediction.handling = handling;
    }
    fn set_measured(&mut self, now: Instant, measured: Measured) {
        let error_m = self.accuracy.take(now, &measured);
        self.config.take_position_error(error_m);
        self.air_m_s = measured.air_m_s;
    }
    fn takes_up(&self) -> bool {
        true
    }
    /// From here on it broadcasts where it stands, and receives the others: its table of them is empty.
    fn hold_found(&mut self, now: Instant, out: &mut Actions) {
        if !self.flight.apply(self.flight.hold_found(now), out) {
            return;
        }
        self.begin_flight(false);
        (self.last_beacon.sent, self.beacon_at) = (0, now);
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
        if self.observe(now, &input, out) {
            self.act(now, Trigger::Input(&input), out);
        }
        self.act(now, Trigger::Manoeuvre, out);
        if now >= self.check_at {
            self.check_at = now + self.config.check_period;
            self.act(now, Trigger::Check, out);
            if self.local.is_some() {
                self.report_radio(now, out);
            }
        }
        if now >= self.beacon_at {
            self.beacon_at = now + self.config.beacon_period;
            self.broadcast(now, out);
            self.broadcast_course(now, out);
        }
    }

    fn poll_timeout(&self) -> (Instant, &'static str) {
        match self.flight.state() {
            State::Start | State::Setup | State::SetupFinished | State::Finished => {
                (Instant::NEVER, "nothing")
            }
            State::Aborted(_) if !self.flight.is_armed() => (Instant::NEVER, "nothing"),
            State::TakingOff
            | State::Flying(_)
            | State::Holding { .. }
            | State::Landing
            | State::Aborted(_) => [(self.beacon_at, "beacon due"), (self.check_at, "check for conflicts")]
                .into_iter()
                .fold(self.flight.poll_timeout(), |first, next| if next.0 < first.0 { next } else { first }),
        }
    }

    fn permits(&self, command: Command) -> Result<(), Denied> {
        self.flight.permits(command, self.state_id())?;
        match self.flies_over().filter(|_| command == Command::Start) {
            Some(id) => Err(Denied::Overflown(id)),
            None => Ok(()),
        }
    }

    fn route(&self) -> &[Point] {
        self.flight.route()
    }

    fn fence(&self) -> Fence {
        self.config.fence()
    }

    fn view(&self) -> View {
        let phase = match self.shown() {
            _ if self.is_returning() => Phase::Aborted,
            Avoidance::StandStill | Avoidance::GoOnPlease => Phase::Waiting,
            Avoidance::Normal | Avoidance::MovingAside | Avoidance::Overtaking => Phase::Moving,
            Avoidance::EmergencyLand => Phase::Ending,
        };
        View {
            route_speed_m_s: Some(self.config.planned_speed_m_s),
            avoidance_tally: Some(self.tally),
            is_returning: self.is_returning(),
            ..self.flight.view(self.state_id(), phase)
        }
    }

    fn details(&self) -> Details {
        Details { line: self.detail(), avoidance: self.avoidance(), ..Details::default() }
    }
}
