//! Whole daemons from outside: simulated flight controllers on TCP, a hub for a radio, HTTP on loopback.

use crate::common::aircraft;
use crate::common::client;
use crate::common::config;
use crate::common::operator;

use std::time::{Duration, Instant};

use aircraft::{flight_controller, home, until};
use client::{ask, raw};
use config::{config, none, tcp};
use operator::Operator;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    sync::watch,
};
use tokio_serial::{SerialPort as _, SerialStream};
use wingbeat_api::{
    AircraftStatus, ApiError, Command, CommandOutcome, CommandReply, CommandStage, FlightProtocol,
    FlightSetupSource, FlightSetupState, Identity, LeaseGrant, LinkState, MissionItem, MissionSummary,
    MissionUpload, Severity, StateId, paths,
};
use wingbeat_geo::{DVec3, Frame};
use wingbeat_hub::{Hub, HubRadio};
use wingbeat_link::{Endpoint, OpenErrorKind};
use wingbeat_onboard::{
    Clock, Config, Handle, StartError,
    keys::{
        Enrolled, Store, Timestamp,
        enrolment::{self, Change},
    },
    recording, start,
};
use wingbeat_protocol::muscop;
use wingbeat_record::{
    reader::Log,
    replay::{Options, replay},
    store::Limits,
};
use wingbeat_sim::{
    channel::{Channel, Draw, Model},
    motion::Profile,
};
use wingbeat_wire::{Role, VehicleId};

const MASTER: VehicleId = VehicleId(0xa1);

fn flown(id: u64, aircraft: usize, autopilot: Endpoint) -> Config {
    let mut muscop = muscop::Config::new(VehicleId(id), MASTER, aircraft);
    muscop.swarm.distance_m = 30.0;
    Config { seed: id, ..config(wingbeat_agent::Config::new(muscop), autopilot) }
}

/// Throw-away keys of a fleet of two.
fn fleet_keys() -> wingbeat_sim::keys::Keys {
    let ids = (0..2).map(|i| VehicleId(MASTER.0 + i));
    wingbeat_sim::keys::Keys::new(wingbeat_sim::keys::Signatures::Ed25519, 1, ids).unwrap()
}

/// The files of an aircraft that is enrolled, in a fleet of its own.
fn enrolled(id: VehicleId, folder: &std::path::Path) -> Enrolled {
    let (fleet, now) = (folder.join(id.to_string()), Timestamp::now());
    let path = |name: &str| folder.join(format!("{id}.{name}"));
    let store = Store::of_aircraft(id, path("key"), path("bundle"));
    enrolment::init(&fleet, now, 1).unwrap();
    let request = store.request().unwrap();
    let bundle = enrolment::change(&fleet, &Change::Enrol { request, role: Role::Aircraft }, now).unwrap();
    let terms = store.accept(bundle.text()).unwrap().terms;
    Enrolled { store, terms }
}

/// Those of one of them.
fn keys(index: usize) -> wingbeat_onboard::keys::Keys {
    let keys = fleet_keys();
    wingbeat_onboard::keys::Keys {
        signer: keys.signer(index).clone(),
        roster: Box::new(keys.roster().clone()),
    }
}

fn hub(count: usize, clock: Clock) -> (Hub, Vec<HubRadio>) {
    Hub::spawn(Channel::new(Model::Unrestricted, Draw::PerPacket, 1, count), count, clock)
}

/// A daemon without an autopilot: its endpoint is a port without a listener.
async fn alone() -> (Handle, Hub) {
    let clock = Clock::real_time();
    let (hub, mut radios) = hub(1, clock);
    (start(flown(MASTER.0, 1, none()), clock, radios.remove(0)).await.unwrap(), hub)
}

/// A leg of 30 m, 8 m above home.
fn mission() -> MissionUpload {
    let frame = Frame::new(home());
    let item = |east_m, north_m| {
        let place = frame.to_position(DVec3::new(east_m, north_m, 0.0));
        MissionItem::at(place.latitude_deg(), place.longitude_deg(), 8.0)
    };
    MissionUpload::new("leg", vec![item(0.0, 10.0), item(0.0, 40.0)])
}

