//! The driver: one task that owns the agent, its clock, its link and its radio.
//!
//! It waits for one input at a time (bytes of the flight controller, a datagram, a request, the guardian's
//! answer, a ground station's frame, the agent's deadline), hands it to the agent, and carries out the
//! outputs in order: a pulse to the guardian, bytes to the autopilot, datagrams, log lines, the answer. No
//! other task touches the agent. The status is published whenever the agent logged or answered; else every
//! 100 ms of agent time after an input and every 500 ms without one, with at least 20 ms and at most 500 ms of
//! kernel time between. Readers never delay the driver.

use std::{
    fmt,
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    sync::{broadcast, oneshot, watch},
    time::{Instant as KernelInstant, sleep_until},
};
use wingbeat_agent::{
    Agent, Command, CommandProgress, CompanionLoss, Input, KnownAutopilot, Outputs, Owed, ParameterOrder,
    RegionOrder, Rejection, Reply, Severity, Stage, Status, Verdict,
    guardian::{Activity, Answer, Stance},
};
use wingbeat_api::{
    self as api, AircraftStatus, ApiError, CommandOutcome, CommandReply, CommandRequest, FlightSetup,
    FlightSetupState, KeysValidity, LeaseGrant, LinkFault, LinkFaultKind, LinkTestReport, LinkTestRequest,
    LogLine, MissionSummary, MissionUpload, ParameterProgress, RegionState,
};
use wingbeat_autopilot::{gateway::Circumstances, gnss_time::GnssTime, telemetry::LINK_TIMEOUT};
use wingbeat_geo::Instant;
use wingbeat_keys::{Held, Keys, Pending, Terms, Validity, counter::Reserve};
use wingbeat_link::{Endpoint, Link, LinkEvent};
use wingbeat_radio::{Budget, Clock, Outage, Radio, RadioEvent, SendError};
use wingbeat_server::Refusals;
use wingbeat_wire::{Claim, Datagram, Draft, Message, Order, Phase, Refused, VehicleId};

use crate::{
    autopilot_logs::{self, Fetcher},
    chrony::{Chrony, Sample},
    flight::KeptFlight,
    flight_setup::{self, FlightSetups},
    gateway::{Gateway, GatewayEvent, Step},
    guard,
    http::{KeysRefusal, OrderRefusal, Request},
    known_autopilot, known_sessions,
    latch::Latch,
    lease::{Granted, Lease, Token},
    links::{self, Links},
    liveness::TaskWatchdog,
    owing::Owing,
    parameters::{self, Parameters},
    recording::Recording,
    regions::{self, Regions},
    requests,
    status::{self, DaemonStatus},
};

/// Between two published states while things move, in agent time.
const PUBLISH_PERIOD: Duration = Duration::from_millis(100);
/// Between two published states of an aircraft at rest: ages still grow, and the watchdog is fed by it.
const PUBLISH_IDLE: Duration = Duration::from_millis(500);
/// However fast agent time runs, no more than 50 states a second are made.
const PUBLISH_LEAST: Duration = Duration::from_millis(20);
/// The kernel's timers tick in milliseconds. An agent that wants waking now, again and again, is woken in
/// this rhythm and cannot keep other inputs waiting.
const TICK: Duration = Duration::from_millis(1);
/// The longest piece handed to the agent in one input: one MAVLink 2 frame. The agent's outputs are bounded for
/// one input, and a read may hold fifteen frames that each ask for an answer.
const PIECE_MAX: usize = 280;
/// No iteration of the loop takes longer, whatever its input: there is one at every published state.
pub(crate) const TURN_MAX: Duration = Duration::from_secs(2);
const _: () = assert!(TURN_MAX.as_millis() > PUBLISH_IDLE.as_millis());
/// Writes that the link's queue keeps free of ground stations': the agent's orders always find room.
const OWN_WRITES: usize = 32;
/// Probes that are sent before other inputs are handled: a driver that was late by a second is not blocked by them.
const PROBES_PER_TURN: usize = 8;
/// Woken later than this after a deadline, the machine is too slow and the operator should know.
const STALL: Duration = Duration::from_millis(500);

/// A clock that differs from its own course by more was set.
const UTC_STEP_US: u64 = 1_000;
/// A driver that stops in flight without a guardian waits so long for LAND to be seen: two requests and
/// three of 3.5.7's heartbeats.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(3);
/// What an operator must know before every flight without keys.
const INSECURE: &str =
    "datagrams are not secured (security.insecure): any transmitter in reach flies this aircraft";
/// Bytes for the autopilot are withheld for so long at most until what they override is on the disk: half of what stops an
/// aircraft whose guided targets stay away. A card takes that in a few hundredths of a second.
const WITHHOLD_MAX: Duration = Duration::from_millis(1_500);
/// On the ground nothing is flown meanwhile, and what asks for a parameter repeats itself for longer.
const WITHHOLD_MAX_DISARMED: Duration = Duration::from_secs(4);
/// And so many: all that an agent sends in that time.
const WITHHELD_LEN_MAX: usize = 16 * 1024;
/// The id of that command.
const STOP_ID: &str = "daemon stops";

/// Where the driver publishes, and under which identity.
pub(crate) struct Publisher {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) status: watch::Sender<Arc<AircraftStatus>>,
    pub(crate) mission: watch::Sender<Option<Arc<MissionUpload>>>,
    pub(crate) log: broadcast::Sender<LogLine>,
    /// What the HTTP server refused.
    pub(crate) refusals: Refusals,
}

/// The mission that an operator uploaded, with its name.
#[derive(Clone, Debug, Default)]
struct UploadedMission {
    name: String,
    hash: Option<u64>,
    /// What of it the protocol does not fly.
    notes: Vec<String>,
}

/// The port to the autopilot, and the guardian client that decides whether it may be open.
pub(crate) struct Port {
    pub(crate) endpoint: Endpoint,
    pub(crate) guard: Option<guard::Client>,
    /// The link task's watchdog, fed by the driver while there is no link.
    pub(crate) watchdog: TaskWatchdog,
}

/// The radio with what its datagrams are sealed and opened with.
pub(crate) struct Air<R> {
    pub(crate) radio: R,
    pub(crate) keys: Keys,
    pub(crate) reserve: Reserve,
    pub(crate) budget: Budget,
    pub(crate) outage: Outage,
}

impl<R: Radio> Air<R> {
    /// Broadcasts, or sends to one radio, within the budget of the datagram's class.
    fn send(&mut self, now: Instant, draft: &mut Draft, to: Option<SocketAddr>) -> Result<(), SendError> {
        let class = draft.class();
        let bytes = self.keys.signer.seal(draft);
        self.budget.take(now, class, bytes.len())?;
        match to {
            Some(radio) => self.radio.send_to(radio, bytes),
            None => self.radio.send(class, bytes),
        }
    }
}

/// Bytes for the autopilot that wait until what they override is on the disk.
struct Withheld {
    written: oneshot::Receiver<std::io::Result<()>>,
    until: KernelInstant,
    pieces: Vec<Vec<u8>>,
}

/// How the writing that is waited for has ended.
async fn kept(withheld: &mut Option<Withheld>) -> Result<(), String> {
    let Some(Withheld { written, until, .. }) = withheld else { return std::future::pending().await };
    match tokio::time::timeout_at(*until, written).await {
        Ok(Ok(written)) => written.map_err(|error| error.to_string()),
        Ok(Err(_)) => Err("no writing thread".into()),
        Err(_) => Err("no end of it in time".into()),
    }
}

/// What came of an input.
struct Fed {
    reply: Option<Reply>,
    /// Whether it asked for datagrams, and all of them left the radio.
    has_left: bool,
}

