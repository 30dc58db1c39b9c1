//! Hosts in network namespaces of their own, in which a test runs itself again.

use std::process::Command;

const INSIDE: &str = "TEST_NAMESPACE";

/// Runs this test again where it has the network to itself; false where that is this run.
pub(crate) fn enter(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return false;
    }
    for program in ["ip", "unshare"] {
        if Command::new(program).arg("--version").output().is_err() {
            // iproute2 has `-V` alone; what counts is whether there is such a program.
            eprintln!("skipped: no {program} here (Debian: iproute2, util-linux)");
            return true;
        }
    }
    // As root without a user namespace: some kernels forbid those.
    let ways: [&[&str]; 2] = [&["-n", "-m"], &["-U", "-r", "-n", "-m"]];
    let permitted = |way: &&[&str]| {
        let made =
            Command::new("unshare").args(*way).args(["mount", "-t", "tmpfs", "tmpfs", "/run"]).output();
        made.is_ok_and(|made| made.status.success())
    };
    let Some(way) = ways.into_iter().find(permitted) else {
        eprintln!("skipped: no network namespaces here: unshare -U -r -n -m is not permitted");
        return true;
    };
    let status = Command::new("unshare")
        .args(way)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{test} in its namespaces: {status}");
    true
}

pub(crate) fn command(line: &str) {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A host without an interface: the namespace `air` and its number.
pub(crate) fn new_host(index: u8) {
    command(&format!("ip netns add air{index}"));
    // An address is used at once, without the second in which another may object to it.
    let accept_dad = "echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad && ip link set lo up";
    let done =
        Command::new("ip").args(["netns", "exec", &format!("air{index}"), "sh", "-c", accept_dad]).status();
    assert!(done.unwrap().success(), "{accept_dad}");
}

/// An aircraft's interface, and its other end at the bridge.
pub(crate) fn plug_in(index: u8) {
    command(&format!("ip link add port{index} type veth peer name wlan0 netns air{index}"));
    // The kernel says nothing on the bridge's own account.
    std::fs::write(format!("/proc/sys/net/ipv6/conf/port{index}/disable_ipv6"), "1").unwrap();
    command(&format!("ip -n air{index} addr add 10.77.0.{}/24 brd + dev wlan0", index + 1));
    // What passes is no longer than a frame.
    command(&format!("ip -n air{index} link set wlan0 gso_max_segs 1"));
    command(&format!("ip -n air{index} link set wlan0 up"));
    command(&format!("ip link set port{index} up"));
}
