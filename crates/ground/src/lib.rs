//! The ground service of the PC Companion: it follows every aircraft's API, keeps one picture of the
//! fleet, passes the operator's commands on until their effect is seen, and serves the web page.
//!
//! ```text
//! aircraft ──events──▶ follow ─┐                    ┌─▶ picture, update, log ──▶ consoles
//! aircraft ◀─commands─ deliver ┼──▶ owner (fleet, ledger)
//! aircraft ◀─mission── http ───┘                    └─◀ command, mission ◀────── consoles
//! ```
//!
//! What it promises: an aircraft that falls silent is shown as lost with its last data, never dropped;
//! *hold*, *return*, *land* and *recover control* are repeated until the aircraft's own status shows their
//! effect, and never wait behind anything else; a slow console delays no other. It knows an aircraft by its
//! API only.
#![allow(clippy::disallowed_methods, reason = "the ground service runs in real time")]
#![forbid(unsafe_code)]

mod access;
mod alarms;
mod ask;
mod base_station;
pub mod bundle;
mod bundle_desk;
pub mod certificate;
pub mod checklist;
mod client;
mod deliver;
mod delta;
mod desk;
pub mod find;
mod fleet;
mod flight_setups;
mod follow;
mod http;
mod lease;
mod ledger;
mod links;
mod listen;
mod metrics;
pub mod mission_file;
mod owner;
mod page;
mod param_file;
mod parameters;
mod plan_file;
mod planning;
mod push;
mod readers;
mod records;
mod refused;
mod region_file;
mod regions;
pub mod remote;
mod service;
pub mod tiles;

use std::fs::File;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::Url;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use wingbeat_api::{FleetCommandReply, FleetCommandRequest, FleetMissionUpload, FleetPicture, paths};
use wingbeat_radio::{Radio, UdpBroadcast};
use wingbeat_server::Large;
use wingbeat_wire::{Role, Roster};

pub use access::users;
pub use access::{NoAccess, PageCertificate, Protection, SESSION};
pub use bundle_desk::Bundles;
pub use client::NoClient;
pub use desk::ConsoleConfig;
pub use http::openapi;
pub use links::{Reach, run_link_test};
pub use listen::Listening;
pub use push::{Receipt, push_keys};
pub use refused::Refused;
pub use wingbeat_server::{Hosts, NameError, machine_names};

/// Aircraft that one service follows.
pub const MAX_AIRCRAFT: usize = 512;

/// Messages that wait for the owner.
const QUEUE: usize = 1024;

/// Consoles and everything else at the same time. A browser opens up to six connections for the page and one for its
/// event stream.
const CONNECTIONS_MAX: usize = 128;

/// Consoles at the same time.
const CONSOLES_MAX: usize = 64;

/// Mission files that are uploaded at the same time, or read; each is up to 4 MB.
const MISSION_FILES_MAX: usize = 4;

