//! What a plan lets go wrong in its flights: `[[fault]]`, at a time or at an event, and what an operator commands then.

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use strum::VariantArray as _;
use wingbeat_agent::{Command, StateId};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec3, Duration, Instant};
use wingbeat_sim::autopilot::Incident;
use wingbeat_sim::faults::{Direction, Fault};
use wingbeat_sim::world::{Change, World};

/// One thing that goes wrong, and when.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trouble {
    /// Seconds after the aircraft were switched on.
    pub at_s: Option<f64>,
    /// Instead: the event that brings it, the first time.
    pub when: Option<Event>,
    /// Seconds after the event.
    #[serde(default)]
    pub after_s: f64,
    /// What.
    pub inflict: Act,
}

/// What may bring trouble.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// An aircraft's protocol enters a state.
    Entered {
        /// From 1.
        aircraft: usize,
        /// As the protocol's paper names it, and the log.
        state: StateId,
        /// Only with this waypoint reached last, counted as the log does.
        reached: Option<u16>,
    },
    /// Two aircraft in flight are nearer to each other than this, over the ground.
    Nearer {
        /// Two, from 1.
        aircraft: [usize; 2],
        /// Metres.
        than_m: f64,
    },
    /// An aircraft that has received another receives nothing of it any more.
    LinkLost {
        /// The sender and the receiver, from 1.
        aircraft: [usize; 2],
        /// For so many seconds.
        for_s: f64,
    },
    /// An aircraft receives another, the first time, or again after a silence.
    LinkFound {
        /// The sender and the receiver, from 1.
        aircraft: [usize; 2],
        /// Of so many seconds at least.
        #[serde(default)]
        after_silence_s: f64,
    },
}

/// What goes wrong. Aircraft count from 1. What has `for_s` ends after so many seconds, or never.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs, reason = "named and described as the faults that they become: sim::faults::Fault")]
pub enum Act {
    CompanionDies {
        aircraft: usize,
        #[serde(default)]
        guarded: bool,
    },
    DaemonRestarts {
        aircraft: usize,
        #[serde(default)]
        guarded: bool,
        for_s: f64,
    },
    GuardianDies {
        aircraft: usize,
    },
    Falls {
        aircraft: usize,
    },
    MotorsFail {
        aircraft: usize,
    },
    RadioSilent {
        aircraft: usize,
        #[serde(default)]
        lost: Lost,
        for_s: Option<f64>,
    },
    SerialLine {
        aircraft: usize,
        #[serde(default)]
        lost: Lost,
        #[serde(default)]
        flaps_s: f64,
        for_s: Option<f64>,
    },
    AutopilotReboots {
        aircraft: usize,
    },
    PilotTakes {
        aircraft: usize,
        mode: String,
    },
    TransmitterLost {
        aircraft: usize,
        for_s: Option<f64>,
    },
    BatteryAt {
        aircraft: usize,
        percent: f64,
    },
    GnssLost {
        aircraft: usize,
        for_s: Option<f64>,
    },
    EstimateDiverges {
        aircraft: usize,
        for_s: Option<f64>,
    },
    EstimateDrifts {
        aircraft: usize,
        east_north_up_m: [f64; 3],
        within_s: f64,
        for_s: Option<f64>,
    },
    Stuck {
        aircraft: usize,
        for_s: Option<f64>,
    },
    TextsGarbled {
        aircraft: usize,
        for_s: Option<f64>,
    },
    Late {
        share: f64,
        most_s: f64,
        for_s: Option<f64>,
    },
    Doubled {
        share: f64,
        most_s: f64,
        for_s: Option<f64>,
    },
    Loss {
        share: f64,
        for_s: Option<f64>,
    },
    Bursts {
        share: f64,
        stretch_s: f64,
        for_s: Option<f64>,
    },
    Partition {
        group: Vec<usize>,
        for_s: Option<f64>,
    },
    /// Nothing: a line among the warnings of the flight.
    Note {
        text: String,
    },
    /// An operator commands these aircraft, or all.
    Operator {
        command: Command,
        #[serde(default)]
        aircraft: Vec<usize>,
    },
}

