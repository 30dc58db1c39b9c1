//! Falls: motors that stop above the ground, and a battery that is empty in flight, for the aircraft's own log.

use wingbeat_autopilot::Telemetry;
use wingbeat_protocol::{Text, text};

/// An aircraft that descends by so much faster than its autopilot flies falls, metres per second.
const FASTER_M_S: f64 = 3.0;
/// A pilot descends as fast by hand, metres per second.
const BY_HAND_M_S: f64 = 8.0;
/// Reports in a row that show a fall.
const REPORTS: u8 = 2;
/// Lower than this a landing looks the same, metres above home.
const LOWEST_M: f64 = 1.0;
/// A fall is over when the aircraft is slower, metres per second.
const OVER_M_S: f64 = 1.0;

/// What the position reports show of a fall.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Falls {
    /// Reports in a row of a descent that is too fast.
    reports: u8,
    /// The fastest descent of the present fall, metres per second; 0 for none.
    fastest_m_s: f64,
    /// The empty battery was told.
    is_empty_told: bool,
}

impl Falls {
    /// Takes a position report; `descent_m_s` is the fastest descent that the autopilot flies by itself. Returns what is to be
    /// logged.
    pub(super) fn observe(&mut self, t: &Telemetry, descent_m_s: f64, is_by_hand: bool) -> Option<Text> {
        let (height_m, falls_m_s) = (t.height_m, -t.velocity_m_s.z);
        if self.fastest_m_s > 0.0 {
            self.fastest_m_s = self.fastest_m_s.max(falls_m_s);
            if falls_m_s > OVER_M_S {
                return None;
            }
            let fastest_m_s = core::mem::take(&mut self.fastest_m_s);
            return Some(text!(
                "the fall ended {height_m:.1} m above home, after {fastest_m_s:.1} m/s: look for it there"
            ));
        }
        let limit_m_s = descent_m_s + FASTER_M_S + if is_by_hand { BY_HAND_M_S } else { 0.0 };
        let is_too_fast = height_m > LOWEST_M && falls_m_s > limit_m_s;
        self.reports = if is_too_fast { self.reports.saturating_add(1) } else { 0 };
        if self.reports < REPORTS {
            return None;
        }
        (self.reports, self.fastest_m_s) = (0, falls_m_s);
        Some(text!(
            "falls with {falls_m_s:.1} m/s, {height_m:.1} m above home: the motors do not carry it; keep clear below"
        ))
    }

    /// Takes the charge in flight. Returns what is to be logged, once in a flight.
    pub(super) fn observe_charge(&mut self, t: &Telemetry, percent: Option<u8>, flies: bool) -> Option<Text> {
        self.is_empty_told &= t.armed;
        if percent != Some(0) || !flies || core::mem::replace(&mut self.is_empty_told, true) {
            return None;
        }
        let height_m = t.height_m;
        Some(text!(
            "the battery is empty in flight, {height_m:.1} m above home: the motors stop; keep clear below"
        ))
    }
}

#[cfg(test)]
mod tests {
    use wingbeat_geo::DVec3;

    use super::*;

    fn report(height_m: f64, up_m_s: f64) -> Telemetry {
        let velocity_m_s = DVec3::new(0.0, 0.0, up_m_s);
        Telemetry { armed: true, height_m, velocity_m_s, ..Telemetry::default() }
    }

    #[test]
    fn a_fall_is_told_when_it_begins_and_when_it_ends() {
        let mut falls = Falls::default();
        let mut seen = |height_m, up_m_s| falls.observe(&report(height_m, up_m_s), 1.5, false);
        // A descent, a gust, a fall.
        for up_m_s in [-1.4, -1.6, -4.6, -1.4, -4.6] {
            assert_eq!(seen(19.0, up_m_s), None, "{up_m_s}");
        }
        let told = seen(17.0, -6.9).unwrap();
        assert!(told.starts_with("falls with 6.9 m/s, 17.0 m above home"), "{told}");
        assert_eq!(seen(10.0, -9.0), None);
        assert_eq!(seen(2.0, -11.7), None);
        let over = seen(0.0, 0.0).unwrap();
        assert!(over.starts_with("the fall ended 0.0 m above home, after 11.7 m/s"), "{over}");
        assert_eq!(seen(0.0, 0.0), None);
        // A pilot's hand is fast.
        let mut falls = Falls::default();
        assert_eq!([0; 4].map(|_| falls.observe(&report(30.0, -6.0), 1.5, true)), [const { None }; 4]);
    }

    #[test]
    fn an_empty_battery_is_told_once_in_a_flight() {
        let mut falls = Falls::default();
        let mut told = |percent| falls.observe_charge(&report(19.0, 0.0), percent, true).is_some();
        assert_eq!([Some(1), None, Some(0), Some(0)].map(&mut told), [false, false, true, false]);
    }
}
