//! A channel table: the share of datagrams lost at some distances.
//!
//! ```toml
//! loss = [[0.0, 0.001], [250.0, 0.04], [1350.0, 1.0]]
//! ```

use serde::{Deserialize, Serialize};

/// Rows of a table at most.
const ROWS_MAX: usize = 1_000;

/// Loss at distances, each with the share that is lost there. Between two of them it is reckoned along a straight line; nearer
/// than the first it is the first's, farther than the last the last's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, try_from = "Unchecked")]
pub struct Table {
    loss: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    loss: Vec<(f64, f64)>,
}

/// A row that cannot be one.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("loss, row {row}: found {found}, expected {expected}")]
pub struct TableError {
    /// Which, from 1; 0 of all together.
    row: usize,
    found: String,
    expected: &'static str,
}

impl TryFrom<Unchecked> for Table {
    type Error = TableError;
    fn try_from(unchecked: Unchecked) -> Result<Self, TableError> {
        Self::new(unchecked.loss)
    }
}

impl Table {
    /// A table of these rows: metres and share.
    ///
    /// # Errors
    /// The first row whose distance does not rise or whose share is none; no row, or too many.
    pub fn new(loss: Vec<(f64, f64)>) -> Result<Self, TableError> {
        if loss.is_empty() || loss.len() > ROWS_MAX {
            let found = format!("{} rows", loss.len());
            return Err(TableError { row: 0, found, expected: "1 to 1000" });
        }
        let mut before_m = f64::NEG_INFINITY;
        for (row, &(distance_m, share)) in (1..).zip(&loss) {
            if !(distance_m.is_finite() && distance_m >= 0.0 && distance_m > before_m) {
                let found = format!("{distance_m} m");
                return Err(TableError { row, found, expected: "metres, more than in the row before" });
            }
            if !(0.0..=1.0).contains(&share) {
                return Err(TableError { row, found: share.to_string(), expected: "a share of 0 to 1" });
            }
            before_m = distance_m;
        }
        Ok(Self { loss })
    }

    /// The rows: metres and share lost.
    pub fn rows(&self) -> &[(f64, f64)] {
        &self.loss
    }

    /// The text of its file.
    pub fn to_toml(&self) -> String {
        let row = |(distance_m, share): &(f64, f64)| format!("    [{distance_m:.1}, {share:.6}],\n");
        format!("loss = [\n{}]\n", self.loss.iter().map(row).collect::<String>())
    }
}

impl std::str::FromStr for Table {
    type Err = String;
    /// The text of a file. The error names line, found and expected.
    fn from_str(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let table = Table::new(vec![(0.0, 0.0), (100.5, 0.25), (1_350.0, 1.0)]).unwrap();
        assert_eq!(table.to_toml().parse(), Ok(table));
    }

    #[test]
    fn what_is_no_table_is_refused_with_what_was_expected() {
        for (text, words) in [
            ("", "missing field `loss`"),
            ("loss = []", "found 0 rows"),
            ("loss = [[0, 0], [0, 0]]", "row 2: found 0 m"),
            ("loss = [[-1, 0]]", "row 1: found -1 m"),
            ("loss = [[nan, 0]]", "found NaN m"),
            ("loss = [[0, 1.5]]", "found 1.5, expected a share"),
            ("loss = [[0, nan]]", "expected a share"),
            ("loss = [[0]]", "loss"),
            ("los = []", "unknown field"),
        ] {
            let message = text.parse::<Table>().unwrap_err();
            assert!(message.contains(words), "{text}: {message}");
        }
    }
}
