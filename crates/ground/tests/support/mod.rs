//! Fake aircraft: HTTP servers on loopback that answer what a test sets, and a console that reads
//! the ground service's events.
#![allow(clippy::disallowed_methods, reason = "services run in real time")]
#![allow(dead_code, reason = "each test file uses its part")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream::{self, Stream};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use wingbeat_api::{
    AircraftStatus, ApiError, Check, Command, CommandOutcome, CommandProgress, CommandReply, CommandRequest,
    CommandStage, FleetCommandRequest, FleetPicture, FlightController, GeoPoint, Identity, LeaseGrant,
    LeaseRequest, LinkState, LogLine, Measurements, MissionSummary, MissionUpload, Navigation, Radio,
    Severity, StateId, VehicleOutcome, paths,
};
use wingbeat_ground::{Config, Ground, Handle, Hosts};

/// Far more than anything here takes; only a test that would fail waits so long.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// How a fake answers commands.
#[derive(Clone, Debug)]
pub(crate) enum Answers {
    Accept,
    Refuse(&'static str),
    /// So many are answered with 503, then they are accepted.
    BusyFor(usize),
    /// The connection is accepted and nothing is sent.
    Never,
}

pub(crate) struct Inner {
    pub(crate) status: AircraftStatus,
    pub(crate) answers: Answers,
    /// Whether an accepted command's effect is seen immediately.
    pub(crate) effect: bool,
    pub(crate) received: Vec<CommandRequest>,
    pub(crate) mission: Option<MissionUpload>,
    pub(crate) logs: Vec<String>,
    /// Connected, but saying nothing.
    pub(crate) mute: bool,
    pub(crate) status_every: Duration,
    /// The ports of the connections by which its lease was taken and renewed, and by which commands came.
    pub(crate) leased_from: Vec<u16>,
    pub(crate) commanded_from: Vec<u16>,
}

#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    inner: Arc<Mutex<Inner>>,
    alive: Arc<watch::Sender<bool>>,
}

pub(crate) fn id(number: usize) -> String {
    format!("{number:016x}")
}

impl Fake {
    pub(crate) async fn start(number: usize) -> Self {
        Self::start_as(&id(number)).await
    }

    pub(crate) async fn start_as(id: &str) -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), id).await
    }

    /// At an address of the loopback interface.
    pub(crate) async fn start_at(address: SocketAddr, id: &str) -> Self {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let inner = Inner {
            status: status(id),
            answers: Answers::Accept,
            effect: true,
            received: Vec::new(),
            mission: None,
            logs: Vec::new(),
            mute: false,
            status_every: Duration::from_millis(100),
            leased_from: Vec::new(),
            commanded_from: Vec::new(),
        };
        let fake =
            Self { address, inner: Arc::new(Mutex::new(inner)), alive: Arc::new(watch::Sender::new(true)) };
        fake.serve(listener);
        fake
    }

    fn serve(&self, listener: TcpListener) {
        let router = Router::new()
            .route(paths::IDENTITY, get(identity))
            .route(paths::STATUS, get(status_now))
            .route(paths::EVENTS, get(events))
            .route(paths::MISSION, get(mission).put(put_mission))
            .route(paths::COMMANDS, post(command))
            .route(paths::LEASE, post(lease))
            .with_state(self.clone())
            .into_make_service_with_connect_info::<SocketAddr>();
        let mut alive = self.alive.subscribe();
        tokio::spawn(async move {
            let end = async move { drop(alive.wait_for(|alive| !alive).await) };
            axum::serve(listener, router).with_graceful_shutdown(end).await.expect("serving");
        });
    }

    /// The daemon dies: its port refuses connections.
    pub(crate) async fn die(&self) {
        self.alive.send_replace(false);
        eventually("the port is closed", async || {
            tokio::net::TcpStream::connect(self.address).await.is_err().then_some(())
        })
        .await;
    }

    /// The daemon is back at the same port.
    pub(crate) async fn revive(&self) {
        self.alive.send_replace(true);
        let listener = TcpListener::bind(self.address).await.expect("its old port");
        self.serve(listener);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn received(&self) -> Vec<CommandRequest> {
        self.lock().received.clone()
    }
}

