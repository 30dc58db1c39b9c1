//! The rule that the operator knows: an effect in flight has a cause on the page within two seconds, as a line of the log, as
//! the line of the aircraft's status, or as a check that fails.

use wingbeat_agent::{LinkState, Severity};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{Duration, Instant};

use super::Rule;
use crate::drills::run::Run;

/// From an effect to its cause, before or after.
const WITHIN: Duration = Duration::from_secs(2);

/// Period of the samples of what the page shows.
const SAMPLED_EVERY: Duration = Duration::from_secs(1);

/// An effect whose cause is still to be read.
#[derive(Clone, Copy)]
struct Effect {
    vehicle: usize,
    at: Instant,
    /// The mode that the aircraft changed to; `None` where its motors stopped above the ground.
    mode: Option<Mode>,
}

/// The status of an aircraft as the page showed it last before an effect.
#[derive(Clone, Default, PartialEq)]
struct Shown {
    /// The line of its status without numbers: a distance that changes is no cause.
    line: String,
    failed: Vec<&'static str>,
    /// The daemon does not receive its flight controller, or its guardian has it: the page says so.
    is_without: bool,
}

impl Shown {
    fn of(run: &Run, vehicle: usize) -> Self {
        let status = run.sky.world.status(vehicle);
        let line = status.detail.chars().filter(|c| !c.is_ascii_digit()).collect();
        let failed: Vec<&str> =
            status.checks.iter().filter(|check| !check.passed).map(|check| check.name).collect();
        let is_without = failed.contains(&"companion loss") || status.flight_controller.link != LinkState::Up;
        Self { line, failed, is_without }
    }

    /// Whether this status gives a cause that `before` did not.
    fn explains(&self, before: &Self) -> bool {
        self.is_without
            || (self.line != before.line && !self.line.is_empty())
            || self.failed.iter().any(|name| !before.failed.contains(name))
    }
}

/// The page gives a cause where an aircraft changes to BRAKE, RTL or LAND, and the log a warning where its motors stop above the
/// ground, within 2 s. An aircraft whose companion is dead, restarts, or has its line cut cannot, and a pilot's
/// is not asked.
pub(super) struct Known {
    modes: Vec<Option<Mode>>,
    armed: Vec<bool>,
    /// The last two statuses of each aircraft while nothing had happened to it, the older one first: the line of a status
    /// changes shortly before the mode does.
    shown: Vec<[Shown; 2]>,
    sampled_at: Instant,
    open: Vec<Effect>,
}

/// Returns whether a line of the log names a cause behind the state. Protocols log each transition, also without one.
fn names_cause(text: &str) -> bool {
    text.split_once(": ").is_some_and(|(_, cause)| !cause.trim().is_empty())
}

/// Whether an aircraft in this mode stops, returns or lands.
fn is_effect(mode: Mode) -> bool {
    matches!(mode, Mode::Brake | Mode::Rtl | Mode::Land)
}

impl Known {
    pub(super) fn of(aircraft: usize) -> Self {
        Self {
            modes: vec![None; aircraft],
            armed: vec![false; aircraft],
            shown: vec![Default::default(); aircraft],
            sampled_at: Instant::ZERO,
            open: vec![],
        }
    }

    /// Begins with an effect that an aircraft said nothing about.
    #[cfg(test)]
    pub(super) fn with_effect(aircraft: usize, vehicle: usize, at: Instant) -> Self {
        let mut known = Self::of(aircraft);
        known.open.push(Effect { vehicle, at, mode: None });
        known
    }

    /// Notes once a second what the page shows of the aircraft to which nothing has happened.
    fn sample(&mut self, run: &Run) {
        let now = run.sky.world.now();
        if now < self.sampled_at + SAMPLED_EVERY {
            return;
        }
        self.sampled_at = now;
        for vehicle in 0..run.sky.count() {
            let is_open = self.open.iter().any(|effect| effect.vehicle == vehicle);
            let has_effect = self.modes[vehicle].is_some_and(is_effect);
            if self.armed[vehicle] && !is_open && !has_effect {
                self.shown[vehicle].swap(0, 1);
                self.shown[vehicle][1] = Shown::of(run, vehicle);
            }
        }
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
        if truth.armed && is_effect(truth.mode) && before.is_some_and(|before| before != truth.mode) {
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
        self.sample(run);
        // Who holds for a moment shows it for that moment.
        let shown = &self.shown;
        self.open.retain(|effect| {
            let is_shown = || Shown::of(run, effect.vehicle).explains(&shown[effect.vehicle][0]);
            effect.mode.is_none() || !is_shown()
        });
        let is_due = |effect: &Effect| now > effect.at + WITHIN;
        let due: Vec<Effect> = self.open.iter().copied().filter(is_due).collect();
        self.open.retain(|effect| !is_due(effect));
        due.into_iter().find_map(|Effect { vehicle, at, mode }| {
            let is_pressed = |press: &crate::drills::operator::Press| {
                press.vehicle == vehicle && press.at + WITHIN >= at && press.at <= at
            };
            let mut lines = world.log().iter().rev().take_while(|line| line.at + WITHIN >= at);
            let gives_cause = |severity: Severity, text: &str| {
                severity >= Severity::Warning || mode.is_some() && names_cause(text)
            };
            let is_known = lines
                .any(|line| line.vehicle == vehicle && gives_cause(line.entry.severity, &line.entry.text))
                || mode.is_some() && run.operator.presses().iter().rev().any(is_pressed);
            (!is_known).then(|| {
                let at_s = at.as_secs_f64();
                let what = mode.map_or("its motors stop".to_owned(), |mode| format!("{mode:?}"));
                format!(
                    "aircraft {} at {at_s:.1} s: {what}, and the page gives no cause within 2 s",
                    vehicle + 1
                )
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transition_without_a_cause_explains_nothing() {
        assert!(names_cause("holding: aircraft 3 is 12 m ahead"));
        assert!(!names_cause("holding") && !names_cause("holding: "));
    }
}
