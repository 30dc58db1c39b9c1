//! Which missions an aircraft takes over HTTP. The ground reads files and checks them against its own
//! limits; the aircraft checks again against its own. The number of waypoints is judged by the protocol that flies them.

use wingbeat_api::{MissionEnd, MissionItem, MissionUpload, mission::HOLD_MAX_S};
use wingbeat_geo::{Position, PositionError};
use wingbeat_protocol::{Fence, FenceError, LEG_KINDS_MAX, LegExtras, MissionExtras, ROUTE_MAX, RouteEnd};
use wingbeat_wire::Point;

use crate::status;

/// The longest name, in characters.
const NAME_MAX: usize = 64;

/// Why a mission is not taken. The message names the field, what was found and what was expected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The name is too long, empty, or holds control characters.
    #[error("name: found {0:?}, expected 1 to {NAME_MAX} characters without control characters")]
    Name(String),
    /// Not on earth.
    #[error("waypoints[{index}]: found {cause}, expected a place on earth")]
    Place {
        /// Which waypoint, from 0.
        index: usize,
        /// The coordinate that is out of range.
        cause: PositionError,
    },
    /// Outside the fence.
    #[error(transparent)]
    Fence(#[from] FenceError),
    /// Not a time that a flight controller can hold for.
    #[error("waypoints[{index}].hold_s: found {found}, expected 0 to {HOLD_MAX_S} s")]
    Hold {
        /// Which waypoint, from 0.
        index: usize,
        /// The value that was found.
        found: f64,
    },
    /// Not a heading.
    #[error("waypoints[{index}].yaw_deg: found {found}, expected 0 to less than 360 degrees")]
    Yaw {
        /// Which waypoint, from 0.
        index: usize,
        /// The value that was found.
        found: f64,
    },
    /// Not a speed of a multicopter.
    #[error("{of}: found {found}, expected {SPEED_MIN_M_S} to {SPEED_MAX_M_S} m/s")]
    Speed {
        /// Path of the JSON field.
        of: String,
        /// The value that was found.
        found: f64,
    },
    /// The take-off ends on the ground or below.
    #[error("take_off_height_m: found {0}, expected more than 0 m")]
    TakeOff(f64),
    /// More combinations than an aircraft keeps.
    #[error(
        "waypoints[{index}]: found more than {LEG_KINDS_MAX} different combinations of hold, speed and yaw; round them"
    )]
    Kinds {
        /// Index of the first waypoint that does not fit, from 0.
        index: usize,
    },
    /// The place of the landing is not on earth.
    #[error("end: found {0}, expected a place on earth")]
    Landing(PositionError),
}

/// Checks everything that needs no home position; how far a waypoint is from home is the agent's to judge, so `fence`
/// has no bound on it.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(mission: &MissionUpload, fence: &Fence) -> Result<(), Problem> {
    let name = &mission.name;
    if name.is_empty() || name.chars().count() > NAME_MAX || name.chars().any(char::is_control) {
        return Err(Problem::Name(name.chars().take(NAME_MAX + 1).collect()));
    }
    let mut first = None;
    for (index, item) in mission.waypoints.iter().enumerate() {
        let position = Position::from_degrees(item.latitude_deg, item.longitude_deg, item.height_m)
            .map_err(|cause| Problem::Place { index, cause })?;
        first.get_or_insert(position);
        if !(0.0..=HOLD_MAX_S).contains(&item.hold_s) {
            return Err(Problem::Hold { index, found: item.hold_s });
        }
        if let Some(found) = item.yaw_deg.filter(|yaw_deg| !(0.0..360.0).contains(yaw_deg)) {
            return Err(Problem::Yaw { index, found });
        }
        if let Some(found) = item.speed_m_s.filter(|speed_m_s| !is_speed(*speed_m_s)) {
            return Err(Problem::Speed { of: format!("waypoints[{index}].speed_m_s"), found });
        }
    }
    if let Some(first) = first {
        fence.check(first, &status::route(&mission.waypoints))?;
    }
    if let Some(found) =
        mission.take_off_height_m.filter(|height_m| !height_m.is_finite() || *height_m <= 0.0)
    {
        return Err(Problem::TakeOff(found));
    }
    fence.check_take_off(take_off_mm(mission))?;
    if let Some(found) = mission.speed_m_s.filter(|speed_m_s| !is_speed(*speed_m_s)) {
        return Err(Problem::Speed { of: "speed_m_s".into(), found });
    }
    if let Some(MissionEnd::LandAt { latitude_deg, longitude_deg }) = mission.end {
        Position::from_degrees(latitude_deg, longitude_deg, 0.0).map_err(Problem::Landing)?;
    }
    extras(mission).map(drop)
}

