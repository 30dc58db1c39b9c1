//! Bundles of aircraft that answer, break off, lie, and are not there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::*;

/// An aircraft's API.
#[derive(Clone, Debug, Default)]
struct Api {
    id: String,
    files: BTreeMap<String, Vec<u8>>,
    /// A download ends after so many bytes.
    breaks_after: Option<usize>,
    /// One byte of each download is another, so often.
    wrong_downloads: u32,
    /// Ranges that were asked for.
    ranges: Vec<String>,
    is_armed: bool,
    /// Why the flight controller's logs do not come, and how often it was asked for them.
    no_autopilot_logs: Option<String>,
    asked_autopilot: u32,
}

type Shared = Arc<Mutex<Api>>;

async fn list(State(api): State<Shared>) -> Json<LogFiles> {
    let api = api.lock().expect("not poisoned");
    let file = |(name, content): (&String, &Vec<u8>)| LogFile {
        name: name.clone(),
        kind: if name.ends_with(".bin") { LogKind::Autopilot } else { LogKind::Flight },
        bytes: content.len() as u64,
        age_s: if name.starts_with("000001") { 90_000 } else { 10 },
    };
    Json(LogFiles { files: api.files.iter().map(file).collect(), problem: None })
}

async fn file(
    State(api): State<Shared>,
    query: Query<BTreeMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let mut api = api.lock().expect("not poisoned");
    if api.is_armed {
        let refused = json!({ "code": "conflict", "message": "found motors armed, expected an aircraft on the ground" });
        return (StatusCode::CONFLICT, Json(refused)).into_response();
    }
    let range = headers["range"].to_str().expect("text").to_owned();
    let (first, last) = range.strip_prefix("bytes=").and_then(|r| r.split_once('-')).expect("a range");
    let (first, last): (usize, usize) = (first.parse().expect("a number"), last.parse().expect("a number"));
    let content = &api.files[&query["name"]];
    let mut piece = content[first..=last].to_vec();
    let stated = format!("bytes {first}-{last}/{}", content.len());
    let length = piece.len();
    if api.wrong_downloads > 0 {
        api.wrong_downloads -= 1;
        piece[length - 1] ^= 1;
    }
    let breaks = api.breaks_after.filter(|most| *most < length);
    api.ranges.push(range);
    let body = match breaks {
        None => Body::from(piece),
        Some(most) => {
            piece.truncate(most);
            let pieces = [Ok(axum::body::Bytes::from(piece)), Err(io::Error::other("broken off"))];
            // What was sent before it breaks off arrives.
            Body::from_stream(stream::iter(pieces).then(|piece| async {
                sleep(Duration::from_millis(50)).await;
                piece
            }))
        }
    };
    (StatusCode::PARTIAL_CONTENT, [("content-range", stated), ("content-length", length.to_string())], body)
        .into_response()
}

async fn hash(State(api): State<Shared>, query: Query<BTreeMap<String, String>>) -> Json<LogHash> {
    let number = |name: &str| -> usize { query[name].parse().expect("a number") };
    let api = api.lock().expect("not poisoned");
    let piece = &api.files[&query["name"]][number("from")..][..number("bytes")];
    Json(LogHash { sha256: digits(Sha256::new_with_prefix(piece)) })
}

