//! The closest approach of two aircraft: between two samples, and from now on.
//!
//! One computation serves both: the point of a straight path that is nearest to zero, where the path is the
//! difference of two positions. An approach between two samples is found too.

use glam::DVec3;

/// The nearest that two aircraft will come if both keep their velocities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Approach {
    /// From now, seconds; zero where they already diverge.
    pub time_s: f64,
    /// Their difference then, metres.
    pub offset_m: DVec3,
}

impl Approach {
    /// Of an aircraft that is `offset_m` from here and moves by `velocity_m_s` as seen from here, during the
    /// next `horizon_s` seconds.
    pub fn within(offset_m: DVec3, velocity_m_s: DVec3, horizon_s: f64) -> Self {
        let path_m = velocity_m_s * horizon_s;
        let share = nearest_share(offset_m, path_m);
        Self { time_s: share * horizon_s, offset_m: offset_m + path_m * share }
    }
    /// How far apart they are then, metres.
    pub fn distance_m(&self) -> f64 {
        self.offset_m.length()
    }
}

/// The offset nearest to zero of two points whose difference goes straight from `before` to `after`.
pub fn nearest_between(before: DVec3, after: DVec3) -> DVec3 {
    let path = after - before;
    before + path * nearest_share(before, path)
}

/// The share of `path`, from `start` on, at which it is nearest to zero: 0 to 1; 1 where the path has no length.
fn nearest_share(start: DVec3, path: DVec3) -> f64 {
    let length_squared = path.length_squared();
    if length_squared > 0.0 { (-start.dot(path) / length_squared).clamp(0.0, 1.0) } else { 1.0 }
}

/// Over ground, and in height, metres: the published collision rule has a limit for each.
pub fn horizontal_and_vertical_m(offset_m: DVec3) -> (f64, f64) {
    (offset_m.truncate().length(), libm::fabs(offset_m.z))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_pass_between_two_samples_is_found() {
        let (before, after) = (DVec3::new(-30.0, 3.0, 4.0), DVec3::new(30.0, 3.0, 4.0));
        assert_eq!(nearest_between(before, after), DVec3::new(0.0, 3.0, 4.0));
        assert_eq!(nearest_between(before, before), before);
        assert_eq!(horizontal_and_vertical_m(DVec3::new(3.0, 4.0, -2.0)), (5.0, 2.0));
    }

    #[test]
    fn diverging_aircraft_are_nearest_now_and_converging_ones_later() {
        let east = DVec3::new(10.0, 0.0, 0.0);
        let diverging = Approach::within(DVec3::new(5.0, 1.0, 0.0), east, 30.0);
        assert_eq!((diverging.time_s, diverging.offset_m), (0.0, DVec3::new(5.0, 1.0, 0.0)));
        let converging = Approach::within(DVec3::new(-50.0, 1.0, 0.0), east, 30.0);
        assert_eq!((converging.time_s, converging.distance_m()), (5.0, 1.0));
        // The horizon ends the prediction.
        let late = Approach::within(DVec3::new(-50.0, 1.0, 0.0), east, 3.0);
        assert_eq!((late.time_s, late.offset_m.x), (3.0, -20.0));
    }

    proptest! {
        #[test]
        fn no_point_of_the_path_is_nearer(
            from in prop::array::uniform3(-1e3..1e3f64), to in prop::array::uniform3(-1e3..1e3f64), t in 0.0..1.0f64,
        ) {
            let (before, after) = (DVec3::from(from), DVec3::from(to));
            let nearest_m = nearest_between(before, after).length();
            prop_assert!(nearest_m <= before.lerp(after, t).length() + 1e-9);
            prop_assert!(nearest_m <= before.length() && nearest_m <= after.length() + 1e-9);
        }
    }
}
