//! Where to go so that an aircraft with the right of way can pass (thesis sections 5.1.5 and 5.3.1.3,
//! figures 5.9 and 5.18).
//!
//! The one that gives way checks every leg of the other's mission, and then at every corner. What lies
//! nearer than the safe distance pushes it away, until nothing does.

use wingbeat_geo::DVec2;

use super::config::CurveFit;

/// Farther than asked by this, so that arriving there is safe (the reference's program), metres.
const EXTRA_M: f64 = 0.1;

/// Legs that are checked; a beacon holds no more.
const LEGS_MAX: usize = super::predict::LOCATIONS_MAX;

/// Two legs may push to and fro: after so many rounds the place found last is taken.
const ROUNDS_MAX: usize = 16;

/// What the way of another asks of us.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aside {
    /// Its speed on its mission, metres per second.
    pub planned_speed_m_s: f64,
    /// d_s, metres.
    pub safe_distance_m: f64,
    /// Curves count.
    pub curves: Option<CurveFit>,
}

/// A leg with the turns at its ends.
#[derive(Clone, Copy, Debug)]
struct Leg {
    from: DVec2,
    to: DVec2,
    /// Turn from the leg before, radians, left positive; 0 at the start.
    turn_before_rad: f64,
    /// Turn to the leg after.
    turn_after_rad: f64,
}

/// The place to go to, or nothing where it is safe to stay. `way` is the other's place and the waypoints
/// that it has still to fly.
pub fn place(from: DVec2, way: &[DVec2], aside: &Aside) -> Option<DVec2> {
    let legs = legs(way);
    let mut at = from;
    for _ in 0..ROUNDS_MAX {
        let mut moved = false;
        for leg in &legs {
            if let Some(to) = pushed_by_leg(at, leg, aside) {
                (at, moved) = (to, true);
            }
        }
        if !moved {
            // Only when no leg moves it: the corners between them.
            for leg in legs.iter().skip(1) {
                let away = at - leg.from;
                if away.length() <= aside.safe_distance_m {
                    // Exactly on the corner: out of the turn, across the leg.
                    let direction = away
                        .try_normalize()
                        .unwrap_or_else(|| (leg.to - leg.from).perp().normalize_or_zero());
                    at = leg.from + direction * (aside.safe_distance_m + EXTRA_M);
                    moved = true;
                }
            }
        }
        if !moved {
            break;
        }
    }
    (at != from).then_some(at)
}

fn legs(way: &[DVec2]) -> heapless::Vec<Leg, LEGS_MAX> {
    let mut legs: heapless::Vec<Leg, LEGS_MAX> = heapless::Vec::new();
    for pair in way.windows(2) {
        if pair[0].distance_squared(pair[1]) < 1e-6 {
            continue; // no direction: two waypoints at one place
        }
        let mut leg = Leg { from: pair[0], to: pair[1], turn_before_rad: 0.0, turn_after_rad: 0.0 };
        if let Some(before) = legs.last_mut() {
            let turn = turn_rad(before.to - before.from, leg.to - leg.from);
            before.turn_after_rad = turn;
            leg.turn_before_rad = turn;
        }
        if legs.push(leg).is_err() {
            break;
        }
    }
    legs
}

/// From one direction to the next, in (−π, π], left positive.
fn turn_rad(from: DVec2, to: DVec2) -> f64 {
    libm::atan2(from.perp_dot(to), from.dot(to))
}

