//! The flight of MUSCOP (thesis 6.1.2): the barrier at every waypoint, and how it is led.
//!
//! At a waypoint the leader waits until all members reported that they are there and follow it, and then releases all to
//! the next. A follower flies to the waypoint that its leader commanded, as received from the leader itself or passed on by
//! another member as the leader sealed it. The leader withdraws a command where a member that was lost is received again from
//! farther behind. On a leg an aircraft holds behind one that is too near ahead.

use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{Message, Point, Refused};

use super::State;
use crate::swarm::clearance::{Approach, PathStatus};
use crate::swarm::slot_set::SlotSet;
use crate::swarm::timer::{Timer, TimerSet};
use crate::swarm::{self, Abort, Host, Manner, MemberChange, Reason, Transition, Trigger, Urgency};
use crate::{Actions, Command, Input, StateId, Text, text};

/// States of the flight (thesis figure 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierState {
    /// At a waypoint, waiting for the others.
    WaypointReached {
        /// Its index in the route.
        waypoint: u16,
    },
    /// On the way to a waypoint.
    MovingToWaypoint {
        /// Its index in the route.
        waypoint: u16,
        /// The slot of the leader that commanded it there.
        commanded_by: usize,
    },
}

type Swarm = swarm::Swarm<BarrierState>;

/// The barrier at the waypoints, on one aircraft.
#[derive(Clone, Debug, Default)]
pub(super) struct Barrier {
    /// The waypoint to which the leader commanded this aircraft last.
    commanded: Option<u16>,
    /// When the leader itself commanded it there last.
    commanded_at: Option<Instant>,
    /// Since when this leader leads.
    led_since: Instant,
    /// Members that reported, since this aircraft is at its waypoint, that they are there and follow it.
    arrived: SlotSet,
    /// Since when this aircraft is at its waypoint, and none that it waits for is under way or still to be started.
    stalled_since: Option<Instant>,
    /// What such waits before took together, less [`STALL_LEAST`] each.
    stalled: Duration,
}

/// So long reports and commands take on a poor link: a shorter wait is none.
const STALL_LEAST: Duration = Duration::from_secs(10);

/// What a message of a member reports about the flight.
struct Report {
    /// The last waypoint that the member has reached.
    reached: Option<u16>,
    /// The waypoint for which it has left last.
    departed_for: Option<u16>,
    /// The slot of the leader that it follows.
    follows: usize,
    /// The waypoint to which that leader commands.
    commanded: Option<u16>,
    /// It is on its way, on the command of that leader.
    is_behind: bool,
    /// It comes from the leader itself.
    is_command: bool,
}

impl Report {
    /// None of a message that is not the flight's.
    fn of(message: &Message, slot: usize, center: usize) -> Option<Self> {
        let command = |waypoint: u16| Self {
            reached: waypoint.checked_sub(1),
            departed_for: waypoint.checked_sub(1),
            follows: slot,
            commanded: Some(waypoint),
            is_behind: false,
            is_command: true,
        };
        let at_waypoint = |waypoint: u16, follows: usize| Self {
            reached: Some(waypoint),
            departed_for: Some(waypoint),
            follows,
            commanded: None,
            is_behind: false,
            is_command: false,
        };
        Some(match *message {
            Message::ReachedWaypointAck { waypoint } => at_waypoint(waypoint, center),
            Message::Following { waypoint, reached: true, leader, .. } => {
                at_waypoint(waypoint, usize::from(leader))
            }
            Message::Following { waypoint, reached: false, leader, .. } => Self {
                reached: waypoint.checked_sub(1),
                departed_for: Some(waypoint),
                follows: usize::from(leader),
                // Once it follows another, that it commanded this is still its own word.
                commanded: (usize::from(leader) == slot).then_some(waypoint),
                is_behind: true,
                is_command: false,
            },
            Message::MoveToWaypoint { waypoint } => {
                Self { departed_for: Some(waypoint), ..command(waypoint) }
            }
            Message::Release { waypoint } => command(waypoint),
            Message::Gather { waypoint } => {
                Self { reached: Some(waypoint), departed_for: Some(waypoint), ..command(waypoint) }
            }
            Message::Hello { .. }
            | Message::Stands { .. }
            | Message::Data(_)
            | Message::DataFirst(_)
            | Message::DataWaypoints(_)
            | Message::DataAck { .. }
            | Message::ReadyToFly
            | Message::ReadyToFlyAck
            | Message::TakeOffNow { .. }
            | Message::TargetReached
            | Message::TakeOffEnd
            | Message::TakeOffEndAck
            | Message::TakeOffTogether
            | Message::Recall
            | Message::Land { .. }
            | Message::LandAround { .. }
            | Message::LandHere { .. }
            | Message::Beacon(_)
            | Message::Course(_)
            | Message::Coordinates(_)
            | Message::Alive { .. }
            | Message::Holding { .. }
            | Message::Adrift { .. }
            | Message::Leaving { .. }
            | Message::Exclude { .. }
            | Message::Order(_)
            | Message::OrderTaken(_)
            | Message::Probe(_)
            | Message::Corrections(_)
            | Message::Passed(_) => return None,
        })
    }
}

