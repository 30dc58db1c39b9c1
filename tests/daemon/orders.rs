//! Signed orders, over HTTP and by radio, against whole daemons with keys.

use crate::common::client;
use crate::common::config;
use crate::common::operator;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use client::ask;
use config::{config, none};
use operator::Operator;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use wingbeat_api::{
    ApiError, CommandOutcome, CommandReply, FleetCommandRequest, LeaseGrant, VehicleOutcome, paths,
};
use wingbeat_ground::{ConsoleConfig, Ground};
use wingbeat_hub::{Hub, HubRadio};
use wingbeat_onboard::keys::ConsoleKeys;
use wingbeat_onboard::{Clock, Config, Handle, start};
use wingbeat_protocol::muscop;
use wingbeat_radio::Radio as _;
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::keys::{CONSOLE, Keys, Signatures};
use wingbeat_wire::{Class, Command, Role, Signer, VehicleId};

const ONE: VehicleId = VehicleId(0xa1);
const TWO: VehicleId = VehicleId(0xa2);

fn fleet_keys() -> Keys {
    Keys::new(Signatures::Ed25519, 1, [ONE, TWO]).unwrap()
}

fn keys_of(signer: &Signer) -> wingbeat_onboard::keys::Keys {
    wingbeat_onboard::keys::Keys { signer: signer.clone(), roster: Box::new(fleet_keys().roster().clone()) }
}

/// Two daemons without autopilots, whose endpoints are ports without a listener, and a third radio.
async fn two(clock: Clock) -> (Vec<Handle>, Hub, HubRadio) {
    two_with(clock, |i| keys_of(fleet_keys().signer(i))).await
}

/// The same with these keys.
async fn two_with(
    clock: Clock,
    keys: impl Fn(usize) -> wingbeat_onboard::keys::Keys,
) -> (Vec<Handle>, Hub, HubRadio) {
    let channel = Channel::new(Model::Unrestricted, Draw::PerPacket, 1, 3);
    let (hub, mut radios) = Hub::spawn(channel, 3, clock);
    let third = radios.remove(2);
    let mut daemons = vec![];
    for (i, (id, radio)) in [ONE, TWO].into_iter().zip(radios).enumerate() {
        let agent = wingbeat_agent::Config::new(muscop::Config::new(id, ONE, 2));
        let config = Config { keys: keys(i), ..config(agent, none()) };
        daemons.push(start(config, clock, radio).await.unwrap());
    }
    (daemons, hub, third)
}

fn error(body: &str) -> ApiError {
    serde_json::from_str(body).unwrap_or_else(|_| panic!("{body}"))
}

