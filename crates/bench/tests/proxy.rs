//! Real ArduCopters on the physics of another simulator, which is ours behind ArduPilot's JSON interface: so every byte is as without it.
//! Needs `WINGBEAT_SITL` (3.5), `WINGBEAT_SITL_4` (4.x).

use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wingbeat_bench::plan::Plan;
use wingbeat_bench::run;
use wingbeat_geo::DVec3;
use wingbeat_sim::motion::BatteryParameters;
use wingbeat_sim::rigid::{Body, MOTORS, Rigid};

const STEP_S: f64 = 0.0025;

/// Two neighbouring ports as the bench wants them, ten apart.
fn sockets() -> (u16, [UdpSocket; 2]) {
    for port in (20_011..32_000).step_by(23) {
        let bind = |port: u16| UdpSocket::bind(("127.0.0.1", port));
        if let (Ok(one), Ok(two)) = (bind(port), bind(port + 10)) {
            return (port, [one, two]);
        }
    }
    panic!("no ports are free");
}

/// An output of a pulse, as the bench has it of the program's own packets: 3.5's have numbers of 32 bits, 4.x's pulses.
type Output = fn(u16) -> f64;

/// Moves one aircraft as it is asked to.
fn simulate(socket: &UdpSocket, heading_rad: f64, output_of: Output, is_over: &AtomicBool) -> usize {
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let battery = BatteryParameters { capacity_mah: 1e7, ..BatteryParameters::default() };
    let mut body = Rigid::new(Body::default(), battery, heading_rad);
    let (mut frame, mut steps) = ([0; 100], 0);
    while !is_over.load(Ordering::Relaxed) {
        let Ok((40, from)) = socket.recv_from(&mut frame) else { continue };
        let mut outputs = [0.0; MOTORS];
        for (output, pulse) in outputs.iter_mut().zip(frame[8..].chunks_exact(2)) {
            *output = output_of(u16::from_le_bytes([pulse[0], pulse[1]]));
        }
        body.step(STEP_S, outputs, DVec3::ZERO);
        steps += 1;
        let list = |v: DVec3| format!("[{:?},{:?},{:?}]", v.x, v.y, v.z);
        let q = body.attitude();
        let answer = format!(
            "{{\"timestamp\":{:?},\"imu\":{{\"gyro\":{},\"accel_body\":{}}},\"position\":{},\"velocity\":{},\"quaternion\":[{:?},{:?},{:?},{:?}]}}\n",
            steps as f64 * STEP_S,
            list(body.rate_rad_s()),
            list(body.specific_force_m_s2()),
            list(body.position_ned()),
            list(body.velocity_ned()),
            q.w,
            q.x,
            q.y,
            q.z,
        );
        socket.send_to(answer.as_bytes(), from).unwrap();
    }
    steps
}

#[test]
fn our_physics_behind_the_json_interface_flies_every_byte_as_inside_the_bench() {
    flies_as_inside("WINGBEAT_SITL", |pulse_us| f64::from((f32::from(pulse_us) - 1000.0) / 1000.0));
}

#[test]
fn so_it_does_with_arducopter_4() {
    flies_as_inside("WINGBEAT_SITL_4", |pulse_us| (f64::from(pulse_us) - 1000.0) / 1000.0);
}

fn flies_as_inside(key: &str, output_of: Output) {
    let Some(binary) = wingbeat_cosim::program::named(key) else { return };
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/plans"));
    let mut plan = Plan::read(&folder.join("muscop-sitl.toml")).unwrap();
    plan.autopilot = Some(format!("arducopter:{}", binary.display()));
    plan.keep(Some(2), None).unwrap();
    let own = run::run(&plan, folder, 1, 1).unwrap();
    assert!(own.failed.is_empty(), "{:?}", own.failed);
    let (port, sockets) = sockets();
    plan.physics = Some(format!("proxy:127.0.0.1:{port}"));
    let scenario = &plan.scenarios(folder, 1_000).unwrap()[0];
    let is_over = Arc::new(AtomicBool::new(false));
    let elsewhere = std::thread::scope(|scope| {
        let simulators: Vec<_> = sockets
            .iter()
            .enumerate()
            .map(|(i, socket)| {
                let (heading_rad, is_over) = (scenario.heading_rad(i), Arc::clone(&is_over));
                scope.spawn(move || simulate(socket, heading_rad, output_of, &is_over))
            })
            .collect();
        let flown = run::run(&plan, folder, 1, 1);
        is_over.store(true, Ordering::Relaxed);
        for simulator in simulators {
            let steps = simulator.join().unwrap();
            assert!(steps > 20_000, "{steps}");
        }
        flown.unwrap()
    });
    assert_eq!((elsewhere.table, elsewhere.trace_hash), (own.table, own.trace_hash));
    plan.conditions.wind_m_s = 3.0;
    let message = format!("{:#}", plan.flights(folder, 1).unwrap_err());
    assert!(message.contains("physics: found wind, expected none"), "{message}");
}
