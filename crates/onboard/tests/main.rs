//! Tests of the daemon's program: configuration, doctor, journal, unit files.

#[path = "common/client.rs"]
mod client;
#[path = "common/doctored.rs"]
mod doctored;
mod doctor;
mod doctor_machine;
mod journal;
mod openapi;
mod unit;
mod wingbeatd;
