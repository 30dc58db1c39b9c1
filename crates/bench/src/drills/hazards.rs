//! The hazard table: how many drills flew each failure in each phase of each protocol, and how many of them were unsafe.
//!
//! It is counted from what drills record of themselves ([`Outcome::began`]), kept in a file with the seeds, and written into the
//! documents from that file. A cell that no drill flew says so.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use strum::VariantArray;
use wingbeat_linktest::statistics::rate_most;

use super::{Began, Failure, FlightPhase, Kind, Outcome, Protocol};

/// Seeds of unsafe drills that a row names.
const NAMED_MOST: usize = 4;
/// Kinds that a cell names.
const KINDS_MOST: usize = 2;
/// A cell that no drill flew.
const NOT_FLOWN: &str = "not flown";

/// The results of drills, as they are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The command that flew them.
    pub command: String,
    /// The world that they were flown in.
    pub world: String,
    /// One entry for each failure, phase, protocol and kind that was flown.
    pub flown: Vec<Flown>,
    /// One entry for each kind.
    pub kinds: Vec<OfKind>,
}

/// The drills of a kind in which a failure began in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flown {
    /// The protocol.
    pub protocol: Protocol,
    /// The failure.
    pub failure: Failure,
    /// The true phase of an aircraft that it concerned, when it began.
    pub phase: FlightPhase,
    /// The name of the kind.
    pub kind: String,
    /// The seed of one of them.
    pub seed: u64,
    /// How many and how they ended.
    #[serde(flatten)]
    pub tally: Tally,
}

/// How drills ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Number of drills.
    pub drills: usize,
    /// Of them those that broke a rule of safety.
    pub r#unsafe: usize,
    /// Of those the ones with a crash.
    pub crashed: usize,
    /// Drills that broke a rule of liveness alone.
    pub stuck: usize,
    /// Drills in which no aircraft flew: the bound does not count them.
    #[serde(default)]
    pub not_flown: usize,
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        self.drills += 1;
        self.r#unsafe += usize::from(!outcome.safety.is_empty());
        self.crashed += usize::from(outcome.has_crashed());
        self.stuck += usize::from(outcome.safety.is_empty() && !outcome.liveness.is_empty());
        self.not_flown += usize::from(outcome.is_not_flown());
    }

    fn merge(&mut self, other: Self) {
        self.drills += other.drills;
        self.r#unsafe += other.r#unsafe;
        self.crashed += other.crashed;
        self.stuck += other.stuck;
        self.not_flown += other.not_flown;
    }

    /// Returns the rate of unsafe drills that these results permit at most, per cent (95 %, one side).
    fn at_most(self) -> f64 {
        rate_most(self.r#unsafe, self.flown()) * 1e2
    }

    /// Returns the number of drills in which an aircraft flew.
    fn flown(self) -> usize {
        self.drills.saturating_sub(self.not_flown)
    }
}

/// The drills of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfKind {
    /// Its name.
    pub kind: String,
    /// How many and how they ended.
    #[serde(flatten)]
    pub tally: Tally,
    /// The least distance between two aircraft while one of them flew, metres, to the centimetre.
    pub least_m: f64,
    /// The hardest touch-down, metres per second.
    pub hardest_m_s: f64,
    /// The first seeds of those that were unsafe.
    pub unsafe_seeds: Vec<u64>,
}

