//! `physics = "proxy:…"`: a swarm of real ArduCopters whose bodies another program moves. The other program is our own rigid body behind
//! a socket, so the flight must be the same, byte for byte.
//!
//! `WINGBEAT_SITL_4` is the path of an ArduCopter SITL program of version 4; without it the test prints one line and passes.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wingbeat_bench::flight::fly;
use wingbeat_bench::plan::Plan;
use wingbeat_cosim::json::{outputs, sensors};
use wingbeat_geo::DVec3;
use wingbeat_sim::motion::BatteryParameters;
use wingbeat_sim::rigid::{Body, Rigid};

const AIRCRAFT: usize = 3;
/// Below the ports that the kernel hands out.
const FIRST_PORT: u16 = 9_002;
const STEP_S: f64 = 0.0025;
/// How often a back-end that is not asked looks whether the flight is over.
const IDLE: Duration = Duration::from_millis(50);

/// Sockets 10 ports apart, the first of which is free with the others.
fn sockets() -> Vec<UdpSocket> {
    let bind = |port| UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).ok();
    let block = |first: u16| (0..AIRCRAFT as u16).map(|i| bind(first + i * 10)).collect::<Option<Vec<_>>>();
    (FIRST_PORT..FIRST_PORT + 1_000).find_map(block).expect("free ports")
}

/// Answers outputs until the flight is over.
fn answer(socket: &UdpSocket, heading_rad: f64, over: &AtomicBool) -> u32 {
    socket.set_read_timeout(Some(IDLE)).unwrap();
    let mut body = Rigid::new(Body::default(), BatteryParameters::default(), heading_rad);
    let (mut packet, mut steps, mut last) = ([0; 200], 0, None);
    while !over.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut packet) else { continue };
        let outputs = outputs(&packet[..length]).unwrap();
        if last.replace(outputs.number) != Some(outputs.number) {
            steps += 1;
            body.step(STEP_S, outputs.motors, DVec3::ZERO);
        }
        let line = sensors(f64::from(steps) * STEP_S, &body);
        socket.send_to(line.as_bytes(), from).unwrap();
    }
    steps
}

#[test]
fn a_swarm_flies_the_same_by_our_physics_and_by_the_same_behind_a_socket() {
    let Some(binary) = std::env::var_os("WINGBEAT_SITL_4") else {
        println!(
            "skipped: no SITL of 4.x here; set WINGBEAT_SITL_4 to the path of an ArduCopter SITL program"
        );
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans");
    let mut plan = Plan::read(&folder.join("muscop-sitl.toml")).unwrap();
    plan.keep(Some(AIRCRAFT), None).unwrap();
    plan.autopilot = Some(format!("arducopter:{}", Path::new(&binary).display()));
    let flown = |plan: &Plan| {
        let (scenario, seed) = plan.flights(&folder, 1).unwrap().remove(0).remove(0);
        (fly(&scenario, seed, plan.time_limit()).unwrap(), scenario)
    };
    let (own, scenario) = flown(&plan);
    assert!(own.is_complete(), "{own:?}");
    let sockets = sockets();
    plan.physics = Some(format!("proxy:{}", sockets[0].local_addr().unwrap()));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let headings = (0..AIRCRAFT).map(|i| scenario.heading_rad(i));
        let back_ends: Vec<_> = sockets
            .iter()
            .zip(headings)
            .map(|(socket, heading_rad)| {
                let over = &over;
                scope.spawn(move || answer(socket, heading_rad, over))
            })
            .collect();
        let elsewhere = std::panic::catch_unwind(|| flown(&plan).0);
        over.store(true, Ordering::Relaxed);
        let elsewhere = elsewhere.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert_eq!(elsewhere.trace_hash, own.trace_hash, "the same physics behind a socket differs");
        for back_end in back_ends {
            assert!(back_end.join().unwrap() > 10_000, "a back-end was not asked");
        }
    });
}
