//! Acting alone: keeping clear of aircraft that are silent, and of those that fly at us and do not answer. Nothing here needs an
//! agreement, for the radio of either may be dead, deaf or mute (`docs/protocols/mbcap.md`, *Silent aircraft*).

use wingbeat_geo::{DVec2, DVec3, Duration, Instant};
use wingbeat_wire::{Avoidance, VehicleId};

use super::Mbcap;
use super::config::{BrakeFit, Prediction};
use super::decide::{Aside, CLOSER_M, Outcome, SETTLES_M_S, Step, ordering, to};
use super::neighbours::{Neighbour, Receiver};
use super::predict::{brake_distance_m, reaction_distance_m};
use super::silent::{self, Obstacle, SILENT_AFTER};
use super::state::{AfterResume, Avoiding, Conflict};
use crate::Order;
use crate::flight::Transition;

/// A beacon that is older does not say what its sender does now.
const NEWEST: Duration = Duration::from_secs(1);
/// Of the safe distance, what an aircraft that moved aside keeps for certain from a course that may still be flown: the rest is
/// the error of the positions.
const ASIDE_SHARE: f64 = 0.5;
/// Further than asked by this, so that arriving there is clear, metres.
const BEYOND_M: f64 = 0.1;

/// A braking aircraft that is slower than this can be sent aside, metres per second.
const SLOW_M_S: f64 = 4.0;
/// Time from a stop until the other, if it receives us, has said that it stops too: its period of checks and a beacon.
const ANSWERS_WITHIN: Duration = Duration::from_millis(1_200);
/// A peer that stands and receives that its way is free sets out within this time: a third flies
/// through in a few seconds.
pub(super) const PASSES_WITHIN: Duration = Duration::from_secs(30);

impl Mbcap {
    /// Standing: out of the way of an aircraft that flies at us and does not answer, whatever its right of way, and of silent ones.
    pub(super) fn leaves_ways(&self, now: Instant, avoiding: Avoiding) -> Option<Transition<Avoiding>> {
        if !self.config.avoids_to_the_end || !self.knows_where_it_is(now) {
            return None;
        }
        let conflict = avoiding.conflict()?;
        self.leaves_unanswered(now, conflict).or_else(|| self.leaves_silent(now, avoiding))
    }

    /// Moves aside for an aircraft that no protocol flies and that is next to this one. It drifts in
    /// its pilot's hands, and neither stops for others nor moves aside.
    fn leaves_anothers(&self, now: Instant, conflict: Conflict) -> Option<Transition<Avoiding>> {
        let clear_m = self.config.passing_distance_m();
        let is_near = |n: &&Neighbour| {
            self.neighbours.is_anothers(n)
                && n.is_recent(now, NEWEST)
                && !n.recedes()
                && n.at.truncate().distance(self.motion.here.truncate()) < clear_m
                && libm::fabs(n.at.z - self.motion.here.z) < self.config.risk.height_m
        };
        let next = self.clear_neighbours(now).find(is_near)?;
        let hovers = Obstacle::standing(next.at);
        let conflict = Conflict { peer: next.id, ..conflict };
        let aside = self.find_away(now, conflict, &hovers, self.wide_m())?;
        self.moving_to(now, conflict, aside)
    }

