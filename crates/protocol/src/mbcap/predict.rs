//! Where an aircraft will be: the locations that a beacon carries (thesis sections 5.1.3, 5.1.4 and
//! 5.3.1.2).
//!
//! All of it is geometry in one local frame (metres east, north, up) and uses neither states of others
//! nor time of day: a [`Track`] is the mission with the place on it, [`Track::ahead`] walks along it.

use wingbeat_geo::{DVec2, DVec3};

use super::config::{BrakeFit, Filter, Horizon, Prediction, Projection};
use crate::Handling;
use crate::flight::AT_THE_END_M;

/// Locations in one beacon: the current one and at most 58 more (the reference's datagram holds 59).
pub const LOCATIONS_MAX: usize = 59;

/// Locations, the current one first.
pub type Locations = heapless::Vec<DVec3, LOCATIONS_MAX>;

/// Of the braking of shaped motion ([`brake_distance_m`]): seconds, and metres per square of a metre per second.
const SHAPED_S: f64 = 1.55;
/// See [`SHAPED_S`].
const SHAPED_S2_M: f64 = 0.05;

/// No multicopter is slower on its way: at less a braking distance is none, and a flight would last for ever.
pub(super) const LEAST_M_S: f64 = 1.0;

/// Distance in which a multicopter stops from `speed_m_s` (thesis figure 5.12), metres.
///
/// Two fits exist: the one that is printed, and a later one of the reference implementation. Both are of ArduCopter 3; where
/// motion is shaped it is at least what BRAKE of 4.6.2 needed in SITL from 1, 2.5, 5, 10, 12.4 and 14.75 m/s: 1.4, 4.0, 8.9, 20.4,
/// 26.9 and 33.5 m, which [`SHAPED_S`] and [`SHAPED_S2_M`] are fitted to from above.
pub fn brake_distance_m(fit: BrakeFit, handling: Handling, speed_m_s: f64) -> f64 {
    let v = speed_m_s;
    let least_m = match handling {
        Handling::Tracks => 0.0,
        Handling::Shaped => (SHAPED_S + SHAPED_S2_M * v) * v,
    };
    let fitted_m = if v < LEAST_M_S {
        0.0
    } else {
        match fit {
            BrakeFit::Published if v < 5.0 => 2.76 * v - 0.42,
            BrakeFit::Published if v < 7.5 => 0.58 * v + 10.48,
            BrakeFit::Published => 1.8 * v + 1.33,
            BrakeFit::Later if v < 6.0 => 1.7 * v - 0.1,
            BrakeFit::Later if v < 8.0 => 1.3 * v + 2.3,
            BrakeFit::Later => 1.87 * v - 2.26,
        }
    };
    fitted_m.max(least_m)
}

/// How far ahead a risk matters (thesis equation 5.4), metres.
pub fn reaction_distance_m(horizon: &Horizon, handling: Handling, speed_m_s: f64) -> f64 {
    match *horizon {
        Horizon::Fixed { distance_m, .. } => distance_m,
        Horizon::BySpeed { brake, gps_error_m, reaction_s, loss_s } => {
            brake_distance_m(brake, handling, speed_m_s) + gps_error_m + (reaction_s + loss_s) * speed_m_s
        }
    }
}

/// Predicted locations in addition to the current one at this speed.
pub fn hops(horizon: &Horizon, handling: Handling, hop_s: f64, speed_m_s: f64) -> usize {
    let hops = match *horizon {
        Horizon::Fixed { time_s, .. } => time_s / hop_s,
        Horizon::BySpeed { .. } => reaction_distance_m(horizon, handling, speed_m_s) / (speed_m_s * hop_s),
    };
    (libm::ceil(hops) as usize).min(LOCATIONS_MAX - 1)
}

/// The acceleration that a prediction assumes: filtered and bounded (thesis equation 5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Acceleration {
    filtered_m_s2: f64,
}

impl Acceleration {
    const MOST_M_S2: f64 = 5.0;