pub(crate) struct Driver<R> {
    agent: Box<Agent>,
    out: Box<Outputs>,
    clock: Clock,
    port: Port,
    /// None while the guardian has the autopilot.
    link: Option<Link>,
    link_open: bool,
    air: Air<R>,
    requests: requests::Receiver,
    publisher: Publisher,
    watchdog: TaskWatchdog,
    uploaded: UploadedMission,
    /// Hash and name of the mission that was published last.
    held: Option<(u64, String)>,
    daemon: DaemonStatus,
    /// What is wrong with the link, as it was reported last.
    fault: Option<LinkFaultKind>,
    published_at: KernelInstant,
    dirty: bool,
    woken_at: KernelInstant,
    /// Agent time and microseconds since 1970 when the agent was given UTC.
    utc: Option<(Instant, u64)>,
    chrony: Option<Chrony>,
    gateway: Option<Gateway>,
    latch: Latch,
    identity: known_autopilot::Kept,
    sessions: known_sessions::Kept,
    /// What the guardian said of the flight controller's identity last: its id, and whether it has it.
    guards: (u8, bool),
    owing: Owing,
    withheld: Option<Withheld>,
    fetcher: Fetcher,
    flight: KeptFlight,
    recording: Recording,
    /// What is wrong with the flight log, as it was logged last.
    recording_problem: Option<String>,
    lease: Lease,
    parameters: Parameters,
    /// Whether what was asked of them has ended, and the next is due.
    parameters_turn: bool,
    regions: Regions,
    /// Whether the agent waits for something of them.
    regions_turn: bool,
    /// How the route lies in the fence, where the agent does not know it yet.
    verdict: Option<Option<Verdict>>,
    setups: FlightSetups,
    /// Whether the agent was informed that a console holds it.
    leased: bool,
    links: Links,
    /// When the keys hold, and what was logged of that last.
    terms: Option<(Terms, Option<Validity>)>,
    /// Whose connections to the API are admitted.
    known: Option<wingbeat_tls::Identity>,
}

/// The event that ended the driver's wait.
enum Woken {
    Time,
    Guard,
    Kept(Result<(), String>),
    Link(Option<LinkEvent>),
    Radio(Option<RadioEvent>),
    Request(Option<Request>),
    Gateway(GatewayEvent),
    Stop,
}

/// The link's next event; none while there is no link.
async fn received(link: &mut Option<Link>) -> Option<LinkEvent> {
    match link {
        Some(link) => link.recv().await,
        None => std::future::pending().await,
    }
}

/// A token that no other can guess.
fn lease_token() -> Result<Token, ApiError> {
    let mut random = [0; 16];
    match rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::NONBLOCK) {
        Ok(16) => Ok(Token::new(u128::from_le_bytes(random))),
        found => {
            let found = found.map_or_else(|error| error.to_string(), |length| format!("{length} bytes"));
            let message =
                format!("lease: found no random token ({found}), expected 16 random bytes of the kernel");
            Err(ApiError { code: "unavailable".into(), message })
        }
    }
}

/// Why an order is not taken, and whether the same one may be.
fn refused_order(reason: Refused) -> OrderRefusal {
    if matches!(reason, Refused::Replayed | Refused::Stale) {
        let message = format!(
            "order: found it {reason}, expected the newest of its console's program, at most 2 s old, or the first \
                 by a clock that is at most 10 min behind UTC; cure: set the console's clock, and send it again"
        );
        return OrderRefusal::Conflict(ApiError { code: "replayed".into(), message });
    }
    let message =
        format!("order: found {reason}, expected an order for this aircraft, of a console that may give it");
    OrderRefusal::Forbidden(ApiError { code: "forbidden".into(), message })
}

/// The state of an agent before anything happened.
pub(crate) fn first_status(
    agent: &Agent,
    clock: &Clock,
    name: &str,
    is_secured: bool,
    setups: &FlightSetups,
) -> AircraftStatus {
    let flight_setup = Some(setups.now(agent.coordination()));
    let daemon = DaemonStatus { is_secured, flight_setup, ..DaemonStatus::new() };
    status::aircraft(&agent.status(clock.now()), name, None, &daemon)
}

fn keys_of(terms: &Terms, latest_s: i64) -> api::Keys {
    api::Keys {
        epoch: terms.epoch,
        serial: terms.serial,
        issued: terms.issued.to_string(),
        expires: terms.expires.to_string(),
        validity: match terms.validity(latest_s) {
            Validity::Valid => KeysValidity::Valid,
            Validity::Expired => KeysValidity::Expired,
            Validity::ClockNotSet => KeysValidity::ClockNotSet,
        },
    }
}

/// What a ground station sent, where any is served.
async fn gateway_event(gateway: &mut Option<Gateway>) -> GatewayEvent {
    match gateway {
        Some(gateway) => gateway.recv().await,
        None => std::future::pending().await,
    }
}

impl<R: Radio> Driver<R> {
    pub(crate) fn new(
        agent: Box<Agent>,
        clock: Clock,
        port: Port,
        air: Air<R>,
        requests: requests::Receiver,
        publisher: Publisher,
        watchdog: TaskWatchdog,
    ) -> Self {
        let now = KernelInstant::now();
        let links = Links::new(agent.id(), None, air.keys.signer.signature_len());
        let setups = FlightSetups::new(agent.coordination().clone(), Default::default());
        Self {
            setups,
            agent,
            out: Box::default(),
            clock,
            port,
            link: None,
            link_open: false,
            air,
            requests,
            publisher,
            watchdog,
            uploaded: UploadedMission::default(),
            held: None,
            daemon: DaemonStatus::new(),
            fault: None,
            published_at: now,
            dirty: false,
            woken_at: now,
            utc: None,
            chrony: None,
            gateway: None,
            latch: Latch::default(),
            identity: known_autopilot::Kept::default(),
            sessions: known_sessions::Kept::default(),
            guards: (0, false),
            owing: Owing::default(),
            withheld: None,
            fetcher: Fetcher::new(None, 0, None),
            flight: KeptFlight::default(),
            recording: Recording::Off(None),
            recording_problem: None,
            lease: Lease::default(),
            parameters: Parameters::new(crate::unix_us()),
            parameters_turn: false,
            regions: Regions::default(),
            regions_turn: false,
            verdict: None,
            leased: false,
            links,
            terms: None,
            known: None,
        }
    }

    /// Runs until it is stopped.
    pub(crate) async fn run(mut self, stop: watch::Receiver<bool>) {
        self.fly(stop).await;
        self.recording.end().await;
    }

