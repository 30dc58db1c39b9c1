//! Lock step with ArduCopter 4.x: with a peer of the test's own that behaves as its SITL does, with programs that do not, and
//! with a real one where `WINGBEAT_SITL_4` names it.
#![allow(clippy::disallowed_methods, reason = "another process is waited for")]

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::{Duration as Wall, Instant as Now};

use crate::programs::{Arguments, END, config, flown, new as program};
use wingbeat_cosim::copter::{Config, Copter, LockStep, STRETCH};
use wingbeat_cosim::gazebo::measured;
use wingbeat_cosim::json::{OUTPUTS_LEN, outputs, sensors};
use wingbeat_cosim::program::named;
use wingbeat_geo::{DVec3, Duration, Instant};
use wingbeat_sim::autopilot::{Autopilot, Incident};
use wingbeat_sim::motion::BatteryParameters;
use wingbeat_sim::rigid::{Body, Rigid};

/// Physics steps in a stretch of 10 ms.
const STEPS: u32 = 4;
/// How long the peer waits until it repeats its outputs. SITL waits a second.
const REPEATS_AFTER: Wall = Wall::from_millis(100);
/// A program that is waited for in vain; on a loaded computer a shell begins within this.
const SOON: Wall = Wall::from_secs(8);

/// The test's own side of a program's ports, as SITL has them.
struct Peer {
    arguments: Arguments,
    /// Its defaults file, the last value of each.
    defaults: BTreeMap<String, f64>,
    serial: TcpStream,
    socket: UdpSocket,
    /// How many answers it has had: the number of its outputs.
    number: u32,
    /// Its clock, as SITL keeps it: whole microseconds.
    time_us: u64,
    stamp_s: f64,
    /// What it was told last.
    position_ned: [f64; 3],
    pulses: [u16; 16],
}

impl Peer {
    /// Waits until the bench has started the program that notes its directory and its arguments, then takes its place.
    fn after(noted: &Path) -> Self {
        let arguments = Arguments::of(noted);
        let file = Path::new(&arguments.0[0]).join(arguments.value("--defaults"));
        let text = std::fs::read_to_string(file).unwrap();
        let words = text.lines().filter_map(|line| line.split_once(' '));
        let defaults = words.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect();
        // As SITL: from any port.
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_read_timeout(Some(REPEATS_AFTER)).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port("--base-port"))).unwrap();
        let (serial, _) = listener.accept().unwrap();
        let pulses = [1000; 16];
        let position_ned = [0.0; 3];
        Self {
            arguments,
            defaults,
            serial,
            socket,
            number: 0,
            time_us: 1,
            stamp_s: 0.0,
            position_ned,
            pulses,
        }
    }

    fn packet(&self) -> Vec<u8> {
        let head = 18_458_u16.to_le_bytes().into_iter().chain(400_u16.to_le_bytes());
        let number = self.number.to_le_bytes();
        head.chain(number).chain(self.pulses.iter().flat_map(|pulse| pulse.to_le_bytes())).collect()
    }

    fn send(&self, packet: &[u8]) {
        let bench = (Ipv4Addr::LOCALHOST, self.arguments.port("--sim-port-out"));
        self.socket.send_to(packet, bench).unwrap();
    }

    /// As SITL's step: outputs, repeated with their number until they are answered. Returns how often they were repeated.
    fn step(&mut self) -> usize {
        self.send(&self.packet());
        let (mut answer, mut repeated, end) = ([0; 2_000], 0, Now::now() + END);
        let length = loop {
            match self.socket.recv(&mut answer) {
                Ok(length) => break length,
                Err(_) => {
                    assert!(Now::now() < end, "no answer");
                    repeated += 1;
                    self.send(&self.packet());
                }
            }
        };
        // One answer, and no other before the next outputs.
        self.socket.set_nonblocking(true).unwrap();
        assert!(self.socket.recv(&mut [0; 2_000]).is_err(), "a repetition was answered");
        self.socket.set_nonblocking(false).unwrap();
        let line = std::str::from_utf8(&answer[..length]).unwrap();
        assert!(line.starts_with("\n{\"timestamp\":") && line.ends_with("\"no_time_sync\":1}\n"), "{line}");
        let (_, stamp) = line.split_once(':').unwrap();
        let stamp_s: f64 = stamp.split(',').next().unwrap().parse().unwrap();
        // `time_now_us += deltat * 1.0e6` of SIM_JSON.cpp.
        self.time_us = (self.time_us as f64 + (stamp_s - self.stamp_s) * 1.0e6) as u64;
        self.stamp_s = stamp_s;
        let (_, position) = line.split_once("\"position\":[").unwrap();
        let numbers = position.split(']').next().unwrap().split(',').map(|number| number.parse().unwrap());
        self.position_ned = numbers.collect::<Vec<f64>>().try_into().unwrap();
        self.number += 1;
        repeated
    }

    /// It stays until the bench has gone.
    fn stay(&mut self) {
        while matches!(self.serial.read(&mut [0; 64]), Ok(1..)) {}
    }
}

