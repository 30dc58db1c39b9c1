//! `wingbeat sim` seen from outside: by pymavlink, MAVSDK, dronekit and MAVProxy, and when it is started wrongly.
#![allow(clippy::disallowed_methods, reason = "processes run in real time")]

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const FLIGHT_LIMIT: Duration = Duration::from_secs(400);
const END_LIMIT: Duration = Duration::from_secs(30);

/// A process that does not outlive the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Whether it ended well, `None` if not within `limit`.
    fn succeeds(&mut self, limit: Duration) -> Option<bool> {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.0.try_wait().expect("a child can be waited for") {
                return Some(status.success());
            }
            if Instant::now() > end {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn wingbeat() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeat"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts `wingbeat sim` with ports that the system chooses; the process and its first address.
fn sim(arguments: &[&str]) -> (Running, String) {
    let mut child = wingbeat().args(["sim", "--tcp", "0"]).args(arguments).spawn().expect("wingbeat starts");
    let stdout = child.stdout.take().expect("stdout is piped");
    let running = Running(child);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).expect("wingbeat prints where it listens");
    let address = line.trim().strip_prefix("aircraft 1: ").unwrap_or_else(|| panic!("found {line:?}"));
    (running, address.to_owned())
}

/// Lets a script of a client fly one aircraft, with the scheme that its library wants in front of the address.
fn fly(script: &str, scheme: &str, profile: &str, speedup: &str) {
    let python = match crate::environment::python() {
        Ok(python) => python,
        Err(why) => {
            eprintln!("skipped: no MAVLink client here ({why})");
            return;
        }
    };
    let (_sim, address) = sim(&["--speedup", speedup, "--profile", profile]);
    let address = address.replacen("tcp:", scheme, 1);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(script);
    let child = Command::new(python)
        .arg(script)
        .args([&address, profile])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python starts");
    let mut script = Running(child);
    let ended = script.succeeds(FLIGHT_LIMIT);
    if ended.is_none() {
        // Its pipes end with it.
        let _ = script.0.kill();
    }
    let mut text = String::new();
    for pipe in [
        script.0.stdout.take().map(|p| Box::new(p) as Box<dyn Read>),
        script.0.stderr.take().map(|p| Box::new(p) as Box<dyn Read>),
    ] {
        pipe.expect("both are piped").read_to_string(&mut text).expect("the script prints UTF-8");
    }
    assert_eq!(ended, Some(true), "{profile}: {text}");
    assert!(text.contains("landed") || text.contains("done"), "{profile}: {text}");
}

#[test]
fn pymavlink_flies_3_5_7() {
    fly("pymavlink/fly.py", "tcp:", "3.5.7", "10");
}

#[test]
fn pymavlink_flies_4_6_2() {
    fly("pymavlink/fly.py", "tcp:", "4.6.2", "10");
}

#[test]
fn mavsdk_asks_3_5_7_and_is_answered() {
    fly("clients/fly_mavsdk.py", "tcpout://", "3.5.7", "3");
}

#[test]
fn mavsdk_flies_4_6_2() {
    fly("clients/fly_mavsdk.py", "tcpout://", "4.6.2", "3");
}

#[test]
fn dronekit_flies_3_5_7() {
    fly("clients/fly_dronekit.py", "tcp:", "3.5.7", "3");
}

#[test]
fn dronekit_flies_4_6_2() {
    fly("clients/fly_dronekit.py", "tcp:", "4.6.2", "3");
}

#[test]
fn mavproxy_asks_3_5_7_and_is_answered() {
    fly("clients/fly_mavproxy.py", "tcp:", "3.5.7", "3");
}

#[test]
fn mavproxy_flies_4_6_2() {
    fly("clients/fly_mavproxy.py", "tcp:", "4.6.2", "3");
}

fn refused(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } =
        wingbeat().arg("sim").args(arguments).output().expect("wingbeat runs");
    let text = String::from_utf8(stderr).expect("UTF-8");
    assert_eq!(status.code(), Some(2), "{arguments:?}: {text}");
    assert!(stdout.is_empty(), "something flew: {}", String::from_utf8_lossy(&stdout));
    text
}

#[test]
fn a_port_in_use_is_one_message_and_nothing_flies() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let text = refused(&["--tcp", &port]);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains(&port) && text.contains("in use"), "{text}");
}

#[test]
fn bad_arguments_are_refused_by_name() {
    for (arguments, what) in [
        (["--home", "39,0"], "expected 4"),
        (["--speedup", "0"], "--speedup: 0 found, expected 0.1 to 100"),
        (["--uavs", "0"], "--uavs"),
        (["--profile", "3.6"], "3.5.7"),
        (["--tcp", "70000"], "--tcp"),
    ] {
        let text = refused(&arguments);
        assert!(text.contains(what), "{arguments:?}: {text}");
    }
}

#[cfg(unix)]
#[test]
fn interrupting_ends_it_cleanly() {
    let (mut running, _) = sim(&["--uavs", "3"]);
    let id = running.0.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status().expect("kill runs");
    assert!(sent.success());
    assert_eq!(running.succeeds(END_LIMIT), Some(true), "exit code 0");
}
