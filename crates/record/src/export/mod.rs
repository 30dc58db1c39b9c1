//! The same flight in formats of others.
//!
//! | module | for |
//! |---|---|
//! | [`parquet`](mod@parquet) | tables for pandas, polars, DuckDB and R |
//! | [`tlog`] | MAVProxy, `mavlogdump`, QGroundControl |
//! | [`track`] | positions of one or more flights: CSV, KML, KMZ, ns-2, BonnMotion, GPX, AutoCAD |

pub mod parquet;
pub mod tlog;
pub mod track;

use std::fmt::Write as _;

use wingbeat_autopilot::codec::finder::Finder;
use wingbeat_autopilot::message_name;
use wingbeat_geo::Instant;
use wingbeat_wire::{Draft, Refused, read_unverified};

use crate::event::Event;

/// Bytes that a line shows at most.
const SHOWN_MAX: usize = 64;

/// One record in one line: its name, what it says, and the first bytes of what is given or answered as such.
pub fn describe(event: &Event<'_>) -> String {
    let (mut line, words) = (event.name().to_owned(), words(event));
    if !words.is_empty() {
        line.push(' ');
        line.push_str(&words);
    }
    if let Event::Autopilot(bytes) | Event::ToAutopilot(bytes) | Event::Broadcast(_, bytes) = event {
        line.push(' ');
        line.push_str(&hex(bytes));
    }
    line
}

/// What a record says, without its name and its bytes.
pub fn words(event: &Event<'_>) -> String {
    match event {
        Event::Began(start) => (*start).to_owned(),
        Event::Lost(count) => format!("{count} records"),
        Event::Wake => String::new(),
        Event::Autopilot(bytes) | Event::ToAutopilot(bytes) => frames(bytes),
        Event::Utc(us) => format!("{us} us after 1970"),
        Event::KeysHold(from, until) => format!("from {from} until {until} us after 1970"),
        Event::AutopilotLink(is_open) => if *is_open { "opened" } else { "closed" }.to_owned(),
        Event::Datagram(sealed) | Event::Order(sealed) | Event::DirectOrder(sealed) => datagram(sealed.bytes),
        Event::RefusedDatagram(number) => match Refused::ALL.get(usize::from(*number)) {
            Some(reason) => reason.to_string(),
            None => number.to_string(),
        },
        Event::Operator(id, command) => format!("{command}, id {id:?}"),
        Event::Mission(points) | Event::MissionWith(points, _) => format!("{} waypoints", points.len()),
        Event::Guard(answer) => format!("{answer:?}"),
        Event::Before(before) => format!("{before:?}"),
        Event::KnownAutopilot(system_id, is_armed, is_held) => {
            format!("system {system_id}, armed {is_armed}, held {is_held}")
        }
        Event::KnownSession(console, number, newest) => {
            format!("console {console}, session {number:08x}, newest {newest} us")
        }
        Event::Flight(record) => format!("{:08x}, {} aircraft", record.flight, record.plan.slots.len()),
        Event::Region(order) => format!("{order:?}"),
        Event::Coordination(flight) => flight.clone(),
        Event::Parameters(None) => "read".to_owned(),
        Event::Parameters(Some((which, value))) => format!("{which} {value}"),
        Event::Owed(which, pilots, ..) => format!("{which} {pilots}"),
        Event::GroundStation(text) | Event::TakenBefore(text) | Event::Reply(text) => (*text).to_owned(),
        Event::Probe(probe) => format!("{probe:?}"),
        Event::Lease(is_held) => if *is_held { "held" } else { "free" }.to_owned(),
        Event::Broadcast(class, content) => {
            let message = Draft::of_content(content).and_then(|draft| draft.read());
            let message = message.map_or_else(|why| why.to_string(), |read| format!("{:?}", read.message));
            format!("class {class} {message}")
        }
        Event::PassOn(sealed) => datagram(sealed),
        Event::Log(level, text) => {
            let level = ["info", "warning", "error"].get(usize::from(*level)).copied().unwrap_or("unknown");
            format!("{level}: {text}")
        }
        Event::Accepted(command) => command.to_string(),
        Event::ProbeReceived(from, probe) => format!("from {from} {probe:?}"),
        Event::Sample(sample) => format!("{sample:?}"),
    }
}

fn datagram(sealed: &[u8]) -> String {
    match read_unverified(sealed) {
        Ok(read) => format!("from {} counter {} {:?}", read.from, read.counter, read.message),
        Err(why) => format!("{why}: {}", hex(sealed)),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes.iter().take(SHOWN_MAX) {
        // A String takes everything.
        let _ = write!(text, "{byte:02x}");
    }
    if bytes.len() > SHOWN_MAX {
        let _ = write!(text, "… ({} bytes)", bytes.len());
    }
    text
}

/// The messages in bytes of whole frames.
fn frames(bytes: &[u8]) -> String {
    let mut names = Vec::new();
    Finder::default().push(Instant::ZERO, bytes, |raw| names.push(message_name(raw.message_id())));
    names.join("+")
}
