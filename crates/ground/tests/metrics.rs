//! What a Prometheus server and a program that reads the API's description are answered.

use crate::support;

#[path = "../../../tests/prometheus/parse.rs"]
mod prometheus;

use support::{Fake, all_up, eventually, ground, id, picture};
use wingbeat_api::{UserRole, paths};
use wingbeat_ground::{Config, Ground, Handle, Hosts, Protection, users};

const PASSWORD: &str = "correct horse: battery";

async fn get(handle: &Handle, path: &str, user: Option<(&str, &str)>) -> (u16, String, String) {
    let client = wingbeat_ground::plain_client().expect("a client");
    let request = client.get(format!("http://{}{path}", handle.address()));
    let request = match user {
        Some((name, password)) => request.basic_auth(name, Some(password)),
        None => request,
    };
    let answer = request.send().await.expect("an answer");
    let kind = answer.headers()["content-type"].to_str().expect("text").to_owned();
    (answer.status().as_u16(), kind, answer.text().await.expect("text"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_aircraft_is_measured_in_prometheus_text() {
    let fakes = [Fake::start(1).await, Fake::start(2).await];
    fakes[0].lock().status.name = "one \"x\"\\\n".to_owned();
    fakes[0].lock().status.radio.received = 1234;
    let handle = ground(&fakes).await;
    picture(&handle, "their statuses arrive", all_up).await;
    let (status, kind, text) = get(&handle, paths::METRICS, None).await;
    assert_eq!((status, kind.as_str()), (200, "text/plain; version=0.0.4; charset=utf-8"));
    let samples = prometheus::parse(&text);
    let of =
        |name: &str, number: usize| samples.get(&format!("{name}{{aircraft=\"{}\"}}", id(number))).copied();
    assert_eq!(of("wingbeat_autopilot_heartbeat_age_seconds", 1), Some(0.1));
    assert_eq!(of("wingbeat_radio_datagrams_received_total", 1), Some(1234.0));
    assert_eq!((of("wingbeat_latitude_degrees", 2), of("wingbeat_battery_volts", 2)), (Some(39.48), None));
    assert_eq!(
        (of("wingbeat_autopilot_armed", 1), of("wingbeat_aircraft_engaged", 1)),
        (Some(0.0), Some(1.0))
    );
    assert!(samples.keys().any(|series| series.contains(r#"name="one \"x\"\\\n""#)), "{text}");

    fakes[1].die().await;
    let link = format!(
        "wingbeat_aircraft_link_up{{aircraft=\"{}\",address=\"http://{}\"}}",
        id(2),
        fakes[1].address
    );
    eventually("its link is lost and its last values stay", async || {
        let samples = prometheus::parse(&get(&handle, paths::METRICS, None).await.2);
        let height = samples.get(&format!("wingbeat_height_meters{{aircraft=\"{}\"}}", id(2)));
        (samples.get(&link) == Some(&0.0) && height.is_some()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_scrapes_is_a_user_and_its_password_is_compared_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("users.toml");
    let entry = users::Entry::new(UserRole::Observer, PASSWORD).expect("a good password");
    users::change(&file, |all| {
        all.insert("scraper".to_owned(), entry);
        Ok(())
    })
    .expect("written");
    let fake = Fake::start(1).await;
    let handle = Ground::start(Config {
        bind: "127.0.0.1:0".parse().expect("an address"),
        aircraft: vec![fake.address.to_string()],
        web_dir: None,
        tiles: None,
        parameters: None,
        records: None,
        hosts: Hosts::default(),
        console: None,
        protection: Protection { users: Some(file.clone()), ..Protection::default() },
    })
    .await
    .expect("it starts");
    assert_eq!(get(&handle, paths::METRICS, None).await.0, 401);
    let wrong = get(&handle, paths::METRICS, Some(("scraper", "wrong horse"))).await;
    assert!(wrong.0 == 401 && wrong.2.contains("do not belong together"), "{wrong:?}");
    // An address has 5 attempts at once: more are answered, because only the first is one.
    for _ in 0..20 {
        let (status, _, text) = get(&handle, paths::METRICS, Some(("scraper", PASSWORD))).await;
        assert_eq!(status, 200, "{text}");
        prometheus::parse(&text);
    }
    // A password with the request is for the metrics alone.
    assert_eq!(get(&handle, paths::FLEET, Some(("scraper", PASSWORD))).await.0, 401);
    users::change(&file, |all| {
        all.clear();
        Ok(())
    })
    .expect("written");
    eventually("a user who is taken out scrapes no more", async || {
        (get(&handle, paths::METRICS, Some(("scraper", PASSWORD))).await.0 == 401).then_some(())
    })
    .await;
    // The description is for everyone: it says nothing of the fleet.
    let (status, kind, text) = get(&handle, paths::OPENAPI, None).await;
    assert_eq!((status, kind.as_str()), (200, "application/json"));
    let served: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let committed = include_str!("../../../docs/openapi/ground.json");
    assert_eq!(served, serde_json::from_str::<serde_json::Value>(committed).expect("JSON"));
    assert_eq!(served["openapi"], "3.1.0");
    for (path, kind) in [
        (paths::OPENAPI_PAGE, "text/html; charset=utf-8"),
        (paths::OPENAPI_SCRIPT, "text/javascript; charset=utf-8"),
        (paths::OPENAPI_STYLE, "text/css; charset=utf-8"),
    ] {
        let (status, found, text) = get(&handle, path, None).await;
        assert!((status, found.as_str()) == (200, kind) && text.len() > 500, "{path}: {status} {found}");
    }
}
