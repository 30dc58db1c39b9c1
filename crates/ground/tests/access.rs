//! Who may do what: every route for every role, sessions and their ends, attempts, other sites' requests, the log of what
//! was done, TLS.

#![allow(clippy::disallowed_methods, reason = "services run in real time")]

use crate::support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{COOKIE, SET_COOKIE};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use support::{Fake, all_up, eventually, id, picture};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use wingbeat_api::{AuditLog, UserRole, paths};
use wingbeat_ground::{
    Config, Ground, Handle, Hosts, PageCertificate, Protection, SESSION, certificate, users,
};

const PASSWORD: &str = "correct horse";
const ROLES: [(&str, UserRole); 3] =
    [("olga", UserRole::Observer), ("otto", UserRole::Operator), ("adam", UserRole::Administrator)];

fn add(path: &Path, name: &str, role: UserRole, password: &str) {
    let entry = users::Entry::new(role, password).expect("a good password");
    users::change(path, |all| {
        all.insert(name.to_owned(), entry);
        Ok(())
    })
    .expect("a folder that can be written");
}

/// A service with a user of each role.
struct Guarded {
    folder: tempfile::TempDir,
    fake: Fake,
    handle: Handle,
    client: Client,
}

impl Guarded {
    async fn start() -> Self {
        Self::with(SESSION).await
    }

    async fn with(session: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, role) in ROLES {
            add(&folder.path().join("users.toml"), name, role, PASSWORD);
        }
        let fake = Fake::start(1).await;
        let handle = Ground::start(config(folder.path(), &fake, session)).await.expect("it starts");
        picture(&handle, "its status arrives", all_up).await;
        Self { folder, fake, handle, client: wingbeat_ground::plain_client().expect("a client") }
    }

    fn users(&self) -> std::path::PathBuf {
        self.folder.path().join("users.toml")
    }

    fn request(&self, method: Method, path: &str, cookie: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method, format!("http://{}{path}", self.handle.address()));
        if cookie.is_empty() { request } else { request.header(COOKIE, cookie) }
    }

    /// The status and the refusal's code and sentence, where it is one.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        cookie: &str,
        body: Option<Value>,
    ) -> (u16, String, String) {
        let request = self.request(method, path, cookie);
        let request = body.iter().fold(request, |request, body| request.json(body));
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        if response.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream") {
            return (status, String::new(), String::new());
        }
        let body: Value = serde_json::from_str(&response.text().await.expect("a body")).unwrap_or_default();
        let of = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        (status, of("code"), of("message"))
    }

    async fn try_sign_in(&self, name: &str, password: &str) -> reqwest::Response {
        let body = json!({ "name": name, "password": password });
        self.request(Method::POST, paths::SESSION, "").json(&body).send().await.expect("an answer")
    }

    /// The cookie of a new session.
    async fn sign_in(&self, name: &str) -> String {
        let response = self.try_sign_in(name, PASSWORD).await;
        assert_eq!(response.status(), StatusCode::OK);
        let cookie = response.headers()[SET_COOKIE].to_str().expect("text").to_owned();
        cookie.split(';').next().expect("a pair").to_owned()
    }

    async fn command(&self, cookie: &str, command: &str) -> (u16, String, String) {
        let body = json!({ "id": format!("{command}-{}", cookie.len()), "command": command });
        self.ask(Method::POST, paths::FLEET_COMMANDS, cookie, Some(body)).await
    }

    async fn log(&self) -> AuditLog {
        let cookie = self.sign_in("adam").await;
        let response = self.request(Method::GET, paths::AUDIT, &cookie).send().await.expect("an answer");
        response.json().await.expect("a log")
    }
}

fn config(folder: &Path, fake: &Fake, session: Duration) -> Config {
    Config {
        bind: "127.0.0.1:0".parse().expect("an address"),
        aircraft: vec![fake.address.to_string()],
        web_dir: None,
        tiles: None,
        parameters: None,
        records: None,
        hosts: Hosts::default(),
        console: None,
        protection: Protection {
            users: Some(folder.join("users.toml")),
            audit: Some(folder.join("audit.jsonl")),
            session,
            tls: None,
            checklist: None,
        },
    }
}

