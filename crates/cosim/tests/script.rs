//! The turns of a script and a world: its clocks, its threads, its end. Skipped, with a line, where there is no Python.
#![allow(clippy::disallowed_methods, reason = "another program is waited for")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use wingbeat_cosim::script::{Config, Script};
use wingbeat_geo::Instant;
use wingbeat_sim::logic::{Logic as _, Sent};

const STEP_MS: u64 = 10;

fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok();
    if !found {
        println!("skipped: no python3 here");
    }
    found
}

fn started(folder: &Path, text: &str, silence: Duration) -> Script {
    let path = folder.join("logic.py");
    std::fs::write(&path, text).unwrap();
    let arguments = vec!["a".to_owned(), "b c".to_owned()];
    Script::start(&Config {
        path,
        arguments,
        address: "127.0.0.1:5760".to_owned(),
        radio: Some(5005),
        seed: 7,
        silence,
    })
    .unwrap()
}

/// What it sent, and when in milliseconds, until it ended. Its autopilot sends everything back a step later.
fn flown(script: &mut Script) -> Result<Vec<(u64, Vec<u8>)>, String> {
    let (mut sent, mut back) = (Vec::new(), Vec::new());
    for step in 0..500_000 {
        let mut out = Sent::default();
        script.run(Instant::from_millis(step * STEP_MS), &back, &[], &mut out)?;
        if !out.autopilot.is_empty() {
            sent.push((step * STEP_MS, out.autopilot.clone()));
        }
        back = out.autopilot;
        if script.has_ended() {
            return Ok(sent);
        }
    }
    panic!("it does not end; it printed {:?}", script.printed())
}

const CLOCKS: &str = r#"
import datetime, os, random, select, socket, sys, time
print(__name__, os.path.basename(sys.argv[0]), sys.argv[1:], random.random())
print(round(time.time(), 2), datetime.datetime.now().strftime("%F %T"), time.strftime("%T"))
start = time.monotonic()
time.sleep(3600)
print(round(time.monotonic() - start, 3), round(time.time(), 2), datetime.date.today())
link = socket.create_connection(("localhost", 5760), timeout=1)
link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
link.sendall(b"ping")
start = time.time()
print(link.recv(100), round(time.time() - start, 3))
start = time.time()
try:
    link.recv(1)
except socket.timeout:
    print("timeout", round(time.time() - start, 3))
link.setblocking(False)
start, polls = time.time(), 0
while time.time() - start < 1:
    try:
        link.recv(1)
    except BlockingIOError:
        polls += 1
print(polls)
print(select.select([link.fileno()], [], [], 0.5), round(time.time() - start, 2))
while time.perf_counter() < 3604:
    pass
print(round(time.time(), 2))
"#;

#[test]
fn clocks_sleeps_and_waits_follow_the_world() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut script = started(folder.path(), CLOCKS, Duration::from_secs(60));
    let sent = flown(&mut script).unwrap();
    assert_eq!(sent, [(3_600_010, b"ping".to_vec())]);
    let expected = "__main__ logic.py ['a', 'b c'] 0.32383276483316237\n\
        1767225600.0 2026-01-01 00:00:00 00:00:00\n\
        3600.0 1767229200.0 2026-01-01\n\
        b'ping' 0.02\n\
        timeout 1.0\n\
        991\n\
        ([], [], []) 1.5\n\
        1767229204.0";
    assert_eq!(script.printed().join("\n"), expected);
}

const THREADS: &str = r#"
import asyncio, concurrent.futures, queue, socket, threading, time
link = socket.create_connection(("127.0.0.1", 5760))
lines, last = queue.Queue(), threading.Event()
def worker(number):
    for i in range(20):
        time.sleep(0.01 * (1 + number))
        link.sendall(b"%d:%d " % (number, i))
        lines.put(number)
    if number == 3:
        last.set()
threads = [threading.Thread(target=worker, args=(number,)) for number in range(4)]
[thread.start() for thread in threads]
got, empty = [], 0
while not last.is_set():
    try:
        got.append(lines.get(timeout=0.004))
    except queue.Empty:
        empty += 1
[thread.join() for thread in threads]
print(len(got) + lines.qsize(), empty > 0, [thread.is_alive() for thread in threads])
print(last.wait(1), threading.Event().wait(0.5), round(time.time(), 1))
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    print(list(pool.map(lambda s: (time.sleep(s), s)[1], [0.3, 0.1, 0.2])))
async def both():
    await asyncio.gather(asyncio.sleep(5), asyncio.sleep(7))
asyncio.run(both())
print(round(time.time(), 1))
lock = threading.RLock()
with lock, lock:
    threading.Timer(0.2, lambda: link.sendall(b"end")).start()
threading.Thread(target=lambda: time.sleep(1e6), daemon=True).start()
"#;

#[test]
fn threads_take_turns_alike_in_every_run() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let mut script = started(folder.path(), THREADS, Duration::from_secs(60));
        (flown(&mut script).unwrap(), script.printed())
    };
    let (sent, printed) = run();
    assert!(sent.len() > 40 && sent.last().unwrap().1.ends_with(b"end"), "{sent:?}");
    let expected = [
        "80 True [False, False, False, False]",
        "True False 1767225601.3",
        "[0.3, 0.1, 0.2]",
        "1767225608.6",
    ];
    assert_eq!(printed, expected);
    for _ in 0..3 {
        assert_eq!(run(), (sent.clone(), printed.clone()));
    }
}

