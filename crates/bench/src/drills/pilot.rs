//! The pilot of a drill's leader: sees a follower that falls behind or is lost, stops, and lands after a while.

use wingbeat_agent::{Command, StateId};
use wingbeat_geo::{DVec2, Duration, Frame, Instant};
use wingbeat_sim::pilot::Pilot as Sticks;
use wingbeat_sim::pilot::synthetic::Synthetic;

use super::operator::Operator;
use super::script::Reaction;
use super::sky::{FIRST, Sky};
use crate::scenario::ORIGIN;

/// A pilot lands no nearer to another aircraft, by eye.
const CLEAR_BELOW_M: f64 = 12.0;
/// Two refreshes, and a datagram that is lost: by then the pilot of a leader sees which aircraft follow.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(5);

pub(super) struct Pilot {
    reaction: Reaction,
    trouble_at: Option<Instant>,
    stopped: bool,
    lands_at: Option<Instant>,
    /// Whether the followers were landed, because the leader is down and does not know that it flew.
    called_down: bool,
}

impl Pilot {
    pub(super) fn new(reaction: Reaction) -> Self {
        Self { reaction, trouble_at: None, stopped: false, lands_at: None, called_down: false }
    }

    pub(super) fn fly(&mut self, sky: &mut Sky, operator: &mut Operator) {
        let now = sky.world.now();
        if self.lands_at.is_some_and(|at| now >= at) {
            self.lands_at = None;
            if let Some((right_m, ahead_m)) = clear_of_others(sky) {
                sky.world.seat(FIRST, Sticks::Synthetic(Synthetic::landing_aside(right_m, ahead_m)));
            }
        }
        if self.stopped && !self.called_down && is_down_unnoticed(sky) {
            self.called_down = true;
            call_down(sky, operator);
        }
        if !operator.has_started(0) || self.stopped {
            return;
        }
        if self.trouble_at.is_none() && sees_trouble(sky) {
            self.trouble_at = Some(now);
        }
        if self.trouble_at.is_some_and(|at| now >= at + self.reaction.stops_after) {
            self.stopped = true;
            self.stop(sky, operator);
        }
    }

    fn stop(&mut self, sky: &mut Sky, operator: &mut Operator) {
        if sky.world.truth(FIRST).landed {
            // The leader stays on the ground, and the followers that wait for it get a command.
            sky.world.seat(FIRST, Sticks::Synthetic(Synthetic::landing(Duration::ZERO)));
            self.called_down = true;
            call_down(sky, operator);
            return;
        }
        let (now, hover) = (sky.world.now(), self.reaction.hover);
        sky.disturb_until(now + hover);
        self.lands_at = Some(now + hover);
        sky.world.seat(FIRST, Sticks::Synthetic(Synthetic::landing(hover)));
        sky.note(&format!("the pilot stops, and lands {:.0} s later", hover.as_secs_f64()));
    }
}

/// Whether the leader is on the ground again and still waits for its pilot, because its companion received nothing of the
/// flight: a leader that stays on the ground keeps the followers in the air (`docs/protocols/follow-me.md`).
fn is_down_unnoticed(sky: &Sky) -> bool {
    let truth = sky.world.truth(FIRST);
    truth.landed && !truth.armed && sky.world.agent_of(FIRST).view().state == StateId::Ready
}

/// The followers, which wait for the leader, get a command.
fn call_down(sky: &mut Sky, operator: &mut Operator) {
    for i in (0..sky.size()).filter(|&i| i != FIRST) {
        operator.press(&mut sky.world, i, Command::Land);
    }
}

fn sees_trouble(sky: &Sky) -> bool {
    let now = sky.world.now();
    let leads = sky.world.agent_of(FIRST).view().state == StateId::FollowMe;
    let has_led = leads && now > sky.progress.since(FIRST) + FOLLOWS_WITHIN;
    // What the console shows as lost is to be seen falling behind.
    let is_lost = |i: usize| !sky.lives(i) || now < sky.struck[i].until;
    (0..sky.size()).any(|i| is_lost(i) || is_trouble(sky.world.agent_of(i).view().state, has_led))
}

/// Whether an aircraft in this state, of a leader that has led for a while or not, is what a pilot stops for.
fn is_trouble(state: StateId, has_led: bool) -> bool {
    match state {
        StateId::LeaderLost | StateId::Aborted => true,
        // It should follow by now and does not.
        StateId::WaitMaster | StateId::SetupFinished => has_led,
        StateId::Start
        | StateId::Setup
        | StateId::ReadyToFly
        | StateId::TakingOff
        | StateId::Ready
        | StateId::FollowMe
        | StateId::Following
        | StateId::MovingToLand
        | StateId::Landing
        | StateId::Finished => false,
        // Of protocols that have no piloted leader.
        StateId::Flying
        | StateId::Holding
        | StateId::WaypointReached
        | StateId::MovingToWaypoint
        | StateId::Normal
        | StateId::StandStill
        | StateId::MovingAside
        | StateId::GoOnPlease
        | StateId::Overtaking
        | StateId::EmergencyLand => false,
    }
}

/// Offset that the pilot flies before landing where an aircraft is below, metres right and ahead: away from it.
fn clear_of_others(sky: &Sky) -> Option<(f64, f64)> {
    let frame = Frame::new(ORIGIN);
    let leader = sky.world.truth(FIRST);
    let here = frame.to_local(leader.position).truncate();
    let off = |i: usize| here - frame.to_local(sky.world.truth(i).position).truncate();
    let nearest = (1..sky.size()).map(off).min_by(|a, b| a.length().total_cmp(&b.length()))?;
    if nearest.length() > CLEAR_BELOW_M {
        return None;
    }
    let away = nearest.normalize_or(DVec2::Y);
    let (sin, cos) = leader.heading_rad.sin_cos();
    Some((away.x * cos - away.y * sin, away.x * sin + away.y * cos))
}
