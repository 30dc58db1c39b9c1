//! The transition table: what follows from an input, from the end of a manoeuvre, and from the periodic check for
//! conflicts. Everything here reads and never writes.

use heapless::Vec;
use wingbeat_geo::{DVec2, DVec3, Duration, Instant};
use wingbeat_wire::{Avoidance, Point, VehicleId};

use super::config::{AsideTests, Risk};
use super::neighbours::Neighbour;
use super::predict::LOCATIONS_MAX;
use super::silent::{Obstacle, SILENT_AFTER};
use super::state::{AfterResume, Avoiding, Conflict, Waiting};
use super::{Mbcap, Motion, Returning, aside, risk};
use crate::flight::{State, Transition};
use crate::{EndFlight, Input, Order, REPORT_HOLDS};

/// Nearer than this to the position aside the aircraft has arrived, metres.
const ASIDE_ARRIVED_M: f64 = 1.0;

/// Two land further from each other than the safe distance by this: at least 5 m, and the GNSS errors of both, metres.
const LANDING_ASIDE_M: f64 = 2.5;
/// And no nearer than this: MUSCOP's landing distance, metres.
const LANDING_CLEAR_LEAST_M: f64 = 10.0;
/// One that lands is flown over so far above it: 5 m, and the errors of both heights, metres.
const FLOWN_OVER_M: f64 = 8.0;
/// So high above its home, by its own measurement, an aircraft may stand, metres.
pub(super) const GROUND_M: f64 = 2.0;
/// One that is slower than this may stay where it is, metres per second.
pub(super) const SETTLES_M_S: f64 = 2.0;
/// A position aside to land at is reached within this, or it lands where it is.
const ASIDE_WITHIN: Duration = Duration::from_secs(60);

/// An aircraft that receives one that stands because of it names that one in its conflict within this time: 4 s of a claim, a
/// check and its beacon, each lost twice.
const CLAIMS_WITHIN: Duration = Duration::from_secs(15);

/// A way that comes nearer to another by less than this does not come nearer: the error of a position at rest, metres.
pub(super) const CLOSER_M: f64 = 0.5;

/// What makes the state machine decide.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trigger<'a> {
    /// An input, already observed.
    Input(&'a Input<'a>),
    /// After each input: a manoeuvre may have come to its end.
    Manoeuvre,
    /// Each `check_period` (the reference's thread *collision detector*).
    Check,
}

/// A transition of the flight, and what became of the conflict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) transition: Transition<Avoiding>,
    pub(super) outcome: Option<Outcome>,
}

/// What became of a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is over.
    Solved,
    /// It lasted too long, and the aircraft continues.
    DeadlockSolved,
    /// It lasted too long, and the aircraft lands.
    DeadlockFailed,
}

impl From<Transition<Avoiding>> for Step {
    fn from(transition: Transition<Avoiding>) -> Self {
        Self { transition, outcome: None }
    }
}

/// Whether only its current location counts.
pub(super) fn stands(n: &Neighbour) -> bool {
    matches!(n.beacon.state, Avoidance::StandStill | Avoidance::GoOnPlease)
}

/// Position at which an aircraft gives way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Aside {
    /// Where it is.
    Here,
    /// There.
    At(DVec2),
    /// An aircraft that passes another flies through the way to each position.
    Barred,
}

/// Returns the point of a straight way that is nearest to a position.
pub(super) fn nearest(at: DVec2, from: DVec2, to: DVec2) -> DVec2 {
    let way = to - from;
    let share = (at - from).dot(way) / way.length_squared().max(f64::MIN_POSITIVE);
    from + way * share.clamp(0.0, 1.0)
}

/// To a state of the avoidance.
pub(super) fn to(avoiding: Avoiding) -> Transition<Avoiding> {
    Transition::to(State::Flying(avoiding))
}

pub(super) fn ordering(avoiding: Avoiding, order: Order) -> Transition<Avoiding> {
    Transition::ordering(State::Flying(avoiding), order)
}

impl Mbcap {
    /// The next state with its order, or nothing where the state stays.
    pub(super) fn next(&self, now: Instant, trigger: Trigger<'_>) -> Option<Step> {
        match trigger {
            Trigger::Input(input) => self.after_input(now, input).map(Step::from),
            Trigger::Manoeuvre => self.after_manoeuvre(now).map(Step::from),
            // One that does not know where it is stays where it stands: the others do not know it either.
            Trigger::Check => self.after_check(now).filter(|step| {
                let resumes = matches!(step.transition.state, State::Flying(Avoiding::Resuming { .. }));
                !resumes || self.knows_where_it_is(now)
            }),
        }
    }

