//! The aircraft's daemon as a library.
//!
//! [`start`] joins one agent to a link, a radio and an HTTP API, and returns a [`Handle`]. The binary
//! `wingbeatd` is this with a configuration file around it; a bench starts one per simulated aircraft, with
//! radios of a hub, and flies exactly what the aircraft flies.
//!
//! | module | what it does |
//! |---|---|
//! | [`doctor`] | what is wrong with an aircraft's computer, line and radio, and its cure |
//! | [`config`] | file and environment become values that can be flown, or one line that names the key |
//! | [`guard_process`] | the second process, `wingbeat-guard`: lands the aircraft when this one dies |
//! | `guard` | the daemon's end of the socket between the two |
//! | `chrony` | GNSS time for the program that sets the clock |
//! | `driver` | the one task that owns the agent, its clock, its link and its radio |
//! | [`gateway`] | the gateway for ground stations: the vehicle's MAVLink on UDP and TCP |
//! | `links` | what of the others' probes is received, and tests of a link |
//! | `lease` | which console has the aircraft |
//! | `http`, `stream` | the API: reads published states, asks the driver |
//! | [`journal`] | tracing's events become the journal's records, with their fields |
//! | `latch` | keeps over a restart that a pilot has the aircraft |
//! | [`recording`] | the flight log |
//! | [`liveness`], [`watchdog`] | whether every task still turns, and systemd's watchdog fed only while it does |
//! | [`mission`] | which missions are taken over HTTP |
//! | `signing` | the file with the key of MAVLink's message signing |
//! | `status` | from the agent's status to the API's |
#![allow(
    clippy::disallowed_methods,
    reason = "the daemon runs in real time; the agent receives its time from Clock"
)]
#![forbid(unsafe_code)]

mod autopilot_logs;
mod chrony;
pub mod config;
pub mod doctor;
mod driver;
mod flight;
mod flight_setup;
pub mod formation;
pub mod gateway;
mod guard;
pub mod guard_process;
mod http;
pub mod journal;
mod known_autopilot;
mod known_sessions;
mod latch;
mod lease;
mod links;
pub mod liveness;
mod logs;
mod measurements;
pub mod mission;
mod owing;
mod parameters;
mod pulse_thread;
pub mod recording;
mod regions;
mod requests;
pub mod scheduling;
mod signing;
pub mod state_directory;
mod status;
mod stream;
pub mod watchdog;

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

pub use http::openapi;
pub use signing::read_key as read_signing_key;
use tokio::{
    net::TcpListener,
    sync::{broadcast, watch},
    task::JoinHandle,
    time::timeout,
};
use wingbeat_agent::Agent;
use wingbeat_api::{AircraftStatus, Identity, LogLine};
pub use wingbeat_keys as keys;
use wingbeat_link::Endpoint;
use wingbeat_protocol::{Fence, text};
use wingbeat_radio::{Budget, Outage};
pub use wingbeat_radio::{Clock, ClockError, Radio};
pub use wingbeat_server::Hosts;
use wingbeat_server::Refusals;

use wingbeat_keys::counter::Reserve;

use crate::{
    driver::{Driver, Publisher},
    flight::KeptFlight,
    flight_setup::{FlightSetups, Keeper},
    gateway::Gateway,
    http::Front,
    latch::Latch,
    liveness::Liveness,
    recording::Recording,
};

/// Version of the HTTP API.
pub const API_VERSION: u32 = 1;
/// Requests that wait for the driver. It answers thousands a second; more than this wait only when it is stuck.
const REQUESTS_MAX: usize = 64;
/// Log lines that a slow console may be behind.
const LOG_MAX: usize = 256;
/// How long the driver may take to leave its aircraft safe ([`driver`]: 3 s), and consoles to hang up.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// What one daemon is started with.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The display name.
    pub name: String,
    /// Where the autopilot is.
    pub autopilot: Endpoint,
    /// Where the API is served; port 0 takes a free one.
    pub http: SocketAddr,
    /// The names under which the API is asked for, besides the machine's own.
    pub hosts: Hosts,
    /// Configuration of the agent, with this aircraft's id.
    pub agent: wingbeat_agent::Config,
    /// The sections of all protocols: what an operator sets over HTTP begins with the section of its protocol.
    pub protocols: Box<config::ProtocolKeys>,
    /// The guardian's socket. A bench, whose aircraft end with it, has none and states that in
    /// [`wingbeat_agent::Config::companion_loss`].
    pub guard: Option<PathBuf>,
    /// The addresses at which ground stations receive the vehicle's MAVLink.
    pub gateway: gateway::Config,
    /// The keys of datagrams.
    pub keys: keys::Keys,
    /// Where the keys are from; a bench has throw-away ones.
    pub enrolled: Option<keys::Enrolled>,
    /// What is wrong with the configuration's files, one line, where an earlier configuration is used: setup is refused.
    pub configuration_fault: Option<String>,
    /// Time between the probes by which the others measure their link to this aircraft; none broadcasts none.
    pub link_probe_period: Option<Duration>,
    /// Where the flight is logged; none logs nothing.
    pub log: Option<recording::Settings>,
    /// The socket of chronyd, which is given GNSS time; none in a bench.
    pub chrony_socket: Option<PathBuf>,
    /// The directory in which a daemon keeps what the next one must know. A bench has none: its aircraft end with it.
    pub state: Option<PathBuf>,
    /// The seed of the agent's random numbers.
    pub seed: u64,
}

