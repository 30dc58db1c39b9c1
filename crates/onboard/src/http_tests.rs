use axum::{
    body::{Body as HttpBody, to_bytes},
    http::{Request as HttpRequest, header::CONTENT_TYPE},
};
use futures_util::StreamExt as _;
use tower::ServiceExt as _;
use wingbeat_api::{Command, MissionItem, Severity, StateId, paths};

use super::*;

/// A service whose driver is the test.
struct Bench {
    front: Front,
    requests: requests::Receiver,
    status: watch::Sender<Arc<AircraftStatus>>,
    mission: watch::Sender<Option<Arc<MissionUpload>>>,
}

fn aircraft(state: StateId, time_ms: u64) -> Arc<AircraftStatus> {
    Arc::new(AircraftStatus {
        id: "00b827eb01020304".into(),
        name: "one".into(),
        time_ms,
        protocol: "muscop".into(),
        state,
        phase: wingbeat_api::Phase::Start,
        detail: String::new(),
        engaged: true,
        failsafe: false,
        flight_controller: wingbeat_api::FlightController {
            link: wingbeat_api::LinkState::NeverSeen,
            link_fault: None,
            heartbeat_age_ms: None,
            firmware: None,
            mode: None,
            armed: false,
            refused: vec![],
            autopilot: None,
            parameters: vec![],
        },
        navigation: None,
        measurements: wingbeat_api::Measurements::default(),
        mission: None,
        flight_setup: None,
        fence: None,
        swarm: None,
        avoidance: None,
        separation: None,
        radio: wingbeat_api::Radio::default(),
        http: wingbeat_api::HttpApi::default(),
        lease: None,
        gateway: None,
        log: Default::default(),
        checks: vec![],
        cures: vec![],
        can_resume: false,
        commands: vec![],
    })
}

fn bench(queue: usize) -> Bench {
    let identity = Identity {
        id: "00b827eb01020304".into(),
        name: "one".into(),
        version: "0".into(),
        api_version: 1,
        protocol: "muscop".into(),
    };
    let fence = Fence { height_least_m: 2.0, height_most_m: 120.0, distance_most_m: f64::INFINITY };
    let (status, status_receiver) = watch::channel(aircraft(StateId::Start, 0));
    let (mission, mission_receiver) = watch::channel(None);
    let (log, _) = broadcast::channel(4);
    let (sender, requests) = requests::channel(queue);
    let front = Front {
        identity: Arc::new(identity),
        fence,
        is_secured: false,
        status: status_receiver,
        mission: mission_receiver,
        log,
        requests: sender,
        store: None,
        setups: Arc::new(Mutex::new(Keeper::new(None))),
        logs: crate::logs::Logs::new(None),
        refusals: Refusals::default(),
        known: None,
    };
    Bench { front, requests, status, mission }
}

impl Bench {
    async fn ask(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: impl Into<HttpBody>,
    ) -> (u16, String) {
        ask(&self.front, method, path, content_type, body).await
    }
}

async fn ask(
    front: &Front,
    method: &str,
    path: &str,
    content_type: &str,
    body: impl Into<HttpBody>,
) -> (u16, String) {
    let request = HttpRequest::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, content_type)
        .body(body.into())
        .unwrap();
    let response = router(front.clone()).oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (code, String::from_utf8(bytes.to_vec()).unwrap())
}

const JSON: &str = "application/json";

fn error_of(body: &str) -> ApiError {
    serde_json::from_str(body).unwrap_or_else(|_| panic!("not an ApiError: {body:?}"))
}

#[tokio::test]
async fn identity_and_status_are_told() {
    let bench = bench(1);
    let (code, body) = bench.ask("GET", paths::IDENTITY, JSON, "").await;
    assert_eq!((code, serde_json::from_str::<Identity>(&body).unwrap().name.as_str()), (200, "one"));
    bench.status.send_replace(aircraft(StateId::Setup, 7));
    let (code, body) = bench.ask("GET", paths::STATUS, JSON, "").await;
    let status: AircraftStatus = serde_json::from_str(&body).unwrap();
    assert_eq!((code, status), (200, aircraft(StateId::Setup, 7).as_ref().clone()));
}

