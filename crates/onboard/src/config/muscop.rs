//! The section `muscop`: one mission, flown as a formation.

use std::path::PathBuf;

use serde::Deserialize;
use wingbeat_protocol::muscop::Config;
use wingbeat_protocol::swarm::Manner;
use wingbeat_wire::VehicleId;

use super::ConfigError;
use super::values::{Choice, Milliseconds, choose, required, set, value, vehicle};
use crate::formation::{self, Keys};

/// The keys; their meaning, unit, default and source stand in `deploy/wingbeatd.toml`.
#[allow(missing_docs)]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Muscop {
    pub master: Option<String>,
    pub aircraft: Option<u16>,
    pub alone: Option<bool>,
    pub formation: Option<String>,
    pub formation_file: Option<PathBuf>,
    pub distance_m: Option<f64>,
    pub landing_distance_m: Option<f64>,
    pub separation_m: Option<f64>,
    pub gnss_error_m: Option<f64>,
    pub wind_m_s: Option<f64>,
    pub slope_m: Option<f64>,
    pub airspeed_m_s: Option<f64>,
    pub accepts_close: Option<bool>,
    pub take_off: Option<Choice<Manner>>,
    pub landing: Option<Choice<Manner>>,
    pub send_period_ms: Option<Milliseconds>,
    pub silence_ms: Option<Milliseconds>,
    pub arrival_period_ms: Option<Milliseconds>,
    pub arrival_m: Option<f64>,
    pub arrival_height_m: Option<f64>,
    pub time_to_live_ms: Option<Milliseconds>,
    pub hold_before_landing_ms: Option<Milliseconds>,
}

impl Muscop {
    pub(super) fn config(&self, me: VehicleId) -> Result<Config, ConfigError> {
        let master = required("muscop.master", self.master.as_ref(), "the id of the aircraft that plans")?;
        let master = vehicle("muscop.master", &master)?;
        let aircraft = required("muscop.aircraft", self.aircraft.as_ref(), "how many fly, 2 to 128")?;
        if aircraft == 1 && self.alone != Some(true) {
            let expected = "2 to 128, or muscop.alone = true: one aircraft is no swarm";
            return Err(value("muscop.aircraft", &aircraft, expected));
        }
        let mut config = Config::new(me, master, aircraft.into());
        self.apply(&mut config);
        let swarm = &mut config.swarm;
        if self.landing_distance_m.is_none() {
            swarm.landing_distance_m = swarm.default_landing_distance_m();
        }
        let keys = Keys { formation: "muscop.formation", formation_file: "muscop.formation_file" };
        let positions = self.formation_file.as_deref().filter(|path| !path.as_os_str().is_empty());
        (swarm.layout, swarm.offsets) =
            formation::choose(&keys, self.formation.as_deref(), positions, swarm.aircraft, swarm.distance_m)?;
        Ok(config)
    }

    /// Overwrites what is configured, the formation and the members excepted.
    pub fn apply(&self, config: &mut Config) {
        let swarm = &mut config.swarm;
        set(&mut swarm.distance_m, self.distance_m);
        set(&mut swarm.landing_distance_m, self.landing_distance_m);
        set(&mut swarm.separation_m, self.separation_m);
        set(&mut swarm.surroundings.gnss_error_m, self.gnss_error_m);
        set(&mut swarm.surroundings.wind_m_s, self.wind_m_s);
        set(&mut swarm.surroundings.slope_m, self.slope_m);
        swarm.airspeed_m_s = self.airspeed_m_s.or(swarm.airspeed_m_s);
        set(&mut swarm.accepts_close, self.accepts_close);
        choose(&mut swarm.take_off, self.take_off);
        choose(&mut swarm.landing, self.landing);
        set(&mut swarm.send_period, self.send_period_ms);
        set(&mut swarm.silence, self.silence_ms);
        set(&mut swarm.arrival_period, self.arrival_period_ms);
        set(&mut swarm.arrival_m, self.arrival_m);
        swarm.arrival_height_m = self.arrival_height_m.or(swarm.arrival_height_m);
        set(&mut swarm.time_to_live, self.time_to_live_ms);
        set(&mut swarm.hold_before_landing, self.hold_before_landing_ms);
    }
}
