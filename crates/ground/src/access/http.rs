//! Signing in and out, what was done, and the users, over HTTP.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;
use wingbeat_api::{Access, ApiError, AuditLog, SignIn, Users, paths};
use wingbeat_server::Connection;

use super::gate::{Wrote, wrote};
use crate::http::Body;
use crate::refused::Refused;
use crate::service::Service;

/// Whether users sign in here, and who asks.
#[utoipa::path(get, path = paths::SESSION, tag = "access", responses(
    (status = 200, description = "Who asks, or why that is not known", body = Access),
))]
pub(crate) async fn session(State(service): State<Service>, headers: HeaderMap) -> Json<Access> {
    Json(service.access().shown(&headers))
}

/// Signs in. The session is a cookie that scripts do not read and other sites do not send; it ends after its time, by
/// signing out, when the service is started anew, and when the user is taken out or has another password.
///
/// An address has 5 attempts at once and one more every 10 s, a name 10 and one more every 6 s.
#[utoipa::path(post, path = paths::SESSION, tag = "access", request_body = SignIn, responses(
    (status = 200, description = "A session has begun", body = Access),
    (status = 401, description = "No user has this name and this password", body = ApiError),
    (status = 409, description = "This service has no users", body = ApiError),
    (status = 429, description = "Too many attempts; `retry-after` states when", body = ApiError),
    (status = 503, description = "Too many passwords are compared now", body = ApiError),
))]
pub(crate) async fn sign_in(
    State(service): State<Service>,
    connection: Connection,
    headers: HeaderMap,
    Body(request): Body<SignIn>,
) -> Response {
    let user =
        if super::users::check_name(&request.name).is_ok() { request.name.clone() } else { String::new() };
    let what = Wrote { action: "sign_in", user, ..Wrote::default() };
    let signed_in = service.access().sign_in(request, connection.peer(), &headers).await;
    if signed_in.is_ok() {
        connection.trust();
    }
    let answer = signed_in.map(|(user, cookie)| {
        let access = Access { login: true, user: Some(user), ended: None };
        ([(header::SET_COOKIE, cookie)], Json(access))
    });
    wrote(what, answer)
}

/// Signs out: the session has ended, whatever has its cookie.
#[utoipa::path(delete, path = paths::SESSION, tag = "access", responses(
    (status = 204, description = "There is no session any more"),
))]
pub(crate) async fn sign_out(
    State(service): State<Service>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let access = service.access();
    let user = access.caller(&headers).map(|caller| caller.name).unwrap_or_default();
    access.sign_out(&headers);
    let cookie = access.no_cookie()?;
    let what = Wrote { action: "sign_out", user, ..Wrote::default() };
    Ok(wrote(what, (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)])))
}

/// The part of the log.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct After {
    /// Entries after the one with this number; all that are shown without it.
    #[serde(default)]
    after: u64,
}

/// What each user did through this service: the last 500 entries at most.
#[utoipa::path(get, path = paths::AUDIT, tag = "access", params(After), responses(
    (status = 200, description = "What was done", body = AuditLog),
    (status = 400, description = "No number", body = ApiError),
    (status = 403, description = "The user is no operator", body = ApiError),
))]
pub(crate) async fn audit(
    State(service): State<Service>,
    query: Result<Query<After>, QueryRejection>,
) -> Result<Json<AuditLog>, Refused> {
    let Query(After { after }) = query.map_err(|rejection| Refused::bad_request(rejection.body_text()))?;
    Ok(Json(service.access().audit.after(after)))
}

/// The users, and how many sessions each has.
#[utoipa::path(get, path = paths::USERS, tag = "access", responses(
    (status = 200, description = "The users", body = Users),
    (status = 403, description = "The user is no administrator", body = ApiError),
))]
pub(crate) async fn users(State(service): State<Service>) -> Json<Users> {
    Json(Users { users: service.access().list() })
}

/// One user.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OfUser {
    /// The name.
    user: String,
}

/// Ends every session of a user: that user signs in again, or not, where the users' file has been changed.
#[utoipa::path(delete, path = paths::USER_SESSIONS, tag = "access", params(OfUser), responses(
    (status = 204, description = "The user has no session any more"),
    (status = 400, description = "No name", body = ApiError),
    (status = 403, description = "The user who asks is no administrator", body = ApiError),
    (status = 404, description = "No such user", body = ApiError),
))]
pub(crate) async fn end_sessions(
    State(service): State<Service>,
    query: Result<Query<OfUser>, QueryRejection>,
) -> Result<Response, Refused> {
    let Query(OfUser { user }) = query.map_err(|rejection| Refused::bad_request(rejection.body_text()))?;
    let ended = service.access().end_sessions(&user);
    let what = Wrote { action: "end_sessions", what: user, ..Wrote::default() };
    Ok(wrote(what, ended.map(|_| StatusCode::NO_CONTENT).into_response()))
}