/// A bench and a peer in the place of its program.
fn with_peer(silence: Wall, bench: impl FnOnce(Copter), peer: impl FnOnce(Peer) + Send) {
    with_peer_and(config(silence), bench, peer);
}

fn with_peer_and(config: Config, bench: impl FnOnce(Copter), peer: impl FnOnce(Peer) + Send) {
    let folder = tempfile::tempdir().unwrap();
    let noted = folder.path().join("noted");
    let body = format!("echo \"$PWD\" \"$LD_PRELOAD\" \"$@\" > {}; exec sleep 1000", noted.display());
    let step = LockStep::find(&program(folder.path(), &body)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| peer(Peer::after(&noted)));
        bench(Copter::start(&step, config).unwrap());
    });
}

/// A back-end of ArduPilot's JSON interface: our own rigid body behind a socket, each answer at the end of a step of so many
/// seconds, by a clock that runs already. It ends when nothing is asked any more.
struct BackEnd {
    socket: UdpSocket,
    step_s: f64,
    began_s: f64,
}

impl BackEnd {
    fn new(step_s: f64, began_s: f64) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        Self { socket, step_s, began_s }
    }

    fn run(&self) {
        let mut body = Rigid::new(Body::default(), BatteryParameters::default(), config(END).heading_rad);
        self.socket.set_read_timeout(Some(Wall::from_secs(10))).unwrap();
        let (mut packet, mut steps, mut last) = ([0; 200], 0, None);
        while let Ok((length, from)) = self.socket.recv_from(&mut packet) {
            let outputs = outputs(&packet[..length]).unwrap();
            // As Gazebo's: what it was asked already is no step.
            if last.replace(outputs.number) != Some(outputs.number) {
                steps += 1;
                body.step(self.step_s, outputs.motors, DVec3::ZERO);
            }
            let line = sensors(&measured(self.began_s + f64::from(steps) * self.step_s, &body));
            let line = line.replace(",\"no_time_sync\":1", "");
            self.socket.send_to(line.as_bytes(), from).unwrap();
        }
    }
}

#[test]
fn it_is_started_as_the_cures_of_what_would_not_repeat_need_it() {
    with_peer(
        END,
        |mut copter| {
            flown(&mut copter, Instant::ZERO + STRETCH).unwrap();
        },
        |mut peer| {
            let value = |name: &str| peer.arguments.value(name);
            assert_eq!(value("--model"), "JSON:127.0.0.1");
            assert_eq!(value("--serial0"), "tcp:0:wait");
            assert_eq!(value("--sim-address"), "127.0.0.1");
            // The clock of its GPS begins in 2026, whatever the wall clock shows, and no library is needed for it.
            assert_eq!(value("--start-time"), "1767225600");
            assert!(peer.arguments.0.iter().all(|word| !word.contains("faketime") && word != "--speedup"));
            let rate_hz: f64 = value("--rate").parse().unwrap();
            let parameter = |name: &str| peer.defaults[name];
            assert_eq!(parameter("LOG_BACKEND_TYPE"), 0.0);
            assert_eq!(parameter("SYSID_THISMAV"), 1.0);
            // All checks but that of the logger: no bit 0, which is all, and no bit 10.
            assert_eq!(parameter("ARMING_CHECK") as u32, ((1 << 21) - 1) & !1 & !(1 << 10));
            // "Gyro rate < loop rate x 1.8" is a check before arming.
            assert!(rate_hz >= 1.8 * parameter("SCHED_LOOP_RATE"), "{rate_hz} Hz");
            peer.step();
            assert_eq!(peer.time_us, 1 + (1.0e6 / rate_hz) as u64);
            for _ in 1..STEPS {
                peer.step();
            }
            peer.send(&peer.packet());
            peer.stay();
        },
    );
}

