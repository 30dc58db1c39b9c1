//! The aircraft's HTTP API: what a console may see of the aircraft and ask of it.
//!
//! A handler never touches the agent. It reads the last published status, or puts a [`Request`] into the
//! driver's bounded queue and waits for its answer. Every answer that is not a success is an [`ApiError`]
//! that names what, where, found and expected.
//!
//! A body must be declared as JSON: a web page of another origin cannot send that to an aircraft without
//! a preflight request (CORS), which the aircraft never grants.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{
        DefaultBodyLimit, FromRequest, FromRequestParts, Query, State,
        rejection::{JsonRejection, QueryRejection},
    },
    http::{HeaderMap, Method, StatusCode, Uri, header, request::Parts},
    middleware::{self, Next},
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::Stream;
use serde::{Deserialize, de::DeserializeOwned};
use tokio::{
    sync::{Mutex, broadcast, oneshot, watch},
    task::spawn_blocking,
    time::timeout,
};
use utoipa::{IntoParams, OpenApi};
use utoipa_axum::{router::OpenApiRouter, routes};
use wingbeat_api::metrics::Metrics;
use wingbeat_api::{
    AircraftStatus, ApiError, CommandOutcome, CommandReply, CommandRequest, FlightSetup, FlightSetupState,
    Identity, Keys, LeaseGrant, LeaseRequest, LinkTestReport, LinkTestRequest, LinkTestRows, Links, LogLine,
    MissionSummary, MissionUpload, ParameterProgress, ParameterTable, ParameterWrite, Region, RegionState,
    paths,
};
use wingbeat_keys::{BUNDLE_LEN_MAX, NotTaken, NotTakenKind, Pending, Store};
use wingbeat_protocol::Fence;
use wingbeat_server::{Barred, Connection, Peer, Refusals};
use wingbeat_wire::{DATAGRAM_LEN_MAX, Role, VehicleId};

use crate::{
    autopilot_logs,
    flight_setup::{self, Keeper},
    lease::TTL_MS,
    links,
    logs::{self, Logs},
    mission, parameters, regions,
    requests::{self, NotQueued},
    stream,
};

/// The longest body: 600 waypoints with all their digits are 70 kB.
pub(crate) const BODY_MAX: usize = 128 * 1024;
/// The driver answers within a wake-up; when it does not, the machine is in trouble and the console must know.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// A comment line that keeps an idle stream open, and shows a console that the connection is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// The longest name of a console, characters.
const CONSOLE_MAX: usize = 64;
/// The longest id of a command.
const COMMAND_ID_MAX: usize = 64;

/// What is asked of the driver, with where to answer.
#[derive(Debug)]
pub(crate) enum Request {
    /// An operator's command.
    Command {
        request: CommandRequest,
        /// The token of the lease, if the console sent one.
        lease: Option<String>,
        reply: oneshot::Sender<Result<CommandReply, ApiError>>,
    },
    /// A mission to hold; checked.
    Mission {
        mission: MissionUpload,
        /// Who sends it, where there are keys.
        from: Option<VehicleId>,
        /// The token of the lease, if the console sent one.
        lease: Option<String>,
        reply: oneshot::Sender<Result<MissionSummary, ApiError>>,
    },
    /// An order as its console sealed it.
    Order {
        sealed: Bytes,
        /// The peer of the TLS connection.
        from: Option<VehicleId>,
        lease: Option<String>,
        reply: oneshot::Sender<Result<CommandReply, OrderRefusal>>,
    },
    /// The fleet's bundle, verified and written.
    Keys { pending: Box<Pending>, reply: oneshot::Sender<Result<Keys, KeysRefusal>> },
    /// A console takes or renews the lease; checked.
    Lease {
        console: String,
        /// Who asks, where there are keys.
        from: Option<VehicleId>,
        ttl: Duration,
        token: Option<String>,
        /// Also from another console that holds it.
        take_over: bool,
        reply: oneshot::Sender<Result<LeaseGrant, ApiError>>,
    },
    /// What is known of the links, and tests of them.
    Links(links::Ask),
    /// The flight controller's parameters.
    Parameters(parameters::Ask),
    /// The flight controller's own logs.
    AutopilotLogs(autopilot_logs::Ask),
    /// Its fence and rally points.
    Region(regions::Ask),
    /// How it is to fly.
    FlightSetup(flight_setup::Ask),
}

/// Why an order is not taken.
#[derive(Debug)]
pub(crate) enum OrderRefusal {
    /// It is no console's, for another aircraft, or no order: final.
    Forbidden(ApiError),
    /// The same order is taken with a newer counter, or with the lease.
    Conflict(ApiError),
}

/// Why keys are not taken.
#[derive(Debug)]
pub(crate) enum KeysRefusal {
    /// The aircraft is not on the ground.
    Conflict(ApiError),
    /// The bundle, or the files.
    NotTaken(NotTaken),
}

