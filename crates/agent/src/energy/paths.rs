//! The way home and the rest of a route, reckoned with the speeds that the autopilot will fly.

use wingbeat_autopilot::Telemetry;
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::parameter::{Watch, Watched};
use wingbeat_geo::{DVec2, Duration, Frame, Position};
use wingbeat_protocol::{MissionExtras, View};
use wingbeat_wire::Point;

use super::{Air, Reserve, seconds};

/// From the decision until the aircraft is under way.
const SETS_OUT_S: f64 = 5.0;
/// In a swarm others may be on the path home when it begins.
const OTHERS_CLEAR_S: f64 = 30.0;
/// A stop and a wait at each waypoint.
const AT_WAYPOINT_S: f64 = 5.0;
/// Share of a vertical speed that is flown: ArduCopter 3.5.7 descends with 1.32 of 1.5 m/s.
const VERTICAL_SHARE: f64 = 0.85;
/// The acceleration of a return, metres per second squared: ArduCopter's lowest usual `WPNAV_ACCEL`.
const ACCELERATION_M_S2: f64 = 1.0;
/// From the touch-down until the motors are off.
const SETTLES_S: f64 = 3.0;
/// Nearer to home over the ground a return descends, metres.
const HOME_WITHIN_M: f64 = 10.0;

/// The speeds by which the autopilot flies home and lands, as its parameters have them now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Speeds {
    /// Between waypoints, metres per second.
    pub(super) track_m_s: f64,
    /// Of a return, metres per second.
    return_m_s: f64,
    climb_m_s: f64,
    /// Rate of a descent between waypoints, metres per second.
    down_m_s: f64,
    /// Of a landing above [`Speeds::slow_below_m`], metres per second.
    descent_m_s: f64,
    /// Of the last metres of a landing, metres per second.
    landing_m_s: f64,
    slow_below_m: f64,
    /// Wait above home before the landing, seconds.
    wait_s: f64,
}

impl Speeds {
    /// Reads the parameters, as they were reported last: a gap on the line changes none. A value that is not known is ArduCopter's
    /// usual one, and the speed over the ground the configured one. `leg_m_s` is the speed of the leg where the autopilot writes
    /// that into its own.
    pub(super) fn of(parameters: &Watch, reserve: &Reserve, leg_m_s: Option<f64>) -> Self {
        let known = |which| parameters.last(which).map(|value| value.as_f64());
        // Whole centimetres up to 4.6, metres from 4.7 on.
        let metres = |old, new| known(new).or_else(|| known(old).map(|centi| centi * 1e-2));
        let positive = |value: Option<f64>| value.filter(|value| *value > 0.0);
        let own_m_s = positive(known(Watched::TrackSpeed)).map_or(reserve.cruise_m_s, |cm_s| cm_s * 1e-2);
        let track_m_s = leg_m_s.unwrap_or(own_m_s);
        let return_m_s = positive(metres(Watched::ReturnSpeed, Watched::ReturnSpeedM)).unwrap_or(track_m_s);
        let climb_m_s = positive(known(Watched::ClimbSpeed)).map_or(2.5, |cm_s| cm_s * 1e-2);
        let down_m_s = positive(known(Watched::DescentSpeed)).map_or(1.5, |cm_s| cm_s * 1e-2);
        let high = metres(Watched::LandingSpeedHigh, Watched::LandingSpeedHighM);
        let landing = metres(Watched::LandingSpeed, Watched::LandingSpeedM);
        let slow_below = metres(Watched::LandingSlowBelow, Watched::LandingSlowBelowM);
        Self {
            track_m_s,
            return_m_s,
            climb_m_s,
            down_m_s,
            descent_m_s: positive(high).unwrap_or(down_m_s),
            landing_m_s: positive(landing).unwrap_or(0.5),
            slow_below_m: slow_below.unwrap_or(10.0).max(1.0),
            wait_s: known(Watched::ReturnWait).map_or(5.0, |ms| ms.max(0.0) * 1e-3),
        }
    }

    /// Returns the fastest descent that the autopilot flies by itself, metres per second.
    pub(super) fn fastest_descent_m_s(&self) -> f64 {
        self.down_m_s.max(self.descent_m_s).max(self.landing_m_s)
    }