/// What of a link's two directions is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Lost {
    #[default]
    Both,
    Sent,
    Received,
}

impl From<Lost> for Direction {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Both => Self::Both,
            Lost::Sent => Self::Sent,
            Lost::Received => Self::Received,
        }
    }
}

/// Longer than any flight of a plan.
const LONGEST_S: f64 = 86_400.0;

fn within(key: &str, found: f64, range: std::ops::RangeInclusive<f64>) -> Result<()> {
    ensure!(range.contains(&found), "{key}: found {found}, expected {} to {}", range.start(), range.end());
    Ok(())
}

fn one_of(aircraft: usize, of: usize) -> Result<usize> {
    ensure!((1..=of).contains(&aircraft), "aircraft: found {aircraft}, expected 1 to {of}");
    Ok(aircraft - 1)
}

fn two_of(event: &str, [a, b]: [usize; 2], of: usize) -> Result<()> {
    for number in [a, b] {
        one_of(number, of).with_context(|| format!("when.{event}"))?;
    }
    ensure!(a != b, "when.{event}.aircraft: found {a} twice, expected two");
    Ok(())
}

fn duration(seconds: f64) -> Duration {
    Duration::from_micros((seconds * 1e6) as u64)
}

fn mode(name: &str) -> Result<Mode> {
    let names = || Mode::VARIANTS.iter().map(|mode| mode.name()).collect::<Vec<_>>().join(", ");
    let found = Mode::VARIANTS.iter().copied().find(|mode| mode.name().eq_ignore_ascii_case(name));
    found.with_context(|| format!("mode: found {name:?}, expected one of {}", names()))
}

impl Trouble {
    /// # Errors
    /// Names the key, what was found and what was expected, of `aircraft` of a flight.
    pub(crate) fn check(&self, aircraft: usize) -> Result<()> {
        within("after_s", self.after_s, 0.0..=LONGEST_S)?;
        match (&self.at_s, &self.when) {
            (Some(at_s), None) => within("at_s", *at_s, 0.0..=LONGEST_S)?,
            (None, Some(Event::Entered { aircraft: number, .. })) => drop(one_of(*number, aircraft)?),
            (None, Some(Event::Nearer { aircraft: pair, than_m })) => {
                two_of("nearer", *pair, aircraft)?;
                within("when.nearer.than_m", *than_m, 0.1..=100_000.0)?;
            }
            (None, Some(Event::LinkLost { aircraft: pair, for_s })) => {
                two_of("link-lost", *pair, aircraft)?;
                within("when.link-lost.for_s", *for_s, 0.1..=LONGEST_S)?;
            }
            (None, Some(Event::LinkFound { aircraft: pair, after_silence_s })) => {
                two_of("link-found", *pair, aircraft)?;
                within("when.link-found.after_silence_s", *after_silence_s, 0.0..=LONGEST_S)?;
            }
            _ => bail!("found both at_s and when, or neither, expected one"),
        }
        match &self.inflict {
            Act::Operator { aircraft: chosen, .. } => {
                chosen.iter().try_for_each(|number| one_of(*number, aircraft).map(drop))
            }
            Act::Note { text } => {
                ensure!(
                    (1..=200).contains(&text.chars().count()) && !text.chars().any(char::is_control),
                    "note.text: found {text:?}, expected 1 to 200 characters of one line"
                );
                Ok(())
            }
            _ => self.inflict.fault(Instant::ZERO, aircraft).map(drop),
        }
    }
}

impl Trouble {
    /// Returns whether it waits for datagrams between two aircraft to stop or to come.
    pub(crate) fn is_of_link(&self) -> bool {
        matches!(self.when, Some(Event::LinkLost { .. } | Event::LinkFound { .. }))
    }

    /// Whether the network decides when it comes.
    pub(crate) fn is_of_network(&self) -> bool {
        match &self.when {
            Some(Event::LinkLost { .. } | Event::LinkFound { .. }) => true,
            Some(Event::Entered { .. } | Event::Nearer { .. }) | None => false,
        }
    }
}

impl Act {
    /// What it does to a flight controller, its sensors, its battery or its pilot, if it is one of those.
    pub(crate) fn incident(&self) -> Option<Incident> {
        self.as_fault()?.incident()
    }

