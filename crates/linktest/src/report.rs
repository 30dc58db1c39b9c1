//! What one test comes to (thesis section 4.1.3.1).

use std::collections::BTreeMap;
use std::fmt;

use crate::statistics::{Summary, rate_interval};
use crate::{Reception, Record};

/// Datagrams in a row that were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Number of the first.
    pub first: u32,
    /// How many.
    pub length: u32,
}

/// A test in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Datagrams sent.
    pub sent: u32,
    /// Different ones received.
    pub received: u32,
    /// Copies beyond the first.
    pub duplicates: u32,
    /// Share lost.
    pub loss: f64,
    /// The interval that holds the true share nineteen times in twenty, if losses were independent of each other; where
    /// they come in bursts the true one is wider.
    pub loss_interval: (f64, f64),
    /// Losses in a row, in time.
    pub bursts: Vec<Burst>,
    /// How many bursts had each length.
    pub histogram: BTreeMap<u32, u32>,
    /// The bursts' lengths.
    pub burst_length: Option<Summary>,
    /// What was measured at every reception, by its name with the unit.
    pub parameters: Vec<(&'static str, Summary)>,
}

impl Report {
    /// Of a test.
    pub fn of(record: &Record) -> Self {
        let sent = record.test.count;
        let bursts = bursts(record);
        let lost: u32 = bursts.iter().map(|burst| burst.length).sum();
        let mut histogram = BTreeMap::new();
        for burst in &bursts {
            *histogram.entry(burst.length).or_default() += 1;
        }
        Self {
            sent,
            received: sent - lost,
            duplicates: record.receptions().map(|(_, r)| r.copies - 1).sum(),
            loss: f64::from(lost) / f64::from(sent.max(1)),
            loss_interval: rate_interval(lost as usize, sent as usize, 0.95),
            burst_length: Summary::of(bursts.iter().map(|burst| f64::from(burst.length))),
            bursts,
            histogram,
            parameters: parameters(record),
        }
    }
}

fn bursts(record: &Record) -> Vec<Burst> {
    let mut all = Vec::new();
    let mut next = 0;
    for sequence in record.receptions().map(|(sequence, _)| sequence).chain([record.test.count]) {
        if sequence > next {
            all.push(Burst { first: next, length: sequence - next });
        }
        next = sequence + 1;
    }
    all
}