fn pushed_by_leg(at: DVec2, leg: &Leg, aside: &Aside) -> Option<DVec2> {
    let along = leg.to - leg.from;
    let length_m = along.length();
    let direction = along / length_m;
    let walked_m = (at - leg.from).dot(direction);
    if !(0.0..=length_m).contains(&walked_m) {
        return None; // its foot is outside: this leg does not come here
    }
    let foot = leg.from + direction * walked_m;
    let left = direction.perp();
    let side_m = (at - foot).dot(left);
    let to_the_end_m = length_m - walked_m;
    let must_cross = aside.curves.is_some_and(|fit| {
        let near_m = curve_begins_m(aside.planned_speed_m_s);
        let turn_rad = if walked_m <= to_the_end_m {
            if walked_m < near_m { leg.turn_before_rad } else { 0.0 }
        } else if to_the_end_m < near_m {
            leg.turn_after_rad
        } else {
            0.0
        };
        let inner = side_m * turn_rad > 0.0;
        let bends = libm::fabs(turn_rad) <= core::f64::consts::FRAC_PI_2;
        inner
            && bends
            && libm::fabs(side_m)
                < curve_distance_m(fit, aside.planned_speed_m_s, libm::fabs(turn_rad)) + aside.safe_distance_m
    });
    if !must_cross && libm::fabs(side_m) > aside.safe_distance_m {
        return None;
    }
    let side = if side_m < 0.0 { -1.0 } else { 1.0 };
    let side = if must_cross { -side } else { side };
    Some(foot + left * (side * (aside.safe_distance_m + EXTRA_M)))
}

/// How far before a waypoint the flight path begins to leave the leg, metres (the reference's fit).
pub fn curve_begins_m(planned_speed_m_s: f64) -> f64 {
    let v = planned_speed_m_s;
    0.619_047_619_047_62 - 0.441_428_571_428_57 * v + 0.494_666_666_666_67 * v * v
}

/// Angle, and the quadratic in speed at that angle.
const BY_ANGLE: [(f64, [f64; 3]); 5] = [
    (0.0, [0.0, 0.0, 0.0]),
    (0.377_83, [0.066_666_666_666_66, -0.008_571_428_571_426_2, 0.059_047_619_047_619]),
    (0.743_88, [0.164_285_714_285_71, -0.06, 0.112]),
    (1.139_56, [0.178_571_428_571_44, -0.095_714_285_714_29, 0.148]),
    (1.276_18, [0.219_047_619_047_6, -0.104_285_714_285_71, 0.151_809_523_809_52]),
];

/// Speed, and the quadratic in the angle at that speed.
const BY_SPEED: [(f64, [f64; 3]); 7] = [
    (0.0, [0.0, 0.0, 0.0]),
    (2.5, [-0.004_148_418_317_745_2, 1.617_350_992_579_8, -0.607_327_197_651_11]),
    (5.0, [-0.028_184_494_059_779, 4.738_105_935_002_7, 1.330_232_121_099_8]),
    (7.5, [-0.030_910_306_099_195, 10.557_940_446_505, -3.365_297_460_356_8]),
    (10.0, [-0.093_797_386_913_902, 18.318_356_442_452, -5.528_394_655_136_5]),
    (12.5, [-0.161_733_903_951_79, 28.802_004_999_439, -8.466_480_588_562_8]),
    (15.0, [-0.236_621_786_327_41, 42.085_324_900_865, -12.306_741_240_534]),
];

/// How far the flight path leaves a corner on its inner side, metres: the larger of two tables that the
/// reference measured (figure 5.18). `turn_rad` without sign.
pub fn curve_distance_m(fit: CurveFit, planned_speed_m_s: f64, turn_rad: f64) -> f64 {
    let by_angle = interpolate(&BY_ANGLE, turn_rad, planned_speed_m_s, |_, c| c);
    let by_speed = interpolate(&BY_SPEED, planned_speed_m_s, turn_rad, |speed, mut c| {
        if fit == CurveFit::Corrected && speed == 5.0 {
            c[2] = -c[2];
        }
        c
    });
    by_angle.max(by_speed)
}

