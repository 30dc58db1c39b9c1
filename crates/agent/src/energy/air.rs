//! The air: the wind that is measured, learnt or stated, and the ground speed that is left against it.

use wingbeat_autopilot::Telemetry;
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec2, Duration, Instant};
use wingbeat_protocol::swarm::budget::{AIRSPEED_3_M_S, AIRSPEED_4_M_S};

use super::Reserve;

/// An airframe is built heavier or wider than the one of the makers: share of the usual airspeed that counts.
const AIRSPEED_SHARE: f64 = 0.85;
/// Slower than this no path over the ground is reckoned, metres per second.
const SLOWEST_M_S: f64 = 0.3;
/// Time constant of the smoothed ground velocity, seconds.
const SMOOTHED_S: f64 = 10.0;
/// A velocity that differs by less from the smoothed one is straight flight, metres per second.
const STRAIGHT_M_S: f64 = 2.0;
/// Straight flight counts after this time.
const STRAIGHT_FOR: Duration = Duration::from_secs(15);
/// A level return has turned round and accelerated after this time: its velocity is smoothed from then on.
const SETTLES_FOR: Duration = Duration::from_secs(25);
/// The smoothed velocity of a level return counts after this time: against a strong wind it turns round slowly.
const LEVEL_FOR: Duration = Duration::from_secs(45);
/// A climb or descent faster than this limits the horizontal speed, metres per second.
const LEVEL_M_S: f64 = 0.5;
/// Share of the commanded speed below which the wind holds the aircraft back.
const HELD_BACK: f64 = 0.9;
/// Cosine of the angle within which two courses meet the same wind.
const SAME_COURSE: f64 = 0.9;
/// A slower wind is none, metres per second. ArduCopter reports 0 where it has not estimated one yet.
const STILL_M_S: f64 = 0.05;
/// A smoothed velocity that was not updated for this time is no longer one.
const GAP: Duration = Duration::from_secs(5);

/// The wind, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wind {
    /// Velocity of the air east and north, as the autopilot estimates it, metres per second.
    Measured(DVec2),
    /// Ground speed of straight flight on a course that the wind held back, and the stated wind for every other course, metres
    /// per second.
    Learnt { course: DVec2, ground_m_s: f64, stated_m_s: f64 },
    /// Speed of a wind that may come from anywhere, metres per second.
    Stated(f64),
}

/// The air around the aircraft, and its airspeed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Air {
    airspeed_m_s: f64,
    /// Whether the airspeed is assumed: in still air it limits nothing.
    is_assumed: bool,
    wind: Wind,
}

impl Air {
    /// Returns the air as it is known; `stated` are the airspeed and the wind of the swarm's configuration, where there is one.
    pub(super) fn of(
        reserve: &Reserve,
        stated: Option<(Option<f64>, f64)>,
        telemetry: &Telemetry,
        progress: &Progress,
    ) -> Self {
        let usual_m_s = match telemetry.version {
            Some(version) if version.major < 4 => AIRSPEED_3_M_S,
            Some(_) | None => AIRSPEED_4_M_S,
        };
        let stated_airspeed = reserve.airspeed_m_s.or(stated.and_then(|(airspeed_m_s, _)| airspeed_m_s));
        let airspeed_m_s = stated_airspeed.unwrap_or(AIRSPEED_SHARE * usual_m_s);
        let estimated = telemetry.measured.wind.filter(|wind| wind.speed_m_s >= STILL_M_S).map(|wind| {
            // To where it blows.
            -DVec2::from_angle(core::f64::consts::FRAC_PI_2 - wind.from_rad) * wind.speed_m_s
        });
        let of_swarm_m_s = stated.map_or(0.0, |(_, wind_m_s)| wind_m_s);
        let stated_m_s = reserve.wind_m_s.unwrap_or(of_swarm_m_s);
        let wind = match (estimated, progress.held_back) {
            (Some(velocity_m_s), _) => Wind::Measured(velocity_m_s),
            (None, Some((course, ground_m_s))) => Wind::Learnt { course, ground_m_s, stated_m_s },
            (None, None) => Wind::Stated(stated_m_s),
        };
        Self { airspeed_m_s, is_assumed: stated_airspeed.is_none(), wind }
    }

