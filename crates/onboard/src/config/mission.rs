//! The section `mission`: a mission of the aircraft's own; the sweep flies by it too.

use serde::Deserialize;
use wingbeat_protocol::mission::Config;

use super::values::{Milliseconds, set};

/// The keys; their meaning, unit, default and source stand in `deploy/wingbeatd.toml`.
#[allow(missing_docs)]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mission {
    pub planned_speed_m_s: Option<f64>,
    pub hold_before_landing_ms: Option<Milliseconds>,
}

impl Mission {
    /// Overwrites what is configured.
    pub fn apply(&self, config: &mut Config) {
        set(&mut config.planned_speed_m_s, self.planned_speed_m_s);
        set(&mut config.hold_before_landing, self.hold_before_landing_ms);
    }
}
