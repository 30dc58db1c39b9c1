//! Opens the line, listens, tries other rates where nothing is understood, and asks for parameters.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use wingbeat_link::{Endpoint, Link, LinkEvent, check};

use super::{
    Finding, Options,
    device::below,
    line::{Expected, Survey},
};
use crate::config::Settings;

/// Rates of ArduPilot's `SERIALn_BAUD`, the most usual first.
const BAUDS: [u32; 9] = [57_600, 921_600, 115_200, 460_800, 230_400, 500_000, 38_400, 1_500_000, 9_600];
/// How often a parameter is asked for.
const ASKS: usize = 4;

pub(super) async fn examine(options: &Options, settings: &Settings, findings: &mut Vec<Finding>) {
    let endpoint = &settings.daemon.autopilot;
    let here = match endpoint {
        Endpoint::Serial { path, baud, rtscts } => {
            Endpoint::Serial { path: below(&options.root, path), baud: *baud, rtscts: *rtscts }
        }
        elsewhere => elsewhere.clone(),
    };
    if let Err(error) = check(&here).await {
        let cure = error.kind.cure();
        findings.push(Finding::fault("port", format!("{endpoint}: {}", error.found), error.expected, cure));
        return;
    }
    findings.push(Finding::ok("port", "it free"));
    let (serial, rtscts) = match &here {
        Endpoint::Serial { path, baud, rtscts } => {
            // A USB port of the flight controller has neither a rate nor flow control.
            let usb = path.to_string_lossy().contains("ttyACM");
            (Some((path, *baud, *rtscts)), (!usb).then_some(*rtscts))
        }
        Endpoint::TcpClient { .. } | Endpoint::UdpListen(_) | Endpoint::UdpSend(_) => (None, None),
    };

    let mut survey = Survey::default();
    let mut line = Line::open(here.clone());
    line.listen(&mut survey, options.listen, |_| false).await;
    let listened_s = options.listen.as_secs_f64();
    if survey.is_silent() {
        let cure = match serial {
            Some(_) => {
                "power of the flight controller; its TX on our RX and a common ground; SERIAL2_PROTOCOL = 2 (SERIALn \
                 of the port in use)"
            }
            None => "the address and port of autopilot.endpoint; whether the flight controller sends there",
        };
        let found = format!("no byte within {listened_s} s");
        findings.push(Finding::fault("line", found, "telemetry", cure));
        return;
    }
    if survey.is_noise() {
        drop(line);
        findings.push(match serial {
            Some((path, baud, rtscts)) => {
                let other = hunt(options, path, baud, rtscts).await;
                wrong_rate(baud, other)
            }
            None => Finding::fault(
                "line",
                "bytes and no MAVLink",
                "MAVLink",
                "the address and port of autopilot.endpoint: something else answers there",
            ),
        });
        return;
    }
    findings.push(Finding::ok("line", format!("{endpoint} with MAVLink")));
    let mut sequence = 0;
    for _ in 0..ASKS {
        let questions = survey.questions(&mut sequence);
        if questions.is_empty() {
            break;
        }
        line.send(questions);
        line.listen(&mut survey, options.ask_period, |survey| survey.questions(&mut 0).is_empty()).await;
    }
    if let Some(reason) = line.closed {
        let cure = "the plug and the cable; where it took no byte: flow control, see BRD_SER2_RTSCTS";
        findings.push(Finding::fault("connection", reason, "a line that stays open", cure));
    }
    let expected = Expected {
        system_id: settings.daemon.agent.autopilot_system_id,
        position_interval_ms: settings.daemon.agent.position_interval.as_millis() as u64,
        ground_station_id: options.ground_station_id,
        rtscts,
    };
    survey.findings(&expected, findings);
}

fn wrong_rate(baud: u32, other: Option<u32>) -> Finding {
    match other {
        Some(other) => Finding::fault(
            "baud rate",
            format!("bytes and no MAVLink at {baud}, MAVLink at {other}"),
            format!("MAVLink at {baud}"),
            format!(
                "{other} in autopilot.endpoint, or SERIAL2_BAUD = {} on the flight controller",
                serial_baud(baud)
            ),
        ),
        None => Finding::fault(
            "baud rate",
            format!("bytes and no MAVLink at {baud} nor at any usual rate"),
            format!("MAVLink at {baud}"),
            "SERIAL2_PROTOCOL = 2 and SERIAL2_BAUD (SERIALn of the port in use); a common ground; 3.3 V levels",
        ),
    }
}

/// ArduPilot's number for a rate: thousands where that is a whole number or customary.
fn serial_baud(baud: u32) -> u32 {
    baud / 1_000
}

/// The rate at which an autopilot is understood.
async fn hunt(options: &Options, path: &std::path::Path, baud: u32, rtscts: bool) -> Option<u32> {
    for other in BAUDS.into_iter().filter(|other| *other != baud) {
        let mut survey = Survey::default();
        let mut line = Line::open(Endpoint::Serial { path: path.to_owned(), baud: other, rtscts });
        line.listen(&mut survey, options.listen_baud, Survey::has_autopilot_mut).await;
        if survey.has_autopilot() {
            return Some(other);
        }
    }
    None
}

impl Survey {
    fn has_autopilot_mut(&mut self) -> bool {
        self.has_autopilot()
    }
}

/// A link that remembers why it closed.
struct Line {
    link: Link,
    opened: Instant,
    closed: Option<String>,
}

impl Line {
    fn open(endpoint: Endpoint) -> Self {
        Self { link: Link::spawn(endpoint), opened: Instant::now(), closed: None }
    }

    fn send(&mut self, bytes: Vec<u8>) {
        if let Err(error) = self.link.send(bytes) {
            self.closed = Some(error.to_string());
        }
    }

    /// Listens for so long, or until enough was received.
    async fn listen(
        &mut self,
        survey: &mut Survey,
        duration: Duration,
        mut enough: impl FnMut(&mut Survey) -> bool,
    ) {
        let until = Instant::now() + duration;
        while let Ok(Some(event)) = timeout_at(until, self.link.recv()).await {
            match event {
                LinkEvent::Up => {}
                LinkEvent::Bytes(bytes) => {
                    let now = self.opened.elapsed();
                    survey.receive(wingbeat_geo::Instant::ZERO + now, &bytes);
                    if enough(survey) {
                        return;
                    }
                }
                LinkEvent::Down { reason } => self.closed = Some(reason),
            }
        }
    }
}
