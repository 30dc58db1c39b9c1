//! Physics of another simulator in the place of ours: any that speaks ArduPilot's JSON interface (Gazebo, Webots and others;
//! `libraries/SITL/examples/JSON/readme.md` of ArduPilot). The bench is between the program and it, as GZUAVCHANNEL is between Gazebo and
//! ArduCopter: it translates the packets, and the simulator makes a step only when it has been given outputs.
//!
//! | to the simulator, by UDP, numbers little-endian | bytes | | from it, a line of JSON | |
//! |---|---|---|---|---|
//! | 18458 | 2 | | `timestamp` | seconds |
//! | steps a second that are wanted | 2 | | `imu.gyro`, `imu.accel_body` | forward, right, down |
//! | number of the frame | 4 | | `position`, `velocity` | north, east, down |
//! | pulses, µs | 16 × 2 | | `attitude` or `quaternion` | roll, pitch, yaw; scalar first |
#![allow(clippy::disallowed_methods, reason = "another program is waited for, and may fall silent")]

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant as Wall};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use wingbeat_geo::{DQuat, DVec3};

use crate::gazebo::OUTPUTS;

const MAGIC: u16 = 18_458;
/// The steps that are wanted; the simulator is free to make others.
const RATE_HZ: u16 = 400;
/// A step that is longer is none of an aircraft's physics.
const STEP_MOST_S: f64 = 0.01;
/// A frame without an answer is sent again so often, as the program itself does with this interface.
const AGAIN: Duration = Duration::from_secs(1);
/// More than an answer has.
const ANSWER_BYTES_MOST: usize = 65_536;
/// A message quotes so much of an answer.
const QUOTED: usize = 120;

/// What an aircraft does, in ArduPilot's axes: forward, right, down; north, east, down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Since it began: a simulator that begins with us begins at 0, of one that runs already the first answer counts. Seconds.
    pub time_s: f64,
    /// Rate of turn, rad/s.
    pub rate_rad_s: DVec3,
    /// What accelerometers measure, m/s².
    pub force_m_s2: DVec3,
    /// From the aircraft's axes to those of the earth.
    pub attitude: DQuat,
    /// m/s.
    pub velocity_ned: DVec3,
    /// From where the simulator has its origin, metres.
    pub position_ned: DVec3,
}

/// What the simulator answers.
#[derive(Deserialize)]
struct Answer {
    timestamp: f64,
    imu: Imu,
    position: [f64; 3],
    velocity: [f64; 3],
    attitude: Option<[f64; 3]>,
    quaternion: Option<[f64; 4]>,
}

#[derive(Deserialize)]
struct Imu {
    gyro: [f64; 3],
    accel_body: [f64; 3],
}

impl Answer {
    fn state(&self, began_s: f64) -> Result<State> {
        let attitude = match (self.quaternion, self.attitude) {
            (Some([w, x, y, z]), _) => DQuat::from_xyzw(x, y, z, w),
            (None, Some([roll, pitch, yaw])) => {
                DQuat::from_rotation_z(yaw) * DQuat::from_rotation_y(pitch) * DQuat::from_rotation_x(roll)
            }
            (None, None) => bail!("found neither attitude nor quaternion, expected one of them"),
        };
        let state = State {
            time_s: self.timestamp - began_s,
            rate_rad_s: self.imu.gyro.into(),
            force_m_s2: self.imu.accel_body.into(),
            attitude,
            velocity_ned: self.velocity.into(),
            position_ned: self.position.into(),
        };
        let vectors = [state.rate_rad_s, state.force_m_s2, state.velocity_ned, state.position_ned];
        ensure!(
            state.time_s.is_finite() && vectors.iter().all(|v| v.is_finite()) && attitude.is_finite(),
            "found a number without a value"
        );
        ensure!((attitude.length() - 1.0).abs() < 0.01, "found a quaternion of length {}", attitude.length());
        Ok(state)
    }
}

/// A simulator, and the aircraft that it moves.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    socket: UdpSocket,
    frame: u32,
    began_s: Option<f64>,
    last: Option<State>,
    silence: Duration,
}

