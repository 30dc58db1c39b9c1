//! Tests with other programs in lock step: ArduCopter, JSON physics, ns-3, scripts.

mod json;
mod lockstep;
mod ns3;
mod programs;
mod proxy;
mod script;
