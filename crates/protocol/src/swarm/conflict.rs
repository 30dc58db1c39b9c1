//! Whether straight ways come too near one another: with their times, for what is planned, and without, for
//! what passes by somebody whose time is not known.

use wingbeat_geo::DVec3;
use wingbeat_geo::approach::nearest_between;

/// A straight way; both ends the same for a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    /// Its start, metres east, north and up.
    pub from_m: DVec3,
    /// Its end.
    pub to_m: DVec3,
}

impl Way {
    /// How near any point of this way comes to any point of the other, metres.
    pub fn distance_m(&self, other: &Self) -> f64 {
        // Both offsets at which the ways are nearest, each clamped to its way in turn.
        let (a, b, r) = (self.to_m - self.from_m, other.to_m - other.from_m, self.from_m - other.from_m);
        let (aa, bb, ab, ar, br) = (a.dot(a), b.dot(b), a.dot(b), a.dot(r), b.dot(r));
        let share = |above: f64, below: f64| if below > 0.0 { (above / below).clamp(0.0, 1.0) } else { 0.0 };
        let mut s = share(ab * br - ar * bb, aa * bb - ab * ab);
        let mut t = share(ab * s + br, bb);
        s = share(ab * t - ar, aa);
        t = share(ab * s + br, bb);
        // Parallel ways may hide their nearest ends from that.
        let mut least = (r + a * s - b * t).length();
        for (point, way) in
            [(self.from_m, other), (self.to_m, other), (other.from_m, self), (other.to_m, self)]
        {
            least = least.min(nearest_between(way.from_m - point, way.to_m - point).length());
        }
        least
    }
}

/// Where an aircraft is at a time; between two of them it flies straight and evenly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    /// When, seconds.
    pub time_s: f64,
    /// Where, metres east, north and up.
    pub at_m: DVec3,
}

/// How near two aircraft come that keep to their stops, metres. Before its first and after its last stop an
/// aircraft stays there.
pub fn closest_m(a: &[Stop], b: &[Stop]) -> f64 {
    let mut least = f64::INFINITY;
    let mut look = |from_s: f64, to_s: f64| {
        let (before, after) = (at(a, from_s) - at(b, from_s), at(a, to_s) - at(b, to_s));
        least = least.min(nearest_between(before, after).length());
    };
    let mut now_s = a.iter().chain(b).map(|s| s.time_s).fold(f64::INFINITY, f64::min);
    look(now_s, now_s);
    // From one stop of either to the next, both fly straight.
    while let Some(next_s) =
        a.iter().chain(b).map(|s| s.time_s).filter(|t| *t > now_s).min_by(|x, y| x.total_cmp(y))
    {
        look(now_s, next_s);
        now_s = next_s;
    }
    least
}

fn at(stops: &[Stop], time_s: f64) -> DVec3 {
    let Some(next) = stops.iter().position(|s| s.time_s > time_s) else {
        return stops.last().map_or(DVec3::ZERO, |s| s.at_m);
    };
    let Some(last) = next.checked_sub(1).map(|i| stops[i]) else { return stops[next].at_m };
    let share = (time_s - last.time_s) / (stops[next].time_s - last.time_s);
    last.at_m.lerp(stops[next].at_m, share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn way(from: [f64; 3], to: [f64; 3]) -> Way {
        Way { from_m: DVec3::from(from), to_m: DVec3::from(to) }
    }

    #[test]
    fn ways_that_cross_pass_and_run_beside() {
        let east = way([0.0, 0.0, 20.0], [200.0, 0.0, 20.0]);
        assert_eq!(east.distance_m(&way([100.0, -50.0, 20.0], [100.0, 50.0, 20.0])), 0.0);
        assert_eq!(east.distance_m(&way([100.0, -50.0, 27.0], [100.0, 50.0, 27.0])), 7.0);
        assert_eq!(east.distance_m(&way([250.0, 0.0, 20.0], [300.0, 0.0, 20.0])), 50.0);
        assert_eq!(east.distance_m(&way([300.0, 9.0, 20.0], [50.0, 9.0, 20.0])), 9.0);
        assert_eq!(east.distance_m(&way([50.0, 3.0, 24.0], [50.0, 3.0, 24.0])), 5.0);
    }

    #[test]
    fn who_passes_a_place_at_another_time_does_not_meet() {
        let stop = |time_s, x| Stop { time_s, at_m: DVec3::new(x, 0.0, 0.0) };
        let first = [stop(0.0, 0.0), stop(10.0, 100.0)];
        assert_eq!(closest_m(&first, &[stop(0.0, 50.0), stop(10.0, 150.0)]), 50.0);
        assert_eq!(closest_m(&first, &[stop(0.0, 50.0)]), 0.0, "who stands is run over");
        assert_eq!(closest_m(&first, &[stop(20.0, 0.0), stop(30.0, 40.0)]), 0.0, "who waits at the start");
        assert_eq!(
            closest_m(&[stop(5.0, 0.0), stop(15.0, 100.0)], &[stop(0.0, 10.0), stop(10.0, 110.0)]),
            10.0
        );
    }

    proptest! {
        #[test]
        fn no_two_points_of_two_ways_are_nearer(
            a in prop::array::uniform6(-100.0..100.0f64), b in prop::array::uniform6(-100.0..100.0f64),
            s in 0.0..=1.0f64, t in 0.0..=1.0f64,
        ) {
            let (a, b) = (way([a[0], a[1], a[2]], [a[3], a[4], a[5]]), way([b[0], b[1], b[2]], [b[3], b[4], b[5]]));
            let apart = (a.from_m.lerp(a.to_m, s) - b.from_m.lerp(b.to_m, t)).length();
            prop_assert!(a.distance_m(&b) <= apart + 1e-6, "{} {apart}", a.distance_m(&b));
            prop_assert!((a.distance_m(&b) - b.distance_m(&a)).abs() < 1e-6);
        }
    }
}
