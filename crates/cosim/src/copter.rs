//! One aircraft that ArduCopter flies on our physics, in step with the world.
//!
//! The program computes its outputs and then waits for what the sensors measure 2.5 ms later. A thread of each aircraft moves
//! the rigid body by these outputs and answers, so the programs of several aircraft compute at the same time; what the
//! program sends and receives over its serial port crosses at fixed steps:
//!
//! * bytes for it are written before the answer after which it reads them;
//! * bytes from it are read when its next outputs are here, which it sends after them.
//!
//! What would make two flights differ, and the cure:
//!
//! | | 3.5 | 4.x |
//! |---|---|---|
//! | the clock of its GPS is the wall clock | `libfaketime` holds it still | `--start-time` |
//! | its logger is a thread of its own | `LOG_BACKEND_TYPE 0` | the same |
//! | it flies no faster than the wall clock | `--speedup 100` | `no_time_sync` in each answer |
//! | it waits for a socket that is not emptied | it is emptied at every step | it does not, at the usual speed-up |
//! | outputs that it repeats while it waits | after 100 ms, without numbers: `Driver::answer_unnumbered` | after 1 s, with the same number: passed over |
//! | it cuts time to microseconds | `json::STAMP_FACTOR` | the same |
#![allow(clippy::disallowed_methods, reason = "another program is waited for, and may fall silent")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant as Wall;

use anyhow::{Context, Result, anyhow, bail, ensure};
use wingbeat_autopilot::codec::{Decoder, text};
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{MavMessage, MavModeFlag};
use wingbeat_geo::{DVec2, DVec3, Duration, Frame, Instant, Position};
use wingbeat_sim::autopilot::{Autopilot, Incident};
use wingbeat_sim::flight_controller::{RcChannels, Truth};
use wingbeat_sim::motion::{BatteryParameters, Wind, WindParameters, wind_share_at};
use wingbeat_sim::rigid::{Body, MOTORS, Rigid};
use wingbeat_sim::sensors::POSITION_STEP_S;

use crate::gazebo::{self, OUTPUTS};
use crate::incidents::{self, Incidents, Sensors};
use crate::json::{self, STAMP_FACTOR};
use crate::ports::Ports;
use crate::process::Process;
use crate::program::{Dialect, Program};
use crate::proxy::{Proxy, State};

/// One step of the physics, of which there are 400 a second. The main loop of ArduCopter 3.5 has as many; that of 4.x wants
/// at least 1.8 measurements of its gyroscopes for each of its own, and has 200 (`SCHED_LOOP_RATE`).
const STEP: Duration = Duration::from_micros(2_500);
const STEP_S: f64 = 0.0025;
/// Bytes cross the serial port so often, unless it is stated: as often as ArduCopter reads it.
pub const STRETCH: Duration = Duration::from_millis(10);
/// The wind is asked for so often.
const WIND_STEPS: u64 = 40;
/// The error of the position moves on so often.
const POSITION_STEPS: u64 = (POSITION_STEP_S / STEP_S) as u64;
/// An aircraft of another simulator that is no higher than this above where it stood is on the ground, metres.
const ON_GROUND_M: f64 = 0.1;
/// Longer steps of another simulator are fewer than 1.8 measurements for each of the main loop's 200 cycles of 4.x, seconds.
const MEASURES_WITHIN_S: f64 = 0.002_78;
/// A program that waits repeats its outputs after 100 ms, and not before so long.
const REPEATS_AFTER_LEAST: std::time::Duration = std::time::Duration::from_millis(90);
/// Answers later than this wait for a repetition first.
const ANSWERS_WITHIN: std::time::Duration = std::time::Duration::from_millis(60);
/// More packets than one repeats that has waited for a quarter of an hour: such a one never stops.
const OUTPUTS_WAITING_MOST: usize = 10_000;
/// More than a program sends within one stretch.
const SERIAL_BYTES_MOST: usize = 256 << 10;
/// How often it is checked whether a program that is waited for has ended.
const POLL_PERIOD: std::time::Duration = std::time::Duration::from_millis(20);
const POLL_NEVER: std::time::Duration = std::time::Duration::ZERO;
/// Where a program keeps parameters, mission and fence, in its directory.
const STORAGE: &str = "eeprom.bin";
/// What Debian's package puts where.
const FAKETIME: &str = "faketime/libfaketime.so.1";
/// 2026-01-01, as in the simulated flight controller.
const FROZEN_AT: &str = "2026-01-01 00:00:00";