impl Barrier {
    /// Of an aircraft that rejoins a flight: what its leader commands, and which members have arrived, it receives anew.
    pub(super) fn rejoining(now: Instant) -> Self {
        Self { led_since: now, ..Self::default() }
    }

    /// Takes a command of our leader, and withdraws it where a member turns out to be behind. A command from the leader
    /// itself counts as it was sent last: the leader withdraws it when a member that was lost is received again.
    fn take_command(&mut self, swarm: &Swarm, now: Instant, slot: usize, report: &Report) {
        let State::Flying(flight) = swarm.state() else { return };
        let (BarrierState::WaypointReached { waypoint: here }
        | BarrierState::MovingToWaypoint { waypoint: here, .. }) = flight;
        let leader = swarm.members().leader();
        if swarm.is_leader() {
            return;
        }
        let is_behind = report.is_behind && report.departed_for.is_some_and(|waypoint| waypoint <= here);
        if is_behind && !swarm.members().absent().contains(slot) {
            self.commanded = self.commanded.min(Some(here));
        } else if report.follows == leader && slot == leader {
            if report.is_command || report.commanded.is_none() {
                self.commanded = report.commanded.or(self.commanded);
                self.commanded_at = report.commanded.map(|_| now).or(self.commanded_at);
            } else {
                self.take_older(swarm, here, report.commanded);
            }
        }
    }

    /// Takes a command that our leader may have withdrawn meanwhile: it counts only where no member is known to be behind, and
    /// withdraws nothing.
    fn take_older(&mut self, swarm: &Swarm, here: u16, commanded: Option<u16>) {
        if commanded > self.commanded && members_behind(swarm, here).is_empty() {
            self.commanded = commanded;
        }
    }

    /// Whether the leader releases all from a waypoint: all are there, the next exists, and no lost member lies on a leg.
    fn releases(&self, swarm: &Swarm, waypoint: u16) -> bool {
        swarm.is_leader()
            && waypoint < last_waypoint(swarm)
            && !is_leg_blocked(swarm)
            && swarm.are_all(self.arrived)
    }

    /// What follows for the leader at a waypoint.
    fn next_of_leader(&self, swarm: &Swarm, now: Instant, waypoint: u16) -> Option<Transition<BarrierState>> {
        if is_leg_blocked(swarm) {
            let ends = swarm.timers().is_due(Timer::Blocked, now);
            return ends.then_some(Transition::because(State::Aborted(Abort::LAND), Reason::FlightBlocked));
        }
        if waypoint < last_waypoint(swarm) {
            return if swarm.are_all(self.arrived) { self.next_leg(swarm, now, waypoint) } else { None };
        }
        // One that lands already reports nothing else.
        if !swarm.are_all(self.arrived | swarm.landing().landing()) {
            return None;
        }
        let is_alone = swarm.config().landing == Manner::Sequential;
        let is_free = swarm.clearance().site_aside().is_none();
        Some(Transition::to(if is_alone && is_free { State::Landing } else { State::MovingToLand }))
    }

