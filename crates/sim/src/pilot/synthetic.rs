//! A pilot without a recording: a programme of stick movements, flown by eye.
//!
//! [`Synthetic::published`] flies the shape of the pilot's flight that thesis section 7.2.1 used: the nose
//! towards 291° all the time, full stick (4.9 m/s in LOITER) forwards, sideways and backwards in ten legs with
//! short rests between, two climbs and a descent, 11 minutes in all. Legs and heights were measured on that
//! recording's rows. [`Synthetic::drawn`] draws another flight from the seed, with turns of the nose.

use rand_core::Rng;
use wingbeat_geo::{Duration, Instant};

use super::Sticks;
use crate::flight_controller::Truth;
use crate::rng::{Pcg64Mcg, child, uniform};

/// No climb takes longer than this; then the programme continues.
const CLIMB_MOST: Duration = Duration::from_secs(60);
/// The arming gesture is held for this long at most.
const ARM_MOST: Duration = Duration::from_secs(10);
/// Pause between two attempts to arm: a refusal often passes, for example one for a missing position.
const ARM_PAUSE: Duration = Duration::from_secs(10);
/// A pilot whose attempts fail for this long stays on the ground.
const ARM_TRIES: Duration = Duration::from_secs(150);
/// A pilot is no metronome: durations vary by this part.
const VARIATION: f64 = 0.03;

/// A movement of the programme: the sticks, and what ends it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Movement {
    /// Throttle down and yaw to the right until it is armed.
    Arm,
    /// Up or down to this height.
    Climb { to_m: f64, throttle_us: u16 },
    /// These sticks for so long.
    Hold { sticks: Sticks, time: Duration },
    /// Down until it is disarmed.
    Land,
}

/// Sticks that interrupt a programme.
#[derive(Clone, Debug, PartialEq)]
struct Diversion {
    sticks: Sticks,
    time: Duration,
    since: Option<Instant>,
}

/// A pilot with a programme.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthetic {
    programme: Vec<Movement>,
    movement: usize,
    since: Option<Instant>,
    diversion: Option<Diversion>,
}

/// Full stick.
const FULL_US: u16 = 500;

fn pushed(right_us: i16, forward_us: i16) -> Sticks {
    let at = |offset: i16| 1500u16.saturating_add_signed(offset);
    Sticks { roll_us: at(right_us), pitch_us: at(-forward_us), ..Sticks::CENTRED }
}

impl Synthetic {
    fn of(programme: Vec<Movement>) -> Self {
        Self { programme, movement: 0, since: None, diversion: None }
    }

    /// The published flight's shape. The seed varies the length of legs and rests by a few per cent.
    pub fn published(seed: u64) -> Self {
        let mut rng = child(seed, "pilot", 0);
        let full = FULL_US as i16;
        // Right and forward in stick widths, seconds of the leg, seconds of rest after it.
        let legs = |rows: &[(i16, i16, f64, f64)], rng: &mut Pcg64Mcg, programme: &mut Vec<Movement>| {
            for &(right, forward, leg_s, rest_s) in rows {
                programme.push(hold(pushed(right * full, forward * full), leg_s, rng));
                programme.push(hold(Sticks::CENTRED, rest_s, rng));
            }
        };
        let mut p = vec![hold(Sticks::DOWN, 1.0, &mut rng), Movement::Arm];
        p.push(Movement::Climb { to_m: 19.0, throttle_us: 1888 });
        p.push(hold(Sticks::CENTRED, 2.0, &mut rng));
        legs(
            &[
                (1, 0, 32.5, 1.2),
                (0, 1, 34.3, 0.4),
                (-1, 0, 101.0, 0.4),
                (0, -1, 33.3, 1.8),
                (1, 0, 102.0, 0.4),
            ],
            &mut rng,
            &mut p,
        );
        p.push(Movement::Climb { to_m: 41.0, throttle_us: 1978 });
        legs(&[(0, -1, 34.2, 1.0), (-1, 0, 97.7, 2.5)], &mut rng, &mut p);
        p.push(Movement::Climb { to_m: 24.0, throttle_us: 1135 });
        p.push(hold(Sticks::CENTRED, 2.0, &mut rng));
        legs(&[(0, 1, 68.3, 1.4), (1, 0, 54.4, 1.9), (0, -1, 36.2, 3.1)], &mut rng, &mut p);
        p.push(Movement::Land);
        Self::of(p)
    }

