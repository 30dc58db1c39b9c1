//! Without file descriptors: real processes, whose limit is lowered while they run to what they have open.

use crate::common::client;
use crate::common::rig;

use std::{
    fs,
    os::unix::net::UnixStream,
    process::Child,
    time::{Duration, Instant},
};

use client::{ask, raw};
use rig::{PATIENCE, Rig, aircraft, guard, home};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use wingbeat_api::{AircraftStatus, CommandOutcome, paths};
use wingbeat_autopilot::copter::Mode;

/// Between two failures to accept.
const PAUSE: Duration = Duration::from_millis(100);

fn limit(child: &Child, descriptors: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    prlimit(pid, Resource::Nofile, Rlimit { current: Some(descriptors), maximum }).unwrap();
}

/// The highest descriptor that is open, and one: with this limit those alone are free that are closed below it. What the test's own
/// parent left open has high numbers.
fn open_descriptors(child: &Child) -> u64 {
    let folder = format!("/proc/{}/fd", child.id());
    let numbers = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().parse::<u64>().unwrap());
    numbers.filter(|number| *number < 200).max().unwrap() + 1
}

fn is_protected(status: &AircraftStatus) -> bool {
    status.checks.iter().any(|check| check.name == "companion loss" && check.passed)
}

fn shortages(status: &AircraftStatus) -> u64 {
    status.http.refused.iter().find(|refused| refused.reason == "shortage").map_or(0, |refused| refused.count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guardian_without_descriptors_waits_counts_and_still_takes_over() {
    let mut aircraft = aircraft().await;
    let rig = Rig::new(aircraft.address, true).await;
    rig.cruising(home()).await;
    let guardian = rig.guard();
    limit(&guardian.child, open_descriptors(&guardian.child));
    // Each holds a place of its queue; it may take one of them when there is room.
    let socket = rig.folder.path().join("guard.sock");
    let begun = Instant::now();
    let waiting: Vec<_> = (0..50).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    guardian.prints("the socket does not accept (8)").await;
    assert!(begun.elapsed() >= 7 * PAUSE, "it spins: eight failures after {:?}", begun.elapsed());
    assert!(is_protected(&rig.status().await), "{}", guardian.output());
    // Those that wait take what the daemon leaves. The port has its own.
    rig.daemon.signal("KILL");
    for mode in [Mode::Brake, Mode::Land] {
        timeout(PATIENCE, aircraft.truth.wait_for(|truth| truth.mode == mode)).await.unwrap().unwrap();
    }
    drop(waiting);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_without_descriptors_finds_its_guardian_and_answers_its_operator() {
    let aircraft = aircraft().await;
    let mut rig = Rig::new(aircraft.address, true).await;
    rig.until("protected", is_protected).await;
    limit(&rig.daemon.child, open_descriptors(&rig.daemon.child));
    let mut flood = vec![];
    let since = Instant::now();
    // Of another address than the operator's.
    while shortages(&rig.status().await) < 3 {
        assert!(since.elapsed() < PATIENCE, "never short of descriptors: {}", rig.daemon.output());
        let from = tokio::net::TcpSocket::new_v4().unwrap();
        from.bind(([127, 0, 0, 2], 0).into()).unwrap();
        flood.push(timeout(PATIENCE, from.connect(rig.api)).await.unwrap().unwrap());
    }
    // The guardian is started anew meanwhile, and its place was kept.
    rig.guard().signal("KILL");
    rig.until("unprotected", |status| !is_protected(status)).await;
    rig.guard = Some(guard(&rig.folder));
    rig.until("protected again", is_protected).await;
    let asked = Instant::now();
    let reply = rig.command("recover_control").await;
    assert_eq!(reply.outcome, CommandOutcome::Accepted, "{reply:?}");
    println!("answered after {} ms", asked.elapsed().as_millis());
    let (before, from) = (shortages(&rig.status().await), Instant::now());
    sleep(10 * PAUSE).await;
    let more = shortages(&rig.status().await) - before;
    let most = 20 + 4 * from.elapsed().as_millis() as u64 / PAUSE.as_millis() as u64;
    assert!(more <= most, "it spins: {more} failures in {:?}", from.elapsed());
    drop(flood);
    limit(&rig.daemon.child, 1024);
    // The failure under way still lets the oldest connection give way, which may be this one.
    let get = format!("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", paths::STATUS);
    let since = Instant::now();
    while !raw(rig.api, get.as_bytes(), true).await.starts_with("HTTP/1.1 200") {
        assert!(since.elapsed() < PATIENCE, "never answered: {}", rig.daemon.output());
    }
    for _ in 0..20 {
        let (code, _) = ask(rig.api, "GET", paths::STATUS, "").await;
        assert_eq!(code, 200);
    }
    let _: TcpStream = TcpStream::connect(rig.api).await.unwrap();
}