/// An answer that waits for aircraft: the longest is the file of a link test, of which two of them recorded up to 12 MB each.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Before a console that does not hang up is cut off at the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// What the service needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens; port 0 takes a free one.
    pub bind: SocketAddr,
    /// The aircraft's APIs: `10.0.0.7:8080`, by TLS where the console has keys.
    pub aircraft: Vec<String>,
    /// The built web page; without it only the API is served.
    pub web_dir: Option<PathBuf>,
    /// A map of the ground, as a PMTiles archive or MBTiles; without it the page draws a graticule.
    pub tiles: Option<PathBuf>,
    /// A folder with the lab's profile of parameters, `fleet.param`, and those of single aircraft.
    pub parameters: Option<PathBuf>,
    /// A directory with recorded flights, which the page replays.
    pub records: Option<PathBuf>,
    /// The names under which the service is asked for, besides the computer's own.
    pub hosts: Hosts,
    /// The console's keys; without them it commands aircraft without keys only.
    pub console: Option<ConsoleConfig>,
    /// Who may use it.
    pub protection: Protection,
}

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address in the configuration is not one.
    #[error("aircraft address {found:?}: {why}; expected HOST:PORT")]
    Address {
        /// The address as it was given.
        found: String,
        /// What is wrong with it.
        why: String,
    },
    /// The same address is configured twice.
    #[error("aircraft address {0}: found it twice, expected each once")]
    Twice(String),
    /// Too many aircraft.
    #[error("aircraft: found {0} addresses, expected at most {MAX_AIRCRAFT}")]
    TooMany(usize),
    /// The port cannot be listened on.
    #[error("ground service: cannot listen on {address}: {}", bind_reason(.source))]
    Bind {
        /// Where it should have listened.
        address: SocketAddr,
        /// The system's message.
        source: io::Error,
    },
    /// Another service uses the key folder, or there are no random numbers.
    #[error("--keys: {0}")]
    Keys(String),
    /// The users, the log of what is done, or the certificate.
    #[error("ground service: {0}")]
    Access(#[from] NoAccess),
    /// The folder of the checklist's results.
    #[error("checklist: {path}: found {error}, expected a folder that can be written")]
    Checklist {
        /// The folder.
        path: PathBuf,
        /// The system's message.
        error: io::Error,
    },
    /// The map of the ground is none.
    #[error("tiles: {path}: {why}")]
    Tiles {
        /// The path as it was given.
        path: PathBuf,
        /// What was found, and what is expected.
        why: String,
    },
    /// The directory of records is none.
    #[error("records: {path}: found {why}, expected a directory with flight logs")]
    Records {
        /// The path as it was given.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A base station without a radio.
    #[error("base station: found no radio, expected one: corrections are broadcast")]
    NoRadio,
    /// The HTTP client cannot be made.
    #[error("ground service: no HTTP client: {0}")]
    Client(#[from] NoClient),
}

fn bind_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "found the port in use, expected a free one".to_owned(),
        io::ErrorKind::AddrNotAvailable => {
            "found no such address on this machine, expected one of its own".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "found no permission for it, expected a port above 1023".to_owned()
        }
        _ => error.to_string(),
    }
}

/// A client for the ground service's own API, which is plain HTTP.
///
/// # Errors
/// The system does not give what a client needs.
pub fn plain_client() -> Result<reqwest::Client, NoClient> {
    client::new(None)
}

/// The service.
#[derive(Clone, Copy, Debug)]
pub struct Ground;

impl Ground {
    /// Binds the port and starts to follow every aircraft. Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// An address that is none or stands twice, and a port that cannot be listened on.
    pub async fn start(config: Config) -> Result<Handle, StartError> {
        Self::start_with(config, None::<UdpBroadcast>).await
    }

