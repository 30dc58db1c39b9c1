//! What each request needs, in one table, and the layer around the whole router that holds to it.

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use wingbeat_api::{UserRole, paths};
use wingbeat_server::Connection;

use super::Caller;
use super::audit::Done;
use crate::page;
use crate::readers::ASKER;
use crate::refused::Refused;
use crate::service::Service;

/// What a request needs; `None` is nothing. A path of the API that is not listed needs the most there is, so that a new
/// one is closed until it is put here.
pub(crate) fn needs(method: &Method, path: &str) -> Option<UserRole> {
    let reads = *method == Method::GET || *method == Method::HEAD;
    match path {
        paths::SESSION => None,
        paths::FLEET
        | paths::FLEET_EVENTS
        | paths::FLEET_AIRCRAFT
        | paths::FLEET_ALARMS
        | paths::FLEET_LINKS
        | paths::FLEET_LINK_TEST
        | paths::FLEET_LINK_TEST_FILE
        | paths::FLEET_PARAMETERS
        | paths::FLEET_PARAMETERS_FILE
        | paths::FLEET_BUNDLE
        | paths::FLEET_CHECKLIST
        | paths::FLEET_CHECKLIST_RESULTS
        | paths::FLEET_CHECKLIST_RESULT
        | paths::FLEET_REGION
        | paths::FLEET_PARAMETERS_FILE
        | paths::FLEET_FLIGHT_SETUP
        | paths::FORMATIONS
        | paths::RECORDS
        | paths::RECORDS_TRACK
        | paths::RECORDS_PAGE
        | paths::MAP
        | paths::TILE_JSON
        | paths::METRICS
            if reads =>
        {
            Some(UserRole::Observer)
        }
        // Nothing is sent: a file is read, a plan compared, a file written for the browser.
        paths::MISSION_FILES
        | paths::MISSION_EXPORT
        | paths::PLAN_FILE
        | paths::SAVED_PLANS
        | paths::PLAN_PREVIEW
        | paths::REGION_FILES
        | paths::FLEET_PARAMETERS_COMPARISON
            if *method == Method::POST =>
        {
            Some(UserRole::Observer)
        }
        paths::AUDIT if reads => Some(UserRole::Operator),
        paths::FLEET_COMMANDS
        | paths::FLEET_COMMAND_NOTE
        | paths::FLEET_ALARMS
        | paths::FLEET_LEASES
        | paths::FLEET_MISSION
        | paths::FLEET_LINK_TEST
        | paths::FLEET_BUNDLE
        | paths::FLEET_CHECKLIST
        | paths::FLEET_PARAMETERS
        | paths::FLEET_FLIGHT_SETUP
        | paths::FLEET_REGION => Some(UserRole::Operator),
        path if path == "/api" || path.starts_with("/api/") => Some(UserRole::Administrator),
        path if path.starts_with(page::TILES) && reads => Some(UserRole::Observer),
        paths::MAP | paths::TILE_JSON | paths::METRICS => Some(UserRole::Administrator),
        path if path.starts_with(page::TILES) => Some(UserRole::Administrator),
        // The page itself, which asks for the password.
        _ => None,
    }
}

/// Whether something is done by it that has to be noted.
fn is_noted(method: &Method, path: &str) -> bool {
    let reads = *method == Method::GET || *method == Method::HEAD;
    let is_api = path.starts_with("/api/");
    let sends_nothing = matches!(
        path,
        paths::MISSION_FILES
            | paths::MISSION_EXPORT
            | paths::PLAN_FILE
            | paths::SAVED_PLANS
            | paths::PLAN_PREVIEW
            | paths::REGION_FILES
            | paths::FLEET_PARAMETERS_COMPARISON
    );
    is_api && !reads && !sends_nothing
}

/// What a handler did, for the log. The status and the reason of a refusal are added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wrote {
    pub(crate) action: &'static str,
    pub(crate) what: String,
    pub(crate) to: Vec<String>,
    pub(crate) id: String,
    /// Who, where the request shows it alone.
    pub(crate) user: String,
}

/// An answer with what was done.
pub(crate) fn wrote(what: Wrote, answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    response.extensions_mut().insert(what);
    response
}

/// As much of what others send has its place in an entry.
const TEXT_MAX: usize = 200;
/// The same of aircraft.
const TO_MAX: usize = 512;

fn short(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}

/// No status of HTTP: there was no answer.
const BROKEN_OFF: u16 = 499;

/// A request that is under way; dropped before its answer it is noted as one that was broken off.
struct BrokenOff {
    service: Service,
    done: Option<Done>,
}

impl Drop for BrokenOff {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            self.service.access().audit.note_refused(done);
        }
    }
}