    fn after_input(&self, now: Instant, input: &Input<'_>) -> Option<Transition<Avoiding>> {
        let of_every_flight = || self.flight.next(now, input, Avoiding::Normal { since: now });
        let Some(avoiding) = self.avoiding() else { return of_every_flight() };
        match *input {
            Input::Message { from, .. } => self.after_beacon(from, avoiding),
            Input::Done(order) => self.after_effect(now, order, avoiding),
            // It lands because nothing else helped, as published: the one state that no failure interrupts.
            Input::Failed(_) if matches!(avoiding, Avoiding::EmergencyLand { .. }) => None,
            // As on the way home without a conflict.
            Input::Failed(_) if self.is_returning() => {
                Some(Transition::ordering(State::Aborted(EndFlight::Land), Order::Land))
            }
            Input::Telemetry(telemetry) => match avoiding {
                // The protocol ended this flight as it has to; that the conflict was not solved is counted apart.
                Avoiding::EmergencyLand { .. } if !telemetry.armed => Some(Transition::to(State::Finished)),
                Avoiding::Normal { since } if telemetry.armed && self.is_over(now, since) => {
                    Some(self.land_clear(now))
                }
                Avoiding::Normal { .. }
                | Avoiding::Stopping { .. }
                | Avoiding::StandStill { .. }
                | Avoiding::MovingAside { .. }
                | Avoiding::LandingAside { .. }
                | Avoiding::GoOnPlease { .. }
                | Avoiding::Overtaking { .. }
                | Avoiding::Resuming { .. }
                | Avoiding::EmergencyLand { .. } => of_every_flight(),
            },
            Input::Wake
            | Input::Passed { .. }
            | Input::Operator(_)
            | Input::Reached(_)
            | Input::Failed(_)
            | Input::TakenOver(_)
            | Input::BatteryLow(_) => of_every_flight(),
        }
    }

    /// A peer that gives way too names the position of the risk where we do not see it.
    fn after_beacon(&self, from: VehicleId, mut avoiding: Avoiding) -> Option<Transition<Avoiding>> {
        let (Avoiding::GoOnPlease { conflict, .. }
        | Avoiding::Resuming { conflict, from: Waiting::GoOnPlease, .. }) = &mut avoiding
        else {
            return None;
        };
        if conflict.peer != from || conflict.risk.is_some() {
            return None;
        }
        let peer = self.neighbours.get(from).filter(|p| p.beacon.state == Avoidance::GoOnPlease)?;
        conflict.risk = Some(peer.location(self.frame()?, 1)?);
        Some(to(avoiding))
    }

    /// The effect of an order was seen.
    fn after_effect(&self, now: Instant, order: Order, avoiding: Avoiding) -> Option<Transition<Avoiding>> {
        match avoiding {
            Avoiding::Stopping { conflict, stands_by: None } => (order == Order::Hold)
                .then(|| to(Avoiding::Stopping { conflict, stands_by: Some(now + self.config.stop) })),
            Avoiding::Resuming { conflict, then, .. } => {
                let goes_on = match order {
                    Order::Resume | Order::FlyTo(_) => !self.is_returning(),
                    Order::Return => self.is_returning(),
                    Order::LoadRoute
                    | Order::TakeOff { .. }
                    | Order::FlyRoute { .. }
                    | Order::ResumeHeld
                    | Order::Hold
                    | Order::Land => false,
                };
                goes_on.then(|| match then {
                    AfterResume::Normal => self.going_on(now),
                    AfterResume::Overtaking => to(Avoiding::Overtaking { conflict, since: now }),
                })
            }
            Avoiding::Normal { .. }
            | Avoiding::Stopping { stands_by: Some(_), .. }
            | Avoiding::StandStill { .. }
            | Avoiding::MovingAside { .. }
            | Avoiding::LandingAside { .. }
            | Avoiding::GoOnPlease { .. }
            | Avoiding::Overtaking { .. }
            | Avoiding::EmergencyLand { .. } => None,
        }
    }

    fn after_manoeuvre(&self, now: Instant) -> Option<Transition<Avoiding>> {
        let State::Flying(avoiding) = self.flight.state() else {
            return None;
        };
        let is_slow = self.flight.speed_m_s() <= self.config.stopped_m_s;
        match avoiding {
            Avoiding::Stopping { conflict, stands_by: Some(by) } if is_slow || now >= by => {
                Some(to(Avoiding::StandStill { conflict, began_at: now, since: now, is_aside: false }))
            }
            Avoiding::Stopping { conflict, stands_by: Some(by) } => self.leaves_braking(now, conflict, by),
            Avoiding::MovingAside { conflict, since, aside, calm_by } => {
                let there = self.motion.here.truncate().distance(aside) < ASIDE_ARRIVED_M;
                let by = calm_by.or(there.then_some(now + self.config.calm));
                if by.is_some_and(|by| is_slow && there || now >= by) {
                    return Some(to(self.waits_aside(now, conflict)));
                }
                (by != calm_by).then(|| to(Avoiding::MovingAside { conflict, since, aside, calm_by: by }))
            }
            Avoiding::LandingAside { aside, by } => {
                let there = self.motion.here.truncate().distance(aside) < ASIDE_ARRIVED_M;
                (is_slow && there || now >= by).then(|| Transition::ordering(State::Landing, Order::Land))
            }
            Avoiding::Normal { .. }
            | Avoiding::Stopping { .. }
            | Avoiding::StandStill { .. }
            | Avoiding::GoOnPlease { .. }
            | Avoiding::Overtaking { .. }
            | Avoiding::Resuming { .. }
            | Avoiding::EmergencyLand { .. } => None,
        }
    }

