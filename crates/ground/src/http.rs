//! The service's own API over HTTP. Every refusal, of a path, a method, a body or a command, has the same
//! JSON shape.

use std::convert::Infallible;

use axum::body::{Body as HttpBody, Bytes};
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, FromRequest, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json, Router};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream::{self, Stream, StreamExt as _};
use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;
use utoipa::{IntoParams, OpenApi};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use utoipa_axum::routes;
use wingbeat_api::{
    ApiError, FleetAircraft, FleetBundle, FleetBundleRequest, FleetCommandNote, FleetCommandReply,
    FleetCommandRequest, FleetFlightSetupWrite, FleetFlightSetups, FleetLeases, FleetLinkTest, FleetLinks,
    FleetLogLine, FleetMissionUpload, FleetParameterRead, FleetParameterWrite, FleetParameters, FleetPicture,
    FleetRegionRead, FleetRegionWrite, FleetRegions, FleetTakeOver, FleetUpdate, FormationPictures,
    LinkTestRequest, MissionExport, MissionExportFile, MissionFile, MissionFileContent, MissionSummary,
    ParameterComparison, ParameterReference, PlanDraft, PlanFile, PlanPreview, RecordedTrack, Records,
    RegionFile, RegionFileContent, SavedPlan, paths,
};
use wingbeat_server::Connection;

use crate::access::{self, Caller, Wrote, wrote};
use crate::alarms;
use crate::checklist;
use crate::client;
use crate::mission_file;
use crate::owner::{Push, Subscription};
use crate::page;
use crate::plan_file;
use crate::planning;
use crate::readers::Budget;
use crate::records;
use crate::refused::Refused;
use crate::region_file;
use crate::service::Service;

/// More than a mission of the largest size needs.
pub(crate) const MAX_BODY_BYTES: usize = 128 * 1024;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Wingbeat ground service",
        description = "One picture of the fleet, commands for many aircraft. Served by the PC Companion.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    components(schemas(FleetUpdate, FleetLogLine))
)]
struct Document;

/// The description of the API, as committed under docs/openapi.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    api().split_for_parts().1
}

fn api() -> OpenApiRouter<Service> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(fleet))
        .routes(routes!(events))
        .routes(routes!(aircraft))
        .routes(routes!(command))
        .routes(routes!(alarms::alarms, alarms::acknowledge_alarms))
        .routes(routes!(command_note))
        .routes(routes!(take_over))
        .routes(routes!(mission))
        .routes(routes!(access::http::session, access::http::sign_in, access::http::sign_out))
        .routes(routes!(access::http::audit))
        .routes(routes!(access::http::users))
        .routes(routes!(access::http::end_sessions))
        .routes(routes!(links))
        .routes(routes!(link_test, begin_link_test, end_link_test))
        .routes(routes!(link_test_file))
        .routes(
            routes!(parameters, read_parameters, write_parameters)
                .layer(DefaultBodyLimit::max(mission_file::MAX_BODY_BYTES)),
        )
        .routes(routes!(parameter_file))
        .routes(routes!(bundle, begin_bundle))
        .routes(routes!(checklist::http::checklist, checklist::http::tick, checklist::http::begin_anew))
        .routes(routes!(checklist::http::results))
        .routes(routes!(checklist::http::result))
        .routes(routes!(parameter_comparison).layer(DefaultBodyLimit::max(mission_file::MAX_BODY_BYTES)))
        .routes(routes!(regions, read_regions, write_regions))
        .routes(routes!(flight_setups, write_flight_setups))
        .routes(routes!(region_file).layer(DefaultBodyLimit::max(mission_file::MAX_BODY_BYTES)))
        .routes(routes!(mission_file).layer(DefaultBodyLimit::max(mission_file::MAX_BODY_BYTES)))
        .routes(routes!(mission_export).layer(DefaultBodyLimit::max(mission_file::MAX_BODY_BYTES)))
        .routes(routes!(formations))
        .routes(routes!(plan_as_file).layer(DefaultBodyLimit::max(mission_file::MAX_BODY_BYTES)))
        .routes(routes!(saved_plan).layer(DefaultBodyLimit::max(mission_file::MAX_BODY_BYTES)))
        .routes(routes!(records))
        .routes(routes!(records_track))
        .routes(routes!(records_page))
        .routes(routes!(plan_preview).layer(DefaultBodyLimit::max(mission_file::MAX_BODY_BYTES)))
}

