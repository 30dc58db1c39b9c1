//! A silent aircraft as an obstacle that grows: its flight controller flies on along the course that it broadcast last,
//! or stopped anywhere on it (`docs/protocols/mbcap.md`, *Silent aircraft*). Its radio alone may be dead: then its companion
//! decides, and by the same rules the lower of two never crosses the course of the other.

use heapless::Vec;
use wingbeat_geo::{DVec2, DVec3, Duration};
use wingbeat_wire::COURSE_MAX;

/// Without a beacon for so long an aircraft is no longer waited for: 25 in a row are lost. One that flies reckons with it
/// earlier ([`super::config::Config::prediction_lasts`]): to stop too early costs time only, to continue too early does not.
pub(super) const SILENT_AFTER: Duration = Duration::from_secs(5);
/// A silent aircraft is no obstacle any more: its battery is empty, or a pilot has landed it.
pub(super) const FORGOTTEN_AFTER: Duration = Duration::from_secs(1_200);

/// Until then one that stopped may hover where it did: its guardian notices, brakes it, waits 10 s and lands it at 0.5 m/s
/// at the end, seconds. A companion that lives has left the course of the higher by then.
const DOWN_AFTER_S: f64 = 90.0;
/// Longest time that conflicts hold up an aircraft on its way home, seconds: after it the aircraft lands.
const HELD_UP_S: f64 = 120.0;
/// One that flies on is at least so fast, corners among them, as a share of its planned speed.
const SLOWEST: f64 = 0.5;
/// And at most so fast: its flight controller keeps the planned speed, and wind pushes it along a little.
const FASTEST: f64 = 1.1;
/// It may be so much farther: what it flew between its last measurement and its last beacon, and its GNSS error, metres.
const AHEAD_M: f64 = 10.0;

/// Its last position and the waypoints of its course, in the local frame.
pub(super) type Path = Vec<DVec3, { COURSE_MAX + 1 }>;

/// The same over ground.
pub(super) type Way = Vec<DVec2, { COURSE_MAX + 1 }>;

/// Where a silent aircraft may be.
#[derive(Clone, Debug)]
pub(super) struct Obstacle {
    pub(super) path: Path,
    /// Its planned speed, metres per second.
    pub(super) speed_m_s: f64,
    /// Whether it lands at the end of its course.
    pub(super) lands: bool,
    /// The point of the path where its flight controller stays if nothing more is ordered: behind it lies the rest of the
    /// mission, which only its companion continues.
    pub(super) stays_at: usize,
    /// Whether it gives way to this aircraft: its id is lower. If its companion lives, it never crosses our course; one that
    /// is higher may wait anywhere on its own course for any time, and continue then.
    pub(super) yields: bool,
    /// Since its last position was measured, seconds.
    pub(super) silent_s: f64,
}

/// A part of a path, by the way along it, metres.
pub(super) type Part = core::ops::RangeInclusive<f64>;

impl Obstacle {
    /// Returns one that stays where it is, seconds from now too.
    pub(super) fn standing(at: DVec3) -> Self {
        let path = core::iter::once(at).collect();
        Self { path, speed_m_s: 0.0, lands: false, stays_at: 0, yields: false, silent_s: 0.0 }
    }

    fn length_m(&self) -> f64 {
        self.path.windows(2).map(|leg| over_ground_m(leg[0], leg[1])).sum()
    }

    /// Where on its path it may be so many seconds from now; nowhere where it is down.
    pub(super) fn part(&self, in_s: f64) -> Option<Part> {
        let (length_m, t) = (self.length_m(), self.silent_s + in_s);
        let to_m = (self.speed_m_s * FASTEST * t + AHEAD_M).min(length_m);
        if !self.yields {
            let is_down = self.lands && t > self.arrives_s(length_m) + DOWN_AFTER_S + HELD_UP_S;
            return (!is_down).then_some(0.0..=to_m);
        }
        if t < DOWN_AFTER_S {
            return Some(0.0..=to_m);
        }
        // One that stopped is down, and one that flies on is past this.
        let from_m = (self.speed_m_s * SLOWEST * t).min(length_m);
        let is_at_the_end = from_m >= length_m;
        // It stands over its last waypoint, unless it lands there.
        let is_down = self.lands && is_at_the_end && t > self.arrives_s(length_m) + DOWN_AFTER_S;
        (!is_down).then_some(from_m..=to_m.max(from_m))
    }