/// Lets a request through to its handler, or refuses it, and notes what was done.
pub(crate) async fn gate(
    State(service): State<Service>,
    connection: Connection,
    mut request: Request,
    next: Next,
) -> Response {
    let access = service.access().clone();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let caller = match access.basic(request.headers()) {
        // A program that scrapes keeps no cookie.
        Some(user) if path == paths::METRICS => access.caller_by_password(user, connection.peer()).await,
        _ => access.caller(request.headers()),
    };
    if caller.as_ref().is_ok_and(|caller| caller.known_role().is_some()) {
        connection.trust();
    }
    let admitted = admit(&request, &caller);
    let is_admitted = admitted.is_ok();
    // What it did is noted although its sender does not wait for the answer.
    let broken_off = (is_noted(&method, &path) && is_admitted).then(|| BrokenOff {
        service: service.clone(),
        done: Some(Done {
            user: caller.as_ref().map_or_else(|_| String::new(), |caller| caller.name.clone()),
            role: caller.as_ref().ok().and_then(Caller::known_role),
            address: connection.peer().to_string(),
            action: "request".to_owned(),
            what: short(&format!("{method} {path}")),
            status: BROKEN_OFF,
            refused: "its sender broke it off before the answer: what it did is not known".to_owned(),
            ..Done::default()
        }),
    });
    let mut response = match admitted {
        Ok(()) => {
            if let Ok(caller) = &caller {
                request.extensions_mut().insert(caller.clone());
            }
            let user = caller.as_ref().map_or("", |caller| caller.name.as_str());
            let asker = if user.is_empty() { connection.peer().to_string() } else { user.to_owned() };
            ASKER.scope(asker, next.run(request)).await
        }
        Err(refused) => refused.into_response(),
    };
    if let Some(mut broken_off) = broken_off {
        broken_off.done = None;
    }
    if is_noted(&method, &path) {
        let wrote = response.extensions_mut().remove::<Wrote>();
        let is_described = wrote.is_some();
        let wrote = wrote.unwrap_or_else(|| Wrote {
            action: "request",
            what: short(&format!("{method} {path}")),
            ..Wrote::default()
        });
        let refused =
            response.extensions_mut().remove::<Refused>().map_or_else(String::new, |why| why.to_string());
        let (user, role) =
            caller.map_or((wrote.user, None), |caller| (caller.name.clone(), caller.known_role()));
        let done = Done {
            user,
            role,
            address: connection.peer().to_string(),
            action: wrote.action.to_owned(),
            what: short(&wrote.what),
            to: wrote.to.into_iter().take(TO_MAX).map(|id| short(&id)).collect(),
            id: short(&wrote.id),
            status: response.status().as_u16(),
            refused: short(&refused),
        };
        // Without a session, or without a handler that knows what it is, it may come without end.
        let is_strangers =
            !is_admitted || !is_described || (path == paths::SESSION && !response.status().is_success());
        if is_strangers { access.audit.note_refused(done) } else { access.audit.note(done) }
    }
    response
}

fn admit(request: &Request, caller: &Result<Caller, Refused>) -> Result<(), Refused> {
    let (method, path) = (request.method(), request.uri().path());
    if path.starts_with("/api/") {
        same_site(request.headers().get("sec-fetch-site"))?;
    }
    let Some(needed) = needs(method, path) else { return Ok(()) };
    let caller = caller.as_ref().map_err(Clone::clone)?;
    if caller.role < needed {
        let message = format!(
            "{method} {path}: found a user of role {}, expected {} or more",
            caller.role.name(),
            needed.name()
        );
        return Err(Refused::forbidden("role", message));
    }
    Ok(())
}

