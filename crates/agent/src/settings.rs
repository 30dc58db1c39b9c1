//! The autopilot's settings that a flight relies on, beside fence and failsafes of the companion: where and how a return
//! ends, whether AUTO begins the mission again, and what watches battery, position and radio. Each with its cure.
//!
//! A parameter that this version of ArduCopter does not have is no failure.

use heapless::Vec;
use wingbeat_autopilot::Telemetry;
use wingbeat_autopilot::identity::Version;
use wingbeat_autopilot::parameter::{Finding, Value, Watch, Watched};
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::{Text, text};

use crate::loan::{CURES_MAX, Cure};
use crate::status::Check;

/// ArduCopter repeats why it would not arm every 30 s.
const PREARM_TEXT_FRESH: Duration = Duration::from_secs(40);

/// What refuses setup, load and start.
fn required(name: &'static str, (passed, detail): (bool, Text)) -> Check {
    Check { name, passed, is_required: true, detail }
}

/// What only warns.
fn advised(name: &'static str, (passed, detail): (bool, Text)) -> Check {
    Check { name, passed, is_required: false, detail }
}

/// The settings that no flight begins against; they are held against it again when the route is loaded.
pub(crate) fn required_of_flight(parameters: &Watch, version: Option<Version>, loaded: Loaded) -> [Check; 4] {
    [
        required("return", judge_return(parameters, version, loaded.return_height_mm)),
        required("landing after return", judge_return_end(parameters)),
        required("mission restart", judge_restart(parameters, loaded.is_in_auto)),
        required("route speed", judge_speed(parameters, loaded.speed_m_s)),
    ]
}

/// What of the flight is in the autopilot's parameters by now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Loaded {
    /// Whether AUTO flies the route.
    pub(crate) is_in_auto: bool,
    /// The aircraft's own height of return, millimetres above home, where it is set.
    pub(crate) return_height_mm: Option<i32>,
    /// The speed of AUTO, metres per second, where it is set.
    pub(crate) speed_m_s: Option<f64>,
}

/// The settings that only warn.
pub(crate) fn advised_for_flight(parameters: &Watch) -> [Check; 2] {
    [
        advised("battery failsafe", judge_battery(parameters)),
        advised("EKF failsafe", judge_estimate(parameters)),
    ]
}

/// The parameters that stand against a flight, or are warned of, and have one cure. What depends on the aircraft, as the
/// failsafe of a battery with its voltages, is the operator's to choose.
pub(crate) fn cures(parameters: &Watch, is_in_auto: bool) -> Vec<Cure, CURES_MAX> {
    let integer = |which, expected, stands: fn(f64) -> bool| (which, Value::Integer(expected), stands);
    let table = [
        (true, integer(Watched::ReturnHeightType, 0, |found| found != 0.0)),
        (is_in_auto, integer(Watched::MissionRestart, 0, |found| found != 0.0)),
        (true, integer(Watched::ReturnEndHeight, 0, |found| found > 0.0)),
        (true, (Watched::ReturnEndHeightM, Value::Real(0.0), |found| found > 0.0)),
        (true, integer(Watched::EstimateFailsafe, 1, |found| found != 1.0 && found != 3.0)),
    ];
    let is_relied_on = table.into_iter().filter(|(is_relied_on, _)| *is_relied_on).map(|(_, row)| row);
    is_relied_on
        .filter_map(|(parameter, expected, stands)| match parameters.finding(parameter) {
            Finding::Known { name, value: found } if stands(found.as_f64()) => {
                Some(Cure { parameter, name, found, expected })
            }
            Finding::Known { .. }
            | Finding::Unknown
            | Finding::Absent
            | Finding::WrongKind { .. }
            | Finding::Unreadable => None,
        })
        .collect()
}

