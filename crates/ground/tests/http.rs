//! The HTTP surface: refusals have one shape, missions are passed on, the page is served.

use crate::support;

use std::net::SocketAddr;
use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use support::{Fake, all_up, ground, id, picture};
use wingbeat_api::{ApiError, paths};
use wingbeat_ground::{Config, Ground, Handle, Hosts};

async fn ask(handle: &Handle, method: Method, path: &str, body: Option<&str>) -> (u16, String) {
    let mut request = wingbeat_ground::plain_client()
        .expect("a client")
        .request(method, format!("http://{}{path}", handle.address()));
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_owned());
    }
    let response = request.send().await.expect("it answers");
    (response.status().as_u16(), response.text().await.expect("text"))
}

async fn refused(handle: &Handle, method: Method, path: &str, body: Option<&str>) -> (u16, ApiError) {
    let (status, text) = ask(handle, method, path, body).await;
    (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{status} {text:?}: {error}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_is_one_json_shape() {
    let fake = Fake::start(1).await;
    let handle = ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    let long = format!(r#"{{"id":"{}","command":"land"}}"#, "x".repeat(65));
    let huge = format!(r#"{{"id":"x","command":"land","vehicles":["{}"]}}"#, "x".repeat(200_000));
    let cases = [
        (Method::GET, "/api/v1/nothing", None, 404, "not_found", "/api/v1/nothing"),
        (Method::GET, "/api", None, 404, "not_found", "/api"),
        (Method::DELETE, paths::FLEET, None, 405, "bad_request", "DELETE"),
        (Method::POST, paths::FLEET_COMMANDS, None, 415, "bad_request", "application/json"),
        (Method::POST, paths::FLEET_COMMANDS, Some("{"), 400, "bad_request", "EOF"),
        (
            Method::POST,
            paths::FLEET_COMMANDS,
            Some(r#"{"id":"x","command":"jump"}"#),
            400,
            "bad_request",
            "jump",
        ),
        (
            Method::POST,
            paths::FLEET_COMMANDS,
            Some(r#"{"id":"x","command":"land","who":1}"#),
            400,
            "bad_request",
            "who",
        ),
        (
            Method::POST,
            paths::FLEET_COMMANDS,
            Some(r#"{"id":"","command":"land"}"#),
            400,
            "bad_request",
            "id: found \"\" (0 bytes)",
        ),
        (
            Method::POST,
            paths::FLEET_COMMANDS,
            Some(&long),
            400,
            "bad_request",
            "(65 bytes), expected 1 to 64 visible",
        ),
        (
            Method::POST,
            paths::FLEET_COMMANDS,
            Some(r#"{"id": "hold 1", "command": "hold", "vehicles": []}"#),
            400,
            "bad_request",
            "found \"hold 1\"",
        ),
        (Method::POST, paths::FLEET_COMMANDS, Some(&huge), 413, "bad_request", "limit"),
        (
            Method::POST,
            paths::FLEET_COMMANDS,
            Some(r#"{"id":"x","command":"land","vehicles":["7"]}"#),
            404,
            "not_found",
            "\"7\"",
        ),
        (
            Method::PUT,
            paths::FLEET_MISSION,
            Some(r#"{"vehicle":"7","mission":{"name":"m","waypoints":[]}}"#),
            404,
            "not_found",
            "\"7\"",
        ),
    ];
    for (method, path, body, status, code, contains) in cases {
        let (found, error) = refused(&handle, method.clone(), path, body).await;
        assert_eq!((found, error.code.as_str()), (status, code), "{method} {path}: {error:?}");
        assert!(error.message.contains(contains), "{method} {path}: {error:?}");
    }
    assert!(fake.received().is_empty(), "none of it reached an aircraft");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_and_the_picture_over_http() {
    let fake = Fake::start(1).await;
    let handle = ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    let body = r#"{"id":"h1","command":"hold"}"#;
    let (status, text) = ask(&handle, Method::POST, paths::FLEET_COMMANDS, Some(body)).await;
    let reply: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((status, reply), (202, json!({"id": "h1", "vehicles": [id(1)]})));
    assert_eq!(ask(&handle, Method::POST, paths::FLEET_COMMANDS, Some(body)).await.0, 200, "the same again");
    let reused = format!(r#"{{"id":"h1","command":"land","vehicles":["{}"]}}"#, id(1));
    let (status, error) = refused(&handle, Method::POST, paths::FLEET_COMMANDS, Some(&reused)).await;
    let expected = format!(
        "id \"h1\": found land for aircraft {:?}, expected hold for all aircraft, which came under this id before: a new \
         command needs a new id",
        id(1)
    );
    assert_eq!((status, error.code.as_str(), error.message), (409, "conflict", expected));
    let (status, text) = ask(&handle, Method::GET, paths::FLEET, None).await;
    let picture: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((status, &picture["commands"][0]["command"]), (200, &json!("hold")));
    assert!(picture["aircraft"][0].get("problem").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mission_is_passed_on_and_the_answer_is_the_aircrafts() {
    let fake = Fake::start(1).await;
    let handle = ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    let waypoint = json!({"latitude_deg": 39.5, "longitude_deg": -0.3, "height_m": 20.0});
    let upload = |waypoints: Value| {
        json!({"vehicle": id(1), "mission": {"name": "m", "waypoints": waypoints}}).to_string()
    };
    let good = upload(json!([waypoint, waypoint]));
    let (status, text) = ask(&handle, Method::PUT, paths::FLEET_MISSION, Some(&good)).await;
    let summary: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((status, &summary["waypoints"]), (200, &json!(2)));
    picture(&handle, "it is drawn", |p| p.missions.iter().any(|m| m.holders == [id(1)])).await;
    let short = upload(json!([waypoint]));
    let (status, error) = refused(&handle, Method::PUT, paths::FLEET_MISSION, Some(&short)).await;
    assert_eq!((status, error.message.as_str()), (400, "waypoints: found 1"));
    fake.die().await;
    let (status, error) = refused(&handle, Method::PUT, paths::FLEET_MISSION, Some(&good)).await;
    assert_eq!((status, error.code.as_str()), (502, "unavailable"));
    assert_eq!(error.message, format!("http://{}: connection refused", fake.address));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mission_file_is_read_and_no_aircraft_is_told() {
    let fake = Fake::start(1).await;
    let handle = ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    let survey = include_str!("../../../deploy/missions/survey.plan");
    // Larger than any other body may be.
    let body = json!({"name": "survey.plan", "text": format!("{survey}{}", " ".repeat(200_000))}).to_string();
    let (status, text) = ask(&handle, Method::POST, paths::MISSION_FILES, Some(&body)).await;
    let content: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(status, 200, "{text}");
    let waypoints = content["missions"][0]["mission"]["waypoints"].as_array().expect("waypoints");
    assert!(waypoints.len() >= 2 && waypoints.iter().all(|w| w["height_m"].as_f64() > Some(1.0)), "{text}");
    let body = json!({"name": "x.waypoints", "text": "QGC WPL 110\n0\t1"}).to_string();
    let (status, error) = refused(&handle, Method::POST, paths::MISSION_FILES, Some(&body)).await;
    assert_eq!((status, error.code.as_str()), (400, "bad_request"));
    assert!(error.message.contains("x.waypoints"), "{error:?}");
    let huge = json!({"name": "x.kml", "text": "x".repeat(5_000_000)}).to_string();
    assert_eq!(refused(&handle, Method::POST, paths::MISSION_FILES, Some(&huge)).await.0, 413);
    assert!(picture(&handle, "nothing changed", all_up).await.missions.is_empty());
}

async fn with_page(folder: &Path) -> Handle {
    let bind = SocketAddr::from(([127, 0, 0, 1], 0));
    let config = Config {
        bind,
        aircraft: Vec::new(),
        web_dir: Some(folder.to_path_buf()),
        tiles: None,
        parameters: None,
        records: None,
        hosts: Hosts::default(),
        console: None,
        protection: Default::default(),
    };
    Ground::start(config).await.expect("it starts")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_served_and_every_place_inside_it() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("assets")).expect("a folder");
    std::fs::write(folder.path().join("index.html"), "the page").expect("a file");
    std::fs::write(folder.path().join("assets/a.js"), "the script").expect("a file");
    std::fs::write(folder.path().join("assets/a.js.gz"), "gzip of it").expect("a file");
    std::fs::write(folder.path().join("assets/a.js.br"), "brotli of it").expect("a file");
    let handle = with_page(folder.path()).await;
    for (path, status, body) in [
        ("/", 200, "the page"),
        ("/index.html", 200, "the page"),
        ("/aircraft/7", 200, "the page"),
        ("/assets/a.js", 200, "the script"),
    ] {
        assert_eq!(ask(&handle, Method::GET, path, None).await, (status, body.to_owned()), "{path}");
    }
    for path in ["/assets/b.js", "/../Cargo.toml", "/%2e%2e/Cargo.toml", "/api/v1/x"] {
        let (status, _) = ask(&handle, Method::GET, path, None).await;
        assert_eq!(status, 404, "{path}");
    }
    let url = |path: &str| format!("http://{}{path}", handle.address());
    let client = wingbeat_ground::plain_client().expect("a client");
    let caching = async |path: &str| {
        let response = client.get(url(path)).send().await.expect("it answers");
        response.headers()["cache-control"].to_str().expect("text").to_owned()
    };
    assert_eq!(caching("/").await, "no-cache");
    assert_eq!(caching("/assets/a.js").await, "public, max-age=31536000, immutable");
    // A browser has the compressed file that it accepts, under the same path.
    for (accepts, encoding, body) in [
        ("gzip", Some("gzip"), "gzip of it"),
        ("gzip, deflate, br", Some("br"), "brotli of it"),
        ("identity", None, "the script"),
    ] {
        let request = client.get(url("/assets/a.js")).header("accept-encoding", accepts);
        let response = request.send().await.expect("it answers");
        let found = response.headers().get("content-encoding").map(|value| value.to_str().expect("text"));
        assert_eq!(found, encoding, "{accepts}");
        assert_eq!(response.text().await.expect("a body"), body, "{accepts}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_not_built_says_how_to_build_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("dist");
    let handle = with_page(&missing).await;
    let (status, text) = ask(&handle, Method::GET, "/", None).await;
    assert_eq!(status, 503);
    assert!(text.contains("npm run build") && text.contains("dist/index.html"), "{text}");
    std::fs::create_dir(&missing).expect("a folder");
    std::fs::write(missing.join("index.html"), "built").expect("a file");
    assert_eq!(ask(&handle, Method::GET, "/", None).await, (200, "built".to_owned()), "without a restart");
}

/// A map of one tile of gzip, in the fourth row from the north of eight.
fn mbtiles(path: &Path) {
    let file = rusqlite::Connection::open(path).expect("a file");
    let statements = "CREATE TABLE metadata (name text, value text);
        INSERT INTO metadata VALUES ('name', 'field'), ('format', 'pbf'), ('minzoom', '3'), ('maxzoom', '3'),
            ('bounds', '-45,0,0,41'), ('attribution', 'made here');
        CREATE TABLE tiles (zoom_level integer, tile_column integer, tile_row integer, tile_data blob);";
    file.execute_batch(statements).expect("tables");
    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &[0x1a, 0]).expect("compressed");
    let content = gzip.finish().expect("compressed");
    file.execute("INSERT INTO tiles VALUES (3, 3, 4, ?1)", [content]).expect("a tile");
}

fn with_tiles(path: &Path) -> Config {
    Config {
        bind: "127.0.0.1:0".parse().expect("an address"),
        aircraft: vec![],
        web_dir: None,
        tiles: Some(path.to_owned()),
        parameters: None,
        records: None,
        hosts: Hosts::default(),
        console: None,
        protection: Default::default(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tiles_of_an_sqlite_file_are_served_one_by_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("field.mbtiles");
    mbtiles(&path);
    let handle = Ground::start(with_tiles(&path)).await.expect("it starts");
    let shown = handle.picture().await.expect("it runs");
    assert_eq!((shown.has_map, shown.has_tiles), (true, true));

    let (status, about) = ask(&handle, Method::GET, paths::TILE_JSON, None).await;
    let about: Value = serde_json::from_str(&about).expect("JSON");
    assert_eq!((status, &about["bounds"]), (200, &json!([-45.0, 0.0, 0.0, 41.0])));
    assert_eq!(about["tiles"], json!(["/tiles/{z}/{x}/{y}"]));

    let client = wingbeat_ground::plain_client().expect("a client");
    let tile = |path: &str| client.get(format!("http://{}{path}", handle.address())).send();
    let found = tile("/tiles/3/3/3").await.expect("an answer");
    let header = |name: &str| found.headers().get(name).map(|value| value.to_str().expect("text").to_owned());
    assert_eq!(header("content-type").as_deref(), Some("application/x-protobuf"));
    assert_eq!(header("content-encoding").as_deref(), Some("gzip"));
    assert_eq!(header("cache-control").as_deref(), Some("no-cache"));
    assert_eq!(
        (found.status().as_u16(), &found.bytes().await.expect("a body")[..2]),
        (200, &[0x1f, 0x8b][..])
    );
    let none = tile("/tiles/3/3/4").await.expect("an answer");
    assert_eq!((none.status().as_u16(), none.bytes().await.expect("no body").len()), (204, 0));

    for (method, path, status, says) in [
        (
            Method::GET,
            "/tiles/3/8/0",
            400,
            "tile 3/8/0: expected a zoom of 0 to 30, a column and a row below 2^zoom",
        ),
        (Method::GET, "/tiles/3/3/-1", 400, "Cannot parse"),
        (Method::GET, "/tiles/300/3/3", 400, "Cannot parse"),
        (Method::GET, "/tiles/3/3/3.pbf", 400, "Cannot parse"),
        (Method::GET, "/tiles/3/3", 404, "no such path, expected /tiles/{zoom}/{column}/{row}"),
        (Method::GET, "/tiles/../field.mbtiles", 404, "field.mbtiles"),
        (Method::GET, "/tiles/..%2f..%2fetc%2fpasswd/3/3", 400, "Cannot parse"),
        (Method::GET, paths::MAP, 404, "this service has no archive of tiles (--tiles)"),
        (Method::PUT, "/tiles/3/3/3", 405, "PUT /tiles/3/3/3"),
    ] {
        let (found, error) = refused(&handle, method, path, None).await;
        assert!(found == status && error.message.contains(says), "{path}: {found} {}", error.message);
    }
    handle.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_such_a_map_says_so_and_one_whose_map_is_none_does_not_start() {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser/tiles/pictures.pmtiles");
    let handle = Ground::start(with_tiles(&archive)).await.expect("it starts");
    let shown = handle.picture().await.expect("it runs");
    assert_eq!((shown.has_map, shown.has_tiles), (true, false));
    for path in [paths::TILE_JSON, "/tiles/3/3/3"] {
        let (status, error) = refused(&handle, Method::GET, path, None).await;
        assert_eq!(
            (status, error.message.as_str()),
            (404, "found no MBTiles, expected a service with such a map (--tiles)")
        );
    }
    handle.stop().await;

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.mbtiles");
    std::fs::write(&path, "SQLite format 3\0 and no more").expect("written");
    let error = Ground::start(with_tiles(&path)).await.expect_err("it is none");
    let expected = format!("tiles: {}: found file is not a database", path.display());
    assert!(error.to_string().starts_with(&expected), "{error}");
}