    fn after_check(&self, now: Instant) -> Option<Step> {
        let State::Flying(avoiding) = self.flight.state() else {
            return self.check_risks(now, self.returning?.since).map(Step::from);
        };
        if let Some(step) = self.check_return(now, avoiding) {
            return Some(step);
        }
        match avoiding {
            Avoiding::Normal { since } => self.check_risks(now, since).map(Step::from),
            Avoiding::StandStill { conflict, since, .. } | Avoiding::GoOnPlease { conflict, since, .. }
                if self.is_silent(now, conflict.peer) =>
            {
                self.check_silent(now, conflict, since, avoiding)
            }
            Avoiding::StandStill { conflict, began_at, since, .. } => self
                .check_peer(now, since, avoiding)
                .or_else(|| self.leaves_ways(now, avoiding).map(Step::from))
                .or_else(|| self.check_clear(now, conflict, began_at, avoiding))
                .or_else(|| self.check_right_of_way(now, avoiding).map(Step::from)),
            Avoiding::MovingAside { conflict, since, aside, .. } => {
                let third = || self.check_third(now, conflict, Avoidance::MovingAside);
                let peer = || self.stops_before_peer(now, conflict, aside);
                self.check_peer(now, since, avoiding).or_else(|| third().or_else(peer).map(Step::from))
            }
            Avoiding::GoOnPlease { conflict, since, event } => {
                let clear = || self.check_clear(now, conflict, since, avoiding);
                let leaves = || self.leaves_ways(now, avoiding).map(Step::from);
                let lands = || self.lands_unheeded(now, conflict, avoiding);
                let again = || self.gives_way_again(now, conflict, since).map(Step::from);
                let first = self.check_peer(now, since, avoiding).or_else(lands).or_else(leaves);
                first.or_else(clear).or_else(again).or_else(|| {
                    let peer = self.neighbours.get(conflict.peer);
                    let has_passed = event.is_some()
                        && peer.is_some_and(|n| Some(n.beacon.event) != event && !self.has_yet_to_pass(n));
                    let goes = has_passed && !self.meets_a_mover(now, conflict.peer);
                    goes.then(|| self.resume(avoiding, Outcome::Solved)).flatten()
                })
            }
            Avoiding::Overtaking { conflict, since } => {
                let third = || self.check_third(now, conflict, Avoidance::Overtaking).map(Step::from);
                self.check_peer(now, since, avoiding)
                    .or_else(|| self.check_passed(now, conflict, since))
                    .or_else(third)
            }
            Avoiding::Stopping { .. }
            | Avoiding::LandingAside { .. }
            | Avoiding::Resuming { .. }
            | Avoiding::EmergencyLand { .. } => None,
        }
    }

    /// Whether the conflicts of a way home have lasted too long, all together: its battery is for the way.
    fn check_return(&self, now: Instant, avoiding: Avoiding) -> Option<Step> {
        let stands = match avoiding {
            Avoiding::StandStill { .. } | Avoiding::MovingAside { .. } | Avoiding::GoOnPlease { .. } => true,
            Avoiding::Normal { .. }
            | Avoiding::Stopping { .. }
            | Avoiding::LandingAside { .. }
            | Avoiding::Overtaking { .. }
            | Avoiding::Resuming { .. }
            | Avoiding::EmergencyLand { .. } => false,
        };
        let conflict = avoiding.conflict().filter(|_| stands)?;
        let limit = self.config.deadlock.timeout(self.flight.planned_speed_m_s());
        let Returning { since, stood } = self.returning?;
        (stood + now.since(since) > limit).then(|| Step {
            transition: ordering(Avoiding::EmergencyLand { conflict }, Order::Land),
            outcome: Some(Outcome::DeadlockFailed),
        })
    }

    /// Whether a conflict has lasted too long, or is over because the peer lands.
    fn check_peer(&self, now: Instant, since: Instant, avoiding: Avoiding) -> Option<Step> {
        let conflict = avoiding.conflict()?;
        let peer = self.neighbours.get(conflict.peer);
        let too_long = now.since(since) > self.config.deadlock.timeout(self.flight.planned_speed_m_s());
        let is_silent = peer.is_none_or(|p| !p.is_recent(now, self.config.beacon_validity));
        let lands = peer.is_some_and(|p| self.is_below(p));
        let passes = matches!(avoiding, Avoiding::Overtaking { .. });
        match (too_long, lands) {
            // Passing, the peer has moved out of the way.
            (true, _) if passes => Some(self.solved(now, Outcome::DeadlockSolved)),
            // The lower stands aside of the course of the higher, and never crosses it while that one is silent.
            (true, _) if is_silent && self.yields_to(conflict.peer) => {
                Some(to(self.waits(now, conflict)).into())
            }
            (true, _) if is_silent => self.resume(avoiding, Outcome::DeadlockSolved),
            // As published: it does not hold first, for the peer is waiting too.
            (true, _) => Some(Step {
                transition: ordering(Avoiding::EmergencyLand { conflict }, Order::Land),
                outcome: Some(Outcome::DeadlockFailed),
            }),
            (false, true) if passes => Some(self.solved(now, Outcome::Solved)),
            (false, true) => self.resume(avoiding, Outcome::Solved),
            (false, false) => None,
        }
    }

    /// Whether this aircraft lets another pass for good where that one is silent.
    fn yields_to(&self, peer: VehicleId) -> bool {
        self.config.passing_judges && self.config.me < peer
    }

