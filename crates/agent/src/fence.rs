//! The autopilot's own fence around a flight. It stops a climb short of its height, so returns in layers above it would
//! all fly at one height; and ArduCopter refuses a target beyond its radius in silence. Such a flight is refused.

use core::fmt::Write as _;

use wingbeat_autopilot::parameter::{Finding, Watch, Watched};
use wingbeat_geo::{Frame, Position};
use wingbeat_protocol::{Cut, Protocol, Text, text};
use wingbeat_wire::Point;

use crate::given;
use crate::region::{RegionFinding, Verdict};

/// The bits of `FENCE_TYPE` (<https://ardupilot.org/copter/docs/parameters.html#fence-type>).
const BOUNDS_HEIGHT: i64 = 1;
const BOUNDS_RADIUS: i64 = 1 << 1;
const HAS_POLYGONS: i64 = 1 << 2;
/// What cannot be read may bound everything.
const ALL: i64 = BOUNDS_HEIGHT | BOUNDS_RADIUS | HAS_POLYGONS;
/// `FENCE_MARGIN` where it is not reported.
const MARGIN_USUAL_M: f64 = 2.0;
/// A height is written in centimetres, and a fence in metres.
const ROUNDING_M: f64 = 0.01;

/// What the fence is held against, beside the protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around<'a> {
    pub(crate) parameters: &'a Watch,
    /// Where ArduCopter's home is, or will be when it is armed.
    pub(crate) home: Option<Position>,
    pub(crate) allow_polygon_fence: bool,
    /// How the route was found in the polygon, by the owner of its points.
    pub(crate) verdict: Option<Verdict>,
}

/// Whether waypoints and the return stay inside the fence, as far as both are known; and what was found.
pub(crate) fn judge(around: &Around<'_>, protocol: &dyn Protocol) -> (bool, Text) {
    let &Around { parameters, home, allow_polygon_fence, verdict } = around;
    let is_unread = |which: &&Watched| parameters.finding(**which) == Finding::Unknown;
    let relied_on = [
        Watched::FenceEnable,
        Watched::FenceType,
        Watched::FenceHeight,
        Watched::FenceMargin,
        Watched::FenceRadius,
        Watched::FencePoints,
    ];
    let auto = parameters.integer(Watched::FenceAutoEnable).unwrap_or(0);
    let is_off = auto == 0
        && match parameters.finding(Watched::FenceEnable) {
            Finding::Known { value, .. } => value.as_integer() == Some(0),
            Finding::Unknown => false,
            Finding::Absent | Finding::WrongKind { .. } | Finding::Unreadable => true,
        };
    if is_off {
        return (true, text!("the autopilot has none"));
    }
    if let Some(which) = relied_on.iter().find(is_unread) {
        return (false, text!("{} not read yet", which.names().usual));
    }
    let bits = parameters.integer(Watched::FenceType).unwrap_or(ALL);
    let points = parameters.integer(Watched::FencePoints).unwrap_or(0);
    let margin_m = parameters.value(Watched::FenceMargin).map_or(MARGIN_USUAL_M, |m| m.as_f64());
    let mut found = text!("the autopilot's");
    if bits & HAS_POLYGONS != 0 && points > 0 {
        let is_of = |verdict: &Verdict| {
            let hash = given::hash(protocol.route(), protocol.extras());
            i64::from(verdict.points) == points && verdict.route_hash == hash
        };
        match verdict.filter(is_of).map(|verdict| verdict.finding) {
            Some(RegionFinding::Inside) => {
                let _ = write!(Cut(&mut found), ", inside its {points} points,");
            }
            Some(finding @ (RegionFinding::Home | RegionFinding::Waypoint(_) | RegionFinding::Leg(_))) => {
                return (false, text!("{finding}"));
            }
            None if allow_polygon_fence => {
                let _ = write!(Cut(&mut found), ", its polygon not checked,");
            }
            None => {
                let cure = "read it, or set preflight.allow_polygon_fence";
                return (false, text!("polygon of {points} points not checked: {cure}"));
            }
        }
    }
    if bits & BOUNDS_HEIGHT == 0 {
        let _ = write!(Cut(&mut found), " does not bound the height");
    } else {
        match check_height(parameters, protocol, margin_m) {
            Ok(most_m) => {
                let _ = write!(Cut(&mut found), " ends at {most_m} m");
            }
            Err(why) => return (false, why),
        }
    }
    if bits & BOUNDS_RADIUS != 0 {
        match check_radius(parameters, home, protocol.route(), margin_m) {
            Ok(most_m) => {
                let _ = write!(Cut(&mut found), ", and {most_m} m from home");
            }
            Err(why) => return (false, why),
        }
    }
    if let Some(action) = parameters.integer(Watched::FenceAction) {
        let _ = write!(Cut(&mut found), ", FENCE_ACTION {action}");
    }
    (true, found)
}

