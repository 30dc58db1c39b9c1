//! The states of a swarm, and what leads from one to the next.

#[cfg(test)]
extern crate std;

use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::Point;

use super::timer::Timer;
use super::{Host, Swarm};
use crate::{Asked, Command, EndFlight, Input};

/// States of a swarm (thesis figure 6.1; the take-off is spread out as in the reference); `F` are the host's own in
/// flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<F> {
    /// The others call; the master listens.
    Start,
    /// The master broadcasts the plan.
    Setup,
    /// All members hold the plan.
    ReadyToFly,
    /// Taking off one after the other.
    TakingOff(TakeOffPhase),
    /// All in their slots, waiting for the operator's start.
    SetupFinished,
    /// The host's.
    Flying(F),
    /// On the way to the own position in the landing formation.
    MovingToLand,
    /// Landing.
    Landing,
    /// On the ground, disarmed.
    Finished,
    /// Stopped before the end of the flight.
    Aborted(Abort),
}

/// Phases of the take-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeOffPhase {
    /// Others are first.
    Waiting,
    /// Straight up to the first height.
    Climbing,
    /// To the slot.
    MovingToSlot,
    /// In the slot, until all are.
    InSlot,
    /// All are in their slots; until all members know.
    Confirming,
}

/// *Land* counts as said again, of an aircraft that flies aside to land, when the operator can have seen what the first did: the
/// picture is at most a second old.
const INSISTS_AFTER: Duration = Duration::from_secs(3);

/// An aircraft that climbed out of the way of one that drifts lands after this time, although that one may still drift below.
const WAITS_ABOVE: Duration = Duration::from_secs(120);

/// A position is higher than another from this difference on, in millimetres.
const HIGHER_MM: i32 = 1_000;

/// How an aborted flight ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// As the operator commanded, or after the last deadline.
    Ending(EndFlight),
    /// Holding until the path home is clear; where it stays blocked for long, landing.
    ReturnHeld {
        /// Since when.
        since: Instant,
    },
    /// Flying aside first, because a member stands or lands below; *Land* again lands where the aircraft is.
    LandAside {
        /// Landing site.
        site: Point,
        /// Since when.
        since: Instant,
    },
    /// Holding after a failure, then landing.
    Failure {
        /// Time at which it lands if no operator decides.
        land_at: Instant,
    },
    /// Its pilot or its autopilot's failsafe flies it, and ends the flight this way as far as is known.
    TakenOver(EndFlight),
    /// On the ground: it had not taken off, or has landed.
    Ground,
}

impl Abort {
    pub(crate) const LAND: Self = Self::Ending(EndFlight::Land);
}

/// What an input asks for, in addition to what it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// Nothing.
    None,
    /// The operator's command.
    Command(Command),
    /// An order failed.
    OrderFailed,
    /// Another flies the aircraft from here on.
    TakenOver(EndFlight),
    /// The battery carries it so far and no farther.
    BatteryLow(EndFlight),
}

impl Trigger {
    pub(super) fn of(input: &Input<'_>) -> Self {
        match *input {
            Input::Operator(command) => Self::Command(command),
            Input::Failed(_) => Self::OrderFailed,
            Input::TakenOver(ending) => Self::TakenOver(ending),
            Input::BatteryLow(ending) => Self::BatteryLow(ending),
            Input::Wake
            | Input::Telemetry(_)
            | Input::Message { .. }
            | Input::Passed { .. }
            | Input::Reached(_)
            | Input::Done(_) => Self::None,
        }
    }
}

/// The next state, and why it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transition<F> {
    pub(crate) to: State<F>,
    /// None where the states give it.
    pub(crate) reason: Option<Reason>,
}

impl<F> Transition<F> {
    pub(crate) fn to(to: State<F>) -> Self {
        Self { to, reason: None }
    }

    pub(crate) fn because(to: State<F>, reason: Reason) -> Self {
        Self { to, reason: Some(reason) }
    }
}