/// Browsers tell which page asks; other programs do not.
fn same_site(value: Option<&HeaderValue>) -> Result<(), Refused> {
    match value.map(HeaderValue::as_bytes) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(found) => {
            let found = String::from_utf8_lossy(found);
            let message = format!(
                "Sec-Fetch-Site: found {:?}, expected a request of this service's own page: another page asks in its place",
                short(&found)
            );
            Err(Refused::forbidden("cross_site", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use UserRole::{Administrator, Observer, Operator};
    use axum::http::StatusCode;

    /// Every route of the API, and what it needs. A route that is not here does not pass.
    const TABLE: &[(&str, &str, Option<UserRole>)] = &[
        ("GET", paths::FLEET, Some(Observer)),
        ("GET", paths::FLEET_EVENTS, Some(Observer)),
        ("GET", paths::FLEET_AIRCRAFT, Some(Observer)),
        ("GET", paths::FLEET_ALARMS, Some(Observer)),
        ("POST", paths::FLEET_ALARMS, Some(Operator)),
        ("POST", paths::FLEET_COMMANDS, Some(Operator)),
        ("PUT", paths::FLEET_COMMAND_NOTE, Some(Operator)),
        ("POST", paths::FLEET_LEASES, Some(Operator)),
        ("PUT", paths::FLEET_MISSION, Some(Operator)),
        ("GET", paths::FLEET_LINKS, Some(Observer)),
        ("GET", paths::FLEET_LINK_TEST, Some(Observer)),
        ("POST", paths::FLEET_LINK_TEST, Some(Operator)),
        ("DELETE", paths::FLEET_LINK_TEST, Some(Operator)),
        ("GET", paths::FLEET_LINK_TEST_FILE, Some(Observer)),
        ("GET", paths::FLEET_PARAMETERS, Some(Observer)),
        ("POST", paths::FLEET_PARAMETERS, Some(Operator)),
        ("PUT", paths::FLEET_PARAMETERS, Some(Operator)),
        ("POST", paths::FLEET_PARAMETERS_COMPARISON, Some(Observer)),
        ("GET", paths::FLEET_PARAMETERS_FILE, Some(Observer)),
        ("GET", paths::FLEET_BUNDLE, Some(Observer)),
        ("POST", paths::FLEET_BUNDLE, Some(Operator)),
        ("GET", paths::FLEET_CHECKLIST, Some(Observer)),
        ("PUT", paths::FLEET_CHECKLIST, Some(Operator)),
        ("DELETE", paths::FLEET_CHECKLIST, Some(Operator)),
        ("GET", paths::FLEET_CHECKLIST_RESULTS, Some(Observer)),
        ("GET", paths::FLEET_CHECKLIST_RESULT, Some(Observer)),
        ("GET", paths::FLEET_REGION, Some(Observer)),
        ("POST", paths::FLEET_REGION, Some(Operator)),
        ("PUT", paths::FLEET_REGION, Some(Operator)),
        ("GET", paths::FLEET_FLIGHT_SETUP, Some(Observer)),
        ("PUT", paths::FLEET_FLIGHT_SETUP, Some(Operator)),
        ("POST", paths::SAVED_PLANS, Some(Observer)),
        ("POST", paths::REGION_FILES, Some(Observer)),
        ("POST", paths::MISSION_FILES, Some(Observer)),
        ("POST", paths::MISSION_EXPORT, Some(Observer)),
        ("POST", paths::PLAN_PREVIEW, Some(Observer)),
        ("POST", paths::PLAN_FILE, Some(Observer)),
        ("GET", paths::FORMATIONS, Some(Observer)),
        ("GET", paths::RECORDS, Some(Observer)),
        ("GET", paths::RECORDS_TRACK, Some(Observer)),
        ("GET", paths::RECORDS_PAGE, Some(Observer)),
        ("GET", paths::SESSION, None),
        ("POST", paths::SESSION, None),
        ("DELETE", paths::SESSION, None),
        ("GET", paths::AUDIT, Some(Operator)),
        ("GET", paths::USERS, Some(Administrator)),
        ("DELETE", paths::USER_SESSIONS, Some(Administrator)),
    ];

    #[test]
    fn every_route_of_the_document_has_its_line_in_the_table() {
        let document = serde_json::to_value(crate::http::openapi()).unwrap();
        let mut routes = vec![];
        for (path, methods) in document["paths"].as_object().unwrap() {
            routes.extend(
                methods.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone())),
            );
        }
        routes.sort();
        let mut listed: Vec<_> =
            TABLE.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned())).collect();
        listed.sort();
        assert_eq!(routes, listed);
        for (method, path, expected) in TABLE {
            let method: Method = method.parse().unwrap();
            assert_eq!(needs(&method, path), *expected, "{method} {path}");
            if method == Method::GET {
                assert_eq!(needs(&Method::HEAD, path), *expected, "HEAD {path}");
            }
        }
    }

    #[test]
    fn what_is_not_listed_is_closed_and_the_page_is_open() {
        for path in ["/api", "/api/v1/new", "/api/v2/fleet", paths::FLEET] {
            assert_eq!(needs(&Method::PATCH, path), Some(Administrator), "{path}");
        }
        assert_eq!(needs(&Method::GET, "/api/v1/new"), Some(Administrator));
        for path in [paths::MAP, paths::TILE_JSON, "/tiles/3/4/5", "/tiles/", "/tiles/%33/4/5"] {
            assert_eq!(needs(&Method::GET, path), Some(Observer), "{path}");
            assert_eq!(needs(&Method::PUT, path), Some(Administrator), "{path}");
        }
        assert_eq!(needs(&Method::GET, paths::METRICS), Some(Observer));
        for path in
            ["/", "/assets/index-1234.js", "/favicon.ico", "/apis", paths::OPENAPI, paths::OPENAPI_PAGE]
        {
            assert_eq!(needs(&Method::GET, path), None, "{path}");
        }
    }

    #[test]
    fn a_browser_that_says_that_another_page_asks_is_refused() {
        let of = |value: &'static str| same_site(Some(&HeaderValue::from_static(value)));
        assert_eq!((same_site(None), of("same-origin"), of("none")), (Ok(()), Ok(()), Ok(())));
        for found in ["cross-site", "same-site", "rubbish"] {
            let refused = of(found).unwrap_err();
            assert_eq!(refused.status(), StatusCode::FORBIDDEN.as_u16());
            assert!(
                refused.to_string().starts_with(&format!("Sec-Fetch-Site: found {found:?}, expected")),
                "{refused}"
            );
        }
    }
}
