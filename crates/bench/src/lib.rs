//! Benches of Wingbeat.
#![forbid(unsafe_code)]

pub mod serve;
