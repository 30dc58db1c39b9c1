//! A mission as it travels over HTTP, and what each protocol flies of it.

use core::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The longest hold, seconds: ArduPilot stores it in 16 bits.
pub const HOLD_MAX_S: f64 = 65_535.0;

/// One waypoint of a mission.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MissionItem {
    /// Latitude, degrees.
    pub latitude_deg: f64,
    /// Longitude, degrees.
    pub longitude_deg: f64,
    /// Height above home, metres.
    pub height_m: f64,
    /// Time to hold at the waypoint before the flight continues, 0 to 65535 s. The flight controller counts whole
    /// seconds: a part of one is a whole one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hold_s: f64,
    /// Ground speed from the waypoint before this one on, metres per second; absent where it does not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_m_s: Option<f64>,
    /// Yaw on the way to the waypoint, degrees clockwise from north, 0 to less than 360; absent where the flight controller
    /// turns the aircraft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yaw_deg: Option<f64>,
}

/// A part of a mission besides its waypoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissionPart {
    /// Times to hold at waypoints.
    Hold,
    /// Speeds of legs.
    Speed,
    /// Yaws of legs.
    Yaw,
    /// The height at which the take-off ends, where it is not that of the first waypoint.
    TakeOff,
    /// A landing elsewhere than at the last waypoint, or a return to launch.
    End,
}

impl MissionPart {
    /// All parts.
    pub const ALL: [Self; 5] = [Self::Hold, Self::Speed, Self::Yaw, Self::TakeOff, Self::End];

    /// Its name in requests, plans and options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Speed => "speed",
            Self::Yaw => "yaw",
            Self::TakeOff => "take_off",
            Self::End => "end",
        }
    }
}

// serde hands over a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// PUT body of a mission, and what GET returns. An aircraft refuses a mission with parts that its protocol does not fly,
/// unless they are in `leave_out`; then they are listed in the notes of the answer
/// ([`MissionSummary`](crate::MissionSummary)).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MissionUpload {
    /// Name, usually of the file; at most 64 characters.
    pub name: String,
    /// Waypoints: those of the centre in a swarm, otherwise the aircraft's own. Sweep takes exactly 3, the corners of
    /// its area.
    #[schema(min_items = 2, max_items = 600)]
    pub waypoints: Vec<MissionItem>,
    /// Height above home at which the take-off ends, metres; absent where the mission states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take_off_height_m: Option<f64>,
    /// Ground speed that the mission was planned for, metres per second; absent where it states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_m_s: Option<f64>,
    /// How it ends; absent where the mission does not state it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<MissionEnd>,
    /// Parts that may be left out where the protocol does not fly them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leave_out: Vec<MissionPart>,
}

/// How a mission ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum MissionEnd {
    /// Land where the flight ends.
    Land,
    /// Land at another position.
    LandAt {
        /// Latitude, degrees.
        latitude_deg: f64,
        /// Longitude, degrees.
        longitude_deg: f64,
    },
    /// Return to launch.
    Return,
}

/// What a protocol flies of a mission besides its waypoints: for each part why it does not, or `None` where it does.
struct Rules {
    hold: Option<&'static str>,
    /// Of the first leg.
    first_speed: Option<&'static str>,
    /// Of the other legs.
    speed: Option<&'static str>,
    yaw: Option<&'static str>,
    take_off: Option<&'static str>,
    end: Option<&'static str>,
}

/// The flight controller flies the waypoints by its own navigation, with all that belongs to them.
const OWN_MISSION: Rules =
    Rules { hold: None, first_speed: None, speed: None, yaw: None, take_off: None, end: None };

/// The mission is an area: the aircraft flies lanes of its own over it.
const LANES: Rules = Rules {
    hold: Some("the waypoints are corners of the area"),
    first_speed: None,
    speed: Some("it flies all lanes at the speed of the first"),
    yaw: Some("the waypoints are corners of the area"),
    take_off: None,
    end: None,
};

/// The leader commands the formation from waypoint to waypoint.
const FORMATION: Rules = Rules {
    hold: Some("the formation leaves a waypoint when all aircraft have reached it"),
    first_speed: Some("the formation flies at the speed that its flight controllers are configured for"),
    speed: Some("the formation flies at the speed that its flight controllers are configured for"),
    yaw: Some("its flight controllers turn the aircraft"),
    take_off: Some("the swarm takes off to the height of the first waypoint"),
    end: None,
};

/// A protocol that is not known here.
const WAYPOINTS_ONLY: Rules = Rules {
    hold: Some("it is known to fly waypoints only"),
    first_speed: Some("it is known to fly waypoints only"),
    speed: Some("it is known to fly waypoints only"),
    yaw: Some("it is known to fly waypoints only"),
    take_off: Some("it is known to fly waypoints only"),
    end: Some("it is known to fly waypoints only"),
};

