//! Lock step with a program: with a peer of the test's own that behaves as SITL does, with programs that do not, and with a real
//! ArduCopter where `WINGBEAT_SITL` names one.
#![allow(clippy::disallowed_methods, reason = "another process is waited for")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::time::{Duration as Wall, Instant as Now};

use crate::programs::{Arguments, END, config, executable, flown, old as program};
use wingbeat_cosim::copter::{Config, Copter, LockStep, STRETCH};
use wingbeat_cosim::gazebo::{OUTPUTS_LEN, SENSORS_LEN};
use wingbeat_cosim::program::named;
use wingbeat_geo::Instant;
use wingbeat_sim::autopilot::Autopilot;

/// Physics steps in a stretch of 10 ms.
const STEPS: usize = 4;
/// A program that is waited for in vain; on a loaded computer a shell begins within this.
const SOON: Wall = Wall::from_secs(8);

/// What the lock step needs of this computer is not here: the test says so and passes.
fn lock_step(binary: &Path) -> Option<LockStep> {
    match LockStep::find(binary) {
        Err(error) if error.to_string().contains("libfaketime") => {
            println!("skipped: {error}");
            None
        }
        found => Some(found.unwrap()),
    }
}

/// The error of a program's first stretch, and whether anything of it is left.
fn refused(body: &str, silence: Wall) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("where");
    let body = format!("pwd > {}\n{body}", record.display());
    let step = lock_step(&program(folder.path(), &body))?;
    let mut copter = Copter::start(&step, config(silence)).unwrap();
    let error = flown(&mut copter, Instant::ZERO + STRETCH).unwrap_err();
    drop(copter);
    let directory = std::fs::read_to_string(record).unwrap();
    assert!(!Path::new(directory.trim()).exists(), "{directory} is left");
    Some(error)
}

#[test]
fn a_program_that_dies_is_reported_with_its_last_lines_and_leaves_nothing() {
    let Some(error) = refused("echo bind failed on port; exit 3", END) else { return };
    assert!(error.contains("does not start: exit status 3"), "{error}");
    assert!(error.contains("bind failed on port"), "{error}");
}

#[test]
fn a_program_that_serves_no_port_is_given_up_after_its_time() {
    let Some(error) = refused("echo thinking; exec sleep 1000", SOON) else { return };
    assert!(error.contains("does not serve its serial port within"), "{error}");
    assert!(error.contains("thinking"), "{error}");
}

#[test]
fn programs_that_cannot_be_flown_are_refused_by_name() {
    let error = |path: &Path| format!("{:#}", LockStep::find(path).unwrap_err());
    assert!(error(Path::new("/nowhere/arducopter")).contains("/nowhere/arducopter"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("arducopter");
    std::fs::write(&path, "#!/bin/sh\n# Copter V4.6.2\necho --home --speedup --serial0\n").unwrap();
    assert!(error(&path).contains("expected an ArduCopter SITL program"), "not executable: {}", error(&path));
    executable(&path);
    LockStep::find(&path).unwrap();
    for (version, option) in
        [("3.6", "--uartA"), ("3.5", "--serial0"), ("4.3", "--uartA"), ("5.0", "--serial0")]
    {
        let text = format!("#!/bin/sh\n# Copter V{version}.1\necho --home --speedup {option}\n");
        std::fs::write(&path, text).unwrap();
        let expected =
            format!("found ArduCopter {version}, expected 3.5, or a version 4 with the option --serial0");
        assert!(error(&path).contains(&expected), "{}", error(&path));
    }
}

/// The test's own side of a program's ports, as SITL has them.
struct Peer {
    arguments: Arguments,
    environment: String,
    /// Parameters of the defaults file.
    defaults: String,
    serial: TcpStream,
    socket: UdpSocket,
    bench: u16,
    outputs: [u8; OUTPUTS_LEN],
}

/// How long SITL waits until it repeats its outputs.
const REPEATS_AFTER: Wall = Wall::from_millis(100);

impl Peer {
    /// Waits until the bench has started the program that notes its arguments, then takes its place.
    fn after(file: &Path) -> Self {
        let arguments = Arguments::of(file);
        let port = |name: &str| arguments.port(name);
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, port("--sim-port-in"))).unwrap();
        socket.set_read_timeout(Some(REPEATS_AFTER)).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port("--base-port"))).unwrap();
        let (serial, _) = listener.accept().unwrap();
        let beside = |name| std::fs::read_to_string(file.with_file_name(name)).unwrap();
        let (environment, defaults) = (beside("environment"), beside("defaults"));
        let bench = port("--sim-port-out");
        Self { arguments, environment, defaults, serial, socket, bench, outputs: [0; OUTPUTS_LEN] }
    }

    fn send(&self) {
        self.socket.send_to(&self.outputs, (Ipv4Addr::LOCALHOST, self.bench)).unwrap();
    }

    /// As SITL's step: outputs, repeated until they are answered. Returns the time stamp and how often they were repeated.
    fn step(&self) -> (f64, usize) {
        self.send();
        let (mut packet, mut repeated, end) = ([0; 200], 0, Now::now() + END);
        loop {
            match self.socket.recv(&mut packet) {
                Ok(length) => {
                    assert_eq!(length, SENSORS_LEN);
                    break;
                }
                Err(_) => {
                    assert!(Now::now() < end, "no answer");
                    repeated += 1;
                    self.send();
                }
            }
        }
        // One answer, and no other before the next outputs.
        self.socket.set_nonblocking(true).unwrap();
        assert!(self.socket.recv(&mut [0; 200]).is_err(), "a repetition was answered");
        self.socket.set_nonblocking(false).unwrap();
        (f64::from_le_bytes(packet[..8].try_into().unwrap()), repeated)
    }
}

