//! The time-outs of the protocols against a channel: false alarms per flight hour, and the periods that keep the budget
//! (`wingbeat bench timeouts`, [`wingbeat_protocol::loss_budget`]).

use std::fmt::{self, Write as _};

use wingbeat_protocol::loss_budget::{Consequence, ENDS_PER_HOUR, Links, Timeout, timeouts};
use wingbeat_sim::channel::Model;

/// Distances of the second table, in metres.
const DISTANCES_M: [f64; 6] = [100.0, 200.0, 300.0, 400.0, 500.0, 700.0];
/// Refreshes of the second table, in milliseconds.
const REFRESHES_MS: [u64; 4] = [250, 500, 1_000, 2_000];

/// A time-out on a channel.
#[derive(Clone, Copy, Debug)]
struct Row {
    timeout: Timeout,
    links: Links,
}

impl Row {
    fn of(timeout: Timeout, channel: &Model) -> Self {
        Self { timeout, links: timeout.links(channel.loss(timeout.distance_m)) }
    }

    fn false_alarms_per_hour(&self) -> f64 {
        self.links.false_alarms_per_hour(self.timeout.default)
    }

    fn most_per_hour(&self) -> f64 {
        self.timeout.consequence.most_per_hour(self.timeout.links)
    }

    fn holds(&self) -> bool {
        self.false_alarms_per_hour() <= self.most_per_hour()
    }
}

/// The table.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Row>,
    channel: Model,
}

impl Table {
    /// Returns the table of all time-outs on a channel.
    pub fn new(channel: Model) -> Self {
        Self { rows: timeouts().map(|timeout| Row::of(timeout, &channel)).collect(), channel }
    }

    /// Returns whether each default holds its budget.
    pub fn holds(&self) -> bool {
        self.rows.iter().all(Row::holds)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<28} {:<17} {:>9} {:>8} {:>6} {:>7} {:>7} {:>7} {:>13} {:>9} {:>8}",
            "time-out",
            "awaits",
            "period ms",
            "default",
            "links",
            "metres",
            "loss %",
            "in row",
            "false alarms",
            "most",
            "fewest"
        )?;
        for row in &self.rows {
            let Row { timeout, links } = row;
            let fewest = links.periods(row.most_per_hour()).map_or("none".to_owned(), |n| n.to_string());
            writeln!(
                f,
                "{:<28} {:<17} {:>9} {:>6.1} s {:>6} {:>7.0} {:>7.2} {:>7} {:>11.1e}/h {:>7.0e}/h {:>8}{}",
                timeout.name,
                timeout.awaits,
                timeout.period.as_millis(),
                timeout.default.as_secs_f64(),
                timeout.links,
                timeout.distance_m,
                links.loss * 100.0,
                links.losses_in_a_row(timeout.default),
                row.false_alarms_per_hour(),
                row.most_per_hour(),
                fewest,
                if row.holds() { "" } else { "  OVER BUDGET" }
            )?;
        }
        let mut head = String::new();
        for distance_m in DISTANCES_M {
            write!(head, " {distance_m:>7.0} m")?;
        }
        writeln!(
            f,
            "\nfewest refreshes after which a leader is lost, 8 followers, {ENDS_PER_HOUR} false alarms per hour"
        )?;
        writeln!(f, "{:<12}{head}", "refresh ms")?;
        let count = timeouts().filter(|t| t.consequence == Consequence::Ends).map(|t| t.links).max();
        for refresh_ms in REFRESHES_MS {
            write!(f, "{refresh_ms:<12}")?;
            for distance_m in DISTANCES_M {
                let period = std::time::Duration::from_millis(refresh_ms);
                let loss = self.channel.loss(distance_m);
                let links = Links { loss, period, count: count.unwrap_or(1) };
                let fewest = links.periods(ENDS_PER_HOUR).map_or("none".to_owned(), |n| n.to_string());
                write!(f, " {fewest:>9}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_holds_its_loss_budget_on_the_measured_channel() {
        let table = Table::new(Model::Ieee80211a);
        let over: Vec<&Row> = table.rows.iter().filter(|row| !row.holds()).collect();
        assert!(over.is_empty(), "{table}");
        assert!(table.holds());
    }

    #[test]
    fn two_refreshes_are_over_the_budget() {
        let mut table = Table::new(Model::Ieee80211a);
        table.rows[0].timeout.default = table.rows[0].timeout.period * 2;
        assert!(!table.holds());
        // One loss in a row: more than a thousand false alarms per hour for eight followers.
        assert!(table.rows[0].false_alarms_per_hour() > 1_000.0);
        assert!(table.to_string().contains("OVER BUDGET"));
    }
}