    /// Returns the time after its last position at which it is over its last waypoint if it flies on, in seconds.
    fn arrives_s(&self, length_m: f64) -> f64 {
        if self.speed_m_s > 0.0 { length_m / (self.speed_m_s * SLOWEST) } else { 0.0 }
    }

    /// Where it is if it flies on, so many seconds from now.
    fn part_if_flying(&self, in_s: f64) -> Part {
        let (length_m, t) = (self.length_m(), self.silent_s + in_s);
        let from_m = (self.speed_m_s * SLOWEST * t - AHEAD_M).clamp(0.0, length_m);
        from_m..=(self.speed_m_s * FASTEST * t + AHEAD_M).min(length_m)
    }

    /// Distance over ground from a position to a part of the path, where it is as high within `height_m`.
    fn distance_m(&self, at: DVec3, part: &Part, height_m: f64) -> f64 {
        if let [only] = self.path.as_slice() {
            return if libm::fabs(only.z - at.z) < height_m {
                over_ground_m(*only, at)
            } else {
                f64::INFINITY
            };
        }
        let (mut walked_m, mut least_m) = (0.0, f64::INFINITY);
        // A dead companion leaves it hovering there, whatever became of the rest of its mission.
        if let Some(stays) = self.path.get(self.stays_at).filter(|_| self.stays_at + 1 < self.path.len())
            && libm::fabs(stays.z - at.z) < height_m
        {
            least_m = over_ground_m(*stays, at);
        }
        for leg in self.path.windows(2) {
            let leg_m = over_ground_m(leg[0], leg[1]);
            let (from_m, to_m) = ((part.start() - walked_m).max(0.0), (part.end() - walked_m).min(leg_m));
            walked_m += leg_m;
            if from_m > to_m {
                continue;
            }
            let share = |along_m: f64| if leg_m > 0.0 { along_m / leg_m } else { 0.0 };
            let (from, to) = (leg[0].lerp(leg[1], share(from_m)), leg[0].lerp(leg[1], share(to_m)));
            let nearest = nearest(at.truncate(), from, to);
            if libm::fabs(nearest.z - at.z) < height_m {
                least_m = least_m.min(over_ground_m(nearest, at));
            }
        }
        least_m
    }

    /// The position on its path, over ground, that is nearest to another: it may have landed anywhere on it.
    pub(super) fn nearest_on_path(&self, at: DVec2) -> Option<DVec2> {
        let only = self.path.first().map(|p| p.truncate());
        let on_legs = self.path.windows(2).map(|leg| nearest(at, leg[0], leg[1]).truncate());
        on_legs.chain(only).min_by(|a, b| a.distance(at).total_cmp(&b.distance(at)))
    }

    /// Whether an aircraft on its path so many seconds from now may be nearer to a position than that.
    pub(super) fn may_be_near(&self, at: DVec3, in_s: f64, distance_m: f64, height_m: f64) -> bool {
        self.part(in_s).is_some_and(|part| self.distance_m(at, &part, height_m) < distance_m)
    }

    /// The same of one that flies on.
    pub(super) fn flies_near(&self, at: DVec3, in_s: f64, distance_m: f64, height_m: f64) -> bool {
        self.distance_m(at, &self.part_if_flying(in_s), height_m) < distance_m
    }

    /// Whether it may still come nearer to a position than that, or be there.
    pub(super) fn may_come_near(&self, at: DVec3, distance_m: f64, height_m: f64) -> bool {
        self.room_m(at, height_m) < distance_m
    }

    /// Returns how near it may still come to a position over ground, in metres.
    pub(super) fn room_m(&self, at: DVec3, height_m: f64) -> f64 {
        self.part(0.0).map_or(f64::INFINITY, |part| {
            let to_come = *part.start()..=self.length_m();
            self.distance_m(at, &to_come, height_m)
        })
    }
}

fn over_ground_m(a: DVec3, b: DVec3) -> f64 {
    a.truncate().distance(b.truncate())
}

