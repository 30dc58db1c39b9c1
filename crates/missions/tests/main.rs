//! Tests of mission files: formats, refusals, samples.

mod ardusim;
mod formats;
mod others;
mod properties;
mod refusals;
mod samples;
