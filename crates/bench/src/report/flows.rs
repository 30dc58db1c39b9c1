//! What traffic beside that of the aircraft brings by time, a column for each medium, and how far the methods of coupling ns-3 are
//! from our own: DUSC's Figures 5b and 7 (Park et al. 2020).

use wingbeat_cosim::method::Method;
use wingbeat_sim::medium::{FLOW_BIN, Lateness};

use super::{Row, line, mean};
use crate::flight::FlightResult;

/// How long a line of the table is, in bins: 10 s.
const LINE_BINS: usize = 50;
/// And a second.
const SECOND_BINS: usize = 5;

/// kbit/s of all flows of a flight in each bin.
fn curve(flight: &FlightResult) -> Vec<f64> {
    let bins = flight.flows.iter().map(|flow| flow.bytes_by_bin.len()).max().unwrap_or_default();
    let kbit_s = |bytes: u32| f64::from(bytes) * 8.0 / 1e3 / FLOW_BIN.as_secs_f64();
    let of =
        |bin| flight.flows.iter().filter_map(|flow| flow.bytes_by_bin.get(bin)).map(|b| kbit_s(*b)).sum();
    (0..bins).map(of).collect()
}

/// The mean of some flights' curves.
fn curves(flights: &[FlightResult]) -> Vec<f64> {
    let all: Vec<Vec<f64>> = flights.iter().map(curve).collect();
    let bins = all.iter().map(Vec::len).max().unwrap_or_default();
    (0..bins).map(|bin| mean(all.iter().map(|one| one.get(bin).copied().unwrap_or_default()))).collect()
}

fn at(curve: &[f64], bin: usize) -> f64 {
    curve.get(bin).copied().unwrap_or_default()
}

/// Bins in which two curves differ.
fn unlike(one: &[f64], other: &[f64]) -> usize {
    (0..one.len().max(other.len())).filter(|&bin| at(one, bin) != at(other, bin)).count()
}

/// When a curve, once at its most, falls under half of that, and when it is over half again, seconds; each second's mean counts.
fn under_half(curve: &[f64]) -> Option<(f64, Option<f64>)> {
    let seconds: Vec<f64> = curve.chunks(SECOND_BINS).map(|bins| mean(bins.iter().copied())).collect();
    let half = seconds.iter().copied().fold(0.0, f64::max) / 2.0;
    let rose = seconds.iter().position(|second| *second > half)?;
    let fell = rose + seconds[rose..].iter().position(|second| *second <= half)?;
    let back = seconds[fell..].iter().position(|second| *second > half).map(|after| (fell + after) as f64);
    Some((fell as f64, back))
}

/// Routing and method of a row.
fn medium(row: &Row) -> Option<(&'static str, Method)> {
    row.scenario.as_ref()?.ns3.as_ref().map(|config| (config.routing.name(), config.method))
}

/// The table.
pub fn table(rows: &[Row]) -> String {
    let mut t = String::new();
    let names: Vec<String> = rows
        .iter()
        .map(|row| {
            medium(row).map_or_else(|| "-".to_owned(), |(routing, m)| format!("{routing} {}", m.name()))
        })
        .collect();
    let all: Vec<Vec<f64>> = rows.iter().map(|row| curves(&row.flights)).collect();
    // Until the flight ended, or ns-3 where it passed more time.
    let offered = |row: &Row, bins: usize| {
        let flown = row.flights.iter().map(|flight| flight.duration.as_secs_f64()).fold(0.0, f64::max);
        let end_s = flown.max(bins as f64 * FLOW_BIN.as_secs_f64());
        let flows = row.scenario.iter().flat_map(|s| &s.ns3).flat_map(|ns3| &ns3.flows);
        flows.map(|flow| flow.kbit_s * (flow.seconds.1.min(end_s) - flow.seconds.0).max(0.0)).sum::<f64>()
    };
    line(
        &mut t,
        "flight            medium              flights  failed  received  of offered  bins unlike  under half of its most  \
         receptions  dated late, mean / most",
    );
    for ((row, name), curve) in rows.iter().zip(&names).zip(&all) {
        let reference = rows.iter().position(|other| {
            other.mission == row.mission
                && medium(other).zip(medium(row)).is_some_and(|((a, method), (b, own))| {
                    a == b && method == Method::NextEvent && own != Method::NextEvent
                })
        });
        let kbit = curve.iter().sum::<f64>() * FLOW_BIN.as_secs_f64();
        let unlike = reference.map_or_else(
            || "-".to_owned(),
            |of| format!("{} of {}", unlike(&all[of], curve), all[of].len().max(curve.len())),
        );
        let low = match under_half(curve) {
            Some((fell_s, Some(back_s))) => format!("{fell_s:.0} to {back_s:.0} s"),
            Some((fell_s, None)) => format!("from {fell_s:.0} s"),
            None => "never".to_owned(),
        };
        let offered_kbit = offered(row, curve.len());
        let dated =
            row.flights.iter().filter_map(|f| f.lateness).fold(Lateness::default(), |sum, one| Lateness {
                receptions: sum.receptions + one.receptions,
                sum_us: sum.sum_us + one.sum_us,
                most_us: sum.most_us.max(one.most_us),
            });
        line(
            &mut t,
            &format!(
                "{:<17} {name:<19} {:>7}  {:>6}  {:>5.1} Mbit  {:>8.1} %  {unlike:>11}  {low:>22}  {:>10}  {:.3} / {:.3} ms",
                row.name,
                row.flights.len(),
                row.flights.iter().filter(|f| !f.succeeded()).count(),
                kbit * 1e-3,
                if offered_kbit > 0.0 { kbit / offered_kbit * 100.0 } else { 0.0 },
                dated.receptions,
                dated.mean_ms(),
                dated.most_us as f64 * 1e-3,
            ),
        );
    }
    let titles: Vec<String> = names.iter().map(|name| format!("{name:>18}")).collect();
    line(&mut t, "kbit/s of all flows together, the mean of each 10 s");
    line(&mut t, &format!("   from {}", titles.join("  ")));
    let bins = all.iter().map(Vec::len).max().unwrap_or_default();
    for first in (0..bins).step_by(LINE_BINS) {
        let cell = |curve: &Vec<f64>| {
            format!("{:>18.0}", mean((first..first + LINE_BINS).map(|bin| at(curve, bin))))
        };
        let cells: Vec<String> = all.iter().map(cell).collect();
        line(&mut t, &format!("{:>5.0} s {}", first as f64 * FLOW_BIN.as_secs_f64(), cells.join("  ")));
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_that_comes_later_falls_and_rises_later() {
        let bins = |low: std::ops::Range<usize>| {
            (0..200).map(move |bin| if low.contains(&bin) { 100.0 } else { 500.0 })
        };
        let (one, late): (Vec<f64>, Vec<f64>) = (bins(50..100).collect(), bins(60..120).collect());
        assert_eq!((unlike(&one, &one), unlike(&one, &late)), (0, 30));
        assert_eq!(
            (under_half(&one), under_half(&late)),
            (Some((10.0, Some(20.0))), Some((12.0, Some(24.0))))
        );
        assert_eq!((under_half(&one[..80]), under_half(&one[..40])), (Some((10.0, None)), None));
    }
}
