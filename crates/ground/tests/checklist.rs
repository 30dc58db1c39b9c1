//! The lab's checklist over HTTP: what waits for it and what never does, two consoles, a restart, the end of a flight, the file that
//! is kept with one, roles.
#![allow(clippy::disallowed_methods, reason = "services run in real time")]

use crate::support;

use std::net::SocketAddr;
use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use support::{Console, Fake, all_up, eventually, id, picture, request};
use wingbeat_api::{
    Bundle, Checklist, ChecklistResult, ChecklistResults, Command, FleetBundle, Lease, Phase, StateId, paths,
};
use wingbeat_ground::checklist::{Configured, List};
use wingbeat_ground::{Bundles, Config, Ground, Handle, Hosts, Protection};

const LIST: &str = "title = \"Field\"\n\
    [[item]]\nid = \"area\"\ntext = \"The area is clear\"\n\
    [[item]]\nid = \"note\"\ntext = \"The flight is announced\"\nrequired = false\n\
    [[item]]\nid = \"props\"\ntext = \"Propellers are tight\"\nper = \"aircraft\"\n\
    [[item]]\nid = \"go\"\ntext = \"Go\"\nbefore = \"start\"\n";

async fn ground(folder: &Path, fakes: &[Fake], bind: SocketAddr) -> Handle {
    let file = folder.join("list.toml");
    std::fs::write(&file, LIST).expect("a folder that can be written");
    let list = List::read(&file).expect("a good list");
    let handle = Ground::start(Config {
        bind,
        aircraft: fakes.iter().map(|fake| fake.address.to_string()).collect(),
        web_dir: None,
        tiles: None,
        parameters: None,
        records: None,
        hosts: Hosts::default(),
        console: None,
        protection: Protection {
            audit: Some(folder.join("audit.jsonl")),
            checklist: Some(Configured { list, folder: folder.join("checklists") }),
            ..Protection::default()
        },
    });
    let handle = handle.await.expect("it starts");
    picture(&handle, "all report", |picture| !picture.aircraft.is_empty() && all_up(picture)).await;
    handle
}

fn any() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

async fn ask(handle: &Handle, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
    let client = wingbeat_ground::plain_client().expect("a client");
    let request = client.request(method, format!("http://{}{path}", handle.address()));
    let request = body.iter().fold(request, |request, body| request.json(body));
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.expect("a body")).unwrap_or_default())
}

async fn list(handle: &Handle) -> Checklist {
    let (status, body) = ask(handle, Method::GET, paths::FLEET_CHECKLIST, None).await;
    assert_eq!(status, 200, "{body}");
    serde_json::from_value(body).expect("a checklist")
}

async fn tick(handle: &Handle, item: &str, vehicles: &[String]) -> (u16, String) {
    let hash = list(handle).await.hash;
    let write = json!({ "hash": hash, "item": item, "vehicles": vehicles, "ticked": true });
    let (status, body) = ask(handle, Method::PUT, paths::FLEET_CHECKLIST, Some(write)).await;
    (status, body["message"].as_str().unwrap_or_default().to_owned())
}

fn ticked(list: &Checklist, item: &str) -> usize {
    list.items.iter().find(|one| one.id == item).expect("an item").ticks.len()
}

fn ready(fakes: &[Fake]) {
    for fake in fakes {
        let mut inner = fake.lock();
        inner.status.state = StateId::SetupFinished;
        inner.status.phase = Phase::Ready;
    }
}