/// A bench and a peer in the place of its program.
fn with_peer(silence: Wall, bench: impl FnOnce(Copter), peer: impl FnOnce(Peer) + Send) {
    let folder = tempfile::tempdir().unwrap();
    let arguments = folder.path().join("arguments");
    let at = folder.path().display();
    let body = format!(
        "env > {at}/environment; cp defaults.parm {at}/defaults; echo \"$@\" > {at}/arguments; exec sleep 1000"
    );
    let Some(step) = lock_step(&program(folder.path(), &body)) else { return };
    std::thread::scope(|scope| {
        scope.spawn(|| peer(Peer::after(&arguments)));
        bench(Copter::start(&step, config(silence)).unwrap());
    });
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
            assert_eq!(value("--model"), "gazebo");
            assert_eq!(value("--uartA"), "tcp:0:wait");
            assert_eq!(value("--sim-address"), "127.0.0.1");
            assert_eq!(value("--speedup"), "100");
            assert!(peer.arguments.0.iter().any(|word| word == "-S"), "its clock is synthetic");
            // The clock of its GPS stands still, and waiting still ends.
            for set in ["FAKETIME=2026-01-01 00:00:00", "DONT_FAKE_MONOTONIC=1", "TZ=UTC"] {
                assert!(peer.environment.lines().any(|line| line == set), "{set}: {}", peer.environment);
            }
            assert!(peer.environment.lines().any(|line| line.contains("LD_PRELOAD=/usr/lib")));
            for line in ["SYSID_THISMAV 1", "LOG_BACKEND_TYPE 0"] {
                assert!(peer.defaults.lines().any(|one| one == line), "{line}: {}", peer.defaults);
            }
            // All checks but that of the logger: no bit 0, which is all, and no bit 10.
            let checks = peer.defaults.lines().find_map(|line| line.strip_prefix("ARMING_CHECK "));
            assert_eq!(checks.unwrap().parse(), Ok(((1u32 << 13) - 1) & !1 & !(1 << 10)));
            for _ in 0..STEPS {
                peer.step();
            }
            peer.send();
            let _ = peer.serial.read(&mut [0; 8]);
        },
    );
}

