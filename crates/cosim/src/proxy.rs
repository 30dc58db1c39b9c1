//! The physics of another program: a back-end of ArduPilot's JSON interface (Gazebo, Webots, a simulator of one's own).
//!
//! The bench stands between the two: the outputs of the autopilot go to the back-end as they came, its answer goes to the
//! autopilot, and on the way the bench reads from it where the aircraft is. So aircraft that are flown by another program's
//! physics have our radio and our agents. Time is the back-end's: each answer moves it on, and the world waits for it.
//!
//! Two things are changed in an answer. Its time begins with the flight, and is never cut below a microsecond that it
//! states ([`STAMP_FACTOR`]); and the autopilot does not wait for the clock of the wall.
#![allow(clippy::disallowed_methods, reason = "another program is waited for, and may fall silent")]

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use wingbeat_geo::{DQuat, DVec3};

use crate::json::STAMP_FACTOR;

/// A back-end that does not answer is asked again so often, as SITL does: packets may be lost, and it may be started later.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// No answer is longer, bytes; SITL reads no more.
const ANSWER_MOST: usize = 65_000;
/// Between the autopilots of aircraft of one plan: the ports of ArduPilot's instances are so far apart.
const PORTS_APART: u16 = 10;
/// Steps of a back-end, seconds: longer ones are too few measurements of a gyroscope for the autopilot's main loop.
const STEP_MOST_S: f64 = 0.002_78;

/// Where the back-end of an aircraft (from 0) listens, if that of the first is there. `None` behind the last port.
pub fn address_of(first: SocketAddr, index: usize) -> Option<SocketAddr> {
    let apart = u16::try_from(index).ok()?.checked_mul(PORTS_APART)?;
    Some(SocketAddr::new(first.ip(), first.port().checked_add(apart)?))
}

/// What a back-end's answer says.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Seconds since the flight began.
    pub time_s: f64,
    /// Metres north, east and down of where it stood.
    pub position: DVec3,
    /// Metres a second north, east and down.
    pub velocity: DVec3,
    /// From the body's axes (forward, right, down) to north, east and down.
    pub attitude: DQuat,
    /// The answer as the autopilot is given it.
    pub line: String,
}

/// The way to a back-end.
#[derive(Debug)]
pub struct Proxy {
    socket: UdpSocket,
    back_end: SocketAddr,
    /// The stamp of the first answer, which is at the end of the first step.
    first_s: Option<f64>,
    last_s: f64,
}

impl Proxy {
    /// Opens the way to a back-end; whether it is there is seen at the first step.
    ///
    /// # Errors
    /// The system gives no socket.
    pub fn new(back_end: SocketAddr) -> Result<Self> {
        // Any answer but the back-end's is not received.
        let any = if back_end.ip().is_loopback() { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
        let socket = UdpSocket::bind((any, 0)).context("a socket for the back-end")?;
        socket.connect(back_end).with_context(|| format!("back-end {back_end}"))?;
        Ok(Self { socket, back_end, first_s: None, last_s: 0.0 })
    }

    /// Hands outputs on (a packet of [`crate::json`]) and waits for the answer; the first is at the end of a step of so
    /// many seconds.
    ///
    /// # Errors
    /// The back-end is silent for so long, or answers with what cannot be flown.
    pub fn step(&mut self, outputs: &[u8], first_step_s: f64, silence: Duration) -> Result<Measured> {
        let back_end = self.back_end;
        let began = Instant::now();
        let mut answer = vec![0; ANSWER_MOST];
        self.socket.set_read_timeout(Some(ASKED_AGAIN_AFTER.min(silence)))?;
        loop {
            // One that is not there yet refuses this or the next call.
            let sent = self.socket.send(outputs);
            let received = sent.and_then(|_| self.socket.recv(&mut answer));
            let length = match received {
                Ok(length) => length,
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
                        began.elapsed() < silence,
                        "back-end {back_end} is silent: no answer for {:.0} s after {:.2} s of the flight",
                        silence.as_secs_f64(),
                        self.last_s
                    );
                    if error.kind() == ErrorKind::ConnectionRefused {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    continue;
                }
                Err(error) => return Err(error).with_context(|| format!("back-end {back_end}")),
            };
            let text = std::str::from_utf8(&answer[..length]).unwrap_or("");
            let measured = self.read(text, first_step_s).with_context(|| format!("back-end {back_end}"))?;
            // An answer to outputs that were asked for twice came before: time does not stand still.
            if measured.time_s > self.last_s {
                let step_s = measured.time_s - self.last_s;
                ensure!(
                    step_s <= STEP_MOST_S,
                    "back-end {back_end}: found a step of {:.2} ms, expected at most {:.2} ms",
                    step_s * 1e3,
                    STEP_MOST_S * 1e3
                );
                self.last_s = measured.time_s;
                return Ok(measured);
            }
        }
    }