impl Results {
    /// Counts drills.
    pub fn of(outcomes: &[Outcome], command: &str, world: &str) -> Self {
        let mut flown: BTreeMap<(Protocol, Began, Kind), (u64, Tally)> = BTreeMap::new();
        let mut kinds: BTreeMap<Kind, OfKind> = BTreeMap::new();
        for outcome in outcomes {
            for began in &outcome.began {
                let key = (outcome.protocol, *began, outcome.kind);
                flown.entry(key).or_insert((outcome.seed, Tally::default())).1.add(outcome);
            }
            let row = kinds.entry(outcome.kind).or_insert_with(|| OfKind {
                kind: outcome.kind.name().to_owned(),
                tally: Tally::default(),
                least_m: f64::MAX,
                hardest_m_s: 0.0,
                unsafe_seeds: vec![],
            });
            row.tally.add(outcome);
            row.least_m = row.least_m.min(hundredths(outcome.separation_min_m));
            row.hardest_m_s = row.hardest_m_s.max(hundredths(outcome.hardest_m_s));
            if !outcome.safety.is_empty() && row.unsafe_seeds.len() < NAMED_MOST {
                row.unsafe_seeds.push(outcome.seed);
            }
        }
        let one = |((protocol, began, kind), (seed, tally)): ((Protocol, Began, Kind), (u64, Tally))| Flown {
            protocol,
            failure: began.failure,
            phase: began.phase,
            kind: kind.name().to_owned(),
            seed,
            tally,
        };
        Self {
            command: command.to_owned(),
            world: world.to_owned(),
            flown: flown.into_iter().map(one).collect(),
            kinds: kinds.into_values().collect(),
        }
    }

    /// Returns the kinds that flew a failure in a phase of a protocol, the one with most drills first, and all their drills.
    fn cell(&self, protocol: Protocol, failure: Failure, phase: FlightPhase) -> (Vec<&Flown>, Tally) {
        let is_it = |f: &&Flown| (f.protocol, f.failure, f.phase) == (protocol, failure, phase);
        let mut all: Vec<&Flown> = self.flown.iter().filter(is_it).collect();
        all.sort_by_key(|f| std::cmp::Reverse(f.tally.drills));
        let mut sum = Tally::default();
        all.iter().for_each(|f| sum.merge(f.tally));
        (all, sum)
    }

    /// Returns the hazard tables, one for each protocol, as Markdown.
    pub fn table(&self) -> String {
        let mut out = format!(
            "Flown by `{}`, {}. A cell names the kinds of drills, how many flew *that* failure beginning in *that* phase, how many of \
             them were unsafe, and the rate that this permits at most (95 %).\n",
            self.command, self.world
        );
        for &protocol in Protocol::VARIANTS {
            let _ = write!(out, "\n### {}\n\n| failure |", protocol.name());
            for phase in FlightPhase::VARIANTS {
                let _ = write!(out, " {} |", phase.name());
            }
            out.push_str("\n|---|---|---|---|---|---|\n");
            for &failure in Failure::VARIANTS {
                let _ = write!(out, "| {} |", failure.name());
                for &phase in FlightPhase::VARIANTS {
                    let (kinds, tally) = self.cell(protocol, failure, phase);
                    if tally.flown() == 0 {
                        let _ = write!(out, " {NOT_FLOWN} |");
                        continue;
                    }
                    let names: Vec<String> =
                        kinds.iter().take(KINDS_MOST).map(|f| format!("`{}`", f.kind)).collect();
                    let more = kinds.len().saturating_sub(KINDS_MOST);
                    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                    let count = if tally.r#unsafe > 0 {
                        format!("**{} unsafe**", tally.r#unsafe)
                    } else {
                        "0 unsafe".to_owned()
                    };
                    let _ = write!(
                        out,
                        " {}{more}: {}, {count}, ≤ {:.1} % |",
                        names.join(" "),
                        tally.flown(),
                        tally.at_most()
                    );
                }
                out.push('\n');
            }
        }
        out
    }

    /// Returns the table of kinds, as Markdown.
    pub fn measured(&self) -> String {
        let mut out = format!("Flown by `{}`, {}.\n\n", self.command, self.world);
        out.push_str(
            "| kind | drills | not flown | unsafe | at most | crashed | stuck | least m | hardest touch-down m/s | unsafe seeds |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
        );
        let mut all = Tally::default();
        for OfKind { kind, tally, least_m, hardest_m_s, unsafe_seeds } in &self.kinds {
            all.merge(*tally);
            let seeds: Vec<String> = unsafe_seeds.iter().map(u64::to_string).collect();
            let _ = writeln!(
                out,
                "| `{kind}` | {} | {} | {} | {:.1} % | {} | {} | {least_m:.2} | {hardest_m_s:.1} | {} |",
                tally.drills,
                tally.not_flown,
                tally.r#unsafe,
                tally.at_most(),
                tally.crashed,
                tally.stuck,
                seeds.join(" ")
            );
        }
        let _ = writeln!(
            out,
            "| all | {} | {} | {} | {:.1} % | {} | {} | | | |",
            all.drills,
            all.not_flown,
            all.r#unsafe,
            all.at_most(),
            all.crashed,
            all.stuck
        );
        out
    }
}