#[test]
fn every_step_is_answered_once_however_long_the_bench_pauses() {
    let stretches = 12;
    with_peer(
        END,
        |mut copter| {
            for i in 1..=stretches {
                if i % 4 == 0 {
                    // The peer repeats its outputs meanwhile.
                    std::thread::sleep(REPEATS_AFTER * 3);
                }
                copter.receive(&[i as u8; 3]);
                let bytes = flown(&mut copter, Instant::ZERO + STRETCH * i).unwrap();
                let steps = (i - 1) * STEPS..i * STEPS;
                let expected: Vec<u8> = steps.map(|k| k as u8 + 1).collect();
                assert_eq!(bytes, expected, "stretch {i}");
            }
            assert!(copter.truth().landed && !copter.truth().armed);
        },
        |mut peer| {
            let mut repeated = 0;
            for k in 0..stretches * STEPS {
                if k > 0 {
                    peer.serial.write_all(&[k as u8]).unwrap();
                }
                repeated += peer.step();
                if k % STEPS == 0 {
                    // What was sent before the answer is there.
                    let mut sent = [0; 3];
                    peer.serial.read_exact(&mut sent).unwrap();
                    assert_eq!(sent, [(k / STEPS) as u8 + 1; 3]);
                }
            }
            assert!(repeated >= 3, "{repeated}");
            peer.serial.write_all(&[(stretches * STEPS) as u8]).unwrap();
            peer.send(&peer.packet());
            peer.stay();
        },
    );
}

#[test]
fn its_clock_keeps_step_although_it_cuts_to_microseconds_and_its_socket_is_emptied() {
    let stretches = 2_000;
    with_peer(
        END,
        |mut copter| {
            let mut bytes = 0;
            for i in 1..=stretches {
                bytes += flown(&mut copter, Instant::ZERO + STRETCH * i).unwrap().len();
            }
            assert_eq!(bytes, 16_384);
        },
        |mut peer| {
            for k in 0..stretches * STEPS {
                if k == 5 {
                    // Much at once: a program with a speed-up would wait until less than 1024 bytes are unread.
                    peer.serial.write_all(&[7; 16_384]).unwrap();
                }
                peer.step();
                assert_eq!(peer.time_us, 1 + u64::from(k + 1) * 2_500, "step {k}");
            }
            peer.send(&peer.packet());
            peer.stay();
        },
    );
}

#[test]
fn outputs_move_the_body() {
    with_peer(
        END,
        |mut copter| {
            for i in 1..=200 {
                flown(&mut copter, Instant::ZERO + STRETCH * i).unwrap();
            }
            let truth = copter.truth();
            assert!(!truth.landed && truth.local.z > 3.0, "{truth:?}");
        },
        |mut peer| {
            peer.pulses[..4].copy_from_slice(&[1700; 4]);
            for _ in 0..200 * STEPS {
                peer.step();
            }
            peer.send(&peer.packet());
            peer.stay();
        },
    );
}

