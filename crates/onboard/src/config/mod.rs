//! The daemon's configuration: TOML files, overridden by the environment and by flags. A module per section; what
//! a key means, its unit, default, range and source stand in `deploy/wingbeatd.toml` alone.
//!
//! Each file is read strictly, by `toml`, which refuses unknown keys and wrong types and shows the line; then all
//! are merged with the overrides by `config` ([`Layers`]), which is lenient about types and knows no lines. The
//! limits of numbers are judged by the crate that uses them. Either way a mistake is one message that names the key,
//! what was found and what was expected, and nothing is flown.

mod autopilot;
mod clock;
mod energy;
mod fence;
mod follow_me;
mod gateway;
mod guard;
mod http;
pub mod kept;
mod layers;
mod log;
mod mbcap;
mod mission;
mod muscop;
mod preflight;
mod protocols;
mod radio;
mod remote_id;
pub mod schema;
mod security;
mod separation;
mod sweep;
#[cfg(test)]
mod tests;
mod values;

#[cfg(test)]
use std::path::Path;

use serde::Deserialize;
use wingbeat_keys::Store;
use wingbeat_radio::UdpConfig;
use wingbeat_wire::VehicleId;

use self::{
    autopilot::Autopilot,
    clock::Clock,
    energy::{Energy, LandBelow},
    fence::Fence,
    gateway::Gateway,
    guard::Guard,
    http::Http,
    log::Log,
    preflight::Preflight,
    radio::Radio,
    remote_id::RemoteId,
    security::Security,
    separation::Separation,
    values::{mac_address, value},
};
pub(crate) use self::{fence::copy_fence, protocols::Protocol, values::vehicle};
pub use self::{
    follow_me::FollowMe,
    layers::{Flags, Layers},
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
/// The longest name of an aircraft, characters.
const NAME_MAX: usize = 64;

/// Why a configuration is not taken: one line, or the lines that show the position in the file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: found {found}, expected {expected}")]
    File {
        /// Path of the file.
        path: String,
        /// The value or problem that was found.
        found: String,
        /// What is expected there.
        expected: String,
    },
    /// The file is not this configuration.
    #[error("{path}: {message}")]
    Toml {
        /// Path of the file.
        path: String,
        /// Line, caret, found and expected.
        message: String,
    },
    /// A variable of the environment, or a flag, does not fit.
    #[error("{0}")]
    Override(String),
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
    /// The present files cannot be used, and the kept ones may not replace them.
    #[error(
        "{error}; the configuration of the last start is not used in its place: it {less}; cure: correct the present files, or \
         remove configuration.toml from the state directory"
    )]
    LessSecure {
        /// The mistake in the present files.
        error: Box<ConfigError>,
        /// The respect in which the kept files are less secure.
        less: &'static str,
    },
    /// One of the two, with the file, variable or flag that has the key.
    #[error("{place}: {error}")]
    Placed {
        /// As [`Layers::place`] gives it.
        place: String,
        /// The mistake.
        error: Box<ConfigError>,
    },
}

impl ConfigError {
    /// With the place of its key.
    fn placed(self, layers: &Layers) -> Self {
        match self {
            Self::Value { .. } | Self::Number(_) => {
                let text = self.to_string();
                let key = text.split_once(':').map_or("", |(key, _)| key);
                Self::Placed { place: layers.place(key), error: Box::new(self) }
            }
            Self::File { .. }
            | Self::Toml { .. }
            | Self::Override(_)
            | Self::Placed { .. }
            | Self::LessSecure { .. } => self,
        }
    }

    /// Whether it is a mistake in a value of this section.
    fn is_of(&self, section: &str) -> bool {
        match self {
            Self::Value { key, .. } => key.split('.').next() == Some(section),
            Self::Placed { error, .. } | Self::LessSecure { error, .. } => error.is_of(section),
            Self::File { .. } | Self::Toml { .. } | Self::Override(_) | Self::Number(_) => false,
        }
    }
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
    #[serde(default)]
    autopilot: Autopilot,
    #[serde(default)]
    radio: Radio,
    #[serde(default)]
    security: Security,
    #[serde(default)]
    clock: Clock,
    #[serde(default)]
    remote_id: RemoteId,
    #[serde(default)]
    http: Http,
    #[serde(default)]
    gateway: Gateway,
    #[serde(default)]
    log: Log,
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
    #[serde(default)]
    autopilot: Autopilot,
    #[serde(default)]
    energy: LandBelow,
    #[serde(default)]
    guard: Guard,
}

/// What enrolment reads of the same file: which aircraft this is, and where its keys are.
#[derive(Clone, Debug, Deserialize)]
struct EnrolmentFile {
    id: Option<String>,
    #[serde(default)]
    radio: Radio,
    #[serde(default)]
    security: Security,
}

