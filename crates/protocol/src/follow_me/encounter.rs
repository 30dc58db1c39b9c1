//! The path of the leader past a follower that holds: whether they meet, and the direction in which
//! the follower moves off.

use wingbeat_geo::{DVec2, Frame};
use wingbeat_wire::Point;

use crate::swarm::plan::{self, position};

/// The leader is expected to fly on for this time, in seconds. A follower at 1 m/s² is 12 m off its
/// position in half of it.
const AHEAD_S: f64 = 10.0;
/// A pilot flies past a holding follower at least this much further away than aircraft keep clear
/// of each other, in metres.
const SPARE_M: f64 = 4.0;
/// A follower that moves off moves this much further than the pilot has to pass, in metres.
const BEYOND_M: f64 = 4.0;
/// Above and below this difference in height the leader passes without effect: the downwash reaches
/// 15 m, in metres.
const HEIGHT_M: f64 = 18.0;
/// Below this speed the leader counts as standing, in m/s.
const STANDS_M_S: f64 = 0.5;
/// Directions in which a follower moves off, from the direction away from the leader's path, in
/// radians.
const TURNS_RAD: [f64; 3] = [0.0, 0.8, -0.8];

/// The leader by now, as far as it was received.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LeaderPath {
    pub(super) at: Point,
    /// Its velocity relative to the follower, in m/s east and north.
    pub(super) velocity_m_s: DVec2,
}

impl LeaderPath {
    /// Returns the position of the leader relative to a follower at `stand` when they are nearest,
    /// in metres east and north.
    fn nearest_m(&self, stand: Point) -> DVec2 {
        let from_m = Frame::new(position(stand)).to_local(position(self.at)).truncate();
        let speed_m_s = self.velocity_m_s.length();
        if speed_m_s < STANDS_M_S {
            return from_m;
        }
        let after_s = -from_m.dot(self.velocity_m_s) / (speed_m_s * speed_m_s);
        from_m + self.velocity_m_s * after_s.clamp(0.0, AHEAD_S)
    }

    /// Returns the positions to which a follower at `stand` can move off the path of the leader,
    /// the best one first; none where the leader passes clear of it.
    pub(super) fn sites_off(&self, stand: Point, clear_m: f64) -> impl Iterator<Item = Point> + use<> {
        let nearest_m = self.nearest_m(stand);
        let height_m = f64::from(self.at.height_mm.saturating_sub(stand.height_mm)) * 1e-3;
        let near_m = nearest_m.length();
        let is_met = near_m < clear_m + SPARE_M && height_m.abs() < HEIGHT_M;
        // Straight ahead of the leader either side is as good.
        let side_m = self.velocity_m_s.perp().normalize_or(DVec2::Y);
        let away_m = (-nearest_m).try_normalize().filter(|_| near_m > STANDS_M_S).unwrap_or(side_m);
        let by_m = clear_m + SPARE_M + BEYOND_M - near_m;
        TURNS_RAD.into_iter().filter(move |_| is_met).map(move |turn_rad| {
            let (sin, cos) = libm::sincos(turn_rad);
            let off_m =
                DVec2::new(away_m.x * cos - away_m.y * sin, away_m.x * sin + away_m.y * cos) * by_m / cos;
            plan::moved(stand, off_m.x, off_m.y)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAND: Point = Point { latitude_e7: 394_825_940, longitude_e7: -3_462_650, height_mm: 20_000 };

    /// The first site for a leader at this position east and north of the follower.
    fn site_m(east_m: f64, north_m: f64, velocity_m_s: [f64; 2], up_mm: i32) -> Option<DVec2> {
        let at = plan::moved(STAND, east_m, north_m);
        let at = Point { height_mm: at.height_mm + up_mm, ..at };
        let path = LeaderPath { at, velocity_m_s: DVec2::from_array(velocity_m_s) };
        let site = path.sites_off(STAND, 6.0).next()?;
        Some(Frame::new(position(STAND)).to_local(position(site)).truncate())
    }

    #[test]
    fn follow_22_a_follower_moves_to_the_side_on_which_the_leader_passes_further_away() {
        let near = |site: Option<DVec2>, expected: [f64; 2]| {
            let site = site.expect("the leader meets it");
            assert!(site.distance(DVec2::from_array(expected)) < 0.1, "{site}");
        };
        // From the south, 2 m west of the follower: 12 m more to the east.
        near(site_m(-2.0, -40.0, [0.0, 5.0], 0), [12.0, 0.0]);
        near(site_m(3.0, -40.0, [0.0, 5.0], 0), [-11.0, 0.0]);
        // A leader that stands near it.
        near(site_m(4.0, 0.0, [0.0, 0.0], 5_000), [-10.0, 0.0]);
        let ahead = site_m(0.0, -40.0, [0.0, 5.0], 0).expect("straight ahead");
        assert!((ahead.x.abs() - 14.0).abs() < 0.1 && ahead.y.abs() < 0.1, "{ahead}");
    }

    #[test]
    fn follow_22_a_follower_stays_where_the_leader_passes_clear_of_it() {
        assert_eq!(site_m(11.0, -40.0, [0.0, 5.0], 0), None, "to the side");
        assert_eq!(site_m(0.0, -70.0, [0.0, 5.0], 0), None, "too far ahead");
        assert_eq!(site_m(0.0, -20.0, [0.0, -5.0], 0), None, "flying away");
        assert_eq!(site_m(0.0, -40.0, [0.0, 5.0], 20_000), None, "above the downwash");
    }
}