    /// Returns the airspeed where it is assumed and limits a speed against the wind, metres per second.
    pub(super) fn assumed_m_s(&self) -> Option<f64> {
        let is_still = matches!(self.wind, Wind::Stated(wind_m_s) if wind_m_s < STILL_M_S);
        (self.is_assumed && !is_still).then_some(self.airspeed_m_s)
    }

    /// Returns the ground speed on a course, a unit vector east and north, where the autopilot wants a speed.
    pub(super) fn ground_speed_m_s(&self, course: DVec2, wanted_m_s: f64) -> f64 {
        let against = |wind_m_s: f64| {
            let is_unlimited = self.is_assumed && wind_m_s < STILL_M_S;
            if is_unlimited { wanted_m_s } else { self.airspeed_m_s - wind_m_s }
        };
        let most_m_s = match self.wind {
            Wind::Stated(wind_m_s) => against(wind_m_s),
            Wind::Learnt { course: learnt, ground_m_s, .. } if learnt.dot(course) > SAME_COURSE => ground_m_s,
            Wind::Learnt { stated_m_s, .. } => against(stated_m_s),
            Wind::Measured(wind_m_s) => {
                let along_m_s = wind_m_s.dot(course);
                let across_m_s = wind_m_s.perp_dot(course);
                // The rest of the airspeed after the crosswind, from below: sqrt(1 - s) is at least 1 - s / 2 - s² / 2.
                let share = across_m_s * across_m_s / (self.airspeed_m_s * self.airspeed_m_s);
                let ahead_m_s = if share < 1.0 {
                    self.airspeed_m_s * (1.0 - share / 2.0 - share * share / 2.0)
                } else {
                    0.0
                };
                ahead_m_s + along_m_s
            }
        };
        wanted_m_s.min(most_m_s).max(SLOWEST_M_S)
    }
}

/// The ground velocity of straight flight, as the position reports show it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Progress {
    smoothed_m_s: DVec2,
    at: Option<Instant>,
    /// Since when it flies level, and since when also straight.
    level_since: Option<Instant>,
    straight_since: Option<Instant>,
    mode: Option<Mode>,
    /// Course and ground speed of straight flight in AUTO that was slower than commanded: the wind held the aircraft back.
    held_back: Option<(DVec2, f64)>,
}

impl Progress {
    /// Takes a position report; `commanded_m_s` is the speed of AUTO on the present leg.
    pub(super) fn observe(&mut self, now: Instant, telemetry: &Telemetry, commanded_m_s: f64) {
        let velocity_m_s = telemetry.velocity_m_s;
        let mode = telemetry.mode();
        let is_new = self.mode != mode || self.at.is_none_or(|at| now.since(at) > GAP);
        if is_new {
            let held_back = self.held_back.filter(|_| telemetry.armed);
            *self = Self { smoothed_m_s: velocity_m_s.truncate(), mode, held_back, ..Self::default() };
        }
        let dt_s = self.at.map_or(0.0, |at| now.since(at).as_secs_f64());
        self.at = Some(now);
        self.smoothed_m_s += (velocity_m_s.truncate() - self.smoothed_m_s) * (dt_s / (dt_s + SMOOTHED_S));
        let settles = |since: Instant| now.since(since) < SETTLES_FOR;
        if mode == Some(Mode::Rtl) && self.level_since.is_none_or(settles) {
            self.smoothed_m_s = velocity_m_s.truncate();
        }
        let is_level = velocity_m_s.z.abs() < LEVEL_M_S;
        let is_straight = (velocity_m_s.truncate() - self.smoothed_m_s).length() < STRAIGHT_M_S;
        self.level_since = is_level.then_some(self.level_since.unwrap_or(now));
        self.straight_since = (is_level && is_straight).then_some(self.straight_since.unwrap_or(now));
        let ground_m_s = self.smoothed_m_s.length();
        let is_settled = self.straight_since.is_some_and(|since| now.since(since) >= STRAIGHT_FOR);
        if mode != Some(Mode::Auto) || !is_settled || ground_m_s < 1.0 {
            return;
        }
        let course = self.smoothed_m_s / ground_m_s;
        let is_same = |(learnt, _): (DVec2, f64)| learnt.dot(course) > SAME_COURSE;
        if ground_m_s < HELD_BACK * commanded_m_s {
            self.held_back = Some((course, ground_m_s));
        } else if self.held_back.is_some_and(is_same) {
            self.held_back = None;
        }
    }

