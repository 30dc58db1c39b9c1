//! A search for drills that break a rule: it changes the numbers that a drill is drawn from, and its world, and keeps what came
//! nearer to another aircraft, met the ground harder, or waited longer.
//!
//! The search is deterministic for a seed and a number of evaluations: each evaluation has a generator of its own. Its state is one
//! file, from which it is continued.

#![allow(clippy::disallowed_methods, reason = "a search ends after a time of the clock")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use strum::VariantArray;
use wingbeat_sim::motion::Profile;
use wingbeat_sim::rng::{self, Pcg64Mcg};

use super::{Conditions, Draws, Kind, Outcome, Protocol, recorded};

/// The file of a search.
const STATE: &str = "hunt.json";
/// The state is written after so many evaluations.
const SAVED_EVERY: u64 = 25;
/// A search whose first plans are all refused ends after so many.
const REFUSED_MOST: u64 = 20;
/// The autopilot of a search that no program flies.
const SIMULATED: &str = "simulated";
/// So many plans are kept; beyond it a new key needs a place that is free.
const ELITE_MOST: usize = 600;
/// Share of evaluations that draw a drill afresh.
const FRESH: f64 = 0.35;
/// Aircraft of a drill of the search: few fly fast.
const AIRCRAFT: [usize; 5] = [2, 3, 4, 5, 7];

/// A drill of the search, as its file has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The name of the kind.
    pub kind: String,
    /// The seed.
    pub seed: u64,
    /// Number of aircraft.
    pub aircraft: usize,
    /// The version of ArduCopter that is simulated.
    pub profile: String,
    /// See [`Conditions::gps_noise_m`].
    pub gps_noise_m: f64,
    /// See [`Conditions::gnss_bias_m`].
    pub gnss_bias_m: f64,
    /// See [`Conditions::wind_m_s`].
    pub wind_m_s: f64,
    /// See [`Conditions::slope_m`].
    pub slope_m: f64,
    /// See [`Conditions::battery_min`].
    pub battery_min: f64,
    /// The numbers that come before those of the seed.
    #[serde(default)]
    pub draws: Draws,
}

impl Plan {
    /// Reads a plan from its file.
    ///
    /// # Errors
    /// The file cannot be read, or is no plan.
    pub fn read(path: &Path) -> Result<Self> {
        let place = || path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(place)?;
        let plan: Self = serde_json::from_str(&text).with_context(place)?;
        plan.parts(None).with_context(place)?;
        Ok(plan)
    }

    /// Returns its kind and its conditions, flown by a program where one is given.
    ///
    /// # Errors
    /// A value is none of the drills'.
    pub fn parts(&self, program: Option<Conditions>) -> Result<(Kind, Conditions)> {
        let kind: Kind = self.kind.parse().map_err(anyhow::Error::msg).context("kind")?;
        let profile: Profile = self.profile.parse().map_err(anyhow::Error::msg).context("profile")?;
        let bounded = |name: &str, found: f64, range: &std::ops::RangeInclusive<f64>| {
            let (least, most) = (range.start(), range.end());
            ensure!(range.contains(&found), "{name}: found {found}, expected {least} to {most}");
            Ok(())
        };
        bounded("gps_noise_m", self.gps_noise_m, &super::GPS_NOISE_M)?;
        bounded("gnss_bias_m", self.gnss_bias_m, &super::GNSS_BIAS_M)?;
        bounded("wind_m_s", self.wind_m_s, &super::WIND_M_S)?;
        bounded("slope_m", self.slope_m, &super::SLOPE_M)?;
        bounded("battery_min", self.battery_min, &super::BATTERY_MIN)?;
        ensure!(
            super::AIRCRAFT.contains(&self.aircraft),
            "aircraft: found {}, expected 2 to 25",
            self.aircraft
        );
        ensure!(self.draws.are_sound(), "draws: expected numbers from 0 to less than 1");
        let conditions = Conditions {
            aircraft: self.aircraft,
            profile,
            gps_noise_m: self.gps_noise_m,
            gnss_bias_m: self.gnss_bias_m,
            wind_m_s: self.wind_m_s,
            slope_m: self.slope_m,
            battery_min: self.battery_min,
            ..Conditions::field(self.seed)
        };
        Ok((
            kind,
            match program {
                Some(Conditions { profile, arducopter, .. }) => {
                    Conditions { profile, arducopter, ..conditions }
                }
                None => conditions,
            },
        ))
    }

