//! Another simulator's physics by ArduPilot's JSON interface: what it is asked, and what it may answer.
#![allow(clippy::disallowed_methods, reason = "another program is waited for")]

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use wingbeat_cosim::gazebo::OUTPUTS;
use wingbeat_cosim::proxy::Proxy;
use wingbeat_geo::DVec3;

const PATIENCE: Duration = Duration::from_millis(2_500);

/// A simulator that answers each frame with one of these texts, and what it was asked.
fn simulator(answers: Vec<Option<String>>) -> (SocketAddr, std::thread::JoinHandle<Vec<Vec<u8>>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let address = socket.local_addr().unwrap();
    let asked = std::thread::spawn(move || {
        let mut frames = Vec::new();
        for answer in answers {
            let mut frame = [0; 100];
            let Ok((length, from)) = socket.recv_from(&mut frame) else { break };
            frames.push(frame[..length].to_vec());
            if let Some(answer) = answer {
                socket.send_to(answer.as_bytes(), from).unwrap();
            }
        }
        frames
    });
    (address, asked)
}

fn answer(timestamp: f64, attitude: &str) -> String {
    format!(
        "\n{{\"timestamp\":{timestamp:?},\"imu\":{{\"gyro\":[0.1,0.2,0.3],\"accel_body\":[0,0,-9.8]}},\"position\":[1,2,-3],{attitude}\
         \"velocity\":[4,5,-6],\"rng_1\":3}}\n"
    )
}

#[test]
fn frames_are_numbered_and_answers_of_both_attitudes_are_read() {
    let euler = format!("\"attitude\":[0,0,{:?}],", core::f64::consts::FRAC_PI_2);
    let turn = "\"quaternion\":[0.7071067811865476,0,0,0.7071067811865476],";
    // The answer to the second is lost.
    let answers =
        [Some(answer(100.0, &euler)), None, Some(answer(100.002, turn)), Some(answer(100.003, &euler))];
    let (address, asked) = simulator(answers.to_vec());
    let mut proxy = Proxy::new(address, Duration::from_secs(20)).unwrap();
    let mut pulses = [1000; OUTPUTS];
    pulses[2] = 1730;
    let states = [(); 3].map(|()| proxy.step(pulses).unwrap());
    for (state, time_s) in states.iter().zip([0.0, 0.002, 0.003]) {
        assert!((state.time_s - time_s).abs() < 1e-9, "{state:?}");
        assert!((state.heading_rad() - core::f64::consts::FRAC_PI_2).abs() < 1e-9, "{state:?}");
        assert_eq!(state.rate_rad_s, DVec3::new(0.1, 0.2, 0.3));
        assert_eq!((state.position_ned.z, state.velocity_ned.x, state.force_m_s2.z), (-3.0, 4.0, -9.8));
    }
    let frames = asked.join().unwrap();
    let number = |frame: &[u8]| u32::from_le_bytes(frame[4..8].try_into().unwrap());
    assert_eq!(frames.iter().map(|frame| number(frame)).collect::<Vec<_>>(), [0, 1, 1, 2]);
    for frame in &frames {
        assert_eq!(frame.len(), 40);
        // 18458, 400 Hz, then 1000, 1000, 1730 µs.
        assert_eq!(
            (&frame[..4], &frame[8..14]),
            (&[0x1a, 0x48, 0x90, 1][..], &[0xe8, 3, 0xe8, 3, 0xc2, 6][..])
        );
    }
}

#[test]
fn what_is_no_answer_ends_the_flight_with_its_words() {
    let level = "\"attitude\":[0,0,0],";
    for (answers, expected) in [
        (vec![Some("hello".to_owned())], "found \"hello\", expected a line of JSON"),
        (vec![Some(answer(0.0, ""))], "found neither attitude nor quaternion"),
        (vec![Some(answer(0.0, "\"quaternion\":[1,1,0,0],"))], "found a quaternion of length 1.41"),
        (vec![Some(answer(0.0, level).replace("\"position\":[1,2,-3],", ""))], "missing field `position`"),
        (
            vec![Some(answer(0.0, level)), Some(answer(0.02, level))],
            "found a step of 0.0200 s, expected 0.01 s at most",
        ),
        (vec![Some(answer(0.0, level)), None, None, None], "found no new answer from 127.0.0.1:"),
    ] {
        let (address, asked) = simulator(answers);
        let mut proxy = Proxy::new(address, PATIENCE).unwrap();
        let error = (0..3).find_map(|_| proxy.step([1000; OUTPUTS]).err()).expect("one is refused");
        let found = format!("{error:#}");
        assert!(found.contains("physics: ") && found.contains(expected), "{expected}: {found}");
        drop(proxy);
        asked.join().unwrap();
    }
    let none = SocketAddr::from(([127, 0, 0, 1], 1));
    let found = format!("{:#}", Proxy::new(none, PATIENCE).unwrap().step([1000; OUTPUTS]).unwrap_err());
    assert!(found.contains("found no new answer from 127.0.0.1:1 for 2 s"), "{found}");
}

/// As one does whose world is set back, and one that goes on sending while it is paused.
#[test]
fn one_whose_time_goes_back_ends_the_flight() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let sends = std::thread::spawn(move || {
        let level = "\"attitude\":[0,0,0],";
        let (_, from) = socket.recv_from(&mut [0; 100]).unwrap();
        socket.send_to(answer(5.0, level).as_bytes(), from).unwrap();
        while ended.try_recv().is_err() {
            let _ = socket.send_to(answer(4.0, level).as_bytes(), from);
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let mut proxy = Proxy::new(address, PATIENCE).unwrap();
    proxy.step([1000; OUTPUTS]).unwrap();
    let found = format!("{:#}", proxy.step([1000; OUTPUTS]).unwrap_err());
    end.send(()).unwrap();
    sends.join().unwrap();
    assert!(
        found.contains("found no new answer") && found.contains("it goes back or stands still"),
        "{found}"
    );
}