/// Reads what is configured.
///
/// # Errors
/// The first mistake.
pub fn read(layers: &Layers) -> Result<Settings, ConfigError> {
    read_with(layers, &mac_address)
}

/// As [`read`]; `mac_address` answers for an interface.
///
/// # Errors
/// The first mistake.
pub fn read_with(
    layers: &Layers,
    mac_address: &dyn Fn(&str) -> Result<u64, String>,
) -> Result<Settings, ConfigError> {
    let mut file: File = layers.merged()?;
    let formations = [&mut file.muscop.formation_file, &mut file.follow_me.formation_file];
    for positions in formations.into_iter().flatten().filter(|path| !path.as_os_str().is_empty()) {
        // Relative to the configuration.
        *positions = layers.folder().join(&positions);
    }
    file.settings(mac_address).map_err(|error| error.placed(layers))
}

/// Reads what the guardian needs of what is configured.
///
/// # Errors
/// The first mistake in `autopilot`, `guard` or what `energy` states of landing, or a file that is no TOML.
pub fn read_guard(layers: &Layers) -> Result<guard_process::Settings, ConfigError> {
    let file: GuardFile = layers.merged()?;
    let settings = || file.guard.settings(file.autopilot.endpoint()?, file.autopilot.signing()?, file.energy);
    settings().map_err(|error| error.placed(layers))
}

/// Reads where the keys of this aircraft are, whatever else is configured.
///
/// # Errors
/// The first mistake in `id`, `radio` or `security`, or a file that is no TOML.
pub fn read_store(layers: &Layers) -> Result<Store, ConfigError> {
    let EnrolmentFile { id, radio, security } = layers.merged()?;
    let me = me(id.as_deref(), radio.interface.as_deref(), &mac_address);
    Ok(security.store(me.map_err(|error| error.placed(layers))?))
}

/// The configured id, else the radio's MAC address.
fn me(
    id: Option<&str>,
    interface: Option<&str>,
    mac_address: &dyn Fn(&str) -> Result<u64, String>,
) -> Result<VehicleId, ConfigError> {
    match (id, interface) {
        (Some(id), _) => vehicle("id", id),
        (None, Some(interface)) => mac_address(interface).map(VehicleId).map_err(|found| {
            value(
                "id",
                &format!("none, and {found}"),
                "16 hexadecimal digits, or a radio.interface that has a MAC address; cure: set id, or correct radio.interface (ip link)",
            )
        }),
        (None, None) => {
            Err(value("id", &"none, and no radio.interface", "16 hexadecimal digits, or radio.interface"))
        }
    }
}

impl File {
    fn settings(self, mac_address: &dyn Fn(&str) -> Result<u64, String>) -> Result<Settings, ConfigError> {
        let me = me(self.id.as_deref(), self.radio.interface.as_deref(), mac_address)?;
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
        self.energy.apply(&mut agent)?;
        self.separation.apply(&mut agent.separation);
        self.security.apply(&mut agent);
        agent.remote_id = self.remote_id.settings()?;
        let name = self.name.unwrap_or_else(|| format!("uav-{:04x}", me.0 & 0xffff));
        if name.is_empty() || name.chars().count() > NAME_MAX || name.chars().any(char::is_control) {
            let expected = format!("1 to {NAME_MAX} characters without control characters");
            return Err(value("name", &format!("{name:?}"), expected));
        }
        let autopilot = self.autopilot.endpoint()?;
        let guard = self.guard.settings(autopilot.clone(), None, self.energy.land_below())?;
        let http = self.http.settings()?;
        let hosts = self.http.hosts()?;
        let frequency_mhz = self.radio.frequency_mhz()?;
        let link_probe_period = self.radio.link_probe_period()?;
        let radio = self.radio.settings()?;
        let gateway = self.gateway.settings()?;
        let log = self.log.settings()?;
        let chrony_socket = self.clock.chrony_socket()?;
        // The agent judges its own numbers; here it is only asked, and flies nothing.
        wingbeat_agent::Agent::new(agent.clone(), 0, wingbeat_geo::Instant::ZERO)?;
        let guard = Some(guard.socket);
        let protocols = Box::new(keys);
        let (keys, enrolled) = self.security.keys(me)?;
        Ok(Settings {
            daemon: Config {
                name,
                autopilot,
                http,
                hosts,
                agent,
                protocols,
                gateway,
                guard,
                keys,
                enrolled,
                configuration_fault: None,
                link_probe_period,
                log,
                chrony_socket,
                state: None,
                seed: 0,
            },
            radio,
            frequency_mhz,
        })
    }
}