/// The same in seconds of Unix time.
const STARTED_AT_S: u32 = 1_767_225_600;

/// After the other parameters, because without them the flight does not repeat or does not fit the physics: no logger, and
/// all checks before arming but that of the logger; frame X.
const DEFAULTS: &str = "LOG_BACKEND_TYPE 0\nARMING_CHECK 7166\nFRAME_CLASS 1\nFRAME_TYPE 1\n";

/// The same for 4.x, which has more checks. One estimator, its own (3.5's parameters switch the older one on); the third
/// simulated compass is off as the others are; half of the physics' rate, as [`STEP`] says.
const DEFAULTS_4: &str = "LOG_BACKEND_TYPE 0\nARMING_CHECK 2096126\nFRAME_CLASS 1\nFRAME_TYPE 1\nEK2_ENABLE 0\n\
    COMPASS_OFS3_X 5\nCOMPASS_OFS3_Y 13\nCOMPASS_OFS3_Z -18\nSCHED_LOOP_RATE 200\n";

/// What an aircraft is started with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it stands.
    pub home: Position,
    /// Where its nose points.
    pub heading_rad: f64,
    /// When it is switched on.
    pub booted_at: Instant,
    /// The air.
    pub wind: WindParameters,
    /// The height above the ground from which on all of the wind blows, metres: that of the flight.
    pub wind_full_m: f64,
    /// The gusts: their seed, and where their field begins.
    pub weather: (u64, Position),
    /// The aircraft.
    pub body: Body,
    /// Its battery.
    pub battery: BatteryParameters,
    /// The simulator that moves the aircraft instead of our physics, body, wind and battery.
    pub physics: Option<SocketAddr>,
    /// What its sensors are off by, where our physics moves it.
    pub sensors: Sensors,
    /// How often bytes cross its serial port, a whole number of [`STRETCH`].
    pub stretch: Duration,
    /// Text of the defaults file.
    pub defaults: String,
    /// A program that sends nothing for so long, by the wall clock, has fallen silent.
    pub silence: std::time::Duration,
}

/// A program that may be flown in step: its version is one of those whose packets are written here, and the clock of its GPS can
/// be held still.
#[derive(Clone, Debug)]
pub struct LockStep {
    program: Program,
    packets: Packets,
}

/// The packets of a program, and what they need.
#[derive(Clone, Debug)]
enum Packets {
    /// Of 3.5, whose clock a library holds still.
    Gazebo { faketime: PathBuf },
    /// Of 4.x.
    Json,
}

impl LockStep {
    /// Finds the program, and what its flights need of this machine.
    ///
    /// # Errors
    /// It is no ArduCopter SITL program, or a version that is not known; `libfaketime` is not installed.
    pub fn find(binary: &Path) -> Result<Self> {
        let program = Program::find(binary)?;
        let version = program.version()?;
        let packets = match (program.dialect, version) {
            (Dialect::UartA, Some((3, 5))) => Packets::Gazebo { faketime: faketime()? },
            (Dialect::Serial0, Some((4, _))) => Packets::Json,
            (Dialect::UartA | Dialect::Serial0, _) => bail!(
                "{}: found ArduCopter {}, expected 3.5, or a version 4 with the option --serial0: the packets of others are not written",
                binary.display(),
                version
                    .map_or_else(|| "of no version".to_owned(), |(major, minor)| format!("{major}.{minor}"))
            ),
        };
        Ok(Self { program, packets })
    }