    /// Returns the measured speed of a return along a course, once it has settled: gusts are smoothed.
    pub(super) fn of_return(&self, now: Instant, course: DVec2) -> Option<f64> {
        let level_since = self.level_since.filter(|_| self.mode == Some(Mode::Rtl))?;
        (now.since(level_since) >= LEVEL_FOR).then(|| self.smoothed_m_s.dot(course).max(SLOWEST_M_S))
    }
}

#[cfg(test)]
mod tests {
    use wingbeat_autopilot::identity::Version;
    use wingbeat_geo::DVec3;

    use super::*;

    const NORTH: DVec2 = DVec2::Y;

    fn blown(from_deg: f64, speed_m_s: f64) -> Telemetry {
        let mut telemetry = Telemetry {
            armed: true,
            version: Some(Version { major: 4, minor: 6, patch: 2 }),
            ..Telemetry::default()
        };
        let from_rad = from_deg.to_radians();
        telemetry.measured.wind = Some(wingbeat_autopilot::telemetry::Wind { speed_m_s, from_rad });
        telemetry
    }

    fn speed(from_deg: f64, wind_m_s: f64, wanted_m_s: f64) -> f64 {
        let air = Air::of(&Reserve::default(), None, &blown(from_deg, wind_m_s), &Progress::default());
        air.ground_speed_m_s(NORTH, wanted_m_s)
    }

