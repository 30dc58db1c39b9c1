//! The section `security`: the keys of the datagrams between aircraft.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use wingbeat_keys::{Enrolled, Held, Store};
use wingbeat_wire::VehicleId;

use super::values::value;
use super::{ConfigError, Layers};
use crate::keys::Keys;

/// Where the aircraft's files are unless the configuration states it: the state directory of its unit.
const SECRET_KEY_FILE: &str = "/var/lib/wingbeat/aircraft.key";
const BUNDLE_FILE: &str = "/var/lib/wingbeat/fleet.bundle";

/// Returns whether files that may be unusable ask for keys, as far as they can be read: they name a file of keys
/// anywhere, have a section `security` or one that is likely to mean it and do not ask for insecure flight, or do not
/// ask for that where this aircraft has a key.
pub(super) fn asks_for_keys(present: &Layers) -> bool {
    let names_keys = ["secret_key_file", "bundle_file"].iter().any(|name| {
        present.mentions(name) || present.stated(SECTION, name).is_some_and(|value| !value.is_empty())
    });
    let has_section = present.has_section(SECTION) || present.has_section_like(SECTION);
    names_keys || ((has_section || Path::new(SECRET_KEY_FILE).exists()) && !present.is_insecure())
}

const SECTION: &str = "security";

impl Layers {
    /// Whether they ask for flight without keys.
    pub(super) fn is_insecure(&self) -> bool {
        self.stated(SECTION, "insecure").is_some_and(|value| value == "true")
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Security {
    insecure: Option<bool>,
    secret_key_file: Option<PathBuf>,
    bundle_file: Option<PathBuf>,
    clocks_are_set: Option<bool>,
}

impl Security {
    /// Where the keys of the aircraft `me` are.
    pub(super) fn store(&self, me: VehicleId) -> Store {
        let file = |path: &Option<PathBuf>, default| path.as_deref().unwrap_or(Path::new(default)).to_owned();
        let secret = file(&self.secret_key_file, SECRET_KEY_FILE);
        Store::of_aircraft(me, secret, file(&self.bundle_file, BUNDLE_FILE))
    }

    /// Reads the files.
    pub(super) fn keys(&self, me: VehicleId) -> Result<(Keys, Option<Enrolled>), ConfigError> {
        if self.insecure.unwrap_or(false) {
            return match (&self.secret_key_file, &self.bundle_file) {
                (None, None) => Ok((Keys::insecure(), None)),
                _ => Err(value("security.insecure", &"true and files of keys", "one of the two")),
            };
        }
        let store = self.store(me);
        let Held { keys, terms } = store.read().map_err(|unusable| {
            let expected = format!(
                "{} (wingbeatd enrol), or security.insecure = true to fly without keys",
                unusable.refused.expected
            );
            value(unusable.key, &unusable.refused.found, expected)
        })?;
        Ok((keys, Some(Enrolled { store, terms })))
    }

    pub(super) fn apply(&self, agent: &mut wingbeat_agent::Config) {
        agent.clocks_are_set = self.clocks_are_set.unwrap_or(agent.clocks_are_set);
    }
}