/// The whole service as a router.
pub(crate) fn router(service: Service) -> Router {
    let (router, document) = api().split_for_parts();
    let router = match document.to_json() {
        Ok(document) => router.merge(wingbeat_server::described(document)),
        Err(error) => {
            tracing::error!("the description of the API is not served: {error}");
            router
        }
    };
    router
        .route(paths::METRICS, axum::routing::get(metrics))
        .route(paths::TILE_JSON, axum::routing::get(page::tile_json))
        .route(paths::TILES, axum::routing::get(page::tile))
        .fallback(page::serve)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(axum::middleware::from_fn_with_state(service.clone(), access::gate))
        .with_state(service)
}

async fn method_not_allowed(request: axum::extract::Request) -> Refused {
    let message =
        format!("{} {}: this path does not take this method", request.method(), request.uri().path());
    Refused::bad_request(message).with_status(StatusCode::METHOD_NOT_ALLOWED)
}

/// A JSON body; what is wrong with it is answered like every other refusal.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: serde::de::DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Refused;

    async fn from_request(request: axum::extract::Request, state: &S) -> Result<Self, Refused> {
        match Json::<T>::from_request(request, state).await {
            Ok(Json(value)) => Ok(Self(value)),
            Err(rejection) => {
                let refused = Refused::bad_request(rejection.body_text());
                Err(match rejection {
                    JsonRejection::BytesRejection(_) | JsonRejection::MissingJsonContentType(_) => {
                        refused.with_status(rejection.status())
                    }
                    _ => refused,
                })
            }
        }
    }
}

/// The fleet as it is now.
#[utoipa::path(get, path = paths::FLEET, tag = "fleet", responses(
    (status = 200, description = "The picture", body = FleetPicture),
    (status = 503, description = "The service is ending", body = ApiError),
))]
async fn fleet(State(service): State<Service>) -> Result<Json<FleetPicture>, Refused> {
    service.picture().await.map(Json)
}

/// What is measured, as Prometheus' text.
async fn metrics(State(service): State<Service>) -> Result<Response, Refused> {
    let text = crate::metrics::text(&service.picture().await?, &service.access().audit.after(u64::MAX));
    Ok(([(header::CONTENT_TYPE, wingbeat_api::metrics::CONTENT_TYPE)], text).into_response())
}

/// One aircraft, by its id.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OfVehicle {
    /// 16 hexadecimal digits.
    vehicle: String,
}

/// One aircraft with all that is known of it, the parameters of its flight controller included.
#[utoipa::path(get, path = paths::FLEET_AIRCRAFT, tag = "fleet", params(OfVehicle), responses(
    (status = 200, description = "The aircraft", body = FleetAircraft),
    (status = 400, description = "No id was given", body = ApiError),
    (status = 404, description = "No such aircraft", body = ApiError),
    (status = 503, description = "The service is ending", body = ApiError),
))]
async fn aircraft(
    State(service): State<Service>,
    query: Result<Query<OfVehicle>, QueryRejection>,
) -> Result<Json<FleetAircraft>, Refused> {
    let Query(OfVehicle { vehicle }) =
        query.map_err(|rejection| Refused::bad_request(rejection.body_text()))?;
    service.aircraft(vehicle).await.map(Json)
}

/// The fleet as it changes: server-sent events.
///
/// First a `picture` (FleetPicture); then `update` (FleetUpdate, changes only) at most every
/// 200 ms and at least every second, `log` (FleetLogLine), and a new `picture` whenever missions or the set of
/// aircraft change or the reader has fallen behind: what it has not read by then is dropped. Compressed with gzip for
/// readers that accept it. Where there are too many consoles, the oldest of the address that has the most ends.
#[utoipa::path(get, path = paths::FLEET_EVENTS, tag = "fleet", responses(
    (status = 200, description = "The event stream", body = String, content_type = "text/event-stream"),
    (status = 503, description = "The service is ending", body = ApiError),
))]
async fn events(
    State(service): State<Service>,
    Extension(caller): Extension<Caller>,
    connection: Connection,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let subscription = service.subscribe().await?;
    let events = Sse::new(console(service, caller, subscription, connection.stream()))
        .keep_alive(KeepAlive::default());
    let mut response = events.into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    Ok(if accepts_gzip(&headers) { compressed(response) } else { response })
}

/// Whether a reader lists gzip, and not with the quality 0.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0)))
    })
}

/// Every event leaves at once: each chunk of the body ends on a boundary of bytes.
fn compressed(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let chunks = body.into_data_stream().map(move |chunk| {
        let chunk = chunk.map_err(std::io::Error::other)?;
        std::io::Write::write_all(&mut encoder, &chunk)?;
        std::io::Write::flush(&mut encoder)?;
        Ok::<_, std::io::Error>(Bytes::from(std::mem::take(encoder.get_mut())))
    });
    Response::from_parts(parts, HttpBody::from_stream(chunks))
}