    /// Takes the change of speed between two reports `elapsed_s` apart.
    pub fn update(&mut self, filter: &Filter, change_m_s: f64, elapsed_s: f64) {
        if elapsed_s <= 0.0 {
            return;
        }
        let raw = change_m_s / elapsed_s;
        self.filtered_m_s2 = if libm::fabs(raw) > Self::MOST_M_S2 {
            libm::copysign(Self::MOST_M_S2, raw)
        } else if libm::fabs(raw) < filter.dead_band_m_s2 {
            0.0
        } else {
            let newest = filter.newest_percent / 100.0;
            newest * raw + (1.0 - newest) * self.filtered_m_s2
        };
    }
    /// Metres per second squared, positive when it becomes faster.
    pub fn m_s2(self) -> f64 {
        self.filtered_m_s2
    }
}

/// The last three reported places: whether an aircraft leaves something behind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trail {
    places: [DVec2; 3],
    known: usize,
}

impl Trail {
    /// Takes a report.
    pub fn push(&mut self, at: DVec2) {
        self.places = [self.places[1], self.places[2], at];
        self.known = (self.known + 1).min(3);
    }
    /// Whether the distance to `from` grew with every report; never with fewer than two reports.
    pub fn moves_away_from(&self, from: DVec2) -> bool {
        self.known >= 2
            && self.places[3 - self.known..]
                .windows(2)
                .all(|pair| pair[1].distance_squared(from) > pair[0].distance_squared(from))
    }
}

/// The waypoints of a mission in the local frame.
pub trait Waypoints {
    /// How many there are.
    fn count(&self) -> usize;
    /// The point with this index; none past the last.
    fn get(&self, index: usize) -> Option<DVec3>;
    /// Whether the aircraft stops at the point for a while: its prediction ends there.
    fn holds_at(&self, _index: usize) -> bool {
        false
    }
}

impl<const N: usize> Waypoints for [DVec3; N] {
    fn count(&self) -> usize {
        N
    }
    fn get(&self, index: usize) -> Option<DVec3> {
        self.as_slice().get(index).copied()
    }
}

/// A mission and the position on it.
#[derive(Clone, Copy, Debug)]
pub struct Track<'a, W> {
    /// Waypoints in the local frame.
    pub waypoints: &'a W,
    /// The waypoint that it flies to: an index of `waypoints`.
    pub next: usize,
    /// Whether to predict from the mission's line instead of the place itself: not on the way back from
    /// a place aside.
    pub project: bool,
}

/// How an aircraft moves now.
#[derive(Clone, Copy, Debug)]
pub struct Moving {
    /// Present position, metres east, north and up of the frame's origin.
    pub at: DVec3,
    /// Speed over ground, metres per second.
    pub speed_m_s: f64,
    /// Filtered acceleration, metres per second squared.
    pub acceleration_m_s2: f64,
    /// Earlier positions, from which speed and course are smoothed.
    pub trail: Trail,
}

impl<W: Waypoints> Track<'_, W> {
    /// The current location and those in steps of `hop_s` along the mission.
    pub fn ahead(&self, moving: &Moving, prediction: &Prediction) -> Locations {
        let count = self.waypoints.count();
        let Some(last) = self.waypoints.get(count.wrapping_sub(1)) else { return Locations::new() };
        let mut locations = Locations::new();
        if self.next >= count && moving.at.truncate().distance(last.truncate()) < AT_THE_END_M {
            let _ = locations.push(moving.at);
            return locations;
        }
        let (start, next) = self.start(moving, prediction.projection);
        // The current location itself is broadcast as it is reported, or as projected: it is what the steps
        // begin from.
        let _ = locations.push(start);
        let hops = hops(&prediction.horizon, prediction.handling, prediction.hop_s, moving.speed_m_s);
        let total_s = hops as f64 * prediction.hop_s;
        let (v, a) = match prediction.accelerates {
            true => (moving.speed_m_s, moving.acceleration_m_s2),
            false => (moving.speed_m_s, 0.0),
        };
        if prediction.braking_m_s2.is_some_and(|braking| a < braking) {
            return locations; // it is about to stand: only the current location is sure
        }
        // Braking moderately, it does not turn round: what lies beyond its stop is not on its way.
        let end_s = if a < 0.0 { total_s.min(-v / a) } else { total_s };
        let goal = self.waypoints.get(next);
        let mut walk = Walk { track: self, next, goal, at: start, walked_m: 0.0 };
        for hop in 1..=hops {
            let t = hop as f64 * prediction.hop_s;
            if t > end_s + 1e-9 {
                break;
            }
            if !walk.to(v * t + 0.5 * a * t * t) {
                break;
            }
            if locations.push(walk.at).is_err() {
                break;
            }
        }
        locations
    }

    /// Where the prediction begins and which waypoint comes next.
    ///
    /// The flight controller turns to the next leg before the waypoint (thesis figure 5.3). While it
    /// still approaches the waypoint, it is put on the leg before; as soon as it recedes, on the leg
    /// after.
    fn start(&self, moving: &Moving, projection: Projection) -> (DVec3, usize) {
        let next = self.next.min(self.waypoints.count().saturating_sub(1));
        if !self.project || next < 2 || projection == Projection::None {
            return (moving.at, next);
        }
        let legs = [next - 2, next - 1, next].map(|i| self.waypoints.get(i));
        let [Some(before), Some(joint), Some(after)] = legs else { return (moving.at, next) };
        if moving.trail.moves_away_from(joint.truncate()) {
            (foot(moving.at, joint, after), next)
        } else {
            (foot(moving.at, before, joint), next - 1)
        }
    }
}