fn engaged(daemon: &Handle) -> bool {
    daemon.status().borrow().engaged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_with_keys_takes_orders_of_its_consoles_alone() {
    let clock = Clock::real_time();
    let (daemons, _hub, _radio) = two(clock).await;
    let daemon = &daemons[0];
    let body = r#"{"id":"c","command":"recover_control"}"#;
    let (code, answer) = ask(daemon.address(), "POST", paths::COMMANDS, body).await;
    assert_eq!((code, error(&answer).code.as_str()), (400, "not_tls"), "{answer}");
    let mut operator = Operator::new(fleet_keys(), clock);
    let (code, answer) = operator.ask(daemon, "POST", paths::COMMANDS, body).await;
    assert_eq!((code, error(&answer).code.as_str()), (403, "forbidden"), "{answer}");

    // The console's order, and one bit of it changed.
    let mut forged = operator.sealed("r", Command::RecoverControl);
    let recorded = forged.clone();
    *forged.last_mut().unwrap() ^= 1;
    let octets = "application/octet-stream";
    let (code, answer) = operator.send(daemon, "POST", paths::ORDERS, "", octets, &forged).await;
    assert!(code == 403 && error(&answer).message.contains("wrong fleet tag"), "{code} {answer}");
    assert!(engaged(daemon));
    let (code, _) = operator.send(daemon, "POST", paths::ORDERS, "", "application/json", &recorded).await;
    assert_eq!(code, 415);
    let (code, _) = operator.send(daemon, "POST", paths::ORDERS, "", octets, &[0; 1_473]).await;
    assert_eq!(code, 413);
    let (code, answer) = operator.send(daemon, "POST", paths::ORDERS, "", octets, &recorded).await;
    let reply: CommandReply = serde_json::from_str(&answer).unwrap();
    assert_eq!((code, reply.id.as_str(), reply.outcome), (202, "r", CommandOutcome::Accepted));
    assert!(!engaged(daemon));
    // A recording of it, and the same command again.
    let (code, answer) = operator.send(daemon, "POST", paths::ORDERS, "", octets, &recorded).await;
    assert_eq!((code, error(&answer).code.as_str()), (409, "replayed"), "{answer}");
    let (code, _) = operator.order(daemon, "", "r", Command::RecoverControl).await;
    assert_eq!(code, 200, "already known");
    for daemon in daemons {
        daemon.stop().await;
    }
}

/// A daemon was started again seconds later: a recording is younger than any bound of its age.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_that_a_daemon_took_is_refused_by_the_one_after_it() {
    let (clock, folder) = (Clock::real_time(), tempfile::tempdir().unwrap());
    let mut operator = Operator::new(fleet_keys(), clock);
    operator.begin_session();
    let recorded = operator.sealed("r", Command::RecoverControl);
    for expected in [None, Some("replayed")] {
        let channel = Channel::new(Model::Unrestricted, Draw::PerPacket, 1, 2);
        let (_hub, mut radios) = Hub::spawn(channel, 2, clock);
        let (recorder, radio) = (radios.remove(1), radios.remove(0));
        let agent = wingbeat_agent::Config::new(muscop::Config::new(ONE, ONE, 2));
        let keys = keys_of(fleet_keys().signer(0));
        let state = Some(folder.path().to_owned());
        let daemon = start(Config { keys, state, ..config(agent, none()) }, clock, radio).await.unwrap();
        recorder.send(Class::Emergency, &recorded).unwrap();
        let judged = async {
            loop {
                let status = daemon.status().borrow().clone();
                match expected {
                    None if !status.engaged => return,
                    Some(reason) if status.radio.refused.iter().any(|r| r.reason == reason) => return,
                    None | Some(_) => sleep(Duration::from_millis(10)).await,
                }
            }
        };
        timeout(Duration::from_secs(30), judged).await.unwrap_or_else(|_| panic!("never: {expected:?}"));
        let written = async {
            while !folder.path().join("console-sessions").exists() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), written).await.expect("kept");
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_begins_something_needs_the_lease_and_what_ends_it_does_not() {
    let clock = Clock::real_time();
    let (daemons, _hub, _radio) = two(clock).await;
    let (daemon, mut operator) = (&daemons[0], Operator::new(fleet_keys(), clock));
    let (code, answer) = operator.order(daemon, "", "s", Command::Setup).await;
    assert_eq!((code, error(&answer).code.as_str()), (409, "lease"), "{answer}");
    let mission = br#"{"name": "hover", "waypoints": [
        {"latitude_deg": 39.4824, "longitude_deg": -0.3464, "height_m": 20},
        {"latitude_deg": 39.4834, "longitude_deg": -0.3464, "height_m": 20}]}"#;
    let (code, answer) = operator.send(daemon, "PUT", paths::MISSION, "", "application/json", mission).await;
    assert!(code == 409 && answer.contains("a mission: found no lease"), "{code} {answer}");
    let lease = r#"{"console":"one","ttl_ms":60000}"#;
    let (_, answer) = operator.ask(daemon, "POST", paths::LEASE, lease).await;
    let token = serde_json::from_str::<LeaseGrant>(&answer).unwrap().token.unwrap();
    let (code, answer) = operator.order(daemon, "another", "s", Command::Setup).await;
    assert!(code == 409 && answer.contains("the lease of console"), "{code} {answer}");
    // With the lease the aircraft judges it: without an autopilot it refuses.
    let (code, answer) = operator.order(daemon, &token, "s", Command::Setup).await;
    let reply: CommandReply = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer}"));
    assert_eq!((code, reply.outcome), (409, CommandOutcome::Refused), "{reply:?}");
    let (code, answer) =
        operator.send(daemon, "PUT", paths::MISSION, &token, "application/json", mission).await;
    assert_eq!(code, 200, "{answer}");
    for (id, command) in [("h", Command::Hold), ("e", Command::Return), ("l", Command::Land)] {
        let (code, answer) = operator.order(daemon, "", id, command).await;
        assert_eq!(code, 202, "{command}: {answer}");
    }
    for daemon in daemons {
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_keys_too_one_console_at_a_time_is_in_charge() {
    let clock = Clock::real_time();
    let (daemons, _hub, _radio) = two_with(clock, |_| wingbeat_onboard::keys::Keys::insecure()).await;
    let address = daemons[0].address();
    let press = async |id: &str, command: &str| {
        let body = format!(r#"{{"id":"{id}","command":"{command}"}}"#);
        ask(address, "POST", paths::COMMANDS, &body).await
    };
    let is_judged =
        |(code, answer): &(u16, String)| *code == 409 && serde_json::from_str::<CommandReply>(answer).is_ok();
    assert!(is_judged(&press("a", "setup").await), "a free aircraft asks for no lease");
    let lease = r#"{"console":"one","ttl_ms":60000}"#;
    let (code, answer) = ask(address, "POST", paths::LEASE, lease).await;
    assert_eq!(code, 200, "{answer}");
    for (id, command) in [("b", "setup"), ("c", "start"), ("d", "engage")] {
        let (code, answer) = press(id, command).await;
        assert_eq!((code, error(&answer).code.as_str()), (409, "lease"), "{command}: {answer}");
        assert!(error(&answer).message.contains("the lease of console \"one\""), "{answer}");
    }
    for (id, command) in [("h", "hold"), ("r", "return"), ("l", "land"), ("x", "recover_control")] {
        let (code, answer) = press(id, command).await;
        assert_eq!(code, 202, "{command}: {answer}");
    }
    for daemon in daemons {
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_console_begins_nothing_until_its_operator_takes_over() {
    let clock = Clock::real_time();
    let (daemons, _hub, _radio) = two_with(clock, |_| wingbeat_onboard::keys::Keys::insecure()).await;
    let start = async || {
        let config = wingbeat_ground::Config {
            bind: ([127, 0, 0, 1], 0).into(),
            aircraft: daemons.iter().map(|daemon| daemon.address().to_string()).collect(),
            web_dir: None,
            tiles: None,
            parameters: None,
            records: None,
            hosts: wingbeat_ground::Hosts::default(),
            console: None,
            protection: Default::default(),
        };
        Ground::start(config).await.unwrap()
    };
    /// Waits until both aircraft show the lease of the console of this name, and returns the picture of that.
    async fn leased(ground: &wingbeat_ground::Handle, name: &str) -> wingbeat_api::FleetPicture {
        let wait = async {
            loop {
                let picture = ground.picture().await.unwrap();
                let leases = picture.aircraft.iter().filter_map(|a| a.status.as_ref()?.lease.as_ref());
                if leases.filter(|lease| lease.console == name).count() == 2 {
                    return picture;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(30), wait).await.unwrap_or_else(|_| panic!("never: leased by {name}"))
    }
    let request = |id: &str, command| FleetCommandRequest { id: id.into(), command, vehicles: Vec::new() };
    let first = start().await;
    let one = first.picture().await.unwrap().console;
    leased(&first, &one).await;
    let second = start().await;
    let two = second.picture().await.unwrap().console;
    assert_ne!(one, two);
    let observed = leased(&second, &one).await;
    let in_charge = format!("console {one:?} is in charge of it; take over first");
    let refused = second.command(request("s", Command::Setup)).await.unwrap_err().to_string();
    // Where an aircraft waits for something else, that is named first.
    for reason in [&refused, &observed.actions.setup_blocked] {
        assert!(reason.contains(&in_charge) || reason.contains("check "), "{reason}");
    }
    second.command(request("h", Command::Hold)).await.expect("what ends a flight needs no lease");
    let (code, answer) = ask(second.address(), "POST", paths::FLEET_LEASES, r#"{"vehicles":[]}"#).await;
    assert_eq!(code, 200, "{answer}");
    let taken: wingbeat_api::FleetLeases = serde_json::from_str(&answer).unwrap();
    assert!(taken.vehicles.len() == 2 && taken.vehicles.iter().all(|one| one.problem.is_none()), "{answer}");
    leased(&first, &two).await;
    // The first asks for its lease each second, and does not get it.
    sleep(Duration::from_millis(2_500)).await;
    leased(&first, &two).await;
    drop(second);
    leased(&first, &one).await;
    drop(first);
    for daemon in daemons {
        daemon.stop().await;
    }
}

/// Passes connections on while `is_open`, and cuts them.
async fn door(to: SocketAddr, is_open: watch::Receiver<bool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            let mut is_open = is_open.clone();
            tokio::spawn(async move {
                let Ok(mut far) = TcpStream::connect(to).await else { return };
                tokio::select! {
                    biased;
                    _ = is_open.wait_for(|is_open| !is_open) => {}
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                }
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ground_service_commands_by_radio_an_aircraft_that_http_does_not_reach() {
    let clock = Clock::real_time();
    let (daemons, _hub, radio) = two(clock).await;
    let (cut, is_open) = watch::channel(true);
    let behind = door(daemons[1].address(), is_open).await;
    let keys = ConsoleKeys { id: CONSOLE, role: Role::Operator, keys: keys_of(fleet_keys().console()) };
    let config = wingbeat_ground::Config {
        bind: ([127, 0, 0, 1], 0).into(),
        aircraft: vec![daemons[0].address().to_string(), behind.to_string()],
        web_dir: None,
        tiles: None,
        parameters: None,
        records: None,
        hosts: wingbeat_ground::Hosts::default(),
        console: Some(ConsoleConfig { keys, clock, state: None, rtcm: None }),
        protection: Default::default(),
    };
    let ground = Arc::new(Ground::start_with(config, Some(radio)).await.unwrap());
    let picture = async |what: &str, holds: &dyn Fn(&wingbeat_api::FleetPicture) -> bool| {
        let wait = async {
            loop {
                let picture = ground.picture().await.unwrap();
                if holds(&picture) {
                    return picture;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(30), wait).await.unwrap_or_else(|_| panic!("never: {what}"))
    };
    picture("both", &|p| p.aircraft.iter().filter(|a| a.status.is_some()).count() == 2).await;
    cut.send_replace(false);
    let is_cut = async {
        while cut.receiver_count() > 1 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(30), is_cut).await.expect("a connection was not cut");
    let request =
        FleetCommandRequest { id: "r".into(), command: Command::RecoverControl, vehicles: Vec::new() };
    ground.command(request).await.unwrap();
    let seen = |outcome: VehicleOutcome| outcome == VehicleOutcome::EffectSeen;
    let done = picture("carried out", &|p| {
        p.commands.iter().any(|c| c.results.len() == 2 && c.results.iter().all(|r| seen(r.outcome)))
    })
    .await;
    let results = &done.commands[0].results;
    let behind = results.iter().find(|r| r.vehicle == TWO.to_string()).unwrap();
    assert_eq!(behind.detail, "effect seen, received by radio");
    assert!(daemons.iter().all(|daemon| !engaged(daemon)));
    drop(ground);
    for daemon in daemons {
        daemon.stop().await;
    }
}

/// A ground service with the console's key, whose folder is `state`.
async fn service(
    clock: Clock,
    aircraft: Vec<String>,
    state: &std::path::Path,
    radio: Option<HubRadio>,
) -> Result<wingbeat_ground::Handle, wingbeat_ground::StartError> {
    let keys = ConsoleKeys { id: CONSOLE, role: Role::Operator, keys: keys_of(fleet_keys().console()) };
    let config = wingbeat_ground::Config {
        bind: ([127, 0, 0, 1], 0).into(),
        aircraft,
        web_dir: None,
        tiles: None,
        parameters: None,
        records: None,
        hosts: wingbeat_ground::Hosts::default(),
        console: Some(ConsoleConfig { keys, clock, state: Some(state.to_owned()), rtcm: None }),
        protection: Default::default(),
    };
    Ground::start_with(config, radio).await
}

/// Waits until the picture of a service is as expected.
async fn wait_for(
    ground: &wingbeat_ground::Handle,
    what: &str,
    holds: impl Fn(&wingbeat_api::FleetPicture) -> bool,
) {
    let wait = async {
        while !holds(&ground.picture().await.unwrap()) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(30), wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_service_with_one_key_folder_does_not_start() {
    let (clock, folder) = (Clock::real_time(), tempfile::tempdir().unwrap());
    let first = service(clock, vec!["127.0.0.1:1".into()], folder.path(), None).await.unwrap();
    let second = service(clock, vec!["127.0.0.1:1".into()], folder.path(), None).await;
    let why = second.map(|_| ()).unwrap_err().to_string();
    assert!(why.contains("found another wingbeat ground that uses this folder"), "{why}");
    first.stop().await;
    service(clock, vec!["127.0.0.1:1".into()], folder.path(), None).await.unwrap().stop().await;
}

/// The folder was copied when the console was enrolled; the copy's counters are five hours ahead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_a_key_folder_takes_no_emergency_order_away_and_is_named() {
    let clock = Clock::real_time();
    let (daemons, _hub, radio) = two(clock).await;
    let (cut, is_open) = watch::channel(true);
    let behind = door(daemons[1].address(), is_open).await;
    let [own, copy] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let unix_us = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
    std::fs::write(copy.path().join("datagram-counter"), format!("{}", unix_us + 5 * 3_600_000_000)).unwrap();
    let all = |second: String| vec![daemons[0].address().to_string(), second];
    let first = service(clock, all(behind.to_string()), own.path(), Some(radio)).await.unwrap();
    let spare = service(clock, all(daemons[1].address().to_string()), copy.path(), None).await.unwrap();
    for ground in [&first, &spare] {
        wait_for(ground, "both", |p| p.aircraft.iter().filter(|a| a.status.is_some()).count() == 2).await;
    }
    let order = async |ground: &wingbeat_ground::Handle, id: &str| {
        let request =
            FleetCommandRequest { id: id.into(), command: Command::RecoverControl, vehicles: Vec::new() };
        ground.command(request).await.unwrap();
        let is_seen = |c: &wingbeat_api::FleetCommand| {
            c.id == id
                && c.results.len() == 2
                && c.results.iter().all(|r| r.outcome == VehicleOutcome::EffectSeen)
        };
        wait_for(ground, id, |p| p.commands.iter().any(is_seen)).await;
    };
    order(&first, "first").await;
    order(&spare, "spare").await;
    // A program that was started again is silent after 2 s; this one is not.
    sleep(Duration::from_millis(2_500)).await;
    order(&first, "again").await;
    let is_named = |check: &wingbeat_api::Check| {
        check.name == "console keys" && !check.passed && check.detail.contains(&CONSOLE.to_string())
    };
    for ground in [&first, &spare] {
        wait_for(ground, "named on both pages", |p| {
            p.aircraft.iter().filter_map(|a| a.status.as_ref()).all(|s| s.checks.iter().any(is_named))
        })
        .await;
    }
    // The same by radio: HTTP to the second aircraft is cut for the first service.
    order(&spare, "spare-again").await;
    cut.send_replace(false);
    order(&first, "by-radio").await;
    // The spare laptop goes on after the first was started again.
    first.stop().await;
    let restarted = service(clock, all(daemons[1].address().to_string()), own.path(), None).await.unwrap();
    wait_for(&restarted, "both", |p| p.aircraft.iter().filter(|a| a.status.is_some()).count() == 2).await;
    order(&restarted, "restarted").await;
    order(&spare, "spare-after-that").await;
    restarted.stop().await;
    spare.stop().await;
    for daemon in daemons {
        daemon.stop().await;
    }
}

/// A computer's clock runs slowly while it is corrected by many seconds: its orders look delayed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_of_a_console_whose_clock_ran_slowly_is_obeyed() {
    let (daemons, _hub, _radio) = two(Clock::real_time()).await;
    let folder = tempfile::tempdir().unwrap();
    let aircraft = daemons.iter().map(|daemon| daemon.address().to_string()).collect();
    let slow = Clock::start(0.2).unwrap();
    let ground = service(slow, aircraft, folder.path(), None).await.unwrap();
    wait_for(&ground, "both", |p| p.aircraft.iter().filter(|a| a.status.is_some()).count() == 2).await;
    for id in ["first", "delayed"] {
        let request =
            FleetCommandRequest { id: id.into(), command: Command::RecoverControl, vehicles: Vec::new() };
        ground.command(request).await.unwrap();
        let is_seen = |c: &wingbeat_api::FleetCommand| {
            c.id == id
                && c.results.len() == 2
                && c.results.iter().all(|r| r.outcome == VehicleOutcome::EffectSeen)
        };
        wait_for(&ground, id, |p| p.commands.iter().any(is_seen)).await;
        // Between the orders the two clocks move 4 s apart.
        sleep(Duration::from_secs(5)).await;
    }
    ground.stop().await;
    for daemon in daemons {
        daemon.stop().await;
    }
}

/// What the ground service shows of the aircraft at that address, once it has tried.
async fn shown(console: Option<ConsoleConfig>, aircraft: SocketAddr) -> String {
    let config = wingbeat_ground::Config {
        bind: ([127, 0, 0, 1], 0).into(),
        aircraft: vec![aircraft.to_string()],
        web_dir: None,
        tiles: None,
        parameters: None,
        records: None,
        hosts: wingbeat_ground::Hosts::default(),
        console,
        protection: Default::default(),
    };
    let ground = Ground::start(config).await.unwrap();
    let tried = async {
        loop {
            let picture = ground.picture().await.unwrap();
            let text = serde_json::to_string(&picture.aircraft[0]).unwrap();
            if text.contains("expected") {
                return text;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(30), tried).await.expect("a reason")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_one_end_alone_has_keys_both_say_so() {
    let clock = Clock::real_time();
    let (daemons, _hub, _radio) = two(clock).await;
    let text = shown(None, daemons[0].address()).await;
    assert!(text.contains("found HTTP without TLS, expected TLS 1.3 with a key of this fleet"), "{text}");
    let operator = Operator::new(fleet_keys(), clock);
    let (_, status) = operator.ask(&daemons[0], "GET", paths::STATUS, "").await;
    let http = serde_json::from_str::<wingbeat_api::AircraftStatus>(&status).unwrap().http;
    assert!(http.secured, "{http:?}");
    let counted = async {
        while !daemons[0].status().borrow().http.refused.iter().any(|r| r.reason == "not_tls") {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(30), counted).await.expect("the aircraft counts it");
    for daemon in daemons {
        daemon.stop().await;
    }

    let (daemons, _hub, _radio) = two_with(clock, |_| wingbeat_onboard::keys::Keys::insecure()).await;
    let daemon = &daemons[0];
    let keys = ConsoleKeys { id: CONSOLE, role: Role::Operator, keys: keys_of(fleet_keys().console()) };
    let text = shown(Some(ConsoleConfig { keys, clock, state: None, rtcm: None }), daemon.address()).await;
    assert!(text.contains("this aircraft has no keys"), "{text}");
    let counted = async {
        while !daemon.status().borrow().http.refused.iter().any(|r| r.reason == "tls") {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(30), counted).await.expect("the aircraft counts it");
    for daemon in daemons {
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_console_of_another_fleet_learns_that_its_key_is_not_known() {
    let clock = Clock::real_time();
    let (daemons, _hub, _radio) = two(clock).await;
    let other = Keys::new(Signatures::Ed25519, 99, [ONE, TWO]).unwrap();
    let with = |roster: &Keys| wingbeat_onboard::keys::Keys {
        signer: other.console().clone(),
        roster: Box::new(roster.roster().clone()),
    };
    let text = async |keys| {
        let keys = ConsoleKeys { id: CONSOLE, role: Role::Operator, keys };
        shown(Some(ConsoleConfig { keys, clock, state: None, rtcm: None }), daemons[0].address()).await
    };
    let found = text(with(&other)).await;
    assert!(found.contains("found a key that is no aircraft's in this console's roster"), "{found}");
    let found = text(with(&fleet_keys())).await;
    assert!(found.contains("this console's key was refused"), "{found}");
    for daemon in daemons {
        daemon.stop().await;
    }
}
