//! Distances between straight paths: with their times, for what is planned, and without, for what passes an aircraft
//! whose time is not known.

use wingbeat_geo::DVec3;
use wingbeat_geo::approach::nearest_between;

/// A straight path; both ends the same for a position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Its start, metres east, north and up.
    pub from_m: DVec3,
    /// Its end.
    pub to_m: DVec3,
}

impl Path {
    /// Least distance between any point of this path and any point of the other, metres.
    pub fn distance_m(&self, other: &Self) -> f64 {
        // Both offsets at which the paths are nearest, each clamped to its path in turn.
        let (a, b, r) = (self.to_m - self.from_m, other.to_m - other.from_m, self.from_m - other.from_m);
        let (aa, bb, ab, ar, br) = (a.dot(a), b.dot(b), a.dot(b), a.dot(r), b.dot(r));
        let share = |above: f64, below: f64| if below > 0.0 { (above / below).clamp(0.0, 1.0) } else { 0.0 };
        let mut s = share(ab * br - ar * bb, aa * bb - ab * ab);
        let mut t = share(ab * s + br, bb);
        s = share(ab * t - ar, aa);
        t = share(ab * s + br, bb);
        // Of parallel paths that may miss the nearest ends.
        let mut least = (r + a * s - b * t).length();
        for (point, path) in
            [(self.from_m, other), (self.to_m, other), (other.from_m, self), (other.to_m, self)]
        {
            least = least.min(nearest_between(path.from_m - point, path.to_m - point).length());
        }
        least
    }
}

/// An upright rectangle: an aircraft falls from anywhere on a level path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curtain {
    /// Its lower edge.
    pub foot: Path,
    /// Its height, metres.
    pub height_m: f64,
}

impl Curtain {
    /// Returns the least distance between any point of the rectangle and any point of a path, in metres.
    pub fn distance_m(&self, path: &Path) -> f64 {
        let up_m = DVec3::Z * self.height_m;
        let Path { from_m, to_m } = self.foot;
        let upright = |at_m: DVec3| Path { from_m: at_m, to_m: at_m + up_m };
        let top = Path { from_m: from_m + up_m, to_m: to_m + up_m };
        let edges = [self.foot, top, upright(from_m), upright(to_m)];
        let least_m = edges.iter().map(|edge| edge.distance_m(path)).fold(f64::INFINITY, f64::min);
        let along = (to_m - from_m).truncate();
        let Some(normal) = along.perp().try_normalize() else { return least_m };
        // Within its edges the rectangle is as near as its plane.
        let off_m = |at_m: DVec3| (at_m - from_m).truncate().dot(normal);
        let is_within = |at_m: &DVec3| {
            let share = (*at_m - from_m).truncate().dot(along) / along.length_squared();
            (0.0..=1.0).contains(&share) && (0.0..=self.height_m).contains(&(at_m.z - from_m.z))
        };
        let (begins_m, ends_m) = (off_m(path.from_m), off_m(path.to_m));
        let crosses =
            (begins_m * ends_m < 0.0).then(|| path.from_m.lerp(path.to_m, begins_m / (begins_m - ends_m)));
        [(Some(path.from_m), begins_m), (Some(path.to_m), ends_m), (crosses, 0.0)]
            .into_iter()
            .filter(|(at_m, _)| at_m.as_ref().is_some_and(is_within))
            .map(|(_, off_m)| libm::fabs(off_m))
            .fold(least_m, f64::min)
    }
}

/// Where an aircraft is at a time; between two of them it flies straight at one speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedPosition {
    /// Seconds.
    pub time_s: f64,
    /// Metres east, north and up.
    pub at_m: DVec3,
}

/// Least distance between two aircraft that keep to their times, metres. Before its first and after its last an
/// aircraft stays there.
pub fn closest_m(a: &[TimedPosition], b: &[TimedPosition]) -> f64 {
    let mut least = f64::INFINITY;
    let mut sample = |from_s: f64, to_s: f64| {
        let (before, after) = (at(a, from_s) - at(b, from_s), at(a, to_s) - at(b, to_s));
        least = least.min(nearest_between(before, after).length());
    };
    let mut now_s = a.iter().chain(b).map(|s| s.time_s).fold(f64::INFINITY, f64::min);
    sample(now_s, now_s);
    // From one time of either to the next, both fly straight.
    while let Some(next_s) =
        a.iter().chain(b).map(|s| s.time_s).filter(|t| *t > now_s).min_by(|x, y| x.total_cmp(y))
    {
        sample(now_s, next_s);
        now_s = next_s;
    }
    least
}

