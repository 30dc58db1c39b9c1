//! Loss against distance from many tests.

use crate::statistics::rate_interval;
use crate::{Record, Table};

/// Share of fits whose intervals all hold the true loss.
const CONFIDENCE: f64 = 0.95;

/// Datagrams over one range of distances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Their mean distance, metres.
    pub distance_m: f64,
    /// Sent.
    pub sent: usize,
    /// Lost.
    pub lost: usize,
    /// What their true loss lies in. Together: nineteen times in twenty all of a fit's intervals hold (Bonferroni), if losses
    /// are independent of each other.
    pub interval: (f64, f64),
    /// The loss that the table has: the nearest that does not fall with distance.
    pub loss: f64,
}

/// Loss against distance.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// From near to far; those without a datagram are left out.
    pub bins: Vec<Bin>,
}

impl Fit {
    /// Of all datagrams of these tests, in ranges of `width_m`.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>, width_m: f64) -> Self {
        let mut sums: std::collections::BTreeMap<u64, (f64, usize, usize)> = Default::default();
        for (distance_m, received) in records.into_iter().flat_map(Record::distances) {
            let (sum_m, sent, lost) = sums.entry((distance_m / width_m) as u64).or_default();
            *sum_m += distance_m;
            *sent += 1;
            *lost += usize::from(!received);
        }
        let confidence = 1.0 - (1.0 - CONFIDENCE) / sums.len().max(1) as f64;
        let bin = |(sum_m, sent, lost): (f64, usize, usize)| Bin {
            distance_m: sum_m / sent as f64,
            sent,
            lost,
            interval: rate_interval(lost, sent, confidence),
            loss: lost as f64 / sent as f64,
        };
        let mut bins: Vec<Bin> = sums.into_values().map(bin).collect();
        rise(&mut bins);
        Self { bins }
    }

    /// The table of it; none of no datagram.
    pub fn table(&self) -> Option<Table> {
        Table::new(self.bins.iter().map(|bin| (bin.distance_m, bin.loss)).collect()).ok()
    }
}

/// Pools neighbours that fall (pool adjacent violators; Barlow et al., Statistical Inference under Order Restrictions, 1972):
/// of all shares that rise, those with the greatest likelihood.
fn rise(bins: &mut [Bin]) {
    // Lost, sent, and how many bins are pooled.
    let mut pools: Vec<(usize, usize, usize)> = Vec::new();
    for bin in bins.iter() {
        pools.push((bin.lost, bin.sent, 1));
        while let [.., before, last] = pools[..] {
            // before > last, as fractions.
            if (before.0 as u64 * last.1 as u64) <= (last.0 as u64 * before.1 as u64) {
                break;
            }
            pools.pop();
            pools.pop();
            pools.push((before.0 + last.0, before.1 + last.1, before.2 + last.2));
        }
    }
    let shares =
        pools.into_iter().flat_map(|(lost, sent, n)| std::iter::repeat_n(lost as f64 / sent as f64, n));
    bins.iter_mut().zip(shares).for_each(|(bin, share)| bin.loss = share);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::{at, test};

    fn bin(lost: usize, sent: usize) -> Bin {
        Bin { distance_m: 0.0, sent, lost, interval: (0.0, 1.0), loss: 0.0 }
    }

    #[test]
    fn shares_that_fall_are_pooled_by_their_weight() {
        let mut bins = [bin(0, 10), bin(4, 10), bin(2, 10), bin(6, 40), bin(9, 10)];
        rise(&mut bins);
        let expected = [0.0, 0.2, 0.2, 0.2, 0.9];
        assert_eq!(bins.map(|bin| bin.loss), expected);
    }

    #[test]
    fn ranges_without_datagrams_are_left_out_and_intervals_hold_together() {
        let mut record = Record::new(test(200));
        for sequence in 0..200 {
            let east_m = if sequence < 100 { 10.0 } else { 310.0 };
            if sequence % 4 != 0 {
                record.add(sequence, at(east_m, 0.0, 0.0), at(0.0, 0.0, 0.0));
            }
        }
        let fit = Fit::of([&record], 100.0);
        let found: Vec<_> = fit.bins.iter().map(|b| (b.distance_m.round(), b.sent, b.lost)).collect();
        // Of the first nothing is known; the first of the far ones was lost: it counts halfway.
        assert_eq!(found, [(10.0, 99, 24), (160.0, 1, 1), (310.0, 99, 24)]);
        let alone = rate_interval(24, 99, 0.95);
        assert!(fit.bins[0].interval.0 < alone.0 && fit.bins[0].interval.1 > alone.1);
        assert_eq!(Fit::of([], 100.0).table(), None);
    }
}
