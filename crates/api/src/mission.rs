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
}

// serde hands over a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// PUT body of a mission, and what GET returns. What a protocol does not fly of it is listed in the notes of the
/// answer ([`MissionSummary`](crate::MissionSummary)).
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
    speed: Option<&'static str>,
    take_off: Option<&'static str>,
    end: Option<&'static str>,
}

/// The flight controller flies the waypoints by its own navigation.
const OWN_MISSION: Rules = Rules {
    hold: Some("it flies through its waypoints"),
    speed: Some("it flies at the speed that it is configured for"),
    take_off: Some("it climbs straight to the height of its first waypoint"),
    end: Some("it lands at its last waypoint"),
};

/// The mission is an area: the aircraft flies lanes of its own over it.
const LANES: Rules = Rules {
    hold: Some("the waypoints are corners of the area"),
    speed: Some("it flies at the speed that it is configured for"),
    take_off: Some("it climbs straight to the height of the first corner"),
    end: Some("it lands at the end of its last lane"),
};

/// The leader commands the formation from waypoint to waypoint.
const FORMATION: Rules = Rules {
    hold: Some("the formation leaves a waypoint when all aircraft have reached it"),
    speed: Some("the formation flies at the speed that its flight controllers are configured for"),
    take_off: Some("the swarm takes off to the height of the first waypoint"),
    end: Some("the formation lands at the last waypoint"),
};

/// A protocol that is not known here.
const WAYPOINTS_ONLY: Rules = Rules {
    hold: Some("it is known to fly waypoints only"),
    speed: Some("it is known to fly waypoints only"),
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
        Self { latitude_deg, longitude_deg, height_m, hold_s: 0.0, speed_m_s: None }
    }
}

impl MissionUpload {
    /// Waypoints, and nothing beyond them.
    pub fn new(name: impl Into<String>, waypoints: Vec<MissionItem>) -> Self {
        Self { name: name.into(), waypoints, take_off_height_m: None, speed_m_s: None, end: None }
    }

    /// What the protocol does not fly of this mission: one line each, with the reason. Empty where the mission is
    /// flown as it is stated.
    pub fn notes(&self, protocol: &str) -> Vec<String> {
        let rules = rules(protocol);
        let mut notes = Vec::new();
        let mut note = |what: &dyn fmt::Display, reason: Option<&str>| {
            if let Some(reason) = reason {
                notes.push(format!("{what} not flown under {protocol}: {reason}"));
            }
        };
        if let (Some(stated_m), Some(first)) = (self.take_off_height_m, self.waypoints.first())
            && (stated_m - first.height_m).abs() >= SAME_M
        {
            note(&format_args!("take-off to {stated_m} m is"), rules.take_off);
        }
        if let Some(speed_m_s) = self.speed_m_s {
            note(&format_args!("planned speed of {speed_m_s} m/s is"), rules.speed);
        }
        let numbers = |stated: &dyn Fn(&MissionItem) -> bool| Numbers {
            stated: (1..).zip(&self.waypoints).filter(|(_, item)| stated(item)).map(|(n, _)| n).collect(),
            of: self.waypoints.len(),
        };
        let speeds = numbers(&|item| item.speed_m_s.is_some());
        if !speeds.stated.is_empty() {
            note(&format_args!("change of speed on the way to {speeds} is"), rules.speed);
        }
        let holds = numbers(&|item| item.hold_s > 0.0);
        match (holds.stated.as_slice(), self.waypoints.iter().find(|item| item.hold_s > 0.0)) {
            (&[_], Some(item)) => note(&format_args!("hold of {} s at {holds} is", item.hold_s), rules.hold),
            (&[], _) => {}
            _ => note(&format_args!("hold times at {holds} are"), rules.hold),
        }
        match self.end {
            Some(MissionEnd::Return) => note(&"return to launch at the end is", rules.end),
            Some(MissionEnd::LandAt { latitude_deg, longitude_deg }) => {
                note(&format_args!("landing at {latitude_deg:.7}, {longitude_deg:.7} is"), rules.end);
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
        assert_eq!(
            upload.notes("muscop"),
            [
                "take-off to 5 m is not flown under muscop: the swarm takes off to the height of the first waypoint",
                "planned speed of 4.5 m/s is not flown under muscop: the formation flies at the speed that its \
                 flight controllers are configured for",
                "change of speed on the way to waypoint 9 of 9 is not flown under muscop: the formation flies at \
                 the speed that its flight controllers are configured for",
                "hold of 5 s at waypoint 3 of 9 is not flown under muscop: the formation leaves a waypoint when all \
                 aircraft have reached it",
                "return to launch at the end is not flown under muscop: the formation lands at the last waypoint",
            ]
        );
        let place = MissionEnd::LandAt { latitude_deg: 39.5, longitude_deg: -0.35 };
        let land = MissionUpload { end: Some(place), ..mission() };
        let line =
            "landing at 39.5000000, -0.3500000 is not flown under mission: it lands at its last waypoint";
        assert_eq!(land.notes("mission"), [line]);
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