    /// Normal: whether another comes too near (a), or stands because of us.
    fn check_risks(&self, now: Instant, since: Instant) -> Option<Transition<Avoiding>> {
        if !self.checks_risks() {
            return None;
        }
        let is_ignored =
            |id: VehicleId| self.ignored.is_some_and(|(ignored, until)| ignored == id && now < until);
        // One that stands by no conflict, as one that was ordered to hold, or lands, stays where it is.
        let stays = |n: &Neighbour| n.beacon.landing || stands(n) && n.beacon.avoiding.is_none();
        let is_passed = |n: &Neighbour| self.is_returning() && stays(n);
        // Two whose ways cross twice meet again at once, and two whose missions end at one place there: what would be a
        // collision counts in any case.
        let near_m = |n: &Neighbour| match is_ignored(n.id) || self.is_last_reached() || is_passed(n) {
            true => self.config.safe_distance_m(),
            false => self.config.risk_distance_m(),
        };
        let found = self.first_risk(now, |n| Some(near_m(n)));
        // No aircraft is in our way, but one stands because of us.
        let claimed = || {
            let peer = self.clear_neighbours(now).find(|n| self.claims(n))?.id;
            (now.since(since) > self.config.resume).then_some(Conflict { peer, risk: None })
        };
        let conflict = found.or_else(|| match self.is_last_reached() {
            true => self.ends_first(now).or_else(|| self.silent_ahead(now, None)),
            false => claimed().or_else(|| self.silent_ahead(now, None)),
        })?;
        Some(ordering(Avoiding::Stopping { conflict, stands_by: None }, Order::Hold))
    }

    /// Standing on its way home, or before its last waypoint, for one that does not stand because of us: whether it can go on past
    /// all others. Nothing else would tell that the other is gone, or that it will not go.
    fn check_clear(
        &self,
        now: Instant,
        conflict: Conflict,
        began_at: Instant,
        avoiding: Avoiding,
    ) -> Option<Step> {
        let peer = self.neighbours.get(conflict.peer)?;
        let is_last_way = self.is_returning() || self.is_last_reached();
        // The peer was silent, or did not receive us: it has agreed to nothing, and its event number says nothing.
        let is_known_deaf = matches!(
            avoiding,
            Avoiding::GoOnPlease { event: None, .. } | Avoiding::StandStill { is_aside: true, .. }
        );
        // One that receives us claims us by then, or has a conflict with a third first.
        let has_had_time = matches!(avoiding, Avoiding::StandStill { .. })
            && now.since(began_at) >= CLAIMS_WITHIN
            && peer.beacon.avoiding.is_none();
        let is_unanswered = is_known_deaf || has_had_time;
        let may_judge = self.config.avoids_to_the_end && (is_last_way || is_unanswered) && !self.claims(peer);
        if !may_judge || now.since(began_at) < self.config.standing {
            return None;
        }
        let (frame, path) = (self.frame()?, self.path_ahead());
        // Not at which time: it takes a while until this one is as fast as planned.
        let ours = risk::Trajectory {
            locations: &path,
            age_s: 0.0,
            speed_m_s: self.flight.planned_speed_m_s(),
            is_normal: false,
            stands: false,
        };
        // Nearer than a risk it would be stopped by the same aircraft again.
        let distance_m = match is_last_way || is_known_deaf {
            true => self.config.safe_distance_m(),
            false => self.config.risk_distance_m(),
        };
        let risk = Risk { distance_m, ..self.config.risk };
        let is_in_the_way = |n: &Neighbour| {
            let locations = n.locations(frame);
            risk::between(&ours, &n.trajectory(now, &locations), &risk, &self.config.prediction).is_some()
        };
        // One that returns too may be about to set out, and has the right of way.
        let sets_out = |n: &Neighbour| {
            let comes_near =
                |way: Obstacle| path.iter().any(|at| way.may_come_near(*at, risk.distance_m, risk.height_m));
            stands(n)
                && n.id > self.config.me
                && self.neighbours.way_of(now, n, frame, self.receiver()).is_some_and(comes_near)
        };
        let ends_first = || self.is_last_reached() && self.ends_first(now).is_some();
        let is_clear = !self.clear_neighbours(now).any(|n| is_in_the_way(n) || sets_out(n))
            && !ends_first()
            && self.silent_ahead(now, None).is_none();
        // The other has agreed to nothing: it is judged as before.
        let transition = is_clear.then(|| self.resumed(avoiding, AfterResume::Normal)).flatten()?;
        Some(transition.into())
    }

    /// Whether it stands because of us.
    pub(super) fn claims(&self, peer: &Neighbour) -> bool {
        peer.beacon.avoiding == Some(self.config.me)
    }

    /// On the way to its last waypoint: another that ends its flight next to it, and is there already or has the right of way.
    fn ends_first(&self, now: Instant) -> Option<Conflict> {
        let end = self.local.as_ref()?.of(self.flight.route().last()?);
        let frame = self.frame()?;
        let is_near = |at: DVec3| at.truncate().distance(end.truncate()) < self.landing_clear_m();
        let comes_first = |n: &&Neighbour| {
            let is_there = f64::from(n.beacon.speed_cm_s) * 1e-2 < SETTLES_M_S && is_near(n.at);
            n.beacon.landing && (is_there || n.id > self.config.me)
        };
        let ends_here = |n: &&Neighbour| is_near(self.neighbours.end_of(n, frame));
        let first = self.clear_neighbours(now).filter(comes_first).find(ends_here)?;
        Some(Conflict { peer: first.id, risk: Some(end) })
    }

