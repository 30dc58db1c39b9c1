//! Rules of how aircraft meet the ground and the air of others: crashes, empty batteries, downwash.

use wingbeat_geo::{Duration, Instant};

use super::Rule;
use crate::drills::run::Run;
use crate::drills::sky::Sky;

/// The hardest touch-down of an autopilot's landing, metres per second: ArduCopter descends at 0.5 (`LAND_SPEED`), and gusts add some.
const TOUCHDOWN_MOST_M_S: f64 = 1.5;
/// The hardest of a pilot who lands by stick.
const PILOTED_MOST_M_S: f64 = 2.5;
/// Motors that stop lower than this stop on the ground, metres above home.
const STANDS_BELOW_M: f64 = 0.5;

/// No aircraft meets the ground faster than a landing does, and no motors stop above it, unless a fault stops motors. An aircraft
/// without companion and guardian hovers until its pilot lands it, and is not judged.
pub(super) struct Crash {
    before: Vec<Before>,
}

/// The last state of an aircraft.
#[derive(Clone, Copy)]
struct Before {
    armed: bool,
    landed: bool,
}

impl Crash {
    pub(super) fn of(aircraft: usize) -> Self {
        Self { before: vec![Before { armed: false, landed: true }; aircraft] }
    }
}

/// Returns whether an aircraft is judged by how it lands.
fn is_judged(sky: &Sky, i: usize) -> bool {
    !sky.falls(i) && !sky.world.is_left_alone(i)
}

impl Rule for Crash {
    fn name(&self) -> &'static str {
        "crash"
    }

    fn on_step(&mut self, run: &Run) -> Option<String> {
        let sky = &run.sky;
        let at_s = sky.world.now().as_secs_f64();
        let mut found = None;
        for i in 0..sky.count() {
            let motion = sky.world.motion(i);
            let before =
                std::mem::replace(&mut self.before[i], Before { armed: motion.armed, landed: motion.landed });
            let (stops, lands) = (before.armed && !motion.armed, !before.landed && motion.landed);
            if !(stops || lands) || !is_judged(sky, i) || found.is_some() {
                continue;
            }
            let truth = sky.world.truth(i);
            let is_piloted = sky.is_piloted(i) || sky.struck[i].pilot.is_some();
            let most_m_s = if is_piloted { PILOTED_MOST_M_S } else { TOUCHDOWN_MOST_M_S };
            let height_m = truth.local.z;
            if stops && !motion.landed && height_m > STANDS_BELOW_M {
                found = Some(format!(
                    "aircraft {} at {at_s:.1} s: its motors stop {height_m:.1} m above home",
                    i + 1
                ));
            } else if lands && truth.touchdown_m_s > most_m_s {
                let speed_m_s = truth.touchdown_m_s;
                found = Some(format!(
                    "aircraft {} at {at_s:.1} s: meets the ground at {speed_m_s:.1} m/s",
                    i + 1
                ));
            }
        }
        found
    }
}

/// Period of the checks of a program's charge.
const CHARGE_PERIOD_US: u64 = 1_000_000;

/// No aircraft is in the air with an empty battery that no fault has emptied. The true charge counts; a program that has none
/// to read is judged by the report of its companion.
pub(super) struct Empty;

impl Rule for Empty {
    fn name(&self) -> &'static str {
        "battery"
    }

    fn on_step(&mut self, run: &Run) -> Option<String> {
        let sky = &run.sky;
        let now = sky.world.now();
        sky.script.scenario.charge?;
        let is_due = now.as_micros().is_multiple_of(CHARGE_PERIOD_US);
        (0..sky.count()).find_map(|i| {
            if sky.world.motion(i).landed || !is_judged(sky, i) || !sky.lives(i) {
                return None;
            }
            let is_empty = match sky.world.charge_percent(i) {
                Some(percent) => percent <= 0.0,
                None => is_due && sky.world.status(i).measured.battery?.remaining_percent? == 0,
            };
            is_empty.then(|| format!("aircraft {} at {:.1} s: empty in the air", i + 1, now.as_secs_f64()))
        })
    }
}

/// The downwash of a multicopter reaches so far below it, and so far in the plane, metres.
const WASH_DOWN_M: f64 = 15.0;
const WASH_ASIDE_M: f64 = 5.0;
/// A pass through it takes no longer: 10 m at 2 m/s.
const PASSES_WITHIN: Duration = Duration::from_secs(5);

/// No aircraft in flight stays in the downwash of another: less than 5 m away in the plane and up to 15 m below it, for longer
/// than a pass takes.
pub(super) struct Downwash {
    since: Vec<Option<Instant>>,
}

impl Downwash {
    pub(super) fn of(aircraft: usize) -> Self {
        Self { since: vec![None; aircraft * aircraft] }
    }
}

impl Rule for Downwash {
    fn name(&self) -> &'static str {
        "downwash"
    }

    fn on_step(&mut self, run: &Run) -> Option<String> {
        let (sky, now, count) = (&run.sky, run.sky.world.now(), run.sky.count());
        let flying: Vec<_> =
            (0..count).filter(|&i| !sky.world.motion(i).landed).map(|i| (i, sky.world.place(i))).collect();
        let mut found = None;
        let mut below = vec![false; count * count];
        for &(upper, high) in &flying {
            for &(lower, low) in &flying {
                let down_m = high.z - low.z;
                let is_below = down_m > 0.0
                    && down_m <= WASH_DOWN_M
                    && high.truncate().distance(low.truncate()) < WASH_ASIDE_M;
                if lower == upper || !is_below {
                    continue;
                }
                let pair = upper * count + lower;
                below[pair] = true;
                let since = *self.since[pair].get_or_insert(now);
                if now > since + PASSES_WITHIN && found.is_none() {
                    found = Some(format!(
                        "aircraft {} is {down_m:.1} m below aircraft {} for {} s at {:.1} s",
                        lower + 1,
                        upper + 1,
                        PASSES_WITHIN.as_secs(),
                        now.as_secs_f64()
                    ));
                }
            }
        }
        for (since, is_below) in self.since.iter_mut().zip(below) {
            if !is_below {
                *since = None;
            }
        }
        found
    }
}