/// Returns the waypoints of a route.
pub fn items(route: &[Point]) -> Vec<MissionItem> {
    status::items(route)
}

/// Returns what a checked mission states besides its waypoints, as the agent takes it. A hold of a part of a second is one of
/// a whole second.
///
/// # Errors
/// The mission has too many combinations of hold, speed and yaw.
pub fn extras(mission: &MissionUpload) -> Result<MissionExtras, Problem> {
    let mut extras = MissionExtras::default();
    for (index, item) in mission.waypoints.iter().enumerate() {
        let planned_m_s = mission.speed_m_s.filter(|_| index == 0);
        let speed_m_s = item.speed_m_s.or(planned_m_s).unwrap_or(0.0);
        let yaw_cdeg = item.yaw_deg.map(|yaw_deg| (yaw_deg * 100.0).round() as u16 % 36_000);
        let leg = LegExtras {
            waypoint: u16::try_from(index).unwrap_or(u16::MAX),
            hold_s: item.hold_s.ceil() as u16,
            speed_cm_s: (speed_m_s * 100.0).round() as u16,
            yaw_cdeg,
        };
        // The protocol refuses a route that is too long, with or without extras.
        if !leg.is_none() && index < ROUTE_MAX {
            extras.insert(leg).map_err(|_| Problem::Kinds { index })?;
        }
    }
    extras.take_off_mm = take_off_mm(mission);
    extras.end = match mission.end {
        None | Some(MissionEnd::Land) => RouteEnd::Land,
        Some(MissionEnd::LandAt { latitude_deg, longitude_deg }) => RouteEnd::LandAt(Point {
            latitude_e7: (latitude_deg * 1e7).round() as i32,
            longitude_e7: (longitude_deg * 1e7).round() as i32,
            height_mm: 0,
        }),
        Some(MissionEnd::Return) => RouteEnd::Return { height_mm: 0 },
    };
    Ok(extras)
}

/// Returns the height of the take-off in millimetres; 0 where it is that of the first waypoint.
fn take_off_mm(mission: &MissionUpload) -> i32 {
    match (mission.take_off_height_m, mission.waypoints.first()) {
        (Some(height_m), Some(first)) if (height_m - first.height_m).abs() >= SAME_M => {
            // A positive height below half a millimetre stays below every fence.
            ((height_m * 1e3).round() as i32).max(1)
        }
        _ => 0,
    }
}

/// Heights that differ by less are the same height, metres.
const SAME_M: f64 = 0.1;

/// Faster than any multicopter, metres per second.
const SPEED_MAX_M_S: f64 = 100.0;

/// The flight controller takes speeds in centimetres per second, and 0 states none.
const SPEED_MIN_M_S: f64 = 0.01;

fn is_speed(speed_m_s: f64) -> bool {
    (SPEED_MIN_M_S..=SPEED_MAX_M_S).contains(&speed_m_s)
}

#[cfg(test)]
mod tests {
    use wingbeat_protocol::{Configuration as _, MissionExtras, Protocol as _, ROUTE_MAX, mission};
    use wingbeat_wire::VehicleId;

    use super::*;

    const FENCE: Fence = Fence { height_least_m: 2.0, height_most_m: 120.0, distance_most_m: f64::INFINITY };

    fn with(latitude_deg: f64, longitude_deg: f64, height_m: f64) -> MissionUpload {
        let good = MissionItem::at(39.48, -0.34, 20.0);
        MissionUpload::new("square", vec![good, MissionItem::at(latitude_deg, longitude_deg, height_m)])
    }

