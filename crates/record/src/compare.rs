//! Real flights next to the same flights of the bench, in the form of thesis Table 5.5: for each aircraft the flight time
//! with and without the protocol and its overhead, once of each, and how far apart the two paths are.

use std::fmt::Write as _;

use wingbeat_geo::DVec3;

use crate::export::track::{Track, tracks};
use crate::reader::Log;

/// A log, and how messages name it.
pub type Named = (String, Log);

/// The flights that are compared, a log for each aircraft.
#[derive(Debug, Default)]
pub struct Flights {
    /// Real, with the protocol.
    pub real: Vec<Named>,
    /// On the bench, with the protocol.
    pub bench: Vec<Named>,
    /// Real, without it; none where there is no such flight.
    pub real_off: Vec<Named>,
    /// On the bench, without it.
    pub bench_off: Vec<Named>,
}

/// Why flights are not compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CompareError {
    /// A log for each aircraft is asked for.
    #[error(
        "{second}: found a second log of aircraft {aircraft} (the first is {first}), expected one flight of each"
    )]
    Twice {
        /// Its id.
        aircraft: String,
        /// One log.
        first: String,
        /// Another.
        second: String,
    },
    /// An aircraft has no counterpart.
    #[error("{set}: found no log of aircraft {aircraft}, which flies in {of}, expected one")]
    Missing {
        /// Where it is missing.
        set: &'static str,
        /// Its id.
        aircraft: String,
        /// The log that has it.
        of: String,
    },
    /// Other aircraft, and not as many.
    #[error("found {real} real aircraft and {bench} on the bench, expected as many of each")]
    Counts {
        /// Real ones.
        real: usize,
        /// On the bench.
        bench: usize,
    },
    /// Nothing flies in it.
    #[error("{0}: found no time with armed motors and a position, expected a flight")]
    NoFlight(String),
}

/// One aircraft.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name in the real flight.
    pub name: String,
    /// Flight times on the bench with the protocol and without it, seconds.
    pub bench_s: (f64, Option<f64>),
    /// The same of the real flights.
    pub real_s: (f64, Option<f64>),
    /// Distance of the real path from the bench's, mean and greatest, metres.
    pub apart_m: (f64, f64),
}

fn aircraft(log: &Log) -> &str {
    log.about.get("aircraft").map_or("unknown", String::as_str)
}

/// Pairs each real flight with its counterparts. Aircraft of the same ids are the same; where the bench flew others, they
/// follow each other in the same order.
///
/// # Errors
/// An aircraft without counterpart, one that is there twice, or one that does not fly.
pub fn rows(flights: &Flights) -> Result<Vec<Row>, CompareError> {
    let Flights { real, bench, real_off, bench_off } = flights;
    for set in [real, bench, real_off, bench_off] {
        for (i, (second, log)) in set.iter().enumerate() {
            if let Some((first, _)) = set[..i].iter().find(|(_, other)| aircraft(other) == aircraft(log)) {
                let (first, second) = (first.clone(), second.clone());
                return Err(CompareError::Twice { aircraft: aircraft(log).into(), first, second });
            }
        }
    }
    if real.len() != bench.len() {
        return Err(CompareError::Counts { real: real.len(), bench: bench.len() });
    }
    let is_by_id = real.iter().all(|(_, log)| find(bench, log).is_some());
    let mut rows = Vec::new();
    for ((real_name, log), in_order) in real.iter().zip(bench) {
        let (bench_name, simulated) = if is_by_id { find(bench, log).unwrap_or(in_order) } else { in_order };
        let mut both = tracks([log, simulated]).into_iter();
        let (Some(flown), Some(benched)) = (both.next(), both.next()) else { continue };
        let real_s = (time_s(real_name, &flown)?, time_without_s("--real-off", real_off, real_name, log)?);
        let without_s = time_without_s("--bench-off", bench_off, bench_name, simulated)?;
        let bench_s = (time_s(bench_name, &benched)?, without_s);
        let apart_m = apart_m(&flown, &benched);
        rows.push(Row { name: flown.name, bench_s, real_s, apart_m });
    }
    Ok(rows)
}

fn find<'a>(set: &'a [Named], log: &Log) -> Option<&'a Named> {
    set.iter().find(|(_, other)| aircraft(other) == aircraft(log))
}

fn time_s(name: &str, track: &Track) -> Result<f64, CompareError> {
    if track.armed_s > 0.0 && !track.fixes.is_empty() {
        Ok(track.armed_s)
    } else {
        Err(CompareError::NoFlight(name.into()))
    }
}

fn time_without_s(
    set: &'static str,
    logs: &[Named],
    of: &str,
    log: &Log,
) -> Result<Option<f64>, CompareError> {
    if logs.is_empty() {
        return Ok(None);
    }
    let Some((name, found)) = find(logs, log) else {
        return Err(CompareError::Missing { set, aircraft: aircraft(log).into(), of: of.into() });
    };
    tracks([found]).first().map(|track| time_s(name, track)).transpose()
}