const RADIO: &str = r#"
import socket, time
radio = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
radio.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
radio.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
radio.bind(("", 5005))
radio.sendto(b"one", ("255.255.255.255", 5005))
time.sleep(0.5)
radio.sendto(b"two", ("<broadcast>", 5005))
print(radio.recvfrom(100), round(time.time(), 3))
print(radio.recv(3), round(time.time(), 3))
radio.settimeout(0.5)
try:
    radio.recvfrom(10)
except socket.timeout:
    print("timeout", round(time.time(), 3))
radio.setblocking(False)
try:
    radio.recv(10)
except BlockingIOError:
    print("empty")
try:
    radio.sendto(b"x" * 1473, ("10.255.255.255", 5005))
except OSError as error:
    print(error.strerror)
other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
other.bind(("127.0.0.1", 0))
other.sendto(b"own", other.getsockname())
print(other.recv(10))
"#;

/// More than a socket holds, in one turn and in several pieces, while another end of the script waits for none of it.
#[test]
fn what_a_socket_does_not_hold_leaves_in_the_same_turn() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
import array, socket, time
link = socket.create_connection(("127.0.0.1", 5760))
link.sendall(bytes(range(256)) * 8000)
time.sleep(1)
link.sendall(array.array("H", [0x0201]) * 200_000)
while link.send(b"end") != 3:
    pass
"#;
    let mut script = started(folder.path(), text, Duration::from_secs(60));
    let sent = flown(&mut script).unwrap();
    let lengths: Vec<usize> = sent.iter().map(|(_, bytes)| bytes.len()).collect();
    assert_eq!(lengths, [2_048_000, 400_003]);
    assert!(sent[0].1.iter().enumerate().all(|(i, byte)| usize::from(*byte) == i % 256));
    assert!(sent[1].1.ends_with(b"\x01\x02\x01\x02end"));
    // What no script sends is refused.
    let text = "import socket\nsocket.create_connection((\"127.0.0.1\", 5760)).sendall(bytes(17 << 20))\n";
    let error = flown(&mut started(folder.path(), text, Duration::from_secs(60))).unwrap_err();
    assert!(error.contains("found 17825792 bytes in one turn, expected 16777216 at most"), "{error}");
}

#[test]
fn broadcasts_leave_and_arrive_by_the_radio() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut script = started(folder.path(), RADIO, Duration::from_secs(60));
    let mut broadcast = Vec::new();
    for step in 0.. {
        let (now_ms, mut out) = (step * STEP_MS, Sent::default());
        let heard = match now_ms {
            700 => vec![(0, b"first".as_slice().into()), (126, b"second".as_slice().into())],
            _ => vec![],
        };
        script.run(Instant::from_millis(now_ms), &[], &heard, &mut out).unwrap();
        broadcast.extend(out.datagrams.into_iter().map(|datagram| (now_ms, datagram.to_vec())));
        if script.has_ended() {
            break;
        }
    }
    assert_eq!(broadcast, [(0, b"one".to_vec()), (500, b"two".to_vec())]);
    let expected = [
        "(b'first', ('10.0.0.1', 5005)) 1767225600.7",
        "b'sec' 1767225600.7",
        "timeout 1767225601.2",
        "empty",
        "Message too long",
        "b'own'",
    ];
    assert_eq!(script.printed(), expected);
}

#[test]
fn a_script_that_fails_or_hangs_is_named_and_its_directory_is_gone() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (text, expected) in [
        ("import sys\nsys.exit(3)", "ended with exit code 3 after 0.00 s of the flight"),
        (
            "import sys\nsys.exit('no link')",
            "ended with exit code 1 after 0.00 s of the flight, its last lines: no link",
        ),
        (
            "import time\ntime.sleep(2)\nraise ValueError('no')",
            "exit code 1 after 2.00 s of the flight, its last lines: ",
        ),
        ("raise ValueError('no')", "ValueError: no"),
        ("def f(:", "SyntaxError"),
        ("import nowhere_to_be_found", "No module named 'nowhere_to_be_found'"),
        ("import os\nos._exit(9)", "exit code 9"),
        ("import os\nos.kill(os.getpid(), 9)", "ended after 0.00 s of the flight: exit status 137"),
        (
            "print('here')\nwhile True: pass",
            "it has kept its turn for 8 s of the wall clock after 0.00 s of the flight: it hangs, or waits for what is not in virtual time; its last lines: here",
        ),
    ] {
        // Of the one that hangs; on a loaded computer Python begins within this.
        let mut script = started(folder.path(), text, Duration::from_secs(8));
        let found = flown(&mut script).unwrap_err();
        assert!(found.contains("logic.py: ") && found.contains(expected), "{text}: {found}");
    }
    let path = folder.path().join("none.py");
    let config = Config {
        path,
        arguments: vec![],
        address: String::new(),
        radio: None,
        seed: 1,
        silence: Duration::from_secs(1),
    };
    let found = format!("{:#}", Script::start(&config).unwrap_err());
    assert!(found.contains("none.py: expected the file of a Python script"), "{found}");
}