    fn read(&mut self, text: &str, first_step_s: f64) -> Result<Measured> {
        let stamp_s = number(text, "timestamp")?;
        let first_s = *self.first_s.get_or_insert(stamp_s);
        let time_s = stamp_s - first_s + first_step_s;
        // ArduPilot takes the quaternion where there are both.
        let attitude = if text.contains("\"quaternion\"") {
            let [w, x, y, z] = numbers(text, "quaternion")?;
            let attitude = DQuat::from_xyzw(x, y, z, w);
            ensure!(attitude.length() > 0.5, "found a quaternion of no length");
            attitude.normalize()
        } else {
            let [roll, pitch, yaw] = numbers(text, "attitude")?;
            DQuat::from_rotation_z(yaw) * DQuat::from_rotation_y(pitch) * DQuat::from_rotation_x(roll)
        };
        Ok(Measured {
            time_s,
            position: numbers(text, "position")?.into(),
            velocity: numbers(text, "velocity")?.into(),
            attitude,
            line: changed(text, time_s)?,
        })
    }
}

/// The text behind a key and its colon, found as ArduPilot finds it: at the key's first occurrence.
fn behind<'a>(text: &'a str, key: &str) -> Result<&'a str> {
    let quoted = format!("\"{key}\"");
    let (_, rest) = text.split_once(&quoted).with_context(|| format!("found no {key} in {text:?}"))?;
    let rest = rest.trim_start().strip_prefix(':');
    rest.map(str::trim_start).with_context(|| format!("{key}: found no value in {text:?}"))
}

fn number(text: &str, key: &str) -> Result<f64> {
    let value = behind(text, key)?;
    let end = value.find([',', '}', ']']).unwrap_or(value.len());
    finite(&value[..end], key)
}

fn finite(text: &str, key: &str) -> Result<f64> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    number.with_context(|| format!("{key}: found {:?}, expected a number", text.trim()))
}

fn numbers<const N: usize>(text: &str, key: &str) -> Result<[f64; N]> {
    let inner = behind(text, key)?.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (inner, _) = inner.with_context(|| format!("{key}: found no list of {N} numbers in {text:?}"))?;
    let all: Vec<f64> = inner.split(',').map(|word| finite(word, key)).collect::<Result<_>>()?;
    let Ok(numbers) = <[f64; N]>::try_from(all.as_slice()) else {
        bail!("{key}: found {} numbers, expected {N}", all.len());
    };
    Ok(numbers)
}

/// The answer for the autopilot: with this time, without waiting for the wall clock, as one whole line.
fn changed(text: &str, time_s: f64) -> Result<String> {
    let value = behind(text, "timestamp")?;
    let end = value.find([',', '}', ']']).unwrap_or(value.len());
    let before = &text[..text.len() - value.len()];
    let rest = value[end..].trim_end();
    let rest = rest.strip_suffix('}').with_context(|| format!("found no end of {text:?}"))?;
    let sync = if text.contains("\"no_time_sync\"") { "" } else { ",\"no_time_sync\":1" };
    Ok(format!("\n{}{}{rest}{sync}}}\n", before.trim_start(), time_s * STAMP_FACTOR))
}

#[cfg(test)]
mod tests {
    use wingbeat_sim::motion::BatteryParameters;
    use wingbeat_sim::rigid::{Body, Rigid};

    use super::*;

