//! How well a formation follows: thesis Tables 7.1 and 7.2 and Figures 7.8 to 7.15 and ours.
//!
//! The thesis does not define its maxima and deviations. Its numbers fit the mean over time of each
//! slave: for nine aircraft in line, 50 m apart, maximum over mean is 1.8 and deviation over mean 0.48, and the
//! slaves' distances from the leader (50 to 200 m) have 1.6 and 0.45. That reading stands in the table; samples
//! and the mean over slaves at each time stand below it.

use super::{Row, line, mean};
use crate::scenario::FollowTask;
use wingbeat_geo::formation::Layout;
use wingbeat_sim::following::{Errors, Nearest};
use wingbeat_sim::observer::Spread;

/// Thesis Table 7.1 as data: matrix of nine, 75 m.
const PUBLISHED_REFRESH: &str = include_str!("../../published/followme-refresh.csv");
/// Thesis Table 7.2 as data: nine aircraft, 50 m, one refresh a second.
const PUBLISHED_FORMATIONS: &str = include_str!("../../published/followme-formations.csv");

/// Mean, maximum and deviation of the formation error, and of the global error, metres.
type Published = [f64; 6];

fn published(task: &FollowTask) -> Option<Published> {
    let refresh_ms = task.refresh.as_millis();
    let key = match task {
        FollowTask { aircraft: 9, layout: Layout::Matrix, distance_m, .. } if *distance_m == 75.0 => {
            (PUBLISHED_REFRESH, refresh_ms.to_string())
        }
        FollowTask { aircraft: 9, distance_m, layout, .. } if *distance_m == 50.0 && refresh_ms == 1_000 => {
            (PUBLISHED_FORMATIONS, layout.name().to_owned())
        }
        _ => return None,
    };
    let row = key.0.lines().skip(1).map(|l| l.split(',')).find(|l| l.clone().next() == Some(&key.1))?;
    let numbers: Vec<f64> = row.skip(1).filter_map(|n| n.parse().ok()).collect();
    numbers.try_into().ok()
}

/// One row per flight of a series, ours and the published.
pub fn table(rows: &[Row]) -> String {
    let mut t = String::new();
    line(
        &mut t,
        "                                           formation error (m)                   global error (m)                    nearest in flight (m)",
    );
    line(
        &mut t,
        "formation aircraft distance   refresh       mean    max    dev                    mean    max    dev                  leader slaves   flights (failed)",
    );
    let mut name = "";
    for row in rows {
        let Some(task) = &row.follow else { continue };
        if row.name != name {
            name = &row.name;
            line(&mut t, name);
        }
        let ours = |errors: fn(&crate::flight::FlightResult) -> &Errors| -> [f64; 3] {
            let spreads: Vec<Spread> = row.flights.iter().map(|f| errors(f).of_slaves()).collect();
            [Spread::mean, Spread::max, Spread::deviation].map(|of| mean(spreads.iter().map(of)))
        };
        let (formation, global) = (ours(|f| &f.following.formation), ours(|f| &f.following.global));
        let nearest = |of: fn(&Nearest) -> f64| {
            let all = row.flights.iter().filter_map(|f| f.following.nearest_m.as_ref().map(of));
            all.fold(f64::INFINITY, f64::min)
        };
        let (leader, slaves) = (nearest(|n| n.to_leader), nearest(|n| n.between_slaves));
        let failed = row.flights.iter().filter(|f| !f.succeeded()).count();
        let show = |v: &[f64]| v.iter().map(|v| format!("{v:>6.2}")).collect::<Vec<_>>().join(" ");
        let key = format!(
            "{:<9} {:>8} {:>6} m  {:>5} ms",
            task.layout.name(),
            task.aircraft,
            task.distance_m,
            task.refresh.as_millis()
        );
        line(
            &mut t,
            &format!(
                "{key}   ours   {} {:>14}   {} {:>14}   {leader:>6.1} {slaves:>6.1}   {} ({failed})",
                show(&formation),
                "",
                show(&global),
                "",
                row.flights.len()
            ),
        );
        if let Some(p) = published(task) {
            let off = |ours: f64, theirs: f64| format!("ours {:+.1} %", (ours / theirs - 1.0) * 100.0);
            line(
                &mut t,
                &format!(
                    "{:<33}   thesis {} {:>14}   {} {:>14}",
                    "",
                    show(&p[..3]),
                    off(formation[0], p[0]),
                    show(&p[3..]),
                    off(global[0], p[3])
                ),
            );
        }
    }
    line(&mut t, "");
    line(
        &mut t,
        "Other readings, all rows: mean, maximum, deviation of every sample; of the mean over slaves at each time.",
    );
    for row in rows {
        let Some(task) = &row.follow else { continue };
        let other = |of: fn(&Errors) -> &Spread, errors: fn(&crate::flight::FlightResult) -> &Errors| {
            let all = |stat: fn(&Spread) -> f64| mean(row.flights.iter().map(|f| stat(of(errors(f)))));
            format!("{:>6.2} {:>6.2} {:>6.2}", all(Spread::mean), all(Spread::max), all(Spread::deviation))
        };
        line(
            &mut t,
            &format!(
                "{:<9} {:>8} {:>6} m  {:>5} ms   formation {} | {}   global {} | {}",
                task.layout.name(),
                task.aircraft,
                task.distance_m,
                task.refresh.as_millis(),
                other(Errors::of_samples, |f| &f.following.formation),
                other(Errors::of_times, |f| &f.following.formation),
                other(Errors::of_samples, |f| &f.following.global),
                other(Errors::of_times, |f| &f.following.global),
            ),
        );
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_geo::Duration;

    #[test]
    fn the_published_rows_are_found() {
        let task = FollowTask::new();
        assert_eq!(published(&task), Some([1.84, 2.52, 0.54, 21.70, 23.87, 1.60]));
        let of_750 = FollowTask { refresh: Duration::from_millis(750), ..task.clone() };
        assert_eq!(published(&of_750).map(|p| p[3]), Some(22.74));
        let line_of_nine = FollowTask { layout: Layout::Linear, distance_m: 50.0, ..task.clone() };
        assert_eq!(published(&line_of_nine).map(|p| p[0]), Some(2.48));
        assert_eq!(published(&FollowTask { aircraft: 25, ..task }), None);
    }
}
