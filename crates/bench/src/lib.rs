//! Benches: experiments as plans, flown deterministically in virtual time or in real time against
//! simulated flight controllers, and the tables that they make.
#![forbid(unsafe_code)]

pub mod axes;
pub mod campaign;
pub mod causes;
pub mod course;
pub mod drills;
pub mod emergency;
pub mod fleet;
pub mod flight;
pub mod gauss_markov;
pub mod guidance;
pub mod hosts;
pub mod linktest;
mod lockstep;
pub mod media;
pub mod parity;
pub mod phases;
pub mod plan;
pub mod prediction;
pub mod progress;
pub mod recording;
pub mod report;
pub mod run;
pub mod saturation;
pub mod scenario;
pub mod serve_serial;
pub mod sitl;
pub mod sky;
pub mod takeoff;
pub mod timeouts;
mod timetable;
mod transmitter;
pub mod trouble;
