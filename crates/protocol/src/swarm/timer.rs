//! The deadlines of a swarm and of its host, by name.
//!
//! A deadline that belongs to one state, and is set once when that state begins, stands in the state's variant
//! instead ([`Abort::Failure`](super::Abort), for instance).

use wingbeat_geo::{Duration, Instant};

use super::{Abort, Host, State, Swarm, TakeOffPhase};

/// What is to happen at a time. [`Swarm`](super::Swarm) and its host define in which states each of them runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The messages of the state are due. Free-running: its phase is drawn from the seed.
    Broadcast,
    /// Whether the target is reached is checked next.
    ArrivalCheck,
    /// The target should long have been reached.
    Leg,
    /// The message that keeps the aircraft in its state has not been received for long enough.
    Silence,
    /// The path ahead stays blocked by a member that is lost or gone: the flight ends.
    Blocked,
    /// Another aircraft stays in the way: the wait for it ends.
    Yield,
    /// The wait for a clear path to the landing position ends.
    LandingPath,
    /// In a landing one after the other: the wait for the next of those before ends.
    LandingOrder,
    /// The piloted leader broadcasts its coordinates next.
    Coordinates,
    /// The leader counts as lost.
    LeaderSilent,
}

/// Time between two checks whether the position below is free of one that drifts.
const CHECKS_AGAIN: Duration = Duration::from_millis(200);

impl Timer {
    const ALL: [Self; 10] = [
        Self::Broadcast,
        Self::ArrivalCheck,
        Self::Leg,
        Self::Silence,
        Self::Blocked,
        Self::Yield,
        Self::LandingPath,
        Self::LandingOrder,
        Self::Coordinates,
        Self::LeaderSilent,
    ];

    /// Why the agent is woken, by timer; by none at the end.
    const REASONS: [&'static str; Self::ALL.len() + 1] = [
        "message due",
        "check arrival",
        "target not reached",
        "answer overdue",
        "the path stays blocked",
        "another stays in the way",
        "the path to the landing position stays blocked",
        "the one before does not land",
        "coordinates due",
        "leader silent",
        "nothing",
    ];
}

/// Timers, one bit each: asked for at every input, and a large swarm receives many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerSet(u16);

impl TimerSet {
    pub(crate) const EMPTY: Self = Self(0);

    pub(crate) const fn of(timer: Timer) -> Self {
        Self(1 << timer as u16)
    }

    /// This set, and the timer if `runs`.
    pub(crate) const fn with(self, timer: Timer, runs: bool) -> Self {
        Self(self.0 | (runs as u16) << timer as u16)
    }

    /// The timers of either.
    const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// When each timer expires; never, of one that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerTable([Instant; Timer::ALL.len()]);

impl TimerTable {
    /// None is set.
    pub(crate) const fn new() -> Self {
        Self([Instant::NEVER; Timer::ALL.len()])
    }

    /// Sets a timer, or moves it.
    pub(crate) const fn set(&mut self, timer: Timer, at: Instant) {
        self.0[timer as usize] = at;
    }

    /// Stops those that a state or a message has set.
    pub(super) fn keep_free_running(&mut self) {
        let mut kept = Self::new();
        for timer in [Timer::Broadcast, Timer::ArrivalCheck, Timer::Coordinates] {
            kept.set(timer, self.0[timer as usize]);
        }
        *self = kept;
    }

    /// Stops a timer.
    pub(crate) const fn stop(&mut self, timer: Timer) {
        self.0[timer as usize] = Instant::NEVER;
    }

    /// When a timer expires, if it is set.
    pub(crate) fn get(&self, timer: Timer) -> Option<Instant> {
        self.is_set(timer).then_some(self.0[timer as usize])
    }

    /// Whether a timer is set, expired or not.
    pub(crate) fn is_set(&self, timer: Timer) -> bool {
        self.0[timer as usize] != Instant::NEVER
    }

    /// Whether a timer is set and has expired.
    pub(crate) fn is_due(&self, timer: Timer, now: Instant) -> bool {
        self.is_set(timer) && now >= self.0[timer as usize]
    }

