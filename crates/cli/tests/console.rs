//! `wingbeat fleet` as a console: the real program against a real ground service, whose aircraft are fakes.
#![allow(clippy::disallowed_methods, reason = "processes run in real time")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Answers, Fake, all_up, ground, id, picture};
use serde_json::{Value, json};
use wingbeat_api::{Command as Ordered, UserRole};
use wingbeat_ground::checklist::{Configured, List};
use wingbeat_ground::{
    Config, Ground, Handle, Hosts, PageCertificate, Protection, SESSION, certificate, users,
};

const PASSWORD: &str = "correct horse";

/// What the program printed, and its exit code.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {} {}", self.out, self.err))
    }

    #[track_caller]
    fn ends(&self, code: i32, words: &[&str]) {
        let all = format!("{}{}", self.out, self.err);
        assert_eq!(self.code, Some(code), "{all}");
        for word in words {
            assert!(all.contains(word), "{word:?} is missing in: {all}");
        }
    }
}

/// `wingbeat fleet` with these arguments, of no user with a session elsewhere.
async fn fleet(arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeat"));
    command.arg("fleet").args(arguments).env_remove("WINGBEAT_GROUND").env("XDG_RUNTIME_DIR", "/nowhere");
    let Output { status, stdout, stderr } =
        tokio::task::spawn_blocking(move || command.output()).await.expect("it is run").expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: status.code(), out: text(stdout), err: text(stderr) }
}

async fn two() -> (Vec<Fake>, Handle, String) {
    let fakes = vec![Fake::start(1).await, Fake::start(2).await];
    let handle = ground(&fakes).await;
    picture(&handle, "their statuses arrive", all_up).await;
    let at = handle.address().to_string();
    (fakes, handle, at)
}