    /// Passing or moving aside, broadcast as that state: whether a third comes too near, stands in our way, or is silent and may
    /// be on it. Aircraft that pass or move aside are judged by the rule of risks, for they stop for none in Normal; those on
    /// their missions stop for us too, and count where they would come nearer than the safe distance.
    fn check_third(
        &self,
        now: Instant,
        conflict: Conflict,
        shown: Avoidance,
    ) -> Option<Transition<Avoiding>> {
        if !self.config.passing_judges || self.last_beacon.state != Some(shown) {
            return None;
        }
        let passes = shown == Avoidance::Overtaking;
        let near_m = |n: &Neighbour| match n.beacon.state {
            // A peer that stands has given way; the path of one that still flies at us is left, not stopped on.
            _ if n.id == conflict.peer && (!passes || stands(n)) => None,
            _ if n.id == conflict.peer => Some(self.config.safe_distance_m()),
            Avoidance::Overtaking | Avoidance::MovingAside if passes => Some(self.config.risk_distance_m()),
            // One that stands is passed nearer than that.
            Avoidance::StandStill | Avoidance::GoOnPlease => None,
            Avoidance::Normal | Avoidance::Overtaking | Avoidance::MovingAside | Avoidance::EmergencyLand => {
                Some(self.config.safe_distance_m())
            }
        };
        let ahead = || passes.then(|| self.stands_ahead(now, conflict.peer)).flatten();
        let silent = || passes.then(|| self.silent_ahead(now, Some(conflict.peer))).flatten();
        let conflict = self.first_risk(now, near_m).or_else(ahead).or_else(silent)?;
        Some(ordering(Avoiding::Stopping { conflict, stands_by: None }, Order::Hold))
    }

    /// Standing and about to fly on: whether one that flies comes nearer to our way than the safe distance. The own prediction
    /// is short until this aircraft is fast, and the other passes in a few seconds.
    pub(super) fn meets_a_mover(&self, now: Instant, peer: VehicleId) -> bool {
        let (true, Some(frame)) = (self.config.passing_judges, self.frame()) else { return false };
        let path = self.path_ahead();
        let ours = risk::Trajectory {
            locations: &path,
            age_s: 0.0,
            speed_m_s: self.flight.planned_speed_m_s(),
            is_normal: false,
            stands: false,
        };
        let risk = Risk { distance_m: self.config.safe_distance_m(), ..self.config.risk };
        self.clear_neighbours(now).filter(|n| n.id != peer && self.is_moving(n)).any(|n| {
            let locations = n.locations(frame);
            risk::between(&ours, &n.trajectory(now, &locations), &risk, &self.config.prediction).is_some()
        })
    }

    /// Whether it flies, by its last beacon.
    pub(super) fn is_moving(&self, n: &Neighbour) -> bool {
        !stands(n) && f64::from(n.beacon.speed_cm_s) * 1e-2 >= self.config.prediction.moving_m_s
    }

    /// A third that stands nearer to our way than an aircraft that gave way to us would.
    fn stands_ahead(&self, now: Instant, peer: VehicleId) -> Option<Conflict> {
        if !self.config.passing_judges {
            return None;
        }
        let (path, here) = (self.path_ahead(), self.motion.here.truncate());
        let clear_m = self.config.passing_distance_m();
        let stands = |n: &&Neighbour| {
            (n.id != peer || !self.claims(n))
                && f64::from(n.beacon.speed_cm_s) * 1e-2 < self.config.prediction.moving_m_s
        };
        self.clear_neighbours(now).filter(stands).find_map(|n| {
            let there = n.at.truncate();
            // Away from one that stands near is out of its way.
            let nearest_m = clear_m.min(here.distance(there) - CLOSER_M);
            let blocks = |at: &&DVec3| {
                at.truncate().distance(there) < nearest_m
                    && libm::fabs(at.z - n.at.z) < self.config.risk.height_m
            };
            path.iter().find(blocks).map(|&at| Conflict { peer: n.id, risk: Some(at) })
        })
    }

    /// The first risk of our last prediction with a neighbour: that it comes nearer than so many metres, where it is judged.
    fn first_risk(&self, now: Instant, near_m: impl Fn(&Neighbour) -> Option<f64>) -> Option<Conflict> {
        let frame = self.frame()?;
        let last = &self.last_beacon;
        let ours = risk::Trajectory {
            locations: &last.locations,
            age_s: now.since(last.measured_at).as_secs_f64(),
            speed_m_s: last.speed_m_s,
            is_normal: true,
            stands: false,
        };
        let here = *last.locations.first()?;
        let reach_m =
            last.locations.iter().map(|l| l.truncate().distance(here.truncate())).fold(0.0, f64::max);
        self.clear_neighbours(now).find_map(|n| {
            let risk = Risk { distance_m: near_m(n)?, ..self.config.risk };
            if !n.is_within(reach_m + risk.distance_m, here) {
                return None;
            }
            let locations = n.locations(frame);
            let theirs = n.trajectory(now, &locations);
            let at = risk::between(&ours, &theirs, &risk, &self.config.prediction)?;
            Some(Conflict { peer: n.id, risk: Some(at) })
        })
    }