/// Why a flight does not continue as planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Operator,
    Excluded,
    /// By its pilot, its autopilot's failsafe or a ground station.
    TakenOver,
    /// Disarmed in the air.
    MotorsStopped,
    /// Its battery, or a wait that lasted too long, ends the flight.
    BatteryLow,
    /// The battery or the wait of a member ends the flight of all.
    Recalled,
    OrderFailed,
    TargetNotReached,
    Undecided,
    /// The path home stays blocked.
    ReturnBlocked,
    /// The leader ends the flight where all are.
    EndedByLeader,
    MembersMissing,
    /// A lost predecessor blocks the take-off.
    TakeOffBlocked,
    /// A lost member blocks a leg of the formation.
    FlightBlocked,
    LeftBehind,
    /// Members stayed away, one after the other or again and again.
    OthersAway,
    /// A member that may leave stays on the next leg.
    NextLegOccupied,
    /// A member waits on the next leg for this aircraft.
    NextLegBlocked,
    /// A member stays ahead on the present leg.
    LegOccupied,
    /// The path to the landing position may not be clear.
    LandingPathBlocked,
    /// A member stays ahead on the path to the landing position.
    LandingPathOccupied,
    LeaderSilent,
    LeaderSilentUndecided,
    /// Another that the swarm does not steer may drift into this aircraft.
    Adrift,
}

impl Reason {
    /// As the log has it, after the state.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Operator => "; operator",
            Self::Excluded => "; excluded by the operator",
            Self::TakenOver => "; taken over",
            Self::MotorsStopped => "; the motors stopped in flight",
            Self::BatteryLow => "; waited too long, or the battery ends the flight",
            Self::Recalled => "; another waited too long or its battery is low: all end the flight",
            Self::OrderFailed => "; an order failed",
            Self::TargetNotReached => "; the target was not reached in time",
            Self::Undecided => "; no operator decided in time",
            Self::ReturnBlocked => "; the path home stays blocked: lands here",
            Self::EndedByLeader => "; the leader ends the flight here",
            Self::MembersMissing => "; others are missing and no operator decided in time: lands here",
            Self::TakeOffBlocked => "; a lost aircraft blocks the path: stays on the ground",
            Self::FlightBlocked => "; the leg past a lost aircraft stays blocked: all land where they are",
            Self::LeftBehind => "; left behind: the others have left",
            Self::OthersAway => "; waited too long for others that stay away: lands here",
            Self::NextLegOccupied => "; another stays on the leg to the next waypoint",
            Self::NextLegBlocked => "; left behind: others wait on the leg to the next waypoint",
            Self::LegOccupied => "; another stays ahead on the leg",
            Self::LandingPathBlocked => "; another may be on the path to the landing position: lands here",
            Self::LandingPathOccupied => {
                "; another stays ahead on the path to the landing position: lands here"
            }
            Self::LeaderSilent => "; the leader is silent",
            Self::Adrift => "; another drifts towards here: climbs, then lands",
            Self::LeaderSilentUndecided => "; the leader is silent and no operator decided in time",
        }
    }
}

impl<F: Copy + PartialEq> Swarm<F> {
    /// The transition table: it reads and never writes.
    pub(super) fn next<H: Host<FlyingState = F>>(
        &self,
        host: &H,
        now: Instant,
        trigger: Trigger,
    ) -> Option<Transition<F>> {
        self.stop(now, trigger)
            .or_else(|| self.next_of_swarm(now, trigger))
            .or_else(|| host.next(self, now, trigger))
            .filter(|transition| transition.to != self.state)
    }

