//! Bad input to the real program: one message that names the place, what was found and what was
//! expected, exit code 2, and nothing flown.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

fn refused(arguments: &[&str], parts: &[&str]) {
    refused_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), arguments, parts);
}

fn refused_in(folder: &Path, arguments: &[&str], parts: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeat"));
    refused_by(command.current_dir(folder), arguments, parts);
}

/// Where the environment names this.
fn refused_with(key: &str, path: &Path, arguments: &[&str], parts: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeat"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).env(key, path);
    refused_by(&mut command, arguments, parts);
}

fn refused_by(command: &mut Command, arguments: &[&str], parts: &[&str]) {
    let output = command.args(arguments).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(
        output.stdout.is_empty(),
        "{arguments:?} began to fly: {}",
        String::from_utf8_lossy(&output.stdout)
    );
    for part in parts {
        assert!(message.contains(part), "{arguments:?}: '{part}' is missing in: {message}");
    }
}

fn mission(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn missions_that_cannot_be_flown() {
    let folder = tempfile::tempdir().unwrap();
    let square = include_str!("../../../deploy/missions/square.waypoints");
    let tab = "\t";
    let third_height = square.lines().nth(3).unwrap().split(tab).nth(10).unwrap().to_owned();
    for (name, text, parts) in [
        ("empty.waypoints", String::new(), &["empty"][..]),
        ("version.waypoints", square.replacen("110", "120", 1), &["110"]),
        (
            "nan.waypoints",
            square.replacen(&format!("{tab}{third_height}{tab}"), "\tNaN\t", 3),
            &["NaN", "line"],
        ),
        ("high.waypoints", square.replace(&format!("{tab}{third_height}{tab}"), "\t500.0\t"), &["500"]),
        ("cut.plan", include_str!("../../../deploy/missions/survey.plan")[..400].to_owned(), &["cut.plan"]),
    ] {
        let path = mission(folder.path(), name, &text);
        let mut all = vec![name];
        all.extend(parts);
        refused(&["bench", "fleet", "--headless", "--mission", &path, "--ground", "127.0.0.1:0"], &all);
    }
    let far = ["bench", "fleet", "--headless", "--distance-from-home-m", "100", "--ground", "127.0.0.1:0"];
    refused(&far, &["survey.plan", "100"]);
    refused(&["bench", "fleet", "--headless", "--mission", "nowhere.plan"], &["nowhere.plan"]);
}

/// Where the repository is not, the default mission is found, and any other file is refused by its path.
#[test]
fn a_fleet_outside_the_repository_lacks_only_the_named_files() {
    let folder = tempfile::tempdir().unwrap();
    let fleet = |more: &[&str], parts: &[&str]| {
        let arguments = [&["bench", "fleet", "--ground", "127.0.0.1:0", "--uavs", "2"], more].concat();
        refused_in(folder.path(), &arguments, parts);
    };
    // Its farthest waypoint shows that it was read.
    fleet(&["--distance-from-home-m", "100"], &["survey.plan", "100"]);
    fleet(&["--mission", "deploy/missions/survey.plan"], &["deploy/missions/survey.plan"]);
    fleet(&["--web", "web/dist"], &["--web: found no web/dist/index.html", "npm run build"]);
    let plan = ["bench", "fleet", "--plan", "crates/bench/plans/sweep.toml"];
    refused_in(folder.path(), &plan, &["plan crates/bench/plans/sweep.toml"]);
}

#[test]
fn flags_that_make_no_flight() {
    for (flag, value, parts) in [
        ("--uavs", "0", &["aircraft: found 0", "1 to 128"][..]),
        ("--uavs", "1000", &["found 1000"]),
        ("--formation", "spiral", &["spiral", "linear, matrix, circular"]),
        ("--channel", "wifi", &["wifi", "802.11a"]),
        ("--speed", "0", &["speed: found 0"]),
        ("--speed-m-s", "NaN", &["speed_m_s: found NaN, expected 0.5 to 20 m/s"]),
        ("--gps-noise-m", "11", &["gps_noise_m: found 11, expected 0 to 10"]),
        ("--distance-m", "-5", &["-5"]),
        ("--ground", "nowhere", &["nowhere"]),
    ] {
        let flag = format!("{flag}={value}");
        refused(&["bench", "fleet", "--headless", &flag], parts);
    }
}

#[test]
fn formations_that_cannot_be_listed() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let near = file("near.csv", "0,0\n60,0\n60,10,30\n");
    let wrong = file("wrong.csv", "0,0\n60,sixty\n");
    refused(&["formation", "spiral"], &["spiral", "linear, matrix, circular"]);
    refused(&["formation", "custom"], &["--file: found none"]);
    refused(&["formation", "custom", "--file", &wrong], &["wrong.csv", "line 2: found \"sixty\""]);
    refused(&["formation", "custom", "--file", &near], &["slots 1 and 2 are 10.0 m apart over the ground"]);
    refused(&["formation", "linear", "--aircraft", "129"], &["1 to 128", "129"]);
    refused(&["formation", "linear", "--distance", "0"], &["found 0"]);
    refused(&["formation", "linear", "--heading", "NaN"], &["heading", "NaN"]);
    refused(&["bench", "takeoff", "--uavs", "0"], &["0 aircraft on the ground", "found 0"]);
    refused(&["bench", "takeoff", "--air", "custom"], &["found custom"]);
}

