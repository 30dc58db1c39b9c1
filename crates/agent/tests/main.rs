//! Tests of the agent by its public interface: bytes, hostile input, size.

mod bytes;
mod hostile;
mod size;
