//! Why a flight failed, in words for people: an autopilot that reports a crash, an aircraft that is not down, a *Setup* that was
//! refused. A figure that looks good does not hide them.

use wingbeat_geo::Duration;
use wingbeat_sim::world::World;

use crate::scenario::Scenario;
use crate::trouble::Act;

/// Agents log the texts of their flight controllers behind this.
const OF_AUTOPILOT: &str = "flight controller: ";
/// Texts, in lower case, with which ArduCopter 3.5 to 4.x reports that it lost the aircraft or its estimate. Each is the
/// beginning of a line.
const GRAVE: [&str; 4] = ["crash:", "ekf failsafe", "potential thrust loss", "thrust loss"];
/// The end of a line that takes one of these back.
const TAKEN_BACK: &str = "cleared";

/// Returns the text of a line that an agent logged, if an autopilot says in it that it crashed or lost its estimate.
pub fn grave(line: &str) -> Option<&str> {
    let text = line.strip_prefix(OF_AUTOPILOT)?;
    let lower = text.to_ascii_lowercase();
    let is_grave = GRAVE.iter().any(|begin| lower.starts_with(begin));
    (is_grave && !lower.trim_end().ends_with(TAKEN_BACK)).then_some(text)
}

/// The causes for which a flight fails.
#[derive(Default)]
pub(crate) struct Causes {
    lines: Vec<String>,
}

impl Causes {
    /// Notes that an aircraft took no *Setup*.
    pub(crate) fn refused(&mut self, index: usize, why: &impl std::fmt::Display) {
        self.lines.push(format!("aircraft {} took no Setup: {why}", index + 1));
    }

    /// Takes what autopilots reported. The text of an autopilot to which the plan itself does something is expected.
    pub(crate) fn hear(&mut self, world: &World, scenario: &Scenario) {
        let is_expected = |index: usize| {
            scenario.trouble.iter().any(|trouble| trouble.inflict.disturbed_autopilot() == Some(index))
        };
        for logged in world.log().iter().filter(|logged| !is_expected(logged.vehicle)) {
            let Some(text) = grave(&logged.entry.text) else { continue };
            let line = format!("aircraft {}: its autopilot says \"{text}\"", logged.vehicle + 1);
            // One text is repeated each second.
            if !self.lines.iter().any(|known| known.starts_with(&line)) {
                self.lines.push(format!("{line} at {:.1} s", logged.at.as_secs_f64()));
            }
        }
    }

    /// Notes the aircraft that did not come to their end. After a refused *Setup* none flew.
    pub(crate) fn judge_ends(&mut self, world: &World, is_disturbed: bool, after: Duration) {
        if !self.lines.is_empty() {
            return;
        }
        for (index, figures) in world.observer().aircraft().iter().enumerate() {
            if figures.completed || is_disturbed && figures.is_down {
                continue;
            }
            let truth = world.truth(index);
            let state = match world.logic(index) {
                Some(_) => "flown by a script".to_owned(),
                None => format!("state {}", world.status(index).state),
            };
            self.lines.push(format!(
                "aircraft {}: {state}, mode {}, {}, {} after {:.0} s, expected on the ground, disarmed, with its task done",
                index + 1,
                truth.mode.name(),
                if truth.armed { "armed" } else { "disarmed" },
                if truth.landed { "on the ground" } else { "in the air" },
                after.as_secs_f64()
            ));
        }
    }

    /// Returns one line for each cause.
    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines
    }
}

