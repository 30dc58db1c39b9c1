//! A `.tlog`: each MAVLink frame as it was on the line, after its time, microseconds after 1970, 8 bytes with the highest
//! first (<https://mavlink.io/en/guide/mavlink_2.html> has the frames; the format is MAVProxy's and QGroundControl's).

use std::io::{self, Write};

use wingbeat_autopilot::codec::finder::Finder;
use wingbeat_geo::Instant;

use crate::clock::Clock;
use crate::event::Event;
use crate::reader::Log;

/// Writes the frames of a log, both ways, on the clock of the other exports: GNSS time, else the computer's as it was set last.
/// Where UTC is unknown, time begins at 1970.
///
/// # Errors
/// What the writer answers.
pub fn write(log: &Log, mut to: impl Write) -> io::Result<u64> {
    let utc_base_us = Clock::shared_base_us(log).unwrap_or(0);
    let (mut finder, mut count) = (Finder::default(), 0);
    for entry in log.entries() {
        // What cannot be read was said when the log was read.
        let Ok(entry) = entry else { break };
        let at_us = entry.at.as_micros();
        let mut result = Ok(());
        let mut frame = |bytes: &[u8]| {
            if result.is_ok() {
                let time = utc_base_us.saturating_add(at_us).to_be_bytes();
                result = to.write_all(&time).and_then(|()| to.write_all(bytes));
                count += 1;
            }
        };
        match entry.event {
            Event::Autopilot(bytes) => finder.push(entry.at, bytes, |raw| frame(raw.bytes())),
            Event::ToAutopilot(bytes) => {
                Finder::default().push(Instant::ZERO, bytes, |raw| frame(raw.bytes()));
            }
            _ => {}
        }
        result?;
    }
    Ok(count)
}