/// The height that is left below the fence.
fn check_height(parameters: &Watch, protocol: &dyn Protocol, margin_m: f64) -> Result<f64, Text> {
    let Some(most) = parameters.value(Watched::FenceHeight) else {
        return Err(text!("FENCE_ENABLE is 1 and FENCE_ALT_MAX not reported"));
    };
    let (most_m, fence) = (most.as_f64() - margin_m, most.as_f64());
    let waypoint_mm = protocol.route().iter().map(|w| w.height_mm).max();
    let take_off_mm = Some(protocol.extras().take_off_mm);
    let heights =
        [("waypoint", waypoint_mm), ("take-off", take_off_mm), ("return", protocol.view().return_height_mm)];
    let metres = |mm: i32| f64::from(mm) / 1e3;
    let over = heights.into_iter().find_map(|(what, mm)| {
        let height_m = mm.map(metres).filter(|m| *m > most_m + ROUNDING_M)?;
        Some(text!(
            "{what} at {height_m} m, expected at most {most_m} m: FENCE_ALT_MAX {fence}, FENCE_MARGIN {margin_m}"
        ))
    });
    over.map_or(Ok(most_m), Err)
}

/// The distance from home that is left inside the fence.
fn check_radius(
    parameters: &Watch,
    home: Option<Position>,
    route: &[Point],
    margin_m: f64,
) -> Result<f64, Text> {
    let Some(radius) = parameters.value(Watched::FenceRadius) else {
        return Err(text!("FENCE_ENABLE is 1 and FENCE_RADIUS not reported"));
    };
    let (radius_m, most_m) = (radius.as_f64(), radius.as_f64() - margin_m);
    // Without a position another check fails.
    let Some(frame) = home.map(Frame::new) else { return Ok(most_m) };
    let farthest_m = route.iter().map(|point| distance_m(&frame, point)).fold(0.0, f64::max);
    if farthest_m <= most_m + ROUNDING_M {
        return Ok(most_m);
    }
    let needed_m = (farthest_m + margin_m) as i64 + 1;
    Err(text!(
        "FENCE_RADIUS {radius_m} m: the farthest waypoint is {farthest_m:.0} m from home; set at least {needed_m}"
    ))
}

