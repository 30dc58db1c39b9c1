//! The checklist over HTTP.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use utoipa::IntoParams;
use wingbeat_api::{ApiError, Checklist, ChecklistResult, ChecklistResults, TickWrite, paths};
use wingbeat_server::Connection;

use crate::access::{Caller, Wrote, wrote};
use crate::http::{Body, reading};
use crate::refused::Refused;
use crate::service::Service;

/// The lab's checklist, and what of it is ticked. On the event stream it is a part of the picture.
#[utoipa::path(get, path = paths::FLEET_CHECKLIST, tag = "checklist", responses(
    (status = 200, description = "The checklist", body = Checklist),
    (status = 404, description = "The service has none", body = ApiError),
))]
pub(crate) async fn checklist(State(service): State<Service>) -> Result<Json<Checklist>, Refused> {
    service.checklist().map(Json)
}

/// Ticks an item, or unticks it. *Setup* and *Start* are refused while required items are not ticked; no other command is.
#[utoipa::path(put, path = paths::FLEET_CHECKLIST, tag = "checklist", request_body = TickWrite, responses(
    (status = 200, description = "The checklist after it", body = Checklist),
    (status = 400, description = "The request is wrong", body = ApiError),
    (status = 404, description = "No such item, no such aircraft, or no checklist", body = ApiError),
    (status = 409, description = "The checklist is another, or another console is in charge of an aircraft", body = ApiError),
))]
pub(crate) async fn tick(
    State(service): State<Service>,
    Extension(caller): Extension<Caller>,
    connection: Connection,
    Body(write): Body<TickWrite>,
) -> Response {
    let what = Wrote {
        action: if write.ticked { "tick" } else { "untick" },
        what: write.item.clone(),
        to: write.vehicles.clone(),
        ..Wrote::default()
    };
    let by = if caller.name.is_empty() { connection.peer().to_string() } else { caller.name };
    wrote(what, service.tick(&write, &by).await.map(Json))
}

/// No item is ticked any more.
#[utoipa::path(delete, path = paths::FLEET_CHECKLIST, tag = "checklist", responses(
    (status = 200, description = "The checklist after it", body = Checklist),
    (status = 404, description = "The service has none", body = ApiError),
))]
pub(crate) async fn begin_anew(State(service): State<Service>) -> Response {
    let what = Wrote { action: "begin_checklist_anew", ..Wrote::default() };
    wrote(what, service.begin_checklist_anew().await.map(Json))
}

/// What was kept with flights: a file for each *Start* that was accepted.
#[utoipa::path(get, path = paths::FLEET_CHECKLIST_RESULTS, tag = "checklist", responses(
    (status = 200, description = "The files", body = ChecklistResults),
    (status = 404, description = "The service has no checklist", body = ApiError),
    (status = 502, description = "The folder cannot be read", body = ApiError),
))]
pub(crate) async fn results(State(service): State<Service>) -> Result<Json<ChecklistResults>, Refused> {
    let desk = service.checklist_desk().clone();
    reading(&service, move || desk.results()).await?.map(Json)
}

/// One file.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OfResult {
    /// Its name, as it is listed.
    file: String,
}

/// What was kept with one flight: every item with who ticked it and when, every automatic check with its value.
#[utoipa::path(get, path = paths::FLEET_CHECKLIST_RESULT, tag = "checklist", params(OfResult), responses(
    (status = 200, description = "The file", body = ChecklistResult),
    (status = 400, description = "No name of a result", body = ApiError),
    (status = 404, description = "No such file, or no checklist", body = ApiError),
    (status = 502, description = "It cannot be read", body = ApiError),
))]
pub(crate) async fn result(
    State(service): State<Service>,
    query: Result<Query<OfResult>, QueryRejection>,
) -> Result<Response, Refused> {
    let Query(OfResult { file }) = query.map_err(|rejection| Refused::bad_request(rejection.body_text()))?;
    let (desk, name) = (service.checklist_desk().clone(), file.clone());
    let bytes = reading(&service, move || desk.result(&name)).await??;
    // Its name was checked: it has nothing that could end the header.
    let name = format!("attachment; filename=\"{file}\"");
    let headers =
        [(header::CONTENT_TYPE, "application/json".to_owned()), (header::CONTENT_DISPOSITION, name)];
    Ok((headers, bytes).into_response())
}
