//! The section `autopilot`: the line to the flight controller and whose frames are accepted on it.

use std::path::PathBuf;

use serde::Deserialize;
use wingbeat_agent::Signing;
use wingbeat_link::{Endpoint, EndpointError};

use super::ConfigError;
use super::values::{Milliseconds, set, value};
use crate::signing;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Autopilot {
    endpoint: Option<String>,
    system_id: Option<u8>,
    position_interval_ms: Option<Milliseconds>,
    signing_key_file: Option<PathBuf>,
    signing_link_id: Option<u8>,
    signing_setup: Option<bool>,
    ground_station_system_id: Option<u8>,
}

impl Autopilot {
    pub(super) fn endpoint(&self) -> Result<Endpoint, ConfigError> {
        let Some(endpoint) = &self.endpoint else {
            let expected = "the line to the flight controller, for example \"serial:/dev/ttyAMA0:921600\"";
            return Err(value("autopilot.endpoint", &"nothing", expected));
        };
        endpoint.parse().map_err(|error: EndpointError| {
            let found = format!("\"{}\" ({})", error.found, error.problem);
            value("autopilot.endpoint", &found, error.expected)
        })
    }

    pub(super) fn signing(&self) -> Result<Option<Signing>, ConfigError> {
        let setup = self.signing_setup.unwrap_or(false);
        let Some(path) = &self.signing_key_file else {
            if setup {
                let expected = "autopilot.signing_key_file as well";
                return Err(value("autopilot.signing_setup", &"true and no key", expected));
            }
            return Ok(None);
        };
        let key = signing::read_key(path)
            .map_err(|refused| value("autopilot.signing_key_file", &refused.found, refused.expected))?;
        Ok(Some(Signing { key, link_id: self.signing_link_id.unwrap_or(0), setup }))
    }

    pub(super) fn apply(&self, agent: &mut wingbeat_agent::Config) -> Result<(), ConfigError> {
        set(&mut agent.position_interval, self.position_interval_ms);
        agent.autopilot_system_id = self.system_id;
        set(&mut agent.ground_station_system_id, self.ground_station_system_id);
        agent.signing = self.signing()?;
        Ok(())
    }
}
