//! The section `preflight`: what *Setup* asks for.

use serde::Deserialize;

use super::values::set;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Preflight {
    battery_least_percent: Option<u8>,
    allow_polygon_fence: Option<bool>,
}

impl Preflight {
    pub(super) fn apply(&self, agent: &mut wingbeat_agent::Config) {
        set(&mut agent.battery_least_percent, self.battery_least_percent);
        set(&mut agent.allow_polygon_fence, self.allow_polygon_fence);
    }
}