    /// A flight drawn from the seed: legs in any direction at half to full stick, rests, climbs between 15 m
    /// and 45 m, turns of the nose; about `flight` long.
    pub fn drawn(seed: u64, flight: Duration) -> Self {
        let mut rng = child(seed, "pilot", 1);
        let mut p = vec![
            hold(Sticks::DOWN, 1.0, &mut rng),
            Movement::Arm,
            Movement::Climb { to_m: 20.0, throttle_us: 1900 },
        ];
        let (mut left_s, mut height_m) = (flight.as_secs_f64() - 30.0, 20.0);
        while left_s > 0.0 {
            let between = |rng: &mut Pcg64Mcg, from: f64, to: f64| from + (to - from) * uniform(rng);
            let seconds = match rng.next_u64() % 6 {
                0 => {
                    let to_m = between(&mut rng, 15.0, 45.0);
                    p.push(Movement::Climb { to_m, throttle_us: if to_m > height_m { 1900 } else { 1150 } });
                    let way_m: f64 = to_m - height_m;
                    height_m = to_m;
                    way_m.abs() / 2.0
                }
                1 => {
                    // A gentle turn: the outer slots cannot follow a fast one.
                    let offset_us = between(&mut rng, 60.0, 120.0) as i16;
                    let sign = if rng.next_u64().is_multiple_of(2) { 1 } else { -1 };
                    let yaw_us = 1500u16.saturating_add_signed(offset_us * sign);
                    let seconds = between(&mut rng, 1.0, 4.0);
                    p.push(hold(Sticks { yaw_us, ..Sticks::CENTRED }, seconds, &mut rng));
                    seconds
                }
                2 => {
                    let seconds = between(&mut rng, 2.0, 10.0);
                    p.push(hold(Sticks::CENTRED, seconds, &mut rng));
                    seconds
                }
                _ => {
                    let angle = between(&mut rng, 0.0, std::f64::consts::TAU);
                    let (sin, cos) = libm::sincos(angle);
                    let deflection_us = between(&mut rng, 0.5, 1.0) * f64::from(FULL_US);
                    let seconds = between(&mut rng, 10.0, 60.0);
                    let sticks = pushed((deflection_us * sin) as i16, (deflection_us * cos) as i16);
                    p.push(hold(sticks, seconds, &mut rng));
                    seconds
                }
            };
            left_s -= seconds;
        }
        p.push(hold(Sticks::CENTRED, 3.0, &mut rng));
        p.push(Movement::Land);
        Self::of(p)
    }

    /// The pilot sees that something went wrong: centres the sticks for so long, and lands.
    pub fn landing(after: Duration) -> Self {
        Self::of(vec![Movement::Hold { sticks: Sticks::CENTRED, time: after }, Movement::Land])
    }

    /// The pilot sees an aircraft below: flies aside, to the right and ahead by these parts of full stick,
    /// for some seconds, and lands.
    pub fn landing_aside(right: f64, ahead: f64) -> Self {
        let stick = |part: f64| (part.clamp(-1.0, 1.0) * f64::from(FULL_US)) as i16;
        let aside = pushed(stick(right), stick(ahead));
        Self::of(vec![
            Movement::Hold { sticks: aside, time: Duration::from_secs(5) },
            Movement::Hold { sticks: Sticks::CENTRED, time: Duration::from_secs(4) },
            Movement::Land,
        ])
    }

    /// Holds other sticks for so long. A leg that they interrupt is over, any other movement
    /// continues after them.
    pub(super) fn divert(&mut self, sticks: Sticks, time: Duration) {
        self.diversion = Some(Diversion { sticks, time, since: None });
    }

    /// The sticks now.
    pub(super) fn sticks(&mut self, now: Instant, seen: &Truth) -> Sticks {
        if let Some(diversion) = &mut self.diversion {
            if now.since(*diversion.since.get_or_insert(now)) < diversion.time {
                return diversion.sticks;
            }
            self.diversion = None;
            self.since = None;
            let is_leg = matches!(self.programme.get(self.movement), Some(Movement::Hold { .. }));
            self.movement += usize::from(is_leg);
        }
        loop {
            let since = *self.since.get_or_insert(now);
            let held = now.since(since);
            let (sticks, over) = match self.programme.get(self.movement) {
                None => return Sticks::DOWN,
                Some(Movement::Arm) if !seen.armed && held >= ARM_TRIES => return Sticks::DOWN,
                Some(Movement::Arm) => {
                    let is_try = held.as_micros() % (ARM_MOST + ARM_PAUSE).as_micros() < ARM_MOST.as_micros();
                    (if is_try { Sticks::ARM } else { Sticks::DOWN }, seen.armed)
                }
                Some(Movement::Hold { sticks, time }) => (*sticks, held >= *time),
                Some(Movement::Climb { to_m, throttle_us }) => {
                    // What the climb continues after the stick is centred: about a second of it.
                    let height_m = seen.local.z + seen.velocity.z;
                    let there = if *throttle_us > 1500 { height_m >= *to_m } else { height_m <= *to_m };
                    let sticks = Sticks { throttle_us: *throttle_us, ..Sticks::CENTRED };
                    (sticks, there || held >= CLIMB_MOST)
                }
                // Slower near the ground.
                Some(Movement::Land) => {
                    let throttle_us = match seen.local.z {
                        _ if seen.landed => 1000,
                        ..=4.0 => 1300,
                        _ => 1180,
                    };
                    (Sticks { throttle_us, ..Sticks::CENTRED }, !seen.armed && held >= CLIMB_MOST)
                }
            };
            if !over {
                return sticks;
            }
            self.movement += 1;
            self.since = Some(now);
        }
    }
}

fn hold(sticks: Sticks, seconds: f64, rng: &mut Pcg64Mcg) -> Movement {
    let varied_s = seconds * (1.0 + VARIATION * (2.0 * uniform(rng) - 1.0));
    Movement::Hold { sticks, time: Duration::from_millis((varied_s * 1e3) as u64) }
}
