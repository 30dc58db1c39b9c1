//! Home as the flight controller reports it, held against where the aircraft stands: a return flies there.

use wingbeat_autopilot::Telemetry;
use wingbeat_geo::{Frame, Position};
use wingbeat_protocol::{Command, Severity, Text, text};

use crate::{Agent, Outputs};

/// ArduCopter takes the place of its first fix for home until it is armed: an aircraft is carried no further, metres.
const OFF_MAX_M: f64 = 100.0;

fn distance_m(from: Position, to: Position) -> f64 {
    Frame::new(from).to_local(to).truncate().length()
}

/// Returns how far home is from where the aircraft stands or was armed, metres, where that is too far. A home where it was
/// armed last is none of these: it is set again at the next arming.
pub(crate) fn off_m(t: &Telemetry) -> Option<f64> {
    let (home, stands) = (t.home?, t.disarmed_position?);
    let off_m = distance_m(stands, home);
    let is_of_last_flight =
        !t.armed && t.armed_position.is_some_and(|armed| distance_m(armed, home) <= OFF_MAX_M);
    (off_m > OFF_MAX_M && !is_of_last_flight).then_some(off_m)
}

/// Returns a distance for people.
fn shown(off_m: f64) -> Text {
    match off_m {
        off_m if off_m >= 1e4 => text!("{:.0} km", off_m * 1e-3),
        off_m => text!("{off_m:.0} m"),
    }
}

/// Returns why no return is safe.
pub(crate) fn refusal(t: &Telemetry) -> Option<Text> {
    if t.system_id.is_some() && t.home.is_none() {
        return Some(text!(
            "home not known: the flight controller has not reported one; wait for its position"
        ));
    }
    let off = shown(off_m(t)?);
    Some(text!("home is {off} from where it stands: set home here, or restart the flight controller"))
}

impl Agent {
    /// Warns of a return to a place that is not where the aircraft took off.
    pub(crate) fn warn_of_home(&self, command: Command, out: &mut Outputs) {
        if command == Command::Return
            && let Some(off_m) = off_m(&self.telemetry)
        {
            let off = shown(off_m);
            out.log(
                Severity::Error,
                text!("returns to a home that is {off} from where it took off: Land or Hold keeps it here"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_elsewhere_is_found_and_that_of_the_last_flight_is_none() {
        let at = |latitude_e7| Some(Position { latitude_e7, longitude_e7: -3_462_650, altitude_mm: 0 });
        let zero = Some(Position { latitude_e7: 0, longitude_e7: 0, altitude_mm: 0 });
        let t = |home, stands, armed_position, armed| Telemetry {
            home,
            disarmed_position: stands,
            armed_position,
            armed,
            ..Telemetry::default()
        };
        let here = at(394_825_940);
        for (t, refused) in [
            (t(None, here, None, false), None),
            (t(here, None, None, false), None),
            (t(at(394_825_940 + 8_900), here, None, false), None),
            (t(at(394_825_940 + 9_100), here, None, false), Some("home is 101 m from")),
            (t(zero, here, None, false), Some(" km from where it stands")),
            // It landed elsewhere; armed again it must have been set.
            (t(at(394_900_000), here, at(394_900_000), false), None),
            (t(at(394_900_000), here, here, true), Some("home is 82")),
        ] {
            let found = refusal(&t);
            assert_eq!(found.is_some(), refused.is_some(), "{found:?}");
            assert!(refused.is_none_or(|refused| found.clone().unwrap().contains(refused)), "{found:?}");
            assert!(found.is_none_or(|line| line.len() < 100));
        }
        let silent = Telemetry { system_id: Some(1), ..t(None, here, None, false) };
        assert!(refusal(&silent).is_some_and(|line| line.starts_with("home not known") && line.len() < 87));
    }
}
