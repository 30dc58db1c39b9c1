//! The ground service from outside: its HTTP API, with aircraft that are daemons or stand-ins. One program: most of the time of a
//! small test is its linking.

mod access;
mod checklist;
mod commands;
mod find;
mod http;
mod limits;
mod metrics;
mod openapi;
mod picture;
mod planning;
mod records;
mod stream;
mod support;
