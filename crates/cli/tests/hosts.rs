//! A plan flown on one, two and three computers, which are network namespaces on one bridge, with HELICS between them. Skipped where
//! HELICS or namespaces are missing: `WINGBEAT_HELICS` names its library (`pip install helics`). With `WINGBEAT_SITL` real ArduCopters
//! fly too.
#![allow(clippy::disallowed_methods, reason = "processes run in real time")]

#[path = "../../radio/tests/namespaces/hosts.rs"]
mod namespaces;

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use namespaces::{command, enter, new_host, plug_in};

const PLAN: &str = r#"
name = "hosts"
title = "A short flight of five"
table = "flights"
repeat = 2
time_limit_s = 300

[swarm]
aircraft = 5
formation = "linear"
distance_m = 25.0
speed_m_s = 8.0

[mission.staircase]
waypoints = [2]
length_m = 60.0
height_m = 10.0

[channel]
model = "802.11a"
draw = "packet"
signatures = "stand-in"

[conditions]
gnss_bias_m = 1.0

# On the second of two computers and of three, on the third, and on the second of two and the first of three.
[[fault]]
at_s = 54
inflict = { gnss-lost = { aircraft = 2, for_s = 2 } }

[[fault]]
at_s = 56
inflict = { battery-at = { aircraft = 3, percent = 25 } }

[[fault]]
at_s = 58
inflict = { pilot-takes = { aircraft = 4, mode = "LAND" } }

[[fault]]
at_s = 60
inflict = { autopilot-reboots = { aircraft = 2 } }
"#;

fn on(computer: u8, plan: &Path, arguments: &[&str]) -> Child {
    Command::new("ip")
        .args(["netns", "exec", &format!("air{computer}"), env!("CARGO_BIN_EXE_wingbeat"), "bench", "run"])
        .arg(plan)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn trace(table: &str) -> &str {
    table.lines().find(|line| line.starts_with("trace ")).unwrap()
}

fn end(child: Child) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// HELICS in the child's environment, and no other reason why it would not be found.
fn has_helics() -> bool {
    let found = std::env::var_os("WINGBEAT_HELICS").is_some_and(|path| Path::new(&path).is_file());
    if !found {
        println!(
            "skipped: WINGBEAT_HELICS names no file, expected HELICS' libhelics.so.3 (pip install helics)"
        );
    }
    found
}

/// Three computers on one bridge.
fn connect_three() {
    // `ip netns` keeps its names there.
    command("mount -t tmpfs tmpfs /run");
    command("ip link add name bridge type bridge");
    command("ip link set bridge up");
    for computer in 0..3 {
        new_host(computer);
        plug_in(computer);
        command(&format!("ip link set port{computer} master bridge"));
    }
}

#[test]
fn one_two_and_three_computers_fly_the_same_bytes() {
    if !has_helics() || enter("one_two_and_three_computers_fly_the_same_bytes") {
        return;
    }
    connect_three();
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.toml");
    std::fs::write(&plan, PLAN).unwrap();
    let without_faults = folder.path().join("calm.toml");
    std::fs::write(&without_faults, PLAN.split_once("# On").unwrap().0).unwrap();
    let sitl = wingbeat_cosim::program::named("WINGBEAT_SITL");
    let flown_by = [Some("3.5.7".to_owned()), sitl.map(|path| format!("arducopter:{}", path.display()))];
    for (autopilot, repeat) in flown_by.iter().flatten().zip(["2", "1"]) {
        let by = ["--autopilot", autopilot, "--repeat", repeat];
        let (code, alone, said) = end(on(0, &plan, &by));
        assert_eq!(code, Some(0), "{said}");
        for fault in 1..=4 {
            assert!(said.contains(&format!(" s fault {fault}: ")), "{said}");
        }
        let (code, calm, _) = end(on(0, &without_faults, &by));
        assert!(code == Some(0) && trace(&calm) != trace(&alone), "{calm}\n{alone}");
        for count in ["2", "3"] {
            let first = on(0, &plan, &[&by[..], &["--hosts", count]].concat());
            let at = "10.77.0.1:23500";
            let second = [&by[..], &["--hosts", count, "--join", at, "--number", "2"]].concat();
            // The third joins at the second, which passes on: a tree.
            let third = [&by[..], &["--hosts", count, "--join", "10.77.0.2:23600", "--number", "3"]].concat();
            let others = match count {
                "2" => vec![on(1, &plan, &second)],
                _ => vec![
                    on(1, &plan, &[&second[..], &["--pass-on", "1:23600"]].concat()),
                    on(2, &plan, &third),
                ],
            };
            let (code, table, said) = end(first);
            assert_eq!(code, Some(0), "{count} computers: {said}");
            assert_eq!(table, alone, "{count} computers, {autopilot}");
            for other in others {
                let (code, _, said) = end(other);
                assert!(
                    code == Some(0) && said.contains(&format!("{repeat} flights flown for 10.77.0.")),
                    "{said}"
                );
            }
        }
    }
    // One that has another plan flies nothing, and says which; so does the first.
    let longer = folder.path().join("longer.toml");
    std::fs::write(&longer, PLAN.replace("60.0", "61.0")).unwrap();
    let first = on(0, &plan, &["--hosts", "2"]);
    let second = on(1, &longer, &["--hosts", "2", "--join", "10.77.0.1:23500", "--number", "2"]);
    for child in [first, second] {
        let (code, _, said) = end(child);
        assert!(code == Some(2) && said.contains("computer 2: found a plan of hash"), "{code:?}: {said}");
    }
}

/// Of the first, of one that passes on, of the last: all that are left end with a message.
#[test]
fn the_death_of_a_computer_ends_the_flight_on_all() {
    if !has_helics() || enter("the_death_of_a_computer_ends_the_flight_on_all") {
        return;
    }
    connect_three();
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.toml");
    std::fs::write(&plan, PLAN).unwrap();
    let hosts = ["--hosts", "3", "--repeat", "1000"];
    let second = ["--join", "10.77.0.1:23500", "--number", "2", "--pass-on", "1:23600"];
    let third = ["--join", "10.77.0.2:23600", "--number", "3"];
    for dies in 0..3 {
        let parts: [&[&str]; 3] = [&[], &second, &third];
        let mut all: Vec<Child> =
            (0..3).map(|i| on(i, &plan, &[&hosts, parts[usize::from(i)]].concat())).collect();
        let mut first = BufReader::new(all[0].stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("all 3 computers are there") {
            line.clear();
            assert!(first.read_line(&mut line).unwrap() > 0, "the first has ended");
        }
        std::thread::sleep(std::time::Duration::from_secs(3));
        let mut dead = all.remove(dies);
        assert_eq!(dead.try_wait().unwrap(), None, "it flies");
        dead.kill().unwrap();
        dead.wait().unwrap();
        let mut of_first = String::new();
        first.read_to_string(&mut of_first).unwrap();
        for left in all {
            let (code, _, own) = end(left);
            // Its own was read above.
            let said = if own.is_empty() { &of_first } else { &own };
            let told =
                ["lost comms", "lost connection", "federation has ended", "has left", "found nothing from"];
            assert!(
                code == Some(2) && told.iter().any(|part| said.contains(part)),
                "computer {} died: {code:?}: {said}",
                dies + 1
            );
        }
    }
}