    /// One that receives us has stopped by now, or claims us: so near that this one is in its prediction it flies on only where
    /// it does not receive us.
    fn leaves_unanswered(&self, now: Instant, conflict: Conflict) -> Option<Transition<Avoiding>> {
        let (frame, here) = (self.frame()?, self.motion.here);
        let clear_m = self.config.passing_distance_m();
        if let Some(next) = self.leaves_anothers(now, conflict) {
            return Some(next);
        }
        self.clear_neighbours(now).find_map(|n| {
            let v = f64::from(n.beacon.speed_cm_s) * 1e-2;
            let height_m = self.config.risk.height_m;
            let Prediction { horizon, handling, .. } = &self.config.prediction;
            let noticed_m = reaction_distance_m(horizon, *handling, v) + self.config.risk_distance_m() - v;
            // One that passes another stops for an aircraft that stands nearer than it would pass it.
            let noticed_m = match n.beacon.state {
                Avoidance::Overtaking => {
                    noticed_m - self.config.risk_distance_m() + self.config.passing_distance_m()
                }
                Avoidance::Normal
                | Avoidance::StandStill
                | Avoidance::MovingAside
                | Avoidance::GoOnPlease
                | Avoidance::EmergencyLand => noticed_m,
            };
            // One that brakes for a third is in conflict, and still shown as on its mission.
            let brakes = n.beacon.state == Avoidance::Normal && n.beacon.avoiding.is_some();
            // One in a pilot's hands drifts on, however slow.
            let settles_m_s = if self.neighbours.is_anothers(n) { 0.0 } else { SETTLES_M_S };
            let flies_on = n.is_recent(now, NEWEST)
                && self.is_moving(n)
                && v >= settles_m_s
                && !self.claims(n)
                && !brakes;
            let is_near = n.at.truncate().distance(here.truncate()) < noticed_m
                && libm::fabs(n.at.z - here.z) < height_m;
            if !flies_on || !is_near {
                return None;
            }
            let mut way = self.neighbours.way_of(now, n, frame, self.receiver())?;
            // It comes to rest at its position aside.
            if n.beacon.state == Avoidance::MovingAside {
                way.path.truncate(way.stays_at + 1);
            }
            // Not behind it: the path begins where it is.
            if !way.may_be_near(here, noticed_m / v, clear_m, height_m) {
                return None;
            }
            let conflict = Conflict { peer: n.id, ..conflict };
            match self.find_off(now, conflict, &way, self.wide_m()) {
                Aside::At(aside) => self.moving_to(now, conflict, aside),
                Aside::Here | Aside::Barred => None,
            }
        })
    }

    /// Braking for another: whether it flies on although it had the time to answer. Until this one stands it would be too late.
    pub(super) fn leaves_braking(
        &self,
        now: Instant,
        conflict: Conflict,
        stands_by: Instant,
    ) -> Option<Transition<Avoiding>> {
        let is_slow = self.flight.speed_m_s() <= SLOW_M_S;
        let had_time = now + self.config.stop >= stands_by + ANSWERS_WITHIN;
        let may = self.config.avoids_to_the_end && is_slow && had_time && self.knows_where_it_is(now);
        may.then(|| self.leaves_unanswered(now, conflict)).flatten()
    }

    /// Distance from the course of an aircraft that may be up to the safe distance beside it, because it moved aside itself.
    fn wide_m(&self) -> f64 {
        2.0 * self.config.safe_distance_m()
    }

    /// Distance to keep from the course of a silent aircraft. A higher one may have moved aside, and flies on from there; a lower
    /// one that lives keeps so far away itself.
    fn keeps_m(&self, obstacle: &Obstacle) -> f64 {
        if obstacle.yields { self.config.safe_distance_m() } else { self.wide_m() }
    }

    /// Aside from the course of a silent aircraft. One that stands aside already stands as clear as the errors of the positions
    /// allow, and does not follow each of them.
    fn leaves_silent(&self, now: Instant, avoiding: Avoiding) -> Option<Transition<Avoiding>> {
        let conflict = avoiding.conflict()?;
        let is_aside = match avoiding {
            Avoiding::StandStill { is_aside, .. } => is_aside,
            Avoiding::GoOnPlease { .. } => true,
            Avoiding::Normal { .. }
            | Avoiding::Stopping { .. }
            | Avoiding::MovingAside { .. }
            | Avoiding::LandingAside { .. }
            | Avoiding::Overtaking { .. }
            | Avoiding::Resuming { .. }
            | Avoiding::EmergencyLand { .. } => return None,
        };
        let error_m = if is_aside { self.config.safe_distance_m() * (1.0 - ASIDE_SHARE) } else { 0.0 };
        let (here, height_m) = (self.motion.here, self.config.risk.height_m);
        // Of one that is received again in a moment it would leave the path for nothing.
        self.obstacles(now).filter(|(peer, _)| self.is_silent(now, *peer)).find_map(|(peer, obstacle)| {
            let keeps_m = self.keeps_m(&obstacle);
            if !obstacle.may_come_near(here, keeps_m - error_m, height_m) {
                return None;
            }
            let conflict = Conflict { peer, ..conflict };
            let across = match self.find_off(now, conflict, &obstacle, keeps_m) {
                Aside::At(aside) => Some(aside),
                Aside::Here | Aside::Barred => None,
            };
            // Where it hovers, or its path lies behind, there is no position across.
            let is_near = obstacle.may_come_near(here, self.config.safe_distance_m() - error_m, height_m);
            let away = || self.find_away(now, conflict, &obstacle, keeps_m).filter(|_| is_near);
            let aside = across
                .filter(|&aside| self.is_clear_of_silent(now, aside))
                .or_else(away)
                .or(across)
                .filter(|&aside| self.is_clearer(now, aside))?;
            self.moving_to(now, conflict, aside)
        })
    }

