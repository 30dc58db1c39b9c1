//! One client of a SITL process: keeps telemetry coming, runs one job after the other as the agent would, and
//! writes down how each ended and how long it took.
#![allow(clippy::disallowed_methods, reason = "ArduCopter runs in real time")]

use std::fmt::Write as _;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::path::Path;
use std::time;

use wingbeat_autopilot::codec::Decoder;
use wingbeat_autopilot::codec::framing::Outgoing;
use wingbeat_autopilot::dialect::MavMessage;
use wingbeat_autopilot::heartbeat::Heartbeat;
use wingbeat_autopilot::streams::Streams;
use wingbeat_autopilot::telemetry::TelemetryEvent;
use wingbeat_autopilot::{Progress, Telemetry, Transmit};
use wingbeat_bench::scenario::ORIGIN;
use wingbeat_bench::sitl::parameters::{Wanted, file};
use wingbeat_bench::sitl::ports::{free_instances, serial0};
use wingbeat_bench::sitl::process::{Process, Program, Start};
use wingbeat_geo::{Duration, Instant};

/// The first instance that is tried.
const INSTANCE: u16 = 20;
/// Position reports of the stream, so that a stop is timed to a tenth of a second.
const POSITION_INTERVAL: Duration = Duration::from_millis(100);
/// A turn waits for bytes no longer than this.
const TURN: time::Duration = time::Duration::from_millis(5);
/// A process opens its port within this time, also on a machine with other work.
const OPEN_TIMEOUT: time::Duration = time::Duration::from_secs(30);
/// SITL's input for the pilot's receiver of instance 0; a frame of it is eight numbers of 16 bits.
const RECEIVER_PORT: u16 = 5501;
/// The channels of the pilot's transmitter: sticks in the middle, throttle down, the mode switch in its last place.
const PILOT_US: [u16; 8] = [1_500, 1_500, 1_000, 1_500, 1_800, 1_000, 1_000, 1_000];
/// A receiver repeats it fifty times a second.
const RECEIVER_PERIOD: Duration = Duration::from_millis(20);
/// The longest job is the list of parameters.
const JOB_TIMEOUT: Duration = Duration::from_secs(120);

/// Result and duration of one job.
struct Row {
    job: &'static str,
    result: Result<String, String>,
    took: Duration,
}

/// A running ArduCopter and our side of its first port.
pub(crate) struct Client {
    process: Option<Process>,
    program: Program,
    pub(crate) instance: u16,
    runtime: tokio::runtime::Runtime,
    socket: TcpStream,
    receiver: UdpSocket,
    receiver_due: Instant,
    began: time::Instant,
    decoder: Decoder,
    pub(crate) telemetry: Telemetry,
    pub(crate) events: Vec<TelemetryEvent>,
    outgoing: Outgoing,
    streams: Streams,
    heartbeat: Heartbeat,
    /// As it reported.
    pub(crate) intervals_refused: bool,
    rows: Vec<Row>,
}

fn start(program: &Program, instance: u16) -> Process {
    let wanted = Wanted { speed_m_s: 5.0, log: false, position_hz: 1, wind: Default::default(), extra: "" };
    let start = Start { instance, home: ORIGIN, heading_rad: 0.0, speedup: 1.0 };
    Process::start(program, &start, &file(&wanted)).unwrap()
}

/// The first port of the process, once it is open.
fn connect(instance: u16) -> TcpStream {
    let end = time::Instant::now() + OPEN_TIMEOUT;
    loop {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, serial0(instance))) {
            Ok(socket) => {
                socket.set_read_timeout(Some(TURN)).unwrap();
                socket.set_nodelay(true).unwrap();
                return socket;
            }
            Err(error) => assert!(time::Instant::now() < end, "port {}: {error}", serial0(instance)),
        }
        std::thread::sleep(TURN * 10);
    }
}

impl Client {
    /// Starts the program and connects.
    pub(crate) fn new(binary: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let program = Program::find(binary).unwrap();
        let instance = free_instances(INSTANCE, 1).unwrap();
        let process = {
            let _inside = runtime.enter();
            start(&program, instance)
        };
        Self {
            process: Some(process),
            program,
            instance,
            runtime,
            socket: connect(instance),
            receiver: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(),
            receiver_due: Instant::ZERO,
            began: time::Instant::now(),
            decoder: Decoder::default(),
            telemetry: Telemetry::default(),
            events: Vec::new(),
            outgoing: Outgoing::default(),
            streams: Streams::new(Instant::ZERO, POSITION_INTERVAL),
            heartbeat: Heartbeat::new(Instant::ZERO),
            intervals_refused: false,
            rows: Vec::new(),
        }
    }

    /// Starts the program anew where it has ended, and connects again.
    pub(crate) fn begin_again(&mut self) {
        if let Some(process) = self.process.take() {
            self.runtime.block_on(process.stop(None)).unwrap();
        }
        let _inside = self.runtime.enter();
        self.process = Some(start(&self.program, self.instance));
        self.socket = connect(self.instance);
        self.decoder.restart();
        self.outgoing.negotiation.restart();
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::ZERO + self.began.elapsed()
    }