/// The value of a whole number; `Ok(None)` where this autopilot does not have it or it cannot be read.
fn read(parameters: &Watch, which: Watched) -> Result<Option<i64>, Text> {
    match parameters.finding(which) {
        Finding::Unknown => Err(text!("{} not read yet", which.names().usual)),
        Finding::Known { value, .. } => Ok(value.as_integer()),
        Finding::Absent | Finding::WrongKind { .. } | Finding::Unreadable => Ok(None),
    }
}

/// A return ends at home, at a height above it: layers and landings of a swarm are planned so.
fn judge_return(parameters: &Watch, version: Option<Version>, own_mm: Option<i32>) -> (bool, Text) {
    match read(parameters, Watched::RallyPoints) {
        Err(why) => return (false, why),
        Ok(Some(points)) if points > 0 => {
            return (false, text!("RALLY_TOTAL {points}: it would return to a rally point; remove them"));
        }
        Ok(_) => {}
    }
    // 3.5.7 does not have it, which takes seconds to find out.
    let is_known_to = version.is_some_and(|version| version.major >= 4);
    match read(parameters, Watched::ReturnHeightType) {
        Err(why) if is_known_to => (false, why),
        Ok(Some(kind)) if kind != 0 => {
            (false, text!("RTL_ALT_TYPE {kind}: heights of returns are above terrain; set RTL_ALT_TYPE to 0"))
        }
        Err(_) | Ok(_) => judge_own_height(parameters, own_mm),
    }
}

/// The height that was set for this flight is still there; since 4.7 under another name, and in metres.
fn judge_own_height(parameters: &Watch, own_mm: Option<i32>) -> (bool, Text) {
    let Some(own_mm) = own_mm else { return (true, text!("to home, at a height above it")) };
    let own_m = f64::from(own_mm) * 1e-3;
    let found_m = match (parameters.finding(Watched::ReturnHeight), parameters.value(Watched::ReturnHeightM))
    {
        (Finding::Known { value, .. }, _) => Some(value.as_f64() * 1e-2),
        (_, Some(metres)) => Some(metres.as_f64()),
        (Finding::Unknown, None) => return (false, text!("RTL_ALT not read yet")),
        (Finding::Absent | Finding::WrongKind { .. } | Finding::Unreadable, None) => None,
    };
    match found_m {
        // It is written in whole centimetres.
        Some(found_m) if (found_m - own_m).abs() > 0.011 => (
            false,
            text!("RTL_ALT {found_m} m, expected {own_m} m as the plan set it: another has written it"),
        ),
        Some(_) => (true, text!("to home, {own_m} m above it")),
        None => (true, text!("to home, {own_m} m above it, as far as it is reported")),
    }
}

/// The speed that was set for the route is still there.
fn judge_speed(parameters: &Watch, speed_m_s: Option<f64>) -> (bool, Text) {
    let found_cm_s = parameters.value(Watched::TrackSpeed).map(|value| value.as_f64());
    match (found_cm_s, speed_m_s.map(|speed_m_s| speed_m_s * 100.0)) {
        (None, Some(_)) if parameters.finding(Watched::TrackSpeed) == Finding::Unknown => {
            (false, text!("WPNAV_SPEED not read yet"))
        }
        (Some(found), Some(expected)) if (found - expected).abs() > 1.0 => (
            false,
            text!("WPNAV_SPEED {found} cm/s, expected {expected} as it was set: another has written it"),
        ),
        (_, Some(expected)) => (true, text!("{} m/s", expected / 100.0)),
        (_, None) => (true, text!("set with the route")),
    }
}

fn judge_restart(parameters: &Watch, is_in_auto: bool) -> (bool, Text) {
    match read(parameters, Watched::MissionRestart) {
        Ok(Some(restart)) if !is_in_auto => (true, text!("AUTO is not used (MIS_RESTART {restart})")),
        _ if !is_in_auto => (true, text!("AUTO is not used")),
        Err(why) => (false, why),
        Ok(Some(restart)) if restart != 0 => (
            false,
            text!(
                "MIS_RESTART {restart}: AUTO would fly the mission from its start again; set MIS_RESTART to 0"
            ),
        ),
        Ok(_) => (true, text!("AUTO continues the mission")),
    }
}