fn commands(fake: &Fake) -> Vec<Ordered> {
    let mut received = fake.received();
    received.dedup_by_key(|request| request.id.clone());
    received.into_iter().map(|request| request.command).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_followed_until_each_aircraft_has_shown_its_effect() {
    let (fakes, _handle, at) = two().await;
    let held = fleet(&["hold", "--all", "--ground", &at, "--json", "--id", "h1", "--reason", "wind"]).await;
    held.ends(0, &[]);
    let answer = held.json();
    assert_eq!((&answer["id"], &answer["done"], &answer["of"]), (&json!("h1"), &json!(2), &json!(2)));
    assert_eq!(answer["results"][0]["outcome"], "effect_seen");
    assert_eq!((commands(&fakes[0]), commands(&fakes[1])), (vec![Ordered::Hold], vec![Ordered::Hold]));
    // The same id is the same command, and another one under it is refused.
    fleet(&["hold", "--all", "--ground", &at, "--id", "h1"]).await.ends(0, &["hold: seen at 2 aircraft"]);
    fleet(&["land", "--all", "--ground", &at, "--id", "h1"]).await.ends(2, &["h1"]);
    assert_eq!(commands(&fakes[0]), [Ordered::Hold]);
    fleet(&["commands", "--ground", &at]).await.ends(0, &["h1 hold (wind)", "UAV 1", "UAV 2", "effect seen"]);

    let one = id(1);
    for (name, expected) in [
        ("setup", Ordered::Setup),
        ("start", Ordered::Start),
        ("resume", Ordered::Resume),
        ("return", Ordered::Return),
        ("land", Ordered::Land),
        ("recover", Ordered::RecoverControl),
        ("engage", Ordered::Engage),
        ("set-parameters", Ordered::SetParameters),
    ] {
        let before = commands(&fakes[1]).len();
        let ran = fleet(&[name, &one, "--ground", &at, "--within", "5"]).await;
        assert!(ran.code == Some(0) || ran.code == Some(2), "{name}: {:?} {}{}", ran.code, ran.out, ran.err);
        if ran.code == Some(0) {
            assert_eq!(commands(&fakes[0]).last(), Some(&expected), "{name}");
        }
        assert_eq!(commands(&fakes[1]).len(), before, "{name} was for the first alone");
    }
    assert!(commands(&fakes[0]).len() >= 4, "hold, return, land and recover are taken in every state");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_aircraft_refuses_is_told_with_its_reason_and_exit_code_1() {
    let (fakes, _handle, at) = two().await;
    fakes[1].lock().answers = Answers::Refuse("set parameters: armed");
    let ran = fleet(&["set-parameters", "UAV 1", "UAV 2", "--ground", &at]).await;
    ran.ends(
        1,
        &["UAV 1 0000000000000001: effect seen", "UAV 2 0000000000000002: failed", "set parameters: armed"],
    );
    ran.ends(1, &["set parameters: seen at 1 of 2 aircraft"]);
    // One that never shows its effect is waited for, and not for ever.
    fakes[0].lock().effect = false;
    let late = fleet(&["set-parameters", "UAV 1", "--ground", &at, "--within", "1", "--json"]).await;
    late.ends(1, &[]);
    assert_eq!((&late.json()["open"], &late.json()["done"]), (&json!(1), &json!(0)));
    let sent = fleet(&["hold", "UAV 1", "--ground", &at, "--no-wait", "--id", "later"]).await;
    sent.ends(0, &["hold later: sent to 1 aircraft; wingbeat fleet outcome later"]);
    fleet(&["outcome", "later", "--within", "1", "--ground", &at]).await.ends(1, &["1 not over"]);
    fleet(&["outcome", "other", "--within", "1", "--ground", &at]).await.ends(3, &["other", "not known"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_meant_wrongly_sends_nothing() {
    let (fakes, handle, at) = two().await;
    fleet(&["land", "--ground", &at]).await.ends(2, &["--all"]);
    fleet(&["land", "UAV 1", "--all", "--ground", &at]).await.ends(2, &["cannot be used with"]);
    let words = ["\"UAV 9\"", "UAV 1 (0000000000000001)", "nothing is sent"];
    fleet(&["land", "UAV 9", "--ground", &at]).await.ends(2, &words);
    fleet(&["exclude", "UAV 9", "--ground", &at]).await.ends(2, &words);
    fakes[1].lock().status.name = "UAV 1".to_owned();
    picture(&handle, "it is renamed", |now| {
        now.aircraft.iter().filter_map(|a| a.status.as_ref()).all(|status| status.name == "UAV 1")
    })
    .await;
    fleet(&["land", "UAV 1", "--ground", &at]).await.ends(2, &["of this name, expected an id"]);
    let refused = fleet(&["note", "none", "why", "--ground", &at, "--json"]).await;
    refused.ends(2, &[]);
    let refused: Value = serde_json::from_str(&refused.err).expect("JSON");
    assert_eq!(refused["code"], "not_found", "{refused}");
    fleet(&["api", "GET", "/api/v1/nothing", "--ground", &at]).await.ends(2, &["/api/v1/nothing"]);
    fleet(&["api", "JUMP", "/", "--ground", &at])
        .await
        .ends(2, &["\"JUMP\", expected GET, POST, PUT or DELETE"]);
    assert!(fakes.iter().all(|fake| fake.received().is_empty()));

    fleet(&["status", "--ground", "127.0.0.1:1"]).await.ends(
        2,
        &["no service answers at http://127.0.0.1:1: connection refused; is `wingbeat ground` running there?"],
    );
    fleet(&["status", "--ground", "https://127.0.0.1:1"]).await.ends(2, &["expected the fleet's pages.crt"]);
    let open = ["sign-in", "--ground", "10.255.255.1:8700", "--user", "otto"];
    fleet(&open).await.ends(2, &["found no TLS on the way to another computer"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fleet_is_shown_as_text_and_as_json() {
    let (fakes, handle, at) = two().await;
    fakes[1].lock().status.name = "\u{1b}[2J\u{202e}two".to_owned();
    picture(&handle, "it is renamed", |now| {
        now.aircraft.iter().filter_map(|a| a.status.as_ref()).any(|status| status.name.ends_with("two"))
    })
    .await;
    let shown = fleet(&["status", "--ground", &at]).await;
    shown.ends(0, &["NAME", "UAV 1", "LOITER", "disarmed", "[U+001B][2J[U+202E]two", "setup: ", "start: "]);
    assert!(!shown.out.contains('\u{1b}'), "no aircraft controls the terminal");
    let json = fleet(&["status", "--ground", &at, "--json"]).await.json();
    assert_eq!(json["aircraft"].as_array().map(Vec::len), Some(2));
    assert_eq!(fleet(&["aircraft", "UAV 1", "--ground", &at]).await.json()["status"]["id"], id(1));
    fleet(&["lease", "--ground", &at]).await.ends(0, &["AIRCRAFT", "UAV 1"]);
    fleet(&["take-over", "--all", "--ground", &at]).await.ends(0, &["UAV 1: this service is in charge"]);
    fleet(&["links", "--ground", &at]).await.ends(0, &["RECEIVES", "1: not known: "]);
    fleet(&["link-test", "--ground", &at]).await.ends(2, &["no link test since this service started"]);
    fleet(&["session", "--ground", &at]).await.ends(0, &["has no users"]);
    fleet(&["audit", "--ground", &at]).await.ends(0, &["NUMBER"]);
    let formations = fleet(&["formations", "--aircraft", "3", "--ground", &at]).await.json();
    assert!(formations["formations"].as_array().is_some_and(|all| all.len() > 3));
    let watched = fleet(&["watch", "--events", "2", "--ground", &at, "--json"]).await;
    watched.ends(0, &[]);
    let events: Vec<Value> =
        watched.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((events.len(), &events[0]["event"]), (2, &json!("picture")));
    let watching = tokio::spawn({
        let at = at.clone();
        async move { fleet(&["watch", "--events", "12", "--ground", &at]).await }
    });
    for number in 0..40 {
        fakes[0].lock().logs.push(format!("gust {number}"));
        fakes[0].lock().status.flight_controller.mode = Some(format!("MODE{number}"));
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    watching.await.expect("it ends").ends(0, &["UAV 1: gust ", "UAV 1: mode MODE"]);
}

/// A client as Foxglove is one: protocol `foxglove.sdk.v1`.
#[tokio::test(flavor = "multi_thread")]
async fn foxglove_is_shown_the_fleet_as_it_flies() {
    use futures_util::{SinkExt as _, StreamExt as _};
    use tokio_tungstenite::tungstenite::{Message, client::IntoClientRequest as _};

    let (fakes, handle, at) = two().await;
    // 111 m north of the first.
    fakes[1].lock().status.navigation.as_mut().expect("a position").position.latitude_deg = 39.481;
    picture(&handle, "it has moved", |now| {
        let position = |aircraft: &wingbeat_api::FleetAircraft| {
            Some(aircraft.status.as_ref()?.navigation.as_ref()?.position.latitude_deg)
        };
        now.aircraft.iter().any(|aircraft| position(aircraft) == Some(39.481))
    })
    .await;
    for listen in ["0.0.0.0:8765", "10.1.2.3:0"] {
        let words = ["--listen", listen, "expected an address of this computer alone"];
        fleet(&["live", "--listen", listen, "--ground", &at]).await.ends(2, &words);
    }
    let mut live = tokio::process::Command::new(env!("CARGO_BIN_EXE_wingbeat"))
        .args(["fleet", "live", "--listen", "127.0.0.1:0", "--json", "--ground", &at])
        .env("XDG_RUNTIME_DIR", "/nowhere")
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it runs");
    let out = tokio::io::BufReader::new(live.stdout.take().expect("its output"));
    let line = tokio::io::AsyncBufReadExt::lines(out).next_line().await.expect("a line").expect("a line");
    let listening: Value = serde_json::from_str(&line).expect("JSON");
    let address = listening["listening"].as_str().expect("an address");
    let port = address.rsplit(':').next().expect("a port");
    fleet(&["live", "--listen", &format!("127.0.0.1:{port}"), "--ground", &at])
        .await
        .ends(2, &["--listen", "expected a free port"]);

    let mut request = address.into_client_request().expect("a request");
    request.headers_mut().insert("sec-websocket-protocol", "foxglove.sdk.v1".parse().expect("a header"));
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.expect("it is connected");
    let gusts = tokio::spawn(async move {
        for number in 0.. {
            fakes[0].lock().logs.push(format!("gust {number}"));
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    });
    // Subscribed to as channels are advertised: topic and encoding by number.
    let (mut topics, mut found) = (BTreeMap::new(), BTreeMap::<String, Value>::new());
    let wanted = ["/UAV-1/aircraft", "/UAV-1/position", "/UAV-1/separation", "/UAV-2/position", "/log"];
    let all = async {
        while !wanted.iter().all(|topic| found.contains_key(*topic)) {
            match socket.next().await.expect("it goes on").expect("a message") {
                Message::Text(text) => {
                    let told: Value = serde_json::from_str(&text).expect("JSON");
                    for channel in told["channels"].as_array().into_iter().flatten() {
                        assert_eq!(
                            (&channel["encoding"], &channel["schemaEncoding"]),
                            (&json!("json"), &json!("jsonschema"))
                        );
                        let schema: Value =
                            serde_json::from_str(channel["schema"].as_str().expect("a schema"))
                                .expect("JSON");
                        assert_eq!(schema["title"], channel["schemaName"]);
                        let number = channel["id"].as_u64().expect("a number");
                        topics
                            .insert(number, (channel["topic"].as_str().expect("a topic").to_owned(), schema));
                        let subscribe = json!({ "op": "subscribe", "subscriptions": [{ "id": number, "channelId": number }] });
                        socket.send(Message::text(subscribe.to_string())).await.expect("it is sent");
                    }
                }
                // Operation, subscription, nanoseconds since 1970, message.
                Message::Binary(bytes) if bytes[0] == 1 => {
                    let number = u32::from_le_bytes(bytes[1..5].try_into().expect("four bytes"));
                    let ns = u64::from_le_bytes(bytes[5..13].try_into().expect("eight bytes"));
                    let now = std::time::SystemTime::now()
                        .duration_since(std::time::UNIX_EPOCH)
                        .expect("after 1970");
                    assert!(now.as_nanos().abs_diff(ns.into()) < 60_000_000_000, "{ns} at {now:?}");
                    let (topic, schema) = &topics[&u64::from(number)];
                    let message: Value = serde_json::from_slice(&bytes[13..]).expect("JSON");
                    for field in message.as_object().expect("an object").keys() {
                        assert!(
                            schema["properties"][field].is_object(),
                            "{topic}: {field} is not in its schema"
                        );
                    }
                    found.insert(topic.clone(), message);
                }
                other => panic!("found {other:?}"),
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), all).await.expect("all topics in time");
    gusts.abort();
    let known = handle.picture().await.expect("a picture");
    let status = known.aircraft[0].status.as_ref().expect("known");
    let position = status.navigation.as_ref().expect("a position").position;
    assert_eq!(found["/UAV-1/position"]["latitude"], json!(position.latitude_deg));
    assert_eq!(found["/UAV-1/position"]["altitude"], json!(position.altitude_m));
    assert_eq!(found["/UAV-1/aircraft"]["state"], json!(format!("{:?}", status.state)));
    assert_eq!(found["/UAV-1/aircraft"]["link"], "up");
    assert_eq!(found["/UAV-1/separation"]["nearest"], "UAV-2");
    let apart_m = found["/UAV-1/separation"]["horizontal_m"].as_f64().expect("metres");
    assert!((111.0..111.1).contains(&apart_m), "{apart_m}");
    assert!(found["/log"]["message"].as_str().is_some_and(|text| text.starts_with("gust ")));
    assert_eq!(found["/log"]["name"], "UAV-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn missions_are_read_previewed_and_sent() {
    let (fakes, _handle, at) = two().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("square.waypoints");
    let row = |number: usize, latitude: f64, longitude: f64, height: f64| {
        let (command, frame) = if number == 0 { (16, 0) } else { (16, 3) };
        format!("{number}\t0\t{frame}\t{command}\t0\t0\t0\t0\t{latitude}\t{longitude}\t{height}\t1\n")
    };
    let mut text = "QGC WPL 110\n".to_owned();
    text += &row(0, 39.48, -0.34, 50.0);
    for (number, (latitude, longitude)) in (1..).zip([(39.481, -0.34), (39.481, -0.341), (39.48, -0.341)]) {
        text += &row(number, latitude, longitude, 20.0);
    }
    std::fs::write(&file, &text).expect("written");
    let path = file.to_str().expect("UTF-8");
    fleet(&["mission", "read", path, "--ground", &at]).await.ends(0, &["square", "3 waypoints"]);
    let preview = fleet(&["mission", "preview", path, "UAV 1", "--ground", &at]).await;
    preview.ends(0, &["to its first waypoint"]);
    assert!(fakes[0].lock().mission.is_none(), "a preview sends nothing");
    let sent = fleet(&["mission", "send", path, "UAV 1", "--ground", &at]).await;
    sent.ends(0, &["0000000000000001: holds ", "3 waypoints"]);
    assert_eq!(fakes[0].lock().mission.as_ref().map(|mission| mission.waypoints.len()), Some(3));
    assert!(fakes[1].lock().mission.is_none());
    let far = folder.path().join("far.waypoints");
    std::fs::write(&far, text.replace("39.48", "38.48")).expect("written");
    let far = far.to_str().expect("UTF-8");
    fleet(&["mission", "send", far, "UAV 2", "--ground", &at])
        .await
        .ends(2, &["nothing is sent (--anyway sends)"]);
    assert!(fakes[1].lock().mission.is_none());
    let out = folder.path().join("square.plan");
    let out = out.to_str().expect("UTF-8");
    let export = ["mission", "export", path, "--format", "plan", "--out", out, "--ground", &at];
    fleet(&export).await.ends(0, &["square.plan: "]);
    assert!(std::fs::read_to_string(out).expect("written").contains("\"fileType\""));
    let plan = folder.path().join("plan.toml");
    let plan_path = plan.to_str().expect("UTF-8");
    let plan_of = ["mission", "plan", path, "--as", "muscop", "--out", plan_path, "--ground", &at];
    fleet(&plan_of).await.ends(0, &["plan.toml: "]);
    let plan = std::fs::read_to_string(&plan).expect("written");
    assert!(plan.contains("formation = \"linear\""), "{plan}");
    fleet(&["mission", "read", path, "--only", "2", "--ground", &at])
        .await
        .ends(2, &["found 2, expected 1 to 1"]);
    let huge = folder.path().join("huge.waypoints");
    std::fs::write(&huge, vec![b' '; 3 << 20]).expect("written");
    let huge = huge.to_str().expect("UTF-8");
    fleet(&["mission", "read", huge, "--ground", &at])
        .await
        .ends(2, &["found 3145728 bytes, expected at most 2097152"]);
}

/// What the service kept of its checklist with flights lies in the bundle, byte for byte; where it cannot be given the logs are asked for
/// all the same, and the manifest says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_of_this_computer_has_what_was_kept_of_checklists() {
    let folder = tempfile::tempdir().expect("a folder");
    let (list, kept, out) =
        (folder.path().join("list.toml"), folder.path().join("checklists"), folder.path().join("out"));
    std::fs::write(&list, "title = \"Lab\"\n[[item]]\nid = \"area\"\ntext = \"The area is clear\"\n")
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
        protection: Protection {
            checklist: Some(Configured { list: List::read(&list).expect("a list"), folder: kept.clone() }),
            ..Protection::default()
        },
    })
    .await
    .expect("it starts");
    picture(&handle, "its status arrives", all_up).await;
    let name = "checklist-20261126T185737Z.json";
    let content = "{\n  \"command\": \"start\"\n}\n";
    std::fs::write(kept.join(name), content).expect("written");
    let at = handle.address().to_string();
    let out_path = out.to_str().expect("UTF-8");
    let bundle =
        ["bundle", "--out", out_path, "--experiment", "one", "--autopilot-logs", "0", "--ground", &at];
    // A fake has no logs: that is missing, and exit code 1.
    let ran = fleet(&bundle).await;
    ran.ends(1, &["checklists: 1 of flights", "0 of 1 aircraft"]);
    let made = std::fs::read_dir(out.join("one"))
        .expect("a folder")
        .next()
        .expect("a bundle")
        .expect("readable")
        .path();
    let read = |path: &Path| std::fs::read_to_string(path).expect("text");
    assert_eq!(read(&made.join("checklists").join(name)), content);
    let manifest = || serde_json::from_str::<Value>(&read(&made.join("manifest.json"))).expect("JSON");
    assert_eq!((&manifest()["checklists"][0]["name"], manifest().get("missing")), (&json!(name), None));

    std::fs::remove_dir_all(&kept).expect("gone");
    let again: Vec<&str> = bundle.iter().copied().chain(["--resume"]).collect();
    fleet(&again).await.ends(1, &["checklists: 1 of flights", "missing: checklists: "]);
    assert_eq!(manifest()["missing"][0]["what"], "checklists");
    assert_eq!(manifest()["aircraft"].as_array().map(Vec::len), Some(1), "it was asked all the same");
    assert_eq!(read(&made.join("checklists").join(name)), content);
}

fn add(folder: &Path, name: &str, role: UserRole) {
    let entry = users::Entry::new(role, PASSWORD).expect("a good password");
    users::change(&folder.join("users.toml"), |all| {
        all.insert(name.to_owned(), entry);
        Ok(())
    })
    .expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_signs_in_by_tls_to_the_service_that_the_fleet_certified_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    certificate::init(folder.path()).expect("an authority");
    certificate::issue(folder.path(), folder.path(), &["127.0.0.1".to_owned()]).expect("a certificate");
    let other = tempfile::tempdir().expect("a folder");
    certificate::init(other.path()).expect("an authority");
    for (name, role) in
        [("otto", UserRole::Operator), ("olga", UserRole::Observer), ("adam", UserRole::Administrator)]
    {
        add(folder.path(), name, role);
    }
    std::fs::write(at("password"), format!("{PASSWORD}\nmore\n")).expect("written");
    std::fs::write(at("wrong"), "wrong horse\n").expect("written");
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
        protection: Protection {
            users: Some(at("users.toml").into()),
            audit: None,
            session: SESSION,
            checklist: None,
            tls: Some(PageCertificate {
                certificate: at(certificate::PAGE_CERTIFICATE).into(),
                key: at(certificate::PAGE_KEY).into(),
            }),
        },
    })
    .await
    .expect("it starts");
    picture(&handle, "its status arrives", all_up).await;
    let (service, trust, sessions) =
        (handle.address().to_string(), at(certificate::AUTHORITY_CERTIFICATE), at("sessions"));
    let with = |more: &[&'static str]| {
        let mut all: Vec<String> = more.iter().map(|&word| word.to_owned()).collect();
        all.extend(["--ground", &service, "--trust", &trust, "--sessions", &sessions].map(str::to_owned));
        all
    };
    let run =
        async |arguments: Vec<String>| fleet(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let (password, wrong) = (at("password"), at("wrong"));
    let as_user = |mut all: Vec<String>, name: &str, file: &str| {
        all.extend(["--user", name, "--password-file", file].map(str::to_owned));
        all
    };

    // Another authority's, and without TLS.
    let foreign = other.path().join(certificate::AUTHORITY_CERTIFICATE);
    let foreign = foreign.to_str().expect("UTF-8");
    let not_trusted = "found a certificate that is not trusted for this address";
    fleet(&["status", "--ground", &service, "--trust", foreign]).await.ends(2, &[not_trusted]);
    fleet(&["status", "--ground", &service]).await.ends(2, &["expected HTTPS"]);
    let advice = "(wingbeat fleet sign-in --user NAME";
    run(with(&["status"])).await.ends(2, &["found no session, expected one of a user", advice]);
    run(as_user(with(&["sign-in"]), "otto", &wrong)).await.ends(2, &["do not belong together"]);
    run(as_user(with(&["sign-in"]), "otto", &password)).await.ends(0, &["otto, operator, for 1"]);
    let kept = std::fs::read_dir(&sessions).expect("a folder").next().expect("a file").expect("readable");
    assert_eq!(kept.metadata().expect("readable").permissions().mode() & 0o777, 0o600);
    run(with(&["session"])).await.ends(0, &["otto, operator"]);
    run(with(&["hold", "--all"])).await.ends(0, &["hold: seen at 1 aircraft"]);
    run(with(&["users"])).await.ends(2, &["found a user of role operator, expected administrator"]);
    // One command of another user, whose session ends with it.
    let olga = run(as_user(with(&["land", "--all"]), "olga", &password)).await;
    olga.ends(2, &["found a user of role observer, expected operator or more"]);
    let users = run(as_user(with(&["users", "--json"]), "adam", &password)).await.json();
    assert_eq!(
        users["users"],
        json!([
            { "name": "adam", "role": "administrator", "sessions": 1 },
            { "name": "olga", "role": "observer", "sessions": 0 },
            { "name": "otto", "role": "operator", "sessions": 1 },
        ])
    );
    run(as_user(with(&["end-sessions", "otto"]), "adam", &password)).await.ends(0, &[]);
    run(with(&["status"])).await.ends(2, &["found a session that was ended", advice]);
    run(with(&["sign-out"])).await.ends(0, &[]);
    run(with(&["sign-out"])).await.ends(2, &["found no session"]);
    assert_eq!(commands(&fake), [Ordered::Hold]);
    let by: Vec<_> =
        handle.picture().await.expect("it runs").commands.into_iter().map(|one| one.by).collect();
    assert_eq!(by, ["otto"]);
}