    /// Returns whether a position is clear of the courses of all silent aircraft, or further from them than the present one.
    /// Between two lanes each position aside of one is in the way of the other.
    fn is_clearer(&self, now: Instant, aside: DVec2) -> bool {
        let here_m = self.silent_room_m(now, self.motion.here.truncate());
        self.is_clear_of_silent(now, aside) || self.silent_room_m(now, aside) > here_m + CLOSER_M
    }

    /// Returns whether a position is clear of the courses of all silent aircraft, as far as the errors of positions allow.
    fn is_clear_of_silent(&self, now: Instant, at: DVec2) -> bool {
        let error_m = self.config.safe_distance_m() * (1.0 - ASIDE_SHARE);
        let (at, height_m) = (at.extend(self.motion.here.z), self.config.risk.height_m);
        self.obstacles(now)
            .filter(|(peer, _)| self.is_silent(now, *peer))
            .all(|(_, obstacle)| !obstacle.may_come_near(at, self.keeps_m(&obstacle) - error_m, height_m))
    }

    /// Returns how near silent aircraft may come to a position over ground, in metres.
    fn silent_room_m(&self, now: Instant, at: DVec2) -> f64 {
        let (at, height_m) = (at.extend(self.motion.here.z), self.config.risk.height_m);
        let silent = self.obstacles(now).filter(|(peer, _)| self.is_silent(now, *peer));
        silent.map(|(_, obstacle)| obstacle.room_m(at, height_m)).fold(f64::INFINITY, f64::min)
    }

    pub(super) fn is_silent(&self, now: Instant, peer: VehicleId) -> bool {
        self.neighbours.get(peer).is_some_and(|peer| peer.is_silent(now, SILENT_AFTER))
    }

    /// Returns this aircraft, as a silent one knows it.
    pub(super) fn receiver(&self) -> Receiver {
        // On the ground its frame begins where it stands.
        let ground_m = self.local.as_ref().map_or(0.0, |local| local.ground_m);
        let air_m_s = self.air_m_s.unwrap_or_default();
        Receiver { me: self.config.me, ground_m, air_m_s, leads_since: self.last_course.leads_since() }
    }

    /// Where silent aircraft may be, by their ids.
    pub(super) fn obstacles(&self, now: Instant) -> impl Iterator<Item = (VehicleId, Obstacle)> {
        self.neighbours.obstacles(now, self.config.prediction_lasts(), self.frame(), self.receiver())
    }

    /// A silent aircraft that may be on our path by the time that we are: we stop before its path, and do not stop on it.
    /// `passed` is not judged: this aircraft passes it.
    pub(super) fn silent_ahead(&self, now: Instant, passed: Option<VehicleId>) -> Option<Conflict> {
        if !self.knows_where_it_is(now) {
            return None;
        }
        let (path, here) = (self.path_ahead(), self.motion.here);
        let (distance_m, height_m) = (self.config.risk_distance_m(), self.config.risk.height_m);
        let (safe_m, hop_s) = (self.config.safe_distance_m(), self.config.prediction.hop_s);
        let in_s = |i: usize| i as f64 * hop_s;
        let handling = self.config.prediction.handling;
        let brake_m = brake_distance_m(BrakeFit::Later, handling, self.flight.speed_m_s());
        self.obstacles(now).filter(|(peer, _)| Some(*peer) != passed).find_map(|(peer, obstacle)| {
            let may_be_near =
                |&(i, at): &(usize, &DVec3)| obstacle.may_be_near(*at, in_s(i), distance_m, height_m);
            let (i, at) = path.iter().enumerate().find(may_be_near)?;
            let conflict = Conflict { peer, risk: Some(*at) };
            let room_m = in_s(i) * self.flight.planned_speed_m_s() + distance_m - safe_m;
            // Behind its path too it stops in its way.
            let braking = libm::ceil(brake_m / (self.flight.planned_speed_m_s() * hop_s)) as usize;
            let stops_clear =
                path.iter().take(braking + 1).all(|p| !obstacle.may_come_near(*p, safe_m, height_m));
            if i > 0 && room_m >= brake_m && stops_clear {
                return Some(conflict);
            }
            // Too near to stop clear of its path, or on it: what counts is when it comes, if it flies on.
            let meets =
                path.iter().enumerate().any(|(i, p)| obstacle.flies_near(*p, in_s(i), safe_m, height_m));
            let is_on_its_path = obstacle.may_come_near(here, safe_m, height_m);
            let leaves_it = path.last().is_some_and(|p| !obstacle.may_come_near(*p, safe_m, height_m));
            (meets && !(is_on_its_path && leaves_it)).then_some(conflict)
        })
    }