/// The foot of the perpendicular from `at` on the infinite line through two points, at the height of
/// `at`; `at` itself where the two are one.
fn foot(at: DVec3, from: DVec3, to: DVec3) -> DVec3 {
    let along = (to - from).truncate();
    let length_squared = along.length_squared();
    if length_squared < 1e-12 {
        return at;
    }
    let share = (at - from).truncate().dot(along) / length_squared;
    (from.truncate() + along * share).extend(at.z)
}

/// Goes along the waypoints.
struct Walk<'a, W> {
    track: &'a Track<'a, W>,
    next: usize,
    /// The waypoint of that number.
    goal: Option<DVec3>,
    at: DVec3,
    walked_m: f64,
}

impl<W: Waypoints> Walk<'_, W> {
    /// Walks until `total_m` from the start over ground. False past the last waypoint.
    fn to(&mut self, total_m: f64) -> bool {
        loop {
            let Some(goal) = self.goal else { return false };
            let left_m = total_m - self.walked_m;
            let leg = goal - self.at;
            let leg_m = leg.truncate().length();
            if left_m <= leg_m {
                if leg_m > 0.0 {
                    self.at += leg * (left_m / leg_m);
                }
                self.walked_m = total_m;
                return true;
            }
            (self.at, self.walked_m) = (goal, self.walked_m + leg_m);
            if self.track.waypoints.holds_at(self.next) {
                return false;
            }
            self.next += 1;
            self.goal = self.track.waypoints.get(self.next);
        }
    }
}

