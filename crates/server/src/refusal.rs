//! What is refused before it reaches a router, in the one shape of every refusal.

use std::borrow::Cow;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use wingbeat_api::ApiError;

/// A request that does not reach the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: Cow<'static, str>,
    /// The rest of the request is not read.
    pub(crate) close: bool,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, message: message.into(), close: false }
    }

    pub(crate) fn closing(self) -> Self {
        Self { close: true, ..self }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = ApiError { code: self.code.to_owned(), message: self.message.into_owned() };
        let mut response = (self.status, Json(body)).into_response();
        if self.close {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