#[test]
fn a_port_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(&["bench", "fleet", "--headless", "--uavs", "2", "--ground", &address], &[&address, "in use"]);
    refused(&["ground", "--bind", &address, "127.0.0.1:1"], &[&address, "in use"]);
    let reached = ["ground", "127.0.0.1:1", "--bind", "0.0.0.0:0"];
    refused(&reached, &["--bind: found 0.0.0.0:0, which other computers reach", "--unprotected"]);
    let named = ["ground", "127.0.0.1:1", "--allow-host", "http://uav"];
    refused(&named, &["--allow-host: found \"http://uav\"", "expected a host name"]);
}

#[test]
fn link_tests_that_cannot_be_flown() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("test.csv");
    let path = out.display().to_string();
    let run = |more: &[&str], parts: &[&str]| {
        let ids = ["--sender", "00000000000000a1", "--receiver", "00000000000000a2", "--out", &path];
        refused(&[&["linktest", "run"][..], &ids, more].concat(), parts);
        assert!(!out.exists(), "{more:?}: a file of a test that was not flown");
    };
    run(&[], &["--ground"]);
    run(&["--ground", "127.0.0.1:1"], &["127.0.0.1:1: connection refused"]);
    run(&["--aircraft", "127.0.0.1:1"], &["http://127.0.0.1:1: connection refused"]);
    run(&["--ground", "127.0.0.1:1/api"], &["ground address \"127.0.0.1:1/api\"", "expected HOST:PORT"]);
    run(&["--ground", "127.0.0.1:1", "--aircraft", "127.0.0.1:2"], &["cannot be used with"]);
    run(&["--ground", "127.0.0.1:1", "--rate", "fast"], &["--rate", "fast"]);
    let nowhere = [
        "linktest",
        "run",
        "--ground",
        "127.0.0.1:1",
        "--sender",
        "a",
        "--receiver",
        "b",
        "--out",
        "/nowhere/x",
    ];
    refused(&nowhere, &["--out /nowhere/x"]);
}

#[test]
fn a_plan_with_an_unknown_key() {
    let folder = tempfile::tempdir().unwrap();
    let plan = include_str!("../../bench/plans/muscop-overhead.toml").replacen("repeat", "repaet", 1);
    let path = mission(folder.path(), "plan.toml", &plan);
    refused(&["bench", "run", &path], &["plan.toml", "line", "unknown field `repaet`", "expected"]);
}

/// A log of this repository.
fn recorded() -> String {
    let flight = "tests/flights";
    let file = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(flight)).unwrap();
    let file = file.map(|entry| entry.unwrap().path()).find(|p| p.extension().is_some_and(|e| e == "mcap"));
    file.unwrap().display().to_string()
}

