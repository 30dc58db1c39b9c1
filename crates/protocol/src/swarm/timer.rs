//! The deadlines of a swarm and of its host, by name.
//!
//! A deadline that belongs to one state, and is set once when that state begins, stands in the state's variant
//! instead ([`Abort::Failure`](super::Abort), for instance).

use wingbeat_geo::Instant;

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

    /// Why the agent is woken.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Broadcast => "message due",
            Self::ArrivalCheck => "check arrival",
            Self::Leg => "target not reached",
            Self::Silence => "answer overdue",
            Self::Blocked => "the path stays blocked",
            Self::Yield => "another stays in the way",
            Self::LandingPath => "the path to the landing position stays blocked",
            Self::LandingOrder => "the one before does not land",
            Self::Coordinates => "coordinates due",
            Self::LeaderSilent => "leader silent",
        }
    }
}

/// When each timer expires, if it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerTable([Option<Instant>; Timer::ALL.len()]);

impl TimerTable {
    /// None is set.
    pub(crate) const fn new() -> Self {
        Self([None; Timer::ALL.len()])
    }

    /// Sets a timer, or moves it.
    pub(crate) const fn set(&mut self, timer: Timer, at: Instant) {
        self.0[timer as usize] = Some(at);
    }

    /// Stops a timer.
    pub(crate) const fn stop(&mut self, timer: Timer) {
        self.0[timer as usize] = None;
    }

    /// When a timer expires, if it is set.
    pub(crate) const fn get(&self, timer: Timer) -> Option<Instant> {
        self.0[timer as usize]
    }

    /// Whether a timer is set, expired or not.
    pub(crate) const fn is_set(&self, timer: Timer) -> bool {
        self.0[timer as usize].is_some()
    }

    /// Whether a timer is set and has expired.
    pub(crate) fn is_due(&self, timer: Timer, now: Instant) -> bool {
        self.get(timer).is_some_and(|at| now >= at)
    }

    /// The first of the set timers that run to expire, and why.
    pub(crate) fn next(&self, runs: impl Fn(Timer) -> bool) -> Option<(Instant, &'static str)> {
        // Asked at every input: a loop, and whether a timer runs only of one that would be the first.
        let mut next: Option<(Instant, Timer)> = None;
        for timer in Timer::ALL {
            if let Some(at) = self.get(timer)
                && next.is_none_or(|(first, _)| at < first)
                && runs(timer)
            {
                next = Some((at, timer));
            }
        }
        next.map(|(at, timer)| (at, timer.reason()))
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
        let mut first = self
            .timers
            .next(|timer| self.runs(timer) || host.runs(self, timer))
            .unwrap_or((Instant::NEVER, "nothing"));
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

    /// In which states the swarm's timers run.
    fn runs(&self, timer: Timer) -> bool {
        use TakeOffPhase::{Climbing, Confirming, MovingToSlot, Waiting};
        let is_climbing = self.state == State::TakingOff(Climbing);
        match timer {
            Timer::Broadcast => true,
            Timer::ArrivalCheck => {
                !self.config.arrival_period.is_zero() && (self.navigation.target().is_some() || is_climbing)
            }
            Timer::Leg => matches!(
                self.state,
                State::TakingOff(Climbing | MovingToSlot)
                    | State::MovingToLand
                    | State::Aborted(Abort::LandAside { .. })
            ),
            Timer::Silence => {
                self.state == State::ReadyToFly && !self.is_master()
                    || self.state == State::TakingOff(Confirming) && !self.is_leader()
            }
            Timer::Blocked => self.state == State::TakingOff(Waiting),
            Timer::Yield
            | Timer::LandingPath
            | Timer::LandingOrder
            | Timer::Coordinates
            | Timer::LeaderSilent => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_those_that_run_is_next() {
        let mut timers = TimerTable::new();
        assert_eq!(timers.next(|_| true), None);
        timers.set(Timer::Leg, Instant::from_secs(3));
        timers.set(Timer::Broadcast, Instant::from_secs(4));
        assert_eq!(timers.next(|_| true), Some((Instant::from_secs(3), "target not reached")));
        assert_eq!(timers.next(|timer| timer != Timer::Leg), Some((Instant::from_secs(4), "message due")));
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