impl From<KeysRefusal> for Refusal {
    fn from(refusal: KeysRefusal) -> Self {
        let not_taken = match refusal {
            KeysRefusal::Conflict(error) => return Self(StatusCode::CONFLICT, error),
            KeysRefusal::NotTaken(not_taken) => not_taken,
        };
        let (status, code) = match not_taken.kind {
            NotTakenKind::Malformed => (StatusCode::BAD_REQUEST, "bad_request"),
            NotTakenKind::Foreign => (StatusCode::FORBIDDEN, "forbidden"),
            NotTakenKind::Older => (StatusCode::CONFLICT, "replayed"),
            NotTakenKind::Storage => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        };
        Self::new(status, code, format!("keys: {not_taken}"))
    }
}

impl Request {
    /// Whether it is a command that ends a flight safely. Which order it is shows when it is opened; one that is queued
    /// behind others would be late.
    pub(crate) fn recovers(&self) -> bool {
        match self {
            Self::Command { request, .. } => request.command.recovers(),
            Self::Order { .. } => true,
            Self::Mission { .. }
            | Self::Keys { .. }
            | Self::Lease { .. }
            | Self::Links(_)
            | Self::Parameters(_)
            | Self::AutopilotLogs(_)
            | Self::Region(_)
            | Self::FlightSetup(_) => false,
        }
    }
}

/// What the handlers know: the driver's front.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    pub(crate) identity: Arc<Identity>,
    pub(crate) fence: Fence,
    /// Whether orders must be signed.
    pub(crate) is_secured: bool,
    pub(crate) status: watch::Receiver<Arc<AircraftStatus>>,
    pub(crate) mission: watch::Receiver<Option<Arc<MissionUpload>>>,
    pub(crate) log: broadcast::Sender<LogLine>,
    pub(crate) requests: requests::Sender,
    /// Where keys are kept, one bundle at a time.
    pub(crate) store: Option<Arc<Mutex<Store>>>,
    /// Where the flight's set-up is kept, one request at a time.
    pub(crate) setups: Arc<Mutex<Keeper>>,
    /// The flight logs.
    pub(crate) logs: Logs,
    /// Where requests count that are not for their sender's role.
    pub(crate) refusals: Refusals,
    /// Whose connections are admitted, where there are keys.
    pub(crate) known: Option<wingbeat_tls::Identity>,
}

impl Front {
    /// Asks the driver and waits for its answer.
    pub(crate) async fn ask<T>(
        &self,
        caller: Caller,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<T, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.requests.put(request(reply), caller.0).map_err(|why| match why {
            NotQueued::Share => {
                let from = caller.0.map_or_else(String::new, |id| id.to_string());
                self.refusals.count(Barred::Share, &from);
                unavailable("busy", "this console has more requests waiting than it may, try again")
            }
            NotQueued::Full => {
                unavailable("busy", "the aircraft has more requests waiting than it takes, try again")
            }
            NotQueued::Stopping => unavailable("unavailable", "the aircraft's daemon is stopping"),
        })?;
        match timeout(ANSWER_TIMEOUT, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(unavailable("unavailable", "the aircraft's daemon is stopping")),
            Err(_) => Err(unavailable("unavailable", "the aircraft's daemon did not answer within 2 s")),
        }
    }
}

/// Who asks, where there are keys.
#[derive(Clone, Copy)]
pub(crate) struct Caller(Option<VehicleId>);

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.extensions.get::<Peer>().map(|peer| peer.id)))
    }
}

/// A status code and its reason.
#[derive(Debug)]
pub(crate) struct Refusal(StatusCode, ApiError);

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self(status, ApiError { code: code.into(), message: message.into() })
    }
}

fn unavailable(code: &str, message: &str) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, Json(self.1)).into_response()
    }
}

/// A JSON body, or the reason why it is none.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: axum::extract::Request, state: &S) -> Result<Self, Refusal> {
        let path = request.uri().path().to_owned();
        match Json::<T>::from_request(request, state).await {
            Ok(Json(body)) => Ok(Self(body)),
            Err(JsonRejection::MissingJsonContentType(_)) => Err(Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "bad_request",
                format!("{path}: found another content type, expected application/json"),
            )),
            Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => Err(Refusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "bad_request",
                format!("{path}: found a longer body, expected at most {BODY_MAX} bytes"),
            )),
            // A well-formed body of the wrong shape is as bad as a malformed one: both are 400.
            Err(rejection) => Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                "bad_request",
                format!("{path}: {}", rejection.body_text()),
            )),
        }
    }
}

/// Id, name, version and protocol of the aircraft.
#[utoipa::path(get, path = "/api/v1/identity", operation_id = "identity", tag = "aircraft",
    responses((status = 200, description = "Who this is and what runs on it", body = Identity)))]
async fn identity(State(front): State<Front>) -> Json<Identity> {
    // Another protocol can be set over HTTP.
    let protocol = front.status.borrow().protocol.clone();
    Json(Identity { protocol, ..front.identity.as_ref().clone() })
}

