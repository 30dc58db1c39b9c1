//! The web page: files from a folder, and the page itself for every other path that is not the API's.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use tower_http::services::{ServeDir, ServeFile};

use crate::refused::Refused;
use crate::service::Service;
use crate::tiles::{Database, Map, NoTile, Tile};

/// What the paths of all tiles begin with.
pub(crate) const TILES: &str = "/tiles/";

/// What the page has to know of a map that is served tile by tile.
pub(crate) async fn tile_json(State(service): State<Service>) -> Result<Json<serde_json::Value>, Refused> {
    Ok(Json(tiles(&service)?.about().clone()))
}

/// A tile of it.
pub(crate) async fn tile(
    State(service): State<Service>,
    place: Result<Path<(u8, u32, u32)>, PathRejection>,
) -> Result<Response, Refused> {
    let database = tiles(&service)?.clone();
    let Path((zoom, column, row)) = place.map_err(|rejection| Refused::bad_request(rejection.body_text()))?;
    let found = tokio::task::spawn_blocking(move || database.tile(zoom, column, row)).await;
    let found = found.map_err(|error| Refused::unavailable(format!("the tile was not read: {error}")))?;
    let found = found.map_err(|why| match why {
        NoTile::Nowhere(why) => Refused::bad_request(why),
        NoTile::Wrong(why) => Refused::unavailable(why),
    })?;
    let Some(Tile { bytes, media_type, is_gzip }) = found else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    // Another file may have been opened since.
    let kept = [(header::CONTENT_TYPE, media_type), (header::CACHE_CONTROL, "no-cache")];
    let mut response = (kept, bytes).into_response();
    if is_gzip {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}

fn tiles(service: &Service) -> Result<&Arc<Database>, Refused> {
    match service.map() {
        Some(Map::Tiles(database)) => Ok(database),
        Some(Map::Archive(_)) | None => Err(Refused::not_found(
            "found no MBTiles, expected a service with such a map (--tiles)".to_owned(),
        )),
    }
}

/// What is not the API.
pub(crate) async fn serve(State(service): State<Service>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    if path == "/api" || path.starts_with("/api/") {
        return Refused::not_found(format!("no such path: {path}")).into_response();
    }
    if path == wingbeat_api::paths::MAP {
        let Some(Map::Archive(map)) = service.map() else {
            return Refused::not_found(format!("{path}: this service has no archive of tiles (--tiles)"))
                .into_response();
        };
        return match ServeFile::new(map).try_call(request).await {
            Ok(response) => response.into_response(),
            Err(error) => Refused::unavailable(format!("{}: {error}", map.display())).into_response(),
        };
    }
    if path.starts_with(TILES) {
        return Refused::not_found(format!("{path}: no such path, expected {}", wingbeat_api::paths::TILES))
            .into_response();
    }
    let Some(folder) = service.web_dir() else {
        return Refused::not_found(format!("{path}: this service has no web page, only its API"))
            .into_response();
    };
    let index = folder.join("index.html");
    if !tokio::fs::metadata(&index).await.is_ok_and(|facts| facts.is_file()) {
        return (StatusCode::SERVICE_UNAVAILABLE, Html(help(&index.display().to_string()))).into_response();
    }
    let route = Request::builder().method(request.method().clone()).uri("/").body(()).unwrap_or_default();
    let mut response =
        match ServeDir::new(folder).precompressed_br().precompressed_gzip().try_call(request).await {
            Ok(response) if response.status() != StatusCode::NOT_FOUND => response.into_response(),
            // A file that is missing is missing; anything else is a route inside the page.
            Ok(_) | Err(_) if path.rsplit('/').next().is_some_and(|last| last.contains('.')) => {
                return Refused::not_found(format!("no such file: {path}")).into_response();
            }
            Ok(_) | Err(_) => match ServeFile::new(&index).try_call(route).await {
                Ok(response) => response.into_response(),
                Err(error) => {
                    return Refused::unavailable(format!("{}: {error}", index.display())).into_response();
                }
            },
        };
    // Names under assets/ carry a hash of their content; the rest must be asked for again, or a console
    // shows yesterday's page.
    let caching =
        if path.starts_with("/assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    response
}

/// Shown where the page was not built.
fn help(index: &str) -> String {
    let index = index.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Wingbeat: page not built</title>\
         <body style=\"font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 4rem auto; padding: 0 1rem\">\
         <h1>The web page is not built</h1>\
         <p>The ground service runs, but it found no <code>{index}</code>.</p>\
         <p>Build it with <code>npm ci &amp;&amp; npm run build</code> in <code>web/</code>, or let \
         <code>cargo xtask demo</code> do it, then reload. The API answers meanwhile: \
         <a href=\"/api/v1/fleet\">/api/v1/fleet</a>.</p>\n"
    )
}