    async fn fly(&mut self, mut stop: watch::Receiver<bool>) {
        let (mut radio_ended, mut requests_ended) = (false, false);
        if let Some(problem) = self.latch.problem().map(str::to_owned) {
            self.log(Severity::Error, problem);
        }
        if let Some(problem) = self.flight.problem().map(str::to_owned) {
            self.log(Severity::Warning, problem);
        }
        if let Some(problem) = self.setups.problem().map(str::to_owned) {
            self.log(Severity::Error, problem);
        }
        if let Some(problem) = self.air.reserve.problem().map(str::to_owned) {
            self.log(Severity::Error, problem);
        }
        if !self.air.keys.roster.is_secured() {
            self.log(Severity::Error, INSECURE.into());
        }
        self.air.radio.screen(self.air.keys.roster.screen());
        self.state_keys();
        // First: with each other input what is kept becomes what this agent knows of.
        for problem in self.owing.problems().to_vec() {
            self.log(Severity::Error, problem);
        }
        for owed in self.owing.kept().to_vec() {
            self.feed_owed(owed);
        }
        if let Some(problem) = self.sessions.problem().map(str::to_owned) {
            self.log(Severity::Warning, problem);
        }
        for known in self.sessions.kept().to_vec() {
            self.feed(Input::KnownSession(known));
        }
        if let Some(by) = self.latch.kept().map(str::to_owned) {
            self.log(Severity::Warning, "a pilot had the aircraft before the restart".into());
            self.feed(Input::TakenBefore { by: &by });
        }
        if let Some(record) = self.flight.take() {
            self.feed(Input::Flight(&record));
        }
        if let Some(problem) = self.identity.problem().map(str::to_owned) {
            self.log(Severity::Warning, problem);
        }
        if let Some(known) = self.identity.kept() {
            self.feed(Input::KnownAutopilot { known, is_held: false });
        }
        self.heed_identity();
        self.heed(self.port.guard.as_ref().and_then(guard::Client::answer));
        loop {
            self.watchdog.feed();
            if let Some(guard) = &self.port.guard {
                guard.turned();
            }
            self.update_utc();
            if let Some(line) = self.air.reserve.keep_ahead(self.agent.counter()) {
                self.log(Severity::Error, line);
            }
            if self.link.is_none() {
                // The guardian has the port: there is no link task that could hang.
                self.port.watchdog.feed();
            }
            let (deadline, why) = self.agent.poll_timeout();
            let wake_at = self.clock.kernel(deadline).max(self.woken_at + TICK);
            let publish_at = self.publish_at();
            let gateway_at = self.gateway.as_ref().map_or(publish_at, |g| self.clock.kernel(g.due()));
            let links_at = self.clock.kernel(self.links.due());
            let recording_at = self.recording.due().map_or(publish_at, |due| self.clock.kernel(due));
            let lease_at = self.lease.ends_at().unwrap_or(publish_at);
            let fetcher_at = self.clock.kernel(self.fetcher.due(self.clock.now()));
            let other_at =
                publish_at.min(fetcher_at).min(links_at).min(gateway_at).min(recording_at).min(lease_at);
            let woken = tokio::select! {
                event = received(&mut self.link) => Woken::Link(event),
                () = guard::ready(self.port.guard.as_ref()) => Woken::Guard,
                written = kept(&mut self.withheld) => Woken::Kept(written),
                event = self.air.radio.recv(), if !radio_ended => Woken::Radio(event),
                request = self.requests.recv(), if !requests_ended => Woken::Request(request),
                () = sleep_until(wake_at.min(other_at)) => Woken::Time,
                event = gateway_event(&mut self.gateway) => Woken::Gateway(event),
                _ = stop.wait_for(|&stop| stop) => Woken::Stop,
            };
            match woken {
                Woken::Time if KernelInstant::now() >= wake_at => {
                    self.notice_stall(wake_at, why);
                    self.woken_at = KernelInstant::now();
                    self.feed(Input::Wake);
                }
                Woken::Time => self.recording.turn(self.clock.now()),
                Woken::Link(Some(event)) => self.link_event(event),
                Woken::Guard => self.poll_guard(),
                Woken::Kept(written) => self.release(written),
                Woken::Radio(Some(RadioEvent::Datagram { from, bytes: datagram })) => {
                    let now = self.clock.now();
                    let admits = |claim: &_| self.agent.admits(now, claim);
                    let opened = self.air.keys.roster.open_if(&datagram, admits);
                    self.feed(Input::Datagram(opened));
                    if let Some((sender, probe)) = self.out.probe.take() {
                        self.links.on_probe(now, (sender, from), &probe, self.agent.motion(now));
                    }
                }
                Woken::Radio(Some(RadioEvent::Up)) => {
                    self.daemon.radio_down = None;
                    self.log(Severity::Info, "the radio is up".into());
                }
                Woken::Radio(Some(RadioEvent::Down { reason })) => {
                    self.daemon.radio_down = Some(reason.clone());
                    self.log(Severity::Warning, reason);
                }
                Woken::Radio(None) => {
                    radio_ended = true;
                    let reason = "the radio has ended: found no task, expected one";
                    self.daemon.radio_down = Some(reason.into());
                    self.log(Severity::Error, reason.into());
                }
                Woken::Request(Some(Request::Command { request, lease, reply })) => {
                    // A console that disconnected asks again.
                    let _ = reply.send(self.command(request, lease.as_deref()));
                }
                Woken::Request(Some(Request::Mission { mission, from, lease, reply })) => {
                    self.mission(mission, from, lease.as_deref(), reply);
                }
                Woken::Request(Some(Request::Order { sealed, from, lease, reply })) => {
                    // A console that disconnected asks again.
                    let _ = reply.send(self.order(&sealed, from, lease.as_deref()));
                }
                Woken::Request(Some(Request::Lease { console, from, ttl, token, take_over, reply })) => {
                    // A console that disconnected asks again.
                    let _ = reply.send(self.take_lease((&console, from), ttl, (token.as_deref(), take_over)));
                }
                Woken::Request(Some(Request::Links(ask))) => self.links(ask),
                Woken::Request(Some(Request::Parameters(ask))) => self.parameters(ask),
                Woken::Request(Some(Request::AutopilotLogs(ask))) => self.autopilot_logs(ask),
                Woken::Request(Some(Request::Region(ask))) => self.regions(ask),
                Woken::Request(Some(Request::FlightSetup(ask))) => self.flight_setup(ask),
                Woken::Request(Some(Request::Keys { pending, reply })) => {
                    // A console that disconnected asks again.
                    let _ = reply.send(self.take_keys(*pending));
                }
                Woken::Request(None) => requests_ended = true,
                Woken::Gateway(event) => self.gateway_event(event),
                // Without its link's task the driver is of no use: the process ends, and is started again.
                Woken::Link(None) => return,
                Woken::Stop => return self.leave_safe().await,
            }
            self.turn_gateway();
            self.turn_links();
            self.turn_clock();
            self.turn_parameters();
            self.turn_autopilot_logs();
            self.turn_regions();
            if KernelInstant::now() >= self.publish_at() {
                self.publish();
            }
        }
    }