/// The state now.
#[utoipa::path(get, path = "/api/v1/status", operation_id = "status", tag = "aircraft",
    responses((status = 200, description = "The state now", body = AircraftStatus)))]
async fn status(State(front): State<Front>) -> Json<AircraftStatus> {
    let status = front.status.borrow().clone();
    Json(status.as_ref().clone())
}

/// The state and the log as they change.
#[utoipa::path(get, path = "/api/v1/events", operation_id = "events", tag = "aircraft",
    responses(
        (status = 200, content_type = "text/event-stream", body = AircraftStatus, description =
            "Server-sent events: `status` (AircraftStatus) immediately, on every change of state and otherwise at most \
             five times a second; `log` (LogLine) per line. A comment line every second keeps the stream open. Where \
             there are too many streams, the oldest of the address that has the most ends.")))]
async fn events(
    State(front): State<Front>,
    connection: Connection,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let id = front.identity.id.clone();
    let stream = stream::events(id, front.status.clone(), front.log.subscribe(), connection.stream());
    Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

/// The mission that was uploaded to this aircraft.
#[utoipa::path(get, path = "/api/v1/mission", operation_id = "mission", tag = "aircraft",
    responses(
        (status = 200, description = "The mission that it holds", body = MissionUpload),
        (status = 404, description = "None was uploaded", body = ApiError)))]
async fn get_mission(State(front): State<Front>) -> Result<Json<MissionUpload>, Refusal> {
    let mission = front.mission.borrow().clone();
    match mission {
        Some(mission) => Ok(Json(mission.as_ref().clone())),
        None => {
            Err(Refusal::new(StatusCode::NOT_FOUND, "not_found", "no mission was uploaded to this aircraft"))
        }
    }
}

/// Gives this aircraft a mission. Giving the same one again changes nothing.
#[utoipa::path(put, path = "/api/v1/mission", operation_id = "put_mission", tag = "aircraft",
    request_body = MissionUpload,
    responses(
        (status = 200, description = "It holds this mission now", body = MissionSummary),
        (status = 400, description = "Not a mission that may be flown", body = ApiError),
        (status = 409, description = "The state forbids it, the protocol does not fly such a mission, or the aircraft has keys and the header `wingbeat-lease` is not the token of its lease", body = ApiError),
        (status = 413, description = "Too long", body = ApiError),
        (status = 415, description = "Not JSON", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn put_mission(
    State(front): State<Front>,
    caller: Caller,
    headers: HeaderMap,
    Body(mission): Body<MissionUpload>,
) -> Result<Json<MissionSummary>, Refusal> {
    mission::check(&mission, &front.fence)
        .map_err(|problem| Refusal::new(StatusCode::BAD_REQUEST, "bad_request", problem.to_string()))?;
    let (from, lease) = (caller.0, lease_token(&headers));
    match front.ask(caller, |reply| Request::Mission { mission, from, lease, reply }).await? {
        Ok(summary) => Ok(Json(summary)),
        Err(error) => Err(Refusal(StatusCode::CONFLICT, error)),
    }
}

/// An operator's command, where the aircraft has no keys. The same id is the same command, however often it arrives. While a console holds
/// the lease, *Setup*, *Start* and what else begins something need it: the header `wingbeat-lease` is its token.
#[utoipa::path(post, path = "/api/v1/commands", operation_id = "command", tag = "aircraft",
    request_body = CommandRequest,
    responses(
        (status = 202, description = "Accepted; its effect shows in the status", body = CommandReply),
        (status = 200, description = "The same id came before", body = CommandReply),
        (status = 409, description = "The state forbids it, or another command came under this id (CommandReply); or another console holds the lease (ApiError `lease`)", body = CommandReply),
        (status = 400, description = "Not a command", body = ApiError),
        (status = 403, description = "This aircraft has keys: commands are signed, as orders", body = ApiError),
        (status = 413, description = "Too long", body = ApiError),
        (status = 415, description = "Not JSON", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn post_command(
    State(front): State<Front>,
    caller: Caller,
    headers: HeaderMap,
    Body(request): Body<CommandRequest>,
) -> Result<(StatusCode, Json<CommandReply>), Refusal> {
    if front.is_secured {
        let found = format!("{}: found a command without a signature", paths::COMMANDS);
        let expected = format!("an order that a console of this fleet has signed ({})", paths::ORDERS);
        let message = format!("{found}, expected {expected}");
        return Err(Refusal::new(StatusCode::FORBIDDEN, "forbidden", message));
    }
    let id = &request.id;
    if id.is_empty() || id.len() > COMMAND_ID_MAX || !id.bytes().all(|byte| byte.is_ascii_graphic()) {
        let found: String = id.chars().take(COMMAND_ID_MAX).collect();
        return Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "bad_request",
            format!(
                "id: found {found:?} ({} bytes), expected 1 to {COMMAND_ID_MAX} visible ASCII characters",
                id.len()
            ),
        ));
    }
    let lease = lease_token(&headers);
    match front.ask(caller, |reply| Request::Command { request, lease, reply }).await? {
        Ok(reply) => Ok(answered(reply)),
        Err(error) => Err(Refusal(StatusCode::CONFLICT, error)),
    }
}

fn answered(reply: CommandReply) -> (StatusCode, Json<CommandReply>) {
    let status = match reply.outcome {
        CommandOutcome::Accepted => StatusCode::ACCEPTED,
        CommandOutcome::AlreadyKnown => StatusCode::OK,
        CommandOutcome::Refused => StatusCode::CONFLICT,
    };
    (status, Json(reply))
}

/// Octets, and no more of them. Like JSON, a page of another origin cannot send them without asking first.
fn check_octets(path: &str, headers: &HeaderMap, octets: &Bytes, most: usize) -> Result<(), Refusal> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if kind != Some("application/octet-stream") {
        let message = format!("{path}: found another content type, expected application/octet-stream");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "bad_request", message));
    }
    if octets.len() > most {
        let message = format!("{path}: found {} bytes, expected at most {most}", octets.len());
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "bad_request", message));
    }
    Ok(())
}