    /// The same with a radio of its own, by which a console with keys repeats emergency commands.
    ///
    /// # Errors
    ///
    /// As [`Ground::start`].
    pub async fn start_with<R: Radio>(config: Config, radio: Option<R>) -> Result<Handle, StartError> {
        let key_folder = config.console.as_ref().map(ConsoleConfig::lock).transpose();
        let key_folder = key_folder.map_err(StartError::Keys)?.flatten();
        let keys = config.console.as_ref().and_then(ConsoleConfig::identity);
        let records = config.records.map(records_directory).transpose()?;
        let map = config.tiles.map(|path| match tiles::open(&path) {
            Ok(map) => Ok(map),
            Err(why) => Err(StartError::Tiles { path, why }),
        });
        let map = map.transpose()?;
        let scheme = if keys.is_some() { "https" } else { "http" };
        let addresses = addresses(&config.aircraft, scheme)?;
        let clients = client::Clients::new(keys.clone())?;
        if radio.is_none() && config.console.as_ref().is_some_and(|console| console.rtcm.is_some()) {
            return Err(StartError::NoRadio);
        }
        let roster = config.console.as_ref().map(|console| console.keys.keys.roster.clone());
        let is_operator = config.console.as_ref().is_none_or(|console| console.keys.role == Role::Operator);
        let bind = config.bind;
        let listener =
            TcpListener::bind(bind).await.map_err(|source| StartError::Bind { address: bind, source })?;
        let address = listener.local_addr().map_err(|source| StartError::Bind { address: bind, source })?;

        let access = access::Access::new(&config.protection, address.port())?;
        let port = address.port();
        let checklist = config.protection.checklist.clone();
        let folder = checklist.as_ref().map(|checklist| checklist.folder.clone()).unwrap_or_default();
        let checklist = checklist::Desk::open(checklist, lease::console(port), port)
            .map_err(|error| StartError::Checklist { path: folder, error })?;
        let checklist = Arc::new(checklist);
        let tls = config.protection.tls.as_ref().map(|page| {
            wingbeat_server::Acceptor::of_page(&page.certificate, &page.key).map_err(NoAccess::from)
        });
        let tls = tls.transpose()?;

        let (requests, request_queue) = mpsc::channel(QUEUE);
        let (messages, message_queue) = mpsc::channel(QUEUE);
        let now = Instant::now();
        let fleet = fleet::Fleet::new(addresses.iter().cloned(), now);
        let desk = config.console.map(|console| desk::Desk::new(console, radio.is_some()));
        let desk = desk.transpose().map_err(StartError::Keys)?.map(Arc::new);
        let (has_map, has_tiles) = (map.is_some(), matches!(map, Some(tiles::Map::Tiles(_))));
        let service = service::Service::new(
            requests,
            clients.clone(),
            service::Files { web_dir: config.web_dir, map, parameters: config.parameters, records },
            access,
            checklist.clone(),
        );
        let (stop, stopped) = watch::channel(false);

        let mut tasks = JoinSet::new();
        // Of others the aircraft takes none.
        let lease = is_operator.then(|| lease::console(port));
        let closely = watch::Sender::default();
        let following = owner::Following { clients: clients.clone(), lease, desk: desk.clone(), closely };
        for (index, address) in addresses.iter().enumerate() {
            following.begin(&mut tasks, index, address, &messages);
        }
        if let (Some(desk), Some(radio)) = (desk.clone(), radio) {
            let messages = messages.clone();
            tasks.spawn(async move { desk.broadcast(radio, messages).await });
        }
        let by_radio = Arc::new(OnceLock::new());
        let about = owner::About {
            console: lease::console(port),
            has_map,
            has_tiles,
            listener: by_radio.clone(),
            checklist,
        };
        let owner = owner::Owner::new(about, fleet, clients, following.clone(), messages, now);
        let mut ending = stopped.clone();
        tasks.spawn(async move {
            // When the owner ends, so do the consoles' streams and every delivery.
            tokio::select! {
                () = owner.run(request_queue, message_queue) => {}
                _ = ending.wait_for(|stop| *stop) => {}
            }
        });
        let router = http::router(service.clone());
        let limits = wingbeat_server::Settings {
            connections: CONNECTIONS_MAX,
            streams: CONSOLES_MAX,
            answer_within: ANSWER_LIMIT,
            body_bytes: http::MAX_BODY_BYTES,
            large: Some(Large {
                paths: &[
                    paths::MISSION_FILES,
                    paths::MISSION_EXPORT,
                    paths::PLAN_PREVIEW,
                    paths::PLAN_FILE,
                    paths::FLEET_PARAMETERS,
                    paths::FLEET_PARAMETERS_COMPARISON,
                    paths::REGION_FILES,
                ],
                bytes: mission_file::MAX_BODY_BYTES,
                simultaneous: MISSION_FILES_MAX,
            }),
            hosts: config.hosts,
            tls,
            ..Default::default()
        };
        let server = tokio::spawn(wingbeat_server::serve(listener, router, limits, stopped, || {}));
        tracing::info!(%address, "ground service");
        let (listener, _folder) = (by_radio, key_folder);
        Ok(Handle { address, service, stop, server, following, tasks, _folder, roster, listener })
    }
}