fn distance_m(home: &Frame, point: &Point) -> f64 {
    let position =
        Position { latitude_e7: point.latitude_e7, longitude_e7: point.longitude_e7, altitude_mm: 0 };
    home.to_local(position).truncate().length()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::testing::reported;
    use wingbeat_geo::DVec3;
    use wingbeat_protocol::MissionExtras;
    use wingbeat_protocol::mission::{Config, Mission};
    use wingbeat_wire::VehicleId;

    const HOME: Position =
        Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };

    /// Two waypoints: over home at 20 m, and 84 m east of it at 48.5 m.
    fn mission() -> Mission {
        let mut mission = Mission::new(Config::new(VehicleId(1)));
        let at = |east_m: f64, height_mm| {
            let place = Frame::new(HOME).to_position(DVec3::new(east_m, 0.0, 0.0));
            Point { latitude_e7: place.latitude_e7, longitude_e7: place.longitude_e7, height_mm }
        };
        mission.set_mission(&[at(0.0, 20_000), at(84.0, 48_500)], MissionExtras::NONE).unwrap();
        mission
    }

    fn around(parameters: &Watch) -> Around<'_> {
        Around { parameters, home: Some(HOME), allow_polygon_fence: false, verdict: None }
    }

    /// A fence that is on, and bounds by default what a new ArduCopter's does.
    const ON: [(&str, f32); 6] = [
        ("FENCE_ENABLE", 1.0),
        ("FENCE_TYPE", 7.0),
        ("FENCE_ALT_MAX", 100.0),
        ("FENCE_MARGIN", 2.0),
        ("FENCE_RADIUS", 300.0),
        ("FENCE_TOTAL", 0.0),
    ];

    #[test]
    fn what_the_fence_would_stop_is_refused_with_the_numbers() {
        for (changed, passes, words) in [
            (&[][..], true, "the autopilot's ends at 98 m, and 298 m from home"),
            (&[("FENCE_ENABLE", 0.0)][..], true, "has none"),
            (&[("FENCE_TYPE", 4.0)][..], true, "does not bound the height"),
            (&[("FENCE_ALT_MAX", 51.0)][..], true, "ends at 49 m"),
            (
                &[("FENCE_ALT_MAX", 51.0), ("FENCE_MARGIN", 3.0)][..],
                false,
                "waypoint at 48.5 m, expected at most 48 m: FENCE_ALT_MAX 51, FENCE_MARGIN 3",
            ),
            (&[("FENCE_TYPE", 6.0), ("FENCE_ALT_MAX", 10.0)][..], true, "does not bound the height"),
            (&[("FENCE_RADIUS", 86.0)][..], true, "84 m from home"),
            (
                &[("FENCE_RADIUS", 85.0)][..],
                false,
                "FENCE_RADIUS 85 m: the farthest waypoint is 84 m from home; set at least 86",
            ),
            (&[("FENCE_RADIUS", 30.0), ("FENCE_TYPE", 5.0)][..], true, "ends at 98 m"),
            // Switched on when it is armed.
            (
                &[("FENCE_RADIUS", 30.0), ("FENCE_ENABLE", 0.0), ("FENCE_AUTOENABLE", 3.0)][..],
                false,
                "FENCE_RADIUS 30 m",
            ),
            (
                &[("FENCE_TOTAL", 5.0)][..],
                false,
                "polygon of 5 points not checked: read it, or set preflight.allow_polygon_fence",
            ),
            (&[("FENCE_TOTAL", 5.0), ("FENCE_TYPE", 3.0)][..], true, "ends at 98 m"),
            (&[("FENCE_ACTION", 2.0)][..], true, "FENCE_ACTION 2"),
        ] {
            let mut parameters = ON.to_vec();
            parameters.extend(changed);
            let (passed, detail) = judge(&around(&reported(&parameters)), &mission());
            assert_eq!(passed, passes, "{changed:?}: {detail}");
            assert!(detail.contains(words), "{detail}: {words}");
            assert!(detail.len() < 87, "cut off in the log of an order: {detail}");
        }
    }

    #[test]
    fn a_take_off_above_the_autopilots_fence_is_refused() {
        let mut mission = mission();
        let route = mission.route().iter().copied().collect::<wingbeat_protocol::Route>();
        let mut extras = MissionExtras::default();
        extras.take_off_mm = 110_000;
        mission.set_mission(&route, &extras).unwrap();
        let (passed, detail) = judge(&around(&reported(&ON)), &mission);
        assert!(!passed && detail.contains("take-off at 110 m, expected at most 98 m"), "{detail}");
    }

    #[test]
    fn a_polygon_that_the_operator_allows_passes_unchecked() {
        let mut parameters = ON.to_vec();
        parameters.push(("FENCE_TOTAL", 5.0));
        let parameters = reported(&parameters);
        let (passed, detail) =
            judge(&Around { allow_polygon_fence: true, ..around(&parameters) }, &mission());
        assert!(passed && detail.contains("its polygon not checked"), "{detail}");
    }

    #[test]
    fn a_polygon_that_was_read_is_judged_for_this_route_and_this_number_of_points() {
        let mut parameters = ON.to_vec();
        parameters.push(("FENCE_TOTAL", 5.0));
        let parameters = reported(&parameters);
        let mission = mission();
        let route_hash = given::hash(mission.route(), mission.extras());
        let judged = |route_hash, points, finding| {
            let verdict = Some(Verdict { route_hash, points, finding });
            judge(&Around { verdict, ..around(&parameters) }, &mission)
        };
        let (passed, detail) = judged(route_hash, 5, RegionFinding::Inside);
        assert!(passed && detail.contains("inside its 5 points, ends at 98 m"), "{detail}");
        let (passed, detail) = judged(route_hash, 5, RegionFinding::Leg(2));
        assert!(!passed && detail.contains("the leg to waypoint 2 leaving the fence"), "{detail}");
        for (route_hash, points) in [(route_hash, 4), (route_hash ^ 1, 5)] {
            let (passed, detail) = judged(route_hash, points, RegionFinding::Inside);
            assert!(!passed && detail.contains("not checked"), "{detail}");
        }
    }

    #[test]
    fn a_fence_that_is_not_read_yet_is_refused() {
        for (parameters, name) in [(&[][..], "FENCE_ENABLE"), (&ON[..4], "FENCE_RADIUS")] {
            let (passed, detail) = judge(&around(&reported(parameters)), &mission());
            assert_eq!((passed, detail), (false, text!("{name} not read yet")));
        }
    }
}