    /// Returns how long a landing from a height takes, seconds.
    fn landing_s(&self, height_m: f64) -> f64 {
        let slow_m = height_m.clamp(0.0, self.slow_below_m);
        let fast_m = (height_m - slow_m).max(0.0);
        (fast_m / self.descent_m_s + slow_m / self.landing_m_s) / VERTICAL_SHARE + SETTLES_S
    }
}

/// Everything that the way home depends on.
pub(super) struct Reckoning<'a> {
    pub(super) telemetry: &'a Telemetry,
    pub(super) view: &'a View,
    pub(super) extras: &'a MissionExtras,
    pub(super) speeds: Speeds,
    pub(super) air: Air,
    /// The height of returns of the autopilot's own parameters above home, where it is known, metres.
    pub(super) autopilots_m: Option<f64>,
}

/// The time that a return takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Home {
    /// Until the motors are off at home.
    pub(super) takes: Duration,
    /// Whether the aircraft is above its home.
    pub(super) is_there: bool,
}

impl Reckoning<'_> {
    /// Returns the vector home over the ground, east and north; none where home is not known.
    pub(super) fn home_m(&self) -> Option<DVec2> {
        let t = self.telemetry;
        let (here, home) = t.position.zip(t.returns_to())?;
        Some(-Frame::new(home).to_local(here).truncate())
    }

    /// Whether the aircraft is on its way home.
    fn is_under_way(&self) -> bool {
        self.telemetry.mode() == Some(Mode::Rtl)
    }

    /// Returns how long a landing below the aircraft takes.
    pub(super) fn down(&self) -> Duration {
        seconds(SETS_OUT_S + self.speeds.landing_s(self.telemetry.height_m))
    }

    /// Returns how long a return takes from here, at the measured speed of the present one where there is one. To a home that is
    /// unknown the distance is not counted.
    pub(super) fn home(&self, measured_m_s: Option<f64>) -> Home {
        let (t, speeds) = (self.telemetry, &self.speeds);
        let known_m = self.home_m();
        let is_there = known_m.is_some_and(|home_m| home_m.length() < HOME_WITHIN_M);
        if (is_there || known_m.is_none()) && self.is_under_way() {
            return Home { takes: seconds(speeds.wait_s + speeds.landing_s(t.height_m)), is_there };
        }
        let home_m = known_m.unwrap_or_default();
        let distance_m = home_m.length();
        let own_m = self.view.return_height_mm.map(|mm| f64::from(mm) * 1e-3);
        let returns_at_m = own_m.or(self.autopilots_m).unwrap_or(t.height_m);
        let height_m = t.height_m.max(returns_at_m);
        let climb_s = (height_m - t.height_m) / (speeds.climb_m_s * VERTICAL_SHARE);
        let course = home_m.normalize_or_zero();
        let flown_m_s = self.air.ground_speed_m_s(course, speeds.return_m_s);
        // The present return has accelerated already.
        let (ground_m_s, changes_s) = match measured_m_s {
            Some(measured_m_s) => (measured_m_s, 0.0),
            None => (flown_m_s, flown_m_s / ACCELERATION_M_S2),
        };
        let flight_s = if distance_m < 1.0 { 0.0 } else { distance_m / ground_m_s + changes_s };
        let others_s = if self.view.swarm.size > 1 && !self.is_under_way() { OTHERS_CLEAR_S } else { 0.0 };
        let sets_out_s = if self.is_under_way() { 0.0 } else { SETS_OUT_S };
        let landing_s = speeds.wait_s + speeds.landing_s(height_m);
        Home { takes: seconds(sets_out_s + others_s + climb_s + flight_s + landing_s), is_there }
    }

    /// Returns how long the flight to a position and the landing there take.
    pub(super) fn landing_at(&self, target: Point) -> Duration {
        let Some(here) = self.telemetry.position else { return self.down() };
        let to_m = Frame::new(here).to_local(place(target)).truncate();
        let ground_m_s = self.air.ground_speed_m_s(to_m.normalize_or_zero(), self.speeds.track_m_s);
        seconds(to_m.length() / ground_m_s + ground_m_s / ACCELERATION_M_S2) + self.down()
    }

    /// Returns how long the rest of a route takes, from here to standing at its end: a climb to the height of the take-off, and
    /// each leg with its own speed and hold.
    pub(super) fn rest_of_route(&self, route: &[Point]) -> Option<Duration> {
        let next = self.view.reached.map_or(0, |reached| usize::from(reached) + 1);
        let (rest, here) = (route.get(next..)?, self.telemetry.position?);
        let frame = Frame::new(here);
        let at = |w: &Point| (frame.to_local(place(*w)).truncate(), f64::from(w.height_mm) * 1e-3);
        let (speed_m_s, wait_s) = match self.view.route_speed_m_s {
            Some(speed_m_s) => (speed_m_s, 0.0),
            None => (self.speeds.track_m_s, AT_WAYPOINT_S),
        };
        let (mut total_s, mut last) = (0.0, (DVec2::ZERO, self.telemetry.height_m));
        let climb_s = |up_m: f64| up_m / (self.speeds.climb_m_s * VERTICAL_SHARE);
        if let Some(first) = rest.first().filter(|_| next == 0) {
            let stated_mm = Some(self.extras.take_off_mm).filter(|mm| *mm != 0);
            let take_off_m = f64::from(stated_mm.unwrap_or(first.height_mm)) * 1e-3;
            if take_off_m > last.1 {
                total_s += climb_s(take_off_m - last.1);
                last.1 = take_off_m;
            }
        }
        for (index, waypoint) in rest.iter().map(at).enumerate() {
            let number = next + index;
            let way_m = waypoint.0 - last.0;
            let wanted_m_s = self.extras.speed_m_s(number).unwrap_or(speed_m_s);
            let ground_m_s = self.air.ground_speed_m_s(way_m.normalize_or_zero(), wanted_m_s);
            let change_m = waypoint.1 - last.1;
            let vertical_s = if change_m > 0.0 {
                climb_s(change_m)
            } else {
                -change_m / (self.speeds.down_m_s * VERTICAL_SHARE)
            };
            let hold_s = self.extras.hold(number).as_secs_f64();
            total_s += (way_m.length() / ground_m_s).max(vertical_s) + wait_s + hold_s;
            last = waypoint;
        }
        Some(seconds(total_s + self.speeds.landing_s(last.1)))
    }
}