/// The straight way to a place aside, at the height that it has.
pub fn straight(moving: &Moving, to: DVec2, prediction: &Prediction) -> Locations {
    let mut locations = Locations::new();
    let _ = locations.push(moving.at);
    let step_m = moving.speed_m_s * prediction.hop_s;
    let way = to - moving.at.truncate();
    let way_m = way.length();
    if step_m <= 0.0 || way_m <= 0.0 {
        return locations;
    }
    let most =
        libm::ceil(reaction_distance_m(&prediction.horizon, prediction.handling, moving.speed_m_s) / step_m)
            as usize;
    // The count includes the current location.
    let count = (libm::ceil(way_m / step_m) as usize).min(most).min(LOCATIONS_MAX);
    for hop in 1..count {
        let at = moving.at.truncate() + way * (hop as f64 * step_m / way_m);
        let _ = locations.push(at.extend(moving.at.z));
    }
    locations
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::config::Config;
    use super::*;
    use std::vec::Vec;

    fn e() -> Prediction {
        Config::mbcap_e().prediction
    }

    fn moving(at: (f64, f64), speed_m_s: f64, acceleration_m_s2: f64, trail: &[(f64, f64)]) -> Moving {
        let mut past = Trail::default();
        for &(x, y) in trail {
            past.push(DVec2::new(x, y));
        }
        Moving { at: DVec3::new(at.0, at.1, 20.0), speed_m_s, acceleration_m_s2, trail: past }
    }

    /// A mission that holds at its second waypoint.
    struct Holding([DVec3; 4]);

    impl Waypoints for Holding {
        fn count(&self) -> usize {
            self.0.len()
        }
        fn get(&self, index: usize) -> Option<DVec3> {
            self.0.as_slice().get(index).copied()
        }
        fn holds_at(&self, index: usize) -> bool {
            index == 1
        }
    }

    #[test]
    fn a_prediction_ends_where_the_aircraft_holds() {
        let moving = moving((280.0, 0.0), 10.0, 0.0, &[]);
        let (flies, holds) = (square(), Holding(square()));
        let through = Track { waypoints: &flies, next: 1, project: false }.ahead(&moving, &e());
        let until = Track { waypoints: &holds, next: 1, project: false }.ahead(&moving, &e());
        assert!(through.iter().any(|at| at.y > 1.0), "{through:?}");
        assert!(until.len() >= 4 && until.iter().all(|at| at.y == 0.0 && at.x <= 300.0), "{until:?}");
        assert_eq!(until, through[..until.len()], "the same up to the hold");
        // After the hold it counts as reached.
        let behind = Track { waypoints: &holds, next: 2, project: false }.ahead(&moving, &e());
        assert!(behind.len() > 1 && behind.last().unwrap().y > 10.0, "{behind:?}");
    }

    fn square() -> [DVec3; 4] {
        [(0.0, 0.0), (300.0, 0.0), (300.0, 300.0), (0.0, 300.0)].map(|(x, y)| DVec3::new(x, y, 20.0))
    }

    #[test]
    fn mbcap_01_published_horizon_of_mbcap_e() {
        // Thesis section 5.3.1.2: "between 12 and 17 predicted locations", that is with the current one,
        // by the fit of figure 5.12.
        let horizon = |brake| Horizon::BySpeed { brake, gps_error_m: 2.5, reaction_s: 1.0, loss_s: 2.0 };
        let count = |brake, v| hops(&horizon(brake), Handling::Tracks, 0.5, v) + 1;
        let published: Vec<_> = [1.0, 2.0, 5.0, 10.0, 15.0].map(|v| count(BrakeFit::Published, v)).into();
        assert_eq!(published, [17, 15, 14, 12, 12]);
        let later: Vec<_> = [1.0, 2.0, 5.0, 10.0, 15.0].map(|v| count(BrakeFit::Later, v)).into();
        assert_eq!(later, [16, 13, 12, 11, 11]);
        assert!(
            (reaction_distance_m(&horizon(BrakeFit::Later), Handling::Tracks, 10.0) - 48.94).abs() < 1e-9
        );
        assert!(
            (reaction_distance_m(&horizon(BrakeFit::Published), Handling::Tracks, 15.0) - 75.83).abs() < 1e-9
        );
    }

    #[test]
    fn mbcap_01_the_original_looks_25_s_ahead() {
        let p = Config::mbcap().prediction;
        let square = square();
        let track = Track { waypoints: &square, next: 1, project: true };
        let points = track.ahead(&moving((10.0, 0.0), 10.0, 0.0, &[]), &p);
        assert_eq!(points.len(), 51);
        assert_eq!(points[50].truncate(), DVec2::new(260.0, 0.0));
    }

    #[test]
    fn equal_steps_round_the_corner() {
        let square = square();
        let track = Track { waypoints: &square, next: 1, project: true };
        let points = track.ahead(&moving((285.0, 1.0), 10.0, 0.0, &[]), &e());
        let ends: Vec<_> = points.iter().map(|p| (libm::round(p.x), libm::round(p.y))).collect();
        // On the first leg the place itself counts: the way goes straight to the waypoint.
        assert_eq!(&ends[..5], [(285.0, 1.0), (290.0, 1.0), (295.0, 0.0), (300.0, 0.0), (300.0, 5.0)]);
    }

    #[test]
    fn mbcap_02_projected_on_the_leg_before_while_it_approaches_and_after_when_it_recedes() {
        let square = square();
        let track = Track { waypoints: &square, next: 2, project: true };
        // The flight controller has switched to the second leg 50 m before the corner.
        let near =
            track.ahead(&moving((270.0, 4.0), 10.0, 0.0, &[(262.0, 1.0), (266.0, 2.0), (270.0, 4.0)]), &e());
        assert_eq!(near[0].truncate(), DVec2::new(270.0, 0.0));
        assert_eq!(near[1].truncate(), DVec2::new(275.0, 0.0));
        let past = track
            .ahead(&moving((296.0, 30.0), 10.0, 0.0, &[(291.0, 20.0), (294.0, 25.0), (296.0, 30.0)]), &e());
        assert_eq!(past[0].truncate(), DVec2::new(300.0, 30.0));
        // Back from a place aside it is where it is.
        let aside = Track { project: false, ..track };
        assert_eq!(aside.ahead(&moving((270.0, 4.0), 10.0, 0.0, &[]), &e())[0].y, 4.0);
    }

    #[test]
    fn mbcap_03_shaped_motion_needs_what_4_6_2_was_measured_to_need() {
        // Speed and distance until 0.1 m/s, metres: BRAKE in SITL.
        let measured =
            [(0.98, 1.43), (2.48, 4.03), (4.98, 8.89), (9.95, 20.36), (12.42, 26.94), (14.75, 33.49)];
        for (v, distance_m) in measured {
            for fit in [BrakeFit::Published, BrakeFit::Later] {
                let found_m = brake_distance_m(fit, Handling::Shaped, v);
                assert!(found_m >= distance_m, "{fit:?} {v} m/s: {found_m}");
                assert_eq!(found_m, found_m.max(brake_distance_m(fit, Handling::Tracks, v)));
            }
            let later_m = brake_distance_m(BrakeFit::Later, Handling::Shaped, v);
            assert!(later_m < distance_m * 1.05 + 0.2, "{v} m/s: {later_m}");
        }
    }

    #[test]
    fn mbcap_03_braking_sends_the_current_place_only_and_accelerating_stretches_the_steps() {
        let square = square();
        let track = Track { waypoints: &square, next: 1, project: true };
        assert_eq!(track.ahead(&moving((100.0, 0.0), 8.0, -0.7, &[]), &e()).len(), 1);
        let points = track.ahead(&moving((100.0, 0.0), 5.0, 1.0, &[]), &e());
        assert!((points[2].x - (100.0 + 5.0 + 0.5)).abs() < 1e-9);
        // The original protocol has no braking awareness.
        assert!(track.ahead(&moving((100.0, 0.0), 8.0, -0.7, &[]), &Config::mbcap().prediction).len() > 1);
    }

    #[test]
    fn nothing_lies_beyond_the_last_waypoint() {
        let square = square();
        let track = Track { waypoints: &square, next: 3, project: false };
        let points = track.ahead(&moving((12.0, 300.0), 10.0, 0.0, &[]), &e());
        assert_eq!(points.len(), 3, "12, 7, 2 m before the end");
        assert!(
            Track { waypoints: &[DVec3::ZERO; 0], next: 0, project: true }
                .ahead(&moving((0.0, 0.0), 1.0, 0.0, &[]), &e())
                .is_empty()
        );
    }

    #[test]
    fn mbcap_03_the_filter_follows_the_program_and_not_the_misprint() {
        let (mut a, filter) = (Acceleration::default(), Filter::default());
        a.update(&filter, 0.25, 0.25);
        assert!((a.m_s2() - 0.2).abs() < 1e-12);
        a.update(&filter, 0.25, 0.25);
        assert!((a.m_s2() - 0.36).abs() < 1e-12, "0.2 · 1 + 0.8 · 0.2: it adds");
        a.update(&filter, 0.04, 0.25);
        assert_eq!(a.m_s2(), 0.0, "0.16 lies in the dead band");
        a.update(&filter, -2.0, 0.25);
        assert_eq!(a.m_s2(), -5.0);
        a.update(&filter, 1.0, 0.0);
        assert_eq!(a.m_s2(), -5.0, "two reports of one time give no acceleration");
        let sharp = Filter { newest_percent: 100.0, dead_band_m_s2: 0.0 };
        a.update(&sharp, 0.01, 0.25);
        assert!((a.m_s2() - 0.04).abs() < 1e-12, "neither filtered nor cut");
    }

    #[test]
    fn the_way_aside_is_straight() {
        let p = straight(&moving((0.0, 0.0), 2.0, 0.0, &[]), DVec2::new(0.0, 4.5), &e());
        let ends: Vec<_> = p.iter().map(|p| p.y).collect();
        assert_eq!(ends, [0.0, 1.0, 2.0, 3.0, 4.0]);
    }
}