#[test]
fn a_bundles_folder_is_read_as_far_as_its_logs_go_and_what_is_no_log_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    refused(&["log", "export", &path, "--to", "kml"], &[&path, "found no flight log"]);
    refused(&["log", "show", &path], &[&path, "found a folder, expected the log of one flight"]);
    let empty = mission(folder.path(), "empty.mcap", "");
    refused(&["log", "show", &empty], &["empty.mcap", "found an empty file, expected a flight log"]);
    std::fs::remove_file(&empty).unwrap();
    // Two aircraft, of which one lost its power.
    let whole = std::fs::read(recorded()).unwrap();
    for (aircraft, bytes) in [("aircraft-1", &whole[..]), ("aircraft-2", &whole[..whole.len() / 2])] {
        std::fs::create_dir(folder.path().join(aircraft)).unwrap();
        std::fs::write(folder.path().join(aircraft).join("000001-01.mcap"), bytes).unwrap();
    }
    std::fs::write(folder.path().join("manifest.json"), "{}").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeat"));
    let output = command.args(["log", "export", &path, "--to", "kml"]).output().unwrap();
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert_eq!(out.matches("<Placemark>").count(), 2);
    assert!(said.contains("aircraft-2") && said.contains("read up to its last good chunk"), "{said}");
}

#[test]
fn logs_that_cannot_be_stepped_through() {
    let file = recorded();
    let step = |more: &[&str], parts: &[&str]| {
        refused(&[&["log", "step", &file, "--anyway"], more].concat(), parts);
    };
    step(&["--until", "Takeoff"], &["--until", "\"Takeoff\"", "expected seconds, or a state", "TakingOff"]);
    step(&["--until=-1"], &["--until", "-1", "expected seconds from 0 on"]);
    step(&["--inputs", "0"], &["--inputs", "0"]);
    step(&["--inputs", "3", "--until", "Start"], &["--until", "--inputs"]);
    step(&["--from", "NaN"], &["--from", "NaN", "expected seconds"]);
    refused(&["log", "step", "nowhere.mcap"], &["nowhere.mcap", "No such file"]);
    refused(&["log", "step", "README.md"], &["README.md", "expected a flight log"]);

    // A state of another protocol: the steps are printed, and the message names the states that there are.
    let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeat"));
    let output = command.args(["log", "step", &file, "--anyway", "--until", "Following"]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("enters Following, expected") && message.contains("TakingOff, Normal"),
        "{message}"
    );
}

#[test]
fn logs_are_stepped_through_for_people_and_for_programs() {
    let file = recorded();
    let step = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeat"));
        let output = command.args(["log", "step", &file, "--anyway"]).args(more).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        // This program answers otherwise than the one that wrote it.
        assert_eq!(output.status.code(), Some(1), "{more:?}: {message}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = step(&["--until", "TakingOff"]);
    let states: Vec<&str> = text.lines().filter_map(|line| line.split_once(" = ")).map(|(_, s)| s).collect();
    let names: Vec<&str> = states.iter().map(|state| state.split(':').next().unwrap()).collect();
    assert_eq!(names, ["Start", "Setup", "SetupFinished", "TakingOff"]);
    assert!(text.contains(" < autopilot ") && text.contains(" > to-autopilot "), "{text}");

    let json = step(&["--until", "TakingOff", "--json"]);
    let objects: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (end, steps) = objects.split_last().unwrap();
    assert_eq!(end["end"]["is_reached"], true);
    assert_eq!(end["end"]["inputs"], steps.len());
    let last = steps.last().unwrap();
    assert_eq!((&last["state"]["state"], &last["is_entered"]), (&"TakingOff".into(), &true.into()));
    let bytes = |step: &serde_json::Value| {
        step["outputs"].as_array().unwrap().iter().find_map(|output| Some(output["hex"].as_str()?.to_owned()))
    };
    let first = steps.iter().find_map(bytes).unwrap();
    assert!(first.starts_with("fd") && first.len() > 128, "all bytes: {first}");

    // By number and by time, and only a part of it.
    let three = step(&["--inputs", "3", "--json"]);
    assert_eq!(three.lines().count(), 4);
    let end: serde_json::Value = serde_json::from_str(three.lines().last().unwrap()).unwrap();
    assert_eq!(end["end"]["difference"]["number"], 2, "{three}");
    let part = step(&["--from", "2", "--until", "2.5", "--json"]);
    let times: Vec<f64> = part
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["time_s"].as_f64())
        .collect();
    assert!(times.len() > 2 && times.iter().all(|at| (2.0..=2.5).contains(at)), "{times:?}");
}

