//! `wingbeat bench run PLAN --autopilot arducopter:PATH` as a program: what it refuses, what it leaves behind, and that a flight of
//! a real ArduCopter repeats.
#![allow(clippy::disallowed_methods, reason = "another program is waited for")]
#![cfg(target_os = "linux")]

mod programs;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use programs::{left_in, nothing_is_left, pretender, real, root, signal, text_of};

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
    let fine = pretender(folder.path(), "exec sleep 1000");
    for (binary, rest, expected) in [
        (Path::new("/nowhere/arducopter"), &[][..], &["autopilot", "/nowhere/arducopter"][..]),
        (Path::new("/bin/true"), &[], &["/bin/true", "expected an ArduCopter SITL program"]),
        (&fine, &["--uavs", "0"], &["aircraft: found 0"]),
        (&fine, &["--profile", "4.6.2"], &["--profile", "cannot be used with"]),
    ] {
        let output = bench(temporary.path(), binary, rest).output().unwrap();
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(2), "{rest:?}: {text}");
        assert!(expected.iter().all(|part| text.contains(part)), "{rest:?}: {text}");
        nothing_is_left(temporary.path());
    }
}

#[test]
fn a_program_that_dies_ends_the_flight_with_its_last_lines() {
    if !has_faketime() {
        return;
    }
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
    if !has_faketime() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let binary = pretender(folder.path(), "while :; do sleep 1; done");
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
    let Some(binary) = real() else { return };
    if !has_faketime() {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let fly = |seed: &str| {
        let output = bench(temporary.path(), &binary, &["--uavs", "3", "--seed", seed]).output().unwrap();
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
