//! The section `energy`: what is kept of the battery.

use serde::Deserialize;
use wingbeat_agent::energy::Reserve;

use super::values::{Seconds, set};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Energy {
    reserve_percent: Option<u8>,
    endurance_s: Option<Seconds>,
    wait_s: Option<Seconds>,
    cruise_m_s: Option<f64>,
}

impl Energy {
    pub(super) fn apply(&self, agent: &mut wingbeat_agent::Config) {
        let mut reserve = Reserve::default();
        set(&mut reserve.reserve_percent, self.reserve_percent);
        set(&mut reserve.wait, self.wait_s);
        set(&mut reserve.cruise_m_s, self.cruise_m_s);
        reserve.endurance = self.endurance_s.map(Into::into);
        agent.energy = Some(reserve);
    }
}