fn lease_token(headers: &HeaderMap) -> Option<String> {
    headers.get(paths::LEASE_HEADER).and_then(|token| token.to_str().ok()).map(str::to_owned)
}

/// An operator's order as its console sealed it: the same bytes as by radio. The same id is the same command, by whatever path
/// it arrives. *Setup*, *Start* and what else begins something need the lease: the header `wingbeat-lease` is its token.
#[utoipa::path(post, path = "/api/v1/orders", operation_id = "order", tag = "aircraft",
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 202, description = "Accepted; its effect shows in the status", body = CommandReply),
        (status = 200, description = "The same id came before", body = CommandReply),
        (status = 409, description = "The state forbids it (CommandReply); or it is too old, not the newest of its console's program, or needs the lease (ApiError `replayed`, `lease`)", body = ApiError),
        (status = 403, description = "No order of a console that may give it, or for another aircraft", body = ApiError),
        (status = 413, description = "Too long", body = ApiError),
        (status = 415, description = "Not octets", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn post_order(
    State(front): State<Front>,
    caller: Caller,
    headers: HeaderMap,
    sealed: Bytes,
) -> Result<(StatusCode, Json<CommandReply>), Refusal> {
    check_octets(paths::ORDERS, &headers, &sealed, DATAGRAM_LEN_MAX)?;
    let (from, lease) = (caller.0, lease_token(&headers));
    match front.ask(caller, |reply| Request::Order { sealed, from, lease, reply }).await? {
        Ok(reply) => Ok(answered(reply)),
        Err(OrderRefusal::Forbidden(error)) => Err(Refusal(StatusCode::FORBIDDEN, error)),
        Err(OrderRefusal::Conflict(error)) => Err(Refusal(StatusCode::CONFLICT, error)),
    }
}

/// The fleet's bundle of keys. The authority's signature in it is what counts, so no lease is asked for. Taken on the ground alone, from the
/// next datagram on; the same one again changes nothing.
#[utoipa::path(put, path = "/api/v1/keys", operation_id = "put_keys", tag = "aircraft",
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, description = "It holds these keys now", body = Keys),
        (status = 400, description = "No bundle that its authority has signed", body = ApiError),
        (status = 403, description = "Another authority's, or one that does not have this aircraft", body = ApiError),
        (status = 404, description = "This aircraft has no keys of a fleet", body = ApiError),
        (status = 409, description = "Older than what it holds (`replayed`), or the aircraft is not on the ground (`conflict`)", body = ApiError),
        (status = 413, description = "Too long", body = ApiError),
        (status = 415, description = "Not octets", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping, or cannot write the file", body = ApiError)))]
async fn put_keys(
    State(front): State<Front>,
    caller: Caller,
    headers: HeaderMap,
    bundle: Bytes,
) -> Result<Json<Keys>, Refusal> {
    check_octets(paths::KEYS, &headers, &bundle, BUNDLE_LEN_MAX)?;
    let Some(store) = &front.store else {
        let message = "keys: found an aircraft that is not enrolled, expected one (wingbeatd enrol)";
        return Err(Refusal::new(StatusCode::NOT_FOUND, "not_found", message));
    };
    // Held until the driver has answered. Verifying and writing are slow, and no task of the daemon waits for them.
    let store = store.clone().lock_owned().await;
    let stopping = |_| unavailable("unavailable", "the aircraft's daemon is stopping");
    let prepare = move || (store.prepare(&String::from_utf8_lossy(&bundle)), store);
    let (pending, store) = spawn_blocking(prepare).await.map_err(stopping)?;
    let pending = Box::new(pending.map_err(KeysRefusal::NotTaken)?);
    let keys = front.ask(caller, |reply| Request::Keys { pending, reply }).await??;
    spawn_blocking(move || store.sync()).await.map_err(stopping)?.map_err(KeysRefusal::NotTaken)?;
    Ok(Json(keys))
}

/// A console takes the aircraft for a while, or renews that with the token that it was answered then. While one holds it, the flight controller receives
/// a ground station's heartbeat.
#[utoipa::path(post, path = "/api/v1/lease", operation_id = "lease", tag = "aircraft",
    request_body = LeaseRequest,
    responses(
        (status = 200, description = "The console holds the lease now", body = LeaseGrant),
        (status = 400, description = "Not a lease", body = ApiError),
        (status = 409, description = "A console holds it, this is not its token, and it is not taken over; the message names it", body = ApiError),
        (status = 413, description = "Too long", body = ApiError),
        (status = 415, description = "Not JSON", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn post_lease(
    State(front): State<Front>,
    caller: Caller,
    Body(LeaseRequest { console, ttl_ms, token, take_over }): Body<LeaseRequest>,
) -> Result<Json<LeaseGrant>, Refusal> {
    let bad = |message| Refusal::new(StatusCode::BAD_REQUEST, "bad_request", message);
    let characters = console.chars().count();
    if console.trim().is_empty() || characters > CONSOLE_MAX || console.chars().any(char::is_control) {
        let found: String = console.chars().take(CONSOLE_MAX).collect();
        return Err(bad(format!(
            "console: found {found:?} ({characters} characters), expected a name of 1 to {CONSOLE_MAX} characters"
        )));
    }
    if !TTL_MS.contains(&ttl_ms) {
        let (least, most) = (TTL_MS.start(), TTL_MS.end());
        return Err(bad(format!("ttl_ms: found {ttl_ms}, expected {least} to {most} ms")));
    }
    let (from, ttl) = (caller.0, Duration::from_millis(ttl_ms));
    match front.ask(caller, |reply| Request::Lease { console, from, ttl, token, take_over, reply }).await? {
        Ok(lease) => Ok(Json(lease)),
        Err(error) => Err(Refusal(StatusCode::CONFLICT, error)),
    }
}

/// What it receives of the probes that the other aircraft broadcast all the time.
#[utoipa::path(get, path = "/api/v1/links", operation_id = "links", tag = "links",
    responses(
        (status = 200, description = "The last 30 probes of each aircraft", body = Links),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn get_links(State(front): State<Front>, caller: Caller) -> Result<Json<Links>, Refusal> {
    front.ask(caller, |reply| Request::Links(links::Ask::Links(reply))).await.map(Json)
}

/// Takes part in a test of a link, as its sender or as a receiver: receivers are asked first. It ends after its time, and with
/// every *Hold*, *Return*, *Land* and *Recover control*. The same number again is the same test.
#[utoipa::path(post, path = "/api/v1/links/test", operation_id = "begin_link_test", tag = "links",
    request_body = LinkTestRequest,
    responses(
        (status = 202, description = "It runs", body = LinkTestReport),
        (status = 400, description = "Not a test that may be flown", body = ApiError),
        (status = 409, description = "Another test runs, the aircraft's position is not known, or the aircraft has keys and the header `wingbeat-lease` is not the token of its lease", body = ApiError),
        (status = 415, description = "Not JSON", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn post_link_test(
    State(front): State<Front>,
    caller: Caller,
    headers: HeaderMap,
    Body(test): Body<LinkTestRequest>,
) -> Result<(StatusCode, Json<LinkTestReport>), Refusal> {
    links::check(&test, &front.identity.id, front.is_secured).map_err(|problem| {
        Refusal::new(StatusCode::BAD_REQUEST, "bad_request", format!("link test: {problem}"))
    })?;
    let lease = lease_token(&headers);
    let from = caller.0;
    match front.ask(caller, |reply| Request::Links(links::Ask::Begin { test, lease, from, reply })).await? {
        Ok(report) => Ok((StatusCode::ACCEPTED, Json(report))),
        Err(error) => Err(Refusal(StatusCode::CONFLICT, error)),
    }
}

/// Ends the test that runs, if one does. What it recorded is kept until the next.
#[utoipa::path(delete, path = "/api/v1/links/test", operation_id = "end_link_test", tag = "links",
    responses(
        (status = 200, description = "It has ended", body = LinkTestReport),
        (status = 404, description = "There was none since the daemon started", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn delete_link_test(
    State(front): State<Front>,
    caller: Caller,
) -> Result<Json<LinkTestReport>, Refusal> {
    found(front.ask(caller, |reply| Request::Links(links::Ask::End(reply))).await?)
}

/// The test that runs, or the last.
#[utoipa::path(get, path = "/api/v1/links/test", operation_id = "link_test", tag = "links",
    responses(
        (status = 200, description = "How far it has come", body = LinkTestReport),
        (status = 404, description = "There was none since the daemon started", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn get_link_test(State(front): State<Front>, caller: Caller) -> Result<Json<LinkTestReport>, Refusal> {
    found(front.ask(caller, |reply| Request::Links(links::Ask::Report(reply))).await?)
}

/// Where a part begins.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FromRow {
    /// Number of its first row, from 0.
    from: u32,
}

/// What the aircraft recorded of that test, in parts.
#[utoipa::path(get, path = "/api/v1/links/test/rows", operation_id = "link_test_rows", tag = "links",
    params(FromRow),
    responses(
        (status = 200, description = "A part of it", body = LinkTestRows),
        (status = 400, description = "No such part", body = ApiError),
        (status = 404, description = "There was none since the daemon started", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn get_link_test_rows(
    State(front): State<Front>,
    caller: Caller,
    query: Result<Query<FromRow>, QueryRejection>,
) -> Result<Json<LinkTestRows>, Refusal> {
    let Query(FromRow { from }) = query.map_err(|rejection| {
        Refusal::new(
            StatusCode::BAD_REQUEST,
            "bad_request",
            format!("{}: {rejection}", paths::LINK_TEST_ROWS),
        )
    })?;
    found(front.ask(caller, |reply| Request::Links(links::Ask::Rows { from, reply })).await?)
}

/// The flight controller's parameters as they were read last.
#[utoipa::path(get, path = "/api/v1/parameters", operation_id = "parameters", tag = "parameters",
    responses(
        (status = 200, description = "What is known of them, and whether that is all", body = ParameterTable),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn get_parameters(State(front): State<Front>, caller: Caller) -> Result<Json<ParameterTable>, Refusal> {
    let ask = |reply| Request::Parameters(parameters::Ask::Table(reply));
    front.ask(caller, ask).await.map(Json)
}

/// Sets parameters, on the ground before a flight is set up. Each is read first, written where it holds another value, and read back;
/// one that the flight controller does not have is never written. What became of each shows in the progress.
#[utoipa::path(put, path = "/api/v1/parameters", operation_id = "set_parameters", tag = "parameters",
    request_body = ParameterWrite,
    responses(
        (status = 202, description = "They are being set", body = ParameterProgress),
        (status = 400, description = "No parameters", body = ApiError),
        (status = 409, description = "Motors are armed, a flight is set up, others are being set or read, or the aircraft has keys and the header `wingbeat-lease` is not the token of its lease", body = ApiError),
        (status = 413, description = "Too long", body = ApiError),
        (status = 415, description = "Not JSON", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn put_parameters(
    State(front): State<Front>,
    caller: Caller,
    headers: HeaderMap,
    Body(write): Body<ParameterWrite>,
) -> Result<(StatusCode, Json<ParameterProgress>), Refusal> {
    let set = parameters::check(&write)
        .map_err(|problem| Refusal::new(StatusCode::BAD_REQUEST, "bad_request", problem))?;
    let (from, lease) = (caller.0, lease_token(&headers));
    let ask = |reply| Request::Parameters(parameters::Ask::Write { set, lease, from, reply });
    begun(front.ask(caller, ask).await?)
}

/// How far reading and setting have come.
#[utoipa::path(get, path = "/api/v1/parameters/work", operation_id = "parameters_work", tag = "parameters",
    responses(
        (status = 200, description = "How far", body = ParameterProgress),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn get_parameters_work(
    State(front): State<Front>,
    caller: Caller,
) -> Result<Json<ParameterProgress>, Refusal> {
    let ask = |reply| Request::Parameters(parameters::Ask::Progress(reply));
    front.ask(caller, ask).await.map(Json)
}

/// Reads every parameter, on the ground: at 57600 baud that takes up to 35 s.
#[utoipa::path(post, path = "/api/v1/parameters/work", operation_id = "read_parameters", tag = "parameters",
    responses(
        (status = 202, description = "They are being read", body = ParameterProgress),
        (status = 409, description = "Motors are armed, or others are being set", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn post_parameters_work(
    State(front): State<Front>,
    caller: Caller,
) -> Result<(StatusCode, Json<ParameterProgress>), Refusal> {
    let ask = |reply| Request::Parameters(parameters::Ask::Read(reply));
    begun(front.ask(caller, ask).await?)
}

fn begun<T>(answer: Result<T, ApiError>) -> Result<(StatusCode, Json<T>), Refusal> {
    let progress = answer.map_err(|error| Refusal(StatusCode::CONFLICT, error))?;
    Ok((StatusCode::ACCEPTED, Json(progress)))
}

/// Fence and rally points as the flight controller held them when they were read last.
#[utoipa::path(get, path = "/api/v1/region", operation_id = "region", tag = "region",
    responses(
        (status = 200, description = "What is known of them, and what is under way", body = RegionState),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn get_region(State(front): State<Front>, caller: Caller) -> Result<Json<RegionState>, Refusal> {
    let ask = |reply| Request::Region(regions::Ask::State(reply));
    front.ask(caller, ask).await.map(Json)
}

/// Replaces the fence, the rally points or both, on the ground before a flight is set up; an empty list is cleared. They are read back:
/// what differs shows among the problems of the state. A fence that home or the route is outside of is not sent.
#[utoipa::path(put, path = "/api/v1/region", operation_id = "set_region", tag = "region",
    request_body = Region,
    responses(
        (status = 202, description = "They are being sent", body = RegionState),
        (status = 400, description = "No fence, or no rally points", body = ApiError),
        (status = 409, description = "Motors are armed, a flight is set up, others are being sent or read, home or the route is outside, the firmware has no such list, or the aircraft has keys and the header `wingbeat-lease` is not the token of its lease", body = ApiError),
        (status = 413, description = "Too long", body = ApiError),
        (status = 415, description = "Not JSON", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn put_region(
    State(front): State<Front>,
    caller: Caller,
    headers: HeaderMap,
    Body(region): Body<Region>,
) -> Result<(StatusCode, Json<RegionState>), Refusal> {
    let lists = regions::check(&region)
        .map_err(|problem| Refusal::new(StatusCode::BAD_REQUEST, "bad_request", problem))?;
    let (from, lease) = (caller.0, lease_token(&headers));
    let ask = |reply| Request::Region(regions::Ask::Write { lists, lease, from, reply });
    begun(front.ask(caller, ask).await?)
}

/// Reads fence and rally points, on the ground.
#[utoipa::path(post, path = "/api/v1/region", operation_id = "read_region", tag = "region",
    responses(
        (status = 202, description = "They are being read", body = RegionState),
        (status = 409, description = "Motors are armed, others are being sent, or the firmware has no such list", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn post_region(
    State(front): State<Front>,
    caller: Caller,
) -> Result<(StatusCode, Json<RegionState>), Refusal> {
    let ask = |reply| Request::Region(regions::Ask::Read(reply));
    begun(front.ask(caller, ask).await?)
}

/// How the aircraft is to fly, and what of that can be set.
#[utoipa::path(get, path = "/api/v1/flight-setup", operation_id = "flight_setup", tag = "flight set-up",
    responses(
        (status = 200, description = "What holds now, where it is from, and the choices", body = FlightSetupState),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn get_flight_setup(
    State(front): State<Front>,
    caller: Caller,
) -> Result<Json<FlightSetupState>, Refusal> {
    let ask = |reply| Request::FlightSetup(flight_setup::Ask::State(reply));
    front.ask(caller, ask).await.map(Json)
}

/// Sets the flight up, on the ground before it begins: over the aircraft's configuration, until it is set or cleared again. A restart
/// of the daemon keeps it. The mission is kept where the protocol flies it.
#[utoipa::path(put, path = "/api/v1/flight-setup", operation_id = "set_flight_setup", tag = "flight set-up",
    request_body = FlightSetup,
    responses(
        (status = 200, description = "It holds now", body = FlightSetupState),
        (status = 400, description = "A key that the protocol does not have, or a value that cannot be flown", body = ApiError),
        (status = 409, description = "The flight controller is not received, motors are armed, a flight has begun, a pilot has the aircraft, or the aircraft has keys and the header `wingbeat-lease` is not the token of its lease", body = ApiError),
        (status = 413, description = "Too long", body = ApiError),
        (status = 415, description = "Not JSON", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping; or it holds, and cannot be kept over a restart", body = ApiError)))]
async fn put_flight_setup(
    State(front): State<Front>,
    caller: Caller,
    headers: HeaderMap,
    Body(setup): Body<FlightSetup>,
) -> Result<Json<FlightSetupState>, Refusal> {
    set_flight_up(front, caller, &headers, Some(setup)).await
}

/// Sets the flight up as it is configured, on the ground before it begins.
#[utoipa::path(delete, path = "/api/v1/flight-setup", operation_id = "clear_flight_setup", tag = "flight set-up",
    responses(
        (status = 200, description = "The configuration holds now", body = FlightSetupState),
        (status = 409, description = "As for PUT", body = ApiError),
        (status = 503, description = "As for PUT", body = ApiError)))]
async fn delete_flight_setup(
    State(front): State<Front>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Json<FlightSetupState>, Refusal> {
    set_flight_up(front, caller, &headers, None).await
}

async fn set_flight_up(
    front: Front,
    caller: Caller,
    headers: &HeaderMap,
    setup: Option<FlightSetup>,
) -> Result<Json<FlightSetupState>, Refusal> {
    let (from, lease) = (caller.0, lease_token(headers));
    let stopping = |_| unavailable("unavailable", "the aircraft's daemon is stopping");
    // A task of its own: what holds is kept, whether or not the console waits for the answer.
    let done = tokio::spawn(async move {
        // Held until it is kept: what is kept last is what was set last.
        let keeper = front.setups.clone().lock_owned().await;
        let asked = setup.clone().map(Box::new);
        let ask = |reply| Request::FlightSetup(flight_setup::Ask::Write { setup: asked, lease, from, reply });
        let state = front.ask(caller, ask).await?.map_err(|error| {
            let is_bad = error.code == "bad_request";
            Refusal(if is_bad { StatusCode::BAD_REQUEST } else { StatusCode::CONFLICT }, error)
        })?;
        // Writing is slow, and no task of the daemon waits for it.
        let kept = spawn_blocking(move || keeper.keep(setup.as_ref())).await.map_err(stopping)?;
        kept.map_err(|why| {
            let message =
                format!("{why}, expected to keep the flight's set-up there: it holds until a restart");
            unavailable("unavailable", &message)
        })?;
        Ok(Json(state))
    });
    done.await.map_err(stopping)?
}

fn found<T>(answer: Option<T>) -> Result<Json<T>, Refusal> {
    let none = || Refusal::new(StatusCode::NOT_FOUND, "not_found", "no link test since this daemon started");
    answer.map(Json).ok_or_else(none)
}

/// The status as Prometheus' text.
async fn metrics(State(front): State<Front>) -> Response {
    let mut metrics = Metrics::default();
    metrics.service("wingbeatd", &front.identity.version, &front.identity.name);
    metrics.aircraft(&front.status.borrow().clone());
    ([(header::CONTENT_TYPE, wingbeat_api::metrics::CONTENT_TYPE)], metrics.text()).into_response()
}

async fn not_found(uri: Uri) -> Refusal {
    let path: String = uri.path().chars().take(100).collect();
    Refusal::new(
        StatusCode::NOT_FOUND,
        "not_found",
        format!("found the path {path}, expected one of the API's, such as /api/v1/status"),
    )
}

async fn wrong_method(method: Method, uri: Uri) -> Refusal {
    Refusal::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "bad_request",
        format!("{}: found {method}, expected a method that this path has", uri.path()),
    )
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Wingbeat aircraft",
        description = "What wingbeatd serves on each aircraft.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(LogLine))
)]
struct Document;

fn open_router() -> OpenApiRouter<Front> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(identity))
        .routes(routes!(status))
        .routes(routes!(events))
        .routes(routes!(get_mission, put_mission))
        .routes(routes!(post_command))
        .routes(routes!(post_order))
        .routes(routes!(put_keys))
        .routes(routes!(post_lease))
        .routes(routes!(get_links))
        .routes(routes!(get_link_test, post_link_test, delete_link_test))
        .routes(routes!(get_link_test_rows))
        .routes(routes!(get_parameters, put_parameters))
        .routes(routes!(get_parameters_work, post_parameters_work))
        .routes(routes!(get_region, put_region, post_region))
        .routes(routes!(get_flight_setup, put_flight_setup, delete_flight_setup))
        .routes(routes!(logs::get_logs))
        .routes(routes!(logs::get_log_file))
        .routes(routes!(logs::get_log_hash))
        .routes(routes!(logs::get_autopilot_logs, logs::post_autopilot_logs))
}

/// The API's description.
pub fn openapi() -> utoipa::openapi::OpenApi {
    open_router().into_openapi()
}

/// Which roles may ask this: reading is for every sender of the roster, whatever begins something for operators. What an
/// order commands is judged by its own signature.
fn roles(method: &Method, path: &str) -> &'static [Role] {
    match (method, path) {
        (&Method::GET | &Method::HEAD, _) => &Role::ALL,
        (_, paths::ORDERS) => &[Role::Operator, Role::Safety],
        // The authority has signed them: who brings them does not matter.
        (_, paths::KEYS) => &Role::ALL,
        _ => &[Role::Operator],
    }
}

/// Lets through what is for the role of the peer; without keys there are no roles.
async fn permit(State(front): State<Front>, request: axum::extract::Request, next: Next) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    let Some(peer) = request.extensions().get::<Peer>() else { return next.run(request).await };
    let Peer { id, role, .. } = peer;
    // The connection may be older than the keys.
    if front.known.as_ref().is_some_and(|known| !known.admits(*peer)) {
        front.refusals.count(
            Barred::Role,
            &format_args!("{method} {path} of {} {id}, which was left out", role.name()),
        );
        let message = format!("{method} {path}: found the key of {id}, expected one of the present epoch");
        return Refusal::new(StatusCode::FORBIDDEN, "role", message).into_response();
    }
    if roles(method, path).contains(role) {
        return next.run(request).await;
    }
    front.refusals.count(Barred::Role, &format_args!("{method} {path} of {} {id}", role.name()));
    let expected = roles(method, path).iter().map(|role| role.name()).collect::<Vec<_>>().join(" or ");
    let message =
        format!("{method} {path}: found the key of {} {id}, expected that of {expected}", role.name());
    Refusal::new(StatusCode::FORBIDDEN, "role", message).into_response()
}

/// The service.
pub(crate) fn router(front: Front) -> Router {
    let (router, document) = open_router().split_for_parts();
    let router = match document.to_json() {
        Ok(document) => router.merge(wingbeat_server::described(document)),
        Err(error) => {
            tracing::error!("the description of the API is not served: {error}");
            router
        }
    };
    router
        .route(paths::METRICS, axum::routing::get(metrics))
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(middleware::from_fn_with_state(front.clone(), permit))
        .with_state(front)
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