/// The nearest point over ground of a leg, with its height.
fn nearest(at: DVec2, from: DVec3, to: DVec3) -> DVec3 {
    let along = (to - from).truncate();
    let length_squared = along.length_squared();
    if length_squared < 1e-12 {
        return from;
    }
    from.lerp(to, ((at - from.truncate()).dot(along) / length_squared).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obstacle(silent_s: f64) -> Obstacle {
        let path = [(0.0, 0.0), (100.0, 0.0), (100.0, 100.0)].map(|(x, y)| DVec3::new(x, y, 20.0));
        Obstacle {
            path: path.into_iter().collect(),
            speed_m_s: 10.0,
            lands: false,
            stays_at: 2,
            yields: true,
            silent_s,
        }
    }

    #[test]
    fn mbcap_16_a_silent_aircraft_is_an_obstacle_that_grows_along_its_course_round_corners() {
        let crossing = DVec3::new(100.0, 50.0, 20.0);
        assert!(!obstacle(5.0).may_be_near(crossing, 0.0, 20.0, 50.0), "65 m at the most");
        assert!(obstacle(5.0).may_be_near(crossing, 6.0, 20.0, 50.0), "131 m at the most");
        assert!(
            obstacle(5.0).may_be_near(DVec3::new(30.0, 5.0, 20.0), 0.0, 20.0, 50.0),
            "it may have stopped"
        );
        assert!(!obstacle(5.0).may_be_near(DVec3::new(30.0, 5.0, 80.0), 0.0, 20.0, 50.0), "60 m above");
    }

    #[test]
    fn mbcap_16_it_has_passed_when_neither_one_that_stopped_nor_one_that_flew_on_can_be_there() {
        let (begin, end) = (DVec3::new(30.0, 0.0, 20.0), DVec3::new(100.0, 100.0, 20.0));
        assert!(obstacle(89.0).may_be_near(begin, 0.0, 20.0, 50.0));
        assert!(!obstacle(90.0).may_be_near(begin, 0.0, 20.0, 50.0));
        assert!(obstacle(1_000.0).may_be_near(end, 0.0, 20.0, 50.0), "it hovers over its last waypoint");
        let lands = Obstacle { lands: true, ..obstacle(131.0) };
        assert!(!lands.may_be_near(end, 0.0, 20.0, 50.0));
    }

    #[test]
    fn mbcap_21_one_that_is_higher_is_on_its_course_for_ever() {
        let (begin, end) = (DVec3::new(30.0, 0.0, 20.0), DVec3::new(100.0, 100.0, 20.0));
        for silent_s in [5.0, 89.0, 90.0, 300.0, 1_000.0] {
            let higher = Obstacle { yields: false, ..obstacle(silent_s) };
            assert!(higher.may_be_near(begin, 0.0, 20.0, 50.0), "{silent_s} s");
        }
        // On its way home it lands there, at the latest when conflicts have held it up for 120 s.
        let home = |silent_s| Obstacle { yields: false, lands: true, ..obstacle(silent_s) };
        assert!(home(249.0).may_be_near(end, 0.0, 20.0, 50.0));
        assert!(!home(251.0).may_be_near(end, 0.0, 20.0, 50.0));
    }

    /// It stood when it fell silent: its flight controller stays there, or its companion continues the mission.
    #[test]
    fn mbcap_21_one_that_stood_stays_an_obstacle_there_and_on_its_mission() {
        let stood = Obstacle { stays_at: 0, ..obstacle(300.0) };
        assert!(stood.may_be_near(DVec3::new(0.0, 5.0, 20.0), 0.0, 20.0, 50.0), "it may hover there");
        assert!(stood.may_be_near(DVec3::new(100.0, 100.0, 20.0), 0.0, 20.0, 50.0), "it may have flown on");
        assert!(!obstacle(300.0).may_be_near(DVec3::new(0.0, 5.0, 20.0), 0.0, 20.0, 50.0));
    }

    #[test]
    fn mbcap_16_one_that_stays_is_where_it_was() {
        let path: Path = core::iter::once(DVec3::new(0.0, 0.0, 20.0)).collect();
        let stays = Obstacle { path, ..obstacle(200.0) };
        assert!(stays.may_be_near(DVec3::new(0.0, 19.0, 20.0), 0.0, 20.0, 50.0));
        assert!(!stays.may_be_near(DVec3::new(0.0, 21.0, 20.0), 0.0, 20.0, 50.0));
        assert!(stays.may_come_near(DVec3::new(0.0, 5.0, 20.0), 8.5, 50.0));
    }
}