    /// What follows for a follower at a waypoint.
    fn next_of_follower(
        &self,
        swarm: &Swarm,
        now: Instant,
        waypoint: u16,
    ) -> Option<Transition<BarrierState>> {
        let is_last = waypoint == last_waypoint(swarm);
        let leader_lands = swarm.landing().leader_site().is_some();
        let have_left = self.commanded > Some(waypoint + 1) && swarm.timers().is_due(Timer::Yield, now);
        if have_left || leader_lands && !is_last {
            return Some(swarm.failure(now, Reason::LeftBehind));
        }
        if !is_last {
            let is_released = self.commanded == Some(waypoint + 1);
            // Its leader may have lost one that this aircraft receives, and learns of it next. Of one that may have
            // arrived since it was received last, only that report is missing: the leader's command counts for it, and only as
            // it arrives, because the leader withdraws its command where it receives that one from behind: not one that leads only
            // now, as after a partition.
            let still_flies = |slot| swarm.clearance().is_still_far(now, slot, usize::from(waypoint));
            let behind = members_behind(swarm, waypoint);
            let waits = || {
                let knows_them = now >= self.led_since + swarm.config().silence;
                let is_confirmed = behind.is_empty() || knows_them && self.commanded_at == Some(now);
                !swarm.timers().is_due(Timer::Yield, now) && (!is_confirmed || behind.iter().any(still_flies))
            };
            return if is_released && !waits() { self.next_leg(swarm, now, waypoint) } else { None };
        }
        if !leader_lands || !swarm.may_leave_to_land(now) {
            return None;
        }
        match swarm.clearance().landing_path() {
            PathStatus::Clear => Some(Transition::to(State::MovingToLand)),
            PathStatus::Occupied if !swarm.timers().is_due(Timer::LandingPath, now) => None,
            PathStatus::Occupied | PathStatus::Blocked => {
                Some(Transition::because(State::Landing, Reason::LandingPathBlocked))
            }
        }
    }

    /// What follows once this aircraft is released from a waypoint.
    fn next_leg(&self, swarm: &Swarm, now: Instant, waypoint: u16) -> Option<Transition<BarrierState>> {
        match swarm.clearance().next_leg(waypoint) {
            PathStatus::Clear => {
                let commanded_by = swarm.members().leader();
                let leg = BarrierState::MovingToWaypoint { waypoint: waypoint + 1, commanded_by };
                Some(Transition::to(State::Flying(leg)))
            }
            PathStatus::Occupied if !swarm.timers().is_due(Timer::Yield, now) => None,
            PathStatus::Occupied => Some(swarm.failure(now, Reason::NextLegOccupied)),
            PathStatus::Blocked => Some(swarm.failure(now, Reason::NextLegBlocked)),
        }
    }

    /// Whether this aircraft may leave a waypoint as far as the others are concerned.
    fn is_released(&self, swarm: &Swarm, waypoint: u16) -> bool {
        match swarm.is_leader() {
            true => self.releases(swarm, waypoint),
            false => waypoint < last_waypoint(swarm) && self.commanded > Some(waypoint),
        }
    }

    /// How long this aircraft has waited in all at waypoints while none that it waits for was under way. Where members are lost
    /// and received by turns, no single wait lasts long, but their sum does.
    fn stalled(&self, now: Instant) -> Duration {
        let present = self.stalled_since.map_or(Duration::ZERO, |since| now.since(since));
        self.stalled + present.saturating_sub(STALL_LEAST)
    }