    /// Flies it.
    ///
    /// # Errors
    /// As [`Plan::parts`]; and what was drawn cannot be flown.
    pub fn fly(&self, program: Option<Conditions>, folder: Option<&Path>) -> Result<Outcome> {
        let (kind, conditions) = self.parts(program)?;
        recorded(kind, self.seed, conditions, &self.draws, folder)
    }
}

/// What a search comes nearer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, VariantArray)]
enum Aim {
    /// A small separation.
    Near,
    /// A hard touch-down.
    Hard,
    /// A long wait.
    Long,
}

impl Aim {
    /// Returns how far an outcome is from a broken rule: less is nearer.
    fn score(self, outcome: &Outcome) -> f64 {
        match self {
            Self::Near => outcome.separation_min_m.min(1e3),
            Self::Hard => -outcome.hardest_m_s,
            Self::Long => -outcome.to_ground.as_secs_f64(),
        }
    }
}

/// A plan that came nearest to its aim among those with the same failures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Elite {
    key: String,
    score: f64,
    plan: Plan,
}

/// A kind of find: what was broken under which failures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Find {
    /// The protocol.
    pub protocol: Protocol,
    /// Whether a rule of safety was broken.
    pub is_unsafe: bool,
    /// The names of all rules that were broken.
    pub rule: String,
    /// The failures that began.
    pub failures: String,
    /// How often it was found.
    pub times: u64,
    /// The evaluation that found it first.
    pub first: u64,
    /// The violation of the plan that came nearest.
    pub violation: String,
    /// Its separation, metres.
    pub separation_m: f64,
    /// The name of its file.
    pub file: String,
}

/// A search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hunt {
    seed: u64,
    protocol: Option<Protocol>,
    /// Evaluations so far.
    pub evaluations: u64,
    /// Number of evaluations that could not be flown.
    #[serde(default)]
    pub refused: u64,
    /// The reason of the last one.
    #[serde(default)]
    pub last_refusal: String,
    /// The autopilot that is flown; empty before the first evaluation.
    #[serde(default)]
    autopilot: String,
    /// Seconds flown so far, simulated.
    pub flown_s: f64,
    elites: Vec<Elite>,
    /// The kinds of finds so far.
    pub finds: Vec<Find>,
}