    /// Those that are received and do not land below.
    pub(super) fn clear_neighbours(&self, now: Instant) -> impl Iterator<Item = &Neighbour> {
        self.valid_neighbours(now).filter(|n| !self.is_below(n))
    }

    /// Whether an aircraft in Normal checks for risks: not before its first beacon, and not at its end.
    pub(super) fn checks_risks(&self) -> bool {
        let is_at_its_end = match self.config.avoids_to_the_end {
            true => self.is_coming_down(),
            false => self.is_last_reached() || self.is_landing(),
        };
        self.last_beacon.state == Some(Avoidance::Normal) && !is_at_its_end
    }

    pub(super) fn valid_neighbours(&self, now: Instant) -> impl Iterator<Item = &Neighbour> {
        self.neighbours.by_priority().filter(move |n| n.is_valid(now, self.config.beacon_validity))
    }

    /// Whether its own position is fresh enough to decide by.
    pub(super) fn knows_where_it_is(&self, now: Instant) -> bool {
        now.since(self.motion.measured_at) <= REPORT_HOLDS
    }

    /// Whether another lands, and is so low that this aircraft flies over it. One that is ordered
    /// to take off is not down.
    fn is_below(&self, peer: &Neighbour) -> bool {
        let height_m = self.flight.telemetry().map_or(0.0, |telemetry| telemetry.height_m);
        let below_m = (height_m - GROUND_M).clamp(0.0, FLOWN_OVER_M);
        let is_low =
            self.config.landing_is_out && peer.beacon.landing && peer.at.z <= self.motion.here.z - below_m;
        is_low && !self.neighbours.is_about_to_climb(peer)
    }

    /// StandStill: which of the two passes.
    fn check_right_of_way(&self, now: Instant, avoiding: Avoiding) -> Option<Transition<Avoiding>> {
        let Avoiding::StandStill { conflict, began_at, since, is_aside } = avoiding else { return None };
        if now.since(since) < self.config.standing {
            // One with a still higher right of way may stand because of us.
            let higher = self
                .valid_neighbours(now)
                .find(|n| n.beacon.state == Avoidance::StandStill && !n.beacon.landing && self.claims(n));
            let peer = higher.map(|n| n.id).filter(|&id| id > conflict.peer)?;
            let conflict = Conflict { peer, risk: None };
            return Some(to(Avoiding::StandStill { conflict, began_at, since, is_aside }));
        }
        let peer = self.neighbours.get(conflict.peer)?;
        match peer.beacon.avoiding {
            Some(third) if third != self.config.me => {
                // It has another conflict first: ours is next. Where it is received no more that is old news, and
                // three that wait for each other in a ring would wait until their batteries are empty.
                let waits = peer.is_recent(now, self.config.beacon_validity)
                    && now.since(began_at) <= self.config.turn;
                waits.then(|| to(Avoiding::StandStill { conflict, began_at, since: now, is_aside }))
            }
            Some(_) if self.config.me > peer.id && peer.beacon.state == Avoidance::GoOnPlease => {
                if let Some(conflict) = self.stands_ahead(now, peer.id) {
                    return Some(to(Avoiding::StandStill { conflict, began_at, since: now, is_aside }));
                }
                // It has the time to leave a way that it did not know.
                let stays = || now.since(began_at) < CLAIMS_WITHIN && self.passes_near(peer);
                if self.meets_a_mover(now, peer.id) || stays() {
                    return None;
                }
                self.resumed(avoiding, AfterResume::Overtaking)
            }
            Some(_) if self.config.me < peer.id && self.tested_state(peer) == Avoidance::StandStill => {
                self.give_way(now, conflict, peer)
            }
            Some(_) | None => None,
        }
    }

    /// The state that transition d tests.
    fn tested_state(&self, peer: &Neighbour) -> Avoidance {
        match self.config.aside_tests {
            AsideTests::Avoided => peer.beacon.state,
            AsideTests::LastScanned => self
                .last_scanned
                .and_then(|id| self.neighbours.get(id))
                .map_or(peer.beacon.state, |n| n.beacon.state),
        }
    }

    /// Out of the way (c) or aside (d).
    pub(super) fn give_way(
        &self,
        now: Instant,
        conflict: Conflict,
        peer: &Neighbour,
    ) -> Option<Transition<Avoiding>> {
        let frame = self.frame()?;
        let mut path: Vec<DVec2, LOCATIONS_MAX> =
            peer.locations(frame).iter().map(|l| l.truncate()).collect();
        // Behind its last waypoint it is in its way, too.
        if let ([.., before, last], true) = (&*path, self.config.avoids_to_the_end) {
            let beyond = *last + (*last - *before).normalize_or_zero() * self.config.safe_distance_m();
            let _ = path.push(beyond);
        }
        let planned_speed_m_s = f64::from(peer.beacon.planned_speed_cm_s) * 1e-2;
        match self.find_aside(now, conflict, &path, planned_speed_m_s, self.config.safe_distance_m()) {
            Aside::Here => Some(to(self.waits(now, conflict))),
            Aside::At(aside) => self.moving_to(now, conflict, aside),
            Aside::Barred => None,
        }
    }