    /// Returns the fault that it is in the world, if it is one.
    pub(crate) fn as_fault(&self) -> Option<Fault> {
        // What is wrong with its numbers is said by its own check.
        self.fault(Instant::ZERO, usize::MAX).ok()?
    }

    /// The aircraft whose companion ends, from 1.
    pub(crate) fn companion(&self) -> Option<usize> {
        match self {
            Self::CompanionDies { aircraft, .. }
            | Self::DaemonRestarts { aircraft, .. }
            | Self::GuardianDies { aircraft } => Some(*aircraft),
            _ => None,
        }
    }

    /// What it is in the world, from then on; nothing of a command.
    fn fault(&self, now: Instant, of: usize) -> Result<Option<Fault>> {
        let end = |for_s: &Option<f64>| match for_s {
            Some(for_s) => within("for_s", *for_s, 0.0..=LONGEST_S).map(|()| now + duration(*for_s)),
            None => Ok(Instant::NEVER),
        };
        let share_of = |share: &f64| within("share", *share, 0.0..=1.0).map(|()| *share);
        let short = |key: &str, seconds: &f64| within(key, *seconds, 0.0..=60.0).map(|()| duration(*seconds));
        Ok(Some(match self {
            Self::CompanionDies { aircraft, guarded } => {
                Fault::CompanionDies { vehicle: one_of(*aircraft, of)?, guarded: *guarded }
            }
            Self::DaemonRestarts { aircraft, guarded, for_s } => Fault::DaemonRestarts {
                vehicle: one_of(*aircraft, of)?,
                guarded: *guarded,
                until: end(&Some(*for_s))?,
            },
            Self::GuardianDies { aircraft } => Fault::GuardianDies { vehicle: one_of(*aircraft, of)? },
            Self::Falls { aircraft } => Fault::Falls { vehicle: one_of(*aircraft, of)? },
            Self::MotorsFail { aircraft } => Fault::MotorsFail { vehicle: one_of(*aircraft, of)? },
            Self::RadioSilent { aircraft, lost, for_s } => Fault::RadioSilent {
                vehicle: one_of(*aircraft, of)?,
                lost: (*lost).into(),
                until: end(for_s)?,
            },
            Self::SerialLine { aircraft, lost, flaps_s, for_s } => Fault::SerialLine {
                vehicle: one_of(*aircraft, of)?,
                lost: (*lost).into(),
                flaps: short("flaps_s", flaps_s)?,
                until: end(for_s)?,
            },
            Self::AutopilotReboots { aircraft } => {
                Fault::AutopilotReboots { vehicle: one_of(*aircraft, of)? }
            }
            Self::PilotTakes { aircraft, mode: name } => {
                Fault::PilotTakes { vehicle: one_of(*aircraft, of)?, mode: mode(name)? }
            }
            Self::TransmitterLost { aircraft, for_s } => {
                Fault::TransmitterLost { vehicle: one_of(*aircraft, of)?, until: end(for_s)? }
            }
            Self::BatteryAt { aircraft, percent } => {
                within("percent", *percent, 0.0..=100.0)?;
                Fault::BatteryAt { vehicle: one_of(*aircraft, of)?, percent: *percent }
            }
            Self::GnssLost { aircraft, for_s } => {
                Fault::GnssLost { vehicle: one_of(*aircraft, of)?, until: end(for_s)? }
            }
            Self::EstimateDiverges { aircraft, for_s } => {
                Fault::EstimateDiverges { vehicle: one_of(*aircraft, of)?, until: end(for_s)? }
            }
            Self::EstimateDrifts { aircraft, east_north_up_m, within_s, for_s } => {
                let offset_m = DVec3::from_array(*east_north_up_m);
                within("east_north_up_m", offset_m.length(), 0.0..=10_000.0)?;
                within("within_s", *within_s, 0.0..=LONGEST_S)?;
                let (vehicle, within) = (one_of(*aircraft, of)?, duration(*within_s));
                Fault::EstimateDrifts { vehicle, offset_m, within, until: end(for_s)? }
            }
            Self::Stuck { aircraft, for_s } => {
                Fault::Stuck { vehicle: one_of(*aircraft, of)?, until: end(for_s)? }
            }
            Self::TextsGarbled { aircraft, for_s } => {
                Fault::TextsGarbled { vehicle: one_of(*aircraft, of)?, until: end(for_s)? }
            }
            Self::Late { share, most_s, for_s } => {
                Fault::Late { share: share_of(share)?, most: short("most_s", most_s)?, until: end(for_s)? }
            }
            Self::Doubled { share, most_s, for_s } => {
                Fault::Doubled { share: share_of(share)?, most: short("most_s", most_s)?, until: end(for_s)? }
            }
            Self::Loss { share, for_s } => Fault::Loss { share: share_of(share)?, until: end(for_s)? },
            Self::Bursts { share, stretch_s, for_s } => Fault::Bursts {
                share: share_of(share)?,
                stretch: short("stretch_s", stretch_s)?,
                until: end(for_s)?,
            },
            Self::Partition { group, for_s } => {
                let mut bits = 0;
                for number in group {
                    bits |= 1_u128 << one_of(*number, of)?;
                }
                Fault::Partition { group: bits, until: end(for_s)? }
            }
            Self::Operator { .. } | Self::Note { .. } => return Ok(None),
        }))
    }
}

