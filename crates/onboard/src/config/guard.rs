//! The section `guard`: the guardian, which reads it, the section `autopilot`, and of `energy` when to land.

use std::{path::PathBuf, time::Duration};

use serde::Deserialize;
use wingbeat_agent::Signing;
use wingbeat_agent::energy::Reserve;
use wingbeat_agent::guardian::{Config, Then, fingerprint};
use wingbeat_link::Endpoint;

use super::ConfigError;
use super::energy::LandBelow;
use super::values::{Choice, Milliseconds, choose, set, value};
use crate::guard_process::{DEFAULT_SOCKET, HOLD_S, SILENCE_MS, Settings};

/// The kernel's bound on the path of a socket, less its final zero, bytes.
const SOCKET_MAX: usize = 107;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Guard {
    socket: Option<PathBuf>,
    silence_ms: Option<Milliseconds>,
    hold_s: Option<u64>,
    then: Option<Choice<Then>>,
}

impl Guard {
    pub(super) fn settings(
        self,
        endpoint: Endpoint,
        signing: Option<Signing>,
        land_below: LandBelow,
    ) -> Result<Settings, ConfigError> {
        let socket = self.socket.unwrap_or_else(|| DEFAULT_SOCKET.into());
        if !socket.is_absolute() || socket.as_os_str().len() > SOCKET_MAX {
            let expected = format!("an absolute path of at most {SOCKET_MAX} bytes");
            return Err(value("guard.socket", &socket.display(), expected));
        }
        let mut guardian = Config {
            silence: Duration::from_millis(SILENCE_MS),
            hold: Duration::from_secs(self.hold_s.unwrap_or(HOLD_S)),
            then: Then::default(),
            land_below_mv: 0,
            below_for_s: Reserve::default().below_for_s,
            other_batteries: 0,
            endpoint: fingerprint(&endpoint.to_string()),
            signing,
        };
        set(&mut guardian.silence, self.silence_ms);
        choose(&mut guardian.then, self.then);
        land_below.apply(&mut guardian)?;
        guardian.check()?;
        Ok(Settings { endpoint, socket, guardian })
    }
}