/// What one console is sent. It ends with the service, and with the session.
fn console(
    service: Service,
    caller: Caller,
    start: Subscription,
    counted: wingbeat_server::Stream,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let state = (service, start.pushes, Some(start.picture), counted);
    stream::unfold(state, move |(service, mut pushes, first, counted)| {
        let caller = caller.clone();
        async move {
            // There is a push every second at the latest.
            if !service.access().goes_on(&caller) {
                return None;
            }
            if let Some(picture) = first {
                return Some((Ok(event(&picture)), (service, pushes, None, counted)));
            }
            match pushes.recv().await {
                Ok(push) => Some((Ok(event(&push)), (service, pushes, None, counted))),
                Err(RecvError::Closed) => None,
                Err(RecvError::Lagged(_)) => {
                    drop(pushes);
                    let Subscription { picture, pushes } = service.subscribe().await.ok()?;
                    Some((Ok(event(&picture)), (service, pushes, None, counted)))
                }
            }
        }
    })
}

fn event(push: &Push) -> Event {
    Event::default().event(push.event).data(&push.data)
}

/// A command for one, several or all aircraft.
///
/// It is sent to each until it is answered or expires; what became of it stands in the picture. The same
/// id is the same command, however often it is posted.
#[utoipa::path(post, path = paths::FLEET_COMMANDS, tag = "fleet", request_body = FleetCommandRequest, responses(
    (status = 202, description = "It is being sent", body = FleetCommandReply),
    (status = 200, description = "The same command came before", body = FleetCommandReply),
    (status = 400, description = "The request is wrong", body = ApiError),
    (status = 404, description = "No such aircraft", body = ApiError),
    (status = 409, description = "It cannot be done now, or another command came under this id", body = ApiError),
))]
async fn command(
    State(service): State<Service>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<FleetCommandRequest>,
) -> Response {
    let what = Wrote {
        action: "command",
        what: request.command.to_string(),
        to: request.vehicles.clone(),
        id: request.id.clone(),
        ..Wrote::default()
    };
    let admitted = service.admit(request, caller.name).await;
    let answer = admitted.map(|admitted| {
        let status = if admitted.repeated { StatusCode::OK } else { StatusCode::ACCEPTED };
        (status, Json(admitted.reply))
    });
    wrote(what, answer)
}

/// Why a command was given, in the operator's words: it is shown with the command, and sent to no aircraft.
#[utoipa::path(put, path = paths::FLEET_COMMAND_NOTE, tag = "fleet", request_body = FleetCommandNote, responses(
    (status = 204, description = "It is shown with the command"),
    (status = 400, description = "The request is wrong", body = ApiError),
    (status = 404, description = "No such command is shown", body = ApiError),
    (status = 503, description = "The service is ending", body = ApiError),
))]
async fn command_note(State(service): State<Service>, Body(note): Body<FleetCommandNote>) -> Response {
    let what = Wrote { action: "note", what: note.note.clone(), id: note.id.clone(), ..Wrote::default() };
    wrote(what, service.note(note).await.map(|()| StatusCode::NO_CONTENT))
}

/// Takes the leases of aircraft over from the consoles that hold them. Those consoles then command these aircraft no more, but for
/// what ends a flight.
#[utoipa::path(post, path = paths::FLEET_LEASES, tag = "fleet", request_body = FleetTakeOver, responses(
    (status = 200, description = "What each answered", body = FleetLeases),
    (status = 400, description = "The request is wrong", body = ApiError),
    (status = 404, description = "No such aircraft", body = ApiError),
    (status = 503, description = "The service is ending", body = ApiError),
))]
async fn take_over(State(service): State<Service>, Body(take_over): Body<FleetTakeOver>) -> Response {
    let what = Wrote { action: "take_over", to: take_over.vehicles.clone(), ..Wrote::default() };
    wrote(what, service.take_over(&take_over).await.map(Json))
}

/// A mission for one aircraft; the answer is the aircraft's own.
#[utoipa::path(put, path = paths::FLEET_MISSION, tag = "fleet", request_body = FleetMissionUpload, responses(
    (status = 200, description = "The aircraft took it", body = MissionSummary),
    (status = 400, description = "The request or the mission is wrong", body = ApiError),
    (status = 404, description = "No such aircraft", body = ApiError),
    (status = 409, description = "The aircraft cannot take it now", body = ApiError),
    (status = 502, description = "The aircraft does not answer", body = ApiError),
))]
async fn mission(State(service): State<Service>, Body(upload): Body<FleetMissionUpload>) -> Response {
    let what = Wrote {
        action: "mission",
        what: format!("{}, {} waypoints", upload.mission.name, upload.mission.waypoints.len()),
        to: vec![upload.vehicle.clone()],
        ..Wrote::default()
    };
    wrote(what, give(&service, upload).await)
}

