//! What the values of a plan's axes do to its flights.

use super::{Row, SOFT_M, line};
use crate::flight::FlightResult;
use wingbeat_linktest::statistics::Summary;

/// Separations beyond this are shown as such, metres.
const FAR_M: f64 = 1_000.0;

/// One row per flight and value: the axes' values first, then what was flown.
pub fn table(rows: &[Row]) -> String {
    let settings = |row: &Row| row.scenario.as_ref().map(|s| s.settings.named.clone()).unwrap_or_default();
    let keys: Vec<String> =
        rows.first().map(|row| settings(row).into_iter().map(|s| s.key).collect()).unwrap_or_default();
    let mut t = String::new();
    let titles: String = keys.iter().map(|key| format!("{key}  ")).collect();
    line(
        &mut t,
        &format!(
            "{titles}{:<36} flights  failed  {:>8}  {:>7}  {:>10} {:>8} {:>9}  {:>14}",
            "flight", "time", "stops", "separation", "least", "below 5 m", "datagrams sent"
        ),
    );
    for row in rows {
        let values: String = settings(row)
            .iter()
            .map(|s| format!("{:<width$}  ", s.value.to_string(), width = s.key.len()))
            .collect();
        let flown = row.scenario.as_ref().map_or_else(String::new, |s| match s.variant() {
            Some(variant) => format!("{}, {}", s.name, variant.name()),
            None => s.name.clone(),
        });
        let mean =
            |of: fn(&FlightResult) -> f64| Summary::of(row.flights.iter().map(of)).map_or(0.0, |s| s.mean);
        let separation = Summary::of(row.flights.iter().map(|f| f.swarm.separation_min_m.min(FAR_M)));
        let (mean_m, least_m) = separation.map_or((0.0, 0.0), |s| (s.mean, s.range.0));
        let failed = row.flights.iter().filter(|f| !f.succeeded()).count();
        let near = row.flights.iter().filter(|f| f.swarm.separation_min_m < SOFT_M).count();
        line(
            &mut t,
            &format!(
                "{values}{flown:<36} {:>7}  {failed:>6}  {:>6.1} s  {:>7.1}  {mean_m:>8.2} m {least_m:>6.2} m {near:>9}  {:>14.0}",
                row.flights.len(),
                mean(|f| f.aircraft.iter().map(|a| a.flight_time_s).fold(0.0, f64::max)),
                mean(FlightResult::stops),
                mean(|f| f.radio.sent as f64),
            ),
        );
    }
    t
}
