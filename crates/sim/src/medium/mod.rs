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

use crate::channel::{Channel, Counters, Losses, REACHES};
use crate::faults::Fault;
use csma::Csma;
use statistics::Statistics;

/// What carries datagrams in a simulated world.
pub enum Medium {
    /// A published model: the receivers are decided when a datagram is sent.
    Channel(Box<Channel>),
    /// 802.11: datagrams wait, and frames collide.
    Csma(Box<Csma>),
}

impl From<Channel> for Medium {
    fn from(channel: Channel) -> Self {
        Self::Channel(Box::new(channel))
    }
}

impl From<Csma> for Medium {
    fn from(csma: Csma) -> Self {
        Self::Csma(Box::new(csma))
    }
}

impl Medium {
    /// Something begins to disturb it.
    pub fn disturb(&mut self, fault: Fault) {
        match self {
            Self::Channel(channel) => channel.disturb(fault),
            Self::Csma(csma) => csma.disturb(fault),
        }
    }

    /// Datagrams sent, received and lost so far.
    pub fn counters(&self) -> Counters {
        match self {
            Self::Channel(channel) => channel.counters(),
            Self::Csma(csma) => csma.counters(),
        }
    }

    /// What became of every datagram, where frames are modelled.
    pub fn statistics(&self) -> Option<&Statistics> {
        match self {
            Self::Channel(_) => None,
            Self::Csma(csma) => Some(csma.statistics()),
        }
    }

    /// What it lost so far, by distance over the ground.
    pub fn losses_by_distance(&self) -> &[Losses; REACHES] {
        match self {
            Self::Channel(channel) => channel.losses_by_distance(),
            Self::Csma(csma) => csma.losses_by_distance(),
        }
    }
}
