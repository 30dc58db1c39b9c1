//! Tests of the daemon's program: configuration, doctor, journal, unit files.

#[path = "common/client.rs"]
mod client;
mod doctor;
mod doctor_machine;
#[path = "common/doctored.rs"]
mod doctored;
mod journal;
mod openapi;
mod unit;
mod wingbeatd;
