//! The section `follow_me` of the configuration.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use wingbeat_protocol::follow_me;
use wingbeat_wire::VehicleId;

use super::{ConfigError, Fence, length, quoted, value, vehicle};
use crate::formation::{self, Keys};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FollowMe {
    leader: String,
    aircraft: u16,
    formation: Option<String>,
    pub(super) formation_file: Option<PathBuf>,
    distance_m: Option<f64>,
    height_m: Option<f64>,
    refresh_ms: Option<u64>,
    turn_m_s: Option<f64>,
    leader_timeout_s: Option<f64>,
    leader_lost: Option<String>,
    follows_again: Option<bool>,
    landing: Option<String>,
    landing_distance_m: Option<f64>,
    accepts_close: Option<bool>,
    hold_before_landing_ms: Option<u64>,
}

impl FollowMe {
    pub(super) fn settings(&self, me: VehicleId, fence: &Fence) -> Result<follow_me::Config, ConfigError> {
        let leader = vehicle("follow_me.leader", &self.leader)?;
        let mut config = follow_me::Config::new(me, leader, usize::from(self.aircraft));
        let swarm = &mut config.swarm;
        for (target, key, found) in [
            (&mut swarm.distance_m, "follow_me.distance_m", self.distance_m),
            (&mut swarm.landing_distance_m, "follow_me.landing_distance_m", self.landing_distance_m),
            (&mut config.height_m, "follow_me.height_m", self.height_m),
            (&mut swarm.height_least_m, "fence.height_least_m", fence.height_least_m),
            (&mut swarm.height_most_m, "fence.height_most_m", fence.height_most_m),
            (&mut swarm.distance_most_m, "fence.distance_most_m", fence.distance_most_m),
        ] {
            length(target, key, found)?;
        }
        let keys = Keys { formation: "follow_me.formation", formation_file: "follow_me.formation_file" };
        let places = self.formation_file.as_deref().filter(|path| !path.as_os_str().is_empty());
        (swarm.layout, swarm.offsets) =
            formation::choose(&keys, self.formation.as_deref(), places, swarm.aircraft, swarm.distance_m)?;
        for (target, key, found, (least_ms, most_ms)) in [
            (&mut config.refresh, "follow_me.refresh_ms", self.refresh_ms, (100, 5_000)),
            (
                &mut swarm.hold_before_landing,
                "follow_me.hold_before_landing_ms",
                self.hold_before_landing_ms,
                (0, 3_600_000),
            ),
        ] {
            let Some(found) = found else { continue };
            if !(least_ms..=most_ms).contains(&found) {
                return Err(value(key, &found, format!("{least_ms} to {most_ms} ms")));
            }
            *target = Duration::from_millis(found);
        }
        if let Some(found) = self.turn_m_s {
            if !(0.1..=20.0).contains(&found) {
                return Err(value("follow_me.turn_m_s", &found, "0.1 to 20 m/s"));
            }
            config.turn_m_s = found;
        }
        if let Some(found) = self.leader_timeout_s {
            if !(0.2..=60.0).contains(&found) {
                return Err(value("follow_me.leader_timeout_s", &found, "0.2 to 60 s"));
            }
            config.leader_timeout = Duration::from_millis((found * 1e3) as u64);
        }
        if let Some(word) = &self.leader_lost {
            config.leader_lost = word
                .parse()
                .map_err(|e: follow_me::UnknownWord| quoted("follow_me.leader_lost", word, e.expected))?;
        }
        if let Some(word) = &self.landing {
            config.landing = word
                .parse()
                .map_err(|e: follow_me::UnknownWord| quoted("follow_me.landing", word, e.expected))?;
        }
        config.follows_again = self.follows_again.unwrap_or(config.follows_again);
        config.accepts_close = self.accepts_close.unwrap_or(config.accepts_close);
        Ok(config)
    }
}
