//! Which layers catch an aircraft whose companion dies: the guardian process, and the autopilot's own
//! ground-station failsafe. `docs/decisions/0003-companion-death.md` argues them.
//!
//! The failsafe is counted only where it is known to act: it is on, it counts the heartbeats that we send for
//! the console that holds the lease, and no other ground station sends such heartbeats, which would continue after our death.

use core::fmt;

use wingbeat_autopilot::identity::Version;
use wingbeat_autopilot::parameter::{Finding, Watch, Watched};
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::{Text, text};

use crate::guardian::{Answer, Stance};

/// A failsafe that waits longer is no layer: meanwhile the aircraft flies on, 10 m each second.
const TIMEOUT_MAX_S: f32 = 10.0;
/// 3.5.7's time-out, which is no parameter of its.
const TIMEOUT_357_S: f32 = 5.0;
/// A ground station sends a heartbeat once a second; one that was silent for so long is gone.
const GROUND_STATION_GONE: Duration = Duration::from_secs(10);
/// `FS_GCS_ENABLE`: on with a mission in AUTO; `FS_OPTIONS`, bit 1, means the same in 4.x.
const GO_ON_IN_AUTO: i64 = 2;
const OPTION_GO_ON_IN_AUTO: i64 = 1 << 1;

/// What is known of the autopilot's own failsafe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroundStation<'a> {
    /// The autopilot's parameters.
    pub(crate) parameters: &'a Watch,
    /// The autopilot's version.
    pub(crate) version: Option<Version>,
    /// The system id under which a console's heartbeats are sent.
    pub(crate) id: u8,
    /// Whether they are: a console holds the lease.
    pub(crate) is_sent: bool,
    /// When another sender on the autopilot's other lines used this id.
    pub(crate) other_at: Option<Instant>,
}

/// What the failsafe does.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Failsafe {
    action: &'static str,
    after_s: f32,
    /// In GUIDED it acts wherever it acts at all.
    in_auto: bool,
}

impl fmt::Display for Failsafe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { action, after_s, in_auto } = self;
        write!(f, "{action} after {after_s} s in GUIDED{}", if *in_auto { " and AUTO" } else { ", not AUTO" })
    }
}

impl GroundStation<'_> {
    /// What it does when we die, or why it does nothing.
    fn failsafe(&self, now: Instant) -> Result<Failsafe, Text> {
        let action = self.integer(Watched::GroundStationFailsafe)?;
        if action == 0 {
            return Err(text!("FS_GCS_ENABLE is 0"));
        }
        let (found, expected) = (self.integer(Watched::GroundStationId)?, i64::from(self.id));
        if found != expected {
            let name = self.name(Watched::GroundStationId);
            return Err(text!("{name} is {found}, expected {expected}"));
        }
        if self.parameters.has_station_range() {
            let highest = match self.parameters.finding(Watched::GroundStationIdHighest) {
                Finding::Absent => 0,
                Finding::Unknown
                | Finding::Known { .. }
                | Finding::WrongKind { .. }
                | Finding::Unreadable => self.integer(Watched::GroundStationIdHighest)?,
            };
            if highest > found {
                // Any of those stations keeps the failsafe waiting.
                return Err(text!("MAV_GCS_SYSID_HI is {highest}, expected at most {found}"));
            }
        }
        if !self.is_sent {
            return Err(text!("no console holds the lease"));
        }
        if self.other_at.is_some_and(|at| now.since(at) < GROUND_STATION_GONE) {
            return Err(text!("another ground station sends heartbeats as {expected} too"));
        }
        let version = self.version.ok_or_else(|| text!("version unknown"))?;
        if version.major < 4 {
            // Return, whatever the number; measured on 3.5.7: GUIDED alone.
            return Ok(Failsafe { action: "RTL", after_s: TIMEOUT_357_S, in_auto: false });
        }
        let after_s = match self.parameters.value(Watched::GroundStationTimeout) {
            Some(value) => value.as_f64() as f32,
            None => return Err(text!("FS_GCS_TIMEOUT unknown")),
        };
        if after_s.is_nan() || after_s > TIMEOUT_MAX_S {
            return Err(text!("FS_GCS_TIMEOUT is {after_s} s, expected at most {TIMEOUT_MAX_S} s"));
        }
        // An option that cannot be read may let it continue.
        let options = self.parameters.integer(Watched::FailsafeOptions).unwrap_or(OPTION_GO_ON_IN_AUTO);
        Ok(Failsafe {
            // https://ardupilot.org/copter/docs/gcs-failsafe.html; a number that it does not know is RTL.
            action: match action {
                3 => "SmartRTL or RTL",
                4 => "SmartRTL or LAND",
                5 => "LAND",
                6 => "mission's landing or RTL",
                7 => "BRAKE",
                _ => "RTL",
            },
            after_s,
            in_auto: action != GO_ON_IN_AUTO && options & OPTION_GO_ON_IN_AUTO == 0,
        })
    }

    fn integer(&self, which: Watched) -> Result<i64, Text> {
        self.parameters.integer(which).ok_or_else(|| {
            let name = self.name(which);
            match self.parameters.finding(which) {
                Finding::Unknown => text!("{name} not read yet"),
                Finding::Absent => text!("{name} not reported"),
                Finding::Known { .. } | Finding::WrongKind { .. } | Finding::Unreadable => {
                    text!("{name} unreadable")
                }
            }
        })
    }

    fn name(&self, which: Watched) -> Text {
        match self.parameters.finding(which) {
            Finding::Known { name, .. } => text!("{name}"),
            Finding::Unknown | Finding::Absent | Finding::WrongKind { .. } | Finding::Unreadable => {
                text!("{}", which.names().usual)
            }
        }
    }
}

