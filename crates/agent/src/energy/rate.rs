//! The rate at which the battery is consumed, as this flight measures it.
//!
//! The autopilot reports whole per cents: between two changes of the report the consumption is exact. The aircraft consumes more
//! against the wind than on average, so that the faster of the whole flight and of its last per cents counts. A charge that
//! jumps is a correction of the estimate, and no consumption.

use wingbeat_geo::Instant;

/// Changes of the reported charge that are kept: the last per cents are one less.
const MARKS: usize = 9;
/// A change by more in one report is a jump, per cent.
const JUMP_PERCENT: u8 = 3;
/// Until so much is consumed its rate is not known, per cent.
pub(super) const MEASURED_FROM_PERCENT: u8 = 3;

/// The rate of consumption.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rate {
    /// The last changes without a jump: when, and to which charge.
    marks: [(Instant, u8); MARKS],
    len: usize,
    /// Time and charge between all such changes of this flight, seconds and per cent.
    measured_s: f64,
    measured_percent: f64,
}

impl Rate {
    /// Takes a change of the reported charge. Returns whether it is a jump.
    pub(super) fn on_change(&mut self, now: Instant, from: u8, to: u8) -> bool {
        if to >= from || from - to > JUMP_PERCENT {
            self.len = 0;
            return true;
        }
        if let Some((at, charge)) = self.len.checked_sub(1).map(|last| self.marks[last]) {
            self.measured_s += now.since(at).as_secs_f64();
            self.measured_percent += f64::from(charge.saturating_sub(to));
        }
        if self.len == MARKS {
            self.marks.copy_within(1.., 0);
            self.len -= 1;
        }
        self.marks[self.len] = (now, to);
        self.len += 1;
        false
    }

    /// Forgets where the last per cent began: the report was missing meanwhile.
    pub(super) fn interrupt(&mut self) {
        self.len = 0;
    }

    /// Returns how long one per cent lasts, seconds; none before enough was consumed.
    pub(super) fn each_s(&self) -> Option<f64> {
        if self.measured_percent < f64::from(MEASURED_FROM_PERCENT) {
            return None;
        }
        let average_s = self.measured_s / self.measured_percent;
        let last_s = (self.len == MARKS).then(|| {
            let ((from, full), (to, left)) = (self.marks[0], self.marks[MARKS - 1]);
            to.since(from).as_secs_f64() / f64::from(full.saturating_sub(left)).max(1.0)
        });
        Some(last_s.map_or(average_s, |last_s| last_s.min(average_s)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_is_no_consumption_and_the_last_per_cents_count_where_they_go_faster() {
        let mut rate = Rate::default();
        let mut percent = 100;
        let mut at_s = 0;
        let mut fly = |rate: &mut Rate, each_s: u64, down: u8| {
            for _ in 0..down {
                at_s += each_s;
                assert!(!rate.on_change(Instant::from_secs(at_s), percent, percent - 1));
                percent -= 1;
            }
        };
        fly(&mut rate, 20, 3);
        assert_eq!(rate.each_s(), None, "the first was used in part");
        fly(&mut rate, 20, 1);
        assert_eq!(rate.each_s(), Some(20.0));
        assert!(rate.on_change(Instant::from_secs(81), 96, 40) && rate.each_s() == Some(20.0));
        assert!(rate.on_change(Instant::from_secs(82), 40, 90));
        fly(&mut rate, 10, 9);
        assert_eq!(rate.each_s(), Some(10.0));
    }
}
