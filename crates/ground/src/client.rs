//! Asking one aircraft over HTTP. Every call ends: in an answer of bounded size or a reason as text.

use std::error::Error;
use std::time::Duration;

pub(crate) use reqwest::Method;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::{Serialize, de::DeserializeOwned};
use wingbeat_api::{AircraftStatus, ApiError, Identity, MissionUpload, paths};

/// A radio link to an aircraft either answers soon or is tried again.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// For a small answer, the connection included.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(3);
/// For a mission: the aircraft answers once it has taken it.
const MISSION_LIMIT: Duration = Duration::from_secs(10);
/// For the file of a link test: 60 parts of each aircraft's rows at the longest.
const TEXT_LIMIT: Duration = Duration::from_secs(60);
/// 60 000 rows of 160 bytes, and half as much again.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// More than any answer of an aircraft needs.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// The client for all aircraft: plain HTTP, and straight to the aircraft whatever proxy the operator's
/// computer has.
pub(crate) fn new() -> Result<Client, reqwest::Error> {
    Client::builder()
        .no_proxy()
        .connect_timeout(CONNECT_LIMIT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
}

/// The aircraft that answers at the address.
pub(crate) async fn identity(client: &Client, address: &str) -> Result<Identity, String> {
    let identity: Identity = get(client, address, paths::IDENTITY).await?;
    if identity.id.len() == 16 && identity.id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Ok(identity);
    }
    let found: String = identity.id.chars().take(64).collect();
    Err(format!("its identity has the id {found:?}, expected 16 lower-case hexadecimal digits"))
}

/// The mission that the aircraft holds, if its hash is the one wanted before and after reading it.
pub(crate) async fn mission(client: &Client, address: &str, hash: &str) -> Result<MissionUpload, String> {
    let mission = get(client, address, paths::MISSION).await?;
    let status: AircraftStatus = get(client, address, paths::STATUS).await?;
    match status.mission {
        Some(held) if held.hash == hash => Ok(mission),
        _ => Err("its mission changed while it was read".to_owned()),
    }
}

/// Gives an aircraft a mission; the answer is the aircraft's own.
pub(crate) async fn put_mission(
    client: &Client,
    address: &str,
    mission: &MissionUpload,
    lease: Option<String>,
) -> Result<(StatusCode, Vec<u8>), String> {
    let request = client.put(format!("{address}{}", paths::MISSION)).json(mission).timeout(MISSION_LIMIT);
    let request = with_lease(request, lease);
    let mut response = request.send().await.map_err(|error| reason(&error))?;
    let body = body(&mut response).await?;
    Ok((response.status(), body))
}

/// With the token of the lease, where there is one.
pub(crate) fn with_lease(request: RequestBuilder, token: Option<String>) -> RequestBuilder {
    match token {
        Some(token) => request.header(paths::LEASE_HEADER, token),
        None => request,
    }
}

/// Asks with a method and, where there is one, a JSON body; the answer is the other side's own.
pub(crate) async fn ask<T: Serialize>(
    client: &Client,
    method: Method,
    address: &str,
    path: &str,
    body: Option<&T>,
    lease: Option<String>,
) -> Result<(StatusCode, Vec<u8>), String> {
    let request = client.request(method, format!("{address}{path}")).timeout(MISSION_LIMIT);
    let request = body.into_iter().fold(request, |request, body| request.json(body));
    let mut response = with_lease(request, lease).send().await.map_err(|error| reason(&error))?;
    let body = self::body(&mut response).await?;
    Ok((response.status(), body))
}

/// The text of a file that a ground service makes: it may be long, and takes a while.
pub(crate) async fn text(client: &Client, address: &str, path: &str) -> Result<String, String> {
    let request = client.get(format!("{address}{path}")).timeout(TEXT_LIMIT);
    let mut response = request.send().await.map_err(|error| reason(&error))?;
    let status = response.status();
    let body = body_up_to(&mut response, MAX_TEXT_BYTES).await?;
    if !status.is_success() {
        return Err(format!("{path} answers {}", refusal(status, &body)));
    }
    String::from_utf8(body).map_err(|_| format!("{path} is no text"))
}

pub(crate) async fn get<T: DeserializeOwned>(
    client: &Client,
    address: &str,
    path: &str,
) -> Result<T, String> {
    let request = client.get(format!("{address}{path}")).timeout(ANSWER_LIMIT);
    let mut response = request.send().await.map_err(|error| reason(&error))?;
    let body = body(&mut response).await?;
    if !response.status().is_success() {
        return Err(format!("{path} answers {}", refusal(response.status(), &body)));
    }
    serde_json::from_slice(&body).map_err(|error| format!("{path} is not what was expected: {error}"))
}

/// The whole answer, up to a bound.
pub(crate) async fn body(response: &mut Response) -> Result<Vec<u8>, String> {
    body_up_to(response, MAX_ANSWER_BYTES).await
}

async fn body_up_to(response: &mut Response, most: usize) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| reason(&error))? {
        if body.len() + chunk.len() > most {
            return Err(format!("its answer has more than {most} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// An unsuccessful answer as text: the aircraft's sentence where it sent one.
pub(crate) fn refusal(status: StatusCode, body: &[u8]) -> String {
    match serde_json::from_slice::<ApiError>(body) {
        Ok(error) => format!("{}: {}", status.as_u16(), error.message),
        Err(_) => format!("{} {}", status.as_u16(), status.canonical_reason().unwrap_or("without a reason")),
    }
}

/// The sentence of an unsuccessful answer that is passed on as it is.
pub(crate) fn sentence(status: StatusCode, body: &[u8]) -> String {
    serde_json::from_slice::<ApiError>(body).map_or_else(|_| refusal(status, body), |error| error.message)
}

/// The cause of a failed request in short, without the address, which is shown next to it.
pub(crate) fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
        Some(std::io::ErrorKind::ConnectionRefused) => "connection refused".to_owned(),
        Some(std::io::ErrorKind::ConnectionReset) => "connection reset".to_owned(),
        Some(std::io::ErrorKind::HostUnreachable) => "no route to it".to_owned(),
        Some(std::io::ErrorKind::NetworkUnreachable) => "its network is not reachable".to_owned(),
        _ => cause.to_string(),
    }
}
