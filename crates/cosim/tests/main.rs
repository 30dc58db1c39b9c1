//! Tests with other programs in lock step: ArduCopter, JSON physics, ns-3, scripts.

mod programs;
mod json;
mod lockstep;
mod ns3;
mod proxy;
mod script;
