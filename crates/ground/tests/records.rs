//! Recorded flights over HTTP: what is listed, what of one is replayed, and what is refused.
#![allow(clippy::disallowed_methods, reason = "services run in real time")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use wingbeat_api::{ApiError, RecordedTrack, Records, paths};
use wingbeat_ground::{Config, Ground, Handle, Hosts, StartError};

async fn start(records: Option<PathBuf>) -> Result<Handle, StartError> {
    Ground::start(Config {
        bind: SocketAddr::from(([127, 0, 0, 1], 0)),
        aircraft: Vec::new(),
        web_dir: None,
        tiles: None,
        parameters: None,
        records,
        hosts: Hosts::default(),
        console: None,
        protection: Default::default(),
    })
    .await
}

/// Two aircraft of one flight, and one log that is none.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let flight = folder.path().join("flight-0001");
    std::fs::create_dir(&flight).expect("a folder");
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/flights/perpendicular-mbcap-e.mcap");
    for name in ["uav-001.mcap", "uav 2&.mcap"] {
        std::fs::copy(&log, flight.join(name)).expect("a copy");
    }
    std::fs::write(folder.path().join("text.mcap"), "no log").expect("a file");
    folder
}

async fn get(handle: &Handle, path: &str) -> (u16, Vec<u8>) {
    let url = format!("http://{}{path}", handle.address());
    let client = wingbeat_ground::plain_client().expect("a client");
    let answer = client.get(url).send().await.expect("it answers");
    (answer.status().as_u16(), answer.bytes().await.expect("a body").to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_flights_are_listed_and_read() {
    let folder = folder();
    let handle = start(Some(folder.path().to_path_buf())).await.expect("it starts");
    let (status, body) = get(&handle, paths::RECORDS).await;
    let listed: Records = serde_json::from_slice(&body).expect("a list");
    assert_eq!((status, listed.left_out), (200, 0));
    let files: Vec<&str> = listed.logs.iter().map(|log| log.file.as_str()).collect();
    assert_eq!(files, ["flight-0001/uav 2&.mcap", "flight-0001/uav-001.mcap", "text.mcap"]);
    let log = &listed.logs[1];
    assert_eq!((log.parts, log.problem.as_str(), log.aircraft.len()), (1, "", 16));
    assert!(!log.name.is_empty() && log.length_bytes > 100_000, "{log:?}");
    assert!(listed.logs[2].problem.contains("expected a flight log"), "{:?}", listed.logs[2]);

    let (status, body) =
        get(&handle, &format!("{}?file=flight-0001/uav%202%26.mcap", paths::RECORDS_TRACK)).await;
    let track: RecordedTrack = serde_json::from_slice(&body).expect("a track");
    assert_eq!((status, track.flaw.as_str(), track.every), (200, "", 1));
    assert!(track.time_ms.len() > 500);
    let few = format!("{}?file=flight-0001/uav-001.mcap&samples=100", paths::RECORDS_TRACK);
    let (_, body) = get(&handle, &few).await;
    let few: RecordedTrack = serde_json::from_slice(&body).expect("a track");
    assert!(few.time_ms.len() <= 100 && few.every > 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_record_is_refused() {
    let folder = folder();
    let outside = folder.path().join("outside.mcap");
    std::fs::write(&outside, "secret").expect("a file");
    let handle = start(Some(folder.path().join("flight-0001"))).await.expect("it starts");
    for (query, status, part) in [
        ("", 400, "file"),
        ("?file=", 400, "expected the path of a log"),
        ("?file=../outside.mcap", 400, "expected the path of a log"),
        ("?file=%2e%2e%2foutside.mcap", 400, "expected the path of a log"),
        ("?file=/etc/passwd", 400, "expected the path of a log"),
        ("?file=none.mcap", 404, "found no \"none.mcap\""),
        ("?file=uav-001.mcap&samples=99", 400, "expected 100 to 20000"),
        ("?file=uav-001.mcap&samples=many", 400, "samples"),
        ("?file=uav-001.mcap&more=1", 400, "more"),
    ] {
        let (found, body) = get(&handle, &format!("{}{query}", paths::RECORDS_TRACK)).await;
        let error: ApiError = serde_json::from_slice(&body).expect("an error");
        assert_eq!(found, status, "{query}: {error:?}");
        assert!(error.message.contains(part) && !error.message.contains("secret"), "{query}: {error:?}");
    }

    let none = start(None).await.expect("it starts");
    for path in [paths::RECORDS.to_owned(), format!("{}?file=uav-001.mcap", paths::RECORDS_TRACK)] {
        let (status, body) = get(&none, &path).await;
        let error: ApiError = serde_json::from_slice(&body).expect("an error");
        assert_eq!(status, 404);
        assert!(error.message.contains("--records"), "{error:?}");
    }
    for (path, why) in [(outside, "found a file"), (folder.path().join("nowhere"), "No such file")] {
        let error = start(Some(path)).await.expect_err("no directory").to_string();
        assert!(error.contains(why) && error.contains("expected a directory"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_results_is_served_as_a_page_of_others() {
    let folder = folder();
    let campaign = folder.path().join("campaign");
    std::fs::create_dir_all(campaign.join("pages")).expect("a folder");
    let page = "<!doctype html><html><head><title>Loss &amp; more</title></head><script>fetch('/api/v1/fleet')</script></html>";
    for (name, text) in
        [("results.json", "{}"), ("index.html", page), ("other.html", page), ("pages/index.html", page)]
    {
        std::fs::write(campaign.join(name), text).expect("a file");
    }
    let handle = start(Some(folder.path().to_path_buf())).await.expect("it starts");
    let (_, body) = get(&handle, paths::RECORDS).await;
    let listed: Records = serde_json::from_slice(&body).expect("a list");
    let found: Vec<_> = listed.results.iter().map(|one| (one.page.as_str(), one.title.as_str())).collect();
    assert_eq!(found, [("campaign/index.html", "Loss & more")]);

    let url = format!("http://{}{}?file=campaign/index.html", handle.address(), paths::RECORDS_PAGE);
    let client = wingbeat_ground::plain_client().expect("a client");
    let answer = client.get(&url).send().await.expect("it answers");
    let header = |name: &str| answer.headers()[name].to_str().expect("text").to_owned();
    assert_eq!(header("content-type"), "text/html; charset=utf-8");
    let policy = header("content-security-policy");
    assert!(
        policy.starts_with("sandbox; default-src 'none'; style-src 'unsafe-inline'")
            && !policy.contains("script"),
        "{policy}"
    );
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(answer.text().await.expect("a body"), page);
    // Everything else keeps the service's own policy.
    let own = client
        .get(format!("http://{}{}", handle.address(), paths::RECORDS))
        .send()
        .await
        .expect("it answers");
    let policy = own.headers()["content-security-policy"].to_str().expect("text");
    assert!(policy.contains("script-src 'self'") && !policy.contains("sandbox"), "{policy}");

    for (file, status) in [
        ("campaign/other.html", 400),
        ("campaign/pages/index.html", 400),
        ("campaign/results.json", 400),
        ("campaign/../campaign/index.html", 400),
        ("flight-0001/uav-001.mcap", 400),
        ("index.html", 400),
        ("", 400),
    ] {
        let (found, body) = get(&handle, &format!("{}?file={file}", paths::RECORDS_PAGE)).await;
        assert_eq!(found, status, "{file}: {}", String::from_utf8_lossy(&body));
    }
}