fn place(point: Point) -> Position {
    Position { latitude_e7: point.latitude_e7, longitude_e7: point.longitude_e7, ..Position::default() }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use wingbeat_geo::{DVec3, Instant};
    use wingbeat_protocol::{LegExtras, Phase, StateId};

    use super::super::air::Progress;
    use super::*;
    use crate::settings::testing::reported;

    fn rounded_s(time: Duration) -> i64 {
        time.as_secs_f64().round() as i64
    }

    fn reckon<T>(
        t: &Telemetry,
        view: &View,
        parameters: &[(&str, f32)],
        of: impl Fn(&Reckoning<'_>) -> T,
    ) -> T {
        let reserve = Reserve::default();
        let air = Air::of(&reserve, None, t, &Progress::default());
        let speeds = Speeds::of(&reported(parameters), &reserve, None);
        let extras = MissionExtras::NONE;
        of(&Reckoning { telemetry: t, view, extras, speeds, air, autopilots_m: None })
    }

    fn half_a_kilometre_out() -> Telemetry {
        let home = Position::from_degrees(39.4824, -0.3464, 10.0).unwrap();
        let out = Frame::new(home).to_position(DVec3::new(300.0, 400.0, 0.0));
        Telemetry {
            armed: true,
            height_m: 25.0,
            disarmed_position: Some(home),
            position: Some(out),
            ..Telemetry::default()
        }
    }

    #[test]
    fn safe_08_the_way_home_is_reckoned_with_the_speeds_that_are_flown() {
        let view = View::alone(StateId::Flying, Phase::Moving);
        let t = half_a_kilometre_out();
        let home =
            |parameters: &[(&str, f32)]| reckon(&t, &view, parameters, |r| rounded_s(r.home(None).takes));
        // 5 s, 500 m, 5 s above home, 15 m at 1.5 m/s and 10 m at 0.5 m/s of which 85 % are flown, 3 s.
        let rest_s = 5 + 5 + 35 + 3;
        assert_eq!(home(&[]), 105 + rest_s, "as configured");
        assert_eq!(home(&[("WPNAV_SPEED", 200.0)]), 252 + rest_s);
        assert_eq!(home(&[("WPNAV_SPEED", 200.0), ("RTL_SPEED", 0.0)]), 252 + rest_s);
        assert_eq!(home(&[("WPNAV_SPEED", 800.0), ("RTL_SPEED", 250.0)]), 202 + rest_s + 1);
        assert_eq!(home(&[("WP_SPD", 2.0), ("RTL_SPEED_MS", 4.0)]), 129 + rest_s);
        // 10 m at 0.3 m/s: 15.7 s more.
        assert_eq!(home(&[("LAND_SPEED", 30.0)]), 105 + rest_s + 16);
        assert_eq!(home(&[("WPNAV_SPEED_DN", 50.0)]), 105 + rest_s + 24);
        assert_eq!(home(&[("RTL_LOIT_TIME", 30_000.0)]), 105 + rest_s + 25);
        let higher = View { return_height_mm: Some(40_000), ..view };
        let up_and_down = reckon(&t, &higher, &[], |r| rounded_s(r.home(None).takes));
        assert_eq!(up_and_down, 105 + rest_s + 19, "15 m up, and down again");
    }

    #[test]
    fn a_gap_on_the_line_leaves_the_speeds_as_they_were() {
        let reserve = Reserve::default();
        let mut watch = reported(&[("WPNAV_SPEED", 1_200.0), ("LAND_SPEED_HIGH", 300.0)]);
        let before = Speeds::of(&watch, &reserve, None);
        assert_eq!((before.track_m_s, before.return_m_s, before.descent_m_s), (12.0, 12.0, 3.0));
        watch.restart(Instant::from_secs(1));
        assert_eq!(watch.value(Watched::TrackSpeed), None);
        assert_eq!(Speeds::of(&watch, &reserve, None), before);
        watch.forget(Instant::from_secs(2));
        assert_eq!(Speeds::of(&watch, &reserve, None).track_m_s, reserve.cruise_m_s);
    }

    #[test]
    fn a_return_at_the_speed_of_a_leg_is_reckoned_with_it() {
        let reserve = Reserve::default();
        let of = |parameters: &[(&str, f32)]| Speeds::of(&reported(parameters), &reserve, Some(2.0));
        let speeds = of(&[("WPNAV_SPEED", 1_000.0), ("RTL_SPEED", 0.0)]);
        assert_eq!((speeds.track_m_s, speeds.return_m_s), (2.0, 2.0));
        assert_eq!(of(&[("WPNAV_SPEED", 1_000.0), ("RTL_SPEED", 400.0)]).return_m_s, 4.0);
    }

    #[test]
    fn a_descent_between_waypoints_is_no_fall_where_landings_are_slow() {
        let watch = reported(&[("WPNAV_SPEED_DN", 500.0), ("LAND_SPEED_HIGH", 100.0)]);
        let speeds = Speeds::of(&watch, &Reserve::default(), None);
        assert_eq!((speeds.fastest_descent_m_s(), speeds.descent_m_s), (5.0, 1.0));
    }

    #[test]
    fn an_unknown_home_is_not_here_and_one_reported_since_the_arming_counts_first() {
        let view = View::alone(StateId::Flying, Phase::Moving);
        let mut t = half_a_kilometre_out();
        t.home = t.position;
        let is_there = |t: &Telemetry| reckon(t, &view, &[], |r| r.home(None).is_there);
        assert!(!is_there(&t), "reported before it was armed");
        t.home_at = Some(Instant::from_secs(1));
        assert!(is_there(&t));
        (t.home, t.home_at, t.disarmed_position) = (None, None, None);
        assert!(!is_there(&t));
        t.mode_number = Some(Mode::Rtl.number());
        assert!(!is_there(&t));
    }

    #[test]
    fn a_return_above_its_home_only_descends_and_one_that_is_measured_flies_as_measured() {
        let view = View::alone(StateId::Aborted, Phase::Aborted);
        let mut t = half_a_kilometre_out();
        t.mode_number = Some(Mode::Rtl.number());
        assert_eq!(reckon(&t, &view, &[], |r| rounded_s(r.home(Some(1.0)).takes)), 500 + 5 + 35 + 3);
        t.position = t.disarmed_position;
        let layer = View { return_height_mm: Some(40_000), ..view };
        let home = reckon(&t, &layer, &[], |r| r.home(None));
        assert_eq!((rounded_s(home.takes), home.is_there), (5 + 35 + 3, true));
    }

    #[test]
    fn the_rest_of_a_route_begins_where_it_was_reached() {
        let view = View::alone(StateId::Flying, Phase::Moving);
        let home = Position::from_degrees(39.4824, -0.3464, 10.0).unwrap();
        let mut t = Telemetry { height_m: 10.0, position: Some(home), ..Telemetry::default() };
        let frame = Frame::new(home);
        let waypoint = |north_m: f64| {
            let p = frame.to_position(DVec3::new(0.0, north_m, 0.0));
            Point { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, height_mm: 10_000 }
        };
        let route = [waypoint(0.0), waypoint(500.0), waypoint(0.0)];
        let rest = |t: &Telemetry, view: &View| {
            reckon(t, view, &[("WPNAV_SPEED", 400.0)], |r| r.rest_of_route(&route).map(rounded_s))
        };
        // Three stops, 1000 m at 4 m/s, 10 m at 0.5 m/s.
        assert_eq!(rest(&t, &view), Some(15 + 250 + 27));
        assert_eq!(rest(&t, &View { reached: Some(1), ..view }), Some(5 + 27), "it is there already");
        assert_eq!(rest(&t, &View { reached: Some(2), ..view }), Some(27));
        let fast = View { route_speed_m_s: Some(8.0), ..view };
        assert_eq!(rest(&t, &fast), Some(125 + 27), "in AUTO it stops nowhere");
        // From the ground it climbs first: 10 m at 2.5 m/s, of which 85 % are flown.
        t.height_m = 0.0;
        assert_eq!(rest(&t, &fast), Some(125 + 5 + 27 - 1));
        t.height_m = 10.0;
        // 6 of 8.5 m/s from the north: out with 2.5 m/s, back with 8.
        t.measured.wind = Some(wingbeat_autopilot::telemetry::Wind { speed_m_s: 6.0, from_rad: 0.0 });
        assert_eq!(rest(&t, &fast), Some(200 + 63 + 27 - 1));
    }

    #[test]
    fn each_leg_of_a_route_has_its_own_speed_and_hold() {
        let home = Position::from_degrees(39.4824, -0.3464, 10.0).unwrap();
        let t = Telemetry { height_m: 10.0, position: Some(home), ..Telemetry::default() };
        let view = View { route_speed_m_s: Some(10.0), ..View::alone(StateId::Start, Phase::Start) };
        let waypoint = |north_m: f64| {
            let p = Frame::new(home).to_position(DVec3::new(0.0, north_m, 0.0));
            Point { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, height_mm: 10_000 }
        };
        let mut extras = MissionExtras::default();
        for (waypoint, speed_cm_s) in [(1, 200), (2, 0)] {
            let leg = LegExtras { hold_s: 300, speed_cm_s, ..LegExtras::none(waypoint) };
            extras.push(leg).unwrap();
        }
        let route = [waypoint(0.0), waypoint(1_000.0), waypoint(0.0)];
        let reserve = Reserve::default();
        let reckoning = Reckoning {
            telemetry: &t,
            view: &view,
            extras: &extras,
            speeds: Speeds::of(&reported(&[]), &reserve, None),
            air: Air::of(&reserve, None, &t, &Progress::default()),
            autopilots_m: None,
        };
        // 2 km at 2 m/s, two holds, and the landing.
        assert_eq!(reckoning.rest_of_route(&route).map(rounded_s), Some(1_000 + 600 + 27));
    }
}