    /// When the first of `running` expires, and why; never, if none is set.
    pub(crate) fn next(&self, running: TimerSet) -> (Instant, &'static str) {
        // Which of two is first is a toss-up, so nothing branches on it.
        let (mut first, mut which) = (Instant::NEVER, Timer::ALL.len());
        let mut rest = running.0;
        while rest != 0 {
            let timer = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let at = self.0[timer];
            which = if at < first { timer } else { which };
            first = first.min(at);
        }
        (first, Timer::REASONS[which])
    }
}

#[cfg(test)]
impl TimerTable {
    /// Milliseconds until a timer expires, 0 where it is due; none where it is not set.
    pub(crate) fn remaining_ms(&self, timer: Timer, now: Instant) -> Option<u64> {
        self.get(timer).map(|at| at.since(now).as_millis() as u64)
    }
}

impl Default for TimerTable {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: Copy + PartialEq> Swarm<F> {
    /// When it wants waking, and why.
    pub(crate) fn poll_timeout<H: Host<FlyingState = F>>(&self, host: &H) -> (Instant, &'static str) {
        let mut first = self.timers.next(self.running().union(host.running(self)));
        let deadline = match self.state {
            State::Aborted(Abort::Failure { land_at }) => Some((land_at, "no operator decided")),
            State::TakingOff(_) | State::SetupFinished => {
                self.stalled_at().map(|at| (at, "others are missing"))
            }
            State::Start
            | State::Setup
            | State::ReadyToFly
            | State::Flying(_)
            | State::MovingToLand
            | State::Landing
            | State::Finished
            | State::Aborted(_) => None,
        };
        for next in [deadline, host.deadline(self)].into_iter().flatten() {
            if next.0 < first.0 {
                first = next;
            }
        }
        first
    }

    /// Sets the next check of an aircraft that stays at its landing position because another drifts below: its timer has
    /// expired, and an expired timer wakes the agent without end.
    pub(super) fn check_again_above_drift(&mut self, now: Instant) {
        let waits = matches!(self.state, State::Aborted(Abort::LandAside { .. }));
        if waits && self.timers.is_due(Timer::Leg, now) {
            self.timers.set(Timer::Leg, now + CHECKS_AGAIN);
        }
    }

    /// The timers of the swarm that run in the present state.
    fn running(&self) -> TimerSet {
        use TakeOffPhase::{Climbing, Confirming, InSlot, MovingToSlot, Waiting};
        let in_state = match self.state {
            State::TakingOff(MovingToSlot) => TimerSet::of(Timer::Leg).with(Timer::Yield, true),
            State::TakingOff(Climbing) | State::MovingToLand | State::Aborted(Abort::LandAside { .. }) => {
                TimerSet::of(Timer::Leg)
            }
            State::TakingOff(Waiting) => TimerSet::of(Timer::Blocked),
            State::TakingOff(Confirming) => TimerSet::EMPTY.with(Timer::Silence, !self.is_leader()),
            State::ReadyToFly => TimerSet::EMPTY.with(Timer::Silence, !self.is_master()),
            State::Start
            | State::Setup
            | State::TakingOff(InSlot)
            | State::SetupFinished
            | State::Flying(_)
            | State::Landing
            | State::Finished
            | State::Aborted(_) => TimerSet::EMPTY,
        };
        let is_climbing = self.state == State::TakingOff(Climbing);
        let checks_arrival =
            !self.config.arrival_period.is_zero() && (self.navigation.target().is_some() || is_climbing);
        in_state.with(Timer::Broadcast, true).with(Timer::ArrivalCheck, checks_arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_those_that_run_is_next() {
        let mut timers = TimerTable::new();
        let broadcast = TimerSet::of(Timer::Broadcast);
        let all = Timer::ALL.into_iter().fold(TimerSet::EMPTY, |set, timer| set.with(timer, true));
        assert_eq!(timers.next(all), (Instant::NEVER, "nothing"));
        timers.set(Timer::Leg, Instant::from_secs(3));
        timers.set(Timer::Broadcast, Instant::from_secs(4));
        assert_eq!(timers.next(all), (Instant::from_secs(3), "target not reached"));
        assert_eq!(timers.next(broadcast), (Instant::from_secs(4), "message due"));
        assert_eq!(timers.next(broadcast.with(Timer::Leg, true)), timers.next(all));
        assert_eq!(timers.next(TimerSet::EMPTY.with(Timer::Leg, false)).0, Instant::NEVER);
        assert!(
            timers.is_due(Timer::Leg, Instant::from_secs(3)) && !timers.is_due(Timer::Leg, Instant::ZERO)
        );
        timers.stop(Timer::Leg);
        assert!(!timers.is_set(Timer::Leg) && !timers.is_due(Timer::Leg, Instant::NEVER));
    }

    #[test]
    fn every_timer_has_an_entry_of_its_own() {
        for (index, timer) in Timer::ALL.into_iter().enumerate() {
            assert_eq!(timer as usize, index, "{timer:?}");
        }
    }
}
