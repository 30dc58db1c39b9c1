//! What commands an aircraft instead of an agent: a program of its owner, the high-level logic of the published co-simulators.

use core::fmt::Debug;

use wingbeat_geo::Instant;

/// A program in an aircraft's companion computer, in step with the world.
pub trait Logic: Debug + Send {
    /// The program runs until now, and then has what its autopilot has sent since the last call; appends what it sent to `out`.
    ///
    /// # Errors
    /// It ended otherwise than it should, or fell silent.
    fn run(&mut self, now: Instant, received: &[u8], out: &mut Vec<u8>) -> Result<(), String>;

    /// Whether it has ended as it should.
    fn has_ended(&self) -> bool;

    /// The lines that it has printed.
    fn printed(&self) -> Vec<String>;
}