#[test]
fn another_programs_physics_moves_the_body_and_its_time_is_the_worlds() {
    let back_end = BackEnd::new(0.001, 71.25);
    let there = back_end.socket.local_addr().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| back_end.run());
        with_peer_and(
            Config { physics: Some(there), ..config(END) },
            |mut copter| {
                for i in 1..=200 {
                    copter.receive(&[i as u8]);
                    flown(&mut copter, Instant::ZERO + STRETCH * i).unwrap();
                }
                let truth = copter.truth();
                assert!(!truth.landed && truth.local.z > 3.0, "{truth:?}");
                assert!((truth.heading_rad - 1.0).abs() < 1e-6, "{truth:?}");
                let flown_s = truth.flight_time.as_micros() as f64 * 1e-6;
                assert!((1.0..2.0).contains(&flown_s), "{flown_s} s in the air");
            },
            |mut peer| {
                peer.pulses[..4].copy_from_slice(&[1700; 4]);
                // A clock that runs counts from its first answer; then ten in each stretch.
                for step in 0..2_001 {
                    peer.step();
                    assert_eq!(peer.time_us, 1 + step * 1_000, "step {step}");
                }
                peer.send(&peer.packet());
                peer.stay();
            },
        );
    });
}

#[test]
fn a_back_end_that_is_silent_or_steps_too_far_ends_the_flight() {
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let coarse = BackEnd::new(0.004, 0.0);
    let place = |socket: &UdpSocket| socket.local_addr().unwrap();
    let cases = [
        (place(&silent), "for 2 s of the wall clock after 0.00 s of the flight"),
        (place(&coarse.socket), "found a step of 0.0040 s, expected 0.00278 s at most"),
        ("127.0.0.1:9".parse().unwrap(), "found no new answer from 127.0.0.1:9 "),
    ];
    std::thread::scope(|scope| {
        scope.spawn(|| coarse.run());
        for (there, expected) in cases {
            with_peer_and(
                Config { physics: Some(there), ..config(Wall::from_secs(2)) },
                |mut copter| {
                    let error = (1..10).find_map(|i| flown(&mut copter, Instant::ZERO + STRETCH * i).err());
                    assert!(error.as_ref().is_some_and(|e| e.contains(expected)), "{error:?}");
                },
                |mut peer| {
                    for _ in 0..2 {
                        peer.send(&peer.packet());
                        peer.number += 1;
                        let _ = peer.socket.recv(&mut [0; 2_000]);
                    }
                    peer.stay();
                },
            );
        }
    });
}

/// Flies until the flight ends; the message must have this part.
fn ends_with(expected: &str, peer: impl FnOnce(Peer) + Send) {
    with_peer(
        SOON,
        |mut copter| {
            let error = (1..1_000)
                .find_map(|i| flown(&mut copter, Instant::ZERO + STRETCH * i).err())
                .expect("the flight ends");
            assert!(error.contains(expected), "{error}");
            assert!(flown(&mut copter, Instant::from_secs(20)).is_err(), "asked again it flies");
        },
        peer,
    );
}

#[test]
fn a_program_that_falls_silent_ends_the_flight() {
    ends_with("is silent: no outputs for 8 s after 0.03 s of its flight", |mut peer| {
        for _ in 0..10 {
            peer.step();
        }
        peer.stay();
    });
}

#[test]
fn a_program_that_repeats_itself_forever_has_fallen_silent() {
    ends_with("is silent: no outputs for 8 s after 0.01 s of its flight", |mut peer| {
        for _ in 0..3 {
            peer.step();
        }
        // What it had been answered to last, as if no answer had come.
        peer.number -= 1;
        peer.serial.set_read_timeout(Some(REPEATS_AFTER)).unwrap();
        while !matches!(peer.serial.read(&mut [0; 64]), Ok(0)) {
            peer.send(&peer.packet());
        }
    });
}

#[test]
fn a_program_that_answers_twice_ends_the_flight() {
    let (tell, both_are_sent) = std::sync::mpsc::channel();
    with_peer(
        END,
        |mut copter| {
            flown(&mut copter, Instant::ZERO + STRETCH).unwrap();
            both_are_sent.recv().unwrap();
            let error = flown(&mut copter, Instant::ZERO + STRETCH * 2).unwrap_err();
            let expected = "outputs: found number 5, expected 4: it took another answer than ours";
            assert!(error.contains(expected), "{error}");
        },
        move |mut peer| {
            for _ in 0..STEPS {
                peer.step();
            }
            peer.send(&peer.packet());
            peer.number += 1;
            peer.send(&peer.packet());
            tell.send(()).unwrap();
            peer.stay();
        },
    );
}