fn judge_return_end(parameters: &Watch) -> (bool, Text) {
    if let Some(height_m) =
        parameters.value(Watched::ReturnEndHeightM).map(|m| m.as_f64()).filter(|m| *m > 0.0)
    {
        return (false, text!("RTL_ALT_FINAL_M {height_m}: a return ends hovering; set it to 0 to land"));
    }
    match read(parameters, Watched::ReturnEndHeight) {
        Ok(Some(height_cm)) if height_cm > 0 => {
            (false, text!("RTL_ALT_FINAL {height_cm} cm: a return ends hovering; set it to 0 to land"))
        }
        Err(why) => (false, why),
        Ok(_) => (true, text!("a return lands")),
    }
}

/// What ArduCopter does by `BATT_FS_LOW_ACT` and its kin, of which `FS_BATT_ENABLE` has the first three.
fn battery_action(number: i64) -> &'static str {
    match number {
        0 => "none",
        1 => "LAND",
        2 => "RTL",
        3 => "SmartRTL or RTL",
        4 => "SmartRTL or LAND",
        5 => "terminate",
        6 => "mission's landing or RTL",
        7 => "BRAKE or LAND",
        _ => "unknown",
    }
}

fn judge_battery(parameters: &Watch) -> (bool, Text) {
    match read(parameters, Watched::BatteryMonitor) {
        Err(why) => return (false, why),
        Ok(Some(0)) => {
            return (false, text!("BATT_MONITOR 0: the battery is not measured; set BATT_MONITOR"));
        }
        Ok(_) => {}
    }
    let action = match read(parameters, Watched::BatteryLowAction) {
        Err(why) => return (false, why),
        Ok(action) => action.unwrap_or(0),
    };
    let critical = parameters.integer(Watched::BatteryCriticalAction).unwrap_or(0);
    let has_limit = |limits: [Watched; 2]| {
        limits.iter().any(|&limit| parameters.value(limit).is_some_and(|limit| limit.as_f64() > 0.0))
    };
    let low_acts = action != 0 && has_limit([Watched::BatteryLowVoltage, Watched::BatteryLowCharge]);
    let critical_acts =
        critical != 0 && has_limit([Watched::BatteryCriticalVoltage, Watched::BatteryCriticalCharge]);
    let name = match parameters.finding(Watched::BatteryLowAction) {
        Finding::Known { name, .. } => text!("{name}"),
        Finding::Unknown | Finding::Absent | Finding::WrongKind { .. } | Finding::Unreadable => {
            text!("{}", Watched::BatteryLowAction.names().usual)
        }
    };
    match (low_acts, critical_acts) {
        (true, true) => {
            (true, text!("low: {}; critical: {}", battery_action(action), battery_action(critical)))
        }
        (true, false) => (true, text!("low: {}", battery_action(action))),
        (false, true) => (true, text!("low: none; critical: {}", battery_action(critical))),
        (false, false) if action != 0 => {
            (false, text!("{name} {action} without a limit: set a low voltage or a low charge"))
        }
        (false, false) => {
            (false, text!("{name} 0: nothing is done about a low battery; set it to 2 (RTL) or 1 (LAND)"))
        }
    }
}

fn judge_estimate(parameters: &Watch) -> (bool, Text) {
    match read(parameters, Watched::EstimateFailsafe) {
        Err(why) => (false, why),
        Ok(Some(1 | 3)) => (true, text!("LAND")),
        Ok(Some(2)) => (false, text!("FS_EKF_ACTION 2: ALT_HOLD drifts without a pilot; set it to 1 (LAND)")),
        Ok(Some(action)) => {
            (false, text!("FS_EKF_ACTION {action}: a lost position is only reported; set it to 1 (LAND)"))
        }
        Ok(None) => (false, text!("FS_EKF_ACTION not reported")),
    }
}

