//! What the medium did, counted as ArduSim counts it, and how long datagrams waited.

use serde::{Deserialize, Serialize};
use std::ops::Sub;

/// Counts of datagrams, and of receptions: one frame counts once for each other radio.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Datagrams handed to a radio.
    pub offered: u64,
    /// Of those: there was no room in the radio's queue.
    pub queue_full: u64,
    /// Of those: too old when it was their turn.
    pub expired: u64,
    /// Of those: waited for the same radio's earlier ones.
    pub waited_for_own: u64,
    /// Of those: waited because the medium was busy.
    pub waited_for_medium: u64,
    /// Of those: sent.
    pub sent: u64,
    /// Of those: overlapped another frame somewhere on the air.
    pub overlapped: u64,
    /// Receptions that could have happened: frames that ended, times the number of other radios.
    pub possible: u64,
    /// Of those: too weak to be found, by distance and fading.
    pub out_of_range: u64,
    /// Of those: cut off by a partition or a silent radio.
    pub cut_off: u64,
    /// Of those: the receiver was sending.
    pub receiver_sending: u64,
    /// Of those: destroyed by another frame.
    pub collided: u64,
    /// Of those: destroyed by noise or a jammer.
    pub noise: u64,
    /// Of those: lost in a burst or to another fault.
    pub lost: u64,
    /// Of those: received.
    pub received: u64,
    /// From the hand-over of a datagram that was sent to the first bit on the air.
    pub access: Delays,
}

/// What came after an earlier state of the same.
impl Sub for &Statistics {
    type Output = Statistics;
    fn sub(self, earlier: Self) -> Statistics {
        Statistics {
            offered: self.offered - earlier.offered,
            queue_full: self.queue_full - earlier.queue_full,
            expired: self.expired - earlier.expired,
            waited_for_own: self.waited_for_own - earlier.waited_for_own,
            waited_for_medium: self.waited_for_medium - earlier.waited_for_medium,
            sent: self.sent - earlier.sent,
            overlapped: self.overlapped - earlier.overlapped,
            possible: self.possible - earlier.possible,
            out_of_range: self.out_of_range - earlier.out_of_range,
            cut_off: self.cut_off - earlier.cut_off,
            receiver_sending: self.receiver_sending - earlier.receiver_sending,
            collided: self.collided - earlier.collided,
            noise: self.noise - earlier.noise,
            lost: self.lost - earlier.lost,
            received: self.received - earlier.received,
            access: &self.access - &earlier.access,
        }
    }
}

/// A distribution of times, to three per cent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delays {
    count: u64,
    sum_ns: u64,
    most_ns: u64,
    bins: Vec<u64>,
}

/// Bins of each power of two.
const PER_OCTAVE_BITS: u32 = 5;
/// Up to 2^43 ns, which is two hours.
const BINS: usize = ((43 - PER_OCTAVE_BITS as usize) << PER_OCTAVE_BITS) + (1 << PER_OCTAVE_BITS);

impl std::fmt::Debug for Delays {
    /// Without the bins, of which there are many.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Delays({} of {:.3} ms on average, {:.3} at most)",
            self.count,
            self.mean_ms(),
            self.most_ms()
        )
    }
}

impl Default for Delays {
    fn default() -> Self {
        Self { count: 0, sum_ns: 0, most_ns: 0, bins: vec![0; BINS] }
    }
}

impl Delays {
    pub(super) fn add(&mut self, nanos: u64) {
        self.count += 1;
        self.sum_ns += nanos;
        self.most_ns = self.most_ns.max(nanos);
        self.bins[bin(nanos)] += 1;
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean, milliseconds; 0 of none.
    pub fn mean_ms(&self) -> f64 {
        self.sum_ns as f64 * 1e-6 / (self.count.max(1)) as f64
    }

    /// The longest since the start, milliseconds.
    pub fn most_ms(&self) -> f64 {
        self.most_ns as f64 * 1e-6
    }

    /// The time that a share of them does not exceed, milliseconds; 0 of none.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let rank = (share * self.count as f64).ceil() as u64;
        let mut seen = 0;
        for (index, count) in self.bins.iter().enumerate() {
            seen += count;
            if seen >= rank && *count > 0 {
                return middle_ns(index) * 1e-6;
            }
        }
        0.0
    }

    /// Those of several runs together.
    pub fn extend(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.most_ns = self.most_ns.max(other.most_ns);
        self.bins.iter_mut().zip(&other.bins).for_each(|(a, b)| *a += b);
    }
}

/// What came after an earlier state of the same.
impl Sub for &Delays {
    type Output = Delays;
    fn sub(self, earlier: Self) -> Delays {
        let bins = self.bins.iter().zip(&earlier.bins).map(|(now, then)| now - then).collect();
        Delays {
            count: self.count - earlier.count,
            sum_ns: self.sum_ns - earlier.sum_ns,
            most_ns: self.most_ns,
            bins,
        }
    }
}

fn bin(nanos: u64) -> usize {
    let Some(octave) = nanos.checked_ilog2().and_then(|log| log.checked_sub(PER_OCTAVE_BITS)) else {
        return nanos as usize;
    };
    let within = (nanos >> octave) as usize & ((1 << PER_OCTAVE_BITS) - 1);
    ((((octave as usize) + 1) << PER_OCTAVE_BITS) + within).min(BINS - 1)
}

fn middle_ns(bin: usize) -> f64 {
    let (octave, within) = (bin >> PER_OCTAVE_BITS, bin & ((1 << PER_OCTAVE_BITS) - 1));
    if octave == 0 {
        return within as f64;
    }
    let width = (1u64 << (octave - 1)) as f64;
    (((1 << PER_OCTAVE_BITS) + within) as f64 + 0.5) * width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_to_three_per_cent() {
        let mut delays = Delays::default();
        (1..=1000u64).for_each(|k| delays.add(k * 10_000));
        for (share, ms) in [(0.5, 5.0), (0.95, 9.5), (0.99, 9.9)] {
            assert!((delays.quantile_ms(share) / ms - 1.0).abs() < 0.03, "{}", delays.quantile_ms(share));
        }
        assert!((delays.mean_ms() - 5.005).abs() < 1e-9 && delays.most_ms() == 10.0);
        let earlier = delays.clone();
        delays.add(u64::MAX >> 20);
        let later = &delays - &earlier;
        assert_eq!(later.count(), 1);
        assert_eq!(Delays::default().quantile_ms(0.5), 0.0);
    }

    #[test]
    fn every_time_has_a_bin_and_bins_follow_each_other() {
        let bins: Vec<usize> = (0..5000u64).map(bin).collect();
        assert!(bins.windows(2).all(|w| w[1] == w[0] || w[1] == w[0] + 1));
        assert_eq!(bin(u64::MAX), BINS - 1);
        for nanos in [0u64, 31, 32, 63, 64, 1000, 123_456_789] {
            let middle = middle_ns(bin(nanos));
            assert!((middle - nanos as f64).abs() <= 0.02 * nanos as f64 + 0.5, "{nanos} {middle}");
        }
    }
}
