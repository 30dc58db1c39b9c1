//! Real autopilot programs in step with the simulated world (docs/lockstep.md).
//!
//! An ArduCopter SITL process computes motor outputs; our rigid body ([`wingbeat_sim::rigid`]) is moved by them and answers
//! with what the sensors measure. The process flies no further than it was answered, so the world's virtual time is
//! its time too, and the same seed gives the same bytes.
//!
//! | module | |
//! |---|---|
//! | [`program`] | an ArduCopter program: where it is, which version, how it wants to be called |
//! | [`proxy`] | another simulator's physics in the place of ours |
//! | [`script`] | a Python script in the companion's place, as the world's [`Logic`](wingbeat_sim::logic::Logic) |
//! | [`process`] | one process in a directory of its own, and nothing left of either |
//! | [`ports`] | ports that are free |
//! | [`gazebo`] | the packets of 3.5's model `gazebo`: outputs from it, sensors to it |
//! | [`json`] | the same of 4.x's model `JSON` |
//! | [`ns3`] | ns-3 as the world's [`Medium`](wingbeat_sim::medium::Medium) |
//! | [`method`] | how the flight and ns-3 keep one time: ours, and those of a published comparison |
//! | [`same_core`] | a thread and the program that it waits for, on one core of the processor |
//! | [`tape`] | what was asked of ns-3, to be run again without the world |
//! | [`hosts`] | aircraft of one world on several computers |
//! | [`incidents`] | what goes wrong with an aircraft that a program flies |
//! | [`copter`] | one aircraft: process, packets, physics, as the world's [`Autopilot`](wingbeat_sim::autopilot::Autopilot) |
#![forbid(unsafe_code)]

pub mod copter;
pub mod gazebo;
pub mod hosts;
pub mod incidents;
pub mod json;
pub mod method;
pub mod ns3;
pub mod ports;
pub mod process;
pub mod program;
pub mod proxy;
mod same_core;
pub mod script;
pub mod tape;