    /// The command that starts one aircraft.
    fn command(&self, config: &Config, ports: &Ports) -> Vec<String> {
        let home = config.home;
        let place = format!(
            "{:.7},{:.7},{:.2},{:.1}",
            home.latitude_deg(),
            home.longitude_deg(),
            home.altitude_m(),
            config.heading_rad.to_degrees().rem_euclid(360.0)
        );
        let mut command = vec!["env".to_owned(), "TZ=UTC".to_owned()];
        if let Packets::Gazebo { faketime } = &self.packets {
            command.extend([
                format!("LD_PRELOAD={}", faketime.display()),
                format!("FAKETIME={FROZEN_AT}"),
                // Two versions' names of it. Waiting must still end.
                "DONT_FAKE_MONOTONIC=1".to_owned(),
                "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
            ]);
        }
        command.push(self.program.path.display().to_string());
        let number = |port: u16| port.to_string();
        let mut options = vec![
            ("--base-port", number(ports.base())),
            ("--home", place),
            ("--defaults", "defaults.parm".to_owned()),
            ("--rc-in-port", number(ports.receiver())),
            ("--sim-address", Ipv4Addr::LOCALHOST.to_string()),
            ("--sim-port-in", number(ports.sensors())),
            ("--sim-port-out", number(ports.outputs_port())),
        ];
        match &self.packets {
            Packets::Gazebo { .. } => {
                command.extend(["-S".to_owned(), "--disable-fgview".to_owned()]);
                options.extend([
                    ("--model", "gazebo".to_owned()),
                    ("--uartA", "tcp:0:wait".to_owned()),
                    // As fast as it is answered.
                    ("--speedup", "100".to_owned()),
                ]);
            }
            Packets::Json => options.extend([
                ("--model", format!("JSON:{}", Ipv4Addr::LOCALHOST)),
                ("--serial0", "tcp:0:wait".to_owned()),
                ("--rate", (1_000_000 / STEP.as_micros()).to_string()),
                ("--start-time", STARTED_AT_S.to_string()),
            ]),
        }
        command.extend(options.into_iter().flat_map(|(name, value)| [name.to_owned(), value]));
        command
    }
}

/// The library that holds a clock still.
fn faketime() -> Result<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let places = folders.chain([PathBuf::from("/usr/lib")]).map(|folder| folder.join(FAKETIME));
    places.into_iter().find(|path| path.is_file()).with_context(|| {
        format!(
            "found no /usr/lib/*/{FAKETIME}, expected it: the GPS of ArduCopter 3.5 shows the wall clock, and without it no \
             flight repeats (Debian: apt install libfaketime)"
        )
    })
}

/// A stretch to be flown.
#[derive(Debug)]
struct Stretch {
    until: Instant,
    /// For the serial port, before its first step.
    bytes: Vec<u8>,
    /// What the transmitter sends from its first step on, which may be nothing.
    channels: Option<Option<RcChannels>>,
    /// What happens before its first step.
    incidents: Vec<Incident>,
}

/// What a stretch came to.
#[derive(Debug)]
struct Flown {
    bytes: Vec<u8>,
    truth: Truth,
}

/// An aircraft: its program, its physics, and the thread between them.
#[derive(Debug)]
pub struct Copter {
    to_fly: Option<SyncSender<Stretch>>,
    flown: Receiver<Result<Flown>>,
    thread: Option<JoinHandle<()>>,
    frame: Frame,
    truth: Truth,
    next: Instant,
    bytes: Vec<u8>,
    channels: Option<Option<RcChannels>>,
    incidents: Vec<Incident>,
    stretch: Duration,
    /// Whether our physics moves it.
    is_ours: bool,
}

impl Copter {
    /// Starts one. Whether it starts is seen where its first stretch is waited for.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(program: &LockStep, config: Config) -> Result<Self> {
        let (to_fly, stretches) = sync_channel::<Stretch>(1);
        let (tell, flown) = sync_channel(1);
        let frame = Frame::new(config.home);
        let truth = Truth {
            position: config.home,
            local: DVec3::ZERO,
            velocity: DVec3::ZERO,
            heading_rad: config.heading_rad,
            armed: false,
            mode: Mode::Stabilize,
            landed: true,
            flight_time: Duration::ZERO,
            touchdown_m_s: 0.0,
        };
        let (program, is_ours, stretch) = (program.clone(), config.physics.is_none(), config.stretch);
        let thread = std::thread::Builder::new().name("lock-step".into()).spawn(move || {
            let mut driver = None;
            for stretch in stretches {
                let flown = match &mut driver {
                    Some(driver) => Driver::fly(driver, stretch),
                    None => Driver::start(&program, config.clone(), &[])
                        .and_then(|new| driver.insert(new).fly(stretch)),
                };
                let is_over = flown.is_err();
                if tell.send(flown).is_err() || is_over {
                    break;
                }
            }
        })?;
        Ok(Self {
            to_fly: Some(to_fly),
            flown,
            thread: Some(thread),
            frame,
            truth,
            next: Instant::ZERO,
            bytes: Vec::new(),
            channels: None,
            incidents: Vec::new(),
            stretch,
            is_ours,
        })
    }
}

