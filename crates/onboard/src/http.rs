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
    Extension, Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, FromRequest, State, rejection::JsonRejection},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    middleware::{self, Next},
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::Stream;
use serde::de::DeserializeOwned;
use tokio::{
    sync::{broadcast, mpsc, oneshot, watch},
    time::timeout,
};
use utoipa::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};
use wingbeat_api::{
    AircraftStatus, ApiError, CommandOutcome, CommandReply, CommandRequest, Identity, LeaseGrant,
    LeaseRequest, LogLine, MissionSummary, MissionUpload, paths,
};
use wingbeat_protocol::Fence;
use wingbeat_server::{Barred, Connection, Peer, Refusals};
use wingbeat_wire::{DATAGRAM_LEN_MAX, Role, VehicleId};

use crate::{lease::TTL_MS, mission, stream};

/// The longest body: 600 waypoints with all their digits are 70 kB.
pub(crate) const BODY_MAX: usize = 128 * 1024;
/// The driver answers within a wake-up; when it does not, the machine is in trouble and the console must know.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// A comment line that keeps an idle stream open, and shows a console that the connection is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Requests in the driver's queue that are left to commands that recover: others are refused before it is full.
const RESERVED_FOR_RECOVERY: usize = 8;
/// The longest name of a console, characters.
const CONSOLE_MAX: usize = 64;
/// The longest id of a command.
const COMMAND_ID_MAX: usize = 64;

/// What is asked of the driver, with where to answer.
#[derive(Debug)]
pub(crate) enum Request {
    /// An operator's command.
    Command { request: CommandRequest, reply: oneshot::Sender<CommandReply> },
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
    Order { sealed: Bytes, lease: Option<String>, reply: oneshot::Sender<Result<CommandReply, OrderRefusal>> },
    /// A console takes or renews the lease; checked.
    Lease {
        console: String,
        /// Who asks, where there are keys.
        from: Option<VehicleId>,
        ttl: Duration,
        token: Option<String>,
        reply: oneshot::Sender<Result<LeaseGrant, ApiError>>,
    },
}

/// Why an order is not taken.
#[derive(Debug)]
pub(crate) enum OrderRefusal {
    /// It is no console's, for another aircraft, or no order: final.
    Forbidden(ApiError),
    /// The same order is taken with a newer counter, or with the lease.
    Conflict(ApiError),
}

impl Request {
    /// Whether it is a command that ends a flight safely. Which order it is shows when it is opened; one that is queued
    /// behind others would be late.
    fn recovers(&self) -> bool {
        match self {
            Self::Command { request, .. } => request.command.recovers(),
            Self::Order { .. } => true,
            Self::Mission { .. } | Self::Lease { .. } => false,
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
    pub(crate) requests: mpsc::Sender<Request>,
    /// Where requests count that are not for their sender's role.
    pub(crate) refusals: Refusals,
}

impl Front {
    /// Asks the driver and waits for its answer.
    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Result<T, Refusal> {
        let (reply, answer) = oneshot::channel();
        let request = request(reply);
        let busy = || unavailable("busy", "the aircraft has more requests waiting than it takes, try again");
        let reserved = RESERVED_FOR_RECOVERY.min(self.requests.max_capacity() / 2);
        if !request.recovers() && !self.requests.is_closed() && self.requests.capacity() <= reserved {
            return Err(busy());
        }
        self.requests.try_send(request).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => busy(),
            mpsc::error::TrySendError::Closed(_) => {
                unavailable("unavailable", "the aircraft's daemon is stopping")
            }
        })?;
        match timeout(ANSWER_TIMEOUT, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(unavailable("unavailable", "the aircraft's daemon is stopping")),
            Err(_) => Err(unavailable("unavailable", "the aircraft's daemon did not answer within 2 s")),
        }
    }
}

/// A status code and its reason.
#[derive(Debug)]
pub(crate) struct Refusal(StatusCode, ApiError);

impl Refusal {
    fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
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
struct Body<T>(T);

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
    Json(front.identity.as_ref().clone())
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
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Body(mission): Body<MissionUpload>,
) -> Result<Json<MissionSummary>, Refusal> {
    mission::check(&mission, &front.fence)
        .map_err(|problem| Refusal::new(StatusCode::BAD_REQUEST, "bad_request", problem.to_string()))?;
    let (from, lease) = (peer.map(|peer| peer.id), lease_token(&headers));
    match front.ask(|reply| Request::Mission { mission, from, lease, reply }).await? {
        Ok(summary) => Ok(Json(summary)),
        Err(error) => Err(Refusal(StatusCode::CONFLICT, error)),
    }
}