impl Hunt {
    /// Begins a search in a folder, or continues the one that is there.
    ///
    /// # Errors
    /// The folder holds another search, or cannot be read.
    pub fn open(folder: &Path, seed: u64, protocol: Option<Protocol>) -> Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let path = folder.join(STATE);
        if !path.exists() {
            let (elites, finds) = (vec![], vec![]);
            let (refused, last_refusal, autopilot) = (0, String::new(), String::new());
            let flown_s = 0.0;
            return Ok(Self {
                seed,
                protocol,
                evaluations: 0,
                refused,
                last_refusal,
                autopilot,
                flown_s,
                elites,
                finds,
            });
        }
        let place = || path.display().to_string();
        let text = std::fs::read_to_string(&path).with_context(place)?;
        let hunt: Self = serde_json::from_str(&text).with_context(place)?;
        ensure!(
            hunt.seed == seed && hunt.protocol == protocol,
            "{}: found a search with seed {} of {}, expected this one: choose another folder",
            path.display(),
            hunt.seed,
            hunt.protocol.map_or("all protocols", Protocol::name)
        );
        Ok(hunt)
    }

    /// Evaluates until a number of evaluations in all, or until the time is over.
    ///
    /// # Errors
    /// A file cannot be written, the search was begun with another autopilot, or none of its first plans can be flown.
    pub fn run(
        &mut self,
        folder: &Path,
        evaluations: u64,
        within: Option<Duration>,
        program: Option<Conditions>,
    ) -> Result<()> {
        let name_of = |program: Conditions| {
            let path = program.arducopter.map_or_else(String::new, |path| path.display().to_string());
            format!("{} {path}", program.profile)
        };
        let autopilot = program.map_or_else(|| SIMULATED.to_owned(), name_of);
        ensure!(
            self.autopilot.is_empty() || self.autopilot == autopilot,
            "found a search with another autopilot ({}), expected this one: choose another folder",
            self.autopilot
        );
        self.autopilot = autopilot;
        let began = Instant::now();
        while self.evaluations < evaluations && within.is_none_or(|within| began.elapsed() < within) {
            let plan = self.next(program.is_some());
            match plan.fly(program, None) {
                // Some kinds draw their protocol with their missions.
                Ok(outcome) if self.protocol.is_some_and(|protocol| protocol != outcome.protocol) => {
                    self.flown_s += outcome.duration.as_secs_f64();
                }
                Ok(outcome) => {
                    let plan = Plan { draws: outcome.draws.clone(), ..plan };
                    self.judge(folder, &plan, &outcome)?;
                }
                // A world that is refused is no find.
                Err(why) => {
                    self.refused += 1;
                    self.last_refusal = format!("{why:#}");
                }
            }
            self.evaluations += 1;
            self.check_flown()?;
            if self.evaluations.is_multiple_of(SAVED_EVERY) {
                self.save(folder)?;
            }
        }
        self.save(folder)
    }

    /// # Errors
    /// No plan could be flown so far.
    fn check_flown(&self) -> Result<()> {
        ensure!(
            self.evaluations < REFUSED_MOST || self.refused < self.evaluations,
            "none of the first {REFUSED_MOST} plans can be flown: {}",
            self.last_refusal
        );
        Ok(())
    }

    fn save(&self, folder: &Path) -> Result<()> {
        write(&folder.join(STATE), &serde_json::to_string(self)?)
    }

    /// Returns the plan of the next evaluation.
    fn next(&self, has_program: bool) -> Plan {
        let mut rng = rng::child(self.seed, "hunt", self.evaluations);
        if self.elites.is_empty() || rng::uniform(&mut rng) < FRESH {
            return self.fresh(&mut rng);
        }
        let mut plan = self.elites[below(&mut rng, self.elites.len())].plan.clone();
        for _ in 0..1 + below(&mut rng, 4) {
            let tape = match below(&mut rng, 8) {
                0 => &mut plan.draws.wind,
                1..=3 => &mut plan.draws.scenario,
                _ => &mut plan.draws.steps,
            };
            if tape.is_empty() {
                continue;
            }
            let place = below(&mut rng, tape.len());
            let fresh = rng::uniform(&mut rng);
            let near = tape[place] + rng::normal(&mut rng) * 0.08;
            let is_near = rng::uniform(&mut rng) < 0.6 && (0.0..1.0).contains(&near);
            tape[place] = if is_near { near } else { fresh };
        }
        if below(&mut rng, 5) < 2 {
            change_world(&mut rng, &mut plan, has_program);
        }
        plan
    }

    fn fresh(&self, rng: &mut Pcg64Mcg) -> Plan {
        let protocols = Protocol::VARIANTS;
        let protocol = self.protocol.unwrap_or_else(|| protocols[below(rng, protocols.len())]);
        let seed = (rng::uniform(rng) * 1e9) as u64;
        let kinds: Vec<Kind> = Kind::all().filter(|kind| kind.protocol(seed) == protocol).collect();
        // Every second drill is of any two failures.
        let any_two = kinds.iter().copied().find(|kind| Kind::ANY_TWO.contains(kind));
        let drawn = kinds[below(rng, kinds.len())];
        let kind = any_two.filter(|_| below(rng, 2) == 0).unwrap_or(drawn);
        let field = Conditions::field(seed);
        let profile = Profile::ALL[below(rng, Profile::ALL.len())];
        Plan {
            kind: kind.name().to_owned(),
            seed,
            aircraft: AIRCRAFT[below(rng, AIRCRAFT.len())],
            profile: profile.to_string(),
            gps_noise_m: field.gps_noise_m,
            gnss_bias_m: field.gnss_bias_m,
            wind_m_s: field.wind_m_s,
            slope_m: field.slope_m,
            battery_min: field.battery_min,
            draws: Draws::default(),
        }
    }

    fn judge(&mut self, folder: &Path, plan: &Plan, outcome: &Outcome) -> Result<()> {
        self.flown_s += outcome.duration.as_secs_f64();
        let failures = failures(outcome);
        for &aim in Aim::VARIANTS {
            let key = format!("{} {aim:?} {failures}", plan.kind);
            let score = aim.score(outcome);
            let has_room = self.elites.len() < ELITE_MOST;
            match self.elites.iter_mut().find(|elite| elite.key == key) {
                Some(elite) if score < elite.score => *elite = Elite { key, score, plan: plan.clone() },
                None if has_room => self.elites.push(Elite { key, score, plan: plan.clone() }),
                Some(_) | None => {}
            }
        }
        let Some(violation) = outcome.safety.first().or(outcome.liveness.first()) else { return Ok(()) };
        let violations = outcome.safety.iter().chain(&outcome.liveness);
        let rules: BTreeSet<&str> =
            violations.map(|violation| violation.split(':').next().unwrap_or_default()).collect();
        let rule = rules.into_iter().collect::<Vec<_>>().join(" + ");
        let (protocol, is_unsafe) = (outcome.protocol, !outcome.safety.is_empty());
        let is_it = |f: &&mut Find| f.protocol == protocol && f.rule == rule && f.failures == failures;
        let (file, nearer) = match self.finds.iter_mut().find(is_it) {
            Some(find) => {
                find.times += 1;
                let nearer = outcome.separation_min_m < find.separation_m;
                if nearer {
                    (find.separation_m, find.violation) = (outcome.separation_min_m, violation.clone());
                }
                (find.file.clone(), nearer)
            }
            None => {
                let file = format!("find-{:04}.json", self.finds.len() + 1);
                self.finds.push(Find {
                    protocol,
                    is_unsafe,
                    rule,
                    failures,
                    times: 1,
                    first: self.evaluations,
                    violation: violation.clone(),
                    separation_m: outcome.separation_min_m.min(1e3),
                    file: file.clone(),
                });
                (file, true)
            }
        };
        if nearer {
            write(&folder.join(file), &serde_json::to_string_pretty(plan)?)?;
        }
        Ok(())
    }

    /// Returns whether a rule of safety was broken.
    pub fn has_unsafe(&self) -> bool {
        self.finds.iter().any(|find| find.is_unsafe)
    }

    /// Returns what was found, one line for each kind of find: unsafe first, then the most frequent.
    pub fn table(&self, folder: &Path) -> String {
        let mut finds: Vec<&Find> = self.finds.iter().collect();
        finds.sort_by_key(|find| (!find.is_unsafe, find.protocol, find.rule.clone(), u64::MAX - find.times));
        let mut out = format!(
            "{} evaluations ({} refused), {:.0} s flown, {} plans kept, {} kinds of finds\n",
            self.evaluations,
            self.refused,
            self.flown_s,
            self.elites.len(),
            finds.len()
        );
        if self.refused > 0 {
            let _ = writeln!(out, "last refused: {}", self.last_refusal);
        }
        for find in finds {
            let mark = if find.is_unsafe { "UNSAFE" } else { "STUCK " };
            let path: PathBuf = folder.join(&find.file);
            let _ = writeln!(
                out,
                "{mark} {:<8} {:<12} {:>4} times, least {:7.2} m  {}\n         {}\n         wingbeat bench drill --plan {}",
                find.protocol.name(),
                find.rule,
                find.times,
                find.separation_m,
                if find.failures.is_empty() { "nothing fails" } else { &find.failures },
                find.violation,
                path.display()
            );
        }
        out
    }
}