#[test]
fn a_program_that_leaves_a_number_out_ends_the_flight() {
    ends_with("outputs: found number 4, expected 3: it took another answer than ours", |mut peer| {
        for _ in 0..3 {
            peer.step();
        }
        peer.number += 1;
        peer.send(&peer.packet());
        peer.stay();
    });
}

#[test]
fn a_program_that_starts_again_ends_the_flight() {
    ends_with("outputs: found number 0, expected 5", |mut peer| {
        for _ in 0..5 {
            peer.step();
        }
        peer.number = 0;
        peer.send(&peer.packet());
        peer.stay();
    });
}

#[test]
fn another_programs_outputs_end_the_flight() {
    ends_with("alone", |mut peer| {
        peer.step();
        let own = std::mem::replace(&mut peer.socket, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        peer.send(&peer.packet());
        peer.stay();
        drop(own);
    });
}

#[test]
fn packets_of_another_version_end_the_flight() {
    let message =
        format!("found a packet of 64 bytes that is none of the model JSON, expected {OUTPUTS_LEN} bytes");
    ends_with(&message, |mut peer| {
        peer.step();
        peer.send(&[0; 64]);
        peer.stay();
    });
}

#[test]
fn a_serial_port_that_closes_ends_the_flight() {
    ends_with("its serial port closed", |mut peer| {
        peer.serial.shutdown(std::net::Shutdown::Write).unwrap();
        peer.step();
        peer.send(&peer.packet());
        peer.stay();
    });
}

#[test]
fn a_program_that_dies_is_reported_with_its_last_lines_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("where");
    let body = format!("pwd > {}; echo bind failed on port 5760; exit 3", record.display());
    let step = LockStep::find(&program(folder.path(), &body)).unwrap();
    let mut copter = Copter::start(&step, config(END)).unwrap();
    let error = flown(&mut copter, Instant::ZERO + STRETCH).unwrap_err();
    drop(copter);
    assert!(error.contains("does not start: exit status 3"), "{error}");
    assert!(error.contains("bind failed on port 5760"), "{error}");
    let directory = std::fs::read_to_string(record).unwrap();
    assert!(!Path::new(directory.trim()).exists(), "{directory} is left");
}

/// What happens to it is done to the physics: it climbs, is measured aside, and falls when its motors fail.
#[test]
fn a_program_sees_where_its_position_drifts_to_and_falls_without_motors() {
    let drifts = Incident::PositionDrifts { to_m: DVec3::new(0.0, 2.0, 0.0), within: Duration::ZERO };
    with_peer(
        END,
        |mut copter| {
            let fly = |copter: &mut Copter, stretches: RangeInclusive<u32>| {
                for i in stretches {
                    flown(copter, Instant::ZERO + STRETCH * i).unwrap();
                }
                copter.truth()
            };
            let up = fly(&mut copter, 1..=150);
            assert!(up.local.z > 3.0 && up.local.truncate().length() < 1e-6, "{up:?}");
            copter.suffer(drifts).unwrap();
            copter.suffer(Incident::MotorsFail).unwrap();
            let error = copter.suffer(Incident::Stuck(true)).unwrap_err();
            assert!(error.contains("simulated flight controllers alone"), "{error}");
            let down = fly(&mut copter, 151..=500);
            assert!(
                down.landed && down.touchdown_m_s > 3.0 && down.local.truncate().length() < 1e-6,
                "{down:?}"
            );
        },
        |mut peer| {
            peer.pulses[..4].copy_from_slice(&[1700; 4]);
            let mut north_m = Vec::new();
            for _ in 0..500 * STEPS {
                peer.step();
                north_m.push(peer.position_ned[0]);
            }
            assert_eq!(north_m[600 - 1], 0.0);
            // It is there within a tenth of a second of its flight, and stays so on the ground.
            assert_eq!((north_m[600 + 40], north_m[1_999]), (2.0, 2.0));
            peer.send(&peer.packet());
            peer.stay();
        },
    );
}

