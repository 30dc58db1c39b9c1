//! `wingbeat bench sitl` as a program: what it refuses, what it leaves behind, and a flight.
//!
//! What needs a real ArduCopter takes it from `WINGBEAT_SITL`, the path of a SITL program; without it
//! those tests print one line and pass. The others use a program that only pretends.
#![allow(clippy::disallowed_methods, reason = "ArduCopter runs in real time")]
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::programs::{left_in, nothing_is_left, pretender, real, root, signal, text_of};

/// `bench sitl` with its temporary files under `temporary`.
fn bench(temporary: &Path, binary: &Path, rest: &[&str]) -> Command {
    flying("crates/bench/plans/muscop-sitl.toml", temporary, binary, rest)
}

/// The same with another plan.
fn flying(plan: &str, temporary: &Path, binary: &Path, rest: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeat"));
    command.current_dir(root()).env("TMPDIR", temporary).args(["bench", "sitl", "--binary"]).arg(binary);
    command.args(["--plan", plan]).args(rest);
    command
}

/// Starts a bench and ends it by each signal once its processes run. `up` returns true then.
fn ended_by_every_signal(binary: &Path, rest: &[&str], up: impl Fn(&str) -> bool) {
    for name in ["-INT", "-TERM", "-HUP", "-KILL"] {
        let temporary = tempfile::tempdir().unwrap();
        let mut child = bench(temporary.path(), binary, rest).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let seen = lines.by_ref().map_while(Result::ok).find(|line| up(line));
        assert!(seen.is_some(), "the bench ended too early");
        let end = Instant::now() + Duration::from_secs(30);
        while !left_in(temporary.path()).iter().any(|line| line.contains("-I 60")) {
            assert!(Instant::now() < end, "no process runs: {:?}", left_in(temporary.path()));
            std::thread::sleep(Duration::from_millis(20));
        }
        signal(&child, name);
        let status = child.wait().unwrap();
        assert!(!status.success(), "{name}: {status}");
        nothing_is_left(temporary.path());
    }
}

#[test]
fn what_cannot_be_flown_is_refused_with_one_message() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let fine = pretender(folder.path(), "exec sleep 1000");
    let bad_defaults = folder.path().join("bad.parm");
    std::fs::write(&bad_defaults, "FRAME_CLASS 1\nRTL_ALT high\n").unwrap();
    let bad_defaults = bad_defaults.display().to_string();
    for (binary, rest, expected) in [
        (Path::new("/nowhere/arducopter"), &[][..], &["/nowhere/arducopter", "expected an ArduCopter"][..]),
        (Path::new("/bin/true"), &[], &["/bin/true", "expected an ArduCopter SITL program"]),
        (&fine, &["--speedup", "50"], &["--speedup: found 50", "0.1 to 20"]),
        (&fine, &["--uavs", "0"], &["--uavs", "aircraft: found 0"]),
        (&fine, &["--defaults", &bad_defaults], &["bad.parm", "line 2", "RTL_ALT high"]),
        (&fine, &["--instance", "253"], &["5 instance numbers", "253 to 255"]),
        (&fine, &["--logs", "/proc/nowhere"], &["/proc/nowhere"]),
        (&fine, &["--pilot", "drawn:60"], &["--pilot", "no leader is piloted"]),
    ] {
        let output = bench(temporary.path(), binary, rest).output().unwrap();
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(2), "{rest:?}: {text}");
        assert!(expected.iter().all(|part| text.contains(part)), "{rest:?}: {text}");
        nothing_is_left(temporary.path());
    }
}

