//! A plan that the console saves is one that the bench flies, without another file.
#![allow(clippy::disallowed_methods, reason = "the console's service runs in real time")]

use std::path::Path;

use serde_json::{Value, json};
use wingbeat_api::paths;
use wingbeat_bench::flight::fly;
use wingbeat_bench::plan::Plan;
use wingbeat_ground::{Config, Ground, Handle};

async fn service() -> Handle {
    let config = Config {
        bind: "127.0.0.1:0".parse().unwrap(),
        aircraft: vec![],
        web_dir: None,
        tiles: None,
        parameters: None,
        records: None,
        hosts: Default::default(),
        console: None,
        protection: Default::default(),
    };
    Ground::start(config).await.unwrap()
}

async fn save(handle: &Handle, plan: &Value) -> (u16, Value) {
    post(handle, paths::PLAN_FILE, plan).await
}

async fn post(handle: &Handle, path: &str, body: &Value) -> (u16, Value) {
    let client = wingbeat_ground::plain_client().unwrap();
    let request = client.post(format!("http://{}{path}", handle.address())).json(body);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// East of the sample missions' home, metres by degrees.
fn mission(name: &str, north_m: f64) -> Value {
    let waypoint = |east_m: f64, north_m: f64| json!({ "latitude_deg": 39.482_594 + north_m / 111_132.0, "longitude_deg": -0.346_265 + east_m / 85_900.0, "height_m": 15.0 });
    json!({ "name": name, "waypoints": [waypoint(0.0, north_m), waypoint(120.0, north_m), waypoint(120.0, north_m + 90.0)] })
}

fn plan(protocol: &str, missions: &[Value]) -> Value {
    json!({
        "protocol": protocol, "aircraft": 3, "formation": "wedge", "distance_m": 50.0, "landing_distance_m": 20.0,
        "take_off": "simultaneous", "landing": "sequential", "speed_m_s": 8.0, "missions": missions,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_plan_is_flown_in_the_bench() {
    let handle = service().await;
    let swarm = plan("muscop", &[mission("field", 0.0)]);
    let apart = plan("mbcap-e", &[mission("south", 0.0), mission("north", 400.0)]);
    for (saved, aircraft) in [(swarm, 3), (apart, 2)] {
        let (status, file) = save(&handle, &saved).await;
        assert_eq!(status, 200, "{file}");
        assert!(file["name"].as_str().unwrap().ends_with(".toml"), "{file}");
        let text = file["text"].as_str().unwrap();
        // Nothing else is needed: the folder has no mission.
        let read =
            Plan::parse(text, Path::new("/nowhere")).unwrap_or_else(|error| panic!("{error:#}\n{text}"));
        let rows = read.flights(Path::new("/nowhere"), 1).unwrap();
        let [(scenario, seed)] = rows.concat().try_into().expect("one flight");
        assert_eq!(scenario.aircraft(), aircraft);
        let flight = fly(&scenario, seed, read.time_limit()).unwrap();
        assert!(flight.succeeded(), "{:?}\n{text}", flight.warnings);

        // Opened again it is the same plan, and is saved as the same file.
        let (status, opened) = post(&handle, paths::SAVED_PLANS, &file_of("a.toml", text)).await;
        assert_eq!(status, 200, "{opened}");
        let of_swarm = ["formation", "distance_m", "landing_distance_m", "take_off", "landing", "aircraft"];
        for key in ["protocol", "speed_m_s"].iter().chain(of_swarm.iter().filter(|_| aircraft == 3)) {
            assert_eq!(opened[key], saved[key], "{key}");
        }
        assert_eq!(opened["missions"].as_array().unwrap().len(), saved["missions"].as_array().unwrap().len());
        let (status, again) = save(&handle, &opened).await;
        assert_eq!((status, again["text"].as_str()), (200, Some(text)));
    }
}

/// A formation behind a pilot who is drawn from the seed, or flies as published.
fn follow(pilot: &str) -> Value {
    json!({
        "protocol": "follow_me", "aircraft": 4, "formation": "matrix", "distance_m": 40.0, "landing_distance_m": 15.0,
        "landing": "formation", "speed_m_s": 8.0, "height_m": 25.0, "pilot": pilot, "missions": [],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_plan_that_follows_a_pilot_is_flown_in_the_bench() {
    let handle = service().await;
    let saved = follow("drawn:40");
    let (status, file) = save(&handle, &saved).await;
    assert_eq!(status, 200, "{file}");
    let text = file["text"].as_str().unwrap();
    let read = Plan::parse(text, Path::new("/nowhere")).unwrap_or_else(|error| panic!("{error:#}\n{text}"));
    let rows = read.flights(Path::new("/nowhere"), 1).unwrap();
    let [(scenario, seed)] = rows.concat().try_into().expect("one flight");
    assert_eq!(scenario.aircraft(), 4);
    let wingbeat_agent::Coordination::FollowMe(config) = scenario.agent_config(1).coordination else {
        panic!()
    };
    assert_eq!(
        (config.height_m, config.swarm.distance_m, config.swarm.landing_distance_m),
        (25.0, 40.0, 15.0)
    );
    assert_eq!(config.landing, wingbeat_protocol::follow_me::Landing::Formation);
    let flight = fly(&scenario, seed, read.time_limit()).unwrap();
    assert!(flight.succeeded(), "{:?}\n{text}", flight.warnings);
    let (status, opened) = post(&handle, paths::SAVED_PLANS, &file_of("a.toml", text)).await;
    assert_eq!((status, &opened), (200, &saved));
    let (status, again) = save(&handle, &opened).await;
    assert_eq!((status, again["text"].as_str()), (200, Some(text)));

    let with = |key: &str, value: Value| {
        let mut plan = follow("published");
        plan[key] = value;
        plan
    };
    assert_eq!(save(&handle, &follow("published")).await.0, 200);
    for (bad, expected) in [
        (
            with("missions", json!([mission("a", 0.0)])),
            "missions: found 1, expected none: a pilot flies the leader",
        ),
        (
            with("pilot", json!("trace:/etc/passwd")),
            "pilot: found \"trace:/etc/passwd\", expected published, or drawn:SECONDS",
        ),
        (with("pilot", json!("drawn:5")), "pilot: found \"drawn:5\""),
        (with("height_m", json!(500.0)), "height_m: found 500, expected 2 to 120 m"),
        (
            with("landing", json!("sequential")),
            "landing: found \"sequential\", expected in_place or formation",
        ),
        (with("take_off", json!("sequential")), "take_off: found \"sequential\", expected none"),
        (with("landing_distance_m", json!(-1.0)), "landing_distance_m: the distance"),
        (with("aircraft", json!(1)), "1 aircraft, expected a formation other than custom and 2 to"),
    ] {
        let (status, refused) = save(&handle, &bad).await;
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(status == 400 && message.contains(expected), "{status} {message}, expected {expected}");
    }
    let (status, refused) =
        post(&handle, paths::SAVED_PLANS, &file_of("a.toml", &text.replace("drawn:40", "trace:x"))).await;
    assert!(
        status == 400 && refused["message"].as_str().unwrap().contains("pilot: found \"trace:x\""),
        "{refused}"
    );
}

fn file_of(name: &str, text: &str) -> Value {
    json!({ "name": name, "text": text })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manners_of_a_saved_plan_are_those_of_its_aircraft() {
    let handle = service().await;
    let (_, file) = save(&handle, &plan("muscop", &[mission("field", 0.0)])).await;
    let read = Plan::parse(file["text"].as_str().unwrap(), Path::new("/nowhere")).unwrap();
    let rows = read.flights(Path::new("/nowhere"), 1).unwrap();
    let [(scenario, _)] = rows.concat().try_into().expect("one flight");
    let wingbeat_agent::Coordination::Muscop(config) = scenario.agent_config(0).coordination else {
        panic!()
    };
    use wingbeat_protocol::swarm::Manner::{Sequential, Simultaneous};
    assert_eq!((config.swarm.take_off, config.swarm.landing), (Simultaneous, Sequential));
    assert_eq!(config.swarm.landing_distance_m, 20.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_saved_plan_names_what_was_found() {
    let handle = service().await;
    let (_, file) = save(&handle, &plan("muscop", &[mission("field", 0.0)])).await;
    let text = file["text"].as_str().unwrap();
    let missing = text.replace("[mission]", "[own]");
    for (text, expected) in [
        ("", "missing field `name`"),
        ("not toml", "expected a plan that this console saved"),
        (missing.as_str(), "TOML parse error at line 16"),
        (&text.replace("wedge", "ring"), "a.toml: formation: found \"ring\""),
        (
            &text.replace("muscop.landing", "muscop.master"),
            "vary.muscop.master: found 1 values, expected none",
        ),
        (&text.replace("[channel]", "[guidance]\n[channel]"), "unknown field `guidance`"),
    ] {
        let (status, refused) = post(&handle, paths::SAVED_PLANS, &file_of("a.toml", text)).await;
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(status == 400 && message.contains(expected), "{status} {message}, expected {expected}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_cannot_be_flown_is_not_saved() {
    let handle = service().await;
    let good = plan("muscop", &[mission("field", 0.0)]);
    let with = |key: &str, value: Value| {
        let mut plan = good.clone();
        plan[key] = value;
        plan
    };
    for (bad, expected) in [
        (with("formation", json!("ring")), "formation: found \"ring\""),
        (with("formation", json!("custom")), "expected a formation other than custom"),
        (with("aircraft", json!(1)), "1 aircraft, expected a formation other than custom and 2 to"),
        (with("distance_m", json!(0.0)), "distance_m: the distance between aircraft is more than 0"),
        (with("speed_m_s", json!(300.0)), "speed_m_s: found 300, expected 0.1 to 30 m/s"),
        (with("missions", json!([])), "missions: found 0, expected 1"),
        (with("missions", json!([mission("a", 0.0), mission("b", 90.0)])), "missions: found 2, expected 1"),
    ] {
        let (status, refused) = save(&handle, &bad).await;
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(status == 400 && message.contains(expected), "{status} {message}, expected {expected}");
    }
}
