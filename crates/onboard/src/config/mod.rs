//! The daemon's configuration: one TOML file, overridden by the environment. A module per section; what a key
//! means, its unit, default, range and source stand in `deploy/wingbeatd.toml` alone.
//!
//! The file is read twice. First strictly, by `toml`, which refuses unknown keys and wrong types and shows
//! the line; then merged with `WINGBEAT_` variables by `config` (`WINGBEAT_RADIO__PORT=14601` is
//! `radio.port`), which is lenient about types and knows no lines. The limits of numbers are judged by the crate
//! that uses them. Either way a mistake is one message that names the key, what was found and what was expected,
//! and nothing is flown.

mod autopilot;
mod energy;
mod fence;
mod follow_me;
mod gateway;
mod guard;
mod http;
mod mbcap;
mod mission;
mod muscop;
mod preflight;
mod protocols;
mod radio;
pub mod schema;
mod security;
mod separation;
mod sweep;
#[cfg(test)]
mod tests;
mod values;

use std::path::Path;

use serde::Deserialize;
use wingbeat_radio::UdpConfig;
use wingbeat_wire::VehicleId;

use self::{
    autopilot::Autopilot,
    energy::Energy,
    fence::Fence,
    gateway::Gateway,
    guard::Guard,
    http::Http,
    preflight::Preflight,
    protocols::Protocol,
    radio::Radio,
    security::Security,
    separation::Separation,
    values::{mac_address, value, vehicle},
};
pub use self::{
    follow_me::FollowMe,
    mbcap::{Mbcap, Variant},
    mission::Mission,
    muscop::Muscop,
    protocols::ProtocolKeys,
    sweep::Sweep,
    values::{Choice, Milliseconds, Seconds},
};
use crate::{Config, guard_process};

/// Path of the file unless the command line gives one.
pub const DEFAULT_PATH: &str = "/etc/wingbeat/wingbeatd.toml";
/// Nothing that a daemon is configured with is longer; a device or an endless pipe is not read to its end.
const FILE_MAX: u64 = 64 * 1024;
/// Variables with our prefix that are no keys: what a test bench sets is inherited by the daemons it starts.
const NO_KEYS: [&str; 1] = ["WINGBEAT_SITL"];
/// The longest name of an aircraft, characters.
const NAME_MAX: usize = 64;

/// Why a configuration is not taken: one line, or the lines that show the position in the file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: found {found}, expected a readable configuration file of at most {FILE_MAX} bytes")]
    File {
        /// Path of the file.
        path: String,
        /// The value or problem that was found.
        found: String,
    },
    /// The file is not this configuration.
    #[error("{path}: {message}")]
    Toml {
        /// Path of the file.
        path: String,
        /// Line, caret, found and expected.
        message: String,
    },
    /// A variable of the environment does not fit.
    #[error("environment (WINGBEAT_...): {0}")]
    Environment(String),
    /// A value that cannot be used.
    #[error("{key}: found {found}, expected {expected}")]
    Value {
        /// The key, for example `radio.port`.
        key: &'static str,
        /// The value or problem that was found.
        found: String,
        /// The range or values that are accepted.
        expected: String,
    },
    /// A number outside its limits.
    #[error(transparent)]
    Number(#[from] wingbeat_agent::ConfigError),
}

/// A configuration that can be flown.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What [`crate::start`] takes, but for the seed, which is zero here.
    pub daemon: Config,
    /// The aircraft's radio.
    pub radio: UdpConfig,
    /// Where the radio should be tuned, megahertz: for `wingbeat doctor`, which compares.
    pub frequency_mhz: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    id: Option<String>,
    name: Option<String>,
    protocol: Option<Choice<Protocol>>,
    autopilot: Autopilot,
    #[serde(default)]
    radio: Radio,
    #[serde(default)]
    security: Security,
    #[serde(default)]
    http: Http,
    #[serde(default)]
    gateway: Gateway,
    #[serde(default)]
    fence: Fence,
    #[serde(default)]
    preflight: Preflight,
    #[serde(default)]
    energy: Energy,
    #[serde(default)]
    guard: Guard,
    #[serde(default)]
    separation: Separation,
    #[serde(default)]
    mbcap: Mbcap,
    #[serde(default)]
    mission: Mission,
    #[serde(default)]
    sweep: Sweep,
    #[serde(default)]
    muscop: Muscop,
    #[serde(default)]
    follow_me: FollowMe,
}

/// What the guardian reads of the same file: it must start whatever else is wrong in it.
#[derive(Clone, Debug, Deserialize)]
struct GuardFile {
    autopilot: Autopilot,
    #[serde(default)]
    guard: Guard,
}

/// Reads the file and the process's environment.
///
/// # Errors
/// The first mistake.
pub fn read(path: &Path) -> Result<Settings, ConfigError> {
    let text = load(path)?;
    parse(&path.display().to_string(), &text, environment(), &mac_address)
}

fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
}

fn load(path: &Path) -> Result<String, ConfigError> {
    use std::io::Read as _;
    let error = |found: String| ConfigError::File { path: path.display().to_string(), found };
    let file = std::fs::File::open(path).map_err(|cause| error(cause.to_string()))?;
    let mut text = String::new();
    let length =
        file.take(FILE_MAX + 1).read_to_string(&mut text).map_err(|cause| error(cause.to_string()))?;
    if length as u64 > FILE_MAX { Err(error("a longer one".into())) } else { Ok(text) }
}