    /// Standing because of an aircraft that is silent now: out of its path first. The lower of the two lets the other pass for
    /// good, as far as it can be on ours; the higher passes when the lower can no longer be there. Neither needs an answer.
    pub(super) fn check_silent(
        &self,
        now: Instant,
        conflict: Conflict,
        since: Instant,
        avoiding: Avoiding,
    ) -> Option<Step> {
        if !self.knows_where_it_is(now) {
            return None;
        }
        // Whatever it waited for meanwhile, and however often it moved aside.
        let began_at = self.alone_since.map_or(since, |alone_since| alone_since.min(since));
        let limit = self.config.deadlock.timeout(self.flight.planned_speed_m_s());
        let too_long = now.since(began_at) > limit;
        let leaves = || self.leaves_unanswered(now, conflict).or_else(|| self.leaves_silent(now, avoiding));
        if !too_long && let Some(transition) = leaves() {
            return Some(transition.into());
        }
        let (distance_m, height_m) = (self.config.risk_distance_m(), self.config.risk.height_m);
        let (path, hop_s) = (self.path_ahead(), self.config.prediction.hop_s);
        let is_on_ours = |(_, obstacle): (VehicleId, Obstacle)| {
            let mut ahead = path.iter().enumerate();
            ahead.any(|(i, at)| obstacle.may_be_near(*at, i as f64 * hop_s, distance_m, height_m))
        };
        let is_lower = self.config.me < conflict.peer;
        let judges = self.config.passing_judges;
        let is_blocked =
            self.obstacles(now).any(is_on_ours) || judges && self.meets_a_mover(now, conflict.peer);
        if !is_blocked {
            // A mute peer receives us: it waits until it is passed.
            let passes = matches!(avoiding, Avoiding::StandStill { .. }) && judges && !is_lower;
            return match passes {
                true => self.resumed(avoiding, AfterResume::Overtaking).map(Step::from),
                false => self.resume(avoiding, Outcome::Solved),
            };
        }
        // It may hover at the end of its mission without end, or wait for us: this aircraft stands clear of its path, and lands
        // there.
        if too_long {
            return Some(self.lands_alone(now, conflict));
        }
        // A mute peer learns that it may pass, where it is not received again soon.
        let is_gone =
            self.neighbours.get(conflict.peer).is_none_or(|n| !n.is_recent(now, self.config.beacon_validity));
        let gives_way = judges && is_lower && is_gone && matches!(avoiding, Avoiding::StandStill { .. });
        gives_way.then(|| to(self.waits(now, conflict)).into())
    }

    /// Finds the position aside of the path of another, which counts longer than it is by the distance to keep.
    fn find_off(&self, now: Instant, conflict: Conflict, obstacle: &Obstacle, keeps_m: f64) -> Aside {
        let mut way: silent::Way = obstacle.path.iter().map(|at| at.truncate()).collect();
        if let [.., before, last] = way.as_mut_slice() {
            *last += (*last - *before).normalize_or_zero() * keeps_m;
        }
        self.find_aside(now, conflict, &way, obstacle.speed_m_s, keeps_m)
    }

    /// Finds the position away from the nearest point of the path of another that is furthest from the courses of all silent
    /// aircraft. The way there leads past none of them.
    fn find_away(
        &self,
        now: Instant,
        conflict: Conflict,
        obstacle: &Obstacle,
        keeps_m: f64,
    ) -> Option<DVec2> {
        let here = self.motion.here.truncate();
        let nearest = obstacle.nearest_on_path(here)?;
        let away = (here - nearest).normalize_or(DVec2::Y);
        let candidate = |turn: f64| {
            let (sin, cos) = libm::sincos(turn * core::f64::consts::FRAC_PI_4);
            nearest + DVec2::new(cos, sin).rotate(away) * (keeps_m + BEYOND_M)
        };
        let is_free = |aside: &DVec2| {
            !self.is_taken(now, conflict, *aside) && !self.crosses_one_that_passes(now, *aside)
        };
        let candidates = [0.0, 1.0, -1.0, 2.0, -2.0].into_iter().map(candidate);
        let room = |aside: DVec2| (self.silent_room_m(now, aside), aside);
        // The first of those that are equally far.
        let best = candidates.filter(is_free).filter(|at| self.nears_no_silent(now, *at)).map(room).reduce(
            |best, other| {
                if other.0 > best.0 { other } else { best }
            },
        );
        best.map(|(_, aside)| aside)
    }