/// Passes a mission on.
pub(crate) async fn give(service: &Service, upload: FleetMissionUpload) -> Result<Response, Refused> {
    let client = service.client_of(&upload.vehicle).map_err(Refused::unavailable)?;
    let address = service.locate(upload.vehicle).await?;
    let answer = {
        let token = service.token(&address);
        client::put_mission(&client, &address, &upload.mission, token).await
    };
    let (status, body) = answer.map_err(|reason| Refused::unavailable(format!("{address}: {reason}")))?;
    let status = StatusCode::from_u16(status.as_u16()).unwrap_or(StatusCode::BAD_GATEWAY);
    Ok((status, [(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// What each aircraft receives of the probes of every other.
///
/// The aircraft are asked at most every 2 s, and every tenth of a second for each of them where they are more than 20.
#[utoipa::path(get, path = paths::FLEET_LINKS, tag = "links", responses(
    (status = 200, description = "The links of every pair", body = FleetLinks),
    (status = 503, description = "The service is ending", body = ApiError),
))]
async fn links(State(service): State<Service>) -> Result<Json<FleetLinks>, Refused> {
    service.links().await.map(Json)
}

/// Begins a test of the link from one aircraft to others. It ends after its time.
#[utoipa::path(post, path = paths::FLEET_LINK_TEST, tag = "links", request_body = LinkTestRequest, responses(
    (status = 202, description = "It runs", body = FleetLinkTest),
    (status = 400, description = "Not a test that may be flown", body = ApiError),
    (status = 404, description = "No such aircraft", body = ApiError),
    (status = 409, description = "Another test runs, or an aircraft cannot take part now", body = ApiError),
    (status = 502, description = "An aircraft does not answer", body = ApiError),
))]
async fn begin_link_test(State(service): State<Service>, Body(request): Body<LinkTestRequest>) -> Response {
    let to = std::iter::once(&request.sender).chain(&request.receivers).cloned().collect();
    let what = Wrote { action: "begin_link_test", to, ..Wrote::default() };
    let begun = service.begin_link_test(request).await;
    wrote(what, begun.map(|test| (StatusCode::ACCEPTED, Json(test))))
}

/// The test that runs, or the last.
#[utoipa::path(get, path = paths::FLEET_LINK_TEST, tag = "links", responses(
    (status = 200, description = "What its aircraft answer", body = FleetLinkTest),
    (status = 404, description = "There was none since the service started", body = ApiError),
))]
async fn link_test(State(service): State<Service>) -> Result<Json<FleetLinkTest>, Refused> {
    Ok(Json(service.link_test().await?.report().await))
}

/// Ends the test that runs.
#[utoipa::path(delete, path = paths::FLEET_LINK_TEST, tag = "links", responses(
    (status = 200, description = "It has ended at the aircraft that answer", body = FleetLinkTest),
    (status = 404, description = "There was none since the service started", body = ApiError),
))]
async fn end_link_test(State(service): State<Service>) -> Response {
    let what = Wrote { action: "end_link_test", ..Wrote::default() };
    wrote(what, service.end_link_test().await.map(Json))
}

/// One receiver's record.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OfReceiver {
    /// 16 hexadecimal digits.
    receiver: String,
}

/// What was recorded of the test at one receiver: the file that `wingbeat linktest report` reads.
#[utoipa::path(get, path = paths::FLEET_LINK_TEST_FILE, tag = "links", params(OfReceiver), responses(
    (status = 200, description = "The file", body = String, content_type = "text/csv"),
    (status = 400, description = "No receiver of it", body = ApiError),
    (status = 404, description = "There was none since the service started", body = ApiError),
    (status = 502, description = "An aircraft does not answer", body = ApiError),
))]
async fn link_test_file(
    State(service): State<Service>,
    query: Result<Query<OfReceiver>, QueryRejection>,
) -> Result<Response, Refused> {
    let Query(OfReceiver { receiver }) = query
        .map_err(|rejection| Refused::bad_request(format!("{}: {rejection}", paths::FLEET_LINK_TEST_FILE)))?;
    let test = service.link_test().await?;
    let file = test.record(&receiver).await?.to_csv();
    let name = format!("attachment; filename=\"linktest-{receiver}.csv\"");
    let headers = [(header::CONTENT_TYPE, "text/csv".to_owned()), (header::CONTENT_DISPOSITION, name)];
    Ok((headers, file).into_response())
}

