//! What a plan varies of the aircraft's own configuration: any key of the protocols' sections, as the daemon's file
//! has them, and the known defects of the reference program, which no daemon can be configured with.
//!
//! ```toml
//! [vary]
//! "mbcap.beacon_period_ms" = [100, 200, 400]
//! "defects.last_scanned" = [false, true]
//! ```
//!
//! Every value of one axis is flown with every value of the others. Names, types and limits are those of the daemon:
//! the sections are deserialized by the same types, and the agent judges the numbers.

use std::fmt;

use anyhow::{Result, anyhow, bail, ensure};
use serde::Deserialize;
use wingbeat_agent::Coordination;
use wingbeat_onboard::config::{Choice, FollowMe, Mbcap, Mission, Muscop, ProtocolKeys, Sweep};
use wingbeat_protocol::mbcap::config::{AsideTests, CurveFit};

use crate::scenario::{Scenario, Task};

/// Keys of the daemon's file that a plan sets by a key of its own, with that key.
const PLAN_SAYS: [(&str, &str); 14] = [
    ("muscop.master", "the first aircraft"),
    ("muscop.aircraft", "vary.size"),
    ("muscop.alone", "vary.size"),
    ("muscop.accepts_close", "swarm.accepts_close"),
    ("muscop.formation", "vary.formation"),
    ("muscop.formation_file", "swarm.formation_file"),
    ("follow_me.leader", "the first aircraft"),
    ("follow_me.aircraft", "follow.series"),
    ("follow_me.formation", "follow.series"),
    ("follow_me.formation_file", "follow.series"),
    ("follow_me.accepts_close", "every distance is flown"),
    ("sweep.aircraft", "own.flight"),
    ("sweep.strip", "own.flight"),
    ("mbcap.variant", "own.variants"),
];

/// One value of one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// `section.key`.
    pub key: String,
    /// The value of the varied key in this row, as the plan states it.
    pub value: toml::Value,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.key, self.value)
    }
}

/// What the aircraft of one flight are configured with in addition to its task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// One value of each axis.
    pub named: Vec<Setting>,
    /// A scenario is passed by value, and few have any.
    sections: Box<Sections>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Sections {
    mission: Mission,
    sweep: Sweep,
    mbcap: Mbcap,
    muscop: Muscop,
    follow_me: FollowMe,
    defects: Defects,
}

/// Known defects of the reference program (`docs/protocols/mbcap.md`, *Where the sources disagree*).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Defects {
    /// Transition d of MBCAP tests the state of the beacon that was scanned last.
    last_scanned: Option<bool>,
    /// The 5 m/s row of MBCAP's curve table has a plus where all others have a minus.
    curve_sign: Option<bool>,
}

/// The axes of a plan: the lists in `[vary]`, in addition to its own keys.
///
/// # Errors
/// Names the axis, what was found and what was expected.
pub fn combinations(axes: &toml::Table) -> Result<Vec<Settings>> {
    let mut lists: Vec<(String, &[toml::Value])> = Vec::new();
    for (name, value) in axes {
        match value {
            // `mbcap.beacon_period_ms = [...]` without quotes.
            toml::Value::Table(section) => {
                for (key, value) in section {
                    lists.push((format!("{name}.{key}"), values(&format!("{name}.{key}"), value)?));
                }
            }
            value => lists.push((name.clone(), values(name, value)?)),
        }
    }
    let mut all = vec![Settings::default()];
    for (key, values) in lists {
        ensure!(
            key.contains('.'),
            "vary.{key}: unknown, expected channel, formation, size or \"SECTION.KEY\" of the daemon's file"
        );
        if let Some((_, instead)) = PLAN_SAYS.iter().find(|(fixed, _)| *fixed == key) {
            bail!("vary.{key}: found a key that the plan sets by its own key, expected: {instead}");
        }
        let mut with = Vec::new();
        for settings in &all {
            for value in values {
                with.push(settings.with(Setting { key: key.clone(), value: value.clone() })?);
            }
        }
        all = with;
    }
    Ok(all)
}

fn values<'a>(name: &str, value: &'a toml::Value) -> Result<&'a [toml::Value]> {
    let list = value.as_array().map(Vec::as_slice);
    list.filter(|values| !values.is_empty())
        .ok_or_else(|| anyhow!("vary.{name}: found {value}, expected a list of one or more values"))
}

impl Settings {
    fn with(&self, setting: Setting) -> Result<Self> {
        let mut named = self.named.clone();
        named.push(setting.clone());
        let mut table = toml::Table::new();
        for Setting { key, value } in &named {
            let (section, name) = key.split_once('.').unwrap_or(("", key));
            let section = table.entry(section).or_insert_with(|| toml::Table::new().into());
            if let toml::Value::Table(section) = section {
                section.insert(name.to_owned(), value.clone());
            }
        }
        let sections = table.try_into().map_err(|error: toml::de::Error| {
            // The library's message lists what is expected.
            let message = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
            anyhow!("vary.{}: found {}: {message}", setting.key, setting.value)
        })?;
        Ok(Self { named, sections: Box::new(sections) })
    }

