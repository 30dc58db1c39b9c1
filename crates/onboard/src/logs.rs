//! The aircraft's flight logs over HTTP: their names, the bytes of one, and the hash of a piece of one.
//!
//! Names are looked up, never joined to a path as they come. A file is only ever extended, so that a piece of it keeps its
//! hash. While motors are armed none is served: the radio channel and the card are the flight's.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::{
    Json,
    body::{Body, Bytes},
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncReadExt as _, AsyncSeekExt as _},
    sync::{Semaphore, watch},
    task::spawn_blocking,
};
use utoipa::IntoParams;
use wingbeat_api::{
    AircraftStatus, ApiError, AutopilotLogRequest, AutopilotLogs, LOG_PIECE_MAX, LogFile, LogFiles, LogHash,
    LogKind, paths,
};
use wingbeat_record::store;

use crate::autopilot_logs::{self, NEWEST};
use crate::http::{Caller, Front, Refusal, Request};

/// What is read of a file at once, bytes.
const PIECE: usize = 64 * 1024;
/// Files that are listed: the newest.
const FILES_MAX: usize = 4096;

/// The directory of the logs.
#[derive(Clone, Debug)]
pub(crate) struct Logs {
    directory: Option<Arc<Path>>,
    /// One piece is hashed at a time.
    hashing: Arc<Semaphore>,
}

impl Logs {
    /// The logs in this directory, where there is one.
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self { directory: directory.map(Arc::from), hashing: Arc::new(Semaphore::new(1)) }
    }

    fn find(&self, path: &str, name: &str) -> Result<PathBuf, Refusal> {
        let shown: String = name.chars().take(64).collect();
        let found = self.directory.as_deref().and_then(|directory| store::named(directory, name));
        found.filter(|file| file.is_file()).ok_or_else(|| {
            let message = format!("{path}: name: found {shown:?}, expected one of those in {}", paths::LOGS);
            Refusal::new(StatusCode::NOT_FOUND, "not_found", message)
        })
    }
}

fn unreadable(path: &str, error: &dyn std::fmt::Display) -> Refusal {
    let message = format!("{path}: found {error}, expected a file that can be read");
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
}

fn is_armed(status: &watch::Receiver<Arc<AircraftStatus>>) -> bool {
    status.borrow().flight_controller.armed
}

fn check_ground(front: &Front, path: &str) -> Result<(), Refusal> {
    if is_armed(&front.status) {
        let message = format!("{path}: found motors armed, expected an aircraft on the ground");
        return Err(Refusal::new(StatusCode::CONFLICT, "conflict", message));
    }
    Ok(())
}

fn listed(directory: &Path) -> io::Result<Vec<LogFile>> {
    let mut files = store::listed(directory)?;
    // A name that is reserved has no bytes yet.
    files.retain(|file| file.len > 0);
    let older = files.len().saturating_sub(FILES_MAX);
    let files = files.into_iter().skip(older);
    let file = |file: store::Listed| {
        let name = file.path.file_name()?.to_str()?.to_owned();
        Some(LogFile { name, kind: LogKind::Flight, bytes: file.len, age_s: file.age.as_secs() })
    };
    let mut files: Vec<LogFile> = files.filter_map(file).collect();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| store::is_of_autopilot(name)) else { continue };
        // Gone meanwhile.
        let Ok(metadata) = entry.metadata() else { continue };
        let age_s = metadata.modified().ok().and_then(|at| at.elapsed().ok()).unwrap_or_default().as_secs();
        files.push(LogFile { name: name.into(), kind: LogKind::Autopilot, bytes: metadata.len(), age_s });
    }
    Ok(files)
}

/// The flight logs that are on the aircraft.
#[utoipa::path(get, path = "/api/v1/logs", operation_id = "logs", tag = "logs",
    responses((status = 200, description = "Which there are", body = LogFiles)))]
pub(crate) async fn get_logs(State(front): State<Front>) -> Json<LogFiles> {
    let none = |problem: String| LogFiles { files: vec![], problem: Some(problem) };
    let Some(directory) = front.logs.directory.clone() else {
        return Json(none("found no directory of flight logs, expected one (log.directory)".into()));
    };
    let read =
        spawn_blocking(move || listed(&directory).map_err(|error| (error.to_string(), directory))).await;
    Json(match read {
        Ok(Ok(files)) => LogFiles { files, problem: None },
        Ok(Err((error, directory))) => {
            none(format!("{}: found {error}, expected a directory of flight logs", directory.display()))
        }
        Err(error) => none(error.to_string()),
    })
}