/// Returns the names of the failures that began, but for those of the world.
fn failures(outcome: &Outcome) -> String {
    use super::Failure::{Two, Unlevel, Wind};
    let mut names: BTreeMap<&str, ()> = BTreeMap::new();
    for began in outcome.began.iter().filter(|began| !matches!(began.failure, Two | Unlevel | Wind)) {
        names.insert(began.failure.name(), ());
    }
    names.into_keys().collect::<Vec<_>>().join(" + ")
}

/// Changes one part of a plan's world.
fn change_world(rng: &mut Pcg64Mcg, plan: &mut Plan, has_program: bool) {
    let part = below(rng, 6);
    let step = rng::normal(rng);
    let moved = |value: f64, by: f64, least: f64, most: f64| {
        let value = (value + step * by).clamp(least, most);
        (value * 10.0).round() / 10.0
    };
    match part {
        0 => plan.gps_noise_m = moved(plan.gps_noise_m, 0.3, 0.3, 2.0),
        1 => plan.gnss_bias_m = moved(plan.gnss_bias_m, 0.3, 0.0, 1.0),
        2 => plan.wind_m_s = moved(plan.wind_m_s, 1.0, 0.0, 4.5),
        3 => plan.slope_m = moved(plan.slope_m, 0.3, 0.0, 1.5),
        4 if !has_program => {
            let other = |profile: &&Profile| profile.to_string() != plan.profile;
            if let Some(profile) = Profile::ALL.iter().find(other) {
                plan.profile = profile.to_string();
            }
        }
        _ => plan.aircraft = AIRCRAFT[below(rng, AIRCRAFT.len())],
    }
}