    /// Hears what has come and sends what is due; `each` sees every message of the autopilot's. False when the
    /// connection has ended.
    pub(crate) fn turn(
        &mut self,
        each: &mut dyn FnMut(Instant, &MavMessage),
        send: &mut dyn FnMut(Instant, &Telemetry, &mut Transmit<'_>),
    ) -> bool {
        let mut buffer = [0; 4096];
        let len = match self.socket.read(&mut buffer) {
            Ok(0) => return false,
            Ok(len) => len,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => 0,
            Err(_) => return false,
        };
        let now = self.now();
        if now >= self.receiver_due {
            self.receiver_due = now + RECEIVER_PERIOD;
            let port = RECEIVER_PORT + 10 * self.instance;
            // A process that has just ended does not receive it.
            let _ =
                self.receiver.send_to(&PILOT_US.map(u16::to_le_bytes).concat(), (Ipv4Addr::LOCALHOST, port));
        }
        let mut restarted = false;
        self.decoder.push_at(now, &buffer[..len], |frame| {
            match self.telemetry.on_frame(now, &frame) {
                TelemetryEvent::Other | TelemetryEvent::Position | TelemetryEvent::Heartbeat { .. } => {}
                event => {
                    restarted |= event == TelemetryEvent::Rebooted;
                    self.events.push(event);
                }
            }
            if self.telemetry.is_ours(&frame) {
                self.outgoing.negotiation.on_frame(now, &frame);
                self.streams.on_message(now, &frame.message);
                if let MavMessage::COMMAND_ACK(ack) = &frame.message {
                    use wingbeat_autopilot::dialect::{MavCmd, MavResult};
                    self.intervals_refused |= ack.command == MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL
                        && ack.result == MavResult::MAV_RESULT_UNSUPPORTED;
                }
                each(now, &frame.message);
            }
        });
        if restarted {
            self.streams.restart(now);
            self.outgoing.negotiation.restart();
        }
        let Some(system_id) = self.telemetry.system_id else { return true };
        let mut bytes = heapless::Vec::new();
        let mut transmit = self.outgoing.transmit(system_id, &mut bytes);
        self.heartbeat.poll(now, &mut transmit).unwrap();
        self.streams.poll(now, &mut transmit).unwrap();
        send(now, &self.telemetry, &mut transmit);
        self.socket.write_all(&bytes).is_ok()
    }

    /// Takes turns until `done`; false when that takes too long.
    pub(crate) fn wait(&mut self, timeout: Duration, mut done: impl FnMut(&Telemetry) -> bool) -> bool {
        let until = self.now() + timeout;
        while !done(&self.telemetry) {
            if self.now() >= until || !self.turn(&mut |_, _| {}, &mut |_, _, _| {}) {
                return false;
            }
        }
        true
    }

    /// Runs a job to its end and writes a row; `describe` puts its result into words.
    pub(crate) fn run<J>(
        &mut self,
        name: &'static str,
        job: &mut J,
        mut receive: impl FnMut(&mut J, Instant, &MavMessage),
        mut poll: impl FnMut(&mut J, Instant, &Telemetry, &mut Transmit<'_>) -> Progress,
        describe: impl FnOnce(&J, &Telemetry) -> Result<String, String>,
    ) -> Progress {
        let from = self.now();
        let cell = std::cell::RefCell::new(job);
        let mut progress = Progress::Pending;
        while progress == Progress::Pending && self.now().since(from) < JOB_TIMEOUT {
            let up = self.turn(
                &mut |now, m| receive(&mut cell.borrow_mut(), now, m),
                &mut |now, telemetry, out| {
                    progress = poll(&mut cell.borrow_mut(), now, telemetry, out);
                },
            );
            if !up {
                break;
            }
        }
        let result = match progress {
            Progress::Done => describe(&cell.borrow(), &self.telemetry),
            Progress::Failed(failure) => Err(failure.to_string()),
            Progress::Pending => Err("the connection ended, or the job never did".into()),
        };
        self.note(name, from, result);
        progress
    }

    /// Writes a row about what began at `from`.
    pub(crate) fn note(&mut self, job: &'static str, from: Instant, result: Result<String, String>) {
        let took = self.now().since(from);
        let words = match &result {
            Ok(words) => words.clone(),
            Err(why) => format!("FAILED: {why}"),
        };
        println!("{job}: {words} ({:.2} s)", took.as_secs_f64());
        self.rows.push(Row { job, result, took });
    }

    /// The table of all rows, and those that failed.
    pub(crate) fn table(&self) -> (String, Vec<String>) {
        let mut text = format!("{:34} {:>7}  result\n", "job", "time, s");
        let mut failed = Vec::new();
        for Row { job, result, took } in &self.rows {
            let words = match result {
                Ok(words) => words.clone(),
                Err(why) => {
                    failed.push(format!("{job}: {why}"));
                    format!("FAILED: {why}")
                }
            };
            let _ = writeln!(text, "{job:34} {:7.2}  {words}", took.as_secs_f64());
        }
        (text, failed)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            let _ = self.runtime.block_on(process.stop(None));
        }
    }
}