    /// Returns whether the straight way to a position comes no nearer to the courses of silent aircraft.
    fn nears_no_silent(&self, now: Instant, to: DVec2) -> bool {
        let here = self.motion.here.truncate();
        let least_m = self.silent_room_m(now, here) - CLOSER_M;
        let mut shares = [0.25, 0.5, 0.75].into_iter();
        // Without silent aircraft there is room without end on both sides.
        shares.all(|share| self.silent_room_m(now, here.lerp(to, share)) >= least_m)
    }

    /// Returns whether the straight way to a position comes nearer to the courses of silent
    /// aircraft than the safe distance, and nearer than the present position.
    pub(super) fn nears_silent(&self, now: Instant, to: DVec2) -> bool {
        let here = self.motion.here.truncate();
        let least_m = (self.silent_room_m(now, here) - CLOSER_M).min(self.config.safe_distance_m());
        let mut shares = [0.25, 0.5, 0.75, 1.0].into_iter();
        shares.any(|share| self.silent_room_m(now, here.lerp(to, share)) <= least_m)
    }

    /// Returns whether the peer names this aircraft in its conflict and stands, although this
    /// aircraft gave way long ago: it does not receive that.
    pub(super) fn is_unheeded(&self, now: Instant, avoiding: Avoiding) -> bool {
        let Avoiding::GoOnPlease { conflict, since, .. } = avoiding else { return false };
        self.config.avoids_to_the_end
            && now.since(since) > PASSES_WITHIN
            && self.neighbours.get(conflict.peer).is_some_and(|peer| {
                self.claims(peer)
                    && peer.beacon.state == Avoidance::StandStill
                    && peer.is_recent(now, self.config.beacon_validity)
            })
    }

    /// Lands an aircraft that has waited too long, over all its conflicts, for aircraft that do not
    /// receive it.
    pub(super) fn lands_unheeded(
        &self,
        now: Instant,
        conflict: Conflict,
        avoiding: Avoiding,
    ) -> Option<Step> {
        let limit = self.config.deadlock.timeout(self.flight.planned_speed_m_s());
        let too_long = self.alone_since.is_some_and(|since| now.since(since) > limit);
        (too_long && self.is_unheeded(now, avoiding)).then(|| self.lands_alone(now, conflict))
    }

    /// Lands where it stands, or aside where that is too near to the courses of silent aircraft.
    fn lands_alone(&self, now: Instant, conflict: Conflict) -> Step {
        let transition = self
            .lands_clear_of_silent(now)
            .unwrap_or_else(|| ordering(Avoiding::EmergencyLand { conflict }, Order::Land));
        Step { transition, outcome: Some(Outcome::DeadlockFailed) }
    }

    /// Landing away from the courses of silent aircraft, where it stands too near to one and a clear position is in reach.
    fn lands_clear_of_silent(&self, now: Instant) -> Option<Transition<Avoiding>> {
        if self.is_clear_of_silent(now, self.motion.here.truncate()) {
            return None;
        }
        let aside = self.landing_site(now).filter(|site| self.nears_no_silent(now, *site))?;
        self.landing_aside(now, aside)
    }

    /// Out of the peer's way.
    pub(super) fn waits(&self, now: Instant, conflict: Conflict) -> Avoiding {
        // One that is silent, or does not stand because of us, will not say that it has passed.
        let answers = |peer: &&Neighbour| {
            !self.config.passing_judges
                || self.claims(peer) && peer.is_recent(now, self.config.prediction_lasts())
        };
        let event = self.neighbours.get(conflict.peer).filter(answers).map(|peer| peer.beacon.event);
        Avoiding::GoOnPlease { conflict, since: now, event }
    }

    /// Aside: the lower lets the peer pass. The higher waits until a lower one that does not answer is out of its way, and says
    /// where it will fly: a mute one receives that.
    pub(super) fn waits_aside(&self, now: Instant, conflict: Conflict) -> Avoiding {
        match self.config.passing_judges && self.config.me > conflict.peer {
            true => Avoiding::StandStill { conflict, began_at: now, since: now, is_aside: true },
            false => self.waits(now, conflict),
        }
    }
}
