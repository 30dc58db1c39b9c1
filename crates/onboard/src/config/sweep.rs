//! The section `sweep`: an area, searched in parallel lanes.

use serde::Deserialize;
use wingbeat_protocol::sweep::Config;
use wingbeat_wire::VehicleId;

use super::ConfigError;
use super::values::{required, set};

/// The keys; their meaning, unit, default and source stand in `deploy/wingbeatd.toml`.
#[allow(missing_docs)]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    pub aircraft: Option<u16>,
    pub strip: Option<u16>,
    pub lane_distance_m: Option<f64>,
}

impl Sweep {
    pub(super) fn config(&self, me: VehicleId) -> Result<Config, ConfigError> {
        let aircraft = required("sweep.aircraft", self.aircraft.as_ref(), "how many share the area")?;
        let strip = required("sweep.strip", self.strip.as_ref(), "which strip is this aircraft's, from 0")?;
        Ok(Config::new(me, strip.into(), aircraft.into()))
    }

    /// Overwrites what is configured.
    pub fn apply(&self, config: &mut Config) {
        set(&mut config.lane_distance_m, self.lane_distance_m);
    }
}
