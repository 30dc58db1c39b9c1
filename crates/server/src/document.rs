//! The description of a service's API, and a page that shows it. Both are in the program: no file and no Internet are needed.

use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use wingbeat_api::paths;

/// What the page is made of (`web/openapi`).
const PAGE: &str = include_str!("../../../web/openapi/index.html");
const SCRIPT: &str = include_str!("../../../web/openapi/page.js");
const STYLE: &str = include_str!("../../../web/openapi/page.css");

/// The routes of a document in JSON, and of its page.
pub fn described<S: Clone + Send + Sync + 'static>(document: String) -> Router<S> {
    let document: Arc<str> = document.into();
    let json = move || {
        let document = axum::body::Bytes::copy_from_slice(document.as_bytes());
        async move { served("application/json", document) }
    };
    let text = |kind: &'static str, text: &'static str| get(move || async move { served(kind, text) });
    Router::new()
        .route(paths::OPENAPI, get(json))
        .route(paths::OPENAPI_PAGE, text("text/html; charset=utf-8", PAGE))
        .route(paths::OPENAPI_SCRIPT, text("text/javascript; charset=utf-8", SCRIPT))
        .route(paths::OPENAPI_STYLE, text("text/css; charset=utf-8", STYLE))
}

/// A program of another version has another one.
fn served(kind: &'static str, body: impl IntoResponse) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], body)
}