impl Drop for Copter {
    fn drop(&mut self) {
        self.to_fly = None;
        if let Some(thread) = self.thread.take() {
            // It ends with the stretch at which it is, and its program with it.
            let _ = thread.join();
        }
    }
}

impl Autopilot for Copter {
    fn receive(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn begin(&mut self, until: Instant) {
        self.next = until + self.stretch;
        let stretch = Stretch {
            until,
            bytes: std::mem::take(&mut self.bytes),
            channels: self.channels.take(),
            incidents: std::mem::take(&mut self.incidents),
        };
        if let Some(to_fly) = &self.to_fly {
            // A thread that has ended has said why, or says so where it is waited for.
            let _ = to_fly.send(stretch);
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        let flown = self.flown.recv().map_err(|_| "its autopilot is gone".to_owned())?;
        let Flown { bytes, truth } = flown.map_err(|error| format!("{error:#}"))?;
        out.extend_from_slice(&bytes);
        self.truth = truth;
        Ok(())
    }

    fn poll_timeout(&self) -> Instant {
        self.next
    }

    fn truth(&self) -> Truth {
        self.truth
    }

    fn place_in(&self, frame: &Frame) -> DVec3 {
        self.frame.to_frame(frame, self.truth.local)
    }

    fn set_rc(&mut self, channels: Option<RcChannels>) {
        self.channels = Some(channels);
    }

    fn suffer(&mut self, incident: Incident) -> Result<(), String> {
        incidents::check(incident)?;
        if !self.is_ours {
            return Err(format!("found {incident:?}, expected none: another simulator moves the aircraft"));
        }
        self.incidents.push(incident);
        Ok(())
    }
}

/// Another simulator, and what the aircraft does in it.
struct Elsewhere {
    proxy: Proxy,
    state: State,
    /// How high it stood at first, north, east, down.
    ground_down_m: f64,
    touchdown_m_s: f64,
}

impl Elsewhere {
    fn is_on_ground(&self) -> bool {
        self.state.position_ned.z > self.ground_down_m - ON_GROUND_M
    }
}

/// What is known of the packets that were sent.
enum Sent {
    /// 3.5's, which have no number.
    Unnumbered {
        /// The outputs that are not answered yet, or their last repetition, were sent no earlier.
        after: Wall,
        /// What arrives next was sent no earlier.
        empty_at: Wall,
    },
    /// 4.x's.
    Numbered {
        /// The number of the outputs that are waited for, or are not answered yet.
        number: u32,
    },
}

/// What the thread owns.
struct Driver {
    program: LockStep,
    config: Config,
    frame: Frame,
    ports: Ports,
    serial: TcpStream,
    body: Rigid,
    wind: Wind,
    wind_m_s: DVec3,
    in_weather_m: DVec2,
    /// Since the program began.
    steps: u64,
    /// Steps of our physics before that.
    steps_before: u64,
    incidents: Incidents,
    /// Where our physics does not move it: from the first step on.
    elsewhere: Option<Elsewhere>,
    /// The outputs that are not answered yet.
    outputs: [f64; MOTORS],
    pulses_us: [u16; OUTPUTS],
    packets: Sent,
    /// Where the program sends from; of 4.x, which is answered there, `None` before its first packet.
    sends_from: Option<SocketAddr>,
    decoder: Decoder,
    armed: bool,
    mode: Mode,
    flight_time: Duration,
    /// The last field: the sockets close before the program is killed.
    process: Process,
}

impl Driver {
    /// With this in its storage: nothing is a new one's.
    fn start(program: &LockStep, config: Config, storage: &[u8]) -> Result<Self> {
        let ports = Ports::free()?;
        let (ours, packets, sends_from) = match program.packets {
            Packets::Gazebo { .. } => (
                DEFAULTS,
                Sent::Unnumbered { after: Wall::now(), empty_at: Wall::now() },
                // Where it receives.
                Some(SocketAddr::from((Ipv4Addr::LOCALHOST, ports.sensors()))),
            ),
            Packets::Json => (DEFAULTS_4, Sent::Numbered { number: 0 }, None),
        };
        let defaults = format!("{}\n{ours}", config.defaults.trim_end());
        let mut files = vec![("defaults.parm", defaults.as_bytes())];
        if !storage.is_empty() {
            files.push((STORAGE, storage));
        }
        let process = Process::start(&program.command(&config, &ports), &files)?;
        let serial = connect(&process, ports.base(), config.silence)?;
        ports.outputs.set_read_timeout(Some(POLL_PERIOD))?;
        let (seed, origin) = config.weather;
        let mut driver = Self {
            program: program.clone(),
            frame: Frame::new(config.home),
            serial,
            body: Rigid::new(config.body, config.battery, config.heading_rad),
            wind: Wind::new(config.wind, seed),
            wind_m_s: DVec3::ZERO,
            in_weather_m: Frame::new(origin).to_local(config.home).truncate(),
            steps: 0,
            steps_before: 0,
            incidents: Incidents::new(config.sensors, matches!(program.packets, Packets::Gazebo { .. })),
            elsewhere: None,
            outputs: [0.0; MOTORS],
            pulses_us: [0; OUTPUTS],
            packets,
            sends_from,
            decoder: Decoder::default(),
            armed: false,
            mode: Mode::Stabilize,
            flight_time: Duration::ZERO,
            ports,
            process,
            config,
        };
        driver.wait_for_outputs()?;
        Ok(driver)
    }

    /// The program ends and starts again with what it had stored, parameters and mission, and the aircraft is where it is.
    fn restart(&mut self) -> Result<()> {
        // It waits for an answer, and stores nothing meanwhile. One that has no storage stored nothing.
        let storage = std::fs::read(self.process.directory().join(STORAGE)).unwrap_or_default();
        let flown = STEP * self.steps as u32;
        let config = Config { booted_at: self.config.booted_at + flown, ..self.config.clone() };
        let new = Self::start(&self.program, config, &storage)?;
        let old = std::mem::replace(self, new);
        (self.steps_before, self.flight_time) = (old.steps_before + old.steps, old.flight_time);
        (self.body, self.wind, self.wind_m_s, self.incidents) =
            (old.body, old.wind, old.wind_m_s, old.incidents);
        self.incidents.restarted(!self.body.is_on_ground());
        Ok(())
    }

    /// Flies until then.
    fn fly(&mut self, stretch: Stretch) -> Result<Flown> {
        let Stretch { until, bytes: mut to_send, channels, incidents } = stretch;
        if let Some(channels) = channels {
            self.incidents.transmit(channels);
        }
        for incident in incidents {
            match incident {
                Incident::Restarts => {
                    self.restart()?;
                    // What was sent to the one before.
                    to_send.clear();
                }
                Incident::WindShifts { by_m_s } => self.wind.shift(by_m_s),
                other => self.incidents.suffer(other, &mut self.body),
            }
        }
        let steps = until.since(self.config.booted_at).as_micros() as u64 / STEP.as_micros() as u64;
        let mut bytes = Vec::new();
        to_send.extend(self.incidents.bytes(self.time_s(), &self.body)?);
        if let Some(RcChannels(pulses)) = self.incidents.received() {
            let packet: Vec<u8> = pulses.iter().flat_map(|pulse| pulse.to_le_bytes()).collect();
            let receiver = SocketAddr::from((Ipv4Addr::LOCALHOST, self.ports.receiver()));
            self.ports.outputs.send_to(&packet, receiver).context("the receiver's port")?;
        }
        self.serial.set_nonblocking(false)?;
        self.serial.write_all(&to_send).with_context(|| self.ended("its serial port"))?;
        self.serial.set_nonblocking(true)?;
        match self.config.physics {
            None => {
                while self.steps < steps {
                    self.step(&mut bytes)?;
                }
            }
            Some(simulator) => {
                // Its steps may be of another length.
                while self.time_s() < steps as f64 * STEP_S - STEP_S / 10.0 {
                    self.step_elsewhere(simulator, &mut bytes)?;
                }
            }
        }
        let (armed, mode, incidents) = (&mut self.armed, &mut self.mode, &mut self.incidents);
        self.decoder.push(&bytes, |frame| match frame.message {
            MavMessage::HEARTBEAT(heartbeat) => {
                *armed = heartbeat.base_mode.contains(MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED);
                *mode = Mode::from_number(heartbeat.custom_mode).unwrap_or(*mode);
            }
            MavMessage::PARAM_VALUE(is) => incidents.answered(text(&*is.param_id), is.param_value),
            _ => {}
        });
        Ok(Flown { bytes, truth: self.truth() })
    }

    /// Moves the body by the outputs, answers, and waits for the next outputs.
    fn step(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        let steps = self.steps_before + self.steps;
        if steps.is_multiple_of(WIND_STEPS) {
            let position = self.body.position();
            let place_m = self.in_weather_m + position.truncate();
            self.wind_m_s = self.wind.at(steps as f64 * STEP_S, place_m)
                * wind_share_at(position.z, self.config.wind_full_m);
        }
        self.body.step(STEP_S, self.incidents.outputs(self.outputs), self.wind_m_s);
        self.incidents.step(STEP_S, self.outputs);
        self.steps += 1;
        if !self.body.is_on_ground() {
            self.flight_time += STEP;
            if steps.is_multiple_of(POSITION_STEPS) {
                self.incidents.wander();
            }
        }
        self.answer()?;
        self.drain(bytes)
    }

    /// Lets another simulator move the aircraft by the outputs, answers, and waits for the next outputs.
    fn step_elsewhere(&mut self, simulator: SocketAddr, bytes: &mut Vec<u8>) -> Result<()> {
        let before_s = self.time_s();
        match &mut self.elsewhere {
            None => {
                let mut proxy = Proxy::new(simulator, self.config.silence)?;
                let state = proxy.step(self.pulses_us)?;
                let ground_down_m = state.position_ned.z;
                self.elsewhere = Some(Elsewhere { proxy, state, ground_down_m, touchdown_m_s: 0.0 });
            }
            Some(elsewhere) => {
                let (was_on_ground, sinks_m_s) = (elsewhere.is_on_ground(), elsewhere.state.velocity_ned.z);
                elsewhere.state = elsewhere.proxy.step(self.pulses_us)?;
                if elsewhere.is_on_ground() && !was_on_ground {
                    elsewhere.touchdown_m_s = sinks_m_s.max(0.0);
                }
            }
        }
        let step_s = self.time_s() - before_s;
        ensure!(
            matches!(self.packets, Sent::Unnumbered { .. }) || step_s <= MEASURES_WITHIN_S,
            "physics: {simulator}: found a step of {step_s:.4} s, expected {MEASURES_WITHIN_S} s at most: or ArduCopter 4 does not arm"
        );
        if !self.is_on_ground() {
            self.flight_time += Duration::from_micros((step_s * 1e6).round() as u64);
        }
        self.answer()?;
        self.drain(bytes)
    }

    /// Answers the outputs with what the sensors measure, and waits for the next outputs.
    fn answer(&mut self) -> Result<()> {
        let state = match &self.elsewhere {
            Some(elsewhere) => elsewhere.state,
            None => {
                let truth = gazebo::measured(self.time_s(), &self.body);
                self.incidents.measured(truth, self.body.thrust_share())
            }
        };
        let state = State { time_s: state.time_s * STAMP_FACTOR, ..state };
        match self.packets {
            Sent::Unnumbered { .. } => self.answer_unnumbered(&gazebo::sensors(&state)),
            Sent::Numbered { number } => {
                let to = self.sends_from.context("outputs: found none, expected those of the first step")?;
                let line = json::sensors(&state);
                // Those that are answered may be repeated, and no others are there yet.
                self.read_outputs(POLL_NEVER)?;
                self.ports.outputs.send_to(line.as_bytes(), to).context("the sensors' port")?;
                self.packets = Sent::Numbered { number: number.wrapping_add(1) };
                self.wait_for_outputs()
            }
        }
    }

    /// A program that waits repeats its outputs, and a repetition that crosses the answer must not pass for the next step's.
    /// So after an answer that may have been crossed by n of them, n more packets are waited for. The last is
    /// right in any case: what comes after the next outputs are their own repetitions.
    fn answer_unnumbered(&mut self, packet: &[u8]) -> Result<()> {
        let (asked_at, under_way) = (Wall::now(), self.under_way());
        // Within that time there is no repetition.
        if under_way > ANSWERS_WITHIN {
            let mut packets = 0..OUTPUTS_WAITING_MOST;
            while self.read_outputs(POLL_NEVER)? {
                ensure!(
                    packets.next().is_some(),
                    "outputs: found no end of them after {:.2} s of its flight",
                    self.time_s()
                );
            }
            if self.under_way() > ANSWERS_WITHIN {
                // Behind a fresh repetition few can cross.
                self.wait_for_outputs()?;
            }
        } else {
            // This thread may have been halted since then.
            ensure!(
                !self.read_outputs(POLL_NEVER)? || under_way + asked_at.elapsed() > REPEATS_AFTER_LEAST,
                "outputs: found some again after {:.2} s of its flight, sooner than it repeats them: it answers twice",
                self.time_s()
            );
        }
        let sensors = SocketAddr::from((Ipv4Addr::LOCALHOST, self.ports.sensors()));
        let answered_at = Wall::now();
        self.ports.outputs.send_to(packet, sensors).context("the sensors' port")?;
        let crossed = self.under_way().as_millis() / REPEATS_AFTER_LEAST.as_millis();
        self.note_empty(answered_at);
        for _ in 0..=crossed {
            self.wait_for_outputs()?;
        }
        Ok(())
    }

    /// How long the outputs that are not answered yet are under way at most, where they have no number.
    fn under_way(&self) -> std::time::Duration {
        match self.packets {
            Sent::Unnumbered { after, .. } => after.elapsed(),
            Sent::Numbered { .. } => std::time::Duration::ZERO,
        }
    }

    /// What arrives from now on was sent no earlier.
    fn note_empty(&mut self, at: Wall) {
        match &mut self.packets {
            Sent::Unnumbered { empty_at, .. } => *empty_at = at,
            Sent::Numbered { .. } => {}
        }
    }

    /// Reads outputs, waiting for them so long. Whether there were new ones.
    fn read_outputs(&mut self, patience: std::time::Duration) -> Result<bool> {
        let socket = &self.ports.outputs;
        if patience.is_zero() {
            socket.set_nonblocking(true)?;
        }
        let began = Wall::now();
        let mut packet = [0; json::OUTPUTS_LEN_MOST + 1];
        let received = socket.recv_from(&mut packet);
        if patience.is_zero() {
            socket.set_nonblocking(false)?;
        }
        match received {
            Ok((length, from)) => self.take(&packet[..length], from),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                self.note_empty(began);
                Ok(false)
            }
            // A signal; or the port of the sensors is not open yet.
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionRefused) => {
                Ok(false)
            }
            Err(error) => Err(anyhow!(error).context("the outputs' port")),
        }
    }

