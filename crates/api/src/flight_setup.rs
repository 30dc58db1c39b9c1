//! How aircraft are to fly: the keys of their configuration that an operator sets over HTTP.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A protocol, by its name in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlightProtocol {
    /// A swarm in formation flies one mission.
    Muscop,
    /// Each flies its own mission and gives way to others.
    Mbcap,
    /// A formation follows an aircraft that a pilot flies.
    FollowMe,
    /// Each flies its own mission, and nothing keeps them apart.
    Mission,
    /// Each searches its strip of an area.
    Sweep,
}

impl FlightProtocol {
    /// Its name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Muscop => "muscop",
            Self::Mbcap => "mbcap",
            Self::FollowMe => "follow_me",
            Self::Mission => "mission",
            Self::Sweep => "sweep",
        }
    }
}

/// A set-up of the flight: what is stated replaces the aircraft's configuration, what is absent stays as configured there. Every key is
/// also a key of the protocol's section of the configuration, but for `leader` (there `master` or `leader`) and `speed_m_s`
/// (`planned_speed_m_s`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FlightSetup {
    /// The protocol.
    pub protocol: FlightProtocol,
    /// MBCAP: `mbcap-e`, or `mbcap` as published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// MUSCOP: the aircraft that plans; FollowMe: the one that a pilot flies. 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// MUSCOP and FollowMe: how many aircraft fly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 2, maximum = 128)]
    pub aircraft: Option<u16>,
    /// MUSCOP and FollowMe: the formation's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formation: Option<String>,
    /// MUSCOP and FollowMe: distance between slots in flight, metres.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance_m: Option<f64>,
    /// MUSCOP and FollowMe: distance between slots when landing, metres.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing_distance_m: Option<f64>,
    /// FollowMe: height above home at which the followers gather, metres.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height_m: Option<f64>,
    /// MBCAP, Mission and Sweep: speed along the legs, metres per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_m_s: Option<f64>,
    /// MUSCOP: `sequential` or `simultaneous`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take_off: Option<String>,
    /// MUSCOP: `sequential` or `simultaneous`; FollowMe: `in_place` or `formation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing: Option<String>,
}

impl FlightSetup {
    /// Only the protocol.
    #[must_use]
    pub fn new(protocol: FlightProtocol) -> Self {
        Self {
            protocol,
            variant: None,
            leader: None,
            aircraft: None,
            formation: None,
            distance_m: None,
            landing_distance_m: None,
            height_m: None,
            speed_m_s: None,
            take_off: None,
            landing: None,
        }
    }

    /// Each key that is stated, but for the protocol, and its value as a text.
    #[must_use]
    pub fn stated(&self) -> Vec<(&'static str, String)> {
        let number = |value: Option<f64>| value.map(|value| value.to_string());
        let all = [
            ("variant", self.variant.clone()),
            ("leader", self.leader.clone()),
            ("aircraft", self.aircraft.map(|count| count.to_string())),
            ("formation", self.formation.clone()),
            ("distance_m", number(self.distance_m)),
            ("landing_distance_m", number(self.landing_distance_m)),
            ("height_m", number(self.height_m)),
            ("speed_m_s", number(self.speed_m_s)),
            ("take_off", self.take_off.clone()),
            ("landing", self.landing.clone()),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }

    /// What the other has otherwise, a line for each key, this one's value first.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let all = |setup: &Self| {
            let mut all = setup.stated();
            all.insert(0, ("protocol", setup.protocol.name().to_owned()));
            all
        };
        let (own, others) = (all(self), all(other));
        let of = |key: &str, list: &[(&'static str, String)]| {
            list.iter().find(|(one, _)| *one == key).map(|(_, value)| value.clone())
        };
        if self.protocol != other.protocol {
            return vec![format!("protocol: {}, not {}", self.protocol.name(), other.protocol.name())];
        }
        own.iter()
            .filter_map(|(key, value)| {
                let expected = of(key, &others)?;
                (expected != *value).then(|| format!("{key}: {value}, not {expected}"))
            })
            .collect()
    }
}

impl std::fmt::Display for FlightSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.protocol.name())?;
        for (key, value) in self.stated() {
            write!(f, ", {key} {value}")?;
        }
        Ok(())
    }
}

/// Where a set-up is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlightSetupSource {
    /// The aircraft's configuration.
    Configuration,
    /// An operator, over HTTP.
    Operator,
}

/// What an aircraft is set up with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlightSetupNow {
    /// Where it is from.
    pub source: FlightSetupSource,
    /// Every key that the protocol has, with its value.
    pub setup: FlightSetup,
}

/// What an aircraft is set up with, and what it can be set up with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlightSetupState {
    /// Where it is from.
    pub source: FlightSetupSource,
    /// Every key that the protocol has, with its value.
    pub setup: FlightSetup,
    /// The protocols that can be set, each with its keys.
    pub choices: Vec<FlightSetupChoice>,
    /// Why a set-up that was kept over a restart is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A protocol that can be set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlightSetupChoice {
    /// The protocol.
    pub protocol: FlightProtocol,
    /// The keys that it has.
    pub keys: Vec<FlightSetupKey>,
}

/// A key, and what its value may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlightSetupKey {
    /// Its name; its unit is the last word of it.
    pub key: String,
    /// The names that it may have; empty where it is a number or an aircraft's id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// The least value of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// The greatest value of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
}

/// PUT body: a set-up for many aircraft.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetFlightSetupWrite {
    /// Ids; empty for every aircraft.
    pub vehicles: Vec<String>,
    /// What each is set up with; null for its own configuration.
    pub setup: Option<FlightSetup>,
}

/// The set-up of one aircraft.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VehicleFlightSetup {
    /// The aircraft's id.
    pub id: String,
    /// What it answers; absent where it does not answer, or refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<FlightSetupState>,
    /// Why it does not answer, or what it refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What it has otherwise than most aircraft of the answer, a line for each key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

/// The set-ups of the aircraft.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FleetFlightSetups {
    /// Each aircraft that was asked.
    pub vehicles: Vec<VehicleFlightSetup>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_named_with_those_that_there_are() {
        let read = |text: &str| serde_json::from_str::<FlightSetup>(text).map_err(|error| error.to_string());
        let setup = read(r#"{"protocol":"muscop","formation":"wedge","distance_m":20}"#).unwrap();
        assert_eq!(setup.to_string(), "muscop, formation wedge, distance_m 20");
        for (text, words) in [
            (
                r#"{"protocol":"muscop","spacing_m":20}"#,
                "unknown field `spacing_m`, expected one of `protocol`",
            ),
            (r#"{"protocol":"chaos"}"#, "unknown variant `chaos`, expected one of `muscop`"),
            (r#"{"formation":"wedge"}"#, "missing field `protocol`"),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn what_differs_is_a_line_for_each_key() {
        let wedge = FlightSetup {
            formation: Some("wedge".into()),
            distance_m: Some(20.0),
            ..FlightSetup::new(FlightProtocol::Muscop)
        };
        let line = FlightSetup { formation: Some("linear".into()), ..wedge.clone() };
        assert_eq!(wedge.differences(&wedge), Vec::<String>::new());
        assert_eq!(wedge.differences(&line), ["formation: wedge, not linear"]);
        let alone = FlightSetup::new(FlightProtocol::Mission);
        assert_eq!(wedge.differences(&alone), ["protocol: muscop, not mission"]);
    }
}
