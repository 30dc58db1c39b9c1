//! Scripts that fly aircraft of `wingbeat bench run` in its virtual time: ours, and those with which other tests fly in real time, unchanged.
#![allow(clippy::disallowed_methods, reason = "another program is waited for")]
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::{nothing_is_left, real, root, text_of};

const PLAN: &str = "crates/bench/plans/script.toml";

/// A flight of a plan, with its temporary files under `temporary`.
fn bench(temporary: &Path, plan: &Path, rest: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeat"));
    command.current_dir(root()).env("TMPDIR", temporary);
    command.args(["bench", "run"]).arg(plan).args(rest);
    command
}

/// The plan without its scripts.
fn without_scripts(folder: &Path) -> PathBuf {
    let text = std::fs::read_to_string(root().join(PLAN)).unwrap();
    let (scripts, channel) = (text.find("[[script]]").unwrap(), text.find("[channel]").unwrap());
    let path = folder.join("plan.toml");
    std::fs::write(&path, [&text[..scripts], &text[channel..]].concat()).unwrap();
    path
}

/// A flight with the clients' Python first in the path; what it prints but its speed. None, with a line, without clients.
fn flown(plan: &Path, rest: &[&str]) -> Option<String> {
    let python = crate::environment::python()
        .map_err(|why| println!("skipped: no MAVLink client here ({why})"))
        .ok()?;
    let temporary = tempfile::tempdir().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let folder = python.parent().unwrap().display().to_string();
    let output =
        bench(temporary.path(), plan, rest).env("PATH", format!("{folder}:{path}")).output().unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{rest:?}: {text}");
    nothing_is_left(temporary.path());
    // The pace and the lines of progress each 10 s are those of the machine.
    let is_of_the_flight =
        |line: &&str| !line.contains(" times real time") && !line.contains(" flights over, ");
    Some(text.lines().filter(is_of_the_flight).collect::<Vec<_>>().join("\n"))
}

