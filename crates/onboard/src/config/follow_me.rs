//! The section `follow_me`: a formation that follows an aircraft flown by a pilot.

use std::path::PathBuf;

use serde::Deserialize;
use wingbeat_protocol::follow_me::{Config, Landing, LeaderLost};
use wingbeat_wire::VehicleId;

use super::ConfigError;
use super::values::{Choice, Milliseconds, Seconds, choose, required, set, vehicle};
use crate::formation::{self, Keys};

/// The keys; their meaning, unit, default and source stand in `deploy/wingbeatd.toml`.
#[allow(missing_docs)]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowMe {
    pub leader: Option<String>,
    pub aircraft: Option<u16>,
    pub formation: Option<String>,
    pub formation_file: Option<PathBuf>,
    pub distance_m: Option<f64>,
    pub height_m: Option<f64>,
    pub refresh_ms: Option<Milliseconds>,
    pub lands_below_percent: Option<f64>,
    pub turn_m_s: Option<f64>,
    pub leader_timeout_s: Option<Seconds>,
    pub leader_lost: Option<Choice<LeaderLost>>,
    pub follows_again: Option<bool>,
    pub landing: Option<Choice<Landing>>,
    pub landing_distance_m: Option<f64>,
    pub accepts_close: Option<bool>,
    pub separation_m: Option<f64>,
    pub gnss_error_m: Option<f64>,
    pub wind_m_s: Option<f64>,
    pub slope_m: Option<f64>,
    pub airspeed_m_s: Option<f64>,
    pub send_period_ms: Option<Milliseconds>,
    pub silence_ms: Option<Milliseconds>,
    pub arrival_period_ms: Option<Milliseconds>,
    pub arrival_m: Option<f64>,
    pub arrival_height_m: Option<f64>,
    pub time_to_live_ms: Option<Milliseconds>,
    pub hold_before_landing_ms: Option<Milliseconds>,
}

impl FollowMe {
    pub(super) fn config(&self, me: VehicleId) -> Result<Config, ConfigError> {
        let leader = required("follow_me.leader", self.leader.as_ref(), "the id of the piloted aircraft")?;
        let leader = vehicle("follow_me.leader", &leader)?;
        let aircraft = required("follow_me.aircraft", self.aircraft.as_ref(), "how many fly, 2 to 128")?;
        let mut config = Config::new(me, leader, aircraft.into());
        self.apply(&mut config);
        let swarm = &mut config.swarm;
        if self.landing_distance_m.is_none() {
            swarm.landing_distance_m = swarm.default_landing_distance_m();
        }
        let keys = Keys { formation: "follow_me.formation", formation_file: "follow_me.formation_file" };
        let positions = self.formation_file.as_deref().filter(|path| !path.as_os_str().is_empty());
        (swarm.layout, swarm.offsets) =
            formation::choose(&keys, self.formation.as_deref(), positions, swarm.aircraft, swarm.distance_m)?;
        Ok(config)
    }

    /// Overwrites what is configured, the formation and the members excepted.
    pub fn apply(&self, config: &mut Config) {
        set(&mut config.height_m, self.height_m);
        set(&mut config.refresh, self.refresh_ms);
        set(&mut config.lands_below_percent, self.lands_below_percent);
        set(&mut config.turn_m_s, self.turn_m_s);
        if self.refresh_ms.is_some() {
            config.leader_timeout = Config::default_leader_timeout(config.refresh);
        }
        set(&mut config.leader_timeout, self.leader_timeout_s);
        choose(&mut config.leader_lost, self.leader_lost);
        set(&mut config.follows_again, self.follows_again);
        choose(&mut config.landing, self.landing);
        set(&mut config.accepts_close, self.accepts_close);
        let swarm = &mut config.swarm;
        set(&mut swarm.distance_m, self.distance_m);
        set(&mut swarm.landing_distance_m, self.landing_distance_m);
        set(&mut swarm.separation_m, self.separation_m);
        set(&mut swarm.surroundings.gnss_error_m, self.gnss_error_m);
        set(&mut swarm.surroundings.wind_m_s, self.wind_m_s);
        set(&mut swarm.surroundings.slope_m, self.slope_m);
        swarm.airspeed_m_s = self.airspeed_m_s.or(swarm.airspeed_m_s);
        set(&mut swarm.send_period, self.send_period_ms);
        set(&mut swarm.silence, self.silence_ms);
        set(&mut swarm.arrival_period, self.arrival_period_ms);
        set(&mut swarm.arrival_m, self.arrival_m);
        swarm.arrival_height_m = self.arrival_height_m.or(swarm.arrival_height_m);
        set(&mut swarm.time_to_live, self.time_to_live_ms);
        set(&mut swarm.hold_before_landing, self.hold_before_landing_ms);
    }
}