#[test]
fn logs_that_cannot_be_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let file = recorded();
    refused(
        &["log", "compare", &path, &file],
        &[&path, "found no flight log", "expected one of each aircraft"],
    );
    let missing = format!("{path}/none.mcap");
    refused(&["log", "compare", &file, &missing], &[&missing, "No such file"]);
    std::fs::write(folder.path().join("text.mcap"), "no log").unwrap();
    refused(&["log", "diff", &file, &format!("{path}/text.mcap")], &["text.mcap", "expected a flight log"]);
    refused(
        &["log", "diff", &file, &file, "--only", "logs"],
        &["--only", "\"logs\"", "expected names of", "before"],
    );
    refused(
        &["log", "export", &file, "--to", "kml", "--flat"],
        &["--flat", "expected ns2, bonnmotion or scr"],
    );
    refused(&["log", "export", &file, "--to", "parquet"], &["--out FILE", "expected a file"]);
    let several = ["log", "export", &file, &file, "--to", "csv"];
    refused(&several, &["--out FOLDER", "2 logs", "expected a folder"]);
    refused(&["log", "export", &file, "--to", "all"], &["--out FOLDER", "expected a folder"]);
    refused(
        &[&several[..], &["--out", &file]].concat(),
        &["--out", &file, "found a file, expected a folder"],
    );
}

#[test]
fn computers_that_do_not_fly_together() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    let plan = "tests/browser/crossing.toml";
    refused(&["bench", "run", plan, "--hosts", "1"], &["--hosts", "hosts.count: found 1, expected 2 to 16"]);
    refused(
        &["bench", "run", plan, "--hosts", "two"],
        &["found 'two', expected a number of computers, or N:PORT"],
    );
    refused(&["bench", "run", plan, "--hosts", "2", "--join", "127.0.0.1:1"], &["--number"]);
    // What the flag is refused beside is refused beside the plan's key, too.
    let path = folder.path().join("plan.toml");
    let text = std::fs::read_to_string(root.join(plan)).unwrap();
    std::fs::write(&path, format!("{text}\n[hosts]\ncount = 2\n")).unwrap();
    let (own, out) = (path.to_str().unwrap(), folder.path().join("out").display().to_string());
    let several = "found a plan for 2 computers (hosts), expected one without";
    refused(&["bench", "run", own, "--phases"], &["--phases", several]);
    refused(&["bench", "run", own, "--out", &out], &["--out", several]);
    refused(&["bench", "run", own, "--threads", "2"], &["--threads: found 2, expected 1"]);
    refused(&["bench", "fleet", "--plan", own], &["bench fleet", several]);
    let media = "crates/bench/plans/media.toml";
    refused(&["bench", "run", media, "--hosts", "2"], &["media: found some in a plan for several computers"]);
    let guidance = "crates/bench/plans/dusc-guidance.toml";
    refused(&["bench", "run", guidance, "--hosts", "2"], &["hosts: found a plan without aircraft"]);
    let join = ["bench", "run", plan, "--join", "nowhere", "--number", "2"];
    refused(&join, &["--join: found 'nowhere', expected ADDRESS:PORT of the first computer"]);
    let join = ["bench", "run", plan, "--join", "127.0.0.1:1", "--number"];
    refused(
        &[&join[..], &["2"]].concat(),
        &["hosts: found none, expected how many computers fly (--hosts N, or [hosts] in the plan)"],
    );
    refused(&[&join[..], &["3", "--hosts", "2"]].concat(), &["--number: found 3, expected 2"]);
    let taken = TcpListener::bind("0.0.0.0:0").unwrap();
    let pass_on = format!("1:{}", taken.local_addr().unwrap().port());
    refused(
        &[&join[..], &["2", "--hosts", "3", "--pass-on", &pass_on]].concat(),
        &["--pass-on: found", "a port that is free"],
    );
    let hosts = format!("2:{}", taken.local_addr().unwrap().port());
    refused(&["bench", "run", plan, "--hosts", &hosts], &["hosts.port: found", "a port that is free"]);

    let missing = folder.path().join("libhelics.so.3");
    let free = TcpListener::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port();
    let two = ["bench", "run", plan, "--hosts", &format!("2:{free}")];
    refused_with("WINGBEAT_HELICS", &missing, &two, &["found no HELICS", "pip install helics"]);
    // Of another version, and none at all; a library is made by what links this test.
    let (source, old) = (folder.path().join("old.c"), folder.path().join("old.so"));
    for (text, expected) in [
        ("const char *helicsGetVersion(void) { return \"2.8.0 (2021-11-08)\"; }", "found HELICS 2.8.0"),
        ("const char *helicsGetVersion(void) { return \"3.0.0\"; }", "found no helicsErrorInitialize"),
        ("int other;", "found no helicsGetVersion"),
    ] {
        std::fs::write(&source, text).unwrap();
        let made = Command::new("cc").args(["-shared", "-o"]).arg(&old).arg(&source).status().unwrap();
        assert!(made.success());
        refused_with("WINGBEAT_HELICS", &old, &two, &["hosts: ", "old.so", expected]);
    }
}