    /// Takes a packet of outputs. Whether they are new.
    fn take(&mut self, packet: &[u8], from: SocketAddr) -> Result<bool> {
        let length = packet.len();
        let known = *self.sends_from.get_or_insert(from);
        ensure!(from == known, "outputs: found some from {from}, expected them from {known} alone");
        match &mut self.packets {
            Sent::Unnumbered { after, empty_at } => {
                *after = *empty_at;
                self.outputs = gazebo::outputs(packet).with_context(|| {
                    format!(
                        "outputs: found a packet of {length} bytes, expected {}: it is another version's",
                        gazebo::OUTPUTS_LEN
                    )
                })?;
                self.pulses_us = gazebo::pulses_us(packet).unwrap_or_default();
                Ok(true)
            }
            Sent::Numbered { number } => {
                let outputs = json::outputs(packet).with_context(|| {
                    format!(
                        "outputs: found a packet of {length} bytes that is none of the model JSON, expected {} bytes: it is another \
                         version's",
                        json::OUTPUTS_LEN
                    )
                })?;
                // A program that waits repeats what was answered, or is about to be.
                if outputs.number.wrapping_add(1) == *number {
                    return Ok(false);
                }
                ensure!(
                    outputs.number == *number,
                    "outputs: found number {}, expected {number}: it took another answer than ours, or has started again",
                    outputs.number
                );
                self.outputs = outputs.motors;
                self.pulses_us = outputs.pulses_us;
                Ok(true)
            }
        }
    }

