//! Watches one ArduCopter process on its SERIAL1, besides the daemon, which has SERIAL0: where the
//! simulator has the aircraft, how long the autopilot has run, whether it can fly.
//!
//! It sends one thing only, before the flight: how fast the simulation shall run.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use wingbeat_autopilot::Telemetry;
use wingbeat_autopilot::codec::{Decoder, Frame, MavHeader, encode_v1, text};
use wingbeat_autopilot::dialect::{MavMessage, MavParamType, PARAM_SET_DATA};
use wingbeat_geo::{DVec3, Position};

use super::rate::Rate;

/// SITL listens within two seconds of its start.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Between two tries.
const CONNECT_PAUSE: Duration = Duration::from_millis(200);
/// A parameter is confirmed within one telemetry cycle.
const SET_TIMEOUT: Duration = Duration::from_secs(2);
const SET_TRIES: u8 = 5;
/// The autopilot's last status text, for a message about it.
const TEXTS_KEPT: usize = 6;
/// The system and component id of a ground station.
const GROUND: (u8, u8) = (255, 190);

/// The last reports of one aircraft.
#[derive(Default)]
pub(crate) struct Reports {
    /// What the autopilot reports.
    pub(crate) telemetry: Telemetry,
    /// The simulator's position of the aircraft, 1e-7 degree.
    simulated: Option<(i32, i32)>,
    /// Autopilot time against the wall clock, since [`Monitor::begin_rate`].
    pub(crate) rate: Rate,
    /// The last texts.
    texts: VecDeque<String>,
    parameter: Option<(String, f32)>,
}

impl Reports {
    /// Its position: the simulator's at the autopilot's altitude (SIMSTATE carries none).
    pub(crate) fn position(&self) -> Option<Position> {
        let position = self.telemetry.position?;
        let (latitude_e7, longitude_e7) =
            self.simulated.unwrap_or((position.latitude_e7, position.longitude_e7));
        Some(Position { latitude_e7, longitude_e7, ..position })
    }

    /// East, north, up, metres per second.
    pub(crate) fn velocity(&self) -> DVec3 {
        self.telemetry.velocity_m_s
    }

    /// What it still lacks before it can fly; `None` if nothing.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        let t = &self.telemetry;
        match (t.is_copter, t.measured.gnss.is_some_and(|gnss| gnss.has_fix()), t.ekf_position, t.position) {
            (None, ..) => Some("a heartbeat"),
            (Some(false), ..) => Some("an ArduCopter: another autopilot or vehicle answers"),
            (_, false, ..) => Some("a three-dimensional GNSS fix"),
            (.., None | Some(false), _) => Some("the EKF's absolute position"),
            (.., None) => Some("a position report"),
            _ => None,
        }
    }

    /// Its last texts, oldest first.
    pub(crate) fn last_texts(&self) -> String {
        let all: Vec<&str> = self.texts.iter().map(String::as_str).collect();
        if all.is_empty() { "nothing".into() } else { all.join(" | ") }
    }

    fn apply(&mut self, since: Duration, frame: &Frame) {
        match &frame.message {
            MavMessage::SIMSTATE(m) => self.simulated = Some((m.lat, m.lng)),
            MavMessage::GLOBAL_POSITION_INT(m) => self.rate.add(since, m.time_boot_ms),
            MavMessage::STATUSTEXT(m) => {
                if self.texts.len() == TEXTS_KEPT {
                    self.texts.pop_front();
                }
                self.texts.push_back(text(&*m.text).trim_end().to_owned());
            }
            MavMessage::PARAM_VALUE(m) => {
                self.parameter = Some((text(&*m.param_id).to_owned(), m.param_value));
            }
            _ => {}
        }
        self.telemetry.on_frame(wingbeat_geo::Instant::from_micros(since.as_micros() as u64), frame);
    }
}

/// A connection to SERIAL1.
pub(crate) struct Monitor {
    reports: Arc<Mutex<Reports>>,
    sender: mpsc::Sender<Vec<u8>>,
    task: JoinHandle<()>,
}