impl Config {
    /// Returns a warning where an aircraft with keys has a gateway that asks for none: whatever reaches it commands.
    pub fn open_gateway(&self) -> Option<String> {
        let is_open = self.keys.roster.is_secured() && !takes_signed_mavlink_alone(&self.agent);
        self.gateway.reached_by_others().filter(|_| is_open).map(|endpoints| open_gateway_text(&endpoints))
    }
}

/// Whether the flight controller refuses frames that are not signed.
fn takes_signed_mavlink_alone(agent: &wingbeat_agent::Config) -> bool {
    agent.signing.as_ref().is_some_and(|signing| !signing.setup)
}

fn open_gateway_text(endpoints: &str) -> String {
    format!(
        "{endpoints}: other computers command this aircraft there without a key, stopping the motors included; bind it to \
         127.0.0.1, or sign MAVLink (autopilot.signing_key_file)"
    )
}

/// Why a daemon did not start. Nothing is flown.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StartError {
    /// The API cannot be served there.
    #[error("http {address}: found {found}, expected a free port on an address of this machine")]
    Http {
        /// The address that cannot be served.
        address: SocketAddr,
        /// The kernel's error.
        found: String,
    },
    /// No TLS can be spoken with the keys.
    #[error("http: found no TLS with these keys ({found}), expected TLS 1.3")]
    Tls {
        /// What is missing.
        found: String,
    },
    /// At the guardian's socket there is something else.
    #[error("guard.socket {}: found {found}, expected a guardian's socket, or nothing there", .path.display())]
    Guard {
        /// Path of the socket.
        path: PathBuf,
        /// What is there.
        found: String,
    },
    /// The agent's numbers cannot be flown.
    #[error(transparent)]
    Agent(#[from] wingbeat_agent::ConfigError),
    /// Ground stations cannot be served there.
    #[error(transparent)]
    Gateway(#[from] gateway::GatewayError),
    /// The serial line cannot be used and waiting will not correct it.
    #[error(transparent)]
    Link(#[from] wingbeat_link::OpenError),
}

/// A running daemon. Dropping it stops it too, without waiting.
#[derive(Debug)]
pub struct Handle {
    address: SocketAddr,
    gateway: Vec<SocketAddr>,
    identity: Identity,
    status: watch::Receiver<Arc<AircraftStatus>>,
    log: broadcast::Sender<LogLine>,
    liveness: Liveness,
    stop: watch::Sender<bool>,
    driver: JoinHandle<()>,
    server: JoinHandle<()>,
}

/// Starts a daemon: joins an agent to its link, its radio and its API.
///
/// A device that is missing or a server that does not answer is waited for, for ever. A serial device that
/// is busy or forbidden is an error, because only a person can correct it.
///
/// # Errors
/// The agent's numbers, the HTTP address or the serial line; nothing runs then.
pub async fn start<R: Radio>(config: Config, clock: Clock, radio: R) -> Result<Handle, StartError> {
    let Config {
        name,
        autopilot,
        http,
        hosts,
        mut agent,
        protocols,
        gateway,
        guard,
        keys,
        enrolled,
        configuration_fault,
        link_probe_period,
        log: log_settings,
        chrony_socket,
        state,
        seed,
    } = config;
    agent.refused = configuration_fault.map(|why| text!("{why}"));
    let (height_least_m, height_most_m) = agent.coordination.heights_m();
    let fence = Fence { height_least_m, height_most_m, distance_most_m: f64::INFINITY };
    let id = agent.coordination.me().to_string();
    let setups = FlightSetups::new(agent.coordination.clone(), protocols).open(state.as_deref());
    if let Ok(flight) = setups.current() {
        agent.coordination = flight;
    }
    let open_gateway = gateway.reached_by_others().filter(|_| !takes_signed_mavlink_alone(&agent));
    let open_gateway = open_gateway.map(|endpoints| open_gateway_text(&endpoints));
    let latch = Latch::open(state.as_deref());
    let missing = state.as_deref().filter(|state| !state.is_dir());
    agent.forgets = latch.problem().map(|problem| wingbeat_agent::Forgets {
        why: match missing {
            Some(_) => {
                text!("no such directory (--state): a restart would forget that a pilot has the aircraft")
            }
            None => text!("{problem}"),
        },
        // A card that is full or worn takes no flight away.
        is_refused: missing.is_some(),
    });
    let agent = Box::new(Agent::new(agent, seed, clock.now())?);

    guard.as_deref().map_or(Ok(()), check_guard)?;
    let identity_kept = known_autopilot::Kept::open(state.as_deref());
    let owing = owing::Owing::open(state.as_deref());
    let refused = |found| StartError::Http { address: http, found };
    let listener = TcpListener::bind(http).await.map_err(|error| {
        refused(match error.kind() {
            io::ErrorKind::AddrInUse => "the port in use".into(),
            _ => error.to_string(),
        })
    })?;
    let address = listener.local_addr().map_err(|error| refused(error.to_string()))?;
    let baud = match &autopilot {
        Endpoint::Serial { baud, .. } => Some(*baud),
        _ => None,
    };
    let mut liveness = Liveness::default();
    let gateway = Gateway::open(&gateway, agent.needs(), baud, clock.now(), &mut liveness).await?;
    let gateway_addresses = gateway.as_ref().map_or_else(Vec::new, |g| g.addresses().to_vec());
    let guard = match guard {
        Some(socket) => Some(guard::Client::greet(socket, &autopilot).await),
        None => None,
    };
    // A port that the guardian has is busy, and will be free again.
    let guardian_holds = guard.as_ref().is_some_and(guard::Client::guardian_holds);
    if matches!(autopilot, Endpoint::Serial { .. }) && !guardian_holds {
        match wingbeat_link::check(&autopilot).await {
            Err(error) if error.kind.needs_a_person() => return Err(error.into()),
            // Whatever comes and goes with a cable is the link's to wait for.
            Ok(()) | Err(_) => {}
        }
    }

    let known = wingbeat_tls::Identity::new(&keys.signer, &keys.roster);
    let tls = known.as_ref().map(wingbeat_tls::Identity::acceptor).transpose();
    let tls = tls.map_err(|error| StartError::Tls { found: error.to_string() })?;
    let refusals = Refusals::default();

    // Last of what can fail: each start reserves further ahead of the clock.
    let reserve = Reserve::open(state.as_deref(), unix_us());
    let agent = Box::new((*agent).counting_from(reserve.base_us()));
    let is_secured = keys.roster.is_secured();
    let first = driver::first_status(&agent, &clock, &name, is_secured, &setups);
    let identity = Identity {
        id: id.clone(),
        name: name.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        api_version: API_VERSION,
        protocol: first.protocol.clone(),
    };
    let (status_sender, status) = watch::channel(Arc::new(first));
    let (mission_sender, mission) = watch::channel(None);
    let (log, _) = broadcast::channel(LOG_MAX);
    let (requests, request_receiver) = requests::channel(REQUESTS_MAX);
    let (stop, stopped) = watch::channel(false);

    let publisher = Publisher {
        id,
        name: name.clone(),
        status: status_sender,
        mission: mission_sender,
        log: log.clone(),
        refusals: refusals.clone(),
    };
    let link_watchdog = liveness.task("link", wingbeat_link::TURN_MAX);
    let watchdog = liveness.task("driver", driver::TURN_MAX);
    let free_len = log_settings.as_ref().map_or(0, |settings| settings.limits.free_len);
    let mut recording = Recording::open(log_settings, state.as_deref(), &name);
    recording.begin(clock.now(), &agent);
    let logs = logs::Logs::new(recording.directory().map(Path::to_owned));
    let signing = agent.origin().config.signing.map(|signing| (signing.key, signing.link_id));
    let fetcher = autopilot_logs::Fetcher::new(recording.directory(), free_len, signing);
    let driver = Driver::new(
        agent,
        clock,
        driver::Port { endpoint: autopilot, guard, watchdog: link_watchdog },
        driver::Air { radio, keys, reserve, budget: Budget::default(), outage: Outage::default() },
        request_receiver,
        publisher,
        watchdog,
    )
    .probing(link_probe_period)
    .setting_clock(chrony_socket.as_deref())
    .admitting(known.clone())
    .keeping(latch, KeptFlight::open(state.as_deref()))
    .knowing(identity_kept, known_sessions::Kept::open(state.as_deref()))
    .owing(owing)
    .setting_up(setups)
    .fetching(fetcher)
    .recording(recording)
    .serving(gateway, open_gateway)
    .holding(enrolled.as_ref().map(|enrolled| enrolled.terms));
    let driver = tokio::spawn(Box::pin(driver.run(stopped.clone())));

    let front = Front {
        identity: Arc::new(identity.clone()),
        fence,
        is_secured,
        status: status.clone(),
        mission,
        log: log.clone(),
        requests,
        store: enrolled.map(|enrolled| {
            let store = enrolled.store.of_authority(enrolled.terms.authority);
            Arc::new(tokio::sync::Mutex::new(store))
        }),
        setups: Arc::new(tokio::sync::Mutex::new(Keeper::new(state.as_deref()))),
        logs,
        refusals: refusals.clone(),
        known: known.clone(),
    };
    let limits =
        wingbeat_server::Settings { body_bytes: http::BODY_MAX, hosts, tls, refusals, ..Default::default() };
    // Fed by the server's own loop. A request to ourselves would prove more and fail at the worst time: it fails while
    // the radio's interface, and the address with it, is gone.
    let server_watchdog = liveness.task("HTTP server", wingbeat_server::TURN_MAX);
    let serving = wingbeat_server::serve(listener, http::router(front), limits, stopped, move || {
        server_watchdog.feed()
    });
    let server = tokio::spawn(serving);
    Ok(Handle { address, gateway: gateway_addresses, identity, status, log, liveness, stop, driver, server })
}

/// Microseconds since 1970 by the system's clock; one that shows an earlier year counts as 1970.
fn unix_us() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// Whether a guardian's socket may be at the path.
///
/// # Errors
/// Something else is there.
pub fn check_guard(path: &Path) -> Result<(), StartError> {
    match guard_process::not_a_socket(path) {
        None => Ok(()),
        Some(found) => Err(StartError::Guard { path: path.into(), found }),
    }
}

impl Handle {
    /// Where the API is served.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where ground stations are served: UDP in the order of the configuration, then TCP.
    pub fn gateway(&self) -> &[SocketAddr] {
        &self.gateway
    }

    /// Id, name, version and protocol of the aircraft.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The published states: the last one, and when a new one is there. It closes when the driver ends.
    pub fn status(&self) -> watch::Receiver<Arc<AircraftStatus>> {
        self.status.clone()
    }

    /// The log from now on.
    pub fn log(&self) -> broadcast::Receiver<LogLine> {
        self.log.subscribe()
    }

    /// The daemon's tasks: driver, link, HTTP server and the gateway's sockets. The radio's is its maker's to
    /// watch.
    pub fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// Waits until the driver or the server has ended, which neither does without a failure or a stop.
    pub async fn ended(&mut self) -> String {
        tokio::select! {
            ended = &mut self.driver => match ended {
                Ok(()) => "the driver ended: found no link task, expected one".into(),
                Err(error) => format!("the driver ended: {error}"),
            },
            ended = &mut self.server => match ended {
                Ok(()) => "the HTTP server ended".into(),
                Err(error) => format!("the HTTP server ended: {error}"),
            },
        }
    }

    /// Stops the driver, which leaves an aircraft that it commands to the guardian or, without one, in LAND,
    /// and lets running requests finish; for five seconds at most.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let both = async {
            // How they ended does not matter any more.
            if !self.driver.is_finished() {
                let _ = (&mut self.driver).await;
            }
            if !self.server.is_finished() {
                let _ = (&mut self.server).await;
            }
        };
        // Dropping the handle ends whatever is left.
        let _ = timeout(STOP_TIMEOUT, both).await;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.driver.abort();
        self.server.abort();
    }
}