    /// For the name of a flight: empty, or `, mbcap.beacon_period_ms = 100`.
    pub fn suffix(&self) -> String {
        self.named.iter().map(|setting| format!(", {setting}")).collect()
    }

    /// The flight with these settings. What its task describes changes there, so that the tables show it.
    #[must_use]
    pub fn fly(mut self, mut scenario: Scenario) -> Scenario {
        let Sections { mission, mbcap, muscop, follow_me, .. } = &mut *self.sections;
        match &mut scenario.task {
            Task::Swarm(task) => {
                take(&mut task.distance_m, &mut muscop.distance_m);
                take(&mut task.landing_distance_m, &mut muscop.landing_distance_m);
                take(&mut task.arrival_period, &mut muscop.arrival_period_ms);
                task.landing = muscop.landing.take().map_or(task.landing, |Choice(landing)| landing);
            }
            Task::Follow(task) => {
                take(&mut task.distance_m, &mut follow_me.distance_m);
                take(&mut task.height_m, &mut follow_me.height_m);
                take(&mut task.refresh, &mut follow_me.refresh_ms);
                take(&mut task.turn_m_s, &mut follow_me.turn_m_s);
                take(&mut task.follows_again, &mut follow_me.follows_again);
                task.leader_lost = follow_me.leader_lost.take().map_or(task.leader_lost, |Choice(lost)| lost);
            }
            Task::Own(task) => {
                let speed_m_s =
                    if task.variant.avoids() { mbcap.planned_speed_m_s } else { mission.planned_speed_m_s };
                for mission in &mut task.missions {
                    mission.speed_m_s = speed_m_s.unwrap_or(mission.speed_m_s);
                }
            }
        }
        scenario.settings = self;
        scenario
    }

    /// Whether an axis means something to the aircraft of a flight.
    pub fn concerns(key: &str, coordination: &Coordination) -> bool {
        let section = key.split('.').next().unwrap_or(key);
        match coordination {
            Coordination::Sweep(_) => ["sweep", "mission"].contains(&section),
            Coordination::Mbcap(_) => ["mbcap", "defects"].contains(&section),
            Coordination::Mission(_) | Coordination::Muscop(_) | Coordination::FollowMe(_) => {
                section == coordination.section()
            }
        }
    }

    /// A key that is set and that the variant of the flight does not have.
    pub fn key_of_other_variant(&self, coordination: &Coordination) -> Option<&'static str> {
        match coordination {
            Coordination::Mbcap(config) => self.sections.mbcap.key_of_other_variant(config),
            Coordination::Mission(_)
            | Coordination::Muscop(_)
            | Coordination::FollowMe(_)
            | Coordination::Sweep(_) => None,
        }
    }

    /// Overwrites what is set.
    pub fn apply(&self, coordination: &mut Coordination) {
        let Sections { mission, sweep, mbcap, muscop, follow_me, defects } = (*self.sections).clone();
        ProtocolKeys { mission, sweep, mbcap, muscop, follow_me }.apply(coordination);
        if let Coordination::Mbcap(config) = coordination {
            if let Some(last_scanned) = defects.last_scanned {
                config.aside_tests = if last_scanned { AsideTests::LastScanned } else { AsideTests::Avoided };
            }
            if let (Some(curve_sign), Some(curves)) = (defects.curve_sign, &mut config.curves) {
                *curves = if curve_sign { CurveFit::AsCoded } else { CurveFit::Corrected };
            }
        }
    }
}