/// How far the aircraft have come with reading and setting parameters.
#[utoipa::path(get, path = paths::FLEET_PARAMETERS, tag = "parameters", responses(
    (status = 200, description = "Every aircraft whose id is known", body = FleetParameters),
    (status = 503, description = "The service is ending", body = ApiError),
))]
async fn parameters(State(service): State<Service>) -> Result<Json<FleetParameters>, Refused> {
    service.parameters().await.map(Json)
}

/// The parameters that an aircraft has read, as a file that ground stations and the comparison read.
#[utoipa::path(get, path = paths::FLEET_PARAMETERS_FILE, tag = "parameters", params(OfVehicle), responses(
    (status = 200, description = "The file", body = String, content_type = "text/plain"),
    (status = 400, description = "No aircraft is named, or none of the fleet", body = ApiError),
    (status = 409, description = "It has not read them all", body = ApiError),
    (status = 503, description = "The aircraft does not answer, or the service is ending", body = ApiError),
))]
async fn parameter_file(
    State(service): State<Service>,
    query: Result<Query<OfVehicle>, QueryRejection>,
) -> Result<Response, Refused> {
    let Query(OfVehicle { vehicle }) =
        query.map_err(|rejection| Refused::bad_request(rejection.body_text()))?;
    let (name, file) = service.parameter_file(&vehicle).await?;
    let name = format!("attachment; filename=\"{name}\"");
    let headers =
        [(header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()), (header::CONTENT_DISPOSITION, name)];
    Ok((headers, file).into_response())
}

/// The aircraft read every parameter of their flight controllers, on the ground: it takes each up to 35 s.
#[utoipa::path(post, path = paths::FLEET_PARAMETERS, tag = "parameters", request_body = FleetParameterRead, responses(
    (status = 202, description = "What each answered", body = FleetParameters),
    (status = 400, description = "The request is wrong", body = ApiError),
    (status = 404, description = "No such aircraft", body = ApiError),
))]
async fn read_parameters(State(service): State<Service>, Body(read): Body<FleetParameterRead>) -> Response {
    let what = Wrote { action: "read_parameters", to: read.vehicles.clone(), ..Wrote::default() };
    let answer = service.read_parameters(&read.vehicles).await;
    wrote(what, answer.map(|fleet| (StatusCode::ACCEPTED, Json(fleet))))
}

/// Gives aircraft parameters. Each aircraft refuses them while its motors are armed, sets one after another and reads each back; what
/// became of them shows in its progress.
#[utoipa::path(put, path = paths::FLEET_PARAMETERS, tag = "parameters", request_body = FleetParameterWrite, responses(
    (status = 202, description = "What each answered", body = FleetParameters),
    (status = 400, description = "The request is wrong", body = ApiError),
    (status = 404, description = "No such aircraft", body = ApiError),
    (status = 413, description = "It is too large", body = ApiError),
))]
async fn write_parameters(
    State(service): State<Service>,
    Body(write): Body<FleetParameterWrite>,
) -> Response {
    let names: std::collections::BTreeSet<&str> =
        write.vehicles.iter().flat_map(|one| &one.parameters).map(|one| one.name.as_str()).collect();
    let what = Wrote {
        action: "set_parameters",
        what: names.into_iter().collect::<Vec<_>>().join(" "),
        to: write.vehicles.iter().map(|one| one.vehicle.clone()).collect(),
        ..Wrote::default()
    };
    let answer = service.write_parameters(write).await;
    wrote(what, answer.map(|fleet| (StatusCode::ACCEPTED, Json(fleet))))
}

/// The parameters that the aircraft have read, compared with each other and with a profile; nothing is sent to aircraft.
#[utoipa::path(post, path = paths::FLEET_PARAMETERS_COMPARISON, tag = "parameters", request_body = ParameterReference,
    responses(
    (status = 200, description = "What differs", body = ParameterComparison),
    (status = 400, description = "The request is wrong", body = ApiError),
    (status = 413, description = "It is too large", body = ApiError),
    (status = 503, description = "The service is ending", body = ApiError),
))]
async fn parameter_comparison(
    State(service): State<Service>,
    Body(reference): Body<ParameterReference>,
) -> Result<Json<ParameterComparison>, Refused> {
    service.compare_parameters(reference).await.map(Json)
}

/// The bundle of logs that is being collected, or the last.
#[utoipa::path(get, path = paths::FLEET_BUNDLE, tag = "logs", responses(
    (status = 200, description = "How far it has come", body = FleetBundle),
))]
async fn bundle(State(service): State<Service>) -> Json<FleetBundle> {
    Json(service.bundles().report())
}