/// An operator's command, where the aircraft has no keys. The same id is the same command, however often it arrives.
#[utoipa::path(post, path = "/api/v1/commands", operation_id = "command", tag = "aircraft",
    request_body = CommandRequest,
    responses(
        (status = 202, description = "Accepted; its effect shows in the status", body = CommandReply),
        (status = 200, description = "The same id came before", body = CommandReply),
        (status = 409, description = "The state forbids it, or another command came under this id", body = CommandReply),
        (status = 400, description = "Not a command", body = ApiError),
        (status = 403, description = "This aircraft has keys: commands are signed, as orders", body = ApiError),
        (status = 413, description = "Too long", body = ApiError),
        (status = 415, description = "Not JSON", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn post_command(
    State(front): State<Front>,
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
    Ok(answered(front.ask(|reply| Request::Command { request, reply }).await?))
}

fn answered(reply: CommandReply) -> (StatusCode, Json<CommandReply>) {
    let status = match reply.outcome {
        CommandOutcome::Accepted => StatusCode::ACCEPTED,
        CommandOutcome::AlreadyKnown => StatusCode::OK,
        CommandOutcome::Refused => StatusCode::CONFLICT,
    };
    (status, Json(reply))
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
        (status = 409, description = "The state forbids it (CommandReply); or it is too old, not the newest of its console, or needs the lease (ApiError `replayed`, `lease`)", body = ApiError),
        (status = 403, description = "No order of a console that may give it, or for another aircraft", body = ApiError),
        (status = 413, description = "Too long", body = ApiError),
        (status = 415, description = "Not octets", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn post_order(
    State(front): State<Front>,
    headers: HeaderMap,
    sealed: Bytes,
) -> Result<(StatusCode, Json<CommandReply>), Refusal> {
    // Like JSON, a page of another origin cannot send this without asking first.
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if kind != Some("application/octet-stream") {
        let message =
            format!("{}: found another content type, expected application/octet-stream", paths::ORDERS);
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "bad_request", message));
    }
    if sealed.len() > DATAGRAM_LEN_MAX {
        let found = sealed.len();
        let message = format!("{}: found {found} bytes, expected at most {DATAGRAM_LEN_MAX}", paths::ORDERS);
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "bad_request", message));
    }
    let lease = lease_token(&headers);
    match front.ask(|reply| Request::Order { sealed, lease, reply }).await? {
        Ok(reply) => Ok(answered(reply)),
        Err(OrderRefusal::Forbidden(error)) => Err(Refusal(StatusCode::FORBIDDEN, error)),
        Err(OrderRefusal::Conflict(error)) => Err(Refusal(StatusCode::CONFLICT, error)),
    }
}

/// A console takes the aircraft for a while, or renews that with the token that it was answered then. While one holds it, the flight controller receives
/// a ground station's heartbeat.
#[utoipa::path(post, path = "/api/v1/lease", operation_id = "lease", tag = "aircraft",
    request_body = LeaseRequest,
    responses(
        (status = 200, description = "The console holds the lease now", body = LeaseGrant),
        (status = 400, description = "Not a lease", body = ApiError),
        (status = 409, description = "A console holds it, and this is not its token; the message names it", body = ApiError),
        (status = 413, description = "Too long", body = ApiError),
        (status = 415, description = "Not JSON", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
async fn post_lease(
    State(front): State<Front>,
    peer: Option<Extension<Peer>>,
    Body(LeaseRequest { console, ttl_ms, token }): Body<LeaseRequest>,
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
    let (from, ttl) = (peer.map(|peer| peer.id), Duration::from_millis(ttl_ms));
    match front.ask(|reply| Request::Lease { console, from, ttl, token, reply }).await? {
        Ok(lease) => Ok(Json(lease)),
        Err(error) => Err(Refusal(StatusCode::CONFLICT, error)),
    }
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
        .routes(routes!(post_lease))
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
        _ => &[Role::Operator],
    }
}

/// Lets through what is for the role of the peer; without keys there are no roles.
async fn permit(State(front): State<Front>, request: axum::extract::Request, next: Next) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    let peer = request.extensions().get::<Peer>().filter(|peer| !roles(method, path).contains(&peer.role));
    let Some(Peer { id, role }) = peer else { return next.run(request).await };
    front.refusals.count(Barred::Role, &format_args!("{method} {path} of {} {id}", role.name()));
    let expected = roles(method, path).iter().map(|role| role.name()).collect::<Vec<_>>().join(" or ");
    let message =
        format!("{method} {path}: found the key of {} {id}, expected that of {expected}", role.name());
    Refusal::new(StatusCode::FORBIDDEN, "role", message).into_response()
}

/// The service.
pub(crate) fn router(front: Front) -> Router {
    let (router, _) = open_router().split_for_parts();
    router
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(middleware::from_fn_with_state(front.clone(), permit))
        .with_state(front)
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
