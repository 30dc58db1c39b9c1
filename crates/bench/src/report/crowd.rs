//! Thesis Tables 5.6 and 5.7 and ours: a crowd on random missions.

use super::{HARD_M, Row, SOFT_M, line};
use crate::flight::FlightResult;
use crate::scenario::Variant;
use wingbeat_linktest::statistics::Summary;
use wingbeat_sim::encounters::{Encounter, NEAR_M};
use wingbeat_sim::observer::AircraftFigures;

/// Thesis Tables 5.6 and 5.7 as data.
const PUBLISHED: &str = include_str!("../../published/mbcap-crowd.csv");
/// The histogram's bins, metres.
const BIN_M: f64 = 5.0;
/// Tables 5.7 prints no number of aircraft; 100 is what its figures agree with best.
const TABLE_5_7_AIRCRAFT: usize = 100;

fn published(variant: Variant, aircraft: usize, quantity: &str) -> Option<f64> {
    PUBLISHED.lines().filter(|l| !l.starts_with('#')).skip(1).find_map(|l| {
        let fields: Vec<&str> = l.split(',').collect();
        let [v, n, q, value] = fields[..] else { return None };
        let here = if n.is_empty() { aircraft == TABLE_5_7_AIRCRAFT } else { n.parse() == Ok(aircraft) };
        (v == variant.name() && here && q == quantity).then(|| value.parse().ok())?
    })
}

/// One block per number of aircraft and variant, and the histograms.
pub fn table(rows: &[Row]) -> String {
    let mut t = String::new();
    for row in rows {
        let off = rows.iter().find(|r| r.aircraft == row.aircraft && r.variant == Some(Variant::Off));
        block(&mut t, row, off);
    }
    histogram(&mut t, rows);
    t
}

fn count(flight: &FlightResult, near: impl Fn(&&Encounter) -> bool) -> f64 {
    flight.encounters.iter().filter(near).count() as f64
}

/// One line of a block.
struct Line<'a> {
    t: &'a mut String,
    row: &'a Row,
    variant: Variant,
}

impl Line<'_> {
    /// A quantity of each flight, under the name that the published data has for it.
    fn of(&mut self, text: &str, name: &str, counts: bool, each: impl Fn(&FlightResult) -> Option<f64>) {
        let Some(summary) = Summary::of(self.row.flights.iter().filter_map(each)) else { return };
        let spread = if counts { summary.spread_of_counts() } else { summary.spread() };
        let published =
            published(self.variant, self.row.aircraft, name).map_or_else(|| "-".into(), |p| format!("{p}"));
        line(self.t, &format!("  {text:<42} {published:>9} {:>10.2} {spread}", summary.mean));
    }
}

fn block(t: &mut String, row: &Row, off: Option<&Row>) {
    let Some(variant) = row.variant else { return };
    line(t, &format!("{} aircraft, {}, {} flights", row.aircraft, variant.name(), row.flights.len()));
    line(
        t,
        "                                             published       ours  deviation   95 % interval of the mean",
    );
    let mut l = Line { t, row, variant };
    if variant != Variant::Off {
        l.of("risks detected (two stops each)", "risks", true, |f| Some(f.stops() / 2.0));
    }
    let soft_text = if variant == Variant::Off { "collisions expected" } else { "soft collisions" };
    l.of(&format!("{soft_text} (nearer than {SOFT_M} m)"), "soft", true, |f| {
        Some(count(f, |e| e.closest_m < SOFT_M))
    });
    l.of(&format!("hard collisions (nearer than {HARD_M} m)"), "hard", true, |f| {
        Some(count(f, |e| e.closest_m < HARD_M))
    });
    l.of("soft, as the thesis' simulator samples", "", true, |f| Some(count(f, |e| e.sampled_m < SOFT_M)));
    l.of("hard, as the thesis' simulator samples", "", true, |f| Some(count(f, |e| e.sampled_m < HARD_M)));
    l.of("soft, while one of the two was landing", "", true, |f| {
        Some(count(f, |e| e.closest_m < SOFT_M && e.landing))
    });
    l.of("closest of each flight (m)", "", false, |f| {
        f.encounters.iter().map(|e| e.closest_m).reduce(f64::min)
    });
    if variant != Variant::Off {
        l.of("deadlocks avoided", "deadlocks_avoided", true, |f| {
            Some(f.avoidance.iter().map(|a| f64::from(a.deadlocks_solved)).sum())
        });
        l.of("deadlock failures", "deadlock_failures", true, |f| {
            Some(f.avoidance.iter().map(|a| f64::from(a.deadlocks_failed)).sum())
        });
        l.of("moved aside (% of risks)", "aside_percent", false, |f| {
            let asides: f64 = f.avoidance.iter().map(|a| f64::from(a.asides)).sum();
            (f.stops() > 0.0).then(|| 100.0 * asides / (f.stops() / 2.0))
        });
    }
    l.of("aircraft that did not finish", "", true, |f| {
        Some(f.aircraft.iter().filter(|a| !a.completed).count() as f64)
    });
    spread_of(&mut l, "flight time (s)", "flight_time_s", |a| a.flight_time_s);
    spread_of(&mut l, "flight length (m)", "flight_length_m", |a| a.distance_m);
    l.of("speed, mean (m/s)", "speed_m_s_mean", false, |f| {
        let (way, time) =
            f.aircraft.iter().fold((0.0, 0.0), |s, a| (s.0 + a.distance_m, s.1 + a.flight_time_s));
        (time > 0.0).then_some(way / time)
    });
    if let Some(off) = off.filter(|_| variant != Variant::Off) {
        overhead(&mut l, off);
    }
    line(t, "");
}