/// Every route with a body that its handler takes, and the least role that it takes; `None`: everyone.
fn routes() -> Vec<(Method, String, Option<Value>, Option<UserRole>)> {
    use UserRole::{Administrator, Observer, Operator};
    let waypoint = |longitude| json!({ "latitude_deg": 39.48, "longitude_deg": longitude, "height_m": 20.0 });
    let mission = json!({ "name": "line", "waypoints": [waypoint(-0.34), waypoint(-0.35)] });
    let get = |path: &str, role| (Method::GET, path.to_owned(), None, role);
    vec![
        get(paths::SESSION, None),
        get(paths::FLEET, Some(Observer)),
        get(paths::FLEET_EVENTS, Some(Observer)),
        get(&format!("{}?vehicle={}", paths::FLEET_AIRCRAFT, id(1)), Some(Observer)),
        get(paths::FLEET_LINKS, Some(Observer)),
        get(paths::FLEET_LINK_TEST, Some(Observer)),
        get(&format!("{}?receiver={}", paths::FLEET_LINK_TEST_FILE, id(1)), Some(Observer)),
        get(paths::MAP, Some(Observer)),
        get(paths::TILE_JSON, Some(Observer)),
        get("/tiles/3/4/5", Some(Observer)),
        get(paths::METRICS, Some(Observer)),
        get(paths::OPENAPI, None),
        get(paths::OPENAPI_PAGE, None),
        (
            Method::POST,
            paths::MISSION_FILES.to_owned(),
            Some(json!({ "name": "a.txt", "text": "QGC WPL 110" })),
            Some(Observer),
        ),
        (
            Method::POST,
            paths::MISSION_EXPORT.to_owned(),
            Some(json!({ "format": "plan", "missions": [mission.clone()] })),
            Some(Observer),
        ),
        get(&format!("{}?aircraft=5&distance_m=50", paths::FORMATIONS), Some(Observer)),
        (Method::POST, paths::PLAN_FILE.to_owned(), Some(json!({})), Some(Observer)),
        (Method::POST, paths::PLAN_PREVIEW.to_owned(), Some(json!({ "flights": [] })), Some(Observer)),
        (
            Method::POST,
            paths::FLEET_COMMANDS.to_owned(),
            Some(json!({ "id": "c1", "command": "hold" })),
            Some(Operator),
        ),
        (
            Method::PUT,
            paths::FLEET_COMMAND_NOTE.to_owned(),
            Some(json!({ "id": "c1", "note": "wind" })),
            Some(Operator),
        ),
        (
            Method::PUT,
            paths::FLEET_MISSION.to_owned(),
            Some(json!({ "vehicle": id(1), "mission": mission })),
            Some(Operator),
        ),
        (
            Method::POST,
            paths::FLEET_LINK_TEST.to_owned(),
            Some(json!({ "sender": id(1), "receivers": [id(2)] })),
            Some(Operator),
        ),
        (Method::DELETE, paths::FLEET_LINK_TEST.to_owned(), None, Some(Operator)),
        (Method::POST, paths::FLEET_LEASES.to_owned(), Some(json!({ "vehicles": [id(1)] })), Some(Operator)),
        get(paths::FLEET_CHECKLIST, Some(Observer)),
        get(paths::FLEET_CHECKLIST_RESULTS, Some(Observer)),
        get(&format!("{}?file=checklist-1.json", paths::FLEET_CHECKLIST_RESULT), Some(Observer)),
        (
            Method::PUT,
            paths::FLEET_CHECKLIST.to_owned(),
            Some(json!({ "hash": "0", "item": "area", "ticked": true })),
            Some(Operator),
        ),
        (Method::DELETE, paths::FLEET_CHECKLIST.to_owned(), None, Some(Operator)),
        get(paths::AUDIT, Some(Operator)),
        get(paths::USERS, Some(Administrator)),
        (Method::DELETE, format!("{}?user=unknown", paths::USER_SESSIONS), None, Some(Administrator)),
        get("/api/v1/nothing", Some(Administrator)),
        get("/", None),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_takes_the_roles_that_are_for_it_and_no_other() {
    let guarded = Guarded::start().await;
    let mut cookies = vec![(String::new(), None)];
    for (name, role) in ROLES {
        cookies.push((guarded.sign_in(name).await, Some(role)));
    }
    for (method, path, body, least) in routes() {
        for (cookie, role) in &cookies {
            let (status, code, message) = guarded.ask(method.clone(), &path, cookie, body.clone()).await;
            let what = format!("{method} {path} as {role:?}: {status} {code} {message}");
            match (least, role) {
                (Some(_), None) => {
                    assert_eq!((status, code.as_str()), (401, "signed_out"), "{what}");
                    assert_eq!(message, "found no session, expected one of a user: sign in");
                }
                (Some(least), Some(role)) if *role < least => {
                    assert_eq!((status, code.as_str()), (403, "role"), "{what}");
                    assert!(
                        message.contains(&format!(
                            "found a user of role {}, expected {} or more",
                            role.name(),
                            least.name()
                        )),
                        "{what}"
                    );
                }
                _ => assert!(status != 401 && status != 403, "{what}"),
            }
        }
    }
    // The observer and the stranger commanded nothing: one command came, repeated by the administrator.
    assert_eq!(guarded.fake.received().iter().filter(|one| one.id == "c1").count().min(1), 1);
    let shown = guarded.handle.picture().await.expect("it runs").commands;
    assert_eq!(
        shown.iter().map(|one| (one.id.as_str(), one.by.as_str())).collect::<Vec<_>>(),
        [("c1", "otto")]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_a_cookie_that_scripts_and_other_sites_do_not_have() {
    let guarded = Guarded::start().await;
    let response = guarded.try_sign_in("otto", PASSWORD).await;
    let cookie = response.headers()[SET_COOKIE].to_str().expect("text").to_owned();
    let port = guarded.handle.address().port();
    assert!(cookie.starts_with(&format!("wingbeat-{port}=")), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200"), "{cookie}");
    let body: Value = response.json().await.expect("who it is");
    assert_eq!((&body["user"]["name"], &body["user"]["role"]), (&json!("otto"), &json!("operator")));
    assert!(!body.to_string().contains(cookie[14..40].trim()), "the token is in the cookie alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_a_foreign_token_and_an_ended_session_command_nothing() {
    let guarded = Guarded::start().await;
    let port = guarded.handle.address().port();
    for (name, password) in
        [("otto", "wrong horse"), ("nobody", PASSWORD), ("Otto\u{202e}", PASSWORD), ("", "")]
    {
        let response = guarded.try_sign_in(name, password).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        let body: Value = response.json().await.expect("JSON");
        assert_eq!(
            body["message"],
            "sign in: found a name and a password that do not belong together, expected those of a user"
        );
    }
    let foreign = format!("wingbeat-{port}={}", "0".repeat(64));
    let (status, code, message) = guarded.command(&foreign, "land").await;
    assert_eq!((status, code.as_str()), (401, "session_unknown"));
    assert!(message.starts_with("found a session that this service does not know"), "{message}");
    let cookie = guarded.sign_in("otto").await;
    let twice = format!("{foreign}; {cookie}");
    assert_eq!(guarded.command(&twice, "land").await.0, 401, "two cookies: which one counts is not known");

    assert_eq!(guarded.ask(Method::DELETE, paths::SESSION, &cookie, None).await.0, 204);
    let (status, code, message) = guarded.command(&cookie, "land").await;
    assert_eq!((status, code.as_str()), (401, "session_ended"));
    assert_eq!(message, "found a session that was ended, expected one that lasts: sign in again");
    assert_eq!(guarded.fake.received(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_session_commands_nothing_its_stream_ends_and_its_page_is_told_why() {
    let guarded = Guarded::with(Duration::from_secs(2)).await;
    let cookie = guarded.sign_in("otto").await;
    let mut stream =
        guarded.request(Method::GET, paths::FLEET_EVENTS, &cookie).send().await.expect("a stream");
    assert_eq!(stream.status(), StatusCode::OK);
    let reading = async { while let Ok(Some(_)) = stream.chunk().await {} };
    tokio::time::timeout(support::LIMIT, reading).await.expect("the stream ends with the session");
    let (status, code, message) = guarded.command(&cookie, "land").await;
    assert_eq!((status, code.as_str()), (401, "session_ended"));
    assert_eq!(message, "found a session whose time is over, expected one that lasts: sign in again");
    let shown: Value = guarded
        .request(Method::GET, paths::SESSION, &cookie)
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    assert_eq!(shown, json!({ "login": true, "ended": message }));
    assert_eq!(guarded.fake.received(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_is_taken_out_or_has_another_password_or_role_is_so_at_once() {
    let guarded = Guarded::start().await;
    let (otto, olga) = (guarded.sign_in("otto").await, guarded.sign_in("olga").await);
    assert_eq!(guarded.command(&otto, "hold").await.0, 202);
    add(&guarded.users(), "olga", UserRole::Observer, "another horse");
    users::change(&guarded.users(), |all| {
        all.entry("otto".to_owned()).and_modify(|entry| entry.role = UserRole::Observer);
        Ok(())
    })
    .expect("written");
    eventually("the file is read again", async || {
        let (status, code, _) = guarded.command(&otto, "land").await;
        (status == 403 && code == "role").then_some(())
    })
    .await;
    let (status, _, message) = guarded.ask(Method::GET, paths::FLEET, &olga, None).await;
    assert_eq!(status, 401);
    assert!(message.contains("whose password was changed"), "{message}");
    users::change(&guarded.users(), |all| {
        all.remove("otto");
        Ok(())
    })
    .expect("written");
    eventually("he is taken out", async || {
        (guarded.ask(Method::GET, paths::FLEET, &otto, None).await.0 == 401).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_ends_others_sessions() {
    let guarded = Guarded::start().await;
    let (otto, adam) = (guarded.sign_in("otto").await, guarded.sign_in("adam").await);
    let list: Value = guarded
        .request(Method::GET, paths::USERS, &adam)
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    assert_eq!(
        list["users"],
        json!([
            { "name": "adam", "role": "administrator", "sessions": 1 },
            { "name": "olga", "role": "observer", "sessions": 0 },
            { "name": "otto", "role": "operator", "sessions": 1 },
        ])
    );
    let end = |name: &str| format!("{}?user={name}", paths::USER_SESSIONS);
    assert_eq!(guarded.ask(Method::DELETE, &end("otto"), &adam, None).await.0, 204);
    assert_eq!(guarded.command(&otto, "land").await.0, 401);
    assert_eq!(guarded.ask(Method::DELETE, &end("nobody"), &adam, None).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_not_tried_without_end() {
    let guarded = Guarded::start().await;
    let mut answers = vec![];
    for number in 0..8 {
        answers.push(guarded.try_sign_in(&format!("guess{number}"), "wrong horse").await);
    }
    let counted = answers.iter().filter(|answer| answer.status() == StatusCode::TOO_MANY_REQUESTS).count();
    assert!(counted >= 2, "5 at once, and at most one more every 10 s: {counted} of 8 refused");
    let last: Value = answers.pop().expect("eight").json().await.expect("JSON");
    assert_eq!(last["code"], "too_many_attempts");
    assert!(last["message"].as_str().expect("text").contains("expected the next in "), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_sites_request_is_refused_although_the_browser_has_a_session() {
    let guarded = Guarded::start().await;
    let cookie = guarded.sign_in("otto").await;
    let body = json!({ "id": "c1", "command": "land" });
    for (name, value, expected) in [
        (
            "origin",
            "http://evil.example",
            "Origin: found \"http://evil.example\", expected that of this server",
        ),
        (
            "sec-fetch-site",
            "cross-site",
            "Sec-Fetch-Site: found \"cross-site\", expected a request of this service's own page",
        ),
    ] {
        let request =
            guarded.request(Method::POST, paths::FLEET_COMMANDS, &cookie).header(name, value).json(&body);
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
        let refused: Value = response.json().await.expect("JSON");
        assert!(refused["message"].as_str().expect("text").starts_with(expected), "{refused}");
    }
    let form = guarded.request(Method::POST, paths::FLEET_COMMANDS, &cookie).body(body.to_string());
    assert_eq!(form.send().await.expect("an answer").status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(guarded.fake.received(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_is_noted_with_who_did_it_and_outlives_the_service() {
    let guarded = Guarded::start().await;
    let (otto, olga) = (guarded.sign_in("otto").await, guarded.sign_in("olga").await);
    assert_eq!(guarded.command(&otto, "hold").await.0, 202);
    assert_eq!(guarded.command(&olga, "land").await.0, 403);
    assert_eq!(guarded.command("", "land").await.0, 401);
    let unknown = json!({ "id": "c9", "command": "land", "vehicles": [id(9)] });
    assert_eq!(guarded.ask(Method::POST, paths::FLEET_COMMANDS, &otto, Some(unknown)).await.0, 404);
    let log = guarded.log().await;
    let line = |entry: &wingbeat_api::AuditEntry| {
        let role = entry.role.map_or("", UserRole::name);
        format!("{} {} {} {} {} {}", entry.number, entry.user, role, entry.action, entry.what, entry.status)
    };
    let lines: Vec<_> = log.entries.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "1 otto  sign_in  200",
            "2 olga  sign_in  200",
            "3 otto operator command hold 202",
            "4 olga observer request POST /api/v1/fleet/commands 403",
            "5   request POST /api/v1/fleet/commands 401",
            "6 otto operator command land 404",
            "7 adam  sign_in  200",
        ]
    );
    let last = &log.entries[5];
    assert_eq!((last.address.as_str(), last.id.as_str(), &last.to), ("127.0.0.1", "c9", &vec![id(9)]));
    assert!(last.refused.contains("no aircraft with the id"), "{}", last.refused);
    assert!(log.kept && log.lost == 0);

    let Guarded { folder, fake, handle, .. } = guarded;
    handle.stop().await;
    let text = std::fs::read_to_string(folder.path().join("audit.jsonl")).expect("the file");
    assert_eq!(text.lines().count(), 7);
    assert!(!text.contains(PASSWORD), "no password is noted");
    let again = Ground::start(config(folder.path(), &fake, SESSION)).await.expect("it starts again");
    let client = wingbeat_ground::plain_client().expect("a client");
    let guarded = Guarded { folder, fake, handle: again, client };
    let (status, _, message) = guarded.command(&otto, "land").await;
    assert_eq!(status, 401, "another service knows no session of the last: {message}");
    let numbers: Vec<_> = guarded.log().await.entries.iter().map(|entry| entry.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9], "they count on");
}

/// A request whose sender does not wait for the answer may have had its effect.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_broken_off_is_noted() {
    let guarded = Guarded::start().await;
    let entry = eventually("one that was under way", async || {
        // A password takes longer than that.
        let _ = tokio::time::timeout(Duration::from_millis(5), guarded.try_sign_in("otto", PASSWORD)).await;
        guarded.log().await.entries.into_iter().find(|entry| entry.status == 499)
    })
    .await;
    assert_eq!((entry.action.as_str(), entry.what.as_str()), ("request", "POST /api/v1/session"));
    assert!(entry.refused.contains("broke it off"), "{}", entry.refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_users_it_is_as_before_and_what_is_done_is_noted_all_the_same() {
    let fake = Fake::start(1).await;
    let handle = support::ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    let client = wingbeat_ground::plain_client().expect("a client");
    let at = |path: &str| format!("http://{}{path}", handle.address());
    let access: Value =
        client.get(at(paths::SESSION)).send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!(access, json!({ "login": false }));
    let sign_in = client.post(at(paths::SESSION)).json(&json!({ "name": "otto", "password": PASSWORD }));
    assert_eq!(sign_in.send().await.expect("an answer").status(), StatusCode::CONFLICT);
    let command = client.post(at(paths::FLEET_COMMANDS)).json(&json!({ "id": "c1", "command": "hold" }));
    assert_eq!(command.send().await.expect("an answer").status(), StatusCode::ACCEPTED);
    let log: AuditLog =
        client.get(at(paths::AUDIT)).send().await.expect("an answer").json().await.expect("a log");
    let last = log.entries.last().expect("a command");
    assert_eq!(
        (last.action.as_str(), last.what.as_str(), last.user.as_str(), log.kept),
        ("command", "hold", "", false)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_served_by_tls_with_a_certificate_that_the_fleet_signed() {
    let folder = tempfile::tempdir().expect("a folder");
    certificate::init(folder.path()).expect("an authority");
    certificate::issue(folder.path(), folder.path(), &["console.lab".to_owned(), "127.0.0.1".to_owned()])
        .expect("a certificate");
    let bad = certificate::issue(folder.path(), folder.path(), &["a b".to_owned()])
        .expect_err("no name")
        .to_string();
    assert!(bad.contains("found the name \"a b\", expected a host name or an IP address"), "{bad}");
    add(&folder.path().join("users.toml"), "otto", UserRole::Operator, PASSWORD);
    let fake = Fake::start(1).await;
    let at = |name: &str| folder.path().join(name);
    let mut config = config(folder.path(), &fake, SESSION);
    config.protection.tls = Some(PageCertificate {
        certificate: at(certificate::PAGE_CERTIFICATE),
        key: at(certificate::PAGE_KEY),
    });
    let handle = Ground::start(config.clone()).await.expect("it starts");

    let mut roots = rustls::RootCertStore::empty();
    let authority = std::fs::read(at(certificate::AUTHORITY_CERTIFICATE)).expect("the authority's");
    let authority =
        <rustls::pki_types::CertificateDer<'_> as rustls::pki_types::pem::PemObject>::from_pem_slice(
            &authority,
        );
    roots.add(authority.expect("a certificate")).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tls = tokio_rustls::TlsConnector::from(Arc::new(tls));
    let connect = async |name: &'static str| {
        let stream = tokio::net::TcpStream::connect(handle.address()).await.expect("it accepts");
        tls.connect(rustls::pki_types::ServerName::try_from(name).expect("a name"), stream).await
    };
    assert!(connect("another.lab").await.is_err(), "the certificate is for its names alone");
    for name in ["console.lab", "127.0.0.1"] {
        let mut stream = connect(name).await.expect("a certificate for it");
        let body = json!({ "name": "otto", "password": PASSWORD }).to_string();
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: https://127.0.0.1\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            paths::SESSION,
            body.len()
        );
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("; Secure\r\n"), "{answer}");
    }
    let plain = reqwest::Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(wingbeat_tls::plain_client().expect("TLS 1.3"))
        .build()
        .expect("a client");
    let refused = plain.get(format!("http://{}/", handle.address())).send().await.expect("an answer");
    let refused: Value = refused.json().await.expect("JSON");
    assert_eq!(refused["code"], "not_https");

    std::fs::write(at("other.key"), "rubbish").expect("written");
    let page = config.protection.tls.as_mut().expect("set");
    page.key = at("other.key");
    let error = Ground::start(config).await.expect_err("no key").to_string();
    assert!(
        error.contains("other.key: found") && error.contains("expected its secret key in PEM"),
        "{error}"
    );
}
