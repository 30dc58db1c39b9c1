//! Tests of the program `wingbeat` as users start it.

mod bad_input;
mod clients;
mod console;
#[path = "../../../tests/python/environment.rs"]
mod environment;
mod hosts;
mod lockstep;
mod programs;
mod scripts;
mod sitl;
#[path = "../../ground/tests/support/mod.rs"]
mod support;
mod tables;
