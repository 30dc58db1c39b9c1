//! Mean and interval of a measured quantity over the flights of an experiment.

use statrs::distribution::{Beta, ContinuousCDF as _, StudentsT};

/// Share of intervals that hold the true mean.
const CONFIDENCE: f64 = 0.95;

/// Quantile of Student's t for an interval with both sides open, by degrees of freedom; none for zero.
fn t_quantile(degrees: usize) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, degrees as f64).ok()?;
    Some(t.inverse_cdf(0.5 + CONFIDENCE / 2.0))
}

/// The highest rate at which `events` or fewer of `trials` are not rarer than one time in twenty: the exact upper bound of
/// Clopper and Pearson, 95 %, one side. Of no event in n trials it is 1 − 0.05^(1/n), which the rule of three rounds to 3/n.
pub fn rate_most(events: usize, trials: usize) -> f64 {
    if events >= trials {
        return 1.0;
    }
    if events == 0 {
        return 1.0 - (1.0 - CONFIDENCE).powf(1.0 / trials as f64);
    }
    let (a, b) = (events as f64 + 1.0, (trials - events) as f64);
    Beta::new(a, b).map_or(1.0, |beta| beta.inverse_cdf(CONFIDENCE))
}

/// The interval of a rate of which `events` of `trials` were seen, which holds the true one so often at least (Clopper and
/// Pearson, Biometrika 26, 1934).
pub fn rate_interval(events: usize, trials: usize, confidence: f64) -> (f64, f64) {
    let tail = (1.0 - confidence) / 2.0;
    let quantile = |a: usize, b: usize, at: f64| {
        Beta::new(a as f64, b as f64).map_or(if at < 0.5 { 0.0 } else { 1.0 }, |beta| beta.inverse_cdf(at))
    };
    let others = trials.saturating_sub(events);
    let least = if events == 0 { 0.0 } else { quantile(events, others + 1, tail) };
    let most = if others == 0 { 1.0 } else { quantile(events + 1, others, 1.0 - tail) };
    (least, most)
}

/// Their sum by their number; `None` of none.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.into_iter().fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    (n > 0.0).then(|| sum / n)
}

/// Mean, deviation and the interval that holds the true mean nineteen times in twenty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of values.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Standard deviation of a sample (n − 1); zero of one.
    pub deviation: f64,
    /// Half the width of the interval of the mean; not known from one.
    pub half_width: Option<f64>,
    /// Smallest and largest.
    pub range: (f64, f64),
}

impl Summary {
    /// Of values; `None` of none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let count = values.len();
        let n = count as f64;
        let mean = mean(values.iter().copied())?;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let deviation = if count > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
        let t = t_quantile(count - 1);
        let range = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |r, &v| (r.0.min(v), r.1.max(v)));
        Some(Self { count, mean, deviation, half_width: t.map(|t| t * deviation / n.sqrt()), range })
    }

    /// Deviation and interval of a mean, for a table.
    pub fn spread(&self) -> String {
        let interval = self.half_width.map_or_else(
            || "one flight".to_owned(),
            |h| format!("{:.2} to {:.2}", self.mean - h, self.mean + h),
        );
        format!("{:>10.2}   {interval}", self.deviation)
    }

    /// The same of events that are counted. None in n flights means that they happen less often than 3 / n
    /// times a flight (the rule of three, 95 %).
    pub fn spread_of_counts(&self) -> String {
        if self.range.1 > 0.0 {
            return self.spread();
        }
        format!("{:>10.2}   none seen: less than {:.2}", 0.0, 3.0 / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_sample_has_its_known_interval() {
        let s = Summary::of([1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!((s.count, s.mean, s.range), (4, 2.5, (1.0, 4.0)));
        assert!((s.deviation - 1.290_994).abs() < 1e-6);
        // t(0.975, 3) = 3.18245.
        assert!((s.half_width.unwrap() - 3.182_446 * 1.290_994 / 2.0).abs() < 1e-5);
    }

    #[test]
    fn quantiles_are_those_of_published_tables() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
        for (degrees, published) in
            [(1, 12.706), (2, 4.303), (10, 2.228), (30, 2.042), (31, 2.040), (60, 2.000), (100, 1.984)]
        {
            let found = t_quantile(degrees).unwrap();
            assert!((found - published).abs() < 5e-4, "{degrees}: {found}, expected {published}");
        }
        assert_eq!(t_quantile(0), None);
    }

    #[test]
    fn a_rate_is_bounded_as_in_published_tables() {
        // Clopper and Pearson, Biometrika 26 (1934): one side of 95 %, by the binomial distribution.
        let at_most = |events: usize, trials: usize, rate: f64| -> f64 {
            let choose = |k: usize| (0..k).fold(1.0, |c, i| c * (trials - i) as f64 / (i + 1) as f64);
            let of = |k: usize| choose(k) * rate.powi(k as i32) * (1.0 - rate).powi((trials - k) as i32);
            (0..=events).map(of).sum()
        };
        for (events, trials) in [(0, 1), (0, 40), (1, 40), (3, 40), (39, 40), (6, 150), (2, 500)] {
            let rate = rate_most(events, trials);
            assert!((at_most(events, trials, rate) - 0.05).abs() < 1e-6, "{events} of {trials}: {rate}");
        }
        // The rule of three, and no trial says nothing.
        assert!((rate_most(0, 10_000) * 10_000.0 - 3.0).abs() < 0.01);
        assert_eq!((rate_most(0, 0), rate_most(7, 7)), (1.0, 1.0));
    }

    #[test]
    fn a_rate_lies_between_published_bounds() {
        // Clopper and Pearson's bounds as in Newcombe, Statistics in Medicine 17 (1998), table I, method 5.
        for (events, trials, (least, most)) in [
            (81, 263, (0.2527, 0.3676)),
            (15, 148, (0.0578, 0.1617)),
            (0, 20, (0.0, 0.1684)),
            (1, 29, (0.0009, 0.1776)),
        ] {
            let found = rate_interval(events, trials, 0.95);
            assert!(
                (found.0 - least).abs() < 6e-5 && (found.1 - most).abs() < 6e-5,
                "{events}/{trials}: {found:?}"
            );
        }
        assert_eq!((rate_interval(0, 0, 0.95), rate_interval(7, 7, 0.95).1), ((0.0, 1.0), 1.0));
    }

    #[test]
    fn one_flight_has_no_interval_and_none_seen_is_a_rate_below() {
        assert_eq!(Summary::of([]), None);
        assert_eq!(Summary::of([7.0]).unwrap().half_width, None);
        let none = Summary::of([0.0; 12]).unwrap().spread_of_counts();
        assert!(none.contains("less than 0.25"), "{none}");
        assert!(Summary::of([0.0, 1.0]).unwrap().spread_of_counts().contains(" to "));
    }
}
