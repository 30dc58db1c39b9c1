//! What commands an aircraft instead of an agent: a program of its owner, the high-level logic of the published co-simulators.

use core::fmt::Debug;
use std::sync::Arc;

use wingbeat_geo::Instant;

/// A datagram that arrived: the index of its sender, and what it holds.
pub type Heard = (usize, Arc<[u8]>);

/// What a program sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// To its autopilot.
    pub autopilot: Vec<u8>,
    /// By its radio, to all.
    pub datagrams: Vec<Arc<[u8]>>,
}

/// A program in an aircraft's companion computer, in step with the world.
pub trait Logic: Debug + Send {
    /// The program runs until now, and then has what its autopilot has sent since the last call and what has arrived by its radio; appends
    /// what it sent to `out`.
    ///
    /// # Errors
    /// It ended otherwise than it should, or fell silent.
    fn run(&mut self, now: Instant, received: &[u8], heard: &[Heard], out: &mut Sent) -> Result<(), String>;

    /// When it is to run again though nothing has come; [`Instant::NEVER`] where it waits for that alone. It runs a millisecond after
    /// the last time at the earliest.
    fn due(&self) -> Instant;

    /// Whether it has ended as it should.
    fn has_ended(&self) -> bool;

    /// The lines that it has printed.
    fn printed(&self) -> Vec<String>;
}