/// Collects the logs of all aircraft into a folder of the service's computer, with a manifest.
///
/// Aircraft give them on the ground alone. One that does not answer ends nothing, and is named in the manifest.
#[utoipa::path(post, path = paths::FLEET_BUNDLE, tag = "logs", request_body = FleetBundleRequest, responses(
    (status = 202, description = "It is being collected", body = FleetBundle),
    (status = 400, description = "The request is wrong", body = ApiError),
    (status = 409, description = "One is being collected, or the service has no folder for it", body = ApiError),
    (status = 503, description = "The service is ending", body = ApiError),
))]
async fn begin_bundle(State(service): State<Service>, Body(request): Body<FleetBundleRequest>) -> Response {
    let what = Wrote { action: "collect_logs", what: request.experiment.clone(), ..Wrote::default() };
    let answer = service.begin_bundle(request).await;
    wrote(what, answer.map(|begun| (StatusCode::ACCEPTED, Json(begun))))
}

/// Fence and rally points of the aircraft as they read them last, compared with what was sent.
#[utoipa::path(get, path = paths::FLEET_REGION, tag = "region", responses(
    (status = 200, description = "Every aircraft whose id is known", body = FleetRegions),
    (status = 503, description = "The service is ending", body = ApiError),
))]
async fn regions(State(service): State<Service>) -> Result<Json<FleetRegions>, Refused> {
    service.regions().await.map(Json)
}

/// The aircraft read fence and rally points of their flight controllers, on the ground.
#[utoipa::path(post, path = paths::FLEET_REGION, tag = "region", request_body = FleetRegionRead, responses(
    (status = 202, description = "What each answered", body = FleetRegions),
    (status = 400, description = "The request is wrong", body = ApiError),
    (status = 404, description = "No such aircraft", body = ApiError),
))]
async fn read_regions(State(service): State<Service>, Body(read): Body<FleetRegionRead>) -> Response {
    let what = Wrote { action: "read_region", to: read.vehicles.clone(), ..Wrote::default() };
    let answer = service.read_regions(&read.vehicles).await;
    wrote(what, answer.map(|fleet| (StatusCode::ACCEPTED, Json(fleet))))
}

/// Sends aircraft a fence, rally points or both; an empty list is cleared. Each aircraft refuses them while its motors are armed, and where
/// home or its route is outside; it reads them back, and what differs shows in its state.
#[utoipa::path(put, path = paths::FLEET_REGION, tag = "region", request_body = FleetRegionWrite, responses(
    (status = 202, description = "What each answered", body = FleetRegions),
    (status = 400, description = "No fence, or no rally points", body = ApiError),
    (status = 404, description = "No such aircraft", body = ApiError),
    (status = 413, description = "It is too large", body = ApiError),
))]
async fn write_regions(State(service): State<Service>, Body(write): Body<FleetRegionWrite>) -> Response {
    let parts = [
        write.region.fence.as_ref().map(|fence| format!("fence of {} areas", fence.len())),
        write.region.rally.as_ref().map(|rally| format!("{} rally points", rally.len())),
    ];
    let what = Wrote {
        action: "send_region",
        what: parts.into_iter().flatten().collect::<Vec<_>>().join(", "),
        to: write.vehicles.clone(),
        ..Wrote::default()
    };
    let answer = service.write_regions(&write).await;
    wrote(what, answer.map(|fleet| (StatusCode::ACCEPTED, Json(fleet))))
}

/// How the aircraft are to fly, what of that can be set, and what one has otherwise than most of its swarm.
#[utoipa::path(get, path = paths::FLEET_FLIGHT_SETUP, tag = "flight set-up", responses(
    (status = 200, description = "Every aircraft whose id is known", body = FleetFlightSetups),
    (status = 503, description = "The service is ending", body = ApiError),
))]
async fn flight_setups(State(service): State<Service>) -> Result<Json<FleetFlightSetups>, Refused> {
    service.flight_setups().await.map(Json)
}

/// Sets the flight up at many aircraft alike, over the configuration of each; null clears that. Each refuses it while its motors are
/// armed, once its flight has begun, and where a key or a value is not one that it flies.
#[utoipa::path(put, path = paths::FLEET_FLIGHT_SETUP, tag = "flight set-up", request_body = FleetFlightSetupWrite, responses(
    (status = 200, description = "What each answered", body = FleetFlightSetups),
    (status = 400, description = "The request is wrong", body = ApiError),
    (status = 404, description = "No such aircraft", body = ApiError),
    (status = 413, description = "It is too large", body = ApiError),
))]
async fn write_flight_setups(
    State(service): State<Service>,
    Body(write): Body<FleetFlightSetupWrite>,
) -> Response {
    let what = Wrote {
        action: "set_flight_up",
        what: write.setup.as_ref().map_or_else(|| "as configured".to_owned(), ToString::to_string),
        to: write.vehicles.clone(),
        ..Wrote::default()
    };
    wrote(what, service.write_flight_setups(&write).await.map(Json))
}

