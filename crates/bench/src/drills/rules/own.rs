//! The rule of aircraft on missions of their own that were ordered home.

use wingbeat_agent::{Command, StateId};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{Duration, Instant};

use super::Rule;
use crate::drills::run::Run;

/// What is measured of a voltage differs by less from what was judged, volts.
const VOLTAGE_WITHIN_V: f64 = 0.2;
/// So long after its reason was logged a mode has changed.
const SHOWS_WITHIN: Duration = Duration::from_secs(3);
/// So long after a fault an order may fail because of it.
const FAILS_WITHIN: Duration = Duration::from_secs(60);

/// One that avoids others on its way home comes down there: it lands elsewhere only where that is asked of it.
pub(super) struct Home {
    /// Since when each is on its way, and has not landed elsewhere.
    since: Vec<Option<Instant>>,
}

impl Home {
    pub(super) fn of(aircraft: usize) -> Self {
        Self { since: vec![None; aircraft] }
    }
}

impl Rule for Home {
    fn name(&self) -> &'static str {
        "home"
    }

    fn on_step(&mut self, run: &Run) -> Option<String> {
        let sky = &run.sky;
        (0..sky.count()).find_map(|i| {
            let (view, mode) = (sky.world.agent_of(i).view(), sky.world.truth(i).mode);
            if view.is_returning && self.since[i].is_none() {
                self.since[i] = Some(sky.world.now());
            }
            let since = self.since[i].filter(|_| mode == Mode::Land)?;
            self.since[i] = None;
            let (status, struck) = (sky.world.status(i), sky.struck[i]);
            // A failed order, too, makes it land.
            let fails = struck.until > Instant::ZERO && struck.until + FAILS_WITHIN > since;
            let is_struck = struck.acts_unannounced || !sky.lives(i) || fails;
            let is_anothers = struck.pilot.is_some() || is_struck || !status.engaged;
            let presses = run.operator.presses().iter();
            let is_asked = presses
                .rev()
                .take_while(|press| press.at >= since)
                .any(|press| press.vehicle == i && press.command == Command::Land);
            // A conflict that was not solved for 120 s.
            let is_published = view.state == StateId::EmergencyLand;
            let voltage_v = status.measured.battery.map_or(f64::INFINITY, |battery| battery.voltage_v);
            let least_v = f64::from(sky.script.scenario.reserve.land_below_mv) * 1e-3 + VOLTAGE_WITHIN_V;
            let now = sky.world.now();
            let mut last = sky.world.log().iter().rev().take_while(|line| line.at + SHOWS_WITHIN >= now);
            let at_home_low =
                last.any(|line| line.vehicle == i && line.entry.text.contains("it would be home below"));
            let is_low = voltage_v < least_v || at_home_low;
            (!(is_anothers || is_asked || is_published || is_low)).then(|| {
                let at_s = now.as_secs_f64();
                format!(
                    "aircraft {} lands on its way home at {at_s:.1} s: {}",
                    i + 1,
                    sky.describe(|j| i == j)
                )
            })
        })
    }
}