pub(crate) fn status(id: &str) -> AircraftStatus {
    AircraftStatus {
        id: id.to_owned(),
        name: format!("UAV {}", id.trim_start_matches('0')),
        time_ms: 0,
        protocol: "muscop".to_owned(),
        state: StateId::Start,
        phase: wingbeat_api::Phase::Start,
        detail: "waiting for the operator".to_owned(),
        engaged: true,
        failsafe: false,
        flight_controller: FlightController {
            link: LinkState::Up,
            link_fault: None,
            heartbeat_age_ms: Some(100),
            firmware: Some("ArduCopter 3.5.7".to_owned()),
            mode: Some("LOITER".to_owned()),
            armed: false,
            refused: Vec::new(),
            autopilot: None,
            parameters: Vec::new(),
        },
        navigation: Some(Navigation {
            position: GeoPoint { latitude_deg: 39.48, longitude_deg: -0.34, altitude_m: 50.0 },
            height_m: 0.0,
            ground_speed_m_s: 0.0,
            climb_m_s: 0.0,
            heading_deg: 90.0,
            target: None,
        }),
        measurements: Measurements::default(),
        mission: None,
        flight_setup: None,
        fence: None,
        swarm: Some(wingbeat_api::Swarm {
            leader: false,
            leader_id: Some("0000000000000001".to_owned()),
            size: 2,
            formation: "linear".to_owned(),
            slot: None,
            flight: 0,
            absent: Vec::new(),
            plan: None,
        }),
        avoidance: None,
        separation: None,
        radio: Radio::default(),
        http: wingbeat_api::HttpApi::default(),
        lease: None,
        gateway: None,
        cures: vec![],
        can_resume: false,
        log: Default::default(),
        checks: vec![Check {
            name: "position".to_owned(),
            passed: true,
            is_required: true,
            detail: "3D fix".to_owned(),
        }],
        commands: Vec::new(),
    }
}

async fn identity(State(fake): State<Fake>) -> Json<Identity> {
    let inner = fake.lock();
    let (id, name) = (inner.status.id.clone(), inner.status.name.clone());
    Json(Identity { id, name, version: "0.1.0".to_owned(), api_version: 1, protocol: "muscop".to_owned() })
}

async fn status_now(State(fake): State<Fake>) -> Json<AircraftStatus> {
    Json(fake.lock().status.clone())
}

async fn events(State(fake): State<Fake>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let alive = fake.alive.subscribe();
    Sse::new(stream::unfold((fake, alive), async |(fake, mut alive)| {
        let event = loop {
            let pause = {
                let mut inner = fake.lock();
                if !inner.mute && !inner.logs.is_empty() {
                    let text = inner.logs.remove(0);
                    let id = inner.status.id.clone();
                    let line = LogLine { id, time_ms: inner.status.time_ms, severity: Severity::Info, text };
                    break Event::default().event("log").json_data(line);
                }
                inner.status_every
            };
            tokio::select! {
                _ = alive.wait_for(|alive| !alive) => return None,
                () = tokio::time::sleep(pause) => {}
            }
            let mut inner = fake.lock();
            if !inner.mute {
                inner.status.time_ms += 100;
                break Event::default().event("status").json_data(&inner.status);
            }
        };
        Some((Ok(event.expect("JSON")), (fake, alive)))
    }))
}

async fn mission(State(fake): State<Fake>) -> Response {
    match fake.lock().mission.clone() {
        Some(mission) => Json(mission).into_response(),
        None => {
            let error = ApiError { code: "not_found".to_owned(), message: "it was given none".to_owned() };
            (StatusCode::NOT_FOUND, Json(error)).into_response()
        }
    }
}

async fn put_mission(State(fake): State<Fake>, Json(mission): Json<MissionUpload>) -> Response {
    if mission.waypoints.len() < 2 {
        let error = ApiError { code: "bad_request".to_owned(), message: "waypoints: found 1".to_owned() };
        return (StatusCode::BAD_REQUEST, Json(error)).into_response();
    }
    let mut inner = fake.lock();
    let waypoints = u16::try_from(mission.waypoints.len()).expect("few");
    let hash = format!("{:016x}", mission.name.len());
    let summary = MissionSummary {
        name: mission.name.clone(),
        hash,
        plan_hash: None,
        waypoints,
        reached: None,
        notes: vec![],
    };
    inner.status.mission = Some(summary.clone());
    inner.mission = Some(mission);
    Json(summary).into_response()
}

async fn lease(
    State(fake): State<Fake>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    Json(request): Json<LeaseRequest>,
) -> Json<LeaseGrant> {
    fake.lock().leased_from.push(from.port());
    Json(LeaseGrant { console: request.console, left_ms: request.ttl_ms, token: Some("token".to_owned()) })
}