    #[test]
    fn safe_08_the_ground_speed_is_the_airspeed_less_the_wind_against_it() {
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 0.02, "{found} {expected}");
        near(speed(0.0, 7.0, 10.0), 1.5);
        near(speed(0.0, 7.0, 1.0), 1.0);
        near(speed(180.0, 7.0, 10.0), 10.0);
        near(speed(0.0, 12.0, 10.0), SLOWEST_M_S);
        // Across: 4 of 8.5 m/s leave 7.5 m/s, reckoned from below.
        let across = speed(90.0, 4.0, 10.0);
        assert!((7.2..7.5).contains(&across), "{across}");
        near(speed(270.0, 9.0, 10.0), SLOWEST_M_S);
    }

    #[test]
    fn where_no_wind_is_known_the_stated_one_counts_and_a_measured_one_before_it() {
        let silent = Telemetry { measured: Default::default(), ..blown(0.0, 0.0) };
        let reserve = Reserve { wind_m_s: Some(3.0), airspeed_m_s: Some(9.0), ..Reserve::default() };
        let of =
            |telemetry: &Telemetry| Air::of(&reserve, Some((None, 2.0)), telemetry, &Progress::default());
        assert_eq!(of(&silent).ground_speed_m_s(NORTH, 10.0), 6.0);
        assert_eq!(of(&silent).ground_speed_m_s(-NORTH, 10.0), 6.0);
        assert_eq!(of(&blown(180.0, 1.0)).ground_speed_m_s(NORTH, 10.0), 10.0);
        let swarm = Air::of(&Reserve::default(), Some((Some(7.0), 2.0)), &silent, &Progress::default());
        assert_eq!(swarm.ground_speed_m_s(NORTH, 10.0), 5.0);
    }

    #[test]
    fn an_assumed_airspeed_limits_nothing_in_still_air_and_a_wind_of_zero_is_not_known() {
        let still = Air::of(&Reserve::default(), None, &blown(0.0, 0.0), &Progress::default());
        assert_eq!((still.ground_speed_m_s(NORTH, 15.0), still.assumed_m_s()), (15.0, None));
        let stated = Reserve { airspeed_m_s: Some(9.0), ..Reserve::default() };
        let stated = Air::of(&stated, None, &blown(0.0, 0.0), &Progress::default());
        assert_eq!((stated.ground_speed_m_s(NORTH, 15.0), stated.assumed_m_s()), (9.0, None));
        // The estimate has not begun: the stated wind counts.
        let windy = Reserve { wind_m_s: Some(3.0), ..Reserve::default() };
        let windy = Air::of(&windy, None, &blown(0.0, 0.0), &Progress::default());
        let assumed_m_s = AIRSPEED_SHARE * AIRSPEED_4_M_S;
        assert_eq!(windy.ground_speed_m_s(NORTH, 15.0), assumed_m_s - 3.0);
        assert_eq!(windy.assumed_m_s(), Some(assumed_m_s));
    }

    #[test]
    fn straight_flight_that_is_held_back_shows_the_wind_on_its_course_only() {
        let mut progress = Progress::default();
        let mut telemetry = Telemetry { measured: Default::default(), ..blown(0.0, 0.0) };
        telemetry.mode_number = Some(Mode::Auto.number());
        telemetry.velocity_m_s = DVec3::new(0.0, 3.0, 0.0);
        for s in 0..40 {
            progress.observe(Instant::from_secs(s), &telemetry, 10.0);
        }
        let air = Air::of(&Reserve::default(), None, &telemetry, &progress);
        assert!((air.ground_speed_m_s(NORTH, 10.0) - 3.0).abs() < 0.1);
        assert_eq!(air.ground_speed_m_s(-NORTH, 10.0), 10.0);
        assert_eq!(air.ground_speed_m_s(DVec2::X, 10.0), 10.0);
        let windy = Reserve { wind_m_s: Some(4.0), ..Reserve::default() };
        let air = Air::of(&windy, None, &telemetry, &progress);
        assert_eq!(air.ground_speed_m_s(DVec2::X, 10.0), AIRSPEED_SHARE * AIRSPEED_4_M_S - 4.0);
        // On the same course it reaches the commanded speed again: the wind has gone.
        telemetry.velocity_m_s = DVec3::new(0.0, 10.0, 0.0);
        for s in 40..120 {
            progress.observe(Instant::from_secs(s), &telemetry, 10.0);
        }
        assert_eq!(progress.held_back, None);
        telemetry.velocity_m_s = DVec3::new(0.0, 3.0, 0.0);
        // One that flies as fast as commanded is not held back.
        let mut progress = Progress::default();
        for s in 0..40 {
            progress.observe(Instant::from_secs(s), &telemetry, 3.0);
        }
        assert_eq!(progress.held_back, None);
    }

    #[test]
    fn a_return_is_measured_once_it_has_flown_level_for_a_while() {
        let mut progress = Progress::default();
        let mut telemetry = blown(0.0, 7.0);
        telemetry.mode_number = Some(Mode::Rtl.number());
        let mut settled = None;
        for s in 0..60 {
            // It flew away from home before.
            let ahead_m_s = if s < 10 { -5.0 } else { 1.5 };
            telemetry.velocity_m_s = DVec3::new(0.0, ahead_m_s, 0.0);
            progress.observe(Instant::from_secs(s), &telemetry, 10.0);
            let measured = progress.of_return(Instant::from_secs(s), NORTH);
            settled = settled.or(measured.map(|m_s| (s, m_s)));
        }
        assert_eq!(settled, Some((45, 1.5)));
    }
}