async fn status(handle: &Handle) -> AircraftStatus {
    status_of(&ask(handle.address(), "GET", paths::STATUS, "").await.1)
}

fn status_of(answer: &str) -> AircraftStatus {
    serde_json::from_str(answer).unwrap()
}

async fn command(handle: &Handle, id: &str, command: &str) -> (u16, CommandReply) {
    let body = format!(r#"{{"id":"{id}","command":"{command}"}}"#);
    let (code, answer) = ask(handle.address(), "POST", paths::COMMANDS, &body).await;
    (code, serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{code} {answer}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_daemons_fly_a_mission_from_setup_to_landing() {
    let clock = Clock::start(5.0).unwrap();
    let (hub, radios) = hub(2, clock);
    let (_online, online) = watch::channel(true);
    let files = tempfile::tempdir().unwrap();
    let mut fleet = vec![];
    for (index, radio) in radios.into_iter().enumerate() {
        let index = index as u8;
        let positions = Some(hub.positions());
        let place = (index, 10.0 * f64::from(index));
        let address = flight_controller(Profile::Copter357, place, clock, positions, online.clone()).await;
        let config = flown(MASTER.0 + u64::from(index), 2, tcp(address));
        let id = config.agent.coordination.me();
        let config =
            Config { keys: keys(index.into()), enrolled: Some(enrolled(id, files.path())), ..config };
        let limits = Limits { free_len: 0, ..Limits::default() };
        let directory = Some(files.path().join(format!("log-{index}")));
        let config = Config { log: Some(recording::Settings { directory, limits }), ..config };
        fleet.push(start(config, clock, radio).await.unwrap());
    }
    let mut logs: Vec<_> = fleet.iter().map(Handle::log).collect();
    let (master, follower) = (&fleet[0], &fleet[1]);

    // Before anybody was heard, setup is refused and says why.
    let body = serde_json::to_string(&mission()).unwrap();
    let (mut operator, reader) = (Operator::new(fleet_keys(), clock), Operator::new(fleet_keys(), clock));
    let mut tokens = vec![];
    for handle in &fleet {
        let (_, answer) =
            reader.ask(handle, "POST", paths::LEASE, r#"{"console":"one","ttl_ms":60000}"#).await;
        tokens.push(serde_json::from_str::<LeaseGrant>(&answer).unwrap().token.unwrap());
    }
    let json = "application/json";
    let (code, answer) =
        operator.send(master, "PUT", paths::MISSION, &tokens[0], json, body.as_bytes()).await;
    let held: MissionSummary = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{code} {answer}"));
    assert_eq!((code, held.name.as_str(), held.waypoints), (200, "leg", 2));
    let (code, answer) =
        operator.send(follower, "PUT", paths::MISSION, &tokens[1], json, body.as_bytes()).await;
    let error: ApiError = serde_json::from_str(&answer).unwrap();
    assert!(code == 409 && error.message.contains("belongs to the master"), "{error:?}");
    let (_, answer) = reader.ask(master, "GET", paths::MISSION, "").await;
    let read_back: MissionUpload = serde_json::from_str(&answer).unwrap();
    assert_eq!((read_back.name.as_str(), read_back.waypoints.len()), ("leg", 2));

    // An operator sets the flight up otherwise: the holder of the lease, and what can be flown.
    let setup = r#"{"protocol":"muscop","distance_m":31,"landing_distance_m":12,"landing":"sequential"}"#;
    for (index, handle) in fleet.iter().enumerate() {
        until(handle, "up", |s| s.flight_controller.link == LinkState::Up).await;
        for (token, body, code, words) in [
            ("", setup, 409, "the flight's set-up: found the lease of console"),
            (&*tokens[index], r#"{"protocol":"muscop","spacing_m":31}"#, 400, "unknown field `spacing_m`"),
            (
                &tokens[index],
                r#"{"protocol":"muscop","speed_m_s":3}"#,
                400,
                "speed_m_s: found 3, expected none",
            ),
            (&tokens[index], setup, 200, r#""source":"operator""#),
            (&tokens[index], setup, 200, r#""distance_m":31.0"#),
        ] {
            let (found, answer) =
                operator.send(handle, "PUT", paths::FLIGHT_SETUP, token, json, body.as_bytes()).await;
            assert!(found == code && answer.contains(words), "{found} {answer}, expected {code} {words}");
        }
        let status = status_of(&reader.ask(handle, "GET", paths::STATUS, "").await.1);
        let now = status.flight_setup.expect("reported");
        assert_eq!((now.setup.distance_m, now.setup.landing.as_deref()), (Some(31.0), Some("sequential")));
    }
    let (_, answer) = reader.ask(master, "GET", paths::MISSION, "").await;
    assert_eq!(serde_json::from_str::<MissionUpload>(&answer).unwrap().name, "leg", "the mission is kept");

    for handle in &fleet {
        until(handle, "checks passed", |s| s.checks.iter().all(|check| check.passed || !check.is_required))
            .await;
    }
    until(master, "two in the swarm", |s| s.swarm.as_ref().is_some_and(|swarm| swarm.size == 2)).await;
    let mut order = async |index: usize, id: &str, command| {
        let (code, answer) = operator.order(&fleet[index], &tokens[index], id, command).await;
        (code, serde_json::from_str::<CommandReply>(&answer).unwrap_or_else(|_| panic!("{code} {answer}")))
    };
    for index in 0..2 {
        let (code, reply) = order(index, "setup-1", Command::Setup).await;
        assert_eq!((code, reply.outcome), (202, CommandOutcome::Accepted), "{reply:?}");
        let (code, reply) = order(index, "setup-1", Command::Setup).await;
        assert_eq!(
            (code, reply.outcome),
            (200, CommandOutcome::AlreadyKnown),
            "the same id is the same command"
        );
        let (code, reply) = order(index, "setup-1", Command::Land).await;
        assert_eq!(
            (code, reply.outcome, reply.reason.as_str()),
            (
                409,
                CommandOutcome::Refused,
                "id \"setup-1\": found land, expected setup, which came under this id before: a new command needs a \
                 new id"
            ),
        );
    }
    for handle in &fleet {
        until(handle, "SetupFinished", |s| s.state == StateId::SetupFinished).await;
        let status = status_of(&reader.ask(handle, "GET", paths::STATUS, "").await.1);
        let setup = &status.commands[0];
        assert_eq!((setup.id.as_str(), setup.stage), ("setup-1", CommandStage::EffectSeen));
        assert!(status.flight_controller.armed && status.navigation.unwrap().height_m > 5.0);
    }
    // In the air no flight is set up.
    let (code, answer) = reader.send(master, "DELETE", paths::FLIGHT_SETUP, &tokens[0], json, b"").await;
    assert!(code == 409 && answer.contains("a flight is set up with disarmed motors"), "{code} {answer}");
    let plan = status_of(&reader.ask(master, "GET", paths::STATUS, "").await.1).swarm.unwrap().plan.unwrap();
    assert_eq!(plan.distance_m, 31.0, "the formation is the one that was set");
    // In the air it takes no other keys.
    let bundle = std::fs::read(files.path().join(format!("{MASTER}/fleet.bundle"))).unwrap();
    let (code, answer) =
        reader.send(master, "PUT", paths::KEYS, "", "application/octet-stream", &bundle).await;
    assert!(code == 409 && answer.contains("keys: found motors armed"), "{code} {answer}");
    // The follower flies its own part of the master's plan, and shows which.
    let part = status_of(&reader.ask(follower, "GET", paths::STATUS, "").await.1).mission.unwrap();
    let (_, answer) = reader.ask(follower, "GET", paths::MISSION, "").await;
    let flown: MissionUpload = serde_json::from_str(&answer).unwrap();
    assert_eq!((part.name.as_str(), part.waypoints), (flown.name.as_str(), 2));
    assert_eq!(flown.name, "the master's plan");
    let (_, answer) = reader.ask(master, "GET", paths::MISSION, "").await;
    let masters: MissionUpload = serde_json::from_str(&answer).unwrap();
    assert_ne!(flown.waypoints, masters.waypoints, "side by side, not in one place");
    for index in 0..2 {
        order(index, "start-1", Command::Start).await;
    }
    for handle in &fleet {
        let last = until(handle, "Finished", |s| s.state == StateId::Finished).await;
        assert!(!last.flight_controller.armed && last.engaged);
        assert_eq!(last.mission.as_ref().unwrap().reached, Some(1), "the last waypoint");
        assert!(last.radio.sent > 0 && last.radio.received > 0);
    }
    assert!(hub.counters().channel.delivered > 100 && hub.counters().overflows == 0);
    for log in &mut logs {
        while let Ok(line) = log.try_recv() {
            assert_ne!(line.severity, Severity::Error, "{}", line.text);
        }
    }
    let status = status_of(&reader.ask(master, "GET", paths::STATUS, "").await.1);
    assert!(
        status.log.written > 1_000 && status.log.lost == 0 && status.log.problem.is_none(),
        "{:?}",
        status.log
    );
    for handle in fleet {
        handle.stop().await;
    }
    // What each daemon logged, a fresh agent flies again, byte for byte.
    for index in 0..2 {
        let file = files.path().join(format!("log-{index}/000001-01.mcap"));
        let log = Log::read(&file).unwrap();
        assert_eq!(log.flaw, None);
        let outcome = replay(&log, &Options::default(), |_, _, _, _| ()).unwrap();
        assert_eq!((&outcome.difference, outcome.lost, outcome.starts), (&None, None, 1));
        assert!(outcome.inputs > 1_000 && outcome.states.last().unwrap().1 == "Finished", "{outcome:?}");
        assert_eq!(log.about["aircraft"], VehicleId(MASTER.0 + index).to_string());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_up_of_the_flight_survives_a_restart_until_it_is_cleared() {
    let clock = Clock::real_time();
    let directory = tempfile::tempdir().unwrap();
    let (_switch, online) = watch::channel(true);
    let autopilot = flight_controller(Profile::Copter357, (0, 0.0), clock, None, online).await;
    let begin = async || {
        let (hub, mut radios) = hub(1, clock);
        let config = Config { state: Some(directory.path().into()), ..flown(MASTER.0, 2, tcp(autopilot)) };
        let handle = start(config, clock, radios.remove(0)).await.unwrap();
        until(&handle, "up", |s| s.flight_controller.link == LinkState::Up).await;
        (handle, hub)
    };
    let state = async |handle: &Handle| {
        let answer = ask(handle.address(), "GET", paths::FLIGHT_SETUP, "").await.1;
        serde_json::from_str::<FlightSetupState>(&answer).unwrap_or_else(|_| panic!("{answer}"))
    };
    let (handle, _hub) = begin().await;
    let configured = state(&handle).await;
    assert_eq!(configured.source, FlightSetupSource::Configuration);
    assert!(configured.choices.iter().any(|choice| choice.protocol == FlightProtocol::Mbcap));
    let body = r#"{"protocol":"mbcap","speed_m_s":4}"#;
    let (code, answer) = ask(handle.address(), "PUT", paths::FLIGHT_SETUP, body).await;
    assert_eq!(code, 200, "{answer}");
    let set = state(&handle).await;
    assert_eq!((set.source, set.setup.speed_m_s), (FlightSetupSource::Operator, Some(4.0)));
    let (_, identity) = ask(handle.address(), "GET", paths::IDENTITY, "").await;
    assert!(identity.contains(r#""protocol":"mbcap-e""#), "{identity}");
    handle.stop().await;

    let (handle, _hub) = begin().await;
    assert_eq!(state(&handle).await, set);
    assert_eq!(status(&handle).await.protocol, "mbcap-e");
    let (code, answer) = ask(handle.address(), "DELETE", paths::FLIGHT_SETUP, "").await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(state(&handle).await, configured);
    handle.stop().await;

    // What is no set-up is said, and what is configured holds.
    std::fs::write(directory.path().join("flight-setup.json"), r#"{"version":1,"setup":{"#).unwrap();
    let (handle, _hub) = begin().await;
    let found = state(&handle).await;
    assert_eq!((found.setup, found.source), (configured.setup, FlightSetupSource::Configuration));
    let problem = found.problem.expect("said");
    assert!(problem.contains("flight-setup.json: found EOF") && problem.contains("holds"), "{problem}");
    handle.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flight_controller_that_leaves_and_returns_is_reported_and_found_again() {
    let clock = Clock::start(5.0).unwrap();
    let (_hub, mut radios) = hub(1, clock);
    let (switch, online) = watch::channel(true);
    let address = flight_controller(Profile::Copter357, (0, 0.0), clock, None, online).await;
    let handle = start(flown(MASTER.0, 1, tcp(address)), clock, radios.remove(0)).await.unwrap();
    let mut log = handle.log();
    until(&handle, "up", |s| s.flight_controller.link == LinkState::Up).await;
    switch.send_replace(false);
    until(&handle, "lost", |s| s.flight_controller.link == LinkState::Lost).await;
    let mut text = String::new();
    while let Ok(line) = log.try_recv() {
        text += &line.text;
        text += "\n";
    }
    assert!(text.contains(&format!("autopilot tcp:{address}: found")), "{text}");
    let (code, reply) = command(&handle, "setup-1", "setup").await;
    assert!(code == 409 && reply.reason.contains("flight controller: silent"), "{reply:?}");
    switch.send_replace(true);
    until(&handle, "up again", |s| s.flight_controller.link == LinkState::Up).await;
    handle.stop().await;
}

fn find(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

#[tokio::test]
async fn a_hundred_requests_of_rubbish_leave_the_daemon_well() {
    let (handle, _hub) = alone().await;
    let mut rubbish: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"\r\n\r\n".to_vec(),
        b"GET".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"GET /api/v1/status HTTP/1.1\r\n\r\n".to_vec(),
        b"POST /api/v1/commands HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999999999999999\r\n\r\n".to_vec(),
        b"POST /api/v1/commands HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{".to_vec(),
        b"POST /api/v1/commands HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec(),
        b"PUT /api/v1/mission HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnull".to_vec(),
        [&b"GET /"[..], &[b'a'; 70_000], b" HTTP/1.1\r\n\r\n"].concat(),
        [&b"GET / HTTP/1.1\r\nX: "[..], &[b'a'; 700_000], b"\r\n\r\n"].concat(),
    ];
    // Well-formed requests with bodies that are not, from a fixed sequence.
    let mut state = 1_u32;
    while rubbish.len() < 100 {
        let mut bytes = vec![];
        for _ in 0..rubbish.len() * 3 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bytes.push((state >> 24) as u8);
        }
        if rubbish.len().is_multiple_of(2) {
            let head = format!(
                "POST {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                if rubbish.len().is_multiple_of(4) { paths::COMMANDS } else { paths::EVENTS },
                bytes.len()
            );
            bytes = [head.as_bytes(), &bytes].concat();
        }
        rubbish.push(bytes);
    }
    for request in &rubbish {
        let answer = raw(handle.address(), request, find(request, b"Connection: close")).await;
        let well_formed = answer.is_empty() || answer.starts_with("HTTP/1.");
        assert!(well_formed, "{answer:?}");
        assert!(!answer.starts_with("HTTP/1.1 202") && !answer.contains(" 500 "), "{answer:?}");
    }
    let (code, body) = ask(handle.address(), "GET", paths::IDENTITY, "").await;
    let identity: Identity = serde_json::from_str(&body).unwrap();
    assert_eq!((code, identity), (200, handle.identity().clone()));
    assert!(status(&handle).await.commands.is_empty());
    handle.stop().await;
}

/// A connection from another address of this machine, and what it sends.
async fn from_elsewhere(handle: &Handle, request: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 2], 0).into()).unwrap();
    let mut stream = socket.connect(handle.address()).await.unwrap();
    // One that has been closed meanwhile takes nothing.
    let _ = stream.write_all(request.as_bytes()).await;
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emergency_command_is_answered_while_1100_slow_connections_are_open() {
    let (handle, _hub) = alone().await;
    let head = format!("POST {} HTTP/1.1\r\nHost: ", paths::COMMANDS);
    let events = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", paths::EVENTS);
    let mut open = vec![];
    for number in 0..1_100 {
        open.push(from_elsewhere(&handle, if number % 8 == 0 { &events } else { &head }).await);
    }
    let mut times = vec![];
    for (number, command) in ["hold", "land", "return", "recover_control", "land"].iter().enumerate() {
        let body = format!(r#"{{"id":"c{number}","command":"{command}"}}"#);
        let since = Instant::now();
        let (code, answer) = ask(handle.address(), "POST", paths::COMMANDS, &body).await;
        times.push(since.elapsed());
        // Nothing flies here: what counts is that the driver answered.
        let reply: CommandReply = serde_json::from_str(&answer).unwrap();
        assert!([202, 409].contains(&code) && reply.id == format!("c{number}"), "{code} {answer}");
    }
    times.sort_unstable();
    println!("answered within {times:?}");
    assert!(times[2] < Duration::from_millis(200), "{times:?}");
    // A console that comes back has an event stream, although others hold sixteen.
    let mut console = TcpStream::connect(handle.address()).await.unwrap();
    console.write_all(events.as_bytes()).await.unwrap();
    let mut head = [0; 15];
    console.read_exact(&mut head).await.unwrap();
    assert_eq!(head, *b"HTTP/1.1 200 OK");
    drop(open);
    handle.stop().await;
}

#[tokio::test]
async fn a_page_that_rebinds_its_name_does_not_command() {
    let (handle, _hub) = alone().await;
    let body = r#"{"id":"c5","command":"land"}"#;
    for (headers, expected) in [
        ("Host: evil.example:8080\r\nOrigin: http://evil.example:8080", "421"),
        ("Host: 127.0.0.1:8080\r\nOrigin: http://evil.example:8080", "403"),
    ] {
        let request = format!(
            "POST {} HTTP/1.1\r\n{headers}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            paths::COMMANDS,
            body.len()
        );
        let answer = raw(handle.address(), request.as_bytes(), true).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{answer}");
        assert!(answer.contains("x-frame-options: DENY"), "{answer}");
    }
    assert!(status(&handle).await.commands.is_empty());
    handle.stop().await;
}

#[tokio::test]
async fn a_stop_ends_streams_and_frees_the_port() {
    let (handle, _hub) = alone().await;
    let address = handle.address();
    let stream = tokio::spawn(async move {
        raw(address, format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", paths::EVENTS).as_bytes(), true)
            .await
    });
    until(&handle, "time passes", |s| s.time_ms > 600).await;
    handle.stop().await;
    let followed = stream.await.unwrap();
    assert!(followed.contains("event: status") && followed.matches("data: ").count() >= 2, "{followed}");
    tokio::net::TcpListener::bind(address).await.expect("the port is free");
}

#[tokio::test]
async fn what_only_a_person_can_mend_is_an_error_and_nothing_runs() {
    let (running, _hub) = alone().await;
    let clock = Clock::real_time();
    let (_hub2, mut radios) = hub(3, clock);

    let taken = Config { http: running.address(), ..flown(1, 1, none()) };
    let error = start(taken, clock, radios.remove(0)).await.unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, StartError::Http { .. }), "{error:?}");
    assert!(
        message.contains(&running.address().to_string()) && message.contains("found the port in use"),
        "{message}"
    );

    let (_far, near) = SerialStream::pair().unwrap();
    let serial = Endpoint::Serial { path: near.name().unwrap().into(), baud: 57_600, rtscts: false };
    let error = start(flown(1, 1, serial), clock, radios.remove(0)).await.unwrap_err();
    assert!(matches!(&error, StartError::Link(e) if e.kind == OpenErrorKind::Busy), "{error:?}");

    let error = start(flown(1, 0, none()), clock, radios.remove(0)).await.unwrap_err();
    assert_eq!(error.to_string(), "muscop.aircraft: found 0, expected 1 to 128");
    running.stop().await;
}