/// Moves what is set into the task.
fn take<T, V: Into<T>>(target: &mut T, set: &mut Option<V>) {
    if let Some(value) = set.take() {
        *target = value.into();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use wingbeat_onboard::config::schema;

    use super::*;
    use crate::flight::{FlightResult, fly};
    use crate::plan::Plan;

    fn axes(text: &str) -> Result<Vec<Settings>> {
        combinations(&text.parse::<toml::Table>().unwrap())
    }

    fn plan(name: &str) -> (Plan, &'static Path) {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/plans"));
        (Plan::read(&folder.join(name)).unwrap(), folder)
    }

    /// A value that no default has.
    fn other_value(key: &str) -> toml::Value {
        match key.split('.').next_back().unwrap() {
            "brake" => "published".into(),
            "take_off" => "simultaneous".into(),
            "landing" if key.starts_with("muscop") => "sequential".into(),
            "landing" => "formation".into(),
            "leader_lost" => "land".into(),
            "follows_again" => false.into(),
            "beacons_per_prediction" => 7.into(),
            name if name.ends_with("_ms") => 4_321.into(),
            _ => 4.321.into(),
        }
    }

    #[test]
    fn every_key_of_the_daemon_s_sections_is_an_axis_or_set_by_the_plan() {
        let scenarios: Vec<Scenario> =
            ["survey.toml", "mbcap-pairs.toml", "sweep.toml", "followme-sitl.toml"]
                .into_iter()
                .flat_map(|name| {
                    let (plan, folder) = plan(name);
                    plan.scenarios(folder, 1).unwrap()
                })
                .collect();
        let keys = schema::keys::<ProtocolKeys>();
        assert!(keys.len() > 60, "{keys:?}");
        for key in keys {
            if PLAN_SAYS.iter().any(|(fixed, _)| *fixed == key) {
                continue;
            }
            let axis = toml::Table::from_iter([(key.clone(), vec![other_value(&key)].into())]);
            let settings = combinations(&axis).unwrap().remove(0);
            let changed = scenarios.iter().filter(|scenario| {
                let with = settings.clone().fly((*scenario).clone());
                let (old, new) = (scenario.agent_config(0).coordination, with.agent_config(0).coordination);
                assert!(old == new || Settings::concerns(&key, &old), "{key} changed {}", old.section());
                old != new
            });
            assert!(changed.count() > 0, "{key}: found no aircraft that it changes");
        }
        for (fixed, _) in PLAN_SAYS {
            assert!(schema::keys::<ProtocolKeys>().iter().any(|key| key == fixed), "{fixed} is no key");
        }
    }

    #[test]
    fn every_value_meets_every_other_and_dotted_names_are_the_same_as_quoted_ones() {
        let all = axes("\"mbcap.risk_time_s\" = [0.5, 1]\n\"defects.last_scanned\" = [false, true]").unwrap();
        let suffixes: Vec<String> = all.iter().map(Settings::suffix).collect();
        assert_eq!(
            suffixes,
            [
                ", defects.last_scanned = false, mbcap.risk_time_s = 0.5",
                ", defects.last_scanned = false, mbcap.risk_time_s = 1",
                ", defects.last_scanned = true, mbcap.risk_time_s = 0.5",
                ", defects.last_scanned = true, mbcap.risk_time_s = 1",
            ]
        );
        let dotted = axes("mbcap.risk_time_s = [0.5, 1]\ndefects.last_scanned = [false, true]").unwrap();
        assert_eq!(all, dotted);
        assert_eq!(axes("").unwrap(), [Settings::default()]);
    }

    #[test]
    fn bad_axes_are_refused_with_one_message_that_names_them() {
        let folder = tempfile::tempdir().unwrap();
        let pairs = include_str!("../plans/mbcap-pairs.toml");
        let muscop = include_str!("../plans/nine-fourteen.toml");
        for (plan, axis, words) in [
            (pairs, "colour = [1]", &["vary.colour: unknown", "channel, formation, size or"][..]),
            (
                pairs,
                "\"mbcap.beacon_ms\" = [1]",
                &["vary.mbcap.beacon_ms: found 1: unknown field `beacon_ms`", "`beacon_period_ms`"],
            ),
            (pairs, "\"mcap.x\" = [1]", &["vary.mcap.x: found 1: unknown field `mcap`", "`follow_me`"]),
            (pairs, "\"mbcap.beacon_period_ms\" = 1", &["found 1, expected a list of one or more values"]),
            (pairs, "\"mbcap.beacon_period_ms\" = []", &["found [], expected a list"]),
            (pairs, "\"mbcap.beacon_period_ms\" = ['x']", &["found \"x\": invalid type", "u64"]),
            (pairs, "\"mbcap.beacon_period_ms\" = [-1]", &["vary.mbcap.beacon_period_ms: found -1"]),
            (
                pairs,
                "\"mbcap.beacon_period_ms\" = [200, 5]",
                &["mbcap.beacon_period_ms: found 5, expected 100 to 5000 ms"],
            ),
            (pairs, "\"mbcap.brake\" = ['late']", &["unknown variant `late`, expected `published` or"]),
            (pairs, "\"mbcap.loss_s\" = [1.0]", &["mbcap.loss_s: found a variant", "own.variants"]),
            (
                pairs,
                "\"mbcap.variant\" = ['mbcap']",
                &["that the plan sets by its own key, expected: own.variants"],
            ),
            (pairs, "\"muscop.silence_ms\" = [500]", &["muscop.silence_ms: found no aircraft in the plan"]),
            (muscop, "\"mbcap.check_period_ms\" = [500]", &["found no aircraft in the plan"]),
            (muscop, "\"muscop.aircraft\" = [3]", &["expected: vary.size"]),
            (muscop, "\"muscop.distance_m\" = [50.0, 0.0]", &["distance", "found 0"]),
        ] {
            let path = folder.path().join("plan.toml");
            std::fs::write(&path, format!("{plan}\n[vary]\n{axis}\n")).unwrap();
            let message = format!("{:#}", Plan::read(&path).expect_err(axis));
            for word in words {
                assert!(message.contains(word), "{axis}: {message}");
            }
        }
    }

    #[test]
    fn the_published_value_flies_the_published_flight_and_another_period_sends_otherwise() {
        let (mut varied, folder) = plan("mbcap-beacon.toml");
        varied.repeat = 1;
        varied.own.as_mut().unwrap().flight.truncate(1);
        varied.vary.axes = "\"mbcap.beacon_period_ms\" = [200, 400]".parse().unwrap();
        let mut published = varied.clone();
        published.vary.axes = toml::Table::new();
        let flown = |plan: &Plan| -> Vec<FlightResult> {
            let rows = plan.flights(folder, 1).unwrap();
            rows.iter().flatten().map(|(s, seed)| fly(s, *seed, plan.time_limit()).unwrap()).collect()
        };
        let ([often, seldom], [without]) = (&flown(&varied)[..], &flown(&published)[..]) else {
            panic!("two values, and one flight without the axis")
        };
        assert_eq!(often.trace_hash, without.trace_hash);
        let share = seldom.radio.sent as f64 / often.radio.sent as f64;
        assert!((0.4..0.65).contains(&share), "half the beacons: {share}");
        let outcome = crate::run::run(&varied, folder, 1, 1).unwrap();
        let table: Vec<&str> = outcome.table.lines().collect();
        assert!(table[0].starts_with("mbcap.beacon_period_ms  flight "), "{}", outcome.table);
        assert!(table[1].starts_with("200                     face to face, mbcap-e "), "{}", outcome.table);
        assert!(table[2].starts_with("400                     face to face, mbcap-e "), "{}", outcome.table);
    }

    #[test]
    fn what_the_task_describes_changes_there_and_other_tables_name_the_axis() {
        let (mut swarm, folder) = plan("nine-fourteen.toml");
        swarm.vary.axes = "\"muscop.distance_m\" = [40.0]\n\"muscop.silence_ms\" = [900]".parse().unwrap();
        let scenario = swarm.scenarios(folder, 1).unwrap().remove(0);
        let Task::Swarm(task) = &scenario.task else { panic!("a swarm") };
        assert_eq!(task.distance_m, 40.0);
        assert_eq!(scenario.label(), "14 waypoints, muscop.distance_m = 40.0, muscop.silence_ms = 900");
        let Coordination::Muscop(config) = scenario.agent_config(1).coordination else { panic!("muscop") };
        assert_eq!((config.swarm.distance_m, config.swarm.silence.as_millis()), (40.0, 900));
        // The same number from an axis as from the plan's own list.
        let (mut refresh, folder) = plan("followme-refresh.toml");
        let listed = refresh.scenarios(folder, 1).unwrap();
        refresh.follow.as_mut().unwrap().series[0].refresh_ms = vec![1_000];
        refresh.vary.axes = "\"follow_me.refresh_ms\" = [250, 500]".parse().unwrap();
        let varied = refresh.scenarios(folder, 1).unwrap();
        for (listed, varied) in listed.iter().zip(&varied) {
            assert_eq!(listed.agent_config(1), varied.agent_config(1));
            assert_eq!(listed.task, varied.task);
        }
    }

    #[test]
    fn a_defect_of_the_reference_program_is_flown_by_the_bench_only() {
        let (mut pairs, folder) = plan("mbcap-pairs.toml");
        let published = pairs.scenarios(folder, 1).unwrap().into_iter().next_back().unwrap();
        let Coordination::Mbcap(config) = published.agent_config(0).coordination else { panic!("mbcap") };
        assert_eq!((config.aside_tests, config.curves), (AsideTests::Avoided, Some(CurveFit::Corrected)));
        pairs.vary.axes = "defects.last_scanned = [true]\ndefects.curve_sign = [true]".parse().unwrap();
        let scenario = pairs.scenarios(folder, 1).unwrap().into_iter().next_back().unwrap();
        let Coordination::Mbcap(config) = scenario.agent_config(0).coordination else { panic!("mbcap") };
        assert_eq!((config.aside_tests, config.curves), (AsideTests::LastScanned, Some(CurveFit::AsCoded)));
        let keys = schema::keys::<ProtocolKeys>();
        for defect in ["last_scanned", "curve_sign", "mbcap.curves", "mbcap.aside_tests"] {
            assert!(!keys.iter().any(|key| key.contains(defect)), "{defect}: {keys:?}");
        }
    }
}
