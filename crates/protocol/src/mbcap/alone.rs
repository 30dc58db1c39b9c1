//! Acting alone: keeping clear of aircraft that are silent, and of those that fly at us and do not answer. Nothing here needs an
//! agreement, for the radio of either may be dead, deaf or mute (`docs/protocols/mbcap.md`, *Silent aircraft*).

use wingbeat_geo::{DVec3, Duration, Instant};
use wingbeat_wire::VehicleId;

use super::Mbcap;
use super::config::{BrakeFit, Prediction};
use super::decide::{Outcome, SETTLES_M_S, Step, ordering, to};
use super::neighbours::Neighbour;
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

/// A braking aircraft that is slower than this can be sent aside, metres per second.
const SLOW_M_S: f64 = 4.0;
/// Time from a stop until the other, if it receives us, has said that it stops too: its period of checks and a beacon.
const ANSWERS_WITHIN: Duration = Duration::from_millis(1_200);

impl Mbcap {
    /// Standing: out of the way of an aircraft that flies at us and does not answer, whatever its right of way, and of silent ones.
    pub(super) fn leaves_ways(&self, now: Instant, avoiding: Avoiding) -> Option<Transition<Avoiding>> {
        if !self.config.avoids_to_the_end || !self.knows_where_it_is(now) {
            return None;
        }
        let conflict = avoiding.conflict()?;
        self.leaves_unanswered(now, conflict).or_else(|| self.leaves_silent(now, avoiding))
    }

    /// One that receives us has stopped by now, or claims us: so near that this one is in its prediction it flies on only where
    /// it does not receive us.
    fn leaves_unanswered(&self, now: Instant, conflict: Conflict) -> Option<Transition<Avoiding>> {
        let (frame, here) = (self.frame()?, self.motion.here);
        let clear_m = self.config.passing_distance_m();
        self.clear_neighbours(now).find_map(|n| {
            let v = f64::from(n.beacon.speed_cm_s) * 1e-2;
            let height_m = self.config.risk.height_m;
            let Prediction { horizon, handling, .. } = &self.config.prediction;
            let noticed_m = reaction_distance_m(horizon, *handling, v) + self.config.risk_distance_m() - v;
            let flies_on =
                n.is_recent(now, NEWEST) && self.is_moving(n) && v >= SETTLES_M_S && !self.claims(n);
            let is_near = n.at.truncate().distance(here.truncate()) < noticed_m
                && libm::fabs(n.at.z - here.z) < height_m;
            if !flies_on || !is_near {
                return None;
            }
            let way = self.neighbours.way_of(now, n, frame, self.config.me)?;
            // Not behind it: the path begins where it is.
            if !way.may_be_near(here, noticed_m / v, clear_m, height_m) {
                return None;
            }
            self.leave_path(now, Conflict { peer: n.id, ..conflict }, &way, self.wide_m())
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
            let is_in_its_way = obstacle.may_come_near(here, keeps_m - error_m, height_m);
            is_in_its_way.then(|| self.leave_path(now, Conflict { peer, ..conflict }, &obstacle, keeps_m))?
        })
    }

    pub(super) fn is_silent(&self, now: Instant, peer: VehicleId) -> bool {
        self.neighbours.get(peer).is_some_and(|peer| peer.is_silent(now, SILENT_AFTER))
    }

    /// Where silent aircraft may be, by their ids.
    pub(super) fn obstacles(&self, now: Instant) -> impl Iterator<Item = (VehicleId, Obstacle)> {
        self.neighbours.obstacles(now, self.config.prediction_lasts(), self.frame(), self.config.me)
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
        if let Some(transition) =
            self.leaves_unanswered(now, conflict).or_else(|| self.leaves_silent(now, avoiding))
        {
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
        let too_long = now.since(since) > self.config.deadlock.timeout(self.flight.planned_speed_m_s());
        if too_long {
            return Some(Step {
                transition: ordering(Avoiding::EmergencyLand { conflict }, Order::Land),
                outcome: Some(Outcome::DeadlockFailed),
            });
        }
        // A mute peer learns that it may pass, where it is not received again soon.
        let is_gone =
            self.neighbours.get(conflict.peer).is_none_or(|n| !n.is_recent(now, self.config.beacon_validity));
        let gives_way = judges && is_lower && is_gone && matches!(avoiding, Avoiding::StandStill { .. });
        gives_way.then(|| to(self.waits(now, conflict)).into())
    }

    /// Aside from the path of a silent aircraft; nothing where there is no such position.
    fn leave_path(
        &self,
        now: Instant,
        conflict: Conflict,
        obstacle: &Obstacle,
        keeps_m: f64,
    ) -> Option<Transition<Avoiding>> {
        let way: silent::Way = obstacle.path.iter().map(|at| at.truncate()).collect();
        self.move_aside(now, conflict, &way, obstacle.speed_m_s, keeps_m)
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