#[test]
fn bytes_cross_as_often_as_is_stated() {
    let stretch = 3 * STRETCH;
    with_peer_and(
        Config { stretch, ..config(END) },
        |mut copter| {
            for i in 1..=4 {
                flown(&mut copter, Instant::ZERO + stretch * i).unwrap();
                assert_eq!(copter.poll_timeout(), Instant::ZERO + stretch * (i + 1));
            }
        },
        |mut peer| {
            for _ in 0..4 * 3 * STEPS {
                peer.step();
            }
            peer.send(&peer.packet());
            peer.stay();
        },
    );
}

/// A program that restarts in flight begins anew, its aircraft goes on where it is, and falls.
#[test]
fn a_program_that_restarts_in_flight_is_another_process_of_the_same_aircraft() {
    let folder = tempfile::tempdir().unwrap();
    let noted = folder.path().join("noted");
    let body = format!("echo \"$PWD\" \"$LD_PRELOAD\" \"$@\" > {}; exec sleep 1000", noted.display());
    let step = LockStep::find(&program(folder.path(), &body)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut first = Peer::after(&noted);
            std::fs::remove_file(&noted).unwrap();
            first.pulses[..4].copy_from_slice(&[1700; 4]);
            for _ in 0..200 * STEPS {
                first.step();
            }
            first.send(&first.packet());
            let mut second = Peer::after(&noted);
            assert_ne!(first.arguments.port("--base-port"), second.arguments.port("--base-port"));
            for _ in 0..300 * STEPS {
                second.step();
            }
            // Its own clock began at zero.
            assert_eq!(second.time_us, 1 + 300 * u64::from(STEPS) * 2_500);
            second.send(&second.packet());
            second.stay();
        });
        let mut copter = Copter::start(&step, config(END)).unwrap();
        for i in 1..=200 {
            flown(&mut copter, Instant::ZERO + STRETCH * i).unwrap();
        }
        let before = copter.truth();
        assert!(!before.landed && before.local.z > 5.0, "{before:?}");
        copter.suffer(Incident::Restarts).unwrap();
        flown(&mut copter, Instant::ZERO + STRETCH * 201).unwrap();
        let after = copter.truth();
        assert!((after.local - before.local).length() < 0.2 && !after.landed, "{after:?}");
        for i in 202..=500 {
            flown(&mut copter, Instant::ZERO + STRETCH * i).unwrap();
        }
        let end = copter.truth();
        assert!(end.landed && end.touchdown_m_s > 5.0 && end.flight_time > after.flight_time, "{end:?}");
    });
}

/// The real program of a test, or a line that there is none.
fn real() -> Option<LockStep> {
    named("WINGBEAT_SITL_4").map(|binary| LockStep::find(&binary).unwrap())
}

/// An aircraft of a real ArduCopter: 40 s after it is switched on, all that it has sent. In the second flight the bench pauses
/// for more than a second, after which SITL repeats its outputs. In the third our physics is behind a socket.
#[test]
fn a_real_arducopter_sends_the_same_bytes_twice_and_by_the_same_physics_elsewhere() {
    let Some(step) = real() else { return };
    let streams = "SR0_POSITION 10\nSR0_EXTRA1 10\nSR0_RAW_SENS 10\nSR0_EXT_STAT 5\n";
    let fly = |pause: Wall, physics: Option<SocketAddr>| {
        let config = Config { defaults: streams.to_owned(), physics, ..config(END) };
        let mut copter = Copter::start(&step, config).unwrap();
        let mut bytes = Vec::new();
        for i in 1..=4_000 {
            if i == 2_000 {
                std::thread::sleep(pause);
            }
            copter.begin(Instant::ZERO + STRETCH * i);
            copter.finish(&mut bytes).unwrap();
        }
        bytes
    };
    let first = fly(Wall::ZERO, None);
    assert!(first.len() > 20_000, "{} bytes", first.len());
    assert!(first == fly(Wall::from_millis(2_500), None), "two flights differ");
    let back_end = BackEnd::new(0.0025, 0.0);
    std::thread::scope(|scope| {
        scope.spawn(|| back_end.run());
        let elsewhere = fly(Wall::ZERO, Some(back_end.socket.local_addr().unwrap()));
        assert!(first == elsewhere, "the same physics behind a socket differs");
    });
}