/// Reads a file with a fence or rally points, a QGroundControl plan or GeoJSON; nothing is sent to aircraft.
#[utoipa::path(post, path = paths::REGION_FILES, tag = "region", request_body = RegionFile, responses(
    (status = 200, description = "What the file holds", body = RegionFileContent),
    (status = 400, description = "Not such a file, or what it holds is no fence", body = ApiError),
    (status = 413, description = "It is too large", body = ApiError),
))]
async fn region_file(
    State(service): State<Service>,
    Body(file): Body<RegionFile>,
) -> Result<Json<RegionFileContent>, Refused> {
    let read = reading(&service, move || region_file::read(&file)).await?;
    read.map(Json).map_err(Refused::bad_request)
}

/// Reads a mission file; nothing is sent to aircraft.
///
/// QGC WPL 110, QGroundControl plan or KML. What is read can be given to aircraft one by one.
#[utoipa::path(post, path = paths::MISSION_FILES, tag = "fleet", request_body = MissionFile, responses(
    (status = 200, description = "What it holds", body = MissionFileContent),
    (status = 400, description = "It is not a mission that can be flown", body = ApiError),
    (status = 413, description = "It is too large", body = ApiError),
))]
async fn mission_file(
    State(service): State<Service>,
    Body(mut file): Body<MissionFile>,
) -> Result<Json<MissionFileContent>, Refused> {
    mission_file::complete(&mut file, &service.picture().await?.aircraft);
    let read = reading(&service, move || mission_file::read(&file)).await?;
    read.map(Json).map_err(Refused::bad_request)
}

/// Writes a mission file; nothing is sent to aircraft.
#[utoipa::path(post, path = paths::MISSION_EXPORT, tag = "fleet", request_body = MissionExport, responses(
    (status = 200, description = "The file", body = MissionExportFile),
    (status = 400, description = "A mission that cannot be flown, or too many for the format", body = ApiError),
    (status = 413, description = "It is too large", body = ApiError),
))]
async fn mission_export(
    State(service): State<Service>,
    Body(request): Body<MissionExport>,
) -> Result<Json<MissionExportFile>, Refused> {
    let written = reading(&service, move || mission_file::export(&request)).await?;
    written.map(Json).map_err(Refused::bad_request)
}

/// So many aircraft, so far apart.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OfFormations {
    /// 1 to 128.
    aircraft: u8,
    /// Distance between slots, metres.
    distance_m: f64,
}

/// The formations that a plan can name, each with its places, to be drawn.
#[utoipa::path(get, path = paths::FORMATIONS, tag = "fleet", params(OfFormations), responses(
    (status = 200, description = "The formations", body = FormationPictures),
    (status = 400, description = "No number of aircraft, or no distance", body = ApiError),
))]
async fn formations(
    query: Result<Query<OfFormations>, QueryRejection>,
) -> Result<Json<FormationPictures>, Refused> {
    let Query(asked) = query.map_err(|rejection| Refused::bad_request(rejection.body_text()))?;
    let pictures = plan_file::formations(usize::from(asked.aircraft), asked.distance_m);
    pictures.map(Json).map_err(Refused::bad_request)
}

/// Writes a plan as a file that `wingbeat bench run` flies, its missions included; nothing is sent to aircraft.
#[utoipa::path(post, path = paths::PLAN_FILE, tag = "fleet", request_body = PlanFile, responses(
    (status = 200, description = "The file", body = MissionExportFile),
    (status = 400, description = "A plan that cannot be flown", body = ApiError),
    (status = 413, description = "It is too large", body = ApiError),
))]
async fn plan_as_file(
    State(service): State<Service>,
    Body(plan): Body<PlanFile>,
) -> Result<Json<MissionExportFile>, Refused> {
    let written = reading(&service, move || plan_file::write(&plan)).await?;
    written.map(Json).map_err(Refused::bad_request)
}

/// Reads a file that a plan was written as, its missions included; nothing is sent to aircraft.
#[utoipa::path(post, path = paths::SAVED_PLANS, tag = "fleet", request_body = SavedPlan, responses(
    (status = 200, description = "The plan", body = PlanFile),
    (status = 400, description = "Not such a file, or a plan that cannot be flown", body = ApiError),
    (status = 413, description = "It is too large", body = ApiError),
))]
async fn saved_plan(
    State(service): State<Service>,
    Body(file): Body<SavedPlan>,
) -> Result<Json<PlanFile>, Refused> {
    let read = reading(&service, move || plan_file::read(&file)).await?;
    read.map(Json).map_err(Refused::bad_request)
}