fn at(positions: &[TimedPosition], time_s: f64) -> DVec3 {
    let Some(next) = positions.iter().position(|s| s.time_s > time_s) else {
        return positions.last().map_or(DVec3::ZERO, |s| s.at_m);
    };
    let Some(last) = next.checked_sub(1).map(|i| positions[i]) else { return positions[next].at_m };
    let share = (time_s - last.time_s) / (positions[next].time_s - last.time_s);
    last.at_m.lerp(positions[next].at_m, share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(from: [f64; 3], to: [f64; 3]) -> Path {
        Path { from_m: DVec3::from(from), to_m: DVec3::from(to) }
    }

    #[test]
    fn paths_that_cross_pass_and_run_in_parallel() {
        let east = path([0.0, 0.0, 20.0], [200.0, 0.0, 20.0]);
        assert_eq!(east.distance_m(&path([100.0, -50.0, 20.0], [100.0, 50.0, 20.0])), 0.0);
        assert_eq!(east.distance_m(&path([100.0, -50.0, 27.0], [100.0, 50.0, 27.0])), 7.0);
        assert_eq!(east.distance_m(&path([250.0, 0.0, 20.0], [300.0, 0.0, 20.0])), 50.0);
        assert_eq!(east.distance_m(&path([300.0, 9.0, 20.0], [50.0, 9.0, 20.0])), 9.0);
        assert_eq!(east.distance_m(&path([50.0, 3.0, 24.0], [50.0, 3.0, 24.0])), 5.0);
    }

    #[test]
    fn aircraft_that_pass_a_position_at_different_times_do_not_meet() {
        let at = |time_s, x| TimedPosition { time_s, at_m: DVec3::new(x, 0.0, 0.0) };
        let first = [at(0.0, 0.0), at(10.0, 100.0)];
        assert_eq!(closest_m(&first, &[at(0.0, 50.0), at(10.0, 150.0)]), 50.0);
        assert_eq!(closest_m(&first, &[at(0.0, 50.0)]), 0.0, "one that stands is run over");
        assert_eq!(closest_m(&first, &[at(20.0, 0.0), at(30.0, 40.0)]), 0.0, "one that waits at the start");
        assert_eq!(closest_m(&[at(5.0, 0.0), at(15.0, 100.0)], &[at(0.0, 10.0), at(10.0, 110.0)]), 10.0);
    }

    proptest! {
        #[test]
        fn a_curtain_is_as_near_as_the_nearest_of_many_falls(
            to in -60.0..60.0_f64, height_m in 0.0..40.0_f64,
            from in proptest::array::uniform3(-50.0..50.0_f64), end in proptest::array::uniform3(-50.0..50.0_f64),
        ) {
            let foot = Path { from_m: DVec3::new(1.0, 2.0, 0.0), to_m: DVec3::new(to, -0.5 * to, 0.0) };
            let path = Path { from_m: DVec3::from_array(from), to_m: DVec3::from_array(end) };
            let fall = |n: u32| {
                let at_m = foot.from_m.lerp(foot.to_m, f64::from(n) / 400.0);
                Path { from_m: at_m, to_m: at_m + DVec3::Z * height_m }.distance_m(&path)
            };
            let fallen_m = (0..=400).map(fall).fold(f64::INFINITY, f64::min);
            let found_m = Curtain { foot, height_m }.distance_m(&path);
            prop_assert!((fallen_m - found_m).abs() < 0.3, "{found_m} m, expected {fallen_m}");
        }
    }

    proptest! {
        #[test]
        fn no_two_points_of_two_paths_are_nearer(
            a in prop::array::uniform6(-100.0..100.0f64), b in prop::array::uniform6(-100.0..100.0f64),
            s in 0.0..=1.0f64, t in 0.0..=1.0f64,
        ) {
            let (a, b) = (path([a[0], a[1], a[2]], [a[3], a[4], a[5]]), path([b[0], b[1], b[2]], [b[3], b[4], b[5]]));
            let apart = (a.from_m.lerp(a.to_m, s) - b.from_m.lerp(b.to_m, t)).length();
            prop_assert!(a.distance_m(&b) <= apart + 1e-6, "{} {apart}", a.distance_m(&b));
            prop_assert!((a.distance_m(&b) - b.distance_m(&a)).abs() < 1e-6);
        }
    }
}