async fn refusal(handle: &Handle, command: Command) -> String {
    let refused = handle.command(request("refused", command, &[])).await.expect_err("it waits for the list");
    assert_eq!(refused.status(), 409);
    refused.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_and_start_wait_for_the_list_and_what_ends_a_flight_never_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let fakes = [Fake::start(1).await, Fake::start(2).await];
    let handle = ground(folder.path(), &fakes, any()).await;
    handle.keep_bundles(Bundles { folder: folder.path().join("bundles"), read_clock: None });
    let missing = "checklist: 2 not ticked: area, props (UAV 1, UAV 2)";
    assert_eq!(refusal(&handle, Command::Setup).await, missing);
    let shown = handle.picture().await.expect("running");
    assert_eq!((shown.actions.setup, shown.actions.setup_blocked.as_str()), (false, missing));
    // The same over HTTP, with a code of its own.
    let setup = json!({ "id": "over-http", "command": "setup" });
    let (status, body) = ask(&handle, Method::POST, paths::FLEET_COMMANDS, Some(setup)).await;
    assert_eq!((status, body["code"].as_str()), (409, Some("checklist")), "{body}");
    for (command, name) in [
        (Command::Engage, "engage"),
        (Command::Hold, "hold"),
        (Command::Return, "return"),
        (Command::Land, "land"),
        (Command::RecoverControl, "recover"),
    ] {
        handle.command(request(name, command, &[])).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        eventually(name, async || fakes[1].received().iter().any(|one| one.id == name).then_some(())).await;
    }
    picture(&handle, "no recovery is on its way", |picture| {
        picture.actions.setup_blocked.starts_with("checklist:")
    })
    .await;

    assert_eq!(tick(&handle, "area", &[]).await.0, 200);
    assert_eq!(tick(&handle, "props", &[id(1)]).await.0, 200);
    assert_eq!(refusal(&handle, Command::Setup).await, "checklist: 1 not ticked: props (UAV 2)");
    assert_eq!(tick(&handle, "props", &[id(2)]).await.0, 200);
    handle.command(request("setup", Command::Setup, &[])).await.expect("all of its items are ticked");
    ready(&fakes);
    picture(&handle, "start waits for go", |picture| {
        picture.actions.start_blocked == "checklist: 1 not ticked: go"
    })
    .await;
    assert_eq!(refusal(&handle, Command::Start).await, "checklist: 1 not ticked: go");
    assert_eq!(tick(&handle, "go", &[]).await.0, 200);
    handle.command(request("start", Command::Start, &[])).await.expect("all items are ticked");

    // The file of the flight: listed, downloaded, in the bundle.
    let results = eventually("the file is there", async || {
        let (_, body) = ask(&handle, Method::GET, paths::FLEET_CHECKLIST_RESULTS, None).await;
        let results: ChecklistResults = serde_json::from_value(body).ok()?;
        (!results.results.is_empty()).then_some(results)
    })
    .await;
    assert_eq!(results.folder, folder.path().join("checklists").display().to_string());
    let name = &results.results[0].name;
    let (status, body) =
        ask(&handle, Method::GET, &format!("{}?file={name}", paths::FLEET_CHECKLIST_RESULT), None).await;
    assert_eq!(status, 200);
    let kept: ChecklistResult = serde_json::from_value(body).expect("a result");
    assert_eq!((kept.command.as_str(), kept.title.as_str(), kept.items.len()), ("start", "Field", 4));
    assert_eq!((kept.setup.len(), kept.start.len()), (2, 2));
    let check = &kept.start[0].checks[0];
    assert_eq!((check.name.as_str(), check.detail.as_str(), check.passed), ("position", "3D fix", true));
    assert!(kept.start[0].time.ends_with('Z') && kept.start[0].firmware.is_some());
    assert!(kept.items.iter().filter(|item| item.required).all(|item| {
        item.ticks.iter().all(|tick| tick.by == "127.0.0.1" && tick.time.ends_with('Z'))
            && !item.ticks.is_empty()
    }));
    let (status, _) =
        ask(&handle, Method::GET, &format!("{}?file=../audit.jsonl", paths::FLEET_CHECKLIST_RESULT), None)
            .await;
    assert_eq!(status, 400);
    let begin = json!({ "experiment": "field", "autopilot_logs": 0 });
    assert_eq!(ask(&handle, Method::POST, paths::FLEET_BUNDLE, Some(begin)).await.0, 202);
    let bundle: Bundle = eventually("the bundle is collected", async || {
        let (_, body) = ask(&handle, Method::GET, paths::FLEET_BUNDLE, None).await;
        let now: FleetBundle = serde_json::from_value(body).ok()?;
        let bundle = now.bundle?;
        let path = Path::new(&now.folder?).join("checklists").join(&bundle.checklists.first()?.name);
        path.is_file().then_some(bundle)
    })
    .await;
    assert_eq!((&bundle.checklists[0].name, bundle.checklists[0].bytes), (name, results.results[0].bytes));
    let log = std::fs::read_to_string(folder.path().join("audit.jsonl")).expect("a log");
    assert_eq!(log.lines().filter(|line| line.contains("\"action\":\"tick\"")).count(), 4, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_consoles_see_the_same_and_a_restart_keeps_it_until_the_flight_is_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let fakes = [Fake::start(1).await, Fake::start(2).await];
    let handle = ground(folder.path(), &fakes, any()).await;
    let (mut one, mut other) = (Console::open(&handle).await, Console::open(&handle).await);
    for console in [&mut one, &mut other] {
        let picture = console.find("picture", |_| true).await;
        assert_eq!(picture["checklist"]["items"][2]["ticks"], json!([]));
    }
    assert_eq!(tick(&handle, "props", &[id(1), id(2)]).await.0, 200);
    for console in [&mut one, &mut other] {
        let update = console.find("update", |update| !update["checklist"].is_null()).await;
        let ticks = &update["checklist"]["items"]["2"]["ticks"];
        assert_eq!(
            (ticks[0]["vehicle"].as_str(), ticks[1]["vehicle"].as_str()),
            (Some(&*id(1)), Some(&*id(2)))
        );
    }
    tick(&handle, "area", &[]).await;
    let before = list(&handle).await;
    // Ticked again it is who ticked it first.
    tick(&handle, "area", &[]).await;
    assert_eq!(list(&handle).await, before);

    let port = handle.address();
    handle.stop().await;
    let handle = ground(folder.path(), &fakes, port).await;
    assert_eq!(list(&handle).await, before, "a restart keeps who and when");

    // The first flies and lands: its own ticks go. Then the second: those of the fleet too.
    for (number, fake) in fakes.iter().enumerate() {
        {
            let mut inner = fake.lock();
            inner.status.flight_controller.armed = true;
            inner.status.phase = Phase::Moving;
        }
        let armed = |picture: &wingbeat_api::FleetPicture| {
            picture.aircraft[number].status.as_ref().is_some_and(|status| status.flight_controller.armed)
        };
        picture(&handle, "it flies", armed).await;
    }
    assert_eq!(list(&handle).await, before, "nothing goes in flight");
    let down = |fake: &Fake| {
        let mut inner = fake.lock();
        inner.status.flight_controller.armed = false;
        inner.status.phase = Phase::Finished;
    };
    down(&fakes[0]);
    let now = eventually("the first is down", async || {
        Some(list(&handle).await).filter(|list| ticked(list, "props") == 1)
    })
    .await;
    assert_eq!(ticked(&now, "area"), 1, "the other flies by it");
    down(&fakes[1]);
    let over = |list: &Checklist| list.items.iter().all(|item| item.ticks.is_empty());
    eventually("both are down", async || Some(list(&handle).await).filter(over)).await;
    let shown = handle.picture().await.expect("running");
    assert!(shown.log.iter().any(|line| line.line.text.contains("its flight is over")), "{:?}", shown.log);
    let mut third = Console::open(&handle).await;
    assert_eq!(third.find("picture", |_| true).await["checklist"]["items"][0]["ticks"], json!([]));

    tick(&handle, "area", &[]).await;
    assert_eq!(ask(&handle, Method::DELETE, paths::FLEET_CHECKLIST, None).await.0, 200);
    assert!(over(&list(&handle).await), "begun anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_ticked_is_refused_and_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let fakes = [Fake::start(1).await, Fake::start(2).await];
    let handle = ground(folder.path(), &fakes, any()).await;
    let lease = |console: &str| Some(Lease { console: console.to_owned(), console_id: None, left_ms: 5_000 });
    fakes[1].lock().status.lease = lease("tower:8700");
    picture(&handle, "another console has one", |p| {
        p.aircraft[1].status.as_ref().is_some_and(|status| status.lease.is_some())
    })
    .await;
    for (item, vehicles, status, message) in [
        ("aera", vec![], 404, "item: found \"aera\", expected one of the checklist (did you mean area?)"),
        ("area", vec![id(1)], 400, "vehicles: found 1, expected none: area is ticked once for the fleet"),
        ("props", vec![], 400, "vehicles: found none, expected the aircraft that props is ticked for"),
        ("props", vec![id(9)], 404, "vehicles: no aircraft with the id \"0000000000000009\" is known"),
        ("props", vec![id(1), id(1)], 400, "vehicles: found \"0000000000000001\" twice, expected each once"),
        ("props", vec![id(1), id(2)], 409, "found the console \"tower:8700\" in charge, expected this one"),
    ] {
        let found = tick(&handle, item, &vehicles).await;
        assert_eq!(found.0, status, "{found:?}");
        assert!(found.1.starts_with(message), "{found:?}");
    }
    assert!(list(&handle).await.items.iter().all(|item| item.ticks.is_empty()), "nothing of them was taken");
    assert_eq!(tick(&handle, "area", &[]).await.0, 200, "one is still this console's");
    fakes[0].lock().status.lease = lease("tower:8700");
    picture(&handle, "another console has both", |p| {
        p.aircraft.iter().all(|one| one.status.as_ref().is_some_and(|status| status.lease.is_some()))
    })
    .await;
    assert_eq!(tick(&handle, "note", &[]).await.0, 409);
    let old = json!({ "hash": "0".repeat(64), "item": "area", "ticked": false });
    let (status, body) = ask(&handle, Method::PUT, paths::FLEET_CHECKLIST, Some(old)).await;
    assert_eq!(status, 409);
    assert!(body["message"].as_str().is_some_and(|m| m.contains("the checklist is another now")), "{body}");
    let unknown = json!({ "hash": "0", "item": "area", "ticked": true, "force": true });
    assert_eq!(ask(&handle, Method::PUT, paths::FLEET_CHECKLIST, Some(unknown)).await.0, 400);

    let plain = support::ground(&fakes).await;
    let (status, body) = ask(&plain, Method::GET, paths::FLEET_CHECKLIST, None).await;
    assert_eq!(status, 404, "{body}");
}
