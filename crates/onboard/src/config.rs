//! The daemon's configuration: one TOML file, overridden by the environment.
//!
//! The file is read twice. First strictly, by `toml`, which refuses unknown keys and wrong types and shows
//! the line; then merged with `WINGBEAT_` variables by `config` (`WINGBEAT_RADIO__PORT=14601` is
//! `radio.port`), which is lenient about types and knows no lines. Either way a mistake is one message that
//! names the key, what was found and what was expected, and nothing is flown.

use std::{
    fmt::Display,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;
use wingbeat_agent::Coordination;
use wingbeat_agent::guardian::{self, Then};
use wingbeat_agent::separation::Thresholds;
use wingbeat_link::Endpoint;
use wingbeat_protocol::swarm::Manner;
use wingbeat_protocol::{mbcap, mission, muscop, sweep};
use wingbeat_radio::UdpConfig;
use wingbeat_wire::VehicleId;

use crate::{Config, formation, guard_process, signing};

/// Where the file is unless the command line says otherwise.
pub const DEFAULT_PATH: &str = "/etc/wingbeat/wingbeatd.toml";
/// The API's address unless configured: this machine only. The API has no authentication yet, so serving
/// it to a whole network is a decision that somebody takes, and not a default.
const HTTP_BIND: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
/// The beacons' UDP port unless configured: beside MAVLink's 14550 to 14559, which ground stations take.
const RADIO_PORT: u16 = 14_600;
/// Nothing that a daemon is configured with is longer; a device or an endless pipe is not read to its end.
const FILE_MAX: u64 = 64 * 1024;
/// UDP endpoints for ground stations: each that sends to a fixed receiver is a client from the start.
const GATEWAY_UDP_MAX: usize = 4;
const EXPECTED_GATEWAY_UDP: &str =
    "udpout:ADDRESS:PORT (send) or udp:ADDRESS:PORT (listen), for example udpout:127.0.0.1:14550";
/// Variables with our prefix that are no keys: what a test bench sets is inherited by the daemons it starts.
const NO_KEYS: [&str; 1] = ["WINGBEAT_SITL"];
/// The longest name of an aircraft, characters.
const NAME_MAX: usize = 64;

/// Why a configuration is not taken: one line, or the lines that show the place in the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: found {found}, expected a readable configuration file of at most {FILE_MAX} bytes")]
    File {
        /// Which.
        path: String,
        /// What was found.
        found: String,
    },
    /// The file is not this configuration.
    #[error("{path}: {message}")]
    Toml {
        /// Which.
        path: String,
        /// Line, caret, found and expected.
        message: String,
    },
    /// A variable of the environment does not fit.
    #[error("environment (WINGBEAT_...): {0}")]
    Environment(String),
    /// A value that cannot be flown.
    #[error("{key}: found {found}, expected {expected}")]
    Value {
        /// The key, for example `radio.port`.
        key: &'static str,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// A number that the agent refuses.
    #[error("{0}")]
    Agent(String),
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
    autopilot: Autopilot,
    #[serde(default)]
    radio: Radio,
    #[serde(default)]
    http: Http,
    #[serde(default)]
    gateway: Gateway,
    #[serde(default)]
    fence: Fence,
    #[serde(default)]
    preflight: Preflight,
    #[serde(default)]
    guard: Guard,
    #[serde(default)]
    separation: Separation,
    protocol: Option<String>,
    muscop: Option<Muscop>,
    #[serde(default)]
    mbcap: Mbcap,
    #[serde(default)]
    mission: Mission,
    sweep: Option<Sweep>,
    follow_me: Option<follow::FollowMe>,
}

/// What the guardian reads of the same file: it must start whatever else is wrong in it.
#[derive(Clone, Debug, Deserialize)]
struct GuardFile {
    autopilot: Autopilot,
    #[serde(default)]
    guard: Guard,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Guard {
    socket: Option<PathBuf>,
    silence_ms: Option<u64>,
    hold_s: Option<u64>,
    then: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Autopilot {
    endpoint: String,
    position_interval_ms: Option<u64>,
    signing_key_file: Option<PathBuf>,
    signing_link_id: Option<u8>,
    signing_setup: Option<bool>,
    ground_station_system_id: Option<u8>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Radio {
    interface: Option<String>,
    port: Option<u16>,
    broadcast: Option<String>,
    frequency_mhz: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Http {
    bind: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gateway {
    udp: Option<Vec<String>>,
    tcp: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fence {
    height_least_m: Option<f64>,
    height_most_m: Option<f64>,
    distance_most_m: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Preflight {
    battery_least_percent: Option<u8>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Muscop {
    master: String,
    aircraft: u16,
    alone: Option<bool>,
    formation: Option<String>,
    formation_file: Option<PathBuf>,
    distance_m: Option<f64>,
    landing_distance_m: Option<f64>,
    send_period_ms: Option<u64>,
    silence_ms: Option<u64>,
    arrival_period_ms: Option<u64>,
    arrival_m: Option<f64>,
    time_to_live_ms: Option<u64>,
    separation_m: Option<f64>,
    take_off: Option<String>,
    landing: Option<String>,
    hold_before_landing_ms: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Separation {
    alarm_distance_m: Option<f64>,
    alarm_time_s: Option<f64>,
    collision_distance_m: Option<f64>,
    rule_period_ms: Option<u64>,
    rule_horizontal_m: Option<f64>,
    rule_vertical_m: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mbcap {
    variant: Option<String>,
    planned_speed_m_s: Option<f64>,
    brake: Option<String>,
    curves: Option<String>,
    aside_tests: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mission {
    planned_speed_m_s: Option<f64>,
    hold_before_landing_ms: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sweep {
    aircraft: u16,
    strip: u16,
    lane_distance_m: Option<f64>,
}

/// Reads the file and the process's environment.
///
/// # Errors
/// The first mistake.
pub fn read(path: &Path) -> Result<Settings, ConfigError> {
    let environment = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)));
    let text = load(path)?;
    parse(&path.display().to_string(), &text, environment, &mac_address)
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
    let of_muscop = file.muscop.as_mut().and_then(|m| m.formation_file.as_mut());
    let of_follow_me = file.follow_me.as_mut().and_then(|f| f.formation_file.as_mut());
    for places in of_muscop.into_iter().chain(of_follow_me).filter(|p| !p.as_os_str().is_empty()) {
        // Beside the configuration, unless it says where.
        *places = Path::new(path).parent().unwrap_or(Path::new("")).join(&places);
    }
    file.settings(mac_address)
}

/// Reads what the guardian needs of the daemon's file and of the process's environment.
///
/// # Errors
/// The first mistake in `autopilot` or `guard`, or a file that is no TOML.
pub fn read_guard(path: &Path) -> Result<guard_process::Settings, ConfigError> {
    let environment = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)));
    let file: GuardFile = merged(&path.display().to_string(), &load(path)?, environment)?;
    file.guard.settings(endpoint(&file.autopilot)?, signing(&file.autopilot)?)
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

fn endpoint(autopilot: &Autopilot) -> Result<Endpoint, ConfigError> {
    autopilot.endpoint.parse().map_err(|error: wingbeat_link::EndpointError| {
        let found = format!("\"{}\" ({})", error.found, error.problem);
        value("autopilot.endpoint", &found, error.expected)
    })
}

impl Guard {
    fn settings(
        self,
        endpoint: Endpoint,
        signing: Option<wingbeat_agent::Signing>,
    ) -> Result<guard_process::Settings, ConfigError> {
        let socket = self.socket.unwrap_or_else(|| guard_process::DEFAULT_SOCKET.into());
        // The kernel's bound on the path of a socket, less its final zero.
        if !socket.is_absolute() || socket.as_os_str().len() > 107 {
            return Err(value("guard.socket", &socket.display(), "an absolute path of at most 107 bytes"));
        }
        let silence_ms = self.silence_ms.unwrap_or(guard_process::SILENCE_MS);
        if !(500..=10_000).contains(&silence_ms) {
            return Err(value("guard.silence_ms", &silence_ms, "500 to 10000 ms"));
        }
        let hold_s = self.hold_s.unwrap_or(guard_process::HOLD_S);
        if !(1..=600).contains(&hold_s) {
            return Err(value("guard.hold_s", &hold_s, "1 to 600 s"));
        }
        let then = match self.then.as_deref() {
            None | Some("land") => Then::Land,
            Some("rtl") => Then::Rtl,
            Some("hold") => Then::Hold,
            Some(other) => return Err(quoted("guard.then", other, "land, rtl or hold")),
        };
        let guardian = guardian::Config {
            silence: Duration::from_millis(silence_ms),
            hold: Duration::from_secs(hold_s),
            then,
            endpoint: guardian::fingerprint(&endpoint.to_string()),
            signing,
        };
        Ok(guard_process::Settings { endpoint, socket, guardian })
    }
}

impl File {
    fn settings(self, mac_address: &dyn Fn(&str) -> Result<u64, String>) -> Result<Settings, ConfigError> {
        let me = self.me(mac_address)?;
        let agent = agent(&self, me)?;
        let name = match self.name {
            None => format!("uav-{:04x}", me.0 & 0xffff),
            Some(name)
                if !name.is_empty()
                    && name.chars().count() <= NAME_MAX
                    && !name.chars().any(char::is_control) =>
            {
                name
            }
            Some(name) => {
                let expected = format!("1 to {NAME_MAX} characters without control characters");
                return Err(value("name", &format!("{name:?}"), expected));
            }
        };
        let autopilot = endpoint(&self.autopilot)?;
        let guard = self.guard.clone().settings(autopilot.clone(), None)?;
        let http = match &self.http.bind {
            None => HTTP_BIND,
            Some(bind) => bind
                .parse()
                .map_err(|_| quoted("http.bind", bind, "an address and a port, for example 0.0.0.0:8080"))?,
        };
        let broadcast = match &self.radio.broadcast {
            None => Ipv4Addr::BROADCAST,
            Some(address) => address.parse().map_err(|_| {
                quoted("radio.broadcast", address, "a broadcast address, for example 255.255.255.255")
            })?,
        };
        let port = self.radio.port.unwrap_or(RADIO_PORT);
        if port == 0 {
            return Err(value("radio.port", &port, "1 to 65535, the same on every aircraft"));
        }
        let frequency_mhz = self.radio.frequency_mhz;
        if let Some(mhz) = frequency_mhz.filter(|mhz| !(2_400..=5_925).contains(mhz)) {
            return Err(value("radio.frequency_mhz", &mhz, "2400 to 5925 MHz, for example 5180"));
        }
        let gateway = self.gateway.settings()?;
        // The agent judges its own numbers; here it is only asked, and flies nothing.
        wingbeat_agent::Agent::new(agent.clone(), 0, wingbeat_geo::Instant::ZERO)
            .map_err(|error| ConfigError::Agent(error.to_string()))?;
        Ok(Settings {
            daemon: Config { name, autopilot, http, agent, gateway, guard: Some(guard.socket), seed: 0 },
            radio: UdpConfig { interface: self.radio.interface, port, broadcast },
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

impl Gateway {
    fn settings(&self) -> Result<crate::gateway::Config, ConfigError> {
        let udp = self.udp.as_deref().unwrap_or_default();
        if udp.len() > GATEWAY_UDP_MAX {
            let found = format!("{} endpoints", udp.len());
            return Err(value("gateway.udp", &found, format!("at most {GATEWAY_UDP_MAX}")));
        }
        let mut endpoints = Vec::new();
        for word in udp {
            match word.parse() {
                Ok(endpoint @ (Endpoint::UdpListen(_) | Endpoint::UdpSend(_))) => endpoints.push(endpoint),
                Ok(_) | Err(_) => return Err(quoted("gateway.udp", word, EXPECTED_GATEWAY_UDP)),
            }
        }
        let expected = "an address and a port, for example 127.0.0.1:5790";
        let tcp = self
            .tcp
            .as_deref()
            .filter(|word| !word.is_empty())
            .map(|word| word.parse().map_err(|_| quoted("gateway.tcp", word, expected)));
        Ok(crate::gateway::Config { udp: endpoints, tcp: tcp.transpose()? })
    }
}

/// The protocol that is asked for, with its section; others' sections may stand there and do not count.
fn coordination(file: &File, me: VehicleId) -> Result<Coordination, ConfigError> {
    match (file.protocol.as_deref(), &file.muscop) {
        (None | Some("muscop"), Some(m)) => muscop(me, &file.fence, m).map(Coordination::Muscop),
        (None | Some("muscop"), None) => {
            Err(value("muscop", &"nothing", "the section with master and aircraft, or another protocol"))
        }
        (Some("mbcap"), _) => mbcap(me, &file.fence, &file.mbcap).map(Coordination::Mbcap),
        (Some("mission"), _) => mission(me, &file.fence, &file.mission).map(Coordination::Mission),
        (Some("sweep"), _) => {
            let expected = "the section with aircraft and strip";
            let section = file.sweep.as_ref().ok_or_else(|| value("sweep", &"nothing", expected))?;
            sweep(me, &file.fence, &file.mission, section).map(Coordination::Sweep)
        }
        (Some("follow_me"), _) => match &file.follow_me {
            Some(section) => section.settings(me, &file.fence).map(Coordination::FollowMe),
            None => Err(value("follow_me", &"nothing", "the section with leader and aircraft")),
        },
        (Some(other), _) => Err(quoted("protocol", other, "muscop, mbcap, follow_me, mission or sweep")),
    }
}

fn length(target: &mut f64, key: &'static str, found: Option<f64>) -> Result<(), ConfigError> {
    match found {
        None => {}
        Some(found) if found > 0.0 && found <= 100_000.0 => *target = found,
        Some(found) => return Err(value(key, &found, "more than 0 and at most 100000 m")),
    }
    Ok(())
}

fn muscop(me: VehicleId, fence: &Fence, m: &Muscop) -> Result<muscop::Config, ConfigError> {
    let master = vehicle("muscop.master", &m.master)?;
    if m.aircraft == 1 && m.alone != Some(true) {
        let expected = "2 to 128, or muscop.alone = true: one aircraft is no swarm";
        return Err(value("muscop.aircraft", &m.aircraft, expected));
    }
    let mut muscop = muscop::Config::new(me, master, usize::from(m.aircraft));
    let swarm = &mut muscop.swarm;
    for (target, key, found) in [
        (&mut swarm.take_off, "muscop.take_off", &m.take_off),
        (&mut swarm.landing, "muscop.landing", &m.landing),
    ] {
        let Some(name) = found else { continue };
        let known = Manner::ALL.into_iter().find(|manner| manner.name() == name);
        *target = known.ok_or_else(|| quoted(key, name, "sequential or simultaneous"))?;
    }
    let numbers = [
        (&mut swarm.distance_m, "muscop.distance_m", m.distance_m),
        (&mut swarm.landing_distance_m, "muscop.landing_distance_m", m.landing_distance_m),
        (&mut swarm.arrival_m, "muscop.arrival_m", m.arrival_m),
        (&mut swarm.separation_m, "muscop.separation_m", m.separation_m),
        (&mut swarm.height_least_m, "fence.height_least_m", fence.height_least_m),
        (&mut swarm.height_most_m, "fence.height_most_m", fence.height_most_m),
        (&mut swarm.distance_most_m, "fence.distance_most_m", fence.distance_most_m),
    ];
    for (target, key, found) in numbers {
        length(target, key, found)?;
    }
    let keys = formation::Keys { formation: "muscop.formation", formation_file: "muscop.formation_file" };
    let file = m.formation_file.as_deref().filter(|path| !path.as_os_str().is_empty());
    (swarm.layout, swarm.offsets) =
        formation::choose(&keys, m.formation.as_deref(), file, swarm.aircraft, swarm.distance_m)?;
    let periods = [
        (&mut swarm.send_period, "muscop.send_period_ms", m.send_period_ms, 20),
        (&mut swarm.silence, "muscop.silence_ms", m.silence_ms, 100),
        (&mut swarm.arrival_period, "muscop.arrival_period_ms", m.arrival_period_ms, 0),
        (&mut swarm.time_to_live, "muscop.time_to_live_ms", m.time_to_live_ms, 1_000),
        (&mut swarm.hold_before_landing, "muscop.hold_before_landing_ms", m.hold_before_landing_ms, 0),
    ];
    for (target, key, found, least_ms) in periods {
        period(target, key, found, least_ms)?;
    }
    Ok(muscop)
}

fn period(
    target: &mut Duration,
    key: &'static str,
    found: Option<u64>,
    least_ms: u64,
) -> Result<(), ConfigError> {
    let Some(found) = found else { return Ok(()) };
    if !(least_ms..=3_600_000).contains(&found) {
        return Err(value(key, &found, format!("{least_ms} to 3600000 ms")));
    }
    *target = Duration::from_millis(found);
    Ok(())
}

fn planned_speed(target: &mut f64, key: &'static str, found: Option<f64>) -> Result<(), ConfigError> {
    match found {
        None => {}
        Some(found) if (0.5..=20.0).contains(&found) => *target = found,
        Some(found) => return Err(value(key, &found, "0.5 to 20 m/s")),
    }
    Ok(())
}

fn mission(me: VehicleId, fence: &Fence, m: &Mission) -> Result<mission::Config, ConfigError> {
    let mut mission = mission::Config::new(me);
    length(&mut mission.fence.height_least_m, "fence.height_least_m", fence.height_least_m)?;
    length(&mut mission.fence.height_most_m, "fence.height_most_m", fence.height_most_m)?;
    length(&mut mission.fence.distance_most_m, "fence.distance_most_m", fence.distance_most_m)?;
    planned_speed(&mut mission.planned_speed_m_s, "mission.planned_speed_m_s", m.planned_speed_m_s)?;
    period(&mut mission.hold_before_landing, "mission.hold_before_landing_ms", m.hold_before_landing_ms, 0)?;
    Ok(mission)
}

fn sweep(me: VehicleId, fence: &Fence, m: &Mission, s: &Sweep) -> Result<sweep::Config, ConfigError> {
    let mut sweep = sweep::Config::new(me, s.strip.into(), s.aircraft.into());
    sweep.mission = mission(me, fence, m)?;
    length(&mut sweep.lane_distance_m, "sweep.lane_distance_m", s.lane_distance_m)?;
    Ok(sweep)
}

fn mbcap(me: VehicleId, fence: &Fence, m: &Mbcap) -> Result<mbcap::Config, ConfigError> {
    let mut mbcap = match m.variant.as_deref() {
        None | Some("mbcap-e") => mbcap::Config::mbcap_e(),
        Some("mbcap") => mbcap::Config::mbcap(),
        Some(other) => return Err(quoted("mbcap.variant", other, "mbcap or mbcap-e")),
    };
    mbcap.me = me;
    length(&mut mbcap.height_least_m, "fence.height_least_m", fence.height_least_m)?;
    length(&mut mbcap.height_most_m, "fence.height_most_m", fence.height_most_m)?;
    length(&mut mbcap.distance_most_m, "fence.distance_most_m", fence.distance_most_m)?;
    planned_speed(&mut mbcap.planned_speed_m_s, "mbcap.planned_speed_m_s", m.planned_speed_m_s)?;
    if let (Some(word), mbcap::config::Horizon::BySpeed { brake, .. }) =
        (&m.brake, &mut mbcap.prediction.horizon)
    {
        *brake = match word.as_str() {
            "published" => mbcap::config::BrakeFit::Published,
            "later" => mbcap::config::BrakeFit::Later,
            other => return Err(quoted("mbcap.brake", other, "published or later")),
        };
    }
    if let (Some(word), Some(curves)) = (&m.curves, &mut mbcap.curves) {
        *curves = match word.as_str() {
            "corrected" => mbcap::config::CurveFit::Corrected,
            "as-coded" => mbcap::config::CurveFit::AsCoded,
            other => return Err(quoted("mbcap.curves", other, "corrected or as-coded")),
        };
    }
    if let Some(word) = &m.aside_tests {
        mbcap.aside_tests = match word.as_str() {
            "avoided" => mbcap::config::AsideTests::Avoided,
            "last-scanned" => mbcap::config::AsideTests::LastScanned,
            other => return Err(quoted("mbcap.aside_tests", other, "avoided or last-scanned")),
        };
    }
    Ok(mbcap)
}

fn agent(file: &File, me: VehicleId) -> Result<wingbeat_agent::Config, ConfigError> {
    let (autopilot, preflight) = (&file.autopilot, &file.preflight);
    let mut agent = wingbeat_agent::Config::new(coordination(file, me)?);
    if let Some(interval_ms) = autopilot.position_interval_ms {
        if !(20..=2_000).contains(&interval_ms) {
            return Err(value("autopilot.position_interval_ms", &interval_ms, "20 to 2000 ms"));
        }
        agent.position_interval = Duration::from_millis(interval_ms);
    }
    agent.signing = signing(autopilot)?;
    agent.separation = separation(&file.separation)?;
    if let Some(id) = autopilot.ground_station_system_id {
        agent.ground_station_system_id = id;
    }
    if let Some(percent) = preflight.battery_least_percent {
        if percent > 100 {
            return Err(value("preflight.battery_least_percent", &percent, "0 to 100 per cent"));
        }
        agent.battery_least_percent = percent;
    }
    Ok(agent)
}

fn separation(s: &Separation) -> Result<Thresholds, ConfigError> {
    let mut thresholds = Thresholds::default();
    length(&mut thresholds.alarm_distance_m, "separation.alarm_distance_m", s.alarm_distance_m)?;
    length(&mut thresholds.collision_distance_m, "separation.collision_distance_m", s.collision_distance_m)?;
    length(&mut thresholds.rule_horizontal_m, "separation.rule_horizontal_m", s.rule_horizontal_m)?;
    length(&mut thresholds.rule_vertical_m, "separation.rule_vertical_m", s.rule_vertical_m)?;
    let Thresholds { alarm_distance_m, collision_distance_m, .. } = thresholds;
    if alarm_distance_m < collision_distance_m {
        let expected = format!("at least separation.collision_distance_m, {collision_distance_m} m");
        return Err(value("separation.alarm_distance_m", &alarm_distance_m, expected));
    }
    if let Some(found) = s.alarm_time_s {
        if !(found > 0.0 && found <= 20.0) {
            return Err(value("separation.alarm_time_s", &found, "more than 0 and at most 20 s"));
        }
        thresholds.alarm_time_s = found;
    }
    if let Some(found) = s.rule_period_ms {
        if !(50..=10_000).contains(&found) {
            return Err(value("separation.rule_period_ms", &found, "50 to 10000 ms"));
        }
        thresholds.rule_period = Duration::from_millis(found);
    }
    Ok(thresholds)
}

fn signing(autopilot: &Autopilot) -> Result<Option<wingbeat_agent::Signing>, ConfigError> {
    let setup = autopilot.signing_setup.unwrap_or(false);
    let Some(path) = &autopilot.signing_key_file else {
        if setup {
            let expected = "autopilot.signing_key_file beside it";
            return Err(value("autopilot.signing_setup", &"true and no key", expected));
        }
        return Ok(None);
    };
    let key = signing::read_key(path)
        .map_err(|refused| value("autopilot.signing_key_file", &refused.found, refused.expected))?;
    Ok(Some(wingbeat_agent::Signing { key, link_id: autopilot.signing_link_id.unwrap_or(0), setup }))
}

fn value(key: &'static str, found: &dyn Display, expected: impl Into<String>) -> ConfigError {
    ConfigError::Value { key, found: found.to_string(), expected: expected.into() }
}

fn quoted(key: &'static str, found: &str, expected: &str) -> ConfigError {
    value(key, &format!("{found:?}"), expected)
}

fn vehicle(key: &'static str, text: &str) -> Result<VehicleId, ConfigError> {
    let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match u64::from_str_radix(text, 16) {
        Ok(id) if digits && id != 0 => Ok(VehicleId(id)),
        _ => Err(quoted(key, text, "16 hexadecimal digits, not all zero")),
    }
}

/// The MAC address of an interface, from the kernel.
fn mac_address(interface: &str) -> Result<u64, String> {
    let path = PathBuf::from("/sys/class/net").join(interface).join("address");
    let text = std::fs::read_to_string(path).map_err(|_| format!("no interface {interface}"))?;
    let digits: String = text.trim().split(':').collect();
    match u64::from_str_radix(&digits, 16) {
        Ok(address) if address != 0 && digits.len() == 12 => Ok(address),
        _ => Err(format!("no MAC address on {interface}")),
    }
}

#[path = "config_follow.rs"]
mod follow;

#[cfg(test)]
#[path = "config_schema.rs"]
mod schema;
#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