/// Files carry two decimals.
fn hundredths(value: f64) -> f64 {
    if value.is_finite() { (value * 1e2).round() / 1e2 } else { f64::MAX }
}

/// The mark before a generated section of a document, and the one behind it.
const BEGINS: &str = "<!-- generated by `wingbeat bench hazards --write`: do not edit -->\n";
const ENDS: &str = "<!-- end of the generated section -->";

/// Returns the generated section of a page, between its marks.
pub fn section(page: &str) -> Option<&str> {
    page.split_once(BEGINS)?.1.split_once(ENDS).map(|(section, _)| section)
}

/// Returns a page with another generated section.
///
/// # Errors
/// The page has no marks.
pub fn with_section(page: &str, section: &str) -> anyhow::Result<String> {
    let found = page.split_once(BEGINS).and_then(|(head, rest)| Some((head, rest.split_once(ENDS)?.1)));
    let (head, tail) = found.ok_or_else(|| {
        anyhow::anyhow!("found no generated section, expected {:?} and {ENDS:?}", BEGINS.trim_end())
    })?;
    Ok(format!("{head}{BEGINS}\n{section}\n{ENDS}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drills::{Conditions, drill};

    #[test]
    fn a_cell_counts_the_failure_that_began_in_its_phase_and_no_other() {
        let mut outcome = drill(Kind::Loss, 1, Conditions::default()).unwrap();
        let ground = Began { failure: Failure::Loss, phase: FlightPhase::Ground };
        assert_eq!(outcome.began, [ground].into(), "the whole flight long: it began on the ground");
        outcome.safety.push("separation: for the test".into());
        let results = Results::of(&[outcome.clone(), outcome], "x", "y");
        let row = |name: &str| {
            let table = results.table();
            let muscop = table.split("### ").nth(1).unwrap().to_owned();
            muscop.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap().to_owned()
        };
        let lost = row("datagrams lost");
        assert!(
            lost.starts_with("| datagrams lost | `loss`: 2, **2 unsafe**, ≤ 100.0 % | not flown |"),
            "{lost}"
        );
        assert_eq!(row("motor").matches(NOT_FLOWN).count(), 5);
        let json = serde_json::to_string(&results).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&json).unwrap(), results);
    }

    #[test]
    fn drills_in_which_nothing_flew_are_no_good_ones() {
        let mut outcome = drill(Kind::Loss, 1, Conditions::default()).unwrap();
        assert!(outcome.flew, "{:?}", outcome.story);
        let mut all = vec![outcome.clone()];
        outcome.flew = false;
        all.extend(vec![outcome; 9]);
        let tally = Results::of(&all, "x", "y").kinds[0].tally;
        assert_eq!((tally.drills, tally.not_flown), (10, 9));
        assert!((tally.at_most() - 95.0).abs() < 0.1, "the bound of one drill: {}", tally.at_most());
        assert!(Results::of(&all[1..], "x", "y").table().lines().all(|line| !line.contains("`loss`")));
    }

    #[test]
    fn a_generated_section_is_replaced_between_its_marks() {
        let page = format!("a\n{BEGINS}old\n{ENDS}\nb\n");
        let new = with_section(&page, "new").unwrap();
        assert_eq!(section(&new), Some("\nnew\n"));
        assert!(new.starts_with("a\n") && new.ends_with("\nb\n"));
        assert!(with_section("a", "new").unwrap_err().to_string().contains("no generated section"));
    }
}