/// A shell script in the place of the program that is ns-3.
fn in_place_of_ns3(folder: &Path, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.join("wingbeat-ns3");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

const OVER_NS3: [&str; 5] = ["bench", "run", "tests/browser/crossing.toml", "--medium", "ns3"];

#[test]
fn an_ns3_that_is_missing_another_or_dead() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    refused_with("WINGBEAT_NS3", &missing, &OVER_NS3, &["channel.model: WINGBEAT_NS3: found no file"]);
    for (script, parts) in [
        ("echo hello; cat", &["found a greeting of", "expected wingbeat-ns3 with protocol"][..]),
        ("printf 'WBN3\\002\\000'; cat", &["expected wingbeat-ns3 with protocol 3: build it again"]),
        (
            "echo libns3.so: not found >&2; exit 127",
            &["ns-3 ended: exit status: 127", "libns3.so: not found"],
        ),
        (
            "printf 'WBN3\\003\\000'; head -c 4 >/dev/null; echo abort >&2; exit 134",
            &["ns-3 ended: exit status: 134", "abort"],
        ),
    ] {
        let program = in_place_of_ns3(folder.path(), script);
        refused_with("WINGBEAT_NS3", &program, &OVER_NS3, parts);
    }
}

/// One that hangs reads no end of its input: it is killed all the same.
#[test]
#[allow(clippy::disallowed_methods, reason = "processes run in real time")]
fn an_ns3_that_hangs_does_not_outlive_a_bench_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let id = folder.path().join("id");
    let hangs = format!("printf 'WBN3\\003\\000'; sleep 1; echo $$ > {}; exec sleep 1000", id.display());
    let program = in_place_of_ns3(folder.path(), &hangs);
    let mut bench = Command::new(env!("CARGO_BIN_EXE_wingbeat"));
    bench.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let mut bench = bench.args(OVER_NS3).env("WINGBEAT_NS3", program).spawn().unwrap();
    let soon = |what: &str, is_so: &dyn Fn() -> bool| {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !is_so() {
            assert!(std::time::Instant::now() < end, "{what}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    let read = || std::fs::read_to_string(&id).unwrap_or_default();
    soon("it starts", &|| read().ends_with('\n'));
    let stat = format!("/proc/{}/stat", read().trim());
    // One that nothing waits for is left in the table of processes.
    let lives = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(lives());
    bench.kill().unwrap();
    bench.wait().unwrap();
    soon("it is killed", &|| !lives());
}
