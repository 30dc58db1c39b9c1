//! The picture of the fleet, against fake aircraft over real sockets.

use crate::support;

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use support::{Console, Fake, all_up, eventually, ground, id, picture};
use wingbeat_api::{Command, LinkState, MissionItem, MissionSummary, MissionUpload, VehicleOutcome};
use wingbeat_ground::{Config, Ground};

#[tokio::test(flavor = "multi_thread")]
async fn every_aircraft_is_shown_with_its_status() {
    let fakes = [Fake::start(2).await, Fake::start(1).await];
    let handle = ground(&fakes).await;
    let picture = picture(&handle, "both report", all_up).await;
    let ids: Vec<_> = picture.aircraft.iter().map(|a| a.status.as_ref().map(|s| s.id.clone())).collect();
    assert_eq!(ids, [Some(id(1)), Some(id(2))], "by id, not by address");
    assert_eq!(picture.aircraft[0].address, format!("http://{}", fakes[1].address));
    assert_eq!(picture.aircraft[0].problem, None);
    assert!(picture.actions.setup && !picture.actions.start, "{:?}", picture.actions);
    handle.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_aircraft_is_lost_and_its_last_status_stays() {
    let fake = Fake::start(1).await;
    let handle = ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    fake.lock().mute = true;
    let lost = picture(&handle, "it is lost", |p| p.aircraft[0].link == LinkState::Lost).await;
    assert!(
        lost.aircraft[0].age_ms >= Some(1500) && lost.aircraft[0].status.is_some(),
        "{:?}",
        lost.aircraft[0]
    );
    assert_eq!(lost.actions.setup_blocked, "UAV 1: its link is lost");
    fake.lock().mute = false;
    picture(&handle, "it reports again", all_up).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aircraft_that_dies_and_returns_is_followed_again() {
    let fake = Fake::start(1).await;
    let handle = ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    fake.die().await;
    let lost = picture(&handle, "it is lost, with the reason", |p| {
        p.aircraft[0].link == LinkState::Lost && p.aircraft[0].problem.is_some()
    });
    assert_eq!(lost.await.aircraft[0].problem.as_deref(), Some("connection refused"));
    fake.revive().await;
    let up = picture(&handle, "it reports again", all_up).await;
    assert_eq!(up.aircraft[0].problem, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_where_nobody_answers_is_shown_with_the_reason() {
    let fake = Fake::start(1).await;
    fake.die().await;
    let handle = ground(std::slice::from_ref(&fake)).await;
    let picture = picture(&handle, "the reason is known", |p| p.aircraft[0].problem.is_some()).await;
    assert_eq!((picture.aircraft[0].link, &picture.aircraft[0].status), (LinkState::NeverSeen, &None));
    let blocked = format!("http://{}: connection refused", fake.address);
    assert_eq!(picture.actions.setup_blocked, blocked);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_id_at_two_addresses_is_flagged_and_commanded_at_neither() {
    let fakes = [Fake::start(1).await, Fake::start(1).await, Fake::start(2).await];
    let handle = ground(&fakes).await;
    picture(&handle, "all report and two are flagged", |p| {
        all_up(p) && p.aircraft.iter().filter(|a| a.problem.is_some()).count() == 2
    })
    .await;
    let reply =
        handle.command(support::request("l", Command::Land, &[])).await.expect("one can be commanded");
    assert_eq!(reply.vehicles, [id(1), id(2)]);
    let picture = picture(&handle, "the good one is landing", |p| {
        support::result(p, "l", &id(2)).0 == VehicleOutcome::EffectSeen
    })
    .await;
    let (outcome, detail) = support::result(&picture, "l", &id(1));
    assert_eq!(outcome, VehicleOutcome::Failed);
    assert!(detail.ends_with("none of them is commanded"), "{detail}");
    assert!(fakes[0].received().is_empty() && fakes[1].received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_is_sent_the_picture_and_then_what_changes() {
    let fakes = [Fake::start(1).await, Fake::start(2).await];
    let handle = ground(&fakes).await;
    picture(&handle, "both report", all_up).await;
    fakes[1].lock().status_every = Duration::from_secs(3600);
    let mut console = Console::open(&handle).await;
    let (name, first) = console.next().await.expect("a first event");
    assert_eq!((name.as_str(), first["aircraft"].as_array().map(Vec::len)), ("picture", Some(2)));
    let update =
        console.find("update", |data| data["aircraft"].as_array().is_some_and(|a| a.len() == 1)).await;
    let address = &first["aircraft"][0]["address"];
    assert_eq!(update["aircraft"][0]["address"], *address, "only the one that changed");
    let status = &update["aircraft"][0]["change"]["status"];
    assert!(status.get("id").is_none() && status.get("checks").is_none(), "only what changed: {update}");
    fakes[0].lock().logs.push("armed".to_owned());
    let line = console.find("log", |line| line["text"] == "armed").await;
    assert_eq!(line["id"], json!(id(1)));
    handle.stop().await;
    while console.next().await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mission_is_drawn_once_with_all_its_holders() {
    let fakes = [Fake::start(1).await, Fake::start(2).await];
    let waypoint = MissionItem::at(39.5, -0.35, 20.0);
    for (number, fake) in fakes.iter().enumerate() {
        let mut inner = fake.lock();
        let (name, hash) = ("square".to_owned(), "00000000000000aa".to_owned());
        inner.status.mission =
            Some(MissionSummary { name, hash, plan_hash: None, waypoints: 2, reached: None, notes: vec![] });
        // The first has it by radio and passes it to no other.
        if number == 1 {
            inner.mission = Some(MissionUpload::new("square", vec![waypoint, waypoint]));
        }
    }
    let handle = ground(&fakes).await;
    let mut console = Console::open(&handle).await;
    let drawn = console
        .find("picture", |p| p["missions"][0]["holders"].as_array().is_some_and(|h| h.len() == 2))
        .await;
    assert_eq!(drawn["missions"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        drawn["missions"][0]["waypoints"][0]["altitude_m"],
        json!(70.0),
        "50 m of ground and 20 m of height"
    );
    fakes[1].lock().status.mission = None;
    console.find("picture", |p| p["missions"][0]["holders"] == json!([id(1)])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_that_does_not_read_delays_nobody_and_gets_a_fresh_picture() {
    let fake = Fake::start(1).await;
    let handle = ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    let mut slow = Console::open(&handle).await;
    let mut quick = Console::open(&handle).await;
    // More than all buffers between the owner and a console that does not read can hold.
    let long = "x".repeat(20_000);
    fake.lock().logs = (0..1500).map(|number| format!("{number} {long}")).collect();
    // On a loaded machine the quick console may fall behind for a moment too, and misses what was sent meanwhile.
    let repeats = tokio::spawn(async move {
        loop {
            fake.lock().logs.push("the last".to_owned());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    quick.find("log", |line| line["text"] == "the last").await;
    repeats.abort();
    let (first, _) = slow.next().await.expect("its picture");
    assert_eq!(first, "picture");
    let fresh = slow.find("picture", |_| true).await;
    assert_eq!(fresh["aircraft"][0]["status"]["id"], json!(id(1)));
    slow.find("update", |_| true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_aircraft() {
    let mut fakes = Vec::new();
    for number in 1..=100 {
        let fake = Fake::start(number).await;
        fake.lock().status_every = Duration::from_millis(200);
        fakes.push(fake);
    }
    let handle = ground(&fakes).await;
    let mut console = Console::open(&handle).await;
    let picture = picture(&handle, "all report", all_up).await;
    assert_eq!(picture.aircraft.len(), 100);
    assert!(picture.actions.setup, "{}", picture.actions.setup_blocked);
    handle.command(support::request("s", Command::Setup, &[])).await.expect("setup is possible");
    eventually("all have it", async || fakes.iter().all(|fake| !fake.received().is_empty()).then_some(()))
        .await;
    console
        .find("update", |data| {
            let results = data["commands"][0]["results"].as_array();
            results.is_some_and(|all| {
                all.len() == 100 && all.iter().all(|result| result["outcome"] == "effect_seen")
            })
        })
        .await;
    assert!(fakes.iter().all(|fake| fake.received().len() == 1), "accepted at once means sent once");
    handle.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_one_clear_message() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let bind: SocketAddr = taken.local_addr().expect("bound");
    let error = Ground::start(Config {
        bind,
        aircraft: Vec::new(),
        web_dir: None,
        tiles: None,
        parameters: None,
        records: None,
        hosts: Default::default(),
        console: None,
        protection: Default::default(),
    })
    .await
    .expect_err("it is taken");
    let expected =
        format!("ground service: cannot listen on {bind}: found the port in use, expected a free one");
    assert_eq!(error.to_string(), expected);
}