fn interpolate<const N: usize>(
    rows: &[(f64, [f64; 3]); N],
    key: f64,
    x: f64,
    mend: impl Fn(f64, [f64; 3]) -> [f64; 3],
) -> f64 {
    let value = |row: &(f64, [f64; 3])| {
        let [c0, c1, c2] = mend(row.0, row.1);
        c0 + c1 * x + c2 * x * x
    };
    let lower = rows.iter().rposition(|row| row.0 < key).unwrap_or(0);
    match rows.get(lower + 1) {
        None => value(&rows[lower]),
        Some(upper) => {
            let share = (key - rows[lower].0) / (upper.0 - rows[lower].0);
            value(&rows[lower]) + share * (value(upper) - value(&rows[lower]))
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn at(x: f64, y: f64) -> DVec2 {
        DVec2::new(x, y)
    }

    fn e(planned_speed_m_s: f64) -> Aside {
        Aside { planned_speed_m_s, safe_distance_m: 7.5, curves: Some(CurveFit::AsCoded) }
    }

    #[test]
    fn curve_tables_have_their_published_values() {
        let row = |fit, v: f64| -> Vec<f64> {
            [10.0_f64, 20.0, 30.0, 45.0, 60.0, 75.0, 90.0]
                .map(|deg| libm::round(curve_distance_m(fit, v, deg.to_radians()) * 100.0) / 100.0)
                .into()
        };
        let coded = CurveFit::AsCoded;
        assert_eq!(row(coded, 2.5), [0.26, 0.49, 0.68, 0.89, 1.02, 1.07, 1.04]);
        assert_eq!(row(coded, 5.0), [0.84, 1.79, 2.82, 4.51, 6.39, 8.45, 10.70]);
        assert_eq!(row(coded, 10.0), [2.93, 5.63, 7.98, 11.11, 13.26, 14.41, 15.04]);
        assert_eq!(row(coded, 15.0), [6.73, 12.95, 18.43, 25.26, 30.34, 33.77, 35.51]);
        assert_eq!(row(CurveFit::Corrected, 5.0)[6], 4.13);
    }

    #[test]
    fn out_of_the_way_on_the_side_where_it_is() {
        let way = [at(0.0, 0.0), at(100.0, 0.0)];
        assert_eq!(place(at(50.0, 3.0), &way, &e(10.0)), Some(at(50.0, 7.6)));
        assert_eq!(place(at(50.0, -3.0), &way, &e(10.0)), Some(at(50.0, -7.6)));
        assert_eq!(place(at(50.0, 0.0), &way, &e(10.0)), Some(at(50.0, 7.6)), "on the line: to the left");
        assert_eq!(place(at(50.0, 7.6), &way, &e(10.0)), None);
        assert_eq!(place(at(120.0, 1.0), &way, &e(10.0)), None, "beyond its end");
    }

    #[test]
    fn mbcap_06_the_inner_side_of_a_curve_is_left_across_the_leg() {
        // At 10 m/s a left turn of 90 degrees begins 45.7 m before the corner and leaves it by 15 m.
        let way = [at(0.0, 0.0), at(200.0, 0.0), at(200.0, 200.0)];
        assert_eq!(place(at(170.0, 15.0), &way, &e(10.0)), Some(at(170.0, -7.6)));
        assert_eq!(place(at(170.0, -15.0), &way, &e(10.0)), None, "the outer side is safe");
        assert_eq!(place(at(100.0, 15.0), &way, &e(10.0)), None, "far from the corner too");
        let original = Aside { planned_speed_m_s: 10.0, safe_distance_m: 20.0, curves: None };
        assert_eq!(place(at(170.0, 15.0), &way, &original).map(|p| p.y), Some(20.1));
    }

    proptest! {
        #[test]
        fn mbcap_05_the_place_found_is_clear_of_every_leg_and_corner(
            x in -50.0..350.0_f64, y in -50.0..350.0_f64, turn in -2.0..2.0_f64,
        ) {
            let corner = at(150.0, 150.0);
            let way = [at(0.0, 150.0), corner, corner + 150.0 * at(libm::cos(turn), libm::sin(turn))];
            let aside = Aside { curves: None, ..e(10.0) };
            if let Some(found) = place(at(x, y), &way, &aside) {
                for leg in &legs(&way) {
                    prop_assert_eq!(pushed_by_leg(found, leg, &aside), None);
                }
                prop_assert!(found.distance(corner) >= aside.safe_distance_m);
                prop_assert!(found.distance(at(x, y)) < 60.0, "{}", found);
            }
        }
    }
}