/// Fetches the newest of the flight controller's own logs over MAVLink, on the ground alone, and continues where it broke off. The
/// flight controller does not log meanwhile; where motors are armed it ends at once.
#[utoipa::path(post, path = "/api/v1/logs/autopilot", operation_id = "fetch_autopilot_logs", tag = "logs",
    request_body = AutopilotLogRequest,
    responses(
        (status = 202, description = "They are being fetched, or were before this request", body = AutopilotLogs),
        (status = 400, description = "No such request", body = ApiError),
        (status = 409, description = "Motors are armed, a flight is set up, or nothing is logged here", body = ApiError),
        (status = 413, description = "Too long", body = ApiError),
        (status = 415, description = "Not JSON", body = ApiError),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
pub(crate) async fn post_autopilot_logs(
    State(front): State<Front>,
    caller: Caller,
    crate::http::Body(AutopilotLogRequest { newest }): crate::http::Body<AutopilotLogRequest>,
) -> Result<(StatusCode, Json<AutopilotLogs>), Refusal> {
    if !NEWEST.contains(&newest) {
        let (least, most) = (NEWEST.start(), NEWEST.end());
        return Err(malformed(
            paths::AUTOPILOT_LOGS,
            &format_args!("newest: found {newest}, expected {least} to {most}"),
        ));
    }
    let ask = |reply| Request::AutopilotLogs(autopilot_logs::Ask::Begin { newest, reply });
    match front.ask(caller, ask).await? {
        Ok(progress) => Ok((StatusCode::ACCEPTED, Json(progress))),
        Err(ApiError { code, message }) => Err(Refusal::new(StatusCode::CONFLICT, &code, message)),
    }
}

/// How far fetching the flight controller's own logs has come.
#[utoipa::path(get, path = "/api/v1/logs/autopilot", operation_id = "autopilot_logs", tag = "logs",
    responses(
        (status = 200, description = "How far", body = AutopilotLogs),
        (status = 503, description = "The daemon is busy or stopping", body = ApiError)))]
pub(crate) async fn get_autopilot_logs(
    State(front): State<Front>,
    caller: Caller,
) -> Result<Json<AutopilotLogs>, Refusal> {
    front.ask(caller, |reply| Request::AutopilotLogs(autopilot_logs::Ask::Progress(reply))).await.map(Json)
}

/// Which file.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OfLog {
    /// Its name in the list.
    name: String,
}

fn malformed(path: &str, found: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "bad_request", format!("{path}: {found}"))
}

/// First byte and end of a range of a file of `len` bytes; none where it begins behind the file.
fn range(text: &str, len: u64) -> Result<Option<(u64, u64)>, ()> {
    let (first, last) = text.strip_prefix("bytes=").and_then(|range| range.split_once('-')).ok_or(())?;
    let first: u64 = first.parse().map_err(drop)?;
    let end = match last {
        "" => len,
        last => last.parse::<u64>().map_err(drop)?.saturating_add(1).min(len),
    };
    Ok((first < end).then_some((first, end)))
}

/// The bytes of a flight log, on the ground alone; of the present flight those that it has now. It ends early where motors are armed
/// meanwhile: what was received is good, and the rest is asked for later.
#[utoipa::path(get, path = "/api/v1/logs/file", operation_id = "log_file", tag = "logs",
    params(OfLog, ("range" = Option<String>, Header, description = "`bytes=FIRST-` or `bytes=FIRST-LAST`, one range")),
    responses(
        (status = 200, description = "All of it", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 206, description = "The range", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 400, description = "No such query or range", body = ApiError),
        (status = 404, description = "No such file", body = ApiError),
        (status = 409, description = "Motors are armed", body = ApiError),
        (status = 416, description = "The file ends before the range", body = ApiError),
        (status = 503, description = "The file cannot be read", body = ApiError)))]