    #[test]
    fn a_mission_within_the_limits_is_taken() {
        for height_m in [2.0, 20.0, 120.0] {
            assert_eq!(check(&with(-90.0, 180.0, height_m), &FENCE), Ok(()));
        }
        // The protocol's to judge.
        for count in [0, 1, ROUTE_MAX + 1] {
            let waypoints = vec![MissionItem::at(39.48, -0.34, 20.0); count];
            assert_eq!(check(&MissionUpload::new("some", waypoints), &FENCE), Ok(()));
        }
    }

    /// A mission with all of its parts reaches the agent with all of them.
    #[test]
    fn what_a_mission_states_beyond_waypoints_reaches_the_agent() {
        let mut upload = with(39.48, -0.34, 20.0);
        assert!(extras(&upload).unwrap().is_none());
        upload.take_off_height_m = Some(20.05);
        assert!(extras(&upload).unwrap().is_none(), "the height of the first waypoint");
        (upload.take_off_height_m, upload.speed_m_s) = (Some(8.0), Some(4.0));
        let second = &mut upload.waypoints[1];
        (second.hold_s, second.speed_m_s, second.yaw_deg) = (9.2, Some(2.5), Some(359.999));
        upload.end = Some(MissionEnd::LandAt { latitude_deg: 39.5, longitude_deg: -0.35 });
        let found = extras(&upload).unwrap();
        let legs = [
            LegExtras { speed_cm_s: 400, ..LegExtras::none(0) },
            LegExtras { waypoint: 1, hold_s: 10, speed_cm_s: 250, yaw_cdeg: Some(0) },
        ];
        assert!(found.legs().eq(legs));
        assert_eq!(found.take_off_mm, 8_000);
        let place = Point { latitude_e7: 395_000_000, longitude_e7: -3_500_000, height_mm: 0 };
        assert_eq!(found.end, RouteEnd::LandAt(place));
    }

    #[test]
    fn a_take_off_outside_the_fence_and_a_speed_that_rounds_to_none_are_refused() {
        let problem = |take_off_m: f64, speed_m_s: f64| {
            let mut upload = with(39.48, -0.34, 20.0);
            (upload.take_off_height_m, upload.speed_m_s) = (Some(take_off_m), Some(speed_m_s));
            check(&upload, &FENCE).err().map(|problem| problem.to_string())
        };
        let fence = |found| format!("take-off: found {found} m above home, expected 2 to 120 m (the fence)");
        assert_eq!(problem(500.0, 4.0), Some(fence("500")));
        assert_eq!(problem(1.5, 4.0), Some(fence("1.5")));
        assert_eq!(problem(120.0, 4.0), None);
        assert!(problem(20.0, 0.004).is_some_and(|why| why.contains("expected 0.01 to 100 m/s")));
    }

    #[test]
    fn a_survey_of_600_holds_is_taken_and_129_headings_are_refused() {
        let mut upload = MissionUpload::new("survey", vec![MissionItem::at(39.48, -0.34, 20.0); ROUTE_MAX]);
        upload.waypoints.iter_mut().for_each(|item| item.hold_s = 3.0);
        assert_eq!(check(&upload, &FENCE), Ok(()));
        for (index, item) in upload.waypoints.iter_mut().enumerate() {
            item.yaw_deg = Some((index % 129) as f64);
        }
        assert_eq!(check(&upload, &FENCE), Err(Problem::Kinds { index: LEG_KINDS_MAX }));
    }