async fn command(
    State(fake): State<Fake>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    Json(request): Json<CommandRequest>,
) -> Response {
    let reply = {
        let mut inner = fake.lock();
        inner.commanded_from.push(from.port());
        let (id, state) = (request.id.clone(), inner.status.state);
        let known = inner.status.commands.iter().any(|progress| progress.id == id);
        inner.received.push(request.clone());
        match inner.answers.clone() {
            Answers::BusyFor(times) if times > 0 => {
                inner.answers = Answers::BusyFor(times - 1);
                return StatusCode::SERVICE_UNAVAILABLE.into_response();
            }
            Answers::Never => None,
            Answers::Refuse(reason) => {
                let reply =
                    CommandReply { id, outcome: CommandOutcome::Refused, state, reason: reason.to_owned() };
                return (StatusCode::CONFLICT, Json(reply)).into_response();
            }
            Answers::BusyFor(_) | Answers::Accept if known => {
                let outcome = CommandOutcome::AlreadyKnown;
                Some((StatusCode::OK, CommandReply { id, outcome, state, reason: String::new() }))
            }
            Answers::BusyFor(_) | Answers::Accept => {
                let stage = if inner.effect { CommandStage::EffectSeen } else { CommandStage::Accepted };
                let (command, detail) = (request.command, "set by the fake".to_owned());
                inner.status.commands.push(CommandProgress { id: id.clone(), command, stage, detail });
                let outcome = CommandOutcome::Accepted;
                Some((StatusCode::ACCEPTED, CommandReply { id, outcome, state, reason: String::new() }))
            }
        }
    };
    match reply {
        Some((status, reply)) => (status, Json(reply)).into_response(),
        None => std::future::pending().await,
    }
}

/// A service that follows these fakes.
pub(crate) async fn ground(fakes: &[Fake]) -> Handle {
    let aircraft = fakes.iter().map(|fake| fake.address.to_string()).collect();
    let bind = SocketAddr::from(([127, 0, 0, 1], 0));
    Ground::start(Config {
        bind,
        aircraft,
        web_dir: None,
        tiles: None,
        parameters: None,
        records: None,
        hosts: Hosts::default(),
        console: None,
        protection: Default::default(),
    })
    .await
    .expect("it starts")
}

/// Asks again and again until there is an answer.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    while Instant::now() < end {
        if let Some(answer) = ask().await {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("not within {LIMIT:?}: {what}");
}

/// Waits for a picture of which something holds.
pub(crate) async fn picture(
    handle: &Handle,
    what: &str,
    holds: impl Fn(&FleetPicture) -> bool,
) -> FleetPicture {
    eventually(what, async || Some(handle.picture().await.expect("running")).filter(&holds)).await
}

pub(crate) fn all_up(picture: &FleetPicture) -> bool {
    picture.aircraft.iter().all(|aircraft| aircraft.link == LinkState::Up)
}

pub(crate) fn request(id: &str, command: Command, vehicles: &[String]) -> FleetCommandRequest {
    FleetCommandRequest { id: id.to_owned(), command, vehicles: vehicles.to_vec() }
}

/// Outcome and detail of a command at one aircraft.
pub(crate) fn result(picture: &FleetPicture, id: &str, vehicle: &str) -> (VehicleOutcome, String) {
    let entry = picture.commands.iter().find(|entry| entry.id == id).expect("the command is shown");
    let result =
        entry.results.iter().find(|result| result.vehicle == vehicle).expect("the aircraft is in it");
    (result.outcome, result.detail.clone())
}

/// Reads the service's events as a browser does.
pub(crate) struct Console {
    response: reqwest::Response,
    buffer: String,
}

impl Console {
    pub(crate) async fn open(handle: &Handle) -> Self {
        let url = format!("http://{}{}", handle.address(), paths::FLEET_EVENTS);
        let response =
            wingbeat_ground::plain_client().expect("a client").get(url).send().await.expect("it answers");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, buffer: String::new() }
    }

    /// The next event; `None` when the stream ends.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.buffer.split_once("\n\n") {
                let mut name = String::new();
                let mut data = None;
                for line in event.lines() {
                    if let Some(value) = line.strip_prefix("event: ") {
                        value.clone_into(&mut name);
                    } else if let Some(value) = line.strip_prefix("data: ") {
                        data = Some(serde_json::from_str(value).expect("JSON"));
                    }
                }
                self.buffer = rest.to_owned();
                match data {
                    Some(data) => return Some((name, data)),
                    None => continue, // a keep-alive comment
                }
            }
            let chunk = tokio::time::timeout(LIMIT, self.response.chunk()).await.expect("something is sent");
            self.buffer.push_str(std::str::from_utf8(&chunk.ok()??).expect("UTF-8"));
        }
    }

    /// The next event of that name and with that property.
    pub(crate) async fn find(&mut self, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + LIMIT;
        while Instant::now() < end {
            let (found, data) = self.next().await.expect("the stream continues");
            if found == name && holds(&data) {
                return data;
            }
        }
        panic!("no such {name} within {LIMIT:?}");
    }
}
