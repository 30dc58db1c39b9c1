//! What several networks made of what was transmitted in a flight: a row for each.

use wingbeat_sim::medium::Lateness;

use super::{Row, line};
use crate::flight::FlightResult;
use crate::saturation::table::becomes;

/// The table.
pub fn table(rows: &[Row]) -> String {
    let mut t = String::new();
    let width = rows.iter().map(|row| row.mission.chars().count()).max().unwrap_or_default().max(18);
    line(
        &mut t,
        &format!(
            "{:<width$}  flights  failed      sent  received  of possible   delay mean / most     flows received",
            "flight and network"
        ),
    );
    for row in rows {
        let sum = |of: &dyn Fn(&FlightResult) -> u64| row.flights.iter().map(of).sum::<u64>();
        let (sent, delivered) = (sum(&|f| f.radio.sent), sum(&|f| f.radio.delivered));
        let possible = sent * (row.aircraft.max(1) as u64 - 1);
        let delays =
            row.flights.iter().filter_map(|f| f.delays).fold(Lateness::default(), |sum, one| Lateness {
                receptions: sum.receptions + one.receptions,
                sum_us: sum.sum_us + one.sum_us,
                most_us: sum.most_us.max(one.most_us),
            });
        let bytes = sum(&|f| f.flows.iter().map(|flow| flow.bytes()).sum());
        line(
            &mut t,
            &format!(
                "{:<width$}  {:>7}  {:>6}  {sent:>8}  {delivered:>8}  {:>9.1} %  {:>7.3} / {:>7.3} ms  {}",
                row.mission,
                row.flights.len(),
                row.flights.iter().filter(|f| !f.succeeded()).count(),
                delivered as f64 / possible.max(1) as f64 * 100.0,
                delays.mean_ms(),
                delays.most_us as f64 * 1e-3,
                if row.flights.iter().any(|f| !f.flows.is_empty()) {
                    format!("{:>8.1} Mbit", bytes as f64 * 8e-6)
                } else {
                    "       -".to_owned()
                },
            ),
        );
        let media = row.flights.iter().filter_map(|f| f.medium.as_ref());
        if media.clone().next().is_some() {
            becomes(media, &mut |text| line(&mut t, &text));
        }
    }
    t
}