/// A running service. Dropping it stops it.
#[derive(Debug)]
pub struct Handle {
    address: SocketAddr,
    service: service::Service,
    stop: watch::Sender<bool>,
    server: tokio::task::JoinHandle<()>,
    following: owner::Following,
    tasks: JoinSet<()>,
    /// The lock of the key folder.
    _folder: Option<File>,
    /// What opens the fleet's datagrams; none without keys.
    roster: Option<Box<Roster>>,
    listener: Arc<OnceLock<listen::Listener>>,
}

impl Handle {
    /// The address that the service listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on bundles of logs are collected there, where an operator asks for one.
    pub fn keep_bundles(&self, bundles: Bundles) {
        self.service.bundles().keep(bundles);
    }

    /// From now on aircraft are found by multicast DNS too.
    ///
    /// # Errors
    /// The system gives it no thread or no socket.
    pub fn find(&mut self) -> Result<(), String> {
        let daemon = mdns_sd::ServiceDaemon::new().map_err(|error| error.to_string())?;
        self.tasks.spawn(find::find(daemon, self.following.clients.clone(), self.service.clone()));
        Ok(())
    }

    /// From now on aircraft are found by the datagrams that this radio receives too; nothing is sent by it. Once for a service.
    pub fn listen<R: Radio>(&mut self, listening: Listening, radio: R) {
        let roster = self.roster.take().unwrap_or_else(|| Box::new(Roster::insecure()));
        let listener = listen::Listener::new(listening, roster);
        if self.listener.set(listener.clone()).is_ok() {
            self.tasks.spawn(listener.run(radio, self.following.clients.clone(), self.service.clone()));
        }
    }

    /// The fleet as it is now; what GET `/api/v1/fleet` answers.
    ///
    /// # Errors
    ///
    /// Only while the service is ending.
    pub async fn picture(&self) -> Result<FleetPicture, Refused> {
        self.service.picture().await
    }

    /// An operator's command; what POST `/api/v1/fleet/commands` does.
    ///
    /// # Errors
    ///
    /// The request is wrong, or the command cannot be done now.
    pub async fn command(&self, request: FleetCommandRequest) -> Result<FleetCommandReply, Refused> {
        Ok(self.service.admit(request, String::new()).await?.reply)
    }

    /// Gives an aircraft its mission, as PUT `/api/v1/fleet/mission` does.
    ///
    /// # Errors
    /// The reason, the aircraft's own where it refused.
    pub async fn give_mission(&self, upload: FleetMissionUpload) -> Result<(), String> {
        let answer = http::give(&self.service, upload).await.map_err(|refused| refused.to_string())?;
        if answer.status().is_success() {
            return Ok(());
        }
        let body = axum::body::to_bytes(answer.into_body(), http::MAX_BODY_BYTES).await;
        Err(body.map_or_else(|error| error.to_string(), |body| String::from_utf8_lossy(&body).into_owned()))
    }

    /// Stops following, delivering and serving; returns when the port is free.
    pub async fn stop(mut self) {
        // No receiver means that it has ended already.
        let _ = self.stop.send(true);
        self.service.readers().end();
        if timeout(FAREWELL, &mut self.server).await.is_err() {
            self.server.abort();
            let _ = (&mut self.server).await;
        }
        self.service.checklist_desk().flush().await;
        self.service.access().audit.flush().await;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.service.readers().end();
        self.server.abort();
    }
}

/// The canonical path, below which all that is read must stand.
fn records_directory(path: PathBuf) -> Result<PathBuf, StartError> {
    let canonical = path.canonicalize().map_err(|error| error.to_string());
    match canonical {
        Ok(canonical) if canonical.is_dir() => Ok(canonical),
        Ok(_) => Err(StartError::Records { path, why: "a file".to_owned() }),
        Err(why) => Err(StartError::Records { path, why }),
    }
}