pub(crate) async fn get_log_file(
    State(front): State<Front>,
    headers: HeaderMap,
    query: Result<Query<OfLog>, QueryRejection>,
) -> Result<Response, Refusal> {
    let path = paths::LOG_FILE;
    let Query(OfLog { name }) = query.map_err(|rejection| malformed(path, &rejection.body_text()))?;
    check_ground(&front, path)?;
    let file = front.logs.find(path, &name)?;
    let opened = async {
        let file = tokio::fs::File::open(file).await?;
        let len = file.metadata().await?.len();
        Ok::<_, io::Error>((file, len))
    };
    let (mut file, len) = opened.await.map_err(|error| unreadable(path, &error))?;
    let asked = headers.get(header::RANGE);
    let (first, end) = match asked {
        None => (0, len),
        Some(asked) => {
            let text = asked.to_str().unwrap_or_default();
            let range = range(text, len).map_err(|()| {
                let shown: String = text.chars().take(64).collect();
                malformed(
                    path,
                    &format_args!("range: found {shown:?}, expected bytes=FIRST- or bytes=FIRST-LAST"),
                )
            })?;
            range.ok_or_else(|| {
                let message =
                    format!("{path}: {name}: found {len} bytes, expected more: the range begins behind them");
                Refusal::new(StatusCode::RANGE_NOT_SATISFIABLE, "bad_request", message)
            })?
        }
    };
    file.seek(SeekFrom::Start(first)).await.map_err(|error| unreadable(path, &error))?;
    let status = front.status.clone();
    let pieces = stream::unfold(Some((file, end - first)), move |state| {
        let is_armed = is_armed(&status);
        async move {
            let (mut file, left) = state.filter(|(_, left)| *left > 0)?;
            if is_armed {
                return Some((Err(io::Error::other("motors are armed")), None));
            }
            let mut piece = vec![0; PIECE.min(usize::try_from(left).unwrap_or(PIECE))];
            match file.read(&mut piece).await {
                Ok(0) => Some((Err(io::ErrorKind::UnexpectedEof.into()), None)),
                Ok(read) => {
                    piece.truncate(read);
                    Some((Ok(Bytes::from(piece)), Some((file, left - read as u64))))
                }
                Err(error) => Some((Err(error), None)),
            }
        }
    });
    let code = if asked.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let mut response = (code, Body::from_stream(pieces)).into_response();
    let headers = response.headers_mut();
    let mut put = |name, text: &str| {
        if let Ok(value) = header::HeaderValue::from_str(text) {
            headers.insert(name, value);
        }
    };
    put(header::CONTENT_TYPE, "application/octet-stream");
    put(header::ACCEPT_RANGES, "bytes");
    put(header::CONTENT_LENGTH, &(end - first).to_string());
    if asked.is_some() {
        put(header::CONTENT_RANGE, &format!("bytes {first}-{}/{len}", end.saturating_sub(1)));
    }
    Ok(response)
}

/// Which piece of which file.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PieceOfLog {
    /// The file's name in the list.
    name: String,
    /// The first byte.
    from: u64,
    /// How many, 1 to 33554432.
    bytes: u64,
}

/// Hashes a piece; none where the file ends before its end.
fn hash(path: &Path, from: u64, bytes: u64) -> io::Result<Option<LogHash>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let (mut left, mut hash, mut piece) = (bytes, Sha256::new(), vec![0; PIECE]);
    while left > 0 {
        let most = PIECE.min(usize::try_from(left).unwrap_or(PIECE));
        let read = file.read(&mut piece[..most])?;
        if read == 0 {
            return Ok(None);
        }
        hash.update(&piece[..read]);
        left -= read as u64;
    }
    let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Some(LogHash { sha256 }))
}

/// The SHA-256 of a piece of a flight log, on the ground alone. A file is only ever extended: what is there keeps its hash.
#[utoipa::path(get, path = "/api/v1/logs/hash", operation_id = "log_hash", tag = "logs", params(PieceOfLog),
    responses(
        (status = 200, description = "The hash", body = LogHash),
        (status = 400, description = "No such query", body = ApiError),
        (status = 404, description = "No such file", body = ApiError),
        (status = 409, description = "Motors are armed", body = ApiError),
        (status = 416, description = "The file ends before the piece", body = ApiError),
        (status = 503, description = "The file cannot be read", body = ApiError)))]
pub(crate) async fn get_log_hash(
    State(front): State<Front>,
    query: Result<Query<PieceOfLog>, QueryRejection>,
) -> Result<Json<LogHash>, Refusal> {
    let path = paths::LOG_HASH;
    let Query(PieceOfLog { name, from, bytes }) =
        query.map_err(|rejection| malformed(path, &rejection.body_text()))?;
    if !(1..=LOG_PIECE_MAX).contains(&bytes) {
        return Err(malformed(path, &format_args!("bytes: found {bytes}, expected 1 to {LOG_PIECE_MAX}")));
    }
    check_ground(&front, path)?;
    let file = front.logs.find(path, &name)?;
    // Never closed.
    let turn = front.logs.hashing.clone().acquire_owned().await.map_err(|error| unreadable(path, &error))?;
    let work = move || {
        let found = hash(&file, from, bytes);
        drop(turn);
        found
    };
    let found = spawn_blocking(work).await.map_err(|error| unreadable(path, &error))?;
    let found = found.map_err(|error| unreadable(path, &error))?;
    found.map(Json).ok_or_else(|| {
        let message = format!("{path}: {name}: found its end before byte {}", from.saturating_add(bytes));
        Refusal::new(StatusCode::RANGE_NOT_SATISFIABLE, "bad_request", message)
    })
}