    /// Finds the position where a path and its corners, flown at that speed, are clear of us.
    pub(super) fn find_aside(
        &self,
        now: Instant,
        conflict: Conflict,
        path: &[DVec2],
        planned_speed_m_s: f64,
        safe_distance_m: f64,
    ) -> Aside {
        let curves = self.config.curves;
        let rules = aside::Aside { planned_speed_m_s, safe_distance_m, curves };
        let here = self.motion.here.truncate();
        let Some(aside) = aside::place(here, path, &rules) else { return Aside::Here };
        let is_crossed = |aside| self.crosses_one_that_passes(now, aside);
        let peer = self.neighbours.get(conflict.peer).filter(|peer| !self.is_moving(peer));
        let is_taken = |aside| {
            self.is_taken(now, conflict, aside)
                || self.nears_silent(now, aside)
                || peer.is_some_and(|peer| self.is_next_to_way(peer, aside))
        };
        if !self.config.passing_judges || !(is_taken(aside) || is_crossed(aside)) {
            return Aside::At(aside);
        }
        // On the other side of the path, unless another stands there too.
        let across = here - (aside - here).normalize_or_zero() * (2.0 * safe_distance_m);
        let other = aside::place(across, path, &rules).unwrap_or(across);
        match [other, aside].map(is_crossed) {
            [false, _] if !is_taken(other) => Aside::At(other),
            [_, false] => Aside::At(aside),
            [_, true] => Aside::Barred,
        }
    }

    /// Orders the flight to a position aside.
    pub(super) fn moving_to(
        &self,
        now: Instant,
        conflict: Conflict,
        aside: DVec2,
    ) -> Option<Transition<Avoiding>> {
        let moving = Avoiding::MovingAside { conflict, since: now, aside, calm_by: None };
        Some(ordering(moving, Order::FlyTo(self.at_our_height(aside)?)))
    }

    /// Returns whether the straight way to a position aside leads through the next locations of an aircraft that passes another.
    /// That one does not judge an aircraft that stands until it moves.
    pub(super) fn crosses_one_that_passes(&self, now: Instant, aside: DVec2) -> bool {
        let Some(frame) = self.frame() else { return false };
        let (here, clear_m) = (self.motion.here, self.config.passing_distance_m());
        let (from, to) = (here.truncate(), aside);
        let passes = |n: &&Neighbour| n.beacon.state == Avoidance::Overtaking && self.is_moving(n);
        self.clear_neighbours(now).filter(passes).any(|n| {
            let is_level = |at: &&DVec3| libm::fabs(at.z - here.z) < self.config.risk.height_m;
            n.locations(frame).iter().filter(is_level).any(|at| {
                let at = at.truncate();
                // Away from it is out of its way.
                let nearest_m = clear_m.min(at.distance(from) - CLOSER_M);
                nearest(at, from, to).distance(at) < nearest_m
            })
        })
    }

    /// Whether a third stands on the straight way to a position aside, or next to it.
    pub(super) fn is_taken(&self, now: Instant, conflict: Conflict, aside: DVec2) -> bool {
        let stands = |n: &&Neighbour| n.id != conflict.peer && !self.is_moving(n);
        self.clear_neighbours(now).filter(stands).any(|n| self.is_next_to_way(n, aside))
    }

    /// The mission is over: landing, aside where another has landed, lands or stands.
    fn land_clear(&self, now: Instant) -> Transition<Avoiding> {
        let aside = self.landing_site(now).and_then(|aside| self.landing_aside(now, aside));
        aside.unwrap_or_else(|| Transition::ordering(State::Landing, Order::Land))
    }

    /// Orders the flight to a position to land at.
    pub(super) fn landing_aside(&self, now: Instant, aside: DVec2) -> Option<Transition<Avoiding>> {
        let target = self.at_our_height(aside)?;
        Some(ordering(Avoiding::LandingAside { aside, by: now + ASIDE_WITHIN }, Order::FlyTo(target)))
    }

    /// A position clear of all that have landed, land, or stand near; nothing where that is here.
    pub(super) fn landing_site(&self, now: Instant) -> Option<DVec2> {
        let here = self.motion.here.truncate();
        // One that flies past is elsewhere by the time that we are down.
        let stays = |n: &&Neighbour| {
            n.beacon.landing
                || f64::from(n.beacon.speed_cm_s) * 1e-2 < SETTLES_M_S
                || !n.is_recent(now, self.config.beacon_validity)
        };
        // One that is about to come to rest will be there, maybe to land.
        let comes_to_rest = |n: &&Neighbour| n.beacon.landing || n.beacon.state == Avoidance::MovingAside;
        let nearest = |at: DVec2| {
            let ends = self.neighbours.by_priority().filter(comes_to_rest);
            let ends = ends.filter_map(|n| Some(self.neighbours.end_of(n, self.frame()?).truncate()));
            let sites = self.neighbours.by_priority().filter(stays).map(|n| n.at.truncate()).chain(ends);
            // One that fell silent in flight may have come down anywhere on its course.
            let silent = self.neighbours.obstacles(now, SILENT_AFTER, self.frame(), self.receiver());
            sites
                .chain(silent.filter_map(|(_, obstacle)| obstacle.nearest_on_path(at)))
                .min_by(|a, b| a.distance(at).total_cmp(&b.distance(at)))
        };
        let room_m = |at: DVec2| nearest(at).map_or(f64::INFINITY, |site| site.distance(at));
        if room_m(here) >= self.landing_clear_m() {
            return None;
        }
        let nearest = nearest(here)?;
        // Straight away from the nearest one, and else as little round it as it takes.
        let away = (here - nearest).normalize_or(DVec2::Y);
        let steps = [1.0, 1.5, 2.0, 3.0, 4.0].into_iter();
        let turns = [0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 4.0];
        let candidate = |(step, turn): (f64, f64)| {
            let (sin, cos) = libm::sincos(turn * core::f64::consts::FRAC_PI_4);
            here + DVec2::new(cos, sin).rotate(away) * (step * self.landing_clear_m())
        };
        let mut candidates =
            steps.flat_map(|step| turns.into_iter().map(move |turn| (step, turn))).map(candidate);
        candidates.find(|&at| room_m(at) >= self.landing_clear_m())
    }

