//! The pilot of a drill's leader: sees a follower that falls behind, stops, and lands after a while. The pilot reads the places of
//! aircraft in sight and the state of the aircraft that they fly.

use wingbeat_agent::{Command, StateId};
use wingbeat_geo::{DVec2, Duration, Frame, Instant};
use wingbeat_sim::pilot::Pilot as Sticks;
use wingbeat_sim::pilot::synthetic::Synthetic;

use super::lookout::Lookout;
use super::operator::Operator;
use super::script::Reaction;
use super::sky::{FIRST, Sky};
use crate::scenario::ORIGIN;

/// A pilot lands no nearer to another aircraft, by eye.
const CLEAR_BELOW_M: f64 = 12.0;
/// The way that a pilot flies aside to land, metres.
const ASIDE_M: f64 = 15.0;
/// A leader that has not taken off by then does not fly: longer than the pilot's attempts to arm.
const TAKES_OFF_WITHIN: Duration = Duration::from_secs(180);
/// A pilot who sees less charge than this lands at once, or does not take off, percent.
const LANDS_BELOW_PERCENT: f64 = 15.0;
/// By then a leader has climbed and its followers follow.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(20);
/// A pilot sees a multicopter no further away, metres.
const SIGHT_M: f64 = 500.0;
/// A follower that follows lags behind its slot by less than this, metres.
const LAGS_MOST_M: f64 = 45.0;

pub(super) struct Pilot {
    reaction: Reaction,
    /// Since when the followers wait for the leader.
    waits_since: Option<Instant>,
    /// Since when the leader is in the air.
    flies_since: Option<Instant>,
    trouble_at: Option<Instant>,
    stopped: bool,
    lands_at: Option<Instant>,
    /// Whether the followers were landed, because the leader is down and does not know that it flew.
    called_down: bool,
    lookout: Lookout,
}

impl Pilot {
    pub(super) fn new(reaction: Reaction) -> Self {
        Self {
            reaction,
            waits_since: None,
            flies_since: None,
            trouble_at: None,
            stopped: false,
            lands_at: None,
            called_down: false,
            lookout: Lookout::default(),
        }
    }

    pub(super) fn fly(&mut self, sky: &mut Sky, operator: &mut Operator) {
        let now = sky.world.now();
        self.lookout.watch(sky);
        if self.lands_at.is_some_and(|at| now >= at) {
            self.lands_at = None;
            if let Some((right_m, ahead_m)) = clear_of_others(sky) {
                seat(sky, Synthetic::landing_aside(right_m, ahead_m));
            }
        }
        if self.stopped && !self.called_down && is_down_unnoticed(sky) {
            self.called_down = true;
            call_down(sky, operator);
        }
        if !operator.has_started(0) || self.stopped {
            return;
        }
        if !sky.world.motion(FIRST).landed {
            self.flies_since.get_or_insert(now);
        }
        let waits_since = *self.waits_since.get_or_insert(now);
        if self.flies_since.is_none() && now >= waits_since + TAKES_OFF_WITHIN {
            self.stopped = true;
            self.stop(sky, operator, self.reaction.hover);
            return;
        }
        if sky.world.charge_percent(FIRST).is_some_and(|percent| percent < LANDS_BELOW_PERCENT) {
            self.stopped = true;
            self.stop(sky, operator, Duration::ZERO);
            return;
        }
        if self.trouble_at.is_none() && self.flies_since.is_some_and(|since| sees_trouble(sky, since)) {
            self.trouble_at = Some(now);
        }
        if self.trouble_at.is_some_and(|at| now >= at + self.reaction.stops_after) {
            self.stopped = true;
            self.stop(sky, operator, self.reaction.hover);
        }
    }

    /// Ends the flight, in the air after a hover.
    fn stop(&mut self, sky: &mut Sky, operator: &mut Operator, hover: Duration) {
        if sky.world.truth(FIRST).landed {
            // The leader stays on the ground, and the followers that wait for it get a command.
            seat(sky, Synthetic::landing(Duration::ZERO));
            self.called_down = true;
            call_down(sky, operator);
            return;
        }
        let now = sky.world.now();
        sky.disturb_until(now + hover);
        self.lands_at = Some(now + hover);
        seat(sky, Synthetic::landing(hover));
        sky.note(&format!("the pilot stops, and lands {:.0} s later", hover.as_secs_f64()));
    }
}

/// Lets the pilot fly this programme, unless the mode switch of the leader was turned by hand.
fn seat(sky: &mut Sky, programme: Synthetic) {
    if sky.struck[FIRST].pilot.is_none() {
        sky.world.seat(FIRST, Sticks::Synthetic(programme));
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

/// Returns whether the pilot sees that a follower does not follow: one in sight is much further away than its slot, or much lower or
/// higher than the leader, or is out of sight. A pilot reads no state of another aircraft.
fn sees_trouble(sky: &Sky, flies_since: Instant) -> bool {
    let Some(task) = sky.script.follow_task() else { return false };
    let leader = sky.world.place(FIRST);
    if sky.world.motion(FIRST).landed || sky.world.now() < flies_since + FOLLOWS_WITHIN {
        return false;
    }
    (0..sky.size()).filter(|&i| i != FIRST).any(|i| {
        let place = sky.world.place(i);
        let far_m = leader.truncate().distance(place.truncate());
        let is_far = far_m > (task.reach_m() + LAGS_MOST_M).min(SIGHT_M);
        // Beyond sight a height is not seen.
        is_far || (far_m < SIGHT_M && sky.world.motion(i).landed)
    })
}

/// Offset that the pilot flies before landing where an aircraft is below, metres right and ahead: away from it.
fn clear_of_others(sky: &Sky) -> Option<(f64, f64)> {
    let frame = Frame::new(ORIGIN);
    let leader = sky.world.truth(FIRST);
    let here = frame.to_local(leader.position).truncate();
    let off = |i: usize| here - frame.to_local(sky.world.truth(i).position).truncate();
    let offs: Vec<DVec2> = (1..sky.size()).map(off).collect();
    if offs.iter().all(|off| off.length() > CLEAR_BELOW_M) {
        return None;
    }
    // Away from all, not from the nearest towards another.
    let least_m =
        |to: DVec2| offs.iter().map(|off| (*off + to * ASIDE_M).length()).fold(f64::INFINITY, f64::min);
    let directions = (0..16).map(|n| {
        let (sin, cos) = libm::sincos(std::f64::consts::TAU * f64::from(n) / 16.0);
        DVec2::new(sin, cos)
    });
    let away = directions.max_by(|a, b| least_m(*a).total_cmp(&least_m(*b)))?;
    let (sin, cos) = leader.heading_rad.sin_cos();
    Some((away.x * cos - away.y * sin, away.x * sin + away.y * cos))
}
