//! What a handful of flights says about the flights that were not flown.

/// Quantiles of Student's t for 95 % on both sides, by degrees of freedom from 1.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// For more.
const T_MANY: f64 = 1.96;

/// Mean, deviation and the interval that holds the true mean nineteen times in twenty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many values.
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
        if count == 0 {
            return None;
        }
        let n = count as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let deviation = if count > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
        let t = count.checked_sub(2).map(|i| T.get(i).copied().unwrap_or(T_MANY));
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

    /// The same of events that are counted. None in n flights says that they happen less often than 3 / n
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
        // t(0.975, 3) = 3.182.
        assert!((s.half_width.unwrap() - 3.182 * 1.290_994 / 2.0).abs() < 1e-5);
    }

    #[test]
    fn little_says_little() {
        assert_eq!(Summary::of([]), None);
        assert_eq!(Summary::of([7.0]).unwrap().half_width, None);
        let none = Summary::of([0.0; 12]).unwrap().spread_of_counts();
        assert!(none.contains("less than 0.25"), "{none}");
        assert!(Summary::of([0.0, 1.0]).unwrap().spread_of_counts().contains(" to "));
    }
}