    /// What the operator's stop, or a failure, makes of any state.
    fn stop(&self, now: Instant, trigger: Trigger) -> Option<Transition<F>> {
        use State::{Aborted, Finished, Landing, MovingToLand};
        let is_armed = self.ownship.is_armed();
        if matches!(self.state, Finished | Aborted(Abort::Ground)) && !is_armed {
            return Some(Transition::to(self.state));
        }
        if let Trigger::TakenOver(ending) = trigger {
            let abort = if is_armed { Abort::TakenOver(ending) } else { Abort::Ground };
            return Some(Transition::because(Aborted(abort), Reason::TakenOver));
        }
        if !is_armed && self.is_in_the_air() {
            return Some(Transition::because(Aborted(Abort::Ground), Reason::MotorsStopped));
        }
        if let Some((ending, reason)) = self.ends(trigger) {
            let is_returning =
                matches!(self.state, Aborted(Abort::Ending(EndFlight::Return) | Abort::ReturnHeld { .. }));
            let abort = match ending {
                _ if !is_armed => Some(Abort::Ground),
                EndFlight::Return if is_returning => None,
                EndFlight::Land if !self.insists(now, reason) => None,
                EndFlight::Return => Some(self.clearance().begin_return(now)),
                EndFlight::Hold | EndFlight::Land => Some(Abort::Ending(ending)),
            };
            if let Some(abort) = abort {
                return Some(Transition::because(Aborted(abort), reason));
            }
        }
        if self.landing.ends_here() && self.watches() && is_armed {
            return Some(Transition::because(Aborted(Abort::LAND), Reason::EndedByLeader));
        }
        let is_excluded =
            self.members.is_excluded() && !matches!(self.state, MovingToLand | Landing | Finished);
        let has_failed = trigger == Trigger::OrderFailed;
        if !(is_excluded || has_failed) || matches!(self.state, Aborted(_)) {
            return None;
        }
        // It cannot do what it must: it holds, reports that, and lands if no operator decides.
        let reason = if is_excluded { Reason::Excluded } else { Reason::OrderFailed };
        if !is_armed {
            return Some(Transition::because(Aborted(Abort::Ground), reason));
        }
        if matches!(self.state, MovingToLand | Landing) {
            return Some(Transition::because(Aborted(Abort::LAND), reason));
        }
        Some(self.failure(now, reason))
    }

    /// How the flight ends now that the operator or a battery ends it, and by which of them.
    fn ends(&self, trigger: Trigger) -> Option<(EndFlight, Reason)> {
        match trigger {
            Trigger::Command(command) => match Asked::by(command) {
                Asked::End(ending) => Some((ending, Reason::Operator)),
                Asked::Setup | Asked::Start | Asked::Resume | Asked::Exclude(_) | Asked::Nothing => None,
            },
            Trigger::BatteryLow(ending) => Some((ending, Reason::BatteryLow)),
            Trigger::None | Trigger::OrderFailed | Trigger::TakenOver(_) => None,
        }
        .or_else(|| {
            // Without heights to return at, all land, as far apart as they fly.
            let ending = if self.lacks_layers() { EndFlight::Land } else { EndFlight::Return };
            (self.landing.is_recalled() && self.watches()).then_some((ending, Reason::Recalled))
        })
    }

    /// Whether this aircraft flies in this state, which none disarms that is not about to land. A pilot flies a piloted
    /// master, and lands it when he likes.
    fn is_in_the_air(&self) -> bool {
        use TakeOffPhase::{Climbing, Confirming, InSlot, MovingToSlot, Waiting};
        self.assignment.take_off_index().is_some()
            && match self.state {
                State::TakingOff(MovingToSlot | InSlot | Confirming)
                | State::SetupFinished
                | State::Flying(_)
                | State::MovingToLand => true,
                State::Start
                | State::Setup
                | State::ReadyToFly
                | State::TakingOff(Waiting | Climbing)
                | State::Landing
                | State::Finished
                | State::Aborted(_) => false,
            }
    }

    /// What follows for the swarm. While [`State::Flying`] nothing does.
    fn next_of_swarm(&self, now: Instant, trigger: Trigger) -> Option<Transition<F>> {
        use State::{
            Aborted, Finished, Flying, Landing, MovingToLand, ReadyToFly, Setup, SetupFinished, Start,
            TakingOff,
        };
        let is_overdue = || self.timers.is_due(Timer::Leg, now);
        match self.state {
            Start => {
                let is_asked = trigger == Trigger::Command(Command::Setup);
                // A master plans first, and stays where it cannot.
                let is_ready = !self.is_master() || self.assignment.is_planned();
                (is_asked && is_ready).then_some(Transition::to(Setup))
            }
            Setup | ReadyToFly => self.next_in_setup(now),
            TakingOff(_) | SetupFinished if self.stalled_at().is_some_and(|at| now >= at) => {
                Some(Transition::because(Aborted(Abort::LAND), Reason::MembersMissing))
            }
            TakingOff(phase) => self.next_in_take_off(now, phase),
            MovingToLand | Landing | Aborted(Abort::LAND) if self.must_climb(now) => {
                let site = self.clearance().above_adrift(now)?;
                Some(Transition::because(Aborted(Abort::LandAside { site, since: now }), Reason::Adrift))
            }
            MovingToLand if self.navigation.has_arrived() => {
                (!self.waits_to_descend(now)).then_some(Transition::to(Landing))
            }
            MovingToLand if is_overdue() => Some(self.failure(now, Reason::TargetNotReached)),
            Landing if !self.ownship.is_armed() => Some(Transition::to(Finished)),
            // Another fell, landed or lands next to where this aircraft descends.
            Landing if self.timers.is_due(Timer::Broadcast, now) && self.clearance().lands_on_another() => {
                Some(Transition::to(Aborted(self.land_aside(now)?)))
            }
            Aborted(abort) if self.ownship.is_armed() => self.next_in_abort(now, trigger, abort),
            Aborted(_) => Some(Transition::to(Aborted(Abort::Ground))),
            SetupFinished | Flying(_) | MovingToLand | Landing | Finished => None,
        }
    }