impl Act {
    /// Returns the index of the aircraft whose autopilot, sensors, battery or pilot this concerns.
    pub(crate) fn disturbed_autopilot(&self) -> Option<usize> {
        let fault = self.as_fault()?;
        fault.incident()?;
        fault.vehicle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{OwnMission, OwnTask, Task, Variant, route};
    use wingbeat_autopilot::codec::{MavHeader, encode_v1};
    use wingbeat_autopilot::dialect::{MavMessage, MavSeverity, STATUSTEXT_DATA};
    use wingbeat_geo::{DVec3, Frame, Instant};
    use wingbeat_sim::autopilot::{Autopilot, Incident};
    use wingbeat_sim::flight_controller::{FlightController, RcChannels, Truth};

    /// A flight controller that reports a crash three seconds after it was switched on.
    #[derive(Debug)]
    struct Crashing(FlightController);

    impl Autopilot for Crashing {
        fn receive(&mut self, bytes: &[u8]) {
            self.0.receive(bytes);
        }
        fn begin(&mut self, until: Instant) {
            Autopilot::begin(&mut self.0, until);
        }
        fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
            Autopilot::finish(&mut self.0, out)?;
            let next_ms = self.poll_timeout().as_millis();
            if (3_000..3_020).contains(&next_ms) {
                let message = MavMessage::STATUSTEXT(STATUSTEXT_DATA {
                    severity: MavSeverity::MAV_SEVERITY_EMERGENCY,
                    text: "Crash: Disarming".into(),
                    ..Default::default()
                });
                let header = MavHeader { system_id: 1, component_id: 1, sequence: 0 };
                let mut bytes = heapless::Vec::<u8, 300>::new();
                encode_v1(header, &message, &mut bytes).unwrap();
                out.extend_from_slice(&bytes);
            }
            Ok(())
        }
        fn poll_timeout(&self) -> Instant {
            self.0.poll_timeout()
        }
        fn truth(&self) -> Truth {
            self.0.truth()
        }
        fn place_in(&self, frame: &Frame) -> DVec3 {
            Autopilot::place_in(&self.0, frame)
        }
        fn set_rc(&mut self, channels: Option<RcChannels>) {
            self.0.set_rc(channels);
        }
        fn suffer(&mut self, incident: Incident) -> Result<(), String> {
            Autopilot::suffer(&mut self.0, incident)
        }
    }

    #[test]
    fn a_crash_that_an_autopilot_reports_is_a_cause_unless_the_plan_brought_it_down() {
        let points = route(&[[0.0, 0.0], [50.0, 0.0]], 10.0);
        let missions = vec![OwnMission { speed_m_s: 5.0, points, start: None, leaves_at_s: Vec::new() }];
        let mut scenario = Scenario::new("one", Task::Own(OwnTask { variant: Variant::Off, missions }));
        let autopilot: Box<dyn Autopilot> = Box::new(Crashing(scenario.controller(0, 1)));
        let vehicles = vec![(scenario.agent(0, 1).unwrap(), autopilot)];
        let mut world = World::new(scenario.origin, vehicles, scenario.radio(1).unwrap(), 5.0);
        world.run_until(Instant::from_secs(5));
        let heard = |scenario: &Scenario| {
            let mut causes = Causes::default();
            causes.hear(&world, scenario);
            causes.into_lines()
        };
        let lines = heard(&scenario);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].starts_with("aircraft 1: its autopilot says \"Crash: Disarming\" at 3."),
            "{lines:?}"
        );
        let fault = "at_s = 1\ninflict = { motors-fail = { aircraft = 1 } }";
        scenario.trouble = vec![toml::from_str(fault).unwrap()];
        assert!(heard(&scenario).is_empty());
    }

    #[test]
    fn an_autopilot_that_reports_a_crash_or_a_lost_estimate_is_understood_in_each_version() {
        for (line, is_grave) in [
            ("flight controller: Crash: Disarming", true),
            ("flight controller: Crash: Disarming: AngErr=31>30, Accel=0.1<3.0", true),
            ("flight controller: EKF Failsafe: changed to LAND Mode", true),
            ("flight controller: EKF failsafe - changed to LAND Mode", true),
            ("flight controller: Potential Thrust Loss (1)", true),
            ("flight controller: EKF Failsafe Cleared", false),
            ("flight controller: Disarming motors", false),
            ("flight controller: PreArm: crash dump data detected", false),
            ("a pilot crashes", false),
            ("Crash: Disarming", false),
        ] {
            assert_eq!(grave(line).is_some(), is_grave, "{line}");
        }
    }
}
