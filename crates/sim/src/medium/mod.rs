//! The medium among radios: one of the published models of reach ([`crate::channel`]), or 802.11 broadcast with
//! carrier sense, backoff and collisions ([`csma`]).
//!
//! | module | |
//! |---|---|
//! | [`timing`] | slot, interframe spaces, time on the air |
//! | [`link`] | power at a receiver: distance, fading, bursts, partitions, jammers |
//! | `reception` | what noise and interference do to a frame |
//! | `station` | one radio: queue, access to the medium, receiver |
//! | [`csma`] | the events, and what is received |
//! | [`statistics`] | what became of datagrams, and how long they waited |

pub mod csma;
pub mod link;
mod reception;
mod station;
pub mod statistics;
pub mod timing;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wingbeat_geo::{DVec3, Duration, Instant};

use crate::channel::{Channel, Counters, Losses, REACHES};
use crate::faults::Fault;
use csma::Csma;
use statistics::Statistics;

/// A datagram that arrived, or is known to arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reception {
    /// When its last bit has arrived, and what delays it further.
    pub at: Instant,
    /// Index of the sender.
    pub from: usize,
    /// Indices of the receivers.
    pub to: Vec<usize>,
    /// The datagram.
    pub bytes: Arc<[u8]>,
}

/// What a flow of traffic beside that of the aircraft has brought to its receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowFigures {
    /// Index of the sender.
    pub from: usize,
    /// Index of the receiver.
    pub to: usize,
    /// Bytes of payload received in each [`FLOW_BIN`] since the start.
    pub bytes_by_bin: Vec<u32>,
}

/// How long each bin of [`FlowFigures`] is.
pub const FLOW_BIN: Duration = Duration::from_millis(200);
/// A day's; what arrives later is not counted.
const FLOW_BINS_MOST: usize = 432_000;

impl FlowFigures {
    /// Nothing yet.
    pub fn new(from: usize, to: usize) -> Self {
        Self { from, to, bytes_by_bin: Vec::new() }
    }

    /// Counts what arrived.
    pub fn count(&mut self, at: Instant, bytes: u32) {
        let bin = (at.as_micros() as u128 / FLOW_BIN.as_micros()) as usize;
        if bin < FLOW_BINS_MOST {
            self.bytes_by_bin.resize(self.bytes_by_bin.len().max(bin + 1), 0);
            self.bytes_by_bin[bin] += bytes;
        }
    }

    /// Bytes received in all.
    pub fn bytes(&self) -> u64 {
        self.bytes_by_bin.iter().map(|bytes| u64::from(*bytes)).sum()
    }
}

/// By how much later receptions are dated than they happen where the flight and the network keep one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// So many.
    pub receptions: u64,
    /// All together, microseconds.
    pub sum_us: u64,
    /// The latest, microseconds.
    pub most_us: u64,
}

impl Lateness {
    /// One more.
    pub fn count(&mut self, late_us: u64) {
        self.receptions += 1;
        self.sum_us += late_us;
        self.most_us = self.most_us.max(late_us);
    }

    /// The mean, milliseconds; 0 of none.
    pub fn mean_ms(&self) -> f64 {
        self.sum_us as f64 / self.receptions.max(1) as f64 * 1e-3
    }
}

/// What carries datagrams in a simulated world, where radios have the same indices.
///
/// Times do not go back. Where nothing but chance and places decides, a medium knows at once what will arrive. One that
/// models frames says when it next wants to be advanced. One that is a simulator of its own learns what arrives only by
/// letting it happen ([`Medium::looks_ahead`]).
pub trait Medium: Send {
    /// Something begins to disturb it. A fault of an aircraft changes nothing here.
    fn disturb(&mut self, fault: Fault);

    /// Where the radios are from `now` on, metres: one place for each.
    fn moved(&mut self, now: Instant, positions: &[DVec3]);

    /// Brings it up to `now` and hands a datagram to a radio; the radios are at these places. Appends what is known to arrive.
    ///
    /// # Panics
    /// If `positions` does not hold one place for each radio.
    fn transmit(
        &mut self,
        now: Instant,
        from: usize,
        bytes: Arc<[u8]>,
        positions: &[DVec3],
        out: &mut Vec<Reception>,
    );

    /// Lets everything happen until a time, and that with it; appends what is known to arrive.
    ///
    /// # Errors
    /// It cannot go on, and why: a process that ended or fell silent.
    fn advance(&mut self, until: Instant, out: &mut Vec<Reception>) -> Result<(), String>;

    /// When it next wants to be advanced: nothing arrives before.
    fn poll_timeout(&self) -> Instant;

    /// The flight is over: what is still to happen until then happens, and no aircraft receives it.
    ///
    /// # Errors
    /// As [`Medium::advance`].
    fn end(&mut self, _now: Instant) -> Result<(), String> {
        Ok(())
    }

    /// Whether it is asked before each event of the world what arrives until then. It may then stop short of that time
    /// where something has arrived, and is asked again.
    fn looks_ahead(&self) -> bool {
        false
    }

    /// Datagrams sent, received and lost so far.
    fn counters(&self) -> Counters;

    /// What became of every datagram, where frames are modelled.
    fn statistics(&self) -> Option<&Statistics> {
        None
    }

    /// How late receptions are dated, where that is not decided by the model.
    fn lateness(&self) -> Option<Lateness> {
        None
    }

    /// What traffic beside that of the aircraft has come to.
    fn flows(&self) -> &[FlowFigures] {
        &[]
    }

    /// What it lost so far, by distance over the ground.
    fn losses_by_distance(&self) -> &[Losses; REACHES];
}

impl From<Channel> for Box<dyn Medium> {
    fn from(channel: Channel) -> Self {
        Box::new(channel)
    }
}

impl From<Csma> for Box<dyn Medium> {
    fn from(csma: Csma) -> Self {
        Box::new(csma)
    }
}
