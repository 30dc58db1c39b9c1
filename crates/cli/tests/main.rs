//! Tests of the program `wingbeat` as users start it.

#[path = "../../../tests/python/environment.rs"]
mod environment;
mod programs;
#[path = "../../ground/tests/support/mod.rs"]
mod support;
mod bad_input;
mod clients;
mod console;
mod hosts;
mod lockstep;
mod scripts;
mod sitl;
mod tables;
