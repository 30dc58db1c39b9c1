//! What a request passes before it reaches the router, and what every answer carries.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body as _;
use tokio::time::timeout;
use tower::ServiceExt as _;

use crate::refusal::Refusal;
use crate::table::{Connection, LargeBody};
use crate::{Foreign, Large, Settings};

/// As much of a body that is too long is read before it is refused, bytes.
const DRAINED_MAX: u64 = 32 * 1024 * 1024;

/// On every answer. The page needs nothing from elsewhere; the map makes images of its symbols (`data:`, `blob:`), and a
/// worker of its own.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
             connect-src 'self'; worker-src 'self' blob:; font-src 'self'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
        ),
    ),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

/// The policy of a page that others wrote ([`Foreign`]): its own styles and drawings, and nothing else.
const FOREIGN: HeaderValue = HeaderValue::from_static(
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'",
);

/// Answers one request of a connection.
pub(crate) async fn answer(
    request: Request,
    connection: Connection,
    router: Router,
    settings: &Settings,
) -> Response {
    let path = request.uri().path().to_owned();
    let mut response = match admit(request, &connection, settings, &path).await {
        Ok((mut request, large)) => {
            connection.answers();
            request.extensions_mut().insert(connection.clone());
            let response = match timeout(settings.answer_within, router.oneshot(request)).await {
                Ok(Ok(response)) => response,
                Ok(Err(never)) => match never {},
                Err(_) => late(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "unavailable",
                    &path,
                    "answer",
                    settings.answer_within,
                )
                .into_response(),
            };
            drop(large);
            response
        }
        Err(refusal) => refusal.into_response(),
    };
    connection.waits();
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, value);
    }
    if response.extensions().get::<Foreign>().is_some() {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, FOREIGN);
    }
    response
}

/// The request with its whole body, which others of its kind make room for.
async fn admit(
    request: Request,
    connection: &Connection,
    settings: &Settings,
    path: &str,
) -> Result<(Request, Option<LargeBody>), Refusal> {
    settings.hosts.check(request.uri(), request.headers())?;
    if request.body().is_end_stream() {
        return Ok((request, None));
    }
    let large = settings.large.filter(|large| large.paths.contains(&path));
    let most = large.map_or(settings.body_bytes, |large: Large| large.bytes);
    let too_long = || {
        let message = format!("{path}: found a longer body, expected at most {most} bytes (the limit)");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "bad_request", message).closing()
    };
    let large = large.map(|_| connection.large_body());
    let (parts, mut body) = request.into_parts();
    let reading = async {
        let declared = body.size_hint().lower();
        if declared <= most as u64 {
            match Limited::new(&mut body, most).collect().await {
                Ok(whole) => return Ok(whole.to_bytes()),
                Err(error) if error.is::<LengthLimitError>() => {}
                Err(error) => {
                    let message = format!("{path}: the body broke off: {error}");
                    return Err(Refusal::new(StatusCode::BAD_REQUEST, "bad_request", message).closing());
                }
            }
        }
        // Read to its end and dropped: a peer that is still sending would see a reset in place of the answer.
        let mut left = if declared <= DRAINED_MAX { DRAINED_MAX } else { 0 };
        while left > 0 {
            let Some(Ok(frame)) = body.frame().await else { break };
            left = left.saturating_sub(frame.data_ref().map_or(1, |data| data.len() as u64));
        }
        Err(too_long())
    };
    match timeout(settings.body_within, reading).await {
        Ok(read) => read.map(|bytes| (Request::from_parts(parts, Body::from(bytes)), large)),
        Err(_) => {
            Err(late(StatusCode::REQUEST_TIMEOUT, "bad_request", path, "body", settings.body_within)
                .closing())
        }
    }
}

fn late(status: StatusCode, code: &'static str, path: &str, what: &str, limit: Duration) -> Refusal {
    let message = format!("{path}: found no end of the {what}, expected it within {} s", limit.as_secs_f64());
    Refusal::new(status, code, message)
}