/// Whether a layer catches an aircraft that is flown in GUIDED, and `in_auto` also in AUTO; and every layer,
/// with what it does not cover.
pub(crate) fn judge(
    guard: Option<Answer>,
    ground: &GroundStation<'_>,
    in_auto: bool,
    now: Instant,
) -> (bool, Text) {
    if let Some(Answer { stance, cause }) = guard
        && stance.holds()
    {
        return (false, text!("the guardian has the flight controller ({cause}): {}", stance.name()));
    }
    let guarded = guard.is_some_and(|a| a.stance == Stance::Watching);
    let absent = match guard {
        None => text!("no guardian answers (is wingbeat-guard running?)"),
        Some(Answer { stance, .. }) => text!("the guardian is {}", stance.name()),
    };
    match (guarded, ground.failsafe(now)) {
        (true, Ok(failsafe)) => (true, text!("the guardian watches; behind it the autopilot: {failsafe}")),
        (true, Err(why)) => (true, text!("the guardian watches; a loss of power is not caught: {why}")),
        (false, Ok(failsafe)) => (failsafe.in_auto || !in_auto, text!("{absent}; the autopilot: {failsafe}")),
        (false, Err(why)) => (false, text!("{absent}; {why}")),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::guardian::Cause;
    use wingbeat_autopilot::dialect::{MavMessage, MavParamType, PARAM_VALUE_DATA};

    const NOW: Instant = Instant::from_secs(100);
    const OLD: Version = Version { major: 3, minor: 5, patch: 7 };
    const NEW: Version = Version { major: 4, minor: 6, patch: 2 };

    /// An autopilot that has reported these.
    fn reported(parameters: &[(&str, f32)]) -> Watch {
        let mut watch = Watch::new(Instant::ZERO);
        for (name, value) in parameters {
            let kind = if *name == "FS_GCS_TIMEOUT" {
                MavParamType::MAV_PARAM_TYPE_REAL32
            } else {
                MavParamType::MAV_PARAM_TYPE_INT16
            };
            watch.on_message(&MavMessage::PARAM_VALUE(PARAM_VALUE_DATA {
                param_id: (*name).into(),
                param_value: *value,
                param_type: kind,
                ..PARAM_VALUE_DATA::default()
            }));
        }
        watch
    }

    fn sent(parameters: &Watch, version: Version) -> GroundStation<'_> {
        GroundStation { parameters, version: Some(version), id: 255, is_sent: true, other_at: None }
    }

    fn answer(stance: Stance) -> Option<Answer> {
        Some(Answer { stance, cause: Cause::Ended })
    }

    /// Flown in GUIDED; then in AUTO.
    fn verdict(guard: Option<Answer>, ground: &GroundStation<'_>) -> (bool, bool, std::string::String) {
        let (in_guided, guided) = judge(guard, ground, false, NOW);
        let (in_auto, auto) = judge(guard, ground, true, NOW);
        assert_eq!(guided, auto);
        assert!(guided.len() < guided.capacity(), "cut off: {guided}");
        (in_guided, in_auto, guided.as_str().into())
    }

    #[test]
    fn every_layer_with_every_reason_why_it_is_none() {
        let on = |action: f32| reported(&[("SYSID_MYGCS", 255.0), ("FS_GCS_ENABLE", action)]);
        let four = |action: f32, timeout_s: f32, options: f32| {
            reported(&[
                ("SYSID_MYGCS", 255.0),
                ("FS_GCS_ENABLE", action),
                ("FS_GCS_TIMEOUT", timeout_s),
                ("FS_OPTIONS", options),
            ])
        };
        let silent = Watch::new(Instant::ZERO);
        let other_id = reported(&[("SYSID_MYGCS", 252.0), ("FS_GCS_ENABLE", 1.0)]);
        let new_name = |highest: f32| {
            reported(&[
                ("MAV_GCS_SYSID", 252.0),
                ("MAV_GCS_SYSID_HI", highest),
                ("FS_GCS_ENABLE", 1.0),
                ("FS_GCS_TIMEOUT", 5.0),
                ("FS_OPTIONS", 16.0),
            ])
        };
        let unread_range = reported(&[("MAV_GCS_SYSID", 252.0), ("FS_GCS_ENABLE", 1.0)]);
        let (one_station, range) = (new_name(252.0), new_name(253.0));
        let of = |parameters| GroundStation { id: 252, ..sent(parameters, NEW) };
        let unread_options =
            reported(&[("SYSID_MYGCS", 255.0), ("FS_GCS_ENABLE", 1.0), ("FS_GCS_TIMEOUT", 5.0)]);
        let (off, one, two) = (on(0.0), on(1.0), on(2.0));
        let (rtl, land, brake) = (four(1.0, 5.0, 16.0), four(5.0, 2.5, 16.0), four(7.0, 5.0, 0.0));
        let (goes_on, option, slow) = (four(2.0, 5.0, 16.0), four(1.0, 5.0, 2.0), four(1.0, 30.0, 16.0));
        let at = |seconds| Some(Instant::from_secs(seconds));
        let table: &[(GroundStation<'_>, bool, bool, &str)] = &[
            // (what the autopilot has, whether it catches in GUIDED, in AUTO, the text)
            (sent(&silent, NEW), false, false, "FS_GCS_ENABLE not read yet"),
            (sent(&off, OLD), false, false, "FS_GCS_ENABLE is 0"),
            (sent(&other_id, NEW), false, false, "SYSID_MYGCS is 252, expected 255"),
            (sent(&one_station, NEW), false, false, "MAV_GCS_SYSID is 252, expected 255"),
            (of(&one_station), true, true, "RTL after 5 s in GUIDED and AUTO"),
            (of(&unread_range), false, false, "MAV_GCS_SYSID_HI not read yet"),
            (of(&range), false, false, "MAV_GCS_SYSID_HI is 253, expected at most 252"),
            (GroundStation { is_sent: false, ..sent(&rtl, NEW) }, false, false, "no console holds the lease"),
            (
                GroundStation { other_at: at(91), ..sent(&rtl, NEW) },
                false,
                false,
                "another ground station sends heartbeats as 255 too",
            ),
            (
                GroundStation { other_at: at(90), ..sent(&rtl, NEW) },
                true,
                true,
                "RTL after 5 s in GUIDED and AUTO",
            ),
            (GroundStation { version: None, ..sent(&rtl, NEW) }, false, false, "version unknown"),
            (sent(&one, OLD), true, false, "RTL after 5 s in GUIDED, not AUTO"),
            (sent(&two, OLD), true, false, "RTL after 5 s in GUIDED, not AUTO"),
            (sent(&rtl, NEW), true, true, "RTL after 5 s in GUIDED and AUTO"),
            (sent(&land, NEW), true, true, "LAND after 2.5 s in GUIDED and AUTO"),
            (sent(&brake, NEW), true, true, "BRAKE after 5 s in GUIDED and AUTO"),
            (sent(&goes_on, NEW), true, false, "RTL after 5 s in GUIDED, not AUTO"),
            (sent(&option, NEW), true, false, "RTL after 5 s in GUIDED, not AUTO"),
            (sent(&unread_options, NEW), true, false, "RTL after 5 s in GUIDED, not AUTO"),
            (sent(&one, NEW), false, false, "FS_GCS_TIMEOUT unknown"),
            (sent(&slow, NEW), false, false, "FS_GCS_TIMEOUT is 30 s, expected at most 10 s"),
        ];
        for (ground, guided, auto, why) in table {
            let (in_guided, in_auto, text) = verdict(None, ground);
            assert_eq!((in_guided, in_auto), (*guided, *auto), "{text}");
            assert!(text.starts_with("no guardian answers") && text.ends_with(why), "{text}: {why}");

            let (in_guided, in_auto, text) = verdict(answer(Stance::OtherEndpoint), ground);
            assert_eq!((in_guided, in_auto), (*guided, *auto), "{text}");
            assert!(text.starts_with("the guardian is watching another") && text.ends_with(why), "{text}");

            let (in_guided, in_auto, text) = verdict(answer(Stance::Watching), ground);
            assert!(in_guided && in_auto, "the guardian catches in every mode: {text}");
            assert!(text.starts_with("the guardian watches") && text.ends_with(why), "{text}");
            assert_eq!(text.contains("loss of power"), !*guided, "{text}");

            for stance in [
                Stance::AwaitingHeartbeat,
                Stance::Braking,
                Stance::Holding,
                Stance::Ending,
                Stance::Descending,
            ] {
                let (in_guided, in_auto, text) = verdict(answer(stance), ground);
                assert!(!in_guided && !in_auto, "{stance:?} has the aircraft: {text}");
            }
        }
    }
}
