//! Two campaigns side by side: the same flight with the same seed in both is a pair, so that what the seed drew cancels out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use wingbeat_linktest::statistics::Summary;

use super::row::{FIGURES, FlightRow};

/// The pairs of one flight's figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The flight.
    pub flight: String,
    /// The figure.
    pub figure: &'static str,
    /// Of the first campaign.
    pub before: Summary,
    /// Of the second.
    pub after: Summary,
    /// Second less first, pair by pair, with the interval of the mean (Student's t, 95 %).
    pub difference: Summary,
    /// Mean difference in deviations of the differences (Cohen's d for pairs); none where all differences are equal.
    pub effect: Option<f64>,
}

/// What two campaigns have in common, and what not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// Of each flight, the figures that differ in at least one pair, or all.
    pub comparisons: Vec<Comparison>,
    /// Pairs.
    pub pairs: usize,
    /// Of those: equal to the last byte.
    pub equal: usize,
    /// Flights of the first that the second has not.
    pub only_before: usize,
    /// Flights of the second that the first has not.
    pub only_after: usize,
}

/// What makes two flights a pair: plan, flight, reference or not, seed.
type Name = (String, String, bool, u64);

fn by_name(rows: &[FlightRow]) -> BTreeMap<Name, &FlightRow> {
    rows.iter().map(|row| ((row.plan.clone(), row.flight.clone(), row.is_reference, row.seed), row)).collect()
}

/// Compares figures; without names those that differ.
pub fn compare(before: &[FlightRow], after: &[FlightRow], figures: &[String]) -> Compared {
    let (before, after) = (by_name(before), by_name(after));
    let mut groups: BTreeMap<(String, bool), Vec<(&FlightRow, &FlightRow)>> = BTreeMap::new();
    let mut compared = Compared::default();
    for (name, row) in &before {
        let Some(other) = after.get(name) else {
            compared.only_before += 1;
            continue;
        };
        compared.pairs += 1;
        compared.equal += usize::from(row.trace == other.trace);
        groups.entry((row.flight.clone(), row.is_reference)).or_default().push((row, other));
    }
    compared.only_after = after.len() - compared.pairs;
    for ((flight, is_reference), pairs) in groups {
        let flight = if is_reference { format!("{flight} (reference)") } else { flight };
        for (figure, of) in FIGURES {
            let is_asked = figures.iter().any(|name| name == figure);
            let values: Vec<(f64, f64)> = pairs.iter().filter_map(|(a, b)| Some((of(a)?, of(b)?))).collect();
            let differs = values.iter().any(|(a, b)| a != b);
            if !(is_asked || figures.is_empty() && differs) {
                continue;
            }
            let summary = |of: fn(&(f64, f64)) -> f64| Summary::of(values.iter().map(of));
            let (Some(before), Some(after), Some(difference)) =
                (summary(|v| v.0), summary(|v| v.1), summary(|v| v.1 - v.0))
            else {
                continue;
            };
            let effect = (difference.deviation > 0.0).then(|| difference.mean / difference.deviation);
            compared.comparisons.push(Comparison {
                flight: flight.clone(),
                figure,
                before,
                after,
                difference,
                effect,
            });
        }
    }
    compared
}

/// As text.
pub fn table(compared: &Compared) -> String {
    let mut t = String::new();
    let mut line = |text: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(t, "{}", text.trim_end());
    };
    let width = compared.comparisons.iter().map(|c| c.flight.chars().count()).max().unwrap_or(0).max(30);
    if !compared.comparisons.is_empty() {
        line(&format!(
            "{:<width$} figure                     pairs      first     second  difference   95 % interval          effect",
            "flight"
        ));
    }
    for c in &compared.comparisons {
        let interval = c.difference.half_width.map_or_else(
            || "one pair".to_owned(),
            |h| format!("{:.3} to {:.3}", c.difference.mean - h, c.difference.mean + h),
        );
        line(&format!(
            "{:<width$} {:<24} {:>7} {:>10.3} {:>10.3} {:>11.3}   {interval:<20} {:>8}",
            c.flight,
            c.figure,
            c.difference.count,
            c.before.mean,
            c.after.mean,
            c.difference.mean,
            c.effect.map_or_else(|| "-".to_owned(), |effect| format!("{effect:.2}"))
        ));
    }
    let Compared { pairs, equal, only_before, only_after, .. } = compared;
    line(&format!(
        "{pairs} pairs, {equal} of them equal to the last byte; {only_before} flights only in the first, {only_after} only in the second"
    ));
    t
}
