//! `wingbeat bench run PLAN --autopilot arducopter:PATH` as a program: what it refuses, what it leaves behind, and that a flight of
//! a real ArduCopter repeats.
#![allow(clippy::disallowed_methods, reason = "another program is waited for")]
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::programs::{
    left_in, newer_pretender, newer_real, nothing_is_left, pretender, real, root, signal, text_of,
};

/// A flight of the plan for real ArduCopters, with its temporary files under `temporary`.
fn bench(temporary: &Path, binary: &Path, rest: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeat"));
    command.current_dir(root()).env("TMPDIR", temporary);
    command.args(["bench", "run", "crates/bench/plans/muscop-sitl.toml", "--autopilot"]);
    command.arg(format!("arducopter:{}", binary.display())).args(rest);
    command
}

/// Whether the lock step can be flown here; a line says why not.
fn has_faketime() -> bool {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let found = folders.into_iter().any(|e| e.path().join("faketime/libfaketime.so.1").is_file());
    if !found {
        println!("skipped: no libfaketime here");
    }
    found
}

#[test]
fn what_cannot_be_flown_is_refused_with_one_message() {
    let (temporary, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // The newer dialect needs no libfaketime.
    let fine = newer_pretender(folder.path(), "exec sleep 1000");
    for (binary, rest, expected) in [
        (Path::new("/nowhere/arducopter"), &[][..], &["autopilot", "/nowhere/arducopter"][..]),
        (Path::new("/bin/true"), &[], &["/bin/true", "expected an ArduCopter SITL program"]),
        (Path::new(""), &[], &["--autopilot: found 'arducopter:', expected arducopter:PATH"]),
        (&fine, &["--uavs", "0"], &["aircraft: found 0"]),
        (&fine, &["--physics", "gazebo"], &["physics: found 'gazebo', expected proxy:HOST:PORT"]),
        (&fine, &["--physics", "proxy:127.0.0.1:0"], &["expected proxy:HOST:PORT"]),
        (&fine, &["--physics", "proxy:127.0.0.1:65530"], &["physics: found no port for aircraft 2"]),
        (&fine, &["--physics", "proxy:no.such.host.invalid:9002"], &["physics: no.such.host.invalid: "]),
        (&fine, &["--profile", "4.6.2"], &["--profile", "cannot be used with"]),
        (
            &fine,
            &["--physics", "proxy:127.0.0.1:9002", "--repeat", "2"],
            &["a plan of 2 flights, expected one"],
        ),
    ] {
        let output = bench(temporary.path(), binary, rest).output().unwrap();
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(2), "{rest:?}: {text}");
        assert!(expected.iter().all(|part| text.contains(part)), "{rest:?}: {text}");
        nothing_is_left(temporary.path());
    }
    let nowhere = Path::new("/nowhere");
    let text = text_of(&bench(nowhere, &fine, &[]).output().unwrap());
    assert!(text.contains("/nowhere: expected a folder for temporary files (TMPDIR)"), "{text}");
}

#[test]
fn a_program_that_dies_ends_the_flight_with_its_last_lines() {
    if has_faketime() {
        dies(pretender);
    }
    dies(newer_pretender);
}

/// A program that is started like one of SITL and ends.
fn dies(pretender: fn(&Path, &str) -> PathBuf) {
    let (temporary, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let binary = pretender(folder.path(), "echo no room; exit 4");
    let output = bench(temporary.path(), &binary, &["--uavs", "2"]).output().unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("aircraft 1: ArduCopter does not start: exit status 4"), "{text}");
    assert!(text.contains("no room"), "{text}");
    nothing_is_left(temporary.path());
}

#[test]
fn no_signal_leaves_a_process_or_a_file_behind() {
    if has_faketime() {
        is_ended_by_signals(pretender);
    }
    is_ended_by_signals(newer_pretender);
}

