//! Which protocol flies the aircraft, and the sections of all of them. A bench reads the same sections: whatever
//! they can set, an experiment can vary.

use serde::Deserialize;
use wingbeat_agent::Coordination;
use wingbeat_wire::VehicleId;

use super::{ConfigError, FollowMe, Mbcap, Mission, Muscop, Sweep};

/// The protocols by their names in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Protocol {
    #[default]
    Muscop,
    Mbcap,
    FollowMe,
    Mission,
    Sweep,
}

/// The protocols' sections.
#[allow(missing_docs)]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProtocolKeys {
    pub mission: Mission,
    pub sweep: Sweep,
    pub mbcap: Mbcap,
    pub muscop: Muscop,
    pub follow_me: FollowMe,
}

impl ProtocolKeys {
    /// The numbers of the protocol that is asked for; the other sections do not count.
    pub(crate) fn coordination(
        &self,
        protocol: Protocol,
        me: VehicleId,
    ) -> Result<Coordination, ConfigError> {
        let mut coordination = match protocol {
            Protocol::Muscop => self.muscop.config(me)?.into(),
            Protocol::Mbcap => self.mbcap.config(me)?.into(),
            Protocol::FollowMe => self.follow_me.config(me)?.into(),
            Protocol::Mission => wingbeat_protocol::mission::Config::new(me).into(),
            Protocol::Sweep => self.sweep.config(me)?.into(),
        };
        self.apply(&mut coordination);
        Ok(coordination)
    }

    /// Overwrites what is configured. Members, formation and variant stay; limits are the protocol's to judge.
    pub fn apply(&self, coordination: &mut Coordination) {
        match coordination {
            Coordination::Mission(config) => self.mission.apply(config),
            Coordination::Sweep(config) => {
                self.mission.apply(&mut config.mission);
                self.sweep.apply(config);
            }
            Coordination::Mbcap(config) => self.mbcap.apply(config),
            Coordination::Muscop(config) => self.muscop.apply(config),
            Coordination::FollowMe(config) => self.follow_me.apply(config),
        }
    }
}
