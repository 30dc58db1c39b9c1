//! What traffic beside that of the aircraft brings by time, a column for each medium, and how far the methods of coupling ns-3 are
//! from our own: DUSC's Figures 5b and 7 (Park et al. 2020).

use wingbeat_cosim::method::Method;
use wingbeat_sim::medium::{FLOW_BIN, Lateness};

use super::{Row, line, mean};
use crate::flight::FlightResult;

/// How long a line of the table is, in bins: 10 s.
const LINE_BINS: usize = 50;
/// No method is later than so many bins: 5 min.
const LATE_BINS_MOST: usize = 1500;

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

/// Bins in which two curves differ, and the shift of the second, in bins, by which they differ least.
fn differ(one: &[f64], other: &[f64]) -> (usize, usize) {
    let bins = one.len().max(other.len());
    let unlike = (0..bins).filter(|&bin| at(one, bin) != at(other, bin)).count();
    let by = |late: usize| (0..bins).map(|bin| (at(one, bin) - at(other, bin + late)).abs()).sum::<f64>();
    let late = (0..LATE_BINS_MOST.min(bins)).min_by(|a, b| by(*a).total_cmp(&by(*b)));
    (unlike, late.unwrap_or_default())
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
    let offered = |row: &Row| {
        let flows = row.scenario.iter().flat_map(|s| &s.ns3).flat_map(|ns3| &ns3.flows);
        flows.map(|flow| flow.kbit_s * (flow.seconds.1 - flow.seconds.0)).sum::<f64>()
    };
    line(
        &mut t,
        "flight            medium              flights  failed  received  of offered  bins unlike    late  \
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
        let (unlike, late) = match reference {
            Some(of) => {
                let (unlike, late) = differ(&all[of], curve);
                (
                    format!("{unlike} of {}", all[of].len().max(curve.len())),
                    format!("{:.1} s", late as f64 * FLOW_BIN.as_secs_f64()),
                )
            }
            None => ("-".to_owned(), "-".to_owned()),
        };
        let dated =
            row.flights.iter().filter_map(|f| f.lateness).fold(Lateness::default(), |sum, one| Lateness {
                receptions: sum.receptions + one.receptions,
                sum_us: sum.sum_us + one.sum_us,
                most_us: sum.most_us.max(one.most_us),
            });
        line(
            &mut t,
            &format!(
                "{:<17} {name:<19} {:>7}  {:>6}  {:>5.1} Mbit  {:>8.1} %  {unlike:>11}  {late:>6}  {:>10}  {:.3} / {:.3} ms",
                row.name,
                row.flights.len(),
                row.flights.iter().filter(|f| !f.succeeded()).count(),
                kbit * 1e-3,
                if offered(row) > 0.0 { kbit / offered(row) * 100.0 } else { 0.0 },
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
    fn a_curve_that_comes_later_is_found_as_late_as_it_is() {
        let one: Vec<f64> = (0..100).map(|bin| if (20..40).contains(&bin) { 500.0 } else { 0.0 }).collect();
        let late: Vec<f64> = [0.0; 7].into_iter().chain(one.iter().copied()).collect();
        assert_eq!(differ(&one, &one), (0, 0));
        // Seven bins at its begin, and seven at its end.
        assert_eq!(differ(&one, &late), (14, 7));
    }
}