/// Serves it; its source.
async fn serve(id: u64, files: &[(&str, &[u8])]) -> (Shared, Source) {
    let id = format!("{id:016x}");
    let files = files.iter().map(|(name, content)| ((*name).to_owned(), content.to_vec())).collect();
    let api = Arc::new(Mutex::new(Api { id: id.clone(), files, ..Api::default() }));
    let identity = |State(api): State<Shared>| async move {
        let id = api.lock().expect("not poisoned").id.clone();
        Json(json!({ "id": id, "name": "one", "version": "9", "api_version": 1, "protocol": "muscop" }))
    };
    let fetch = |State(api): State<Shared>, body: String| async move {
        assert_eq!(body, r#"{"newest":2}"#);
        let work = AutopilotLogWork::Listing;
        api.lock().expect("not poisoned").asked_autopilot += 1;
        (StatusCode::ACCEPTED, Json(AutopilotLogs { work, ..AutopilotLogs::default() }))
    };
    let fetched = |State(api): State<Shared>| async move {
        let mut api = api.lock().expect("not poisoned");
        api.files.insert("autopilot-00001-7.bin".into(), b"fetched".to_vec());
        Json(AutopilotLogs { problem: api.no_autopilot_logs.clone(), ..AutopilotLogs::default() })
    };
    let router = axum::Router::new()
        .route(paths::AUTOPILOT_LOGS, get(fetched).post(fetch))
        .route(paths::IDENTITY, get(identity))
        .route(paths::LOGS, get(list))
        .route(paths::LOG_FILE, get(file))
        .route(paths::LOG_HASH, get(hash))
        .with_state(api.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (api, Source { address, id: Some(id), name: String::new() })
}

fn wanted(out: &TempDir) -> Wanted {
    let experiment = "field-day".into();
    let read: ReadClock = |path| {
        let clock = BundledClock { ahead_of_gnss_ms: Some(7.0), ..BundledClock::default() };
        fs::read(path).map(|_| (clock, None)).map_err(|error| error.to_string())
    };
    Wanted {
        checklists: vec![],
        missing: vec![],
        out: out.path().into(),
        experiment,
        hours: 24,
        resume: false,
        autopilot_logs: 0,
        free_least: FREE_LEAST,
        read_clock: Some(read),
    }
}

async fn collected(wanted: &Wanted, sources: &[Source]) -> (PathBuf, Bundle) {
    collect(wanted, None, sources, &|_| {}).await.expect("a bundle")
}

#[tokio::test]
async fn what_breaks_off_goes_on_and_an_aircraft_that_is_missing_is_named() {
    let out = TempDir::new().expect("a folder");
    let content: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let old: &[u8] = b"yesterday's";
    let (one, first) = serve(0xa1, &[("000001-01.mcap", old), ("000002-01.mcap", &content)]).await;
    let (_, second) = serve(0xa2, &[("000009-01.mcap", b"log"), ("autopilot-00003-0.bin", b"bin")]).await;
    one.lock().expect("not poisoned").breaks_after = Some(150_000);
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", gone.local_addr().expect("an address"));
    drop(gone);
    let third = Source { address, id: Some(format!("{:016x}", 0xa3)), name: "three".into() };
    let sources = [first.clone(), third.clone(), second];
    let (folder, bundle) = collected(&wanted(&out), &sources).await;
    assert!(folder.starts_with(out.path().join("field-day")));
    assert!(!bundle.complete && bundle.ended.is_some());
    let of: Vec<(&str, usize, usize)> =
        bundle.aircraft.iter().map(|a| (a.folder.as_str(), a.files.len(), a.missing.len())).collect();
    assert_eq!(of, [("aircraft-1", 1, 0), ("aircraft-2", 0, 1), ("aircraft-3", 2, 0)]);
    assert_eq!(bundle.aircraft[1].name, "three");
    let missing = &bundle.aircraft[1].missing[0];
    assert_eq!((missing.what.as_str(), missing.why.as_str()), ("aircraft", "connection refused"));
    assert_eq!(fs::read(folder.join("aircraft-1/000002-01.mcap")).expect("a file"), content);
    let held = &bundle.aircraft[0].files[0];
    assert_eq!(held.sha256, digits(Sha256::new_with_prefix(&content)));
    assert_eq!(held.clock.as_ref().and_then(|clock| clock.ahead_of_gnss_ms), Some(7.0));
    // Each time from where it broke off, or nearly so: the end of what was sent may not have arrived.
    let ranges = one.lock().expect("not poisoned").ranges.clone();
    assert!(ranges.len() >= 3 && ranges[0] == "bytes=0-399999" && ranges[1] != ranges[0], "{ranges:?}");
    let written: Bundle =
        serde_json::from_slice(&fs::read(folder.join(MANIFEST)).expect("a manifest")).expect("JSON");
    assert_eq!(written, bundle);

    // The third is there now, the first has written more and is out of reach: what is there stays.
    let (_, there) = serve(0xa3, &[("000001-01.mcap", b"x"), ("000004-01.mcap", b"three's")]).await;
    let third = Source { address: there.address, ..third };
    let sources = [Source { address: "http://127.0.0.1:1".into(), ..first.clone() }, third.clone()];
    let resumed = Wanted { resume: true, ..wanted(&out) };
    let (same, bundle) = collected(&resumed, &sources).await;
    assert_eq!(same, folder);
    let of: Vec<(&str, usize, usize)> =
        bundle.aircraft.iter().map(|a| (a.folder.as_str(), a.files.len(), a.missing.len())).collect();
    assert_eq!(of, [("aircraft-1", 1, 1), ("aircraft-2", 1, 0), ("aircraft-3", 2, 0)]);

    // A file that grew: only the rest is asked for.
    {
        let mut one = one.lock().expect("not poisoned");
        (one.breaks_after, one.ranges) = (None, vec![]);
        one.files.get_mut("000002-01.mcap").expect("a file").extend([7; 5]);
    }
    let (_, bundle) = collected(&resumed, &[first, third]).await;
    assert!(bundle.complete);
    assert_eq!(one.lock().expect("not poisoned").ranges, ["bytes=400000-400004"]);
    assert_eq!(fs::metadata(folder.join("aircraft-1/000002-01.mcap")).expect("a file").len(), 400_005);
}

/// What the ground service kept of its checklist lies beside the logs, with its hash; a name that is none of its files becomes no path.
#[tokio::test]
async fn what_was_kept_of_checklists_lies_in_the_bundle_and_in_its_manifest() {
    let out = TempDir::new().expect("a folder");
    let (_, source) = serve(0xa1, &[("000002-01.mcap", b"log")]).await;
    let kept = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
    let first = kept("checklist-20261126T185737Z.json", "{\"command\": \"start\"}");
    let second = kept("checklist-20261126T185737Z-02.json", "{}");
    let evil = ["../checklist-20261126T185737Z.json", "ticks-8700.json", "manifest.json", ""];
    let mut files = vec![second.clone(), first.clone()];
    files.extend(evil.map(|name| kept(name, "evil")));
    let with = Wanted { checklists: files, ..wanted(&out) };
    let (folder, bundle) = collected(&with, std::slice::from_ref(&source)).await;
    assert!(bundle.complete, "{bundle:?}");
    let of = |(name, bytes): &(String, Vec<u8>)| BundledChecklist {
        name: name.clone(),
        bytes: bytes.len() as u64,
        sha256: digits(Sha256::new_with_prefix(bytes)),
    };
    assert_eq!(bundle.checklists, [of(&second), of(&first)]);
    for (name, bytes) in [&first, &second] {
        assert_eq!(&fs::read(folder.join("checklists").join(name)).expect("a file"), bytes);
    }
    assert_eq!(fs::read_dir(folder.join("checklists")).expect("a folder").count(), 2);
    let written: Bundle =
        serde_json::from_slice(&fs::read(folder.join(MANIFEST)).expect("a manifest")).expect("JSON");
    assert_eq!(written, bundle);

    // Later another flight's, and one that the service did not give: what was there stays, and what is missing is said.
    let third = kept("checklist-20261126T201500Z.json", "{\"later\": true}");
    let missing = Missing { what: "checklist-20261126T211500Z.json".into(), why: "found no answer".into() };
    let later = Wanted {
        checklists: vec![third.clone()],
        missing: vec![missing.clone()],
        resume: true,
        ..wanted(&out)
    };
    let (same, bundle) = collected(&later, std::slice::from_ref(&source)).await;
    assert_eq!((same, &bundle.missing, bundle.complete), (folder, &vec![missing], false));
    assert_eq!(bundle.checklists, [of(&second), of(&first), of(&third)]);
    let (_, bundle) = collected(&Wanted { missing: vec![], ..later }, &[source]).await;
    assert!(bundle.complete && bundle.checklists.len() == 3, "{bundle:?}");
}

/// The manifest has room to say what did not fit, and the next run has the rest.
#[tokio::test]
async fn a_disk_without_room_is_said_in_the_manifest_and_what_is_there_stays() {
    let out = TempDir::new().expect("a folder");
    let content = vec![3; 50_000];
    let (one, source) = serve(0xa1, &[("000001-01.mcap", b"small"), ("000002-01.mcap", &content)]).await;
    let (folder, bundle) = collected(&wanted(&out), std::slice::from_ref(&source)).await;
    assert!(bundle.complete);
    one.lock().expect("not poisoned").files.get_mut("000002-01.mcap").expect("a file").extend([7; 5_000]);
    let full = Wanted { free_least: u64::MAX, resume: true, ..wanted(&out) };
    let (_, bundle) = collected(&full, std::slice::from_ref(&source)).await;
    let [Missing { what, why }] = bundle.aircraft[0].missing.as_slice() else { panic!("{bundle:?}") };
    assert_eq!((bundle.complete, bundle.ended.is_some(), what.as_str()), (false, true, "000002-01.mcap"));
    assert!(why.contains("bytes free on its disk, expected at least 18446744073709551615"), "{why}");
    let written: Bundle =
        serde_json::from_slice(&fs::read(folder.join(MANIFEST)).expect("a manifest")).expect("JSON");
    assert_eq!(written, bundle);
    assert_eq!(fs::metadata(folder.join("aircraft-1/000002-01.mcap.part")).expect("a file").len(), 50_000);
    let (_, bundle) = collected(&Wanted { resume: true, ..wanted(&out) }, &[source]).await;
    assert!(bundle.complete);
    assert_eq!(one.lock().expect("not poisoned").ranges.last().expect("one"), "bytes=50000-54999");
}

#[tokio::test]
async fn the_flight_controllers_logs_belong_to_it_where_they_are_wanted() {
    let out = TempDir::new().expect("a folder");
    let (api, source) = serve(0xa1, &[("000002-01.mcap", b"log")]).await;
    let (_, bundle) = collected(&wanted(&out), std::slice::from_ref(&source)).await;
    assert_eq!((bundle.aircraft[0].files.len(), api.lock().expect("not poisoned").asked_autopilot), (1, 0));
    let with = Wanted { autopilot_logs: 2, ..wanted(&out) };
    let (folder, bundle) = collected(&with, std::slice::from_ref(&source)).await;
    assert!(bundle.complete, "{bundle:?}");
    let kinds: Vec<LogKind> = bundle.aircraft[0].files.iter().map(|file| file.kind).collect();
    assert_eq!(kinds, [LogKind::Flight, LogKind::Autopilot]);
    assert_eq!(fs::read(folder.join("aircraft-1/autopilot-00001-7.bin")).expect("a file"), b"fetched");
    // Where they do not come the others do.
    api.lock().expect("not poisoned").no_autopilot_logs = Some("found no answer".into());
    let (_, bundle) = collected(&with, &[source]).await;
    let one = &bundle.aircraft[0];
    assert_eq!((one.files.len(), one.missing[0].why.as_str()), (2, "found no answer"));
}

#[tokio::test]
async fn a_byte_that_differs_is_found_by_its_hash() {
    let out = TempDir::new().expect("a folder");
    let (api, source) = serve(0xa1, &[("000002-01.mcap", b"a flight log")]).await;
    api.lock().expect("not poisoned").wrong_downloads = 1;
    let (folder, bundle) = collected(&wanted(&out), std::slice::from_ref(&source)).await;
    assert!(bundle.complete, "{bundle:?}");
    assert_eq!(fs::read(folder.join("aircraft-1/000002-01.mcap")).expect("a file"), b"a flight log");
    api.lock().expect("not poisoned").wrong_downloads = 100;
    let (folder, bundle) = collected(&wanted(&out), &[source]).await;
    let missing = &bundle.aircraft[0].missing;
    assert!(missing[0].why.starts_with("found other bytes than the aircraft's by their hash"), "{missing:?}");
    assert!(!folder.join("aircraft-1/000002-01.mcap").exists());
}

#[tokio::test]
async fn no_name_of_an_aircraft_is_trusted() {
    let out = TempDir::new().expect("a folder");
    let bad = [
        "../../evil.mcap",
        "/tmp/evil-1.mcap",
        "..",
        "",
        "000001-02.mcap/x",
        "a-b.mcap",
        "000003.mcap",
        "1-2-3.mcap",
        "manifest.json",
        "000002-01.mcap.part",
        "con.mcap",
        "\u{1b}[2J-1.mcap",
        "autopilot-1.bin",
        "autopilot-..-1.bin",
        "000003-01.mcap\0",
    ];
    let mut files: Vec<(&str, &[u8])> = bad.iter().map(|name| (*name, &b"evil"[..])).collect();
    files.push(("000002-01.mcap", b"good"));
    let (_, source) = serve(0xa1, &files).await;
    let (folder, bundle) = collected(&wanted(&out), &[source]).await;
    let one = &bundle.aircraft[0];
    assert_eq!((one.files.len(), one.missing.len()), (1, bad.len()), "{one:?}");
    let names = |path: &Path| -> Vec<String> {
        let entries = fs::read_dir(path).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("a name").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&folder), ["aircraft-1", MANIFEST]);
    assert_eq!(names(&folder.join("aircraft-1")), ["000002-01.mcap"]);
    assert_eq!(names(out.path()), ["field-day"]);
}

#[tokio::test]
async fn another_aircraft_at_the_address_and_one_with_armed_motors_are_missing() {
    let out = TempDir::new().expect("a folder");
    let (api, source) = serve(0xa1, &[("000002-01.mcap", b"log")]).await;
    let other = Source { id: Some(format!("{:016x}", 0xa9)), ..source.clone() };
    let (_, bundle) = collected(&wanted(&out), &[other]).await;
    let why = &bundle.aircraft[0].missing[0].why;
    assert_eq!(why, "found aircraft 00000000000000a1 at this address, expected 00000000000000a9");
    api.lock().expect("not poisoned").is_armed = true;
    let (_, bundle) = collected(&wanted(&out), std::slice::from_ref(&source)).await;
    let missing = &bundle.aircraft[0].missing;
    assert!(
        missing[0].what == "000002-01.mcap" && missing[0].why.contains("found motors armed"),
        "{missing:?}"
    );
    // One that has nothing of the time.
    let mut late = wanted(&out);
    late.hours = 0;
    let (_, bundle) = collected(&late, &[source]).await;
    assert_eq!(bundle.aircraft[0].missing[0].why, "found none of the last 0 h, expected at least one");
}

#[tokio::test]
async fn a_folder_that_is_none_or_anothers_is_refused() {
    let out = TempDir::new().expect("a folder");
    let (_, source) = serve(0xa1, &[("000002-01.mcap", b"log")]).await;
    let sources = [source];
    let refused = async |wanted: &Wanted| {
        collect(wanted, None, &sources, &|_| {}).await.expect_err("refused").to_string()
    };
    for bad in ["", "..", "a/b", "-x", "x.", &"x".repeat(65)] {
        let message = refused(&Wanted { experiment: bad.into(), ..wanted(&out) }).await;
        assert!(message.starts_with("experiment: found "), "{message}");
    }
    let resume = Wanted { resume: true, ..wanted(&out) };
    assert!(refused(&resume).await.contains("found none, expected a bundle that was begun before"));
    let (folder, _) = collected(&wanted(&out), &sources).await;
    #[cfg(unix)]
    {
        // Another process that collects there.
        let held = lock(&folder).expect("free");
        assert!(refused(&resume).await.contains("found another program collecting a bundle there"));
        drop(held);
    }
    let manifest = folder.join(MANIFEST);
    let mut value: Value = serde_json::from_slice(&fs::read(&manifest).expect("a file")).expect("JSON");
    value["format"] = json!(2);
    fs::write(&manifest, value.to_string()).expect("written");
    assert!(
        refused(&resume).await.contains("found form 2, expected the manifest of a bundle of this version")
    );
    value["format"] = json!(1);
    value["aircraft"][0]["folder"] = json!("../..");
    fs::write(&manifest, value.to_string()).expect("written");
    assert!(refused(&resume).await.contains("found the folder \"../..\""));
    fs::write(&manifest, "{").expect("written");
    assert!(refused(&resume).await.contains("manifest.json: found EOF"));
    assert!(matches!(collect(&wanted(&out), None, &[], &|_| {}).await, Err(BundleError::NoAircraft)));
}