fn below(rng: &mut Pcg64Mcg, count: usize) -> usize {
    (rng::uniform(rng) * count as f64) as usize
}

/// Replaces a file as a whole.
fn write(path: &Path, text: &str) -> Result<()> {
    let place = || path.display().to_string();
    let new = path.with_extension("new");
    std::fs::write(&new, format!("{text}\n")).with_context(place)?;
    std::fs::rename(&new, path).with_context(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_repeats_and_continues_where_it_stopped() {
        let [a, b] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let open = |folder: &Path| Hunt::open(folder, 5, Some(Protocol::Mbcap)).unwrap();
        let mut at_once = open(a.path());
        at_once.run(a.path(), 8, None, None).unwrap();
        open(b.path()).run(b.path(), 3, None, None).unwrap();
        let mut continued = open(b.path());
        assert_eq!(continued.evaluations, 3);
        continued.run(b.path(), 8, None, None).unwrap();
        assert_eq!(continued, at_once);
        let other = Hunt::open(b.path(), 6, None).unwrap_err().to_string();
        assert!(other.contains("choose another folder"), "{other}");
    }

    #[test]
    fn a_search_of_which_no_plan_can_be_flown_ends_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let mut hunt = Hunt::open(folder.path(), 5, Some(Protocol::Mission)).unwrap();
        (hunt.evaluations, hunt.refused, hunt.last_refusal) = (20, 19, "no program".into());
        assert!(hunt.check_flown().is_ok(), "one was flown");
        hunt.refused = 20;
        assert!(hunt.check_flown().unwrap_err().to_string().contains("no program"));
        let table = hunt.table(folder.path());
        assert!(table.contains("(20 refused)") && table.contains("last refused: no program"), "{table}");
        hunt.autopilot = "4.6.2 /sitl/copter".into();
        let why = hunt.run(folder.path(), 21, None, None).unwrap_err().to_string();
        assert!(why.contains("another autopilot"), "{why}");
    }

    #[test]
    fn a_plan_flies_the_same_again_and_a_bad_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut rng = rng::child(1, "test", 0);
        let hunt = Hunt::open(folder.path(), 1, Some(Protocol::Mission)).unwrap();
        let plan = hunt.fresh(&mut rng);
        let outcome = plan.fly(None, None).unwrap();
        let path = folder.path().join("plan.json");
        let with_draws = Plan { draws: outcome.draws.clone(), seed: plan.seed, ..plan };
        write(&path, &serde_json::to_string(&with_draws).unwrap()).unwrap();
        assert_eq!(Plan::read(&path).unwrap().fly(None, None).unwrap(), outcome);
        let bad = Plan { wind_m_s: -1.0, ..with_draws };
        write(&path, &serde_json::to_string(&bad).unwrap()).unwrap();
        let message = format!("{:#}", Plan::read(&path).unwrap_err());
        assert!(message.contains("plan.json") && message.contains("wind_m_s: found -1"), "{message}");
    }
}