/// Mean and greatest distance of the fixes of one track from the path of the other.
fn apart_m(track: &Track, path: &Track) -> (f64, f64) {
    let legs: Vec<[DVec3; 2]> = match path.fixes.as_slice() {
        [] => return (0.0, 0.0),
        [one] => vec![[one.local_m, one.local_m]],
        fixes => fixes.windows(2).map(|pair| [pair[0].local_m, pair[1].local_m]).collect(),
    };
    let (mut sum_m, mut most_m): (f64, f64) = (0.0, 0.0);
    for fix in &track.fixes {
        let near_m = legs.iter().map(|leg| from_leg_m(fix.local_m, *leg)).fold(f64::INFINITY, f64::min);
        sum_m += near_m;
        most_m = most_m.max(near_m);
    }
    (sum_m / track.fixes.len().max(1) as f64, most_m)
}

fn from_leg_m(point: DVec3, [from, to]: [DVec3; 2]) -> f64 {
    let along = to - from;
    let length_squared = along.length_squared();
    let part =
        if length_squared > 0.0 { ((point - from).dot(along) / length_squared).clamp(0.0, 1.0) } else { 0.0 };
    point.distance(from + along * part)
}

/// The table: minutes and seconds.
pub fn table(scenario: &str, rows: &[Row]) -> String {
    let widest = |texts: &mut dyn Iterator<Item = usize>, least: usize| texts.max().unwrap_or(0).max(least);
    let wide = widest(&mut std::iter::once(scenario.chars().count()), "scenario".len());
    let names: Vec<String> =
        rows.iter().enumerate().map(|(i, row)| format!("{}: {}", i + 1, row.name)).collect();
    let name_wide = widest(&mut names.iter().map(|name| name.chars().count()), "UAV".len());
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{:wide$}  {:name_wide$}  {:^23}  {:^23}  {:^15}\n{:wide$}  {:name_wide$}  {:>7} {:>7} {:>7}  {:>7} {:>7} {:>7}  {:>7} {:>7}",
        "",
        "",
        "simulation",
        "real",
        "paths apart (m)",
        "scenario",
        "UAV",
        "on",
        "off",
        "Δt",
        "on",
        "off",
        "Δt",
        "mean",
        "most",
    );
    for (i, (row, name)) in rows.iter().zip(&names).enumerate() {
        let scenario = if i == 0 { scenario } else { "" };
        let _ = write!(text, "{scenario:wide$}  {name:name_wide$}");
        for (on_s, off_s) in [row.bench_s, row.real_s] {
            let or_none = |s: Option<f64>| s.map_or("-".into(), minutes);
            let over_s = off_s.map(|off_s| on_s - off_s);
            let _ = write!(text, "  {:>7} {:>7} {:>7}", minutes(on_s), or_none(off_s), or_none(over_s));
        }
        let _ = writeln!(text, "  {:>7.2} {:>7.2}", row.apart_m.0, row.apart_m.1);
    }
    text
}

/// `3:56.2`.
fn minutes(seconds: f64) -> String {
    let tenths = (seconds.abs() * 10.0).round() as u64;
    let sign = if seconds < 0.0 && tenths > 0 { "-" } else { "" };
    format!("{sign}{}:{:02}.{}", tenths / 600, tenths / 10 % 60, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_published_form() {
        let row =
            |name: &str, bench_s, real_s| Row { name: name.into(), bench_s, real_s, apart_m: (0.5, 2.25) };
        let rows = [
            row("Quadcopter", (233.0, Some(205.0)), (236.0, Some(201.0))),
            row("Hexacopter", (190.04, None), (179.0, Some(179.46))),
        ];
        let table = table("1", &rows);
        let words: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[1], ["scenario", "UAV", "on", "off", "Δt", "on", "off", "Δt", "mean", "most"]);
        let first = [
            "1",
            "1:",
            "Quadcopter",
            "3:53.0",
            "3:25.0",
            "0:28.0",
            "3:56.0",
            "3:21.0",
            "0:35.0",
            "0.50",
            "2.25",
        ];
        assert_eq!(words[2], first, "{table}");
        let second = ["2:", "Hexacopter", "3:10.0", "-", "-", "2:59.0", "2:59.5", "-0:00.5", "0.50", "2.25"];
        assert_eq!(words[3], second, "{table}");
    }

    #[test]
    fn distances_from_a_leg_end_at_its_ends() {
        let leg = [DVec3::ZERO, DVec3::new(10.0, 0.0, 0.0)];
        for (point, expected_m) in [((5.0, 3.0), 3.0), ((-4.0, 3.0), 5.0), ((13.0, 4.0), 5.0)] {
            assert_eq!(from_leg_m(DVec3::new(point.0, point.1, 0.0), leg), expected_m);
        }
        assert_eq!(from_leg_m(DVec3::new(0.0, 2.0, 0.0), [DVec3::ZERO; 2]), 2.0);
    }
}