/// Base addresses without a trailing slash, each once.
fn addresses(configured: &[String], scheme: &str) -> Result<Vec<String>, StartError> {
    if configured.len() > MAX_AIRCRAFT {
        return Err(StartError::TooMany(configured.len()));
    }
    let mut addresses = Vec::with_capacity(configured.len());
    for found in configured {
        let address =
            base_address(found, scheme).map_err(|why| StartError::Address { found: found.clone(), why })?;
        if addresses.contains(&address) {
            return Err(StartError::Twice(address));
        }
        addresses.push(address);
    }
    Ok(addresses)
}

fn base_address(found: &str, scheme: &str) -> Result<String, String> {
    let full = if found.contains("://") { found.to_owned() } else { format!("{scheme}://{found}") };
    // With its interface it is no address of HTTP at all.
    let is_link_local = |host: &str| {
        let host = host.trim_matches(['[', ']']).split('%').next().unwrap_or_default();
        host.parse::<Ipv6Addr>().is_ok_and(|address| address.is_unicast_link_local())
    };
    let host = full.split("://").nth(1).and_then(|rest| rest.split_once(']')).map(|(host, _)| host);
    if host.is_some_and(is_link_local) {
        return Err(find::LINK_LOCAL.to_owned());
    }
    let url = Url::parse(&full).map_err(|error| error.to_string())?;
    if url.scheme() != scheme {
        let keys = if scheme == "https" {
            "a console with keys speaks TLS"
        } else {
            "without --keys no TLS is spoken"
        };
        return Err(format!("found the scheme {:?}, expected {scheme:?} ({keys})", url.scheme()));
    }
    if !url.username().is_empty() || url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err("found more than a host and a port".to_owned());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_brought_to_one_form() {
        let configured = ["10.0.0.7:8080", "http://10.0.0.8:8080/", "drone-3.local:80"].map(str::to_owned);
        let expected = ["http://10.0.0.7:8080", "http://10.0.0.8:8080", "http://drone-3.local"];
        assert_eq!(addresses(&configured, "http").expect("good addresses"), expected);
        let secured = addresses(&["10.0.0.7:8080", "https://10.0.0.8:8080"].map(str::to_owned), "https");
        assert_eq!(secured.expect("good addresses"), ["https://10.0.0.7:8080", "https://10.0.0.8:8080"]);
        let plain = addresses(&["http://10.0.0.7:8080".to_owned()], "https").expect_err("without TLS");
        assert!(plain.to_string().contains("found the scheme \"http\", expected \"https\""), "{plain}");
    }

    #[test]
    fn a_bad_address_is_named() {
        for bad in [
            "",
            "https://10.0.0.7",
            "http://10.0.0.7/api",
            "http://",
            "10.0.0.7:99999",
            "ftp://x",
            "http://u@h",
        ] {
            let error = addresses(&[bad.to_owned()], "http").expect_err(bad).to_string();
            assert!(error.starts_with(&format!("aircraft address {bad:?}: ")), "{error}");
        }
        for bad in ["[fe80::7]:8080", "[fe80::7%wlan0]:8080", "http://[fe80::7%25wlan0]:8080"] {
            let error = addresses(&[bad.to_owned()], "http").expect_err(bad).to_string();
            assert_eq!(error, format!("aircraft address {bad:?}: {}; expected HOST:PORT", find::LINK_LOCAL));
        }
        assert_eq!(
            addresses(&["[fd00::7]:8080".to_owned()], "http").expect("one"),
            ["http://[fd00::7]:8080"]
        );
        let twice = ["10.0.0.7:80", "http://10.0.0.7/"].map(str::to_owned);
        assert_eq!(
            addresses(&twice, "http").expect_err("twice").to_string(),
            "aircraft address http://10.0.0.7: found it twice, expected each once"
        );
    }
}
