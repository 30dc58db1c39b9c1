//! The flight log: every input that passes an agent's one door, with the agent's time, in order, and what the agent
//! answered to each, in an MCAP file. What is plotted stands next to it on channels of their own, so that Foxglove opens
//! the file without a plug-in.
//!
//! A log of inputs is a test case: replay gives them to a fresh agent, whose outputs must be the same byte for byte.
//! `docs/records.md` describes the format.
//!
//! | module | what it does |
//! |---|---|
//! | [`event`] | inputs and outputs as records of the journal, and back |
//! | [`recorder`] | next to the agent: writes records into blocks, hands these on, blocks nothing |
//! | [`writer`] | the thread that writes the blocks; what it lost |
//! | [`store`] | the files of a directory: names, rotation, what is deleted |
//! | [`file`] | one MCAP file: journal, and the channels that are plotted |
//! | [`start`] | what makes the agent anew |
//! | [`reader`] | reads a file up to its last good chunk |
//! | [`replay`](mod@replay) | gives the inputs to a fresh agent and compares what it answers |
//! | [`step`] | each input, its answers and the state after it, as lines and as JSON |
//! | [`diff`](mod@diff) | the first record in which two logs differ |
//! | [`clock`](mod@clock) | UTC of a flight: this computer's, and GNSS time through the autopilot |
//! | [`compare`] | real flights next to the bench's |
//! | [`schema`] | the channels that are plotted: schemas and messages |
//! | [`export`] | the same flight in formats of others |
#![forbid(unsafe_code)]

pub mod clock;
#[cfg(feature = "replay")]
pub mod compare;
#[cfg(feature = "replay")]
pub mod diff;
pub mod event;
#[cfg(feature = "replay")]
pub mod export;
pub mod file;
pub mod reader;
pub mod recorder;
#[cfg(feature = "replay")]
pub mod replay;
pub mod schema;
pub mod start;
#[cfg(feature = "replay")]
pub mod step;
pub mod store;
pub mod writer;

/// The program's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The agent's: a hash over its sources. An agent of another one may answer other bytes.
pub const AGENT: &str = env!("WINGBEAT_AGENT");