    fn wait_for_outputs(&mut self) -> Result<()> {
        let began = Wall::now();
        while !self.read_outputs(POLL_PERIOD)? {
            if let Some(how) = self.process.ended() {
                bail!("ArduCopter ended after {:.2} s of its flight: {how}", self.time_s());
            }
            ensure!(
                began.elapsed() < self.config.silence,
                "ArduCopter is silent: no outputs for {:.0} s after {:.2} s of its flight; its last lines: {}",
                self.config.silence.as_secs_f64(),
                self.time_s(),
                crate::process::last_lines(self.process.directory())
            );
        }
        Ok(())
    }

    /// Reads everything from the serial port. Nothing may lie there: the program waits where much is unread.
    fn drain(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        let mut part = [0; 4096];
        loop {
            ensure!(
                bytes.len() <= SERIAL_BYTES_MOST,
                "{}",
                self.ended("its serial port: found no end of what it sends")
            );
            match self.serial.read(&mut part) {
                Ok(0) => bail!("{}", self.ended("its serial port closed")),
                Ok(length) => {
                    bytes.extend_from_slice(&part[..length]);
                    // Or it waits for our kernel's acknowledgement.
                    socket2::SockRef::from(&self.serial).set_tcp_quickack(true)?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(anyhow!(error).context(self.ended("its serial port"))),
            }
        }
    }

    /// What has failed, and how the program ended if it has.
    fn ended(&self, what: &str) -> String {
        let how = self.process.ended().map_or_else(String::new, |how| format!(": {how}"));
        format!("ArduCopter after {:.2} s of its flight, {what}{how}", self.time_s())
    }

    fn time_s(&self) -> f64 {
        self.elsewhere.as_ref().map_or(self.steps as f64 * STEP_S, |elsewhere| elsewhere.state.time_s)
    }

    fn is_on_ground(&self) -> bool {
        self.elsewhere.as_ref().map_or_else(|| self.body.is_on_ground(), Elsewhere::is_on_ground)
    }

    fn truth(&self) -> Truth {
        let up = |ned: DVec3| DVec3::new(ned.y, ned.x, -ned.z);
        let (local, velocity, heading_rad, touchdown_m_s) = match &self.elsewhere {
            Some(Elsewhere { state, touchdown_m_s, .. }) => {
                (up(state.position_ned), up(state.velocity_ned), state.heading_rad(), *touchdown_m_s)
            }
            None => {
                let body = &self.body;
                (body.position(), body.velocity(), body.heading_rad(), body.touchdown_m_s())
            }
        };
        Truth {
            position: self.frame.to_position(local),
            local,
            velocity,
            heading_rad,
            armed: self.armed,
            mode: self.mode,
            landed: self.is_on_ground(),
            flight_time: self.flight_time,
            touchdown_m_s,
        }
    }
}

/// Connects to SERIAL0: the program waits for that before it flies.
fn connect(process: &Process, port: u16, silence: std::time::Duration) -> Result<TcpStream> {
    let began = Wall::now();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    loop {
        match TcpStream::connect_timeout(&address, POLL_PERIOD) {
            Ok(serial) => {
                serial.set_nodelay(true)?;
                serial.set_write_timeout(Some(silence))?;
                return Ok(serial);
            }
            Err(_) if began.elapsed() < silence => {}
            Err(error) => {
                let lines = crate::process::last_lines(process.directory());
                bail!(
                    "ArduCopter does not serve its serial port within {:.0} s, TCP port {port}: {error}; its last lines: {lines}",
                    silence.as_secs_f64()
                );
            }
        }
        if let Some(how) = process.ended() {
            bail!("ArduCopter does not start: {how}");
        }
        std::thread::sleep(POLL_PERIOD);
    }
}