    /// What follows in the air after the flight was stopped.
    fn next_in_abort(&self, now: Instant, trigger: Trigger, abort: Abort) -> Option<Transition<F>> {
        let aborted = |abort| Transition::to(State::Aborted(abort));
        // Others report their positions as often as messages are due here.
        let is_due = || self.timers.is_due(Timer::Broadcast, now);
        match abort {
            Abort::Ending(EndFlight::Return) if is_due() => {
                self.clearance().continue_return(now).map(aborted)
            }
            Abort::ReturnHeld { since } if is_due() => {
                let next = self.clearance().resume_return(now, since)?;
                let reason = (next == Abort::LAND).then_some(Reason::ReturnBlocked);
                Some(Transition { to: State::Aborted(next), reason })
            }
            Abort::LAND if is_due() && !self.landing.is_insisted() && self.clearance().lands_on_another() => {
                self.land_aside(now).map(aborted)
            }
            Abort::LandAside { site, since } => {
                let is_higher = |above: &Point| above.height_mm > site.height_mm.saturating_add(HIGHER_MM);
                if self.must_climb(now)
                    && let Some(site) = self.clearance().above_adrift(now).filter(is_higher)
                {
                    let aside = State::Aborted(Abort::LandAside { site, since });
                    return Some(Transition::because(aside, Reason::Adrift));
                }
                let has_failed = trigger == Trigger::OrderFailed || self.timers.is_due(Timer::Leg, now);
                let is_over = self.navigation.has_arrived() || has_failed;
                let waits = !self.landing.is_for_battery() && now.since(since) < WAITS_ABOVE;
                (is_over && !(waits && self.clearance().is_drifted_over(now))).then_some(aborted(Abort::LAND))
            }
            Abort::Failure { land_at } if now >= land_at => {
                Some(Transition::because(State::Aborted(Abort::LAND), Reason::Undecided))
            }
            Abort::Ending(_)
            | Abort::ReturnHeld { .. }
            | Abort::Failure { .. }
            | Abort::TakenOver(_)
            | Abort::Ground => None,
        }
    }

    /// Returns whether another drifts towards this aircraft, which is about to land, at its height. Checked whenever messages are
    /// due. An operator who insists and an empty battery land the aircraft where it is.
    fn must_climb(&self, now: Instant) -> bool {
        self.ownship.is_armed()
            && !self.is_adrift()
            && !self.landing.is_insisted()
            && !self.landing.is_for_battery()
            && self.timers.is_due(Timer::Broadcast, now)
            && !self.clearance().may_drift_next(now)
            && self.clearance().above_adrift(now).is_some()
    }

    /// Flying aside to land, where another is below and there is a site.
    pub(super) fn land_aside(&self, now: Instant) -> Option<Abort> {
        self.clearance().site_aside().map(|site| Abort::LandAside { site, since: now })
    }

    /// Whether *Land* lands this aircraft where it is: not on another for a battery's sake, nor for the second of two consoles
    /// that had not seen yet what the first did.
    fn insists(&self, now: Instant, reason: Reason) -> bool {
        let State::Aborted(Abort::LandAside { since, .. }) = self.state else { return true };
        reason == Reason::Operator && now.since(since) >= INSISTS_AFTER
    }