    /// Distance between two landing sites, metres.
    fn landing_clear_m(&self) -> f64 {
        LANDING_CLEAR_LEAST_M.max(self.config.safe_distance_m() + LANDING_ASIDE_M)
    }

    fn at_our_height(&self, at: DVec2) -> Option<Point> {
        let (frame, telemetry) = (self.frame()?, self.flight.telemetry()?);
        let there = frame.to_position(at.extend(0.0));
        Some(Point {
            latitude_e7: there.latitude_e7,
            longitude_e7: there.longitude_e7,
            height_mm: libm::round(telemetry.height_m * 1e3) as i32,
        })
    }

    /// Overtaking: whether the peer is passed (i).
    fn check_passed(&self, now: Instant, conflict: Conflict, since: Instant) -> Option<Step> {
        let peer = self.neighbours.get(conflict.peer)?;
        let there = peer.at.truncate();
        let Motion { here, trail, .. } = &self.motion;
        let behind = trail.moves_away_from(there)
            && conflict.risk.is_none_or(|at| trail.moves_away_from(at.truncate()));
        let beyond =
            !self.config.overtake_beyond || here.truncate().distance(there) > self.config.risk_distance_m();
        // Over its last waypoint it goes no farther: an aircraft that waits for it would wait for ever.
        let is_over = self.is_over(now, since);
        if now.since(since) <= self.config.overtaking || !(behind && beyond || is_over) {
            return None;
        }
        // Of one that missed the report of its last waypoint that shows only after a while in one state; in Normal the next
        // conflict comes sooner.
        if is_over && !self.is_last_reached() && !self.is_returning() {
            return Some(Step { transition: self.land_clear(now), outcome: Some(Outcome::Solved) });
        }
        Some(self.solved(now, Outcome::Solved))
    }

    /// On the mission already.
    fn solved(&self, now: Instant, outcome: Outcome) -> Step {
        Step { transition: self.going_on(now), outcome: Some(outcome) }
    }

    /// In no conflict any more.
    fn going_on(&self, now: Instant) -> Transition<Avoiding> {
        match self.is_returning() {
            true => Transition::to(State::Aborted(EndFlight::Return)),
            false => to(Avoiding::Normal { since: now }),
        }
    }

    /// Back to the mission, the conflict being over.
    pub(super) fn resume(&self, avoiding: Avoiding, outcome: Outcome) -> Option<Step> {
        let transition = self.resumed(avoiding, AfterResume::Normal)?;
        Some(Step { transition, outcome: Some(outcome) })
    }

    pub(super) fn resumed(&self, avoiding: Avoiding, then: AfterResume) -> Option<Transition<Avoiding>> {
        let (conflict, from) = match avoiding {
            Avoiding::StandStill { conflict, .. } => (conflict, Waiting::StandStill),
            Avoiding::MovingAside { conflict, aside, .. } => (conflict, Waiting::MovingAside { aside }),
            Avoiding::GoOnPlease { conflict, .. } => (conflict, Waiting::GoOnPlease),
            Avoiding::Normal { .. }
            | Avoiding::Stopping { .. }
            | Avoiding::LandingAside { .. }
            | Avoiding::Overtaking { .. }
            | Avoiding::Resuming { .. }
            | Avoiding::EmergencyLand { .. } => return None,
        };
        // The last waypoint counts as reached a stopping distance before it, and that report may have been lost. Then the
        // flight controller has ended its mission, and AUTO would restart it at the first waypoint.
        let may_have_ended =
            self.is_last_reached() || self.flight.is_at_the_end(self.flight.planned_speed_m_s());
        let order = match self.flight.route().last().filter(|_| may_have_ended) {
            _ if self.is_returning() => Order::Return,
            Some(&last) => Order::FlyTo(last),
            None => Order::Resume,
        };
        Some(ordering(Avoiding::Resuming { conflict, from, then }, order))
    }

    /// Whether it goes no farther over ground: over its last waypoint, or at home.
    fn is_over(&self, now: Instant, since: Instant) -> bool {
        match self.is_returning() {
            true => self.is_at_home(),
            false => self.flight.is_over(now, since, self.config.stopped_m_s),
        }
    }
}