impl Proxy {
    /// For the simulator at an address, which has failed when it answers nothing for `silence`, by the wall clock.
    ///
    /// # Errors
    /// The system gives no socket.
    pub fn new(address: SocketAddr, silence: Duration) -> Result<Self> {
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).context("physics: a socket")?;
        socket.connect(address).with_context(|| format!("physics: {address}"))?;
        socket.set_read_timeout(Some(AGAIN))?;
        Ok(Self { address, socket, frame: 0, began_s: None, last: None, silence })
    }

    /// Hands over the pulses, and waits until the simulator has made a step with them.
    ///
    /// # Errors
    /// It is not there, fell silent, or answers what is none.
    pub fn step(&mut self, pulses_us: [u16; OUTPUTS]) -> Result<State> {
        let mut frame = [MAGIC.to_le_bytes(), RATE_HZ.to_le_bytes()].concat();
        frame.extend(self.frame.to_le_bytes());
        frame.extend(pulses_us.iter().flat_map(|pulse| pulse.to_le_bytes()));
        self.frame = self.frame.wrapping_add(1);
        let (began, mut answer) = (Wall::now(), vec![0; ANSWER_BYTES_MOST]);
        loop {
            // Refused: it is not there yet, or not any more.
            let sent = self.socket.send(&frame);
            let received = sent.and_then(|_| self.receive(&mut answer));
            match received {
                Ok(state) => return state,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock
                            | ErrorKind::TimedOut
                            | ErrorKind::Interrupted
                            | ErrorKind::ConnectionRefused
                    ) =>
                {
                    ensure!(
                        began.elapsed() < self.silence,
                        "physics: found no new answer from {} for {:.0} s of the wall clock after {:.2} s of the flight, expected a simulator that \
                         speaks ArduPilot's JSON interface there ({error})",
                        self.address,
                        self.silence.as_secs_f64(),
                        self.last.map_or(0.0, |state| state.time_s)
                    );
                    if error.kind() == ErrorKind::ConnectionRefused {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
                Err(error) => return Err(error).with_context(|| format!("physics: {}", self.address)),
            }
        }
    }

    /// The next answer that is new: one to a frame that was sent again may come twice.
    fn receive(&mut self, answer: &mut [u8]) -> std::io::Result<Result<State>> {
        let began = Wall::now();
        loop {
            let length = self.socket.recv(answer)?;
            let state = self.read(&answer[..length]);
            if let (Ok(state), Some(last)) = (&state, self.last)
                && state.time_s <= last.time_s
            {
                if began.elapsed() < AGAIN {
                    continue;
                }
                let (found_s, last_s) = (state.time_s, last.time_s);
                let why = format!(
                    "its time is {found_s:.4} s, and was {last_s:.4} s: it goes back or stands still"
                );
                return Err(std::io::Error::new(ErrorKind::TimedOut, why));
            }
            if let Ok(state) = &state {
                self.last = Some(*state);
            }
            return Ok(state);
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<State> {
        let text = String::from_utf8_lossy(bytes);
        let quoted: String = text.trim().chars().take(QUOTED).collect();
        let place = || format!("physics: {}: found {quoted:?}, expected a line of JSON", self.address);
        let answer: Answer = serde_json::from_str(text.trim()).with_context(place)?;
        let begins = (0.0..=STEP_MOST_S).contains(&answer.timestamp);
        let began_s = self.began_s.unwrap_or(if begins { 0.0 } else { answer.timestamp });
        let state = answer.state(began_s).with_context(place)?;
        if let Some(last) = self.last {
            let step_s = state.time_s - last.time_s;
            ensure!(
                step_s <= STEP_MOST_S,
                "physics: {}: found a step of {step_s:.4} s, expected {STEP_MOST_S} s at most",
                self.address
            );
        }
        self.began_s = Some(began_s);
        Ok(state)
    }
}

impl State {
    /// Where the nose points, clockwise from north.
    pub fn heading_rad(&self) -> f64 {
        let nose = self.attitude * DVec3::X;
        nose.y.atan2(nose.x).rem_euclid(core::f64::consts::TAU)
    }
}