    /// Notes whether this aircraft waits, and none that it waits for is under way.
    fn watch_stall(&mut self, swarm: &Swarm, now: Instant) {
        let is_here = matches!(swarm.state(), State::Flying(BarrierState::WaypointReached { .. }));
        // Those that land do so in their turn, and those that were not started wait for their operator.
        let is_coming = |slot| swarm.traffic().is_under_way(slot) || swarm.traffic().reached(slot).is_none();
        let is_stalled = is_here
            && !swarm.is_aside()
            && swarm.landing().leader_site().is_none()
            && !swarm.awaited().iter().any(is_coming);
        match (is_stalled, self.stalled_since) {
            (true, None) => self.stalled_since = Some(now),
            (false, Some(_)) => (self.stalled, self.stalled_since) = (self.stalled(now), None),
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// At a waypoint, limits the wait for those that are in the way once all are released.
    fn limit_wait(&self, swarm: &mut Swarm, now: Instant, waypoint: u16) -> Option<Urgency> {
        // A follower that its leader counts as lost, but receives, waits to be received again.
        if !self.is_released(swarm, waypoint) {
            // Where members are lost and received by turns, leaders follow each other before one of them commands: a wait that
            // began anew with each would never end.
            if swarm.is_leader() || self.commanded.is_some() {
                swarm.timers_mut().stop(Timer::Yield);
            }
            return None;
        }
        if swarm.timers().is_set(Timer::Yield) {
            return None;
        }
        let ends_at = swarm.config().patience_after(now);
        swarm.timers_mut().set(Timer::Yield, ends_at);
        // Those ahead of the leader wait for its command.
        Some(if swarm.is_leader() { Urgency::Immediate } else { Urgency::Periodic })
    }

    /// What this aircraft does or waits for, in one line.
    pub(super) fn detail(&self, swarm: &Swarm) -> Text {
        let State::Flying(flight) = swarm.state() else { return swarm.detail().unwrap_or_default() };
        let last = last_waypoint(swarm);
        match flight {
            BarrierState::WaypointReached { waypoint } if swarm.is_leader() => {
                match swarm.missing(self.arrived) {
                    0 if is_leg_blocked(swarm) => {
                        text!("at waypoint {waypoint} of {last}, the leg past a lost aircraft is blocked")
                    }
                    n => text!("at waypoint {waypoint} of {last}, waiting for {n}"),
                }
            }
            BarrierState::WaypointReached { waypoint } => text!("at waypoint {waypoint} of {last}"),
            BarrierState::MovingToWaypoint { waypoint, .. } => text!("to waypoint {waypoint} of {last}"),
        }
    }
}

#[cfg(test)]
impl Barrier {
    pub(super) fn led_since(&self) -> Instant {
        self.led_since
    }

    /// Everything that decides what follows, but for how long it was stalled: no model flies that long.
    pub(super) fn fingerprint(&self, led_for_ms: u64, state: &mut impl core::hash::Hasher) {
        use core::hash::Hash as _;
        (self.commanded, self.arrived, led_for_ms).hash(state);
    }
}

impl Host for Barrier {
    type FlyingState = BarrierState;

    fn on_members(&mut self, swarm: &mut Swarm, now: Instant, change: MemberChange) {
        if change.is_leader_new {
            (self.commanded, self.led_since) = (None, now);
        }
        if let State::Flying(BarrierState::WaypointReached { waypoint }) = swarm.state()
            && swarm.is_leader()
            && (change.is_check_due || change.is_leader_new)
        {
            check_legs(swarm, now, waypoint);
        }
    }

    fn on_message(
        &mut self,
        swarm: &mut Swarm,
        now: Instant,
        slot: usize,
        message: &Message,
    ) -> Result<(), Refused> {
        let Some(report) = Report::of(message, slot, swarm.assignment().center()) else { return Ok(()) };
        // These report no position: it is the slot's at that waypoint.
        if let Message::ReachedWaypointAck { waypoint } | Message::Gather { waypoint } = *message
            && swarm.traffic().reached(slot) < Some(waypoint)
            && let Some(at) = swarm.assignment().slot_position(slot, usize::from(waypoint))
        {
            swarm.report_position(now, slot, at);
        }
        swarm.report_progress(slot, report.reached, report.departed_for);
        swarm.report_leader(slot, report.follows);
        // Reported since this aircraft is here itself, and following it: one that still follows another is not left
        // alone.
        if let State::Flying(BarrierState::WaypointReached { waypoint }) = swarm.state() {
            let is_here = swarm.traffic().reached(slot) >= Some(waypoint);
            self.arrived.set(slot, is_here && report.follows == swarm.assignment().slot());
        }
        if report.is_command && slot != swarm.members().leader() {
            return Err(Refused::UnexpectedSender);
        }
        self.take_command(swarm, now, slot, &report);
        Ok(())
    }

    fn on_passed(&mut self, swarm: &Swarm, command: &Message) {
        let State::Flying(flight) = swarm.state() else { return };
        let (BarrierState::WaypointReached { waypoint: here }
        | BarrierState::MovingToWaypoint { waypoint: here, .. }) = flight;
        if let Some(report) = Report::of(command, swarm.members().leader(), swarm.assignment().center()) {
            self.take_older(swarm, here, report.commanded);
        }
    }

    fn is_command_missed(&self, swarm: &Swarm, flight: BarrierState) -> bool {
        let BarrierState::MovingToWaypoint { waypoint, .. } = flight else { return false };
        let leader = swarm.members().leader();
        let has_missed = |slot: usize| slot != leader && swarm.traffic().departed_for(slot) < Some(waypoint);
        !swarm.is_leader() && swarm.awaited().iter().any(has_missed)
    }

    fn next(&self, swarm: &Swarm, now: Instant, trigger: Trigger) -> Option<Transition<BarrierState>> {
        let at_waypoint =
            |waypoint| Transition::to(State::Flying(BarrierState::WaypointReached { waypoint }));
        match swarm.state() {
            State::SetupFinished if trigger == Trigger::Command(Command::Start) => Some(at_waypoint(0)),
            // It leaves from where the others know it to be.
            State::Flying(BarrierState::WaypointReached { .. }) if swarm.is_aside() => {
                swarm.is_aside_too_long(now).then(|| swarm.failure(now, Reason::NextLegOccupied))
            }
            State::Flying(BarrierState::WaypointReached { .. })
                if self.stalled(now) >= swarm.config().stall_most() =>
            {
                Some(Transition::because(State::Aborted(Abort::LAND), Reason::OthersAway))
            }
            State::Flying(BarrierState::WaypointReached { waypoint }) => match swarm.is_leader() {
                true => self.next_of_leader(swarm, now, waypoint),
                false => self.next_of_follower(swarm, now, waypoint),
            },
            State::Flying(BarrierState::MovingToWaypoint { waypoint, .. }) if swarm.has_arrived() => {
                Some(at_waypoint(waypoint))
            }
            State::Flying(BarrierState::MovingToWaypoint { .. })
                if swarm.timers().is_due(Timer::Yield, now) =>
            {
                Some(swarm.failure(now, Reason::LegOccupied))
            }
            State::Flying(BarrierState::MovingToWaypoint { .. })
                if swarm.timers().is_due(Timer::Leg, now) =>
            {
                Some(swarm.failure(now, Reason::TargetNotReached))
            }
            State::MovingToLand if swarm.timers().is_due(Timer::Yield, now) => {
                Some(Transition::because(State::Landing, Reason::LandingPathOccupied))
            }
            State::Start
            | State::Setup
            | State::ReadyToFly
            | State::TakingOff(_)
            | State::SetupFinished
            | State::Flying(BarrierState::MovingToWaypoint { .. })
            | State::MovingToLand
            | State::Landing
            | State::Finished
            | State::Aborted(_) => None,
        }
    }

    fn hover_position(&self, swarm: &Swarm, flight: BarrierState) -> Option<Point> {
        match flight {
            BarrierState::WaypointReached { waypoint } => {
                swarm.assignment().route().get(usize::from(waypoint)).copied()
            }
            BarrierState::MovingToWaypoint { .. } => None,
        }
    }

    fn enter(&mut self, swarm: &mut Swarm, now: Instant, _: State, out: &mut Actions) -> Option<Urgency> {
        self.arrived = SlotSet::EMPTY;
        self.watch_stall(swarm, now);
        let State::Flying(flight) = swarm.state() else { return None };
        match flight {
            BarrierState::WaypointReached { waypoint } => {
                swarm.timers_mut().stop(Timer::Blocked);
                check_legs(swarm, now, waypoint);
                None
            }
            BarrierState::MovingToWaypoint { waypoint, .. } => {
                let target = swarm.assignment().route().get(usize::from(waypoint)).copied();
                swarm.fly_to(now, target, out);
                let is_in_the_way = swarm.clearance().is_in_the_way(waypoint - 1, swarm.awaited());
                Some(if is_in_the_way { Urgency::Immediate } else { Urgency::Periodic })
            }
        }
    }

    fn act(
        &mut self,
        swarm: &mut Swarm,
        now: Instant,
        input: &Input<'_>,
        out: &mut Actions,
    ) -> Option<Urgency> {
        if !swarm.checks_path(now, input) {
            return None;
        }
        self.watch_stall(swarm, now);
        match swarm.state() {
            State::Flying(BarrierState::WaypointReached { waypoint }) => {
                self.limit_wait(swarm, now, waypoint)
            }
            State::Flying(BarrierState::MovingToWaypoint { .. }) => {
                swarm.keep_distance(now, Approach::Waypoint, out)
            }
            State::MovingToLand => swarm.keep_distance(now, Approach::Landing, out),
            State::Start
            | State::Setup
            | State::ReadyToFly
            | State::TakingOff(_)
            | State::SetupFinished
            | State::Landing
            | State::Finished
            | State::Aborted(_) => None,
        }
    }

    fn messages(&self, swarm: &Swarm, now: Instant, flight: BarrierState) -> [Option<Message>; 2] {
        let leader = swarm.members().leader();
        let at = swarm.position_at(now).unwrap_or_default();
        let one = |message| [Some(message), None];
        let following = |waypoint, reached, leader: usize| Message::Following {
            waypoint,
            reached,
            leader: leader as u8,
            at,
        };
        match flight {
            // A follower that missed the release to here still has to receive it, and all that the leader is present.
            BarrierState::WaypointReached { waypoint } if swarm.is_leader() => {
                one(match self.releases(swarm, waypoint) {
                    true => Message::Release { waypoint: waypoint + 1 },
                    false => Message::Gather { waypoint: command(swarm, waypoint) },
                })
            }
            BarrierState::MovingToWaypoint { waypoint, .. } if swarm.is_leader() => {
                let waypoint = command(swarm, waypoint);
                [Some(Message::MoveToWaypoint { waypoint }), swarm.position_report(now)]
            }
            BarrierState::WaypointReached { waypoint } if leader == swarm.assignment().center() => {
                one(Message::ReachedWaypointAck { waypoint })
            }
            BarrierState::WaypointReached { waypoint } => one(following(waypoint, true, leader)),
            BarrierState::MovingToWaypoint { waypoint, commanded_by } => {
                let holds = swarm.holds_leg().then(|| swarm.position_report(now)).flatten();
                [Some(following(waypoint, false, commanded_by)), holds]
            }
        }
    }

    fn running(&self, swarm: &Swarm) -> TimerSet {
        match swarm.state() {
            // Only what ends the wait in this role: a time that passes and changes nothing wakes for ever. Nothing does while
            // it stands aside.
            State::Flying(BarrierState::WaypointReached { .. }) if swarm.is_aside() => TimerSet::EMPTY,
            State::Flying(BarrierState::WaypointReached { waypoint }) => {
                let lands = waypoint == last_waypoint(swarm) && swarm.landing().leader_site().is_some();
                // While it waits for its turn, the end of that wait changes nothing.
                let may_leave = swarm.config().landing == Manner::Simultaneous;
                TimerSet::EMPTY
                    .with(Timer::Yield, self.is_released(swarm, waypoint))
                    .with(Timer::Blocked, swarm.is_leader())
                    .with(Timer::LandingPath, lands && may_leave && !swarm.is_leader())
            }
            State::Flying(BarrierState::MovingToWaypoint { .. }) => {
                TimerSet::of(Timer::Leg).with(Timer::Yield, true)
            }
            State::MovingToLand => TimerSet::of(Timer::Yield),
            State::Start
            | State::Setup
            | State::ReadyToFly
            | State::TakingOff(_)
            | State::SetupFinished
            | State::Landing
            | State::Finished
            | State::Aborted(_) => TimerSet::EMPTY,
        }
    }

    fn describe(&self, swarm: &Swarm) -> (StateId, Text) {
        (state_id(swarm), self.detail(swarm))
    }
}

/// The state, by its name in the thesis.
pub(super) fn state_id(swarm: &Swarm) -> StateId {
    let is_at_waypoint = matches!(swarm.state(), State::Flying(BarrierState::WaypointReached { .. }));
    let in_flight = if is_at_waypoint { StateId::WaypointReached } else { StateId::MovingToWaypoint };
    swarm.state_id().unwrap_or(in_flight)
}

fn last_waypoint(swarm: &Swarm) -> u16 {
    swarm.assignment().last_waypoint() as u16
}

/// Members that are waited for and not known to have reached a waypoint.
fn members_behind(swarm: &Swarm, waypoint: u16) -> SlotSet {
    swarm.awaited().iter().filter(|&slot| swarm.traffic().reached(slot) < Some(waypoint)).collect()
}

/// The waypoint to which a leader commands that is at a waypoint, or on its way there: that one, unless a member that was
/// lost is received again from farther behind. It is not left behind a second time.
fn command(swarm: &Swarm, waypoint: u16) -> u16 {
    let next_of = |slot: usize| swarm.traffic().reached(slot).map_or(0, |reached| reached.saturating_add(1));
    swarm.awaited().iter().map(next_of).fold(waypoint, u16::min)
}

/// Whether the last [`check_legs`] found a leg blocked: only then its wait runs.
fn is_leg_blocked(swarm: &Swarm) -> bool {
    swarm.timers().is_set(Timer::Blocked)
}

/// Checks whether all can fly the leg from a waypoint clear of the members that are absent, and limits the wait where not.
fn check_legs(swarm: &mut Swarm, now: Instant, waypoint: u16) {
    if !swarm.clearance().is_any_leg_blocked(waypoint, swarm.awaited()) {
        swarm.timers_mut().stop(Timer::Blocked);
    } else if !is_leg_blocked(swarm) {
        let ends_at = swarm.config().patience_after(now);
        swarm.timers_mut().set(Timer::Blocked, ends_at);
    }
}