/// Each instance runs in a directory of its own, from which `./arducopter` is another file.
#[test]
fn a_relative_path_of_the_program_is_relative_to_where_the_bench_is_started() {
    let (temporary, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    pretender(folder.path(), "echo bind failed on port 5760; exit 1");
    let plan = root().canonicalize().unwrap().join("crates/bench/plans/muscop-sitl.toml");
    for binary in ["./arducopter", "arducopter"] {
        let plan = plan.to_str().unwrap();
        let mut command = flying(plan, temporary.path(), Path::new(binary), &["--uavs", "2"]);
        let output = command.current_dir(folder.path()).output().unwrap();
        let text = text_of(&output);
        assert!(text.contains("bind failed on port 5760"), "{binary}: {text}");
        nothing_is_left(temporary.path());
    }
}

#[test]
fn a_process_that_ends_ends_the_flight_and_its_last_lines_are_printed() {
    let (temporary, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let binary = pretender(folder.path(), "echo bind failed on port 5760; exit 1");
    let output = bench(temporary.path(), &binary, &["--uavs", "2"]).output().unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("exit status 1") && text.contains("bind failed on port 5760"), "{text}");
    nothing_is_left(temporary.path());
}

#[test]
fn no_signal_leaves_a_process_or_a_file_behind() {
    let folder = tempfile::tempdir().unwrap();
    let binary = pretender(folder.path(), "while :; do sleep 1; done");
    ended_by_every_signal(&binary, &["--uavs", "2", "--instance", "60"], |line| {
        line.contains("instances 60 to 61")
    });
}

#[test]
fn no_signal_leaves_a_real_arducopter_behind() {
    let Some(binary) = real() else { return };
    ended_by_every_signal(&binary, &["--uavs", "2", "--instance", "60"], |line| {
        line.contains("know their position")
    });
}

#[test]
fn five_arducopters_fly_muscop_to_the_end() {
    let Some(binary) = real() else { return };
    let (temporary, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let logs_path = logs.path().display().to_string();
    let output = bench(temporary.path(), &binary, &["--logs", &logs_path]).output().unwrap();
    let text = text_of(&output);
    println!("{text}");
    nothing_is_left(temporary.path());
    if text.contains("REFUSED") {
        assert_eq!(output.status.code(), Some(1), "{text}");
        println!("skipped: this machine is too slow just now for five SITL processes in real time");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(text.matches("          yes\n").count(), 5, "{text}");
    let kept = std::fs::read_dir(logs.path()).unwrap().flatten();
    let big = kept.filter(|e| e.metadata().is_ok_and(|m| m.len() > 10_000)).count();
    assert_eq!(big, 5, "{text}");
}

#[test]
fn three_arducopters_follow_a_pilot_at_his_sticks() {
    let Some(binary) = real() else { return };
    let temporary = tempfile::tempdir().unwrap();
    let plan = "crates/bench/plans/followme-sitl.toml";
    // A minute of a pilot; the plan's flight of two and a half is flown by hand.
    let rest = ["--pilot", "drawn:60", "--speedup", "2", "--instance", "72"];
    let output = flying(plan, temporary.path(), &binary, &rest).output().unwrap();
    let text = text_of(&output);
    println!("{text}");
    nothing_is_left(temporary.path());
    if text.contains("REFUSED") {
        assert_eq!(output.status.code(), Some(1), "{text}");
        println!("skipped: this machine is too slow just now for three SITL processes at twice real time");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(text.matches("          yes\n").count(), 3, "{text}");
    // Mean errors of the two slaves: formation, and global, which is the lag. A third is SITL's own.
    let rows = text.lines().filter(|line| line.contains("1000 ms   ours"));
    let means_m: Vec<(f64, f64)> = rows
        .map(|line| {
            let cells: Vec<f64> = line.split_whitespace().filter_map(|cell| cell.parse().ok()).collect();
            let [_, _, _, formation_m, _, _, global_m, ..] = cells[..] else { panic!("{line}") };
            (formation_m, global_m)
        })
        .collect();
    let [(formation_m, lag_m), (_, simulated_lag_m)] = means_m[..] else { panic!("{means_m:?}: {text}") };
    assert!(formation_m < 5.0 && lag_m > 1.0, "{means_m:?}");
    assert!((lag_m / simulated_lag_m - 1.0).abs() < 0.35, "{means_m:?}");
}

/// The rows of the table of overheads: scenario, and the numbers behind it as they stand.
fn overheads(text: &str) -> Vec<(String, Vec<f64>)> {
    let rows = text.lines().filter(|line| line.contains(", mbcap-e  "));
    rows.map(|line| {
        let (scenario, cells) = line.split_once(", mbcap-e").expect("it contains it");
        (scenario.to_owned(), cells.split_whitespace().filter_map(|cell| cell.parse().ok()).collect())
    })
    .collect()
}

#[test]
fn pairs_of_arducopters_keep_apart_under_mbcap_e() {
    let Some(binary) = real() else { return };
    let temporary = tempfile::tempdir().unwrap();
    let plan = "crates/bench/plans/mbcap-sitl.toml";
    let output =
        flying(plan, temporary.path(), &binary, &["--speedup", "2", "--instance", "66"]).output().unwrap();
    let text = text_of(&output);
    println!("{text}");
    nothing_is_left(temporary.path());
    if text.contains("REFUSED") {
        assert_eq!(output.status.code(), Some(1), "{text}");
        println!("skipped: this machine is too slow just now for two SITL processes at twice real time");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{text}");
    // Two scenarios without and with the protocol, two aircraft each, and all of them arrive.
    assert_eq!(text.matches("          yes\n").count(), 8, "{text}");
    for (state, times) in
        [("standing still", 4), ("moving aside", 1), ("giving way", 2), ("passing", 2), ("over: landing", 8)]
    {
        assert_eq!(text.matches(state).count(), times, "{state}: {text}");
    }
    let rows = overheads(&text);
    assert_eq!(rows.len(), 4, "{text}");
    for (scenario, cells) in rows {
        let [uav, thesis_s, _, on_s, off_s, over_s, _, _, simulated_s, separation_m, simulated_m] = cells[..]
        else {
            panic!("{scenario}: found {cells:?}, expected eleven numbers");
        };
        assert!((over_s - (on_s - off_s)).abs() < 0.11, "{scenario} {uav}: {cells:?}");
        assert!(separation_m > 5.0 && simulated_m > 5.0, "{scenario} {uav}: {cells:?}");
        // Half and twice: when within its one-second pass an aircraft sees the risk is worth seconds.
        let expected_s = 0.5 * thesis_s..2.0 * thesis_s;
        assert!(expected_s.contains(&simulated_s), "{scenario} {uav}: {cells:?}");
        // And a flight may be as slow as the pace that is just not refused.
        let slack_s = 0.05 * on_s;
        let expected_s = expected_s.start - slack_s..expected_s.end + slack_s;
        assert!(expected_s.contains(&over_s), "{scenario} {uav}: {cells:?}");
    }
}

#[test]
fn a_simulation_that_does_not_keep_pace_is_refused() {
    let Some(binary) = real() else { return };
    let temporary = tempfile::tempdir().unwrap();
    let output = bench(temporary.path(), &binary, &["--uavs", "2", "--speedup", "20"]).output().unwrap();
    let text = text_of(&output);
    nothing_is_left(temporary.path());
    let line = text.lines().find(|l| l.starts_with("real-time factor")).unwrap_or_else(|| panic!("{text}"));
    let share: f64 = line.split("): ").nth(1).and_then(|l| l.split(';').next()?.parse().ok()).unwrap();
    // 3.5.7 does not run twenty times as fast as time; where a machine does, its report is accepted.
    assert_eq!(text.contains("REFUSED"), share < 0.95, "{text}");
    assert!(share >= 0.95 || output.status.code() == Some(1), "{text}");
}