fn parameters(record: &Record) -> Vec<(&'static str, Summary)> {
    let of = |value: &dyn Fn(&Reception) -> Option<f64>| {
        Summary::of(record.receptions().filter_map(|(_, reception)| value(reception)))
    };
    let angle = |value: &dyn Fn(&Reception) -> Option<f64>| {
        let angles_rad: Vec<f64> =
            record.receptions().filter_map(|(_, reception)| value(reception)).collect();
        Summary::of(around_their_mean(&angles_rad).map(f64::to_degrees))
    };
    let all: [(&'static str, Option<Summary>); 12] = [
        ("distance_m", of(&|r| Some(r.distance_m()))),
        ("height_difference_m", of(&|r| Some(r.height_difference_m()))),
        ("relative_angle_deg", angle(&Reception::relative_angle_rad)),
        ("elevation_deg", of(&|r| Some(r.elevation_rad().to_degrees()))),
        ("sender_altitude_m", of(&|r| Some(f64::from(r.sender.position.altitude_mm) / 1e3))),
        ("sender_speed_m_s", of(&|r| Some(r.sender.velocity_m_s.truncate().length()))),
        ("sender_climb_m_s", of(&|r| Some(r.sender.velocity_m_s.z))),
        ("sender_heading_deg", angle(&|r| Some(r.sender.heading_rad))),
        ("receiver_altitude_m", of(&|r| Some(f64::from(r.receiver.position.altitude_mm) / 1e3))),
        ("receiver_speed_m_s", of(&|r| Some(r.receiver.velocity_m_s.truncate().length()))),
        ("receiver_climb_m_s", of(&|r| Some(r.receiver.velocity_m_s.z))),
        ("receiver_heading_deg", angle(&|r| Some(r.receiver.heading_rad))),
    ];
    all.into_iter().filter_map(|(name, summary)| summary.map(|s| (name, s))).collect()
}

/// Angles as they lie around their mean direction: 359 and 1 degrees are two apart, and 0 is between them.
fn around_their_mean(angles_rad: &[f64]) -> impl Iterator<Item = f64> {
    let (sine, cosine) = angles_rad
        .iter()
        .fold((0.0, 0.0), |(sine, cosine), angle| (sine + angle.sin(), cosine + angle.cos()));
    let mean_rad = sine.atan2(cosine);
    let half = std::f64::consts::PI;
    angles_rad.iter().map(move |angle| mean_rad + (angle - mean_rad + half).rem_euclid(2.0 * half) - half)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| share * 100.0;
        let (low, high) = self.loss_interval;
        writeln!(f, "sent {}, received {}, received again {}", self.sent, self.received, self.duplicates)?;
        writeln!(
            f,
            "lost {:.2} % (95 %: {:.2} to {:.2} %)",
            percent(self.loss),
            percent(low),
            percent(high)
        )?;
        let row = |f: &mut fmt::Formatter<'_>, name: &str, s: &Summary| {
            let half_width = s.half_width.map_or_else(|| "-".into(), |h| format!("{h:.3}"));
            let (least, most) = s.range;
            writeln!(
                f,
                "{name:22} {:12.3} {:12.3} {half_width:>12} {least:12.3} {most:12.3}",
                s.mean, s.deviation
            )
        };
        writeln!(
            f,
            "{:22} {:>12} {:>12} {:>12} {:>12} {:>12}",
            "", "mean", "deviation", "95 % +-", "least", "most"
        )?;
        if let Some(length) = &self.burst_length {
            row(f, "burst of losses", length)?;
        }
        self.parameters.iter().try_for_each(|(name, summary)| row(f, name, summary))?;
        if !self.histogram.is_empty() {
            writeln!(f, "losses in a row: how often")?;
        }
        self.histogram.iter().try_for_each(|(length, count)| writeln!(f, "{length:15}: {count}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::{at, test};

    #[test]
    fn bursts_are_counted_at_both_ends_and_between() {
        let mut record = Record::new(test(10));
        for sequence in [2, 3, 5, 5] {
            record.add(sequence, at(30.0, 40.0, 10.0), at(0.0, 0.0, 0.0));
        }
        let report = Report::of(&record);
        let bursts: Vec<_> = report.bursts.iter().map(|b| (b.first, b.length)).collect();
        assert_eq!(bursts, [(0, 2), (4, 1), (6, 4)]);
        assert_eq!((report.sent, report.received, report.duplicates), (10, 3, 1));
        assert_eq!((report.loss, report.burst_length.unwrap().range), (0.7, (1.0, 4.0)));
        assert_eq!(report.histogram, BTreeMap::from([(1, 1), (2, 1), (4, 1)]));
        let of = |name: &str| report.parameters.iter().find(|(n, _)| *n == name).unwrap().1;
        assert!(
            (of("distance_m").mean - 50.0).abs() < 0.02
                && (of("height_difference_m").mean - 10.0).abs() < 0.01
        );
        assert_eq!((of("sender_speed_m_s").mean, of("sender_climb_m_s").mean), (5.0, -1.0));
        let text = report.to_string();
        assert!(text.contains("lost 70.00 %") && text.contains("relative_angle_deg"), "{text}");
    }

    #[test]
    fn angles_on_both_sides_of_north_have_north_as_their_mean() {
        let degrees = |angles: &[f64]| -> Vec<f64> {
            let angles_rad: Vec<f64> = angles.iter().map(|angle| angle.to_radians()).collect();
            around_their_mean(&angles_rad).map(|angle| (angle.to_degrees() * 1e6).round() / 1e6).collect()
        };
        assert_eq!(degrees(&[359.0, 1.0]), [-1.0, 1.0]);
        assert_eq!(degrees(&[179.0, -179.0, 180.0])[0], 179.0);
        assert_eq!(degrees(&[90.0, 100.0]), [90.0, 100.0]);
        assert_eq!(degrees(&[]), [0.0; 0]);
    }

    #[test]
    fn a_test_without_reception_is_one_burst() {
        let report = Report::of(&Record::new(test(4)));
        assert_eq!((report.loss, report.bursts.len(), report.parameters.len()), (1.0, 1, 0));
        assert_eq!(report.loss_interval.1, 1.0);
        assert_eq!(Report::of(&Record::new(test(0))).loss_interval, (0.0, 1.0));
    }
}