/// Previews missions against the fleet as it is now; nothing is sent to aircraft.
#[utoipa::path(post, path = paths::PLAN_PREVIEW, tag = "fleet", request_body = PlanDraft, responses(
    (status = 200, description = "What would be flown, and what is wrong with it", body = PlanPreview),
    (status = 400, description = "The request is wrong", body = ApiError),
    (status = 404, description = "No such aircraft", body = ApiError),
    (status = 413, description = "It is too large", body = ApiError),
    (status = 503, description = "The service is ending", body = ApiError),
))]
async fn plan_preview(
    State(service): State<Service>,
    Body(draft): Body<PlanDraft>,
) -> Result<Json<PlanPreview>, Refused> {
    let aircraft = service.picture().await?.aircraft;
    reading(&service, move || planning::preview(&draft, &aircraft)).await?.map(Json)
}

/// The recorded flights of the directory that the service was given.
#[utoipa::path(get, path = paths::RECORDS, tag = "records", responses(
    (status = 200, description = "The logs", body = Records),
    (status = 404, description = "The service has no directory of records", body = ApiError),
    (status = 502, description = "It cannot be read", body = ApiError),
))]
async fn records(State(service): State<Service>) -> Result<Json<Records>, Refused> {
    let root = service.records()?;
    reading_within(&service, move |budget| records::list(&root, budget)).await?.map(Json)
}

/// One page of results.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OfPage {
    /// Its path, as it is listed.
    file: String,
}

/// The page of a campaign's results, for a browser: of an origin of its own, without scripts.
#[utoipa::path(get, path = paths::RECORDS_PAGE, tag = "records", params(OfPage), responses(
    (status = 200, description = "The page", body = String, content_type = "text/html"),
    (status = 400, description = "No path of a page", body = ApiError),
    (status = 404, description = "No such page, or no directory of records", body = ApiError),
    (status = 502, description = "It cannot be read", body = ApiError),
))]
async fn records_page(
    State(service): State<Service>,
    query: Result<Query<OfPage>, QueryRejection>,
) -> Result<Response, Refused> {
    let Query(OfPage { file }) = query.map_err(|rejection| Refused::bad_request(rejection.body_text()))?;
    let root = service.records()?;
    let page = reading(&service, move || records::page(&root, &file)).await??;
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CACHE_CONTROL, "no-store")];
    let mut response = (headers, page).into_response();
    response.extensions_mut().insert(wingbeat_server::Foreign);
    Ok(response)
}

/// One log.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OfLog {
    /// Its path, as it is listed.
    file: String,
    /// How many samples the answer has at most, 100 to 20000; 20000 unless it is given.
    samples: Option<u32>,
}

/// What of a recorded flight is replayed: samples, datagrams and events in columns, thinned to the bound that is asked for.
/// Compressed with gzip for readers that accept it.
#[utoipa::path(get, path = paths::RECORDS_TRACK, tag = "records", params(OfLog), responses(
    (status = 200, description = "The track", body = RecordedTrack),
    (status = 400, description = "No path of a log, or no log", body = ApiError),
    (status = 404, description = "No such log, or no directory of records", body = ApiError),
    (status = 502, description = "It cannot be read", body = ApiError),
))]
async fn records_track(
    State(service): State<Service>,
    headers: HeaderMap,
    query: Result<Query<OfLog>, QueryRejection>,
) -> Result<Response, Refused> {
    let Query(OfLog { file, samples }) =
        query.map_err(|rejection| Refused::bad_request(rejection.body_text()))?;
    let root = service.records()?;
    let work =
        move |budget: &Budget| records::read(&root, &file, samples.unwrap_or(records::SAMPLES_MAX), budget);
    let mut response = Json(reading_within(&service, work).await??).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    Ok(if accepts_gzip(&headers) { compressed(response) } else { response })
}

/// Does in a thread of its own what may take a while, a few pieces at a time.
pub(crate) async fn reading<T: Send + 'static>(
    service: &Service,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refused> {
    reading_within(service, |_| work()).await
}

/// Does the same within a budget, which ends when the client goes.
async fn reading_within<T: Send + 'static>(
    service: &Service,
    work: impl FnOnce(&Budget) -> T + Send + 'static,
) -> Result<T, Refused> {
    let reader = service.readers().take().await;
    let (budget, client) = service.readers().budget();
    let work = move || {
        let done = work(&budget);
        drop(reader);
        done
    };
    let done = tokio::task::spawn_blocking(work).await;
    drop(client);
    done.map_err(|error| Refused::bad_request(format!("the files were not read: {error}")))
}