fn spread_of(l: &mut Line<'_>, text: &str, name: &str, value: impl Fn(&AircraftFigures) -> f64) {
    let summary = |f: &FlightResult| Summary::of(f.aircraft.iter().map(&value));
    l.of(&format!("{text}, min of aircraft"), &format!("{name}_min"), false, |f| Some(summary(f)?.range.0));
    l.of(&format!("{text}, mean"), &format!("{name}_mean"), false, |f| Some(summary(f)?.mean));
    l.of(&format!("{text}, max of aircraft"), &format!("{name}_max"), false, |f| Some(summary(f)?.range.1));
}

/// What the protocol costs, aircraft by aircraft against the same flight without.
fn overhead(l: &mut Line<'_>, off: &Row) {
    let row = l.row;
    let added = |f: &FlightResult, value: fn(&AircraftFigures) -> f64| {
        let place = row.flights.iter().position(|g| std::ptr::eq(f, g))?;
        let without = &off.flights.get(place)?.aircraft;
        Summary::of(f.aircraft.iter().zip(without).map(|(with, without)| value(with) - value(without)))
    };
    let time = |f: &FlightResult| added(f, |a| a.flight_time_s);
    let length = |f: &FlightResult| added(f, |a| a.distance_m);
    l.of("overhead per aircraft, mean (s)", "overhead_s_mean", false, |f| Some(time(f)?.mean));
    l.of("overhead, max of aircraft (s)", "flight_time_s_max_overhead", false, |f| Some(time(f)?.range.1));
    l.of("seconds per risk of an aircraft", "", false, |f| {
        let all = time(f)?;
        (f.stops() > 0.0).then(|| all.mean * all.count as f64 / f.stops())
    });
    l.of("longer way, max of aircraft (m)", "flight_length_m_max_overhead", false, |f| {
        Some(length(f)?.range.1)
    });
}

/// How many encounters of a flight had their closest approach in each bin.
fn histogram(t: &mut String, rows: &[Row]) {
    let bins = (NEAR_M / BIN_M) as usize;
    line(t, "encounters per flight by their closest approach (m)");
    let heads: String = (0..bins)
        .map(|b| format!("{:>9}", format!("{}-{}", b as f64 * BIN_M, (b + 1) as f64 * BIN_M)))
        .collect();
    line(t, &format!("aircraft  protocol{heads}"));
    for row in rows {
        let Some(variant) = row.variant else { continue };
        let of = |b: usize| {
            let all = row.flights.iter().flat_map(|f| &f.encounters);
            let n = all.filter(|e| (e.closest_m / BIN_M) as usize == b).count();
            format!("{:>9.2}", n as f64 / row.flights.len().max(1) as f64)
        };
        let cells: String = (0..bins).map(of).collect();
        line(t, &format!("{:>8}  {:<8}{cells}", row.aircraft, variant.name()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_tables_are_all_there() {
        assert_eq!(published(Variant::MbcapE, 100, "risks"), Some(438.0));
        assert_eq!(published(Variant::MbcapE, 100, "flight_time_s_max_overhead"), Some(553.0));
        assert_eq!(published(Variant::Off, 100, "soft"), Some(84.25));
        assert_eq!(published(Variant::Mbcap, 25, "deadlock_failures"), Some(0.33));
        assert_eq!(published(Variant::Mbcap, 25, "flight_time_s_mean"), None, "printed without a number");
        let lines = PUBLISHED.lines().filter(|l| !l.starts_with('#')).count();
        assert_eq!(lines, 1 + 8 * 5 + 4 + 25 + 4);
    }
}
