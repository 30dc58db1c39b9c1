//! Why a request is not carried out, and its one shape on the wire.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use wingbeat_api::ApiError;

/// A request that is not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Refused {
    pub(crate) fn bad_request(message: String) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code: "bad_request", message }
    }

    pub(crate) fn not_found(message: String) -> Self {
        Self { status: StatusCode::NOT_FOUND, code: "not_found", message }
    }

    pub(crate) fn conflict(message: String) -> Self {
        Self { status: StatusCode::CONFLICT, code: "conflict", message }
    }

    pub(crate) fn busy(message: String) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, code: "busy", message }
    }

    pub(crate) fn unavailable(message: String) -> Self {
        Self { status: StatusCode::BAD_GATEWAY, code: "unavailable", message }
    }

    /// What an aircraft refused, with its own status.
    pub(crate) fn answered(status: u16, message: String) -> Self {
        match StatusCode::from_u16(status) {
            Ok(StatusCode::BAD_REQUEST) => Self::bad_request(message),
            Ok(StatusCode::CONFLICT) => Self::conflict(message),
            Ok(StatusCode::NOT_FOUND) => Self::not_found(message),
            _ => Self::unavailable(message),
        }
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn with_code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    /// The HTTP status that it is answered with.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = ApiError { code: self.code.to_owned(), message: self.message.clone() };
        let mut response = (self.status, Json(body)).into_response();
        // For the log of what was done.
        response.extensions_mut().insert(self);
        response
    }
}
