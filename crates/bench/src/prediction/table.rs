//! The figures as a table, with those of the thesis next to ours.

use std::fmt::Write as _;

use super::{Alternative, Flown, MotionPhase};

/// The numbers of thesis sections 5.1.4 and 5.3.1.2.
const PUBLISHED: &str = include_str!("../../published/mbcap-prediction.csv");

/// Above this a beacon is at a peak: what the thesis gives for the largest error at constant speed, metres.
pub const PEAK_M: f64 = 4.0;

/// The figures of one alternative in one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Largest error of any location, metres.
    pub max_m: f64,
    /// Mean over all locations of all beacons, metres.
    pub mean_m: f64,
    /// The largest of the beacons' mean errors, metres: the peak of the thesis' curves of mean error.
    pub worst_mean_m: f64,
    /// Time with beacons whose largest error is above [`PEAK_M`], seconds.
    pub peak_s: f64,
    /// Beacons.
    pub beacons: usize,
}

/// Figures of a phase, or of the whole flight.
pub fn figures(flown: &Flown, phase: Option<MotionPhase>) -> Figures {
    let of_phase = || flown.beacons.iter().filter(|b| phase.is_none_or(|phase| b.phase == phase));
    let locations = of_phase().map(|b| b.errors_m.len()).sum::<usize>();
    let sum_m: f64 = of_phase().flat_map(|b| &b.errors_m).sum();
    Figures {
        max_m: of_phase().map(|b| b.max_m()).fold(0.0, f64::max),
        mean_m: sum_m / locations.max(1) as f64,
        worst_mean_m: of_phase().map(|b| b.mean_m()).fold(0.0, f64::max),
        peak_s: of_phase().filter(|b| b.max_m() > PEAK_M).count() as f64 * flown.beacon_period_s,
        beacons: of_phase().count(),
    }
}

/// Mean and largest error of the location that is `hop` steps ahead, over the whole flight; none if no
/// beacon predicted it.
pub fn ahead_m(flown: &Flown, hop: usize) -> Option<(f64, f64)> {
    let errors: Vec<f64> = flown.beacons.iter().filter_map(|b| b.errors_m.get(hop).copied()).collect();
    let max = errors.iter().copied().reduce(f64::max)?;
    Some((errors.iter().sum::<f64>() / errors.len() as f64, max))
}

/// Both tables.
pub fn table(all: &[Flown]) -> String {
    let mut t = String::new();
    line(
        &mut t,
        "                                largest error (m)   mean error at its worst (m)  time above 4 m (s)",
    );
    line(
        &mut t,
        "alternative    phase           published      ours   published      ours   mean  published   ours",
    );
    for flown in all {
        for &phase in MotionPhase::ALL {
            let f = figures(flown, Some(phase));
            let [max, mean, peak] = published(flown.alternative, phase);
            line(
                &mut t,
                &format!(
                    "{:<14} {:<15} {max:>9} {:>9.1}   {mean:>9} {:>9.1} {:>6.1}  {peak:>9} {:>6.1}",
                    flown.alternative.name(),
                    phase.name(),
                    f.max_m,
                    f.worst_mean_m,
                    f.mean_m,
                    f.peak_s
                ),
            );
        }
    }
    line(&mut t, "");
    line(&mut t, "error by time ahead, mean / largest (m)");
    let names = all.iter().map(|f| format!("{:>16}", f.alternative.name())).collect::<String>();
    line(&mut t, &format!("ahead (s)  {names}"));
    let hops = all.iter().flat_map(|f| f.beacons.iter().map(|b| b.errors_m.len())).max().unwrap_or(0);
    let per_second = all.first().map_or(2, |f| (1.0 / f.hop_s) as usize).max(1);
    // At constant speed the threshold is six seconds away; later locations are of slow moments only.
    for hop in (0..hops).step_by(per_second).take(7) {
        let cell = |flown: &Flown| match ahead_m(flown, hop) {
            Some((mean, max)) => format!("{:>16}", format!("{mean:.2} / {max:.1}")),
            None => format!("{:>16}", "-"),
        };
        let cells: String = all.iter().map(cell).collect();
        line(&mut t, &format!("{:>9}  {cells}", hop / per_second));
    }
    t
}

/// Largest error, mean error and time of the peak, as the thesis gives them; a dash where it does not.
fn published(alternative: Alternative, phase: MotionPhase) -> [String; 3] {
    let found = PUBLISHED.lines().skip(1).find_map(|l| {
        let rest = l.strip_prefix(alternative.name())?.strip_prefix(',')?;
        rest.strip_prefix(phase.name())?.strip_prefix(',')
    });
    let mut cells = found.unwrap_or(",,").split(',');
    std::array::from_fn(|_| match cells.next() {
        Some(cell) if !cell.is_empty() => cell.to_owned(),
        _ => "-".to_owned(),
    })
}

fn line(t: &mut String, text: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(t, "{}", text.trim_end());
}
