//! Scripts that fly aircraft of `wingbeat bench run` in its virtual time: ours, and those with which other tests fly in real time, unchanged.
#![allow(clippy::disallowed_methods, reason = "another program is waited for")]
#![cfg(target_os = "linux")]

#[path = "../../../tests/python/environment.rs"]
mod environment;
mod programs;

use std::path::Path;
use std::process::Command;

use programs::{nothing_is_left, real, root, text_of};

/// A flight of the plan with a script, with its temporary files under `temporary`.
fn bench(temporary: &Path, rest: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeat"));
    command.current_dir(root()).env("TMPDIR", temporary);
    command.args(["bench", "run", "crates/bench/plans/script.toml"]).args(rest);
    command
}

/// The same with the clients' Python first in the path; what it prints but its speed. None, with a line, without clients.
fn flown(rest: &[&str]) -> Option<String> {
    let python =
        environment::python().map_err(|why| println!("skipped: no MAVLink client here ({why})")).ok()?;
    let temporary = tempfile::tempdir().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let folder = python.parent().unwrap().display().to_string();
    let mut command = bench(temporary.path(), rest);
    let output = command.env("PATH", format!("{folder}:{path}")).output().unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{rest:?}: {text}");
    nothing_is_left(temporary.path());
    Some(text.lines().filter(|line| !line.contains(" times real time")).collect::<Vec<_>>().join("\n"))
}

#[test]
fn our_script_flies_beside_an_agent_and_a_second_run_is_the_same_byte_for_byte() {
    let Some(first) = flown(&["--seed", "1"]) else { return };
    println!("{first}");
    for line in ["trace ", "script of aircraft 1: ", ": at 40 m north, 40 m east", ": on the ground"] {
        assert!(first.contains(line), "{line}: {first}");
    }
    assert_eq!(flown(&["--seed", "1"]).unwrap(), first);
    assert_ne!(flown(&["--seed", "2"]).unwrap(), first);
}

#[test]
fn scripts_of_pymavlink_and_dronekit_fly_unchanged_and_repeat() {
    for script in ["pymavlink/fly.py tcp:127.0.0.1:5760", "clients/fly_dronekit.py tcp:127.0.0.1:5760 3.5.7"]
    {
        let script = format!("1:tests/{script}");
        let Some(first) = flown(&["--script", &script]) else { return };
        assert!(first.contains("landed") || first.contains("done"), "{first}");
        assert_eq!(flown(&["--script", &script]).unwrap(), first);
    }
}

#[test]
fn a_script_flies_a_real_arducopter_and_repeats() {
    let Some(binary) = real() else { return };
    let autopilot = format!("arducopter:{}", binary.display());
    for rest in [
        &["--autopilot", &autopilot][..],
        &["--autopilot", &autopilot, "--script", "2:crates/bench/scripts/square.py"],
    ] {
        let Some(first) = flown(rest) else { return };
        println!("{first}");
        assert!(first.contains("script of aircraft 1: ") && first.contains(": on the ground"), "{first}");
        assert_eq!(flown(rest).unwrap(), first);
    }
}

#[test]
fn what_cannot_be_flown_is_refused_with_one_message_and_leaves_nothing() {
    let (temporary, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let failing = folder.path().join("failing.py");
    std::fs::write(&failing, "import time\ntime.sleep(3)\nraise SystemExit('no more')").unwrap();
    let failing = format!("1:{}", failing.display());
    for (rest, expected) in [
        (&["--script", "square.py"][..], &["--script", "expected AIRCRAFT:FILE"][..]),
        (
            &["--script", "1:/nowhere/logic.py"],
            &["script.run: /nowhere/logic.py", "expected a Python script"],
        ),
        (&["--script", "3:README.md"], &["script.aircraft: found 3, expected 1 to 2"]),
        (
            &["--script", &failing],
            &["aircraft 1: script ", "failing.py: ended with exit code 1 after 3.00 s", "no more"],
        ),
    ] {
        let output = bench(temporary.path(), rest).output().unwrap();
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(2), "{rest:?}: {text}");
        assert!(expected.iter().all(|part| text.contains(part)), "{rest:?}: {text}");
        nothing_is_left(temporary.path());
    }
    let swarm =
        ["bench", "run", "crates/bench/plans/survey.toml", "--script", "1:crates/bench/scripts/square.py"];
    let output =
        Command::new(env!("CARGO_BIN_EXE_wingbeat")).current_dir(root()).args(swarm).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text_of(&output));
    assert!(
        text_of(&output).contains("script: found a swarm or a formation, expected missions"),
        "{}",
        text_of(&output)
    );
    // No Python: an empty folder is all of the path beside the shell's own commands.
    let tools = folder.path().join("bin");
    std::fs::create_dir(&tools).unwrap();
    for tool in ["sh", "env", "rm", "kill"] {
        let place = ["/bin", "/usr/bin"].iter().map(|at| Path::new(at).join(tool)).find(|path| path.exists());
        std::os::unix::fs::symlink(place.unwrap(), tools.join(tool)).unwrap();
    }
    let output = bench(temporary.path(), &[]).env("PATH", &tools).output().unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("it does not start: exit status 127") && text.contains("python3"), "{text}");
    nothing_is_left(temporary.path());
}
