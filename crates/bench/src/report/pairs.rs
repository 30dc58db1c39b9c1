//! Thesis Tables 5.3 and 5.4 and ours: what MBCAP costs two aircraft that meet.

use super::{Row, line};
use crate::scenario::Variant;
use wingbeat_linktest::statistics::Summary;

/// Thesis Tables 5.3 and 5.4 as data.
const PUBLISHED: &str = include_str!("../../published/mbcap-pairs.csv");

/// What the thesis prints of one aircraft in one flight: with, without, difference.
fn published(flight: &str, uav: usize, variant: Variant) -> Option<(String, [Option<f64>; 3])> {
    let uav = uav.to_string();
    let mut lines = PUBLISHED.lines().filter(|l| !l.starts_with('#')).skip(1);
    let fields = lines.find_map(|l| {
        let fields: Vec<&str> = l.split(',').collect();
        (fields.first() == Some(&flight) && fields.get(1) == Some(&&*uav)).then_some(fields)
    })?;
    let from = match variant {
        Variant::Off | Variant::Sweep => return None,
        Variant::Mbcap => 3,
        Variant::MbcapE => 6,
    };
    let figures = [0, 1, 2].map(|i| fields.get(from + i).and_then(|f| f.parse().ok()));
    Some(((*fields.get(2)?).to_owned(), figures))
}

/// One block per variant, a line per flight and aircraft.
pub fn table(rows: &[Row]) -> String {
    let mut t = String::new();
    let flown = |variant| rows.iter().any(|r| r.variant == Some(variant));
    for variant in [Variant::Mbcap, Variant::MbcapE].into_iter().filter(|&v| flown(v)) {
        block(&mut t, rows, variant);
    }
    if t.is_empty() {
        block(&mut t, rows, Variant::Off);
    }
    t
}

fn block(t: &mut String, rows: &[Row], variant: Variant) {
    line(
        t,
        &format!(
            "{}: seconds from take-off to the ground, with, without, and the difference",
            variant.name()
        ),
    );
    line(
        t,
        "                                        published (worst)       ours, mean             difference",
    );
    line(
        t,
        "flight                      UAV  air         with without diff.    with  without    worst    mean  separation",
    );
    for row in rows.iter().filter(|r| r.variant == Some(variant)) {
        let off = rows.iter().find(|r| r.name == row.name && r.variant == Some(Variant::Off));
        for uav in 0..row.aircraft {
            let time = |row: &Row| -> Vec<f64> {
                row.flights.iter().filter_map(|f| f.aircraft.get(uav)).map(|a| a.flight_time_s).collect()
            };
            let (with, without) = (time(row), off.map_or(Vec::new(), time));
            let added = Summary::of(with.iter().zip(&without).map(|(with, without)| with - without));
            let (air, thesis) = published(&row.name, uav + 1, variant).unwrap_or_default();
            let show = |v: Option<f64>, digits| v.map_or_else(|| "-".into(), |v| format!("{v:.digits$}"));
            let mean = |v: &[f64]| show(Summary::of(v.iter().copied()).map(|s| s.mean), 1);
            line(
                t,
                &format!(
                    "{:<27} {:>3}  {air:<9} {:>6} {:>7} {:>5}  {:>6}  {:>7}  {:>7} {:>7}  {}",
                    row.name,
                    uav + 1,
                    show(thesis[0], 0),
                    show(thesis[1], 0),
                    show(thesis[2], 0),
                    mean(&with),
                    mean(&without),
                    show(added.map(|a| a.range.1), 1),
                    show(added.map(|a| a.mean), 1),
                    if uav == 0 { separation(row) } else { String::new() },
                ),
            );
        }
    }
    let flights = || rows.iter().filter(|r| r.variant == Some(variant)).flat_map(|r| &r.flights);
    let collided = flights().filter(|f| f.encounters.iter().any(|e| e.closest_m < super::SOFT_M)).count();
    let unfinished = flights().filter(|f| !f.aircraft.iter().all(|a| a.completed)).count();
    line(
        t,
        &format!(
            "flights {}, nearer than {} m {collided}, not finished {unfinished}\n",
            flights().count(),
            super::SOFT_M
        ),
    );
}

/// The closest that the two came in any of the flights.
fn separation(row: &Row) -> String {
    let least = row.flights.iter().flat_map(|f| &f.encounters).map(|e| e.closest_m).reduce(f64::min);
    least.map_or_else(|| format!("more than {} m", wingbeat_sim::encounters::NEAR_M), |m| format!("{m:.1} m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_tables_are_all_there() {
        let flights: Vec<&str> = PUBLISHED
            .lines()
            .filter(|l| !l.starts_with('#'))
            .skip(1)
            .filter_map(|l| l.split(',').next())
            .collect();
        assert_eq!(flights.len(), 20);
        let plan = include_str!("../../plans/mbcap-pairs.toml");
        for flight in flights {
            assert!(plan.contains(&format!("name = \"{flight}\"")), "{flight}");
            for (variant, least_s) in [(Variant::Mbcap, 18.0), (Variant::MbcapE, 15.0)] {
                let (_, [_, _, added]) = published(flight, 2, variant).unwrap();
                assert!((least_s..=29.0).contains(&added.unwrap()), "{flight}");
            }
        }
        // Differences add up where all three are printed, to the second that they are rounded to.
        for uav in [1, 2] {
            let (_, [on, off, added]) = published("3 face to face", uav, Variant::MbcapE).unwrap();
            assert!((on.unwrap() - off.unwrap() - added.unwrap()).abs() <= 1.0);
        }
    }
}