    /// Holding for the operator to decide, then landing.
    pub(crate) fn failure(&self, now: Instant, reason: Reason) -> Transition<F> {
        let land_at = now + self.config.hold_before_landing;
        Transition::because(State::Aborted(Abort::Failure { land_at }), reason)
    }
}

#[cfg(test)]
impl<F: Copy> State<F> {
    /// Its name in a transition table, without the data that changes from flight to flight.
    pub(crate) fn label(self, flight: impl Fn(F) -> std::string::String) -> std::string::String {
        match self {
            Self::Start => "Start".into(),
            Self::Setup => "Setup".into(),
            Self::ReadyToFly => "ReadyToFly".into(),
            Self::TakingOff(phase) => std::format!("TakingOff({phase:?})"),
            Self::SetupFinished => "SetupFinished".into(),
            Self::Flying(state) => flight(state),
            Self::MovingToLand => "MovingToLand".into(),
            Self::Landing => "Landing".into(),
            Self::Finished => "Finished".into(),
            Self::Aborted(Abort::Ending(ending)) => std::format!("Aborted({ending:?})"),
            Self::Aborted(Abort::ReturnHeld { .. }) => "Aborted(ReturnHeld)".into(),
            Self::Aborted(Abort::LandAside { .. }) => "Aborted(LandAside)".into(),
            Self::Aborted(Abort::Failure { .. }) => "Aborted(Failure)".into(),
            Self::Aborted(Abort::TakenOver(ending)) => std::format!("Aborted(TakenOver({ending:?}))"),
            Self::Aborted(Abort::Ground) => "Aborted(Ground)".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use wingbeat_geo::DVec3;
    use wingbeat_wire::VehicleId;

    use super::super::plan;
    use super::super::tests::{Member, OTHER, THIRD};
    use super::*;
    use crate::{Order, Telemetry};

    /// A member with a plan, in a state.
    fn member_in(state: State<()>, armed: bool) -> Member {
        let mut member = Member::planned();
        member.swarm.state = state;
        member.swarm.ownship.report(
            member.now,
            Telemetry {
                position: plan::position(Member::stand(OTHER)),
                height_m: if armed { 20.0 } else { 0.0 },
                velocity_m_s: DVec3::ZERO,
                heading_rad: 0.0,
                armed,
                landing: false,
                is_located: true,
            },
        );
        member
    }

    fn stop(state: State<()>, armed: bool, trigger: Trigger) -> Option<State<()>> {
        let member = member_in(state, armed);
        let stopped = member.swarm.stop(member.now, trigger);
        stopped.map(|transition| transition.to).filter(|to| *to != state)
    }

    const HOLD: State<()> = State::Aborted(Abort::Ending(EndFlight::Hold));
    const LAND: State<()> = State::Aborted(Abort::LAND);
    const GROUND: State<()> = State::Aborted(Abort::Ground);

    #[test]
    fn the_operator_stops_what_flies_and_ends_what_stands() {
        let hold = Trigger::Command(Command::Hold);
        let on_ground =
            [State::Start, State::Setup, State::ReadyToFly, State::TakingOff(TakeOffPhase::Waiting)];
        for state in on_ground {
            assert_eq!(stop(state, false, hold), Some(GROUND), "{state:?}");
        }
        let in_air = [
            State::TakingOff(TakeOffPhase::Climbing),
            State::SetupFinished,
            State::Flying(()),
            State::MovingToLand,
            State::Landing,
            LAND,
        ];
        for state in in_air {
            assert_eq!(stop(state, true, hold), Some(HOLD), "{state:?}");
        }
        for over in [State::Finished, GROUND] {
            assert_eq!(stop(over, false, hold), None, "{over:?}");
        }
    }

    #[test]
    fn a_failed_order_holds_in_flight_and_lands_where_it_was_about_to() {
        let failed = |state, armed| stop(state, armed, Trigger::OrderFailed);
        let land_at = member_in(State::Start, true).now + Duration::from_secs(60);
        let holds = Some(State::Aborted(Abort::Failure { land_at }));
        for state in [State::TakingOff(TakeOffPhase::Climbing), State::SetupFinished, State::Flying(())] {
            assert_eq!(failed(state, true), holds, "{state:?}");
        }
        for state in [State::MovingToLand, State::Landing] {
            assert_eq!(failed(state, true), Some(LAND), "{state:?}");
        }
        for state in [State::Setup, State::ReadyToFly] {
            assert_eq!(failed(state, false), Some(GROUND), "{state:?}");
        }
        assert_eq!(failed(HOLD, true), None, "it ends already");
    }

    /// Two consoles send *Land* within a second, or a battery ends the flight meanwhile: no aircraft lands on the one below for that.
    #[test]
    fn only_the_operator_who_can_have_seen_the_first_land_insists() {
        let since = Instant::from_secs(40);
        let site = Member::stand(OTHER);
        let member = member_in(State::Aborted(Abort::LandAside { site, since }), true);
        let land = Trigger::Command(Command::Land);
        let next = |at_ms, trigger| {
            let at = since + Duration::from_millis(at_ms);
            member.swarm.stop(at, trigger).map(|transition| transition.to)
        };
        assert_eq!([next(0, land), next(900, land), next(2_999, land)], [None; 3]);
        assert_eq!(next(3_000, land), Some(LAND));
        assert_eq!(next(9_000, Trigger::BatteryLow(EndFlight::Land)), None);
        assert_eq!(next(0, Trigger::Command(Command::Hold)), Some(HOLD));
    }

    /// A member in a state, next to which another drifts at its height; messages are due.
    fn drifted_in(state: State<()>) -> Member {
        let mut member = member_in(state, true);
        let third = member.slot_of(THIRD);
        let at = Point { height_mm: 20_000, ..plan::moved(Member::stand(OTHER), 5.0, 0.0) };
        member.swarm.traffic.report_adrift(member.now, third, at);
        // Later: it was another cause.
        member.now = member.now + Duration::from_millis(1_500);
        member.swarm.timers.set(Timer::Broadcast, member.now);
        member.swarm.timers.set(Timer::Leg, member.now);
        member
    }

    fn climbs(member: &Member) -> Option<Abort> {
        match member.swarm.next_of_swarm(member.now, Trigger::None)?.to {
            State::Aborted(abort @ Abort::LandAside { .. }) => Some(abort),
            _ => None,
        }
    }

    #[test]
    fn muscop_33_neither_an_operator_who_insists_nor_an_empty_battery_waits_for_one_that_drifts() {
        let mut member = drifted_in(LAND);
        assert!(climbs(&member).is_some());
        member.swarm.landing.insist();
        assert_eq!(climbs(&member), None);
        let mut member = drifted_in(LAND);
        member.swarm.landing.land_for_battery();
        assert_eq!(climbs(&member), None);
        // It has climbed, and waits.
        let above = Abort::LandAside {
            site: Point { height_mm: 40_000, ..Member::stand(OTHER) },
            since: Instant::from_secs(1),
        };
        let mut member = drifted_in(State::Aborted(above));
        assert_eq!(member.swarm.next_of_swarm(member.now, Trigger::None), None);
        member.handle(Input::BatteryLow(EndFlight::Land));
        assert_eq!((member.swarm.state, member.orders()), (LAND, std::vec![Order::Land]));
        member.swarm.timers.set(Timer::Broadcast, member.now);
        assert_eq!(climbs(&member), None, "it climbs no second time");
    }

    /// All of a row descended, and a jammer took all their satellites: one climbed half a second before
    /// it noticed its own loss, and the wind carried it 20 m farther than the others.
    #[test]
    fn muscop_33_an_aircraft_that_may_drift_next_does_not_climb() {
        let mut member = drifted_in(LAND);
        member.now = member.now - Duration::from_millis(100);
        member.swarm.timers.set(Timer::Broadcast, member.now);
        assert_eq!(climbs(&member), None);
    }

    #[test]
    fn muscop_33_the_wait_above_one_that_drifts_has_an_end() {
        let since = Instant::from_secs(1);
        let above = Abort::LandAside { site: Point { height_mm: 40_000, ..Member::stand(OTHER) }, since };
        let mut member = drifted_in(State::Aborted(above));
        let third = member.slot_of(THIRD);
        let at = Point { height_mm: 20_000, ..plan::moved(Member::stand(OTHER), 5.0, 0.0) };
        let mut next = |after: Duration| {
            member.swarm.traffic.report_adrift(since + after, third, at);
            member.swarm.next_of_swarm(since + after, Trigger::None)
        };
        assert_eq!(next(WAITS_ABOVE - Duration::from_secs(1)), None);
        assert_eq!(next(WAITS_ABOVE), Some(Transition::to(LAND)));
    }

    #[test]
    fn muscop_33_one_that_flies_aside_climbs_out_of_the_way_of_one_that_drifts_too() {
        let since = Instant::from_secs(1);
        let site = Point { height_mm: 20_000, ..plan::moved(Member::stand(OTHER), 0.0, 8.0) };
        let mut member = drifted_in(State::Aborted(Abort::LandAside { site, since }));
        let Some(Abort::LandAside { site: above, since: kept }) = climbs(&member) else { panic!("it stays") };
        assert!(above.height_mm > 25_000 && kept == since, "{above:?} {kept:?}");
        member.swarm.state = State::Aborted(Abort::LandAside { site: above, since });
        assert_eq!(climbs(&member), None, "it is on its way up");
    }

    #[test]
    fn one_that_cannot_fly_aside_lands_at_once() {
        let since = Instant::from_secs(40);
        let member = member_in(State::Aborted(Abort::LandAside { site: Member::stand(OTHER), since }), true);
        let next = |trigger| member.swarm.next_of_swarm(since, trigger);
        assert_eq!((next(Trigger::OrderFailed), next(Trigger::None)), (Some(Transition::to(LAND)), None));
    }

    #[test]
    fn an_aircraft_that_is_taken_over_gets_no_order_and_one_whose_motors_stop_is_down() {
        for end in EndFlight::ALL {
            let taken = Trigger::TakenOver(end);
            let expected = State::Aborted(Abort::TakenOver(end));
            assert_eq!(stop(State::Flying(()), true, taken), Some(expected));
            assert_eq!(stop(State::Setup, false, taken), Some(GROUND));
        }
        for (state, expected) in [
            (State::Flying(()), Some(GROUND)),
            (State::MovingToLand, Some(GROUND)),
            (State::TakingOff(TakeOffPhase::Climbing), None),
            (State::Landing, None),
        ] {
            assert_eq!(stop(state, false, Trigger::None), expected, "{state:?}");
        }
    }

    #[test]
    fn an_expired_timer_above_one_that_drifts_is_set_again() {
        let since = Instant::from_secs(60);
        let site = Point::default();
        let mut member = member_in(State::Aborted(Abort::LandAside { site, since }), true);
        member.swarm.timers.set(Timer::Leg, since);
        member.swarm.check_again_above_drift(since);
        assert!(member.swarm.timers.get(Timer::Leg).is_some_and(|at| at > since));
    }

    #[test]
    fn a_failure_that_no_operator_decides_lands_in_time() {
        let land_at = Instant::from_secs(61);
        let member = member_in(State::Aborted(Abort::Failure { land_at }), true);
        let next = |at| member.swarm.next_of_swarm(at, Trigger::None);
        assert_eq!(next(Instant::from_secs(60)), None);
        assert_eq!(next(land_at), Some(Transition::because(LAND, Reason::Undecided)));
        // On the ground there is nothing left to decide.
        let member = member_in(State::Aborted(Abort::Failure { land_at }), false);
        assert_eq!(member.swarm.next_of_swarm(member.now, Trigger::None), Some(Transition::to(GROUND)));
    }

    #[test]
    fn a_command_a_failure_and_a_takeover_are_triggers_and_nothing_else_is() {
        let exclude = Command::Exclude { member: VehicleId(3) };
        for (input, trigger) in [
            (Input::Operator(exclude), Trigger::Command(exclude)),
            (Input::Failed(Order::Hold), Trigger::OrderFailed),
            (Input::TakenOver(EndFlight::Land), Trigger::TakenOver(EndFlight::Land)),
            (Input::Done(Order::Hold), Trigger::None),
            (Input::Reached(1), Trigger::None),
            (Input::Wake, Trigger::None),
        ] {
            assert_eq!(Trigger::of(&input), trigger, "{input:?}");
        }
    }
}
