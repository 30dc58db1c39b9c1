//! The same flight in formats of others.
//!
//! | module | for |
//! |---|---|
//! | [`tlog`] | MAVProxy, `mavlogdump`, QGroundControl |
//! | [`track`] | positions of one or more flights: CSV, KML, KMZ, ns-2, BonnMotion, GPX, AutoCAD |

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

/// One record in one line.
pub fn describe(event: &Event<'_>) -> String {
    let name = event.name();
    match event {
        Event::Began(start) => format!("{name} {start}"),
        Event::Lost(count) => format!("{name} {count} records"),
        Event::Wake => name.to_owned(),
        Event::Autopilot(bytes) | Event::ToAutopilot(bytes) => {
            format!("{name} {} {}", frames(bytes), hex(bytes))
        }
        Event::Utc(us) => format!("{name} {us} us after 1970"),
        Event::KeysHold(from, until) => format!("{name} from {from} until {until} us after 1970"),
        Event::AutopilotLink(is_open) => format!("{name} {}", if *is_open { "opened" } else { "closed" }),
        Event::Datagram(sealed) | Event::Order(sealed) => format!("{name} {}", datagram(sealed.bytes)),
        Event::RefusedDatagram(number) => match Refused::ALL.get(usize::from(*number)) {
            Some(reason) => format!("{name} {reason}"),
            None => format!("{name} {number}"),
        },
        Event::Operator(id, command) => format!("{name} {command}, id {id:?}"),
        Event::Mission(points) => format!("{name} {} waypoints", points.len()),
        Event::Guard(answer) => format!("{name} {answer:?}"),
        Event::Before(before) => format!("{name} {before:?}"),
        Event::Parameters(None) => format!("{name} read"),
        Event::Parameters(Some((which, value))) => format!("{name} {which} {value}"),
        Event::GroundStation(text) | Event::TakenBefore(text) | Event::Reply(text) => {
            format!("{name} {text}")
        }
        Event::Probe(probe) => format!("{name} {probe:?}"),
        Event::Lease(is_held) => format!("{name} {}", if *is_held { "held" } else { "free" }),
        Event::Broadcast(class, content) => {
            let message = Draft::of_content(content).and_then(|draft| draft.read());
            let message = message.map_or_else(|why| why.to_string(), |read| format!("{:?}", read.message));
            format!("{name} class {class} {message} {}", hex(content))
        }
        Event::PassOn(sealed) => format!("{name} {}", datagram(sealed)),
        Event::Log(level, text) => {
            let level = ["info", "warning", "error"].get(usize::from(*level)).copied().unwrap_or("unknown");
            format!("{name} {level}: {text}")
        }
        Event::Accepted(command) => format!("{name} {command}"),
        Event::ProbeReceived(from, probe) => format!("{name} from {from} {probe:?}"),
        Event::Sample(sample) => format!("{name} {sample:?}"),
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