fn is_ended_by_signals(pretender: fn(&Path, &str) -> PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    // A script, with a program of its own.
    let binary = pretender(folder.path(), "sleep 1000 & while :; do sleep 1; done");
    for name in ["-INT", "-TERM", "-HUP", "-KILL"] {
        let temporary = tempfile::tempdir().unwrap();
        let mut command = bench(temporary.path(), &binary, &["--uavs", "2"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        while !left_in(temporary.path()).iter().any(|line| line.contains("--sim-port-in")) {
            assert!(Instant::now() < end, "no process runs: {:?}", left_in(temporary.path()));
            std::thread::sleep(Duration::from_millis(20));
        }
        signal(&child, name);
        assert!(!child.wait().unwrap().success(), "{name}");
        nothing_is_left(temporary.path());
    }
}

#[test]
fn three_arducopters_fly_muscop_and_a_second_run_is_the_same_byte_for_byte() {
    if let Some(binary) = real().filter(|_| has_faketime()) {
        flies_twice_the_same(&binary);
    }
}

#[test]
fn three_arducopters_of_4_fly_muscop_and_a_second_run_is_the_same_byte_for_byte() {
    if let Some(binary) = newer_real() {
        flies_twice_the_same(&binary);
    }
}

fn flies_twice_the_same(binary: &Path) {
    let temporary = tempfile::tempdir().unwrap();
    let fly = |seed: &str| {
        let output = bench(temporary.path(), binary, &["--uavs", "3", "--seed", seed]).output().unwrap();
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(0), "{text}");
        nothing_is_left(temporary.path());
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(printed.contains("\ntrace "), "{text}");
        printed
    };
    let first = fly("1");
    println!("{first}");
    assert_eq!(first, fly("1"));
    assert_ne!(first, fly("2"));
}

/// Heights that are no whole centimetres, which ArduCopter cuts, and a daemon that is restarted on its way.
const HEIGHTS: &str = r#"
name = "heights"
title = "Heights of a millimetre, and a daemon that is restarted in flight"
table = "flights"
repeat = 1
time_limit_s = 400

[own]
variants = ["off"]
height_m = 20.129

[[own.flight]]
name = "north and east"
[[own.flight.aircraft]]
speed_m_s = 5.0
east_north_m = [[0, 0], [0, 150], [40, 150]]

[channel]
model = "unrestricted"
draw = "second"

[[fault]]
when = { entered = { aircraft = 1, state = "Flying" } }
after_s = 25
inflict = { daemon-restarts = { aircraft = 1, guarded = true, for_s = 2 } }
"#;

#[test]
fn a_daemon_that_is_restarted_in_flight_knows_a_route_of_which_a_real_arducopter_cuts_the_heights() {
    let programs = [real().filter(|_| has_faketime()), newer_real()];
    for binary in programs.into_iter().flatten() {
        let (temporary, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let plan = folder.path().join("heights.toml");
        std::fs::write(&plan, HEIGHTS).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeat"));
        command.env("TMPDIR", temporary.path()).args(["bench", "run"]).arg(&plan);
        let by = format!("arducopter:{}", binary.display());
        let output = command.args(["--autopilot", &by, "--record"]).arg(folder.path()).output().unwrap();
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(text.contains("DaemonRestarts"), "{text}");
        let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeat"));
        let log = folder.path().join("flight-0001/uav-001.mcap");
        let text = text_of(&command.args(["log", "show"]).arg(log).output().unwrap());
        let said: Vec<&str> = text.lines().filter(|line| line.contains(" log ")).collect();
        let at = |part: &str| said.iter().position(|line| line.contains(part));
        let (taken_up, over) =
            (at("the flight is taken up: on to waypoint 1"), at("Landing: the mission is over"));
        assert!(taken_up.is_some() && taken_up < over && at("not taken up").is_none(), "{said:?}");
    }
}

/// Our ns-3 program, or a line that there is none.
fn ns3() -> Option<std::path::PathBuf> {
    let named = std::env::var_os("WINGBEAT_NS3").map(Into::into);
    let built =
        || Some(Path::new(env!("CARGO_BIN_EXE_wingbeat")).parent()?.parent()?.join("ns3/wingbeat-ns3"));
    let found = named.or_else(built).filter(|path| path.is_file());
    if found.is_none() {
        println!("skipped: no wingbeat-ns3 here (cargo xtask ns3 program)");
    }
    found
}

#[test]
fn ns3_moves_its_nodes_as_a_recorded_flight_in_its_mobility_file_was() {
    let Some(program) = ns3() else { return };
    let folder = tempfile::tempdir().unwrap();
    let wingbeat = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeat"));
        let output = command.current_dir(root()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", text_of(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let logs = folder.path().join("flight-0001").display().to_string();
    let record = folder.path().display().to_string();
    wingbeat(&["bench", "run", "crates/bench/plans/sweep.toml", "--repeat", "1", "--record", &record]);
    let mobility = folder.path().join("sweep.ns2");
    std::fs::write(&mobility, wingbeat(&["log", "export", &logs, "--to", "ns2"])).unwrap();
    // The same flight in another format: time, east, north and height, again and again, a line for each aircraft.
    let flown: Vec<Vec<[f64; 4]>> = wingbeat(&["log", "export", &logs, "--to", "bonnmotion"])
        .lines()
        .map(|line| {
            let numbers: Vec<f64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
            numbers.chunks(4).map(|fix| fix.try_into().unwrap()).collect()
        })
        .collect();
    let mut command = Command::new(program);
    command.args(["--nodes=3", "--until-s=140"]).arg(format!("--ns2={}", mobility.display()));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text_of(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    for line in text.lines() {
        let numbers: Vec<f64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [at_s, node, place @ ..] = &numbers[..] else { panic!("{line}") };
        let fix = flown[*node as usize].iter().rfind(|fix| fix[0] < at_s + 0.005).unwrap();
        for (found, expected) in place.iter().zip(&fix[1..]) {
            assert!((found - expected).abs() < 0.011, "{line}: expected {fix:?}");
        }
    }
    assert_eq!(text.lines().count(), 3 * 141);
    assert_eq!(flown.len(), 3);
}