    /// Hands the agent UTC: at the start, and when the clock was set. Where agent time runs faster than the kernel's, UTC
    /// does too.
    fn update_utc(&mut self) {
        if self.utc.is_some() && self.clock.speed() != 1.0 {
            return;
        }
        let Ok(since_1970) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) else { return };
        let (now, unix_us) = (self.clock.now(), since_1970.as_micros() as u64);
        let expected_us = self.utc.map(|(at, us)| us + now.since(at).as_micros() as u64);
        if expected_us.is_none_or(|expected_us| expected_us.abs_diff(unix_us) > UTC_STEP_US) {
            self.utc = Some((now, unix_us));
            self.feed(Input::Utc { unix_us });
        }
    }

    /// Offers chronyd GNSS time.
    fn turn_clock(&mut self) {
        let at = KernelInstant::now();
        if self.clock.speed() != 1.0 || !self.chrony.as_ref().is_some_and(|chrony| chrony.is_due(at)) {
            return;
        }
        let (unix_us, gnss) = (crate::unix_us(), self.agent.gnss_time(self.clock.now()));
        let (Some(chrony), Some(GnssTime { unix_us: gnss_us, error_us })) = (&mut self.chrony, gnss) else {
            return;
        };
        let sample = Sample { unix_us, ahead_us: (unix_us as i64).saturating_sub(gnss_us as i64), error_us };
        if let Some((severity, line)) = chrony.offer(at, sample, self.agent.is_armed()) {
            self.log(severity, line);
        }
    }

    /// Gives chronyd GNSS time, at its socket.
    pub(crate) fn setting_clock(self, socket: Option<&Path>) -> Self {
        let chrony = socket.and_then(|path| Chrony::new(path).ok());
        Self { chrony, ..self }
    }

    /// Admits who proves that a member of the fleet is at the other end.
    pub(crate) fn admitting(self, known: Option<wingbeat_tls::Identity>) -> Self {
        Self { known, ..self }
    }

    /// Keeps over a restart that a pilot has the aircraft, and what the swarm's flight is.
    pub(crate) fn keeping(self, latch: Latch, flight: KeptFlight) -> Self {
        Self { latch, flight, ..self }
    }

    /// Keeps over a restart which flight controller is this aircraft's, and the newest order of each
    /// console's program.
    pub(crate) fn knowing(self, identity: known_autopilot::Kept, sessions: known_sessions::Kept) -> Self {
        Self { identity, sessions, ..self }
    }

    /// Keeps over a restart what is owed to the pilot.
    pub(crate) fn owing(self, owing: Owing) -> Self {
        Self { owing, ..self }
    }

    /// Sets the flight up as operators do.
    pub(crate) fn setting_up(self, setups: FlightSetups) -> Self {
        Self { setups, ..self }
    }

    /// Fetches the flight controller's own logs.
    pub(crate) fn fetching(self, fetcher: Fetcher) -> Self {
        Self { fetcher, ..self }
    }

    /// Logs the flight.
    pub(crate) fn recording(self, recording: Recording) -> Self {
        Self { recording, ..self }
    }

    /// Broadcasts probes of the links.
    pub(crate) fn probing(self, period: Option<Duration>) -> Self {
        let links = Links::new(self.agent.id(), period, self.air.keys.signer.signature_len());
        Self { links, ..self }
    }

    /// Serves ground stations through the gateway; `open` warns of one that others reach and that asks for no key.
    pub(crate) fn serving(mut self, gateway: Option<Gateway>, open: Option<String>) -> Self {
        self.daemon.open_gateway = open;
        Self { gateway, ..self }
    }

    /// Holds keys of a fleet, which expire.
    pub(crate) fn holding(self, terms: Option<Terms>) -> Self {
        Self { terms: terms.map(|terms| (terms, None)), ..self }
    }

    /// Another bundle came: on the ground it replaces the keys, from the next datagram on.
    fn take_keys(&mut self, pending: Pending) -> Result<api::Keys, KeysRefusal> {
        let view = self.agent.view();
        let (is_armed, phase) = (self.agent.status(self.clock.now()).flight_controller.armed, view.phase);
        if is_armed || !matches!(phase, Phase::Start | Phase::Finished | Phase::Aborted) {
            let found = if is_armed { "motors armed".to_owned() } else { format!("state {}", view.state) };
            let message = format!(
                "keys: found {found}, expected an aircraft on the ground before a flight: in another epoch it receives no other"
            );
            return Err(KeysRefusal::Conflict(ApiError { code: "conflict".into(), message }));
        }
        let Held { keys, terms } = pending.commit().map_err(KeysRefusal::NotTaken)?;
        self.air.keys = keys;
        self.air.radio.screen(self.air.keys.roster.screen());
        if let Some(known) = &self.known {
            known.renew(&self.air.keys.roster);
        }
        // Its console may have been left out; another takes it anew.
        self.lease = Lease::default();
        self.terms = Some((terms, None));
        self.log(Severity::Info, format!("took keys of the fleet: {terms}"));
        self.state_keys();
        Ok(keys_of(&terms, self.latest_s()))
    }

    /// Seconds since 1970 by the later of this computer's clock and GNSS, by which keys expire.
    fn latest_s(&self) -> i64 {
        let latest_us = self.agent.latest_us(self.clock.now()).unwrap_or(0).max(crate::unix_us());
        i64::try_from(latest_us / 1_000_000).unwrap_or(i64::MAX)
    }

    /// Informs the agent when the keys hold.
    fn state_keys(&mut self) {
        let Some((terms, _)) = &self.terms else { return };
        let [from_unix_us, until_unix_us] =
            [terms.issued, terms.expires].map(|at| u64::try_from(at.as_microsecond()).unwrap_or_default());
        self.feed(Input::KeysHold { from_unix_us, until_unix_us });
    }

    /// Logs once when the keys have expired, or the clock does not show whether they have.
    fn check_keys(&mut self) {
        let latest_s = self.latest_s();
        let Some((terms, logged)) = &mut self.terms else { return };
        let validity = terms.validity(latest_s);
        if logged.replace(validity) == Some(validity) {
            return;
        }
        let terms = *terms;
        match validity {
            Validity::Valid => self.log(Severity::Info, format!("keys of the fleet: {terms}")),
            Validity::Expired => {
                let line = format!(
                    "keys: found {terms}, which is over, expected a bundle that holds: no setup begins"
                );
                self.log(Severity::Error, line);
            }
            Validity::ClockNotSet => {
                let line = format!(
                    "keys: found a clock before {}, when they were issued, expected one that is set: whether they have expired is not known",
                    terms.issued
                );
                self.log(Severity::Warning, line);
            }
        }
    }

    /// A ground station sent something. The agent is informed of every command before its bytes leave.
    fn gateway_event(&mut self, event: GatewayEvent) {
        let Some(mut gateway) = self.gateway.take() else { return };
        let circumstances =
            Circumstances { system_id: self.agent.system_id(), leased: self.lease_holder().is_some() };
        gateway.take(event, self.clock.now(), circumstances, &mut |step| match step {
            Step::Command(what) => {
                self.feed(Input::GroundStation { what });
                true
            }
            Step::Write(bytes) => {
                let room = |link: &&Link| link.room() > OWN_WRITES;
                self.link_open
                    && self.link.as_ref().filter(room).is_some_and(|link| link.send(bytes.to_vec()).is_ok())
            }
            Step::Log(line) => {
                self.log(Severity::Info, line);
                true
            }
        });
        self.gateway = Some(gateway);
        self.dirty = true;
    }

    /// Handles deadlines outside the agent: the gateway's heartbeat, and a lease that has ended.
    fn turn_gateway(&mut self) {
        if let Some(console) = self.lease.expire(KernelInstant::now()) {
            self.log(Severity::Warning, format!("the lease of console {console:?} has ended"));
        }
        let held = self.lease_holder().is_some();
        if std::mem::replace(&mut self.leased, held) != held {
            self.feed(Input::Lease(held));
        }
        if let Some(mut gateway) = self.gateway.take() {
            let (now, system_id) = (self.clock.now(), self.agent.system_id());
            gateway.poll(now, system_id, &mut |line| self.log(Severity::Info, line));
            self.gateway = Some(gateway);
        }
    }

    /// Sends the probes that are due.
    fn turn_links(&mut self) {
        for _ in 0..PROBES_PER_TURN {
            let now = self.clock.now();
            if now < self.links.due() {
                return;
            }
            if let Some(line) = self.links.expire(now) {
                self.log(Severity::Info, line);
            }
            let own = self.agent.motion(now);
            let Some(links::Due { order, to }) = self.links.poll(now, own) else { continue };
            if self.feed_to(Input::Probe(order), to).has_left {
                self.links.on_sent(now, order, own);
            }
        }
    }

    /// What the API asks of the links. A console that disconnected does not read the answer.
    fn links(&mut self, ask: links::Ask) {
        let now = self.clock.now();
        match ask {
            links::Ask::Links(reply) => drop(reply.send(self.links.report(now))),
            links::Ask::Begin { test, lease, from, reply } => {
                let checked = self.check_lease(lease.as_deref(), from, &"a link test");
                let begun = checked.and_then(|()| self.links.begin(now, test, self.agent.motion(now)));
                match &begun {
                    Ok(LinkTestReport { test, role, .. }) => {
                        let number = test.number.unwrap_or(0);
                        let LinkTestRequest { sender, rate_hz, payload_bytes, seconds, .. } = test;
                        let line = format!(
                            "link test {number}, {role:?}: {payload_bytes} bytes at {rate_hz} Hz for {seconds} s from {sender}"
                        );
                        self.log(Severity::Info, line);
                    }
                    Err(error) => self.log(Severity::Warning, format!("refused: {}", error.message)),
                }
                drop(reply.send(begun));
            }
            links::Ask::End(reply) => {
                self.end_link_test("ended over the API");
                drop(reply.send(self.links.test_report(now)));
            }
            links::Ask::Report(reply) => drop(reply.send(self.links.test_report(now))),
            links::Ask::Rows { from, reply } => drop(reply.send(self.links.rows(from))),
        }
    }

    /// Why the flight controller's logs cannot be fetched now, where they cannot.
    fn keeps_from_logs(&self) -> Option<String> {
        let view = self.agent.view();
        if self.agent.is_armed() {
            return Some("found motors armed, expected an aircraft on the ground".into());
        }
        let is_on_ground = matches!(view.phase, Phase::Start | Phase::Finished | Phase::Aborted);
        (!is_on_ground)
            .then(|| format!("found state {}, expected an aircraft before or after a flight", view.state))
    }

    /// What the API asks of the flight controller's logs. A console that disconnected does not read the answer.
    fn autopilot_logs(&mut self, ask: autopilot_logs::Ask) {
        match ask {
            autopilot_logs::Ask::Progress(reply) => drop(reply.send(self.fetcher.progress())),
            autopilot_logs::Ask::Begin { newest, reply } => {
                let begun = match self.keeps_from_logs() {
                    Some(why) => {
                        let message = format!("flight controller's logs: {why}");
                        Err(ApiError { code: "conflict".into(), message })
                    }
                    None => self.fetcher.begin(self.clock.now(), newest),
                };
                drop(reply.send(begun));
            }
        }
    }

    /// Continues to fetch the flight controller's logs: not into a flight.
    fn turn_autopilot_logs(&mut self) {
        let now = self.clock.now();
        if self.fetcher.is_active()
            && let Some(why) = self.keeps_from_logs()
            && let Some(line) = self.fetcher.stop(now, &why)
        {
            self.log(Severity::Warning, line);
        }
        if !self.fetcher.is_active() && now < self.fetcher.due(now) {
            return;
        }
        if let Some(line) = self.fetcher.turn(now) {
            self.log(Severity::Warning, line);
        }
        let room = |link: &&Link| link.room() > OWN_WRITES;
        let Some(link) = self.link.as_ref().filter(room).filter(|_| self.link_open) else { return };
        if let Some(system_id) = self.agent.system_id() {
            let bytes = self.fetcher.poll(now, system_id, crate::unix_us());
            // What a link does not take is requested again.
            if !bytes.is_empty() && link.send(bytes).is_err() {
                self.daemon.unwritten += 1;
            }
        }
    }

    /// What the API asks of the parameters. A console that disconnected does not read the answer.
    fn parameters(&mut self, ask: parameters::Ask) {
        let now = self.clock.now();
        match ask {
            parameters::Ask::Table(reply) => drop(reply.send(self.parameters.table(now))),
            parameters::Ask::Progress(reply) => drop(reply.send(self.parameters.progress(now))),
            parameters::Ask::Read(reply) => {
                let begun = self.with_parameters(|parameters, begin| parameters.read(begin));
                drop(reply.send(begun));
            }
            parameters::Ask::Write { set, lease, from, reply } => {
                let count = set.len();
                let checked = self.check_lease(lease.as_deref(), from, &"parameters");
                let begun = checked
                    .and_then(|()| self.with_parameters(|parameters, begin| parameters.write(set, begin)));
                match &begun {
                    Ok(_) => self.log(Severity::Info, format!("parameters: sets {count}")),
                    Err(error) => self.log(Severity::Warning, format!("refused: {}", error.message)),
                }
                drop(reply.send(begun));
            }
        }
    }

    /// Lets them ask the agent.
    fn with_parameters(
        &mut self,
        act: impl FnOnce(&mut Parameters, &mut dyn FnMut(ParameterOrder) -> Option<Reply>) -> Result<(), ApiError>,
    ) -> Result<ParameterProgress, ApiError> {
        let mut parameters = std::mem::take(&mut self.parameters);
        let done = act(&mut parameters, &mut |order| self.feed(Input::Parameters(order)));
        self.parameters = parameters;
        done.map(|()| self.parameters.progress(self.clock.now()))
    }

    /// Sets the next parameter.
    fn turn_parameters(&mut self) {
        if std::mem::take(&mut self.parameters_turn) {
            let _ = self.with_parameters(|parameters, begin| {
                parameters.go_on(begin);
                Ok(())
            });
        }
    }

    /// What the API asks of fence and rally points. A console that disconnected does not read the answer.
    fn regions(&mut self, ask: regions::Ask) {
        match ask {
            regions::Ask::State(reply) => drop(reply.send(self.regions.state(self.clock.now()))),
            regions::Ask::Read(reply) => {
                let begun = self.with_regions(|regions, begin| regions.read(begin));
                drop(reply.send(begun));
            }
            regions::Ask::Write { lists, lease, from, reply } => {
                let checked = self.check_lease(lease.as_deref(), from, &"fence and rally points");
                let (home, route) = (self.agent.stands_at(), self.agent.route().to_vec());
                let begun = checked.and_then(|()| {
                    self.with_regions(|regions, begin| regions.write(&lists, home, &route, begin))
                });
                match &begun {
                    Ok(_) => self.log(Severity::Info, "fence and rally points: sends them".into()),
                    Err(error) => self.log(Severity::Warning, format!("refused: {}", error.message)),
                }
                drop(reply.send(begun));
            }
        }
    }

    /// What the API asks of the flight's set-up. A console that disconnected does not read the answer.
    fn flight_setup(&mut self, ask: flight_setup::Ask) {
        match ask {
            flight_setup::Ask::State(reply) => drop(reply.send(self.setups.state(self.agent.coordination()))),
            flight_setup::Ask::Write { setup, lease, from, reply } => {
                let checked = self.check_lease(lease.as_deref(), from, &"the flight's set-up");
                let done = checked.and_then(|()| self.set_flight_up(setup.map(|setup| *setup)));
                if let Err(error) = &done {
                    self.log(Severity::Warning, format!("flight set-up refused: {}", error.message));
                }
                drop(reply.send(done));
            }
        }
    }

    fn set_flight_up(&mut self, setup: Option<FlightSetup>) -> Result<FlightSetupState, ApiError> {
        let conflict = |message: String| ApiError { code: "conflict".into(), message };
        let flight = self
            .setups
            .coordination(setup.as_ref())
            .map_err(|message| ApiError { code: "bad_request".into(), message })?;
        match self.feed(Input::Coordination(&flight)) {
            Some(Reply::Accepted | Reply::AlreadyKnown) => {}
            Some(Reply::Refused(why)) => return Err(conflict(why.to_string())),
            None => return Err(conflict("the agent did not answer".into())),
        }
        let source = if setup.is_some() { "an operator" } else { "the configuration" };
        self.setups.note(setup);
        let state = self.setups.state(self.agent.coordination());
        self.log(Severity::Info, format!("the flight is set up by {source}: {}", state.setup));
        self.publish();
        Ok(state)
    }

    /// Lets them ask the agent.
    fn with_regions(
        &mut self,
        act: impl FnOnce(&mut Regions, &mut dyn FnMut(RegionOrder) -> Option<Reply>) -> Result<(), ApiError>,
    ) -> Result<RegionState, ApiError> {
        let mut regions = std::mem::take(&mut self.regions);
        let done = act(&mut regions, &mut |order| self.feed(Input::Region(order)));
        self.regions = regions;
        done.map(|()| self.regions.state(self.clock.now()))
    }

    /// Hands the agent the points that it waits for, and how the route lies in the fence.
    fn turn_regions(&mut self) {
        if std::mem::take(&mut self.regions_turn) {
            let _ = self.with_regions(|regions, begin| {
                regions.go_on(begin);
                Ok(())
            });
        }
        if let Some(verdict) = self.verdict.take() {
            self.feed(Input::Region(RegionOrder::Judged(verdict)));
        }
    }

    fn end_link_test(&mut self, why: &str) {
        if let Some(line) = self.links.end(self.clock.now(), why) {
            self.log(Severity::Info, line);
        }
    }

    fn lease_holder(&self) -> Option<(&str, Duration)> {
        self.lease.holder(KernelInstant::now())
    }

    fn take_lease(
        &mut self,
        (console, from): (&str, Option<VehicleId>),
        ttl: Duration,
        asks: (Option<&str>, bool),
    ) -> Result<LeaseGrant, ApiError> {
        let now = KernelInstant::now();
        let new = lease_token()?;
        match self.lease.take(now, (console, from), ttl, asks, &new) {
            Ok(granted) => {
                let is_new = granted != Granted::Renewed;
                match granted {
                    Granted::Taken => {
                        self.log(Severity::Info, format!("console {console:?} holds the lease"))
                    }
                    Granted::TakenOver(of) => {
                        let line = format!("console {console:?} takes the lease over from console {of:?}");
                        self.log(Severity::Warning, line);
                    }
                    Granted::Renewed => {}
                }
                self.dirty = true;
                let token = is_new.then(|| new.as_str().to_owned());
                Ok(LeaseGrant { console: console.into(), left_ms: ttl.as_millis() as u64, token })
            }
            Err((holder, left)) => {
                let left_ms = left.as_millis();
                let message = format!(
                    "lease: found it held by console {holder:?} for {left_ms} ms more, expected it free, or its token"
                );
                Err(ApiError { code: "conflict".into(), message })
            }
        }
    }

    /// Hands the agent what the last daemon owed. What is kept changes when the agent has all of it.
    fn feed_owed(&mut self, owed: Owed) {
        let owing = std::mem::take(&mut self.owing);
        self.feed(Input::Owed(owed));
        self.owing = owing;
    }

    /// What overrides the pilot's parameters leaves now that these are kept, or cannot be: the aircraft needs its orders.
    fn release(&mut self, written: Result<(), String>) {
        let Some(Withheld { pieces, .. }) = self.withheld.take() else { return };
        if let Err(found) = written {
            let line = format!(
                "owed-parameters: found {found}, expected to keep what is owed to the pilot: a restart of the companion forgets it"
            );
            self.log(Severity::Error, line);
        }
        for piece in pieces {
            self.send(piece);
        }
    }

    /// Bytes for the autopilot. A closed port has no reader, and what waits for it to open would be stale.
    fn send(&mut self, bytes: Vec<u8>) {
        if self.link_open && self.link.as_ref().is_some_and(|link| link.send(bytes).is_err()) {
            self.daemon.unwritten += 1;
        }
    }

    /// Hands an input to the agent and performs its outputs; the answer is returned.
    fn feed(&mut self, input: Input<'_>) -> Option<Reply> {
        self.feed_to(input, None).reply
    }

    /// The same; its datagrams go to one radio where one is named.
    fn feed_to(&mut self, input: Input<'_>, to: Option<SocketAddr>) -> Fed {
        let now = self.clock.now();
        self.agent.handle(now, input, &mut self.out);
        self.recording.record(now, &input, &self.agent, &self.out);
        self.dirty = true;
        // Before the bytes leave: the guardian must know what we requested.
        if let Some(guard) = &mut self.port.guard {
            guard.send_change(self.agent.pulse(now));
        }
        if let Some(written) = self.owing.keep(&self.agent.owed()) {
            let pieces = self.withheld.take().map(|withheld| withheld.pieces).unwrap_or_default();
            let most = if self.agent.is_armed() { WITHHOLD_MAX } else { WITHHOLD_MAX_DISARMED };
            self.withheld = Some(Withheld { written, until: KernelInstant::now() + most, pieces });
        }
        if !self.out.autopilot.is_empty() {
            let bytes = self.out.autopilot.to_vec();
            match &mut self.withheld {
                None => self.send(bytes),
                Some(Withheld { pieces, .. })
                    if pieces.iter().map(Vec::len).sum::<usize>() + bytes.len() <= WITHHELD_LEN_MAX =>
                {
                    pieces.push(bytes);
                }
                Some(_) => self.daemon.unwritten += 1,
            }
        }
        let (mut lines, mut has_left) = (vec![], !self.out.datagrams.is_empty());
        for draft in &mut self.out.datagrams {
            match self.air.send(now, draft, to) {
                Ok(()) => lines.extend(self.air.outage.left(now).map(|line| (Severity::Info, line))),
                Err(error) => {
                    has_left = false;
                    let line = self.air.outage.failed(now, &error);
                    lines.extend(line.map(|line| (Severity::Warning, line)));
                    let name = error.name();
                    match self.daemon.unsent.iter_mut().find(|(reason, _)| *reason == name) {
                        Some((_, count)) => *count += 1,
                        None => self.daemon.unsent.push((name, 1)),
                    }
                }
            }
        }
        for (severity, line) in lines {
            self.log(severity, line);
        }
        self.latch.keep(self.agent.taken_by_pilot().map(|by| by.as_str()));
        self.identity.keep(self.agent.known_autopilot());
        self.sessions.keep(self.agent.known_sessions());
        self.flight.keep(self.agent.view().state, || self.agent.flight_record());
        let log = std::mem::take(&mut self.out.log);
        let has_logged = !log.is_empty();
        for entry in log {
            self.log(entry.severity, entry.text.as_str().into());
        }
        if !self.out.parameters.is_empty() {
            self.parameters_turn |= self.parameters.take(now, &self.out.parameters);
        }
        if !self.out.regions.is_empty() {
            self.regions_turn |= self.regions.take(now, &self.out.regions);
        }
        let reply = self.out.reply.take();
        if has_logged || reply.is_some() {
            self.publish();
        }
        // What ends a flight ends what takes of its air.
        if self.out.accepted.take().is_some_and(Command::recovers) {
            self.end_link_test("a command that recovers");
        }
        Fed { reply, has_left }
    }

    /// A pulse is due, or the guardian sent an answer.
    fn poll_guard(&mut self) {
        let pulse = self.agent.pulse(self.clock.now());
        let Some(guard) = &mut self.port.guard else { return };
        let answer = guard.poll(pulse);
        self.heed_identity();
        if let Some(answer) = answer {
            self.heed(answer);
        }
    }

    /// The guardian knows which flight controller is this aircraft's, or receives it.
    fn heed_identity(&mut self) {
        let Some(guard) = &self.port.guard else { return };
        let said = (guard.system_id(), guard.guardian_holds());
        let (system_id, is_held) = said;
        if std::mem::replace(&mut self.guards, said) == said || system_id == 0 {
            return;
        }
        // In a hold it flies.
        let known = KnownAutopilot { system_id, is_armed: is_held };
        self.feed(Input::KnownAutopilot { known, is_held });
    }

    /// The guardian's answer changed: one of us has the autopilot, never both.
    fn heed(&mut self, answer: Option<Answer>) {
        self.feed(Input::Guard(answer));
        let guardian_holds = answer.is_some_and(|answer| answer.stance.holds());
        if guardian_holds && self.link.take().is_some() {
            self.log(Severity::Error, "the guardian took the flight controller: closing our port".into());
            if std::mem::take(&mut self.link_open) {
                self.feed(Input::AutopilotLink(false));
            }
        } else if !guardian_holds && self.link.is_none() {
            let before = self.port.guard.as_ref().map(guard::Client::before).unwrap_or_default();
            self.feed(Input::Before(before));
            let watchdog = self.port.watchdog.clone();
            let endpoint = self.port.endpoint.clone();
            self.link =
                Some(Link::spawn_with(endpoint, wingbeat_link::Backoff::default(), move || watchdog.feed()));
        }
    }

    /// Before the driver ends: an aircraft that it commands is left to the guardian, which learns it
    /// from the last pulse, or is ordered to land.
    async fn leave_safe(&mut self) {
        self.release(Err("the end of the daemon".into()));
        if self.agent.pulse(self.clock.now()).activity != Activity::Commanding
            || self.agent.companion_loss() == CompanionLoss::EndsWithIt
        {
            return;
        }
        if self
            .port
            .guard
            .as_ref()
            .and_then(guard::Client::answer)
            .is_some_and(|a| a.stance == Stance::Watching)
        {
            return self.log(Severity::Warning, "stopping in flight: the guardian takes the aircraft".into());
        }
        self.log(Severity::Warning, "stopping in flight without a guardian: asking for LAND".into());
        let command = Input::Operator { id: STOP_ID, command: Command::Land };
        if let Some(Reply::Refused(why)) = self.feed(command) {
            return self.log(Severity::Error, format!("the landing was refused: {why}"));
        }
        let until = KernelInstant::now() + LEAVE_TIMEOUT;
        while KernelInstant::now() < until {
            self.watchdog.feed();
            let pending = |c: &CommandProgress| c.id.as_str() == STOP_ID && c.stage == Stage::Accepted;
            if !self.agent.status(self.clock.now()).commands.iter().any(pending) {
                return self.log(Severity::Warning, "the aircraft is landing".into());
            }
            let wake_at = self.clock.kernel(self.agent.poll_timeout().0).max(self.woken_at + TICK);
            tokio::select! {
                event = received(&mut self.link) => match event {
                    Some(event) => self.link_event(event),
                    None => return,
                },
                () = sleep_until(wake_at.min(until)) => {
                    self.woken_at = KernelInstant::now();
                    self.feed(Input::Wake);
                }
            }
        }
        let seconds = LEAVE_TIMEOUT.as_secs();
        self.log(Severity::Error, format!("LAND was not seen within {seconds} s: the aircraft may fly on"));
    }

    fn link_event(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Up => {
                self.link_open = true;
                self.daemon.port_closed = None;
                if let Some(gateway) = &mut self.gateway {
                    gateway.restart();
                }
                self.log(Severity::Info, "the port to the flight controller opened".into());
                self.feed(Input::AutopilotLink(true));
            }
            LinkEvent::Bytes(bytes) => {
                self.daemon.bytes_at = Some(self.clock.now());
                if let Some(gateway) = &mut self.gateway {
                    gateway.autopilot(self.clock.now(), &bytes);
                }
                let system_id = self.agent.system_id().unwrap_or(0);
                let bytes = self.fetcher.filter(self.clock.now(), system_id, bytes);
                for piece in bytes.chunks(PIECE_MAX) {
                    self.feed(Input::Autopilot(piece));
                }
            }
            LinkEvent::Down { reason } => {
                self.daemon.port_closed = Some(reason.clone());
                self.log(Severity::Warning, reason);
                if let Some(withheld) = &mut self.withheld {
                    withheld.pieces.clear();
                }
                if std::mem::take(&mut self.link_open) {
                    self.feed(Input::AutopilotLink(false));
                }
            }
        }
    }

    fn command(&mut self, request: CommandRequest, lease: Option<&str>) -> Result<CommandReply, ApiError> {
        let CommandRequest { id, command } = request;
        if command.needs_lease() {
            self.check_lease(lease, None, &format_args!("{command}"))?;
        }
        let answer = self.feed(Input::Operator { id: &id, command });
        Ok(self.answer(id, command, answer))
    }

    /// An order of a console, as that sealed it: judged by the same rules as one by radio, and answered like a command.
    fn order(
        &mut self,
        sealed: &[u8],
        from: Option<VehicleId>,
        lease: Option<&str>,
    ) -> Result<CommandReply, OrderRefusal> {
        let now = self.clock.now();
        let admits = |claim: &Claim| self.agent.admits_posted(now, claim, from == Some(claim.from));
        let mut datagram = Datagram::blank();
        let opened = self.air.keys.roster.open_if(sealed, admits);
        let read = opened.and_then(|opened| opened.read_into(&mut datagram).map(|()| opened));
        let opened = match read {
            Ok(opened) => opened,
            Err(reason) => {
                self.feed(Input::Datagram(Err(reason)));
                return Err(refused_order(reason));
            }
        };
        let Message::Order(order) = datagram.message else {
            return Err(refused_order(Refused::UnexpectedSender));
        };
        let Order { id, command, .. } = order;
        if command.needs_lease() {
            self.check_lease(lease, Some(opened.from()), &format_args!("{command}"))
                .map_err(OrderRefusal::Conflict)?;
        }
        let answer = self.feed(Input::Order { opened, is_direct: from == Some(opened.from()) });
        if let Some(Reply::Refused(Rejection::Order(reason))) = answer {
            return Err(refused_order(reason));
        }
        Ok(self.answer(id.as_str().to_owned(), command, answer))
    }

    /// Whether the console `from` holds the lease with this token. Without keys a free aircraft asks for none: a console that
    /// holds it is alone in charge all the same.
    fn check_lease(
        &self,
        token: Option<&str>,
        from: Option<VehicleId>,
        what: &dyn fmt::Display,
    ) -> Result<(), ApiError> {
        let now = KernelInstant::now();
        let holder = self.lease.holder(now);
        let is_free = !self.air.keys.roster.is_secured() && holder.is_none();
        if is_free || self.lease.is_held_with(now, token, from) {
            return Ok(());
        }
        let found = match holder {
            Some((console, _)) => format!("the lease of console {console:?}"),
            None => "no lease".into(),
        };
        let message =
            format!("{what}: found {found}, expected the lease of the console that asks, by its token");
        Err(ApiError { code: "lease".into(), message })
    }

    fn answer(&self, id: String, command: Command, answer: Option<Reply>) -> CommandReply {
        let (outcome, reason) = match answer {
            Some(Reply::Accepted) => (CommandOutcome::Accepted, String::new()),
            Some(Reply::AlreadyKnown) => (CommandOutcome::AlreadyKnown, String::new()),
            Some(Reply::Refused(why)) => (CommandOutcome::Refused, why.to_string()),
            None => (CommandOutcome::Refused, "the agent did not answer".into()),
        };
        let verb = match outcome {
            CommandOutcome::Accepted => "accepted",
            CommandOutcome::AlreadyKnown => "already known",
            CommandOutcome::Refused => "refused",
        };
        let separator = if reason.is_empty() { "" } else { ": " };
        self.log(Severity::Info, format!("command {command} {verb}{separator}{reason}"));
        let state = self.publisher.status.borrow().state;
        CommandReply { id, outcome, state, reason }
    }

    fn mission(
        &mut self,
        mission: MissionUpload,
        from: Option<VehicleId>,
        lease: Option<&str>,
        reply: oneshot::Sender<Result<MissionSummary, ApiError>>,
    ) {
        if let Err(error) = self.check_lease(lease, from, &"a mission") {
            let _ = reply.send(Err(error));
            return;
        }
        let protocol = self.agent.status(self.clock.now()).protocol;
        let refusals = mission.refusals(protocol);
        if !refusals.is_empty() {
            let message = format!("mission {:?}: {}", mission.name, refusals.join("; "));
            self.log(Severity::Warning, format!("mission refused: {message}"));
            let _ = reply.send(Err(ApiError { code: "conflict".into(), message }));
            return;
        }
        let flown = mission.flown(protocol);
        let route = status::route(&flown.waypoints);
        let extras = match crate::mission::extras(&flown) {
            Ok(extras) => extras,
            Err(problem) => {
                let message = format!("mission {:?}: {problem}", mission.name);
                self.log(Severity::Warning, format!("mission refused: {message}"));
                let _ = reply.send(Err(ApiError { code: "conflict".into(), message }));
                return;
            }
        };
        let answer = self.feed(match extras.is_none() {
            true => Input::Mission(&route),
            false => Input::MissionWith(&route, &extras),
        });
        let now = self.agent.status(self.clock.now());
        let notes = mission.notes(now.protocol);
        let uploaded = UploadedMission { name: mission.name, hash: None, notes };
        let previous = std::mem::replace(&mut self.uploaded, uploaded);
        let conflict = |message: String| Err(ApiError { code: "conflict".into(), message });
        let answer = match answer {
            Some(Reply::Accepted | Reply::AlreadyKnown) => {
                self.uploaded.hash = now.route_hash;
                self.publish();
                match self.held_mission(&now) {
                    Some(summary) => Ok(summary),
                    None => {
                        conflict(format!("state {}: the mission was accepted and is not held", now.state))
                    }
                }
            }
            refused => {
                self.uploaded = previous;
                let why = match refused {
                    Some(Reply::Refused(why)) => why.to_string(),
                    _ => "the agent did not answer".into(),
                };
                conflict(format!("state {}: {why}", now.state))
            }
        };
        match &answer {
            Ok(held) => {
                let text =
                    format!("holds mission {:?}, {} waypoints, {}", held.name, held.waypoints, held.hash);
                self.log(Severity::Info, text);
                for note in &held.notes {
                    self.log(Severity::Warning, format!("mission {:?}: {note}", held.name));
                }
            }
            Err(error) => self.log(Severity::Warning, format!("mission refused: {}", error.message)),
        }
        let _ = reply.send(answer);
    }

    /// The name of the mission that the agent flies: the file that an operator gave, the part of it
    /// that falls to our slot, or the plan that came by radio.
    fn mission_name(&self, status: &Status) -> String {
        let uploaded = &self.uploaded;
        if status.route_hash == uploaded.hash || uploaded.hash.is_none() && status.swarm.slot.is_none() {
            return uploaded.name.clone();
        }
        match (uploaded.hash, status.swarm.slot) {
            (Some(_), Some(slot)) => format!("{}, slot {slot}", uploaded.name),
            (Some(_), None) => uploaded.name.clone(),
            (None, _) => "the master's plan".into(),
        }
    }

    fn held_mission(&self, status: &Status) -> Option<MissionSummary> {
        // A plan that came by radio is flown as it came.
        let notes: &[String] = if self.uploaded.hash.is_some() { &self.uploaded.notes } else { &[] };
        status::mission(status, &self.mission_name(status), notes)
    }

    fn publish_at(&self) -> KernelInstant {
        let period = if self.dirty { PUBLISH_PERIOD } else { PUBLISH_IDLE };
        self.published_at + period.div_f64(self.clock.speed()).clamp(PUBLISH_LEAST, PUBLISH_IDLE)
    }

    fn publish(&mut self) {
        self.daemon.is_secured = self.air.keys.roster.is_secured();
        self.check_keys();
        self.daemon.log = self.recording.status();
        self.log_recording_problem();
        self.daemon.keys = self.terms.as_ref().map(|(terms, _)| keys_of(terms, self.latest_s()));
        self.daemon.is_clock_fed = self.chrony.as_ref().is_some_and(Chrony::is_fed);
        self.daemon.fence = Some(self.agent.fence());
        self.daemon.flight_setup = Some(self.setups.now(self.agent.coordination()));
        self.daemon.overflows = self.air.radio.overflows();
        self.daemon.screened = self.air.radio.refused();
        self.daemon.gateway = self.gateway.as_ref().map(|g| (g.clients(), g.refused()));
        self.daemon.lease = self.lease_holder().map(|(console, left)| status::LeaseView {
            console: console.to_owned(),
            id: self.lease.holder_id(),
            left,
        });
        self.daemon.http_refused = self.publisher.refusals.counts().collect();
        let now = self.agent.status(self.clock.now());
        // A follower has no route before the plan comes: then it is where it stands that is judged.
        let route_hash = now.route_hash.unwrap_or_else(|| wingbeat_agent::route_hash([].into_iter()));
        if let Some(verdict) = self.regions.verdict(self.agent.stands_at(), self.agent.route(), route_hash) {
            self.verdict = Some(verdict);
        }
        let name = self.mission_name(&now);
        let held = now.route_hash.map(|hash| (hash, name.clone()));
        if held != self.held {
            let mission = held
                .as_ref()
                .map(|(_, name)| Arc::new(MissionUpload::new(name, status::items(self.agent.route()))));
            self.publisher.mission.send_replace(mission);
            self.held = held;
        }
        let status = status::aircraft(&now, &self.publisher.name, self.held_mission(&now), &self.daemon);
        self.log_fault(status.flight_controller.link_fault.as_ref());
        self.publisher.status.send_replace(Arc::new(status));
        self.published_at = KernelInstant::now();
        self.dirty = false;
    }

    /// Logs once what is wrong with the link. A closed port was logged before; a silence that is no longer
    /// than we are old is none.
    fn log_fault(&mut self, fault: Option<&LinkFault>) {
        if self.clock.now() < Instant::ZERO + LINK_TIMEOUT {
            return;
        }
        let kind = fault.map(|fault| fault.kind);
        if std::mem::replace(&mut self.fault, kind) != kind
            && let Some(LinkFault { kind: LinkFaultKind::Silent | LinkFaultKind::NoMavlink, detail }) = fault
        {
            self.log(Severity::Warning, format!("no telemetry from the flight controller: {detail}"));
        }
    }

    /// Logs once what is wrong with the flight log, and when it is over.
    fn log_recording_problem(&mut self) {
        let problem = self.recording.problem();
        if problem.is_some() == self.recording_problem.is_some() {
            return;
        }
        match &problem {
            Some(problem) => self.log(Severity::Warning, problem.clone()),
            None => self.log(Severity::Info, "the flight is logged again".into()),
        }
        self.recording_problem = problem;
    }

    fn notice_stall(&mut self, wake_at: KernelInstant, why: &str) {
        let late = KernelInstant::now().saturating_duration_since(wake_at);
        if late > STALL {
            let text = format!("woken {} ms late ({why}): this machine is too slow", late.as_millis());
            self.log(Severity::Warning, text);
        }
    }

    fn log(&self, severity: Severity, text: String) {
        let now: Instant = self.clock.now();
        // From the agent itself: the published state may be older than what is told.
        let state = self.agent.view().state.to_string();
        let (aircraft, id) = (&self.publisher.name, &self.publisher.id);
        let protocol = &self.publisher.status.borrow().protocol.clone();
        match severity {
            Severity::Info => tracing::info!(aircraft, id, protocol, state, "{text}"),
            Severity::Warning => tracing::warn!(aircraft, id, protocol, state, "{text}"),
            Severity::Error => tracing::error!(aircraft, id, protocol, state, "{text}"),
        }
        let line = LogLine {
            id: self.publisher.id.clone(),
            time_ms: now.as_millis(),
            severity: status::severity(severity),
            text,
        };
        // Nobody may be listening.
        let _ = self.publisher.log.send(line);
    }
}