/// Reads a configuration from a text and variables. `mac_address` answers for an interface.
///
/// # Errors
/// The first mistake; `path` is the file's name in it.
pub fn parse(
    path: &str,
    text: &str,
    environment: impl IntoIterator<Item = (String, String)>,
    mac_address: &dyn Fn(&str) -> Result<u64, String>,
) -> Result<Settings, ConfigError> {
    let mut file = merged::<File>(path, text, environment)?;
    let formations = [&mut file.muscop.formation_file, &mut file.follow_me.formation_file];
    for positions in formations.into_iter().flatten().filter(|path| !path.as_os_str().is_empty()) {
        // Relative to the configuration.
        *positions = Path::new(path).parent().unwrap_or(Path::new("")).join(&positions);
    }
    file.settings(mac_address)
}

/// Reads what the guardian needs of the daemon's file and of the process's environment.
///
/// # Errors
/// The first mistake in `autopilot` or `guard`, or a file that is no TOML.
pub fn read_guard(path: &Path) -> Result<guard_process::Settings, ConfigError> {
    let file: GuardFile = merged(&path.display().to_string(), &load(path)?, environment())?;
    file.guard.settings(file.autopilot.endpoint()?, file.autopilot.signing()?)
}

/// The text strictly, or text and variables where there are any.
fn merged<T: serde::de::DeserializeOwned>(
    path: &str,
    text: &str,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<T, ConfigError> {
    let strict: T = toml::from_str(text).map_err(|error| ConfigError::Toml {
        path: path.into(),
        message: error.to_string().trim_end().into(),
    })?;
    let overrides: std::collections::BTreeMap<String, String> = environment
        .into_iter()
        .filter(|(key, _)| key.starts_with("WINGBEAT_") && !NO_KEYS.contains(&key.as_str()))
        .collect();
    if overrides.is_empty() {
        return Ok(strict);
    }
    // No `try_parsing`: it would turn an id of digits into a number and lose its zeros.
    let source = config::Environment::with_prefix("WINGBEAT")
        .prefix_separator("_")
        .separator("__")
        .source(Some(overrides.into_iter().collect()));
    config::Config::builder()
        .add_source(config::File::from_str(text, config::FileFormat::Toml))
        .add_source(source)
        .build()
        .and_then(config::Config::try_deserialize::<T>)
        // The file alone was fine.
        .map_err(|error| ConfigError::Environment(error.to_string()))
}

impl File {
    fn settings(self, mac_address: &dyn Fn(&str) -> Result<u64, String>) -> Result<Settings, ConfigError> {
        let me = self.me(mac_address)?;
        let protocol = self.protocol.map(|choice| choice.0).unwrap_or_default();
        let keys = ProtocolKeys {
            mission: self.mission,
            sweep: self.sweep,
            mbcap: self.mbcap,
            muscop: self.muscop,
            follow_me: self.follow_me,
        };
        let mut coordination = keys.coordination(protocol, me)?;
        self.fence.apply(&mut coordination);
        let mut agent = wingbeat_agent::Config::new(coordination);
        self.autopilot.apply(&mut agent)?;
        self.preflight.apply(&mut agent);
        self.energy.apply(&mut agent);
        self.separation.apply(&mut agent.separation);
        self.security.apply(&mut agent);
        let name = self.name.unwrap_or_else(|| format!("uav-{:04x}", me.0 & 0xffff));
        if name.is_empty() || name.chars().count() > NAME_MAX || name.chars().any(char::is_control) {
            let expected = format!("1 to {NAME_MAX} characters without control characters");
            return Err(value("name", &format!("{name:?}"), expected));
        }
        let autopilot = self.autopilot.endpoint()?;
        let guard = self.guard.settings(autopilot.clone(), None)?;
        let http = self.http.settings()?;
        let hosts = self.http.hosts()?;
        let frequency_mhz = self.radio.frequency_mhz()?;
        let link_probe_period = self.radio.link_probe_period()?;
        let radio = self.radio.settings()?;
        let gateway = self.gateway.settings()?;
        // The agent judges its own numbers; here it is only asked, and flies nothing.
        wingbeat_agent::Agent::new(agent.clone(), 0, wingbeat_geo::Instant::ZERO)?;
        let guard = Some(guard.socket);
        let keys = self.security.keys(me)?;
        Ok(Settings {
            daemon: Config {
                name,
                autopilot,
                http,
                hosts,
                agent,
                gateway,
                guard,
                keys,
                link_probe_period,
                state: None,
                seed: 0,
            },
            radio,
            frequency_mhz,
        })
    }

    /// The configured id, else the radio's MAC address.
    fn me(&self, mac_address: &dyn Fn(&str) -> Result<u64, String>) -> Result<VehicleId, ConfigError> {
        match (&self.id, &self.radio.interface) {
            (Some(id), _) => vehicle("id", id),
            (None, Some(interface)) => mac_address(interface).map(VehicleId).map_err(|found| {
                value(
                    "id",
                    &format!("none, and {found}"),
                    "16 hexadecimal digits, or a radio.interface that has a MAC address",
                )
            }),
            (None, None) => {
                Err(value("id", &"none, and no radio.interface", "16 hexadecimal digits, or radio.interface"))
            }
        }
    }
}