impl Monitor {
    /// Connects, and listens from then on.
    ///
    /// # Errors
    /// No program listens on that port within half a minute.
    pub(crate) async fn connect(port: u16) -> Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let attempt = async {
            loop {
                match TcpStream::connect(address).await {
                    Ok(stream) => return stream,
                    Err(_) => sleep(CONNECT_PAUSE).await,
                }
            }
        };
        let stream = timeout(CONNECT_TIMEOUT, attempt)
            .await
            .with_context(|| format!("found no listener on {address}, expected SITL's SERIAL1"))?;
        let reports = Arc::new(Mutex::new(Reports::default()));
        let (sender, receiver) = mpsc::channel(4);
        let task = tokio::spawn(listen(stream, Arc::clone(&reports), receiver));
        Ok(Self { reports, sender, task })
    }

    /// What was received so far.
    pub(crate) fn reports(&self) -> MutexGuard<'_, Reports> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, to be kept.
    pub(crate) fn share(&self) -> Arc<Mutex<Reports>> {
        Arc::clone(&self.reports)
    }

    /// Takes the autopilot's time against the wall clock from now on.
    pub(crate) fn begin_rate(&self) {
        self.reports().rate = Rate::default();
    }

    /// Sets a parameter and waits until the autopilot confirms that value.
    ///
    /// # Errors
    /// It does not confirm it.
    pub(crate) async fn set(&self, name: &str, value: f32) -> Result<()> {
        let mut param_id = [0u8; 16];
        param_id.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
        let system = self.reports().telemetry.system_id.unwrap_or(1);
        let message = MavMessage::PARAM_SET(PARAM_SET_DATA {
            param_value: value,
            target_system: system,
            target_component: 1,
            param_id: param_id.into(),
            param_type: MavParamType::MAV_PARAM_TYPE_REAL32,
        });
        let header = MavHeader { system_id: GROUND.0.into(), component_id: GROUND.1, sequence: 0 };
        let mut bytes = heapless::Vec::<u8, 64>::new();
        encode_v1(header, &message, &mut bytes).context("PARAM_SET")?;
        for _ in 0..SET_TRIES {
            self.reports().parameter = None;
            if self.sender.send(bytes.to_vec()).await.is_err() {
                bail!("{name}: found SERIAL1 closed, expected SITL");
            }
            let confirmed = async {
                loop {
                    let confirmed = self.reports().parameter.clone();
                    if confirmed.is_some_and(|(n, v)| n == name && (v - value).abs() <= value.abs() * 1e-5) {
                        return;
                    }
                    sleep(Duration::from_millis(20)).await;
                }
            };
            if timeout(SET_TIMEOUT, confirmed).await.is_ok() {
                return Ok(());
            }
        }
        bail!("{name}: found no confirmation of {value} after {SET_TRIES} tries, expected PARAM_VALUE");
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(mut stream: TcpStream, reports: Arc<Mutex<Reports>>, mut to_send: mpsc::Receiver<Vec<u8>>) {
    let began = Instant::now();
    let mut decoder = Decoder::default();
    let mut buffer = [0; 4096];
    loop {
        tokio::select! {
            read = stream.read(&mut buffer) => match read {
                Ok(n) if n > 0 => {
                    let since = began.elapsed();
                    let mut reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
                    decoder.push(&buffer[..n], |frame| reports.apply(since, &frame));
                }
                // The process has ended; its owner reports that.
                _ => return,
            },
            Some(bytes) = to_send.recv() => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_radio::Clock;
    use wingbeat_sim::flight_controller::{Config, FlightController, Parameter};

    /// A simulated flight controller that serves one port as SITL serves SERIAL1.
    async fn serial1(parameters: &[(Parameter, f32)]) -> (u16, JoinHandle<std::io::Result<()>>) {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let home = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };
        let mut config = Config::new(7, home);
        config.serial = 1;
        config.parameters.extend_from_slice(parameters);
        let fc = FlightController::new(config, 1, wingbeat_geo::Instant::ZERO);
        let clock = Clock::start(10.0).unwrap();
        (port, tokio::spawn(wingbeat_hub::serve::flight_controller(listener, fc, clock, |_| {})))
    }

    async fn until(monitor: &Monitor, holds: impl Fn(&Reports) -> bool) {
        let wait = async {
            while !holds(&monitor.reports()) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        assert!(
            timeout(Duration::from_secs(60), wait).await.is_ok(),
            "lacks {:?}",
            monitor.reports().lacks()
        );
    }

    #[tokio::test]
    async fn it_reports_what_is_missing_until_it_is_ready_and_takes_the_rate() {
        let streams =
            [Parameter::SR1_POSITION, Parameter::SR1_EXTRA3, Parameter::SR1_EXT_STAT].map(|p| (p, 10.0));
        let (port, server) = serial1(&streams).await;
        let monitor = Monitor::connect(port).await.unwrap();
        assert_eq!(Reports::default().lacks(), Some("a heartbeat"));
        until(&monitor, |reports| reports.lacks().is_none()).await;
        let found = monitor.reports().position().unwrap();
        assert!((found.latitude_e7 - 394_825_940).abs() < 100, "{found:?}");
        monitor.begin_rate();
        until(&monitor, |reports| reports.rate.overall().is_some_and(|rate| rate > 1.0)).await;
        server.abort();
    }

    #[tokio::test]
    async fn a_parameter_is_set_when_the_autopilot_reports_it() {
        let (port, server) = serial1(&[]).await;
        let monitor = Monitor::connect(port).await.unwrap();
        until(&monitor, |reports| reports.telemetry.system_id == Some(7)).await;
        monitor.set("WPNAV_SPEED", 700.0).await.unwrap();
        // A parameter that it does not have is never confirmed.
        let message = monitor.set("SIM_SPEEDUP", 5.0).await.unwrap_err().to_string();
        assert!(message.contains("SIM_SPEEDUP") && message.contains("5 tries"), "{message}");
        server.abort();
    }
}
