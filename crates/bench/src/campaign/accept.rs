//! The ranges that a plan expects of its figures (`[[accept]]`), which make a campaign a check.

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use serde::Deserialize;
use wingbeat_linktest::statistics::mean;

use super::row::{self, FlightRow, groups};

/// One range.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accept {
    /// The figure, as the columns of `flights.csv` are called.
    pub figure: String,
    /// Only of flights whose name contains this.
    pub flight: Option<String>,
    /// What must lie within: each flight's figure, or the mean of each row.
    #[serde(default)]
    pub of: Of,
    /// The least.
    pub least: Option<f64>,
    /// The most.
    pub most: Option<f64>,
}

/// What a range is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    /// Each flight's figure.
    #[default]
    Each,
    /// The mean over the flights of each row.
    Mean,
}

impl Accept {
    /// Whether it can be judged.
    ///
    /// # Errors
    /// Names the key, what was found and what was expected.
    pub fn check(&self) -> Result<()> {
        let known = row::FIGURES.iter().any(|(name, _)| *name == self.figure);
        ensure!(known, "accept: figure: found '{}', expected one of {}", self.figure, row::names());
        let (least, most) = (self.least.unwrap_or(f64::NEG_INFINITY), self.most.unwrap_or(f64::INFINITY));
        ensure!(
            self.least.is_some() || self.most.is_some(),
            "accept: {}: found neither least nor most, expected one at least",
            self.figure
        );
        ensure!(
            least <= most,
            "accept: {}: found least {least} above most {most}, expected the contrary",
            self.figure
        );
        Ok(())
    }

    fn misses(&self, value: Option<f64>) -> bool {
        value.is_none_or(|value| {
            self.least.is_some_and(|least| value < least) || self.most.is_some_and(|most| value > most)
        })
    }

    fn expected(&self) -> String {
        match (self.least, self.most) {
            (Some(least), Some(most)) => format!("{least} to {most}"),
            (Some(least), None) => format!("at least {least}"),
            (None, most) => format!("at most {}", most.unwrap_or(f64::INFINITY)),
        }
    }
}

/// The rows that miss a range, a line each; nothing where all lie within. A range that no flight has misses.
pub fn misses(accept: &[Accept], rows: &[FlightRow]) -> Vec<String> {
    let mut lines = Vec::new();
    let groups = groups(rows);
    for range in accept {
        let asked = range.flight.as_deref().unwrap_or_default();
        let mut judged = 0;
        let mut judge = |name: &str, value: Option<f64>| {
            judged += 1;
            if range.misses(value) {
                let found = value.map_or_else(|| "none".to_owned(), |value| format!("{value:.3}"));
                let mut line = String::new();
                let _ =
                    write!(line, "{name}: {}: found {found}, expected {}", range.figure, range.expected());
                lines.push(line);
            }
        };
        for (name, rows) in groups
            .iter()
            .filter(|(name, rows)| name.contains(asked) && rows.iter().all(|row| !row.is_reference))
        {
            match range.of {
                Of::Each => {
                    for row in rows {
                        judge(&format!("{name}, flight seed {}", row.seed), row.figure(&range.figure));
                    }
                }
                Of::Mean => {
                    judge(name, mean(rows.iter().filter_map(|row| row.figure(&range.figure))));
                }
            }
        }
        if judged == 0 {
            lines.push(format!("accept: {}: found no flight called '{asked}', expected one", range.figure));
        }
    }
    lines
}