/// The autopilot's own checks, where it reports them (since 4.0).
pub(crate) fn prearm(t: &Telemetry, now: Instant) -> Check {
    let fresh = t.prearm_failure.as_ref().filter(|(at, _)| now.since(*at) < PREARM_TEXT_FRESH);
    let found = match (t.sensors.and_then(|sensors| sensors.prearm), fresh) {
        (None, _) => (true, text!("not reported")),
        (Some(true), _) => (true, text!("pass")),
        (Some(false), Some((_, why))) => (false, text!("the flight controller's own checks fail: {why}")),
        (Some(false), None) => (false, text!("the flight controller's own checks fail, without a text yet")),
    };
    required("autopilot's checks", found)
}

/// Whether a pilot's transmitter is received. Flights without one exist; a failsafe that waits for it does not let
/// them.
pub(crate) fn radio_control(t: &Telemetry, parameters: &Watch) -> Check {
    let failsafe = parameters.integer(Watched::ThrottleFailsafe).unwrap_or(0);
    let is_received = t.sensors.map(|sensors| sensors.radio_control);
    let lost = match is_received {
        None => return advised("radio control", (false, text!("not reported yet"))),
        Some(Some(true)) => return advised("radio control", (true, text!("received"))),
        Some(Some(false)) => "transmitter not received",
        Some(None) => "no receiver",
    };
    if failsafe == 0 {
        return advised("radio control", (false, text!("{lost}: no pilot can take over")));
    }
    let cure = "switch it on, or set FS_THR_ENABLE to 0";
    required("radio control", (false, text!("{lost}, and FS_THR_ENABLE {failsafe} acts on it: {cure}")))
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use wingbeat_autopilot::dialect::{MavMessage, MavParamType, PARAM_VALUE_DATA};
    use wingbeat_autopilot::parameter::{Kind, WATCHED};

    /// An autopilot that has reported these.
    pub(crate) fn reported(parameters: &[(&str, f32)]) -> Watch {
        let mut watch = Watch::new(Instant::ZERO);
        for (name, value) in parameters {
            let which = WATCHED.iter().find(|which| which.names().has(name)).unwrap();
            watch.on_message(&MavMessage::PARAM_VALUE(PARAM_VALUE_DATA {
                param_id: (*name).into(),
                param_value: *value,
                param_type: match which.kind() {
                    Kind::Integer => MavParamType::MAV_PARAM_TYPE_INT16,
                    Kind::Real => MavParamType::MAV_PARAM_TYPE_REAL32,
                },
                ..PARAM_VALUE_DATA::default()
            }));
        }
        watch
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::testing::reported;
    use super::*;
    use wingbeat_autopilot::telemetry::Sensors;

    const NEW: Option<Version> = Some(Version { major: 4, minor: 6, patch: 2 });
    const OLD: Option<Version> = Some(Version { major: 3, minor: 5, patch: 7 });

    /// What is reported, whether it passes, words of the line.
    type Case<'a> = (&'a [(&'a str, f32)], bool, &'a str);

    fn table(judge: impl Fn(&Watch) -> (bool, Text), rows: &[Case<'_>]) {
        for (parameters, passes, words) in rows {
            let (passed, detail) = judge(&reported(parameters));
            assert_eq!(passed, *passes, "{parameters:?}: {detail}");
            assert!(detail.contains(words), "{detail}: {words}");
            assert!(detail.len() < 87, "cut off in the log of an order: {detail}");
        }
    }

    #[test]
    fn a_return_is_to_home_at_a_height_above_it() {
        let none = ("RALLY_TOTAL", 0.0);
        let cure = "RTL_ALT_TYPE 1: heights of returns are above terrain; set RTL_ALT_TYPE to 0";
        table(
            |watch| judge_return(watch, NEW, None),
            &[
                (&[], false, "RALLY_TOTAL not read yet"),
                (&[none], false, "RTL_ALT_TYPE not read yet"),
                (&[none, ("RTL_ALT_TYPE", 0.0)], true, "to home"),
                (&[none, ("RTL_ALT_TYPE", 1.0)], false, cure),
                (
                    &[("RALLY_TOTAL", 2.0)],
                    false,
                    "RALLY_TOTAL 2: it would return to a rally point; remove them",
                ),
            ],
        );
        assert!(judge_return(&reported(&[none]), OLD, None).0, "3.5.7 does not have RTL_ALT_TYPE");
    }

    #[test]
    fn what_was_set_with_the_route_is_still_there() {
        table(
            |watch| judge_own_height(watch, Some(33_500)),
            &[
                (&[("RTL_ALT", 3_350.0)], true, "33.5 m"),
                (&[("RTL_ALT", 1_500.0)], false, "RTL_ALT 15 m, expected 33.5 m"),
                (&[("RTL_ALT_M", 33.5)], true, "33.5 m"),
                (&[("RTL_ALT_M", 15.0)], false, "RTL_ALT 15 m, expected 33.5 m"),
                (&[], false, "RTL_ALT not read yet"),
            ],
        );
        table(
            |watch| judge_speed(watch, Some(8.0)),
            &[
                (&[("WPNAV_SPEED", 800.0)], true, "8 m/s"),
                (&[("WPNAV_SPEED", 500.0)], false, "WPNAV_SPEED 500 cm/s, expected 800"),
                (&[], false, "WPNAV_SPEED not read yet"),
            ],
        );
    }

    #[test]
    fn cures_are_single_values_and_of_what_is_relied_on() {
        let all = reported(&[
            ("RTL_ALT_TYPE", 1.0),
            ("MIS_RESTART", 1.0),
            ("RTL_ALT_FINAL", 500.0),
            ("FS_EKF_ACTION", 2.0),
            ("BATT_FS_LOW_ACT", 0.0),
        ]);
        let named = |watch: &Watch, is_in_auto| {
            let cures = cures(watch, is_in_auto);
            cures
                .iter()
                .map(|c| std::format!("{} {} to {}", c.name, c.found, c.expected))
                .collect::<std::vec::Vec<_>>()
        };
        let of_every_flight = ["RTL_ALT_TYPE 1 to 0", "RTL_ALT_FINAL 500 to 0", "FS_EKF_ACTION 2 to 1"];
        assert_eq!(named(&all, false), of_every_flight, "a battery's limits are the operator's to choose");
        assert!(named(&all, true).contains(&"MIS_RESTART 1 to 0".into()));
        assert!(cures(&reported(&[("FS_EKF_ACTION", 1.0), ("RTL_ALT_FINAL", 0.0)]), true).is_empty());
    }

    #[test]
    fn a_mission_that_begins_again_is_refused_where_auto_flies_it() {
        let cure = "MIS_RESTART 1: AUTO would fly the mission from its start again; set MIS_RESTART to 0";
        table(
            |watch| judge_restart(watch, true),
            &[
                (&[], false, "MIS_RESTART not read yet"),
                (&[("MIS_RESTART", 0.0)], true, "continues"),
                (&[("MIS_RESTART", 1.0)], false, cure),
            ],
        );
        table(
            |watch| judge_restart(watch, false),
            &[(&[], true, "AUTO is not used"), (&[("MIS_RESTART", 1.0)], true, "(MIS_RESTART 1)")],
        );
    }

    #[test]
    fn a_return_that_ends_hovering_is_refused() {
        let cure = "RTL_ALT_FINAL 1000 cm: a return ends hovering; set it to 0 to land";
        table(
            judge_return_end,
            &[
                (&[], false, "not read yet"),
                (&[("RTL_ALT_FINAL", 0.0)], true, "lands"),
                (&[("RTL_ALT_FINAL", 1_000.0)], false, cure),
                (&[("RTL_ALT_FINAL_M", 10.0)], false, "RTL_ALT_FINAL_M 10: a return ends hovering"),
            ],
        );
    }

    #[test]
    fn a_battery_failsafe_needs_an_action_and_a_limit() {
        let on = ("BATT_MONITOR", 4.0);
        let nothing = "BATT_FS_LOW_ACT 0: nothing is done about a low battery; set it to 2 (RTL) or 1 (LAND)";
        table(
            judge_battery,
            &[
                (&[], false, "BATT_MONITOR not read yet"),
                (&[("BATT_MONITOR", 0.0)], false, "BATT_MONITOR 0: the battery is not measured"),
                (&[on, ("BATT_FS_LOW_ACT", 0.0), ("BATT_LOW_VOLT", 10.5)], false, nothing),
                (&[on, ("BATT_FS_LOW_ACT", 2.0)], false, "BATT_FS_LOW_ACT 2 without a limit"),
                (&[on, ("BATT_FS_LOW_ACT", 2.0), ("BATT_LOW_VOLT", 10.5)], true, "low: RTL"),
                (&[on, ("BATT_FS_LOW_ACT", 1.0), ("BATT_LOW_MAH", 600.0)], true, "low: LAND"),
                (
                    &[on, ("BATT_FS_LOW_ACT", 0.0), ("BATT_FS_CRT_ACT", 1.0), ("BATT_CRT_VOLT", 10.0)],
                    true,
                    "low: none; critical: LAND",
                ),
                // 3.5.7.
                (&[on, ("FS_BATT_ENABLE", 0.0), ("FS_BATT_VOLTAGE", 10.5)], false, "FS_BATT_ENABLE 0"),
                (&[on, ("FS_BATT_ENABLE", 2.0), ("FS_BATT_VOLTAGE", 10.5)], true, "low: RTL"),
            ],
        );
    }

    #[test]
    fn a_lost_position_should_mean_landing() {
        table(
            judge_estimate,
            &[
                (&[("FS_EKF_ACTION", 1.0)], true, "LAND"),
                (&[("FS_EKF_ACTION", 3.0)], true, "LAND"),
                (&[("FS_EKF_ACTION", 0.0)], false, "only reported; set it to 1"),
                (&[("FS_EKF_ACTION", 2.0)], false, "drifts without a pilot; set it to 1"),
            ],
        );
    }

    #[test]
    fn what_the_autopilot_would_not_arm_with_is_refused_with_its_text() {
        let at = |prearm, text: Option<&str>| {
            let sensors = Some(Sensors { prearm, radio_control: Some(true) });
            let prearm_failure = text.map(|text| (Instant::from_secs(100), text.try_into().unwrap()));
            Telemetry { sensors, prearm_failure, ..Telemetry::default() }
        };
        let judge = |t: &Telemetry, now| {
            let check = prearm(t, Instant::from_secs(now));
            assert!(check.is_required);
            (check.passed, check.detail)
        };
        assert_eq!(judge(&at(None, Some("Check fence")), 101), (true, text!("not reported")));
        assert_eq!(judge(&at(Some(true), Some("Check fence")), 101), (true, text!("pass")));
        let failing = at(Some(false), Some("Compass not calibrated"));
        let with_text = text!("the flight controller's own checks fail: Compass not calibrated");
        assert_eq!(judge(&failing, 139), (false, with_text));
        assert!(judge(&failing, 140).1.contains("without a text"), "too old");
    }

    #[test]
    fn a_transmitter_is_required_where_a_failsafe_waits_for_it() {
        let at = |radio_control| Telemetry {
            sensors: Some(Sensors { prearm: None, radio_control }),
            ..Telemetry::default()
        };
        for (found, failsafe, passed, is_required) in [
            (Some(true), 1.0, true, false),
            (Some(false), 1.0, false, true),
            (None, 2.0, false, true),
            (Some(false), 0.0, false, false),
            (None, 0.0, false, false),
        ] {
            let check = radio_control(&at(found), &reported(&[("FS_THR_ENABLE", failsafe)]));
            assert_eq!((check.passed, check.is_required), (passed, is_required), "{check:?}");
            assert!(check.detail.len() < check.detail.capacity(), "cut off: {check:?}");
        }
    }
}