/// How many datagrams the follower has received.
fn followed(text: &str) -> u32 {
    let line = text.lines().find(|line| line.contains("script of aircraft 2: ") && line.contains("followed"));
    let count = line.and_then(|line| line.rsplit_once(", ")?.1.strip_suffix(" datagrams"));
    count.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

#[test]
fn our_scripts_fly_beside_an_agent_and_a_second_run_is_the_same_byte_for_byte() {
    let plan = Path::new(PLAN);
    let Some(first) = flown(plan, &["--seed", "1"]) else { return };
    println!("{first}");
    for line in ["trace ", "script of aircraft 1: ", ": at 40 m north, 40 m east", ": on the ground"] {
        assert!(first.contains(line), "{line}: {first}");
    }
    assert!(followed(&first) > 300, "{first}");
    assert_eq!(flown(plan, &["--seed", "1"]).unwrap(), first);
    assert_ne!(flown(plan, &["--seed", "2"]).unwrap(), first);
    let near = ["--medium", "range:15"];
    let python = crate::environment::python().unwrap();
    let path =
        format!("{}:{}", python.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let temporary = tempfile::tempdir().unwrap();
    let deaf = bench(temporary.path(), plan, &near).env("PATH", path).output().unwrap();
    assert_eq!(deaf.status.code(), Some(2), "{}", text_of(&deaf));
    assert!(text_of(&deaf).contains("the leader is up: not within 90 s"), "{}", text_of(&deaf));
    if std::env::var_os("WINGBEAT_NS3").is_some() {
        let over_ns3 = flown(plan, &["--medium", "ns3"]).unwrap();
        assert!(followed(&over_ns3) > 300, "{over_ns3}");
        assert_eq!(flown(plan, &["--medium", "ns3"]).unwrap(), over_ns3);
    } else {
        println!("ns-3 skipped: WINGBEAT_NS3 names no program");
    }
}

/// The numbers behind a word, in the lines that a flight's scripts print of what they did.
fn numbers<'a>(text: &'a str, what: &'a str, word: &'a str) -> Vec<f64> {
    let lines = text.lines().filter_map(|line| line.split_once(what).map(|(_, rest)| rest));
    let behind = lines.map(|rest| rest.split_once(word).unwrap_or_else(|| panic!("{word}: {text}")).1);
    behind.map(|rest| rest.split([' ', ',']).next().unwrap().parse().unwrap()).collect()
}

/// Five, of which two know the way, keep apart and together; those that hear none are no flock.
#[test]
fn scripts_are_a_flock() {
    let plan = Path::new("crates/bench/plans/gzuav-flocking.toml");
    let Some(text) = flown(plan, &[]) else { return };
    let of = |word| numbers(&text, "flock: ", word);
    assert_eq!(of("others "), [4.0; 5], "{text}");
    assert!(of("order ").iter().all(|order| *order > 0.97), "{text}");
    assert!(of("nearest ").iter().all(|nearest_m| *nearest_m > 8.0), "{text}");
    // They begin 44 m apart.
    assert!(of("farthest ").iter().all(|farthest_m| *farthest_m < 35.0), "{text}");
    let Some(deaf) = flown(plan, &["--medium", "range:10"]) else { return };
    assert_eq!(numbers(&deaf, "flock: ", "others "), [0.0; 5], "{deaf}");
}

/// Four share the cells of an area among them by what they hear; those that hear less cover cells that others have.
#[test]
fn scripts_cover_an_area() {
    let plan = Path::new("crates/bench/plans/gzuav-coverage.toml");
    let Some(text) = flown(plan, &[]) else { return };
    let [own, after_s] = [": ", "after "].map(|word| numbers(&text, "covered", word));
    assert_eq!(own.len(), 4, "{text}");
    // Two may be at one at the same time.
    assert!((48.0..52.0).contains(&own.iter().sum()), "{text}");
    assert!(after_s.iter().all(|after_s| *after_s < 200.0), "{text}");
}

#[test]
fn scripts_of_pymavlink_and_dronekit_fly_unchanged_and_repeat() {
    let folder = tempfile::tempdir().unwrap();
    let plan = without_scripts(folder.path());
    for script in ["pymavlink/fly.py tcp:127.0.0.1:5760", "clients/fly_dronekit.py tcp:127.0.0.1:5760 3.5.7"]
    {
        let script = format!("1:tests/{script}");
        let Some(first) = flown(&plan, &["--script", &script]) else { return };
        assert!(first.contains("landed") || first.contains("done"), "{first}");
        assert_eq!(flown(&plan, &["--script", &script]).unwrap(), first);
    }
}

#[test]
fn scripts_fly_real_arducopters_and_repeat() {
    let Some(binary) = real() else { return };
    let autopilot = format!("arducopter:{}", binary.display());
    let folder = tempfile::tempdir().unwrap();
    let alone = without_scripts(folder.path());
    let dronekit = "1:tests/clients/fly_dronekit.py tcp:127.0.0.1:5760 3.5.7";
    for (plan, script) in [(Path::new(PLAN), &[][..]), (&alone, &["--script", dronekit])] {
        let rest = [&["--autopilot", &autopilot], script].concat();
        let Some(first) = flown(plan, &rest) else { return };
        println!("{first}");
        assert!(first.contains(": on the ground") || first.contains("done"), "{first}");
        assert_eq!(flown(plan, &rest).unwrap(), first);
    }
}

#[test]
fn what_cannot_be_flown_is_refused_with_one_message_and_leaves_nothing() {
    let (temporary, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = without_scripts(folder.path());
    let failing = folder.path().join("failing.py");
    std::fs::write(&failing, "import time\ntime.sleep(3)\nraise SystemExit('no more')").unwrap();
    let failing = format!("1:{}", failing.display());
    for (rest, expected) in [
        (&["--script", "square.py"][..], &["--script", "expected AIRCRAFT:FILE"][..]),
        (
            &["--script", "1:/nowhere/logic.py"],
            &["script.run: /nowhere/logic.py", "expected a Python script"],
        ),
        (&["--script", "4:README.md"], &["script.aircraft: found 4, expected 1 to 3"]),
        (
            &["--script", &failing],
            &["aircraft 1: script ", "failing.py: ended with exit code 1 after 3.00 s", "no more"],
        ),
    ] {
        let output = bench(temporary.path(), &plan, rest).output().unwrap();
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
    let stepwise = ["--medium", "ns3", "--method", "stepwise"];
    let output = bench(temporary.path(), Path::new(PLAN), &stepwise).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text_of(&output));
    assert!(text_of(&output).contains("channel.ns3.method: found stepwise"), "{}", text_of(&output));
    // No Python: an empty folder is all of the path beside the shell's own commands.
    let tools = folder.path().join("bin");
    std::fs::create_dir(&tools).unwrap();
    for tool in ["sh", "env", "rm", "kill"] {
        let place = ["/bin", "/usr/bin"].iter().map(|at| Path::new(at).join(tool)).find(|path| path.exists());
        std::os::unix::fs::symlink(place.unwrap(), tools.join(tool)).unwrap();
    }
    let output = bench(temporary.path(), Path::new(PLAN), &[]).env("PATH", &tools).output().unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("it does not start: exit status 127") && text.contains("python3"), "{text}");
    nothing_is_left(temporary.path());
}
