//! The eyes of a drill's pilot: other aircraft in the way of the leader, and how its pilot flies
//! round them.
//!
//! Pilots fly by eye, in daylight. They see an aircraft that stands in the way of theirs, or
//! crosses it, whatever its companion does: they let go of the sticks, or fly away from it, and go
//! elsewhere after that (`docs/protocols/follow-me.md`). They read no state of it, and they need a
//! moment to react.

use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec2, Duration, Instant};
use wingbeat_sim::motion::Profile;
use wingbeat_sim::pilot::Sticks;

use super::sky::{FIRST, Sky};

/// From seeing an aircraft in the way to the sticks.
const REACTS_AFTER: Duration = Duration::from_millis(500);
/// Period at which a pilot judges what they see.
const LOOKS_EVERY: Duration = Duration::from_millis(500);
/// A pilot flies past another aircraft no nearer than this, in metres: distances are judged by eye.
const PASSES_M: f64 = 12.0;
/// Past an aircraft on the ground, which does not move, a pilot lands this much nearer, in metres.
const NEARER_ON_GROUND_M: f64 = 4.0;
/// A pilot judges where aircraft are this much later, in seconds.
const AHEAD_S: f64 = 6.0;
/// Step of that judgement, in seconds.
const STEP_S: f64 = 0.25;
/// Aircraft further away than this are in no one's way, in metres.
const SEES_WITHIN_M: f64 = 120.0;
/// Nor are those further above or below: the downwash reaches 15 m, in metres.
const HEIGHT_M: f64 = 18.0;
/// Aircraft on the ground are in the way of one that flies lower than this above them, in metres.
const LOW_M: f64 = 10.0;
/// A pilot holds the sticks away from the other aircraft for this long, and then continues
/// elsewhere.
const EVADES_FOR: Duration = Duration::from_secs(2);
/// Number of directions from which a pilot chooses.
const DIRECTIONS: u32 = 16;

/// Another aircraft as the pilot sees it, relative to theirs: metres and m/s east and north.
#[derive(Clone, Copy, Debug)]
struct Seen {
    off_m: DVec2,
    velocity_m_s: DVec2,
    /// It is passed this much nearer, in metres.
    nearer_m: f64,
}

/// The aircraft that the pilot flies.
#[derive(Clone, Copy, Debug)]
struct Flown {
    velocity_m_s: DVec2,
    /// Speed at full stick, in m/s.
    most_m_s: f64,
    /// Time in which it takes on the speed of the sticks, in seconds.
    lag_s: f64,
}

impl Flown {
    /// Returns the least distance to the others while the sticks ask for this velocity, in metres.
    fn nearest_m(&self, sticks_m_s: DVec2, seen: &[Seen]) -> f64 {
        let (mut at_m, mut velocity_m_s, mut after_s) = (DVec2::ZERO, self.velocity_m_s, 0.0);
        let mut nearest_m = f64::INFINITY;
        while after_s <= AHEAD_S {
            for other in seen {
                let there_m = other.off_m + other.velocity_m_s * after_s;
                nearest_m = nearest_m.min(there_m.distance(at_m) + other.nearer_m);
            }
            velocity_m_s += (sticks_m_s - velocity_m_s) * (STEP_S / self.lag_s);
            at_m += velocity_m_s * STEP_S;
            after_s += STEP_S;
        }
        nearest_m
    }

    /// Returns the velocity that the pilot asks for: none where letting go of the sticks is enough,
    /// or the best direction.
    fn evades(&self, seen: &[Seen]) -> DVec2 {
        let stops_m = self.nearest_m(DVec2::ZERO, seen);
        if stops_m >= PASSES_M {
            return DVec2::ZERO;
        }
        let direction = |n: u32| {
            let (sin, cos) = libm::sincos(std::f64::consts::TAU * f64::from(n) / f64::from(DIRECTIONS));
            DVec2::new(sin, cos) * self.most_m_s
        };
        let all = (0..DIRECTIONS).map(direction).map(|to_m_s| (self.nearest_m(to_m_s, seen), to_m_s));
        let best = |best: (f64, DVec2), other: (f64, DVec2)| if other.0 > best.0 { other } else { best };
        all.fold((stops_m, DVec2::ZERO), best).1
    }
}

/// Watches the air around the leader.
#[derive(Debug, Default)]
pub(super) struct Lookout {
    /// Since when another aircraft is in the way.
    seen_since: Option<Instant>,
}

