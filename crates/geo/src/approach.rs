//! How near two aircraft come: between two looks, and from now on.
//!
//! One computation serves both: the point of a straight way that is nearest to zero, where the way is the
//! difference of two positions. Nothing slips between two looks, as it would if only the ends were compared.

use glam::DVec3;

/// The nearest that two aircraft will come if both keep their velocities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Approach {
    /// From now, seconds; zero where they already part.
    pub time_s: f64,
    /// Their difference then, metres.
    pub offset_m: DVec3,
}

impl Approach {
    /// Of an aircraft that is `offset_m` from here and moves by `velocity_m_s` as seen from here, during the
    /// next `horizon_s` seconds.
    pub fn within(offset_m: DVec3, velocity_m_s: DVec3, horizon_s: f64) -> Self {
        let way_m = velocity_m_s * horizon_s;
        let share = nearest_share(offset_m, way_m);
        Self { time_s: share * horizon_s, offset_m: offset_m + way_m * share }
    }
    /// How far apart they are then, metres.
    pub fn distance_m(&self) -> f64 {
        self.offset_m.length()
    }
}

/// The offset nearest to zero of two points whose difference goes straight from `before` to `after`.
pub fn nearest_between(before: DVec3, after: DVec3) -> DVec3 {
    let way = after - before;
    before + way * nearest_share(before, way)
}

/// Which share of `way`, from `start` on, leads to its point nearest to zero: 0 to 1; all of it where there is
/// no way.
fn nearest_share(start: DVec3, way: DVec3) -> f64 {
    let length_squared = way.length_squared();
    if length_squared > 0.0 { (-start.dot(way) / length_squared).clamp(0.0, 1.0) } else { 1.0 }
}

/// Over ground, and in height: what the published collision rule looks at, metres.
pub fn horizontal_and_vertical_m(offset_m: DVec3) -> (f64, f64) {
    (offset_m.truncate().length(), libm::fabs(offset_m.z))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_pass_between_two_looks_is_seen() {
        let (before, after) = (DVec3::new(-30.0, 3.0, 4.0), DVec3::new(30.0, 3.0, 4.0));
        assert_eq!(nearest_between(before, after), DVec3::new(0.0, 3.0, 4.0));
        assert_eq!(nearest_between(before, before), before);
        assert_eq!(horizontal_and_vertical_m(DVec3::new(3.0, 4.0, -2.0)), (5.0, 2.0));
    }

    #[test]
    fn who_parts_is_nearest_now_and_who_meets_later_is_nearest_then() {
        let east = DVec3::new(10.0, 0.0, 0.0);
        let parting = Approach::within(DVec3::new(5.0, 1.0, 0.0), east, 30.0);
        assert_eq!((parting.time_s, parting.offset_m), (0.0, DVec3::new(5.0, 1.0, 0.0)));
        let meeting = Approach::within(DVec3::new(-50.0, 1.0, 0.0), east, 30.0);
        assert_eq!((meeting.time_s, meeting.distance_m()), (5.0, 1.0));
        // Beyond the horizon nothing is foretold.
        let late = Approach::within(DVec3::new(-50.0, 1.0, 0.0), east, 3.0);
        assert_eq!((late.time_s, late.offset_m.x), (3.0, -20.0));
    }

    proptest! {
        #[test]
        fn no_point_of_the_way_is_nearer(
            from in prop::array::uniform3(-1e3..1e3f64), to in prop::array::uniform3(-1e3..1e3f64), t in 0.0..1.0f64,
        ) {
            let (before, after) = (DVec3::from(from), DVec3::from(to));
            let nearest_m = nearest_between(before, after).length();
            prop_assert!(nearest_m <= before.lerp(after, t).length() + 1e-9);
            prop_assert!(nearest_m <= before.length() && nearest_m <= after.length() + 1e-9);
        }
    }
}