#[test]
fn its_clock_keeps_step_although_it_cuts_to_microseconds_and_its_socket_is_emptied() {
    let stretches = 2_000;
    with_peer(
        END,
        |mut copter| {
            let read: Vec<usize> = (1..=stretches)
                .map(|i| flown(&mut copter, Instant::ZERO + STRETCH * i).unwrap().len())
                .collect();
            assert_eq!((read[1], read.iter().sum()), (16_384, 16_384));
        },
        |mut peer| {
            for k in 0..stretches as usize * STEPS {
                if k == 5 {
                    // Much at once: the program waits until less than 1024 bytes are unread.
                    peer.serial.write_all(&[7; 16_384]).unwrap();
                }
                let (time_s, _) = peer.step();
                assert_eq!((time_s * 1.0e6) as usize, (k + 1) * 2_500, "step {k}");
            }
            peer.send();
            let _ = peer.serial.read(&mut [0; 8]);
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
                let steps = (i as usize - 1) * STEPS..i as usize * STEPS;
                let expected: Vec<u8> = steps.map(|k| k as u8 + 1).collect();
                assert_eq!(bytes, expected, "stretch {i}");
            }
            assert!(copter.truth().landed && !copter.truth().armed);
        },
        |mut peer| {
            let mut repeated = 0;
            for k in 0..stretches as usize * STEPS {
                if k > 0 {
                    peer.serial.write_all(&[k as u8]).unwrap();
                }
                let (time_s, again) = peer.step();
                repeated += again;
                assert!((time_s - (k + 1) as f64 * 0.0025).abs() < 1e-6, "step {k}: {time_s} s");
                if k % STEPS == 0 {
                    // What was sent before the answer is there.
                    let mut sent = [0; 3];
                    peer.serial.read_exact(&mut sent).unwrap();
                    assert_eq!(sent, [(k / STEPS) as u8 + 1; 3]);
                }
            }
            assert!(repeated >= 3, "{repeated}");
            peer.serial.write_all(&[(stretches as usize * STEPS) as u8]).unwrap();
            peer.send();
            // It stays until the bench has gone.
            let _ = peer.serial.read(&mut [0; 8]);
        },
    );
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
    ends_with("is silent: no outputs for 8 s after 0.03 s of its flight", |peer| {
        for _ in 0..10 {
            peer.step();
        }
        // It lives, and its serial port is open, until the bench gives up.
        let end = (&peer.serial).read(&mut [0; 64]);
        assert!(!matches!(end, Ok(1..)), "{end:?}");
    });
}

#[test]
fn packets_of_another_version_end_the_flight() {
    ends_with("found a packet of 12 bytes, expected 64", |peer| {
        peer.step();
        peer.socket.send_to(&[0; 12], (Ipv4Addr::LOCALHOST, peer.bench)).unwrap();
        let _ = (&peer.serial).read(&mut [0; 64]);
    });
}

#[test]
fn a_program_that_answers_twice_ends_the_flight() {
    ends_with("sooner than it repeats them: it answers twice", |peer| {
        peer.serial.set_nonblocking(true).unwrap();
        let is_open = || match (&peer.serial).read(&mut [0; 64]) {
            Ok(length) => length > 0,
            Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
        };
        while is_open() {
            peer.send();
            peer.send();
            // The answer, where there is one.
            let _ = peer.socket.recv(&mut [0; 200]);
        }
    });
}

#[test]
fn a_serial_port_without_end_ends_the_flight() {
    ends_with("its serial port: found no end of what it sends", |peer| {
        let all = [7; 1 << 16];
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| while (&peer.serial).write_all(&all).is_ok() {});
            while !writer.is_finished() {
                // Much is there by then.
                std::thread::sleep(Wall::from_millis(20));
                peer.send();
                // Where there is no answer in time, it repeats itself.
                let _ = peer.socket.recv(&mut [0; 200]);
            }
        });
    });
}

#[test]
fn outputs_of_another_program_end_the_flight() {
    ends_with("alone", |peer| {
        peer.step();
        let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        other.send_to(&peer.outputs, (Ipv4Addr::LOCALHOST, peer.bench)).unwrap();
        let _ = (&peer.serial).read(&mut [0; 64]);
    });
}

#[test]
fn a_serial_port_that_closes_ends_the_flight() {
    ends_with("its serial port closed", |peer| {
        peer.serial.shutdown(std::net::Shutdown::Write).unwrap();
        peer.step();
        peer.send();
        let _ = (&peer.serial).read(&mut [0; 64]);
    });
}

/// An aircraft of a real ArduCopter: 40 s after it is switched on, all that it has sent.
#[test]
fn a_real_arducopter_sends_the_same_bytes_twice() {
    let Some(binary) = named("WINGBEAT_SITL") else { return };
    let Some(step) = lock_step(&binary) else { return };
    let streams = "SR0_POSITION 10\nSR0_EXTRA1 10\nSR0_RAW_SENS 10\nSR0_EXT_STAT 5\n";
    let fly = || {
        let config = Config { defaults: streams.to_owned(), ..config(END) };
        let mut copter = Copter::start(&step, config).unwrap();
        let mut bytes = Vec::new();
        for i in 1..=4_000 {
            copter.begin(Instant::ZERO + STRETCH * i);
            copter.finish(&mut bytes).unwrap();
        }
        bytes
    };
    let first = fly();
    assert!(first.len() > 20_000, "{} bytes", first.len());
    assert!(first == fly(), "two flights differ");
}