    /// What the interface promises is what is checked.
    #[test]
    fn the_document_states_how_many_waypoints_are_taken() {
        let document = include_str!("../../../docs/openapi/wingbeatd.json");
        let document: serde_json::Value = serde_json::from_str(document).expect("JSON");
        let upload = &document["components"]["schemas"]["MissionUpload"];
        let waypoints = &upload["properties"]["waypoints"];
        assert_eq!((&waypoints["minItems"], &waypoints["maxItems"]), (&2.into(), &ROUTE_MAX.into()));
        for (count, taken) in [(1, false), (2, true), (ROUTE_MAX, true), (ROUTE_MAX + 1, false)] {
            let mut protocol = mission::Config::new(VehicleId(1)).begin(1, wingbeat_geo::Instant::ZERO);
            let route = status::route(&vec![MissionItem::at(39.48, -0.34, 20.0); count]);
            assert_eq!(protocol.set_mission(&route, MissionExtras::NONE).is_ok(), taken, "{count}");
        }
    }

    #[test]
    fn what_a_mission_states_beyond_waypoints_is_checked() {
        let with = |change: &dyn Fn(&mut MissionUpload)| {
            let mut upload = with(39.48, -0.34, 20.0);
            change(&mut upload);
            check(&upload, &FENCE).err().map(|problem| problem.to_string())
        };
        for (hold_s, taken) in
            [(0.0, true), (65_535.0, true), (65_536.0, false), (-1.0, false), (f64::NAN, false)]
        {
            let problem = with(&|m| m.waypoints[1].hold_s = hold_s);
            let expected = format!("waypoints[1].hold_s: found {hold_s}, expected 0 to 65535 s");
            assert_eq!(problem, (!taken).then_some(expected));
        }
        for (speed_m_s, taken) in
            [(0.1, true), (100.0, true), (0.0, false), (100.1, false), (f64::NAN, false)]
        {
            let expected = format!("found {speed_m_s}, expected 0.01 to 100 m/s");
            let problem = with(&|m| m.waypoints[1].speed_m_s = Some(speed_m_s));
            assert_eq!(problem, (!taken).then(|| format!("waypoints[1].speed_m_s: {expected}")));
            let problem = with(&|m| m.speed_m_s = Some(speed_m_s));
            assert_eq!(problem, (!taken).then(|| format!("speed_m_s: {expected}")));
        }
        for (height_m, taken) in [(2.0, true), (0.0, false), (f64::INFINITY, false)] {
            let problem = with(&|m| m.take_off_height_m = Some(height_m));
            let expected = format!("take_off_height_m: found {height_m}, expected more than 0 m");
            assert_eq!(problem, (!taken).then_some(expected));
        }
        let land = |latitude_deg| Some(MissionEnd::LandAt { latitude_deg, longitude_deg: 0.0 });
        assert_eq!(with(&|m| m.end = land(90.0)), None);
        let problem = with(&|m| m.end = land(90.5)).expect("off the earth");
        assert!(problem.starts_with("end: found latitude 90.5"), "{problem}");
    }

    #[test]
    fn every_bad_number_is_named() {
        for (mission, expected) in [
            (with(90.1, 0.0, 20.0), "waypoints[1]: found latitude 90.1"),
            (with(0.0, -180.5, 20.0), "waypoints[1]: found longitude -180.5"),
            (with(f64::NAN, 0.0, 20.0), "waypoints[1]: found latitude NaN"),
            (with(0.0, f64::INFINITY, 20.0), "waypoints[1]: found longitude inf"),
            (with(0.0, 0.0, 120.5), "waypoint 1: found 120.5 m above home, expected 2 to 120 m (the fence)"),
            (with(0.0, 0.0, 1.9), "waypoint 1: found 1.9"),
            (with(0.0, 0.0, f64::NAN), "waypoints[1]: found altitude NaN"),
            (with(0.0, 0.0, f64::NEG_INFINITY), "waypoints[1]: found altitude -inf"),
            (MissionUpload { name: String::new(), ..with(0.0, 0.0, 20.0) }, "name: found \"\""),
            (MissionUpload { name: "x".repeat(65), ..with(0.0, 0.0, 20.0) }, "name: found"),
            (MissionUpload { name: "a\nb".into(), ..with(0.0, 0.0, 20.0) }, "name: found \"a\\nb\""),
        ] {
            let message = check(&mission, &FENCE).expect_err(expected).to_string();
            assert!(message.starts_with(expected) && message.contains("expected"), "{message}");
        }
    }
}
