//! The autopilot's own fence above a flight. It stops a climb short of its height, so returns in layers above it would
//! all fly at one height: such a flight is refused.

use wingbeat_autopilot::parameter::{Finding, Watch, Watched};
use wingbeat_protocol::{Protocol, Text, text};

/// The bit of `FENCE_TYPE` that bounds the height (<https://ardupilot.org/copter/docs/parameters.html#fence-type>).
const BOUNDS_HEIGHT: i64 = 1;
/// `FENCE_MARGIN` where it is not reported.
const MARGIN_USUAL_M: f64 = 2.0;
/// A height is written in centimetres.
const ROUNDING_M: f64 = 0.01;

/// Whether waypoints and the return stay below the fence, as far as both are known; and what was found.
pub(crate) fn judge(parameters: &Watch, protocol: &dyn Protocol) -> (bool, Text) {
    match parameters.finding(Watched::FenceEnable) {
        // The route is held against it again when it is loaded.
        Finding::Unknown => return (true, text!("FENCE_ENABLE not read yet")),
        Finding::Known { value, .. } if value.as_integer() != Some(0) => {}
        Finding::Known { .. } | Finding::Absent | Finding::WrongKind { .. } | Finding::Unreadable => {
            return (true, text!("the autopilot has none"));
        }
    }
    // What cannot be read may bound the height.
    if parameters.integer(Watched::FenceType).is_some_and(|bits| bits & BOUNDS_HEIGHT == 0) {
        return (true, text!("the autopilot's does not bound the height"));
    }
    let Some(most) = parameters.value(Watched::FenceHeight) else {
        return (false, text!("FENCE_ENABLE is 1 and FENCE_ALT_MAX not reported"));
    };
    let margin_m = parameters.value(Watched::FenceMargin).map_or(MARGIN_USUAL_M, |m| m.as_f64());
    let (most_m, fence) = (most.as_f64() - margin_m, most.as_f64());
    let waypoint_mm = protocol.route().iter().map(|w| w.height_mm).max();
    let heights = [("waypoint", waypoint_mm), ("return", protocol.view().return_height_mm)];
    let metres = |mm: i32| f64::from(mm) / 1e3;
    let over = heights.into_iter().find_map(|(what, mm)| {
        let height_m = mm.map(metres).filter(|m| *m > most_m + ROUNDING_M)?;
        Some(text!(
            "{what} at {height_m} m, expected at most {most_m} m: FENCE_ALT_MAX {fence}, FENCE_MARGIN {margin_m}"
        ))
    });
    over.map_or_else(|| (true, text!("the autopilot's ends at {most_m} m")), |why| (false, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_autopilot::dialect::{MavMessage, MavParamType, PARAM_VALUE_DATA};
    use wingbeat_geo::Instant;
    use wingbeat_protocol::mission::{Config, Mission};
    use wingbeat_wire::{Point, VehicleId};

    fn watch_with(parameters: &[(&str, f32)]) -> Watch {
        let mut watch = Watch::new(Instant::ZERO);
        for (name, value) in parameters {
            let is_real = matches!(*name, "FENCE_ALT_MAX" | "FENCE_MARGIN");
            let real = MavParamType::MAV_PARAM_TYPE_REAL32;
            watch.on_message(&MavMessage::PARAM_VALUE(PARAM_VALUE_DATA {
                param_id: (*name).into(),
                param_value: *value,
                param_type: if is_real { real } else { MavParamType::MAV_PARAM_TYPE_INT8 },
                ..PARAM_VALUE_DATA::default()
            }));
        }
        watch
    }

    #[test]
    fn what_the_fence_would_stop_is_refused_with_the_numbers() {
        let mut mission = Mission::new(Config::new(VehicleId(1)));
        let at = |height_mm| Point { latitude_e7: 394_825_940, longitude_e7: -3_462_650, height_mm };
        mission.set_mission(&[at(20_000), at(48_500)]).unwrap();
        let on = ("FENCE_ENABLE", 1.0);
        for (parameters, passes, words) in [
            (&[][..], true, "not read yet"),
            (&[("FENCE_ENABLE", 0.0)][..], true, "has none"),
            (&[on, ("FENCE_TYPE", 6.0)][..], true, "does not bound the height"),
            (&[on][..], false, "FENCE_ALT_MAX not reported"),
            (&[on, ("FENCE_TYPE", 7.0), ("FENCE_ALT_MAX", 51.0)][..], true, "ends at 49 m"),
            (
                &[on, ("FENCE_TYPE", 7.0), ("FENCE_ALT_MAX", 51.0), ("FENCE_MARGIN", 3.0)][..],
                false,
                "waypoint at 48.5 m, expected at most 48 m: FENCE_ALT_MAX 51, FENCE_MARGIN 3",
            ),
        ] {
            let (passed, detail) = judge(&watch_with(parameters), &mission);
            assert_eq!(passed, passes, "{detail}");
            assert!(detail.contains(words), "{detail}: {words}");
        }
    }
}