    fn proxy() -> Proxy {
        Proxy::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 9_002))).unwrap()
    }

    #[test]
    fn our_own_packet_passes_unchanged() {
        let mut body = Rigid::new(Body::default(), BatteryParameters::default(), 0.7);
        for _ in 0..800 {
            body.step(0.0025, [0.8, 0.79, 0.8, 0.8], DVec3::new(4.0, 0.0, 0.0));
        }
        let mut proxy = proxy();
        for step in 1..=3 {
            let line = crate::json::sensors(f64::from(step) * 0.0025, &body);
            let measured = proxy.read(&line, 0.0025).unwrap();
            assert!((measured.time_s - f64::from(step) * 0.0025).abs() < 1e-12);
            assert_eq!((measured.position, measured.velocity), (body.position_ned(), body.velocity_ned()));
            assert!(measured.attitude.dot(body.attitude()) > 1.0 - 1e-12);
            let (_, after) = line.split_once(",\"imu\"").unwrap();
            assert!(measured.line.ends_with(&format!(",\"imu\"{after}")), "{}", measured.line);
        }
    }

    #[test]
    fn gazebos_form_is_read_and_its_time_begins_with_the_flight() {
        // With spaces, angles instead of a quaternion, no line's end, and time of a simulator that runs.
        let answer = |stamp: &str| {
            format!(
                "{{\"timestamp\": {stamp}, \"imu\" : {{\"gyro\" : [0, 0, 1e-3], \"accel_body\" : [0, 0, -9.8]}}, \
                 \"position\" : [1, -2.5, -3], \"attitude\" : [0, 0, 1.5], \"velocity\" : [0.5,0,0] }}"
            )
        };
        let mut proxy = proxy();
        assert_eq!(proxy.read(&answer("71.5"), 0.001).unwrap().time_s, 0.001);
        let measured = proxy.read(&answer("71.501"), 0.001).unwrap();
        assert!((measured.time_s - 0.002).abs() < 1e-9);
        assert_eq!(measured.position, DVec3::new(1.0, -2.5, -3.0));
        let nose = measured.attitude * DVec3::X;
        assert!((nose - DVec3::new(1.5_f64.cos(), 1.5_f64.sin(), 0.0)).length() < 1e-12, "{nose:?}");
        assert!(
            measured.line.starts_with("\n{\"timestamp\": 0.002")
                && measured.line.ends_with(",\"no_time_sync\":1}\n")
        );
        assert!(measured.line.contains("\"gyro\" : [0, 0, 1e-3]"), "{}", measured.line);
    }

    #[test]
    fn answers_that_cannot_be_flown_are_named() {
        let fine = "{\"timestamp\":1,\"position\":[0,0,0],\"quaternion\":[1,0,0,0],\"velocity\":[0,0,0]}";
        proxy().read(fine, 0.001).unwrap();
        for (from, to, expected) in [
            ("\"timestamp\":1", "\"time\":1", "found no timestamp"),
            ("\"timestamp\":1", "\"timestamp\":now", "timestamp: found \"now\", expected a number"),
            ("\"timestamp\":1", "\"timestamp\":inf", "expected a number"),
            ("\"position\":[0,0,0]", "\"position\":[0,0]", "position: found 2 numbers, expected 3"),
            ("\"position\":[0,0,0]", "\"position\":[0,nan,0]", "position: found \"nan\""),
            ("[1,0,0,0]", "[0,0,0,0]", "a quaternion of no length"),
            ("\"quaternion\"", "\"turn\"", "found no attitude"),
            ("\"velocity\"", "velocity", "found no velocity"),
            ("}", "", "found no end"),
        ] {
            let error = format!("{:#}", proxy().read(&fine.replacen(from, to, 1), 0.001).unwrap_err());
            assert!(error.contains(expected), "{to}: {error}");
        }
    }

    #[test]
    fn aircraft_have_the_ports_of_ardupilots_instances() {
        let first: SocketAddr = "127.0.0.1:9002".parse().unwrap();
        assert_eq!(address_of(first, 0), Some(first));
        assert_eq!(address_of(first, 3).map(|address| address.port()), Some(9_032));
        assert_eq!(address_of(first, 6_000), None);
        assert_eq!(address_of(first, usize::MAX), None);
    }
}