/// The one table of what protocols fly, by their names in the API.
fn rules(protocol: &str) -> Rules {
    match protocol {
        "mission" | "mbcap" | "mbcap-e" => OWN_MISSION,
        "sweep" => LANES,
        // FollowMe takes no mission and refuses it.
        "muscop" | "follow_me" => FORMATION,
        _ => WAYPOINTS_ONLY,
    }
}

impl MissionItem {
    /// A waypoint that is flown to and left without a hold.
    pub const fn at(latitude_deg: f64, longitude_deg: f64, height_m: f64) -> Self {
        Self { latitude_deg, longitude_deg, height_m, hold_s: 0.0, speed_m_s: None, yaw_deg: None }
    }
}

impl MissionUpload {
    /// Waypoints, and nothing beyond them.
    pub fn new(name: impl Into<String>, waypoints: Vec<MissionItem>) -> Self {
        Self {
            name: name.into(),
            waypoints,
            take_off_height_m: None,
            speed_m_s: None,
            end: None,
            leave_out: Vec::new(),
        }
    }

    /// Returns what the protocol does not fly of this mission, one line each, with the reason. The list is empty where the
    /// mission is flown as it is stated.
    pub fn notes(&self, protocol: &str) -> Vec<String> {
        self.unflown(protocol).into_iter().map(|(_, line)| line).collect()
    }

    /// Returns the parts that the protocol does not fly and that may not be left out, one line each: an aircraft refuses the
    /// mission for them.
    pub fn refusals(&self, protocol: &str) -> Vec<String> {
        let kept = |(part, line)| match part {
            Some(part) if !self.leave_out.contains(&part) => {
                Some(format!("{line} (leave it out with `leave_out`: \"{}\")", part.name()))
            }
            Some(_) | None => None,
        };
        self.unflown(protocol).into_iter().filter_map(kept).collect()
    }

    /// Returns the mission as the protocol flies it, without the parts that it does not.
    #[must_use]
    pub fn flown(&self, protocol: &str) -> Self {
        let rules = rules(protocol);
        let mut flown = self.clone();
        for (index, item) in flown.waypoints.iter_mut().enumerate() {
            if rules.hold.is_some() {
                item.hold_s = 0.0;
            }
            if (if index == 0 { rules.first_speed } else { rules.speed }).is_some() {
                item.speed_m_s = None;
            }
            if rules.yaw.is_some() {
                item.yaw_deg = None;
            }
        }
        if rules.first_speed.is_some() {
            flown.speed_m_s = None;
        }
        if rules.take_off.is_some() {
            flown.take_off_height_m = None;
        }
        if rules.end.is_some() {
            flown.end = None;
        }
        flown
    }

    /// The parts that the protocol does not fly, one line each. The planned speed is no part: ground stations write it into
    /// every file.
    fn unflown(&self, protocol: &str) -> Vec<(Option<MissionPart>, String)> {
        let rules = rules(protocol);
        let mut notes = Vec::new();
        let mut note = |part: Option<MissionPart>, what: &dyn fmt::Display, reason: Option<&str>| {
            if let Some(reason) = reason {
                notes.push((part, format!("{what} not flown under {protocol}: {reason}")));
            }
        };
        if let (Some(stated_m), Some(first)) = (self.take_off_height_m, self.waypoints.first())
            && (stated_m - first.height_m).abs() >= SAME_M
        {
            note(Some(MissionPart::TakeOff), &format_args!("take-off to {stated_m} m is"), rules.take_off);
        }
        if let Some(speed_m_s) = self.speed_m_s {
            note(None, &format_args!("planned speed of {speed_m_s} m/s is"), rules.first_speed);
        }
        let numbers = |stated: &dyn Fn(&MissionItem) -> bool| Numbers {
            stated: (1..).zip(&self.waypoints).filter(|(_, item)| stated(item)).map(|(n, _)| n).collect(),
            of: self.waypoints.len(),
        };
        let mut speeds = numbers(&|item| item.speed_m_s.is_some());
        if rules.first_speed.is_none() {
            speeds.stated.retain(|&number| number > 1);
        }
        if !speeds.stated.is_empty() {
            note(
                Some(MissionPart::Speed),
                &format_args!("change of speed on the way to {speeds} is"),
                rules.speed,
            );
        }
        let yaws = numbers(&|item| item.yaw_deg.is_some());
        if !yaws.stated.is_empty() {
            note(Some(MissionPart::Yaw), &format_args!("yaw on the way to {yaws} is"), rules.yaw);
        }
        let holds = numbers(&|item| item.hold_s > 0.0);
        match (holds.stated.as_slice(), self.waypoints.iter().find(|item| item.hold_s > 0.0)) {
            (&[_], Some(item)) => {
                note(
                    Some(MissionPart::Hold),
                    &format_args!("hold of {} s at {holds} is", item.hold_s),
                    rules.hold,
                );
            }
            (&[], _) => {}
            _ => note(Some(MissionPart::Hold), &format_args!("hold times at {holds} are"), rules.hold),
        }
        match self.end {
            Some(MissionEnd::Return) => {
                note(Some(MissionPart::End), &"return to launch at the end is", rules.end);
            }
            Some(MissionEnd::LandAt { latitude_deg, longitude_deg }) => {
                let place = format_args!("landing at {latitude_deg:.7}, {longitude_deg:.7} is");
                note(Some(MissionPart::End), &place, rules.end);
            }
            Some(MissionEnd::Land) | None => {}
        }
        notes
    }
}