impl Lookout {
    /// Flies the leader away from an aircraft in its way, while its pilot steers it in LOITER.
    pub(super) fn watch(&mut self, sky: &mut Sky) {
        let (now, own) = (sky.world.now(), sky.world.truth(FIRST));
        if !now.as_micros().is_multiple_of(LOOKS_EVERY.as_micros() as u64) {
            return;
        }
        let is_steered = own.armed && own.mode == Mode::Loiter && sky.struck[FIRST].pilot.is_none();
        let (most_m_s, lag_s) = match sky.script.scenario.profile {
            Profile::Copter357 => (5.0, 2.0),
            Profile::Copter462 => (10.0, 3.0),
        };
        let flown = Flown { velocity_m_s: own.velocity.truncate(), most_m_s, lag_s };
        let seen: Vec<Seen> = (0..sky.count()).filter_map(|i| sees(sky, i)).collect();
        if own.landed || !is_steered || flown.nearest_m(flown.velocity_m_s, &seen) >= PASSES_M {
            self.seen_since = None;
            return;
        }
        if now < *self.seen_since.get_or_insert(now) + REACTS_AFTER {
            return;
        }
        let (sin, cos) = own.heading_rad.sin_cos();
        let to = flown.evades(&seen) / most_m_s;
        let deflected = |part: f64| (1500.0 + 500.0 * part.clamp(-1.0, 1.0)) as u16;
        let (right, ahead) = (to.x * cos - to.y * sin, to.x * sin + to.y * cos);
        let sticks = Sticks { roll_us: deflected(right), pitch_us: deflected(-ahead), ..Sticks::CENTRED };
        if let Some(pilot) = sky.world.pilot_mut(FIRST) {
            pilot.divert(sticks, EVADES_FOR);
        }
    }
}

/// Returns another aircraft if it may be in the way of the leader.
fn sees(sky: &Sky, i: usize) -> Option<Seen> {
    let off_m = sky.world.place(i) - sky.world.place(FIRST);
    let other = sky.world.truth(i);
    let height_m = if other.landed { LOW_M } else { HEIGHT_M };
    let is_near = off_m.truncate().length() < SEES_WITHIN_M && off_m.z.abs() < height_m;
    (i != FIRST && is_near).then_some(Seen {
        off_m: off_m.truncate(),
        velocity_m_s: if other.landed { DVec2::ZERO } else { other.velocity.truncate() },
        nearer_m: if other.landed { NEARER_ON_GROUND_M } else { 0.0 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flown(velocity_m_s: [f64; 2]) -> Flown {
        Flown { velocity_m_s: DVec2::from_array(velocity_m_s), most_m_s: 5.0, lag_s: 2.0 }
    }

    fn seen(off_m: [f64; 2], velocity_m_s: [f64; 2]) -> Seen {
        let [off_m, velocity_m_s] = [off_m, velocity_m_s].map(DVec2::from_array);
        Seen { off_m, velocity_m_s, nearer_m: 0.0 }
    }

    #[test]
    fn a_pilot_lets_go_of_the_sticks_for_an_aircraft_that_stands_ahead() {
        let (own, other) = (flown([0.0, 5.0]), [seen([2.0, 29.0], [0.0, 0.0])]);
        assert!(own.nearest_m(own.velocity_m_s, &other) < PASSES_M);
        assert_eq!(own.evades(&other), DVec2::ZERO);
    }

    #[test]
    fn a_pilot_flies_aside_of_an_aircraft_that_comes() {
        let (own, other) = (flown([0.0, 0.0]), [seen([2.0, 29.0], [0.0, -5.0])]);
        let to_m_s = own.evades(&other);
        assert!(to_m_s.x < -1.0 && to_m_s.y < -1.0, "to the other side and away: {to_m_s}");
        assert!(own.nearest_m(to_m_s, &other) > own.nearest_m(DVec2::ZERO, &other) + 5.0);
    }

    #[test]
    fn aircraft_that_pass_clear_or_fly_away_are_in_no_ones_way() {
        let own = flown([0.0, 5.0]);
        for (off_m, velocity_m_s) in
            [([13.0, 20.0], [0.0, 0.0]), ([0.0, -20.0], [0.0, 3.0]), ([0.0, 50.0], [0.0, 0.0])]
        {
            assert!(own.nearest_m(own.velocity_m_s, &[seen(off_m, velocity_m_s)]) >= PASSES_M, "{off_m:?}");
        }
    }
}
