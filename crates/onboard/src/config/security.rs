//! The section `security`: the keys of the datagrams between aircraft.

use std::path::PathBuf;

use serde::Deserialize;
use wingbeat_wire::VehicleId;

use super::ConfigError;
use super::values::value;
use crate::keys::{self, Keys};

const EXPECTED: &str =
    "security.secret_key_file, security.fleet_key_file and security.roster_file, or security.insecure = true";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Security {
    insecure: Option<bool>,
    secret_key_file: Option<PathBuf>,
    fleet_key_file: Option<PathBuf>,
    roster_file: Option<PathBuf>,
    clocks_are_set: Option<bool>,
}

impl Security {
    /// Reads the files.
    pub(super) fn keys(&self, me: VehicleId) -> Result<Keys, ConfigError> {
        let files = [&self.secret_key_file, &self.fleet_key_file, &self.roster_file];
        let [secret, fleet, roster] =
            files.map(|path| path.as_deref().filter(|path| !path.as_os_str().is_empty()));
        match (self.insecure.unwrap_or(false), secret, fleet, roster) {
            (true, None, None, None) => Ok(Keys::insecure()),
            (true, ..) => Err(value("security.insecure", &"true and files of keys", "one of the two")),
            (false, Some(secret), Some(fleet), Some(roster)) => keys::read(me, secret, fleet, roster)
                .map_err(|unusable| value(unusable.key, &unusable.refused.found, unusable.refused.expected)),
            (false, None, ..) => Err(value("security.secret_key_file", &"none", EXPECTED)),
            (false, _, None, _) => Err(value("security.fleet_key_file", &"none", EXPECTED)),
            (false, _, _, None) => Err(value("security.roster_file", &"none", EXPECTED)),
        }
    }

    pub(super) fn apply(&self, agent: &mut wingbeat_agent::Config) {
        agent.clocks_are_set = self.clocks_are_set.unwrap_or(agent.clocks_are_set);
    }
}