/// The trouble of one flight under way.
pub(crate) struct Script {
    list: Vec<Trouble>,
    /// When each is due, once that is known.
    due: Vec<Option<Instant>>,
    done: Vec<bool>,
    /// What was inflicted, a line each.
    pub(crate) story: Vec<String>,
}

impl Script {
    pub(crate) fn new(list: &[Trouble]) -> Self {
        let due = list.iter().map(|trouble| trouble.at_s.map(|at_s| Instant::ZERO + duration(at_s)));
        Self { due: due.collect(), done: vec![false; list.len()], list: list.to_vec(), story: vec![] }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether nothing that is due is still to come.
    pub(crate) fn is_over(&self) -> bool {
        self.due.iter().zip(&self.done).all(|(due, done)| due.is_none() || *done)
    }

    /// Lets happen what is due before `next`, when this is called again.
    pub(crate) fn inflict(&mut self, world: &mut World, next: Instant) {
        if self.is_empty() {
            return;
        }
        let changes = world.take_changes();
        for index in 0..self.list.len() {
            let trouble = &self.list[index];
            if let (None, Some(event)) = (self.due[index], &trouble.when)
                && let Some(came) = event.has_come(world, &changes)
            {
                self.due[index] = Some(came + duration(trouble.after_s));
            }
            let Some(due) = self.due[index].filter(|due| *due < next && !self.done[index]) else { continue };
            self.done[index] = true;
            let at = due.max(world.now());
            let what = match &trouble.inflict {
                Act::Operator { command, aircraft } => {
                    let chosen: Vec<usize> =
                        if aircraft.is_empty() { (1..=world.count()).collect() } else { aircraft.clone() };
                    let id = format!("fault {}", index + 1);
                    let replies = chosen
                        .iter()
                        .map(|number| format!("{number}: {:?}", world.command(number - 1, &id, *command)));
                    format!("operator commands {command:?}: {}", replies.collect::<Vec<_>>().join(", "))
                }
                Act::Note { text } => text.clone(),
                act => match act.fault(at, world.count()) {
                    Ok(Some(fault)) => {
                        world.inflict(at, fault);
                        format!("{act:?}")
                    }
                    // Both were checked when the plan was read.
                    Ok(None) => continue,
                    Err(error) => format!("{error:#}"),
                },
            };
            self.story.push(format!("{:9.3} s fault {}: {what}", at.as_secs_f64(), index + 1));
        }
    }
}

impl Event {
    /// When it came, if it has.
    fn has_come(&self, world: &mut World, changes: &[Change]) -> Option<Instant> {
        let now = world.now();
        match *self {
            Self::Entered { aircraft, state, reached } => {
                let is_it = |change: &&Change| {
                    change.vehicle + 1 == aircraft
                        && change.state == state
                        && reached.is_none_or(|reached| change.reached == Some(reached))
                };
                changes.iter().find(is_it).map(|_| now)
            }
            Self::Nearer { aircraft: [a, b], than_m } => {
                let [a, b] = [a, b].map(|number| world.truth(number - 1));
                let local = |position| world.frame().to_local(position).truncate();
                let is_near = local(a.position).distance(local(b.position)) < than_m;
                (!a.landed && !b.landed && is_near).then_some(now)
            }
            Self::LinkLost { aircraft: [from, to], for_s } => {
                let lost = world.heard(from - 1, to - 1)?.last + duration(for_s);
                (lost <= now).then_some(lost)
            }
            Self::LinkFound { aircraft: [from, to], after_silence_s } => {
                let heard = world.heard(from - 1, to - 1)?;
                (heard.silence >= duration(after_silence_s)).then_some(heard.last)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::{FlightResult, fly};
    use crate::scenario::{Scenario, Task, staircase};

    #[derive(Deserialize)]
    struct Section {
        fault: Vec<Trouble>,
    }

    fn read(text: &str) -> Vec<Trouble> {
        toml::from_str::<Section>(text).unwrap().fault
    }

    fn flown(text: &str) -> FlightResult {
        let mut scenario = Scenario::muscop("stairs", staircase(4, 600.0, 10.0));
        let Task::Swarm(swarm) = &mut scenario.task else { panic!("a swarm") };
        swarm.aircraft = 3;
        scenario.trouble = read(text);
        scenario.check().unwrap();
        fly(&scenario, 5, Duration::from_secs(900)).unwrap()
    }

    fn at_s(line: &str) -> f64 {
        line.trim().split(' ').next().unwrap().parse().unwrap()
    }

    #[test]
    fn an_event_brings_a_fault_and_the_others_complete_their_flight() {
        let flight = flown(
            r#"
            [[fault]]
            when = { entered = { aircraft = 1, state = "WaypointReached", reached = 2 } }
            after_s = 1.5
            inflict = { companion-dies = { aircraft = 3, guarded = true } }
            [[fault]]
            at_s = 30
            inflict = { loss = { share = 0.2, for_s = 20 } }
            "#,
        );
        assert_eq!(flight.aircraft.iter().map(|a| a.completed).collect::<Vec<_>>(), [true, true, false]);
        assert!(flight.succeeded(), "its guardian lands it: {:?}", flight.warnings);
        let story = &flight.warnings[..2];
        assert_eq!(at_s(&story[0]), 30.0, "{story:?}");
        assert!(
            story[0].contains("fault 2: Loss") && story[1].contains("fault 1: CompanionDies"),
            "{story:?}"
        );
        assert!(at_s(&story[1]) > 60.0, "{story:?}");
    }

    #[test]
    fn what_a_plan_inflicts_has_its_effect() {
        let calm = flown("fault = []");
        assert!(calm.succeeded() && !calm.is_disturbed);
        let land = flown("[[fault]]\nat_s = 70\ninflict = { operator = { command = \"land\" } }");
        assert!(land.warnings[0].contains("operator commands Land: 1: Accepted, 2: Accepted, 3: Accepted"));
        assert!(land.duration < calm.duration && land.succeeded() && !land.aircraft[0].completed);
        // A pilot who takes an aircraft and lands it.
        let piloted = flown(
            r#"
            [[fault]]
            when = { nearer = { aircraft = [1, 2], than_m = 60 } }
            after_s = 30
            inflict = { pilot-takes = { aircraft = 2, mode = "loiter" } }
            [[fault]]
            at_s = 150
            inflict = { pilot-takes = { aircraft = 2, mode = "LAND" } }
            "#,
        );
        assert_eq!(piloted.aircraft.iter().map(|a| a.completed).collect::<Vec<_>>(), [true, false, true]);
        assert!(piloted.succeeded(), "{:?}", piloted.warnings);
        // One that stays in the air is no success.
        let hovers =
            flown("[[fault]]\nat_s = 70\ninflict = { pilot-takes = { aircraft = 2, mode = \"loiter\" } }");
        assert!(!hovers.succeeded() && !hovers.aircraft[1].is_down, "{:?}", hovers.warnings);
    }

    #[test]
    fn a_link_that_breaks_and_comes_back_calls() {
        let flight = flown(
            r#"
            [[fault]]
            at_s = 70
            inflict = { partition = { group = [3], for_s = 12 } }
            [[fault]]
            when = { link-found = { aircraft = [1, 3] } }
            inflict = { note = { text = "the third is received" } }
            [[fault]]
            when = { link-lost = { aircraft = [1, 3], for_s = 4 } }
            inflict = { note = { text = "the third lost the first" } }
            [[fault]]
            when = { link-lost = { aircraft = [1, 2], for_s = 4 } }
            inflict = { note = { text = "never while both fly" } }
            [[fault]]
            when = { link-found = { aircraft = [1, 3], after_silence_s = 5 } }
            after_s = 1
            inflict = { operator = { command = "land" } }
            "#,
        );
        let lines: Vec<&String> = flight.warnings.iter().filter(|line| line.contains(" fault ")).collect();
        let at = |text: &str| lines.iter().find(|line| line.contains(text)).map(|line| at_s(line));
        // The first datagram of all comes with the first that sends.
        assert!(at("is received").is_some_and(|at_s| at_s < 20.0), "{lines:?}");
        let lost_s = at("the third lost the first").unwrap();
        assert!((73.6..=74.4).contains(&lost_s), "{lines:?}");
        // Back after 12 s, at the next datagram, and a second more.
        let landed_s = at("operator commands Land").unwrap();
        assert!((83.0..=84.5).contains(&landed_s), "{lines:?}");
        assert!(at("never while").is_none_or(|at_s| at_s > landed_s), "{lines:?}");
    }

    #[test]
    fn a_bad_fault_is_named() {
        for (text, message) in [
            ("at_s = 1\ninflict = { falls = { aircraft = 4 } }", "aircraft: found 4, expected 1 to 3"),
            ("inflict = { falls = { aircraft = 1 } }", "found both at_s and when, or neither, expected one"),
            ("at_s = -1\ninflict = { falls = { aircraft = 1 } }", "at_s: found -1, expected 0 to 86400"),
            ("at_s = 1\ninflict = { loss = { share = 1.5 } }", "share: found 1.5, expected 0 to 1"),
            (
                "at_s = 1\ninflict = { pilot-takes = { aircraft = 1, mode = \"fast\" } }",
                "mode: found \"fast\", expected one of STABILIZE",
            ),
            ("at_s = 1\ninflict = { partition = { group = [1, 9] } }", "aircraft: found 9"),
            (
                "when = { nearer = { aircraft = [2, 2], than_m = 9 } }\ninflict = { falls = { aircraft = 1 } }",
                "when.nearer.aircraft: found 2 twice",
            ),
            (
                "when = { link-lost = { aircraft = [1, 4], for_s = 2 } }\ninflict = { falls = { aircraft = 1 } }",
                "when.link-lost: aircraft: found 4, expected 1 to 3",
            ),
            (
                "when = { link-lost = { aircraft = [1, 2], for_s = 0 } }\ninflict = { falls = { aircraft = 1 } }",
                "when.link-lost.for_s: found 0, expected 0.1 to 86400",
            ),
            (
                "at_s = 1\ninflict = { note = { text = \"\" } }",
                "note.text: found \"\", expected 1 to 200 characters",
            ),
        ] {
            let trouble = read(&format!("[[fault]]\n{text}")).remove(0);
            let found = format!("{:#}", trouble.check(3).unwrap_err());
            assert!(found.contains(message), "{text}: {found}");
        }
        for (text, message) in [
            (
                "at_s = 1\ninflict = { falls = { aircraft = 1, soon = true } }",
                "unexpected keys in table: soon",
            ),
            ("at_s = 1\ninflict = { fall = { aircraft = 1 } }", "unknown variant `fall`, expected one of"),
            (
                "when = { entered = { aircraft = 1, state = \"Flown\" } }\ninflict = { falls = { aircraft = 1 } }",
                "unknown variant `Flown`",
            ),
        ] {
            let found = toml::from_str::<Section>(&format!("[[fault]]\n{text}")).err().unwrap().to_string();
            assert!(found.contains(message), "{text}: {found}");
        }
    }
}
