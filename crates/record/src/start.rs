//! What makes an agent anew: what the first record of a log, and of every restart in it, states.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wingbeat_agent::{Config, Origin};

/// What an agent was begun with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// The program's version.
    pub version: String,
    /// The agent's version ([`crate::AGENT`]).
    pub agent: String,
    /// The aircraft's id, 16 hexadecimal digits.
    pub aircraft: String,
    /// Its name.
    pub name: String,
    /// Whether frames to and from the autopilot are signed, with a key that is not in the log.
    pub is_signed: bool,
    /// Configuration, seed, time and counters.
    pub origin: Origin,
}

impl Start {
    /// Of an agent of this program.
    pub fn new(name: &str, origin: Origin) -> Self {
        Self {
            version: crate::VERSION.into(),
            agent: crate::AGENT.into(),
            aircraft: origin.config.coordination.me().to_string(),
            name: name.into(),
            is_signed: origin.config.signing.is_some(),
            origin,
        }
    }

    /// Its text in the log.
    pub fn to_json(&self) -> String {
        // Texts, numbers and lists of both: nothing of it can fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what an agent of this program, or of an earlier one, was begun with: a key that the earlier one did not have
    /// has its default.
    ///
    /// # Errors
    /// No start, or one of a program that is too different.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let mut read: Value = serde_json::from_str(text)?;
        if let Some(config) = read.pointer_mut("/origin/config")
            && let Some(defaults) = defaults_of(config)
        {
            let stated = std::mem::replace(config, defaults);
            overlay(config, stated);
        }
        serde_json::from_value(read)
    }
}

/// Reads what a flight was set up with, by this program or an earlier one; nothing where it is none.
#[cfg(feature = "replay")]
pub(crate) fn coordination(text: &str) -> Option<wingbeat_agent::Coordination> {
    let stated = serde_json::json!({ "coordination": serde_json::from_str::<Value>(text).ok()? });
    let mut config = defaults_of(&stated)?;
    overlay(&mut config, stated);
    serde_json::from_value(config.get_mut("coordination")?.take()).ok()
}

/// A configuration of the same protocol with this program's defaults.
fn defaults_of(config: &Value) -> Option<Value> {
    use wingbeat_agent::Coordination;
    use wingbeat_protocol::{follow_me, mbcap, mission, muscop, sweep};
    use wingbeat_wire::VehicleId;
    let (name, _) = config.get("coordination")?.as_object()?.iter().next()?;
    let me = VehicleId(0);
    let coordination: Coordination = match name.as_str() {
        "Mission" => mission::Config::new(me).into(),
        "Muscop" => muscop::Config::new(me, me, 1).into(),
        "Mbcap" => mbcap::Config { me, ..mbcap::Config::mbcap_e() }.into(),
        "FollowMe" => follow_me::Config::new(me, me, 1).into(),
        "Sweep" => sweep::Config::new(me, 0, 1).into(),
        _ => return None,
    };
    serde_json::to_value(Config::new(coordination)).ok()
}

/// Puts what is stated over the defaults, key by key.
fn overlay(over: &mut Value, stated: Value) {
    match (over, stated) {
        // A variant with data is an object of one key: another variant replaces it as a whole.
        (Value::Object(defaults), Value::Object(stated))
            if stated.len() != 1 || stated.keys().all(|key| defaults.contains_key(key)) =>
        {
            for (key, value) in stated {
                match defaults.get_mut(&key) {
                    Some(default) => overlay(default, value),
                    None => drop(defaults.insert(key, value)),
                }
            }
        }
        (over, stated) => *over = stated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_agent::{Agent, Coordination};
    use wingbeat_geo::Instant;
    use wingbeat_protocol::{follow_me, mbcap, mission, muscop, sweep};
    use wingbeat_wire::VehicleId;

    fn all() -> Vec<Coordination> {
        let (me, other) = (VehicleId(u64::MAX - 1), VehicleId(3));
        let mut turning = follow_me::Config::new(me, other, 5);
        turning.turn_m_s = f64::INFINITY;
        vec![
            mission::Config::new(me).into(),
            sweep::Config::new(me, 1, 3).into(),
            mbcap::Config { me, ..mbcap::Config::mbcap() }.into(),
            mbcap::Config { me, ..mbcap::Config::mbcap_e() }.into(),
            muscop::Config::new(me, other, 9).into(),
            follow_me::Config::new(me, other, 5).into(),
            turning.into(),
        ]
    }

    #[test]
    fn every_configuration_is_read_as_it_was_written() {
        for coordination in all() {
            let mut config = Config::new(coordination);
            config.battery_least_percent = 17;
            config.separation.alarm_distance_m = 7.1 + 0.2;
            let agent = Agent::new(config, u64::MAX, Instant::from_micros(12_345)).unwrap();
            let start = Start::new("name \"with\" quotes", agent.counting_from(1 << 60).origin());
            let text = start.to_json();
            assert_eq!(Start::from_json(&text).unwrap(), start, "{text}");
        }
    }

    #[test]
    fn every_flight_is_read_as_it_was_set_up_and_one_of_an_earlier_program_has_defaults() {
        for flight in all() {
            let text = serde_json::to_string(&flight).unwrap();
            assert_eq!(coordination(&text), Some(flight), "{text}");
        }
        let flight = Coordination::from(mission::Config::new(VehicleId(1)));
        let mut value = serde_json::to_value(&flight).unwrap();
        let removed = value["Mission"].as_object_mut().unwrap().remove("planned_speed_m_s");
        assert!(removed.is_some());
        assert_eq!(coordination(&value.to_string()), Some(flight));
        for rubbish in ["", "{}", "7", "{\"Muscop\":7}", "{\"Unknown\":{}}"] {
            assert_eq!(coordination(rubbish), None, "{rubbish}");
        }
    }

    #[test]
    fn a_key_that_an_earlier_program_did_not_have_takes_its_default() {
        let config = Config::new(mission::Config::new(VehicleId(1)));
        let start = Start::new("old", Agent::new(config, 1, Instant::ZERO).unwrap().origin());
        let mut value: Value = serde_json::from_str(&start.to_json()).unwrap();
        let config = value.pointer_mut("/origin/config").and_then(Value::as_object_mut).unwrap();
        assert!(config.remove("allow_polygon_fence").is_some());
        assert!(config.remove("energy").is_some());
        assert_eq!(Start::from_json(&value.to_string()).unwrap(), start);
        for rubbish in ["", "{}", "[1]", "{\"origin\":{\"config\":{\"coordination\":{}}}}"] {
            assert!(Start::from_json(rubbish).is_err(), "{rubbish}");
        }
    }
}