/// Heights that differ by less are the same height, metres.
const SAME_M: f64 = 0.1;

/// Waypoints of a mission by number, from 1: the first few, and how many more.
struct Numbers {
    stated: Vec<usize>,
    of: usize,
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        f.write_str(if self.stated.len() == 1 { "waypoint " } else { "waypoints " })?;
        for (index, number) in self.stated.iter().take(SHOWN).enumerate() {
            write!(f, "{}{number}", if index == 0 { "" } else { ", " })?;
        }
        if let Some(more @ 1..) = self.stated.len().checked_sub(SHOWN) {
            write!(f, " and {more} more")?;
        }
        write!(f, " of {}", self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mission() -> MissionUpload {
        MissionUpload::new("square", vec![MissionItem::at(39.48, -0.34, 20.0); 9])
    }

    #[test]
    fn waypoints_alone_need_no_note_and_keep_their_json() {
        for protocol in ["mission", "mbcap", "mbcap-e", "sweep", "muscop", "follow_me", "own"] {
            let land =
                MissionUpload { end: Some(MissionEnd::Land), take_off_height_m: Some(20.0), ..mission() };
            assert_eq!((mission().notes(protocol), land.notes(protocol)), (vec![], vec![]));
        }
        let json =
            serde_json::to_string(&MissionUpload { waypoints: mission().waypoints[..1].into(), ..mission() });
        assert_eq!(
            json.unwrap(),
            r#"{"name":"square","waypoints":[{"latitude_deg":39.48,"longitude_deg":-0.34,"height_m":20.0}]}"#
        );
    }

    #[test]
    fn every_part_that_is_not_flown_has_a_line() {
        let mut upload = mission();
        upload.take_off_height_m = Some(5.0);
        upload.speed_m_s = Some(4.5);
        upload.end = Some(MissionEnd::Return);
        upload.waypoints[2].hold_s = 5.0;
        upload.waypoints[8].speed_m_s = Some(3.0);
        upload.waypoints[3].yaw_deg = Some(90.0);
        assert_eq!(
            upload.notes("muscop"),
            [
                "take-off to 5 m is not flown under muscop: the swarm takes off to the height of the first waypoint",
                "planned speed of 4.5 m/s is not flown under muscop: the formation flies at the speed that its \
                 flight controllers are configured for",
                "change of speed on the way to waypoint 9 of 9 is not flown under muscop: the formation flies at \
                 the speed that its flight controllers are configured for",
                "yaw on the way to waypoint 4 of 9 is not flown under muscop: its flight controllers turn the aircraft",
                "hold of 5 s at waypoint 3 of 9 is not flown under muscop: the formation leaves a waypoint when all \
                 aircraft have reached it",
            ]
        );
        for protocol in ["mission", "mbcap", "mbcap-e"] {
            assert_eq!(upload.notes(protocol), Vec::<String>::new());
            assert_eq!(upload.flown(protocol), upload);
        }
        assert_eq!(upload.refusals("muscop").len(), 4, "the planned speed is noted, and refuses nothing");
        assert!(upload.refusals("muscop")[3].ends_with("(leave it out with `leave_out`: \"hold\")"));
        let flown = MissionUpload { end: upload.end, ..mission() };
        assert_eq!(upload.flown("muscop"), flown);
        use MissionPart::{Hold, Speed, TakeOff, Yaw};
        upload.leave_out = vec![Hold, Speed, TakeOff];
        assert_eq!(upload.refusals("muscop").len(), 1, "the yaw");
        upload.leave_out.push(Yaw);
        assert_eq!(upload.refusals("muscop"), Vec::<String>::new());
        assert_eq!(upload.notes("sweep").len(), 3);
        let place = MissionEnd::LandAt { latitude_deg: 39.5, longitude_deg: -0.35 };
        let land = MissionUpload { end: Some(place), ..mission() };
        let line =
            "landing at 39.5000000, -0.3500000 is not flown under own: it is known to fly waypoints only";
        assert_eq!(land.notes("own"), [line]);
    }

    #[test]
    fn a_long_mission_has_short_notes() {
        let mut upload = mission();
        upload.waypoints.iter_mut().for_each(|item| item.hold_s = 1.0);
        let notes = upload.notes("muscop");
        assert!(
            notes[0].starts_with("hold times at waypoints 1, 2, 3, 4, 5 and 4 more of 9 are not"),
            "{notes:?}"
        );
        upload.waypoints[5..].iter_mut().for_each(|item| item.hold_s = 0.0);
        let notes = upload.notes("muscop");
        assert!(notes[0].starts_with("hold times at waypoints 1, 2, 3, 4, 5 of 9 are not"), "{notes:?}");
    }
}