#[tokio::test]
async fn a_command_is_answered_by_the_driver_and_the_code_says_how() {
    let mut bench = bench(1);
    for (outcome, expected) in
        [(CommandOutcome::Accepted, 202), (CommandOutcome::AlreadyKnown, 200), (CommandOutcome::Refused, 409)]
    {
        let front = bench.front.clone();
        let asked = tokio::spawn(async move {
            ask(&front, "POST", paths::COMMANDS, JSON, r#"{"id":"a","command":"recover_control"}"#).await
        });
        let Some(Request::Command { request, reply, .. }) = bench.requests.recv().await else {
            panic!("a command")
        };
        assert_eq!((request.id.as_str(), request.command), ("a", Command::RecoverControl));
        let answer = CommandReply { id: request.id, outcome, state: StateId::Start, reason: "why".into() };
        reply.send(Ok(answer.clone())).unwrap();
        let (code, body) = asked.await.unwrap();
        assert_eq!((code, serde_json::from_str::<CommandReply>(&body).unwrap()), (expected, answer));
    }
}

#[tokio::test]
async fn a_command_that_is_none_is_refused_before_the_driver_sees_it() {
    let bench = bench(1);
    let long = format!(r#"{{"id":"{}","command":"land"}}"#, "x".repeat(65));
    for (body, found) in [
        ("", "EOF"),
        ("{", "EOF"),
        ("[]", "expected"),
        (r#"{"id":"a"}"#, "missing field `command`"),
        (r#"{"id":"a","command":"explode"}"#, "unknown variant `explode`"),
        (r#"{"id":"a","command":"land","now":true}"#, "unknown field `now`"),
        (r#"{"id":7,"command":"land"}"#, "expected a string"),
        (r#"{"id":"","command":"land"}"#, "id: found \"\" (0 bytes), expected 1 to 64"),
        (r#"{"id":"a b","command":"land"}"#, "id: found \"a b\""),
        (r#"{"id":"ä","command":"land"}"#, "id: found \"ä\""),
        (&long, "(65 bytes), expected 1 to 64"),
        (r#"{"id":"a","command":"exclude"}"#, "command.exclude: invalid type: unit variant"),
        (r#"{"id":"a","command":{"exclude":{}}}"#, "missing field `member`"),
        (
            r#"{"id":"a","command":{"exclude":{"member":"7"}}}"#,
            "string \"7\", expected 16 hexadecimal digits",
        ),
        (
            r#"{"id":"a","command":{"exclude":{"member":"+00000000000000a"}}}"#,
            "expected 16 hexadecimal digits",
        ),
        (r#"{"id":"a","command":{"land":{"member":"000000000000000a"}}}"#, "expected unit"),
    ] {
        let (code, answer) = bench.ask("POST", paths::COMMANDS, JSON, body.to_owned()).await;
        let error = error_of(&answer);
        assert_eq!((code, error.code.as_str()), (400, "bad_request"), "{body}");
        assert!(error.message.contains(found), "{body}: {}", error.message);
    }
    assert!(bench.requests.is_empty());
}

#[tokio::test]
async fn a_body_of_another_kind_or_length_is_refused() {
    let bench = bench(1);
    // What a form on somebody else's web page can send without asking.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        let (code, body) = bench.ask("POST", paths::COMMANDS, kind, r#"{"id":"a","command":"land"}"#).await;
        assert_eq!((code, error_of(&body).code.as_str()), (415, "bad_request"), "{kind}");
    }
    let (code, body) = bench.ask("PUT", paths::MISSION, JSON, " ".repeat(BODY_MAX + 1)).await;
    assert_eq!(code, 413);
    assert!(error_of(&body).message.contains(&BODY_MAX.to_string()), "{body}");
}

#[tokio::test]
async fn unknown_paths_and_methods_are_answered_in_json() {
    let bench = bench(1);
    for path in ["/", "/api", "/api/v2/status", "/api/v1/status/", "/../../etc/passwd"] {
        let (code, body) = bench.ask("GET", path, JSON, "").await;
        assert_eq!((code, error_of(&body).code.as_str()), (404, "not_found"), "{path}");
    }
    for (method, path) in [("DELETE", paths::MISSION), ("GET", paths::COMMANDS), ("POST", paths::STATUS)] {
        let (code, body) = bench.ask(method, path, JSON, "").await;
        assert!(code == 405 && error_of(&body).message.contains(method), "{method} {path}: {body}");
    }
}

#[tokio::test]
async fn a_mission_is_checked_given_and_read_back() {
    let mut bench = bench(1);
    assert_eq!(bench.ask("GET", paths::MISSION, JSON, "").await.0, 404);
    let item = MissionItem::at(39.48, -0.34, 20.0);
    let upload = MissionUpload::new("square", vec![item; 2]);
    let high =
        MissionUpload { waypoints: vec![item, MissionItem { height_m: 121.0, ..item }], ..upload.clone() };
    let (code, body) = bench.ask("PUT", paths::MISSION, JSON, serde_json::to_string(&high).unwrap()).await;
    let message = error_of(&body).message;
    assert!(
        code == 400
            && message.starts_with("waypoint 1: found 121 m above home, expected 2 to 120 m (the fence)"),
        "{message}"
    );
    // JSON has no NaN, and 1e999 is none either.
    for number in ["NaN", "1e999", "null", "\"20\""] {
        let text = serde_json::to_string(&upload).unwrap().replace("20.0", number);
        let (code, body) = bench.ask("PUT", paths::MISSION, JSON, text).await;
        assert_eq!((code, error_of(&body).code.as_str()), (400, "bad_request"), "{number}");
    }
    assert!(bench.requests.is_empty());

    let summary = MissionSummary {
        name: "square".into(),
        hash: "0".repeat(16),
        plan_hash: None,
        waypoints: 2,
        reached: None,
        notes: vec![],
    };
    let conflict = ApiError { code: "conflict".into(), message: "state Setup: too late".into() };
    for (answer, expected) in [(Ok(summary.clone()), 200), (Err(conflict), 409)] {
        let (front, text) = (bench.front.clone(), serde_json::to_string(&upload).unwrap());
        let asked = tokio::spawn(async move { ask(&front, "PUT", paths::MISSION, JSON, text).await });
        let Some(Request::Mission { mission, reply, .. }) = bench.requests.recv().await else {
            panic!("a mission")
        };
        assert_eq!(mission, upload);
        reply.send(answer).unwrap();
        assert_eq!(asked.await.unwrap().0, expected);
    }
    bench.mission.send_replace(Some(Arc::new(upload.clone())));
    let (code, body) = bench.ask("GET", paths::MISSION, JSON, "").await;
    assert_eq!((code, serde_json::from_str::<MissionUpload>(&body).unwrap()), (200, upload));
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_is_stuck_busy_or_gone_is_told_apart() {
    let Bench { front, mut requests, .. } = bench(1);
    let land = r#"{"id":"a","command":"land"}"#;
    // Stuck: it took the request and does not answer.
    let first = tokio::spawn({
        let front = front.clone();
        async move { ask(&front, "POST", paths::COMMANDS, JSON, land).await }
    });
    let held = requests.recv().await;
    let (code, body) = first.await.unwrap();
    assert!(code == 503 && error_of(&body).message.contains("did not answer"), "{body}");
    drop(held);
    // Busy: the queue is full. A lease is refused earlier: the last places are for commands that recover.
    let waiting = tokio::spawn({
        let front = front.clone();
        async move { ask(&front, "POST", paths::COMMANDS, JSON, land).await }
    });
    tokio::task::yield_now().await;
    let (code, body) = ask(&front, "POST", paths::COMMANDS, JSON, land).await;
    assert_eq!((code, error_of(&body).code.as_str()), (503, "busy"));
    // Gone, with a request in its queue and with none.
    drop(requests);
    assert_eq!(waiting.await.unwrap().0, 503);
    let (code, body) = ask(&front, "POST", paths::COMMANDS, JSON, land).await;
    assert_eq!((code, error_of(&body).code.as_str()), (503, "unavailable"));
}

#[tokio::test]
async fn the_last_places_of_the_queue_are_for_commands_that_recover() {
    let Bench { front, mut requests, .. } = bench(16);
    let post = |path: &'static str, body: String| {
        let front = front.clone();
        tokio::spawn(async move { ask(&front, "POST", path, JSON, body).await })
    };
    let lease = || post(paths::LEASE, r#"{"console":"one","ttl_ms":5000}"#.to_owned());
    let waiting: Vec<_> = (0..8).map(|_| lease()).collect();
    while front.requests.room() > 8 {
        tokio::task::yield_now().await;
    }
    let (code, body) = lease().await.unwrap();
    assert_eq!((code, error_of(&body).code.as_str()), (503, "busy"));
    let start = post(paths::COMMANDS, r#"{"id":"s","command":"start"}"#.to_owned());
    assert_eq!(start.await.unwrap().0, 503, "a start can wait");
    let recovering = ["hold", "land", "return", "recover_control"]
        .map(|name| post(paths::COMMANDS, format!(r#"{{"id":"{name}","command":"{name}"}}"#)));
    let mut commands = 0;
    while commands < recovering.len() {
        if let Some(Request::Command { request, reply, .. }) = requests.recv().await {
            commands += 1;
            let (id, outcome) = (request.id, CommandOutcome::Accepted);
            let reason = String::new();
            reply.send(Ok(CommandReply { id, outcome, state: StateId::Start, reason })).unwrap();
        }
    }
    for asked in recovering {
        assert_eq!(asked.await.unwrap().0, 202);
    }
    drop(waiting);
}

/// Posts bytes as an order over a connection of the operator's console `from`.
async fn order_of(front: &Front, from: u64, octets: Vec<u8>) -> (u16, String) {
    let mut request = HttpRequest::builder()
        .method("POST")
        .uri(paths::ORDERS)
        .header(CONTENT_TYPE, "application/octet-stream")
        .body(HttpBody::from(octets))
        .unwrap();
    request.extensions_mut().insert(Peer { id: VehicleId(from), role: Role::Operator, key: [0; 32] });
    let response = router(front.clone()).oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (code, String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn a_console_that_floods_with_orders_pushes_out_no_other_consoles() {
    let Bench { front, mut requests, .. } = bench(64);
    let post = |from, octets: &[u8]| {
        let (front, octets) = (front.clone(), octets.to_vec());
        tokio::spawn(async move { order_of(&front, from, octets).await })
    };
    // It disconnects from half of them, which gives no place back: the driver has not taken them.
    let flood: Vec<_> = (0..200).map(|_| post(1, b"rubbish")).collect();
    let refused = || front.refusals.counts().find(|(reason, _)| *reason == "share").unwrap().1;
    while refused() < 200 - requests::SHARE as u64 {
        tokio::task::yield_now().await;
    }
    flood.iter().step_by(2).for_each(tokio::task::JoinHandle::abort);
    let (code, body) = order_of(&front, 1, b"rubbish".to_vec()).await;
    assert_eq!((code, error_of(&body).code.as_str()), (503, "busy"));
    let genuine = post(2, b"genuine");
    let mut before = 0;
    loop {
        let Some(Request::Order { sealed, reply, .. }) = requests.recv().await else { panic!("no order") };
        if sealed == "genuine" {
            let (id, outcome) = ("g".to_owned(), CommandOutcome::Accepted);
            let reason = String::new();
            reply.send(Ok(CommandReply { id, outcome, state: StateId::Start, reason })).unwrap();
            break;
        }
        before += 1;
    }
    assert_eq!((before, genuine.await.unwrap().0), (requests::SHARE, 202), "after the other's share");
    assert_eq!(refused(), 200 - requests::SHARE as u64 + 1, "counted");
    // Its share is free again.
    let again = post(1, b"genuine");
    while requests.is_empty() {
        tokio::task::yield_now().await;
    }
    drop((again, flood));
}

/// Every event that is sent within a time.
async fn events_within(body: &mut axum::body::BodyDataStream, time: Duration) -> Vec<String> {
    let mut events = vec![];
    let _ = timeout(time, async {
        while let Some(Ok(bytes)) = body.next().await {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            if !text.starts_with(':') {
                events.push(text);
            }
        }
        events.push("end".into());
    })
    .await;
    events
}

async fn follow(front: &Front) -> axum::body::BodyDataStream {
    let request = HttpRequest::builder().uri(paths::EVENTS).body(HttpBody::empty()).unwrap();
    let response = router(front.clone()).oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
    response.into_body().into_data_stream()
}

#[tokio::test(start_paused = true)]
async fn numbers_are_streamed_five_times_a_second_and_changes_at_once() {
    let bench = bench(1);
    let mut body = follow(&bench.front).await;
    let first = events_within(&mut body, Duration::from_millis(10)).await;
    assert!(first.len() == 1 && first[0].contains("event: status"), "at once: {first:?}");

    // A hundred states a second that differ in a number, for two seconds.
    let sender = bench.status.clone();
    let numbers = tokio::spawn(async move {
        for time_ms in 1..=200 {
            sender.send_replace(aircraft(StateId::Start, time_ms));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let streamed = events_within(&mut body, Duration::from_millis(2_300)).await;
    numbers.await.unwrap();
    assert!((9..=12).contains(&streamed.len()), "{}", streamed.len());
    assert!(streamed.last().unwrap().contains("\"time_ms\":200"), "the last state arrives");

    bench.status.send_replace(aircraft(StateId::Start, 201));
    bench.status.send_replace(aircraft(StateId::Landing, 202));
    let change = events_within(&mut body, Duration::from_millis(1)).await;
    let data = change[0].lines().find_map(|line| line.strip_prefix("data: ")).expect("a line of data");
    let status: AircraftStatus = serde_json::from_str(data).expect("a status");
    assert_eq!((change.len(), status.state), (1, StateId::Landing));
    drop(bench.status);
    assert_eq!(events_within(&mut body, Duration::from_secs(1)).await, ["end"], "the driver is gone");
}

#[tokio::test(start_paused = true)]
async fn a_slow_console_is_told_what_it_missed() {
    let bench = bench(1);
    let mut body = follow(&bench.front).await;
    assert_eq!(events_within(&mut body, Duration::from_millis(10)).await.len(), 1);
    for number in 0..10 {
        let text = format!("line {number}");
        let line = LogLine { id: String::new(), time_ms: 0, severity: Severity::Info, text };
        bench.front.log.send(line).unwrap();
    }
    let lines = events_within(&mut body, Duration::from_secs(1)).await;
    assert!(lines[0].contains("6 log lines were skipped") && lines[4].contains("line 9"), "{lines:?}");
}

#[test]
fn the_document_has_every_path_and_every_type() {
    let document = serde_json::to_value(openapi()).unwrap();
    let mut paths_found: Vec<_> = document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    paths_found.sort_unstable();
    let mut expected = [
        paths::IDENTITY,
        paths::STATUS,
        paths::EVENTS,
        paths::MISSION,
        paths::COMMANDS,
        paths::ORDERS,
        paths::KEYS,
        paths::LEASE,
        paths::LINKS,
        paths::LINK_TEST,
        paths::LINK_TEST_ROWS,
        paths::PARAMETERS,
        paths::PARAMETERS_WORK,
        paths::REGION,
        paths::FLIGHT_SETUP,
        paths::LOGS,
        paths::LOG_FILE,
        paths::LOG_HASH,
        paths::AUTOPILOT_LOGS,
    ];
    expected.sort_unstable();
    assert_eq!(paths_found, expected);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in ["AircraftStatus", "LogLine", "CommandRequest", "CommandReply", "MissionUpload", "ApiError"] {
        assert!(schemas.contains_key(name), "{name}");
    }
    assert_eq!(document["info"]["license"]["name"], "MIT OR Apache-2.0");
}

#[path = "../../../tests/prometheus/parse.rs"]
mod prometheus;

#[tokio::test]
async fn its_measurements_and_its_description_are_served() {
    let bench = bench(1);
    let mut flying = aircraft(StateId::Setup, 7).as_ref().clone();
    flying.radio.sent = 12;
    flying.measurements.gnss = Some(serde_json::from_str(r#"{"fix_type":3,"satellites":11}"#).unwrap());
    bench.status.send_replace(Arc::new(flying));
    let (code, text) = bench.ask("GET", paths::METRICS, JSON, "").await;
    let samples = prometheus::parse(&text);
    let of = |name: &str| samples.get(&format!("{name}{{aircraft=\"00b827eb01020304\"}}")).copied();
    assert_eq!(
        (code, of("wingbeat_radio_datagrams_sent_total"), of("wingbeat_gnss_satellites")),
        (200, Some(12.0), Some(11.0))
    );
    assert_eq!(
        (of("wingbeat_autopilot_link_up"), of("wingbeat_height_meters")),
        (Some(0.0), None),
        "not known: no sample"
    );
    assert!(text.contains(r#"wingbeat_build_info{service="wingbeatd",version="0",name="one"} 1"#), "{text}");
    let (code, served) = bench.ask("GET", paths::OPENAPI, JSON, "").await;
    assert_eq!(code, 200);
    let (served, expected): (serde_json::Value, _) = (serde_json::from_str(&served).unwrap(), openapi());
    assert_eq!(served, serde_json::to_value(expected).unwrap());
    assert_eq!(served["openapi"], "3.1.0");
    let (code, page) = bench.ask("GET", paths::OPENAPI_PAGE, JSON, "").await;
    assert!(code == 200 && page.contains(paths::OPENAPI_SCRIPT), "{code} {page}");
    assert_eq!(bench.ask("POST", paths::METRICS, JSON, "{}").await.0, 405);
}

#[tokio::test]
async fn each_role_asks_what_is_for_it_and_the_rest_is_refused_and_counted() {
    let bench = bench(8);
    let asks = |role: Role, method: &'static str, path: &'static str| {
        let front = bench.front.clone();
        async move {
            let request = HttpRequest::builder().method(method).uri(path).header(CONTENT_TYPE, JSON);
            let mut request = request.body(HttpBody::from("{}")).unwrap();
            request.extensions_mut().insert(Peer { id: VehicleId(7), role, key: [7; 32] });
            let response = router(front).oneshot(request).await.unwrap();
            let code = response.status().as_u16();
            let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
            let refused = code == 403 && body.starts_with(br#"{"code":"role""#);
            assert!(!refused || String::from_utf8_lossy(&body).contains("0000000000000007"), "{body:?}");
            !refused
        }
    };
    let mut refused = 0;
    for (method, path, may) in [
        ("GET", paths::STATUS, [true, true, true, true]),
        ("GET", paths::MISSION, [true, true, true, true]),
        ("GET", paths::METRICS, [true, true, true, true]),
        ("GET", paths::LOGS, [true, true, true, true]),
        ("GET", paths::LOG_FILE, [true, true, true, true]),
        ("GET", paths::LOG_HASH, [true, true, true, true]),
        ("POST", paths::AUTOPILOT_LOGS, [false, true, false, false]),
        ("POST", paths::ORDERS, [false, true, true, false]),
        ("POST", paths::COMMANDS, [false, true, false, false]),
        ("POST", paths::LEASE, [false, true, false, false]),
        ("PUT", paths::MISSION, [false, true, false, false]),
        // The authority has signed them.
        ("PUT", paths::KEYS, [true, true, true, true]),
        ("DELETE", "/api/v1/else", [false, true, false, false]),
    ] {
        for (role, may) in Role::ALL.into_iter().zip(may) {
            assert_eq!(asks(role, method, path).await, may, "{method} {path} of {role:?}");
            refused += u64::from(!may);
        }
    }
    let counted: Vec<_> = bench.front.refusals.counts().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counted, [("role", refused)]);
}

#[tokio::test]
async fn flight_logs_are_listed_and_served_in_ranges_on_the_ground_alone() {
    use sha2::{Digest as _, Sha256};

    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(folder.path().join("000007-01.mcap"), &content).unwrap();
    std::fs::write(folder.path().join("000008-01.mcap"), b"").unwrap();
    std::fs::write(folder.path().join("secret"), b"secret").unwrap();
    let mut bench = bench(1);
    bench.front.logs = crate::logs::Logs::new(Some(folder.path().into()));
    let (code, body) = bench.ask("GET", paths::LOGS, JSON, "").await;
    let list: wingbeat_api::LogFiles = serde_json::from_str(&body).unwrap();
    assert_eq!(code, 200);
    let [file] = list.files.as_slice() else { panic!("{list:?}") };
    assert_eq!(
        (file.name.as_str(), file.bytes),
        ("000007-01.mcap", 800_000),
        "an empty file has nothing yet"
    );

    let front = bench.front.clone();
    let get = |range: Option<&'static str>, name: &'static str| {
        let front = front.clone();
        async move {
            let mut request = HttpRequest::builder().uri(format!("{}?name={name}", paths::LOG_FILE));
            if let Some(range) = range {
                request = request.header("range", range);
            }
            let response = router(front).oneshot(request.body(HttpBody::empty()).unwrap()).await.unwrap();
            let code = response.status().as_u16();
            let range = response.headers().get("content-range").map(|r| r.to_str().unwrap().to_owned());
            (code, range, to_bytes(response.into_body(), 1 << 20).await.unwrap())
        }
    };
    let name = "000007-01.mcap";
    assert_eq!(get(None, name).await, (200, None, content.clone().into()));
    let (code, range, piece) = get(Some("bytes=799990-"), name).await;
    assert_eq!((code, range.as_deref()), (206, Some("bytes 799990-799999/800000")));
    assert_eq!(piece, content[799_990..]);
    let (code, range, piece) = get(Some("bytes=5-9"), name).await;
    assert_eq!((code, range.as_deref(), &piece[..]), (206, Some("bytes 5-9/800000"), &content[5..10]));
    assert_eq!(get(Some("bytes=800000-"), name).await.0, 416);
    for bad in ["bytes=-5", "bytes=1-2,4-5", "lines=1-2", "bytes=x-"] {
        let (code, _, body) = get(Some(bad), name).await;
        assert!(code == 400 && String::from_utf8_lossy(&body).contains(bad), "{bad}: {code}");
    }
    for none in ["secret", "..%2Fsecret", "000009-01.mcap", "%2Fetc%2Fpasswd", ""] {
        assert_eq!(get(None, none).await.0, 404, "{none}");
    }

    let piece = |from, bytes| format!("{}?name={name}&from={from}&bytes={bytes}", paths::LOG_HASH);
    let (code, body) = bench.ask("GET", &piece(4, 100_000), JSON, "").await;
    let expected: String = Sha256::digest(&content[4..100_004]).iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!((code, body), (200, format!("{{\"sha256\":\"{expected}\"}}")));
    assert_eq!(bench.ask("GET", &piece(799_999, 2), JSON, "").await.0, 416);
    for bytes in [0, wingbeat_api::LOG_PIECE_MAX + 1] {
        assert_eq!(bench.ask("GET", &piece(0, bytes), JSON, "").await.0, 400);
    }

    // A file that is under way when motors are armed ends early; none is begun.
    let request = HttpRequest::builder().uri(format!("{}?name={name}", paths::LOG_FILE));
    let begun = router(front.clone()).oneshot(request.body(HttpBody::empty()).unwrap()).await.unwrap();
    let mut armed = aircraft(StateId::Start, 1).as_ref().clone();
    armed.flight_controller.armed = true;
    bench.status.send_replace(Arc::new(armed));
    assert!(to_bytes(begun.into_body(), 1 << 20).await.is_err());
    for path in [format!("{}?name={name}", paths::LOG_FILE), piece(0, 1)] {
        let (code, body) = bench.ask("GET", &path, JSON, "").await;
        assert!(code == 409 && error_of(&body).message.contains("found motors armed"), "{body}");
    }
    assert_eq!(bench.ask("GET", paths::LOGS, JSON, "").await.0, 200);
}
