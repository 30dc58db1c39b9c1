//! The rule that the operator knows: an effect in flight has a cause in the log within two seconds.

use wingbeat_agent::Severity;
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{Duration, Instant};

use super::Rule;
use crate::drills::run::Run;

/// From an effect to its cause, before or after.
const WITHIN: Duration = Duration::from_secs(2);

/// An effect whose cause is still to be read.
#[derive(Clone, Copy)]
struct Effect {
    vehicle: usize,
    at: Instant,
    /// The mode that the aircraft changed to; `None` where its motors stopped above the ground.
    mode: Option<Mode>,
}

/// The aircraft itself logs why it changed to BRAKE, RTL or LAND, and warns where its motors stop above the ground: an event, a check
/// or a text of the autopilot, within 2 s. An aircraft whose companion is dead, restarts, or has its line cut cannot, and a pilot's
/// is not asked.
pub(super) struct Known {
    modes: Vec<Option<Mode>>,
    armed: Vec<bool>,
    open: Vec<Effect>,
}

impl Known {
    pub(super) fn of(aircraft: usize) -> Self {
        Self { modes: vec![None; aircraft], armed: vec![false; aircraft], open: vec![] }
    }

    /// Begins with an effect that an aircraft said nothing about.
    #[cfg(test)]
    pub(super) fn with_effect(aircraft: usize, vehicle: usize, at: Instant) -> Self {
        let mut known = Self::of(aircraft);
        known.open.push(Effect { vehicle, at, mode: None });
        known
    }

    fn notice(&mut self, run: &Run, vehicle: usize) {
        let (sky, at) = (&run.sky, run.sky.world.now());
        let truth = sky.world.truth(vehicle);
        let before = self.modes[vehicle].replace(truth.mode);
        let was_armed = std::mem::replace(&mut self.armed[vehicle], truth.armed);
        let struck = sky.struck[vehicle];
        let is_asked = sky.lives(vehicle)
            && at > struck.until + WITHIN
            && struck.pilot.is_none()
            && !struck.acts_unannounced
            && !sky.is_piloted(vehicle);
        if !is_asked || truth.landed {
            return;
        }
        if was_armed && !truth.armed {
            self.open.push(Effect { vehicle, at, mode: None });
        }
        let is_effect = matches!(truth.mode, Mode::Brake | Mode::Rtl | Mode::Land);
        if truth.armed && is_effect && before.is_some_and(|before| before != truth.mode) {
            self.open.push(Effect { vehicle, at, mode: Some(truth.mode) });
        }
    }
}

impl Rule for Known {
    fn name(&self) -> &'static str {
        "known"
    }

    fn on_step(&mut self, run: &Run) -> Option<String> {
        let (world, now) = (&run.sky.world, run.sky.world.now());
        for vehicle in 0..run.sky.count() {
            self.notice(run, vehicle);
        }
        let is_due = |effect: &Effect| now > effect.at + WITHIN;
        let due: Vec<Effect> = self.open.iter().copied().filter(is_due).collect();
        self.open.retain(|effect| !is_due(effect));
        due.into_iter().find_map(|Effect { vehicle, at, mode }| {
            let is_pressed = |press: &crate::drills::operator::Press| {
                press.vehicle == vehicle && press.at + WITHIN >= at && press.at <= at
            };
            let least = if mode.is_some() { Severity::Info } else { Severity::Warning };
            let mut lines = world.log().iter().rev().take_while(|line| line.at + WITHIN >= at);
            let is_known = lines.any(|line| line.vehicle == vehicle && line.entry.severity >= least)
                || mode.is_some() && run.operator.presses().iter().rev().any(is_pressed);
            (!is_known).then(|| {
                let at_s = at.as_secs_f64();
                let what = mode.map_or("its motors stop".to_owned(), |mode| format!("{mode:?}"));
                format!(
                    "aircraft {} at {at_s:.1} s: {what}, and its log says nothing within 2 s",
                    vehicle + 1
                )
            })
        })
    }
}
